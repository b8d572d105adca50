//! Applications that are no bulk transfers: what the sender writes, and what is measured where it
//! arrives.

use std::collections::VecDeque;

use ackclock_trace::{ApplicationSummary, Histogram, MessagesSummary, Spread};
use ackclock_traffic::{Messages, ProbeTimes, Requests, Video, Web};
use ackclock_units::{Random, Span, Time};

use crate::host::{Host, Writable};
use crate::spec::{Application as Spec, FlowSpec};
pub(crate) use browser::{Browser, ConnectionChoice};
use client::{Client, ClientRequests};
pub(crate) use exchange::ClientConnection;
use load::LoadConnection;
pub(crate) use netperf::Tries;

mod browser;
mod client;
mod exchange;
mod load;
mod netperf;
mod probes;

/// The application of a flow at both of its ends.
#[derive(Debug)]
pub(crate) enum ApplicationState {
    Messages(MessageWriter),
    Client(Client),
    Browser(Box<Browser>),
    Connection(ClientConnection),
    Load(Box<LoadConnection>),
}

impl ApplicationState {
    /// `None` for a bulk transfer. `random` is the application's own stream.
    pub(crate) fn new(flow: &FlowSpec, random: impl FnOnce() -> Random) -> Option<Box<ApplicationState>> {
        match &flow.application {
            Spec::Bulk => None,
            Spec::Connection => Some(Box::new(ApplicationState::Connection(ClientConnection::default()))),
            Spec::Messages { kind, pattern } => {
                let messages = Messages::new(pattern, random(), flow.start);
                Some(Box::new(ApplicationState::Messages(MessageWriter::new(kind, messages, flow.bytes))))
            }
            Spec::Requests(pattern) if !pattern.persistent => {
                let user = browser::BrowserRequests::Requests(Requests::new(pattern, random(), flow.start));
                Some(Box::new(ApplicationState::Browser(Browser::new(user, flow.start, 1, false).into())))
            }
            Spec::Web(pattern) => {
                let user = browser::BrowserRequests::Web(Box::new(Web::new(pattern, random(), flow.start)));
                let browser = Browser::new(user, flow.start, pattern.connections, pattern.persistent);
                Some(Box::new(ApplicationState::Browser(browser.into())))
            }
            Spec::Netperf(pattern) => {
                let user = browser::BrowserRequests::Netperf(Box::new(Tries::new(pattern, flow.start)));
                Some(Box::new(ApplicationState::Browser(Browser::new(user, flow.start, 2, false).into())))
            }
            Spec::Requests(pattern) => {
                let user = ClientRequests::Requests(Requests::new(pattern, random(), flow.start));
                Some(Box::new(ApplicationState::Client(Client::new(user, flow.start))))
            }
            Spec::Probe(pattern) => {
                let user = browser::BrowserRequests::Probes(Box::new(probes::Probes::new(pattern, flow.start)));
                let browser = Browser::new(user, flow.start, pattern.most_open(), false);
                Some(Box::new(ApplicationState::Browser(browser.into())))
            }
            Spec::Load(pattern) => {
                let load = LoadConnection::new(pattern, random(), flow.start, flow.write_size);
                Some(Box::new(ApplicationState::Load(load.into())))
            }
            Spec::Video(pattern) => {
                let user = ClientRequests::Video(Box::new(Video::new(pattern, random(), flow.start)));
                Some(Box::new(ApplicationState::Client(Client::new(user, flow.start))))
            }
        }
    }

    /// Time of the next action of the sender's application.
    pub(crate) fn next_at(&self) -> Time {
        match self {
            ApplicationState::Messages(source) => source.next_at(),
            ApplicationState::Client(client) => client.next_at(),
            ApplicationState::Browser(browser) => browser.next_at(),
            ApplicationState::Load(load) => load.next_at(),
            ApplicationState::Connection(connection) => connection.next_at(),
        }
    }

    /// The sender's application does what is due.
    pub(crate) fn act(&mut self, now: Time, sender: &mut Host) {
        match self {
            ApplicationState::Messages(source) => source.write(now, sender),
            ApplicationState::Client(client) => client.act(now, sender),
            // Its connections do.
            ApplicationState::Browser(_) => {}
            ApplicationState::Connection(connection) => connection.act(now, sender),
            ApplicationState::Load(load) => load.act(now, sender),
        }
    }

    /// The sender's application has nothing to do any more.
    pub(crate) fn is_done(&self) -> bool {
        match self {
            ApplicationState::Messages(source) => source.is_done(),
            ApplicationState::Client(client) => client.is_done(),
            ApplicationState::Browser(browser) => browser.is_done(),
            ApplicationState::Connection(connection) => connection.is_done(),
            ApplicationState::Load(_) => false,
        }
    }

    /// Data or an acknowledgment has reached the receiver.
    pub(crate) fn receive(&mut self, now: Time, receiver: &mut Host) {
        match self {
            ApplicationState::Messages(source) => source.arrived(now, receiver.delivered_bytes()),
            ApplicationState::Client(client) => client.serve(now, receiver),
            ApplicationState::Browser(_) => {}
            ApplicationState::Connection(connection) => connection.serve(now, receiver),
            ApplicationState::Load(load) => load.serve(now, receiver),
        }
    }

    /// The receiver has yet to write what its socket did not take.
    pub(crate) fn is_answering(&self) -> bool {
        match self {
            ApplicationState::Messages(_) | ApplicationState::Browser(_) => false,
            ApplicationState::Client(client) => client.is_answering(),
            ApplicationState::Connection(connection) => connection.is_answering(),
            ApplicationState::Load(load) => load.is_answering(),
        }
    }

    /// Measurements until `over`, the end of the flow, in a run that ended at `end`.
    pub(crate) fn summary(&self, over: Time, end: Time, sender: &Host, receiver: &Host) -> ApplicationSummary {
        match self {
            ApplicationState::Messages(source) => source.summary(over),
            ApplicationState::Client(client) => client.summary(over, end, sender.delivered_bytes()),
            ApplicationState::Browser(browser) => browser.summary(over),
            ApplicationState::Connection(_) => ApplicationSummary::default(),
            ApplicationState::Load(load) => load.summary(over, sender, receiver),
        }
    }

    /// Times of probes of responsiveness, if the application sends any.
    pub(crate) fn probe_times(&self) -> Option<&ProbeTimes> {
        match self {
            ApplicationState::Browser(browser) => browser.probe_times(),
            ApplicationState::Load(load) => Some(load.samples()),
            ApplicationState::Messages(_) | ApplicationState::Client(_) | ApplicationState::Connection(_) => None,
        }
    }
}

/// An application that writes messages at times of its own, whatever the network does. While the
/// send buffer is full it waits, as in a blocking call, and then catches up with what has become
/// due.
#[derive(Debug)]
pub(crate) struct MessageWriter {
    kind: &'static str,
    messages: Messages,
    /// Bytes that may still be written, excluding the current message.
    budget: u64,
    /// Bytes of the current message that the socket has not accepted.
    left: u64,
    /// Stream offset of the end of the current message.
    end: u64,
    /// Messages that have not arrived as a whole: when they were due, and where they end.
    on_way: VecDeque<(Time, u64)>,
    written: u64,
    delivered: u64,
    latency: Histogram,
    blocked_since: Option<Time>,
    blocked: Span,
}

impl MessageWriter {
    /// `bytes` bounds what is written in all.
    fn new(kind: &'static str, messages: Messages, bytes: Option<u64>) -> MessageWriter {
        MessageWriter {
            kind,
            messages,
            budget: bytes.unwrap_or(u64::MAX),
            left: 0,
            end: 0,
            on_way: VecDeque::new(),
            written: 0,
            delivered: 0,
            latency: Histogram::new(),
            blocked_since: None,
            blocked: Span::ZERO,
        }
    }

    fn next_at(&self) -> Time {
        // An ACK wakes one that is blocked.
        if self.left > 0 || self.budget == 0 { Time::NEVER } else { self.messages.next_at() }
    }

    fn is_done(&self) -> bool {
        self.left == 0 && (self.budget == 0 || self.messages.next_at() == Time::NEVER)
    }

    fn write(&mut self, now: Time, sender: &mut impl Writable) {
        if self.blocked_since.is_some() && !sender.is_writable() {
            return;
        }
        loop {
            if self.left == 0 && !self.begin(now) {
                break;
            }
            self.left -= sender.write(now, self.left);
            if self.left > 0 {
                self.blocked_since.get_or_insert(now);
                return;
            }
            self.written += 1;
        }
        if let Some(since) = self.blocked_since.take() {
            self.blocked += now.since(since);
        }
    }

    /// Takes the next message in hand, if one is due.
    fn begin(&mut self, now: Time) -> bool {
        if self.budget == 0 {
            return false;
        }
        let Some(message) = self.messages.take(now) else { return false };
        self.left = message.bytes.min(self.budget);
        self.budget -= self.left;
        self.end += self.left;
        self.on_way.push_back((message.at, self.end));
        true
    }

    /// The receiver has this many bytes in order.
    fn arrived(&mut self, now: Time, bytes: u64) {
        while let Some(&(at, _)) = self.on_way.front().filter(|&&(_, end)| end <= bytes) {
            self.on_way.pop_front();
            self.delivered += 1;
            self.latency.add(now.since(at).as_nanos());
        }
    }

    fn summary(&self, end: Time) -> ApplicationSummary {
        let open = self.blocked_since.map_or(Span::ZERO, |since| end.since(since));
        let messages = MessagesSummary {
            written: self.written,
            delivered: self.delivered,
            latency_ms: Spread::of(&self.latency, 1e-6),
            blocked_s: (self.blocked + open).as_secs_f64(),
        };
        ApplicationSummary { kind: self.kind, messages: Some(messages), ..ApplicationSummary::default() }
    }
}
