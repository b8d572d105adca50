//! Controllers that learn, or have learned: decisions from outside, at points in time that are
//! their own.
//!
//! Between two decisions a [`Learner`] only counts. At a decision the caller ends the interval
//! ([`Learner::end_interval`]), which gives an observation, and gives an action ([`Learner::act`]):
//! that of a trainer, or that of the policy that the learner carries. Both see the same features
//! and obey the same law, so that a policy does in use what it did in training.
//!
//! # Departures
//! From controllers that decide for themselves:
//! - Losses and marks are counted, and change nothing by themselves. A timeout leaves a window of
//!   one segment beyond what is still in flight, until the next decision or until it turns out to
//!   be spurious; the pacing rate stays.
//! - An idle time changes nothing.
//! - Before the first decision the window is the host's initial one, and the pacing rate, where
//!   actions set it, is that of the initial window in a smoothed RTT, or in 100 ms before there is
//!   one.
//!
//! - An agent with [`Agent::headroom`] sets no more than a multiple of what has got through.
//!
//! With a controller beneath, all these are up to it, and actions multiply or set its window.

use std::sync::Arc;

use ackclock_units::{Rate, Span, Time};

pub use agent::{Agent, Decides, Policy, problem_of};
pub use feature::{Feature, MAX_LOOK_BACK, Measure, Measures, Statistic};
pub use law::{Law, Map, Target};
pub use network::{Activation, Layer, Network, Normalisation, Scratch, ShapeError};

use crate::{
    Ack, Arrival, CongestionControl, EcnFeedback, Flight, Inspection, Lost, Needs, Sent, Signal, Verdict, Window,
};
use look_back::LookBack;
use monitor::Monitor;

mod agent;
mod feature;
mod law;
mod look_back;
mod monitor;
mod network;

/// The interval before there is an RTT.
const FIRST_RTT: Span = Span::from_millis(100);
/// Round trips of a rate that fit into the window.
const ROUND_TRIPS: f64 = 2.0;
/// The least window of a rate, segments.
const LEAST_WINDOW: u64 = 4;

/// The smoothed RTT, s.
fn srtt(f: &Flight) -> f64 {
    f.srtt.unwrap_or(FIRST_RTT).as_secs_f64()
}

/// The rate of the initial window in a smoothed RTT, bit/s.
fn first_rate(f: &Flight) -> f64 {
    let cwnd = f.initial_window.clamp(f.segment(), Window::MAX.max(f.segment()));
    cwnd as f64 * 8.0 / srtt(f).max(1e-6)
}

/// A controller whose decisions come from outside, or from a policy.
#[derive(Debug)]
pub struct Learner {
    agent: Arc<Agent>,
    policy: Option<Arc<Policy>>,
    beneath: Option<Box<dyn CongestionControl>>,
    window: Window,
    /// bit/s, where actions set it.
    rate: f64,
    before_timeout: Option<Window>,
    is_open: bool,
    /// An ACK has brought a decision.
    is_due: bool,
    monitor: Monitor,
    measures: Measures,
    look_backs: Vec<(Measure, usize, LookBack)>,
    observation: Vec<f32>,
    action: [f64; 2],
    decisions: u64,
    scratch: Scratch,
}

impl Learner {
    /// One whose actions come from outside, with the controller [`Agent::beneath`] names.
    pub fn new(agent: Arc<Agent>, beneath: Option<Box<dyn CongestionControl>>) -> Learner {
        let mut look_backs: Vec<(Measure, usize, LookBack)> = Vec::new();
        for feature in &agent.observes {
            if let Some((intervals, _)) = feature.over
                && !look_backs.iter().any(|&(measure, over, _)| (measure, over) == (feature.measure, intervals))
            {
                look_backs.push((feature.measure, intervals, LookBack::new(intervals)));
            }
        }
        Learner {
            beneath,
            policy: None,
            window: Window { cwnd: 1, ssthresh: Window::INFINITE },
            rate: agent.law(Target::Rate).map_or(0.0, |law| law.bounds[0]),
            before_timeout: None,
            is_open: false,
            is_due: false,
            monitor: Monitor::new(Time::ZERO),
            measures: [0.0; Measure::COUNT],
            look_backs,
            observation: agent.blank(),
            action: [0.0; 2],
            decisions: 0,
            scratch: Scratch::default(),
            agent,
        }
    }

    /// One that does what a policy says.
    pub fn with_policy(policy: Arc<Policy>, beneath: Option<Box<dyn CongestionControl>>) -> Learner {
        let learner = Learner::new(Arc::clone(policy.agent()), beneath);
        Learner { policy: Some(policy), ..learner }
    }

    /// The learner's observations, the times of its decisions and the effects of its actions.
    pub fn agent(&self) -> &Arc<Agent> {
        &self.agent
    }

    /// Returns `true` if the connection is open, so that the learner can decide.
    pub fn is_open(&self) -> bool {
        self.is_open
    }

    /// Returns `true` if an ACK has brought a decision.
    pub fn is_due(&self) -> bool {
        self.is_due
    }

    /// Number of decisions.
    pub fn decisions(&self) -> u64 {
        self.decisions
    }

    /// The numbers of the last action, as they were given.
    pub fn action(&self) -> &[f64] {
        &self.action[..self.agent.laws.len()]
    }

    /// The measures of the interval that has ended.
    pub fn measures(&self) -> &Measures {
        &self.measures
    }

    /// The observation at the last decision: intervals of [`Agent::history`], the newest last, each
    /// with the features of [`Agent::observes`].
    pub fn observation(&self) -> &[f32] {
        &self.observation
    }

    /// The rate that actions set, bit/s, if they do.
    pub fn rate(&self) -> Option<f64> {
        self.agent.law(Target::Rate).map(|_| self.rate)
    }

    /// A decision is due: the interval ends, and the next one begins.
    pub fn end_interval(&mut self, f: &Flight) {
        self.is_due = false;
        self.decisions += 1;
        let asked = self.beneath.as_ref().and_then(|cc| cc.pacing_rate(f)).map(|rate| rate.as_bps() as f64);
        let seen = self.monitor.end(f, self.window().cwnd, self.rate().or(asked), self.action);
        self.measures = feature::measures(&seen);
        for (measure, _, look_back) in &mut self.look_backs {
            look_back.push(self.measures[*measure as usize]);
        }
        let width = self.agent.observes.len();
        self.observation.copy_within(width.., 0);
        let from = self.observation.len() - width;
        for (place, feature) in self.observation[from..].iter_mut().zip(&self.agent.observes) {
            let value = match feature.over {
                None => self.measures[feature.measure as usize],
                Some((intervals, statistic)) => {
                    let known = |(measure, over, _): &&(Measure, usize, LookBack)| {
                        (*measure, *over) == (feature.measure, intervals)
                    };
                    self.look_backs.iter().find(known).map_or(0.0, |(_, _, look_back)| look_back.get(statistic))
                }
            };
            *place = feature.tell(value) as f32;
        }
    }

    /// Does what the policy says on the observation, in single precision, as trainers give actions;
    /// `false` if it has none.
    pub fn act_by_policy(&mut self, f: &Flight) -> bool {
        let Some(policy) = &self.policy else { return false };
        let action = policy.network().act(&self.observation, &mut self.scratch);
        let mut numbers = [0.0; 2];
        for (number, &given) in numbers.iter_mut().zip(action) {
            *number = given as f32;
        }
        self.act(f, &numbers[..self.agent.laws.len()]);
        true
    }

    /// Returns `true` if the learner's actions come from outside.
    pub fn is_external(&self) -> bool {
        self.policy.is_none()
    }

    /// Does what an action says, a number for each of [`Agent::laws`]. One that is no number leaves
    /// its part as it is.
    pub fn act(&mut self, f: &Flight, action: &[f32]) {
        let agent = Arc::clone(&self.agent);
        let most = self.most(f);
        for ((law, &number), place) in agent.laws.iter().zip(action).zip(0..) {
            let number = f64::from(number);
            if number.is_nan() {
                continue;
            }
            self.action[place] = number;
            match law.target {
                Target::Rate => {
                    self.rate = law.apply(self.rate, number).min(most).max(law.bounds[0]);
                    if agent.law(Target::Window).is_none() {
                        let bytes = self.rate * srtt(f) * ROUND_TRIPS / 8.0;
                        let least = LEAST_WINDOW * f.segment();
                        self.set_window((bytes as u64).clamp(least, Window::MAX.max(least)));
                    }
                }
                Target::Window => {
                    let segment = f.segment();
                    let before = self.window().cwnd as f64 / segment as f64;
                    let bytes = (law.apply(before, number) * segment as f64).min(most * srtt(f) / 8.0);
                    let least = segment.max((law.bounds[0] * segment as f64) as u64);
                    self.set_window((bytes as u64).clamp(least, Window::MAX.max(least)));
                }
            }
            self.before_timeout = None;
        }
    }

    /// The most that an action may set now, bit/s.
    fn most(&self, f: &Flight) -> f64 {
        match self.agent.headroom {
            None => f64::INFINITY,
            Some(headroom) => (headroom * self.monitor.max_throughput()).max(first_rate(f)),
        }
    }

    fn set_window(&mut self, cwnd: u64) {
        match &mut self.beneath {
            Some(cc) => {
                let ssthresh = cc.window().ssthresh;
                cc.take_over(Window { cwnd, ssthresh });
            }
            None => self.window = Window { cwnd, ssthresh: cwnd },
        }
    }

    fn beneath_needs(&self) -> Needs {
        self.beneath.as_ref().map_or_else(Needs::default, |cc| cc.needs())
    }
}

impl CongestionControl for Learner {
    fn name(&self) -> &'static str {
        if self.is_external() { "external" } else { "policy" }
    }

    fn window(&self) -> Window {
        self.beneath.as_ref().map_or(self.window, |cc| cc.window())
    }

    fn needs(&self) -> Needs {
        let own = Needs { arrivals: true, delivery_rate: true, departures: true, ..Needs::default() };
        match &self.beneath {
            Some(cc) => Needs { whole_control: cc.needs().whole_control, ecn: cc.needs().ecn, ..own },
            None => Needs { whole_control: true, ..own },
        }
    }

    fn pacing_rate(&self, f: &Flight) -> Option<Rate> {
        match &self.beneath {
            Some(cc) => cc.pacing_rate(f),
            None => Rate::from_bps(self.rate()?.clamp(1.0, Rate::MAX.as_bps() as f64) as u64),
        }
    }

    fn on_established(&mut self, f: &Flight) {
        self.is_open = true;
        self.monitor = Monitor::new(f.now);
        let cwnd = f.initial_window.clamp(f.segment(), Window::MAX.max(f.segment()));
        self.window = Window { cwnd, ssthresh: Window::INFINITE };
        if let Some(&Law { bounds: [least, most], .. }) = self.agent.law(Target::Rate) {
            self.rate = first_rate(f).clamp(least, most);
        }
        (self.before_timeout, self.is_due) = (None, false);
        if let Some(cc) = &mut self.beneath {
            cc.on_established(f);
        }
    }

    fn take_over(&mut self, window: Window) {
        self.window = window;
        if let Some(cc) = &mut self.beneath {
            cc.take_over(window);
        }
    }

    fn on_ack(&mut self, f: &Flight, ack: &Ack) -> Verdict {
        if let Some(rate) = &ack.rate {
            self.monitor.rate(rate);
        }
        let rate = ack.rate.filter(|_| self.beneath_needs().delivery_rate);
        match &mut self.beneath {
            Some(cc) => cc.on_ack(f, &Ack { rate, ..*ack }),
            None => Verdict::Continue,
        }
    }

    fn on_signal(&mut self, f: &Flight, signal: Signal) {
        if let Signal::Timeout { .. } = signal {
            self.monitor.timed_out();
        }
        if let Some(cc) = &mut self.beneath {
            return cc.on_signal(f, signal);
        }
        match signal {
            Signal::Loss | Signal::Ecn | Signal::RecoveryEnd | Signal::CountedAcks(_) | Signal::IdleRestart => {}
            Signal::Timeout { kept, .. } => {
                self.before_timeout.get_or_insert(self.window);
                let left = kept.saturating_add(f.segment());
                self.window.cwnd = self.window.cwnd.min(left);
            }
            Signal::Spurious => self.window = self.before_timeout.take().unwrap_or(self.window),
            Signal::Resume { cwnd, .. } => self.window.cwnd = self.window.cwnd.min(cwnd.max(f.segment())),
        }
    }

    fn on_arrival(&mut self, f: &Flight, arrival: &Arrival) {
        self.monitor.arrival(arrival);
        self.is_due |= match self.agent.decides {
            Decides::Ack => arrival.delivered > 0,
            Decides::Round => arrival.round.is_some(),
            _ => false,
        };
        if let Some(rtt) = f.latest_rtt.filter(|_| arrival.rtt.is_some()) {
            self.monitor.rtt(rtt);
        }
        if self.beneath_needs().arrivals
            && let Some(cc) = &mut self.beneath
        {
            cc.on_arrival(f, arrival);
        }
    }

    fn on_sample(&mut self, f: &Flight, rtt: Span, cwnd: u64) {
        if let Some(cc) = &mut self.beneath {
            cc.on_sample(f, rtt, cwnd);
        }
    }

    fn on_ecn(&mut self, feedback: EcnFeedback) {
        if let Some(cc) = &mut self.beneath {
            cc.on_ecn(feedback);
        }
    }

    fn on_lost(&mut self, f: &Flight, lost: &Lost) {
        self.monitor.lost(lost.bytes);
        if self.beneath_needs().delivery_rate
            && let Some(cc) = &mut self.beneath
        {
            cc.on_lost(f, lost);
        }
    }

    fn on_sent(&mut self, f: &Flight, sent: &Sent) {
        self.monitor.sent(sent.bytes);
        if (self.beneath_needs().departures || f.snd_una == f.snd_nxt)
            && let Some(cc) = &mut self.beneath
        {
            cc.on_sent(f, sent);
        }
    }

    fn inspect(&self) -> Inspection<'_> {
        self.beneath.as_ref().map_or_else(Inspection::default, |cc| cc.inspect())
    }
}

#[cfg(test)]
mod tests;
