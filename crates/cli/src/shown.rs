//! The listener of a session's runs: tables, lines of JSON, or errors alone.

use std::path::Path;

use ackclock_run::result::{RunResult, Stored};
use ackclock_run::selection::Selection;
use ackclock_run::session::Listener;
use ackclock_scenario::Scenario;

use crate::bar::Bar;
use crate::console::{print, print_line, say};
use crate::report::{Report, ReportColumns};

/// The results to show.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Wish<'a> {
    /// `true` for lines of JSON.
    pub(crate) json: bool,
    /// `true` for tables.
    pub(crate) tables: bool,
    /// The columns of the only table, if any were asked for.
    pub(crate) columns: &'a [String],
    /// `true` for all points of a sweep, however many there are.
    pub(crate) all_rows: bool,
    /// `true` for a table of all expectations.
    pub(crate) expectations: bool,
    /// The directory with the results.
    pub(crate) out: Option<&'a Path>,
}

/// Shows results as they come.
pub(crate) struct Shown<'a> {
    pub(crate) wish: Wish<'a>,
    pub(crate) report: Report<'a>,
    /// `true` while somebody reads standard output.
    listening: bool,
    sayer: Sayer,
}

impl<'a> Shown<'a> {
    /// For these runs of a scenario.
    pub(crate) fn new(wish: Wish<'a>, scenario: &'a Scenario, runs: &Selection) -> anyhow::Result<Shown<'a>> {
        let report =
            Report::new(scenario, ReportColumns::read(wish.columns, scenario)?, (!wish.all_rows).then(|| runs.clone()));
        Ok(Shown { wish, report, listening: true, sayer: Sayer::default() })
    }

    /// From now on there is a bar on the terminal.
    pub(crate) fn beside(&mut self, bar: &Bar) {
        self.sayer = Sayer::beside(bar);
    }

    fn add(&mut self, run: usize, result: Result<&Summary, &str>) {
        match result {
            _ if !self.wish.tables => {}
            Ok(summary) => self.report.add(run, summary),
            Err(_) => self.report.fail(run),
        }
    }
}

type Summary = ackclock_trace::Summary<serde_json::Map<String, serde_json::Value>>;

impl Listener for Shown<'_> {
    fn say(&self, sentence: &str) {
        self.sayer.say(sentence);
    }

    fn result(&mut self, run: usize, result: &RunResult<'_>) -> anyhow::Result<()> {
        if self.wish.json && self.listening {
            self.listening = self.sayer.suspended(|| print_line(result))?.is_continue();
        }
        self.add(run, result.error.map_or(Ok(result.summary), Err));
        Ok(())
    }

    fn earlier(&mut self, run: usize, stored: &Stored, line: &str) -> anyhow::Result<()> {
        self.add(run, stored.error().map_or(Ok(&stored.summary), Err));
        if self.wish.json && self.listening {
            self.listening = print(&format!("{line}\n"))?.is_continue();
        }
        Ok(())
    }

    fn listens(&self) -> bool {
        self.listening
    }
}

/// Says what a person ought to know, and shows no results.
#[derive(Debug, Default)]
pub(crate) struct Sayer(Option<Bar>);

impl Sayer {
    pub(crate) fn beside(bar: &Bar) -> Sayer {
        Sayer(Some(bar.clone()))
    }

    fn suspended<T>(&self, work: impl FnOnce() -> T) -> T {
        match &self.0 {
            Some(bar) => bar.suspended(work),
            None => work(),
        }
    }
}

impl Listener for Sayer {
    fn say(&self, sentence: &str) {
        self.suspended(|| say(sentence));
    }
}
