//! Applications that wait for answers, in the text on standard output: a table for each kind.

use ackclock_trace::statistics::median;
use ackclock_trace::{ApplicationSummary, FlowSummary, PagesSummary, RequestsSummary, Spread, Summary, VideoSummary};
use serde_json::{Map, Value};

use super::cells::{MAX_FLOW_LINES, cell};
use crate::table::{Cell, Table};

/// The table of a kind.
struct Kind {
    name: &'static str,
    /// Names of columns, and digits after the point.
    columns: &'static [(&'static str, usize)],
    /// Values of the columns, if an application is of this kind.
    values: fn(&ApplicationSummary) -> Option<Vec<Option<f64>>>,
}

const KINDS: [Kind; 5] = [
    Kind {
        name: "request",
        columns: &[("answered", 0), ("per s", 2), ("completion ms", 1), ("p50", 1), ("p95", 1), ("max", 1)],
        values: |application| application.requests.as_ref().map(requests),
    },
    Kind {
        name: "web",
        columns: &[("pages", 0), ("objects", 0), ("load ms", 1), ("p50", 1), ("p95", 1), ("max", 1)],
        values: |application| application.pages.as_ref().map(pages),
    },
    Kind {
        name: "video",
        columns: &[
            ("segments", 0),
            ("Mbit/s", 3),
            ("switches", 0),
            ("startup s", 2),
            ("rebuffers", 0),
            ("s", 2),
            ("%", 2),
            ("download p50 ms", 0),
            ("p95", 0),
        ],
        values: |application| application.video.as_ref().map(video),
    },
    Kind {
        name: "load",
        columns: &[("Mbit/s", 3), ("probes", 0), ("answered", 0), ("request p50 ms", 1), ("p95", 1), ("max", 1)],
        values: load,
    },
    Kind {
        name: "probe",
        columns: &[("made", 0), ("answered", 0), ("TCP p50 ms", 1), ("TLS p50", 1), ("HTTP p50", 1), ("p95", 1)],
        values: probe,
    },
];

fn requests(of: &RequestsSummary) -> Vec<Option<f64>> {
    [Some(of.answered as f64), Some(of.per_second)].into_iter().chain(times(&of.completion_ms)).collect()
}

fn pages(of: &PagesSummary) -> Vec<Option<f64>> {
    [Some(of.loaded as f64), Some(of.objects as f64)].into_iter().chain(times(&of.load_ms)).collect()
}

fn video(of: &VideoSummary) -> Vec<Option<f64>> {
    let download = of.download_ms.distribution.quantiles;
    vec![
        Some(of.segments as f64),
        Some(of.bitrate_bps / 1e6),
        Some(of.switches as f64),
        of.startup_s,
        Some(of.rebuffers as f64),
        Some(of.rebuffering_s),
        Some(of.rebuffering_ratio * 100.0),
        download.p50,
        download.p95,
    ]
}

fn load(of: &ApplicationSummary) -> Option<Vec<Option<f64>>> {
    let (load, probes) = (of.load.as_ref()?, of.probes.as_ref()?);
    let [_, p50, p95, max] = times(&probes.http_ms);
    let counts = [probes.made, probes.answered].map(|count| Some(count as f64));
    Some([Some(load.goodput_bps / 1e6)].into_iter().chain(counts).chain([p50, p95, max]).collect())
}

fn probe(of: &ApplicationSummary) -> Option<Vec<Option<f64>>> {
    let probes = of.probes.as_ref().filter(|_| of.load.is_none())?;
    let [[_, tcp, ..], [_, tls, ..], [_, p50, p95, _]] = [&probes.tcp_ms, &probes.tls_ms, &probes.http_ms].map(times);
    let counts = [probes.made, probes.answered].map(|count| Some(count as f64));
    Some(counts.into_iter().chain([tcp, tls, p50, p95]).collect())
}

/// Mean, median, 95th percentile and maximum.
fn times(of: &Spread) -> [Option<f64>; 4] {
    let quantiles = of.distribution.quantiles;
    [of.mean, quantiles.p50, quantiles.p95, of.distribution.max]
}

/// The values shown of one flow, or the medians of many.
#[derive(Debug)]
struct Line {
    name: String,
    values: Vec<Option<f64>>,
}

/// The flows of a kind in one run; those of many together.
fn lines(kind: &Kind, summary: &Summary<Map<String, Value>>) -> Vec<Line> {
    let values = |flow: &FlowSummary| (kind.values)(flow.application.as_deref()?);
    let line = |flow: &FlowSummary| Some(Line { name: flow.id.to_string(), values: values(flow)? });
    let lines: Vec<Line> = summary.flows.iter().filter_map(line).collect();
    if lines.len() <= MAX_FLOW_LINES {
        return lines;
    }
    vec![Line { name: format!("{} flows", lines.len()), values: medians(kind, &lines.iter().collect::<Vec<_>>()) }]
}

/// The median of each column.
fn medians(kind: &Kind, lines: &[&Line]) -> Vec<Option<f64>> {
    let column = |column: usize| median(&lines.iter().filter_map(|line| line.values[column]).collect::<Vec<_>>());
    (0..kind.columns.len()).map(column).collect()
}

/// The tables of one run; nothing without such flows.
pub(super) fn detail(summary: &Summary<Map<String, Value>>) -> String {
    let mut tables = Applications::default();
    tables.add(summary);
    tables.end_point(&[], &[]);
    tables.text().into_iter().map(|table| format!("{table}\n\n")).collect()
}

/// The tables of a sweep.
#[derive(Debug, Default)]
pub(super) struct Applications {
    /// The lines of the runs of the point at hand, by kind.
    point: [Vec<Vec<Line>>; KINDS.len()],
    tables: [Option<Table>; KINDS.len()],
}

impl Applications {
    /// Adds a run of the point at hand.
    pub(super) fn add(&mut self, summary: &Summary<Map<String, Value>>) {
        for (kind, point) in KINDS.iter().zip(&mut self.point) {
            point.push(lines(kind, summary));
        }
    }

    /// Every run of the point at hand has been added; it has these values on these axes.
    pub(super) fn end_point(&mut self, axes: &[String], values: &[String]) {
        for ((kind, point), table) in KINDS.iter().zip(&mut self.point).zip(&mut self.tables) {
            let runs = std::mem::take(point);
            for (number, first) in runs.first().into_iter().flatten().enumerate() {
                let alike: Vec<&Line> = runs.iter().filter_map(|run| run.get(number)).collect();
                let table = table.get_or_insert_with(|| {
                    let columns = kind.columns.iter().map(|(name, _)| (*name).to_owned());
                    Table::new(axes.len() + 1, axes.iter().cloned().chain([kind.name.to_owned()]).chain(columns))
                });
                let cells = kind.columns.iter().enumerate().map(|(column, &(_, digits))| {
                    cell(alike.iter().filter_map(|line| line.values[column]).collect(), digits)
                });
                table.row(values.iter().cloned().chain([first.name.clone()]).map(Cell::from).chain(cells));
            }
        }
    }

    /// The tables that there are.
    pub(super) fn text(&self) -> Vec<String> {
        self.tables.iter().flatten().map(|table| table.render().trim_end().to_owned()).collect()
    }
}
