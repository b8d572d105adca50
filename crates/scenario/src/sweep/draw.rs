//! The points of a sample: what is drawn for each, what follows from it, and which are kept.

use ackclock_units::Random;

use super::axes::{Axis, Reader, Values};
use super::condition::{Written, found, written};
use super::expression::FoundValue;
use super::names::Choice;
use super::range::{Drawn, Range, parts};
use crate::document::{Entry, Node};
use crate::overrides::Path;
use crate::report::Diagnostic;

/// Sampling ends if fewer draws than one in so many meet the condition.
const FEWEST: usize = 1000;

/// The fewest kept draws from which this share is concluded.
const ENOUGH: usize = 100;

/// An axis whose values come one by one.
pub(super) struct AxisColumn<'n> {
    pub(super) entry: &'n Entry,
    pub(super) paths: Vec<Path>,
    pub(super) before: Vec<Choice>,
    pub(super) drawn: Drawn,
    pub(super) source: DrawSource<'n>,
}

/// Where they come from.
pub(super) enum DrawSource<'n> {
    Random(Random),
    Expression(Written<'n>),
    /// One value.
    Constant,
}

impl AxisColumn<'_> {
    fn axis(mut self, parts: Vec<f64>, group: usize) -> Axis {
        let (name, place) = (self.entry.key.clone(), self.entry.key_place.clone());
        self.drawn.parts = parts;
        let values = Values::Drawn(self.drawn);
        Axis { name, paths: self.paths, place, values, before: self.before, group }
    }
}

impl Reader<'_> {
    /// Reads what is derived from these columns, and adds it to them. `None` if it is wrong, which
    /// is reported.
    pub(super) fn derived<'n>(&self, node: &'n Node, columns: &mut Vec<AxisColumn<'n>>) -> Option<()> {
        let Some(table) = node.table().filter(|table| !table.0.is_empty()) else {
            let error = Diagnostic::new("sweep.sample.derive: not a table with paths", &node.place, "found here");
            let expected = "expected paths with expressions: derive.\"links.a.queue.max\" = \"3 * queue.min\"";
            self.cx.report.push(error.note(expected));
            return None;
        };
        for entry in &table.0 {
            let names: Vec<&str> = columns.iter().map(|column| column.entry.key.as_str()).collect();
            let (paths, pin) = self.resolve(&entry.key, &entry.key_place)?;
            // In brackets is what an argument has set.
            let constant = match entry.node.array() {
                Some([constant]) => Some(constant.clone()),
                _ => None,
            };
            let source = match constant {
                Some(_) => DrawSource::Constant,
                None => {
                    let key = format!("sweep.sample.derive.\"{}\"", entry.key);
                    let written = self.expression(key, &entry.node, &names)?;
                    if pin.is_some() { DrawSource::Constant } else { DrawSource::Expression(written) }
                }
            };
            let drawn = Drawn::derived(pin.or(constant), entry.node.place.clone());
            columns.push(AxisColumn { entry, paths, before: Vec::new(), drawn, source });
        }
        Some(())
    }

    /// Draws so many points, those that meet the condition, as axes of a group. The note says how
    /// many did not.
    pub(super) fn draw(
        &self,
        (latin, points, group): (bool, usize, usize),
        mut columns: Vec<AxisColumn<'_>>,
        condition: Option<&Written<'_>>,
    ) -> Option<(Vec<Axis>, Option<String>)> {
        let mut kept: Vec<Vec<f64>> = columns.iter().map(|_| Vec::with_capacity(points)).collect();
        let (mut draws, mut count) = (0usize, 0);
        let is_plain =
            condition.is_none() && columns.iter().all(|column| matches!(column.source, DrawSource::Random(_)));
        while count < points {
            let batch = columns.iter_mut().map(|column| match &mut column.source {
                DrawSource::Random(random) => parts(latin, points, random),
                DrawSource::Expression(_) | DrawSource::Constant => Vec::new(),
            });
            let batch: Vec<Vec<f64>> = batch.collect();
            if is_plain {
                (kept, count) = (batch, points);
                continue;
            }
            for row in 0..points {
                let mut numbers = Vec::with_capacity(columns.len());
                let values = self.row(&mut columns, |column| batch[column].get(row).copied(), &mut numbers)?;
                draws += 1;
                let meets = |condition: &Written<'_>| {
                    self.known(condition, condition.expression.truth(&|number| values[number].clone()))
                };
                if condition.map_or(Some(true), meets)? {
                    kept.iter_mut().zip(numbers).for_each(|(kept, number)| kept.push(number));
                    count += 1;
                    if count == points {
                        break;
                    }
                }
            }
            if let Some(condition) = condition.filter(|_| draws / FEWEST > count + ENOUGH) {
                self.fail(condition, &format!("{count} of {draws} draws meet it, fewer than one in {FEWEST}"));
                return None;
            }
        }
        let note = condition.map(|_| format!("`sweep.sample.where` refuses {} of {draws} draws", draws - points));
        Some((columns.into_iter().zip(kept).map(|(column, parts)| column.axis(parts, group)).collect(), note))
    }

    /// The values of one draw, of which `part` gives what was drawn for a column; `numbers` are
    /// what is kept of them.
    fn row(
        &self,
        columns: &mut [AxisColumn<'_>],
        part: impl Fn(usize) -> Option<f64>,
        numbers: &mut Vec<f64>,
    ) -> Option<Vec<FoundValue>> {
        let mut values: Vec<FoundValue> = Vec::with_capacity(columns.len());
        for (number, column) in columns.iter_mut().enumerate() {
            let part = match &column.source {
                DrawSource::Random(_) => part(number)?,
                DrawSource::Constant => 0.0,
                DrawSource::Expression(of) => {
                    let came_to = of.expression.number(&|number| values[number].clone()).and_then(written);
                    let (unit, came_to) = self.known(of, came_to)?;
                    if let Range::Derived(first @ None) = &mut column.drawn.range {
                        *first = Some(unit);
                    }
                    if !matches!(column.drawn.range, Range::Derived(Some(first)) if first == unit) {
                        self.fail(of, "it comes to quantities of different kinds");
                        return None;
                    }
                    came_to
                }
            };
            values.push(found(&column.drawn.value(part), None));
            numbers.push(part);
        }
        Some(values)
    }
}
