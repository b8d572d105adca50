//! Settings of a connection.

use std::net::IpAddr;

use ackclock_units::Span;

/// The most subflows of a connection.
pub const MAX_SUBFLOWS: usize = 16;

/// A pair of addresses over which a subflow may run.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Path {
    /// Our address.
    pub local: IpAddr,
    /// The peer's address.
    pub remote: IpAddr,
    /// A backup path, which carries data only if there is no other.
    pub backup: bool,
}

/// The scheduler, which selects the subflow for new data.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub enum SchedulerKind {
    /// The subflow with the smallest smoothed RTT among those whose congestion window has room: the
    /// default of the out-of-tree Linux MPTCP (multipath-tcp.org).
    #[default]
    MinRtt,
    /// The subflow that would flush its queue first, in bursts of 64 KiB: `default` of the Linux
    /// kernel since 5.9 (`mptcp_subflow_get_send`).
    Linux,
    /// Each subflow in turn, if its congestion window has room.
    RoundRobin,
    /// All data over every subflow.
    Redundant,
    /// Smallest RTT, but no slower subflow is used if that would block the faster one (Ferlin,
    /// Alay, Mehani, Boreli, "BLEST", IFIP Networking 2016).
    Blest,
}

impl SchedulerKind {
    /// All schedulers.
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

/// The settings of a connection.
#[derive(Clone, Debug, PartialEq)]
pub struct MptcpConfig {
    /// The pairs of addresses; the first is that of the initial subflow.
    pub paths: Vec<Path>,
    /// Selects the subflow for new data.
    pub scheduler: SchedulerKind,
    /// When the shared receive window is full, its first bytes are retransmitted on a faster
    /// subflow (Raiciu et al., "How hard can it be?", NSDI 2012, section 4.2).
    pub opportunistic_retransmission: bool,
    /// When the shared receive window is full, the window of the subflow that holds its first bytes
    /// is halved, at most once per RTT (same paper).
    pub penalization: bool,
    /// The most bytes that are written and not acknowledged by the peer's connection.
    pub send_buffer: u64,
    /// The client opens subflows on all paths once the connection is confirmed; otherwise only to
    /// addresses that the server announces.
    pub join_unannounced: bool,
    /// The time until an unconfirmed ADD_ADDR is retransmitted, which then doubles.
    pub announcement_timeout: Span,
    /// The peer is another implementation. The payload offset of its segments is then that in their
    /// subflow's stream, the only one that a segment itself determines, and the reader of the wire
    /// checks the data ([`crate::Connection::stream_offset`]).
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
