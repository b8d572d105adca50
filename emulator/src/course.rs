//! How a link direction changes in the course of time: a schedule of changes, a trace of its rate,
//! or slots.
//!
//! What the transmitter does at the time of a change comes first: a packet whose last bit is sent
//! at that time propagates by the delay and the loss before the change, and an opportunity of a
//! trace is used. Then the change is made, and whatever else happens at that time comes after it.
//!
//! - *Rate.* A packet in transmission continues: what is left of it is sent at the new rate, so
//!   that the bits sent between any two times are the integral of the rate, to the fraction of a
//!   nanosecond. A ramp is linear and continuous.
//! - *Delay.* It is that of the time at which the last bit is sent. After a decrease, a packet
//!   that would arrive before the one sent before it arrives together with it; with
//!   [`crate::Reorder::ByJitter`] it overtakes.
//! - *Jitter.* As the delay; its distribution and correlation stay, and so does the stream of its
//!   random numbers.
//! - *Loss.* Packets are lost independently with the new probability, whatever the model before.
//! - *Outage.* [`Up::Holds`] stops the transmitter, in the middle of a packet if need be, and
//!   continues there later; the queue takes packets in and is asked for none. [`Up::Loses`] goes
//!   on transmitting, and loses each packet whose last bit is sent during the outage. Packets that
//!   are on the wire arrive either way.
//! - *Autorate.* A controller sets the rate of a shaper ([`crate::Autorate`]) by such changes.
//! - *Queue.* Of the same discipline, as [`crate::Link::change_queue`]. Another one takes the place
//!   of the one before, whose packets are discarded ([`DropReason::Purge`]); a packet in
//!   transmission continues.
//!
//! # Source
//! The packet in transmission is cut at the time of the change as in mahimahi, where a packet uses
//! as many opportunities as it needs. Linux's `tbf` and `htb` charge a packet at the rate at which
//! it is dequeued, `netem` and ns-3's `PointToPointNetDevice` fix its end when its transmission
//! starts: with these, a large packet that begins at a low rate blocks the link long after the rate
//! has risen, and the bits sent depend on where packets begin.
//!
//! `tc qdisc replace` changes a discipline of the same kind and grafts one of another kind
//! (`net/sched/sch_api.c`, `tc_modify_qdisc`); the old one is reset with all that waits in it
//! (`sch_generic.c`, `dev_deactivate`, `qdisc_reset`).
//!
//! # Departures
//! A token bucket (`burst`) does not change: HTB has no notion of the time at which it would have
//! been full at another rate.

use std::sync::Arc;

#[cfg(doc)]
use ackclock_aqm::DropReason;
use ackclock_aqm::QueueSpec;
use ackclock_units::{Rate, Span, Time};

use crate::{AutorateConfig, Slots, Trace};

/// The changes of a link direction.
#[derive(Clone, Debug, Default, PartialEq)]
pub struct Course {
    /// Changes in order of time, each later than the one before. A ramp ends no later than the
    /// next change of the same quantity.
    pub schedule: Vec<Change>,
    /// The trace that the rate follows instead of [`crate::LinkConfig::rate`]; no change of the
    /// schedule has a rate then.
    pub trace: Option<Arc<Trace>>,
    /// The slots in which the link transmits; nothing changes then.
    pub slots: Option<Slots>,
    /// The controller of the rate of its queue, which is a shaper. The schedule does not change the
    /// queue then.
    pub autorate: Option<AutorateSpec>,
}

/// A controller of the rate of a queue, and the probes that it goes by.
#[derive(Clone, Debug, PartialEq)]
pub struct AutorateSpec {
    /// Its parameters.
    pub config: AutorateConfig,
    /// The id of the flow of probes, or of a group of them: each is a reflector.
    pub probes: Arc<str>,
}

impl Course {
    /// Returns `true` if nothing ever changes, and there are no slots.
    pub fn is_constant(&self) -> bool {
        self.schedule.is_empty() && self.trace.is_none() && self.slots.is_none() && self.autorate.is_none()
    }
}

/// A change at a time; what is `None` stays.
#[derive(Clone, Debug, Default, PartialEq)]
pub struct Change {
    /// The time of the change.
    pub at: Time,
    /// Rate and delay change linearly from `at` on and reach their new value here; `None` changes
    /// them at once. Later than `at`. Neither end of a ramp of the rate is unlimited.
    pub until: Option<Time>,
    /// The rate; `Some(None)` is unlimited.
    pub rate: Option<Option<Rate>>,
    /// The propagation delay.
    pub delay: Option<Span>,
    /// The jitter.
    pub jitter: Option<Span>,
    /// The probability of loss.
    pub loss: Option<f64>,
    /// The state of the link: passing, holding or losing packets.
    pub up: Option<Up>,
    /// The parameters of the queue, or another discipline.
    pub queue: Option<QueueSpec>,
}

/// The state of a link: passing, holding or losing packets.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub enum Up {
    /// Packets pass.
    #[default]
    Passes,
    /// Packets wait.
    Holds,
    /// Packets are lost.
    Loses,
}
