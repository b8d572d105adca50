use super::*;
use crate::stub::{Ask, Stub, stub};
use ackclock_units::Ecn;

fn blue(config: BlueConfig) -> Blue<Stub> {
    Blue::new(config, Random::for_component(1, 0, "blue"))
}

fn ms(millis: u64) -> Time {
    Time::from_millis(millis)
}

#[track_caller]
fn assert_close(got: f64, expected: f64) {
    assert!((got - expected).abs() <= 1e-12, "{got} is not {expected}");
}

/// Bartók 2001, table 1.
#[test]
fn the_defaults_are_those_of_the_thesis() {
    let BlueConfig { freeze, init, inc, dec, max, ecn, .. } = BlueConfig::default();
    assert_eq!((freeze, init, inc, dec, max, ecn), (Span::from_millis(10), 0.0, 0.0025, 0.00125, 1.0, false));
}

/// 33 packets of 1514 bytes are 49,962 bytes, 34 are 51,476: the 34th is taken in, as the backlog
/// does not exceed 51,200 yet.
#[test]
fn the_backlog_exceeds_the_limit_by_one_packet_at_most() {
    let mut queue = blue(BlueConfig { max: 0.0, ..BlueConfig::default() });
    let mut drops = Drops::new();
    for id in 0..40 {
        queue.enqueue(ms(1), stub(id, 1514), &mut drops);
    }
    assert_eq!(queue.backlog().packets, 34);
    assert_eq!(queue.backlog().bytes, 51_476);
    assert_eq!(queue.stats(), BlueStats { limit: 6, ..BlueStats::default() });
    assert!(drops.iter().all(|drop| drop.reason == DropReason::Limit));
    // In packets likewise: the backlog must exceed the limit.
    let mut queue = blue(BlueConfig { limit: Limit::Packets(8), max: 0.0, ..BlueConfig::default() });
    for id in 0..40 {
        queue.enqueue(ms(1), stub(id, 1514), &mut drops);
    }
    assert_eq!(queue.backlog().packets, 9);
}

/// Figure 15: only if more than the freeze time has passed.
#[test]
fn a_change_freezes_the_probability() {
    let config = BlueConfig::default();
    let mut law =
        BlueLaw { pmark: 0.5, last_rise: ms(100), last_fall: ms(100), idle: false, area: 0.0, since: Time::ZERO };
    law.rise(&config, ms(110));
    assert_close(law.pmark, 0.5);
    law.rise(&config, ms(110) + Span::from_nanos(1));
    assert_close(law.pmark, 0.5025);
    law.fall(&config, ms(120));
    assert_close(law.pmark, 0.5025);
    law.fall(&config, ms(121));
    assert_close(law.pmark, 0.50125);
    law.rise(&config, ms(130));
    assert_close(law.pmark, 0.50125);
}

#[test]
fn separate_update_times_freeze_rises_and_falls_apart() {
    let config = BlueConfig { updates: BlueUpdates::Separate, ..BlueConfig::default() };
    let mut law =
        BlueLaw { pmark: 0.5, last_rise: ms(100), last_fall: ms(100), idle: false, area: 0.0, since: Time::ZERO };
    law.rise(&config, ms(111));
    law.fall(&config, ms(111));
    assert_close(law.pmark, 0.50125);
    assert_eq!((law.last_rise, law.last_fall), (ms(111), ms(111)));
    law.fall(&config, ms(122));
    law.rise(&config, ms(123));
    assert_close(law.pmark, 0.5025);
    law.rise(&config, ms(132));
    assert_close(law.pmark, 0.5025);
    law.fall(&config, ms(133));
    assert_close(law.pmark, 0.50125);
}

/// From 0 to 1 in 400 rises of 0.0025, each a little more than 10 ms after the last: somewhat above
/// 4 s.
#[test]
fn the_probability_stays_within_its_bounds() {
    let config = BlueConfig { max: 0.9, ..BlueConfig::default() };
    let mut law =
        BlueLaw { pmark: 0.0, last_rise: Time::ZERO, last_fall: Time::ZERO, idle: false, area: 0.0, since: Time::ZERO };
    for step in 1..=359 {
        law.rise(&config, ms(11 * step));
    }
    assert!((law.pmark - 359.0 * 0.0025).abs() < 1e-9);
    for step in 360..400 {
        law.rise(&config, ms(11 * step));
        assert!(law.pmark <= 0.9);
    }
    assert_close(law.pmark, 0.9);
    for step in 400..2000 {
        law.fall(&config, ms(11 * step));
    }
    assert_close(law.pmark, 0.0);
}

/// L is half of 51,200: a packet that finds 25,600 bytes raises nothing, one that finds a byte more
/// does.
#[test]
fn a_backlog_above_the_threshold_raises_the_probability() {
    let offer = |threshold, first| {
        let mut queue = blue(BlueConfig { threshold, ..BlueConfig::default() });
        let mut drops = Drops::new();
        queue.enqueue(ms(20), stub(0, first), &mut drops);
        queue.enqueue(ms(20), stub(1, 100), &mut drops);
        queue.stats().pmark
    };
    assert_close(offer(BlueThreshold::HalfLimit, 25_600), 0.0);
    assert_close(offer(BlueThreshold::HalfLimit, 25_601), 0.0025);
    assert_close(offer(BlueThreshold::At(1000), 1000), 0.0);
    assert_close(offer(BlueThreshold::At(1000), 1001), 0.0025);
    assert_close(offer(BlueThreshold::Off, 51_200), 0.0);
    // Beyond the limit the packet is lost, and that counts whatever the threshold is.
    assert_close(offer(BlueThreshold::Off, 51_201), 0.0025);
}

#[test]
fn an_idle_link_lowers_the_probability_once_a_freeze() {
    let mut queue = blue(BlueConfig { init: 0.5, ..BlueConfig::default() });
    let mut drops = Drops::new();
    assert_eq!(queue.ask(ms(10), &mut drops), None);
    assert_close(queue.stats().pmark, 0.5);
    for millis in [11, 12, 21, 22] {
        assert_eq!(queue.ask(ms(millis), &mut drops), None);
    }
    assert_close(queue.stats().pmark, 0.4975);
}

/// Section 5.3.1: with inc = dec = 0 the probability is fixed. 10,000 packets at 0.2: 2000 marks,
/// standard deviation 40.
#[test]
fn a_fixed_probability_marks_what_can_be_marked_and_drops_the_rest() {
    for (ecn, capable) in [(true, true), (true, false), (false, true)] {
        let config =
            BlueConfig { limit: Limit::Bytes(1_000_000), init: 0.2, inc: 0.0, dec: 0.0, ecn, ..BlueConfig::default() };
        let mut queue = blue(config);
        let mut drops = Drops::new();
        for id in 0..10_000 {
            let now = ms(u64::from(id));
            let packet = Stub { ecn: if capable { Ecn::Ect0 } else { Ecn::NotEct }, ..stub(id, 1514) };
            queue.enqueue(now, packet, &mut drops);
            queue.ask(now, &mut drops);
        }
        let BlueStats { pmark, marked, early, limit, .. } = queue.stats();
        let (hit, missed) = if ecn && capable { (marked, early) } else { (early, marked) };
        assert!((1800..2200).contains(&hit), "{hit}");
        assert_eq!((pmark, missed, limit, drops.len() as u64), (0.2, 0, 0, early));
    }
}

/// The expectations of ns-3's `blue-queue-disc-test-suite.cc` (proposed for src/traffic-control,
/// NITK Surathkal 2016), tests 2 to 4: a packet arrives each 0.5 ms and one leaves each 1 ms, 50 of
/// each, with room for 10. There are early drops; larger steps give more, a shorter freeze time
/// still more. Summed over 20 seeds, where ns-3 has one.
#[test]
fn ns3_steps_and_freeze_time_order_the_early_drops() {
    let early = |inc, freeze| -> u64 {
        let config = BlueConfig {
            limit: Limit::Packets(10),
            threshold: BlueThreshold::Off,
            inc,
            dec: 0.025,
            freeze: Span::from_millis(freeze),
            ..BlueConfig::default()
        };
        let run = |seed| {
            let mut queue = Blue::new(config.clone(), Random::for_component(seed, 0, "blue"));
            let mut drops = Drops::new();
            for tick in 0..100 {
                let now = Time::from_micros(500 * tick);
                if tick < 50 {
                    queue.enqueue(now, stub(tick as u32, 1000), &mut drops);
                }
                if tick % 2 == 1 {
                    queue.ask(now, &mut drops);
                }
            }
            queue.stats().early
        };
        (0..20).map(run).sum()
    };
    let (second, third, fourth) = (early(0.25, 5), early(0.35, 5), early(0.35, 1));
    assert!(0 < second && second < third && third < fourth, "{second} {third} {fourth}");
}

#[test]
fn parameters_that_make_no_sense_are_named() {
    let problem = |config: BlueConfig| config.problem().unwrap_or("none");
    assert_eq!(problem(BlueConfig::default()), "none");
    assert_eq!(problem(BlueConfig { init: 0.5, max: 0.5, ..BlueConfig::default() }), "none");
    assert!(problem(BlueConfig { init: 0.5, max: 0.4, ..BlueConfig::default() }).contains("init must not exceed max"));
    assert!(problem(BlueConfig { inc: 1.1, ..BlueConfig::default() }).contains("within 0 to 1"));
    assert!(problem(BlueConfig { dec: -0.1, ..BlueConfig::default() }).contains("within 0 to 1"));
    assert!(problem(BlueConfig { max: f64::NAN, ..BlueConfig::default() }).contains("within 0 to 1"));
}

#[test]
#[should_panic(expected = "init must not exceed max")]
fn senseless_parameters_are_refused() {
    blue(BlueConfig { init: 0.5, max: 0.4, ..BlueConfig::default() });
}

/// 0.2 for 10 ms and a nanosecond, 0.2025 from then on.
#[test]
fn the_mean_of_the_probability_is_over_time() {
    let mut queue = blue(BlueConfig { init: 0.2, limit: Limit::Packets(0), ..BlueConfig::default() });
    let mut drops = Drops::new();
    queue.enqueue(ms(0), stub(0, 100), &mut drops);
    queue.enqueue(ms(10) + Span::from_nanos(1), stub(1, 100), &mut drops);
    let time = |at| QueueDisc::<Stub>::probability_time(&queue, ms(at)).unwrap();
    assert!((time(100) - (0.2 * 0.010 + 0.2025 * 0.090)).abs() < 1e-9, "{}", time(100));
    assert!((time(200) - time(100) - 0.02025).abs() < 1e-12);
}

/// From 0.5 by 0.00125 in each 10 ms (and a nanosecond): in 1 s it falls 99 times, to 0.37625. The
/// thesis's law falls once.
#[test]
fn the_probability_decays_while_the_link_is_idle() {
    for (decay, falls) in [(false, 1), (true, 99)] {
        let mut queue = blue(BlueConfig { init: 0.5, decay, ..BlueConfig::default() });
        QueueDisc::<Stub>::idle(&mut queue, ms(20));
        queue.enqueue(ms(1010), stub(0, 100), &mut Drops::new());
        assert_close(queue.stats().pmark, 0.5 - 0.00125 * f64::from(falls));
        // Only while it is idle.
        queue.enqueue(ms(3000), stub(1, 100), &mut Drops::new());
        assert_close(queue.stats().pmark, 0.5 - 0.00125 * f64::from(falls));
    }
    // It ends at 0.
    let mut queue = blue(BlueConfig { init: 0.5, decay: true, ..BlueConfig::default() });
    QueueDisc::<Stub>::idle(&mut queue, ms(20));
    queue.enqueue(Time::from_secs(3600), stub(0, 100), &mut Drops::new());
    assert_close(queue.stats().pmark, 0.0);
}

/// 0.19 * sqrt(0.64) = 0.152 of those that cannot carry a mark are dropped, 0.64 of the others
/// marked; where that is more than P_m, it is P_m.
#[test]
fn packets_without_ecn_have_a_probability_of_their_own() {
    for (init, least, most) in [(0.64, 0.13, 0.175), (0.01, 0.004, 0.018)] {
        let config = BlueConfig {
            limit: Limit::Packets(100_000),
            init,
            inc: 0.0,
            dec: 0.0,
            ecn: true,
            drop_scale: 0.19,
            drop_power: 0.5,
            ..BlueConfig::default()
        };
        let mut queue = blue(config);
        let mut drops = Drops::new();
        for id in 0..5000 {
            queue.enqueue(ms(1), stub(id, 100), &mut drops);
            queue.enqueue(ms(1), Stub { ecn: Ecn::Ect0, ..stub(5000 + id, 100) }, &mut drops);
        }
        let shares = [queue.stats().early, queue.stats().marked].map(|packets| packets as f64 / 5000.0);
        assert!((least..most).contains(&shares[0]), "{shares:?}");
        assert!((shares[1] - init).abs() < 0.03, "{shares:?}");
    }
}
