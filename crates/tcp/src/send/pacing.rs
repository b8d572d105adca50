//! Pacing: segments with data leave at times that follow from a rate, not all at once when an ACK
//! allows them.
//!
//! Each segment moves the time at which the next one may go by its length over the rate; a sender
//! that comes late gets half of that back at most. The rate is the controller's if it asks for
//! pacing, and else Linux's share of the window in a round trip.
//!
//! # Source
//! Linux 6.1: `tcp_update_skb_after_send`, `tcp_pacing_check` and `tcp_send_loss_probe`
//! (`net/ipv4/tcp_output.c`), `tcp_update_pacing_rate` (`tcp_input.c`), `tcp_pacing_delay`
//! (`include/net/tcp.h`), SO_MAX_PACING_RATE (`net/core/sock.c`); `net/sched/sch_fq.c` carries the
//! same times out in a queue of the host.
//!
//! Only payload counts: since release 4.20 the times are TCP's, which knows no headers then. The
//! first ten segments go unpaced. A retransmission waits for its time like new data, the first one
//! after a timeout, a repeated tail and a window probe do not; a FIN alone waits but takes no time.
//! ACKs, SYNs and resets have nothing to do with it.
//!
//! # Departures
//! - A segment leaves at a time, but for units of segmentation offload (`offload.rs`), of which the
//!   next one waits for all.

use ackclock_cc::Flight;
use ackclock_units::{Rate, Span, Time};

use crate::send::Sender;
use crate::{Pacing, PacingWhen};

/// Segments with data that leave before anything is paced.
const UNPACED: u64 = 10;
const NANOS: u128 = 1_000_000_000;

/// When the next segment with data may leave.
#[derive(Debug, Default)]
pub(crate) struct Pacer {
    pub(crate) on: bool,
    /// The rate of the window in bytes a second, as of the last ACK.
    by_window: Option<u64>,
    /// SO_MAX_PACING_RATE in bytes a second.
    most: Option<u64>,
    /// `tcp_wstamp_ns`.
    release_at: Time,
    /// Something waits for that time.
    held: bool,
}

impl Pacer {
    /// `bytes` leave at `now` at a rate of `bits_per_second`.
    fn depart(&mut self, now: Time, bytes: u64, bits_per_second: u64) {
        // Half of the lateness makes up for timers that come late.
        let credit = now.since(self.release_at).as_nanos();
        let nanos = u128::from(bytes) * 8 * NANOS / u128::from(bits_per_second.max(1));
        let nanos = u64::try_from(nanos).unwrap_or(u64::MAX);
        self.release_at = self.release_at.max(now) + Span::from_nanos(nanos - credit.min(nanos / 2));
    }

    /// Time until the next segment may leave (`tcp_pacing_delay`).
    #[inline]
    pub(crate) fn delay(&self, now: Time) -> Span {
        if self.on { self.release_at.since(now) } else { Span::ZERO }
    }

    /// When something that waits may leave.
    #[inline]
    pub(crate) fn deadline(&self) -> Time {
        if self.held { self.release_at } else { Time::NEVER }
    }

    /// Something may leave now, or nothing waits any more.
    pub(crate) fn let_go(&mut self) {
        self.held = false;
    }

    /// `tcp_wstamp_ns`, if there is pacing.
    #[inline]
    pub(crate) fn released(&self) -> Time {
        if self.on { self.release_at } else { Time::ZERO }
    }

    /// Returns `true` if the sender stopped last because of pacing.
    #[inline]
    pub(crate) fn holds(&self) -> bool {
        self.held
    }

    /// The rate in force, bit/s; `None` for no bound.
    fn rate(&self, asked: Option<Rate>) -> Option<u64> {
        let own = || self.by_window.map(|rate| rate.saturating_mul(8));
        let rate = asked.map(Rate::as_bps).or_else(own);
        let most = self.most.map(|rate| rate.saturating_mul(8));
        match (rate, most) {
            (Some(rate), Some(most)) => Some(rate.min(most)),
            (rate, most) => rate.or(most),
        }
    }

    /// Returns `true` if data sent at `now` comes too early.
    #[inline]
    pub(crate) fn is_early(&self, now: Time) -> bool {
        self.delay(now) > Span::ZERO
    }
}

impl Sender {
    /// No more than so many bytes a second leave from now on; `None` for no bound. Setting one turns
    /// pacing on.
    pub(crate) fn bound_pacing_rate(&mut self, bytes_per_second: Option<u64>) {
        self.burst.end();
        self.pacer.most = bytes_per_second;
        // sk_pacing_status stays SK_PACING_NEEDED.
        if !self.pacer.on {
            self.decide_pacing(self.now);
        }
    }

    /// Decides about pacing, when a connection opens and when its controller changes.
    pub(crate) fn decide_pacing(&mut self, now: Time) {
        self.pacer.on = match self.config.pacing.when {
            PacingWhen::Off => false,
            PacingWhen::On => true,
            PacingWhen::Auto => self.pacer.most.is_some() || self.cc.pacing_rate(&self.flight(now)).is_some(),
        };
        if !self.pacer.on {
            self.pacer.let_go();
        }
        self.update_pacing_rate();
    }

    /// The window's rate, after an ACK (`tcp_update_pacing_rate`).
    #[inline]
    pub(crate) fn update_pacing_rate(&mut self) {
        if self.pacer.on {
            self.pacer.by_window = self.rate_of_window();
        }
        if self.units.is_some() {
            self.update_rate_of_units();
        }
    }

    /// The rate from which the size of units follows.
    #[cold]
    fn update_rate_of_units(&mut self) {
        let rate = self.rate_of_units();
        self.units.iter_mut().for_each(|units| units.rate = rate);
    }

    /// A share of the window in each round trip, bytes a second; `None` before there is an RTT.
    pub fn rate_of_window(&self) -> Option<u64> {
        let Pacing { ss_ratio, ca_ratio, .. } = self.config.pacing;
        self.rate_by_ratios(ss_ratio, ca_ratio)
    }

    /// The rate from which the size of units follows, bytes a second (`sk_pacing_rate`, whether
    /// there is pacing or not); `None` before there is an RTT.
    pub(super) fn rate_of_units(&self) -> Option<u64> {
        let own = || match self.config.transfer.offload.twice_the_window {
            true => self.rate_by_ratios(200, 200),
            false => self.rate_of_window(),
        };
        let asked = self.cc.pacing_rate(&self.flight(self.now)).map(|rate| rate.as_bps() / 8);
        let rate = asked.or_else(own)?;
        Some(rate.min(self.pacer.most.unwrap_or(u64::MAX)))
    }

    fn rate_by_ratios(&self, ss_ratio: u32, ca_ratio: u32) -> Option<u64> {
        let srtt = self.rtt.srtt()?;
        let cwnd = self.cwnd();
        let ratio = if cwnd < self.cc.window().ssthresh / 2 { ss_ratio } else { ca_ratio };
        let in_flight = cwnd.max(self.loss.window_outstanding(&self.negotiated));
        let rate = u128::from(in_flight) * u128::from(ratio) * (NANOS / 100) / u128::from(srtt.as_nanos().max(1));
        Some(u64::try_from(rate).unwrap_or(u64::MAX))
    }

    /// A segment with `payload` bytes from `seq` on leaves: the next one has to wait, or the next
    /// unit if it begins one.
    #[inline(never)]
    pub(crate) fn pace(&mut self, flight: &Flight, seq: u64, payload: u32) {
        let (span, sent) = ((seq, seq + u64::from(payload)), self.stats.sent_packets);
        let bytes = match &self.units {
            Some(units) => units.departing(flight.now, span, self.sequence.nxt(), sent),
            None => Some(payload.into()),
        };
        let Some(bytes) = bytes else { return };
        let asked = self.cc.pacing_rate(flight);
        let segments = bytes.div_ceil(u64::from(self.negotiated.mss())).max(1);
        let counts = sent + segments >= UNPACED;
        match self.pacer.rate(asked).filter(|_| counts) {
            Some(rate) => self.pacer.depart(flight.now, bytes, rate),
            None => self.pacer.release_at = self.pacer.release_at.max(flight.now),
        }
    }

    /// Returns `true` if data waits for its time. The first retransmission after a timeout and a
    /// window probe do not.
    #[inline(never)]
    pub(crate) fn waits_for_release(&mut self, now: Time) -> bool {
        let urgent = self.persist.has_expired() || self.loss.recovery.is_first_after_timeout();
        let waits = self.pacer.is_early(now) && !urgent;
        self.pacer.held = waits && self.has_data_to_send();
        waits
    }

    fn has_data_to_send(&mut self) -> bool {
        self.sequence.unsent() > 0
            || self.sequence.is_closed() && !self.sequence.is_fin_sent()
            || self.loss.board.next_lost().is_some()
    }

    /// The rate at which segments leave, bytes a second; `u64::MAX` without a bound.
    pub(crate) fn told_pacing_rate(&self, now: Time) -> u64 {
        self.paced_bps(now).map_or(u64::MAX, |bits| bits / 8)
    }

    /// The rate at which segments leave, bits/s; `None` without a bound.
    pub fn pacing_bps(&self) -> Option<u64> {
        self.paced_bps(self.now)
    }

    fn paced_bps(&self, now: Time) -> Option<u64> {
        let asked = || self.cc.pacing_rate(&self.flight(now));
        self.pacer.on.then(|| self.pacer.rate(asked())).flatten()
    }
}
