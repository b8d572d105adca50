//! Packets as a queue discipline sees them.

use std::fmt::Debug;

use ackclock_units::{Ecn, Time};

/// The properties of a packet that a discipline uses.
pub trait Queued: Debug {
    /// Bytes that the packet occupies in the queue (what `tc` counts).
    fn wire_len(&self) -> u32;
    /// The packet's ECN codepoint.
    fn ecn(&self) -> Ecn;
    /// Sets the codepoint to CE. Only called on ECN-capable packets.
    fn set_ce(&mut self);
    /// A hash of the packet's flow, the same for all packets of a flow.
    fn flow_hash(&self) -> u64;
    /// Hashes of the sending and of the receiving host, for fairness among hosts. Default: the flow
    /// hash for both, as if no flow shared its hosts with another.
    fn host_hashes(&self) -> [u64; 2] {
        [self.flow_hash(); 2]
    }
    /// The differentiated services codepoint, 0 to 63 (RFC 2474). Default: 0, best effort.
    fn dscp(&self) -> u8 {
        0
    }
    /// Sets the codepoint of [`Queued::dscp`] to 0. Default: nothing, for packets that have none.
    fn wash(&mut self) {}
    /// Returns `true` if the packet is a TCP segment that acknowledges and carries neither payload
    /// nor SYN, FIN or RST. Default: `false`.
    fn is_pure_ack(&self) -> bool {
        false
    }
}

/// The parts of a packet that [`Queued`] does not have, for a discipline that looks at them
/// ([`QueueDisc::looks`](crate::QueueDisc::looks)).
#[derive(Clone, Copy, Debug)]
pub struct Headers<'a> {
    /// As [`Queued::host_hashes`], where the handle of a packet has no room for them.
    pub hosts: [u64; 2],
    /// The ACK of a TCP segment that has one, and no SYN.
    pub ack: Option<AckHeader<'a>>,
}

/// The parts of a TCP header that determine whether a later ACK makes it needless.
#[derive(Clone, Copy, Debug)]
pub struct AckHeader<'a> {
    /// The cumulative acknowledgment.
    pub number: u32,
    /// CWR and ECE.
    pub ecn: [bool; 2],
    /// It has payload, another flag than ACK, CWR and ECE, or an option other than timestamps and
    /// SACK.
    pub says_more: bool,
    /// Value and echo reply of the timestamps option.
    pub timestamps: Option<(u32, u32)>,
    /// The blocks of the SACK option, at most four.
    pub sack: &'a [(u32, u32)],
}

/// A packet that waits or waited, with the time of its arrival.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Entry<P> {
    /// The packet.
    pub packet: P,
    /// The time at which it was enqueued.
    pub enqueued_at: Time,
}
