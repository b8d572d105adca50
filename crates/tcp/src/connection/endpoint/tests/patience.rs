//! The patience of an endpoint with a peer that does not answer: SYN, data, closed windows,
//! keep-alive, user timeout.

use super::*;
use crate::{GiveUp, KeepAlive, WindowProbe};

fn with_rules(change: impl FnOnce(&mut StateRules)) -> Config {
    let mut config = config();
    change(&mut config.states);
    config
}

fn seconds(script: &mut Script) -> Vec<u64> {
    script.segments().iter().map(|(at, ..)| at / 1000).collect()
}

#[test]
fn syns_of_linux() {
    // 1 + 2 + 4 + 8 + 16 + 32 + 64 = 127 s with six more SYNs.
    let mut script = Script::new(Config { max_rto: Span::from_secs(120), states: StateRules::linux(), ..config() });
    script.endpoint.connect();
    script.pump();
    script.wait(126_999);
    assert_eq!(seconds(&mut script), [0, 1, 3, 7, 15, 31, 63]);
    script.wait(1);
    assert_eq!(script.endpoint.take_error(), Some(Error::TimedOut));
}

#[test]
fn syns_of_freebsd() {
    // The slop of 200 ms is added to every timeout but the first; keepinit ends it after 75 s.
    let config = Config {
        rto_slop: Span::from_millis(200),
        max_rto: Span::from_secs(64),
        states: StateRules::freebsd(),
        ..config()
    };
    let mut script = Script::new(config);
    script.endpoint.connect();
    script.pump();
    script.wait(74_999);
    let times: Vec<_> = script.segments().iter().map(|(at, ..)| *at).collect();
    assert_eq!(times, [0, 1000, 3200, 7400, 15_600, 31_800, 64_000]);
    script.wait(1);
    assert_eq!((script.endpoint.take_error(), script.segments().len()), (Some(Error::TimedOut), 0));
}

#[test]
fn a_syn_without_options_after_some_with() {
    // FreeBSD rexmit_drop_options: from the third repetition on.
    let mut script = Script::new(with_rules(|rules| rules.drop_options_after = Some(3)));
    script.endpoint.connect();
    script.pump();
    script.wait(20_000);
    let options: Vec<_> = script.segments().iter().map(|(_, syn, _)| (syn.sack_permitted, syn.mss.is_some())).collect();
    assert_eq!(options, [(true, true), (true, true), (true, true), (false, true), (false, true)]);
}

#[test]
fn answers_to_a_syn_are_given_up() {
    // Linux tcp_synack_retries = 5: 1, 2, 4, 8, 16 s, and after 32 more the end.
    let mut script = Script::new(Config { states: StateRules::linux(), ..config() });
    script.endpoint.listen();
    script.input(script.syn(Flags::SYN));
    script.wait(62_999);
    assert_eq!(seconds(&mut script), [0, 1, 3, 7, 15, 31]);
    assert_eq!(script.endpoint.state(), State::SynReceived);
    script.wait(1);
    assert_eq!(script.endpoint.state(), State::Closed);
}

#[test]
fn data_is_given_up_by_the_time_of_a_model() {
    // tcp_model_timeout(15, 200 ms): ilog2(120 s / 200 ms) = 9, ((2 << 9) - 1) * 0.2 + 6 * 120 =
    // 924.6 s from the first retransmission on, looked at when the timer expires. The timeout is 1
    // s: 1, 3, 7, 15, 31, 63, 127, 247, ... 120 s apart; the first expiry at least 924.6 s after 1
    // s is 127 + 7 * 120 = 967.
    let config = Config { max_rto: Span::from_secs(120), states: StateRules::linux(), ..config() };
    let mut script = Script::open(config);
    script.write(1000);
    script.wait(966_999);
    assert_eq!(script.endpoint.state(), State::Established);
    script.wait(1);
    assert_eq!((script.endpoint.state(), script.endpoint.error()), (State::Closed, Some(Error::TimedOut)));
}

#[test]
fn an_orphan_is_given_up_sooner() {
    // tcp_orphan_retries: 8, ((2 << 8) - 1) * 0.2 = 102.2 s after the first retransmission at 1 s:
    // the expiry at 127 s.
    let config = Config { max_rto: Span::from_secs(120), states: StateRules::linux(), ..config() };
    let mut script = Script::open(config);
    script.write(1000);
    script.endpoint.close(script.now);
    script.pump();
    script.wait(126_999);
    assert_eq!(script.endpoint.state(), State::FinWait1);
    script.wait(1);
    assert_eq!(script.endpoint.state(), State::Closed);
}

#[test]
fn bsd_resets_what_it_gives_up() {
    let states = StateRules { reset_on_timeout: true, ..StateRules::default() };
    let mut script = Script::open(Config { max_retries: 2, states, ..config() });
    script.write(1000);
    script.segments();
    script.wait(7000);
    assert_eq!(script.sent(), [". 1:1001 ack 1", ". 1:1001 ack 1", "R. 1001:1001 ack 1"]);
}

#[test]
fn the_user_timeout_ends_retransmission() {
    // tcp_clamp_rto_to_user_timeout: the wait after the second retransmission (at 1 and 3 s) is cut
    // to 1 s + 5 s.
    let mut script = Script::open(with_rules(|rules| rules.give_up = GiveUp::ModelTime(Span::from_millis(200))));
    script.endpoint.set_option(SocketOption::UserTimeout(Some(Span::from_secs(5))));
    script.write(1000);
    script.segments();
    script.wait(5999);
    assert_eq!((seconds(&mut script), script.endpoint.state()), (vec![1, 3], State::Established));
    script.wait(1);
    assert_eq!(script.endpoint.take_error(), Some(Error::TimedOut));
}

#[test]
fn progress_starts_the_user_timeout_anew() {
    let mut script = Script::open(config());
    script.endpoint.set_option(SocketOption::UserTimeout(Some(Span::from_secs(5))));
    script.write(2000);
    script.wait(4000);
    script.ack(1001);
    script.wait(5500);
    assert_eq!(script.endpoint.state(), State::Established);
    script.wait(20_000);
    assert_eq!(script.endpoint.state(), State::Closed);
}

/// The window closes while data waits.
fn stopped(config: Config) -> Script {
    let mut script = Script::open_with(config, |script| script.window = 1000);
    script.write(3000);
    script.ack_window(1001, 0);
    script.segments();
    script
}

#[test]
fn an_empty_probe_of_a_closed_window() {
    // Linux tcp_xmit_probe_skb: SND.UNA - 1, no data; waits of RTO << n, anew from every answer.
    let mut script = stopped(with_rules(|rules| rules.window_probe = WindowProbe::Empty));
    script.wait(3000);
    assert_eq!(script.sent(), [". 1000:1000 ack 1", ". 1000:1000 ack 1"]);
    script.ack(1001);
    script.wait(3999);
    assert_eq!(script.sent(), Vec::<String>::new());
    script.wait(1);
    assert_eq!(script.sent(), [". 1000:1000 ack 1"]);
    script.ack_window(1001, 5000);
    assert_eq!(script.sent(), [". 1001:2001 ack 1", ". 2001:3001 ack 1"]);
}

#[test]
fn a_connection_lives_as_long_as_its_probes_are_answered() {
    // RFC 9293 section 3.8.6.1 (MUST-37).
    for window_probe in [WindowProbe::Empty, WindowProbe::Data] {
        let answered = |answers: bool| {
            let states = StateRules { window_probe, ..StateRules::default() };
            let mut script = stopped(Config { max_retries: 3, states, ..config() });
            for _ in 0..1000 {
                script.wait(1000);
                if answers && !script.segments().is_empty() {
                    script.ack(1001);
                }
            }
            script.endpoint.state()
        };
        assert_eq!(answered(true), State::Established, "{window_probe:?}");
        assert_eq!(answered(false), State::Closed, "{window_probe:?}");
    }
}

#[test]
fn the_user_timeout_ends_a_closed_window() {
    // Linux icsk_probes_tstamp: from the first probe, at 1 s, whether answered or not.
    let mut script = stopped(with_rules(|rules| rules.window_probe = WindowProbe::Empty));
    script.endpoint.set_option(SocketOption::UserTimeout(Some(Span::from_secs(10))));
    for _ in 0..10 {
        script.wait(1000);
        script.ack(1001);
    }
    assert_eq!(script.endpoint.state(), State::Established);
    script.wait(10_000);
    assert_eq!(script.endpoint.take_error(), Some(Error::TimedOut));
}

#[test]
fn an_orphan_does_not_probe_a_closed_window_for_ever() {
    // tcp_probe_timer: answered or not, it ends when the interval reaches TCP_RTO_MAX: here 1, 2,
    // 4, 8 and 10 s, the fifth being the end.
    let config = Config { max_rto: Span::from_secs(10), states: StateRules::linux(), ..config() };
    let mut script = stopped(config);
    script.endpoint.close(script.now);
    let mut probes = 0;
    for _ in 0..40 {
        script.wait(1000);
        if !script.segments().is_empty() {
            probes += 1;
            script.ack(1001);
        }
    }
    assert_eq!((probes, script.endpoint.state()), (4, State::Closed));
}

const KEEPALIVE: KeepAlive = KeepAlive { idle: Span::from_secs(100), interval: Span::from_secs(10), count: 3 };

#[test]
fn keep_alive_probes_and_the_end() {
    // RFC 9293 section 3.8.4: SND.NXT - 1, no data. Linux: three probes, ten seconds after the last
    // one a reset.
    let mut script = Script::open(config());
    script.endpoint.set_keepalive(script.now, Some(KEEPALIVE));
    script.wait(129_999);
    let times: Vec<_> = script.segments().iter().map(|(at, ..)| at - 100).collect();
    assert_eq!(times, [100_000, 110_000, 120_000]);
    script.wait(1);
    assert_eq!(script.sent(), ["R. 1:1 ack 1"]);
    assert_eq!(script.endpoint.take_error(), Some(Error::TimedOut));
}

#[test]
fn an_answer_stops_keep_alive_probes() {
    let mut script = Script::open(config());
    script.endpoint.set_keepalive(script.now, Some(KEEPALIVE));
    script.write(10);
    script.ack(11);
    script.segments();
    script.wait(115_000);
    assert_eq!(script.sent(), [". 10:10 ack 1", ". 10:10 ack 1"]);
    script.ack(11);
    script.wait(99_999);
    assert_eq!(script.sent(), Vec::<String>::new());
    script.wait(1);
    assert_eq!(script.sent(), [". 10:10 ack 1"]);
}

#[test]
fn keep_alive_is_silent_while_data_is_outstanding() {
    let states = StateRules { keepalive: Some(KEEPALIVE), ..StateRules::default() };
    let mut script = stopped(Config { states, ..config() });
    for _ in 0..500 {
        script.wait(1000);
        script.ack(1001);
    }
    // The window probe alone, which is data.
    assert!(script.data().iter().all(|&range| range == (1001, 1002)));
    assert_eq!(script.endpoint.state(), State::Established);
}

#[test]
fn the_user_timeout_takes_the_place_of_the_probe_count() {
    // Linux tcp_keepalive_timer.
    let mut script = Script::open(config());
    script.endpoint.set_keepalive(script.now, Some(KEEPALIVE));
    script.endpoint.set_option(SocketOption::UserTimeout(Some(Span::from_secs(150))));
    script.wait(149_999);
    assert_eq!(script.endpoint.state(), State::Established);
    script.wait(1);
    assert_eq!(script.endpoint.state(), State::Closed);
}
