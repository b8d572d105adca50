//! The specification of a run, all values checked: `scenario` builds it, [`crate::World`] runs it.

use ackclock_emulator::{Course, DeviceConfig, Impairments, MediumConfig};
use ackclock_units::{Rate, Span, Time};

pub use ackclock_aqm::{LinkLayer, Overhead, OwnQueue, QueueSpec};
pub use ackclock_cc::learned::{self, Agent, Policy};
pub use ackclock_cc::{CcSpec, OwnController};
pub use ackclock_emulator::SplitRule;
pub use ackclock_stack::{Lack, OwnStack, OwnStackConfig};

pub use self::datagrams::{DATAGRAM_HEADERS, DatagramApplication, DatagramSpec, MOST_MESSAGE, RTP_HEADER, VoipSpec};
pub use self::flow::{Application, CcChange, FlowGroup, FlowSpec};
pub use self::host::{EndpointSpec, HostSpec, SmoltcpCc, SmoltcpSpec};
pub use self::live::{
    Clock, CommandMeasure, CommandSpec, EndsSpec, LiveSpec, NodeSpec, PipeSpec, Priority, RouterSpec, Scheduling, Spin,
};
pub use self::mptcp::{MptcpSpec, PathChange, SchedulerKind, SubflowHosts};
pub use self::reordering::{ReorderTap, ReorderingSpec};
pub use self::split::{SplitSpec, WayBack};
pub use self::summed::{MAX_ALIVE, Poisson, Start, Starts, SumSpec};
pub use self::topology::{Pairs, Topology, TopologyKind, ViaSpec};
pub use self::workload::{SizeClass, WorkloadSpec};

mod datagrams;
mod flow;
mod host;
mod live;
mod mptcp;
mod reordering;
mod split;
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

impl RunSpec {
    /// Returns `true` if any link corrupts packets.
    pub fn corrupts(&self) -> bool {
        let directions = self.links.iter().flat_map(|link| [&link.forward, &link.reverse]);
        directions.into_iter().any(|direction| direction.impairments.corrupt > 0.0)
    }
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
    /// A device's transmit ring below the queue, the packet in transmission included; `None` is a
    /// transmitter by itself. Only at a constant rate, without bucket and slots.
    pub device: Option<DeviceConfig>,
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
