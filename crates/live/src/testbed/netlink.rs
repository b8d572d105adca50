//! Requests to the kernel about devices, in the namespace of the calling thread. Numbers are those
//! of rtnetlink(7) and `linux/if_link.h`.

use std::fs::{self, File};
use std::io;
use std::net::{IpAddr, Ipv6Addr};
use std::os::fd::AsRawFd;
use std::thread;
use std::time::Duration;

use ackclock_sim::spec::{LiveSpec, NodeSpec};
use nix::libc::{self, c_int};

use super::rtnetlink::{Address, IFF_UP, Link, NetlinkSocket, Route, attribute, link};
use crate::prefix;

/// Packets that a device holds until they are read. The kernel's TCP does not count packets in the
/// ring (the device orphans them from their socket), so that a whole window may arrive at once: 1
/// Gbit/s for 100 ms is 8333 packets of 1500 bytes.
const TX_QUEUE_LEN: u32 = 16_384;

/// Flags of requests: list all objects; add a new one; add a new one or replace an existing one.
const DUMP: c_int = libc::NLM_F_DUMP;
const ADD: c_int = libc::NLM_F_CREATE | libc::NLM_F_EXCL;
const REPLACE: c_int = libc::NLM_F_CREATE | libc::NLM_F_REPLACE;

/// No link-local addresses (`linux/if_link.h`).
const IFLA_INET6_ADDR_GEN_MODE: u16 = 8;
const IN6_ADDR_GEN_MODE_NONE: u8 = 1;

/// `RTNH_F_DEAD` and `RTNH_F_LINKDOWN` of `rtmsg` (`linux/rtnetlink.h`).
const NO_CARRIER: u32 = 1 | 16;

/// Offset of `tx_dropped` in `rtnl_link_stats64`.
const TX_DROPPED: usize = 7 * size_of::<u64>();

/// The prefix of the loopback device's alias in a namespace of a run.
const CLAIM: &str = "ackclock ";

/// The required state of a host's device.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(super) struct DevicePlan {
    mtu: u16,
    addresses: Vec<(IpAddr, u8)>,
    /// Addresses of other hosts and of routers outside the device's prefixes, and prefixes behind
    /// those hosts, each once.
    routes: Vec<(IpAddr, u8)>,
}

impl DevicePlan {
    /// The device state that `node` needs to reach every host with a path to it.
    pub(super) fn new(spec: &LiveSpec, node: &NodeSpec) -> DevicePlan {
        let mut routes = Vec::new();
        for pipe in &spec.pipes {
            let [a, b] = pipe.between.map(|end| &spec.nodes[end]);
            let other = match node.name == a.name {
                true => b,
                false if node.name == b.name => a,
                false => continue,
            };
            routes.extend(other.addresses.iter().map(|&(address, _)| alone(address)));
            routes.extend_from_slice(&other.routes);
            // Messages of a router need a route to their source (`rp_filter`).
            if let Some(router) = &pipe.router {
                routes.extend([alone(router.address.into()), alone(router.address6.into())]);
            }
        }
        routes.sort_unstable();
        routes.dedup();
        routes.retain(|&(to, length)| {
            let of_a_kind = |(address, _): &&(IpAddr, u8)| address.is_ipv4() == to.is_ipv4();
            let mut own = node.addresses.iter().filter(of_a_kind).peekable();
            own.peek().is_some() && !own.any(|&(own, bits)| bits <= length && prefix::contains((own, bits), to))
        });
        DevicePlan { mtu: node.mtu, addresses: node.addresses.clone(), routes }
    }
}

/// The prefix that contains only `address`.
fn alone(address: IpAddr) -> (IpAddr, u8) {
    (address, if address.is_ipv4() { 32 } else { 128 })
}

/// Gives a new device its MTU, addresses and routes, sets it up, and returns its index.
pub(super) fn configure(name: &str, plan: &DevicePlan) -> io::Result<u32> {
    let index = nix::net::if_::if_nametoindex(name)?;
    let six = plan.addresses.iter().any(|(address, _)| address.is_ipv6());
    let mut kernel = NetlinkSocket::open()?;
    let mut sized = link(index, 0)
        .with(libc::IFLA_MTU, &u32::from(plan.mtu).to_ne_bytes())
        .with(libc::IFLA_TXQLEN, &TX_QUEUE_LEN.to_ne_bytes());
    if six {
        // Without a link-local address there are no router solicitations, only the scenario's
        // traffic.
        let none = attribute(IFLA_INET6_ADDR_GEN_MODE, &[IN6_ADDR_GEN_MODE_NONE]);
        sized = sized.with(libc::IFLA_AF_SPEC, &attribute(libc::AF_INET6 as u16, &none));
    }
    kernel.request(libc::RTM_SETLINK, 0, &sized)?;
    // Without these files (no IPv6) or write access to them (`/proc/sys` is read-only in many
    // containers) the defaults have to suffice, which are the same values. A setting that does
    // matter shows when an address is added.
    for (key, value) in [
        // Devices have the requested addresses only: nobody advertises routes here.
        ("ipv6/conf/{}/disable_ipv6", if six { "0" } else { "1" }),
        ("ipv6/conf/{}/accept_ra", "0"),
        ("ipv6/conf/{}/accept_dad", "0"),
        // Loose: the source of a router's message only has to be reachable by some route. The
        // larger of this and `all` applies.
        ("ipv4/conf/{}/rp_filter", "2"),
    ] {
        let _ = fs::write(format!("/proc/sys/net/{}", key.replace("{}", name)), value);
    }
    for &(address, length) in &plan.addresses {
        kernel.request(libc::RTM_NEWADDR, ADD, &own(index, address, length))?;
    }
    kernel.request(libc::RTM_SETLINK, 0, &link(index, IFF_UP))?;
    for &to in &plan.routes {
        match kernel.request(libc::RTM_NEWROUTE, ADD, &on_link(index, to)) {
            // Another device of the host has the same route; the kernel chooses.
            Err(error) if error.kind() == io::ErrorKind::AlreadyExists => {}
            other => drop(other?),
        }
    }
    let mut waits = 1000;
    while waits > 0 && plan.addresses.iter().any(|&(address, _)| !is_reached(address)) {
        waits -= 1;
        thread::sleep(Duration::from_millis(1));
    }
    Ok(index)
}

/// Returns `true` if an address of this namespace is reachable. The kernel adds the route of an
/// IPv6 address some time after the address (`addrconf_dad_work`), and drops packets that arrive
/// before.
fn is_reached(address: IpAddr) -> bool {
    let IpAddr::V6(address) = address else { return true };
    fs::read_to_string("/proc/thread-self/net/ipv6_route").map_or(true, |routes| has_local_route(&routes, address))
}

/// Returns `true` if a routing table in the format of `/proc/net/ipv6_route` has a local route
/// (`RTF_LOCAL`) for an address.
fn has_local_route(routes: &str, address: Ipv6Addr) -> bool {
    const RTF_LOCAL: u32 = 0x8000_0000;
    let whole = format!("{:032x} 80 ", u128::from(address));
    routes.lines().filter(|line| line.starts_with(&whole)).any(|line| {
        let flags = line.split_ascii_whitespace().nth(8).and_then(|flags| u32::from_str_radix(flags, 16).ok());
        flags.is_some_and(|flags| flags & RTF_LOCAL != 0)
    })
}

/// Packets that the kernel dropped because a device was not read in time.
pub(super) fn dropped(index: u32) -> io::Result<u64> {
    let link = interface(&mut NetlinkSocket::open()?, &link(index, 0))?;
    let count = link.get(libc::IFLA_STATS64).and_then(|stats| stats.get(TX_DROPPED..)?.first_chunk());
    count.map(|count| u64::from_ne_bytes(*count)).ok_or_else(|| io::Error::other("no statistics"))
}

/// Sets the loopback device up and marks its namespace as owned by the run `token`.
pub(super) fn claim(token: &str) -> io::Result<()> {
    let alias = format!("{CLAIM}{token}");
    let lo = named("lo", IFF_UP).with(libc::IFLA_IFALIAS, alias.as_bytes());
    NetlinkSocket::open()?.request(libc::RTM_SETLINK, 0, &lo).map(drop)
}

/// Sets the loopback device up.
pub(super) fn set_up_loopback() -> io::Result<()> {
    NetlinkSocket::open()?.request(libc::RTM_SETLINK, 0, &named("lo", IFF_UP)).map(drop)
}

/// The token of the run that owns the namespace.
pub(super) fn claimed_by() -> io::Result<Option<String>> {
    let lo = interface(&mut NetlinkSocket::open()?, &named("lo", 0))?;
    let alias = lo.get(libc::IFLA_IFALIAS).map(String::from_utf8_lossy).unwrap_or_default();
    Ok(alias.trim_end_matches('\0').strip_prefix(CLAIM).map(str::to_owned))
}

/// The state of an interface that moves from one namespace to another.
#[derive(Debug)]
pub(super) struct InterfaceState {
    was_up: bool,
    addresses: Vec<Address>,
    routes: Vec<Route>,
}

/// Moves an interface of this namespace into another one, and returns its state here.
pub(super) fn pick_up(name: &str, to: &File) -> io::Result<InterfaceState> {
    let mut kernel = NetlinkSocket::open()?;
    let interface = interface(&mut kernel, &named(name, 0)).map_err(|error| match error.raw_os_error() {
        Some(libc::ENODEV) => io::ErrorKind::NotFound.into(),
        _ => error,
    })?;
    let index = interface.index();
    let mut addresses = kernel.request(libc::RTM_GETADDR, DUMP, &Address::new([0; 8]))?;
    // The kernel recreates link-local addresses.
    addresses.retain(|address| address.index() == index && address.fixed[3] != libc::RT_SCOPE_LINK);
    let mut routes = Vec::new();
    for family in [libc::AF_INET, libc::AF_INET6] {
        let mut all = Route::new([0; 12]);
        all.fixed[0] = family as u8;
        routes.extend(kernel.request(libc::RTM_GETROUTE, DUMP, &all)?);
    }
    routes.retain(|route| {
        let leads_there = route.get(libc::RTA_OIF) == Some(&index.to_ne_bytes());
        let [table, protocol] = [route.fixed[4], route.fixed[5]];
        // Adding an address also adds its route.
        leads_there && table == libc::RT_TABLE_MAIN && protocol != libc::RTPROT_KERNEL
    });
    let moved = link(index, 0).with(libc::IFLA_NET_NS_FD, &to.as_raw_fd().to_ne_bytes());
    kernel.request(libc::RTM_SETLINK, 0, &moved)?;
    Ok(InterfaceState { was_up: interface.word(8) & IFF_UP != 0, addresses, routes })
}

/// Restores the state of an interface that has moved into this namespace.
pub(super) fn put_down(name: &str, carried: InterfaceState) -> io::Result<()> {
    let InterfaceState { was_up, addresses, mut routes } = carried;
    let mut kernel = NetlinkSocket::open()?;
    let index = interface(&mut kernel, &named(name, 0))?.index();
    for mut address in addresses {
        address.set(4, index);
        // The remaining lifetime is dropped: it would restart.
        address.attributes.retain(|(kind, _)| *kind != libc::IFA_CACHEINFO);
        kernel.request(libc::RTM_NEWADDR, ADD, &address)?;
    }
    if was_up {
        kernel.request(libc::RTM_SETLINK, 0, &link(index, IFF_UP))?;
    }
    // A route by way of a router requires the route to the router's network.
    routes.sort_by_key(|route| route.get(libc::RTA_GATEWAY).is_some());
    for mut route in routes {
        route.attributes.retain(|(kind, _)| ![libc::RTA_CACHEINFO, libc::RTA_OIF].contains(kind));
        // The kernel rejects routes with these flags.
        route.set(8, route.word(8) & !NO_CARRIER);
        kernel.request(libc::RTM_NEWROUTE, REPLACE, &route.with(libc::RTA_OIF, &index.to_ne_bytes()))?;
    }
    Ok(())
}

/// An interface by its name, with flags to set.
fn named(name: &str, flags: u32) -> Link {
    link(0, flags).with(libc::IFLA_IFNAME, name.as_bytes())
}

/// The kernel's description of an interface.
fn interface(kernel: &mut NetlinkSocket, link: &Link) -> io::Result<Link> {
    kernel.request(libc::RTM_GETLINK, 0, link)?.pop().ok_or_else(|| io::ErrorKind::NotFound.into())
}

/// An address of an interface.
fn own(index: u32, address: IpAddr, length: u8) -> Address {
    let mut own = Address::new([family(address), length, 0, 0, 0, 0, 0, 0]);
    own.set(4, index);
    own = own.with(libc::IFA_ADDRESS, &octets(address)).with(libc::IFA_LOCAL, &octets(address));
    match address {
        IpAddr::V4(four) if length < 31 => {
            let broadcast = four.to_bits() | u32::MAX >> length;
            own.with(libc::IFA_BROADCAST, &broadcast.to_be_bytes())
        }
        IpAddr::V4(_) => own,
        // No other host can have it, and duplicate address detection takes a second.
        IpAddr::V6(_) => own.with(libc::IFA_FLAGS, &libc::IFA_F_NODAD.to_ne_bytes()),
    }
}

/// A route to a prefix on the link of an interface.
fn on_link(index: u32, (to, length): (IpAddr, u8)) -> Route {
    let [table, protocol] = [libc::RT_TABLE_MAIN, libc::RTPROT_STATIC];
    let [scope, kind] = [libc::RT_SCOPE_LINK, libc::RTN_UNICAST];
    let route = Route::new([family(to), length, 0, 0, table, protocol, scope, kind, 0, 0, 0, 0]);
    route.with(libc::RTA_DST, &octets(to)).with(libc::RTA_OIF, &index.to_ne_bytes())
}

fn family(address: IpAddr) -> u8 {
    (if address.is_ipv4() { libc::AF_INET } else { libc::AF_INET6 }) as u8
}

fn octets(address: IpAddr) -> Vec<u8> {
    match address {
        IpAddr::V4(four) => four.octets().to_vec(),
        IpAddr::V6(six) => six.octets().to_vec(),
    }
}
