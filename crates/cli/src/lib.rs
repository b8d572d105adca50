//! The command line of ackclock, for its binary and for programs that add congestion controllers of
//! their own to it.
//!
//! [`main_with`] is all of the binary; `examples/own_controller.rs` shows how a controller joins.
//! What a controller is made of is in [`cc`] and [`units`].
//!
//! `args` is what a person may say, `execute` runs on all cores and gives summaries in order,
//! `table` and `output` write them down. `drill` is `ackclock packetdrill`, `compare` and `pattern`
//! are the commands of these names. Exit status: 0, 1 when an expectation was missed, a live run is
//! not valid or a script did not pass, 2 for bad input, 3 when a run failed by itself, 130 when
//! runs were interrupted.

mod args;
mod compare;
mod drill;
mod execute;
mod live;
mod output;
mod partial;
mod pattern;
mod progress;
mod report;
mod table;

pub use ackclock_cc as cc;
pub use ackclock_sim::spec::{OwnController, Parameter};
pub use ackclock_units as units;

use std::io::{self, IsTerminal, Write};
use std::ops::ControlFlow;
use std::process::ExitCode;

use ackclock_live::LiveError;
use ackclock_scenario::{LoadError, Measures, Override, Scenario, Verdict};
use ackclock_sim::RunError;
use anyhow::{Context, anyhow, bail};
use clap::Parser;

use args::{Args, Cli, Command};
use execute::{Aside, BrokenOff, Done, Failure};
use output::Output;
use progress::Progress;
use report::Report;

const MISSED: u8 = 1;
const BAD_INPUT: u8 = 2;
const RUN_FAILED: u8 = 3;
/// As shells have it for SIGINT.
const INTERRUPTED: u8 = 130;

/// The program `ackclock`, whose scenarios may name these congestion controllers too
/// (`cc = "NAME"`), beside its own.
///
/// # Panics
/// A controller has no name, or one that is taken.
pub fn main_with(controllers: &'static [OwnController]) -> ExitCode {
    let cli = Cli::parse();
    let ended = match (&cli.command, &cli.scenario) {
        (Some(Command::Packetdrill(args)), _) => drill::run(args),
        (Some(Command::Compare(args)), _) => compare::run(args),
        (Some(Command::Pattern(args)), _) => pattern::run(args),
        (None, Some(args)) => run(args, controllers),
        (None, None) => Err(anyhow!("nothing to do: --scenario FILE or a command is missing")),
    };
    match ended {
        Ok(status) => ExitCode::from(status),
        Err(error) => {
            say(&match error.downcast_ref::<LoadError>() {
                // It has its own layout.
                Some(LoadError::Scenario(error)) => {
                    error.render(io::stderr().is_terminal() && std::env::var_os("NO_COLOR").is_none())
                }
                _ => format!("error: {error:#}"),
            });
            ExitCode::from(BAD_INPUT)
        }
    }
}

/// Writes a line to stderr; there is nobody to tell if that fails.
fn say(line: &str) {
    let _ = writeln!(io::stderr().lock(), "{line}");
}

/// Writes to stdout. A reader that has left breaks off what only it would have seen; anything else,
/// such as a full disk, is an error: what is there is not complete.
fn print(text: &str) -> anyhow::Result<ControlFlow<()>> {
    let mut out = io::stdout().lock();
    match out.write_all(text.as_bytes()).and_then(|()| out.flush()) {
        Ok(()) => Ok(ControlFlow::Continue(())),
        Err(error) if error.kind() == io::ErrorKind::BrokenPipe => Ok(ControlFlow::Break(())),
        Err(error) => Err(error).context("cannot write to standard output"),
    }
}

fn run(args: &Args, controllers: &'static [OwnController]) -> anyhow::Result<u8> {
    let mut overrides: Vec<Override> =
        args.set.iter().map(|text| Override { flag: "--set".to_owned(), text: text.clone() }).collect();
    if let Some(seed) = args.seed {
        overrides.push(Override { flag: "--seed".to_owned(), text: format!("run.seed={seed}") });
    }
    if let Some(clock) = &args.clock {
        overrides.push(Override { flag: "--clock".to_owned(), text: format!("run.clock={clock}") });
    }
    let scenario = Scenario::load_with(&args.scenario, &overrides, controllers)?;
    if args.show_config {
        let _ = print(&scenario.resolved())?;
        return Ok(0);
    }
    if args.record.is_some() {
        match (scenario.is_live(), scenario.runs()) {
            (true, 1) => {}
            (true, runs) => bail!("--record takes one run, and the scenario has {runs}"),
            (false, _) => bail!("--record takes a live run: one with hosts behind devices, by the clock `live`"),
        }
    }
    for note in scenario.notes() {
        say(&format!("note: {note}"));
    }
    let mut output = match &args.out {
        Some(dir) => Some(Output::prepare(dir, &scenario).context("cannot use --out")?),
        None => None,
    };
    if let Some(kept) = output.as_ref().and_then(Output::kept) {
        say(&format!("note: {kept}"));
    }
    let recorded = !scenario.recorded_queues().is_empty()
        || scenario.records_tcp()
        || scenario.records_siftr()
        || scenario.records_ertt();
    if recorded && output.is_none() {
        say("note: what `[record]` asks for is only written with --out DIR");
    }
    let places = output.as_ref().filter(|_| recorded || scenario.is_live()).map(Output::places);
    let aside = Aside { places: places.as_ref(), capture: args.record.as_deref() };
    let threads = match args.threads {
        // They would be in each other's way.
        _ if scenario.is_live() => 1,
        Some(threads) => threads.get().into(),
        None => execute::cores(),
    };
    if !scenario.is_live() {
        // Without it a signal ends the program as ever.
        let _ = ackclock_live::listen();
    }
    let progress = Progress::new(scenario.runs(), args.quiet);
    if scenario.is_live() && !args.quiet {
        say(&live::heading(&scenario));
    }
    let mut measures: Vec<Measures> = Vec::with_capacity(scenario.runs());
    let mut verdicts = Vec::new();
    let mut report = Report::new(&scenario);
    let mut troubles = Vec::new();
    let mut ended_early = None;
    let mut listening = true;
    let mut written = Ok(());
    let finished = execute::all(&scenario, threads, &aside, &progress, |run, done| {
        let Done { summary, records, broken_off } = done;
        let mut summary = summary.with_params(scenario.params(run));
        summary.index = run as u64;
        troubles
            .extend(live::troubles(&summary).map(|trouble| format!("{trouble} ({})", report::name_of(&scenario, run))));
        let mut json = match serde_json::to_value(&summary) {
            Ok(json) => json,
            Err(error) => {
                written = Err(anyhow::Error::from(error));
                return ControlFlow::Break(());
            }
        };
        measures.push(scenario.measure(&json));
        ended_early = broken_off.map(|why| (run, why));
        if measures.len() == scenario.runs() && ended_early.is_none() {
            // They are about all runs, and are known with the last one.
            verdicts = scenario.verdicts(&measures);
            let as_json = |verdict: &Verdict| verdict.json(scenario.params(verdict.point * scenario.repeat()));
            if !verdicts.is_empty() {
                json["expectations"] = verdicts.iter().map(as_json).collect();
            }
        }
        if args.json && listening {
            match progress.suspended(|| print(&format!("{json}\n"))) {
                Ok(reader) => listening = reader.is_continue(),
                Err(error) => {
                    written = Err(error);
                    return ControlFlow::Break(());
                }
            }
        } else if !args.json && !args.quiet {
            report.add(run, &summary);
        }
        if let Some(output) = &mut output {
            written = output.add(&json, records).context("cannot write the summary");
        }
        // Nobody reads on and nothing is kept.
        if written.is_err() || ended_early.is_some() || (!listening && output.is_none()) {
            ControlFlow::Break(())
        } else {
            ControlFlow::Continue(())
        }
    });
    progress.clear();
    let finished = match finished {
        // A run in virtual time beside live ones, or one that was to be the next.
        Err((run, Failure::Run(RunError::Interrupted) | Failure::Live(LiveError::Interrupted))) => {
            ended_early = Some((run, BrokenOff::Interrupted));
            Ok(())
        }
        // What live runs before it have measured is kept.
        Err((run, Failure::Live(error))) if run > 0 => {
            ended_early = Some((run, BrokenOff::Failed(error.into())));
            Ok(())
        }
        finished => finished,
    };
    if let Some((run, BrokenOff::Failed(error))) = &ended_early {
        say(&format!("error: {} was broken off: {error:#}", report::name_of(&scenario, *run)));
    }
    match finished {
        Ok(()) => {}
        Err((_, Failure::Output(error))) => return Err(error),
        Err((run, Failure::Run(error))) => {
            say(&format!("error: {} failed: {error}", report::name_of(&scenario, run)));
            return Ok(RUN_FAILED);
        }
        Err((_, Failure::Live(error))) => return Err(error.into()),
    }
    if ended_early.is_some() && measures.is_empty() && !scenario.is_live() {
        // There is nothing to keep, and an earlier output stays as it is.
        output = None;
    }
    // A live run cannot be repeated: what is known of it is said, whatever became of its files.
    let completed = match output {
        Some(output) if written.is_ok() => {
            output.finish(&scenario, ended_early.is_some()).context("cannot complete --out")
        }
        Some(_) => written,
        None if written.is_err() => return written.map(|()| 0),
        None if !listening => return Ok(0),
        None => Ok(()),
    };
    if !args.json && !args.quiet && !measures.is_empty() && (completed.is_ok() || scenario.is_live()) {
        let judged = ended_early.is_none().then_some(&verdicts[..]);
        let _ = print(&report.text(judged))?;
    }
    for trouble in &troubles {
        say(trouble);
    }
    match completed {
        Ok(()) => {}
        // Its input was not bad: it has run.
        Err(error) if scenario.is_live() => {
            say(&format!("error: {error:#}"));
            return Ok(RUN_FAILED);
        }
        Err(error) => return Err(error),
    }
    if let Some((run, why)) = ended_early {
        let run = report::name_of(&scenario, run);
        say(&format!("note: {run} came to no end; the results are partial, and no expectation is judged by them"));
        if !scenario.is_live() && scenario.runs() > 1 {
            let where_to = match &args.out {
                Some(dir) if !measures.is_empty() => format!(", and are kept in {}", dir.display()),
                _ => String::new(),
            };
            say(&format!("note: {} of {} runs had finished{where_to}", measures.len(), scenario.runs()));
        }
        return Ok(match why {
            BrokenOff::Interrupted => INTERRUPTED,
            BrokenOff::Failed(error) if is_damaged_capture(&error) => BAD_INPUT,
            BrokenOff::Failed(_) => RUN_FAILED,
        });
    }
    let misses = scenario.misses(&verdicts);
    for miss in &misses {
        let found = match miss.found {
            Some(found) => format!("is {}", report::number(found)),
            None => miss.reason.unwrap_or("has no value").to_owned(),
        };
        let (metric, expected) = (&miss.metric, &miss.expected);
        let place = match miss.run {
            Some(run) => report::name_of(&scenario, run),
            None => report::name_of_point(&scenario, miss.point),
        };
        say(&format!("expect missed: {metric} {found}, expected {expected} ({place})"));
    }
    Ok(if misses.is_empty() && troubles.is_empty() { 0 } else { MISSED })
}

/// Whether the capture that a run is fed with has ended it: what came before is kept, and the input
/// was bad all the same.
fn is_damaged_capture(error: &anyhow::Error) -> bool {
    matches!(error.downcast_ref(), Some(LiveError::Capture { .. }))
}
