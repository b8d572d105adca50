//! The authors' law: floating-point numbers, and one random number for each packet.
//!
//! # Source
//! Floyd, Jacobson 1993; Floyd 1997, "RED: Discussions of Setting Parameters"; Floyd 2000 (gentle);
//! ns-2 `queue/red.cc`, from which the conditions at the edges are: no drop while the queue is
//! empty, nor for the packet with which the average crosses `min`; a certain drop, and one for want
//! of room, starts the count anew; with `mark_p` (ns-2's `mark_p_` and `use_mark_p_`) there are no
//! certain drops, but a probability that is 1.
//!
//! # Departures
//! - The queue is measured in bytes whatever `bytemode` says (RFC 7141 section 2.1); ns-2 can also
//!   count packets.
//! - With `adaptive`, updates are due every interval, as in the paper; ns-2 makes one at the first
//!   packet after it. ns-2 also leaves the upper line of `gentle` where it was at the start; here
//!   it starts at the probability of now.
//! - Bytes since the last mark are divided by `avpkt` exactly; ns-2 rounds down.
//! - Time without a queue starts when the queue is first found empty; ns-2 counts from the last
//!   time it was.

use ackclock_units::{Random, Time, maths};

use super::config::{RedConfig, RedFloyd};
use super::reaction::RedReaction;

#[derive(Clone, Debug)]
pub(super) struct Floyd {
    gentle: bool,
    wait: bool,
    bytemode: bool,
    mark_p: Option<f64>,
    min: f64,
    max: f64,
    avpkt: f64,
    /// w_q.
    weight: f64,
    /// Packets that the link carries in a second (ns-2's `ptc`).
    packets_per_second: f64,
    pub(super) max_p: f64,
    /// The average queue, in bytes.
    pub(super) average: f64,
    /// Packets since the last mark, and their bytes.
    pub(super) count: u64,
    pub(super) count_bytes: u64,
    /// The previous packet found the average above `min` and the queue not empty (ns-2's `old`).
    pub(super) above: bool,
    pub(super) idle_since: Option<Time>,
}

impl Floyd {
    /// The law for the average that [`RedConfig::average`] gives.
    pub(super) fn new(config: &RedConfig, floyd: &RedFloyd, weight: f64) -> Floyd {
        let (min, max) = config.thresholds();
        let avpkt = f64::from(config.avpkt);
        let packets_per_second = config.packets_per_second();
        Floyd {
            gentle: floyd.gentle,
            wait: floyd.wait,
            bytemode: floyd.bytemode,
            mark_p: floyd.mark_p,
            min: min as f64,
            max: max as f64,
            avpkt,
            weight,
            packets_per_second,
            max_p: config.probability,
            average: 0.0,
            count: 0,
            count_bytes: 0,
            above: false,
            idle_since: None,
        }
    }

    /// A packet of `bytes` bytes arrives and finds `backlog` bytes.
    pub(super) fn arrival(&mut self, now: Time, backlog: u64, bytes: u32, random: &mut Random) -> RedReaction {
        self.average = self.average_at(now) * (1.0 - self.weight) + self.weight * backlog as f64;
        self.idle_since = None;
        self.count += 1;
        self.count_bytes += u64::from(bytes);
        if self.average < self.min || backlog == 0 {
            self.above = false;
            return RedReaction::Pass;
        }
        if self.mark_p.is_none() && self.average >= if self.gentle { 2.0 * self.max } else { self.max } {
            self.restart(0, 0);
            return RedReaction::Forced;
        }
        if !self.above {
            self.above = true;
            self.restart(1, bytes);
            return RedReaction::Pass;
        }
        if !random.chance(self.spaced(self.probability(), bytes)) {
            return RedReaction::Pass;
        }
        self.restart(0, 0);
        RedReaction::Early
    }

    /// Returns `true` if packets are marked at the probability of the average.
    pub(super) fn may_mark(&self) -> bool {
        self.mark_p.is_none_or(|mark_p| self.probability() < mark_p)
    }

    /// There was no room for a packet.
    pub(super) fn overflowed(&mut self) {
        self.restart(0, 0);
    }

    fn restart(&mut self, count: u64, bytes: u32) {
        self.count = count;
        self.count_bytes = u64::from(bytes);
    }

    /// The average that `time` leaves of it: packets of `avpkt` bytes that would have found no
    /// queue (Floyd, Jacobson 1993 section 4).
    pub(super) fn average_at(&self, time: Time) -> f64 {
        match self.idle_since {
            Some(since) => {
                let packets = (self.packets_per_second * time.since(since).as_secs_f64()).floor();
                self.average * maths::pow(1.0 - self.weight, packets)
            }
            None => self.average,
        }
    }

    /// The probability of the average, p_b.
    pub(super) fn probability(&self) -> f64 {
        let (average, min, max, max_p) = (self.average, self.min, self.max, self.max_p);
        if average < min {
            0.0
        } else if average < max {
            max_p * (average - min) / (max - min)
        } else if self.gentle {
            (max_p + (1.0 - max_p) * (average - max) / max).min(1.0)
        } else {
            1.0
        }
    }

    /// The probability of this packet, p_a: such that marks are spaced out evenly (Floyd, Jacobson
    /// 1993 section 7).
    pub(super) fn spaced(&self, probability: f64, bytes: u32) -> f64 {
        let count = if self.bytemode { self.count_bytes as f64 / self.avpkt } else { self.count as f64 };
        let passed = count * probability;
        let spaced = match (self.wait, passed) {
            (true, ..1.0) => 0.0,
            (true, ..2.0) => probability / (2.0 - passed),
            (false, ..1.0) => probability / (1.0 - passed),
            _ => return 1.0,
        };
        // Certainty does not depend on the packet's size.
        let scaled = if self.bytemode && spaced < 1.0 { spaced * f64::from(bytes) / self.avpkt } else { spaced };
        scaled.min(1.0)
    }
}
