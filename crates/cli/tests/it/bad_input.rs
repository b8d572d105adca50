//! Bad input: exit status 2 and an error with file, line, caret, what was found and what was
//! expected.

use crate::common::{SMALL, ackclock, folder, run, without_names};

/// Runs [`SMALL`] with one text replaced and returns the error; what all errors have is checked
/// here.
fn refused(name: &str, from: &str, to: &str) -> String {
    assert!(SMALL.contains(from), "{from}");
    refuses(name, &SMALL.replacen(from, to, 1))
}

fn refuses(name: &str, scenario: &str) -> String {
    let said = run(&folder(name), scenario, &[]);
    assert_eq!((said.status, said.out.as_str()), (2, ""), "{}", said.err);
    without_names(&said.err)
}

#[test]
fn unknown_key() {
    insta::assert_snapshot!(refused("unknown_key", "delay =", "dealy ="), @r#"
    error: links.wire: unknown key `dealy`
     --> scenario.toml:9:1
      |
    9 | dealy = "5ms"
      | ^^^^^ unknown key
      |
      = note: expected one of `rate`, ...
      = help: did you mean `delay`?
    "#);
}

#[test]
fn missing_unit() {
    insta::assert_snapshot!(refused("missing_unit", "\"5ms\"", "5"), @r#"
    error: links.wire.delay: the unit is missing
     --> scenario.toml:9:9
      |
    9 | delay = 5
      |         ^ found the integer 5
      |
      = note: expected a time with its unit, such as "20ms" (ns, us, ms, s, min, h)
    "#);
}

#[test]
fn no_power_of_two() {
    let cc = "path = [\"wire\"]\ncc = { kind = \"cdg\", variant = \"linux\", window = 12 }";
    insta::assert_snapshot!(refused("no_power_of_two", "path = [\"wire\"]", cc), @r#"
    error: flows.f.cc.window: not a power of two
      --> scenario.toml:14:50
       |
    14 | cc = { kind = "cdg", variant = "linux", window = 12 }
       |                                                  ^^ found the integer 12
       |
       = note: expected 1, 2, 4 and so on up to 256
    "#);
}

#[test]
fn wrong_unit() {
    insta::assert_snapshot!(refused("wrong_unit", "\"5ms\"", "\"5mbit\""), @r#"
    error: links.wire.delay: unknown unit `mbit`
     --> scenario.toml:9:9
      |
    9 | delay = "5mbit"
      |         ^^^^^^^ found the string "5mbit"
      |
      = note: expected a time with its unit, such as "20ms" (ns, us, ms, s, min, h)
    "#);
}

#[test]
fn misspelt_unit() {
    insta::assert_snapshot!(refused("misspelt_unit", "\"10mbit\"", "\"10Mbit\""), @r#"
    error: links.wire.rate: unknown unit `Mbit`
     --> scenario.toml:8:8
      |
    8 | rate = "10Mbit"
      |        ^^^^^^^^ found the string "10Mbit"
      |
      = note: expected a rate with its unit, such as "10mbit" (bit, kbit, mbit, gbit, tbit), or "unlimited"
      = help: did you mean "10mbit"?
    "#);
}

#[test]
fn packets_for_bytes() {
    let bucket = "delay = \"5ms\"\nburst = \"180p\"";
    insta::assert_snapshot!(refused("packets_for_bytes", "delay = \"5ms\"", bucket), @r#"
    error: links.wire.burst: this is counted in bytes, not in packets
      --> scenario.toml:10:9
       |
    10 | burst = "180p"
       |         ^^^^^^ found the string "180p"
       |
       = note: expected a size in bytes, such as "64KiB" (B, kB, MB, GB, TB, KiB, MiB, GiB, TiB), "htb", or `false`
    "#);
}

#[test]
fn zero_rate() {
    insta::assert_snapshot!(refused("zero_rate", "\"10mbit\"", "\"0mbit\""), @r#"
    error: links.wire.rate: must not be zero
     --> scenario.toml:8:8
      |
    8 | rate = "0mbit"
      |        ^^^^^^^ found the string "0mbit"
      |
      = note: expected a rate with its unit, such as "10mbit" (bit, kbit, mbit, gbit, tbit), or "unlimited"
    "#);
}

#[test]
fn negative_delay() {
    insta::assert_snapshot!(refused("negative_delay", "\"5ms\"", "\"-5ms\""), @r#"
    error: links.wire.delay: must not be negative
     --> scenario.toml:9:9
      |
    9 | delay = "-5ms"
      |         ^^^^^^ found the string "-5ms"
      |
      = note: expected a time with its unit, such as "20ms" (ns, us, ms, s, min, h)
    "#);
}

#[test]
fn queue_limit_zero() {
    let queue = "delay = \"5ms\"\nqueue = { kind = \"pie\", limit = \"0p\" }";
    insta::assert_snapshot!(refused("queue_limit_zero", "delay = \"5ms\"", queue), @r#"
    error: links.wire.queue.limit: must not be zero
      --> scenario.toml:10:33
       |
    10 | queue = { kind = "pie", limit = "0p" }
       |                                 ^^^^ found the string "0p"
       |
       = note: expected from 1p to 4294967295p
    "#);
}

#[test]
fn key_of_another_kind() {
    let queue = "delay = \"5ms\"\nqueue = { kind = \"pfifo\", target = \"20ms\" }";
    insta::assert_snapshot!(refused("key_of_another_kind", "delay = \"5ms\"", queue), @r#"
    error: links.wire.queue: `pfifo` has no key `target`
      --> scenario.toml:10:27
       |
    10 | queue = { kind = "pfifo", target = "20ms" }
       |                           ^^^^^^ unknown key
       |
       = note: expected one of `limit`, ...
       = help: `target` is a key of `afd`, `sfb`, `codel`, `fq_codel`, `cobalt`, `pie`, `fq_pie`, `pi2`, `dualpi2`; `afd = { target = ... }` sets it for that kind alone
    "#);
}

#[test]
fn unknown_kind() {
    insta::assert_snapshot!(refused("unknown_kind", "delay = \"5ms\"", "queue = \"fq_code\""), @r#"
    error: links.wire.queue: unknown queue discipline `fq_code`
     --> scenario.toml:9:9
      |
    9 | queue = "fq_code"
      |         ^^^^^^^^^ found the string "fq_code"
      |
      = note: expected one of `pfifo`, ...
      = help: did you mean `fq_codel`?
    "#);
}

#[test]
fn unknown_link() {
    insta::assert_snapshot!(refused("unknown_link", "[\"wire\"]", "[\"wier\"]"), @r#"
    error: flows.f.path: there is no link `wier`
      --> scenario.toml:13:9
       |
    13 | path = ["wier"]
       |         ^^^^^^ found the string "wier"
       |
       = note: expected the links that the data passes, in order, such as ["bottleneck"]; there are: `wire`
       = help: did you mean `wire`?
    "#);
}

#[test]
fn duplicate_ids() {
    let second = "[[flows]]\nid = \"f\"\npath = [\"wire\"]\n";
    insta::assert_snapshot!(refuses("duplicate_ids", &format!("{SMALL}{second}")), @r#"
    error: two flows are called `f`
      --> scenario.toml:16:6
       |
    16 | id = "f"
       |      ^^^ used a second time
       |
       = note: expected an id of its own for each flow; `count` makes several that are alike
    "#);
}

#[test]
fn parameters_of_a_queue_that_do_not_fit_together() {
    let text = SMALL.replace("[[flows]]", "queue = { kind = \"red\", min = \"9kB\", max = \"8kB\" }\n[[flows]]");
    insta::assert_snapshot!(refuses("parameters_of_a_queue", &text), @r#"
    error: links.wire.queue: the parameters of `red` do not fit together
      --> scenario.toml:11:1
       |
    11 | queue = { kind = "red", min = "9kB", max = "8kB" }
       | ^^^^^ min must be below max
    "#);
}

#[test]
fn a_round_trip_that_takes_no_time() {
    let text = SMALL.replace("10mbit", "unlimited").replace("5ms", "0ms");
    insta::assert_snapshot!(refuses("a_round_trip_that_takes_no_time", &text), @r#"
    error: flows.f: a round trip takes no time
      --> scenario.toml:13:8
       |
    13 | path = ["wire"]
       |        ^^^^^^^^ rates unlimited and delays 0, both ways
       |
       = note: expected a rate or a delay on one of the links: time would stand still
    "#);
}

#[test]
fn a_round_trip_that_later_takes_no_time() {
    let schedule = "schedule = [{ at = \"1s\", rate = \"unlimited\", delay = \"0ms\" }]\n\n[[flows]]";
    let said = refuses("a_round_trip_that_later_takes_no_time", &SMALL.replace("[[flows]]", schedule));
    assert!(said.starts_with("error: flows.f: a round trip takes no time"), "{said}");
}

#[test]
fn empty_axis() {
    insta::assert_snapshot!(refuses("empty_axis", &format!("{SMALL}[sweep]\naxes.\"links.wire.delay\" = []\n")), @r#"
    error: sweep.axes."links.wire.delay": the axis is empty
      --> scenario.toml:16:27
       |
    16 | axes."links.wire.delay" = []
       |                           ^^ found an array
       |
       = note: expected paths with their values: axes."links.bottleneck.delay" = ["10ms", "40ms"]
    "#);
}

#[test]
fn axis_of_nothing() {
    insta::assert_snapshot!(refuses("axis_of_nothing", &format!("{SMALL}[sweep]\naxes.\"links.wrie.delay\" = [\"1ms\"]\n")), @r#"
    error: `links.wrie.delay`: there is no link `wrie`
      --> scenario.toml:16:6
       |
    16 | axes."links.wrie.delay" = ["1ms"]
       |      ^^^^^^^^^^^^^^^^^^ names no link
       |
       = note: the links are `wire`
       = help: did you mean `wire`?
    "#);
}

#[test]
fn error_in_an_axis() {
    insta::assert_snapshot!(refuses("error_in_an_axis", &format!("{SMALL}[sweep]\naxes.\"links.wire.delay\" = [\"1ms\", \"2mss\"]\n")), @r#"
    error: links.wire.delay: unknown unit `mss`
      --> scenario.toml:16:35
       |
    16 | axes."links.wire.delay" = ["1ms", "2mss"]
       |                                   ^^^^^^ found the string "2mss"
       |
       = note: expected a time with its unit, such as "20ms" (ns, us, ms, s, min, h)
       = help: did you mean "2ms"?
    "#);
}

#[test]
fn too_many_flows() {
    insta::assert_snapshot!(refused("too_many_flows", "id = \"f\"", "id = \"f\"\ncount = 1_000_000_000"), @r#"
    error: flows.f.count: too large
      --> scenario.toml:13:9
       |
    13 | count = 1_000_000_000
       |         ^^^^^^^^^^^^^ found the integer 1000000000
       |
       = note: expected from 1 to 100000
    "#);
}

#[test]
fn too_many_runs() {
    let sweep = "[sweep]\nrepeat = 600_000_000_000\naxes.\"links.wire.delay\" = [\"1ms\", \"2ms\"]\n";
    insta::assert_snapshot!(refuses("too_many_runs", &format!("{SMALL}{sweep}")), @r#"
    error: the sweep has 2 points and 1200000000000 runs
      --> scenario.toml:15:2
       |
    15 | [sweep]
       |  ^^^^^ too many
       |
       = note: at most 1099511627776 runs
    "#);
}

#[test]
fn unknown_metric() {
    let expect = "[[expect]]\nmetric = \"flows.f.0.rtt_ms.p51\"\nat_most = 1\n";
    insta::assert_snapshot!(refuses("unknown_metric", &format!("{SMALL}{expect}")), @r#"
    error: expect.0.metric: unknown metric
      --> scenario.toml:16:10
       |
    16 | metric = "flows.f.0.rtt_ms.p51"
       |          ^^^^^^^^^^^^^^^^^^^^^^ found the string "flows.f.0.rtt_ms.p51"
       |
       = note: expected one of `rtt_ms.min`, ...
       = help: did you mean `flows.f.0.rtt_ms.p5`?
    "#);
}

#[test]
fn metric_of_an_unknown_flow() {
    let expect = "[[expect]]\nmetric = \"flows.g.0.goodput_bps\"\nat_most = 1\n";
    insta::assert_snapshot!(refuses("metric_of_an_unknown_flow", &format!("{SMALL}{expect}")), @r#"
    error: expect.0.metric: unknown metric
      --> scenario.toml:16:10
       |
    16 | metric = "flows.g.0.goodput_bps"
       |          ^^^^^^^^^^^^^^^^^^^^^^^ found the string "flows.g.0.goodput_bps"
       |
       = note: expected `flows.ID.NAME` with an id of `f.0`, or `*` in it
       = help: did you mean `flows.f.0.goodput_bps`?
    "#);
}

#[test]
fn missing_key() {
    insta::assert_snapshot!(refused("missing_key", "rate = \"10mbit\"\n", ""), @r#"
    error: links.wire: the key `rate` is missing
     --> scenario.toml:7:8
      |
    7 | [links.wire]
      |        ^^^^ has no `rate`
      |
      = note: expected a rate such as "10mbit", "unlimited", or a `trace`
    "#);
}

#[test]
fn missing_schema() {
    insta::assert_snapshot!(refused("missing_schema", "schema = 1\n", ""), @r#"
    error: the key `schema` is missing
     --> scenario.toml:1:1
      |
    1 | title = "small"
      | ^ has no `schema`
      |
      = note: expected `schema = 1`, the version of the format
    "#);
}

#[test]
fn schema_of_the_future() {
    insta::assert_snapshot!(refused("schema_of_the_future", "schema = 1", "schema = 2"), @r#"
    error: schema: unknown version of the format
     --> scenario.toml:1:10
      |
    1 | schema = 2
      |          ^ found the integer 2
      |
      = note: expected `schema = 1`
    "#);
}

#[test]
fn not_toml() {
    insta::assert_snapshot!(refused("not_toml", "[run]", "[run"), @r#"
    error: not valid TOML: unclosed table, expected `]`
     --> scenario.toml:4:5
      |
    4 | [run
      |     ^ here
    "#);
}

#[test]
fn not_utf8() {
    let mut text = SMALL.as_bytes().to_vec();
    text[20] = 0xff;
    let said = run(&folder("not_utf8"), text, &[]);
    assert_eq!(said.status, 2);
    insta::assert_snapshot!(said.err, @r#"
    error: the file is not UTF-8
     --> scenario.toml:2:10
      |
    2 | title = "�mall"
      |          ^ found the byte 0xff
      |
      = note: expected UTF-8 text
    "#);
}

#[test]
fn errors_come_together() {
    let text = SMALL.replace("\"10mbit\"", "10").replace("\"2s\"", "\"2x\"").replace("bytes", "bites");
    insta::assert_snapshot!(refuses("errors_come_together", &text), @r#"
    error: run.duration: unknown unit `x`
     --> scenario.toml:5:12
      |
    5 | duration = "2x"
      |            ^^^^ found the string "2x"
      |
      = note: expected a time with its unit, such as "20ms" (ns, us, ms, s, min, h)

    error: links.wire.rate: the unit is missing
     --> scenario.toml:8:8
      |
    8 | rate = 10
      |        ^^ found the integer 10
      |
      = note: expected a rate with its unit, such as "10mbit" (bit, kbit, mbit, gbit, tbit), or "unlimited"

    error: flows.f: unknown key `bites`
      --> scenario.toml:14:1
       |
    14 | bites = "100kB"
       | ^^^^^ unknown key
       |
       = note: expected one of `id`, ...
       = help: did you mean `bytes`?
    "#);
}

#[test]
fn error_in_an_override() {
    let said = run(&folder("error_in_an_override"), SMALL, &["--set", "links.wire.rate=10"]);
    assert_eq!(said.status, 2);
    insta::assert_snapshot!(said.err, @r#"
    error: links.wire.rate: the unit is missing
     --> --set:1:17
      |
    1 | links.wire.rate=10
      |                 ^^ found the integer 10
      |
      = note: expected a rate with its unit, such as "10mbit" (bit, kbit, mbit, gbit, tbit), or "unlimited"
    "#);
    let said = run(&folder("error_in_an_override"), SMALL, &["--set", "flows.g.cc=cubic"]);
    assert_eq!(said.status, 2);
    insta::assert_snapshot!(said.err, @r#"
    error: `flows.g.cc`: there is no flow `g`
     --> --set:1:1
      |
    1 | flows.g.cc=cubic
      | ^^^^^^^^^^ names no flow
      |
      = note: the flows are `f`
    "#);
    let said = run(&folder("error_in_an_override"), SMALL, &["--set", "links.wire"]);
    assert_eq!(said.status, 2);
    insta::assert_snapshot!(said.err, @r#"
    error: not an override
     --> --set:1:1
      |
    1 | links.wire
      | ^^^^^^^^^^ found no `=`
      |
      = note: expected KEY=VALUE, such as links.bottleneck.delay=40ms
    "#);
}

#[test]
fn no_such_file() {
    let output = ackclock().args(["--scenario", "no/such/file.toml"]).output().expect("the binary runs");
    assert_eq!(output.status.code(), Some(2));
    let err = String::from_utf8_lossy(&output.stderr).into_owned();
    assert!(err.starts_with("error: cannot read no/such/file.toml: "), "{err}");
}

#[test]
fn wrong_flags() {
    for args in
        [&["--no-such-flag"][..], &[], &["--scenario", "x", "--threads", "0"], &["--scenario", "x", "--seed", "-1"]]
    {
        let output = ackclock().args(args).output().expect("the binary runs");
        assert_eq!(output.status.code(), Some(2), "{args:?}");
    }
}

#[test]
fn reorder_of_the_wrong_type() {
    insta::assert_snapshot!(refused("reorder_type", "delay =", "reorder = 8\ndelay ="), @r"
    error: links.wire.reorder: not the right type
     --> scenario.toml:9:11
      |
    9 | reorder = 8
      |           ^ found the integer 8
      |
      = note: expected `true` if jitter may change the order, `false`, or a table such as { extent = 8, probability = 0.01 }
    ");
}

#[test]
fn an_extent_is_a_number_of_packets() {
    let wrong = "reorder = { extent = \"8p\", rate = 0.1 }\ndelay =";
    insta::assert_snapshot!(refused("reorder_extent", "delay =", wrong), @r#"
    error: links.wire.reorder.extent: not the right type
     --> scenario.toml:9:22
      |
    9 | reorder = { extent = "8p", rate = 0.1 }
      |                      ^^^^ found the string "8p"
      |
      = note: expected a whole number from 0 to 1048576

    error: links.wire.reorder: unknown key `rate`
     --> scenario.toml:9:28
      |
    9 | reorder = { extent = "8p", rate = 0.1 }
      |                            ^^^^ unknown key
      |
      = note: expected one of `probability`, ...
    "#);
}

#[test]
fn path_beside_paths() {
    insta::assert_snapshot!(refused("path_paths", "path = [\"wire\"]", "path = [\"wire\"]\npaths = [[\"wire\"]]"), @r#"
    error: flows.f: `path` and `paths` exclude each other
      --> scenario.toml:14:1
       |
    14 | paths = [["wire"]]
       | ^^^^^ conflicts with `path`
       |
       = note: expected two to 16 paths, such as [["hspa"], ["wlan"]]

    error: flows.f.paths: not several paths
      --> scenario.toml:14:9
       |
    14 | paths = [["wire"]]
       |         ^^^^^^^^^^ found an array
       |
       = note: expected two to 16 paths, such as [["hspa"], ["wlan"]]
    "#);
}

#[test]
fn weights_of_nothing() {
    let split = "paths = [[\"wire\"], [\"wire\"]]\nsplit = { kind = \"send_vector\", weights = [0, 0] }";
    insta::assert_snapshot!(refused("weights", "path = [\"wire\"]", split), @r#"
    error: flows.f.split.weights: no path has a weight
      --> scenario.toml:14:43
       |
    14 | split = { kind = "send_vector", weights = [0, 0] }
       |                                           ^^^^^^ found an array
       |
       = note: expected the weights of the 2 paths, whole numbers, such as [2, 1]
    "#);
}

#[test]
fn record_tcp_is_a_switch() {
    let text = format!("{SMALL}\n[record]\ntcp = [\"bulk\"]\n");
    insta::assert_snapshot!(refuses("record_tcp", &text), @r#"
    error: record.tcp: not the right type
      --> scenario.toml:17:7
       |
    17 | tcp = ["bulk"]
       |       ^^^^^^^^ found an array
       |
       = note: expected `true` or `false`, without quotes
    "#);
}

#[test]
fn an_expectation_that_cannot_be_measured() {
    for (expect, title) in [
        ("metric = \"flows.f.0.sent_packets\"\nfrom = \"2s\"", "expect.0.from: after the end of the run"),
        ("metric = \"flows.f.0.sent_packets\"\nfrom = \"1s\"\nto = \"3s\"", "expect.0.to: after the end of the run"),
        (
            "metric = \"flows.f.0.sent_packets\"\nfrom = \"1s\"\nto = \"1s\"",
            "expect.0.to: not after `from`, which is 1s",
        ),
        ("metric = \"flows.f.0.repair_rtts.p50\"\nto = \"1s\"", "expect.0.metric: unknown metric"),
        ("metric = \"events\"\nto = \"1s\"", "expect.0.metric: unknown metric"),
        ("metric = \"events\"\nratio_to = \"event\"", "expect.0.ratio_to: unknown metric"),
        ("metric = \"events\"\nratio_to = { metric = \"event\" }", "expect.0.ratio_to.metric: unknown metric"),
        ("metric = \"events\"\nratio_to = \"links.*.offered\"", "expect.0.ratio_to: the key `reduce` is missing"),
        ("metric = \"events\"\nruns = \"most\"", "expect.0.runs: unknown way to judge the runs of a point `most`"),
    ] {
        let said = refuses("unmeasured", &format!("{SMALL}[[expect]]\n{expect}\nat_most = 1\n"));
        assert!(said.contains(&format!("error: {title}")), "{said}");
    }
}

#[test]
fn a_schedule_that_cannot_be_kept() {
    for (keys, title) in [
        ("schedule = \"cubic\"", "flows.f.schedule: not a list of changes"),
        ("schedule = [\"cubic\"]", "flows.f.schedule.0: not a table"),
        ("schedule = [{ cc = \"cubic\" }]", "flows.f.schedule.0: the key `at` is missing"),
        ("schedule = [{ at = \"1s\" }]", "flows.f.schedule.0: the key `cc` is missing"),
        ("schedule = [{ at = \"1s\", cc = \"cubik\" }]", "flows.f.schedule.0.cc: unknown congestion control `cubik`"),
        ("schedule = [{ at = \"1s\", cc = \"cubic\", c = 1 }]", "flows.f.schedule.0: unknown key `c`"),
        ("schedule = [{ at = \"2s\", cc = \"cubic\" }]", "flows.f.schedule.0.at: after the end of the run"),
        (
            "start = \"1s\"\nschedule = [{ at = \"1s\", cc = \"cubic\" }]",
            "flows.f.schedule.0.at: not after the start of the flow, which is 1s",
        ),
        (
            "schedule = [{ at = \"1s\", cc = \"cubic\" }, { at = \"1s\", cc = \"newreno\" }]",
            "flows.f.schedule.1.at: not after the change before it",
        ),
        (
            "host = \"smoltcp\"\nschedule = [{ at = \"1s\", cc = \"cubic\" }]",
            "flows.f.schedule: a smoltcp host cannot change its controller",
        ),
    ] {
        let said = refuses("schedule", &format!("{SMALL}{keys}\n"));
        assert!(said.contains(&format!("error: {title}")), "{said}");
    }
}

#[test]
fn datagrams_that_cannot_be_sent() {
    let voip = |keys: &str| format!("transport = \"udp\"\napplication = {{ kind = \"voip\", {keys} }}");
    for (keys, title) in [
        ("transport = \"sctp\"".to_owned(), "flows.f.transport: unknown transport `sctp`"),
        ("transport = \"udp\"\ncc = \"cubic\"".to_owned(), "flows.f: unknown key `cc`"),
        ("transport = \"udp\"\necn = true".to_owned(), "flows.f.ecn: not the right type"),
        ("transport = \"udp\"\nmtu = \"28B\"".to_owned(), "flows.f.mtu: too small"),
        ("transport = \"udp\"\nresults = \"sum\"".to_owned(), "flows.f.results: not with `transport = \"udp\"`"),
        (
            "transport = \"udp\"\napplication = \"html\"".to_owned(),
            "flows.f.application: unknown application over UDP `html`",
        ),
        ("transport = \"udp\"\napplication = { size = \"65508B\" }".to_owned(), "flows.f.application.size: too large"),
        (
            "transport = \"udp\"\nmtu = \"576B\"\napplication = { kind = \"ping\", size = \"549B\" }".to_owned(),
            "flows.f.application.size: too large",
        ),
        (
            "transport = \"udp\"\napplication = { kind = \"ping\", rate = \"1mbit\" }".to_owned(),
            "flows.f.application: `ping` has no key `rate`",
        ),
        (
            "transport = \"udp\"\napplication = { kind = \"ping\", interval = \"0s\" }".to_owned(),
            "flows.f.application.interval: must not be zero",
        ),
        (voip("codec = \"mp3\""), "flows.f.application.codec: unknown codec `mp3`"),
        (
            voip("codec = \"g729a\", packetisation = \"25ms\""),
            "flows.f.application.packetisation: not a whole number of frames",
        ),
        (voip("packetisation = \"1s\""), "flows.f.application.packetisation: too large"),
        (voip("bpl = 0"), "flows.f.application.bpl: out of range"),
    ] {
        let small = SMALL.replace("bytes = \"100kB\"\n", "");
        let said = refuses("datagrams", &format!("{small}{keys}\n"));
        assert!(said.contains(&format!("error: {title}")), "{said}");
    }
}
