//! The points of a sweep: axes, zipped axes, listed points, samples, `*` for ids.

use std::collections::BTreeSet;

use ackclock_scenario::{Override, Scenario};

const BASE: &str = "schema = 1
[run]
duration = \"1s\"
[links.a]
rate = \"10mbit\"
delay = \"5ms\"
[links.b]
rate = \"10mbit\"
delay = \"5ms\"
[[flows]]
id = \"f\"
path = [\"a\", \"b\"]
[[flows]]
id = \"g\"
path = [\"a\"]
";

fn with(text: &str, set: &[&str]) -> Result<Scenario, String> {
    let set: Vec<Override> =
        set.iter().map(|text| Override { flag: "--set".to_owned(), text: (*text).to_owned() }).collect();
    let text = format!("{BASE}{text}");
    Scenario::parse("test.toml", text.as_bytes(), &set).map_err(|error| error.render(false))
}

fn scenario(text: &str) -> Scenario {
    with(text, &[]).unwrap_or_else(|error| panic!("{error}"))
}

fn refused(text: &str) -> String {
    with(text, &[]).map(|scenario| scenario.runs()).expect_err("it is wrong")
}

/// The values of all axes at each point, in the order of the axes.
fn points(scenario: &Scenario) -> Vec<String> {
    let values =
        |run| scenario.params(run).values().map(ToString::to_string).collect::<Vec<_>>().join(" ").replace('"', "");
    (0..scenario.runs()).step_by(scenario.repeat()).map(values).collect()
}

/// Written out and read again it is the same.
fn same_again(scenario: &Scenario) {
    let again = Scenario::parse("again", scenario.resolved().as_bytes(), &[]).unwrap_or_else(|error| panic!("{error}"));
    assert_eq!(points(&again), points(scenario));
    assert_eq!(again.resolved(), scenario.resolved());
}

const ZIP: &str = "[sweep]\nrepeat = 2\naxes.\"flows.f.count\" = [1, 2]
[[sweep.zip]]\n\"links.a.delay\" = [\"1ms\", \"2ms\", \"3ms\"]\n\"links.b.rate\" = [\"1mbit\", \"2mbit\", \"3mbit\"]\n";

#[test]
fn zipped_axes_move_together() {
    let scenario = scenario(ZIP);
    assert_eq!(scenario.runs(), 12);
    assert_eq!(
        points(&scenario),
        ["1 1ms 1mbit", "1 2ms 2mbit", "1 3ms 3mbit", "2 1ms 1mbit", "2 2ms 2mbit", "2 3ms 3mbit"]
    );
    let spec = scenario.spec(5);
    assert_eq!(
        (spec.links[0].forward.delay.as_millis(), spec.links[1].forward.rate.map(|rate| rate.as_bps())),
        (3, Some(3_000_000))
    );
    same_again(&scenario);
    // An argument leaves the rows that have its value.
    let pinned = with(ZIP, &["links.b.rate=2mbit"]).unwrap();
    assert_eq!(points(&pinned), ["1 2ms 2mbit", "2 2ms 2mbit"]);
    same_again(&pinned);
    let error = with(ZIP, &["links.b.rate=7mbit"]).map(|_| ()).unwrap_err();
    assert!(error.contains("no point of the sweep has links.b.rate = \"7mbit\""), "{error}");
}

#[test]
fn two_zips_are_a_grid() {
    let two = "[[sweep.zip]]\n\"links.a.delay\" = [\"1ms\", \"2ms\"]\n[[sweep.zip]]\n\"flows.f.count\" = [1, 2]\n\"flows.g.count\" = [3, 4]\n";
    assert_eq!(points(&scenario(two)), ["1ms 1 3", "1ms 2 4", "2ms 1 3", "2ms 2 4"]);
}

#[test]
fn points_are_listed_one_by_one() {
    let text = "[[sweep.points]]\n\"links.a.delay\" = \"1ms\"\n\"flows.f.cc\" = \"cubic\"
[[sweep.points]]\n\"flows.f.cc\" = { kind = \"newreno\", abc = false }\n\"links.a.delay\" = \"4ms\"\n";
    let scenario = scenario(text);
    assert_eq!(points(&scenario), ["1ms cubic", "4ms {kind:newreno,abc:false}"]);
    same_again(&scenario);
    let pinned = with(text, &["links.a.delay=4ms"]).unwrap();
    assert_eq!(points(&pinned), ["4ms {kind:newreno,abc:false}"]);
    same_again(&pinned);
}

#[test]
fn expectations_compare_points_of_every_kind() {
    let expect =
        |text: &str, when: &str| format!("{text}[[expect]]\nmetric = \"fairness_jain\"\nat_least = 0\n{when}\n");
    let checks = |text: &str| scenario(text).checks();
    // Two points of two runs; of zipped axes the others follow: four points of two runs.
    assert_eq!(checks(&expect(ZIP, "when = { \"links.b.rate\" = \"2mbit\" }")), 4);
    assert_eq!(checks(&expect(ZIP, "baseline = { \"links.a.delay\" = \"1ms\" }")), 8);
    // Each point is compared with that of the same delay; cubic itself with nothing, and 3ms has
    // none.
    let listed = ["1ms cubic", "1ms newreno", "2ms newreno", "2ms cubic", "3ms newreno"].map(|point| {
        let (delay, cc) = point.split_once(' ').unwrap();
        format!("[[sweep.points]]\n\"links.a.delay\" = \"{delay}\"\n\"flows.f.cc\" = \"{cc}\"\n")
    });
    assert_eq!(checks(&expect(&listed.concat(), "baseline = { \"flows.f.cc\" = \"cubic\" }")), 2);
}

const LHS: &str = "[sweep]\nsample = { lhs = 64 }
[sweep.ranges]
\"links.a.rate\" = { min = \"1mbit\", max = \"100mbit\", scale = \"log\" }
\"links.a.delay\" = { min = \"1ms\", max = \"65ms\" }
\"links.a.queue\" = { values = [\"pie\", \"codel\"] }
\"flows.f.count\" = { min = 1, max = 9 }
";

#[test]
fn a_latin_hypercube_covers_every_range_evenly() {
    let scenario = scenario(LHS);
    assert_eq!(scenario.runs(), 64);
    let specs: Vec<_> = (0..64).map(|run| scenario.spec(run)).collect();
    // A part is 1 ms wide, and four digits are finer.
    let delays: BTreeSet<u64> = specs.iter().map(|spec| spec.links[0].forward.delay.as_millis()).collect();
    assert_eq!(delays, (1..65).collect());
    // Half of the points below the geometric mean, 10 Mbit/s.
    let rates = specs.iter().filter_map(|spec| spec.links[0].forward.rate.map(|rate| rate.as_bps()));
    assert_eq!(rates.filter(|&rate| rate < 10_000_000).count(), 32);
    let pie = (0..64).filter(|&run| scenario.params(run)["links.a.queue"] == "pie").count();
    assert_eq!(pie, 32);
    same_again(&scenario);
    // Another seed draws others; another axis changes none of them.
    let seeded = with(LHS, &["run.seed=2"]).unwrap();
    assert_ne!(points(&seeded), points(&scenario));
    let fewer = LHS.replace("\"flows.f.count\" = { min = 1, max = 9 }\n", "");
    let fewer = self::scenario(&fewer);
    assert!((0..64).all(|run| fewer.params(run).iter().all(|(axis, value)| scenario.params(run)[axis] == *value)));
    let pinned = with(LHS, &["links.a.rate=7mbit"]).unwrap();
    assert!((0..64).all(|run| pinned.params(run)["links.a.rate"] == "7mbit"));
    assert!((0..64).all(|run| pinned.params(run)["links.a.delay"] == scenario.params(run)["links.a.delay"]));
    same_again(&pinned);
}

#[test]
fn random_points_are_multiplied_by_the_grid() {
    let text = LHS.replace("lhs = 64", "random = 10") + "[sweep.axes]\n\"flows.g.cc\" = [\"cubic\", \"newreno\"]\n";
    let scenario = scenario(&text);
    let all = points(&scenario);
    assert_eq!(all.len(), 20);
    // Each controller meets the same draws.
    let of = |cc: &str| all.iter().filter_map(|point| point.strip_prefix(cc)).collect::<Vec<_>>();
    assert_eq!((of("cubic").len(), of("cubic")), (10, of("newreno")));
    same_again(&scenario);
}

#[test]
fn a_star_stands_for_every_id() {
    let scenario = scenario(
        "[sweep]\naxes.\"flows.*.cc\" = [\"cubic\", \"newreno\"]\naxes.\"links.*.delay\" = [\"1ms\", \"2ms\"]\n",
    );
    assert_eq!(points(&scenario), ["cubic 1ms", "cubic 2ms", "newreno 1ms", "newreno 2ms"]);
    let spec = scenario.spec(3);
    assert!(spec.links.iter().all(|link| link.forward.delay.as_millis() == 2));
    same_again(&scenario);
    let set = with("", &["flows.*.count=3", "links.*.rate=2mbit"]).unwrap().spec(0);
    assert_eq!(set.flows.len(), 6);
    assert!(set.links.iter().all(|link| link.forward.rate.map(|rate| rate.as_bps()) == Some(2_000_000)));
    let axis = "[sweep]\naxes.\"flows.*.count\" = [1, 2]\n";
    assert_eq!(points(&with(axis, &["flows.*.count=2"]).unwrap()), ["2"]);
    let error = with(axis, &["flows.f.count=2"]).map(|_| ()).unwrap_err();
    assert!(error.contains("the axis `flows.*.count` varies keys that arguments set, and others"), "{error}");
    let error = refused("[sweep]\naxes.\"flows.*.cc\" = [\"cubic\"]\naxes.\"flows.g.cc\" = [\"newreno\"]\n");
    assert!(error.contains("the axes `flows.*.cc` and `flows.g.cc` overlap"), "{error}");
    let error = refused("[sweep]\naxes.\"workloads.*.load\" = [0.5]\n");
    assert!(error.contains("`workloads.*.load`: there are no workloads"), "{error}");
}

#[test]
fn what_is_wrong_is_told_with_its_place() {
    for (text, title) in [
        ("[sweep]\nzip = 3\n", "sweep.zip: not a list of tables"),
        ("[[sweep.zip]]\n", "sweep.zip.0: not a table with axes"),
        ("[[sweep.zip]]\nlinks.a.delay = [\"1ms\"]\n", "sweep.zip.0.links: not an array"),
        ("[[sweep.zip]]\n\"links.a.delay\" = []\n", "sweep.zip.0.\"links.a.delay\": the axis is empty"),
        (
            "[[sweep.zip]]\n\"links.a.delay\" = [\"1ms\", \"2ms\"]\n\"links.b.delay\" = [\"1ms\"]\n",
            "sweep.zip.0.\"links.b.delay\": 1 values, and `links.a.delay` has 2",
        ),
        ("[sweep]\npoints = []\n", "sweep.points: not a list of tables"),
        ("[[sweep.points]]\nlinks.a.delay = \"1ms\"\n", "sweep.points.0.links: not an array"),
        (
            "[[sweep.points]]\n\"links.a.delay\" = \"1ms\"\n[[sweep.points]]\n\"links.b.delay\" = \"1ms\"\n",
            "sweep.points.1.\"links.b.delay\": the first point does not have this path",
        ),
        (
            "[[sweep.points]]\n\"links.a.delay\" = \"1ms\"\n\"links.b.delay\" = \"1ms\"\n[[sweep.points]]\n\"links.b.delay\" = \"1ms\"\n",
            "sweep.points.1: `links.a.delay` is missing",
        ),
        ("[sweep]\nranges = {}\n", "sweep.ranges: nothing is drawn from them"),
        ("[sweep]\nsample = { lhs = 3 }\n", "sweep: the key `ranges` is missing"),
        (
            "[sweep]\nsample = { lhs = 3, random = 3 }\nranges.\"links.a.delay\" = { values = [\"1ms\"] }\n",
            "sweep.sample: the key `lhs` is missing",
        ),
        ("[sweep]\nsample = { lhs = 0 }\nranges.\"links.a.delay\" = { values = [\"1ms\"] }\n", "sweep.sample.lhs: "),
        (
            "[sweep]\nsample = { lhs = 3 }\nranges.\"links.a.delay\" = { values = [] }\n",
            "values: not an array with values",
        ),
        (
            "[sweep]\nsample = { lhs = 3 }\nranges.\"links.a.delay\" = \"1ms\"\n",
            "sweep.ranges.\"links.a.delay\": not a range",
        ),
        (
            "[sweep]\nsample = { lhs = 3 }\nranges.\"links.a.delay\" = { min = \"1ms\", max = \"1mbit\" }\n",
            "max: not the unit of `min`",
        ),
        (
            "[sweep]\nsample = { lhs = 3 }\nranges.\"links.a.delay\" = { min = \"1ms\", max = \"1ms\" }\n",
            "max: not more than `min`",
        ),
        (
            "[sweep]\nsample = { lhs = 3 }\nranges.\"links.a.delay\" = { min = \"0ms\", max = \"1ms\", scale = \"log\" }\n",
            "min: must be positive",
        ),
        (
            "[sweep]\nsample = { lhs = 3 }\nranges.\"links.a.delay\" = { min = \"1 fortnight\", max = \"1ms\" }\n",
            "min: not a number with a unit",
        ),
        ("[sweep]\nsample = { lhs = 3 }\nranges.\"links.a.delay\" = { max = \"1ms\" }\n", "the key `min` is missing"),
        (
            "[sweep]\nsample = { lhs = 3 }\nranges.\"links.a.delay\" = { min = \"1ms\", max = \"9ms\", step = 1 }\n",
            "unknown key `step`",
        ),
        (
            "[sweep]\nsample = { lhs = 3 }\nranges.\"links.c.delay\" = { min = \"1ms\", max = \"9ms\" }\n",
            "there is no link `c`",
        ),
        ("[[sweep.zip]]\n\"links.a.delay\" = [\"1mss\"]\n", "unknown unit `mss`"),
        (
            "[sweep]\nsample = { lhs = 3 }\nranges.\"links.a.delay\" = { min = \"1ms\", max = \"9ms\" }\n[[expect]]\n\
             metric = \"packets\"\nat_least = 0\nwhen = { \"links.a.delay\" = \"1ms\" }\n",
            "when.\"links.a.delay\": drawn from a range",
        ),
    ] {
        let error = refused(text);
        assert!(error.contains(title), "{text}: {error}");
        assert!(error.contains("--> test.toml:"), "{error}");
    }
}

/// A million points, of which two are wrong: a flow that stops before it starts.
fn million() -> String {
    let times =
        |times: &mut dyn Iterator<Item = u64>| times.map(|ms| format!("\"{ms}ms\"")).collect::<Vec<_>>().join(", ");
    let (starts, stops) = (times(&mut (0..1000)), times(&mut (1000..1999).chain([998])));
    format!(
        "[sweep]\nrepeat = 3\naxes.\"flows.f.start\" = [{starts}]\naxes.\"flows.f.stop\" = [{stops}]\n\
         [[expect]]\nmetric = \"packets\"\nat_least = 0\nwhen = {{ \"flows.f.start\" = \"0ms\" }}\n"
    )
}

#[test]
fn of_very_many_points_a_part_is_read_in_advance() {
    let text = format!("{BASE}{}", million()).replace("duration = \"1s\"", "duration = \"2s\"");
    let scenario = Scenario::parse("test.toml", text.as_bytes(), &[]).unwrap_or_else(|error| panic!("{error}"));
    assert_eq!((scenario.runs(), scenario.checks()), (3_000_000, 3000));
    // Any other is read when it is run.
    let params = scenario.params(3 * 123_456 + 1);
    assert_eq!((&params["flows.f.start"], &params["flows.f.stop"]), (&"123ms".into(), &"1456ms".into()));
    let spec = scenario.read_spec(3 * 123_456 + 1).unwrap_or_else(|error| panic!("{error}"));
    assert_eq!((spec.flows[0].start.as_nanos() / 1_000_000, spec.run), (123, 1));
    let wrong = scenario.read_spec(2_999_999).map(|spec| spec.run).expect_err("it stops before it starts");
    assert!(wrong.render(false).contains("flows.f: stops before it starts"), "{}", wrong.render(false));
    assert!(scenario.read_spec(2_999_999 - 6).is_ok());
    // An error in a single value is found in advance.
    let error =
        Scenario::parse("test.toml", text.replace("\"777ms\"", "\"777mss\"").as_bytes(), &[]).expect_err("wrong");
    assert!(error.render(false).contains("unknown unit `mss`"), "{}", error.render(false));
}

const KINDS: &str = "[links.c]\nrate = \"10mbit\"\n
queue = { kind = \"pie\", limit = \"90p\", pie = { limit = \"180p\" }, red = { limit = \"70p\" } }\n";

#[test]
fn an_axis_changes_runs() {
    for (axis, values) in [
        ("links.c.queue.red.limit", "[\"40p\", \"50p\"]"),
        // Other words for one value.
        ("links.a.delay", "[\"10ms\", \"0.01s\"]"),
    ] {
        let error = refused(&format!("{KINDS}[sweep]\naxes.\"{axis}\" = {values}\n"));
        assert!(error.contains(&format!("the axis `{axis}` changes nothing")), "{error}");
        assert!(error.contains("test.toml:"), "{error}");
    }
    // Another axis makes it matter at some points, of which a note speaks.
    let axes = "[sweep]\naxes.\"links.c.queue.kind\" = [\"pie\", \"red\"]\n\
                axes.\"links.c.queue.red.limit\" = [\"40p\", \"50p\"]\n";
    let some = scenario(&format!("{KINDS}{axes}"));
    assert_eq!(
        some.notes(),
        ["`links.c.queue.red.limit` changes nothing at 1 of 2 points, such as links.c.queue.kind = \"pie\""]
    );
    // Axes that move together are looked at one by one, and so are those of points and samples.
    let zip =
        "[[sweep.zip]]\n\"links.a.delay\" = [\"1ms\", \"2ms\"]\n\"links.c.queue.red.limit\" = [\"40p\", \"50p\"]\n";
    let points = "[[sweep.points]]\n\"links.a.delay\" = \"1ms\"\n\"links.c.queue.red.limit\" = \"40p\"\n\
                  [[sweep.points]]\n\"links.a.delay\" = \"2ms\"\n\"links.c.queue.red.limit\" = \"50p\"\n";
    let sample = "[sweep]\nsample.lhs = 3\nranges.\"links.a.delay\" = { min = \"1ms\", max = \"9ms\" }\n\
                  ranges.\"links.c.queue.red.limit\" = { min = \"40p\", max = \"50p\" }\n";
    for text in [zip, points, sample] {
        let error = refused(&format!("{KINDS}{text}"));
        assert!(error.contains("the axis `links.c.queue.red.limit` changes nothing"), "{error}");
        assert!(!error.contains("the axis `links.a.delay`"), "{error}");
    }
}

#[test]
fn an_argument_changes_runs() {
    let axes = "[sweep]\naxes.\"links.a.delay\" = [\"1ms\", \"2ms\"]\naxes.\"links.c.queue\" = [\"pie\", \"codel\"]\n";
    for (text, set) in [
        ("", "links.c.queue.red.limit=40p"),
        ("", "links.*.queue.red.limit=40p"),
        // An axis overrides it.
        (axes, "links.c.queue.limit=40p"),
    ] {
        let error = with(&format!("{KINDS}{text}"), &[set]).map(|scenario| scenario.runs()).expect_err(set);
        assert!(error.contains(&format!("`{set}` changes nothing")) && error.contains("--set:1:1"), "{error}");
    }
    for (text, set) in [
        ("", &["links.c.queue.limit=180p"][..]),
        // Values that exist, or apply anyway, also in other words.
        ("", &["links.a.delay=5ms"]),
        ("", &["links.a.delay=0.005s"]),
        ("", &["links.c.queue.pie.target=15ms"]),
        ("", &["links.a.queue=pfifo", "links.a.queue.kind=pfifo"]),
        ("", &["run.seed=1", "title=something"]),
        // The last of several holds.
        ("", &["links.a.delay=7ms", "links.a.delay=8ms"]),
        ("", &["links.c.queue.red.limit=40p", "links.c.queue.kind=red"]),
        (axes, &["links.a.delay=1ms"]),
        (axes, &["links.c.queue.limit=40p", "links.c.queue=pie"]),
    ] {
        let with = with(&format!("{KINDS}{text}"), set);
        assert!(with.is_ok(), "{set:?}: {}", with.map(|scenario| scenario.runs()).unwrap_err());
    }
}

#[test]
fn what_is_shown_holds() {
    let shown = scenario(KINDS).resolved();
    assert!(shown.contains("pie = { limit = \"180p\" }") && !shown.contains("limit = \"90p\""), "{shown}");
    same_again(&scenario(KINDS));
    // Where the kind varies, others need it.
    let varied = scenario(&format!("{KINDS}[sweep]\naxes.\"links.c.queue.kind\" = [\"pie\", \"codel\"]\n"));
    assert!(varied.resolved().contains("limit = \"90p\""));
    same_again(&varied);
}
