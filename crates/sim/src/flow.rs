//! A flow: its traffic and what is measured on it.

use std::collections::BTreeMap;
use std::mem::offset_of;
use std::sync::Arc;

use ackclock_cc::CongestionControl;
use ackclock_packet::flow_hash;
use ackclock_tcp::Acknowledgment;
use ackclock_trace::{FlowSummary, Histogram, Limited, MeanQuantiles};
use ackclock_traffic::ProbeTimes;
use ackclock_units::{Span, Time, prefetch_part};

use crate::host::{Host, Writable, totals};
use crate::index::{DirectionId, FlowId};
use crate::record::SenderId;
use crate::spec::{FlowSpec, HostSpec};
use crate::truth::Truth;
pub(crate) use application::{ApplicationState, ConnectionChoice};
pub(crate) use classes::{ClassSums, FlowOutcome, Ideal};
use counts::{EndCounts, bits_per_second, ca_states, limited};
pub(crate) use counts::{FlowCount, variables, variables_of};
pub(crate) use marks::FlowMark;
pub(crate) use names::SenderNames;
pub(crate) use subflows::{Subflows, number as subflow_number, of_all};
pub(crate) use sums::Sums;
use throughput::Throughput;

mod application;
mod browser;
mod classes;
mod counts;
mod datagrams;
mod marks;
mod names;
mod paths;
mod remembered;
mod subflows;
mod sums;
mod throughput;

/// The two directions of data, as named in the summary.
pub(crate) const FORWARD: &str = "forward";
pub(crate) const REVERSE: &str = "reverse";

/// The source and the measures of one flow. What each packet touches comes first, in as few cache
/// lines as possible.
#[derive(Debug)]
#[repr(C, align(64))]
pub(crate) struct Flow {
    /// Time of the next action of the sender's application.
    acts_at: Time,
    /// Bytes that the source has yet to write; `None` is without end.
    remaining: Option<u64>,
    write_size: u64,
    /// Acknowledged bytes at which the transfer is complete; `u64::MAX` once it is, or without an
    /// end.
    target: u64,
    started: bool,
    stopped: bool,
    closed: bool,
    aborted: bool,
    /// The application is a bulk transfer that writes whenever it can.
    writes: bool,
    /// The flow has an application other than bulk transfer.
    has_application: bool,
    /// The traffic has not ended.
    is_live: bool,
    /// Hashes of the packets of its sender, and of its receiver.
    pub(crate) hashes: [u64; 2],
    pub(crate) truth: Truth,
    throughput: Throughput,
    cwnd: Histogram,
    rtt: Histogram,
    pub(crate) id: Arc<str>,
    pub(crate) reverse: bool,
    /// The differentiated services codepoint of its packets.
    pub(crate) dscp: u8,
    /// Packets that an end discarded because of bit errors.
    pub(crate) checksum_errors: u64,
    /// New payload at the receiver, read where a step of the throughput ends.
    goodput: Throughput,
    cc: Arc<str>,
    /// An application that is no bulk transfer.
    application: Option<Box<ApplicationState>>,
    /// The controllers to come, the next one last.
    schedule: Vec<(Time, Box<dyn CongestionControl>)>,
    /// Measurements of each subflow, if there are several.
    pub(crate) subflows: Option<Box<Subflows>>,
    host: Arc<str>,
    loss_detector: &'static str,
    start: Time,
    stop: Option<Time>,
    /// Index of the memory of destinations of the sender's host; `None` once the connection is
    /// stored there.
    metrics: Option<usize>,
    /// Time at which the sender resets the connection; never once it has, or when it has ended.
    abort: Time,
    completed: Option<Time>,
    /// Both ends have closed, and everything is acknowledged.
    finished: Option<Time>,
    /// The traffic came to its end then, finished or not.
    over: Option<Time>,
    /// The hosts of sender and receiver, if other flows may have them, too.
    pub(crate) hosts: Option<[u32; 2]>,
}

impl Flow {
    /// `schedule` has the controllers of the sender that come later, the next one last.
    pub(crate) fn new(
        id: FlowId,
        spec: &FlowSpec,
        names: &SenderNames,
        schedule: Vec<(Time, Box<dyn CongestionControl>)>,
        application: Option<Box<ApplicationState>>,
    ) -> Flow {
        let outside = matches!(spec.sender, HostSpec::Outside);
        let mut flow = Flow {
            acts_at: Time::NEVER,
            writes: false,
            has_application: application.is_some(),
            is_live: true,
            hashes: [false, true].map(|reverse| flow_hash(id.index() as u64, reverse)),
            id: spec.id.clone(),
            reverse: spec.reverse,
            dscp: spec.dscp,
            checksum_errors: 0,
            cc: names.cc.clone(),
            application,
            schedule,
            subflows: Subflows::new(id, &spec.group, spec.start),
            host: names.host.clone(),
            loss_detector: names.loss_detector,
            start: spec.start,
            stop: spec.stop,
            metrics: spec.metrics,
            // An application outside acts by itself.
            abort: spec.abort.filter(|_| !outside).unwrap_or(Time::NEVER),
            remaining: spec.bytes,
            write_size: spec.write_size,
            target: spec.bytes.into_iter().chain(spec.application.bytes()).min().unwrap_or(u64::MAX),
            started: false,
            stopped: false,
            closed: outside,
            aborted: false,
            completed: None,
            finished: None,
            over: None,
            hosts: spec.via.as_ref().map(|via| via.hosts).or(spec.hosts),
            rtt: Histogram::new(),
            cwnd: Histogram::new(),
            throughput: Throughput::new(spec.start),
            goodput: Throughput::new(spec.start),
            truth: Truth::new(SenderId::of(id)),
        };
        flow.settle();
        flow
    }

    /// The same with a size of its own.
    pub(crate) fn with_bytes(mut self, bytes: u64) -> Flow {
        (self.remaining, self.target) = (Some(bytes), bytes);
        self
    }

    /// Starts to fetch what each packet touches into the cache.
    #[inline]
    pub(crate) fn prefetch(&self) {
        prefetch_part(self, 0..offset_of!(Flow, id));
    }

    /// Starts to fetch what lies behind that; `sends` is whether the packet reaches the sender.
    #[inline]
    pub(crate) fn prefetch_behind(&self, sends: bool) {
        self.truth.prefetch_behind();
        if sends {
            self.cwnd.prefetch_behind();
            self.rtt.prefetch_behind();
        }
    }

    /// Time of the next action of the sender's application.
    #[inline]
    pub(crate) fn acts_at(&self) -> Time {
        self.acts_at
    }

    /// Notes what follows from the state of the traffic, after each change of it.
    fn settle(&mut self) {
        self.acts_at = self.next_action();
        self.writes = self.started && !self.stopped && !self.closed && !self.has_application;
        self.is_live = self.finished.or(self.over).is_none();
    }

    fn next_action(&self) -> Time {
        let traffic = match (self.started, self.closed) {
            (false, false) => self.start,
            (true, false) if !self.stopped => {
                let application = self.application.as_ref().map_or(Time::NEVER, |application| application.next_at());
                self.stop.unwrap_or(Time::NEVER).min(application)
            }
            (_, _) => Time::NEVER,
        };
        let traffic = traffic.min(self.abort);
        let traffic = self.subflows.as_ref().map_or(traffic, |subflows| traffic.min(subflows.changes_at()));
        self.schedule.last().map_or(traffic, |&(at, _)| traffic.min(at))
    }

    /// The usual turn of the sender's application, which fills the send buffer and nothing else.
    /// `false` if there may be something else to do: [`Flow::drive`] does it.
    #[inline]
    pub(crate) fn fill(&mut self, now: Time, sender: &mut impl Writable) -> bool {
        if now >= self.acts_at {
            return false;
        }
        if !self.writes {
            // What an application has asked for may come when it has closed.
            return self.closed && !self.has_application;
        }
        self.write(now, sender);
        self.remaining != Some(0)
    }

    /// The sender's application does what is due, and fills the send buffer.
    pub(crate) fn drive(&mut self, now: Time, sender: &mut Host) {
        if !self.fill(now, sender) {
            self.act(now, sender);
            self.settle();
        }
    }

    #[inline(never)]
    fn act(&mut self, now: Time, sender: &mut Host) {
        while let Some((_, cc)) = self.schedule.pop_if(|(at, _)| *at <= now) {
            sender.set_congestion_control(now, cc);
        }
        if let Some(subflows) = &mut self.subflows {
            subflows.change(now, sender);
        }
        if self.abort <= now {
            return self.hang_up(now, sender);
        }
        if self.has_application {
            sender.read_all(now);
        }
        if self.closed {
            return;
        }
        if !self.started {
            if now < self.start {
                return;
            }
            self.started = true;
            if !self.is_carried() {
                sender.connect(now);
            }
        }
        self.stopped |= self.stop.is_some_and(|stop| stop <= now);
        let mut is_done = self.stopped;
        if !self.stopped {
            is_done = match &mut self.application {
                Some(application) => {
                    application.act(now, sender);
                    application.is_done()
                }
                None => {
                    self.write(now, sender);
                    self.remaining == Some(0)
                }
            };
        }
        // Closing before the handshake is over would call it off.
        if is_done && sender.is_open() {
            self.closed = true;
            sender.close(now);
        }
    }

    /// Writes until the send buffer is full.
    #[inline]
    fn write(&mut self, now: Time, sender: &mut impl Writable) {
        while sender.is_writable() {
            // Small writes into a large buffer are many.
            let most = sender.writes_at_once(self.write_size);
            let taken = sender.write(now, self.remaining.unwrap_or(u64::MAX).min(most));
            if let Some(remaining) = &mut self.remaining {
                *remaining -= taken;
            }
            if taken < most {
                break;
            }
        }
    }

    /// The application closes hard. What is on its way still arrives, and is measured.
    #[cold]
    fn hang_up(&mut self, now: Time, sender: &mut Host) {
        (self.abort, self.closed, self.stopped, self.aborted) = (Time::NEVER, true, true, true);
        self.over = Some(now);
        sender.abort(now);
    }

    pub(crate) fn has_started(&self) -> bool {
        self.started
    }

    /// The application has closed, or will do nothing by itself any more.
    pub(crate) fn has_nothing_to_do(&self) -> bool {
        self.is_finished() || (self.started && self.acts_at == Time::NEVER && !self.waits_for_client())
    }

    pub(crate) fn is_finished(&self) -> bool {
        self.finished.is_some()
    }

    /// Both ends have closed, and everything is acknowledged.
    pub(crate) fn finish(&mut self, now: Time) {
        (self.finished, self.abort) = (Some(now), Time::NEVER);
        self.settle();
    }

    /// Returns true if the transfer is complete with this many bytes acknowledged.
    #[inline]
    pub(crate) fn is_complete(&self, acked: u64) -> bool {
        acked >= self.target
    }

    /// All bytes are acknowledged to the sender.
    #[cold]
    pub(crate) fn complete(&mut self, now: Time, receiver: &Host) {
        if receiver.delivered_bytes() >= self.target {
            (self.completed, self.target) = (Some(now), u64::MAX);
        }
    }

    /// An ACK arrived at the sender.
    #[inline]
    pub(crate) fn measure_ack(&mut self, arrival: &Acknowledgment, cwnd: impl FnOnce() -> Option<u64>) {
        if let Some(rtt) = arrival.rtt {
            self.rtt.add(rtt.as_nanos());
        }
        if arrival.is_ack
            && let Some(cwnd) = cwnd()
        {
            self.cwnd.add(cwnd);
        }
    }

    /// A sender outside has sent a packet: its first one begins the flow.
    pub(crate) fn begin(&mut self, now: Time) {
        if !self.started {
            self.started = true;
            self.start = now;
            (self.throughput, self.goodput) = (Throughput::new(now), Throughput::new(now));
            self.settle();
        }
    }

    /// Resets a flow whose start has delivered nothing: the next packet of the sender outside
    /// begins it.
    pub(crate) fn begin_anew(&mut self) {
        (self.started, self.finished, self.over) = (false, None, None);
        self.settle();
    }

    /// Notes that an end outside has opened or closed a connection. Another may follow, so the flow
    /// continues.
    pub(crate) fn open_or_end(&mut self, now: Time, sender: &Host, receiver: &Host) {
        let since = |is: bool, since: Option<Time>| is.then(|| since.unwrap_or(now));
        self.finished = since(sender.is_finished() && receiver.is_finished(), self.finished);
        self.over = since(self.aborted || (sender.is_over() && receiver.is_over()), self.over);
        self.settle();
    }

    /// Returns true if an application at the receiver takes the arriving data ([`Flow::receive`]).
    #[inline]
    pub(crate) fn has_application(&self) -> bool {
        self.has_application
    }

    /// Data or an acknowledgment has reached the receiver, which has read what there was.
    #[cold]
    pub(crate) fn receive(&mut self, now: Time, receiver: &mut Host) {
        if let Some(application) = &mut self.application {
            application.receive(now, receiver);
        }
    }

    /// The receiver has yet to write what its socket did not take.
    #[cold]
    pub(crate) fn is_answering(&self) -> bool {
        self.application.as_ref().is_some_and(|application| application.is_answering())
    }

    /// The end of what is measured, in a run that ends at `end`.
    fn end(&self, end: Time) -> Time {
        self.finished.or(self.over).unwrap_or(end)
    }

    /// A packet of `bytes` bytes arrives at the receiver, which has got so much new payload before
    /// it.
    #[inline]
    pub(crate) fn measure_packet(&mut self, now: Time, bytes: u32, received: impl FnOnce() -> u64) {
        if !self.is_live {
            if !self.aborted {
                return;
            }
            self.over = Some(now);
        }
        if self.throughput.is_over(now) {
            self.pass(now, received());
        }
        self.throughput.count(bytes);
    }

    /// Windows of throughput and goodput have ended.
    #[cold]
    #[inline(never)]
    fn pass(&mut self, now: Time, received: u64) {
        self.goodput.reach(received);
        self.goodput.pass(now);
        self.throughput.pass(now);
    }

    /// The goodput in windows, of a flow that lasted until `end`.
    fn goodput_windows(&mut self, end: Time, receiver: &Host) -> MeanQuantiles {
        if self.is_carried() {
            return MeanQuantiles::default();
        }
        self.goodput.reach(receiver.received_bytes());
        self.goodput.summary(end)
    }

    /// The summary of a run that ended at `end`; `link` names a direction.
    pub(crate) fn summary<'a>(
        &mut self,
        end: Time,
        sender: &Host,
        receiver: &Host,
        link: impl Fn(DirectionId) -> &'a str,
    ) -> FlowSummary {
        let goodput_windows_bps = self.goodput_windows(self.end(end), receiver);
        let whole = self.subflows.as_ref().map(|subflows| subflows.truth(self.truth.source()));
        let truth = whole.as_ref().unwrap_or(&self.truth);
        let found = truth.counts();
        let retransmissions = found.retransmissions(&link);
        let EndCounts { sent, recoveries, reactions, progress, .. } = self.counts(sender, receiver);
        let active = self.end(end).since(self.start);
        let until = self.end(end);
        let multipath = self.subflows.as_mut().and_then(|all| all.summary(until, active, [sender, receiver], &link));
        FlowSummary {
            id: self.id.clone(),
            direction: if self.reverse { REVERSE } else { FORWARD },
            cc: self.cc.clone(),
            host: self.host.clone(),
            loss_detector: self.loss_detector,
            goodput_bps: bits_per_second(progress.delivered_bytes, active),
            throughput_bps: self.throughput.summary(self.end(end)),
            goodput_windows_bps,
            rtt_ms: self.rtt.distribution(1e-6),
            cwnd_bytes: self.cwnd.quantiles(1.0),
            sent,
            spurious_retransmits: retransmissions.spurious_reordering + retransmissions.spurious_delay,
            recoveries,
            reactions,
            checksum_errors: self.checksum_errors,
            reordering_max: match sender {
                Host::Endpoint(endpoint) => endpoint.sender().stats().reordering_max,
                Host::Mptcp(connection) => totals(connection).reordering_max,
                Host::Smoltcp(_) | Host::Outside(_) | Host::Datagrams(_) => 0,
            },
            progress,
            start_s: self.started.then(|| self.start.as_secs_f64()),
            completed_s: self.completed.map(Time::as_secs_f64),
            fct_s: self.completed.map(|completed| completed.since(self.start).as_secs_f64()),
            limited_s: match (sender, &self.subflows) {
                (Host::Endpoint(endpoint), _) => limited(endpoint.sender().limits().read(until)),
                (_, Some(subflows)) => subflows.limited_s(until),
                _ => Limited::default(),
            },
            ca_state_s: ca_states(sender, self.end(end), active),
            retransmissions,
            loss_declarations: found.declarations(),
            loss_declared_late_ms: found.late_ms(),
            repair_rtts: found.repair_rtts(),
            displacement: truth.displacement(),
            // The run knows it.
            reordering: BTreeMap::new(),
            application: self
                .application
                .as_ref()
                .map(|application| application.summary(self.end(end), end, sender, receiver).into()),
            datagrams: datagrams::summary(sender, receiver),
            multipath: multipath.map(Box::new),
        }
    }

    /// Times of probes of responsiveness, if the flow sends any.
    pub(crate) fn probe_times(&self) -> Option<&ProbeTimes> {
        self.application.as_ref()?.probe_times()
    }

    /// Returns true if the flow has not started, or ended before `then`.
    pub(crate) fn is_idle_since(&self, then: Time) -> bool {
        !self.started || self.finished.or(self.over).is_some_and(|over| over < then)
    }

    /// The counts until now.
    pub(crate) fn count(&self, sender: &Host, receiver: &Host) -> FlowCount {
        FlowCount {
            bytes: self.throughput.total(),
            rtt_sum: self.rtt.sum(),
            rtt_samples: self.rtt.samples(),
            counts: self.counts(sender, receiver),
        }
    }

    /// The application of a flow of datagrams sends no more. What is on its way still arrives, and
    /// is measured.
    #[cold]
    pub(crate) fn cease(&mut self, now: Time) {
        (self.aborted, self.over) = (true, Some(now));
        self.settle();
    }

    /// The application has closed.
    pub(crate) fn has_closed(&self) -> bool {
        self.closed
    }

    /// A round trip was measured.
    pub(crate) fn measure_rtt(&mut self, rtt: Span) {
        self.rtt.add(rtt.as_nanos());
    }
}
