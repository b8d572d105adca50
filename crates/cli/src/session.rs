//! A scenario from its file to the exit status: its runs, what is reported of them, and what is
//! kept.

use ackclock_live::LiveError;
use ackclock_run::execute::BrokenOff;
use ackclock_run::pilot::PilotPlan;
use ackclock_run::selection::Selection;
use ackclock_run::session::{Listener, Session, at_most};
use ackclock_run::status::{BAD_INPUT, INTERRUPTED, MISSED, RUN_FAILED};
use ackclock_run::{changes, names};
use ackclock_scenario::{Miss, Own, Scenario};
#[cfg(unix)]
use nix::sys::resource::{Resource, getrlimit, setrlimit};

use crate::args::Args;
use crate::bar::Bar;
use crate::console::{print, say};
use crate::input::{check_capture, check_live, load};
use crate::shown::{Shown, Wish};
use crate::watched::{self, Company};
use crate::{duration, live, report};

/// Carries out what the command line asks of a scenario. Returns the exit status.
pub(crate) fn run(args: &Args, own: &Own) -> anyhow::Result<u8> {
    let scenario = load(args, own)?;
    if args.show_config {
        let _ = print(&scenario.resolved())?;
        return Ok(0);
    }
    check_capture(args, &scenario)?;
    watched::check_options(args, &scenario)?;
    check_live(&scenario)?;
    let changes = args.changes.as_deref().map(changes::read).transpose()?;
    let plan = PilotPlan::read(&scenario, changes.as_deref().unwrap_or_default())?;
    for note in scenario.notes() {
        say(&format!("note: {note}"));
    }
    let wanted = args.wanted();
    let (threads, note) = wanted.threads(&scenario)?;
    note.iter().for_each(|note| say(note));
    // Programs of a live run have the limit that they would have anyway.
    if !scenario.is_live() {
        raise_file_limit();
    }
    let watching = watched::check(args, &scenario)?;
    let wish = Wish {
        json: args.json,
        tables: !args.json && !args.quiet,
        columns: &args.columns,
        all_rows: args.all_rows,
        expectations: args.expectations,
        out: args.out.as_deref(),
    };
    let runs = Selection::of(&scenario, wanted.only.as_ref(), wanted.shard)?;
    let mut session = Session::open(&wanted, &scenario, Shown::new(wish, &scenario, &runs)?)?;
    say_notes(&session);
    if let Some(note) = duration::note(&session.ledger.walk, threads) {
        say(&note);
    }
    session.plan = plan;
    let company = Company::of(args, &scenario, watching)?;
    // Before there is a bar, which would be on the same line.
    if scenario.is_live() && !args.quiet {
        say(&live::heading(&scenario, args.out.is_some()));
    }
    let bar = Bar::new(session.ledger.walk.left(), args.quiet || args.watch);
    session.listener.beside(&bar);
    let finished = session.execute(threads, company.as_ref().map(|company| company as _), &bar);
    drop(company);
    match session.settle(finished)? {
        Some(status) => Ok(status),
        None => finish(session),
    }
}

/// Lets this process have as many open files as it may: captures are one each.
fn raise_file_limit() {
    #[cfg(unix)]
    if let Ok((_, most)) = getrlimit(Resource::RLIMIT_NOFILE) {
        let _ = setrlimit(Resource::RLIMIT_NOFILE, most, most);
    }
}

/// Says what the results will lack.
fn say_notes(session: &Session<'_, Shown<'_>>) {
    let scenario = session.scenario;
    if scenario.records_anything() && session.output.is_none() {
        say("note: the files that `[record]` asks for are only written with --out DIR");
    }
    if !session.ledger.is_whole && scenario.expectations() > 0 {
        let merge = if session.wanted.shard.is_some() { "; `ackclock merge` does" } else { "" };
        say(&format!("note: a part of the runs does not evaluate expectations{merge}"));
    }
}

/// Completes the output and reports the results. Returns the exit status.
pub(crate) fn finish(mut session: Session<'_, Shown<'_>>) -> anyhow::Result<u8> {
    let live = session.scenario.is_live();
    if !live {
        session.drop_nothing();
    }
    if session.output.is_none() {
        session.written()?;
        if !session.listener.listens() {
            return Ok(0);
        }
    }
    // A live run cannot be repeated: its results are reported, whatever became of its files.
    let completed = session.complete();
    if completed.is_ok() || live {
        show(&mut session)?;
    }
    for trouble in &session.troubles {
        say(trouble);
    }
    if session.ledger.is_whole {
        report::unsettled(session.scenario, &session.ledger.measures).iter().for_each(|note| say(note));
    }
    match completed {
        Ok(()) => {}
        // Its input was not bad: it has run.
        Err(error) if live => {
            say(&format!("error: {error:#}"));
            return Ok(RUN_FAILED);
        }
        Err(error) => return Err(error),
    }
    Ok(match &session.ended_early {
        Some((run, why)) => partial(&session, *run, why),
        None => status(&session),
    })
}

/// Prints the report, if it is wanted and there is anything in it.
fn show(session: &mut Session<'_, Shown<'_>>) -> anyhow::Result<()> {
    let wish = session.listener.wish;
    if wish.tables && session.ledger.walk.done() > 0 {
        let whole = session.ended_early.is_none() && session.ledger.is_whole;
        let mut text = session.listener.report.text();
        if whole {
            let well = session.failed == 0 && session.troubles.is_empty();
            text += &report::ending(wish.out, wish.expectations, session.scenario, &session.ledger.evaluations, well);
        }
        let _ = print(&text)?;
    }
    Ok(())
}

/// The exit status after a run that came to no end, with notes about what is left.
fn partial(session: &Session<'_, Shown<'_>>, run: usize, why: &BrokenOff) -> u8 {
    let scenario = session.scenario;
    let run = names::of_run(scenario, run);
    say(&format!("note: {run} was not completed; the results are partial, and expectations are not evaluated"));
    if !scenario.is_live() && scenario.runs() > 1 {
        let where_to = match &session.wanted.out {
            Some(dir) if session.ledger.walk.done() > 0 => {
                format!(", and are kept in {}; --resume goes on with the others", dir.display())
            }
            _ => String::new(),
        };
        let done = session.ledger.walk.done();
        let of = at_most(scenario, session.ledger.walk.all());
        say(&format!("note: {done} of {of} runs had finished{where_to}"));
    }
    match why {
        BrokenOff::Interrupted => INTERRUPTED,
        BrokenOff::Failed(error) if is_damaged_capture(error) => BAD_INPUT,
        BrokenOff::Failed(_) => RUN_FAILED,
    }
}

/// The exit status after all runs, with the expectations that were missed.
fn status(session: &Session<'_, Shown<'_>>) -> u8 {
    let misses = session.scenario.misses(&session.ledger.evaluations);
    for miss in &misses {
        say(&missed(session.scenario, miss));
    }
    match (session.failed, misses.is_empty() && session.troubles.is_empty()) {
        (0, true) => 0,
        (0, false) => MISSED,
        (failed, _) => {
            say(&format!("error: {failed} of {} runs failed", session.ledger.walk.done()));
            RUN_FAILED
        }
    }
}

fn missed(scenario: &Scenario, miss: &Miss) -> String {
    let found = match miss.found {
        Some(found) => format!("is {}", report::number(found)),
        None => miss.reason.unwrap_or("has no value").to_owned(),
    };
    let (metric, expected) = (&miss.metric, &miss.expected);
    let place = match miss.run {
        Some(run) => names::of_run(scenario, run),
        None => names::of_point(scenario, miss.point),
    };
    format!("expect missed: {metric} {found}, expected {expected} ({place})")
}

/// Returns `true` if a damaged capture has ended the run that it feeds: earlier results are kept,
/// and the input was bad all the same.
fn is_damaged_capture(error: &anyhow::Error) -> bool {
    matches!(error.downcast_ref(), Some(LiveError::Capture { .. }))
}
