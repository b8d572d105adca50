//! Starts and ends of flows, and their results.

use ackclock_trace::CaStateSeconds;

use super::*;
use crate::spec::SmoltcpCc;

fn smoltcp() -> HostSpec {
    HostSpec::Smoltcp(SmoltcpSpec { cc: SmoltcpCc::Reno, ack_delay: None, ..SmoltcpSpec::default() })
}

/// A run with a window from 2 s on.
fn run_of(flow: FlowSpec) -> Summary<()> {
    let mut spec = spec(vec![link("a", pfifo(100))], vec![flow]);
    spec.windows = vec![(Time::from_secs(2), Time::from_secs(20))];
    run_to_end(&spec)
}

#[test]
fn a_transfer_is_complete_when_its_last_byte_is_acknowledged() {
    let mut transfer = flow("f", vec![0], false);
    (transfer.bytes, transfer.start) = (Some(1000), Time::from_secs(1));
    let summary = run_of(transfer);
    let flow = &summary.flows[0];
    let (start, completed) = (flow.start_s.unwrap(), flow.completed_s.unwrap());
    // SYN, SYN-ACK, the handshake's last ACK and data behind it, ACK. At 10 Mbit/s, 60 bytes take
    // 0.048 ms, 52 bytes 0.0416 ms and 1052 bytes 0.8416 ms, each way 10 ms. The last ACK of the
    // close, half a round trip later, does not count.
    assert_eq!(start, 1.0);
    let expected = 1.0 + (4.0 * 10.0 + 2.0 * 0.048 + 0.8416 + 2.0 * 0.0416) / 1e3;
    assert!((completed - expected).abs() < 1e-7, "{completed} for {expected}");
    assert!((flow.fct_s.unwrap() - (completed - start)).abs() < 1e-12, "{:?}", flow.fct_s);
    assert_eq!((flow.progress.delivered_bytes, flow.progress.acked_bytes), (1000, 1000));
}

#[test]
fn a_flow_that_stops_sends_what_is_in_its_buffer_and_completes_nothing() {
    for bytes in [None, Some(1 << 30)] {
        let mut stopping = flow("f", vec![0], false);
        (stopping.bytes, stopping.stop) = (bytes, Some(Time::from_secs(1)));
        let summary = run_of(stopping);
        let flow = &summary.flows[0];
        assert_eq!((flow.start_s, flow.completed_s, flow.fct_s), (Some(0.0), None, None));
        // The buffer of 4 MiB takes 3.5 s.
        assert!(summary.windows[0].flows[0].progress.delivered_bytes > 1_000_000, "{flow:?}");
        assert!(flow.progress.delivered_bytes < 7_000_000);
        assert_eq!(flow.progress.delivered_bytes, flow.progress.acked_bytes, "closed in good order");
        // Its time is until then, not until the end of the run.
        assert!(flow.goodput_bps > 0.9 * 10e6 * 1448.0 / 1500.0, "{}", flow.goodput_bps);
    }
}

#[test]
fn a_flow_that_aborts_sends_nothing_any_more() {
    for (sender, receiver) in [(endpoint(false), endpoint(false)), (smoltcp(), smoltcp()), (endpoint(false), smoltcp())]
    {
        let mut aborting = flow("f", vec![0], false);
        (aborting.sender, aborting.receiver) = (sender, receiver);
        (aborting.bytes, aborting.abort) = (Some(1 << 30), Some(Time::from_secs(1)));
        let summary = run_of(aborting);
        let flow = &summary.flows[0];
        assert_eq!((flow.start_s, flow.completed_s, flow.fct_s), (Some(0.0), None, None));
        let after = &summary.windows[0];
        assert_eq!(
            (after.flows[0].sent.sent_packets, after.flows[0].progress.delivered_bytes),
            (0, 0),
            "{}",
            flow.host
        );
        // Not an ACK either: the peer has heard of it.
        assert_eq!((after.links[0].packets.offered, after.links[1].packets.offered), (0, 0), "{}", flow.host);
        assert!(
            flow.progress.delivered_bytes > 500_000 && flow.progress.acked_bytes < flow.progress.delivered_bytes,
            "{flow:?}"
        );
        // Its time ends with what was on its way: a queue of 100 packets takes 120 ms.
        let most = 10e6 * 1448.0 / 1500.0;
        assert!(flow.goodput_bps > 0.4 * most && flow.goodput_bps <= most, "{} {}", flow.host, flow.goodput_bps);
        let limits = flow.limited_s;
        assert!(limits.cwnd + limits.rwnd + limits.app + limits.pacing < 1.2, "{limits:?}");
    }
}

#[test]
fn an_abort_after_a_close_ends_what_is_still_sent() {
    let mut both = flow("f", vec![0], false);
    (both.stop, both.abort) = (Some(Time::from_secs(1)), Some(Time::from_millis(1500)));
    let summary = run_of(both.clone());
    assert_eq!((summary.windows[0].flows[0].sent.sent_packets, summary.windows[0].links[0].packets.offered), (0, 0));
    // After everything is acknowledged there is nothing to end.
    both.bytes = Some(100_000);
    let ended = run_of(both.clone());
    both.abort = None;
    assert_eq!(ended.flows, run_of(both).flows);
    assert!(ended.flows[0].completed_s.is_some());
}

#[test]
fn a_flow_that_never_connects_has_no_start() {
    let mut late = flow("f", vec![0], false);
    late.start = Time::from_secs(30);
    let summary = run_of(late);
    assert_eq!((summary.flows[0].start_s, summary.flows[0].completed_s), (None, None));
}

#[test]
fn congestion_states_share_the_time_of_a_flow() {
    let mut lossy = link("a", pfifo(100));
    lossy.forward.impairments.loss = Loss::List(vec![50, 51, 60]);
    let mut short = flow("f", vec![0], false);
    (short.start, short.bytes) = (Time::from_millis(500), Some(1_000_000));
    let summary = run_to_end(&spec(vec![lossy], vec![short.clone()]));
    let flow = &summary.flows[0];
    let CaStateSeconds { open, disorder, cwr, recovery, loss } = flow.ca_state_s;
    assert!(open > 0.0 && disorder > 0.0 && recovery > 0.0, "{:?}", flow.ca_state_s);
    // The transfer goes on until both ends have closed, a few round trips after the last byte.
    let all = open + disorder + cwr + recovery + loss;
    let fct = flow.fct_s.expect("it is complete");
    assert!(all >= fct && all < fct + 0.5, "{all} {fct}");
    // Nothing is known of a sender that is none of ours.
    (short.sender, short.receiver) = (smoltcp(), smoltcp());
    let summary = run_to_end(&spec(vec![link("a", pfifo(100))], vec![short]));
    assert_eq!(summary.flows[0].ca_state_s, CaStateSeconds::default());
}
