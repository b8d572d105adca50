use crate::segment::options_len;
use proptest::prelude::*;

use super::*;

fn syn(mss: bool, scale: bool, sack: bool, timestamps: bool) -> Segment {
    Segment {
        mss: mss.then_some(1460),
        window_scale: scale.then_some(6),
        sack_permitted: sack,
        timestamps: timestamps.then_some(Timestamps { value: 1, echo: 0 }),
        ..Segment::default()
    }
}

/// packetdrill's names.
fn shown(segment: &Segment, layout: OptionLayout) -> String {
    let name = |option: &TcpOption| match option {
        TcpOption::End => "eol".to_owned(),
        TcpOption::Nop => "nop".to_owned(),
        TcpOption::Mss(_) => "mss".to_owned(),
        TcpOption::WindowScale(_) => "wscale".to_owned(),
        TcpOption::SackPermitted => "sackOK".to_owned(),
        TcpOption::Timestamps(_) => "TS".to_owned(),
        TcpOption::Sack(blocks) => format!("sack{}", blocks.as_slice().len()),
        TcpOption::AccEcn(option) => format!("ECN{}", option.fields().count()),
        TcpOption::FastOpen(fast_open) => format!("{fast_open:?}"),
        TcpOption::Mptcp(options) => format!("{options:?}"),
    };
    options(segment, layout).as_slice().iter().map(name).collect::<Vec<_>>().join(",")
}

#[test]
fn the_orders_of_linux() {
    // tcp_options_write: SACK-permitted takes the place of the two NOPs before a timestamp.
    for (segment, expected) in [
        (syn(true, true, true, true), "mss,sackOK,TS,nop,wscale"),
        (syn(true, true, true, false), "mss,nop,nop,sackOK,nop,wscale"),
        (syn(true, true, false, true), "mss,nop,nop,TS,nop,wscale"),
        (syn(true, false, true, false), "mss,nop,nop,sackOK"),
        (syn(true, true, false, false), "mss,nop,wscale"),
        (syn(true, false, false, false), "mss"),
        (syn(false, false, false, true), "nop,nop,TS"),
    ] {
        assert_eq!(shown(&segment, OptionLayout::Linux), expected);
    }
}

#[test]
fn the_orders_of_freebsd() {
    // tcp_addoptions: the options in the order of their TOF_ bits, each aligned for itself.
    for (segment, expected) in [
        (syn(true, true, true, true), "mss,nop,wscale,sackOK,TS"),
        (syn(true, true, true, false), "mss,nop,wscale,sackOK,eol,eol"),
        (syn(true, true, false, true), "mss,nop,wscale,nop,nop,TS"),
        (syn(true, false, true, true), "mss,sackOK,TS"),
        (syn(true, false, true, false), "mss,sackOK,eol,eol"),
        (syn(true, true, false, false), "mss,nop,wscale"),
        (syn(true, false, false, true), "mss,nop,nop,TS"),
        (syn(false, false, false, true), "nop,nop,TS"),
    ] {
        assert_eq!(shown(&segment, OptionLayout::FreeBsd), expected);
    }
}

#[test]
fn sack_blocks_come_last_and_are_cut_to_what_fits() {
    let mut segment = syn(false, false, false, true);
    for left in 0..4 {
        segment.sack.push(10 * left, 10 * left + 5);
    }
    for layout in [OptionLayout::Linux, OptionLayout::FreeBsd] {
        // 12 + 4 + 3 * 8 = 40 bytes.
        assert_eq!(shown(&segment, layout), "nop,nop,TS,nop,nop,sack3");
        assert_eq!(shown(&Segment { timestamps: None, ..segment }, layout), "nop,nop,sack4");
    }
}

fn counters() -> AccEcn {
    AccEcn::new(crate::AccEcnOrder::One, |_| 1)
}

/// With `blocks` SACK blocks.
fn reporting(timestamps: bool, blocks: u32) -> Segment {
    let mut segment = syn(false, false, false, timestamps);
    for left in 0..blocks {
        segment.sack.push(10 * left, 10 * left + 5);
    }
    segment
}

#[test]
fn acc_ecn_takes_the_place_of_padding() {
    // tcp_options_write: one NOP behind three fields; what is over of one field or none goes before
    // what is aligned.
    for (segment, fields, expected) in [
        (reporting(false, 0), 3, "ECN3,nop"),
        (reporting(true, 0), 3, "nop,nop,TS,ECN3,nop"),
        (reporting(false, 0), 2, "ECN2"),
        (reporting(false, 0), 1, "ECN1,nop,nop,nop"),
        (reporting(false, 0), 0, "ECN0,nop,nop"),
        (reporting(false, 1), 3, "ECN3,nop,nop,nop,sack1"),
        (reporting(false, 1), 1, "ECN1,nop,sack1"),
        (reporting(false, 1), 0, "ECN0,sack1"),
        (syn(true, true, true, false), 3, "mss,ECN3,nop,nop,nop,sackOK,nop,wscale"),
        (syn(true, true, true, false), 1, "mss,ECN1,nop,sackOK,nop,wscale"),
        (syn(true, true, true, false), 0, "mss,ECN0,sackOK,nop,wscale"),
        (syn(true, true, true, true), 3, "mss,sackOK,TS,ECN3,nop,nop,wscale"),
        (syn(true, true, true, true), 1, "mss,sackOK,TS,ECN1,wscale"),
        // Two bytes are not split.
        (syn(true, true, true, true), 0, "mss,sackOK,TS,nop,wscale,ECN0,nop,nop"),
    ] {
        let segment = Segment { acc_ecn: Some(counters().shortened(fields)), ..segment };
        assert_eq!(shown(&segment, OptionLayout::Linux), expected);
    }
}

#[test]
fn as_many_fields_as_fit_and_sack_gives_way_to_what_is_needed() {
    // tcp_options_fit_accecn, of 40 bytes: with timestamps 12, each block 8 and 4 for the option.
    for (timestamps, blocks, least, expected) in [
        (true, 0, 0, Some("nop,nop,TS,ECN3,nop")),
        (true, 1, 0, Some("nop,nop,TS,ECN3,nop,nop,nop,sack1")),
        // 12 + 20 leave 8: two fields.
        (true, 2, 1, Some("nop,nop,TS,ECN2,nop,nop,sack2")),
        (true, 2, 3, None),
        // 12 + 28 leave none but the NOPs: if that is too little, the third block makes room.
        (true, 3, 0, Some("nop,nop,TS,ECN0,sack3")),
        (true, 3, 1, Some("nop,nop,TS,ECN2,nop,nop,sack2")),
        (true, 3, 2, Some("nop,nop,TS,ECN2,nop,nop,sack2")),
        (true, 3, 3, None),
        // Without timestamps the fourth block leaves 4, which the last byte of 5 goes beyond, in
        // the place of a NOP.
        (false, 4, 0, Some("ECN1,nop,sack4")),
        (false, 4, 1, Some("ECN1,nop,sack4")),
        (false, 4, 2, Some("ECN3,nop,nop,nop,sack3")),
        (false, 3, 3, Some("ECN3,nop,nop,nop,sack3")),
    ] {
        let mut segment = reporting(timestamps, blocks);
        let fits = fit_acc_ecn(&mut segment, counters(), least);
        assert_eq!(fits.then(|| shown(&segment, OptionLayout::Linux)).as_deref(), expected, "{blocks} blocks, {least}");
        if !fits {
            assert_eq!(segment, reporting(timestamps, blocks), "nothing is done");
        }
    }
}

#[test]
fn fast_open_comes_last() {
    let asks = Some(FastOpen::REQUEST);
    let cookie = Some(FastOpen::new(&[0xab, 0xcd, 0x12, 0x34]));
    let with = |timestamps, fast_open| Segment { fast_open, ..syn(true, true, true, timestamps) };
    for (segment, linux, freebsd) in [
        (with(true, asks), "mss,sackOK,TS,nop,wscale,FO,nop,nop", "mss,nop,wscale,sackOK,TS,FO,eol,eol"),
        (
            with(true, cookie),
            "mss,sackOK,TS,nop,wscale,FO abcd1234,nop,nop",
            "mss,nop,wscale,sackOK,TS,FO abcd1234,eol,eol",
        ),
        (
            with(false, asks.map(|asks| asks.in_form(true))),
            "mss,nop,nop,sackOK,nop,wscale,FOEXP",
            "mss,nop,wscale,sackOK,nop,nop,FOEXP",
        ),
    ] {
        assert_eq!(shown(&segment, OptionLayout::Linux), linux);
        assert_eq!(shown(&segment, OptionLayout::FreeBsd), freebsd);
    }
}

proptest! {
    #[test]
    fn every_layout_has_the_same_length(
        (mss, scale, sack, timestamps) in any::<(bool, bool, bool, bool)>(),
        blocks in 0..=4u32,
        fields in prop::option::of(0..=3usize),
        fast_open in prop::option::of((any::<bool>(), 0..=16usize)),
    ) {
        let mut segment = syn(mss, scale, sack, timestamps);
        segment.fast_open = fast_open.map(|(experimental, len)| FastOpen::new(&vec![1; len]).in_form(experimental));
        for left in 0..blocks {
            segment.sack.push(10 * left, 10 * left + 5);
        }
        match fields.map(|fields| counters().shortened(fields)) {
            // Beside Fast Open there may be no room for it.
            Some(option) if fast_open.is_some() => {
                fit_acc_ecn(&mut segment, option, 0);
            }
            option => segment.acc_ecn = option,
        }
        for layout in [OptionLayout::Linux, OptionLayout::FreeBsd] {
            let bytes: usize = options(&segment, layout).into_iter().map(|option| option.len()).sum();
            prop_assert_eq!(bytes as u32, options_len(&segment));
            prop_assert!(bytes <= MAX_OPTIONS as usize && bytes.is_multiple_of(4));
        }
    }
}
