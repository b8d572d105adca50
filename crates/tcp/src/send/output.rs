//! What to send next.

use ackclock_cc::EcnFeedback;
use ackclock_packet::{Flags, Payload, SackBlocks, Segment, Timestamps};
use ackclock_units::{Ecn, Time};

use crate::connection::timers::Pending;
use crate::loss::linux::Resend;
use crate::loss::scoreboard::Sent;
use crate::send::pmtu::ProbeStep;
use crate::send::segmentation::Held;
use crate::seq::lower;
use crate::{CaState, CwndValidation, Endpoint, SendRule, SentAs, State, WindowProbe};

/// Bytes of a timestamps option with its padding.
const TIMESTAMPS_LEN: u32 = 12;

/// Which part of the sequence space goes into the next segment.
struct Piece {
    seq: u64,
    payload: u32,
    fin: bool,
    /// A retransmission, or a probe of a closed window: not ECN-capable.
    plain: bool,
    /// PSH, where a rule says so.
    push: bool,
}

impl Endpoint {
    /// Writes the next segment to be sent into `out` and returns the codepoint of its IP header; `None` when there is
    /// nothing to send now. To be asked until it gives `None`.
    #[inline(always)]
    pub fn transmit(&mut self, now: Time, out: &mut Segment) -> Option<Ecn> {
        self.counters.window_stopped = false;
        self.note_writes(now);
        let ecn = self.next_segment(now, out);
        if ecn.is_some() {
            self.counters.segments_out += 1;
            self.counters.sending = true;
        } else {
            self.all_sent(now);
        }
        ecn
    }

    /// There is nothing to send now.
    #[inline]
    fn all_sent(&mut self, now: Time) {
        let sent = std::mem::take(&mut self.counters.sending);
        self.review_send_buffer(now, sent);
        self.counters.busy.set(now, self.send.written > self.acked_bytes());
        // tcp_write_xmit looks at the congestion window first.
        let has_room = !self.counters.window_stopped || self.window_used() + u64::from(self.mss) <= self.cwnd();
        self.counters.window_limited.set(now, self.counters.window_stopped && has_room);
        self.note_stop(now, has_room);
    }

    #[inline(always)]
    fn next_segment(&mut self, now: Time, out: &mut Segment) -> Option<Ecn> {
        if self.reply.is_some() || self.challenge_due | self.probe_now | self.feedback.ack_before.is_some() {
            self.write_answer(now, out);
            return Some(self.feedback.control);
        }
        match self.state {
            State::Closed | State::Listen => return None,
            State::SynSent | State::SynReceived => {
                if self.send.syn_pending {
                    return Some(self.write_syn(now, out));
                }
                if let Some(piece) = self.next_early(now) {
                    return Some(self.write_data(now, out, piece));
                }
            }
            _ => {
                // A report of a gap or a duplicate does not ride on data: there may be no room for its SACK blocks, and an
                // ACK with data is no duplicate ACK (RFC 5681 section 2).
                let reports = self.receiver.has_gap() || self.receiver.has_duplicate();
                let alone = reports || std::mem::take(&mut self.send.bare_ack);
                if !(self.receiver.ack_now && alone) {
                    if let Some(piece) = self.next_piece(now) {
                        return Some(self.write_data(now, out, piece));
                    }
                    self.note_window_use(now);
                    if self.probe_now {
                        self.write_bare_ack(now, out);
                        return Some(self.feedback.control);
                    }
                }
            }
        }
        if self.receiver.ack_now && self.state != State::SynSent {
            self.write_ack(now, out);
            return Some(self.feedback.control);
        }
        None
    }

    /// New data of a child that was opened by its SYN: nothing is sent again before the last ACK of the handshake has come.
    #[cold]
    fn next_early(&mut self, now: Time) -> Option<Piece> {
        if !self.is_open_early() || self.pacer.on && self.waits_for_release(now) {
            return None;
        }
        self.sent_as = SentAs::New;
        self.next_new(now)
    }

    /// Chooses what to send: a retransmission, new data, a FIN, or a probe.
    #[inline(always)]
    fn next_piece(&mut self, now: Time) -> Option<Piece> {
        self.send.cwnd_stopped = false;
        if self.send.probing || self.send.resend_probe {
            self.pacer.let_go();
            return self.next_probe_again(now);
        }
        let mut resends = true;
        if self.linux_episodes {
            if std::mem::take(&mut self.recovery.probe.due) {
                return self.next_loss_probe(now);
            }
            if self.pacer.on && self.waits_for_release(now) {
                return None;
            }
            if self.recovery.resend == Resend::New {
                let new = self.next_of_frto(now);
                if new.is_some() || self.recovery.resend == Resend::New {
                    return new;
                }
            }
            resends = self.recovery.resend == Resend::Lost || self.recovery.force;
        } else if self.pacer.on && self.waits_for_release(now) {
            return None;
        }
        if let Some(lost) = self.board.next_lost().filter(|_| resends) {
            // RFC 6675 NextSeg rule 1.
            let used = self.window_used();
            let full = used + u64::from(lost.len.min(self.mss + 1)) > self.cwnd() || self.is_full_of_segments();
            if full && !self.recovery.force {
                self.send.cwnd_stopped = true;
                return None;
            }
            self.sent_as = if lost.by_timeout() { SentAs::Timeout } else { SentAs::FastRetransmit };
            return Some(self.piece_again(now, lost));
        }
        let in_disorder = self.recovery.state == CaState::Disorder;
        self.sent_as = if in_disorder { SentAs::LimitedTransmit } else { SentAs::New };
        if let Some(piece) = self.next_new(now) {
            return Some(piece);
        }
        if self.recovery.state == CaState::Recovery && resends && self.sack_enabled && !self.send.cwnd_stopped {
            self.sent_as = SentAs::Speculative;
            return self.next_speculative(now);
        }
        None
    }

    /// Notes whether this round trip fills the congestion window: what an unused window allows says nothing about the
    /// network, and it must not grow (RFC 2861). As Linux's `tcp_cwnd_validate`.
    #[inline(always)]
    fn note_window_use(&mut self, now: Time) {
        if self.pacer.holds() && !self.counters.sending && self.window_used() + u64::from(self.mss) <= self.cwnd() {
            // Nothing was sent because it was not time: nothing is known of the window.
            return;
        }
        if self.board.is_empty() && !self.send.cwnd_stopped {
            // Any window holds a segment.
            let send = &mut self.send;
            (send.cwnd_limited, send.most_outstanding, send.usage_point) = (false, 0, send.nxt);
            return;
        }
        let outstanding = if self.config.transfer.sending == SendRule::Linux {
            self.board.segments() * u64::from(self.mss)
        } else {
            self.board.outstanding()
        };
        let limited = self.send.cwnd_stopped || self.window_used() + u64::from(self.mss) > self.cwnd();
        let send = &mut self.send;
        let more = !send.cwnd_limited && outstanding > send.most_outstanding;
        if send.una >= send.usage_point || limited || more {
            (send.cwnd_limited, send.most_outstanding, send.usage_point) = (limited, outstanding, send.nxt);
        }
        if self.counters.sending {
            self.decay_unused(now, limited);
        }
    }

    /// F-RTO: new data alone, as much as the window allows; without any, what is lost.
    #[cold]
    fn next_of_frto(&mut self, now: Time) -> Option<Piece> {
        self.sent_as = SentAs::New;
        let new = self.next_new(now);
        if new.is_none() && self.send.nxt <= self.recovery.point {
            (self.recovery.resend, self.recovery.frto) = (Resend::Lost, false);
        }
        new
    }

    /// RFC 6675 `NextSeg` rule 2: data that was never sent.
    #[inline(always)]
    fn next_new(&mut self, now: Time) -> Option<Piece> {
        if self.send.fin_sent {
            return None;
        }
        let available = (self.send.written + 1).saturating_sub(self.send.nxt);
        let closing = self.send.closed;
        if available == 0 && !closing {
            self.send.probe_due = false;
            return None;
        }
        let window = (self.send.una + self.send.wnd).saturating_sub(self.send.nxt);
        if self.path.probing.enabled && !self.counters.sending {
            match self.mtu_probe(now, available, window) {
                ProbeStep::No => {}
                ProbeStep::Wait => return None,
                ProbeStep::Send(payload) => return Some(self.send_mtu_probe(now, payload)),
            }
        }
        if self.config.transfer.sending == SendRule::Linux {
            return self.next_new_linux(now, available, window);
        }
        let full = self.full_payload();
        let payload = u64::from(full).min(available).min(window) as u32;
        let drains = u64::from(payload) == available;
        let fin = closing && drains && u64::from(payload) < window;
        if payload == 0 && !fin || self.is_silly(payload, available, fin) {
            return self.next_probe(now, available, window);
        }
        if !self.wishes.cork && !self.wishes.more {
            self.send.probe_due = false;
        }
        // Sender's part of RFC 9293 section 3.7.4 (Nagle): no small segment while anything is in flight.
        if payload < full && !fin && self.waits_for_more(now, payload) {
            return None;
        }
        if !self.fits_cwnd(now, payload) {
            return None;
        }
        if payload < self.mss {
            self.queue.small = self.send.nxt + u64::from(payload);
        }
        Some(self.send_new(now, payload, fin))
    }

    /// A segment that is larger than the path is known to take.
    #[cold]
    fn send_mtu_probe(&mut self, now: Time, payload: u32) -> Piece {
        self.send.probe_due = false;
        let piece = self.send_new(now, payload, false);
        let push = self.note_mtu_probe(piece.seq + u64::from(payload));
        self.board.set_push(push);
        self.mtu_probe_sent(piece.seq, payload);
        Piece { push, ..piece }
    }

    /// [`Endpoint::next_new`] by Linux's rules.
    #[inline(never)]
    fn next_new_linux(&mut self, now: Time, available: u64, window: u64) -> Option<Piece> {
        match self.cut(available, window) {
            Err(Held::Window) => self.next_probe(now, available, window),
            Err(Held::Small) => {
                // The probe timer bounds the wait.
                if self.board.is_empty() {
                    self.arm_persist(now);
                }
                None
            }
            Ok(cut) => {
                // A small segment takes as much of the window as a full one (tcp_packets_in_flight).
                let full = self.board.segments() * u64::from(self.mss) >= self.cwnd();
                if self.recovery.state == CaState::Open && full && !self.recovery.probe.unbounded {
                    self.send.cwnd_stopped = true;
                    return None;
                }
                if !self.fits_cwnd(now, cut.payload) {
                    return None;
                }
                let push = self.note_cut(cut, available, window);
                self.send.probe_due = false;
                let piece = self.send_new(now, cut.payload, cut.fin);
                self.board.set_push(push);
                Some(Piece { push, ..piece })
            }
        }
    }

    /// RFC 8985 section 7.3: new data if the receiver's window allows it, whatever the congestion window; else the last
    /// segment again.
    #[cold]
    fn next_loss_probe(&mut self, now: Time) -> Option<Piece> {
        self.sent_as = SentAs::TailLossProbe;
        let right = self.send.una + self.send.wnd;
        let unsent = !self.send.fin_sent && self.send.written + 1 > self.send.nxt && right > self.send.nxt;
        if unsent && self.pacer.on && self.waits_for_release(now) {
            // The data that waits for its time will do.
            return None;
        }
        if unsent {
            self.recovery.probe.unbounded = true;
            let piece = self.next_new(now);
            self.recovery.probe.unbounded = false;
            self.probe_is_out(now, false);
            return piece;
        }
        let last = self.board.last_unreported()?;
        let last = if last.payload() > self.mss { self.board.cut(last, self.mss) } else { last };
        let payload = last.payload();
        self.path.probing.size = 0;
        self.departs(now, last.seq, payload);
        self.board.resend_as_probe(self.stamp(now), last.seq);
        self.stats.retransmitted_packets += 1;
        self.probe_is_out(now, true);
        Some(Piece { seq: last.seq, payload, fin: last.fin(), plain: true, push: last.push() })
    }

    /// Whether a small segment waits, for an acknowledgment or because the application has said that more follows
    /// (TCP_NOPUSH; MSG_MORE, until an ACK comes).
    #[cold]
    fn waits_for_more(&mut self, now: Time, payload: u32) -> bool {
        let rules = self.config.transfer.sending;
        // FreeBSD takes half of the largest window for a full segment.
        let large = rules == SendRule::FreeBsd && self.send.max_wnd > 0 && u64::from(payload) >= self.send.max_wnd / 2;
        if large || self.wishes.push || self.recovery.probe.unbounded {
            return false;
        }
        if self.wishes.cork || self.wishes.more {
            if std::mem::take(&mut self.send.probe_due) {
                return false;
            }
            if self.board.is_empty() {
                self.arm_persist(now);
            }
            return true;
        }
        let held = !self.config.transfer.minshall || self.send.una < self.queue.small;
        self.config.nagle && !self.board.is_empty() && held
    }

    /// Whether the congestion window lets `payload` new bytes go, after an idle time perhaps a smaller one.
    #[inline(always)]
    fn fits_cwnd(&mut self, now: Time, payload: u32) -> bool {
        if self.board.is_empty() {
            self.restart_after_idle(now);
        }
        let unbounded = self.recovery.probe.unbounded;
        self.send.cwnd_stopped = self.window_used() + u64::from(payload) > self.cwnd() && !unbounded;
        !self.send.cwnd_stopped
    }

    /// A segment with data is about to leave.
    #[inline(always)]
    fn departs(&mut self, now: Time, seq: u64, payload: u32) {
        if self.pacer.on || self.observer.needs.departures || self.send.una == self.send.nxt {
            self.tell_departure(now, seq, payload);
        }
    }

    #[inline(never)]
    fn tell_departure(&mut self, now: Time, seq: u64, payload: u32) {
        let flight = self.flight(now);
        if self.observer.needs.departures || flight.snd_una == flight.snd_nxt {
            self.cc.on_sent(&flight, &ackclock_cc::Sent { seq, bytes: payload });
        }
        if self.pacer.on {
            self.pace(&flight, payload);
        }
    }

    /// Books a segment of new data.
    #[inline(always)]
    fn send_new(&mut self, now: Time, payload: u32, fin: bool) -> Piece {
        self.timers.persist_at = Time::NEVER;
        self.timers.persist_backoff = 0;
        let seq = self.send.nxt;
        let len = payload + u32::from(fin);
        self.departs(now, seq, payload);
        self.board.push(self.stamp(now), seq, len, fin);
        self.send.nxt += u64::from(len);
        self.send.fin_sent = fin;
        self.new_data_sent(now);
        Piece { seq, payload, fin, plain: false, push: false }
    }

    /// Whether a segment of `payload` bytes is too small to be worth sending: the window cuts it, and it is less than half
    /// of the largest window that the peer offered (RFC 9293 section 3.8.6.2.1).
    fn is_silly(&self, payload: u32, available: u64, fin: bool) -> bool {
        payload < self.full_payload()
            && u64::from(payload) < available
            && !fin
            && u64::from(payload) < self.send.max_wnd.div_ceil(2)
    }

    /// The peer's window is closed or too small: when nothing is in flight a timer runs, and its expiry sends what fits,
    /// one byte at least (RFC 9293 section 3.8.6.1).
    #[cold]
    fn next_probe(&mut self, now: Time, available: u64, window: u64) -> Option<Piece> {
        self.counters.window_stopped = true;
        if !self.send.probe_due {
            if self.board.is_empty() {
                self.arm_persist(now);
            }
            return None;
        }
        if window == 0 && self.config.states.window_probe == WindowProbe::Empty {
            self.send.probe_due = false;
            self.probe_now = true;
            self.timers.persist_backoff += 1;
            self.arm_persist(now);
            return None;
        }
        self.sent_as = SentAs::WindowProbe;
        let payload = available.min(window.max(1)).min(u64::from(self.full_payload())) as u32;
        let fin = payload == 0;
        let seq = self.send.nxt;
        let len = payload + u32::from(fin);
        self.departs(now, seq, payload);
        self.board.push(self.stamp(now), seq, len, fin);
        self.send.nxt += u64::from(len);
        self.send.fin_sent = fin;
        self.probe_sent(now);
        // RFC 3168 section 6.1.6: nobody would notice the loss of a probe.
        Some(Piece { seq, payload, fin, plain: window == 0, push: true })
    }

    /// A probe is in flight: it is repeated when its timer expires, and once the window has opened.
    #[cold]
    fn next_probe_again(&mut self, now: Time) -> Option<Piece> {
        self.counters.window_stopped = self.send.probing;
        self.sent_as = SentAs::WindowProbe;
        let &front = self.board.front()?;
        if self.send.resend_probe {
            (self.send.resend_probe, self.send.probing) = (false, false);
            let front = self.fill_probe(front);
            return Some(self.piece_again(now, front));
        }
        if !self.send.probe_due {
            return None;
        }
        let piece = self.piece_again(now, front);
        self.probe_sent(now);
        Some(piece)
    }

    /// A probe that was not taken becomes as large a segment as the window allows now (RFC 9293 section 3.8.6.1 and SHLD-28
    /// of section 3.8.6.2.1), not one of its octet alone.
    fn fill_probe(&mut self, mut probe: Sent) -> Sent {
        // Linux has sent nothing that could be sent again, or a segment that was cut by its rules.
        if probe.fin()
            || probe.sacked
            || probe.end() != self.send.nxt
            || self.config.transfer.sending == SendRule::Linux
        {
            return probe;
        }
        let available = self.send.written + 1 - probe.seq;
        let payload = available.min(self.send.wnd).min(u64::from(self.full_payload())) as u32;
        let waits = self.wishes.cork || self.wishes.more;
        if payload <= probe.len || self.is_silly(payload, available, false) || payload < self.mss && waits {
            return probe;
        }
        self.board.grow_last(payload);
        self.send.nxt = probe.seq + u64::from(payload);
        probe.len = payload;
        probe
    }

    fn probe_sent(&mut self, now: Time) {
        self.send.probe_due = false;
        self.send.probing = true;
        self.timers.retransmit_at = Time::NEVER;
        self.timers.persist_at = Time::NEVER;
        self.timers.persist_backoff += 1;
        self.arm_persist(now);
    }

    /// RFC 6675 `NextSeg` rules 3 and 4: nothing is known lost and nothing new may be sent, but there is room.
    #[cold]
    fn next_speculative(&mut self, now: Time) -> Option<Piece> {
        let (holes, last) = self.detector.resends_holes();
        let hole = self.board.next_unsacked_hole().filter(|_| holes);
        let sent = match hole {
            Some(hole) => hole,
            None if !last => return None,
            None if self.send.una <= self.recovery.rescue_above => return None,
            None => self.board.last_unsacked()?,
        };
        if self.window_used() + u64::from(sent.len) > self.cwnd() {
            return None;
        }
        if hole.is_none() {
            self.recovery.rescue_above = self.recovery.point;
        }
        Some(self.piece_again(now, sent))
    }

    /// Linux counts a small segment as a full one (`tcp_xmit_retransmit_queue`).
    fn is_full_of_segments(&self) -> bool {
        self.linux_episodes
            && self.config.transfer.sending == SendRule::Linux
            && self.segments_in_flight() * u64::from(self.mss) >= self.cwnd()
    }

    #[inline(never)]
    fn piece_again(&mut self, now: Time, sent: Sent) -> Piece {
        // What the path does not take in one piece goes out in several (__tcp_retransmit_skb), and a probe of its MTU proves
        // nothing any more.
        let sent = if sent.payload() > self.mss { self.board.cut(sent, self.mss) } else { sent };
        self.path.probing.size = 0;
        let is_first = sent.seq == self.send.una;
        let payload = sent.payload();
        self.departs(now, sent.seq, payload);
        if !sent.ever_resent() {
            self.count_resent(payload);
        }
        self.board.resend(self.stamp(now), sent.seq, self.send.nxt);
        if self.recovery.force {
            self.recovery.force = false;
            self.recovery.rescue_above = self.recovery.rescue_above.max(sent.end());
        }
        self.stats.retransmitted_packets += 1;
        self.recovery.undo.resent(now);
        let waits_for_detector = self.timers.pending == Pending::Reorder && self.timers.retransmit_at != Time::NEVER;
        if is_first && !waits_for_detector || self.timers.retransmit_at == Time::NEVER {
            // The timer runs for the first segment: it starts anew with its retransmission (RFC 6675 section 6).
            self.restart_retransmit_timer(now);
        }
        Piece { seq: sent.seq, payload, fin: sent.fin(), plain: true, push: sent.push() }
    }

    /// RFC 5681 section 4.1.
    #[inline]
    fn restart_after_idle(&mut self, now: Time) {
        if self.config.cwnd_validation == CwndValidation::Rfc7661 {
            // RFC 7661 section 4.3 in place of RFC 5681 section 4.1.
            self.review_validation(now);
            return;
        }
        if self.config.slow_start_after_idle && self.send.nxt > 1 && now.since(self.send.last_sent_at) > self.rto() {
            let flight = self.flight(now);
            self.cc.on_idle_restart(&flight);
        }
    }

    /// A segment with ports, flags and timestamps; everything else zero.
    fn blank(&self, flags: Flags) -> Segment {
        Segment { source_port: self.ports.local, destination_port: self.ports.remote, flags, ..Segment::default() }
    }

    /// Fields that every segment of a synchronized connection carries: the acknowledgment with its window.
    #[inline(always)]
    fn write_common(&mut self, now: Time, out: &mut Segment, flags: Flags) {
        *out = self.blank(flags | Flags::ACK);
        out.ack = lower(self.receiver.next, self.receiver.irs);
        if self.timestamps_enabled {
            out.timestamps = Some(Timestamps { value: self.timestamp(now), echo: self.ts_recent });
        }
        let syn = flags.contains(Flags::SYN);
        if !syn {
            out.flags |= self.echo_flags();
        }
        let shift = if syn { 0 } else { self.receiver.shift() };
        let window = if syn { self.receiver.syn_window(self.announced_segment()) } else { self.receiver.window() };
        let field = (window >> shift).min(u64::from(u16::MAX));
        out.window = field as u16;
        self.receiver.acknowledged(field << shift);
    }

    /// The window as it stands in a segment without SYN.
    pub(crate) fn window_field(&self) -> u16 {
        let shift = if self.scaling_enabled { self.own_shift() } else { 0 };
        (self.receiver.window() >> shift).min(u64::from(u16::MAX)) as u16
    }

    /// The window scale that is announced.
    pub(crate) fn own_shift(&self) -> u8 {
        self.receiver.own_shift()
    }

    #[cold]
    fn write_syn(&mut self, now: Time, out: &mut Segment) -> Ecn {
        self.send.syn_pending = false;
        // A second SYN gives no RTT sample, whether the first was lost or, in a simultaneous open, was not.
        let again = !self.is_first_syn();
        if self.state == State::SynReceived {
            self.write_common(now, out, Flags::SYN);
        } else {
            *out = self.blank(Flags::SYN);
            out.window = self.receiver.syn_window(self.config.mss.into()) as u16;
        }
        self.put_syn_options(now, out);
        let (flags, codepoint) = self.syn_ecn();
        out.flags |= flags;
        out.seq = self.send.isn;
        if self.opening.is_some() && !again {
            self.put_fast_open(now, out);
        }
        self.offer_option(again, out);
        self.send.nxt = self.send.nxt.max(1);
        if !again {
            self.send.syn_stamp = self.timestamp(now);
        }
        self.send.syn_sent_at = (!again).then_some(now);
        self.stats.resent_syns += u64::from(again && self.state == State::SynSent && self.config.states.counts_syns);
        self.arm_syn_timers(now, again);
        codepoint
    }

    /// The options of a SYN; those of an answer were agreed on.
    pub(crate) fn put_syn_options(&self, now: Time, out: &mut Segment) {
        let (sack, scaling) = if self.state == State::SynReceived {
            (self.sack_enabled, self.scaling_enabled)
        } else if self.config.states.drop_options_after.is_some_and(|most| self.rtt.timeouts() >= most) {
            (false, false)
        } else {
            if self.config.timestamps {
                out.timestamps = Some(Timestamps { value: self.timestamp(now), echo: 0 });
            }
            (self.config.sack, self.config.window_scaling)
        };
        out.mss = self.config.transfer.mss_option.then(|| self.announced_mss());
        out.sack_permitted = sack;
        out.window_scale = scaling.then(|| self.own_shift());
    }

    pub(crate) fn write_ack(&mut self, now: Time, out: &mut Segment) {
        let sack = self.sack_option(3 + usize::from(!self.timestamps_enabled));
        self.write_common(now, out, Flags::NONE);
        out.seq = lower(self.send.nxt, self.send.isn);
        out.sack = sack;
        self.reflect_answer(out);
        self.add_option(now, out);
        if self.config.states.fin_on_acks && self.send.fin_sent && self.send.una < self.send.nxt {
            out.seq = lower(self.send.nxt - 1, self.send.isn);
            out.flags |= Flags::FIN;
            self.sent_as = SentAs::Ack;
        }
    }

    /// An ACK from before the segment in hand, a reset, a challenge or a probe.
    #[cold]
    fn write_answer(&mut self, now: Time, out: &mut Segment) {
        if let Some(ack) = self.feedback.ack_before.take() {
            *out = ack;
            return;
        }
        let Some((seq, ack, flags)) = self.reply.take() else {
            self.write_bare_ack(now, out);
            return;
        };
        *out = self.blank(flags);
        (out.seq, out.ack) = (seq, ack);
        out.window = std::mem::take(&mut self.reply_window);
        if self.reply_stamped {
            out.timestamps = Some(Timestamps { value: self.timestamp(now), echo: self.ts_recent });
        }
    }

    /// A challenge (RFC 5961), or a probe with a number that has been acknowledged and makes the peer answer (RFC 9293
    /// section 3.8.4).
    #[cold]
    fn write_bare_ack(&mut self, now: Time, out: &mut Segment) {
        let seq = if self.challenge_due { self.send.nxt } else { self.send.una.saturating_sub(1) };
        let challenge = std::mem::take(&mut self.challenge_due);
        self.probe_now &= challenge;
        self.write_common(now, out, Flags::NONE);
        out.seq = lower(seq, self.send.isn);
        if challenge {
            self.reflect_in_challenge(out);
        }
        self.add_option(now, out);
    }

    #[inline]
    fn sack_option(&self, room: usize) -> SackBlocks {
        if self.sack_enabled && (self.receiver.has_gap() || self.receiver.has_duplicate()) {
            self.receiver.sack_blocks(room, self.config.dsack)
        } else {
            SackBlocks::default()
        }
    }

    #[inline(always)]
    fn write_data(&mut self, now: Time, out: &mut Segment, piece: Piece) -> Ecn {
        // SACK blocks ride along only where the segment leaves room for them within the MSS.
        let spare = self.full_payload().saturating_sub(piece.payload);
        let blocks = if spare >= 12 { ((spare - 4) / 8).min(3) as usize } else { 0 };
        let sack = if blocks > 0 { self.sack_option(blocks) } else { SackBlocks::default() };
        let mut flags = Flags::NONE;
        if piece.fin {
            flags |= Flags::FIN;
            self.enter_fin_sent();
        }
        let last = piece.payload > 0 && piece.seq + u64::from(piece.payload) == self.send.written + 1;
        if if self.config.transfer.sending == SendRule::Linux { piece.push } else { last } {
            flags |= Flags::PSH;
        }
        self.write_common(now, out, flags);
        out.seq = lower(piece.seq, self.send.isn);
        out.sack = sack;
        out.payload = Payload { offset: piece.seq - 1, len: piece.payload };
        self.add_option(now, out);
        self.stats.sent_packets += 1;
        self.counters.bytes_sent += u64::from(piece.payload);
        self.counters.bytes_resent += if piece.plain { u64::from(piece.payload) } else { 0 };
        self.receiver.data_sent(now);
        self.send.last_sent_at = now;
        self.recovery.sent(piece.payload);
        // Retransmissions and segments without data are not ECN-capable (RFC 3168 sections 6.1.4 and 6.1.5), unless the
        // controller asks for it.
        if self.ecn_enabled && !piece.plain && piece.payload > 0 {
            if std::mem::take(&mut self.send.cwr_pending) && self.feedback.mode != EcnFeedback::Accurate {
                out.flags |= Flags::CWR;
            }
            self.feedback.data
        } else {
            self.feedback.control
        }
    }

    /// The MSS that was announced, options that data carries subtracted (Linux `advmss`).
    pub(crate) fn announced_segment(&self) -> u32 {
        u32::from(self.config.mss).saturating_sub(self.options_len()).max(1)
    }

    /// Bytes of the options that every data segment carries.
    pub(crate) fn options_len(&self) -> u32 {
        if self.timestamps_enabled { TIMESTAMPS_LEN } else { 0 }
    }

    fn enter_fin_sent(&mut self) {
        self.state = match self.state {
            State::Established => State::FinWait1,
            State::CloseWait => State::LastAck,
            other => other,
        };
    }
}
