//! Flows: groups of connections with what they carry and when.

use std::collections::{BTreeMap, BTreeSet};

use ackclock_emulator::send_vector;
use ackclock_sim::spec::{CcChange, FlowSpec, HostSpec, LinkSpec, SecondarySpec};
use ackclock_units::{Random, Span, Time as Instant};

use crate::document::{Node, Table};
use crate::fields::{Context, Fields};
use crate::host;
use crate::link::is_name;
use crate::quantity::{Bytes, OneOf, Problem, Text, Time, Whole};
use crate::report::{Diagnostic, did_you_mean, listed};
use crate::schedule;

/// The most connections of one run.
pub const MAX_FLOWS: u64 = 100_000;

/// What smoltcp's buffers may take of the memory in one run.
const MAX_STOCK_MEMORY: u64 = 4 << 30;

/// An entry of `[[flows]]`: connections that are alike.
#[derive(Clone, Debug, PartialEq)]
pub(crate) struct Group {
    pub(crate) id: String,
    /// How many there are at the same time.
    parallel: u64,
    stagger: Span,
    path: Vec<usize>,
    secondary: Option<SecondarySpec>,
    reverse: bool,
    sender: HostSpec,
    receiver: HostSpec,
    bytes: Option<u64>,
    start: Span,
    /// Every start is later by a time of its own, drawn from 0 to this.
    start_jitter: Span,
    stop: Option<Span>,
    schedule: Vec<CcChange>,
    /// Each connection lasts this long, and another one follows.
    restart_every: Option<Span>,
    /// When the last one may start: the end of the run, or `stop`.
    end: Span,
}

impl Group {
    /// How many connections there are in all.
    pub(crate) fn count(&self) -> u64 {
        match self.restart_every {
            None => self.parallel,
            Some(every) => (0..self.parallel)
                .map(|number| (self.end - self.first_start(number)).as_nanos().div_ceil(every.as_nanos()).max(1))
                .sum(),
        }
    }

    fn first_start(&self, number: u64) -> Span {
        self.start + self.stagger * number
    }

    /// When each starts and stops, in order of their numbers: all of a round before those that follow them.
    fn times(&self) -> impl Iterator<Item = (Span, Option<Span>)> + '_ {
        let every = self.restart_every.unwrap_or(Span::MAX);
        (0..)
            .map(move |round: u64| {
                (0..self.parallel)
                    .map(move |number| self.first_start(number) + every * round)
                    .filter(move |&start| round == 0 || start < self.end)
            })
            .take_while(|starts| starts.clone().next().is_some())
            .flatten()
            .map(|start| {
                let lasts = self.restart_every.map(|every| start + every);
                (start, [lasts, self.stop].into_iter().flatten().min())
            })
    }

    /// The connections of repetition `run`, each with its number.
    pub(crate) fn flows(&self, seed: u64, run: u64) -> impl Iterator<Item = FlowSpec> + '_ {
        self.times().enumerate().map(move |(number, (start, stop))| {
            let id = format!("{}.{number}", self.id);
            let jitter =
                Random::for_component(seed, run, &format!("flows.{id}.start")).below(self.start_jitter.as_nanos());
            FlowSpec {
                id,
                path: self.path.clone(),
                secondary: self.secondary.clone(),
                reverse: self.reverse,
                sender: self.sender.clone(),
                receiver: self.receiver.clone(),
                bytes: self.bytes,
                start: Instant::ZERO + start + Span::from_nanos(jitter),
                stop: stop.map(|stop| Instant::ZERO + stop),
                schedule: self.schedule.clone(),
            }
        })
    }
}

/// Reads `[[flows]]`.
pub(crate) fn read_all<'a>(
    root: &mut Fields<'a>,
    cx: &'a Context<'a>,
    links: &[LinkSpec],
    duration: Span,
) -> Vec<Group> {
    let expected = "at least one section `[[flows]]` with an `id` and a `path`";
    let Some(entry) = root.get("flows") else {
        root.missing("flows", expected);
        return Vec::new();
    };
    let items = match entry.node.array() {
        Some(items) if !items.is_empty() => items,
        _ => {
            root.reject("flows", &entry.node, Problem::new("not a list of flows", expected));
            return Vec::new();
        }
    };
    if items.len() as u64 > MAX_FLOWS {
        root.reject("flows", &entry.node, Problem::new("too many", format!("at most {MAX_FLOWS}")));
        return Vec::new();
    }
    let names = links.iter().enumerate().map(|(index, link)| (link.name.as_str(), index)).collect();
    let mut ids = BTreeSet::new();
    let mut groups: Vec<Group> = Vec::new();
    for (index, item) in items.iter().enumerate() {
        let Some(table) = item.table() else {
            root.reject("flows", item, Problem::new("not a flow", expected));
            continue;
        };
        let Some(group) = read(cx, index, item, table, &names, duration) else { continue };
        // A single packet takes the primary path both ways.
        if !group.path.is_empty() && group.path.iter().all(|&link| takes_no_time(&links[link])) {
            let entry = table.get("path").or_else(|| table.get("paths"));
            let place = entry.map_or(&item.place, |entry| &entry.node.place);
            let label = "rates unlimited and delays 0, both ways";
            let error = Diagnostic::new(format!("flows.{}: a round trip takes no time", group.id), place, label);
            root.push(error.note("expected a rate or a delay on one of the links: time would stand still"));
        }
        if !ids.insert(group.id.clone()) {
            let place = table.get("id").map_or(&item.place, |entry| &entry.node.place);
            let error = Diagnostic::new(format!("two flows are called `{}`", group.id), place, "used a second time");
            root.push(error.note("expected an id of its own for each flow; `count` makes several that are alike"));
        }
        groups.push(group);
    }
    limits(root, &entry.node, &groups);
    groups
}

/// Whether packets pass a link in no time, in both directions.
fn takes_no_time(link: &LinkSpec) -> bool {
    [&link.forward, &link.reverse].iter().all(|direction| direction.rate.is_none() && direction.delay == Span::ZERO)
}

/// What single keys cannot check.
fn limits(root: &Fields<'_>, node: &Node, groups: &[Group]) {
    let total = groups.iter().map(Group::count).fold(0, u64::saturating_add);
    if total > MAX_FLOWS {
        let title = format!("{total} flows are too many");
        root.push(
            Diagnostic::new(title, &node.place, "found here and in what follows").note(format!("at most {MAX_FLOWS}")),
        );
    }
    let memory = |host: &HostSpec| match host {
        HostSpec::Smoltcp(stock) => stock.send_buffer + stock.receive_buffer,
        HostSpec::Endpoint(_) => 0,
    };
    let memory: u64 = groups
        .iter()
        .map(|group| group.count().saturating_mul(memory(&group.sender) + memory(&group.receiver)))
        .fold(0, u64::saturating_add);
    if memory > MAX_STOCK_MEMORY {
        let title = format!("the buffers of smoltcp hosts would take {} MiB", memory >> 20);
        let note = format!("at most {} MiB; `send_buffer` and `receive_buffer` set them", MAX_STOCK_MEMORY >> 20);
        root.push(Diagnostic::new(title, &node.place, "found here and in what follows").note(note));
    }
}

const DIRECTIONS: OneOf = OneOf { what: "direction", names: &["forward", "reverse"] };

fn read<'a>(
    cx: &'a Context<'a>,
    index: usize,
    item: &'a Node,
    table: &'a Table,
    links: &BTreeMap<&str, usize>,
    duration: Span,
) -> Option<Group> {
    let path = format!("flows.{index}");
    let shown = match table.get("id").and_then(|entry| entry.node.str()) {
        Some(id) if is_name(id) => format!("flows.{id}"),
        _ => path.clone(),
    };
    let mut fields = Fields::new(cx, table, path, &item.place).shown_as(shown);
    let id = fields.required("id", Text, "a name, such as \"reno\"");
    if let (Some(id), Some(entry)) = (&id, table.get("id"))
        && !is_name(id)
    {
        let expected = "a letter, then letters, digits, `-` and `_`";
        fields.reject("id", &entry.node, Problem::new("not a name for a flow", expected));
    }
    let parallel = fields.or("count", 1, Whole(1, MAX_FLOWS));
    let stagger = fields.or("stagger", Span::ZERO, Time::Any);
    let (path, secondary) = paths(&mut fields, links);
    let reverse = fields.or("direction", "forward", DIRECTIONS) == "reverse";
    let mut sender = host::read(&mut fields, None);
    if let (Some(_), HostSpec::Endpoint(endpoint)) = (&secondary, &mut sender) {
        // Which path the first data takes depends on it.
        endpoint.config.transfer.bare_handshake_ack = true;
    }
    let receiver = receiver(&mut fields, &sender);
    let bytes = fields.maybe("bytes", Bytes(1, u64::MAX >> 8));
    let start = fields.or("start", Span::ZERO, Time::Any);
    let start_jitter = fields.or("start_jitter", Span::ZERO, Time::Any);
    let stop = fields.maybe("stop", Time::Positive);
    let restart_every = fields.maybe("restart_every", Time::Positive);
    let schedule = schedule::read(&mut fields, &sender, start, duration);
    let last_start = start + stagger * (parallel - 1) + start_jitter;
    times(&mut fields, last_start, stop, duration);
    if let (Some(every), Some(entry)) = (restart_every, table.get("start_jitter"))
        && start_jitter >= every
    {
        let problem = Problem::new("as long as the connections last", format!("less than `restart_every`, {every}"));
        fields.reject("start_jitter", &entry.node, problem);
    }
    fields.finish();
    let end = stop.unwrap_or(Span::MAX).min(duration);
    Some(Group {
        id: id?,
        parallel,
        stagger,
        path,
        secondary,
        reverse,
        sender,
        receiver,
        bytes,
        start,
        start_jitter,
        stop,
        schedule,
        restart_every,
        end,
    })
}

/// The receiving end: a host of its own if it names one, else the sender's with the keys that it changes.
fn receiver(fields: &mut Fields<'_>, sender: &HostSpec) -> HostSpec {
    let Some(entry) = fields.get("receiver") else { return sender.clone() };
    if entry.node.table().is_none() && entry.node.str().is_some() {
        return host::named(fields, "receiver", &entry.node, sender).unwrap_or_else(|| sender.clone());
    }
    let Some(mut section) = fields.table("receiver", "the name of a host, or a table of knobs") else {
        return sender.clone();
    };
    let receiver = host::read(&mut section, Some(sender));
    section.finish();
    receiver
}

/// One path, or two that data takes in turn.
fn paths(fields: &mut Fields<'_>, links: &BTreeMap<&str, usize>) -> (Vec<usize>, Option<SecondarySpec>) {
    let one = fields.get("path").map(|entry| &entry.node);
    let two = fields.get("paths");
    let Some(entry) = two else {
        let path = match one {
            Some(node) => links_of(fields, "path", node, links),
            None => {
                fields.missing("path", &path_expected(links));
                Vec::new()
            }
        };
        return (path, None);
    };
    let vector = split(fields);
    let expected = "two paths, the primary one, over which the ACKs come back, first, such as [[\"hspa\"], [\"wlan\"]]";
    if one.is_some() {
        let title = format!("{}: `path` and `paths` exclude each other", fields.shown());
        fields
            .push(Diagnostic::new(title, &entry.key_place, "found beside `path`").note(format!("expected {expected}")));
    }
    let Some([first, second]) = entry.node.array() else {
        fields.reject("paths", &entry.node, Problem::new("not two paths", expected));
        return (Vec::new(), None);
    };
    let [path, other] = [first, second].map(|node| links_of(fields, "paths", node, links));
    (path, Some(SecondarySpec { path: other, vector }))
}

const SPLITS: OneOf = OneOf { what: "split", names: &["round_robin", "send_vector"] };

/// Weights of paths are no finer.
const MAX_WEIGHT: u64 = 1 << 20;

/// Which packets take the second path.
fn split(fields: &mut Fields<'_>) -> u64 {
    let alternating = send_vector(1, 1).unwrap_or_default();
    fields.choose("split", "round_robin", &SPLITS, |kind, fields| match kind {
        "send_vector" => weights(fields).and_then(|[first, second]| send_vector(first, second)).unwrap_or(alternating),
        _ => alternating,
    })
}

fn weights(fields: &mut Fields<'_>) -> Option<[u32; 2]> {
    let expected = "the weights of the two paths, whole numbers, such as [2, 1]";
    let Some(entry) = fields.get("weights") else {
        fields.missing("weights", expected);
        return None;
    };
    let Some([first, second]) = entry.node.array() else {
        fields.reject("weights", &entry.node, Problem::new("not two weights", expected));
        return None;
    };
    let weight = |node| {
        let read = crate::quantity::Kind::read(&Whole(0, MAX_WEIGHT), node);
        read.map_err(|problem| fields.reject("weights", node, problem)).ok()
    };
    let (first, second) = (weight(first)? as u32, weight(second)? as u32);
    if first == 0 && second == 0 {
        fields.reject("weights", &entry.node, Problem::new("neither path has a weight", expected));
        return None;
    }
    Some([first, second])
}

fn path_expected(links: &BTreeMap<&str, usize>) -> String {
    let known = listed(links.keys().copied().take(20));
    format!("the links that the data passes, in order, such as [\"bottleneck\"]; there are: {known}")
}

fn links_of(fields: &mut Fields<'_>, key: &str, node: &Node, links: &BTreeMap<&str, usize>) -> Vec<usize> {
    let names = || links.keys().copied();
    let expected = || path_expected(links);
    let items = match node.array() {
        Some(items) if !items.is_empty() => items,
        array => {
            let title = if array.is_some() { "must not be empty" } else { "not an array" };
            fields.reject(key, node, Problem::new(title, expected()));
            return Vec::new();
        }
    };
    let mut path = Vec::new();
    for item in items {
        let problem = match item.str() {
            None => Problem::new("not a name of a link", expected()),
            Some(name) => match links.get(name) {
                Some(index) if path.contains(index) => {
                    Problem::new(format!("the link `{name}` is listed twice"), "each link at most once")
                }
                Some(index) => {
                    path.push(*index);
                    continue;
                }
                None => Problem {
                    help: did_you_mean(name, names()),
                    ..Problem::new(format!("there is no link `{name}`"), expected())
                },
            },
        };
        fields.reject(key, item, problem);
    }
    path
}

/// Checks that every flow of the group has some time to send.
fn times(fields: &mut Fields<'_>, last_start: Span, stop: Option<Span>, duration: Span) {
    let found = |fields: &mut Fields<'_>, keys: &[&'static str]| {
        let place = keys.iter().find_map(|&key| fields.get(key)).map(|entry| entry.node.place.clone());
        place.unwrap_or(fields.place().clone())
    };
    if duration > Span::ZERO && last_start >= duration {
        let place = found(fields, &["start", "stagger", "start_jitter"]);
        let label = format!("the last flow of the group starts at {last_start}");
        let error = Diagnostic::new(format!("{}: starts when the run is over", fields.shown()), &place, label);
        fields.push(error.note(format!("`run.duration` is {duration}")));
    } else if let Some(stop) = stop
        && stop <= last_start
    {
        let place = found(fields, &["stop", "start"]);
        let label = format!("the last flow of the group starts at {last_start}");
        fields.push(Diagnostic::new(format!("{}: stops before it starts", fields.shown()), &place, label));
    }
}
