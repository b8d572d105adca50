//! Clients that ask for one thing after the other over one connection: the flow's sender asks, its
//! receiver answers.

use ackclock_trace::{ApplicationSummary, Histogram, RequestsSummary, Spread, VideoSummary};
use ackclock_traffic::{Exchange, Requests, Video};
use ackclock_units::{Span, Time};

use super::exchange::Exchanges;
use crate::host::Host;

/// Both ends of a connection over which one request at a time is answered.
#[derive(Debug)]
pub(crate) struct Client {
    start: Time,
    user: ClientRequests,
    exchanges: Exchanges,
    completion: Histogram,
}

/// The source of a client's requests.
#[derive(Debug)]
pub(super) enum ClientRequests {
    Requests(Requests),
    Video(Box<Video>),
}

impl ClientRequests {
    fn next_at(&self) -> Time {
        match self {
            ClientRequests::Requests(requests) => requests.next_at(),
            ClientRequests::Video(video) => video.next_at(),
        }
    }

    fn is_done(&self) -> bool {
        match self {
            ClientRequests::Requests(requests) => requests.is_done(),
            ClientRequests::Video(video) => video.is_done(),
        }
    }

    fn answered(&mut self, now: Time) -> Option<Span> {
        match self {
            ClientRequests::Requests(requests) => requests.answered(now),
            ClientRequests::Video(video) => video.answered(now),
        }
    }

    fn make(&mut self, now: Time) -> Option<Exchange> {
        match self {
            ClientRequests::Requests(requests) => requests.make(now),
            ClientRequests::Video(video) => video.make(now),
        }
    }
}

impl Client {
    pub(super) fn new(user: ClientRequests, start: Time) -> Client {
        Client { start, user, exchanges: Exchanges::default(), completion: Histogram::new() }
    }

    pub(super) fn next_at(&self) -> Time {
        self.user.next_at()
    }

    pub(super) fn is_done(&self) -> bool {
        self.user.is_done()
    }

    /// The server has something to write.
    pub(super) fn is_answering(&self) -> bool {
        self.exchanges.is_answering()
    }

    /// The client's turn, which has read what there was.
    pub(super) fn act(&mut self, now: Time, sender: &mut Host) {
        if self.exchanges.is_answered(sender)
            && let Some(time) = self.user.answered(now)
        {
            self.completion.add(time.as_nanos());
        }
        if let Some(exchange) = self.user.make(now) {
            self.exchanges.begin(exchange);
        }
        self.exchanges.ask(now, sender);
    }

    /// The server's turn, which has read what there was.
    pub(super) fn serve(&mut self, now: Time, receiver: &mut Host) {
        self.exchanges.serve(now, receiver);
    }

    /// Measurements until `over`, the end of the connection, in a run that ended at `end`.
    pub(super) fn summary(&self, over: Time, end: Time, response_bytes: u64) -> ApplicationSummary {
        match &self.user {
            ClientRequests::Requests(requests) => {
                let active = over.since(self.start);
                let requests = requests_summary(requests, &self.completion, active, response_bytes);
                ApplicationSummary { kind: "request", requests: Some(requests), ..ApplicationSummary::default() }
            }
            ClientRequests::Video(video) => {
                // What is in the buffer is played when the connection has been closed.
                let seen = video.report(end);
                let whole = (seen.played + seen.rebuffering).as_secs_f64();
                let video = VideoSummary {
                    segments: seen.segments,
                    switches: seen.switches,
                    bitrate_bps: seen.bitrate,
                    startup_s: seen.startup.map(Span::as_secs_f64),
                    rebuffers: seen.rebuffers,
                    rebuffering_s: seen.rebuffering.as_secs_f64(),
                    rebuffering_ratio: if whole > 0.0 { seen.rebuffering.as_secs_f64() / whole } else { 0.0 },
                    played_s: seen.played.as_secs_f64(),
                    response_bytes,
                    download_ms: Spread::of(&self.completion, 1e-6),
                };
                ApplicationSummary { kind: "video", video: Some(video), ..ApplicationSummary::default() }
            }
        }
    }
}

/// The summary of a client's requests over the time that its flow was active.
pub(super) fn requests_summary(
    requests: &Requests,
    completion: &Histogram,
    active: Span,
    response_bytes: u64,
) -> RequestsSummary {
    let answered = completion.samples();
    RequestsSummary {
        made: requests.made(),
        answered,
        per_second: if active > Span::ZERO { answered as f64 / active.as_secs_f64() } else { 0.0 },
        response_bytes,
        completion_ms: Spread::of(completion, 1e-6),
    }
}
