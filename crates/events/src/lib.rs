//! Wakeups: one slot per component, popped in due order.
//!
//! A component (a link direction, an endpoint) owns one slot, armed at the next time at which it
//! has something to do. Equal times are ordered by slot number: that rule is part of a scenario's
//! semantics.

mod wakeups;

pub use wakeups::{Slot, Wakeups};
