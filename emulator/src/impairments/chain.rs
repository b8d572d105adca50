//! Losses in bursts: the Markov chains of netem.
//!
//! # Source
//! Linux `net/sched/sch_netem.c`, `loss_gilb_ell` and `loss_4state`; Salsano, Ludovici, Ordine and
//! Giuzzi, "Definition of a general and intuitive loss model for packet networks and its
//! implementation in the Netem module in the Linux kernel", 2012.
//!
//! # Departures
//! - Probabilities are not rounded to 32 bits, and a draw that is equal to a threshold is not a
//!   case of its own (in Linux until 2026 such a packet changed no state of the four and was
//!   delivered).
//! - The chains advance when a packet has been transmitted, netem's when it is enqueued.

use ackclock_units::Random;

/// A chain of two states, good and bad, each with its own probability of loss.
///
/// In the long run `p / (p + r)` of the packets find the chain in the bad state.
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct GilbertElliott {
    /// Probability of the transition from good to bad, per packet.
    pub p: f64,
    /// Probability of the transition from bad to good.
    pub r: f64,
    /// Probability of loss in the bad state, netem's `1-h`.
    pub bad: f64,
    /// Probability of loss in the good state, netem's `1-k`.
    pub good: f64,
}

/// The chain of four states of the "general and intuitive" model: 1, delivered in a gap; 2,
/// delivered in a burst; 3, lost in a burst; 4, lost alone in a gap, after which a packet is always
/// delivered. A packet has the fate of the state that it leads to.
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct Markov {
    /// Probability that a burst begins.
    pub p13: f64,
    /// Probability that a burst ends; the packet is delivered.
    pub p31: f64,
    /// Probability that a packet is delivered within a burst.
    pub p32: f64,
    /// Probability that the losses of a burst go on.
    pub p23: f64,
    /// Probability of a lone loss. `p13 + p14` and `p31 + p32` are at most 1.
    pub p14: f64,
}

/// The state of a chain.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub(super) enum State {
    /// Good; state 1.
    #[default]
    Gap,
    /// Bad; state 3.
    Burst,
    /// State 2.
    Delivered,
    /// State 4.
    Alone,
}

impl GilbertElliott {
    /// Returns `true` if the next packet is lost. The state changes before the loss is drawn, but
    /// the packet has the probability of the state in which it found the chain, as in netem.
    pub(super) fn loses(&self, state: &mut State, random: &mut Random) -> bool {
        let loss = self.probability(*state);
        *state = match *state {
            State::Gap if random.chance(self.p) => State::Burst,
            State::Gap => State::Gap,
            _ if random.chance(self.r) => State::Gap,
            _ => State::Burst,
        };
        random.chance(loss)
    }

    /// The probability that the next packet is lost.
    pub(super) fn probability(&self, state: State) -> f64 {
        if state == State::Gap { self.good } else { self.bad }
    }
}

impl Markov {
    /// Returns `true` if the next packet is lost.
    pub(super) fn loses(&self, state: &mut State, random: &mut Random) -> bool {
        let draw = random.unit();
        *state = match *state {
            State::Gap if draw < self.p14 => State::Alone,
            State::Gap if draw < self.p14 + self.p13 => State::Burst,
            State::Burst if draw < self.p32 => State::Delivered,
            State::Burst if draw >= self.p32 + self.p31 => State::Burst,
            State::Delivered if draw < self.p23 => State::Burst,
            State::Delivered => State::Delivered,
            State::Gap | State::Burst | State::Alone => State::Gap,
        };
        matches!(*state, State::Burst | State::Alone)
    }

    /// The probability that the next packet is lost.
    pub(super) fn probability(&self, state: State) -> f64 {
        match state {
            State::Gap => self.p13 + self.p14,
            State::Burst => 1.0 - self.p31 - self.p32,
            State::Delivered => self.p23,
            State::Alone => 0.0,
        }
        .clamp(0.0, 1.0)
    }
}

#[cfg(test)]
mod tests;
