//! Points that are left out, draws that are refused, and parameters that follow from others.

use ackclock_scenario::{Override, Scenario};

const BASE: &str = "schema = 1
[run]
duration = \"1s\"
[links.a]
rate = \"10mbit\"
delay = \"5ms\"
queue = { kind = \"red\", limit = \"400kB\", min = \"30kB\", max = \"90kB\" }
[[flows]]
id = \"f\"
path = [\"a\"]
";

fn with(text: &str, set: &[&str]) -> Result<Scenario, String> {
    let set = set.iter().map(|text| Override { flag: "--set".to_owned(), text: (*text).to_owned() });
    let text = format!("{BASE}{text}");
    Scenario::parse("test.toml", text.as_bytes(), &set.collect::<Vec<_>>()).map_err(|error| error.render(false))
}

fn scenario(text: &str) -> Scenario {
    with(text, &[]).unwrap_or_else(|error| panic!("{error}"))
}

fn refused(text: &str) -> String {
    with(text, &[]).map(|scenario| scenario.runs()).expect_err("it is wrong")
}

fn points(scenario: &Scenario) -> Vec<String> {
    let values = |run| scenario.names(run).into_iter().map(|(_, name)| name).collect::<Vec<_>>().join(" ");
    (0..scenario.runs()).step_by(scenario.repeat()).map(values).collect()
}

/// Written out and read again it has the same points.
fn same_again(scenario: &Scenario) {
    let again = Scenario::parse("again", scenario.resolved().as_bytes(), &[]).unwrap_or_else(|error| panic!("{error}"));
    assert_eq!(points(&again), points(scenario));
}

const GRID: &str = "[sweep]\nrepeat = 2\naxes.\"links.a.queue.min\" = [\"10kB\", \"20kB\", \"30kB\"]\n\
                    axes.\"links.a.queue.max\" = [\"15kB\", \"25kB\", \"60kB\"]\n";

#[test]
fn a_grid_has_the_points_that_meet_a_condition() {
    // Without it, 3 of 9 points are wrong: 20 and 30 of 15 kB, 30 of 25 kB.
    assert_eq!(scenario(GRID).wrong(), 3);
    let grid = scenario(&format!("{GRID}where = \"queue.min < queue.max\"\n"));
    let expected = ["10kB 15kB", "10kB 25kB", "10kB 60kB", "20kB 25kB", "20kB 60kB", "30kB 60kB"];
    assert_eq!((grid.wrong(), grid.runs(), points(&grid)), (0, 12, expected.map(str::to_owned).to_vec()));
    assert!(grid.notes().contains(&"`sweep.where` leaves out 3 of 9 points".to_owned()), "{:?}", grid.notes());
    same_again(&grid);
    // An argument leaves fewer.
    let one =
        with(&format!("{GRID}where = \"queue.min < queue.max\"\n"), &["links.a.queue.max=25kB"]).expect("it is one");
    assert_eq!(points(&one), ["10kB 25kB", "20kB 25kB"]);
    // A baseline that is left out is none: of the points with 25 kB, one has a point with 15 kB.
    let expect = "[[expect]]\nmetric = \"flows.f.0.goodput_bps\"\nruns = \"mean\"\nat_least = 0.1\n\
                  when.\"links.a.queue.max\" = \"25kB\"\nbaseline.\"links.a.queue.max\" = \"15kB\"\n";
    let judged = scenario(&format!("{GRID}where = \"queue.min < queue.max\"\n{expect}"));
    assert_eq!(judged.checks(), 1);
}

#[test]
fn conditions_that_are_wrong_are_told_with_their_places() {
    for (condition, why) in [
        ("\"queue.min < 5ms\"", "a size in bytes and a time are compared"),
        ("\"queue.min\"", "a size in bytes, where something is true or false"),
        ("\"min2 < 5ms\"", "`min2` is no parameter; they are `links.a.queue.min`, `links.a.queue.max`"),
        ("\"queue.min > queue.max * 10\"", "none of 9 points meets it"),
        ("5", "not a text with an expression"),
    ] {
        let error = refused(&format!("{GRID}where = {condition}\n"));
        assert!(error.contains("sweep.where: ") && error.contains(why) && error.contains("test.toml:15"), "{error}");
    }
    let note = "`sweep.where` leaves out no point".to_owned();
    assert!(scenario(&format!("{GRID}where = \"queue.min > 0B\"\n")).notes().contains(&note));
}

const SAMPLE: &str = "[sweep.ranges]\n\"links.a.queue.min\" = { min = \"10kB\", max = \"90kB\" }\n\
                      \"links.a.queue.max\" = { min = \"10kB\", max = \"90kB\" }\n";

fn sizes(scenario: &Scenario) -> Vec<(f64, f64)> {
    let size = |text: &serde_json::Value| ackclock_units::quantity(text.as_str().expect("a size")).expect("a size").0;
    let of = |run| {
        let params = scenario.params(run);
        (size(&params["links.a.queue.min"]), size(&params["links.a.queue.max"]))
    };
    (0..scenario.runs()).map(of).collect()
}

#[test]
fn draws_that_do_not_meet_a_condition_are_replaced() {
    let text = format!("{SAMPLE}[sweep.sample]\nlhs = 200\nwhere = \"queue.min + 10kB < queue.max\"\n");
    let sample = scenario(&text);
    let drawn = sizes(&sample);
    assert_eq!((sample.runs(), sample.wrong()), (200, 0));
    assert!(drawn.iter().all(|(min, max)| min + 10_000.0 < *max), "{drawn:?}");
    assert_eq!(sizes(&scenario(&text)), drawn, "draws depend on nothing but the file");
    same_again(&sample);
    // Uniform on a triangle whose sides are 70 kB, the mean of the larger is two thirds of that
    // above its smallest value: 20 + 2/3 * 70 = 66.7 kB, with a deviation of 70 / sqrt(18 * 200) =
    // 1.2 kB.
    let mean = drawn.iter().map(|(_, max)| max / 1000.0).sum::<f64>() / 200.0;
    assert!((mean - 66.7).abs() < 4.0 * 1.2, "{mean}");
    // The share of refused draws is 1 - (70 / 80)^2 / 2, with a deviation of sqrt(0.617 * 0.383 /
    // 522).
    let notes = sample.notes().join("\n");
    let refused_draws = notes.split("`sweep.sample.where` refuses ").nth(1).and_then(|rest| rest.split(' ').next());
    let refused_draws: f64 = refused_draws.expect("it is said").parse().expect("a number");
    let share = refused_draws / (refused_draws + 200.0);
    assert!((share - 0.617).abs() < 4.0 * 0.0213, "{share}");
    // A condition that nothing meets ends the sampling.
    let error = refused(&text.replace("queue.min + 10kB", "queue.min + 80kB"));
    assert!(error.contains("sweep.sample.where: 0 of ") && error.contains("fewer than one in 1000"), "{error}");
}

#[test]
fn parameters_follow_from_others() {
    let ranges = "[sweep.ranges]\n\"links.a.queue.min\" = { min = \"10kB\", max = \"20kB\" }\n\
                  \"links.a.rate\" = { min = \"1mbit\", max = \"9mbit\" }\n\"links.a.delay\" = { min = \"20ms\", max = \"80ms\" }\n";
    let text = format!(
        "{ranges}[sweep.sample]\nrandom = 50\nderive.\"links.a.queue.max\" = \"3 * queue.min\"\n\
         derive.\"links.a.queue.limit\" = \"max(2 * links.a.rate * delay, queue.max * 2)\"\n\
         derive.\"flows.f.count\" = \"1 + floor(rate / 2mbit)\"\nwhere = \"queue.limit < 150kB\"\n"
    );
    let sample = scenario(&text);
    for run in 0..50 {
        let params = sample.params(run);
        let of = |name: &str| ackclock_units::quantity(params[name].as_str().expect("a text")).expect("a quantity").0;
        let (min, max, limit) = (of("links.a.queue.min"), of("links.a.queue.max"), of("links.a.queue.limit"));
        assert_eq!(max, 3.0 * min);
        // A rate in bit/s times a time are bits.
        let products = (2.0 * of("links.a.rate") / 8.0 * of("links.a.delay")).round();
        assert_eq!(limit, products.max(2.0 * max));
        assert!(limit < 150_000.0);
        assert_eq!(params["flows.f.count"], 1 + (of("links.a.rate") / 2e6).floor() as u64);
    }
    same_again(&sample);
    // An argument takes the place of what is derived.
    let pinned = with(&text, &["flows.f.count=2"]).unwrap_or_else(|error| panic!("{error}"));
    assert!((0..50).all(|run| pinned.params(run)["flows.f.count"] == 2));
    same_again(&pinned);
    assert!(!pinned.resolved().contains("floor"), "{}", pinned.resolved());
    for (derive, why) in [
        ("\"links.a.queue.max\" = \"3 * queue.mim\"", "`queue.mim` is no parameter"),
        ("\"links.a.queue.max\" = \"rate * rate\"", "it comes to no time, rate, size or plain number"),
        ("\"links.a.queue.max\" = \"queue.min - 1MB\"", "it comes to -"),
        ("\"links.a.queue.min\" = \"1kB\"", "overlap"),
        ("\"links.x.rate\" = \"1mbit\"", "there is no link `x`"),
    ] {
        let error = refused(&format!("{ranges}[sweep.sample]\nlhs = 3\nderive.{derive}\n"));
        assert!(error.contains(why) && error.contains("test.toml:1"), "{error}");
    }
}
