//! Controls without a run, and with one on the virtual clock.

use std::ops::ControlFlow;

use ackclock_sim::Recorders;
use ackclock_trace::Summary;

use ackclock_run::attendant::Pace;
use ackclock_run::pilot::{Pilot, PilotPlan};

use super::protocol::answer;
use super::*;

const SCENARIO: &str = "schema = 1\n[run]\nduration = \"10s\"\n[links.wire]\nrate = \"10mbit\"\ndelay = \"10ms\"\n\
                        reverse = { rate = \"1gbit\" }\n[[flows]]\nid = \"f\"\npath = [\"wire\"]\n";

fn scenario() -> Scenario {
    Scenario::parse("test.toml", SCENARIO.as_bytes(), &[]).unwrap_or_else(|error| panic!("{error}"))
}

fn run(scenario: &Scenario, controls: Option<&Controls>, plan: &PilotPlan) -> Summary<()> {
    let spec = scenario.spec(0);
    let mut reach = |_| ControlFlow::Continue(());
    let control = controls.map(Controls::control);
    let pace: Option<Pace<'_>> = controls.map(|controls| Box::new(controls.pacer()) as _);
    let mut pilot = Pilot::new(control, pace, plan, spec.duration, &mut reach);
    let (mut summary, _) = ackclock_sim::run_steered(&spec, Recorders::default(), &mut pilot).unwrap();
    summary.changes = pilot.finish();
    summary
}

#[test]
fn before_and_after_a_run_nothing_is_set() {
    let scenario = scenario();
    let controls = Controls::of(&scenario, None);
    assert_eq!(controls.set("links.wire.rate=5mbit").unwrap_err(), "the run has not begun yet");
    assert_eq!(controls.get("links.wire.forward.rate").unwrap(), "10mbit");
    run(&scenario, Some(&controls), &PilotPlan::default());
    assert_eq!(controls.set("links.wire.rate=5mbit").unwrap_err(), OVER);
    assert_eq!(controls.pause(true).unwrap_err(), OVER);
}

/// Whatever happens, the run does not stand still for ever.
struct GoesOn(Controls);

impl Drop for GoesOn {
    fn drop(&mut self) {
        self.0.shared.tempo.pause(false);
    }
}

#[test]
fn a_run_that_was_changed_is_repeated_by_what_it_recorded() {
    let scenario = scenario();
    let unchanged = run(&scenario, None, &PilotPlan::default());
    // 10 s in half a second.
    let controls = Controls::of(&scenario, Some(Speed::new(20.0).unwrap()));
    controls.shared.tempo.pause(true);
    let person = controls.clone();
    let changed = thread::scope(|scope| {
        scope.spawn(move || {
            let _goes_on = GoesOn(person.clone());
            while !person.shared.control.goes_on() {
                thread::sleep(LOOK);
            }
            // Two at the beginning, each with its time, and one on the way.
            let done = person.set_all(&["links.wire.forward.rate=5mbit", "links.wire.delay=40ms"]).unwrap();
            assert_eq!(done, "links.wire.forward.rate = 5mbit, links.wire.delay = 40ms at 0.000 s");
            assert_eq!(person.get("links.wire.delay").unwrap(), "40ms");
            person.set("links.wire.reverse.queue.limit=7p").unwrap();
            assert!(answer(&person, "get links.wire.queue.limit").starts_with("error `links.wire.queue.limit` is "));
            assert_eq!(answer(&person, "get links.wire.reverse.queue.limit"), "ok 7p\n");
            assert_eq!(answer(&person, "status"), "ok paused at 0.000 s\n");
            assert_eq!(answer(&person, "resume"), "ok goes on at 0.000 s\n");
            person.set("links.wire.loss=0.01").unwrap();
        });
        run(&scenario, Some(&controls), &PilotPlan::default())
    });
    let sets: Vec<(bool, &str)> = changed.changes.iter().map(|made| (made.at_ns < 10, &*made.set)).collect();
    let (rate, delay) = ((true, "links.wire.forward.rate=5mbit"), (true, "links.wire.delay=40ms"));
    assert_eq!(sets[..3], [rate, delay, (true, "links.wire.reverse.queue.limit=7p")]);
    assert_eq!(changed.changes[0].at_ns, changed.changes[1].at_ns);
    assert!(changed.changes[1].at_ns < changed.changes[2].at_ns);
    assert_ne!(changed.flows, unchanged.flows);
    let plan = PilotPlan::read(&scenario, &changed.changes).unwrap();
    assert_eq!(run(&scenario, None, &plan), changed);
}

#[test]
fn a_run_that_may_be_changed_and_is_not_is_the_same() {
    let scenario = scenario();
    let controls = Controls::of(&scenario, Some(Speed::new(1e6).unwrap()));
    assert_eq!(run(&scenario, Some(&controls), &PilotPlan::default()), run(&scenario, None, &PilotPlan::default()));
}

#[test]
fn what_is_planned_is_checked() {
    let scenario = scenario();
    let change = |at_ns: u64, set: &str| ackclock_trace::ChangeSummary { at_ns, set: set.to_owned() };
    let rate = "links.wire.rate=5mbit";
    for (changes, part) in [
        (vec![change(5, "links.wire.rate=5")], "the change at 0.000000005 s: links.wire.rate"),
        (vec![change(5, rate), change(4, rate)], "is not after the one before it"),
        (vec![change(10_000_000_000, rate)], "not before the end"),
    ] {
        let error = PilotPlan::read(&scenario, &changes).unwrap_err().to_string();
        assert!(error.contains(part), "{error}");
    }
}

#[test]
fn requests_are_answered() {
    let controls = Controls::of(&scenario(), None);
    controls.shared.control.reach(Time::from_secs(1));
    let list = answer(&controls, "list");
    assert!(list.starts_with("links.wire.forward.rate=10mbit\n") && list.ends_with("\n\n"), "{list}");
    for (request, part) in [
        ("", "error an empty request"),
        ("jump", "error unknown request `jump`; expected set KEY=VALUE"),
        ("get", "error `get` takes a key"),
        ("get links.wire.rate", "error `links.wire.rate` is 10mbit forward and 1gbit in reverse"),
        ("get links.wire.delay", "ok 10ms\n"),
        ("get links.other.rate", "error there is no `links.other.rate`"),
        ("set", "error 0 changes; expected 1 to 64"),
        ("set links.wire.rate=5", "error links.wire.rate"),
        ("set links.wire.rate=5mbit x", "error not an override"),
        ("set links.wire.\u{7}=5", "error a change with a control character"),
        ("pause now", "error `pause` takes nothing; found `now`"),
        ("speed fast", "error `fast` is no speed"),
        ("speed 0", "error 0 is no speed; expected a number from"),
        ("list all", "error `list` takes nothing"),
    ] {
        let answer = answer(&controls, request);
        assert!(answer.starts_with(part), "{request}: {answer}");
        assert!(answer.ends_with('\n') && answer.lines().count() == 1, "{request}: {answer}");
    }
    let long = format!("set links.wire.rate={}", "5".repeat(LONGEST));
    assert!(answer(&controls, &long).contains("the longest has 1000"));
}
