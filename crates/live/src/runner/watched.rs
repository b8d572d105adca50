//! Reports the punctuality of a run while it goes on.

use std::sync::Arc;

use ackclock_trace::LiveHost;
use ackclock_units::{Span, Time};

use super::punctuality::Punctuality;
use crate::{LiveWatch, Moment};

/// The interval of reports.
const EVERY: Span = Span::from_millis(100);

/// A recipient of reports, with the time of the last one.
#[derive(Debug)]
pub(super) struct PunctualityReports {
    watch: Arc<dyn LiveWatch>,
    told: Time,
}

impl PunctualityReports {
    pub(super) fn new(watch: Arc<dyn LiveWatch>) -> PunctualityReports {
        PunctualityReports { watch, told: Time::ZERO }
    }

    /// Reports the measurements until `now` if a report is due. `hosts` are those outside, each
    /// with the packets that its device refused.
    pub(super) fn look<'h>(
        &mut self,
        now: Time,
        punctuality: &mut Punctuality,
        mut hosts: impl Iterator<Item = (&'h LiveHost, u64)>,
    ) {
        if now.since(self.told) < EVERY {
            return;
        }
        self.told = now;
        let (behind, longest_stall) = (punctuality.behind(), punctuality.longest_stall());
        let Some(recent) = punctuality.recent() else { return };
        let moment =
            Moment { now, lateness: recent.lateness.take(), unread: recent.unread.take(), behind, longest_stall };
        self.watch.look(&moment, &mut hosts);
    }
}
