//! Links that change and impair, with the packets of kernels: the same times and fates as in
//! virtual runs, however late the engine is called.

use std::sync::Arc;

use ackclock_emulator::{
    Change, Course, Distribution, Format, GilbertElliott, JitterDistribution, MediumConfig, Trace, Up,
};

use super::*;

fn ms(millis: u64) -> Time {
    Time::from_millis(millis)
}

/// A link between two kernels, 12 Mbit/s (1500 bytes in a millisecond) and 5 ms there.
fn varying(change: impl FnOnce(&mut DirectionSpec)) -> RunSpec {
    let mut spec = spec([true, true], Impairments::default());
    let forward = &mut spec.links[0].forward;
    (forward.rate, forward.delay) = (Rate::from_bps(12_000_000), Span::from_millis(5));
    change(forward);
    spec
}

/// When which of the packets arrive that the left kernel sends at these times, with their bytes.
/// The engine is called whenever something is due, or only when a packet arrives and at the end.
fn pass(spec: &RunSpec, sent: &[Time], late: bool) -> Vec<(Time, usize, Vec<u8>)> {
    let mut bench = EngineBench::new(spec, vec![None, None]);
    for (number, &at) in sent.iter().enumerate() {
        if late {
            bench.now = at;
        } else {
            bench.run_until(at + Span::from_nanos(1), |_| false);
            bench.now = at;
        }
        bench.send(0, &datagram(LEFT, RIGHT, &[number as u8; 1472]));
    }
    bench.now = Time::from_secs(10);
    bench.exchange();
    assert_eq!(bench.buffers_in_use(), 1);
    let arrived = bench.log.iter().map(|(at, node, bytes)| {
        assert_eq!(*node, 1);
        // Most of the payload is of one value.
        let number = (0..=255).max_by_key(|&value| bytes[28..].iter().filter(|&&byte| byte == value).count());
        (*at, usize::from(number.unwrap_or(0)), bytes.clone())
    });
    arrived.collect()
}

/// The same, without bytes, and the same for both ways of calling the engine.
fn arrivals(spec: &RunSpec, sent: &[Time]) -> Vec<(Time, usize)> {
    let [punctual, late] = [false, true].map(|late| pass(spec, sent, late));
    assert_eq!(punctual, late);
    punctual.into_iter().map(|(at, number, _)| (at, number)).collect()
}

#[test]
fn a_schedule_applies_to_packets_of_kernels() {
    let change = |at, change| Change { at: ms(at), ..change };
    let spec = varying(|forward| {
        let slower =
            Change { rate: Some(Rate::from_bps(6_000_000)), delay: Some(Span::from_millis(7)), ..Change::default() };
        let up = |up| Change { up: Some(up), ..Change::default() };
        let schedule = vec![
            change(10, slower),
            change(20, up(Up::Holds)),
            change(30, up(Up::Passes)),
            change(40, up(Up::Loses)),
            change(50, up(Up::Passes)),
            change(60, Change { loss: Some(1.0), ..Change::default() }),
        ];
        forward.course = Course { schedule, ..Course::default() };
    });
    let sent = [ms(0), Time::from_micros(9500), ms(19), ms(42), ms(52), ms(62)];
    // The second is half sent when the rate halves, and arrives by the delay at its end. The third
    // is half sent when the outage begins, and goes on after it. The fourth ends in an outage that
    // loses it, the sixth is lost by chance.
    let expected = [(ms(6), 0), (ms(18), 1), (ms(38), 2), (ms(61), 4)];
    assert_eq!(arrivals(&spec, &sent), expected);
}

#[test]
fn a_trace_applies_to_packets_of_kernels() {
    let spec = varying(|forward| {
        let trace = Trace::parse("5\n10\n10\n15\n", Format::Mahimahi { bytes: 1504 }, true).expect("a trace");
        forward.course.trace = Some(Arc::new(trace));
        // An opportunity is as long as a packet of 1500 bytes.
        forward.overhead = Overhead::bytes(4);
    });
    // Two of three leave together at 10 ms; one that comes at 16 ms has to wait for the next round.
    let sent = [ms(0), ms(1), ms(2), ms(16)];
    assert_eq!(arrivals(&spec, &sent), [(ms(10), 0), (ms(15), 1), (ms(15), 2), (ms(25), 3)]);
    let rates = varying(|forward| {
        let trace = Trace::parse("0ms,12mbit\n1ms,0mbit\n20ms,0mbit", Format::Rates, true).expect("a trace");
        forward.course.trace = Some(Arc::new(trace));
    });
    // A packet in each round.
    assert_eq!(arrivals(&rates, &[ms(0), ms(0), ms(30)]), [(ms(6), 0), (ms(26), 1), (ms(46), 2)]);
}

#[test]
fn chains_of_losses_jitter_and_copies_apply_to_packets_of_kernels() {
    let sent: Vec<Time> = (0..40).map(|n| ms(10 * n)).collect();
    // Every other packet finds the chain in its bad state, and is lost.
    let chain = GilbertElliott { p: 1.0, r: 1.0, bad: 1.0, good: 0.0 };
    let spec = varying(|forward| forward.impairments.loss = Loss::GilbertElliott(chain));
    let numbers: Vec<usize> = arrivals(&spec, &sent).into_iter().map(|(_, number)| number).collect();
    assert_eq!(numbers, (0..40).step_by(2).collect::<Vec<_>>());

    // Up to four milliseconds to both sides of 6 ms, one and a half on average around it.
    let spec = varying(|forward| {
        forward.impairments.jitter = Span::from_millis(1);
        forward.impairments.jitter_distribution = JitterDistribution::Normal;
    });
    let delays: Vec<u64> =
        (arrivals(&spec, &sent).into_iter()).map(|(at, number)| at.since(sent[number]).as_micros()).collect();
    assert_eq!(delays.len(), 40);
    assert!(delays.iter().all(|delay| (2000..=10_000).contains(delay)), "{delays:?}");
    // 40 normal numbers around 6 ms: +- 5 ms / sqrt(40).
    let mean = delays.iter().sum::<u64>() / 40;
    assert!(mean.abs_diff(6000) < 790, "{mean}");
    assert!(delays.iter().any(|delay| *delay < 6000) && delays.iter().any(|delay| *delay > 6000));

    // Each twice, and each copy with a bit error of its own.
    let spec = varying(|forward| (forward.impairments.duplicate, forward.impairments.corrupt) = (1.0, 1.0));
    let whole = varying(|_| {});
    let expected = pass(&whole, &sent, false);
    let found = pass(&spec, &sent, true);
    assert_eq!(found.len(), 80);
    for (number, copies) in found.chunks(2).enumerate() {
        for (at, _, bytes) in copies {
            assert_eq!((*at, bytes.len()), (expected[number].0, expected[number].2.len()));
            let wrong: u32 =
                bytes.iter().zip(&expected[number].2).map(|(found, sent)| (found ^ sent).count_ones()).sum();
            assert_eq!(wrong, 1, "copy of {number}");
        }
    }
}

#[test]
fn a_shared_medium_applies_to_packets_of_kernels() {
    let mut spec = varying(|_| {});
    spec.links[0].reverse = spec.links[0].forward.clone();
    spec.links[0].medium = Some(MediumConfig {
        aggregate_packets: 2,
        aggregate_time: Span::from_millis(4),
        contention: Distribution::constant(300_000.0).expect("300 us"),
    });
    // The first goes alone; two of the three that come during its transmission follow it, 300 us
    // after its end at 1.3 ms, and the last one after them.
    let us = Time::from_micros;
    let sent = [us(0), us(500), us(600), us(700)];
    assert_eq!(arrivals(&spec, &sent), [(us(6300), 0), (us(8600), 1), (us(8600), 2), (us(9900), 3)]);
    // One that comes the other way meanwhile has to wait for its turn, and so do others for it.
    let mut bench = EngineBench::new(&spec, vec![None, None]);
    bench.send(0, &datagram(LEFT, RIGHT, &[0; 1472]));
    bench.run_until(us(500), |_| false);
    bench.now = us(500);
    bench.send(1, &datagram(RIGHT, LEFT, &[0; 1472]));
    bench.now = ms(100);
    bench.exchange();
    let times: Vec<(Time, usize)> = bench.log.iter().map(|(at, node, _)| (*at, *node)).collect();
    assert_eq!(times, [(us(6300), 1), (us(7600), 0)]);
}
