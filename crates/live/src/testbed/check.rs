//! The requirements of a live run.

use std::fs::{self, OpenOptions};
use std::io;
use std::path::Path;

use ackclock_sim::spec::LiveSpec;

use super::gateway;
use super::namespace::{self, NetworkNamespace};
use super::places;
use super::record::RunsLock;
use crate::LiveError;
use crate::commands::guard::SHELL;

/// Bits of the sets of capabilities (`linux/capability.h`).
const CAP_NET_ADMIN: u32 = 12;
const CAP_SYS_ADMIN: u32 = 21;

/// The longest device name, in bytes: `IFNAMSIZ` (`linux/if.h`) includes a zero.
const LONGEST_DEVICE: usize = 15;

/// Checks that this machine and process can do a live run of these hosts; creates nothing.
/// [`Testbed::set_up`](super::Testbed::set_up) checks for conflicts with others.
///
/// # Errors
/// [`LiveError::Missing`] with all that is missing.
pub(crate) fn check(spec: &LiveSpec) -> Result<(), LiveError> {
    let mut problems = names(spec);
    if spec.nodes.iter().any(|node| node.tun.is_some()) {
        problems.extend(privileges(spec.nodes.iter().any(|node| node.netns.is_some())));
    }
    if spec.nodes.iter().any(|node| node.nat)
        && let Some(problem) = gateway::missing()
    {
        problems.push(problem);
    }
    if !spec.commands.is_empty() && !Path::new(SHELL).exists() {
        problems.push(format!("{SHELL} does not exist, but commands and `ackclock shell` require it"));
    }
    possible(&problems)
}

/// Checks that the devices and namespaces of these hosts are free. Requires the lock, and that
/// leftovers have been removed.
pub(super) fn check_free(spec: &LiveSpec) -> Result<(), LiveError> {
    possible(&taken(spec))
}

fn possible(problems: &[String]) -> Result<(), LiveError> {
    Err(LiveError::Missing(match problems {
        [] => return Ok(()),
        [problem] => format!("a live run is not possible: {problem}"),
        _ => format!("a live run is not possible:\n  - {}", problems.join("\n  - ")),
    }))
}

/// Problems with the names of devices and namespaces.
fn names(spec: &LiveSpec) -> Vec<String> {
    let mut problems = Vec::new();
    let behind_devices = || spec.nodes.iter().filter(|node| node.tun.is_some());
    for node in behind_devices() {
        let tun = node.tun.as_deref().unwrap_or_default();
        if tun.len() > LONGEST_DEVICE {
            problems.push(format!(
                "host {}: a device name has at most {LONGEST_DEVICE} bytes, and {tun:?} has more",
                node.name
            ));
        } else if tun.is_empty()
            || matches!(tun, "." | "..")
            || tun.contains(|c: char| matches!(c, '/' | ':' | '%' | '\0') || c.is_whitespace())
        {
            problems.push(format!("host {}: {tun:?} is not a valid device name", node.name));
        }
        if let Some(netns) = &node.netns
            && !namespace::is_safe(netns)
        {
            problems.push(format!("host {}: {netns:?} is not a valid network namespace name", node.name));
        }
    }
    for (number, node) in behind_devices().enumerate() {
        if let Some(other) =
            behind_devices().take(number).find(|other| (&other.tun, &other.netns) == (&node.tun, &node.netns))
        {
            problems.push(format!("hosts {} and {} have the same device", other.name, node.name));
        }
    }
    for [a, b] in spec.pipes.iter().map(|pipe| pipe.between.map(|end| &spec.nodes[end])) {
        if a.tun.is_some() && b.tun.is_some() && a.netns == b.netns {
            let reason = "the kernel would pass packets between them by itself; give each its own `netns`";
            problems.push(format!("hosts {} and {} are in one network namespace: {reason}", a.name, b.name));
        }
    }
    problems
}

/// Missing privileges of this process.
fn privileges(with_namespaces: bool) -> Vec<String> {
    let mut problems = Vec::new();
    // Opening it without a name creates nothing.
    if let Err(error) = OpenOptions::new().read(true).write(true).open("/dev/net/tun") {
        problems.push(match error.kind() {
            io::ErrorKind::NotFound => String::from(
                "/dev/net/tun does not exist; create it with `mkdir -p /dev/net && mknod /dev/net/tun c 10 200`, or start the \
                 container with `docker run --device /dev/net/tun --cap-add NET_ADMIN`",
            ),
            _ => format!("/dev/net/tun cannot be opened: {error}"),
        });
    }
    let Some(effective) = effective_capabilities() else {
        problems.push(String::from("/proc/thread-self/status cannot be read; mount /proc"));
        return problems;
    };
    let has = |capability: u32| effective >> capability & 1 == 1;
    if !has(CAP_NET_ADMIN) {
        problems.push(String::from("CAP_NET_ADMIN is missing, but devices require it; run as root"));
    }
    if with_namespaces && !has(CAP_SYS_ADMIN) {
        problems.push(String::from(
            "CAP_SYS_ADMIN is missing, but network namespaces (`netns`) require it; run as root, in a container with \
             `--cap-add SYS_ADMIN`",
        ));
    }
    if problems.is_empty()
        && let Err(error) = RunsLock::take().and_then(|lock| lock.is_writable())
    {
        problems.push(format!("{}, where runs are registered, cannot be written: {error}", places::runs().display()));
    }
    problems
}

/// Returns `true` if this process may create devices and namespaces.
pub(crate) fn is_privileged() -> bool {
    let effective = effective_capabilities().unwrap_or(0);
    [CAP_NET_ADMIN, CAP_SYS_ADMIN].iter().all(|capability| effective >> capability & 1 == 1)
}

/// The effective capabilities; `None` if `/proc` does not tell.
fn effective_capabilities() -> Option<u64> {
    let status = fs::read_to_string("/proc/thread-self/status").ok()?;
    let set = status.lines().find_map(|line| line.strip_prefix("CapEff:"))?;
    u64::from_str_radix(set.trim(), 16).ok()
}

/// Devices and namespaces that others have.
fn taken(spec: &LiveSpec) -> Vec<String> {
    let mut problems = Vec::new();
    for node in &spec.nodes {
        let Some(tun) = &node.tun else { continue };
        let namespace = match node.netns.as_deref().map(NetworkNamespace::open) {
            None => None,
            // The namespace is yet to be created.
            Some(Ok(None)) => continue,
            Some(Ok(Some(there))) => match there.owner() {
                Ok(None) => Some(there),
                Ok(Some(owner)) => {
                    let pid = owner.split('-').next().unwrap_or_default();
                    let whose = format!("belongs to another run (process {pid})");
                    problems.push(format!("host {}: network namespace {} {whose}", node.name, there.name()));
                    continue;
                }
                Err(error) => {
                    problems.push(format!("host {}: network namespace {}: {error}", node.name, there.name()));
                    continue;
                }
            },
            Some(Err(error)) => {
                let netns = node.netns.as_deref().unwrap_or_default();
                problems.push(format!("host {}: network namespace {netns}: {error}", node.name));
                continue;
            }
        };
        let found = namespace::inside(namespace.as_ref(), || Ok(nix::net::if_::if_nametoindex(tun.as_str())?));
        if found.is_ok() {
            problems.push(format!("host {}: a device {tun} already exists", node.name));
        }
    }
    problems
}
