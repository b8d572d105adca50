//! A learner's observations, the times of its decisions, and the effects of its actions: the same
//! in training and in use.

use std::sync::Arc;

use ackclock_units::Span;

use super::feature::{Feature, MAX_LOOK_BACK, Measure};
use super::law::{Law, Map, Target};
use super::network::{Network, ShapeError};

/// When a learner decides.
#[derive(Clone, Copy, Debug, PartialEq)]
pub enum Decides {
    /// At all multiples of a span of time, beginning with the first one at which the connection is
    /// open.
    Every(Span),
    /// After this many smoothed round-trip times, or a span of time if that is longer.
    RoundTripTimes(f64, Span),
    /// When a round trip has ended: data sent after the last decision is acknowledged.
    Round,
    /// A decision after each ACK that delivers something.
    Ack,
}

impl Decides {
    /// Time until the next decision by the clock; `None` if ACKs determine it.
    pub fn pause(self, srtt: Option<Span>) -> Option<Span> {
        let pause = match self {
            Decides::Every(span) => span,
            Decides::RoundTripTimes(factor, least) => {
                let nanos = srtt.unwrap_or(Span::ZERO).as_nanos() as f64 * factor;
                Span::from_nanos(nanos as u64).max(least)
            }
            Decides::Round | Decides::Ack => return None,
        };
        Some(pause.max(Span::from_nanos(1)))
    }
}

/// A learner: its observations, the times of its decisions, and the effects of its actions.
#[derive(Clone, Debug, PartialEq)]
pub struct Agent {
    /// The number among several of an environment, from 0.
    pub number: usize,
    /// When it decides.
    pub decides: Decides,
    /// The effects of the numbers of an action: one law for each, at most one for the rate and one
    /// for the window.
    pub laws: Vec<Law>,
    /// The limit of an action, in multiples of the achieved throughput: the rate is no more than so
    /// many times the highest throughput of any interval so far, the window no more than that sends
    /// in a smoothed RTT. Before anything got through, no more than the initial window. `None`:
    /// only the bounds of the laws.
    pub headroom: Option<f64>,
    /// The observed features of an interval.
    pub observes: Vec<Feature>,
    /// Number of intervals of an observation, the newest last.
    pub history: usize,
    /// The name of the controller whose window the actions change, and which reacts to ACKs and
    /// losses between them; without one, nothing changes the window but actions and timeouts.
    pub beneath: Option<&'static str>,
}

/// The most features of an interval, and the most intervals of an observation.
const MOST: usize = 10_000;

impl Agent {
    /// The problem of an invalid agent, in words.
    pub fn problem(&self) -> Option<String> {
        let positive = |value: f64| value.is_finite() && value > 0.0;
        if let Some(problem) = self.laws.iter().find_map(Law::problem) {
            return Some(problem);
        }
        match *self.laws {
            [_] => {}
            [first, second] if first.target != second.target => {}
            _ => return Some("action: expected one number, or one for the rate and one for the window".to_owned()),
        }
        if self.headroom.is_some_and(|headroom| !headroom.is_finite() || headroom <= 1.0) {
            return Some("headroom: expected a factor above 1".to_owned());
        }
        if self.beneath.is_some() && self.law(Target::Rate).is_some() {
            return Some("beneath: a controller beneath has a window, and the action is a rate".to_owned());
        }
        match self.decides {
            Decides::Every(span) if span == Span::ZERO => return Some("decisions: expected a time above 0".to_owned()),
            Decides::RoundTripTimes(factor, least) if !positive(factor) || least == Span::ZERO => {
                return Some("decisions: expected a factor and a least time above 0".to_owned());
            }
            _ => {}
        }
        if self.observes.is_empty() || self.observes.len() > MOST || !(1..=MOST).contains(&self.history) {
            return Some(format!("observations: expected 1 to {MOST} features and a history of 1 to {MOST}"));
        }
        self.observes.iter().find_map(|feature| problem_of(feature.measure.name(), feature))
    }

    /// The law of what sets the rate or the window, if an action does.
    pub fn law(&self, target: Target) -> Option<&Law> {
        self.laws.iter().find(|law| law.target == target)
    }

    /// The observation before the first interval: as if all measures were zero.
    pub fn blank(&self) -> Vec<f32> {
        let zeros = self.observes.iter().map(|feature| feature.tell(0.0) as f32);
        std::iter::repeat_n(zeros, self.history).flatten().collect()
    }

    /// Number of values in an observation.
    pub fn width(&self) -> usize {
        self.observes.len() * self.history
    }
}

/// The problem of an invalid feature of this name.
pub fn problem_of<M>(name: &str, feature: &Feature<M>) -> Option<String> {
    let [least, most] = feature.limits;
    if feature.over.is_some_and(|(intervals, _)| !(1..=MAX_LOOK_BACK).contains(&intervals)) {
        return Some(format!("`{name}`: expected to look back 1 to {MAX_LOOK_BACK} intervals"));
    }
    if !(feature.scale.is_finite()
        && feature.offset.is_finite()
        && least.is_finite()
        && most.is_finite()
        && least < most)
    {
        return Some(format!("`{name}`: expected a finite scale and offset, and limits in order"));
    }
    None
}

impl Default for Agent {
    /// Rates by steps of 2.5 % per action of 1, twice in a smoothed round-trip time, with the
    /// features of Aurora.
    fn default() -> Agent {
        Agent {
            number: 0,
            decides: Decides::RoundTripTimes(0.5, Span::from_millis(1)),
            laws: vec![Law {
                target: Target::Rate,
                map: Map::Step { delta: 0.025 },
                limit: 1.0,
                bounds: [10e3, 100e9],
            }],
            headroom: None,
            observes: [Measure::LatencyInflation, Measure::LatencyRatio, Measure::SendRatio].map(Feature::plain).into(),
            history: 10,
            beneath: None,
        }
    }
}

/// A learned policy: what it sees, and what it does then.
#[derive(Clone, Debug, PartialEq)]
pub struct Policy {
    agent: Arc<Agent>,
    network: Network,
}

impl Policy {
    /// A policy of this network.
    ///
    /// # Errors
    /// Its inputs are not the numbers of an observation, or its outputs not those of an action.
    pub fn new(agent: Arc<Agent>, network: Network) -> Result<Policy, ShapeError> {
        let (expected, found) = (agent.width(), network.inputs());
        if expected != found {
            return Err(ShapeError(format!("layer 0 has {found} inputs, and an observation has {expected} numbers")));
        }
        let (expected, found) = (agent.laws.len(), network.outputs());
        if expected != found {
            let of = if expected == 1 { "the action" } else { "the numbers of an action" };
            return Err(ShapeError(format!("the last layer has {found} outputs, expected {expected}: {of}")));
        }
        Ok(Policy { agent, network })
    }

    /// The learner's observations, and the effects of its actions.
    pub fn agent(&self) -> &Arc<Agent> {
        &self.agent
    }

    /// The function from observations to actions.
    pub fn network(&self) -> &Network {
        &self.network
    }
}
