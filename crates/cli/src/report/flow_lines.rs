//! The lines of flows and of groups of flows, with the usual columns.

use ackclock_trace::{FlowSummary, GroupSummary, Summary, jain};
use serde_json::{Map, Value};

use super::cells::MAX_FLOW_LINES;
use super::sums::{Sum, groups};

pub(super) const COLUMNS: [&str; 7] =
    ["goodput Mbit/s", "RTT p5 ms", "p50", "p95", "retrans. %", "RTOs", "Jain's index"];

/// Digits after the point.
pub(super) const DIGITS: [usize; COLUMNS.len()] = [3, 1, 1, 1, 2, 0, 3];

/// The values shown of one flow, or of all, in one run.
#[derive(Clone, Debug)]
pub(super) struct Line {
    pub(super) name: String,
    /// Values in the order of [`COLUMNS`].
    pub(super) values: [Option<f64>; COLUMNS.len()],
}

/// The flows that send a way, and their Jain's index. Datagrams have lines of their own;
/// connections are compared with each other.
pub(super) fn ways(flows: &[FlowSummary]) -> [(Vec<&FlowSummary>, &'static str, Option<f64>); 2] {
    ["forward", "reverse"].map(|way| {
        let alike = |flow: &&FlowSummary| flow.direction == way && flow.datagrams.is_none();
        let flows: Vec<&FlowSummary> = flows.iter().filter(alike).collect();
        let jain = jain(flows.iter().map(|flow| flow.goodput_bps));
        (flows, way, jain)
    })
}

pub(super) fn lines(summary: &Summary<Map<String, Value>>) -> Vec<Line> {
    let flows = &summary.flows;
    if flows.len() > MAX_FLOW_LINES {
        let groups = summary.groups.iter().map(group_line);
        let ways = ways(flows);
        let both = ways.iter().all(|(flows, ..)| !flows.is_empty());
        let there = ways.iter().filter(|(flows, ..)| !flows.is_empty());
        let groups = by_group(flows, summary.duration_s).into_iter().chain(groups);
        return there
            .map(|(flows, way, _)| {
                let name = format!("{} flows", flows.len());
                total(if both { format!("{name} {way}") } else { name }, flows, summary.duration_s)
            })
            .chain(groups)
            .collect();
    }
    flow_lines(summary)
}

/// A line for each flow and group of flows.
pub(super) fn flow_lines(summary: &Summary<Map<String, Value>>) -> Vec<Line> {
    let flows = &summary.flows;
    let ways = ways(flows);
    let groups = summary.groups.iter().map(group_line);
    flows
        .iter()
        .map(|flow| {
            let values = [
                Some(flow.goodput_bps / 1e6),
                flow.rtt_ms.quantiles.p5,
                flow.rtt_ms.quantiles.p50,
                flow.rtt_ms.quantiles.p95,
                percent(flow.sent.retransmitted_packets, flow.sent.sent_packets),
                Some(flow.recoveries.timeouts as f64),
                (ways.iter().find(|(_, way, _)| flow.direction == *way && flow.datagrams.is_none()))
                    .and_then(|(.., jain)| *jain),
            ];
            Line { name: flow.id.to_string(), values }
        })
        .chain(groups)
        .collect()
}

/// A line for each group of flows, if there are several of them.
fn by_group(flows: &[FlowSummary], duration_s: f64) -> Vec<Line> {
    let groups = groups(flows.iter().filter(|flow| flow.datagrams.is_none()));
    if groups.len() < 2 {
        return Vec::new();
    }
    let line = |((id, _), flows): &((&str, &str), Vec<&FlowSummary>)| {
        let count = if flows.len() == 1 { "1 flow".to_owned() } else { format!("{} flows", flows.len()) };
        total(format!("{id}: {count}"), flows, duration_s)
    };
    groups.iter().map(line).collect()
}

/// The line of flows that are listed together.
fn group_line(group: &GroupSummary) -> Line {
    let rtt = group.rtt_ms.distribution.quantiles;
    let values = [
        Some(group.goodput_bps / 1e6),
        rtt.p5,
        rtt.p50,
        rtt.p95,
        percent(group.sent.retransmitted_packets, group.sent.sent_packets),
        Some(group.recoveries.timeouts as f64),
        None,
    ];
    Line { name: group.id.clone(), values }
}

/// One line for many flows that send the same way.
fn total(name: String, flows: &[&FlowSummary], duration_s: f64) -> Line {
    let sum = Sum::of(flows, duration_s);
    let values = [
        sum.goodput_bps.map(|rate| rate / 1e6),
        sum.rtt_p5_ms,
        sum.rtt_p50_ms,
        sum.rtt_p95_ms,
        percent(sum.sent.retransmitted_packets, sum.sent.sent_packets),
        Some(sum.timeouts as f64),
        sum.fairness_jain,
    ];
    Line { name, values }
}

/// A part in percent; `None` of nothing.
fn percent(part: u64, whole: u64) -> Option<f64> {
    (whole > 0).then(|| part as f64 * 100.0 / whole as f64)
}

#[cfg(test)]
mod tests {
    use ackclock_trace::Progress;

    use super::*;

    #[test]
    fn many_flows_have_a_line_for_each_group() {
        let flow = |id: &str, goodput: f64| FlowSummary {
            id: id.into(),
            direction: "forward",
            goodput_bps: goodput,
            progress: Progress { delivered_bytes: (goodput / 8.0) as u64, acked_bytes: 0 },
            ..FlowSummary::default()
        };
        let flows = [flow("a.0", 1e6), flow("b.0", 5e6), flow("a.1", 3e6)];
        let lines: Vec<_> =
            by_group(&flows, 2.0).into_iter().map(|line| (line.name, line.values[0], line.values[6])).collect();
        // The goodput is of the bytes that arrived in two seconds; Jain's index of 1 and 3 is 16 /
        // 20.
        assert_eq!(lines, [("a: 2 flows".into(), Some(2.0), Some(0.8)), ("b: 1 flow".into(), Some(2.5), Some(1.0))]);
        assert!(by_group(&flows[..1], 2.0).is_empty());
    }
}
