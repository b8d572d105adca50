//! The names of hosts: the profiles of our endpoint, and smoltcp.

use ackclock_tcp::profile::Profile;

use crate::document::{Node, Value};
use crate::keys::Domain;
use crate::quantity::{Kind, OneOf, Problem};

/// A host by its name.
#[derive(Clone, Copy, Debug)]
pub(crate) struct NamedHost {
    pub(super) name: &'static str,
    /// Its profile; smoltcp has none.
    pub(super) profile: Option<fn() -> Profile>,
}

const LINUX_6_1: NamedHost = of("linux-6.1", Profile::linux_6_1);

/// The conditions of a host that is a kernel.
const KERNEL: &str = "a host of ackclock; a Linux kernel is the host of a flow of `[[flows]]` over a `path`, and with \
                      `stack = \"kernel\"` one of `[hosts]`, on Linux in builds with the feature `kernel` (`cargo build \
                      --features kernel`)";

/// Every host.
const HOSTS: [NamedHost; 12] = [
    of("rfc", Profile::rfc),
    of("freebsd-9.2", Profile::freebsd_9_2),
    of("freebsd-14", Profile::freebsd_14),
    of("linux-2.4", Profile::linux_2_4),
    of("linux-2.6.32", Profile::linux_2_6_32),
    of("linux-3.9", Profile::linux_3_9),
    of("linux-4.0", Profile::linux_4_0),
    LINUX_6_1,
    of("linux-6.18", Profile::linux_6_18),
    of("linux-7.3", Profile::linux_7_3),
    of("windows-7", Profile::windows_7),
    NamedHost { name: "smoltcp", profile: None },
];

const fn of(name: &'static str, profile: fn() -> Profile) -> NamedHost {
    NamedHost { name, profile: Some(profile) }
}

/// The name of a host.
pub(crate) struct Hosts;

impl Hosts {
    pub(crate) fn names() -> [&'static str; 12] {
        HOSTS.map(|host| host.name)
    }
}

impl Kind for Hosts {
    type Held = NamedHost;

    fn read(&self, node: &Node) -> Result<NamedHost, Problem> {
        let found = HOSTS.into_iter().find(|host| node.str() == Some(host.name));
        let names_kernel = node.table().map_or(node.str(), |table| table.get("kind")?.node.str()) == Some("kernel");
        found.ok_or_else(|| match names_kernel {
            true => Problem::new("a kernel cannot be the host here", KERNEL),
            false => OneOf { what: "host", names: &Hosts::names() }.problem(node),
        })
    }

    fn show(&self, held: &NamedHost) -> Value {
        held.name.into()
    }

    fn domain(&self) -> Domain {
        Domain::Name(Hosts::names().to_vec())
    }
}

impl Default for NamedHost {
    fn default() -> NamedHost {
        DEFAULT
    }
}

/// The host of a flow that does not name one. Between hosts it stands in for a kernel on the
/// virtual clock.
pub(crate) const DEFAULT: NamedHost = LINUX_6_1;

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_table_of_hosts_has_every_profile() {
        let mut names: Vec<&str> = Profile::all().iter().map(|profile| profile.name).collect();
        names.push("smoltcp");
        assert_eq!(Hosts::names(), *names);
        for host in HOSTS {
            assert!(host.profile.is_none_or(|profile| profile().name == host.name), "{}", host.name);
        }
    }
}
