//! Header prediction: the segments of which most of a transfer consists take a short way.
//!
//! While nothing unusual is going on, a connection expects two kinds of segments: the data that is
//! next in order, and an ACK of the oldest segments in flight. Both are recognized by a few
//! comparisons and need hardly any of the decisions of the ordinary way ([`Endpoint::input`]),
//! which takes everything else. The two ways have the same effects: what is left out here would do
//! nothing there. [`crate::Config::header_prediction`] forbids the short one, and tests compare
//! runs with and without it.
//!
//! # Source
//! V. Jacobson, "4BSD TCP header prediction", ACM CCR 20(2), 1990; FreeBSD `tcp_do_segment`
//! (`sys/netinet/tcp_input.c`); Linux `tcp_rcv_established` (`net/ipv4/tcp_input.c`).
//!
//! # Departures
//! - Data that acknowledges something, and a window that has changed, are predicted as well.

use ackclock_packet::{Flags, Segment};
use ackclock_units::{Ecn, Time};

use crate::loss::scoreboard::Whole;
use crate::{Acknowledgment, Endpoint, RttRule, State};

impl Endpoint {
    /// Takes in a segment if it is one of those that are expected; `None`, with nothing done, if it
    /// is not.
    #[inline(always)]
    pub(super) fn input_predicted(&mut self, now: Time, segment: &Segment, ecn: Ecn) -> Option<Acknowledgment> {
        if !self.predicts || self.state != State::Established || !self.is_expected(segment, ecn) {
            return None;
        }
        debug_assert!(self.may_predict());
        let (una, payload) = (self.send.una(), segment.payload.len);
        let acked = segment.ack.wrapping_sub(self.send.lower(una));
        if acked > i32::MAX as u32 || u64::from(acked) > self.send.nxt() - una {
            return None;
        }
        let left = self.receiver.next();
        if acked > 0 {
            let ack = una + u64::from(acked);
            let whole = self.board.acknowledge_whole(ack)?;
            self.take_time(now);
            self.input_predicted_ack(now, segment, ack, whole);
        } else if payload > 0 && self.board.is_empty() {
            // The receiver of a stream.
            self.take_time(now);
            self.latest_sample = None;
            self.set_window(segment, left, una, false);
            if self.linux_episodes() {
                self.restart_retransmit_timer(now);
            }
        } else if payload > 0 && self.board.is_orderly() && !self.observer.needs.arrivals {
            self.take_time(now);
            self.latest_sample = None;
            self.set_window(segment, left, una, false);
            self.ecn.hears_nothing();
            self.queue.acked = true;
            self.on_data_alone();
            self.update_pacing_rate();
        } else {
            return None;
        }
        self.window_answered(now);
        self.counters.arrived(now, segment, ecn);
        self.counters.predicted += 1;
        self.writing.set_more(false);
        self.liveness.heard(now);
        self.update_ts_recent(now, segment, left);
        if payload > 0 {
            self.receiver.check(left, segment.payload);
            self.describe_arrival(now, segment);
            self.receiver.receive_next(now, left + u64::from(payload), payload);
            if self.socket.discards() {
                self.read(u64::MAX);
            }
        }
        Some(self.acknowledgment(acked.into()))
    }

    /// Whether a segment is in order, ordinary in its header and within the window, and nothing is
    /// missing or waited for in either direction.
    #[inline(always)]
    fn is_expected(&self, segment: &Segment, ecn: Ecn) -> bool {
        let flags = segment.flags.bits() & !Flags::PSH.bits();
        flags == Flags::ACK.bits()
            && self.receiver.expects(segment.seq, segment.payload.len)
            && segment.sack.is_empty()
            && self.negotiated.expects(segment.timestamps)
            && self.recovery.is_quiet()
            && self.persist.is_quiet()
            && self.path.probing.size == 0
            && ecn != Ecn::Ce
            && (!self.ecn.may_arrive_marked() || self.ecn.is_ordinary(segment.payload.len, ecn))
    }

    /// Everything below `ack` has arrived, whole segments that were sent once.
    #[inline(always)]
    fn input_predicted_ack(&mut self, now: Time, segment: &Segment, ack: u64, whole: Whole) {
        let (una, window_before) = (self.send.una(), self.send.window());
        self.send.acknowledge(ack);
        self.rtt.progress();
        self.persist.acknowledged();
        let window = u64::from(segment.window) << self.negotiated.peer_shift();
        self.send.set_window(window, self.receiver.next(), ack);
        let rtt = now.since(whole.last.at);
        self.latest_sample = Some(rtt);
        self.detector.measured(now, rtt);
        if self.config.transfer.rtt == RttRule::Linux {
            self.rtt.note_min(rtt);
            self.sample_rtt(now.since(whole.first_at));
        } else {
            self.sample_rtt(rtt);
        }
        self.ecn.hears_nothing();
        self.counters.delivered_segments += whole.segments;
        self.queue.acked = true;
        self.measure_use(now);
        if self.observer.needs.arrivals {
            self.tell_arrival(now, segment, (whole.units, whole.units), una, window_before);
        }
        self.on_whole_ack(now, &whole);
        self.update_pacing_rate();
        if !self.linux_episodes() || self.board.is_empty() {
            self.restart_timer_by_ack(now);
        }
    }
}
