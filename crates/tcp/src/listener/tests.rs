use ackclock_cc::{NewReno, NewRenoConfig};
use ackclock_packet::{FastOpen, Payload};
use ackclock_units::Span;
use proptest::prelude::*;

use super::*;
use crate::StateRules;

const PORT: u16 = 80;
/// The sequence numbers of children: 1000, 2000, ...
const STEP: u32 = 1000;

/// A listener, the time, and what was sent.
struct Server {
    listener: Listener,
    now: Time,
    sent: Vec<Segment>,
}

impl Server {
    fn new(backlog: usize, change: impl FnOnce(&mut StateRules)) -> Server {
        let mut config = Config { timestamps: false, window_scaling: false, ..Config::default() };
        change(&mut config.states);
        let mut drawn = 0;
        let numbers = move || {
            drawn += 1;
            Numbers { isn: drawn * STEP, ts_offset: 0 }
        };
        let make_cc = || -> Box<dyn CongestionControl> { Box::new(NewReno::new(NewRenoConfig::default())) };
        let listener = Listener::new(config, Box::new(make_cc), PORT, backlog, Box::new(numbers));
        Server { listener, now: Time::ZERO, sent: Vec::new() }
    }

    fn input(&mut self, segment: Segment) {
        self.listener.input(self.now, &segment, Ecn::NotEct);
        self.pump();
    }

    fn pump(&mut self) {
        let mut segment = Segment::default();
        while self.listener.transmit(self.now, &mut segment).is_some() {
            self.sent.push(segment);
        }
    }

    fn wait(&mut self, millis: u64) {
        let end = self.now + Span::from_millis(millis);
        while self.listener.next_deadline() <= end {
            self.now = self.listener.next_deadline();
            self.listener.on_deadline(self.now);
            self.pump();
        }
        self.now = end;
    }

    /// Port, flags and numbers of what was sent since the last look.
    fn sent(&mut self) -> Vec<String> {
        let described = |segment: &Segment| {
            assert_eq!(segment.source_port, PORT);
            format!("{}: {:?} {} {}", segment.destination_port, segment.flags, segment.seq, segment.ack)
        };
        std::mem::take(&mut self.sent).iter().map(described).collect()
    }

    /// The whole handshake with the client at `port`, whose child draws `isn`.
    fn establish(&mut self, port: u16, isn: u32) {
        self.input(syn(port));
        self.input(ack(port, isn + 1));
        self.sent.clear();
    }
}

/// From a client whose initial sequence number is a hundred times its port.
fn segment(port: u16, flags: Flags, seq: u32, ack: u32) -> Segment {
    Segment {
        source_port: port,
        destination_port: PORT,
        flags,
        seq: u32::from(port) * 100 + seq,
        ack,
        window: 65_535,
        ..Segment::default()
    }
}

fn syn(port: u16) -> Segment {
    Segment { mss: Some(1460), ..segment(port, Flags::SYN, 0, 0) }
}

fn ack(port: u16, ack: u32) -> Segment {
    segment(port, Flags::ACK, 1, ack)
}

#[test]
fn connections_are_accepted_in_the_order_in_which_they_complete() {
    let mut server = Server::new(5, |_| ());
    server.input(syn(1));
    server.input(syn(2));
    assert_eq!(server.sent(), ["1: S. 1000 101", "2: S. 2000 201"]);
    assert_eq!((server.listener.half_open(), server.listener.is_readable()), (2, false));
    server.input(ack(2, 2001));
    server.input(ack(1, 1001));
    assert_eq!((server.listener.half_open(), server.listener.ready()), (0, 2));
    let accepted: Vec<_> = std::iter::from_fn(|| server.listener.accept()).collect();
    let remotes: Vec<_> = accepted.iter().map(|child| (child.ports().remote, child.state())).collect();
    assert_eq!(remotes, [(2, State::Established), (1, State::Established)]);
    assert!(!server.listener.is_readable());
}

#[test]
fn what_a_listener_does_with_other_segments() {
    // RFC 9293 section 3.10.7.2.
    let mut server = Server::new(5, |_| ());
    server.input(segment(1, Flags::RST, 0, 0));
    server.input(segment(1, Flags::FIN, 0, 0));
    server.input(segment(1, Flags::NONE, 0, 0));
    assert!(server.sent().is_empty());
    server.input(segment(1, Flags::ACK, 0, 77));
    server.input(segment(1, Flags::SYN | Flags::ACK, 0, 78));
    server.input(segment(1, Flags::FIN | Flags::ACK, 0, 79));
    assert_eq!(server.sent(), ["1: R 77 0", "1: R 78 0", "1: R 79 0"]);
    assert_eq!(server.listener.half_open(), 0);
    // FreeBSD: a SYN with ACK is bogus there.
    let mut server = Server::new(5, |rules| rules.listen_drops_syn_ack = true);
    server.input(segment(1, Flags::SYN | Flags::ACK, 0, 78));
    assert!(server.sent().is_empty());
}

#[test]
fn data_and_fin_with_the_last_ack_wait_in_the_child() {
    let mut server = Server::new(5, |_| ());
    server.input(syn(1));
    server.input(Segment { payload: Payload { offset: 0, len: 10 }, ..segment(1, Flags::ACK | Flags::FIN, 1, 1001) });
    assert_eq!(server.sent(), ["1: S. 1000 101", "1: . 1001 112"]);
    let child = server.listener.accept().expect("complete");
    assert_eq!((child.receiver().unread(), child.state()), (10, State::CloseWait));
}

#[test]
fn children_that_wait_go_on_receiving() {
    let mut server = Server::new(5, |_| ());
    server.establish(1, 1000);
    server.input(Segment { payload: Payload { offset: 0, len: 10 }, ..ack(1, 1001) });
    server.wait(40);
    assert_eq!(server.sent(), ["1: . 1001 111"]);
    assert_eq!(server.listener.accept().map(|child| child.receiver().unread()), Some(10));
}

#[test]
fn the_answer_is_repeated_and_the_child_forgotten() {
    // Linux tcp_synack_retries = 5: 1, 2, 4, 8, 16, 32 s.
    let mut server = Server::new(5, |rules| rules.synack_retries = 5);
    server.input(syn(1));
    server.wait(62_999);
    assert_eq!((server.sent().len(), server.listener.half_open()), (6, 1));
    server.wait(1);
    assert_eq!((server.sent().len(), server.listener.half_open()), (0, 0));
    // The late ACK belongs to nobody.
    server.input(ack(1, 1001));
    assert_eq!(server.sent(), ["1: R 1001 0"]);
}

#[test]
fn a_syn_again_is_answered_again_and_a_bad_ack_reset() {
    let mut server = Server::new(5, |_| ());
    server.input(syn(1));
    server.input(syn(1));
    server.input(ack(1, 1005));
    assert_eq!(server.sent(), ["1: S. 1000 101", "1: S. 1000 101", "1: R 1005 0"]);
    assert_eq!(server.listener.half_open(), 1);
}

#[test]
fn resets_of_half_open_children() {
    // RFC 5961 section 3.2: exact, within the window, outside.
    for (seq, left, answers) in [(1, 0, 0), (2, 1, 1), (0, 1, 0), (65_536, 1, 0)] {
        let mut server = Server::new(5, |_| ());
        server.input(syn(1));
        server.sent();
        server.input(segment(1, Flags::RST, seq, 0));
        assert_eq!((server.listener.half_open(), server.sent().len()), (left, answers), "{seq}");
    }
}

#[test]
fn a_full_accept_queue_drops_or_resets() {
    // Linux: sk_ack_backlog > sk_max_ack_backlog, so that a backlog of 1 holds two; SYNs are
    // dropped then.
    let mut server = Server::new(1, |_| ());
    for port in 1..=3 {
        server.input(syn(port));
    }
    server.sent();
    for port in 1..=3 {
        server.input(ack(port, u32::from(port) * STEP + 1));
    }
    server.input(syn(4));
    assert_eq!((server.sent(), server.listener.ready(), server.listener.half_open()), (vec![], 2, 1));
    // There is room again when the answer has been sent again.
    assert!(server.listener.accept().is_some());
    server.wait(1000);
    assert_eq!(server.sent(), ["3: S. 3000 301"]);
    server.input(ack(3, 3001));
    assert_eq!(server.listener.ready(), 2);

    // FreeBSD: one and a half times the backlog, then a reset.
    let mut server = Server::new(1, |rules| rules.accept_overflow = AcceptOverflow::Reset);
    for port in 1..=3 {
        server.input(syn(port));
        server.input(ack(port, u32::from(port) * STEP + 1));
    }
    assert_eq!(server.sent()[2..], ["3: S. 3000 301", "3: R 3001 0"]);
    assert_eq!((server.listener.ready(), server.listener.half_open()), (2, 0));
}

#[test]
fn the_syn_queue_has_an_end() {
    let mut server = Server::new(5, |rules| rules.syn_queue = 2);
    for port in 1..=3 {
        server.input(syn(port));
    }
    assert_eq!((server.sent().len(), server.listener.half_open()), (2, 2));
}

#[test]
fn children_inherit_what_was_set_when_the_syn_arrived() {
    let mut server = Server::new(5, |_| ());
    server.input(syn(1));
    server.listener.config_mut().mss = 500;
    server.input(syn(2));
    let announced: Vec<_> = server.sent.iter().map(|segment| segment.mss).collect();
    assert_eq!(announced, [Some(1460), Some(500)]);
}

#[test]
fn closing_resets_complete_children_and_forgets_the_others() {
    // RFC 9293 section 3.10.4; Linux inet_csk_listen_stop, FreeBSD soclose of a listening socket.
    let mut server = Server::new(5, |_| ());
    server.establish(1, 1000);
    server.input(syn(2));
    server.sent();
    server.listener.close(server.now);
    server.pump();
    assert_eq!(server.sent(), ["1: R. 1001 101"]);
    server.input(ack(2, 2001));
    server.input(syn(3));
    assert_eq!(server.sent(), ["2: R 2001 0", "3: R. 0 301"]);
    assert_eq!(server.listener.next_deadline(), Time::NEVER);
}

#[test]
fn a_child_that_was_reset_can_be_accepted_and_its_port_used_again() {
    let mut server = Server::new(5, |_| ());
    server.establish(1, 1000);
    server.input(segment(1, Flags::RST, 1, 0));
    server.input(syn(1));
    assert_eq!(server.sent(), ["1: S. 2000 101"]);
    let child = server.listener.accept().expect("complete");
    assert_eq!((child.state(), child.error()), (State::Closed, Some(crate::Error::Reset)));
}

#[test]
fn a_syn_in_place_of_time_wait_gets_a_larger_number() {
    // RFC 1122 section 4.2.2.13 (1).
    let mut server = Server::new(5, |_| ());
    server.listener.input_reopening(server.now, &syn(1), Ecn::NotEct, 1 << 20);
    server.pump();
    assert_eq!(server.sent(), [format!("1: S. {} 101", (1 << 20) + STEP)]);
}

const COOKIE: [u8; 8] = *b"a cookie";

/// A SYN with the right cookie and a hundred bytes.
fn fast_syn(port: u16) -> Segment {
    let payload = Payload { offset: 0, len: 100 };
    Segment { fast_open: Some(FastOpen::new(&COOKIE)), payload, ..syn(port) }
}

fn fast_server(limit: usize) -> Server {
    let mut server = Server::new(8, |_| {});
    server.listener.set_fast_open(Some(FastOpenServer::with_cookie(FastOpen::new(&COOKIE), limit)));
    server
}

#[test]
fn a_child_that_its_syn_opened_can_be_accepted_and_read_at_once() {
    let mut server = fast_server(4);
    server.input(fast_syn(1));
    assert_eq!(server.sent(), ["1: S. 1000 201"]);
    assert_eq!((server.listener.half_open(), server.listener.ready()), (0, 1));
    let mut child = server.listener.accept().unwrap();
    assert!(child.opening().is_early() && child.opening().is_data_acknowledged());
    assert_eq!(child.read(1000), 100);
    child.input(server.now, &Segment { seq: 201, ..ack(1, 1001) }, Ecn::NotEct);
    assert_eq!((child.state(), child.opening().is_early()), (State::Established, false));
}

#[test]
fn another_controller_takes_over_before_the_last_ack() {
    let mut server = fast_server(4);
    server.input(fast_syn(1));
    let mut child = server.listener.accept().unwrap();
    let window = child.sender().cwnd();
    child.set_congestion_control(server.now, Box::new(NewReno::new(NewRenoConfig::default())));
    assert!(window > 0 && child.sender().cwnd() == window, "{} instead of {window}", child.sender().cwnd());
}

#[test]
fn only_so_many_children_wait_for_their_last_ack() {
    // RFC 7413 section 5.1.
    let mut server = fast_server(2);
    for port in 1..=3 {
        server.input(fast_syn(port));
    }
    // The third one is an ordinary SYN: its data is not acknowledged.
    assert_eq!(server.sent(), ["1: S. 1000 201", "2: S. 2000 301", "3: S. 3000 301"]);
    // The second one completes, wherever it is by then.
    let _first = server.listener.accept();
    let mut second = server.listener.accept().unwrap();
    second.input(server.now, &Segment { seq: 301, ..ack(2, 2001) }, Ecn::NotEct);
    server.input(fast_syn(4));
    assert_eq!(server.sent(), ["4: S. 4000 501"]);
}

#[test]
fn a_child_that_is_reset_once_it_was_accepted_counts_for_a_minute() {
    // RFC 7413 section 5.1; Linux `reqsk_fastopen_remove`.
    let reset = |port: u16| Segment { seq: 100 * u32::from(port) + 101, ..segment(port, Flags::RST, 0, 0) };
    let mut server = fast_server(1);
    server.input(fast_syn(1));
    // The place of a connection that is not accepted yet is free at once.
    server.input(reset(1));
    server.input(fast_syn(2));
    assert_eq!(server.sent(), ["1: S. 1000 201", "2: S. 2000 301"]);
    let _first = server.listener.accept();
    let mut second = server.listener.accept().unwrap();
    second.input(server.now, &reset(2), Ecn::NotEct);
    assert_eq!(second.state(), State::Closed);
    server.now += Span::from_millis(59_999);
    server.input(fast_syn(3));
    server.now += Span::from_millis(1);
    server.input(fast_syn(4));
    assert_eq!(server.sent(), ["3: S. 3000 301", "4: S. 4000 501"]);
}

#[test]
fn any_reset_within_the_window_ends_a_child_that_its_syn_opened() {
    // tcp_check_req knows no challenges.
    let mut server = fast_server(1);
    server.input(fast_syn(1));
    let outside = Segment { seq: 200, ..segment(1, Flags::RST, 0, 0) };
    server.input(outside);
    assert!(server.listener.has_child(&outside));
    let within = Segment { seq: 1000, ..outside };
    server.input(within);
    assert!(!server.listener.has_child(&within));
}

#[test]
fn nobodys_segments_are_reset() {
    // RFC 9293 section 3.10.7.1.
    let reset = reset_for(&Segment { payload: Payload { offset: 0, len: 3 }, ..segment(1, Flags::ACK, 17, 34) });
    let expected = Segment { source_port: PORT, destination_port: 1, seq: 34, flags: Flags::RST, ..Segment::default() };
    assert_eq!(reset, Some(expected));
    // SEG.SEQ + SEG.LEN: SYN and FIN count.
    let both = Flags::SYN | Flags::FIN;
    let reset = reset_for(&Segment { payload: Payload { offset: 0, len: 3 }, ..segment(1, both, 0, 0) });
    assert_eq!(reset.map(|reset| (reset.seq, reset.ack, reset.flags)), Some((0, 105, Flags::RST | Flags::ACK)));
    assert_eq!(reset_for(&segment(1, Flags::RST, 0, 0)), None);
}

#[derive(Clone, Debug)]
enum Call {
    Segment { port: u16, flags: u16, seq: u32, ack: u32, len: u32, mss: Option<u16> },
    Answer { port: u16 },
    Wait(u64),
    Accept,
    Reopen { port: u16, least: u32 },
    Backlog(usize),
    FastOpen { port: u16, len: u32, cookie: usize },
    Close,
}

fn any_call() -> impl Strategy<Value = Call> {
    let port = || 1u16..6;
    let number = || prop_oneof![4 => 0u32..3, 1 => any::<u32>()];
    let own = prop_oneof![3 => (1u32..8).prop_map(|n| n * STEP + 1), 1 => any::<u32>()];
    let flags = prop_oneof![4 => Just(Flags::SYN.bits()), 2 => Just(Flags::ACK.bits()), 1 => any::<u16>()];
    prop_oneof![
        10 => (port(), flags, number(), own, 0u32..100, any::<Option<u16>>())
            .prop_map(|(port, flags, seq, ack, len, mss)| Call::Segment { port, flags, seq, ack, len, mss }),
        8 => port().prop_map(|port| Call::Answer { port }),
        4 => prop_oneof![0u64..3000, 0u64..10_000_000].prop_map(Call::Wait),
        2 => Just(Call::Accept),
        1 => (port(), any::<u32>()).prop_map(|(port, least)| Call::Reopen { port, least }),
        1 => (0usize..4).prop_map(Call::Backlog),
        4 => (port(), 0u32..100, 0usize..10)
            .prop_map(|(port, len, cookie)| Call::FastOpen { port, len, cookie }),
        1 => Just(Call::Close),
    ]
}

proptest! {
    #[test]
    fn nothing_breaks_a_listener(
        backlog in 0usize..4,
        reset: bool,
        syn_queue in 0usize..4,
        calls in prop::collection::vec(any_call(), 1..80),
    ) {
        let mut server = Server::new(backlog, |rules| {
            rules.syn_queue = syn_queue;
            rules.accept_overflow = if reset { AcceptOverflow::Reset } else { AcceptOverflow::Drop };
        });
        let mut limit = backlog;
        server.listener.set_fast_open(Some(FastOpenServer::with_cookie(FastOpen::new(&COOKIE), 2)));
        for call in calls {
            match call {
                Call::Segment { port, flags, seq, ack, len, mss } => {
                    let payload = Payload { offset: 0, len };
                    server.input(Segment { payload, mss, ..segment(port, Flags::from_bits(flags), seq, ack) });
                }
                Call::Answer { port } => {
                    let answer = server.sent.iter().rev().find(|sent| {
                        sent.destination_port == port && sent.flags.contains(Flags::SYN)
                    });
                    if let Some(isn) = answer.map(|answer| answer.seq) {
                        server.input(ack(port, isn.wrapping_add(1)));
                    }
                }
                Call::FastOpen { port, len, cookie } => {
                    let fast_open = COOKIE.get(..cookie).map(FastOpen::new);
                    let payload = Payload { offset: 0, len };
                    server.input(Segment { fast_open, payload, ..syn(port) });
                }
                Call::Wait(millis) => server.wait(millis),
                Call::Accept => {
                    if let Some(child) = server.listener.accept() {
                        let open = child.state() != State::Listen && child.state() != State::SynReceived;
                        prop_assert!(open || child.opening().is_early());
                    }
                }
                Call::Reopen { port, least } => {
                    server.listener.input_reopening(server.now, &syn(port), Ecn::NotEct, least);
                    server.pump();
                }
                Call::Backlog(backlog) => {
                    limit = limit.max(backlog);
                    server.listener.set_backlog(backlog);
                }
                Call::Close => {
                    server.listener.close(server.now);
                    server.pump();
                }
            }
            prop_assert!(server.listener.ready() <= limit + limit / 2 + 1);
            prop_assert!(server.listener.next_deadline() > server.now, "a deadline in the past");
            prop_assert!(server.sent.len() < 10_000, "answers for ever");
        }
    }
}
