//! Links joined to a network, for programs that bring their own hosts and their own time.
//!
//! A packet takes a route: some links, one after the other. Its contents are whatever the caller
//! sends, mostly bytes; the network looks only at what queues look at.

use std::collections::VecDeque;

use ackclock_packet::{Class, Packet, Pool};
use ackclock_units::{Ecn, Time};

use crate::{Link, LinkEvent, LinkEventKind};

/// A link of a [`Network`].
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub struct LinkId(usize);

/// A route of a [`Network`].
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub struct RouteId(u32);

/// The properties of a packet that queues use.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Header {
    /// Bytes of the packet, IP header included.
    pub bytes: u32,
    /// ECN codepoint.
    pub ecn: Ecn,
    /// A hash of the flow, the same for all its packets in one direction
    /// ([`ackclock_packet::flow_hash`]).
    pub flow_hash: u64,
    /// Differentiated services codepoint, 0 to 63.
    pub dscp: u8,
}

/// A packet at the end of its route.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Arrival<T> {
    /// Time of arrival.
    pub at: Time,
    /// The packet's route.
    pub route: RouteId,
    /// The codepoint, as marked on the way.
    pub ecn: Ecn,
    /// A link has damaged the packet: its checksum is wrong.
    pub is_corrupted: bool,
    /// What was sent.
    pub contents: T,
}

/// Links and routes, and the packets on them. Packets that are due at the same time arrive in the
/// order of the links.
///
/// ```
/// use ackclock_aqm::{CodelConfig, Codel, Overhead};
/// use ackclock_emulator::{Header, Impairments, Link, LinkConfig, Network};
/// use ackclock_units::{Ecn, Random, Rate, Span, Time};
///
/// let config = LinkConfig {
///     rate: Rate::from_bps(10_000_000),
///     burst: None,
///     delay: Span::from_millis(20),
///     overhead: Overhead::default(),
///     impairments: Impairments::default(),
/// };
/// let queue = Codel::new(CodelConfig::default());
/// let mut network = Network::new();
/// let link = network.link(Link::new(config, Box::new(queue), Random::for_component(1, 0, "link")));
/// let route = network.route(&[link]);
///
/// let header = Header { bytes: 1250, ecn: Ecn::Ect0, flow_hash: 7, dscp: 0 };
/// network.offer(Time::ZERO, route, header, b"hello".to_vec());
/// // 1 ms of transmission, and 20 ms of propagation.
/// assert_eq!(network.next_due(), Time::from_millis(21));
/// let arrival = network.poll(Time::from_millis(21)).expect("it has arrived");
/// assert_eq!((arrival.at, arrival.contents), (Time::from_millis(21), b"hello".to_vec()));
/// assert_eq!(network.poll(Time::from_secs(1)), None);
/// ```
#[derive(Debug)]
pub struct Network<T> {
    links: Vec<Link>,
    routes: Vec<Vec<LinkId>>,
    /// `None` once the last copy has arrived.
    contents: Pool<Option<T>>,
    arrived: VecDeque<Arrival<T>>,
    /// Unhandled events of the link last called; empty between calls.
    events: Vec<LinkEvent>,
}

impl<T: Clone> Network<T> {
    /// A network without links.
    pub fn new() -> Network<T> {
        Network {
            links: Vec::new(),
            routes: Vec::new(),
            contents: Pool::new(),
            arrived: VecDeque::new(),
            events: Vec::new(),
        }
    }

    /// Adds a link, in one direction.
    pub fn link(&mut self, link: Link) -> LinkId {
        self.links.push(link);
        LinkId(self.links.len() - 1)
    }

    /// Adds a route over links of this network, in order. Without links, packets arrive when they
    /// are sent.
    ///
    /// # Panics
    /// If a link is of another network, or there are more than 65,535.
    pub fn route(&mut self, links: &[LinkId]) -> RouteId {
        assert!(links.iter().all(|link| link.0 < self.links.len()), "a link of another network");
        assert!(u16::try_from(links.len()).is_ok(), "a route has at most 65,535 links");
        self.routes.push(links.to_vec());
        RouteId(self.routes.len() as u32 - 1)
    }

    /// A link, with its queue and its counters.
    ///
    /// # Panics
    /// If it is of another network.
    pub fn get(&self, link: LinkId) -> &Link {
        &self.links[link.0]
    }

    /// Sends a packet at `now`, which never decreases, after everything that is due until then.
    ///
    /// # Panics
    /// If the route is of another network.
    pub fn offer(&mut self, now: Time, route: RouteId, header: Header, contents: T) {
        self.advance(now);
        let Header { bytes, ecn, flow_hash, dscp } = header;
        let packet = Packet {
            flow_hash,
            slot: self.contents.insert(Some(contents)),
            wire_len: bytes,
            route: route.0,
            hop: 0,
            ecn,
            class: Class::new(dscp, false),
        };
        self.forward(now, packet);
    }

    /// The next packet that has arrived by `now`. Call it until it returns `None`.
    pub fn poll(&mut self, now: Time) -> Option<Arrival<T>> {
        self.advance(now);
        self.arrived.pop_front()
    }

    /// The time at which [`Network::poll`] is to be called next; [`Time::NEVER`] if nothing is on its
    /// way.
    pub fn next_due(&self) -> Time {
        let links = self.links.iter().map(Link::next_due).min().unwrap_or(Time::NEVER);
        self.arrived.front().map_or(links, |arrival| arrival.at.min(links))
    }

    /// Does what is due until `now`.
    fn advance(&mut self, now: Time) {
        loop {
            let dues = self.links.iter().map(Link::next_due).enumerate();
            let Some((link, due)) = dues.min_by_key(|&(_, due)| due).filter(|&(_, due)| due <= now) else { return };
            while let Some((at, packet)) = {
                let next = self.links[link].deliver(due, &mut self.events);
                self.settle();
                next
            } {
                self.forward(at, Packet { hop: packet.hop + 1, ..packet });
            }
        }
    }

    /// Offers a packet to the next link of its route, or hands it over at the end.
    fn forward(&mut self, now: Time, packet: Packet) {
        if let Some(&LinkId(link)) = self.routes[packet.route as usize].get(usize::from(packet.hop)) {
            self.links[link].offer(now, packet, &mut self.events);
            return self.settle();
        }
        let is_last = self.contents.references(packet.slot) == 1;
        let kept = self.contents.get_mut(packet.slot);
        let contents = if is_last { kept.take() } else { kept.clone() };
        self.contents.release(packet.slot);
        let (route, is_corrupted) = (RouteId(packet.route), packet.class.is_corrupted());
        self.arrived.extend(contents.map(|contents| Arrival {
            at: now,
            route,
            ecn: packet.ecn,
            is_corrupted,
            contents,
        }));
    }

    /// Frees the contents of packets that are no more, and keeps those of copies.
    fn settle(&mut self) {
        for event in self.events.drain(..) {
            match event.kind {
                LinkEventKind::Dropped { packet, .. } | LinkEventKind::Lost { packet, .. } => {
                    self.contents.release(packet.slot);
                }
                LinkEventKind::Duplicated { packet } => self.contents.retain(packet.slot),
                LinkEventKind::Offered | LinkEventKind::Sent { .. } | LinkEventKind::Corrupted { .. } => {}
            }
        }
    }
}

impl<T: Clone> Default for Network<T> {
    fn default() -> Network<T> {
        Network::new()
    }
}

#[cfg(test)]
mod tests {
    use ackclock_aqm::{Fifo, FifoConfig, Limit, Overhead};
    use ackclock_units::{Random, Rate, Span};

    use super::*;
    use crate::{Impairments, LinkConfig, Loss};

    /// A link of 10 Mbit/s and 5 ms with a queue of `limit` packets.
    fn link(limit: u64, impairments: Impairments) -> Link {
        let config = LinkConfig {
            rate: Rate::from_bps(10_000_000),
            burst: None,
            delay: Span::from_millis(5),
            overhead: Overhead::default(),
            impairments,
        };
        let queue = Fifo::new(FifoConfig { limit: Limit::Packets(limit) });
        Link::new(config, Box::new(queue), Random::for_component(1, 0, "link"))
    }

    fn header(bytes: u32) -> Header {
        Header { bytes, ecn: Ecn::NotEct, flow_hash: 1, dscp: 0 }
    }

    fn all(network: &mut Network<u32>) -> Vec<(u64, u32)> {
        let arrivals = std::iter::from_fn(|| network.poll(Time::from_secs(100)));
        arrivals.map(|arrival| (arrival.at.as_nanos() / 1000, arrival.contents)).collect()
    }

    /// 1250 bytes take 1 ms on each link: a packet of two links arrives after 12 ms, and those behind
    /// it 1 ms apart.
    #[test]
    fn packets_take_their_routes() {
        let mut network = Network::new();
        let [first, second] = [(); 2].map(|()| network.link(link(100, Impairments::default())));
        let (long, short, none) = (network.route(&[first, second]), network.route(&[second]), network.route(&[]));
        for number in 0..3 {
            network.offer(Time::ZERO, long, header(1250), number);
        }
        network.offer(Time::ZERO, short, header(1250), 10);
        network.offer(Time::ZERO, none, header(1250), 20);
        assert_eq!(network.next_due(), Time::ZERO);
        assert_eq!(all(&mut network), [(0, 20), (6_000, 10), (12_000, 0), (13_000, 1), (14_000, 2)]);
        assert_eq!(network.next_due(), Time::NEVER);
    }

    /// Frequent calls and a single late one give the same arrivals.
    #[test]
    fn late_calls_change_nothing() {
        let run = |step: u64| {
            let mut network = Network::new();
            let first = network.link(link(3, Impairments::default()));
            let second = network.link(link(100, Impairments::default()));
            let route = network.route(&[first, second]);
            let mut arrivals = Vec::new();
            for number in 0..200u32 {
                let at = Time::from_micros(700 * u64::from(number));
                let mut now = at.as_nanos().saturating_sub(700_000);
                while step > 0 && now < at.as_nanos() {
                    arrivals.extend(std::iter::from_fn(|| network.poll(Time::from_nanos(now))));
                    now += step;
                }
                network.offer(at, route, header(1250), number);
            }
            arrivals.extend(std::iter::from_fn(|| network.poll(Time::from_secs(10))));
            arrivals
        };
        let late = run(0);
        // One packet in 0.7 ms, of which 1 ms serves one: seven in ten pass, and what waits at the end.
        assert!((140..146).contains(&late.len()), "{}", late.len());
        assert_eq!(run(50_000), late);
    }

    /// Contents of lost packets are freed, those of copies arrive twice, and damage is told.
    #[test]
    fn impairments_are_booked() {
        let mut network = Network::new();
        let impairments = Impairments { loss: Loss::Iid(0.3), duplicate: 0.2, corrupt: 0.1, ..Impairments::default() };
        let wire = network.link(link(10_000, impairments));
        let route = network.route(&[wire]);
        for number in 0..5_000 {
            network.offer(Time::ZERO, route, header(125), number);
        }
        let arrivals: Vec<_> = std::iter::from_fn(|| network.poll(Time::from_secs(100))).collect();
        let share = arrivals.len() as f64 / 5_000.0;
        // 0.7 * 1.2, with four standard deviations of about 0.007.
        assert!((0.81..0.87).contains(&share), "{share}");
        let damaged = arrivals.iter().filter(|arrival| arrival.is_corrupted).count() as f64 / arrivals.len() as f64;
        assert!((0.08..0.12).contains(&damaged), "{damaged}");
        assert_eq!(network.get(wire).queue().counters().offered.packets, 5_000);
        let slots = (0..5_000).filter(|&slot| network.contents.references(slot) > 0).count();
        assert_eq!(slots, 0);
    }
}
