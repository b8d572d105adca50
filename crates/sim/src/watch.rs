//! An end of a connection outside, measured from the headers of its packets.
//!
//! A [`HeaderWatch`] is placed where packets of that end enter and leave, so that its times are
//! those at the end itself. It sees each segment that the end sends or receives, and derives
//! retransmissions, acknowledged bytes, and the time from a segment to its acknowledgment. Sequence
//! numbers are distances from the initial ones, as in ackclock's endpoint (the SYN is unit 0, byte
//! i of the stream unit i + 1, a FIN after n bytes unit n + 1).
//!
//! Several connections may be open at once or in sequence (`iperf3` opens one for control and one
//! for each stream); they are distinguished by their ports, and their counts are summed. Memory is
//! bounded: there are at most a fixed number of connections, and of unacknowledged segments. Beyond
//! the former the connection that has been idle for longest is forgotten, and the counts are
//! [incomplete](HeaderWatch::is_incomplete) if it was open; beyond the latter segments give no RTT.
//!
//! A segment is a retransmission by its numbers alone. Linux probes an idle peer or a closed window
//! without data, which is none; the byte that other systems send for it counts as one, and once
//! more each time (Wireshark calls it a keep-alive).
//!
//! # Source
//! RTT samples as RFC 6298 section 3 (Karn): of segments that were sent once, by an ACK that does
//! not cover one sent again.

use std::collections::VecDeque;

use ackclock_packet::{Flags, Segment};
use ackclock_tcp::Acknowledgment;
use ackclock_trace::{Progress, SentPackets};
use ackclock_units::Time;

/// The most connections that are told apart: more than a program opens at once unless it tests just
/// this. One takes some 250 bytes.
const CONNECTIONS: usize = 4096;
/// The most segments of a connection that are timed at once.
const TIMED: usize = 4096;
/// The same of all connections, each of which may have an equal share. As a share is only cut
/// when a connection opens, all of them have room for less than 64 shares of 4096 and
/// 262144 * ln(4096 / 64) further segments, 54 MB.
const TIMED_IN_ALL: usize = 64 * TIMED;

/// The other end of a watched connection.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub(crate) enum Peer {
    /// Hosts outside, over any number of connections.
    #[default]
    Outside,
    /// An ackclock endpoint: a single connection, whose ports are ignored.
    Ours,
    /// An ackclock endpoint with several subflows, each of which is a connection here.
    Subflows,
}

/// An observer of one end of the connections of a flow.
#[derive(Debug, Default)]
pub(crate) struct HeaderWatch {
    connections: Vec<WatchedConnection>,
    /// Index of each connection, in order of their ports.
    places: Vec<(u32, u32)>,
    /// Connections that were forgotten while they were open.
    forgotten: u64,
    peer: Peer,
    /// The data acknowledgments, if the connections are subflows of one.
    whole: DataAcks,
    /// The one seen last.
    current: usize,
    /// Segments seen.
    seen: u64,
    counts: WatchCounts,
}

/// The positions of data acknowledgments in the streams that several subflows carry; `None` before
/// the first one.
#[derive(Clone, Copy, Debug, Default)]
struct DataAcks {
    acked: Option<u64>,
    delivered: Option<u64>,
}

/// Counts of all connections.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub(crate) struct WatchCounts {
    /// Segments with data that the end has sent, and those whose first byte had been sent before.
    pub(crate) sent: SentPackets,
    /// Bytes that it has acknowledged, and those of its own that are, as far as it has heard.
    pub(crate) progress: Progress,
    /// ACKs that have reached it with the ECN echo of RFC 3168, also those that it may refuse as
    /// too old.
    pub(crate) ece_acks: u64,
}

/// A connection, by the ports of the watched end and of its peer.
#[derive(Debug)]
struct WatchedConnection {
    ports: (u16, u16),
    /// Time of the last segment, in segments seen.
    used: u64,
    sent: Option<WatchedStream>,
    received: Option<WatchedStream>,
    timed: Timed,
    /// The SYN offered ECN as of RFC 3168.
    ecn_asked: bool,
    /// The answer accepted it.
    ecn: bool,
    reset: bool,
}

/// A direction of a connection.
#[derive(Clone, Copy, Debug)]
struct WatchedStream {
    isn: u32,
    /// One past the highest unit seen.
    end: u64,
    /// Acknowledged up to here.
    acked: u64,
    /// The unit of the FIN.
    fin: Option<u64>,
}

/// First transmissions that have not been acknowledged, in order.
#[derive(Debug, Default)]
struct Timed {
    segments: VecDeque<TimedSegment>,
    /// The blocks of the last ACK that had any: what they report has been dealt with.
    blocks: [(u64, u64); 4],
    /// A range that covers all retransmitted bytes that are not among the segments.
    uncertain: (u64, u64),
}

#[derive(Clone, Copy, Debug)]
struct TimedSegment {
    from: u64,
    at: Time,
    len: u32,
    resent: bool,
    sacked: bool,
}

impl TimedSegment {
    fn end(&self) -> u64 {
        self.from + u64::from(self.len)
    }
}

impl WatchedStream {
    /// A stream of which the first that is seen has number `seq`: its SYN, or what comes later.
    fn new(seq: u32, syn: bool) -> WatchedStream {
        let isn = if syn { seq } else { seq.wrapping_sub(1) };
        WatchedStream { isn, end: 1, acked: 1, fin: None }
    }

    /// The unit with the number of the wire that is nearest to `near`; `None` before the SYN.
    fn lift(&self, wire: u32, near: u64) -> Option<u64> {
        let ahead = wire.wrapping_sub(self.isn).wrapping_sub(near as u32).cast_signed();
        near.checked_add_signed(i64::from(ahead))
    }

    /// Bytes of the stream before a unit.
    fn bytes(&self, unit: u64) -> u64 {
        unit.min(self.fin.unwrap_or(u64::MAX)).saturating_sub(1)
    }

    /// Takes a segment in and returns its units without the SYN, and how far the stream had been
    /// seen before. `None` if it has none, or its numbers make no sense.
    fn pass(&mut self, segment: &Segment) -> Option<(u64, u64, u64)> {
        let fin = segment.flags.contains(Flags::FIN);
        let len = u64::from(segment.payload.len) + u64::from(fin);
        if len == 0 {
            return None;
        }
        // Data on a SYN (TCP Fast Open) is behind it.
        let syn = u64::from(segment.flags.contains(Flags::SYN));
        let from = self.lift(segment.seq, self.end)?.checked_add(syn).filter(|&from| from > 0)?;
        let (to, before) = (from.saturating_add(len), self.end);
        self.end = before.max(to);
        if fin {
            self.fin.get_or_insert(to - 1);
        }
        Some((from, to, before))
    }

    /// Takes an acknowledgment number and returns bytes newly acknowledged, and the unit; `None` if
    /// it acknowledges what has not been seen.
    fn acknowledge(&mut self, ack: u32) -> Option<(u64, u64)> {
        let ack = self.lift(ack, self.acked).filter(|&ack| ack <= self.end)?;
        let before = self.bytes(self.acked);
        self.acked = self.acked.max(ack);
        Some((self.bytes(self.acked).saturating_sub(before), ack))
    }

    /// The FIN was seen and is acknowledged.
    fn is_finished(&self) -> bool {
        self.fin.is_some_and(|fin| self.acked > fin)
    }
}

impl Timed {
    /// `from..to` is sent, of which what lies below `before` had been sent. No more than `share`
    /// segments are timed.
    fn sent(&mut self, now: Time, [from, to, before]: [u64; 3], share: usize) {
        if from >= before {
            if self.segments.len() < share {
                let len = (to - from).min(u32::MAX.into()) as u32;
                self.segments.push_back(TimedSegment { from, at: now, len, resent: false, sacked: false });
            }
            return;
        }
        let first = self.segments.partition_point(|sent| sent.end() <= from);
        let mut timed = 0;
        for sent in self.segments.range_mut(first..).take_while(|sent| sent.from < to) {
            sent.resent = true;
            timed += sent.end().min(to) - sent.from.max(from);
        }
        if timed < to - from {
            self.uncertain = match self.uncertain {
                (_, 0) => (from, to),
                (first, last) => (first.min(from), last.max(to)),
            };
        }
    }

    /// An ACK of everything before `ack`, and of some blocks of units behind it; `una` was
    /// acknowledged before. Returns when the newest segment was sent that it measures.
    fn acknowledged(&mut self, una: u64, ack: u64, blocks: &[(u64, u64)]) -> Option<Time> {
        let mut newest = None;
        if una >= self.uncertain.1 {
            self.uncertain = (0, 0);
        }
        let mut certain = ack <= una.max(self.uncertain.0) || self.uncertain.1 == 0;
        while let Some(&sent) = self.segments.front().filter(|sent| sent.end() <= ack) {
            self.segments.pop_front();
            match sent {
                // It was measured when it was reported.
                TimedSegment { sacked: true, .. } => {}
                TimedSegment { resent: true, .. } => certain = false,
                TimedSegment { at, .. } => newest = newest.max(Some(at)),
            }
        }
        for &(left, right) in blocks {
            newest = newest.max(self.report(left, right));
        }
        if let Some(known) = self.blocks.get_mut(..blocks.len()).filter(|known| !known.is_empty()) {
            known.copy_from_slice(blocks);
            self.blocks[blocks.len()..].fill((0, 0));
        }
        newest.filter(|_| certain)
    }

    /// The receiver has `left..right`. What it had reported last is not looked at again.
    fn report(&mut self, left: u64, right: u64) -> Option<Time> {
        let mut newest = None;
        let mut at = left;
        while at < right {
            if let Some(known) = self.blocks.iter().find(|known| known.0 <= at && at < known.1) {
                at = known.1;
                continue;
            }
            let starts = self.blocks.iter().map(|known| known.0).filter(|&start| start > at);
            let until = starts.min().unwrap_or(right).min(right);
            let first = self.segments.partition_point(|sent| sent.from < at);
            for sent in self.segments.range_mut(first..).take_while(|sent| sent.from < until && sent.end() <= right) {
                if !sent.sacked && !sent.resent {
                    newest = newest.max(Some(sent.at));
                }
                sent.sacked = true;
            }
            at = until;
        }
        newest
    }
}

impl WatchedConnection {
    fn new(ports: (u16, u16)) -> WatchedConnection {
        WatchedConnection {
            ports,
            used: 0,
            sent: None,
            received: None,
            timed: Timed::default(),
            ecn_asked: false,
            ecn: false,
            reset: false,
        }
    }

    /// A SYN, sent or received: a new connection, unless it is a copy of the one known.
    fn open(&mut self, segment: &Segment, outgoing: bool) {
        let known = if outgoing { self.sent } else { self.received };
        let answer = segment.flags.contains(Flags::ACK);
        if known.is_none_or(|known| known.isn != segment.seq) {
            if known.is_some() {
                let mut segments = std::mem::take(&mut self.timed.segments);
                segments.clear();
                let timed = Timed { segments, ..Timed::default() };
                *self = WatchedConnection { timed, used: self.used, ..WatchedConnection::new(self.ports) };
            }
            *(if outgoing { &mut self.sent } else { &mut self.received }) = Some(WatchedStream::new(segment.seq, true));
        }
        // RFC 3168 section 6.1.1: ECE and CWR in the SYN, ECE alone in the answer. With AE the SYN
        // asks for more (RFC 9768), and may get this.
        match answer {
            false => self.ecn_asked = segment.flags.contains(Flags::ECE | Flags::CWR),
            true => self.ecn = self.ecn_asked && segment.flags.ace() == Flags::ECE.ace(),
        }
    }

    fn is_over(&self) -> bool {
        self.reset || self.is_finished()
    }

    fn is_finished(&self) -> bool {
        [self.sent, self.received].iter().all(|stream| stream.is_some_and(|stream| stream.is_finished()))
    }

    /// Something may be over now.
    fn is_ending(&self) -> bool {
        self.reset || [self.sent, self.received].iter().flatten().any(|stream| stream.fin.is_some())
    }
}

impl HeaderWatch {
    /// A watch before the first segment.
    pub(crate) fn new(peer: Peer) -> HeaderWatch {
        HeaderWatch { peer, ..HeaderWatch::default() }
    }

    /// The counts.
    pub(crate) fn counts(&self) -> WatchCounts {
        let Progress { delivered_bytes, acked_bytes } = self.counts.progress;
        let progress = Progress {
            delivered_bytes: self.whole.delivered.unwrap_or(delivered_bytes),
            acked_bytes: self.whole.acked.unwrap_or(acked_bytes),
        };
        WatchCounts { progress, ..self.counts }
    }

    /// Returns true if more connections were open at once than are tracked: the counts lack some.
    pub(crate) fn is_incomplete(&self) -> bool {
        self.forgotten > 0
    }

    /// The end has acknowledged its peer's stream, that of all subflows, up to `bytes`; `None` for
    /// a segment without a data acknowledgment.
    pub(crate) fn has_delivered(&mut self, bytes: Option<u64>) {
        self.whole.delivered = self.whole.delivered.max(bytes);
    }

    /// The end has heard that its own stream is acknowledged up to `bytes`.
    pub(crate) fn has_heard(&mut self, bytes: Option<u64>) {
        self.whole.acked = self.whole.acked.max(bytes);
    }

    /// There is a single subflow, whose stream is that of the connection.
    pub(crate) fn is_plain(&mut self) {
        self.whole = DataAcks::default();
    }

    /// Every connection seen was closed by both sides, and everything is acknowledged. Of subflows
    /// some may have been reset before.
    pub(crate) fn is_finished(&self) -> bool {
        let mut connections = self.connections.iter();
        match self.peer {
            Peer::Subflows => self.is_over() && connections.any(WatchedConnection::is_finished),
            Peer::Outside | Peer::Ours => {
                !self.connections.is_empty() && connections.all(WatchedConnection::is_finished)
            }
        }
    }

    /// No connection is open: each was closed by both sides or reset.
    pub(crate) fn is_over(&self) -> bool {
        !self.connections.is_empty() && self.connections.iter().all(WatchedConnection::is_over)
    }

    /// The end sends a segment. Returns where its payload lies in the stream, and whether
    /// connections may have opened or ended.
    pub(crate) fn sends(&mut self, now: Time, segment: &Segment) -> (u64, bool) {
        let share = TIMED.min(TIMED_IN_ALL / self.connections.len().max(1));
        let (one, counts) = self.connection(segment.source_port, segment.destination_port);
        let syn = segment.flags.contains(Flags::SYN);
        if syn {
            one.open(segment, true);
        }
        let stream = one.sent.get_or_insert_with(|| WatchedStream::new(segment.seq, false));
        let mut offset = 0;
        if let Some((from, to, before)) = stream.pass(segment) {
            offset = from - 1;
            let data = u64::from(segment.payload.len > 0);
            counts.sent.sent_packets += data;
            counts.sent.retransmitted_packets += data * u64::from(from < before);
            one.timed.sent(now, [from, to, before], share);
            // Who sends data has not given up.
            one.reset = false;
        }
        if segment.flags.contains(Flags::ACK) {
            let received = one.received.get_or_insert_with(|| WatchedStream::new(segment.ack, false));
            if let Some((bytes, _)) = received.acknowledge(segment.ack) {
                counts.progress.delivered_bytes += bytes;
            }
        }
        one.reset |= segment.flags.contains(Flags::RST);
        (offset, syn || one.is_ending())
    }

    /// A segment has reached the end. Returns what it measures, and whether connections may have
    /// opened or ended.
    pub(crate) fn receives(&mut self, now: Time, segment: &Segment) -> (Acknowledgment, bool) {
        let (one, counts) = self.connection(segment.destination_port, segment.source_port);
        let syn = segment.flags.contains(Flags::SYN);
        if syn {
            one.open(segment, false);
        }
        let stream = one.received.get_or_insert_with(|| WatchedStream::new(segment.seq, false));
        stream.pass(segment);
        let mut arrival = Acknowledgment::default();
        if segment.flags.contains(Flags::ACK)
            && let Some(sent) = &mut one.sent
        {
            let una = sent.acked;
            if let Some((bytes, ack)) = sent.acknowledge(segment.ack) {
                counts.progress.acked_bytes += bytes;
                counts.ece_acks += u64::from(one.ecn && !syn && segment.flags.contains(Flags::ECE));
                let mut blocks = [(0, 0); 4];
                let mut len = 0;
                for &(left, right) in segment.sack.as_slice() {
                    // What is acknowledged is reported as a duplicate (RFC 2883), or late.
                    if let (Some(left), Some(right)) = (sent.lift(left, una), sent.lift(right, una))
                        && left < right
                        && right > ack
                        && right <= sent.end
                    {
                        blocks[len] = (left, right);
                        len += 1;
                    }
                }
                let sent_at = one.timed.acknowledged(una, ack, &blocks[..len]);
                arrival = Acknowledgment { acked: bytes, rtt: sent_at.map(|at| now.since(at)), is_ack: true };
            }
        }
        one.reset |= segment.flags.contains(Flags::RST);
        (arrival, syn || one.is_ending())
    }

    /// The connection with these ports.
    fn connection(&mut self, own: u16, peer: u16) -> (&mut WatchedConnection, &mut WatchCounts) {
        let ports = if self.peer == Peer::Ours { (0, 0) } else { (own, peer) };
        if self.connections.get(self.current).is_none_or(|one| one.ports != ports) {
            let key = number(ports);
            self.current = match self.places.binary_search_by_key(&key, |&(key, _)| key) {
                Ok(found) => self.places[found].1 as usize,
                Err(_) => self.add(ports),
            };
        }
        self.seen += 1;
        let one = &mut self.connections[self.current];
        one.used = self.seen;
        (one, &mut self.counts)
    }

    /// A new connection; once there are many it takes the place of one that is over, or of the one
    /// not seen for longest.
    #[cold]
    fn add(&mut self, ports: (u16, u16)) -> usize {
        let HeaderWatch { connections, places, forgotten, .. } = self;
        let place = if connections.len() < CONNECTIONS {
            connections.push(WatchedConnection::new(ports));
            connections.len() - 1
        } else {
            let oldest = |place: &usize| (!connections[*place].is_over(), connections[*place].used);
            let place = (0..connections.len()).min_by_key(oldest).unwrap_or(0);
            let old = std::mem::replace(&mut connections[place], WatchedConnection::new(ports));
            *forgotten += u64::from(!old.is_over());
            if let Ok(found) = places.binary_search_by_key(&number(old.ports), |&(key, _)| key) {
                places.remove(found);
            }
            place
        };
        let at = places.partition_point(|&(key, _)| key < number(ports));
        places.insert(at, (number(ports), place as u32));
        place
    }
}

/// Ports as a number.
fn number((own, peer): (u16, u16)) -> u32 {
    u32::from(own) << 16 | u32::from(peer)
}

#[cfg(test)]
mod tests;
