//! The names of hosts: the profiles of our endpoint, and smoltcp.

use ackclock_tcp::profile::Profile;

use crate::document::{Node, Value};
use crate::keys::Domain;
use crate::own::Own;
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

/// The name of a host. Stacks that can be one ([`OwnStack::carries_flows`]) are read before this.
///
/// [`OwnStack::carries_flows`]: ackclock_sim::spec::OwnStack::carries_flows
pub(crate) struct Hosts<'a>(pub(crate) &'a Own);

impl Hosts<'_> {
    /// The names of hosts of this program.
    pub(crate) fn names() -> [&'static str; 12] {
        HOSTS.map(|host| host.name)
    }

    fn all(&self) -> Vec<&'static str> {
        Hosts::names().into_iter().chain(self.0.carriers()).collect()
    }
}

impl Kind for Hosts<'_> {
    type Held = NamedHost;

    fn read(&self, node: &Node) -> Result<NamedHost, Problem> {
        let found = HOSTS.into_iter().find(|host| node.str() == Some(host.name));
        let kind = node.table().and_then(|table| table.get("kind")).map(|entry| &entry.node);
        found.ok_or_else(|| match kind.unwrap_or(node) {
            named if named.str() == Some("kernel") => Problem::new("a kernel cannot be the host here", KERNEL),
            named => OneOf { what: "host", names: &self.all() }.problem(named),
        })
    }

    fn show(&self, held: &NamedHost) -> Value {
        held.name.into()
    }

    fn domain(&self) -> Domain {
        Domain::Name(self.all())
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
