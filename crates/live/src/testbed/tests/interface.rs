//! An interface that moves between namespaces has there what it had.

use super::*;

/// Another interface, so that the one that moves gets another number, and no number is free twice.
const MAKE: &str = "ip link add other type veth peer name there; ip link add e0 type veth peer name e1; \
    ip link set e0 up; ip addr add 10.9.0.1/24 metric 300 dev e0; ip addr add fd09::1/64 dev e0 nodad; \
    ip route add 10.8.0.0/16 via 10.9.0.9 metric 7 mtu 1300 initcwnd 20; ip route add 10.7.0.0/16 dev e0 src 10.9.0.1; \
    ip -6 route add fd08::/48 via fd09::9 metric 5";

/// Shows an interface's addresses and routes, without the state of its carrier.
const SHOW: &str = "(ip addr show dev e0 | grep 'inet.*global'; ip route show dev e0; ip -6 route show dev e0) | \
    grep -v fe80 | sed 's/ linkdown//; s/ tentative//'";

fn carry(testbed: &Testbed, from: usize, to: usize) {
    let there = testbed.namespace(to).expect("a namespace");
    let carried = at(testbed, from, || netlink::pick_up("e0", there.file()));
    at(testbed, to, || netlink::put_down("e0", carried));
}

#[test]
fn addresses_and_routes_move_with_it() {
    if !can_go_live("testbed: an interface that moves", &["ip"]) {
        return;
    }
    for carrier in ["ip link set e1 up", "true"] {
        let testbed = Testbed::set_up(&pair("mv")).expect("a testbed");
        let before = sh(&testbed, 0, &format!("{MAKE}; {carrier}; {SHOW}"));
        for expected in ["10.9.0.1/24 metric 300", "fd09::1/64", "metric 7 mtu 1300", "src 10.9.0.1", "fd08::/48 via"] {
            assert!(before.contains(expected), "no {expected} in {before}");
        }
        carry(&testbed, 0, 1);
        assert_eq!(sh(&testbed, 1, SHOW), before);
        let gone = testbed.namespace(1).expect("a namespace");
        let error = namespace::inside(testbed.namespace(0), || netlink::pick_up("e0", gone.file()));
        assert_eq!(error.expect_err("it is gone").kind(), io::ErrorKind::NotFound);
        carry(&testbed, 1, 0);
        assert_eq!(sh(&testbed, 0, SHOW), before);
    }
}
