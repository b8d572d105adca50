//! Observations of flows and links during a run, for learners that use more than a sender sees.

use std::ops::ControlFlow;

use ackclock_trace::SeriesRecord;
use ackclock_units::{Span, Time};

use super::World;
use crate::record::SeriesConfig;
use crate::series::Series;

/// An observer's position in a run: the next look shows the changes since then.
#[derive(Debug)]
pub struct Lookout(Series);

impl World {
    /// An observer that has not looked yet.
    pub fn lookout(&self) -> Lookout {
        let all = SeriesConfig { every: Span::MAX, window: Span::MAX };
        Lookout(Series::new(all, self.windows.listed(), self.windows.listed_directions()))
    }

    /// Passes the changes since the last look to `sink`: records as of a series whose interval ends
    /// `now`, none of idle flows. Looking changes no result.
    pub fn look(&mut self, now: Time, lookout: &mut Lookout, mut sink: impl FnMut(&SeriesRecord<'_>)) {
        self.catch_up(now);
        let groups = self.passing_counts();
        lookout.0.end(now, &self.flows, &self.hosts, &groups, &self.directions);
        let record = |record: &SeriesRecord<'_>| {
            sink(record);
            ControlFlow::Continue(())
        };
        let _ = lookout.0.hand_on(&self.flows, |group| self.name_of_group(group), &self.directions, record);
    }
}
