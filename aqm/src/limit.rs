//! The most that a queue holds.

use ackclock_units::Size;
use ackclock_units::parameter::{Setting, Value};

/// A queue limit, in the unit that the discipline counts in.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Limit {
    /// At most this many packets (`pfifo`).
    Packets(u64),
    /// At most this many bytes (`bfifo`).
    Bytes(u64),
}

impl Setting for Limit {
    fn value(&self) -> Value {
        Value::Size(match *self {
            Limit::Packets(packets) => Size::Packets(packets),
            Limit::Bytes(bytes) => Size::Bytes(bytes),
        })
    }

    fn from_value(value: Value) -> Option<Limit> {
        match value {
            Value::Size(Size::Packets(packets)) => Some(Limit::Packets(packets)),
            Value::Size(Size::Bytes(bytes)) => Some(Limit::Bytes(bytes)),
            _ => None,
        }
    }
}
