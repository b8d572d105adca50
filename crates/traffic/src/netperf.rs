//! The sender of netperf's stream test, run again and again: which connection it opens or waits for
//! next.
//!
//! Each test, a try, has two connections. Over the first one, the control connection, the client
//! sends a request and waits for the response; then it opens the data connection and writes for a
//! time, which begins when that is open. It closes its end and waits until the server has closed
//! too, and for a second response over the control connection, which it closes. A script starts the
//! next test when one has ended, well or not.
//!
//! # Source
//! netperf 2.2pl4, `nettest_bsd.c` (`send_tcp_stream`), `netlib.c` (`establish_control`,
//! `send_request`, `recv_response`, `shutdown_control`), `netlib.h`: requests and responses of 64
//! integers, and 60 s of patience for each of the two responses and for the end of the control
//! connection.
//!
//! # Departures
//! - Programs take no time to start, to answer and to end.

use ackclock_units::{Span, Time};

use crate::request::Exchange;

/// A stream test.
#[derive(Clone, Debug, PartialEq)]
pub struct NetperfPattern {
    /// Time for which the data connection is written to.
    pub length: Span,
    /// The request over the control connection, and each of the two responses.
    pub control: Exchange,
    /// Timeout of a response, and of the control connection's end.
    pub patience: Span,
    /// The most tries; `None` sets no limit.
    pub tries: Option<u64>,
}

/// The state of a connection that the test depends on.
#[derive(Clone, Copy, Debug, Default)]
pub struct ConnectionSeen {
    /// The handshake is over.
    pub open: bool,
    /// The connection has ended, or was given up.
    pub over: bool,
    /// A response has come since this was asked last.
    pub answered: bool,
    /// The server has closed.
    pub ended: bool,
}

/// The next step.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum NetperfStep {
    /// Open the control connection with its request.
    OpenControl,
    /// Open the data connection.
    OpenData,
    /// The server sends its report over the control connection.
    Report,
    /// Close the control connection.
    CloseControl,
    /// Leave both: the try has failed.
    Abandon,
}

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum NetperfPhase {
    /// Waiting for the start of the next try.
    Waiting,
    /// Waiting for the control connection.
    Connecting,
    /// Waiting for the response.
    Asking,
    /// Waiting for the data connection.
    Opening,
    /// Waiting for the end of the data.
    Transferring,
    /// Waiting for the report.
    Reporting,
    /// Waiting for the end of the control connection.
    Closing,
}

/// The client, with what became of its tries.
#[derive(Clone, Debug)]
pub struct Netperf {
    pattern: NetperfPattern,
    phase: NetperfPhase,
    /// The deadline of the phase.
    until: Time,
    /// Time at which the data connection was open.
    begun: Time,
    /// Time of the data in the last try.
    elapsed: Span,
    tries: u64,
    completed: u64,
    failed: u64,
}

impl Netperf {
    /// The first try starts at `start`.
    pub fn new(pattern: &NetperfPattern, start: Time) -> Netperf {
        Netperf {
            pattern: pattern.clone(),
            phase: NetperfPhase::Waiting,
            until: start,
            begun: start,
            elapsed: Span::ZERO,
            tries: 0,
            completed: 0,
            failed: 0,
        }
    }

    /// The test's parameters.
    pub fn pattern(&self) -> &NetperfPattern {
        &self.pattern
    }

    /// Time of the next action that no event on the connections triggers.
    pub fn next_at(&self) -> Time {
        self.until
    }

    /// The last try has ended.
    pub fn is_done(&self) -> bool {
        self.phase == NetperfPhase::Waiting && self.pattern.tries.is_some_and(|most| self.tries >= most)
    }

    /// Tries that have started.
    pub fn tries(&self) -> u64 {
        self.tries
    }

    /// Tries whose data and report have arrived completely.
    pub fn completed(&self) -> u64 {
        self.completed
    }

    /// Tries that were given up.
    pub fn failed(&self) -> u64 {
        self.failed
    }

    /// Time that the data of the last try took, until the server had closed.
    pub fn elapsed(&self) -> Span {
        self.elapsed
    }

    /// Returns the next step, if one is due. Call it again after each step.
    pub fn step(&mut self, now: Time, control: ConnectionSeen, data: ConnectionSeen) -> Option<NetperfStep> {
        let expired = now >= self.until;
        match self.phase {
            NetperfPhase::Waiting if self.is_done() => {
                self.until = Time::NEVER;
                None
            }
            NetperfPhase::Waiting if expired => {
                self.tries += 1;
                self.enter(NetperfPhase::Connecting, Time::NEVER, NetperfStep::OpenControl)
            }
            NetperfPhase::Connecting if control.over => self.fail(now),
            NetperfPhase::Connecting if control.open => {
                (self.phase, self.until) = (NetperfPhase::Asking, now + self.pattern.patience);
                None
            }
            NetperfPhase::Asking if control.answered => {
                self.enter(NetperfPhase::Opening, Time::NEVER, NetperfStep::OpenData)
            }
            NetperfPhase::Opening if data.over => self.fail(now),
            NetperfPhase::Opening if data.open => {
                (self.phase, self.begun) = (NetperfPhase::Transferring, now);
                None
            }
            NetperfPhase::Transferring if data.ended => {
                self.elapsed = now.since(self.begun);
                self.enter(NetperfPhase::Reporting, now + self.pattern.patience, NetperfStep::Report)
            }
            NetperfPhase::Transferring if data.over => self.fail(now),
            NetperfPhase::Reporting if control.answered => {
                self.completed += 1;
                self.enter(NetperfPhase::Closing, now + self.pattern.patience, NetperfStep::CloseControl)
            }
            NetperfPhase::Asking | NetperfPhase::Reporting if expired || control.over => self.fail(now),
            NetperfPhase::Closing if control.ended || control.over || expired => {
                (self.phase, self.until) = (NetperfPhase::Waiting, now);
                self.step(now, ConnectionSeen::default(), ConnectionSeen::default())
            }
            _ => None,
        }
    }

    fn enter(&mut self, phase: NetperfPhase, until: Time, step: NetperfStep) -> Option<NetperfStep> {
        (self.phase, self.until) = (phase, until);
        Some(step)
    }

    fn fail(&mut self, now: Time) -> Option<NetperfStep> {
        self.failed += 1;
        self.enter(NetperfPhase::Waiting, now, NetperfStep::Abandon)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    const NONE: ConnectionSeen = ConnectionSeen { open: false, over: false, answered: false, ended: false };
    const OPEN: ConnectionSeen = ConnectionSeen { open: true, ..NONE };

    fn at(seconds: u64) -> Time {
        Time::from_secs(seconds)
    }

    fn netperf() -> Netperf {
        let control = Exchange { request: 256, response: 256 };
        let pattern =
            NetperfPattern { length: Span::from_secs(30), control, patience: Span::from_secs(60), tries: Some(2) };
        Netperf::new(&pattern, at(5))
    }

    #[test]
    fn a_try_that_completes_is_followed_by_the_next() {
        let mut netperf = netperf();
        assert_eq!((netperf.next_at(), netperf.step(at(4), NONE, NONE)), (at(5), None));
        assert_eq!(netperf.step(at(5), NONE, NONE), Some(NetperfStep::OpenControl));
        assert_eq!((netperf.step(at(8), OPEN, NONE), netperf.next_at()), (None, at(68)));
        let answered = ConnectionSeen { answered: true, ..OPEN };
        assert_eq!(netperf.step(at(9), answered, NONE), Some(NetperfStep::OpenData));
        assert_eq!((netperf.step(at(12), OPEN, OPEN), netperf.next_at()), (None, Time::NEVER));
        let ended = ConnectionSeen { ended: true, ..OPEN };
        assert_eq!(netperf.step(at(43), OPEN, ended), Some(NetperfStep::Report));
        // From the handshake of the data connection to the end of the server's side.
        assert_eq!(netperf.elapsed(), Span::from_secs(31));
        assert_eq!(netperf.step(at(44), answered, ended), Some(NetperfStep::CloseControl));
        assert_eq!(netperf.step(at(45), ended, NONE), Some(NetperfStep::OpenControl));
        assert_eq!((netperf.tries(), netperf.completed(), netperf.failed()), (2, 1, 0));
    }

    #[test]
    fn a_try_that_fails_is_left_and_followed_by_the_next() {
        let over = ConnectionSeen { over: true, ..NONE };
        let mut netperf = netperf();
        assert_eq!(netperf.step(at(5), NONE, NONE), Some(NetperfStep::OpenControl));
        assert_eq!(netperf.step(at(194), over, NONE), Some(NetperfStep::Abandon));
        assert_eq!(netperf.step(at(194), NONE, NONE), Some(NetperfStep::OpenControl));
        // No response within a minute.
        assert_eq!(netperf.step(at(195), OPEN, NONE), None);
        assert_eq!(netperf.step(at(254), OPEN, NONE), None);
        assert_eq!(netperf.step(at(255), OPEN, NONE), Some(NetperfStep::Abandon));
        assert_eq!((netperf.tries(), netperf.completed(), netperf.failed()), (2, 0, 2));
        // There are two.
        assert!(netperf.is_done());
        assert_eq!((netperf.step(at(255), NONE, NONE), netperf.next_at()), (None, Time::NEVER));
    }
}
