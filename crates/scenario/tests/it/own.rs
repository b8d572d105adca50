//! Controllers, queue disciplines and network stacks from outside in scenarios.

use std::ops::ControlFlow;

use ackclock_aqm::{Described, Fifo, FifoConfig, Limit, QueueDisc};
use ackclock_cc::{CongestionControl, NewReno, NewRenoConfig};
use ackclock_scenario::{Override, Own, Scenario};
use ackclock_sim::spec::{Clock, NodeSpec, OwnController, OwnQueue, OwnStack};
use ackclock_sim::{Recorders, World};
use ackclock_stack::Stack;
use ackclock_units::Time;

const TEXT: &str = "schema = 1\n[run]\nduration = \"3s\"\n\
                    [links.a]\nrate = \"2mbit\"\ndelay = \"5ms\"\nqueue = { kind = \"short\", limit = 20 }\n\
                    [[flows]]\nid = \"f\"\npath = [\"a\"]\ncc = \"plain\"\n";

fn controller(name: &str) -> OwnController {
    let build = |_: &[f64], _| -> Box<dyn CongestionControl> { Box::new(NewReno::new(NewRenoConfig::default())) };
    OwnController::new(name, build).parameter("beta", 0.5, 0.1..=0.9)
}

fn queue(name: &str) -> OwnQueue {
    let build = |values: &[f64], _| -> Box<dyn QueueDisc<Described>> {
        Box::new(Fifo::new(FifoConfig { limit: Limit::Packets(values[0] as u64) }))
    };
    OwnQueue::new(name, build).parameter("limit", 10.0, 1.0..=100.0)
}

fn both() -> Own {
    Own::new().controller(controller("plain")).queue(queue("short"))
}

fn read(text: &str) -> Result<Scenario, String> {
    Scenario::parse_with("own.toml", text.as_bytes(), &[], &both()).map_err(|error| error.render(false))
}

fn summary(scenario: &Scenario) -> String {
    let mut world = World::new(&scenario.spec(0));
    world.run(Recorders::default(), &mut |_| ControlFlow::Continue(())).expect("it keeps the rules");
    serde_json::to_string(&world.into_summary()).expect("JSON")
}

#[test]
fn what_is_the_same_from_outside_has_the_same_results() {
    let inside = TEXT.replace("{ kind = \"short\", limit = 20 }", "{ kind = \"pfifo\", limit = \"20p\" }");
    let inside = inside.replace("\"plain\"", "\"newreno\"").replace("id = \"f\"", "id = \"f\"\nhost = \"rfc\"");
    let outside = TEXT.replace("id = \"f\"", "id = \"f\"\nhost = \"rfc\"");
    let [outside, inside] = [outside, inside].map(|text| summary(&read(&text).expect("a scenario")));
    assert_eq!(outside.replace("\"short\"", "\"pfifo\"").replace("\"plain\"", "\"newreno\""), inside);
}

#[test]
fn parameters_are_keys_with_errors_and_defaults() {
    let resolved = read(TEXT).expect("a scenario").resolved();
    assert!(
        resolved.contains("queue = { kind = \"short\", limit = 20") && resolved.contains("beta = 0.5"),
        "{resolved}"
    );
    for (from, to, what) in [
        ("limit = 20", "limit = 200", "expected a number from 1 to 100"),
        ("limit = 20", "limti = 20", "did you mean `limit`?"),
        ("kind = \"short\"", "kind = \"shrot\"", "did you mean `short`?"),
        ("cc = \"plain\"", "cc = \"plan\"", "did you mean `plain`?"),
        (
            "rate = \"2mbit\"",
            "rate = \"2mbit\"\nschedule = [{ at = \"1s\", queue = { limit = 5 } }]",
            "has no hook for",
        ),
    ] {
        let error = read(&TEXT.replace(from, to)).expect_err(what);
        assert!(error.contains(what), "{error}");
    }
}

#[test]
fn names_and_parameters_are_checked() {
    assert_eq!(both().problem(), None);
    for (own, what) in [
        (Own::from(controller("cubic")), "`cubic` is no name for a congestion controller"),
        (Own::from(controller("a b")), "`a b` is no name"),
        (both().controller(controller("plain")), "`plain` is no name"),
        (Own::from(queue("fq_codel")), "`fq_codel` is no name for a queue discipline"),
        (Own::from(queue("q").parameter("limit", 1.0, 0.0..=2.0)), "there are two parameters `limit`"),
        (Own::from(queue("q").parameter("x", 3.0, 0.0..=2.0)), "the parameter `x` is 3 by default"),
        (Own::from(queue("limit")), "has a parameter of the same name"),
    ] {
        let problem = own.problem().expect(what);
        assert!(problem.contains(what), "{problem}");
    }
}

const HOSTS: &str = "schema = 1\n[run]\nduration = \"1s\"\n[links.a]\nrate = \"2mbit\"\n\
                     [hosts.one]\naddress = \"10.0.0.1/24\"\nstack = { kind = \"mine\", depth = 2 }\n\
                     [hosts.two]\naddress = [\"10.0.0.2/24\", \"fd00::2/64\"]\nstack = \"mine\"\n\
                     [[paths]]\nbetween = [\"one\", \"two\"]\npath = [\"a\"]\n";

/// A stack that does nothing.
struct Silent;

impl Stack for Silent {
    fn input(&mut self, _: Time, _: &[u8]) {}

    fn output(&mut self, _: Time, _: &mut [u8]) -> Option<usize> {
        None
    }

    fn next_deadline(&self) -> Time {
        Time::NEVER
    }

    fn on_deadline(&mut self, _: Time) {}
}

fn stack(name: &str) -> OwnStack {
    OwnStack::new(name, |_, _, _| Box::new(Silent)).parameter("depth", 1.0, 0.0..=9.0)
}

#[test]
fn hosts_have_stacks_in_virtual_time() {
    let own = Own::from(stack("mine").unseeded("it asks a clock"));
    let read = |text: &str, own| {
        Scenario::parse_with("own.toml", text.as_bytes(), &[], own).map_err(|error| error.render(false))
    };
    let scenario = read(HOSTS, &own).expect("a scenario");
    let live = scenario.spec(0).live.expect("hosts outside");
    assert_eq!((live.clock, scenario.is_live()), (Clock::Virtual, false));
    assert!(live.nodes.iter().all(NodeSpec::is_outside));
    assert!(scenario.resolved().contains("stack = { kind = \"mine\", depth = 2 }"), "{}", scenario.resolved());
    assert!(scenario.notes().iter().any(|note| note.contains("it asks a clock")), "{:?}", scenario.notes());
    // A parameter beside a name.
    let depth = Override { flag: "--set".to_owned(), text: "hosts.two.stack.depth=7".to_owned() };
    let set = Scenario::parse_with("own.toml", HOSTS.as_bytes(), &[depth], &own).expect("a scenario");
    assert!(set.resolved().contains("stack = { kind = \"mine\", depth = 7"), "{}", set.resolved());
    for (from, to, what) in [
        ("depth = 2", "depth = 20", "expected a number from 0 to 9"),
        ("kind = \"mine\"", "kind = \"mime\"", "did you mean `mine`?"),
        ("stack = \"mine\"", "stack = \"mine\"\ntun = \"t0\"", "`stack` together with `tun`"),
        ("stack = \"mine\"", "tun = \"t0\"", "hosts with a `tun` beside hosts with a `stack`"),
        ("stack = \"mine\"", "stack = \"mine\"\nnetns = \"n\"", "`netns` without `tun`"),
        ("duration = \"1s\"", "duration = \"1s\"\nclock = \"live\"", "the live clock requires a host with a device"),
    ] {
        let error = read(&HOSTS.replace(from, to), &own).expect_err(what);
        assert!(error.contains(what), "{error}");
    }
    let error = read(HOSTS, Own::NONE).expect_err("an unknown stack");
    assert!(error.contains("hosts.one.stack: not a known stack") && error.contains("--features quic"), "{error}");
    let problem = Own::from(stack("mine")).stack(stack("mine")).problem().expect("two of a name");
    assert!(problem.contains("`mine` is no name for a stack"), "{problem}");
}
