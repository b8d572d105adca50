//! Segments against the packets of them that are built one by one, by another library.

use etherparse::{Ipv4Header, Ipv6FlowLabel, Ipv6Header, TcpHeader, TcpOptionElement, UdpHeader};
use proptest::prelude::*;

use super::*;

/// The common properties of the packets of a segment.
#[derive(Clone, Debug)]
pub(crate) struct SharedPackets {
    pub(crate) six: bool,
    pub(crate) udp: bool,
    pub(crate) from: u8,
    pub(crate) to: u8,
    pub(crate) class: u8,
    pub(crate) id: u16,
    pub(crate) sequence: u32,
    /// FIN, PSH and CWR.
    pub(crate) flags: [bool; 3],
    pub(crate) timestamps: bool,
    pub(crate) size: u16,
}

/// A whole packet with the part of a stream from `at` on, the `number`th of its segment.
fn packet(shared: &SharedPackets, number: usize, flags: [bool; 3], payload: &[u8]) -> Vec<u8> {
    let ports = [40_000, 443];
    let [four, six] = [[10, 0, 0], [0xfd, 0, 0]];
    let (source, destination) = ([four[0], 0, 0, shared.from], [four[0], 0, 0, shared.to]);
    let long = |last: u8| std::array::from_fn(|at| if at == 15 { last } else { six.get(at).copied().unwrap_or(0) });
    let mut transport = Vec::new();
    let header = if shared.udp { 8 } else { 20 + if shared.timestamps { 12 } else { 0 } };
    let len = header + payload.len();
    let next = if shared.udp { 17 } else { 6 };
    let mut v4 = Ipv4Header::new(len as u16, 63, next.into(), source, destination).unwrap();
    v4.identification = shared.id.wrapping_add(number as u16);
    v4.ecn = (shared.class & 3).try_into().unwrap();
    v4.dscp = (shared.class >> 2).try_into().unwrap();
    v4.header_checksum = v4.calc_header_checksum();
    let v6 = Ipv6Header {
        traffic_class: shared.class,
        flow_label: Ipv6FlowLabel::try_new(7).unwrap(),
        payload_length: len as u16,
        next_header: next.into(),
        hop_limit: 63,
        source: long(shared.from),
        destination: long(shared.to),
    };
    if shared.udp {
        let [source, destination] = ports;
        let udp = match shared.six {
            false => UdpHeader::with_ipv4_checksum(source, destination, &v4, payload).unwrap(),
            true => UdpHeader::with_ipv6_checksum(source, destination, &v6, payload).unwrap(),
        };
        udp.write(&mut transport).unwrap();
    } else {
        let mut tcp = TcpHeader::new(ports[0], ports[1], 0, 1234);
        tcp.sequence_number = shared.sequence.wrapping_add((number * usize::from(shared.size)) as u32);
        tcp.acknowledgment_number = 99;
        (tcp.ack, tcp.ece) = (true, true);
        [tcp.fin, tcp.psh, tcp.cwr] = flags;
        if shared.timestamps {
            tcp.set_options(&[TcpOptionElement::Timestamp(5, 6)]).unwrap();
        }
        tcp.checksum = match shared.six {
            false => tcp.calc_checksum_ipv4(&v4, payload).unwrap(),
            true => tcp.calc_checksum_ipv6(&v6, payload).unwrap(),
        };
        // With TCP both mean the same, and `PartialChecksum::complete` writes this one.
        if tcp.checksum == 0 {
            tcp.checksum = 0xffff;
        }
        tcp.write(&mut transport).unwrap();
    }
    let mut bytes = Vec::new();
    if shared.six { v6.write(&mut bytes) } else { v4.write(&mut bytes) }.unwrap();
    bytes.extend_from_slice(&transport);
    bytes.extend_from_slice(payload);
    bytes
}

/// A segment as a device gives it, and the packets that it stands for.
pub(crate) fn segment(shared: &SharedPackets, payload: &[u8]) -> (Vec<u8>, Offload, Vec<Vec<u8>>) {
    let count = payload.len().div_ceil(usize::from(shared.size));
    let packets = payload.chunks(shared.size.into()).enumerate().map(|(number, part)| {
        let [fin, push, cwr] = shared.flags;
        let last = number + 1 == count;
        packet(shared, number, [fin && last, push && last, cwr && number == 0], part)
    });
    let mut whole = packet(shared, 0, shared.flags, payload);
    // The checksum is that of the pseudo-header alone, as `~tcp_v4_check(...)` leaves it.
    let start: u16 = if shared.six { 40 } else { 20 };
    let offset: u16 = if shared.udp { 6 } else { 16 };
    let addresses = if shared.six { &whole[8..40] } else { &whole[12..20] };
    let words = addresses.chunks(2).map(|word| u32::from(word[0]) << 8 | u32::from(word[1]));
    let sum = words.sum::<u32>() + if shared.udp { 17 } else { 6 } + (whole.len() - usize::from(start)) as u32;
    let at = usize::from(start + offset);
    whole[at..at + 2].copy_from_slice(&fold(sum).to_be_bytes());
    let kind = match (shared.udp, shared.six) {
        (true, _) => 5,
        (false, false) => 1 | if shared.flags[2] { 0x80 } else { 0 },
        (false, true) => 4 | if shared.flags[2] { 0x80 } else { 0 },
    };
    let headers = (whole.len() - payload.len()) as u16;
    let offload = Offload { checksum: Some(PartialChecksum { start, offset }), size: shared.size, kind, headers };
    (whole, offload, packets.collect())
}

pub(crate) fn shared() -> impl Strategy<Value = SharedPackets> {
    let flags = any::<[bool; 3]>();
    let of = (any::<[bool; 3]>(), any::<u8>(), any::<u16>(), any::<u32>(), flags, 1..1420_u16);
    of.prop_map(|([six, udp, timestamps], class, id, sequence, flags, size)| SharedPackets {
        six,
        udp,
        from: 1,
        to: 2,
        class,
        id,
        sequence,
        flags: if udp { [false; 3] } else { flags },
        timestamps,
        size,
    })
}

/// Packets of a segment, whole.
fn cut(segment: &[u8], offload: Offload) -> Option<Vec<Vec<u8>>> {
    let cut = Segmentation::new(segment, offload)?;
    let packet = |number| {
        let mut packet = segment[..cut.lengths().0].to_vec();
        cut.head(number, &mut packet);
        packet.extend_from_slice(&segment[cut.payload(number)?]);
        cut.checksum().complete(&mut packet);
        Some(packet)
    };
    Some((0..).map_while(packet).collect())
}

proptest! {
    #![proptest_config(ProptestConfig { cases: 2000, ..ProptestConfig::default() })]

    #[test]
    fn a_segment_is_cut_into_the_packets_that_it_stands_for(
        shared in shared(),
        packets in 1..40_usize,
        short in 0..1440_usize,
        seed in any::<u8>(),
    ) {
        let size = usize::from(shared.size);
        let len = (packets * size - short % size).min(LONGEST - 80);
        let payload: Vec<u8> = (0..len).map(|at| (at as u8).wrapping_mul(31) ^ seed).collect();
        let (whole, offload, expected) = segment(&shared, &payload);
        prop_assert_eq!(Offload::read(&offload.write()), offload);
        let found = cut(&whole, offload).expect("a segment");
        prop_assert_eq!(&found, &expected);

        // Any of them that follow one another are a segment again, which is cut into the same.
        let cut_into = Segmentation::new(&whole, offload).expect("a segment");
        let (first, last) = (usize::from(seed) % found.len(), found.len() - 1);
        let heads = [first, last].map(|number| {
            let mut head = whole[..cut_into.lengths().0].to_vec();
            cut_into.head(number, &mut head);
            head
        });
        let [mut joined, last_head] = heads;
        let rest = &payload[first * size..];
        let offload = join(&mut joined, &last_head, cut_into.checksum(), rest.len(), shared.size);
        joined.extend_from_slice(rest);
        prop_assert_eq!(&cut(&joined, offload).expect("a segment")[..], &expected[first..]);
        if first == 0 {
            prop_assert_eq!(joined, whole);
        }
    }

    #[test]
    fn nothing_that_a_device_says_is_too_much(
        mut bytes in prop::collection::vec(any::<u8>(), 0..300),
        header in any::<[u8; HEADER]>(),
        version in prop::sample::select(vec![0x45, 0x46, 0x60, 0x00]),
        length in any::<bool>(),
        kind in prop::sample::select(vec![0, 1, 3, 4, 5, 0x81, 0x84]),
    ) {
        let mut offload = Offload::read(&header);
        offload.kind = kind;
        if let [first, _, high, low, ..] = &mut bytes[..] {
            *first = version;
            if length {
                [*high, *low] = 300_u16.to_be_bytes();
            }
        }
        if length && bytes.len() >= 60 {
            bytes.resize(300, 6);
            (bytes[6], bytes[7], bytes[9]) = (0, 0, 6);
            set_checksum(&mut bytes[..if version == 0x46 { 24 } else { 20 }]);
        }
        if let Some(cut) = Segmentation::new(&bytes, offload) {
            let mut packet = bytes[..cut.lengths().0].to_vec();
            for number in (0..).take_while(|&number| cut.payload(number).is_some()) {
                cut.head(number, &mut packet);
            }
        }
        if let Some(checksum) = offload.checksum {
            checksum.complete(&mut bytes);
        }
    }
}

#[test]
fn what_is_no_segment_is_not_cut() {
    let shared = SharedPackets {
        six: false,
        udp: false,
        from: 1,
        to: 2,
        class: 0,
        id: 1,
        sequence: 1,
        flags: [false; 3],
        timestamps: true,
        size: 100,
    };
    let (whole, offload, packets) = segment(&shared, &[7; 250]);
    assert_eq!((cut(&whole, offload).map(|packets| packets.len()), packets.len()), (Some(3), 3));
    // No size, UFO, the other protocol, the other version, cut off, and a fragment.
    for wrong in [
        Offload { size: 0, ..offload },
        Offload { kind: 3, ..offload },
        Offload { kind: UDP, ..offload },
        Offload { kind: TCP6, ..offload },
    ] {
        assert!(Segmentation::new(&whole, wrong).is_none(), "{wrong:?}");
    }
    assert!(Segmentation::new(&whole[..whole.len() - 1], offload).is_none());
    let mut fragment = whole;
    fragment[6] = 0x20;
    set_checksum(&mut fragment[..20]);
    assert!(Segmentation::new(&fragment, offload).is_none());
}

#[test]
fn a_checksum_of_udp_is_never_none() {
    // RFC 768: a computed checksum of 0 is sent as all ones. The sum of these words is 0xffff.
    let mut packet = [0, 0, 0, 0, 0xff, 0xf0, 0x00, 0x0f];
    PartialChecksum { start: 0, offset: 6 }.complete(&mut packet);
    assert_eq!(packet[6..], [0xff, 0xff]);
}
