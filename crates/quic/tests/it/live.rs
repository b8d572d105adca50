//! quinn by the machine's clock: against stock quinn-proto over a socket of a kernel, and with
//! itself.

use std::path::PathBuf;
use std::{env, fs, process};

use ackclock_live::{LiveError, Options, Outcome, run};
use ackclock_scenario::{Own, Scenario};
use ackclock_sim::Recorders;
use ackclock_sim::spec::{Clock, RunSpec};
use ackclock_testkit::skipped;
use ackclock_trace::Summary;
use serde_json::Value;

use super::{result, text};

/// Bytes of a transfer.
const BYTES: f64 = 5e6;

fn spec(text: &str) -> RunSpec {
    let own = ackclock_quic::stacks().into_iter().fold(Own::new(), Own::stack);
    let scenario = Scenario::parse_with("live.toml", text.as_bytes(), &[], &own);
    scenario.unwrap_or_else(|error| panic!("{}", error.render(false))).spec(0)
}

/// A host with this stack and a kernel on a link of 20 Mbit/s and 40 ms, with `udp_peer`.
fn with_kernel(name: &str, stack: &str, peer: &str) -> String {
    let (id, program) = (process::id(), example("udp_peer"));
    format!(
        "schema = 1\n[run]\nduration = \"7s\"\nlateness_limit = false\n\
         [links.wire]\nrate = \"20mbit\"\ndelay = \"20ms\"\nqueue = \"fq_codel\"\n\
         [hosts.quic]\naddress = \"10.78.0.1/24\"\nstack = {stack}\n\
         [hosts.kernel]\naddress = \"10.78.0.2/24\"\ntun = \"ackt0\"\nnetns = \"ackt-quic-{name}-{id}\"\n\
         [[paths]]\nbetween = [\"quic\", \"kernel\"]\npath = [\"wire\"]\n\
         [[commands]]\nid = \"peer\"\nhost = \"kernel\"\nrun = \"exec {} {peer}\"\nat = \"300ms\"\nmeasure = \"json\"\n",
        program.display()
    )
}

/// An example of this crate, which `cargo test` builds.
fn example(name: &str) -> PathBuf {
    let tests = env::current_exe().expect("a test has a path");
    let folder = tests.parent().and_then(|deps| deps.parent()).expect("it is in a directory of the target");
    folder.join("examples").join(name)
}

/// A live run with a capture; `None` if this machine has none.
fn recorded(name: &str, spec: &RunSpec) -> Option<(PathBuf, Outcome)> {
    let file = env::temp_dir().join(format!("ackt-quic-{name}-{}.pcapng", process::id()));
    match run(spec, Recorders::default(), &Options { capture: Some(file.clone()), ..Options::default() }) {
        Ok(outcome) => {
            assert!(outcome.broken_off.is_none(), "{:?}", outcome.broken_off);
            Some((file, outcome))
        }
        Err(LiveError::Missing(why)) => {
            skipped(&format!("quinn live, {name}"), &why);
            None
        }
        Err(error) => panic!("{error:?}"),
    }
}

/// The replay of a capture: it is the recorded run, to each packet of both hosts and each number,
/// and the same each time.
fn repeats(spec: &RunSpec, file: PathBuf, live: &Summary<()>) {
    let mut spec = spec.clone();
    spec.live.as_mut().expect("hosts").clock = Clock::Replay(file.clone());
    let [first, second] = [(); 2].map(|()| {
        let outcome = run(&spec, Recorders::default(), &Options::default()).expect("nothing is missing");
        assert!(outcome.broken_off.is_none(), "{:?}", outcome.broken_off);
        outcome.summary
    });
    assert_eq!(serde_json::to_string(&first).expect("JSON"), serde_json::to_string(&second).expect("JSON"));
    let [live_hosts, hosts] = [live, &first].map(|summary| &summary.live.as_ref().expect("hosts").hosts);
    let told = first.live.as_ref().expect("hosts");
    assert_eq!(told.invalid, [""; 0]);
    let passed: u64 = hosts.iter().map(|host| host.received_packets + host.sent_packets).sum();
    let entered: u64 = hosts.iter().filter(|host| host.stack.is_none()).map(|host| host.received_packets).sum();
    // All but those that are the input of the replay.
    assert_eq!(told.compared_packets, Some(passed - entered));
    for (live, replayed) in live_hosts.iter().zip(hosts) {
        assert_eq!(live.results, replayed.results, "{}", live.id);
        assert_eq!((live.received_bytes, live.sent_bytes), (replayed.received_bytes, replayed.sent_bytes));
    }
    assert_eq!(format!("{:?}", live.links), format!("{:?}", first.links));
    fs::remove_file(file).expect("it was written");
}

/// What the kernel's program printed.
fn printed(summary: &Summary<()>, name: &str) -> f64 {
    let command = &summary.commands[0];
    let value = command.json.as_ref().and_then(|json| json.get(name)).and_then(Value::as_f64);
    value.unwrap_or_else(|| panic!("{name}: {command:?}"))
}

/// The goodput of a transfer in bits/s, and its least RTT in ms, fit the link: 1,472 of 1,500 bytes are
/// UDP's payload, and slow start takes some round trips of 2 s.
fn fits(goodput: f64, rtt: f64) {
    assert!((10e6..19.6e6).contains(&goodput), "{goodput}");
    // fq_codel keeps the queue at 5 ms after slow start; the loop of a machine under load may add some.
    assert!((40.0..100.0).contains(&rtt), "{rtt}");
}

#[test]
fn quinn_sends_to_a_socket_of_a_kernel() {
    let client = format!("{{ kind = \"quinn-cubic\", bytes = {BYTES}, start_s = 1 }}");
    let spec = spec(&with_kernel("sends", &client, "server 10.78.0.2:4433"));
    let Some((file, Outcome { summary, .. })) = recorded("sends", &spec) else { return };
    let of = |name| result(&summary, 0, name).unwrap_or_else(|| panic!("{name}: {:?}", summary.live));
    assert_eq!(printed(&summary, "bytes"), BYTES);
    // A round trip, and the time that the kernel's program takes.
    fits(BYTES * 8.0 / of("completed_s"), of("handshake_ms"));
    fits(printed(&summary, "goodput_bps"), printed(&summary, "rtt_ms"));
    // The bytes of the transfer have passed the link, with headers.
    assert!(summary.links[0].packets.offered as f64 > BYTES / 1472.0);
    repeats(&spec, file, &summary);
}

#[test]
fn a_socket_of_a_kernel_sends_to_quinn() {
    let spec = spec(&with_kernel("receives", "\"quinn-server\"", &format!("client 10.78.0.1:4433 {BYTES}")));
    let Some((file, Outcome { summary, .. })) = recorded("receives", &spec) else { return };
    assert_eq!(result(&summary, 0, "received_bytes"), Some(BYTES));
    assert_eq!(printed(&summary, "bytes"), BYTES);
    fits(printed(&summary, "goodput_bps"), printed(&summary, "rtt_ms"));
    // Nothing is lost but in the queue.
    let dropped: u64 = summary.links[1].packets.dropped.values().sum();
    assert!(printed(&summary, "lost_packets") <= dropped as f64, "{dropped}");
    repeats(&spec, file, &summary);
}

/// Without devices nothing comes from outside: a live run is that of the virtual clock, in real time,
/// and needs no privileges.
#[test]
fn quinn_with_itself_does_as_on_the_virtual_clock() {
    let client = format!("{{ kind = \"quinn-cubic\", bytes = {BYTES}, start_s = 0.5 }}");
    let text = text(&client, "\"fq_codel\"", "").replace("duration = \"20s\"", "duration = \"4s\"");
    let live = spec(&text.replace("[run]", "[run]\nclock = \"live\"\nlateness_limit = false"));
    let Some((file, Outcome { summary, .. })) = recorded("both", &live) else { return };
    assert_eq!((summary.clock, summary.duration_s), ("live", 4.0));
    assert_eq!(result(&summary, 1, "received_bytes"), Some(BYTES));
    let simulated = run(&spec(&text), Recorders::default(), &Options::default()).expect("nothing is missing").summary;
    let [live_hosts, hosts] = [&summary, &simulated].map(|summary| &summary.live.as_ref().expect("hosts").hosts);
    assert_eq!(live_hosts, hosts);
    assert_eq!(format!("{:?}", summary.links), format!("{:?}", simulated.links));
    repeats(&live, file, &summary);
}
