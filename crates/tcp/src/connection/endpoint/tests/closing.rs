//! Closing, in every order, and aborting.

use super::*;

/// The states on the way: established; closed by us, the FIN not acknowledged and acknowledged;
/// closed by the peer; by both at once; by the peer, then by us; both FINs acknowledged.
pub(super) const STATES: [State; 8] = [
    State::SynReceived,
    State::Established,
    State::FinWait1,
    State::FinWait2,
    State::CloseWait,
    State::Closing,
    State::LastAck,
    State::TimeWait,
];

/// An endpoint in this state; everything that was sent is forgotten, nothing but a FIN is
/// outstanding.
pub(super) fn in_state(state: State) -> Script {
    let mut script = match state {
        State::SynReceived => {
            let mut script = Script::new(config());
            script.endpoint.listen();
            script.input(script.syn(Flags::SYN));
            script
        }
        _ => Script::open(config()),
    };
    let peer_fin = |script: &mut Script, ack| {
        let fin = script.segment(Flags::FIN | Flags::ACK, 1, 0, ack);
        script.seq = 2;
        script.input(fin);
    };
    match state {
        State::FinWait1 => script.close(),
        State::FinWait2 => {
            script.close();
            script.ack(2);
        }
        State::CloseWait => peer_fin(&mut script, 1),
        State::Closing => {
            script.close();
            peer_fin(&mut script, 1);
        }
        State::LastAck => {
            peer_fin(&mut script, 1);
            script.close();
        }
        State::TimeWait => {
            script.close();
            peer_fin(&mut script, 2);
        }
        _ => {}
    }
    assert_eq!(script.endpoint.state(), state);
    script.segments();
    script
}

#[test]
fn we_close_first() {
    // RFC 9293 figure 12.
    let mut script = Script::open(config());
    script.close();
    assert_eq!((script.sent(), script.endpoint.state()), (vec!["F. 1:2 ack 1".into()], State::FinWait1));
    script.ack(2);
    assert_eq!(script.endpoint.state(), State::FinWait2);
    script.peer_segment(Flags::FIN, 1, 0);
    assert_eq!((script.sent(), script.endpoint.state()), (vec![". 2:2 ack 2".into()], State::TimeWait));
    assert!(script.endpoint.is_finished());
    script.wait(59_999);
    assert_eq!(script.endpoint.state(), State::TimeWait);
    script.wait(1);
    assert_eq!((script.endpoint.state(), script.endpoint.error()), (State::Closed, None));
    assert!(script.endpoint.is_finished());
}

#[test]
fn the_peer_closes_first() {
    let mut script = Script::open(config());
    script.peer_segment(Flags::FIN, 1, 0);
    assert_eq!((script.sent(), script.endpoint.state()), (vec![". 1:1 ack 2".into()], State::CloseWait));
    script.close();
    assert_eq!((script.sent(), script.endpoint.state()), (vec!["F. 1:2 ack 2".into()], State::LastAck));
    assert!(!script.endpoint.is_finished());
    script.ack(2);
    assert_eq!((script.endpoint.state(), script.endpoint.is_finished()), (State::Closed, true));
}

#[test]
fn both_close_at_once() {
    // RFC 9293 figure 13.
    let mut script = in_state(State::Closing);
    script.ack(2);
    assert_eq!(script.endpoint.state(), State::TimeWait);
}

#[test]
fn a_fin_that_acknowledges_ours() {
    let mut script = in_state(State::FinWait1);
    script.peer_segment(Flags::FIN, 1, 0);
    assert_eq!((script.sent(), script.endpoint.state()), (vec![". 2:2 ack 2".into()], State::TimeWait));
}

#[test]
fn the_fin_rides_on_the_last_data() {
    let mut script = Script::new(config());
    script.endpoint.connect();
    script.pump();
    script.endpoint.write(1500);
    script.input(Segment { window: 1000, ..script.syn(Flags::SYN | Flags::ACK) });
    script.close();
    script.ack(1001);
    assert_eq!(script.sent()[1..], [". 1:1001 ack 1", "F. 1001:1502 ack 1"]);
}

#[test]
fn a_half_closed_connection_still_receives() {
    let mut script = in_state(State::FinWait2);
    script.peer_data(1, 500);
    assert_eq!(script.endpoint.receiver().delivered(), 500);
    script.peer_segment(Flags::FIN, 501, 500);
    assert_eq!((script.endpoint.receiver().delivered(), script.endpoint.state()), (1000, State::TimeWait));
}

#[test]
fn a_half_closed_connection_still_sends() {
    let mut script = in_state(State::CloseWait);
    script.write(500);
    script.close();
    assert_eq!(script.data(), [(1, 501), (501, 502)]);
}

#[test]
fn a_lost_fin_is_retransmitted() {
    let mut script = in_state(State::FinWait1);
    script.wait(RTO);
    assert_eq!(script.sent(), ["F. 1:2 ack 1"]);
}

#[test]
fn a_fin_counts_when_all_before_it_has_arrived() {
    let mut script = Script::open(config());
    script.peer_segment(Flags::FIN, 501, 500);
    assert_eq!((script.endpoint.state(), script.endpoint.receiver().is_finished()), (State::Established, false));
    script.peer_data(1, 500);
    assert_eq!((script.endpoint.state(), script.endpoint.receiver().is_finished()), (State::CloseWait, true));
    assert_eq!(script.sent().last().unwrap(), ". 1:1 ack 1002");
}

#[test]
fn nothing_is_received_after_a_fin() {
    let mut script = in_state(State::CloseWait);
    script.peer_data(2, 500);
    assert_eq!(script.endpoint.receiver().delivered(), 0);
    assert_eq!(script.sent(), [". 1:1 ack 2"]);
}

#[test]
fn a_fin_again_is_acknowledged_and_starts_the_wait_anew() {
    // RFC 9293 section 3.10.7.4, eighth check, TIME-WAIT.
    let mut script = in_state(State::TimeWait);
    script.wait(50_000);
    let fin = script.segment(Flags::FIN | Flags::ACK, 1, 0, 2);
    script.input(fin);
    assert_eq!(script.sent(), [". 2:2 ack 2 sack 1:2"]);
    script.wait(59_999);
    assert_eq!(script.endpoint.state(), State::TimeWait);
    script.wait(1);
    assert_eq!(script.endpoint.state(), State::Closed);
}

#[test]
fn closing_an_unopened_connection_ends_it() {
    for active in [true, false] {
        let mut script = Script::new(config());
        if active {
            script.endpoint.connect();
        } else {
            script.endpoint.listen();
        };
        script.pump();
        script.close();
        assert_eq!((script.endpoint.state(), script.endpoint.error()), (State::Closed, None));
        assert!(!script.endpoint.is_finished(), "nothing was ever open");
        assert_eq!(script.endpoint.next_deadline(), Time::NEVER);
    }
}

#[test]
fn closing_during_the_handshake_waits_for_it() {
    // RFC 9293 section 3.10.4, SYN-RECEIVED.
    let mut script = in_state(State::SynReceived);
    script.close();
    assert_eq!(script.endpoint.state(), State::SynReceived);
    script.ack(1);
    assert_eq!((script.sent(), script.endpoint.state()), (vec!["F. 1:2 ack 1".into()], State::FinWait1));
}

#[test]
fn nothing_is_written_after_close() {
    let mut script = in_state(State::FinWait1);
    assert_eq!(script.endpoint.write(1), 0);
}

#[test]
fn an_abort_resets_an_open_connection() {
    // RFC 9293 section 3.10.5.
    for state in STATES {
        let mut script = in_state(state);
        let (seq, ack) = (script.endpoint.sender.sequence.nxt(), script.endpoint.receiver.next());
        script.endpoint.abort();
        script.pump();
        let expected = match state {
            State::TimeWait => vec![],
            _ => vec![format!("R. {seq}:{seq} ack {ack}")],
        };
        assert_eq!(script.sent(), expected, "{state:?}");
        assert_eq!((script.endpoint.state(), script.endpoint.error()), (State::Closed, Some(Error::Aborted)));
        assert!(!script.endpoint.is_finished());
    }
}

#[test]
fn a_closed_endpoint_resets_what_arrives() {
    // RFC 9293 section 3.10.7.1.
    let mut script = Script::new(config());
    script.input(script.segment(Flags::ACK, 5, 10, 77));
    script.input(script.segment(Flags::SYN, 5, 10, 0));
    script.input(script.segment(Flags::RST | Flags::ACK, 5, 0, 77));
    // The sequence number of the second is zero on the wire, 1500 after the initial one; it
    // acknowledges 5 + 1 + 10.
    assert_eq!(script.sent(), ["R 77:77", "R. 1500:1500 ack 16"]);
}
