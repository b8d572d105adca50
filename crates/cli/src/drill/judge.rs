//! From a script file to its result.

use std::fmt::Write;

use ackclock_packetdrill::{Defines, Outcome, ParseError, ScriptResult, Settings};
use ackclock_units::{Span, Time};
use anyhow::{Context, bail};

use super::files::{self, FoundScript};
use super::record::{Ending, Place, ScriptRecord, one_line, printable};
use crate::args::DrillArgs;

/// Lines of the trace that a failure shows.
const CONTEXT: usize = 8;

/// Runs scripts with the settings of a command line.
#[derive(Debug)]
pub(crate) struct ScriptJudge {
    settings: Settings,
    defines: Defines,
    verbose: bool,
}

impl ScriptJudge {
    pub(crate) fn new(args: &DrillArgs) -> anyhow::Result<ScriptJudge> {
        let mut settings = Settings::new();
        if let Some(name) = &args.profile {
            settings.set_profile(name).context("cannot use --profile")?;
        }
        for text in &args.set {
            let Some((key, value)) = text.split_once('=') else {
                bail!("cannot use --set {text}: expected KEY=VALUE, such as cc=reno");
            };
            settings.set(key.trim(), value).with_context(|| format!("cannot use --set {text}"))?;
        }
        if let Some(micros) = args.tolerance_usecs {
            settings.set("tolerance", &format!("{micros}us")).context("cannot use --tolerance_usecs")?;
        }
        if args.ignore_psh {
            settings.set("ignore_psh", "on").context("cannot use --ignore-psh")?;
        }
        let mut defines = Defines::new();
        for text in &args.define {
            let Some((name, value)) = text.split_once('=') else {
                bail!("cannot use --define {text}: expected NAME=VALUE");
            };
            defines.insert(name.to_owned(), value.to_owned());
        }
        Ok(ScriptJudge { settings, defines, verbose: args.verbose })
    }

    /// Reads and runs a script.
    pub(crate) fn script(&self, found: &FoundScript) -> ScriptRecord {
        let mut record = ScriptRecord {
            path: one_line(&found.path.to_string_lossy()),
            ending: Ending::Error,
            place: None,
            what: String::new(),
            report: String::new(),
            shell_lines: Vec::new(),
            left_out: Vec::new(),
            took: Span::ZERO,
        };
        match found.problem.clone().map_or_else(|| files::read(&found.path), Err) {
            Err(problem) => record.what = one_line(&problem),
            Ok(bytes) => match String::from_utf8(bytes) {
                Err(error) => not_text(&mut record, &error),
                Ok(text) => match ackclock_packetdrill::parse_for(&text, &self.defines, &self.settings) {
                    Err(error) => no_script(&mut record, &error, &text),
                    Ok(script) => {
                        record.left_out =
                            script.left_out.iter().map(|left| (left.line, one_line(&left.name))).collect();
                        self.tell(&mut record, &ackclock_packetdrill::run(&script, &self.settings));
                    }
                },
            },
        }
        record
    }

    fn tell(&self, record: &mut ScriptRecord, outcome: &Outcome) {
        let mut report = String::new();
        let (ending, line, what) = match &outcome.result {
            ScriptResult::Passed => (Ending::Passed, None, ""),
            ScriptResult::Failed(failure) => {
                for (name, text) in [("expected", &failure.expected), ("actual", &failure.actual)] {
                    if let Some(text) = text {
                        let _ = writeln!(report, "{name:>8}: {text}");
                    }
                }
                (Ending::Failed, Some(failure.line), failure.reason.as_str())
            }
            ScriptResult::Unsupported { line, what } => (Ending::Unsupported, Some(*line), what.as_str()),
            ScriptResult::Invalid { line, message } => (Ending::Error, Some(*line), message.as_str()),
        };
        let shown = match ending {
            _ if self.verbose => &outcome.trace[..],
            Ending::Failed => &outcome.trace[outcome.trace.len().saturating_sub(CONTEXT)..],
            _ => &[],
        };
        if !shown.is_empty() && !report.is_empty() {
            report.push('\n');
        }
        for line in shown {
            let _ = writeln!(report, "{line}");
        }
        record.ending = ending;
        record.place = line.map(|line| Place { line, column: None });
        record.what = one_line(what);
        record.report = printable(&report);
        record.shell_lines = outcome.unrun_shell.iter().map(|shell| shell.line).collect();
        record.took = outcome.trace.last().map_or(Span::ZERO, |line| line.time.since(Time::ZERO));
    }
}

fn no_script(record: &mut ScriptRecord, error: &ParseError, text: &str) {
    record.place = Some(Place { line: error.line, column: Some(error.column) });
    record.what = one_line(&error.title);
    // Its title is said already.
    let report = error.render(&record.path, text, false);
    record.report = printable(report.split_once('\n').map_or("", |(_, rest)| rest)) + "\n";
}

fn not_text(record: &mut ScriptRecord, error: &std::string::FromUtf8Error) {
    let good = error.utf8_error().valid_up_to();
    let before = String::from_utf8_lossy(&error.as_bytes()[..good]);
    let line = 1 + before.matches('\n').count();
    let column = 1 + before.chars().rev().take_while(|&c| c != '\n').count();
    let number = |number| u32::try_from(number).unwrap_or(u32::MAX);
    record.place = Some(Place { line: number(line), column: Some(number(column)) });
    record.what = "the file is not UTF-8".to_owned();
}
