//! The memory of destinations that the sender of a flow shares with others.

use super::Flow;

impl Flow {
    /// The memory of destinations that it shares with others.
    pub(crate) fn metrics(&self) -> Option<usize> {
        self.metrics
    }

    /// The same, once: what it has found out is to be remembered.
    pub(crate) fn take_metrics(&mut self) -> Option<usize> {
        self.metrics.take()
    }
}
