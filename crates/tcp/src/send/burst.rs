//! A burst of full segments: the straight way out of new data of an open connection, and of
//! acknowledgments of an end that has nothing to send.
//!
//! While nothing is lost, reported, probed, paced or closing, how many full segments may leave
//! follows from the two windows and from what is written. That is decided once, the fields that
//! all of them share are filled in once, and each is then written as it is asked for. Whatever
//! may change the decision ends the burst; everything else goes the long way, which decides the
//! same. [`crate::Config::header_prediction`] forbids the straight one.

use ackclock_packet::{Flags, Payload, Segment, Timestamps};
use ackclock_units::{Ecn, Time};

use crate::send::Sender;
use crate::send::limited::Limit;
use crate::{CaState, Ports, SendRule, SentAs, Stamp, State};

/// Full segments that may leave at one time, and what their headers have in common.
#[derive(Debug)]
pub(crate) struct Burst {
    /// Segments left.
    left: u32,
    /// The congestion window has no room for another one, or for any.
    fills: bool,
    /// The next one has to do with the retransmission timer.
    timed: bool,
    /// Nothing is unsent or in flight, and that is noted: as long as nothing more is written and
    /// nothing unexpected happens, an acknowledgment is all that may be due.
    idle: bool,
    /// New data and acknowledgments are all that may be due, unless the congestion state changes:
    /// as long as nothing unexpected happens, nothing else of it is looked at again.
    calm: bool,
    /// When they leave.
    stamp: Stamp,
    payload: u32,
    ack: u32,
    window: u16,
    flags: Flags,
    timestamps: Option<Timestamps>,
}

impl Default for Burst {
    fn default() -> Burst {
        Burst {
            left: 0,
            fills: false,
            timed: false,
            idle: false,
            calm: false,
            stamp: Stamp::default(),
            payload: 0,
            ack: 0,
            window: 0,
            flags: Flags::NONE,
            timestamps: None,
        }
    }
}

impl Burst {
    /// Ends the burst after an expected arrival or a read, which may let more leave and changes
    /// acknowledgments; it gives nobody anything to send who has nothing.
    #[inline]
    pub(crate) fn interrupt(&mut self) {
        (self.left, self.fills) = (0, false);
    }

    /// Something may have changed what may leave.
    #[inline]
    pub(crate) fn end(&mut self) {
        (self.left, self.fills, self.idle, self.calm) = (0, false, false, false);
    }

    /// The sender looks anew for what may leave.
    #[inline]
    pub(crate) fn begin(&mut self) {
        (self.left, self.fills, self.idle) = (0, false, false);
    }

    /// Nothing but new data and acknowledgments may be due, apart from the congestion state.
    #[inline]
    pub(crate) fn calm_down(&mut self) {
        self.calm = true;
    }

    /// Returns `true` if that was found, and nothing unexpected has happened since.
    #[inline]
    pub(crate) fn is_calm(&self) -> bool {
        self.calm
    }

    /// Returns `true` if an acknowledgment is all that may be due.
    #[inline]
    pub(crate) fn idles(&self) -> bool {
        self.idle
    }

    /// Returns `true` if a segment is left to be sent at `now`.
    #[inline]
    pub(crate) fn goes_on(&self, now: Time) -> bool {
        self.left > 0 && self.stamp.at == now
    }

    /// Returns `true` if the burst has ended because the congestion window is full.
    #[inline]
    pub(crate) fn is_over(&self, now: Time) -> bool {
        self.fills && self.stamp.at == now
    }
}

/// Number of segments of `full` bytes that fit into `room`: a few, and one at least.
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

impl Sender {
    /// Returns `true` if nothing but new data may be due.
    #[inline]
    pub(crate) fn is_plain(&self) -> bool {
        self.has_plain_state()
            && self.config.header_prediction
            && !self.sequence.is_closed()
            && !self.persist.has_expired()
            && !self.persist.rules()
            && self.persist.deadline() == Time::NEVER
            && !self.loss.board.samples_rates()
    }

    /// The part of it that an expected acknowledgment may change.
    #[inline]
    pub(crate) fn has_plain_state(&self) -> bool {
        self.loss.recovery.is_plain() && !self.loss.board.may_resend() && !self.pacer.is_on()
    }

    /// Number of full segments of `unsent` bytes that may leave now, and `true` if the congestion
    /// window is full after them; none if it is full already. `None` if they are not to leave by
    /// the straight way.
    #[inline]
    pub(crate) fn room_for_burst(&self, unsent: u64) -> Option<(u64, bool)> {
        let full = self.negotiated.mss();
        if self.loss.board.is_empty()
            || unsent < u64::from(full)
            || self.config.transfer.sending == SendRule::Linux
            || self.config.transfer.offload.is_on()
            || self.config.transfer.write_size > 0
            || self.path.probing.enabled
            || self.observer.needs.departures
            || !self.ecn.has_no_option()
        {
            return None;
        }
        let window = self.sequence.window_end().saturating_sub(self.sequence.nxt());
        let room = self.cc.window().cwnd.saturating_sub(self.window_used());
        let most = window.min(unsent);
        if most < u64::from(full) {
            return None;
        }
        if room < u64::from(full) {
            return Some((0, true));
        }
        let left = segments(most.min(room), full);
        let taken = (left + 1) * u64::from(full);
        Some((left, room < taken && taken <= most))
    }

    /// `left` full segments leave now, with this acknowledgment, window and flags; then the
    /// congestion window is full if they fill it.
    #[inline]
    pub(crate) fn begin_burst(&mut self, now: Time, left: u64, fills: bool, header: (u32, u16, Flags)) {
        let (ack, window, flags) = header;
        self.burst = Burst {
            left: u32::try_from(left).unwrap_or(u32::MAX),
            fills,
            timed: self.follows_new_data(),
            idle: false,
            calm: true,
            stamp: self.stamp(now),
            payload: self.negotiated.mss(),
            ack,
            window,
            flags,
            timestamps: self.negotiated.timestamps().then(|| self.negotiated.stamp(now)),
        };
        self.sent_as = SentAs::New;
        self.counters.window_stopped = false;
        self.persist.window_used();
        self.window_use.begin();
        self.sequence.sent_at(now);
    }

    /// There is nothing unsent, in flight or to be acknowledged.
    pub(crate) fn rest(&mut self, now: Time, state: State) {
        self.counters.window_stopped = false;
        self.sent_as = SentAs::New;
        self.window_use.begin();
        self.window_use.idle(self.sequence.nxt());
        self.all_sent(now, state);
        self.burst.idle = !self.queue.is_short() && self.is_quiet();
    }

    /// There is nothing to send now.
    #[inline]
    pub(crate) fn all_sent(&mut self, now: Time, state: State) {
        let sent = std::mem::take(&mut self.counters.sending);
        self.review_send_buffer(now, state, sent);
        self.counters.busy.set(now, self.sequence.written() > self.sequence.acked_bytes());
        // tcp_write_xmit looks at the congestion window first.
        let has_room =
            !self.counters.window_stopped || self.window_used() + u64::from(self.negotiated.mss()) <= self.cwnd();
        self.counters.window_limited.set(now, self.counters.window_stopped && has_room);
        self.note_stop(now, state, has_room);
    }

    /// The sender stops at `now`; `has_room` unless the peer's window and the congestion window
    /// both stop it.
    #[inline]
    fn note_stop(&mut self, now: Time, state: State, has_room: bool) {
        let reason = if self.pacer.holds() {
            Some(Limit::Pacing)
        } else if self.counters.window_stopped && has_room && !self.window_use.is_stopped() {
            Some(Limit::Window)
        } else if self.counters.window_stopped | self.window_use.is_stopped()
            || self.loss.recovery.has_ended_with_lost() && self.sequence.unsent() > 0
        {
            Some(Limit::Cwnd)
        } else {
            let open = matches!(state, State::Established | State::CloseWait) && !self.sequence.is_closed();
            open.then_some(Limit::Application)
        };
        self.held.set(now, reason);
    }

    /// The congestion window has no room for a full segment; the peer's has, and there is one.
    #[inline]
    pub(crate) fn stop_at_cwnd(&mut self, now: Time, state: State) {
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
    pub(crate) fn write_full(&mut self, ports: Ports, out: &mut Segment) -> Ecn {
        debug_assert!(self.loss.recovery.is_plain() && self.loss.recovery.state() == CaState::Open);
        debug_assert!(self.window_used() + u64::from(self.burst.payload) <= self.cwnd());
        let (seq, payload) = (self.sequence.nxt(), self.burst.payload);
        self.burst.left -= 1;
        self.sequence.advance(payload, false);
        out.begin((ports.local, ports.remote), self.burst.flags);
        let pushes = self.sequence.nxt() >= self.queue.next_push && self.queue.sent(self.sequence.nxt());
        if pushes || self.sequence.nxt() == self.sequence.written() + 1 && !self.config.transfer.marks_writes() {
            out.flags |= Flags::PSH;
        }
        out.seq = self.sequence.lower(seq);
        out.ack = self.burst.ack;
        out.window = self.burst.window;
        out.timestamps = self.burst.timestamps;
        out.payload = Payload { offset: seq - 1, len: payload };
        self.counters.segment_sent();
        self.stats.sent_packets += 1;
        self.counters.bytes_sent += u64::from(payload);
        let ecn = self.ecn.mark_data(out);
        self.loss.board.push(self.burst.stamp, seq, payload, false);
        if pushes {
            self.loss.board.set_push(true);
        }
        if self.burst.timed {
            self.new_data_sent(self.burst.stamp.at);
            self.burst.timed = self.loss.each_moves_timer();
        }
        ecn
    }
}
