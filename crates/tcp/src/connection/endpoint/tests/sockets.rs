//! The calls of a socket: shutdown, close, linger, errors, readiness.

use super::closing::in_state;
use super::*;
use crate::{Readiness, Received, Sending};

fn with_rules(change: impl FnOnce(&mut StateRules)) -> Config {
    let mut config = config();
    change(&mut config.states);
    config
}

impl Script {
    fn close_socket(&mut self) {
        self.endpoint.close(self.now);
        self.pump();
    }

    fn shutdown(&mut self, how: Shutdown) {
        self.endpoint.shutdown(how);
        self.pump();
    }
}

#[test]
fn what_a_read_finds() {
    let mut script = Script::new(config());
    assert_eq!(script.endpoint.recv(10), Received::Failed(Error::NotConnected));
    let mut script = Script::open(config());
    assert_eq!(script.endpoint.recv(10), Received::WouldBlock);
    script.peer_segment(Flags::FIN, 1, 15);
    assert_eq!(script.endpoint.receiver().unread(), 15);
    assert_eq!(
        [10, 10, 10].map(|most| script.endpoint.recv(most)),
        [Received::Data(10), Received::Data(5), Received::EndOfFile]
    );
}

#[test]
fn a_reset_is_told_once() {
    // POSIX read(): ECONNRESET; SO_ERROR is cleared by reading it.
    let mut script = Script::open(config());
    script.peer_data(1, 5);
    script.input(script.segment(Flags::RST, 6, 0, 0));
    assert_eq!(
        [10, 10, 10].map(|most| script.endpoint.recv(most)),
        [Received::Data(5), Received::Failed(Error::Reset), Received::EndOfFile]
    );
    let mut script = Script::open(config());
    script.input(script.segment(Flags::RST, 1, 0, 0));
    assert_eq!((script.endpoint.take_error(), script.endpoint.take_error()), (Some(Error::Reset), None));
    assert_eq!((script.endpoint.error(), script.endpoint.state()), (Some(Error::Reset), State::Closed));
    assert_eq!(script.endpoint.send(1), Sending::Failed(Error::BrokenPipe));
}

#[test]
fn what_a_write_does() {
    let mut script = Script::new(Config { send_buffer: 1500, ..config() });
    script.endpoint.connect();
    assert_eq!(script.endpoint.send(10), Sending::WouldBlock);
    let mut script = Script::open(Config { send_buffer: 1500, ..config() });
    assert_eq!(
        [1000, 1000, 1000].map(|bytes| script.endpoint.send(bytes)),
        [Sending::Taken(1000), Sending::Taken(500), Sending::WouldBlock]
    );
    assert_eq!(
        (script.endpoint.sender().sequence().unsent(), script.endpoint.sender().sequence().unacknowledged()),
        (1500, 1500)
    );
    script.pump();
    assert_eq!(
        (script.endpoint.sender().sequence().unsent(), script.endpoint.sender().sequence().unacknowledged()),
        (0, 1500)
    );
    script.ack(1001);
    assert_eq!(
        (script.endpoint.sender().sequence().unsent(), script.endpoint.sender().sequence().unacknowledged()),
        (0, 500)
    );
    script.shutdown(Shutdown::Write);
    assert_eq!(script.endpoint.send(1), Sending::Failed(Error::BrokenPipe));
}

#[test]
fn a_half_close_leaves_the_other_half_open() {
    // RFC 9293 section 3.6.
    let mut script = Script::open(config());
    script.shutdown(Shutdown::Write);
    assert_eq!(script.sent(), ["F. 1:2 ack 1"]);
    script.peer_data(1, 100);
    assert_eq!(script.endpoint.recv(1000), Received::Data(100));
}

#[test]
fn what_arrives_after_the_reading_side_was_shut() {
    // Linux keeps it readable; FreeBSD throws it away (socantrcvmore); both acknowledge it.
    for (discard_unread, expected) in [(false, Received::Data(1000)), (true, Received::EndOfFile)] {
        let mut script = Script::open(with_rules(|rules| rules.discard_unread = discard_unread));
        script.shutdown(Shutdown::Read);
        assert_eq!(script.endpoint.recv(10), Received::EndOfFile);
        script.peer_data(1, 1000);
        script.wait(40);
        assert_eq!(script.sent(), [". 1:1 ack 1001"]);
        assert_eq!(script.endpoint.recv(2000), expected);
    }
}

#[test]
fn closing_with_data_unread_resets() {
    // RFC 2525 section 2.17.
    let mut script = Script::open(config());
    script.peer_data(1, 10);
    script.close_socket();
    assert_eq!((script.sent(), script.endpoint.state()), (vec!["R. 1:1 ack 11".into()], State::Closed));
    assert_eq!(script.endpoint.take_error(), None);
    let mut script = Script::open(with_rules(|rules| rules.reset_unread = false));
    script.peer_data(1, 10);
    script.close_socket();
    assert_eq!((script.sent(), script.endpoint.state()), (vec!["F. 1:2 ack 11".into()], State::FinWait1));
}

#[test]
fn data_after_close_resets() {
    // RFC 9293 section 3.6.1 (MUST of RFC 1122 section 4.2.2.13); the reset takes the number of the
    // segment's ACK.
    for acked in [1, 2] {
        let mut script = Script::open(config());
        script.close_socket();
        script.segments();
        script.input(script.segment(Flags::ACK, 1, 10, acked));
        assert_eq!(script.sent(), [format!("R {acked}:{acked}")]);
        assert_eq!(script.endpoint.state(), State::Closed);
    }
    // A FIN without data is no data, and neither is what was received before.
    let mut script = Script::open(config());
    script.peer_data(1, 10);
    script.read(10);
    script.close_socket();
    script.input(script.segment(Flags::ACK, 1, 10, 2));
    script.peer_segment(Flags::FIN, 11, 0);
    assert_eq!(script.endpoint.state(), State::TimeWait);
}

#[test]
fn data_after_a_shutdown_of_both_directions() {
    // tcp_rcv_state_process looks at RCV_SHUTDOWN; FreeBSD and RFC 9293 at whether the user has
    // closed.
    for (reset_after_shutdown, expected) in [(true, "R 2:2"), (false, ". 2:2 ack 11")] {
        let mut script = Script::open(with_rules(|rules| rules.reset_after_shutdown = reset_after_shutdown));
        script.shutdown(Shutdown::Both);
        script.ack(2);
        script.segments();
        script.input(script.segment(Flags::ACK, 1, 10, 2));
        script.wait(40);
        assert_eq!(script.sent(), [expected]);
    }
}

#[test]
fn a_linger_time_of_zero_resets() {
    let mut script = Script::open(config());
    script.endpoint.set_option(SocketOption::Linger(Some(Span::ZERO)));
    script.write(10);
    script.segments();
    script.close_socket();
    assert_eq!((script.sent(), script.endpoint.state()), (vec!["R. 11:11 ack 1".into()], State::Closed));
}

#[test]
fn a_lingering_close_waits_for_the_fin_to_be_acknowledged() {
    let mut script = Script::open(config());
    script.endpoint.set_option(SocketOption::Linger(Some(Span::from_secs(5))));
    script.write(10);
    script.close_socket();
    assert!(!script.endpoint.state().is_close_complete());
    script.ack(11);
    assert!(!script.endpoint.state().is_close_complete());
    script.ack(12);
    assert!(script.endpoint.state().is_close_complete());
}

#[test]
fn a_closed_connection_does_not_wait_for_ever_for_the_peers_fin() {
    let rules = || with_rules(|rules| rules.fin_wait_2_timeout = Some(Span::from_secs(60)));
    let mut script = Script::open(rules());
    script.close_socket();
    script.ack(2);
    script.wait(59_999);
    assert_eq!(script.endpoint.state(), State::FinWait2);
    script.wait(1);
    assert_eq!((script.endpoint.state(), script.endpoint.error()), (State::Closed, None));
    // Somebody who has shut the writing side only still listens; and may close later.
    let mut script = Script::open(rules());
    script.shutdown(Shutdown::Write);
    script.ack(2);
    script.wait(600_000);
    assert_eq!(script.endpoint.state(), State::FinWait2);
    script.close_socket();
    script.wait(60_000);
    assert_eq!(script.endpoint.state(), State::Closed);
}

#[test]
fn readiness_through_the_life_of_a_connection() {
    // tcp_poll.
    let none = Readiness::default();
    let mut script = Script::new(config());
    assert_eq!(script.endpoint.readiness(), Readiness { writable: true, hung_up: true, ..none });
    script.endpoint.connect();
    script.pump();
    assert_eq!(script.endpoint.readiness(), none);
    script.input(script.syn(Flags::SYN | Flags::ACK));
    let open = Readiness { writable: true, ..none };
    assert_eq!(script.endpoint.readiness(), open);
    script.peer_data(1, 10);
    assert_eq!(script.endpoint.readiness(), Readiness { readable: true, ..open });
    script.read(10);
    script.peer_segment(Flags::FIN, 11, 0);
    assert_eq!(script.endpoint.readiness(), Readiness { readable: true, read_closed: true, ..open });
    script.shutdown(Shutdown::Write);
    let over = Readiness { readable: true, writable: true, read_closed: true, hung_up: true, error: false };
    assert_eq!(script.endpoint.readiness(), over);
    script.ack(2);
    assert_eq!(script.endpoint.readiness(), over);
}

#[test]
fn another_congestion_controller_takes_the_window_over() {
    let cubic = || Box::new(ackclock_cc::Cubic::new(ackclock_cc::CubicConfig::default()));
    let mut script = Script::open(config());
    script.write(8000);
    script.ack(4001);
    let window = script.endpoint.sender().congestion_control().window();
    // Slow start by two segments for an ACK at most (RFC 3465, L = 2).
    assert_eq!((window.cwnd, script.endpoint.sender().congestion_control().name()), (6000, "newreno"));
    script.endpoint.set_congestion_control(script.now, cubic());
    let cc = script.endpoint.sender().congestion_control();
    assert_eq!((cc.window(), cc.name()), (window, "cubic"));
    // Before the handshake is over, the window is that of a new connection.
    let mut script = Script::new(config());
    script.endpoint.connect();
    script.endpoint.set_congestion_control(script.now, cubic());
    script.pump();
    script.input(script.syn(Flags::SYN | Flags::ACK));
    assert_eq!(script.endpoint.sender().cwnd(), 4000);
}

#[test]
fn readiness_after_a_refusal() {
    let mut script = Script::new(config());
    script.endpoint.connect();
    script.pump();
    script.input(script.segment(Flags::RST | Flags::ACK, 0, 0, 1));
    let over = Readiness { readable: true, writable: true, read_closed: true, hung_up: true, error: true };
    assert_eq!(script.endpoint.readiness(), over);
    assert_eq!(script.endpoint.take_error(), Some(Error::Refused));
    assert_eq!(script.endpoint.readiness(), Readiness { error: false, ..over });
}

#[test]
fn writable_again_when_a_third_of_the_buffer_is_free() {
    // sk_stream_is_writeable: free >= used / 2, that is used <= 2/3 of 3000.
    let mut script = Script::open(Config { send_buffer: 3000, ..config() });
    script.write(3000);
    assert!(!script.endpoint.readiness().writable);
    script.ack(901);
    assert!(!script.endpoint.readiness().writable);
    script.ack(1001);
    assert!(script.endpoint.readiness().writable);
}

#[test]
fn what_a_reset_is_to_the_application_in_each_state() {
    // RFC 9293 section 3.10.7.4, second check; tcp_reset; tcp_do_segment.
    let linux = StateRules::linux();
    let freebsd = StateRules::freebsd();
    for (state, of_linux, of_freebsd) in [
        (State::Established, Some(Error::Reset), Some(Error::Reset)),
        (State::FinWait1, Some(Error::Reset), Some(Error::Reset)),
        (State::FinWait2, Some(Error::Reset), Some(Error::Reset)),
        (State::CloseWait, Some(Error::BrokenPipe), Some(Error::Reset)),
        (State::Closing, Some(Error::Reset), Some(Error::Reset)),
        (State::LastAck, Some(Error::Reset), Some(Error::Reset)),
        (State::TimeWait, None, None),
    ] {
        for (rules, expected) in [(&linux, of_linux), (&freebsd, of_freebsd)] {
            let mut script = in_state(state);
            script.endpoint.configure(|config| config.states = rules.clone());
            script.input(script.segment(Flags::RST, script.seq, 0, 0));
            assert_eq!(script.endpoint.take_error(), expected, "{state:?}");
        }
    }
}

#[test]
fn closing_in_each_state_of_the_handshake() {
    let mut script = Script::new(config());
    script.endpoint.connect();
    script.pump();
    script.segments();
    script.close_socket();
    assert_eq!((script.sent(), script.endpoint.state()), (vec![], State::Closed));
    let mut script = in_state(State::SynReceived);
    script.close_socket();
    script.ack(1);
    assert_eq!((script.sent(), script.endpoint.state()), (vec!["F. 1:2 ack 1".into()], State::FinWait1));
}
