use etherparse::{Ipv4HeaderSlice, TcpHeaderSlice, TcpOptionElement};
use proptest::prelude::*;

use super::*;
use crate::{MptcpOption, MptcpOptions, options_len};

const ADDRESSES: Addresses = Addresses { source: [10, 0, 0, 1], destination: [192, 168, 1, 2] };

fn written(segment: &Segment, ecn: Ecn) -> Vec<u8> {
    let mut bytes = vec![0xaa; segment.wire_len() as usize];
    assert_eq!(emit(segment, ADDRESSES, ecn, &mut bytes), Ok(bytes.len()));
    bytes
}

fn sack(blocks: &[(u32, u32)]) -> SackBlocks {
    let mut sack = SackBlocks::default();
    for &(left, right) in blocks {
        assert!(sack.push(left, right));
    }
    sack
}

/// The segment that a receiver decodes from `segment`: only the SACK blocks that fit, and no
/// offset.
fn as_read(segment: &Segment) -> Segment {
    let fixed = u32::from(segment.mss.is_some()) * 4
        + if segment.timestamps.is_some() { 12 } else { u32::from(segment.sack_permitted) * 4 }
        + u32::from(segment.window_scale.is_some()) * 4
        + segment.fast_open.map_or(0, |fast_open| (fast_open.option_len() as u32).next_multiple_of(4));
    // A cookie that is too long was not kept, and is written as a request.
    let fast_open = segment.fast_open.map(|option| FastOpen::new(option.cookie()).in_form(option.experimental));
    if segment.acc_ecn.is_some() {
        // It was fitted in.
        return Segment { payload: Payload { offset: 0, len: segment.payload.len }, fast_open, ..*segment };
    }
    let mptcp = segment.mptcp.padded_len();
    let (fixed, mptcp) = if fixed + mptcp <= 40 { (fixed + mptcp, segment.mptcp) } else { (fixed, Default::default()) };
    let room = (0..=4).rev().find(|blocks| *blocks == 0 || fixed + 4 + 8 * blocks <= 40).unwrap_or(0);
    let blocks = segment.sack.as_slice();
    Segment {
        payload: Payload { offset: 0, len: segment.payload.len },
        sack: sack(&blocks[..blocks.len().min(room as usize)]),
        fast_open,
        mptcp,
        ..*segment
    }
}

prop_compose! {
    fn segments()(
        offset in prop_oneof![0..100_000u64, any::<u64>().prop_map(|offset| offset / 2)],
        len in prop_oneof![Just(0), 1..3000u32],
        (source_port, destination_port, window, flags) in any::<(u16, u16, u16, u16)>(),
        (seq, ack, mss, window_scale) in any::<(u32, u32, Option<u16>, Option<u8>)>(),
        (sack_permitted, timestamps) in any::<(bool, Option<(u32, u32)>)>(),
        blocks in prop::collection::vec(any::<(u32, u32)>(), 0..=4),
        (order, counters, least) in (any::<bool>(), any::<[u8; 9]>(), prop::option::of(0..=3usize)),
        fast_open in prop::option::weighted(0.2, (any::<bool>(), prop::collection::vec(any::<u8>(), 0..=16))),
        key in prop::option::weighted(0.2, any::<u64>()),
        reset in prop::option::weighted(0.1, any::<u8>()),
    ) -> Segment {
        let mut segment = Segment {
            payload: Payload { offset, len },
            source_port,
            destination_port,
            seq,
            ack,
            flags: Flags::from_bits(flags),
            window,
            mss,
            window_scale,
            sack_permitted,
            timestamps: timestamps.map(|(value, echo)| Timestamps { value, echo }),
            sack: sack(&blocks),
            fast_open: fast_open.map(|(experimental, cookie)| FastOpen::new(&cookie).in_form(experimental)),
            acc_ecn: None,
            mptcp: MptcpOptions::default(),
        };
        key.into_iter().for_each(|key| _ = segment.mptcp.push(&MptcpOption::FastClose { key }));
        let reset = reset.map(|reason| MptcpOption::Reset { transient: false, reason });
        reset.into_iter().for_each(|reset| _ = segment.mptcp.push(&reset));
        if let Some(least) = least.filter(|_| segment.mptcp.is_empty()) {
            let order = if order { AccEcnOrder::One } else { AccEcnOrder::Zero };
            crate::fit_acc_ecn(&mut segment, AccEcn::from_bytes(order, &counters), least);
        }
        segment
    }
}

#[test]
fn fast_open_in_both_forms() {
    let cookie = FastOpen::new(&[0xab, 0xcd, 0x12, 0x34]);
    for (fast_open, bytes) in [
        (cookie, &[34, 6, 0xab, 0xcd, 0x12, 0x34, 1, 1][..]),
        (cookie.in_form(true), &[254, 8, 0xf9, 0x89, 0xab, 0xcd, 0x12, 0x34][..]),
        (FastOpen::REQUEST, &[34, 2, 1, 1][..]),
        (FastOpen::REQUEST.in_form(true), &[254, 4, 0xf9, 0x89][..]),
    ] {
        let segment = Segment { flags: Flags::SYN, fast_open: Some(fast_open), ..Segment::default() };
        let packet = written(&segment, Ecn::NotEct);
        assert_eq!(&packet[40..], bytes);
        assert_eq!(parse(&packet).unwrap().segment, segment);
    }
}

#[test]
fn other_experiments_are_skipped_and_long_cookies_are_noticed() {
    let read = |options: &[u8]| {
        let mut segment = Segment::default();
        read_options(options, &mut segment);
        segment.fast_open
    };
    assert_eq!(read(&[254, 4, 0xf9, 0x88]), None);
    assert_eq!(read(&[254, 3, 0xf9]), None);
    let long: Vec<u8> = [34, 20].into_iter().chain(0..18).collect();
    assert_eq!(read(&long).map(|fast_open| (fast_open.cookie_len(), fast_open.is_cookie())), Some((18, false)));
}

fn codepoints() -> impl Strategy<Value = Ecn> {
    (0..4u8).prop_map(Ecn::from_bits)
}

#[test]
fn a_syn_is_byte_for_byte_what_linux_sends() {
    let segment = Segment {
        source_port: 49_152,
        destination_port: 80,
        seq: 0x0102_0304,
        flags: Flags::SYN | Flags::ECE | Flags::CWR,
        window: 64_240,
        mss: Some(1460),
        window_scale: Some(7),
        sack_permitted: true,
        timestamps: Some(Timestamps { value: 0x1122_3344, echo: 0 }),
        ..Segment::default()
    };
    #[rustfmt::skip]
    let expected = [
        // Version and length, DSCP and ECN, total length, identification, DF, TTL, protocol,
        // checksum, addresses.
        0x45, 0x00, 0x00, 0x3c, 0x00, 0x00, 0x40, 0x00, 0x40, 0x06, 0x6f, 0x11, 10, 0, 0, 1, 192, 168, 1, 2,
        // Ports, sequence and acknowledgment numbers, data offset 10 words, CWR ECE SYN, window,
        // checksum, urgent pointer.
        0xc0, 0x00, 0x00, 0x50, 1, 2, 3, 4, 0, 0, 0, 0, 0xa0, 0xc2, 0xfa, 0xf0, 0x77, 0xe7, 0, 0,
        // mss 1460, sackOK, TS val ecr 0, nop, wscale 7.
        2, 4, 0x05, 0xb4, 4, 2, 8, 10, 0x11, 0x22, 0x33, 0x44, 0, 0, 0, 0, 1, 3, 3, 7,
    ];
    assert_eq!(written(&segment, Ecn::NotEct), expected);
    assert_eq!(parse(&expected).unwrap().segment, segment);
}

#[test]
fn option_layouts_of_common_stacks() {
    let timestamps = Some(Timestamps { value: 0x0a0b_0c0d, echo: 0x0102_0304 });
    let syn = Segment { mss: Some(1460), sack_permitted: true, window_scale: Some(7), ..Segment::default() };
    let blocks = sack(&[(1, 2), (3, 4), (5, 6), (7, 8)]);
    #[rustfmt::skip]
    let cases: [(&str, Segment, Vec<u8>); 8] = [
        ("nothing", Segment::default(), vec![]),
        ("mss alone", Segment { mss: Some(536), ..Segment::default() }, vec![2, 4, 2, 24]),
        ("mss, nop, nop, sackOK, nop, wscale", syn, vec![2, 4, 5, 180, 1, 1, 4, 2, 1, 3, 3, 7]),
        ("mss, sackOK, TS", Segment { timestamps, window_scale: None, ..syn },
            vec![2, 4, 5, 180, 4, 2, 8, 10, 10, 11, 12, 13, 1, 2, 3, 4]),
        ("mss, nop, nop, TS, nop, wscale", Segment { timestamps, sack_permitted: false, ..syn },
            vec![2, 4, 5, 180, 1, 1, 8, 10, 10, 11, 12, 13, 1, 2, 3, 4, 1, 3, 3, 7]),
        ("nop, nop, TS", Segment { timestamps, ..Segment::default() }, vec![1, 1, 8, 10, 10, 11, 12, 13, 1, 2, 3, 4]),
        ("nop, nop, TS, nop, nop, three of four blocks", Segment { timestamps, sack: blocks, ..Segment::default() },
            vec![1, 1, 8, 10, 10, 11, 12, 13, 1, 2, 3, 4,
                 1, 1, 5, 26, 0, 0, 0, 1, 0, 0, 0, 2, 0, 0, 0, 3, 0, 0, 0, 4, 0, 0, 0, 5, 0, 0, 0, 6]),
        ("nop, nop, four blocks", Segment { sack: blocks, ..Segment::default() },
            vec![1, 1, 5, 34, 0, 0, 0, 1, 0, 0, 0, 2, 0, 0, 0, 3, 0, 0, 0, 4,
                 0, 0, 0, 5, 0, 0, 0, 6, 0, 0, 0, 7, 0, 0, 0, 8]),
    ];
    for (name, segment, options) in cases {
        let bytes = written(&segment, Ecn::NotEct);
        assert_eq!(&bytes[40..], options, "{name}");
        assert_eq!(options_len(&segment) as usize, options.len(), "{name}");
    }
}

/// `options`, padded, as the options of an otherwise plain segment.
fn read(options: &[u8]) -> Segment {
    let mut segment = Segment::default();
    read_options(options, &mut segment);
    segment
}

#[test]
fn options_are_read_leniently() {
    let plain = Segment::default();
    let mss = Segment { mss: Some(1000), ..plain };
    for (name, options, expected) in [
        ("what follows the end is not read", &[0, 2, 4, 3, 232][..], plain),
        ("unknown kinds are skipped", &[254, 6, 1, 2, 3, 4, 2, 4, 3, 232], mss),
        ("an unknown kind without data", &[33, 2, 2, 4, 3, 232], mss),
        ("length 0 ends the list", &[254, 0, 2, 4, 3, 232], plain),
        ("length 1 ends the list", &[254, 1, 2, 4, 3, 232], plain),
        ("a length past the header ends the list", &[2, 4, 3, 232, 8, 10, 1, 2, 3], mss),
        ("a kind without its length", &[2, 4, 3, 232, 1, 1, 1, 8], mss),
        ("a known kind of a wrong length is skipped", &[2, 3, 9, 3, 4, 9, 9, 8, 4, 1, 1, 2, 4, 3, 232], mss),
        ("SACK of no whole block", &[5, 2, 5, 7, 1, 1, 1, 1, 1, 2, 4, 3, 232], mss),
        ("the last of two counts", &[2, 4, 5, 180, 2, 4, 3, 232], mss),
        (
            "wscale and sackOK without padding",
            &[3, 3, 15, 4, 2],
            Segment { window_scale: Some(15), sack_permitted: true, ..plain },
        ),
    ] {
        assert_eq!(read(options), expected, "{name}");
    }
    let mut repeated = vec![5, 10, 0, 0, 0, 9, 0, 0, 0, 10];
    repeated.extend([5, 18, 0, 0, 0, 1, 0, 0, 0, 2, 0, 0, 0, 3, 0, 0, 0, 4]);
    assert_eq!(read(&repeated).sack, sack(&[(1, 2), (3, 4)]));
}

#[test]
fn acc_ecn_is_read_in_both_orders_and_in_all_lengths() {
    // RFC 9768 table 5: kinds 172 and 174, 24 bits each.
    let counters = |options: &[u8]| read(options).acc_ecn.map(|option| option.to_string());
    assert_eq!(counters(&[172, 5, 0, 0, 1, 1]).as_deref(), Some("ECN e0b 1"));
    assert_eq!(counters(&[174, 11, 0, 0, 1, 0, 1, 0, 0, 0, 2, 1]).as_deref(), Some("ECN e1b 1 ceb 256 e0b 2"));
    assert_eq!(counters(&[1, 1, 174, 2]).as_deref(), Some("AccECN1"));
    assert_eq!(counters(&[174, 6, 0, 0, 1, 9, 1, 1]).as_deref(), Some("ECN e1b 1"), "a field that is cut off");
    assert_eq!(counters(&[174, 12, 0, 0, 1]), None, "an impossible length");
    assert_eq!(counters(&[173, 5, 0, 0, 1, 1]), None);
}

#[test]
fn what_is_refused_says_why() {
    let good = written(&Segment { payload: Payload { offset: 5, len: 10 }, ..Segment::default() }, Ecn::Ect0);
    let with = |at: usize, byte: u8| {
        let mut bytes = good.clone();
        bytes[at] = byte;
        let mut ip = Ipv4Packet::new_unchecked(&mut bytes[..]);
        if ip.header_len() >= 20 {
            ip.fill_checksum();
        }
        bytes
    };
    assert_eq!(parse(&[]), Err(ParseError::Length));
    assert_eq!(parse(&with(0, 0x65)), Err(ParseError::Version(6)));
    assert_eq!(parse(&with(0, 0x44)), Err(ParseError::Length));
    assert_eq!(parse(&with(0, 0x46)), Err(ParseError::IpOptions));
    assert_eq!(parse(&with(3, 19)), Err(ParseError::Length));
    assert_eq!(parse(&with(3, 39)), Err(ParseError::Length));
    assert_eq!(parse(&with(3, 51)), Err(ParseError::Length));
    assert_eq!(parse(&with(6, 0x20)), Err(ParseError::Fragment));
    assert_eq!(parse(&with(7, 0x01)), Err(ParseError::Fragment));
    assert_eq!(parse(&with(9, 17)), Err(ParseError::Protocol(17)));
    assert_eq!(parse(&with(12, 11)), Err(ParseError::TcpChecksum));
    assert_eq!(parse(&with(32, 0x40)), Err(ParseError::Length));
    assert_eq!(parse(&with(32, 0xf0)), Err(ParseError::Length));
    assert_eq!(parse(&with(45, 0)), Err(ParseError::TcpChecksum));
    let mut bytes = good.clone();
    bytes[8] -= 1;
    assert_eq!(parse(&bytes), Err(ParseError::IpChecksum));
    // What a frame pads with is not payload.
    bytes = good.clone();
    bytes.extend([0; 6]);
    assert_eq!(parse(&bytes), parse(&good));
}

#[test]
fn what_does_not_fit_is_not_written() {
    let largest = Segment { payload: Payload { offset: 0, len: 65_495 }, ..Segment::default() };
    assert_eq!(parse(&written(&largest, Ecn::NotEct)).unwrap().payload.len(), 65_495);
    for len in [65_496, u32::MAX] {
        let segment = Segment { payload: Payload { offset: 0, len }, ..Segment::default() };
        let wire_len = 40 + u64::from(len);
        assert_eq!(emit(&segment, ADDRESSES, Ecn::NotEct, &mut []), Err(EmitError::TooLong { wire_len }));
    }
    let mut buffer = [0xaa; 39];
    let short = emit(&Segment::default(), ADDRESSES, Ecn::NotEct, &mut buffer);
    assert_eq!(short, Err(EmitError::ShortBuffer { needed: 40, found: 39 }));
    assert_eq!(buffer, [0xaa; 39]);
}

proptest! {
    #[test]
    fn what_is_written_is_read_back(segment in segments(), ecn in codepoints()) {
        let bytes = written(&segment, ecn);
        prop_assert!(segment.header_len() <= 60);
        let parsed = parse(&bytes).unwrap();
        prop_assert_eq!(parsed.segment, as_read(&segment));
        prop_assert_eq!((parsed.addresses, parsed.ecn), (ADDRESSES, ecn));
        prop_assert_eq!(pattern::first_mismatch(segment.payload.offset, parsed.payload), None);
    }

    #[test]
    fn etherparse_reads_the_same(segment in segments(), ecn in codepoints()) {
        // It knows neither AccECN nor Fast Open nor MPTCP.
        let segment = Segment { acc_ecn: None, fast_open: None, mptcp: MptcpOptions::default(), ..segment };
        let bytes = written(&segment, ecn);
        let expected = as_read(&segment);
        let ip = Ipv4HeaderSlice::from_slice(&bytes).unwrap();
        prop_assert_eq!(usize::from(ip.total_len()), bytes.len());
        prop_assert_eq!((ip.source(), ip.destination()), (ADDRESSES.source, ADDRESSES.destination));
        prop_assert_eq!((ip.ecn().value(), ip.dcp().value(), ip.protocol().0, ip.ttl()), (ecn.bits(), 0, 6, 64));
        prop_assert!(ip.dont_fragment() && !ip.is_fragmenting_payload());
        prop_assert_eq!(ip.header_checksum(), ip.to_header().calc_header_checksum());
        let tcp = TcpHeaderSlice::from_slice(&bytes[20..]).unwrap();
        prop_assert_eq!((tcp.source_port(), tcp.destination_port()), (expected.source_port, expected.destination_port));
        prop_assert_eq!((tcp.sequence_number(), tcp.acknowledgment_number()), (expected.seq, expected.ack));
        prop_assert_eq!((tcp.window_size(), tcp.urgent_pointer()), (expected.window, 0));
        let flags =
            [tcp.fin(), tcp.syn(), tcp.rst(), tcp.psh(), tcp.ack(), tcp.urg(), tcp.ece(), tcp.cwr(), tcp.ns()];
        let bits = flags.iter().enumerate().fold(0, |bits, (bit, &set)| bits | u16::from(set) << bit);
        prop_assert_eq!(Flags::from_bits(bits), expected.flags);
        let payload = &bytes[20 + usize::from(tcp.data_offset()) * 4..];
        prop_assert_eq!(payload.len(), expected.payload.len as usize);
        let checksum = tcp.calc_checksum_ipv4_raw(ADDRESSES.source, ADDRESSES.destination, payload).unwrap();
        prop_assert_eq!(tcp.checksum(), checksum);

        let mut found = Segment::default();
        for option in tcp.options_iterator() {
            match option.unwrap() {
                TcpOptionElement::Noop => {}
                TcpOptionElement::MaximumSegmentSize(mss) => found.mss = Some(mss),
                TcpOptionElement::WindowScale(shift) => found.window_scale = Some(shift),
                TcpOptionElement::SelectiveAcknowledgementPermitted => found.sack_permitted = true,
                TcpOptionElement::SelectiveAcknowledgement(first, others) => {
                    found.sack.push(first.0, first.1);
                    for (left, right) in others.into_iter().flatten() {
                        found.sack.push(left, right);
                    }
                }
                TcpOptionElement::Timestamp(value, echo) => found.timestamps = Some(Timestamps { value, echo }),
            }
        }
        prop_assert_eq!((found.mss, found.window_scale), (expected.mss, expected.window_scale));
        prop_assert_eq!((found.sack_permitted, found.timestamps), (expected.sack_permitted, expected.timestamps));
        prop_assert_eq!(found.sack, expected.sack);
    }

    #[test]
    fn no_truncation_is_read(segment in segments()) {
        let bytes = written(&segment, Ecn::Ect0);
        for len in 0..bytes.len() {
            prop_assert_eq!(parse(&bytes[..len]), Err(ParseError::Length));
        }
    }

    /// A flipped bit is always detected: a ones' complement sum changes by a power of two, which is
    /// not 0 modulo 65535.
    #[test]
    fn no_flipped_bit_is_read(mut segment in segments()) {
        segment.payload.len %= 40;
        let mut bytes = written(&segment, Ecn::Ect0);
        for bit in 0..8 * bytes.len() {
            bytes[bit / 8] ^= 1 << (bit % 8);
            prop_assert!(parse(&bytes).is_err(), "bit {}", bit);
            bytes[bit / 8] ^= 1 << (bit % 8);
        }
    }

    /// The same past the checksums: whatever is in the headers, reading ends and what was read can
    /// be written.
    #[test]
    fn no_header_panics(mut bytes in prop::collection::vec(any::<u8>(), 40..120), offset in 5..16u8) {
        let len = bytes.len();
        bytes[0] = 0x45;
        bytes[2..4].copy_from_slice(&(len as u16).to_be_bytes());
        bytes[6..8].copy_from_slice(&[0x40, 0]);
        bytes[9] = 6;
        bytes[32] = offset << 4 | bytes[32] & 0x0f;
        let mut ip = Ipv4Packet::new_unchecked(&mut bytes[..]);
        ip.fill_checksum();
        let (source, destination) = (IpAddress::Ipv4(ip.src_addr()), IpAddress::Ipv4(ip.dst_addr()));
        TcpPacket::new_unchecked(&mut bytes[20..]).fill_checksum(&source, &destination);
        match parse(&bytes) {
            Ok(parsed) => {
                prop_assert_eq!(parsed.payload.len(), len - 20 - usize::from(offset) * 4);
                let again = written(&parsed.segment, parsed.ecn);
                prop_assert_eq!(parse(&again).unwrap().segment, as_read(&parsed.segment));
            }
            Err(error) => prop_assert_eq!((error, usize::from(offset) * 4 > len - 20), (ParseError::Length, true)),
        }
    }

    /// Peeking at a passing segment gives the same as parsing, whatever its checksum.
    #[test]
    fn peeking_needs_no_checksum(segment in segments()) {
        let mut bytes = written(&segment, Ecn::Ect0);
        prop_assert_eq!(peek(&bytes[20..]), Ok(as_read(&segment)));
        bytes[36] ^= 1;
        prop_assert_eq!(peek(&bytes[20..]), Ok(as_read(&segment)));
        prop_assert_eq!(peek(&bytes[20..39]), Err(ParseError::Length));
    }

    #[test]
    fn no_bytes_panic(bytes in prop::collection::vec(any::<u8>(), 0..200)) {
        let _ = (parse(&bytes), peek(&bytes));
    }

    #[test]
    fn no_options_panic(options in prop::collection::vec(any::<u8>(), 0..=40)) {
        read(&options);
    }
}
