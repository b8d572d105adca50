//! `ackclock schema`, `completions` and `man`: what editors, shells and `man` are given.

use std::fs;

use ackclock_scenario::Own;
use anyhow::Context;
use clap::CommandFactory;
use clap_mangen::Man;

use crate::args::Cli;
use crate::args::completions::{CompletionsArgs, ManArgs};

use crate::console::{print, print_line};

/// Prints the schema of scenario files; the status to end with.
pub(crate) fn schema(own: &Own) -> anyhow::Result<u8> {
    print_line(&ackclock_scenario::schema(own)).map(|_| 0)
}

/// Prints the completions of a shell; the status to end with.
pub(crate) fn completions(args: &CompletionsArgs) -> anyhow::Result<u8> {
    let mut script = Vec::new();
    clap_complete::generate(args.shell, &mut Cli::command(), "ackclock", &mut script);
    print(&String::from_utf8_lossy(&script)).map(|_| 0)
}

/// Prints the manual page, or writes all; the status to end with.
pub(crate) fn man(args: &ManArgs) -> anyhow::Result<u8> {
    let command = Cli::command();
    match &args.dir {
        None => {
            let mut page = Vec::new();
            Man::new(command).render(&mut page)?;
            print(&String::from_utf8_lossy(&page)).map(|_| 0)
        }
        Some(dir) => {
            let failed = || format!("cannot write into {}", dir.display());
            fs::create_dir_all(dir).with_context(failed)?;
            clap_mangen::generate_to(command, dir).with_context(failed)?;
            Ok(0)
        }
    }
}
