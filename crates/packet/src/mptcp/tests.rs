use std::net::{IpAddr, Ipv4Addr, Ipv6Addr};

use proptest::prelude::*;

use super::*;

/// An option as it is written.
fn written(option: MptcpOption) -> Vec<u8> {
    let mut options = MptcpOptions::default();
    assert!(options.push(&option));
    options.encoded().next().expect("one option").to_vec()
}

/// RFC 8684 figures 4 to 16, byte by byte.
#[test]
fn options_have_the_layout_of_the_rfc() {
    let capable = Capable { version: 1, hmac_sha256: true, ..Capable::default() };
    assert_eq!(written(MptcpOption::Capable(capable)), [30, 4, 0x01, 0x01]);
    let capable = Capable { sender_key: Some(0x0102_0304_0506_0708), checksum: true, ..capable };
    assert_eq!(written(MptcpOption::Capable(capable)), [30, 12, 0x01, 0x81, 1, 2, 3, 4, 5, 6, 7, 8]);
    let capable = Capable { receiver_key: Some(9), data_len: Some(1000), ..capable };
    let bytes = written(MptcpOption::Capable(capable));
    assert_eq!((bytes[1], &bytes[12..]), (22, [0, 0, 0, 0, 0, 0, 0, 9, 3, 232].as_slice()));
    let join = MptcpOption::JoinSyn { backup: true, address_id: 7, token: 0x0a0b_0c0d, nonce: 5 };
    assert_eq!(written(join), [30, 12, 0x11, 7, 10, 11, 12, 13, 0, 0, 0, 5]);
    let join = MptcpOption::JoinSynAck { backup: false, address_id: 1, hmac: 2, nonce: 3 };
    assert_eq!(written(join), [30, 16, 0x10, 1, 0, 0, 0, 0, 0, 0, 0, 2, 0, 0, 0, 3]);
    let bytes = written(MptcpOption::JoinAck { hmac: [0xee; 20] });
    assert_eq!((&bytes[..4], bytes.len()), ([30, 24, 0x10, 0].as_slice(), 24));
    let mapping = Mapping { sequence: DataNumber::Long(1), subflow_sequence: 2, len: 3, checksum: None };
    let dss = Dss { ack: Some(DataNumber::Short(4)), mapping: Some(mapping), fin: true };
    let expected = [30, 22, 0x20, 0x1d, 0, 0, 0, 4, 0, 0, 0, 0, 0, 0, 0, 1, 0, 0, 0, 2, 0, 3];
    assert_eq!(written(MptcpOption::Dss(dss)), expected);
    let dss = Dss { ack: Some(DataNumber::Long(4)), ..Dss::default() };
    assert_eq!(written(MptcpOption::Dss(dss)), [30, 12, 0x20, 0x03, 0, 0, 0, 0, 0, 0, 0, 4]);
    let address = IpAddr::V4(Ipv4Addr::new(10, 0, 1, 2));
    let add = AddAddress { id: 3, address, port: Some(80), hmac: Some(1) };
    let expected = [30, 18, 0x30, 3, 10, 0, 1, 2, 0, 80, 0, 0, 0, 0, 0, 0, 0, 1];
    assert_eq!(written(MptcpOption::AddAddress(add)), expected);
    let echo = AddAddress { port: None, hmac: None, ..add };
    assert_eq!(written(MptcpOption::AddAddress(echo)), [30, 8, 0x31, 3, 10, 0, 1, 2]);
    assert_eq!(written(MptcpOption::RemoveAddress(AddressIds::new(&[1, 2]))), [30, 5, 0x40, 1, 2]);
    assert_eq!(written(MptcpOption::Priority { backup: true }), [30, 3, 0x51]);
    assert_eq!(written(MptcpOption::Fail { sequence: 1 }), [30, 12, 0x60, 0, 0, 0, 0, 0, 0, 0, 0, 1]);
    assert_eq!(written(MptcpOption::FastClose { key: 1 }), [30, 12, 0x70, 0, 0, 0, 0, 0, 0, 0, 0, 1]);
    assert_eq!(written(MptcpOption::Reset { transient: true, reason: 2 }), [30, 4, 0x81, 2]);
}

#[test]
fn what_does_not_fit_is_not_added() {
    let mut options = MptcpOptions::default();
    assert!(options.push(&MptcpOption::JoinAck { hmac: [1; 20] }));
    assert!(!options.push(&MptcpOption::JoinAck { hmac: [2; 20] }));
    assert!(options.push(&MptcpOption::FastClose { key: 1 }));
    assert_eq!((options.iter().count(), options.padded_len()), (2, 36));
}

#[test]
fn short_numbers_are_the_nearest_ones() {
    for near in [0u64, 5, 1 << 31, (1 << 32) - 1, 1 << 32, u64::MAX - 3] {
        for ahead in [-(1i64 << 31), -1, 0, 1, (1 << 31) - 1] {
            let number = near.wrapping_add_signed(ahead);
            assert_eq!(DataNumber::Short(number as u32).near(near), number);
        }
    }
}

fn data_number() -> impl Strategy<Value = DataNumber> {
    prop_oneof![any::<u32>().prop_map(DataNumber::Short), any::<u64>().prop_map(DataNumber::Long)]
}

fn any_capable() -> impl Strategy<Value = MptcpOption> {
    (0..16u8, any::<[bool; 4]>(), any::<[u64; 2]>(), any::<[u16; 2]>(), 0..5).prop_map(
        |(version, [checksum, extensible, no_join, hmac_sha256], keys, data, parts)| {
            MptcpOption::Capable(Capable {
                version,
                checksum,
                extensible,
                no_join,
                hmac_sha256,
                sender_key: (parts > 0).then_some(keys[0]),
                receiver_key: (parts > 1).then_some(keys[1]),
                data_len: (parts > 2).then_some(data[0]),
                data_checksum: (parts > 3).then_some(data[1]),
            })
        },
    )
}

fn any_dss() -> impl Strategy<Value = MptcpOption> {
    let mapping = (data_number(), any::<u32>(), any::<u16>(), any::<Option<u16>>())
        .prop_map(|(sequence, subflow_sequence, len, checksum)| Mapping { sequence, subflow_sequence, len, checksum });
    (proptest::option::of(data_number()), proptest::option::of(mapping), any::<bool>())
        .prop_map(|(ack, mapping, fin)| MptcpOption::Dss(Dss { ack, mapping, fin }))
}

fn any_option() -> impl Strategy<Value = MptcpOption> {
    let address = prop_oneof![
        any::<[u8; 4]>().prop_map(|octets| IpAddr::V4(Ipv4Addr::from(octets))),
        any::<[u8; 16]>().prop_map(|octets| IpAddr::V6(Ipv6Addr::from(octets))),
    ];
    prop_oneof![
        any_capable(),
        any_dss(),
        (any::<bool>(), any::<u8>(), any::<u32>(), any::<u32>()).prop_map(|(backup, address_id, token, nonce)| {
            MptcpOption::JoinSyn { backup, address_id, token, nonce }
        }),
        (any::<bool>(), any::<u8>(), any::<u64>(), any::<u32>()).prop_map(|(backup, address_id, hmac, nonce)| {
            MptcpOption::JoinSynAck { backup, address_id, hmac, nonce }
        }),
        any::<[u8; 20]>().prop_map(|hmac| MptcpOption::JoinAck { hmac }),
        (any::<u8>(), address, any::<Option<u16>>(), any::<Option<u64>>())
            .prop_map(|(id, address, port, hmac)| MptcpOption::AddAddress(AddAddress { id, address, port, hmac })),
        proptest::collection::vec(any::<u8>(), 1..9).prop_map(|ids| MptcpOption::RemoveAddress(AddressIds::new(&ids))),
        any::<bool>().prop_map(|backup| MptcpOption::Priority { backup }),
        any::<u64>().prop_map(|sequence| MptcpOption::Fail { sequence }),
        any::<u64>().prop_map(|key| MptcpOption::FastClose { key }),
        (any::<bool>(), any::<u8>()).prop_map(|(transient, reason)| MptcpOption::Reset { transient, reason }),
    ]
}

proptest! {
    #[test]
    fn what_is_written_is_read(option in any_option()) {
        prop_assert_eq!(MptcpOption::decode(&written(option)), Some(option));
    }

    #[test]
    fn no_bytes_make_it_panic(bytes in proptest::collection::vec(any::<u8>(), 0..42), subtype in 0..16u8) {
        MptcpOption::decode(&bytes);
        let mut bytes = bytes;
        if bytes.len() > 2 {
            (bytes[0], bytes[2]) = (KIND, subtype << 4 | bytes[2] & 0xf);
        }
        if let Some(option) = MptcpOption::decode(&bytes) {
            // Reserved bits apart, it is what was read.
            prop_assert_eq!(MptcpOption::decode(&written(option)), Some(option));
        }
    }
}
