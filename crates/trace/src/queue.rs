//! `queue.csv`: a row for every decision of a queue.

use std::fmt;
use std::io::{self, Write};
use std::ops::ControlFlow;

use ackclock_units::{Span, Time};

/// A decision of a queue about one packet; the fields are the columns.
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct QueueRecord<'a> {
    /// When.
    pub at: Time,
    /// The link direction.
    pub link: &'a str,
    /// Which packet of those offered to this queue, from 1.
    pub packet: u64,
    /// The packet's flow.
    pub flow: &'a str,
    /// Offset of its payload in the stream; `None` without payload.
    pub seq: Option<u64>,
    /// Its bytes in the queue's books.
    pub size: u32,
    /// What was decided.
    pub action: QueueAction,
    /// How long the packet has been in the queue; `None` on its arrival.
    pub sojourn: Option<Span>,
    /// The law's drop or mark probability.
    pub probability: Option<f64>,
    /// The law's estimate of the delay.
    pub delay: Option<Span>,
    /// The law's average queue in bytes.
    pub average: Option<f64>,
    /// Whether the law is in its dropping state.
    pub dropping: Option<bool>,
    /// Packets that wait afterwards.
    pub backlog_packets: u64,
    /// Their bytes.
    pub backlog_bytes: u64,
}

/// What a queue decides about a packet.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum QueueAction {
    /// It is taken in.
    Enqueue,
    /// It goes to the transmitter.
    Dequeue,
    /// It is marked CE.
    Mark,
    /// It is discarded, for a reason.
    Drop(&'static str),
}

/// Where the records of a run go, in order of time.
pub trait QueueSink: fmt::Debug {
    /// Takes a record; may break the run off.
    fn record(&mut self, record: &QueueRecord<'_>) -> ControlFlow<()>;
}

/// Rows are handed on in pieces of about this many bytes.
const PIECE: usize = 64 << 10;

/// No row is longer, unless its names are.
const ROW: usize = 512;

/// The first line of a [`QueueCsv`].
pub const QUEUE_COLUMNS: &str = "time_s,link,packet,flow,seq_bytes,size_bytes,action,reason,sojourn_ms,probability,\
                                 delay_ms,average_bytes,dropping,backlog_packets,backlog_bytes";

/// Writes records as CSV (RFC 4180, lines end with a line feed). Allocates nothing for a row.
///
/// - `time_s`: when, to the nanosecond.
/// - `link`: the link direction, `bottleneck.forward`.
/// - `packet`: which packet, the n-th that was offered to this queue, from 1; the same in all of its rows.
/// - `flow`: whose packet it is, `reno.0`.
/// - `seq_bytes`: where its payload starts in the flow's stream: TCP's sequence number, counted from the first byte after
///   the SYN and without wrap. A retransmission has that of the original; empty for a packet without payload.
/// - `size_bytes`: what it counts in the queue, framing included.
/// - `action`: `enqueue`, `dequeue`, `mark` or `drop`.
/// - `reason`: of a drop, as the summary names it: `limit`, `early`, `delay`, ...
/// - `sojourn_ms`: how long the packet has been in the queue, to the nanosecond. Empty for what is decided on its arrival:
///   a drop without it is a packet that never got in.
/// - `probability`, `delay_ms`, `average_bytes`, `dropping` (1 or 0): the law's variables right after the decision: its
///   probability to drop or mark, the delay as it estimates it, its average queue, and whether it is in its dropping
///   state. Empty where the law has no such variable.
/// - `backlog_packets`, `backlog_bytes`: what waits after this row.
///
/// A packet is offered in one row, `enqueue` or a `drop` without sojourn time, and leaves in one, `dequeue` or a `drop`
/// with it. A `mark` stands before the row of the same packet and time that it goes with, and changes no backlog.
#[derive(Debug)]
pub struct QueueCsv<W> {
    out: W,
    piece: String,
    error: Option<io::Error>,
}

impl<W: Write> QueueCsv<W> {
    /// A file with nothing but its header.
    pub fn new(out: W) -> QueueCsv<W> {
        let mut piece = String::with_capacity(PIECE + ROW);
        piece.push_str(QUEUE_COLUMNS);
        piece.push('\n');
        QueueCsv { out, piece, error: None }
    }

    /// Writes what is left, and gives the writer back.
    ///
    /// # Errors
    /// The first error of the writer, whenever it happened. It has broken the run off then.
    pub fn finish(mut self) -> io::Result<W> {
        self.hand_on();
        match self.error {
            Some(error) => Err(error),
            None => Ok(self.out),
        }
    }

    fn hand_on(&mut self) {
        if self.error.is_none() {
            self.error = self.out.write_all(self.piece.as_bytes()).err();
        }
        self.piece.clear();
    }
}

impl<W: Write + fmt::Debug> QueueSink for QueueCsv<W> {
    fn record(&mut self, record: &QueueRecord<'_>) -> ControlFlow<()> {
        // A string takes whatever is written to it.
        let _ = row(&mut self.piece, record);
        if self.piece.len() >= PIECE {
            self.hand_on();
        }
        if self.error.is_some() { ControlFlow::Break(()) } else { ControlFlow::Continue(()) }
    }
}

fn row(out: &mut String, record: &QueueRecord<'_>) -> fmt::Result {
    let (action, reason) = match record.action {
        QueueAction::Enqueue => ("enqueue", ""),
        QueueAction::Dequeue => ("dequeue", ""),
        QueueAction::Mark => ("mark", ""),
        QueueAction::Drop(reason) => ("drop", reason),
    };
    whole(out, record.at.as_nanos() / 1_000_000_000);
    decimals(out, record.at.as_nanos() % 1_000_000_000, 9);
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
    if let Some(probability) = record.probability {
        // The shortest text that reads back as the same number.
        fmt::Write::write_fmt(out, format_args!("{probability:?}"))?;
    }
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

/// A time in ms, exact.
fn millis(out: &mut String, span: Option<Span>) {
    if let Some(span) = span {
        whole(out, span.as_nanos() / 1_000_000);
        decimals(out, span.as_nanos() % 1_000_000, 6);
    }
}

/// A whole number. The formatting machinery takes several times as long, and a row has many.
fn whole(out: &mut String, mut number: u64) {
    let mut digits = [b'0'; 20];
    let mut at = digits.len();
    loop {
        at -= 1;
        digits[at] = b'0' + (number % 10) as u8;
        number /= 10;
        if number == 0 {
            break;
        }
    }
    out.extend(digits[at..].iter().map(|&digit| char::from(digit)));
}

/// A point and `places` digits.
fn decimals(out: &mut String, mut number: u64, places: usize) {
    let mut digits = [b'0'; 9];
    for digit in digits[..places].iter_mut().rev() {
        *digit = b'0' + (number % 10) as u8;
        number /= 10;
    }
    out.push('.');
    out.extend(digits[..places].iter().map(|&digit| char::from(digit)));
}

/// A name, in quotes if it has to be. The ids of a scenario never have to.
fn text(out: &mut String, name: &str) {
    if !name.contains([',', '"', '\n', '\r']) {
        return out.push_str(name);
    }
    out.push('"');
    for c in name.chars() {
        if c == '"' {
            out.push('"');
        }
        out.push(c);
    }
    out.push('"');
}

#[cfg(test)]
mod tests;
