//! What travels: a 24-byte [`Packet`] handle moved by value, a [`Pool`] whose slots hold the contents, the TCP
//! [`Segment`], and the [`codec`] between segments and bytes.

pub mod codec;
mod handle;
pub mod pattern;
mod pool;
mod segment;

pub use handle::{Packet, flow_hash};
pub use pool::Pool;
pub use segment::{Flags, Payload, SackBlocks, Segment, Timestamps};
