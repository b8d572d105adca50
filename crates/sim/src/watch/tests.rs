use ackclock_packet::{Payload, SackBlocks};
use ackclock_units::Span;
use proptest::prelude::*;

use super::*;

const OURS: u16 = 40_000;
const PEER: u16 = 5201;
/// The numbers wrap soon.
const ISN: u32 = u32::MAX - 1500;
const PEER_ISN: u32 = 77;

/// The counts of a watched end that has sent these packets once, of which so much is acknowledged.
fn counted(sent_packets: u64, acked_bytes: u64) -> WatchCounts {
    WatchCounts {
        sent: SentPackets { sent_packets, ..SentPackets::default() },
        progress: Progress { acked_bytes, ..Progress::default() },
        ..WatchCounts::default()
    }
}

fn ms(at: u64) -> Time {
    Time::from_millis(at)
}

/// A segment of the watched end: `len` bytes from byte `offset` of its stream, which acknowledges
/// `acked` bytes of the peer's.
fn data(offset: u32, len: u32, acked: u32) -> Segment {
    Segment {
        source_port: OURS,
        destination_port: PEER,
        seq: ISN.wrapping_add(1).wrapping_add(offset),
        ack: PEER_ISN + 1 + acked,
        flags: Flags::ACK,
        payload: Payload { offset: 0, len },
        ..Segment::default()
    }
}

/// An ACK of the peer's for `acked` bytes, with blocks of bytes.
fn ack(acked: u32, blocks: &[(u32, u32)]) -> Segment {
    let mut sack = SackBlocks::default();
    let number = |byte: u32| ISN.wrapping_add(1).wrapping_add(byte);
    for &(left, right) in blocks {
        assert!(sack.push(number(left), number(right)));
    }
    Segment {
        source_port: PEER,
        destination_port: OURS,
        seq: PEER_ISN + 1,
        ack: number(acked),
        flags: Flags::ACK,
        sack,
        ..Segment::default()
    }
}

/// The watched end opens a connection from a port.
fn open(watch: &mut HeaderWatch, port: u16, isn: u32, [asks, answers]: [Flags; 2]) {
    let syn =
        Segment { source_port: port, destination_port: PEER, seq: isn, flags: Flags::SYN | asks, ..Segment::default() };
    let answer = Segment {
        source_port: PEER,
        destination_port: port,
        seq: PEER_ISN,
        ack: isn.wrapping_add(1),
        flags: Flags::SYN | Flags::ACK | answers,
        ..Segment::default()
    };
    assert_eq!(watch.sends(ms(0), &syn), (0, true));
    let (arrival, turning) = watch.receives(ms(20), &answer);
    assert!(turning && arrival.is_ack && arrival.acked == 0 && arrival.rtt.is_none());
}

fn opened() -> HeaderWatch {
    let mut watch = HeaderWatch::default();
    open(&mut watch, OURS, ISN, [Flags::NONE; 2]);
    watch
}

fn rtt(watch: &mut HeaderWatch, at: u64, segment: &Segment) -> Option<u64> {
    watch.receives(ms(at), segment).0.rtt.map(|rtt| rtt.as_nanos() / 1_000_000)
}

#[test]
fn an_ack_measures_the_newest_segment_that_it_acknowledges() {
    let mut watch = opened();
    assert_eq!(watch.sends(ms(100), &data(0, 1000, 0)), (0, false));
    // The numbers wrap in this one.
    assert_eq!(watch.sends(ms(101), &data(1000, 1000, 0)), (1000, false));
    assert_eq!(watch.sends(ms(103), &data(2000, 1000, 0)), (2000, false));
    assert_eq!(rtt(&mut watch, 121, &ack(2000, &[])), Some(20));
    assert_eq!(rtt(&mut watch, 122, &ack(2000, &[])), None);
    assert_eq!(rtt(&mut watch, 130, &ack(3000, &[])), Some(27));
    let counts = counted(3, 3000);
    assert_eq!(watch.counts(), counts);
}

#[test]
fn what_was_sent_again_measures_nothing() {
    let mut watch = opened();
    for n in 0..4 {
        watch.sends(ms(100), &data(1000 * n, 1000, 0));
    }
    // The second one is lost: the third and the fourth are measured when they are reported, once.
    assert_eq!(rtt(&mut watch, 120, &ack(1000, &[])), Some(20));
    assert_eq!(rtt(&mut watch, 121, &ack(1000, &[(2000, 3000)])), Some(21));
    assert_eq!(rtt(&mut watch, 122, &ack(1000, &[(2000, 4000)])), Some(22));
    assert_eq!(rtt(&mut watch, 123, &ack(1000, &[(2000, 4000)])), None);
    watch.sends(ms(130), &data(1000, 1000, 0));
    watch.sends(ms(130), &data(4000, 1000, 0));
    // Whether this is of the first or of the second transmission is not known (Karn).
    assert_eq!(rtt(&mut watch, 150, &ack(4000, &[])), None);
    assert_eq!(rtt(&mut watch, 151, &ack(5000, &[])), Some(21));
    assert_eq!((watch.counts().sent.sent_packets, watch.counts().sent.retransmitted_packets), (6, 1));
    // It waited for a retransmission.
    watch.sends(ms(200), &data(5000, 1000, 0));
    watch.sends(ms(200), &data(6000, 1000, 0));
    watch.sends(ms(400), &data(5000, 1000, 0));
    assert_eq!(rtt(&mut watch, 420, &ack(7000, &[])), None);
}

#[test]
fn blocks_that_join_measure_what_lies_between() {
    let mut watch = opened();
    for n in 0..6 {
        watch.sends(ms(100 + u64::from(n)), &data(1000 * n, 1000, 0));
    }
    assert_eq!(rtt(&mut watch, 121, &ack(0, &[(1000, 2000)])), Some(20));
    assert_eq!(rtt(&mut watch, 123, &ack(0, &[(3000, 4000), (1000, 2000)])), Some(20));
    // The third was overtaken: 125 - 102.
    assert_eq!(rtt(&mut watch, 125, &ack(0, &[(1000, 4000)])), Some(23));
    // So was the first, 126 - 100; a duplicate (RFC 2883) measures nothing.
    assert_eq!(rtt(&mut watch, 126, &ack(4000, &[])), Some(26));
    assert_eq!(rtt(&mut watch, 127, &ack(4000, &[(1000, 2000)])), None);
    assert_eq!(rtt(&mut watch, 130, &ack(6000, &[])), Some(25));
}

#[test]
fn a_probe_without_data_is_no_retransmission() {
    let mut watch = opened();
    watch.sends(ms(100), &data(0, 1000, 0));
    assert_eq!(rtt(&mut watch, 120, &ack(1000, &[])), Some(20));
    // As Linux sends it: the number before the next one, and nothing.
    watch.sends(ms(200), &data(999, 0, 0));
    assert_eq!(rtt(&mut watch, 220, &ack(1000, &[])), None);
    assert_eq!((watch.counts().sent.sent_packets, watch.counts().sent.retransmitted_packets), (1, 0));
    // With a byte of what was there it is one, whose answer measures nothing.
    watch.sends(ms(300), &data(999, 1, 0));
    assert_eq!(rtt(&mut watch, 320, &ack(1000, &[])), None);
    watch.sends(ms(400), &data(1000, 1000, 0));
    assert_eq!(rtt(&mut watch, 420, &ack(2000, &[])), Some(20));
    assert_eq!((watch.counts().sent.sent_packets, watch.counts().sent.retransmitted_packets), (3, 1));
}

#[test]
fn what_it_acknowledges_was_delivered_to_it() {
    let mut watch = HeaderWatch::default();
    let from_peer = |offset: u32, flags, len| Segment {
        source_port: PEER,
        destination_port: OURS,
        seq: PEER_ISN + offset,
        flags,
        payload: Payload { offset: 0, len },
        ..Segment::default()
    };
    watch.receives(ms(0), &from_peer(0, Flags::SYN, 0));
    let answer = Segment { seq: ISN, flags: Flags::SYN | Flags::ACK, ..data(0, 0, 0) };
    assert_eq!(watch.sends(ms(0), &answer), (0, true));
    watch.receives(ms(1), &from_peer(1, Flags::ACK, 1000));
    watch.receives(ms(1), &from_peer(2001, Flags::ACK, 1000));
    watch.sends(ms(1), &data(0, 0, 1000));
    assert_eq!(watch.counts().progress.delivered_bytes, 1000);
    watch.receives(ms(2), &from_peer(1001, Flags::ACK, 1000));
    watch.sends(ms(2), &data(0, 0, 3000));
    // An old one, and one of what has not come.
    watch.sends(ms(2), &data(0, 0, 1000));
    watch.sends(ms(2), &data(0, 0, 9000));
    assert_eq!(watch.counts().progress.delivered_bytes, 3000);
    assert!(!watch.is_over() && !watch.is_finished());
    // A FIN is no byte of the stream.
    let fin = Flags::ACK | Flags::FIN;
    assert!(watch.receives(ms(3), &from_peer(3001, fin, 0)).1);
    watch.sends(ms(3), &Segment { flags: fin, ..data(0, 0, 3001) });
    assert_eq!(watch.counts().progress.delivered_bytes, 3000);
    assert!(!watch.is_over());
    watch.receives(ms(4), &ack(1, &[]));
    assert!(watch.is_over() && watch.is_finished());
    // Nor is it data, the first time or again.
    watch.sends(ms(5), &Segment { flags: fin, ..data(0, 0, 3001) });
    let counts = watch.counts();
    assert_eq!((counts.progress.acked_bytes, counts.sent.sent_packets, counts.sent.retransmitted_packets), (0, 0, 0));
}

#[test]
fn connections_add_up() {
    let mut watch = opened();
    // Two at once, the second with numbers of its own.
    open(&mut watch, OURS + 1, 10, [Flags::NONE; 2]);
    let other = |segment: Segment, to_peer: bool| {
        let number = |wire: u32| wire.wrapping_sub(ISN).wrapping_add(10);
        match to_peer {
            true => Segment { source_port: OURS + 1, seq: number(segment.seq), ..segment },
            false => Segment { destination_port: OURS + 1, ack: number(segment.ack), ..segment },
        }
    };
    watch.sends(ms(100), &data(0, 1000, 0));
    assert_eq!(watch.sends(ms(110), &other(data(0, 500, 0), true)), (0, false));
    assert_eq!(rtt(&mut watch, 120, &ack(1000, &[])), Some(20));
    assert_eq!(rtt(&mut watch, 140, &other(ack(500, &[]), false)), Some(30));
    assert_eq!(watch.counts().progress.acked_bytes, 1500);
    // A reset ends one, and the other goes on.
    assert!(watch.sends(ms(150), &Segment { flags: Flags::RST, ..data(1000, 0, 0) }).1);
    assert!(!watch.is_over());
    watch.receives(ms(150), &other(Segment { flags: Flags::RST, ..ack(500, &[]) }, false));
    assert!(watch.is_over() && !watch.is_finished());
    // The same ports again: a copy of the SYN changes nothing, another number begins a new stream.
    open(&mut watch, OURS, 5000, [Flags::NONE; 2]);
    assert!(!watch.is_over());
    let again = Segment { seq: 5001, ..data(0, 700, 0) };
    assert_eq!(watch.sends(ms(200), &again), (0, false));
    let copy =
        Segment { source_port: OURS, destination_port: PEER, seq: 5000, flags: Flags::SYN, ..Segment::default() };
    watch.sends(ms(201), &copy);
    assert_eq!(rtt(&mut watch, 220, &Segment { ack: 5701, ..ack(0, &[]) }), Some(20));
    let counts = counted(3, 2200);
    assert_eq!(watch.counts(), counts);
}

#[test]
fn the_echo_counts_where_the_handshake_agreed_on_it() {
    let classic = Flags::ECE | Flags::CWR;
    for ([asks, answers], echoes) in [
        ([classic, Flags::ECE], 1),
        // RFC 3168 section 6.1.1: an answer with both bits is one of a host that reflects them.
        ([classic, classic], 0),
        ([classic, Flags::NONE], 0),
        ([Flags::NONE, Flags::ECE], 0),
        // RFC 9768 section 3.1.1: asked for accurate feedback, the answer may be RFC 3168's, or a
        // counter is meant.
        ([classic | Flags::AE, Flags::ECE], 1),
        ([classic | Flags::AE, Flags::CWR], 0),
    ] {
        let mut watch = HeaderWatch::default();
        open(&mut watch, OURS, ISN, [asks, answers]);
        watch.sends(ms(100), &data(0, 1000, 0));
        watch.receives(ms(120), &Segment { flags: Flags::ACK | Flags::ECE, ..ack(1000, &[]) });
        watch.receives(ms(121), &ack(1000, &[]));
        assert_eq!(watch.counts().ece_acks, echoes, "{asks:?} {answers:?}");
    }
}

#[test]
fn it_may_begin_in_the_middle_of_a_connection() {
    let mut watch = HeaderWatch::default();
    assert_eq!(watch.sends(ms(0), &data(100_000, 1000, 50_000)), (0, false));
    assert_eq!(rtt(&mut watch, 20, &ack(101_000, &[])), Some(20));
    assert_eq!((watch.counts().progress.acked_bytes, watch.counts().progress.delivered_bytes), (1000, 0));
}

#[test]
fn beyond_what_is_timed_there_is_no_sample_and_no_wrong_one() {
    let mut watch = opened();
    let timed = TIMED as u32;
    for n in 0..timed + 10 {
        watch.sends(ms(100), &data(n, 1, 0));
    }
    assert_eq!(watch.connections[0].timed.segments.len(), TIMED);
    // One that is not timed is sent again; then there is room, and one behind it is timed.
    watch.sends(ms(200), &data(timed + 5, 1, 0));
    assert_eq!(rtt(&mut watch, 210, &ack(timed, &[])), Some(110));
    watch.sends(ms(211), &data(timed + 10, 1, 0));
    assert_eq!(rtt(&mut watch, 220, &ack(timed + 11, &[])), None);
    watch.sends(ms(230), &data(timed + 11, 1, 0));
    assert_eq!(rtt(&mut watch, 250, &ack(timed + 12, &[])), Some(20));
    assert_eq!(watch.counts().sent.retransmitted_packets, 1);
}

#[test]
fn of_too_many_connections_those_count_that_were_seen_last() {
    let mut watch = opened();
    for port in 1..CONNECTIONS as u16 {
        open(&mut watch, port, 1, [Flags::NONE; 2]);
    }
    assert!(!watch.is_incomplete());
    // The one that is over goes first, then the oldest.
    watch.sends(ms(1), &Segment { flags: Flags::RST, source_port: 5, ..data(0, 0, 0) });
    open(&mut watch, 50_000, 1, [Flags::NONE; 2]);
    assert!(!watch.is_incomplete());
    open(&mut watch, 50_001, 1, [Flags::NONE; 2]);
    assert!(watch.is_incomplete());
    let ports: Vec<u16> = watch.connections.iter().map(|one| one.ports.0).collect();
    assert_eq!(ports.len(), CONNECTIONS);
    assert!(ports.contains(&50_000) && ports.contains(&50_001) && ports.contains(&1), "{ports:?}");
    assert!(!ports.contains(&5) && !ports.contains(&OURS), "{ports:?}");
    // Each is found where it is.
    assert_eq!(watch.places.len(), CONNECTIONS);
    assert!(watch.places.is_sorted());
    assert!(watch.places.iter().all(|&(key, place)| number(watch.connections[place as usize].ports) == key));
}

#[test]
fn hundreds_of_connections_at_once_all_count() {
    const MANY: u16 = 1000;
    let mut watch = HeaderWatch::default();
    (1..=MANY).for_each(|port| open(&mut watch, port, ISN, [Flags::NONE; 2]));
    // All send, then all are answered, so that each is seen after all others.
    for round in 0..3 {
        for port in 1..=MANY {
            watch.sends(ms(100 * u64::from(round)), &Segment { source_port: port, ..data(1000 * round, 1000, 0) });
        }
        for port in 1..=MANY {
            let ack = Segment { destination_port: port, ..ack(1000 * (round + 1), &[]) };
            assert_eq!(rtt(&mut watch, 100 * u64::from(round) + 30, &ack), Some(30));
        }
    }
    let counts = counted(3000, 3_000_000);
    assert_eq!(watch.counts(), counts);
    assert!(!watch.is_incomplete());
}

#[test]
fn the_segments_of_many_connections_share_what_may_be_timed() {
    let mut watch = HeaderWatch::default();
    (1..=128).for_each(|port| open(&mut watch, port, ISN, [Flags::NONE; 2]));
    for n in 0..TIMED as u32 {
        watch.sends(ms(100), &Segment { source_port: 1, ..data(n, 1, 0) });
    }
    // Twice as many connections as have a whole share.
    assert_eq!(watch.connections[0].timed.segments.len(), TIMED / 2);
}

fn any_segment() -> impl Strategy<Value = Segment> {
    // Numbers that meet now and then, and any.
    let number = || prop_oneof![3 => (0u32..40).prop_map(|n| (n * 100).wrapping_sub(2000)), 1 => any::<u32>()];
    let len = prop_oneof![Just(0u32), Just(100), 1u32..1000, any::<u32>()];
    let flags = prop_oneof![4 => Just(Flags::ACK.bits()), 1 => any::<u16>()];
    let blocks = prop::collection::vec((number(), number()), 0..5);
    ((0u16..3, 0u16..3), number(), number(), flags, len, blocks).prop_map(
        |((source_port, destination_port), seq, ack, flags, len, blocks)| {
            let mut sack = SackBlocks::default();
            blocks.into_iter().for_each(|(left, right)| _ = sack.push(left, right));
            Segment {
                source_port,
                destination_port,
                seq,
                ack,
                flags: Flags::from_bits(flags),
                payload: Payload { offset: 0, len },
                sack,
                ..Segment::default()
            }
        },
    )
}

proptest! {
    #[test]
    fn any_segments_in_any_order(segments in prop::collection::vec((any_segment(), any::<bool>(), 0u64..3), 0..200)) {
        let mut watch = HeaderWatch::default();
        let mut now = Time::ZERO;
        let mut sent = Vec::new();
        for (segment, outgoing, after) in segments {
            now += Span::from_millis(after);
            let before = watch.counts();
            if outgoing {
                watch.sends(now, &segment);
                sent.push(now);
            } else if let Some(rtt) = watch.receives(now, &segment).0.rtt {
                prop_assert!(sent.iter().any(|&at| now.since(at) == rtt));
            }
            let counts = watch.counts();
            prop_assert!(counts.sent.retransmitted_packets <= counts.sent.sent_packets);
            let (now, then) = (counts.progress, before.progress);
            prop_assert!(now.acked_bytes >= then.acked_bytes && now.delivered_bytes >= then.delivered_bytes);
            prop_assert!(watch.connections.len() <= CONNECTIONS);
            for one in &watch.connections {
                prop_assert!(one.timed.segments.len() <= TIMED);
                prop_assert!(one.timed.segments.iter().is_sorted_by(|a, b| a.end() <= b.from));
            }
        }
    }
}
