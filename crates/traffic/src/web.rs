//! A browser that loads pages: a base document, and then the objects that it refers to, over as
//! many connections as there may be.
//!
//! # Source
//! - Pages of a base document and objects with distributions of number and size, and a time to
//!   read: Barford, Crovella, "Generating Representative Web Workloads for Network and Server
//!   Performance Evaluation", SIGMETRICS 1998 (SURGE).
//! - Up to six connections to a host: Chromium's socket pools (`kDefaultMaxSocketsPerGroup`).
//!
//! # Departures
//! - All objects are known once the base document has come as a whole; none refers to others.
//! - The server answers at once, and the browser takes no time to parse or to render.

use std::collections::VecDeque;

use ackclock_units::{Random, Span, Time};

use crate::distribution::Distribution;
use crate::request::Exchange;

/// The pages that a browser loads.
#[derive(Clone, Debug, PartialEq)]
pub struct WebPattern {
    /// Size of a base document, bytes.
    pub page: Distribution,
    /// The number of objects of a page; rounded.
    pub objects: Distribution,
    /// Size of an object, bytes.
    pub object: Distribution,
    /// Size of a request, bytes.
    pub request: Distribution,
    /// Time from the end of a page to the next one, nanoseconds.
    pub think: Distribution,
    /// The number of pages; `None` is unlimited.
    pub pages: Option<u64>,
    /// The most connections at a time, at least one.
    pub connections: usize,
    /// Connections stay open for further objects and pages.
    pub persistent: bool,
}

/// The state of a browser.
#[derive(Clone, Debug)]
pub struct Web {
    pattern: WebPattern,
    random: Random,
    /// Time of the next page; [`Time::NEVER`] while one loads, or after the last one.
    next_at: Time,
    /// Time of the request of the page that loads.
    since: Option<Time>,
    /// The base document has not come.
    is_base: bool,
    /// Requests that have not been sent.
    waiting: VecDeque<Exchange>,
    /// Outstanding requests.
    coming: u64,
    begun: u64,
    objects: u64,
}

impl Web {
    /// A browser that requests its first page at `start`.
    pub fn new(pattern: &WebPattern, random: Random, start: Time) -> Web {
        Web {
            pattern: pattern.clone(),
            random,
            next_at: start,
            since: None,
            is_base: false,
            waiting: VecDeque::new(),
            coming: 0,
            begun: 0,
            objects: 0,
        }
    }

    /// Time of the next page; [`Time::NEVER`] while one loads, or after the last one.
    pub fn next_at(&self) -> Time {
        self.next_at
    }

    /// Pages requested so far.
    pub fn begun(&self) -> u64 {
        self.begun
    }

    /// Documents and objects that have come.
    pub fn objects(&self) -> u64 {
        self.objects
    }

    /// The last page is complete.
    pub fn is_done(&self) -> bool {
        self.since.is_none() && self.next_at == Time::NEVER
    }

    /// Returns true if there is a request to send.
    pub fn has_more(&self, now: Time) -> bool {
        !self.waiting.is_empty() || (self.next_at <= now && self.next_at != Time::NEVER)
    }

    /// Asks for a base document, if it is time, or for an object, if there are any.
    pub fn make(&mut self, now: Time) -> Option<Exchange> {
        if self.next_at <= now && self.next_at != Time::NEVER {
            self.since = Some(self.next_at);
            self.next_at = Time::NEVER;
            self.begun += 1;
            self.is_base = true;
            let response = self.pattern.page.draw_bytes(&mut self.random);
            self.ask_for(response);
        }
        let exchange = self.waiting.pop_front()?;
        self.coming += 1;
        Some(exchange)
    }

    fn ask_for(&mut self, response: u64) {
        let request = self.pattern.request.draw_bytes(&mut self.random);
        self.waiting.push_back(Exchange { request, response });
    }

    /// A document or an object has come. Returns how long the page took, if that was all of it.
    pub fn answered(&mut self, now: Time) -> Option<Span> {
        let since = self.since?;
        self.coming -= 1;
        self.objects += 1;
        if std::mem::take(&mut self.is_base) {
            // Drawn all at once: what the network does changes no page.
            let objects = self.pattern.objects.draw(&mut self.random).round() as u64;
            for _ in 0..objects.min(WebPattern::MOST_OBJECTS) {
                let response = self.pattern.object.draw_bytes(&mut self.random);
                self.ask_for(response);
            }
        }
        if self.coming > 0 || !self.waiting.is_empty() {
            return None;
        }
        self.since = None;
        let think = self.pattern.think.draw_span(&mut self.random);
        if self.pattern.pages.is_none_or(|pages| self.begun < pages) {
            self.next_at = now + think;
        }
        Some(now.since(since))
    }
}

impl WebPattern {
    /// The most objects of a page.
    pub const MOST_OBJECTS: u64 = 10_000;
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_page_is_its_document_and_then_its_objects() {
        let constant = |value: f64| Distribution::constant(value).unwrap();
        let pattern = WebPattern {
            page: constant(5000.0),
            objects: constant(2.0),
            object: constant(700.0),
            request: constant(300.0),
            think: constant(3e9),
            pages: Some(2),
            connections: 6,
            persistent: true,
        };
        let mut web = Web::new(&pattern, Random::for_component(1, 0, "web"), Time::from_secs(1));
        let exchange = |response| Some(Exchange { request: 300, response });
        assert_eq!((web.has_more(Time::ZERO), web.make(Time::ZERO)), (false, None));
        let now = Time::from_secs(1);
        assert_eq!((web.has_more(now), web.make(now), web.make(now)), (true, exchange(5000), None));
        // Only now the objects are known, both at once.
        assert_eq!(web.answered(Time::from_secs(2)), None);
        assert_eq!([web.make(now), web.make(now), web.make(now)], [exchange(700), exchange(700), None]);
        assert_eq!(web.answered(Time::from_secs(3)), None);
        // The page is there 4 s after it was asked for; the next one follows 3 s later.
        assert_eq!(web.answered(Time::from_secs(5)), Some(Span::from_secs(4)));
        assert_eq!((web.answered(Time::from_secs(5)), web.next_at(), web.is_done()), (None, Time::from_secs(8), false));
        let now = Time::from_secs(8);
        assert!(web.make(now).is_some() && web.answered(now).is_none());
        assert!(web.make(now).is_some() && web.answered(now).is_none());
        assert!(web.make(now).is_some());
        assert_eq!(web.answered(Time::from_secs(9)), Some(Span::from_secs(1)));
        assert_eq!((web.is_done(), web.begun(), web.objects()), (true, 2, 6));
    }
}
