//! The loop.

use std::ops::ControlFlow;

use ackclock_emulator::{LinkEvent, LinkEventKind, Split};
use ackclock_engine::{Slot, Wakeups};
use ackclock_packet::{Class, Packet, Pool, Segment, flow_hash};
use ackclock_tcp::{Arrival, CaState, Endpoint};
use ackclock_trace::{AckRecord, ErttSink, QueueSink, SiftrSink, Summary, TcpSink, jain};
use ackclock_units::{Ecn, Random, Time};

use crate::build;
use crate::direction::{Direction, LOST_ON_LINK};
use crate::error::RunError;
use crate::flow::Flow;
use crate::host::Host;
use crate::log::HostLog;
use crate::record::{QueueRecorder, QueueRecording, Recorders, TcpFact, TcpRecording};
use crate::spec::{Clock, FlowSpec, RunSpec};
use crate::truth::{Culprit, RECEIVER};
use crate::window::Windows;
use outside::Outside;
pub use outside::{FlowEnd, Inbound, Outbound};

mod outside;

/// Wakeups between two calls of the progress hook.
const PROGRESS_INTERVAL: u64 = 1 << 16;

/// A run in progress.
///
/// Components are numbered: link directions first, two for each link, forward and reverse; then hosts, two for each flow,
/// sender and receiver. Wakeups due at the same time are handled in order of these numbers.
#[derive(Debug)]
pub struct World {
    spec: RunSpec,
    end: Time,
    wakeups: Wakeups,
    handled: u64,
    directions: Vec<Direction>,
    hosts: Vec<Host>,
    /// The routes of the packets of each host, and behind them the secondary paths of flows that have one.
    routes: Vec<Route>,
    /// Which of two paths packets take.
    splits: Vec<Split>,
    /// Hosts that send over two paths, in order of the hosts.
    sharing: Vec<Sharing>,
    flows: Vec<Flow>,
    pool: Pool<Contents>,
    /// What the link last called reported; empty between calls.
    events: Vec<LinkEvent>,
    /// The slot of the next packet that is sent.
    spare: u32,
    /// What recorded queues decided; `None` unless queues are recorded.
    recording: Option<Box<QueueRecording>>,
    /// What happened to flows; `None` unless they are recorded.
    tcp_recording: Option<Box<TcpRecording>>,
    /// What hosts log; `None` unless they do.
    log: Option<Box<HostLog>>,
    windows: Windows,
    /// When the next window starts or ends.
    next_edge: Time,
    /// Hosts that are not ours; `None` if all are.
    outside: Option<Box<Outside>>,
}

/// The way of packets.
#[derive(Debug)]
struct Route {
    /// Link directions.
    links: Vec<usize>,
    /// The host at the end.
    to: usize,
}

/// A host that sends over two paths: the sender of a flow, or, where the paths of others do, its receiver.
#[derive(Debug)]
struct Sharing {
    host: usize,
    /// By number.
    split: usize,
    /// The route over the secondary path.
    secondary: usize,
}

/// What a packet holds.
#[derive(Clone, Copy, Debug, Default)]
struct Contents {
    segment: Segment,
    /// From a sender: which transmission with data it is, or 0. From a receiver: which packet.
    number: u64,
}

impl World {
    /// A world at time 0.
    pub fn new(spec: &RunSpec) -> World {
        let directions: Vec<Direction> = spec.links.iter().flat_map(|link| build::directions(spec, link)).collect();
        let mut hosts: Vec<Host> = spec.flows.iter().flat_map(|flow| build::hosts(spec, flow)).collect();
        let mut routes: Vec<Route> = spec.flows.iter().enumerate().flat_map(|(n, flow)| primary(n, flow)).collect();
        let (mut splits, mut sharing) = (Vec::new(), Vec::new());
        for (flow, spec) in spec.flows.iter().enumerate() {
            let Some(second) = spec.secondary.as_ref().filter(|_| spec.ends.is_none()) else { continue };
            sharing.push(Sharing { host: 2 * flow, split: splits.len(), secondary: routes.len() });
            splits.push(Split::new(second.vector));
            let [links, _] = ways(&second.path, spec.reverse);
            routes.push(Route { links, to: 2 * flow + 1 });
        }
        let flows: Vec<Flow> = spec
            .flows
            .iter()
            .enumerate()
            .map(|(number, flow)| Flow::new(number, flow, build::schedule(spec, flow)))
            .collect();
        let mut wakeups = Wakeups::new();
        (0..directions.len() + hosts.len()).for_each(|_| {
            wakeups.add_slot();
        });
        hosts.iter_mut().skip(1).step_by(2).for_each(Host::listen);
        for sender in hosts.iter_mut().step_by(2) {
            if let Host::Endpoint(endpoint) = sender {
                endpoint.observe_losses();
            }
        }
        let outside = Outside::new(spec, &mut routes, &mut splits, &mut sharing);
        sharing.sort_unstable_by_key(|sharing| sharing.host);
        let windows = Windows::new(&spec.windows);
        let mut pool = Pool::new();
        let mut world = World {
            spec: spec.clone(),
            end: Time::ZERO + spec.duration,
            wakeups,
            handled: 0,
            directions,
            hosts,
            routes,
            splits,
            sharing,
            flows,
            spare: pool.insert(Contents::default()),
            pool,
            events: Vec::new(),
            recording: None,
            tcp_recording: None,
            log: None,
            next_edge: windows.next_edge(),
            windows,
            outside,
        };
        for host in 0..world.hosts.len() {
            world.rearm_host(Time::ZERO, host);
        }
        world
    }

    /// Runs to the end of the scenario.
    ///
    /// # Errors
    /// Corrupted data, or an interruption by `progress` or a recorder.
    ///
    /// # Panics
    /// If there is no such direction as is to be recorded, or its packets were not recorded from the first one on.
    pub fn run(
        &mut self,
        mut recorders: Recorders<'_>,
        progress: &mut dyn FnMut(Time) -> ControlFlow<()>,
    ) -> Result<(), RunError> {
        self.start(&recorders);
        while let Some(now) = self.step(self.end) {
            self.keep_up(now, &mut recorders)?;
            if self.handled.is_multiple_of(PROGRESS_INTERVAL) {
                self.check_data()?;
                if progress(now).is_break() {
                    return Err(RunError::Interrupted);
                }
            }
        }
        self.complete(&mut recorders)
    }

    /// Begins to record: before the first step.
    ///
    /// # Panics
    /// If there is no such direction as is to be recorded, or its packets were not recorded from the first one on.
    pub fn start(&mut self, recorders: &Recorders<'_>) {
        if let Some(QueueRecorder { directions, .. }) = &recorders.queues {
            directions.iter().for_each(|&direction| self.directions[direction].link.record());
            self.recording = Some(Box::new(QueueRecording::new(directions)));
        }
        self.log = HostLog::new(recorders.siftr.is_some(), recorders.ertt.is_some().then_some(self.flows.len()));
        if recorders.tcp.is_some() {
            self.tcp_recording = Some(Box::new(TcpRecording::new()));
        }
    }

    /// Hands records on once there are many: after every step, the last of which was at `now`.
    ///
    /// # Errors
    /// An interruption by a recorder.
    #[inline]
    pub fn keep_up(&mut self, now: Time, recorders: &mut Recorders<'_>) -> Result<(), RunError> {
        if let Some(sink) = &mut recorders.tcp
            && self.tcp_recording.as_ref().is_some_and(|recording| recording.is_full())
        {
            self.hand_on_tcp(now, now, *sink)?;
        }
        if let Some(QueueRecorder { sink, .. }) = &mut recorders.queues
            && self.recording.as_ref().is_some_and(|recording| recording.is_full())
        {
            self.hand_on(now, now, *sink)?;
        }
        if self.log.as_ref().is_some_and(|log| log.is_full()) {
            self.hand_on_log(recorders.siftr.as_deref_mut(), recorders.ertt.as_deref_mut())?;
        }
        Ok(())
    }

    /// Hands the last records on: after the last step.
    ///
    /// # Errors
    /// Corrupted data, or an interruption by a recorder.
    pub fn complete(&mut self, recorders: &mut Recorders<'_>) -> Result<(), RunError> {
        self.hand_on_log(recorders.siftr.as_deref_mut(), recorders.ertt.as_deref_mut())?;
        if let Some(QueueRecorder { sink, .. }) = &mut recorders.queues {
            self.hand_on(self.end, Time::NEVER, *sink)?;
        }
        if let Some(sink) = &mut recorders.tcp {
            self.finish();
            self.hand_on_tcp(self.end, Time::NEVER, *sink)?;
        }
        self.check_data()
    }

    /// Hands the records from before `until` on. Late calls change nothing, so that early ones do not either: every recorded
    /// link first does what is due until `now`.
    #[cold]
    fn hand_on(&mut self, now: Time, until: Time, sink: &mut dyn QueueSink) -> Result<(), RunError> {
        let direction = |world: &World, n: usize| world.recording.as_ref()?.directions().get(n).copied();
        for n in 0.. {
            let Some(direction) = direction(self, n) else { break };
            self.directions[direction].link.catch_up(now, &mut self.events);
            self.settle(direction);
        }
        let World { recording, directions, flows, routes, .. } = self;
        let Some(recording) = recording else { return Ok(()) };
        // What is of no flow goes to no host of one.
        let flow = |route: usize| flows.get(routes[route].to / 2).map_or("", |flow| flow.id.as_str());
        match recording.hand_on(until, |direction| &directions[direction].id, flow, sink) {
            ControlFlow::Continue(()) => Ok(()),
            ControlFlow::Break(()) => Err(RunError::Interrupted),
        }
    }

    /// The same for the records of flows. What became of a packet may be known on any link.
    #[cold]
    fn hand_on_tcp(&mut self, now: Time, until: Time, sink: &mut dyn TcpSink) -> Result<(), RunError> {
        self.catch_up(now);
        let World { tcp_recording, directions, flows, .. } = self;
        let Some(recording) = tcp_recording else { return Ok(()) };
        let link = |direction: Option<usize>| direction.map_or(RECEIVER, |direction| directions[direction].id.as_str());
        match recording.hand_on(until, link, |flow| &flows[flow].id, sink) {
            ControlFlow::Continue(()) => Ok(()),
            ControlFlow::Break(()) => Err(RunError::Interrupted),
        }
    }

    /// Hands on what hosts have logged.
    #[cold]
    fn hand_on_log<'a>(
        &mut self,
        siftr: Option<&mut (dyn SiftrSink + 'a)>,
        ertt: Option<&mut (dyn ErttSink + 'a)>,
    ) -> Result<(), RunError> {
        let World { log, flows, .. } = self;
        let Some(log) = log else { return Ok(()) };
        match log.hand_on(|flow| flows[flow].id.as_str(), siftr, ertt) {
            ControlFlow::Continue(()) => Ok(()),
            ControlFlow::Break(()) => Err(RunError::Interrupted),
        }
    }

    /// Every link does what is due until `now` on its sending side.
    fn catch_up(&mut self, now: Time) {
        for direction in 0..self.directions.len() {
            self.directions[direction].link.catch_up(now, &mut self.events);
            self.settle(direction);
        }
    }

    /// The run is over: transmissions that ended since the last arrival are done, and every transmission is judged. What
    /// arrives at the end or later has not arrived.
    fn finish(&mut self) {
        self.catch_up(self.end);
        for flow in &mut self.flows {
            flow.truth.finish(self.end, self.tcp_recording.as_deref_mut());
        }
    }

    /// Handles the next wakeup if it is due before `end`, and returns its time.
    pub fn step(&mut self, end: Time) -> Option<Time> {
        // It stays where it is until it is armed anew.
        let (now, slot) = self.wakeups.peek().filter(|&(due, _)| due < end)?;
        if now >= self.next_edge {
            self.pass_edges(now);
        }
        self.handled += 1;
        let component = slot as usize;
        match component.checked_sub(self.directions.len()) {
            None => self.serve_direction(now, component),
            Some(host) => self.serve_host(now, host),
        }
        Some(now)
    }

    /// Windows start and end that do so until `now`, before which everything has been handled.
    #[cold]
    fn pass_edges(&mut self, now: Time) {
        while self.next_edge <= now {
            self.catch_up(self.next_edge);
            self.windows.pass(&self.flows, &self.hosts, &self.directions);
            self.next_edge = self.windows.next_edge();
        }
    }

    fn check_data(&self) -> Result<(), RunError> {
        self.hosts.iter().enumerate().try_for_each(|(host, state)| state.check(&self.flows[host / 2].id))
    }

    /// Packets have arrived at the far end of a link direction.
    fn serve_direction(&mut self, now: Time, direction: usize) {
        while let Some((at, packet)) = self.directions[direction].link.deliver(now, &mut self.events) {
            self.settle(direction);
            self.forward(at, packet);
        }
        self.settle(direction);
        self.rearm_direction(direction);
    }

    /// A packet stands behind `packet.hop` links of its route: on to the next one, or to its host.
    fn forward(&mut self, now: Time, mut packet: Packet) {
        let from = packet.route as usize;
        let route = &self.routes[from];
        match route.links.get(usize::from(packet.hop)) {
            Some(&next) => {
                packet.hop += 1;
                self.offer(now, next, packet);
            }
            None => self.arrive(now, route.to, packet),
        }
    }

    fn offer(&mut self, now: Time, direction: usize, packet: Packet) {
        self.directions[direction].link.offer(now, packet, &mut self.events);
        self.settle(direction);
        self.rearm_direction(direction);
    }

    /// Deals with what a link reported: records and measures it, and frees what will not arrive.
    #[inline]
    fn settle(&mut self, direction: usize) {
        if !self.events.is_empty() || self.recording.is_some() {
            self.settle_events(direction);
        }
    }

    fn settle_events(&mut self, direction: usize) {
        if self.recording.is_some() {
            self.note(direction);
        }
        let World { events, directions, pool, flows, hosts, routes, tcp_recording, outside, .. } = self;
        let measures = &mut directions[direction];
        for event in &*events {
            measures.measure(event);
            let (packet, reason, probability) = match event.kind {
                LinkEventKind::Offered | LinkEventKind::Sent { .. } => continue,
                LinkEventKind::Dropped { packet, reason, probability } => (packet, reason.name(), probability),
                LinkEventKind::Lost { packet, probability } => (packet, LOST_ON_LINK, probability),
                LinkEventKind::Duplicated { packet } => {
                    pool.retain(packet.slot);
                    continue;
                }
            };
            let to = routes[packet.route as usize].to;
            let number = pool.get(packet.slot).number;
            // A doubled packet may still arrive.
            let last = pool.references(packet.slot) == 1;
            if let Some(outside) = outside {
                outside.free(pool, packet.slot);
            }
            if to < hosts.len() && !is_sender(to) && number > 0 && last {
                let culprit = Culprit { direction: Some(direction), reason, probability };
                flows[to / 2].truth.lost(event.at, number, culprit, tcp_recording.as_deref_mut());
            }
            pool.release(packet.slot);
        }
        events.clear();
    }

    /// Takes down what the queue of a link decided, while the packets' contents are there.
    #[cold]
    fn note(&mut self, direction: usize) {
        let Some(recording) = &mut self.recording else { return };
        for decision in self.directions[direction].link.decisions() {
            let payload = self.pool.get(decision.packet.slot).segment.payload;
            recording.add(direction, decision, payload);
        }
    }

    fn rearm_direction(&mut self, direction: usize) {
        let due = self.directions[direction].link.next_due();
        if due != self.wakeups.armed_at(direction as Slot) {
            self.wakeups.arm(direction as Slot, due);
        }
    }

    /// A packet has reached its host.
    fn arrive(&mut self, now: Time, host: usize, packet: Packet) {
        if !is_sender(host) && !self.sharing.is_empty() {
            self.catch_up_paths(now, host ^ 1);
        }
        if self.leaves(host) {
            return self.leave(now, host, packet);
        }
        if let Some(log) = &mut self.log {
            log.segment(now, host, &self.hosts[host], true);
        }
        let state = &mut self.hosts[host];
        let Contents { segment, number } = self.pool.get(packet.slot);
        let arrival = state.input(now, segment, packet.ecn);
        let number = *number;
        if let Some(outside) = &mut self.outside {
            outside.free(&self.pool, packet.slot);
        }
        self.pool.release(packet.slot);
        let flow = &mut self.flows[host / 2];
        let mut log = self.tcp_recording.as_deref_mut();
        if is_sender(host) {
            flow.measure_ack(&arrival, state);
            if let Host::Endpoint(endpoint) = state {
                if let Some(log) = &mut self.log {
                    log.acknowledged(now, host / 2, endpoint);
                }
                if let Some(log) = log.as_deref_mut().filter(|_| arrival.is_ack) {
                    log.add(now, host / 2, TcpFact::Ack(acknowledgment(endpoint, &arrival)));
                }
                for declared in endpoint.loss_declarations() {
                    flow.truth.declared(now, declared, log.as_deref_mut());
                }
            }
            if flow.truth.has_losses() {
                flow.truth.sender_received(now, number, state.acked_bytes(), state.srtt(), log);
            }
            flow.drive(now, state);
            if flow.is_complete(state.acked_bytes()) {
                flow.complete(now, &self.hosts[host ^ 1]);
            }
        } else {
            if number > 0 {
                flow.truth.arrived(now, number, |from, to| state.holds(from, to), log);
            }
            flow.measure_packet(now, packet.wire_len);
            state.read_all(now);
            if state.peer_finished() {
                // The sink has nothing to say: it closes when its peer has.
                state.close(now);
            }
        }
        self.pump(now, host, false);
    }

    /// What a packet that arrives over one path tells about those on the other depends on what happened there before.
    #[cold]
    fn catch_up_paths(&mut self, now: Time, sender: usize) {
        let Ok(index) = self.sharing.binary_search_by_key(&sender, |sharing| sharing.host) else { return };
        for route in [sender, self.sharing[index].secondary] {
            for hop in 0..self.routes[route].links.len() {
                let direction = self.routes[route].links[hop];
                self.directions[direction].link.catch_up(now, &mut self.events);
                self.settle(direction);
            }
        }
    }

    /// A timer of a host, or its application's, is due.
    fn serve_host(&mut self, now: Time, host: usize) {
        let state = &mut self.hosts[host];
        let by_timer = state.next_deadline(now) <= now;
        if by_timer {
            state.on_deadline(now);
        }
        if is_sender(host) {
            let flow = &mut self.flows[host / 2];
            if let Host::Endpoint(endpoint) = state {
                for declared in endpoint.loss_declarations() {
                    flow.truth.declared(now, declared, self.tcp_recording.as_deref_mut());
                }
            }
            flow.drive(now, state);
        }
        self.pump(now, host, by_timer);
        self.rearm_host(now, host);
    }

    /// Sends what a host has to send, and notes a transfer that has come to its end. `by_timer` is whether a timer was due.
    fn pump(&mut self, now: Time, host: usize, by_timer: bool) {
        while let Some(ecn) = self.hosts[host].transmit(now, &mut self.pool.get_mut(self.spare).segment) {
            self.send(now, host, ecn, by_timer);
        }
        let flow = host / 2;
        if !self.flows[flow].is_finished() && self.hosts[host].is_finished() && self.hosts[host ^ 1].is_finished() {
            self.flows[flow].finish(now);
        }
        // Deadlines mostly move back; a wakeup that comes too early costs less than moving it each time.
        let due = self.host_due(now, host);
        let slot = self.host_slot(host);
        if due < self.wakeups.armed_at(slot) {
            self.wakeups.arm(slot, due);
        }
    }

    fn send(&mut self, now: Time, host: usize, ecn: Ecn, by_timer: bool) {
        if let Some(log) = &mut self.log {
            log.segment(now, host, &self.hosts[host], false);
        }
        let (state, truth) = (&self.hosts[host], &mut self.flows[host / 2].truth);
        let contents = self.pool.get_mut(self.spare);
        contents.number = match is_sender(host) {
            true => match state.range_of(&contents.segment) {
                Some((from, to)) => truth.sent(now, state.stamp(now), from, to, state.sent_as(by_timer)),
                None => 0,
            },
            false => truth.receiver_sent(),
        };
        let wire_len = contents.segment.wire_len();
        let class = Class::new(0, contents.segment.is_pure_ack());
        let packet = Packet {
            flow_hash: flow_hash(host as u64 / 2, !is_sender(host)),
            slot: std::mem::replace(&mut self.spare, self.pool.claim()),
            wire_len,
            route: self.route(host) as u32,
            hop: 0,
            ecn,
            class,
        };
        match &self.outside {
            Some(outside) if wire_len > outside.mtu(host) => self.refuse(now, host, packet),
            _ => self.forward(now, packet),
        }
    }

    /// The route of the next packet of a host.
    fn route(&mut self, host: usize) -> usize {
        if self.sharing.is_empty() {
            return host;
        }
        match self.sharing.binary_search_by_key(&host, |sharing| sharing.host).map(|index| &self.sharing[index]) {
            Ok(sharing) if self.splits[sharing.split].takes_secondary() => sharing.secondary,
            _ => host,
        }
    }

    fn host_slot(&self, host: usize) -> Slot {
        (self.directions.len() + host) as Slot
    }

    fn host_due(&self, now: Time, host: usize) -> Time {
        let due = self.hosts[host].next_deadline(now);
        if is_sender(host) { due.min(self.flows[host / 2].next_action()) } else { due }
    }

    fn rearm_host(&mut self, now: Time, host: usize) {
        let due = self.host_due(now, host);
        let slot = self.host_slot(host);
        self.wakeups.arm(slot, due);
    }

    /// The summary, at the end of the run.
    ///
    /// # Panics
    /// If the books of a queue do not balance.
    pub fn summary(&mut self) -> Summary<()> {
        let end = self.end;
        self.finish();
        self.pass_edges(end);
        self.windows.break_off(end, &self.flows, &self.hosts, &self.directions);
        let directions = &self.directions;
        let flows: Vec<_> = (self.flows.iter_mut().zip(self.hosts.chunks(2)))
            .map(|(flow, ends)| flow.summary(end, &ends[0], &ends[1], |link| &directions[link].id))
            .collect();
        let way = |reverse: bool| flows.iter().zip(&self.flows).filter(move |(_, flow)| flow.reverse == reverse);
        let jain_of = |reverse| jain(way(reverse).map(|(flow, _)| flow.goodput_bps));
        Summary {
            schema: 1,
            title: self.spec.title.clone(),
            seed: self.spec.seed,
            run: self.spec.run,
            index: self.spec.run,
            run_seed: format!("{:016x}", Random::seed_of_run(self.spec.seed, self.spec.run)),
            clock: match self.spec.live.as_deref().map(|live| &live.clock) {
                None => "virtual",
                Some(Clock::Real) => "live",
                Some(Clock::Replay(_)) => "replay",
            },
            partial: end < Time::ZERO + self.spec.duration,
            live: None,
            commands: Vec::new(),
            duration_s: end.as_secs_f64(),
            params: (),
            events: self.handled,
            packets: flows.iter().map(|flow| flow.sent_packets).sum(),
            links: self.directions.iter_mut().map(|direction| direction.summary(end)).collect(),
            fairness_jain: jain(flows.iter().map(|flow| flow.goodput_bps)),
            fairness_jain_forward: jain_of(false),
            fairness_jain_reverse: jain_of(true),
            flows,
            windows: self.windows.take(),
        }
    }
}

fn is_sender(host: usize) -> bool {
    host.is_multiple_of(2)
}

/// The routes of the packets of the sender and of the receiver of a flow.
fn primary(number: usize, flow: &FlowSpec) -> [Route; 2] {
    let [data, acks] = ways(&flow.path, flow.reverse);
    [Route { links: data, to: 2 * number + 1 }, Route { links: acks, to: 2 * number }]
}

/// The directions of a path, along and back; the other way round if the data goes against it.
fn ways(path: &[usize], reverse: bool) -> [Vec<usize>; 2] {
    let along: Vec<usize> = path.iter().map(|&link| 2 * link).collect();
    let back: Vec<usize> = path.iter().rev().map(|&link| 2 * link + 1).collect();
    if reverse { [back, along] } else { [along, back] }
}

/// The row of an ACK that a sender has taken in.
#[cold]
fn acknowledgment(sender: &Endpoint, arrival: &Arrival) -> AckRecord {
    let now = sender.snapshot();
    AckRecord {
        ack: now.acked,
        acked: arrival.acked,
        sacked_out: now.counts.sacked_out,
        fackets_out: now.counts.fackets_out,
        retrans_out: now.counts.retrans_out,
        lost_out: now.counts.lost_out,
        reordering: now.counts.reordering,
        ca_state: match now.ca_state {
            CaState::Open => "Open",
            CaState::Disorder => "Disorder",
            CaState::Cwr => "CWR",
            CaState::Recovery => "Recovery",
            CaState::Loss => "Loss",
        },
        cwnd: now.cwnd,
        ssthresh: Some(now.ssthresh).filter(|&ssthresh| ssthresh < u64::MAX),
        pipe: now.pipe,
        rtt: arrival.rtt,
        srtt: now.srtt,
        rto: now.rto,
    }
}
