//! The only run of a scenario, which is watched or changed while it goes on.

use std::sync::Arc;

use ackclock_live::{Control, LiveWatch};
use ackclock_run::attendant::{Attendant, Pace};
use ackclock_scenario::Scenario;
use ackclock_sim::spec::Clock;
use ackclock_trace::WatchSink;
use ackclock_watch::control::{Controls, Server, Speed};
use ackclock_watch::{BoundListener, Watch, Watching, check_terminal};
use anyhow::bail;

use crate::args::Args;
use crate::console::say;

/// By what a run is to be watched; by nothing by default.
#[derive(Debug, Default)]
pub(crate) struct Wish {
    dashboard: bool,
    metrics: Option<BoundListener>,
}

/// Checks that the run can be watched as the command line asks for, before anything runs.
///
/// # Errors
/// There is more than one run, a replay, no terminal, or the address cannot be had.
pub(crate) fn check(args: &Args, scenario: &Scenario) -> anyhow::Result<Wish> {
    let flag = match (args.watch, args.metrics) {
        (true, _) => "--watch",
        (false, Some(_)) => "--metrics",
        (false, None) => return Ok(Wish::default()),
    };
    if scenario.runs() != 1 {
        bail!("{flag} requires a single run, and the scenario has {}", scenario.runs());
    }
    if args.watch {
        if scenario.spec(0).live.is_some_and(|live| live.clock != Clock::Real) {
            bail!("--watch is not for a replay, which goes as fast as it can");
        }
        check_terminal()?;
    }
    Ok(Wish { dashboard: args.watch, metrics: args.metrics.map(BoundListener::at).transpose()? })
}

/// Checks that what the command line asks for about changes fits the scenario.
///
/// # Errors
/// It does not.
pub(crate) fn check_options(args: &Args, scenario: &Scenario) -> anyhow::Result<()> {
    let asked = [
        ("--control", args.control.is_some()),
        ("--speed", args.speed.is_some()),
        ("--changes", args.changes.is_some()),
    ];
    let Some((option, _)) = asked.iter().find(|(_, asked)| *asked) else { return Ok(()) };
    if scenario.runs() != 1 {
        bail!("{option} requires a single run, and the scenario has {}", scenario.runs());
    }
    let live = scenario.spec(0).live;
    match live.as_deref().map(|live| &live.clock) {
        None => Ok(()),
        Some(Clock::Replay(_)) => {
            bail!("{option} is not for a replay, which makes the changes of the recorded run")
        }
        Some(Clock::Virtual) => bail!("{option} is not for hosts with stacks of their own"),
        Some(Clock::Real) if args.speed.is_some() => bail!("--speed requires the virtual clock"),
        Some(Clock::Real) if args.changes.is_some() => {
            bail!("--changes requires the virtual clock; `run.replay` makes the changes of a live run")
        }
        Some(Clock::Real) => Ok(()),
    }
}

/// The companions of a run.
pub(crate) struct Company {
    controls: Option<Controls>,
    watching: Option<Watching>,
    /// Answers as long as it is there.
    _server: Option<Server>,
}

impl Company {
    /// The companions that the command line asks for; `None` if it asks for none.
    ///
    /// # Errors
    /// There is no further thread, or no place for the socket.
    pub(crate) fn of(args: &Args, scenario: &Scenario, wish: Wish) -> anyhow::Result<Option<Company>> {
        let Wish { dashboard, metrics } = wish;
        // Nobody can watch a run that is over before it is seen.
        let speed = args.speed.or((dashboard && !scenario.is_live()).then_some(Speed::ONE));
        let wanted = dashboard || args.control.is_some() || speed.is_some();
        let controls = wanted.then(|| Controls::of(scenario, speed));
        let server = match (&args.control, &controls) {
            (Some(path), Some(controls)) => Some(Server::listen(path, controls)?),
            _ => None,
        };
        let watching = if dashboard || metrics.is_some() {
            let watch = Watch::new(&scenario.spec(0), controls.as_ref().and_then(Controls::pace));
            Some(watching(watch, metrics, controls.clone().filter(|_| dashboard))?)
        } else {
            None
        };
        let is_any = controls.is_some() || watching.is_some();
        Ok(is_any.then_some(Company { controls, watching, _server: server }))
    }
}

/// A run that is watched, with a note on where its metrics are.
///
/// # Errors
/// There is no further thread.
pub(crate) fn watching(
    watch: Watch,
    metrics: Option<BoundListener>,
    dashboard: Option<Controls>,
) -> anyhow::Result<Watching> {
    let watching = Watching::of(watch, metrics, dashboard)?;
    if let Some(address) = watching.address() {
        say(&format!("note: metrics are at http://{address}/metrics"));
    }
    Ok(watching)
}

impl Attendant for Company {
    fn feed(&self) -> Option<Box<dyn WatchSink>> {
        self.watching.as_ref().map(|watching| Box::new(watching.feed()) as Box<dyn WatchSink>)
    }

    fn watch(&self) -> Option<Arc<dyn LiveWatch>> {
        self.watching.as_ref().map(|watching| watching.watch() as Arc<dyn LiveWatch>)
    }

    fn control(&self) -> Option<Control> {
        self.controls.as_ref().map(Controls::control)
    }

    fn pace(&self) -> Option<Pace<'_>> {
        self.controls.as_ref().map(|controls| Box::new(controls.pacer()) as Pace<'_>)
    }

    fn during(&self, run: &mut dyn FnMut()) {
        match &self.watching {
            Some(watching) => watching.during(run, say),
            None => run(),
        }
    }
}
