//! Shell lines that set up a host: sysctls that name a knob, and those that change nothing here.
//!
//! # Source
//! Linux `Documentation/networking/ip-sysctl.rst`; FreeBSD tcp(4), `sys/netinet/tcp_subr.c` and its
//! neighbours; the scripts `common/defaults.sh` and `common/set_sysctls.py` of google/packetdrill.

mod arithmetic;

use crate::fast_open::Keys;
use crate::host::Host;
use crate::settings::{self, Settings};
use ackclock_tcp::{AccEcnOption, LossDetector};
use ackclock_units::Span;

/// What was made of one shell line, which may be several commands.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub(crate) struct Shell {
    /// What it changed, for the trace.
    pub(crate) changed: Vec<String>,
    /// Commands that were not run.
    pub(crate) not_run: Vec<String>,
    /// A known setting whose value is not here, and why.
    pub(crate) unsupported: Option<String>,
}

/// What one command is.
enum Command {
    Known,
    Unknown,
}

/// Carries out what is known of the shell line `text`. What `settings` fixes stays.
pub(crate) fn apply(host: &mut Host, settings: &Settings, text: &str) -> Shell {
    let mut shell = Shell::default();
    let text = match arithmetic::expand(&text.replace("\\\n", " ")) {
        Ok(text) => text,
        Err(reason) => return Shell { unsupported: Some(reason), ..Shell::default() },
    };
    // Comments end with the line.
    let lines = text.lines().map(|line| line.split(" #").next().unwrap_or(""));
    for line in lines {
        for command in split_commands(line) {
            if let Command::Unknown = apply_command(host, settings, &command, &mut shell) {
                shell.not_run.push(command);
            }
        }
    }
    shell
}

fn apply_command(host: &mut Host, settings: &Settings, command: &str, shell: &mut Shell) -> Command {
    let words = split_words(command);
    let Some((program, rest)) = words.split_first() else { return Command::Known };
    match program.rsplit('/').next().unwrap_or(program) {
        "sysctl" | "set_sysctls.py" => {}
        "defaults.sh" => {
            for (name, value) in DEFAULTS {
                // Each of them is known.
                let _ = set(host, settings, name, value);
            }
            // The suite of the kernel itself has them beside its scripts, and differs in one.
            if !program.contains("common/") {
                let _ = set(host, settings, "net.ipv4.tcp_fastopen", "0x3");
            }
            host.fast_open.cache.flush();
            shell.changed.push("the suite's defaults".to_owned());
            return Command::Known;
        }
        "true" | ":" => return Command::Known,
        "ip" if matches!(rest, [object, action, ..] if object == "tcp_metrics" && action == "flush") => {
            host.fast_open.cache.flush();
            shell.changed.push("metrics flushed".to_owned());
            return Command::Known;
        }
        "ip" => {
            let changed = host.route.change(rest);
            let known = changed.is_some();
            shell.changed.extend(changed);
            return if known { Command::Known } else { Command::Unknown };
        }
        // What leaves, and when, is theirs to say.
        name @ ("tc" | "iptables" | "ip6tables" | "nft") => {
            shell.unsupported = Some(format!("the command {name}"));
            return Command::Known;
        }
        // Takes back what was changed, when all is over.
        name if name.starts_with("sysctl_restore_") => return Command::Known,
        _ => return Command::Unknown,
    }
    let mut any = false;
    for word in rest.iter().filter(|word| !word.starts_with('-')) {
        if word.contains('>') || word == "/dev/null" || word.chars().all(|char| char.is_ascii_digit()) {
            continue;
        }
        let Some((path, value)) = word.split_once('=') else { return Command::Unknown };
        let path = path.trim_start_matches("/proc/sys/").replace('/', ".");
        any = true;
        match set(host, settings, &path, value.trim()) {
            Some(Ok(what)) => shell.changed.extend(what),
            Some(Err(reason)) => shell.unsupported = Some(format!("{path}={value}: {reason}")),
            None => return Command::Unknown,
        }
    }
    if any { Command::Known } else { Command::Unknown }
}

/// Commands of a line: what `;`, `&`, `&&` and `||` part. What is piped into something else is one
/// command, and `2>&1` a redirection.
fn split_commands(line: &str) -> Vec<String> {
    let mut commands = vec![String::new()];
    let mut quote = None;
    let mut before = ' ';
    let mut chars = line.chars().peekable();
    while let Some(char) = chars.next() {
        let next = chars.peek().copied();
        let parts = quote.is_none()
            && match char {
                ';' => true,
                '&' => before != '>' && next != Some('>'),
                '|' => next == Some('|') || before == '|',
                _ => false,
            };
        match quote {
            Some(end) if char == end => quote = None,
            None if char == '"' || char == '\'' => quote = Some(char),
            _ => {}
        }
        match commands.last_mut() {
            Some(command) if !parts => command.push(char),
            _ => commands.push(String::new()),
        }
        before = char;
    }
    commands.iter().map(|command| command.trim().to_owned()).filter(|command| !command.is_empty()).collect()
}

/// Words of a command, quotes taken off.
fn split_words(command: &str) -> Vec<String> {
    let mut words = Vec::new();
    let mut word = String::new();
    let mut quote = None;
    let mut any = false;
    for char in command.chars() {
        match quote {
            Some(end) if char == end => quote = None,
            Some(_) => word.push(char),
            None if char == '"' || char == '\'' => (quote, any) = (Some(char), true),
            None if char.is_whitespace() => {
                if any || !word.is_empty() {
                    words.push(std::mem::take(&mut word));
                }
                any = false;
            }
            None => word.push(char),
        }
    }
    if any || !word.is_empty() {
        words.push(word);
    }
    words
}

/// What google/packetdrill's `common/defaults.sh` sets and matters here.
const DEFAULTS: &[(&str, &str)] = &[
    ("net.ipv4.tcp_rmem", "4096 540000 15728640"),
    ("net.ipv4.tcp_wmem", "4096 262144 4194304"),
    ("net.ipv4.tcp_timestamps", "1"),
    ("net.ipv4.tcp_syn_retries", "5"),
    ("net.ipv4.tcp_synack_retries", "5"),
    ("net.ipv4.tcp_sack", "1"),
    ("net.ipv4.tcp_dsack", "1"),
    ("net.ipv4.tcp_congestion_control", "cubic"),
    ("net.ipv4.tcp_slow_start_after_idle", "0"),
    ("net.ipv4.tcp_ecn", "0"),
    ("net.ipv4.tcp_notsent_lowat", "4294967295"),
    ("net.ipv4.tcp_fastopen", "0x70403"),
    ("net.ipv4.tcp_fastopen_key", "a1a1a1a1-b2b2b2b2-c3c3c3c3-d4d4d4d4"),
];

/// What became of one setting: `None` if it is not known, else what it did, or why it cannot be.
/// Whether the host detects losses as Linux does.
fn is_linux(host: &Host) -> bool {
    host.config.loss_detector != LossDetector::Rfc6675
}

type Applied = Option<Result<Option<String>, String>>;

/// Sets the sysctl `name`.
fn set(host: &mut Host, settings: &Settings, name: &str, value: &str) -> Applied {
    let nothing: Applied = Some(Ok(None));
    // Values such as `0x1` are numbers too.
    let number = match value.strip_prefix("0x") {
        Some(hex) => i64::from_str_radix(hex, 16).ok(),
        None => value.parse::<i64>().ok(),
    };
    macro_rules! key {
        ($key:expr, $value:expr) => {
            set_key(host, settings, $key, $value)
        };
    }
    let switch = |on: bool| if on { "on".to_owned() } else { "off".to_owned() };
    let unsupported = |wanted: i64| -> Applied {
        if number == Some(wanted) { Some(Ok(None)) } else { Some(Err(format!("only {wanted} is here"))) }
    };
    let integer = || number.ok_or_else(|| format!("`{value}` is no number"));
    let count = |least: i64| match integer() {
        Ok(number) if number >= least => Ok(number as u64),
        Ok(number) => Err(format!("{number} is below {least}")),
        Err(reason) => Err(reason),
    };
    macro_rules! count {
        ($least:expr) => {
            match count($least) {
                Ok(count) => count,
                Err(reason) => return Some(Err(reason)),
            }
        };
    }
    match name {
        "net.ipv4.tcp_fastopen" => {
            host.fast_open.flags = count!(0);
            Some(Ok(Some(format!("fastopen={value}"))))
        }
        "net.ipv4.tcp_fastopen_key" => match Keys::from_sysctl(value) {
            Some(keys) => {
                host.fast_open.keys = keys;
                Some(Ok(Some("fastopen_key".to_owned())))
            }
            None => Some(Err("one key or two are needed, each four words in hexadecimal".to_owned())),
        },
        "net.ipv4.tcp_fastopen_blackhole_timeout_sec" => {
            host.fast_open.cache.blackhole_timeout = Span::from_secs(count!(0));
            Some(Ok(Some(format!("fastopen_blackhole_timeout={value}s"))))
        }
        // Not in any release: how many cookies are kept.
        "net.ipv4.tcp_fastopen_cookies" => {
            if count!(0) == 0 {
                host.fast_open.cache.flush();
            }
            nothing
        }
        "net.inet.tcp.fastopen.client_enable" => {
            host.fast_open.enable_client(count!(0) != 0);
            Some(Ok(Some(format!("fastopen.client_enable={value}"))))
        }
        "net.inet.tcp.fastopen.server_enable" => {
            host.fast_open.server = count!(0) != 0;
            Some(Ok(Some(format!("fastopen.server_enable={value}"))))
        }
        "net.inet.tcp.fastopen.path_disable_time" => {
            host.fast_open.cache.path_disable_time = Span::from_secs(count!(0));
            Some(Ok(Some(format!("fastopen.path_disable_time={value}s"))))
        }
        "net.inet.tcp.fastopen.acceptany" | "net.inet.tcp.fastopen.psk_enable" => unsupported(0),
        "net.ipv4.tcp_sack" | "net.inet.tcp.sack.enable" => key!("sack", switch(count!(0) != 0)),
        "net.ipv4.tcp_dsack" => key!("dsack", switch(count!(0) != 0)),
        "net.ipv4.tcp_timestamps" => key!("timestamps", switch(count!(0) != 0)),
        "net.ipv4.tcp_window_scaling" => key!("window_scaling", switch(count!(0) != 0)),
        "net.inet.tcp.rfc1323" => {
            // 2 is window scaling alone, 3 timestamps alone.
            let value = count!(0);
            let first = key!("window_scaling", switch(matches!(value, 1 | 2)));
            let second = key!("timestamps", switch(matches!(value, 1 | 3)));
            both(first, second)
        }
        "net.ipv4.tcp_ecn" | "net.inet.tcp.ecn.enable" => match count!(0) {
            0 => key!("ecn", "off".to_owned()),
            1 => key!("ecn", "on".to_owned()),
            2 => key!("ecn", "passive".to_owned()),
            3 => key!("ecn", "accecn".to_owned()),
            4 => key!("ecn", "accecn-classic".to_owned()),
            5 => key!("ecn", "accecn-passive".to_owned()),
            _ => Some(Err("a number from 0 to 5".to_owned())),
        },
        "net.ipv4.tcp_ecn_option" => match usize::try_from(count!(0)).ok().and_then(|at| AccEcnOption::ALL.get(at)) {
            Some(option) => key!("accecn_option", option.name().to_owned()),
            None => Some(Err("a number from 0 to 3".to_owned())),
        },
        "net.ipv4.tcp_ecn_option_beacon" => key!("accecn_beacon", value.to_owned()),
        "net.ipv4.tcp_congestion_control" | "net.inet.tcp.cc.algorithm" => key!("cc", value.to_owned()),
        // Since Linux 4.12 the first of them is for tail loss probes alone. A host that has none
        // stays without.
        "net.ipv4.tcp_early_retrans" if is_linux(host) => key!("tlp", switch(count!(0) >= 3)),
        "net.ipv4.tcp_frto" if is_linux(host) => key!("frto", switch(count!(0) != 0)),
        "net.ipv4.tcp_early_retrans" | "net.ipv4.tcp_frto" => nothing,
        "net.ipv4.tcp_recovery" => match count!(0) {
            // It is TCP_RACK_LOSS_DETECTION; the other two change how RACK does it.
            2.. => Some(Err("only 0 and 1 are here".to_owned())),
            _ if host.config.loss_detector != LossDetector::Rack => nothing,
            // Linux 6.17 dropped the detector that it fell back to.
            0 if host.profile.name == "linux-6.18" => {
                Some(Ok(Some("tcp_recovery=0 turns nothing off since Linux 6.17".to_owned())))
            }
            on => key!("rack", switch(on == 1)),
        },
        "net.ipv4.tcp_slow_start_after_idle" => key!("slow_start_after_idle", switch(count!(0) != 0)),
        "net.ipv4.tcp_rmem" => match third(value) {
            Some([_, default, most]) => {
                host.set_receive_most(most);
                both(key!("rcvbuf", default.to_string()), Some(Ok(None)))
            }
            None => Some(Err("three numbers are needed".to_owned())),
        },
        "net.ipv4.tcp_wmem" => match third(value) {
            Some([_, default, _]) => key!("sndbuf", default.to_string()),
            None => Some(Err("three numbers are needed".to_owned())),
        },
        "net.inet.tcp.recvspace" => key!("rcvbuf", value.to_owned()),
        "net.inet.tcp.sendspace" => key!("sndbuf", value.to_owned()),
        "kern.ipc.maxsockbuf" => {
            host.set_receive_most(count!(1));
            Some(Ok(Some(format!("maxsockbuf={value}"))))
        }
        "net.inet.tcp.delacktime" => key!("delayed_ack", format!("{}ms", count!(1))),
        "net.inet.tcp.delayed_ack" => {
            let value = if count!(0) == 0 { "off".to_owned() } else { host.config.delayed_ack.timeout.to_string() };
            key!("delayed_ack", value)
        }
        "net.inet.tcp.rexmit_initial" => key!("initial_rto", format!("{}ms", count!(1))),
        "net.inet.tcp.rexmit_min" => key!("min_rto", format!("{}ms", count!(1))),
        "net.inet.tcp.rexmit_slop" => key!("rto_slop", format!("{}ms", count!(0))),
        "net.inet.tcp.initcwnd_segments" => key!("initial_window", value.to_owned()),
        "net.inet.tcp.msl" => key!("time_wait", format!("{}ms", count!(1).saturating_mul(2))),
        "net.inet.tcp.keepinit" => {
            host.config.states.handshake_timeout = Some(Span::from_millis(count!(1)));
            Some(Ok(Some(format!("keepinit={value}"))))
        }
        "net.inet.tcp.keepidle" => {
            host.keepalive.idle = Span::from_millis(count!(1));
            Some(Ok(Some(format!("keepidle={value}"))))
        }
        "net.inet.tcp.keepintvl" => {
            host.keepalive.interval = Span::from_millis(count!(1));
            Some(Ok(Some(format!("keepintvl={value}"))))
        }
        "net.inet.tcp.keepcnt" | "net.ipv4.tcp_keepalive_probes" => {
            host.keepalive.count = count!(1).min(255) as u32;
            Some(Ok(Some(format!("keepcnt={value}"))))
        }
        "net.ipv4.tcp_keepalive_time" => {
            host.keepalive.idle = Span::from_secs(count!(1));
            Some(Ok(Some(format!("keepidle={value}s"))))
        }
        "net.ipv4.tcp_keepalive_intvl" => {
            host.keepalive.interval = Span::from_secs(count!(1));
            Some(Ok(Some(format!("keepintvl={value}s"))))
        }
        "net.inet.tcp.insecure_rst" => {
            host.config.states.insecure_rst = count!(0) != 0;
            Some(Ok(Some(format!("insecure_rst={value}"))))
        }
        "net.inet.tcp.insecure_syn" => {
            host.config.states.insecure_syn = count!(0) != 0;
            Some(Ok(Some(format!("insecure_syn={value}"))))
        }
        "net.inet.tcp.drop_synfin" => {
            host.set_drop_syn_fin(count!(0) != 0);
            Some(Ok(Some(format!("drop_synfin={value}"))))
        }
        "net.inet.tcp.rexmit_drop_options" => {
            host.config.states.drop_options_after = (count!(0) != 0).then_some(DROP_OPTIONS_AFTER);
            Some(Ok(Some(format!("rexmit_drop_options={value}"))))
        }
        "net.ipv4.tcp_syn_retries" => {
            host.config.states.syn_retries = count!(0).min(127) as u32;
            Some(Ok(Some(format!("syn_retries={value}"))))
        }
        "net.ipv4.tcp_syn_linear_timeouts" => {
            host.config.states.linear_syn_timeouts = count!(0).min(127) as u32;
            Some(Ok(Some(format!("syn_linear_timeouts={value}"))))
        }
        "net.ipv4.tcp_ecn_fallback" => key!("ecn_fallback", switch(count!(0) != 0)),
        "net.ipv4.tcp_rto_max_ms" => key!("max_rto", format!("{}ms", count!(1000))),
        "net.ipv4.tcp_comp_sack_nr" | "net.ipv4.tcp_comp_sack_delay_ns" | "net.ipv4.tcp_comp_sack_slack_ns" => {
            set_compression(host, name, count!(0));
            Some(Ok(Some(format!("{}={value}", name.rsplit('.').next().unwrap_or(name)))))
        }
        "net.ipv4.tcp_synack_retries" => {
            host.config.states.synack_retries = count!(0).min(255) as u32;
            Some(Ok(Some(format!("synack_retries={value}"))))
        }
        "net.ipv4.tcp_retries2" => key!("max_retries", value.to_owned()),
        "net.ipv4.tcp_fin_timeout" => {
            host.config.states.fin_wait_2_timeout = Some(Span::from_secs(count!(0)));
            Some(Ok(Some(format!("fin_timeout={value}"))))
        }
        "net.ipv4.tcp_rfc1337" => {
            host.config.states.protect_time_wait = count!(0) != 0;
            Some(Ok(Some(format!("rfc1337={value}"))))
        }
        "net.ipv4.tcp_invalid_ratelimit" => {
            host.config.states.invalid_interval = Span::from_millis(count!(0));
            Some(Ok(Some(format!("invalid_ratelimit={value}"))))
        }
        "net.ipv4.tcp_abort_on_overflow" => {
            host.set_abort_on_overflow(count!(0) != 0);
            Some(Ok(Some(format!("abort_on_overflow={value}"))))
        }
        "net.ipv4.tcp_notsent_lowat" => {
            let bytes = count!(0);
            host.notsent_lowat = u32::try_from(bytes).ok().filter(|&bytes| bytes != u32::MAX);
            Some(Ok(Some(format!("notsent_lowat={value}"))))
        }
        "net.ipv4.tcp_pacing_ss_ratio" => {
            host.config.pacing.ss_ratio = count!(1).min(1000) as u32;
            Some(Ok(Some(format!("pacing_ss_ratio={value}"))))
        }
        "net.ipv4.tcp_pacing_ca_ratio" => {
            host.config.pacing.ca_ratio = count!(1).min(1000) as u32;
            Some(Ok(Some(format!("pacing_ca_ratio={value}"))))
        }
        // What is here is what they say by default; another value is something that is not here.
        "net.ipv4.tcp_reordering" => unsupported(3),
        "net.inet.tcp.ecn.maxretries" => {
            host.config.states.ecn_syn_retries = count!(0).min(255) as u32;
            Some(Ok(Some(format!("ecn.maxretries={value}"))))
        }
        "net.ipv4.tcp_mtu_probing" => key!("mtu_probing", value.to_owned()),
        "net.ipv4.tcp_base_mss" => key!("base_mss", value.to_owned()),
        "net.ipv4.route.min_pmtu" => key!("min_pmtu", value.to_owned()),
        "net.ipv4.route.mtu_expires" => key!("mtu_expires", format!("{}s", count!(1))),
        // 3 checks what TCP checks anyway.
        "net.ipv4.ip_no_pmtu_disc" => key!("pmtu_discovery", switch(matches!(count!(0), 0 | 3))),
        "net.ipv4.tcp_mtu_probe_floor" => {
            host.config.path.probe_floor = count!(48).min(65_535) as u32;
            Some(Ok(Some(format!("mtu_probe_floor={value}"))))
        }
        "net.ipv4.tcp_min_snd_mss" => {
            host.config.path.least_segment = count!(48).min(65_535) as u32;
            Some(Ok(Some(format!("min_snd_mss={value}"))))
        }
        "net.ipv4.tcp_probe_threshold" => {
            host.config.path.probe_threshold = count!(0).min(65_535) as u32;
            Some(Ok(Some(format!("probe_threshold={value}"))))
        }
        "net.ipv4.tcp_probe_interval" => {
            host.config.path.probe_interval = Span::from_secs(count!(0));
            Some(Ok(Some(format!("probe_interval={value}"))))
        }
        "net.ipv4.tcp_retries1" => {
            host.config.path.black_hole_retries = count!(1).min(255) as u32;
            Some(Ok(Some(format!("retries1={value}"))))
        }
        "net.inet.tcp.icmp_may_rst" => key!("icmp_may_rst", switch(count!(0) != 0)),
        "net.inet.tcp.minmss" => key!("min_pmtu", count!(0).saturating_add(40).max(68).to_string()),
        "net.inet.tcp.hostcache.purgenow" => {
            host.route.purge();
            nothing
        }
        "net.ipv4.tcp_fack" | "net.inet.tcp.blackhole" | "net.inet.udp.blackhole" => unsupported(0),
        "net.inet.tcp.syncookies_only" | "net.inet.tcp.udp_tunneling_port" => unsupported(0),
        // They concern what scripts cannot see here, or what comes with a loss detector that is
        // chosen by `--set`.
        "net.ipv4.tcp_tso_win_divisor"
        | "net.ipv4.tcp_min_tso_segs"
        | "net.ipv4.tcp_no_metrics_save"
        | "net.ipv4.tcp_moderate_rcvbuf"
        | "net.ipv4.tcp_autocorking"
        | "net.ipv4.tcp_syncookies"
        | "net.inet.tcp.hostcache.purge"
        | "net.inet.tcp.syncookies"
        | "net.inet.tcp.udp_tunneling_overhead"
        | "net.inet.tcp.pmtud_blackhole_detection"
        | "net.inet.tcp.path_mtu_discovery"
        | "net.inet.tcp.pmtud_blackhole_mss"
        | "net.inet.tcp.v6pmtud_blackhole_mss"
        | "net.inet.tcp.mssdflt"
        | "net.inet.tcp.v6mssdflt"
        | "net.inet.tcp.tolerate_missing_ts" => nothing,
        _ => None,
    }
}

/// FreeBSD takes the options off a SYN after the third timeout (`tcp_timer_rexmt`).
const DROP_OPTIONS_AFTER: u32 = 3;

fn set_key(host: &mut Host, settings: &Settings, key: &str, value: String) -> Applied {
    if settings.has(key) {
        return Some(Ok(Some(format!("{key} stays as chosen"))));
    }
    Some(match settings::apply(host, key, &value) {
        Ok(()) => Ok(Some(format!("{key}={value}"))),
        Err(error) => Err(error.to_string()),
    })
}

fn both(first: Applied, second: Applied) -> Applied {
    match (first, second) {
        (Some(Ok(Some(first))), Some(Ok(Some(second)))) => Some(Ok(Some(format!("{first}, {second}")))),
        (Some(Ok(first)), Some(Ok(second))) => Some(Ok(first.or(second))),
        (Some(Err(error)), _) | (_, Some(Err(error))) => Some(Err(error)),
        _ => None,
    }
}

/// Three numbers of bytes.
fn third(value: &str) -> Option<[u64; 3]> {
    let numbers: Vec<u64> = value.split_whitespace().map(product).collect::<Option<_>>()?;
    numbers.try_into().ok()
}

/// A number, or the shell's `$((...))` with a product of some in it.
fn product(word: &str) -> Option<u64> {
    let factors = word.strip_prefix("$((").and_then(|rest| rest.strip_suffix("))")).unwrap_or(word);
    factors.split('*').try_fold(1u64, |product, factor| product.checked_mul(factor.parse().ok()?))
}

/// One of the knobs of ACKs that are put together; none waits if none may (`tcp_comp_sack_nr` = 0).
fn set_compression(host: &mut Host, name: &str, value: u64) {
    let rules = &mut host.config.transfer.sack_compression;
    match name {
        "net.ipv4.tcp_comp_sack_nr" if value == 0 => *rules = None,
        "net.ipv4.tcp_comp_sack_nr" => {
            rules.get_or_insert_default().segments = value.min(255) as u32;
        }
        "net.ipv4.tcp_comp_sack_delay_ns" => {
            if let Some(rules) = rules {
                rules.delay = Span::from_nanos(value);
            }
        }
        _ => {
            if let Some(rules) = rules {
                rules.slack = Span::from_nanos(value);
            }
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use ackclock_tcp::{AdaptiveRules, EcnFeedback, SackCompression};

    #[test]
    fn sysctls_of_linux_that_set_what_its_profile_has() {
        let states = |text| applied(text).0.config.states;
        assert_eq!(states("sysctl -q net.ipv4.tcp_syn_linear_timeouts=3").linear_syn_timeouts, 3);
        assert_eq!(states("sysctl -q net.ipv4.tcp_ecn_fallback=0").ecn_syn_retries, u32::MAX);
        assert_eq!(states("sysctl -q net.ipv4.tcp_ecn_fallback=1").ecn_syn_retries, 0);
        let (host, _) = applied("./set_sysctls.py /proc/sys/net/ipv4/tcp_rto_max_ms=1000");
        assert_eq!(host.config.max_rto, Span::from_secs(1));
        assert!(applied("sysctl -q net.ipv4.tcp_rto_max_ms=999").1.unsupported.is_some());
    }

    #[test]
    fn acks_are_put_together_as_three_sysctls_say() {
        let rules = |text| applied(text).0.config.transfer.sack_compression;
        assert_eq!(rules("true"), Some(SackCompression::default()));
        assert_eq!(rules("sysctl -q net.ipv4.tcp_comp_sack_nr=0"), None);
        let text = "sysctl -q net.ipv4.tcp_comp_sack_nr=10 net.ipv4.tcp_comp_sack_delay_ns=5000 \
                    net.ipv4.tcp_comp_sack_slack_ns=7";
        let (delay, slack) = (Span::from_micros(5), Span::from_nanos(7));
        assert_eq!(rules(text), Some(SackCompression { delay, slack, segments: 10 }));
    }

    #[test]
    fn a_size_may_be_a_product() {
        let scale = |text| applied(text).1.unsupported;
        assert_eq!(scale("sysctl -q net.ipv4.tcp_rmem=\"4096 131072 $((32*1024*1024))\""), None);
        assert_eq!(product("$((15*1024*1024))"), Some(15_728_640));
        assert_eq!(product("7"), Some(7));
        for word in ["$((2*x))", "$((", "$(())", "2*", "$((18446744073709551615*2))"] {
            assert_eq!(product(word), None, "{word}");
        }
    }

    fn applied(text: &str) -> (Host, Shell) {
        let mut host = Host::default();
        let shell = apply(&mut host, &Settings::new(), text);
        (host, shell)
    }

    #[test]
    fn the_defaults_of_the_suite_are_all_known() {
        for (name, value) in DEFAULTS {
            assert!(matches!(set(&mut Host::default(), &Settings::new(), name, value), Some(Ok(_))), "{name}={value}");
        }
        let (host, shell) = applied("../../common/defaults.sh");
        assert_eq!(shell.not_run, Vec::<String>::new());
        assert_eq!(
            (host.cc.name, host.config.ecn, host.config.slow_start_after_idle),
            ("cubic", EcnFeedback::None, false)
        );
        // tcp_rmem and tcp_wmem: the numbers in the middle.
        assert_eq!((host.receive_buffer(), host.config.send_buffer), (540_000, 262_144));
    }

    #[test]
    fn commands_of_one_line_are_taken_one_by_one() {
        let (host, shell) = applied(
            "../common/defaults.sh\nethtool -K tun0 tso off gso off\n\
             ../common/set_sysctls.py /proc/sys/net/ipv4/tcp_timestamps=0 \\\n /proc/sys/net/ipv4/tcp_sack=0",
        );
        assert_eq!(shell.not_run, ["ethtool -K tun0 tso off gso off"]);
        assert!(!host.config.timestamps && !host.config.sack);
    }

    #[test]
    fn values_in_quotes_and_redirections() {
        let (host, shell) = applied("sysctl -q net.ipv4.tcp_wmem=\"4096 50000 4194304\" > /dev/null 2>&1");
        assert_eq!(shell, Shell { changed: vec!["sndbuf=50000".to_owned()], ..Shell::default() });
        assert_eq!(host.config.send_buffer, 50_000);
    }

    #[test]
    fn numbers_are_worked_out() {
        let (host, shell) = applied("sysctl -q net.ipv4.tcp_wmem=\"4096 $((32*1024)) $(( (1 + 3) << 20 ))\"");
        assert_eq!((shell.unsupported, host.config.send_buffer), (None, 32_768));
        for text in ["$((x))", "$((1", "$((1/0))", "$((1+))"] {
            assert!(applied(&format!("sysctl -q net.ipv4.tcp_sack={text}")).1.unsupported.is_some(), "{text}");
        }
    }

    #[test]
    fn what_shapes_and_filters_packets_is_not_here() {
        for text in
            ["tc qdisc delete dev tun0 root 2>/dev/null", "/sbin/tc qdisc add dev tun0 root pfifo", "iptables -F"]
        {
            let shell = applied(text).1;
            assert!(shell.unsupported.is_some() && shell.not_run.is_empty(), "{text}: {shell:?}");
        }
    }

    #[test]
    fn what_the_sysctls_of_loss_recovery_do() {
        let after = |profile: &str, text: &str| {
            let mut host = Host::of_profile(profile).unwrap();
            let shell = apply(&mut host, &Settings::new(), &format!("sysctl -q {text}"));
            assert_eq!(shell.not_run, Vec::<String>::new());
            (host.config, shell)
        };
        let old = AdaptiveRules { fack: false, early_retransmit: false, ..AdaptiveRules::default() };
        assert_eq!(after("linux-6.1", "net.ipv4.tcp_recovery=0").0.loss_detector, LossDetector::Linux(old));
        assert_eq!(after("linux-6.1", "net.ipv4.tcp_recovery=0x1").0.loss_detector, LossDetector::Rack);
        assert!(after("linux-6.1", "net.ipv4.tcp_recovery=4").1.unsupported.is_some());
        let (config, shell) = after("linux-6.18", "net.ipv4.tcp_recovery=0");
        assert_eq!(config.loss_detector, LossDetector::Rack);
        assert!(shell.changed[0].contains("6.17"), "{shell:?}");
        assert_eq!(after("freebsd-14", "net.ipv4.tcp_recovery=0").0.loss_detector, LossDetector::Rfc6675);
        // Of tail loss probes and F-RTO, what the host has.
        for (value, tlp) in [(0, false), (2, false), (3, true)] {
            assert_eq!(after("linux-6.1", &format!("net.ipv4.tcp_early_retrans={value}")).0.tlp, tlp, "{value}");
        }
        for (value, frto) in [(0, false), (2, true)] {
            assert_eq!(after("linux-6.1", &format!("net.ipv4.tcp_frto={value}")).0.frto, frto, "{value}");
        }
        assert_eq!(after("freebsd-14", "net.ipv4.tcp_frto=2").0, Host::of_profile("freebsd-14").unwrap().config);
    }

    #[test]
    fn what_is_not_known_is_not_run() {
        for text in ["nstat > /dev/null", "sysctl -w net.ipv4.tcp_unheard_of=1", "sysctl net.ipv4.tcp_sack"] {
            assert_eq!(applied(text).1.not_run.len(), 1, "{text}");
        }
    }

    #[test]
    fn values_that_are_not_here_are_refused() {
        for text in [
            "sysctl -w net.inet.tcp.blackhole=1",
            "sysctl -q net.ipv4.tcp_ecn=6",
            "sysctl -q net.ipv4.tcp_congestion_control=yeah",
            "sysctl -q net.ipv4.tcp_sack=yes",
            "sysctl -q net.ipv4.tcp_rmem=4096",
            "sysctl -w net.inet.tcp.delacktime=0",
        ] {
            assert!(applied(text).1.unsupported.is_some(), "{text}");
        }
    }

    #[test]
    fn freebsd_says_two_things_at_once() {
        // tcp(4), rfc1323: 1 is both, 2 window scaling alone, 3 timestamps alone.
        for (value, scaling, timestamps) in [(0, false, false), (1, true, true), (2, true, false), (3, false, true)] {
            let (host, _) = applied(&format!("sysctl -w net.inet.tcp.rfc1323={value}"));
            assert_eq!((host.config.window_scaling, host.config.timestamps), (scaling, timestamps), "{value}");
        }
    }

    #[test]
    fn what_is_chosen_stays() {
        let mut settings = Settings::new();
        settings.set("timestamps", "on").unwrap();
        let mut host = Host::default();
        apply(&mut host, &settings, "sysctl -q net.ipv4.tcp_timestamps=0");
        assert!(host.config.timestamps);
    }
}
