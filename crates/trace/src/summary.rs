//! The summary of a run. Its JSON keys are a contract: keys are added, never renamed.

use std::collections::BTreeMap;

use serde::{Deserialize, Serialize};

use crate::metrics::metrics;

pub use application::{
    ApplicationSummary, LoadSummary, MessagesSummary, NetperfSummary, PagesSummary, ProbesSummary, RequestsSummary,
    ResponsivenessSummary, VideoSummary,
};
pub use counts::{LinkLoad, LinkPackets, Progress, Reactions, Recoveries, SentPackets};
pub use datagrams::{DatagramSummary, LossBursts, Reordering, VoiceSummary};
pub use distribution::{Distribution, MeanQuantiles, ProbabilitySummary, Quantiles};
pub use fairness::{fairness, jain};
pub use flow::{Displacement, FlowSummary};
pub use group::{GroupSummary, Spread};
pub use kind::{KindSummary, kinds};
pub use link::LinkSummary;
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
mod distribution;
mod fairness;
mod flow;
mod group;
mod kind;
mod link;
mod live;
mod multipath;
mod name;
mod reordering;
mod sender;
mod window;
mod workload;

metrics! {
/// The summary of a run: one JSON object. Rates in bit/s, delays in ms, sizes in bytes, time in s.
#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize)]
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
