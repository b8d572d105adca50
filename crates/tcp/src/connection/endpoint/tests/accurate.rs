//! Accurate ECN (RFC 9768).

use ackclock_cc::{Needs, NewReno, NewRenoConfig, Prague, PragueConfig};
use ackclock_packet::{AccEcn, AccEcnOrder};

use super::*;
use crate::ecn::safest_marks;
use crate::{AccEcnOption, AccEcnRule, AccEcnRules, TcpInfo, TransferRules};

fn accurate() -> Config {
    Config { ecn: EcnFeedback::Accurate, initial_window: InitialWindow::Segments(20), ..config() }
}

fn ace(counter: u8) -> Flags {
    Flags::from_ace(counter)
}

/// Opened actively, the SYN-ACK saying that the SYN came as it was sent; it came itself with `ecn`.
fn opened(ecn: Ecn) -> Script {
    let mut script = Script::new(accurate());
    script.endpoint.connect();
    script.pump();
    script.wait(100);
    let answer = script.syn(Flags::SYN | Flags::ACK);
    script.input_marked(answer, ecn);
    script
}

/// Opened passively, the last ACK of the handshake with this ACE field.
fn accepted(field: u8) -> Script {
    let mut script = Script::new(accurate());
    script.endpoint.listen();
    script.input(script.syn(Flags::SYN));
    script.segments();
    let ack = script.segment(Flags::ACK | ace(field), 1, 0, 1);
    script.input(ack);
    script
}

/// The ACE fields of what was sent since the last look.
fn fields(script: &mut Script) -> Vec<u8> {
    script.segments().iter().map(|(_, segment, _)| segment.flags.ace()).collect()
}

#[test]
fn table_2_as_a_client() {
    use EcnFeedback::{Accurate, Classic, None};
    // The request, the answer, the mode, and the permission to send ECT data. The SYN is not ECT:
    // an answer that it came ECT or CE tells of mangling, and nothing of ours is ECT then (section
    // 3.2.2.3).
    for (asked, answer, mode, usable) in [
        (Accurate, 0b010, Accurate, true),
        (Accurate, 0b011, Accurate, false),
        (Accurate, 0b100, Accurate, false),
        (Accurate, 0b110, Accurate, false),
        // Reserved: as if the SYN had arrived unchanged (section 3.1.3).
        (Accurate, 0b101, Accurate, true),
        (Accurate, 0b001, Classic, true),
        (Accurate, 0b000, None, false),
        (Accurate, 0b111, None, false),
        (Classic, 0b001, Classic, true),
        (Classic, 0b000, None, false),
        (Classic, 0b011, None, false),
    ] {
        let mut script = Script::new(Config { ecn: asked, ..accurate() });
        script.endpoint.connect();
        script.pump();
        let (_, syn, codepoint) = script.segments()[0];
        let request = if asked == Accurate { 0b111 } else { 0b011 };
        assert_eq!((syn.flags, codepoint), (Flags::SYN | ace(request), Ecn::NotEct));
        let answer = script.segment(Flags::SYN | Flags::ACK | ace(answer), 0, 0, 1);
        script.input(answer);
        assert_eq!(
            (script.endpoint.sender.ecn.mode(), script.endpoint.sender.ecn.is_usable()),
            (mode, usable),
            "{answer:?}"
        );
    }
}

#[test]
fn table_2_as_a_server() {
    use EcnFeedback::{Accurate, Classic, Dctcp, None};
    // The accepted feedback, the SYN, the codepoint that it came with, the mode, the answer.
    for (accepts, request, arrived, mode, answer) in [
        (Accurate, 0b111, Ecn::NotEct, Accurate, 0b010),
        (Accurate, 0b111, Ecn::Ect1, Accurate, 0b011),
        (Accurate, 0b111, Ecn::Ect0, Accurate, 0b100),
        (Accurate, 0b111, Ecn::Ce, Accurate, 0b110),
        // Other requests, of a later version, are answered as well (section 3.1.3).
        (Accurate, 0b001, Ecn::NotEct, Accurate, 0b010),
        (Accurate, 0b010, Ecn::NotEct, Accurate, 0b010),
        (Accurate, 0b100, Ecn::NotEct, Accurate, 0b010),
        (Accurate, 0b101, Ecn::NotEct, Accurate, 0b010),
        (Accurate, 0b110, Ecn::NotEct, Accurate, 0b010),
        (Accurate, 0b011, Ecn::NotEct, Classic, 0b001),
        (Accurate, 0b000, Ecn::NotEct, None, 0b000),
        (Classic, 0b111, Ecn::NotEct, Classic, 0b001),
        (Classic, 0b011, Ecn::NotEct, Classic, 0b001),
        (Dctcp, 0b111, Ecn::NotEct, Dctcp, 0b001),
        (Classic, 0b100, Ecn::NotEct, None, 0b000),
        (None, 0b111, Ecn::NotEct, None, 0b000),
    ] {
        let mut script = Script::new(Config { ecn: accepts, ..accurate() });
        script.endpoint.listen();
        let syn = script.segment(Flags::SYN | ace(request), 0, 0, 0);
        script.input_marked(syn, arrived);
        assert_eq!(script.endpoint.sender.ecn.mode(), mode, "{request:03b}");
        assert_eq!(fields(&mut script), [answer], "{request:03b}");
    }
}

#[test]
fn the_last_ack_of_the_handshake_reflects_the_answer() {
    // Table 3; the counter begins at 5, at 6 if the SYN-ACK was marked.
    for (arrived, field, counter) in
        [(Ecn::NotEct, 0b010, 5), (Ecn::Ect1, 0b011, 5), (Ecn::Ect0, 0b100, 5), (Ecn::Ce, 0b110, 6)]
    {
        let mut script = opened(arrived);
        script.write(1000);
        assert_eq!(fields(&mut script), [0b111, field, counter], "{arrived:?}");
    }
}

#[test]
fn the_first_ack_is_checked() {
    // Table 4, as a server whose SYN-ACK was not ECT. Zero means that somebody clears the field;
    // ECT and CE cannot have come of Not-ECT; what no table has is let pass.
    for (field, usable) in [
        (0b000, false),
        (0b010, true),
        (0b011, false),
        (0b100, false),
        (0b110, false),
        (0b001, true),
        (0b101, true),
        (0b111, true),
    ] {
        let mut script = accepted(field);
        assert_eq!(script.endpoint.sender.ecn.is_usable(), usable, "{field:03b}");
        script.write(1000);
        let (_, data, codepoint) = script.segments()[0];
        assert_eq!((data.flags.ace(), codepoint == Ecn::Ect0), (5, usable), "it still reports");
    }
}

#[test]
fn a_syn_asks_twice_and_then_no_more() {
    // Section 3.1.4.1; data is not ECT then, but what arrives is reported.
    let mut script = Script::new(accurate());
    script.endpoint.connect();
    script.pump();
    script.wait(4 * RTO);
    assert_eq!(fields(&mut script), [0b111, 0b111, 0]);
    let answer = script.segment(Flags::SYN | Flags::ACK | ace(0b010), 0, 0, 1);
    script.input(answer);
    assert_eq!(
        (script.endpoint.sender.ecn.mode(), script.endpoint.sender.ecn.is_usable()),
        (EcnFeedback::Accurate, false)
    );
    let data = script.segment(Flags::ACK | ace(5), 1, 1000, 1);
    script.input_marked(data, Ecn::Ce);
    assert_eq!(fields(&mut script), [0b010, 6]);
}

#[test]
fn an_answer_agrees_twice_and_then_no_more() {
    // Section 3.2.3.2.2, Linux tcp_accecn_multiple_syn_ack_drop: the mode stays. Section 3.1.5:
    // nothing is ECT any more.
    let mut script = Script::new(accurate());
    script.endpoint.listen();
    script.input(script.syn(Flags::SYN));
    script.wait(4 * RTO);
    assert_eq!(fields(&mut script), [0b010, 0b010, 0]);
    assert_eq!(
        (script.endpoint.sender.ecn.mode(), script.endpoint.sender.ecn.is_usable()),
        (EcnFeedback::Accurate, false)
    );
}

#[test]
fn a_second_syn_may_withdraw_ect_but_not_the_mode() {
    // Linux tcp_accecn_accecn_then_notecn_syn: the answer reflects the SYN that came last.
    let mut script = Script::new(accurate());
    script.endpoint.listen();
    script.input_marked(script.syn(Flags::SYN), Ecn::Ect0);
    let again = script.segment(Flags::SYN, 0, 0, 0);
    script.input(again);
    assert_eq!(fields(&mut script), [0b100, 0b010]);
    assert_eq!(
        (script.endpoint.sender.ecn.mode(), script.endpoint.sender.ecn.is_usable()),
        (EcnFeedback::Accurate, false)
    );
}

#[test]
fn marks_are_counted_modulo_8() {
    let mut script = accepted(0b010);
    script.segments();
    let mut last = vec![];
    for index in 0..10 {
        let data = script.segment(Flags::ACK | ace(5), 1 + 1000 * index, 1000, 1);
        script.input_marked(data, Ecn::Ce);
        last.extend(fields(&mut script));
    }
    // The first mark is answered at once, and then every second segment: 6; 5 + 3, 5 + 5, ...
    // modulo 8.
    assert_eq!(last, [6, 0, 2, 4, 6]);
    script.wait(40);
    assert_eq!(fields(&mut script), [7], "5 + 10 = 15");
}

#[test]
fn acks_without_data_are_answered_after_three_marks() {
    let mut script = accepted(0b010);
    script.write(10_000);
    script.segments();
    for (index, answers) in [(1, 0), (2, 0), (3, 1), (4, 0)] {
        let ack = script.segment(Flags::ACK | ace(5), 1, 0, 1 + 1000 * index);
        script.input_marked(ack, Ecn::Ce);
        let bare = script.segments().iter().filter(|(_, segment, _)| segment.payload.len == 0).count();
        assert_eq!(bare, answers, "mark {index}");
    }
}

#[test]
fn two_marks_are_answered_while_data_waits() {
    // Section 3.2.2.5.1: n is 2 if there is unacknowledged data at the receiver.
    let mut script = accepted(0b010);
    script.write(10_000);
    script.segments();
    let data = script.segment(Flags::ACK | ace(5), 1, 1000, 1);
    script.input(data);
    assert_eq!(script.segments().len(), 0, "its ACK is delayed");
    for (index, answers) in [(1, vec![]), (2, vec![7])] {
        let ack = script.segment(Flags::ACK | ace(5), 1001, 0, 1 + 1000 * index);
        script.input_marked(ack, Ecn::Ce);
        assert_eq!(fields(&mut script), answers, "mark {index}");
    }
}

#[test]
fn marks_begin_after_any_packet_without() {
    // Section 3.2.2.5.1: what triggers is a data packet, what it is compared with the packet
    // before, of whatever kind.
    let mut script = accepted(0b010);
    script.write(10_000);
    script.segments();
    let marked = |script: &mut Script, index: u64| {
        let data = script.segment(Flags::ACK | ace(5), 1 + 1000 * index, 1000, 1);
        script.input_marked(data, Ecn::Ce);
        fields(script)
    };
    assert_eq!(marked(&mut script, 0), [6], "the first");
    assert_eq!(marked(&mut script, 1), [0; 0], "one more");
    assert_eq!(marked(&mut script, 2), [0], "two more");
    let bare = script.segment(Flags::ACK | ace(5), 3001, 0, 1);
    script.input(bare);
    script.segments();
    assert_eq!(marked(&mut script, 3), [1], "they begin anew");
}

#[test]
fn reports_are_heeded_though_nothing_is_ect() {
    // Sections 3.1.5 and 3.2.2.3: after mangling the sender still responds. Table 4, note 1: not if
    // the field was zero.
    for (field, reduced) in [(0b100, true), (0b000, false)] {
        let mut script = accepted(field);
        script.write(10_000);
        assert!(script.segments().iter().all(|(_, _, codepoint)| *codepoint == Ecn::NotEct));
        let before = script.endpoint.sender().congestion_control().window().cwnd;
        let ack = script.segment(Flags::ACK | ace(6), 1, 0, 1001);
        script.input(ack);
        let after = script.endpoint.sender().congestion_control().window().cwnd;
        assert_eq!(after == before / 2, reduced, "{field:03b}");
    }
}

#[test]
fn the_safest_count_that_the_delivery_allows() {
    // Appendix A.2.1: dSafer = packets - (packets - d) mod 8.
    for (packets, moved, marks) in [
        (1, 0, 0),
        (1, 1, 1),
        (7, 3, 3),
        // 9 - (9 - 0) mod 8 = 8: Linux tcp_accecn_delivered_2ndlargeack.
        (9, 0, 8),
        (10, 2, 10),
        (10, 3, 3),
        (20, 3, 19),
        (8, 0, 8),
    ] {
        assert_eq!(safest_marks(packets, moved), marks, "{packets} packets, moved by {moved}");
    }
}

#[test]
fn acks_of_many_segments_are_taken_at_their_word() {
    // Linux's pkts_acked_ewma: the first ACK delivers ten, above 4: nothing was marked
    // (tcp_accecn_delivered_largeack), or 7.
    for (counter, marks) in [(5, 0), (4, 7)] {
        let mut script = accepted(0b010);
        script.write(10_000);
        script.segments();
        let segment = script.segment(Flags::ACK | ace(counter), 1, 0, 10_001);
        script.input(segment);
        assert_eq!(script.endpoint.sender.ecn.marked_bytes(), marks * 1000);
    }
}

/// A peer whose counters have moved by so many bytes.
fn counters(e1: u32, ce: u32, e0: u32) -> Option<AccEcn> {
    Some(AccEcn::new(AccEcnOrder::One, |codepoint| match codepoint {
        Ecn::Ect1 => 1 + e1,
        Ecn::Ce => ce,
        _ => 1 + e0,
    }))
}

/// An endpoint like that of [`accepted`], with Accurate ECN by these rules; the last ACK of the
/// handshake has an option.
fn accepted_with(acc_ecn: AccEcnRules) -> Script {
    let transfer = TransferRules { acc_ecn, ..TransferRules::default() };
    let initial_window = InitialWindow::Segments(60);
    let mut script = Script::new(Config { transfer, initial_window, ..accurate() });
    script.endpoint.listen();
    script.input(script.syn(Flags::SYN));
    script.segments();
    let ack = script.segment(Flags::ACK | ace(0b010), 1, 0, 1);
    script.input(Segment { acc_ecn: counters(0, 0, 0), ..ack });
    script
}

fn full() -> AccEcnRules {
    AccEcnRules { option: AccEcnOption::Full, ..AccEcnRules::default() }
}

#[test]
fn marked_bytes_tell_how_often_the_counter_has_wrapped() {
    // Linux __tcp_accecn_process. An ACK of one segment, ECT(0), and then one of `packets`, of
    // which the bytes of `marked` came with CE, and the counter has moved by `moved`.
    for (packets, marked, moved, marks) in [
        // Fewer than eight cannot have wrapped it.
        (7, 3, 3, 3),
        // No marked bytes: ACKs were marked, not data.
        (9, 0, 0, 0),
        (20, 0, 3, 3),
        // 9 - (9 - 1) mod 8 = 9. More bytes than one segment has: it wrapped; the bytes of one,
        // less than half of nine: not.
        (9, 9, 1, 9),
        (9, 1, 1, 1),
        // Two wraps are possible from 16 on: 10 of 32 is 2 modulo 8, ceil(10 * 32 / 32) = 10, of
        // which 8 are a wrap.
        (32, 10, 2, 10),
        (32, 26, 2, 26),
        (32, 2, 2, 2),
        // All were: the safest case, 32 - (32 - 0) mod 8.
        (32, 32, 0, 32),
    ] {
        let mut script = accepted_with(full());
        let segment = u64::from(script.endpoint.sender.full_payload());
        assert_eq!(segment, 1000 - 12, "the option takes 12 bytes");
        script.write(40 * segment);
        let ack = script.segment(Flags::ACK | ace(5), 1, 0, 1 + segment);
        script.input(Segment { acc_ecn: counters(0, 0, segment as u32), ..ack });
        let bytes = |segments: u64| (segments * segment) as u32;
        let ack = script.segment(Flags::ACK | ace(5 + moved), 1, 0, 1 + (1 + packets) * segment);
        script.input(Segment { acc_ecn: counters(0, bytes(marked), bytes(1 + packets - marked)), ..ack });
        let info = TcpInfo::of(&script.endpoint, script.now);
        assert_eq!(info.delivered_ce, marks, "{marked} of {packets}");
        let told = if marks > 0 { u64::from(bytes(marked)) } else { 0 };
        assert_eq!(script.endpoint.sender.ecn.marked_bytes(), told, "{marked} of {packets}");
    }
}

#[test]
fn controllers_hear_of_the_bytes_that_were_marked() {
    // One mark, on the small segment: without the option it counts as a full one.
    for (option, heard) in [(None, 1000), (counters(0, 88, 988), 88)] {
        let mut script = accepted_with(full());
        script.write(1076);
        let ack = script.segment(Flags::ACK | ace(6), 1, 0, 1077);
        script.input(Segment { acc_ecn: option, ..ack });
        assert_eq!(script.endpoint.sender.ecn.marked_bytes(), heard);
    }
}

#[test]
fn linux_has_all_packets_capable() {
    let mut script = accepted_with(AccEcnRules { rule: AccEcnRule::Linux, ..full() });
    let data = script.segment(Flags::ACK | ace(5), 1, 1000, 1);
    script.input_marked(data, Ecn::Ect0);
    script.endpoint.read(1000);
    script.write(100);
    script.endpoint.close(script.now);
    script.wait(1000);
    let sent = script.segments();
    assert!(
        sent.len() > 3
            && sent.iter().all(|(_, segment, codepoint)| { *codepoint == Ecn::Ect0 && segment.acc_ecn.is_some() }),
        "{sent:?}"
    );
}

#[test]
fn an_endpoint_without_the_option_takes_no_notice_of_it() {
    let mut script = accepted_with(AccEcnRules::default());
    script.write(1000);
    let ack = script.segment(Flags::ACK | ace(5), 1, 0, 989);
    script.input(Segment { acc_ecn: counters(0, 988, 0), ..ack });
    let info = TcpInfo::of(&script.endpoint, script.now);
    assert_eq!((info.delivered_ce, info.delivered_ce_bytes, info.accecn_opt_seen), (0, 0, 0));
    assert!(script.segments().iter().all(|(_, segment, _)| segment.acc_ecn.is_none()));
}

#[test]
fn the_syn_counts_among_what_an_ack_delivers_on_average() {
    // tcp_clean_rtx_queue counts it for who has opened the connection: (64 * 64 - 64 + 10 * 64) /
    // 64 = 73, less than 256.
    let mut script = opened(Ecn::NotEct);
    script.write(10_000);
    let segment = script.segment(Flags::ACK | ace(5), script.seq, 0, 10_001);
    script.input(segment);
    // 10 - (10 - 0) mod 8 = 8.
    assert_eq!(script.endpoint.sender.ecn.marked_bytes(), 8000);
}

#[test]
fn the_sender_reads_the_counter() {
    let mut script = opened(Ecn::NotEct);
    script.write(20_000);
    assert!(script.segments()[2..].iter().all(|(_, _, ecn)| *ecn == Ecn::Ect0));
    let mut ack = |counter: u8, ack: u64| {
        let segment = script.segment(Flags::ACK | ace(counter), script.seq, 0, ack);
        script.input(segment);
        (
            script.endpoint.sender.ecn.hears_marks(),
            script.endpoint.sender.ecn.marked_bytes(),
            script.endpoint.sender().stats().ece_acks,
        )
    };
    assert_eq!(ack(5, 2001), (false, 0, 0));
    assert_eq!(ack(7, 4001), (true, 2000, 1));
    // Through zero: 7 to 1 is two more.
    assert_eq!(ack(1, 7001), (true, 2000, 2));
    // An old ACK that was overtaken tells nothing, and does not move the counter back.
    assert_eq!(ack(7, 7001), (false, 0, 2));
    assert_eq!(ack(1, 8001), (false, 0, 2));
    // Ten segments that could have wrapped it: 10 - (10 - 2) mod 8 = 10 marks, of which eight more
    // than told.
    assert_eq!(ack(3, 18_001), (true, 10_000, 3));
}

#[test]
fn a_mark_reduces_the_window_and_cwr_is_not_sent() {
    let mut script = opened(Ecn::NotEct);
    script.write(40_000);
    let before = script.endpoint.sender().congestion_control().window().cwnd;
    let segment = script.segment(Flags::ACK | ace(6), script.seq, 0, 1001);
    script.input(segment);
    assert_eq!(script.endpoint.sender().congestion_control().window().cwnd, before / 2);
    script.segments();
    for ack in 2..15 {
        let segment = script.segment(Flags::ACK | ace(6), script.seq, 0, 1 + 1000 * ack);
        script.input(segment);
    }
    let sent = fields(&mut script);
    assert!(!sent.is_empty() && sent.iter().all(|&field| field == 5), "{sent:?}");
}

#[test]
fn a_scalable_controller_uses_ect_1_with_accurate_feedback_alone() {
    /// NewReno that wants to be marked as L4S.
    #[derive(Debug)]
    struct Scalable(NewReno);
    impl ackclock_cc::CongestionControl for Scalable {
        fn name(&self) -> &'static str {
            "scalable"
        }
        fn window(&self) -> ackclock_cc::Window {
            self.0.window()
        }
        fn needs(&self) -> Needs {
            Needs { ecn: ackclock_cc::EcnUse::Scalable, ..Needs::default() }
        }
        fn on_established(&mut self, f: &ackclock_cc::Flight) {
            self.0.on_established(f);
        }
        fn take_over(&mut self, window: ackclock_cc::Window) {
            self.0.take_over(window);
        }
        fn on_ack(&mut self, f: &ackclock_cc::Flight, ack: &ackclock_cc::Ack) -> ackclock_cc::Verdict {
            self.0.on_ack(f, ack)
        }
        fn on_signal(&mut self, f: &ackclock_cc::Flight, signal: ackclock_cc::Signal) {
            self.0.on_signal(f, signal);
        }
    }
    // The answer says that the SYN came with ECT(1), or agrees to classic ECN.
    for (answer, codepoints) in [(0b011, [Ecn::Ect1; 3]), (0b001, [Ecn::Ect1, Ecn::NotEct, Ecn::Ect0])] {
        let mut script = Script::controlled(accurate(), Box::new(Scalable(NewReno::new(NewRenoConfig::default()))));
        script.endpoint.connect();
        script.pump();
        let answer = script.segment(Flags::SYN | Flags::ACK | ace(answer), 0, 0, 1);
        script.input(answer);
        script.write(1000);
        let sent = script.segments();
        // Classic ECN lets the data carry the ACK only after the first.
        assert_eq!([sent[0].2, sent[1].2, sent[2].2], codepoints);
    }
}

#[test]
fn without_accurate_feedback_prague_leaves_window_and_pacing_to_the_endpoint() {
    // prague_init: plain Reno, so that PRR shapes the window and nothing is paced. 0b011: the SYN
    // came with ECT(1).
    for (answer, scalable) in [(0b011, true), (0b001, false), (0b000, false)] {
        let mut script = Script::controlled(accurate(), Box::new(Prague::new(PragueConfig::default())));
        script.endpoint.connect();
        script.pump();
        let (_, _, codepoint) = script.segments()[0];
        assert_eq!(codepoint, Ecn::Ect1, "before the answer it asks for all");
        script.wait(100);
        let answer_segment = script.segment(Flags::SYN | Flags::ACK | ace(answer), 0, 0, 1);
        script.input(answer_segment);
        let endpoint = &script.endpoint;
        assert_eq!(
            (endpoint.sender.loss.recovery.whole_control(), endpoint.sender.pacer.is_on()),
            (scalable, scalable),
            "{answer:03b}"
        );
        assert_eq!(endpoint.sender.observer.needs == Needs::default(), !scalable);
    }
}
