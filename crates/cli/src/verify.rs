//! `ackclock verify`: whether the runs of an output directory give the same bytes again.
//!
//! A file is compared three ways: its hash in the manifest, the file in the directory, and the file
//! of the repetition. So a file that was changed afterwards is told from a run that differs.

mod difference;

use std::io::{self, Read};
use std::path::{Path, PathBuf};
use std::process;

use ackclock_scenario::{LoadError, Own, Scenario};
use anyhow::{Context, bail};
use serde_json::{Map, Value};
use sha2::{Digest, Sha256};

use crate::args::Args;
use crate::args::verify::VerifyArgs;
use crate::control::{self, Plan};
use crate::output::{self, OURS};
use crate::{BAD_INPUT, MISSED, print, say, session, tell};

/// Verifies all of the directories; the status to end with.
pub(crate) fn run(args: &VerifyArgs, own: &Own) -> anyhow::Result<u8> {
    let mut worst = 0;
    for dir in &args.dirs {
        match verify(dir, args, own) {
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

enum Verdict {
    /// So many files are the same.
    Same(usize),
    /// In sentences.
    Differs(Vec<String>),
    /// The runs came to no end, which gives this status; a failure has been said.
    Broken(u8),
}

fn verify(dir: &Path, args: &VerifyArgs, own: &Own) -> anyhow::Result<Verdict> {
    let manifest = output::required_manifest(dir)?;
    let (Some(text), Some(files)) = (manifest["scenario"].as_str(), manifest["files"].as_object()) else {
        bail!("its manifest has no `scenario` or no `files`");
    };
    if manifest["partial"] == true {
        bail!("its results are partial: the runs were broken off");
    }
    let folder = args.files.as_deref().unwrap_or(Path::new(""));
    let scenario = read(dir, folder, text, own)?;
    if scenario.is_live() {
        bail!("it is of a live run, which does not repeat");
    }
    if let Some(version) = manifest[OURS].as_str().filter(|&version| version != env!("CARGO_PKG_VERSION")) {
        say(&format!(
            "note: {} was written by version {version}, and this is {}",
            dir.display(),
            env!("CARGO_PKG_VERSION")
        ));
    }
    let plan = Plan::read(&scenario, &control::from_manifest(&manifest)?)?;
    let again = Temporary::create()?;
    let part = |key: &str| manifest[key].as_str();
    let asked = Args {
        threads: args.threads,
        only: part("only").and_then(|text| text.parse().ok()),
        shard: part("shard").and_then(|text| text.parse().ok()),
        ..Args::into_dir(again.0.clone())
    };
    if let Some(status) = session::again(&asked, &scenario, plan)? {
        return Ok(Verdict::Broken(status));
    }
    let differences = compare(dir, files, &again.0)?;
    Ok(if differences.is_empty() { Verdict::Same(files.len()) } else { Verdict::Differs(differences) })
}

fn compare(dir: &Path, files: &Map<String, Value>, again: &Path) -> anyhow::Result<Vec<String>> {
    let repeated = output::manifest(again).context("the repetition has no manifest")?;
    let repeated = repeated["files"].as_object().context("the repetition has no files")?;
    let mut differences = Vec::new();
    for (name, entry) in files {
        if output::depth_of(name).is_none() {
            bail!("its manifest lists `{name}`, which is no file of an output");
        }
        let path = dir.join(name);
        let hash = match hash(&path, entry) {
            Ok(hash) => hash,
            Err(error) if error.kind() == io::ErrorKind::InvalidData => {
                differences.push(format!("{name} was changed since it was written: {error}"));
                continue;
            }
            Err(error) if error.kind() == io::ErrorKind::NotFound => {
                differences.push(format!("{name} is missing"));
                continue;
            }
            Err(error) => return Err(error).with_context(|| format!("cannot read {}", path.display())),
        };
        if entry["sha256"] != hash {
            differences.push(format!("{name} was changed since it was written: it does not have its hash"));
        }
        match repeated.get(name) {
            Some(repeated) if repeated["sha256"] == hash => {}
            Some(_) => differences.push(difference::first(name, &path, &again.join(name))?),
            None => differences.push(format!("{name} was not written again")),
        }
    }
    let more = repeated.keys().filter(|name| !files.contains_key(*name));
    differences.extend(more.map(|name| format!("{name} was written by the repetition alone")));
    Ok(differences)
}

/// The scenario of a manifest, whose files are in `folder` or relative to that.
pub(crate) fn read(dir: &Path, folder: &Path, text: &str, own: &Own) -> anyhow::Result<Scenario> {
    let name = format!("{} (scenario)", dir.join(output::MANIFEST).display());
    Ok(Scenario::parse_in(folder, &name, text.as_bytes(), &[], own).map_err(LoadError::from)?)
}

/// The hash of a file that a manifest lists with this entry.
pub(crate) fn hash(path: &Path, entry: &Value) -> io::Result<String> {
    let mut file = ackclock_trace::open_of_size(path, entry["bytes"].as_u64().unwrap_or_default())?;
    let (mut hash, mut buffer) = (Sha256::new(), vec![0; 1 << 16]);
    loop {
        match file.read(&mut buffer)? {
            0 => break,
            read => hash.update(&buffer[..read]),
        }
    }
    Ok(hash.finalize().iter().map(|byte| format!("{byte:02x}")).collect())
}

/// A directory that is removed when it is dropped.
struct Temporary(PathBuf);

impl Temporary {
    fn create() -> anyhow::Result<Temporary> {
        let parent = std::env::temp_dir();
        // Whatever is there already is somebody else's.
        for number in 0..1000 {
            let path = parent.join(format!("ackclock-verify-{}-{number}", process::id()));
            match std::fs::create_dir(&path) {
                Ok(()) => return Ok(Temporary(path)),
                Err(error) if error.kind() == io::ErrorKind::AlreadyExists => {}
                Err(error) => {
                    return Err(error).with_context(|| format!("cannot create the directory {}", path.display()));
                }
            }
        }
        bail!("cannot create a directory in {}", parent.display())
    }
}

impl Drop for Temporary {
    fn drop(&mut self) {
        let _ = std::fs::remove_dir_all(&self.0);
    }
}
