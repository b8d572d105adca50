//! Segmentation offload: whose rules say how many segments a host hands down at one go.

/// Units of several segments that a host hands down at one go, to be cut by its network card; the
/// law is in `send/offload.rs`.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub enum OffloadRule {
    /// Segments are handed down one by one.
    #[default]
    Off,
    /// Linux 4.0: a millisecond's worth at twice the window's rate; in the state Open one that
    /// could become larger waits for two clock ticks at most.
    Linux40,
    /// Linux 6.1: more on short paths; one that could become larger waits for an ACK that is due
    /// within half a round trip.
    Linux61,
    /// Linux 6.18: an ACK that is due within a millisecond, and units reach over the ends of socket
    /// buffers.
    Linux618,
}

impl OffloadRule {
    /// The rules of the profile called `name`; `None` if its offload is not modelled.
    pub fn of_profile(name: &str) -> Option<OffloadRule> {
        match name {
            "linux-4.0" => Some(OffloadRule::Linux40),
            "linux-6.1" => Some(OffloadRule::Linux61),
            "linux-6.18" | "linux-7.3" => Some(OffloadRule::Linux618),
            _ => None,
        }
    }

    /// Whether segments are handed down in units.
    #[inline]
    pub fn is_on(self) -> bool {
        self != OffloadRule::Off
    }
}
