//! Data packets of the shipped program for each second of processor time, beside a fixed reference
//! program with which it takes turns, and its peak memory for each flow.
//!
//! Words after `--` select rows by their names; `ACKCLOCK_BIN` names another build, and
//! `ACKCLOCK_WRITE_DOCS=1` writes `packets.md`. Nothing is asserted about times. `cargo test` only
//! reads the scenarios.

use std::fs;
use std::io::{self, Write};
use std::path::{Path, PathBuf};
use std::process::{Command, ExitCode};

use ackclock_benches::cachegrind;
use ackclock_benches::reference::{Reference, STEPS};
use ackclock_benches::topology::{Bulk, NEWRENO, Queue};
use ackclock_scenario::Scenario;
use nix::sys::resource::{UsageWho, getrusage};
use timing::{Pair, processor_time, timed};

mod timing;

/// A row of the table.
struct Row {
    name: &'static str,
    bulk: Bulk,
    /// The durations of two runs; the cost of the shorter one is subtracted.
    durations: [&'static str; 2],
    rounds: usize,
}

fn rows() -> [Row; 7] {
    let row = |name, flows, mbit, queue, durations, rounds| Row {
        name,
        bulk: Bulk::shared(flows, NEWRENO, mbit, queue),
        durations,
        rounds,
    };
    let [pie, fq_codel] = ["pie", "fq_codel"].map(Queue::Named);
    let most = Queue::DropTail(100_000);
    [
        row("2 flows, 10 Mbit/s, drop-tail 180", 2, 10, Queue::DropTail(180), ["30s", "630s"], 9),
        row("2 flows, 10 Mbit/s, PIE", 2, 10, pie, ["30s", "630s"], 9),
        row("2 flows, 10 Mbit/s, fq_codel", 2, 10, fq_codel, ["30s", "630s"], 9),
        row("100 flows, 1 Gbit/s, drop-tail 1000", 100, 1000, Queue::DropTail(1000), ["1s", "7s"], 9),
        row("1000 flows, 1 Gbit/s, drop-tail 1000", 1000, 1000, Queue::DropTail(1000), ["1s", "7s"], 9),
        row("10000 flows, 10 Gbit/s, drop-tail 10000", 10_000, 10_000, Queue::DropTail(10_000), ["500ms", "1500ms"], 7),
        row("100000 flows, 100 Gbit/s, drop-tail 100000", 100_000, 100_000, most, ["500ms", "1s"], 3),
    ]
}

/// The largest memory of all runs so far, in kB.
fn peak() -> io::Result<f64> {
    Ok(getrusage(UsageWho::RUSAGE_CHILDREN)?.max_rss() as f64)
}

/// The measurements of a row.
struct PacketCost {
    /// Time of a data packet, in nanoseconds, at best.
    packet: f64,
    /// Time of a step of the reference, in nanoseconds, at best.
    step: f64,
    /// Median number of steps of the reference per data packet.
    steps: f64,
    /// Peak memory per flow, in kB, beyond that of a run that has hardly begun.
    memory: f64,
}

/// Measures a row, in a process of its own, because a process knows the peak of all its children
/// only. Memory comes first: until a child executes its program it has its parent's.
fn measure(program: &Path, row: &Row) -> io::Result<PacketCost> {
    let scenarios = row.durations.map(|duration| row.bulk.scenario(duration));
    timed(program, &Bulk { flows: 1, ..row.bulk }.scenario("1us"))?;
    let empty = peak()?;
    timed(program, &scenarios[1])?;
    let peak = peak()?;
    let mut reference = Reference::new();
    let (mut pairs, mut reference_steps) = (Vec::new(), Vec::new());
    for _ in 0..row.rounds {
        let before = processor_time(UsageWho::RUSAGE_THREAD)?;
        std::hint::black_box(reference.round());
        let step = (processor_time(UsageWho::RUSAGE_THREAD)? - before) / f64::from(STEPS);
        pairs.push(Pair::run(program, &scenarios)?);
        reference_steps.push(step * 1e9);
    }
    let mut steps: Vec<f64> = pairs.iter().zip(&reference_steps).map(|(pair, step)| pair.packet() / step).collect();
    steps.sort_by(f64::total_cmp);
    Ok(PacketCost {
        packet: Pair::least(&pairs).map_or(f64::NAN, |pair| pair.packet()),
        step: reference_steps.into_iter().fold(f64::INFINITY, f64::min),
        steps: steps[steps.len() / 2],
        memory: (peak - empty) / row.bulk.flows as f64,
    })
}

fn say(text: &str) {
    let mut out = io::stdout().lock();
    let _ = out.write_all(text.as_bytes()).and_then(|()| out.flush());
}

/// The processor's name as Linux tells it.
fn processor() -> String {
    let text = fs::read_to_string("/proc/cpuinfo").unwrap_or_default();
    let name = text.lines().find_map(|line| line.strip_prefix("model name")?.split_once(": "));
    name.map_or_else(|| "unknown".to_owned(), |(_, name)| name.to_owned())
}

const HEAD: &str = "\
# Data packets for each second of processor time

Written by `ACKCLOCK_WRITE_DOCS=1 cargo bench -p ackclock-benches --bench packets`. [README.md](README.md) tells how to read it.

";

const COLUMNS: &str = "\
| NewReno, `freebsd-9.2` | M packets per CPU second | ns per packet | reference steps per packet | ns per step \
| relative to the first row | peak kB per flow |
|---|---|---|---|---|---|---|
";

/// Measures the rows whose names contain one of these words, each in a process of its own.
fn table(words: &[String]) -> io::Result<()> {
    let program = cachegrind::program(cachegrind::SHIPPED)?;
    let mut text = format!("{HEAD}{}, {}\n\n{COLUMNS}", processor(), cachegrind::compiler()?);
    say(&text);
    let mut of_first = None;
    for (number, row) in rows().iter().enumerate() {
        if !words.is_empty() && !words.iter().any(|word| row.name.contains(word)) {
            continue;
        }
        let output =
            Command::new(std::env::current_exe()?).arg("--row").arg(number.to_string()).arg(&program).output()?;
        let said = String::from_utf8_lossy(&output.stdout).into_owned();
        let numbers: Vec<f64> = said.split_whitespace().filter_map(|number| number.parse().ok()).collect();
        let &[packet, step, steps, memory] = numbers.as_slice() else { return Err(io::Error::other(said)) };
        let (rate, relative) = (1e3 / packet, steps / *of_first.get_or_insert(steps));
        let memory = if row.bulk.flows < 1000 { "-".to_owned() } else { format!("{memory:.1}") };
        let name = row.name;
        let line =
            format!("| {name} | {rate:.2} | {packet:.0} | {steps:.2} | {step:.0} | {relative:.2} | {memory} |\n");
        say(&line);
        text.push_str(&line);
    }
    if std::env::var_os("ACKCLOCK_WRITE_DOCS").is_some() {
        fs::write(concat!(env!("CARGO_MANIFEST_DIR"), "/packets.md"), text)?;
    }
    Ok(())
}

/// The process of a row: its numbers.
fn of_row(number: &str, program: &str) -> io::Result<()> {
    let number: usize = number.parse().map_err(io::Error::other)?;
    let PacketCost { packet, step, steps, memory } = measure(&PathBuf::from(program), &rows()[number])?;
    say(&format!("{packet} {step} {steps} {memory}\n"));
    Ok(())
}

/// Reads every scenario.
fn check() {
    for row in rows() {
        for duration in row.durations {
            let text = row.bulk.scenario(duration);
            Scenario::parse(row.name, text.as_bytes(), &[]).unwrap_or_else(|error| panic!("{}", error.render(false)));
        }
    }
}

fn main() -> ExitCode {
    let arguments: Vec<String> = std::env::args().skip(1).collect();
    let result = match arguments.as_slice() {
        [first, number, program] if first == "--row" => of_row(number, program),
        all if all.iter().any(|argument| argument == "--bench") => {
            table(&arguments.iter().filter(|argument| !argument.starts_with("--")).cloned().collect::<Vec<_>>())
        }
        _ => {
            check();
            Ok(())
        }
    };
    match result {
        Ok(()) => ExitCode::SUCCESS,
        Err(error) => {
            say(&format!("{error}\n"));
            ExitCode::FAILURE
        }
    }
}
