//! Metrics in figures, for the page of a report and for Python.

use std::collections::BTreeMap;

use serde_json::{Value, json};

use super::ROWS;

/// The metrics that people look at first, in the order of menus; `*` is a distribution within runs.
pub const MAIN: [&str; 18] = [
    "goodput_bps",
    "throughput_bps.mean",
    "rtt_ms.p50",
    "rtt_ms.p95",
    "rtt_ms.*",
    "throughput_bps.*",
    "sojourn_ms.p50",
    "sojourn_ms.p95",
    "sojourn_ms.*",
    "utilization",
    "fct_s",
    "fct_ms.p99",
    "fairness_jain",
    "retransmitted_packets",
    "timeouts",
    "marked",
    "cpu_utilization",
    "lateness_ms.p99",
];

/// Panels over time: the kind of rows in `series.csv`, and the column.
const PANELS: [(&str, &str); 14] = [
    ("flow", "throughput_bps"),
    ("flow", "response_goodput_bps"),
    ("flow", "rtt_ms"),
    ("flow", "cwnd_bytes"),
    ("flow", "in_flight_bytes"),
    ("flow", "retransmitted_packets"),
    ("flow", "reordering"),
    ("link", "throughput_bps"),
    ("link", "sojourn_ms"),
    ("link", "backlog_packets"),
    ("link", "dropped_packets"),
    ("link", "marked_packets"),
    ("link", "probability"),
    ("link", "utilization"),
];

/// The titles of columns of `series.csv` that are no keys of a summary, or others there.
const SERIES: [(&str, &str); 9] = [
    ("window_throughput_bps", "Throughput (sliding window)"),
    ("response_goodput_bps", "Goodput of responses"),
    ("srtt_ms", "Smoothed RTT"),
    ("ssthresh_bytes", "Slow start threshold"),
    ("in_flight_bytes", "In flight"),
    ("backlog_bytes", "Queue length"),
    ("dropped_packets", "Drops"),
    ("marked_packets", "Marks"),
    ("reordering", "Reordering threshold"),
];

/// Units by the end of a key: from which value on, symbol, and what values are multiplied by.
type Scales = [(&'static str, &'static [(f64, &'static str, f64)]); 4];

const SCALES: Scales = [
    ("bps", &[(1e9, "Gbit/s", 1e-9), (1e6, "Mbit/s", 1e-6), (0.0, "kbit/s", 1e-3)]),
    ("ms", &[(1e4, "s", 1e-3), (0.0, "ms", 1.0)]),
    ("s", &[(1.0, "s", 1.0), (0.0, "ms", 1e3)]),
    ("bytes", &[(1e6, "MB", 1e-6), (1e3, "kB", 1e-3), (0.0, "bytes", 1.0)]),
];

/// The titles of metrics and of columns of the series, units, panels, and the metrics of menus.
pub fn json() -> Value {
    let titles: BTreeMap<_, _> =
        ROWS.values().filter(|row| !row.title.is_empty()).map(|row| (row.key, row.title)).collect();
    json!({
        "titles": titles,
        "series": BTreeMap::from(SERIES),
        "scales": BTreeMap::from(SCALES),
        "main": MAIN,
        "panels": PANELS,
    })
}
