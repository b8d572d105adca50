//! What sends the packets that leave the queue.

use ackclock_units::{Span, Time};

use super::device::Device;
use super::slots::Slot;
use super::varying::Varying;

/// The transmitter below a queue.
#[derive(Debug)]
pub(super) enum Transmitter {
    /// A constant rate, or none.
    Constant,
    /// A token bucket.
    Bucket(Box<TokenBucket>),
    /// Slots outside of which nothing is sent.
    Slots(Box<Slot>),
    /// The transmit ring of a device.
    Device(Box<Device>),
    /// A rate, a delay and impairments that change.
    Varying(Box<Varying>),
}

/// Tokens, represented by the time at which a transmitter would have sent the packets released so
/// far.
#[derive(Debug)]
pub(super) struct TokenBucket {
    /// Capacity of the bucket, in time at the rate.
    pub(super) depth: Span,
    /// The time at which the transmitter would be done.
    pub(super) done: Time,
}

impl Transmitter {
    /// Neither a bucket, nor slots, nor a device, nor anything that changes.
    #[inline]
    pub(super) fn is_constant(&self) -> bool {
        matches!(self, Transmitter::Constant)
    }

    /// Takes it out, for the time in which the link drives it.
    pub(super) fn take(&mut self) -> Transmitter {
        std::mem::replace(self, Transmitter::Constant)
    }
}
