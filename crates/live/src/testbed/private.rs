//! An ordinary user's own network: a user namespace in which the user is root, with a network and
//! mount namespace of its own. Devices, namespaces and addresses can be created there without
//! privileges, but nothing leads out of it.

use std::env;
use std::fs::{self, OpenOptions};
use std::io::{self, Write};
use std::os::unix::fs::{DirBuilderExt, MetadataExt};
use std::path::PathBuf;

use nix::errno::Errno;
use nix::mount::{MsFlags, mount};
use nix::sched::{CloneFlags, unshare};

use super::{leftovers, netlink, places};

/// Makes this process, which must have a single thread, root of a user namespace of its own.
///
/// # Errors
/// The kernel or the machine's settings do not allow it; the message names them.
pub(crate) fn enter() -> io::Result<()> {
    let own = fs::metadata("/proc/self")?;
    let (user, group) = (own.uid(), own.gid());
    places::keep_below(&base(user)?);
    // Programs of a killed run, in an earlier namespace of this user, are not visible from the new
    // one.
    leftovers::kill_abandoned();
    let kinds = CloneFlags::CLONE_NEWUSER | CloneFlags::CLONE_NEWNET | CloneFlags::CLONE_NEWNS;
    unshare(kinds).map_err(refused)?;
    // `gid_map` is refused as long as groups may be dropped (user_namespaces(7)).
    set("/proc/self/setgroups", "deny").map_err(|error| told(&error))?;
    set("/proc/self/uid_map", &format!("0 {user} 1")).map_err(|error| told(&error))?;
    set("/proc/self/gid_map", &format!("0 {group} 1")).map_err(|error| told(&error))?;
    // Later mounts stay in this namespace.
    mount(None::<&str>, "/", None::<&str>, MsFlags::MS_REC | MsFlags::MS_PRIVATE, None::<&str>)?;
    netlink::set_up_loopback()
}

/// The user's directory for records and namespaces.
fn base(user: u32) -> io::Result<PathBuf> {
    let runtime = env::var_os("XDG_RUNTIME_DIR").map(PathBuf::from).filter(|path| path.is_dir());
    let base = runtime.unwrap_or_else(env::temp_dir).join(format!("ackclock-{user}"));
    fs::DirBuilder::new().recursive(true).mode(0o700).create(&base)?;
    let owner = fs::symlink_metadata(&base)?;
    if !owner.is_dir() || owner.uid() != user {
        return Err(io::Error::other(format!("{} belongs to somebody else", base.display())));
    }
    Ok(base)
}

fn set(path: &str, value: &str) -> io::Result<()> {
    OpenOptions::new().write(true).open(path)?.write_all(value.as_bytes())
}

fn refused(error: Errno) -> io::Error {
    let setting = |path: &str, off: &str| fs::read_to_string(path).is_ok_and(|text| text.trim() == off);
    let why = if setting("/proc/sys/kernel/unprivileged_userns_clone", "0") {
        "kernel.unprivileged_userns_clone is 0"
    } else if setting("/proc/sys/user/max_user_namespaces", "0") {
        "user.max_user_namespaces is 0"
    } else if setting("/proc/sys/kernel/apparmor_restrict_unprivileged_userns", "1") {
        "kernel.apparmor_restrict_unprivileged_userns is 1"
    } else {
        return told(&error.into());
    };
    told(&io::Error::new(io::ErrorKind::PermissionDenied, why))
}

fn told(error: &io::Error) -> io::Error {
    let why = match error.kind() {
        io::ErrorKind::PermissionDenied => format!("not allowed on this machine, or in this container ({error})"),
        _ => error.to_string(),
    };
    io::Error::new(error.kind(), format!("a user namespace: {why}; run as root instead"))
}
