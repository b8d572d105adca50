//! `displacement.csv`: the displacement of each packet.

use std::collections::VecDeque;
use std::fmt;
use std::io::{self, Write};
use std::ops::ControlFlow;

use ackclock_units::Time;

use super::places::DisplacementWindow;
use crate::rows::{CsvRows, seconds, text, whole};

/// Finds the displacement of each packet of a stream, in the order of arrival.
#[derive(Clone, Debug)]
pub struct DisplacementMeter {
    places: DisplacementWindow,
    /// Packets whose displacement is not known, in order of arrival.
    waiting: VecDeque<PacketDisplacement>,
    /// Packets whose displacement has been passed on.
    done: u64,
}

/// The displacement of a packet.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct PacketDisplacement {
    /// Time of arrival.
    pub at: Time,
    /// First byte in the stream.
    pub seq: u64,
    /// Position in the numbering, from 0.
    pub number: u64,
    /// Receive index less position (RFC 5236 section 3.2); `None` if the packet is displaced by
    /// more than the threshold, or a copy.
    pub displacement: Option<i64>,
}

impl DisplacementMeter {
    /// A meter with this displacement threshold, packets.
    pub fn new(threshold: u32) -> DisplacementMeter {
        DisplacementMeter { places: DisplacementWindow::new(threshold), waiting: VecDeque::new(), done: 0 }
    }

    /// The packet with this place arrives. `known` gets those whose displacements are known now, in
    /// order of arrival.
    pub fn arrive(&mut self, number: u64, seq: u64, at: Time, known: &mut impl FnMut(PacketDisplacement)) {
        let tag = self.done + self.waiting.len() as u64;
        self.waiting.push_back(PacketDisplacement { at, seq, number, displacement: None });
        self.with(known, |places, placed| places.arrive(number, tag, placed));
    }

    /// The packet with this place will not arrive.
    pub fn lost(&mut self, number: u64, known: &mut impl FnMut(PacketDisplacement)) {
        self.with(known, |places, placed| places.lost(number, placed));
    }

    /// Ends the stream: packets that have not arrived are lost.
    pub fn finish(&mut self, known: &mut impl FnMut(PacketDisplacement)) {
        self.with(known, |places, placed| places.finish(placed));
        self.waiting.drain(..).for_each(known);
    }

    fn with<F: FnMut(PacketDisplacement)>(
        &mut self,
        known: &mut F,
        step: impl FnOnce(&mut DisplacementWindow, &mut dyn FnMut(u64, i64)),
    ) {
        let DisplacementMeter { places, waiting, done } = self;
        step(places, &mut |tag, by| {
            // Those before it have been passed over.
            while *done <= tag {
                let Some(packet) = waiting.pop_front() else { return };
                let displacement = (*done == tag).then_some(by);
                *done += 1;
                known(PacketDisplacement { displacement, ..packet });
            }
        });
    }
}

/// The displacement of a packet of a flow.
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct DisplacementRecord<'a> {
    /// The flow.
    pub flow: &'a str,
    /// The packet and its displacement.
    pub packet: PacketDisplacement,
}

/// The destination of a run's records, in order of time for each flow.
pub trait DisplacementSink: fmt::Debug {
    /// Takes a record; may break the run off.
    fn record(&mut self, record: &DisplacementRecord<'_>) -> ControlFlow<()>;
}

/// The first line of a [`DisplacementCsv`].
pub const DISPLACEMENT_COLUMNS: &str = "time_s,flow,seq_bytes,sequence,receive_index,displacement";

/// Writes records as CSV (RFC 4180, lines end with a line feed). Allocates nothing for a row.
///
/// - `time_s`: when the packet arrived. `flow`: whose it is. `seq_bytes`: its first byte in the
///   stream.
/// - `sequence`: its place, from 1; `receive_index`: the place that it ought to have had, where
///   what was lost leaves gaps in both; `displacement`: the index less the place, negative if
///   early. The last two are empty where it is beyond the threshold.
#[derive(Debug)]
pub struct DisplacementCsv<W>(CsvRows<W>);

impl<W: Write> DisplacementCsv<W> {
    /// A file that contains only its header.
    pub fn new(out: W) -> DisplacementCsv<W> {
        DisplacementCsv(CsvRows::new(out, DISPLACEMENT_COLUMNS))
    }

    /// Writes what is left, and gives the writer back.
    ///
    /// # Errors
    /// The first error of the writer, whenever it happened. It has broken the run off then.
    pub fn finish(self) -> io::Result<W> {
        self.0.finish()
    }
}

impl<W: Write + fmt::Debug> DisplacementSink for DisplacementCsv<W> {
    fn record(&mut self, record: &DisplacementRecord<'_>) -> ControlFlow<()> {
        let PacketDisplacement { at, seq, number, displacement } = record.packet;
        self.0.add(|out| {
            seconds(out, at);
            out.push(',');
            text(out, record.flow);
            for value in [seq, number + 1] {
                out.push(',');
                whole(out, value);
            }
            out.push(',');
            if let Some(by) = displacement {
                whole(out, (number + 1).saturating_add_signed(by));
                out.push_str(if by < 0 { ",-" } else { "," });
                whole(out, by.unsigned_abs());
            } else {
                out.push(',');
            }
            out.push('\n');
            Ok(())
        })
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    /// The displacements of packets that arrive in this order, 1000 bytes and 1 ms each; a negative
    /// number is lost at that moment.
    fn displacements(threshold: u32, events: &[i64]) -> Vec<(u64, Option<i64>)> {
        let (mut meter, mut found) = (DisplacementMeter::new(threshold), Vec::new());
        let mut known = |packet: PacketDisplacement| {
            assert_eq!(packet.seq, packet.number * 1000);
            found.push((packet.at.as_nanos() / 1_000_000, packet.number, packet.displacement));
        };
        for (millis, &event) in events.iter().enumerate() {
            match event.try_into() {
                Ok(number) => meter.arrive(number, 1000 * number, Time::from_millis(millis as u64), &mut known),
                Err(_) => meter.lost(event.unsigned_abs(), &mut known),
            }
        }
        meter.finish(&mut known);
        assert!(found.is_sorted_by_key(|found| found.0), "in order of arrival: {found:?}");
        found.into_iter().map(|(_, number, by)| (number, by)).collect()
    }

    #[test]
    fn displacements_are_those_of_the_standard() {
        // RFC 5236 section 3.3: 1 4 3 5 3 8 7 6, of which 2 is lost and 3 comes twice, have the
        // indices 1 3 4 5 - 6 7 8. So 4 is early by 1, 3 late by 1, 8 early by 2, 6 late by 2. Here
        // places begin with 0, and that one (1 here) is lost is known, or inferred.
        let expected = |found: &[(u64, Option<i64>)]| {
            let placed: Vec<(u64, i64)> = found.iter().filter_map(|&(number, by)| Some((number, by?))).collect();
            assert_eq!(placed, [(0, 0), (3, -1), (2, 1), (4, 0), (7, -2), (6, 0), (5, 2)]);
        };
        expected(&displacements(2, &[0, 3, 2, 4, 2, 7, 6, 5]));
        expected(&displacements(100, &[0, -1, 3, 2, 4, 2, 7, 6, 5]));
        expected(&displacements(100, &[0, 3, 2, 4, 2, 7, -1, 6, 5]));
    }

    #[test]
    fn what_is_beyond_the_threshold_has_a_row_without_a_displacement() {
        // Three packets wait for 0, one more than the threshold: it is taken for lost, and comes.
        let found = displacements(2, &[1, 2, 3, 0, 4]);
        assert_eq!(found, [(1, Some(0)), (2, Some(0)), (3, Some(0)), (0, None), (4, Some(0))]);
        let mut csv = DisplacementCsv::new(Vec::new());
        let packet = |displacement| PacketDisplacement { at: Time::from_millis(1), seq: 7, number: 4, displacement };
        for displacement in [Some(-2), Some(3), None] {
            let record = DisplacementRecord { flow: "f.0", packet: packet(displacement) };
            assert!(csv.record(&record).is_continue());
        }
        let text = String::from_utf8(csv.finish().unwrap()).unwrap();
        let start = "0.001000000,f.0,7,5";
        assert_eq!(text, format!("{DISPLACEMENT_COLUMNS}\n{start},3,-2\n{start},8,3\n{start},,\n"));
    }
}
