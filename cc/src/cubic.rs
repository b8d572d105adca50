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

mod config;
mod law;
mod linux;
mod rfc9438;

use ackclock_units::{Span, Time};

pub use self::config::{CubicConfig, CubicRules};
use self::law::CubicUndo;
use self::linux::AckTimes;
use crate::cubic::law::Curve;
use crate::reactions::{
    established, idled, put_back, recovered, reduce, resume, slow_start_applies, timed_out, whole_segments,
};
use crate::slow_start::SlowStart;
use crate::{Ack, CongestionControl, Flight, Sent, Signal, Verdict, Window};

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
        if !ack.sampled {
            self.sample(f, ack.rtt, self.state.window.cwnd);
        }
    }

    /// A sample while the window is `cwnd` (`bictcp_acked`, `cubictcp_acked`).
    fn sample(&mut self, f: &Flight, rtt: Option<Span>, cwnd: u64) {
        let fresh = self.state.epoch.as_ref().is_some_and(|epoch| f.now.since(epoch.start) < Span::from_secs(1));
        if fresh {
            return;
        }
        if let Some(rtt) = rtt {
            self.path.shortest = Some(self.path.shortest.map_or(rtt, |shortest| shortest.min(rtt)));
        }
        let mut window = Window { cwnd, ..self.state.window };
        if self.slow_start.observe(&mut window, f, rtt, self.path.shortest, &self.config.reno) {
            self.state.window.ssthresh = window.ssthresh;
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

    fn on_sample(&mut self, f: &Flight, rtt: Span, cwnd: u64) {
        self.sample(f, Some(rtt), cwnd);
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
