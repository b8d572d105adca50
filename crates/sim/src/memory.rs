//! The memory that a run will take, estimated from its specification.
//!
//! The estimate is of the peak of what is allocated, results included and records not. It is meant
//! to be too high rather than too low: for flows by less than a factor of two, for packets by more
//! where queues and windows have room for many that do not come.

use ackclock_aqm::QueueSpec;
use ackclock_tcp::Endpoint;
use ackclock_trace::FlowSummary;
use ackclock_traffic::Pattern;
use ackclock_units::parameter::{Domain, Value, each};
use ackclock_units::{Rate, Size, Span};

use crate::datagrams::Datagrams;
use crate::flow::Flow;
use crate::host::Host;
use crate::spec::{Application, DatagramApplication, DirectionSpec, FlowGroup, FlowSpec, HostSpec, LinkSpec};

/// A flow's other allocations: congestion control, names, scoreboard and buffers of one segment,
/// histograms of typical values. Bytes, as below.
const FLOW_BESIDE: u64 = 3_500;
/// An application other than bulk transfer, with its messages on the way.
const APPLICATION: u64 = 8_000;
/// A packet on its way: its contents, its place in a queue and on the wire, and what the two ends
/// and the truth keep of it until it is acknowledged. Lists that double may be half empty.
const PACKET: u64 = 1000;
/// A link, its queue and its histograms, both ways.
const LINK: u64 = 60_000;
/// A queue of CAKE: up to eight tins of 1024 queues, and the heap of all.
const CAKE: u64 = 900_000;
/// The fixed part of a run.
const RUN: u64 = 10 << 20;
/// A flow's records of a packet of its first windows, sent, lost and sent again.
const KEPT: u64 = 350;
/// The number of such packets per flow.
const KEPT_PACKETS: u64 = 24;
/// The other allocations of an end that sends or receives datagrams: histograms.
const DATAGRAMS_BESIDE: u64 = 40_000;
/// The window of a sender outside, or of one without.
const OUTSIDE_WINDOW: u64 = 4096;
/// A message that is written and not sent.
const MESSAGE: u64 = 32;
/// A full packet.
const MTU: u64 = 1500;
/// The least initial window, bytes.
const FIRST_ROUND: u64 = 4380;

/// The flows of a group.
#[derive(Clone, Copy, Debug)]
pub struct Population<'a> {
    /// Settings that the flows have in common.
    pub group: &'a FlowGroup,
    /// Flows in the whole run.
    pub count: u64,
    /// Arrivals per second, of flows that come and go.
    pub arrivals: Option<f64>,
    /// Mean size of these flows in bytes, if known.
    pub mean_bytes: Option<u64>,
    /// The most of these flows that may exist at a time.
    pub most_alive: u64,
}

/// The memory of a run, bytes.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Memory {
    /// The flows of each group, and their results.
    pub groups: Vec<u64>,
    /// Packets in queues and on the wires, if windows fill all of the room.
    pub packets: u64,
    /// All else.
    pub others: u64,
}

impl Memory {
    /// The estimate for a run over these links that takes `duration`.
    pub fn of(links: &[LinkSpec], groups: &[Population<'_>], duration: Span) -> Memory {
        let alive = |of: &Population<'_>| of.alive(links, duration);
        let flows = groups.iter().map(|of| alive(of).saturating_mul(flow(of.group)));
        let in_flight = |of: &Population<'_>| alive(of).saturating_mul(window(of.group));
        let packets = groups.iter().map(in_flight).fold(0, u64::saturating_add);
        Memory {
            groups: flows.collect(),
            packets: (packets.min(room(links, duration)).saturating_mul(PACKET))
                .saturating_add(groups.iter().map(|of| of.backlog(links, duration)).fold(0, u64::saturating_add)),
            others: RUN + LINK * links.len() as u64 + CAKE * links.iter().map(cakes).sum::<u64>(),
        }
    }

    /// All of it.
    pub fn total(&self) -> u64 {
        self.without_packets().saturating_add(self.packets)
    }

    /// The bytes needed even if no packet waits.
    pub fn without_packets(&self) -> u64 {
        self.groups.iter().fold(self.others, |sum, &of| sum.saturating_add(of))
    }
}

impl Population<'_> {
    /// The number of flows at a time.
    fn alive(&self, links: &[LinkSpec], duration: Span) -> u64 {
        let Some(per_second) = self.arrivals else { return self.count };
        let arrived = (per_second * duration.as_secs_f64() * 1.1) as u64 + 100;
        let most = self.count.min(self.most_alive).min(arrived);
        let Some(bytes) = self.mean_bytes else { return most };
        let path = || self.group.path.iter().filter_map(|&link| links.get(link));
        let delays =
            path().map(|link| link.forward.delay + link.reverse.delay).fold(Span::ZERO, |sum, delay| sum + delay);
        let rate = path().flat_map(|link| [link.forward.rate, link.reverse.rate]).flatten().map(Rate::as_bps).min();
        let transmission = rate.map_or(0.0, |bps| 8.0 * bytes as f64 / bps as f64);
        let load = per_second * transmission;
        if load >= 0.95 {
            return most;
        }
        // By Little's law: handshake, rounds and closing, and what others on the way take.
        let rounds = 4 + (bytes / FIRST_ROUND + 1).ilog2();
        let time = f64::from(rounds) * delays.as_secs_f64() + 3.0 * transmission / (1.0 - load);
        most.min((per_second * time * 1.5) as u64 + 50)
    }
}

impl Population<'_> {
    /// The number of messages that a flow's application writes in `duration`, where that is known, and
    /// their pattern.
    fn messages(&self, duration: Span) -> Option<(&Pattern, f64)> {
        let pattern = match (&self.group.sender, &self.group.application) {
            (HostSpec::Datagrams(spec), _) => match &spec.application {
                DatagramApplication::Messages { pattern, .. } => pattern,
                _ => return None,
            },
            (_, Application::Messages { pattern, .. }) => pattern,
            _ => return None,
        };
        let written = pattern.mean_rate().map(|bps| bps * duration.as_secs_f64() / 8.0);
        let written = written.or(pattern.bytes().map(|bytes| bytes as f64))?;
        Some((pattern, written / pattern.size().max(1.0)))
    }

    /// The datagrams that these flows send in `duration`; 0 for connections.
    pub(crate) fn datagrams(&self, duration: Span) -> f64 {
        let HostSpec::Datagrams(spec) = &self.group.sender else { return 0.0 };
        let messages = self.messages(duration);
        messages.map_or(0.0, |(pattern, messages)| messages * spec.parts(pattern.size()) * self.count as f64)
    }

    /// The bytes that wait at the end because applications write more than their path carries: for
    /// datagrams limited by the queues' room, for connections the records of each message.
    fn backlog(&self, links: &[LinkSpec], duration: Span) -> u64 {
        let Some((pattern, messages)) = self.messages(duration) else { return 0 };
        let directions = || {
            let of = |link: &LinkSpec| if self.group.reverse { link.reverse.clone() } else { link.forward.clone() };
            self.group.path.iter().filter_map(|&link| links.get(link)).map(of)
        };
        let rate = directions().filter_map(|direction| direction.rate).map(Rate::as_bps).min();
        let carried = rate.map_or(f64::INFINITY, |bps| bps as f64 * duration.as_secs_f64() / 8.0);
        let left = (messages - carried / pattern.size().max(1.0)).max(0.0);
        let each = match &self.group.sender {
            HostSpec::Datagrams(spec) => {
                let packets = left * spec.parts(pattern.size());
                let limits = directions().map(|direction| limit(&direction)).fold(0, u64::saturating_add);
                (packets as u64).min(limits).saturating_mul(PACKET)
            }
            _ => (left as u64).saturating_mul(MESSAGE),
        };
        each.saturating_mul(self.count)
    }
}

/// A flow, with its results.
fn flow(group: &FlowGroup) -> u64 {
    let host = |host: &HostSpec| match host {
        HostSpec::Endpoint(_) => size_of::<Endpoint>() as u64,
        HostSpec::Smoltcp(stock) => stock.send_buffer + stock.receive_buffer + 4096,
        HostSpec::Outside => 1024,
        HostSpec::Datagrams(_) => size_of::<Datagrams>() as u64 + DATAGRAMS_BESIDE,
    };
    let state = size_of::<Flow>() + 2 * size_of::<Host>() + size_of::<FlowSpec>() + size_of::<FlowSummary>();
    let application = if group.application == Application::Bulk { 0 } else { APPLICATION };
    let state = state as u64 + application;
    let connection = state + host(&group.sender) + host(&group.receiver) + FLOW_BESIDE;
    // Of a client with connections of its own as many more may be closing.
    let connections = group.application.connections().map_or(1, |most| 1 + 2 * most as u64);
    connections.saturating_mul(connection + KEPT * window(group).min(KEPT_PACKETS))
}

/// The packets that a flow may have on their way: as many as its sender's or its receiver's buffer
/// holds.
fn window(group: &FlowGroup) -> u64 {
    let of = |host: &HostSpec, sends: bool| match host {
        HostSpec::Endpoint(endpoint) => {
            let config = &endpoint.config;
            let [receive, send] = config.largest_buffers();
            let buffer = if sends { send } else { receive };
            buffer / u64::from(config.mss.max(1)) + 1
        }
        HostSpec::Smoltcp(stock) => stock.send_buffer.max(stock.receive_buffer) / 536 + 1,
        HostSpec::Outside | HostSpec::Datagrams(_) => OUTSIDE_WINDOW,
    };
    let mss = match &group.sender {
        HostSpec::Endpoint(endpoint) => u64::from(endpoint.config.mss.max(1)),
        HostSpec::Smoltcp(_) | HostSpec::Outside | HostSpec::Datagrams(_) => 536,
    };
    let most = group.bytes.map_or(u64::MAX, |bytes| bytes / mss + 1);
    of(&group.sender, true).min(of(&group.receiver, false)).min(most)
}

/// The packets that links have room for. A queue holds no more than its link sends in the run:
/// a window grows by what is acknowledged.
fn room(links: &[LinkSpec], duration: Span) -> u64 {
    let carried = |bps: u64, span: Span| {
        let packets = u128::from(bps) * u128::from(span.as_nanos()) / (8_000_000_000 * u128::from(MTU));
        u64::try_from(packets).unwrap_or(u64::MAX)
    };
    let of = |direction: &DirectionSpec| match direction.rate {
        Some(rate) => {
            let wire = carried(rate.as_bps(), direction.delay + direction.impairments.jitter);
            limit(direction).min(carried(rate.as_bps(), duration)).saturating_add(wire)
        }
        None => u64::MAX,
    };
    // ACKs on the way back are of packets that were on the way.
    links.iter().map(|link| of(&link.forward).max(of(&link.reverse))).fold(1000, u64::saturating_add)
}

/// The queues of a link, or of their classes, that are CAKE.
fn cakes(link: &LinkSpec) -> u64 {
    let directions = [&link.forward, &link.reverse];
    let queues = directions.iter().flat_map(|direction| direction.queue.leaves().chain([&direction.queue]));
    queues.filter(|queue| matches!(queue, QueueSpec::Cake(_))).count() as u64
}

/// The packets that the queue of a direction takes, whatever it becomes.
fn limit(direction: &DirectionSpec) -> u64 {
    let changes = direction.course.schedule.iter().filter_map(|change| change.queue.as_ref());
    changes.chain([&direction.queue]).map(limit_of).max().unwrap_or(0)
}

fn limit_of(queue: &QueueSpec) -> u64 {
    if let QueueSpec::Cake(config) = queue {
        return config.most_packets();
    }
    if queue.is_tree() {
        let direct = match queue {
            QueueSpec::Htb(config) => config.direct_qlen,
            QueueSpec::Hfsc(config) => config.direct_qlen,
            QueueSpec::Qfq(config) => config.direct_qlen,
            _ => 0,
        };
        return queue.leaves().map(limit_of).fold(direct, u64::saturating_add);
    }
    let mut limit = u64::MAX;
    each(&mut queue.clone(), &mut |parameter, value| {
        if parameter.name == "limit" {
            limit = match value {
                Value::Whole(bytes) if matches!(parameter.domain, Domain::Bytes(..)) => bytes / MTU * 2,
                Value::Size(Size::Bytes(bytes)) => bytes / MTU * 2,
                Value::Size(Size::Packets(packets)) | Value::Whole(packets) => packets,
                Value::Number(packets) => packets as u64,
                _ => limit,
            };
        }
        None
    });
    limit
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn sums_saturate() {
        let memory = Memory { groups: vec![u64::MAX, 7], packets: u64::MAX, others: 1 };
        assert_eq!(memory.total(), u64::MAX);
        assert_eq!(Memory::of(&[], &[], Span::ZERO).total(), RUN);
    }
}
