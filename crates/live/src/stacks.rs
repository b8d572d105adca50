//! Hosts with network stacks of one's own, by any clock, and their runs in virtual time.
//!
//! ```text
//!   Stack --- output ---> Engine::arrive
//!     ^                        |
//!     +------- input --- Engine::advance_stacks  earliest of: what is due in the engine, deadlines of stacks
//! ```
//!
//! At each time that something is due, packets are delivered first, then deadlines come, then the
//! stacks concerned send, in the order of the hosts.
//!
//! Stacks live in the time of the run: a loop by the machine's clock that is late calls them late,
//! each with the time at which something was due. Their decisions therefore depend on the arrivals
//! at devices alone, and a replay repeats them.

use std::ops::ControlFlow;
use std::panic::{AssertUnwindSafe, catch_unwind};
use std::sync::Arc;

use ackclock_sim::spec::{FlowSpec, LiveSpec, RunSpec};
use ackclock_sim::{CapturePoint, FlowId, QlogPoint, Recorders, RunError};
use ackclock_stack::{Neighbour, RecoveryEvent, Stack, StackHost, TcpSample};
use ackclock_trace::{AckRecord, CaptureRecord, LiveHost, LiveSummary, QlogRecord};
use ackclock_units::outside::Failure;
use ackclock_units::{Random, Span, Time};

use crate::capture::{CaptureDirection, CaptureWriter};
use crate::{Engine, LiveError, Outcome};

/// Virtual time between two calls of the recorders.
const STRIDE: Span = Span::from_millis(100);

/// The most packets that a stack sends at one time, and the most calls of its deadline: a stack
/// that never comes to an end has failed.
const PATIENCE: usize = 1 << 20;

/// Runs `spec`, whose hosts outside have stacks, and captures their packets. `progress` is called
/// with the time reached, and may stop the run.
///
/// # Panics
/// If `spec` has no external hosts.
pub(crate) fn run(
    spec: &RunSpec,
    recorders: Recorders<'_>,
    capture: Option<CaptureWriter>,
    progress: &mut dyn FnMut(Time) -> ControlFlow<()>,
) -> Outcome {
    let mut engine = Engine::new(spec);
    engine.world().start(&recorders);
    let stacks = Stacks { is_alone: true, ..Stacks::new(spec, &recorders) };
    let mut run = StackRun { engine, stacks, recorders, capture, recorded: Time::ZERO };
    let failure = run.play(Time::ZERO + spec.duration, progress).err();
    run.finish(Time::ZERO + spec.duration, failure)
}

/// The flows that host `node` sends, if they are of one group: the host's connections, in their order.
fn sent_by(spec: &RunSpec, node: usize) -> Vec<(FlowId, u64)> {
    let sends = |flow: &FlowSpec| flow.ends.is_some_and(|ends| ends.nodes[0] == node);
    let sent: Vec<_> = spec.flows.iter().enumerate().filter(|(_, flow)| sends(flow)).collect();
    let are_alike = sent.iter().all(|(_, flow)| Arc::ptr_eq(&flow.group, &sent[0].1.group));
    sent.iter().filter(|_| are_alike).map(|&(number, _)| (FlowId::new(number), 0)).collect()
}

/// Returns true if the end of a flow that is captured is host `node`.
fn is_at(spec: &RunSpec, point: CapturePoint, node: usize) -> bool {
    let CapturePoint::Host(host) = point else { return false };
    let ends = spec.flows.get(host.flow().index()).and_then(|flow| flow.ends);
    ends.is_some_and(|ends| ends.nodes[usize::from(!host.is_sender())] == node)
}

/// Sees each packet that reaches a stack or leaves it: its time, host, direction and bytes.
pub(crate) type Seen<'a> = dyn FnMut(Time, usize, CaptureDirection, &[u8]) + 'a;

/// The hosts of a run that have stacks.
pub(crate) struct Stacks {
    hosts: Vec<Host>,
    /// Everything before this time has been done.
    reached: Time,
    /// Steps in a row at this time.
    again: usize,
    /// Nothing comes from outside: a stack may go ahead of what has been done.
    is_alone: bool,
}

impl std::fmt::Debug for Stacks {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        let names = self.hosts.iter().map(|host| (&host.name, host.kind));
        f.debug_map().entries(names).finish()
    }
}

/// A host with its stack.
struct Host {
    node: usize,
    name: String,
    mtu: usize,
    /// `None` once it has panicked.
    stack: Option<Box<dyn Stack>>,
    kind: &'static str,
    /// Index of the log of its loss recovery, if there is one.
    log: Option<usize>,
    /// The flows that it sends, if their variables are recorded, each with the bytes acknowledged so
    /// far.
    sampled: Vec<(FlowId, u64)>,
    /// Index of the capture of its packets, if there is one.
    captured: Option<usize>,
    deadline: Time,
    /// It may have something to send now.
    is_awake: bool,
}

impl Host {
    fn new(spec: &RunSpec, live: &LiveSpec, node: usize) -> Option<Host> {
        let of = &live.nodes[node];
        let config = of.stack.as_ref()?;
        let addresses = |node: usize| live.nodes[node].addresses.iter().map(|&(address, _)| address).collect();
        let neighbours = live.pipes.iter().filter_map(|pipe| match pipe.between {
            [one, other] if one == node => Some(other),
            [other, one] if one == node => Some(other),
            _ => None,
        });
        let neighbour = |node: usize| Neighbour { name: live.nodes[node].name.clone(), addresses: addresses(node) };
        let host = StackHost {
            name: of.name.clone(),
            addresses: addresses(node),
            mtu: of.mtu,
            neighbours: neighbours.map(neighbour).collect(),
            texts: Vec::new(),
        };
        let random = Random::for_component(spec.seed, spec.run, &format!("hosts.{}.stack", of.name));
        Some(Host {
            node,
            name: of.name.clone(),
            mtu: of.mtu.into(),
            stack: Some(config.build(host, random)),
            kind: config.name(),
            log: None,
            sampled: Vec::new(),
            captured: None,
            deadline: Time::ZERO,
            is_awake: true,
        })
    }

    /// Captures a packet that has reached the host, or left it.
    fn capture(&self, recorders: &mut Recorders<'_>, at: Time, inbound: bool, packet: &[u8]) -> Result<(), RunError> {
        let (Some(capture), Some(recorder)) = (self.captured, &mut recorders.captures) else { return Ok(()) };
        let bytes = &packet[..packet.len().min(recorder.snaplen as usize)];
        let length = packet.len() as u32;
        let record = CaptureRecord { at, capture, interface: 0, bytes, length, inbound: Some(inbound), comment: None };
        match recorder.sink.record(&record) {
            ControlFlow::Continue(()) => Ok(()),
            ControlFlow::Break(()) => Err(RunError::Interrupted),
        }
    }

    fn fail(&self, failure: Failure) -> RunError {
        RunError::Own { of: format!("host {}, stack {}", self.name, self.kind), failure }
    }

    /// Calls the stack; a panic is a failure, after which it is not called any more.
    fn call<T>(&mut self, now: Time, call: impl FnOnce(&mut dyn Stack) -> T) -> Result<Option<T>, RunError> {
        let Some(mut stack) = self.stack.take() else { return Ok(None) };
        match catch_unwind(AssertUnwindSafe(|| call(&mut *stack))) {
            Ok(result) => {
                let failure = stack.failure().cloned();
                self.stack = Some(stack);
                failure.map_or(Ok(Some(result)), |failure| Err(self.fail(failure)))
            }
            Err(panic) => {
                let text = panic.downcast_ref::<String>().map(String::as_str);
                let text = text.or_else(|| panic.downcast_ref::<&str>().copied()).unwrap_or("without a message");
                Err(self.fail(Failure::new(now, format!("panicked: {text}"))))
            }
        }
    }
}

/// A sample as `tcp.csv` has it, after one of so many bytes acknowledged. Linux tells no
/// `fackets_out`.
fn variables(sample: &TcpSample, before: u64) -> AckRecord {
    AckRecord {
        ack: sample.acked,
        acked: sample.acked.saturating_sub(before),
        sacked_out: sample.sacked.into(),
        fackets_out: 0,
        retrans_out: sample.retransmitted.into(),
        lost_out: sample.lost.into(),
        reordering: sample.reordering,
        ca_state: sample.ca_state,
        cwnd: sample.cwnd,
        ssthresh: sample.ssthresh,
        pipe: sample.in_flight,
        rtt: None,
        srtt: sample.srtt,
        rto: sample.rto,
    }
}

impl Stacks {
    /// The stacks of `spec` at time 0, which note what is recorded.
    pub(crate) fn new(spec: &RunSpec, recorders: &Recorders<'_>) -> Stacks {
        let live = spec.live.as_deref().expect("a run with hosts outside");
        let mut hosts: Vec<Host> = (0..live.nodes.len()).filter_map(|node| Host::new(spec, live, node)).collect();
        let points = recorders.qlog.as_ref().map_or(&[][..], |recorder| recorder.points);
        for host in &mut hosts {
            host.log = points.iter().position(|point| *point == QlogPoint::Host(host.node));
            if recorders.tcp.is_some() {
                host.sampled = sent_by(spec, host.node);
            }
            let captures = recorders.captures.as_ref().map_or(&[][..], |recorder| recorder.points);
            host.captured = captures.iter().position(|point| is_at(spec, *point, host.node));
            if let (true, Some(stack)) = (host.log.is_some() || !host.sampled.is_empty(), &mut host.stack) {
                stack.observe();
            }
        }
        Stacks { hosts, reached: Time::ZERO, again: 0, is_alone: false }
    }

    pub(crate) fn is_empty(&self) -> bool {
        self.hosts.is_empty()
    }

    /// The earliest deadline of a stack; what is due in the engine may come before it.
    pub(crate) fn next_deadline(&self) -> Time {
        self.hosts.iter().map(|host| host.deadline).min().unwrap_or(Time::NEVER)
    }

    /// Does everything that is due in the engine and in stacks by `until`, each at its time, and
    /// leaves packets for devices to [`Engine::advance`]. Returns `false` if there was nothing to do.
    /// Required before a packet of a device enters at `until`, and before a change after it.
    ///
    /// # Errors
    /// A stack has failed, wrong data has come, or a recorder interrupts the run.
    pub(crate) fn settle(
        &mut self,
        engine: &mut Engine,
        until: Time,
        recorders: &mut Recorders<'_>,
        seen: &mut Seen<'_>,
    ) -> Result<bool, RunError> {
        if self.is_empty() {
            return Ok(false);
        }
        let mut any = false;
        loop {
            let now = self.next_deadline().min(engine.next_inside()).max(self.reached);
            if now > until {
                self.reached = self.reached.max(until);
                return Ok(any);
            }
            any = true;
            self.again = if now == self.reached { self.again + 1 } else { 0 };
            self.reached = now;
            self.deliver(engine, now, recorders, seen)?;
            for host in &mut self.hosts {
                if host.deadline <= now {
                    if self.again > PATIENCE {
                        let what = "the deadline that it gives has passed, again and again";
                        return Err(host.fail(Failure::new(now, what)));
                    }
                    host.call(now, |stack| stack.on_deadline(now))?;
                    host.is_awake = true;
                }
            }
            for number in 0..self.hosts.len() {
                if std::mem::take(&mut self.hosts[number].is_awake) {
                    let quiet = self.quiet_until(engine, number, now, until);
                    self.hosts[number].call(now, |stack| stack.quiet_until(quiet))?;
                    self.hosts[number].send(engine, now, recorders, seen)?;
                }
            }
        }
    }

    /// Hands over the packets that reach stacks by `now`.
    fn deliver(
        &mut self,
        engine: &mut Engine,
        now: Time,
        recorders: &mut Recorders<'_>,
        seen: &mut Seen<'_>,
    ) -> Result<(), RunError> {
        while let Some(packet) = engine.advance_stacks(now) {
            seen(packet.at, packet.node, CaptureDirection::ToHost, packet.bytes);
            if let Some(host) = self.hosts.iter_mut().find(|host| host.node == packet.node) {
                host.capture(recorders, packet.at, true, packet.bytes)?;
                host.call(packet.at, |stack| stack.input(packet.at, packet.bytes))?;
                host.is_awake = true;
            }
        }
        engine.error().map_or(Ok(()), |error| Err(error.clone()))
    }

    /// The time before which nothing happens but what host `number` does: those after it have not sent
    /// yet, and packets of devices may come after `until`.
    fn quiet_until(&self, engine: &Engine, number: usize, now: Time, until: Time) -> Time {
        if self.hosts[number + 1..].iter().any(|host| host.is_awake) {
            return now;
        }
        let others = self.hosts.iter().enumerate().filter(|&(other, _)| other != number);
        let due = others.map(|(_, host)| host.deadline).min().unwrap_or(Time::NEVER);
        let due = due.min(engine.next_inside());
        if self.is_alone { due } else { due.min(until) }
    }

    /// Adds the results of a run that ended at `ended` to those of `hosts` that have stacks.
    pub(crate) fn report(&mut self, ended: Time, hosts: &mut [LiveHost]) {
        for host in &mut self.hosts {
            let mut results = serde_json::Map::new();
            // A stack that panics here has failed already, or has no results.
            let _ = host.call(ended, |stack| {
                stack.results(ended, &mut |name, value| {
                    results.insert(name.to_owned(), value.into());
                });
            });
            if let Some(found) = hosts.iter_mut().find(|found| found.id == host.name) {
                found.stack = Some(host.kind.into());
                found.results = Some(results.into());
            }
        }
    }
}

impl Host {
    /// The stack sends what it has, and says when it is due again.
    fn send(
        &mut self,
        engine: &mut Engine,
        now: Time,
        recorders: &mut Recorders<'_>,
        seen: &mut Seen<'_>,
    ) -> Result<(), RunError> {
        let (node, mtu) = (self.node, self.mtu);
        for packets in 0.. {
            if packets > PATIENCE {
                return Err(self.fail(Failure::new(now, format!("sends more than {PATIENCE} packets at one time"))));
            }
            let buffer = &mut engine.buffer()[..mtu];
            let Some(Some(len)) = self.call(now, |stack| stack.output(now, buffer))? else { break };
            if len > mtu {
                return Err(self.fail(Failure::new(now, format!("returned {len} bytes of a packet, of {mtu} at most"))));
            }
            let packet = &engine.buffer()[..len];
            seen(now, node, CaptureDirection::FromHost, packet);
            self.capture(recorders, now, false, packet)?;
            engine.arrive(now, node, len);
        }
        self.deadline = self.call(now, |stack| stack.next_deadline())?.unwrap_or(Time::NEVER);
        if self.log.is_some() || !self.sampled.is_empty() {
            let (log, mut taken) = (self.log, ControlFlow::Continue(()));
            let mut sampled = std::mem::take(&mut self.sampled);
            let (world, qlog) = (engine.world(), &mut recorders.qlog);
            self.call(now, |stack| {
                stack.observed(&mut |at, event| {
                    if let RecoveryEvent::Sampled(sample) = event
                        && let Some((flow, acked)) = sampled.get_mut(sample.connection as usize)
                    {
                        world.sampled(at.max(now), *flow, variables(&sample, std::mem::replace(acked, sample.acked)));
                    } else if let (Some(log), Some(recorder), true) = (log, &mut *qlog, taken.is_continue()) {
                        taken = recorder.sink.record(&QlogRecord { at, log, subflow: None, event });
                    }
                });
            })?;
            self.sampled = sampled;
            if taken.is_break() {
                return Err(RunError::Interrupted);
            }
        }
        Ok(())
    }
}

/// A run in virtual time.
struct StackRun<'a> {
    engine: Engine,
    stacks: Stacks,
    recorders: Recorders<'a>,
    capture: Option<CaptureWriter>,
    /// Everything before this time has been recorded.
    recorded: Time,
}

impl StackRun<'_> {
    fn play(&mut self, end: Time, progress: &mut dyn FnMut(Time) -> ControlFlow<()>) -> Result<(), LiveError> {
        loop {
            let due = self.stacks.next_deadline().min(self.engine.next_inside());
            let now = due.max(self.stacks.reached);
            self.keep_up(now.min(end), progress)?;
            if now >= end {
                return Ok(());
            }
            let capture = &mut self.capture;
            self.stacks.settle(&mut self.engine, now, &mut self.recorders, &mut |at, node, way, bytes| {
                if let Some(capture) = capture {
                    capture.packet(at, node, way, bytes);
                }
            })?;
        }
    }

    /// Records what was done before `now`.
    fn keep_up(&mut self, now: Time, progress: &mut dyn FnMut(Time) -> ControlFlow<()>) -> Result<(), LiveError> {
        while now.since(self.recorded) >= STRIDE {
            self.recorded += STRIDE;
            let last = Time::from_nanos(self.recorded.as_nanos() - 1);
            // Nothing is due by then, but links catch up.
            while self.engine.advance_stacks(last).is_some() {}
            self.engine.world().keep_up(last, &mut self.recorders)?;
            if progress(self.recorded).is_break() {
                return Err(LiveError::Interrupted);
            }
            if self.capture.as_ref().is_some_and(CaptureWriter::failed) {
                return Err(LiveError::Interrupted);
            }
        }
        Ok(())
    }

    /// Completes the run, whole or in part.
    fn finish(mut self, end: Time, failure: Option<LiveError>) -> Outcome {
        let ended = if failure.is_some() { self.stacks.reached.max(self.recorded).min(end) } else { end };
        self.engine.world().end_at(ended);
        let complete = self.engine.complete(&mut self.recorders).err();
        let mut summary = self.engine.world().summary();
        let mut hosts: Vec<LiveHost> = self.engine.hosts().cloned().collect();
        self.stacks.report(ended, &mut hosts);
        // A capture that cannot be written has broken the run off, and says more about it.
        let captured = self.capture.map_or(Ok(()), |capture| capture.finish(ended));
        let broken_off = captured.err().or(failure).or(complete.map(LiveError::Run));
        summary.partial = broken_off.is_some();
        let invalid: Vec<String> = self.engine.faults().collect();
        summary.live =
            Some(LiveSummary { clock: "virtual", valid: invalid.is_empty(), invalid, hosts, ..LiveSummary::default() });
        Outcome { summary, broken_off }
    }
}
