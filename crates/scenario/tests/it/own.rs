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
        ("stack = \"mine\"", "stack = \"mine\"\nnetns = \"n\"", "`netns` without `tun`"),
    ] {
        let error = read(&HOSTS.replace(from, to), &own).expect_err(what);
        assert!(error.contains(what), "{error}");
    }
    let error = read(HOSTS, Own::NONE).expect_err("an unknown stack");
    assert!(error.contains("hosts.one.stack: not a known stack") && error.contains("--features quic"), "{error}");
    let problem = Own::from(stack("mine")).stack(stack("mine")).problem().expect("two of a name");
    assert!(problem.contains("`mine` is no name for a stack"), "{problem}");
}

/// Stacks run by the machine's clock, with each other or with kernels, and in replays.
#[test]
fn hosts_have_stacks_by_any_clock() {
    let read = |text: &str, own: &Own| {
        let scenario = Scenario::parse_with("own.toml", text.as_bytes(), &[], own).map_err(|error| error.render(false));
        scenario.map(|scenario| (scenario.spec(0).live.expect("hosts outside").clock, scenario.is_live()))
    };
    let own = Own::from(stack("mine"));
    let with = |keys: &str| HOSTS.replace("duration = \"1s\"", &format!("duration = \"1s\"\n{keys}"));
    let beside = |keys: &str| with(keys).replace("stack = \"mine\"", "tun = \"t0\"");
    assert_eq!(read(&with("clock = \"live\""), &own), Ok((Clock::Real, true)));
    assert_eq!(read(&beside(""), &own), Ok((Clock::Real, true)));
    for text in [with("replay = \"a\""), beside("replay = \"a\"")] {
        assert_eq!(read(&text, &own), Ok((Clock::Replay("a".into()), false)));
    }
    let error = read(&beside("clock = \"virtual\""), &own).expect_err("no kernel");
    assert!(error.contains("hosts with a `tun` beside hosts with a `stack`, on the virtual clock"), "{error}");
    let slow = Own::from(stack("mine").virtual_only());
    assert_eq!(read(HOSTS, &slow), Ok((Clock::Virtual, false)));
    for text in [with("clock = \"live\""), beside(""), with("replay = \"a\"")] {
        let error = read(&text, &slow).expect_err("it is late");
        assert!(error.contains("the stack `mine` on the") && error.contains("expected the virtual clock"), "{error}");
    }
}

/// A stack that can be the host of a flow.
fn carrier() -> OwnStack {
    stack("mine")
        .text("app", "none", |_| None)
        .text("cc", "cubic", |cc| (cc == "none").then(|| "a controller of this stack".to_owned()))
        .text("note", "", |_| None)
        .parameter("bytes", 0.0, 0.0..=1e15)
        .parameter("start_s", 0.0, 0.0..=1e6)
        .parameter("ecn", 0.0, 0.0..=1.0)
        .only_with(&["note", "bytes", "start_s"], "app", &["send"])
        .carries_flows()
}

#[test]
fn stacks_are_hosts_of_flows_over_paths() {
    let own = Own::from(carrier());
    let read = |text: &str, own| {
        Scenario::parse_with("own.toml", text.as_bytes(), &[], own).map_err(|error| error.render(false))
    };
    let text = "schema = 1\n[run]\nduration = \"3s\"\n[links.a]\nrate = \"2mbit\"\ndelay = \"5ms\"\n\
                [[flows]]\nid = \"f\"\npath = [\"a\"]\nhost = { kind = \"mine\", depth = 2, note = \"x\" }\ncc = \"vegas\"\n\
                bytes = \"9000B\"\nstart = \"1s\"\necn = true\nmss = \"500B\"\n\
                [[flows]]\nid = \"g\"\npath = [\"a\"]\ndirection = \"reverse\"\nreceiver = \"mine\"\n\
                [[flows]]\nid = \"h\"\npath = [\"a\"]\n";
    let scenario = read(text, &own).expect("a scenario");
    let spec = scenario.spec(0);
    let live = spec.live.as_ref().expect("hosts outside");
    assert_eq!(live.clock, Clock::Virtual);
    let names: Vec<(&str, bool, u16)> =
        live.nodes.iter().map(|node| (&*node.name, node.is_outside(), node.mtu)).collect();
    // An MSS of 500 bytes with 40 of headers; 1460 is the default.
    let expected =
        [("f-sender", true, 540), ("f-receiver", true, 540), ("g-sender", false, 1500), ("g-receiver", true, 1500)];
    assert_eq!(names, expected);
    // The second path leads from the receiver to the sender.
    assert_eq!(live.pipes.iter().map(|pipe| pipe.between).collect::<Vec<_>>(), [[0, 1], [3, 2]]);
    assert_eq!(spec.flows.iter().map(|flow| flow.ends.is_some()).collect::<Vec<_>>(), [true, true, false]);
    let shown = format!("{:?}", live.nodes[0].stack);
    // depth, bytes, start_s and ecn; app, cc and note.
    assert!(shown.contains("values: [2.0, 9000.0, 1.0, 1.0], texts: [\"send\", \"vegas\", \"x\"]"), "{shown}");
    let shown = format!("{:?}", live.nodes[1].stack);
    assert!(shown.contains("values: [2.0, 0.0, 0.0, 1.0], texts: [\"sink\", \"vegas\", \"\"]"), "{shown}");
    // What is shown is the same scenario.
    let again = read(&scenario.resolved(), &own).unwrap_or_else(|error| panic!("{error}"));
    assert_eq!(again.spec(0), spec);

    // A setting beside a name.
    let set = |text: &str| Override { flag: "--set".to_owned(), text: text.to_owned() };
    let beside = [set("flows.2.host=mine"), set("flows.2.host.depth=7")];
    let scenario = Scenario::parse_with("own.toml", text.as_bytes(), &beside, &own).expect("a scenario");
    assert!(scenario.resolved().contains("host = { kind = \"mine\", depth = 7"), "{}", scenario.resolved());
    let profile = [set("flows.2.host=rfc"), set("flows.2.host.depth=7")];
    let error = Scenario::parse_with("own.toml", text.as_bytes(), &profile, &own).expect_err("a profile");
    assert!(error.render(false).contains("`flows.2.host.depth` cannot be set"), "{}", error.render(false));

    for (from, to, what) in [
        ("depth = 2", "depth = 20", "expected a number from 0 to 9"),
        ("depth = 2", "cc = \"x\"", "`mine` has no key `cc`"),
        ("ecn = true", "sack = false", "flows.f: `mine` has no key `sack`"),
        ("cc = \"vegas\"", "cc = \"none\"", "expected a controller of this stack"),
        ("cc = \"vegas\"", "count = 2", "expected an entry of `[[flows]]` for each"),
        ("cc = \"vegas\"", "application = \"web\"", "unknown application of a stack"),
        ("cc = \"vegas\"", "application = \"request\"", "the key `size` is missing"),
        (
            "cc = \"vegas\"",
            "application = { kind = \"request\", size = \"1B\", response = \"1B\" }",
            "flows.f.bytes: not with",
        ),
        ("cc = \"vegas\"", "receiver = { sack = false }", "the key `host` is missing"),
        ("receiver = \"mine\"", "receiver = \"smoltcp\"\nhost = \"mine\"", "a smoltcp host has no connection"),
        ("[links.a]", "[record]\npcap = [\"a.forward\"]\n[links.a]", "a link that hosts with a stack use"),
        ("[links.a]", "[record]\nreordering = [\"receiver\"]\n[links.a]", "on the virtual clock alone"),
    ] {
        let error = read(&text.replace(from, to), &own).expect_err(what);
        assert!(error.contains(what), "{error}");
    }
    // A flow between hosts of the file has their stacks.
    let between =
        HOSTS.to_owned() + "[[flows]]\nid = \"f\"\nfrom = \"one\"\nto = \"two\"\nport = 1\nhost = \"kernel\"\n";
    let error = read(&between, &own).expect_err("a host of the flow");
    assert!(error.contains("a kernel cannot be the host here") && error.contains("--features kernel"), "{error}");
}
