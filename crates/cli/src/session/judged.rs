//! The expectations of a scenario, for those who report on several.

use ackclock_scenario::{Evaluation, Measures, Scenario};

use super::{Session, threads};
use crate::args::Args;
use crate::execute::BrokenOff;
use crate::{INTERRUPTED, RUN_FAILED};

/// How a scenario ended.
pub(crate) struct Judged {
    /// What became of every expectation; those of a run that failed have no value.
    pub(crate) evaluations: Vec<Evaluation>,
    /// 0, or the status of what kept it from its end, which has been said.
    pub(crate) status: u8,
}

impl Judged {
    /// Without any result.
    pub(crate) fn nothing(scenario: &Scenario, status: u8) -> Judged {
        Judged::with(scenario, Vec::new(), status)
    }

    /// With the results of some runs: the others have failed.
    fn with(scenario: &Scenario, mut measures: Vec<Option<Measures>>, status: u8) -> Judged {
        measures.resize(scenario.runs(), None);
        let all: Vec<_> = measures.into_iter().map(|run| Some(run.unwrap_or_default())).collect();
        Judged { evaluations: scenario.evaluations(&all), status }
    }
}

/// Does the runs of a scenario, and reports failures alone.
pub(crate) fn run(args: &Args, scenario: &Scenario) -> anyhow::Result<Judged> {
    let threads = threads(args, scenario)?;
    let mut session = Session::open(args, scenario)?;
    session.silent = true;
    let finished = session.execute(threads, None, None);
    if let Some(status) = session.settle(finished)? {
        return Ok(Judged::with(scenario, std::mem::take(&mut session.ledger.measures), status));
    }
    let status = match &session.ended_early {
        Some((_, BrokenOff::Interrupted)) => INTERRUPTED,
        Some((_, BrokenOff::Failed(_))) => RUN_FAILED,
        None if session.failed > 0 => RUN_FAILED,
        None => 0,
    };
    if session.ended_early.is_some() {
        if session.ledger.walk.done() == 0 {
            // There is nothing to keep, and an earlier output stays as it is.
            session.output = None;
        }
        session.complete()?;
        return Ok(Judged::nothing(scenario, status));
    }
    session.complete()?;
    Ok(Judged { evaluations: std::mem::take(&mut session.ledger.evaluations), status })
}
