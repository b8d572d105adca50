//! The summary of a run. Its JSON keys are a contract: keys are added, never renamed.

use std::collections::BTreeMap;
use std::sync::Arc;

use serde::{Deserialize, Serialize};

use crate::metrics::metrics;

pub use application::{
    ApplicationSummary, LoadSummary, MessagesSummary, NetperfSummary, PagesSummary, ProbesSummary, RequestsSummary,
    ResponsivenessSummary, VideoSummary,
};
pub use counts::{LinkLoad, LinkPackets, Progress, Reactions, Recoveries, SentPackets};
pub use datagrams::{DatagramSummary, LossBursts, Reordering, VoiceSummary};
pub use group::{GroupSummary, Spread};
pub use kind::{KindSummary, kinds};
pub use live::{CommandSummary, Lateness, LiveHost, LiveSummary, RoundTrips};
pub use multipath::{MultipathSummary, SubflowSummary};
pub(crate) use name::Name;
pub use reordering::{BufferDensity, NReordering, PacketReordering, ReorderDensity, ReorderFreeRuns};
pub use sender::{CaStateSeconds, Limited, LossDeclarations, Retransmissions};
pub use window::{FlowWindow, LinkWindow, WindowSummary};
pub use workload::{IncastSummary, WorkloadSummary};

mod application;
mod counts;
mod datagrams;
mod group;
mod kind;
mod live;
mod multipath;
mod name;
mod reordering;
mod sender;
mod window;
mod workload;

metrics! {
/// The summary of a run: one JSON object. Rates in bit/s, delays in ms, sizes in bytes, time in s.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
pub struct Summary<P> {
    /// Version of this format: 1.
    pub schema: u32,
    /// The scenario's title.
    pub title: String,
    /// The root seed, the same for all repetitions.
    pub seed: u64,
    /// Number of the repetition of its sweep point, from 0.
    pub run: u64,
    /// Number of the run in the scenario, from 0: the directory in `runs`, and N in `compare
    /// DIR:N`.
    pub index: u64,
    /// The seed of all random streams of this run, derived from `seed` and `run`: 16 hexadecimal
    /// digits.
    pub run_seed: String,
    /// `virtual`, `live` or `replay`.
    #[serde(deserialize_with = "name::one")]
    pub clock: Name,
    /// Simulated time.
    pub duration_s: f64,
    /// The sweep's axes with this run's values.
    pub params: P,
    /// Labels of values that are lists, tables or labelled; left out without any.
    #[serde(default, skip_serializing_if = "BTreeMap::is_empty")]
    pub labels: BTreeMap<String, String>,
    /// Wakeups handled.
    pub events: u64,
    /// Data packets sent, retransmissions included.
    pub packets: u64 => ("data packets", ""),
    /// The listed flows, in the order of the scenario.
    pub flows: Vec<FlowSummary>,
    /// The link directions in the order of the scenario.
    pub links: Vec<LinkSummary>,
    /// Jain's fairness index of the goodputs of all connections in both directions, or of flows of
    /// datagrams if there are no others; null if nothing was delivered.
    pub fairness_jain: Option<f64> => ("Jain's index", "Jain's fairness index", [3, 3]),
    /// Jain's index of the forward flows; null without any.
    pub fairness_jain_forward: Option<f64>,
    /// Jain's index of the reverse flows (`direction = "reverse"`); null without any.
    pub fairness_jain_reverse: Option<f64>,
    /// Flows by kind of traffic and direction; left out if all are of one kind.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub kinds: Vec<KindSummary>,
    /// Responsiveness in round trips per minute; left out without probes.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub responsiveness_rpm: Option<f64> => ("responsiveness RPM", "Responsiveness (RPM)"),
    /// The parts of responsiveness; left out without probes.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub responsiveness: Option<ResponsivenessSummary>,
    /// Parts of the run that were measured separately; left out without any.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub windows: Vec<WindowSummary>,
    /// Groups of flows with `results = "sum"`; left out without any.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub groups: Vec<GroupSummary>,
    /// Completion times of workloads, of all flows and of each size class; left out without any.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub workloads: Vec<WorkloadSummary>,
    /// True if the run was interrupted; left out otherwise.
    #[serde(default, skip_serializing_if = "std::ops::Not::not")]
    pub partial: bool,
    /// Punctuality of a run on the live clock; left out on another clock.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub live: Option<LiveSummary>,
    /// Programs that ran on hosts; left out without any.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub commands: Vec<CommandSummary>,
    /// Changes made during the run; left out without any.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub changes: Vec<ChangeSummary>,
}

/// A key that was set during the run. Keys with the same time were set together.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct ChangeSummary {
    /// Time in nanoseconds of the run.
    pub at_ns: u64,
    /// `KEY=VALUE`, as it was given.
    pub set: String,
}
}

impl<P> Summary<P> {
    /// The same summary with these parameters.
    pub fn with_params<Q>(self, params: Q) -> Summary<Q> {
        Summary {
            schema: self.schema,
            title: self.title,
            seed: self.seed,
            run: self.run,
            index: self.index,
            run_seed: self.run_seed,
            clock: self.clock,
            duration_s: self.duration_s,
            params,
            labels: self.labels,
            events: self.events,
            packets: self.packets,
            flows: self.flows,
            links: self.links,
            fairness_jain: self.fairness_jain,
            fairness_jain_forward: self.fairness_jain_forward,
            fairness_jain_reverse: self.fairness_jain_reverse,
            kinds: self.kinds,
            responsiveness_rpm: self.responsiveness_rpm,
            responsiveness: self.responsiveness,
            windows: self.windows,
            groups: self.groups,
            workloads: self.workloads,
            partial: self.partial,
            live: self.live,
            commands: self.commands,
            changes: self.changes,
        }
    }
}

impl<P> Summary<P> {
    /// A copy of everything but the flows of the whole run, and the parameters with their labels.
    pub fn without_flows(&self) -> Summary<()> {
        Summary {
            schema: self.schema,
            title: self.title.clone(),
            seed: self.seed,
            run: self.run,
            index: self.index,
            run_seed: self.run_seed.clone(),
            clock: self.clock,
            duration_s: self.duration_s,
            params: (),
            labels: BTreeMap::new(),
            events: self.events,
            packets: self.packets,
            flows: Vec::new(),
            links: self.links.clone(),
            fairness_jain: self.fairness_jain,
            fairness_jain_forward: self.fairness_jain_forward,
            fairness_jain_reverse: self.fairness_jain_reverse,
            kinds: self.kinds.clone(),
            responsiveness_rpm: self.responsiveness_rpm,
            responsiveness: self.responsiveness.clone(),
            windows: self.windows.clone(),
            groups: self.groups.clone(),
            workloads: self.workloads.clone(),
            partial: self.partial,
            live: self.live.clone(),
            commands: self.commands.clone(),
            changes: self.changes.clone(),
        }
    }
}

metrics! {
/// One flow.
///
/// A flow from a kernel is measured from the headers of its packets where they enter: packets,
/// retransmissions, round-trip times (of segments sent once), ACKs with the echo (where RFC 3168
/// was negotiated), acknowledged bytes. Its time runs from the first packet (`start_s`) until no
/// connection is open. `bytes` affects only `completed_s`; `stop` and `abort` have no effect. Its
/// internal state is unknown: controller, host and detector are `kernel`, `cwnd_bytes` is null, and
/// timeouts, recoveries, undos, `limited_s`, `ca_state_s` and the ground truth of retransmissions
/// and losses are 0. For a receiver that is a kernel, acknowledged data counts as delivered.
#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize)]
pub struct FlowSummary {
    /// Name of the flow and its number, `reno.0`.
    pub id: Arc<str>,
    /// `forward`, or `reverse` where the data goes against the path.
    #[serde(deserialize_with = "name::one")]
    pub direction: Name,
    /// The sender's congestion control.
    pub cc: Arc<str>,
    /// The sender's host profile.
    pub host: Arc<str>,
    /// The sender's loss detector.
    #[serde(deserialize_with = "name::one")]
    pub loss_detector: Name,
    /// New payload bytes at the receiver over the flow's time.
    pub goodput_bps: f64 => ("goodput", "Goodput"),
    /// IP bytes that arrive at the receiver, retransmissions and duplicates included, in windows of
    /// 2 s, one every 0.5 s.
    pub throughput_bps: MeanQuantiles => ("throughput", "Throughput"),
    /// New payload bytes at the receiver in the same windows, data beyond a gap included, except
    /// for receivers that do not report it (`smoltcp`, a kernel).
    #[serde(default)]
    pub goodput_windows_bps: MeanQuantiles,
    /// Round-trip times, one per ACK that measures one, not smoothed.
    pub rtt_ms: Distribution => ("RTT", "RTT"),
    /// The congestion window, sampled at each ACK.
    pub cwnd_bytes: Quantiles => ("cwnd", "Congestion window"),
    /// The counts of data packets.
    #[serde(flatten)]
    pub sent: SentPackets,
    /// Retransmissions of data that was not lost.
    pub spurious_retransmits: u64,
    /// The counts of recoveries.
    #[serde(flatten)]
    pub recoveries: Recoveries,
    /// The counts of reactions.
    #[serde(flatten)]
    pub reactions: Reactions,
    /// Packets that an end discarded for bit errors; left out without any.
    #[serde(default, skip_serializing_if = "is_zero")]
    pub checksum_errors: u64,
    /// The largest distance at which a segment arrived behind a later one, in segments.
    pub reordering_max: u64,
    /// The counts of payload.
    #[serde(flatten)]
    pub progress: Progress,
    /// Time at which the sender connected; null if it never did.
    pub start_s: Option<f64>,
    /// Time at which the last of `bytes` was delivered and acknowledged to the sender; null if it
    /// was not.
    pub completed_s: Option<f64>,
    /// Flow completion time: `completed_s` less `start_s`.
    pub fct_s: Option<f64> => ("FCT", "Flow completion time"),
    /// Time by the factor that limited the sender until it closed; zero for `smoltcp`. Over
    /// Multipath TCP the factor is the first of `pacing`, `rwnd`, `cwnd` and `app` that limits any
    /// subflow. It is also `app` while the send buffer is full of sent data.
    pub limited_s: Limited,
    /// Time of the sender in each congestion state; zero for hosts other than ackclock's.
    #[serde(default)]
    pub ca_state_s: CaStateSeconds,
    /// Ground truth of each retransmission of data.
    pub retransmissions: Retransmissions,
    /// Ground truth of each transmission that the sender declared lost.
    pub loss_declarations: LossDeclarations,
    /// Delay of loss declarations after the earliest moment at which the loss could be known: the
    /// arrival of the first ACK that the receiver sent after receiving a later packet of the flow.
    pub loss_declared_late_ms: Distribution,
    /// Time from that moment until a later transmission of the same data is acknowledged, in
    /// smoothed RTTs of that moment. 1 is an immediate retransmission.
    pub repair_rtts: Distribution,
    /// Displacement of packets with data (or a FIN) on arrival; over Multipath TCP, among the
    /// packets of their subflow.
    pub displacement: Displacement,
    /// Reordering by place, where it is measured (`record.reordering`); left out otherwise.
    #[serde(default, skip_serializing_if = "BTreeMap::is_empty")]
    pub reordering: BTreeMap<String, PacketReordering>,
    /// Measures of the application; left out for bulk transfers.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub application: Option<Box<ApplicationSummary>>,
    /// Further measures of a flow of datagrams; left out of other flows.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub datagrams: Option<Box<DatagramSummary>>,
    /// Further measures of a flow of several subflows; left out of other flows.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub multipath: Option<Box<MultipathSummary>>,
}

/// Displacement of packets (RFC 5236): place in the order of arrival less place in the order of
/// sending, with lost packets taken out. A retransmission is a packet of its own. Early packets
/// have negative values, late ones positive.
#[derive(Clone, Copy, Debug, Default, PartialEq, Serialize, Deserialize)]
pub struct Displacement {
    /// Share of packets that arrived before their places.
    pub early: f64,
    /// Share that arrived in their places.
    pub on_time: f64,
    /// Share that arrived behind their places.
    pub late: f64,
    /// The displacements, next to the shares in JSON.
    #[serde(flatten)]
    pub distribution: Distribution,
}
}

/// Returns true if a count that is left out when zero is zero.
fn is_zero(count: &u64) -> bool {
    *count == 0
}

metrics! {
/// A direction of a link.
#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize)]
pub struct LinkSummary {
    /// Name and direction: `bottleneck.forward`.
    pub id: String,
    /// The queue discipline at the start.
    #[serde(deserialize_with = "name::one")]
    pub queue: Name,
    /// The counts of packets.
    #[serde(flatten)]
    pub packets: LinkPackets,
    /// Packets corrupted on the wire, counting duplicates separately; left out without any.
    #[serde(default, skip_serializing_if = "is_zero")]
    pub corrupted: u64,
    /// The measures of its load.
    #[serde(flatten)]
    pub load: LinkLoad,
}

/// A probability over a time.
#[derive(Clone, Copy, Debug, Default, PartialEq, Serialize, Deserialize)]
pub struct ProbabilitySummary {
    /// The mean over that time.
    pub mean: f64,
    /// The value at the end.
    pub last: f64,
}
}

/// Jain's fairness index of some rates; `None` when all are 0.
pub fn jain(rates: impl Iterator<Item = f64>) -> Option<f64> {
    let (mut count, mut sum, mut squares) = (0u64, 0.0, 0.0);
    for rate in rates {
        (count, sum, squares) = (count + 1, sum + rate, squares + rate * rate);
    }
    (squares > 0.0).then(|| sum * sum / (count as f64 * squares))
}

/// Jain's index of goodputs, each with whether it is that of a connection: of the connections,
/// which compete with each other, or if there is none of the datagrams.
pub fn fairness(flows: impl Iterator<Item = (f64, bool)>) -> Option<f64> {
    let flows: Vec<(f64, bool)> = flows.collect();
    let any = flows.iter().any(|(_, is_connection)| *is_connection);
    jain(flows.into_iter().filter(|(_, is_connection)| *is_connection == any).map(|(goodput, _)| goodput))
}

metrics! {
/// Percentiles; null without samples.
#[derive(Clone, Copy, Debug, Default, PartialEq, Serialize, Deserialize)]
pub struct Quantiles {
    /// 5th percentile.
    pub p5: Option<f64> => ("p5", "5th percentile"),
    /// 25th percentile.
    pub p25: Option<f64> => ("p25", "25th percentile"),
    /// Median.
    pub p50: Option<f64> => ("p50", "median"),
    /// 75th percentile.
    pub p75: Option<f64> => ("p75", "75th percentile"),
    /// 95th percentile.
    pub p95: Option<f64> => ("p95", "95th percentile"),
}

/// Mean and percentiles; null without samples.
#[derive(Clone, Copy, Debug, Default, PartialEq, Serialize, Deserialize)]
pub struct MeanQuantiles {
    /// Mean.
    pub mean: Option<f64> => ("mean", "mean"),
    /// The percentiles, next to the mean in JSON.
    #[serde(flatten)]
    pub quantiles: Quantiles,
}

/// Extremes and percentiles; null without samples.
#[derive(Clone, Copy, Debug, Default, PartialEq, Serialize, Deserialize)]
pub struct Distribution {
    /// Smallest.
    pub min: Option<f64> => ("min", "minimum"),
    /// The percentiles, between the extremes in JSON.
    #[serde(flatten)]
    pub quantiles: Quantiles,
    /// Largest.
    pub max: Option<f64> => ("max", "maximum"),
    /// Number of samples.
    pub samples: u64,
}
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn jain_s_index_is_of_what_there_is() {
        // (1 + 3)^2 / (2 (1 + 9)).
        assert_eq!(jain([1.0, 3.0].into_iter()), Some(0.8));
        assert_eq!(jain([5.0, 0.0].into_iter()), Some(0.5));
        assert_eq!(jain([0.0, 0.0].into_iter()), None);
        assert_eq!(jain(std::iter::empty()), None);
    }
}
