//! What holds a subflow back, over the endpoints that follow each other on its path.

use ackclock_mptcp::Subflow;
use ackclock_tcp::LimitedTime;
use ackclock_units::Time;

/// The times of all of them together.
#[derive(Debug, Default)]
pub(super) struct Limits {
    /// Of those that were replaced.
    past: LimitedTime,
    /// Of the one with this port, while it was open.
    last: LimitedTime,
    port: u16,
    is_open: bool,
}

impl Limits {
    /// The sender has done what it could at `now`.
    pub(super) fn note(&mut self, now: Time, subflow: &Subflow) {
        let endpoint = subflow.endpoint();
        let port = endpoint.ports().local;
        if self.port != port {
            (self.past, self.last, self.port) = (sum(self.past, self.last), LimitedTime::default(), port);
            self.is_open = false;
        }
        // A last time when it has closed.
        if subflow.is_open() || self.is_open {
            self.last = endpoint.limited_time(now);
        }
        self.is_open = subflow.is_open();
    }

    /// The times until `end`, at which this subflow is on the path.
    pub(super) fn read(&self, subflow: Option<&Subflow>, end: Time) -> LimitedTime {
        let goes_on = subflow.filter(|one| one.is_open() && one.endpoint().ports().local == self.port);
        sum(self.past, goes_on.map_or(self.last, |subflow| subflow.endpoint().limited_time(end)))
    }
}

fn sum(one: LimitedTime, other: LimitedTime) -> LimitedTime {
    LimitedTime {
        cwnd: one.cwnd + other.cwnd,
        rwnd: one.rwnd + other.rwnd,
        app: one.app + other.app,
        pacing: one.pacing + other.pacing,
    }
}
