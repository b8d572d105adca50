use super::*;
use crate::coupled::network::{Link, Loss, Network, beside_tcp, subflow, until_change};
use crate::fixture::{MSS, ack, cwnd, flight};
use crate::{Coupled, Lia, NewRenoConfig};

fn olia() -> Olia {
    Olia::new(NewRenoConfig::default())
}

/// In congestion avoidance, the subflow at `own`.
fn avoiding(own: usize, subflows: &[Subflow]) -> Olia {
    let mut cc = olia();
    cc.on_established(&flight(0, 0));
    cc.take_over(Window { cwnd: subflows[own].cwnd, ssthresh: 2 * MSS });
    cc.couple(own, subflows);
    cc
}

/// A subflow with `kilobytes` between its losses.
fn losing(segments: u64, rtt: u64, kilobytes: u64) -> Subflow {
    let shared = Shared { between_losses: 1000 * kilobytes, since_loss: 1000, ..Shared::default() };
    Subflow { shared, ..subflow(segments, rtt) }
}

/// Acknowledged segments until the window changes, and its window then.
fn change(own: usize, subflows: &[Subflow]) -> (u64, u64) {
    let mut cc = avoiding(own, subflows);
    (until_change(&mut cc), cwnd(&cc))
}

#[test]
fn windows_move_from_the_largest_to_the_best() {
    // In segments and seconds: sum(cwnd / rtt) = 300. The first is best, the second largest: a =
    // 1/2 and -1/2. 10 / 0.01 / 90000 + 1/2 / 10 = 0.0611 = 1 / 16.4; 20 / 0.01 / 90000 - 1/2 / 20
    // = -0.00278 = -1 / 360.
    let subflows = [losing(10, 100, 100), losing(20, 100, 50)];
    assert_eq!(change(0, &subflows), (17, 11));
    let (acked, window) = change(1, &subflows);
    assert!((360..=361).contains(&acked) && window == 19, "{acked}");
    // The RTT counts twice: 100 kB in 200 ms are as 25 in 100. The largest is best, and a is 0: 10
    // / 0.04 / 250^2 = 1 / 250, 20 / 0.01 / 250^2 = 1 / 31.25.
    let subflows = [losing(10, 200, 100), losing(20, 100, 50)];
    let (acked, window) = change(0, &subflows);
    assert!((250..=251).contains(&acked) && window == 11, "{acked}");
    assert_eq!(change(1, &subflows), (32, 21));
}

#[test]
fn three_subflows_share_the_move() {
    // 50 / 0.1 = 500. Best is the first, largest are the other two: a = 1/3, -1/6, -1/6. 10 / 0.01
    // / 250000 + 1/3 / 10 = 0.0373 = 1 / 26.8; 20 / 0.01 / 250000 - 1/6 / 20 = -0.000333 = -1 /
    // 3000.
    let subflows = [losing(10, 100, 100), losing(20, 100, 50), losing(20, 100, 50)];
    assert_eq!(change(0, &subflows), (27, 11));
    for own in [1, 2] {
        let (acked, window) = change(own, &subflows);
        assert!((3000..=3001).contains(&acked) && window == 19, "{acked}");
    }
    // Two best: 1/6 each, the largest -1/3. 10 / 0.01 / 160000 + 1/6 / 10 = 1 / 43.6; 20 / 0.01 /
    // 160000 - 1/3 / 20 = -0.004167 = -1 / 240.
    let subflows = [losing(10, 100, 100), losing(10, 100, 100), losing(20, 100, 50)];
    assert_eq!((change(0, &subflows), change(1, &subflows)), ((44, 11), (44, 11)));
    let (acked, window) = change(2, &subflows);
    assert!((240..=241).contains(&acked) && window == 19, "{acked}");
    // Neither best nor largest: a = 0. 15 / 0.01 / 450^2 = 1 / 135.
    let subflows = [losing(10, 100, 100), losing(15, 100, 40), losing(20, 100, 50)];
    let (acked, window) = change(1, &subflows);
    assert!((135..=136).contains(&acked) && window == 16, "{acked}");
}

#[test]
fn windows_that_differ_by_less_than_a_segment_are_the_same() {
    // Both are largest, and so is the best one: 10 / 0.01 / 204.8^2 = 1 / 42. With 1/2 / 10 it
    // would be 1 / 13.6.
    let more = Subflow { cwnd: 10 * MSS + 700, ..losing(10, 100, 50) };
    let subflows = [losing(10, 100, 100), more];
    let growth = growth(Siblings::new(0, &subflows).unwrap()).unwrap() * MSS as f64;
    assert!((1.0 / 42.5..1.0 / 41.5).contains(&growth), "{growth}");
}

#[test]
fn a_window_that_shrinks_stays_in_avoidance_and_above_two_segments() {
    let mut cc = avoiding(1, &[losing(10, 100, 100), losing(20, 100, 50)]);
    cc.take_over(Window { cwnd: 20 * MSS, ssthresh: 20 * MSS });
    assert!((360..=361).contains(&until_change(&mut cc)));
    assert_eq!(cc.window(), Window { cwnd: 19 * MSS, ssthresh: 18 * MSS });
    // A great ACK takes many at once, down to two; it says so.
    assert_eq!(cc.on_ack(&flight(0, 19), &ack(100_000, 100)), Verdict::Trimmed);
    assert_eq!(cc.window(), Window { cwnd: 2 * MSS, ssthresh: 2 * MSS });
    assert_eq!(cc.on_ack(&flight(0, 2), &ack(100_000, 100)), Verdict::Continue);
}

#[test]
fn it_tells_the_bytes_between_losses() {
    let mut cc = olia();
    let at = |una: u64| Flight { snd_una: una, ..flight(0, 10) };
    let told = |cc: &Olia| (cc.shared().between_losses, cc.shared().since_loss);
    cc.on_established(&at(1));
    let _ = cc.on_ack(&at(5001), &ack(1, 100));
    assert_eq!(told(&cc), (0, 5000));
    cc.on_signal(&at(5001), Signal::Loss);
    assert_eq!(told(&cc), (5000, 0));
    // Nothing was acknowledged since: no other loss, nor one that could be undone.
    cc.on_signal(&at(5001), Signal::Timeout { repeated: false, kept: 0 });
    cc.on_signal(&at(5001), Signal::Spurious);
    assert_eq!(told(&cc), (5000, 0));
    let _ = cc.on_ack(&at(8001), &ack(1, 100));
    cc.on_signal(&at(8001), Signal::Loss);
    let _ = cc.on_ack(&at(9001), &ack(1, 100));
    assert_eq!(told(&cc), (3000, 1000));
    cc.on_signal(&at(9001), Signal::Timeout { repeated: true, kept: 0 });
    assert_eq!(told(&cc), (3000, 1000));
    // The timeout was spurious.
    cc.on_signal(&at(9001), Signal::Spurious);
    assert_eq!(told(&cc), (5000, 4000));
    // A mark counts and is not undone.
    cc.on_signal(&at(9001), Signal::Ecn);
    cc.on_signal(&at(9001), Signal::Spurious);
    assert_eq!(told(&cc), (4000, 0));
}

#[test]
fn alone_it_is_newreno() {
    for subflows in [&[subflow(20, 100)][..], &[subflow(20, 100), Subflow { srtt: None, ..subflow(90, 100) }]] {
        assert_eq!(change(0, subflows), (20, 21));
    }
    // The formula gives the same where a sibling has a window of nothing: 20 / 0.01 / 200^2.
    let share = growth(Siblings::new(0, &[losing(20, 100, 1), subflow(0, 100)]).unwrap()).unwrap() * MSS as f64 * 20.0;
    assert!((share - 1.0).abs() < 1e-9, "{share}");
}

const GOOD: Link = Link { rtt: 100, loss: Loss::Random(0.001) };
const BAD: Link = Link { rtt: 100, loss: Loss::Random(0.01) };

#[test]
fn load_moves_to_the_best_path_and_the_other_one_is_still_probed() {
    let (olia, tcp) = beside_tcp(&[GOOD, BAD], &[0, 1], || Box::new(olia()));
    let (lia, _) = beside_tcp(&[GOOD, BAD], &[0, 1], || Box::new(Lia::new(NewRenoConfig::default())));
    let share = (olia[0] + olia[1]) / tcp[0];
    assert!((0.85..1.15).contains(&share), "{olia:?} {tcp:?}");
    // More of it than LIA moves. The other path keeps no more than a window of two or three
    // segments, with RTTs of 100 ms; the optimum would be none.
    assert!(olia[0] > lia[0] && olia[1] < 0.85 * lia[1], "{olia:?} {lia:?}");
    assert!((20.0..30.0).contains(&olia[1]), "{olia:?}");
}

#[test]
fn it_responds_when_another_path_becomes_the_best() {
    let mut network = Network::new(&[GOOD, BAD]);
    (0..2).for_each(|link| network.add(0, link, Box::new(olia())));
    network.run(200);
    let before = network.run(200);
    assert!(before[0] > 10.0 * before[1], "{before:?}");
    network.change(0, BAD.loss);
    network.change(1, GOOD.loss);
    let soon = network.run(50);
    let after = network.run(200);
    assert!(soon[1] > 5.0 * soon[0] && after[1] > 10.0 * after[0], "{soon:?} {after:?}");
}

#[test]
fn paths_that_are_alike_are_both_used() {
    let mut network = Network::new(&[GOOD, GOOD]);
    (0..2).for_each(|link| network.add(0, link, Box::new(olia())));
    network.run(100);
    for _ in 0..5 {
        let rates = network.run(400);
        let share = rates[0] / (rates[0] + rates[1]);
        assert!((0.25..0.75).contains(&share), "{rates:?}");
    }
}

#[test]
fn at_one_bottleneck_two_subflows_take_what_one_tcp_takes() {
    for capacity in [60, 150] {
        let links = [Link { rtt: 100, loss: Loss::Above(capacity) }];
        let (olia, tcp) = beside_tcp(&links, &[0, 0], || Box::new(olia()));
        let share = (olia[0] + olia[1]) / tcp[0];
        assert!((0.85..1.1).contains(&share), "{capacity}: {olia:?} {tcp:?}");
    }
}
