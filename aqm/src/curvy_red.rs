//! DualQ Coupled Curvy RED: a queue for scalable traffic (L4S) next to one for classic traffic,
//! coupled by the average delay of the classic one.
//!
//! It measures how long classic packets waited, and smooths that. The excess of the average over
//! `min_th`, divided by a range, is compared with random numbers: classic packets are dropped or
//! marked if it exceeds the larger of two (so with the square of the ratio), L4S packets are marked
//! if k times the ratio exceeds one, and always once they waited longer than `t`. The L4S queue goes
//! first unless a classic packet has waited `tshift` longer.
//!
//! | key | RFC 9332 | default in figure 9 |
//! |---|---|---|
//! | `limit` | limit | 250 ms at the highest rate of the link |
//! | `k_prime` | k', the coupling factor k = 2^k' | 1 |
//! | `tshift` | tshift | 50 ms |
//! | `classic_weight` | note 2, weight of the classic queue | 1/16 |
//! | `g_c` | g_C, gamma = 2^-g_C | 5 |
//! | `s_c` | S_C, range_C = 2^S_C s; S_L = S_C - k', range_L = 2^S_L s | -1 |
//! | `min_th` | minTh | 500 ms |
//! | `u` | cUrviness U | 1 |
//! | `t` | T | 1 ms |
//! | `range` | note 3, range of figure 5: a ramp from T on | 0: a step |
//! | `fall_at_once` | note 4, min(Q_C, cq.time()) | no |
//! | `overload` | appendix A.2 | see below |
//! | `integer` | figure 11 | no |
//!
//! At the default `min_th` the classic queue stands at hundreds of milliseconds and L4S packets wait
//! for it by `tshift`; with 0, figure 11's, both share the link (`scenarios/l4s`).
//!
//! # Source
//! RFC 9332, appendix B, and of appendix A the queue limit (figure 3), the ramp (figure 5) and what
//! happens on overload (A.2), to which appendix B refers.
//!
//! # Departures
//! - `limit` is a number of bytes, as a queue does not know the rate of its link; the default is
//!   250 ms at 1 Gbit/s. A packet above `mtu` needs room for its own length.
//! - lq.time() is how long the packet taken out has waited (appendix A.1, note a), cq.time() in line
//!   9a how long the packet behind it has (zero if there is none), as the walk-through says.
//! - With `overload`, which is on because section 2.5.1.1 requires it, an L4S packet that waited
//!   longer than the head of the classic queue moves the average too: it stands for line 2a of
//!   figure 8. Without it the average stays where the last classic packet left it, as in figure 10.
//! - The last packet is not dropped, but marked if it can be: the link does not fall idle.
//! - With `integer`, `min_th` is subtracted as in figure 10; figure 11 leaves it out.

use std::any::Any;
use std::collections::VecDeque;

use ackclock_units::parameter::Domain;
use ackclock_units::{Ecn, Random, Span, Time, configuration};

use crate::change::{parameters, valid};
use crate::discipline::{Discipline, MAX, MTU};
use crate::{Books, ChangeError, Dequeue, DropReason, Drops, Entry, Probe, QueueDisc, Queued, Variable};

const SOURCE: &str = "RFC 9332 appendix B";
const SIXTEENTH: f64 = 1.0 / 16.0;

configuration! {
/// Parameters of a Curvy RED queue.
#[derive(Clone, Debug, PartialEq)]
pub struct CurvyRedConfig {
    /// The most bytes that wait in both queues together, with room for one `mtu`. Default: 250 ms at
    /// 1 Gbit/s.
    pub limit: u64 = 31_250_000 => (Domain::Bytes(1, MAX), SOURCE);
    /// The coupling factor as a power of two. Default: 1, a factor of 2.
    pub k_prime: u32 = 1 => (Domain::Whole(0, 8, ""), SOURCE);
    /// How much longer than the head of the L4S queue that of the classic queue waits before it goes
    /// first. Without it the queues take turns by `classic_weight`. Default: 50 ms.
    pub tshift: Option<Span> = Some(Span::from_millis(50)) =>
        (Domain::OrOff(&Domain::Time { positive: false }), SOURCE);
    /// The classic queue's part of the link while both wait, without `tshift`. Default: 1/16.
    pub classic_weight: f64 = SIXTEENTH => (Domain::Number(0.0, 1.0, ""), "RFC 9332 appendix B, note 2");
    /// Weight of a delay in the average, as a power of one half. Default: 5, a weight of 1/32.
    pub g_c: u32 = 5 => (Domain::Whole(0, 16, ""), SOURCE);
    /// The range of delays over which the classic probability rises to 1, as a power of two in
    /// seconds; a whole number. Default: -1, half a second.
    pub s_c: f64 = -1.0 => (Domain::Number(-16.0, 8.0, ""), SOURCE);
    /// The average delay of the classic queue up to which nothing is dropped, and nothing marked for
    /// it. Default: 500 ms.
    pub min_th: Span = Span::from_millis(500) => (Domain::Time { positive: false }, SOURCE);
    /// The number of random numbers for an L4S packet; a classic one has twice as many. Default: 1.
    pub u: u32 = 1 => (Domain::Whole(1, 16, ""), SOURCE);
    /// The delay above which L4S packets are marked. Default: 1 ms.
    pub t: Span = Span::from_millis(1) => (Domain::Time { positive: false }, SOURCE);
    /// The range of delays from `t` on over which the probability to mark them rises to 1. Default:
    /// 0, a step.
    pub range: Span = Span::ZERO => (Domain::Time { positive: false }, "RFC 9332 appendix B, note 3");
    /// The average falls to a smaller delay at once. Default: off.
    pub fall_at_once: bool = false => (Domain::Flag, "RFC 9332 appendix B, note 4");
    /// Once L4S packets are marked with certainty, drop packets of both queues alike. Default: on.
    pub overload: bool = true => (Domain::Flag, "RFC 9332 s2.5.1.1, appendix A.2");
    /// Compute in whole nanoseconds, with shifts: a second counts as 2^30 of them. Default: off.
    pub integer: bool = false => (Domain::Flag, "RFC 9332 appendix B.2");
    /// Bytes of the largest packet. Default: 1514, an Ethernet frame.
    pub mtu: u32 = 1514 => (MTU, "an Ethernet frame");
} problem
}

impl Discipline for CurvyRedConfig {
    fn marks(&self) -> bool {
        true
    }
}

impl CurvyRedConfig {
    /// The problem with these parameters, if there is one.
    pub fn problem(&self) -> Option<&'static str> {
        if self.limit < u64::from(self.mtu) {
            Some("limit is less than mtu, so that no packet fits")
        } else if !(0.0..=1.0).contains(&self.classic_weight) {
            Some("classic_weight is a part of 1")
        } else if self.tshift.is_some() && self.classic_weight != SIXTEENTH {
            Some("classic_weight needs tshift = false")
        } else if !(-16.0..=8.0).contains(&self.s_c) || self.s_c.fract() != 0.0 {
            Some("s_c is a power of two: a whole number from -16 to 8")
        } else if self.k_prime > 8 || self.g_c > 16 {
            Some("k_prime is at most 8, g_c at most 16")
        } else if self.u == 0 {
            Some("u must not be zero")
        } else {
            None
        }
    }
}

/// A Curvy RED queue.
#[derive(Debug)]
pub struct CurvyRed<P> {
    config: CurvyRedConfig,
    law: Law,
    /// The packet that arrived or left last belonged to the L4S queue.
    last_scalable: bool,
    /// Bytes that the L4S queue is ahead of its share; the classic queue's turn is while it is
    /// positive.
    credit: f64,
    random: Random,
    l4s: VecDeque<Entry<P>>,
    classic: VecDeque<Entry<P>>,
    books: Books,
}

/// The average and what is derived from it.
#[derive(Clone, Copy, Debug)]
struct Law {
    /// Q_C, in nanoseconds.
    average: f64,
    /// gamma.
    gamma: f64,
    min_th: f64,
    /// range_C, in nanoseconds.
    range: f64,
    /// k.
    k: f64,
}

/// The action on a packet that was taken out.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum CurvyRedDecision {
    Pass,
    Mark,
    Drop,
}

/// 2^`exponent`, up to 30 either way.
fn power(exponent: i32) -> f64 {
    let of = f64::from(1_u32 << exponent.unsigned_abs());
    if exponent < 0 { 1.0 / of } else { of }
}

impl Law {
    fn new(config: &CurvyRedConfig, average: f64) -> Law {
        // Figure 11 shifts nanoseconds by 2 to be compared with 32 random bits.
        let second = if config.integer { power(30) } else { 1e9 };
        Law {
            average,
            gamma: power(-(config.g_c as i32)),
            min_th: config.min_th.as_nanos() as f64,
            range: power(config.s_c as i32) * second,
            k: power(config.k_prime as i32),
        }
    }

    /// Moves the average for a delay (line 9a; line 9 of figure 11, whose shift rounds down).
    fn average(&mut self, config: &CurvyRedConfig, delay: Span) {
        let delay = delay.as_nanos() as f64;
        let step = self.gamma * (delay - self.average);
        self.average += if config.integer { step.floor() } else { step };
        if config.fall_at_once && delay < self.average {
            self.average = delay;
        }
    }

    /// The square root of the classic probability where `u` is 1 (line 10a).
    fn root(&self) -> f64 {
        (self.average - self.min_th) / self.range
    }

    /// The probability that is coupled to the L4S queue where `u` is 1 (line 5a).
    fn coupled(&self) -> f64 {
        self.k * self.root()
    }
}

impl<P: Queued> CurvyRed<P> {
    /// Empty queues that draw from `random`.
    ///
    /// # Panics
    /// If the parameters have a [`CurvyRedConfig::problem`].
    pub fn new(config: CurvyRedConfig, random: Random) -> CurvyRed<P> {
        if let Some(problem) = config.problem() {
            panic!("{problem}");
        }
        CurvyRed {
            law: Law::new(&config, 0.0),
            config,
            last_scalable: false,
            credit: 0.0,
            random,
            l4s: VecDeque::new(),
            classic: VecDeque::new(),
            books: Books::default(),
        }
    }

    /// Returns `true` if `p` exceeds the largest of `draws` random numbers.
    fn exceeds(&mut self, p: f64, draws: u32) -> bool {
        p > 0.0 && (0..draws).all(|_| self.random.chance(p))
    }

    /// The queue to serve next: `true` for the L4S queue, `None` if both are empty (lines 28 to 33, or
    /// the round robin of note 2).
    fn turn(&self) -> Option<bool> {
        match (self.l4s.front(), self.classic.front()) {
            (None, None) => None,
            (Some(_), None) => Some(true),
            (None, Some(_)) => Some(false),
            (Some(l4s), Some(classic)) => Some(match self.config.tshift {
                Some(tshift) => l4s.enqueued_at.since(classic.enqueued_at) <= tshift,
                None => self.credit <= 0.0,
            }),
        }
    }

    /// Takes a packet out of a queue that has one.
    fn take(&mut self, scalable: bool) -> Option<Entry<P>> {
        let entry = if scalable { self.l4s.pop_front() } else { self.classic.pop_front() }?;
        self.books.take(entry.packet.wire_len());
        Some(entry)
    }

    /// How long the head of the classic queue has waited at `now`; zero if there is none.
    fn classic_delay(&self, now: Time) -> Span {
        self.classic.front().map_or(Span::ZERO, |head| now.since(head.enqueued_at))
    }

    /// Lines 5 and 6 about an L4S packet that waited for `waited`.
    fn judge_scalable(&mut self, now: Time, waited: Span) -> CurvyRedDecision {
        // Figure 8 line 2a.
        if self.config.overload && waited > self.classic_delay(now) {
            self.law.average(&self.config, waited);
        }
        let (coupled, u) = (self.law.coupled(), self.config.u);
        // Figure 7 lines 4b and 8c.
        if self.config.overload && coupled >= 1.0 && self.exceeds(self.law.root(), 2 * u) {
            return CurvyRedDecision::Drop;
        }
        let beyond = waited.as_nanos().saturating_sub(self.config.t.as_nanos());
        let range = self.config.range.as_nanos();
        let native = if beyond >= range { beyond > 0 } else { self.exceeds(beyond as f64 / range as f64, 1) };
        if native || self.exceeds(coupled, u) { CurvyRedDecision::Mark } else { CurvyRedDecision::Pass }
    }

    /// Lines 9 to 15 about a packet that was just taken out of the classic queue.
    fn judge_classic(&mut self, now: Time, ecn: Ecn) -> CurvyRedDecision {
        let delay = self.classic_delay(now);
        self.law.average(&self.config, delay);
        if !self.exceeds(self.law.root(), 2 * self.config.u) {
            CurvyRedDecision::Pass
        } else if !ecn.is_capable() || self.config.overload && self.law.coupled() >= 1.0 {
            // Figure 7 line 12b: p_C of 1/k^2 is where p_CL is 1.
            CurvyRedDecision::Drop
        } else {
            CurvyRedDecision::Mark
        }
    }

    /// The probabilities of the classic queue and of the coupling.
    fn probabilities(&self) -> (f64, f64) {
        let of = |p: f64, draws: u32| (0..draws).fold(1.0, |product, _| product * p.clamp(0.0, 1.0));
        (of(self.law.root(), 2 * self.config.u), of(self.law.coupled(), self.config.u))
    }

    fn average_delay(&self) -> Span {
        Span::from_nanos(self.law.average as u64)
    }
}

impl<P: Queued + Send> QueueDisc<P> for CurvyRed<P> {
    /// Figure 3.
    fn enqueue(&mut self, now: Time, packet: P, drops: &mut Drops<P>) {
        // RFC 9331 s5.1: CE may come from either, and is classified as L4S.
        self.last_scalable = matches!(packet.ecn(), Ecn::Ect1 | Ecn::Ce);
        let room = packet.wire_len().max(self.config.mtu);
        if self.books.backlog().bytes + u64::from(room) > self.config.limit {
            self.books.refuse(packet, DropReason::Limit, drops);
            return;
        }
        self.books.admit(packet.wire_len());
        let queue = if self.last_scalable { &mut self.l4s } else { &mut self.classic };
        queue.push_back(Entry { packet, enqueued_at: now });
    }

    /// Figure 10.
    fn dequeue(&mut self, now: Time, drops: &mut Drops<P>) -> Dequeue<P> {
        while let Some(scalable) = self.turn() {
            let contended = !self.l4s.is_empty() && !self.classic.is_empty();
            let Some(mut taken) = self.take(scalable) else { break };
            self.last_scalable = scalable;
            let decision = if scalable {
                self.judge_scalable(now, now.since(taken.enqueued_at))
            } else {
                self.judge_classic(now, taken.packet.ecn())
            };
            match decision {
                CurvyRedDecision::Pass => {}
                CurvyRedDecision::Drop if self.books.backlog().packets > 0 => {
                    self.books.discard(taken.packet, DropReason::Early, drops);
                    continue;
                }
                CurvyRedDecision::Mark | CurvyRedDecision::Drop => {
                    self.books.mark(&mut taken.packet);
                }
            }
            let bytes = taken.packet.wire_len();
            if contended {
                let weight = self.config.classic_weight;
                self.credit += f64::from(bytes) * if scalable { weight } else { weight - 1.0 };
            }
            self.books.release(bytes);
            return Dequeue::Packet(taken);
        }
        Dequeue::Empty
    }

    fn idle(&mut self, _now: Time) {
        self.credit = 0.0;
    }

    /// Other parameters at run time. The average stays, and packets stay in the queue in which they
    /// are. Heads beyond the new limit are discarded, those of the classic queue first, without asking
    /// the law.
    fn change(&mut self, _now: Time, config: &dyn Any, drops: &mut Drops<P>) -> Result<(), ChangeError> {
        let config = parameters::<CurvyRedConfig>(config)?.clone();
        valid(config.problem())?;
        if config.tshift != self.config.tshift || config.classic_weight != self.config.classic_weight {
            self.credit = 0.0;
        }
        self.law = Law::new(&config, if config.integer { self.law.average.floor() } else { self.law.average });
        self.config = config;
        while self.books.backlog().bytes > self.config.limit
            && let Some(entry) = self.take(self.classic.is_empty())
        {
            self.books.discard(entry.packet, DropReason::Limit, drops);
        }
        Ok(())
    }

    fn peek(&self) -> Option<&Entry<P>> {
        if self.turn()? { self.l4s.front() } else { self.classic.front() }
    }

    fn books(&self) -> &Books {
        &self.books
    }

    /// The probability to drop or mark packets of the queue of the last packet that came or left
    /// without regard to an L4S packet's own delay, and the average delay.
    fn probe(&self) -> Probe {
        let (classic, l4s) = self.probabilities();
        let probability = if self.last_scalable { l4s } else { classic };
        Probe { probability: Some(probability), delay: Some(self.average_delay()), ..Probe::default() }
    }

    /// The variables of both queues; `l4s` tells whether the probe is about the L4S queue.
    fn variables(&self, see: &mut dyn FnMut(&'static str, Variable)) {
        QueueDisc::<P>::probe(self).variables(see);
        let (classic, l4s) = self.probabilities();
        see("classic_probability", Variable::Probability(classic));
        see("l4s_probability", Variable::Probability(l4s));
        see("classic_packets", Variable::Count(self.classic.len() as u64));
        see("l4s_packets", Variable::Count(self.l4s.len() as u64));
        see("l4s", Variable::Flag(self.last_scalable));
    }
}

#[cfg(test)]
mod tests;
