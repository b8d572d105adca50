//! A data file of Flent: a series per flow over time, as its tests of throughput have them.
//!
//! # Source
//! Flent 2.3, `flent/resultset.py` (version 4 of the format), `flent/tests/tcp_nup.conf`,
//! `tcp_ndown.conf`, `rrul_be_nflows.conf`, `tcp_stats.inc`, `qdisc_stats.inc`, and the parsers of
//! `flent/runners.py` (units of what `ss` and `tc` tell).
//!
//! # Departures
//! - Values are those of the intervals of `series.csv`, at the end of each, and none is
//!   interpolated.
//! - `Ping (ms) ICMP` is the mean over the run's pings (`application = "ping"`); without any, of
//!   the RTT samples that TCP flows have in an interval, each flow counting once.
//! - What a client asks for has the round trips of its requests, and no windows: the series has
//!   none of servers.
//! - Windows are in bytes, which Flent's plot of windows in packets cannot show.
//! - `delay` of a queue is the mean sojourn time, whatever the algorithm reports.

use std::collections::BTreeMap;
use std::io::Write;

use ackclock_run::output::SERIES;
use anyhow::bail;
use flate2::Compression;
use flate2::write::GzEncoder;
use serde_json::{Map, Value, json};

use super::run::Run;
use super::sheet::{Sheet, missing};

/// Version of the format.
const VERSION: u64 = 4;

/// Times in metadata: a run begins at the epoch.
const START: &str = "1970-01-01T00:00:00.000000Z";

/// Writes the file.
pub(super) fn write(run: &Run, out: &mut dyn Write) -> anyhow::Result<()> {
    let Some(series) = run.sheet(SERIES)? else { return missing("series = \"100ms\"", &run.dir) };
    let mut records = Records::read(series)?;
    run.list("flows").iter().filter(|flow| is_asked_for(flow)).for_each(|flow| records.turn(flow));
    let data = data(run, &records)?;
    let mut out = GzEncoder::new(out, Compression::default());
    serde_json::to_writer(&mut out, &data).map_err(std::io::Error::from)?;
    out.finish()?;
    Ok(())
}

/// The values of an interval for a flow, a group or a link, by column.
#[derive(Debug)]
struct FlentPoint {
    from: f64,
    /// The place of the interval's end, among all of them.
    place: usize,
    values: [Option<f64>; VALUES.len()],
    /// Goodput of what a client asked for.
    responses: Option<f64>,
}

/// The columns that are exported, with their keys among raw values and what a unit of the column is
/// in that of the key.
const VALUES: [(&str, &str, f64); 14] = [
    ("goodput_bps", "val", 1e-6),
    ("rtt_ms", "rtt_ms", 1.0),
    // `ss` tells the smoothed one.
    ("srtt_ms", "tcp_rtt", 1.0),
    ("cwnd_bytes", "cwnd_bytes", 1.0),
    ("ssthresh_bytes", "ssthresh_bytes", 1.0),
    ("in_flight_bytes", "in_flight_bytes", 1.0),
    ("retransmitted_packets", "retransmitted_packets", 1.0),
    ("timeouts", "timeouts", 1.0),
    ("backlog_bytes", "backlog_bytes", 1.0),
    ("backlog_packets", "backlog_pkts", 1.0),
    ("dropped_packets", "dropped", 1.0),
    ("marked_packets", "ecn_mark", 1.0),
    ("sojourn_ms", "delay", 1.0),
    ("probability", "prob", 1.0),
];
const GOODPUT: usize = 0;
const RTT: usize = 1;
const CWND: usize = 3;
const BACKLOG: usize = 8;
const DROPPED: usize = 10;
const MARKED: usize = 11;

/// A series, and the ends of its intervals.
#[derive(Debug, Default)]
struct Records {
    ends: Vec<f64>,
    /// Points by kind and id.
    points: BTreeMap<(String, String), Vec<FlentPoint>>,
}

impl Records {
    fn read(mut series: Sheet) -> anyhow::Result<Records> {
        let [from, to, kind, id, responses] =
            series.columns(["from_s", "to_s", "kind", "id", "response_goodput_bps"])?;
        let columns = series.columns(VALUES.map(|value| value.0))?;
        let mut records = Records::default();
        let mut last = None;
        while series.next()? {
            let end = series.required(to, 9)?;
            if last.is_some_and(|last| last > end) {
                return Err(series.wrong(to, "intervals in order of time"));
            }
            if last != Some(end) {
                records.ends.push(end as f64 / 1e9);
                last = Some(end);
            }
            let mut values = [None; VALUES.len()];
            for ((value, column), (_, _, unit)) in values.iter_mut().zip(columns).zip(VALUES) {
                *value = series.number(column)?.map(|number| number * unit);
            }
            let (from, place) = (series.required(from, 9)? as f64 / 1e9, records.ends.len() - 1);
            let responses = series.number(responses)?.map(|bps| bps * 1e-6);
            let point = FlentPoint { from, place, values, responses };
            let key = (series.text(kind).to_owned(), series.text(id).to_owned());
            records.points.entry(key).or_default().push(point);
        }
        if records.ends.is_empty() {
            bail!("the run's {SERIES} has no row");
        }
        Ok(records)
    }

    /// The points of a flow become those of what its client asked for; the columns between the RTT
    /// and the backlog are of requests.
    fn turn(&mut self, flow: &Value) {
        let key = ("flow".to_owned(), flow["id"].as_str().unwrap_or_default().to_owned());
        for point in self.points.get_mut(&key).into_iter().flatten() {
            point.values[GOODPUT] = point.responses;
            point.values[CWND..BACKLOG].fill(None);
        }
    }

    /// The points of a flow, group or link; none if it never was active.
    fn of(&self, kind: &str, id: &str) -> &[FlentPoint] {
        self.points.get(&(kind.to_owned(), id.to_owned())).map_or(&[], Vec::as_slice)
    }

    /// A value of it over time, with gaps.
    fn over_time(&self, points: &[FlentPoint], value: usize) -> Vec<Option<f64>> {
        let mut series = vec![None; self.ends.len()];
        points.iter().for_each(|point| series[point.place] = point.values[value]);
        series
    }

    /// All values of it.
    fn raw(&self, points: &[FlentPoint]) -> Value {
        let of = |point: &FlentPoint| {
            let end = self.ends[point.place];
            let mut raw = json!({ "t": end, "dur": end - point.from });
            for (value, (_, key, _)) in point.values.iter().zip(VALUES) {
                if let Some(value) = value {
                    raw[key] = (*value).into();
                }
            }
            raw
        };
        points.iter().map(of).collect()
    }
}

/// Returns `true` if a flow's data is requested by its client, against the flow's direction.
fn is_asked_for(flow: &Value) -> bool {
    let of = &flow["application"];
    ["requests", "pages", "video"].iter().any(|part| !of[part].is_null()) || of["load"]["transfer"] == "download"
}

/// A flow or group of flows, and its points.
#[derive(Clone, Copy, Debug)]
struct FlentStream<'a> {
    id: &'a str,
    controller: &'a Value,
    is_tcp: bool,
    is_reverse: bool,
    points: &'a [FlentPoint],
}

/// All flows and groups in the order of the summary.
fn streams<'a>(run: &'a Run, records: &'a Records) -> Vec<FlentStream<'a>> {
    let of = |list, kind| {
        run.list(list).iter().filter_map(move |object| {
            let id = object["id"].as_str()?;
            Some(FlentStream {
                id,
                controller: &object["cc"],
                is_tcp: object["datagrams"].is_null(),
                is_reverse: (object["direction"] == "reverse") != is_asked_for(object),
                points: records.of(kind, id),
            })
        })
    };
    let all = of("flows", "flow").chain(of("groups", "group")).chain(of("workloads", "group"));
    all.filter(|stream| !stream.points.is_empty()).collect()
}

/// The series of a file, with what each is of.
#[derive(Debug, Default)]
struct Results {
    values: Map<String, Value>,
    raw: Map<String, Value>,
    meta: Map<String, Value>,
}

impl Results {
    fn add(&mut self, name: String, units: &str, values: &[Option<f64>]) {
        self.values.insert(name.clone(), values.into());
        self.meta.insert(name, json!({ "UNITS": units }));
    }

    /// The streams of one kind and direction, numbered.
    fn add_streams(&mut self, prefix: &str, streams: &[FlentStream<'_>], records: &Records) {
        for (stream, number) in streams.iter().zip(1..) {
            let name = format!("{prefix}::{number}");
            self.add(name.clone(), "Mbits/s", &records.over_time(stream.points, GOODPUT));
            self.meta[&name]["ID"] = stream.id.into();
            if stream.controller.is_string() {
                self.meta[&name]["CONG_CONTROL"] = stream.controller.clone();
            }
            self.raw.insert(name, records.raw(stream.points));
        }
    }

    /// Adds the series that Flent computes of the streams of one direction.
    fn add_computed(&mut self, direction: &str, streams: &[FlentStream<'_>], records: &Records, with_fairness: bool) {
        let all: Vec<Vec<Option<f64>>> =
            streams.iter().map(|stream| records.over_time(stream.points, GOODPUT)).collect();
        self.add(format!("TCP {direction} sum"), "Mbits/s", &combined(&all, records, |values| values.iter().sum()));
        self.add(format!("TCP {direction} avg"), "Mbits/s", &combined(&all, records, mean));
        if with_fairness {
            self.add(format!("TCP {direction} fairness"), "Idx", &combined(&all, records, fairness));
        }
    }
}

/// The contents of the file.
fn data(run: &Run, records: &Records) -> anyhow::Result<Value> {
    let streams = streams(run, records);
    // Pings are the only datagrams with a round trip.
    let is_ping =
        |stream: &&FlentStream<'_>| !stream.is_tcp && stream.points.iter().any(|point| point.values[RTT].is_some());
    let pings: Vec<FlentStream<'_>> = streams.iter().filter(is_ping).copied().collect();
    let [up, down, up_udp, down_udp] = [(true, false), (true, true), (false, false), (false, true)].map(|kind| {
        let is_of = |stream: &&FlentStream<'_>| (stream.is_tcp, stream.is_reverse) == kind;
        streams.iter().filter(is_of).filter(|stream| !is_ping(stream)).copied().collect::<Vec<_>>()
    });
    let mut results = Results::default();
    // In Flent's tests of both directions streams have a class.
    let (name, class) = match (up.is_empty(), down.is_empty()) {
        (true, true) => bail!("{}: the run has no TCP flow, without which Flent has no plot", run.dir.display()),
        (false, true) => ("tcp_nup", ""),
        (true, false) => ("tcp_ndown", ""),
        (false, false) => ("rrul_be_nflows", " BE"),
    };
    let has_both = !class.is_empty();
    for (direction, tcp, udp) in [("upload", &up, &up_udp), ("download", &down, &down_udp)] {
        results.add_streams(&format!("TCP {direction}{class}"), tcp, records);
        if !tcp.is_empty() {
            results.add_computed(direction, tcp, records, !has_both);
        }
        results.add_streams(&format!("UDP {direction}"), udp, records);
    }
    let tcp: Vec<FlentStream<'_>> = up.iter().chain(&down).copied().collect();
    let of_all = |streams: &[FlentStream<'_>], value| -> Vec<Vec<Option<f64>>> {
        streams.iter().map(|stream| records.over_time(stream.points, value)).collect()
    };
    let rtt = combined(&of_all(if pings.is_empty() { &tcp } else { &pings }, RTT), records, mean);
    if has_both {
        let totals = combined(&of_all(&tcp, GOODPUT), records, |values| values.iter().sum());
        results.add("TCP totals".to_owned(), "Mbits/s", &totals);
        results.add("Ping (ms) avg".to_owned(), "ms", &rtt);
    }
    let pings = records.ends.iter().zip(&rtt).filter_map(|(end, rtt)| rtt.map(|rtt| json!({ "t": end, "val": rtt })));
    results.raw.insert("Ping (ms) ICMP".to_owned(), pings.collect());
    results.add("Ping (ms) ICMP".to_owned(), "ms", &rtt);
    let links: Vec<&str> = run.list("links").iter().filter_map(|link| link["id"].as_str()).collect();
    for link in &links {
        let (points, name) = (records.of("link", link), format!("qdisc_stats_{link}"));
        for (value, key) in [(DROPPED, "dropped"), (MARKED, "ecn_mark")] {
            results.add(format!("{name}::{key}"), "packets", &records.over_time(points, value));
        }
        results.raw.insert(name, records.raw(points));
    }
    let metadata = metadata(run, records, name, &results.meta, (up.len(), down.len()), &links);
    Ok(json!({
        "version": VERSION,
        "metadata": metadata,
        "x_values": records.ends,
        "results": results.values,
        "raw_values": results.raw,
    }))
}

fn metadata(
    run: &Run,
    records: &Records,
    name: &str,
    series: &Map<String, Value>,
    (up, down): (usize, usize),
    links: &[&str],
) -> Value {
    let end = records.ends.last().copied().unwrap_or_default();
    // The last interval may be shorter.
    let step = records.ends.first().copied().unwrap_or_default();
    json!({
        "NAME": name,
        "TITLE": run.title(),
        "NOTE": run.origin(),
        "TIME": START,
        "T0": START,
        "LENGTH": end,
        "TOTAL_LENGTH": end,
        "STEP_SIZE": step,
        "HOST": "ackclock",
        "HOSTS": ["ackclock"],
        "LOCAL_HOST": "ackclock",
        "IP_VERSION": 4,
        "TEST_PARAMETERS": {
            "upload_streams": up.to_string(),
            "download_streams": down.to_string(),
            "qdisc_stats_hosts": links.join(","),
            "qdisc_stats_interfaces": vec!["queue"; links.len()].join(","),
        },
        "SERIES_META": series,
    })
}

/// The computed series of the values that several series have at each time; no value gives none.
fn combined(all: &[Vec<Option<f64>>], records: &Records, compute: impl Fn(&[f64]) -> f64) -> Vec<Option<f64>> {
    let at = |place: usize| -> Vec<f64> { all.iter().filter_map(|series| series[place]).collect() };
    let computed = |values: Vec<f64>| (!values.is_empty()).then(|| compute(&values)).filter(|value| value.is_finite());
    (0..records.ends.len()).map(|place| computed(at(place))).collect()
}

fn mean(values: &[f64]) -> f64 {
    values.iter().sum::<f64>() / values.len() as f64
}

/// Jain's index; not a number where nothing was transferred.
fn fairness(values: &[f64]) -> f64 {
    let sum: f64 = values.iter().sum();
    sum * sum / (values.len() as f64 * values.iter().map(|value| value * value).sum::<f64>())
}
