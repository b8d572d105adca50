//! Punctuality of a run in real time, as it is reported during the run.

use std::fmt;

use ackclock_trace::LiveHost;
use ackclock_units::{Span, Time};

/// The longest stall of the loop in a valid run in real time. Packets that arrive during a stall
/// get the time at which they are read, so that their lateness does not show it.
pub const LONGEST_STALL: Span = Span::from_millis(100);

/// Receives the punctuality of a run in real time.
pub trait LiveWatch: fmt::Debug + Send + Sync {
    /// Called about every 100 ms on the thread of the run: packets wait until it returns. `hosts`
    /// are those behind devices, each with the packets that its device refused, which
    /// `sent_packets` includes.
    fn look(&self, moment: &Moment, hosts: &mut dyn Iterator<Item = (&LiveHost, u64)>);
}

/// The punctuality of a run in real time.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Moment {
    /// Time of the run.
    pub now: Time,
    /// Time from a packet's due time until its device has taken it.
    pub lateness: Late,
    /// The longest time that each packet may have waited in its device before it was read.
    pub unread: Late,
    /// Time during which due work was outstanding, in the whole run.
    pub behind: Span,
    /// The longest interval in which the loop missed its poll of the devices, in the whole run.
    pub longest_stall: Span,
}

/// Delays since the last [`Moment`], within 3 %; `None` without samples.
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
    /// Number of samples.
    pub samples: u64,
}
