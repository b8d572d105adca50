//! The time series of a run adds up to its summary, whatever the lengths of the intervals, and
//! changes nothing in it.

use std::collections::BTreeMap;
use std::ops::ControlFlow;

use ackclock_scenario::{Override, Scenario};
use ackclock_sim::{LOST_ON_LINK, Recorders, SeriesRecorder, run, run_recorded};
use ackclock_trace::{FlowPoint, LinkPoint, SeriesOf, SeriesRecord, SeriesSink, Summary, WatchSink};
use ackclock_units::{Span, Time};

/// Two links; flows that start late, end early, are hard closed, run against the others, have many
/// connections, or have none; losses on the wire, marks and drops in the queue.
const BUSY: &str = r#"
schema = 1
run    = { duration = "6.3s" }

[links.access]
rate  = "50mbit"
delay = "2ms"
loss  = { kind = "iid", probability = 0.002 }

[links.bottleneck]
rate  = "5mbit"
delay = "10ms"
queue = { kind = "pie", ecn = true }

[[flows]]
id    = "marked"
count = 2
path  = ["access", "bottleneck"]
ecn   = true

[[flows]]
id    = "short"
path  = ["access", "bottleneck"]
start = "1.25s"
bytes = "200kB"

[[flows]]
id    = "aborted"
path  = ["access", "bottleneck"]
abort = "3s"

[[flows]]
id        = "back"
path      = ["bottleneck"]
direction = "reverse"
start     = "1s"

[[flows]]
id          = "pages"
path        = ["access", "bottleneck"]
application = { kind = "web", page = "60kB", objects = 4, object = "20kB", think = "300ms" }

[[flows]]
id          = "call"
path        = ["access", "bottleneck"]
transport   = "udp"
application = "voip"

[[flows]]
id          = "late"
path        = ["access", "bottleneck"]
start       = "6.2999s"

[[workloads]]
id     = "noise"
path   = ["access", "bottleneck"]
size   = "20kB"
load   = 0.1

[[expect]]
metric = "flows.back.0.goodput_bps"
from   = "2.5s"
to     = "4s"
at_least = 1
"#;

#[derive(Clone, Debug)]
struct Row {
    id: String,
    record: SeriesRecord<'static>,
}

#[derive(Debug, Default)]
struct Rows(Vec<Row>);

impl SeriesSink for Rows {
    fn record(&mut self, record: &SeriesRecord<'_>) -> ControlFlow<()> {
        self.0.push(Row { id: record.id.to_owned(), record: SeriesRecord { id: "", ..*record } });
        ControlFlow::Continue(())
    }
}

fn parse(text: &str, set: &[&str]) -> Scenario {
    let set: Vec<Override> =
        set.iter().map(|text| Override { flag: "--set".to_owned(), text: (*text).to_owned() }).collect();
    Scenario::parse("test.toml", text.as_bytes(), &set).unwrap_or_else(|error| panic!("{error}"))
}

fn recorded(scenario: &Scenario) -> (Summary<()>, Vec<Row>) {
    let mut rows = Rows::default();
    let config = scenario.series().expect("a series");
    let recorders = Recorders { series: Some(SeriesRecorder { config, sink: &mut rows }), ..Recorders::default() };
    let summary = run_recorded(&scenario.spec(0), recorders, &mut |_| ControlFlow::Continue(())).expect("it ends well");
    (summary, rows.0)
}

/// The rows of each flow or link.
fn by_id(rows: &[Row]) -> BTreeMap<&str, Vec<&SeriesRecord<'static>>> {
    let mut all: BTreeMap<&str, Vec<&SeriesRecord<'static>>> = BTreeMap::new();
    rows.iter().for_each(|row| all.entry(&row.id).or_default().push(&row.record));
    all
}

fn flow(record: &SeriesRecord<'_>) -> FlowPoint {
    match record.of {
        SeriesOf::Flow(flow) | SeriesOf::Subflow(_, flow) | SeriesOf::Group(flow) => flow,
        SeriesOf::Link(_) | SeriesOf::Class(_) => panic!("a link has the id of a flow"),
    }
}

fn link(record: &SeriesRecord<'_>) -> LinkPoint {
    match record.of {
        SeriesOf::Link(link) | SeriesOf::Class(link) => link,
        SeriesOf::Flow(_) | SeriesOf::Subflow(..) | SeriesOf::Group(_) => panic!("a flow has the id of a link"),
    }
}

#[test]
fn rows_add_up_to_the_summary_and_change_nothing_in_it() {
    let plain = parse(BUSY, &[]);
    let unrecorded = run(&plain.spec(0), &mut |_| ControlFlow::Continue(())).expect("it ends well");
    // Intervals that the run is a multiple of or not; shorter than between any two packets; one
    // that is longer than the run.
    for every in ["100ms", "700ms", "250us", "1s", "10s"] {
        let (summary, rows) = recorded(&parse(BUSY, &[&format!("record.series={every}")]));
        assert_eq!(summary, unrecorded, "{every}: recording changed the run");
        assert!(rows.is_sorted_by_key(|row| row.record.from));
        let rows = by_id(&rows);
        let sum = |id: &str, of: &dyn Fn(&SeriesRecord<'_>) -> u64| -> u64 { rows[id].iter().map(|row| of(row)).sum() };
        for found in &summary.flows {
            let id = &*found.id;
            let sums = (
                sum(id, &|row| flow(row).delivered_bytes),
                sum(id, &|row| row.packets),
                sum(id, &|row| flow(row).retransmitted_packets),
                sum(id, &|row| flow(row).timeouts),
            );
            let totals = (
                found.progress.delivered_bytes,
                found.sent.sent_packets,
                found.sent.retransmitted_packets,
                found.recoveries.timeouts,
            );
            assert_eq!(sums, totals, "{every}, {id}");
        }
        let found = &summary.groups[0];
        let sums = (sum("noise", &|row| flow(row).delivered_bytes), sum("noise", &|row| row.packets));
        assert_eq!((&*found.id, sums), ("noise", (found.progress.delivered_bytes, found.sent.sent_packets)), "{every}");
        for found in &summary.links {
            let id = &*found.id;
            let of_queue = found.packets.dropped.iter().filter(|drop| *drop.0 != LOST_ON_LINK).map(|drop| drop.1).sum();
            let sums = (
                sum(id, &|row| row.packets),
                sum(id, &|row| link(row).dropped_packets),
                sum(id, &|row| link(row).lost_packets),
                sum(id, &|row| link(row).marked_packets),
            );
            let lost = found.packets.dropped.get(LOST_ON_LINK).copied().unwrap_or(0);
            assert_eq!(sums, (found.packets.dequeued, of_queue, lost, found.packets.marked), "{every}, {id}");
            let busy: f64 =
                rows[id].iter().map(|row| link(row).utilization * row.to.since(row.from).as_secs_f64()).sum();
            assert!((busy / 6.3 - found.load.utilization).abs() < 1e-9, "{every}, {id}: {busy}");
            // Intervals follow each other, from the beginning to the end.
            assert!(rows[id].windows(2).all(|pair| pair[0].to == pair[1].from));
            let ends = (rows[id][0].from, rows[id].last().unwrap().to);
            assert_eq!(ends, (Time::ZERO, Time::from_millis(6300)), "{every}");
        }
        assert!(summary.links[2].packets.marked > 0 && summary.links[2].packets.dropped.values().sum::<u64>() > 0);
        assert!(summary.links[0].packets.dropped.contains_key(LOST_ON_LINK));
    }
}

#[test]
fn the_books_of_a_link_are_those_of_all_its_queues() {
    let text = r#"
        schema = 1
        run    = { duration = "6s" }
        record = { series = "500ms" }
        [links.wire]
        rate     = "5mbit"
        delay    = "10ms"
        queue    = { kind = "pie", target = "50ms" }
        schedule = [{ at = "2.2s", queue = "fq_codel" }, { at = "4.1s", queue = { kind = "pie", limit = "40p" } }]
        [[flows]]
        id    = "f"
        count = 3
        path  = ["wire"]
        [[expect]]
        metric = "links.wire.forward.dropped.purge"
        from   = "2s"
        to     = "3s"
        at_least = 1
        "#;
    let (summary, rows) = recorded(&parse(text, &[]));
    let (rows, found) = (by_id(&rows), &summary.links[0]);
    let sum = |of: &dyn Fn(&SeriesRecord<'_>) -> u64| -> u64 { rows["wire.forward"].iter().map(|row| of(row)).sum() };
    let dropped: u64 = found.packets.dropped.values().sum();
    assert_eq!((sum(&|row| row.packets), sum(&|row| link(row).dropped_packets)), (found.packets.dequeued, dropped));
    // The waiting packets were discarded twice, and the flows go on.
    let purged = |dropped: &BTreeMap<&'static str, u64>| dropped.get("purge").copied().unwrap_or(0);
    let early = purged(&summary.windows[0].links[0].packets.dropped);
    assert!(early > 0 && early < purged(&found.packets.dropped), "{early} {found:?}");
    assert_eq!(found.queue, "pie");
    assert!(found.load.utilization > 0.8, "{found:?}");
    // Only PIE has a probability.
    let has = |ms| {
        rows["wire.forward"]
            .iter()
            .find(|row| row.from == Time::from_millis(ms))
            .map(|row| link(row).probability.is_some())
    };
    assert_eq!([has(1000), has(3000), has(5000)], [Some(true), Some(false), Some(true)]);
}

#[test]
fn responses_add_up_to_what_clients_have_got() {
    let mut text = "schema = 1\nrun.duration = \"4s\"\nrecord.series = \"300ms\"\n\
                    links.wire = { rate = \"5mbit\", delay = \"10ms\" }\n"
        .to_owned();
    for (id, application) in [
        ("asks", "{ kind = \"request\", size = \"300B\", response = \"30kB\" }"),
        ("opens", "{ kind = \"request\", size = \"300B\", response = \"30kB\", persistent = false }"),
        ("browses", "{ kind = \"web\", page = \"60kB\", objects = 4, object = \"20kB\" }"),
        ("watches", "{ kind = \"video\", ladder = [\"500kbit\"], segment = \"1s\" }"),
        ("loads", "\"load\""),
        ("writes", "\"bulk\""),
    ] {
        text += &format!("[[flows]]\nid = \"{id}\"\npath = [\"wire\"]\napplication = {application}\n");
    }
    let (summary, rows) = recorded(&parse(&text, &[]));
    let rows = by_id(&rows);
    for found in &summary.flows {
        let of = found.application.as_deref();
        let expected = match &*found.id {
            "asks.0" | "opens.0" => of.and_then(|of| of.requests.as_ref()).map(|requests| requests.response_bytes),
            "browses.0" => of.and_then(|of| of.pages.as_ref()).map(|pages| pages.response_bytes),
            "watches.0" => of.and_then(|of| of.video.as_ref()).map(|video| video.response_bytes),
            "loads.0" => of.and_then(|of| of.load.as_ref()).map(|load| load.bytes),
            _ => None,
        };
        let sum: Option<u64> = rows[&*found.id].iter().map(|row| flow(row).response_bytes).sum();
        assert_eq!(sum, expected, "{}", found.id);
        assert!(sum.is_none_or(|sum| sum > 100_000) && sum.is_some() == (found.id != "writes.0".into()), "{sum:?}");
    }
}

#[test]
fn flows_have_rows_from_their_start_to_their_end() {
    let (summary, rows) = recorded(&parse(BUSY, &["record.series=100ms"]));
    let rows = by_id(&rows);
    let ends = |id: &str| (rows[id][0].from, rows[id].last().unwrap().to);
    assert_eq!(ends("short.0").0, Time::from_millis(1200));
    let completed = summary.flows.iter().find(|flow| &*flow.id == "short.0").unwrap().completed_s.unwrap();
    let last = ends("short.0").1.as_secs_f64();
    // The connection closes a few round trips after the last byte has been acknowledged.
    assert!(completed < last && last < completed + 0.5, "{completed} {last}");
    assert!(ends("aborted.0").1 <= Time::from_millis(3300));
    assert_eq!(ends("back.0"), (Time::from_secs(1), Time::from_millis(6300)));
}

#[test]
fn values_are_those_of_arithmetic() {
    // One flow that fills 10 Mbit/s: 1448 of 1500 bytes are data. Its window ends a segment before
    // the buffer of 45 (`tcp_init_buffer_space`), so that the round trip is that over the rate once
    // the queue is constant.
    let text = r#"
        schema = 1
        run    = { duration = "10s" }
        record = { series = "500ms" }
        [links.wire]
        rate  = "10mbit"
        delay = "10ms"
        queue = "pfifo"
        [[flows]]
        id   = "f"
        path = ["wire"]
        receive_buffer = "65160B"
        "#;
    let (_, rows) = recorded(&parse(text, &[]));
    let rows = by_id(&rows);
    let late: Vec<_> = rows["f.0"].iter().filter(|row| row.from >= Time::from_secs(5)).collect();
    assert_eq!(late.len(), 10);
    for row in late {
        let point = flow(row);
        let bits = row.bytes as f64 * 8.0 / 0.5;
        assert!((bits / 1e7 - 1.0).abs() < 0.005, "{bits}");
        assert!((point.delivered_bytes as f64 / row.bytes as f64 - 1448.0 / 1500.0).abs() < 0.005);
        // 44 segments of 1500 bytes at 10 Mbit/s.
        assert_eq!(point.in_flight.map(|bytes| bytes / 1448), Some(44));
        let rtt = point.rtt.expect("samples").as_secs_f64();
        assert!((rtt - 0.0528).abs() < 0.0015, "{rtt}");
        let (bytes, length) = row.window.expect("2 s have passed");
        assert!((bytes as f64 * 8.0 / 2.0 / 1e7 - 1.0).abs() < 0.002 && length == Span::from_secs(2));
    }
    let wire = link(rows["wire.forward"].last().unwrap());
    // Data in flight waits, but for 20 ms of propagation (16.7 packets) and one in transmission.
    assert!((25..=28).contains(&wire.backlog_packets), "{wire:?}");
    assert_eq!(wire.backlog_bytes, 1500 * wire.backlog_packets);
    let sojourn = wire.sojourn.unwrap().as_secs_f64();
    assert!((sojourn - 0.0316).abs() < 0.0015 && wire.utilization > 0.999, "{wire:?}");
    assert_eq!((wire.rate_bps, wire.probability), (Some(10_000_000), None));
}

#[test]
fn sliding_windows_are_those_of_the_summary() {
    let (summary, rows) = recorded(&parse(BUSY, &["record.series=500ms"]));
    let rows = by_id(&rows);
    // Both have windows of 2 s every 0.5 s, from the beginning.
    let windows: Vec<f64> =
        rows["marked.0"].iter().filter_map(|row| row.window).map(|(bytes, _)| bytes as f64 * 4.0).collect();
    let mean = windows.iter().sum::<f64>() / windows.len() as f64;
    let found = summary.flows[0].throughput_bps.mean.unwrap();
    assert!((mean / found - 1.0).abs() < 1e-9, "{mean} {found}");
    assert_eq!(windows.len(), 9);
    assert!(rows["marked.0"][..3].iter().all(|row| row.window.is_none()));
}

#[test]
fn rows_do_not_pile_up() {
    // A million intervals in which nothing happens.
    #[derive(Debug, Default)]
    struct Count(u64);
    impl SeriesSink for Count {
        fn record(&mut self, _: &SeriesRecord<'_>) -> ControlFlow<()> {
            self.0 += 1;
            ControlFlow::Continue(())
        }
    }
    let text = "schema = 1\nrun = { duration = \"1000s\" }\nrecord = { series = \"1ms\" }\n[links.wire]\nrate = \"1mbit\"\n\
                [[flows]]\nid = \"f\"\npath = [\"wire\"]\nstart = \"999s\"\nbytes = \"1kB\"\n";
    let scenario = parse(text, &[]);
    let mut count = Count::default();
    let config = scenario.series().expect("a series");
    let recorders = Recorders { series: Some(SeriesRecorder { config, sink: &mut count }), ..Recorders::default() };
    run_recorded(&scenario.spec(0), recorders, &mut |_| ControlFlow::Continue(())).expect("it ends well");
    assert!(count.0 > 2_000_000);
}

/// Rows as somebody who watches gets them; intervals become longer on the way.
#[derive(Debug, Default)]
struct Watched {
    rows: Vec<Row>,
    passed: Vec<Time>,
}

impl WatchSink for Watched {
    fn every(&self) -> Span {
        Span::from_millis(30)
    }

    fn record(&mut self, record: &SeriesRecord<'_>) {
        self.rows.push(Row { id: record.id.to_owned(), record: SeriesRecord { id: "", ..*record } });
    }

    fn passed(&mut self, to: Time) -> Span {
        assert!(self.rows.iter().all(|row| row.record.to <= to));
        self.passed.push(to);
        if self.passed.len() < 10 { self.every() } else { Span::from_millis(170) }
    }
}

#[test]
fn who_watches_changes_nothing_and_gets_each_interval_as_it_ends() {
    let plain = run(&parse(BUSY, &[]).spec(0), &mut |_| ControlFlow::Continue(())).expect("it ends well");
    let scenario = parse(BUSY, &["record.series=100ms"]);
    let (_, alone) = recorded(&scenario);
    let (mut watched, mut series) = (Watched::default(), Rows::default());
    let config = scenario.series().expect("a series");
    let recorders = Recorders {
        series: Some(SeriesRecorder { config, sink: &mut series }),
        watch: Some(&mut watched),
        ..Recorders::default()
    };
    let summary = run_recorded(&scenario.spec(0), recorders, &mut |_| ControlFlow::Continue(())).expect("it ends well");
    assert_eq!(summary, plain, "watching changed the run");
    let plain = |rows: &[Row]| rows.iter().map(|row| format!("{row:?}")).collect::<Vec<_>>();
    assert_eq!(plain(&series.0), plain(&alone), "watching changed the series");
    // The end of the tenth interval at 0.3 s says how long the next but one is: 0.17 s from 0.33 s
    // on. The run ends at 6.3 s: (6.3 - 0.33) / 0.17 is 35.1.
    let expected = (1..=11).map(|n| 30 * n).chain((1..=35).map(|n| 330 + 170 * n)).chain([6300]);
    assert_eq!(watched.passed, expected.map(Time::from_millis).collect::<Vec<_>>());
    for (id, rows) in by_id(&watched.rows) {
        assert!(rows.windows(2).all(|two| two[0].to <= two[1].from), "{id}");
        let Some(link) = summary.links.iter().find(|link| link.id == id) else { continue };
        let sum = |count: fn(&LinkPoint) -> u64| rows.iter().map(|row| count(&self::link(row))).sum::<u64>();
        // Losses behind the queue have a reason of their own among all drops.
        let dropped: u64 = link.packets.dropped.values().sum();
        assert_eq!(sum(|point| point.dropped_packets + point.lost_packets), dropped, "{id}");
        assert_eq!(sum(|point| point.marked_packets), link.packets.marked, "{id}");
    }
    let flows = by_id(&watched.rows);
    for summary in &summary.flows {
        let delivered: u64 =
            flows.get(&*summary.id).map_or(0, |rows| rows.iter().map(|row| flow(row).delivered_bytes).sum());
        assert_eq!(delivered, summary.progress.delivered_bytes, "{}", summary.id);
    }
}

#[test]
fn what_is_no_series_is_refused() {
    for (value, error) in [
        ("true", "record.series: not the right type"),
        ("\"0s\"", "record.series: must not be zero"),
        ("\"1us\"", "record.series: 6300000 intervals in the run"),
        ("\"50us\"\nrecord.series_window = \"6s\"", "record.series_window: 120000 intervals in the sliding window"),
    ] {
        let text = BUSY.replace("\n[links.access]", &format!("\nrecord.series = {value}\n\n[links.access]"));
        let found = Scenario::parse("test.toml", text.as_bytes(), &[]).expect_err(value).to_string();
        assert!(found.contains(error), "{value}: {found}");
    }
}
