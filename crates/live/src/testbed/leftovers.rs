//! Namespaces, devices and programs that killed runs have left, and how they are recognized.
//!
//! A run has a file in `/run/ackclock` that lists its namespaces, each entered before it is
//! created, and holds a lock on it as long as it lives: a file that can be locked belongs to a run
//! that is over. The kernel releases the lock however a process ends, even if its process number is
//! reused.
//!
//! A namespace carries the run's token (on `lo`, `ip -n NAME link show lo`), programs that it has
//! started have it in their environment. Nothing without the token is touched, whatever its name.

use std::fs::{self, File, OpenOptions, TryLockError};
use std::io::{self, BufRead, BufReader, Write};
use std::os::unix::fs::{DirBuilderExt, MetadataExt, PermissionsExt};
use std::path::{Path, PathBuf};
use std::thread;
use std::time::Duration;

use nix::sys::signal::{Signal, kill};
use nix::unistd::{AccessFlags, Pid, access};

use super::gateway;
use super::namespace::{self, Id, Namespace};
use super::places::runs;

/// The variable in the environment of programs that were started by a run: its token.
pub(super) const MARK: &str = "ACKCLOCK_RUN";

/// How the line of a namespace begins.
const NETNS: &str = "netns ";

/// How the names of files of runs end.
const SUFFIX: &str = ".run";

/// The mode of the directory.
const PRIVATE: u32 = 0o700;

/// How long the lock is waited for: to set a run up, and to remove what ten are over, takes a
/// second or two.
const LONGEST: Duration = Duration::from_secs(30);

/// While it is held, no other run is set up and nothing that is left over is removed.
#[derive(Debug)]
pub(super) struct Lock {
    _directory: File,
}

/// The note about a run that goes on.
#[derive(Debug)]
pub(super) struct Record {
    path: PathBuf,
    token: String,
    /// Locked as long as it is open.
    file: File,
}

impl Lock {
    /// Waits for the lock, which is the directory itself.
    pub(super) fn take() -> io::Result<Lock> {
        loop {
            // Another run that ends, and is the last one, may remove it at any time: between two
            // steps of the standard library as well, which then says that it exists.
            match fs::DirBuilder::new().recursive(true).mode(PRIVATE).create(runs()) {
                Err(error) if error.kind() == io::ErrorKind::AlreadyExists && !is_something_else() => continue,
                made => made?,
            }
            let directory = match File::open(runs()) {
                Err(error) if error.kind() == io::ErrorKind::NotFound => continue,
                directory => directory?,
            };
            // Whoever may open it could lock it, for ever.
            let mut permissions = directory.metadata()?.permissions();
            if permissions.mode() & 0o777 != PRIVATE {
                permissions.set_mode(PRIVATE);
                directory.set_permissions(permissions)?;
            }
            lock_within(&directory, LONGEST)?;
            // Whoever held it may have removed it.
            if is_there(&directory) {
                return Ok(Lock { _directory: directory });
            }
        }
    }

    /// The lock if nobody has it, and there is a directory.
    fn try_take() -> Option<Lock> {
        let directory = File::open(runs()).ok()?;
        directory.try_lock().ok()?;
        is_there(&directory).then_some(Lock { _directory: directory })
    }

    /// Whether a run can be noted.
    pub(super) fn is_writable(&self) -> io::Result<()> {
        Ok(access(runs(), AccessFlags::W_OK)?)
    }
}

/// Waits so long for a lock.
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

impl Drop for Lock {
    fn drop(&mut self) {
        // If nothing is in it. Who waits for the lock sees that it is gone.
        let _ = fs::remove_dir(runs());
    }
}

/// Whether there is something with the name of the directory that is none.
fn is_something_else() -> bool {
    fs::symlink_metadata(runs()).is_ok_and(|there| !there.is_dir())
}

fn is_there(directory: &File) -> bool {
    match (directory.metadata(), fs::metadata(runs())) {
        (Ok(open), Ok(there)) => (open.dev(), open.ino()) == (there.dev(), there.ino()),
        _ => false,
    }
}

impl Record {
    /// Notes that a run is being set up.
    pub(super) fn create(_lock: &Lock) -> io::Result<Record> {
        let started = start_time("self").unwrap_or_default();
        for number in 0.. {
            let token = format!("{}-{started}-{number}", std::process::id());
            let path = runs().join(format!("{token}{SUFFIX}"));
            match OpenOptions::new().read(true).append(true).create_new(true).open(&path) {
                Ok(file) => {
                    file.lock()?;
                    return Ok(Record { path, token, file });
                }
                // Another run of this process, or of one with its number in another container.
                Err(error) if error.kind() == io::ErrorKind::AlreadyExists => {}
                Err(error) => return Err(error),
            }
        }
        unreachable!("as many runs at a time as there are numbers")
    }

    /// What marks all that belongs to the run: process number, when that process started, which of
    /// its runs.
    pub(super) fn token(&self) -> &str {
        &self.token
    }

    /// Its file.
    pub(super) fn path(&self) -> &Path {
        &self.path
    }

    /// Notes that a namespace is going to be made.
    pub(super) fn namespace(&mut self, name: &str) -> io::Result<()> {
        self.note(&format!("netns {name}"))
    }

    /// Notes something that has to be undone.
    pub(super) fn note(&mut self, line: &str) -> io::Result<()> {
        // One write, so that a line is there as a whole or not at all.
        self.file.write_all(format!("{line}\n").as_bytes())
    }

    /// Undoes what was changed in namespaces of others. `false` if something remains.
    pub(super) fn undo(&self) -> bool {
        let text = fs::read_to_string(&self.path).unwrap_or_default();
        let mut lines = text.lines().filter(|line| !line.starts_with(NETNS)).peekable();
        if lines.peek().is_none() {
            return true;
        }
        // Nobody else looks meanwhile who still needs what.
        let _lock = Lock::take();
        lines.fold(true, |all, line| all & gateway::undo(line, &self.path).is_ok())
    }

    /// Nothing remains of the run.
    pub(super) fn clear(&mut self) {
        let _ = fs::remove_file(&self.path);
        drop(Lock::try_take());
    }
}

/// Whether the record of another run has this line.
pub(super) fn others_note(line: &str, own: &Path) -> bool {
    let files = fs::read_dir(runs()).into_iter().flatten().flatten().map(|entry| entry.path());
    files
        .filter(|path| path != own)
        .any(|path| fs::read_to_string(path).is_ok_and(|text| text.lines().any(|noted| noted == line)))
}

/// Removes what runs that are over have left. What cannot be removed remains noted. Needs the
/// [`Lock`].
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

/// Kills what runs that are over have started, and leaves their notes: where their namespaces do
/// not show.
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

/// The file of a run, locked, if that is over.
pub(super) fn abandoned(token: &str, path: &Path) -> io::Result<Option<File>> {
    let file = File::open(path)?;
    // A program that was being started when the run was killed has the lock as well until it is
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

/// Whether the process of a run is there. That of a run in another container does not show.
fn is_alive(token: &str) -> bool {
    let mut parts = token.split('-');
    match (parts.next(), parts.next()) {
        (Some(pid), Some(started)) => start_time(pid).is_some_and(|time| time.to_string() == started),
        _ => false,
    }
}

fn remove(token: &str, path: &Path, file: &File) -> io::Result<()> {
    let own = Id::of_process("self")?;
    let mut found = Vec::new();
    let mut changes = Vec::new();
    for line in BufReader::new(file).lines() {
        let line = line?;
        let Some(name) = line.strip_prefix(NETNS) else {
            changes.push(line);
            continue;
        };
        // A line of a file that somebody else has written there.
        if namespace::is_safe(name)
            && let Some(there) = Namespace::open(name)?
        {
            match there.owner() {
                // We are in it ourselves: it is in use.
                Ok(Some(owner)) if owner == token && there.id() == own => {
                    return Err(io::ErrorKind::ResourceBusy.into());
                }
                Ok(Some(owner)) if owner == token => found.push(there),
                // Its name belongs to somebody else by now.
                Ok(_) => {}
                // A file that was meant to become a namespace: the run was killed in between.
                Err(error) if error.kind() == io::ErrorKind::InvalidInput => namespace::unmount(name)?,
                Err(error) => return Err(error),
            }
        }
    }
    kill_all(token, &found.iter().map(Namespace::id).collect::<Vec<_>>());
    changes.iter().try_for_each(|line| gateway::undo(line, path))?;
    found.iter().try_for_each(|namespace| namespace::unmount(namespace.name()))
}

/// Kills all processes that a run has started and all that are in its namespaces, and waits until
/// they are gone, a second at most.
pub(super) fn kill_all(token: &str, namespaces: &[Id]) {
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

/// The processes that have the token of a run in their environment or are in one of these
/// namespaces, except this process.
pub(super) fn processes(token: &str, namespaces: &[Id]) -> Vec<Pid> {
    let mark = format!("{MARK}={token}");
    let Ok(entries) = fs::read_dir("/proc") else { return Vec::new() };
    let names = entries.flatten().map(|entry| entry.file_name().to_string_lossy().into_owned());
    let others = names.filter_map(|name| Some((name.parse().ok()?, name)));
    others
        .filter(|&(pid, _): &(u32, _)| pid != std::process::id())
        .filter(|(_, name)| {
            // Processes that have ended, or may not be inspected, have neither.
            Id::of_process(name).is_ok_and(|id| namespaces.contains(&id))
                || fs::read(Path::new("/proc").join(name).join("environ"))
                    .is_ok_and(|environment| environment.split(|byte| *byte == 0).any(|entry| entry == mark.as_bytes()))
        })
        .filter_map(|(pid, _)| Some(Pid::from_raw(i32::try_from(pid).ok()?)))
        .collect()
}

/// When a process was started, in clock ticks after the start of the system: field 22 of
/// `/proc/PID/stat` (proc(5)). `None` if it is gone, also if its parent has not asked for its
/// status yet.
pub(super) fn start_time(pid: &str) -> Option<u64> {
    let stat = fs::read_to_string(Path::new("/proc").join(pid).join("stat")).ok()?;
    // The name in field 2 may have blanks and brackets.
    let fields = stat.rsplit_once(") ")?.1;
    if fields.starts_with(['Z', 'X']) {
        return None;
    }
    fields.split(' ').nth(22 - 3)?.parse().ok()
}
