//! Observation of a connection while it runs: counts, limits, windows and snapshots.

use crate::Endpoint;

impl Endpoint {
    /// SO_MAX_PACING_RATE: no more than so many bytes a second from now on; `None` for no bound.
    /// Setting one turns pacing on.
    pub fn set_max_pacing_rate(&mut self, bytes_per_second: Option<u64>) {
        self.sender.bound_pacing_rate(bytes_per_second);
    }
}
