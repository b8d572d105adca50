//! Explicit congestion notification (RFC 3168).

use super::peer::full;
use super::*;
use crate::{AdaptiveRules, CaState, LossDetector};

fn capable() -> Config {
    Config { ecn: EcnFeedback::Classic, initial_window: InitialWindow::Segments(10), ..config() }
}

fn feedback(on: bool) -> EcnFeedback {
    if on { EcnFeedback::Classic } else { EcnFeedback::None }
}

const ECN: Flags = Flags::from_bits(Flags::ECE.bits() | Flags::CWR.bits());

/// Ten segments in flight.
fn ten() -> Script {
    let mut script = Script::open_with(capable(), |_| ());
    script.write(10_000);
    script
}

fn echo(script: &mut Script, ack: u64) {
    let segment = script.segment(Flags::ACK | Flags::ECE, script.seq, 0, ack);
    script.input(segment);
}

/// The sequence number, the CWR flag and the codepoint of everything with data.
fn marked(script: &mut Script) -> Vec<(u64, bool, Ecn)> {
    let sent = script.segments();
    let with_data = sent.iter().filter(|(_, segment, _)| segment.payload.len > 0);
    with_data.map(|(_, segment, ecn)| (segment.payload.offset + 1, segment.flags.contains(Flags::CWR), *ecn)).collect()
}

#[test]
fn the_opener_asks_and_uses_it_if_the_answer_agrees() {
    // RFC 3168 section 6.1.1: ECE alone agrees; both flags are a reflection.
    for (ours, answer, agreed) in
        [(true, Flags::ECE, true), (true, ECN, false), (true, Flags::NONE, false), (false, Flags::ECE, false)]
    {
        let mut script = Script::new(Config { ecn: feedback(ours), ..config() });
        script.endpoint.connect();
        script.pump();
        let (_, syn, codepoint) = script.segments()[0];
        assert_eq!(
            (syn.flags.contains(Flags::ECE), syn.flags.contains(Flags::CWR), codepoint),
            (ours, ours, Ecn::NotEct)
        );
        let reply = script.segment(Flags::SYN | Flags::ACK | answer, 0, 0, 1);
        script.input(reply);
        assert_eq!(script.endpoint.sender.ecn.is_usable(), agreed);
    }
}

#[test]
fn the_listener_agrees_if_asked() {
    for (ours, request, agreed) in
        [(true, ECN, true), (true, Flags::ECE, false), (true, Flags::NONE, false), (false, ECN, false)]
    {
        let mut script = Script::new(Config { ecn: feedback(ours), ..config() });
        script.endpoint.listen();
        let syn = script.segment(Flags::SYN | request, 0, 0, 0);
        script.input(syn);
        let (_, answer, codepoint) = script.segments()[0];
        assert_eq!((answer.flags.contains(Flags::ECE), answer.flags.contains(Flags::CWR)), (agreed, false));
        assert_eq!((script.endpoint.sender.ecn.is_usable(), codepoint), (agreed, Ecn::NotEct));
    }
}

#[test]
fn a_repeated_syn_does_not_ask() {
    // RFC 3168 section 6.1.1.1; who has sent a SYN without the flags must not send ECN-capable
    // packets, but must echo marks if the answer agrees to the first one.
    let mut script = Script::new(capable());
    script.endpoint.connect();
    script.pump();
    script.wait(1000);
    let flags: Vec<_> = script.segments().iter().map(|(_, segment, _)| segment.flags).collect();
    assert_eq!(flags, [Flags::SYN | ECN, Flags::SYN]);
    script.input(script.syn(Flags::SYN | Flags::ACK));
    script.segments();
    script.write(1000);
    assert_eq!(marked(&mut script), [(1, false, Ecn::NotEct)]);
    let data = script.segment(Flags::ACK, 1, 1000, 1001);
    script.input_marked(data, Ecn::Ce);
    script.wait(40);
    assert!(script.segments()[0].1.flags.contains(Flags::ECE));
}

#[test]
fn a_syn_that_does_not_ask_withdraws_an_earlier_one() {
    // RFC 3168 section 6.1.1.
    let mut script = Script::new(capable());
    script.endpoint.listen();
    script.input(script.syn(Flags::SYN));
    let again = script.segment(Flags::SYN, 0, 0, 0);
    script.input(again);
    let answers: Vec<_> = script.segments().iter().map(|(_, segment, _)| segment.flags.contains(Flags::ECE)).collect();
    assert_eq!((answers, script.endpoint.sender.ecn.is_usable()), (vec![true, false], false));
}

#[test]
fn linux_ignores_an_echo_below_what_is_acknowledged() {
    // tcp_ack goes to old_ack before it looks at ECE; RFC 3168 does not say so.
    for (detector, state) in [(LossDetector::Rack, CaState::Open), (LossDetector::Rfc6675, CaState::Cwr)] {
        let mut script = Script::open_with(Config { loss_detector: detector, ..capable() }, |_| ());
        script.write(10_000);
        script.ack(3001);
        echo(&mut script, 2001);
        assert_eq!(script.endpoint.sender().loss().state(), state, "{detector:?}");
        echo(&mut script, 3001);
        assert_eq!(script.endpoint.sender().loss().state(), CaState::Cwr);
    }
}

#[test]
fn only_new_data_is_capable() {
    // RFC 3168 sections 6.1.4 and 6.1.5: not pure ACKs, not retransmissions; a FIN without data is
    // neither.
    let mut script = Script::open(capable());
    script.write(1000);
    assert_eq!(marked(&mut script), [(1, false, Ecn::Ect0)]);
    script.wait(RTO);
    assert_eq!(marked(&mut script), [(1, false, Ecn::NotEct)]);
    script.ack(1001);
    script.peer_data(1, 1000);
    script.peer_data(1001, 1000);
    script.close();
    let sent = script.segments();
    assert_eq!(sent.len(), 2);
    assert!(sent.iter().all(|&(_, _, ecn)| ecn == Ecn::NotEct));
}

#[test]
fn probes_are_not_capable() {
    // RFC 3168 section 6.1.6: neither the codepoint nor CWR.
    let mut script = Script::open_with(capable(), |script| script.window = 1000);
    script.write(3000);
    script.window = 0;
    echo(&mut script, 1001);
    script.segments();
    script.wait(3000);
    assert_eq!(marked(&mut script), [(1001, false, Ecn::NotEct); 2]);
    script.ack_window(1002, 3000);
    assert_eq!(marked(&mut script)[0], (1002, true, Ecn::Ect0));
}

#[test]
fn a_mark_is_echoed_until_it_is_confirmed() {
    // RFC 3168 section 6.1.3.
    let mut script =
        Script::open(Config { delayed_ack: DelayedAck { segments: 1, ..DelayedAck::default() }, ..capable() });
    let steps = [
        (Flags::NONE, Ecn::Ect0, false),
        (Flags::NONE, Ecn::Ce, true),
        (Flags::NONE, Ecn::Ect0, true),
        (Flags::NONE, Ecn::Ect0, true),
        (Flags::CWR, Ecn::Ect0, false),
        // Marked again although it confirms.
        (Flags::CWR, Ecn::Ce, true),
        (Flags::CWR, Ecn::NotEct, false),
    ];
    for (i, (flags, codepoint, echoed)) in (0..).zip(steps) {
        let data = script.segment(Flags::ACK | flags, 1 + 100 * i, 100, 1);
        script.input_marked(data, codepoint);
        let (_, ack, codepoint) = script.segments()[0];
        assert_eq!((ack.flags.contains(Flags::ECE), codepoint), (echoed, Ecn::NotEct), "segment {i}");
    }
}

#[test]
fn without_an_agreement_marks_and_echoes_mean_nothing() {
    let mut script = Script::open(Config { ecn: EcnFeedback::None, ..capable() });
    script.write(10_000);
    let data = script.segment(Flags::ACK, 1, 1000, 1);
    script.input_marked(data, Ecn::Ce);
    echo(&mut script, 1001);
    assert_eq!(script.endpoint.sender().loss().state(), CaState::Open);
    assert!(script.segments().iter().all(|(_, segment, _)| !segment.flags.contains(Flags::ECE)));
}

#[test]
fn an_echo_halves_the_window_once_per_window() {
    // RFC 3168 section 6.1.2.
    let mut script = ten();
    for ack in [1001, 2001, 3001] {
        echo(&mut script, ack);
    }
    let window = script.endpoint.sender().congestion_control().window();
    assert_eq!((window.ssthresh, script.endpoint.sender().loss().state()), (5000, CaState::Cwr));
    // The ACK of all that was outstanding may still carry the echo: CWR has not arrived.
    echo(&mut script, 10_001);
    assert_eq!(script.endpoint.sender().congestion_control().window().ssthresh, 5000);
    // An echo of what was sent afterwards is news.
    script.write(5000);
    echo(&mut script, 11_001);
    assert!(script.endpoint.sender().congestion_control().window().ssthresh < 5000);
    assert_eq!(
        (script.endpoint.sender().stats().ece_acks, script.endpoint.sender().stats().retransmitted_packets),
        (5, 0)
    );
}

#[test]
fn before_linux_3_12_an_echo_lets_no_window_grow_that_has_reached_its_threshold() {
    // tcp_may_raise_cwnd. Five segments are acknowledged, a window: six are halved, or five, in
    // whole segments.
    for (high_reordering, ssthresh) in [(true, 3000), (false, 2000)] {
        let rules = AdaptiveRules { high_reordering, ..AdaptiveRules::default() };
        let mut script = Script::open(Config { loss_detector: LossDetector::Linux(rules), ..capable() });
        script.write(10_000);
        echo(&mut script, 1001);
        script.write(6000);
        for segment in 2..=11 {
            script.ack(1000 * segment + 1);
        }
        let window = script.endpoint.sender().congestion_control().window();
        assert_eq!(
            (window.cwnd, window.ssthresh, script.endpoint.sender().loss().state()),
            (5000, 5000, CaState::Open)
        );
        echo(&mut script, 16_001);
        assert_eq!(script.endpoint.sender().congestion_control().window().ssthresh, ssthresh);
    }
}

#[test]
fn the_end_of_a_reduction_is_no_reduction() {
    // RFC 3168 section 6.1.2: 10 segments halved, although nothing is in flight any more when all
    // of them are acknowledged. The 8000 bytes of the last ACK are more than a window, for which it
    // grows by a segment.
    let mut script = ten();
    echo(&mut script, 2001);
    echo(&mut script, 10_001);
    assert_eq!((script.endpoint.sender().cwnd(), script.endpoint.sender().loss().state()), (6000, CaState::Open));
}

#[test]
fn the_first_new_data_after_a_reduction_carries_cwr() {
    let mut script = ten();
    script.write(10_000);
    script.segments();
    echo(&mut script, 1001);
    let mut sent = Vec::new();
    for ack in 2..=10 {
        sent.extend(marked(&mut script));
        script.ack(1 + 1000 * ack);
    }
    assert_eq!(sent[0], (10_001, true, Ecn::Ect0));
    assert!(sent[1..].iter().all(|&(_, cwr, _)| !cwr));
}

#[test]
fn cwr_follows_a_loss_and_a_timeout_as_well() {
    // RFC 3168 section 6.1.2: a reduction for any reason.
    let mut script = ten();
    script.sack(1, &[(1001, 9001)]);
    script.segments();
    script.ack(10_001);
    script.write(1000);
    assert_eq!(marked(&mut script), [(10_001, true, Ecn::Ect0)]);
    script.wait(RTO);
    script.ack(11_001);
    script.segments();
    script.write(1000);
    assert_eq!(marked(&mut script), [(11_001, true, Ecn::Ect0)]);
}

#[test]
fn a_loss_during_a_reduction_for_ecn_does_not_reduce_again() {
    let mut script = ten();
    echo(&mut script, 1001);
    script.segments();
    script.sack(1001, &[(2001, 5001)]);
    assert_eq!(script.data(), full(1001, 1));
    assert_eq!(script.endpoint.sender().congestion_control().window().ssthresh, 5000);
    assert_eq!(script.endpoint.sender().loss().state(), CaState::Recovery);
}

#[test]
fn an_echo_with_nothing_in_flight_does_not_stop_the_sender() {
    let mut script = ten();
    script.ack(10_001);
    echo(&mut script, 10_001);
    script.segments();
    script.write(5000);
    assert!(!script.data().is_empty());
}
