//! Requests and responses on a connection, one at a time: the client at the flow's sender asks, the
//! server at its receiver answers.

use ackclock_traffic::Exchange;
use ackclock_units::{Span, Time};

use super::probes::Steps;
use crate::host::{Host, Writable};

/// The bytes that both ends of a connection still have to write, and the ends of request and
/// response in their streams.
#[derive(Debug, Default)]
pub(super) struct Exchanges {
    /// Bytes of the request that the client's socket has not accepted.
    asking: u64,
    /// Offset of the request's end in the client's stream.
    asked: u64,
    /// The response to write once the request is there.
    owed: u64,
    /// Bytes of the response that the server's socket has not accepted.
    answering: u64,
    /// Offset of the response's end in the server's stream.
    answered: u64,
}

impl Exchanges {
    /// The server has something to write.
    pub(super) fn is_answering(&self) -> bool {
        self.answering > 0
    }

    /// The client has all of the responses to what it has asked; `client` has read what there was.
    pub(super) fn is_answered(&self, client: &Host) -> bool {
        self.asking == 0 && client.delivered_bytes() >= self.answered
    }

    /// The server has written all responses to what it was asked.
    fn is_served(&self) -> bool {
        self.answered > 0 && self.owed == 0 && self.answering == 0
    }

    /// The client has a further request.
    pub(super) fn begin(&mut self, exchange: Exchange) {
        self.asking = exchange.request;
        self.asked += exchange.request;
        self.owed = exchange.response;
        self.answered += exchange.response;
    }

    /// The client writes what its socket takes.
    pub(super) fn ask(&mut self, now: Time, client: &mut Host) {
        put(now, client, &mut self.asking);
    }

    /// The server's turn, which has read what there was.
    pub(super) fn serve(&mut self, now: Time, server: &mut Host) {
        if self.owed > 0 && server.delivered_bytes() >= self.asked {
            self.answering = std::mem::take(&mut self.owed);
        }
        put(now, server, &mut self.answering);
    }
}

/// A connection of a client that uses several, at a time or one after the other.
#[derive(Debug, Default)]
pub(crate) struct ClientConnection {
    exchanges: Exchanges,
    /// The connection is for one exchange: the server closes behind its response.
    is_single: bool,
    /// A request was not answered.
    is_busy: bool,
    /// The client was not told of an answer.
    has_answer: bool,
    /// The client has no more requests.
    is_ending: bool,
    /// The request behind the first answer.
    then: Option<Exchange>,
    /// The steps that are done.
    steps: Steps,
    /// The data written for a time without further exchanges.
    stream: Option<TimedWrite>,
}

/// Data for a time, which begins when the connection is open.
#[derive(Clone, Copy, Debug)]
struct TimedWrite {
    length: Span,
    write_size: u64,
    until: Time,
}

impl ClientConnection {
    /// The client writes for a time, in pieces of this size, and closes.
    pub(crate) fn begin_stream(&mut self, length: Span, write_size: u64) {
        self.stream = Some(TimedWrite { length, write_size, until: Time::NEVER });
    }

    /// The server sends this many bytes without a request.
    pub(crate) fn report(&mut self, now: Time, bytes: u64, server: &mut Host) {
        self.begin(Exchange { request: 0, response: bytes }, false);
        self.exchanges.serve(now, server);
    }

    /// The client gives up: no further requests, and responses are ignored.
    pub(crate) fn give_up(&mut self) {
        (self.is_busy, self.is_ending) = (false, true);
    }

    /// Time of the client's next action that no packet triggers.
    pub(super) fn next_at(&self) -> Time {
        self.stream.filter(|_| !self.is_ending).map_or(Time::NEVER, |stream| stream.until)
    }

    fn write_stream(&mut self, now: Time, client: &mut Host) {
        let Some(stream) = self.stream.as_mut().filter(|_| client.is_open()) else { return };
        if stream.until == Time::NEVER {
            stream.until = now + stream.length;
        }
        if now >= stream.until {
            self.is_ending = true;
            return;
        }
        while client.is_writable() {
            let most = client.writes_at_once(stream.write_size);
            if client.write(now, most) < most {
                break;
            }
        }
    }

    /// The client has a request; the only one, if so.
    pub(crate) fn begin(&mut self, exchange: Exchange, is_single: bool) {
        self.exchanges.begin(exchange);
        (self.is_busy, self.is_single) = (true, is_single);
    }

    /// The client has a request, and behind its answer another one, which is the last.
    pub(crate) fn begin_two(&mut self, now: Time, first: Exchange, then: Option<Exchange>) {
        self.begin(first, then.is_none());
        (self.then, self.steps.asked) = (then, Some(now));
    }

    /// The client has no further request.
    pub(crate) fn end(&mut self) {
        self.is_ending = true;
    }

    /// The steps that are done, if an answer has arrived since the last call.
    pub(crate) fn take_answer(&mut self) -> Option<Steps> {
        std::mem::take(&mut self.has_answer).then_some(self.steps)
    }

    pub(super) fn is_done(&self) -> bool {
        self.is_ending && !self.is_busy
    }

    pub(super) fn is_answering(&self) -> bool {
        self.exchanges.is_answering()
    }

    /// The client's turn, which has read what there was.
    pub(super) fn act(&mut self, now: Time, client: &mut Host) {
        if self.steps.asked.is_some() && self.steps.open.is_none() && client.is_open() {
            self.steps.open = Some(now);
        }
        if self.stream.is_some() {
            return self.write_stream(now, client);
        }
        self.exchanges.ask(now, client);
        if let Some(then) = self.then.take_if(|_| self.is_busy && self.exchanges.is_answered(client)) {
            self.steps.secure = Some(now);
            self.begin(then, true);
            self.exchanges.ask(now, client);
        }
        if self.is_busy && self.exchanges.is_answered(client) {
            (self.is_busy, self.has_answer) = (false, true);
            self.is_ending |= self.is_single;
        }
    }

    /// The server's turn, which has read what there was.
    pub(super) fn serve(&mut self, now: Time, server: &mut Host) {
        self.exchanges.serve(now, server);
        if self.is_single && self.exchanges.is_served() {
            server.close(now);
        }
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
