//! The text about live runs: which one it is, how punctual it was, and how its programs ended.

use std::collections::BTreeMap;
use std::fmt::Write;

use ackclock_scenario::Scenario;
use ackclock_trace::metrics::{self, ShownMetric};
use ackclock_trace::{CommandSummary, Lateness, LiveSummary, Summary};

use crate::report::cell;
use crate::table::{Cell, Table};

/// The scenario about to run, and its duration; `kept` says that there is an output directory.
pub(crate) fn heading(scenario: &Scenario, kept: bool) -> String {
    let specs: Vec<_> = (0..scenario.runs()).map(|run| scenario.spec(run)).collect();
    let seconds: f64 = specs.iter().map(|spec| spec.duration.as_secs_f64()).sum();
    let title = if scenario.title().is_empty() { "live".to_owned() } else { format!("live: {}", scenario.title()) };
    let runs = if specs.len() == 1 { String::new() } else { format!("{} runs, ", specs.len()) };
    let results = if kept { "keeps" } else { "shows" };
    format!("{title}; {runs}{seconds} s in real time; Ctrl-C ends it and {results} the results so far")
}

/// Hosts, programs and punctuality, for the report of one run.
pub(crate) fn detail<P>(summary: &Summary<P>) -> String {
    let mut out = String::new();
    if !summary.commands.is_empty() {
        let _ = write!(out, "\n{}", commands(&summary.commands));
    }
    if let Some(live) = &summary.live {
        let mut results = StackResults::default();
        results.add(live, &[]);
        for table in results.tables(&[]) {
            let _ = write!(out, "\n{}", table.render());
        }
        if summary.clock == "virtual" {
            return out;
        }
        let _ = write!(out, "\n{}\n", hosts(live));
        // A replay is at no time late.
        if summary.clock == "live" {
            out.push_str(&punctuality(live));
        }
        let verdict = if live.valid { "valid".to_owned() } else { format!("not valid: {}", live.invalid.join("; ")) };
        let compared = match live.compared_packets {
            None => String::new(),
            Some(0) => "; its packets were not compared with the recorded run's".to_owned(),
            Some(packets) => format!("; {packets} packets compared with the recorded run's"),
        };
        let _ = writeln!(out, "{verdict}{compared}");
    }
    out
}

fn commands(commands: &[CommandSummary]) -> String {
    let mut table =
        Table::new(3, ["command", "host", "ended", "from s", "to s", "ping p50 ms", "p95", "p99", "max", "answers"]);
    let cell = |value: Option<f64>| value.map_or_else(|| "-".to_owned(), |value| format!("{value:.3}"));
    for command in commands {
        let ended = match (command.exit, command.signal) {
            (Some(status), _) => format!("exit status {status}"),
            (None, Some(signal)) => format!("signal {signal}"),
            (None, None) => "not run".to_owned(),
        };
        let ended = if command.stopped { format!("stopped, {ended}") } else { ended };
        let p99 = command.rtt_ms.and_then(|rtt| rtt.p99);
        let rtt = command.rtt_ms.map(|rtt| rtt.distribution);
        table.row(vec![
            command.id.clone(),
            command.host.clone(),
            ended,
            cell(command.started_s),
            cell(command.ended_s),
            cell(rtt.and_then(|rtt| rtt.quantiles.p50)),
            cell(rtt.and_then(|rtt| rtt.quantiles.p95)),
            cell(p99),
            cell(rtt.and_then(|rtt| rtt.max)),
            rtt.map_or_else(|| "-".to_owned(), |rtt| rtt.samples.to_string()),
        ]);
    }
    table.render()
}

fn hosts(live: &LiveSummary) -> String {
    let mut table = Table::new(
        2,
        ["host", "device", "packets in", "MB", "packets out", "MB", "lost at device", "cut off", "refused", "no way"],
    );
    for host in &live.hosts {
        table.row(vec![
            host.id.clone(),
            host.stack.as_ref().unwrap_or(&host.tun).clone(),
            host.received_packets.to_string(),
            format!("{:.1}", host.received_bytes as f64 / 1e6),
            host.sent_packets.to_string(),
            format!("{:.1}", host.sent_bytes as f64 / 1e6),
            host.device_dropped.to_string(),
            host.truncated.to_string(),
            host.refused.to_string(),
            host.unroutable.to_string(),
        ]);
    }
    table.render()
}

/// Results of stacks: a table for each host, with a column for each result.
#[derive(Debug, Default)]
pub(crate) struct StackResults {
    hosts: Vec<StackTable>,
}

#[derive(Debug)]
struct StackTable {
    host: String,
    /// Names of results.
    columns: Vec<String>,
    rows: Vec<StackRow>,
}

/// The values of the axes and the stack, with the values of the runs by column.
type StackRow = (Vec<String>, BTreeMap<usize, Vec<f64>>);

impl StackResults {
    /// Adds the results of a run. Runs with the same values on the axes, one after the other, share
    /// a row.
    pub(crate) fn add(&mut self, live: &LiveSummary, axes: &[String]) {
        for host in &live.hosts {
            let Some(results) = host.results.as_ref().and_then(serde_json::Value::as_object) else { continue };
            let known = self.hosts.iter().position(|table| table.host == host.id).unwrap_or_else(|| {
                self.hosts.push(StackTable { host: host.id.clone(), columns: Vec::new(), rows: Vec::new() });
                self.hosts.len() - 1
            });
            let StackTable { columns, rows, .. } = &mut self.hosts[known];
            let texts: Vec<String> = axes.iter().chain(&host.stack).cloned().collect();
            if rows.last().is_none_or(|(last, _)| *last != texts) {
                rows.push((texts, BTreeMap::new()));
            }
            let Some((_, cells)) = rows.last_mut() else { continue };
            for (name, value) in results.iter().filter_map(|(name, value)| Some((name, value.as_f64()?))) {
                let column = columns.iter().position(|column| column == name).unwrap_or_else(|| {
                    columns.push(name.clone());
                    columns.len() - 1
                });
                cells.entry(column).or_default().push(value);
            }
        }
    }

    /// The tables, under the names of the axes.
    pub(crate) fn tables(&self, axes: &[String]) -> impl Iterator<Item = Table> {
        let with_results = self.hosts.iter().filter(|table| !table.columns.is_empty());
        with_results.map(|StackTable { host, columns, rows }| {
            let shown: Vec<ShownMetric> = columns.iter().map(|name| metrics::shown("", name)).collect();
            let texts = axes.iter().cloned().chain([host.clone()]);
            let mut table = Table::new(axes.len() + 1, texts.chain(shown.iter().map(ShownMetric::heading)));
            for (texts, cells) in rows {
                let cell = |(column, shown): (usize, &ShownMetric)| {
                    let values = cells.get(&column).into_iter().flatten();
                    cell(values.map(|&value| shown.unit.scaled(value)).collect(), shown.digits)
                };
                table.row(texts.iter().cloned().map(Cell::from).chain(shown.iter().enumerate().map(cell)));
            }
            table
        })
    }
}

fn punctuality(live: &LiveSummary) -> String {
    let Lateness { p50, p99, p99_9, max, samples } = live.lateness_ms;
    let ms = |value: Option<f64>| value.map_or_else(|| "-".to_owned(), |value| format!("{value:.3}"));
    format!(
        "late by {} ms p50, {} p99, {} p99.9, {} max, of {samples} packets; behind for {:.3} s, stood still for {:.3} ms at most, waited for a processor for {} ms; packets unread for {} ms p99 at most; clock {}, spin {} ms\n",
        ms(p50),
        ms(p99),
        ms(p99_9),
        ms(max),
        live.behind_s,
        live.longest_stall_ms,
        ms(live.run_delay_ms),
        ms(live.unread_ms.p99),
        live.clock,
        live.spin_ms,
    )
}
