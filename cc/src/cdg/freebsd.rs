//! CDG v0.1: once per round trip the shortest and the longest RTT are compared with those of the
//! previous round trip.
//!
//! It measures enhanced round-trip times (`ertt.rs`). The changes of the extremes, smoothed by a
//! moving average, indicate the state of the queue: both rise while it fills; the longest stops
//! rising once it is full, the shortest stops falling once it is empty. With a gradient of `g`
//! ticks above zero the window is reduced with probability 1 - exp(-g / G): for many small steps as
//! for one large one, so that flows of different round-trip times back off equally often per unit
//! of time. Otherwise it grows by one segment per measurement.
//!
//! - A loss halves the window only if the queue was judged full (or not judged yet); any other is
//!   repaired at full window.
//! - The *shadow window* grows as Reno's would: after such a loss the window is at least half of
//!   it, so that it does not lose to competing loss-based flows what its own back-offs released. It
//!   is abandoned when the queue has been empty.
//! - When back-offs do not help (`loss_compete_consec_cong` in a row without a falling gradient),
//!   the next `loss_compete_hold_backoff` back-offs are suppressed.
//!
//! # Source
//! FreeBSD `sys/netinet/cc/cc_cdg.c` of 10.0 and 15; reactions to ECN and timeouts, the end of
//! recovery and idle time from `cc_newreno.c` of 10.0 and `cc.c` of 15. Hayes and Armitage,
//! "Revisiting TCP congestion control using delay gradients" (IFIP Networking 2011). Releases
//! differ in four things:
//! - the random number that decides: 31 bits of `random` in 10, 32 of `prng32` later, as here (the
//!   table's share times 32768/32768.5 or 32768/32768.25);
//! - a segment of growth, which since 11 includes the options;
//! - the threshold after a timeout (`timeout_flight`): half of `min(snd_wnd, snd_cwnd)` in 10, of
//!   `min(snd_wnd, pipe)` in 14;
//! - the threshold after an idle time (`remember_idle`): kept in 10, `max(ssthresh, 3/4 cwnd)`
//!   in 14.
//!
//! [`CdgConfig::default`] is the release of 10.0; a `freebsd-14` host has the last two as in that
//! release.
//!
//! # Departures
//! - The window does not grow while something else limits the sender (RFC 7661); the reference
//!   grows it nevertheless.
//! - Neither window nor threshold falls below two segments; the reference has no bound for delay
//!   and loss.
//! - Nothing grows during fast recovery where the host does not tell of its ACKs
//!   ([`CongestionControl::on_recovery_ack`], FreeBSD 9). There the reference adds a segment to the
//!   shadow window, and to the window, for each ACK that acknowledges something.
//! - Nor does anything grow while the window comes down for a mark, or, with PRR, for a back-off:
//!   the endpoint calls no controller then. `cdg_ack_received` asks for no recovery before it adds
//!   to the window: a segment more for each measurement, of which there is one in such a round
//!   trip.
//! - A threshold above the window, from the shadow window, is not used up before fast recovery is
//!   over.
//! - A back-off that a duplicate ACK calls for is made with the next ACK, at the latest before the
//!   loss that the duplicates prove.
//! - The peer's window does not bound what is halved: a window beyond it has not grown.
//! - The table of exponentials is computed: rounded to 15 bits at steps of 1/128, and 10 instead of
//!   0 at the start, as there.
//! - Kept as it is: the shadow window is raised to the window after a back-off, not before it as in
//!   the paper; with `alpha_inc` above 0 all but the last of the first that many round trips of
//!   congestion avoidance bring no growth.

use std::collections::VecDeque;

use ackclock_units::parameter::Domain;
use ackclock_units::{Random, Span, configuration, maths};

use super::{DelayState, QueueState as Queue};
use crate::domains::{MILLION, PERCENT, POSITIVE};
use crate::ertt::Ertt;
use crate::newreno::Recovery;
use crate::reactions::{
    established, freebsd, halved, halved_by_timeout, idled, put_back, recovered, reduce, resume, slow_start_applies,
    timed_out,
};
use crate::slow_start::SlowStart;
use crate::{
    Ack, Arrival, CongestionControl, Flight, Inspection, Needs, NewRenoConfig, Sent, Signal, SlowStartRules, Verdict,
    Window,
};

/// Fractional bits of gradients (`D_P_E`).
const FRACTION: u32 = 7;
/// Gradients of more than this many `exp_backoff_scale` back off for certain (`MAXGRAD`).
const MAX_GRADIENT: i64 = 5;
/// Bits of a tabulated probability (`EXP_PREC`).
const PROBABILITY_BITS: u32 = 15;
/// The remainder of the shadow window after a loss, per cent (`RENO_BETA`).
const RENO_BETA: u32 = 50;

const SYSCTL: &str = "FreeBSD `cc.cdg`";
const BACK_OFFS: Domain = Domain::Whole(0, MILLION, "back-offs");

configuration! {
/// Parameters of CDG, by the names of the sysctls below `net.inet.tcp.cc.cdg`. Bounds are those of
/// the sysctls' handlers, where they have any.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct CdgConfig {
    /// In congestion avoidance the growth per round trip increases by a segment after every so many
    /// round trips; 0 is one segment per round trip throughout. Default 0.
    pub alpha_inc: u32 = 0 => (Domain::Whole(0, MILLION, "round trips"), SYSCTL);
    /// The remainder of the window after a back-off for delay, per cent. Default 70.
    pub beta_delay: u32 = 70 => (PERCENT, SYSCTL);
    /// The remainder of the window after a loss with a full queue, per cent. Default 50.
    pub beta_loss: u32 = 50 => (PERCENT, SYSCTL);
    /// G, in ticks: the gradient that backs off with probability 1 - 1/e. Default 3 (the paper's
    /// choice).
    pub exp_backoff_scale: u32 = 3 => (Domain::Whole(1, MILLION, "ticks"), SYSCTL);
    /// Measurements in the moving average; 0 is no smoothing. Default 8.
    pub smoothing_factor: u32 = 8 => (Domain::Whole(0, 1000, "round trips"), SYSCTL);
    /// After so many back-offs in a row to no effect the flow takes itself to compete with
    /// loss-based ones. Default 5.
    pub loss_compete_consec_cong: u32 = 5 => (BACK_OFFS, SYSCTL);
    /// Number of back-offs that are then held back. Default 5.
    pub loss_compete_hold_backoff: u32 = 5 => (BACK_OFFS, SYSCTL);
    /// A tick. The gradient in ticks is what G is compared with: with a finer clock and the same G,
    /// CDG reacts to smaller changes. Default 1 ms (`hz` 1000).
    pub rtt_unit: Span = Span::from_millis(1) => (POSITIVE, "FreeBSD `hz`");
    /// The threshold after a timeout is half of the bytes in flight, instead of half of the window
    /// (FreeBSD 14, `newreno_cc_cong_signal`). Default false (FreeBSD 10).
    pub timeout_flight: bool = false => (Domain::Flag, "FreeBSD 14 `newreno_cc_cong_signal`");
    /// On a restart after idle, raise the threshold to three quarters of the old window (FreeBSD
    /// 14, `newreno_cc_after_idle`). Default false (FreeBSD 10).
    pub remember_idle: bool = false => (Domain::Flag, "FreeBSD 14 `newreno_cc_after_idle`");
    /// The end of slow start, other than by back-offs. Default at the threshold.
    pub slow_start: SlowStartRules = SlowStartRules::Standard;
}
}

/// CDG v0.1 (FreeBSD).
#[derive(Clone, Debug)]
pub struct Cdg {
    config: CdgConfig,
    reno: NewRenoConfig,
    slow_start: SlowStart,
    random: Random,
    ertt: Ertt,
    state: State,
    /// The state before the last loss or timeout, until it is put back or an ECN echo confirms the
    /// congestion.
    saved: Option<State>,
    /// Round-trip times since the last measurement.
    interval: Extremes,
    /// Round-trip times of the interval before that; `None` while the next gradient would mean
    /// nothing.
    previous: Option<Extremes>,
    trend: Trend,
    queue: Queue,
    /// `consec_cong_cnt`: times in a row that the gradient called for less.
    consecutive: u32,
    step: Step,
    /// A back-off that a duplicate ACK called for.
    overdue: bool,
}

#[derive(Clone, Debug)]
struct State {
    window: Window,
    /// The window that Reno would have; 0 while no loss-based flow is suspected.
    shadow: u64,
    /// `window_incr`: segments per round trip.
    growth: u64,
    /// Round trips since that changed.
    round_trips: u32,
    recovery: Recovery,
}

/// Shortest and longest round trip, in ticks.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
struct Extremes {
    min: i64,
    max: i64,
}

impl Extremes {
    const NONE: Extremes = Extremes { min: i64::MAX, max: 0 };

    fn add(&mut self, rtt: i64) {
        *self = Extremes { min: self.min.min(rtt), max: self.max.max(rtt) };
    }

    /// The change since `previous`, with fractional bits.
    fn change(self, previous: Extremes) -> Extremes {
        let change = |now: i64, before: i64| now.saturating_sub(before).saturating_mul(1 << FRACTION);
        Extremes { min: change(self.min, previous.min), max: change(self.max, previous.max) }
    }
}

/// The moving average of changes.
#[derive(Clone, Debug)]
struct Trend {
    mean: Extremes,
    window: VecDeque<Extremes>,
}

/// The step that the ACK in hand calls for.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Step {
    /// Growth; `true` if it completed a measurement.
    Grow(bool),
    /// Nothing: the gradient calls for less, and there is a reason not to follow.
    Hold,
    BackOff,
}

impl Cdg {
    /// A controller of a connection that is not established yet; `random` decides on back-offs.
    pub fn new(config: CdgConfig, random: Random) -> Cdg {
        let window = Window { cwnd: 0, ssthresh: Window::INFINITE };
        let CdgConfig { timeout_flight, remember_idle, slow_start, .. } = config;
        Cdg {
            config,
            // Slow start counts ACKs.
            reno: NewRenoConfig { abc: false, timeout_flight, remember_idle, slow_start, ..freebsd() },
            slow_start: SlowStart::new(config.slow_start),
            random,
            ertt: Ertt::new(config.rtt_unit),
            state: State { window, shadow: 0, growth: 0, round_trips: 0, recovery: Recovery::None },
            saved: None,
            interval: Extremes::NONE,
            previous: None,
            trend: Trend { mean: Extremes { min: 0, max: 0 }, window: VecDeque::new() },
            queue: Queue::Unknown,
            consecutive: 0,
            step: Step::Grow(false),
            overdue: false,
        }
    }

    /// The measuring half of `cdg_ack_received`: every ACK, in recovery too.
    fn measure(&mut self) -> Step {
        self.interval.add(self.ertt.rtt);
        if !self.ertt.take_measurement() {
            return Step::Grow(false);
        }
        let slow_start = self.state.window.cwnd <= self.state.window.ssthresh;
        let interval = std::mem::replace(&mut self.interval, Extremes::NONE);
        let previous = self.previous.replace(interval);
        // Zero is a round trip that nobody has measured.
        let congested = match previous.filter(|previous| previous.max > 0) {
            None => false,
            Some(previous) => {
                let change = interval.change(previous);
                self.trend.add(change, self.config.smoothing_factor);
                let mean = self.trend.mean;
                let congested = self.judge(change, slow_start);
                if let Some(queue) = Queue::inferred(mean) {
                    self.queue = queue;
                    if queue == Queue::Empty {
                        self.state.shadow = 0;
                    }
                }
                if mean.min < 0 || mean.max < 0 {
                    self.consecutive = 0;
                }
                congested
            }
        };
        if !congested {
            return Step::Grow(true);
        }
        self.consecutive = self.consecutive.saturating_add(1);
        if self.state.recovery != Recovery::None {
            return Step::Hold;
        }
        // The effect shows in the second round trip from now.
        self.previous = None;
        let CdgConfig { loss_compete_consec_cong: most, loss_compete_hold_backoff: held, .. } = self.config;
        if self.consecutive <= most {
            return Step::BackOff;
        }
        if self.consecutive >= most.saturating_add(held) {
            self.consecutive = 0;
        }
        self.follow_shadow();
        Step::Hold
    }

    /// Returns `true` if the newest change or its mean calls for a back-off: in slow start the
    /// newest counts first, since it cannot wait.
    fn judge(&mut self, change: Extremes, slow_start: bool) -> bool {
        let mean = self.trend.mean;
        let gradient = match () {
            () if slow_start && change.min > 0 => change.min,
            () if mean.min > 0 => mean.min,
            () if slow_start && change.max > 0 => change.max,
            () if mean.max > 0 => mean.max,
            () => return false,
        };
        self.backs_off(gradient)
    }

    /// `prob_backoff`
    fn backs_off(&mut self, gradient: i64) -> bool {
        let scale = i64::from(self.config.exp_backoff_scale.max(1));
        if gradient > (MAX_GRADIENT * scale) << FRACTION {
            return true;
        }
        let probability = u64::from(u32::MAX >> PROBABILITY_BITS) * tabulated((gradient + scale / 2) / scale);
        self.random.bits() >> 32 < probability
    }

    /// `CC_CDG_DELAY`
    fn back_off(&mut self, f: &Flight) {
        self.overdue = false;
        let ssthresh = remaining(self.state.window.cwnd, self.config.beta_delay).max(2 * f.segment());
        reduce(&mut self.state.window, ssthresh);
        (self.state.growth, self.state.round_trips) = (0, 0);
        if !f.after_timeout {
            self.state.recovery = Recovery::Congestion;
        }
        self.follow_shadow();
    }

    fn follow_shadow(&mut self) {
        self.state.shadow = self.state.shadow.max(self.state.window.cwnd);
    }

    /// `cdg_window_increase`
    fn increase(&mut self, f: &Flight, measured: bool) {
        let mss = f.segment();
        let State { window, shadow, growth, round_trips, .. } = &mut self.state;
        let (step, shadow_step) = if slow_start_applies(window, &self.reno) {
            (*growth, *round_trips) = (0, 0);
            self.slow_start.grow(window, f, mss, &self.reno);
            (0, mss)
        } else if !measured {
            return;
        } else if self.config.alpha_inc == 0 {
            (mss, mss)
        } else {
            *round_trips = round_trips.saturating_add(1);
            if *round_trips >= self.config.alpha_inc {
                *growth += 1;
                *round_trips = 0;
            }
            (growth.saturating_mul(mss), mss)
        };
        if *shadow > 0 {
            *shadow = shadow.saturating_add(shadow_step).min(Window::MAX);
        }
        window.grow(step);
    }

    /// `CC_NDUPACK`
    fn lost(&mut self, f: &Flight) {
        let state = &mut self.state;
        let idle_queue = matches!(self.queue, Queue::Empty | Queue::Rising | Queue::Falling);
        let ssthresh = if state.recovery == Recovery::Congestion || idle_queue {
            state.window.cwnd
        } else {
            state.shadow = remaining(state.shadow, RENO_BETA);
            (state.growth, state.round_trips) = (0, 0);
            state.shadow.max(remaining(state.window.cwnd, self.config.beta_loss))
        };
        reduce(&mut state.window, ssthresh.max(2 * f.segment()));
        state.recovery = Recovery::Fast;
    }

    /// An ACK in fast recovery, or the one that ends it.
    fn on_recovery_ack(&mut self, f: &Flight) -> Verdict {
        let Step::Grow(measured) = std::mem::replace(&mut self.step, Step::Grow(false)) else {
            return Verdict::Continue;
        };
        if self.state.recovery != Recovery::Fast {
            self.increase(f, measured);
            return Verdict::Continue;
        }
        // The window is below the threshold, as in slow start.
        let mss = f.segment();
        let State { shadow, growth, round_trips, .. } = &mut self.state;
        (*growth, *round_trips) = (0, 0);
        if *shadow > 0 {
            *shadow = shadow.saturating_add(mss).min(Window::MAX);
        }
        Verdict::Inflated(mss)
    }
}

impl CongestionControl for Cdg {
    fn name(&self) -> &'static str {
        "cdg"
    }

    fn window(&self) -> Window {
        self.state.window
    }

    fn needs(&self) -> Needs {
        Needs { arrivals: true, departures: true, recovery_acks: true, ..Needs::default() }
    }

    fn on_established(&mut self, f: &Flight) {
        *self = Cdg::new(self.config, self.random.clone());
        self.take_over(established(f));
        self.slow_start.restart(f);
    }

    fn take_over(&mut self, window: Window) {
        self.state.window = window;
        // Loss-based flows may be there from the start.
        self.state.shadow = window.cwnd;
    }

    fn impose(&mut self, window: Window) {
        self.state.window = window;
    }

    fn on_ack(&mut self, f: &Flight, ack: &Ack) -> Verdict {
        if ack.in_recovery {
            return self.on_recovery_ack(f);
        }
        let step = std::mem::replace(&mut self.step, Step::Grow(false));
        match step {
            _ if self.overdue => self.back_off(f),
            Step::BackOff => self.back_off(f),
            Step::Grow(measured) => {
                self.slow_start.observe(&mut self.state.window, f, ack.rtt, f.min_rtt, &self.reno);
                if f.cwnd_limited {
                    self.increase(f, measured);
                }
                return Verdict::Continue;
            }
            Step::Hold => return Verdict::Continue,
        }
        Verdict::Reduced
    }

    fn on_signal(&mut self, f: &Flight, signal: Signal) {
        match signal {
            Signal::Loss => {
                self.saved = Some(self.state.clone());
                if self.overdue {
                    self.back_off(f);
                }
                self.lost(f);
            }
            // The remaining signals are handled as by NewReno.
            Signal::Ecn => {
                self.saved = None;
                let ssthresh = halved(&self.state.window, f, &self.reno);
                reduce(&mut self.state.window, ssthresh);
                self.state.recovery = Recovery::Congestion;
            }
            Signal::Timeout { repeated, kept } => {
                if !repeated || self.saved.is_none() {
                    self.saved = Some(State { recovery: Recovery::None, ..self.state.clone() });
                }
                let ssthresh = halved_by_timeout(&self.state.window, f, &self.reno);
                timed_out(&mut self.state.window, (!repeated).then_some(ssthresh), kept, f);
                self.state.recovery = Recovery::None;
                self.ertt.on_timeout();
                self.slow_start.restart(f);
            }
            Signal::Spurious => {
                if let Some(saved) = self.saved.take() {
                    put_back(&mut self.state.window, &saved.window);
                    self.state = State { window: self.state.window, recovery: Recovery::None, ..saved };
                }
            }
            Signal::Resume { cwnd, ssthresh } => resume(&mut self.state.window, cwnd, ssthresh, f),
            Signal::RecoveryEnd => {
                if std::mem::replace(&mut self.state.recovery, Recovery::None) == Recovery::Fast {
                    recovered(&mut self.state.window, f, &self.reno);
                }
                return;
            }
            Signal::IdleRestart => {
                idled(&mut self.state.window, f, &self.reno);
                return;
            }
            Signal::CountedAcks(_) => return,
        }
        self.step = Step::Grow(false);
        self.overdue = false;
    }

    fn on_arrival(&mut self, f: &Flight, arrival: &Arrival) {
        self.ertt.on_arrival(f, arrival, self.state.window.cwnd);
        if self.state.recovery.turns_fast(&mut self.state.window, f, arrival) {
            self.state.recovery = Recovery::Fast;
        }
        self.overdue |= std::mem::replace(&mut self.step, Step::Grow(false)) == Step::BackOff;
        if arrival.acked > 0 || arrival.duplicate {
            self.step = self.measure();
        }
    }

    fn on_sent(&mut self, f: &Flight, sent: &Sent) {
        self.ertt.on_sent(f, sent);
    }

    fn inspect(&self) -> Inspection<'_> {
        let tick = self.config.rtt_unit.as_nanos() as f64 / 1e6;
        let millis = |gradient: i64| gradient as f64 / f64::from(1 << FRACTION) * tick;
        let delay = DelayState {
            gradient_min_ms: millis(self.trend.mean.min),
            gradient_max_ms: millis(self.trend.mean.max),
            queue: self.queue,
            shadow: self.state.shadow,
        };
        let enhanced_rtt = Some(self.ertt.enhanced_rtt());
        Inspection { enhanced_rtt, delay: Some(delay), ..Inspection::default() }
    }
}

impl Trend {
    /// `calc_moving_average`: the shares are added up as they come, and divided with truncation.
    fn add(&mut self, change: Extremes, size: u32) {
        if size == 0 {
            self.mean = change;
            return;
        }
        let oldest = if self.window.len() < size as usize { None } else { self.window.pop_front() };
        let oldest = oldest.unwrap_or(Extremes { min: 0, max: 0 });
        let share = |new: i64, old: i64| new.saturating_sub(old) / i64::from(size);
        self.mean.min = self.mean.min.saturating_add(share(change.min, oldest.min));
        self.mean.max = self.mean.max.saturating_add(share(change.max, oldest.max));
        self.window.push_back(change);
    }
}

impl Queue {
    /// The queue inferred from the smoothed changes; `None` leaves the estimate as it was.
    fn inferred(mean: Extremes) -> Option<Queue> {
        match mean {
            Extremes { min: 1.., max: ..=0 } => Some(Queue::Full),
            Extremes { min: 0.., max: ..=-1 } => Some(Queue::Empty),
            Extremes { min: 1.., max: 1.. } => Some(Queue::Rising),
            Extremes { min: ..=-1, max: ..=-1 } => Some(Queue::Falling),
            _ => None,
        }
    }
}

/// 1 - exp(-x / 128) in units of 2^-15 (`probexp`).
fn tabulated(x: i64) -> u64 {
    if x <= 0 {
        return 10;
    }
    let p = 1.0 - maths::exp(-(x as f64) / f64::from(1 << FRACTION));
    (p * f64::from(1 << PROBABILITY_BITS)).round() as u64
}

/// `percent` of a window (`cdg_window_decrease`).
fn remaining(window: u64, percent: u32) -> u64 {
    (u128::from(window) * u128::from(percent) / 100).min(Window::MAX.into()) as u64
}

#[cfg(test)]
mod tests;
