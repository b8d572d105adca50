use super::*;
use crate::fixture::{MSS, ack, cwnd, flight, ssthresh};

const PER_CENT: u64 = 21_474_836; // (2^31 - 1) / 100

fn hd(config: HdConfig) -> Hd {
    let mut hd = Hd::new(config, Random::for_component(1, 0, "hd"));
    hd.on_established(&flight(0, 10));
    hd
}

/// The newest sample, the shortest and the longest, in ticks.
fn measured(hd: &mut Hd, rtt: i64, min: i64, max: i64) {
    (hd.ertt.rtt, hd.ertt.min, hd.ertt.max) = (rtt, min, max);
}

#[test]
fn the_law_rises_to_the_threshold_and_falls_to_the_largest_delay() {
    let law = DelayLaw { threshold: 20, min: 5, pmax: 5 };
    let most = 5 * PER_CENT;
    // Fifteenths up to 20: most / 15 = 7158278 whole, times 1, 10 and 14.
    assert_eq!(most / 15, 7_158_278);
    assert_eq!(law.probability(6, 100), 7_158_278);
    assert_eq!(law.probability(15, 100), 71_582_780);
    assert_eq!(law.probability(19, 100), 14 * 7_158_278);
    assert_eq!(law.probability(20, 100), most);
    // Eightieths from there to 100: most / 80 = 1342177, times 79, 40 and 0.
    assert_eq!(law.probability(21, 100), 79 * 1_342_177);
    assert_eq!(law.probability(60, 100), 40 * 1_342_177);
    assert_eq!(law.probability(100, 100), 0);
    // Where nothing was longer, the largest delay is this one.
    assert_eq!(law.probability(30, 30), 0);
    // Nonsense is bounded.
    assert_eq!(law.probability(i64::MAX, 0), 0);
    let flat = DelayLaw { threshold: 5, min: 5, pmax: 100 };
    assert_eq!(flat.probability(5, 5), 100 * PER_CENT);
}

#[test]
fn an_ack_halves_the_window_as_often_as_the_law_says() {
    let n = 1_000_000;
    // At the threshold 5 per cent, standard error sqrt(0.05 * 0.95 / 10^6) = 0.00022; at a delay of
    // 60 with 100 the largest half of it, 0.00016. Four of them.
    for (rtt, share, error) in [(61, 0.05, 0.0009), (101, 0.025, 0.0007)] {
        let mut hd = hd(HdConfig::default());
        measured(&mut hd, rtt, 41, 141);
        let times = (0..n).filter(|_| hd.backs_off()).count();
        assert!((times as f64 / f64::from(n) - share).abs() < error, "{rtt}: {times}");
    }
}

#[test]
fn a_back_off_halves_and_the_next_ack_may_halve_again() {
    let mut hd = hd(HdConfig { pmax: 100, ..HdConfig::default() });
    hd.reno.set_window(Window { cwnd: 41 * MSS, ssthresh: 2 * MSS });
    measured(&mut hd, 61, 41, 141);
    // 100 * 21474836 of 2^31: not certain, but for all of 2^31 but 48.
    for expected in [20, 10, 5, 2, 2] {
        assert_eq!(hd.on_ack(&flight(0, 40), &ack(1, 61)), Verdict::Trimmed);
        assert_eq!((cwnd(&hd), ssthresh(&hd)), (expected, expected));
    }
}

#[test]
fn without_delay_it_is_newreno() {
    let mut hd = hd(HdConfig { pmax: 100, ..HdConfig::default() });
    let mut reno = NewReno::new(NewRenoConfig::default());
    reno.on_established(&flight(0, 10));
    // Nothing measured; no delay; 5 ticks of it, which is the minimum.
    for (millis, rtt) in [(0, 0), (100, 41), (200, 46)] {
        measured(&mut hd, rtt, rtt.min(41), 141);
        assert_eq!(hd.on_ack(&flight(millis, 10), &ack(1, 100)), Verdict::Continue);
        let _ = reno.on_ack(&flight(millis, 10), &ack(1, 100));
        assert_eq!(hd.window(), reno.window());
    }
    assert_eq!(cwnd(&hd), 13);
    for signal in [
        Signal::Loss,
        Signal::Spurious,
        Signal::Ecn,
        Signal::Timeout { repeated: false, kept: 0 },
        Signal::Resume { cwnd: 9, ssthresh: 1 << 20 },
    ] {
        hd.on_signal(&flight(300, 10), signal);
        reno.on_signal(&flight(300, 10), signal);
        assert_eq!(hd.window(), reno.window(), "{signal:?}");
        hd.on_signal(&flight(300, 3), Signal::RecoveryEnd);
        reno.on_signal(&flight(300, 3), Signal::RecoveryEnd);
        assert_eq!(hd.window(), reno.window(), "{signal:?}");
    }
    hd.on_signal(&flight(300, 3), Signal::IdleRestart);
    reno.on_signal(&flight(300, 3), Signal::IdleRestart);
    assert_eq!(hd.window(), reno.window());
}

#[test]
fn it_measures_what_arrives() {
    let mut hd = hd(HdConfig::default());
    for (sent_at, seq) in [(0, 0), (10, MSS)] {
        hd.on_sent(&flight(sent_at, 10), &Sent { seq, bytes: MSS as u32 });
    }
    for (at, ack) in [(40, MSS), (90, 2 * MSS)] {
        hd.on_arrival(&flight(at, 10), &Arrival { ack, acked: MSS, ..Arrival::default() });
    }
    let seen = hd.inspect().enhanced_rtt.unwrap();
    assert_eq!((seen.min, seen.max), (Span::from_millis(41), Span::from_millis(81)));
}

#[test]
fn a_threshold_of_zero_is_off() {
    let mut hd = hd(HdConfig { queue_threshold: 0, queue_min: 0, pmax: 100, ..HdConfig::default() });
    measured(&mut hd, 61, 41, 141);
    assert!((0..1000).all(|_| !hd.backs_off()));
}
