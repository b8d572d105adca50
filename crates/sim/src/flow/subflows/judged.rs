//! The fates of the transmissions of subflows.
//!
//! Each path has a [`Truth`] of its own: its retransmissions repeat what was sent on it. Endpoints
//! that follow each other on a path, each with ports of its own, are one stream there: that of the
//! next begins where the last byte sent by the one before was.

use std::ops::Range;

use ackclock_mptcp::{Connection, Subflow};
use ackclock_packet::{Flags, Segment};
use ackclock_tcp::{Acknowledgment, LossDeclaration, SentAs};
use ackclock_units::Time;

use super::{Flow, Subflows, of};
use crate::host::Host;
use crate::record::{SenderId, TcpRecording};
use crate::truth::{Culprit, Truth};

/// The bits of a packet's number that are for its path; those above count on all of them.
const PATH_BITS: u32 = 32;

/// A packet with data that a sender has sent: its path, and its number.
pub(crate) type Sent = (usize, u64);

/// The number among those of its path in a packet's number.
fn of_path(packet: u64) -> u64 {
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
    truth: Truth,
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
    pub(super) fn new(source: SenderId) -> PathTruth {
        PathTruth { source, truth: Truth::new(source), streams: Vec::new(), acked: 0, needless: 0 }
    }

    pub(super) fn truth(&self) -> &Truth {
        &self.truth
    }

    /// Bytes that were sent first on this path when they had arrived by another one.
    pub(super) fn needless_bytes(&self) -> u64 {
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
    fn arrived(&mut self, now: Time, (path, packet): Sent, receiver: &Host, log: Option<&mut TcpRecording>) {
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

impl Subflows {
    /// The sender has sent a segment; returns the number of the packet, 0 of one without data.
    fn sent(&mut self, now: Time, connection: &Connection, segment: &Segment, receiver: &Host) -> u64 {
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
    fn answered(&mut self, path: usize) -> u64 {
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

impl Flow {
    /// An ackclock endpoint has sent a segment; returns the number of the packet.
    #[inline]
    pub(crate) fn sent(
        &mut self,
        now: Time,
        is_sender: bool,
        [state, peer]: [&Host; 2],
        segment: &Segment,
        by_timer: bool,
    ) -> u64 {
        match (&mut self.subflows, state) {
            (Some(subflows), Host::Mptcp(connection)) if is_sender => subflows.sent(now, connection, segment, peer),
            (Some(subflows), Host::Mptcp(connection)) => subflows.answered(connection.last_path()),
            _ if !is_sender => self.truth.receiver_sent(),
            _ => match state.range_of(segment) {
                Some(range) => {
                    self.truth.sent(state.stamp(now), range, state.sent_as(by_timer), segment.payload.len > 0)
                }
                None => 0,
            },
        }
    }

    /// A receiver outside has sent a packet over a path; returns its number.
    pub(crate) fn receiver_sent(&mut self, path: usize) -> u64 {
        match &mut self.subflows {
            None => self.truth.receiver_sent(),
            Some(subflows) => subflows.answered(path),
        }
    }

    /// A packet with data has reached the receiver.
    #[inline]
    pub(crate) fn arrived(&mut self, now: Time, sent: Sent, receiver: &Host, log: Option<&mut TcpRecording>) {
        match &mut self.subflows {
            None => self.truth.arrived(now, sent.1, |from, to| receiver.holds(from, to), log),
            Some(subflows) => {
                if let Some(measures) = subflows.all.get_mut(sent.0) {
                    measures.judged.arrived(now, sent, receiver, log);
                }
            }
        }
    }

    /// The last copy of a packet with data was lost.
    pub(crate) fn lost(&mut self, at: Time, sent: Sent, culprit: Culprit, log: Option<&mut TcpRecording>) {
        match &mut self.subflows {
            None => self.truth.lost(at, sent.1, culprit, log),
            Some(subflows) => {
                if let Some(measures) = subflows.all.get_mut(sent.0) {
                    measures.judged.truth.lost(at, of_path(sent.1), culprit, log);
                }
            }
        }
    }

    /// The run is over, or the flow is: what is on its way is not lost.
    pub(crate) fn finish_truth(&mut self, end: Time, mut log: Option<&mut TcpRecording>) {
        self.truth.finish(end, log.as_deref_mut());
        if let Some(subflows) = &mut self.subflows {
            subflows.all.iter_mut().for_each(|one| one.judged.truth.finish(end, log.as_deref_mut()));
        }
    }
}
