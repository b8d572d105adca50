//! `series.csv`: flows and link directions over time.

use std::fmt;
use std::io::{self, Write};
use std::ops::ControlFlow;

use ackclock_units::{Span, Time};

use crate::rows::{CsvRows, millis, number, seconds, text, whole};

/// The measures of a flow or a link direction in one interval of a run.
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct SeriesRecord<'a> {
    /// Start of the interval.
    pub from: Time,
    /// End of the interval, exclusive.
    pub to: Time,
    /// The flow, also of a subflow, the link direction, or this and the class.
    pub id: &'a str,
    /// Bytes of packets: those that arrived at the flow's receiver, or that left the link's queue.
    pub bytes: u64,
    /// The same in the sliding window that ends with the interval, and the window's length; `None`
    /// before there is a whole window.
    pub window: Option<(u64, Span)>,
    /// Data packets that the flow's sender sent, or packets that left the link's queue.
    pub packets: u64,
    /// Measures of flows or of links only.
    pub of: SeriesOf,
}

/// Whose values a [`SeriesRecord`] has.
#[derive(Clone, Copy, Debug, PartialEq)]
pub enum SeriesOf {
    /// Measures of a flow.
    Flow(FlowPoint),
    /// Measures of a subflow of a flow, with the number of its path, from 1.
    Subflow(u16, FlowPoint),
    /// The sums of flows of which the summary has sums alone; none of their variables.
    Group(FlowPoint),
    /// Measures of a link direction.
    Link(LinkPoint),
    /// Measures of a class of its queue.
    Class(LinkPoint),
}

/// The values of a flow. Variables of the sender are those at the end of the interval; `None` where
/// it does not tell them.
#[derive(Clone, Copy, Debug, Default, PartialEq)]
pub struct FlowPoint {
    /// Bytes of the stream that the receiving application read.
    pub delivered_bytes: u64,
    /// Data packets sent again.
    pub retransmitted_packets: u64,
    /// Expiries of the retransmission timer.
    pub timeouts: u64,
    /// Mean of the RTT samples.
    pub rtt: Option<Span>,
    /// Smoothed RTT.
    pub srtt: Option<Span>,
    /// Congestion window, bytes.
    pub cwnd: Option<u64>,
    /// Slow start threshold, bytes; `None` before there is one.
    pub ssthresh: Option<u64>,
    /// Bytes that are believed to be in the network.
    pub in_flight: Option<u64>,
    /// The reordering that loss detection tolerates, segments: the adaptive threshold.
    pub reordering: Option<u64>,
    /// The congestion state, by Linux's names.
    pub ca_state: Option<&'static str>,
    /// Bytes that wait at the receiver's connection for bytes before them; `None` but for flows of
    /// several subflows.
    pub reordered_bytes: Option<u64>,
    /// Bytes of responses that the client at the sender read; `None` but for flows of clients.
    pub response_bytes: Option<u64>,
}

/// The values of a link direction.
#[derive(Clone, Copy, Debug, Default, PartialEq)]
pub struct LinkPoint {
    /// Packets that the queue dropped.
    pub dropped_packets: u64,
    /// Packets that the link lost behind its queue.
    pub lost_packets: u64,
    /// Packets that the queue marked.
    pub marked_packets: u64,
    /// Mean time in the queue of the packets that left it.
    pub sojourn: Option<Span>,
    /// Packets in the queue at the end of the interval.
    pub backlog_packets: u64,
    /// Their bytes.
    pub backlog_bytes: u64,
    /// The drop or mark probability at the end of the interval; `None` where the law has none.
    pub probability: Option<f64>,
    /// The link's rate; the mean of what was possible on a link that changes. `None` without limit.
    pub rate_bps: Option<u64>,
    /// The share of the rate that was used.
    pub utilization: f64,
}

/// The destination of a run's records, in order of time; at equal times flows come first, then
/// groups, then links, each before its classes.
pub trait SeriesSink: fmt::Debug {
    /// Takes a record; may break the run off.
    fn record(&mut self, record: &SeriesRecord<'_>) -> ControlFlow<()>;
}

/// The destination of a series that is watched during the run, in the same order. Each interval is
/// passed on as soon as it has ended.
pub trait WatchSink: fmt::Debug {
    /// Length of the first interval.
    fn every(&self) -> Span;

    /// Takes a record.
    fn record(&mut self, record: &SeriesRecord<'_>);

    /// All records of the interval that ended at `to` were taken. Returns how long the next but one
    /// is: the next has begun.
    fn passed(&mut self, to: Time) -> Span;
}

/// The value of a column.
#[derive(Clone, Copy, Debug)]
enum SeriesCell {
    Count(Option<u64>),
    /// Bytes in a time, shown in bit/s.
    Rate(Option<(u64, Span)>),
    /// Shown in ms.
    Time(Option<Span>),
    Number(Option<f64>),
    Share(f64),
    Name(Option<&'static str>),
}

/// A column of the series, with its values in rows of flows and groups and in rows of links.
struct SeriesColumn {
    key: &'static str,
    flow: Option<fn(&SeriesRecord<'_>, &FlowPoint) -> SeriesCell>,
    link: Option<fn(&SeriesRecord<'_>, &LinkPoint) -> SeriesCell>,
    /// True for a column of numbers.
    is_number: bool,
}

impl SeriesColumn {
    const fn flow(key: &'static str, value: fn(&SeriesRecord<'_>, &FlowPoint) -> SeriesCell) -> SeriesColumn {
        SeriesColumn { key, flow: Some(value), link: None, is_number: true }
    }

    const fn link(key: &'static str, value: fn(&SeriesRecord<'_>, &LinkPoint) -> SeriesCell) -> SeriesColumn {
        SeriesColumn { key, flow: None, link: Some(value), is_number: true }
    }

    /// One with the same meaning for both.
    const fn both(
        key: &'static str,
        flow: fn(&SeriesRecord<'_>, &FlowPoint) -> SeriesCell,
        link: fn(&SeriesRecord<'_>, &LinkPoint) -> SeriesCell,
    ) -> SeriesColumn {
        SeriesColumn { key, flow: Some(flow), link: Some(link), is_number: true }
    }

    const fn aside(self) -> SeriesColumn {
        SeriesColumn { is_number: false, ..self }
    }
}

/// The columns behind those of the interval and of the name.
const COLUMNS: [SeriesColumn; 24] = [
    SeriesColumn::both("throughput_bps", |row, _| row.rate(Some(row.bytes)), |row, _| row.rate(Some(row.bytes))),
    SeriesColumn::both(
        "window_throughput_bps",
        |row, _| SeriesCell::Rate(row.window),
        |row, _| SeriesCell::Rate(row.window),
    )
    .aside(),
    SeriesColumn::flow("goodput_bps", |row, flow| row.rate(Some(flow.delivered_bytes))),
    SeriesColumn::both(
        "packets",
        |row, _| SeriesCell::Count(Some(row.packets)),
        |row, _| SeriesCell::Count(Some(row.packets)),
    ),
    SeriesColumn::flow("retransmitted_packets", |_, flow| SeriesCell::Count(Some(flow.retransmitted_packets))),
    SeriesColumn::flow("timeouts", |_, flow| SeriesCell::Count(Some(flow.timeouts))),
    SeriesColumn::flow("rtt_ms", |_, flow| SeriesCell::Time(flow.rtt)),
    SeriesColumn::flow("srtt_ms", |_, flow| SeriesCell::Time(flow.srtt)),
    SeriesColumn::flow("cwnd_bytes", |_, flow| SeriesCell::Count(flow.cwnd)),
    SeriesColumn::flow("ssthresh_bytes", |_, flow| SeriesCell::Count(flow.ssthresh)),
    SeriesColumn::flow("in_flight_bytes", |_, flow| SeriesCell::Count(flow.in_flight)),
    SeriesColumn::link("dropped_packets", |_, link| SeriesCell::Count(Some(link.dropped_packets))),
    SeriesColumn::link("lost_packets", |_, link| SeriesCell::Count(Some(link.lost_packets))),
    SeriesColumn::link("marked_packets", |_, link| SeriesCell::Count(Some(link.marked_packets))),
    SeriesColumn::link("sojourn_ms", |_, link| SeriesCell::Time(link.sojourn)),
    SeriesColumn::link("backlog_packets", |_, link| SeriesCell::Count(Some(link.backlog_packets))),
    SeriesColumn::link("backlog_bytes", |_, link| SeriesCell::Count(Some(link.backlog_bytes))),
    SeriesColumn::link("probability", |_, link| SeriesCell::Number(link.probability)),
    SeriesColumn::link("rate_bps", |_, link| SeriesCell::Count(link.rate_bps)),
    SeriesColumn::link("utilization", |_, link| SeriesCell::Share(link.utilization)),
    SeriesColumn::flow("reordering", |_, flow| SeriesCell::Count(flow.reordering)),
    SeriesColumn::flow("ca_state", |_, flow| SeriesCell::Name(flow.ca_state)).aside(),
    SeriesColumn::flow("reordered_bytes", |_, flow| SeriesCell::Count(flow.reordered_bytes)),
    SeriesColumn::flow("response_goodput_bps", |row, flow| row.rate(flow.response_bytes)),
];

/// The columns with numbers of flows and groups, in the order of [`SeriesRecord::flow_numbers`].
pub const FLOW_NUMBERS: [&str; 13] = numbers(true);

/// The columns with numbers of links, in the order of [`SeriesRecord::link_numbers`].
pub const LINK_NUMBERS: [&str; 11] = numbers(false);

const fn numbers<const COUNT: usize>(of_flows: bool) -> [&'static str; COUNT] {
    let (mut keys, mut count, mut place) = ([""; COUNT], 0, 0);
    while place < COLUMNS.len() {
        let column = &COLUMNS[place];
        if column.is_number && (if of_flows { column.flow.is_some() } else { column.link.is_some() }) {
            keys[count] = column.key;
            count += 1;
        }
        place += 1;
    }
    assert!(count == COUNT, "as many as there are");
    keys
}

impl SeriesCell {
    fn number(self) -> Option<f64> {
        match self {
            SeriesCell::Count(count) => count.map(|count| count as f64),
            SeriesCell::Rate(rate) => {
                let (bytes, length) = rate.map(|(bytes, length)| (bytes, length.as_secs_f64()))?;
                (length > 0.0).then(|| bytes as f64 * 8.0 / length)
            }
            SeriesCell::Time(time) => time.map(Span::as_millis_f64),
            SeriesCell::Number(number) => number,
            SeriesCell::Share(share) => Some(share),
            SeriesCell::Name(_) => None,
        }
    }

    fn write(self, out: &mut String) -> fmt::Result {
        match self {
            SeriesCell::Count(count) => count.into_iter().for_each(|count| whole(out, count)),
            SeriesCell::Rate(value) => value.into_iter().for_each(|(bytes, length)| rate(out, bytes, length)),
            SeriesCell::Time(time) => millis(out, time),
            SeriesCell::Number(value) => number(out, value)?,
            SeriesCell::Share(share) => fmt::Write::write_fmt(out, format_args!("{share:.6}"))?,
            SeriesCell::Name(name) => out.push_str(name.unwrap_or("")),
        }
        Ok(())
    }
}

impl SeriesRecord<'_> {
    fn rate(&self, bytes: Option<u64>) -> SeriesCell {
        SeriesCell::Rate(bytes.map(|bytes| (bytes, self.to.since(self.from))))
    }

    /// The values of a flow or a group, in the order of [`FLOW_NUMBERS`].
    pub fn flow_numbers(&self, flow: &FlowPoint) -> [Option<f64>; FLOW_NUMBERS.len()] {
        let mut values = COLUMNS.iter().filter(|column| column.is_number).filter_map(|column| column.flow);
        std::array::from_fn(|_| values.next().and_then(|value| value(self, flow).number()))
    }

    /// The values of a link direction, in the order of [`LINK_NUMBERS`].
    pub fn link_numbers(&self, link: &LinkPoint) -> [Option<f64>; LINK_NUMBERS.len()] {
        let mut values = COLUMNS.iter().filter(|column| column.is_number).filter_map(|column| column.link);
        std::array::from_fn(|_| values.next().and_then(|value| value(self, link).number()))
    }
}

/// Writes records as CSV (RFC 4180, lines end with a line feed): a row for each flow and link
/// direction and each interval. Allocates nothing for a row.
///
/// - `from_s`, `to_s`: the interval. What happens at its end belongs to the next one. The last one
///   ends with the run, and may be shorter.
/// - `kind`: `flow`, `subflow` (of a flow over Multipath TCP, behind its row), `group` (the flows
///   of a workload, or others of which the summary has sums alone, together), `link`, or `class`
///   (of a tree, behind the row of its link). `id`: the flow, `reno.0`, the subflow,
///   `reno.0.subflow1`, the group, `web`, the link direction, `bottleneck.forward`, or the class,
///   `bottleneck.forward.voice`.
/// - `throughput_bps`: bits per second of packets that arrived at the receiver, headers included,
///   or that left the link's queue, framing included. `window_throughput_bps`: the same in the
///   sliding window that ends at `to_s`, as TEACUP plots it; empty until there is a whole one.
/// - `packets`: data packets that the sender sent, or packets that left the queue.
///
/// The columns of flows, subflows and groups, empty for links:
///
/// - `goodput_bps`: bits per second that the receiving application read; of a subflow, that the
///   receiver's connection got by it.
/// - `retransmitted_packets`, `timeouts`: data packets sent again, and expiries of the timer.
/// - `rtt_ms`: mean of the RTT samples in the interval; empty without any.
/// - `srtt_ms`, `cwnd_bytes`, `ssthresh_bytes`, `in_flight_bytes`: the sender's variables at
///   `to_s`; empty where it does not tell them. Over Multipath TCP a flow has the smallest smoothed
///   RTT of its open subflows, and the sums of their windows and of what they have in flight.
///
/// The columns of links, empty for flows:
///
/// - `dropped_packets`, `lost_packets`, `marked_packets`: packets that the queue dropped, that were
///   lost behind it, and that the queue marked.
/// - `sojourn_ms`: mean time in the queue of the packets that left it; empty without any.
/// - `backlog_packets`, `backlog_bytes`, `probability`: the queue at `to_s`; the last one is empty
///   where the law has no probability.
/// - `rate_bps`, `utilization`: the link's rate (the mean of what was possible on one that changes;
///   empty without limit), and the share of it that was used. A class that borrows uses more than
///   its rate. Rows of classes have no sojourn time, and their packets are in that of the link.
///
/// The last columns, of flows again, empty for groups and links, and where the sender does not tell
/// them:
///
/// - `reordering`: how far, in segments, what arrives later may be reported without its being taken
///   for lost, at `to_s`: 3, unless the host adapts it.
/// - `ca_state`: the sender's congestion state at `to_s`, by Linux's names: `Open`, `Disorder`,
///   `CWR`, `Recovery` or `Loss`.
/// - `reordered_bytes`: bytes that wait at the receiver's connection for bytes before them, at
///   `to_s`; only of flows over Multipath TCP.
/// - `response_goodput_bps`: bits per second of responses that the client at the sender read; only
///   of flows with a client.
///
/// Counts of all rows of flows and groups add up to those of the summary, those of subflows to its
/// subflows', and rates times the lengths of the intervals to its bytes.
#[derive(Debug)]
pub struct SeriesCsv<W>(CsvRows<W>);

impl<W: Write> SeriesCsv<W> {
    /// A file that contains only its header.
    pub fn new(out: W) -> SeriesCsv<W> {
        SeriesCsv(CsvRows::new(out, &header()))
    }

    /// Writes what is left, and gives the writer back.
    ///
    /// # Errors
    /// The first error of the writer, whenever it happened. It has broken the run off then.
    pub fn finish(self) -> io::Result<W> {
        self.0.finish()
    }
}

impl<W: Write + fmt::Debug> SeriesSink for SeriesCsv<W> {
    fn record(&mut self, record: &SeriesRecord<'_>) -> ControlFlow<()> {
        self.0.add(|out| row(out, record))
    }
}

/// The first line of a [`SeriesCsv`].
fn header() -> String {
    ["from_s", "to_s", "kind", "id"].into_iter().chain(COLUMNS.map(|column| column.key)).collect::<Vec<_>>().join(",")
}

fn row(out: &mut String, record: &SeriesRecord<'_>) -> fmt::Result {
    seconds(out, record.from);
    out.push(',');
    seconds(out, record.to);
    out.push_str(match record.of {
        SeriesOf::Flow(_) => ",flow,",
        SeriesOf::Subflow(..) => ",subflow,",
        SeriesOf::Group(_) => ",group,",
        SeriesOf::Link(_) => ",link,",
        SeriesOf::Class(_) => ",class,",
    });
    text(out, record.id);
    if let SeriesOf::Subflow(number, _) = record.of {
        out.push_str(".subflow");
        whole(out, number.into());
    }
    for column in &COLUMNS {
        out.push(',');
        let cell = match &record.of {
            SeriesOf::Flow(flow) | SeriesOf::Subflow(_, flow) | SeriesOf::Group(flow) => {
                column.flow.map(|value| value(record, flow))
            }
            SeriesOf::Link(link) | SeriesOf::Class(link) => column.link.map(|value| value(record, link)),
        };
        cell.map_or(Ok(()), |cell| cell.write(out))?;
    }
    out.push('\n');
    Ok(())
}

/// Bytes per time as whole bits per second, to the nearest.
fn rate(out: &mut String, bytes: u64, length: Span) {
    let nanos = u128::from(length.as_nanos()).max(1);
    let bits = (u128::from(bytes) * 8_000_000_000 + nanos / 2) / nanos;
    whole(out, u64::try_from(bits).unwrap_or(u64::MAX));
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn rows_have_the_columns_of_their_kind() {
        let mut csv = SeriesCsv::new(Vec::new());
        let flow = FlowPoint {
            delivered_bytes: 1000,
            retransmitted_packets: 1,
            timeouts: 0,
            rtt: Some(Span::from_micros(20_500)),
            srtt: Some(Span::from_millis(20)),
            cwnd: Some(14_480),
            ssthresh: None,
            in_flight: Some(2896),
            reordering: Some(3),
            ca_state: Some("CWR"),
            reordered_bytes: None,
            response_bytes: Some(2000),
        };
        let link = LinkPoint {
            dropped_packets: 2,
            lost_packets: 0,
            marked_packets: 3,
            sojourn: Some(Span::from_millis(5)),
            backlog_packets: 4,
            backlog_bytes: 6000,
            probability: Some(0.25),
            rate_bps: Some(1_000_000),
            utilization: 0.5,
        };
        let record = SeriesRecord {
            from: Time::from_millis(500),
            to: Time::from_millis(1000),
            id: "reno.0",
            bytes: 1040,
            window: Some((3000, Span::from_millis(1500))),
            packets: 7,
            of: SeriesOf::Flow(flow),
        };
        assert!(csv.record(&record).is_continue());
        let of = SeriesOf::Subflow(2, FlowPoint { reordered_bytes: Some(7), response_bytes: None, ..flow });
        assert!(csv.record(&SeriesRecord { of, ..record }).is_continue());
        let of = SeriesOf::Link(link);
        assert!(csv.record(&SeriesRecord { id: "wire.forward", window: None, of, ..record }).is_continue());
        let written = String::from_utf8(csv.finish().unwrap()).unwrap();
        let rows = "0.500000000,1.000000000,flow,reno.0,16640,16000,16000,7,1,0,20.500000,20.000000,14480,,2896,,,,,,,,,,3,CWR,,32000\n\
                    0.500000000,1.000000000,subflow,reno.0.subflow2,16640,16000,16000,7,1,0,20.500000,20.000000,14480,,2896,,,,,,,,,,3,CWR,7,\n\
                    0.500000000,1.000000000,link,wire.forward,16640,,,7,,,,,,,,2,0,3,5.000000,4,6000,0.25,1000000,0.500000,,,,\n";
        assert_eq!(written, format!("{}\n{rows}", header()));
        // The numbers are those of the columns.
        let header = header();
        let header: Vec<&str> = header.split(',').collect();
        let cells = |row: &str, columns: &[&str]| -> Vec<Option<f64>> {
            let cells: Vec<&str> = row.split(',').collect();
            let place = |column: &&str| header.iter().position(|name| name == column).expect("a column");
            columns.iter().map(|column| cells[place(column)].parse().ok()).collect()
        };
        let rows: Vec<&str> = rows.lines().map(str::trim).collect();
        assert_eq!(cells(rows[0], &FLOW_NUMBERS), record.flow_numbers(&flow));
        assert_eq!(cells(rows[2], &LINK_NUMBERS), record.link_numbers(&link));
        let rows = rows.join("\n");
        assert!(rows.lines().all(|row| row.split(',').count() == header.len()));
    }
}
