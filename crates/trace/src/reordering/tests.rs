//! The worked examples of the RFCs, and the definitions taken literally.

use proptest::prelude::*;

use super::*;
use crate::ReorderDensity;

mod examples;
mod naive;

/// A meter that packets have reached in this order, numbered from 1 as in the RFCs, each of 100
/// bytes and 1 ms after the one before.
fn arrivals(threshold: u32, numbers: &[u64]) -> ReorderMeter {
    let mut meter = ReorderMeter::new(threshold, None);
    for (&number, ms) in numbers.iter().zip(1..) {
        meter.arrive(number - 1, Time::from_millis(ms), 100);
    }
    meter.finish();
    meter
}

/// Values of a histogram of small values, as often as they occurred, from 0.
fn counts(of: &Histogram) -> Vec<u64> {
    let mut counts = Vec::new();
    for (bucket, count) in of.counts() {
        counts.resize(usize::from(bucket), 0);
        counts.push(count);
    }
    counts
}

#[test]
fn intervals_add_up_to_the_whole() {
    let mut meter = ReorderMeter::new(8, Some(Span::from_millis(10)));
    // Packet 3 is lost, 10 late; the fourth interval has none.
    let numbers = [0, 1, 2, 4, 5, 6, 7, 8, 9, 11, 12, 13, 10, 14, 15, 16, 17, 18, 19, 20];
    for (&number, n) in numbers.iter().zip(0..) {
        let at = if n < 18 { 2 * n } else { 30 + n };
        meter.arrive(number, Time::from_millis(at), 100);
        if number == 12 {
            meter.arrive(0, Time::from_millis(at), 100);
            meter.arrive_again(Time::from_millis(at));
        }
    }
    meter.arrive_again(Time::from_millis(50));
    meter.finish();
    let intervals: Vec<ReorderInterval> = meter.take_intervals().collect();
    let of = |value: fn(&ReorderInterval) -> u64| -> Vec<u64> { intervals.iter().map(value).collect() };
    assert_eq!(of(|row| row.from.as_nanos() / 1_000_000), [0, 10, 20, 30, 40, 50]);
    assert_eq!(of(|row| row.packets), [5, 5, 5, 3, 2, 0]);
    assert_eq!(of(|row| row.duplicates), [0, 0, 2, 0, 0, 1]);
    // 11, 12 and 13 are one early each, 10 is three late.
    assert_eq!(of(|row| row.early), [0, 1, 2, 0, 0, 0]);
    assert_eq!(of(|row| row.late), [0, 0, 1, 0, 0, 0]);
    assert_eq!(of(|row| row.reordered), [0, 0, 1, 0, 0, 0]);
    assert_eq!(of(|row| row.on_time), [5, 4, 2, 3, 2, 0]);
    let third = &intervals[2].displacement;
    assert_eq!((third.min, third.quantiles.p50, third.max), (Some(-1.0), Some(0.0), Some(3.0)));
    assert_eq!(meter.take_intervals().count(), 0);
}

#[test]
fn displacements_are_known_as_soon_as_they_can_be() {
    let mut meter = ReorderMeter::new(3, Some(Span::from_millis(1)));
    let at = |n| Time::from_millis(n);
    meter.arrive(0, at(0), 1);
    meter.arrive(2, at(1), 1);
    assert_eq!(meter.summary().displacement.samples, 1);
    meter.arrive(1, at(2), 1);
    // Packet 2 was early by one.
    assert_eq!(meter.summary().displacement.samples, 3);
    assert_eq!(meter.take_intervals().count(), 2);
    // 3 is missing: the threshold decides.
    (4..7).for_each(|n| meter.arrive(n, at(n), 1));
    assert_eq!(meter.summary().displacement.samples, 3);
    meter.arrive(7, at(7), 1);
    let summary = meter.summary();
    assert_eq!((summary.displacement.samples, summary.on_time), (7, 5.0 / 7.0));
}

#[test]
fn densities_end_at_the_bins_that_are_listed() {
    // Each of 301 packets of a block arrives in reverse.
    let numbers: Vec<u64> = (1..=301).rev().collect();
    let summary = arrivals(DISPLACEMENT_THRESHOLD, &numbers).summary();
    assert_eq!((summary.displacement.min, summary.displacement.max), (Some(-300.0), Some(300.0)));
    // Displacements are even: -300 to -258 are 22 of 301, and as many at the other end.
    let outside = 22.0 / 301.0;
    assert_eq!((summary.density.below, summary.density.above), (outside, outside));
    assert_eq!((summary.density.from, summary.density.shares.len()), (-256, 513));
    assert_eq!((summary.rbd.shares.len(), summary.rbd.max), (257, 300));
    assert_eq!(summary.rbd.above, 44.0 / 301.0);
    assert_eq!((summary.n_reordering.counts.len(), summary.n_reordering.above), (256, 44));
}

#[test]
fn a_rogue_number_disturbs_few() {
    // RFC 5236 section 6: 5430 between 1 and 2.
    let numbers: Vec<u64> = [1, 5430].into_iter().chain(2..2000).collect();
    let summary = arrivals(16, &numbers).summary();
    assert_eq!((summary.packets, summary.duplicates, summary.beyond), (2000 - 1 + 1, 0, 1));
    assert_eq!((summary.on_time, summary.density.shares.len()), (1.0, 1));
    // RFC 4737 has no threshold: all the others come behind it.
    assert_eq!(summary.reordered, 1998);
}

#[test]
fn memory_stays_bounded_when_packets_are_lost() {
    let mut meter = ReorderMeter::new(64, None);
    // Every other packet is lost.
    (0..100_000).for_each(|n| meter.arrive(2 * n, Time::from_micros(n), 100));
    assert_eq!(meter.gaps.remembered(), gaps::GAPS);
    assert!(meter.behind.remembered() <= 64);
    assert!(meter.places.remembered() <= 65);
    // A gap that is forgotten makes its packet a copy, a newer one a reordered packet.
    meter.arrive(1, Time::from_secs(1), 100);
    meter.arrive(199_997, Time::from_secs(1), 100);
    let summary = meter.summary();
    assert_eq!((summary.duplicates, summary.reordered), (1, 1));
}

#[test]
fn a_stream_without_packets_has_no_shares() {
    let summary = arrivals(4, &[]).summary();
    assert_eq!((summary.ratio, summary.rbd.mean, summary.free_runs.mean), (None, None, None));
    assert_eq!((summary.density, summary.rbd.shares), (ReorderDensity::default(), Vec::new()));
    assert_eq!(summary.displacement, Distribution::default());
}

#[test]
fn nobody_waits_for_what_is_known_to_be_lost() {
    // 2, 5 and 6 are lost, of which the first is known before, and the others after 7 arrived.
    let mut meter = ReorderMeter::new(8, None);
    let at = Time::ZERO;
    meter.lost(1);
    [0, 2, 3, 6, 7].into_iter().for_each(|number| meter.arrive(number, at, 100));
    // Places are those among what arrives; 7 and 8 wait for 5 and 6.
    assert_eq!(meter.summary().displacement.samples, 3);
    meter.lost(4);
    assert_eq!(meter.summary().displacement.samples, 3);
    meter.lost(5);
    meter.arrive(8, at, 100);
    let summary = meter.summary();
    assert_eq!((summary.displacement.samples, summary.on_time), (6, 1.0));
    // 1 and 2 packets were held when 7 and 8 had arrived, and none at the other times.
    assert_eq!(summary.rbd.shares, [4.0 / 6.0, 1.0 / 6.0, 1.0 / 6.0]);
    // What has arrived, or was passed over, is not lost.
    meter.lost(8);
    meter.lost(0);
    meter.arrive(9, at, 100);
    assert_eq!(meter.summary().on_time, 1.0);
    // A packet that arrives although it was called lost counts as late beyond the threshold.
    meter.arrive(1, at, 100);
    assert_eq!(meter.summary().beyond, 1);
}
