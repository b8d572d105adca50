//! `[record]`: what is recorded during a run, for `--out`.

use ackclock_sim::spec::{Clock, HostSpec, LinkSpec, NodeSpec, OwnStackConfig, ReorderTap, ReorderingSpec};
use ackclock_sim::{CapturePoint, DirectionId, FlowId, QlogPoint, SeriesConfig};
use ackclock_units::Span;

use crate::document::{Node, Value};
use crate::fields::Fields;
use crate::flow::Group;
use crate::quantity::{Bytes, Flag, OrOff, Problem, Time};
use crate::report::{Diagnostic, listed, nearest};

const EXPECTED: &str =
    "`true` for all link directions, `false` for none, or an array of some, such as [\"bottleneck.forward\"]";

/// TEACUP's: its throughput is that of windows of 2 s.
const SLIDING: Span = Span::from_secs(2);

/// The most intervals in a run: each is a row per flow and link direction.
const MAX_INTERVALS: u64 = 1_000_000;

/// The most intervals in a sliding window: each takes memory per flow and link direction.
const MAX_IN_WINDOW: u64 = 10_000;

/// Headers are whole in captures: 20 bytes of IPv4, and up to 60 of TCP.
const SNAPLEN: u64 = 96;
const MIN_SNAPLEN: u64 = 20;
const MAX_SNAPLEN: u64 = 65_535;

/// The most captures of a run: each is an open file.
const MAX_CAPTURES: usize = 200;

/// The most logs of loss recovery, likewise.
const MAX_QLOGS: usize = 200;

/// The receivers of all flows as a place where reordering is measured.
const RECEIVER: &str = "receiver";

/// Receivers by the order of TCP's sequence numbers.
const SEQUENCE: &str = "sequence";

/// Receivers by the first arrival of each segment.
const FIRST_ARRIVAL: &str = "first_arrival";

/// The length of the intervals in which it is recorded.
const REORDERING_EVERY: Span = Span::from_secs(1);

/// The most flows times places at which reordering is measured: each takes up to 300 kB.
const MAX_METERS: u64 = 10_000;

/// Most ids that an error lists.
const MAX_LISTED: usize = 10;

/// Bytes of a row of the series. These and those of packets are means of scenarios of the gallery.
const BYTES_OF_A_ROW: f64 = 125.0;

/// The recording of a run.
#[derive(Clone, Debug, Default, PartialEq)]
pub(crate) struct RecordSpec {
    /// The link directions whose queues are, in order.
    pub(crate) queues: Vec<DirectionId>,
    /// `true` if ACKs, retransmissions and losses of flows are recorded.
    pub(crate) tcp: bool,
    /// The senders whose loss recovery is recorded, with the names of the files.
    pub(crate) qlogs: Vec<Qlog>,
    /// `true` if every segment of the hosts is recorded.
    pub(crate) siftr: bool,
    /// `true` if the measurements of enhanced round-trip times are recorded.
    pub(crate) ertt: bool,
    /// `true` if every flow of a workload is recorded.
    pub(crate) flows: bool,
    /// The intervals of the time series, if there is to be one.
    pub(crate) series: Option<SeriesConfig>,
    /// Where packets are captured, with the names of the files and of their interfaces.
    pub(crate) captures: Vec<Capture>,
    pub(crate) snaplen: u32,
    /// Where reordering is measured.
    pub(crate) reordering: Option<ReorderingSpec>,
    /// `true` if the displacement of each packet is recorded.
    pub(crate) displacement: bool,
}

/// A capture of a run.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Capture {
    /// Where.
    pub point: CapturePoint,
    /// Its file, without an extension: `bottleneck.forward`, `reno.0.sender`.
    pub name: String,
}

/// A log of the loss recovery of a run's sender.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Qlog {
    /// Whose.
    pub point: QlogPoint,
    /// Its file, without an extension: `reno.0`, or the name of a host.
    pub name: String,
}

impl RecordSpec {
    /// The bytes of the rows that each flow and link direction has in the series.
    pub(crate) fn rows(&self, duration: Span) -> f64 {
        let intervals = |series: &SeriesConfig| duration.as_secs_f64() / series.every.as_secs_f64();
        self.series.as_ref().map_or(0.0, intervals) * BYTES_OF_A_ROW
    }

    /// The bytes of all records of one data packet and its ACK.
    pub(crate) fn bytes_of_a_packet(&self) -> f64 {
        let flags = [
            (self.tcp, 64.0),
            (!self.qlogs.is_empty(), 72.0),
            (self.siftr, 416.0),
            (self.ertt, 64.0),
            (self.displacement, 64.0),
        ];
        let flags = flags.iter().filter(|(is_on, _)| *is_on).map(|(_, bytes)| bytes).sum::<f64>();
        // Half of the directions have data, and the others ACKs.
        let capture = 16.0 + f64::from(self.snaplen);
        flags + 160.0 * self.queues.len() as f64 + capture * self.captures.len() as f64
    }

    /// The names of the places at which reordering is measured.
    pub(crate) fn places(&self, links: &[LinkSpec]) -> Vec<String> {
        let name = |tap: &ReorderTap| match *tap {
            ReorderTap::Receiver => RECEIVER.to_owned(),
            ReorderTap::Sequence => SEQUENCE.to_owned(),
            ReorderTap::FirstArrival => FIRST_ARRIVAL.to_owned(),
            ReorderTap::Direction(direction) => {
                let of = DirectionId::all(links.len()).zip(ids(links));
                of.filter(|(known, _)| *known == direction).map(|(_, id)| id).collect()
            }
        };
        self.reordering.iter().flat_map(|reordering| &reordering.taps).map(name).collect()
    }
}

/// Reads `[record]`.
pub(crate) fn read(
    root: &mut Fields<'_>,
    links: &[LinkSpec],
    groups: &[Group],
    nodes: &[NodeSpec],
    duration: Span,
    clock: Option<&Clock>,
) -> RecordSpec {
    let outside = clock.is_some();
    let expected = "a section `[record]` with `series`, `queue`, `pcap`, `tcp`, `qlog`, `siftr`, `ertt`, `flows`, \
                    `reordering` or `displacement`";
    let mut fields = root.section(("record", "files written with `--out`"), expected);
    let queues = queues(&mut fields, links);
    let tcp = fields.or(("tcp", "every ACK, loss and retransmission"), false, Flag);
    let qlogs = qlogs(&mut fields, groups, nodes);
    let siftr = fields.or(("siftr", "every segment, in the format of FreeBSD's SIFTR"), false, Flag);
    let ertt = fields.or(("ertt", "every enhanced round-trip time (FreeBSD's khelp ERTT)"), false, Flag);
    let flows = fields.or(("flows", "every flow of workloads"), false, Flag);
    let series = series(&mut fields, duration, outside);
    let captures = captures(&mut fields, links, groups, clock);
    let snaplen =
        fields.or(("pcap_snaplen", "captured bytes per packet"), SNAPLEN, Bytes(MIN_SNAPLEN, MAX_SNAPLEN)) as u32;
    let displacement =
        fields.or(("displacement", "how far each packet arrives from its place by sequence numbers"), false, Flag);
    let reordering = reordering(&mut fields, links, groups, duration, outside, displacement);
    fields.finish();
    RecordSpec { queues, tcp, qlogs, siftr, ertt, flows, series, captures, snaplen, reordering, displacement }
}

/// The senders whose loss recovery is recorded.
fn qlogs(fields: &mut Fields<'_>, groups: &[Group], nodes: &[NodeSpec]) -> Vec<Qlog> {
    let wanted = fields.or(("qlog", "loss recovery and congestion control of each sender, as qlog"), false, Flag);
    let Some(entry) = fields.get("qlog").filter(|_| wanted) else { return Vec::new() };
    let flows = listed_groups(groups).flat_map(|group| (0..group.count()).map(move |number| (group, number))).zip(0..);
    let flows = flows.filter(|((group, _), _)| matches!(group.alike.sender, HostSpec::Endpoint(_)));
    let flows = flows.take(MAX_QLOGS + 1).map(|((group, number), flow)| Qlog {
        point: QlogPoint::Flow(FlowId::new(flow)),
        name: format!("{}.{number}", group.id),
    });
    let hosts =
        nodes.iter().enumerate().filter(|(_, node)| node.stack.as_ref().is_some_and(OwnStackConfig::is_observable));
    let hosts = hosts.map(|(node, of)| Qlog { point: QlogPoint::Host(node), name: of.name.clone() });
    let qlogs: Vec<Qlog> = flows.chain(hosts).collect();
    let problem = match qlogs.len() {
        0 => Problem::new(
            "there is no sender whose loss recovery can be recorded",
            "a flow of `[[flows]]` that an endpoint of ackclock sends, or a host with a stack of QUIC that sends",
        ),
        1..=MAX_QLOGS => return qlogs,
        _ => Problem::new("too many senders have a log", format!("at most {MAX_QLOGS} files, one for each sender")),
    };
    fields.reject("qlog", &entry.node, problem);
    Vec::new()
}

/// The places at which packets are captured.
fn captures(fields: &mut Fields<'_>, links: &[LinkSpec], groups: &[Group], clock: Option<&Clock>) -> Vec<Capture> {
    let expected = "an array of link directions and flows, such as [\"bottleneck.forward\", \"reno.0\"], or `false`";
    let Some(entry) = fields.get(("pcap", "captured link directions, flows and ends")) else {
        fields.fill("pcap", false);
        return Vec::new();
    };
    let items = match &entry.node.value {
        Value::Boolean(false) => return Vec::new(),
        Value::Array(items) => items,
        _ => {
            fields.reject("pcap", &entry.node, Problem::new("not the right type", expected));
            return Vec::new();
        }
    };
    if matches!(clock, Some(Clock::Real | Clock::Replay(_))) && !items.is_empty() {
        let problem = Problem::new(
            "only flows between hosts of the simulator are captured",
            "none off the virtual clock; --record FILE captures a live run",
        );
        fields.reject("pcap", &entry.node, problem);
        return Vec::new();
    }
    let mut captures: Vec<Capture> = Vec::new();
    for item in items {
        let found = item.str().map(|name| points(name, links, groups)).unwrap_or_default();
        if found.is_empty() {
            fields.reject("pcap", item, unknown_point(item, links, groups));
        }
        if let Some(title) = clock.and_then(|_| found.iter().find_map(|capture| not_with_stacks(capture, groups))) {
            let problem = Problem::new(title, "flows over a `path`; --record FILE captures all hosts with a stack");
            fields.reject("pcap", item, problem);
        }
        let is_new = |capture: &Capture| !captures.iter().any(|other| other.point == capture.point);
        let new: Vec<Capture> = found.into_iter().filter(is_new).collect();
        captures.extend(new);
    }
    if captures.len() > MAX_CAPTURES {
        let title = format!("{} captures are too many", captures.len());
        let problem = Problem::new(title, format!("at most {MAX_CAPTURES} files; a flow has two"));
        fields.reject("pcap", &entry.node, problem);
        captures.clear();
    }
    captures
}

/// Why a place is not captured where hosts have stacks, if it is not.
fn not_with_stacks(capture: &Capture, groups: &[Group]) -> Option<&'static str> {
    let CapturePoint::Host(host) = capture.point else {
        return Some("a link that hosts with a stack use is not captured");
    };
    let listed = listed_groups(groups).flat_map(|group| (0..group.count()).map(move |_| group));
    let group = listed.into_iter().nth(host.flow().index())?;
    let is_between_hosts = group.ends.is_some() && group.carriage.is_none();
    is_between_hosts.then_some("a flow between hosts of the file is not captured")
}

/// The captures of this name: a link direction, a flow, or all flows of a group.
fn points(name: &str, links: &[LinkSpec], groups: &[Group]) -> Vec<Capture> {
    if let Some(direction) = direction(name, links) {
        return vec![Capture { point: CapturePoint::Direction(direction), name: name.to_owned() }];
    }
    let matches = |id: &str| id == name || id.rsplit_once('.').is_some_and(|(group, _)| group == name);
    let found = ids_of(groups).zip(0..).filter(|(id, _)| matches(id)).take(MAX_CAPTURES + 1);
    found
        .flat_map(|(id, number)| {
            let flow = FlowId::new(number);
            [(flow.sender(), "sender"), (flow.receiver(), "receiver")]
                .map(|(host, end)| Capture { point: CapturePoint::Host(host), name: format!("{id}.{end}") })
        })
        .collect()
}

fn listed_groups(groups: &[Group]) -> impl Iterator<Item = &Group> {
    groups.iter().filter(|group| !group.arrivals.sums)
}

/// The listed flows in the order of their numbers.
fn ids_of(groups: &[Group]) -> impl Iterator<Item = String> {
    listed_groups(groups).flat_map(|group| (0..group.count()).map(|number| format!("{}.{number}", group.id)))
}

fn unknown_point(item: &Node, links: &[LinkSpec], groups: &[Group]) -> Problem {
    let known: Vec<String> = ids(links).chain(ids_of(groups).take(1000)).collect();
    let more = if known.len() > MAX_LISTED { " and others" } else { "" };
    let listed = listed(known.iter().take(MAX_LISTED).map(String::as_str));
    let mut problem =
        Problem::new("there is no such link direction or flow", format!("link directions or flows: {listed}{more}"));
    let near = item.str().and_then(|name| nearest(name, known.iter().map(String::as_str)));
    problem.help = near.map(|near| format!("did you mean `{near}`?"));
    problem
}

/// The intervals of the time series, and the windows over them.
fn series(fields: &mut Fields<'_>, duration: Span, outside: bool) -> Option<SeriesConfig> {
    let every = fields.or(("series", "interval of time series of flows and links"), None, OrOff(Time::Positive));
    let window = fields.or(("series_window", "sliding window of the series, and its step"), SLIDING, Time::Positive);
    let every = every?;
    let intervals = |length: Span| length.as_nanos().div_ceil(every.as_nanos());
    for (key, of, length, most) in
        [("series", "run", duration, MAX_INTERVALS), ("series_window", "sliding window", window, MAX_IN_WINDOW)]
    {
        // Where hosts are outside, a run ends with its commands or its capture.
        let is_bounded = key == "series" && outside;
        if !is_bounded && intervals(length) > most {
            let title = format!("record.{key}: {} intervals in the {of}", intervals(length));
            let place = fields.peek(key).or(fields.peek("series")).map_or(fields.place(), |node| &node.place);
            fields.push(Diagnostic::new(title, place, format!("at most {most}")));
            return None;
        }
    }
    Some(SeriesConfig { every, window })
}

/// The places at which reordering is measured.
fn reordering(
    fields: &mut Fields<'_>,
    links: &[LinkSpec],
    groups: &[Group],
    duration: Span,
    outside: bool,
    displacement: bool,
) -> Option<ReorderingSpec> {
    let expected = "an array of `receiver`, `sequence`, `first_arrival` and link directions, such as \
                    [\"receiver\", \"bottleneck.forward\"], or `false`";
    let entry = fields.get((
        "reordering",
        "places where reordering is measured: link directions, and receivers (in the order of sending, of \
         sequence numbers, or of first arrivals)",
    ));
    if entry.is_none() {
        fields.fill("reordering", false);
    }
    let every =
        fields.or(("reordering_every", "length of the intervals of reordering.csv"), REORDERING_EVERY, Time::Positive);
    let named = match entry.map(|entry| (&entry.node, &entry.node.value)) {
        None | Some((_, Value::Boolean(false))) => Vec::new(),
        Some((_, Value::Array(items))) => taps(fields, items, links),
        Some((node, _)) => {
            fields.reject("reordering", node, Problem::new("not the right type", expected));
            return None;
        }
    };
    // Each displacement is recorded where all are measured.
    let implied = (displacement && !named.contains(&ReorderTap::Sequence)).then_some(ReorderTap::Sequence);
    let key = if named.is_empty() { "displacement" } else { "reordering" };
    let taps: Vec<ReorderTap> = named.into_iter().chain(implied).collect();
    if taps.is_empty() {
        return None;
    }
    let flows = listed_groups(groups).fold(0u64, |sum, group| sum.saturating_add(group.count()));
    let problem = if outside {
        Problem::new("is measured on the virtual clock alone", "`false` where hosts are outside")
    } else if flows.saturating_mul(taps.len() as u64) > MAX_METERS {
        let title = format!("{flows} flows at {} places are too many", taps.len());
        Problem::new(title, format!("at most {MAX_METERS} flows times places: each takes memory"))
    } else if duration.as_nanos().div_ceil(every.as_nanos()) > MAX_INTERVALS {
        let title = format!("{} intervals in the run", duration.as_nanos().div_ceil(every.as_nanos()));
        Problem::new(title, format!("`reordering_every` of at most {MAX_INTERVALS} intervals"))
    } else {
        return Some(ReorderingSpec { taps, every });
    };
    if let Some(entry) = fields.get(key) {
        fields.reject(key, &entry.node, problem);
    }
    None
}

/// The places of these names, each once.
fn taps(fields: &mut Fields<'_>, items: &[Node], links: &[LinkSpec]) -> Vec<ReorderTap> {
    let mut taps = Vec::new();
    for item in items {
        let tap = match item.str() {
            Some(RECEIVER) => Some(ReorderTap::Receiver),
            Some(SEQUENCE) => Some(ReorderTap::Sequence),
            Some(FIRST_ARRIVAL) => Some(ReorderTap::FirstArrival),
            name => name.and_then(|name| direction(name, links)).map(ReorderTap::Direction),
        };
        match tap {
            Some(tap) if !taps.contains(&tap) => taps.push(tap),
            Some(_) => {}
            None => {
                let Problem { expected, help, .. } = unknown(item, links);
                let places = format!("`{RECEIVER}`, `{SEQUENCE}`, `{FIRST_ARRIVAL}`, or {expected}");
                let mut problem = Problem::new("there is no such place", places);
                let near = item.str().and_then(|name| nearest(name, [RECEIVER, SEQUENCE, FIRST_ARRIVAL]));
                problem.help = near.map(|near| format!("did you mean `{near}`?")).or(help);
                fields.reject("reordering", item, problem);
            }
        }
    }
    taps
}

fn queues(fields: &mut Fields<'_>, links: &[LinkSpec]) -> Vec<DirectionId> {
    let Some(entry) = fields.get(("queue", "queues whose decisions are recorded")) else {
        fields.fill("queue", false);
        return Vec::new();
    };
    let items = match &entry.node.value {
        Value::Boolean(all) => return if *all { DirectionId::all(links.len()).collect() } else { Vec::new() },
        Value::Array(items) => items,
        Value::String(id) => {
            let mut problem = Problem::new("not the right type", EXPECTED);
            problem.help = Some(format!("in an array: [\"{id}\"]")).filter(|_| direction(id, links).is_some());
            fields.reject("queue", &entry.node, problem);
            return Vec::new();
        }
        _ => {
            fields.reject("queue", &entry.node, Problem::new("not the right type", EXPECTED));
            return Vec::new();
        }
    };
    let found = items.iter().filter_map(|item| {
        item.str().and_then(|id| direction(id, links)).or_else(|| {
            fields.reject("queue", item, unknown(item, links));
            None
        })
    });
    let mut directions: Vec<DirectionId> = found.collect();
    directions.sort_unstable();
    directions.dedup();
    directions
}

/// The link direction of this name.
fn direction(id: &str, links: &[LinkSpec]) -> Option<DirectionId> {
    DirectionId::all(links.len()).zip(ids(links)).find_map(|(direction, known)| (known == id).then_some(direction))
}

/// The link directions in the order of their numbers.
fn ids(links: &[LinkSpec]) -> impl Iterator<Item = String> {
    links.iter().flat_map(|link| ["forward", "reverse"].map(|way| format!("{}.{way}", link.name)))
}

fn unknown(item: &Node, links: &[LinkSpec]) -> Problem {
    let ids: Vec<String> = ids(links).collect();
    let more = if ids.len() > MAX_LISTED { " and others" } else { "" };
    let expected = format!("link directions: {}{more}", listed(ids.iter().take(MAX_LISTED).map(String::as_str)));
    let Some(id) = item.str() else { return Problem::new("not a link direction", expected) };
    let mut problem = Problem::new("there is no such link direction", expected);
    let near = nearest(id, ids.iter().map(String::as_str))
        .or_else(|| ids.iter().map(String::as_str).find(|known| known.strip_suffix(".forward") == Some(id)));
    problem.help = near.map(|near| format!("did you mean `{near}`?"));
    problem
}
