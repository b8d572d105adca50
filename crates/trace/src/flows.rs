//! `flows.csv`: a row for every flow of a workload.

use std::fmt;
use std::io::{self, Write};
use std::ops::ControlFlow;

use ackclock_units::{Span, Time};

use crate::rows::{CsvRows, decimals, millis, seconds, text, whole};
use crate::{Recoveries, SentPackets};

/// A flow that is over, or that the run has ended before.
#[derive(Clone, Debug, PartialEq)]
pub struct FlowRecord<'a> {
    /// The workload.
    pub workload: &'a str,
    /// The flow.
    pub flow: &'a str,
    /// The request that it answers; without incast the flow's number.
    pub request: u64,
    /// The links of its path, `leaf>spine`.
    pub path: &'a str,
    /// Time at which the flow connected.
    pub start: Time,
    /// Time at which the last byte was acknowledged to the sender; `None` if it was not.
    pub end: Option<Time>,
    /// Size of the flow, bytes.
    pub bytes: u64,
    /// The ideal completion time.
    pub ideal: Span,
    /// The counts of its data packets.
    pub sent: SentPackets,
    /// The counts of its recoveries.
    pub recoveries: Recoveries,
}

/// The destination of a run's records, in the order in which flows end; unfinished flows come last.
pub trait FlowSink: fmt::Debug {
    /// Takes a record; may break the run off.
    fn record(&mut self, record: &FlowRecord<'_>) -> ControlFlow<()>;
}

/// The first line of a [`FlowCsv`].
pub const FLOW_COLUMNS: &str =
    "workload,flow,request,path,start_s,end_s,size_bytes,fct_ms,slowdown,retransmitted_packets,timeouts";

/// Writes records as CSV (RFC 4180, lines end with a line feed). `end_s`, `fct_ms` and `slowdown`,
/// which is rounded down to six digits, are empty where a flow was not completed.
#[derive(Debug)]
pub struct FlowCsv<W>(CsvRows<W>);

impl<W: Write> FlowCsv<W> {
    /// A file that contains only its header.
    pub fn new(out: W) -> FlowCsv<W> {
        FlowCsv(CsvRows::new(out, FLOW_COLUMNS))
    }

    /// Writes what is left, and gives the writer back.
    ///
    /// # Errors
    /// The first error of the writer, whenever it happened. It has broken the run off then.
    pub fn finish(self) -> io::Result<W> {
        self.0.finish()
    }
}

/// A completion time over the ideal one, in millionths, rounded down.
pub fn slowdown_millionths(fct: Span, ideal: Span) -> u64 {
    let ratio = u128::from(fct.as_nanos()) * 1_000_000 / u128::from(ideal.as_nanos().max(1));
    u64::try_from(ratio).unwrap_or(u64::MAX)
}

impl<W: Write + fmt::Debug> FlowSink for FlowCsv<W> {
    fn record(&mut self, record: &FlowRecord<'_>) -> ControlFlow<()> {
        let fct = record.end.map(|end| end.since(record.start));
        self.0.add(|out| {
            text(out, record.workload);
            out.push(',');
            text(out, record.flow);
            out.push(',');
            whole(out, record.request);
            out.push(',');
            text(out, record.path);
            out.push(',');
            seconds(out, record.start);
            out.push(',');
            if let Some(end) = record.end {
                seconds(out, end);
            }
            out.push(',');
            whole(out, record.bytes);
            out.push(',');
            millis(out, fct);
            out.push(',');
            if let Some(fct) = fct {
                let slowdown = slowdown_millionths(fct, record.ideal);
                whole(out, slowdown / 1_000_000);
                decimals(out, slowdown % 1_000_000, 6);
            }
            out.push(',');
            whole(out, record.sent.retransmitted_packets);
            out.push(',');
            whole(out, record.recoveries.timeouts);
            out.push('\n');
            Ok(())
        })
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_row_for_a_flow() {
        let mut csv = FlowCsv::new(Vec::new());
        let record = FlowRecord {
            workload: "web",
            flow: "web.7",
            request: 7,
            path: "leaf>spine",
            start: Time::from_millis(1500),
            end: Some(Time::from_millis(1503)),
            bytes: 30_000,
            ideal: Span::from_millis(2),
            sent: SentPackets { retransmitted_packets: 1, ..SentPackets::default() },
            recoveries: Recoveries::default(),
        };
        assert!(csv.record(&record).is_continue());
        let recoveries = Recoveries { timeouts: 2, ..Recoveries::default() };
        assert!(csv.record(&FlowRecord { end: None, recoveries, ..record }).is_continue());
        let text = String::from_utf8(csv.finish().unwrap()).unwrap();
        let rows = "web,web.7,7,leaf>spine,1.500000000,1.503000000,30000,3.000000,1.500000,1,0\n\
                    web,web.7,7,leaf>spine,1.500000000,,30000,,,1,2\n";
        assert_eq!(text, format!("{FLOW_COLUMNS}\n{rows}"));
    }
}
