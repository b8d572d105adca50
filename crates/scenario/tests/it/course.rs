//! Links that change, from the file to what flows see: `schedule` and `trace`.

use std::fs;
use std::ops::ControlFlow;
use std::path::{Path, PathBuf};
use std::sync::Arc;

use ackclock_scenario::{Override, Scenario};
use ackclock_trace::{LinkSummary, Summary};
use ackclock_units::{Rate, Span};

const START: &str = "schema = 1\n[run]\nduration = \"10s\"\n";
const FLOW: &str = "[[flows]]\nid = \"f\"\ncc = \"cubic\"\npath = [\"wire\"]\n";

fn scenario(link: &str) -> String {
    format!("{START}[links.wire]\n{link}\n{FLOW}")
}

fn run(scenario: &Scenario) -> Summary<()> {
    ackclock_sim::run(&scenario.spec(0), &mut |_| ControlFlow::Continue(())).expect("nobody interrupts")
}

fn parse(link: &str) -> Scenario {
    Scenario::parse("test", scenario(link).as_bytes(), &[]).unwrap_or_else(|error| panic!("{error}"))
}

fn refused(link: &str) -> String {
    let error = Scenario::parse("test", scenario(link).as_bytes(), &[]).expect_err("nonsense").render(false);
    let line = |part: &str| error.lines().find(|line| line.contains(part)).unwrap_or("").trim().to_owned();
    format!("{} | {}", line("error: "), line("= note: "))
}

/// A scenario in a folder of its own, beside a trace.
fn with_trace(name: &str, trace: impl AsRef<[u8]>, keys: &str) -> Result<Scenario, String> {
    let link = format!("delay = \"10ms\"\ntrace = {{ file = \"a.trace\"{keys} }}\nreverse = {{ rate = \"1gbit\" }}");
    with_files(name, &[("a.trace", trace)], &link)
}

/// A scenario in a folder of its own, beside these files.
fn with_files(name: &str, files: &[(&str, impl AsRef<[u8]>)], link: &str) -> Result<Scenario, String> {
    let folder: PathBuf = Path::new(env!("CARGO_TARGET_TMPDIR")).join(format!("course-{name}"));
    fs::create_dir_all(&folder).unwrap();
    files.iter().for_each(|(file, text)| fs::write(folder.join(file), text).unwrap());
    let path = folder.join("scenario.toml");
    fs::write(&path, scenario(link)).unwrap();
    Scenario::load(&path, &[]).map_err(|error| match error {
        ackclock_scenario::LoadError::Scenario(error) => error.render(false),
        error => error.to_string(),
    })
}

fn forward(summary: &Summary<()>) -> &LinkSummary {
    &summary.links[0]
}

#[test]
fn a_bulk_flow_fills_what_a_schedule_lets_through() {
    // 10 Mbit/s, 2 from 4 s on, rising to 10 until 8 s: 4*10 + 4*6 + 2*10 = 84 Mbit in 10 s.
    let link = "rate = \"10mbit\"\ndelay = \"5ms\"\nqueue = { limit = \"50p\" }\nschedule = [\n\
                { at = \"4s\", rate = \"2mbit\" },\n{ at = \"4001ms\", until = \"8s\", rate = \"10mbit\" },\n]\n\
                reverse = { rate = \"1gbit\", schedule = [] }";
    let summary = run(&parse(link));
    let wire = forward(&summary);
    let rate = wire.packets.rate_bps.unwrap() as f64;
    // The ramp begins a millisecond later: 8 kbit less of 6 Mbit/s on average.
    assert!((rate / 8_400_000.0 - 1.0).abs() < 0.001, "{rate}");
    assert!(wire.load.utilization > 0.97 && wire.load.utilization <= 1.0, "{}", wire.load.utilization);
    // The way back is not what the schedule says of the way there.
    assert_eq!(summary.links[1].packets.rate_bps, Some(1_000_000_000));
}

#[test]
fn an_outage_stops_a_flow_and_costs_no_packet_where_it_holds_them() {
    let link = |drop: &str| {
        format!(
            "rate = \"10mbit\"\ndelay = \"5ms\"\nqueue = {{ limit = \"90000p\" }}\nschedule = [\n{{ at = \"3s\", up = false{drop} }},\n\
             {{ at = \"4s\", up = true }},\n]\nreverse = {{ rate = \"1gbit\", schedule = [] }}"
        )
    };
    let held = run(&parse(&link("")));
    assert_eq!(forward(&held).packets.dropped.get("link"), None);
    // 9 of 10 s.
    assert_eq!(forward(&held).packets.rate_bps, Some(9_000_000));
    let lost = run(&parse(&link(", drop = true")));
    assert!(forward(&lost).packets.dropped["link"] > 100, "{:?}", forward(&lost).packets.dropped);
    assert_eq!(forward(&lost).packets.rate_bps, Some(10_000_000));
    assert!(lost.flows[0].retransmissions.needed > 100, "{:?}", lost.flows[0].retransmissions);
    // Held packets are only late.
    assert_eq!(held.flows[0].retransmissions.needed, 0);
    assert!(
        forward(&held).load.sojourn_ms.max.is_some_and(|longest| longest >= 1000.0),
        "{:?}",
        forward(&held).load.sojourn_ms
    );
}

#[test]
fn delivered_bytes_are_those_of_the_opportunities() {
    // 8 opportunities in 10 ms: 9.6256 Mbit/s of 1504 bytes. Packets of 1500 with 4 bytes of
    // framing use each of them whole.
    let scenario = with_trace("opportunities", "1\n2\n3\n5\n5\n7\n9\n10\n", ", format = \"mahimahi\"").unwrap();
    let mut spec = scenario.spec(0);
    assert_eq!(spec.links[0].forward.rate.unwrap().as_bps(), 9_625_600);
    spec.links[0].forward.overhead = ackclock_sim::spec::Overhead::bytes(4);
    spec.links[0].forward.queue = ackclock_sim::spec::QueueSpec::by_name("codel").unwrap();
    let summary = ackclock_sim::run(&spec, &mut |_| ControlFlow::Continue(())).unwrap();
    let wire = forward(&summary);
    assert_eq!(wire.packets.rate_bps, Some(9_625_600));
    // Every packet has used one opportunity, but for the SYN and the ACK of the handshake.
    let opportunities = 8.0 * 1000.0;
    let used = wire.load.utilization * opportunities;
    assert!((used - wire.packets.dequeued as f64).abs() < 3.0, "{used} {}", wire.packets.dequeued);
    assert!(wire.load.utilization > 0.95, "{}", wire.load.utilization);
}

#[test]
fn rates_of_a_file_and_its_loop() {
    let rates = "time_s,rate_mbit\n0,4\n1,8\n2,0\n";
    let looped = with_trace("rates", rates, ", format = \"rates\"").unwrap();
    assert_eq!(run(&looped).links[0].packets.rate_bps, Some(6_000_000));
    // Once: 12 Mbit in 10 s.
    let once = with_trace("once", rates, ", format = \"rates\", loop = false").unwrap();
    assert_eq!(run(&once).links[0].packets.rate_bps, Some(1_200_000));
    // The way back has a rate, and no trace.
    assert!(once.spec(0).links[0].reverse.course.trace.is_none());
}

#[test]
fn what_is_left_out_of_a_trace_is_shown() {
    let scenario = with_trace("shown", "5\n", "").unwrap();
    let resolved = scenario.resolved();
    assert!(resolved.contains("format = \"mahimahi\""), "{resolved}");
    assert!(resolved.contains("loop = true") && resolved.contains("opportunity = \"1504B\""), "{resolved}");
}

#[test]
fn the_points_of_a_sweep_share_a_trace() {
    let folder: PathBuf = Path::new(env!("CARGO_TARGET_TMPDIR")).join("course-shared");
    fs::create_dir_all(&folder).unwrap();
    fs::write(folder.join("a.trace"), "1\n2\n").unwrap();
    fs::write(folder.join("b.trace"), "1\n3\n").unwrap();
    let link = "trace = { file = \"a.trace\" }\nreverse = { trace = { file = \"a.trace\", loop = false } }";
    let sweep = "[sweep]\naxes.\"links.wire.trace.file\" = [\"a.trace\", \"b.trace\"]\n\
                 axes.\"links.wire.delay\" = [\"1ms\", \"2ms\"]\n";
    let path = folder.join("scenario.toml");
    fs::write(&path, scenario(link) + sweep).unwrap();
    let scenario = Scenario::load(&path, &[]).unwrap();
    let specs: Vec<_> = (0..4).map(|run| scenario.spec(run)).collect();
    let forward = |run: usize| specs[run].links[0].forward.course.trace.as_ref().unwrap();
    let reverse = |run: usize| specs[run].links[0].reverse.course.trace.as_ref().unwrap();
    assert!(Arc::ptr_eq(forward(0), forward(1)) && Arc::ptr_eq(forward(2), forward(3)));
    assert!((0..4).all(|run| Arc::ptr_eq(reverse(0), reverse(run))));
    // Another file, and another way of reading one.
    assert!(forward(0) != forward(2) && forward(0) != reverse(0));
}

/// One file for rate, delay and loss: 8 Mbit/s and 10 ms for two seconds, then 4 Mbit/s and 30 ms,
/// with all lost in the last second of five.
#[test]
fn a_trace_of_rate_delay_and_loss() {
    let text = "time_s,rate_mbit,delay_ms,loss\n0,8,10,0\n2,4,30,0\n4,4,30,1\n5,8,10,0\n";
    let link = "trace = { file = \"a.trace\", format = \"path\" }\nreverse = { rate = \"1gbit\", delay = \"1ms\" }";
    let loaded = with_files("path", &[("a.trace", text)], link).unwrap();
    let spec = loaded.spec(0);
    let wire = &spec.links[0];
    // 8 Mbit/s for 2 s and 4 for 3; 10 ms for 2 s and 30 for 3.
    assert_eq!((wire.forward.rate, wire.forward.delay), (Rate::from_bps(5_600_000), Span::from_millis(22)));
    // The way back has its own rate and delay, and the same losses.
    let back = wire.reverse.course.trace.as_ref().unwrap();
    assert_eq!((wire.reverse.delay, back.has_rate(), back.has_loss()), (Span::from_millis(1), false, true));
    let summary = run(&loaded);
    assert!(forward(&summary).packets.dropped["link"] > 0, "{:?}", forward(&summary).packets.dropped);
}

/// Mahimahi's opportunities with delays and losses of other files, or the delays alone.
#[test]
fn a_trace_of_several_files() {
    let files = [("a.trace", "1\n2\n"), ("d.csv", "0s 10ms\n1s 20ms\n2s 0ms"), ("l.csv", "0s 1%\n1s 0%\n2s 0")];
    let of =
        |link: &str| with_files("files", &files, &format!("{link}\nreverse = {{ rate = \"1gbit\", delay = \"1ms\" }}"));
    let all = "trace = { file = \"a.trace\", delay_file = \"d.csv\", loss_file = \"l.csv\" }";
    let course = of(all).unwrap().spec(0).links[0].forward.course.clone();
    let trace = course.trace.unwrap();
    assert!(trace.opportunity() == Some(1504) && trace.has_delay() && trace.has_loss());
    let delays = of("rate = \"5mbit\"\ntrace = { delay_file = \"d.csv\" }").unwrap().spec(0);
    let wire = &delays.links[0].forward;
    assert_eq!((wire.rate, wire.delay), (Rate::from_bps(5_000_000), Span::from_millis(15)));
    for (link, found) in [
        ("rate = \"5mbit\"\ndelay = \"1ms\"\ntrace = { delay_file = \"d.csv\" }", "the delay is that of the trace"),
        ("rate = \"5mbit\"\nloss = 0.1\ntrace = { loss_file = \"l.csv\" }", "the loss is that of the trace"),
        (
            "rate = \"5mbit\"\ntrace = { delay_file = \"d.csv\" }\nschedule = [{ at = \"1s\", delay = \"1ms\" }]",
            "the delay is that of the trace",
        ),
        ("rate = \"5mbit\"\ntrace = { file = \"a.trace\", delay_file = \"d.csv\" }", "the rate is that of the trace"),
        ("trace = { delay_file = \"d.csv\" }", "the key `rate` is missing"),
        ("rate = \"5mbit\"\ntrace = {}", "the key `file` is missing"),
        ("rate = \"5mbit\"\ntrace = { delay_file = \"d.csv\", format = \"rates\" }", "has no effect"),
        ("rate = \"5mbit\"\ntrace = { delay_file = \"l.csv\" }", "links.wire.trace.delay_file: l.csv, line 1: `1%`"),
    ] {
        let error = of(link).expect_err(link);
        assert!(error.contains(found), "{link}: {error}");
    }
}

#[test]
fn traces_that_are_none() {
    for (name, trace, keys, found) in [
        ("empty", "", "", "a.trace: the trace is empty"),
        ("back", "5\n3\n", "", "a.trace, line 2: 3 ms is before the time of the line above"),
        ("zero", "0\n", "", "a.trace, line 1: the trace has no length"),
        ("words", "0s fast\n", ", format = \"rates\"", "a.trace, line 1: `fast`"),
        ("nothing", "0s 0mbit\n1s 0mbit\n", ", format = \"rates\"", "a.trace: every rate is 0"),
        ("unit", "0s 1mbit\n1s 0mbit\n", ", format = \"rates\", opportunity = \"9B\"", "unknown key `opportunity`"),
    ] {
        let error = with_trace(name, trace, keys).expect_err("nonsense");
        assert!(error.contains(found), "{name}: {error}");
    }
    for (name, bytes, found) in [
        ("latin", &b"1\n2\n3 \xb5s\n"[..], "a.trace, line 3: the byte 0xb5 is not UTF-8"),
        ("cut-off", b"1\n\xe2\x82", "a.trace, line 2: the byte 0xe2 is not UTF-8"),
        ("nul", b"1\n\0\n", "a.trace, line 2: `\u{2400}` is not a number"),
    ] {
        let error = with_trace(name, bytes, "").expect_err("nonsense");
        assert!(error.contains(found), "{name}: {error}");
    }
    assert!(with_trace("mark", "\u{feff}1\r\n2\r\n", "").is_ok());
    let large = vec![b'\n'; (64 << 20) + 1];
    let error = with_trace("large", &large, "").expect_err("nonsense");
    assert!(error.contains("a.trace is larger than 67108864 bytes"), "{error}");
    let error = refused("trace = { file = \"nowhere/at-all\" }\nreverse = { rate = \"1gbit\" }");
    assert!(error.contains("links.wire.trace.file: cannot read nowhere/at-all"), "{error}");
    let both = refused("rate = \"1mbit\"\ntrace = { file = \"nowhere\" }");
    assert!(both.contains("the rate is that of the trace"), "{both}");
}

#[test]
fn schedules_that_are_none() {
    let of = |items: &str| refused(&format!("rate = \"1mbit\"\nschedule = [{items}]"));
    for (items, title, expected) in [
        ("{ rate = \"1mbit\" }", "the key `at` is missing", "when it changes"),
        (
            "{ at = \"2s\", up = false }, { at = \"1s\", up = true }",
            "not after the change before it, which is at 2s",
            "",
        ),
        ("{ at = \"2s\" }", "schedule.0.at: nothing changes", "`rate`, `delay`, `jitter`, `loss`, `up` or `queue`"),
        ("{ at = \"2s\", until = \"2s\", rate = \"2mbit\" }", "schedule.0.until: not after `at`", ""),
        ("{ at = \"2s\", until = \"3s\", up = true }", "only rate and delay change little by little", ""),
        ("{ at = \"2s\", until = \"3s\", rate = \"unlimited\" }", "from or to \"unlimited\"", ""),
        (
            "{ at = \"2s\", until = \"4s\", rate = \"2mbit\" }, { at = \"3s\", rate = \"3mbit\" }",
            "schedule.1.at: rate: the change before it goes on until 4s",
            "",
        ),
        ("{ at = \"2s\", drop = true }", "says what becomes of packets while the link is down", "`up = false`"),
        ("{ at = \"2s\", loss = 2 }", "schedule.0.loss: out of range", "a number from 0 to 1"),
        ("{ at = \"2s\", queue = { limit = \"0p\" } }", "schedule.0.queue.limit: must not be zero", ""),
        ("{ at = \"2s\", queue = { target = \"5ms\" } }", "`pfifo` has no key `target`", "expected one of `limit`"),
        ("{ at = \"2s\", queue = 7 }", "schedule.0.queue: not the right type", "a name (`pfifo`"),
        ("{ at = \"2s\", jitter = 7 }", "schedule.0.jitter: ", "a time with its unit"),
        ("{ at = \"2s\", speed = 1, rate = \"2mbit\" }", "unknown key `speed`", "`at`, `until`, `rate`"),
        ("7", "schedule.0: not a table", ""),
    ] {
        let error = of(items);
        assert!(error.contains(title) && error.contains(expected), "{items}: {error}");
    }
    let error = refused("rate = \"1mbit\"\nschedule = 7");
    assert!(error.contains("links.wire.schedule: not a list of changes"), "{error}");
    let error = refused("rate = \"1mbit\"\nburst = \"9kB\"\nschedule = [{ at = \"2s\", up = false }]");
    assert!(error.contains("a token bucket (`burst`) does not change"), "{error}");
    let fixed = "rate = \"1mbit\"\nqueue = \"fq_codel\"\nschedule = [{ at = \"2s\", queue = { flows = 7 } }]";
    let error = refused(fixed);
    assert!(error.contains("flows cannot be changed"), "{error}");
}

#[test]
fn a_schedule_is_a_matter_of_overrides_as_any_key() {
    let text = scenario("rate = \"1mbit\"\nschedule = [{ at = \"2s\", rate = \"2mbit\" }]");
    let set = Override { flag: "--set".to_owned(), text: "links.wire.schedule.0.rate=3mbit".to_owned() };
    let scenario = Scenario::parse("test", text.as_bytes(), &[set]).unwrap();
    let change = &scenario.spec(0).links[0].forward.course.schedule[0];
    assert_eq!(change.rate.flatten().map(|rate| rate.as_bps()), Some(3_000_000));
    // The way back takes it over, as any other key.
    assert_eq!(scenario.spec(0).links[0].reverse.course, scenario.spec(0).links[0].forward.course);
}
