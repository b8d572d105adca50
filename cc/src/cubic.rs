//! CUBIC: after a loss the window follows a cubic curve of time that is flat around the window at
//! which the loss happened.
//!
//! It measures the time since the epoch began and the round-trip time. The window is reduced by
//! beta, rises fast towards the old maximum, plateaus there, and then probes ever faster; it never
//! falls behind what Reno would have reached. `rfc9438.rs` and `linux.rs` contain the two ways to
//! turn the curve into growth.
//!
//! # Source
//! RFC 9438. Linux `net/ipv4/tcp_cubic.c` of 2.6.32, 3.9 and 6.1, chosen by [`CubicRules`].
//!
//! # Departures
//! - The decrease starts from the window, not from the bytes in flight; RFC 9438 section 4.6 allows
//!   that because an unused window does not grow.
//! - RFC 9438 sections 4.4 and 4.5 write growth per ACK; here it is per segment acknowledged, as in
//!   section 4.3 and Linux, so that delayed ACKs do not slow it.
//! - An ECN echo does not reduce the window below two segments (RFC 9438 section 4.6 goes down to
//!   one), as in Linux.
//! - Linux rules: the idle time that 6.1 takes out of the curve starts with the ACK of the last
//!   byte, not with its transmission.

mod law;
mod linux;
mod rfc9438;

use ackclock_units::parameter::{Configurable, Domain, Visitor};
use ackclock_units::{Span, Time, maths, named};

use self::law::CubicUndo;
use self::linux::AckTimes;
use crate::controllers::{Algorithm, Stack, TIME};
use crate::reactions::{
    established, idled, put_back, recovered, reduce, resume, slow_start_applies, timed_out, whole_segments,
};
use crate::slow_start::SlowStart;
use crate::{Ack, CongestionControl, Flight, NewRenoConfig, Sent, Signal, SlowStartRules, Verdict, Window};

/// The rules by which the cubic curve becomes growth per ACK.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum CubicRules {
    /// RFC 9438: a fraction of a segment for every segment acknowledged.
    Rfc9438,
    /// Linux 2.6.32: as 3.9, but growth does not begin faster before the first loss; and what is
    /// taken back is the window that the curve has for its maximum.
    Linux26,
    /// Linux 3.9: one segment after so many ACKs, corrected by the mean number of segments that an
    /// ACK covers.
    Linux39,
    /// Linux 6.1: one segment after so many segments acknowledged, at least 2; idle time is taken
    /// out of the curve.
    Linux61,
}

/// Parameters of CUBIC.
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct CubicConfig {
    /// Multiplicative decrease factor. Default 0.7 (RFC 9438 section 4.6).
    pub beta: f64,
    /// C, in segments per second cubed. Default 0.4 (RFC 9438 section 5.1).
    pub c: f64,
    /// Fast convergence (RFC 9438 section 4.7). Default true.
    pub fast_convergence: bool,
    /// The Reno-friendly region (RFC 9438 section 4.3). Default true.
    pub reno_friendly: bool,
    /// The rules by which the curve becomes growth. Default RFC 9438.
    pub rules: CubicRules,
    /// The clock ticks so often: a jiffy, 1 / `HZ`, of Linux. Default 0: it is exact.
    pub tick: Span,
    /// Slow start, the window after recovery and after idle are Reno's (RFC 9438 section 4.10),
    /// with these settings; so is the factor for ECN.
    pub reno: NewRenoConfig,
}

impl Default for CubicConfig {
    fn default() -> CubicConfig {
        CubicConfig {
            beta: 0.7,
            c: 0.4,
            fast_convergence: true,
            reno_friendly: true,
            rules: CubicRules::Rfc9438,
            tick: Span::ZERO,
            reno: NewRenoConfig::default(),
        }
    }
}

impl Configurable for CubicConfig {
    fn parameters(&mut self, v: &mut impl Visitor) {
        // Beyond these there is no growth or no decrease left, and the arithmetic of the curve
        // overflows.
        v.parameter("beta", Domain::Number(0.1, 0.99, ""), "RFC 9438 s4.6", &mut self.beta);
        v.parameter("c", Domain::Number(0.001, 1000.0, "segments/s^3"), "RFC 9438 s5.1", &mut self.c);
        v.parameter("fast_convergence", Domain::Flag, "RFC 9438 s4.7", &mut self.fast_convergence);
        v.parameter("reno_friendly", Domain::Flag, "RFC 9438 s4.3", &mut self.reno_friendly);
        let rules = Domain::named::<CubicRules>("set of rules");
        v.parameter("rules", rules, "RFC 9438; Linux `tcp_cubic.c`", &mut self.rules);
        v.parameter("tick", TIME, "Linux `HZ`", &mut self.tick);
        self.reno.parameters(v);
    }
}

impl CubicConfig {
    /// A time in ticks; nanoseconds if the clock is exact.
    fn ticks(&self, at: Time) -> u64 {
        at.as_nanos() / self.tick.as_nanos().max(1)
    }
}

impl Algorithm for CubicConfig {
    fn on(host: &Stack) -> CubicConfig {
        host.cubic
    }

    fn slow_start_mut(&mut self) -> Option<&mut SlowStartRules> {
        Some(&mut self.reno.slow_start)
    }
}

named! { CubicRules: Rfc9438 = "rfc9438", Linux26 = "linux-2.6.32", Linux39 = "linux-3.9", Linux61 = "linux-6.1" }

/// CUBIC (RFC 9438, Linux).
#[derive(Clone, Debug)]
pub struct Cubic {
    config: CubicConfig,
    state: State,
    /// The state before the last loss or timeout, until it is put back or an ECN echo confirms the
    /// congestion.
    saved: Option<State>,
    path: Path,
    slow_start: SlowStart,
}

#[derive(Clone, Debug)]
struct State {
    window: Window,
    /// `W_max`, the window before the last reduction, in segments; 0 while there is none.
    w_max: f64,
    /// `cwnd_prior`, the window when the threshold was last set, in segments; 0 while there is
    /// none.
    cwnd_prior: f64,
    /// The current congestion avoidance stage.
    epoch: Option<Epoch>,
    /// Bytes acknowledged that have not yet become growth (Linux rules).
    credit: u64,
    /// Between a `Loss` or `Ecn` and the end of its recovery.
    reducing: bool,
}

/// A congestion avoidance stage: from the first ACK after a reduction to the next one.
#[derive(Clone, Debug)]
struct Epoch {
    /// `t_epoch`, moved on by the time that does not count.
    start: Time,
    growth: Growth,
}

#[derive(Clone, Debug)]
enum Growth {
    Rfc9438(Curve, rfc9438::Rfc9438Growth),
    Linux(linux::LinuxGrowth),
}

/// `W_cubic(t) = C (t - K)^3 + W_max`, in segments and seconds (RFC 9438 section 4.2).
#[derive(Clone, Copy, Debug, PartialEq)]
struct Curve {
    c: f64,
    k: f64,
    w_max: f64,
}

impl Curve {
    /// The curve that starts at `cwnd`. From `w_max` or above it is convex at once (sections 4.8
    /// and 4.10).
    fn new(c: f64, w_max: f64, cwnd: f64) -> Curve {
        if w_max <= cwnd {
            return Curve { c, k: 0.0, w_max: cwnd };
        }
        Curve { c, k: maths::cbrt((w_max - cwnd) / c), w_max }
    }

    fn at(&self, t: f64) -> f64 {
        self.w_max + self.above(t)
    }

    /// Height of the curve above its flat part; negative before `k`.
    fn above(&self, t: f64) -> f64 {
        let t = t - self.k;
        self.c * t * t * t
    }
}

/// The ACKs' information about the path.
#[derive(Clone, Debug)]
struct Path {
    /// The shortest round trip, without the first second of each epoch, when the queue has not
    /// drained yet.
    shortest: Option<Span>,
    /// Mean number of segments that an ACK covers, in sixteenths (Linux 3.9).
    segments_per_ack: u64,
    /// The last ACK.
    acked_at: Time,
    /// When the last byte in flight was acknowledged, until the next is sent.
    idle_since: Option<Time>,
}

impl Path {
    /// Linux assumes delayed ACKs until it knows better.
    fn new() -> Path {
        Path { shortest: None, segments_per_ack: 2 << 4, acked_at: Time::ZERO, idle_since: None }
    }
}

impl Cubic {
    /// A controller of a connection that is not established yet.
    pub fn new(config: CubicConfig) -> Cubic {
        let state = State {
            window: Window { cwnd: 0, ssthresh: Window::INFINITE },
            w_max: 0.0,
            cwnd_prior: 0.0,
            epoch: None,
            credit: 0,
            reducing: false,
        };
        Cubic { config, state, saved: None, path: Path::new(), slow_start: SlowStart::new(config.reno.slow_start) }
    }

    /// The window in segments; Linux counts whole ones.
    fn segments(&self, f: &Flight) -> f64 {
        match self.config.rules.law().in_segments {
            false => self.state.window.cwnd as f64 / f.segment() as f64,
            true => linux::segments(self.state.window.cwnd, f) as f64,
        }
    }

    /// RFC 9438 sections 4.6 and 4.7: remembers the window and returns the new threshold.
    fn congestion(&mut self, f: &Flight, beta: f64) -> u64 {
        let CubicConfig { fast_convergence, rules, .. } = self.config;
        let cwnd = self.segments(f);
        let state = &mut self.state;
        let w_max = if fast_convergence && cwnd < state.w_max { cwnd * (1.0 + beta) / 2.0 } else { cwnd };
        state.cwnd_prior = cwnd;
        state.epoch = None;
        state.credit = 0;
        match rules.law().in_segments {
            false => {
                state.w_max = w_max;
                ((state.window.cwnd as f64 * beta) as u64).max(2 * f.segment())
            }
            true => {
                state.w_max = w_max.floor();
                whole_segments(((cwnd * beta) as u64).saturating_mul(f.segment()), f)
            }
        }
    }

    /// Takes the ACK's information about the path, before the window grows.
    fn observe(&mut self, f: &Flight, ack: &Ack) {
        if !f.after_timeout {
            let mean = self.path.segments_per_ack;
            let segments = ack.acked.div_ceil(f.segment());
            self.path.segments_per_ack = (mean - mean / 16).saturating_add(segments).clamp(1, 32 << 4);
        }
        let fresh = self.state.epoch.as_ref().is_some_and(|epoch| f.now.since(epoch.start) < Span::from_secs(1));
        if fresh {
            return;
        }
        if let Some(rtt) = ack.rtt {
            self.path.shortest = Some(self.path.shortest.map_or(rtt, |shortest| shortest.min(rtt)));
        }
        if self.slow_start.observe(&mut self.state.window, f, ack, self.path.shortest, &self.config.reno) {
            self.state.cwnd_prior = self.segments(f);
        }
    }

    /// Time in which the window could not grow is no part of `t` (RFC 9438 section 4.2).
    fn skip(&mut self, now: Time, since: Time) {
        if let Some(epoch) = &mut self.state.epoch {
            epoch.start = (epoch.start + now.since(since)).min(now);
        }
    }

    /// One ACK of congestion avoidance.
    fn avoid(&mut self, f: &Flight, acked: u64) {
        let cwnd = self.segments(f);
        let State { window, w_max, cwnd_prior, epoch, credit, .. } = &mut self.state;
        let epoch = epoch.get_or_insert_with(|| {
            if *cwnd_prior == 0.0 {
                *cwnd_prior = cwnd;
            }
            let growth = match self.config.rules.law().in_segments {
                false => Growth::Rfc9438(Curve::new(self.config.c, *w_max, cwnd), rfc9438::Rfc9438Growth::new(cwnd)),
                true => Growth::Linux(linux::LinuxGrowth::new(cwnd as u64, *w_max as u64, &self.config)),
            };
            Epoch { start: f.now, growth }
        });
        match &mut epoch.growth {
            Growth::Rfc9438(curve, growth) => {
                let ticks = self.config.ticks(f.now).saturating_sub(self.config.ticks(epoch.start));
                let t = Span::from_nanos(ticks * self.config.tick.as_nanos().max(1)).as_secs_f64();
                growth.grow(window, f, acked, curve, t, *cwnd_prior, &self.config);
            }
            Growth::Linux(growth) => {
                let at = AckTimes { start: epoch.start, shortest: self.path.shortest, first: *w_max == 0.0 };
                growth.count(f, acked, cwnd as u64, at, &self.config);
                growth.grow(window, credit, f, acked, self.path.segments_per_ack, &self.config);
            }
        }
    }
}

impl CongestionControl for Cubic {
    fn name(&self) -> &'static str {
        "cubic"
    }

    fn window(&self) -> Window {
        self.state.window
    }

    fn on_established(&mut self, f: &Flight) {
        *self = Cubic::new(self.config);
        self.state.window = established(f);
        self.slow_start.restart(f);
    }

    fn take_over(&mut self, window: Window) {
        self.state.window = window;
    }

    fn on_ack(&mut self, f: &Flight, ack: &Ack) -> Verdict {
        self.observe(f, ack);
        let last = std::mem::replace(&mut self.path.acked_at, f.now);
        self.path.idle_since = (f.snd_una == f.snd_nxt).then_some(f.now);
        if !f.cwnd_limited {
            if self.config.rules.law().skips_unused {
                self.skip(f.now, last);
            }
            return Verdict::Continue;
        }
        let mut acked = ack.delivered;
        if slow_start_applies(&self.state.window, &self.config.reno) {
            acked = self.slow_start.grow(&mut self.state.window, f, acked, &self.config.reno);
        }
        if acked > 0 {
            self.avoid(f, acked);
        }
        Verdict::Continue
    }

    fn on_signal(&mut self, f: &Flight, signal: Signal) {
        match signal {
            Signal::Loss | Signal::Ecn => {
                self.saved = (signal == Signal::Loss).then(|| self.state.clone());
                let beta = match self.config.reno.beta_ecn {
                    // RFC 8511 section 3.
                    Some(beta) if signal == Signal::Ecn => beta,
                    _ => self.config.beta,
                };
                let ssthresh = self.congestion(f, beta);
                reduce(&mut self.state.window, ssthresh);
                self.state.reducing = true;
            }
            Signal::Timeout { repeated, kept } => {
                if !repeated || self.saved.is_none() {
                    self.saved = Some(State { reducing: false, ..self.state.clone() });
                }
                let ssthresh = (!repeated).then(|| {
                    let ssthresh = self.congestion(f, self.config.beta);
                    // FreeBSD 14, `cubic_cong_signal`: of what was in flight.
                    let flight = self.config.reno.timeout_flight;
                    if flight { whole_segments((f.in_flight as f64 * self.config.beta) as u64, f) } else { ssthresh }
                });
                timed_out(&mut self.state.window, ssthresh, kept, f);
                // RFC 9438 section 4.8: the next stage begins with K = 0 and W_max = cwnd. Linux's
                // `bictcp_reset` forgets the path as well.
                self.state.w_max = 0.0;
                self.state.epoch = None;
                self.state.credit = 0;
                self.state.reducing = false;
                self.path = Path { acked_at: f.now, ..Path::new() };
                self.slow_start.restart(f);
            }
            Signal::Spurious => {
                let Some(saved) = self.saved.take() else { return };
                match self.config.rules.law().undo {
                    CubicUndo::State => {
                        if self.state.window.cwnd < saved.window.cwnd {
                            self.state = saved;
                        }
                    }
                    CubicUndo::Maximum => {
                        let cwnd = (self.state.w_max as u64).saturating_mul(f.segment());
                        let most = Window { cwnd, ssthresh: saved.window.ssthresh };
                        put_back(&mut self.state.window, &most);
                    }
                    CubicUndo::Window => put_back(&mut self.state.window, &saved.window),
                }
                self.state.reducing = false;
            }
            Signal::Resume { cwnd, ssthresh } => resume(&mut self.state.window, cwnd, ssthresh, f),
            Signal::RecoveryEnd => {
                if std::mem::take(&mut self.state.reducing) {
                    recovered(&mut self.state.window, f, &self.config.reno);
                }
            }
            Signal::IdleRestart => {
                let before = self.segments(f);
                idled(&mut self.state.window, f, &self.config.reno);
                if !self.config.reno.idle_keeps_credit {
                    self.state.credit = 0;
                }
                if self.config.rules.law().restarts_anew {
                    // Slow start leads to a new congestion avoidance stage; Linux stays on the old curve.
                    self.state.epoch = None;
                    if self.config.reno.remember_idle {
                        // FreeBSD 14, `cubic_after_idle`: the stage leads back to the window of before.
                        self.state.w_max = self.state.w_max.max(before);
                    }
                }
            }
            Signal::CountedAcks(_) => {}
        }
    }

    fn on_sent(&mut self, f: &Flight, _sent: &Sent) {
        let Some(since) = self.path.idle_since.take() else { return };
        if self.config.rules.law().skips_idle {
            self.skip(f.now, since);
            self.path.acked_at = f.now;
        }
    }
}

#[cfg(test)]
mod tests;
