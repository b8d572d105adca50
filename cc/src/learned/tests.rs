//! A learner by hand: intervals, actions, timeouts, and a controller beneath.

use std::sync::Arc;

use ackclock_units::{Span, Time};
use proptest::prelude::*;

use super::*;
use crate::{Cubic, CubicConfig};

const MSS: u64 = 1000;

fn flight(millis: u64) -> Flight {
    Flight {
        now: Time::from_millis(millis),
        mss: MSS as u32,
        in_flight: 5 * MSS,
        cwnd_limited: true,
        snd_una: 0,
        snd_nxt: 5 * MSS,
        srtt: Some(Span::from_millis(100)),
        latest_rtt: Some(Span::from_millis(120)),
        min_rtt: Some(Span::from_millis(80)),
        after_timeout: false,
        initial_window: 10 * MSS,
        paced: false,
        app_limited: false,
    }
}

fn arrival(delivered: u64, ce: u64) -> Arrival {
    Arrival { acked: delivered, delivered, ce, ..Arrival::default() }
}

fn lost(bytes: u32) -> Lost {
    Lost {
        seq: 0,
        bytes,
        total_delivered: 0,
        total_lost: 0,
        prior_delivered: 0,
        prior_lost: 0,
        in_flight_when_sent: 0,
        app_limited: false,
        selective_acks: true,
    }
}

fn learner(agent: Agent) -> Learner {
    learner_over(agent, None)
}

fn learner_over(agent: Agent, beneath: Option<Box<dyn CongestionControl>>) -> Learner {
    assert_eq!(agent.problem(), None);
    let mut learner = Learner::new(Arc::new(agent), beneath);
    learner.on_established(&flight(0));
    learner
}

fn windows() -> Agent {
    let law = Law { target: Target::Window, map: Map::Power { base: 2.0 }, limit: 2.0, bounds: [2.0, 100.0] };
    let observes = vec![Feature::plain(Measure::Throughput), Feature::scaled(Measure::LossRate, 2.0)];
    let decides = Decides::Every(Span::from_millis(100));
    Agent { number: 0, decides, laws: vec![law], headroom: None, observes, history: 2, beneath: None }
}

#[test]
fn an_interval_is_measured() {
    let mut learner = learner(windows());
    for (millis, bytes) in [(20, 3 * MSS), (60, 2 * MSS)] {
        learner.on_sent(&flight(millis), &Sent { seq: 0, bytes: bytes as u32 });
        let rtt = Some(Span::from_millis(100 + millis));
        let f = Flight { latest_rtt: rtt, ..flight(millis) };
        learner.on_arrival(&f, &Arrival { rtt, ..arrival(bytes, bytes / 5) });
    }
    learner.on_lost(&flight(60), &lost(1250));
    learner.end_interval(&flight(100));
    let of = |measure: Measure| learner.measures()[measure as usize];
    // 5000 bytes in 100 ms.
    assert_eq!(of(Measure::Throughput), 400e3);
    assert_eq!(of(Measure::SendRatio), 1.0);
    assert_eq!((of(Measure::LossRate), of(Measure::MarkRate)), (0.2, 0.2));
    assert!((of(Measure::Rtt) - 0.14).abs() < 1e-12 && (of(Measure::RttMin) - 0.12).abs() < 1e-12);
    // From 120 to 160 ms in an interval of 100 ms.
    assert!((of(Measure::LatencyInflation) - 0.4).abs() < 1e-12);
    assert_eq!((of(Measure::Cwnd), of(Measure::InFlight)), (10.0, 5.0));
    assert!((of(Measure::RttRatio) - 0.8).abs() < 1e-12);
    assert_eq!(of(Measure::Orca), (400e3 - 5.0 * 100e3) / 400e3);
    assert_eq!(learner.observation(), [0.0, 0.0, 400e3, 0.4]);
    // Nothing happens in the next one.
    learner.end_interval(&flight(200));
    assert_eq!(learner.observation(), [400e3, 0.4, 0.0, 0.0]);
    assert_eq!(learner.measures()[Measure::MaxThroughput as usize], 400e3);
}

#[test]
fn actions_alone_move_the_window() {
    let mut learner = learner(windows());
    assert_eq!(learner.window().cwnd, 10 * MSS);
    learner.act(&flight(100), &[1.0]);
    assert_eq!(learner.window().cwnd, 20 * MSS);
    let ack = Ack { acked: MSS, delivered: MSS, ..Ack::default() };
    assert_eq!(learner.on_ack(&flight(110), &ack), Verdict::Continue);
    learner.on_signal(&flight(120), Signal::Loss);
    learner.on_signal(&flight(120), Signal::Ecn);
    learner.on_signal(&flight(130), Signal::RecoveryEnd);
    learner.on_signal(&flight(140), Signal::IdleRestart);
    learner.act(&flight(150), &[f32::NAN]);
    assert_eq!(learner.window().cwnd, 20 * MSS);
    learner.act(&flight(200), &[-9.0]);
    assert_eq!(learner.window().cwnd, 5 * MSS);
}

#[test]
fn a_timeout_leaves_a_segment_until_the_next_decision() {
    let mut learner = learner(windows());
    let timeout = Signal::Timeout { repeated: false, kept: 2 * MSS };
    learner.on_signal(&flight(10), timeout);
    assert_eq!(learner.window().cwnd, 3 * MSS);
    learner.on_signal(&flight(20), Signal::Spurious);
    assert_eq!(learner.window().cwnd, 10 * MSS);
    learner.on_signal(&flight(30), Signal::Timeout { repeated: false, kept: 0 });
    learner.end_interval(&flight(100));
    assert_eq!(learner.measures()[Measure::Timeouts as usize], 2.0);
    learner.act(&flight(100), &[2.0]);
    assert_eq!(learner.window().cwnd, 4 * MSS);
    // The window before the decision does not come back.
    learner.on_signal(&flight(110), Signal::Spurious);
    assert_eq!(learner.window().cwnd, 4 * MSS);
}

#[test]
fn a_rate_brings_its_window() {
    let agent = Agent::default();
    let mut learner = learner(agent);
    // Ten segments in 100 ms.
    assert_eq!(learner.pacing_rate(&flight(0)).map(Rate::as_bps), Some(800_000));
    learner.act(&flight(100), &[1.0]);
    let rate = learner.pacing_rate(&flight(100)).map(Rate::as_bps);
    assert!(rate.is_some_and(|rate| rate.abs_diff(820_000) <= 1), "{rate:?}");
    assert!(learner.window().cwnd.abs_diff(20_500) <= 1);
    assert_eq!(learner.name(), "external");
}

#[test]
fn a_policy_has_an_output_for_each_number_of_an_action() {
    let policy = |laws: Vec<Law>, outputs: usize| {
        let agent = Agent { laws, observes: vec![Feature::plain(Measure::Rtt)], history: 1, ..Agent::default() };
        let layer = Layer::new(0, &vec![vec![1.0]; outputs], vec![0.0; outputs], Activation::Tanh);
        let network = Network::new(1, None, vec![layer.expect("a layer")]).expect("a network");
        Policy::new(Arc::new(agent), network).map(|_| ()).map_err(|error| error.0)
    };
    let rate = Agent::default().laws;
    let both = [rate.clone(), windows().laws].concat();
    assert_eq!((policy(rate.clone(), 1), policy(both.clone(), 2)), (Ok(()), Ok(())));
    let one = "the last layer has 2 outputs, expected 1: the action";
    let two = "the last layer has 1 outputs, expected 2: the numbers of an action";
    assert_eq!((policy(rate, 2), policy(both, 1)), (Err(one.to_owned()), Err(two.to_owned())));
}

#[test]
fn before_the_connection_is_open_the_rate_is_the_least() {
    let learner = Learner::new(Arc::new(Agent::default()), None);
    assert_eq!(learner.pacing_rate(&flight(0)).map(Rate::as_bps), Some(10_000));
}

#[test]
fn two_numbers_set_the_rate_and_the_window() {
    let laws = [Agent::default().laws, windows().laws].concat();
    let mut learner = learner(Agent { laws, ..Agent::default() });
    learner.act(&flight(100), &[1.0, -1.0]);
    let rate = learner.pacing_rate(&flight(100)).map(Rate::as_bps);
    assert!(rate.is_some_and(|rate| rate.abs_diff(820_000) <= 1), "{rate:?}");
    assert_eq!(learner.window().cwnd, 5 * MSS);
    // One that is no number leaves its part alone.
    learner.act(&flight(200), &[f32::NAN, 1.0]);
    assert_eq!(learner.pacing_rate(&flight(200)).map(Rate::as_bps), rate);
    assert_eq!((learner.window().cwnd, learner.action()), (10 * MSS, &[1.0, 1.0][..]));
    learner.end_interval(&flight(300));
    assert_eq!([Measure::Action, Measure::SecondAction].map(|of| learner.measures()[of as usize]), [1.0, 1.0]);
}

#[test]
fn headroom_bounds_what_is_set_by_what_got_through() {
    for (agent, most) in [(windows(), 100), (Agent::default(), 1_000_000)] {
        let mut learner = learner(Agent { headroom: Some(4.0), ..agent });
        let rate = |learner: &Learner| learner.pacing_rate(&flight(0)).map(Rate::as_bps);
        let full = |learner: &mut Learner| (0..1000).for_each(|_| learner.act(&flight(100), &[1.0]));
        // Nothing got through: ten segments in 100 ms.
        full(&mut learner);
        let expected = if most == 100 { 10 * MSS } else { 20 * MSS };
        assert_eq!((learner.window().cwnd, rate(&learner).unwrap_or(800_000)), (expected, 800_000));
        // 20 segments in 200 ms are 800 kbit/s, of which four times as much is 3.2 Mbit/s, or 40
        // segments in a smoothed RTT.
        learner.on_arrival(&flight(150), &arrival(20 * MSS, 0));
        learner.end_interval(&flight(200));
        full(&mut learner);
        let expected = if most == 100 { 40 * MSS } else { 80 * MSS };
        assert_eq!((learner.window().cwnd, rate(&learner).unwrap_or(3_200_000)), (expected, 3_200_000));
    }
}

#[test]
fn a_controller_beneath_goes_on() {
    let cubic = Box::new(Cubic::new(CubicConfig::default()));
    let mut learner = learner_over(Agent { beneath: Some("cubic"), ..windows() }, Some(cubic));
    assert!(!learner.needs().whole_control);
    let ack = Ack { acked: MSS, delivered: MSS, ..Ack::default() };
    let _ = learner.on_ack(&flight(10), &ack);
    assert_eq!(learner.window().cwnd, 11 * MSS, "slow start");
    learner.act(&flight(20), &[1.0]);
    assert_eq!(learner.window().cwnd, 22 * MSS);
    learner.on_signal(&Flight { in_flight: 22 * MSS, ..flight(30) }, Signal::Loss);
    learner.on_signal(&flight(130), Signal::RecoveryEnd);
    assert!(learner.window().cwnd < 17 * MSS, "{:?}", learner.window());
}

#[test]
fn what_is_no_agent_is_refused() {
    let law = windows().laws[0];
    let wrong = [
        Agent { history: 0, ..windows() },
        Agent { observes: Vec::new(), ..windows() },
        Agent { decides: Decides::Every(Span::ZERO), ..windows() },
        Agent { decides: Decides::RoundTripTimes(f64::NAN, Span::from_millis(1)), ..windows() },
        Agent { laws: vec![Law { bounds: [0.0, 10.0], ..law }], ..windows() },
        Agent { laws: vec![Law { map: Map::Power { base: 1.0 }, ..law }], ..windows() },
        Agent { laws: vec![Law { map: Map::Step { delta: 0.0 }, ..law }], ..windows() },
        Agent { laws: vec![law; 2], ..windows() },
        Agent { laws: Vec::new(), ..windows() },
        Agent { headroom: Some(1.0), ..windows() },
        Agent { beneath: Some("cubic"), ..Agent::default() },
        Agent {
            observes: vec![Feature { over: Some((0, Statistic::Min)), ..Feature::plain(Measure::Rtt) }],
            ..windows()
        },
        Agent { observes: vec![Feature { limits: [1.0, 1.0], ..Feature::plain(Measure::Rtt) }], ..windows() },
    ];
    for agent in wrong {
        assert!(agent.problem().is_some(), "{agent:?}");
    }
}

proptest! {
    /// Whatever happens, numbers are finite, observations keep to their limits, and the window has
    /// room for a segment.
    #[test]
    fn whatever_happens_is_told_in_numbers(
        events in prop::collection::vec((0u8..9, any::<u32>(), -3.0f32..3.0), 1..200),
        rate in any::<bool>(),
    ) {
        let mut agent = if rate { Agent::default() } else { windows() };
        agent.observes = Measure::ALL.iter().map(|&measure| {
            Feature { limits: [-10.0, 10.0], log: measure == Measure::Throughput, ..Feature::plain(measure) }
        }).collect();
        let mut learner = learner(agent);
        let mut nanos = 0u64;
        for (kind, number, action) in events {
            nanos += u64::from(number % 50_000_000);
            let f = Flight { now: Time::from_nanos(nanos), ..flight(0) };
            match kind {
                0 => learner.on_arrival(&f, &arrival(number.into(), u64::from(number) / 2)),
                1 => {
                    let rtt = Some(Span::from_nanos(number.into()));
                    learner.on_arrival(&Flight { latest_rtt: rtt, ..f }, &Arrival { rtt, ..Arrival::default() });
                }
                2 => learner.on_lost(&f, &lost(number)),
                3 => learner.on_sent(&f, &Sent { seq: 0, bytes: number }),
                4 => learner.on_signal(&f, Signal::Timeout { repeated: number % 2 == 0, kept: 0 }),
                5 => learner.on_signal(&f, Signal::Spurious),
                6 => learner.on_signal(&f, Signal::Resume { cwnd: number.into(), ssthresh: 0 }),
                7 => learner.act(&f, &[action]),
                _ => learner.end_interval(&Flight { srtt: (number % 3 > 0).then_some(f.srtt).flatten(), ..f }),
            }
            prop_assert!(learner.window().cwnd >= MSS && learner.window().cwnd <= Window::MAX);
            prop_assert!(learner.measures().iter().all(|value| value.is_finite()));
            prop_assert!(learner.observation().iter().all(|value| (-10.0..=10.0).contains(value)));
        }
    }
}
