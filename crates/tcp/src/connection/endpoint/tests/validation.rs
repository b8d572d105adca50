//! The use of the congestion window (RFC 7661, RFC 2861) by hand. Segments of 1000 bytes; the
//! handshake has measured 100 ms and ended at 100 ms.

use ackclock_cc::{Needs, Window};

use super::peer::full;
use super::witness::Witness;
use super::*;
use crate::{CaState, CwndValidation};

fn validating(cwnd_validation: CwndValidation) -> Config {
    Config { cwnd_validation, prr: Prr::Off, ..config() }
}

/// A window of 20 segments that only the endpoint changes.
fn rfc7661() -> (Witness, Script) {
    let witness = Witness::new(20_000, Needs::default());
    let script = witness.open(validating(CwndValidation::Rfc7661));
    (witness, script)
}

/// `bytes` are sent at once and acknowledged 100 ms later.
fn exchange(script: &mut Script, bytes: u64) {
    script.write(bytes);
    script.wait(100);
    let nxt = script.endpoint.sender().sequence().nxt();
    script.ack(nxt);
}

fn grows(script: &Script) -> bool {
    script.endpoint.sender.flight(script.now).cwnd_limited
}

#[test]
fn pipe_ack_is_what_a_round_trip_carried_of_late() {
    let (_, mut script) = rfc7661();
    let pipe_ack =
        |script: &Script| script.endpoint.sender.validation.pipe_ack(script.now, script.endpoint.sender.rtt.srtt());
    // Section 4.2: undefined at first, which validates.
    assert_eq!((pipe_ack(&script), grows(&script)), (None, true));
    script.write(4000);
    script.wait(100);
    script.ack(2001);
    assert_eq!(pipe_ack(&script), None, "the round trip is not over");
    script.ack(4001);
    assert_eq!(pipe_ack(&script), Some(4000));
    // 4000 are less than half of 20,000: section 4.3.
    assert!(!grows(&script));
    exchange(&mut script, 10_000);
    assert_eq!((pipe_ack(&script), grows(&script)), (Some(10_000), true));
    script.wait(200);
    exchange(&mut script, 3000);
    // At 600 ms. The largest of the last max(3 * 100 ms, 1 s) counts, in periods of a quarter of
    // it: the first began at 200 ms, the second with this sample.
    script.wait(550);
    assert_eq!(pipe_ack(&script), Some(10_000));
    script.wait(100);
    assert_eq!(pipe_ack(&script), Some(3000));
    script.wait(400);
    assert_eq!(pipe_ack(&script), Some(0));
}

#[test]
fn a_steady_stream_carries_its_window() {
    let (witness, mut script) = rfc7661();
    witness.set_cwnd(8000);
    script.write(60_000);
    for round in 1..5 {
        script.wait(100);
        for segment in 1..=8 {
            script.ack((round - 1) * 8000 + segment * 1000 + 1);
        }
        assert_eq!(
            script.endpoint.sender.validation.pipe_ack(script.now, script.endpoint.sender.rtt.srtt()),
            Some(8000)
        );
    }
}

#[test]
fn a_loss_brings_an_unused_window_down_to_what_was_used() {
    let (witness, mut script) = rfc7661();
    exchange(&mut script, 4000);
    script.write(6000);
    script.wait(100);
    script.sack(4001, &[(5001, 8001)]);
    // Section 4.4.1: cwnd = max(pipeACK, LossFlightSize) / 2 = max(4000, 6000) / 2.
    assert_eq!((script.endpoint.sender().loss().state(), script.endpoint.sender().cwnd()), (CaState::Recovery, 3000));
    assert_eq!(script.data(), [full(1, 10), full(4001, 1)].concat());
    script.wait(100);
    script.ack(10_001);
    // At its end (max(pipeACK, LossFlightSize) - R) / 2 = (6000 - 1000) / 2, and pipeACK is
    // undefined.
    assert_eq!(script.endpoint.sender().cwnd(), 2500);
    assert_eq!(
        (script.endpoint.sender.validation.pipe_ack(script.now, script.endpoint.sender.rtt.srtt()), grows(&script)),
        (None, true)
    );
    // A window that was used is the controller's, which leaves it alone here.
    witness.set_cwnd(8000);
    exchange(&mut script, 4000);
    script.write(6000);
    script.wait(100);
    script.sack(14_001, &[(15_001, 18_001)]);
    assert_eq!((script.endpoint.sender().loss().state(), script.endpoint.sender().cwnd()), (CaState::Recovery, 8000));
}

#[test]
fn a_loss_leaves_half_of_what_a_round_trip_carried_before() {
    let (_, mut script) = rfc7661();
    exchange(&mut script, 9000);
    script.write(4000);
    script.wait(100);
    script.sack(9001, &[(10_001, 13_001)]);
    // Section 4.4.1: max(9000, 4000) / 2, and at the end (9000 - 1000) / 2. So does the
    // implementation of the RFC's authors (github.com/rsecchi/newcwv, tcp_newcwv_end_recovery).
    assert_eq!((script.endpoint.sender().loss().state(), script.endpoint.sender().cwnd()), (CaState::Recovery, 4500));
    script.segments();
    script.wait(100);
    script.ack(13_001);
    assert_eq!(script.endpoint.sender().cwnd(), 4000);
}

/// A window of 40 segments and a threshold of 10, beside an initial window of four.
fn large(cwnd_validation: CwndValidation) -> Script {
    let mut script = Script::open(validating(cwnd_validation));
    script.endpoint.sender.cc.take_over(Window { cwnd: 40_000, ssthresh: 10_000 });
    script
}

#[test]
fn an_unused_window_is_kept_for_five_minutes_and_halved() {
    let mut script = large(CwndValidation::Rfc7661);
    let window = |script: &Script| script.endpoint.sender.cc.window();
    exchange(&mut script, 4000);
    script.wait(299_000);
    exchange(&mut script, 1000);
    // An idle time of more than a timeout costs nothing, nor does a window that is not used make it
    // grow.
    assert_eq!(window(&script), Window { cwnd: 40_000, ssthresh: 10_000 });
    script.wait(1000);
    // Not validated since 100 ms, and it is 300,300 ms. Section 4.4.3: ssthresh = max(ssthresh, 3/4
    // cwnd), cwnd / 2.
    exchange(&mut script, 1000);
    assert_eq!(window(&script), Window { cwnd: 20_000, ssthresh: 30_000 });
    script.wait(300_000);
    exchange(&mut script, 1000);
    assert_eq!(window(&script), Window { cwnd: 10_000, ssthresh: 30_000 });
    // 5000, then no less than the initial window.
    script.wait(900_000);
    exchange(&mut script, 1000);
    assert_eq!(window(&script).cwnd, 4000);
}

#[test]
fn rfc_2861_takes_half_of_what_is_unused_each_timeout() {
    let mut script = large(CwndValidation::Rfc2861);
    let window = |script: &Script| script.endpoint.sender.cc.window();
    for _ in 0..10 {
        exchange(&mut script, 4000);
        assert_eq!(window(&script).cwnd, 40_000);
    }
    // At 1100 ms the window has not been full for the timeout of 1 s: (40,000 + 4000) / 2;
    // ssthresh = 3/4 of 40,000.
    exchange(&mut script, 4000);
    assert_eq!(window(&script), Window { cwnd: 22_000, ssthresh: 30_000 });
    for _ in 0..10 {
        exchange(&mut script, 4000);
    }
    assert_eq!(window(&script).cwnd, 13_000);
}

#[test]
fn an_unused_window_stays_or_grows_as_the_host_has_it() {
    for (rule, cwnd) in [(CwndValidation::Growth, 40_000), (CwndValidation::Off, 41_000)] {
        let mut script = large(rule);
        // A window's worth of bytes in ten round trips, which would be a segment.
        for _ in 0..10 {
            exchange(&mut script, 4000);
        }
        assert_eq!(script.endpoint.sender.cc.window().cwnd, cwnd, "{rule:?}");
    }
}

#[test]
fn validation_leaves_a_controller_alone_that_rules_its_window() {
    let witness = Witness::ruling(20_000);
    let mut script = witness.open(validating(CwndValidation::Rfc7661));
    exchange(&mut script, 4000);
    script.write(6000);
    script.wait(100);
    script.sack(4001, &[(5001, 8001)]);
    assert_eq!(
        (
            script.endpoint.sender().cwnd(),
            script.endpoint.sender.validation.pipe_ack(script.now, script.endpoint.sender.rtt.srtt())
        ),
        (20_000, None)
    );
}
