//! Delivery rate samples and the controller that rules its window, by hand: draft-ietf-ccwg-bbr
//! section 4.1. Segments of 1000 bytes; the handshake has measured 100 ms and ended at 100 ms.

use ackclock_cc::{Lost, Needs, RateSample};

use super::peer::full;
use super::witness::Witness;
use super::*;
use crate::{CaState, LossDetector, TcpInfo};

const MS: fn(u64) -> Span = Span::from_millis;

/// Episodes as the RFCs write them, and as Linux has them.
fn both() -> [Config; 2] {
    let linux = Config { loss_detector: LossDetector::Rack, undo: true, frto: true, tlp: true, ..config() };
    [Config { min_rto: MinRto::OfTotal(MS(1000)), ..config() }, linux]
}

#[test]
fn a_sample_spans_from_the_state_at_sending_to_the_ack() {
    for config in both() {
        let witness = Witness::ruling(10_000);
        let mut script = witness.open(config);
        script.write(30_000);
        assert_eq!(script.data(), full(1, 10));
        script.wait(100);
        script.ack(2001);
        // Sent at 100 ms with nothing delivered, after a time without data; acknowledged 100 ms
        // later.
        let ack = witness.ack();
        assert_eq!((ack.acked, ack.delivered, ack.lost), (2000, 2000, 0));
        let first = RateSample {
            total_delivered: 2000,
            prior_delivered: 0,
            delivered: 2000,
            interval: Some(MS(100)),
            app_limited: true,
            in_flight_when_sent: 2000,
            lost: 0,
        };
        assert_eq!(ack.rate, Some(first));
        script.wait(10);
        script.ack(4001);
        assert_eq!(witness.ack().rate.map(|rate| (rate.delivered, rate.interval)), Some((4000, Some(MS(110)))));
        script.wait(90);
        // At 300 ms one ACK for the rest of the first flight and the two segments that were sent at
        // 200 ms: of those the last was sent 100 ms after what was acknowledged then, and is
        // acknowledged 100 ms later; 12,000 - 2000 meanwhile.
        script.ack(12_001);
        let stretched = RateSample {
            total_delivered: 12_000,
            prior_delivered: 2000,
            delivered: 10_000,
            app_limited: false,
            in_flight_when_sent: 10_000,
            ..first
        };
        assert_eq!(witness.ack().rate, Some(stretched));
        // 10,000 bytes in 100 ms.
        let info = TcpInfo::of(&script.endpoint, script.now);
        assert_eq!((info.delivery_rate, info.delivery_rate_app_limited), (100_000, 0));
    }
}

#[test]
fn compressed_acks_do_not_make_the_path_look_fast() {
    let witness = Witness::ruling(10_000);
    let mut script = witness.open(config());
    script.write(40_000);
    script.wait(100);
    script.ack(1001);
    script.wait(50);
    script.ack(2001);
    script.wait(50);
    // The ACKs of nine segments come at once, at 300 ms; ten more are sent.
    script.ack(11_001);
    script.wait(100);
    witness.take();
    // At 400 ms the ACK of the segment that was sent at 250 ms with 2000 bytes delivered: 150 ms
    // after its round trip's first, and acknowledged 150 ms later.
    script.ack(12_001);
    let rate = witness.ack().rate.unwrap();
    assert_eq!((rate.prior_delivered, rate.delivered, rate.interval), (2000, 10_000, Some(MS(150))));
    // The segments sent at 300 ms had 11,000 bytes delivered; the newest of them acknowledged was
    // sent at 200 ms. Their ACK comes 100 ms later, but they were sent over 100 ms only: with
    // nothing compressed both are the same.
    script.ack(13_001);
    let rate = witness.ack().rate.unwrap();
    assert_eq!((rate.prior_delivered, rate.delivered, rate.interval), (11_000, 2000, Some(MS(100))));
    assert_eq!(rate.in_flight_when_sent, 2000);
}

#[test]
fn the_longer_of_the_two_phases_counts() {
    let witness = Witness::ruling(10_000);
    let mut script = witness.open(config());
    script.write(10_000);
    script.wait(60);
    witness.set_cwnd(12_000);
    // At 160 ms two more: they were sent 60 ms after the first.
    script.write(10_000);
    script.wait(40);
    script.ack(10_001);
    witness.take();
    script.wait(60);
    // At 260 ms: 12,000 bytes since the first was sent at 100 ms.
    script.ack(12_001);
    assert_eq!(witness.ack().rate.map(|rate| (rate.delivered, rate.interval)), Some((12_000, Some(MS(160)))));
    // Eight were sent at 200 ms, with 10,000 delivered at that time, and the newest acknowledged
    // sent at 100 ms. The ACK takes 130 ms.
    script.wait(70);
    script.ack(20_001);
    assert_eq!(witness.ack().rate.map(|rate| (rate.delivered, rate.interval)), Some((10_000, Some(MS(130)))));
}

#[test]
fn losses_and_retransmissions_have_what_stood_when_they_were_sent() {
    for config in both() {
        let witness = Witness::ruling(10_000);
        let mut script = witness.open(config);
        script.write(10_000);
        assert_eq!(script.data(), full(1, 10));
        witness.take();
        script.wait(100);
        script.sack(1, &[(1001, 4001)]);
        // SACKed data is delivered now.
        let log = witness.take();
        assert_eq!(log.order, "LSA");
        let lost = Lost {
            seq: 1,
            bytes: 1000,
            total_delivered: 3000,
            total_lost: 1000,
            prior_delivered: 0,
            prior_lost: 0,
            in_flight_when_sent: 1000,
            app_limited: true,
            selective_acks: true,
        };
        assert_eq!(log.losses, [lost]);
        let rate = RateSample {
            total_delivered: 3000,
            prior_delivered: 0,
            delivered: 3000,
            interval: Some(MS(100)),
            app_limited: true,
            in_flight_when_sent: 4000,
            lost: 1000,
        };
        let ack = log.acks[0];
        assert_eq!((ack.acked, ack.delivered, ack.lost, ack.rate), (0, 3000, 1000, Some(rate)));
        assert_eq!(script.data(), full(1, 1));
        script.wait(100);
        // The retransmission was sent with 3000 bytes delivered and 1000 lost, and then 10 - 3
        // segments in flight. The acknowledgment covers what SACK has reported, which counts once.
        script.ack(4001);
        // To RACK it also proves that the six which were sent 100 ms before it are lost.
        let newly_lost = if script.endpoint.sender.loss.linux_episodes() { 6000 } else { 0 };
        let again = RateSample {
            total_delivered: 4000,
            prior_delivered: 3000,
            delivered: 1000,
            app_limited: false,
            in_flight_when_sent: 7000,
            lost: newly_lost,
            ..rate
        };
        let log = witness.take();
        let ack = log.acks[0];
        assert_eq!((ack.acked, ack.delivered, ack.lost, ack.rate), (4000, 1000, newly_lost, Some(again)));
        assert_eq!(log.losses.len() as u64 * 1000, newly_lost);
    }
}

#[test]
fn an_interval_below_the_shortest_round_trip_tells_no_rate() {
    let witness = Witness::ruling(20_000);
    let mut script = witness.open(config());
    script.write(5000);
    script.wait(100);
    witness.set_cwnd(1000);
    script.sack(1, &[(2001, 5001)]);
    // Two are lost, and one is sent again whatever the window. Its original arrives late.
    assert_eq!(script.data(), [full(1, 5), full(1, 1)].concat());
    script.wait(5);
    witness.set_cwnd(20_000);
    witness.take();
    script.ack(1001);
    // Sent at 200 ms, 100 ms after what was delivered then: a rate after all.
    assert_eq!(witness.ack().rate.map(|rate| (rate.delivered, rate.interval)), Some((1000, Some(MS(100)))));
    // The second was sent at 205 ms, 5 ms after the first, and its original arrives within 5 ms.
    assert_eq!(script.data(), full(1001, 1));
    script.wait(5);
    script.ack(5001);
    assert_eq!(witness.ack().rate.map(|rate| (rate.delivered, rate.interval)), Some((1000, None)));
}

#[test]
fn samples_are_limited_by_the_application_until_the_bubble_is_delivered() {
    for config in both() {
        let witness = Witness::ruling(10_000);
        let limited = || witness.ack().rate.map(|rate| rate.app_limited);
        let mut script = witness.open(config);
        script.write(4000);
        script.wait(100);
        // At the ACK nothing waits, 4 of 10 are in flight: what is sent until 4000 bytes are
        // delivered does not fill the pipe.
        script.ack(4001);
        assert_eq!(limited(), Some(true));
        script.write(30_000);
        script.wait(100);
        // 5000 bytes: the bubble is over. Segments sent before were unaware of it, those sent now
        // are not.
        script.ack(5001);
        assert_eq!(limited(), Some(true));
        script.wait(100);
        script.ack(14_001);
        assert_eq!(limited(), Some(true));
        script.ack(15_001);
        assert_eq!(limited(), Some(false));
        let flight = script.endpoint.sender.flight(script.now);
        assert!(!flight.app_limited);
    }
}

#[test]
fn a_full_window_and_an_unrepaired_loss_are_no_lack_of_data() {
    let dry = |cwnd_at_ack: u64, sack: bool| {
        let witness = Witness::ruling(10_000);
        let mut script = witness.open(config());
        script.write(10_000);
        script.wait(100);
        script.ack(1001);
        // Nine in flight, nothing unsent; the mark of the first write is gone.
        assert!(!script.endpoint.sender.flight(script.now).app_limited);
        witness.set_cwnd(cwnd_at_ack);
        if sack {
            // Two are lost, and the window lets go but the first.
            script.sack(1001, &[(3001, 6001)]);
            witness.set_cwnd(10_000);
            let retransmitted = script.endpoint.sender.loss.board.resent();
            assert_eq!((script.endpoint.sender.loss.board.lost(), retransmitted), (2000, 1000));
        }
        let now = script.now;
        script.endpoint.sender.check_app_limited(now, script.endpoint.sender.sequence.written());
        script.endpoint.sender.flight(now).app_limited
    };
    assert!(dry(10_000, false));
    assert!(!dry(9000, false));
    assert!(!dry(1000, true));
}

#[test]
fn nothing_shapes_the_window_of_a_controller_that_rules_it() {
    for config in both() {
        let witness = Witness::ruling(10_000);
        let mut script = witness.open(config);
        script.write(30_000);
        script.wait(100);
        script.sack(1, &[(1001, 5001)]);
        // Four have arrived and one is lost: five may go out, the retransmission and four.
        assert_eq!(
            (script.endpoint.sender().loss().state(), script.endpoint.sender().cwnd()),
            (CaState::Recovery, 10_000)
        );
        assert_eq!(script.data(), [full(1, 10), full(1, 1), full(10_001, 4)].concat());
        witness.take();
        // In recovery, too, each ACK that tells something is told, and no other.
        script.sack(1, &[(1001, 6001)]);
        script.sack(1, &[(1001, 6001)]);
        let log = witness.take();
        assert_eq!((log.order.as_str(), log.acks[0].delivered), ("A", 1000));
    }
}

#[test]
fn a_timeout_tells_each_loss() {
    for config in both() {
        let witness = Witness::ruling(4000);
        let mut script = witness.open(Config { tlp: false, ..config });
        script.write(4000);
        script.wait(1000);
        let log = witness.take();
        assert_eq!(log.order, "LLLLS");
        let told: Vec<_> =
            log.losses.iter().map(|lost| (lost.seq, lost.total_lost, lost.in_flight_when_sent)).collect();
        assert_eq!(told, [(1, 1000, 1000), (1001, 2000, 2000), (2001, 3000, 3000), (3001, 4000, 4000)]);
    }
}

#[test]
fn who_does_not_ask_pays_nothing_and_hears_how_much_was_lost() {
    for config in both() {
        let witness = Witness::new(10_000, Needs::default());
        let mut script = witness.open(Config { prr: Prr::Off, ..config });
        script.write(10_000);
        script.wait(100);
        assert!(!script.endpoint.sender.loss.board.samples_rates());
        script.sack(1, &[(1001, 4001)]);
        script.ack(4001);
        let log = witness.take();
        assert_eq!(log.order, "S", "in recovery it is not asked");
        assert_eq!(TcpInfo::of(&script.endpoint, script.now).delivery_rate, 0);
    }
}

#[test]
fn another_controller_may_ask_in_the_middle() {
    let witness = Witness::new(10_000, Needs::default());
    let mut script = witness.open(config());
    script.write(30_000);
    script.wait(100);
    let other = Witness::ruling(10_000);
    let now = script.now;
    script.endpoint.set_congestion_control(now, Box::new(other.clone()));
    // The controller knows nothing of data sent before.
    script.ack(1001);
    assert_eq!(other.ack().rate, None);
    script.wait(100);
    script.ack(11_001);
    let rate = other.ack().rate.unwrap();
    // The one that was sent at 200 ms, with 1000 bytes delivered.
    assert_eq!((rate.total_delivered, rate.prior_delivered), (11_000, 1000));
    script.endpoint.set_congestion_control(now, Box::new(witness.clone()));
    assert!(!script.endpoint.sender.loss.board.samples_rates());
}

#[test]
fn departures_are_told_to_those_who_ask_and_else_when_sending_starts() {
    for config in both() {
        for departures in [false, true] {
            let witness = Witness::new(3000, Needs { departures, ..Needs::default() });
            let mut script = witness.open(config.clone());
            let told = |witness: &Witness| witness.take().sent.iter().map(|sent| sent.seq).collect::<Vec<_>>();
            script.write(5000);
            assert_eq!(script.data(), full(1, 3));
            assert_eq!(told(&witness), if departures { vec![1, 1001, 2001] } else { vec![1] });
            script.wait(100);
            script.ack(2001);
            assert_eq!(script.data(), full(3001, 2));
            assert_eq!(told(&witness), if departures { vec![3001, 4001] } else { vec![] });
            script.wait(100);
            script.ack(5001);
            script.write(1000);
            assert_eq!(script.data(), full(5001, 1));
            assert_eq!(told(&witness), [5001]);
        }
    }
}
