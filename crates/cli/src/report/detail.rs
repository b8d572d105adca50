//! One run in detail.

use ackclock_trace::{ChangeSummary, LinkSummary, Summary};
use serde_json::{Map, Value};

use super::{applications, datagrams, fixed, kinds, responsiveness, workloads};
use crate::live;
use crate::table::Table;

/// One run: flows, links, totals.
pub(super) fn text(summary: &Summary<Map<String, Value>>) -> String {
    let cell = |value: Option<f64>, digits| value.map_or_else(|| "-".to_owned(), |value| fixed(value, digits));
    let mut flows = Table::new(
        3,
        [
            "flow",
            "cc",
            "host",
            "goodput Mbit/s",
            "RTT p5 ms",
            "p50",
            "p95",
            "cwnd p50 kB",
            "sent",
            "retrans.",
            "timeouts",
        ],
    );
    for flow in &summary.flows {
        flows.row(vec![
            flow.id.to_string(),
            flow.cc.to_string(),
            flow.host.to_string(),
            fixed(flow.goodput_bps / 1e6, 3),
            cell(flow.rtt_ms.quantiles.p5, 1),
            cell(flow.rtt_ms.quantiles.p50, 1),
            cell(flow.rtt_ms.quantiles.p95, 1),
            cell(flow.cwnd_bytes.p50.map(|bytes| bytes / 1e3), 1),
            flow.sent_packets.to_string(),
            flow.retransmitted_packets.to_string(),
            flow.timeouts.to_string(),
        ]);
    }
    let how = match summary.clock {
        "virtual" => "simulated",
        "live" => "in real time",
        _ => "replayed",
    };
    let how = format!("{how}{}", if summary.partial { ", then broken off" } else { "" });
    let parts = [
        datagrams::detail(summary),
        applications::detail(summary),
        responsiveness::detail(summary),
        kinds::detail(summary),
        groups(summary),
        workloads::detail(summary),
    ];
    // Everything between two hosts may pass without a flow that watches it.
    let flows = if summary.flows.is_empty() { String::new() } else { format!("{}\n", flows.render()) };
    format!(
        "{} s {how}, seed {}, {} data packets, Jain's index {}\n\n{flows}{}{}{}",
        summary.duration_s,
        summary.seed,
        summary.packets,
        fairness(summary),
        parts.concat(),
        links(summary),
        changes(summary) + &live::detail(summary),
    )
}

/// What was changed while it went on.
fn changes(summary: &Summary<Map<String, Value>>) -> String {
    let line = |change: &ChangeSummary| format!("changed at {:.3} s: {}\n", change.at_ns as f64 * 1e-9, change.set);
    let lines: String = summary.changes.iter().map(line).collect();
    if lines.is_empty() { lines } else { format!("\n{lines}") }
}

/// The table of links.
fn links(summary: &Summary<Map<String, Value>>) -> String {
    let cell = |value: Option<f64>, digits| value.map_or_else(|| "-".to_owned(), |value| fixed(value, digits));
    let mut links = Table::new(
        2,
        ["link", "queue", "busy %", "offered", "dropped", "marked", "sojourn p50 ms", "p95", "backlog p50", "p95"],
    );
    for link in &summary.links {
        links.row(vec![
            link.id.clone(),
            link.queue.to_owned(),
            fixed(link.utilization * 100.0, 1),
            link.offered.to_string(),
            dropped(link).to_string(),
            link.marked.to_string(),
            cell(link.sojourn_ms.quantiles.p50, 1),
            cell(link.sojourn_ms.quantiles.p95, 1),
            cell(link.backlog_packets.quantiles.p50, 0),
            cell(link.backlog_packets.quantiles.p95, 0),
        ]);
    }
    links.render()
}

fn dropped(link: &LinkSummary) -> u64 {
    link.dropped.values().sum()
}

/// The table of flows that are listed together.
fn groups(summary: &Summary<Map<String, Value>>) -> String {
    if summary.groups.is_empty() {
        return String::new();
    }
    let cell = |value: Option<f64>, digits| value.map_or_else(|| "-".to_owned(), |value| fixed(value, digits));
    let header = [
        "group",
        "cc",
        "host",
        "started",
        "completed",
        "alive",
        "goodput Mbit/s",
        "FCT ms",
        "p50",
        "p99",
        "RTT p50 ms",
        "sent",
        "retrans.",
        "timeouts",
    ];
    let mut table = Table::new(3, header);
    for group in &summary.groups {
        table.row(vec![
            group.id.clone(),
            group.cc.to_string(),
            group.host.to_string(),
            group.started.to_string(),
            group.completed.to_string(),
            group.alive.to_string(),
            fixed(group.goodput_bps / 1e6, 3),
            cell(group.fct_ms.mean, 1),
            cell(group.fct_ms.distribution.quantiles.p50, 1),
            cell(group.fct_ms.p99, 1),
            cell(group.rtt_ms.distribution.quantiles.p50, 1),
            group.sent_packets.to_string(),
            group.retransmitted_packets.to_string(),
            group.timeouts.to_string(),
        ]);
    }
    format!("{}\n", table.render())
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
