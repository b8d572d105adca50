//! Header prediction: the segments of which most of a transfer consists take a short way.
//!
//! While nothing unusual is going on, a connection expects two kinds of segments: the data that is
//! next in order, or after a loss beyond it, and an ACK of the oldest segments in flight. They are
//! recognized by a few comparisons and need hardly any of the decisions of the ordinary way
//! ([`Endpoint::input`]), which takes everything else. The two ways have the same effects: what is
//! left out here would do nothing there. [`crate::Config::header_prediction`] forbids the short
//! one, and tests compare runs with and without it.
//!
//! # Source
//! V. Jacobson, "4BSD TCP header prediction", ACM CCR 20(2), 1990; FreeBSD `tcp_do_segment`
//! (`sys/netinet/tcp_input.c`); Linux `tcp_rcv_established` (`net/ipv4/tcp_input.c`).
//!
//! # Departures
//! - Data that acknowledges something, and a window that has changed, are predicted as well.

use ackclock_packet::Segment;
use ackclock_units::{Ecn, Time};

use crate::{Acknowledgment, Endpoint, State};

impl Endpoint {
    /// Takes in a segment if it is one of those that are expected; `None`, with nothing done, if it
    /// is not.
    #[inline(always)]
    pub(super) fn input_predicted(&mut self, now: Time, segment: &Segment, ecn: Ecn) -> Option<Acknowledgment> {
        if !self.sender.predicts
            || self.state != State::Established
            || !self.receiver.expects(segment.seq, segment.payload.len)
            || !self.sender.is_ordinary(segment, ecn)
        {
            return None;
        }
        debug_assert!(self.sender.may_predict());
        let (una, payload) = (self.sender.sequence.una(), segment.payload.len);
        let acked = segment.ack.wrapping_sub(self.sender.sequence.lower(una));
        if acked > i32::MAX as u32 || u64::from(acked) > self.sender.sequence.nxt() - una {
            return None;
        }
        let left = self.receiver.next();
        if acked > 0 {
            let ack = una + u64::from(acked);
            let whole = self.sender.loss.board.acknowledge_whole(ack)?;
            self.sender.take_time(now);
            self.sender.input_predicted_ack(now, segment, left, ack, whole);
        } else if payload > 0 && self.sender.loss.board.is_empty() {
            self.sender.take_stream_segment(now, segment, left, una);
        } else if payload > 0 && self.sender.loss.board.is_orderly() && !self.sender.observer.needs.arrivals {
            self.sender.take_time(now);
            self.sender.latest_sample = None;
            self.sender.set_window(segment, left, una, false);
            self.sender.ecn.hears_nothing();
            self.sender.queue.acked = true;
            self.sender.loss.on_data_alone();
            self.sender.update_pacing_rate();
        } else {
            return None;
        }
        self.count_predicted(now, segment, ecn, left);
        if payload > 0 {
            self.receiver.check(left, segment.payload);
            self.describe_arrival(now, segment);
            self.receiver.receive_next(now, left + u64::from(payload), payload);
            if self.socket.discards() {
                self.read(u64::MAX);
            }
        }
        Some(self.sender.acknowledgment(acked.into()))
    }

    /// Takes in data that lies beyond a gap, or before one, at the receiver of a stream; `None`,
    /// with nothing done, for anything else.
    #[inline(always)]
    pub(super) fn input_at_gap(&mut self, now: Time, segment: &Segment, ecn: Ecn) -> Option<Acknowledgment> {
        let (una, payload) = (self.sender.sequence.una(), segment.payload.len);
        if !self.sender.predicts
            || self.state != State::Established
            || payload == 0
            || !self.sender.loss.board.is_empty()
            || segment.ack != self.sender.sequence.lower(una)
            || !self.sender.is_ordinary(segment, ecn)
        {
            return None;
        }
        let (left, right) = self.receiver.range_ahead(segment.seq, payload)?;
        self.sender.take_stream_segment(now, segment, left, una);
        self.count_predicted(now, segment, ecn, left);
        self.receiver.check(left, segment.payload);
        self.describe_arrival(now, segment);
        if left > self.receiver.next() {
            self.note_gap(now, left, right);
        }
        self.receiver.receive(now, left, right, payload);
        if self.socket.discards() {
            self.read(u64::MAX);
        }
        Some(self.sender.acknowledgment(0))
    }

    /// Notes the arrival of a segment that is predicted.
    #[inline(always)]
    fn count_predicted(&mut self, now: Time, segment: &Segment, ecn: Ecn, left: u64) {
        self.sender.window_answered(now);
        self.sender.counters.arrived(now, segment, ecn);
        self.sender.counters.predicted += 1;
        self.sender.writing.set_more(false);
        self.liveness.heard(now);
        self.update_ts_recent(now, segment, left);
    }
}
