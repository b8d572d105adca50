//! `queue.csv`: a row for every decision of a queue.

use std::fmt;
use std::io::{self, Write};
use std::ops::ControlFlow;

use ackclock_units::{Span, Time};

use crate::rows::{CsvRows, millis, number, seconds, text, whole};

/// A decision of a queue about one packet; the fields are the columns.
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct QueueRecord<'a> {
    /// Time of the decision.
    pub at: Time,
    /// The link direction.
    pub link: &'a str,
    /// Number of the packet among those offered to this queue, from 1.
    pub packet: u64,
    /// The packet's flow.
    pub flow: &'a str,
    /// Offset of its payload in the stream; `None` without payload.
    pub seq: Option<u64>,
    /// Size of the packet as the queue counts it, bytes.
    pub size: u32,
    /// The decision.
    pub action: QueueAction,
    /// Sojourn time of the packet; `None` on its arrival.
    pub sojourn: Option<Span>,
    /// The law's drop or mark probability.
    pub probability: Option<f64>,
    /// The law's estimate of the delay.
    pub delay: Option<Span>,
    /// The law's average queue in bytes.
    pub average: Option<f64>,
    /// True if the law is in its dropping state.
    pub dropping: Option<bool>,
    /// Packets that wait afterwards.
    pub backlog_packets: u64,
    /// Their bytes.
    pub backlog_bytes: u64,
}

/// A queue's decision on a packet.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum QueueAction {
    /// The packet is enqueued.
    Enqueue,
    /// The packet is dequeued for transmission.
    Dequeue,
    /// The packet is marked CE.
    Mark,
    /// The packet is dropped, for a reason.
    Drop(&'static str),
}

/// The destination of a run's records, in order of time.
pub trait QueueSink: fmt::Debug {
    /// Takes a record; may break the run off.
    fn record(&mut self, record: &QueueRecord<'_>) -> ControlFlow<()>;
}

/// The first line of a [`QueueCsv`].
pub const QUEUE_COLUMNS: &str = "time_s,link,packet,flow,seq_bytes,size_bytes,action,reason,sojourn_ms,probability,\
                                 delay_ms,average_bytes,dropping,backlog_packets,backlog_bytes";

/// Writes records as CSV (RFC 4180, lines end with a line feed). Allocates nothing for a row.
///
/// - `time_s`: when, to the nanosecond.
/// - `link`: the link direction, `bottleneck.forward`.
/// - `packet`: which packet, the n-th that was offered to this queue, from 1; the same in all of
///   its rows.
/// - `flow`: whose packet it is, `reno.0`.
/// - `seq_bytes`: where its payload starts in the flow's stream: TCP's sequence number, counted
///   from the first byte after the SYN and without wrap. A retransmission has that of the original;
///   empty for a packet without payload.
/// - `size_bytes`: what it counts in the queue, framing included.
/// - `action`: `enqueue`, `dequeue`, `mark` or `drop`.
/// - `reason`: of a drop, as the summary names it: `limit`, `early`, `delay`, ...
/// - `sojourn_ms`: how long the packet has been in the queue, to the nanosecond. Empty for what is
///   decided on its arrival: a drop without it is a packet that never got in.
/// - `probability`, `delay_ms`, `average_bytes`, `dropping` (1 or 0): the law's variables right
///   after the decision: its probability to drop or mark, the delay as it estimates it, its average
///   queue, and whether it is in its dropping state. Empty where the law has no such variable.
/// - `backlog_packets`, `backlog_bytes`: what waits after this row.
///
/// A packet is offered in one row, `enqueue` or a `drop` without sojourn time, and leaves in one,
/// `dequeue` or a `drop` with it. A `mark` stands before the row of the same packet and time that
/// it goes with, and changes no backlog.
#[derive(Debug)]
pub struct QueueCsv<W>(CsvRows<W>);

impl<W: Write> QueueCsv<W> {
    /// A file that contains only its header.
    pub fn new(out: W) -> QueueCsv<W> {
        QueueCsv(CsvRows::new(out, QUEUE_COLUMNS))
    }

    /// Writes what is left, and gives the writer back.
    ///
    /// # Errors
    /// The first error of the writer, whenever it happened. It has broken the run off then.
    pub fn finish(self) -> io::Result<W> {
        self.0.finish()
    }
}

impl<W: Write + fmt::Debug> QueueSink for QueueCsv<W> {
    fn record(&mut self, record: &QueueRecord<'_>) -> ControlFlow<()> {
        self.0.add(|out| row(out, record))
    }
}

fn row(out: &mut String, record: &QueueRecord<'_>) -> fmt::Result {
    let (action, reason) = match record.action {
        QueueAction::Enqueue => ("enqueue", ""),
        QueueAction::Dequeue => ("dequeue", ""),
        QueueAction::Mark => ("mark", ""),
        QueueAction::Drop(reason) => ("drop", reason),
    };
    seconds(out, record.at);
    out.push(',');
    text(out, record.link);
    out.push(',');
    whole(out, record.packet);
    out.push(',');
    text(out, record.flow);
    out.push(',');
    if let Some(seq) = record.seq {
        whole(out, seq);
    }
    out.push(',');
    whole(out, u64::from(record.size));
    out.push(',');
    out.push_str(action);
    out.push(',');
    text(out, reason);
    out.push(',');
    millis(out, record.sojourn);
    out.push(',');
    number(out, record.probability)?;
    out.push(',');
    millis(out, record.delay);
    out.push(',');
    if let Some(average) = record.average {
        fmt::Write::write_fmt(out, format_args!("{average:.3}"))?;
    }
    out.push(',');
    out.push_str(match record.dropping {
        Some(true) => "1",
        Some(false) => "0",
        None => "",
    });
    out.push(',');
    whole(out, record.backlog_packets);
    out.push(',');
    whole(out, record.backlog_bytes);
    out.push('\n');
    Ok(())
}

#[cfg(test)]
mod tests;
