use super::*;
use crate::{AdaptiveRules, LossDetector, StateRules};

#[test]
fn every_profile_is_found_by_its_name() {
    for profile in Profile::all() {
        assert_eq!(Profile::by_name(profile.name).as_ref(), Some(&profile));
    }
    assert_eq!(Profile::by_name("linux"), None);
}

#[test]
fn the_default_congestion_control_of_each_host() {
    let defaults = Profile::all().map(|profile| (profile.name, profile.cc));
    assert_eq!(
        defaults,
        [
            ("rfc", "cubic"),
            ("freebsd-9.2", "newreno"),
            ("freebsd-14", "cubic"),
            ("linux-2.4", "newreno"),
            ("linux-2.6.32", "cubic"),
            ("linux-3.9", "cubic"),
            ("linux-4.0", "cubic"),
            ("linux-6.1", "cubic"),
            ("linux-6.18", "cubic"),
            ("linux-7.3", "cubic"),
            ("windows-7", "newreno"),
        ]
    );
}

#[test]
fn cubic_starts_slowly_as_its_host_does() {
    for profile in Profile::all() {
        // Linux's HyStart is part of its CUBIC.
        let reno = NewRenoConfig { slow_start: SlowStartRules::Standard, ..profile.cubic.reno };
        assert_eq!(reno, profile.newreno, "{}", profile.name);
        let hystart = profile.cubic.reno.slow_start != SlowStartRules::Standard;
        assert_eq!(
            hystart,
            ["linux-2.6.32", "linux-3.9", "linux-4.0", "linux-6.1", "linux-6.18", "linux-7.3"].contains(&profile.name),
            "{}",
            profile.name
        );
    }
}

#[test]
fn linux_3_9_is_4_0_without_probes_and_with_an_older_bound() {
    // TCP_MAX_REORDERING; the probes and the value 3 of tcp_early_retrans came with 3.10, the rules
    // for much reordering with 3.12.
    let [old, new] = [Profile::linux_3_9(), Profile::linux_4_0()].map(|profile| profile.endpoint);
    let rules = AdaptiveRules { max_reordering: 127, high_reordering: false, ..AdaptiveRules::default() };
    assert_eq!(old, Config { loss_detector: LossDetector::Linux(rules), tlp: false, ..new });
}

#[test]
fn linux_2_6_32_is_2_4_with_episodes_of_its_own_and_larger_buffers() {
    let [old, new] = [Profile::linux_2_4(), Profile::linux_2_6_32()].map(|profile| profile.endpoint);
    let loss = crate::LossRules::linux_2_6_32();
    let TransferRules { timer, push_writes, .. } = TransferRules::default();
    let transfer = TransferRules { timer, loss, push_writes, push_when_written: true, ..old.transfer.clone() };
    let StateRules { orphan_retries, give_up, .. } = StateRules::linux();
    let states = StateRules { paws_slack: 4, orphan_retries, give_up, ..old.states.clone() };
    // tcp_wmem, and three quarters of tcp_rmem: 4 MiB each on a machine with much memory.
    let (send_buffer, receive_buffer) = (4 << 20, 6 << 20);
    let hurry = crate::QuickAcks { push: false, ..old.delayed_ack.hurry };
    let delayed_ack = crate::DelayedAck { hurry, ..old.delayed_ack };
    assert_eq!(new, Config { send_buffer, receive_buffer, delayed_ack, frto: true, states, transfer, ..old });
}

#[test]
fn initial_windows_of_full_segments() {
    // RFC 3390: min(4 * 1460, max(2 * 1460, 4380)) = 4380.
    for (profile, bytes) in [
        (Profile::rfc(), 14_600),
        (Profile::freebsd_9_2(), 4_380),
        (Profile::freebsd_14(), 14_600),
        (Profile::linux_2_6_32(), 4_380),
        (Profile::linux_3_9(), 14_600),
        (Profile::linux_6_1(), 14_600),
        (Profile::linux_6_18(), 14_600),
        (Profile::windows_7(), 2_920),
    ] {
        assert_eq!(profile.endpoint.initial_window.bytes(u32::from(profile.endpoint.mss)), bytes, "{}", profile.name);
    }
}
