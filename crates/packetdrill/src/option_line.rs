//! Lines `--name=value` at the top of a script, and the host that they describe.
//!
//! # Source
//! packetdrill's `config.c` (google/packetdrill), and `nplab/packetdrill` for those that it adds.

use crate::ast::OptionLine;
use crate::host::Host;
use crate::report::ScriptResult;
use crate::settings::{self, Settings};

/// The host of a script: its profile, what its lines say, and over both what `settings` says.
pub(crate) fn host(lines: &[OptionLine], settings: &Settings) -> Result<Host, ScriptResult> {
    let invalid = |line: u32, message: String| ScriptResult::Invalid { line, message };
    // The profile comes first, wherever it stands.
    let profile = lines.iter().rev().find(|line| line.name == "profile");
    let mut host = match (settings.profile(), profile) {
        (Some(name), _) => Host::of_profile(name).map_err(|error| invalid(1, error.to_string()))?,
        (None, Some(line)) => Host::of_profile(&line.value).map_err(|error| invalid(line.line, error.to_string()))?,
        (None, None) => Host::default(),
    };
    for line in lines {
        apply(&mut host, line)?;
    }
    settings.apply_to(&mut host);
    Ok(host)
}

/// Options that name addresses, ports and tools of the machine that packetdrill runs on.
const IGNORED: &[&str] = &[
    "gateway_ip",
    "netmask_ip",
    "bind_port",
    "connect_port",
    "local_port",
    "remote_port",
    "code_command",
    "code_format",
    "code_sockopt",
    "speed",
    "init_scripts",
    "so_flags",
    "wire_server_ip",
    "wire_server_at",
    "wire_server_port",
    "wire_client_dev",
    "wire_server_dev",
    "wire_client_device",
    "wire_server_device",
    "udp_encapsulation",
    "tun_device",
    "persistent_tun_device",
    "dry_run",
    "is_anyip",
    "send_omit_free",
    "debug",
    "define",
    "D",
    "verbose",
    "v",
    "no_cleanup",
    "tcp_md5_secret",
];

fn apply(host: &mut Host, line: &OptionLine) -> Result<(), ScriptResult> {
    let value = line.value.as_str();
    let mut set = |key: &str, value: &str| {
        settings::apply(host, key, value)
            .map_err(|error| ScriptResult::Invalid { line: line.line, message: format!("--{}: {error}", line.name) })
    };
    let unsupported = || Err(ScriptResult::Unsupported { line: line.line, what: format!("--{}={value}", line.name) });
    match line.name.as_str() {
        "profile" => Ok(()),
        "set" => match value.split_once('=') {
            Some((key, value)) => set(key, value),
            None => Err(ScriptResult::Invalid { line: line.line, message: "--set takes KEY=VALUE".to_owned() }),
        },
        "tolerance_usecs" => set("tolerance", &format!("{value}us")),
        "tolerance_percent" => set("tolerance_percent", value),
        "ip_version" => set("ip_version", value),
        // The size to which larger inbound packets would be cut; the host's MSS follows from the
        // MTU.
        "mss" => Ok(()),
        "mtu" => set("mtu", value),
        "strict_segments" => set("strict_segments", "on"),
        "tcp_ts_tick_usecs" => set("ts_tick", &format!("{value}us")),
        "tcp_ts_ecr_scaled" => set("ts_ecr_scaled", "on"),
        "ignore_psh" | "ignore-psh" => set("ignore_psh", if value.is_empty() { "on" } else { value }),
        "non_fatal" => {
            for kind in value.split([',', ' ']).filter(|kind| !kind.is_empty()) {
                match kind {
                    "packet" => host.non_fatal_packet = true,
                    "syscall" => host.non_fatal_call = true,
                    _ => {
                        let message = format!("--non_fatal accepts packet and syscall, not `{kind}`");
                        return Err(ScriptResult::Invalid { line: line.line, message });
                    }
                }
            }
            Ok(())
        }
        "udp_encapsulation" if value != "none" => unsupported(),
        "wire_client" | "wire_server" | "so_filename" | "psp_udp_port" => unsupported(),
        "local_ip" | "remote_ip" => {
            // An address may have a prefix length, which does not count.
            let address = value.split('/').next().unwrap_or(value).parse().map_err(|_| ScriptResult::Invalid {
                line: line.line,
                message: format!("--{}: `{value}` is no address", line.name),
            })?;
            let fast_open = &mut host.fast_open;
            *(if line.name == "local_ip" { &mut fast_open.local } else { &mut fast_open.remote }) = Some(address);
            Ok(())
        }
        name if IGNORED.contains(&name) => Ok(()),
        name => Err(ScriptResult::Invalid { line: line.line, message: format!("there is no option --{name}") }),
    }
}
