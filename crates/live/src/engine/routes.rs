//! Networks behind hosts: a packet to an address that no host has goes to the host in front of its
//! network, by the longest matching prefix.

use std::cmp::Reverse;
use std::net::IpAddr;

use ackclock_sim::spec::NodeSpec;

use crate::prefix;

/// The prefixes behind hosts, the longest first, those of the same length in the order of the
/// hosts.
#[derive(Debug)]
pub(super) struct HostRoutes(Vec<((IpAddr, u8), usize)>);

impl HostRoutes {
    pub(super) fn new(nodes: &[NodeSpec]) -> HostRoutes {
        let of = |(number, node): (usize, &NodeSpec)| node.routes.iter().map(|&to| (to, number)).collect::<Vec<_>>();
        let mut routes: Vec<_> = nodes.iter().enumerate().flat_map(of).collect();
        routes.sort_by_key(|&((_, length), _)| Reverse(length));
        HostRoutes(routes)
    }

    /// The host behind which an address lies, among those that are `reached`.
    pub(super) fn find(&self, address: IpAddr, mut reached: impl FnMut(usize) -> bool) -> Option<usize> {
        if self.0.is_empty() || !is_forwarded(address) {
            return None;
        }
        let mut behind = self.0.iter().filter(|&&(to, _)| prefix::contains(to, address)).map(|&(_, node)| node);
        behind.find(|&node| reached(node))
    }
}

/// Returns `true` if a route may lead to an address: packets that kernels send unprompted on a new
/// device stay there.
fn is_forwarded(address: IpAddr) -> bool {
    match address {
        IpAddr::V4(address) => {
            !(address.is_multicast()
                || address.is_broadcast()
                || address.is_unspecified()
                || address.is_loopback()
                || address.is_link_local())
        }
        IpAddr::V6(address) => {
            !(address.is_multicast()
                || address.is_unspecified()
                || address.is_loopback()
                || address.is_unicast_link_local())
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_longest_prefix_that_can_be_reached_wins() {
        let node = |routes: &[&str]| NodeSpec {
            routes: routes
                .iter()
                .map(|route| {
                    let (to, length) = route.split_once('/').unwrap();
                    (to.parse().unwrap(), length.parse().unwrap())
                })
                .collect(),
            ..NodeSpec::default()
        };
        let nodes =
            [node(&["0.0.0.0/0", "::/0"]), node(&["10.0.0.0/8"]), node(&[]), node(&["10.1.0.0/16", "0.0.0.0/0"])];
        let routes = HostRoutes::new(&nodes);
        let find = |address: &str, but: usize| routes.find(address.parse().unwrap(), |node| node != but);
        assert_eq!(find("10.1.2.3", 9), Some(3));
        assert_eq!(find("10.1.2.3", 3), Some(1));
        assert_eq!(find("10.2.2.3", 9), Some(1));
        assert_eq!(find("11.2.2.3", 9), Some(0));
        assert_eq!(find("11.2.2.3", 0), Some(3));
        assert_eq!(find("2001:db8::1", 9), Some(0));
        assert_eq!(find("2001:db8::1", 0), None);
        for stays in
            ["224.0.0.251", "255.255.255.255", "169.254.1.1", "127.0.0.1", "0.0.0.0", "ff02::2", "fe80::1", "::1"]
        {
            assert_eq!(find(stays, 9), None, "{stays}");
        }
    }
}
