//! Reordering that is measured at receivers and behind links: from the file to the summary and the
//! record, against what the run knows of every packet, and without effect on anything else.

use std::ops::ControlFlow;

use ackclock_scenario::{Override, Scenario};
use ackclock_sim::{Recorders, ReorderingRecorder, run_recorded};
use ackclock_trace::{
    DisplacementRecord, DisplacementSink, FlowSummary, PacketDisplacement, PacketReordering, ReorderInterval,
    ReorderingRecord, ReorderingSink, Summary,
};
use ackclock_units::Time;

/// Two paths of different delay, then a bottleneck for all; a probe of datagrams, and a flow whose
/// ACKs come over the paths.
const TWO_PATHS: &str = r#"
schema = 1

[run]
duration = "10s"

[record]
reordering = ["receiver", "near.forward", "shared.forward", "shared.reverse"]

[links.near]
rate  = "5mbit"
delay = "5ms"
queue = { kind = "pfifo", limit = "84p" }

[links.far]
rate  = "5mbit"
delay = "50ms"
queue = { kind = "pfifo", limit = "84p" }

[links.shared]
rate  = "20mbit"
delay = "1ms"
queue = { kind = "pfifo", limit = "200p" }

[[flows]]
id    = "bulk"
paths = [["near", "shared"], ["far", "shared"]]
split = "round_robin"
bytes = "4MB"

[[flows]]
id          = "probe"
path        = ["shared"]
transport   = "udp"
application = { kind = "cbr", rate = "100kbit", size = "200B" }
"#;

#[derive(Debug, Default)]
struct Rows(Vec<(String, String, ReorderInterval)>);

impl ReorderingSink for Rows {
    fn record(&mut self, record: &ReorderingRecord<'_>) -> ControlFlow<()> {
        self.0.push((record.flow.to_owned(), record.tap.to_owned(), record.interval.clone()));
        ControlFlow::Continue(())
    }
}

fn parse(set: &[&str]) -> Result<Scenario, String> {
    let set: Vec<Override> =
        set.iter().map(|text| Override { flag: "--set".to_owned(), text: (*text).to_owned() }).collect();
    Scenario::parse("test.toml", TWO_PATHS.as_bytes(), &set).map_err(|error| error.to_string())
}

fn recorded(set: &[&str]) -> (Summary<()>, Rows) {
    let scenario = parse(set).unwrap_or_else(|error| panic!("{error}"));
    let mut rows = Rows::default();
    let recorder = |sink| scenario.reordering_every().map(|every| ReorderingRecorder { every, sink });
    let recorders = Recorders { reordering: recorder(&mut rows), ..Recorders::default() };
    let summary = run_recorded(&scenario.spec(0), recorders, &mut |_| ControlFlow::Continue(())).expect("it ends well");
    (summary, rows)
}

fn run(set: &[&str]) -> Summary<()> {
    let scenario = parse(set).unwrap_or_else(|error| panic!("{error}"));
    ackclock_sim::run(&scenario.spec(0), &mut |_| ControlFlow::Continue(())).expect("it ends well")
}

fn without_reordering(mut summary: Summary<()>) -> Summary<()> {
    summary.flows.iter_mut().for_each(|flow| flow.reordering.clear());
    summary
}

/// The receiver's place has what the run knows of the displacements.
fn assert_is_the_truth(flow: &FlowSummary) {
    let (known, found) = (&flow.displacement, &flow.reordering["receiver"]);
    assert_eq!(found.displacement.samples, known.distribution.samples, "{}", flow.id);
    for (found, known) in [(found.early, known.early), (found.on_time, known.on_time), (found.late, known.late)] {
        assert!((found - known).abs() < 1e-9, "{}: {found} {known}", flow.id);
    }
    let quantiles = |of: &ackclock_trace::Distribution| [of.min, of.quantiles.p25, of.quantiles.p75, of.max];
    assert_eq!(quantiles(&found.displacement), quantiles(&known.distribution), "{}", flow.id);
}

#[test]
fn the_receiver_sees_what_the_run_knows() {
    // Without losses; with some, after which the meter waits for what does not come; and with
    // copies, which it leaves out. By RFC 5236 what was lost counts in between, and the run takes
    // it out: these seeds have none there.
    for set in [
        &[][..],
        &["links.near.loss={kind=\"iid\", probability=0.002}"],
        &["links.shared.duplicate=0.05", "run.seed=2"],
    ] {
        let summary = run(set);
        let bulk = &summary.flows[0];
        assert!(bulk.displacement.late > 0.2, "{:?}", bulk.displacement);
        assert_is_the_truth(bulk);
        let found = &bulk.reordering["receiver"];
        assert_eq!(found.duplicates > 0, set.iter().any(|key| key.contains("duplicate")));
        assert_eq!(found.beyond, 0);
        // Nobody waits for what was lost: windows are of some dozens of packets.
        assert!(found.rbd.max < 200, "{}", found.rbd.max);
    }
}

#[test]
fn links_are_measured_where_packets_leave_them() {
    let (summary, _) = recorded(&[]);
    let bulk = &summary.flows[0].reordering;
    let places: Vec<&str> = bulk.keys().map(String::as_str).collect();
    assert_eq!(places, ["near.forward", "receiver", "shared.forward", "shared.reverse"]);
    // A path alone keeps the order; every other packet is missing on it.
    let near = &bulk["near.forward"];
    assert_eq!((near.reordered, near.on_time, near.beyond), (0, 1.0, 0));
    // A few are still on their way at the end.
    assert!(near.packets.abs_diff(bulk["receiver"].packets / 2) <= 4, "{}", near.packets);
    // Behind the last link is the receiver, a link away from it nothing else.
    assert_eq!(
        bulk["shared.forward"],
        PacketReordering { late_ms: bulk["shared.forward"].late_ms, ..bulk["receiver"].clone() }
    );
    assert!(bulk["receiver"].ratio > Some(0.2) && bulk["receiver"].n_reordering.at_least_3 > 0.0);
    // ACKs come back in order.
    let acks = &bulk["shared.reverse"];
    assert!(acks.packets > 500 && acks.reordered == 0, "{acks:?}");
    // Datagrams as well, which pass neither of the paths.
    let probe = &summary.flows[1].reordering;
    assert_eq!(probe.keys().collect::<Vec<_>>(), ["receiver", "shared.forward"]);
    let received = summary.flows[1].datagrams.as_ref().map(|datagrams| datagrams.received);
    assert_eq!(Some(probe["receiver"].packets), received);
    assert_eq!(probe["receiver"].on_time, 1.0);
}

#[test]
fn datagrams_out_of_order_are_those_of_their_summary() {
    let summary = run(&["links.shared.reorder={extent=3, probability=0.1}"]);
    let probe = &summary.flows[1];
    let (known, found) = (&probe.datagrams.as_ref().expect("it sends some").reordering, &probe.reordering["receiver"]);
    assert!(known.reordered > 10);
    assert_eq!((found.reordered, found.ratio, found.extent), (known.reordered, known.ratio, known.extent));
    assert_eq!(found.late_ms, known.late_ms);
}

#[test]
fn intervals_add_up_to_the_summary() {
    for set in [&[][..], &["record.reordering_every=\"70ms\"", "links.far.loss={kind=\"iid\", probability=0.01}"]] {
        let (summary, Rows(rows)) = recorded(set);
        for flow in &summary.flows {
            for (place, found) in &flow.reordering {
                let of: Vec<&ReorderInterval> =
                    rows.iter().filter(|row| *row.0 == *flow.id && row.1 == *place).map(|row| &row.2).collect();
                let sum = |part: fn(&ReorderInterval) -> u64| of.iter().map(|row| part(row)).sum::<u64>();
                assert_eq!((sum(|row| row.packets), sum(|row| row.reordered)), (found.packets, found.reordered));
                let share = |part: u64| part as f64 / found.displacement.samples as f64;
                let shares = [sum(|row| row.early), sum(|row| row.on_time), sum(|row| row.late)].map(share);
                assert_eq!(shares, [found.early, found.on_time, found.late], "{} {place}", flow.id);
                assert!(of.is_sorted_by(|a, b| a.from < b.from), "{} {place}", flow.id);
                assert!(of.iter().all(|row| row.from < Time::from_secs(10)));
            }
        }
        let (plain, recorded) = (run(set), summary);
        assert_eq!(plain, recorded, "the record changes nothing");
    }
}

#[test]
fn measuring_changes_nothing_else() {
    for set in [&[][..], &["links.near.loss={kind=\"iid\", probability=0.01}"], &["flows.0.host=\"smoltcp\""]] {
        let off = [set, &["record.reordering=false"]].concat();
        assert_eq!(without_reordering(run(set)), run(&off));
        // At links alone, visits to hosts take the usual path.
        let links = [set, &["record.reordering=[\"shared.forward\"]"]].concat();
        assert_eq!(without_reordering(run(&links)), run(&off));
    }
    // Links that share a medium deliver in their own way.
    let set = ["links.shared.medium={kind=\"wifi\"}"];
    let off = [&set[..], &["record.reordering=false"]].concat();
    let measured = run(&set);
    let packets = measured.flows[0].reordering["shared.forward"].packets;
    assert!(packets > 500, "{packets}");
    assert_eq!(without_reordering(measured), run(&off));
}

#[derive(Debug, Default)]
struct Displacements(Vec<(String, PacketDisplacement)>);

impl DisplacementSink for Displacements {
    fn record(&mut self, record: &DisplacementRecord<'_>) -> ControlFlow<()> {
        self.0.push((record.flow.to_owned(), record.packet));
        ControlFlow::Continue(())
    }
}

/// The displacement of each packet by sequence numbers, those of the first flow, with the summary.
fn displaced(set: &[&str]) -> (Summary<()>, Vec<PacketDisplacement>) {
    let scenario = parse(&[set, &["record.displacement=true"]].concat()).unwrap_or_else(|error| panic!("{error}"));
    let mut rows = Displacements::default();
    let recorders = Recorders { displacement: Some(&mut rows), ..Recorders::default() };
    let summary = run_recorded(&scenario.spec(0), recorders, &mut |_| ControlFlow::Continue(())).expect("it ends well");
    assert!(rows.0.iter().all(|row| *row.0 == *summary.flows[0].id), "datagrams have no sequence numbers");
    let unrecorded = run(&[set, &["record.displacement=true"]].concat());
    assert_eq!(summary, unrecorded, "the record changes nothing");
    assert_eq!(without_reordering(unrecorded), without_reordering(run(set)), "nor does the place");
    (summary, rows.0.into_iter().map(|row| row.1).collect())
}

#[test]
fn displacements_by_sequence_numbers_are_those_of_what_is_sent_first() {
    let loss = "links.near.loss={kind=\"iid\", probability=0.01}";
    for set in [
        &[][..],
        &[loss],
        &[loss, "flows.0.host=\"smoltcp\""],
        &["links.near.corrupt=0.01", "links.shared.duplicate=0.05"],
        &["links.near.queue.limit=\"10p\""],
    ] {
        let (summary, rows) = displaced(set);
        let flow = &summary.flows[0];
        let found = &flow.reordering["sequence"];
        assert!(rows.is_sorted_by_key(|row| row.at), "in order of arrival");
        // Lost packets leave gaps, and sequence numbers rise with their places.
        let mut places: Vec<(u64, u64)> = rows.iter().map(|row| (row.number, row.seq)).collect();
        places.sort_unstable();
        assert!(places.is_sorted_by(|one, next| one.0 < next.0 && one.1 < next.1), "each place once");
        assert!(
            places.last().expect("packets").0 < flow.sent.sent_packets - flow.sent.retransmitted_packets,
            "{set:?}"
        );
        // The k-th packet to arrive ought to be the k-th of those that do.
        for (row, place) in rows.iter().zip(&places) {
            let by = place.0 as i64 - row.number as i64;
            assert_eq!(row.displacement, Some(by), "{set:?}: {row:?}");
        }
        assert_eq!((found.packets, found.duplicates, found.beyond), (rows.len() as u64, 0, 0), "{set:?}");
        let share = |is: fn(i64) -> bool| {
            let count = rows.iter().filter(|row| row.displacement.is_some_and(is)).count();
            count as f64 / rows.len() as f64
        };
        assert_eq!(
            [found.early, found.on_time, found.late],
            [share(|by| by < 0), share(|by| by == 0), share(|by| by > 0)]
        );
        let shares = found.density.from..;
        for (by, &density) in shares.zip(&found.density.shares) {
            let count = rows.iter().filter(|row| row.displacement == Some(by)).count();
            assert_eq!(density, count as f64 / rows.len() as f64, "{set:?}: {by}");
        }
        assert!(found.late > 0.1, "{set:?}: {found:?}");
    }
}

#[test]
fn each_displacement_is_recorded_where_they_are_measured() {
    let taps = |set: &[&str]| parse(set).map(|scenario| scenario.spec(0).reordering.map_or(0, |of| of.taps.len()));
    let on = "record.displacement=true";
    assert_eq!(taps(&[on]), Ok(5));
    assert_eq!(taps(&[on, "record.reordering=false"]), Ok(1));
    assert_eq!(taps(&[on, "record.reordering=[\"sequence\"]"]), Ok(1));
    assert_eq!(taps(&["record.reordering=[\"sequence\"]"]), Ok(1));
    for (set, error) in [
        (&["record.displacement=1"][..], "record.displacement: not the right type"),
        (&["record.reordering=[\"sequnce\"]"], "did you mean `sequence`?"),
        (
            &[on, "record.reordering=false", "flows.0.count=11000"],
            "record.displacement: 11001 flows at 1 places are too many",
        ),
    ] {
        let found = parse(set).expect_err("it is wrong");
        assert!(found.contains(error), "{set:?}: {found}");
    }
}

#[test]
fn what_is_no_place_is_refused() {
    for (set, error) in [
        ("record.reordering=true", "record.reordering: not the right type"),
        ("record.reordering=[\"recever\"]", "did you mean `receiver`?"),
        ("record.reordering=[\"shared\"]", "did you mean `shared.forward`?"),
        ("record.reordering=[3]", "there is no such place"),
        ("record.reordering_every=\"0s\"", "record.reordering_every: must not be zero"),
        ("record.reordering_every=\"1us\"", "10000000 intervals in the run"),
        ("flows.0.count=3000", "3001 flows at 4 places are too many"),
    ] {
        let found = parse(&[set]).expect_err(set);
        assert!(found.contains(error), "{set}: {found}");
    }
    // A place that is named twice is one.
    let scenario = parse(&["record.reordering=[\"receiver\", \"receiver\"]"]).expect("it is right");
    assert_eq!(scenario.spec(0).reordering.expect("a place").taps.len(), 1);
    assert!(parse(&["record.reordering=[]"]).expect("it is right").spec(0).reordering.is_none());
}
