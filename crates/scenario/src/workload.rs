//! `[[workloads]]`: flows that arrive one after another, with sizes by a distribution.

use std::collections::BTreeSet;
use std::sync::Arc;

use ackclock_sim::Population;
use ackclock_sim::spec::WorkloadSpec;
use ackclock_sim::spec::{Application, FlowGroup, FlowSpec, MAX_ALIVE, SizeClass, Starts, SumSpec};
use ackclock_traffic::{Distribution, PathChoice, Workload as Generator, WorkloadPattern, WorkloadStreams};
use ackclock_units::{Random, Span, Time as Instant};

use crate::cc;
use crate::distribution::{self, Unit};
use crate::document::{Node, Value};
use crate::dscp::Codepoint;
use crate::fields::Fields;
use crate::flow::{self, Group, MAX_ARRIVALS, Setting};
use crate::keys::{self};
use crate::paths;
use crate::quantity::{Bytes, Kind as _, OneOf, Problem, Text, Time, Whole, is_name};
use crate::report::{Diagnostic, Place};
use crate::topology::{self, Among};

mod load;

/// The most workloads of a run.
const MAX_WORKLOADS: usize = 1000;

/// The most paths and classes of a workload.
const MAX_CHOICES: usize = 1000;

const EXPECTED: &str = "sections `[[workloads]]`, each with `id`, `path`, `size`, and `load` or `arrivals`";

const DIRECTIONS: OneOf = OneOf { what: "direction", names: &["forward", "reverse"] };
const CHOICES: OneOf = OneOf { what: "choice", names: &["random", "round_robin"] };

/// The limits of the classes of pFabric, bytes.
const CLASSES: [u64; 2] = [100_000, 10_000_000];

/// An entry of `[[workloads]]`.
#[derive(Clone, Debug, PartialEq)]
pub(crate) struct WorkloadEntry {
    pub(crate) id: String,
    /// The common properties of the flows of each path.
    groups: Vec<Arc<FlowGroup>>,
    /// The hosts of a network that its flows are between.
    among: Option<Among>,
    pattern: WorkloadPattern,
    classes: Vec<SizeClass>,
    start: Span,
    /// None arrives from then on.
    until: Span,
    most_alive: u64,
}

impl WorkloadEntry {
    /// The common properties of its flows, for each path, with its name.
    pub(crate) fn groups(&self) -> impl Iterator<Item = (String, &FlowGroup)> {
        self.groups.iter().map(|group| (format!("workloads.{}", self.id), &**group))
    }

    /// The population of flows for which memory is taken.
    pub(crate) fn population(&self) -> Population<'_> {
        Population {
            group: &self.groups[0],
            count: self.pattern.flows().unwrap_or(u64::MAX),
            arrivals: Some(self.pattern.per_second()),
            mean_bytes: Some(self.pattern.size.mean() as u64),
            most_alive: self.most_alive,
        }
    }

    /// The workload in repetition `run`, behind `before` listed flows.
    pub(crate) fn summed(&self, seed: u64, run: u64, before: usize) -> SumSpec {
        let stream = |part| Random::for_component(seed, run, &format!("workloads.{}.{part}", self.id));
        let streams = WorkloadStreams { gaps: stream("gaps"), sizes: stream("sizes"), paths: stream("paths") };
        let at = |span| Instant::ZERO + span;
        let spec = WorkloadSpec {
            arrivals: Generator::new(self.pattern.clone(), streams, at(self.start), at(self.until)),
            groups: self.groups.clone(),
            classes: self.classes.clone(),
            most_alive: self.most_alive,
        };
        let starts = Starts::Workload { spec: spec.into(), start: at(self.start) };
        let pairs = self.among.as_ref().map(|among| among.pairs(seed, run, &format!("workloads.{}", self.id)));
        SumSpec { id: self.id.clone(), group: Arc::clone(&self.groups[0]), starts, pairs, before }
    }

    /// The names of its rows in the results.
    pub(crate) fn rows(&self) -> impl Iterator<Item = String> + '_ {
        let classes = self.classes.iter().map(|class| format!("{}.{}", self.id, class.id));
        [self.id.clone()].into_iter().chain(classes)
    }
}

/// Reads `[[workloads]]` beside other flows.
pub(crate) fn read_all(root: &mut Fields<'_>, setting: Setting<'_>, groups: &[Group]) -> Vec<WorkloadEntry> {
    let Some(entry) = root.get(("workloads", "arriving flows of random sizes")) else { return Vec::new() };
    let items = match entry.node.array() {
        Some(items) if (1..=MAX_WORKLOADS).contains(&items.len()) => items,
        Some(items) if !items.is_empty() => {
            root.reject("workloads", &entry.node, Problem::new("too many", format!("at most {MAX_WORKLOADS}")));
            return Vec::new();
        }
        _ => {
            root.reject("workloads", &entry.node, Problem::new("not a list of workloads", EXPECTED));
            return Vec::new();
        }
    };
    if setting.outside {
        let problem = Problem::new("not where packets come from outside", "`[[flows]]`, or the virtual clock");
        root.reject("workloads", &entry.node, problem);
        return Vec::new();
    }
    let mut taken: BTreeSet<&str> = groups.iter().map(|group| group.id.as_str()).collect();
    let mut workloads = Vec::new();
    for (index, item) in items.iter().enumerate() {
        let Some(mut fields) = root.item("workloads", index, item, EXPECTED) else { continue };
        if let Some(id) = item.table().and_then(|table| table.get("id")?.node.str()).filter(|id| is_name(id)) {
            fields = fields.shown_as(format!("workloads.{id}"));
        }
        let workload = read(&mut fields, setting);
        fields.finish();
        if let Some(node) = item.table().and_then(|table| Some(&table.get("id")?.node))
            && let Some(id) = node.str()
            && !taken.insert(id)
        {
            let title = format!("two flows or workloads are called `{id}`");
            let error = Diagnostic::new(title, &node.place, "used a second time");
            root.push(error.note("expected an id of its own for each"));
        }
        workloads.extend(workload);
    }
    workloads
}

fn read(fields: &mut Fields<'_>, setting: Setting<'_>) -> Option<WorkloadEntry> {
    let id = fields.required(keys::ID, Text, "a name, such as \"web\"");
    if let (Some(id), Some(entry)) = (&id, fields.get("id"))
        && !is_name(id)
    {
        let expected = "a letter, then letters, digits, `-` and `_`";
        fields.reject("id", &entry.node, Problem::new("not a valid workload name", expected));
    }
    let (among, paths) = match setting.topology.filter(|_| topology::is_named(fields, setting.topology)) {
        Some(topology) => {
            let among = topology::among(fields, topology);
            let example = among.as_ref().map(Among::example);
            (among, vec![example])
        }
        None => {
            topology::is_named(fields, None);
            (None, paths_of(fields, setting))
        }
    };
    let choice = match fields.or(("choice", "choice of a flow's path"), "random", CHOICES) {
        "round_robin" => PathChoice::RoundRobin,
        _ => PathChoice::Random,
    };
    let is_named = topology::is_named(fields, setting.topology);
    let reverse = !is_named && fields.or(keys::DIRECTION, "forward", DIRECTIONS) == "reverse";
    let [sender, receiver] = flow::hosts_over_path(fields).map(|host| host.spec());
    cc::forbid_learners(fields, &sender, "of a workload");
    let write_size = fields.or(keys::WRITE_SIZE, FlowSpec::WRITE_SIZE, Bytes(1, u64::MAX >> 8));
    let dscp = fields.or(keys::DSCP, 0, Codepoint);
    let size = distribution::read(fields, ("size", "bytes of a flow"), Unit::Bytes);
    let classes = classes(fields);
    let start = fields.or(keys::START, Span::ZERO, Time::Any);
    let stop = fields.maybe(keys::STOP, Time::Positive);
    let count = fields.maybe(keys::COUNT, Whole(1, MAX_ARRIVALS));
    let most_alive = fields.or(
        ("max_alive", "number of concurrent flows that ends the run"),
        MAX_ALIVE as u64,
        Whole(1, MAX_ALIVE as u64),
    );
    let until = stop.unwrap_or(Span::MAX).min(setting.duration);
    check_times(fields, start, stop, setting.duration);
    let traffic = load::WorkloadTraffic {
        size: size.as_ref(),
        paths: &paths,
        among: among.as_ref(),
        reverse,
        ends: stop.is_some() || count.is_some(),
    };
    let (arrivals, stretch) = load::read(fields, setting, &traffic)?;
    let (size, paths, id) = (size?, paths.into_iter().collect::<Option<Vec<_>>>()?, id.filter(|id| is_name(id))?);
    let number = among.as_ref().map_or(paths.len(), Among::len);
    let pattern = WorkloadPattern { arrivals, stretch, size, paths: number, choice, count };
    check_number(fields, &pattern, until - start);
    let group = |path| {
        Arc::new(FlowGroup {
            metrics: None,
            hosts: None,
            path,
            split: None,
            mptcp: None,
            reverse,
            sender: sender.clone(),
            receiver: receiver.clone(),
            bytes: None,
            application: Application::Bulk,
            write_size,
            dscp,
            abort: None,
            schedule: Vec::new(),
        })
    };
    let groups: Vec<_> = paths.into_iter().map(group).collect();
    Some(WorkloadEntry { id, groups, among, pattern, classes, start, until, most_alive })
        .filter(|of| !of.groups.is_empty())
}

/// The paths of which each flow takes one; `None` for one that was reported.
fn paths_of(fields: &mut Fields<'_>, setting: Setting<'_>) -> Vec<Option<Vec<usize>>> {
    let (one, several) = (fields.get(keys::PATH), fields.get(keys::PATHS));
    let expected =
        "a list of paths, of which each flow takes one, such as [[\"leaf1\", \"spine\"], [\"leaf2\", \"spine\"]]";
    let (key, nodes) = match (one, several) {
        (Some(entry), None) => ("path", std::slice::from_ref(&entry.node)),
        (None, Some(entry)) => match entry.node.array() {
            Some(items) if (1..=MAX_CHOICES).contains(&items.len()) => ("paths", items),
            _ => {
                fields.reject("paths", &entry.node, Problem::new("not a list of paths", expected));
                return Vec::new();
            }
        },
        (Some(_), Some(entry)) => {
            fields.reject("paths", &entry.node, Problem::new("not together with `path`", "one of the two"));
            return Vec::new();
        }
        (None, None) => {
            fields
                .missing("path", "the links that the data passes, in order, or `paths`, of which each flow takes one");
            return Vec::new();
        }
    };
    nodes.iter().map(|node| path(fields, key, node, setting)).collect()
}

/// One path; `None` was reported.
fn path(fields: &mut Fields<'_>, key: &'static str, node: &Node, setting: Setting<'_>) -> Option<Vec<usize>> {
    let errors = fields.errors();
    let path = paths::links_of(fields, key, node, setting.names);
    if fields.errors() > errors || path.is_empty() {
        return None;
    }
    if path.iter().all(|&link| flow::takes_no_time(&setting.links[link])) {
        let title = format!("{}: a round trip takes no time", fields.shown());
        let error = Diagnostic::new(title, &node.place, "rates unlimited and delays 0, both ways");
        fields.push(error.note("expected a rate or a delay on one of the links: time would stand still"));
        return None;
    }
    Some(path)
}

/// The size classes of the results.
fn classes(fields: &mut Fields<'_>) -> Vec<SizeClass> {
    let limit = Bytes(1, Distribution::MOST_BYTES);
    let expected = "sizes in ascending order, the largest of each class, such as [\"100kB\", \"10MB\"]";
    let limits = match fields.get(("classes", "upper bounds of the size classes in the results")) {
        None => {
            let nowhere = Place::new(0, 0..0);
            let shown = CLASSES.map(|bytes| Node::new(limit.show(&bytes), nowhere.clone()));
            fields.fill("classes", Value::Array(shown.to_vec()));
            CLASSES.to_vec()
        }
        Some(entry) => {
            let items = entry.node.array().filter(|items| items.len() <= MAX_CHOICES);
            let read = items.map(|items| items.iter().map(|item| limit.read(item).map_err(|problem| (item, problem))));
            let read: Option<Result<Vec<u64>, _>> = read.map(Iterator::collect);
            match read {
                Some(Ok(limits)) if limits.is_sorted_by(|a, b| a < b) => limits,
                Some(Err((item, problem))) => {
                    fields.reject("classes", item, problem);
                    Vec::new()
                }
                _ => {
                    fields.reject("classes", &entry.node, Problem::new("not a list of limits", expected));
                    Vec::new()
                }
            }
        }
    };
    let text = |bytes: u64| limit.show(&bytes);
    let name = |bytes| match text(bytes) {
        Value::String(text) => text,
        _ => bytes.to_string(),
    };
    let last = limits.last().map(|&last| SizeClass { id: format!("above_{}", name(last)), up_to: None });
    let class = |&bytes: &u64| SizeClass { id: format!("up_to_{}", name(bytes)), up_to: Some(bytes) };
    limits.iter().map(class).chain(last).collect()
}

/// Checks that there is time for flows to arrive.
fn check_times(fields: &mut Fields<'_>, start: Span, stop: Option<Span>, duration: Span) {
    if duration > Span::ZERO && start >= duration {
        let place = fields.get("start").map_or(fields.place(), |entry| &entry.node.place).clone();
        let error = Diagnostic::new(format!("{}: starts when the run is over", fields.shown()), &place, "starts here");
        fields.push(error.note(format!("`run.duration` is {duration}")));
    } else if let (Some(stop), Some(entry)) = (stop, fields.get("stop"))
        && stop <= start
    {
        let problem = Problem::new("not after `start`; no flow would arrive", format!("a time after {start}"));
        fields.reject("stop", &entry.node, problem);
    }
}

/// Checks that no more flows are to be expected than a run may have.
fn check_number(fields: &mut Fields<'_>, pattern: &WorkloadPattern, arriving: Span) {
    let flows = pattern.per_second() * arriving.as_secs_f64();
    let known = pattern.flows().map_or(flows, |count| flows.min(count as f64));
    if known > MAX_ARRIVALS as f64 {
        let title = format!("{}: {known:.3e} flows are too many", fields.shown());
        let label = format!("{:.3e} of them arrive in a second", pattern.per_second());
        let error = Diagnostic::new(title, fields.place(), label);
        fields.push(error.note(format!("at most {MAX_ARRIVALS}; `count` and `stop` limit them")));
    }
}
