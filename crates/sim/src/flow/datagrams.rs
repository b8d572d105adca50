//! Flows of datagrams.

use ackclock_trace::DatagramSummary;
use ackclock_units::{Span, Time};

use super::Flow;
use crate::host::Host;

/// The results that only such a flow has.
pub(super) fn summary(sender: &Host, receiver: &Host) -> Option<Box<DatagramSummary>> {
    match (sender, receiver) {
        (Host::Datagrams(sender), Host::Datagrams(receiver)) => sender.summary(receiver).map(Box::new),
        _ => None,
    }
}

impl Flow {
    /// The application of a flow of datagrams sends no more. What is on its way still arrives, and
    /// is measured.
    #[cold]
    pub(crate) fn cease(&mut self, now: Time) {
        (self.aborted, self.over) = (true, Some(now));
        self.settle();
    }

    /// The application has closed.
    pub(crate) fn has_closed(&self) -> bool {
        self.closed
    }

    /// A round trip was measured.
    pub(crate) fn measure_rtt(&mut self, rtt: Span) {
        self.rtt.add(rtt.as_nanos());
    }
}
