//! Programs in a namespace of the tests' own; without the rights for one they are skipped, and say
//! so.

use ackclock_sim::spec::{Clock, CommandMeasure, NodeSpec};
use ackclock_testkit::can_go_live;
use ackclock_units::Span;

use super::*;

fn command(id: &str, run: &str, at: u64, until: Option<u64>, measure: Option<CommandMeasure>) -> CommandSpec {
    let millis = Span::from_millis;
    CommandSpec {
        id: id.into(),
        node: 0,
        run: run.into(),
        env: vec![("WORD".into(), "a b".into())],
        at: millis(at),
        until: until.map(millis),
        measure,
        terminal: false,
    }
}

fn spec(name: &str, commands: Vec<CommandSpec>) -> LiveSpec {
    let netns = Some(format!("ackt-{name}-{}", std::process::id()));
    let addresses = vec![([10, 77, 0, 1].into(), 24)];
    let node =
        NodeSpec { name: "left".into(), tun: Some("ack0".into()), addresses, netns, mtu: 1500, ..Default::default() };
    LiveSpec {
        clock: Clock::Real,
        nodes: vec![node],
        pipes: Vec::new(),
        commands,
        scheduling: Default::default(),
        offload: false,
        lateness_limit: None,
        drain: false,
    }
}

/// Runs commands for as long as `millis` says; by id.
fn run(spec: &LiveSpec, output: Option<PathBuf>, millis: u64) -> impl Fn(&str) -> CommandSummary + use<> {
    let testbed = Arc::new(Testbed::set_up(spec).expect("a testbed"));
    let commands = Commands::start(spec, Some(testbed), output).expect("started");
    thread::sleep(Duration::from_millis(millis));
    let summaries = commands.stop();
    move |id| summaries.iter().find(|summary| summary.id == id).expect("a command").clone()
}

#[test]
fn programs_run_at_their_times_and_tell_how_they_ended() {
    if !can_go_live("commands: times", &["sleep"]) {
        return;
    }
    let spec = spec(
        "ctime",
        vec![
            command("fine", "exit 0", 200, None, None),
            command("three", "[ \"$WORD\" = 'a b' ] && exit 3", 0, None, None),
            command("until", "exec sleep 100", 0, Some(300), None),
            command("end", "exec sleep 100", 0, None, None),
            command("late", "exit 0", 100_000, None, None),
            command("none", "no-such-program", 0, None, None),
            command("deaf", "trap '' INT; while :; do sleep 0.1; done", 0, Some(100), None),
        ],
    );
    let of = run(&spec, None, 1500);

    let fine = of("fine");
    assert_eq!((fine.exit, fine.signal, fine.stopped, fine.error), (Some(0), None, false, None));
    assert_eq!((fine.host.as_str(), fine.run.as_str()), ("left", "exit 0"));
    let (started, ended) = (fine.started_s.expect("started"), fine.ended_s.expect("ended"));
    assert!(started >= 0.2 && ended > started && ended < 1.5, "{started} {ended}");

    assert_eq!(of("three").exit, Some(3));
    let until = of("until");
    assert_eq!((until.exit, until.signal, until.stopped), (None, Some(2), true));
    let ended = until.ended_s.expect("ended");
    assert!((0.3..1.5).contains(&ended), "{ended}");
    let end = of("end");
    assert_eq!((end.signal, end.stopped), (Some(2), true));
    assert!(end.ended_s.expect("ended") >= 1.5);

    let late = of("late");
    assert_eq!((late.started_s, late.ended_s, late.exit, late.error), (None, None, None, None));
    let none = of("none");
    assert_eq!(none.exit, Some(127));
    assert!(none.error.expect("a reason").contains("no-such-program"));
    // SIGKILL comes 2 s after SIGINT.
    let deaf = of("deaf");
    assert_eq!((deaf.signal, deaf.stopped), (Some(9), true));
    assert!(deaf.ended_s.expect("ended") >= 2.1);
}

#[test]
fn programs_are_interrupted_even_if_this_one_ignores_that() {
    if !can_go_live("commands: SIGINT is ignored", &["sleep"]) {
        return;
    }
    // As a shell has it for what it begins in the background.
    let ignores =
        "trap '' INT; exec \"$0\" --exact commands::tests::programs_run_at_their_times_and_tell_how_they_ended";
    let executable = env::current_exe().expect("it is there");
    let run = Command::new("/bin/sh").arg("-c").arg(ignores).arg(executable).output().expect("a shell");
    let said = String::from_utf8_lossy(&run.stdout);
    assert!(run.status.success() && said.contains("1 passed"), "{said}{}", String::from_utf8_lossy(&run.stderr));
}

#[test]
fn what_they_print_is_kept_and_read() {
    if !can_go_live("commands: output", &["ping"]) {
        return;
    }
    let commands = vec![
        command("json", "echo '{ \"end\": { \"x\": 1.5 } }'; echo noise >&2", 0, None, Some(CommandMeasure::Json)),
        command("ping", "ping -c 3 -i 0.01 127.0.0.1", 0, None, Some(CommandMeasure::Ping)),
        command("text", "echo text", 0, None, Some(CommandMeasure::Json)),
        // Something that holds the pipe open is not waited for.
        command("left", "sleep 100 & echo '{}'", 0, None, Some(CommandMeasure::Json)),
        command("self", "printf '\"%s\"' \"$ACKCLOCK\"", 0, None, Some(CommandMeasure::Json)),
        command("long", "head -c 200000000 /dev/zero", 0, None, None),
    ];
    let directory = std::env::temp_dir().join(format!("ackt-output-{}", std::process::id()));
    for output in [None, Some(directory.clone())] {
        let of = run(&spec("cout", commands.clone()), output.clone(), 2000);
        assert_eq!(of("json").json, Some(serde_json::json!({ "end": { "x": 1.5 } })));
        assert_eq!(of("left").json, Some(serde_json::json!({})));
        let executable = env::current_exe().expect("it is there");
        assert_eq!(of("self").json, Some(executable.to_str().expect("UTF-8").into()));
        let ping = of("ping");
        assert_eq!((ping.exit, ping.rtt_ms.map(|rtt| rtt.distribution.samples), ping.error), (Some(0), Some(3), None));
        let text = of("text");
        assert!(text.json.is_none() && text.error.expect("a reason").contains("not JSON"));
        assert_eq!(of("long").rtt_ms, None);
        if output.is_some() {
            let read = |name: &str| fs::read_to_string(directory.join(name)).expect("a file");
            assert_eq!(read("json.stdout"), "{ \"end\": { \"x\": 1.5 } }\n");
            assert_eq!(read("json.stderr"), "noise\n");
            assert_eq!(read("text.stdout"), "text\n");
            fs::remove_dir_all(&directory).expect("removed");
        }
    }
}

#[test]
fn dropped_they_are_killed_at_once() {
    if !can_go_live("commands: dropped", &["sleep"]) {
        return;
    }
    let spec = spec("cdrop", vec![command("one", "trap '' INT; sleep 100 & sleep 100", 0, None, None)]);
    let testbed = Arc::new(Testbed::set_up(&spec).expect("a testbed"));
    let commands = Commands::start(&spec, Some(Arc::clone(&testbed)), None).expect("started");
    thread::sleep(Duration::from_millis(200));
    assert!(testbed.programs().len() >= 2);
    let before = now();
    drop(commands);
    assert!(before.elapsed() < Duration::from_secs(1));
    assert_eq!(testbed.programs(), []);
}
