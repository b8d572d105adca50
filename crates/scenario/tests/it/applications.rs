//! Applications of flows against arithmetic, and what is wrong with those that are refused.

use std::fs;
use std::ops::ControlFlow;

use ackclock_scenario::Scenario;
use ackclock_trace::{FlowSummary, MessagesSummary, RequestsSummary, Summary};

/// A link of 10 Mbit/s and 20 ms, and one flow without Nagle's algorithm with these keys. Headers
/// take 52 bytes with timestamps, those of a SYN 60.
fn scenario(duration: &str, flow: &str) -> String {
    format!(
        "schema = 1\nrun.duration = \"{duration}\"\nlinks.wire = {{ rate = \"10mbit\", delay = \"20ms\" }}\n\
         [[flows]]\nid = \"f\"\npath = [\"wire\"]\nnagle = false\n{flow}\n"
    )
}

fn run_named(name: &str, text: &str) -> Summary<()> {
    let scenario = Scenario::parse(name, text.as_bytes(), &[]).unwrap_or_else(|error| panic!("{error}"));
    ackclock_sim::run(&scenario.spec(0), &mut |_| ControlFlow::Continue(())).expect("the data is intact")
}

fn run(duration: &str, flow: &str) -> FlowSummary {
    run_named("test.toml", &scenario(duration, flow)).flows.remove(0)
}

fn messages(flow: &FlowSummary) -> &MessagesSummary {
    flow.application.as_ref().and_then(|application| application.messages.as_ref()).expect("an application of messages")
}

fn requests(flow: &FlowSummary) -> &RequestsSummary {
    flow.application.as_ref().and_then(|application| application.requests.as_ref()).expect("an application of requests")
}

fn error(flow: &str) -> String {
    let text = scenario("5s", flow);
    Scenario::parse("test.toml", text.as_bytes(), &[]).expect_err("it is refused").to_string()
}

/// A directory with a file, removed with this.
struct Beside(std::path::PathBuf);

impl Beside {
    fn new(test: &str, file: &str, text: &str) -> Beside {
        let directory = std::env::temp_dir().join(format!("ackclock-{test}-{}", std::process::id()));
        fs::create_dir_all(&directory).expect("a directory for the test");
        fs::write(directory.join(file), text).expect("a file for the test");
        Beside(directory)
    }

    /// The name of a scenario in it.
    fn scenario(&self) -> String {
        self.0.join("test.toml").display().to_string()
    }
}

impl Drop for Beside {
    fn drop(&mut self) {
        let _ = fs::remove_dir_all(&self.0);
    }
}

#[test]
fn the_latency_of_a_message_is_its_transmission_and_the_delay() {
    // 1000 bytes each 100 ms, in packets of 1052 bytes: 841.6 us and 20 ms.
    let flow = run("10s", "application = { kind = \"cbr\", rate = \"80kbit\", size = \"1000B\" }");
    let found = messages(&flow);
    assert_eq!((found.written, found.delivered), (100, 100));
    assert_eq!(found.latency_ms.distribution.min, Some(20.8416));
    // The first one waits for the SYN and its answer, 48 us and 20 ms each, and the last ACK, 41.6
    // us: 2 * 20.048 + 0.0416 + 20.8416.
    assert_eq!(found.latency_ms.distribution.max, Some(60.9792));
    assert_eq!(found.blocked_s, 0.0);
    // Nothing but the application holds the flow back after the opening, whose last ACK comes
    // 20.0416 ms later.
    assert!(flow.limited_s.app > 9.9 && flow.limited_s.cwnd < 0.06, "{:?}", flow.limited_s);
    assert_eq!(flow.completed_s, None);
}

#[test]
fn a_constant_rate_is_kept_until_the_link_is_full() {
    // 5 Mbit/s in 20 s are 12,500 messages of 1000 bytes; the last ones are on their way.
    let flow = run("20s", "application = { kind = \"cbr\", rate = \"5mbit\", size = \"1000B\" }");
    let found = messages(&flow);
    assert_eq!(found.written, 12_500);
    assert!((flow.goodput_bps / 5e6 - 1.0).abs() < 0.01, "{}", flow.goodput_bps);
    // At 20 Mbit/s the link of 10 carries 1448 bytes of each 1500. Data written above that fills
    // the send buffer, and from then on the application is blocked.
    let keys = "send_buffer = \"200kB\"\napplication = { kind = \"cbr\", rate = \"20mbit\", size = \"1000B\" }";
    let flow = run("20s", keys);
    assert!((flow.goodput_bps / (10e6 * 1448.0 / 1500.0) - 1.0).abs() < 0.01, "{}", flow.goodput_bps);
    // (20 - 9.65) Mbit/s fill 200 kB in 0.15 s, less what slow start leaves.
    let blocked = messages(&flow).blocked_s;
    assert!(blocked > 19.8 && blocked < 19.95, "{blocked}");
}

#[test]
fn bytes_bound_what_an_application_writes() {
    let flow = run("5s", "bytes = \"2500B\"\napplication = { kind = \"cbr\", rate = \"80kbit\", size = \"1000B\" }");
    let found = messages(&flow);
    // The third message has 500 bytes, 200 ms after the first.
    assert_eq!((found.written, found.delivered, flow.progress.delivered_bytes), (3, 3, 2500));
    // 552 bytes take 441.6 us, the ACK of the FIN with it 41.6 us.
    assert_eq!(flow.fct_s, Some(0.2 + 0.020_441_6 + 0.020_041_6));
}

#[test]
fn a_source_that_is_on_a_quarter_of_the_time() {
    // 125 messages in each of the 100 times of 250 ms.
    let keys =
        "application = { kind = \"on_off\", rate = \"4mbit\", size = \"1000B\", on = \"250ms\", off = \"750ms\" }";
    let flow = run("100s", keys);
    assert_eq!(messages(&flow).written, 12_500);
    assert!((flow.goodput_bps / 1e6 - 1.0).abs() < 0.001, "{}", flow.goodput_bps);
}

#[test]
fn messages_at_random_have_their_mean_rate() {
    for size in ["\"500B\"", "{ distribution = \"uniform\", min = \"100B\", max = \"900B\" }"] {
        let keys = format!("application = {{ kind = \"poisson\", rate = \"2mbit\", size = {size} }}");
        let flow = run("100s", &keys);
        // 50,000 messages, with a standard deviation of 224.
        assert!((flow.goodput_bps / 2e6 - 1.0).abs() < 0.02, "{size}: {}", flow.goodput_bps);
        assert!(messages(&flow).delivered.abs_diff(50_000) < 700, "{size}");
    }
}

#[test]
fn a_trace_is_written_and_the_flow_closes() {
    let beside = Beside::new("trace", "writes.txt", "# time and size\n0 1000\n100ms 2kB\n");
    let text = scenario("5s", "application = { kind = \"trace\", file = \"writes.txt\" }");
    let flow = run_named(&beside.scenario(), &text).flows.remove(0);
    assert_eq!((messages(&flow).delivered, flow.progress.delivered_bytes), (2, 3000));
    // Packets of 1500 and of 604 bytes, 1.2 ms and 483.2 us, and the ACK.
    assert_eq!(flow.fct_s, Some(0.1 + 0.021_683_2 + 0.020_041_6));
    // Again each second: five times in 5 s, without an end.
    let text = scenario("5s", "application = { kind = \"trace\", file = \"writes.txt\", repeat = \"1s\" }");
    let flow = run_named(&beside.scenario(), &text).flows.remove(0);
    assert_eq!((messages(&flow).delivered, flow.completed_s), (10, None));
}

#[test]
fn sizes_from_a_table_have_its_mean() {
    let beside = Beside::new("sizes", "sizes.txt", "100 0.5\n100 0.5\n1kB 1\n");
    let size = "{ distribution = \"empirical\", file = \"sizes.txt\" }";
    let text = scenario("200s", &format!("application = {{ kind = \"cbr\", rate = \"1mbit\", size = {size} }}"));
    let flow = run_named(&beside.scenario(), &text).flows.remove(0);
    // Half of them 100 bytes, half uniform from there to 1000: 325 on average.
    let mean = flow.progress.delivered_bytes as f64 / messages(&flow).delivered as f64;
    assert!((mean / 325.0 - 1.0).abs() < 0.01, "{mean}");
}

#[test]
fn each_flow_and_repetition_draws_from_its_own_stream() {
    let keys = "count = 2\napplication = { kind = \"poisson\", rate = \"1mbit\", size = \"500B\" }";
    let flows = run_named("test.toml", &scenario("10s", keys)).flows;
    assert_ne!(flows[0].progress.delivered_bytes, flows[1].progress.delivered_bytes);
    let other = run_named("test.toml", &scenario("10s", keys).replace("[[flows]]", "run.seed = 2\n[[flows]]")).flows;
    assert_ne!(flows[0].progress.delivered_bytes, other[0].progress.delivered_bytes);
}

#[test]
fn a_short_request_takes_the_handshake_and_its_transmissions() {
    let keys = "application = { kind = \"request\", size = \"200B\", response = \"1000B\", requests = 1 }";
    let flow = run("5s", keys);
    let found = requests(&flow);
    assert_eq!((found.made, found.answered, found.response_bytes), (1, 1, 1000));
    // SYN and its answer, 48 us each; the last ACK, 41.6 us; 252 bytes, 201.6 us; 1052 bytes, 841.6
    // us; four times 20 ms.
    assert_eq!(found.completion_ms.distribution.max, Some(81.1808));
    // The client's stream is the request alone.
    assert_eq!(flow.progress.delivered_bytes, 200);
}

#[test]
fn a_response_of_two_rounds_takes_two_round_trips() {
    let keys = "host = \"rfc\"\n\
                application = { kind = \"request\", size = \"200B\", response = \"20kB\", requests = 1 }";
    let flow = run("5s", keys);
    // The request is there after 2 * 20.048 + 20.2016 ms. Ten of 13 packets of 1500 bytes and one
    // of 1228 are sent at once; the ACK of the first two comes back after 2 * 1.2 + 20 + 20.0416 ms
    // and lets the other 4 go, 3 * 1.2 + 0.9824 + 20 ms.
    assert_eq!(requests(&flow).completion_ms.distribution.max, Some(127.3216));
}

#[test]
fn a_closed_loop_has_the_rate_of_its_cycle() {
    let keys = "application = { kind = \"request\", size = \"200B\", response = \"1000B\", think = \"100ms\" }";
    let flow = run("60s", keys);
    let found = requests(&flow);
    // Once the connection is open, 20.2016 ms there and 20.8416 ms back.
    assert_eq!(found.completion_ms.distribution.min, Some(41.0432));
    // Quantiles are within 0.1 %.
    let median = found.completion_ms.distribution.quantiles.p50.expect("there are samples");
    assert!((median / 41.0432 - 1.0).abs() < 0.001, "{median}");
    // The first one is over at 81.1808 ms, and each cycle takes 141.0432 ms: 1 + 424.8 in 60 s.
    assert_eq!((found.answered, found.made), (425, 426));
    assert!((found.per_second - 425.0 / 60.0).abs() < 1e-9);
    // With exponential times to think the cycle is the same on average.
    let keys = keys.replace("\"100ms\"", "{ distribution = \"exponential\", mean = \"100ms\" }");
    let rate = requests(&run("3000s", &keys)).per_second;
    // 21,000 cycles with a standard deviation of 100 ms each: 0.5 %.
    assert!((rate * 0.141_043_2 - 1.0).abs() < 0.01, "{rate}");
}

#[test]
fn a_long_response_fills_the_link_on_the_way_back() {
    let keys = "application = { kind = \"request\", size = \"100B\", response = \"50MB\" }";
    let flow = run("20s", keys);
    let bps = requests(&flow).response_bytes as f64 * 8.0 / 20.0;
    // 1448 bytes of each 1500, less slow start.
    assert!(bps > 0.95 * 10e6 * 1448.0 / 1500.0 && bps < 10e6 * 1448.0 / 1500.0, "{bps}");
}

#[test]
fn a_response_is_whole_when_the_client_stops_before() {
    // The client closes when it has 50 ms of a response that takes 0.4 s: both ends close in the
    // end, and all of the response has come.
    let keys = "stop = \"130ms\"\napplication = { kind = \"request\", size = \"100B\", response = \"500kB\" }";
    let flow = run("20s", keys);
    assert_eq!(requests(&flow).response_bytes, 500_000);
    assert!(flow.goodput_bps > 0.0 && flow.goodput_bps < 100.0 * 8.0 / 0.4, "the flow is over: {}", flow.goodput_bps);
}

#[test]
fn requests_survive_losses() {
    let keys = "application = { kind = \"request\", size = \"3kB\", response = \"30kB\", requests = 200 }";
    let text = scenario("200s", keys).replace("delay =", "loss = { kind = \"iid\", probability = 0.03 }, delay =");
    let flow = run_named("test.toml", &text).flows.remove(0);
    assert_eq!((requests(&flow).answered, requests(&flow).response_bytes), (200, 6_000_000));
    assert_eq!(flow.progress.delivered_bytes, 600_000);
}

#[test]
fn a_stop_ends_an_application() {
    let keys = "stop = \"950ms\"\napplication = { kind = \"cbr\", rate = \"80kbit\", size = \"1000B\" }";
    let flow = run("5s", keys);
    // The messages are written at 0, 100, ... 900 ms.
    assert_eq!((messages(&flow).written, messages(&flow).delivered), (10, 10));
}

#[test]
fn smoltcp_sends_messages_too() {
    let keys = "host = \"smoltcp\"\napplication = { kind = \"cbr\", rate = \"400kbit\", size = \"1000B\" }";
    let flow = run("10s", keys);
    assert_eq!(messages(&flow).written, 500);
    assert!(messages(&flow).delivered >= 498, "{flow:?}");
}

#[test]
fn what_cannot_be_is_refused_with_its_place() {
    let cbr = |size: &str| format!("application = {{ kind = \"cbr\", rate = \"1mbit\", size = {size} }}");
    for (keys, parts) in [
        ("application = \"ftp\"".to_owned(), ["unknown application `ftp`", "one of `bulk`, `cbr`"]),
        (
            "application = \"cbr\"".to_owned(),
            ["flows.f.application: the key `rate` is missing", "a rate with its unit"],
        ),
        (cbr("\"0B\""), ["flows.f.application.size: must not be zero", "found the string \"0B\""]),
        (cbr("\"1ms\""), ["flows.f.application.size: unknown unit `ms`", "found the string \"1ms\""]),
        (cbr("{ mean = \"1kB\" }"), ["flows.f.application.size: the key `distribution` is missing", "a distribution"]),
        (cbr("{ distribution = \"normal\" }"), ["unknown distribution `normal`", "`lognormal`"]),
        (cbr("{ distribution = \"exponential\" }"), ["the key `mean` is missing", "a value with its unit"]),
        (
            cbr("{ distribution = \"pareto\", shape = 0.9, mean = \"1kB\" }"),
            ["size: no distribution: has no finite mean", "shape"],
        ),
        (
            cbr("{ distribution = \"pareto\", shape = 1.2, mean = \"1kB\", min = \"1B\" }"),
            ["size.min: not together with `mean`", "one of the two"],
        ),
        (
            cbr("{ distribution = \"uniform\", min = \"2kB\", max = \"1kB\" }"),
            ["size: no distribution: `max` is less than `min`", "found"],
        ),
        (
            cbr("{ distribution = \"web-search\", mean = \"1kB\" }"),
            ["flows.f.application.size: unknown key `mean`", "unknown key"],
        ),
        (
            cbr("{ distribution = \"empirical\", file = \"nowhere.txt\" }"),
            ["size.file: cannot read nowhere.txt", "relative to that of the scenario"],
        ),
        (
            "application = { kind = \"trace\", file = \"Cargo.toml\" }".to_owned(),
            ["file: cannot be used: line 1", "expected a time and a size"],
        ),
        (
            "application = { kind = \"on_off\", rate = \"8kbit\", size = \"1kB\", on = \"1us\", off = \"0s\" }"
                .to_owned(),
            ["application.on: a message would take over 1000 times", "longer times"],
        ),
        (
            "host = \"smoltcp\"\napplication = { kind = \"request\", size = \"1B\", response = \"1B\" }".to_owned(),
            ["flows.f.application: `request` not with a kernel or a smoltcp host", "another application"],
        ),
        (
            "bytes = \"1B\"\napplication = { kind = \"request\", size = \"1B\", response = \"1B\" }".to_owned(),
            ["flows.f.bytes: not with `request`", "one of the two"],
        ),
        (format!("results = \"sum\"\n{}", cbr("\"1kB\"")), ["flows.f.results: not with this application", "`each`"]),
    ] {
        let error = error(&keys);
        for part in parts {
            assert!(error.contains(part), "{keys}: no {part:?} in\n{error}");
        }
    }
}

#[test]
fn the_resolved_scenario_names_the_application() {
    let resolved = |keys: &str| {
        Scenario::parse("test.toml", scenario("5s", keys).as_bytes(), &[]).expect("it is right").resolved()
    };
    assert!(resolved("").contains("application = { kind = \"bulk\" }"), "{}", resolved(""));
    let keys = "application = { kind = \"cbr\", rate = \"1mbit\", size = { distribution = \"web-search\" } }";
    let again = Scenario::parse("again", resolved(keys).as_bytes(), &[]).expect("it is read back");
    assert_eq!(again.resolved(), resolved(keys));
}
