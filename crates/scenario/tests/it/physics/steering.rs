//! A run that may be changed and is not gives the results of any other; a link that begins to
//! change by nothing goes on as it was; and the same changes give the same run.

use std::ops::ControlFlow;

use ackclock_emulator::Change;
use ackclock_scenario::Scenario;
use ackclock_sim::spec::{DirectionSpec, RunSpec};
use ackclock_sim::{DirectionId, Helm, Recorders, World};
use ackclock_trace::Summary;
use ackclock_units::{Rate, Span, Time};

use crate::physics::{draw, prediction};

/// Files of the gallery and random scenarios are run for so long,
const SHORTENED: Span = Span::from_millis(400);

/// and for so many steps: some have links of many Gbit/s.
const STEPS: u64 = 20_000;

/// Random scenarios.
const DRAWN: u64 = 30;

/// Runs that take longer than others are left out.
const MOST_FLOWS: usize = 200;

/// Goes on by strides, and makes changes at their times.
struct Strides<'a> {
    stride: Span,
    changes: &'a [(DirectionId, Change)],
}

impl Helm for Strides<'_> {
    fn take(&mut self, now: Time, world: &mut World) -> ControlFlow<(), Time> {
        while let Some(((direction, change), rest)) = self.changes.split_first().filter(|((_, due), _)| due.at == now) {
            world.change(*direction, change.clone());
            self.changes = rest;
        }
        let next = self.changes.first().map_or(Time::NEVER, |(_, change)| change.at);
        ControlFlow::Continue((now + self.stride).min(next))
    }
}

fn steered(spec: &RunSpec, stride: Span, changes: &[(DirectionId, Change)]) -> Option<Summary<()>> {
    ackclock_sim::run_steered(spec, Recorders::default(), &mut Strides { stride, changes })
        .ok()
        .map(|(summary, _)| summary)
}

/// The directions that can change.
fn changeable(spec: &RunSpec) -> Vec<(DirectionId, &DirectionSpec)> {
    let of_link = |(number, link)| {
        let link: &ackclock_sim::spec::LinkSpec = link;
        let ways = [(DirectionId::forward(number), &link.forward), (DirectionId::reverse(number), &link.reverse)];
        ways.into_iter().filter(|_| link.medium.is_none())
    };
    let may = |(_, way): &(DirectionId, &DirectionSpec)| {
        way.burst.is_none() && way.course.slots.is_none() && way.device.is_none()
    };
    spec.links.iter().enumerate().flat_map(of_link).filter(may).collect()
}

/// The time of the last of so many steps, or the whole duration.
fn time_of(spec: &RunSpec, steps: u64) -> Span {
    let end = Time::ZERO + spec.duration;
    let mut world = World::new(spec);
    world.start(&Recorders::default());
    let last = (0..steps).map_while(|_| world.step(end)).last();
    last.map_or(spec.duration, |last| last.since(Time::ZERO)).max(Span::from_nanos(1))
}

/// Compares all of it; says whether anything could change.
fn compare(name: &str, mut spec: RunSpec) -> bool {
    spec.duration = spec.duration.min(SHORTENED);
    spec.duration = time_of(&spec, STEPS);
    spec.windows.clear();
    let spec = &spec;
    let plain = ackclock_sim::run_kept(spec, Recorders::default(), &mut |_| ControlFlow::Continue(()));
    let Some((plain, _)) = plain.ok() else { return false };
    let part = |part: u32| Time::ZERO + spec.duration / 8 * u64::from(part) + Span::from_nanos(u64::from(part));
    let [short, long] = [spec.duration / 37 + Span::from_nanos(1), spec.duration];
    assert_eq!(steered(spec, short, &[]).as_ref(), Some(&plain), "{name}");
    // Every link begins to change in the middle, by nothing.
    let ways = changeable(spec);
    let nothing: Vec<_> = ways.iter().map(|(id, _)| (*id, Change { at: part(4), ..Change::default() })).collect();
    let same = steered(spec, long, &nothing).expect("it went on without");
    assert_eq!(same.flows, plain.flows, "{name}");
    assert_eq!(same.groups, plain.groups, "{name}");
    for (one, other) in same.links.iter().zip(&plain.links) {
        assert_eq!(
            (one.packets.offered, one.packets.dequeued, &one.packets.dropped),
            (other.packets.offered, other.packets.dequeued, &other.packets.dropped),
            "{name}"
        );
        assert_eq!(
            (one.load.sojourn_ms, one.load.backlog_packets),
            (other.load.sojourn_ms, other.load.backlog_packets),
            "{name}"
        );
    }
    // Real changes, twice.
    let mut changes = Vec::new();
    for (number, (id, way)) in (0..4).zip(&ways) {
        let rate =
            way.rate.filter(|_| way.course.trace.is_none()).and_then(|rate| Rate::from_bps(rate.as_bps() / 2 + 1));
        let delay = Some(way.delay * 2);
        changes.push((*id, Change { at: part(1 + number), rate: rate.map(Some), ..Change::default() }));
        changes.push((*id, Change { at: part(3 + number), delay, loss: Some(0.01), ..Change::default() }));
    }
    changes.sort_by_key(|(_, change)| change.at);
    let [one, other] = [short, long].map(|stride| steered(spec, stride, &changes));
    assert_eq!(one, other, "{name}");
    !changes.is_empty()
}

#[test]
fn the_gallery_can_be_changed() {
    let mut compared = 0;
    for file in prediction::gallery() {
        let scenario = Scenario::load(&file, &[]).unwrap_or_else(|error| panic!("{error}"));
        let (flows, _) = scenario.flows();
        if scenario.is_live() || flows > MOST_FLOWS {
            continue;
        }
        compared += usize::from(compare(&file.display().to_string(), scenario.spec(0)));
    }
    assert!(compared >= 30, "{compared}");
}

#[test]
fn random_scenarios_can_be_changed() {
    let mut compared = 0;
    for seed in 0..DRAWN {
        let text = draw::scenario(0x7374_6565 + seed).text();
        compared += u64::from(compare(&text, crate::physics::outcome::spec(&text)));
    }
    assert!(compared * 3 > DRAWN, "{compared}");
}
