//! The effect of the keys of a queue discipline.

use ackclock_aqm::{ControlLaw, DqRateEstimator, HfscClass, RedBottom, ServiceCurve};
use ackclock_scenario::{Override, Scenario};
use ackclock_sim::spec::QueueSpec;
use ackclock_units::Span;

const BASE: &str = "schema = 1\n[run]\nduration = \"10s\"\n[links.a]\nrate = \"10mbit\"\n";
const FLOW: &str = "[[flows]]\nid = \"f\"\npath = [\"a\"]\n";

fn queue(settings: &str) -> QueueSpec {
    let text = format!("{BASE}queue = {{ {settings} }}\n{FLOW}");
    let scenario = Scenario::parse("test.toml", text.as_bytes(), &[]).unwrap_or_else(|error| panic!("{error}"));
    scenario.spec(0).links.remove(0).forward.queue
}

#[test]
fn the_departure_rate_is_measured_as_linux_or_the_rfc_does() {
    for (value, expected) in [
        ("false", None),
        ("true", Some(DqRateEstimator::Linux)),
        ("\"linux\"", Some(DqRateEstimator::Linux)),
        ("\"rfc8033\"", Some(DqRateEstimator::Rfc8033)),
    ] {
        let QueueSpec::Pie(pie) = queue(&format!("kind = \"pie\", dq_rate_estimator = {value}")) else { panic!() };
        let QueueSpec::FqPie(fq_pie) = queue(&format!("kind = \"fq_pie\", dq_rate_estimator = {value}")) else {
            panic!()
        };
        assert_eq!((pie.dq_rate_estimator, fq_pie.dq_rate_estimator), (expected, expected));
    }
}

/// A link with this queue, with arguments or axes.
fn with(sweep: &str, arguments: &[&str]) -> Scenario {
    let queue =
        "queue = { kind = \"pie\", limit = \"180p\", pie = { target = \"20ms\" }, codel = { target = \"3ms\" } }";
    let text = format!("{BASE}{queue}\n{FLOW}{sweep}");
    let set = |text: &&str| Override { flag: "--set".to_owned(), text: (*text).to_owned() };
    let arguments: Vec<Override> = arguments.iter().map(set).collect();
    Scenario::parse("test.toml", text.as_bytes(), &arguments).unwrap_or_else(|error| panic!("{error}"))
}

/// The targets of the queues at all points, in milliseconds.
fn targets(scenario: &Scenario) -> Vec<u64> {
    let target = |point| match scenario.spec(point).links.remove(0).forward.queue {
        QueueSpec::Pie(pie) => pie.target.as_nanos() / 1_000_000,
        QueueSpec::Codel(codel) => codel.target.as_nanos() / 1_000_000,
        other => panic!("{other:?}"),
    };
    (0..scenario.runs()).map(target).collect()
}

#[test]
fn what_is_set_later_wins_over_the_table_of_a_kind() {
    assert_eq!(targets(&with("", &[])), [20]);
    let axis = "[sweep]\naxes.\"links.a.queue.target\" = [\"5ms\", \"20ms\", \"100ms\"]\n";
    assert_eq!(targets(&with(axis, &[])), [5, 20, 100]);
    let kinds = "[sweep]\naxes.\"links.a.queue.kind\" = [\"pie\", \"codel\"]\n";
    assert_eq!(targets(&with(kinds, &[])), [20, 3]);
    for (arguments, expected) in [
        (&["links.a.queue.target=7ms"][..], [7, 7]),
        (&["links.a.queue.target=7ms", "links.a.queue.pie.target=9ms"], [9, 7]),
        (&["links.a.queue.pie.target=9ms", "links.a.queue.target=7ms"], [7, 7]),
    ] {
        let scenario = with(kinds, arguments);
        assert_eq!(targets(&scenario), expected, "{arguments:?}");
        // The shown file has one value, and is the same scenario again.
        let shown = scenario.resolved();
        let again = Scenario::parse("shown.toml", shown.as_bytes(), &[]).unwrap_or_else(|error| panic!("{error}"));
        assert_eq!(targets(&again), expected, "{shown}");
    }
}

#[test]
fn codel_has_the_arithmetic_of_linux_or_of_the_rfc() {
    for (key, expected) in [
        ("", ControlLaw::Linux),
        (", control_law = \"linux\"", ControlLaw::Linux),
        (", control_law = \"rfc8289\"", ControlLaw::Rfc8289),
    ] {
        let QueueSpec::Codel(codel) = queue(&format!("kind = \"codel\"{key}")) else { panic!() };
        let QueueSpec::FqCodel(fq_codel) = queue(&format!("kind = \"fq_codel\"{key}")) else { panic!() };
        assert_eq!((codel.control_law, fq_codel.control_law), (expected, expected));
    }
}

#[test]
fn a_hash_can_be_pinned() {
    let seeds = |key: &str| {
        let QueueSpec::FqCodel(fq_codel) = queue(&format!("kind = \"fq_codel\"{key}")) else { panic!() };
        let QueueSpec::FqPie(fq_pie) = queue(&format!("kind = \"fq_pie\"{key}")) else { panic!() };
        let QueueSpec::Sfb(sfb) = queue(&format!("kind = \"sfb\"{key}")) else { panic!() };
        [fq_codel.hash_seed, fq_pie.hash_seed, sfb.hash_seed]
    };
    assert_eq!(seeds(""), [None; 3]);
    assert_eq!(seeds(", hash_seed = false"), [None; 3]);
    assert_eq!(seeds(", hash_seed = 7"), [Some(7); 3]);
}

#[test]
fn adaptive_red_and_its_authors_have_ns2s_settings() {
    let red = |settings: &str| {
        let QueueSpec::Red(red) = queue(&format!("kind = \"red\", {settings}")) else { panic!() };
        (red.floyd.map(|floyd| floyd.mark_p), red.adaptive.map(|adaptive| adaptive.bottom))
    };
    assert_eq!(red("floyd = true"), (Some(Some(0.1)), None));
    assert_eq!(red("floyd = { mark_p = 0.5 }"), (Some(Some(0.5)), None));
    assert_eq!(red("floyd = { mark_p = false }"), (Some(None), None));
    assert_eq!(red("adaptive = true"), (None, Some(RedBottom::Fixed(0.01))));
    assert_eq!(red("adaptive = { bottom = 0.02 }"), (None, Some(RedBottom::Fixed(0.02))));
    assert_eq!(red("adaptive = { bottom = \"automatic\" }"), (None, Some(RedBottom::Automatic)));
}

#[test]
fn settings_of_queues_are_checked() {
    for (settings, title) in [
        ("kind = \"pie\", dq_rate_estimator = \"linus\"", "not an estimator"),
        ("kind = \"pie\", dq_rate_estimator = 1", "not an estimator"),
        ("kind = \"codel\", control_law = \"rfc\"", "unknown control law"),
        ("kind = \"fq_codel\", hash_seed = -1", "must not be negative"),
        ("kind = \"red\", floyd = { mark_p = 1.5 }", "out of range"),
        ("kind = \"red\", adaptive = { bottom = 1.5 }", "out of range"),
    ] {
        let text = format!("{BASE}queue = {{ {settings} }}\n{FLOW}");
        let error = Scenario::parse("test.toml", text.as_bytes(), &[]).unwrap_err();
        assert!(error.to_string().contains(title), "{settings}: {error}");
    }
}

/// Classes of HTB, a line each.
fn classes(lines: &str) -> Result<Scenario, String> {
    let text = format!("{BASE}[links.a.queue]\nkind = \"htb\"\n[links.a.queue.classes]\n{lines}{FLOW}");
    Scenario::parse("test.toml", text.as_bytes(), &[]).map_err(|error| error.to_string())
}

#[test]
fn classes_are_read_in_their_order() {
    let web = "web = { parent = \"all\", rate = \"1mbit\", mpu = \"84B\", dscp = [\"ef\", 8], flows = \"f\", queue = \"codel\" }\n";
    let scenario = classes(&format!("{web}all = {{ rate = \"5mbit\", ceil = \"6mbit\" }}\n")).expect("a tree");
    let QueueSpec::Htb(htb) = scenario.spec(0).links.remove(0).forward.queue else { panic!() };
    let [web, all] = &htb.classes[..] else { panic!("{htb:?}") };
    assert_eq!((&*web.name, web.parent.as_deref(), web.queue.name()), ("web", Some("all"), "codel"));
    assert_eq!((web.filter.dscp, &*web.filter.flows[0], web.settings.overhead.mpu), (1 << 46 | 1 << 8, "f", 84));
    assert_eq!((&*all.name, all.settings.ceil.map(|ceil| ceil.as_bps())), ("all", Some(6_000_000)));
}

/// tc-hfsc(8): a curve with two slopes, or with 200 bytes within 5 ms, which are 320 kbit/s.
#[test]
fn curves_have_slopes_or_a_delay() {
    let read = |curves: &str| {
        let classes = format!("classes = {{ a = {{ {curves} }} }}");
        let QueueSpec::Hfsc(hfsc) = queue(&format!("kind = \"hfsc\", {classes}")) else { panic!() };
        hfsc.classes[0].settings.clone()
    };
    let (d, m2) = (Span::from_millis(5), 64_000);
    let of_delay = read(
        "rt = { umax = \"200B\", dmax = \"5ms\", m2 = \"64kbit\" }, ul = { m2 = \"64kbit\" }, ls = { m2 = \"1bit\" }",
    );
    assert_eq!(of_delay.rt, Some(ServiceCurve { m1: 320_000, d, m2 }));
    assert_eq!((of_delay.ul, of_delay.ls), (Some(ServiceCurve::linear(m2)), Some(ServiceCurve::linear(1))));
    let slopes = read("ls = { m1 = \"320kbit\", d = \"5ms\", m2 = \"64kbit\" }");
    assert_eq!(slopes, HfscClass { ls: of_delay.rt, ..HfscClass::default() });
    for (curves, expected) in [
        ("", "the key `ls` is missing"),
        ("ls = \"1mbit\"", "classes.a.ls: not a table"),
        ("rt = { m1 = \"1mbit\", d = \"1ms\" }", "the key `m2` is missing"),
        ("ls = { m1 = \"1mbit\", m2 = \"1mbit\" }", "classes.a.ls.m1: has no effect"),
        ("ls = { umax = \"1kB\", m2 = \"1mbit\" }", "classes.a.ls.umax: has no effect"),
        ("ls = { dmax = \"1ms\", m2 = \"1mbit\" }", "classes.a.ls.dmax: has no effect"),
        ("ls = { m1 = \"1mbit\", d = \"1ms\", umax = \"1kB\", dmax = \"1ms\", m2 = \"1mbit\" }", "classes.a.ls.umax"),
        ("rt = { m2 = \"1mbit\" }, ul = { m2 = \"1mbit\" }", "`ul` needs `ls`"),
    ] {
        let text = format!("{BASE}queue = {{ kind = \"hfsc\", classes = {{ a = {{ {curves} }} }} }}\n{FLOW}");
        let error = Scenario::parse("test.toml", text.as_bytes(), &[]).expect_err(curves).to_string();
        assert!(error.contains(expected), "{curves}: {error}");
    }
}

/// Each error names the key.
#[test]
fn classes_that_do_not_fit_are_errors() {
    for (lines, expected) in [
        ("web = 1\n", "links.a.queue.classes.web: not a table"),
        ("web = {}\n", "links.a.queue.classes.web: the key `rate` is missing"),
        ("\"a b\" = { rate = \"1mbit\" }\n", "not a valid name of a class"),
        ("web = { rate = \"1mbit\", parent = \"all\" }\n", "a `parent` is no class"),
        ("web = { rate = \"1mbit\", flows = \"g\" }\n", "classes.web.flows: there is no such flow"),
        ("web = { rate = \"1mbit\", dscp = 64 }\n", "classes.web.dscp"),
        ("web = { rate = \"1mbit\", ceil = \"100kbit\" }\n", "ceil must be at least rate"),
        ("web = { rate = \"1mbit\", queue = \"htb\" }\n", "links.a.queue.classes.web.queue"),
        ("web = { rate = \"1mbit\", colour = 1 }\n", "links.a.queue.classes.web: unknown key `colour`"),
    ] {
        let error = classes(lines).expect_err(lines);
        assert!(error.contains(expected), "{lines}{error}");
    }
}
