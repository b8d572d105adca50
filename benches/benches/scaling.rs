//! Cost of a data packet against the number of flows and of links: `scaling.csv`, and the plots of
//! it, `flows.svg` and `links.svg`.
//!
//! Measures and writes all of them; words after `--` select series by their names, the others stay
//! as they are. `ACKCLOCK_BIN` names another build. `cargo test` compares the plots with the
//! numbers; with `ACKCLOCK_WRITE_DOCS=1` it draws them anew.

use std::fmt::Write as _;
use std::fs;
use std::io::{self, Write};
use std::path::Path;
use std::process::ExitCode;

use ackclock_benches::cachegrind::{self, Case, Counts};
use ackclock_benches::plot::{Panel, svg};
use ackclock_benches::topology::{Bulk, Links, NEWRENO, Queue};
use timing::Pair;

#[allow(dead_code, reason = "packets uses all of it")]
mod timing;

const DIRECTORY: &str = env!("CARGO_MANIFEST_DIR");
const HEAD: &str = "series,number,instructions,ll_misses,nanoseconds\n";

/// The times of a run are the least of so many.
const ROUNDS: usize = 7;

/// Beyond so many data packets in a run there are too many instructions for cachegrind.
const COUNTED: f64 = 4e6;

/// A point of a plot, with what is not measured there left out.
#[derive(Clone, Debug, PartialEq)]
struct PlotPoint {
    series: String,
    number: u64,
    /// Instructions, accesses that miss 1 MiB of cache, nanoseconds.
    costs: [Option<f64>; 3],
}

/// The measurement of a point.
struct Job {
    series: &'static str,
    number: u64,
    bulk: Bulk,
    /// Durations of the runs in ms.
    durations: [u64; 2],
    /// The cost is of each of so many hops.
    hops: u64,
}

/// Flows with 5 Mbit/s each over one link; two flows with 10 Mbit/s over links in a row; two such
/// flows on each of many links. Queues hold about one round trip of 20 ms, so that a second is
/// enough for flows to be in congestion avoidance. Runs are shorter the more packets there are in
/// them.
fn jobs() -> Vec<Job> {
    let mut jobs = Vec::new();
    for number in [1, 3, 10, 30, 100, 300, 1000, 3000, 10_000, 30_000, 100_000] {
        let bulk = Bulk::shared(number, NEWRENO, 5 * number, Queue::DropTail(8 * number));
        let begun = if number < 300 { 1000 } else { 500 };
        let length = (300_000 / number).clamp(500, 60_000);
        jobs.push(Job { series: "flows", number, bulk, durations: [begun, begun + length], hops: 1 });
    }
    for number in [1, 3, 10, 30, 100, 300, 1000] {
        let two = Bulk::shared(2, NEWRENO, 10, Queue::DropTail(20));
        let row = Bulk { links: Links::Chain(number), ..two };
        let length = (60_000 / number).max(1000);
        jobs.push(Job {
            series: "in a row, per hop",
            number,
            bulk: row,
            durations: [1000, 1000 + length],
            hops: number,
        });
        let beside = Bulk { flows: 2 * number, links: Links::Parallel(number), ..two };
        let length = (60_000 / number).max(300);
        jobs.push(Job { series: "side by side", number, bulk: beside, durations: [1000, 1000 + length], hops: 1 });
    }
    jobs
}

impl Job {
    fn scenarios(&self) -> [String; 2] {
        self.durations.map(|duration| self.bulk.scenario(&format!("{duration}ms")))
    }

    /// Data packets of the longer run, about; a hop counts as a quarter of one.
    fn packets(&self) -> f64 {
        let paths = if let Links::Parallel(links) = self.bulk.links { links } else { 1 };
        let per_second = (paths * self.bulk.mbit) as f64 * 83.0;
        per_second * self.durations[1] as f64 / 1000.0 * (self.hops as f64 / 4.0).max(1.0)
    }
}

/// Measures one point.
fn measure(program: &Path, job: &Job) -> io::Result<PlotPoint> {
    let scenarios = job.scenarios();
    let hops = job.hops as f64;
    let mut costs = [None; 3];
    if cachegrind::is_there() && job.packets() < COUNTED {
        let case = Case { name: String::new(), scenarios: scenarios.clone() };
        let cost = cachegrind::measure(program, &[case], Counts::Misses, |_| ())?[0];
        (costs[0], costs[1]) = (Some(cost.instructions / hops), Some(cost.ll / hops));
    }
    let rounds = if job.packets() < COUNTED { ROUNDS } else { 3 };
    let pairs = (0..rounds).map(|_| Pair::run(program, &scenarios)).collect::<io::Result<Vec<_>>>()?;
    costs[2] = Pair::least(&pairs).map(|pair| pair.packet() / hops);
    Ok(PlotPoint { series: job.series.to_owned(), number: job.number, costs })
}

fn render(points: &[PlotPoint]) -> String {
    let mut text = HEAD.to_owned();
    for PlotPoint { series, number, costs } in points {
        // Rounded first, so that nothing is not less than nothing.
        let cell = |cost: f64| format!("{:.1}", (cost * 10.0).round() / 10.0 + 0.0);
        let [instructions, misses, nanoseconds] = costs.map(|cost| cost.map_or(String::new(), cell));
        let _ = writeln!(text, "\"{series}\",{number},{instructions},{misses},{nanoseconds}");
    }
    text
}

fn parse(text: &str) -> Option<Vec<PlotPoint>> {
    let point = |line: &str| {
        let (series, rest) = line.strip_prefix('"')?.split_once("\",")?;
        let mut cells = rest.split(',');
        let number = cells.next()?.parse().ok()?;
        let mut cost = || cells.next().map(|cell| cell.parse().ok());
        Some(PlotPoint { series: series.to_owned(), number, costs: [cost()?, cost()?, cost()?] })
    };
    text.strip_prefix(HEAD)?.lines().map(point).collect()
}

/// The plots by their names: of the flows, and of the links.
fn plots(points: &[PlotPoint]) -> [(&'static str, String); 2] {
    let panels = |series: &[&str], x_label: &str, quantities: &[usize]| {
        let title = ["Instructions", "Misses of a cache of 1 MiB", "Nanoseconds"];
        let panel = |quantity: usize| Panel {
            title: format!("{} for each data packet", title[quantity]),
            x_label: x_label.to_owned(),
            series: series
                .iter()
                .map(|&name| {
                    let of = points.iter().filter(|point| point.series == name);
                    let line = of.filter_map(|point| Some((point.number as f64, point.costs[quantity]?)));
                    // A logarithmic axis has no place for nothing.
                    let line = line.filter(|&(_, cost)| cost > 0.0);
                    (name.to_owned(), line.collect())
                })
                .collect(),
        };
        let is_measured = |quantity: usize| {
            points.iter().any(|point| series.contains(&point.series.as_str()) && point.costs[quantity].is_some())
        };
        let measured = quantities.iter().filter(|&&quantity| is_measured(quantity));
        svg(&measured.map(|&quantity| panel(quantity)).collect::<Vec<_>>())
    };
    [
        ("flows.svg", panels(&["flows"], "flows", &[0, 1, 2])),
        ("links.svg", panels(&["in a row, per hop", "side by side"], "links", &[0, 2])),
    ]
}

fn say(text: &str) {
    let mut out = io::stdout().lock();
    let _ = out.write_all(text.as_bytes()).and_then(|()| out.flush());
}

fn write_plots(points: &[PlotPoint]) -> io::Result<()> {
    plots(points).iter().try_for_each(|(name, text)| fs::write(Path::new(DIRECTORY).join(name), text))
}

fn committed() -> io::Result<Vec<PlotPoint>> {
    parse(&fs::read_to_string(Path::new(DIRECTORY).join("scaling.csv"))?)
        .ok_or_else(|| io::Error::other("benches/scaling.csv cannot be read"))
}

/// Measures the series whose names contain one of these words.
fn measure_all(words: &[String]) -> io::Result<()> {
    let program = cachegrind::program(cachegrind::SHIPPED)?;
    let old = committed().unwrap_or_default();
    let mut points = Vec::new();
    for job in jobs() {
        if words.is_empty() || words.iter().any(|word| job.series.contains(word)) {
            let point = measure(&program, &job)?;
            say(&render(std::slice::from_ref(&point))[HEAD.len()..]);
            points.push(point);
        } else {
            points.extend(old.iter().filter(|old| old.series == job.series && old.number == job.number).cloned());
        }
    }
    fs::write(Path::new(DIRECTORY).join("scaling.csv"), render(&points))?;
    // As rounded there.
    write_plots(&committed()?)
}

/// Checks that the plots show the numbers.
fn check() -> io::Result<()> {
    let points = committed()?;
    assert_eq!(parse(&render(&points)).as_ref(), Some(&points));
    if std::env::var_os("ACKCLOCK_WRITE_DOCS").is_some() {
        return write_plots(&points);
    }
    for (name, text) in plots(&points) {
        assert!(fs::read_to_string(Path::new(DIRECTORY).join(name))? == text, "{name} is not the plot of scaling.csv");
    }
    Ok(())
}

fn main() -> ExitCode {
    let arguments: Vec<String> = std::env::args().skip(1).collect();
    let result = if arguments.iter().any(|argument| argument == "--bench") {
        measure_all(&arguments.into_iter().filter(|argument| !argument.starts_with("--")).collect::<Vec<_>>())
    } else {
        check()
    };
    match result {
        Ok(()) => ExitCode::SUCCESS,
        Err(error) => {
            say(&format!("{error}\n"));
            ExitCode::FAILURE
        }
    }
}
