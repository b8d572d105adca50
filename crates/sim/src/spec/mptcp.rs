//! A flow over several subflows.

use std::net::IpAddr;

use ackclock_units::Time;

pub use ackclock_mptcp::SchedulerKind;

/// Multipath TCP (RFC 8684) between the ends of a flow, which are ackclock's endpoints.
#[derive(Clone, Debug, PartialEq)]
pub struct MptcpSpec {
    /// Indices of the links of the subflows but the first, which takes the path of the flow: one to
    /// 15 of them.
    pub others: Vec<Vec<usize>>,
    /// Indices, from 0, of the backup subflows.
    pub backups: Vec<usize>,
    /// The scheduler of new data.
    pub scheduler: SchedulerKind,
    /// See [`ackclock_mptcp::MptcpConfig`].
    pub opportunistic_retransmission: bool,
    /// See [`ackclock_mptcp::MptcpConfig`].
    pub penalization: bool,
    /// Paths that the sender gives up or takes up again, in order of time.
    pub changes: Vec<PathChange>,
    /// The hosts of each subflow, where the flow names them; none of a flow over paths.
    pub hosts: Vec<SubflowHosts>,
}

/// The hosts at the ends of a subflow, sender first.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct SubflowHosts {
    /// Hosts, by number in [`super::LiveSpec::nodes`].
    pub nodes: [usize; 2],
    /// Addresses of the hosts.
    pub addresses: [IpAddr; 2],
}

/// The sender gives up a path (REMOVE_ADDR), or takes it up again.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct PathChange {
    /// Time of the change.
    pub at: Time,
    /// Index of the path, from 0.
    pub path: usize,
    /// The path's state from then on.
    pub up: bool,
}

impl MptcpSpec {
    /// The links of all paths, of which `first` are those of the first.
    pub fn paths<'s>(&'s self, first: &'s [usize]) -> impl Iterator<Item = &'s [usize]> {
        [first].into_iter().chain(self.others.iter().map(Vec::as_slice))
    }
}
