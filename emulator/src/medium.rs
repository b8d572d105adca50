//! A medium that the two directions of a link share, such as Wi-Fi: one of them transmits at a
//! time.
//!
//! The medium goes from one transmit opportunity to the next. When it is free and packets wait, a
//! direction is chosen: the one that has packets, or either with the same probability. Contention
//! follows, a time drawn from a distribution, which stands for everything but data: inter-frame
//! spaces, backoff, preambles, block acknowledgments. Then the direction sends an aggregate of the
//! packets that wait at that time, one after another at its rate: at most so many, and no more than
//! fit into the longest airtime, but always one. The aggregate is received as a whole: its packets
//! propagate from its end on. What arrives meanwhile waits for another opportunity.
//!
//! With aggregates of N packets of L bits at rate R and contention of C on average, a direction
//! alone carries N L / (N L / R + C); of two that always have packets, each has half of the
//! opportunities.
//!
//! # Source
//! IEEE 802.11-2020, 10.22 (EDCA transmit opportunities) and 10.12 (A-MPDU); Bianchi, "Performance
//! Analysis of the IEEE 802.11 Distributed Coordination Function", JSAC 2000, for the long-term
//! fairness among stations; Høiland-Jørgensen et al., "Ending the Anomaly", USENIX ATC 2017, for
//! throughput as a function of the size of aggregates.
//!
//! # Departures
//! - There are two stations, each with one access category. They do not collide: contention is
//!   drawn once for an opportunity, whoever contends, and no rest is carried over to the next one;
//!   its backoff is continuous, not a number of slots, and its window does not double.
//! - Frames are neither lost nor sent again by the medium; the link's impairments lose packets
//!   after their transmission. Rates do not adapt.
//! - Whether another packet fits is decided by the one that the queue would give next. If the queue
//!   drops that one, a longer one may take its place.

use ackclock_packet::Packet;
use ackclock_traffic::Distribution;
use ackclock_units::{Random, Span, Time};

use crate::link::{Link, LinkSink};

/// The configuration of a shared medium.
#[derive(Clone, Debug, PartialEq)]
pub struct MediumConfig {
    /// The most packets of an aggregate, at least 1.
    pub aggregate_packets: u32,
    /// The longest airtime of an aggregate of more than one packet.
    pub aggregate_time: Span,
    /// Times of contention, in nanoseconds.
    pub contention: Distribution,
}

/// A medium between two [`Link::on_medium`]. The caller drives all three: before it calls one of
/// the links at a time, it lets the medium take every [`Medium::step`] that is due by then, and
/// after a packet was offered it lets the links [`Medium::contend`].
#[derive(Debug)]
pub struct Medium {
    config: MediumConfig,
    random: Random,
    state: State,
    /// The packets in the air.
    aggregate: Vec<Packet>,
    /// Before these times the queues give nothing.
    held: [Time; 2],
}

/// The state of the medium.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum State {
    Free,
    /// The opportunity of a link begins then.
    Contention(usize, Time),
    /// A link transmits until then.
    Transmission(usize, Time),
}

impl Medium {
    /// A free medium.
    pub fn new(config: MediumConfig, random: Random) -> Medium {
        let aggregate = Vec::with_capacity(config.aggregate_packets.min(1024) as usize);
        Medium { config, random, state: State::Free, aggregate, held: [Time::ZERO; 2] }
    }

    /// The link, 0 or 1, that takes the next step, and its time; [`Time::NEVER`] if there is none.
    pub fn next(&self) -> (usize, Time) {
        match self.state {
            State::Contention(link, at) | State::Transmission(link, at) => (link, at),
            State::Free => {
                let later = |link: usize| if self.held[link] > Time::ZERO { self.held[link] } else { Time::NEVER };
                if later(1) < later(0) { (1, later(1)) } else { (0, later(0)) }
            }
        }
    }

    /// The next step of this link at its time: an opportunity begins or ends, or its queue no
    /// longer holds packets back. Then both links contend.
    pub fn step(&mut self, link: &mut Link, events: &mut impl LinkSink) {
        match self.state {
            State::Contention(number, start) => {
                let MediumConfig { aggregate_packets, aggregate_time, .. } = self.config;
                let (end, held) =
                    link.begin_aggregate(start, aggregate_packets, aggregate_time, &mut self.aggregate, events);
                self.held[number] = held;
                self.state = match self.aggregate.is_empty() {
                    // The queue has dropped all of them, or gives none yet.
                    true => State::Free,
                    false => State::Transmission(number, end),
                };
            }
            State::Transmission(_, end) => {
                link.end_aggregate(end, &mut self.aggregate, events);
                self.state = State::Free;
            }
            State::Free => {
                let (number, _) = self.next();
                self.held[number] = Time::ZERO;
            }
        }
    }

    /// Handles a packet that was offered to a link: its queue may now release packets that it held
    /// back.
    pub fn offered(&mut self, link: usize) {
        self.held[link] = Time::ZERO;
    }

    /// Begins contention if the medium is free and packets wait.
    pub fn contend(&mut self, now: Time, links: [&Link; 2]) {
        if self.state != State::Free {
            return;
        }
        let [first, second] = [0, 1].map(|n| links[n].is_waiting() && self.held[n] <= now);
        let link = match (first, second) {
            (false, false) => return,
            (true, true) => self.random.below(2) as usize,
            (_, second) => usize::from(second),
        };
        let start = now + self.config.contention.draw_span(&mut self.random);
        self.state = State::Contention(link, start);
    }
}

#[cfg(test)]
mod tests;
