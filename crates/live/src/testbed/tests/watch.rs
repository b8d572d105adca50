//! A device's check after changes by somebody else.

use nix::errno::Errno;

use super::*;

#[test]
fn a_device_that_has_been_down_or_is_gone_does_not_pass_its_check() {
    if !can_go_live("testbed: checks", &["ip"]) {
        return;
    }
    // More reports than are kept: 2000, and at most some hundreds.
    let many = "for i in $(seq 1000); do echo link set ack0 mtu 1400; echo link set ack0 mtu 1500; done | ip -batch -";
    for (run, errno) in [
        ("ip link set ack0 mtu 1400; ip tuntap add ack1 mode tun; ip link del ack1", None),
        (many, None),
        ("ip link set ack0 down", Some(Errno::ENETDOWN)),
        ("ip link set ack0 down; ip link set ack0 up", Some(Errno::ENETDOWN)),
        (&format!("{many}; ip link set ack0 down"), Some(Errno::ENETDOWN)),
        (&format!("{many}; ip link del ack0"), Some(Errno::ENODEV)),
    ] {
        let testbed = Testbed::set_up(&pair("ch")).expect("a testbed");
        device(&testbed, 0).check().expect("nothing has happened");
        sh(&testbed, 0, run);
        let said = device(&testbed, 0).check().err().and_then(|error| error.raw_os_error());
        assert_eq!(said.map(Errno::from_raw), errno, "{run}");
        device(&testbed, 1).check().expect("nothing has happened");
    }
}
