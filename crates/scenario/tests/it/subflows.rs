//! The records of the subflows of `transport = "mptcp"`, and the fates of their data.

use std::collections::{BTreeMap, BTreeSet};
use std::ops::ControlFlow;

use ackclock_scenario::Scenario;
use ackclock_sim::{FlowId, QlogPoint, QlogRecorder, Recorders, SeriesConfig, SeriesRecorder, run, run_recorded};
use ackclock_stack::RecoveryEvent;
use ackclock_trace::{
    ErttRecord, ErttSink, FlowPoint, FlowSummary, LossVerdict, MultipathSummary, QlogRecord, QlogSink, SeriesOf,
    SeriesRecord, SeriesSink, SiftrRecord, SiftrSink, SubflowSummary, TcpEvent, TcpRecord, TcpSink,
};
use ackclock_units::{Span, Time};

const SLOW: &str = "rate = \"5mbit\"\ndelay = \"50ms\"\nqueue = { kind = \"pfifo\", limit = \"84p\" }\n";
const FAST: &str = "rate = \"5mbit\"\ndelay = \"5ms\"\nqueue = { kind = \"pfifo\", limit = \"84p\" }\n";

/// A flow over two links.
fn scenario(slow: &str, fast: &str, flow: &str) -> Scenario {
    let links = format!("[links.slow]\n{SLOW}{slow}\n[links.fast]\n{FAST}{fast}\n");
    let flow = format!("[[flows]]\nid = \"m\"\ntransport = \"mptcp\"\nsubflows = [[\"slow\"], [\"fast\"]]\n{flow}");
    let text = format!("schema = 1\n[run]\nduration = \"20s\"\n{links}{flow}");
    Scenario::parse("test", text.as_bytes(), &[]).unwrap_or_else(|error| panic!("{}", error.render(false)))
}

fn flow_of(scenario: &Scenario) -> FlowSummary {
    run(&scenario.spec(0), &mut |_| ControlFlow::Continue(())).expect("nobody interrupts").flows.remove(0)
}

fn multipath(flow: &FlowSummary) -> &MultipathSummary {
    flow.multipath.as_deref().expect("of several subflows")
}

fn sum(flow: &FlowSummary, of: impl Fn(&SubflowSummary) -> u64) -> u64 {
    multipath(flow).subflows.iter().map(of).sum()
}

/// Asserts that the subflows add up to the flow, and that each retransmission was judged.
fn adds_up(flow: &FlowSummary) {
    assert_eq!(sum(flow, |one| one.sent.sent_packets), flow.sent.sent_packets);
    assert_eq!(sum(flow, |one| one.recoveries.timeouts), flow.recoveries.timeouts);
    assert_eq!(sum(flow, |one| one.recoveries.fast_recoveries), flow.recoveries.fast_recoveries);
    assert_eq!(sum(flow, |one| one.spurious_retransmits), flow.spurious_retransmits);
    assert_eq!(sum(flow, |one| one.retransmissions.needed), flow.retransmissions.needed);
    assert_eq!(sum(flow, |one| one.loss_declarations.right), flow.loss_declarations.right);
    assert_eq!(sum(flow, |one| one.loss_declarations.wrong), flow.loss_declarations.wrong);
    for one in &multipath(flow).subflows {
        let judged = &one.retransmissions;
        assert_eq!(one.spurious_retransmits, judged.spurious_reordering + judged.spurious_delay);
        assert_eq!(judged.needed + one.spurious_retransmits, one.sent.retransmitted_packets, "{one:?}");
        assert_eq!(judged.by_queue.values().flat_map(BTreeMap::values).sum::<u64>(), judged.needed);
    }
    // Data sent on a subflow in vain was given to two.
    assert!(sum(flow, |one| one.needless_bytes) <= sum(flow, |one| one.reinjected_bytes), "{flow:?}");
}

const LOSSY: &str = "loss = { kind = \"iid\", probability = 0.01 }\n";

#[test]
fn what_a_link_lost_is_sent_again_for_good_reason() {
    let flow = flow_of(&scenario(LOSSY, "", ""));
    adds_up(&flow);
    let [slow, fast] = &multipath(&flow).subflows[..] else { panic!("{flow:?}") };
    // Slow start loses every other packet of a window, and beside what the connection tells an ACK
    // has room for two ranges: of more, the sender does not know that they have arrived.
    assert!(slow.sent.retransmitted_packets > 20, "{slow:?}");
    assert!(slow.spurious_retransmits * 30 < slow.sent.retransmitted_packets, "{slow:?}");
    assert_eq!(slow.retransmissions.by_queue.keys().collect::<Vec<_>>(), ["slow.forward"]);
    assert!(slow.retransmissions.by_queue["slow.forward"].contains_key("link"), "{slow:?}");
    // Its own queue drops, and nothing else.
    assert!(fast.retransmissions.by_queue.keys().all(|link| link == "fast.forward"), "{fast:?}");
    assert!(flow.displacement.distribution.max >= Some(0.0), "{flow:?}");
}

#[test]
fn a_delay_spike_makes_the_timeouts_of_its_path_spurious() {
    let spike = "schedule = [{ at = \"5s\", delay = \"1500ms\" }, { at = \"6s\", delay = \"50ms\" }]\n";
    let host = "host = \"rfc\"\n";
    let flow = flow_of(&scenario(spike, "", host));
    adds_up(&flow);
    let [slow, fast] = &multipath(&flow).subflows[..] else { panic!("{flow:?}") };
    assert!(slow.recoveries.timeouts > 0 && slow.retransmissions.spurious_delay > 0, "{slow:?}");
    assert_eq!(fast.retransmissions.spurious_delay, 0, "{fast:?}");
    assert_eq!(flow.retransmissions.spurious_delay, slow.retransmissions.spurious_delay);
    assert!(slow.loss_declarations.wrong > 0, "{slow:?}");
}

/// All reinjections are those of subflows whose timers expire.
const TIMEOUTS: &str = "host = \"rfc\"\nopportunistic_retransmission = false\npenalization = false\n";

#[test]
fn what_is_reinjected_is_needless_if_it_had_arrived() {
    let reinjected = |slow: &str| {
        let flow = flow_of(&scenario(slow, "", TIMEOUTS));
        adds_up(&flow);
        let [all, needless] = [sum(&flow, |one| one.reinjected_bytes), sum(&flow, |one| one.needless_bytes)];
        [all, needless, multipath(&flow).duplicate_bytes]
    };
    let out = |[from, to]: [u32; 2]| format!("{{ at = \"{from}ms\", loss = 1 }}, {{ at = \"{to}ms\", loss = 0 }}");
    // The link breaks off: what was on its way is lost, and comes twice after its return.
    let [all, needless, twice] = reinjected(&format!("schedule = [{}]\n", out([5000, 9000])));
    assert!(all > 50_000 && needless == 0 && twice > 0, "{all} {needless} {twice}");
    // The acknowledgments of the connection come over the other path if only acknowledgments are
    // lost.
    assert_eq!(reinjected(&format!("reverse = {{ schedule = [{}] }}\n", out([5000, 9000]))), [0; 3]);
    // Data lost at first is lost again. Data that arrives in between, 80 ms at 5 Mbit/s or 50 kB
    // with its headers, is kept by the subflow and sent once more when its timer expires.
    let [all, needless, _] = reinjected(&format!("schedule = [{}, {}]\n", out([5000, 5020]), out([5100, 5900])));
    assert!(all > needless + 10_000 && (40_000..50_000).contains(&needless), "{all} {needless}");
}

#[test]
fn reordering_is_that_of_all_subflows_together() {
    let record = "scheduler = \"round_robin\"\n[record]\nreordering = [\"receiver\", \"slow.forward\"]\n";
    let flow = flow_of(&scenario("", "", record));
    let [receiver, slow] = ["receiver", "slow.forward"].map(|place| &flow.reordering[place]);
    // Every other packet takes the path that is 45 ms longer.
    assert!(receiver.ratio > Some(0.2) && receiver.packets > 0, "{receiver:?}");
    assert_eq!(slow.ratio, Some(0.0), "{slow:?}");
}

#[test]
fn subflows_that_follow_each_other_on_a_path_are_judged_together() {
    let changes =
        "path_changes = [{ at = \"5s\", subflow = 1, up = false }, { at = \"8s\", subflow = 1, up = true }]\n";
    let flow = flow_of(&scenario(LOSSY, "", changes));
    adds_up(&flow);
    let [slow, _] = &multipath(&flow).subflows[..] else { panic!("{flow:?}") };
    assert!(slow.sent.retransmitted_packets > 20, "{slow:?}");
    assert!(slow.spurious_retransmits * 30 < slow.sent.retransmitted_packets, "{slow:?}");
    let open = slow.limited_s;
    let time = open.cwnd + open.rwnd + open.app + open.pacing;
    assert!((16.0..17.5).contains(&time), "three of 20 s it was given up: {open:?}");
}

#[derive(Debug, Default)]
struct Rows {
    /// Bytes by the acknowledgments of each subflow: the last number, and their sum.
    acked: BTreeMap<Option<u16>, [u64; 2]>,
    needed: BTreeMap<Option<u16>, u64>,
    spurious: BTreeMap<Option<u16>, u64>,
    declared: BTreeMap<Option<u16>, u64>,
    /// The same in the log of loss recovery.
    lost: BTreeMap<Option<u16>, u64>,
    cwnd: BTreeMap<Option<u16>, Option<u64>>,
    /// Segments at senders (0) and receivers, by their ports.
    segments: BTreeMap<(u32, u16, u16), u64>,
    measurements: BTreeMap<Option<u16>, u64>,
    points: Vec<(Time, SeriesOf, u64, u64)>,
}

/// Takes one kind of record.
#[derive(Debug)]
struct Part<'r>(&'r std::cell::RefCell<Rows>);

impl TcpSink for Part<'_> {
    fn record(&mut self, record: &TcpRecord<'_>) -> ControlFlow<()> {
        let rows = &mut *self.0.borrow_mut();
        match record.event {
            TcpEvent::Ack(ack) => {
                let [last, sum] = rows.acked.entry(record.subflow).or_default();
                (*last, *sum) = (ack.ack, *sum + ack.acked);
            }
            TcpEvent::Retransmission(judged) => {
                let is_needed = matches!(judged.verdict, LossVerdict::Lost { .. });
                *if is_needed { &mut rows.needed } else { &mut rows.spurious }.entry(record.subflow).or_default() += 1;
            }
            TcpEvent::Declaration(_) => *rows.declared.entry(record.subflow).or_default() += 1,
        }
        ControlFlow::Continue(())
    }
}

impl QlogSink for Part<'_> {
    fn record(&mut self, record: &QlogRecord) -> ControlFlow<()> {
        let rows = &mut *self.0.borrow_mut();
        match record.event {
            RecoveryEvent::Lost(_) => *rows.lost.entry(record.subflow).or_default() += 1,
            RecoveryEvent::Metrics(metrics) => _ = rows.cwnd.insert(record.subflow, metrics.congestion_window),
            RecoveryEvent::State(_) | RecoveryEvent::Sent(_) | RecoveryEvent::Sampled(_) => {}
        }
        ControlFlow::Continue(())
    }
}

impl SiftrSink for Part<'_> {
    fn record(&mut self, record: &SiftrRecord) -> ControlFlow<()> {
        if record.connection.is_ok() && !record.inbound {
            let key = (record.host, record.port, record.peer_port);
            *self.0.borrow_mut().segments.entry(key).or_default() += 1;
        }
        ControlFlow::Continue(())
    }
}

impl ErttSink for Part<'_> {
    fn record(&mut self, record: &ErttRecord<'_>) -> ControlFlow<()> {
        *self.0.borrow_mut().measurements.entry(record.subflow).or_default() += 1;
        ControlFlow::Continue(())
    }
}

impl SeriesSink for Part<'_> {
    fn record(&mut self, record: &SeriesRecord<'_>) -> ControlFlow<()> {
        self.0.borrow_mut().points.push((record.to, record.of, record.bytes, record.packets));
        ControlFlow::Continue(())
    }
}

fn recorded(scenario: &Scenario) -> (FlowSummary, Rows) {
    let rows = std::cell::RefCell::new(Rows::default());
    let [mut tcp, mut qlog, mut siftr, mut ertt, mut series] = [(); 5].map(|()| Part(&rows));
    let config = SeriesConfig { every: Span::from_millis(100), window: Span::from_secs(1) };
    let points = [QlogPoint::Flow(FlowId::new(0))];
    let recorders = Recorders {
        tcp: Some(&mut tcp),
        qlog: Some(QlogRecorder { points: &points, sink: &mut qlog }),
        siftr: Some(&mut siftr),
        ertt: Some(&mut ertt),
        series: Some(SeriesRecorder { config, sink: &mut series }),
        ..Recorders::default()
    };
    let summary = run_recorded(&scenario.spec(0), recorders, &mut |_| ControlFlow::Continue(()));
    let flow = summary.expect("nobody interrupts").flows.remove(0);
    (flow, rows.into_inner())
}

#[test]
fn records_have_rows_for_each_subflow_that_add_up_to_the_summary() {
    let scenario = scenario(LOSSY, LOSSY, "cc = { kind = \"vegas\", variant = \"freebsd\" }\n");
    let (flow, rows) = recorded(&scenario);
    assert_eq!(flow, flow_of(&scenario), "recording changes nothing");
    adds_up(&flow);
    for one in &multipath(&flow).subflows {
        let subflow = Some(one.path as u16);
        let of = |counts: &BTreeMap<Option<u16>, u64>| counts.get(&subflow).copied().unwrap_or(0);
        let [last, sum] = rows.acked[&subflow];
        assert_eq!(last, sum);
        assert!(last > 0 && last <= one.scheduled_bytes, "{one:?}");
        assert_eq!(of(&rows.needed), one.retransmissions.needed);
        assert_eq!(of(&rows.spurious), one.spurious_retransmits);
        let declared = one.loss_declarations;
        assert_eq!(of(&rows.declared), declared.right + declared.wrong);
        assert_eq!(of(&rows.lost), of(&rows.declared));
        assert!(rows.cwnd[&subflow] > Some(0), "{rows:?}");
        assert!(of(&rows.measurements) > 50, "{rows:?}");
    }
    assert!(!rows.acked.contains_key(&None));
    // 40000 is the port of the first subflow, and the next one that of the other.
    let ports: BTreeSet<(u32, u16, u16)> = rows.segments.keys().copied().collect();
    let expected = [(0, 40_000, 5_001), (0, 40_001, 5_001), (1, 5_001, 40_000), (1, 5_001, 40_001)];
    assert_eq!(ports, expected.into());
    assert!(rows.segments[&(0, 40_000, 5_001)] >= multipath(&flow).subflows[0].sent.sent_packets);
}

#[test]
fn a_series_has_rows_for_each_subflow_that_add_up_to_those_of_the_flow() {
    let (flow, rows) = recorded(&scenario(LOSSY, "", "scheduler = \"round_robin\"\n"));
    let mut most = 0;
    let mut sums: BTreeMap<Time, [u64; 4]> = BTreeMap::new();
    let mut flows: BTreeMap<Time, [u64; 4]> = BTreeMap::new();
    let mut received = [0; 2];
    for (to, of, bytes, packets) in &rows.points {
        let values = |point: &FlowPoint| [*bytes, *packets, point.retransmitted_packets, point.timeouts];
        match of {
            SeriesOf::Flow(point) => {
                most = most.max(point.reordered_bytes.expect("of a flow of several subflows"));
                flows.insert(*to, values(point));
                assert!(point.cwnd.is_some() && point.in_flight.is_some(), "{point:?}");
            }
            SeriesOf::Subflow(number, point) => {
                let sum = sums.entry(*to).or_default();
                sum.iter_mut().zip(values(point)).for_each(|(sum, value)| *sum += value);
                received[usize::from(*number) - 1] += point.delivered_bytes;
                if *to > Time::from_secs(1) {
                    assert!(point.cwnd > Some(0) && point.srtt.is_some() && point.ca_state.is_some(), "{point:?}");
                }
            }
            SeriesOf::Group(_) | SeriesOf::Link(_) | SeriesOf::Class(_) => {}
        }
    }
    assert_eq!(flows, sums);
    assert_eq!(flows.len(), 200);
    assert_eq!(received.to_vec(), multipath(&flow).subflows.iter().map(|one| one.received_bytes).collect::<Vec<_>>());
    assert!(most > 0 && most <= multipath(&flow).reordered_bytes_max, "{most}");
    let sent: u64 = flows.values().map(|values| values[1]).sum();
    assert_eq!(sent, flow.sent.sent_packets);
}

#[test]
fn one_thing_at_a_time_holds_a_connection_back() {
    let limits = |flow: &str| {
        let flow = flow_of(&scenario("", "", flow));
        let all = flow.limited_s;
        let time = all.cwnd + all.rwnd + all.app + all.pacing;
        assert!((19.0..=20.0).contains(&time), "all but the handshake: {all:?}");
        all
    };
    let bulk = limits("scheduler = \"min_rtt\"\n");
    assert!(bulk.cwnd > 18.0, "{bulk:?}");
    // 200 kB are 0.3 s at 5 Mbit/s, and in the slow path's queue they wait.
    let window = limits(
        "host = \"rfc\"\nreceive_buffer = \"100kB\"\nopportunistic_retransmission = false\npenalization = false\n",
    );
    assert!(window.rwnd > 10.0, "{window:?}");
    // 1 Mbit/s of 10.
    let talk = limits("application = { kind = \"cbr\", rate = \"1mbit\", size = \"1250B\" }\n");
    assert!(talk.app > 15.0, "{talk:?}");
    let paced = limits("cc = \"bbr\"\n");
    assert!(paced.pacing > 10.0, "{paced:?}");
}
