use super::*;
use crate::coupled::network::{Link, Loss, beside_tcp, subflow, until_change};
use crate::fixture::{MSS, cwnd, flight, ssthresh};
use crate::{Coupled, NewRenoConfig};

fn balia() -> Balia {
    Balia::new(NewRenoConfig::default())
}

/// In congestion avoidance, the subflow at `own`.
fn avoiding(own: usize, subflows: &[Subflow]) -> Balia {
    let mut cc = balia();
    cc.on_established(&flight(0, 0));
    cc.take_over(Window { cwnd: subflows[own].cwnd, ssthresh: 2 * MSS });
    cc.couple(own, subflows);
    cc
}

#[test]
fn two_subflows_grow_by_their_rates() {
    // x = 100 and 300, in segments and seconds: x / rtt / 400^2 is 0.00625 and 0.01875. a = 3:
    // times 4 / 2 * 7 / 5 = 2.8, 0.0175, 1 / 57.1. a = 1: as it is, 1 / 53.3.
    let subflows = [subflow(10, 100), subflow(30, 100)];
    assert_eq!(until_change(&mut avoiding(0, &subflows)), 58);
    assert_eq!(until_change(&mut avoiding(1, &subflows)), 54);
    // Equal rates with other RTTs, a = 1: 100 / 0.1 / 200^2 = 1 / 40, 100 / 0.2 / 200^2 = 1 / 80.
    let subflows = [subflow(10, 100), subflow(20, 200)];
    assert_eq!(until_change(&mut avoiding(0, &subflows)), 40);
    assert_eq!(until_change(&mut avoiding(1, &subflows)), 80);
}

#[test]
fn three_subflows_grow_by_their_rates() {
    // x = 100, 200, 400, their sum 700. 100 / 0.1 / 490000 * 5 / 2 * 8 / 5 = 4 / 490 = 1 / 122.5;
    // 200 / 0.1 / 490000 * 3 / 2 * 6 / 5 = 3.6 / 490 = 1 / 136.1; 400 / 0.1 / 490000 = 1 / 122.5.
    let subflows = [subflow(10, 100), subflow(20, 100), subflow(40, 100)];
    for (own, expected) in [(0, 123), (1, 137), (2, 123)] {
        let mut cc = avoiding(own, &subflows);
        assert_eq!((until_change(&mut cc), cwnd(&cc)), (expected, subflows[own].cwnd / MSS + 1));
    }
}

#[test]
fn a_loss_takes_more_from_those_that_are_slower() {
    // a = 3 counts as 1.5: 40 / 2 * 1.5 = 30 of 40 segments. a = 1: half of 120.
    let far = [subflow(40, 100), subflow(120, 100)];
    // a = 125 / 101: 125 / 2 of 101 segments.
    let near = [subflow(101, 100), subflow(125, 100)];
    for (subflows, own, left) in [(far, 0, 10), (far, 1, 60), (near, 0, 38), (near, 1, 62)] {
        for signal in [Signal::Loss, Signal::Ecn] {
            let mut cc = avoiding(own, &subflows);
            cc.on_signal(&flight(1000, 40), signal);
            assert_eq!(cc.window(), Window { cwnd: left * MSS, ssthresh: left * MSS });
        }
        let mut cc = avoiding(own, &subflows);
        cc.on_signal(&flight(1000, 40), Signal::Timeout { repeated: false, kept: 0 });
        assert_eq!(cc.window(), Window { cwnd: MSS, ssthresh: left * MSS });
        cc.on_signal(&flight(2000, 40), Signal::Timeout { repeated: true, kept: 0 });
        assert_eq!(cc.window(), Window { cwnd: MSS, ssthresh: left * MSS });
        // The window of before comes back.
        cc.on_signal(&flight(3000, 40), Signal::Spurious);
        assert_eq!(cc.window().cwnd, subflows[own].cwnd);
    }
}

#[test]
fn the_settings_of_the_host_say_of_what() {
    let subflows = [subflow(40, 100), subflow(120, 100)];
    let reno = NewRenoConfig { halve_flight: true, timeout_flight: true, beta_ecn: Some(0.8), ..Default::default() };
    let reduced = |signal| {
        let mut cc = Balia::new(reno);
        cc.on_established(&flight(0, 0));
        cc.take_over(Window { cwnd: 40 * MSS, ssthresh: 2 * MSS });
        cc.couple(0, &subflows);
        cc.on_signal(&flight(1000, 20), signal);
        ssthresh(&cc)
    };
    // A quarter of the 20 in flight is left. By ABE 0.2 * 1.5 of the window is taken, 0.7 left.
    assert_eq!(reduced(Signal::Loss), 5);
    assert_eq!(reduced(Signal::Timeout { repeated: false, kept: 0 }), 5);
    assert!((27..=28).contains(&reduced(Signal::Ecn)));
}

#[test]
fn alone_it_is_newreno() {
    for subflows in [&[subflow(20, 100)][..], &[subflow(20, 100), Subflow { srtt: None, ..subflow(90, 100) }]] {
        let mut cc = avoiding(0, subflows);
        assert_eq!(until_change(&mut cc), 20);
        cc.on_signal(&flight(0, 21), Signal::Loss);
        assert_eq!(cwnd(&cc), 10);
    }
}

#[test]
fn the_formulas_give_newreno_where_one_subflow_has_all() {
    // A sibling with a window of nothing: x = max = total.
    let subflows = [subflow(20, 100), subflow(0, 100)];
    let mut cc = avoiding(0, &subflows);
    assert_eq!(cc.coupling, BaliaCoupling { per_segment: 20 * MSS, cut: Some(1.0) });
    assert_eq!(until_change(&mut cc), 20);
}

#[test]
fn at_one_bottleneck_two_subflows_take_what_one_tcp_takes() {
    for capacity in [60, 150] {
        let links = [Link { rtt: 100, loss: Loss::Above(capacity) }];
        let (balia, tcp) = beside_tcp(&links, &[0, 0], || Box::new(balia()));
        let share = (balia[0] + balia[1]) / tcp[0];
        assert!((0.85..1.1).contains(&share), "{capacity}: {balia:?} {tcp:?}");
    }
}

#[test]
fn on_separate_paths_they_get_what_tcp_gets_on_the_best() {
    let links = [Link { rtt: 100, loss: Loss::Random(0.001) }, Link { rtt: 100, loss: Loss::Random(0.004) }];
    let (balia, tcp) = beside_tcp(&links, &[0, 1], || Box::new(balia()));
    let share = (balia[0] + balia[1]) / tcp[0];
    assert!((0.85..1.1).contains(&share), "{balia:?} {tcp:?}");
    // With losses four times as frequent a TCP has half the rate; the subflow has less.
    assert!(balia[1] / balia[0] < 0.6 * tcp[1] / tcp[0], "{balia:?} {tcp:?}");
}
