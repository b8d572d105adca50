//! CHD, the CAIA version of Hamilton delay-based congestion control: HD once per round trip instead
//! of once per ACK, with a shadow window against loss-based flows and no halving for losses that
//! have nothing to do with the queue.
//!
//! It measures enhanced round-trip times (`ertt.rs`). Once per measurement the longest sample since
//! the last one gives the queueing delay, which halves the window by HD's rule. A loss while the
//! delay is at most `queue_threshold` is repaired at full window.
//!
//! - A back-off at a delay beyond the threshold (with `loss_fair`) assumes that loss-based flows
//!   fill the queue. The shadow window, what Reno's window would be, is then maintained. On loss
//!   the window is halved from there.
//! - It is abandoned at a back-off with less delay than at the previous one.
//!
//! # Source
//! FreeBSD `sys/netinet/cc/cc_chd.c` of 9.1; reactions to ECN and timeouts, the end of recovery and
//! idle time from `cc_newreno.c` of 9.1, or as the host's NewReno has them (FreeBSD 14, `cc.c`).
//! Hayes and Armitage, "Improved coexistence and loss tolerance for delay based TCP congestion
//! control" (LCN 2010).
//!
//! # Departures
//! - The window does not grow while something else limits the sender (RFC 7661), nor during fast
//!   recovery.
//! - A threshold above the window, from the shadow window, is not used up before fast recovery is
//!   over.
//! - A back-off that a duplicate ACK calls for is made with the next ACK, at the latest before the
//!   loss that the duplicates prove.
//! - The peer's window does not bound what is halved: a window beyond it has not grown.

use ackclock_units::parameter::Domain;
use ackclock_units::{Random, Span, configuration};

use crate::domains::{MILLION, PERCENT, POSITIVE, lowered};
use crate::ertt::Ertt;
use crate::hd::{DelayLaw, draw};
use crate::newreno::Recovery;
use crate::reactions::{
    avoid, established, halved, halved_by_timeout, idled, put_back, recovered, reduce, resume, slow_start_applies,
    timed_out,
};
use crate::slow_start::SlowStart;
use crate::{Ack, Arrival, CongestionControl, Flight, Inspection, Needs, NewRenoConfig, Sent, Signal, Verdict, Window};

const SYSCTL: &str = "FreeBSD `cc.chd`";

configuration! { self:
/// Parameters of CHD, by the names of the sysctls below `net.inet.tcp.cc.chd`.
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct ChdConfig {
    /// The queueing delay with the most back-offs, in ticks; beyond it losses are signs of
    /// congestion. Default 20.
    pub queue_threshold: u32 = 20 => (Domain::Whole(1, MILLION, "ticks"), SYSCTL);
    /// The queueing delay up to which there are no back-offs, in ticks. Default 5.
    pub queue_min: u32 = 5 => ({
        // The kernel keeps the threshold above the delay without back-offs.
        let most = lowered(&mut self.queue_min, self.queue_threshold.saturating_sub(1));
        Domain::Whole(0, most, "ticks")
    }, SYSCTL);
    /// The probability at the threshold that a measurement halves the window, per cent. Default 50.
    pub pmax: u32 = 50 => (PERCENT, SYSCTL);
    /// The shadow window is used against loss-based flows. Default true.
    pub loss_fair: bool = true => (Domain::Flag, SYSCTL);
    /// The delay is that of the longest round trip since the last measurement, instead of the
    /// newest. Default true.
    pub use_max: bool = true => (Domain::Flag, SYSCTL);
    /// A tick. Default 1 ms (`hz` 1000).
    pub rtt_unit: Span = Span::from_millis(1) => (POSITIVE, "FreeBSD `hz`");
    /// NewReno's parameters, for growth, ECN, timeouts and idle time.
    pub reno: NewRenoConfig = NewRenoConfig::default() => (..);
}
}

/// CHD (FreeBSD).
#[derive(Clone, Debug)]
pub struct Chd {
    config: ChdConfig,
    random: Random,
    ertt: Ertt,
    slow_start: SlowStart,
    state: State,
    /// The state before the last loss or timeout, until it is put back or an ECN echo confirms the
    /// congestion.
    saved: Option<State>,
    /// `loss_compete`: loss-based flows seem to share the queue.
    competing: bool,
    /// The longest sample since the last measurement.
    longest: i64,
    /// `prev_backoff_qdly`: the queueing delay at the last back-off.
    delay_before: i64,
    step: Step,
    /// A back-off that a duplicate ACK called for, and the queueing delay.
    overdue: Option<i64>,
}

#[derive(Clone, Debug)]
struct State {
    window: Window,
    /// The window that Reno would have; 0 while no loss-based flow is suspected.
    shadow: u64,
    /// Bytes acknowledged in congestion avoidance that have not yet become growth.
    credit: u64,
    recovery: Recovery,
}

/// The step that the ACK in hand calls for.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Step {
    /// Growth; `true` if it completed a measurement.
    Grow(bool),
    /// A back-off for this queueing delay.
    BackOff(i64),
}

impl Chd {
    /// A controller of a connection that is not established yet; `random` decides on back-offs.
    pub fn new(config: ChdConfig, random: Random) -> Chd {
        let window = Window { cwnd: 0, ssthresh: Window::INFINITE };
        Chd {
            config,
            random,
            ertt: Ertt::new(config.rtt_unit),
            slow_start: SlowStart::new(config.reno.slow_start),
            state: State { window, shadow: 0, credit: 0, recovery: Recovery::None },
            saved: None,
            competing: false,
            longest: 0,
            delay_before: 0,
            step: Step::Grow(false),
            overdue: None,
        }
    }

    /// The measuring half of `chd_ack_received`: every ACK, in recovery too.
    fn measure(&mut self) -> Step {
        self.longest = self.longest.max(self.ertt.rtt);
        if !self.ertt.take_measurement() {
            return Step::Grow(false);
        }
        let longest = std::mem::take(&mut self.longest);
        let rtt = if self.config.use_max { longest } else { self.ertt.rtt };
        if rtt == 0 || self.state.recovery != Recovery::None {
            return Step::Grow(true);
        }
        let delay = rtt - self.ertt.min;
        if delay <= i64::from(self.config.queue_min) {
            self.competing = false;
            return Step::Grow(true);
        }
        if self.judge(delay) { Step::BackOff(delay) } else { Step::Grow(true) }
    }

    /// `should_backoff`
    fn judge(&mut self, delay: i64) -> bool {
        let ChdConfig { queue_threshold: threshold, queue_min: min, pmax, loss_fair, .. } = self.config;
        let probability = DelayLaw { threshold, min, pmax }.probability(delay, self.ertt.max - self.ertt.min);
        let backs_off = draw(&mut self.random) < probability;
        if delay <= i64::from(threshold) {
            self.competing = false;
        } else if loss_fair && backs_off {
            self.competing = true;
        }
        backs_off
    }

    /// `CC_CHD_DELAY`, with the shadow window before it.
    fn back_off(&mut self, f: &Flight, delay: i64) {
        let State { window, shadow, recovery, .. } = &mut self.state;
        // More delay than at the last back-off may be the doing of others.
        *shadow = if self.competing || delay > self.delay_before { window.cwnd.max(*shadow) } else { 0 };
        self.delay_before = delay;
        let ssthresh = decreased(window.cwnd, f);
        reduce(window, ssthresh);
        if !f.after_timeout {
            *recovery = Recovery::Congestion;
        }
    }

    /// `chd_window_increase`
    fn increase(&mut self, f: &Flight, ack: &Ack, measured: bool) {
        let reno = &self.config.reno;
        let State { window, credit, shadow, .. } = &mut self.state;
        let before = window.cwnd;
        let mut acked = ack.delivered;
        if slow_start_applies(window, reno) {
            acked = self.slow_start.grow(window, f, acked, reno);
        }
        if !slow_start_applies(window, reno) && acked > 0 {
            if reno.abc {
                let per_segment = window.cwnd;
                avoid(window, credit, per_segment, f, acked, reno);
            } else if measured {
                window.grow(f.segment());
            }
        }
        if *shadow > 0 {
            *shadow = shadow.saturating_add(window.cwnd - before).min(Window::MAX);
        }
    }

    /// `CC_NDUPACK`
    fn lost(&mut self, f: &Flight) {
        let delay = self.ertt.rtt.max(self.longest) - self.ertt.min;
        let state = &mut self.state;
        let congested = state.recovery == Recovery::None && delay > i64::from(self.config.queue_threshold);
        let ssthresh = match () {
            () if congested && self.competing => decreased(state.window.cwnd.max(state.shadow), f),
            () if congested => decreased(state.window.cwnd, f),
            () => state.window.cwnd,
        };
        reduce(&mut state.window, ssthresh.max(2 * f.segment()));
        self.enter_fast_recovery(f);
    }

    fn enter_fast_recovery(&mut self, f: &Flight) {
        let State { shadow, recovery, .. } = &mut self.state;
        if *shadow > 0 {
            *shadow = (*shadow / f.segment() / 2).max(2) * f.segment();
        }
        *recovery = Recovery::Fast;
    }
}

impl CongestionControl for Chd {
    fn name(&self) -> &'static str {
        "chd"
    }

    fn window(&self) -> Window {
        self.state.window
    }

    fn needs(&self) -> Needs {
        Needs { arrivals: true, departures: true, ..Needs::default() }
    }

    fn on_established(&mut self, f: &Flight) {
        *self = Chd::new(self.config, self.random.clone());
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
        let step = std::mem::replace(&mut self.step, Step::Grow(false));
        let backs_off = self.overdue.take().map(Step::BackOff).unwrap_or(step);
        let measured = match backs_off {
            Step::BackOff(delay) => {
                self.back_off(f, delay);
                return Verdict::Reduced;
            }
            Step::Grow(measured) => measured,
        };
        self.slow_start.observe(&mut self.state.window, f, ack.rtt, f.min_rtt, &self.config.reno);
        if f.cwnd_limited {
            self.increase(f, ack, measured);
        }
        Verdict::Continue
    }

    fn on_signal(&mut self, f: &Flight, signal: Signal) {
        match signal {
            Signal::Loss => {
                self.saved = Some(self.state.clone());
                if let Some(delay) = self.overdue {
                    self.back_off(f, delay);
                }
                self.lost(f);
                self.state.credit = 0;
            }
            // The remaining signals are handled as by NewReno.
            Signal::Ecn => {
                self.saved = None;
                let ssthresh = halved(&self.state.window, f, &self.config.reno);
                reduce(&mut self.state.window, ssthresh);
                self.state.credit = 0;
                self.state.recovery = Recovery::Congestion;
            }
            Signal::Timeout { repeated, kept } => {
                if !repeated || self.saved.is_none() {
                    self.saved = Some(State { recovery: Recovery::None, ..self.state.clone() });
                }
                let ssthresh = halved_by_timeout(&self.state.window, f, &self.config.reno);
                timed_out(&mut self.state.window, (!repeated).then_some(ssthresh), kept, f);
                self.state.credit = 0;
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
                    recovered(&mut self.state.window, f, &self.config.reno);
                }
                return;
            }
            Signal::IdleRestart => {
                idled(&mut self.state.window, f, &self.config.reno);
                self.state.credit = 0;
                return;
            }
            Signal::CountedAcks(_) => return,
        }
        self.step = Step::Grow(false);
        self.overdue = None;
    }

    fn on_arrival(&mut self, f: &Flight, arrival: &Arrival) {
        self.ertt.on_arrival(f, arrival, self.state.window.cwnd);
        if self.state.recovery.turns_fast(&mut self.state.window, f, arrival) {
            self.enter_fast_recovery(f);
        }
        if let Step::BackOff(delay) = std::mem::replace(&mut self.step, Step::Grow(false)) {
            self.overdue.get_or_insert(delay);
        }
        if arrival.acked > 0 || arrival.duplicate {
            self.step = self.measure();
        }
    }

    fn on_sent(&mut self, f: &Flight, sent: &Sent) {
        self.ertt.on_sent(f, sent);
    }

    fn inspect(&self) -> Inspection<'_> {
        Inspection { enhanced_rtt: Some(self.ertt.enhanced_rtt()), ..Inspection::default() }
    }
}

/// `chd_window_decrease`: half of a window in whole segments, rounded up, at least two.
fn decreased(window: u64, f: &Flight) -> u64 {
    let segments = window / f.segment();
    segments.saturating_sub((segments / 2).max(1)).max(2) * f.segment()
}

#[cfg(test)]
mod tests;
