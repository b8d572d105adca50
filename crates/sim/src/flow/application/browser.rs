//! Clients that open and close connections of their own: a browser, or one with a connection for
//! each request. The connections are flows that come and go ([`Connection`] is their application);
//! what is measured on them is added to what is measured on the client's flow, whose own connection
//! stays closed.
//!
//! [`Connection`]: super::ClientConnection

use ackclock_trace::{ApplicationSummary, Histogram, PagesSummary, Spread};
use ackclock_traffic::{Exchange, ProbeTimes, Requests, Web};
use ackclock_units::Time;

use super::client::requests_summary;
use super::netperf::Tries;
use super::probes::{Probes, Steps};
use crate::flow::counts::EndCounts;
use crate::host::Host;
use crate::index::FlowId;

/// Such a client.
#[derive(Debug)]
pub(crate) struct Browser {
    start: Time,
    user: BrowserRequests,
    /// The most connections at a time, those that only close left out.
    most: usize,
    persistent: bool,
    /// Open connections without a request, ...
    idle: Vec<FlowId>,
    /// ... and how many there are with one.
    busy: usize,
    times: Histogram,
    /// Counts of the connections that are over.
    counts: EndCounts,
}

/// The source of a client's requests.
#[derive(Debug)]
pub(super) enum BrowserRequests {
    Requests(Requests),
    Web(Box<Web>),
    Probes(Box<Probes>),
    Netperf(Box<Tries>),
}

/// The connection for a request.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum ConnectionChoice {
    /// A new connection.
    New,
    Open(FlowId),
}

impl Browser {
    pub(super) fn new(user: BrowserRequests, start: Time, most: usize, persistent: bool) -> Browser {
        Browser {
            start,
            user,
            most,
            persistent,
            idle: Vec::new(),
            busy: 0,
            times: Histogram::new(),
            counts: EndCounts::default(),
        }
    }

    pub(super) fn next_at(&self) -> Time {
        match &self.user {
            BrowserRequests::Requests(requests) => requests.next_at(),
            BrowserRequests::Web(web) => web.next_at(),
            BrowserRequests::Probes(probes) => probes.next_at(),
            BrowserRequests::Netperf(tries) => tries.next_at(),
        }
    }

    /// Returns true if no further requests will be made.
    pub(crate) fn is_done(&self) -> bool {
        match &self.user {
            BrowserRequests::Requests(requests) => requests.is_done(),
            BrowserRequests::Web(web) => web.is_done(),
            BrowserRequests::Netperf(tries) => tries.client.is_done(),
            BrowserRequests::Probes(_) => false,
        }
    }

    /// A connection is for one request.
    pub(crate) fn is_single(&self) -> bool {
        !self.persistent
    }

    /// The next request and its connection, if there is a request and a connection is free.
    pub(crate) fn make(&mut self, now: Time) -> Option<(Exchange, ConnectionChoice)> {
        if self.idle.is_empty() && self.busy >= self.most {
            if let BrowserRequests::Probes(probes) = &mut self.user {
                probes.skip(now);
            }
            return None;
        }
        let exchange = match &mut self.user {
            BrowserRequests::Requests(requests) => requests.make(now),
            BrowserRequests::Web(web) => web.make(now),
            BrowserRequests::Probes(probes) => probes.make(now),
            // Its connections are no exchanges.
            BrowserRequests::Netperf(_) => None,
        }?;
        self.busy += 1;
        // The one that was used last has the widest window.
        Some((exchange, self.idle.pop().map_or(ConnectionChoice::New, ConnectionChoice::Open)))
    }

    /// A second request on the same connection, behind the first one.
    pub(crate) fn then(&self) -> Option<Exchange> {
        match &self.user {
            BrowserRequests::Probes(probes) => probes.then(),
            BrowserRequests::Requests(_) | BrowserRequests::Web(_) | BrowserRequests::Netperf(_) => None,
        }
    }

    /// The tries of netperf, if it is one.
    pub(crate) fn tries(&mut self) -> Option<&mut Tries> {
        match &mut self.user {
            BrowserRequests::Netperf(tries) => Some(tries),
            BrowserRequests::Requests(_) | BrowserRequests::Web(_) | BrowserRequests::Probes(_) => None,
        }
    }

    /// Returns true if the client sends probes of responsiveness.
    pub(crate) fn is_probing(&self) -> bool {
        matches!(self.user, BrowserRequests::Probes(_))
    }

    /// Times of probes of responsiveness, if the client sends any.
    pub(super) fn probe_times(&self) -> Option<&ProbeTimes> {
        match &self.user {
            BrowserRequests::Probes(probes) => Some(probes.samples()),
            BrowserRequests::Requests(_) | BrowserRequests::Web(_) | BrowserRequests::Netperf(_) => None,
        }
    }

    /// The answer on a connection has come, which has taken these steps.
    pub(crate) fn answered(&mut self, now: Time, connection: FlowId, steps: Steps) {
        self.busy -= 1;
        if self.persistent {
            self.idle.push(connection);
        }
        let time = match &mut self.user {
            BrowserRequests::Requests(requests) => requests.answered(now),
            BrowserRequests::Web(web) => web.answered(now),
            BrowserRequests::Probes(probes) => {
                probes.answered(now, steps);
                None
            }
            BrowserRequests::Netperf(_) => None,
        };
        if let Some(time) = time {
            self.times.add(time.as_nanos());
        }
    }

    /// Connections that are not needed any more.
    pub(crate) fn take_idle(&mut self) -> Vec<FlowId> {
        std::mem::take(&mut self.idle)
    }

    /// A connection is over, or the run: what its ends have counted.
    pub(crate) fn absorb(&mut self, sender: &Host, receiver: &Host) {
        self.counts.add(&EndCounts::of(sender, receiver));
    }

    /// Counts of the connections that are over.
    pub(in crate::flow) fn counts(&self) -> &EndCounts {
        &self.counts
    }

    /// Measurements until `over`, when the client had finished.
    pub(super) fn summary(&self, over: Time) -> ApplicationSummary {
        let active = over.since(self.start);
        match &self.user {
            BrowserRequests::Probes(probes) => probes.summary(),
            BrowserRequests::Netperf(tries) => tries.summary(),
            BrowserRequests::Requests(requests) => {
                let requests = requests_summary(requests, &self.times, active, self.counts.response_bytes);
                ApplicationSummary { kind: "request", requests: Some(requests), ..ApplicationSummary::default() }
            }
            BrowserRequests::Web(web) => {
                let pages = PagesSummary {
                    begun: web.begun(),
                    loaded: self.times.samples(),
                    objects: web.objects(),
                    response_bytes: self.counts.response_bytes,
                    load_ms: Spread::of(&self.times, 1e-6),
                };
                ApplicationSummary { kind: "web", pages: Some(pages), ..ApplicationSummary::default() }
            }
        }
    }
}
