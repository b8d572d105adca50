//! Tables of the entries of a list of the summary: columns are metrics by their paths.

use ackclock_trace::metrics::{ShownMetric, headings, shown};
use serde::Serialize;
use serde_json::Value;

use super::cells::cell;
use crate::table::{Cell, Table};

/// A list, the keys of the names of its entries, and the metrics that a table has of them.
#[derive(Debug)]
pub(super) struct Listed {
    pub(super) list: &'static str,
    pub(super) names: &'static [&'static str],
    pub(super) metrics: &'static [&'static str],
}

impl Listed {
    fn shown(&self) -> impl Iterator<Item = ShownMetric> {
        self.metrics.iter().map(|metric| shown(self.list, metric))
    }

    pub(super) fn headings(&self) -> Vec<String> {
        headings(self.list, self.metrics)
    }

    /// The values of an entry; counts by reason are added up.
    pub(super) fn values(&self, entry: &impl Serialize) -> Vec<Option<f64>> {
        let entry = serde_json::to_value(entry).unwrap_or_default();
        self.metrics.iter().map(|metric| number(metric.split('.').fold(&entry, |value, key| &value[key]))).collect()
    }

    pub(super) fn table<T: Serialize>(&self, heading: &str, entries: &[T]) -> Table {
        let names = [heading].into_iter().chain(self.names.iter().skip(1).copied()).map(str::to_owned);
        let mut table = Table::new(self.names.len(), names.chain(self.headings()));
        for entry in entries {
            let json = serde_json::to_value(entry).unwrap_or_default();
            let names = self.names.iter().map(|name| json[name].as_str().unwrap_or_default().to_owned());
            let values = self.shown().zip(self.values(entry));
            table.row(names.chain(values.map(|(shown, value)| shown.text(value))));
        }
        table
    }

    /// The table of all entries, or of so many at either end; nothing of none.
    pub(super) fn text<T: Serialize>(&self, heading: &str, entries: &[T], ends: Option<usize>) -> String {
        let ends = ends.map_or(entries.len(), |ends| ends.min(entries.len()));
        let last = ends.max(entries.len() - ends);
        let shown: Vec<&T> = entries[..ends].iter().chain(&entries[last..]).collect();
        if shown.is_empty() {
            return String::new();
        }
        let mut text = self.table(heading, &shown).render();
        let more = entries.len() - shown.len();
        if more > 0 {
            text += &format!("{more} {heading}s between the first and the last are left out; --all-rows lists them\n");
        }
        text
    }

    /// The medians of entries that are alike, by the values of each.
    pub(super) fn medians<'v>(&self, alike: &'v [&'v Vec<Option<f64>>]) -> impl Iterator<Item = Cell> {
        self.shown().enumerate().map(|(column, shown)| {
            let values = alike.iter().filter_map(|values| values[column]).map(|value| shown.unit.scaled(value));
            cell(values.collect(), shown.digits)
        })
    }
}

fn number(value: &Value) -> Option<f64> {
    match value {
        Value::Object(counts) => Some(counts.values().filter_map(Value::as_f64).fold(0.0, |sum, count| sum + count)),
        value => value.as_f64(),
    }
}
