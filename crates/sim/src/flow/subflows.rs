//! Measurements on the subflows of a flow.

use std::ops::Range;

use ackclock_mptcp::{Connection, Subflow};
use ackclock_packet::{Flags, Segment};
use ackclock_tcp::{Acknowledgment, LimitClock, LossDeclaration, SentAs};
use ackclock_trace::{Histogram, Limited, MultipathSummary, Progress, SentPackets, SubflowSummary};
use ackclock_units::{Span, Time};

use super::FlowCount;
use super::counts::{EndCounts, bits_per_second, data_packets, limited};
use super::names::KERNEL;
use super::throughput::Throughput;
use crate::host::Host;
use crate::index::{DirectionId, FlowId};
use crate::record::{SenderId, TcpRecording};
use crate::spec::{FlowGroup, HostSpec, PathChange};
use crate::truth::Truth;
use crate::watch::WatchCounts;

/// The measures of each subflow, by its path.
#[derive(Debug)]
pub(crate) struct Subflows {
    pub(super) all: Vec<PathMeasures>,
    scheduler: &'static str,
    /// Changes of the sender's paths, the next one last.
    changes: Vec<PathChange>,
    /// Time by the factor that limits the connection.
    held: LimitClock,
    /// One past the highest byte of the connection sent so far.
    data_end: u64,
    /// Segments with data sent by the sender, and all segments sent by the receiver.
    sent: [u64; 2],
}

#[derive(Debug)]
pub(super) struct PathMeasures {
    rtt: Histogram,
    cwnd: Histogram,
    throughput: Throughput,
    pub(super) judged: PathTruth,
    /// Time by the factor that limits the subflow.
    held: LimitClock,
    /// Transmissions of a sender outside.
    seen: SentPackets,
}

impl PathMeasures {
    fn new(source: SenderId, start: Time) -> PathMeasures {
        PathMeasures {
            rtt: Histogram::new(),
            cwnd: Histogram::new(),
            throughput: Throughput::new(start),
            judged: PathTruth::new(source),
            held: LimitClock::default(),
            seen: SentPackets::default(),
        }
    }
}

impl Subflows {
    pub(crate) fn new(flow: FlowId, group: &FlowGroup, start: Time) -> Option<Box<Subflows>> {
        let mptcp = group.mptcp.as_ref()?;
        let new = |path| PathMeasures::new(SenderId { flow, subflow: number(path) }, start);
        Some(Box::new(Subflows {
            all: (0..=mptcp.others.len()).map(new).collect(),
            scheduler: match group.sender {
                HostSpec::Outside => KERNEL,
                _ => mptcp.scheduler.name(),
            },
            changes: mptcp.changes.iter().rev().copied().collect(),
            held: LimitClock::default(),
            data_end: 0,
            sent: [0; 2],
        }))
    }

    /// Time of the sender's next path change.
    pub(crate) fn changes_at(&self) -> Time {
        self.changes.last().map_or(Time::NEVER, |change| change.at)
    }

    /// Changes of paths that are due.
    pub(crate) fn change(&mut self, now: Time, sender: &mut Host) {
        while let Some(PathChange { path, up, .. }) = self.changes.pop_if(|change| change.at <= now) {
            if let Host::Mptcp(connection) = sender {
                if up { connection.restore_path(now, path) } else { connection.remove_path(now, path) }
            }
        }
    }

    /// An ACK arrived over a path at the sender.
    pub(super) fn measure_ack(&mut self, path: usize, arrival: &Acknowledgment, sender: &Host) {
        let Some(measures) = self.all.get_mut(path).filter(|_| arrival.is_ack) else { return };
        arrival.rtt.into_iter().for_each(|rtt| measures.rtt.add(rtt.as_nanos()));
        if let Some(subflow) = at(sender, path) {
            measures.cwnd.add(subflow.endpoint().sender().cwnd());
        }
    }

    /// A sender outside has sent a packet over a path, by which its counts are no longer `before`.
    pub(crate) fn note_sent(&mut self, path: usize, before: &WatchCounts, counts: &WatchCounts) {
        if let Some(PathMeasures { seen, .. }) = self.all.get_mut(path) {
            seen.add(&counts.sent.since(&before.sent));
        }
    }

    /// A packet of `bytes` bytes arrived over a path at the receiver.
    pub(super) fn measure_packet(&mut self, now: Time, path: usize, bytes: u32) {
        if let Some(measures) = self.all.get_mut(path) {
            measures.throughput.add(now, bytes);
        }
    }

    /// The results, of a flow that lasted until `end`.
    pub(crate) fn summary<'a>(
        &mut self,
        end: Time,
        active: Span,
        [sender, receiver]: [&Host; 2],
        link: impl Fn(DirectionId) -> &'a str,
    ) -> Option<MultipathSummary> {
        let (_, most_reordered) = connection(receiver).map(Connection::reordered_bytes).unwrap_or_default();
        let ours = || [sender, receiver].into_iter().filter_map(connection);
        ours().next()?;
        let summary = |(path, measures): (usize, &mut PathMeasures)| {
            let (sends, receives) = (at(sender, path), at(receiver, path));
            let totals = sends.map(Subflow::totals).unwrap_or_default();
            let mut sent = data_packets(&totals);
            sent.add(&measures.seen);
            let carried = sends.map(Subflow::carried).unwrap_or_default();
            // What a kernel got is what it has acknowledged.
            let acknowledged = sends.map_or(0, |subflow| subflow.endpoint().sender().sequence().acked_bytes());
            let received = receives.map_or(acknowledged, |subflow| subflow.carried().received);
            let found = measures.judged.truth().counts();
            let retransmissions = found.retransmissions(&link);
            SubflowSummary {
                path: path as u64 + 1,
                goodput_bps: bits_per_second(received, active),
                throughput_bps: measures.throughput.summary(end),
                rtt_ms: measures.rtt.distribution(1e-6),
                cwnd_bytes: measures.cwnd.quantiles(1.0),
                sent,
                spurious_retransmits: retransmissions.spurious_reordering + retransmissions.spurious_delay,
                recoveries: EndCounts::default().with(&totals).recoveries,
                scheduled_bytes: carried.scheduled,
                reinjected_bytes: carried.reinjected,
                needless_bytes: measures.judged.needless_bytes(),
                received_bytes: received,
                penalties: carried.penalties,
                limited_s: limited(measures.held.read(end)),
                retransmissions,
                loss_declarations: found.declarations(),
            }
        };
        Some(MultipathSummary {
            scheduler: self.scheduler,
            plain: ours().any(Connection::is_plain),
            reordered_bytes_max: most_reordered,
            duplicate_bytes: connection(receiver).map_or(0, Connection::duplicate_bytes),
            subflows: self.all.iter_mut().enumerate().map(summary).collect(),
        })
    }

    /// The judged transmissions of all paths together.
    pub(crate) fn truth(&self, source: SenderId) -> Truth {
        let mut whole = Truth::new(source);
        self.all.iter().for_each(|measures| whole.absorb(measures.judged.truth()));
        whole
    }

    /// Time by the factor that limits the connection, until `end`.
    pub(crate) fn limited_s(&self, end: Time) -> Limited {
        limited(self.held.read(end))
    }

    /// The sender has stopped: what holds it back from now on.
    pub(crate) fn note_limits(&mut self, now: Time, connection: &Connection) {
        self.held.set(now, connection.limited_by());
        for subflow in connection.subflows() {
            if let Some(measures) = self.all.get_mut(subflow.path()) {
                measures.held.set(now, connection.limit_of(subflow));
            }
        }
    }

    /// The counts of each path until now, for a series, and its subflow at the sender.
    pub(crate) fn counts<'h>(
        &self,
        [sender, receiver]: [&'h Host; 2],
    ) -> impl Iterator<Item = (FlowCount, Option<&'h Subflow>)> {
        self.all.iter().enumerate().map(move |(path, measures)| {
            let (sends, receives) = (at(sender, path), at(receiver, path));
            // What a kernel got is what it has acknowledged.
            let acknowledged = sends.map_or(0, |subflow| subflow.endpoint().sender().sequence().acked_bytes());
            let counts = EndCounts {
                sent: SentPackets {
                    sent_packets: sends.map_or(measures.seen.sent_packets, |subflow| subflow.totals().data_packets()),
                    ..measures.seen
                },
                progress: Progress {
                    delivered_bytes: receives.map_or(acknowledged, |subflow| subflow.carried().received),
                    acked_bytes: 0,
                },
                ..EndCounts::default()
            };
            let count = FlowCount {
                bytes: measures.throughput.total(),
                rtt_sum: measures.rtt.sum(),
                rtt_samples: measures.rtt.samples(),
                counts: sends.map_or(counts, |subflow| counts.with(&subflow.totals())),
            };
            (count, sends)
        })
    }
}

impl Subflows {
    /// The sender has sent a segment; returns the number of the packet, 0 of one without data.
    pub(super) fn sent(&mut self, now: Time, connection: &Connection, segment: &Segment, receiver: &Host) -> u64 {
        let Some(subflow) = connection.last_subflow() else { return 0 };
        let endpoint = subflow.endpoint();
        let fin = segment.flags.contains(Flags::FIN) && endpoint.sender().sent_as() != SentAs::Ack;
        let len = u64::from(segment.payload.len) + u64::from(fin);
        let place = endpoint
            .sender()
            .sequence()
            .stream_offset(segment.seq)
            .filter(|_| len > 0 && !segment.flags.contains(Flags::SYN));
        let (Some(place), Some(measures)) = (place, self.all.get_mut(subflow.path())) else { return 0 };
        let judged = &mut measures.judged;
        let from = judged.base(endpoint.ports().local) + place;
        let (data, end) = (segment.payload.offset, segment.payload.offset + u64::from(segment.payload.len));
        let is_reinjection = from >= judged.truth.end() && data < self.data_end.min(end);
        if is_reinjection {
            judged.needless += arrived_of(data..end, connection, subflow.path(), receiver);
        }
        self.data_end = self.data_end.max(end);
        self.sent[0] += 1;
        let is_data = segment.payload.len > 0;
        judged.truth.sent(endpoint.sender().stamp(now), (from, from + len), endpoint.sender().sent_as(), is_data)
            | self.sent[0] << PATH_BITS
    }

    /// The receiver has sent a packet; returns its number.
    pub(super) fn answered(&mut self, path: usize) -> u64 {
        let Some(measures) = self.all.get_mut(path) else { return 0 };
        self.sent[1] += 1;
        measures.judged.truth.receiver_sent() | self.sent[1] << PATH_BITS
    }

    /// Takes the loss declarations of the subflows.
    pub(crate) fn take_declarations(
        &mut self,
        now: Time,
        connection: &mut Connection,
        mut log: Option<&mut TcpRecording>,
    ) {
        for (path, port, declared) in connection.loss_declarations() {
            if let Some(measures) = self.all.get_mut(path) {
                measures.judged.declared(now, port, declared, log.as_deref_mut());
            }
        }
    }

    /// A timer of the connection has expired.
    pub(crate) fn expired(&self, now: Time, connection: &Connection, log: &mut TcpRecording) {
        for subflow in connection.subflows() {
            if let Some(measures) = self.all.get(subflow.path()) {
                log.expired(now, measures.judged.source, subflow.endpoint());
            }
        }
    }

    /// A packet of the receiver has reached the sender over a path.
    pub(crate) fn take_ack(
        &mut self,
        now: Time,
        (path, packet): Sent,
        arrival: &Acknowledgment,
        connection: &mut Connection,
        mut log: Option<&mut TcpRecording>,
    ) {
        if let (Some(measures), Some(subflow)) = (self.all.get_mut(path), of(connection, path)) {
            let (judged, endpoint) = (&mut measures.judged, subflow.endpoint());
            let base = judged.base(endpoint.ports().local);
            let acked = base + endpoint.sender().sequence().acked_bytes();
            if let Some(log) = log.as_deref_mut().filter(|_| arrival.is_ack) {
                let arrival = Acknowledgment { acked: acked.saturating_sub(judged.acked), ..*arrival };
                log.acknowledged(now, judged.source, endpoint, &arrival, base);
            }
            judged.acked = acked;
        }
        self.take_declarations(now, connection, log.as_deref_mut());
        let Some(PathTruth { truth, acked, .. }) = self.all.get_mut(path).map(|measures| &mut measures.judged) else {
            return;
        };
        if truth.has_losses() {
            let srtt = of(connection, path).and_then(|subflow| subflow.endpoint().sender().rtt().srtt());
            truth.sender_received(now, of_path(packet), *acked, srtt, log);
        }
    }
}

/// The number of the subflow on a path, by which records and results call it.
pub(crate) fn number(path: usize) -> u16 {
    path as u16 + 1
}

/// The connection of an ackclock host.
fn connection(host: &Host) -> Option<&Connection> {
    if let Host::Mptcp(connection) = host { Some(connection) } else { None }
}

/// The subflow of a host on a path.
fn at(host: &Host, path: usize) -> Option<&Subflow> {
    of(connection(host)?, path)
}

/// The subflow on a path.
fn of(connection: &Connection, path: usize) -> Option<&Subflow> {
    connection.subflows().iter().find(|subflow| subflow.path() == path)
}

/// The bits of a packet's number that are for its path; those above count on all of them.
const PATH_BITS: u32 = 32;

/// A packet with data that a sender has sent: its path, and its number.
pub(crate) type Sent = (usize, u64);

/// The number among those of its path in a packet's number.
pub(super) fn of_path(packet: u64) -> u64 {
    packet & ((1 << PATH_BITS) - 1)
}

/// The number among those of all paths in a packet's number.
pub(crate) fn of_all(packet: u64) -> u64 {
    packet >> PATH_BITS
}

/// The judged transmissions of one path.
#[derive(Debug)]
pub(super) struct PathTruth {
    source: SenderId,
    pub(super) truth: Truth,
    /// Endpoints of the sender by their ports, and where their streams begin in that of the path.
    streams: Vec<EndpointStream>,
    /// Bytes of that stream that are acknowledged.
    acked: u64,
    needless: u64,
}

#[derive(Clone, Copy, Debug)]
struct EndpointStream {
    port: u16,
    base: u64,
}

impl PathTruth {
    fn new(source: SenderId) -> PathTruth {
        PathTruth { source, truth: Truth::new(source), streams: Vec::new(), acked: 0, needless: 0 }
    }

    fn truth(&self) -> &Truth {
        &self.truth
    }

    /// Bytes that were sent first on this path when they had arrived by another one.
    fn needless_bytes(&self) -> u64 {
        self.needless
    }

    /// Offset at which the stream of the endpoint with this port begins.
    fn base(&mut self, port: u16) -> u64 {
        if let Some(known) = self.streams.iter().rfind(|stream| stream.port == port) {
            return known.base;
        }
        let base = self.truth.end();
        self.streams.push(EndpointStream { port, base });
        base
    }

    fn declared(&mut self, now: Time, port: u16, declared: LossDeclaration, log: Option<&mut TcpRecording>) {
        let offset = self.base(port) + declared.offset;
        self.truth.declared(now, LossDeclaration { offset, ..declared }, log);
    }

    /// A segment reached the receiver.
    pub(super) fn arrived(&mut self, now: Time, (path, packet): Sent, receiver: &Host, log: Option<&mut TcpRecording>) {
        let streams = &self.streams;
        let holds = |from: u64, to: u64| {
            // Whether an end outside kept it, it does not tell.
            let Host::Mptcp(receiver) = receiver else { return true };
            let Some(stream) = streams.iter().rfind(|stream| stream.base <= from) else { return false };
            let subflow = subflow_from(receiver, path, stream.port);
            subflow.is_some_and(|subflow| subflow.endpoint().receiver().holds(from - stream.base, to - stream.base))
        };
        self.truth.arrived(now, of_path(packet), holds, log);
    }
}

/// Bytes of the connection's stream that have arrived at the receiver by other paths than this one,
/// within the streams of their subflows in order or not.
fn arrived_of(data: Range<u64>, connection: &Connection, path: usize, receiver: &Host) -> u64 {
    let Host::Mptcp(receiver) = receiver else { return 0 };
    if receiver.holds(data.start, data.end) {
        return data.end - data.start;
    }
    let others = connection.copies(data).filter(|(subflow, _)| subflow.path() != path);
    let held = others.filter(|(subflow, at)| {
        let port = subflow.endpoint().ports().local;
        subflow_from(receiver, subflow.path(), port)
            .is_some_and(|end| end.endpoint().receiver().holds(at.start, at.end))
    });
    held.map(|(_, at)| at.end - at.start).max().unwrap_or(0)
}

/// The receiver's end of the subflow on a path that the sender sends from this port.
fn subflow_from(receiver: &Connection, path: usize, port: u16) -> Option<&Subflow> {
    receiver.subflows().iter().find(|one| one.path() == path && one.endpoint().ports().remote == port)
}
