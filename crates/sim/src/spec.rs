//! The specification of a run, all values checked: `scenario` builds it, [`crate::World`] runs it.

use std::num::NonZeroU32;
use std::ops::{Deref, DerefMut};
use std::sync::Arc;

use ackclock_emulator::{Course, Impairments, MediumConfig};
use ackclock_tcp::Config;
use ackclock_traffic::{LoadPattern, NetperfPattern, Pattern, ProbePattern, RequestPattern, VideoPattern, WebPattern};
use ackclock_units::parameter::Named;
use ackclock_units::{Rate, Span, Time, named};

pub use ackclock_aqm::{LinkLayer, Overhead, OwnQueue, QueueSpec};
pub use ackclock_cc::learned::{self, Agent, Policy};
pub use ackclock_cc::{CcSpec, OwnController};
pub use ackclock_emulator::SplitRule;
pub use ackclock_stack::{OwnStack, OwnStackConfig};

pub use self::datagrams::{DATAGRAM_HEADERS, DatagramApplication, DatagramSpec, MOST_MESSAGE, RTP_HEADER, VoipSpec};
pub use self::live::{
    Clock, CommandMeasure, CommandSpec, EndsSpec, LiveSpec, NodeSpec, PipeSpec, Priority, RouterSpec, Scheduling, Spin,
};
pub use self::mptcp::{MptcpSpec, PathChange, SchedulerKind, SubflowHosts};
pub use self::reordering::{ReorderTap, ReorderingSpec};
pub use self::summed::{MAX_ALIVE, Poisson, Start, Starts, SumSpec};
pub use self::topology::{Pairs, Topology, TopologyKind, ViaSpec};
pub use self::workload::{SizeClass, WorkloadSpec};

mod datagrams;
mod live;
mod mptcp;
mod reordering;
mod summed;
mod topology;
mod workload;

/// A run.
#[derive(Clone, Debug, PartialEq)]
pub struct RunSpec {
    /// The scenario's title.
    pub title: String,
    /// Simulated time.
    pub duration: Span,
    /// Root seed.
    pub seed: u64,
    /// The number of the repetition, from 0; it changes the random streams.
    pub run: u64,
    /// The order of simultaneous events.
    pub ties: Ties,
    /// Links, each with two directions.
    pub links: Vec<LinkSpec>,
    /// Flows, `count` already expanded.
    pub flows: Vec<FlowSpec>,
    /// Groups of flows of which only sums are kept, behind all others in the order of equal times;
    /// not with hosts outside, nor with second paths.
    pub sums: Vec<SumSpec>,
    /// Parts of the run that are measured for themselves, each from a time on until before another
    /// one.
    pub windows: Vec<(Time, Time)>,
    /// The places where reordering is measured; `None` without any. Not with hosts outside.
    pub reordering: Option<ReorderingSpec>,
    /// Hosts whose packets come from outside, with what is between them; `None` if all hosts are of
    /// the run's own making.
    pub live: Option<Box<LiveSpec>>,
}

/// The order of link directions, or of hosts, whose events are due at the same time. Real events
/// hardly ever coincide to the nanosecond; a fixed order can lock a run into a pattern that no real
/// network shows (phase effects).
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub enum Ties {
    /// Drawn anew for each time.
    #[default]
    Random,
    /// The order of the file: links before hosts in either case.
    Fixed,
}

/// A link.
#[derive(Clone, Debug, PartialEq)]
pub struct LinkSpec {
    /// Name in the scenario.
    pub name: String,
    /// The way that a path lists it.
    pub forward: DirectionSpec,
    /// The way back.
    pub reverse: DirectionSpec,
    /// The medium that both share; `None` if each has its own. With one, both have a rate, and
    /// neither has a bucket or changes.
    pub medium: Option<MediumConfig>,
    /// A host's interface, which results do not list. These stand behind all other links.
    pub is_interface: bool,
}

impl LinkSpec {
    /// Returns true if a direction has a queue discipline from outside.
    pub fn has_own_queue(&self) -> bool {
        let is_own = |queue: &QueueSpec| matches!(queue, QueueSpec::Own(_));
        let queues = [&self.forward, &self.reverse].map(|direction| &direction.queue);
        queues.into_iter().any(|queue| is_own(queue) || queue.leaves().any(is_own))
    }
}

/// A direction of a link: queue, transmitter, delay line.
#[derive(Clone, Debug, PartialEq)]
pub struct DirectionSpec {
    /// Rate of the transmitter; `None` sends at once.
    pub rate: Option<Rate>,
    /// Bytes of a token bucket in place of the transmitter; `None` is a transmitter.
    pub burst: Option<u32>,
    /// Descriptors of a device's transmit ring below the queue, the packet in transmission
    /// included; `None` is a transmitter by itself. Only at a constant rate, without bucket and
    /// slots.
    pub device: Option<NonZeroU32>,
    /// Time from the end of transmission to arrival.
    pub delay: Span,
    /// Framing of every packet on this link, in the queue's books and in transmission. Not below
    /// zero bytes.
    pub overhead: Overhead,
    /// The queue before the transmitter.
    pub queue: QueueSpec,
    /// Loss, duplication, jitter and reordering after transmission.
    pub impairments: Impairments,
    /// The changes of these values during the run. With a trace, `rate` is its mean.
    pub course: Course,
}

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

/// Several paths in place of one: the first, and others.
#[derive(Clone, Debug, PartialEq)]
pub struct SplitSpec {
    /// Indices of the links of the others, in order: one to 15 of them.
    pub others: Vec<Vec<usize>>,
    /// The rule for packets along the paths; for a flow, its data.
    pub along: SplitRule,
    /// The rule for packets that come back; for a flow, its ACKs.
    pub back: WayBack,
    /// Packets with SYN take the first path in both directions and are not counted.
    pub after_handshake: bool,
    /// The segments of one unit of a host (TSO) take one path, and count as one.
    pub whole_units: bool,
}

/// The way back over several paths.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum WayBack {
    /// Over one of them, by its number from 0.
    Over(usize),
    /// Over all.
    Split(SplitRule),
}

impl SplitSpec {
    /// The links of the path with this number, of which `first` is number 0.
    pub fn path<'s>(&'s self, first: &'s [usize], number: usize) -> &'s [usize] {
        number.checked_sub(1).map_or(first, |other| &self.others[other])
    }

    /// The links of all paths, of which `first` are those of the first.
    pub fn paths<'s>(&'s self, first: &'s [usize]) -> impl Iterator<Item = &'s [usize]> {
        [first].into_iter().chain(self.others.iter().map(Vec::as_slice))
    }
}

/// An end of a connection.
#[derive(Clone, Debug, PartialEq)]
#[expect(clippy::large_enum_variant, reason = "there are two of them for each group of flows")]
pub enum HostSpec {
    /// An ackclock endpoint.
    Endpoint(EndpointSpec),
    /// A stock smoltcp socket.
    Smoltcp(SmoltcpSpec),
    /// An end outside: a kernel behind a device.
    Outside,
    /// An end of a flow of datagrams; then both are, with the same specification.
    Datagrams(DatagramSpec),
}

impl HostSpec {
    /// The name of the congestion control; `None` for an end outside, or without one.
    pub fn cc(&self) -> Option<&str> {
        match self {
            HostSpec::Endpoint(endpoint) => Some(endpoint.cc.name()),
            HostSpec::Smoltcp(smoltcp) => Some(smoltcp.cc.name()),
            HostSpec::Outside | HostSpec::Datagrams(_) => None,
        }
    }
}

/// An ackclock endpoint with its congestion control.
#[derive(Clone, Debug, PartialEq)]
pub struct EndpointSpec {
    /// The profile's name, for the summary.
    pub profile: String,
    /// The knobs.
    pub config: Config,
    /// The congestion control.
    pub cc: CcSpec,
}

/// A stock smoltcp socket.
#[derive(Clone, Debug, PartialEq)]
pub struct SmoltcpSpec {
    /// The congestion control.
    pub cc: SmoltcpCc,
    /// MTU of its interface, bytes.
    pub mtu: u16,
    /// Send buffer, bytes.
    pub send_buffer: u64,
    /// Receive buffer, bytes.
    pub receive_buffer: u64,
    /// Delay of its acknowledgments; `None` acknowledges at once.
    pub ack_delay: Option<Span>,
    /// Nagle's algorithm.
    pub nagle: bool,
    /// Timestamps option.
    pub timestamps: bool,
}

impl Default for SmoltcpSpec {
    /// smoltcp's own defaults, where it has them: no congestion control, acknowledgments after 10
    /// ms, Nagle.
    fn default() -> SmoltcpSpec {
        SmoltcpSpec {
            cc: SmoltcpCc::None,
            mtu: 1500,
            send_buffer: 64 << 10,
            receive_buffer: 64 << 10,
            ack_delay: Some(Span::from_millis(10)),
            nagle: true,
            timestamps: false,
        }
    }
}

/// The congestion controllers that smoltcp has.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum SmoltcpCc {
    /// No window at all.
    None,
    /// smoltcp's Reno.
    Reno,
    /// smoltcp's CUBIC.
    Cubic,
}

named! { SmoltcpCc: None = "none", Reno = "reno", Cubic = "cubic" }

impl SmoltcpCc {
    /// The controller's name.
    pub fn name(self) -> &'static str {
        Named::name(&self)
    }
}
