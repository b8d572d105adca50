//! Metrics: paths into the summary of a run, with flows, links and commands addressed by id.
//!
//! The names are taken from the summary itself: every number in it is a metric, and there is no
//! second list.

use ackclock_aqm::DropReason;
use ackclock_sim::LOST_ON_LINK;
use ackclock_trace::{
    ApplicationSummary, CommandSummary, DatagramSummary, FlowSummary, FlowWindow, GroupSummary, IncastSummary,
    LinkLoad, LinkSummary, LinkWindow, LiveHost, LiveSummary, LoadSummary, MessagesSummary, MultipathSummary,
    NetperfSummary, PacketReordering, PagesSummary, ProbabilitySummary, ProbesSummary, RequestsSummary, RoundTrips,
    SubflowSummary, VideoSummary, VoiceSummary, WorkloadSummary,
};
use serde_json::Value;

use crate::report::{listed, nearest};

mod unknown;

use unknown::unknown;

/// The numbers of a run apart from those of flows and links.
const TOP: [&str; 15] = [
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
    fn top(self) -> &'static [&'static str] {
        match self {
            Part::Run => &TOP,
            Part::Window => &["packets", "fairness_jain", "fairness_jain_forward", "fairness_jain_reverse"],
        }
    }
}

/// The kind of subject of a metric.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum MetricSubject {
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
    fn prefix(self) -> &'static str {
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
    fn listed(part: Part) -> &'static [MetricSubject] {
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

/// A path such as `flows.reno.*.rtt_ms.p50`.
#[derive(Clone, Debug, PartialEq)]
pub(crate) struct Metric {
    part: Part,
    of: MetricSubject,
    /// An id in which `*` stands for any text.
    selector: String,
    field: String,
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
    fn ids(&self, of: MetricSubject) -> Box<dyn Iterator<Item = String> + '_> {
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

impl Metric {
    /// Reads a path; what it selects is checked against a run's [`Shape`] by [`Metric::matches`].
    pub(crate) fn parse(text: &str, part: Part, shape: &Shape) -> Result<Metric, UnknownMetric> {
        if part.top().contains(&text) {
            return Ok(Metric { part, of: MetricSubject::Run, selector: String::new(), field: text.to_owned() });
        }
        if part == Part::Run
            && let Some(field) = text.strip_prefix("live.")
            && fields(part, MetricSubject::Live).iter().any(|known| known == field)
        {
            return Ok(Metric { part, of: MetricSubject::Live, selector: String::new(), field: field.to_owned() });
        }
        for &of in MetricSubject::listed(part) {
            let Some(rest) = text.strip_prefix(of.prefix()).and_then(|rest| rest.strip_prefix('.')) else { continue };
            // A program's output has names of its own.
            if of == MetricSubject::Commands
                && let Some((selector, field)) = rest.split_once('.')
                && field.strip_prefix("json.").is_some_and(|path| path.split('.').all(|key| !key.is_empty()))
            {
                return Ok(Metric { part, of, selector: selector.to_owned(), field: field.to_owned() });
            }
            // So has what a stack reports.
            if of == MetricSubject::Hosts
                && let Some((selector, field)) = rest.split_once('.')
                && field.strip_prefix("results.").is_some_and(|name| !name.is_empty())
            {
                return Ok(Metric { part, of, selector: selector.to_owned(), field: field.to_owned() });
            }
            if of == MetricSubject::Flows
                && part == Part::Run
                && let Some((selector, field)) = rest.split_once(&format!(".{PLACES}"))
                && place_of(field).is_some()
            {
                let (selector, field) = (selector.to_owned(), format!("{PLACES}{field}"));
                return Ok(Metric { part, of, selector, field });
            }
            if of == MetricSubject::Flows
                && part == Part::Run
                && let Some((selector, field)) = rest.split_once(&format!(".{SUBFLOWS}"))
                && subflow_of(field).is_some()
            {
                let (selector, field) = (selector.to_owned(), format!("{SUBFLOWS}{field}"));
                return Ok(Metric { part, of, selector, field });
            }
            // Ids have dots too, so the field is found from the end: the longest, where one ends as
            // another one does.
            let found = fields(part, of).into_iter().filter_map(|field| {
                let selector = rest.strip_suffix(field.as_str())?.strip_suffix('.')?;
                Some(Metric { part, of, selector: selector.to_owned(), field })
            });
            if let Some(metric) = found.max_by_key(|metric| metric.field.len()) {
                return Ok(metric);
            }
        }
        Err(unknown(text, part, shape))
    }

    /// Returns `true` if the metric exists on the live clock alone.
    pub(crate) fn is_live(&self) -> bool {
        matches!(self.of, MetricSubject::Live | MetricSubject::Hosts | MetricSubject::Commands)
    }

    /// Number of flows, links or commands of a run that the metric selects; none is an error.
    pub(crate) fn matches(&self, text: &str, shape: &Shape) -> Result<usize, UnknownMetric> {
        let count = match self.of {
            MetricSubject::Run => return Ok(1),
            MetricSubject::Live => usize::from(!shape.hosts.is_empty()),
            of => shape.ids(of).filter(|id| glob(&self.selector, id)).count(),
        };
        if count == 0 {
            return Err(unknown(text, self.part, shape));
        }
        if let Some((place, _)) = self.field.strip_prefix(PLACES).and_then(place_of)
            && !shape.places.iter().any(|known| known == place)
        {
            let (expected, places) =
                ("a place in `record.reordering`", listed(shape.places.iter().map(String::as_str)));
            let expected = if places.is_empty() {
                format!("{expected}, which is not set")
            } else {
                format!("{expected}: {places}")
            };
            let near = nearest(place, shape.places.iter().map(String::as_str));
            return Err(UnknownMetric { expected, suggestion: near.map(|near| text.replacen(place, near, 1)) });
        }
        if let Some((number, field)) = self.field.strip_prefix(SUBFLOWS).and_then(subflow_of)
            && number >= shape.subflows
        {
            let expected = match shape.subflows {
                0 => "a flow over Multipath TCP".to_owned(),
                count => format!("`{SUBFLOWS}N.{field}` with a number of a subflow from 0 to {}", count - 1),
            };
            return Err(UnknownMetric { expected, suggestion: None });
        }
        let Some(wanted) = self.measured_as() else { return Ok(count) };
        let commands = shape.commands.iter().filter(|(id, _)| glob(&self.selector, id));
        match commands.filter(|(_, measured)| *measured == Some(wanted)).count() {
            0 => Err(UnknownMetric { expected: format!("a command with `measure = \"{wanted}\"`"), suggestion: None }),
            count => Ok(count),
        }
    }

    /// The reading of a command's output that the metric needs.
    fn measured_as(&self) -> Option<&'static str> {
        match self.field.split('.').next() {
            _ if self.of != MetricSubject::Commands => None,
            Some("json") => Some("json"),
            Some("rtt_ms") => Some("ping"),
            _ => None,
        }
    }

    /// The values in a summary; `None` for what has no samples.
    pub(crate) fn values(&self, summary: &Value) -> Vec<Option<f64>> {
        let list = match self.of {
            MetricSubject::Run => return vec![self.value(summary)],
            MetricSubject::Live => return vec![self.value(&summary["live"])],
            MetricSubject::Flows => &summary["flows"],
            MetricSubject::Groups => &summary["groups"],
            MetricSubject::Workloads => &summary["workloads"],
            MetricSubject::Links => &summary["links"],
            MetricSubject::Hosts => &summary["live"]["hosts"],
            MetricSubject::Commands => &summary["commands"],
        };
        let items = list.as_array().map_or(&[][..], Vec::as_slice);
        // One that is not read so is passed over, one that could not be is not.
        let key = self.measured_as().map(|kind| if kind == "json" { "json" } else { "rtt_ms" });
        let measured = |item: &&Value| {
            key.is_none_or(|key| self.selector == item["id"] || item.get(key).is_some() || !item["error"].is_null())
        };
        let selected = items.iter().filter(|item| item["id"].as_str().is_some_and(|id| glob(&self.selector, id)));
        selected.filter(measured).map(|item| self.value(item)).collect()
    }

    /// The number of what it selects: `rtt_ms.p50`.
    pub(crate) fn field(&self) -> &str {
        &self.field
    }

    /// The list of the summary that it is about.
    pub(crate) fn prefix(&self) -> &'static str {
        self.of.prefix()
    }

    /// The ids of a run that it selects; none of what has no id.
    pub(crate) fn selected(&self, shape: &Shape) -> Vec<String> {
        shape.ids(self.of).filter(|id| glob(&self.selector, id)).collect()
    }

    /// This metric of one id.
    pub(crate) fn of_one(&self, id: &str) -> Metric {
        Metric { selector: id.to_owned(), ..self.clone() }
    }

    /// Returns `true` if the metric is about flows, over the whole run.
    pub(crate) fn is_of_flows(&self) -> bool {
        self.of == MetricSubject::Flows && self.part == Part::Run
    }

    /// Returns `true` if the metric is about the subject with this id.
    pub(crate) fn selects(&self, id: &str) -> bool {
        glob(&self.selector, id)
    }

    /// The value of one item that it is about.
    pub(crate) fn value(&self, item: &Value) -> Option<f64> {
        if self.of == MetricSubject::Links
            && let Some(reason) = self.field.strip_prefix("dropped.")
        {
            // A reason that did not occur is left out of the summary.
            return Some(item["dropped"].get(reason).and_then(Value::as_f64).unwrap_or(0.0));
        }
        if let Some((place, field)) = self.field.strip_prefix(PLACES).and_then(place_of) {
            return field.split('.').try_fold(&item["reordering"][place], step)?.as_f64();
        }
        self.field.split('.').try_fold(item, step)?.as_f64()
    }
}

/// The prefix of a place where reordering is measured, and the stand-in for any place in lists.
const PLACES: &str = "reordering.";
const PLACE: &str = "PLACE";

/// The prefix of the number of a subflow.
const SUBFLOWS: &str = "multipath.subflows.";

/// The number of a subflow in what follows [`SUBFLOWS`], and the metric.
fn subflow_of(field: &str) -> Option<(usize, &str)> {
    let (number, field) = field.split_once('.')?;
    let mut fields = Vec::new();
    numbers(&serde_json::to_value(SubflowSummary::default()).ok()?, "", &mut fields);
    fields.iter().any(|known| known == field).then_some((number.parse().ok()?, field))
}

/// The place in what follows [`PLACES`], and the metric. Places have dots as well.
fn place_of(field: &str) -> Option<(&str, &str)> {
    let mut fields = Vec::new();
    numbers(&serde_json::to_value(PacketReordering::default()).ok()?, "", &mut fields);
    let found = fields.iter().filter(|known| {
        field.strip_suffix(known.as_str()).is_some_and(|place| place.len() > 1 && place.ends_with('.'))
    });
    let (place, field) = field.split_at(field.len() - found.map(String::len).max()?);
    Some((place.trim_end_matches('.'), field))
}

/// A value in another one, by its key or, in an array, by its number.
fn step<'v>(value: &'v Value, key: &str) -> Option<&'v Value> {
    match value {
        Value::Array(items) => items.get(key.parse::<usize>().ok()?),
        value => value.get(key),
    }
}

/// The numbers of a flow, a link direction and so on, as dotted paths.
fn fields(part: Part, of: MetricSubject) -> Vec<String> {
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

fn numbers(value: &Value, path: &str, fields: &mut Vec<String>) {
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

/// Every metric of a whole run, by what it is measured on.
pub(crate) fn all() -> Vec<(&'static str, Vec<String>)> {
    let of = |of: MetricSubject| {
        let id = if of == MetricSubject::Live { "" } else { ".ID" };
        (of.prefix(), fields(Part::Run, of).iter().map(|field| format!("{}{id}.{field}", of.prefix())).collect())
    };
    let run = ("run", Part::Run.top().iter().map(|&name| name.to_owned()).collect());
    let listed = MetricSubject::listed(Part::Run).iter().copied().chain([MetricSubject::Live]).map(of);
    std::iter::once(run).chain(listed).collect()
}

/// Returns `true` if a text matches a pattern in which `*` stands for any text.
fn glob(pattern: &str, text: &str) -> bool {
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

#[cfg(test)]
mod tests;
