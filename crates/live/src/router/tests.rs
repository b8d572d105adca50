use super::*;
use ackclock_units::Ecn;
use etherparse::Ipv4HeaderSlice;
use proptest::collection::vec;
use proptest::prelude::*;
use std::net::Ipv4Addr;

mod classes;
mod fragments;
#[cfg(all(feature = "devices", target_os = "linux"))]
mod kernel;
mod messages;

const SPEC: RouterSpec =
    RouterSpec { address: Ipv4Addr::new(192, 0, 0, 8), address6: Ipv6Addr::new(0x100, 0, 0, 1, 0, 0, 0, 8), mtu: None };
const DONT_FRAGMENT: u16 = 0x4000;
const MORE_FRAGMENTS: u16 = 0x2000;

fn router(mtu: u16) -> Router {
    Router::new(&SPEC, mtu)
}

/// The parts of an IPv4 packet that tests differ in.
#[derive(Clone, Debug)]
struct V4 {
    tos: u8,
    /// Flags and offset.
    fragment: u16,
    ttl: u8,
    protocol: u8,
    source: [u8; 4],
    destination: [u8; 4],
    /// Each is its kind and what follows that; a length stands before it where the kind has one.
    options: Vec<(u8, Vec<u8>)>,
    payload: Vec<u8>,
}

impl Default for V4 {
    fn default() -> V4 {
        V4 {
            tos: 0,
            fragment: 0,
            ttl: 64,
            protocol: 253,
            source: [10, 0, 0, 1],
            destination: [10, 0, 1, 2],
            options: Vec::new(),
            payload: vec![0; 100],
        }
    }
}

/// RFC 791 section 3.1: kind, length of all of it, data; the end of the list fills the last word.
fn written<'a>(options: impl Iterator<Item = &'a (u8, Vec<u8>)>) -> Vec<u8> {
    let mut bytes = Vec::new();
    for (kind, data) in options {
        bytes.push(*kind);
        if *kind != 1 {
            bytes.push(data.len() as u8 + 2);
            bytes.extend(data);
        }
    }
    bytes.resize(bytes.len().next_multiple_of(4), 0);
    bytes
}

impl V4 {
    fn bytes(&self) -> Vec<u8> {
        let options = written(self.options.iter());
        let header_len = 20 + options.len();
        let total = (header_len + self.payload.len()) as u16;
        let mut packet = vec![0x40 | (header_len / 4) as u8, self.tos];
        packet.extend(total.to_be_bytes());
        packet.extend([0x12, 0x34]);
        packet.extend(self.fragment.to_be_bytes());
        packet.extend([self.ttl, self.protocol, 0, 0]);
        packet.extend(self.source);
        packet.extend(self.destination);
        packet.extend(options);
        let checksum = sum_of(&packet);
        packet[10..12].copy_from_slice(&checksum.to_be_bytes());
        packet.extend(&self.payload);
        packet
    }
}

/// The Internet checksum (RFC 1071), word by word.
fn sum_of(bytes: &[u8]) -> u16 {
    let word = |pair: &[u8]| u32::from(pair[0]) << 8 | u32::from(*pair.get(1).unwrap_or(&0));
    let mut sum: u32 = bytes.chunks(2).map(word).sum();
    while sum > 0xffff {
        sum = (sum & 0xffff) + (sum >> 16);
    }
    !(sum as u16)
}

/// The parts of an IPv6 packet that tests differ in.
#[derive(Clone, Debug)]
struct V6 {
    class: u8,
    hop_limit: u8,
    next: u8,
    source: Ipv6Addr,
    destination: Ipv6Addr,
    payload: Vec<u8>,
}

impl Default for V6 {
    fn default() -> V6 {
        V6 {
            class: 0,
            hop_limit: 64,
            next: 253,
            source: Ipv6Addr::new(0xfd00, 0, 0, 0, 0, 0, 0, 1),
            destination: Ipv6Addr::new(0xfd00, 0, 0, 1, 0, 0, 0, 2),
            payload: vec![0; 100],
        }
    }
}

impl V6 {
    fn bytes(&self) -> Vec<u8> {
        let mut packet = vec![0x60 | self.class >> 4, self.class << 4, 0, 0];
        packet.extend((self.payload.len() as u16).to_be_bytes());
        packet.extend([self.next, self.hop_limit]);
        packet.extend(self.source.octets());
        packet.extend(self.destination.octets());
        packet.extend(&self.payload);
        packet
    }
}

fn read(packet: &[u8]) -> Header {
    Header::read(packet).expect("a right header")
}

/// The decision about a packet, and the message.
fn forwarded(router: &mut Router, packet: &mut [u8]) -> (ForwardDecision, Vec<u8>) {
    let mut message = vec![0xaa; 3];
    let forward = router.forward(Time::ZERO, &read(packet), packet, &mut message);
    (forward, message)
}

fn options() -> impl Strategy<Value = Vec<(u8, Vec<u8>)>> {
    let option = (any::<u8>(), vec(any::<u8>(), 0..9))
        .prop_map(|(kind, data)| (kind.max(1), if kind <= 1 { Vec::new() } else { data }));
    vec(option, 0..8).prop_map(|mut options| {
        // A header has room for 40 bytes of them.
        while written(options.iter()).len() > 40 {
            options.pop();
        }
        options
    })
}

fn packets_v4() -> impl Strategy<Value = V4> {
    let payload = prop_oneof![vec(any::<u8>(), 0..64), vec(any::<u8>(), 0..3000)];
    (any::<u8>(), any::<u8>(), any::<u8>(), any::<[u8; 4]>(), any::<[u8; 4]>(), options(), payload, 0..8000u16)
        .prop_map(|(tos, ttl, protocol, source, destination, options, payload, offset)| {
            // Half of them fragments; none that ends behind byte 65535.
            let fragment = offset.saturating_sub(4000);
            V4 { tos, fragment, ttl, protocol, source, destination, options, payload }
        })
}

fn packets_v6() -> impl Strategy<Value = V6> {
    let kinds = prop_oneof![any::<u8>(), proptest::sample::select(vec![0, 43, 44, 51, 58, 60])];
    (any::<u8>(), any::<u8>(), kinds, any::<[u8; 16]>(), any::<[u8; 16]>(), vec(any::<u8>(), 0..2000)).prop_map(
        |(class, hop_limit, next, source, destination, payload)| V6 {
            class,
            hop_limit,
            next,
            source: source.into(),
            destination: destination.into(),
            payload,
        },
    )
}

#[test]
fn a_header_says_where_it_goes_and_what_it_carries() {
    let packet = V4 { tos: 0b10, options: vec![(7, vec![4, 0, 0])], protocol: 17, ..V4::default() };
    let header = read(&packet.bytes());
    assert_eq!((header.source, header.destination), ([10, 0, 0, 1].into(), [10, 0, 1, 2].into()));
    // An option of 5 bytes takes 8.
    assert_eq!((header.len, header.payload, header.protocol), (128, 28, 17));
    assert_eq!((header.ecn, header.fragment, header.later_fragment), (Ecn::Ect0, false, false));

    let first = read(&V4 { fragment: MORE_FRAGMENTS, ..V4::default() }.bytes());
    assert_eq!((first.fragment, first.later_fragment), (true, false));
    let later = read(&V4 { fragment: 1, ..V4::default() }.bytes());
    assert_eq!((later.fragment, later.later_fragment), (true, true));
}

#[test]
fn extension_headers_are_passed_over() {
    // Hop-by-hop options of 16 bytes, routing of 8, an authentication header of 12, destination
    // options of 8, then UDP.
    let mut payload = vec![43, 1];
    payload.resize(16, 0);
    payload.extend([51, 0, 0, 0, 0, 0, 0, 0]);
    payload.extend([60, 1, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0]);
    payload.extend([17, 0, 0, 0, 0, 0, 0, 0]);
    let end = payload.len();
    payload.extend([0; 8]);
    let header = read(&V6 { next: 0, class: 0b01, payload: payload.clone(), ..V6::default() }.bytes());
    assert_eq!((header.protocol, header.payload, header.ecn), (17, 40 + end, Ecn::Ect1));
    // Cut inside of the authentication header, the packet carries that.
    payload.truncate(30);
    let header = read(&V6 { next: 0, payload, ..V6::default() }.bytes());
    assert_eq!((header.protocol, header.payload, header.len), (51, 64, 70));
}

#[test]
fn fragment_headers_say_which_part_it_is() {
    let of = |field: u16| {
        let [high, low] = field.to_be_bytes();
        let header = read(&V6 { next: 44, payload: vec![58, 0, high, low, 1, 2, 3, 4, 0], ..V6::default() }.bytes());
        assert_eq!((header.protocol, header.payload), (58, 48));
        (header.fragment, header.later_fragment)
    };
    // RFC 8200 section 4.5: 13 bits of offset, 2 reserved, more fragments.
    assert_eq!(of(0x0001), (true, false));
    assert_eq!(of(0x0008), (true, true));
    assert_eq!(of(0xfff9), (true, true));
    assert_eq!(of(0x0006), (false, false));
}

#[test]
fn what_is_wrong_is_discarded() {
    let good = V4::default().bytes();
    assert_eq!(Header::read(&[]), Err(Discard::Length));
    for version in (0..16).filter(|version| ![4, 6].contains(version)) {
        assert_eq!(Header::read(&[version << 4 | 5; 40]), Err(Discard::Version));
    }
    // Shorter than a header, shorter than it says.
    assert_eq!(Header::read(&good[..19]), Err(Discard::Length));
    assert_eq!(Header::read(&good[..119]), Err(Discard::Length));
    // Behind the packet may be padding.
    let mut padded = good.clone();
    padded.extend([0; 7]);
    assert_eq!(Header::read(&padded).map(|header| header.len), Ok(120));

    let with = |at: usize, value: u8| {
        let mut packet = good.clone();
        packet[at] = value;
        packet[10..12].fill(0);
        let sum = sum_of(&packet[..20]);
        packet[10..12].copy_from_slice(&sum.to_be_bytes());
        Header::read(&packet)
    };
    assert_eq!(with(0, 0x44), Err(Discard::Length), "a header of 16 bytes");
    assert_eq!(with(3, 19), Err(Discard::Length), "a packet of 19 bytes");
    assert!(with(1, 0xff).is_ok());
    let mut flipped = good.clone();
    flipped[15] ^= 1;
    assert_eq!(Header::read(&flipped), Err(Discard::Checksum));
    // 8 * 8190 + 20 + 15 = 65555 bytes once it is put together; 8 * 8187 + 39 = 65535.
    let far = |offset, len| Header::read(&V4 { fragment: offset, payload: vec![0; len], ..V4::default() }.bytes());
    assert_eq!(far(8190, 15), Err(Discard::Length));
    assert!(far(8187, 19).is_ok());

    let six = V6::default().bytes();
    assert_eq!(Header::read(&six[..39]), Err(Discard::Length));
    assert_eq!(Header::read(&six[..139]), Err(Discard::Length));
    assert!(Header::read(&six).is_ok());
}

#[test]
fn the_checksum_follows_a_hop_and_a_mark() {
    // RFC 1624 section 4: a checksum of 0xdd2f, a word that goes from 0x5555 to 0x3285, gives
    // 0x0000 and not 0xffff. Here the word is version and type of service, from 0x4502 to 0x4503,
    // and the rest of the header is made to sum up to 0xbafd: 0x4502 + 0xbafc = 0xfffe, checksum
    // 0x0001; marked it is 0x0000.
    let mut packet = vec![0x45, 0x02, 0, 20, 0, 0, 0, 0, 64, 17, 0, 0, 10, 0, 0, 1, 10, 0, 0, 0];
    let rest = 0x0014 + 0x4011 + 0x0a00 + 0x0001 + 0x0a00u32;
    let identification = (0xbafc - rest) as u16;
    packet[4..6].copy_from_slice(&identification.to_be_bytes());
    packet[10..12].copy_from_slice(&[0, 1]);
    assert!(Header::read(&packet).is_ok());
    mark_ce(&mut packet);
    assert_eq!((packet[1], &packet[10..12]), (0x03, &[0, 0][..]));
    assert!(Header::read(&packet).is_ok());
    // A hop is 0x0100 less in the sum.
    header::count_hop(&mut packet);
    assert_eq!((packet[8], &packet[10..12]), (63, &[1, 0][..]));
    assert!(Header::read(&packet).is_ok());
}

#[test]
fn the_last_hop_is_not_taken() {
    let mut message = Vec::new();
    for (ttl, goes_on) in [(0, false), (1, false), (2, true), (255, true)] {
        for mut packet in [V4 { ttl, ..V4::default() }.bytes(), V6 { hop_limit: ttl, ..V6::default() }.bytes()] {
            let before = packet.clone();
            let forward = router(1500).forward(Time::ZERO, &read(&before), &mut packet, &mut message);
            let expected =
                if goes_on { ForwardDecision::Whole } else { ForwardDecision::Discarded(Discard::TimeExceeded) };
            assert_eq!(forward, expected, "{ttl}");
            assert_eq!(message.is_empty(), goes_on);
            assert_eq!(read(&packet).hops, ttl - u8::from(goes_on));
        }
    }
}

#[test]
fn what_is_longer_than_the_link_takes() {
    let four = |len: usize, fragment| V4 { fragment, payload: vec![7; len - 20], ..V4::default() }.bytes();
    let six = |len: usize| V6 { payload: vec![7; len - 40], ..V6::default() }.bytes();
    let too_big = ForwardDecision::Discarded(Discard::TooBig);
    for (mut packet, expected) in [
        (four(1400, DONT_FRAGMENT), ForwardDecision::Whole),
        (four(1401, DONT_FRAGMENT), too_big),
        (four(1400, 0), ForwardDecision::Whole),
        (four(1401, 0), ForwardDecision::Fragments),
        (six(1400), ForwardDecision::Whole),
        (six(1401), too_big),
    ] {
        let (forward, message) = forwarded(&mut router(1400), &mut packet);
        assert_eq!((forward, message.is_empty()), (expected, expected != too_big));
    }
    // The router's own limit counts if it is lower, and none is below 68.
    assert_eq!(Router::new(&RouterSpec { mtu: Some(600), ..SPEC }, 1500).mtu(), 600);
    assert_eq!(Router::new(&RouterSpec { mtu: Some(9000), ..SPEC }, 1500).mtu(), 1500);
    assert_eq!(router(1).mtu(), 68);
}

#[test]
fn what_concerns_one_link_stays_on_it() {
    let here = [10, 0, 0, 1];
    for (source, destination) in [
        ([0, 1, 2, 3], here),
        ([127, 0, 0, 1], here),
        ([224, 0, 0, 1], here),
        ([255; 4], here),
        ([169, 254, 1, 1], here),
        (here, [224, 0, 0, 251]),
        (here, [255; 4]),
        (here, [127, 0, 0, 1]),
        (here, [0; 4]),
        (here, [169, 254, 1, 1]),
    ] {
        let mut packet = V4 { source, destination, ttl: 1, ..V4::default() }.bytes();
        let refused = forwarded(&mut router(1500), &mut packet);
        assert_eq!(refused, (ForwardDecision::Discarded(Discard::Scope), Vec::new()), "{source:?} {destination:?}");
    }
    let global = "fd00::1";
    for (source, destination, told) in [
        ("::", global, false),
        ("::1", global, false),
        ("ff02::1", global, false),
        (global, "ff02::1", false),
        (global, "ff0e::1", false),
        (global, "::1", false),
        (global, "fe80::7", false),
        ("fe80::7", "fe80::8", false),
        // RFC 4443 section 3.1, code 2.
        ("fe80::7", global, true),
    ] {
        let [source, destination] = [source, destination].map(|address| address.parse().expect("an address"));
        let mut packet = V6 { source, destination, ..V6::default() }.bytes();
        let (forward, message) = forwarded(&mut router(1500), &mut packet);
        assert_eq!(forward, ForwardDecision::Discarded(Discard::Scope), "{source} {destination}");
        assert_eq!(message.get(40..42), told.then_some(&[1, 2][..]), "{source} {destination}");
    }
}

proptest! {
    #[test]
    fn changes_keep_the_checksum_right(packet in packets_v4()) {
        let before = packet.bytes();
        let mut marked = before.clone();
        mark_ce(&mut marked);
        // As if it had been written like that.
        prop_assert_eq!(&marked, &V4 { tos: packet.tos | 3, ..packet.clone() }.bytes());
        prop_assert_eq!(header::dscp(&before), packet.tos >> 2);
        let mut washed = before.clone();
        header::wash(&mut washed);
        prop_assert_eq!(&washed, &V4 { tos: packet.tos & 3, ..packet.clone() }.bytes());
        if packet.ttl > 0 {
            let mut hopped = before.clone();
            header::count_hop(&mut hopped);
            prop_assert_eq!(&hopped, &V4 { ttl: packet.ttl - 1, ..packet.clone() }.bytes());
            let header = Ipv4HeaderSlice::from_slice(&hopped).unwrap();
            prop_assert_eq!(header.header_checksum(), header.to_header().calc_header_checksum());
        }
    }

    #[test]
    fn changes_of_ipv6_are_in_their_fields(packet in packets_v6()) {
        let before = packet.bytes();
        let mut marked = before.clone();
        mark_ce(&mut marked);
        prop_assert_eq!(marked, V6 { class: packet.class | 3, ..packet.clone() }.bytes());
        prop_assert_eq!(header::dscp(&before), packet.class >> 2);
        let mut washed = before.clone();
        header::wash(&mut washed);
        prop_assert_eq!(washed, V6 { class: packet.class & 3, ..packet.clone() }.bytes());
        if packet.hop_limit > 0 {
            let mut hopped = before.clone();
            header::count_hop(&mut hopped);
            prop_assert_eq!(hopped, V6 { hop_limit: packet.hop_limit - 1, ..packet.clone() }.bytes());
        }
    }

    #[test]
    fn a_wrong_bit_in_a_header_is_seen(packet in packets_v4(), bit in 0..160usize) {
        let mut packet = packet.bytes();
        packet[bit / 8] ^= 1 << (bit % 8);
        prop_assert!(Header::read(&packet).is_err());
    }

    #[test]
    fn any_bytes_are_handled(
        bytes in prop_oneof![
            vec(any::<u8>(), 0..200),
            packets_v4().prop_map(|packet| packet.bytes()),
            packets_v6().prop_map(|packet| packet.bytes()),
        ],
        changes in vec((0..100usize, any::<u8>()), 0..4),
        cut in 0..300usize,
        mtu in any::<u16>(),
    ) {
        let mut bytes = bytes;
        bytes.truncate(bytes.len().saturating_sub(cut.saturating_sub(200)));
        for (at, value) in changes {
            if let Some(byte) = bytes.get_mut(at) {
                *byte = value;
            }
        }
        // Else hardly any IPv4 packet would come further than its checksum.
        let header_len = bytes.first().map_or(0, |first| 4 * usize::from(first & 0xf));
        if bytes.first().is_some_and(|first| first >> 4 == 4) && (20..=bytes.len()).contains(&header_len) {
            header::set_checksum(&mut bytes[..header_len]);
        }
        let Ok(header) = Header::read(&bytes) else { return Ok(()) };
        prop_assert!(header.payload <= header.len && header.len <= bytes.len());
        let mut router = router(mtu);
        let mut message = Vec::new();
        let mut out = vec![0; 65536];
        let packet = &mut bytes[..header.len];
        match router.forward(Time::ZERO, &header, packet, &mut message) {
            ForwardDecision::Whole => prop_assert!(header.len <= usize::from(router.mtu())),
            ForwardDecision::Fragments => {
                let mut fragments = Fragments::new(&header, packet, router.mtu());
                while let Some(len) = fragments.next_into(&mut out) {
                    let fragment = Header::read(&out[..len]).expect("a right header");
                    prop_assert!(fragment.len == len && len <= usize::from(router.mtu()));
                }
            }
            ForwardDecision::Discarded(_) if message.is_empty() => {}
            ForwardDecision::Discarded(_) => {
                let report = Header::read(&message).expect("a right message");
                prop_assert_eq!((report.len, report.destination), (message.len(), header.source));
                let longest = if header.source.is_ipv4() { 576 } else { 1280 };
                prop_assert!(message.len() <= longest);
            }
        }
        let mut host = Reporter::new(Some(SPEC.address), None);
        if host.answer(Time::ZERO, &header, &bytes, &mut message) {
            let answer = Header::read(&message).expect("a right answer");
            prop_assert_eq!((answer.len, answer.destination), (message.len(), header.source));
        }
    }
}
