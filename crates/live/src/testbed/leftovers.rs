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

use std::fs::{self, File, TryLockError};
use std::io::{self, BufRead, BufReader};
use std::path::Path;
use std::thread;
use std::time::Duration;

use nix::sys::signal::{Signal, kill};
use nix::unistd::Pid;

use super::gateway;
use super::namespace::{self, NamespaceId, NetworkNamespace};
use super::places::runs;
use super::record::{NETNS, RunRecord, RunsLock, SUFFIX, start_time};

/// The environment variable of programs that a run started: its token.
pub(super) const MARK: &str = "ACKCLOCK_RUN";

/// Undoes changes of a run to namespaces that already existed; `false` if some remain.
pub(super) fn undo(record: &RunRecord) -> bool {
    let text = fs::read_to_string(record.path()).unwrap_or_default();
    let mut lines = text.lines().filter(|line| !line.starts_with(NETNS)).peekable();
    if lines.peek().is_none() {
        return true;
    }
    // Meanwhile no other run checks what is still needed.
    let _lock = RunsLock::take();
    lines.fold(true, |all, line| all & gateway::undo(line, record.path()).is_ok())
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
