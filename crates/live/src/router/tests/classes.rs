//! The class of a kernel's packet.

use ackclock_packet::Class;

use super::*;

const FIN: u8 = 0x01;
const SYN: u8 = 0x02;
const RST: u8 = 0x04;
const ACK: u8 = 0x10;

/// A TCP segment with `options` bytes of options and `payload` bytes of payload.
fn tcp(flags: u8, options: usize, payload: usize) -> Vec<u8> {
    let mut segment = vec![0; 20 + options + payload];
    segment[12] = ((20 + options) as u8 / 4) << 4;
    segment[13] = flags;
    segment
}

fn class(packet: &[u8]) -> Class {
    read(packet).class(packet)
}

#[test]
fn a_pure_ack_is_known_by_its_header() {
    // ECE and CWR as well, and PSH: an ACK all the same.
    let acks = [tcp(ACK, 0, 0), tcp(ACK, 12, 0), tcp(ACK | 0xc8, 40, 0)];
    let others = [tcp(ACK, 12, 1), tcp(ACK | SYN, 0, 0), tcp(ACK | FIN, 0, 0), tcp(ACK | RST, 0, 0), tcp(0, 0, 0)];
    let cut = tcp(ACK, 0, 0)[..13].to_vec();
    let longer_than_it_is = [tcp(ACK, 4, 0)[..20].to_vec(), vec![], cut];
    let all =
        acks.iter().map(|ack| (ack, true)).chain(others.iter().chain(&longer_than_it_is).map(|other| (other, false)));
    for (payload, pure_ack) in all {
        let v4 = V4 { protocol: 6, payload: payload.clone(), ..V4::default() };
        let v6 = V6 { next: 6, payload: payload.clone(), ..V6::default() };
        assert_eq!(class(&v4.bytes()).is_pure_ack(), pure_ack, "{payload:?}");
        assert_eq!(class(&v6.bytes()).is_pure_ack(), pure_ack, "{payload:?}");
        // Neither of another protocol, nor a piece.
        assert!(!class(&V4 { protocol: 17, ..v4.clone() }.bytes()).is_pure_ack());
        assert!(!class(&V4 { fragment: MORE_FRAGMENTS, ..v4.clone() }.bytes()).is_pure_ack());
        // A trailer is not part of the packet, and IP options are not TCP's.
        let padded = [V4 { options: vec![(7, vec![0; 6])], ..v4 }.bytes(), vec![0; 20]].concat();
        assert_eq!(class(&padded).is_pure_ack(), pure_ack);
        // Behind an extension header of eight bytes, hop-by-hop options.
        let extension = [vec![6, 0, 1, 4, 0, 0, 0, 0], payload.clone()].concat();
        assert_eq!(class(&V6 { next: 0, payload: extension, ..v6 }.bytes()).is_pure_ack(), pure_ack);
    }
}

/// EF is 46 (RFC 3246): 0xb8 with the ECN bits, whatever these are.
#[test]
fn the_dscp_is_that_of_the_header() {
    for ecn in 0..4 {
        for dscp in [0, 8, 46, 63] {
            let byte = dscp << 2 | ecn;
            assert_eq!(class(&V4 { tos: byte, ..V4::default() }.bytes()), Class::new(dscp, false));
            assert_eq!(class(&V6 { class: byte, ..V6::default() }.bytes()), Class::new(dscp, false));
        }
    }
}
