//! CDG, congestion control by delay gradients: it backs off when round trips become longer,
//! whatever their length.
//!
//! FreeBSD's version is by its authors; Linux's has the same control law on different measurements,
//! with additions.

mod freebsd;
mod linux;

pub use freebsd::{Cdg, CdgConfig};
pub use linux::{LinuxCdg, LinuxCdgConfig};

/// The inferences of a controller from the gradients of delay; for traces.
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct DelayState {
    /// The smoothed gradient of the shortest RTT: its change from one round trip to the next, ms.
    /// 0 before there is one.
    pub gradient_min_ms: f64,
    /// The smoothed gradient of the longest RTT, ms.
    pub gradient_max_ms: f64,
    /// Where the queue of the bottleneck stands.
    pub queue: QueueState,
    /// The shadow window, bytes; 0 while no loss-based flow is suspected.
    pub shadow: u64,
}

/// Where the queue of the bottleneck stands, by the gradients.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum QueueState {
    /// The gradients have not shown it yet.
    Unknown,
    /// The longest RTT falls, and the shortest does not fall any more.
    Empty,
    /// Both RTTs rise.
    Rising,
    /// Both RTTs fall.
    Falling,
    /// The shortest RTT rises, and the longest does not rise any more.
    Full,
}

impl QueueState {
    /// Its name in records.
    pub fn name(self) -> &'static str {
        match self {
            QueueState::Unknown => "unknown",
            QueueState::Empty => "empty",
            QueueState::Rising => "rising",
            QueueState::Falling => "falling",
            QueueState::Full => "full",
        }
    }
}
