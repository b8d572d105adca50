//! The parts of a summary that have metrics, and the fields that each has.

use ackclock_aqm::DropReason;
use ackclock_sim::LOST_ON_LINK;
use ackclock_trace::{
    ApplicationSummary, CommandSummary, DatagramSummary, FlowSummary, FlowWindow, GroupSummary, IncastSummary,
    LinkLoad, LinkSummary, LinkWindow, LiveHost, LiveSummary, LoadSummary, MessagesSummary, MultipathSummary,
    NetperfSummary, PacketReordering, PagesSummary, ProbabilitySummary, ProbesSummary, RequestsSummary, RoundTrips,
    SubflowSummary, VideoSummary, VoiceSummary, WorkloadSummary,
};
use serde_json::Value;

/// The numbers of a run apart from those of flows and links.
pub(super) const TOP: [&str; 15] = [
    "duration_s",
    "events",
    "packets",
    "fairness_jain",
    "fairness_jain_forward",
    "fairness_jain_reverse",
    "responsiveness_rpm",
    "responsiveness.foreign_rpm",
    "responsiveness.loaded_rpm",
    "responsiveness.tcp_ms",
    "responsiveness.tls_ms",
    "responsiveness.http_ms",
    "responsiveness.loaded_ms",
    "responsiveness.foreign_probes",
    "responsiveness.self_probes",
];

/// The part of a run that is measured.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Part {
    /// All of it.
    Run,
    /// A window.
    Window,
}

impl Part {
    /// The numbers apart from those of flows and links.
    pub(super) fn top(self) -> &'static [&'static str] {
        match self {
            Part::Run => &TOP,
            Part::Window => &["packets", "fairness_jain", "fairness_jain_forward", "fairness_jain_reverse"],
        }
    }
}

/// The kind of subject of a metric.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum MetricSubject {
    Run,
    Flows,
    /// Groups of flows that are not listed.
    Groups,
    /// Workloads and their size classes.
    Workloads,
    Links,
    /// The punctuality of the live clock.
    Live,
    /// Hosts behind devices.
    Hosts,
    Commands,
}

impl MetricSubject {
    /// The prefix of an id.
    pub(super) fn prefix(self) -> &'static str {
        match self {
            MetricSubject::Run => "",
            MetricSubject::Flows => "flows",
            MetricSubject::Groups => "groups",
            MetricSubject::Workloads => "workloads",
            MetricSubject::Links => "links",
            MetricSubject::Live => "live",
            MetricSubject::Hosts => "live.hosts",
            MetricSubject::Commands => "commands",
        }
    }

    /// The kinds with ids, in a part of a run.
    pub(super) fn listed(part: Part) -> &'static [MetricSubject] {
        match part {
            Part::Run => &[
                MetricSubject::Flows,
                MetricSubject::Groups,
                MetricSubject::Workloads,
                MetricSubject::Links,
                MetricSubject::Hosts,
                MetricSubject::Commands,
            ],
            Part::Window => &[MetricSubject::Flows, MetricSubject::Links],
        }
    }
}

/// The measurable parts of a run.
#[derive(Clone, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub(crate) struct Shape {
    /// Ids of the groups of flows, with how many they are.
    pub(crate) flows: Vec<(String, u64)>,
    /// Ids of those that are listed as groups.
    pub(crate) groups: Vec<String>,
    /// Ids of the workloads and their size classes.
    pub(crate) workloads: Vec<String>,
    /// Most subflows of a flow; 0 if none is over Multipath TCP.
    pub(crate) subflows: usize,
    /// Names of the links.
    pub(crate) links: Vec<String>,
    /// Where reordering is measured.
    pub(crate) places: Vec<String>,
    /// Names of the hosts behind devices.
    pub(crate) hosts: Vec<String>,
    /// Names of the commands, with what is read out of their output: `json` or `ping`.
    pub(crate) commands: Vec<(String, Option<&'static str>)>,
}

impl Shape {
    pub(super) fn ids(&self, of: MetricSubject) -> Box<dyn Iterator<Item = String> + '_> {
        match of {
            MetricSubject::Run | MetricSubject::Live => Box::new(std::iter::empty()),
            MetricSubject::Hosts => Box::new(self.hosts.iter().cloned()),
            MetricSubject::Groups => Box::new(self.groups.iter().cloned()),
            MetricSubject::Workloads => Box::new(self.workloads.iter().cloned()),
            MetricSubject::Commands => Box::new(self.commands.iter().map(|(id, _)| id.clone())),
            MetricSubject::Flows => Box::new(
                self.flows.iter().flat_map(|(id, count)| (0..*count).map(move |number| format!("{id}.{number}"))),
            ),
            MetricSubject::Links => {
                Box::new(self.links.iter().flat_map(|name| ["forward", "reverse"].map(|way| format!("{name}.{way}"))))
            }
        }
    }
}

/// Why a metric cannot be measured.
#[derive(Clone, Debug)]
pub(crate) struct UnknownMetric {
    pub(crate) expected: String,
    pub(crate) suggestion: Option<String>,
}

/// The prefix of a place where reordering is measured, and the stand-in for any place in lists.
pub(super) const PLACES: &str = "reordering.";

pub(super) const PLACE: &str = "PLACE";

/// The prefix of the number of a subflow.
pub(super) const SUBFLOWS: &str = "multipath.subflows.";

/// The numbers of a flow, a link direction and so on, as dotted paths.
pub(super) fn fields(part: Part, of: MetricSubject) -> Vec<String> {
    let load = LinkLoad { probability: Some(ProbabilitySummary::default()), ..LinkLoad::default() };
    let template = match (of, part) {
        (MetricSubject::Run, _) => return Vec::new(),
        (MetricSubject::Flows, Part::Run) => {
            let application = ApplicationSummary {
                messages: Some(MessagesSummary::default()),
                requests: Some(RequestsSummary::default()),
                video: Some(VideoSummary::default()),
                pages: Some(PagesSummary::default()),
                netperf: Some(NetperfSummary::default()),
                probes: Some(ProbesSummary::default()),
                load: Some(LoadSummary::default()),
                ..ApplicationSummary::default()
            };
            let datagrams = DatagramSummary { voice: Some(VoiceSummary::default()), ..DatagramSummary::default() };
            serde_json::to_value(FlowSummary {
                application: Some(application.into()),
                datagrams: Some(datagrams.into()),
                multipath: Some(
                    MultipathSummary { subflows: vec![SubflowSummary::default()], ..Default::default() }.into(),
                ),
                reordering: [(PLACE.to_owned(), PacketReordering::default())].into(),
                ..FlowSummary::default()
            })
        }
        (MetricSubject::Flows, Part::Window) => serde_json::to_value(FlowWindow::default()),
        (MetricSubject::Groups, Part::Run) => serde_json::to_value(GroupSummary::default()),
        (MetricSubject::Links, Part::Run) => serde_json::to_value(LinkSummary { load, ..LinkSummary::default() }),
        (MetricSubject::Links, Part::Window) => serde_json::to_value(LinkWindow { load, ..LinkWindow::default() }),
        (MetricSubject::Workloads, Part::Run) => serde_json::to_value(WorkloadSummary {
            requests: Some(IncastSummary::default()),
            ..WorkloadSummary::default()
        }),
        (
            MetricSubject::Groups
            | MetricSubject::Workloads
            | MetricSubject::Live
            | MetricSubject::Hosts
            | MetricSubject::Commands,
            Part::Window,
        ) => return Vec::new(),
        (MetricSubject::Live, Part::Run) => {
            serde_json::to_value(LiveSummary { compared_packets: Some(0), ..LiveSummary::default() })
        }
        (MetricSubject::Hosts, Part::Run) => serde_json::to_value(LiveHost::default()),
        // A field that is null counts as a number without samples.
        (MetricSubject::Commands, Part::Run) => serde_json::to_value(CommandSummary {
            error: Some(String::new()),
            rtt_ms: Some(RoundTrips::default()),
            ..CommandSummary::default()
        }),
    };
    let mut fields = Vec::new();
    numbers(&template.unwrap_or_default(), "", &mut fields);
    if of == MetricSubject::Links {
        fields.extend(DropReason::ALL.map(|reason| format!("dropped.{}", reason.name())));
        fields.push(format!("dropped.{LOST_ON_LINK}"));
    }
    fields
}

pub(super) fn numbers(value: &Value, path: &str, fields: &mut Vec<String>) {
    match value {
        // A field without samples is null.
        Value::Number(_) | Value::Null => fields.push(path.to_owned()),
        Value::Object(object) => {
            for (key, value) in object {
                let path = if path.is_empty() { key.clone() } else { format!("{path}.{key}") };
                numbers(value, &path, fields);
            }
        }
        // One stands for all.
        Value::Array(items) => items.iter().for_each(|item| numbers(item, &format!("{path}.N"), fields)),
        _ => {}
    }
}

/// Returns `true` if a text matches a pattern in which `*` stands for any text.
pub(super) fn glob(pattern: &str, text: &str) -> bool {
    let mut parts = pattern.split('*');
    let Some(mut rest) = parts.next().and_then(|first| text.strip_prefix(first)) else { return false };
    let mut parts: Vec<&str> = parts.collect();
    let Some(last) = parts.pop() else { return rest.is_empty() };
    for part in parts {
        match rest.find(part) {
            Some(at) => rest = &rest[at + part.len()..],
            None => return false,
        }
    }
    rest.ends_with(last)
}
