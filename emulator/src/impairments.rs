//! Impairments of the wire other than delay: loss, duplication, bit errors, jitter,
//! reordering.

use ackclock_units::{Random, Span, Time};

use self::chain::State;
pub use self::chain::{GilbertElliott, Markov};
pub(crate) use self::delay::Correlated;
pub use self::delay::JitterDistribution;
pub use self::table::JitterTable;

mod chain;
mod delay;
mod table;

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
    /// Losses in bursts, by a chain of two states.
    GilbertElliott(GilbertElliott),
    /// Losses in bursts, by a chain of four states.
    Markov(Markov),
}

/// The impairments of one link direction.
#[derive(Clone, Debug, Default, PartialEq)]
pub struct Impairments {
    /// Losses.
    pub loss: Loss,
    /// Probability that a packet arrives twice.
    pub duplicate: f64,
    /// Probability that a copy of a packet has a bit error, which its receiver finds.
    pub corrupt: f64,
    /// Random delay: uniform from 0 to this, or a deviation around the delay.
    pub jitter: Span,
    /// The distribution of jitter.
    pub jitter_distribution: JitterDistribution,
    /// A table in place of the distribution.
    pub jitter_table: Option<JitterTable>,
    /// The correlation of a packet's jitter with that of the packet before, from 0 to 1.
    pub jitter_correlation: f64,
    /// The reordering of packets.
    pub reorder: Reorder,
}

/// The reordering of packets.
#[derive(Clone, Copy, Debug, Default, PartialEq)]
pub enum Reorder {
    /// None: with jitter a packet waits for the previous one.
    #[default]
    Never,
    /// A packet overtakes another whose jitter is larger.
    ByJitter,
    /// Some packets are held back until others have passed.
    HoldBack(HoldBack),
}

/// Packets that fall behind by a number of packets, independent of the rate: the extent of
/// reordering (RFC 4737 section 4.2).
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct HoldBack {
    /// Probability that a packet is held back.
    pub probability: f64,
    /// The packet continues right behind the n-th packet that passes it; packets that are held back
    /// themselves do not count. 0 holds nothing back.
    pub extent: u32,
    /// The packet continues after this time at the latest, however few have passed.
    pub timeout: Span,
}

impl Default for HoldBack {
    /// One packet in a hundred is overtaken by three others: just beyond what a duplicate threshold
    /// of three tolerates.
    fn default() -> HoldBack {
        HoldBack { probability: 0.01, extent: 3, timeout: Span::from_millis(100) }
    }
}

/// Draws the fate of each packet. Each impairment has its own random stream: none of them changes
/// what the others do.
#[derive(Debug)]
pub(crate) struct WireFates {
    impairments: Impairments,
    losing: Random,
    doubling: Random,
    corrupting: Random,
    delaying: Correlated,
    holding: Random,
    /// Packets seen.
    number: u64,
    /// Entries of a list of losses that are in the past.
    passed: usize,
    /// The state of a chain of losses, ...
    state: State,
    /// ... and the probability with which the last packet was lost, where it was drawn.
    probability: Option<f64>,
    /// Latest arrival so far: the one to stay behind when order is kept.
    latest: Time,
    is_plain: bool,
    /// The delay changes: a packet may be due before the one sent before it.
    delay_changes: bool,
}

impl Impairments {
    /// The least that a packet takes from the end of its transmission to its arrival, where the
    /// propagation delay is `delay`.
    pub fn least_delay(&self, delay: Span) -> Span {
        self.least_delay_with(delay, self.jitter)
    }

    /// The least delay with another jitter.
    pub fn least_delay_with(&self, delay: Span, jitter: Span) -> Span {
        match &self.jitter_table {
            Some(table) => delay::least(Some(table.entries()), delay, jitter),
            None => self.jitter_distribution.least(delay, jitter),
        }
    }
}

impl WireFates {
    pub(crate) fn new(impairments: Impairments, random: Random) -> WireFates {
        let correlation = impairments.jitter_correlation;
        let is_plain = impairments == Impairments::default();
        let key = random.clone().bits();
        let stream = |name| Random::for_component(key, 0, name);
        WireFates {
            impairments,
            losing: random,
            doubling: stream("duplicate"),
            corrupting: stream("corrupt"),
            delaying: Correlated::new(stream("jitter"), correlation),
            holding: stream("reorder"),
            number: 0,
            passed: 0,
            state: State::default(),
            probability: None,
            latest: Time::ZERO,
            is_plain,
            delay_changes: false,
        }
    }

    /// The impairments of a link that changes.
    pub(crate) fn changing(self) -> WireFates {
        WireFates { is_plain: false, delay_changes: true, ..self }
    }

    /// Begins to change the link; the last of the packets before arrives at `latest`, if it has not
    /// arrived.
    pub(crate) fn begin_to_change(&mut self, latest: Time) {
        (self.is_plain, self.delay_changes) = (false, true);
        self.latest = self.latest.max(latest);
    }

    /// The impairments.
    pub(crate) fn impairments(&self) -> &Impairments {
        &self.impairments
    }

    /// Packets are lost independently with this probability from now on.
    pub(crate) fn set_loss(&mut self, probability: f64) {
        self.impairments.loss = Loss::Iid(probability);
    }

    /// Packets have this jitter from now on, on a link that changes.
    pub(crate) fn set_jitter(&mut self, jitter: Span) {
        self.impairments.jitter = jitter;
    }

    /// Returns `true` if there are no impairments.
    pub(crate) fn is_plain(&self) -> bool {
        self.is_plain
    }

    /// Returns `true` if packets can overtake each other.
    pub(crate) fn may_reorder(&self) -> bool {
        let varies = self.impairments.jitter > Span::ZERO || self.delay_changes;
        self.impairments.reorder == Reorder::ByJitter && varies
    }

    /// Decides whether to hold the next packet back; `None` if not.
    pub(crate) fn hold_back(&mut self) -> Option<HoldBack> {
        let Reorder::HoldBack(hold) = self.impairments.reorder else { return None };
        let held = hold.extent > 0 && self.holding.chance(hold.probability);
        held.then_some(hold)
    }

    /// The probability with which the last packet was lost on the wire, where it was drawn.
    pub(crate) fn loss_probability(&self) -> Option<f64> {
        self.probability
    }

    /// The number of copies of the next packet that arrive: 0, 1 or 2.
    pub(crate) fn copies(&mut self) -> u32 {
        self.number += 1;
        let lost = match &self.impairments.loss {
            Loss::None => false,
            Loss::Iid(p) => {
                self.probability = Some(*p);
                self.losing.chance(*p)
            }
            Loss::GilbertElliott(chain) => {
                self.probability = Some(chain.probability(self.state));
                chain.loses(&mut self.state, &mut self.losing)
            }
            Loss::Markov(chain) => {
                self.probability = Some(chain.probability(self.state));
                chain.loses(&mut self.state, &mut self.losing)
            }
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
        1 + u32::from(self.impairments.duplicate > 0.0 && self.doubling.chance(self.impairments.duplicate))
    }

    /// Returns `true` if the next copy of a packet is corrupted.
    pub(crate) fn corrupts(&mut self) -> bool {
        self.impairments.corrupt > 0.0 && self.corrupting.chance(self.impairments.corrupt)
    }

    /// The arrival time of a packet that was sent at `sent` and takes `delay`.
    pub(crate) fn arrival(&mut self, sent: Time, delay: Span) -> Time {
        let arrival = sent + delay;
        let Impairments { jitter, jitter_distribution, ref jitter_table, reorder, .. } = self.impairments;
        if jitter == Span::ZERO && !self.delay_changes {
            // Later than those before it, as long as the delay stays.
            self.latest = arrival;
            return arrival;
        }
        let at = if jitter == Span::ZERO {
            arrival
        } else if let Some(table) = jitter_table {
            self.delaying.delay(sent, arrival, jitter, Some(table.entries()))
        } else if jitter_distribution == JitterDistribution::Uniform && self.delaying.is_plain() {
            let extra = self.delaying.random().below(jitter.as_nanos().saturating_add(1));
            arrival + Span::from_nanos(extra)
        } else {
            self.delaying.delay(sent, arrival, jitter, jitter_distribution.table())
        };
        if reorder == Reorder::ByJitter {
            return at;
        }
        self.latest = self.latest.max(at);
        self.latest
    }
}
