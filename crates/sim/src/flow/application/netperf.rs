//! The client of netperf's stream test: which of its connections is which, and what came of its
//! tries.

use ackclock_trace::{ApplicationSummary, Histogram, NetperfSummary, Spread};
use ackclock_traffic::{Netperf, NetperfPattern};
use ackclock_units::Time;

use crate::index::FlowId;

/// The tries of one client.
#[derive(Debug)]
pub(crate) struct Tries {
    pub(crate) client: Netperf,
    /// The connections of the present try.
    pub(crate) control: Option<FlowId>,
    pub(crate) data: Option<FlowId>,
    /// Bit/s.
    goodput: Histogram,
}

impl Tries {
    pub(super) fn new(pattern: &NetperfPattern, start: Time) -> Tries {
        Tries { client: Netperf::new(pattern, start), control: None, data: None, goodput: Histogram::new() }
    }

    pub(super) fn next_at(&self) -> Time {
        self.client.next_at()
    }

    /// The data of a try has arrived as a whole.
    pub(crate) fn transferred(&mut self, bytes: u64) {
        let seconds = self.client.elapsed().as_secs_f64();
        if seconds > 0.0 {
            self.goodput.add((bytes as f64 * 8.0 / seconds).round() as u64);
        }
    }

    pub(super) fn summary(&self) -> ApplicationSummary {
        let netperf = NetperfSummary {
            tries: self.client.tries(),
            completed: self.client.completed(),
            failed: self.client.failed(),
            goodput_bps: Spread::of(&self.goodput, 1.0),
        };
        ApplicationSummary { kind: "netperf", netperf: Some(netperf), ..ApplicationSummary::default() }
    }
}
