//! `ertt.csv`: a row for every measurement of an enhanced round-trip time.

use std::fmt;
use std::io::{self, Write};
use std::ops::ControlFlow;

use ackclock_units::{Span, Time};

use crate::rows::{CsvRows, millis, number, seconds, text, whole};

/// A marked segment was answered: once per round trip.
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct ErttRecord<'a> {
    /// Time of the measurement.
    pub at: Time,
    /// The flow.
    pub flow: &'a str,
    /// Number of its subflow, from 1; `None` for a flow of one path.
    pub subflow: Option<u16>,
    /// The how-manieth measurement of its controller, from 1.
    pub number: u64,
    /// The round trip of the marked segment.
    pub marked: Span,
    /// Bytes that were sent while it was on its way, itself included.
    pub bytes_in_marked: u64,
    /// The newest sample.
    pub rtt: Span,
    /// The shortest sample.
    pub min: Span,
    /// The longest sample.
    pub max: Span,
    /// The receiver seems to delay ACKs.
    pub delayed_acks: bool,
    /// The sender's congestion window after the ACK, bytes.
    pub cwnd: u64,
    /// The controller's inference from delay gradients, if it makes one.
    pub gradients: Option<GradientRecord>,
}

/// A controller's inference from delay gradients after an ACK.
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct GradientRecord {
    /// Smoothed gradient of the shortest RTT, ms per round trip.
    pub min_ms: f64,
    /// Gradient of the longest RTT.
    pub max_ms: f64,
    /// Inferred state of the queue: `unknown`, `empty`, `rising`, `falling`, `full`.
    pub queue: &'static str,
    /// The shadow window, bytes; 0 without one.
    pub shadow: u64,
}

/// The destination of a run's records, in order of time.
pub trait ErttSink: fmt::Debug {
    /// Takes a record; may break the run off.
    fn record(&mut self, record: &ErttRecord<'_>) -> ControlFlow<()>;
}

/// The first line of an [`ErttCsv`].
pub const ERTT_COLUMNS: &str = "time_s,flow,measurement,marked_rtt_ms,bytes_in_marked_rtt,rtt_ms,min_rtt_ms,max_rtt_ms,\
                                delayed_acks,subflow,cwnd_bytes,gradient_min_ms,gradient_max_ms,queue_state,\
                                shadow_window_bytes";

/// Writes records as CSV (RFC 4180, lines end with a line feed). Allocates nothing for a row. The
/// columns are the fields of [`ErttRecord`]; times are whole ticks of the controller's clock, as it
/// reckons with them. Gradients are averages of such, in ms.
#[derive(Debug)]
pub struct ErttCsv<W>(CsvRows<W>);

impl<W: Write> ErttCsv<W> {
    /// A file that contains only its header.
    pub fn new(out: W) -> ErttCsv<W> {
        ErttCsv(CsvRows::new(out, ERTT_COLUMNS))
    }

    /// Writes what is left, and gives the writer back.
    ///
    /// # Errors
    /// The first error of the writer, whenever it happened. It has broken the run off then.
    pub fn finish(self) -> io::Result<W> {
        self.0.finish()
    }
}

impl<W: Write + fmt::Debug> ErttSink for ErttCsv<W> {
    fn record(&mut self, record: &ErttRecord<'_>) -> ControlFlow<()> {
        self.0.add(|out| {
            seconds(out, record.at);
            out.push(',');
            text(out, record.flow);
            out.push(',');
            whole(out, record.number);
            out.push(',');
            millis(out, Some(record.marked));
            out.push(',');
            whole(out, record.bytes_in_marked);
            for span in [record.rtt, record.min, record.max] {
                out.push(',');
                millis(out, Some(span));
            }
            out.push_str(if record.delayed_acks { ",1," } else { ",0," });
            if let Some(subflow) = record.subflow {
                whole(out, subflow.into());
            }
            out.push(',');
            whole(out, record.cwnd);
            let Some(GradientRecord { min_ms, max_ms, queue, shadow }) = record.gradients else {
                out.push_str(",,,,\n");
                return Ok(());
            };
            for gradient in [min_ms, max_ms] {
                out.push(',');
                number(out, Some(gradient))?;
            }
            out.push(',');
            out.push_str(queue);
            out.push(',');
            whole(out, shadow);
            out.push('\n');
            Ok(())
        })
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_row_for_a_measurement() {
        let mut csv = ErttCsv::new(Vec::new());
        let ms = Span::from_millis;
        let record = ErttRecord {
            at: Time::from_millis(1500),
            flow: "cdg.0",
            subflow: None,
            number: 7,
            marked: ms(42),
            bytes_in_marked: 14_480,
            rtt: ms(43),
            min: ms(41),
            max: ms(60),
            delayed_acks: true,
            cwnd: 28_960,
            gradients: Some(GradientRecord { min_ms: -0.25, max_ms: 1.5, queue: "rising", shadow: 57_920 }),
        };
        let without = ErttRecord { subflow: Some(2), gradients: None, ..record };
        assert!(csv.record(&record).is_continue() && csv.record(&without).is_continue());
        let text = String::from_utf8(csv.finish().unwrap()).unwrap();
        let row = "1.500000000,cdg.0,7,42.000000,14480,43.000000,41.000000,60.000000,1,";
        let rows = format!("{row},28960,-0.25,1.5,rising,57920\n{row}2,28960,,,,\n");
        assert_eq!(text, format!("{ERTT_COLUMNS}\n{rows}"));
    }
}
