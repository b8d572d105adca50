//! The measurements of a receiver of datagrams: delay, jitter, losses, order.
//!
//! # Source
//! One-way delay and loss: RFC 7679, RFC 7680. Interarrival jitter: RFC 3550 section 6.4.1 and
//! appendix A.8. Loss periods and distances: RFC 3357 sections 5 and 6. Reordering: RFC 4737
//! sections 3 (which packets are reordered), 4.1 (ratio), 4.2.1 (extent) and 4.2.2 (late time).
//!
//! # Departures
//! - A datagram is lost when the link tells so, not when a time has passed (RFC 7680 section 2.4):
//!   the run knows.
//! - Copies of what has arrived count as duplicates and as nothing else: jitter, delay and order
//!   are those of first copies. RFC 3550 takes every packet; RFC 4737 section 3.3 excludes them as
//!   here.
//! - The clock of the jitter has nanoseconds instead of the media's units.
//! - RFC 3357's noticeable rate is left out: it is the share of distances up to a constraint, which
//!   their distribution shows. RFC 4737's n-reordering (section 5) is left out, too.

use std::collections::VecDeque;

use ackclock_trace::{Histogram, LossBursts, Reordering};
use ackclock_units::{Span, Time};

use super::call::VoiceCall;
use super::loss_periods::LossPeriods;

/// The fate of a datagram.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum DatagramFate {
    OnWay,
    Arrived,
    /// The datagram arrived too late to be played.
    Late,
    Lost,
}

/// The measures of a receiver. Datagrams are numbered from 0 in the order of sending.
#[derive(Debug, Default)]
pub(crate) struct Reception {
    /// Fates of the datagrams from `decided` on.
    fates: VecDeque<DatagramFate>,
    /// All before this one have arrived or are lost.
    decided: u64,
    pub(crate) received: u64,
    pub(crate) lost: u64,
    pub(crate) duplicates: u64,
    pub(crate) delay: Histogram,
    pub(crate) jitter: Jitter,
    order: ArrivalOrder,
    losses: LossPeriods,
    /// The call that the datagrams carry, if they carry one.
    pub(crate) call: Option<VoiceCall>,
}

impl Reception {
    /// Nothing has arrived; `call` is what is heard of it, if it is a call.
    pub(crate) fn new(call: Option<VoiceCall>) -> Reception {
        Reception { call, ..Reception::default() }
    }

    /// A datagram has arrived that was sent at `sent`. `false` if a copy of it had before.
    pub(crate) fn arrived(&mut self, now: Time, number: u64, sent: Time) -> bool {
        let transit = now.since(sent);
        if self.fate(number).is_none_or(|fate| *fate != DatagramFate::OnWay) {
            self.duplicates += 1;
            return false;
        }
        let is_in_time = self.call.as_mut().is_none_or(|call| call.is_in_time(transit));
        if let Some(fate) = self.fate(number) {
            *fate = if is_in_time { DatagramFate::Arrived } else { DatagramFate::Late };
        }
        self.received += 1;
        self.delay.add(transit.as_nanos());
        self.jitter.arrived(transit);
        self.order.arrived(now, number);
        self.decide();
        true
    }

    /// The last copy of a datagram was lost. One of which a copy has arrived is not.
    pub(crate) fn lost(&mut self, number: u64) {
        if let Some(fate @ DatagramFate::OnWay) = self.fate(number) {
            *fate = DatagramFate::Lost;
            self.lost += 1;
            self.decide();
        }
    }

    /// The fate of a datagram; `None` if it was decided long ago.
    fn fate(&mut self, number: u64) -> Option<&mut DatagramFate> {
        let place = usize::try_from(number.checked_sub(self.decided)?).ok()?;
        if place >= self.fates.len() {
            self.fates.resize(place + 1, DatagramFate::OnWay);
        }
        self.fates.get_mut(place)
    }

    /// Passes on the fates that are known of all datagrams before the first one on its way.
    fn decide(&mut self) {
        while let Some(&fate) = self.fates.front().filter(|fate| **fate != DatagramFate::OnWay) {
            self.fates.pop_front();
            self.decided += 1;
            self.losses.pass(fate == DatagramFate::Lost);
            if let Some(call) = &mut self.call {
                call.pass(fate == DatagramFate::Late, fate == DatagramFate::Lost);
            }
        }
        self.order.forget(self.decided);
    }

    /// Losses in a row, in the order of sending, as far as all before them are known.
    pub(crate) fn loss_bursts(&self) -> LossBursts {
        self.losses.summary()
    }

    pub(crate) fn reordering(&self) -> Reordering {
        Reordering {
            reordered: self.order.reordered,
            ratio: (self.received > 0).then(|| self.order.reordered as f64 / self.received as f64),
            extent: self.order.extent.distribution(1.0),
            late_ms: self.order.late.distribution(1e-6),
        }
    }
}

/// RFC 3550 appendix A.8, in its integer form: the estimate times 16, rounded at each step.
#[derive(Debug, Default)]
pub(crate) struct Jitter {
    transit: Option<Span>,
    scaled: u64,
    largest: u64,
    sum: u128,
    samples: u64,
}

impl Jitter {
    fn arrived(&mut self, transit: Span) {
        if let Some(last) = self.transit.replace(transit) {
            let difference = transit.abs_diff(last).as_nanos();
            self.scaled = self.scaled + difference - ((self.scaled + 8) >> 4);
            self.largest = self.largest.max(self.scaled);
            self.sum += u128::from(self.scaled);
            self.samples += 1;
        }
    }

    /// Jitter after the last arrival, its mean and its maximum, ms.
    pub(crate) fn summary(&self) -> [Option<f64>; 3] {
        let mean = self.sum as f64 / self.samples as f64;
        [self.scaled as f64, mean, self.largest as f64].map(|scaled| (self.samples > 0).then(|| scaled / 16.0 * 1e-6))
    }
}

/// RFC 4737.
#[derive(Debug, Default)]
struct ArrivalOrder {
    /// Arrivals with a higher number than any before, in their order.
    records: VecDeque<HighestArrival>,
    arrivals: u64,
    reordered: u64,
    extent: Histogram,
    late: Histogram,
}

#[derive(Clone, Copy, Debug)]
struct HighestArrival {
    number: u64,
    /// The number of the arrival.
    arrival: u64,
    at: Time,
}

impl ArrivalOrder {
    fn arrived(&mut self, now: Time, number: u64) {
        // The first arrival of a higher number was a record.
        let first = self.records.partition_point(|record| record.number < number);
        match self.records.get(first) {
            Some(earlier) => {
                self.reordered += 1;
                self.extent.add(self.arrivals - earlier.arrival);
                self.late.add(now.since(earlier.at).as_nanos());
            }
            None => self.records.push_back(HighestArrival { number, arrival: self.arrivals, at: now }),
        }
        self.arrivals += 1;
    }

    /// No number before `decided` arrives any more.
    fn forget(&mut self, decided: u64) {
        while self.records.len() > 1 && self.records[0].number <= decided {
            self.records.pop_front();
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn ms(ms: u64) -> Time {
        Time::from_millis(ms)
    }

    /// Arrivals at these times of these numbers, each sent 10 ms after the one before.
    fn arrivals(list: &[(u64, u64)]) -> Reception {
        let mut reception = Reception::default();
        for &(at, number) in list {
            assert!(reception.arrived(ms(at), number, ms(10 * number)));
        }
        reception
    }

    #[test]
    fn jitter_is_rfc_3550_s() {
        // In order of arrival the transit times are 50, 50, 66, 50 and 62 ms, their differences 0,
        // 16, 16 and 12 ms. The estimate is 0, then 16/16 = 1 ms, 1 + (16 - 1)/16 = 1.9375 and
        // 1.9375 + (12 - 1.9375)/16 = 2.56640625, each rounded to 1/16 ns.
        let reception = arrivals(&[(50, 0), (60, 1), (86, 2), (90, 4), (92, 3)]);
        let [last, mean, largest] = reception.jitter.summary().map(Option::unwrap);
        assert!((last - 2.566_406_25).abs() < 1e-6 && last == largest, "{last} {largest}");
        assert!((mean - (0.0 + 1.0 + 1.9375 + 2.566_406_25) / 4.0).abs() < 1e-6, "{mean}");
        // Constant differences of 8 ms have the estimate converge to 8 ms.
        let mut jitter = Jitter::default();
        for number in 0..1000 {
            jitter.arrived(Span::from_millis(50 + 8 * (number % 2)));
        }
        assert!((jitter.summary()[0].unwrap() - 8.0).abs() < 1e-5);
        assert_eq!(Jitter::default().summary(), [None; 3]);
    }

    #[test]
    fn reordering_is_rfc_4737_s() {
        // 3 comes directly behind 4, which was the first of higher number: an extent of 1, 2 ms
        // late.
        let reception = arrivals(&[(50, 0), (60, 1), (70, 2), (80, 4), (82, 3), (90, 5)]);
        let found = reception.reordering();
        assert_eq!((found.reordered, found.ratio), (1, Some(1.0 / 6.0)));
        assert_eq!((found.extent.min, found.extent.max, found.late_ms.max), (Some(1.0), Some(1.0), Some(2.0)));
        // 3, 4 and 5 come behind 6 to 9: for all of them 6 is the first arrival of higher number,
        // which was four, five and six arrivals before. Next to 5 a smaller number is not what
        // counts.
        let order = [0, 1, 2, 6, 7, 8, 9, 3, 4, 5, 10];
        let list: Vec<(u64, u64)> = order.iter().zip(0..).map(|(&number, place)| (100 + place, number)).collect();
        let found = arrivals(&list).reordering();
        assert_eq!((found.reordered, found.extent.min, found.extent.max), (3, Some(4.0), Some(6.0)));
        assert_eq!(found.extent.quantiles.p50, Some(5.0));
    }

    #[test]
    fn losses_are_rfc_3357_s() {
        // Of ten, 2, 4, 6 and 7 are lost.
        let mut reception = Reception::default();
        for number in 0..10 {
            match number {
                2 | 4 | 6 | 7 => reception.lost(number),
                _ => assert!(reception.arrived(ms(100), number, ms(0))),
            }
        }
        let bursts = reception.loss_bursts();
        // Three periods of 1, 1 and 2; distances 2, 2 and 1; between periods 2 and 2.
        assert_eq!((bursts.count, bursts.mean_length, bursts.max_length), (3, Some(4.0 / 3.0), 2));
        assert_eq!((bursts.distance.min, bursts.distance.max, bursts.distance.samples), (Some(1.0), Some(2.0), 3));
        assert_eq!((bursts.between.min, bursts.between.samples), (Some(2.0), 2));
        assert_eq!((reception.received, reception.lost), (6, 4));
    }

    #[test]
    fn what_is_known_late_is_put_in_its_place() {
        // 1 is lost, which is known before 0 arrives; 2 is lost after 3 has arrived.
        let mut reception = Reception::default();
        reception.lost(1);
        assert_eq!(reception.loss_bursts().count, 0);
        reception.arrived(ms(5), 0, ms(0));
        reception.arrived(ms(6), 3, ms(0));
        reception.lost(2);
        let bursts = reception.loss_bursts();
        assert_eq!((bursts.count, bursts.mean_length, reception.reordering().reordered), (1, Some(2.0), 0));
        // A run that goes on at the end counts as far as it is known.
        reception.lost(4);
        assert_eq!(reception.loss_bursts().count, 2);
    }

    #[test]
    fn copies_are_counted_and_nothing_else() {
        let mut reception = arrivals(&[(50, 0), (60, 1)]);
        assert!(!reception.arrived(ms(90), 0, ms(0)));
        reception.lost(1);
        assert!(reception.arrived(ms(100), 3, ms(30)));
        assert!(!reception.arrived(ms(101), 3, ms(30)));
        assert_eq!((reception.received, reception.duplicates, reception.lost), (3, 2, 0));
        assert_eq!((reception.delay.samples(), reception.reordering().reordered), (3, 0));
    }

    #[test]
    fn a_burst_ratio_compares_with_independent_losses() {
        // Every second one is lost: periods of 1, where independent losses would give 2.
        let mut losses = LossPeriods::default();
        (0..100).for_each(|number| losses.pass(number % 2 == 1));
        assert_eq!((losses.ratio(), losses.burst_ratio()), (Some(0.5), Some(0.5)));
        // Ten in a row of a hundred: 10 * 0.9.
        let mut losses = LossPeriods::default();
        (0..100).for_each(|number| losses.pass((30..40).contains(&number)));
        assert_eq!((losses.ratio(), losses.burst_ratio()), (Some(0.1), Some(9.0)));
        assert_eq!((LossPeriods::default().ratio(), LossPeriods::default().burst_ratio()), (None, None));
    }
}
