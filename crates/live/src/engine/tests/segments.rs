//! A host that sends segments, and one that sends the same in packets.

use super::*;
use crate::offload::tests::{SharedPackets, segment, shared};

/// Logs the packets that leave an engine: time, host, and the bytes that a wire would carry.
fn leave(engine: &mut Engine, now: Time, log: &mut Vec<Passed>, longest: &mut u32) {
    while let Some(out) = engine.advance(now) {
        let (mut bytes, offload) = ([out.bytes, out.rest].concat(), out.offload);
        *longest = out.packets.max(*longest);
        if !offload.is_segment() {
            assert_eq!(out.packets, 1);
            if let Some(checksum) = offload.checksum {
                checksum.complete(&mut bytes);
            }
            log.push((out.at, out.node, bytes));
            continue;
        }
        let cut = crate::offload::Segmentation::new(&bytes, offload).expect("a segment");
        let packets: Vec<Vec<u8>> = (0..)
            .map_while(|number| {
                let mut packet = bytes[..cut.lengths().0].to_vec();
                cut.head(number, &mut packet);
                packet.extend_from_slice(&bytes[cut.payload(number)?]);
                cut.checksum().complete(&mut packet);
                Some(packet)
            })
            .collect();
        assert_eq!(packets.len(), out.packets as usize);
        log.extend(packets.into_iter().map(|packet| (out.at, out.node, packet)));
    }
}

/// A network with these queues and rates.
fn network(rate: Option<u64>, codel: bool, impairments: Impairments, mtu: Option<u16>) -> RunSpec {
    let mut spec = spec([true, true], impairments);
    let link = &mut spec.links[0];
    for direction in [&mut link.forward, &mut link.reverse] {
        direction.rate = rate.and_then(Rate::from_bps);
        if codel {
            direction.queue = QueueSpec::Codel(CodelConfig { ecn: true, ..CodelConfig::default() });
        }
    }
    let live = spec.live.as_mut().expect("hosts");
    if let Some(router) = &mut live.pipes[0].router {
        router.mtu = mtu;
    }
    for (node, last) in live.nodes.iter_mut().zip([1, 2]) {
        node.addresses.push((format!("fd00::{last}").parse().expect("an address"), 64));
    }
    spec
}

/// One run, by segments if `offload`.
fn run(
    spec: &RunSpec,
    sent: &[(u64, SharedPackets, usize)],
    offload: bool,
    whole: bool,
) -> (Vec<Passed>, u32, Vec<LiveHost>) {
    let mut engine = Engine::new(spec);
    if whole {
        engine.keep_whole();
    }
    let (mut now, mut log, mut longest) = (Time::ZERO, Vec::new(), 0);
    for (gap, shared, len) in sent {
        let next = now + Span::from_micros(*gap);
        // Also what is late leaves as it would have otherwise.
        if gap % 3 > 0 {
            leave(&mut engine, next, &mut log, &mut longest);
        }
        now = next;
        let payload: Vec<u8> = (0..*len).map(|at| at as u8).collect();
        let (bytes, left, packets) = segment(shared, &payload);
        let from = if shared.from == 1 { 0 } else { 1 };
        if offload {
            let [first, rest] = engine.buffers();
            let split = bytes.len().min(first.len());
            first[..split].copy_from_slice(&bytes[..split]);
            rest[..bytes.len() - split].copy_from_slice(&bytes[split..]);
            let mut seen = Vec::new();
            engine.arrive_offloaded(now, from, bytes.len(), left, |packet| seen.push(packet.to_vec()));
            if whole {
                assert_eq!(seen, packets);
            }
        } else {
            for packet in &packets {
                engine.buffer()[..packet.len()].copy_from_slice(packet);
                engine.arrive(now, from, packet.len());
            }
        }
    }
    leave(&mut engine, now + Span::from_secs(100), &mut log, &mut longest);
    let hosts = engine.hosts().cloned().map(|host| LiveHost { received_segments: 0, sent_segments: 0, ..host });
    (log, longest, hosts.collect())
}

fn sent() -> impl Strategy<Value = Vec<(u64, SharedPackets, usize)>> {
    let one = (0..3000_u64, shared(), 1..30_000_usize, any::<bool>()).prop_map(|(gap, shared, len, back)| {
        let [from, to] = if back { [2, 1] } else { [1, 2] };
        // Neither of them is sent where the network takes no notice of the segment.
        let shared = SharedPackets { from, to, size: shared.size.max(200), ..shared };
        (gap, shared, len)
    });
    prop::collection::vec(one, 1..25)
}

proptest! {
    #![proptest_config(ProptestConfig { cases: 150, ..ProptestConfig::default() })]

    #[test]
    fn segments_are_decided_about_packet_by_packet(
        sent in sent(),
        rate in prop::sample::select(vec![None, Some(20_000_000), Some(5_000_000_000)]),
        codel in any::<bool>(),
        impaired in 0..4,
        mtu in prop::sample::select(vec![None, Some(1300)]),
    ) {
        let impairments = match impaired {
            0 => Impairments::default(),
            1 => lossy(),
            2 => Impairments { corrupt: 0.05, ..Impairments::default() },
            _ => Impairments { duplicate: 0.05, jitter: Span::from_micros(300), ..Impairments::default() },
        };
        let spec = network(rate, codel, impairments, mtu);
        let (expected, _, hosts) = run(&spec, &sent, false, false);
        for whole in [false, true] {
            let (found, longest, its_hosts) = run(&spec, &sent, true, whole);
            prop_assert_eq!(found.len(), expected.len());
            for (found, expected) in found.iter().zip(&expected) {
                // Packets that leave together are due within so much of one another.
                let apart = expected.0.since(found.0);
                prop_assert!(found.0 <= expected.0 && apart <= Span::from_micros(10 * u64::from(longest)));
                prop_assert_eq!((found.1, &found.2), (expected.1, &expected.2));
            }
            prop_assert_eq!(&its_hosts, &hosts);
            if whole {
                prop_assert_eq!(longest.max(1), 1);
                prop_assert_eq!(found, expected.clone());
            }
        }
    }
}

fn one(size: u16) -> SharedPackets {
    SharedPackets {
        six: false,
        udp: false,
        from: 1,
        to: 2,
        class: 0,
        id: 7,
        sequence: 1,
        flags: [false, true, false],
        timestamps: true,
        size,
    }
}

#[test]
fn what_is_due_together_leaves_as_one() {
    // 44 packets of 1448 bytes, which a link without limits passes on at once.
    let sent = [(0, one(1448), 44 * 1448)];
    let (log, longest, _) = run(&network(None, false, Impairments::default(), None), &sent, true, false);
    assert_eq!((log.len(), longest), (44, 44));
    // At 100 Mbit/s they are 120 us apart, at 5 Gbit/s 2.4 us.
    for (rate, expected) in [(100_000_000, 1), (5_000_000_000, 44)] {
        let (log, longest, _) = run(&network(Some(rate), false, Impairments::default(), None), &sent, true, false);
        assert_eq!((log.len(), longest), (44, expected));
    }
}

#[test]
fn after_a_warm_up_segments_cost_no_memory() {
    let mut engine = Engine::new(&network(Some(1_000_000_000), false, Impairments::default(), None));
    let (bytes, offload, packets) = segment(&one(1448), &[1; 40 * 1448]);
    let mut asked = 0;
    for round in 0..2000_u64 {
        let now = Time::ZERO + Span::from_micros(500 * round);
        let count = allocations(|| {
            while engine.advance(now).is_some() {}
            let [first, rest] = engine.buffers();
            let split = first.len();
            first.copy_from_slice(&bytes[..split]);
            rest[..bytes.len() - split].copy_from_slice(&bytes[split..]);
            engine.arrive_offloaded(now, 0, bytes.len(), offload, |_| {});
        });
        if round >= 1000 {
            asked += count.count;
        }
    }
    assert_eq!(asked, 0);
    assert_eq!(engine.hosts().next().expect("a host").received_packets, 2000 * packets.len() as u64);
}

#[test]
fn a_segment_that_cannot_be_cut_is_counted_and_goes_nowhere() {
    let mut engine = Engine::new(&network(None, false, Impairments::default(), None));
    let (bytes, offload, _) = segment(&one(1000), &[1; 5000]);
    let [first, rest] = engine.buffers();
    let split = first.len();
    first.copy_from_slice(&bytes[..split]);
    rest[..bytes.len() - split].copy_from_slice(&bytes[split..]);
    engine.arrive_offloaded(Time::ZERO, 0, bytes.len() - 1, offload, |_| panic!("a packet"));
    assert!(engine.advance(Time::from_secs(1)).is_none());
    let host = engine.hosts().next().expect("a host");
    assert_eq!((host.received_packets, host.truncated), (1, 1));
}
