//! Whatever a file or an override says, it is read or refused.

use ackclock_scenario::{Override, Scenario};
use proptest::prelude::*;

const FULL: &str = r#"schema = 1
title = "t"
[run]
duration = "10s"
seed = 3
[links.a]
rate = "10mbit"
delay = "1ms"
queue = { kind = "pie", limit = "180p", pie = { target = "20ms" }, fq_codel = { flows = 16 } }
loss = { kind = "iid", probability = 0.1 }
overhead = "14B"
reverse = { rate = "unlimited", loss = { kind = "list", packets = [1, 2] } }
[[flows]]
id = "f"
count = 2
path = ["a"]
host = "linux-3.9"
cc = { kind = "cubic", beta = 0.5 }
min_rto = { of = "variance", time = "10ms" }
delayed_ack = { segments = 2 }
hystart = { low_window = 3 }
initial_window = "rfc3390"
prr = false
receiver = { host = "smoltcp", ack_delay = false }
start = "1s"
stop = "2s"
abort = "3s"
[sweep]
repeat = 2
axes."links.a.queue.kind" = ["pie", "fq_codel"]
axes."flows.f.count" = [1, 3]
[[expect]]
metric = "flows.*.rtt_ms.p50"
reduce = "min"
at_most = 3.5
when = { "flows.f.count" = [1, 3] }
baseline = { "links.a.queue.kind" = "pie" }
"#;

const LIVE: &str = r#"schema = 1
[run]
duration = "10s"
spin = "20us"
lateness_limit = false
drain = true
[hosts.l]
tun = "ack0"
address = ["10.0.0.1/24", "fd00::1/64"]
netns = "n"
[hosts.r]
tun = "ack1"
address = "10.0.0.2/24"
netns = "m"
mtu = "9000B"
[hosts.o]
address = "10.0.1.1/32"
[links.a]
rate = "10mbit"
[links.b]
rate = "unlimited"
[[paths]]
between = ["l", "r"]
path = ["a"]
router = { address = "192.0.0.1", mtu = "1400B" }
[[paths]]
between = ["l", "o"]
paths = [["a"], ["b"]]
split = { kind = "send_vector", weights = [2, 1] }
router = false
[[flows]]
id = "f"
from = "l"
to = "r"
port = 5201
source_port = 5202
count = 2
[[flows]]
id = "g"
from = "o"
to = "l"
port = 80
host = "freebsd-14"
[[flows]]
id = "h"
from = "l"
to = "o"
port = 81
data = "pattern"
[[commands]]
id = "c"
host = "l"
run = "ping -c 3 10.0.0.2"
measure = "ping"
at = "1s"
until = "2s"
[[commands]]
host = "r"
run = "true"
[[expect]]
metric = "live.lateness_ms.p99"
at_most = 1
[[expect]]
metric = "commands.c.rtt_ms.p50"
at_most = 1
[sweep]
axes."run.clock" = ["live", "virtual"]
axes."hosts.l.mtu" = ["1500B", "1400B"]
"#;

/// Reads a text; what can be read must also resolve to what can be read.
fn survives(text: &[u8], overrides: &[Override]) {
    match Scenario::parse("fuzz", text, overrides) {
        Err(error) => assert!(error.to_string().contains("error"), "{error}"),
        Ok(scenario) => {
            assert!(scenario.runs() > 0);
            let resolved = scenario.resolved();
            let again = Scenario::parse("resolved", resolved.as_bytes(), &[]);
            let again = again.unwrap_or_else(|error| panic!("{error}\n{resolved}"));
            assert_eq!(again.spec(0), scenario.spec(0));
        }
    }
}

/// Pieces that change the meaning of what they are put into.
fn piece() -> impl Strategy<Value = String> {
    prop_oneof![
        prop::sample::select(vec![
            "\"",
            "'",
            "[",
            "]",
            "{",
            "}",
            "=",
            ".",
            ",",
            "\n",
            "#",
            "[[",
            "]]",
            "-",
            "0",
            "1e999",
            "inf",
            "nan",
            "true",
            "kind",
            "queue",
            "links.a",
            "flows",
            "sweep",
            "\"\"",
            "[]",
            "{}",
            "9223372036854775807",
            "\"5ms\"",
            "\"1p\"",
            "smoltcp",
            "\u{feff}",
            "µ",
            "\u{0}",
            "1979-05-27",
            "reverse",
            "\"replay\"",
            "\"l\"",
            "\"o\"",
            "/",
            "tun",
            "65535",
            "*",
        ])
        .prop_map(str::to_owned),
        ".{0,4}",
    ]
}

proptest! {
    #[test]
    fn any_text(text in ".{0,200}") {
        survives(text.as_bytes(), &[]);
    }

    #[test]
    fn any_bytes(bytes in prop::collection::vec(any::<u8>(), 0..200)) {
        survives(&bytes, &[]);
    }

    #[test]
    fn mutated_scenarios(live in any::<bool>(), edits in prop::collection::vec((any::<prop::sample::Index>(), 0usize..6, piece()), 1..4)) {
        let mut text = if live { LIVE } else { FULL }.to_owned();
        for (index, length, piece) in edits {
            let start = index.index(text.len());
            let end = (start + length).min(text.len());
            if text.is_char_boundary(start) && text.is_char_boundary(end) {
                text.replace_range(start..end, &piece);
            }
        }
        survives(text.as_bytes(), &[]);
    }

    #[test]
    fn exchanged_values(live in any::<bool>(), lines in prop::collection::vec((0usize..75, 0usize..75), 1..4)) {
        let text = if live { LIVE } else { FULL };
        let mut text: Vec<String> = text.lines().map(str::to_owned).collect();
        for (from, to) in lines {
            let value = |line: &str| line.split_once(" = ").map(|(key, value)| (key.to_owned(), value.to_owned()));
            let (Some(from), Some(to_line)) = (text.get(from).and_then(|line| value(line)), text.get_mut(to)) else { continue };
            if let Some((key, _)) = value(to_line) {
                *to_line = format!("{key} = {}", from.1);
            }
        }
        survives(text.join("\n").as_bytes(), &[]);
    }

    #[test]
    fn overrides(path in "(links|flows|run|sweep|expect|title|x)(\\.(a|f|0|queue|axes|\"a.b\"|rate|receiver|kind|)){0,4}", value in piece()) {
        let text = format!("{path}={value}");
        survives(FULL.as_bytes(), &[Override { flag: "--set".to_owned(), text }]);
    }

    #[test]
    fn overrides_of_hosts(
        path in "(hosts|paths|commands|flows|run)(\\.(l|o|r|0|1|c|r-0|g|mtu|tun|address|router|between|run|at|host|clock|replay|)){0,4}",
        value in piece(),
    ) {
        let text = format!("{path}={value}");
        survives(LIVE.as_bytes(), &[Override { flag: "--set".to_owned(), text }]);
    }
}

#[test]
fn what_is_mutated_is_right() {
    for text in [FULL, LIVE] {
        Scenario::parse("right", text.as_bytes(), &[]).unwrap_or_else(|error| panic!("{error}"));
        survives(text.as_bytes(), &[]);
    }
}

#[test]
fn deep_nesting_is_refused() {
    for text in [
        format!("a = {}", "[".repeat(100_000)),
        format!("{} = 1", vec!["a"; 100_000].join(".")),
        format!("[{}]", vec!["a"; 100_000].join(".")),
        format!("a = {}1{}", "{ a = ".repeat(10_000), " }".repeat(10_000)),
        format!("x = {{ {} = 1 }}", vec!["a"; 50_000].join(".")),
        format!("{} = 1", vec!["a"; 400].join(" . ")),
    ] {
        assert!(Scenario::parse("deep", text.as_bytes(), &[]).is_err());
    }
}

/// Files that are large but within the limits are read in a time that grows with their size alone.
#[test]
fn large_files_are_read_or_refused() {
    let base = "schema = 1\n[run]\nduration = \"10s\"\n[links.a]\nrate = \"10mbit\"\n";
    let flows: String = (0..3_000).map(|n| format!("[[flows]]\nid = \"f{n}\"\npath = [\"a\"]\n")).collect();
    survives(format!("{base}{flows}").as_bytes(), &[]);
    let wrong = flows.replace("\"a\"", "\"b\"");
    assert!(Scenario::parse("large", format!("{base}{wrong}").as_bytes(), &[]).is_err());
    let links: String = (0..20_000).map(|n| format!("[links.l{n}]\nrate = \"1mbit\"\n")).collect();
    assert!(Scenario::parse("large", format!("{base}{links}").as_bytes(), &[]).is_err());
    let flow = "[[flows]]\nid = \"f\"\npath = [\"a\"]\n";
    let values: Vec<String> = (0..100_000).map(|n| format!("\"{n}us\"")).collect();
    let axis = format!("[sweep]\naxes.\"links.a.delay\" = [{}]\n", values.join(", "));
    survives(format!("{base}{flow}{axis}").as_bytes(), &[]);
    let packets: Vec<String> = (1..100_000).map(|n| n.to_string()).collect();
    let list = format!("loss = {{ kind = \"list\", packets = [{}] }}\n", packets.join(", "));
    survives(format!("{base}{list}{flow}").as_bytes(), &[]);
    let axis = format!("[sweep]\naxes.\"links.a.delay\" = [{}]\n", values[..5000].join(", "));
    survives(format!("{base}{list}{flow}{axis}").as_bytes(), &[]);
}

/// An error says what is wrong in a few lines, however long a name is that it is about.
#[test]
fn errors_about_long_texts_are_short() {
    let long = "k".repeat(1_000_000);
    let base = "schema = 1\n[run]\nduration = \"10s\"\n";
    let link = "[links.a]\nrate = \"10mbit\"\n";
    let flow = "[[flows]]\nid = \"f\"\npath = [\"a\"]\n";
    for text in [
        format!("{base}{link}{flow}{long} = 1\n"),
        format!("{base}{link}{flow}cc = \"{long}\"\n"),
        format!("{base}[links.a]\nrate = \"{}mbit\"\n{flow}", "9".repeat(1_000_000)),
        format!("{base}[links.{long}]\nrate = \"10mbit\"\n{flow}"),
        format!("{base}{link}[[flows]]\nid = \"{long}\"\npath = [\"b\"]\nx = 1\ny = 2\n"),
        format!("{base}{link}{flow}[[expect]]\nmetric = \"{long}\"\nat_most = 1\n"),
        format!("{base}{link}{flow}[[expect]]\nmetric = \"flows.{long}.rtt_ms.p50\"\nat_most = 1\n"),
        format!("{base}{link}{flow}[sweep]\naxes.\"links.{long}.rate\" = [\"1mbit\"]\n"),
        format!("{base}{link}{flow}x = {long}\n"),
    ] {
        let error = Scenario::parse("long", text.as_bytes(), &[]).unwrap_err().render(false);
        assert!(error.contains("error") && error.len() < 30_000, "{}: {}", error.len(), &error[..300.min(error.len())]);
    }
    let set = Override { flag: "--set".to_owned(), text: format!("links.{long}=1") };
    let error = Scenario::parse("long", format!("{base}{link}{flow}").as_bytes(), &[set]).unwrap_err().render(false);
    assert!(error.len() < 10_000, "{}", error.len());
}
