use super::*;
use etherparse::PacketBuilder;
use proptest::prelude::*;

const V4: ([u8; 4], [u8; 4]) = ([10, 0, 0, 1], [192, 0, 2, 7]);
const V6: ([u8; 16], [u8; 16]) = ([0x20; 16], [0xfd; 16]);

fn addresses_v4() -> (IpAddr, IpAddr) {
    (V4.0.into(), V4.1.into())
}

fn addresses_v6() -> (IpAddr, IpAddr) {
    (V6.0.into(), V6.1.into())
}

fn key((source, destination): (IpAddr, IpAddr), protocol: u8, source_port: u16, destination_port: u16) -> FlowKey {
    FlowKey { source, destination, protocol, source_port, destination_port }
}

fn read(bytes: &[u8]) -> FlowKey {
    FlowKey::from_ip_packet(bytes).expect("an IP packet")
}

/// An IPv4 packet of `protocol` with the flags and offset `fragment`.
fn v4(protocol: u8, fragment: u16, payload: &[u8]) -> Vec<u8> {
    let total = (20 + payload.len()) as u16;
    let mut packet = vec![0x45, 0, 0, 0, 0x12, 0x34, 0, 0, 64, protocol, 0, 0];
    packet[2..4].copy_from_slice(&total.to_be_bytes());
    packet[6..8].copy_from_slice(&fragment.to_be_bytes());
    packet.extend(V4.0);
    packet.extend(V4.1);
    packet.extend(payload);
    packet
}

/// An IPv6 packet whose first header is of kind `next`.
fn v6_packet(next: u8, payload: &[u8]) -> Vec<u8> {
    let mut packet = vec![0x60, 0, 0, 0, 0, 0, next, 64];
    packet[4..6].copy_from_slice(&(payload.len() as u16).to_be_bytes());
    packet.extend(V6.0);
    packet.extend(V6.1);
    packet.extend(payload);
    packet
}

/// Key 00 01 .. 0f, messages of 0, 1, .. bytes 00 01 ..: `vectors.h` of the reference
/// implementation (github.com/veorq/SipHash), as little-endian numbers; the one of 15 bytes is also
/// in appendix A of the paper.
#[test]
fn the_hash_is_siphash() {
    let key = [0x0706_0504_0302_0100, 0x0f0e_0d0c_0b0a_0908];
    let message: Vec<u8> = (0..64).collect();
    for (len, expected) in [
        (0, 0x726f_db47_dd0e_0e31),
        (1, 0x74f8_39c5_93dc_67fd),
        (2, 0x0d6c_8009_d9a9_4f5a),
        (3, 0x8567_6696_d7fb_7e2d),
        (7, 0xab02_00f5_8b01_d137),
        (8, 0x93f5_f579_9a93_2462),
        (14, 0xf723_ca90_8e7a_f2ee),
        (15, 0xa129_ca61_49be_45e5),
    ] {
        assert_eq!(siphash_2_4(key, &message[..len]), expected, "{len} bytes");
    }
}

/// The layout of the message is part of what must not change: for the first, 04 06 1234 0050
/// 0a000001 c0000207. The values are those of another implementation of SipHash for these messages.
#[test]
fn the_hash_of_a_flow_is_fixed() {
    let flow = key(addresses_v4(), 6, 0x1234, 0x0050);
    assert_eq!(flow.hash(5), 0x3b81_2921_7557_bf0b);
    assert_ne!(flow.hash(5), flow.hash(6));
    assert_eq!(key(addresses_v6(), 17, 1, 2).hash(0), 0x3280_c1d0_abb3_c05e);
}

#[test]
fn five_tuples_of_both_families() {
    let mut packet = Vec::new();
    let builder = PacketBuilder::ipv4(V4.0, V4.1, 64).tcp(4321, 80, 1, 1000);
    builder.write(&mut packet, b"data").expect("a packet");
    assert_eq!(read(&packet), key(addresses_v4(), 6, 4321, 80));
    packet.clear();
    PacketBuilder::ipv6(V6.0, V6.1, 64).udp(53, 5353).write(&mut packet, b"data").expect("a packet");
    assert_eq!(read(&packet), key(addresses_v6(), 17, 53, 5353));
}

#[test]
fn options_and_extension_headers_are_passed() {
    let udp = [0x30, 0x39, 0, 53, 0, 8, 0, 0];
    let mut packet = v4(17, 0, &[&[1; 8], &udp[..]].concat());
    packet[0] = 0x47;
    assert_eq!(read(&packet), key(addresses_v4(), 17, 12_345, 53));
    // Hop-by-hop options, 16 bytes of routing, an unfragmented packet's fragment header,
    // destination options.
    let hop = [43, 0, 1, 4, 0, 0, 0, 0];
    let routing = [44, 1, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0];
    let atomic = [60, 0, 0, 0, 0, 0, 0, 9];
    let options = [17, 0, 1, 4, 0, 0, 0, 0];
    let packet = v6_packet(0, &[&hop[..], &routing, &atomic, &options, &udp].concat());
    assert_eq!(read(&packet), key(addresses_v6(), 17, 12_345, 53));
}

#[test]
fn all_fragments_of_a_packet_are_one_flow() {
    let udp = [0x30, 0x39, 0, 53, 0, 8, 0, 0];
    let expected = key(addresses_v4(), 17, 0, 0);
    // More to come; in between; the last.
    for fragment in [0x2000, 0x2001, 0x0002] {
        assert_eq!(read(&v4(17, fragment, &udp)), expected, "{fragment:#x}");
    }
    // May not be fragmented, and is not.
    assert_eq!(read(&v4(17, 0x4000, &udp)), key(addresses_v4(), 17, 12_345, 53));
    for (high, low) in [(0, 1), (1, 1), (1, 0)] {
        let packet = v6_packet(44, &[&[17, 0, high, low, 0, 0, 0, 9], &udp[..]].concat());
        assert_eq!(read(&packet), key(addresses_v6(), 17, 0, 0));
    }
}

#[test]
fn icmp_has_type_code_and_identifier() {
    let message = |kind, code| [kind, code, 0, 0, 0xab, 0xcd, 0, 1];
    for (packet, addresses, protocol, ports) in [
        (v4(1, 0, &message(8, 0)), addresses_v4(), 1, (0x0800, 0xabcd)),
        (v4(1, 0, &message(14, 0)), addresses_v4(), 1, (0x0e00, 0xabcd)),
        // Destination unreachable, port: the next four bytes are no identifier.
        (v4(1, 0, &message(3, 3)), addresses_v4(), 1, (0x0303, 0)),
        (v4(1, 0, &message(8, 0)[..5]), addresses_v4(), 1, (0x0800, 0)),
        (v6_packet(58, &message(129, 0)), addresses_v6(), 58, (0x8100, 0xabcd)),
        (v6_packet(58, &message(8, 0)), addresses_v6(), 58, (0x0800, 0)),
    ] {
        assert_eq!(read(&packet), key(addresses, protocol, ports.0, ports.1));
    }
}

#[test]
fn security_associations_and_unknown_protocols() {
    let bytes = [1, 2, 3, 4, 5, 6, 7, 8];
    assert_eq!(read(&v4(50, 0, &bytes)), key(addresses_v4(), 50, 0x0102, 0x0304));
    assert_eq!(read(&v4(51, 0, &bytes)), key(addresses_v4(), 51, 0x0506, 0x0708));
    assert_eq!(read(&v4(47, 0, &bytes)), key(addresses_v4(), 47, 0, 0));
    assert_eq!(read(&v6_packet(59, &bytes)), key(addresses_v6(), 59, 0, 0));
}

#[test]
fn what_is_cut_off_or_padding_is_no_port() {
    let mut packet = v4(6, 0, &[0x30, 0x39, 0, 80]);
    assert_eq!(read(&packet).source_port, 12_345);
    assert_eq!(read(&packet[..23]), key(addresses_v4(), 6, 0, 0));
    // Two bytes, the rest padding.
    packet[3] = 22;
    assert_eq!(read(&packet), key(addresses_v4(), 6, 0, 0));
    let packet = v6_packet(0, &[6, 200, 0, 0]);
    assert_eq!(read(&packet), key(addresses_v6(), 0, 0, 0));
    // A chain of headers ends somewhere.
    assert_eq!(read(&v6_packet(0, &[0; 800])), key(addresses_v6(), 0, 0, 0));
}

#[test]
fn what_is_no_ip_packet_has_no_flow() {
    assert_eq!(FlowKey::from_ip_packet(&[]), None);
    assert_eq!(FlowKey::from_ip_packet(&[0x45; 19]), None);
    assert_eq!(FlowKey::from_ip_packet(&[0x60; 39]), None);
    assert_eq!(FlowKey::from_ip_packet(&[0x50; 60]), None);
    let mut short_header = v4(6, 0, &[0; 20]);
    short_header[0] = 0x44;
    assert_eq!(FlowKey::from_ip_packet(&short_header), None);
    let mut short_total = v4(6, 0, &[0; 20]);
    short_total[3] = 19;
    assert_eq!(FlowKey::from_ip_packet(&short_total), None);
}

/// 4096 connections of two hosts in 256 bins: by the chi-squared distribution with 255 degrees of
/// freedom the statistic is below 361 in all but one of 100,000 cases.
#[test]
fn flows_spread() {
    for seed in 0..3 {
        let mut bins = [0u32; 256];
        for port in 0..4096 {
            bins[(key(addresses_v4(), 6, 32_768 + port, 443).hash(seed) >> 56) as usize] += 1;
        }
        let statistic: f64 = bins.iter().map(|&count| f64::from((count as i32 - 16).pow(2)) / 16.0).sum();
        assert!(statistic < 361.0, "seed {seed}: {statistic}");
    }
}

proptest! {
    #![proptest_config(ProptestConfig::with_cases(2048))]

    #[test]
    fn any_bytes_have_a_flow_or_none(mut bytes in prop::collection::vec(any::<u8>(), 0..120), version in 0u8..4, next in 0usize..16) {
        const NEXT: [u8; 16] = [0, 1, 6, 17, 33, 43, 44, 50, 51, 58, 60, 132, 136, 41, 59, 255];
        // Most random bytes are no IP packet.
        if let [first, ..] = bytes.as_mut_slice() {
            *first = match version { 0 => *first, 1 | 2 => 0x40 | *first & 0xf, _ => 0x60 };
        }
        if let (true, Some(protocol)) = (version == 3, bytes.get_mut(6)) {
            *protocol = NEXT[next];
        }
        if let Some(flow) = FlowKey::from_ip_packet(&bytes) {
            flow.hash(0);
            prop_assert_eq!(flow.source.is_ipv4(), bytes[0] >> 4 == 4);
        }
    }

    /// The key depends on nothing that changes on the way: ECN, time to live, checksum,
    /// identification, payload.
    #[test]
    fn the_rest_of_a_packet_does_not_matter(tos: u8, ident: u16, ttl: u8, checksum: u16, payload: [u8; 8]) {
        let mut packet = v4(6, 0x4000, &[&[0x30, 0x39, 0, 80], &payload[..]].concat());
        (packet[1], packet[8]) = (tos, ttl);
        packet[4..6].copy_from_slice(&ident.to_be_bytes());
        packet[10..12].copy_from_slice(&checksum.to_be_bytes());
        prop_assert_eq!(read(&packet), key(addresses_v4(), 6, 12_345, 80));
    }
}
