//! Runs that are steered.

use ackclock_aqm::{Class, Filter, HtbClass, HtbConfig};
use ackclock_emulator::Change;
use proptest::prelude::*;

use super::*;
use crate::world::Helm;

/// Goes on by strides, and makes changes when their time has come.
struct Strides {
    stride: Span,
    changes: Vec<(DirectionId, Change)>,
    made: usize,
}

impl Strides {
    fn new(stride: Span, changes: &[(DirectionId, Change)]) -> Strides {
        Strides { stride, changes: changes.to_vec(), made: 0 }
    }
}

impl Helm for Strides {
    fn take(&mut self, now: Time, world: &mut World) -> ControlFlow<(), Time> {
        while let Some((direction, change)) = self.changes.get(self.made).filter(|(_, change)| change.at == now) {
            world.change(*direction, change.clone());
            self.made += 1;
        }
        let next = self.changes.get(self.made).map_or(Time::NEVER, |(_, change)| change.at);
        ControlFlow::Continue((now + self.stride).min(next))
    }
}

/// Two flows over a bottleneck with a window, for 5 s.
fn two_flows(queue: QueueSpec) -> RunSpec {
    let mut spec = spec(
        vec![link("first", pfifo(100)), link("second", queue)],
        vec![flow("a", vec![0, 1], true), flow("b", vec![1], false)],
    );
    spec.duration = Span::from_secs(5);
    spec.windows = vec![(Time::from_secs(1), Time::from_secs(3))];
    spec
}

fn steered(spec: &RunSpec, helm: &mut dyn Helm) -> Summary<()> {
    run_steered(spec, Recorders::default(), helm).unwrap().0
}

fn at(at_ms: u64) -> Change {
    Change { at: Time::from_millis(at_ms), ..Change::default() }
}

fn mbit(mbit: u64) -> Option<Option<Rate>> {
    Some(Rate::from_bps(mbit * 1_000_000))
}

#[test]
fn a_helm_that_changes_nothing_changes_nothing() {
    for queue in [pfifo(50), QueueSpec::Codel(CodelConfig::default())] {
        let spec = two_flows(queue);
        let expected = run(&spec, &mut |_| ControlFlow::Continue(())).unwrap();
        for stride in [Span::from_nanos(1_234_567), Span::from_millis(500), Span::from_secs(100)] {
            assert_eq!(steered(&spec, &mut Strides::new(stride, &[])), expected, "{stride:?}");
        }
    }
}

#[test]
fn a_change_made_on_the_way_is_that_of_a_schedule() {
    // The bottleneck loses half of its rate, gets a longer delay, and its old rate back.
    let changes = [
        Change { rate: mbit(5), ..at(1500) },
        Change { delay: Some(Span::from_millis(30)), ..at(2500) },
        Change { rate: mbit(10), delay: Some(Span::from_millis(1)), ..at(3500) },
    ];
    let spec = two_flows(pfifo(50));
    let forward = DirectionId::forward(1);
    let made: Vec<_> = changes.iter().map(|change| (forward, change.clone())).collect();
    let found = steered(&spec, &mut Strides::new(Span::from_millis(100), &made));
    let mut scheduled = spec.clone();
    scheduled.links[1].forward.course.schedule = changes.to_vec();
    let expected = run(&scheduled, &mut |_| ControlFlow::Continue(())).unwrap();
    assert_eq!(found.flows, expected.flows);
    assert_ne!(found.flows, run(&spec, &mut |_| ControlFlow::Continue(())).unwrap().flows);
    // 10 Mbit/s for 1.5 s, 5 for 2 s and 10 for 1.5 s.
    let [found, expected] = [&found, &expected].map(|summary| &summary.links[2]);
    assert_eq!((found.packets.rate_bps, expected.packets.rate_bps), (Some(8_000_000), Some(8_000_000)));
    assert!((found.load.utilization - expected.load.utilization).abs() < 1e-6, "{found:?} {expected:?}");
}

#[test]
fn a_tree_of_classes_that_takes_a_queues_place_knows_its_flows() {
    let rate = |mbit: u64| Rate::from_bps(1_000_000 * mbit).unwrap();
    let class = |name: &str, flows: &[&str], mbit| Class {
        name: name.into(),
        parent: None,
        filter: Filter { flows: flows.iter().map(|&id| id.into()).collect(), ..Filter::default() },
        queue: pfifo(50),
        settings: HtbClass::new(rate(mbit)),
    };
    let tree = HtbConfig {
        classes: vec![class("slow", &["b"], 1), class("rest", &[], 4)],
        default: Some("rest".into()),
        ..HtbConfig::default()
    };
    let spec = two_flows(pfifo(50));
    let change = Change { queue: Some(QueueSpec::Htb(tree)), ..at(500) };
    let found = steered(&spec, &mut Strides::new(Span::from_secs(1), &[(DirectionId::forward(1), change.clone())]));
    let mut scheduled = spec.clone();
    scheduled.links[1].forward.course.schedule = vec![change];
    assert_eq!(found.flows, run(&scheduled, &mut |_| ControlFlow::Continue(())).unwrap().flows);
    // 4.5 s at 1 Mbit/s are 0.56 MB; before that, 0.5 s of at most 10 Mbit/s are 0.63 MB.
    assert!(found.flows[1].progress.delivered_bytes < 1_190_000, "{:?}", found.flows[1].progress);
}

#[test]
fn a_window_that_begins_before_the_first_change_is_right() {
    // 10 Mbit/s until 2 s and 5 from there on, in a window from 1 to 3 s.
    let spec = two_flows(pfifo(50));
    let change = (DirectionId::forward(1), Change { rate: mbit(5), ..at(2000) });
    let summary = steered(&spec, &mut Strides::new(Span::from_secs(1), &[change]));
    let window = &summary.windows[0].links[2];
    assert_eq!(window.packets.rate_bps, Some(7_500_000));
    assert!(window.load.utilization > 0.9 && window.load.utilization <= 1.0, "{}", window.load.utilization);
}

#[test]
fn a_helm_ends_a_run() {
    struct Stops;
    impl Helm for Stops {
        fn take(&mut self, now: Time, _: &mut World) -> ControlFlow<(), Time> {
            if now >= Time::from_secs(1) { ControlFlow::Break(()) } else { ControlFlow::Continue(now) }
        }
    }
    let ended = run_steered(&two_flows(pfifo(50)), Recorders::default(), &mut Stops);
    // What it has done until then is kept.
    let (summary, error) = ended.unwrap();
    assert_eq!((error, summary.duration_s), (Some(RunError::Interrupted), 1.0));
    let whole = steered(&two_flows(pfifo(50)), &mut Strides::new(Span::from_secs(1), &[]));
    let delivered = |summary: &Summary<()>| summary.flows.iter().map(|flow| flow.progress.delivered_bytes).sum::<u64>();
    assert!(delivered(&summary) > 0 && delivered(&summary) < delivered(&whole));
}

proptest! {
    #![proptest_config(ProptestConfig::with_cases(24))]

    /// The same changes at the same times give the same run, to the number of wakeups, however
    /// often it is steered in between.
    #[test]
    fn changes_at_the_same_times_give_the_same_run(
        times in prop::collection::btree_set(0u64..2_000_000_000, 1..8),
        kinds in prop::collection::vec((0usize..2, 0u8..4, 1u64..20), 8),
        strides in [1u64..1_000_000_000, 1u64..1_000_000_000],
    ) {
        let mut spec = two_flows(pfifo(50));
        spec.duration = Span::from_secs(2);
        let change = |(at, (direction, kind, value)): (u64, (usize, u8, u64))| {
            let at = Change { at: Time::from_nanos(at), ..Change::default() };
            let change = match kind {
                0 => Change { rate: mbit(value), ..at },
                1 => Change { delay: Some(Span::from_millis(value)), ..at },
                2 => Change { loss: Some(value as f64 / 100.0), ..at },
                _ => Change { queue: Some(pfifo(value)), ..at },
            };
            (DirectionId::all(2).nth(2 + direction).unwrap(), change)
        };
        let changes: Vec<_> = times.into_iter().zip(kinds).map(change).collect();
        let [one, other] =
            strides.map(|stride| steered(&spec, &mut Strides::new(Span::from_nanos(stride.max(100_000)), &changes)));
        prop_assert_eq!(one, other);
    }
}
