//! Any samples, losses and signals in any order, beyond what any path could bring.

use ackclock_units::{Random, Rate, Span, Time};
use proptest::prelude::*;

use super::super::{Bbr, BbrConfig, State};
use crate::{Ack, CongestionControl, Flight, Lost, RateSample, Sent, Signal, Window};

#[derive(Clone, Copy, Debug)]
enum Op {
    Ack(Ack),
    Lost(Lost),
    Signal(Signal),
    RecoveryEnd,
    Sent,
    TakeOver(u64),
}

fn bytes() -> impl Strategy<Value = u64> {
    prop_oneof![8 => 0..2_000_000u64, 1 => Just(0u64), 1 => Just(u64::MAX), 1 => any::<u64>()]
}

fn span() -> impl Strategy<Value = Option<Span>> {
    let nanos = prop_oneof![8 => 1_000_000..300_000_000u64, 1 => Just(0u64), 1 => Just(u64::MAX), 1 => any::<u64>()];
    proptest::option::weighted(0.9, nanos.prop_map(Span::from_nanos))
}

fn rate() -> impl Strategy<Value = Option<RateSample>> {
    let counts = prop::array::uniform5(bytes());
    let sample =
        (counts, span(), any::<bool>()).prop_map(|([total, prior, delivered, flight, lost], interval, limited)| {
            RateSample {
                total_delivered: total,
                prior_delivered: prior,
                delivered,
                interval,
                app_limited: limited,
                in_flight_when_sent: flight,
                lost,
            }
        });
    proptest::option::weighted(0.9, sample)
}

fn op() -> impl Strategy<Value = Op> {
    let ack = (bytes(), span(), bytes(), rate()).prop_map(|(delivered, rtt, lost, rate)| {
        Op::Ack(Ack { acked: delivered, delivered, rtt, lost, rate, ..Ack::default() })
    });
    let lost = (prop::array::uniform6(bytes()), any::<u32>(), any::<[bool; 2]>()).prop_map(
        |(
            [seq, total_delivered, total_lost, prior_delivered, prior_lost, flight],
            bytes,
            [app_limited, selective_acks],
        )| {
            Op::Lost(Lost {
                seq,
                bytes,
                total_delivered,
                total_lost,
                prior_delivered,
                prior_lost,
                in_flight_when_sent: flight,
                app_limited,
                selective_acks,
            })
        },
    );
    let timeout = (any::<bool>(), bytes()).prop_map(|(repeated, kept)| Op::Signal(Signal::Timeout { repeated, kept }));
    prop_oneof![
        12 => ack,
        4 => lost,
        1 => Just(Op::Signal(Signal::Loss)),
        1 => Just(Op::Signal(Signal::Ecn)),
        1 => timeout,
        1 => Just(Op::Signal(Signal::Spurious)),
        1 => Just(Op::RecoveryEnd),
        2 => Just(Op::Sent),
        1 => bytes().prop_map(Op::TakeOver),
    ]
}

proptest! {
    #![proptest_config(ProptestConfig::with_cases(512))]

    #[test]
    fn rate_and_window_stay_within_bounds_whatever_is_measured(
        mss in prop_oneof![4 => Just(1448u32), 1 => Just(1u32), 1 => Just(u32::MAX)],
        ops in prop::collection::vec((0..8_000_000_000u64, op(), bytes(), any::<[bool; 2]>()), 1..200),
    ) {
        let mut cc = Bbr::new(BbrConfig::default(), Random::for_component(1, 0, "cc"));
        let segment = u64::from(mss);
        let mut f = Flight { mss, initial_window: 10 * segment, ..crate::fixture::flight(0, 10) };
        cc.on_established(&f);
        for (nanos, op, in_flight, [cwnd_limited, app_limited]) in ops {
            // Mostly within a round trip, up to 8 s.
            let step = if nanos % 4 > 0 { nanos / 100 } else { nanos };
            f = Flight { now: f.now + Span::from_nanos(step), in_flight, cwnd_limited, app_limited, ..f };
            match op {
                Op::Ack(ack) => { let _ = cc.on_ack(&f, &ack); }
                Op::Lost(lost) => cc.on_lost(&f, &lost),
                Op::Signal(signal) => cc.on_signal(&f, signal),
                Op::RecoveryEnd => cc.on_signal(&f, Signal::RecoveryEnd),
                Op::Sent => cc.on_sent(&f, &Sent { seq: 0, bytes: mss }),
                Op::TakeOver(cwnd) => cc.take_over(Window { cwnd: cwnd.clamp(segment, Window::MAX), ssthresh: Window::INFINITE }),
            }
            let window = cc.window();
            prop_assert!((segment..=Window::MAX).contains(&window.cwnd), "{window:?}");
            prop_assert!(cc.pacing_rate(&f).is_some_and(|rate| rate <= Rate::MAX));
            let model = &cc.model;
            prop_assert!(model.bw.is_finite() && model.bw >= 0.0 && !model.bw_shortterm.is_nan());
            prop_assert!(cc.state != State::Startup || !cc.full_bw.reached || !matches!(op, Op::Ack(_)));
            prop_assert!(f.now >= Time::ZERO);
        }
    }
}
