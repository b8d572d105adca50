//! Packets that are for no connection of ours, or for none at all.

use super::*;

#[test]
fn a_host_of_ours_answers_an_echo_request_after_a_round_trip() {
    let mut bench = EngineBench::new(&spec([false, true], Impairments::default()), vec![None, None]);
    bench.send(1, &echo_request(RIGHT, LEFT, 64, &[7; 56]));
    bench.now = Time::from_secs(1);
    bench.exchange();
    let [(at, 1, reply)] = &bench.log[..] else { panic!("{:?}", bench.log) };
    // 84 bytes at 50 Mbit/s are 13.44 us, and the delay is 5 ms, both ways.
    assert_eq!(*at, Time::ZERO + (Span::from_micros(5000) + Span::from_nanos(13_440)) * 2);
    let parsed = SlicedPacket::from_ip(reply).expect("a packet");
    let Some(TransportSlice::Icmpv4(icmp)) = parsed.transport else { panic!("{parsed:?}") };
    assert!(matches!(icmp.icmp_type(), etherparse::Icmpv4Type::EchoReply(header) if header.id == 7 && header.seq == 1));
    assert_eq!(icmp.payload(), &[7; 56]);
    // It left with 64 and passed a router.
    assert_eq!(reply[8], 63);
}

#[test]
fn a_segment_for_no_connection_is_reset() {
    let mut bench = EngineBench::new(&spec([false, true], Impairments::default()), vec![None, None]);
    let syn = Segment { source_port: 4000, destination_port: 80, seq: 17, flags: Flags::SYN, ..Segment::default() };
    let mut packet = [0; 40];
    codec::emit(&syn, addresses(RIGHT, LEFT), Ecn::NotEct, &mut packet).expect("there is room");
    bench.send(1, &packet);
    bench.now = Time::from_secs(1);
    bench.exchange();
    let [(_, 1, reply)] = &bench.log[..] else { panic!("{:?}", bench.log) };
    let reset = codec::parse(reply).expect("a segment").segment;
    // RFC 9293 section 3.10.7.1: sequence number 0, and the SYN acknowledged.
    assert_eq!((reset.flags, reset.seq, reset.ack), (Flags::RST | Flags::ACK, 0, 18));
    assert_eq!((reset.source_port, reset.destination_port), (80, 4000));
}

#[test]
fn a_datagram_to_a_host_of_ours_is_answered_by_port_unreachable() {
    let mut bench = EngineBench::new(&spec([false, true], Impairments::default()), vec![None, None]);
    let packet = datagram(RIGHT, LEFT, b"hello");
    bench.send(1, &packet);
    bench.now = Time::from_secs(1);
    bench.exchange();
    let [(_, 1, reply)] = &bench.log[..] else { panic!("{:?}", bench.log) };
    // ICMP, destination unreachable, port; then the packet, a hop later.
    assert_eq!((reply[9], reply[20], reply[21]), (1, 3, 3));
    assert_eq!(reply[28 + 20..], packet[20..]);
}

#[test]
fn packets_between_two_kernels_pass_with_their_bytes_and_a_hop_less() {
    let mut bench = EngineBench::new(&spec([true, true], Impairments::default()), vec![None, None]);
    let mut packet = datagram(LEFT, RIGHT, &[9; 1472]);
    bench.send(0, &packet);
    bench.now = Time::from_secs(1);
    bench.exchange();
    let [(_, 1, found)] = &bench.log[..] else { panic!("{:?}", bench.log) };
    assert_eq!((packet[8], found[8]), (64, 63));
    // One hop less, one more in the checksum.
    packet[8] -= 1;
    let checksum = u16::from_be_bytes([packet[10], packet[11]]).wrapping_add(0x100);
    packet[10..12].copy_from_slice(&checksum.to_be_bytes());
    assert_eq!(*found, packet);
    let hosts: Vec<&LiveHost> = bench.engine.hosts().collect();
    assert_eq!((hosts[0].received_packets, hosts[0].received_bytes), (1, 1500));
    assert_eq!((hosts[1].sent_packets, hosts[1].sent_bytes), (1, 1500));
    assert_eq!(bench.buffers_in_use(), 1);
}

#[test]
fn a_packet_that_is_out_of_hops_is_reported_at_once() {
    let mut bench = EngineBench::new(&spec([true, true], Impairments::default()), vec![None, None]);
    bench.send(0, &echo_request(LEFT, RIGHT, 1, &[]));
    bench.exchange();
    let [(Time::ZERO, 0, message)] = &bench.log[..] else { panic!("{:?}", bench.log) };
    // Time exceeded, from the router.
    assert_eq!((message[20], message[21], &message[12..16]), (11, 0, &[192, 0, 0, 8][..]));
    assert_eq!(bench.engine.hosts().map(|host| host.discarded).collect::<Vec<_>>(), [1, 0]);
}

#[test]
fn what_goes_nowhere_is_counted() {
    let mut bench = EngineBench::new(&spec([true, true], Impairments::default()), vec![None, None]);
    for destination in [[10, 0, 0, 77], [224, 0, 0, 251], [10, 0, 0, 255], LEFT] {
        bench.send(0, &datagram(LEFT, destination, b"x"));
    }
    // A router solicitation, as a kernel sends it on a new device.
    let mut solicitation = vec![0x60, 0, 0, 0, 0, 8, 58, 255];
    solicitation.extend_from_slice(&"fe80::1".parse::<std::net::Ipv6Addr>().expect("an address").octets());
    solicitation.extend_from_slice(&"ff02::2".parse::<std::net::Ipv6Addr>().expect("an address").octets());
    solicitation.extend_from_slice(&[133, 0, 0, 0, 0, 0, 0, 0]);
    bench.send(0, &solicitation);
    bench.send(0, &[]);
    bench.send(0, &[0x45]);
    // Cut off: it fills the buffer, which is a byte longer than the longest packet.
    bench.engine.arrive(bench.now, 0, 1501);
    bench.exchange();
    // Only what goes to a single host that there is none of is told: network unreachable.
    let told: Vec<_> = bench.log.iter().map(|(_, node, message)| (*node, &message[20..22], &message[44..48])).collect();
    assert_eq!(told, [(0, &[3, 0][..], &[10, 0, 0, 77][..]), (0, &[3, 0], &LEFT)]);
    let left = bench.engine.hosts().next().expect("two hosts");
    assert_eq!((left.received_packets, left.unroutable, left.truncated), (8, 7, 1));
}

#[test]
fn marks_are_written_where_packets_leave() {
    let mut spec = spec([true, true], Impairments::default());
    // 1 Mbit/s, and CoDel that marks whatever has waited for a millisecond for ten.
    let codel = CodelConfig {
        ecn: true,
        target: Span::from_millis(1),
        interval: Span::from_millis(10),
        ..CodelConfig::default()
    };
    spec.links[0].forward.queue = QueueSpec::Codel(codel);
    spec.links[0].forward.rate = Rate::from_bps(1_000_000);
    // A second link doubles every packet, and a third one marks some more: not both copies of each.
    let mut doubling = spec.links[0].clone();
    doubling.forward = direction(Impairments { duplicate: 1.0, ..Impairments::default() });
    spec.links.extend([doubling, spec.links[0].clone()]);
    spec.live.as_mut().expect("it is live").pipes[0].path = vec![0, 1, 2];
    let mut bench = EngineBench::new(&spec, vec![None, None]);
    let data = Segment { payload: Payload { offset: 0, len: 1000 }, flags: Flags::ACK, ..Segment::default() };
    for _ in 0..50 {
        let mut packet = [0; 1040];
        codec::emit(&data, addresses(LEFT, RIGHT), Ecn::Ect0, &mut packet).expect("there is room");
        bench.send(0, &packet);
    }
    bench.now = Time::from_secs(2);
    bench.exchange();
    let links = bench.engine.world().summary().links;
    let (first, third) = (links[0].packets.marked, links[4].packets.marked);
    // Checksums are right.
    let read: Vec<Ecn> = bench.log.iter().map(|(_, _, bytes)| codec::parse(bytes).expect("a segment").ecn).collect();
    assert_eq!(read.len(), 100);
    // CoDel marks what is marked already once more: of each two copies both were marked by the
    // first link, or one by the third.
    let marked = read.iter().filter(|&&ecn| ecn == Ecn::Ce).count() as u64;
    assert!(first > 0 && third > 0 && marked > 2 * first && marked <= 2 * first + third, "{first} {third} {marked}");
}

#[test]
fn a_packet_is_cut_where_the_next_link_takes_less() {
    let mut spec = spec([true, true], Impairments::default());
    spec.live.as_mut().expect("it is live").nodes[1].mtu = 600;
    let mut bench = EngineBench::new(&spec, vec![None, None]);
    let mut packet = datagram(LEFT, RIGHT, &[5; 1000]);
    // It may be cut.
    packet[6] &= !0x40;
    let mut header = etherparse::Ipv4Header::from_slice(&packet).expect("a header").0;
    header.header_checksum = header.calc_header_checksum();
    packet[..20].copy_from_slice(&header.to_bytes());
    bench.send(0, &packet);
    bench.now = Time::from_secs(1);
    bench.exchange();
    // 1008 bytes: 576 of the 580 that fit, for they are whole units of 8, and the rest.
    let lengths: Vec<(usize, usize)> = bench.log.iter().map(|(_, node, bytes)| (*node, bytes.len())).collect();
    assert_eq!(lengths, [(1, 596), (1, 20 + 1008 - 576)]);
    let data: Vec<u8> = bench.log.iter().flat_map(|(_, _, bytes)| bytes[20..].to_vec()).collect();
    assert_eq!(data, packet[20..]);
    assert_eq!(bench.buffers_in_use(), 1);
}

/// Packets with correct headers and arbitrary contents.
fn almost_packets() -> impl Strategy<Value = Vec<u8>> {
    let bytes = prop::collection::vec(any::<u8>(), 0..200);
    let header =
        (bytes.clone(), prop::sample::select(vec![1u8, 6, 17, 58, 47]), any::<[u8; 2]>(), any::<bool>(), 0..=5u8);
    let v4 = header.prop_map(|(payload, protocol, fragment, whole, options)| {
        let header_len = 20 + 4 * usize::from(options);
        let mut packet = vec![1; header_len];
        packet.extend_from_slice(&payload);
        packet[0] = 0x45 + options;
        packet[1] = 2;
        let len = packet.len() as u16;
        packet[2..4].copy_from_slice(&len.to_be_bytes());
        packet[6..8].copy_from_slice(if whole { &[0, 0] } else { &fragment });
        (packet[8], packet[9]) = (64, protocol);
        packet[10..12].fill(0);
        packet[12..16].copy_from_slice(&RIGHT);
        packet[16..20].copy_from_slice(&LEFT);
        if protocol == 6 && packet.len() >= header_len + 20 {
            // Ports that mean something, and a data offset that is none too wild.
            let port = PORT.to_be_bytes();
            packet[header_len + 2..header_len + 4].copy_from_slice(&port);
            packet[header_len + 12] |= 0x50;
        }
        let sum = etherparse::checksum::Sum16BitWords::new().add_slice(&packet[..header_len]).ones_complement();
        packet[10..12].copy_from_slice(&sum.to_ne_bytes());
        if protocol == 6 && packet.len() >= header_len + 20 {
            let mut tcp = smoltcp::wire::TcpPacket::new_unchecked(&mut packet[header_len..]);
            let ends = [RIGHT, LEFT].map(|address| smoltcp::wire::IpAddress::Ipv4(Ipv4Addr::from(address)));
            tcp.fill_checksum(&ends[0], &ends[1]);
        }
        packet
    });
    prop_oneof![4 => v4, 1 => bytes]
}

proptest! {
    #![proptest_config(ProptestConfig { cases: 64, ..ProptestConfig::default() })]

    /// To our endpoints, to a host of ours and between kernels: nothing that arrives panics, and no
    /// buffer is lost.
    #[test]
    fn no_bytes_panic(packets in prop::collection::vec((almost_packets(), 0..3_000_000u64), 0..40), left_is_ours: bool, listens: bool) {
        let mut spec = spec([!left_is_ours, true], Impairments { duplicate: 0.2, ..lossy() });
        let host = || HostSpec::Endpoint(endpoint(CcSpec::NewReno(NewRenoConfig::default())));
        let own = |ours| if ours { host() } else { HostSpec::Outside };
        let mut one = if listens {
            flow(HostSpec::Outside, own(left_is_ours), [1, 0], None)
        } else {
            flow(own(left_is_ours), HostSpec::Outside, [0, 1], Some(10_000))
        };
        one.ends.as_mut().expect("it has ends").check = false;
        spec.flows.push(one);
        let mut bench = EngineBench::new(&spec, vec![None, None]);
        for (packet, wait) in packets {
            bench.now += Span::from_nanos(wait);
            bench.send(1, &packet);
            bench.exchange();
        }
        bench.now += Span::from_secs(2);
        bench.exchange();
        bench.exchange();
        prop_assert_eq!(bench.buffers_in_use(), 1);
    }
}
