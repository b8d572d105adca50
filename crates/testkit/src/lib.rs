//! Support for the tests and benches of the other crates: packets that are nothing but what a queue sees, proptest
//! strategies, the promises of congestion controllers, and an allocator that counts.

mod allocations;
mod controllers;
mod queue;

pub use allocations::{Allocations, CountingAllocator, allocations};
pub use controllers::keeps_every_promise;
pub use queue::{QueueAction, QueueStep, StubPacket, ecn, queue_steps};
