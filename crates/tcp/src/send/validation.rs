//! Congestion window validation: what a window is worth that the sender does not fill.
//!
//! A window that was not used says nothing about the path. RFC 7661 measures what the path has
//! carried of late (pipeACK). While that is less than half of the window, the window is kept for
//! when the application needs it, but it does not grow unless it is full, a loss brings it down to
//! what was used, and after five minutes it is halved.
//!
//! # Source
//! RFC 7661 sections 4.2 to 4.4, with what recovery leaves of the window as its authors implement
//! it (`tcp_newcwv.c` in github.com/rsecchi/newcwv); RFC 2861 as in Linux 6.1 (`tcp_cwnd_validate`,
//! `tcp_cwnd_application_limited` in `net/ipv4/tcp_output.c`, `tcp_is_cwnd_limited` in
//! `include/net/tcp.h`).
//!
//! # Departures
//! - A controller that backs off by less than half, or by more, keeps its own window after a loss
//!   if it is smaller.
//! - A pipeACK sample is taken over a round trip as segments and ACKs make it, not over a time of
//!   one RTT. Without a sample in the sampling period pipeACK is zero.
//! - Bursts are not bounded (section 4.4.2): that is what pacing is for.

use ackclock_cc::{Signal, Window};
use ackclock_units::{Span, Time};

use crate::loss::Loss;
use crate::send::Sender;
use crate::{CaState, CwndValidation};

/// The used part of the congestion window.
#[derive(Debug, Default)]
pub(crate) struct WindowUse {
    /// The last look for something to send ended because of the congestion window.
    stopped: bool,
    /// The congestion window stopped the sender, or was full, at some time since `point` was set.
    full: bool,
    /// The most that was outstanding at a time since then, bytes.
    most_outstanding: u64,
    /// The window grows whether it is full or not.
    grows_unfilled: bool,
    /// One past what was sent when these two were last noted: their round trip ends when it is
    /// acknowledged.
    point: u64,
    /// One past what was sent when use was last noted, its low bits.
    seen: u32,
}

impl WindowUse {
    /// The sender looks for something to send.
    #[inline]
    pub(crate) fn begin(&mut self) {
        self.stopped = false;
    }

    /// The congestion window has no room.
    #[inline]
    pub(crate) fn stop(&mut self) {
        self.stopped = true;
    }

    /// Records that the data to be sent fits into the congestion window, or does not; returns
    /// `fits`.
    #[inline]
    pub(crate) fn admit(&mut self, fits: bool) -> bool {
        self.stopped = !fits;
        fits
    }

    /// Returns `true` if the last look for something to send ended because of the congestion
    /// window.
    #[inline]
    pub(crate) fn is_stopped(&self) -> bool {
        self.stopped
    }

    /// The window grows whether it is full or not, or only when it is.
    #[inline]
    fn grow_unfilled(&mut self, grows: bool) {
        self.grows_unfilled = grows;
    }

    /// Returns `true` if something was sent, up to `nxt`, since use was last noted.
    #[inline]
    pub(super) fn has_sent(&self, nxt: u64) -> bool {
        nxt as u32 != self.seen
    }

    /// Returns `true` if the window may grow: it is used well enough, or need not be. In slow start
    /// a half used window still grows, or a burst could never be followed by a larger one.
    #[inline]
    pub(crate) fn may_grow(&self, window: impl Fn() -> Window) -> bool {
        self.full || self.grows_unfilled || {
            let window = window();
            window.in_slow_start() && window.cwnd < self.most_outstanding.saturating_mul(2)
        }
    }

    /// Returns `true` if the window was full in this round trip.
    #[cfg(test)]
    pub(crate) fn is_full(&self) -> bool {
        self.full
    }

    /// Nothing is outstanding or held back; `nxt` is what is sent next.
    #[inline]
    pub(super) fn idle(&mut self, nxt: u64) {
        (self.full, self.most_outstanding, self.point) = (false, 0, nxt);
    }

    /// `outstanding` bytes of what was sent below `nxt` are not acknowledged, from `una` on, and
    /// the window is `full`.
    #[inline]
    pub(super) fn note(&mut self, una: u64, nxt: u64, full: bool, outstanding: u64) {
        self.seen = nxt as u32;
        if una >= self.point || full || !self.full && outstanding > self.most_outstanding {
            (self.full, self.most_outstanding, self.point) = (full, outstanding, nxt);
        }
    }
}

/// The non-validated period (sections 4.4.3 and 5).
const NON_VALIDATED_PERIOD: Span = Span::from_secs(300);
/// Measurement periods in a sampling period, each with its largest sample (section 4.5.1).
const PERIODS: usize = 4;
/// The shortest sampling period (section 4.2).
const LEAST_SAMPLING: Span = Span::from_secs(1);

/// The use of the window.
#[derive(Debug, Default)]
pub(crate) struct Validation {
    /// The measurements of RFC 7661, where it is followed.
    measured: Option<Box<Measured>>,
    /// By RFC 2861: the most that was in flight since the window was last full, and when it was
    /// (`snd_cwnd_used`, `snd_cwnd_stamp`).
    used: u64,
    full_at: Time,
}

/// The used part of the window, by RFC 7661.
#[derive(Debug)]
struct Measured {
    pipe_ack: PipeAck,
    /// When the window was validated last, or halved for not being so.
    validated_at: Time,
    /// In recovery from a loss of a window that was not validated: what was used, the larger of
    /// pipeACK and LossFlightSize, and R, what was sent again so far.
    loss: Option<(u64, u64)>,
}

/// The most that was acknowledged in a round trip of late.
#[derive(Debug, Default)]
struct PipeAck {
    /// When a measurement period began and its largest sample, the newest first.
    periods: [Option<(Time, u64)>; PERIODS],
    /// Where the sample began, and where its round trip ends.
    from: u64,
    to: u64,
}

impl PipeAck {
    /// Undefined from now on; data up to `una` is acknowledged, up to `nxt` sent.
    fn reset(&mut self, una: u64, nxt: u64) {
        *self = PipeAck { periods: [None; PERIODS], from: una, to: nxt };
    }

    /// Data up to `una` is acknowledged.
    fn take(&mut self, now: Time, una: u64, nxt: u64, sampling: Span) {
        if self.from == self.to {
            // Nothing was in flight: the round trip is that of what was sent since.
            self.to = nxt;
        }
        if una < self.to {
            return;
        }
        let sample = una - self.from;
        (self.from, self.to) = (una, nxt);
        match &mut self.periods[0] {
            Some((began, most)) if now.since(*began) < sampling / PERIODS as u64 => *most = sample.max(*most),
            _ => {
                self.periods.rotate_right(1);
                self.periods[0] = Some((now, sample));
            }
        }
    }

    /// Bytes; `None` while undefined.
    fn value(&self, now: Time, sampling: Span) -> Option<u64> {
        self.periods[0]?;
        let recent = self.periods.iter().flatten().filter(|(began, _)| now.since(*began) < sampling);
        Some(recent.map(|&(_, most)| most).max().unwrap_or(0))
    }
}

impl Validation {
    /// pipeACK, bytes; `None` while undefined.
    pub(crate) fn pipe_ack(&self, now: Time, srtt: Option<Span>) -> Option<u64> {
        self.measured.as_ref()?.pipe_ack.value(now, sampling_period(srtt))
    }

    /// `bytes` are sent again for the first time.
    pub(crate) fn count_resent(&mut self, bytes: u32) {
        if let Some((_, resent)) = self.measured.as_mut().and_then(|measured| measured.loss.as_mut()) {
            *resent += u64::from(bytes);
        }
    }
}

/// The sampling period (section 4.2).
fn sampling_period(srtt: Option<Span>) -> Span {
    srtt.map_or(LEAST_SAMPLING, |srtt| (srtt * 3).max(LEAST_SAMPLING))
}

impl Loss {
    fn follows_rfc7661(&self) -> bool {
        self.config.cwnd_validation == CwndValidation::Rfc7661 && !self.recovery.whole_control()
    }
}

impl Sender {
    /// The connection is open.
    pub(crate) fn begin_validation(&mut self, now: Time) {
        let rule = self.config.cwnd_validation;
        self.window_use
            .grow_unfilled(matches!(rule, CwndValidation::Off | CwndValidation::Peer | CwndValidation::Rfc7661));
        let measured = (rule == CwndValidation::Rfc7661).then(|| {
            let mut pipe_ack = PipeAck::default();
            pipe_ack.reset(self.sequence.una(), self.sequence.nxt());
            Box::new(Measured { pipe_ack, validated_at: now, loss: None })
        });
        self.validation = Validation { measured, used: 0, full_at: now };
    }

    /// Section 4.3: whether half of the window was used of late, or nothing is known.
    fn is_validated(&self, now: Time) -> bool {
        self.validation
            .pipe_ack(now, self.rtt.srtt())
            .is_none_or(|bytes| bytes.saturating_mul(2) >= self.cc.window().cwnd)
    }

    /// Before an ACK that acknowledges something is acted on.
    #[inline]
    pub(crate) fn measure_use(&mut self, now: Time) {
        if self.loss.follows_rfc7661() && self.loss.recovery.state() < CaState::Cwr {
            self.sample_pipe(now);
        }
    }

    #[inline(never)]
    fn sample_pipe(&mut self, now: Time) {
        let (una, nxt, sampling) = (self.sequence.una(), self.sequence.nxt(), sampling_period(self.rtt.srtt()));
        if let Some(measured) = &mut self.validation.measured {
            measured.pipe_ack.take(now, una, nxt, sampling);
        }
        self.review_validation(now);
    }

    /// Section 4.4.3: how long the window has not been validated.
    pub(crate) fn review_validation(&mut self, now: Time) {
        if !self.loss.follows_rfc7661() || self.loss.recovery.state() >= CaState::Cwr {
            return;
        }
        let validated = self.is_validated(now);
        self.window_use.grow_unfilled(validated);
        let Some(measured) = &mut self.validation.measured else { return };
        if validated {
            measured.validated_at = now;
            return;
        }
        let mut periods = 0;
        while now.since(measured.validated_at) >= NON_VALIDATED_PERIOD {
            measured.validated_at += NON_VALIDATED_PERIOD;
            periods += 1;
        }
        for _ in 0..periods {
            let flight = self.flight(now);
            let Window { cwnd, .. } = self.cc.window();
            let halved = (cwnd / 2).max(flight.initial_window).min(cwnd);
            self.cc.on_signal(&flight, Signal::Resume { cwnd: halved, ssthresh: cwnd / 4 * 3 });
        }
    }

    /// A reduction for a loss or a mark begins, of which the controller has not heard: whether its
    /// window was not validated.
    pub(crate) fn note_unvalidated(&mut self, now: Time) {
        let unvalidated = self.loss.follows_rfc7661() && !self.is_validated(now);
        let used = self.validation.pipe_ack(now, self.rtt.srtt()).unwrap_or(0).max(self.loss.board.outstanding());
        if let Some(measured) = &mut self.validation.measured {
            measured.loss = unvalidated.then_some((used, 0));
        }
    }

    /// Section 4.4.1, at the start of recovery: the window is no more than half of what was used.
    pub(crate) fn bound_by_use(&mut self) {
        if let Some((used, _)) = self.validation.measured.as_ref().and_then(|measured| measured.loss) {
            self.bound_window(used / 2);
        }
    }

    /// Section 4.4.1, at its end: what was lost went beyond the path's capacity, and pipeACK begins
    /// anew.
    pub(crate) fn end_validation(&mut self, now: Time) {
        if !self.loss.follows_rfc7661() {
            return;
        }
        if let Some((used, resent)) = self.validation.measured.as_mut().and_then(|measured| measured.loss.take()) {
            self.bound_window(used.saturating_sub(resent) / 2);
        }
        if let Some(measured) = &mut self.validation.measured {
            measured.pipe_ack.reset(self.sequence.una(), self.sequence.nxt());
            measured.validated_at = now;
        }
        self.window_use.grow_unfilled(true);
    }

    /// Everything is declared lost: the window of a timeout is smaller than any that was used.
    pub(crate) fn forget_validation(&mut self, now: Time) {
        if let Some(measured) = &mut self.validation.measured {
            measured.loss = None;
        }
        self.end_validation(now);
    }

    fn bound_window(&mut self, most: u64) {
        let most = most.max(self.negotiated.mss().into());
        let Window { cwnd, ssthresh } = self.cc.window();
        self.cc.take_over(Window { cwnd: cwnd.min(most), ssthresh: ssthresh.min(most) });
    }

    /// The sender has sent what it could, and there was room for more unless the window is `full`
    /// (`tcp_cwnd_application_limited`).
    #[inline]
    pub(crate) fn decay_unused(&mut self, now: Time, full: bool) {
        if self.config.cwnd_validation == CwndValidation::Rfc2861 && !self.loss.recovery.whole_control() {
            self.decay_by_use(now, full);
        }
    }

    #[inline(never)]
    fn decay_by_use(&mut self, now: Time, full: bool) {
        if full {
            (self.validation.used, self.validation.full_at) = (0, now);
            return;
        }
        let flight = self.flight(now);
        if flight.cwnd_limited {
            (self.validation.used, self.validation.full_at) = (0, now);
            return;
        }
        self.validation.used = self.validation.used.max(self.loss.window_outstanding(&self.negotiated));
        if now.since(self.validation.full_at) < self.rto() {
            return;
        }
        if self.loss.recovery.state() == CaState::Open {
            let used = self.validation.used.max(flight.initial_window);
            let Window { cwnd, .. } = self.cc.window();
            if used < cwnd {
                self.cc.on_signal(&flight, Signal::Resume { cwnd: cwnd.midpoint(used), ssthresh: cwnd / 4 * 3 });
            }
            self.validation.used = 0;
        }
        self.validation.full_at = now;
    }

    /// Notes whether this round trip fills the congestion window: what an unused window allows says
    /// nothing about the network, and it must not grow (RFC 2861). As Linux's `tcp_cwnd_validate`.
    #[inline(always)]
    pub(crate) fn note_window_use(&mut self, now: Time) {
        if self.pacer.holds()
            && !self.counters.sending
            && self.window_used() + u64::from(self.negotiated.mss()) <= self.cwnd()
        {
            // Nothing was sent because it was not time: nothing is known of the window.
            return;
        }
        if self.loss.board.is_empty() && !self.window_use.is_stopped() {
            // Any window holds a segment.
            self.window_use.idle(self.sequence.nxt());
            return;
        }
        let limited =
            self.window_use.is_stopped() || self.window_used() + u64::from(self.negotiated.mss()) > self.cwnd();
        // tcp_write_xmit: an ACK that lets nothing go, with the window open or nothing unsent, is no
        // reason to look.
        let looks = || self.window_use.has_sent(self.sequence.nxt()) || limited && self.sequence.unsent() > 0;
        if self.config.transfer.counts_segments && self.loss.linux_episodes() && !looks() {
            return;
        }
        self.window_use.note(
            self.sequence.una(),
            self.sequence.nxt(),
            limited,
            self.loss.window_outstanding(&self.negotiated),
        );
        if self.counters.sending {
            self.decay_unused(now, limited);
        }
    }
}
