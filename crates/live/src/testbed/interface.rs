//! An interface of the machine as the way to the network behind a host: it moves into the host's
//! namespace with its addresses and routes, and back at the end.
//!
//! The host's kernel is then a router between the interface and the path. It answers ARP requests
//! for addresses that its routes reach elsewhere (`proxy_arp`), so that IPv4 neighbours need no
//! route; IPv6 neighbours do.

use std::fs;
use std::io;

use super::namespace::{self, NetworkNamespace};
use super::netlink::{self, InterfaceState};
use super::record::RunRecord;

/// Moves an interface into a namespace of this run.
pub(super) fn take(name: &str, namespace: &NetworkNamespace, record: &mut RunRecord) -> io::Result<()> {
    if !namespace.is_ours() {
        let why = format!(
            "the network namespace {} was there before; an interface requires one of its own",
            namespace.name()
        );
        return Err(io::Error::new(io::ErrorKind::AlreadyExists, why));
    }
    let home = NetworkNamespace::current()?;
    record.note(&format!("interface {name} {} {}", namespace.name(), home.id()))?;
    carry(name, &home, namespace)?;
    // A kernel without this switch answers for its own addresses only.
    let switch = format!("/proc/sys/net/ipv4/conf/{name}/proxy_arp");
    namespace::inside(Some(namespace), || {
        let _ = fs::write(switch, "1");
        Ok(())
    })
}

/// Moves an interface back to its original namespace, by the words of its line in a record. An
/// interface that is gone is ignored.
pub(super) fn give_back(name: &str, namespace: &str, home: &str) -> io::Result<()> {
    let (Some(there), Some(home)) = (NetworkNamespace::open(namespace)?, namespace::find(home)?) else { return Ok(()) };
    let home = home.map_or_else(NetworkNamespace::current, Ok)?;
    match carry(name, &there, &home) {
        Err(error) if error.kind() == io::ErrorKind::NotFound => Ok(()),
        other => other,
    }
}

/// Moves an interface with its addresses and routes; `NotFound` if it is not there.
fn carry(name: &str, from: &NetworkNamespace, to: &NetworkNamespace) -> io::Result<()> {
    let carried: InterfaceState = namespace::inside(Some(from), || netlink::pick_up(name, to.file()))?;
    namespace::inside(Some(to), || netlink::put_down(name, carried))
}
