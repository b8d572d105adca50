//! The straight way out: new data of an open connection in full segments, and acknowledgments of an
//! end that has nothing to send.
//!
//! While nothing is lost, reported, probed, paced or closing, how many full segments may leave
//! follows from the two windows and from what is written. That is decided once, the fields that
//! all of them share are filled in once, and each is then written as it is asked for. Whatever
//! may change the decision ends the burst; everything else goes the long way, which decides the
//! same. [`crate::Config::header_prediction`] forbids the straight one.

use ackclock_packet::{Flags, Payload, Segment};
use ackclock_units::{Ecn, Time};

use super::Burst;
use crate::send::Sender;
use crate::send::limited::Limit;
use crate::{CaState, Endpoint, Ports, SendRule, SentAs, State};

/// What the straight way comes to.
pub(in crate::send) enum Straight {
    /// A segment is written.
    Sent(Ecn),
    /// Nothing is to be sent, and that is noted.
    Nothing,
    /// It does not apply.
    No,
}

impl Sender {
    /// There is nothing unsent, in flight or to be acknowledged.
    fn rest(&mut self, now: Time, state: State) -> Straight {
        self.counters.window_stopped = false;
        self.sent_as = SentAs::New;
        self.window_use.begin();
        self.window_use.idle(self.sequence.nxt());
        self.all_sent(now, state);
        self.burst.idle = !self.queue.is_short();
        Straight::Nothing
    }

    /// There is nothing to send now.
    #[inline]
    pub(in crate::send) fn all_sent(&mut self, now: Time, state: State) {
        let sent = std::mem::take(&mut self.counters.sending);
        self.review_send_buffer(now, state, sent);
        self.counters.busy.set(now, self.sequence.written() > self.acked_bytes());
        // tcp_write_xmit looks at the congestion window first.
        let has_room =
            !self.counters.window_stopped || self.window_used() + u64::from(self.negotiated.mss()) <= self.cwnd();
        self.counters.window_limited.set(now, self.counters.window_stopped && has_room);
        self.note_stop(now, state, has_room);
    }

    /// A segment leaves.
    #[inline]
    pub(in crate::send) fn note_segment(&mut self) {
        self.counters.segments_out += 1;
        self.counters.sending = true;
    }

    /// The congestion window has no room for a full segment; the peer's has, and there is one.
    #[inline]
    fn stop_at_cwnd(&mut self, now: Time, state: State) {
        self.counters.window_stopped = false;
        self.sent_as = SentAs::New;
        self.window_use.stop();
        self.window_use.note(
            self.sequence.una(),
            self.sequence.nxt(),
            true,
            self.loss.window_outstanding(&self.negotiated),
        );
        let sent = std::mem::take(&mut self.counters.sending);
        if sent {
            self.decay_unused(now, true);
        }
        self.review_send_buffer(now, state, sent);
        self.counters.busy.set(now, true);
        self.counters.window_limited.set(now, false);
        self.held.set(now, Some(Limit::Cwnd));
    }

    /// Writes the next segment of the burst.
    #[inline]
    pub(in crate::send) fn write_full(&mut self, ports: Ports, out: &mut Segment) -> Ecn {
        debug_assert!(self.loss.recovery.is_plain() && self.loss.recovery.state() == CaState::Open);
        debug_assert!(self.window_used() + u64::from(self.burst.payload) <= self.cwnd());
        let (seq, payload) = (self.sequence.nxt(), self.burst.payload);
        self.burst.left -= 1;
        self.loss.board.push(self.burst.stamp, seq, payload, false);
        self.sequence.advance(payload, false);
        if self.burst.timed {
            self.new_data_sent(self.burst.stamp.at);
            self.burst.timed = self.loss.each_moves_timer();
        }
        out.begin((ports.local, ports.remote), self.burst.flags);
        if self.sequence.nxt() == self.sequence.written() + 1 {
            out.flags |= Flags::PSH;
        }
        out.seq = self.sequence.lower(seq);
        out.ack = self.burst.ack;
        out.window = self.burst.window;
        out.timestamps = self.burst.timestamps;
        out.payload = Payload { offset: seq - 1, len: payload };
        self.note_segment();
        self.stats.sent_packets += 1;
        self.counters.bytes_sent += u64::from(payload);
        self.ecn.mark_data(out)
    }
}

impl Endpoint {
    /// Whether new data and acknowledgments are all that may be due.
    #[inline]
    fn is_plain(&self) -> bool {
        self.config.header_prediction
            && self.state == State::Established
            && self.sender.loss.recovery.is_plain()
            && !self.sender.sequence.is_closed()
            && !self.answers.is_due()
            && !self.sender.persist.has_expired()
            && !self.sender.persist.rules()
            && self.sender.persist.deadline() == Time::NEVER
            && !self.sender.loss.board.may_resend()
            && !self.sender.pacer.on
            && !self.sender.loss.board.samples_rates()
            && !self.handshake.owes_bare_ack()
    }

    /// What is to be sent now, where that is plain.
    #[inline(always)]
    pub(in crate::send) fn go_straight(&mut self, now: Time, out: &mut Segment) -> Straight {
        let unsent = (self.sender.sequence.written() + 1).wrapping_sub(self.sender.sequence.nxt());
        if self.sender.burst.idle && unsent == 0 {
            return self.acknowledge_straight(now, out);
        }
        if self.sender.burst.goes_on(now) {
            return Straight::Sent(self.sender.write_full(self.ports, out));
        }
        self.send_straight(now, out, unsent)
    }

    #[inline]
    fn send_straight(&mut self, now: Time, out: &mut Segment, unsent: u64) -> Straight {
        if self.sender.burst.is_over(now) {
            self.sender.stop_at_cwnd(now, self.state);
            return Straight::Nothing;
        }
        self.sender.burst.end();
        if !self.is_plain() {
            return Straight::No;
        }
        if unsent == 0 && self.sender.loss.board.is_empty() {
            return if self.receiver.acknowledges_now() {
                self.acknowledge_straight(now, out)
            } else {
                self.sender.rest(now, self.state)
            };
        }
        let full = self.sender.negotiated.mss();
        if self.receiver.acknowledges_now()
            || self.sender.loss.board.is_empty()
            || unsent < u64::from(full)
            || self.config.transfer.sending == SendRule::Linux
            || self.config.transfer.offload.is_on()
            || self.config.transfer.write_size > 0
            || self.sender.path.probing.enabled
            || self.sender.observer.needs.departures
            || !self.sender.ecn.has_no_option()
        {
            return Straight::No;
        }
        let window = self.sender.sequence.window_end().saturating_sub(self.sender.sequence.nxt());
        let room = self.sender.cc.window().cwnd.saturating_sub(self.sender.window_used());
        let most = window.min(unsent);
        if most < u64::from(full) {
            return Straight::No;
        }
        if room < u64::from(full) {
            self.sender.stop_at_cwnd(now, self.state);
            return Straight::Nothing;
        }
        let left = segments(most.min(room), full);
        let taken = (left + 1) * u64::from(full);
        self.begin_burst(now, full, left, room < taken && taken <= most);
        Straight::Sent(self.sender.write_full(self.ports, out))
    }

    /// Nothing is unsent or in flight: an acknowledgment is all that may be due.
    #[inline(always)]
    fn acknowledge_straight(&mut self, now: Time, out: &mut Segment) -> Straight {
        if !self.receiver.acknowledges_now() {
            debug_assert!(self.is_plain() && self.sender.loss.board.is_empty() && !self.sender.queue.is_short());
            self.sender.counters.sending = false;
            return Straight::Nothing;
        }
        self.sender.counters.window_stopped = false;
        self.write_ack(now, out);
        self.sender.note_segment();
        Straight::Sent(self.sender.ecn.control())
    }

    /// `left` segments of `payload` bytes leave now; then the congestion window is full if they
    /// fill it.
    #[inline]
    fn begin_burst(&mut self, now: Time, payload: u32, left: u64, fills: bool) {
        let window = self.announce_window();
        self.sender.burst = Burst {
            left,
            fills,
            timed: self.sender.follows_new_data(),
            idle: false,
            stamp: self.sender.stamp(now),
            payload,
            ack: self.receiver.ack_number(),
            window,
            flags: Flags::ACK | self.echo_flags(),
            timestamps: self.sender.negotiated.timestamps().then(|| self.sender.negotiated.stamp(now)),
        };
        self.sender.sent_as = SentAs::New;
        self.sender.counters.window_stopped = false;
        self.sender.persist.window_used();
        self.sender.window_use.begin();
        self.receiver.data_sent(now);
        self.sender.sequence.sent_at(now);
    }
}

/// How many segments of `full` bytes fit into `room`: a few, and one at least.
#[inline]
fn segments(room: u64, full: u32) -> u64 {
    let full = u64::from(full);
    if room < 2 * full {
        1
    } else if room < 3 * full {
        2
    } else {
        room / full
    }
}
