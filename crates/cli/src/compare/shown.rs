//! The metrics that the table shows.

use super::side::Run;

/// The metrics shown of the whole run: a list or nothing, and a metric.
pub(super) const WHOLE: [(&str, &str); 5] = [
    ("", "duration_s"),
    ("", "packets"),
    ("", "fairness_jain"),
    ("live", "lateness_ms.p50"),
    ("live", "lateness_ms.p99"),
];

/// The lists of a summary, with what an entry is called and its metrics that are shown.
pub(super) const LISTS: [(&str, &str, &[&str]); 7] = [
    (
        "flows",
        "flow",
        &[
            "goodput_bps",
            "throughput_bps.p50",
            "rtt_ms.p50",
            "rtt_ms.p95",
            "cwnd_bytes.p50",
            "sent_packets",
            "retransmitted_packets",
            "timeouts",
            "ece_acks",
        ],
    ),
    (
        "sums",
        "sum of",
        &[
            "flows",
            "goodput_bps",
            "fairness_jain",
            "rtt_p50_ms",
            "sent_packets",
            "retransmitted_packets",
            "lost_packets",
            "timeouts",
        ],
    ),
    ("kinds", "traffic", &["goodput_bps", "fairness_jain", "delay_p50_ms", "delay_p95_ms", "loss_ratio"]),
    (
        "groups",
        "group",
        &[
            "started",
            "completed",
            "goodput_bps",
            "fct_ms.p50",
            "fct_ms.p99",
            "rtt_ms.p50",
            "retransmitted_packets",
            "timeouts",
        ],
    ),
    (
        "workloads",
        "workload",
        &[
            "started",
            "completed",
            "fct_ms.p50",
            "fct_ms.p99",
            "slowdown.p50",
            "slowdown.p99",
            "retransmitted_packets",
            "timeouts",
            "requests.completed",
            "requests.completion_ms.p99",
        ],
    ),
    ("links", "link", &["utilization", "offered", "marked", "sojourn_ms.p50", "sojourn_ms.p95", "backlog_packets.p50"]),
    ("commands", "command", &["exit", "rtt_ms.p50", "rtt_ms.p95"]),
];

/// The path of a metric of the whole run.
pub(super) fn of_run(list: &str, metric: &str) -> String {
    if list.is_empty() { metric.to_owned() } else { format!("{list}.{metric}") }
}

/// Every number of a run that the table shows, if it is there.
pub(super) fn names(of: &Run) -> Vec<String> {
    let of_list = |(list, _, metrics): (&'static str, &str, &'static [&str])| {
        of.ids(list).flat_map(move |id| metrics.iter().map(move |metric| format!("{list}.{id}.{metric}")))
    };
    WHOLE.map(|(list, metric)| of_run(list, metric)).into_iter().chain(LISTS.into_iter().flat_map(of_list)).collect()
}
