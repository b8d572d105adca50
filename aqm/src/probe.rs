//! The variables of a law that can be observed.

use ackclock_units::Span;

/// The variables of a law at one moment; `None` where the law has no such variable.
#[derive(Clone, Copy, Debug, Default, PartialEq)]
pub struct Probe {
    /// Drop or mark probability in [0, 1].
    pub probability: Option<f64>,
    /// The average queue as the law computes it, in bytes (RED).
    pub average: Option<f64>,
    /// The queueing delay as the law estimates it.
    pub delay: Option<Span>,
    /// The law is in its dropping state (CoDel).
    pub dropping: Option<bool>,
}

/// A variable of a law with its value.
#[derive(Clone, Copy, Debug, PartialEq)]
pub enum Variable {
    /// A probability in [0, 1].
    Probability(f64),
    /// Bytes, where a law has fractions of them.
    Bytes(f64),
    /// A time.
    Time(Span),
    /// A state that the law is in or not.
    Flag(bool),
    /// A number of something, or the number that something has.
    Count(u64),
}

impl Probe {
    /// Calls `see` for each variable that there is.
    pub fn variables(&self, see: &mut dyn FnMut(&'static str, Variable)) {
        let &Probe { probability, average, delay, dropping } = self;
        let variables = [
            ("probability", probability.map(Variable::Probability)),
            ("average", average.map(Variable::Bytes)),
            ("delay", delay.map(Variable::Time)),
            ("dropping", dropping.map(Variable::Flag)),
        ];
        for (name, value) in variables {
            if let Some(value) = value {
                see(name, value);
            }
        }
    }
}
