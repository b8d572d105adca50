//! Drawn scenarios as a strategy of proptest's: what fails shrinks by sections, keys and the length
//! of the run.

use proptest::prelude::Rng;
use proptest::strategy::{NewTree, Strategy, ValueTree};
use proptest::test_runner::TestRunner;

use crate::physics::document::{Document, Value};
use crate::physics::draw;

/// Scenarios over all keys.
#[derive(Debug)]
pub(crate) struct Scenarios;

impl Strategy for Scenarios {
    type Tree = Tree;
    type Value = Case;

    fn new_tree(&self, runner: &mut TestRunner) -> NewTree<Scenarios> {
        let seed = runner.rng().next_u64();
        let case = Case { seed, document: draw::scenario(seed) };
        Ok(Tree { failing: case.clone(), trial: case, next: 0, shrunk: false })
    }
}

/// A scenario with the seed that it was drawn from.
#[derive(Clone, Debug)]
pub(crate) struct Case {
    pub seed: u64,
    pub document: Document,
}

/// A scenario that shrinks.
#[derive(Debug)]
pub(crate) struct Tree {
    /// The smallest that is known to fail.
    failing: Case,
    /// The one that is tried.
    trial: Case,
    /// The number of the next change.
    next: usize,
    /// `true` if a change of this round has made it smaller.
    shrunk: bool,
}

impl Tree {
    /// Tries the next change that leaves a scenario. After a round that made it smaller there is
    /// another one.
    fn advance(&mut self) -> bool {
        loop {
            let changes = changes(&self.failing.document);
            if let Some(change) = changes.into_iter().nth(self.next) {
                self.next += 1;
                if change != self.failing.document && draw::is_good(&change.text()) {
                    self.trial.document = change;
                    return true;
                }
            } else if std::mem::take(&mut self.shrunk) {
                self.next = 0;
            } else {
                self.trial = self.failing.clone();
                return false;
            }
        }
    }
}

impl ValueTree for Tree {
    type Value = Case;

    fn current(&self) -> Case {
        self.trial.clone()
    }

    /// The trial failed.
    fn simplify(&mut self) -> bool {
        if self.trial.document != self.failing.document {
            self.failing = self.trial.clone();
            self.shrunk = true;
            self.next = self.next.saturating_sub(1);
        }
        self.advance()
    }

    /// Moves on after a trial that passed.
    fn complicate(&mut self) -> bool {
        self.advance()
    }
}

/// Everything that could make a scenario smaller, the largest steps first.
fn changes(document: &Document) -> Vec<Document> {
    let sections = document.sections.iter().skip(2);
    let mut changes: Vec<Document> = sections.map(|section| document.without_section(&section.path)).collect();
    for (index, section) in document.sections.iter().enumerate().skip(2) {
        let half = section.entries.len() / 2;
        for range in [half..section.entries.len(), 1..half] {
            if range.len() > 1 {
                let mut less = document.clone();
                less.sections[index].entries.drain(range);
                changes.push(less);
            }
        }
    }
    for section in &document.sections {
        for (key, value) in &section.entries {
            let path = if section.path.is_empty() { key.clone() } else { format!("{}.{key}", section.path) };
            changes.push(document.without(&path));
            if let Value::Text(text) = value {
                changes.extend(simpler(text).map(|text| {
                    let mut simpler = document.clone();
                    simpler.put(&path, text);
                    simpler
                }));
            }
        }
    }
    changes
}

/// A rounder or smaller value.
fn simpler(text: &str) -> Option<String> {
    if let Some(items) = text.strip_prefix('[') {
        // A path with a link less.
        let (_, rest) = items.split_once(", ")?;
        return Some(format!("[{rest}"));
    }
    let inner = text.trim_matches('"');
    let digits = inner.len() - inner.trim_start_matches(|c: char| c.is_ascii_digit()).len();
    let (number, unit) = inner.split_at(digits);
    let number: u64 = number.parse().ok()?;
    if !["ns", "bit", "B", "p"].contains(&unit) {
        return None;
    }
    let magnitude = 10u64.pow(number.checked_ilog10()?);
    let rounder = match number / magnitude * magnitude {
        same if same == number && unit != "bit" => number / 2,
        rounder => rounder,
    };
    (rounder > 0 && rounder != number).then(|| format!("\"{rounder}{unit}\""))
}
