//! DCTCP's feedback (RFC 8257 sections 3.2, 3.3 and 3.5).

use ackclock_cc::{Dctcp, DctcpConfig};

use super::*;

fn capable() -> Config {
    Config { ecn: EcnFeedback::Dctcp, initial_window: InitialWindow::Segments(10), ..config() }
}

fn script() -> Script {
    Script::controlled(capable(), Box::new(Dctcp::new(DctcpConfig::default())))
}

/// The acknowledgment number and ECE of what was sent since the last look.
fn acks(script: &mut Script) -> Vec<(u64, bool)> {
    let irs = script.endpoint.receiver.irs();
    let sent = script.segments();
    sent.iter()
        .map(|(_, segment, _)| (u64::from(segment.ack.wrapping_sub(irs)), segment.flags.contains(Flags::ECE)))
        .collect()
}

/// A segment of 1000 bytes arrives.
fn arrives(script: &mut Script, seq: u64, ecn: Ecn) {
    let segment = script.segment(Flags::ACK, seq, 1000, 1);
    script.input_marked(segment, ecn);
}

#[test]
fn a_change_of_marks_is_acknowledged_at_once_and_exactly() {
    // RFC 8257 figure 2, with an ACK for every second segment: 1 delayed; 2 changes, so 1 is
    // acknowledged without ECE and 2 with; 3 delayed, 4 makes two; 5 delayed; 6 changes back, so 5
    // is acknowledged with ECE and 6 without.
    let mut script = script().connected();
    let mut got = vec![];
    for (index, ecn) in [Ecn::Ect0, Ecn::Ce, Ecn::Ce, Ecn::Ce, Ecn::Ce, Ecn::Ect0].into_iter().enumerate() {
        arrives(&mut script, 1 + 1000 * index as u64, ecn);
        got.push(acks(&mut script));
    }
    let expected: [&[(u64, bool)]; 6] =
        [&[], &[(1001, false), (2001, true)], &[], &[(4001, true)], &[], &[(5001, true), (6001, false)]];
    assert_eq!(got, expected);
}

#[test]
fn a_change_with_nothing_owed_sends_one_ack() {
    let mut script = script().connected();
    arrives(&mut script, 1, Ecn::Ce);
    assert_eq!(acks(&mut script), [(1001, true)]);
    // The next one is delayed again, and CWR changes nothing: there is nothing to confirm.
    let segment = script.segment(Flags::ACK | Flags::CWR, 1001, 1000, 1);
    script.input_marked(segment, Ecn::Ce);
    assert_eq!(acks(&mut script), []);
    script.wait(40);
    assert_eq!(acks(&mut script), [(2001, true)]);
}

#[test]
fn every_packet_is_capable() {
    // RFC 8257 section 3.5 and Linux's TCP_CONG_NEEDS_ECN: SYN, ACKs, data, retransmissions; but a
    // SYN that is sent again (RFC 3168 section 6.1.1.1).
    let mut script = script();
    script.endpoint.connect();
    script.pump();
    let (_, syn, codepoint) = script.segments()[0];
    assert_eq!((syn.flags, codepoint), (Flags::SYN | Flags::ECE | Flags::CWR, Ecn::Ect0));
    script.wait(100);
    script.input(script.syn(Flags::SYN | Flags::ACK));
    script.write(1000);
    script.wait(RTO);
    let sent: Vec<_> = script.segments().iter().map(|(_, segment, ecn)| (segment.payload.len, *ecn)).collect();
    assert_eq!(sent, [(0, Ecn::Ect0), (1000, Ecn::Ect0), (1000, Ecn::Ect0)]);

    let mut script = self::script();
    script.endpoint.listen();
    script.input(script.syn(Flags::SYN));
    let (_, answer, codepoint) = script.segments()[0];
    assert_eq!((answer.flags, codepoint), (Flags::SYN | Flags::ACK | Flags::ECE, Ecn::Ect0));

    let mut script = self::script();
    script.endpoint.connect();
    script.pump();
    script.wait(RTO);
    let last = script.segments()[1];
    assert_eq!((last.1.flags, last.2), (Flags::SYN, Ecn::NotEct));
}

#[test]
fn a_peer_without_ecn_leaves_reno() {
    let mut script = script();
    script.endpoint.connect();
    script.pump();
    script.wait(100);
    let answer = script.segment(Flags::SYN | Flags::ACK, 0, 0, 1);
    script.input(answer);
    script.write(1000);
    assert!(script.segments()[1..].iter().all(|(_, _, ecn)| *ecn == Ecn::NotEct));
    assert_eq!(script.endpoint.sender.ecn.usable_feedback(), EcnFeedback::None);
}

#[test]
fn the_sender_reduces_by_the_share_of_marks() {
    // Ten segments in flight and alpha 1: an ACK of the first without ECE ends the first
    // observation, alpha = 15/16 = 960. ECE with the second: 10 segments and one that grew, 11000 *
    // (1 - 960/2048) = 5843.75.
    let mut script = script().connected();
    script.write(10_000);
    script.ack(1001);
    assert_eq!(script.endpoint.sender().congestion_control().window().cwnd, 11_000);
    let echo = script.segment(Flags::ACK | Flags::ECE, script.seq, 0, 2001);
    script.input(echo);
    // 11000 * 960 / 2048 = 5156.25 is taken off, rounded down.
    assert_eq!(script.endpoint.sender().congestion_control().window().cwnd, 11_000 - 5156);
    // Once per window of data.
    let echo = script.segment(Flags::ACK | Flags::ECE, script.seq, 0, 3001);
    script.input(echo);
    assert_eq!(script.endpoint.sender().congestion_control().window().cwnd, 11_000 - 5156);
    assert_eq!(script.endpoint.sender().stats().ece_acks, 2);
}
