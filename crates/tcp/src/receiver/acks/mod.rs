//! When an ACK is due: at once or delayed, by the policy of the host (RFC 5681 section 4.2),
//! Linux's rules or FreeBSD's.

use ackclock_units::{Span, Time};

use super::window::LEAST_GROWING;
use super::{Arrived, Receiver};
use crate::{AckRule, SackCompression, WindowRule};

pub(super) mod compression;
pub(super) mod linux;

use compression::BLOCKS;
use linux::Context;

impl Receiver {
    // Pending ACKs.

    /// An ACK is due.
    #[inline]
    pub(crate) fn acknowledge_now(&mut self) {
        self.ack_now = true;
    }

    /// Returns `true` if an ACK is due.
    #[inline]
    pub(crate) fn acknowledges_now(&self) -> bool {
        self.ack_now
    }

    /// When the delayed ACK is due, [`Time::NEVER`] if none is.
    #[inline]
    pub(crate) fn ack_deadline(&self) -> Time {
        self.ack_at
    }

    #[inline]
    pub(crate) fn delays_ack(&self) -> bool {
        self.ack_at != Time::NEVER
    }

    /// Returns `true` if data waits to be acknowledged, by a timer or at the next opportunity.
    pub(crate) fn owes_ack(&self) -> bool {
        self.ack_now || self.delays_ack()
    }

    /// The connection is over: no ACK is due any more.
    pub(crate) fn stop_acknowledging(&mut self) {
        (self.ack_now, self.ack_at) = (false, Time::NEVER);
    }

    /// The delayed ACK is due.
    pub(crate) fn ack_timed_out(&mut self) {
        // It was the reader's, in its turn: the timer of `tcp_delack_timer` had not expired.
        let by_reader = self.is_drained() && self.is_acknowledged_by_reader();
        self.ack_at = Time::NEVER;
        self.ack_now = true;
        if self.ack_rule == AckRule::Linux && !self.compression.holds() && !by_reader {
            self.linux_acks.timed_out(self.context.rto);
        }
    }

    /// An ACK with a window of `window` bytes leaves.
    #[inline]
    pub(crate) fn acknowledged(&mut self, window: u64) {
        self.announced = self.announced.max(self.next + window);
        self.last_window = window;
        self.last_ack_sent = self.next;
        self.reassembly.reported();
        self.sack.reported(self.next);
        self.compression.sent();
        if self.ack_rule == AckRule::Linux {
            self.linux_acks.acknowledged();
        }
        if self.quick_left > 0 || self.linux_acks.has_quick() {
            self.review_quick();
        }
        self.pushed = false;
        self.unread_segments = 0;
        self.ack_now = false;
        self.ack_at = Time::NEVER;
    }

    /// Quick ACKs end when an ACK leaves while the buffer is more than half full.
    #[inline(never)]
    fn review_quick(&mut self) {
        if matches!(self.window_rule, WindowRule::Linux { .. }) && self.is_half_full() {
            self.linux_acks.end_quick();
            self.quick_left = 0;
        }
    }

    /// A segment with data leaves.
    #[inline]
    pub(crate) fn data_sent(&mut self, now: Time) {
        if self.ack_rule == AckRule::Linux {
            self.linux_acks.data_sent(now);
        }
    }

    // The endpoint's reports and requests.

    /// Returns `true` if the endpoint is to describe what a segment has beside its data.
    #[inline]
    pub(crate) fn is_described(&self) -> bool {
        self.described
    }

    /// Returns `true` if the receive buffer is tuned.
    pub(crate) fn is_tuned(&self) -> bool {
        self.tuned.is_some()
    }

    /// The segment in hand, whose data is about to be taken in.
    #[inline]
    pub(crate) fn describe(&mut self, context: Context) {
        self.context = context;
    }

    /// TCP_QUICKACK.
    pub(crate) fn set_quick_ack(&mut self, on: bool) {
        self.linux_acks.set_interactive(!on);
        self.ack_now |= on && self.ack_rule == AckRule::Linux && self.linux_acks.owes();
    }

    /// The ACK of the handshake waits for the data of a writer that sleeps
    /// (`tcp_rcv_synsent_state_process`).
    pub(crate) fn wait_for_writer(&mut self, now: Time) {
        self.ack_now = false;
        self.ack_at = self.ticks.expiry(now, linux::MOST);
        self.linux_acks.await_writer(now, self.last_window);
    }

    /// The peer has sent everything, and waits for our end.
    pub(crate) fn expect_answer(&mut self) {
        self.linux_acks.expect_answer();
    }

    /// Delay of an acknowledgment now.
    pub(crate) fn ack_timeout(&self) -> Span {
        if self.ack_rule == AckRule::Linux { self.linux_acks.timeout() } else { self.linux_acks.policy.timeout }
    }

    /// The estimated size of the peer's segments.
    pub(crate) fn segment_estimate(&self) -> u32 {
        if self.ack_rule == AckRule::Linux { self.linux_acks.segment() } else { self.peer_segment }
    }

    /// A mark arrived after none for a while: the sender's window may be so small that it waits for
    /// these ACKs (Linux `__tcp_ecn_check_ce`).
    pub(crate) fn congestion_began(&mut self) {
        self.hurry(self.linux_acks.policy.hurry.mark);
    }

    /// Data that is not ECN-capable arrived on a connection with ECN, after data that was if
    /// `seen`: a retransmission (same place).
    pub(crate) fn not_capable_arrived(&mut self, seen: bool) {
        if seen || !self.linux_acks.policy.hurry.after_ect {
            self.hurry(self.linux_acks.policy.hurry.not_ect);
        }
    }

    /// The sender says that its window came down, perhaps so far that it waits for this ACK (Linux
    /// `tcp_ecn_accept_cwr`).
    pub(crate) fn window_was_reduced(&mut self) {
        self.ack_now |= self.linux_acks.policy.hurry.cwr && self.has_quick_mode();
    }

    /// The next ACKs are sent at once, `most` of them and no more than half a window asks for
    /// (`tcp_enter_quickack_mode`).
    fn hurry(&mut self, most: u8) {
        if most == 0 {
            return;
        }
        if self.ack_rule == AckRule::Linux {
            self.linux_acks.hurry_most(most.into(), self.last_window);
        } else if self.linux_acks.policy.quick > 0 {
            self.quick_left = self.quick_left.max(self.window_fill(most.into()));
        }
    }

    /// Half a window of segments, two at least and `most` at most (`tcp_incr_quickack`).
    fn window_fill(&self, most: u32) -> u32 {
        let fill = (self.last_window / (2 * u64::from(self.peer_segment.max(1)))).max(2);
        u64::from(most).min(fill) as u32
    }

    /// Data came that is not next in order.
    pub(super) fn out_of_order(&mut self) {
        self.hurry(self.linux_acks.policy.hurry.gap);
    }

    /// The ACK of data beyond a gap, or of what fills it, is one of those that this began.
    pub(super) fn acknowledged_out_of_order(&mut self) {
        self.quick_left = self.quick_left.saturating_sub(u32::from(self.linux_acks.policy.hurry.gap > 0));
    }

    /// Data came that begins beyond the window, perhaps a probe of a window that is closed (Linux
    /// `tcp_data_queue`).
    pub(crate) fn beyond_window(&mut self) {
        self.unacceptable();
        self.linux_acks.owe();
    }

    // The meaning of data.

    /// A segment came that repeats what is known, or lies outside of the window. The peer has sent
    /// something again: it shall see at once what of the next segments arrives (Linux
    /// `tcp_enter_quickack_mode`).
    pub(super) fn unacceptable(&mut self) {
        self.ack_now = true;
        if self.ack_rule == AckRule::Linux {
            self.linux_acks.hurry(self.last_window);
        } else {
            self.quick_left = self.quick_left.max(self.window_fill(self.linux_acks.policy.quick));
        }
    }

    /// A segment came that ends at `right` and brings nothing new.
    pub(super) fn repeated(&mut self, right: u64) -> Arrived {
        self.duplicate_segments += 1;
        // Otherwise tcp_send_dupack answers, an ACK that quick-ACK mode does not count.
        let counts = right >= self.last_ack_sent;
        if counts {
            self.linux_acks.owe();
        }
        self.unacceptable();
        self.quick_left = self.quick_left.saturating_sub(u32::from(counts));
        Arrived::Duplicate
    }

    /// Returns `true` if the host has Linux's quick-ACK mode.
    pub(super) fn has_quick_mode(&self) -> bool {
        self.ack_rule == AckRule::Linux || self.linux_acks.policy.quick > 0
    }

    /// Returns `true` if reading is a reason to send the ACK that is owed, in Linux.
    pub(super) fn owes_reader(&self) -> bool {
        if self.ack_rule == AckRule::Linux {
            return self.linux_acks.owes_reader(self.next - self.last_ack_sent, self.is_drained());
        }
        self.pushed && self.delays_ack() && self.is_drained()
    }

    /// In-order data: acknowledge now or soon.
    #[inline(always)]
    pub(super) fn schedule_ack(&mut self, now: Time, payload: u32) {
        match self.ack_rule {
            AckRule::Delayed => self.schedule_by_policy(now, payload),
            AckRule::Linux => self.schedule_by_linux(now, payload),
            AckRule::FreeBsd => self.schedule_by_freebsd(now, payload),
        }
    }

    fn schedule_by_linux(&mut self, now: Time, payload: u32) {
        if payload > 0 {
            self.linux_acks.arrived(now, payload, &self.context, self.last_window);
        }
        if self.tuned.is_some() {
            if self.tune_in_order(now, payload) {
                self.linux_acks.quick_once();
            }
        } else if payload >= LEAST_GROWING && self.grow_window(payload) {
            self.linux_acks.quick_once();
        }
        self.linux_acks.owe();
        if self.ack_now {
            // An ACK that is due whatever else leaves before the reader's turn.
            let segments = (self.next - self.read).div_ceil(self.peer_segment.into());
            self.unread_segments = u16::try_from(segments).unwrap_or(u16::MAX);
        }
        if self.context.last {
            self.linux_acks.expect_answer();
        }
        let much = self.linux_acks.is_much(self.next - self.last_ack_sent);
        // Otherwise the reader's ACK opens the window with it.
        if much && self.linux_acks.has_quick() && self.is_half_full() {
            self.linux_acks.end_quick();
        }
        if self.ack_now {
            return;
        }
        if much && self.linux_window() >= self.last_window || self.linux_acks.is_quick() {
            self.ack_now = true;
        } else {
            // One whose time has almost come is not waited for.
            let due = self.linux_acks.due(now, self.ack_at, &self.context, self.ticks);
            (self.ack_now, self.ack_at) = (due <= now, due);
        }
    }

    /// Units in order that an ACK takes for unread.
    #[inline]
    pub(super) fn unread_at_ack(&self) -> u64 {
        (self.next - self.read).max(u64::from(self.unread_segments) * u64::from(self.peer_segment))
    }

    /// `DELAY_ACK`: no timer runs yet, and no more than a segment arrived.
    fn schedule_by_freebsd(&mut self, now: Time, payload: u32) {
        if self.ack_at == Time::NEVER && payload <= self.mss && self.last_window > 0 {
            self.ack_at = self.ticks.expiry(now, self.linux_acks.policy.timeout);
        } else {
            self.ack_now = true;
        }
    }

    /// Signs of trouble, and ends of writes, where the policy asks for more than what arrived.
    #[cold]
    pub(super) fn look_closer(&mut self, now: Time, payload: u32) {
        let hurry = self.linux_acks.policy.hurry;
        if hurry.push {
            self.pushed |= self.context.pushed || payload < self.peer_segment;
        }
        if hurry.idle > 0 && self.linux_acks.gap(now) > self.context.rto {
            self.hurry(hurry.idle);
        }
    }

    #[inline]
    fn schedule_by_policy(&mut self, now: Time, payload: u32) {
        if self.grown < self.space {
            if self.tuned.is_some() {
                self.ack_now |= self.tune_in_order(now, payload);
            } else {
                self.grown += 2 * u64::from(self.peer_segment);
                self.ack_now = true;
            }
        }
        if self.described {
            self.look_closer(now, payload);
        }
        if self.quick_left > 0 {
            self.quick_left -= 1;
            self.ack_now = true;
        } else if self.linux_acks.policy.segments <= 1
            || self.next - self.last_ack_sent
                >= u64::from(self.linux_acks.policy.segments) * u64::from(self.peer_segment)
        {
            self.ack_now = true;
        } else if self.ack_at == Time::NEVER {
            self.ack_at = self.ticks.expiry(now, self.linux_acks.policy.timeout);
        }
    }

    // ACKs of data beyond a gap.

    /// Compresses ACKs from now on, as agreed in the handshake.
    pub(crate) fn compress(&mut self, rules: Option<SackCompression>) {
        self.compression.set_rules(rules);
    }

    /// Data beyond a gap came, and is about to be taken in: it is acknowledged now or, where ACKs
    /// are compressed, soon.
    pub(super) fn acknowledge_gap(&mut self, now: Time, payload: u32) {
        let by_rule = self.ack_rule == AckRule::Linux;
        self.out_of_order();
        if by_rule {
            self.linux_acks.owe();
            let grown = if self.tuned.is_some() { self.grow_beyond(payload) } else { self.grow_window(payload) };
            if grown {
                self.linux_acks.quick_once();
            }
        }
        if self.compression.take_reported() {
            // tcp_event_ack_sent has taken the mark away by which tcp_ack_snd_check knows that an
            // ACK is owed.
            self.linux_acks.settle();
            return;
        }
        if !self.compression.is_on() {
            self.ack_now = true;
            self.acknowledged_out_of_order();
            return;
        }
        let hurries = if by_rule {
            let much = self.linux_acks.is_much(self.next - self.last_ack_sent);
            much && self.linux_window() >= self.last_window || self.linux_acks.is_quick()
        } else {
            let much = self.next - self.last_ack_sent > u64::from(self.peer_segment);
            let quick = self.quick_left > 0;
            self.quick_left = self.quick_left.saturating_sub(1);
            much || quick || self.grows_by_policy()
        };
        if self.ack_now || hurries {
            self.ack_now = true;
            return;
        }
        let idle = !self.compression.holds();
        match self.compression.wait(self.next, self.context.srtt.unwrap_or(Span::ZERO)) {
            None => self.ack_now = true,
            Some(wait) if idle => self.ack_at = self.ack_at.min(now + wait),
            Some(_) => {}
        }
    }

    /// The left edge has moved, by a segment at most. If a gap remains, the ACK that says so is
    /// among the first with its acknowledgment.
    pub(super) fn count_progress(&mut self) {
        let (segment, quick) = if self.ack_rule == AckRule::Linux {
            (self.linux_acks.segment(), self.linux_acks.is_quick())
        } else {
            (self.peer_segment, self.quick_left > 0 || self.grown < self.buffer)
        };
        if self.has_gap() && !quick && self.next - self.last_ack_sent <= u64::from(segment) {
            self.compression.wait(self.next, Span::ZERO);
        }
    }

    /// The window grows, for data beyond a gap as for any, and all of it is acknowledged meanwhile.
    fn grows_by_policy(&mut self) -> bool {
        let grows = self.grown < self.buffer;
        if grows {
            self.grown += 2 * u64::from(self.peer_segment);
        }
        grows
    }

    /// The ACK that waited has left before the segment in hand is taken in.
    pub(crate) fn reported_before(&mut self) {
        self.compression.report();
    }

    /// Data in `left..right`, beyond a gap, is about to be taken in, with the smoothed RTT `srtt`:
    /// whether the ACK that waits has to leave first, because it would have another block to
    /// report.
    pub(crate) fn reports_before(&mut self, left: u64, right: u64, srtt: Option<Span>) -> bool {
        self.context.srtt = srtt;
        if !self.compression.holds() {
            return false;
        }
        let touches = |block: (u64, u64)| left <= block.1 && block.0 <= right;
        let at = self.reassembly.recent().position(touches);
        at.unwrap_or_else(|| self.reassembly.recent().count()) >= BLOCKS
    }
}
