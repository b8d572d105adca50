//! A shaper whose rate follows pings, in closed loop, and what is refused.

use std::ops::ControlFlow;

use ackclock_scenario::{Override, Scenario};

const FILE: &str = r#"
schema = 1
run.duration = "30s"
links.router = { rate = "100mbit", queue = { kind = "cake", bandwidth = "5mbit" }, reverse = { queue = "pfifo", autorate = false } }
links.modem = { rate = "3mbit", delay = "10ms", queue = { kind = "pfifo", limit = "300p" } }
flows = [
    { id = "f", path = ["router", "modem"] },
    { id = "p", path = ["router", "modem"], transport = "udp", application = { kind = "ping", interval = "50ms" } },
]
"#;

const ON: &str = "links.router.autorate={probes=\"p\", min_rate=\"500kbit\", max_rate=\"20mbit\"}";

fn parse(settings: &[&str]) -> Result<Scenario, String> {
    let overrides = |text: &&str| Override { flag: "--set".to_owned(), text: (*text).to_owned() };
    let overrides: Vec<Override> = settings.iter().map(overrides).collect();
    Scenario::parse("file", FILE.as_bytes(), &overrides).map_err(|error| error.to_string())
}

/// Goodput of the transfer in Mbit/s and the median round trip of the pings in milliseconds.
fn measured(settings: &[&str]) -> (f64, f64) {
    let spec = parse(settings).expect("a scenario").spec(0);
    let summary = ackclock_sim::run(&spec, &mut |_| ControlFlow::Continue(())).expect("nobody interrupts");
    let json = serde_json::to_value(summary).expect("numbers and names");
    let number = |flow: usize, pointer: &str| json["flows"][flow].pointer(pointer).and_then(|value| value.as_f64());
    (number(0, "/goodput_bps").expect("goodput") / 1e6, number(1, "/rtt_ms/p50").expect("round trips"))
}

/// At 5 Mbit/s the modem of 3 Mbit/s has the queue, 300 packets or 1.2 s when it is full. Pings
/// that are late by more than 30 ms one way lower the rate: the round trip is 20 ms, and the queue
/// below what the probes tolerate, twice 30 ms, and a packet of 4 ms. Half of the modem's rate is
/// what the rate may fall to by a step of 0.75 from two thirds.
#[test]
fn the_rate_follows_the_modem() {
    let (fixed, autorate) = (measured(&[]), measured(&[ON]));
    assert!(fixed.1 > 600.0, "{fixed:?}");
    assert!(autorate.1 < 20.0 + 2.0 * 30.0 + 4.0 && autorate.0 > 1.5, "{autorate:?}");
}

#[test]
fn what_cannot_be_is_refused() {
    for (settings, expected) in [
        (&["links.router.autorate=true"][..], "links.router.autorate: not the right type"),
        (&["links.router.autorate={}"], "the key `probes` is missing"),
        (&["links.router.autorate={probes=\"f\"}"], "links.router.autorate.probes: there is no such flow of probes"),
        (&["links.router.autorate={probes=\"x\"}"], "links.router.autorate.probes: there is no such flow of probes"),
        (&["links.modem.autorate={probes=\"p\"}"], "links.modem.autorate: `pfifo` has no rate that autorate could set"),
        (&[ON, "links.router.queue=\"cake\""], "`cake` has no rate that autorate could set"),
        (&[ON, "links.router.autorate.min_rate=\"30mbit\""], "`min_rate` is above `max_rate`"),
        (&[ON, "links.router.autorate.detection_thr=7"], "`detection_thr` is above `detection_window`"),
        (&[ON, "links.router.reverse={queue=\"pfifo\"}"], "`pfifo` has no rate that autorate could set"),
        (&[ON, "links.router.burst=\"5kB\""], "a token bucket (`burst`) does not change"),
        (&[ON, "links.router.device_limit=\"bql\""], "a link with a device (`device_limit`) does not change"),
        (&[ON, "links.router.schedule=[{at=\"1s\", queue={bandwidth=\"1mbit\"}}]"], "the queue is that of `autorate`"),
        (&["links.modem.device_completion=\"1ms\""], "links.modem.device_completion: has no effect"),
        (&["links.modem.device_limit=\"x\""], "links.modem.device_limit"),
        (&["links.modem.device_limit={limit_min=\"2kB\", limit_max=\"1kB\"}"], "limit_min: above `limit_max`"),
    ] {
        let error = parse(settings).err().unwrap_or_default();
        assert!(error.contains(expected), "{settings:?}: {error}");
    }
}
