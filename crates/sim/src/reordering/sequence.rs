//! Places of packets in the order of TCP's sequence numbers.
//!
//! Data is sent for the first time in the order of its sequence numbers, so that the place of such
//! a transmission is the count of those before it. What is sent again has none, or, where the first
//! arrival of a segment counts ([`Firsts`]), that of what it repeats.

use std::collections::VecDeque;
use std::ops::ControlFlow;

use ackclock_trace::{
    DISPLACEMENT_THRESHOLD, DisplacementMeter, DisplacementRecord, DisplacementSink, PacketDisplacement,
};
use ackclock_units::Time;

use crate::index::FlowId;
use crate::truth::Truth;

/// Values attached to the transmissions of a flow that are on their way.
#[derive(Debug)]
struct OnTheirWay<T> {
    /// Number of the first of them.
    first: u64,
    /// Values by transmission; `None` once taken.
    known: VecDeque<Option<T>>,
}

impl<T> Default for OnTheirWay<T> {
    fn default() -> OnTheirWay<T> {
        OnTheirWay { first: 0, known: VecDeque::new() }
    }
}

impl<T> OnTheirWay<T> {
    /// Takes the value of a transmission that arrives or is lost, before its flow learns of it;
    /// only once. `learn` gives the values of new transmissions, from their first bytes and whether
    /// they are retransmissions.
    fn take(&mut self, number: u64, truth: &Truth, mut learn: impl FnMut(u64, bool) -> Option<T>) -> Option<T> {
        for (number, seq, again) in truth.sent_from(self.first + self.known.len() as u64) {
            if self.known.is_empty() {
                self.first = number;
            }
            // None is skipped, unless its fate was told before.
            self.known.resize_with((number - self.first) as usize, || None);
            self.known.push_back(learn(seq, again));
        }
        let taken = self.known.get_mut(number.checked_sub(self.first)? as usize)?.take();
        while let Some(None) = self.known.front() {
            self.known.pop_front();
            self.first += 1;
        }
        taken
    }
}

/// A transmission of new data.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) struct Ranked {
    /// Position in sequence order, from 0.
    pub(super) rank: u64,
    /// First byte in the stream.
    pub(super) seq: u64,
}

/// The places of a flow's transmissions that are on their way.
#[derive(Debug, Default)]
pub(super) struct Ranks {
    /// Ranks of transmissions; retransmissions have none.
    sent: OnTheirWay<Ranked>,
    /// The place of the next.
    next: u64,
}

impl Ranks {
    /// Takes the place of a transmission that arrives or is lost, before its flow learns of it;
    /// only once.
    pub(super) fn take(&mut self, number: u64, truth: &Truth) -> Option<Ranked> {
        let Ranks { sent, next } = self;
        sent.take(number, truth, |seq, again| {
            let ranked = (!again).then_some(Ranked { rank: *next, seq });
            *next += u64::from(!again);
            ranked
        })
    }
}

/// The segments of a flow that have not arrived, whichever transmission brings them.
#[derive(Debug, Default)]
pub(super) struct Firsts {
    /// The first byte of each transmission.
    sent: OnTheirWay<u64>,
    /// Segments in order of their first bytes.
    missing: VecDeque<Ranked>,
    /// The place of the next segment that is sent for the first time.
    next: u64,
}

impl Firsts {
    /// Notes an arriving transmission, before its flow learns of it; returns the place of its
    /// segment if that had not arrived. Segments are identified by their first byte: one that is
    /// split anew has a place only if it starts as before.
    pub(super) fn arrive(&mut self, number: u64, truth: &Truth) -> Option<u64> {
        let seq = self.take(number, truth)?;
        let found = self.missing.binary_search_by_key(&seq, |segment| segment.seq).ok()?;
        self.missing.remove(found).map(|segment| segment.rank)
    }

    /// A transmission is lost: another may bring its segment.
    pub(super) fn lose(&mut self, number: u64, truth: &Truth) {
        self.take(number, truth);
    }

    fn take(&mut self, number: u64, truth: &Truth) -> Option<u64> {
        let Firsts { sent, missing, next } = self;
        sent.take(number, truth, |seq, again| {
            if !again {
                missing.push_back(Ranked { rank: *next, seq });
                *next += 1;
            }
            Some(seq)
        })
    }
}

/// The displacements of packets that are recorded one by one.
#[derive(Debug, Default)]
pub(super) struct DisplacementRecording {
    /// Meters by the number of the flow.
    meters: Vec<Option<Box<DisplacementMeter>>>,
    rows: Vec<(FlowId, PacketDisplacement)>,
}

impl DisplacementRecording {
    fn meter(&mut self, flow: FlowId) -> &mut DisplacementMeter {
        let place = flow.index();
        if self.meters.len() <= place {
            self.meters.resize_with(place + 1, || None);
        }
        self.meters[place].get_or_insert_with(|| DisplacementMeter::new(DISPLACEMENT_THRESHOLD).into())
    }

    /// New data arrives.
    pub(super) fn arrive(&mut self, at: Time, flow: FlowId, Ranked { rank, seq }: Ranked) {
        let mut rows = std::mem::take(&mut self.rows);
        self.meter(flow).arrive(rank, seq, at, &mut |packet| rows.push((flow, packet)));
        self.rows = rows;
    }

    /// New data was lost.
    pub(super) fn lost(&mut self, flow: FlowId, rank: u64) {
        let mut rows = std::mem::take(&mut self.rows);
        self.meter(flow).lost(rank, &mut |packet| rows.push((flow, packet)));
        self.rows = rows;
    }

    /// The run has ended.
    pub(super) fn finish(&mut self) {
        let DisplacementRecording { meters, rows } = self;
        for (flow, meter) in meters.iter_mut().enumerate() {
            if let Some(meter) = meter {
                meter.finish(&mut |packet| rows.push((FlowId::new(flow), packet)));
            }
        }
    }

    /// The number of buffered rows.
    pub(super) fn waiting(&self) -> usize {
        self.rows.len()
    }

    /// Hands all rows on.
    pub(super) fn hand_on<'a>(
        &mut self,
        flow: impl Fn(FlowId) -> &'a str,
        sink: &mut dyn DisplacementSink,
    ) -> ControlFlow<()> {
        let mut rows = self.rows.drain(..);
        rows.try_for_each(|(of, packet)| sink.record(&DisplacementRecord { flow: flow(of), packet }))
    }
}

#[cfg(test)]
mod tests {
    use ackclock_tcp::{SentAs, Stamp};

    use super::*;
    use crate::record::SenderId;

    #[test]
    fn a_segment_arrives_for_the_first_time_by_any_of_its_transmissions() {
        let mut truth = Truth::new(SenderId::of(FlowId::new(0)));
        let send = |truth: &mut Truth, from: u64| {
            let stamp = Stamp { at: Time::from_millis(from), order: 0 };
            truth.sent(stamp, (from, from + 1000), SentAs::New, true)
        };
        let mut firsts = Firsts::default();
        let numbers: Vec<u64> = [0, 1000, 2000, 1000, 3000, 0].map(|from| send(&mut truth, from)).to_vec();
        // The second is lost and comes again; the first comes twice.
        assert_eq!(firsts.arrive(numbers[2], &truth), Some(2));
        firsts.lose(numbers[1], &truth);
        assert_eq!(firsts.arrive(numbers[5], &truth), Some(0));
        assert_eq!(firsts.arrive(numbers[4], &truth), Some(3));
        assert_eq!(firsts.arrive(numbers[0], &truth), None);
        assert_eq!(firsts.arrive(numbers[3], &truth), Some(1));
        assert!(firsts.missing.is_empty() && firsts.sent.known.is_empty());
        let more = send(&mut truth, 4000);
        assert_eq!(firsts.arrive(more, &truth), Some(4));
    }

    #[test]
    fn what_is_sent_again_has_no_place() {
        let mut truth = Truth::new(SenderId::of(FlowId::new(0)));
        let send = |truth: &mut Truth, from: u64| {
            let stamp = Stamp { at: Time::from_millis(from), order: 0 };
            truth.sent(stamp, (from, from + 1000), SentAs::New, true)
        };
        let mut ranks = Ranks::default();
        let numbers: Vec<u64> = [0, 1000, 2000, 1000, 3000].map(|from| send(&mut truth, from)).to_vec();
        let mut take = |truth: &Truth, number: u64| ranks.take(number, truth).map(|ranked| (ranked.rank, ranked.seq));
        // In any order, each once: the last is new data, the fourth is not.
        assert_eq!(take(&truth, numbers[4]), Some((3, 3000)));
        assert_eq!(take(&truth, numbers[0]), Some((0, 0)));
        assert_eq!(take(&truth, numbers[0]), None);
        truth.arrived(Time::from_millis(9), numbers[0], |_, _| true, None);
        assert_eq!(take(&truth, numbers[3]), None);
        let more = send(&mut truth, 4000);
        assert_eq!(take(&truth, more), Some((4, 4000)));
        assert_eq!(take(&truth, numbers[2]), Some((2, 2000)));
        assert_eq!(take(&truth, numbers[1]), Some((1, 1000)));
    }
}
