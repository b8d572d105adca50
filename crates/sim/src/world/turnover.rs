//! Flows that come and go.
//!
//! A flow of a group of which only sums are kept exists from the time at which the one before it
//! starts until nothing of it can happen any more: nothing of it is on its way, and neither end has
//! anything to do but to wait in TIME-WAIT. It is then counted in the sums, and another one takes
//! its place. Which place that is decides nothing: flows are told apart by numbers that are never
//! given twice, in the order of equal times and in what queues hash.

use std::sync::Arc;

use ackclock_events::Slot;
use ackclock_trace::{GroupSummary, WorkloadSummary};
use ackclock_traffic::Arrival;
use ackclock_units::Time;

use super::workload::Work;
use super::{World, browsers};
use crate::build::{self, SharedConfigs, Streams};
use crate::error::RunError;
use crate::flow::{Flow, FlowCount, SenderNames, Sums};
use crate::index::{FlowId, HostId};
use crate::series::GroupCount;
use crate::spec::{FlowSpec, MAX_ALIVE, RunSpec, Start, Starts, SumSpec};

/// The flows of a run that come and go.
#[derive(Debug)]
pub(super) struct Turnover {
    /// The number of flows before them, which stay.
    listed: usize,
    /// The numbers of those among all flows: the order of the scenario, whichever are listed.
    numbers: Vec<u64>,
    streams: Streams,
    settings: SharedConfigs,
    groups: Vec<SummedGroup>,
    /// Behind the flows that stay, the places of flows that exist, and of the last ones in free
    /// places.
    places: Vec<Place>,
    free: Vec<FlowId>,
    alive: usize,
    /// Flows whose last packet on the way is gone, without an event of their own.
    silent: Vec<FlowId>,
    /// Every flow has a place of its own.
    keeps: bool,
    /// The most flows that may exist at the same time.
    most: usize,
    /// The error that ends the run.
    failure: Option<RunError>,
}

#[derive(Debug)]
struct SummedGroup {
    spec: SumSpec,
    names: SenderNames,
    /// The number of its first flow among all flows.
    first: u64,
    /// Flows created so far.
    created: u64,
    /// The one that starts next.
    next: Option<FlowId>,
    alive: u64,
    most_alive: u64,
    sums: Sums,
    /// The workload, if it is one.
    work: Option<Box<Work>>,
    /// The client whose connections the flows are; it opens them as it needs them.
    client: Option<FlowId>,
}

/// The flow at a place.
#[derive(Clone, Copy, Debug)]
struct Place {
    group: usize,
    /// Number of the flow among all flows.
    number: u64,
    /// Packets of either end that are on their way.
    on_way: u32,
    exists: bool,
}

impl SummedGroup {
    /// Draws the start and stop of the next flow, and its number in the group; for a workload, the
    /// arrival too.
    fn draw(&mut self) -> Option<(Start, Option<Arrival>)> {
        if let Some(work) = &mut self.work {
            let arrival = work.draw()?;
            return Some((Start { at: arrival.at, stop: None, number: arrival.number }, Some(arrival)));
        }
        let next = match &mut self.spec.starts {
            Starts::Listed(starts) => starts.get(self.created as usize).copied(),
            Starts::Workload { .. } => None,
            Starts::Poisson { count, .. } if self.created == *count => None,
            Starts::Poisson { arrivals, until, stop, .. } => {
                let start = Start { at: arrivals.draw(), stop: *stop, number: self.created };
                Some(start).filter(|start| start.at < *until)
            }
        };
        self.created += u64::from(next.is_some());
        Some((next?, None))
    }
}

impl Turnover {
    /// `None` if all flows of a run stay.
    pub(super) fn new(spec: &RunSpec) -> Option<Box<Turnover>> {
        let clients: Vec<_> = browsers::groups(&spec.flows).collect();
        if spec.sums.is_empty() && clients.is_empty() {
            return None;
        }
        let counts = |before: usize| {
            spec.sums.iter().take_while(move |sum| sum.before <= before).map(SumSpec::count).sum::<u64>()
        };
        let numbers = (0..spec.flows.len()).map(|listed| listed as u64 + counts(listed)).collect();
        let mut ahead = 0;
        let sums = spec.sums.iter().map(|of| (of.clone(), None));
        let groups = sums.chain(clients).map(|(of, client)| {
            let first = of.before as u64 + ahead;
            ahead += if client.is_some() { browsers::MOST_CONNECTIONS } else { of.count() };
            let work = match &of.starts {
                Starts::Workload { spec: workload, start } => Some(Work::new(&of, workload, *start, &spec.links)),
                Starts::Listed(_) | Starts::Poisson { .. } => None,
            };
            SummedGroup {
                names: SenderNames::new(&of.group),
                spec: of,
                first,
                created: 0,
                next: None,
                alive: 0,
                most_alive: 0,
                sums: Sums::new(),
                work: work.map(Box::new),
                client,
            }
        });
        Some(Box::new(Turnover {
            listed: spec.flows.len(),
            numbers,
            streams: Streams::of(spec),
            settings: SharedConfigs::default(),
            groups: groups.collect(),
            places: Vec::new(),
            free: Vec::new(),
            alive: 0,
            silent: Vec::new(),
            keeps: false,
            most: MAX_ALIVE,
            failure: None,
        }))
    }

    /// The workloads.
    pub(super) fn works(&mut self) -> impl Iterator<Item = &mut Work> {
        self.groups.iter_mut().filter_map(|group| group.work.as_deref_mut())
    }

    /// Returns true if the buffered rows of flows should be written.
    pub(super) fn has_many_rows(&self) -> bool {
        self.groups.iter().any(|group| group.work.as_ref().is_some_and(|work| work.has_many_rows()))
    }

    fn place(&mut self, flow: FlowId) -> Option<&mut Place> {
        self.places.get_mut(flow.index().checked_sub(self.listed)?)
    }

    /// The client whose connection a flow is.
    fn client_of(&mut self, flow: FlowId) -> Option<FlowId> {
        let group = self.place(flow)?.group;
        self.groups[group].client
    }

    /// The number of a flow among all flows.
    pub(super) fn number(&self, flow: FlowId) -> u64 {
        match flow.index().checked_sub(self.listed) {
            None => self.numbers[flow.index()],
            Some(place) => self.places[place].number,
        }
    }

    /// The rank of a slot's host in the order of equal times.
    pub(super) fn rank(&self, slot: Slot) -> u64 {
        let host = HostId::of_slot(slot);
        2 * self.number(host.flow()) + u64::from(!host.is_sender())
    }

    /// A packet has left an end of a flow, or is on the wire twice. Returns the flow's number.
    pub(super) fn left(&mut self, flow: FlowId) -> u64 {
        match self.place(flow) {
            Some(place) => {
                place.on_way += 1;
                place.number
            }
            None => self.numbers[flow.index()],
        }
    }

    /// A packet has reached an end.
    pub(super) fn reached(&mut self, flow: FlowId) {
        if let Some(place) = self.place(flow) {
            place.on_way -= 1;
        }
    }

    /// A packet was lost.
    pub(super) fn lost(&mut self, flow: FlowId) {
        if let Some(place) = self.place(flow) {
            place.on_way -= 1;
            if place.on_way == 0 {
                self.silent.push(flow);
            }
        }
    }
}

/// The results of flows that came and went.
pub(super) type Passed = (Vec<GroupSummary>, Vec<WorkloadSummary>);

impl World {
    /// Checks that no more flows came than may exist at a time, and that none of them failed.
    ///
    /// # Errors
    ///
    /// The first failure.
    pub(super) fn check_turnover(&self) -> Result<(), RunError> {
        self.turnover.as_ref().and_then(|turnover| turnover.failure.clone()).map_or(Ok(()), Err)
    }

    /// The first flow of each group exists.
    pub(super) fn begin_turnover(&mut self) {
        let groups = self.turnover.as_ref().map_or(0, |turnover| turnover.groups.len());
        (0..groups).for_each(|group| self.create_next(Time::ZERO, group));
    }

    /// Flows that come and go keep their places to the end of the run, which changes no result and
    /// takes memory for all of them.
    pub fn keep_places(&mut self) {
        if let Some(turnover) = &mut self.turnover {
            turnover.keeps = true;
        }
    }

    /// Something has happened at an end of a flow: it may have started, so that the next one of its
    /// group is known, or ended.
    pub(super) fn turn_over(&mut self, now: Time, flow: FlowId) {
        let Some(turnover) = &mut self.turnover else { return };
        let Some(&mut Place { group, .. }) = turnover.place(flow) else { return };
        if turnover.groups[group].next == Some(flow) && self.flows[flow].has_started() {
            let of = &mut turnover.groups[group];
            of.alive += 1;
            of.most_alive = of.most_alive.max(of.alive);
            if let Some(work) = &mut of.work {
                work.started(flow);
            }
            turnover.alive += 1;
            let crowded = of.work.as_ref().is_some_and(|work| of.alive > work.most_alive());
            if crowded || turnover.alive > turnover.most {
                let alive = if crowded { of.alive as usize } else { turnover.alive };
                let failure = RunError::TooMany { group: of.spec.id.clone(), alive, at: now.since(Time::ZERO) };
                turnover.failure.get_or_insert(failure);
                // What was measured until then is not lost.
                self.end = self.end.min(now);
            }
            self.create_next(now, group);
        }
        self.retire(now, flow);
        while let Some(flow) = self.turnover.as_mut().and_then(|turnover| turnover.silent.pop()) {
            self.retire(now, flow);
        }
    }

    /// Creates the next flow of a group, if there is one.
    fn create_next(&mut self, now: Time, group: usize) {
        let Some(turnover) = &mut self.turnover else { return };
        let of = &mut turnover.groups[group];
        let next = of.draw();
        of.next = None;
        if let Some((start, arrival)) = next {
            let flow = self.create(now, group, start, arrival);
            if let Some(turnover) = &mut self.turnover {
                turnover.groups[group].next = Some(flow);
            }
        }
    }

    /// Creates a flow of a group; of a workload, what arrives with it.
    fn create(
        &mut self,
        now: Time,
        group: usize,
        Start { at, stop, number }: Start,
        arrival: Option<Arrival>,
    ) -> FlowId {
        let turnover = self.turnover.as_mut().expect("it has groups");
        let of = &mut turnover.groups[group];
        let alike = match (&of.work, &arrival) {
            (Some(work), Some(arrival)) => work.group(arrival.path),
            _ => &of.spec.group,
        };
        let id = format!("{}.{number}", of.spec.id).into();
        let pair = arrival.as_ref().map_or(number, |arrival| arrival.path as u64);
        let via = of.spec.pairs.as_ref().map(|pairs| pairs.via(pair));
        let spec = FlowSpec { id, group: Arc::clone(alike), start: at, stop, ends: None, via };
        let hosts = build::hosts(turnover.streams, &spec, &mut turnover.settings);
        let place = Place { group, number: of.first + number, on_way: 0, exists: true };
        let flow = turnover.free.pop().unwrap_or(FlowId::new(turnover.listed + turnover.places.len()));
        let schedule = build::schedule(turnover.streams, &spec);
        let application = build::application(turnover.streams, &spec);
        let mut built = Flow::new(flow, &spec, &of.names, schedule, application);
        if let (Some(_), Some(arrival)) = (&of.work, &arrival) {
            built = built.with_bytes(arrival.bytes);
        }
        match turnover.place(flow) {
            Some(known) => {
                *known = place;
                self.flows[flow] = built;
                for (host, state) in [flow.sender(), flow.receiver()].into_iter().zip(hosts) {
                    self.hosts[host] = state;
                }
                self.routes.replace_flow(flow, &spec);
            }
            None => {
                turnover.places.push(place);
                self.flows.push(built);
                self.routes.add_flow(flow, &spec);
                for state in hosts {
                    self.hosts.push(state);
                    self.host_wakeups.add_slot();
                }
            }
        }
        if let (Some(work), Some(arrival)) = (&mut turnover.groups[group].work, arrival) {
            work.created(flow, arrival, self.routes.links(self.routes.of(flow.sender(), 0)));
        }
        self.prepare(now, flow);
        flow
    }

    /// The client whose connection a flow is.
    pub(super) fn client_of(&mut self, flow: FlowId) -> Option<FlowId> {
        self.turnover.as_mut()?.client_of(flow)
    }

    /// A client opens a connection.
    pub(super) fn connect(&mut self, now: Time, client: FlowId) -> FlowId {
        let turnover = self.turnover.as_mut().expect("clients have groups");
        // Those of clients are behind the others, in the order of the clients.
        let group = turnover.groups.binary_search_by_key(&Some(client), |group| group.client);
        let group = group.expect("each client has one");
        let of = &mut turnover.groups[group];
        let start = Start { at: now, stop: self.flows[client].stop(), number: of.created };
        of.created += 1;
        of.alive += 1;
        turnover.alive += 1;
        self.create(now, group, start, None)
    }

    /// Counts a flow in the sums of its group if nothing of it can happen any more.
    fn retire(&mut self, now: Time, flow: FlowId) {
        let ends = [flow.sender(), flow.receiver()];
        let Some(turnover) = &mut self.turnover else { return };
        let Some(&mut Place { group, on_way: 0, exists: true, .. }) = turnover.place(flow) else { return };
        let is_idle =
            |host: HostId| self.hosts[host].is_finished() || self.hosts[host].next_deadline(now) == Time::NEVER;
        if !self.flows[flow].has_nothing_to_do() || !ends.into_iter().all(is_idle) {
            return;
        }
        let state = &mut self.flows[flow];
        state.finish_truth(now, self.records.tcp.as_deref_mut());
        let checked = ends.into_iter().try_for_each(|host| self.hosts[host].check(&state.id));
        turnover.failure = turnover.failure.take().or(checked.err());
        let of = &mut turnover.groups[group];
        let both = ends.map(|host| &self.hosts[host]);
        of.sums.add(state, both, false);
        if let Some(work) = &mut of.work {
            work.add(flow, state, both);
        }
        of.alive -= 1;
        turnover.alive -= 1;
        if let Some(client) = of.client {
            browsers::absorb(&mut self.flows, client, flow, ends.map(|host| &self.hosts[host]));
        }
        if let Some(place) = turnover.place(flow) {
            place.exists = false;
        }
        if !turnover.keeps {
            turnover.free.push(flow);
        }
        ends.into_iter().for_each(|host| self.host_wakeups.arm(host.slot(), Time::NEVER));
    }

    /// Data packets that flows which come and go have put on the wire so far.
    pub(super) fn passing_packets(&self) -> u64 {
        let Some(turnover) = &self.turnover else { return 0 };
        let ended: u64 = turnover.groups.iter().map(|group| group.sums.sent_packets()).sum();
        let existing = turnover.places.iter().enumerate().filter(|(_, place)| place.exists);
        let existing = existing.map(|(place, _)| FlowId::new(turnover.listed + place).sender());
        ended + existing.map(|host| self.hosts[host].sent_packets()).sum::<u64>()
    }

    /// The counts of flows that come and go, by groups.
    pub(super) fn passing_counts(&self) -> Vec<GroupCount> {
        let Some(turnover) = &self.turnover else { return Vec::new() };
        let ended = |group: &SummedGroup| GroupCount {
            client: group.client,
            // A client's flow has counted its connections that are over.
            count: if group.client.is_some() { FlowCount::default() } else { group.sums.count() },
        };
        let mut groups: Vec<GroupCount> = turnover.groups.iter().map(ended).collect();
        for (number, place) in turnover.places.iter().enumerate().filter(|(_, place)| place.exists) {
            let flow = FlowId::new(turnover.listed + number);
            let group = &mut groups[place.group];
            let count = self.flows[flow].count(&self.hosts[flow.sender()], &self.hosts[flow.receiver()]);
            // Its bytes were measured on the client's flow.
            group.count.add(&if group.client.is_some() { count.without_bytes() } else { count });
        }
        groups
    }

    /// The name of a group.
    pub(super) fn name_of_group(&self, group: usize) -> &str {
        self.turnover.as_ref().and_then(|turnover| turnover.groups.get(group)).map_or("", |group| &group.spec.id)
    }

    /// Counts, at the end of the run, the flows without pending events.
    pub(super) fn retire_idle(&mut self) {
        let listed = self.turnover.as_ref().map_or(self.flows.len(), |turnover| turnover.listed);
        (listed..self.flows.len()).for_each(|flow| self.retire(self.end, FlowId::new(flow)));
    }

    /// The number of listed flows, and the results of the other groups, once the run is over.
    pub(super) fn take_groups(&mut self) -> (usize, Passed) {
        let flows = self.flows.len();
        let Some(listed) = self.turnover.as_ref().map(|turnover| turnover.listed) else {
            return (flows, Passed::default());
        };
        let existing = listed..flows;
        self.retire_idle();
        let Some(mut turnover) = self.turnover.take() else { return (flows, Passed::default()) };
        for flow in existing.map(FlowId::new) {
            let Some(&mut Place { group, exists: true, .. }) = turnover.place(flow) else { continue };
            if self.flows[flow].has_started() {
                let ends = [flow.sender(), flow.receiver()].map(|host| &self.hosts[host]);
                let of = &mut turnover.groups[group];
                of.sums.add(&self.flows[flow], ends, true);
                if let Some(work) = &mut of.work {
                    work.add(flow, &self.flows[flow], ends);
                }
                if let Some(client) = of.client {
                    browsers::absorb(&mut self.flows, client, flow, ends);
                }
            }
        }
        let summary =
            |of: &SummedGroup| of.sums.summary(&of.spec.id, &of.names, of.spec.group.reverse, of.most_alive, self.end);
        let works = turnover.groups.iter().filter_map(|of| of.work.as_ref());
        let workloads = works.flat_map(|work| work.summary(self.end)).collect();
        let groups = turnover.groups.iter().filter(|of| of.client.is_none()).map(summary).collect();
        (listed, (groups, workloads))
    }
}

#[cfg(test)]
mod tests {
    use ackclock_units::{Random, Span};

    use super::*;
    use crate::spec::Poisson;
    use crate::tests::{flow, link, pfifo, spec};
    use crate::{Recorders, RunError};

    #[test]
    fn flows_that_come_faster_than_they_end_end_the_run() {
        let mut spec = spec(vec![link("a", pfifo(100))], Vec::new());
        spec.duration = Span::from_secs(2000);
        let mut group = flow("f", vec![0], false);
        group.bytes = Some(1_000_000);
        let arrivals = Poisson::new(Random::for_component(1, 0, "arrivals"), 5.0, Time::ZERO);
        let starts = Starts::Poisson { arrivals, count: 1_000_000, until: Time::NEVER, stop: None };
        spec.sums = vec![SumSpec { id: "f".to_owned(), group: group.group, starts, pairs: None, before: 0 }];
        let mut world = World::new(&spec);
        if let Some(turnover) = &mut world.turnover {
            turnover.most = 50;
        }
        // Four times what the link can carry: the 51st comes within some 15 s.
        let error = world.run(Recorders::default(), &mut |_| std::ops::ControlFlow::Continue(())).unwrap_err();
        let RunError::TooMany { group, alive, at } = error else { panic!("{error}") };
        assert_eq!((group.as_str(), alive), ("f", 51));
        assert!(at > Span::from_secs(9) && at < Span::from_secs(25), "{at}");
    }
}
