//! Support for the tests and benches of the other crates: minimal packets for queues, proptest
//! strategies, the promises of congestion controllers, an allocator that counts, and whether tests
//! with devices can run.

mod allocations;
mod controllers;
#[cfg(target_os = "linux")]
mod live;
mod queue;
mod skip;

pub use allocations::{Allocations, CountingAllocator, allocations};
pub use controllers::keeps_every_promise;
#[cfg(target_os = "linux")]
pub use live::can_go_live;
pub use queue::{Ask, QueueAction, QueueStep, StubPacket, ecn, queue_steps};
pub use skip::skipped;

/// Prints that `test` is left out: devices and namespaces are Linux's.
#[cfg(not(target_os = "linux"))]
pub fn can_go_live(test: &str, _programs: &[&str]) -> bool {
    skipped(test, "live mode needs Linux");
    false
}
