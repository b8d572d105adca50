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
use ackclock_scenario::{LoadError, Override, Own, Scenario};
use ackclock_sim::{LOST_ON_LINK, Recorders};
use ackclock_trace::{LinkSummary, LiveHost, Summary, WatchSink};
use anyhow::{Context, bail};

use crate::args::shell::ShellArgs;
use crate::control::{Controls, Server};
use crate::watch::{Bound, Watch, Watching};
use crate::{BAD_INPUT, INTERRUPTED, RUN_FAILED, say, tell};
use network::Network;

/// What a status above this says of a program in a shell: which signal ended it.
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
    let metrics = args.metrics.map(Bound::at).transpose()?;
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
    let watching = metrics.map(|bound| Watching::of(Watch::new(&spec, None), Some(bound))).transpose()?;
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

/// What happened in a direction.
fn line(name: &str, link: &LinkSummary, to: &LiveHost, seconds: f64) -> String {
    let bytes = to.sent_bytes as f64;
    let rate = if seconds > 0.0 { bytes * 8.0 / seconds / 1e6 } else { 0.0 };
    let lost = link.dropped.iter().filter(|(why, _)| **why == LOST_ON_LINK).map(|(_, packets)| packets).sum::<u64>();
    let dropped = link.dropped.values().sum::<u64>() - lost;
    let waited = match (link.sojourn_ms.quantiles.p50, link.sojourn_ms.quantiles.p95) {
        (Some(p50), Some(p95)) => format!("{p50:.1} ms p50, {p95:.1} ms p95 in {}", link.queue),
        _ => format!("nothing waited in {}", link.queue),
    };
    format!(
        "{:<5} {} packets, {:.2} MB, {rate:.2} Mbit/s on average; {waited}; {dropped} dropped by the queue, {lost} lost on the wire, {} marked",
        format!("{name}:"),
        to.sent_packets,
        bytes / 1e6,
        link.marked
    )
}
