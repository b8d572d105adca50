//! Support for the tests and benches of the other crates: packets that are nothing but what a queue sees, proptest
//! strategies, and an allocator that counts.

mod allocations;
mod queue;

pub use allocations::{Allocations, CountingAllocator, allocations};
pub use queue::{QueueAction, QueueStep, StubPacket, ecn, queue_steps};
