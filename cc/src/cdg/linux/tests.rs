use super::*;
use crate::fixture::{MSS, ack, cwnd, flight, ssthresh};
use ackclock_units::maths;

fn random() -> Random {
    Random::for_component(1, 0, "cdg")
}

/// Established with `segments`, all of them sent; out of slow start if `avoids`.
fn established_with(config: LinuxCdgConfig, segments: u64, avoids: bool) -> LinuxCdg {
    let mut cdg = LinuxCdg::new(config, random());
    cdg.on_established(&Flight { initial_window: segments * MSS, snd_nxt: 0, ..flight(0, segments) });
    if avoids {
        cdg.state.window.ssthresh = 2 * MSS;
    }
    cdg
}

fn arrival(micros: u64) -> Arrival {
    Arrival { acked: 2 * MSS, delivered: 2 * MSS, rtt: Some(Span::from_nanos(micros * 1000)), ..Arrival::default() }
}

/// Round trip `number`, whose RTTs are from `min` to `max` microseconds: the samples, and the ACK
/// with which it is over.
fn round(cdg: &mut LinuxCdg, number: u64, min: u64, max: u64) -> Verdict {
    let una = number * 1000 * MSS;
    let f = Flight { snd_una: una, snd_nxt: una + 999 * MSS, ..flight(number * 100, cwnd(cdg)) };
    cdg.on_arrival(&f, &arrival(max));
    cdg.on_arrival(&f, &arrival(min));
    cdg.on_ack(&f, &ack(2, 100))
}

/// A delay so long that a gradient of it backs off with certainty: 42 * 10^6 / 10^6 is beyond the
/// cut-off at 16.8.
const LONG: u64 = 1_000_000;

#[test]
fn the_exponential() {
    assert_eq!(nexp(0), u32::MAX);
    // Below 256 millionths linear: 2^32 - 1 - 100 * 4294.
    assert_eq!(nexp(100), 4_294_967_295 - 429_400);
    // One entry of the table: (2^32 - 1) * 65519 / 2^16 = 65519 * 65536 - 65519 / 65536 =
    // 4293853184 - 1.
    assert_eq!(nexp(256), 4_293_853_183);
    for x in [1u32, 255, 1_000, 42_000, 336_000, 1_000_000, 5_000_000] {
        let exact = maths::exp(-f64::from(x) / 1e6);
        let found = f64::from(nexp(x)) / 4_294_967_296.0;
        // Every entry is within half of a 65536th; the products of up to fifteen stay within a few.
        assert!((found - exact).abs() < 2e-4, "{x}: {found}, expected {exact}");
    }
    // Cut off at 2^24, where exp(-16.8) is 5e-8.
    assert!(nexp((1 << 24) - 1) < 300);
    assert_eq!(nexp(1 << 24), 0);
    assert_eq!(nexp(u32::MAX), 0);
}

#[test]
fn the_probability_of_a_back_off() {
    // The paper's g of 1, 3 and 9 ms per round trip, summed over 8: exponents 42 * 8000 g / 10^6 =
    // 0.336 g.
    for (g, expected) in [(1, 0.2854), (3, 0.6351), (9, 0.9514)] {
        let mut cdg = established_with(LinuxCdgConfig { use_ineff: 0, ..Default::default() }, 100, true);
        let n = 1_000_000;
        let backed_off = (0..n).filter(|_| cdg.backs_off(8000 * g)).count();
        // The standard error is at most 0.5 / 1000.
        let found = backed_off as f64 / f64::from(n);
        assert!((found - expected).abs() < 0.0025, "{g}: {found}, expected {expected}");
    }
}

#[test]
fn a_gradient_backs_off_and_the_window_comes_down_by_beta() {
    let mut cdg = established_with(LinuxCdgConfig::default(), 100, true);
    assert_eq!(round(&mut cdg, 1, 20_000, 30_000), Verdict::Continue);
    assert_eq!(cdg.path.rtt_prev, Some(MinMax { min: 20_000, max: 30_000 }));
    assert_eq!(round(&mut cdg, 2, 20_000 + LONG, 30_000 + LONG), Verdict::Reduced);
    // 100 * 724 / 1024 = 70.7.
    assert_eq!((cwnd(&cdg), ssthresh(&cdg)), (70, 70));
    assert_eq!(cdg.path.shadow_wnd, 100 * MSS);
    assert_eq!(cdg.path.queue, Queue::BackOff);

    // The end of the reduction starts the gradients anew, but keeps their sums.
    let f = Flight { snd_una: 2500 * MSS, snd_nxt: 2600 * MSS, ..flight(250, 70) };
    cdg.on_arrival(&f, &arrival(40_000));
    cdg.on_signal(&f, Signal::RecoveryEnd);
    assert_eq!(cdg.path.queue, Queue::Unknown);
    assert_eq!((cdg.path.rtt, cdg.path.rtt_prev), (None, Some(MinMax { min: 40_000, max: 40_000 })));
    assert_eq!((cdg.path.rtt_seq, cdg.path.sum.min), (2600 * MSS, LONG as i64));
    assert_eq!(cwnd(&cdg), 70);

    // Two segments are the least: 2 * 724 / 1024 = 1.
    let mut cdg = established_with(LinuxCdgConfig::default(), 2, true);
    let _ = round(&mut cdg, 1, 20_000, 30_000);
    assert_eq!(round(&mut cdg, 2, LONG, LONG), Verdict::Reduced);
    assert_eq!((cwnd(&cdg), ssthresh(&cdg)), (2, 2));
}

#[test]
fn no_gradient_and_a_negative_one_do_not_back_off() {
    let mut cdg = established_with(LinuxCdgConfig::default(), 100, true);
    // No samples, no round trip.
    let f = Flight { snd_una: 1000 * MSS, snd_nxt: 1100 * MSS, ..flight(100, 100) };
    let _ = cdg.on_ack(&f, &ack(2, 100));
    assert_eq!(cdg.path.rtt_seq, 0);
    for (number, rtt) in [(2, LONG), (3, LONG), (4, LONG / 2), (5, 20_000)] {
        assert_eq!(round(&mut cdg, number, rtt, rtt), Verdict::Continue, "round {number}");
    }
    // Four sums with nothing above zero: 0, -LONG / 2, -980 ms.
    assert_eq!(cdg.path.sum.min, 20_000 - LONG as i64);
    // The round trip is over only when more than what was sent before is acknowledged.
    let f = Flight { snd_una: cdg.path.rtt_seq, snd_nxt: 7000 * MSS, ..flight(600, 100) };
    cdg.on_arrival(&f, &arrival(2 * LONG));
    assert_eq!(cdg.on_ack(&f, &ack(2, 100)), Verdict::Continue);
    let f = Flight { snd_una: cdg.path.rtt_seq + 1, ..f };
    assert_eq!(cdg.on_ack(&f, &ack(2, 100)), Verdict::Reduced);
}

#[test]
fn gradients_are_summed_over_the_window_and_extrapolated_until_it_is_full() {
    let mut cdg = established_with(LinuxCdgConfig { window: 4, ..LinuxCdgConfig::default() }, 100, true);
    let rtt = |min: i64, max: i64| MinMax { min, max };
    // The first: 100 * 4 / 1.
    assert_eq!(cdg.gradient(rtt(1100, 1300), rtt(1000, 1000)), 400);
    // 100 + 50 of the least RTT, times 4 / 2.
    assert_eq!(cdg.gradient(rtt(1150, 1300), rtt(1100, 1300)), 300);
    // (150 + 0) * 4 / 3.
    assert_eq!(cdg.gradient(rtt(1150, 1300), rtt(1150, 1300)), 200);
    // Full: 150 + 70.
    assert_eq!(cdg.gradient(rtt(1220, 1300), rtt(1150, 1300)), 220);
    assert!(cdg.path.filled);
    // The first, of 100, falls out: 50 + 0 + 70 - 200 of the least RTT is below zero; of the
    // greatest 0 + 0 + 0 + 30.
    assert_eq!(cdg.gradient(rtt(1020, 1330), rtt(1220, 1300)), 30);
    // Both below zero: -50 of 1330 to 1280, and all that came before: 0 + 0 + 30 - 50.
    assert_eq!(cdg.gradient(rtt(1020, 1280), rtt(1020, 1330)), -20);

    // A window of one has no sums.
    let mut cdg = established_with(LinuxCdgConfig { window: 1, ..LinuxCdgConfig::default() }, 100, true);
    assert_eq!(cdg.gradient(rtt(1100, 1300), rtt(1000, 1000)), 100);
    assert_eq!(cdg.gradient(rtt(1110, 1300), rtt(1100, 1300)), 10);
    assert_eq!(LinuxCdg::new(LinuxCdgConfig { window: 0, ..Default::default() }, random()).gradients.len(), 1);
    assert_eq!(LinuxCdg::new(LinuxCdgConfig { window: 1000, ..Default::default() }, random()).gradients.len(), 256);
}

#[test]
fn back_offs_without_effect_are_given_up_until_one_has_one() {
    let mut cdg = established_with(LinuxCdgConfig { use_ineff: 2, ..LinuxCdgConfig::default() }, 100, true);
    let steep = LONG as i64;
    assert!(cdg.backs_off(steep) && cdg.backs_off(steep));
    assert!(!cdg.backs_off(steep) && !cdg.backs_off(steep));
    assert_eq!(cdg.path.backoff_cnt, 4);
    // A fall by 31 us is none, one by 32 is: of the greatest RTT alone as well.
    let before = MinMax { min: 1000, max: 1000 };
    cdg.gradient(MinMax { min: 969, max: 969 }, before);
    assert_eq!(cdg.path.backoff_cnt, 4);
    cdg.gradient(MinMax { min: 1031, max: 999 }, before);
    assert_eq!(cdg.path.sum, MinMax { min: 0, max: -32 });
    assert_eq!(cdg.path.backoff_cnt, 0);
    assert!(cdg.backs_off(steep));

    let mut cdg = established_with(LinuxCdgConfig { use_ineff: 0, ..LinuxCdgConfig::default() }, 100, true);
    assert!((0..100).all(|_| cdg.backs_off(steep)));
}

#[test]
fn a_loss_brings_the_window_down_from_the_shadow_window() {
    let f = flight(100, 60);
    let mut cdg = established_with(LinuxCdgConfig::default(), 60, true);
    // Back-offs have taken the window from 100 to 60.
    cdg.path.shadow_wnd = 100 * MSS;
    cdg.on_signal(&f, Signal::Loss);
    assert_eq!((cwnd(&cdg), cdg.path.shadow_wnd), (50, 50 * MSS));
    // The shadow window counts up to the window itself: min(400 / 2, 60).
    let mut cdg = established_with(LinuxCdgConfig::default(), 60, true);
    cdg.path.shadow_wnd = 400 * MSS;
    cdg.on_signal(&f, Signal::Loss);
    assert_eq!((cwnd(&cdg), cdg.path.shadow_wnd), (60, 60 * MSS));
    // The result is at least half of the window; odd numbers of segments lose their half.
    let mut cdg = established_with(LinuxCdgConfig::default(), 60, true);
    cdg.path.shadow_wnd = 51 * MSS;
    cdg.on_signal(&f, Signal::Ecn);
    assert_eq!((cwnd(&cdg), cdg.path.shadow_wnd), (30, 25 * MSS));
    // Without it half, as in Reno.
    let mut cdg = established_with(LinuxCdgConfig { use_shadow: false, ..LinuxCdgConfig::default() }, 60, true);
    cdg.path.shadow_wnd = 100 * MSS;
    cdg.on_signal(&f, Signal::Loss);
    assert_eq!((cwnd(&cdg), cdg.path.shadow_wnd), (30, 50 * MSS));
}

#[test]
fn the_shadow_window_grows_with_the_window_and_shrinks_when_that_is_not_used() {
    let mut cdg = established_with(LinuxCdgConfig::default(), 10, true);
    cdg.path.shadow_wnd = 30 * MSS;
    let f = flight(100, 10);
    for _ in 0..5 {
        let _ = cdg.on_ack(&f, &ack(2, 100));
    }
    assert_eq!((cwnd(&cdg), cdg.path.shadow_wnd), (11, 31 * MSS));
    let _ = cdg.on_ack(&Flight { cwnd_limited: false, ..f }, &ack(2, 100));
    assert_eq!((cwnd(&cdg), cdg.path.shadow_wnd), (11, 11 * MSS));
}

#[test]
fn a_loss_is_tolerated_while_the_queue_is_not_full() {
    let config = LinuxCdgConfig { use_tolerance: true, ..LinuxCdgConfig::default() };
    let rtt = |min: i64, max: i64| MinMax { min: 10_000 + min, max: 10_000 + max };
    // In 64ths of a microsecond, rounded: 31 is nothing, 32 is something.
    let cases = [
        ((32, 31), Queue::Full),
        ((32, 32), Queue::NonFull),
        ((0, -32), Queue::NonFull),
        ((-32, -32), Queue::NonFull),
        ((31, 31), Queue::Unknown),
        ((-32, 0), Queue::Unknown),
        ((31, 32), Queue::Unknown),
    ];
    for ((min, max), queue) in cases {
        let mut cdg = established_with(config, 60, true);
        cdg.gradient(rtt(min, max), rtt(0, 0));
        assert_eq!(cdg.path.queue, queue, "{min} {max}");
        cdg.on_signal(&flight(100, 60), Signal::Loss);
        assert_eq!(cwnd(&cdg), if queue == Queue::NonFull { 60 } else { 30 });
    }
    // The queue is not inferred without `use_tolerance`.
    let mut cdg = established_with(LinuxCdgConfig::default(), 60, true);
    cdg.gradient(rtt(32, 32), rtt(0, 0));
    assert_eq!(cdg.path.queue, Queue::Unknown);
}

#[test]
fn delayed_acks_do_not_count_but_for_a_lower_minimum() {
    let mut cdg = established_with(LinuxCdgConfig::default(), 10, true);
    let f = flight(100, 10);
    let one = |micros| Arrival { acked: MSS, ..arrival(micros) };
    // An ACK of one segment counts until one of several came.
    cdg.on_arrival(&f, &one(1000));
    assert_eq!(cdg.path.rtt, Some(MinMax { min: 1000, max: 1000 }));
    for _ in 0..7 {
        cdg.on_arrival(&f, &arrival(1000));
    }
    assert_eq!(cdg.path.delayed, 5);
    cdg.on_arrival(&f, &one(41_000));
    cdg.on_arrival(&f, &one(900));
    assert_eq!((cdg.path.rtt, cdg.path.delayed), (Some(MinMax { min: 900, max: 1000 }), 3));
    // With something missing at the receiver every ACK is sent at once.
    cdg.on_arrival(&f, &Arrival { sacked_to: Some(9 * MSS), ..one(1200) });
    assert_eq!((cdg.path.rtt, cdg.path.delayed), (Some(MinMax { min: 900, max: 1200 }), 3));
    cdg.on_arrival(&f, &Arrival { sacked_to: Some(9 * MSS), ..arrival(1300) });
    assert_eq!((cdg.path.rtt, cdg.path.delayed), (Some(MinMax { min: 900, max: 1300 }), 3));
    // Nor does it begin a round trip; without an RTT nothing happens.
    cdg.path.rtt = None;
    cdg.on_arrival(&f, &one(900));
    cdg.on_arrival(&f, &Arrival { rtt: None, ..arrival(0) });
    cdg.on_arrival(&f, &arrival(0));
    assert_eq!((cdg.path.rtt, cdg.path.delayed), (None, 2));
}

/// Slow start with ACKs of one segment at these microseconds, each with this RTT; after how many
/// the threshold is set.
fn slow_start_of(hystart_detect: u32, acks: impl Iterator<Item = (u64, u64)>) -> Option<usize> {
    let mut cdg = established_with(LinuxCdgConfig { hystart_detect, ..LinuxCdgConfig::default() }, 10, false);
    cdg.path.rtt_seq = u64::MAX;
    for (count, (at, rtt)) in acks.enumerate() {
        let f = Flight { now: ackclock_units::Time::from_nanos(at * 1000), ..flight(0, cwnd(&cdg)) };
        cdg.on_arrival(&f, &arrival(rtt));
        let before = cdg.window().cwnd;
        let _ = cdg.on_ack(&f, &ack(1, 100));
        if cdg.window().ssthresh < Window::INFINITE {
            assert_eq!(cdg.window().ssthresh, before);
            return Some(count);
        }
    }
    None
}

#[test]
fn slow_start_ends_with_a_long_train_of_acks() {
    // The train may be 10 ms long with an RTT of 20 ms. The first begins it, and the eleventh ms is
    // beyond.
    let every_ms = || (0..).map(|n| (1_000_000 + n * 1000, 20_000));
    assert_eq!(slow_start_of(1, every_ms().take(100)), Some(11));
    assert_eq!(slow_start_of(3, every_ms().take(100)), Some(11));
    // A gap of 3 ms ends it.
    let every_third = || (0..100).map(|n| (1_000_000 + n * 3000, 20_000));
    assert_eq!(slow_start_of(1, every_third()), None);
    assert_eq!(slow_start_of(1, (0..100).map(|n| (1_000_000 + n * 2999, 20_000))), Some(4));
    // The delay has not grown.
    assert_eq!(slow_start_of(2, every_ms().take(100)), None);
    assert_eq!(slow_start_of(0, every_ms().take(100)), None);
    // A base of less than 250 us is taken for 250.
    assert_eq!(slow_start_of(1, (0..100).map(|n| (1_000_000 + n * 25, 40))), Some(6));
}

#[test]
fn a_train_begins_anew_when_the_window_is_not_full() {
    let mut cdg = established_with(LinuxCdgConfig { hystart_detect: 1, ..LinuxCdgConfig::default() }, 10, false);
    cdg.path.rtt_seq = u64::MAX;
    for n in 0..100 {
        let f = Flight { cwnd_limited: n % 10 != 0, ..flight(1000 + n, cwnd(&cdg)) };
        cdg.on_arrival(&f, &arrival(20_000));
        let _ = cdg.on_ack(&f, &ack(1, 100));
    }
    assert_eq!(cdg.window().ssthresh, Window::INFINITE);
}

#[test]
fn slow_start_ends_when_the_delay_has_grown_by_an_eighth() {
    // The least of this round trip counts, after eight samples; an eighth of 20 ms is 2.5 ms.
    let mut cdg = established_with(LinuxCdgConfig { hystart_detect: 2, ..LinuxCdgConfig::default() }, 10, false);
    cdg.path.delay_min = Some(20_000);
    let mut left = Vec::new();
    for n in 0..10 {
        cdg.path.rtt = None;
        let f = flight(1000 + n, 10);
        cdg.on_arrival(&f, &arrival(if n < 9 { 22_500 } else { 22_501 }));
        left.push(cdg.leaves_slow_start(&f));
    }
    assert_eq!(left.iter().position(|&left| left), Some(9));
    // Without a sample in this round trip nothing can be said.
    cdg.path.rtt = None;
    assert!(!cdg.leaves_slow_start(&flight(2000, 10)));
    cdg.path.delay_min = None;
    assert!(!cdg.leaves_slow_start(&flight(2000, 10)));
    // At least 125 us: of 40 us not 45.
    for (rtt, leaves) in [(125, false), (126, true)] {
        cdg.path.delay_min = Some(40);
        cdg.path.rtt = Some(MinMax { min: rtt, max: rtt });
        assert_eq!(cdg.leaves_slow_start(&flight(2000, 10)), leaves, "{rtt}");
    }
    // The next round trip counts its samples anew.
    let _ = round(&mut cdg, 9, 20_000, 20_000);
    assert_eq!((cdg.path.sample_cnt, cdg.path.train), (0, None));
}

#[test]
fn a_timeout_leaves_one_segment_and_no_back_off_follows_until_it_is_repaired() {
    let mut cdg = established_with(LinuxCdgConfig::default(), 60, true);
    cdg.path.shadow_wnd = 100 * MSS;
    let timeout = |repeated| Signal::Timeout { repeated, kept: 0 };
    cdg.on_signal(&flight(100, 60), timeout(false));
    assert_eq!((cwnd(&cdg), ssthresh(&cdg), cdg.path.shadow_wnd), (1, 50, 50 * MSS));
    cdg.on_signal(&flight(200, 1), timeout(true));
    assert_eq!((cwnd(&cdg), ssthresh(&cdg), cdg.path.shadow_wnd), (1, 50, 50 * MSS));

    // Decided, but it does not happen: the next loss takes beta of the window.
    let _ = round(&mut cdg, 3, 20_000, 20_000);
    let f = Flight { snd_una: 4000 * MSS, snd_nxt: 4999 * MSS, after_timeout: true, ..flight(400, 3) };
    cdg.on_arrival(&f, &arrival(LONG));
    let before = cdg.window();
    assert_eq!(cdg.on_ack(&f, &ack(2, 100)), Verdict::Continue);
    assert_eq!(cdg.window(), before);
    cdg.state.window.cwnd = 100 * MSS;
    cdg.on_signal(&flight(500, 100), Signal::Loss);
    assert_eq!(cwnd(&cdg), 70);

    cdg.on_signal(&flight(600, 70), Signal::Spurious);
    assert_eq!((cwnd(&cdg), ssthresh(&cdg)), (100, 70));
}

#[test]
fn idle_time_and_another_controllers_window() {
    let mut cdg = established_with(LinuxCdgConfig::default(), 60, true);
    let _ = round(&mut cdg, 1, 20_000, 30_000);
    let _ = round(&mut cdg, 2, 20_001, 30_000);
    assert_ne!(cdg.gradients, vec![MinMax::default(); 8]);
    cdg.path.shadow_wnd = 200 * MSS;
    let f = Flight { initial_window: 10 * MSS, ..flight(9000, 60) };
    cdg.state.window.cwnd = 60 * MSS;
    cdg.on_signal(&f, Signal::IdleRestart);
    // Three quarters of the window are the threshold; the shadow window is what the window was.
    assert_eq!((cwnd(&cdg), ssthresh(&cdg)), (10, 45));
    assert_eq!((cdg.path.shadow_wnd, cdg.path.rtt_seq), (60 * MSS, f.snd_nxt));
    assert_eq!((cdg.path.rtt, cdg.path.rtt_prev, cdg.path.sum), (None, None, MinMax::default()));
    assert_eq!(cdg.gradients, vec![MinMax::default(); 8]);

    cdg.take_over(Window { cwnd: 33 * MSS, ssthresh: 20 * MSS });
    assert_eq!((cwnd(&cdg), ssthresh(&cdg), cdg.path.shadow_wnd), (33, 20, 33 * MSS));
}
