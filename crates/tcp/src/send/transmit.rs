//! The choice of the next data to send: a retransmission, new data, a FIN, or a probe.
//!
//! How much new data leaves is up to the windows, Nagle's rule and the sender's side of silly window
//! avoidance (RFC 6675 `NextSeg` rule 2; RFC 9293 sections 3.7.4 and 3.8.6.2.1). What is declared
//! lost, or may be, and the tail as a probe (RFC 8985 section 7.3) are sent again.

use ackclock_cc::Signal;
use ackclock_units::{Span, Time};

use super::offload::Unit;
use super::pmtu::ProbeStep;
use super::segmentation::NoSegment;
use crate::loss::scoreboard::Sent;
use crate::send::Sender;
use crate::send::retransmission_timer::Pending;
use crate::{CaState, CwndValidation, SendRule, SentAs};

/// The part of the sequence space of the next segment.
pub(crate) struct Piece {
    pub(crate) seq: u64,
    pub(crate) payload: u32,
    pub(crate) fin: bool,
    /// A retransmission, or a probe of a closed window: not ECN-capable.
    pub(crate) plain: bool,
    /// PSH, where a rule says so.
    pub(crate) push: bool,
}

impl Piece {
    /// Returns `true` if a write ends in a segment, or half of the peer's largest window has gone
    /// since the last PSH ([`crate::TransferRules::push_writes`], `pushed_seq`).
    #[cold]
    pub(crate) fn pushes(&self, write_size: u32, max_window: u64) -> bool {
        let (size, len) = (u64::from(write_size), u64::from(self.payload));
        let (start, end) = (self.seq - 1, self.seq - 1 + len);
        if len == 0 || start / size < end / size {
            return len > 0;
        }
        // The segments of a write are taken to be of one length.
        let half = max_window / 2;
        let beyond = end.saturating_sub(start / size * size + half);
        beyond > 0 && (beyond - 1) / len % (half / len + 1) == 0
    }
}

impl Sender {
    /// The MSS that was announced, options that data carries subtracted (Linux `advmss`).
    pub(crate) fn announced_segment(&self) -> u32 {
        u32::from(self.config.mss).saturating_sub(self.options_len()).max(1)
    }

    /// Chooses what to send: a retransmission, new data, a FIN, or a probe.
    #[inline(always)]
    pub(crate) fn next_piece(&mut self, now: Time, reports: bool) -> Option<Piece> {
        self.window_use.begin();
        if self.persist.rules() {
            self.pacer.let_go();
            return self.next_probe_again(now);
        }
        let mut resends = true;
        if self.loss.linux_episodes() {
            if self.loss.recovery.probe_mut().take_due() {
                return self.next_loss_probe(now, reports);
            }
            if self.pacer.is_on() && !self.is_in_unit(now) && self.waits_for_release(now) {
                // tcp_tsq_write: what is released later is new data as well.
                self.loss.recovery.ends_with_lost();
                return None;
            }
            if self.loss.recovery.tests_timeout() {
                let new = self.next_of_frto(now, reports);
                if new.is_some() || self.loss.recovery.tests_timeout() {
                    return new;
                }
            }
            resends = self.loss.recovery.resends_lost();
        } else if self.pacer.is_on() && !self.is_in_unit(now) && self.waits_for_release(now) {
            return None;
        }
        if let Some(lost) = self.loss.board.next_lost().filter(|_| resends) {
            // RFC 6675 NextSeg rule 1.
            let used = self.window_used();
            let full =
                used + self.loss.window_taken(&self.negotiated, lost.len.min(self.negotiated.mss() + 1)) > self.cwnd();
            let mut lost = lost;
            if full && !self.loss.recovery.forces_retransmission() {
                let Some(part) = self.part_of_hole(lost, used) else {
                    self.loss.recovery.ends_with_lost();
                    self.window_use.stop();
                    return None;
                };
                lost = part;
            }
            self.sent_as = if lost.by_timeout() { SentAs::Timeout } else { SentAs::FastRetransmit };
            return Some(self.piece_again(now, lost));
        }
        if self.loss.recovery.ends_with_lost() {
            return None;
        }
        let in_disorder = self.loss.recovery.state() == CaState::Disorder;
        self.sent_as = if in_disorder { SentAs::LimitedTransmit } else { SentAs::New };
        if let Some(piece) = self.next_new(now, reports) {
            return Some(piece);
        }
        if self.loss.recovery.state() == CaState::Recovery
            && resends
            && self.negotiated.sack()
            && !self.window_use.is_stopped()
        {
            self.sent_as = SentAs::Speculative;
            return self.next_speculative(now);
        }
        None
    }

    // Data that was never sent.

    /// New data of a child that was opened by its SYN: nothing is sent again before the last ACK of
    /// the handshake has come.
    #[cold]
    pub(crate) fn next_early(&mut self, now: Time, reports: bool) -> Option<Piece> {
        if self.pacer.is_on() && !self.is_in_unit(now) && self.waits_for_release(now) {
            return None;
        }
        self.sent_as = SentAs::New;
        self.next_new(now, reports)
    }

    /// F-RTO: new data alone, as much as the window allows; without any, what is lost.
    #[cold]
    fn next_of_frto(&mut self, now: Time, reports: bool) -> Option<Piece> {
        self.sent_as = SentAs::New;
        let new = self.next_new(now, reports);
        if new.is_none() {
            self.loss.recovery.no_data_for_test(self.sequence.nxt());
        }
        new
    }

    /// RFC 6675 `NextSeg` rule 2: data that was never sent; `reports` if ACKs have something to
    /// report.
    #[inline(always)]
    fn next_new(&mut self, now: Time, reports: bool) -> Option<Piece> {
        if self.sequence.is_fin_sent() {
            return None;
        }
        let available = (self.sequence.written() + 1).saturating_sub(self.sequence.nxt());
        let closing = self.sequence.is_closed();
        if available == 0 && !closing {
            self.persist.satisfy();
            return None;
        }
        let window = (self.sequence.window_end()).saturating_sub(self.sequence.nxt());
        if self.path.probing.enabled && !self.counters.sending {
            match self.mtu_probe(now, available, window, reports) {
                ProbeStep::No => {}
                ProbeStep::Wait => return None,
                ProbeStep::Send(payload) => return Some(self.send_mtu_probe(now, payload)),
            }
        }
        if self.config.transfer.offload.is_on() {
            return self.next_of_unit(now, available, window);
        }
        if self.config.transfer.sending == SendRule::Linux {
            return self.next_new_linux(now, available, window);
        }
        let full = self.full_payload();
        let record = self.queue.of_record(self.sequence.nxt(), available);
        let payload = u64::from(full).min(record).min(window) as u32;
        let ends_record = u64::from(payload) == record && record < available;
        let drains = u64::from(payload) == available;
        let fin = closing && drains && u64::from(payload) < window;
        if payload == 0 && !fin || self.is_silly(payload, record, fin) {
            return self.next_probe(now, available, window);
        }
        if !self.writing.expects_more() {
            self.persist.satisfy();
        }
        // Sender's part of RFC 9293 section 3.7.4 (Nagle): no small segment while anything is in
        // flight.
        if payload < full && !fin && !ends_record && self.waits_for_more(now, payload) {
            return None;
        }
        if !self.fits_cwnd(now, payload) {
            return None;
        }
        if payload < self.negotiated.mss() {
            self.queue.small = self.sequence.nxt() + u64::from(payload);
        }
        let push = self.queue.sent(self.sequence.nxt() + u64::from(payload));
        let piece = self.send_new(now, payload, fin);
        if push {
            self.loss.board.set_push(true);
        }
        Some(Piece { push, ..piece })
    }

    /// A segment that is larger than the path is known to take.
    #[cold]
    fn send_mtu_probe(&mut self, now: Time, payload: u32) -> Piece {
        self.persist.satisfy();
        let piece = self.send_new(now, payload, false);
        let push = self.queue.note_mtu_probe(piece.seq + u64::from(payload));
        self.loss.board.set_push(push);
        self.mtu_probe_sent(piece.seq, payload);
        Piece { push, ..piece }
    }

    /// [`Sender::next_new`] by Linux's rules.
    #[inline(never)]
    fn next_new_linux(&mut self, now: Time, available: u64, window: u64) -> Option<Piece> {
        match self.cut(available, window) {
            Err(NoSegment::Window) => self.next_probe(now, available, window),
            Err(NoSegment::Small) => {
                // The probe timer bounds the wait.
                if self.loss.board.is_empty() {
                    self.persist.arm(now, &self.config, &self.rtt);
                }
                None
            }
            Ok(cut) => {
                if !self.fits_cwnd(now, cut.payload) {
                    return None;
                }
                let (push, stays) = self.note_cut(cut, available, window);
                self.persist.satisfy();
                let piece = self.send_new(now, cut.payload, cut.fin);
                self.loss.board.set_push(stays);
                Some(Piece { push, ..piece })
            }
        }
    }

    /// [`Sender::next_new`] in units (`offload.rs`).
    #[inline(never)]
    fn next_of_unit(&mut self, now: Time, available: u64, window: u64) -> Option<Piece> {
        let first = self.loss.board.is_empty();
        let is_late = self.config.transfer.offload.restarts_late;
        if first && !is_late {
            self.restart_after_idle(now);
        }
        match self.begin_unit(now, available, window) {
            Unit::Goes { joins } => {
                if first && is_late {
                    self.restart_after_idle(now);
                }
                Some(self.send_of_unit(now, window, joins))
            }
            Unit::Window => self.next_probe(now, available, window),
            Unit::Small => {
                // The probe timer bounds the wait.
                if self.loss.board.is_empty() {
                    self.persist.arm(now, &self.config, &self.rtt);
                }
                None
            }
            Unit::Held => None,
        }
    }

    /// The next segment of the unit, in one with the segment before it if it `joins`.
    fn send_of_unit(&mut self, now: Time, window: u64, joins: bool) -> Piece {
        let mss = u64::from(self.full_payload());
        let nxt = self.sequence.nxt();
        let unit_end = self.units().end;
        let payload = (unit_end - nxt).min(mss);
        let end = nxt + payload;
        let fin = self.sequence.is_closed() && end == self.sequence.written() + 1 && (payload < window || joins);
        if payload < mss {
            self.queue.small = end;
        }
        let has_push = !self.config.transfer.offload.ends_without_push;
        let bytes = (!joins).then(|| unit_end - nxt);
        let pushes = self.queue.note_unit(unit_end, bytes, mss, has_push);
        // tcp_write_wakeup: what the probe timer sends, too.
        let stays = self.queue.sent(end) || self.persist.has_expired();
        let push = stays || pushes && end == unit_end;
        self.window_use.admit(true);
        self.persist.satisfy();
        let piece = self.send_new(now, payload as u32, fin);
        if joins {
            self.loss.board.join_last();
        }
        self.loss.board.set_push(stays);
        Piece { push, ..piece }
    }

    /// Returns `true` if a small segment waits, for an acknowledgment or because the application
    /// has said that more follows (TCP_NOPUSH; MSG_MORE, until an ACK comes).
    #[cold]
    fn waits_for_more(&mut self, now: Time, payload: u32) -> bool {
        let rules = self.config.transfer.sending;
        // FreeBSD takes half of the largest window for a full segment.
        let large = rules == SendRule::FreeBsd
            && self.sequence.max_window() > 0
            && u64::from(payload) >= self.sequence.max_window() / 2;
        if large || self.writing.pushes() || self.loss.recovery.probe().is_unbounded() {
            return false;
        }
        if self.writing.expects_more() {
            if self.persist.satisfy() {
                return false;
            }
            if self.loss.board.is_empty() {
                self.persist.arm(now, &self.config, &self.rtt);
            }
            return true;
        }
        let held = !self.config.transfer.minshall || self.sequence.una() < self.queue.small;
        self.config.nagle && !self.loss.board.is_empty() && held
    }

    /// Returns `true` if the congestion window has room for `payload` new bytes, after an idle time
    /// perhaps a smaller one.
    #[inline(always)]
    fn fits_cwnd(&mut self, now: Time, payload: u32) -> bool {
        if self.loss.board.is_empty() {
            self.restart_after_idle(now);
        }
        let unbounded = self.loss.recovery.probe().is_unbounded();
        let fits = self.window_used() + self.loss.window_taken(&self.negotiated, payload) <= self.cwnd() || unbounded;
        self.window_use.admit(fits)
    }

    /// Books a segment of new data.
    #[inline(always)]
    fn send_new(&mut self, now: Time, payload: u32, fin: bool) -> Piece {
        self.persist.window_used();
        let seq = self.sequence.nxt();
        let len = payload + u32::from(fin);
        self.departs(now, seq, payload);
        self.loss.board.push(self.stamp(now), seq, len, fin);
        self.sequence.advance(len, fin);
        self.new_data_sent(now);
        Piece { seq, payload, fin, plain: false, push: false }
    }

    /// RFC 5681 section 4.1.
    #[inline]
    fn restart_after_idle(&mut self, now: Time) {
        if self.config.cwnd_validation == CwndValidation::Rfc7661 {
            // RFC 7661 section 4.3 in place of RFC 5681 section 4.1.
            self.review_validation(now);
            return;
        }
        let idle = now.since(self.sequence.last_sent_at());
        if self.config.slow_start_after_idle && self.sequence.nxt() > 1 && idle > self.rto() {
            self.restart(now, idle);
        }
    }

    #[cold]
    fn restart(&mut self, now: Time, idle: Span) {
        let mut flight = self.flight(now);
        if self.loss.linux_episodes() {
            // tcp_cwnd_restart: half for each RTO but the first (RFC 2861 section 3.2).
            let halvings = idle.as_nanos().div_ceil(self.rto().as_nanos().max(1)) - 1;
            let segments = self.cc.window().cwnd / flight.segment();
            let halved = segments.checked_shr(halvings as u32).unwrap_or(0) * flight.segment();
            flight.initial_window = flight.initial_window.max(halved);
        }
        self.cc.on_signal(&flight, Signal::IdleRestart);
    }

    // Data that is sent again.

    /// RFC 6675 `NextSeg` rules 3 and 4: nothing is known lost and nothing new may be sent, but
    /// there is room.
    #[cold]
    fn next_speculative(&mut self, now: Time) -> Option<Piece> {
        if self.loss.bsd_episodes() {
            return None;
        }
        let (holes, last) = self.loss.detector.resends_holes();
        let hole = self.loss.board.next_unsacked_hole().filter(|_| holes);
        let sent = match hole {
            Some(hole) => hole,
            None if !last => return None,
            None if !self.loss.recovery.may_rescue(self.sequence.una()) => return None,
            None => self.loss.board.last_unsacked()?,
        };
        if self.window_used() + self.loss.window_taken(&self.negotiated, sent.len) > self.cwnd() {
            return None;
        }
        if hole.is_none() {
            self.loss.recovery.rescued();
        }
        Some(self.piece_again(now, sent))
    }

    #[inline(never)]
    pub(crate) fn piece_again(&mut self, now: Time, sent: Sent) -> Piece {
        // Data that the path does not take in one piece is sent in several (__tcp_retransmit_skb),
        // and a probe of its MTU proves nothing any more.
        let sent = if sent.payload() > self.negotiated.mss() {
            self.loss.board.cut(sent, self.negotiated.mss())
        } else {
            sent
        };
        self.path.probing.size = 0;
        let ends_unit = self.config.transfer.offload.is_on() && self.note_unit_again(now, &sent);
        let is_first = sent.seq == self.sequence.una() && !self.loss.leaves_timer();
        let payload = sent.payload();
        self.departs(now, sent.seq, payload);
        if !sent.ever_resent() {
            self.validation.count_resent(payload);
        }
        self.loss.board.resend(self.stamp(now), sent.seq, self.sequence.nxt());
        self.stats.resent(payload);
        self.loss.recovery.resent(now, sent.end());
        let waits_for_detector = self.timer.pending() == Pending::Reorder && self.timer.is_running();
        if is_first && !waits_for_detector || !self.timer.is_running() {
            // The timer runs for the first segment: it starts anew with its retransmission (RFC
            // 6675 section 6), but not in FreeBSD 9's tcp_output.
            self.restart_retransmit_timer(now);
        }
        Piece { seq: sent.seq, payload, fin: sent.fin(), plain: true, push: sent.push() || ends_unit }
    }

    // Tail loss probes; when, is in `loss/tail_probe.rs`.

    /// RFC 8985 section 7.3: new data if the receiver's window allows it, whatever the congestion
    /// window; else the last segment again.
    #[cold]
    fn next_loss_probe(&mut self, now: Time, reports: bool) -> Option<Piece> {
        self.sent_as = SentAs::TailLossProbe;
        let unsent = self.sequence.has_sendable_data();
        if unsent && self.pacer.is_on() && self.waits_for_release(now) {
            // The data that waits for its time will do.
            return None;
        }
        if unsent {
            self.loss.recovery.probe_mut().set_unbounded(true);
            let piece = self.next_new(now, reports);
            self.loss.recovery.probe_mut().set_unbounded(false);
            self.probe_is_out(now, false);
            return piece;
        }
        let last = self.loss.board.last_unreported()?;
        let last = if last.payload() > self.negotiated.mss() {
            self.loss.board.cut(last, self.negotiated.mss())
        } else {
            last
        };
        let payload = last.payload();
        self.path.probing.size = 0;
        self.departs(now, last.seq, payload);
        self.loss.board.resend_as_probe(self.stamp(now), last.seq);
        self.stats.resent(payload);
        self.probe_is_out(now, true);
        Some(Piece { seq: last.seq, payload, fin: last.fin(), plain: true, push: last.push() })
    }

    // Data that goes with the SYN (RFC 7413).

    /// Books the data of a SYN as the first segment of the stream.
    pub(crate) fn send_with_syn(&mut self, now: Time, len: u32) {
        self.sequence.end_at(1 + u64::from(len));
        self.loss.board.push(self.stamp(now), 1, len, false);
        self.loss.board.set_push(true);
        self.queue.sent(self.sequence.nxt());
        self.stats.sent_packets += 1;
        self.counters.bytes_sent += u64::from(len);
        self.sequence.sent_at(now);
        self.sent_as = SentAs::New;
    }

    /// The server did not take all data of the SYN: what is left goes out again at once, in
    /// segments of the size agreed on.
    pub(crate) fn resend_syn_data(&mut self, now: Time, linux: bool) {
        self.loss.board.split_front(self.negotiated.mss());
        self.loss.board.mark_all_lost();
        self.tell_losses(now);
        if linux && self.loss.linux_episodes() {
            // tcp_non_congestion_loss_retransmit: the state of a timeout, with the window as it
            // was.
            self.loss.begin_loss_without_reduction(now, self.sequence.nxt());
            self.loss.recovery.resend_lost();
        }
    }
}
