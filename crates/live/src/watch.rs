//! What those get who watch a run in real time.

use std::fmt;

use ackclock_trace::LiveHost;
use ackclock_units::{Span, Time};

/// How long the loop of a run in real time may stand still at a time. What comes meanwhile is dated
/// when it is read, so that lateness does not show it.
pub const LONGEST_STALL: Span = Span::from_millis(100);

/// Watches a run in real time.
pub trait LiveWatch: fmt::Debug + Send + Sync {
    /// About every 100 ms, on the thread of the run: packets wait until it returns. Each host
    /// behind a device comes with the packets that its device did not take, which `sent_packets`
    /// counts as well.
    fn look(&self, moment: &Moment, hosts: &mut dyn Iterator<Item = (&LiveHost, u64)>);
}

/// How punctual a run in real time is.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Moment {
    /// When.
    pub now: Time,
    /// How much later than due packets were handed to their device.
    pub lateness: Late,
    /// How long packets may have waited in their device before they were read.
    pub unread: Late,
    /// For how long something that was due had not been done yet, in the whole run.
    pub behind: Span,
    /// The longest time for which the loop did not look although it was to, likewise.
    pub longest_stall: Span,
}

/// Times by which something came too late since the last [`Moment`], within 3 %; `None` without
/// samples.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Late {
    /// The median.
    pub p50: Option<Span>,
    /// The 99th percentile.
    pub p99: Option<Span>,
    /// The largest.
    pub max: Option<Span>,
    /// The 99th percentile of the whole run, by which it is valid.
    pub run_p99: Option<Span>,
    /// How many there are.
    pub samples: u64,
}
