//! Responsiveness in round trips per minute, against arithmetic.

use std::ops::ControlFlow;

use ackclock_scenario::Scenario;
use ackclock_sim::{Recorders, World};
use ackclock_trace::{FlowSummary, ProbesSummary, ResponsivenessSummary, Summary};

fn parse(text: &str) -> Scenario {
    Scenario::parse("test.toml", text.as_bytes(), &[]).unwrap_or_else(|error| panic!("{error}\n{text}"))
}

fn run(text: &str) -> Summary<()> {
    ackclock_sim::run(&parse(text).spec(0), &mut |_| ControlFlow::Continue(())).expect("the data is intact")
}

fn parts(summary: &Summary<()>) -> &ResponsivenessSummary {
    summary.responsiveness.as_ref().expect("probes")
}

fn probes(flow: &FlowSummary) -> &ProbesSummary {
    flow.application.as_ref().and_then(|application| application.probes.as_ref()).expect("probes")
}

/// Foreign probes over one link and self probes over another one, of this rate and 20 ms each way,
/// with no load on either.
fn idle(rate: &str, probe: &str) -> Summary<()> {
    run(&format!(
        "schema = 1\nrun.duration = \"30s\"\n\
         links.a = {{ rate = {rate}, delay = \"20ms\" }}\nlinks.b = {{ rate = {rate}, delay = \"20ms\" }}\n\
         [[flows]]\nid = \"probe\"\npath = [\"a\"]\nnagle = false\napplication = {{ kind = \"probe\"{probe} }}\n\
         [[flows]]\nid = \"load\"\npath = [\"b\"]\nnagle = false\napplication = {{ kind = \"load\", transfer = \"idle\" }}\n"
    ))
}

#[test]
fn an_idle_path_has_as_many_round_trips_as_fit_into_a_minute() {
    let summary = idle("\"unlimited\"", "");
    // Every part of a probe takes 40 ms.
    assert_eq!(summary.responsiveness_rpm, Some(1500.0));
    let found = parts(&summary);
    assert_eq!([found.tcp_ms, found.tls_ms, found.http_ms, found.loaded_ms], [Some(40.0); 4]);
    // From 0 s on every 0.1 s: that of 29.9 s would be answered at 30.02 s.
    assert_eq!((probes(&summary.flows[0]).made, found.foreign_probes), (300, 299));
    // The first one comes within 0.1 s.
    assert!([299, 300].contains(&found.self_probes), "{found:?}");
}

#[test]
fn each_part_takes_its_time_to_transmit() {
    let summary = idle("\"10mbit\"", "");
    let found = parts(&summary);
    // 0.8 us a byte: SYN and SYN-ACK of 60 bytes; 517 bytes in one packet, behind the last ACK of the
    // handshake, and 3500 in three; 100 bytes each way.
    let expected = [40.0 + 0.096, 40.0 + 0.0008 * (52.0 + 569.0 + 3656.0), 40.0 + 0.0008 * 304.0];
    let close = |found: Option<f64>, expected: f64| (found.expect("samples") - expected).abs() < 1e-9;
    assert!(close(found.tcp_ms, expected[0]), "{found:?}");
    assert!(close(found.tls_ms, expected[1]), "{found:?}");
    assert!(close(found.http_ms, expected[2]) && close(found.loaded_ms, expected[2]), "{found:?}");
    let foreign = 60_000.0 / (expected.iter().sum::<f64>() / 3.0);
    let rpm = (foreign + 60_000.0 / expected[2]) / 2.0;
    assert!(close(summary.responsiveness_rpm, rpm), "{summary:?}");
    // Without TLS the request follows the last ACK at once.
    let summary = idle("\"10mbit\"", ", tls = false");
    let found = parts(&summary);
    let http = expected[2] + 0.0008 * 52.0;
    assert!(close(found.tcp_ms, expected[0]) && close(found.http_ms, http), "{found:?}");
    assert_eq!(found.tls_ms, None);
    assert!(close(found.foreign_rpm, 60_000.0 / ((expected[0] + http) / 2.0)), "{found:?}");
}

/// Load over a link of 10 Mbit/s and 20 ms each way with 100 kB in the network and 300 kB in the
/// sender's buffer, and foreign probes over the same link, both from 10 s on.
fn loaded(transfer: &str, replenish: &str) -> Summary<()> {
    run(&format!(
        "schema = 1\nrun.duration = \"40s\"\n\
         links.a = {{ rate = \"10mbit\", delay = \"20ms\", queue = {{ kind = \"pfifo\", limit = \"1000p\" }} }}\n\
         [[flows]]\nid = \"load\"\npath = [\"a\"]\nhost = \"rfc\"\nnagle = false\nsend_buffer = \"300kB\"\nreceive_buffer = \"100kB\"\n\
         application = {{ kind = \"load\", transfer = \"{transfer}\", warmup = \"10s\"{replenish} }}\n\
         [[flows]]\nid = \"probe\"\npath = [\"a\"]\nstart = \"10s\"\nnagle = false\napplication = \"probe\"\n"
    ))
}

#[test]
fn queues_and_send_buffers_count() {
    // The foreign probes' part of 125 kB in 0.1 s: SYN or SYN-ACK, the part of the handshake of
    // TLS, request or response, three ACKs.
    for (transfer, probe) in [("upload", 60.0 + 569.0 + 152.0 + 156.0), ("download", 60.0 + 3656.0 + 152.0 + 156.0)] {
        let summary = loaded(transfer, ", replenish = false");
        let found = parts(&summary);
        // By Little's law: so many segments of 1448 bytes at 1.2 ms each. Off by the packets
        // between two ACKs, and by what the longest twentieth would add.
        let of = |bytes: f64| bytes / 1448.0 * 1.2 / (1.0 - probe / 125e3);
        let near = |found: Option<f64>, expected: f64| (found.expect("samples") - expected).abs() < 5.0;
        assert!(near(found.tcp_ms, of(100e3)), "{transfer}: {found:?}");
        assert!(near(found.http_ms, of(100e3)), "{transfer}: {found:?}");
        assert!(near(found.loaded_ms, of(300e3)), "{transfer}: {found:?}");
        let load =
            |summary: &Summary<()>| summary.flows[0].application.as_ref().and_then(|of| of.load.clone()).expect("load");
        let (rate, kind) = (load(&summary).goodput_bps, load(&summary).transfer);
        assert!(kind == transfer && rate > 9.1e6 && rate < 10e6 * 1448.0 / 1500.0, "{transfer}: {rate}");
        // With 5 ms of data ahead in the sender's buffer, a round trip is 5 ms longer than the
        // network's, and the link is as busy as before.
        let ahead = loaded(transfer, "");
        assert!(near(parts(&ahead).tcp_ms, of(100e3)), "{transfer}: {ahead:?}");
        assert!(near(parts(&ahead).loaded_ms, of(100e3) + 5.0), "{transfer}: {:?}", parts(&ahead));
        assert!((load(&ahead).goodput_bps / rate - 1.0).abs() < 0.01, "{transfer}: {:?}", load(&ahead));
    }
}

#[test]
fn places_of_connections_decide_nothing() {
    let text = "schema = 1\nrun.duration = \"20s\"\nlinks.a = { rate = \"5mbit\", delay = \"20ms\", queue = \"codel\" }\n\
         [[flows]]\nid = \"load\"\npath = [\"a\"]\ncount = 3\nnagle = false\napplication = \"load\"\n\
         [[flows]]\nid = \"up\"\npath = [\"a\"]\nnagle = false\napplication = { kind = \"load\", transfer = \"upload\" }\n\
         [[flows]]\nid = \"probe\"\npath = [\"a\"]\nnagle = false\napplication = \"probe\"\n";
    let summary = |keeps: bool| {
        let mut world = World::new(&parse(text).spec(0));
        if keeps {
            world.keep_places();
        }
        world.run(Recorders::default(), &mut |_| ControlFlow::Continue(())).expect("the data is intact");
        world.summary()
    };
    let found = summary(false);
    assert!(found.responsiveness_rpm.is_some_and(|rpm| rpm > 100.0 && rpm < 1500.0), "{found:?}");
    assert_eq!(summary(true), found);
    // The probes of loads begin at times of their own.
    let first = |number: usize| probes(&found.flows[number]).http_ms.distribution;
    assert_ne!(first(0), first(1));
}

#[test]
fn too_many_open_probes_are_left_out() {
    let summary = run("schema = 1\nrun.duration = \"12s\"\nlinks.a = { rate = \"unlimited\", delay = \"20s\" }\n\
         [[flows]]\nid = \"probe\"\npath = [\"a\"]\napplication = { kind = \"probe\", interval = \"10ms\" }\n");
    // The probes of ten seconds are open.
    let found = probes(&summary.flows[0]);
    assert_eq!((found.made, found.skipped, found.answered), (1000, 200, 0));
    assert_eq!((summary.responsiveness_rpm, parts(&summary).foreign_rpm), (None, None));
}

#[test]
fn a_stopped_load_closes() {
    for transfer in ["upload", "download"] {
        let summary = run(&format!(
            "schema = 1\nrun.duration = \"20s\"\nlinks.a = {{ rate = \"10mbit\", delay = \"20ms\" }}\n\
             [[flows]]\nid = \"load\"\npath = [\"a\"]\nstop = \"5s\"\n\
             application = {{ kind = \"load\", transfer = \"{transfer}\", interval = \"1s\" }}\n\
             [[flows]]\nid = \"other\"\npath = [\"a\"]\nstart = \"15s\"\n"
        ));
        let load = summary.flows[0].application.as_ref().and_then(|of| of.load.clone()).expect("load");
        // The load has the link for itself, and data in buffers at its end still arrives.
        let bytes = load.bytes as f64;
        assert!(bytes > 5.0e6 && bytes < 12e6, "{transfer}: {load:?}");
        assert_eq!(probes(&summary.flows[0]).made, 5, "{transfer}");
        assert!(summary.flows[1].goodput_bps > 9e6, "{transfer}: {:?}", summary.flows[1].goodput_bps);
    }
}

#[test]
fn what_cannot_be_is_refused() {
    let error = |flow: &str| {
        let text = format!(
            "schema = 1\nrun.duration = \"5s\"\nlinks.a = {{ rate = \"1mbit\" }}\n[[flows]]\nid = \"f\"\npath = [\"a\"]\n{flow}\n"
        );
        Scenario::parse("test.toml", text.as_bytes(), &[]).expect_err("it is refused").to_string()
    };
    for (flow, expected) in [
        (
            "application = { kind = \"probe\", interval = \"9ms\" }",
            ["application.interval: too short", "at least 10ms"],
        ),
        ("application = { kind = \"load\", transfer = \"both\" }", ["unknown transfer `both`", "`upload`"]),
        ("application = { kind = \"load\", tls = true }", ["`load` has no key `tls`", "a key of `probe`"]),
        ("application = \"probe\"\nbytes = \"1kB\"", ["bytes: not with `probe`", "`stop`"]),
        ("application = \"load\"\nhost = \"smoltcp\"", ["`load` not with a kernel or a smoltcp host", "another"]),
        ("application = \"probe\"\nresults = \"sum\"", ["results: not with this application", "`each`"]),
        ("application = { kind = \"probe\", server_hello = \"2MB\" }", ["application.server_hello", "from 1B to 1MB"]),
    ] {
        let found = error(flow);
        assert!(expected.iter().all(|text| found.contains(text)), "{expected:?} in\n{found}");
    }
}
