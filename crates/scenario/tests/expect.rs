//! Expectations: which runs they are about, and what meets them.

use ackclock_scenario::{Measures, Miss, Scenario};
use serde_json::{Value, json};

fn scenario(expects: &str) -> Scenario {
    let text = format!(
        "schema = 1\n[run]\nduration = \"10s\"\n[links.a]\nrate = \"10mbit\"\n[[flows]]\nid = \"f\"\ncount = 2\npath = [\"a\"]\n\
         [sweep]\nrepeat = 2\naxes.\"links.a.queue.kind\" = [\"pfifo\", \"pie\"]\naxes.\"links.a.delay\" = [\"1ms\", \"2ms\"]\n{expects}"
    );
    Scenario::parse("test.toml", text.as_bytes(), &[]).unwrap_or_else(|error| panic!("{error}"))
}

/// A summary in which the median RTTs of the two flows are these.
fn summary(rtts: [Option<f64>; 2]) -> Value {
    let flow = |number: usize| json!({ "id": format!("f.{number}"), "rtt_ms": { "p50": rtts[number] } });
    json!({ "flows": [flow(0), flow(1)], "links": [] })
}

/// The misses when the median RTTs of run n are n + 1 and 10 (n + 1).
fn judge(expect: &str) -> Vec<Miss> {
    let scenario = scenario(&format!("[[expect]]\n{expect}\n"));
    assert_eq!(scenario.runs(), 8);
    let measures: Vec<Measures> = (0..8)
        .map(|run| f64::from(run) + 1.0)
        .map(|rtt| scenario.measure(&summary([Some(rtt), Some(10.0 * rtt)])))
        .collect();
    let misses = scenario.judge(&measures);
    assert!(misses.len() <= scenario.checks());
    misses
}

fn runs(misses: &[Miss]) -> Vec<usize> {
    misses.iter().map(|miss| miss.run).collect()
}

#[test]
fn bounds_hold_for_every_run() {
    assert_eq!(runs(&judge("metric = \"flows.f.0.rtt_ms.p50\"\nat_most = 6")), [6, 7]);
    assert_eq!(runs(&judge("metric = \"flows.f.0.rtt_ms.p50\"\nat_least = 3\nat_most = 6")), [0, 1, 6, 7]);
    let misses = judge("metric = \"flows.f.1.rtt_ms.p50\"\nat_least = 15.5\nat_most = 70");
    assert_eq!(runs(&misses), [0, 7]);
    assert_eq!((misses[0].found, misses[0].expected.as_str()), (Some(10.0), "from 15.5 to 70"));
}

#[test]
fn several_flows_are_reduced_to_one_number() {
    for (reduce, first) in [("min", 1.0), ("max", 10.0), ("sum", 11.0), ("mean", 5.5)] {
        let misses = judge(&format!("metric = \"flows.*.rtt_ms.p50\"\nreduce = \"{reduce}\"\nat_most = 0"));
        assert_eq!(misses[0].found, Some(first));
        assert_eq!(misses[0].metric, format!("{reduce} of flows.*.rtt_ms.p50"));
    }
}

#[test]
fn when_selects_points() {
    let expect = "metric = \"flows.f.0.rtt_ms.p50\"\nat_most = 0\nwhen = ";
    assert_eq!(
        runs(&judge(&format!("{expect}{{ \"links.a.queue.kind\" = \"pie\", \"links.a.delay\" = \"2ms\" }}"))),
        [6, 7]
    );
    assert_eq!(runs(&judge(&format!("{expect}{{ \"links.a.delay\" = [\"1ms\"] }}"))), [0, 1, 4, 5]);
    assert_eq!(judge(&format!("{expect}{{ \"links.a.delay\" = [\"1ms\", \"2ms\"] }}")).len(), 8);
}

#[test]
fn a_baseline_is_the_same_run_with_other_values() {
    // Runs 4 to 7 (pie) against runs 0 to 3 (pfifo): 5/1, 6/2, 7/3, 8/4.
    let misses =
        judge("metric = \"flows.f.0.rtt_ms.p50\"\nat_most = 2.5\nbaseline = { \"links.a.queue.kind\" = \"pfifo\" }");
    assert_eq!(runs(&misses), [4, 5]);
    assert_eq!((misses[0].found, misses[1].found), (Some(5.0), Some(3.0)));
    assert_eq!(misses[0].metric, "flows.f.0.rtt_ms.p50 relative to links.a.queue.kind = \"pfifo\"");
}

#[test]
fn no_samples_meet_no_bound() {
    let scenario = scenario("[[expect]]\nmetric = \"flows.*.rtt_ms.p50\"\nreduce = \"min\"\nat_least = 0\n");
    let measures: Vec<Measures> = (0..8).map(|_| scenario.measure(&summary([Some(1.0), None]))).collect();
    assert_eq!(scenario.judge(&measures).len(), 8);
    assert!(scenario.judge(&measures).iter().all(|miss| miss.found.is_none()));
}
