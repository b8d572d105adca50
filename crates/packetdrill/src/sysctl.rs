//! Shell lines that set up a host: sysctls that name a knob, and those that change nothing here.
//!
//! # Source
//! Linux `Documentation/networking/ip-sysctl.rst`; FreeBSD tcp(4), `sys/netinet/tcp_subr.c` and its
//! neighbours; the scripts `common/defaults.sh` and `common/set_sysctls.py` of google/packetdrill.

mod arithmetic;
mod setters;
mod shell;
mod table;
#[cfg(test)]
mod tests;

use self::shell::{split_commands, split_words};
use self::table::set;
use crate::host::Host;
use crate::settings::Settings;

/// The outcome of one shell line, which may be several commands.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub(crate) struct Shell {
    /// The changes, for the trace.
    pub(crate) changed: Vec<String>,
    /// Commands that were not run.
    pub(crate) not_run: Vec<String>,
    /// A known setting whose value is not here, and why.
    pub(crate) unsupported: Option<String>,
}

/// The outcome of one command.
enum CommandOutcome {
    Known,
    Unknown,
}

/// Carries out what is known of the shell line `text`. Values that `settings` fixes stay.
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
            if let CommandOutcome::Unknown = apply_command(host, settings, &command, &mut shell) {
                shell.not_run.push(command);
            }
        }
    }
    shell
}

fn apply_command(host: &mut Host, settings: &Settings, command: &str, shell: &mut Shell) -> CommandOutcome {
    let words = split_words(command);
    let Some((program, rest)) = words.split_first() else { return CommandOutcome::Known };
    match program.rsplit('/').next().unwrap_or(program) {
        "sysctl" | "set_sysctls.py" => {}
        "defaults.sh" => {
            for (name, value) in DEFAULTS {
                // Each of them is known.
                let _ = set(host, settings, name, value);
            }
            // The kernel's own suite has them next to its scripts, and differs in one.
            if !program.contains("common/") {
                let _ = set(host, settings, "net.ipv4.tcp_fastopen", "0x3");
            }
            host.fast_open.cache.flush();
            shell.changed.push("the suite's defaults".to_owned());
            return CommandOutcome::Known;
        }
        name @ ("server.sh" | "client.sh") if program.contains("common/") => {
            let [local, _] = host.ends();
            host.mptcp.set_up_suite(name == "server.sh", local);
            shell.changed.push("the suite's MPTCP endpoints".to_owned());
            return CommandOutcome::Known;
        }
        "ip" if rest.first().is_some_and(|object| object == "mptcp") => {
            let words: Vec<&str> = rest.iter().skip(1).map(String::as_str).collect();
            match host.mptcp.command(&words) {
                Some(()) => shell.changed.push("MPTCP endpoints".to_owned()),
                None => shell.unsupported = Some(format!("the command {command}")),
            }
            return CommandOutcome::Known;
        }
        "true" | ":" => return CommandOutcome::Known,
        "ip" if matches!(rest, [object, action, ..] if object == "tcp_metrics" && action == "flush") => {
            host.fast_open.cache.flush();
            shell.changed.push("metrics flushed".to_owned());
            return CommandOutcome::Known;
        }
        "ip" => {
            let changed = host.route.change(rest);
            let known = changed.is_some();
            shell.changed.extend(changed);
            return if known { CommandOutcome::Known } else { CommandOutcome::Unknown };
        }
        // These commands decide about the packets that leave, and their times.
        name @ ("tc" | "iptables" | "ip6tables" | "nft") => {
            shell.unsupported = Some(format!("the command {name}"));
            return CommandOutcome::Known;
        }
        // Takes back what was changed, when all is over.
        name if name.starts_with("sysctl_restore_") => return CommandOutcome::Known,
        _ => return CommandOutcome::Unknown,
    }
    let mut any = false;
    for word in rest.iter().filter(|word| !word.starts_with('-')) {
        if word.contains('>') || word == "/dev/null" || word.chars().all(|char| char.is_ascii_digit()) {
            continue;
        }
        let Some((path, value)) = word.split_once('=') else { return CommandOutcome::Unknown };
        let path = path.trim_start_matches("/proc/sys/").replace('/', ".");
        any = true;
        match set(host, settings, &path, value.trim()) {
            Some(Ok(what)) => shell.changed.extend(what),
            Some(Err(reason)) => shell.unsupported = Some(format!("{path}={value}: {reason}")),
            None => return CommandOutcome::Unknown,
        }
    }
    if any { CommandOutcome::Known } else { CommandOutcome::Unknown }
}

/// The settings of google/packetdrill's `common/defaults.sh` that matter here.
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
