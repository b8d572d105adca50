//! `docs/metrics.md` is made of the rows of metrics, and is up to date.
//!
//! `ACKCLOCK_WRITE_DOCS=1 cargo test -p ackclock-trace --test metrics_page` writes it.

use std::collections::VecDeque;
use std::fmt::Write;
use std::fs;
use std::path::Path;

use ackclock_trace::metrics::{MetricKind, MetricRow, SummaryPart, run};

const HEAD: &str = "\
# Metrics

The JSON of a run is one object, in `summary.json` or in a line of `summary.jsonl` and `--json`. Keys are only ever added. A name
ends with its unit: `_s` seconds, `_ms` milliseconds, `_bps` bits per second, `_bytes` bytes; other numbers are counts. Paths of
numbers are the metrics of expectations, `compare`, `report` and `sweep.repeat.until`: `flows.reno.0.rtt_ms.p50`,
`links.bottleneck.forward.dropped.early`, `fairness_jain`. `ackclock list metrics` prints them.

A failed run of a sweep has `failed` and `error`; the last run of a sweep has the outcomes of [expectations](expectations.md).

Values are numbers unless brackets behind the key name another type. What a run or a flow does not have is left out. This page is
generated.
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

/// A key with its meaning, and with its type unless that is a number.
fn described(metric: &MetricRow) -> String {
    let key = metric.key;
    // The head of the page says it once.
    let general = ["without any", "for others", "otherwise", "of others", "of other flows"];
    let meaning =
        general.iter().fold(plain(metric.meaning), |text, when| text.replace(&format!("; left out {when}."), "."));
    match &metric.kind {
        MetricKind::Number => format!("`{key}`: {meaning}"),
        kind => format!("`{key}` ({}): {meaning}", value(kind)),
    }
}

/// The lists of all parts. Keys that an earlier part has are named, with a link to it.
fn page() -> String {
    let mut out = HEAD.to_owned();
    let (mut due, mut done) = (VecDeque::from([run()]), Vec::<&SummaryPart>::new());
    while let Some(part) = due.pop_front() {
        if done.iter().any(|known| known.name == part.name) {
            continue;
        }
        let _ = write!(out, "\n## {}\n\n{}\n", title(part), plain(part.meaning));
        let is_same = |one: &MetricRow, other: &MetricRow| described(one) == described(other);
        let mut rows = part.keys();
        for known in &done {
            let (same, own): (Vec<&MetricRow>, Vec<&MetricRow>) =
                rows.iter().partition(|row| known.keys().iter().any(|other| is_same(row, other)));
            // A single key is rather repeated.
            if same.len() > 1 {
                let keys: Vec<String> = same.iter().map(|row| format!("`{}`", row.key)).collect();
                let name = title(known);
                let _ = write!(out, "\nAs in [{name}](#{}): {}.\n", name.to_lowercase(), keys.join(", "));
                rows = own;
            }
        }
        if !rows.is_empty() {
            out.push('\n');
        }
        for metric in rows {
            let _ = writeln!(out, "- {}", described(metric));
        }
        for metric in part.keys() {
            assert!(!metric.meaning.is_empty(), "{}.{} has no comment", part.name, metric.key);
            due.extend(metric.kind.part());
        }
        done.push(part);
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
