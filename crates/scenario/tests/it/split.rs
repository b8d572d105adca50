//! Several paths: which packets take which, and which way ACKs come back.

use std::ops::ControlFlow;

use ackclock_scenario::Scenario;
use ackclock_sim::spec::{SplitRule, WayBack};
use ackclock_trace::Summary;
use ackclock_units::Span;

/// Four paths of one link each, and flows over them.
fn text(flow: &str) -> String {
    let links =
        ["a", "b", "c", "d"].map(|name| format!("[links.{name}]\nrate = \"10mbit\"\ndelay = \"10ms\"\n")).concat();
    format!("schema = 1\n[run]\nduration = \"10s\"\n{links}[[flows]]\nid = \"f\"\nhost = \"linux-6.1\"\n{flow}\n")
}

fn parse(flow: &str) -> Result<Scenario, String> {
    Scenario::parse("test", text(flow).as_bytes(), &[]).map_err(|error| error.render(false))
}

fn run(flow: &str) -> Summary<()> {
    let scenario = parse(flow).unwrap_or_else(|error| panic!("{error}"));
    ackclock_sim::run(&scenario.spec(0), &mut |_| ControlFlow::Continue(())).expect("nobody interrupts")
}

/// Packets offered to each link, forward and back.
fn offered(summary: &Summary<()>) -> Vec<[u64; 2]> {
    let of = |link: usize| [summary.links[2 * link].packets.offered, summary.links[2 * link + 1].packets.offered];
    (0..4).map(of).collect()
}

const ALL: &str = "paths = [[\"a\"], [\"b\"], [\"c\"], [\"d\"]]";

#[test]
fn splits_are_read_with_their_defaults() {
    let split = |keys: &str| {
        let scenario = parse(&format!("{ALL}\n{keys}")).unwrap_or_else(|error| panic!("{error}"));
        scenario.spec(0).flows[0].split.clone().expect("several paths")
    };
    let plain = split("");
    assert_eq!((plain.others.len(), &plain.along), (3, &SplitRule::round_robin(4)));
    assert_eq!((&plain.back, plain.after_handshake), (&WayBack::Over(0), false));
    let weights = vec![4, 3, 2, 1];
    for (kind, rule) in [
        ("weighted", SplitRule::Weighted(weights.clone())),
        ("random", SplitRule::Random(weights.clone())),
        ("flow_hash", SplitRule::FlowHash(weights.clone())),
    ] {
        assert_eq!(split(&format!("split = {{ kind = \"{kind}\", weights = [4, 3, 2, 1] }}")).along, rule);
    }
    assert_eq!(split("split = \"random\"").along, SplitRule::Random(vec![1; 4]));
    let flip = split("split = { kind = \"flip\", period = \"2s\" }\nreturn_path = \"split\"\ndiverge = \"handshake\"");
    assert_eq!(flip.along, SplitRule::Flip { period: Span::from_secs(2), paths: 4 });
    assert_eq!((&flip.back, flip.after_handshake), (&WayBack::Split(flip.along.clone()), true));
    assert_eq!(split("return_path = \"second\"").back, WayBack::Over(1));
    assert_eq!(split("return_path = 4").back, WayBack::Over(3));
}

#[test]
fn what_cannot_be_is_refused() {
    let error = |keys: &str| parse(keys).map(|_| ()).expect_err(keys);
    let has = |error: String, part: &str| assert!(error.contains(part), "{part}: {error}");
    has(error("paths = [[\"a\"]]"), "not several paths");
    let many = vec!["[\"a\"]"; 17].join(", ");
    has(error(&format!("paths = [{many}]")), "not several paths");
    has(error(&format!("{ALL}\nsplit = {{ kind = \"weighted\", weights = [1, 2] }}")), "not 4 weights");
    has(error(&format!("{ALL}\nsplit = \"weighted\"")), "`weights` is missing");
    has(error(&format!("{ALL}\nsplit = {{ kind = \"random\", weights = [0, 0, 0, 0] }}")), "no path has a weight");
    has(error(&format!("{ALL}\nsplit = {{ kind = \"send_vector\", weights = [1, 1, 1, 1] }}")), "for two paths");
    has(error(&format!("{ALL}\nsplit = \"flip\"")), "`period` is missing");
    has(error(&format!("{ALL}\nsplit = {{ kind = \"flip\", period = \"0s\" }}")), "split.period");
    has(error(&format!("{ALL}\nreturn_path = \"third\"")), "no way back");
    has(error(&format!("{ALL}\nreturn_path = 5")), "no way back");
    has(error(&format!("{ALL}\ndiverge = \"later\"")), "diverge");
    has(error("path = [\"a\"]\nreturn_path = \"second\""), "return_path");
}

#[test]
fn each_path_has_its_share() {
    let found =
        offered(&run(&format!("{ALL}\nbytes = \"3MB\"\nsplit = {{ kind = \"weighted\", weights = [4, 3, 2, 1] }}")));
    let all: u64 = found.iter().map(|[data, _]| data).sum();
    for ([data, acks], weight) in found.iter().zip([4, 3, 2, 1]) {
        // In turn: never more than a few packets from the share.
        assert!(data.abs_diff(all * weight / 10) <= 4, "{found:?}");
        assert_eq!(*acks > 0, weight == 4, "{found:?}");
    }
    let drawn =
        offered(&run(&format!("{ALL}\nbytes = \"3MB\"\nsplit = {{ kind = \"random\", weights = [4, 3, 2, 1] }}")));
    let all: u64 = drawn.iter().map(|[data, _]| data).sum();
    for ([data, _], weight) in drawn.iter().zip([4.0, 3.0, 2.0, 1.0]) {
        let (mean, share) = (all as f64 * weight / 10.0, weight / 10.0);
        // Five standard deviations of a binomial distribution.
        assert!((*data as f64 - mean).abs() < 5.0 * (mean * (1.0 - share)).sqrt(), "{drawn:?}");
    }
}

#[test]
fn flows_keep_their_path_by_their_hash() {
    let summary = run(&format!("{ALL}\ncount = 64\nbytes = \"20kB\"\nsplit = \"flow_hash\""));
    assert!(summary.flows.iter().all(|flow| flow.displacement.late == 0.0 && flow.completed_s.is_some()));
    // 16 flows on average on each path: none is empty, and none has half.
    let found = offered(&summary);
    let all: u64 = found.iter().map(|[data, _]| data).sum();
    assert!(found.iter().all(|[data, _]| *data > all / 16 && *data < all / 2), "{found:?}");
}

#[test]
fn a_route_flips_with_time() {
    let split = "split = { kind = \"flip\", period = \"2500ms\" }";
    let found = offered(&run(&format!(
        "{ALL}\n{split}\nnagle = false\napplication = {{ kind = \"cbr\", rate = \"1mbit\", size = \"1000B\" }}"
    )));
    let all: u64 = found.iter().map(|[data, _]| data).sum();
    // A quarter of ten seconds each.
    assert!(found.iter().all(|[data, _]| data.abs_diff(all / 4) <= all / 50), "{found:?}");
}

#[test]
fn acks_come_back_as_told() {
    let back = |keys: &str| offered(&run(&format!("{ALL}\nbytes = \"1MB\"\n{keys}")));
    let taken = |found: &[[u64; 2]]| found.iter().map(|[_, acks]| *acks > 0).collect::<Vec<_>>();
    assert_eq!(taken(&back("")), [true, false, false, false]);
    assert_eq!(taken(&back("return_path = \"second\"")), [false, true, false, false]);
    assert_eq!(taken(&back("return_path = 3")), [false, false, true, false]);
    let split = back("return_path = \"split\"");
    let all: u64 = split.iter().map(|[_, acks]| acks).sum();
    assert!(split.iter().all(|[_, acks]| acks.abs_diff(all / 4) <= 2), "{split:?}");
    // Data against the paths, and its ACKs along them.
    let reverse = back("direction = \"reverse\"\nreturn_path = \"second\"");
    assert_eq!(reverse.iter().map(|[along, _]| *along > 0).collect::<Vec<_>>(), [false, true, false, false]);
    let all: u64 = reverse.iter().map(|[_, data]| data).sum();
    assert!(reverse.iter().all(|[_, data]| data.abs_diff(all / 4) <= 4), "{reverse:?}");
}

#[test]
fn paths_may_part_after_the_handshake() {
    // All weight on the second path: SYN and SYN-ACK alone take the first.
    let keys = "bytes = \"100kB\"\nsplit = { kind = \"weighted\", weights = [0, 1, 0, 0] }\nreturn_path = \"split\"";
    let at_once = offered(&run(&format!("{ALL}\n{keys}")));
    assert_eq!((at_once[0], at_once[1][0] > 60), ([0, 0], true), "{at_once:?}");
    let after = offered(&run(&format!("{ALL}\n{keys}\ndiverge = \"handshake\"")));
    assert_eq!(after[0], [1, 1], "{after:?}");
    assert_eq!(after[1][0] + 1, at_once[1][0], "{after:?}");
}
