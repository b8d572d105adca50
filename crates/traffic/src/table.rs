//! Distributions given as tables of their distribution function, with the two that are shipped.

use std::sync::Arc;

/// A distribution function as a list of points, linear between them. A first point with a
/// probability above 0 is a value of that probability, and so are equal values in a row.
///
/// # Source
/// - Interpolation: ns-2's `EmpiricalRandomVariable` with `interpolation_` 1 (tools/ranvar.cc),
///   which the flow generators of DCTCP, pFabric and HPCC use.
/// - Formats of files: ns-2's three columns (value, a number that is not read, probability) and the
///   two columns (value, probability or percentage) of HPCC's `traffic_gen`.
///
/// # Departures
/// - ns-2's `avg` takes half of the first value where the first point has a probability above 0,
///   though it draws all of it; [`Table::mean`] is the mean of what is drawn.
#[derive(Clone, Debug, PartialEq)]
pub struct Table {
    /// Values and the probability of not exceeding them; neither goes back, and the last
    /// probability is 1.
    points: Arc<[(f64, f64)]>,
}

/// The reason why points make no distribution. Lines are counted from 1.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
pub enum TableError {
    /// No point.
    #[error("has no points; expected lines of a value and the probability of not exceeding it")]
    Empty,
    /// The line has neither two nor three columns.
    #[error("line {line}: expected a value and a probability, or a value, a number and a probability")]
    Columns {
        /// Line number, from 1.
        line: usize,
    },
    /// A value that cannot be read, or is negative.
    #[error("line {line}: `{found}` is not {expected}")]
    Value {
        /// Line number, from 1.
        line: usize,
        /// The text found.
        found: String,
        /// Description of valid values.
        expected: &'static str,
    },
    /// A probability that is none.
    #[error("line {line}: `{found}` is not a probability from 0 to 1, or a percentage")]
    Probability {
        /// Line number, from 1.
        line: usize,
        /// The text found.
        found: String,
    },
    /// A value below the one before it.
    #[error("line {line}: the value is below the one before it")]
    ValueGoesBack {
        /// Line number, from 1.
        line: usize,
    },
    /// A probability below the one before it.
    #[error("line {line}: the probability is below the one before it")]
    ProbabilityGoesBack {
        /// Line number, from 1.
        line: usize,
    },
    /// The last probability is neither 1 nor 100 %.
    #[error("line {line}: the last probability is neither 1 nor 100 (per cent)")]
    Incomplete {
        /// Line number, from 1.
        line: usize,
    },
    /// All values are 0.
    #[error("every value is 0")]
    Zero,
}

/// A line that says something.
struct TablePoint<'t> {
    line: usize,
    value: f64,
    probability: f64,
    text: &'t str,
}

impl Table {
    /// Reads a file: a point on each line, its columns separated by spaces or commas. What follows
    /// a `#` is a comment. `value` reads a value; `expected` says what it reads, for errors.
    ///
    /// # Errors
    /// The first line that is wrong.
    pub fn parse(text: &str, expected: &'static str, value: impl Fn(&str) -> Option<f64>) -> Result<Table, TableError> {
        let mut rows: Vec<TablePoint<'_>> = Vec::new();
        for (line, columns) in crate::columns::of(text) {
            let (&[first, last] | &[first, _, last]) = &columns[..] else { return Err(TableError::Columns { line }) };
            let value = value(first).filter(|value| value.is_finite() && *value >= 0.0);
            let value = value.ok_or_else(|| TableError::Value { line, found: first.to_owned(), expected })?;
            let probability = last.parse().ok().filter(|p| (0.0..=100.0).contains(p));
            let probability = probability.ok_or_else(|| TableError::Probability { line, found: last.to_owned() })?;
            if let Some(before) = rows.last() {
                if value < before.value {
                    return Err(TableError::ValueGoesBack { line });
                }
                if probability < before.probability {
                    return Err(TableError::ProbabilityGoesBack { line });
                }
            }
            rows.push(TablePoint { line, value, probability, text: last });
        }
        let last = rows.last().ok_or(TableError::Empty)?;
        let total = last.probability;
        if total != 1.0 && total != 100.0 {
            // A probability above 1 that is no percentage either is named where it is first.
            return Err(match rows.iter().find(|row| row.probability > 1.0) {
                Some(row) if total < 50.0 => TableError::Probability { line: row.line, found: row.text.to_owned() },
                _ => TableError::Incomplete { line: last.line },
            });
        }
        if last.value == 0.0 {
            return Err(TableError::Zero);
        }
        Ok(Table { points: rows.iter().map(|row| (row.value, row.probability / total)).collect() })
    }

    /// Flow sizes in a cluster that serves web search, bytes; mean 1.71 MB.
    ///
    /// # Source
    /// Alizadeh et al., "Data Center TCP (DCTCP)", SIGCOMM 2010, figure 4, as the points in
    /// `DCTCP_CDF` of the authors' generator (github.com/datacenter/empirical-traffic-gen). HPCC's
    /// `WebSearch_distribution.txt` has the same ones; a version for ns-2 has them rounded to
    /// packets of 1.5 kB, at least 6, and with 1460 bytes each a mean of 1.66 MB.
    pub fn web_search() -> Table {
        Table { points: WEB_SEARCH.into() }
    }

    /// Flow sizes in a cluster for data mining, bytes; mean 12.7 MB.
    ///
    /// # Source
    /// Greenberg et al., "VL2: A Scalable and Flexible Data Center Network", SIGCOMM 2009, figure
    /// 2, as the points in `VL2_CDF` of the same generator.
    ///
    /// # Departures
    /// - pFabric's `CDF_vl2.tcl` for ns-2 has coarser points of its own in packets of 1460 bytes,
    ///   up to 973 MB with a mean of 7.47 MB. Its smallest flow is a whole packet, where half of
    ///   the flows of the paper are below 1.1 kB.
    pub fn data_mining() -> Table {
        Table { points: DATA_MINING.into() }
    }

    /// The mean.
    pub fn mean(&self) -> f64 {
        let (first, mass) = self.points[0];
        let between = |pair: &[(f64, f64)]| (pair[0].0 + pair[1].0) / 2.0 * (pair[1].1 - pair[0].1);
        first * mass + self.points.windows(2).map(between).sum::<f64>()
    }

    /// The value that is not exceeded with probability `p`.
    pub fn quantile(&self, p: f64) -> f64 {
        // At 0 it is the last value that has no probability, as in the limit from above.
        let above = self.points.partition_point(|&(_, probability)| probability < p || probability == 0.0);
        let above = above.min(self.points.len() - 1);
        let (high, to) = self.points[above];
        let Some(&(low, from)) = above.checked_sub(1).and_then(|below| self.points.get(below)) else { return high };
        low + (high - low) * ((p - from) / (to - from)).clamp(0.0, 1.0)
    }
}

const WEB_SEARCH: [(f64, f64); 12] = [
    (0.0, 0.0),
    (10e3, 0.15),
    (20e3, 0.2),
    (30e3, 0.3),
    (50e3, 0.4),
    (80e3, 0.53),
    (200e3, 0.6),
    (1e6, 0.7),
    (2e6, 0.8),
    (5e6, 0.9),
    (10e6, 0.97),
    (30e6, 1.0),
];

const DATA_MINING: [(f64, f64); 13] = [
    (0.0, 0.0),
    (180.0, 0.1),
    (216.0, 0.2),
    (560.0, 0.3),
    (900.0, 0.4),
    (1100.0, 0.5),
    (1870.0, 0.6),
    (3160.0, 0.7),
    (10e3, 0.8),
    (400e3, 0.9),
    (3.16e6, 0.95),
    (100e6, 0.98),
    (1e9, 1.0),
];

#[cfg(test)]
mod tests {
    use super::*;

    fn bytes(text: &str) -> Option<f64> {
        text.parse().ok()
    }

    fn parse(text: &str) -> Result<Table, TableError> {
        Table::parse(text, "a number of bytes", bytes)
    }

    #[test]
    fn the_shipped_tables_have_the_means_that_ns_2_scripts_state() {
        // `mean_flow_size` beside CDF_dctcp.tcl and CDF_vl2.tcl: 1,711,250 and 12,658,199.
        assert_eq!(Table::web_search().mean().round(), 1_711_250.0);
        // 9 + 19.8 + 38.8 + 73 + 100 + 148.5 + 251.5 + 658 + 20,500 + 89,000 + 1,547,400 +
        // 11,000,000
        assert_eq!(Table::data_mining().mean().round(), 12_658_199.0);
    }

    #[test]
    fn values_lie_on_lines_between_the_points() {
        let search = Table::web_search();
        // Half the way from 50 kB at 0.4 to 80 kB at 0.53.
        assert!((search.quantile(0.465) - 65e3).abs() < 1e-6);
        assert!((search.quantile(0.53) - 80e3).abs() < 1e-6);
        assert_eq!((search.quantile(0.0), search.quantile(1.0)), (0.0, 30e6));
    }

    #[test]
    fn a_jump_is_a_value_with_a_probability() {
        // A quarter is 100, a quarter lies between 100 and 200, and a half is 200.
        let table = parse("100 0.25\n200 0.5\n200 1\n").unwrap();
        assert_eq!(
            [0.0, 0.25, 0.375, 0.5, 0.75, 0.999].map(|p| table.quantile(p)),
            [100.0, 100.0, 150.0, 200.0, 200.0, 200.0]
        );
        // 25 + 37.5 + 100
        assert_eq!(table.mean(), 162.5);
    }

    #[test]
    fn nothing_lies_where_the_probability_stays() {
        let table = parse("0 0\n10 0\n20 0.5\n30 0.5\n40 1").unwrap();
        assert_eq!([0.0, 0.25, 0.5, 0.75].map(|p| table.quantile(p)), [10.0, 15.0, 20.0, 35.0]);
        assert_eq!(table.mean(), 25.0);
    }

    #[test]
    fn two_and_three_columns_and_percentages_are_read() {
        let reference = parse("0 0\n10000 0.15\n30000 1").unwrap();
        for text in ["# ns-2\n0 1 0\n10000 2 .15\n\n3e4 3 1 # end", "0,0\n10000,15\n30000,100\n"] {
            assert_eq!(parse(text), Ok(reference.clone()), "{text}");
        }
    }

    #[test]
    fn errors_name_the_line() {
        for (text, message) in [
            ("# nothing\n\n", "has no points; expected lines of a value and the probability of not exceeding it"),
            ("0 0\n5\n", "line 2: expected a value and a probability, or a value, a number and a probability"),
            ("0 0\nten 1\n", "line 2: `ten` is not a number of bytes"),
            ("-1 0\n", "line 1: `-1` is not a number of bytes"),
            ("inf 1\n", "line 1: `inf` is not a number of bytes"),
            ("0 0\n5 NaN\n", "line 2: `NaN` is not a probability from 0 to 1, or a percentage"),
            ("0 0\n5 1.5\n", "line 2: `1.5` is not a probability from 0 to 1, or a percentage"),
            ("5 0\n4 1\n", "line 2: the value is below the one before it"),
            ("4 0.5\n\n5 0.4\n", "line 3: the probability is below the one before it"),
            ("0 0\n5 0.9\n", "line 2: the last probability is neither 1 nor 100 (per cent)"),
            ("0 0\n5 90\n", "line 2: the last probability is neither 1 nor 100 (per cent)"),
            ("0 1\n", "every value is 0"),
        ] {
            assert_eq!(parse(text).unwrap_err().to_string(), message, "{text:?}");
        }
    }
}
