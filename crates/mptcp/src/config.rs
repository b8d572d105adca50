//! Settings of a connection.

use std::net::IpAddr;

use ackclock_units::Span;

/// How many subflows a connection has at most.
pub const MAX_SUBFLOWS: usize = 16;

/// One pair of addresses over which a subflow may run.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Path {
    /// Our address.
    pub local: IpAddr,
    /// The peer's.
    pub remote: IpAddr,
    /// Data is to be sent over it only if there is no other.
    pub backup: bool,
}

/// Which subflow new data goes to.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub enum SchedulerKind {
    /// The one with the smallest smoothed RTT of those whose congestion window has room: the
    /// default of the Linux MPTCP that was kept outside the kernel (multipath-tcp.org).
    #[default]
    MinRtt,
    /// The one that would have flushed what waits in it first, in bursts of 64 KiB: `default` of
    /// the kernel's MPTCP since 5.9 (`mptcp_subflow_get_send`).
    Linux,
    /// Each in turn, as far as its congestion window has room.
    RoundRobin,
    /// Everything over every subflow.
    Redundant,
    /// As the smallest RTT, but no slower subflow is used if the faster one would be blocked by it
    /// (Ferlin, Alay, Mehani, Boreli, "BLEST", IFIP Networking 2016).
    Blest,
}

impl SchedulerKind {
    /// All of them.
    pub const ALL: [SchedulerKind; 5] = [
        SchedulerKind::MinRtt,
        SchedulerKind::Linux,
        SchedulerKind::RoundRobin,
        SchedulerKind::Redundant,
        SchedulerKind::Blest,
    ];

    /// Its name in scenarios.
    pub const fn name(self) -> &'static str {
        match self {
            SchedulerKind::MinRtt => "min_rtt",
            SchedulerKind::Linux => "linux",
            SchedulerKind::RoundRobin => "round_robin",
            SchedulerKind::Redundant => "redundant",
            SchedulerKind::Blest => "blest",
        }
    }
}

/// How a connection uses its subflows.
#[derive(Clone, Debug, PartialEq)]
pub struct MptcpConfig {
    /// The pairs of addresses; the first is that of the initial subflow.
    pub paths: Vec<Path>,
    /// Who gets new data.
    pub scheduler: SchedulerKind,
    /// Where the shared receive window is full, its first bytes are sent again on a faster subflow
    /// (Raiciu et al., "How hard can it be?", NSDI 2012, section 4.2).
    pub opportunistic_retransmission: bool,
    /// Where that happens, the window of the subflow that holds these bytes is halved, at most once
    /// per RTT of it (same paper).
    pub penalization: bool,
    /// Bytes that are written and not acknowledged by the peer's connection.
    pub send_buffer: u64,
    /// The client opens subflows on all paths once the connection is confirmed; otherwise to the
    /// addresses that the server announces.
    pub join_unannounced: bool,
    /// How long an ADD_ADDR waits for its echo before it is sent again; it is twice.
    pub announcement_timeout: Span,
    /// The peer is another implementation: the payload of its segments has the offset that it has
    /// in the stream of their subflow, since a segment by itself tells no other, and whoever reads
    /// it off the wire checks it ([`crate::Connection::stream_offset`]).
    pub foreign_peer: bool,
}

impl Default for MptcpConfig {
    fn default() -> MptcpConfig {
        MptcpConfig {
            paths: Vec::new(),
            scheduler: SchedulerKind::default(),
            opportunistic_retransmission: true,
            penalization: true,
            send_buffer: 4 << 20,
            join_unannounced: false,
            announcement_timeout: Span::from_secs(1),
            foreign_peer: false,
        }
    }
}
