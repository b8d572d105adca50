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

proptest! {
    #[test]
    fn every_layout_has_the_same_length((mss, scale, sack, timestamps) in any::<(bool, bool, bool, bool)>(), blocks in 0..=4u32) {
        let mut segment = syn(mss, scale, sack, timestamps);
        for left in 0..blocks {
            segment.sack.push(10 * left, 10 * left + 5);
        }
        for layout in [OptionLayout::Linux, OptionLayout::FreeBsd] {
            let bytes: usize = options(&segment, layout).into_iter().map(|option| option.len()).sum();
            prop_assert_eq!(bytes as u32, options_len(&segment));
            prop_assert!(bytes <= MAX_OPTIONS as usize && bytes.is_multiple_of(4));
        }
    }
}
