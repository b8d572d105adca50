//! The files of runs in progress, which list what each has made.

use std::fs::{self, File, OpenOptions, TryLockError};
use std::io::{self, Write};
use std::os::unix::fs::{DirBuilderExt, MetadataExt, PermissionsExt};
use std::path::{Path, PathBuf};
use std::thread;
use std::time::Duration;

use nix::unistd::{AccessFlags, access};

use super::places::runs;

/// The beginning of a namespace's line.
pub(super) const NETNS: &str = "netns ";

/// The suffix of a run's file.
pub(super) const SUFFIX: &str = ".run";

/// The mode of the directory.
const PRIVATE: u32 = 0o700;

/// The longest wait for the lock: setting up a run, and removing what ten runs left behind, takes a
/// second or two.
const LONGEST: Duration = Duration::from_secs(30);

/// Prevents other runs from being set up and leftovers from being removed.
#[derive(Debug)]
pub(super) struct RunsLock {
    _directory: File,
}

/// The record of a run in progress.
#[derive(Debug)]
pub(super) struct RunRecord {
    path: PathBuf,
    token: String,
    /// Locked as long as it is open.
    file: File,
}

impl RunsLock {
    /// Waits for the lock, which is the directory itself.
    pub(super) fn take() -> io::Result<RunsLock> {
        loop {
            // The last other run may remove the directory at any time, also between two steps of
            // the standard library, which then reports that it exists.
            match fs::DirBuilder::new().recursive(true).mode(PRIVATE).create(runs()) {
                Err(error) if error.kind() == io::ErrorKind::AlreadyExists && !is_something_else() => continue,
                made => made?,
            }
            let directory = match File::open(runs()) {
                Err(error) if error.kind() == io::ErrorKind::NotFound => continue,
                directory => directory?,
            };
            // Anyone who may open it could lock it forever.
            let mut permissions = directory.metadata()?.permissions();
            if permissions.mode() & 0o777 != PRIVATE {
                permissions.set_mode(PRIVATE);
                directory.set_permissions(permissions)?;
            }
            lock_within(&directory, LONGEST)?;
            // The previous holder may have removed it.
            if is_there(&directory) {
                return Ok(RunsLock { _directory: directory });
            }
        }
    }

    /// The lock, if it is free and the directory exists.
    fn try_take() -> Option<RunsLock> {
        let directory = File::open(runs()).ok()?;
        directory.try_lock().ok()?;
        is_there(&directory).then_some(RunsLock { _directory: directory })
    }

    /// Checks that a run can be recorded.
    pub(super) fn is_writable(&self) -> io::Result<()> {
        Ok(access(runs(), AccessFlags::W_OK)?)
    }
}

/// Waits for a lock, at most for `longest`.
fn lock_within(directory: &File, longest: Duration) -> io::Result<()> {
    let pause = Duration::from_millis(5);
    for _ in 0..longest.as_millis() / pause.as_millis() {
        match directory.try_lock() {
            Ok(()) => return Ok(()),
            Err(TryLockError::Error(error)) => return Err(error),
            Err(TryLockError::WouldBlock) => thread::sleep(pause),
        }
    }
    let why = format!("another program has kept its lock for {} s; `fuser` names it", longest.as_secs());
    Err(io::Error::new(io::ErrorKind::TimedOut, why))
}

impl Drop for RunsLock {
    fn drop(&mut self) {
        // This fails unless the directory is empty. Those who wait for the lock notice the removal.
        let _ = fs::remove_dir(runs());
    }
}

/// Returns `true` if something else than a directory has its name.
fn is_something_else() -> bool {
    fs::symlink_metadata(runs()).is_ok_and(|there| !there.is_dir())
}

fn is_there(directory: &File) -> bool {
    match (directory.metadata(), fs::metadata(runs())) {
        (Ok(open), Ok(there)) => (open.dev(), open.ino()) == (there.dev(), there.ino()),
        _ => false,
    }
}

impl RunRecord {
    /// Records that a run is being set up.
    pub(super) fn create(_lock: &RunsLock) -> io::Result<RunRecord> {
        let started = start_time("self").unwrap_or_default();
        for number in 0.. {
            let token = format!("{}-{started}-{number}", std::process::id());
            let path = runs().join(format!("{token}{SUFFIX}"));
            match OpenOptions::new().read(true).append(true).create_new(true).open(&path) {
                Ok(file) => {
                    file.lock()?;
                    return Ok(RunRecord { path, token, file });
                }
                // Another run of this process, or of a process with the same ID in another
                // container, has this token.
                Err(error) if error.kind() == io::ErrorKind::AlreadyExists => {}
                Err(error) => return Err(error),
            }
        }
        unreachable!("as many runs at a time as there are numbers")
    }

    /// The token that marks everything of the run: process ID, start time of the process, number of
    /// its run.
    pub(super) fn token(&self) -> &str {
        &self.token
    }

    /// The path of its file.
    pub(super) fn path(&self) -> &Path {
        &self.path
    }

    /// Records a namespace before it is created.
    pub(super) fn namespace(&mut self, name: &str) -> io::Result<()> {
        self.note(&format!("netns {name}"))
    }

    /// Records a change that has to be undone.
    pub(super) fn note(&mut self, line: &str) -> io::Result<()> {
        // A single write, so that a line is complete or absent.
        self.file.write_all(format!("{line}\n").as_bytes())
    }

    /// Deletes the record of a run of which nothing remains.
    pub(super) fn clear(&mut self) {
        let _ = fs::remove_file(&self.path);
        drop(RunsLock::try_take());
    }
}

/// Returns `true` if the record of another run contains this line.
pub(super) fn others_note(line: &str, own: &Path) -> bool {
    let files = fs::read_dir(runs()).into_iter().flatten().flatten().map(|entry| entry.path());
    files
        .filter(|path| path != own)
        .any(|path| fs::read_to_string(path).is_ok_and(|text| text.lines().any(|noted| noted == line)))
}

/// The start time of a process, in clock ticks since the system started: field 22 of
/// `/proc/PID/stat` (proc(5)). `None` if it has ended, also if it is a zombie.
pub(super) fn start_time(pid: &str) -> Option<u64> {
    let stat = fs::read_to_string(Path::new("/proc").join(pid).join("stat")).ok()?;
    // The name in field 2 may contain spaces and parentheses.
    let fields = stat.rsplit_once(") ")?.1;
    if fields.starts_with(['Z', 'X']) {
        return None;
    }
    fields.split(' ').nth(22 - 3)?.parse().ok()
}
