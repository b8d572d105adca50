//! The measures on the transmissions of a flow.

use std::collections::BTreeMap;

use ackclock_trace::{
    Displacement, Distribution, Histogram, LossDeclarations, LossVerdict, Retransmissions, SignedHistogram,
};

use super::cause::{Cause, Culprit, RECEIVER};
use crate::index::DirectionId;

/// Repair times are counted in thousandths of an RTT.
const RTT_PARTS: f64 = 1e3;

/// Counts of judged transmissions and closed losses.
#[derive(Clone, Debug)]
pub(crate) struct TruthCounts {
    pub(super) needed: u64,
    pub(super) spurious_reordering: u64,
    pub(super) spurious_delay: u64,
    by_cause: Vec<(Cause, u64)>,
    declarations: LossDeclarations,
    late: Histogram,
    repair: Histogram,
    /// Displacements of transmissions that did not arrive in their places.
    displacement: SignedHistogram,
}

impl TruthCounts {
    pub(super) fn new() -> TruthCounts {
        TruthCounts {
            needed: 0,
            spurious_reordering: 0,
            spurious_delay: 0,
            by_cause: Vec::new(),
            declarations: LossDeclarations::default(),
            late: Histogram::new(),
            repair: Histogram::new(),
            displacement: SignedHistogram::new(),
        }
    }

    /// Adds what was counted for another flow.
    pub(super) fn absorb(&mut self, other: &TruthCounts) {
        self.needed += other.needed;
        self.spurious_reordering += other.spurious_reordering;
        self.spurious_delay += other.spurious_delay;
        for &(cause, count) in &other.by_cause {
            match self.by_cause.iter_mut().find(|known| known.0 == cause) {
                Some((_, sum)) => *sum += count,
                None => self.by_cause.push((cause, count)),
            }
        }
        self.declarations.right += other.declarations.right;
        self.declarations.blind += other.declarations.blind;
        self.declarations.wrong += other.declarations.wrong;
        self.late.absorb(&other.late);
        self.repair.absorb(&other.repair);
        self.displacement.absorb(&other.displacement);
    }

    /// A transmission arrived so far from its place.
    #[inline]
    pub(super) fn displaced(&mut self, by: i64) {
        if by != 0 {
            self.displacement.add(by);
        }
    }

    /// A retransmission was judged; `culprit` lost what it repairs.
    pub(super) fn retransmitted(&mut self, verdict: &LossVerdict<'_>, culprit: Option<Culprit>) {
        match verdict {
            LossVerdict::Lost { .. } => self.needed += 1,
            LossVerdict::Reordered => self.spurious_reordering += 1,
            LossVerdict::Delayed => self.spurious_delay += 1,
        }
        if let Some(Culprit { cause, .. }) = culprit {
            match self.by_cause.iter_mut().find(|known| known.0 == cause) {
                Some((_, count)) => *count += 1,
                None => self.by_cause.push((cause, 1)),
            }
        }
    }

    /// A loss was declared, so late in nanoseconds; before the sender could know it, without.
    pub(super) fn declared(&mut self, late: Option<u64>) {
        self.declarations.right += 1;
        match late {
            Some(late) => self.late.add(late),
            None => self.declarations.blind += 1,
        }
    }

    /// Counts a declaration of a transmission that was not lost.
    pub(super) fn declared_wrongly(&mut self) {
        self.declarations.wrong += 1;
    }

    /// Counts a loss repaired within this many RTTs.
    pub(super) fn repaired(&mut self, rtts: f64) {
        self.repair.add((rtts * RTT_PARTS).round() as u64);
    }

    /// Retransmissions by their cause; `link` is the name of a direction.
    pub(crate) fn retransmissions<'a>(&self, link: impl Fn(DirectionId) -> &'a str) -> Retransmissions {
        let mut by_queue: BTreeMap<String, BTreeMap<&'static str, u64>> = BTreeMap::new();
        for &(cause, count) in &self.by_cause {
            let name = cause.direction().map_or(RECEIVER, &link).to_owned();
            by_queue.entry(name).or_default().insert(cause.reason.name(), count);
        }
        Retransmissions {
            needed: self.needed,
            spurious_reordering: self.spurious_reordering,
            spurious_delay: self.spurious_delay,
            by_queue,
        }
    }

    /// The loss declarations.
    pub(crate) fn declarations(&self) -> LossDeclarations {
        self.declarations
    }

    /// Delay of loss declarations, ms.
    pub(crate) fn late_ms(&self) -> Distribution {
        self.late.distribution(1e-6)
    }

    /// Delay of repairs, in RTTs.
    pub(crate) fn repair_rtts(&self) -> Distribution {
        self.repair.distribution(1.0 / RTT_PARTS)
    }

    /// Displacement of packets on arrival, `arrived` of them.
    pub(super) fn displacement(&self, arrived: u64) -> Displacement {
        let mut displacement = self.displacement.clone();
        let on_time = arrived - displacement.samples();
        displacement.add_repeated(0, on_time);
        let (all, early) = (displacement.samples(), displacement.negatives());
        let share = |part: u64| if all > 0 { part as f64 / all as f64 } else { 0.0 };
        Displacement {
            early: share(early),
            on_time: share(on_time),
            late: share(all - early - on_time),
            distribution: displacement.distribution(1.0),
        }
    }
}
