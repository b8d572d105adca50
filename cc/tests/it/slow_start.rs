//! Slow start on a path with a queue: where each of the rules leaves it.

use std::collections::VecDeque;

use ackclock_cc::{
    Ack, CongestionControl, Cubic, CubicConfig, Dctcp, DctcpConfig, Flight, Htcp, HtcpConfig, HystartConfig,
    HystartPlusPlusConfig, HystartRules, NewReno, NewRenoConfig, SlowStartRules, Verdict, Westwood, WestwoodConfig,
    Window,
};
use ackclock_units::{Span, Time};

const MSS: u64 = 1448;
/// A segment on a link of 12 Mbit/s.
const SERVICE: Span = Span::from_millis(1);
/// Without a queue. The path holds 40 segments.
const RTT: Span = Span::from_millis(40);
const PIPE: u64 = 40;

/// The course of slow start.
#[derive(Debug)]
struct Outcome {
    /// The threshold that was set without a loss, in segments.
    left_at: Option<u64>,
    /// Segments that found the queue full, until the first of them could be noticed.
    lost: u64,
    /// The longest queue, in segments.
    queue: u64,
}

/// A sender with data without end over a queue of `room` segments, until it has left slow start for
/// ten round trips, or all is acknowledged that was sent before a loss. Every segment has an ACK.
fn slow_start(cc: &mut dyn CongestionControl, room: u64) -> Outcome {
    let mut now = Time::ZERO;
    let (mut una, mut nxt) = (0, 0);
    // The times of sending and of the ACK, for every segment in flight.
    let mut flying: VecDeque<(Time, Time)> = VecDeque::new();
    let mut free_at = Time::ZERO;
    let mut srtt = None;
    let mut least = Span::MAX;
    let mut outcome = Outcome { left_at: None, lost: 0, queue: 0 };
    let mut over_at = Time::ZERO + Span::MAX;
    let flight = |now: Time, una: u64, nxt: u64, srtt: Option<Span>, least: Span| Flight {
        now,
        mss: MSS as u32,
        in_flight: nxt - una,
        cwnd_limited: true,
        snd_una: una,
        snd_nxt: nxt,
        srtt,
        latest_rtt: srtt,
        min_rtt: srtt.map(|_| least),
        after_timeout: false,
        initial_window: 10 * MSS,
        paced: false,
        app_limited: false,
    };
    cc.on_established(&flight(now, 0, 0, None, least));
    while now < over_at {
        while nxt - una + MSS <= cc.window().cwnd {
            let waiting = free_at.since(now).as_nanos().div_ceil(SERVICE.as_nanos());
            nxt += MSS;
            if waiting > room {
                outcome.lost += 1;
                continue;
            }
            outcome.queue = outcome.queue.max(waiting);
            free_at = free_at.max(now) + SERVICE;
            if outcome.lost > 0 {
                continue;
            }
            flying.push_back((now, free_at + (RTT - SERVICE)));
        }
        let Some((sent, acked)) = flying.pop_front() else { break };
        now = acked;
        una += MSS;
        let rtt = now.since(sent);
        least = least.min(rtt);
        srtt = Some(srtt.map_or(rtt, |srtt: Span| srtt / 8 * 7 + rtt / 8));
        let ack = Ack { acked: MSS, delivered: MSS, rtt: Some(rtt), ..Ack::default() };
        assert_eq!(cc.on_ack(&flight(now, una, nxt, srtt, least), &ack), Verdict::Continue);
        if outcome.left_at.is_none() && cc.window().ssthresh < Window::INFINITE {
            outcome.left_at = Some(cc.window().ssthresh / MSS);
            over_at = now + RTT * 10;
        }
    }
    outcome
}

fn hystart(rules: HystartRules) -> SlowStartRules {
    SlowStartRules::Hystart(HystartConfig { rules, ..HystartConfig::default() })
}

fn plus_plus() -> SlowStartRules {
    SlowStartRules::HystartPlusPlus(HystartPlusPlusConfig::default())
}

/// Controllers with a slow start: those that have nothing but it to react to a queue.
fn controllers(rules: SlowStartRules) -> [Box<dyn CongestionControl>; 5] {
    let reno = NewRenoConfig { slow_start: rules, ..NewRenoConfig::default() };
    [
        Box::new(NewReno::new(reno)),
        Box::new(Cubic::new(CubicConfig { reno, ..CubicConfig::default() })),
        Box::new(Htcp::new(HtcpConfig { reno, ..HtcpConfig::default() })),
        Box::new(Westwood::new(WestwoodConfig { reno, ..WestwoodConfig::default() })),
        Box::new(Dctcp::new(DctcpConfig { reno, ..DctcpConfig::default() })),
    ]
}

#[test]
fn standard_slow_start_fills_any_queue() {
    for mut cc in controllers(SlowStartRules::Standard) {
        let outcome = slow_start(&mut *cc, 12 * PIPE);
        assert!(outcome.lost > 0 && outcome.left_at.is_none(), "{outcome:?}");
    }
}

#[test]
fn hystart_plus_plus_leaves_before_loss_on_a_deep_buffer() {
    // Rounds have 10, 18, 36, 72 and 144 ACKs. Up to the fourth the first segments of each found no
    // queue: 40 ms. The fifth begins with a window of 146 and a queue that stands since the window
    // became larger than the pipe: above 40 + 5 ms, and so CSS from its eighth ACK. 146 + 7 + 137 /
    // 4 = 187 segments, and after four more rounds of a quarter 187 * 1.25^4 = 456, of which 40 are
    // on their way and 416 in the queue.
    for mut cc in controllers(plus_plus()) {
        let outcome = slow_start(&mut *cc, 12 * PIPE);
        assert_eq!(outcome.lost, 0, "{outcome:?}");
        let left_at = outcome.left_at.expect("slow start is over");
        assert!((450..=456).contains(&left_at), "{outcome:?}");
        assert!((405..=430).contains(&outcome.queue), "{outcome:?}");
    }
}

#[test]
fn a_loss_in_conservative_slow_start_costs_less() {
    // With room for 200 segments both overflow the queue, with windows of 240. Until the loss can
    // be noticed the window of standard slow start doubles and that of CSS grows by a quarter.
    for (mut standard, mut plus_plus) in controllers(SlowStartRules::Standard).into_iter().zip(controllers(plus_plus()))
    {
        let (standard, outcome) = (slow_start(&mut *standard, 5 * PIPE), slow_start(&mut *plus_plus, 5 * PIPE));
        assert!(outcome.lost > 0 && outcome.left_at.is_none(), "{outcome:?}");
        assert!(format!("{plus_plus:?}").contains("css: Some"), "{plus_plus:?}");
        let quarter = standard.lost as f64 / outcome.lost as f64;
        assert!((3.5..4.5).contains(&quarter), "{standard:?} {outcome:?}");
    }
}

#[test]
fn hystart_leaves_at_the_pipe() {
    // A round whose least is 4 ms (3.9: a sixteenth, but at least 4 ms) or 5 ms (6.1: an eighth)
    // above the shortest, or a train of ACKs of more than half of it; it sets the threshold at
    // once, with no rounds in between.
    for rules in [HystartRules::Linux39, HystartRules::Linux61] {
        for mut cc in controllers(hystart(rules)) {
            let outcome = slow_start(&mut *cc, 4 * PIPE);
            assert_eq!(outcome.lost, 0, "{rules:?} {outcome:?}");
            let left_at = outcome.left_at.expect("slow start is over");
            assert!((PIPE / 2..=2 * PIPE).contains(&left_at), "{rules:?} {outcome:?}");
        }
    }
}
