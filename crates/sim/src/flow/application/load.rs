//! A connection with load and probes between it, as HTTP/2 puts several streams on one connection:
//! the flow's sender is the client, its receiver the server.
//!
//! A probe's request and its response are written behind what their sockets already hold, and
//! before any further load: both send buffers and the network's queues count.
//!
//! # Departures
//! - The rate by which load is replenished is the flight over the smoothed round-trip time, not a
//!   rate that an application has measured.
//! - A socket that takes half of a block is no obstacle: the next thing that it takes may be a
//!   probe, while HTTP/2 would finish its frame of up to 16 kB first.

use std::collections::VecDeque;

use ackclock_trace::{ApplicationSummary, Histogram, LoadSummary, ProbesSummary, Spread};
use ackclock_traffic::{LoadPattern, ProbeTicks, ProbeTimes, Transfer};
use ackclock_units::{Random, Span, Time};

use crate::host::{Host, Writable};

/// The unit in which load is written.
#[derive(Clone, Copy, Debug)]
struct Block {
    /// Bytes per write.
    write_size: u64,
    /// Time of transmission that is buffered ahead; `None` fills the socket.
    replenish: Option<Span>,
}

impl Block {
    /// The bytes that may be written: as many as the windows allow at once, and as many as the
    /// connection sends in the time to replenish, at the rate of a flight in each round trip. At
    /// least a byte keeps the sender's timers running.
    fn room(&self, host: &Host) -> u64 {
        let (Some(replenish), Host::Endpoint(endpoint)) = (self.replenish, host) else { return u64::MAX };
        let unsent = endpoint.sender().sequence().unsent();
        let flight = endpoint.sender().sequence().unacknowledged().saturating_sub(unsent);
        let window = endpoint.sender().cwnd().min(endpoint.sender().sequence().window()).saturating_sub(flight);
        let ahead = endpoint.sender().rtt().srtt().filter(|&srtt| srtt > Span::ZERO).map_or(0, |srtt| {
            let bytes = u128::from(flight) * u128::from(replenish.as_nanos()) / u128::from(srtt.as_nanos());
            u64::try_from(bytes).unwrap_or(u64::MAX)
        });
        window.saturating_add(ahead).max(1).saturating_sub(unsent)
    }
}

/// One direction of the connection.
#[derive(Debug, Default)]
struct MessageStream {
    /// Messages that the socket has not taken, what is left of the first one included.
    waiting: VecDeque<u64>,
    /// Bytes that the socket has accepted in all.
    written: u64,
    /// Stream offsets of the ends of messages that have not arrived.
    ends: VecDeque<u64>,
}

impl MessageStream {
    /// Writes messages, then as much load as the socket takes.
    fn put(&mut self, now: Time, host: &mut Host, load: Option<Block>) {
        while let Some(left) = self.waiting.front_mut().filter(|_| host.is_writable()) {
            let taken = host.write(now, *left);
            (self.written, *left) = (self.written + taken, *left - taken);
            if *left > 0 {
                return;
            }
            self.waiting.pop_front();
            self.ends.push_back(self.written);
        }
        let Some(load) = load.filter(|_| self.waiting.is_empty()) else { return };
        let mut room = load.room(host);
        while room > 0 && host.is_writable() {
            let most = host.writes_at_once(load.write_size).min(room);
            let taken = host.write(now, most);
            (self.written, room) = (self.written + taken, room - taken);
            if taken < most {
                return;
            }
        }
    }

    /// The number of messages that have arrived since the last call, with this many bytes
    /// delivered.
    fn arrived(&mut self, delivered: u64) -> usize {
        let count = self.ends.iter().take_while(|&&end| end <= delivered).count();
        self.ends.drain(..count);
        count
    }
}

/// Both ends of such a connection.
#[derive(Debug)]
pub(crate) struct LoadConnection {
    pattern: LoadPattern,
    start: Time,
    block: Block,
    ticks: ProbeTicks,
    up: MessageStream,
    down: MessageStream,
    /// The client has requested the load, and the server has the request.
    asked: bool,
    begun: bool,
    /// Sending times of the probes without a response; requests for load are `None`.
    pending: VecDeque<Option<Time>>,
    times: Histogram,
    samples: ProbeTimes,
}

impl LoadConnection {
    /// The first probe comes within an interval from the end of the warm-up, so that those of many
    /// connections are spread over it.
    pub(super) fn new(pattern: &LoadPattern, mut random: Random, start: Time, write_size: u64) -> LoadConnection {
        let phase = Span::from_nanos(random.below(pattern.interval.as_nanos()));
        LoadConnection {
            ticks: ProbeTicks::new(start + pattern.warmup + phase, pattern.interval),
            pattern: pattern.clone(),
            start,
            block: Block { write_size, replenish: pattern.replenish },
            up: MessageStream::default(),
            down: MessageStream::default(),
            asked: false,
            begun: false,
            pending: VecDeque::new(),
            times: Histogram::new(),
            samples: ProbeTimes::default(),
        }
    }

    pub(super) fn next_at(&self) -> Time {
        self.ticks.next_at()
    }

    /// The server has yet to write a response.
    pub(super) fn is_answering(&self) -> bool {
        !self.down.waiting.is_empty()
    }

    /// The client's turn, which has read what there was.
    pub(super) fn act(&mut self, now: Time, client: &mut Host) {
        for _ in 0..self.down.arrived(client.delivered_bytes()) {
            if let Some(since) = self.pending.pop_front().flatten() {
                let time = now.since(since);
                self.times.add(time.as_nanos());
                self.samples.loaded.push(time);
            }
        }
        if !self.asked {
            // What asks for a download, or announces an upload.
            self.asked = true;
            self.ask(None);
        }
        while self.ticks.take(now) {
            self.ask(Some(now));
        }
        self.up.put(now, client, Some(self.block).filter(|_| self.pattern.transfer == Transfer::Upload));
    }

    fn ask(&mut self, since: Option<Time>) {
        self.up.waiting.push_back(self.pattern.http.request);
        self.pending.push_back(since);
    }

    /// The server's turn, which has read what there was.
    pub(super) fn serve(&mut self, now: Time, server: &mut Host) {
        for _ in 0..self.up.arrived(server.delivered_bytes()) {
            self.begun = true;
            self.down.waiting.push_back(self.pattern.http.response);
        }
        let sends = self.begun && self.pattern.transfer == Transfer::Download && !server.peer_finished();
        self.down.put(now, server, Some(self.block).filter(|_| sends));
    }

    /// Times of the probes.
    pub(super) fn samples(&self) -> &ProbeTimes {
        &self.samples
    }

    /// Measurements until `over`.
    pub(super) fn summary(&self, over: Time, client: &Host, server: &Host) -> ApplicationSummary {
        let (transfer, bytes) = match self.pattern.transfer {
            Transfer::Download => ("download", client.delivered_bytes()),
            Transfer::Upload => ("upload", server.delivered_bytes()),
            Transfer::Idle => ("idle", 0),
        };
        let active = over.since(self.start).as_secs_f64();
        let goodput_bps = if active > 0.0 { bytes as f64 * 8.0 / active } else { 0.0 };
        let probes = ProbesSummary {
            made: self.ticks.made(),
            answered: self.times.samples(),
            http_ms: Spread::of(&self.times, 1e-6),
            ..ProbesSummary::default()
        };
        ApplicationSummary {
            kind: "load",
            probes: Some(probes),
            load: Some(LoadSummary { transfer, bytes, goodput_bps }),
            ..ApplicationSummary::default()
        }
    }
}
