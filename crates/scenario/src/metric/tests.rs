use super::*;
use serde_json::json;

fn shape() -> Shape {
    Shape {
        flows: vec![("reno".to_owned(), 2), ("cubic".to_owned(), 1)],
        groups: vec!["web".to_owned()],
        workloads: vec!["web".to_owned(), "web.up_to_100kB".to_owned()],
        links: vec!["bottleneck".to_owned()],
        subflows: 2,
        places: vec!["receiver".to_owned(), "bottleneck.forward".to_owned()],
        hosts: vec!["left".to_owned(), "right".to_owned()],
        commands: vec![("ping".to_owned(), Some("ping")), ("iperf".to_owned(), Some("json"))],
    }
}

#[test]
fn a_star_stands_for_any_text() {
    assert!(glob("reno.*", "reno.12"));
    assert!(glob("*", ""));
    assert!(glob("r*o.*0", "reno.10"));
    assert!(!glob("reno.*", "cubic.0"));
    assert!(!glob("reno", "reno.0"));
}

#[test]
fn flows_and_links_are_found_by_id() {
    let summary = json!({
        "fairness_jain": 0.5,
        "flows": [{ "id": "reno.0", "rtt_ms": { "p50": 1.5 } }, { "id": "reno.1", "rtt_ms": { "p50": null } }],
        "links": [{ "id": "bottleneck.forward", "dropped": { "limit": 3 } }],
        "live": { "behind_s": 0.5, "compared_packets": 12, "lateness_ms": { "p99": 0.2 }, "hosts": [{ "id": "left", "device_dropped": 7 }] },
        "commands": [
            { "id": "ping", "exit": 0, "rtt_ms": { "p50": 20.5, "p99": 21.5 } },
            { "id": "iperf", "exit": 1, "json": { "end": { "streams": [{ "x": 1 }, { "x": 2.5 }] }, "rtt_ms": 3 } },
        ],
    });
    for (text, values) in [
        ("fairness_jain", vec![Some(0.5)]),
        ("flows.reno.0.rtt_ms.p50", vec![Some(1.5)]),
        ("flows.*.rtt_ms.p50", vec![Some(1.5), None]),
        ("links.bottleneck.forward.dropped.limit", vec![Some(3.0)]),
        ("links.bottleneck.forward.dropped.early", vec![Some(0.0)]),
        ("live.lateness_ms.p99", vec![Some(0.2)]),
        ("live.compared_packets", vec![Some(12.0)]),
        ("live.hosts.left.device_dropped", vec![Some(7.0)]),
        ("commands.*.exit", vec![Some(0.0), Some(1.0)]),
        ("commands.*.rtt_ms.p50", vec![Some(20.5)]),
        ("commands.ping.rtt_ms.p99", vec![Some(21.5)]),
        ("commands.iperf.json.end.streams.1.x", vec![Some(2.5)]),
        ("commands.iperf.json.rtt_ms", vec![Some(3.0)]),
        ("commands.iperf.json.end.streams.2.x", vec![None]),
    ] {
        assert_eq!(Metric::parse(text, Part::Run, &shape()).unwrap().values(&summary), values, "{text}");
    }
}

#[test]
fn an_unknown_metric_suggests_a_known_one() {
    for (text, suggestion) in [
        ("flows.reno.0.rtt_ms.p51", "flows.reno.0.rtt_ms.p5"),
        ("flows.reno.0.goodput_bsp", "flows.reno.0.goodput_bps"),
        ("flows.reno.0.rtt_ms", "flows.reno.0.rtt_ms.min"),
        ("fairnes_jain", "fairness_jain"),
        ("links.bottleneck.forward.sojourn.p50", "links.bottleneck.forward.sojourn_ms.p50"),
        ("live.latenes_ms.p99", "live.lateness_ms.p99"),
        ("live.hosts.left.device_droped", "live.hosts.left.device_dropped"),
        ("commands.ping.rtt_ms", "commands.ping.rtt_ms.min"),
        ("command.ping.exit", "commands.ping.exit"),
        ("groups.web.fct_ms.p9", "groups.web.fct_ms.p5"),
        ("workloads.web.up_to_100kB.slowdon.p99", "workloads.web.up_to_100kB.slowdown.p99"),
    ] {
        assert_eq!(
            Metric::parse(text, Part::Run, &shape()).unwrap_err().suggestion.as_deref(),
            Some(suggestion),
            "{text}"
        );
    }
    for (text, suggestion) in [
        ("flows.reon.0.goodput_bps", "flows.reno.0.goodput_bps"),
        ("flows.reno.goodput_bps", "flows.reno.0.goodput_bps"),
        ("commands.iperv.exit", "commands.iperf.exit"),
        ("groups.wep.fct_ms.p99", "groups.web.fct_ms.p99"),
    ] {
        let metric = Metric::parse(text, Part::Run, &shape()).unwrap();
        assert_eq!(metric.matches(text, &shape()).unwrap_err().suggestion.as_deref(), Some(suggestion), "{text}");
    }
}

#[test]
fn what_is_not_read_out_of_an_output_is_no_metric() {
    for text in ["commands.iperf.rtt_ms.p50", "commands.ping.json.end"] {
        let metric = Metric::parse(text, Part::Run, &shape()).unwrap();
        assert!(metric.is_live());
        assert!(metric.matches(text, &shape()).unwrap_err().expected.contains("measure = "), "{text}");
    }
    assert!(Metric::parse("live.behind_s", Part::Window, &shape()).is_err());
    assert!(Metric::parse("commands.ping.json.", Part::Run, &shape()).is_err());
    let text = "live.behind_s";
    let none = Shape { hosts: Vec::new(), commands: Vec::new(), ..shape() };
    assert!(Metric::parse(text, Part::Run, &none).unwrap().matches(text, &none).is_err());
}

#[test]
fn reordering_is_found_by_place() {
    let of = |ratio: f64| json!({ "ratio": ratio, "displacement": { "p50": -2.0 }, "rbd": { "mean": 1.5 } });
    let summary = json!({
        "flows": [{
            "id": "reno.0",
            "reordering": { "receiver": of(0.25), "bottleneck.forward": of(0.5) },
            "datagrams": { "reordering": { "ratio": 0.125 } },
        }],
    });
    for (text, value) in [
        ("flows.reno.0.reordering.receiver.ratio", 0.25),
        ("flows.*.reordering.bottleneck.forward.ratio", 0.5),
        ("flows.reno.*.reordering.bottleneck.forward.displacement.p50", -2.0),
        ("flows.reno.0.reordering.receiver.rbd.mean", 1.5),
        ("flows.reno.0.datagrams.reordering.ratio", 0.125),
    ] {
        let metric = Metric::parse(text, Part::Run, &shape()).unwrap_or_else(|_| panic!("{text}"));
        assert_eq!(metric.values(&summary), [Some(value)], "{text}");
        assert!(metric.matches(text, &shape()).is_ok(), "{text}");
    }
    let text = "flows.reno.0.reordering.bottleneck.forwards.ratio";
    let unknown = Metric::parse(text, Part::Run, &shape()).unwrap().matches(text, &shape()).unwrap_err();
    assert!(unknown.expected.contains("`record.reordering`: `receiver`"), "{}", unknown.expected);
    assert_eq!(unknown.suggestion.as_deref(), Some("flows.reno.0.reordering.bottleneck.forward.ratio"));
    assert!(Metric::parse("flows.reno.0.reordering.receiver.ration", Part::Run, &shape()).is_err());
    assert!(all().iter().any(|(_, names)| names.iter().any(|name| name == "flows.ID.reordering.PLACE.ratio")));
}

#[test]
fn subflows_are_found_by_number() {
    let summary = json!({ "flows": [{ "id": "reno.0", "multipath": {
        "plain": false, "reordered_bytes_max": 7, "subflows": [{ "path": 1 }, { "path": 2, "rtt_ms": { "p50": 4.5 } }],
    } }] });
    let read = |text: &str| {
        let metric = Metric::parse(text, Part::Run, &shape()).and_then(|metric| {
            metric.matches(text, &shape())?;
            Ok(metric)
        });
        metric.map(|metric| metric.values(&summary)).map_err(|unknown| unknown.expected)
    };
    assert_eq!(read("flows.reno.0.multipath.subflows.1.rtt_ms.p50"), Ok(vec![Some(4.5)]));
    assert_eq!(read("flows.reno.0.multipath.reordered_bytes_max"), Ok(vec![Some(7.0)]));
    let expected = "`multipath.subflows.N.path` with a number of a subflow from 0 to 1";
    assert_eq!(read("flows.reno.0.multipath.subflows.2.path"), Err(expected.to_owned()));
    let unknown = read("flows.reno.0.multipath.subflow.1.path").expect_err("there is no such metric");
    assert!(
        unknown.contains("`multipath.subflows.N.goodput_bps`") && !unknown.contains("`retransmissions"),
        "{unknown}"
    );
    let many = read("flows.reno.0.nonsense").expect_err("there is no such metric");
    assert!(many.contains("`rtt_ms.NAME`") && many.len() < 1000, "{many}");
}
