//! Requests to the kernel about devices. Everything acts in the namespace of the calling thread.

use std::fs::{self, File};
use std::io;
use std::net::{IpAddr, Ipv4Addr, Ipv6Addr};
use std::os::fd::AsRawFd;
use std::thread;
use std::time::Duration;

use ackclock_sim::spec::{LiveSpec, NodeSpec};
use futures_util::TryStreamExt;
use rtnetlink::packet_route::address::{AddressAttribute, AddressFlags, AddressMessage, AddressScope};
use rtnetlink::packet_route::link::{AfSpecInet6, AfSpecUnspec, In6AddrGenMode, LinkAttribute, LinkFlags, LinkMessage};
use rtnetlink::packet_route::route::{RouteAttribute, RouteHeader, RouteMessage, RouteProtocol, RouteScope};
use rtnetlink::{Error, Handle, LinkUnspec, RouteMessageBuilder};

use crate::prefix;

/// How many packets a device holds until they are read. A kernel's TCP does not see what is in it
/// (the device takes packets off the socket's account), so that a whole window may come at once: 1
/// Gbit/s for 100 ms is 8333 packets of 1500 bytes.
const TX_QUEUE_LEN: u32 = 16_384;

/// What the kernel says of an interface that is not there.
const ENODEV: i32 = nix::errno::Errno::ENODEV as i32;

/// The alias of the loopback device begins with this where a namespace is a run's.
const CLAIM: &str = "ackclock ";

/// The required state of a host's device.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(super) struct Plan {
    mtu: u16,
    addresses: Vec<(IpAddr, u8)>,
    /// Addresses of other hosts and of routers that are in no prefix of the device, and prefixes
    /// behind those hosts, each once.
    routes: Vec<(IpAddr, u8)>,
}

impl Plan {
    /// What `node` needs to reach every host that a path leads to.
    pub(super) fn new(spec: &LiveSpec, node: &NodeSpec) -> Plan {
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
            // What a router says has to come from somewhere (`rp_filter`).
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
        Plan { mtu: node.mtu, addresses: node.addresses.clone(), routes }
    }
}

/// The prefix of one address.
fn alone(address: IpAddr) -> (IpAddr, u8) {
    (address, if address.is_ipv4() { 32 } else { 128 })
}

/// Gives a new device its MTU, addresses and routes and sets it up; its number.
pub(super) fn configure(name: &str, plan: &Plan) -> io::Result<u32> {
    let index = nix::net::if_::if_nametoindex(name)?;
    let six = plan.addresses.iter().any(|(address, _)| address.is_ipv6());
    with_kernel(async |kernel| {
        let device = || LinkUnspec::new_with_index(index);
        let sized = device().mtu(u32::from(plan.mtu)).txqueuelen(TX_QUEUE_LEN).build();
        kernel.link().set(sized).execute().await?;
        if six {
            // Without a link-local address there are no router solicitations, only the scenario's
            // traffic.
            let none = AfSpecInet6::AddrGenMode(In6AddrGenMode::None);
            let quiet = LinkAttribute::AfSpecUnspec(vec![AfSpecUnspec::Inet6(vec![none])]);
            kernel.link().set(device().append_extra_attribute(quiet).build()).execute().await?;
        }
        Ok(())
    })?;
    // Without the files (no IPv6) or the right to write them (`/proc/sys` is read-only in many
    // containers) the defaults have to do, which are these; only an address will say what does not.
    for (key, value) in [
        // Devices have addresses of the one that the host asks for or none: nobody advertises
        // routes here.
        ("ipv6/conf/{}/disable_ipv6", if six { "0" } else { "1" }),
        ("ipv6/conf/{}/accept_ra", "0"),
        ("ipv6/conf/{}/accept_dad", "0"),
        // Loose: what a router between hosts says comes from an address that only has to be known.
        // The larger of this and `all` counts.
        ("ipv4/conf/{}/rp_filter", "2"),
    ] {
        let _ = fs::write(format!("/proc/sys/net/{}", key.replace("{}", name)), value);
    }
    with_kernel(async |kernel| {
        for &(address, length) in &plan.addresses {
            let mut request = kernel.address().add(index, address, length);
            if address.is_ipv6() {
                // Nobody else can have it; looking for one takes a second.
                request.message_mut().attributes.push(AddressAttribute::Flags(AddressFlags::Nodad));
            }
            request.execute().await?;
        }
        let up = LinkUnspec::new_with_index(index).up().build();
        kernel.link().set(up).execute().await?;
        for &(to, length) in &plan.routes {
            let route = RouteMessageBuilder::<IpAddr>::new().output_interface(index).scope(RouteScope::Link);
            let route = route.destination_prefix(to, length).map_err(|error| io::Error::other(format!("{error:?}")))?;
            match kernel.route().add(route.build()).execute().await.map_err(Failure::from) {
                // Another device of the host leads there, too; which one is taken is the kernel's
                // affair.
                Err(Failure(error)) if error.kind() == io::ErrorKind::AlreadyExists => {}
                other => other?,
            }
        }
        Ok(())
    })?;
    let mut waits = 1000;
    while waits > 0 && plan.addresses.iter().any(|&(address, _)| !is_reached(address)) {
        waits -= 1;
        thread::sleep(Duration::from_millis(1));
    }
    Ok(index)
}

/// Whether packets to an address of this namespace get there. The kernel adds the route of an IPv6
/// address some time after the address (`addrconf_dad_work`); what comes before is dropped.
fn is_reached(address: IpAddr) -> bool {
    let IpAddr::V6(address) = address else { return true };
    fs::read_to_string("/proc/thread-self/net/ipv6_route").map_or(true, |routes| has_local_route(&routes, address))
}

/// Whether a table of routes, as in `/proc/net/ipv6_route`, has one that ends here (`RTF_LOCAL`)
/// for an address.
fn has_local_route(routes: &str, address: Ipv6Addr) -> bool {
    const RTF_LOCAL: u32 = 0x8000_0000;
    let whole = format!("{:032x} 80 ", u128::from(address));
    routes.lines().filter(|line| line.starts_with(&whole)).any(|line| {
        let flags = line.split_ascii_whitespace().nth(8).and_then(|flags| u32::from_str_radix(flags, 16).ok());
        flags.is_some_and(|flags| flags & RTF_LOCAL != 0)
    })
}

/// Packets that the kernel could not hand over to the reader of a device, because it was not read
/// in time.
pub(super) fn dropped(index: u32) -> io::Result<u64> {
    with_kernel(async |kernel| {
        let link = link(kernel.link().get().match_index(index).execute()).await?;
        let stats = link.attributes.into_iter().find_map(|attribute| match attribute {
            LinkAttribute::Stats64(stats) => Some(stats.tx_dropped),
            _ => None,
        });
        stats.ok_or_else(|| Failure(io::Error::other("no statistics")))
    })
}

/// Sets the loopback device up and writes on it whose namespace it is in.
pub(super) fn claim(token: &str) -> io::Result<()> {
    with_kernel(async |kernel| {
        let lo = LinkUnspec::new_with_name("lo").alias(format!("{CLAIM}{token}")).up().build();
        Ok(kernel.link().set(lo).execute().await?)
    })
}

/// What goes with an interface that moves from one namespace to another.
#[derive(Debug)]
pub(super) struct Carried {
    was_up: bool,
    addresses: Vec<AddressMessage>,
    routes: Vec<RouteMessage>,
}

/// Moves an interface of this namespace into another one, and returns what it had here.
pub(super) fn pick_up(name: &str, to: &File) -> io::Result<Carried> {
    with_kernel(async |kernel| {
        let interface = kernel.link().get().match_name(name.to_owned()).execute();
        let interface = link(interface).await.map_err(|Failure(error)| match error.raw_os_error() {
            Some(ENODEV) => Failure(io::ErrorKind::NotFound.into()),
            _ => Failure(error),
        })?;
        let index = interface.header.index;
        let addresses = kernel.address().get().set_link_index_filter(index).execute();
        let addresses: Vec<AddressMessage> = addresses.try_collect().await?;
        let mut routes: Vec<RouteMessage> = Vec::new();
        for all in [RouteMessageBuilder::<Ipv4Addr>::new().build(), RouteMessageBuilder::<Ipv6Addr>::new().build()] {
            routes.extend(kernel.route().get(all).execute().try_collect::<Vec<_>>().await?);
        }
        routes.retain(|route| {
            let leads_there = route.attributes.contains(&RouteAttribute::Oif(index));
            // Those of its addresses come with them.
            leads_there
                && route.header.table == RouteHeader::RT_TABLE_MAIN
                && route.header.protocol != RouteProtocol::Kernel
        });
        let moved = LinkUnspec::new_with_index(index).setns_by_fd(to.as_raw_fd()).build();
        kernel.link().set(moved).execute().await?;
        let was_up = interface.header.flags.contains(LinkFlags::Up);
        // The kernel makes link-local ones anew.
        let lasts = |address: &AddressMessage| address.header.scope != AddressScope::Link;
        Ok(Carried { was_up, addresses: addresses.into_iter().filter(lasts).collect(), routes })
    })
}

/// Gives an interface that has come into this namespace what it had in the other one.
pub(super) fn put_down(name: &str, carried: Carried) -> io::Result<()> {
    let Carried { was_up, addresses, mut routes } = carried;
    with_kernel(async |kernel| {
        let index = link(kernel.link().get().match_name(name.to_owned()).execute()).await?.header.index;
        for mut address in addresses {
            address.header.index = index;
            let held = address.attributes.iter().find_map(|attribute| match attribute {
                AddressAttribute::Local(held) => Some(*held),
                _ => None,
            });
            let held = held.or_else(|| {
                address.attributes.iter().find_map(|attribute| match attribute {
                    AddressAttribute::Address(held) => Some(*held),
                    _ => None,
                })
            });
            let Some(held) = held else { continue };
            let mut request = kernel.address().add(index, held, address.header.prefix_len);
            // How long it is valid is counted anew, and is not known to be what somebody wants.
            address
                .attributes
                .retain(|attribute| !matches!(attribute, AddressAttribute::CacheInfo(_) | AddressAttribute::Other(_)));
            *request.message_mut() = address;
            request.execute().await?;
        }
        if was_up {
            kernel.link().set(LinkUnspec::new_with_index(index).up().build()).execute().await?;
        }
        // To a network before those by way of a router in it.
        routes.sort_by_key(|route| route.attributes.iter().any(|it| matches!(it, RouteAttribute::Gateway(_))));
        for mut route in routes {
            route.attributes.retain(|attribute| !matches!(attribute, RouteAttribute::CacheInfo(_)));
            for attribute in &mut route.attributes {
                if let RouteAttribute::Oif(out) = attribute {
                    *out = index;
                }
            }
            kernel.route().add(route).replace().execute().await?;
        }
        Ok(())
    })
}

/// Sets the loopback device up.
pub(super) fn set_up_loopback() -> io::Result<()> {
    with_kernel(async |kernel| Ok(kernel.link().set(LinkUnspec::new_with_name("lo").up().build()).execute().await?))
}

/// Who has claimed the namespace.
pub(super) fn claimed_by() -> io::Result<Option<String>> {
    with_kernel(async |kernel| {
        let lo = link(kernel.link().get().match_name("lo").execute()).await?;
        Ok(lo.attributes.into_iter().find_map(|attribute| match attribute {
            LinkAttribute::IfAlias(alias) => alias.strip_prefix(CLAIM).map(str::to_owned),
            _ => None,
        }))
    })
}

async fn link(links: impl futures_util::Stream<Item = Result<LinkMessage, Error>>) -> Result<LinkMessage, Failure> {
    std::pin::pin!(links).try_next().await?.ok_or_else(|| Failure(io::ErrorKind::NotFound.into()))
}

/// Talks to the kernel, on a socket in the namespace of this thread.
fn with_kernel<T>(talk: impl AsyncFnOnce(Handle) -> Result<T, Failure>) -> io::Result<T> {
    let runtime = tokio::runtime::Builder::new_current_thread().enable_io().build()?;
    runtime.block_on(async {
        let (connection, kernel, _) = rtnetlink::new_connection()?;
        tokio::spawn(connection);
        talk(kernel).await.map_err(|Failure(error)| error)
    })
}

/// The kernel's reply.
struct Failure(io::Error);

impl From<Error> for Failure {
    fn from(error: Error) -> Failure {
        Failure(match error {
            Error::NetlinkError(message) => message.to_io(),
            other => io::Error::other(other.to_string()),
        })
    }
}

impl From<io::Error> for Failure {
    fn from(error: io::Error) -> Failure {
        Failure(error)
    }
}
