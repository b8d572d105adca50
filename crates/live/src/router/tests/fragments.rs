use super::*;
use etherparse::SlicedPacket;
use etherparse::defrag::IpDefragPool;

/// All pieces of a packet.
fn cut(packet: &[u8], mtu: u16) -> Vec<Vec<u8>> {
    let header = read(packet);
    let mut fragments = Fragments::new(&header, packet, mtu);
    let mut out = vec![0xaa; usize::from(mtu.max(68))];
    std::iter::from_fn(|| fragments.next_into(&mut out).map(|len| out[..len].to_vec())).collect()
}

/// Flags and offset.
fn field(packet: &[u8]) -> u16 {
    u16::from_be_bytes([packet[6], packet[7]])
}

#[test]
fn a_datagram_is_cut_as_in_rfc_791() {
    // RFC 791 appendix A, example 2: 452 bytes of data through an MTU of 280 are split at byte 256,
    // because 280 - 20 = 260 is 32 * 8 and 4: 276 bytes, and 216 with offset 32.
    let payload: Vec<u8> = (0..452).map(|at| at as u8).collect();
    let packet = V4 { tos: 0b10, payload: payload.clone(), ..V4::default() };
    let pieces = cut(&packet.bytes(), 280);
    let expected = [
        V4 { fragment: MORE_FRAGMENTS, payload: payload[..256].to_vec(), ..packet.clone() }.bytes(),
        V4 { fragment: 32, payload: payload[256..].to_vec(), ..packet.clone() }.bytes(),
    ];
    assert_eq!(pieces, expected);
    assert_eq!([pieces[0].len(), pieces[1].len()], [276, 216]);
}

#[test]
fn a_fragment_is_cut_again() {
    // 200 bytes from 8 * 100 on, with more to come, through an MTU of 120: 100 bytes of room
    // are 96.
    let packet = V4 { fragment: MORE_FRAGMENTS | 100, payload: vec![5; 200], ..V4::default() };
    let fields: Vec<u16> = cut(&packet.bytes(), 120).iter().map(|piece| field(piece)).collect();
    assert_eq!(fields, [MORE_FRAGMENTS | 100, MORE_FRAGMENTS | 112, MORE_FRAGMENTS | 124]);
    // The last part of a packet ends it.
    let packet = V4 { fragment: 100, payload: vec![5; 200], ..V4::default() };
    let fields: Vec<u16> = cut(&packet.bytes(), 120).iter().map(|piece| field(piece)).collect();
    assert_eq!(fields, [MORE_FRAGMENTS | 100, MORE_FRAGMENTS | 112, 124]);
}

#[test]
fn options_are_copied_if_they_say_so() {
    // Record route (7) is in the first piece alone, router alert (148, RFC 2113) in all: 11 + 4
    // bytes and the end are 16.
    let alert = (148, vec![0, 0]);
    let packet = V4 {
        options: vec![(7, vec![4, 0, 0, 0, 0, 0, 0, 0, 0]), alert.clone()],
        payload: vec![9; 100],
        ..V4::default()
    };
    let pieces = cut(&packet.bytes(), 100);
    assert_eq!(pieces[0][..20], V4 { fragment: MORE_FRAGMENTS, payload: vec![9; 64], ..packet.clone() }.bytes()[..20]);
    let later = V4 { fragment: 8, options: vec![alert], payload: vec![9; 36], ..packet.clone() };
    assert_eq!(pieces[1..], [later.bytes()]);
}

#[test]
fn options_that_are_none_end_the_list() {
    // Copied, then one of length 1, which cannot be: it and what follows are in the first piece
    // alone.
    let mut packet = V4 { options: vec![(148, vec![0, 0]), (200, vec![0, 0])], ..V4::default() }.bytes();
    packet[25] = 1;
    header::set_checksum(&mut packet[..28]);
    let pieces = cut(&packet, 76);
    assert_eq!(pieces[0][20..28], packet[20..28]);
    assert_eq!((pieces[1][0], &pieces[1][20..24]), (0x46, &[148, 4, 0, 0][..]));
}

proptest! {
    #[test]
    fn pieces_put_together_are_the_packet(packet in packets_v4(), first in 68..1500u16, second in 68..1500u16) {
        // A whole packet of a protocol that the reader does not look into.
        let packet = V4 { protocol: 253, fragment: 0, ..packet };
        let whole = packet.bytes();
        prop_assume!(whole.len() > usize::from(first.min(second)));
        let copied = written(packet.options.iter().filter(|(kind, _)| kind & 0x80 != 0));
        let mut pool = IpDefragPool::<(), ()>::new();
        let mut together = None;
        // Through two links, one after the other.
        for fragment in cut(&whole, first) {
            for piece in cut(&fragment, second) {
                prop_assert!(piece.len() <= usize::from(first.min(second)));
                let header = read(&piece);
                prop_assert!(header.fragment);
                if header.later_fragment {
                    prop_assert_eq!(&piece[20..header.payload], &copied[..]);
                } else {
                    prop_assert_eq!(&piece[20..header.payload], &written(packet.options.iter())[..]);
                }
                prop_assert_eq!((&piece[4..6], &piece[8..10]), (&whole[4..6], &whole[8..10]));
                prop_assert_eq!((&piece[1], &piece[12..20]), (&whole[1], &whole[12..20]));
                let sliced = SlicedPacket::from_ip(&piece).unwrap();
                prop_assert!(together.is_none(), "nothing comes after the last");
                together = pool.process_sliced_packet(&sliced, (), ()).unwrap();
            }
        }
        prop_assert_eq!(together.map(|packet| packet.payload), Some(packet.payload));
    }
}
