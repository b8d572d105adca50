//! Flows that send the same way, together.

use ackclock_trace::statistics::median;
use ackclock_trace::{FlowSummary, SentPackets, jain};
use serde::Serialize;

/// The sums of several flows.
#[derive(Clone, Debug, PartialEq, Serialize)]
pub(crate) struct Sum {
    /// Number of flows.
    pub(crate) flows: u64,
    /// The bytes that arrived over the duration of the run: the sum of rates of different times
    /// would be more than a link carries.
    pub(crate) goodput_bps: Option<f64>,
    /// Jain's index of their goodputs, each over its own time.
    pub(crate) fairness_jain: Option<f64>,
    /// Medians over the flows.
    pub(crate) rtt_p5_ms: Option<f64>,
    pub(crate) rtt_p50_ms: Option<f64>,
    pub(crate) rtt_p95_ms: Option<f64>,
    #[serde(flatten)]
    pub(crate) sent: SentPackets,
    /// Packets that were lost, as far as their senders declared it; all of those of datagrams.
    pub(crate) lost_packets: u64,
    pub(crate) timeouts: u64,
    pub(crate) ece_acks: u64,
}

impl Sum {
    pub(crate) fn of(flows: &[&FlowSummary], duration_s: f64) -> Sum {
        let median = |value: fn(&FlowSummary) -> Option<f64>| {
            median(&flows.iter().filter_map(|flow| value(flow)).collect::<Vec<_>>())
        };
        let sum = |value: fn(&FlowSummary) -> u64| flows.iter().map(|flow| value(flow)).sum::<u64>();
        let mut sent = SentPackets::default();
        flows.iter().for_each(|flow| sent.add(&flow.sent));
        Sum {
            flows: flows.len() as u64,
            goodput_bps: Some(sum(|flow| flow.progress.delivered_bytes) as f64 * 8.0 / duration_s)
                .filter(|rate| rate.is_finite()),
            fairness_jain: jain(flows.iter().map(|flow| flow.goodput_bps)),
            rtt_p5_ms: median(|flow| flow.rtt_ms.quantiles.p5),
            rtt_p50_ms: median(|flow| flow.rtt_ms.quantiles.p50),
            rtt_p95_ms: median(|flow| flow.rtt_ms.quantiles.p95),
            sent,
            lost_packets: sum(|flow| {
                flow.datagrams.as_ref().map_or(flow.loss_declarations.right, |datagrams| datagrams.lost)
            }),
            timeouts: sum(|flow| flow.recoveries.timeouts),
            ece_acks: sum(|flow| flow.reactions.ece_acks),
        }
    }
}

/// The flows of each group and direction, in the order of their first ones.
pub(crate) fn groups<'a>(
    flows: impl Iterator<Item = &'a FlowSummary>,
) -> Vec<((&'a str, &'a str), Vec<&'a FlowSummary>)> {
    let mut groups: Vec<((&str, &str), Vec<&FlowSummary>)> = Vec::new();
    for flow in flows {
        let key = (flow.id.rsplit_once('.').map_or(&*flow.id, |(group, _)| group), flow.direction);
        match groups.iter_mut().find(|(known, _)| *known == key) {
            Some((_, alike)) => alike.push(flow),
            None => groups.push((key, vec![flow])),
        }
    }
    groups
}
