//! Every sysctl that is known, with what a value of it does.

use ackclock_units::Span;

use super::setters::{self, Applied, Request};
use crate::host::Host;
use crate::settings::Settings;

/// A sysctl.
pub(super) struct Row {
    pub(super) name: &'static str,
    effect: Effect,
}

/// The effect of a value.
enum Effect {
    /// A setting is on unless the number is 0.
    Switch(&'static str),
    /// A setting takes the value as it is.
    Same(&'static str),
    /// A setting takes a time: a number of at least `least` in this unit.
    Time { key: &'static str, least: u64, unit: &'static str },
    /// A number of at least `least` is stored; the trace shows it by this name.
    Number { shown: &'static str, least: u64, store: fn(&mut Host, u64) },
    /// The same of a count, which is `most` at most.
    Count { shown: &'static str, least: u64, most: u64, at: fn(&mut Host) -> &mut u32 },
    /// The same of seconds.
    Seconds { shown: &'static str, least: u64, at: fn(&mut Host) -> &mut Span },
    /// This value is what the host does; no other is supported.
    Only(i64),
    /// No script can see what it does.
    Nothing,
    /// Something else.
    Special(fn(&mut Request<'_>) -> Applied),
}

const fn row(name: &'static str, effect: Effect) -> Row {
    Row { name, effect }
}

const fn switch(name: &'static str, key: &'static str) -> Row {
    row(name, Effect::Switch(key))
}

const fn same(name: &'static str, key: &'static str) -> Row {
    row(name, Effect::Same(key))
}

const fn time(name: &'static str, key: &'static str, least: u64, unit: &'static str) -> Row {
    row(name, Effect::Time { key, least, unit })
}

const fn number(name: &'static str, shown: &'static str, least: u64, store: fn(&mut Host, u64)) -> Row {
    row(name, Effect::Number { shown, least, store })
}

const fn count(name: &'static str, shown: &'static str, least: u64, most: u64, at: fn(&mut Host) -> &mut u32) -> Row {
    row(name, Effect::Count { shown, least, most, at })
}

const fn seconds(name: &'static str, shown: &'static str, least: u64, at: fn(&mut Host) -> &mut Span) -> Row {
    row(name, Effect::Seconds { shown, least, at })
}

const fn only(name: &'static str, value: i64) -> Row {
    row(name, Effect::Only(value))
}

const fn nothing(name: &'static str) -> Row {
    row(name, Effect::Nothing)
}

const fn special(name: &'static str, set: fn(&mut Request<'_>) -> Applied) -> Row {
    row(name, Effect::Special(set))
}

/// The tables: Linux's, FreeBSD's.
pub(super) const TABLES: [&[Row]; 2] = [LINUX, FREEBSD];

const LINUX: &[Row] = &[
    // Features that both ends agree on.
    switch("net.ipv4.tcp_sack", "sack"),
    switch("net.ipv4.tcp_dsack", "dsack"),
    switch("net.ipv4.tcp_timestamps", "timestamps"),
    switch("net.ipv4.tcp_window_scaling", "window_scaling"),
    special("net.ipv4.tcp_ecn", setters::ecn),
    special("net.ipv4.tcp_ecn_option", setters::ecn_option),
    same("net.ipv4.tcp_ecn_option_beacon", "accecn_beacon"),
    switch("net.ipv4.tcp_ecn_fallback", "ecn_fallback"),
    // Fast open.
    number("net.ipv4.tcp_fastopen", "fastopen", 0, |host, flags| host.fast_open.flags = flags),
    special("net.ipv4.tcp_fastopen_key", setters::fast_open_key),
    special("net.ipv4.tcp_fastopen_cookies", setters::fast_open_cookies),
    seconds("net.ipv4.tcp_fastopen_blackhole_timeout_sec", "fastopen_blackhole_timeout", 0, |host| {
        &mut host.fast_open.cache.blackhole_timeout
    }),
    // Congestion control and loss recovery.
    same("net.ipv4.tcp_congestion_control", "cc"),
    switch("net.ipv4.tcp_slow_start_after_idle", "slow_start_after_idle"),
    special("net.ipv4.tcp_early_retrans", setters::early_retransmit),
    special("net.ipv4.tcp_frto", setters::frto),
    special("net.ipv4.tcp_recovery", setters::recovery),
    time("net.ipv4.tcp_rto_max_ms", "max_rto", 1000, "ms"),
    count("net.ipv4.tcp_pacing_ss_ratio", "pacing_ss_ratio", 1, 1000, |host| &mut host.config.pacing.ss_ratio),
    count("net.ipv4.tcp_pacing_ca_ratio", "pacing_ca_ratio", 1, 1000, |host| &mut host.config.pacing.ca_ratio),
    count("net.ipv4.tcp_min_tso_segs", "min_tso_segs", 1, 255, |host| &mut host.config.transfer.least_burst),
    only("net.ipv4.tcp_reordering", 3),
    only("net.ipv4.tcp_fack", 0),
    // Buffers and ACKs.
    special("net.ipv4.tcp_rmem", setters::receive_memory),
    special("net.ipv4.tcp_wmem", setters::send_memory),
    number("net.ipv4.tcp_notsent_lowat", "notsent_lowat", 0, |host, bytes| {
        host.notsent_lowat = u32::try_from(bytes).ok().filter(|&bytes| bytes != u32::MAX);
    }),
    number("net.ipv4.tcp_comp_sack_nr", "tcp_comp_sack_nr", 0, setters::compressed_acks),
    number("net.ipv4.tcp_comp_sack_delay_ns", "tcp_comp_sack_delay_ns", 0, setters::compression_delay),
    number("net.ipv4.tcp_comp_sack_slack_ns", "tcp_comp_sack_slack_ns", 0, setters::compression_slack),
    // States and their timers.
    count("net.ipv4.tcp_syn_retries", "syn_retries", 0, 127, |host| &mut host.config.states.syn_retries),
    count("net.ipv4.tcp_syn_linear_timeouts", "syn_linear_timeouts", 0, 127, |host| {
        &mut host.config.states.linear_syn_timeouts
    }),
    count("net.ipv4.tcp_synack_retries", "synack_retries", 0, 255, |host| &mut host.config.states.synack_retries),
    count("net.ipv4.tcp_retries1", "retries1", 1, 255, |host| &mut host.config.path.black_hole_retries),
    same("net.ipv4.tcp_retries2", "max_retries"),
    number("net.ipv4.tcp_fin_timeout", "fin_timeout", 0, |host, seconds| {
        host.config.states.fin_wait_2_timeout = Some(Span::from_secs(seconds));
    }),
    number("net.ipv4.tcp_rfc1337", "rfc1337", 0, |host, on| host.config.states.protect_time_wait = on != 0),
    number("net.ipv4.tcp_invalid_ratelimit", "invalid_ratelimit", 0, |host, millis| {
        host.config.states.invalid_interval = Span::from_millis(millis);
    }),
    number("net.ipv4.tcp_abort_on_overflow", "abort_on_overflow", 0, |host, on| host.set_abort_on_overflow(on != 0)),
    seconds("net.ipv4.tcp_keepalive_time", "keepidle", 1, |host| &mut host.keepalive.idle),
    seconds("net.ipv4.tcp_keepalive_intvl", "keepintvl", 1, |host| &mut host.keepalive.interval),
    count("net.ipv4.tcp_keepalive_probes", "keepcnt", 1, 255, |host| &mut host.keepalive.count),
    // The MTU of the path.
    same("net.ipv4.tcp_mtu_probing", "mtu_probing"),
    same("net.ipv4.tcp_base_mss", "base_mss"),
    count("net.ipv4.tcp_mtu_probe_floor", "mtu_probe_floor", 48, 65_535, |host| &mut host.config.path.probe_floor),
    count("net.ipv4.tcp_min_snd_mss", "min_snd_mss", 48, 65_535, |host| &mut host.config.path.least_segment),
    count("net.ipv4.tcp_probe_threshold", "probe_threshold", 0, 65_535, |host| &mut host.config.path.probe_threshold),
    number("net.ipv4.tcp_probe_interval", "probe_interval", 0, |host, seconds| {
        host.config.path.probe_interval = Span::from_secs(seconds);
    }),
    same("net.ipv4.route.min_pmtu", "min_pmtu"),
    time("net.ipv4.route.mtu_expires", "mtu_expires", 1, "s"),
    special("net.ipv4.ip_no_pmtu_disc", setters::no_path_mtu_discovery),
    // Settings without effect here: scripts cannot see it, or it comes with a loss detector that is
    // chosen by `--set`.
    nothing("net.ipv4.tcp_tso_win_divisor"),
    nothing("net.ipv4.tcp_no_metrics_save"),
    nothing("net.ipv4.tcp_moderate_rcvbuf"),
    nothing("net.ipv4.tcp_autocorking"),
    nothing("net.ipv4.tcp_syncookies"),
];

const FREEBSD: &[Row] = &[
    // Features that both ends agree on.
    switch("net.inet.tcp.sack.enable", "sack"),
    special("net.inet.tcp.rfc1323", setters::rfc1323),
    special("net.inet.tcp.ecn.enable", setters::ecn),
    count("net.inet.tcp.ecn.maxretries", "ecn.maxretries", 0, 255, |host| &mut host.config.states.ecn_syn_retries),
    // Fast open.
    number("net.inet.tcp.fastopen.client_enable", "fastopen.client_enable", 0, |host, on| {
        host.fast_open.enable_client(on != 0);
    }),
    number("net.inet.tcp.fastopen.server_enable", "fastopen.server_enable", 0, |host, on| {
        host.fast_open.server = on != 0;
    }),
    seconds("net.inet.tcp.fastopen.path_disable_time", "fastopen.path_disable_time", 0, |host| {
        &mut host.fast_open.cache.path_disable_time
    }),
    only("net.inet.tcp.fastopen.acceptany", 0),
    only("net.inet.tcp.fastopen.psk_enable", 0),
    // Congestion control.
    same("net.inet.tcp.cc.algorithm", "cc"),
    same("net.inet.tcp.initcwnd_segments", "initial_window"),
    // Buffers and ACKs.
    same("net.inet.tcp.recvspace", "rcvbuf"),
    same("net.inet.tcp.sendspace", "sndbuf"),
    number("kern.ipc.maxsockbuf", "maxsockbuf", 1, |host, bytes| host.set_receive_most(bytes)),
    time("net.inet.tcp.delacktime", "delayed_ack", 1, "ms"),
    special("net.inet.tcp.delayed_ack", setters::delayed_ack),
    // States and their timers.
    time("net.inet.tcp.rexmit_initial", "initial_rto", 1, "ms"),
    time("net.inet.tcp.rexmit_min", "min_rto", 1, "ms"),
    time("net.inet.tcp.rexmit_slop", "rto_slop", 0, "ms"),
    special("net.inet.tcp.msl", setters::segment_lifetime),
    number("net.inet.tcp.keepinit", "keepinit", 1, |host, millis| {
        host.config.states.handshake_timeout = Some(Span::from_millis(millis));
    }),
    number("net.inet.tcp.keepidle", "keepidle", 1, |host, millis| host.keepalive.idle = Span::from_millis(millis)),
    number("net.inet.tcp.keepintvl", "keepintvl", 1, |host, millis| {
        host.keepalive.interval = Span::from_millis(millis);
    }),
    count("net.inet.tcp.keepcnt", "keepcnt", 1, 255, |host| &mut host.keepalive.count),
    number("net.inet.tcp.insecure_rst", "insecure_rst", 0, |host, on| host.config.states.insecure_rst = on != 0),
    number("net.inet.tcp.insecure_syn", "insecure_syn", 0, |host, on| host.config.states.insecure_syn = on != 0),
    number("net.inet.tcp.drop_synfin", "drop_synfin", 0, |host, on| host.set_drop_syn_fin(on != 0)),
    number("net.inet.tcp.rexmit_drop_options", "rexmit_drop_options", 0, |host, on| {
        host.config.states.drop_options_after = (on != 0).then_some(setters::DROP_OPTIONS_AFTER);
    }),
    // The MTU of the path.
    switch("net.inet.tcp.icmp_may_rst", "icmp_may_rst"),
    special("net.inet.tcp.minmss", setters::least_segment),
    special("net.inet.tcp.hostcache.purgenow", setters::purge_routes),
    // Settings whose default is the behaviour here; another value is a feature that is missing
    // here.
    only("net.inet.tcp.blackhole", 0),
    only("net.inet.udp.blackhole", 0),
    only("net.inet.tcp.syncookies_only", 0),
    only("net.inet.tcp.udp_tunneling_port", 0),
    // Settings whose effect scripts cannot see here.
    nothing("net.inet.tcp.hostcache.purge"),
    nothing("net.inet.tcp.syncookies"),
    nothing("net.inet.tcp.udp_tunneling_overhead"),
    nothing("net.inet.tcp.pmtud_blackhole_detection"),
    nothing("net.inet.tcp.path_mtu_discovery"),
    nothing("net.inet.tcp.pmtud_blackhole_mss"),
    nothing("net.inet.tcp.v6pmtud_blackhole_mss"),
    nothing("net.inet.tcp.mssdflt"),
    nothing("net.inet.tcp.v6mssdflt"),
    nothing("net.inet.tcp.tolerate_missing_ts"),
];

/// Sets the sysctl `name`; `None` if it is not known.
pub(super) fn set(host: &mut Host, chosen: &Settings, name: &str, value: &str) -> Option<Applied> {
    let row = TABLES.into_iter().flatten().find(|row| row.name == name)?;
    Some(row.effect.apply(&mut Request { host, chosen, value }))
}

impl Effect {
    fn apply(&self, request: &mut Request<'_>) -> Applied {
        match *self {
            Effect::Switch(key) => {
                let on = request.number(0)? != 0;
                request.set_switch(key, on)
            }
            Effect::Same(key) => request.set_key(key, request.value),
            Effect::Time { key, least, unit } => {
                let time = format!("{}{unit}", request.number(least)?);
                request.set_key(key, &time)
            }
            Effect::Number { shown, least, store } => {
                store(request.host, request.number(least)?);
                Ok(Some(format!("{shown}={}", request.value)))
            }
            Effect::Count { shown, least, most, at } => {
                *at(request.host) = request.number(least)?.min(most) as u32;
                Ok(Some(format!("{shown}={}", request.value)))
            }
            Effect::Seconds { shown, least, at } => {
                *at(request.host) = Span::from_secs(request.number(least)?);
                Ok(Some(format!("{shown}={}s", request.value)))
            }
            Effect::Only(value) if request.integer() == Some(value) => Ok(None),
            Effect::Only(value) => Err(format!("only {value} is here")),
            Effect::Nothing => Ok(None),
            Effect::Special(set) => set(request),
        }
    }
}
