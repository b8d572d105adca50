//! Numbers and names in the cells of tables.

use ackclock_trace::statistics::{deviation, median};

use crate::table::Cell;

/// Points with more flows get one line for all of them.
pub(super) const MAX_FLOW_LINES: usize = 8;

/// A number without needless digits.
pub(crate) fn number(value: f64) -> String {
    let digits = if value.abs() >= 1000.0 { 0 } else { 3 };
    let text = fixed(value, digits);
    if text.contains('.') { text.trim_end_matches('0').trim_end_matches('.').to_owned() } else { text }
}

pub(super) fn fixed(value: f64, digits: usize) -> String {
    format!("{value:.digits$}")
}

/// The axes by as many of their last keys as tell them apart.
pub(crate) fn short(axes: &[&str]) -> Vec<String> {
    let tail = |axis: &str, keys: usize| {
        let parts: Vec<&str> = axis.split('.').collect();
        parts[parts.len().saturating_sub(keys)..].join(".")
    };
    axes.iter()
        .enumerate()
        .map(|(index, axis)| {
            let apart = |keys: &usize| {
                axes.iter().enumerate().all(|(other, name)| other == index || tail(name, *keys) != tail(axis, *keys))
            };
            // `kind` alone says little.
            let least = if axis.ends_with(".kind") { 2 } else { 1 };
            tail(axis, (least..10).find(apart).unwrap_or(10))
        })
        .collect()
}

/// The median of the runs of a point, with the standard deviation if there are several.
pub(crate) fn cell(values: Vec<f64>, digits: usize) -> Cell {
    let number = |value| Cell::Number { value, deviation: deviation(&values), digits };
    median(&values).map_or_else(|| "-".to_owned().into(), number)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn axes_are_named_by_what_tells_them_apart() {
        assert_eq!(short(&["links.a.queue.kind", "links.a.delay"]), ["queue.kind", "delay"]);
        assert_eq!(short(&["links.a.delay", "links.b.delay"]), ["a.delay", "b.delay"]);
    }

    #[test]
    fn several_runs_have_a_spread() {
        // The squares of -1, 0 and 1 over n - 1.
        let number = |value, deviation, digits| Cell::Number { value, deviation, digits };
        assert_eq!(cell(vec![3.0, 1.0, 2.0], 2), number(2.0, Some(1.0), 2));
        assert_eq!(cell(vec![3.0], 1), number(3.0, None, 1));
        assert_eq!(cell(vec![], 1), "-".to_owned().into());
    }

    #[test]
    fn numbers_have_no_needless_digits() {
        assert_eq!(number(60.0), "60");
        assert_eq!(number(0.98765), "0.988");
        assert_eq!(number(9_412_345.6), "9412346");
    }
}
