//! `ackclock shell`: a shell or a program behind a link.
//!
//! The options become a scenario, which is run as any other live one; what is special is that a
//! command has the terminal and ends the run.

mod network;
mod text;

use std::env;
use std::fs::OpenOptions;
use std::io::{ErrorKind, Write};
use std::path::Path;
use std::sync::Arc;

use ackclock_live::{LiveError, LiveWatch, Options, Outcome};
use ackclock_run::status::{BAD_INPUT, INTERRUPTED, RUN_FAILED};
use ackclock_scenario::{LoadError, Override, Own, Scenario};
use ackclock_sim::{LOST_ON_LINK, Recorders};
use ackclock_trace::{LinkSummary, LiveHost, Summary, WatchSink};
use ackclock_watch::control::{Controls, Server};
use ackclock_watch::{BoundListener, Watch, Watching};
use anyhow::{Context, bail};

use crate::args::shell::ShellArgs;
use crate::console::{say, tell};
use crate::watched::watching;
use network::Network;

/// Base of a shell's status for a program that a signal ended.
const SIGNALLED: i32 = 128;

/// Runs the shell; the status to end with.
pub(crate) fn run(args: &ShellArgs) -> anyhow::Result<u8> {
    let wish = text::Wish::read(args)?;
    // A mistake in the options is reported before anything is tried.
    let text = text::scenario(&wish, &Network::free(wish.level)?);
    let scenario = match parse(&text, &args.set) {
        Ok(scenario) => scenario,
        Err(error) => {
            tell(&error.into());
            return Ok(BAD_INPUT);
        }
    };
    if let Some(path) = &args.save {
        save(path, &format!("{}{}", text::MADE_BY, scenario.written()))?;
    }
    ackclock_live::check_available()?;
    // The loopback interface is the machine's, whatever network comes after.
    let metrics = args.metrics.map(BoundListener::at).transpose()?;
    if !ackclock_live::is_privileged() {
        if args.internet {
            bail!("--internet requires root: nothing leads out of an ordinary user's own network");
        }
        ackclock_live::enter_own_network().context("a network of one's own requires")?;
    }
    let spec = scenario.spec(0);
    let controls = args.control.as_ref().map(|_| Controls::of(&scenario, None));
    let _server = match (&args.control, &controls) {
        (Some(path), Some(controls)) => Some(Server::listen(path, controls)?),
        _ => None,
    };
    let watching = metrics.map(|bound| watching(Watch::new(&spec, None), Some(bound), None)).transpose()?;
    let mut feed = watching.as_ref().map(Watching::feed);
    let recorders = Recorders { watch: feed.as_mut().map(|feed| feed as &mut dyn WatchSink), ..Recorders::default() };
    let options = Options {
        capture: args.record.clone(),
        snap: args.snap,
        watch: watching.as_ref().map(|watching| watching.watch() as Arc<dyn LiveWatch>),
        control: controls.as_ref().map(Controls::control),
        ..Options::default()
    };
    let Outcome { summary, broken_off } = ackclock_live::run(&spec, recorders, &options)?;
    if !args.quiet {
        report(&summary);
    }
    match broken_off {
        None => Ok(status(&summary)),
        Some(LiveError::Interrupted) => Ok(INTERRUPTED),
        Some(error) => {
            tell(&error.into());
            Ok(RUN_FAILED)
        }
    }
}

fn parse(text: &str, set: &[String]) -> Result<Scenario, LoadError> {
    let set: Vec<Override> = set.iter().map(|text| Override { flag: "--set".to_owned(), text: text.clone() }).collect();
    // Files are relative to where the shell is called.
    let here = env::current_dir().unwrap_or_default();
    Ok(Scenario::parse_in(&here, "the shell's scenario", text.as_bytes(), &set, Own::NONE)?)
}

fn save(path: &Path, text: &str) -> anyhow::Result<()> {
    let mut file = match OpenOptions::new().write(true).create_new(true).open(path) {
        Ok(file) => file,
        Err(error) if error.kind() == ErrorKind::AlreadyExists => {
            bail!("{} exists, and is not overwritten", path.display())
        }
        Err(error) => return Err(error).with_context(|| format!("cannot create {}", path.display())),
    };
    file.write_all(text.as_bytes()).with_context(|| format!("cannot write {}", path.display()))
}

/// The status of the program, as a shell gives it.
fn status(summary: &Summary<()>) -> u8 {
    let ended = summary.commands.iter().find(|command| command.id == text::SHELL);
    let status = ended.and_then(|command| command.exit.or_else(|| command.signal.map(|signal| SIGNALLED + signal)));
    status.and_then(|status| u8::try_from(status).ok()).unwrap_or(RUN_FAILED)
}

/// A line for each direction, and what makes them doubtful.
fn report(summary: &Summary<()>) {
    let Some(live) = &summary.live else { return };
    let host = |id: &str| live.hosts.iter().find(|host| host.id == id);
    for (link, name, to) in [(0, "up", text::PEER), (1, "down", text::SHELL)] {
        if let (Some(link), Some(to)) = (summary.links.get(link), host(to)) {
            say(&line(name, link, to, summary.duration_s));
        }
    }
    for command in summary.commands.iter().filter(|command| command.id == text::PEER) {
        let failed = command.error.clone().or_else(|| {
            let status = command.exit.filter(|&status| status != 0 && !command.stopped)?;
            Some(format!("exit status {status}"))
        });
        if let Some(failed) = failed {
            say(&format!("the peer's command failed: {failed}"));
        }
    }
    for why in &live.invalid {
        say(&format!("not valid: {why}"));
    }
}

/// A line about the packets of a direction.
fn line(name: &str, link: &LinkSummary, to: &LiveHost, seconds: f64) -> String {
    let bytes = to.sent_bytes as f64;
    let rate = if seconds > 0.0 { bytes * 8.0 / seconds / 1e6 } else { 0.0 };
    let lost =
        link.packets.dropped.iter().filter(|(why, _)| **why == LOST_ON_LINK).map(|(_, packets)| packets).sum::<u64>();
    let dropped = link.packets.dropped.values().sum::<u64>() - lost;
    let waited = match (link.load.sojourn_ms.quantiles.p50, link.load.sojourn_ms.quantiles.p95) {
        (Some(p50), Some(p95)) => format!("{p50:.1} ms p50, {p95:.1} ms p95 in {}", link.queue),
        _ => format!("nothing waited in {}", link.queue),
    };
    format!(
        "{:<5} {} packets, {:.2} MB, {rate:.2} Mbit/s on average; {waited}; {dropped} dropped by the queue, {lost} lost on the wire, {} marked",
        format!("{name}:"),
        to.sent_packets,
        bytes / 1e6,
        link.packets.marked
    )
}

#[cfg(test)]
mod tests {
    use std::fs;

    use clap::error::ErrorKind;
    use clap::{CommandFactory, Parser};

    use super::*;

    #[derive(clap::Parser)]
    struct Of {
        #[command(flatten)]
        shell: ShellArgs,
    }

    /// Sample values of an option, each on its own.
    fn values(option: &str, trace: &str) -> Vec<String> {
        let values: &[&str] = match option {
            "delay" => &["20ms"],
            "rate" => &["10mbit"],
            "up" => &["1mbit"],
            "queue" => &["pie,target=5ms,ecn=true"],
            "loss" => &["1%"],
            "trace" => &[trace, trace],
            "set" => &["links.link.jitter=1ms"],
            "peer" => &["printf '\"%s\\n' $HOME"],
            "save" | "record" | "control" => &["a file"],
            "snap" => &["200"],
            "metrics" => &["127.0.0.1:0"],
            "command" => &["sh", "-c", "echo \"$1\" '\u{7f}'", "a b"],
            "internet" | "quiet" => &[],
            _ => panic!("no value for --{option}"),
        };
        values.iter().map(|value| (*value).to_owned()).collect()
    }

    /// With every option and every pair of them.
    #[test]
    fn what_is_saved_is_what_runs() {
        let trace = env::temp_dir().join(format!("ackt-shell-{}.trace", std::process::id()));
        fs::write(&trace, "1\n3\n7\n").unwrap();
        let named = trace.to_str().unwrap();
        let command = Of::command();
        let options: Vec<&str> = command.get_arguments().map(|option| option.get_id().as_str()).collect();
        let network = Network::free(0).unwrap();
        let (mut different, mut refused) = (Vec::new(), 0);
        for (number, one) in options.iter().enumerate() {
            for other in &options[number..] {
                let mut line = vec!["shell".to_owned()];
                // The command is last.
                let both = if one == other { vec![one] } else { vec![one, other] };
                let (last, first): (Vec<&&str>, Vec<&&str>) =
                    both.into_iter().partition(|option| **option == "command");
                for option in first.into_iter().chain(last) {
                    line.push(if *option == "command" { "--".to_owned() } else { format!("--{option}") });
                    line.extend(values(option, named));
                }
                let args = match Of::try_parse_from(&line) {
                    Ok(of) => of.shell,
                    Err(error) => {
                        let why = [ErrorKind::ArgumentConflict, ErrorKind::MissingRequiredArgument];
                        assert!(why.contains(&error.kind()), "{line:?}: {error}");
                        refused += 1;
                        continue;
                    }
                };
                let text = text::scenario(&text::Wish::read(&args).unwrap(), &network);
                let runs = parse(&text, &args.set).unwrap_or_else(|error| panic!("{line:?}: {error}"));
                let saved = format!("{}{}", text::MADE_BY, runs.written());
                let again = parse(&saved, &[]).unwrap_or_else(|error| panic!("{line:?}: {error}\n{saved}"));
                assert!(runs.spec(0) == again.spec(0), "{line:?}\n{saved}");
                different.push(saved);
            }
        }
        fs::remove_file(&trace).unwrap();
        // --trace with --rate and --up, --internet with --peer, --snap without --record.
        let pairs = options.len() * (options.len() + 1) / 2;
        assert_eq!(refused, 3 + (options.len() - 1));
        assert_eq!(different.len(), pairs - refused);
        different.sort();
        different.dedup();
        assert!(different.len() > 40, "{}", different.len());
    }
}
