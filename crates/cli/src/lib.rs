//! The command line of ackclock, for its binary and for programs that add their own congestion
//! controllers and queue disciplines to it.
//!
//! [`main_with`] is the whole binary; `examples/own_controller.rs` and `examples/own_queue.rs` show
//! how to add a controller and a queue discipline. The types that these need are in [`cc`], [`aqm`]
//! and [`units`].
//!
//! `args` is what a person may say, `session` carries it out: [`ackclock_run`] does the runs, `shown`
//! hears of them, `report` and `table` write them down, `watched` joins [`ackclock_watch`] to a run
//! that goes on. `drill` is `ackclock packetdrill`, `figures` is `ackclock report`, `starter` is
//! `ackclock new`, and `check`, `compare`, `ctl`, `export`, `import`, `list`, `merge`, `pattern`, `reproduce`,
//! `shell`, `trace` and `verify` are the commands of these names. [`batch`] is for programs that
//! have no command line. Exit status: 0, 1 when an expectation was missed, a live run is not valid
//! or a script did not pass, 2 for bad input, 3 when a run failed, 130 when runs were interrupted.

mod args;
mod bar;
mod check;
mod compare;
mod completions;
mod console;
mod ctl;
mod drill;
mod duration;
mod export;
mod figures;
mod import;
mod input;
mod list;
mod live;
mod merge;
mod pattern;
mod report;
mod reproduce;
mod session;
mod shell;
mod shown;
mod starter;
mod table;
mod trace;
mod verify;
mod watched;

pub use ackclock_aqm as aqm;
pub use ackclock_cc as cc;
pub use ackclock_run::{batch, parameters};
pub use ackclock_scenario::Own;
pub use ackclock_sim::spec::{OwnController, OwnQueue, OwnStack};
pub use ackclock_stack as stack;
pub use ackclock_units as units;

use std::ffi::OsString;
use std::process::ExitCode;

use ackclock_run::status::BAD_INPUT;
use anyhow::anyhow;
use clap::Parser;

use args::{Cli, Command, no_command};
use console::tell;

/// The network stacks that this build brings: those of QUIC with the feature `quic`, and a Linux
/// kernel with the feature `kernel`. A program adds its own.
pub fn built_in() -> Own {
    let own = Own::new();
    #[cfg(feature = "quic")]
    let own = ackclock_quic::stacks().into_iter().fold(own, Own::stack);
    #[cfg(feature = "kernel")]
    let own = ackclock_uml::stacks().into_iter().fold(own, Own::stack);
    own
}

/// The program `ackclock`, whose scenarios may also name these congestion controllers (`cc =
/// "NAME"`), queue disciplines (`queue = "NAME"`) and network stacks of hosts (`stack = "NAME"`), in
/// addition to the built-in ones. A single one will do as well.
///
/// # Panics
/// One has no name, or one that is taken, or wrong parameters ([`Own::problem`]).
pub fn main_with(own: impl Into<Own>) -> ExitCode {
    ExitCode::from(main_from(std::env::args_os(), own))
}

/// Runs the program with these arguments, of which the first is its name; returns the status to end
/// with.
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
        (Some(Command::List(args)), _) => list::run(args, own),
        (Some(Command::New(args)), _) => starter::run(args),
        (Some(Command::Packetdrill(args)), _) => drill::run(args),
        (Some(Command::Ctl(args)), _) => ctl::run(args),
        (Some(Command::Compare(args)), _) => compare::run(args, own),
        (Some(Command::Merge(args)), _) => merge::run(args, own),
        (Some(Command::Export(args)), _) => export::run(args, own),
        (Some(Command::Import(args)), _) => import::run(args),
        (Some(Command::Pattern(args)), _) => pattern::run(args),
        (Some(Command::Report(args)), _) => figures::run(args),
        (Some(Command::Reproduce(args)), _) => reproduce::run(args, own),
        (Some(Command::Trace(args)), _) => trace::run(args),
        (Some(Command::Verify(args)), _) => verify::run(args, own),
        (Some(Command::Shell(args)), _) => shell::run(args),
        (Some(Command::Schema(_)), _) => completions::schema(own),
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
