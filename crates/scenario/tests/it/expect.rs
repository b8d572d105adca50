//! Expectations: which runs they are about, and what meets them.

use ackclock_scenario::{Measures, Miss, Override, Scenario, ScenarioError};
use ackclock_units::Time;
use serde_json::{Value, json};

fn scenario(expects: &str) -> Scenario {
    attempt(expects, &[]).unwrap_or_else(|error| panic!("{error}"))
}

/// One axis of the sweep has a single value.
fn attempt(expects: &str, overrides: &[Override]) -> Result<Scenario, ScenarioError> {
    let text = format!(
        "schema = 1\n[run]\nduration = \"10s\"\n[links.a]\nrate = \"10mbit\"\n[links.b]\nrate = \"10mbit\"\n\
         [[flows]]\nid = \"f\"\ncount = 2\npath = [\"a\"]\n\
         [sweep]\nrepeat = 2\naxes.\"links.a.queue.kind\" = [\"pfifo\", \"pie\"]\naxes.\"links.a.delay\" = [\"1ms\", \"2ms\"]\n\
         axes.\"links.b.delay\" = [\"1ms\"]\n{expects}"
    );
    Scenario::parse("test.toml", text.as_bytes(), overrides)
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
    let measures: Vec<Option<Measures>> = (0..8)
        .map(|run| f64::from(run) + 1.0)
        .map(|rtt| Some(scenario.measure(&summary([Some(rtt), Some(10.0 * rtt)]))))
        .collect();
    let misses = scenario.misses(&scenario.evaluations(&measures));
    assert!(misses.len() <= scenario.checks());
    misses
}

fn runs(misses: &[Miss]) -> Vec<usize> {
    misses.iter().map(|miss| miss.run.expect("a run")).collect()
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
    let measures: Vec<Option<Measures>> = (0..8).map(|_| Some(scenario.measure(&summary([Some(1.0), None])))).collect();
    let misses = scenario.misses(&scenario.evaluations(&measures));
    assert_eq!(misses.len(), 8);
    assert!(misses.iter().all(|miss| miss.found.is_none()));
}

#[test]
fn a_ratio_to_0_is_a_miss_with_its_reason() {
    let to_zero = scenario(
        "[[expect]]\nmetric = \"flows.f.0.rtt_ms.p50\"\nratio_to = \"flows.f.1.rtt_ms.p50\"\nat_least = 1\n\
         [[expect]]\nmetric = \"flows.f.1.rtt_ms.p50\"\nbaseline = { \"links.a.delay\" = \"1ms\" }\nat_least = 1\n",
    );
    let measures: Vec<Option<Measures>> =
        (0..8).map(|_| Some(to_zero.measure(&summary([Some(5.0), Some(0.0)])))).collect();
    let misses = to_zero.misses(&to_zero.evaluations(&measures));
    // All 8 runs of the one, and those at 2 ms of the other.
    assert_eq!((misses.len(), to_zero.checks()), (12, 12));
    assert!(misses.iter().all(|miss| miss.found.is_none()), "{misses:?}");
    assert!(misses.iter().all(|miss| miss.reason.is_some_and(|reason| reason.contains("relative to is 0"))));
}

#[test]
fn an_expectation_that_checks_nothing_is_an_error() {
    let metric = "[[expect]]\nmetric = \"flows.f.0.rtt_ms.p50\"\nat_least = 1\n";
    let kind = "\"links.a.queue.kind\"";
    for (keys, place) in [
        (format!("when = {{ {kind} = [] }}"), "expect.0.when: no value"),
        (format!("when = {{ {kind} = \"pie\" }}\nbaseline = {{ {kind} = \"pie\" }}"), "expect.0.baseline: compared"),
        (
            format!(
                "when = {{ {kind} = [\"pie\"], \"links.a.delay\" = \"1ms\" }}\nbaseline = {{ {kind} = \"pie\", \"links.a.delay\" = \"1ms\" }}"
            ),
            "expect.0.baseline: compared",
        ),
        ("baseline = { \"links.b.delay\" = \"1ms\" }".to_owned(), "expect.0.baseline: compared"),
    ] {
        let error = attempt(&format!("{metric}{keys}\n"), &[]).unwrap_err().render(false);
        assert!(error.contains(place) && error.contains("check nothing"), "{keys}: {error}");
        assert_eq!(error.matches("error").count(), 1, "{keys}: {error}");
    }
    // One that an argument leaves without points is none: the file still has them.
    let only = Override { flag: "--set".to_owned(), text: "links.a.queue.kind=pfifo".to_owned() };
    let scenario = attempt(&format!("{metric}baseline = {{ {kind} = \"pfifo\" }}\n"), &[only]).unwrap();
    assert_eq!(scenario.checks(), 0);
    // A point that differs from the baseline along one of two axes is one to compare.
    let keys = format!("when = {{ {kind} = \"pie\" }}\nbaseline = {{ {kind} = \"pie\", \"links.a.delay\" = \"1ms\" }}");
    assert_eq!(attempt(&format!("{metric}{keys}\n"), &[]).unwrap().checks(), 2);
    // Without a sweep there is nothing to choose from.
    let none = Override { flag: "--set".to_owned(), text: "sweep={}".to_owned() };
    let error = attempt(&format!("{metric}{keys}\n"), &[none]).unwrap_err().render(false);
    assert!(error.contains("is not an axis") && error.contains("there is none"), "{error}");
}

#[test]
fn a_statistic_of_the_runs_of_a_point_is_judged_with_its_spread() {
    // Points of two runs each: (1, 2), (3, 4), (5, 6), (7, 8).
    let misses = judge("metric = \"flows.f.0.rtt_ms.p50\"\nruns = \"median\"\nat_most = 5.5");
    assert_eq!(misses.len(), 1);
    assert_eq!((misses[0].point, misses[0].run, misses[0].found), (3, None, Some(7.5)));
    assert_eq!(misses[0].metric, "median over 2 runs of flows.f.0.rtt_ms.p50");
    // 25 % of the way from the smaller to the larger.
    assert_eq!(judge("metric = \"flows.f.0.rtt_ms.p50\"\nruns = \"p25\"\nat_most = 0")[3].found, Some(7.25));
    let scenario = scenario("[[expect]]\nmetric = \"flows.f.0.rtt_ms.p50\"\nruns = \"mean\"\nat_least = 1\n");
    assert_eq!(scenario.checks(), 4);
    let measures: Vec<Option<Measures>> =
        (0..8).map(|run| Some(scenario.measure(&summary([Some(f64::from(run)), None])))).collect();
    let json = scenario.evaluations(&measures)[1].json(scenario.params(2), scenario.labels(2));
    assert_eq!(
        json,
        json!({
            "metric": "flows.f.0.rtt_ms.p50",
            "params": { "links.a.queue.kind": "pfifo", "links.a.delay": "2ms", "links.b.delay": "1ms" },
            "expected": "at least 1", "runs": "mean", "met": true, "found": 2.5, "reason": null, "runs_met": 2,
            "checks": 1, "misses": 0, "values": [2.0, 3.0],
            "spread": { "min": 2.0, "p25": 2.25, "p50": 2.5, "p75": 2.75, "max": 3.0, "mean": 2.5 },
        })
    );
}

#[test]
fn a_share_is_relative_to_another_metric_of_the_run() {
    let ratio = "metric = \"flows.f.1.rtt_ms.p50\"\nratio_to = { metric = \"flows.*.rtt_ms.p50\", reduce = \"sum\" }\nat_most = 0";
    let misses = judge(ratio);
    assert!(misses.iter().all(|miss| miss.found == Some(10.0 / 11.0)), "{misses:?}");
    assert_eq!(misses[0].metric, "flows.f.1.rtt_ms.p50 relative to sum of flows.*.rtt_ms.p50");
    assert_eq!(
        judge("metric = \"flows.f.1.rtt_ms.p50\"\nratio_to = \"flows.f.0.rtt_ms.p50\"\nat_most = 0")[7].found,
        Some(10.0)
    );
}

#[test]
fn a_window_is_measured_for_itself() {
    let scenario = scenario(
        "[[expect]]\nmetric = \"flows.f.0.goodput_bps\"\nfrom = \"2s\"\nto = \"4s\"\nat_least = 8\n\
         [[expect]]\nmetric = \"flows.*.goodput_bps\"\nreduce = \"sum\"\nratio_to = \"links.a.forward.rate_bps\"\nfrom = \"4s\"\nat_least = 1\n\
         [[expect]]\nmetric = \"flows.f.1.goodput_bps\"\nfrom = \"2s\"\nto = \"4s\"\nat_least = 8\n",
    );
    // Each once, and none without need.
    let seconds = |from, to| (Time::from_secs(from), Time::from_secs(to));
    assert_eq!(scenario.spec(0).windows, [seconds(2, 4), seconds(4, 10)]);
    let flow = |number: u32, goodput: f64| json!({ "id": format!("f.{number}"), "goodput_bps": goodput });
    let window = |goodputs: [f64; 2]| {
        json!({
            "flows": [flow(0, goodputs[0]), flow(1, goodputs[1])],
            "links": [{ "id": "a.forward", "rate_bps": 8 }],
        })
    };
    let summary = json!({ "flows": [], "links": [], "windows": [window([7.0, 9.0]), window([3.0, 5.5])] });
    assert_eq!(scenario.measure(&summary), [Some(7.0), Some(8.5 / 8.0), Some(9.0)]);
    let names: Vec<String> =
        scenario.evaluations(&[]).into_iter().step_by(4).map(|evaluation| evaluation.metric).collect();
    assert_eq!(names[0], "flows.f.0.goodput_bps from 2s to 4s");
    assert_eq!(names[1], "sum of flows.*.goodput_bps relative to links.a.forward.rate_bps from 4s on");
}

#[test]
fn flows_taken_one_by_one_measure_as_the_whole_summary_does() {
    let metrics = [
        ("flows.f.1.goodput_bps", ""),
        ("flows.*.rtt_ms.p50", "reduce = \"max\""),
        ("flows.f.0.sent_packets", "ratio_to = { metric = \"flows.*.sent_packets\", reduce = \"sum\" }"),
        ("flows.f.0.acked_bytes", "ratio_to = \"links.a.forward.dequeued\""),
        ("links.a.forward.dequeued", "ratio_to = \"flows.f.0.timeouts\""),
        ("flows.*.fct_s", "reduce = \"min\""),
        ("fairness_jain", ""),
        ("packets", ""),
        ("flows.*.goodput_bps", "reduce = \"range\"\nfrom = \"1s\"\nto = \"2s\""),
    ];
    let expects = metrics.map(|(metric, more)| format!("[[expect]]\nmetric = \"{metric}\"\n{more}\nat_least = 0\n"));
    let scenario = scenario(&expects.concat());
    let summary = ackclock_sim::run(&scenario.spec(0), &mut |_| std::ops::ControlFlow::Continue(())).unwrap();
    let whole = scenario.measure(&serde_json::to_value(&summary).unwrap());
    assert_eq!(format!("{:?}", scenario.measure_summary(&summary)), format!("{whole:?}"));
    assert_eq!(whole.iter().filter(|value| value.is_none()).count(), 1, "without `bytes` there is no fct_s: {whole:?}");
}

#[test]
fn an_expectation_says_which_published_result_it_stands_for() {
    let bound = "metric = \"flows.f.0.rtt_ms.p50\"\nat_most = 100\n";
    let claims =
        "source = \"Figure 2a\"\npublished = \"median RTT below 100 ms\"\nkernel = \"90 ms\"\nnote = \"see below\"\n";
    let with =
        scenario(&format!("[[expect]]\n{bound}[[expect]]\n{claims}{bound}[[expect]]\nsource = \"Table 1\"\n{bound}"));
    let sources: Vec<(usize, &str)> = with.claims().map(|(number, claim)| (number, claim.source.as_str())).collect();
    assert_eq!(sources, [(1, "Figure 2a"), (2, "Table 1")]);
    let measures: Vec<Option<Measures>> = (0..8).map(|_| Some(with.measure(&summary([Some(1.0), None])))).collect();
    let evaluations = with.evaluations(&measures);
    // Each expectation has four points.
    let numbers: Vec<usize> = evaluations.iter().map(|evaluation| evaluation.number).collect();
    assert_eq!(numbers, [0, 0, 0, 0, 1, 1, 1, 1, 2, 2, 2, 2]);
    let json = [0, 4, 8].map(|place| evaluations[place].json(serde_json::Map::new(), Default::default()));
    assert_eq!(json[0].get("source"), None);
    let text = serde_json::to_string(&json[1]).expect("JSON");
    assert!(text.ends_with(
        r#""source":"Figure 2a","published":"median RTT below 100 ms","kernel":"90 ms","note":"see below"}"#
    ));
    assert!(serde_json::to_string(&json[2]).expect("JSON").ends_with(r#","source":"Table 1"}"#));
    // Without these keys it is what it was.
    let mut plain = json[2].clone();
    plain.as_object_mut().expect("an object").shift_remove("source");
    assert_eq!(plain, json[0]);
}

#[test]
fn what_a_document_reports_has_a_source() {
    let attempt = |keys: &str| {
        let text = format!("[[expect]]\nmetric = \"flows.f.0.rtt_ms.p50\"\nat_most = 1\n{keys}\n");
        attempt(&text, &[]).map_or_else(|error| error.to_string(), |_| String::new())
    };
    for key in ["published", "kernel", "note"] {
        let error = attempt(&format!("{key} = \"1 ms\""));
        let title = format!("expect.0.{key}: it says something about a `source`, and there is none");
        assert!(error.contains(&title) && error.contains("expected `source` beside it"), "{error}");
        assert_eq!(attempt(&format!("source = \"Figure 1\"\n{key} = \"1 ms\"")), "");
        let error = attempt(&format!("source = \"Figure 1\"\n{key} = 1"));
        assert!(error.contains("expected a string"), "{error}");
    }
    let error = attempt("source = \" \"\nnote = \"why\"");
    assert!(error.contains("expect.0.source: no text") && !error.contains("there is none"), "{error}");
}
