//! The limits that held the sender back, with their times: one reason at a time, that at which it
//! last stopped.

use ackclock_units::{Span, Time};

/// Why nothing more is sent now.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Limit {
    /// The congestion window is full.
    Cwnd,
    /// The peer's window is, and the congestion window is not.
    Window,
    /// Nothing waits to be sent, or too little.
    Application,
    /// The time of the next segment has not come.
    Pacing,
}

/// The time for which each limit held a sender back, while its connection was open and it had not
/// closed.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct LimitedTime {
    /// The congestion window was full.
    pub cwnd: Span,
    /// The peer's window was, and the congestion window was not.
    pub rwnd: Span,
    /// Nothing waited to be sent, or too little.
    pub app: Span,
    /// The time of the next segment had not come.
    pub pacing: Span,
}

/// The limit that applies to the sender and since when, and the earlier times of each limit.
#[derive(Debug, Default)]
pub struct LimitClock {
    reason: Option<Limit>,
    since: Time,
    total: LimitedTime,
}

impl LimitClock {
    /// The limit that applies now.
    pub fn reason(&self) -> Option<Limit> {
        self.reason
    }

    /// Applies this limit, or none, from `now` on.
    #[inline]
    pub fn set(&mut self, now: Time, reason: Option<Limit>) {
        if self.reason != reason {
            self.change(now, reason);
        }
    }

    #[inline(never)]
    fn change(&mut self, now: Time, reason: Option<Limit>) {
        self.total = self.read(now);
        (self.reason, self.since) = (reason, now);
    }

    /// The time for which each limit has applied until `now`.
    pub fn read(&self, now: Time) -> LimitedTime {
        let mut total = self.total;
        let time = match self.reason {
            None => return total,
            Some(Limit::Cwnd) => &mut total.cwnd,
            Some(Limit::Window) => &mut total.rwnd,
            Some(Limit::Application) => &mut total.app,
            Some(Limit::Pacing) => &mut total.pacing,
        };
        *time += now.since(self.since);
        total
    }
}
