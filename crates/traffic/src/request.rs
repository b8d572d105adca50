//! A client that asks and waits for the answer before it asks again: a closed loop.
//!
//! # Source
//! - The closed loop of a thinking user: Kleinrock, "Queueing Systems" vol. 2, 1976, chapter 4.
//!
//! # Departures
//! - The server answers at once: it has no service time.

use ackclock_units::{Random, Span, Time};

use crate::distribution::Distribution;

/// The parameters of a client that sends requests.
#[derive(Clone, Debug, PartialEq)]
pub struct RequestPattern {
    /// Size of a request, bytes.
    pub request: Distribution,
    /// Size of the response, bytes.
    pub response: Distribution,
    /// Time from the end of a response to the next request, nanoseconds.
    pub think: Distribution,
    /// The number of requests; `None` is unlimited.
    pub count: Option<u64>,
    /// All go over one connection; otherwise each has its own.
    pub persistent: bool,
}

/// A request and its response.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Exchange {
    /// Bytes of the request.
    pub request: u64,
    /// Bytes of the response.
    pub response: u64,
}

/// The state of the client.
#[derive(Clone, Debug)]
pub struct Requests {
    pattern: RequestPattern,
    random: Random,
    /// Requests made so far.
    made: u64,
    /// Time of the next request; [`Time::NEVER`] while one is outstanding, or after the last one.
    next_at: Time,
    /// Time of the outstanding request.
    since: Option<Time>,
}

impl Requests {
    /// A client that makes its first request at `start`.
    pub fn new(pattern: &RequestPattern, random: Random, start: Time) -> Requests {
        Requests { pattern: pattern.clone(), random, made: 0, next_at: start, since: None }
    }

    /// Time of the next request; [`Time::NEVER`] while one is outstanding, or after the last one.
    pub fn next_at(&self) -> Time {
        self.next_at
    }

    /// Requests made so far.
    pub fn made(&self) -> u64 {
        self.made
    }

    /// The last response is complete.
    pub fn is_done(&self) -> bool {
        self.since.is_none() && self.next_at == Time::NEVER
    }

    /// Makes a request, if it is time.
    pub fn make(&mut self, now: Time) -> Option<Exchange> {
        if self.next_at > now || self.next_at == Time::NEVER {
            return None;
        }
        self.since = Some(self.next_at);
        self.next_at = Time::NEVER;
        self.made += 1;
        let request = self.pattern.request.draw_bytes(&mut self.random);
        Some(Exchange { request, response: self.pattern.response.draw_bytes(&mut self.random) })
    }

    /// The response is complete. Returns how long it took since the request was made.
    pub fn answered(&mut self, now: Time) -> Option<Span> {
        let since = self.since.take()?;
        let think = self.pattern.think.draw_span(&mut self.random);
        if self.pattern.count.is_none_or(|count| self.made < count) {
            self.next_at = now + think;
        }
        Some(now.since(since))
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_client_waits_for_the_answer_and_thinks() {
        let constant = |value: f64| Distribution::constant(value).unwrap();
        let pattern = RequestPattern {
            request: constant(200.0),
            response: constant(5000.0),
            think: constant(3e9),
            count: Some(2),
            persistent: true,
        };
        let mut client = Requests::new(&pattern, Random::for_component(1, 0, "client"), Time::from_secs(1));
        assert_eq!((client.make(Time::ZERO), client.next_at()), (None, Time::from_secs(1)));
        assert_eq!(client.make(Time::from_secs(1)), Some(Exchange { request: 200, response: 5000 }));
        assert_eq!((client.next_at(), client.is_done(), client.make(Time::from_secs(9))), (Time::NEVER, false, None));
        // Three seconds after the answer.
        assert_eq!(client.answered(Time::from_secs(2)), Some(Span::from_secs(1)));
        assert_eq!((client.answered(Time::from_secs(2)), client.next_at()), (None, Time::from_secs(5)));
        assert!(client.make(Time::from_secs(5)).is_some());
        assert_eq!(client.answered(Time::from_secs(7)), Some(Span::from_secs(2)));
        assert_eq!((client.is_done(), client.made()), (true, 2));
    }
}
