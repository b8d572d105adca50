//! The loop.

use std::ops::ControlFlow;

use ackclock_emulator::{LinkEvent, LinkEventKind};
use ackclock_engine::{Slot, Wakeups};
use ackclock_packet::{Packet, Pool, Segment, flow_hash};
use ackclock_trace::{QueueSink, Summary};
use ackclock_units::{Ecn, Time};

use crate::RunError;
use crate::build;
use crate::direction::Direction;
use crate::flow::Flow;
use crate::host::Host;
use crate::record::{QueueRecorder, QueueRecording, Recorders};
use crate::spec::{FlowSpec, RunSpec};

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
    /// The directions that packets of each host pass.
    routes: Vec<Vec<usize>>,
    flows: Vec<Flow>,
    pool: Pool<Segment>,
    /// What the link last called reported; empty between calls.
    events: Vec<LinkEvent>,
    /// The segment being sent.
    scratch: Segment,
    /// What recorded queues decided; `None` unless queues are recorded.
    recording: Option<Box<QueueRecording>>,
}

impl World {
    /// A world at time 0.
    pub fn new(spec: &RunSpec) -> World {
        let directions: Vec<Direction> = spec.links.iter().flat_map(|link| build::directions(spec, link)).collect();
        let mut hosts: Vec<Host> = spec.flows.iter().flat_map(|flow| build::hosts(spec, flow)).collect();
        let routes = spec.flows.iter().flat_map(routes).collect();
        let flows: Vec<Flow> = spec.flows.iter().map(Flow::new).collect();
        let mut wakeups = Wakeups::new();
        (0..directions.len() + hosts.len()).for_each(|_| {
            wakeups.add_slot();
        });
        hosts.iter_mut().skip(1).step_by(2).for_each(Host::listen);
        let mut world = World {
            spec: spec.clone(),
            end: Time::ZERO + spec.duration,
            wakeups,
            handled: 0,
            directions,
            hosts,
            routes,
            flows,
            pool: Pool::new(),
            events: Vec::new(),
            scratch: Segment::default(),
            recording: None,
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
        recorders: Recorders<'_>,
        progress: &mut dyn FnMut(Time) -> ControlFlow<()>,
    ) -> Result<(), RunError> {
        let mut sink = recorders.queues.map(|QueueRecorder { directions, sink }| {
            directions.iter().for_each(|&direction| self.directions[direction].link.record());
            self.recording = Some(Box::new(QueueRecording::new(directions)));
            sink
        });
        while let Some(now) = self.step(self.end) {
            if let Some(sink) = &mut sink
                && self.recording.as_ref().is_some_and(|recording| recording.is_full())
            {
                self.hand_on(now, now, *sink)?;
            }
            if self.handled.is_multiple_of(PROGRESS_INTERVAL) {
                self.check_data()?;
                if progress(now).is_break() {
                    return Err(RunError::Interrupted);
                }
            }
        }
        if let Some(sink) = sink {
            self.hand_on(self.end, Time::NEVER, sink)?;
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
        let World { recording, directions, flows, .. } = self;
        let Some(recording) = recording else { return Ok(()) };
        match recording.hand_on(until, |direction| &directions[direction].id, |flow| &flows[flow].id, sink) {
            ControlFlow::Continue(()) => Ok(()),
            ControlFlow::Break(()) => Err(RunError::Interrupted),
        }
    }

    /// Handles the next wakeup if it is due before `end`, and returns its time.
    pub fn step(&mut self, end: Time) -> Option<Time> {
        let (now, slot) = self.wakeups.peek().filter(|&(due, _)| due < end)?;
        self.wakeups.pop();
        self.handled += 1;
        let component = slot as usize;
        match component.checked_sub(self.directions.len()) {
            None => self.serve_direction(now, component),
            Some(host) => self.serve_host(now, host),
        }
        Some(now)
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
        match self.routes[from].get(usize::from(packet.hop)) {
            Some(&next) => {
                packet.hop += 1;
                self.offer(now, next, packet);
            }
            None => self.arrive(now, from ^ 1, packet),
        }
    }

    fn offer(&mut self, now: Time, direction: usize, packet: Packet) {
        self.directions[direction].link.offer(now, packet, &mut self.events);
        self.settle(direction);
        self.rearm_direction(direction);
    }

    /// Deals with what a link reported: records and measures it, and frees what will not arrive.
    fn settle(&mut self, direction: usize) {
        if self.recording.is_some() {
            self.note(direction);
        }
        for event in self.events.drain(..) {
            self.directions[direction].measure(&event);
            match event.kind {
                LinkEventKind::Offered | LinkEventKind::Sent { .. } => {}
                LinkEventKind::Dropped { packet, .. } | LinkEventKind::Lost { packet } => {
                    self.pool.release(packet.slot);
                }
                LinkEventKind::Duplicated { packet } => self.pool.retain(packet.slot),
            }
        }
    }

    /// Takes down what the queue of a link decided, while the packets' contents are there.
    #[cold]
    fn note(&mut self, direction: usize) {
        let Some(recording) = &mut self.recording else { return };
        for decision in self.directions[direction].link.decisions() {
            let payload = self.pool.get(decision.packet.slot).payload;
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
        let state = &mut self.hosts[host];
        let arrival = state.input(now, self.pool.get(packet.slot), packet.ecn);
        self.pool.release(packet.slot);
        let flow = &mut self.flows[host / 2];
        if is_sender(host) {
            flow.measure_ack(&arrival, state);
            flow.drive(now, state);
        } else {
            flow.measure_packet(now, packet.wire_len);
            state.read_all(now);
            if state.peer_finished() {
                // The sink has nothing to say: it closes when its peer has.
                state.close(now);
            }
        }
        self.pump(now, host);
    }

    /// A timer of a host, or its application's, is due.
    fn serve_host(&mut self, now: Time, host: usize) {
        let state = &mut self.hosts[host];
        if state.next_deadline(now) <= now {
            state.on_deadline(now);
        }
        if is_sender(host) {
            self.flows[host / 2].drive(now, state);
        }
        self.pump(now, host);
        self.rearm_host(now, host);
    }

    /// Sends what a host has to send, and notes a transfer that has come to its end.
    fn pump(&mut self, now: Time, host: usize) {
        while let Some(ecn) = self.hosts[host].transmit(now, &mut self.scratch) {
            self.send(now, host, ecn);
        }
        let flow = host / 2;
        if self.flows[flow].completed.is_none() && self.hosts[host].is_finished() && self.hosts[host ^ 1].is_finished()
        {
            self.flows[flow].completed = Some(now);
        }
        // Deadlines mostly move back; a wakeup that comes too early costs less than moving it each time.
        let due = self.host_due(now, host);
        let slot = self.host_slot(host);
        if due < self.wakeups.armed_at(slot) {
            self.wakeups.arm(slot, due);
        }
    }

    fn send(&mut self, now: Time, host: usize, ecn: Ecn) {
        let packet = Packet {
            flow_hash: flow_hash(host as u64 / 2, !is_sender(host)),
            slot: self.pool.insert(self.scratch),
            wire_len: self.scratch.wire_len(),
            route: host as u32,
            hop: 0,
            ecn,
        };
        self.forward(now, packet);
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
        for direction in 0..self.directions.len() {
            // Transmissions that ended since the last arrival; what arrives at the end or later has not arrived.
            self.directions[direction].link.catch_up(end, &mut self.events);
            self.settle(direction);
        }
        let flows: Vec<_> = (self.flows.iter_mut().zip(self.hosts.chunks(2)))
            .map(|(flow, ends)| flow.summary(end, &ends[0], &ends[1]))
            .collect();
        let goodputs = || flows.iter().map(|flow| flow.goodput_bps);
        let (sum, squares) = (goodputs().sum::<f64>(), goodputs().map(|x| x * x).sum::<f64>());
        Summary {
            schema: 1,
            title: self.spec.title.clone(),
            seed: self.spec.seed,
            run: self.spec.run,
            clock: "virtual",
            duration_s: self.spec.duration.as_secs_f64(),
            params: (),
            events: self.handled,
            packets: flows.iter().map(|flow| flow.sent_packets).sum(),
            links: self.directions.iter_mut().map(|direction| direction.summary(end)).collect(),
            fairness_jain: if squares > 0.0 { sum * sum / (flows.len() as f64 * squares) } else { 1.0 },
            flows,
        }
    }
}

fn is_sender(host: usize) -> bool {
    host.is_multiple_of(2)
}

/// The directions that packets of the sender and of the receiver of a flow pass.
fn routes(flow: &FlowSpec) -> [Vec<usize>; 2] {
    let along: Vec<usize> = flow.path.iter().map(|&link| 2 * link).collect();
    let back: Vec<usize> = flow.path.iter().rev().map(|&link| 2 * link + 1).collect();
    if flow.reverse { [back, along] } else { [along, back] }
}
