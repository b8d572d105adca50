//! The effect of rows on a board, and the small part of them that is kept.

use ackclock_scenario::Scenario;
use ackclock_sim::{Recorders, run_recorded};
use ackclock_trace::Summary;

use std::ops::ControlFlow;
use std::sync::Arc;

use super::super::view::tests::{filled, flow_row, link_row};
use super::super::{Feed, Watch};
use super::*;

const SCENARIO: &str = r#"
schema = 1
title = "many"
run.duration = "8s"
[links.wire]
rate = "20mbit"
delay = "5ms"
QUEUE
loss = { kind = "iid", probability = 0.001 }
[[flows]]
id = "f"
path = ["wire"]
cc = "cubic"
stop = "3s"
[[flows]]
id = "once"
path = ["wire"]
bytes = "50kB"
start = "1s"
[[flows]]
id = "pair"
transport = "mptcp"
subflows = [["wire"], ["wire"]]
bytes = "1MB"
[[workloads]]
id = "web"
path = ["wire"]
size = "20kB"
load = 0.3
"#;

fn watched(queue: &str, every: f64) -> (Arc<Watch>, Summary<()>) {
    let text = SCENARIO.replace("QUEUE", &format!("queue = {queue}"));
    let scenario = Scenario::parse("test.toml", text.as_bytes(), &[]).unwrap_or_else(|error| panic!("{error}"));
    let spec = scenario.spec(0);
    let watch = Arc::new(Watch::new(&spec, Some(every / 0.1)));
    let mut feed = Feed::new(watch.clone());
    let recorders = Recorders { watch: Some(&mut feed), ..Recorders::default() };
    let summary = run_recorded(&spec, recorders, &mut |_| ControlFlow::Continue(())).unwrap();
    (watch, summary)
}

#[test]
fn counts_on_the_board_are_those_of_the_summary() {
    // Intervals of 0.1 s, and of 1 ms: more rows than wait at a time.
    for every in [0.1, 0.001] {
        let (watch, summary) = watched("{ kind = \"pfifo\", limit = \"30p\" }", every);
        let board = watch.board();
        assert_eq!((board.now, board.lost), (Time::from_secs(8), 0));
        assert_eq!(board.ticks, (8.0 / every).round() as u64);
        for (link, found) in summary.links.iter().zip(&board.links) {
            let dropped: u64 = link.packets.dropped.values().sum();
            assert_eq!((&*link.id, link.packets.dequeued), (&*found.id, found.totals.packets));
            assert_eq!((dropped, link.packets.marked), (found.totals.dropped + found.totals.lost, found.totals.marked));
        }
        let flow = |id: &str, kind| board.flows.iter().find(|flow| flow.id == id && flow.kind == kind).expect("a row");
        for summary in &summary.flows {
            let found = flow(&summary.id, Kind::Flow);
            assert_eq!(found.totals.delivered_bytes, summary.progress.delivered_bytes, "{}", summary.id);
            assert_eq!(found.totals.retransmitted, summary.sent.retransmitted_packets, "{}", summary.id);
        }
        let web = flow("web", Kind::Group);
        assert_eq!(web.totals.delivered_bytes, summary.groups[0].progress.delivered_bytes);
        let subflows: u64 =
            [1, 2].map(|number| flow("pair.0", Kind::Subflow(number)).totals.delivered_bytes).iter().sum();
        assert_eq!(subflows, flow("pair.0", Kind::Flow).totals.delivered_bytes);
        assert_eq!(flow("f.0", Kind::Flow).cc, "cubic");
        // 50 kB take a fraction of a second: idle ever since.
        assert!(flow("once.0", Kind::Flow).idle(&board) > board.ticks / 2);
    }
}

#[test]
fn classes_follow_their_direction_and_add_up_to_it() {
    let queue = r#"{ kind = "htb", default = "rest", classes = { all = { rate = "20mbit" }, short = { parent = "all", rate = "1mbit", ceil = "20mbit", max_length = "500B" }, rest = { parent = "all", rate = "19mbit", ceil = "20mbit", queue = "codel" } } }"#;
    let (watch, _) = watched(queue, 0.1);
    let board = watch.board();
    let shown: Vec<_> = board.links.iter().map(|link| (&*link.id, &*link.queue)).collect();
    let expected = [
        ("wire.forward", "htb"),
        ("wire.forward.all", ""),
        ("wire.forward.short", "pfifo"),
        ("wire.forward.rest", "codel"),
        ("wire.reverse", "htb"),
    ];
    assert_eq!(shown[..5], expected);
    let counts = |link: &Link| [link.totals.bytes, link.totals.packets, link.totals.dropped];
    let [wire, all, short, rest] = [0, 1, 2, 3].map(|place| counts(&board.links[place]));
    assert_eq!((wire, all), (all, std::array::from_fn(|count| short[count] + rest[count])));
    assert!(short[1] > 0 && rest[1] > short[1] && rest[2] > 0, "{short:?} {rest:?}");
}

#[test]
fn little_is_kept_however_long_a_run_is() {
    let mut board = filled();
    for tick in 101..=5000 {
        board.take(&flow_row(0, tick, 1000, SeriesOf::Flow));
        board.take(&link_row(2, tick, 1000, 1));
    }
    assert_eq!(board.links[0].rates.values.len(), LINK_HISTORY);
    assert_eq!(board.flows[0].goodputs.values.len(), FLOW_HISTORY);
    // An idle flow has had nothing, in the intervals that are remembered.
    board.take(&flow_row(1, 5001, 1000, SeriesOf::Group));
    let goodputs: Vec<f64> = board.flows[1].goodputs.last(FLOW_HISTORY).collect();
    assert_eq!(goodputs.len(), FLOW_HISTORY);
    assert!(goodputs[..FLOW_HISTORY - 1].iter().all(|&rate| rate == 0.0) && goodputs[FLOW_HISTORY - 1] == 80_000.0);
}

#[test]
fn values_that_are_shown_together_stay_together() {
    let mut history = History::new(10);
    (0..7).for_each(|value| history.push(f64::from(value)));
    // 0 1 2, 3 4 5, 6
    assert_eq!(history.together(9, 3, ShownValue::Mean), [1.0, 4.0, 6.0]);
    assert_eq!(history.together(9, 3, ShownValue::Largest), [2.0, 5.0, 6.0]);
    assert_eq!(history.together(2, 3, ShownValue::Largest), [5.0, 6.0]);
    (7..13).for_each(|value| history.push(f64::from(value)));
    // The first three are forgotten, and the groups are what they were: 3 4 5, ..., 12.
    assert_eq!(history.together(9, 3, ShownValue::Mean), [4.0, 7.0, 10.0, 12.0]);
    assert!(History::new(10).together(9, 3, ShownValue::Mean).is_empty());
}

#[test]
fn a_run_is_late_by_its_limit_or_a_stall() {
    let mut board = filled();
    assert_eq!(board.is_late(), None);
    let late = |us| ackclock_live::Late { run_p99: Some(Span::from_micros(us)), ..Default::default() };
    let moment = Moment { lateness: late(999), unread: late(10), ..Moment::default() };
    board.take_live(moment, &[]);
    assert_eq!(board.is_late(), None, "there is no limit");
    board.lateness_limit = Some(Span::from_millis(1));
    assert_eq!(board.is_late(), Some(false));
    for worse in [
        Moment { lateness: late(1001), ..moment },
        Moment { unread: late(1001), ..moment },
        Moment { longest_stall: Span::from_millis(101), ..moment },
    ] {
        board.take_live(worse, &[]);
        assert_eq!(board.is_late(), Some(true), "{worse:?}");
    }
}
