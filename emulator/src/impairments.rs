//! What happens to a packet on the wire besides delay: loss, duplication, jitter.

use ackclock_units::{Random, Span, Time};

/// Losses that are not a queue's decision.
#[derive(Clone, Debug, Default, PartialEq)]
pub enum Loss {
    /// None.
    #[default]
    None,
    /// Each packet independently, with this probability.
    Iid(f64),
    /// The packets with these numbers, counted from 1 in order of transmission, in ascending order.
    List(Vec<u64>),
}

/// The impairments of one link direction.
#[derive(Clone, Debug, Default, PartialEq)]
pub struct Impairments {
    /// Losses.
    pub loss: Loss,
    /// Probability that a packet arrives twice.
    pub duplicate: f64,
    /// Additional delay, uniform from 0 to this.
    pub jitter: Span,
    /// Whether jitter may change the order; otherwise a packet waits for the one before it.
    pub reorder: bool,
}

/// Draws the fate of each packet from a stream of its own.
#[derive(Debug)]
pub(crate) struct Fate {
    impairments: Impairments,
    random: Random,
    /// Packets seen.
    number: u64,
    /// How many entries of a list of losses are behind.
    passed: usize,
    /// Latest arrival so far: the one to stay behind when order is kept.
    latest: Time,
    is_plain: bool,
}

impl Fate {
    pub(crate) fn new(impairments: Impairments, random: Random) -> Fate {
        let is_plain = impairments == Impairments::default();
        Fate { impairments, random, number: 0, passed: 0, latest: Time::ZERO, is_plain }
    }

    /// Whether anything can happen at all.
    pub(crate) fn is_plain(&self) -> bool {
        self.is_plain
    }

    /// Whether packets can overtake each other.
    pub(crate) fn may_reorder(&self) -> bool {
        self.impairments.reorder && self.impairments.jitter > Span::ZERO
    }

    /// How many copies of the next packet arrive: 0, 1 or 2.
    pub(crate) fn copies(&mut self) -> u32 {
        self.number += 1;
        let lost = match &self.impairments.loss {
            Loss::None => false,
            Loss::Iid(p) => self.random.chance(*p),
            Loss::List(numbers) => {
                // Entries that are no later than the one before say nothing new.
                while numbers.get(self.passed).is_some_and(|&number| number < self.number) {
                    self.passed += 1;
                }
                numbers.get(self.passed) == Some(&self.number)
            }
        };
        if lost {
            return 0;
        }
        1 + u32::from(self.impairments.duplicate > 0.0 && self.random.chance(self.impairments.duplicate))
    }

    /// When a packet that would arrive at `arrival` does.
    pub(crate) fn arrival(&mut self, arrival: Time) -> Time {
        if self.impairments.jitter == Span::ZERO {
            return arrival;
        }
        let extra = self.random.below(self.impairments.jitter.as_nanos().saturating_add(1));
        let at = arrival + Span::from_nanos(extra);
        if self.impairments.reorder {
            return at;
        }
        self.latest = self.latest.max(at);
        self.latest
    }
}
