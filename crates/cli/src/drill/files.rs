//! The list of scripts, and their text.

use std::fs::File;
use std::io::{self, Read};
use std::path::{Path, PathBuf};

use walkdir::WalkDir;

/// The largest file that is accepted as a script.
const MAX_BYTES: u64 = 16 << 20;

/// A script to run, or why there is none.
#[derive(Debug)]
pub(crate) struct FoundScript {
    pub(crate) path: PathBuf,
    /// The error before the file could be read.
    pub(crate) problem: Option<String>,
}

/// The files named, and for a directory every `*.pkt` below it by name; links are followed.
pub(crate) fn collect(named: &[PathBuf]) -> Vec<FoundScript> {
    let mut found = Vec::new();
    for path in named {
        if !path.is_dir() {
            found.push(FoundScript { path: path.clone(), problem: None });
            continue;
        }
        let before = found.len();
        for entry in WalkDir::new(path).follow_links(true).sort_by_file_name() {
            match entry {
                Ok(entry) => {
                    if !entry.file_type().is_dir() && entry.path().extension().is_some_and(|end| end == "pkt") {
                        found.push(FoundScript { path: entry.into_path(), problem: None });
                    }
                }
                Err(error) => {
                    let path = error.path().unwrap_or(path).to_owned();
                    let problem = if error.loop_ancestor().is_some() {
                        "cannot be read: it is a link to a directory that it is in".to_owned()
                    } else {
                        error.io_error().map_or_else(|| error.to_string(), |error| format!("cannot be read: {error}"))
                    };
                    found.push(FoundScript { path, problem: Some(problem) });
                }
            }
        }
        if found.len() == before {
            found.push(FoundScript {
                path: path.clone(),
                problem: Some("the directory has no *.pkt below it".to_owned()),
            });
        }
    }
    found
}

/// The contents of a script.
pub(crate) fn read(path: &Path) -> Result<Vec<u8>, String> {
    let mut bytes = Vec::new();
    let read = |bytes: &mut Vec<u8>| -> io::Result<()> {
        File::open(path)?.take(MAX_BYTES + 1).read_to_end(bytes)?;
        Ok(())
    };
    read(&mut bytes).map_err(|error| format!("cannot be read: {error}"))?;
    if bytes.len() as u64 > MAX_BYTES {
        return Err(format!("cannot be read: it is larger than {} MiB", MAX_BYTES >> 20));
    }
    Ok(bytes)
}
