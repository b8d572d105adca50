//! Acceptance of segments by the rules of each stack: windows, resets, SYNs, and the frequency of
//! answers to them (RFC 9293 section 3.10.7, RFC 5961).

use super::closing::{STATES, in_state};
use super::*;
use crate::{ChallengeLimit, SynFin, TimeWaitAnswers};

fn with_rules(state: State, change: impl FnOnce(&mut StateRules)) -> Script {
    let mut script = in_state(state);
    script.endpoint.configure(|config| change(&mut config.states));
    script
}

fn challenge(script: &Script) -> String {
    let nxt = script.endpoint.sender().sequence().nxt();
    format!(". {nxt}:{nxt} ack {}", script.endpoint.receiver.next())
}

#[test]
fn the_edges_of_the_window_for_resets() {
    // RFC 9293 section 3.10.7.4, first check: RCV.NXT =< SEG.SEQ < RCV.NXT + RCV.WND. The window is
    // 65,535 bytes, as a SYN announces them; the buffer holds more.
    for state in [State::SynReceived, State::Established] {
        let config = Config { receive_buffer: 65_535, ..config() };
        for (seq, answered) in [(0, false), (2, true), (65_535, true), (65_536, false)] {
            let mut script = if state == State::SynReceived {
                let mut script = Script::new(config.clone());
                script.endpoint.listen();
                script.input(script.syn(Flags::SYN));
                script.segments();
                script
            } else {
                Script::open(config.clone())
            };
            script.input(script.segment(Flags::RST, seq, 0, 0));
            let expected = if answered { vec![challenge(&script)] } else { vec![] };
            assert_eq!((script.sent(), script.endpoint.state()), (expected, state), "{seq}");
        }
    }
}

#[test]
fn insecure_resets_close_from_anywhere_within_the_window() {
    // RFC 793, before RFC 5961.
    for state in STATES.into_iter().filter(|&state| state != State::TimeWait) {
        let mut script = with_rules(state, |rules| rules.insecure_rst = true);
        script.input(script.segment(Flags::RST, script.seq + 100, 0, 0));
        assert_eq!((script.sent(), script.endpoint.state()), (vec![], State::Closed), "{state:?}");
    }
}

#[test]
fn insecure_syns_reset_both_ends() {
    for state in STATES.into_iter().filter(|&state| !matches!(state, State::TimeWait | State::SynReceived)) {
        let mut script = with_rules(state, |rules| rules.insecure_syn = true);
        let nxt = script.endpoint.sender().sequence().nxt();
        let (seq, expected) = (script.seq, vec![format!("R. {nxt}:{nxt} ack {}", script.seq)]);
        script.input(script.segment(Flags::SYN, seq, 0, 0));
        assert_eq!((script.sent(), script.endpoint.error()), (expected, Some(Error::Reset)), "{state:?}");
        // Outside of the window it is answered with an ACK as ever.
        let mut script = with_rules(state, |rules| rules.insecure_syn = true);
        script.input(script.segment(Flags::SYN, seq - 1, 0, 0));
        let expected = vec![challenge(&script)];
        assert_eq!((script.sent(), script.endpoint.state()), (expected, state), "{state:?}");
    }
}

#[test]
fn a_reset_with_the_number_of_the_fin_before_it() {
    // Linux tcp_reset_check: RCV.NXT - 1 in CLOSE-WAIT, LAST-ACK and CLOSING.
    for state in [State::CloseWait, State::LastAck, State::Closing, State::Established] {
        for reset_before_fin in [false, true] {
            let mut script = with_rules(state, |rules| rules.reset_before_fin = reset_before_fin);
            script.input(script.segment(Flags::RST, script.seq - 1, 0, 0));
            let closes = reset_before_fin && state != State::Established;
            assert_eq!(script.endpoint.state() == State::Closed, closes, "{state:?}");
        }
    }
}

#[test]
fn a_syn_with_another_number_ends_a_passive_handshake() {
    // RFC 9293 section 3.10.7.4, fourth check, SYN-RECEIVED: back to LISTEN.
    let mut script = in_state(State::SynReceived);
    script.input(script.segment(Flags::SYN, 100, 0, 0));
    assert_eq!((script.sent(), script.endpoint.state(), script.endpoint.error()), (vec![], State::Closed, None));
}

#[test]
fn segments_with_syn_and_fin() {
    for (syn_fin, expected) in
        [(SynFin::Accept, vec!["S. 0:1 ack 1"]), (SynFin::DropInListen, vec![]), (SynFin::Drop, vec![])]
    {
        let mut script = Script::new(config());
        script.endpoint.configure(|config| config.states.syn_fin = syn_fin);
        script.endpoint.listen();
        script.input(script.syn(Flags::SYN | Flags::FIN));
        assert_eq!(script.sent(), expected, "{syn_fin:?}");
    }
    // An open connection challenges them as SYNs, or drops them.
    for (syn_fin, answers) in [(SynFin::Accept, 1), (SynFin::DropInListen, 1), (SynFin::Drop, 0)] {
        let mut script = with_rules(State::Established, |rules| rules.syn_fin = syn_fin);
        script.input(script.segment(Flags::SYN | Flags::FIN, 1, 0, 0));
        assert_eq!((script.sent().len(), script.endpoint.state()), (answers, State::Established), "{syn_fin:?}");
    }
}

#[test]
fn data_with_the_answer_to_a_syn() {
    // RFC 9293 section 3.10.7.3, fifth step.
    for (syn_data, acked, bytes) in [(true, 4, 3), (false, 1, 0)] {
        let mut script = Script::new(config());
        script.endpoint.configure(|config| config.states.syn_data = syn_data);
        script.endpoint.connect();
        script.pump();
        let answer = Segment { payload: Payload { offset: 0, len: 3 }, ..script.syn(Flags::SYN | Flags::ACK) };
        script.input(answer);
        assert_eq!(script.sent()[1..], [format!(". 1:1 ack {acked}")]);
        assert_eq!(script.endpoint.receiver().unread(), bytes);
    }
}

#[test]
fn data_with_a_syn_that_crosses_ours_is_read_once_the_connection_is_open() {
    let mut script = Script::new(config());
    script.endpoint.connect();
    script.pump();
    script.input(Segment { payload: Payload { offset: 0, len: 3 }, ..script.syn(Flags::SYN) });
    assert_eq!((script.sent()[1..].to_vec(), script.endpoint.receiver().unread()), (vec!["S. 0:1 ack 1".into()], 0));
    script.input(script.segment(Flags::ACK, 4, 0, 1));
    assert_eq!((script.endpoint.state(), script.endpoint.receiver().unread()), (State::Established, 3));
    script.close();
    assert_eq!(script.sent(), ["F. 1:2 ack 4"]);
}

#[test]
fn a_syn_with_data_to_a_listener_loses_the_data() {
    let mut script = Script::new(config());
    script.endpoint.listen();
    script.input(Segment { payload: Payload { offset: 0, len: 3 }, ..script.syn(Flags::SYN) });
    assert_eq!(script.sent(), ["S. 0:1 ack 1"]);
}

#[test]
fn acks_for_what_was_not_sent() {
    // Linux: tcp_ack drops them in ESTABLISHED, tcp_rcv_state_process challenges them in other
    // states.
    for (state, answers) in [(State::Established, 0), (State::FinWait2, 1), (State::CloseWait, 1)] {
        let mut script = with_rules(state, |rules| rules.answer_unsent_ack = false);
        script.input(script.segment(Flags::ACK, script.seq, 0, 100));
        assert_eq!(script.sent().len(), answers, "{state:?}");
    }
}

#[test]
fn out_of_window_segments_without_data_are_answered_every_half_second() {
    // Linux tcp_invalid_ratelimit, which spares data.
    let mut script = with_rules(State::Established, |rules| rules.invalid_interval = Span::from_millis(500));
    script.peer_data(1, 100);
    script.wait(100);
    script.segments();
    let answers = |script: &mut Script, len| {
        script.input(script.segment(Flags::ACK, 1, len, 1));
        script.segments().len()
    };
    assert_eq!([answers(&mut script, 0), answers(&mut script, 0), answers(&mut script, 100)], [1, 0, 1]);
    script.wait(499);
    assert_eq!(answers(&mut script, 0), 0);
    script.wait(1);
    assert_eq!([answers(&mut script, 0), answers(&mut script, 0)], [1, 0]);
}

#[test]
fn challenges_are_limited() {
    // RFC 5961 section 7.
    let limit = ChallengeLimit { count: 5, interval: Span::from_secs(1) };
    let mut script = with_rules(State::Established, |rules| rules.challenge_limit = Some(limit));
    for expected in [5, 5] {
        for _ in 0..20 {
            script.input(script.segment(Flags::SYN, 1, 0, 0));
        }
        assert_eq!(script.sent().len(), expected);
        script.wait(1000);
    }
}

#[test]
fn a_keep_alive_of_the_peer_is_answered() {
    // RFC 9293 section 3.8.4: SEG.SEQ = SND.NXT - 1, with or without a byte.
    for len in [0, 1] {
        let mut script = Script::open(config());
        script.peer_data(1, 100);
        script.wait(100);
        script.segments();
        script.input(script.segment(Flags::ACK, 100, len, 1));
        assert_eq!(script.segments()[0].1.ack, script.segment(Flags::ACK, 101, 0, 1).seq);
    }
}

#[test]
fn the_fin_rides_on_acks_until_it_is_acknowledged() {
    // BSD's tcp_outflags; challenges leave it out.
    let mut script = with_rules(State::FinWait1, |rules| rules.fin_on_acks = true);
    script.peer_segment_acking(1);
    assert_eq!(script.sent(), ["F. 1:2 ack 2"]);
    script.input(script.segment(Flags::SYN, 2, 0, 0));
    assert_eq!(script.sent(), [". 2:2 ack 2"]);
    script.ack(2);
    assert_eq!(script.endpoint.state(), State::TimeWait);
}

impl Script {
    /// The peer's FIN, with an acknowledgment of its own.
    fn peer_segment_acking(&mut self, ack: u64) {
        let fin = self.segment(Flags::FIN | Flags::ACK, self.seq, 0, ack);
        self.seq += 1;
        self.input(fin);
    }
}

#[test]
fn time_wait_answers_all_but_a_bare_ack_in_its_place() {
    // Linux tcp_timewait_state_process and FreeBSD tcp_twcheck agree on these.
    for (flags, seq, len, answers) in [
        (Flags::ACK, 2, 0, 0),
        (Flags::ACK, 1, 0, 1),
        (Flags::ACK, 3, 0, 1),
        (Flags::ACK, 9 << 20, 0, 1),
        (Flags::ACK | Flags::FIN, 1, 0, 1),
        (Flags::ACK | Flags::FIN, 2, 0, 1),
        (Flags::ACK | Flags::FIN, 3, 0, 1),
        (Flags::ACK, 2, 10, 1),
        (Flags::SYN | Flags::ACK, 2, 0, 1),
        (Flags::FIN, 2, 0, 0),
    ] {
        let mut script = in_state(State::TimeWait);
        script.input(script.segment(flags, seq, len, 2));
        assert_eq!(script.sent().len(), answers, "{flags:?} {seq} {len}");
        assert_eq!(script.endpoint.state(), State::TimeWait);
    }
}

#[test]
fn time_wait_reports_no_duplicates_in_linux() {
    // tcp_v4_timewait_ack writes timestamps alone.
    for (time_wait_answers, blocks) in [(TimeWaitAnswers::Rfc5961, 1), (TimeWaitAnswers::Linux, 0)] {
        let mut script = with_rules(State::TimeWait, |rules| rules.time_wait_answers = time_wait_answers);
        script.segments();
        let fin = script.segment(Flags::FIN | Flags::ACK, script.seq - 1, 0, script.endpoint.sender().sequence().nxt());
        script.input(fin);
        let sent = script.segments();
        assert_eq!(sent.iter().map(|sent| sent.1.sack.as_slice().len()).collect::<Vec<_>>(), [blocks]);
    }
}

#[test]
fn a_reset_in_time_wait() {
    // RFC 1337 section 4: fix F1 ignores it.
    for (protect_time_wait, state) in [(false, State::Closed), (true, State::TimeWait)] {
        let mut script = with_rules(State::TimeWait, |rules| rules.protect_time_wait = protect_time_wait);
        script.input(script.segment(Flags::RST, 2, 0, 0));
        assert_eq!((script.sent(), script.endpoint.state()), (vec![], state));
    }
}

#[test]
fn which_resets_time_wait_answers() {
    for (time_wait_answers, answers) in
        [(TimeWaitAnswers::Rfc5961, 1), (TimeWaitAnswers::Linux, 0), (TimeWaitAnswers::FreeBsd, 0)]
    {
        let mut script = with_rules(State::TimeWait, |rules| rules.time_wait_answers = time_wait_answers);
        script.input(script.segment(Flags::RST, 100, 0, 0));
        assert_eq!((script.sent().len(), script.endpoint.state()), (answers, State::TimeWait));
    }
}

#[test]
fn an_old_syn_does_not_prolong_time_wait() {
    let mut script = in_state(State::TimeWait);
    script.wait(59_000);
    script.input(script.segment(Flags::SYN, 1, 0, 0));
    assert_eq!(script.sent(), [". 2:2 ack 2"]);
    script.wait(1000);
    assert_eq!(script.endpoint.state(), State::Closed);
    let mut script = with_rules(State::TimeWait, |rules| rules.time_wait_answers = TimeWaitAnswers::FreeBsd);
    script.input(script.segment(Flags::SYN, 1, 0, 0));
    assert_eq!(script.sent(), Vec::<String>::new());
}

#[test]
fn time_wait_yields_to_a_newer_syn() {
    // RFC 9293 section 3.6.1: a number beyond the last one.
    let script = in_state(State::TimeWait);
    let yields = |script: &Script, flags, seq| script.endpoint.yields_to(&script.segment(flags, seq, 0, 2)).is_some();
    assert_eq!([1, 2, 3].map(|seq| yields(&script, Flags::SYN, seq)), [false, false, true]);
    assert!(!yields(&script, Flags::SYN | Flags::ACK, 3) && !yields(&script, Flags::SYN | Flags::RST, 3));
    let stubborn = with_rules(State::TimeWait, |rules| rules.reopen_time_wait = false);
    assert!(!yields(&stubborn, Flags::SYN, 3));
    assert!(!yields(&in_state(State::FinWait2), Flags::SYN, 3));
}

#[test]
fn a_newer_timestamp_opens_whatever_the_number() {
    // RFC 6191 section 2.
    let mut script = Script::open(Config { timestamps: true, ..config() });
    script.close();
    script.peer_segment(Flags::FIN, 1, 0);
    let last = script.timestamps();
    for (late, seq, expected) in [(1, 1, true), (0, 1, false), (0, 3, true), (-1, 3, false)] {
        let timestamps = Timestamps { value: last.value.wrapping_add_signed(late), ..last };
        let syn = Segment { timestamps: Some(timestamps), ..script.segment(Flags::SYN, seq, 0, 0) };
        assert_eq!(script.endpoint.yields_to(&syn).is_some(), expected, "{late} {seq}");
    }
}
