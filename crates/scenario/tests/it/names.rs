//! The names of axis values, and points that are wrong.

use ackclock_scenario::{Override, Scenario};

const BASE: &str = "schema = 1
[run]
duration = \"1s\"
[links.a]
rate = \"10mbit\"
delay = \"5ms\"
[[flows]]
id = \"f\"
path = [\"a\"]
[sweep]
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

/// The names of the values of all axes at each point.
fn names(scenario: &Scenario) -> Vec<String> {
    let of = |run| scenario.names(run).into_iter().map(|(_, name)| name).collect::<Vec<_>>().join("; ");
    (0..scenario.runs()).map(of).collect()
}

fn queues(values: &str) -> Vec<String> {
    names(&scenario(&format!("axes.\"links.a.queue\" = [{values}]")))
}

#[test]
fn tables_are_called_by_what_tells_them_apart() {
    // The kind, if it is enough.
    assert_eq!(
        queues("{ kind = \"pfifo\", limit = \"80p\" }, { kind = \"pie\" }, \"codel\""),
        ["pfifo", "pie", "codel"]
    );
    // A quantity says what it is, a number needs its key.
    let limits = "{ kind = \"pfifo\", limit = \"20p\" }, { kind = \"pfifo\", limit = \"80p\" }, { kind = \"pie\" }";
    assert_eq!(queues(limits), ["pfifo 20p", "pfifo 80p", "pie"]);
    let products = "{ kind = \"pfifo\", limit = { bdp = 1 } }, { kind = \"pfifo\", limit = { bdp = 4 } }";
    assert_eq!(queues(products), ["pfifo bdp 1", "pfifo bdp 4"]);
    // A key that only one has, and several that differ.
    assert_eq!(queues("{ kind = \"pie\", ecn = true }, { kind = \"pie\" }"), ["pie ecn true", "pie"]);
    let several = "{ kind = \"codel\", target = \"5ms\", limit = \"90p\" }, { kind = \"codel\", target = \"1ms\", limit = \"80p\" }";
    assert_eq!(queues(several), ["codel target 5ms limit 90p", "codel target 1ms limit 80p"]);
    // Values that differ only in notation have names of their own.
    assert_eq!(queues("\"pie\", { kind = \"pie\", ecn = true }, \"codel\""), ["pie", "pie ecn true", "codel"]);
    // Lists are their entries, and texts and numbers are their own names.
    let lists = "axes.\"links.a.loss.packets\" = [[15, 29], [3]]\naxes.\"flows.f.count\" = [1]";
    let text = BASE.replace("delay = \"5ms\"", "delay = \"5ms\"\nloss = { kind = \"list\", packets = [1] }") + lists;
    let scenario = Scenario::parse("test.toml", text.as_bytes(), &[]).unwrap_or_else(|error| panic!("{error}"));
    assert_eq!(names(&scenario), ["15 29; 1", "3; 1"]);
    assert_eq!(
        scenario.labels(0).into_iter().collect::<Vec<_>>(),
        [("links.a.loss.packets".to_owned(), "15 29".to_owned())]
    );
}

const LABELS: &str = "axes.\"links.a.queue\" = [{ label = \"drop-tail, 4 BDP\", kind = \"pfifo\", limit = \"4bdp\" }, \
                      { kind = \"pie\" }]\n\
                      axes.\"links.a.rate\" = [{ label = \"slow\", value = \"1mbit\" }, \"2mbit\"]\n";

#[test]
fn labels_are_names_and_no_part_of_the_value() {
    let labelled = scenario(LABELS);
    let expected = ["drop-tail, 4 BDP; slow", "drop-tail, 4 BDP; 2mbit", "pie; slow", "pie; 2mbit"];
    assert_eq!(names(&labelled), expected);
    let params = labelled.params(0);
    assert_eq!(params["links.a.queue"], serde_json::json!({ "kind": "pfifo", "limit": "4bdp" }));
    assert_eq!(params["links.a.rate"], "1mbit");
    // Written out and read again, they have the same names, as have those that an argument leaves.
    for text in [labelled.resolved(), labelled.written()] {
        let again = Scenario::parse("again", text.as_bytes(), &[]).unwrap_or_else(|error| panic!("{error}"));
        assert_eq!((names(&again), again.params(3)), (names(&labelled), labelled.params(3)), "{text}");
    }
    let one = with(LABELS, &["links.a.rate=1mbit", "links.a.queue={ kind = \"pie\" }"]).expect("they are values");
    assert_eq!(names(&one), ["pie; slow"]);
    assert!(one.resolved().contains("label = \"slow\""), "{}", one.resolved());
    // Expectations may name them.
    let expect = "[[expect]]\nmetric = \"flows.f.0.goodput_bps\"\nat_least = 0.1\nwhen.\"links.a.queue\" = \
                  \"drop-tail, 4 BDP\"\nbaseline.\"links.a.rate\" = \"slow\"\n";
    let judged = scenario(&format!("{LABELS}{expect}"));
    assert_eq!(judged.checks(), 1);
    let evaluations = judged.evaluations(&vec![Some(vec![Some(1.0)]); 4]);
    assert_eq!(evaluations[0].point, 1);
    assert_eq!(evaluations[0].metric, "flows.f.0.goodput_bps relative to links.a.rate = slow");
}

#[test]
fn labels_of_zips_points_and_samples() {
    let zip = "[[sweep.zip]]\n\"links.a.rate\" = [{ label = \"slow\", value = \"1mbit\" }, \"1mbit\", \"2mbit\"]\n\
               \"links.a.delay\" = [\"1ms\", \"2ms\", \"3ms\"]\n";
    // One that is given once holds for all equal values.
    assert_eq!(names(&scenario(zip)), ["slow; 1ms", "slow; 2ms", "2mbit; 3ms"]);
    let points = "[[sweep.points]]\n\"links.a.queue\" = { label = \"tail\", kind = \"pfifo\" }\n\
                  [[sweep.points]]\n\"links.a.queue\" = \"pie\"\n";
    assert_eq!(names(&scenario(points)), ["tail", "pie"]);
    let sample = "sample = { lhs = 4 }\nranges.\"links.a.queue\" = { values = [{ label = \"tail\", kind = \"pfifo\" }, \
                  { kind = \"pie\", ecn = true }] }\n";
    let mut drawn = names(&scenario(sample));
    drawn.sort_unstable();
    assert_eq!(drawn, ["pie", "pie", "tail", "tail"]);
}

#[test]
fn labels_that_are_wrong_are_told_with_their_places() {
    let twice = refused(
        "axes.\"links.a.rate\" = [{ label = \"x\", value = \"1mbit\" },\n{ label = \"x\", value = \"2mbit\" }]",
    );
    assert_eq!(twice.matches("two values have the label \"x\"").count(), 2, "{twice}");
    assert!(twice.contains("test.toml:11") && twice.contains("test.toml:12"), "{twice}");
    let both = "[[sweep.zip]]\n\"links.a.rate\" = [{ label = \"x\", value = \"1mbit\" }, { label = \"y\", value = \"1mbit\" }]";
    for (text, why) in [
        ("axes.\"links.a.rate\" = [{ label = 5, value = \"1mbit\" }]", "a label is a text on one line"),
        ("axes.\"links.a.rate\" = [{ label = \"\", value = \"1mbit\" }]", "a label is a text on one line"),
        ("axes.\"links.a.rate\" = [{ label = \"x\" }]", "a label without a value"),
        (both, "\"1mbit\" has two labels"),
        ("axes.\"links.a.rate\" = [{ label = \"x\", value = \"1mbit\" }, \"1mbit\"]", "the same value twice"),
    ] {
        let error = refused(text);
        assert!(error.contains(why) && error.contains("test.toml:1"), "{text}: {error}");
    }
}

const RED: &str =
    "axes.\"links.a.queue.min\" = [\"5kB\", \"20kB\"]\naxes.\"links.a.queue.max\" = [\"15kB\", \"60kB\"]\n";

#[test]
fn a_point_that_is_wrong_is_named_and_the_others_are_right() {
    let red = BASE.replace("delay = \"5ms\"", "delay = \"5ms\"\nqueue = { kind = \"red\", limit = \"100kB\" }");
    let scenario = |axes: &str| {
        Scenario::parse("test.toml", format!("{red}{axes}").as_bytes(), &[]).map_err(|error| error.render(false))
    };
    // 20 kB are more than 15 kB.
    let sweep = scenario(RED).unwrap_or_else(|error| panic!("{error}"));
    assert_eq!((sweep.runs(), sweep.wrong()), (4, 1));
    let wrong = (0..4).filter(|&run| sweep.read_spec(run).is_err()).collect::<Vec<_>>();
    assert_eq!(wrong, [2]);
    let notes = sweep.notes().join("\n");
    assert!(
        notes.contains("the point links.a.queue.min = \"20kB\", links.a.queue.max = \"15kB\" is wrong: links.a.queue"),
        "{notes}"
    );
    // A value that is wrong everywhere is refused, and says where it was tried.
    let error = scenario(&RED.replace("60kB", "60xB")).map(|sweep| sweep.runs()).expect_err("there is no unit xB");
    assert!(
        error.contains("links.a.queue.max") && error.contains("at the point links.a.queue.min = \"5kB\""),
        "{error}"
    );
    // A row of a list is a point of its own.
    let rows = "[[sweep.points]]\n\"links.a.queue.min\" = \"20kB\"\n\"links.a.queue.max\" = \"15kB\"\n\
                [[sweep.points]]\n\"links.a.queue.min\" = \"5kB\"\n\"links.a.queue.max\" = \"16kB\"\n";
    assert_eq!(scenario(rows).map(|sweep| sweep.wrong()), Ok(1));
    // Nothing is left of one that is wrong at all points.
    let error = scenario(&rows.replace("\"5kB\"", "\"17kB\"")).map(|sweep| sweep.runs()).expect_err("nothing is right");
    assert!(!error.contains("at the point"), "{error}");
}
