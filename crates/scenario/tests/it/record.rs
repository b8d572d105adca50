//! The records of queues add up to the summary, for every discipline there is, and recording
//! changes nothing in it.

use std::collections::{BTreeMap, BTreeSet};
use std::ops::ControlFlow;

use ackclock_scenario::{Override, Scenario};
use ackclock_sim::{LOST_ON_LINK, QueueRecorder, Recorders, RunError, run, run_recorded};
use ackclock_trace::{LinkSummary, QueueAction, QueueCsv, QueueRecord, QueueSink, Summary};
use ackclock_units::{Span, Time};

fn parse(text: &str, set: &[&str]) -> Scenario {
    let set: Vec<Override> =
        set.iter().map(|text| Override { flag: "--set".to_owned(), text: (*text).to_owned() }).collect();
    Scenario::parse("test.toml", text.as_bytes(), &set).unwrap_or_else(|error| panic!("{error}"))
}

/// Five flows, some of which can be marked, one against the others' direction; two links, of which
/// the first delays, loses and doubles packets.
fn busy(queue: &str) -> String {
    format!(
        r#"
schema = 1
run    = {{ duration = "6s" }}
record = {{ queue = true }}

[links.access]
rate      = "50mbit"
delay     = "2ms"
jitter    = "3ms"
reorder   = true
duplicate = 0.01
loss      = {{ kind = "iid", probability = 0.002 }}

[links.bottleneck]
rate     = "5mbit"
delay    = "10ms"
overhead = "38B"
queue    = {queue}

[[flows]]
id    = "marked"
count = 2
path  = ["access", "bottleneck"]
ecn   = true

[[flows]]
id    = "dropped"
count = 2
path  = ["access", "bottleneck"]
host  = "freebsd-9.2"

[[flows]]
id        = "back"
path      = ["bottleneck"]
direction = "reverse"
start     = "1s"
"#
    )
}

/// Every name of a discipline, from the error about one that does not exist.
fn kinds() -> Vec<String> {
    let error = Scenario::parse("test.toml", busy("\"no such queue\"").as_bytes(), &[]).expect_err("no such queue");
    let text = error.to_string();
    let listed = text.split("expected one of ").nth(1).expect("a list of names").lines().next().unwrap_or("");
    let kinds: Vec<String> = listed.split(", ").map(|name| name.trim().trim_matches('`').to_owned()).collect();
    assert!(kinds.len() >= 5 && kinds.contains(&"pie".to_owned()), "{kinds:?}");
    kinds
}

/// A row that outlives its names.
#[derive(Clone, Debug, PartialEq)]
struct Row {
    link: String,
    flow: String,
    record: QueueRecord<'static>,
}

#[derive(Debug, Default)]
struct Rows(Vec<Row>);

impl QueueSink for Rows {
    fn record(&mut self, record: &QueueRecord<'_>) -> ControlFlow<()> {
        let (link, flow) = (record.link.to_owned(), record.flow.to_owned());
        self.0.push(Row { link, flow, record: QueueRecord { link: "", flow: "", ..*record } });
        ControlFlow::Continue(())
    }
}

fn recorded(scenario: &Scenario, sink: &mut dyn QueueSink) -> Summary<()> {
    let queues = Some(QueueRecorder { directions: scenario.recorded_queues(), sink });
    run_recorded(&scenario.spec(0), Recorders { queues, ..Recorders::default() }, &mut |_| ControlFlow::Continue(()))
        .expect("the run ends well")
}

fn rows_of(scenario: &Scenario) -> (Summary<()>, Vec<Row>) {
    let mut rows = Rows::default();
    let summary = recorded(scenario, &mut rows);
    (summary, rows.0)
}

/// A tree of one class with this rate, whose queue marks and drops.
fn class(rate: &str) -> String {
    let queue = r#"{ kind = "codel", limit = "60p", ecn = true }"#;
    format!("default = \"all\", classes = {{ all = {{ {rate}, queue = {queue} }} }}")
}

#[test]
fn rows_add_up_to_the_summary_for_every_discipline() {
    let mut marking = Vec::new();
    for kind in kinds() {
        // Short queues, so that each has something to drop; what is no key of a kind is left out.
        let trees = ["rate = \"4mbit\"", "ls = { m2 = \"4mbit\" }", "weight = 2"].map(class);
        let series = "stages = { all = { queue = { kind = \"codel\", limit = \"60p\", ecn = true } } }";
        let settings =
            ["limit = \"60p\"", "limit = \"90kB\"", "memlimit = \"90kB\"", &trees[0], &trees[1], &trees[2], series];
        let with = settings.map(|setting| busy(&format!("{{ kind = \"{kind}\", {setting} }}")));
        let plain = busy(&format!("\"{kind}\""));
        let text = with.iter().find(|text| Scenario::parse("test.toml", text.as_bytes(), &[]).is_ok());
        let mut text = text.unwrap_or(&plain).clone();
        let with_ecn = text.replace(&format!("\"{kind}\","), &format!("\"{kind}\", ecn = true,"));
        if Scenario::parse("test.toml", with_ecn.as_bytes(), &[]).is_ok() {
            text = with_ecn;
        }
        let scenario = parse(&text, &[]);
        let (summary, rows) = rows_of(&scenario);
        let unrecorded = run(&scenario.spec(0), &mut |_| ControlFlow::Continue(())).expect("the run ends well");
        assert_eq!(summary, unrecorded, "{kind}: recording changed the run");
        assert!(rows.is_sorted_by_key(|row| row.record.at), "{kind}");
        assert!(rows.iter().all(|row| row.record.at <= Time::ZERO + Span::from_secs(6)));
        assert_eq!(summary.links.len(), 4);
        for link in &summary.links {
            let rows: Vec<&Row> = rows.iter().filter(|row| row.link == link.id).collect();
            adds_up(&format!("{kind}, {}", link.id), link, &rows);
        }
        assert!(summary.links[2].packets.dropped.values().sum::<u64>() > 0, "{kind} dropped nothing");
        if summary.links[2].packets.marked > 0 {
            marking.push(kind);
        }
    }
    for kind in ["red", "codel", "pie", "fq_codel", "htb", "hfsc", "qfq", "series"] {
        assert!(marking.iter().any(|marking| marking == kind), "{kind} marked nothing");
    }
}

fn adds_up(name: &str, link: &LinkSummary, rows: &[&Row]) {
    let count =
        |wanted: &dyn Fn(&QueueRecord<'_>) -> bool| rows.iter().filter(|row| wanted(&row.record)).count() as u64;
    let enqueued = count(&|row| row.action == QueueAction::Enqueue);
    let refused = count(&|row| matches!(row.action, QueueAction::Drop(_)) && row.sojourn.is_none());
    assert_eq!(enqueued + refused, link.packets.offered, "{name}");
    assert_eq!(enqueued, link.packets.enqueued, "{name}");
    assert_eq!(count(&|row| row.action == QueueAction::Dequeue), link.packets.dequeued, "{name}");
    assert_eq!(count(&|row| row.action == QueueAction::Mark), link.packets.marked, "{name}");
    let mut dropped: BTreeMap<&str, u64> = BTreeMap::new();
    for row in rows {
        if let QueueAction::Drop(reason) = row.record.action {
            *dropped.entry(reason).or_default() += 1;
        }
    }
    let mut expected = link.packets.dropped.clone();
    expected.remove(LOST_ON_LINK);
    assert_eq!(dropped, expected, "{name}");

    // The backlog, row by row, and the way of each packet: in at most once, out once.
    let (mut packets, mut bytes) = (0u64, 0u64);
    let mut inside: BTreeMap<u64, Time> = BTreeMap::new();
    let mut seen = BTreeSet::new();
    for row in rows {
        let QueueRecord { at, packet, size, action, sojourn, backlog_packets, backlog_bytes, .. } = row.record;
        let size = u64::from(size);
        match (action, sojourn) {
            (QueueAction::Enqueue, None) => {
                (packets, bytes) = (packets + 1, bytes + size);
                assert_eq!(inside.insert(packet, at), None, "{name}: {row:?}");
                assert!(seen.insert(packet), "{name}: {row:?}");
            }
            (QueueAction::Drop(_), None) => assert!(seen.insert(packet), "{name}: {row:?}"),
            (QueueAction::Dequeue | QueueAction::Drop(_), Some(sojourn)) => {
                (packets, bytes) = (packets - 1, bytes - size);
                let entered = inside.remove(&packet).unwrap_or_else(|| panic!("{name}: never entered: {row:?}"));
                assert_eq!(at.since(entered), sojourn, "{name}: {row:?}");
            }
            (QueueAction::Mark, sojourn) => assert_eq!(sojourn.is_some(), inside.contains_key(&packet), "{name}"),
            _ => panic!("{name}: {row:?}"),
        }
        assert_eq!((packets, bytes), (backlog_packets, backlog_bytes), "{name}: {row:?}");
    }
    assert_eq!(seen.len() as u64, link.packets.offered, "{name}");
    assert_eq!(seen.last().copied().unwrap_or(0), link.packets.offered, "{name}: numbered without gaps");
    assert_eq!(link.load.sojourn_ms.samples, link.packets.dequeued);
}

#[test]
fn the_variables_of_a_law_are_in_its_rows() {
    for (kind, probability, average, delay, dropping) in [
        ("pfifo", false, false, false, false),
        ("red", true, true, false, false),
        ("pie", true, false, true, false),
        ("codel", false, false, true, true),
    ] {
        let text = busy(&format!("\"{kind}\"")).replace("record = { queue = true }", "");
        let (_, rows) = rows_of(&parse(&text, &["record.queue=[\"bottleneck.forward\"]"]));
        assert!(rows.len() > 1000);
        for Row { link, record, .. } in &rows {
            let found = (record.probability.is_some(), record.average.is_some(), record.delay.is_some());
            assert_eq!((link.as_str(), found), ("bottleneck.forward", (probability, average, delay)), "{kind}");
            assert_eq!(record.dropping.is_some(), dropping, "{kind}");
        }
        assert!(!probability || rows.iter().any(|row| row.record.probability > Some(0.0)), "{kind}");
    }
}

#[test]
fn some_directions_give_the_same_rows_as_all() {
    let text = busy("\"fq_codel\"");
    let (_, all) = rows_of(&parse(&text, &[]));
    for (which, ids) in [
        ("[\"bottleneck.forward\"]", &["bottleneck.forward"][..]),
        // In the order of the links, whatever order they are asked for in.
        ("[\"bottleneck.reverse\", \"access.forward\"]", &["access.forward", "bottleneck.reverse"]),
        ("[]", &[]),
        ("false", &[]),
    ] {
        let (_, some) = rows_of(&parse(&text, &[&format!("record.queue={which}")]));
        let expected: Vec<&Row> = all.iter().filter(|row| ids.contains(&row.link.as_str())).collect();
        assert!(some.iter().eq(expected), "{which}");
    }
}

#[test]
fn a_sink_may_break_the_run_off() {
    #[derive(Debug)]
    struct Few(u32);
    impl QueueSink for Few {
        fn record(&mut self, _: &QueueRecord<'_>) -> ControlFlow<()> {
            self.0 -= 1;
            if self.0 == 0 { ControlFlow::Break(()) } else { ControlFlow::Continue(()) }
        }
    }
    let scenario = parse(&busy("\"pie\""), &[]);
    for mut few in [Few(1), Few(5000)] {
        let queues = Some(QueueRecorder { directions: scenario.recorded_queues(), sink: &mut few });
        let result = run_recorded(&scenario.spec(0), Recorders { queues, ..Recorders::default() }, &mut |_| {
            ControlFlow::Continue(())
        });
        assert_eq!(result, Err(RunError::Interrupted));
        assert_eq!(few.0, 0);
    }
}

/// By hand: at 10 Mbit/s the SYN of 60 bytes takes 48 us and a full packet of 1500 bytes 1.2 ms.
/// With 1 ms each way, and no time for transmission on the way back, the first window goes out at
/// 2.048 ms: 4000 bytes in segments of 1448, the last with 1104 + 52 bytes of headers. The first
/// goes to the transmitter, the second waits for 1.2 ms, and the third finds the one place taken.
#[test]
fn a_tiny_transfer() {
    let text = r#"
schema = 1
run    = { duration = "6ms" }

[links.wire]
rate    = "10mbit"
delay   = "1ms"
queue   = { kind = "pfifo", limit = "1p" }
reverse = { rate = "unlimited" }

[[flows]]
id    = "f"
path  = ["wire"]
bytes = "4000B"
"#;
    let scenario = parse(text, &["record.queue=[\"wire.forward\"]"]);
    let mut csv = QueueCsv::new(Vec::new());
    recorded(&scenario, &mut csv);
    let text = String::from_utf8(csv.finish().expect("memory takes everything")).expect("UTF-8");
    insta::assert_snapshot!(text, @"
    time_s,link,packet,flow,seq_bytes,size_bytes,action,reason,sojourn_ms,probability,delay_ms,average_bytes,dropping,backlog_packets,backlog_bytes
    0.000000000,wire.forward,1,f.0,,60,enqueue,,,,,,,1,60
    0.000000000,wire.forward,1,f.0,,60,dequeue,,0.000000,,,,,0,0
    0.002048000,wire.forward,2,f.0,,52,enqueue,,,,,,,1,52
    0.002048000,wire.forward,2,f.0,,52,dequeue,,0.000000,,,,,0,0
    0.002048000,wire.forward,3,f.0,0,1500,enqueue,,,,,,,1,1500
    0.002048000,wire.forward,4,f.0,1448,1500,drop,limit,,,,,,1,1500
    0.002048000,wire.forward,5,f.0,2896,1156,drop,limit,,,,,,1,1500
    0.002089600,wire.forward,3,f.0,0,1500,dequeue,,0.041600,,,,,0,0
    ");
}
