//! Numbers as they stand in narrow columns.

/// Eighths of a cell.
pub(super) const BLOCKS: [char; 9] = [' ', '▁', '▂', '▃', '▄', '▅', '▆', '▇', '█'];

/// A rate or a count by its first three digits: `9.98M`.
pub(super) fn si(value: f64) -> String {
    let units = [(1e12, "T"), (1e9, "G"), (1e6, "M"), (1e3, "k")];
    // 999.5 is a thousand when it is rounded.
    match units.iter().find(|(unit, _)| value >= unit * 0.9995) {
        Some((unit, name)) => format!("{}{name}", three(value / unit)),
        None => three(value),
    }
}

/// Three digits, and none behind a point that say nothing.
pub(super) fn three(value: f64) -> String {
    match value {
        _ if value == 0.0 => "0".to_owned(),
        _ if value < 9.995 => format!("{value:.2}"),
        _ if value < 99.95 => format!("{value:.1}"),
        _ => format!("{value:.0}"),
    }
}

/// Milliseconds.
pub(super) fn millis(value: Option<f64>) -> String {
    value.map_or_else(|| "-".to_owned(), three)
}

/// A share in percent.
pub(super) fn percent(share: f64) -> String {
    format!("{:.0} %", share * 100.0)
}

/// The heights of a line of these values, the oldest first, in eighths of a cell; at `most` and
/// above it is full. It ends at the right.
pub(super) fn spark(values: impl Iterator<Item = f64>, most: f64, width: usize) -> String {
    let height = |value: f64| {
        let share = if most > 0.0 { value / most } else { 0.0 };
        match (share * 8.0).round().clamp(0.0, 8.0) as usize {
            // A value above zero is always visible.
            0 if value > 0.0 => '▁',
            eighths => BLOCKS[eighths],
        }
    };
    let line: String = values.map(height).collect();
    format!("{line:>width$}")
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn numbers_have_three_digits() {
        for (value, text) in [
            (0.0, "0"),
            (7.0, "7.00"),
            (999.4, "999"),
            (999.6, "1.00k"),
            (9_980_000.0, "9.98M"),
            (12_345_678.0, "12.3M"),
            (1e9, "1.00G"),
            (2.5e15, "2500T"),
        ] {
            assert_eq!(si(value), text);
        }
        assert_eq!((three(9.996), three(99.96)), ("10.0".to_owned(), "100".to_owned()));
    }

    #[test]
    fn a_line_ends_at_the_right_and_shows_what_is_not_nothing() {
        assert_eq!(spark([0.0, 0.001, 5.0, 10.0, 20.0].into_iter(), 10.0, 7), "   ▁▄██");
        assert_eq!(spark([1.0].into_iter(), 0.0, 1), "▁");
    }
}
