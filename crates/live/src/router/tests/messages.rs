use super::*;
use crate::router::header::protocol;

const NOW: Time = Time::ZERO;
const NOTHING: [u8; 0] = [];
/// Ports 53 and 54, 8 bytes, no checksum.
const DATAGRAM: [u8; 8] = [0, 53, 0, 54, 0, 8, 0, 0];
const HOST: Ipv4Addr = Ipv4Addr::new(10, 0, 1, 2);

fn reporter() -> Reporter {
    Reporter::new(Some(SPEC.address), Some(SPEC.address6))
}

fn report(problem: IcmpProblem, packet: &[u8]) -> Vec<u8> {
    let mut message = vec![0xaa];
    let sent = reporter().report(NOW, problem, &read(packet), packet, &mut message);
    assert_eq!(sent, !message.is_empty());
    message
}

fn answer(packet: &[u8]) -> Vec<u8> {
    let mut message = vec![0xaa];
    let sent = Reporter::new(Some(HOST), None).answer(NOW, &read(packet), packet, &mut message);
    assert_eq!(sent, !message.is_empty());
    message
}

/// A packet with an ICMP message that begins with `kind` and `code`.
fn icmp(kind: u8, code: u8) -> V4 {
    let mut payload = vec![kind, code, 0, 0, 0x12, 0x34, 0, 7, b'a', b'b', b'c'];
    let sum = sum_of(&payload);
    payload[2..4].copy_from_slice(&sum.to_be_bytes());
    V4 { protocol: protocol::ICMP, payload, ..V4::default() }
}

#[test]
fn time_exceeded_byte_by_byte() {
    let mut packet = V4 { ttl: 1, protocol: 17, payload: DATAGRAM.to_vec(), ..V4::default() }.bytes();
    packet[4..6].fill(0);
    // 4500 + 001c + 0111 + 0a00 + 0001 + 0a00 + 0102 = 5b30; its complement is a4cf.
    packet[10..12].copy_from_slice(&[0xa4, 0xcf]);
    let (forward, message) = forwarded(&mut router(1500), &mut packet);
    assert_eq!(forward, ForwardDecision::Discarded(Discard::TimeExceeded));
    // 20 + 8 + 28 = 56 bytes. Precedence 6 (RFC 1812 section 4.3.2.5), not to be fragmented, 64
    // hops, ICMP, from 192.0.0.8: 45c0 + 0038 + 4000 + 4001 + c000 + 0008 + 0a00 + 0001 = 19002,
    // 9003; its complement is 6ffc.
    let mut expected = vec![
        0x45, 0xc0, 0, 56, 0, 0, 0x40, 0, 64, 1, 0x6f, 0xfc, 192, 0, 0, 8, 10, 0, 0, 1, //
        // RFC 792: type 11, code 0, checksum, unused. 0b00 + ffff (the header) + 0035 + 0036 +
        // 0008 = 10b72, 0b73.
        11, 0, 0xf4, 0x8c, 0, 0, 0, 0,
    ];
    // The packet as it came.
    expected.extend(&packet);
    assert_eq!((packet[8], message), (1, expected));
}

#[test]
fn too_big_says_what_the_next_link_takes() {
    let mut payload = vec![0; 1480];
    // Ports 53 and 54, 1480 bytes.
    payload[..6].copy_from_slice(&[0, 53, 0, 54, 0x05, 0xc8]);
    let mut packet = V4 { fragment: DONT_FRAGMENT, protocol: 17, payload, ..V4::default() }.bytes();
    let (forward, message) = forwarded(&mut router(1400), &mut packet);
    assert_eq!(forward, ForwardDecision::Discarded(Discard::TooBig));
    // As long as RFC 1812 section 4.3.2.3 allows, 576 bytes, of which 548 are the packet's:
    // 45c0 + 0240 + 4000 + 4001 + c000 + 0008 + 0a00 + 0001 = 1920a, 920b; its complement is 6df4.
    let ip = [0x45, 0xc0, 0x02, 0x40, 0, 0, 0x40, 0, 64, 1, 0x6d, 0xf4, 192, 0, 0, 8, 10, 0, 0, 1];
    // RFC 1191 section 4: type 3, code 4, checksum, unused, 1400 = 0578. 0304 + 0578 + ffff +
    // 0035 + 0036 + 05c8 = 10eae, 0eaf.
    let icmp = [3, 4, 0xf1, 0x50, 0, 0, 0x05, 0x78];
    assert_eq!((&message[..20], &message[20..28], &message[28..]), (&ip[..], &icmp[..], &packet[..548]));
}

#[test]
fn messages_about_ipv6_byte_by_byte() {
    let mut packet = V6 { hop_limit: 1, next: 17, payload: DATAGRAM.to_vec(), ..V6::default() }.bytes();
    let (forward, message) = forwarded(&mut router(1500), &mut packet);
    assert_eq!(forward, ForwardDecision::Discarded(Discard::TimeExceeded));
    let mut expected = vec![0x60, 0, 0, 0, 0, 56, 58, 64];
    expected.extend(SPEC.address6.octets());
    expected.extend(V6::default().source.octets());
    // RFC 4443 section 3.3: type 3, code 0, checksum, unused. The packet: 6000 + 0008 + 1101 +
    // fd00 + 0001 + fd00 + 0001 + 0002
    // + 0073 = 26b80, 6b82. With 0300, and the pseudo-header 0100 + 0001 + 0008 + fd00 + 0001 +
    //   0038 + 003a: 16cfe, 6cff.
    expected.extend([3, 0, 0x93, 0x00, 0, 0, 0, 0]);
    expected.extend(&packet);
    assert_eq!(message, expected);

    // RFC 4443 section 3.2: type 2, code 0, checksum, 32 bits of MTU. As much of the packet as 1280
    // bytes hold.
    let mut packet = V6 { payload: vec![1; 1460], ..V6::default() }.bytes();
    let (_, message) = forwarded(&mut router(1400), &mut packet);
    assert_eq!((&message[..6], message.len()), (&[0x60, 0, 0, 0, 0x04, 0xd8][..], 1280));
    assert_eq!((&message[40..42], &message[44..48]), (&[2, 0][..], &[0, 0, 0x05, 0x78][..]));
    assert_eq!(message[48..], packet[..1232]);
    let mut summed = message[8..].to_vec();
    summed.extend([0, 0, 0x04, 0xd8, 0, 0, 0, 58]);
    assert_eq!(sum_of(&summed), 0);
}

#[test]
fn each_problem_has_its_type_and_code() {
    let four = V4 { protocol: 17, payload: DATAGRAM.to_vec(), ..V4::default() }.bytes();
    let six = V6 { next: 17, payload: DATAGRAM.to_vec(), ..V6::default() }.bytes();
    for (problem, v4, v6) in [
        (IcmpProblem::TimeExceeded, Some([11, 0]), Some([3, 0])),
        (IcmpProblem::TooBig(1400), Some([3, 4]), Some([2, 0])),
        (IcmpProblem::NoRoute, Some([3, 0]), Some([1, 0])),
        (IcmpProblem::Scope, None, Some([1, 2])),
        (IcmpProblem::Port, Some([3, 3]), None),
        (IcmpProblem::Protocol, Some([3, 2]), None),
    ] {
        assert_eq!(report(problem, &four).get(20..22), v4.as_ref().map(|kind| &kind[..]), "{problem:?}");
        assert_eq!(report(problem, &six).get(40..42), v6.as_ref().map(|kind| &kind[..]), "{problem:?}");
    }
}

#[test]
fn the_type_of_service_is_the_packets() {
    // RFC 1812 section 4.3.2.5. Precedence 6 replaces the packet's 5, 110 stays; the ECN bits are
    // not type of service any more.
    let packet = V4 { tos: 0b1011_1011, ..V4::default() }.bytes();
    assert_eq!(report(IcmpProblem::TimeExceeded, &packet)[1], 0b1101_1000);
}

#[test]
fn no_message_about_what_must_not_have_one() {
    let told = |packet: V4| !report(IcmpProblem::TooBig(100), &packet.bytes()).is_empty();
    assert!(told(V4::default()));
    assert!(told(V4 { fragment: MORE_FRAGMENTS, ..V4::default() }), "a first fragment");
    // RFC 1812 section 4.3.2.7.
    assert!(!told(V4 { fragment: 1, ..V4::default() }));
    for source in [[0; 4], [0, 1, 2, 3], [127, 0, 0, 1], [224, 0, 0, 1], [239, 1, 1, 1], [255; 4]] {
        assert!(!told(V4 { source, ..V4::default() }), "{source:?}");
    }
    for destination in [[224, 0, 0, 251], [255; 4]] {
        assert!(!told(V4 { destination, ..V4::default() }), "{destination:?}");
    }
    // Unreachable, source quench, redirect, time exceeded, parameter problem; and what nobody has
    // defined.
    for kind in [3, 4, 5, 11, 12, 1, 40, 255] {
        assert!(!told(icmp(kind, 0)), "{kind}");
    }
    for kind in [0, 8, 9, 10, 13, 14, 15, 16, 17, 18] {
        assert!(told(icmp(kind, 0)), "{kind}");
    }
    assert!(!told(V4 { payload: Vec::new(), ..icmp(8, 0) }));
}

#[test]
fn no_message_about_what_must_not_have_one_in_ipv6() {
    let told = |problem, packet: V6| !report(problem, &packet.bytes()).is_empty();
    let big = IcmpProblem::TooBig(1400);
    assert!(told(big, V6::default()));
    // RFC 4443 section 2.4 (e): errors and redirects,
    let icmp = |kind| V6 { next: protocol::ICMPV6, payload: vec![kind, 0, 0, 0], ..V6::default() };
    for kind in [0, 1, 2, 3, 4, 127, 137] {
        assert!(!told(big, icmp(kind)), "{kind}");
    }
    for kind in [128, 129, 133, 255] {
        assert!(told(big, icmp(kind)), "{kind}");
    }
    assert!(!told(big, V6 { payload: Vec::new(), ..icmp(128) }));
    // behind extension headers too, and in the first fragment,
    let behind = |next: u8, [high, low]: [u8; 2], kind| V6 {
        next,
        payload: vec![protocol::ICMPV6, 0, high, low, 0, 0, 0, 0, kind, 0, 0, 0],
        ..V6::default()
    };
    assert!(!told(big, behind(protocol::DESTINATION_OPTIONS, [0, 0], 1)));
    assert!(!told(big, behind(protocol::FRAGMENT, [0, 1], 1)));
    assert!(told(big, behind(protocol::FRAGMENT, [0, 1], 128)));
    assert!(told(big, behind(protocol::FRAGMENT, [0, 8], 1)));
    // what goes to a group, unless it is too big,
    let group = V6 { destination: "ff0e::1".parse().expect("an address"), ..V6::default() };
    assert!(!told(IcmpProblem::TimeExceeded, group.clone()) && !told(IcmpProblem::NoRoute, group.clone()));
    assert!(told(big, group));
    // and what comes from no single node.
    for source in ["::", "ff02::1"] {
        assert!(!told(big, V6 { source: source.parse().expect("an address"), ..V6::default() }), "{source}");
    }
}

#[test]
fn a_family_without_an_address_is_not_spoken_to() {
    let mut message = vec![1];
    let four = V4::default().bytes();
    let six = V6::default().bytes();
    assert!(!Reporter::new(None, Some(SPEC.address6)).report(
        NOW,
        IcmpProblem::NoRoute,
        &read(&four),
        &four,
        &mut message
    ));
    assert!(message.is_empty());
    assert!(!Reporter::new(Some(HOST), None).report(NOW, IcmpProblem::NoRoute, &read(&six), &six, &mut message));
    assert!(message.is_empty());
}

#[test]
fn how_often_messages_are_sent() {
    let mut reporter = reporter();
    let mut message = Vec::new();
    let mut sent = |at: u64, problem, packet: &[u8]| {
        let count = |_: &u32| reporter.report(Time::from_millis(at), problem, &read(packet), packet, &mut message);
        (0..100).filter(count).count()
    };
    let four = V4::default().bytes();
    let six = V6::default().bytes();
    // Six at once, then one each second (`net.ipv4.icmp_ratelimit` = 1000).
    assert_eq!(sent(0, IcmpProblem::TimeExceeded, &four), 6);
    assert_eq!(sent(999, IcmpProblem::NoRoute, &four), 0);
    assert_eq!(sent(1000, IcmpProblem::NoRoute, &four), 1);
    assert_eq!(sent(3999, IcmpProblem::TimeExceeded, &four), 2);
    assert_eq!(sent(4000, IcmpProblem::TimeExceeded, &four), 1);
    // IPv6 has its own, one each 100 ms.
    assert_eq!(sent(4000, IcmpProblem::TimeExceeded, &six), 6);
    assert_eq!(sent(4250, IcmpProblem::NoRoute, &six), 2);
    assert_eq!(sent(4300, IcmpProblem::NoRoute, &six), 1);
    // No more than six after any time, and path MTU discovery is not limited.
    assert_eq!(sent(1_000_000, IcmpProblem::TimeExceeded, &four), 6);
    assert_eq!(sent(1_000_000, IcmpProblem::TooBig(1400), &four), 100);
    assert_eq!(sent(1_000_000, IcmpProblem::TooBig(1400), &six), 100);
}

#[test]
fn a_message_that_is_not_sent_takes_no_token() {
    let mut reporter = reporter();
    let mut message = Vec::new();
    let [error, packet] = [icmp(3, 1).bytes(), V4::default().bytes()];
    for _ in 0..10 {
        assert!(!reporter.report(NOW, IcmpProblem::TimeExceeded, &read(&error), &error, &mut message));
    }
    assert!(reporter.report(NOW, IcmpProblem::TimeExceeded, &read(&packet), &packet, &mut message));
}

#[test]
fn an_echo_is_given_back() {
    let request = V4 { tos: 0xba, options: vec![(7, vec![4, 0])], ..icmp(8, 0) }.bytes();
    let reply = answer(&request);
    // 20 + 11 bytes, from its receiver to its sender, with its identification and codepoint (46),
    // and not its ECT(0): 45b8 + 001f + 1234 + 4001 + 0a00 + 0102 + 0a00 + 0001 = ad0f; its
    // complement is 52f0.
    let ip = [0x45, 0xb8, 0, 31, 0x12, 0x34, 0, 0, 64, 1, 0x52, 0xf0, 10, 0, 1, 2, 10, 0, 0, 1];
    // 1234 + 0007 + 6162 + 6300 = d69d; its complement is 2962.
    let icmp = [0, 0, 0x29, 0x62, 0x12, 0x34, 0, 7, b'a', b'b', b'c'];
    assert_eq!((&reply[..20], &reply[20..]), (&ip[..], &icmp[..]));
}

#[test]
fn what_a_host_does_not_answer() {
    let request = icmp(8, 0);
    // A wrong checksum, a code that there is not, other messages, less than a message.
    let mut broken = request.clone();
    broken.payload[9] ^= 1;
    assert_eq!(answer(&broken.bytes()), NOTHING);
    for (kind, code) in [(8, 1), (0, 0), (3, 3), (13, 0), (11, 0)] {
        assert_eq!(answer(&icmp(kind, code).bytes()), NOTHING, "{kind} {code}");
    }
    assert_eq!(answer(&V4 { payload: vec![8, 0, 0xf7, 0xff], ..request.clone() }.bytes()), NOTHING);
    // Parts of a packet, groups, senders that are none, TCP, IPv6.
    for fragment in [MORE_FRAGMENTS, 1] {
        assert_eq!(answer(&V4 { fragment, ..request.clone() }.bytes()), NOTHING);
    }
    assert_eq!(answer(&V4 { destination: [224, 0, 0, 1], ..request.clone() }.bytes()), NOTHING);
    assert_eq!(answer(&V4 { destination: [255; 4], ..request.clone() }.bytes()), NOTHING);
    assert_eq!(answer(&V4 { source: [127, 0, 0, 1], ..request }.bytes()), NOTHING);
    assert_eq!(answer(&V4 { protocol: protocol::TCP, ..V4::default() }.bytes()), NOTHING);
    assert_eq!(answer(&V6 { next: 58, payload: vec![128, 0, 0, 0, 0, 0, 0, 0], ..V6::default() }.bytes()), NOTHING);
}

#[test]
fn a_host_without_ports_and_protocols_says_so() {
    let datagram = V4 { protocol: 17, payload: DATAGRAM.to_vec(), ..V4::default() };
    let packet = datagram.bytes();
    let message = answer(&packet);
    assert_eq!((&message[12..20], &message[20..22]), (&[10, 0, 1, 2, 10, 0, 0, 1][..], &[3, 3][..]));
    assert_eq!(message[28..], packet);
    assert_eq!(answer(&V4 { protocol: 132, ..V4::default() }.bytes())[20..22], [3, 2]);
    // A checksum that is there has to be right (RFC 1122 section 4.1.3.4): 0a00 + 0001 + 0a00 +
    // 0102 + 0011 + 0008 + 0035 + 0036
    // + 0008 = 158f; its complement is ea70.
    let with = |checksum: [u8; 2], len: u8| {
        let mut payload = DATAGRAM.to_vec();
        payload[5] = len;
        payload[6..8].copy_from_slice(&checksum);
        answer(&V4 { payload, ..datagram.clone() }.bytes()).is_empty()
    };
    assert!(!with([0xea, 0x70], 8));
    assert!(with([0xea, 0x71], 8));
    // Lengths that are not there.
    assert!(with([0, 0], 9) && with([0, 0], 7));
    assert!(answer(&V4 { payload: vec![0; 7], ..datagram }.bytes()).is_empty());
}
