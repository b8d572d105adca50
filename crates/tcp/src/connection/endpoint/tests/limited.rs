//! The limits that hold the sender back. Segments of 1000 bytes; the connection is open at 100 ms.

use ackclock_cc::Needs;

use super::witness::Witness;
use super::*;
use crate::LimitedTime;

const MS: fn(u64) -> Span = Span::from_millis;

#[test]
fn each_time_belongs_to_the_reason_at_which_the_sender_stopped() {
    let witness = Witness::new(4000, Needs::default());
    let mut script = witness.open(config());
    script.wait(50);
    script.write(4000);
    script.wait(10);
    // At 160 ms there is more than the congestion window lets go, at 200 ms the peer's window
    // closes.
    script.write(10_000);
    script.wait(40);
    script.ack_window(4001, 0);
    script.wait(50);
    script.ack_window(4001, 65_535);
    script.wait(50);
    // From 300 ms on all is sent.
    witness.set_cwnd(40_000);
    script.ack(8001);
    script.wait(30);
    let held = LimitedTime { cwnd: MS(40 + 50), rwnd: MS(50), app: MS(60 + 30), pacing: Span::ZERO };
    assert_eq!(script.endpoint.sender().limits().read(script.now), held);
    // A sender that has closed is held back by nothing.
    script.close();
    script.wait(100);
    assert_eq!(script.endpoint.sender().limits().read(script.now), held);
}

#[test]
fn waiting_for_the_time_to_send_is_a_reason_too() {
    let witness = Witness::new(40_000, Needs::default());
    witness.set_rate(100_000);
    let mut script = witness.open(config());
    script.write(14_000);
    script.wait(100);
    // The last of the four that waited left at 140 ms.
    let held = LimitedTime { pacing: MS(40), app: MS(60), ..LimitedTime::default() };
    assert_eq!(script.endpoint.sender().limits().read(script.now), held);
}
