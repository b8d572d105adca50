//! Timestamps: what is echoed, and protection against wrapped sequence numbers (RFC 7323).

use super::*;

fn stamped() -> Config {
    Config { timestamps: true, delayed_ack: DelayedAck { segments: 2, ..DelayedAck::default() }, ..config() }
}

/// Data with this TSval; what the ACK that follows at once echoes.
fn data(script: &mut Script, seq: u64, value: u32) -> Option<u32> {
    let echo = script.timestamps().echo;
    let segment = script.segment(Flags::ACK, seq, 100, 1);
    script.input(Segment { timestamps: Some(Timestamps { value, echo }), ..segment });
    script.segments().last().map(|(_, segment, _)| segment.timestamps.unwrap().echo)
}

/// The connection's first TSval, to count from.
fn base(script: &Script) -> u32 {
    script.endpoint.sender.negotiated.recent()
}

#[test]
fn a_delayed_ack_echoes_the_first_segment() {
    // RFC 7323 section 4.3, first example.
    let mut script = Script::open(stamped());
    let base = base(&script);
    assert_eq!(data(&mut script, 1, base + 1), None);
    assert_eq!(data(&mut script, 101, base + 2), Some(base + 1));
}

#[test]
fn a_segment_out_of_order_echoes_the_last_in_order() {
    // RFC 7323 section 4.3, second example: A, C, B, E, D with an ACK for each.
    let mut script =
        Script::open(Config { delayed_ack: DelayedAck { segments: 1, ..DelayedAck::default() }, ..stamped() });
    let base = base(&script);
    for (seq, value, echo) in [(1, 1, 1), (201, 3, 1), (101, 2, 2), (401, 5, 2), (301, 4, 4)] {
        assert_eq!(data(&mut script, seq, base + value), Some(base + echo), "{seq}");
    }
}

#[test]
fn an_old_timestamp_is_answered_and_dropped() {
    // RFC 7323 section 5.3 R1.
    let mut script = Script::open(stamped());
    let base = base(&script);
    assert_eq!(data(&mut script, 1, base.wrapping_sub(1)), Some(base));
    assert_eq!(script.endpoint.receiver().delivered(), 0);
    assert_eq!(data(&mut script, 1, base), None);
    assert_eq!(script.endpoint.receiver().delivered(), 100);
}

#[test]
fn linux_lets_a_timestamp_be_one_tick_old() {
    // tcp_paws_discard: TCP_PAWS_WINDOW is 1; tcp_replace_ts_recent allows for none.
    let mut script = Script::open(Config { states: StateRules::linux(), ..stamped() });
    let base = base(&script);
    assert_eq!(data(&mut script, 1, base.wrapping_sub(2)), Some(base));
    assert_eq!(script.endpoint.receiver().delivered(), 0);
    data(&mut script, 1, base.wrapping_sub(1));
    assert_eq!((script.endpoint.receiver().delivered(), script.endpoint.sender.negotiated.recent()), (100, base));
}

#[test]
fn timestamps_wrap() {
    let mut script =
        Script::open(Config { delayed_ack: DelayedAck { segments: 1, ..DelayedAck::default() }, ..stamped() });
    let mut value = base(&script);
    for i in 0..8 {
        value = value.wrapping_add(1 << 30);
        data(&mut script, 1 + 100 * i, value);
    }
    assert_eq!(script.endpoint.receiver().delivered(), 800);
}

#[test]
fn after_24_days_any_timestamp_is_new() {
    // RFC 7323 section 5.5.
    let mut script = Script::open(stamped());
    let base = base(&script);
    script.wait(25 * 24 * 3600 * 1000);
    assert_eq!(data(&mut script, 1, base.wrapping_sub(5)), None);
    assert_eq!(
        (script.endpoint.receiver().delivered(), script.endpoint.sender.negotiated.recent()),
        (100, base.wrapping_sub(5))
    );
}

#[test]
fn a_segment_without_timestamps_is_dropped_silently() {
    // RFC 7323 section 3.2.
    let mut script = Script::open(stamped());
    let segment = Segment { timestamps: None, ..script.segment(Flags::ACK, 1, 100, 1) };
    script.input(segment);
    assert_eq!((script.endpoint.receiver().delivered(), script.sent()), (0, vec![]));
}

#[test]
fn a_reset_needs_no_timestamps() {
    // RFC 7323 section 5.2: a RST is not subject to the test.
    for timestamps in [None, Some(Timestamps { value: 0, echo: 0 })] {
        let mut script = Script::open(stamped());
        let reset = Segment { timestamps, ..script.segment(Flags::RST, 1, 0, 0) };
        script.input(reset);
        assert_eq!(script.endpoint.state(), State::Closed);
    }
}

#[test]
fn a_syn_without_timestamps_is_challenged() {
    // RFC 5961 section 4: so that a peer that has forgotten the connection can reset it.
    let mut script = Script::open(stamped());
    let syn = Segment { timestamps: None, ..script.segment(Flags::SYN, 9 << 20, 0, 0) };
    script.input(syn);
    assert_eq!(script.sent(), [". 1:1 ack 1"]);
}

#[test]
fn a_duplicate_does_not_move_the_echo() {
    // RFC 7323 section 5.3: an unacceptable segment is dropped before R3.
    let mut script = Script::open(stamped());
    let base = base(&script);
    data(&mut script, 1, base + 1);
    assert_eq!(data(&mut script, 1, base + 9), Some(base + 1));
}

#[test]
fn an_unacceptable_ack_leaves_the_echo_alone() {
    // The segment is dropped as a whole (RFC 9293 section 3.10.7.4, fifth check).
    let mut script = Script::open(Config { timestamps: true, ..config() });
    let before = script.endpoint.sender.negotiated.recent();
    script.wait(100);
    script.input(script.segment(Flags::ACK, 1, 0, 5000));
    assert_eq!(script.endpoint.sender.negotiated.recent(), before);
}

#[test]
fn a_reset_carries_timestamps() {
    // RFC 7323 section 3.2.
    let mut script = Script::open(Config { timestamps: true, ..config() });
    script.wait(100);
    script.segments();
    script.endpoint.abort();
    script.pump();
    let echo = script.endpoint.sender.negotiated.recent();
    assert_eq!(script.segments()[0].1.timestamps, Some(Timestamps { value: 200, echo }));
}

#[test]
fn segments_without_timestamps_are_taken_in_by_linux_alone() {
    for (accept_unstamped, bytes) in [(true, 10), (false, 0)] {
        let states = StateRules { accept_unstamped, ..StateRules::default() };
        let mut script = Script::open(Config { timestamps: true, states, ..config() });
        let segment = Segment { timestamps: None, ..script.segment(Flags::ACK, 1, 10, 1) };
        script.input(segment);
        assert_eq!(script.endpoint.receiver().delivered(), bytes);
    }
}

#[test]
fn linux_reports_what_it_refuses_as_a_duplicate_if_it_is_one() {
    // tcp_send_dupack: what begins below RCV.NXT, up to there. As a 6.18 kernel answers behind two
    // paths.
    let transfer = TransferRules { report_refused: true, ..TransferRules::default() };
    for (seq, duplicate) in [(1, Some((1, 101))), (101, Some((101, 201))), (201, None), (301, None)] {
        let mut script = Script::open(Config { transfer: transfer.clone(), ..stamped() });
        let base = base(&script);
        data(&mut script, 1, base + 5);
        data(&mut script, 101, base + 10);
        let echo = script.timestamps().echo;
        let segment = script.segment(Flags::ACK, seq, 100, 1);
        script.input(Segment { timestamps: Some(Timestamps { value: base + 3, echo }), ..segment });
        let segments = script.segments();
        let (_, answer, _) = segments.last().expect("an ACK");
        let isn = script.segment(Flags::ACK, 0, 0, 0).seq;
        let blocks = answer.sack.as_slice().iter().map(|&(l, r)| (l.wrapping_sub(isn), r.wrapping_sub(isn)));
        assert_eq!(blocks.collect::<Vec<_>>(), Vec::from_iter(duplicate), "{seq}");
        assert_eq!(script.endpoint.receiver().delivered(), 200, "{seq}");
    }
}
