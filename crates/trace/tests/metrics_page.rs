//! `docs/metrics.md` is made of the rows of metrics, and is up to date.
//!
//! `ACKCLOCK_WRITE_DOCS=1 cargo test -p ackclock-trace --test metrics_page` writes it.

use std::collections::VecDeque;
use std::fmt::Write;
use std::fs;
use std::path::Path;

use ackclock_trace::metrics::{MetricKind, SummaryPart, run};

const HEAD: &str = "\
# Metrics

The JSON of a run is one object, in `summary.json` or in a line of `summary.jsonl` and `--json`. Keys are only ever added. A name
ends with its unit: `_s` seconds, `_ms` milliseconds, `_bps` bits per second, `_bytes` bytes; other numbers are counts. Paths of
numbers are the metrics of expectations, `compare`, `report` and `sweep.repeat.until`: `flows.reno.0.rtt_ms.p50`,
`links.bottleneck.forward.dropped.early`, `fairness_jain`. `ackclock list metrics` prints them.

A failed run of a sweep has `failed` and `error`; the last run of a sweep has the outcomes of [expectations](expectations.md).

This page is generated.
";

/// Text of a comment, with links of Rust's documentation as plain code.
fn plain(text: &str) -> String {
    let mut out = String::new();
    let mut rest = text.trim();
    while let Some((before, after)) = rest.split_once("[`") {
        let Some((name, behind)) = after.split_once("`]") else { break };
        let name = name.rsplit("::").next().unwrap_or(name);
        let _ = write!(out, "{before}`{name}`");
        // The target of a link with one.
        rest = behind.strip_prefix('(').and_then(|target| target.split_once(')')).map_or(behind, |(_, rest)| rest);
    }
    out + rest
}

/// The name of a section.
fn title(part: &SummaryPart) -> &'static str {
    part.name.strip_suffix("Summary").map_or(part.name, |rest| if rest.is_empty() { "Run" } else { rest })
}

/// A value in words.
fn value(kind: &MetricKind) -> String {
    match kind {
        MetricKind::Number => "number".to_owned(),
        MetricKind::Flag => "true or false".to_owned(),
        MetricKind::Text => "text".to_owned(),
        MetricKind::Object => "object".to_owned(),
        MetricKind::List(of) => format!("list of {}", value(of)),
        MetricKind::Named(of) => format!("{} by name", value(of)),
        MetricKind::Part(part) => format!("[{}](#{})", title(part), title(part).to_lowercase()),
    }
}

fn page() -> String {
    let mut out = HEAD.to_owned();
    let (mut due, mut done) = (VecDeque::from([run()]), Vec::new());
    while let Some(part) = due.pop_front() {
        if done.contains(&part.name) {
            continue;
        }
        let _ = write!(out, "\n## {}\n\n{}\n\n| key | value | |\n|---|---|---|\n", title(part), plain(part.meaning));
        for metric in part.keys() {
            assert!(!metric.meaning.is_empty(), "{}.{} has no comment", part.name, metric.key);
            let meaning = plain(metric.meaning).replace('|', "\\|");
            let _ = writeln!(out, "| `{}` | {} | {meaning} |", metric.key, value(&metric.kind));
            due.extend(metric.kind.part());
        }
        done.push(part.name);
    }
    out
}

#[test]
fn the_page_of_metrics_is_up_to_date() {
    let path = Path::new(env!("CARGO_MANIFEST_DIR")).join("../../docs/metrics.md");
    let page = page();
    if std::env::var_os("ACKCLOCK_WRITE_DOCS").is_some() {
        fs::write(&path, &page).expect("it can be written");
    }
    let found = fs::read_to_string(&path).unwrap_or_default();
    assert!(found == page, "docs/metrics.md is not what the rows say: ACKCLOCK_WRITE_DOCS=1 writes it");
}

#[test]
fn comments_lose_the_links_of_rust() {
    assert_eq!(plain(" All of [`super::Inner`], and [`a`](b)."), "All of `Inner`, and `a`.");
}
