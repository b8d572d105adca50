//! The time that a queue spent at each length.

use ackclock_trace::Histogram;
use ackclock_units::Span;

/// Time at each length of a queue: exact, and a few instructions for each change. What a histogram
/// of lengths weighted by time would count, which [`Levels::histogram`] makes of it.
#[derive(Clone, Debug, Default)]
pub(super) struct Levels {
    /// Nanoseconds by length.
    times: Vec<u64>,
    /// Periods of more than no time.
    periods: u64,
}

impl Levels {
    /// A period at `length` is over.
    #[inline]
    pub(super) fn add(&mut self, length: u32, time: Span) {
        if time > Span::ZERO {
            self.periods += 1;
            self.add_part(length, time);
        }
    }

    /// A part of a period at `length` has passed.
    #[inline]
    pub(super) fn add_part(&mut self, length: u32, time: Span) {
        match self.times.get_mut(length as usize) {
            Some(sum) => *sum += time.as_nanos(),
            None => self.add_first(length, time),
        }
    }

    /// The queue has never been so long.
    #[cold]
    fn add_first(&mut self, length: u32, time: Span) {
        self.times.resize((length as usize + 1).next_power_of_two(), 0);
        self.times[length as usize] += time.as_nanos();
    }

    /// Lengths weighted by time, with a sample for each period.
    pub(super) fn histogram(&self) -> Histogram {
        let mut histogram = Histogram::new();
        (0..).zip(&self.times).for_each(|(length, &nanos)| histogram.add_weight(length, nanos));
        histogram.add_samples(self.periods);
        histogram
    }
}

#[cfg(test)]
mod tests {
    use proptest::prelude::*;

    use super::*;

    proptest! {
        /// The levels equal a histogram to which each period is added.
        #[test]
        fn levels_are_a_histogram_weighted_by_time(
            periods in prop::collection::vec((0u32..3000, 0u64..1000), 0..100),
            part in (0u32..3000, 0u64..1000),
        ) {
            let (mut levels, mut model) = (Levels::default(), Histogram::new());
            for (length, nanos) in periods {
                levels.add(length, Span::from_nanos(nanos));
                model.add_weighted(length.into(), nanos);
            }
            let earlier = (levels.clone(), model.clone());
            levels.add_part(part.0, Span::from_nanos(part.1));
            model.add_weight(part.0.into(), part.1);
            prop_assert_eq!(levels.histogram().distribution(1.0), model.distribution(1.0));
            prop_assert_eq!(levels.histogram().mean(), model.mean());
            let since = levels.histogram().since(&earlier.0.histogram());
            prop_assert_eq!(since.distribution(1.0), model.since(&earlier.1).distribution(1.0));
        }
    }
}
