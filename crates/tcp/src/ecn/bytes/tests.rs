use super::*;

fn option(e1: u32, ce: u32, e0: u32) -> AccEcn {
    AccEcn::new(AccEcnOrder::One, |codepoint| match codepoint {
        Ecn::Ect1 => e1,
        Ecn::Ce => ce,
        _ => e0,
    })
}

#[test]
fn counters_begin_with_one_and_with_zero() {
    // RFC 9768 section 3.2.1: r.e0b = r.e1b = 1, r.ceb = 0.
    let mut counters = ByteCounters::new();
    assert_eq!(counters.report(), option(1, 0, 1));
    for (codepoint, payload) in [(Ecn::Ect0, 100), (Ecn::Ce, 30), (Ecn::Ect1, 7), (Ecn::NotEct, 5), (Ecn::Ce, 0)] {
        counters.count(codepoint, payload, false);
    }
    assert_eq!(counters.report(), option(8, 30, 101));
    assert_eq!(counters.totals(), ([7, 100, 30], [0; 3]));
}

#[test]
fn an_option_has_room_for_what_has_changed() {
    // Fields in the order EE1B, ECEB, EE0B.
    for (codepoints, needed) in
        [(&[][..], 0), (&[Ecn::NotEct], 0), (&[Ecn::Ect1], 1), (&[Ecn::Ce], 2), (&[Ecn::Ect0, Ecn::Ect1], 3)]
    {
        let mut counters = ByteCounters::new();
        codepoints.iter().for_each(|&codepoint| counters.count(codepoint, 1, false));
        assert_eq!(counters.needed, needed, "{codepoints:?}");
    }
}

#[test]
fn options_are_due_after_changes_marks_and_four_mebibytes() {
    let mut counters = ByteCounters::new();
    counters.count(Ecn::Ect0, (1 << 22) - 1, false);
    assert_eq!(counters.due, 0);
    counters.count(Ecn::Ect0, 1, false);
    assert_eq!(counters.due, 1, "the counter passes 2^22");
    counters.count(Ecn::NotEct, 1, true);
    assert_eq!(counters.due, 2, "another codepoint");
    counters.due = 0;
    counters.count(Ecn::Ce, 1, false);
    assert_eq!(counters.due, 2, "a mark after a mark");
    counters.demand(1);
    assert_eq!(counters.due, 2, "none are taken back");
}

#[test]
fn what_was_zeroed_is_not_heeded() {
    // RFC 9768 section 3.2.3.2.4: EE0B and EE1B cannot be zero at first.
    for (option, seen) in [
        (option(1, 0, 1), Seen::Counters),
        (option(0, 0, 1), Seen::Invalid),
        (option(1, 0, 0), Seen::Invalid),
        (option(1, 0, 0).shortened(2), Seen::Counters),
        (option(1, 0, 1).shortened(0), Seen::Empty),
    ] {
        let mut counters = ByteCounters::new();
        assert!(counters.look_at(Some(option)));
        assert_eq!((counters.seen, counters.ignored), (seen, seen == Seen::Invalid), "{option}");
    }
    // Later a counter may be zero: it wraps.
    let mut counters = ByteCounters::new();
    counters.look_at(Some(option(1, 0, 1)));
    assert!(!counters.look_at(Some(option(0, 0, 0))));
    assert!(!counters.ignored);
    // Ignored options report nothing any more.
    counters.ignored = true;
    assert_eq!(counters.take(Some(option(1, 500, 1)), 500, 500), BytesTold::default());
}

#[test]
fn fields_of_24_bits_move_both_ways() {
    assert_eq!(moved(Ecn::Ce, 5, 3), 2);
    assert_eq!(moved(Ecn::Ce, 3, 5), -2);
    assert_eq!(moved(Ecn::Ect0, 0, 0), -1, "it begins with one");
    assert_eq!(moved(Ecn::Ce, 1, 0xff_ffff), 2, "through zero");
    assert_eq!(moved(Ecn::Ce, 1, 0x1ff_ffff), 2, "whatever lies above");
    assert_eq!(moved(Ecn::Ce, 0x80_0000, 0), -0x80_0000);
}

/// The report of an option after those before.
fn told(options: &[AccEcn]) -> (BytesTold, Option<Ecn>) {
    let mut counters = ByteCounters::new();
    let mut last = BytesTold::default();
    for &option in options {
        last = counters.take(Some(option), 1000, 1000);
    }
    (last, counters.moving)
}

#[test]
fn the_counters_are_relied_on_while_one_moves() {
    // tcp_accecn_process_option: known is which one moves, from the option before on; two that move
    // leave it open.
    let told_of = |valid, marked| BytesTold { valid, marked: Some(marked) };
    assert_eq!(told(&[option(1, 0, 1001)]), (told_of(false, 0), Some(Ecn::Ect0)), "the first");
    assert_eq!(told(&[option(1, 0, 1001), option(1, 0, 2001)]), (told_of(true, 0), Some(Ecn::Ect0)));
    assert_eq!(told(&[option(1, 0, 1001), option(1, 1000, 1001)]), (told_of(true, 1000), Some(Ecn::Ce)), "another one");
    assert_eq!(told(&[option(1, 0, 1001), option(1, 500, 1501)]), (told_of(true, 500), Some(Ecn::Ce)), "and the same");
    assert_eq!(told(&[option(1, 0, 1001), option(501, 500, 1001)]), (told_of(false, 500), None), "two others");
    assert_eq!(told(&[option(1, 0, 1001), option(1, 0, 501)]), (told_of(false, 0), None), "backwards");
    assert_eq!(told(&[option(1, 0, 1001), option(1, 0, 1001).shortened(1)]).0.marked, None, "no ECEB");
}

#[test]
fn without_an_option_the_one_that_moves_goes_on() {
    let mut counters = ByteCounters::new();
    counters.take(Some(option(1, 1000, 1)), 1000, 1000);
    assert_eq!(counters.take(None, 300, 1300), BytesTold { valid: true, marked: Some(300) });
    assert_eq!(counters.totals().1, [0, 0, 1300]);
    // The next one sets it right.
    assert!(!counters.take(Some(option(1, 1000, 301)), 0, 1300).valid);
    assert_eq!(counters.totals().1, [0, 300, 1000]);
}

#[test]
fn an_option_that_comes_too_late_is_ignored() {
    // From 2^23 - 1 bytes on counters may have wrapped unseen.
    for (sent, heeded) in [((1 << 23) - 2, true), ((1 << 23) - 1, false)] {
        let mut counters = ByteCounters::new();
        assert_eq!(counters.take(None, 1000, sent), BytesTold::default());
        counters.take(Some(option(1, 1000, 1)), 1000, sent);
        assert_eq!(counters.totals().1[2] == 1000, heeded, "{sent}");
    }
}

#[test]
fn an_option_is_news_if_a_counter_moves_or_it_is_the_first() {
    let mut counters = ByteCounters::new();
    assert!(counters.is_news(&option(1, 0, 1)));
    counters.look_at(Some(option(1, 0, 1)));
    assert!(!counters.is_news(&option(1, 0, 1)));
    assert!(counters.is_news(&option(1, 0, 2)));
}
