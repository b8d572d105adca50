//! `tcp.csv`: a row for every ACK of a sender, every retransmission with its cause, and every
//! segment that was declared lost, with its true fate.

use std::fmt;
use std::io::{self, Write};
use std::ops::ControlFlow;

use ackclock_units::{Span, Time};

use crate::rows::{CsvRows, millis, number, seconds, text, whole};

/// An event of a flow.
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct TcpRecord<'a> {
    /// Time at which the event was known.
    pub at: Time,
    /// The flow.
    pub flow: &'a str,
    /// Number of its subflow, from 1; `None` for a flow of one path.
    pub subflow: Option<u16>,
    /// The event.
    pub event: TcpEvent<'a>,
}

/// The kinds of events.
#[derive(Clone, Copy, Debug, PartialEq)]
pub enum TcpEvent<'a> {
    /// An ACK arrived at the sender.
    Ack(AckRecord),
    /// A segment had been sent again.
    Retransmission(JudgedSegment<'a>),
    /// A segment, or its retransmission, had been declared lost.
    Declaration(JudgedSegment<'a>),
}

/// The sender's variables after an ACK.
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct AckRecord {
    /// Bytes of the stream acknowledged.
    pub ack: u64,
    /// Bytes of these acknowledged by this ACK.
    pub acked: u64,
    /// Segments SACKed.
    pub sacked_out: u64,
    /// Segments from the first unacknowledged to the highest SACKed one.
    pub fackets_out: u64,
    /// Segments of which a retransmission is in flight.
    pub retrans_out: u64,
    /// Segments declared lost.
    pub lost_out: u64,
    /// Duplicate threshold.
    pub reordering: u32,
    /// Congestion state of the sender.
    pub ca_state: &'static str,
    /// Congestion window in bytes.
    pub cwnd: u64,
    /// Slow start threshold in bytes; `None` before there is one.
    pub ssthresh: Option<u64>,
    /// Estimate of the bytes in the network.
    pub pipe: u64,
    /// The RTT that it measured.
    pub rtt: Option<Span>,
    /// Smoothed RTT.
    pub srtt: Option<Span>,
    /// Retransmission timeout.
    pub rto: Span,
}

/// The sender's decision on a segment, and the segment's true fate.
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct JudgedSegment<'a> {
    /// Offset of its first byte in the stream.
    pub seq: u64,
    /// Length of the segment, bytes.
    pub len: u32,
    /// Time of the retransmission or loss declaration.
    pub since: Time,
    /// Its cause.
    pub cause: &'static str,
    /// Ground truth of the decision.
    pub verdict: LossVerdict<'a>,
    /// Nanoseconds from the earliest moment at which the loss could be known until it was declared;
    /// negative before.
    pub late: Option<i64>,
}

/// The truth about a retransmission, or about a segment that was declared lost.
#[derive(Clone, Copy, Debug, PartialEq)]
pub enum LossVerdict<'a> {
    /// The transmission was lost.
    Lost {
        /// Place of the loss: a link direction, or `receiver` where the data was refused.
        link: &'a str,
        /// The reason, as in the summary.
        reason: &'static str,
        /// The probability of that right after it, where there was one.
        probability: Option<f64>,
    },
    /// The transmission was not lost: it was overtaken.
    Reordered,
    /// The transmission was not lost: it took longer than the sender waited.
    Delayed,
}

impl LossVerdict<'_> {
    /// Name in the file.
    pub fn name(&self) -> &'static str {
        match self {
            LossVerdict::Lost { .. } => "lost",
            LossVerdict::Reordered => "reordered",
            LossVerdict::Delayed => "delayed",
        }
    }
}

/// The destination of a run's records, in order of time.
pub trait TcpSink: fmt::Debug {
    /// Takes a record; may break the run off.
    fn record(&mut self, record: &TcpRecord<'_>) -> ControlFlow<()>;
}

/// The first line of a [`TcpCsv`].
pub const TCP_COLUMNS: &str = "time_s,flow,event,ack_bytes,acked_bytes,sacked_out,fackets_out,retrans_out,lost_out,\
                               reordering,ca_state,cwnd_bytes,ssthresh_bytes,pipe_bytes,rtt_ms,srtt_ms,rto_ms,seq_bytes,\
                               len_bytes,since_s,cause,verdict,late_ms,link,reason,probability,subflow";

/// Writes records as CSV (RFC 4180, lines end with a line feed). Allocates nothing for a row.
///
/// - `time_s`: when, to the nanosecond. Of a retransmission or a declaration: when it was settled
///   what it was in truth, which is some time after it; `since_s` tells when it was made.
/// - `flow`: `reno.0`.
/// - `event`: `ack`, `retransmission` or `declaration`.
///
/// For an `ack`, the sender's variables after it, under their Linux names:
/// - `ack_bytes`, `acked_bytes`: bytes acknowledged so far, and of these by this ACK.
/// - `sacked_out`, `fackets_out`, `retrans_out`, `lost_out`: segments SACKed, from the first
///   unacknowledged to the highest SACKed one, retransmitted and in flight, declared lost.
/// - `reordering`: the duplicate threshold in segments. `ca_state`: `Open`, `Disorder`, `CWR`,
///   `Recovery`, `Loss`.
/// - `cwnd_bytes`, `ssthresh_bytes` (empty before there is one), `pipe_bytes`.
/// - `rtt_ms` if it measured one, `srtt_ms`, `rto_ms`.
///
/// For a `retransmission` (a segment with data sent again) and a `declaration` (a transmission
/// declared lost):
/// - `seq_bytes`, `len_bytes`: the range of the stream, a FIN being its last byte.
/// - `since_s`: when it was sent, or declared lost. `cause`: why it was sent (`fast_retransmit`,
///   `speculative`, `timeout`, `window_probe` ...), or what declared it lost (`detector`,
///   `timeout`).
/// - `verdict`: `lost` if every earlier transmission of some of it (for a declaration: the
///   transmission itself) was lost; else `reordered` if it was inferred from other arrivals,
///   `delayed` if a timer decided.
/// - `late_ms`: of a declaration of what was lost, the time since the loss could be known; negative
///   before. The loss could be known when the first ACK arrived that the receiver had sent once a
///   later packet had reached it; empty if there was none.
/// - `link`, `reason`, `probability`: what lost it: a link direction (or `receiver`, which may
///   refuse data), its reason as the summary names it, and its drop probability at that moment,
///   where it has one.
///
/// Of every row:
/// - `subflow`: over Multipath TCP the number of the subflow's path, from 1; empty otherwise.
///   Offsets and variables are those of the subflow; subflows that follow each other on a path
///   count as one stream.
#[derive(Debug)]
pub struct TcpCsv<W>(CsvRows<W>);

impl<W: Write> TcpCsv<W> {
    /// A file that contains only its header.
    pub fn new(out: W) -> TcpCsv<W> {
        TcpCsv(CsvRows::new(out, TCP_COLUMNS))
    }

    /// Writes what is left, and gives the writer back.
    ///
    /// # Errors
    /// The first error of the writer, whenever it happened. It has broken the run off then.
    pub fn finish(self) -> io::Result<W> {
        self.0.finish()
    }
}

impl<W: Write + fmt::Debug> TcpSink for TcpCsv<W> {
    fn record(&mut self, record: &TcpRecord<'_>) -> ControlFlow<()> {
        self.0.add(|out| row(out, record))
    }
}

fn row(out: &mut String, record: &TcpRecord<'_>) -> fmt::Result {
    seconds(out, record.at);
    out.push(',');
    text(out, record.flow);
    match &record.event {
        TcpEvent::Ack(ack) => {
            out.push_str(",ack,");
            acknowledgment(out, ack);
            out.push_str(",,,,,,,,,");
        }
        TcpEvent::Retransmission(judged) => {
            out.push_str(",retransmission,,,,,,,,,,,,,,,");
            judgement(out, judged)?;
        }
        TcpEvent::Declaration(judged) => {
            out.push_str(",declaration,,,,,,,,,,,,,,,");
            judgement(out, judged)?;
        }
    }
    out.push(',');
    if let Some(subflow) = record.subflow {
        whole(out, subflow.into());
    }
    out.push('\n');
    Ok(())
}

fn acknowledgment(out: &mut String, ack: &AckRecord) {
    for count in
        [ack.ack, ack.acked, ack.sacked_out, ack.fackets_out, ack.retrans_out, ack.lost_out, u64::from(ack.reordering)]
    {
        whole(out, count);
        out.push(',');
    }
    out.push_str(ack.ca_state);
    out.push(',');
    whole(out, ack.cwnd);
    out.push(',');
    if let Some(ssthresh) = ack.ssthresh {
        whole(out, ssthresh);
    }
    out.push(',');
    whole(out, ack.pipe);
    for span in [ack.rtt, ack.srtt, Some(ack.rto)] {
        out.push(',');
        millis(out, span);
    }
}

fn judgement(out: &mut String, judged: &JudgedSegment<'_>) -> fmt::Result {
    whole(out, judged.seq);
    out.push(',');
    whole(out, judged.len.into());
    out.push(',');
    seconds(out, judged.since);
    out.push(',');
    out.push_str(judged.cause);
    out.push(',');
    out.push_str(judged.verdict.name());
    out.push(',');
    if let Some(late) = judged.late {
        out.push_str(if late < 0 { "-" } else { "" });
        millis(out, Some(Span::from_nanos(late.unsigned_abs())));
    }
    out.push(',');
    let LossVerdict::Lost { link, reason, probability } = judged.verdict else {
        out.push_str(",,");
        return Ok(());
    };
    text(out, link);
    out.push(',');
    text(out, reason);
    out.push(',');
    number(out, probability)
}

#[cfg(test)]
mod tests {
    use super::*;

    fn rows(records: &[TcpRecord<'_>]) -> Vec<Vec<String>> {
        let mut csv = TcpCsv::new(Vec::new());
        for record in records {
            assert!(csv.record(record).is_continue());
        }
        let text = String::from_utf8(csv.finish().expect("memory takes everything")).expect("UTF-8");
        text.lines().map(|line| line.split(',').map(str::to_owned).collect()).collect()
    }

    fn judged(verdict: LossVerdict<'_>, late: Option<i64>) -> TcpRecord<'_> {
        let since = Time::from_millis(1500);
        let judged = JudgedSegment { seq: 1448, len: 100, since, cause: "timeout", verdict, late };
        TcpRecord { at: Time::from_millis(1750), flow: "f.0", subflow: Some(2), event: TcpEvent::Declaration(judged) }
    }

    fn of<'a>(rows: &'a [Vec<String>], row: usize, column: &str) -> &'a str {
        let at = rows[0].iter().position(|name| name == column).expect("a column");
        &rows[row][at]
    }

    #[test]
    fn every_row_has_every_column() {
        let ack = AckRecord {
            ack: 2896,
            acked: 1448,
            sacked_out: 2,
            fackets_out: 4,
            retrans_out: 1,
            lost_out: 3,
            reordering: 8,
            ca_state: "Recovery",
            cwnd: 14_480,
            ssthresh: None,
            pipe: 7240,
            rtt: None,
            srtt: Some(Span::from_micros(20_500)),
            rto: Span::from_millis(220),
        };
        let lost = LossVerdict::Lost { link: "a.forward", reason: "early", probability: Some(0.25) };
        let rows = rows(&[
            TcpRecord { at: Time::from_nanos(1_000_000_001), flow: "f.0", subflow: None, event: TcpEvent::Ack(ack) },
            judged(lost, Some(12_345_678)),
            judged(lost, Some(-1)),
            judged(LossVerdict::Reordered, None),
        ]);
        assert!(rows.iter().all(|row| row.len() == rows[0].len()), "{rows:?}");
        for (row, column, value) in [
            (1, "time_s", "1.000000001"),
            (1, "event", "ack"),
            (1, "ack_bytes", "2896"),
            (1, "sacked_out", "2"),
            (1, "fackets_out", "4"),
            (1, "reordering", "8"),
            (1, "ca_state", "Recovery"),
            (1, "ssthresh_bytes", ""),
            (1, "pipe_bytes", "7240"),
            (1, "rtt_ms", ""),
            (1, "srtt_ms", "20.500000"),
            (1, "rto_ms", "220.000000"),
            (1, "seq_bytes", ""),
            (1, "subflow", ""),
            (2, "subflow", "2"),
            (2, "time_s", "1.750000000"),
            (2, "since_s", "1.500000000"),
            (2, "rto_ms", ""),
            (2, "seq_bytes", "1448"),
            (2, "len_bytes", "100"),
            (2, "cause", "timeout"),
            (2, "verdict", "lost"),
            (2, "late_ms", "12.345678"),
            (2, "link", "a.forward"),
            (2, "reason", "early"),
            (2, "probability", "0.25"),
            (3, "late_ms", "-0.000001"),
            (4, "subflow", "2"),
            (4, "verdict", "reordered"),
            (4, "late_ms", ""),
            (4, "link", ""),
        ] {
            assert_eq!(of(&rows, row, column), value, "{column} of row {row}");
        }
    }
}
