//! Recognizing and removing namespaces, devices and programs that killed runs left behind.
//!
//! A run has a file in `/run/ackclock` that lists its namespaces, each entered before it is
//! created, and holds a lock on the file as long as it lives: a file that can be locked belongs to
//! a run that is over. The kernel releases the lock however a process ends, even if its process ID
//! is reused.
//!
//! A namespace carries the run's token (on `lo`, `ip -n NAME link show lo`), and programs that the
//! run started have it in their environment. Nothing without the token is touched, whatever its
//! name.

use std::fs::{self, File, OpenOptions, TryLockError};
use std::io::{self, BufRead, BufReader, Write};
use std::os::unix::fs::{DirBuilderExt, MetadataExt, PermissionsExt};
use std::path::{Path, PathBuf};
use std::thread;
use std::time::Duration;

use nix::sys::signal::{Signal, kill};
use nix::unistd::{AccessFlags, Pid, access};

use super::gateway;
use super::namespace::{self, NamespaceId, NetworkNamespace};
use super::places::runs;

/// The environment variable of programs that a run started: its token.
pub(super) const MARK: &str = "ACKCLOCK_RUN";

/// The beginning of a namespace's line.
const NETNS: &str = "netns ";

/// The suffix of a run's file.
const SUFFIX: &str = ".run";

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

    /// Undoes changes to namespaces that already existed; `false` if some remain.
    pub(super) fn undo(&self) -> bool {
        let text = fs::read_to_string(&self.path).unwrap_or_default();
        let mut lines = text.lines().filter(|line| !line.starts_with(NETNS)).peekable();
        if lines.peek().is_none() {
            return true;
        }
        // Meanwhile no other run checks what is still needed.
        let _lock = RunsLock::take();
        lines.fold(true, |all, line| all & gateway::undo(line, &self.path).is_ok())
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

/// Removes what runs that are over left behind. The record of anything that cannot be removed
/// remains. Requires the [`RunsLock`].
pub(super) fn sweep() {
    let Ok(files) = fs::read_dir(runs()) else { return };
    for path in files.flatten().map(|entry| entry.path()) {
        let name = path.file_name().unwrap_or_default().to_string_lossy();
        if let Some(token) = name.strip_suffix(SUFFIX)
            && let Ok(Some(file)) = abandoned(token, &path)
            && remove(token, &path, &file).is_ok()
        {
            let _ = fs::remove_file(&path);
        }
    }
}

/// Kills programs of runs that are over, but keeps their records, for use where their namespaces
/// are not visible.
pub(super) fn kill_abandoned() {
    for path in fs::read_dir(runs()).into_iter().flatten().flatten().map(|entry| entry.path()) {
        let name = path.file_name().unwrap_or_default().to_string_lossy();
        if let Some(token) = name.strip_suffix(SUFFIX)
            && let Ok(Some(_over)) = abandoned(token, &path)
        {
            kill_all(token, &[]);
        }
    }
}

/// The file of a run that is over, locked; `None` for a run in progress.
pub(super) fn abandoned(token: &str, path: &Path) -> io::Result<Option<File>> {
    let file = File::open(path)?;
    // A program that was being started when the run was killed shares the lock until it is
    // executed.
    for _ in 0..40 {
        match file.try_lock() {
            Ok(()) => return Ok(Some(file)),
            Err(TryLockError::WouldBlock) if is_alive(token) => return Ok(None),
            Err(TryLockError::WouldBlock) => thread::sleep(Duration::from_millis(5)),
            Err(TryLockError::Error(error)) => return Err(error),
        }
    }
    Ok(None)
}

/// Returns `true` if the process of a run exists. Processes in other containers are not visible.
fn is_alive(token: &str) -> bool {
    let mut parts = token.split('-');
    match (parts.next(), parts.next()) {
        (Some(pid), Some(started)) => start_time(pid).is_some_and(|time| time.to_string() == started),
        _ => false,
    }
}

fn remove(token: &str, path: &Path, file: &File) -> io::Result<()> {
    let own = NamespaceId::of_process("self")?;
    let mut found = Vec::new();
    let mut changes = Vec::new();
    for line in BufReader::new(file).lines() {
        let line = line?;
        let Some(name) = line.strip_prefix(NETNS) else {
            changes.push(line);
            continue;
        };
        // The file may contain lines by somebody else.
        if namespace::is_safe(name)
            && let Some(there) = NetworkNamespace::open(name)?
        {
            match there.owner() {
                // This process itself is in the namespace, so it is in use.
                Ok(Some(owner)) if owner == token && there.id() == own => {
                    return Err(io::ErrorKind::ResourceBusy.into());
                }
                Ok(Some(owner)) if owner == token => found.push(there),
                // The name now belongs to somebody else.
                Ok(_) => {}
                // The run was killed after creating the file and before mounting the namespace.
                Err(error) if error.kind() == io::ErrorKind::InvalidInput => namespace::unmount(name)?,
                Err(error) => return Err(error),
            }
        }
    }
    kill_all(token, &found.iter().map(NetworkNamespace::id).collect::<Vec<_>>());
    changes.iter().try_for_each(|line| gateway::undo(line, path))?;
    found.iter().try_for_each(|namespace| namespace::unmount(namespace.name()))
}

/// Kills all processes that a run started and all in its namespaces, and waits until they are gone,
/// at most for a second.
pub(super) fn kill_all(token: &str, namespaces: &[NamespaceId]) {
    for _ in 0..200 {
        let found = processes(token, namespaces);
        if found.is_empty() {
            return;
        }
        for pid in found {
            let _ = kill(pid, Signal::SIGKILL);
        }
        thread::sleep(Duration::from_millis(5));
    }
}

/// The processes, except this one, that have the token of a run in their environment or are in one
/// of these namespaces.
pub(super) fn processes(token: &str, namespaces: &[NamespaceId]) -> Vec<Pid> {
    let mark = format!("{MARK}={token}");
    let Ok(entries) = fs::read_dir("/proc") else { return Vec::new() };
    let names = entries.flatten().map(|entry| entry.file_name().to_string_lossy().into_owned());
    let others = names.filter_map(|name| Some((name.parse().ok()?, name)));
    others
        .filter(|&(pid, _): &(u32, _)| pid != std::process::id())
        .filter(|(_, name)| {
            // Processes that have ended, or may not be inspected, have neither.
            NamespaceId::of_process(name).is_ok_and(|id| namespaces.contains(&id))
                || fs::read(Path::new("/proc").join(name).join("environ"))
                    .is_ok_and(|environment| environment.split(|byte| *byte == 0).any(|entry| entry == mark.as_bytes()))
        })
        .filter_map(|(pid, _)| Some(Pid::from_raw(i32::try_from(pid).ok()?)))
        .collect()
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
