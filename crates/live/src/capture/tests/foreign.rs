//! Captures of other tools, made by hand.

use super::*;

/// Writes numbers in one order of bytes.
#[derive(Clone, Copy)]
struct Order {
    big: bool,
}

const LITTLE: Order = Order { big: false };
const BIG: Order = Order { big: true };

impl Order {
    fn u16(self, number: u16) -> [u8; 2] {
        if self.big { number.to_be_bytes() } else { number.to_le_bytes() }
    }

    fn u32(self, number: u32) -> [u8; 4] {
        if self.big { number.to_be_bytes() } else { number.to_le_bytes() }
    }

    fn u64(self, number: u64) -> [u8; 8] {
        if self.big { number.to_be_bytes() } else { number.to_le_bytes() }
    }

    fn block(self, kind: u32, body: &[u8]) -> Vec<u8> {
        let len = self.u32(12 + body.len() as u32);
        [&self.u32(kind)[..], &len, body, &len].concat()
    }

    fn option(self, code: u16, value: &[u8]) -> Vec<u8> {
        let mut option = [&self.u16(code)[..], &self.u16(value.len() as u16), value].concat();
        option.resize(option.len().next_multiple_of(4), 0);
        option
    }

    fn section(self) -> Vec<u8> {
        let body = [&self.u32(0x1a2b_3c4d)[..], &self.u16(1), &self.u16(0), &self.u64(u64::MAX)].concat();
        self.block(0x0a0d_0d0a, &body)
    }

    fn interface(self, linktype: u16, options: &[(u16, &[u8])]) -> Vec<u8> {
        let options: Vec<u8> = options.iter().flat_map(|&(code, value)| self.option(code, value)).collect();
        self.block(1, &[&self.u16(linktype)[..], &[0, 0], &self.u32(0), &options].concat())
    }

    fn packet(self, interface: u32, at: u64, flags: Option<u32>, original: usize, frame: &[u8]) -> Vec<u8> {
        let times = [self.u32((at >> 32) as u32), self.u32(at as u32)].concat();
        let lens = [self.u32(frame.len() as u32), self.u32(original as u32)].concat();
        let mut body = [&self.u32(interface)[..], &times, &lens, frame].concat();
        body.resize(body.len().next_multiple_of(4), 0);
        body.extend(flags.into_iter().flat_map(|flags| self.option(2, &self.u32(flags))));
        self.block(6, &body)
    }

    fn whole(self, interface: u32, at: u64, frame: &[u8]) -> Vec<u8> {
        self.packet(interface, at, None, frame.len(), frame)
    }

    fn pcap(self, magic: u32, linktype: u32) -> Vec<u8> {
        [&self.u32(magic)[..], &self.u16(2), &self.u16(4), &[0; 8], &self.u32(262_144), &self.u32(linktype)].concat()
    }

    fn pcap_packet(self, seconds: u32, units: u32, frame: &[u8]) -> Vec<u8> {
        let len = self.u32(frame.len() as u32);
        [&self.u32(seconds)[..], &self.u32(units), &len, &len, frame].concat()
    }
}

fn ipv6(from: u16, len: u16) -> Vec<u8> {
    let mut packet = vec![0; 40 + usize::from(len)];
    packet[0] = 0x60;
    packet[4..6].copy_from_slice(&len.to_be_bytes());
    packet[8..24].copy_from_slice(&Ipv6Addr::new(0xfd00, 0, 0, 0, 0, 0, 0, from).octets());
    packet
}

fn packets(file: Vec<u8>) -> Vec<Packet> {
    let (packets, end) = read(file).unwrap();
    assert_eq!(end, None);
    packets
}

#[test]
fn timestamps_have_any_unit_and_offset_in_either_order_of_bytes() {
    let packet = ipv4(1, 2, 40);
    for order in [LITTLE, BIG] {
        let resolution = |value: u8, units: [u64; 2], offset: i64| {
            let offset = order.u64(offset as u64);
            let options: &[(u16, &[u8])] = &[(9, &[value]), (14, &offset)];
            let interface = order.interface(101, options);
            let at = units.map(|at| order.whole(0, at, &packet));
            packets([order.section(), interface, at.concat()].concat())[1].0
        };
        assert_eq!(resolution(9, [1_700_000_000_000_000_000, 1_700_000_000_000_000_001], 0), 1);
        assert_eq!(resolution(6, [5, 7], 1_700_000_000), 2000);
        assert_eq!(resolution(0, [5, 7], -5), 2_000_000_000);
        // 2^-20 s: 3 * 10^9 / 2^20 = 2861.02 ns.
        assert_eq!(resolution(0x80 | 20, [0, 3], 0), 2861);
        // 2^32 units of 1 ns: both halves count.
        assert_eq!(resolution(9, [0, 1 << 32], 0), 1 << 32);
        // Microseconds unless said otherwise.
        let at = [3, 10].map(|at| order.whole(0, at, &packet)).concat();
        assert_eq!(packets([order.section(), order.interface(101, &[]), at].concat())[1].0, 7000);
    }
    let bad = [LITTLE.section(), LITTLE.interface(101, &[(9, &[20])])].concat();
    assert!(read(bad).unwrap_err().contains("if_tsresol"));
    let bad = [LITTLE.section(), LITTLE.interface(101, &[(14, &[1, 2, 3])])].concat();
    assert!(read(bad).unwrap_err().contains("if_tsoffset"));
}

#[test]
fn a_packet_is_of_the_host_with_its_source_address() {
    let order = LITTLE;
    let file = [
        order.section(),
        order.interface(101, &[]),
        order.whole(0, 10, &ipv4(9, 1, 40)),
        order.whole(0, 11, &ipv4(2, 1, 40)),
        // The address of a host in this process.
        order.whole(0, 12, &ipv4(3, 1, 40)),
        order.whole(0, 13, &ipv6(1, 8)),
    ];
    let expected =
        vec![(1000, 2, CaptureDirection::FromHost, ipv4(2, 1, 40)), (3000, 0, CaptureDirection::FromHost, ipv6(1, 8))];
    assert_eq!(packets(file.concat()), expected);
}

#[test]
fn an_interface_with_a_name_is_a_hosts() {
    let order = BIG;
    let file = [
        order.section(),
        order.interface(101, &[(2, b"ack0")]),
        order.interface(101, &[(2, b"right")]),
        // 2 is outbound: whatever address it has. 1 is inbound.
        order.packet(0, 10, Some(2), 40, &ipv4(9, 2, 40)),
        order.packet(1, 11, Some(1), 40, &ipv4(1, 2, 40)),
        // Without a direction it is known by its address, where it was sent and not where it
        // arrived.
        order.whole(0, 12, &ipv4(1, 2, 40)),
        order.whole(1, 13, &ipv4(1, 2, 40)),
    ];
    let expected = vec![
        (0, 0, CaptureDirection::FromHost, ipv4(9, 2, 40)),
        (1000, 2, CaptureDirection::ToHost, ipv4(1, 2, 40)),
        (2000, 0, CaptureDirection::FromHost, ipv4(1, 2, 40)),
    ];
    assert_eq!(packets(file.concat()), expected);
    let twice = [order.section(), order.interface(101, &[(2, b"left")]), order.interface(101, &[(2, b"ack0")])];
    assert!(read(twice.concat()).unwrap_err().contains("same host"));
}

#[test]
fn link_layers_are_taken_off() {
    let ip = ipv4(1, 2, 40);
    let addresses = [0xaa; 12];
    let frame = |header: &[u8], packet: &[u8], padding: usize| [header, packet, &vec![0; padding]].concat();
    let sll2 = |kind: u16| [&kind.to_be_bytes()[..], &[0; 18]].concat();
    let cases = [
        (1, frame(&[&addresses[..], &[0x08, 0x00]].concat(), &ip, 6)),
        (1, frame(&[&addresses[..], &[0x81, 0x00, 0, 5, 0x08, 0x00]].concat(), &ip, 2)),
        (1, frame(&[&addresses[..], &[0x88, 0xa8, 0, 5, 0x81, 0x00, 0, 6, 0x08, 0x00]].concat(), &ip, 0)),
        (113, frame(&[&[0; 14][..], &[0x08, 0x00]].concat(), &ip, 0)),
        (276, frame(&sll2(0x0800), &ip, 0)),
        (113, frame(&[&[0; 14][..], &[0x81, 0x00, 0, 5, 0x08, 0x00]].concat(), &ip, 0)),
        (276, frame(&[&sll2(0x8100)[..], &[0, 5, 0x08, 0x00]].concat(), &ip, 0)),
        (1, frame(&[&addresses[..], &[0x88, 0x64, 0x11, 0, 0, 1, 0, 42, 0x00, 0x21]].concat(), &ip, 4)),
        (0, frame(&[2, 0, 0, 0], &ip, 0)),
        (108, frame(&[0, 0, 0, 2], &ip, 0)),
        (9, frame(&[0x00, 0x21], &ip, 0)),
        (9, frame(&[0x21], &ip, 0)),
        (50, frame(&[0xff, 0x03, 0x00, 0x21], &ip, 0)),
        (51, frame(&[0x11, 0, 0, 1, 0, 42, 0x00, 0x21], &ip, 0)),
        (228, ip.clone()),
        (12, ip.clone()),
    ];
    for (linktype, bytes) in cases {
        let file = [LITTLE.section(), LITTLE.interface(linktype, &[]), LITTLE.whole(0, 1, &bytes)].concat();
        assert_eq!(packets(file), [(0, 0, CaptureDirection::FromHost, ip.clone())], "{linktype}");
    }
    // IPv6 with a payload of 8 bytes, and a trailer.
    let bytes = frame(&[&addresses[..], &[0x86, 0xdd]].concat(), &ipv6(2, 8), 10);
    let file = [LITTLE.section(), LITTLE.interface(1, &[]), LITTLE.whole(0, 1, &bytes)].concat();
    assert_eq!(packets(file), [(0, 2, CaptureDirection::FromHost, ipv6(2, 8))]);
    // ARP is passed over, and too little of anything.
    let arp = frame(&[&addresses[..], &[0x08, 0x06]].concat(), &ip, 0);
    // PPP frames without IP, and truncated frames.
    let control = [0xff, 0x03, 0xc0, 0x21, 1, 1, 0, 4];
    let ethernet =
        [&arp[..], &arp[..13], &[], &frame(&addresses, &[0x08, 0, 0x45], 0)].map(|bytes| (1, bytes.to_vec()));
    let others = [0, 9, 50, 51, 108, 113, 276].into_iter().flat_map(|link| {
        [&control[..], &[], &[0], &[0xff, 3], &[0x81, 0], &[2, 0, 0, 0]].map(|bytes| (link, bytes.to_vec()))
    });
    for (link, bytes) in ethernet.into_iter().chain(others) {
        let file = [LITTLE.section(), LITTLE.interface(link, &[]), LITTLE.whole(0, 1, &bytes)].concat();
        assert!(
            read(file).unwrap_err().contains("no packet is from a host of the scenario (10.0.0.1, fd00::1, 10.0.0.2")
        );
    }
}

#[test]
fn a_packet_that_was_cut_has_the_length_that_it_says() {
    // 82 of 1400 bytes behind an Ethernet header, and 100 of padding behind them.
    let frame = [&[0xaa; 12][..], &[8, 0], &ipv4(1, 2, 1400)[..82]].concat();
    let file = [LITTLE.section(), LITTLE.interface(1, &[]), LITTLE.packet(0, 1, None, 1514, &frame)].concat();
    let mut reader = CaptureReader::new(Path::new("x.pcapng"), Cursor::new(file), Some(&nodes())).unwrap();
    let packet = reader.next().unwrap().unwrap();
    assert_eq!((packet.bytes, packet.len), (&ipv4(1, 2, 1400)[..82], 1400));
}

#[test]
fn pcap_is_read_in_all_four_variants() {
    let ip = ipv4(2, 1, 41);
    let magics = [(0xa1b2_c3d4, 1000), (0xa1b2_3c4d, 1)];
    for order in [LITTLE, BIG] {
        for (magic, unit) in magics {
            let first = order.pcap_packet(1_700_000_000, 999_999, &ip);
            let second = order.pcap_packet(1_700_000_001, 3, &ip);
            let file = [order.pcap(magic, 101), first, second].concat();
            // From 999 999 units after one second to 3 units after the next.
            let later = 1_000_000_000 + 3 * unit - 999_999 * unit;
            let expected =
                [(0, 2, CaptureDirection::FromHost, ip.clone()), (later, 2, CaptureDirection::FromHost, ip.clone())];
            assert_eq!(packets(file), expected);
        }
    }
    // The upper half of the link type says how long frame check sequences are.
    let file = [LITTLE.pcap(0xa1b2_c3d4, 0x4400_0065), LITTLE.pcap_packet(1, 2, &ip)].concat();
    assert_eq!(packets(file).len(), 1);
}

#[test]
fn what_cannot_be_replayed_is_told_with_its_place() {
    let order = LITTLE;
    let [section, interface] = [order.section(), order.interface(101, &[])];
    // Headers of 28 and 20 bytes, a packet of 44 + 40 - 12.
    assert_eq!((section.len(), interface.len()), (28, 20));
    let good = order.whole(0, 5_000_000, &ipv4(1, 2, 40));
    assert_eq!(good.len(), 72);
    let behind = |what: &[u8]| read([&section, &interface, &good, what].concat()).unwrap_err();
    let told = |what: &[u8], place: &str, problem: &str| {
        let error = behind(what);
        assert!(error.starts_with(&format!("x.pcapng: {place}: ")) && error.contains(problem), "{error}");
    };
    let second = "packet 2, at byte 120";
    told(&order.whole(0, 4_000_000, &ipv4(1, 2, 40)), second, "it is 1 s before the previous one");
    told(&order.whole(1, 6_000_000, &ipv4(1, 2, 40)), second, "interface 1, but there are 1");
    told(&order.block(3, &[0; 24]), second, "without a time");
    told(&order.block(2, &[0; 24]), second, "without a time");
    told(&good[..71], second, "it was cut");
    let after = "at byte 120, after 1 packets";
    told(&[order.interface(147, &[]), order.whole(1, 1, &[1; 40])].concat(), "packet 2, at byte 140", "link type 147");
    told(&order.block(0xbad, &[0; 8])[..12], after, "it was cut");
    told(&[&order.u32(6)[..], &[0, 0, 16, 0], &[0; 8]].concat(), second, "it was cut");
    told(&[&order.u32(6)[..], &[0, 0, 32, 0], &[0; 8]].concat(), second, "more than one with an IP packet");
    told(&[&order.u32(1)[..], &[13, 0, 0, 0], &[0; 8]].concat(), after, "a block of 13 bytes");
    let mut ends = good.clone();
    ends[68] = 0;
    told(&ends, second, "another length at its end");
    // More captured than the block holds.
    let mut long = good.clone();
    long[20] = 60;
    told(&long, second, "malformed enhanced packet");
    // 10^9 s/unit: 2^64 s after the first one.
    let seconds = order.interface(101, &[(9, &[0])]);
    told(&[seconds, order.whole(1, u64::MAX, &ipv4(1, 2, 40))].concat(), "packet 2, at byte 148", "centuries");

    assert!(read(vec![]).unwrap_err().contains("too short"));
    assert!(read(b"#!/bin/sh\n".to_vec()).unwrap_err().contains("does not begin as a capture"));
    assert!(read(order.pcap(0xa1b2_c3d4, 105)).unwrap_err().contains("link type 105"));
    assert!(read([order.pcap(0xa1b2_c3d4, 101), vec![0; 15]].concat()).unwrap_err().contains("packet 1, at byte 24"));
}

#[test]
fn blocks_that_say_nothing_of_packets_are_passed_over_however_long() {
    let order = LITTLE;
    let file = [
        order.section(),
        order.block(0xbad, &vec![7; 3_000_000]),
        order.interface(101, &[]),
        order.block(4, &[0; 400]),
        order.whole(0, 1, &ipv4(1, 2, 40)),
        // Another section, of other byte order and with interfaces of its own.
        BIG.section(),
        BIG.interface(1, &[]),
        BIG.interface(228, &[]),
        BIG.whole(1, 2, &ipv4(2, 1, 40)),
    ];
    let expected =
        vec![(0, 0, CaptureDirection::FromHost, ipv4(1, 2, 40)), (1000, 2, CaptureDirection::FromHost, ipv4(2, 1, 40))];
    assert_eq!(packets(file.concat()), expected);
}

#[test]
fn a_file_that_comes_in_small_pieces_is_the_same() {
    struct Trickle(Cursor<Vec<u8>>, usize);
    impl Read for Trickle {
        fn read(&mut self, buffer: &mut [u8]) -> std::io::Result<usize> {
            self.1 = self.1 % 7 + 1;
            let most = buffer.len().min(self.1);
            self.0.read(&mut buffer[..most])
        }
    }
    let packets = some_packets();
    let file = write("trickle", &packets);
    assert_eq!(read_all(Trickle(Cursor::new(file), 0)), Ok((packets, Some(Time::from_secs(5)))));
}

#[test]
fn a_host_that_the_scenario_does_not_have_is_told() {
    let file = write("unknown", &some_packets());
    let error =
        CaptureReader::new(Path::new("x"), Cursor::new(file.clone()), Some(&nodes()[..1])).and_then(|mut reader| {
            while reader.next()?.is_some() {}
            Ok(())
        });
    assert!(error.unwrap_err().to_string().contains("interface right is no host of the scenario that has a device"));
}
