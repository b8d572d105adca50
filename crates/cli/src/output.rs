//! `--out`: a directory that is complete exactly when it has a manifest.
//!
//! Files are written under hidden names that end in `.partial` and renamed when the runs are over, the manifest last. An
//! earlier output stays as it is until then. Nothing in the files depends on the machine, the time or the number of threads.

use std::ffi::OsStr;
use std::fs::{self, File};
use std::io::{self, BufWriter, Write};
use std::path::{Component, Path, PathBuf};

use ackclock_scenario::Scenario;
use anyhow::{Context, bail};
use serde_json::{Value, json};
use sha2::{Digest, Sha256};

const MANIFEST: &str = "manifest.json";

/// The key by which a manifest is known; its value is the version.
const OURS: &str = "ackclock";

/// A directory that is being filled.
#[derive(Debug)]
pub(crate) struct Output {
    dir: PathBuf,
    /// Whether the directory was made for this.
    made: bool,
    sweep: bool,
    file: Option<Partial>,
}

/// A file that is not complete yet.
#[derive(Debug)]
struct Partial {
    name: &'static str,
    path: PathBuf,
    writer: BufWriter<File>,
    hash: Sha256,
    bytes: u64,
}

impl Partial {
    fn create(dir: &Path, name: &'static str) -> io::Result<Partial> {
        let path = dir.join(format!(".{name}.partial"));
        let writer = BufWriter::new(File::create(&path)?);
        Ok(Partial { name, path, writer, hash: Sha256::new(), bytes: 0 })
    }

    fn write(&mut self, text: &str) -> io::Result<()> {
        self.hash.update(text);
        self.bytes += text.len() as u64;
        self.writer.write_all(text.as_bytes())
    }

    /// Gives the file its name, once its contents are on the disk; its entry in the manifest.
    fn complete(self, dir: &Path) -> io::Result<(&'static str, Value)> {
        let file = self.writer.into_inner().map_err(io::IntoInnerError::into_error)?;
        file.sync_all()?;
        fs::rename(&self.path, dir.join(self.name))?;
        let hash: String = self.hash.finalize().iter().map(|byte| format!("{byte:02x}")).collect();
        Ok((self.name, json!({ "bytes": self.bytes, "sha256": hash })))
    }
}

impl Output {
    /// Makes sure, before anything runs, that the directory can be written and that nobody else's files are in it.
    pub(crate) fn prepare(dir: &Path, sweep: bool) -> anyhow::Result<Output> {
        let made = match fs::metadata(dir) {
            Ok(found) if !found.is_dir() => bail!("{} is not a directory", dir.display()),
            Ok(_) => false,
            Err(error) if error.kind() == io::ErrorKind::NotFound => {
                fs::create_dir_all(dir).with_context(|| format!("cannot make the directory {}", dir.display()))?;
                true
            }
            Err(error) => return Err(error).with_context(|| format!("cannot read {}", dir.display())),
        };
        let mut output = Output { dir: dir.to_owned(), made, sweep, file: None };
        let names = fs::read_dir(dir).and_then(|entries| {
            entries.map(|entry| entry.map(|entry| entry.file_name())).collect::<io::Result<Vec<_>>>()
        });
        let names = names.with_context(|| format!("cannot read the directory {}", dir.display()))?;
        // What a killed run left behind is in nobody's way.
        let foreign = names.iter().any(|name| !is_partial(name));
        if foreign && manifest(dir).is_none() {
            bail!(
                "{} is not empty, and what is in it is not an output of ackclock (no {MANIFEST} of ours)",
                dir.display()
            );
        }
        let name = if sweep { "summary.jsonl" } else { "summary.json" };
        let file = Partial::create(dir, name).with_context(|| format!("cannot write into {}", dir.display()))?;
        output.file = Some(file);
        Ok(output)
    }

    /// Writes the summary of the next run.
    pub(crate) fn summary(&mut self, summary: &Value) -> io::Result<()> {
        let Some(file) = &mut self.file else { return Ok(()) };
        file.write(&if self.sweep { format!("{summary}\n") } else { format!("{summary:#}\n") })
    }

    /// Completes the directory.
    pub(crate) fn finish(mut self, scenario: &Scenario) -> anyhow::Result<()> {
        let Some(file) = self.file.take() else { return Ok(()) };
        let dir = &self.dir;
        let earlier = manifest(dir);
        if earlier.is_some() {
            // From here until the new manifest the directory is not complete.
            fs::remove_file(dir.join(MANIFEST))?;
        }
        let (name, entry) = file.complete(dir)?;
        for old in earlier.iter().filter_map(|manifest| manifest["files"].as_object()).flat_map(|files| files.keys()) {
            let plain = matches!(Path::new(old).components().collect::<Vec<_>>()[..], [Component::Normal(_)]);
            if plain && old != name {
                let _ = fs::remove_file(dir.join(old));
            }
        }
        let manifest = json!({
            OURS: env!("CARGO_PKG_VERSION"),
            "title": scenario.title(),
            "seed": scenario.seed(),
            "runs": scenario.runs(),
            "files": { name: entry },
            "scenario": scenario.resolved(),
        });
        let mut file = Partial::create(dir, MANIFEST)?;
        file.write(&format!("{manifest:#}\n"))?;
        file.complete(dir)?;
        Ok(())
    }
}

impl Drop for Output {
    /// Takes away what a failed run began.
    fn drop(&mut self) {
        if let Some(file) = self.file.take() {
            let _ = fs::remove_file(&file.path);
            if self.made {
                let _ = fs::remove_dir(&self.dir);
            }
        }
    }
}

fn is_partial(name: &OsStr) -> bool {
    name.to_str().is_some_and(|name| name.starts_with('.') && name.ends_with(".partial"))
}

/// The manifest of a complete output.
fn manifest(dir: &Path) -> Option<Value> {
    let manifest: Value = serde_json::from_slice(&fs::read(dir.join(MANIFEST)).ok()?).ok()?;
    manifest[OURS].is_string().then_some(manifest)
}
