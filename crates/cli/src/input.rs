//! The input of a session.

use ackclock_scenario::{LoadError, Override, Own, Scenario};
use ackclock_sim::spec::{Clock, LiveSpec};
use anyhow::{anyhow, bail};

use crate::args::{Args, no_command};
use crate::check;

/// The scenario, with everything that the command line overrides.
pub(crate) fn load(args: &Args, own: &Own) -> anyhow::Result<Scenario> {
    let mut overrides: Vec<Override> =
        args.set.iter().map(|text| Override { flag: "--set".to_owned(), text: text.clone() }).collect();
    if let Some(seed) = args.seed {
        overrides.push(Override { flag: "--seed".to_owned(), text: format!("run.seed={seed}") });
    }
    if let Some(clock) = &args.clock {
        overrides.push(Override { flag: "--clock".to_owned(), text: format!("run.clock={clock}") });
    }
    check::load(args.path(), &overrides, own).map_err(|error| {
        // A misspelt command is taken for a file.
        let mistake = args.file.as_ref().and_then(|file| no_command(file.as_os_str()));
        match (&error, mistake) {
            (LoadError::Read { .. }, Some(mistake)) => anyhow!(mistake),
            _ => error.into(),
        }
    })
}

/// A live run requires a build that has them.
pub(crate) fn check_live(scenario: &Scenario) -> anyhow::Result<()> {
    if scenario.is_live() {
        ackclock_live::check_available()?;
    }
    Ok(())
}

/// A capture is of one run that is live or has hosts with stacks.
pub(crate) fn check_capture(args: &Args, scenario: &Scenario) -> anyhow::Result<()> {
    let is_replay = |live: &LiveSpec| matches!(live.clock, Clock::Replay(_));
    let has_bytes = || scenario.spec(0).live.is_some_and(|live| !is_replay(&live));
    match (&args.record, scenario.runs()) {
        (None, _) => Ok(()),
        _ if !has_bytes() => {
            bail!("--record requires a live run (hosts with devices, and the clock `live`), or hosts with a `stack`")
        }
        (Some(_), 1) => Ok(()),
        (Some(_), runs) => bail!("--record requires a single run, and the scenario has {runs}"),
    }
}
