//! Nothing that a file holds makes the import panic, and what it makes is a scenario.

use ackclock_tc::{ImportError, Options, Source, import};
use proptest::prelude::*;

/// Words of all formats, and what breaks them.
const WORDS: &[&str] = &[
    "tc",
    "qdisc",
    "class",
    "filter",
    "add",
    "replace",
    "change",
    "del",
    "show",
    "dev",
    "eth0",
    "eth1",
    "ifb0",
    "root",
    "parent",
    "handle",
    "classid",
    "1:",
    "1:1",
    "1:10",
    "10:",
    "ffff:",
    "1:2:3",
    ":",
    "ingress",
    "clsact",
    "htb",
    "hfsc",
    "qfq",
    "tbf",
    "cake",
    "fq_codel",
    "netem",
    "prio",
    "ets",
    "drr",
    "mq",
    "red",
    "choke",
    "sfq",
    "fq",
    "pie",
    "sfb",
    "dualpi2",
    "pfifo",
    "bfifo",
    "noqueue",
    "rate",
    "ceil",
    "burst",
    "cburst",
    "quantum",
    "default",
    "r2q",
    "limit",
    "latency",
    "peakrate",
    "mtu",
    "mpu",
    "overhead",
    "linklayer",
    "atm",
    "10mbit",
    "1kbps",
    "100%",
    "50",
    "0",
    "-1",
    "99999999999999999999",
    "1e308",
    "0x",
    "5ms",
    "1s",
    "15k/8",
    "delay",
    "loss",
    "random",
    "gemodel",
    "state",
    "1%",
    "25%",
    "distribution",
    "normal",
    "slot",
    "packets",
    "bytes",
    "reorder",
    "gap",
    "duplicate",
    "corrupt",
    "target",
    "interval",
    "ecn",
    "noecn",
    "bandwidth",
    "rtt",
    "docsis",
    "ether-vlan",
    "raw",
    "conservative",
    "nat",
    "bands",
    "priomap",
    "strict",
    "quanta",
    "1",
    "2",
    "u32",
    "match",
    "ip",
    "ip6",
    "dsfield",
    "0xb8",
    "0xfc",
    "dport",
    "80",
    "0xffff",
    "at",
    "nexthdr+0",
    "flowid",
    "fw",
    "flower",
    "matchall",
    "action",
    "mirred",
    "egress",
    "redirect",
    "rt",
    "ls",
    "sc",
    "ul",
    "m1",
    "m2",
    "d",
    "umax",
    "dmax",
    "stab",
    "avpkt",
    "1000",
    "protocol",
    "all",
    "prio",
    "7",
    "step_thresh",
    "5p",
    "ce_threshold_selector",
    "1/3",
    "$X",
    "${X}",
    "${X:-5}",
    "$((X+1))",
    "$(id)",
    "`id`",
    "X=5",
    "'",
    "\"",
    "\\",
    "\n",
    "\n",
    "\n",
    ";",
    "&&",
    "||",
    "|",
    "#",
    "(",
    ")",
    "{",
    "}",
    "<<E",
    ">",
    "config queue",
    "option enabled '1'",
    "option script 'simple.qos'",
    "option download '1000'",
    "option upload '1'",
    "option qdisc 'cake'",
    "option interface 'wan'",
    "option linklayer 'atm'",
    "option overhead '4'",
    "option iqdisc_opts 'x'",
    "Circuit ID",
    ",",
    "\n101,,,,A,,,,1,1,2,2,",
];

/// Pieces of JSON.
const JSON: &[&str] = &[
    "[",
    "]",
    "{",
    "}",
    ",",
    ":",
    "\"kind\":\"htb\"",
    "\"kind\":\"netem\"",
    "\"kind\":\"cake\"",
    "\"class\":\"htb\"",
    "\"dev\":\"a\"",
    "\"root\":true",
    "\"handle\":\"1:\"",
    "\"parent\":\"1:1\"",
    "\"options\":{",
    "\"rate\":5",
    "\"bandwidth\":\"unlimited\"",
    "\"bandwidth\":1e300",
    "\"delay\":{\"delay\":-1}",
    "\"limit\":null",
    "\"target\":-5",
    "\"default\":\"0x1\"",
    "\"downloadBandwidthMbps\":1",
    "\"uploadBandwidthMbps\":2",
    "\"A\":{",
    "\"children\":{",
    "null",
    "true",
    "1e999",
    "\"\\u0000\"",
];

fn text(words: &'static [&'static str], most: usize) -> impl Strategy<Value = String> {
    let word =
        prop_oneof![20 => prop::sample::select(words).prop_map(str::to_owned), 1 => "\\PC{0,6}".prop_map(String::from)];
    let joint = prop::sample::select(&[" ", " ", " ", ""][..]);
    prop::collection::vec((word, joint), 0..most)
        .prop_map(|words| words.into_iter().map(|(word, joint)| word + joint).collect())
}

/// Lines that mostly begin as commands do.
fn script() -> impl Strategy<Value = String> {
    const HEADS: &[&str] = &[
        "tc qdisc add dev eth0 root handle 1: ",
        "tc qdisc add dev eth0 parent 1:1 handle 10: ",
        "tc class add dev eth0 parent 1: classid 1:1 htb ",
        "tc class add dev eth0 parent 1:1 classid 1:10 htb rate 1mbit ",
        "tc qdisc add dev eth0 root handle 1: htb default 10\n",
        "tc filter add dev eth0 parent 1: ",
        "tc qdisc add dev eth0 root handle 1: netem ",
        "tc qdisc replace dev eth0 root ",
        "tc class add dev eth0 parent 1: classid 1:2 hfsc ",
        "tc class add dev eth0 parent 1: classid 1:2 qfq ",
    ];
    let line = (prop::sample::select(HEADS), text(WORDS, 8)).prop_map(|(head, rest)| format!("{head}{rest}\n"));
    prop::collection::vec(line, 1..8).prop_map(|lines| lines.concat())
}

fn imports(texts: &[&str]) {
    let sources: Vec<Source<'_>> = texts.iter().map(|text| Source { name: "in", text }).collect();
    match import(&sources, &Options::default()) {
        // The scenario was parsed before it was returned.
        Ok(imported) => assert!(imported.text.contains("schema = 1")),
        Err(ImportError::Line { place, expected, .. }) => {
            assert!(place.line >= 1 && !expected.is_empty());
        }
        Err(ImportError::Nothing { .. } | ImportError::Refused { .. }) => {}
    }
}

proptest! {
    #![proptest_config(ProptestConfig::with_cases(if cfg!(debug_assertions) { 2000 } else { 20_000 }))]

    #[test]
    fn no_script_breaks_it(text in prop_oneof![text(WORDS, 60), script()]) {
        imports(&[&text]);
    }

    #[test]
    fn no_json_breaks_it(text in text(JSON, 30)) {
        imports(&[&text]);
        imports(&[&format!("[{{{text}}}]")]);
    }

    #[test]
    fn no_characters_break_it(text in "\\PC{0,200}", other in any::<String>()) {
        imports(&[&text, &other]);
    }
}

/// Deep nesting ends, with an answer.
#[test]
fn depth_is_bounded() {
    for text in [
        "tc qdisc add dev a root ${A:-".repeat(10_000),
        "$((".repeat(10_000),
        "tc $((1+".to_owned() + &"(".repeat(10_000),
        "[".repeat(100_000),
        "{\"a\":".repeat(100_000),
        "\"$(".repeat(10_000),
        "tc qdisc add dev a root netem loss ".repeat(5_000),
    ] {
        imports(&[&text]);
    }
}
