//! Frames at several sizes, of a board that is filled as a run fills it.

use ackclock_live::{Late, Moment};
use ackclock_trace::{FlowPoint, LinkPoint, LiveHost, SeriesOf};
use ackclock_units::{Span as Length, Time};

use super::super::board::{Key, Kind, Row};
use super::super::state::Pane;
use super::*;

mod picture;

const SCENARIO: &str = r#"
schema = 1
title = "a bulk flow and a workload"
run.duration = "30s"
[links.bottleneck]
rate = "10mbit"
delay = "20ms"
queue.kind = "fq_codel"
[[flows]]
id = "bulk"
path = ["bottleneck"]
cc = "cubic"
[[workloads]]
id = "web"
path = ["bottleneck"]
size = "20kB"
load = 0.1
"#;

fn spec() -> ackclock_sim::spec::RunSpec {
    ackclock_scenario::Scenario::parse("test.toml", SCENARIO.as_bytes(), &[]).unwrap().spec(0)
}

/// A link direction with these packets in its queue, for an interval in which it sent `bytes`.
pub(crate) fn link_row(key: usize, tick: u64, bytes: u64, backlog: u64) -> Row {
    let point = LinkPoint {
        dropped_packets: u64::from(tick.is_multiple_of(5)),
        lost_packets: 0,
        marked_packets: u64::from(tick.is_multiple_of(20)),
        sojourn: (backlog > 0).then(|| Length::from_micros(1200 * backlog)),
        backlog_packets: backlog,
        backlog_bytes: 1500 * backlog,
        probability: None,
        rate_bps: Some(10_000_000),
        utilization: bytes as f64 * 80.0 / 10e6,
    };
    row(key, tick, bytes, SeriesOf::Link(point))
}

pub(crate) fn flow_row(key: usize, tick: u64, delivered_bytes: u64, of: fn(FlowPoint) -> SeriesOf) -> Row {
    let point = FlowPoint {
        delivered_bytes,
        retransmitted_packets: u64::from(tick.is_multiple_of(5)),
        rtt: Some(Length::from_millis(40 + tick % 10)),
        srtt: Some(Length::from_micros(45_100)),
        cwnd: Some(56_472),
        in_flight: Some(50_680),
        ca_state: Some(if tick.is_multiple_of(5) { "Recovery" } else { "Open" }),
        ..FlowPoint::default()
    };
    row(key, tick, delivered_bytes + 4000, of(point))
}

fn row(key: usize, tick: u64, bytes: u64, of: SeriesOf) -> Row {
    let at = |tick| Time::from_millis(100 * tick);
    Row { key, from: at(tick - 1), to: at(tick), bytes, packets: bytes / 1500, of }
}

fn key(kind: Kind, id: &str) -> Key {
    Key { kind, id: id.to_owned() }
}

/// 100 intervals of 0.1 s.
pub(crate) fn filled() -> Board {
    let mut board = Board::new(&spec());
    let keys = [
        key(Kind::Flow, "bulk.0"),
        key(Kind::Group, "web"),
        key(Kind::Link, "bottleneck.forward"),
        key(Kind::Link, "bottleneck.reverse"),
    ];
    board.add(keys.into_iter());
    for tick in 1..=100 {
        // The ramps show which end of a line is the last.
        board.take(&flow_row(0, tick, 1000 * tick, SeriesOf::Flow));
        // The last time is some intervals ago.
        if tick <= 90 {
            board.take(&flow_row(1, tick, 12_500, |point| {
                SeriesOf::Group(FlowPoint { delivered_bytes: point.delivered_bytes, ..FlowPoint::default() })
            }));
        }
        board.take(&link_row(2, tick, 1250 * tick, tick / 10));
        board.take(&link_row(3, tick, 2000, 0));
    }
    board
}

fn drawn(board: &Board, state: &State, width: usize, height: usize, colour: bool) -> Frame {
    let mut frame = Frame::blank(width, height);
    draw(&mut frame, board, state, Theme { colour });
    frame
}

/// Its rows in quotes.
fn screen(board: &Board, state: &State, width: usize, height: usize) -> String {
    let frame = drawn(board, state, width, height, true);
    let text = |row: &[(char, Style)]| row.iter().map(|(char, _)| char).collect::<String>();
    frame.cells.chunks(width.max(1)).map(|row| format!("\"{}\"\n", text(row))).collect()
}

#[test]
fn it_fits_terminals_of_all_sizes() {
    let board = filled();
    let state = State::new(Some(1.0));
    insta::assert_snapshot!("60x15", screen(&board, &state, 60, 15));
    insta::assert_snapshot!("80x24", screen(&board, &state, 80, 24));
    insta::assert_snapshot!("120x40", screen(&board, &state, 120, 40));
    // A frame of any size can be drawn.
    let mut helped = State::new(None);
    helped.help = true;
    helped.prompt = Some("links.bottleneck.rate=1mbit".to_owned());
    for (width, height) in [(0, 30), (1, 1), (3, 2), (10, 4), (20, 8), (59, 14), (300, 100), (500, 3)] {
        for state in [&state, &helped] {
            screen(&board, state, width, height);
            screen(&Board::new(&spec()), state, width, height);
        }
    }
}

#[test]
fn a_live_run_tells_how_late_it_is() {
    let mut board = filled();
    board.clock = "live";
    board.lateness_limit = Some(Length::from_millis(1));
    let late = |us| Some(Length::from_micros(us));
    let lateness = Late { p50: late(40), p99: late(310), max: late(400), run_p99: late(620), samples: 900 };
    let moment = Moment { now: Time::from_secs(10), lateness, behind: Length::from_millis(250), ..Moment::default() };
    let host = |id: &str, refused| LiveHost {
        id: id.to_owned(),
        received_packets: 4321,
        sent_packets: 2160,
        refused,
        ..LiveHost::default()
    };
    board.take_live(moment, &[host("left", 0), host("right", 3)]);
    let state = State::new(None);
    let text = screen(&board, &state, 120, 24);
    for part in [
        "live, on time",
        "late ms: p50 0.04 p99 0.31, run p99 0.62; behind 0.25 s, stalled 0 ms; left in 4321 out 2160; right",
    ] {
        assert!(text.contains(part), "{part} in\n{text}");
    }
    assert!(!text.contains("pause") && !text.contains("speed"), "a live run has its own clock\n{text}");
    // More than 1 ms late for more than one in a hundred.
    let moment = Moment { lateness: Late { run_p99: late(1001), ..lateness }, ..moment };
    board.take_live(moment, &[]);
    assert!(screen(&board, &state, 80, 24).contains("live, LATE: not valid"));
}

#[test]
fn thousands_of_flows_are_scrolled() {
    let mut board = filled();
    board.add((0..5000).map(|number| key(Kind::Flow, &format!("many.{number}"))));
    (0..5000).for_each(|number| board.take(&flow_row(4 + number, 101, 1000, SeriesOf::Flow)));
    let mut state = State::new(Some(1.0));
    state.pane = Pane::Flows;
    state.flow = 4000;
    let text = screen(&board, &state, 80, 24);
    // The two before are number 0 and 1.
    assert!(text.contains("many.3998") && !text.contains("many.3999") && text.contains("/5002"), "{text}");
}

#[test]
fn what_is_typed_and_what_went_wrong_is_shown() {
    let board = filled();
    let mut state = State::new(Some(0.25));
    state.say(Err("links.wire.rate:\n no such link".to_owned()));
    let text = screen(&board, &state, 80, 24);
    assert!(text.contains("links.wire.rate: no such link") && text.contains("virtual at 0.25x, running"), "{text}");
    state.prompt = Some("links.bottleneck.rate=5mb".to_owned());
    state.paused = true;
    let text = screen(&board, &state, 80, 24);
    assert!(text.contains(":links.bottleneck.rate=5mb") && text.contains("paused"), "{text}");
    assert!(!text.contains("no such link"), "{text}");
    state.prompt = None;
    state.help = true;
    assert!(screen(&board, &state, 80, 24).contains("double the speed"));
}

#[test]
fn without_colours_there_are_none() {
    let (board, mut state) = (filled(), State::new(Some(1.0)));
    state.say(Err("wrong".to_owned()));
    let colours = |colour| {
        let cells = drawn(&board, &state, 120, 40, colour).cells;
        cells.iter().filter(|(_, style)| style.foreground_color.or(style.background_color).is_some()).count()
    };
    assert_eq!(colours(false), 0);
    assert!(colours(true) > 100);
}

#[test]
fn rows_that_changed_are_written_and_wide_characters_once() {
    let (shown, mut frame) = (Frame::blank(6, 2), Frame::blank(6, 2));
    frame.put(frame.area, 1, &[("a漢\u{7}bcd", Style::new().bold())]);
    let mut out = Vec::new();
    frame.write(&shown, &mut out).unwrap();
    assert_eq!(String::from_utf8(out).unwrap(), "\u{1b}[2;1H\u{1b}[1ma漢bcd\u{1b}[0m\u{1b}[?25l");
}
