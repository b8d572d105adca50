//! `reordering.csv`: reordering over time.

use std::fmt;
use std::io::{self, Write};
use std::ops::ControlFlow;

use super::ReorderInterval;
use crate::rows::{CsvRows, number, seconds, text, whole};

/// The reordering of a flow at a place in one interval of a run.
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct ReorderingRecord<'a> {
    /// The flow.
    pub flow: &'a str,
    /// The place.
    pub tap: &'a str,
    /// Arrivals in the interval.
    pub interval: &'a ReorderInterval,
}

/// The destination of a run's records, in order of time for each flow and place.
pub trait ReorderingSink: fmt::Debug {
    /// Takes a record; may break the run off.
    fn record(&mut self, record: &ReorderingRecord<'_>) -> ControlFlow<()>;
}

/// The first line of a [`ReorderingCsv`].
pub const REORDERING_COLUMNS: &str = "time_s,flow,tap,packets,reordered_ratio,early,on_time,late,displacement_min,\
                                      displacement_p25,displacement_p50,displacement_p75,displacement_max,duplicates";

/// Writes records as CSV (RFC 4180, lines end with a line feed): a row for each flow, place and
/// interval with arrivals, also of further copies alone.
///
/// - `time_s`: the start of the interval. `flow`, `tap`: whose packets arrived, and where.
/// - `packets`: packets that arrived, further copies left out; `reordered_ratio`: the share of them
///   that arrived after one sent later (RFC 4737).
/// - `early`, `on_time`, `late`: shares by displacement (RFC 5236), and `displacement_min` to
///   `displacement_max` its distribution, packets; empty where every packet was displaced too far.
/// - `duplicates`: further copies.
#[derive(Debug)]
pub struct ReorderingCsv<W>(CsvRows<W>);

impl<W: Write> ReorderingCsv<W> {
    /// A file that contains only its header.
    pub fn new(out: W) -> ReorderingCsv<W> {
        ReorderingCsv(CsvRows::new(out, REORDERING_COLUMNS))
    }

    /// Writes what is left, and gives the writer back.
    ///
    /// # Errors
    /// The first error of the writer, whenever it happened. It has broken the run off then.
    pub fn finish(self) -> io::Result<W> {
        self.0.finish()
    }
}

impl<W: Write + fmt::Debug> ReorderingSink for ReorderingCsv<W> {
    fn record(&mut self, record: &ReorderingRecord<'_>) -> ControlFlow<()> {
        self.0.add(|out| row(out, record))
    }
}

fn row(out: &mut String, record: &ReorderingRecord<'_>) -> fmt::Result {
    let ReorderInterval { from, packets, reordered, early, on_time, late, ref displacement, duplicates } =
        *record.interval;
    seconds(out, from);
    for name in [record.flow, record.tap] {
        out.push(',');
        text(out, name);
    }
    out.push(',');
    whole(out, packets);
    let share = |part: u64, of: u64| (of > 0).then(|| (part as f64 / of as f64 * 1e6).round() / 1e6);
    let placed = early + on_time + late;
    let shares = [(reordered, packets), (early, placed), (on_time, placed), (late, placed)];
    for share in shares.map(|(part, of)| share(part, of)) {
        out.push(',');
        number(out, share)?;
    }
    let quantiles = &displacement.quantiles;
    for value in [displacement.min, quantiles.p25, quantiles.p50, quantiles.p75, displacement.max] {
        out.push(',');
        if let Some(value) = value {
            fmt::Write::write_fmt(out, format_args!("{value:.0}"))?;
        }
    }
    out.push(',');
    whole(out, duplicates);
    out.push('\n');
    Ok(())
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::ReorderMeter;
    use ackclock_units::{Span, Time};

    #[test]
    fn rows_have_the_columns() {
        let mut meter = ReorderMeter::new(16, Some(Span::from_secs(1)));
        // 1 4 2 5 3 6 7 8 of RFC 5236, then one that nobody expects.
        for (number, ms) in [0, 3, 1, 4, 2, 5, 6, 7].into_iter().zip(1..) {
            meter.arrive(number, Time::from_millis(ms), 100);
        }
        meter.arrive_again(Time::from_millis(999));
        meter.arrive(8, Time::from_millis(2500), 100);
        meter.arrive(8, Time::from_millis(2999), 100);
        // An interval of copies alone.
        meter.arrive_again(Time::from_millis(4000));
        meter.finish();
        let mut csv = ReorderingCsv::new(Vec::new());
        for interval in meter.take_intervals() {
            let record = ReorderingRecord { flow: "a.0", tap: "receiver", interval: &interval };
            assert!(csv.record(&record).is_continue());
        }
        // 2 and 3 come after 4: two of eight.
        let rows = "0.000000000,a.0,receiver,8,0.25,0.25,0.5,0.25,-2,-1,0,0,2,1\n\
                    2.000000000,a.0,receiver,1,0.0,0.0,1.0,0.0,0,0,0,0,0,1\n\
                    4.000000000,a.0,receiver,0,,,,,,,,,,1\n";
        let written = String::from_utf8(csv.finish().unwrap()).unwrap();
        assert_eq!(written, format!("{REORDERING_COLUMNS}\n{rows}"));
    }
}
