//! A lock: one program at a time writes to a directory.

use std::fs::{self, File, TryLockError};
use std::io::{self, Read, Write};
use std::path::{Path, PathBuf};
use std::thread;
use std::time::Duration;

use anyhow::Context;

use crate::partial;

/// The file that is locked; it says who has locked it.
const LOCK: &str = "lock";

/// Attempts to lock, and the pause after each. A program that was killed may hold it for a moment:
/// children that it was about to start have its files until they begin.
const TRIES: u32 = 20;
const PAUSE: Duration = Duration::from_millis(50);

/// Another program writes to a directory.
#[derive(Debug, thiserror::Error)]
#[error("{dir} is in use by {holder}")]
pub struct InUse {
    dir: String,
    holder: String,
}

/// The right to fill a directory. It ends with the program, however that ends.
#[derive(Debug)]
pub(super) struct Lock {
    path: PathBuf,
    _file: File,
}

impl Lock {
    /// Takes it, unless somebody has it and keeps it for a second.
    pub(super) fn take(dir: &Path) -> anyhow::Result<Lock> {
        let path = partial::hidden(dir, LOCK);
        let mut tries = 0;
        loop {
            let opened = partial::options().read(true).truncate(false).open(&path);
            let mut file = opened.with_context(|| format!("cannot write into {}", dir.display()))?;
            match file.try_lock() {
                Ok(()) => {}
                Err(TryLockError::WouldBlock) if tries < TRIES => {
                    tries += 1;
                    thread::sleep(PAUSE);
                    continue;
                }
                Err(TryLockError::WouldBlock) => {
                    let mut holder = String::new();
                    let _ = (&file).take(100).read_to_string(&mut holder);
                    // The lock may just have been made.
                    let holder = if holder.is_empty() { "another run" } else { &holder };
                    return Err(InUse { dir: dir.display().to_string(), holder: holder.to_owned() }.into());
                }
                // There are file systems without locks.
                Err(TryLockError::Error(error)) if error.kind() == io::ErrorKind::Unsupported => {}
                Err(TryLockError::Error(error)) => {
                    return Err(error).with_context(|| format!("cannot lock {}", dir.display()));
                }
            }
            // The one before may have removed it before this one had it.
            if is_at(&file, &path) {
                file.set_len(0).and_then(|()| write!(file, "process {}", std::process::id()))?;
                return Ok(Lock { path, _file: file });
            }
        }
    }
}

impl Drop for Lock {
    fn drop(&mut self) {
        let _ = fs::remove_file(&self.path);
    }
}

#[cfg(unix)]
fn is_at(file: &File, path: &Path) -> bool {
    use std::os::unix::fs::MetadataExt;
    let place = |found: io::Result<fs::Metadata>| found.ok().map(|found| (found.dev(), found.ino()));
    place(file.metadata()).is_some_and(|file| place(fs::metadata(path)) == Some(file))
}

#[cfg(not(unix))]
fn is_at(_: &File, path: &Path) -> bool {
    path.exists()
}
