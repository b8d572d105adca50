//! Transmissions whose fate is open.

use ackclock_tcp::{SentAs, Stamp};
use ackclock_units::Time;

/// A transmission that was not judged yet.
#[derive(Clone, Copy, Debug)]
pub(super) struct UnjudgedTransmission {
    /// First byte in the stream; a FIN is the byte after the last one.
    pub(super) from: u64,
    /// Time of sending, as in the sender's order.
    pub(super) at: Time,
    pub(super) order: u32,
    pub(super) len: u32,
    pub(super) sent_as: SentAs,
    /// Some of the range had been sent before.
    pub(super) again: bool,
    /// It has data, so that its retransmission counts.
    pub(super) is_data: bool,
    pub(super) fate: TransmissionFate,
}

const _: () = assert!(size_of::<UnjudgedTransmission>() == 32);

impl UnjudgedTransmission {
    pub(super) fn to(&self) -> u64 {
        self.from + u64::from(self.len)
    }

    pub(super) fn stamp(&self) -> Stamp {
        Stamp { at: self.at, order: self.order }
    }
}

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum TransmissionFate {
    OnItsWay,
    Lost,
    /// The receiver has all of it.
    Kept,
    /// The packet arrived, and the receiver refused it.
    Refused,
}
