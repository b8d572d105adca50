//! The straight path of visits does the same as the one that is taken when flows are recorded.

use ackclock_trace::{TcpRecord, TcpSink};

use super::*;
use crate::spec::SmoltcpCc;

/// Counts the records.
#[derive(Debug)]
struct Count(u64);

impl TcpSink for Count {
    fn record(&mut self, _: &TcpRecord<'_>) -> ControlFlow<()> {
        self.0 += 1;
        ControlFlow::Continue(())
    }
}

/// Flows that have no end, complete, stop, close hard, and of another stack.
fn flows_of_all_kinds(ecn: bool) -> Vec<FlowSpec> {
    let [endless, mut complete, mut stopping, mut aborted, mut stock] =
        ["endless", "complete", "stopping", "aborted", "stock"].map(|name| flow(name, vec![0, 1], ecn));
    (complete.bytes, complete.start) = (Some(300_000), Time::from_secs(1));
    stopping.stop = Some(Time::from_secs(3));
    aborted.abort = Some(Time::from_secs(4));
    stock.sender = HostSpec::Smoltcp(SmoltcpSpec { cc: SmoltcpCc::Reno, ack_delay: None, ..SmoltcpSpec::default() });
    vec![endless, complete, stopping, aborted, stock]
}

#[test]
fn recording_of_flows_changes_nothing() {
    let (mut losses, mut spurious) = (0, 0);
    for seed in 0..8 {
        let (ecn, reorders) = (seed % 2 == 1, seed % 4 >= 2);
        let mut unruly = link("a", pfifo(20 + 10 * seed));
        for impairments in [&mut unruly.forward.impairments, &mut unruly.reverse.impairments] {
            impairments.loss = Loss::Iid(0.002 * seed as f64);
            impairments.duplicate = 0.001 * seed as f64;
            impairments.jitter = Span::from_millis(seed);
            impairments.reorder = if reorders { Reorder::ByJitter } else { Reorder::Never };
        }
        let behind = link("b", QueueSpec::Codel(CodelConfig::default()));
        let mut spec = spec(vec![unruly, behind], flows_of_all_kinds(ecn));
        (spec.seed, spec.duration) = (seed, Span::from_secs(8));
        let mut sink = Count(0);
        let recorders = Recorders { tcp: Some(&mut sink), ..Recorders::default() };
        let recorded = run_recorded(&spec, recorders, &mut |_| ControlFlow::Continue(()));
        let summary = run_to_end(&spec);
        assert_eq!(recorded.as_ref(), Ok(&summary), "seed {seed}");
        assert!(sink.0 > 1000, "{} records", sink.0);
        losses += summary.flows.iter().map(|flow| flow.retransmissions.needed).sum::<u64>();
        spurious += summary.flows.iter().map(|flow| flow.spurious_retransmits).sum::<u64>();
    }
    assert!(losses > 100 && spurious > 5, "{losses} needed, {spurious} spurious");
}
