//! Completion times of flows by their sizes.

use ackclock_trace::{Histogram, Recoveries, SentPackets, Spread, WorkloadSummary, slowdown_millionths};
use ackclock_units::{Rate, Span, Time};

use super::Flow;
use super::counts::EndCounts;
use crate::host::Host;
use crate::index::DirectionId;
use crate::spec::{FlowGroup, HostSpec, LinkSpec, Overhead};

/// The outcome of a flow of fixed size.
#[derive(Clone, Copy, Debug)]
pub(crate) struct FlowOutcome {
    pub(crate) start: Time,
    pub(crate) completed: Option<Time>,
    pub(crate) sent: SentPackets,
    pub(crate) recoveries: Recoveries,
}

impl Flow {
    /// The flow's outcome.
    pub(crate) fn outcome(&self, [sender, receiver]: [&Host; 2]) -> FlowOutcome {
        let EndCounts { sent, recoveries, .. } = EndCounts::of(sender, receiver);
        FlowOutcome { start: self.start, completed: self.completed, sent, recoveries }
    }
}

/// The shortest possible time of a transfer: the base round-trip time, and the time that the
/// slowest link takes for its packets.
#[derive(Clone, Debug)]
pub(crate) struct Ideal {
    rtt: Span,
    /// Payload bytes of a full packet.
    payload: u64,
    /// Bytes of its headers.
    headers: u64,
    /// Rates of the links, with their framing of packets.
    links: Vec<(Rate, Overhead)>,
}

impl Ideal {
    /// IPv4 and TCP without options.
    const HEADERS: u64 = 40;
    /// The timestamps option, padded.
    const TIMESTAMPS: u64 = 12;

    pub(crate) fn of(group: &FlowGroup, links: &[LinkSpec]) -> Ideal {
        let direction = |&link: &usize| {
            if group.reverse { DirectionId::reverse(link) } else { DirectionId::forward(link) }
        };
        Ideal::along(group, &group.path.iter().map(direction).collect::<Vec<_>>(), links)
    }

    /// That of a flow whose data takes a path of its own, and its ACKs back over the same links.
    pub(crate) fn along(group: &FlowGroup, path: &[DirectionId], links: &[LinkSpec]) -> Ideal {
        let path = || path.iter().filter_map(|&direction| Some((direction, links.get(direction.link())?)));
        let (mss, timestamps) = match &group.sender {
            HostSpec::Endpoint(endpoint) => (u64::from(endpoint.config.mss), endpoint.config.timestamps),
            HostSpec::Smoltcp(stock) => (u64::from(stock.mtu).saturating_sub(Ideal::HEADERS), stock.timestamps),
            HostSpec::Outside | HostSpec::Datagrams(_) => (1460, true),
        };
        let answers = match &group.receiver {
            HostSpec::Endpoint(endpoint) => endpoint.config.timestamps,
            HostSpec::Smoltcp(stock) => stock.timestamps,
            HostSpec::Outside | HostSpec::Datagrams(_) => true,
        };
        let options = if timestamps && answers { Ideal::TIMESTAMPS } else { 0 };
        let rate = |(direction, link): (DirectionId, &LinkSpec)| {
            let direction = if direction.side() == 0 { &link.forward } else { &link.reverse };
            Some((direction.rate?, direction.overhead))
        };
        Ideal {
            rtt: path().fold(Span::ZERO, |sum, (_, link)| sum + link.forward.delay + link.reverse.delay),
            payload: mss.saturating_sub(options).max(1),
            headers: Ideal::HEADERS + options,
            links: path().filter_map(rate).collect(),
        }
    }

    /// The shortest time for `bytes` of payload; at least 1 ns.
    pub(crate) fn time(&self, bytes: u64) -> Span {
        let (full, rest) = (bytes / self.payload, bytes % self.payload);
        let sent = |&(rate, overhead): &(Rate, Overhead)| {
            let length = |payload: u64| u128::from(overhead.of((self.headers + payload) as u32));
            let last = if rest > 0 { length(rest) } else { 0 };
            let nanos = (u128::from(full) * length(self.payload) + last) * 8_000_000_000 / u128::from(rate.as_bps());
            Span::from_nanos(u64::try_from(nanos).unwrap_or(u64::MAX))
        };
        let slowest = self.links.iter().map(sent).fold(Span::ZERO, Span::max);
        (self.rtt + slowest).max(Span::from_nanos(1))
    }
}

/// Sums over flows of similar sizes.
#[derive(Debug)]
pub(crate) struct ClassSums {
    id: String,
    started: u64,
    completed: u64,
    bytes: u128,
    sent: SentPackets,
    recoveries: Recoveries,
    completed_with_timeouts: u64,
    sizes: Histogram,
    /// Completion times, ns.
    fct: Histogram,
    /// Slowdown, in millionths.
    slowdown: Histogram,
}

impl ClassSums {
    pub(crate) fn new(id: String) -> ClassSums {
        ClassSums {
            id,
            started: 0,
            completed: 0,
            bytes: 0,
            sent: SentPackets::default(),
            recoveries: Recoveries::default(),
            completed_with_timeouts: 0,
            sizes: Histogram::new(),
            fct: Histogram::new(),
            slowdown: Histogram::new(),
        }
    }

    /// Adds a flow that has started.
    pub(crate) fn add(&mut self, bytes: u64, ideal: Span, outcome: &FlowOutcome) {
        self.started += 1;
        self.bytes += u128::from(bytes);
        self.sizes.add(bytes);
        self.sent.add(&outcome.sent);
        self.recoveries.add(&outcome.recoveries);
        if let Some(completed) = outcome.completed {
            let fct = completed.since(outcome.start);
            self.completed += 1;
            self.completed_with_timeouts += u64::from(outcome.recoveries.timeouts > 0);
            self.fct.add(fct.as_nanos());
            self.slowdown.add(slowdown_millionths(fct, ideal));
        }
    }

    /// The summary, where flows arrived for so long.
    pub(crate) fn summary(&self, arriving: Span) -> WorkloadSummary {
        WorkloadSummary {
            id: self.id.clone(),
            started: self.started,
            completed: self.completed,
            unfinished: self.started - self.completed,
            offered_bps: if arriving > Span::ZERO { self.bytes as f64 * 8.0 / arriving.as_secs_f64() } else { 0.0 },
            retransmitted_packets: self.sent.retransmitted_packets,
            timeouts: self.recoveries.timeouts,
            completed_with_timeouts: self.completed_with_timeouts,
            size_bytes: Spread::of(&self.sizes, 1.0),
            fct_ms: Spread::of(&self.fct, 1e-6),
            slowdown: Spread::of(&self.slowdown, 1e-6),
            requests: None,
        }
    }
}
