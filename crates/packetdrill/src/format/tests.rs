//! The written text is what was read.

use ackclock_packet::SackBlocks;
use proptest::prelude::*;

use super::*;
use crate::ast::Action;
use crate::parse;

fn read(line: &str) -> PacketSpec {
    let script = parse(&format!("+0 {line}")).unwrap_or_else(|error| panic!("{line}: {error}"));
    match &script.events[..] {
        [event] => match &event.action {
            Action::Packet(packet) => packet.as_ref().clone(),
            other => panic!("{other:?}"),
        },
        events => panic!("{line}: {events:?}"),
    }
}

#[test]
fn packets_are_written_as_scripts_write_them() {
    let lines = [
        "> S 0:0(0) <mss 1460,sackOK,TS val 100 ecr 0,nop,wscale 7>",
        "< P. 1:1001(1000) ack 1 win 512",
        "> [ect01] . 1:1(0) ack 2001 <nop,nop,sack 3001:4001 1001:2001>",
        "> (ce, ttl 64) 80 > 1024 R 1:1(0)",
        "> (tos 0x08, flowlabel 0x12345) - 0:0(0) <...>",
        "> R. 0:0(0)! ack 1 win 0 urg 5",
        "> S. ...(0) ack 1",
        "< P.5 1:2(1) win 10 <FO 0102,md5 00,nop>",
        "< icmp unreachable net_unreachable [0:0(0)]",
    ];
    for line in lines {
        assert_eq!(read(line).to_string(), line);
    }
}

#[test]
fn a_counter_without_flags_is_written_as_its_bits() {
    let PacketSpec::Tcp(mut tcp) = read("> A 0:0(0)") else { panic!() };
    assert_eq!((tcp.flags, tcp.ace), (Flags::NONE, Some(4)));
    assert_eq!(tcp.to_string(), "> A 0:0(0)");
    tcp.ace = Some(6);
    assert_eq!(tcp.to_string(), "> AW 0:0(0)");
    tcp.ace = Some(0);
    assert_eq!(tcp.to_string(), "> - 0:0(0)");
}

fn option() -> impl Strategy<Value = OptionSpec> {
    prop_oneof![
        any::<u16>().prop_map(OptionSpec::Mss),
        (any::<u32>(), any::<u32>(), 1..=2_usize).prop_map(|(left, right, count)| {
            let mut blocks = SackBlocks::default();
            (0..count).for_each(|_| {
                blocks.push(left, right);
            });
            OptionSpec::Sack(blocks)
        }),
        (any::<u32>(), any::<u32>()).prop_map(|(value, echo)| OptionSpec::Timestamps { value, echo }),
        any::<u8>().prop_map(OptionSpec::WindowScale),
        Just(OptionSpec::SackPermitted),
        Just(OptionSpec::Eol),
    ]
}

/// Options of any kind, filled up to words of four bytes.
fn options() -> impl Strategy<Value = Options> {
    let fill = |mut list: Vec<OptionSpec>| {
        while !crate::parser::options_len(&list).is_multiple_of(4) {
            list.push(OptionSpec::Nop);
        }
        Options::List(list)
    };
    prop_oneof![Just(Options::Any), prop::collection::vec(option(), 0..=2).prop_map(fill)]
}

prop_compose! {
    fn segment()(
        ecn in prop::option::of(0..5_u8),
        tos in prop::option::of(any::<u8>()),
        ttl in prop::option::of(any::<u8>()),
        flow_label in prop::option::of(0..1_u32 << 20),
        ports in prop::option::of((any::<u16>(), any::<u16>())),
        bits in 0..0x100_u16,
        ace in prop::option::of(0..8_u8),
        seq in any::<u32>(),
        form in 0..3_u8,
        payload in any::<u16>(),
        ack in prop::option::of(any::<u32>()),
        window in prop::option::of(any::<u16>()),
        urgent in prop::option::of(any::<u16>()),
        options in options(),
    ) -> TcpSpec {
        let ecn = ecn.map(|ecn| if ecn == 4 { EcnSpec::Ect01 } else { EcnSpec::Is(Ecn::from_bits(ecn)) });
        // A counter stands beside other flags and in the place of ECE and CWR.
        let ecn_bits = (Flags::ECE | Flags::CWR).bits();
        let flags = if ace.is_some() { (bits & !ecn_bits) | Flags::ACK.bits() } else { bits };
        let seq_form = [SeqForm::Relative, SeqForm::Absolute, SeqForm::Any][usize::from(form)];
        TcpSpec {
            direction: Direction::Outbound,
            ip: IpInfo { ecn, tos: tos.filter(|_| ecn.is_none()), ttl, flow_label },
            ports,
            addresses: AddressNames::default(),
            flags: Flags::from_bits(flags),
            ace,
            seq: if seq_form == SeqForm::Any { 0 } else { seq },
            seq_form,
            payload: u32::from(payload),
            ack,
            window,
            urgent,
            options,
        }
    }
}

proptest! {
    #[test]
    fn a_segment_comes_back_from_its_text(segment in segment()) {
        let text = segment.to_string();
        prop_assert_eq!(read(&text), PacketSpec::Tcp(segment), "{}", text);
    }
}
