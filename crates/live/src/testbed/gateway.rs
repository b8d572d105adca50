//! The kernel settings of a host in front of a network: forwarding, and if the replies would not
//! find their way back, masquerading of the forwarded packets behind an address of the machine
//! (NAT).
//!
//! In a namespace that already existed, both are undone at the end: forwarding is switched off
//! unless it was on before any run began or another run still needs it; each run has its own
//! nftables table and deletes it. Both are written to the run's record first, so that the next
//! start undoes what a killed run left behind.
//!
//! NAT uses nftables (`nft`): a separate table with one chain that masquerades packets from the
//! hosts at the other end of the path. Other rules are not touched; a firewall that drops forwarded
//! packets, as Docker's does, still drops them.

use std::fs;
use std::io::{self, Write};
use std::net::IpAddr;
use std::process::{Command, Stdio};

use ackclock_sim::spec::{LiveSpec, NodeSpec};

use super::interface;
use super::namespace::{self, NamespaceId, NetworkNamespace};
use super::record::RunRecord;
use super::record::others_note;

/// The kernel's forwarding switches, by address family.
const SWITCHES: [(&str, &str); 2] =
    [("ipv4", "/proc/sys/net/ipv4/ip_forward"), ("ipv6", "/proc/sys/net/ipv6/conf/all/forwarding")];

/// The prefix of table names.
const TABLE: &str = "ackclock_";

/// Switches on forwarding and masquerading in the namespace of a host, as its keys require.
pub(super) fn set_up(
    spec: &LiveSpec,
    node: &NodeSpec,
    namespace: Option<&NetworkNamespace>,
    record: &mut RunRecord,
) -> io::Result<()> {
    let is_ours = namespace.is_some_and(NetworkNamespace::is_ours);
    let id = match namespace {
        Some(namespace) => namespace.id(),
        None => NamespaceId::of_process("self")?,
    };
    for (number, (family, switch)) in SWITCHES.into_iter().enumerate() {
        if node.routes.iter().any(|(to, _)| to.is_ipv6() == (number == 1)) {
            let note = (!is_ours).then(|| forwarding_line(family, id));
            forward(namespace, switch, note, record).map_err(|error| explained(error, switch))?;
        }
    }
    if node.nat {
        let table = format!("{TABLE}{}_{}", record.token().replace('-', "_"), number_of(spec, node));
        if !is_ours {
            record.note(&format!("nft {table} {id}"))?;
        }
        let rules = rules(&table, spec, node);
        nft(namespace, &rules)?;
    }
    Ok(())
}

/// The problem if the program that NAT requires is missing.
pub(super) fn missing() -> Option<String> {
    let mut command = Command::new("nft");
    command.arg("--version").stdin(Stdio::null()).stdout(Stdio::null()).stderr(Stdio::null());
    match command.status() {
        Err(error) if error.kind() == io::ErrorKind::NotFound => Some(String::from(
            "the program `nft` is missing, but NAT requires it (Debian, Fedora and others: package nftables)",
        )),
        _ => None,
    }
}

/// Undoes a line in the record of a run that is over; ignores unknown lines.
pub(super) fn undo(line: &str, record: &std::path::Path) -> io::Result<()> {
    let words: Vec<&str> = line.split(' ').collect();
    let there = |id: &str| namespace::find(id);
    match words[..] {
        ["nft", table, id] if is_table(table) => match there(id)? {
            Some(namespace) => nft(namespace.as_ref(), &format!("table inet {table}\ndelete table inet {table}\n")),
            None => Ok(()),
        },
        ["interface", name, namespace, home] => interface::give_back(name, namespace, home),
        ["forward", family, id] => {
            let Some((_, switch)) = SWITCHES.into_iter().find(|(known, _)| *known == family) else { return Ok(()) };
            if others_note(line, record) {
                return Ok(());
            }
            match there(id)? {
                Some(namespace) => namespace::inside(namespace.as_ref(), || fs::write(switch, "0")),
                None => Ok(()),
            }
        }
        _ => Ok(()),
    }
}

fn forwarding_line(family: &str, id: NamespaceId) -> String {
    format!("forward {family} {id}")
}

/// Switches forwarding on, with a note if it was off, or is on only because of another run.
fn forward(
    namespace: Option<&NetworkNamespace>,
    switch: &str,
    note: Option<String>,
    record: &mut RunRecord,
) -> io::Result<()> {
    let is_on = namespace::inside(namespace, || Ok(fs::read_to_string(switch)?.trim() == "1"))?;
    if let Some(line) = note
        && (!is_on || others_note(&line, record.path()))
    {
        record.note(&line)?;
    }
    if is_on { Ok(()) } else { namespace::inside(namespace, || fs::write(switch, "1")) }
}

fn explained(error: io::Error, switch: &str) -> io::Error {
    let why = match error.kind() {
        io::ErrorKind::NotFound => "the kernel does not have it",
        io::ErrorKind::PermissionDenied | io::ErrorKind::ReadOnlyFilesystem => {
            "it is read-only here, as in many containers; set it outside, or start the container with \
             `--sysctl net.ipv4.ip_forward=1`"
        }
        _ => return error,
    };
    io::Error::new(error.kind(), format!("forwarding cannot be switched on ({switch}): {why}"))
}

fn number_of(spec: &LiveSpec, node: &NodeSpec) -> usize {
    spec.nodes.iter().position(|other| other.name == node.name).unwrap_or(0)
}

/// Returns `true` if a name may be that of a run's table.
fn is_table(name: &str) -> bool {
    name.starts_with(TABLE) && name.len() < 64 && name.bytes().all(|byte| byte.is_ascii_alphanumeric() || byte == b'_')
}

/// The table that masquerades packets from the hosts at the other end of paths to `node`.
fn rules(table: &str, spec: &LiveSpec, node: &NodeSpec) -> String {
    let number = number_of(spec, node);
    let others = spec.pipes.iter().filter(|pipe| pipe.between.contains(&number)).flat_map(|pipe| pipe.between);
    let others = others.filter(|&other| other != number).map(|other| &spec.nodes[other]);
    let mut sources: Vec<(IpAddr, u8)> = Vec::new();
    for other in others {
        sources.extend(other.addresses.iter().map(|&(address, _)| (address, if address.is_ipv4() { 32 } else { 128 })));
        sources.extend_from_slice(&other.routes);
    }
    sources.sort_unstable();
    sources.dedup();
    let device = node.tun.as_deref().unwrap_or_default();
    let masquerade = |family: &str, six: bool| {
        let of_it = sources.iter().filter(|(address, _)| address.is_ipv6() == six);
        of_it
            .map(|(address, length)| {
                format!("    {family} saddr {address}/{length} oifname != \"{device}\" masquerade\n")
            })
            .collect::<String>()
    };
    format!(
        "table inet {table} {{\n  chain postrouting {{\n    type nat hook postrouting priority 100; policy accept;\n\
         {}{}  }}\n}}\n",
        masquerade("ip", false),
        masquerade("ip6", true)
    )
}

/// Passes a script to `nft` in a namespace.
fn nft(namespace: Option<&NetworkNamespace>, script: &str) -> io::Result<()> {
    let mut command = Command::new("nft");
    command.args(["-f", "-"]).stdin(Stdio::piped()).stdout(Stdio::null()).stderr(Stdio::piped());
    let child = namespace::inside(namespace, || command.spawn());
    let mut child = child?;
    if let Some(mut stdin) = child.stdin.take() {
        stdin.write_all(script.as_bytes())?;
    }
    let ended = child.wait_with_output()?;
    if ended.status.success() {
        return Ok(());
    }
    let said = String::from_utf8_lossy(&ended.stderr);
    let said = said.lines().next().unwrap_or("no reason given");
    Err(io::Error::other(format!("`nft` refused the table for NAT: {said}")))
}
