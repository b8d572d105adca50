//! The command line of ackclock, for its binary and for programs that add their own congestion
//! controllers and queue disciplines to it.
//!
//! [`main_with`] is the whole binary; `examples/own_controller.rs` and `examples/own_queue.rs` show
//! how to add a controller and a queue discipline. The types that these need are in [`cc`], [`aqm`]
//! and [`units`].
//!
//! `args` is what a person may say, `session` carries it out step by step: `execute` runs on all
//! cores and gives summaries in order, `table` and `output` write them down. `drill` is `ackclock
//! packetdrill`, `figures` is `ackclock report`, `starter` is `ackclock new`, `control` is what
//! changes runs that go on, `watch` what shows them, and `check`, `compare`, `ctl`, `export`,
//! `list`, `merge`, `pattern`, `reproduce`, `shell`, `trace` and `verify` are the commands of these
//! names. [`batch`] is for programs that have no command line. Exit status: 0, 1 when an
//! expectation was missed, a live run is not valid or a script did not pass, 2 for bad input, 3
//! when a run failed, 130 when runs were interrupted.

mod args;
pub mod batch;
mod check;
mod compare;
mod completions;
mod control;
mod ctl;
mod drill;
mod duration;
mod execute;
mod export;
mod figures;
mod list;
mod live;
mod memory;
mod merge;
mod output;
pub mod parameters;
mod partial;
mod pattern;
mod progress;
mod report;
mod reproduce;
mod selection;
mod session;
mod shell;
mod starter;
mod table;
mod trace;
mod verify;
mod watch;

pub use ackclock_aqm as aqm;
pub use ackclock_cc as cc;
pub use ackclock_scenario::Own;
pub use ackclock_sim::spec::{OwnController, OwnQueue};
pub use ackclock_units as units;

use std::borrow::Cow;
use std::ffi::{OsStr, OsString};
use std::io::{self, BufWriter, IsTerminal, Write};
use std::ops::ControlFlow;
use std::path::Path;
use std::process::ExitCode;

use ackclock_scenario::{LoadError, nearest};
use anyhow::{Context, anyhow};
use clap::{CommandFactory, Parser};
use serde::Serialize;

use args::{Cli, Command};

/// Bytes that are written to stdout at a time.
const BUFFER: usize = 64 << 10;

const MISSED: u8 = 1;
const BAD_INPUT: u8 = 2;
const RUN_FAILED: u8 = 3;
/// As shells have it for SIGINT.
const INTERRUPTED: u8 = 130;

/// The program `ackclock`, whose scenarios may also name these congestion controllers (`cc =
/// "NAME"`) and queue disciplines (`queue = "NAME"`), in addition to the built-in ones. One
/// controller or queue discipline alone will do as well.
///
/// # Panics
/// One has no name, or one that is taken, or wrong parameters ([`Own::problem`]).
pub fn main_with(own: impl Into<Own>) -> ExitCode {
    ExitCode::from(main_from(std::env::args_os(), own))
}

/// The same with these arguments, of which the first is the program's name; the status to end with.
///
/// # Panics
/// As [`main_with`].
pub fn main_from(arguments: impl IntoIterator<Item = OsString>, own: impl Into<Own>) -> u8 {
    let own = &own.into();
    let arguments: Vec<OsString> = arguments.into_iter().collect();
    let cli = match Cli::try_parse_from(&arguments) {
        Ok(cli) => cli,
        Err(error) => match arguments.get(1).and_then(|word| no_command(word)).filter(|_| error.use_stderr()) {
            Some(mistake) => {
                tell(&anyhow!(mistake));
                return BAD_INPUT;
            }
            None => error.exit(),
        },
    };
    let ended = match (&cli.command, &cli.scenario) {
        (Some(Command::Check(args)), _) => check::run(args, own),
        (Some(Command::List(args)), _) => list::run(args),
        (Some(Command::New(args)), _) => starter::run(args),
        (Some(Command::Packetdrill(args)), _) => drill::run(args),
        (Some(Command::Ctl(args)), _) => ctl::run(args),
        (Some(Command::Compare(args)), _) => compare::run(args),
        (Some(Command::Merge(args)), _) => merge::run(args, own),
        (Some(Command::Export(args)), _) => export::run(args),
        (Some(Command::Pattern(args)), _) => pattern::run(args),
        (Some(Command::Report(args)), _) => figures::run(args),
        (Some(Command::Reproduce(args)), _) => reproduce::run(args, own),
        (Some(Command::Trace(args)), _) => trace::run(args),
        (Some(Command::Verify(args)), _) => verify::run(args, own),
        (Some(Command::Shell(args)), _) => shell::run(args),
        (Some(Command::Schema(_)), _) => completions::schema(),
        (Some(Command::Completions(args)), _) => completions::completions(args),
        (Some(Command::Man(args)), _) => completions::man(args),
        (None, Some(args)) => session::run(args, own),
        (None, None) => Err(anyhow!("nothing to do: a scenario or a command is missing")),
    };
    match ended {
        Ok(status) => status,
        Err(error) => {
            tell(&error);
            BAD_INPUT
        }
    }
}

/// A first word that is neither a command nor a path, with the command that it may stand for.
fn no_command(word: &OsStr) -> Option<String> {
    let word = word.to_str().filter(|word| !word.starts_with('-') && !word.contains(['.', '/']))?;
    let commands = Cli::command();
    let near = nearest(word, commands.get_subcommands().map(clap::Command::get_name)).filter(|near| *near != word)?;
    (!Path::new(word).exists()).then(|| format!("no command `{word}`; did you mean `{near}`?"))
}

/// Writes an error to stderr.
fn tell(error: &anyhow::Error) {
    match error.downcast_ref::<LoadError>() {
        // It has its own layout, and styles.
        Some(LoadError::Scenario(error)) => {
            let styled = io::stderr().is_terminal() && std::env::var_os("NO_COLOR").is_none();
            let _ = writeln!(io::stderr().lock(), "{}", error.render(styled));
        }
        _ => say(&format!("error: {error:#}")),
    }
}

/// Writes a line to stderr; there is nobody to tell if that fails.
fn say(line: &str) {
    let _ = writeln!(io::stderr().lock(), "{}", printable(line));
}

/// The text with control characters as escapes, which a terminal would obey; lines stay lines.
fn printable(text: &str) -> Cow<'_, str> {
    escaped(text, |_| false)
}

/// The same, with other characters as escapes too.
fn escaped(text: &str, others: impl Fn(char) -> bool) -> Cow<'_, str> {
    let is_plain = |c: char| matches!(c, '\n' | '\t') || !(c.is_control() || others(c));
    if text.chars().all(is_plain) {
        return Cow::Borrowed(text);
    }
    let mut out = String::with_capacity(text.len());
    for c in text.chars() {
        if is_plain(c) { out.push(c) } else { out.extend(c.escape_default()) }
    }
    Cow::Owned(out)
}

/// Writes to stdout. A reader that has left breaks off what only it would have seen; anything else,
/// such as a full disk, is an error: what is there is not complete.
fn print(text: &str) -> anyhow::Result<ControlFlow<()>> {
    print_with(|out| out.write_all(printable(text).as_bytes()))
}

/// Writes a value to stdout as a line of JSON, as [`print`] does.
fn print_line(value: &impl Serialize) -> anyhow::Result<ControlFlow<()>> {
    print_with(|out| {
        serde_json::to_writer(&mut *out, value)?;
        out.write_all(b"\n")
    })
}

fn print_with(write: impl FnOnce(&mut dyn Write) -> io::Result<()>) -> anyhow::Result<ControlFlow<()>> {
    let mut out = BufWriter::with_capacity(BUFFER, io::stdout().lock());
    match write(&mut out).and_then(|()| out.flush()) {
        Ok(()) => Ok(ControlFlow::Continue(())),
        Err(error) if error.kind() == io::ErrorKind::BrokenPipe => Ok(ControlFlow::Break(())),
        Err(error) => Err(error).context("cannot write to standard output"),
    }
}
