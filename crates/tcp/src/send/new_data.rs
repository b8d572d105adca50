//! Data that was never sent: how much of it the windows, Nagle's rule and the sender's side of
//! silly window avoidance let go (RFC 6675 `NextSeg` rule 2; RFC 9293 sections 3.7.4 and
//! 3.8.6.2.1).

use ackclock_cc::Signal;
use ackclock_units::{Span, Time};

use super::offload::Unit;
use super::pmtu::ProbeStep;
use super::segment::Piece;
use super::segmentation::NoSegment;
use crate::send::Sender;
use crate::{CwndValidation, SendRule, SentAs};

impl Sender {
    /// New data of a child that was opened by its SYN: nothing is sent again before the last ACK of
    /// the handshake has come.
    #[cold]
    pub(crate) fn next_early(&mut self, now: Time, reports: bool) -> Option<Piece> {
        if self.pacer.on && !self.is_in_unit(now) && self.waits_for_release(now) {
            return None;
        }
        self.sent_as = SentAs::New;
        self.next_new(now, reports)
    }

    /// F-RTO: new data alone, as much as the window allows; without any, what is lost.
    #[cold]
    pub(crate) fn next_of_frto(&mut self, now: Time, reports: bool) -> Option<Piece> {
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
    pub(crate) fn next_new(&mut self, now: Time, reports: bool) -> Option<Piece> {
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
        self.queue.sent(self.sequence.nxt() + u64::from(payload));
        Some(self.send_new(now, payload, fin))
    }

    /// A segment that is larger than the path is known to take.
    #[cold]
    fn send_mtu_probe(&mut self, now: Time, payload: u32) -> Piece {
        self.persist.satisfy();
        let piece = self.send_new(now, payload, false);
        let push = self.note_mtu_probe(piece.seq + u64::from(payload));
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
                    self.arm_persist(now);
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
                    self.arm_persist(now);
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
                self.arm_persist(now);
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
}
