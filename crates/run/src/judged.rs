//! The expectations of a scenario, for those who report on several.

use ackclock_scenario::{Evaluation, Measures, Scenario};

use crate::execute::BrokenOff;
use crate::progress::Progress;
use crate::session::{Listener, Session};
use crate::status::{INTERRUPTED, RUN_FAILED};

/// The judgment of a scenario.
#[derive(Debug)]
pub struct Judged {
    /// The outcome of every expectation; those of a run that failed have no value.
    pub evaluations: Vec<Evaluation>,
    /// 0, or the status of what kept it from its end, which has been said.
    pub status: u8,
}

impl Judged {
    /// A judgment without any result.
    pub fn nothing(scenario: &Scenario, status: u8) -> Judged {
        Judged::with(scenario, Vec::new(), status)
    }

    /// With the results of some runs: the others have failed.
    fn with(scenario: &Scenario, mut measures: Vec<Option<Measures>>, status: u8) -> Judged {
        measures.resize(scenario.runs(), None);
        let all: Vec<_> = measures.into_iter().map(|run| Some(run.unwrap_or_default())).collect();
        Judged { evaluations: scenario.evaluations(&all), status }
    }
}

/// Does the runs of a session, so many at the same time.
///
/// # Errors
/// They cannot begin, or their results cannot be written.
pub fn run<L: Listener>(
    mut session: Session<'_, L>,
    threads: usize,
    progress: &dyn Progress,
) -> anyhow::Result<Judged> {
    let scenario = session.scenario;
    let finished = session.execute(threads, None, progress);
    if let Some(status) = session.settle(finished)? {
        return Ok(Judged::with(scenario, std::mem::take(&mut session.ledger.measures), status));
    }
    let status = match &session.ended_early {
        Some((_, BrokenOff::Interrupted)) => INTERRUPTED,
        Some((_, BrokenOff::Failed(_))) => RUN_FAILED,
        None if session.failed > 0 => RUN_FAILED,
        None => 0,
    };
    session.drop_nothing();
    session.complete()?;
    if session.ended_early.is_some() {
        return Ok(Judged::nothing(scenario, status));
    }
    Ok(Judged { evaluations: std::mem::take(&mut session.ledger.evaluations), status })
}
