//! One run in detail.

use ackclock_trace::{ChangeSummary, Summary};
use serde_json::{Map, Value};

use super::cells::fixed;
use super::listed::Listed;
use super::{applications, datagrams, kinds, responsiveness, workloads};
use crate::live;

const FLOWS: Listed = Listed {
    list: "flows",
    names: &["id", "cc", "host"],
    metrics: &[
        "goodput_bps",
        "rtt_ms.p5",
        "rtt_ms.p50",
        "rtt_ms.p95",
        "cwnd_bytes.p50",
        "sent_packets",
        "retransmitted_packets",
        "timeouts",
    ],
};

const GROUPS: Listed = Listed {
    list: "groups",
    names: &["id", "cc", "host"],
    metrics: &[
        "started",
        "completed",
        "alive",
        "goodput_bps",
        "fct_ms.mean",
        "fct_ms.p50",
        "fct_ms.p99",
        "rtt_ms.p50",
        "sent_packets",
        "retransmitted_packets",
        "timeouts",
    ],
};

const LINKS: Listed = Listed {
    list: "links",
    names: &["id", "queue"],
    metrics: &[
        "utilization",
        "offered",
        "dropped",
        "marked",
        "sojourn_ms.p50",
        "sojourn_ms.p95",
        "backlog_packets.p50",
        "backlog_packets.p95",
    ],
};

/// One run: flows, links, totals; of many flows and links so many at either end.
pub(super) fn text(summary: &Summary<Map<String, Value>>, ends: Option<usize>) -> String {
    let how = match summary.clock {
        "virtual" => "simulated",
        "live" => "in real time",
        _ => "replayed",
    };
    let how = format!("{how}{}", if summary.partial { ", then broken off" } else { "" });
    // Everything between two hosts may pass without a flow that watches it.
    let apart = |text: String| if text.is_empty() { text } else { text + "\n" };
    let flows = apart(FLOWS.text("flow", &summary.flows, ends));
    let groups = apart(GROUPS.text("group", &summary.groups, None));
    let parts = [
        datagrams::detail(summary),
        applications::detail(summary),
        responsiveness::detail(summary),
        kinds::detail(summary),
        groups,
        workloads::detail(summary),
    ];
    format!(
        "{} s {how}, seed {}, {} data packets, Jain's index {}\n\n{flows}{}{}{}",
        summary.duration_s,
        summary.seed,
        summary.packets,
        fairness(summary),
        parts.concat(),
        LINKS.text("link", &summary.links, ends),
        changes(summary) + &live::detail(summary),
    )
}

/// The changes made during the run.
fn changes(summary: &Summary<Map<String, Value>>) -> String {
    let line = |change: &ChangeSummary| format!("changed at {:.3} s: {}\n", change.at_ns as f64 * 1e-9, change.set);
    let lines: String = summary.changes.iter().map(line).collect();
    if lines.is_empty() { lines } else { format!("\n{lines}") }
}

/// Jain's index as text: with flows in both directions, one for each.
fn fairness(summary: &Summary<Map<String, Value>>) -> String {
    let cell = |value: Option<f64>| value.map_or_else(|| "-".to_owned(), |value| fixed(value, 3));
    if summary.flows.iter().any(|flow| flow.datagrams.is_some()) {
        return datagrams::fairness(summary);
    }
    let one_way = |way: &str| summary.flows.iter().all(|flow| flow.direction == way);
    if one_way("forward") || one_way("reverse") {
        return cell(summary.fairness_jain);
    }
    format!("{} forward, {} reverse", cell(summary.fairness_jain_forward), cell(summary.fairness_jain_reverse))
}
