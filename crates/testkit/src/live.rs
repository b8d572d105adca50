//! Tests that need a kernel: devices and namespaces of their own.

use std::fs::{self, OpenOptions};
use std::path::Path;
use std::thread;

use nix::errno::Errno;
use nix::mount::{MntFlags, MsFlags, mount, umount2};
use nix::sched::{CloneFlags, unshare};

use crate::skipped;

/// Bits of the sets of capabilities (`linux/capability.h`).
const CAPABILITIES: [(&str, u32); 2] = [("CAP_NET_ADMIN", 12), ("CAP_SYS_ADMIN", 21)];

/// Returns `true` if `test`, which makes devices and namespaces and runs `programs`, can do so
/// here. If not, prints the reason past the test harness's capture, so that the output shows which
/// tests were skipped and why.
pub fn can_go_live(test: &str, programs: &[&str]) -> bool {
    let Some(why) = missing(programs) else { return true };
    skipped(test, &why);
    false
}

/// The first requirement that is missing.
fn missing(programs: &[&str]) -> Option<String> {
    if let Err(error) = OpenOptions::new().read(true).write(true).open("/dev/net/tun") {
        return Some(format!("/dev/net/tun: {error}"));
    }
    let status = fs::read_to_string("/proc/self/status").unwrap_or_default();
    let set = status.lines().find_map(|line| line.strip_prefix("CapEff:")).unwrap_or_default();
    let effective = u64::from_str_radix(set.trim(), 16).unwrap_or(0);
    if let Some((name, _)) = CAPABILITIES.iter().find(|(_, bit)| effective >> bit & 1 == 0) {
        return Some(format!("no {name}"));
    }
    if let Err((what, error)) = try_namespace() {
        return Some(format!("{what}: {error}"));
    }
    let path = std::env::var_os("PATH").unwrap_or_default();
    let there = |program: &str| std::env::split_paths(&path).any(|folder| is_file(&folder.join(program)));
    programs.iter().find(|program| !there(program)).map(|program| format!("no {program}"))
}

/// Makes a namespace and a mount, as containers may forbid in spite of the capabilities, and
/// removes them.
fn try_namespace() -> Result<(), (&'static str, Errno)> {
    let made = thread::spawn(|| unshare(CloneFlags::CLONE_NEWNET)).join().unwrap_or(Err(Errno::UnknownErrno));
    made.map_err(|error| ("a network namespace", error))?;
    let folder = std::env::temp_dir().join(format!("ackt-{}-{:?}", std::process::id(), thread::current().id()));
    fs::create_dir_all(&folder).map_err(|_| ("a temporary folder", Errno::last()))?;
    let mounted = mount(Some(&folder), &folder, None::<&str>, MsFlags::MS_BIND, None::<&str>);
    let removed = mounted.and_then(|()| umount2(&folder, MntFlags::MNT_DETACH));
    let _ = fs::remove_dir(&folder);
    removed.map_err(|error| ("a mount", error))
}

fn is_file(path: &Path) -> bool {
    fs::metadata(path).is_ok_and(|metadata| metadata.is_file())
}
