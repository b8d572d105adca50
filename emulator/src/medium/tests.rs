use ackclock_aqm::{Fifo, FifoConfig, Limit, Overhead};
use ackclock_packet::Class;
use ackclock_units::{Ecn, Rate};

use super::*;
use crate::{Impairments, LinkConfig, LinkEvent, LinkEventKind};

/// Two links of 12 Mbit/s, where 1500 bytes take a millisecond, and 5 ms there.
struct Pair {
    medium: Medium,
    links: [Link; 2],
    events: [Vec<LinkEvent>; 2],
    /// The packets offered so far to each, and those that arrived with their times.
    offered: [u32; 2],
    arrived: [Vec<(Time, u32)>; 2],
}

fn ms(millis: u64) -> Time {
    Time::from_millis(millis)
}

fn us(micros: u64) -> Time {
    Time::from_micros(micros)
}

fn constant(span: Span) -> Distribution {
    Distribution::constant(span.as_nanos() as f64).unwrap()
}

impl Pair {
    fn new(aggregate_packets: u32, aggregate_time: Span, contention: Distribution) -> Pair {
        let random = |name| Random::for_component(1, 0, name);
        let link = |name| {
            let config = LinkConfig {
                rate: Rate::from_bps(12_000_000),
                delay: Span::from_millis(5),
                burst: None,
                overhead: Overhead::default(),
                impairments: Impairments::default(),
            };
            let queue = Box::new(Fifo::new(FifoConfig { limit: Limit::Packets(1000) }));
            Link::on_medium(config, queue, random(name))
        };
        Pair {
            medium: Medium::new(MediumConfig { aggregate_packets, aggregate_time, contention }, random("medium")),
            links: [link("forward"), link("reverse")],
            events: Default::default(),
            offered: [0; 2],
            arrived: Default::default(),
        }
    }

    fn contend(&mut self, now: Time) {
        let [forward, reverse] = &self.links;
        self.medium.contend(now, [forward, reverse]);
    }

    fn run_until(&mut self, now: Time) {
        loop {
            let (link, at) = self.medium.next();
            if at > now {
                break;
            }
            self.medium.step(&mut self.links[link], &mut self.events[link]);
            self.contend(at);
        }
        for (n, link) in self.links.iter_mut().enumerate() {
            while let Some((at, packet)) = link.deliver(now, &mut self.events[n]) {
                self.arrived[n].push((at, packet.slot));
            }
        }
    }

    fn offer(&mut self, now: Time, link: usize, bytes: u32) {
        self.run_until(now);
        let packet = Packet {
            flow_hash: 0,
            slot: self.offered[link],
            wire_len: bytes,
            route: 0,
            hop: 0,
            ecn: Ecn::NotEct,
            class: Class::default(),
        };
        self.offered[link] += 1;
        self.links[link].offer(now, packet, &mut self.events[link]);
        self.medium.offered(link);
        self.contend(now);
    }

    /// Keeps a link's queue at so many packets until the end.
    fn saturate(&mut self, links: &[usize], packets: u64, end: Time) {
        let mut now = Time::ZERO;
        while now < end {
            for &link in links {
                let backlog = self.links[link].queue().backlog().packets;
                (backlog..packets).for_each(|_| self.offer(now, link, 1500));
            }
            now = self.medium.next().1.max(now + Span::from_nanos(1)).min(end);
            self.run_until(now);
        }
        self.run_until(end + Span::from_secs(1));
    }

    /// The times of the starts of aggregates, with their packets.
    fn aggregates(&self, link: usize) -> Vec<(Time, usize)> {
        let sent = self.events[link].iter().filter(|event| matches!(event.kind, LinkEventKind::Sent { .. }));
        let times: Vec<Time> = sent.map(|event| event.at).collect();
        times.chunk_by(|one, other| one == other).map(|chunk| (chunk[0], chunk.len())).collect()
    }

    fn arrived_by(&self, link: usize, end: Time) -> f64 {
        self.arrived[link].iter().filter(|&&(at, _)| at <= end).count() as f64
    }
}

#[test]
fn a_lone_packet_waits_for_contention_and_is_sent() {
    let mut pair = Pair::new(4, Span::from_millis(10), constant(Span::from_micros(300)));
    pair.offer(ms(1), 0, 1500);
    pair.run_until(ms(100));
    // 300 us of contention, a millisecond, 5 ms.
    assert_eq!(pair.arrived[0], [(us(7300), 0)]);
    // On an idle medium later on as well.
    pair.offer(ms(200), 1, 750);
    pair.run_until(ms(300));
    assert_eq!(pair.arrived[1], [(us(205_800), 0)]);
}

#[test]
fn an_aggregate_is_what_waits_when_it_begins() {
    let mut pair = Pair::new(4, Span::from_millis(10), constant(Span::from_micros(300)));
    // The second and third come during contention, the fourth during the transmission, and three
    // more to be five behind it.
    for at in [0, 100, 300, 301, 400, 500, 600, 700] {
        pair.offer(us(at), 0, 1500);
    }
    pair.run_until(ms(100));
    // The third comes at the time of the start, for which the medium comes first. Two packets from
    // 0.3 to 2.3 ms; then four from 2.6 to 6.6, and two from 6.9 to 8.9, each with its delay.
    assert_eq!(pair.aggregates(0), [(us(300), 2), (us(2600), 4), (us(6900), 2)]);
    let times: Vec<u64> = pair.arrived[0].iter().map(|(at, _)| at.as_nanos() / 1000).collect();
    assert_eq!(times, [7300, 7300, 11_600, 11_600, 11_600, 11_600, 13_900, 13_900]);
    assert!(pair.arrived[0].iter().map(|&(_, slot)| slot).eq(0..8));
}

#[test]
fn an_aggregate_keeps_to_its_airtime() {
    // Three of a millisecond are within 3.5 ms, the fourth is not; one alone is sent however long.
    let mut pair = Pair::new(64, Span::from_micros(3500), constant(Span::from_micros(100)));
    (0..8).for_each(|_| pair.offer(Time::ZERO, 0, 1500));
    pair.run_until(ms(100));
    assert_eq!(pair.aggregates(0).iter().map(|&(_, packets)| packets).collect::<Vec<_>>(), [3, 3, 2]);
    let mut pair = Pair::new(64, Span::from_micros(500), constant(Span::from_micros(100)));
    (0..3).for_each(|_| pair.offer(Time::ZERO, 0, 1500));
    pair.run_until(ms(100));
    assert_eq!(pair.aggregates(0), [(us(100), 1), (us(1200), 1), (us(2300), 1)]);
    // Exactly as long as it may be.
    let mut pair = Pair::new(64, Span::from_millis(2), constant(Span::from_micros(100)));
    (0..4).for_each(|_| pair.offer(Time::ZERO, 0, 1500));
    pair.run_until(ms(100));
    assert_eq!(pair.aggregates(0), [(us(100), 2), (us(2200), 2)]);
}

#[test]
fn a_saturated_direction_has_the_throughput_of_its_aggregates() {
    for n in [1_u32, 4, 16] {
        // N packets in N ms and 0.5 ms: 1000 N / (N + 0.5) per second.
        let mut pair = Pair::new(n, Span::from_secs(1), constant(Span::from_micros(500)));
        pair.saturate(&[0], 64, Time::from_secs(10));
        let expected = 10_000.0 * f64::from(n) / (f64::from(n) + 0.5);
        let arrived = pair.arrived_by(0, Time::from_secs(10) + Span::from_millis(5));
        assert!((arrived - expected).abs() <= f64::from(2 * n), "{n}: {arrived} {expected}");
        assert!(pair.aggregates(0).iter().all(|&(_, packets)| packets == n as usize), "{n}");
    }
    // With a distribution its mean counts: 4 ms and 1 ms, +- 5 ms * sqrt(2000) of 10 s.
    let exponential = Distribution::exponential(1e6).unwrap();
    let mut pair = Pair::new(4, Span::from_secs(1), exponential);
    pair.saturate(&[0], 64, Time::from_secs(10));
    let arrived = pair.arrived_by(0, Time::from_secs(10) + Span::from_millis(5));
    assert!((arrived / 8000.0 - 1.0).abs() < 0.0224, "{arrived}");
}

#[test]
fn both_directions_share_and_never_overlap() {
    let mut pair = Pair::new(4, Span::from_secs(1), constant(Span::from_micros(500)));
    pair.saturate(&[0, 1], 64, Time::from_secs(20));
    let end = Time::from_secs(20) + Span::from_millis(5);
    let [forward, reverse] = [0, 1].map(|link| pair.arrived_by(link, end));
    // Together as one direction alone: 4 packets in 4.5 ms.
    let expected = 20_000.0 * 4.0 / 4.5;
    assert!((forward + reverse - expected).abs() <= 8.0, "{forward} {reverse}");
    // 4444 opportunities go to either with probability 1/2: +- 5 sqrt(4444 / 4) of 2222, of 4
    // packets each.
    assert!((forward - reverse).abs() < 4.0 * 2.0 * 5.0 * 33.4, "{forward} {reverse}");
    // Each transmission, with the contention before it, is over before the next one begins.
    let mut all: Vec<(Time, usize)> = [0, 1].into_iter().flat_map(|link| pair.aggregates(link)).collect();
    all.sort_unstable();
    let gap = |n: usize| Span::from_millis(n as u64) + Span::from_micros(500);
    assert!(all.windows(2).all(|pair| pair[1].0.since(pair[0].0) >= gap(pair[0].1)));
}

#[test]
fn what_a_link_sees_does_not_depend_on_when_it_is_called() {
    let run = |step: Span| {
        let mut pair = Pair::new(3, Span::from_millis(10), Distribution::exponential(300_000.0).unwrap());
        let mut random = Random::for_component(3, 0, "arrivals");
        let mut at = Time::ZERO;
        for _ in 0..500 {
            let next = at + Span::from_micros(random.below(2000));
            while step > Span::ZERO && at + step < next {
                at += step;
                pair.run_until(at);
            }
            at = next;
            pair.offer(at, random.below(2) as usize, 100 + random.below(1400) as u32);
        }
        pair.run_until(Time::from_secs(100));
        (pair.arrived, pair.events)
    };
    let expected = run(Span::ZERO);
    assert_eq!(expected.0[0].len() + expected.0[1].len(), 500);
    assert_eq!(run(Span::from_micros(7)), expected);
}
