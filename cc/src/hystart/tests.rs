use super::*;
use crate::fixture::{MSS, flight};

const TWENTY: u64 = 20 * MSS;

fn watching(ack_train: bool, delay: bool, rules: HystartRules) -> Hystart {
    let mut hystart = Hystart::new(HystartConfig { ack_train, delay, rules, ..HystartConfig::default() });
    hystart.restart(&flight(0, 20));
    hystart
}

/// The time in microseconds of the first sample that ends slow start, with an ACK every `step`
/// microseconds.
fn train_ends(rules: HystartRules, step: u64) -> Option<u64> {
    train_of(rules, step, false)
}

fn train_of(rules: HystartRules, step: u64, paced: bool) -> Option<u64> {
    let mut hystart = watching(true, false, rules);
    let shortest = Span::from_millis(100);
    (0..1000).map(|n| n * step).find(|&micros| {
        let f = Flight { now: Time::from_micros(micros), paced, ..flight(0, 20) };
        hystart.sample(&f, TWENTY, shortest, shortest)
    })
}

#[test]
fn a_train_longer_than_half_the_shortest_round_trip() {
    // 100 ms / 2; in 6.1 (100 ms + min(1 ms, 262,144 B at 2 * 20 segments per 100 ms)) / 2 = 50.5
    // ms.
    assert_eq!(train_ends(HystartRules::Linux39, 250), Some(50_250));
    assert_eq!(train_ends(HystartRules::Linux61, 250), Some(50_750));
}

#[test]
fn a_train_that_is_paced() {
    // 6.1 allows it the whole of 101 ms; 3.9 knows no pacing.
    assert_eq!(train_of(HystartRules::Linux61, 250, true), Some(101_250));
    assert_eq!(train_of(HystartRules::Linux39, 250, true), Some(50_250));
}

#[test]
fn a_gap_breaks_the_train() {
    assert_eq!(train_ends(HystartRules::Linux61, 2_000), Some(52_000));
    assert_eq!(train_ends(HystartRules::Linux61, 2_001), None);
    assert_eq!(train_ends(HystartRules::Linux39, 2_001), None);
}

#[test]
fn a_fast_path_gets_no_allowance_for_offload() {
    let srtt = Some(Span::from_millis(1));
    // 262,144 B at twice 10^9 B in 1 ms: 131.072 ns.
    let f = Flight { srtt, ..flight(0, 20) };
    assert_eq!(offload_allowance(&f, 1_000_000_000), Span::from_nanos(131));
    assert_eq!(offload_allowance(&f, TWENTY), Span::from_millis(1));
    assert_eq!(offload_allowance(&Flight { srtt: None, ..f }, TWENTY), Span::ZERO);
}

/// Nine samples of `delay`: the eighth completes the round's delay, the ninth judges it.
fn delay_ends(rules: HystartRules, shortest: u64, delay: Span) -> Option<usize> {
    let mut hystart = watching(false, true, rules);
    (1..=9).find(|_| hystart.sample(&flight(5, 20), TWENTY, delay, Span::from_millis(shortest)))
}

#[test]
fn a_round_slower_than_the_shortest_round_trip() {
    use HystartRules::{Linux39, Linux61};
    // A sixteenth (3.9) or an eighth (6.1) of the shortest, at least 4 ms, at most 16 ms.
    for (rules, shortest, increase) in [
        (Linux39, 20, 4_000),
        (Linux39, 100, 6_250),
        (Linux39, 400, 16_000),
        (Linux61, 20, 4_000),
        (Linux61, 100, 12_500),
        (Linux61, 400, 16_000),
    ] {
        let limit = Span::from_millis(shortest) + Span::from_micros(increase);
        assert_eq!(delay_ends(rules, shortest, limit), None, "{rules:?} {shortest}");
        assert_eq!(delay_ends(rules, shortest, limit + Span::from_micros(1)), Some(9), "{rules:?} {shortest}");
    }
}

#[test]
fn the_clock_of_2_6_32_ticks_every_four_milliseconds() {
    // 100 ms are 25 jiffies, of which 12 are waited for: 48 ms.
    assert_eq!(train_ends(HystartRules::Linux26, 250), Some(48_000));
    // msecs_to_jiffies(2) is one: ACKs 4 ms apart are next to each other, and 8 ms are a gap.
    assert_eq!(train_ends(HystartRules::Linux26, 4_000), Some(48_000));
    assert_eq!(train_ends(HystartRules::Linux26, 8_000), None);
    // At least two jiffies more; a sixteenth of 25 is less; a sixteenth of 100 is 6.25. A delay of
    // 108.001 ms is 28 jiffies.
    for (shortest, none, found) in [(100, 108_000, 108_001), (400, 424_000, 424_001)] {
        let delay = |micros| delay_ends(HystartRules::Linux26, shortest, Span::from_micros(micros));
        assert_eq!((delay(none), delay(found)), (None, Some(9)), "{shortest}");
    }
}

#[test]
fn a_late_short_sample_saves_the_round_in_6_1_only() {
    for (rules, over) in [(HystartRules::Linux39, true), (HystartRules::Linux61, false)] {
        let mut hystart = watching(false, true, rules);
        let shortest = Span::from_millis(100);
        for _ in 0..8 {
            assert!(!hystart.sample(&flight(5, 20), TWENTY, Span::from_millis(130), shortest));
        }
        assert_eq!(hystart.sample(&flight(5, 20), TWENTY, shortest, shortest), over);
    }
}

#[test]
fn a_new_round_starts_the_count_again() {
    for rules in [HystartRules::Linux39, HystartRules::Linux61] {
        let mut hystart = watching(false, true, rules);
        let shortest = Span::from_millis(100);
        let slow = Span::from_millis(130);
        for _ in 0..8 {
            assert!(!hystart.sample(&flight(5, 20), TWENTY, slow, shortest));
        }
        // The round ended at byte 20 * MSS; 3.9 sees that when the window grows, after the sample.
        let next = Flight { snd_una: 20 * MSS + 1, snd_nxt: 60 * MSS, ..flight(100, 20) };
        hystart.growing(&next);
        for _ in 0..8 {
            assert!(!hystart.sample(&next, TWENTY, slow, shortest));
        }
        assert!(hystart.sample(&next, TWENTY, slow, shortest));
    }
}

#[test]
fn it_acts_from_the_low_window_and_once() {
    let shortest = Span::from_millis(10);
    let slow = Span::from_millis(100);
    let mut hystart = watching(false, true, HystartRules::Linux61);
    assert!((0..20).all(|_| !hystart.sample(&flight(5, 15), 15 * MSS, slow, shortest)));
    assert_eq!((0..20).filter(|_| hystart.sample(&flight(5, 16), 16 * MSS, slow, shortest)).count(), 1);
    hystart.restart(&flight(900, 1));
    assert_eq!((0..20).filter(|_| hystart.sample(&flight(5, 16), 16 * MSS, slow, shortest)).count(), 1);
}
