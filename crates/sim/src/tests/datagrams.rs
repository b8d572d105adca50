//! Flows of datagrams.

use ackclock_trace::DatagramSummary;
use ackclock_traffic::Pattern;
use ackclock_traffic::voice::Codec;
use ackclock_units::Ecn;

use super::*;

pub(crate) fn datagrams(application: DatagramApplication, ecn: Ecn) -> FlowSpec {
    let mut flow = flow("d", vec![0], false);
    let spec = DatagramSpec { application, mtu: 1500, ecn };
    flow.sender = HostSpec::Datagrams(spec.clone());
    flow.receiver = HostSpec::Datagrams(spec);
    flow
}

/// 1000 bytes each 10 ms.
fn cbr() -> FlowSpec {
    let pattern = Pattern::cbr(Rate::from_bps(800_000).unwrap(), 1000);
    datagrams(DatagramApplication::Messages { kind: "cbr", pattern }, Ecn::NotEct)
}

fn ping() -> FlowSpec {
    datagrams(DatagramApplication::Ping { interval: Span::from_millis(100), size: 56 }, Ecn::NotEct)
}

fn impaired(impairments: Impairments) -> LinkSpec {
    let mut link = link("a", pfifo(100));
    link.forward.impairments = impairments;
    link
}

/// The summary of a run of 20 s, and the results of its first flow's datagrams.
fn run_one(link: LinkSpec, flow: FlowSpec) -> (Summary<()>, DatagramSummary) {
    let summary = run_to_end(&spec(vec![link], vec![flow]));
    let datagrams = summary.flows[0].datagrams.as_deref().cloned().expect("it is such a flow");
    (summary, datagrams)
}

#[test]
fn a_constant_rate_arrives_as_it_was_sent() {
    let (summary, found) = run_one(link("a", pfifo(100)), cbr());
    // At 0, 10, ... 19990 ms. The last one would arrive after 1028 bytes at 10 Mbit/s, 0.8224 ms,
    // and 10 ms of propagation, when the run is over.
    assert_eq!((found.sent, found.received, found.lost, found.duplicates), (2000, 1999, 0, 0));
    assert_eq!((found.delay_ms.distribution.min, found.delay_ms.distribution.max), (Some(10.8224), Some(10.8224)));
    assert_eq!((found.delay_ms.mean, found.jitter_ms, found.loss_ratio), (Some(10.8224), Some(0.0), Some(0.0)));
    assert_eq!((found.application, found.marked, found.reordering.reordered), ("cbr", 0, 0));
    let flow = &summary.flows[0];
    assert_eq!(
        (flow.sent.sent_packets, flow.progress.delivered_bytes, flow.progress.acked_bytes),
        (2000, 1_999_000, 0)
    );
    assert_eq!((flow.goodput_bps, flow.rtt_ms.samples), (1_999_000.0 * 8.0 / 20.0, 0));
    assert_eq!((&*flow.cc, &*flow.host, flow.loss_detector), ("none", "none", "none"));
    // IP bytes: 1028 each 10 ms; the first of 37 windows of 2 s has 199 instead of 200 of them.
    let mean = 822_400.0 * (1.0 - 1.0 / 7400.0);
    assert!((flow.throughput_bps.mean.unwrap() - mean).abs() < 1e-3, "{:?}", flow.throughput_bps);
    assert_eq!((summary.packets, summary.links[0].packets.offered, summary.links[1].packets.offered), (2000, 2000, 0));
}

#[test]
fn an_application_stops() {
    let mut flow = cbr();
    (flow.start, flow.stop) = (Time::from_secs(1), Some(Time::from_secs(3)));
    let (summary, found) = run_one(link("a", pfifo(100)), flow);
    // From 1000 to 2990 ms; what is due at the stop is not sent any more. The flow ends with the
    // last arrival, 10.8224 ms after 2990 ms.
    assert_eq!((found.sent, found.received), (200, 200));
    let lasted = 2.0008224;
    assert!((summary.flows[0].goodput_bps - 200.0 * 8000.0 / lasted).abs() < 1e-6, "{}", summary.flows[0].goodput_bps);
    assert_eq!((summary.flows[0].start_s, summary.flows[0].completed_s), (Some(1.0), None));
}

#[test]
fn an_echo_measures_the_round_trip() {
    let (summary, found) = run_one(link("a", pfifo(100)), ping());
    // 84 bytes at 10 Mbit/s take 67.2 us, both ways, and propagation 20 ms.
    assert_eq!((found.application, found.sent, found.received, found.lost), ("ping", 200, 200, 0));
    let rtt = summary.flows[0].rtt_ms;
    assert_eq!((rtt.min, rtt.max, rtt.samples), (Some(20.1344), Some(20.1344), 200));
    assert_eq!((found.delay_ms.mean, summary.links[1].packets.offered), (Some(20.1344), 200));
    assert_eq!(summary.flows[0].progress.delivered_bytes, 200 * 56);
}

#[test]
fn copies_of_requests_are_not_delivered_twice() {
    let mut link = link("a", pfifo(100));
    link.forward.impairments.duplicate = 1.0;
    link.forward.impairments.loss = Loss::List(vec![3]);
    // Both copies of a request are answered, and the second answer is a copy.
    let (summary, found) = run_one(link, ping());
    assert_eq!((found.sent, found.received, found.lost), (200, 199, 1));
    assert_eq!((found.duplicates, summary.links[1].packets.offered), (199, 398));
    assert_eq!(summary.flows[0].progress.delivered_bytes, 199 * 56);
}

#[test]
fn a_lost_answer_is_a_lost_echo() {
    let mut link = link("a", pfifo(100));
    link.forward.impairments.loss = Loss::List(vec![3, 4]);
    link.reverse.impairments.loss = Loss::List(vec![3]);
    // Requests 3 and 4 of 1 to 200 are lost; the third answer is that to the fifth request.
    let (summary, found) = run_one(link, ping());
    assert_eq!((found.sent, found.received, found.lost), (200, 197, 3));
    assert_eq!((found.loss_bursts.count, found.loss_bursts.max_length), (1, 3));
    assert_eq!(summary.flows[0].rtt_ms.samples, 197);
}

#[test]
fn losses_on_the_wire_and_in_the_queue_are_counted_in_their_order() {
    let loss = Loss::List(vec![2, 10, 11, 12, 1999]);
    let (_, found) = run_one(impaired(Impairments { loss, ..Impairments::default() }), cbr());
    assert_eq!((found.sent, found.received, found.lost), (2000, 1994, 5));
    let bursts = found.loss_bursts;
    assert_eq!((bursts.count, bursts.mean_length, bursts.max_length), (3, Some(5.0 / 3.0), 3));
    // 8, 1, 1, 1987.
    assert_eq!((bursts.distance.min, bursts.distance.max, bursts.distance.samples), (Some(1.0), Some(1987.0), 4));
    assert_eq!(found.loss_ratio, Some(5.0 / 1999.0));
    // Twice the rate of the link into a queue of five: half of what comes is dropped.
    let pattern = Pattern::cbr(Rate::from_bps(20_000_000).unwrap(), 1000);
    let flow = datagrams(DatagramApplication::Messages { kind: "cbr", pattern }, Ecn::NotEct);
    let (summary, found) = run_one(link("a", pfifo(5)), flow);
    let dropped: u64 = summary.links[0].packets.dropped.values().sum();
    // At the end 6 are in queue and transmission, and 12 or 13 on the wire: 10 ms at 0.8224 ms.
    assert_eq!((found.lost, found.sent), (dropped, 50_000));
    assert!((18..=20).contains(&(found.sent - found.received - found.lost)), "{found:?}");
    let passed = 10e6 / (1028.0 * 8.0) * 20.0;
    assert!((found.received as f64 - passed).abs() < 20.0, "{}", found.received);
    // Six packets of 1028 bytes are before the end of the transmission of one that just got in.
    assert!(found.delay_ms.distribution.max.unwrap() <= 10.0 + 6.0 * 0.8224 + 1e-6);
}

#[test]
fn copies_and_order_are_noticed() {
    let twice = Impairments { duplicate: 1.0, ..Impairments::default() };
    let (_, found) = run_one(impaired(twice), cbr());
    assert_eq!((found.received, found.duplicates, found.lost), (1999, 1999, 0));
    // Each tenth packet is held back by 35 ms: three others arrive before it, and of those held
    // back before it up to two more, after the first of them.
    let held = Impairments {
        reorder: Reorder::HoldBack(HoldBack { probability: 0.1, extent: 20, timeout: Span::from_millis(35) }),
        ..Impairments::default()
    };
    let (_, found) = run_one(impaired(held), cbr());
    let order = &found.reordering;
    let share = order.ratio.unwrap();
    assert!((share - 0.1).abs() < 0.02 && order.reordered > 150, "{order:?}");
    assert_eq!((order.extent.quantiles.p50, order.late_ms.max), (Some(3.0), Some(25.0)));
    assert!(
        order.extent.min >= Some(1.0) && order.extent.max <= Some(5.0) && found.jitter_ms.unwrap() > 1.0,
        "{found:?}"
    );
}

#[test]
fn capable_packets_are_marked_and_others_dropped() {
    let run = |ecn| {
        let pattern = Pattern::cbr(Rate::from_bps(11_000_000).unwrap(), 1000);
        let codel = CodelConfig { ecn: true, limit: 1000, ..CodelConfig::default() };
        let flow = datagrams(DatagramApplication::Messages { kind: "cbr", pattern }, ecn);
        run_one(link("a", QueueSpec::Codel(codel)), flow)
    };
    let (summary, found) = run(Ecn::Ect0);
    assert!(found.marked > 10 && found.marked <= summary.links[0].packets.marked, "{found:?}");
    let (summary, found) = run(Ecn::NotEct);
    assert_eq!((found.marked, summary.links[0].packets.marked), (0, 0));
    assert!(found.lost > 10, "{found:?}");
}

#[test]
fn connections_beside_are_not_disturbed_by_what_is_counted() {
    // The same run twice; and a flow of TCP beside one of datagrams over a link of its own is as it
    // is alone.
    let mut beside = cbr();
    beside.path = vec![1];
    let links = || vec![link("a", pfifo(100)), link("b", pfifo(100))];
    let both = run_to_end(&spec(links(), vec![flow("f", vec![0], false), beside]));
    let alone = run_to_end(&spec(links(), vec![flow("f", vec![0], false)]));
    assert_eq!(both.flows[0], alone.flows[0]);
    assert_eq!(both.links[..2], alone.links[..2]);
}

/// A call with G.711, 20 ms of voice in each datagram.
fn call(playout_ms: u64) -> FlowSpec {
    let codec = Codec::by_name("g711").expect("it is in the table");
    let (packetisation, playout) = (Span::from_millis(20), Span::from_millis(playout_ms));
    let spec = VoipSpec { codec, packetisation, playout, ie: codec.ie, bpl: codec.bpl };
    datagrams(DatagramApplication::Voip(spec), Ecn::NotEct)
}

#[test]
fn a_call_is_as_good_as_the_line() {
    let (summary, found) = run_one(link("a", pfifo(100)), call(60));
    // From 20 ms on, 50 in a second, each of 160 bytes of voice, 12 of RTP and 28 of headers.
    assert_eq!((found.sent, found.received, found.lost), (999, 999, 0));
    assert_eq!((summary.flows[0].progress.delivered_bytes, found.delay_ms.distribution.max), (999 * 172, Some(10.16)));
    let voice = found.voice.expect("it is a call");
    // 20 ms of voice, 0.16 and 10 ms of network, 60 ms of buffer; G.107 has 93.2 without delay and
    // some 2.1 less at 90 ms.
    assert_eq!((voice.codec, voice.mouth_to_ear_ms, voice.gap_ratio), ("g711", Some(90.16), Some(0.0)));
    assert!((voice.r_factor.unwrap() - 90.9).abs() < 0.1 && voice.mos > Some(4.3), "{voice:?}");
}

#[test]
fn what_comes_late_is_as_good_as_lost() {
    // Each tenth is held back by 35 ms: with a buffer of 30 ms it comes too late, with one of 40 ms
    // it does not.
    let held = Impairments {
        reorder: Reorder::HoldBack(HoldBack { probability: 0.1, extent: 20, timeout: Span::from_millis(35) }),
        ..Impairments::default()
    };
    let voice = |playout| run_one(impaired(held.clone()), call(playout)).1.voice.expect("it is a call");
    let (short, long) = (voice(30), voice(40));
    assert_eq!((long.late_ratio, long.gap_ratio), (Some(0.0), Some(0.0)));
    assert!((short.late_ratio.unwrap() - 0.1).abs() < 0.03 && short.late_ratio == short.gap_ratio, "{short:?}");
    // Ie-eff with 10 % of independent losses: 95 * 10 / (10 + 25.1) = 27; ten milliseconds are
    // nothing.
    assert!((long.r_factor.unwrap() - short.r_factor.unwrap() - 27.0).abs() < 6.0, "{short:?} {long:?}");
    assert!((short.burst_ratio.unwrap() - 1.0).abs() < 0.15, "{short:?}");
}

#[test]
fn windows_count_datagrams() {
    let mut spec = spec(vec![link("a", pfifo(100))], vec![cbr()]);
    spec.windows = vec![(Time::from_secs(5), Time::from_secs(6))];
    let window = &run_to_end(&spec).windows[0];
    assert_eq!((window.flows[0].sent.sent_packets, window.flows[0].progress.delivered_bytes), (100, 100_000));
}
