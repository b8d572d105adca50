//! Controllers and queue disciplines from outside in scenarios.

use std::ops::ControlFlow;

use ackclock_aqm::{Described, Fifo, FifoConfig, Limit, QueueDisc};
use ackclock_cc::{CongestionControl, NewReno, NewRenoConfig};
use ackclock_scenario::{Own, Scenario};
use ackclock_sim::spec::{OwnController, OwnQueue};
use ackclock_sim::{Recorders, World};

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
