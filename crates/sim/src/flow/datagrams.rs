//! Flows of datagrams.

use ackclock_trace::DatagramSummary;

use crate::host::Host;

/// The results that only such a flow has.
pub(super) fn summary(sender: &Host, receiver: &Host) -> Option<Box<DatagramSummary>> {
    match (sender, receiver) {
        (Host::Datagrams(sender), Host::Datagrams(receiver)) => sender.summary(receiver).map(Box::new),
        _ => None,
    }
}
