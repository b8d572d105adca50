//! A medium that both directions of a link share, from the file to what flows see.

use std::ops::ControlFlow;

use ackclock_scenario::Scenario;
use ackclock_trace::Summary;

const WIFI: &str = "medium = { kind = \"wifi\", aggregate_packets = 16, contention = \"500us\" }";

fn text(link: &str, flows: &str) -> String {
    format!("schema = 1\n[run]\nduration = \"10s\"\n[links.air]\ndelay = \"5ms\"\n{link}\n{flows}")
}

fn flow(id: &str, keys: &str) -> String {
    format!("[[flows]]\nid = \"{id}\"\npath = [\"air\"]\ncc = \"cubic\"\n{keys}\n")
}

fn parse(text: &str) -> Scenario {
    Scenario::parse("test", text.as_bytes(), &[]).unwrap_or_else(|error| panic!("{error}\n{text}"))
}

fn run(text: &str) -> Summary<()> {
    ackclock_sim::run(&parse(text).spec(0), &mut |_| ControlFlow::Continue(())).expect("nobody interrupts")
}

fn refused(link: &str) -> String {
    let text = text(link, &flow("f", ""));
    let error = Scenario::parse("test", text.as_bytes(), &[]).expect_err("nonsense").render(false);
    let line = |part: &str| error.lines().find(|line| line.contains(part)).unwrap_or("").trim().to_owned();
    format!("{} | {}", line("error: "), line("= note: "))
}

#[test]
fn acks_take_their_share_of_the_air() {
    // 16 packets of 1500 bytes at 60 Mbit/s take 3.2 ms, and 0.5 ms of contention; their 8 ACKs of
    // 52 bytes 55 us and as much contention. If each aggregate of data is answered by one of ACKs,
    // there are 16 packets in 4.255 ms: 43.6 Mbit/s of 1448 bytes.
    let summary = run(&text(&format!("rate = \"60mbit\"\nqueue = {{ limit = \"200p\" }}\n{WIFI}"), &flow("f", "")));
    let goodput = summary.flows[0].goodput_bps / 1e6;
    assert!(goodput < 16.0 * 1448.0 * 8.0 / 3.7e3, "{goodput}");
    // While data waits, either direction is next with probability 1/2: data has two opportunities
    // for one of ACKs where ACKs wait only now and then.
    assert!((41.0..50.0).contains(&goodput), "{goodput}");
    // No packet is faster than both delays, one contention each way and its transmission.
    let rtt = summary.flows[0].rtt_ms.min.unwrap();
    assert!(rtt >= 11.0 + 0.2, "{rtt}");
    // The time in transmission of both directions is not more than there is.
    let [forward, reverse] = [0, 1].map(|link| summary.links[link].load.utilization);
    assert!(forward + reverse < 1.0 && forward > 0.7, "{forward} {reverse}");
}

#[test]
fn two_directions_that_are_full_have_half_each() {
    let flows = flow("up", "host = \"rfc\"") + &flow("down", "host = \"rfc\"\ndirection = \"reverse\"");
    let air = |medium: &str| {
        let summary = run(&text(&format!("rate = \"20mbit\"\nqueue = {{ limit = \"100p\" }}\n{medium}"), &flows));
        [0, 1].map(|flow| summary.flows[flow].goodput_bps / 1e6)
    };
    let [up, down] = air(WIFI);
    // 16 packets in 9.6 and 0.5 ms: 18.35 Mbit/s of data for both together, less ACKs.
    assert!(up + down < 18.4 && up + down > 16.0, "{up} {down}");
    assert!((up / down).max(down / up) < 1.25, "{up} {down}");
    // Without the medium each has a rate of its own.
    let [up, down] = air("");
    assert!(up + down > 25.0, "{up} {down}");
}

#[test]
fn recorded_and_measured_runs_are_the_same() {
    let flows = flow("up", "") + &flow("down", "direction = \"reverse\"\nstart = \"1s\"");
    let expect = "[[expect]]\nmetric = \"flows.up.0.goodput_bps\"\nfrom = \"3s\"\nto = \"7s\"\nat_least = 1\n";
    let link = format!("rate = \"20mbit\"\nqueue = \"fq_codel\"\n{WIFI}");
    let plain = run(&text(&link, &flows));
    let windows = run(&(text(&link, &flows) + expect));
    assert_eq!(windows.links, plain.links);
    assert_eq!(windows.flows, plain.flows);
}

#[test]
fn what_is_left_out_is_shown() {
    let shown = parse(&text("rate = \"60mbit\"\nmedium = \"wifi\"", &flow("f", ""))).resolved();
    let expected = "medium = { kind = \"wifi\", aggregate_packets = 64, aggregate_time = \"4ms\", contention = \
                    { distribution = \"uniform\", min = \"131us\", max = \"266us\" } }";
    assert!(shown.contains(expected), "{shown}");
    assert_eq!(parse(&shown).spec(0), parse(&text("rate = \"60mbit\"\nmedium = \"wifi\"", &flow("f", ""))).spec(0));
    // Where there is none, nothing is said of it.
    assert!(!parse(&text("rate = \"60mbit\"", &flow("f", ""))).resolved().contains("medium"));
}

#[test]
fn what_a_medium_cannot_be_is_refused() {
    let cases = [
        "rate = \"unlimited\"\nmedium = \"wifi\"",
        "rate = \"1mbit\"\nreverse = { rate = \"unlimited\" }\nmedium = \"wifi\"",
        "rate = \"1mbit\"\nburst = \"10kB\"\nmedium = \"wifi\"",
        "rate = \"1mbit\"\nschedule = [{ at = \"1s\", rate = \"2mbit\" }]\nmedium = \"wifi\"",
        "rate = \"1mbit\"\nmedium = \"lte\"",
        "rate = \"1mbit\"\nmedium = { aggregate_packets = 0 }",
        "rate = \"1mbit\"\nmedium = { aggregate_time = \"0s\" }",
        "rate = \"1mbit\"\nmedium = { contention = 5 }",
    ];
    insta::assert_snapshot!(cases.map(refused).join("\n"), @r#"
    error: links.air.medium: a shared medium has no unlimited rate | = note: expected a medium between directions with a constant `rate`, without `burst`, `slots`, `schedule` and `trace`
    error: links.air.medium: a shared medium has no unlimited rate | = note: expected a medium between directions with a constant `rate`, without `burst`, `slots`, `schedule` and `trace`
    error: links.air.medium: a shared medium has no token bucket | = note: expected a medium between directions with a constant `rate`, without `burst`, `slots`, `schedule` and `trace`
    error: links.air.medium: a link with a shared medium cannot change by a schedule | = note: expected a medium between directions with a constant `rate`, without `burst`, `slots`, `schedule` and `trace`
    error: links.air.medium: unknown medium `lte` | = note: expected one of `wifi`
    error: links.air.medium.aggregate_packets: must not be zero | = note: expected from 1 to 1024
    error: links.air.medium.aggregate_time: must not be zero | = note: expected a time with its unit, such as "20ms" (ns, us, ms, s, min, h)
    error: links.air.medium.contention: the unit is missing | = note: expected a time with its unit, such as "20ms" (ns, us, ms, s, min, h)
    "#);
}
