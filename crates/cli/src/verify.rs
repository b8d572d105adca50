//! `ackclock verify`: whether the runs of an output directory give the same bytes again.

use std::path::Path;

use ackclock_run::status::{BAD_INPUT, MISSED};
use ackclock_run::verify::{Verdict, verify};
use ackclock_scenario::{LoadError, Own};

use crate::args::verify::VerifyArgs;
use crate::console::{print, say, tell};
use crate::shown::Sayer;

/// Verifies all of the directories; the status to end with.
pub(crate) fn run(args: &VerifyArgs, own: &Own) -> anyhow::Result<u8> {
    let folder = args.files.as_deref().unwrap_or(Path::new(""));
    let threads = args.threads.map(|threads| threads.get().into());
    let mut worst = 0;
    for dir in &args.dirs {
        match verify(dir, folder, threads, own, Sayer::default()) {
            Ok(Verdict::Same(files)) => {
                let line = format!("{}: {files} file{} the same\n", dir.display(), if files == 1 { "" } else { "s" });
                if !args.quiet && print(&line)?.is_break() {
                    return Ok(worst);
                }
            }
            Ok(Verdict::Differs(differences)) => {
                for difference in differences {
                    say(&format!("differs: {}: {difference}", dir.display()));
                }
                worst = worst.max(MISSED);
            }
            Ok(Verdict::Broken(status)) => {
                say(&format!("note: {} was not verified: its runs were not completed", dir.display()));
                return Ok(status);
            }
            Err(error) => {
                // An invalid scenario has its own layout, and names the manifest.
                tell(&match error.is::<LoadError>() {
                    true => error,
                    false => error.context(format!("cannot verify {}", dir.display())),
                });
                worst = BAD_INPUT;
            }
        }
    }
    Ok(worst)
}
