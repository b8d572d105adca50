//! Opening: options, lost SYNs, both at once.

use super::*;

fn with_options([sack, timestamps, window_scaling]: [bool; 3]) -> Config {
    Config { sack, timestamps, window_scaling, ..config() }
}

fn options_of(segment: &Segment) -> [bool; 3] {
    [segment.sack_permitted, segment.timestamps.is_some(), segment.window_scale.is_some()]
}

fn enabled(script: &Script) -> [bool; 3] {
    let endpoint = &script.endpoint;
    [endpoint.sender.negotiated.sack(), endpoint.sender.negotiated.timestamps(), endpoint.sender.negotiated.scaling()]
}

/// Sets the options of the peer's SYN, whatever the endpoint is set up for.
fn offer(script: &Script, flags: Flags, [sack, timestamps, window_scaling]: [bool; 3]) -> Segment {
    Segment {
        sack_permitted: sack,
        timestamps: timestamps.then(|| script.timestamps()),
        window_scale: window_scaling.then_some(3),
        ..script.syn(flags)
    }
}

fn all_options() -> impl Iterator<Item = [bool; 3]> {
    (0..8u8).map(|bits| [bits & 1 > 0, bits & 2 > 0, bits & 4 > 0])
}

fn both(a: [bool; 3], b: [bool; 3]) -> [bool; 3] {
    std::array::from_fn(|i| a[i] && b[i])
}

#[test]
fn the_opener_offers_and_uses_what_both_offer() {
    // RFC 2018 section 2, RFC 7323 sections 2.2 and 3.2.
    for (ours, theirs) in all_options().flat_map(|ours| all_options().map(move |theirs| (ours, theirs))) {
        let mut script = Script::new(with_options(ours));
        script.endpoint.connect();
        script.pump();
        assert_eq!(options_of(&script.segments()[0].1), ours);
        script.input(offer(&script, Flags::SYN | Flags::ACK, theirs));
        assert_eq!(enabled(&script), both(ours, theirs), "{ours:?} {theirs:?}");
    }
}

#[test]
fn the_listener_answers_with_what_both_offer() {
    for (ours, theirs) in all_options().flat_map(|ours| all_options().map(move |theirs| (ours, theirs))) {
        let mut script = Script::new(with_options(ours));
        script.endpoint.listen();
        script.input(offer(&script, Flags::SYN, theirs));
        assert_eq!(options_of(&script.segments()[0].1), both(ours, theirs));
        script.ack(1);
        assert_eq!(enabled(&script), both(ours, theirs), "{ours:?} {theirs:?}");
    }
}

#[test]
fn the_third_segment_carries_data_if_there_is_any() {
    let mut script = Script::new(config());
    script.endpoint.connect();
    script.endpoint.write(500);
    script.pump();
    script.input(script.syn(Flags::SYN | Flags::ACK));
    assert_eq!(script.sent(), ["S 0:1", ". 1:501 ack 1"]);
}

#[test]
fn of_linux_the_third_segment_has_no_data() {
    // tcp_rcv_synsent_state_process: connect(2) has not returned, so that no write waits
    // (`sk_write_pending`), and tcp_send_ack comes before what is written then.
    let mut script =
        Script::new(Config { mss: 1000, timestamps: false, ..crate::profile::Profile::linux_6_1().endpoint });
    script.endpoint.connect();
    script.endpoint.write(500);
    script.pump();
    script.input(script.syn(Flags::SYN | Flags::ACK));
    assert_eq!(script.sent(), ["S 0:1", ". 1:1 ack 1", ". 1:501 ack 1"]);
}

#[test]
fn a_syn_is_repeated_with_back_off_and_given_up() {
    let states = StateRules { syn_retries: 3, ..StateRules::default() };
    let mut script = Script::new(Config { states, ..config() });
    script.endpoint.connect();
    script.pump();
    script.wait(14_999);
    // RFC 6298 rules 2.1 and 5.5: 1, 2, 4 seconds, and after eight more the end.
    assert_eq!(script.timed_data(), [(0, 0, 1), (1000, 0, 1), (3000, 0, 1), (7000, 0, 1)]);
    script.wait(1);
    assert_eq!((script.endpoint.state(), script.endpoint.error()), (State::Closed, Some(Error::TimedOut)));
    assert!(!script.endpoint.is_finished());
}

#[test]
fn a_lost_syn_costs_the_initial_window_and_the_first_timeout() {
    let mut script = Script::new(config());
    script.endpoint.connect();
    script.pump();
    script.wait(1100);
    script.input(script.syn(Flags::SYN | Flags::ACK));
    script.segments();
    // RFC 5681 section 3.1: one segment.
    script.write(5000);
    assert_eq!(script.timed_data(), [(1100, 1, 1001)]);
    // RFC 6298 rule 5.7: three seconds.
    script.wait(3000);
    assert_eq!(script.timed_data(), [(4100, 1, 1001)]);
}

#[test]
fn a_lost_answer_costs_the_initial_window() {
    let mut script = Script::new(config());
    script.endpoint.listen();
    script.input(script.syn(Flags::SYN));
    script.wait(1000);
    assert_eq!(script.timed_data(), [(0, 0, 1), (1000, 0, 1)]);
    script.ack(1);
    script.write(5000);
    assert_eq!(script.data(), [(1, 1001)]);
}

#[test]
fn a_repeated_syn_is_answered_again() {
    let mut script = Script::new(config());
    script.endpoint.listen();
    script.input(script.syn(Flags::SYN));
    script.input(script.syn(Flags::SYN));
    assert_eq!(script.sent(), ["S. 0:1 ack 1", "S. 0:1 ack 1"]);
}

#[test]
fn a_repeated_answer_is_acknowledged_again() {
    let mut script = Script::open(config());
    script.input(script.syn(Flags::SYN | Flags::ACK));
    assert_eq!((script.sent(), script.endpoint.state()), (vec![". 1:1 ack 1".into()], State::Established));
}

#[test]
fn simultaneous_open() {
    // RFC 9293 figure 8.
    let mut script = Script::new(config());
    script.endpoint.connect();
    script.pump();
    script.input(script.syn(Flags::SYN));
    assert_eq!(script.endpoint.state(), State::SynReceived);
    assert_eq!(script.sent(), ["S 0:1", "S. 0:1 ack 1"]);
    script.input(script.syn(Flags::SYN | Flags::ACK));
    assert_eq!(script.endpoint.state(), State::Established);
    assert_eq!(script.sent(), [". 1:1 ack 1"]);
    // Nothing was lost: the initial window is whole.
    script.write(5000);
    assert_eq!(script.data().len(), 4);
}

#[test]
fn two_endpoints_open_at_once() {
    let mut ends = [Script::new(config()), Script::new(config())];
    for script in &mut ends {
        script.endpoint.connect();
        script.pump();
    }
    // SYNs cross, then their answers, then ACKs; then all is quiet.
    for _ in 0..3 {
        let sent = ends.each_mut().map(Script::segments);
        for (end, segments) in ends.iter_mut().rev().zip(sent) {
            for (_, segment, _) in segments {
                end.input(segment);
            }
        }
    }
    for script in &mut ends {
        assert_eq!(script.endpoint.state(), State::Established);
        assert!(script.segments().is_empty());
    }
}

#[test]
fn segments_are_as_large_as_the_smaller_side_allows() {
    // RFC 9293 section 3.7.1: options count in the MSS; without the option it is 536.
    for (peer_mss, timestamps, len) in
        [(Some(500), false, 500), (Some(500), true, 488), (None, false, 536), (Some(9000), false, 1000)]
    {
        let mut script = Script::new(Config { timestamps, ..config() });
        script.endpoint.connect();
        script.pump();
        script.input(Segment { mss: peer_mss, ..script.syn(Flags::SYN | Flags::ACK) });
        script.segments();
        script.write(5000);
        assert_eq!(script.data()[0], (1, 1 + len));
    }
}

#[test]
fn a_segment_with_sack_blocks_stays_within_the_peers_mss() {
    let mut script = Script::new(config());
    script.endpoint.connect();
    script.pump();
    script.input(Segment { mss: Some(500), ..script.syn(Flags::SYN | Flags::ACK) });
    script.peer_data(1001, 100);
    script.write(3000);
    for (_, segment, _) in script.segments().iter().skip(2) {
        let options = segment.header_len() - 20;
        assert!(segment.payload.len + options <= 500, "{segment:?}");
    }
}

#[test]
fn the_window_of_a_syn_is_not_scaled() {
    // RFC 7323 section 2.2. A buffer of 2^20 bytes needs a shift of 5: 2^20 / 2^4 = 65,536 is one
    // too many.
    let config = Config { window_scaling: true, receive_buffer: 1 << 20, ..config() };
    let mut script = Script::new(config);
    script.shift = 3;
    script.window = 8000;
    script.endpoint.connect();
    script.pump();
    script.input(script.syn(Flags::SYN | Flags::ACK));
    assert_eq!(script.endpoint.sender().sequence().window(), 8000);
    let sent = script.segments();
    assert_eq!((sent[0].1.window, sent[0].1.window_scale), (65_535, Some(5)));
    assert_eq!(sent[1].1.window, 1 << 15);
    script.ack(1);
    assert_eq!(script.endpoint.sender().sequence().window(), 64_000);
}

#[test]
fn a_scale_beyond_fourteen_is_fourteen() {
    // RFC 7323 section 2.3.
    let script = Script::open_with(Config { window_scaling: true, ..config() }, |script| script.shift = 200);
    assert_eq!(script.endpoint.sender.negotiated.peer_shift(), 14);
}

#[test]
fn a_wrong_answer_to_a_syn_is_reset() {
    // RFC 9293 section 3.10.7.3: SEG.ACK =< ISS or SEG.ACK > SND.NXT.
    let mut script = Script::new(config());
    script.endpoint.connect();
    script.pump();
    for ack in [0, 2] {
        script.input(Segment { ..script.segment(Flags::SYN | Flags::ACK, 0, 0, ack) });
        script.input(Segment { ..script.segment(Flags::RST | Flags::ACK, 0, 0, ack) });
    }
    assert_eq!(script.sent(), ["S 0:1", "R 0:0", "R 2:2"]);
    assert_eq!(script.endpoint.state(), State::SynSent);
}

#[test]
fn linux_repeats_its_syn_soon_after_a_wrong_answer() {
    // tcp_rcv_synsent_state_process: TCP_TIMEOUT_MIN, 8 ms, if the SYN was sent once. The next
    // timeout is twice the first.
    for flags in [Flags::ACK, Flags::RST | Flags::ACK] {
        let mut script = Script::new(Config { states: StateRules::linux(), ..config() });
        script.endpoint.connect();
        script.pump();
        script.wait(100);
        script.input(script.segment(flags, 0, 0, 77));
        script.wait(100);
        script.input(script.segment(flags, 0, 0, 77));
        script.wait(2000);
        let syns: Vec<_> =
            script.segments().iter().filter(|sent| sent.1.flags == Flags::SYN).map(|sent| sent.0).collect();
        assert_eq!(syns, [0, 108, 2108]);
    }
}

#[test]
fn a_reset_ends_a_simultaneous_open() {
    // RFC 9293 section 3.10.7.4, second check; tcp_reset.
    for (states, error) in [(StateRules::default(), Error::Refused), (StateRules::linux(), Error::Reset)] {
        let mut script = Script::new(Config { states, ..config() });
        script.endpoint.connect();
        script.pump();
        script.input(script.syn(Flags::SYN));
        script.input(script.segment(Flags::RST, 1, 0, 0));
        assert_eq!((script.endpoint.state(), script.endpoint.error()), (State::Closed, Some(error)));
    }
}

#[test]
fn a_peer_that_tells_no_mss() {
    // RFC 9293 section 3.7.1: 536 over IPv4, 1220 over IPv6.
    for default_peer_mss in [536, 1220] {
        let mut script = Script::new(Config { mss: 1440, default_peer_mss, ..config() });
        script.endpoint.listen();
        script.input(Segment { mss: None, ..script.syn(Flags::SYN) });
        script.ack(1);
        assert_eq!(script.endpoint.sender().mss(), u32::from(default_peer_mss));
    }
}

#[test]
fn a_reset_refuses_only_if_it_acknowledges_the_syn() {
    // RFC 9293 section 3.10.7.3, second check.
    let mut script = Script::new(config());
    script.endpoint.connect();
    script.pump();
    script.input(script.segment(Flags::RST, 0, 0, 0));
    assert_eq!(script.endpoint.state(), State::SynSent);
    script.input(script.segment(Flags::RST | Flags::ACK, 0, 0, 1));
    assert_eq!((script.endpoint.state(), script.endpoint.error()), (State::Closed, Some(Error::Refused)));
}

#[test]
fn a_listener_resets_acks_and_ignores_resets() {
    // RFC 9293 section 3.10.7.2.
    let mut script = Script::new(config());
    script.endpoint.listen();
    script.input(script.segment(Flags::RST, 0, 0, 0));
    script.input(script.segment(Flags::ACK, 0, 0, 77));
    assert_eq!((script.sent(), script.endpoint.state()), (vec!["R 77:77".into()], State::Listen));
}

#[test]
fn a_wrong_ack_of_the_answer_is_reset() {
    // RFC 9293 section 3.10.7.4, fifth check, SYN-RECEIVED.
    let mut script = Script::new(config());
    script.endpoint.listen();
    script.input(script.syn(Flags::SYN));
    script.ack(2);
    assert_eq!((script.sent()[1].as_str(), script.endpoint.state()), ("R 2:2", State::SynReceived));
}

#[test]
fn the_segment_that_completes_the_handshake_may_bring_data_and_fin() {
    let mut script = Script::new(config());
    script.endpoint.listen();
    script.input(script.syn(Flags::SYN));
    script.peer_segment(Flags::FIN, 1, 10);
    assert_eq!((script.endpoint.state(), script.endpoint.receiver().delivered()), (State::CloseWait, 10));
    assert_eq!(script.sent()[1..], [". 1:1 ack 12"]);
}

#[test]
fn the_handshake_is_the_first_sample_on_either_side() {
    for script in [Script::open(config()), Script::accept(config())] {
        assert_eq!(script.endpoint.sender().rtt().srtt(), Some(Span::from_millis(100)));
    }
}
