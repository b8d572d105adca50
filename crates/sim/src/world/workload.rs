//! The flows of a workload: the next arrival, and the results of finished flows.

use std::borrow::Cow;
use std::collections::BTreeMap;
use std::ops::ControlFlow;
use std::sync::Arc;

use ackclock_trace::{FlowRecord, FlowSink, Histogram, IncastSummary, Spread, WorkloadSummary};
use ackclock_traffic::{Arrival, Arrivals};
use ackclock_units::{Span, Time};

use super::World;
use crate::error::RunError;
use crate::flow::{ClassSums, Flow, FlowOutcome, Ideal};
use crate::host::Host;
use crate::index::{DirectionId, FlowId};
use crate::spec::{FlowGroup, LinkSpec, SizeClass, SumSpec, WorkloadSpec};

/// Rows between two writes.
const BATCH: usize = 64;

/// A workload in a run.
#[derive(Debug)]
pub(super) struct Work {
    id: String,
    spec: WorkloadSpec,
    ideals: Vec<Ideal>,
    /// The links of the run, if its flows are between hosts of a network.
    network: Option<Vec<LinkSpec>>,
    /// Names of the paths in rows.
    paths: Vec<String>,
    /// Start of the arrivals.
    start: Time,
    /// Time of the last arrival.
    last: Time,
    /// The flows that exist or are to start next, by their places.
    existing: BTreeMap<FlowId, Created>,
    /// All flows, and those of each class.
    all: ClassSums,
    classes: Vec<ClassSums>,
    /// The requests of an incast.
    requests: Option<IncastRequests>,
    /// Rows that have not been written yet; `None` if they are not recorded.
    rows: Option<Vec<FinishedFlow>>,
}

/// A flow that exists.
#[derive(Debug)]
struct Created {
    arrival: Arrival,
    /// The links of its data, if it is between hosts of a network.
    links: Vec<DirectionId>,
}

/// The requests of an incast.
#[derive(Debug)]
struct IncastRequests {
    /// Flows that answer each.
    senders: u64,
    made: u64,
    completed: u64,
    /// For each request, the number of complete answers and the completion time of the last one.
    pending: BTreeMap<u64, (u64, Time)>,
    completion: Histogram,
}

/// A flow that is over.
#[derive(Debug)]
struct FinishedFlow {
    number: u64,
    request: u64,
    path: usize,
    links: Vec<DirectionId>,
    bytes: u64,
    ideal: Span,
    outcome: FlowOutcome,
}

impl Work {
    pub(super) fn new(of: &SumSpec, spec: &WorkloadSpec, start: Time, links: &[LinkSpec]) -> Work {
        let id = of.id.as_str();
        let name = |&link: &usize| links.get(link).map_or("", |link| link.name.as_str());
        let of_class = |class: &SizeClass| ClassSums::new(format!("{id}.{}", class.id));
        let requests = match spec.arrivals.pattern().arrivals {
            Arrivals::Gaps(_) => None,
            Arrivals::Incast { senders, .. } => Some(IncastRequests {
                senders,
                made: 0,
                completed: 0,
                pending: BTreeMap::new(),
                completion: Histogram::new(),
            }),
        };
        Work {
            id: id.to_owned(),
            ideals: spec.groups.iter().map(|group| Ideal::of(group, links)).collect(),
            network: of.pairs.is_some().then(|| links.to_vec()),
            paths: spec.groups.iter().map(|group| group.path.iter().map(name).collect::<Vec<_>>().join(">")).collect(),
            start,
            last: start,
            existing: BTreeMap::new(),
            all: ClassSums::new(id.to_owned()),
            classes: spec.classes.iter().map(of_class).collect(),
            requests,
            rows: None,
            spec: spec.clone(),
        }
    }

    /// Starts recording rows of the flows.
    pub(super) fn record(&mut self) {
        self.rows = Some(Vec::new());
    }

    /// The most flows that may exist at the same time.
    pub(super) fn most_alive(&self) -> u64 {
        self.spec.most_alive
    }

    /// The next flow.
    pub(super) fn draw(&mut self) -> Option<Arrival> {
        self.spec.arrivals.draw()
    }

    /// Settings that the flows of a path have in common.
    pub(super) fn group(&self, path: usize) -> &Arc<FlowGroup> {
        &self.spec.groups[self.place(path)]
    }

    /// The place of the settings of a path: between pairs of hosts they are the same.
    fn place(&self, path: usize) -> usize {
        if self.network.is_some() { 0 } else { path }
    }

    /// A flow has been created and is to start; its data takes these links.
    pub(super) fn created(&mut self, flow: FlowId, arrival: Arrival, links: &[DirectionId]) {
        let links = if self.network.is_some() { links.to_vec() } else { Vec::new() };
        self.existing.insert(flow, Created { arrival, links });
    }

    /// The flow at this place has started.
    pub(super) fn started(&mut self, flow: FlowId) {
        let Some(Created { arrival, .. }) = self.existing.get(&flow) else { return };
        self.last = self.last.max(arrival.at);
        if let Some(requests) = &mut self.requests {
            requests.made = requests.made.max(arrival.request + 1);
        }
    }

    /// Counts a flow that is over, or alive at the end of the run.
    pub(super) fn add(&mut self, place: FlowId, flow: &Flow, ends: [&Host; 2]) {
        let Some(created) = self.existing.remove(&place) else { return };
        let at = created.arrival.at;
        let row = self.row(created, flow.outcome(ends));
        self.all.add(row.bytes, row.ideal, &row.outcome);
        let fits = |class: &SizeClass| class.up_to.is_none_or(|most| row.bytes <= most);
        let class = self.spec.classes.iter().position(fits);
        if let Some(class) = class.and_then(|class| self.classes.get_mut(class)) {
            class.add(row.bytes, row.ideal, &row.outcome);
        }
        if let (Some(requests), Some(completed)) = (&mut self.requests, row.outcome.completed) {
            requests.answered(row.request, at, completed);
        }
        if let Some(rows) = &mut self.rows {
            rows.push(row);
        }
    }

    fn row(&self, Created { arrival, links }: Created, outcome: FlowOutcome) -> FinishedFlow {
        let Arrival { number, request, bytes, path, .. } = arrival;
        let ideal = match &self.network {
            None => self.ideals[path].time(bytes),
            Some(network) => Ideal::along(self.group(path), &links, network).time(bytes),
        };
        FinishedFlow { number, request, path, links, bytes, ideal, outcome }
    }

    /// The results of a run that ended at `end`: of all flows, then those of each class.
    pub(super) fn summary(&self, end: Time) -> Vec<WorkloadSummary> {
        let until = if self.spec.arrivals.is_over() { self.last } else { self.spec.arrivals.until().min(end) };
        let arriving = until.since(self.start);
        let mut all = self.all.summary(arriving);
        all.requests = self.requests.as_ref().map(|requests| IncastSummary {
            made: requests.made,
            completed: requests.completed,
            completion_ms: Spread::of(&requests.completion, 1e-6),
        });
        let classes = self.classes.iter().map(|class| class.summary(arriving));
        std::iter::once(all).chain(classes).collect()
    }

    /// Returns true if the buffered rows should be written.
    pub(super) fn has_many_rows(&self) -> bool {
        self.rows.as_ref().is_some_and(|rows| rows.len() >= BATCH)
    }

    /// Hands on the rows of flows that are over.
    fn hand_on(&mut self, sink: &mut dyn FlowSink) -> ControlFlow<()> {
        let Some(mut rows) = self.rows.take() else { return ControlFlow::Continue(()) };
        let result = rows.iter().try_for_each(|row| self.tell(row, sink));
        rows.clear();
        self.rows = Some(rows);
        result
    }

    fn tell(&self, row: &FinishedFlow, sink: &mut dyn FlowSink) -> ControlFlow<()> {
        let path = match &self.network {
            None => Cow::Borrowed(self.paths[row.path].as_str()),
            Some(network) => {
                let names: Vec<&str> = row.links.iter().map(|link| network[link.link()].name.as_str()).collect();
                Cow::Owned(names.join(">"))
            }
        };
        sink.record(&FlowRecord {
            workload: &self.id,
            flow: &format!("{}.{}", self.id, row.number),
            request: row.request,
            path: &path,
            start: row.outcome.start,
            end: row.outcome.completed,
            bytes: row.bytes,
            ideal: row.ideal,
            sent: row.outcome.sent,
            recoveries: row.outcome.recoveries,
        })
    }
}

impl IncastRequests {
    /// An answer to a request made at `at` is complete.
    fn answered(&mut self, request: u64, at: Time, completed: Time) {
        let (answers, last) = self.pending.entry(request).or_insert((0, at));
        *answers += 1;
        *last = completed.max(*last);
        if *answers == self.senders {
            self.completed += 1;
            self.completion.add(last.since(at).as_nanos());
            self.pending.remove(&request);
        }
    }
}

impl World {
    /// Begins to record the flows of workloads.
    pub(super) fn record_flows(&mut self) {
        self.turnover.iter_mut().flat_map(|turnover| turnover.works()).for_each(Work::record);
    }

    /// Returns true if the buffered rows of flows should be written.
    #[inline]
    pub(super) fn has_many_rows(&self) -> bool {
        self.turnover.as_ref().is_some_and(|turnover| turnover.has_many_rows())
    }

    /// Hands on the rows of flows that are over.
    #[cold]
    pub(super) fn hand_on_flows(&mut self, sink: &mut dyn FlowSink) -> Result<(), RunError> {
        let Some(turnover) = &mut self.turnover else { return Ok(()) };
        match turnover.works().try_for_each(|work| work.hand_on(sink)) {
            ControlFlow::Continue(()) => Ok(()),
            ControlFlow::Break(()) => Err(RunError::Interrupted),
        }
    }

    /// Hands on the last rows, those of flows that the run ends before included.
    #[cold]
    pub(super) fn hand_on_last_flows(&mut self, sink: &mut dyn FlowSink) -> Result<(), RunError> {
        self.finish();
        self.retire_idle();
        self.hand_on_flows(sink)?;
        let World { turnover, flows, hosts, .. } = self;
        let Some(turnover) = turnover else { return Ok(()) };
        for work in turnover.works() {
            let started = work.existing.iter().filter(|(place, _)| flows[**place].has_started());
            let ends = |place: FlowId| [place.sender(), place.receiver()].map(|host| &hosts[host]);
            let row = |(&place, created): (&FlowId, &Created)| {
                let created = Created { arrival: created.arrival, links: created.links.clone() };
                work.row(created, flows[place].outcome(ends(place)))
            };
            let mut rows: Vec<FinishedFlow> = started.map(row).collect();
            rows.sort_unstable_by_key(|row| row.number);
            if rows.iter().try_for_each(|row| work.tell(row, sink)).is_break() {
                return Err(RunError::Interrupted);
            }
        }
        Ok(())
    }
}
