//! TCP Prague: a scalable controller for L4S that shares a link evenly with others whatever their
//! round trips.
//!
//! It measures which fraction of the bytes that were delivered had been marked, and keeps a moving
//! average of it (alpha), as DCTCP does. Once per round trip with marks the window is reduced by
//! half of alpha, and in the same round trip it continues to grow for what was not marked, so that
//! it settles where (1 - p) / p segments are in flight. Round trips shorter than a target count as
//! the target: the window then grows with their square, and alpha is averaged and the window
//! reduced no more often. The target window is kept exactly, and the window follows it by one
//! segment per ACK. A loss halves it, as Reno's.
//!
//! Without Accurate ECN it is Reno, with the endpoint's PRR and without pacing (`prague_reno`): it
//! must not claim to be scalable then (RFC 9331 section 4.2).
//!
//! # Source
//! Linux `net/ipv4/tcp_prague.c` 0.7 of the L4S team's 6.18, which is followed;
//! draft-briscoe-iccrg-prague-congestion-control-04 describes an earlier release of it. RFC 9331
//! section 4.3 has the requirements.
//!
//! # Departures
//! - The window is what counts at all times (`prague_cwnd_mode` 0). Linux's default goes over to a
//!   rate where a round trip holds four segments or less, which shrinks segments below 1 Mbit/s;
//!   here a segment keeps its size.
//! - The window grows by segments as they are; Linux's growth is of 1500 bytes, whatever the MTU.
//! - A timeout sets the threshold to half of the window (RFC 5681 section 3.1); Linux leaves it,
//!   even if slow start has never ended.
//! - The target window is at least a 2^20th of a segment, the unit in which Linux counts; there is
//!   no larger bound for losses, as in Linux.
//! - Growth stops for a loss until its recovery ends. In Linux it remains stopped if SACKed or lost
//!   segments remain then (`prague_ca_open` comes with the state Open alone, not with Disorder).
//! - With a peer that knows only RFC 3168's ECN, it is Reno with that ECN; Linux then disables ECN
//!   (`TCP_CONG_NO_FALLBACK_RFC3168`). RFC 9331 section 4.2 allows both.
//! - Linux paces by packets with their headers; here by their payload, like everything else.

use ackclock_units::parameter::Domain;
use ackclock_units::{Rate, Span, Time, configuration};

use crate::algorithm::{Algorithm, Stack};
use crate::domains::POSITIVE;
use crate::reactions::{established, put_back, resume, timed_out};
use crate::{
    Ack, CongestionControl, EcnFeedback, EcnUse, Flight, Needs, NewReno, NewRenoConfig, Signal, Verdict, Window,
};

/// `PRAGUE_SHIFT_G`: the gain of the average is 2^-4.
const GAIN: f64 = 1.0 / 16.0;
/// `MAX_SCALED_RTT`: growth over longer round trips is not scaled.
const MOST_SCALED: Span = Span::from_millis(100);
/// `MINIMUM_RATE`: 100 kbit/s.
const LEAST_RATE: u64 = 100_000;
/// `MIN_CWND_RTT`, segments.
const LEAST_WINDOW: u64 = 2;
/// `CWND_UNIT`: a segment has this many parts.
const PARTS: f64 = (1 << 20) as f64;

const LINUX: &str = "L4S team's `tcp_prague.c`";

configuration! {
/// Parameters of Prague.
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct PragueConfig {
    /// Round trips shorter than this count as long as it. Default 25 ms.
    pub rtt_target: Span = Span::from_millis(25) => (POSITIVE, LINUX);
    /// Round trips after slow start until that is so. Default 4.
    pub rtt_transition: u32 = 4 => (Domain::Whole(0, 1 << 20, "round trips"), LINUX);
    /// Alpha begins with 1, and the first mark does nothing more than any other; otherwise with 0,
    /// and the first mark halves the window (`prague_alpha_mode`). Default false.
    pub alpha_on_init: bool = false => (Domain::Flag, LINUX);
}
}

impl Algorithm for PragueConfig {
    const FEEDBACK: Option<EcnFeedback> = Some(EcnFeedback::Accurate);

    fn on(_: &Stack) -> PragueConfig {
        PragueConfig::default()
    }
}

/// TCP Prague.
#[derive(Clone, Debug)]
pub struct Prague {
    config: PragueConfig,
    state: State,
    /// The state before the last loss or timeout, until it is put back or a mark confirms the
    /// congestion.
    saved: Option<State>,
    /// The share of marks, 0 to 1, and when it was last averaged.
    alpha: f64,
    alpha_at: Time,
    /// Bytes delivered, and of these marked, since then.
    delivered: u64,
    marked: u64,
    /// The next number to be sent when the round began.
    round_end: u64,
    /// Rounds since slow start.
    rounds: u32,
    /// Segments that a round trip without marks adds (`ai_ack_increase`).
    increase: f64,
    /// When a mark last reduced the window.
    reduced_at: Option<Time>,
    /// A mark has come: somebody on the path marks.
    saw_mark: bool,
    /// Without Accurate ECN: everything is up to it (`prague_reno`).
    fallback: Option<NewReno>,
}

#[derive(Clone, Copy, Debug)]
struct State {
    window: Window,
    /// The target window, bytes (`frac_cwnd`).
    exact: f64,
    /// A loss is being repaired: the window does not grow.
    in_loss: bool,
}

impl Prague {
    /// A controller of a connection that is not established yet.
    pub fn new(config: PragueConfig) -> Prague {
        let window = Window { cwnd: 0, ssthresh: Window::INFINITE };
        Prague {
            config,
            state: State { window, exact: 0.0, in_loss: false },
            saved: None,
            alpha: if config.alpha_on_init { 1.0 } else { 0.0 },
            alpha_at: Time::ZERO,
            delivered: 0,
            marked: 0,
            round_end: 0,
            rounds: 0,
            increase: 1.0,
            reduced_at: None,
            saw_mark: false,
            fallback: None,
        }
    }

    /// Returns `true` if round trips shorter than the target count as the target
    /// (`prague_is_rtt_indep`).
    fn is_independent(&self) -> bool {
        !self.state.window.in_slow_start() && self.rounds >= self.config.rtt_transition
    }

    /// `prague_ai_ack_increase`: 1, or the square of the round trip's share of the target, so that
    /// the rate grows by as much per second as over the target.
    fn scale_increase(&mut self, f: &Flight) {
        let target = self.config.rtt_target;
        self.increase = match f.srtt {
            Some(srtt) if self.rounds >= self.config.rtt_transition && srtt <= MOST_SCALED => {
                let ratio = srtt.as_secs_f64() / target.as_secs_f64();
                if srtt < target { ratio * ratio } else { 1.0 }
            }
            _ => 1.0,
        };
    }

    /// `prague_update_alpha`, if a round trip is over, or the target.
    fn end_round(&mut self, f: &Flight) {
        let over = f.snd_una >= self.round_end;
        if !over || (self.is_independent() && f.now.since(self.alpha_at) < self.config.rtt_target) {
            return;
        }
        if self.saw_mark {
            let share = self.marked as f64 / self.delivered.max(1) as f64;
            self.alpha = (self.alpha + (share - self.alpha) * GAIN).clamp(0.0, 1.0);
            self.alpha_at = f.now;
        }
        (self.delivered, self.marked, self.round_end) = (0, 0, f.snd_nxt);
        if !self.state.window.in_slow_start() {
            self.rounds = self.rounds.saturating_add(1);
        }
        self.scale_increase(f);
    }

    /// Growth for `acked` bytes that were not marked; whether it was slow start's alone, which
    /// leaves no step to take.
    fn grow(&mut self, f: &Flight, acked: u64) -> bool {
        let State { window, exact, .. } = &mut self.state;
        let mut rest = acked;
        if window.in_slow_start() {
            let step = rest.min(window.ssthresh - window.cwnd);
            window.cwnd = window.cwnd.saturating_add(step).min(Window::MAX);
            *exact = window.cwnd as f64;
            rest -= step;
            if rest == 0 {
                return true;
            }
        }
        if *exact > 0.0 {
            let segments = rest as f64 * self.increase / *exact;
            *exact = (*exact + segments * f.segment() as f64).min(Window::MAX as f64);
        }
        false
    }

    /// The window follows what it is worth, rounded up, by a segment, and the increase is computed
    /// anew with each (`prague_update_cwnd`, `adjust`).
    fn follow(&mut self, f: &Flight) -> Verdict {
        let segment = f.segment();
        let State { window, exact, .. } = &mut self.state;
        let worth = (*exact as u64).div_ceil(segment).max(LEAST_WINDOW).saturating_mul(segment).min(Window::MAX);
        let floor = LEAST_WINDOW * segment;
        let verdict = if window.cwnd > worth {
            window.cwnd = window.cwnd.saturating_sub(segment).max(worth).max(floor);
            window.ssthresh = window.cwnd;
            Verdict::Reduced
        } else if window.cwnd < worth {
            window.cwnd = window.cwnd.saturating_add(segment).min(worth);
            Verdict::Continue
        } else {
            return Verdict::Continue;
        };
        self.scale_increase(f);
        verdict
    }

    /// Half of what the window is worth, for a loss (`prague_enter_loss`).
    fn halve(&mut self, f: &Flight) {
        self.state.exact = (self.state.exact / 2.0).max(f.segment() as f64 / PARTS);
        self.state.in_loss = true;
    }

    /// `prague_enter_cwr`.
    fn reduce_by_alpha(&mut self, f: &Flight) {
        let recent = self.reduced_at.is_some_and(|at| f.now.since(at) < self.config.rtt_target);
        if self.is_independent() && recent {
            return;
        }
        self.reduced_at = Some(f.now);
        self.state.exact -= self.state.exact * self.alpha / 2.0;
    }
}

impl CongestionControl for Prague {
    fn name(&self) -> &'static str {
        "prague"
    }

    fn window(&self) -> Window {
        self.fallback.as_ref().map_or(self.state.window, NewReno::window)
    }

    fn needs(&self) -> Needs {
        if self.fallback.is_some() {
            return Needs::default();
        }
        Needs { whole_control: true, ecn: EcnUse::Scalable, ..Needs::default() }
    }

    /// The rate of the flight, or the window, per round trip; twice that in slow start.
    fn pacing_rate(&self, f: &Flight) -> Option<Rate> {
        if self.fallback.is_some() {
            return None;
        }
        let window = self.state.window;
        let bytes = (self.state.exact as u64).max(f.in_flight.min(Window::MAX));
        // Before the first sample the handshake has not measured anything: a window in a
        // millisecond.
        let srtt = f.srtt.unwrap_or(Span::from_millis(1)).max(Span::from_nanos(1));
        let bits = u128::from(bytes) * 8 * 1_000_000_000 / u128::from(srtt.as_nanos());
        let bits = if window.cwnd < window.ssthresh / 2 { bits * 2 } else { bits };
        let bits = u64::try_from(bits).unwrap_or(u64::MAX).clamp(LEAST_RATE, Rate::MAX.as_bps());
        Rate::from_bps(bits)
    }

    fn on_established(&mut self, f: &Flight) {
        *self = Prague::new(self.config);
        self.state.window = established(f);
        self.state.exact = self.state.window.cwnd as f64;
        (self.alpha_at, self.round_end) = (f.now, f.snd_nxt);
    }

    fn take_over(&mut self, window: Window) {
        if let Some(reno) = &mut self.fallback {
            return reno.take_over(window);
        }
        self.state.window = window;
        self.state.exact = window.cwnd as f64;
    }

    fn on_ecn(&mut self, feedback: EcnFeedback) {
        self.fallback = (feedback != EcnFeedback::Accurate).then(|| {
            // The settings are Linux's.
            let config = NewRenoConfig::linux();
            let mut reno = NewReno::new(config);
            reno.take_over(self.state.window);
            reno
        });
    }

    fn on_ack(&mut self, f: &Flight, ack: &Ack) -> Verdict {
        if let Some(reno) = &mut self.fallback {
            return reno.on_ack(f, ack);
        }
        let marked = ack.ce.min(ack.delivered);
        self.delivered = self.delivered.saturating_add(ack.delivered);
        self.marked = self.marked.saturating_add(marked);
        if marked > 0 && !std::mem::replace(&mut self.saw_mark, true) && !self.config.alpha_on_init {
            self.state.exact /= 2.0;
        }
        let unmarked = ack.delivered - marked;
        let repairs = self.state.in_loss || f.after_timeout;
        let grows = unmarked > 0 && !repairs && f.cwnd_limited;
        let verdict = if grows && self.grow(f, unmarked) {
            self.scale_increase(f);
            Verdict::Continue
        } else {
            self.follow(f)
        };
        self.end_round(f);
        verdict
    }

    fn on_signal(&mut self, f: &Flight, signal: Signal) {
        if let Some(reno) = &mut self.fallback {
            return reno.on_signal(f, signal);
        }
        match signal {
            Signal::Ecn => {
                self.saved = None;
                self.reduce_by_alpha(f);
            }
            Signal::Loss => {
                self.saved = Some(self.state);
                self.halve(f);
            }
            Signal::Timeout { repeated, kept } => {
                if !repeated || self.saved.is_none() {
                    self.saved = Some(State { in_loss: false, ..self.state });
                }
                if !repeated {
                    self.halve(f);
                }
                // The endpoint tells by `Flight::after_timeout` whether the loss is being repaired.
                self.state.in_loss = false;
                let half = (self.state.exact as u64).max(LEAST_WINDOW * f.segment());
                timed_out(&mut self.state.window, (!repeated).then_some(half), kept, f);
            }
            Signal::Spurious => {
                if let Some(saved) = self.saved.take() {
                    put_back(&mut self.state.window, &saved.window);
                    self.state.exact = self.state.exact.max(saved.exact).max(self.state.window.cwnd as f64);
                    self.state.in_loss = false;
                }
            }
            Signal::Resume { cwnd, ssthresh } => {
                resume(&mut self.state.window, cwnd, ssthresh, f);
                self.state.exact = self.state.window.cwnd as f64;
            }
            Signal::RecoveryEnd => self.state.in_loss = false,
            // Linux does nothing at an idle restart for a controller that rules its window and
            // paces.
            Signal::CountedAcks(_) | Signal::IdleRestart => {}
        }
    }
}

#[cfg(test)]
mod tests;
