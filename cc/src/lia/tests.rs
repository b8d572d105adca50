use proptest::prelude::*;

use super::*;
use crate::coupled::network::{Link, Loss, Network, beside_tcp, single, subflow, until_change};
use crate::fixture::{MSS, ack, acks, cwnd, flight};
use crate::{CongestionControl, Coupled, NewRenoConfig, Signal, Window};

fn lia() -> Lia {
    Lia::new(NewRenoConfig::default())
}

/// In congestion avoidance with a window of `segments`.
fn avoiding(segments: u64) -> Lia {
    let mut cc = lia();
    cc.on_established(&flight(0, 0));
    cc.take_over(Window { cwnd: segments * MSS, ssthresh: 2 * MSS });
    cc
}

#[test]
fn two_subflows_grow_by_alpha() {
    // cwnd / rtt^2 in segments and seconds: 10 / 0.01 = 1000, 20 / 0.04 = 500. cwnd / rtt: 100 and
    // 100. alpha = 30 * 1000 / 200^2 = 0.75, and 30 / 0.75 = 40: for both.
    let subflows = [subflow(10, 100), subflow(20, 200)];
    for (own, window) in [(0, 10), (1, 20)] {
        let mut cc = avoiding(window);
        cc.couple(own, &subflows);
        assert_eq!(cc.coupling.least, 40 * MSS);
        assert_eq!(until_change(&mut cc), 40);
    }
}

#[test]
fn three_subflows_grow_by_alpha() {
    // cwnd / rtt^2: 1000, 500, 50 / 0.01 = 5000. cwnd / rtt: 100, 100, 500. alpha = 80 * 5000 /
    // 700^2 = 40 / 49; 80 / alpha = 98.
    let subflows = [subflow(10, 100), subflow(20, 200), subflow(50, 100)];
    for (own, window) in [(0, 10), (1, 20), (2, 50)] {
        let mut cc = avoiding(window);
        cc.couple(own, &subflows);
        assert_eq!(until_change(&mut cc), 98);
    }
}

#[test]
fn none_grows_faster_than_newreno() {
    // cwnd / rtt^2: 10 / 0.0001 = 100000, 100 / 0.01 = 10000. cwnd / rtt: 1000, 1000. 2000^2 /
    // 100000 = 40: less than the second one's window.
    let subflows = [subflow(10, 10), subflow(100, 100)];
    for (own, window, expected) in [(0, 10, 40), (1, 100, 100)] {
        let mut cc = avoiding(window);
        cc.couple(own, &subflows);
        assert_eq!((cc.coupling.least, until_change(&mut cc)), (40 * MSS, expected));
    }
}

#[test]
fn slow_start_is_not_coupled() {
    let mut cc = lia();
    cc.on_established(&flight(0, 0));
    cc.couple(0, &[subflow(10, 100), subflow(10, 100)]);
    acks(&mut cc, 100, 10, 1);
    assert_eq!(cwnd(&cc), 20);
    // Slow start ends at the threshold; the rest of the ACK counts towards avoidance: 2 of 40
    // segments.
    cc.take_over(Window { cwnd: 10 * MSS, ssthresh: 11 * MSS });
    let _ = cc.on_ack(&flight(0, 10), &ack(2, 100));
    assert_eq!(cwnd(&cc), 11);
    acks(&mut cc, 200, 38, 1);
    assert_eq!(cwnd(&cc), 11);
    acks(&mut cc, 200, 1, 1);
    assert_eq!(cwnd(&cc), 12);
}

#[test]
fn who_has_no_rtt_does_not_count() {
    let unknown = Subflow { srtt: None, ..subflow(40, 100) };
    let two = [subflow(10, 100), unknown];
    let mut cc = avoiding(10);
    for (own, subflows) in [(0, &two[..]), (1, &two[..]), (2, &two[..]), (0, &two[..1]), (0, &[])] {
        cc.couple(own, subflows);
        assert_eq!(cc.coupling.least, 0, "{own} of {subflows:?}");
    }
    cc.couple(0, &[subflow(10, 100), unknown, subflow(20, 200)]);
    assert_eq!(cc.coupling.least, 40 * MSS);
}

/// An event of one subflow and a TCP.
fn event() -> impl Strategy<Value = (u64, u64)> {
    (0..40u64, 1..5u64)
}

proptest! {
    #[test]
    fn alone_it_is_newreno_ack_by_ack(events in prop::collection::vec(event(), 1..400), kind in 0..4usize) {
        let linux = NewRenoConfig::linux();
        let old = NewRenoConfig { abc: false, past_ssthresh: true, ..linux };
        let abe = NewRenoConfig { beta_ecn: Some(0.8), halve_flight: true, ..NewRenoConfig::default() };
        let reno = [NewRenoConfig::default(), linux, old, abe][kind];
        let mut lia = Lia::new(reno);
        let mut newreno = NewReno::new(reno);
        lia.on_established(&flight(0, 0));
        newreno.on_established(&flight(0, 0));
        for (number, (what, segments)) in events.into_iter().enumerate() {
            let f = flight(number as u64, cwnd(&newreno));
            // A plain TCP is never coupled, a connection's only subflow with itself.
            if kind % 2 == 0 {
                lia.couple(0, &[subflow(cwnd(&lia), 100)]);
            }
            for cc in [&mut lia as &mut dyn CongestionControl, &mut newreno] {
                match what {
                    0 => cc.on_signal(&f, Signal::Loss),
                    1 => cc.on_signal(&f, Signal::Ecn),
                    2 => cc.on_signal(&f, Signal::Timeout { repeated: false, kept: 0 }),
                    3 => cc.on_signal(&f, Signal::Spurious),
                    4 | 5 => cc.on_signal(&f, Signal::RecoveryEnd),
                    6 => cc.on_signal(&f, Signal::IdleRestart),
                    _ => prop_assert_eq!(cc.on_ack(&f, &ack(segments, 100)), Verdict::Continue),
                }
            }
            prop_assert_eq!(lia.window(), newreno.window());
        }
    }
}

/// In equilibrium the subflows together have the rate of the best TCP. Here windows swing about it,
/// and `alpha`, made of the windows of the moment, is less than that of their means.
#[test]
fn goal_1_two_subflows_on_separate_paths_get_what_tcp_gets_on_the_best() {
    for (links, best, calmest) in [
        // RTTs that are the same, and losses four times as frequent.
        ([Link { rtt: 100, loss: Loss::Random(0.001) }, Link { rtt: 100, loss: Loss::Random(0.004) }], 0, 0),
        // A short path with more losses, and a long one with few: 1 / (rtt sqrt(p)) is 500 and 158.
        ([Link { rtt: 20, loss: Loss::Random(0.01) }, Link { rtt: 200, loss: Loss::Random(0.001) }], 0, 1),
        ([Link { rtt: 100, loss: Loss::Random(0.02) }, Link { rtt: 50, loss: Loss::Random(0.002) }], 1, 1),
    ] {
        let (lia, tcp) = beside_tcp(&links, &[0, 1], || Box::new(lia()));
        assert!(tcp[best] > tcp[1 - best]);
        let share = (lia[0] + lia[1]) / tcp[best];
        assert!((0.8..1.1).contains(&share), "{lia:?} {tcp:?}");
        // Goal 2: no more than a TCP on either.
        assert!(lia[0] < 1.05 * tcp[0] && lia[1] < 1.05 * tcp[1], "{lia:?} {tcp:?}");
        // Goal 3: the path with fewer losses carries more than a TCP on each would have it do.
        let [calm, other] = [calmest, 1 - calmest];
        assert!(lia[calm] / lia[other] > 1.4 * tcp[calm] / tcp[other], "{lia:?} {tcp:?}");
    }
}

#[test]
fn goal_2_two_subflows_at_one_bottleneck_take_what_one_tcp_takes() {
    for capacity in [60, 150] {
        let links = [Link { rtt: 100, loss: Loss::Above(capacity) }];
        let (lia, tcp) = beside_tcp(&links, &[0, 0], || Box::new(lia()));
        let share = (lia[0] + lia[1]) / tcp[0];
        assert!((0.85..1.1).contains(&share), "{capacity}: {lia:?} {tcp:?}");
        // Two that are not coupled take twice as much.
        let mut network = Network::new(&links);
        (0..3).for_each(|flow| network.add(flow, 0, single()));
        network.run(100);
        let rates = network.run(1500);
        assert!((1.8..2.2).contains(&((rates[0] + rates[1]) / rates[2])), "{capacity}: {rates:?}");
    }
}
