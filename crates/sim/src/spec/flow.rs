//! Flows.

use std::ops::{Deref, DerefMut};
use std::sync::Arc;

use ackclock_cc::CcSpec;
use ackclock_traffic::{LoadPattern, NetperfPattern, Pattern, ProbePattern, RequestPattern, VideoPattern, WebPattern};
use ackclock_units::Time;

use super::host::HostSpec;
use super::live::EndsSpec;
use super::mptcp::MptcpSpec;
use super::split::SplitSpec;
use super::topology::ViaSpec;

/// A flow: one connection with an application. What it has in common with others of its group is
/// kept once: reading goes through to it, and writing gives the flow a group of its own.
#[derive(Clone, Debug, PartialEq)]
pub struct FlowSpec {
    /// Name and number, `reno.0`.
    pub id: Arc<str>,
    /// Settings that all flows of a group have in common.
    pub group: Arc<FlowGroup>,
    /// Time at which the sender connects.
    pub start: Time,
    /// Time at which the sender's application stops writing and closes; data in the send buffer is
    /// still sent.
    pub stop: Option<Time>,
    /// Whose its two ends are; `None` if it has its two hosts to itself. Its path is then the one
    /// between these hosts.
    pub ends: Option<EndsSpec>,
    /// The hosts of a network that it is between, in place of the path of its group, by which such a
    /// flow is estimated alone; not with a split, subflows or hosts outside.
    pub via: Option<ViaSpec>,
}

/// Settings that flows of one group have in common.
#[derive(Clone, Debug, PartialEq)]
pub struct FlowGroup {
    /// Indices of the links that the data passes, in order.
    pub path: Vec<usize>,
    /// Further paths, and what takes which; `None` if there is `path` alone.
    pub split: Option<SplitSpec>,
    /// Multipath TCP, whose first subflow takes `path`; not with a split, nor with hosts outside.
    pub mptcp: Option<Box<MptcpSpec>>,
    /// Data against the direction of `path`: the sender stands at its far end.
    pub reverse: bool,
    /// The end that sends data and opens the connection.
    pub sender: HostSpec,
    /// The end that receives data.
    pub receiver: HostSpec,
    /// Bytes to send; `None` sends until the end.
    pub bytes: Option<u64>,
    /// The sender's application.
    pub application: Application,
    /// Bytes that the sending application writes at a time, whenever its socket is writable.
    /// Matters where a full send buffer wakes its writer late
    /// ([`ackclock_tcp::SpaceRule::Segments`]).
    pub write_size: u64,
    /// The differentiated services codepoint of its packets, both ways, 0 to 63 (RFC 2474).
    pub dscp: u8,
    /// Time at which the sender's application aborts the connection, as with SO_LINGER 0: unsent
    /// data is discarded, and the peer gets an RST.
    pub abort: Option<Time>,
    /// Controllers that replace the sender's during the run, in order of time; a stock socket keeps
    /// its own.
    pub schedule: Vec<CcChange>,
    /// Index of the memory of destinations in which the sender's host keeps metrics from one
    /// connection to the next, shared by other flows between the same hosts; `None` without one.
    pub metrics: Option<usize>,
    /// The hosts that sender and receiver are on, by numbers that other flows may name, too; `None`
    /// if both have a host to themselves.
    pub hosts: Option<[u32; 2]>,
}

impl FlowSpec {
    /// Bytes at a time, unless told otherwise: the block of iperf3 over TCP
    /// (`DEFAULT_TCP_BLKSIZE`).
    pub const WRITE_SIZE: u64 = 128 << 10;
}

impl Deref for FlowSpec {
    type Target = FlowGroup;

    fn deref(&self) -> &FlowGroup {
        &self.group
    }
}

impl DerefMut for FlowSpec {
    fn deref_mut(&mut self) -> &mut FlowGroup {
        Arc::make_mut(&mut self.group)
    }
}

/// The application of a flow: the contents and times of the sender's writes.
#[derive(Clone, Debug, Default, PartialEq)]
pub enum Application {
    /// Bulk transfer: writes as much as the socket accepts.
    #[default]
    Bulk,
    /// Messages at times of its own.
    Messages {
        /// Name in the results.
        kind: &'static str,
        /// The messages; their times count from the start of the flow.
        pattern: Pattern,
    },
    /// Requests, one at a time, which the receiver answers; not with a smoltcp socket, nor with an
    /// end outside.
    Requests(RequestPattern),
    /// A player of video, to which the receiver sends segments; likewise.
    Video(VideoPattern),
    /// A browser with connections of its own; likewise.
    Web(WebPattern),
    /// The client of netperf's stream test, with connections of its own; likewise.
    Netperf(NetperfPattern),
    /// Probes of responsiveness, each on a connection of its own; likewise.
    Probe(ProbePattern),
    /// Load with such probes between it, from or to the receiver; not with a smoltcp socket, nor
    /// with an end outside.
    Load(LoadPattern),
    /// A connection of a client that uses several, whose client determines its data. Not for flows
    /// of a specification.
    Connection,
}

impl Application {
    /// The connections that the application opens and closes at a time, beside the flow's own,
    /// which then stays closed; `None` if it uses that one.
    pub fn connections(&self) -> Option<usize> {
        match self {
            Application::Requests(pattern) if !pattern.persistent => Some(1),
            Application::Web(pattern) => Some(pattern.connections),
            Application::Netperf(_) => Some(2),
            Application::Probe(pattern) => Some(pattern.most_open()),
            _ => None,
        }
    }

    /// The bytes that the application writes in all, if they are certain and finite.
    pub fn bytes(&self) -> Option<u64> {
        match self {
            Application::Messages { pattern, .. } => pattern.bytes(),
            _ => None,
        }
    }
}

/// A change of congestion control: after arrivals at that time, before transmissions.
#[derive(Clone, Debug, PartialEq)]
pub struct CcChange {
    /// Time of the change.
    pub at: Time,
    /// The new controller.
    pub cc: CcSpec,
}
