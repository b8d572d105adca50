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
    pub(super) apply: fn(&mut Host, &str) -> Result<(), String>,
}

/// Keys of scripts alone, and those that a script gives other values than a scenario.
pub(super) const KEYS: &[Key] = &[
    Key { name: "cc", takes: "reno, or a controller by its name in scenarios", apply: set_cc },
    Key {
        name: "ecn",
        takes: "on, off, passive (accept, but do not ask), dctcp (RFC 8257's feedback), accecn (RFC 9768), accecn-classic \
                (accept it, ask for RFC 3168's) or accecn-passive",
        apply: set_ecn,
    },
    Key {
        name: "accecn_beacon",
        takes: "a number of options in a round trip",
        apply: |host, value| number(value, 0..=65_535).map(|value| acc_ecn(host).beacon = value as u32),
    },
    Key { name: "delayed_ack", takes: "a time, or off", apply: set_delayed_ack },
    Key {
        name: "segmentation_offload",
        takes: "off (a segment to each socket buffer), linux-4.0, linux-6.1, linux-6.18 or linux-7.3",
        apply: set_offload,
    },
    Key {
        name: "mss",
        takes: "bytes",
        apply: |host, value| number(value, 1..=65_495).map(|value| host.mss = Some(value as u16)),
    },
    Key {
        name: "mtu",
        takes: "bytes",
        apply: |host, value| number(value, 68..=65_535).map(|value| host.mtu = value as u32),
    },
    Key { name: "ip_version", takes: "ipv4, ipv6 or ipv4-mapped-ipv6", apply: set_ip_version },
    Key {
        name: "rcvbuf",
        takes: "bytes",
        apply: |host, value| bytes(value).map(|value| host.set_receive_buffer(value)),
    },
    Key {
        name: "rcvbuf_max",
        takes: "bytes",
        apply: |host, value| bytes(value).map(|value| host.set_receive_most(value)),
    },
    Key { name: "sndbuf", takes: "bytes", apply: |host, value| bytes(value).map(|value| host.set_send_buffer(value)) },
    Key { name: "rack", takes: "on or off", apply: set_rack },
    Key { name: "abe", takes: "on or off", apply: set_abe },
    Key {
        name: "halve_flight",
        takes: "on or off",
        apply: |host, value| switch(value).map(|value| host.profile.newreno.halve_flight = value),
    },
    Key { name: "timer_tick", takes: "a time, 0 for exact timers", apply: set_timer_tick },
    Key { name: "mtu_probing", takes: "off, black-hole or always", apply: set_mtu_probing },
    Key {
        name: "base_mss",
        takes: "bytes",
        apply: |host, value| number(value, 48..=65_495).map(|value| host.config.path.base_segment = value as u32),
    },
    Key {
        name: "min_pmtu",
        takes: "bytes",
        apply: |host, value| number(value, 68..=65_535).map(|value| host.config.path.least_mtu = value as u32),
    },
    Key {
        name: "mtu_expires",
        takes: "a time",
        apply: |host, value| positive_span(value).map(|value| host.config.path.timeout = Some(value)),
    },
    Key {
        name: "pmtu_discovery",
        takes: "on or off",
        apply: |host, value| switch(value).map(|value| host.config.path.discovery = value),
    },
    Key {
        name: "advertise_pmtu",
        takes: "on or off",
        apply: |host, value| switch(value).map(|value| host.config.path.advertise = value),
    },
    Key {
        name: "icmp_may_rst",
        takes: "on or off",
        apply: |host, value| switch(value).map(|value| host.config.path.may_reset = value),
    },
    Key { name: "tolerance", takes: "a time", apply: |host, value| span(value).map(|value| host.tolerance = value) },
    Key { name: "tolerance_percent", takes: "a percentage", apply: set_tolerance_percent },
    Key {
        name: "ignore_psh",
        takes: "on or off",
        apply: |host, value| switch(value).map(|value| host.ignore_psh = value),
    },
    Key {
        name: "strict_segments",
        takes: "on or off",
        apply: |host, value| switch(value).map(|value| host.strict_segments = value),
    },
    Key {
        name: "check_end",
        takes: "on or off",
        apply: |host, value| switch(value).map(|value| host.check_end = value),
    },
    Key { name: "ts_tick", takes: "a time, 0 for no check", apply: set_ts_tick },
    Key {
        name: "ts_ecr_scaled",
        takes: "on or off",
        apply: |host, value| switch(value).map(|value| host.ts_ecr_scaled = value),
    },
    Key {
        name: "check_ts_ecr",
        takes: "on or off",
        apply: |host, value| switch(value).map(|value| host.check_ts_ecr = value),
    },
    Key {
        name: "check_address_id",
        takes: "on or off",
        apply: |host, value| switch(value).map(|value| host.mptcp.check_address_id = value),
    },
];
