//! The table of settings.

use super::setters::{
    acc_ecn, bytes, number, positive_span, set_abe, set_cc, set_delayed_ack, set_ecn, set_ip_version, set_mtu_probing,
    set_offload, set_rack, set_timer_tick, set_tolerance_percent, set_ts_tick, span, switch,
};
use crate::host::Host;

/// A setting: its key, what it takes, and what it does with it.
pub(super) struct Key {
    pub(super) name: &'static str,
    pub(super) takes: &'static str,
    effect: KeyEffect,
}

enum KeyEffect {
    Flag(fn(&mut Host) -> &mut bool),
    Number(u64, u64, fn(&mut Host) -> &mut u32),
    By(fn(&mut Host, &str) -> Result<(), String>),
}

const fn key(name: &'static str, takes: &'static str, apply: fn(&mut Host, &str) -> Result<(), String>) -> Key {
    Key { name, takes, effect: KeyEffect::By(apply) }
}

const fn flag(name: &'static str, at: fn(&mut Host) -> &mut bool) -> Key {
    Key { name, takes: "on or off", effect: KeyEffect::Flag(at) }
}

const fn size(name: &'static str, least: u64, most: u64, at: fn(&mut Host) -> &mut u32) -> Key {
    Key { name, takes: "bytes", effect: KeyEffect::Number(least, most, at) }
}

impl Key {
    pub(super) fn apply(&self, host: &mut Host, value: &str) -> Result<(), String> {
        match self.effect {
            KeyEffect::Flag(at) => switch(value).map(|value| *at(host) = value),
            KeyEffect::Number(least, most, at) => number(value, least..=most).map(|value| *at(host) = value as u32),
            KeyEffect::By(apply) => apply(host, value),
        }
    }
}

/// Keys of scripts alone, and those that a script gives other values than a scenario.
pub(super) const KEYS: &[Key] = &[
    key("cc", "reno, or a controller by its name in scenarios", set_cc),
    key(
        "ecn",
        "on, off, passive (accept, but do not ask), dctcp (RFC 8257's feedback), accecn (RFC 9768), accecn-classic \
                (accept it, ask for RFC 3168's) or accecn-passive",
        set_ecn,
    ),
    key("accecn_beacon", "a number of options in a round trip", |host, value| {
        number(value, 0..=65_535).map(|value| acc_ecn(host).beacon = value as u32)
    }),
    key("delayed_ack", "a time, or off", set_delayed_ack),
    key(
        "segmentation_offload",
        "off (a segment to each socket buffer), linux-4.0, linux-6.1, linux-6.18 or linux-7.3",
        set_offload,
    ),
    key("mss", "bytes", |host, value| number(value, 1..=65_495).map(|value| host.mss = Some(value as u16))),
    size("mtu", 68, 65_535, |host| &mut host.mtu),
    key("ip_version", "ipv4, ipv6 or ipv4-mapped-ipv6", set_ip_version),
    key("rcvbuf", "bytes", |host, value| bytes(value).map(|value| host.set_receive_buffer(value))),
    key("rcvbuf_max", "bytes", |host, value| bytes(value).map(|value| host.set_receive_most(value))),
    key("sndbuf", "bytes", |host, value| bytes(value).map(|value| host.set_send_buffer(value))),
    key("rack", "on or off", set_rack),
    key("abe", "on or off", set_abe),
    flag("halve_flight", |host| &mut host.profile.newreno.halve_flight),
    key("timer_tick", "a time, 0 for exact timers", set_timer_tick),
    key("mtu_probing", "off, black-hole or always", set_mtu_probing),
    size("base_mss", 48, 65_495, |host| &mut host.config.path.base_segment),
    size("min_pmtu", 68, 65_535, |host| &mut host.config.path.least_mtu),
    key("mtu_expires", "a time", |host, value| {
        positive_span(value).map(|value| host.config.path.timeout = Some(value))
    }),
    flag("pmtu_discovery", |host| &mut host.config.path.discovery),
    flag("advertise_pmtu", |host| &mut host.config.path.advertise),
    flag("icmp_may_rst", |host| &mut host.config.path.may_reset),
    key("tolerance", "a time", |host, value| span(value).map(|value| host.tolerance = value)),
    key("tolerance_percent", "a percentage", set_tolerance_percent),
    flag("ignore_psh", |host| &mut host.ignore_psh),
    flag("strict_segments", |host| &mut host.strict_segments),
    flag("check_end", |host| &mut host.check_end),
    key("ts_tick", "a time, 0 for no check", set_ts_tick),
    flag("ts_ecr_scaled", |host| &mut host.ts_ecr_scaled),
    flag("check_ts_ecr", |host| &mut host.check_ts_ecr),
    flag("check_address_id", |host| &mut host.mptcp.check_address_id),
];
