//! Records that are written during a run.

use std::ops::ControlFlow;

use ackclock_emulator::{Action, Decision};
use ackclock_packet::Payload;
use ackclock_stack::{LostPacket, RecoveryEvent, RecoveryMetrics};
use ackclock_tcp::{Acknowledgment, Endpoint, Snapshot};
use ackclock_trace::{
    AckRecord, CaptureSink, DisplacementSink, ErttSink, FlowSink, JudgedSegment, LossVerdict, QlogRecord, QlogSink,
    QueueAction, QueueRecord, QueueSink, ReorderingSink, SeriesSink, SiftrSink, TcpEvent, TcpRecord, TcpSink,
    WatchSink,
};
use ackclock_units::{Span, Time};

use crate::index::{DirectionId, FlowId, HostId, RouteId};

/// The records of a run and their destinations; none by default. Recording changes no result.
#[derive(Debug, Default)]
pub struct Recorders<'a> {
    /// Every decision of some queues.
    pub queues: Option<QueueRecorder<'a>>,
    /// ACKs, retransmissions and losses of all flows: gets the records in order of time, those of
    /// equal times by number of the flow. It may break the run off.
    pub tcp: Option<&'a mut dyn TcpSink>,
    /// Loss recovery and congestion control of some senders.
    pub qlog: Option<QlogRecorder<'a>>,
    /// Every segment that an endpoint sends or receives, in the order in which they are handled:
    /// that of time.
    pub siftr: Option<&'a mut dyn SiftrSink>,
    /// Every measurement of an enhanced round-trip time, likewise.
    pub ertt: Option<&'a mut dyn ErttSink>,
    /// Every flow of a workload, once it is over.
    pub flows: Option<&'a mut dyn FlowSink>,
    /// Packets as bytes.
    pub captures: Option<CaptureRecorder<'a>>,
    /// Reordering over time.
    pub reordering: Option<ReorderingRecorder<'a>>,
    /// The displacement of each packet of TCP flows by sequence numbers: written once it is known,
    /// in each flow in order of arrival. Only where it is measured
    /// ([`ReorderTap::Sequence`](crate::spec::ReorderTap::Sequence)).
    pub displacement: Option<&'a mut dyn DisplacementSink>,
    /// Flows and link directions over time.
    pub series: Option<SeriesRecorder<'a>>,
    /// The same in intervals of their own, each as soon as it has ended, for those who watch.
    pub watch: Option<&'a mut dyn WatchSink>,
}

/// The queues that are recorded, and the destination.
#[derive(Debug)]
pub struct QueueRecorder<'a> {
    /// The link directions.
    pub directions: &'a [DirectionId],
    /// Gets the records in order of time, those of equal times by number of the direction. It may
    /// break the run off.
    pub sink: &'a mut dyn QueueSink,
}

/// The senders whose loss recovery is recorded, and the destination.
#[derive(Debug)]
pub struct QlogRecorder<'a> {
    /// A log for each of these, no two the same.
    pub points: &'a [QlogPoint],
    /// Gets the records, those of each log in order of time. It may break the run off.
    pub sink: &'a mut dyn QlogSink,
}

/// A sender whose loss recovery is recorded.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub enum QlogPoint {
    /// The sender of a flow, an ackclock endpoint or several (Multipath TCP).
    Flow(FlowId),
    /// The stack of a host: its index in [`LiveSpec::nodes`](crate::spec::LiveSpec::nodes).
    Host(usize),
}

/// The intervals of a series, and its destination.
#[derive(Debug)]
pub struct SeriesRecorder<'a> {
    /// The intervals.
    pub config: SeriesConfig,
    /// Gets the records of each interval once it has ended. It may break the run off.
    pub sink: &'a mut dyn SeriesSink,
}

/// The destination of intervals of reordering.
#[derive(Debug)]
pub struct ReorderingRecorder<'a> {
    /// The length of an interval.
    pub every: Span,
    /// Gets each interval of a flow once the displacements of its packets are known. It may break
    /// the run off.
    pub sink: &'a mut dyn ReorderingSink,
}

/// The points of capture, and the destination.
#[derive(Debug)]
pub struct CaptureRecorder<'a> {
    /// A capture for each of these, no two the same.
    pub points: &'a [CapturePoint],
    /// The most bytes that are captured of a packet.
    pub snaplen: u32,
    /// Gets the packets, those of each capture in order of time. It may break the run off.
    pub sink: &'a mut dyn CaptureSink,
}

/// A place at which packets are captured.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub enum CapturePoint {
    /// A link direction. Interface 0 is before its queue, 1 behind it; what is dropped, or lost on
    /// the link, is on interface 2 at the time at which that happens.
    Direction(DirectionId),
    /// An end of a flow.
    Host(HostId),
}

/// The intervals of a series.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct SeriesConfig {
    /// The length of an interval.
    pub every: Span,
    /// The length of the sliding windows; as many whole intervals as it takes.
    pub window: Span,
}

/// Rows between two times that records are sorted and written. On the live clock packets wait
/// meanwhile: a row of text takes about 1 us.
const BATCH: usize = 64;

/// The decisions of the recorded queues that have not been written yet.
///
/// A link catches up when it is called, so that its decisions come in late, and those of several
/// links are not in order of time. They wait until all of these links have caught up to one time.
#[derive(Debug)]
pub(crate) struct QueueRecording {
    directions: Vec<DirectionId>,
    rows: Vec<QueueRow>,
    /// Rows recorded so far.
    number: u64,
    /// The most rows that are buffered.
    room: usize,
}

/// A decision with what its packet was, which may be gone when it is written.
#[derive(Clone, Copy, Debug)]
struct QueueRow {
    decision: Decision,
    direction: DirectionId,
    payload: Payload,
    number: u64,
}

impl QueueRecording {
    pub(crate) fn new(directions: &[DirectionId]) -> QueueRecording {
        let mut directions = directions.to_vec();
        directions.sort_unstable();
        directions.dedup();
        QueueRecording { directions, rows: Vec::new(), number: 0, room: BATCH }
    }

    /// The directions that are recorded.
    pub(crate) fn directions(&self) -> &[DirectionId] {
        &self.directions
    }

    /// Takes a decision of a queue about a packet with this payload.
    pub(crate) fn add(&mut self, direction: DirectionId, decision: Decision, payload: Payload) {
        // Another record may need the decisions of more queues.
        if self.directions.binary_search(&direction).is_err() {
            return;
        }
        self.rows.push(QueueRow { decision, direction, payload, number: self.number });
        self.number += 1;
    }

    /// Returns true if the buffered rows should be written.
    pub(crate) fn is_full(&self) -> bool {
        self.rows.len() >= self.room
    }

    /// Writes every row from before `until`; the recorded links have caught up to that time. `flow`
    /// gives the flow of a route.
    pub(crate) fn hand_on<'a>(
        &mut self,
        until: Time,
        link: impl Fn(DirectionId) -> &'a str,
        flow: impl Fn(RouteId) -> &'a str,
        sink: &mut dyn QueueSink,
    ) -> ControlFlow<()> {
        if self.directions.len() > 1 {
            self.rows.sort_unstable_by_key(|row| (row.decision.at, row.direction, row.number));
        }
        let due = self.rows.partition_point(|row| row.decision.at < until);
        let flow_of = |row: &QueueRow| flow(RouteId::of_packet(row.decision.packet.route));
        let result =
            self.rows.drain(..due).try_for_each(|row| sink.record(&row.record(link(row.direction), flow_of(&row))));
        // What is left is of one instant, however much it is: it is put in order ever more seldom.
        self.room = 2 * self.rows.len() + BATCH;
        result
    }
}

impl QueueRow {
    fn record<'a>(&self, link: &'a str, flow: &'a str) -> QueueRecord<'a> {
        let Decision { at, packet: _, number, bytes, action, sojourn, backlog, probe } = self.decision;
        QueueRecord {
            at,
            link,
            packet: number,
            flow,
            seq: (self.payload.len > 0).then_some(self.payload.offset),
            size: bytes,
            action: match action {
                Action::Enqueue => QueueAction::Enqueue,
                Action::Dequeue => QueueAction::Dequeue,
                Action::Mark => QueueAction::Mark,
                Action::Drop(reason) => QueueAction::Drop(reason.name()),
            },
            sojourn,
            probability: probe.probability,
            delay: probe.delay,
            average: probe.average,
            dropping: probe.dropping,
            backlog_packets: backlog.packets,
            backlog_bytes: backlog.bytes,
        }
    }
}

/// Events of flows that have not been written yet.
///
/// Whether a transmission was lost comes in late, as links catch up late. Rows wait until all links
/// have caught up to one time.
#[derive(Debug)]
pub(crate) struct TcpRecording {
    rows: Vec<TcpRow>,
    /// Flows that have a log of loss recovery, in order, with its index.
    logs: Vec<(FlowId, usize)>,
    /// Rows recorded so far.
    number: u64,
    /// The most rows that are buffered.
    room: usize,
}

#[derive(Clone, Copy, Debug)]
struct TcpRow {
    at: Time,
    source: SenderId,
    number: u64,
    fact: TcpFact,
}

/// The sender of a packet: a flow, or one of its subflows.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub(crate) struct SenderId {
    pub(crate) flow: FlowId,
    /// Number of the subflow, from 1; 0 of a flow of one path.
    pub(crate) subflow: u16,
}

impl SenderId {
    /// A flow of one path.
    pub(crate) fn of(flow: FlowId) -> SenderId {
        SenderId { flow, subflow: 0 }
    }

    /// The number of the subflow, if it is one.
    pub(crate) fn subflow(self) -> Option<u16> {
        Some(self.subflow).filter(|&subflow| subflow > 0)
    }
}

/// An event, with the link direction that caused it.
#[derive(Clone, Copy, Debug)]
pub(crate) enum TcpFact {
    Ack(AckRecord),
    Retransmission(JudgedSegment<'static>, Option<DirectionId>),
    Declaration(JudgedSegment<'static>, Option<DirectionId>),
    /// For the log of this index.
    Recovery(usize, RecoveryEvent),
}

impl TcpFact {
    /// An ACK that a sender has taken in, whose stream begins at `base`.
    #[cold]
    fn ack(sender: &Endpoint, arrival: &Acknowledgment, base: u64) -> TcpFact {
        let now = Snapshot::of(sender.sender());
        TcpFact::Ack(AckRecord {
            ack: base + now.acked,
            acked: arrival.acked,
            sacked_out: now.counts.sacked_out,
            fackets_out: now.counts.fackets_out,
            retrans_out: now.counts.retrans_out,
            lost_out: now.counts.lost_out,
            reordering: now.counts.reordering,
            ca_state: now.ca_state.name(),
            cwnd: now.cwnd,
            ssthresh: Some(now.ssthresh).filter(|&ssthresh| ssthresh < u64::MAX),
            pipe: now.pipe,
            rtt: arrival.rtt,
            srtt: now.srtt,
            rto: now.rto,
        })
    }
}

impl TcpRecording {
    /// A recording for `tcp.csv`, and for the logs of loss recovery of `points`.
    pub(crate) fn new(points: &[QlogPoint]) -> TcpRecording {
        let flow = |(index, point): (usize, &QlogPoint)| match *point {
            QlogPoint::Flow(flow) => Some((flow, index)),
            QlogPoint::Host(_) => None,
        };
        let mut logs: Vec<(FlowId, usize)> = points.iter().enumerate().filter_map(flow).collect();
        logs.sort_unstable();
        TcpRecording { rows: Vec::new(), logs, number: 0, room: BATCH }
    }

    /// An ACK that a sender has taken in, whose stream begins at `base`.
    pub(crate) fn acknowledged(
        &mut self,
        now: Time,
        source: SenderId,
        sender: &Endpoint,
        arrival: &Acknowledgment,
        base: u64,
    ) {
        self.add(now, source, TcpFact::ack(sender, arrival, base));
        self.observe(now, source, sender);
    }

    /// A timer of a sender has expired.
    pub(crate) fn expired(&mut self, now: Time, source: SenderId, sender: &Endpoint) {
        // Most timers are those of pacing, which changes no variable.
        if sender.sender().rtt().timeouts() > 0 {
            self.observe(now, source, sender);
        }
    }

    /// A sender declares these bytes of its stream lost.
    pub(crate) fn declared(&mut self, now: Time, source: SenderId, data: (u64, u64), by_timeout: bool) {
        if let Some(log) = self.log(source) {
            let lost = LostPacket { number: None, data: Some(data), by_timeout };
            self.add(now, source, TcpFact::Recovery(log, RecoveryEvent::Lost(lost)));
        }
    }

    /// The log of a sender's loss recovery, if there is one.
    fn log(&self, source: SenderId) -> Option<usize> {
        let found = self.logs.binary_search_by_key(&source.flow, |&(flow, _)| flow).ok()?;
        Some(self.logs[found].1)
    }

    /// Adds the variables of a sender to the log of its loss recovery.
    fn observe(&mut self, now: Time, source: SenderId, sender: &Endpoint) {
        let Some(log) = self.log(source) else { return };
        let (of, sender) = (Snapshot::of(sender.sender()), sender.sender());
        let rtt = sender.rtt();
        let metrics = RecoveryMetrics {
            min_rtt: rtt.min(),
            smoothed_rtt: of.srtt,
            latest_rtt: rtt.latest(),
            rtt_variance: of.srtt.map(|_| rtt.variation()),
            pto_count: Some(rtt.timeouts()),
            congestion_window: Some(of.cwnd),
            bytes_in_flight: Some(of.pipe),
            ssthresh: Some(of.ssthresh).filter(|&ssthresh| ssthresh < u64::MAX),
            pacing_rate: sender.pacing_bps(),
        };
        self.add(now, source, TcpFact::Recovery(log, RecoveryEvent::State(of.ca_state.name())));
        self.add(now, source, TcpFact::Recovery(log, RecoveryEvent::Metrics(metrics)));
    }

    pub(crate) fn add(&mut self, at: Time, source: SenderId, fact: TcpFact) {
        self.rows.push(TcpRow { at, source, number: self.number, fact });
        self.number += 1;
    }

    /// Returns true if the buffered rows should be written.
    pub(crate) fn is_full(&self) -> bool {
        self.rows.len() >= self.room
    }

    /// Hands on every row from before `until`; all links have caught up to that time. `link` names
    /// a direction, or without one the receiver.
    pub(crate) fn hand_on<'a>(
        &mut self,
        until: Time,
        link: impl Fn(Option<DirectionId>) -> &'a str,
        flow: impl Fn(FlowId) -> &'a str,
        mut tcp: Option<&mut (dyn TcpSink + '_)>,
        mut qlog: Option<&mut (dyn QlogSink + '_)>,
    ) -> ControlFlow<()> {
        self.rows.sort_unstable_by_key(|row| (row.at, row.source.flow, row.number));
        let due = self.rows.partition_point(|row| row.at < until);
        let result = self.rows.drain(..due).try_for_each(|TcpRow { at, source, fact, .. }| {
            let event = match fact {
                TcpFact::Ack(ack) => TcpEvent::Ack(ack),
                TcpFact::Retransmission(judged, by) => TcpEvent::Retransmission(named(judged, link(by))),
                TcpFact::Declaration(judged, by) => TcpEvent::Declaration(named(judged, link(by))),
                TcpFact::Recovery(log, event) => {
                    let record = QlogRecord { at, log, subflow: source.subflow(), event };
                    return qlog.as_mut().map_or(ControlFlow::Continue(()), |sink| sink.record(&record));
                }
            };
            let Some(sink) = &mut tcp else { return ControlFlow::Continue(()) };
            sink.record(&TcpRecord { at, flow: flow(source.flow), subflow: source.subflow(), event })
        });
        self.room = 2 * self.rows.len() + BATCH;
        result
    }
}

/// The same with the name of the link.
fn named<'a>(judged: JudgedSegment<'static>, link: &'a str) -> JudgedSegment<'a> {
    let verdict = match judged.verdict {
        LossVerdict::Lost { reason, probability, .. } => LossVerdict::Lost { link, reason, probability },
        LossVerdict::Reordered => LossVerdict::Reordered,
        LossVerdict::Delayed => LossVerdict::Delayed,
    };
    JudgedSegment { verdict, ..judged }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[derive(Debug)]
    struct Nothing;

    impl TcpSink for Nothing {
        fn record(&mut self, _: &TcpRecord<'_>) -> ControlFlow<()> {
            ControlFlow::Continue(())
        }
    }

    #[test]
    fn rows_of_one_instant_are_put_in_order_a_few_times() {
        let ack = AckRecord {
            ack: 1,
            acked: 1,
            sacked_out: 0,
            fackets_out: 0,
            retrans_out: 0,
            lost_out: 0,
            reordering: 3,
            ca_state: "Open",
            cwnd: 1,
            ssthresh: None,
            pipe: 0,
            rtt: None,
            srtt: None,
            rto: Span::from_secs(1),
        };
        let mut recording = TcpRecording::new(&[]);
        let (at, mut times) = (Time::from_secs(1), 0);
        for _ in 0..100_000 {
            recording.add(at, SenderId::of(FlowId::new(0)), TcpFact::Ack(ack));
            if recording.is_full() {
                times += 1;
                assert!(recording.hand_on(at, |_| "link", |_| "flow", Some(&mut Nothing), None).is_continue());
            }
        }
        // Each time there is room for as many again: 64, 192, 448 ... up to 65472.
        assert_eq!(times, 10);
        assert_eq!(recording.rows.len(), 100_000);
    }
}
