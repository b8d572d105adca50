//! Requests and responses over one connection: the flow's sender asks, its receiver answers.

use ackclock_trace::{ApplicationSummary, Histogram, RequestsSummary, Spread};
use ackclock_traffic::{RequestPattern, Requests};
use ackclock_units::{Random, Time};

use crate::host::{Host, Writable};

/// Both ends of a connection over which one request at a time is answered.
#[derive(Debug)]
pub(crate) struct Client {
    start: Time,
    requests: Requests,
    /// What the client's socket has not taken of the request.
    asking: u64,
    /// Where the request ends in the client's stream.
    asked: u64,
    /// The response to write once the request is there.
    owed: u64,
    /// What the server's socket has not taken of the response.
    answering: u64,
    /// Where the response ends in the server's stream.
    answered: u64,
    completion: Histogram,
}

impl Client {
    pub(super) fn new(pattern: &RequestPattern, random: Random, start: Time) -> Client {
        Client {
            start,
            requests: Requests::new(pattern, random, start),
            asking: 0,
            asked: 0,
            owed: 0,
            answering: 0,
            answered: 0,
            completion: Histogram::new(),
        }
    }

    pub(super) fn next_at(&self) -> Time {
        self.requests.next_at()
    }

    pub(super) fn is_done(&self) -> bool {
        self.requests.is_done()
    }

    /// The server has something to write.
    pub(super) fn is_answering(&self) -> bool {
        self.answering > 0
    }

    /// The client's turn, which has read what there was.
    pub(super) fn act(&mut self, now: Time, sender: &mut Host) {
        if self.asking == 0
            && sender.delivered_bytes() >= self.answered
            && let Some(time) = self.requests.answered(now)
        {
            self.completion.add(time.as_nanos());
        }
        if let Some(exchange) = self.requests.make(now) {
            self.asking = exchange.request;
            self.asked += exchange.request;
            self.owed = exchange.response;
            self.answered += exchange.response;
        }
        put(now, sender, &mut self.asking);
    }

    /// The server's turn, which has read what there was.
    pub(super) fn serve(&mut self, now: Time, receiver: &mut Host) {
        if self.owed > 0 && receiver.delivered_bytes() >= self.asked {
            self.answering = std::mem::take(&mut self.owed);
        }
        put(now, receiver, &mut self.answering);
    }

    pub(super) fn summary(&self, end: Time, response_bytes: u64) -> ApplicationSummary {
        let answered = self.completion.samples();
        let active = end.since(self.start).as_secs_f64();
        let requests = RequestsSummary {
            made: self.requests.made(),
            answered,
            per_second: if active > 0.0 { answered as f64 / active } else { 0.0 },
            response_bytes,
            completion_ms: Spread::of(&self.completion, 1e-6),
        };
        ApplicationSummary { kind: "request", requests: Some(requests), ..ApplicationSummary::default() }
    }
}

/// Writes what the socket takes.
fn put(now: Time, host: &mut Host, left: &mut u64) {
    while *left > 0 && host.is_writable() {
        let taken = host.write(now, *left);
        *left -= taken;
        if taken == 0 {
            break;
        }
    }
}
