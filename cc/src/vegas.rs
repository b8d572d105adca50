//! Vegas: the window is held at a size at which a few of its segments wait in the queue.
//!
//! FreeBSD's version measures one marked segment in a round trip, Linux's the shortest of all round
//! trips in one.

mod freebsd;
mod linux;

pub use freebsd::{Vegas, VegasConfig};
pub use linux::{LinuxVegas, LinuxVegasConfig};
