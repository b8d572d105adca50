//! Segments that do not belong: resets, SYNs, ACKs and data out of place (RFC 9293 section
//! 3.10.7.4, RFC 5961).

use super::closing::{STATES, in_state};
use super::*;
use crate::stack::profile::Profile;

#[test]
fn an_exact_reset_closes_in_every_state() {
    // RFC 5961 section 3.2; RFC 9293 section 3.10.7.4, second check, for what the user is told.
    for state in STATES {
        let mut script = in_state(state);
        let reset = script.segment(Flags::RST, script.seq, 0, 0);
        script.input(reset);
        let error = match state {
            State::SynReceived => Some(Error::Refused),
            State::Closing | State::LastAck | State::TimeWait => None,
            _ => Some(Error::Reset),
        };
        assert_eq!((script.endpoint.state(), script.endpoint.error()), (State::Closed, error), "{state:?}");
        assert_eq!((script.sent(), script.endpoint.next_deadline()), (vec![], Time::NEVER));
    }
}

#[test]
fn a_reset_within_the_window_is_challenged() {
    // RFC 5961 section 3.2.
    for state in STATES {
        let mut script = in_state(state);
        let reset = script.segment(Flags::RST, script.seq + 100, 0, 0);
        script.input(reset);
        assert_eq!((script.endpoint.state(), script.sent().len()), (state, 1), "{state:?}");
    }
}

#[test]
fn a_reset_outside_of_the_window_is_ignored() {
    for state in STATES {
        let mut script = in_state(state);
        for seq in [script.seq.wrapping_sub(2), script.seq + (8 << 20)] {
            let reset = script.segment(Flags::RST, seq, 0, 0);
            script.input(reset);
        }
        assert_eq!((script.endpoint.state(), script.sent()), (state, vec![]), "{state:?}");
    }
}

#[test]
fn a_reset_that_loses_data_is_an_error_though_both_have_closed() {
    let mut script = Script::open(config());
    script.write(1000);
    let fin = script.segment(Flags::FIN | Flags::ACK, 1, 0, 1);
    script.input(fin);
    script.close();
    assert_eq!(script.endpoint.state(), State::LastAck);
    script.input(script.segment(Flags::RST, 2, 0, 0));
    assert_eq!((script.endpoint.error(), script.endpoint.is_finished()), (Some(Error::Reset), false));
}

#[test]
fn a_syn_is_challenged_in_every_synchronized_state() {
    // RFC 5961 section 4.2: wherever its sequence number lies.
    for state in STATES.into_iter().filter(|&state| state != State::SynReceived) {
        for seq in [0, 100, 9 << 20] {
            let mut script = in_state(state);
            let syn = script.segment(Flags::SYN, seq, 0, 0);
            script.input(syn);
            let (seq, ack) = (script.endpoint.sender.sequence.nxt(), script.endpoint.receiver.next());
            assert_eq!(script.sent(), [format!(". {seq}:{seq} ack {ack}")], "{state:?}");
            assert_eq!(script.endpoint.state(), state);
        }
    }
}

#[test]
fn an_ack_of_what_was_not_sent_is_answered_and_dropped() {
    // RFC 9293 section 3.10.7.4, fifth check: the segment's data with it.
    let mut script = Script::open(config());
    script.write(1000);
    script.segments();
    let segment = script.segment(Flags::ACK, 1, 100, 1002);
    let arrival = script.input(segment);
    assert_eq!((script.sent(), arrival), (vec![". 1001:1001 ack 1".into()], Acknowledgment::default()));
    assert_eq!(script.endpoint.receiver().delivered(), 0);
}

#[test]
fn an_ack_older_than_any_window_is_answered_and_dropped() {
    // RFC 5961 section 5.2: below SND.UNA - MAX.SND.WND.
    let mut script = Script::open_with(config(), |script| script.window = 1000);
    for i in 1..=3 {
        script.write(1000);
        script.ack(1 + 1000 * i);
    }
    script.segments();
    for (ack, delivered) in [(2000, 0), (2001, 100)] {
        let segment = script.segment(Flags::ACK, 1, 100, ack);
        script.input(segment);
        assert_eq!(script.endpoint.receiver().delivered(), delivered, "{ack}");
    }
}

#[test]
fn a_segment_without_ack_is_dropped() {
    let mut script = Script::open(config());
    let segment = script.segment(Flags::NONE, 1, 100, 0);
    script.input(segment);
    assert_eq!((script.endpoint.receiver().delivered(), script.sent()), (0, vec![]));
}

#[test]
fn a_segment_outside_of_the_window_is_answered() {
    // RFC 9293 section 3.10.7.4, first check.
    let mut script = Script::open(Config { receive_buffer: 5000, ..config() });
    for (seq, len) in [(5001, 100), (6000, 0), (5002, 0)] {
        let segment = script.segment(Flags::ACK, seq, len, 1);
        script.input(segment);
        assert_eq!(script.sent(), [". 1:1 ack 1"], "{seq}");
    }
}

#[test]
fn data_from_before_the_stream_is_answered() {
    let mut script = Script::open(config());
    let segment = Segment {
        seq: script.segment(Flags::ACK, 0, 0, 1).seq.wrapping_sub(100),
        ..script.segment(Flags::ACK, 1, 50, 1)
    };
    script.input(segment);
    assert_eq!((script.sent(), script.endpoint.receiver().delivered()), (vec![". 1:1 ack 1".into()], 0));
}

#[test]
fn an_old_segment_may_bring_a_new_ack() {
    let mut script = Script::open(config());
    script.peer_data(1, 100);
    script.write(1000);
    let old = script.segment(Flags::ACK, 1, 100, 1001);
    assert_eq!(script.input(old).acked, 1000);
    assert_eq!(script.sent().last().unwrap(), ". 1001:1001 ack 101 sack 1:101");
}

#[test]
fn a_segment_that_reaches_over_both_edges_is_cut() {
    let mut script = Script::open(Config { receive_buffer: 100, ..config() });
    script.peer_data(1, 50);
    let segment = script.segment(Flags::ACK, 11, 500, 1);
    script.input(segment);
    assert_eq!(script.endpoint.receiver().delivered(), 100);
}

#[test]
fn a_payload_of_another_place_is_an_integrity_error() {
    let mut script = Script::open(config());
    script.peer_data(1, 100);
    let good = script.segment(Flags::ACK, 101, 100, 1);
    let bad = Segment { payload: Payload { offset: 101, len: 100 }, ..good };
    assert_eq!(script.endpoint.receiver().integrity_error(), None);
    script.input(bad);
    assert_eq!(script.endpoint.receiver().integrity_error(), Some(100));
}

#[test]
fn a_second_fin_elsewhere_is_ignored() {
    let mut script = Script::open(config());
    script.peer_segment(Flags::FIN, 501, 500);
    script.peer_segment(Flags::FIN, 1, 100);
    script.peer_data(101, 2000);
    assert_eq!((script.endpoint.receiver().delivered(), script.endpoint.state()), (1000, State::CloseWait));
}

#[test]
fn an_mss_of_zero_is_taken_for_one() {
    for profile in Profile::all() {
        for config in [profile.endpoint.clone(), profile.socket()] {
            let mut script = Script::new(config);
            script.endpoint.listen();
            let syn = Segment { mss: Some(0), timestamps: None, ..script.syn(Flags::SYN) };
            script.input(syn);
            script.pump();
            script.ack(1);
            script.write(3);
            assert!(script.data().contains(&(1, 2)), "{}", profile.name);
        }
    }
}
