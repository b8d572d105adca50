//! `[hosts.NAME]`: hosts behind devices, hosts with stacks of their own, and hosts in this process,
//! with their addresses.

use std::collections::BTreeMap;
use std::net::{IpAddr, Ipv4Addr, Ipv6Addr};
use std::sync::Arc;

use ackclock_sim::spec::{Lack, NodeSpec, OwnStackConfig};

use crate::document::{Entry, Node, Value};
use crate::fields::{Context, Fields};
use crate::host::{HEADERS, MIN_MSS};
use crate::keys::Domain;
use crate::parameters;
use crate::quantity::{Bytes, Flag, Kind, OneOf, Problem, Text, is_name};
use crate::report::Diagnostic;

/// The most hosts of a run.
const MAX_HOSTS: usize = 1000;

/// The most addresses of a host.
const MAX_ADDRESSES: usize = 64;

/// The least MTU of a device: what every link takes (RFC 791 section 3.2), and Linux's bound.
pub(crate) const MIN_MTU: u64 = 68;

/// The least MTU of a host with an IPv6 address (RFC 8200 section 5).
const MIN_MTU_6: u64 = 1280;

/// The smallest MTU of a host in this process: its smallest MSS with headers.
const MIN_OWN_MTU: u64 = MIN_MSS + HEADERS;

/// The longest name of a device: Linux's IFNAMSIZ less the byte that ends it.
const MAX_DEVICE: usize = 15;

const EXPECTED_ADDRESS: &str = "an address with the length of its prefix, such as \"10.0.0.1/24\" or \"fd00::1/64\"";

/// Reads `[hosts]`; `None` if something in it is wrong, which was reported.
pub(crate) fn read_all<'a>(root: &mut Fields<'a>, cx: &'a Context<'a>) -> Option<Vec<NodeSpec>> {
    let Some(entry) = root.get(("hosts", "hosts by name: kernels behind devices, or endpoints in this process")) else {
        return Some(Vec::new());
    };
    let expected = "sections `[hosts.NAME]`, each with an `address`";
    let Some(table) = entry.node.table() else {
        root.reject("hosts", &entry.node, Problem::new("not a table", expected));
        return None;
    };
    if table.0.len() > MAX_HOSTS {
        let title = format!("{} hosts are too many", table.0.len());
        root.reject("hosts", &entry.node, Problem::new(title, format!("at most {MAX_HOSTS}")));
        return None;
    }
    let before = cx.report.len();
    let nodes: Vec<NodeSpec> = table.0.iter().filter_map(|entry| read(cx, entry)).collect();
    if cx.report.len() > before {
        return None;
    }
    unique(cx, &table.0, &nodes);
    (cx.report.len() == before).then_some(nodes)
}

fn read<'a>(cx: &'a Context<'a>, entry: &'a Entry) -> Option<NodeSpec> {
    let path = format!("hosts.{}", entry.key);
    if !is_name(&entry.key) {
        let error = Diagnostic::new("not a valid host name", &entry.key_place, "found this name");
        cx.report.push(error.note("expected a letter, then letters, digits, `-` and `_`"));
        return None;
    }
    let Some(table) = entry.node.table() else {
        let label = format!("found {}", entry.node.found());
        let error = Diagnostic::new(format!("{path}: not a table"), &entry.node.place, label);
        cx.report.push(error.note(format!("expected a section `[{path}]` with at least `address`")));
        return None;
    };
    let mut fields = Fields::new(cx, table, &path, &entry.key_place);
    let tun = fields.maybe(("tun", "TUN device of a kernel; without it the host is in this process"), DeviceName);
    let stack = stack(&mut fields);
    let addresses = addresses(&mut fields);
    let netns = fields.maybe(("netns", "network namespace of the device, created for the run"), Namespace);
    let least = if fields.get("tun").is_none() && stack.is_none() {
        MIN_OWN_MTU
    } else if addresses.iter().any(|(address, _)| address.is_ipv6()) {
        MIN_MTU_6
    } else {
        MIN_MTU
    };
    let mtu = fields.or(("mtu", "MTU of the device"), 1500, Bytes(least, u16::MAX.into())) as u16;
    let routes = routes(&mut fields, &addresses);
    let nat = fields.maybe(("nat", "masquerade forwarded packets behind the machine's address"), Flag).unwrap_or(false);
    let interface = fields
        .maybe(("interface", "interface of the machine, moved into the host's namespace for the run"), DeviceName);
    if let (Some(entry), true) = (fields.get("interface"), netns.is_none() || routes.is_empty()) {
        let missing = if netns.is_none() { "netns" } else { "routes" };
        let title = format!("{path}: `interface` without `{missing}`");
        let error = Diagnostic::new(title, &entry.key_place, "the interface would lead nowhere");
        cx.report.push(error.note("expected a `netns` of its own, and `routes`: what lies behind the interface"));
    }
    if let (Some(entry), true) = (fields.get("stack"), tun.is_some()) {
        let error =
            Diagnostic::new(format!("{path}: `stack` together with `tun`"), &entry.key_place, "two sources of packets");
        cx.report.push(error.note("expected one of them: a kernel behind a device, or a stack in this process"));
    } else if fields.get("tun").is_none() {
        own(&mut fields, &addresses, stack.is_some());
    }
    if nat && routes.is_empty() {
        let place = fields.get("nat").map_or_else(|| fields.place().clone(), |entry| entry.key_place.clone());
        let error = Diagnostic::new(format!("{path}: `nat` without `routes`"), &place, "nothing is forwarded");
        cx.report.push(error.note("expected `routes`, the prefixes of what lies behind it"));
    }
    fields.finish();
    Some(NodeSpec { name: entry.key.clone(), tun, stack, addresses, netns, mtu, routes, nat, interface })
}

/// The condition of stacks of QUIC.
const QUIC: &str = "a build with `--features quic` has quinn's and noq's";

/// The network stack of a host without a device.
fn stack(fields: &mut Fields<'_>) -> Option<OwnStackConfig> {
    const STACK: (&str, &str) = ("stack", "custom network stack, in place of a device");
    let all = fields.own().stacks();
    let names: Vec<&'static str> = all.iter().map(|own| own.name()).collect();
    let Some(first) = names.first() else {
        fields.declare(STACK, || Domain::Text("quinn-cubic"));
        if let Some(entry) = fields.get(STACK) {
            let expected = format!(
                "no `stack`: this program has none; {QUIC}, one with `--features kernel` a Linux kernel, on Linux, and a \
                 program of one's own adds others (`main_with`)"
            );
            fields.reject("stack", &entry.node, Problem::new("not a known stack", expected));
        }
        return None;
    };
    let kinds = OneOf { what: "stack", names: &names };
    fields.declare(STACK, || kinds.kinds());
    let entry = fields.get(STACK)?;
    let named = entry.node.table().map_or(entry.node.str(), |table| table.get("kind")?.node.str());
    let is_quic = |name: &&str| name.starts_with("quinn-") || name.starts_with("noq-");
    if named.filter(is_quic).is_some_and(|name| !names.contains(&name)) {
        fields.declare(STACK, || Domain::Text("quinn-cubic"));
        fields.reject("stack", &entry.node, Problem::new("not a stack of this build", format!("another one; {QUIC}")));
        return None;
    }
    Some(fields.choose(STACK, first, &kinds, |kind, fields| {
        let own = all.iter().find(|own| own.name() == kind).unwrap_or_else(|| unreachable!("`{kind}` is listed"));
        let mut config = OwnStackConfig::new(Arc::clone(own));
        settings(fields, &mut config);
        config
    }))
}

/// Reads the settings of a stack.
pub(crate) fn settings(fields: &mut Fields<'_>, config: &mut OwnStackConfig) {
    parameters::read(fields, config.name(), config);
    for (of, text) in config.texts_mut() {
        *text = fields.or(of.name, text.clone(), TextOf(of.problem));
    }
    for (key, expected) in config.idle() {
        if let Some(entry) = fields.get(key) {
            fields.reject(key, &entry.node, Problem::new("without effect here", expected));
        }
    }
    if !fields.is_silent()
        && !fields.own().is_for_results()
        && let Some(Lack { key, what, expected }) = config.lack()
    {
        match fields.peek(key) {
            Some(node) => fields.reject(key, node, Problem::new(what, expected)),
            None => {
                let title = format!("{}: {what}", fields.shown());
                let error = Diagnostic::new(title, fields.place(), format!("has no `{key}`"));
                fields.push(error.note(format!("expected {expected}")));
            }
        }
    }
}

/// A text of a stack, which says what it expects in place of one that is not valid.
struct TextOf(fn(&str) -> Option<String>);

impl Kind for TextOf {
    type Held = String;

    fn read(&self, node: &Node) -> Result<String, Problem> {
        let text = Text.read(node)?;
        match (self.0)(&text) {
            Some(expected) => Err(Problem::new("not valid here", expected)),
            None => Ok(text),
        }
    }

    fn show(&self, held: &String) -> Value {
        Text.show(held)
    }

    fn domain(&self) -> Domain {
        Text.domain()
    }
}

/// Checks a host without a device, which is in this process.
fn own(fields: &mut Fields<'_>, addresses: &[(IpAddr, u8)], has_stack: bool) {
    if let Some(entry) = fields.get("netns") {
        let title = format!("{}: `netns` without `tun`", fields.shown());
        let error = Diagnostic::new(title, &entry.key_place, "a host without a device is in no namespace");
        fields.push(error.note("expected `tun`, the device by which the namespace is reached"));
    }
    for key in ["routes", "nat", "interface"] {
        if let Some(entry) = fields.get(key) {
            let title = format!("{}: `{key}` without `tun`", fields.shown());
            let error = Diagnostic::new(title, &entry.key_place, "a host in this process forwards nothing");
            fields.push(error.note("expected `tun`: only a kernel forwards"));
        }
    }
    if has_stack {
        return;
    }
    if let (Some(entry), false) = (fields.get("address"), matches!(addresses, [] | [(IpAddr::V4(_), _)])) {
        let expected = "one IPv4 address: a host without `tun` is in this process, where nothing else is spoken";
        fields.reject("address", &entry.node, Problem::new("not the address of a host in this process", expected));
    }
}

/// One address or a list of them; empty after an error.
fn addresses(fields: &mut Fields<'_>) -> Vec<(IpAddr, u8)> {
    let Some(entry) = fields.get(("address", "address with prefix length, or a list, IPv4 and IPv6")) else {
        fields.missing("address", EXPECTED_ADDRESS);
        return Vec::new();
    };
    let items = match &entry.node.value {
        Value::Array(items) if (1..=MAX_ADDRESSES).contains(&items.len()) => items.as_slice(),
        Value::Array(items) => {
            let title = if items.is_empty() { "must not be empty" } else { "too many addresses" };
            let expected = format!("{EXPECTED_ADDRESS}, or a list of at most {MAX_ADDRESSES}");
            fields.reject("address", &entry.node, Problem::new(title, expected));
            return Vec::new();
        }
        _ => std::slice::from_ref(&entry.node),
    };
    let read = |item| HostAddress.read(item).map_err(|problem| fields.reject("address", item, problem)).ok();
    items.iter().map(read).collect::<Option<_>>().unwrap_or_default()
}

/// The prefixes of what is behind a host; empty after an error.
fn routes(fields: &mut Fields<'_>, addresses: &[(IpAddr, u8)]) -> Vec<(IpAddr, u8)> {
    let Some(entry) = fields.get(("routes", "prefixes that the host's kernel forwards to")) else {
        return Vec::new();
    };
    let expected = format!("a list of at most {MAX_ADDRESSES} prefixes, such as [\"0.0.0.0/0\"]");
    let items = match entry.node.array() {
        Some(items) if (1..=MAX_ADDRESSES).contains(&items.len()) => items,
        _ => {
            fields.reject("routes", &entry.node, Problem::new("not a list of prefixes", expected));
            return Vec::new();
        }
    };
    let mut routes: Vec<(IpAddr, u8)> = Vec::new();
    for item in items {
        let problem = match Prefix.read(item) {
            Err(problem) => problem,
            Ok(prefix) if routes.contains(&prefix) => Problem::new("found a second time", "each prefix once"),
            Ok((to, _)) if !addresses.iter().any(|(own, _)| own.is_ipv4() == to.is_ipv4()) => {
                let kind = if to.is_ipv4() { "IPv4" } else { "IPv6" };
                Problem::new(format!("the host has no {kind} address"), "prefixes of the kinds of its addresses")
            }
            Ok(prefix) => {
                routes.push(prefix);
                continue;
            }
        };
        fields.reject("routes", item, problem);
    }
    routes
}

/// Reports addresses and devices that two hosts have.
fn unique(cx: &Context<'_>, entries: &[Entry], nodes: &[NodeSpec]) {
    let (mut addresses, mut devices, mut interfaces) = (BTreeMap::new(), BTreeMap::new(), BTreeMap::new());
    for (entry, node) in entries.iter().zip(nodes) {
        let place = |key| {
            let found = entry.node.table().and_then(|table| table.get(key));
            found.map_or(&entry.key_place, |entry| &entry.node.place)
        };
        for (address, _) in &node.addresses {
            if let Some(other) = addresses.insert(*address, &node.name) {
                let title = format!("hosts.{}.address: {address} is an address of `{other}` too", node.name);
                let error = Diagnostic::new(title, place("address"), "found a second time");
                cx.report.push(error.note("expected addresses that no other host has"));
            }
        }
        if let Some(tun) = &node.tun
            && let Some(other) = devices.insert((&node.netns, tun), &node.name)
        {
            let title = format!("hosts.{}.tun: `{tun}` is the device of `{other}` too", node.name);
            let error = Diagnostic::new(title, place("tun"), "found a second time");
            cx.report.push(error.note("expected a device of its own for each host of a namespace"));
        }
        if let Some(interface) = &node.interface
            && let Some(other) = interfaces.insert(interface, &node.name)
        {
            let title = format!("hosts.{}.interface: `{interface}` is that of `{other}` too", node.name);
            let error = Diagnostic::new(title, place("interface"), "found a second time");
            cx.report.push(error.note("expected an interface of its own for each host"));
        }
    }
}

/// The address of a host with the length of its prefix.
struct HostAddress;

impl Kind for HostAddress {
    type Held = (IpAddr, u8);

    fn read(&self, node: &Node) -> Result<(IpAddr, u8), Problem> {
        let Some(text) = node.str() else { return Err(Problem::new("not the right type", EXPECTED_ADDRESS)) };
        let (address, length) = match text.split_once('/') {
            Some((address, length)) => (address, Some(length)),
            None => (text, None),
        };
        let Ok(address) = address.parse::<IpAddr>() else {
            return Err(Problem::new("not an IP address", EXPECTED_ADDRESS));
        };
        if !is_of_host(address) {
            return Err(Problem::new("not a valid host address", EXPECTED_ADDRESS));
        }
        let Some(length) = length else {
            return Err(Problem::new("the prefix length is missing", EXPECTED_ADDRESS));
        };
        Ok((address, prefix_length(address, length)?))
    }

    fn show(&self, (address, length): &(IpAddr, u8)) -> Value {
        Value::String(format!("{address}/{length}"))
    }

    fn domain(&self) -> Domain {
        Domain::Text("10.0.0.1/24")
    }
}

/// A prefix of addresses.
struct Prefix;

impl Kind for Prefix {
    type Held = (IpAddr, u8);

    fn read(&self, node: &Node) -> Result<(IpAddr, u8), Problem> {
        let expected = "a prefix such as \"0.0.0.0/0\" or \"192.168.7.0/24\"";
        let problem = || Problem::new("not a prefix", expected);
        let (address, length) = node.str().and_then(|text| text.split_once('/')).ok_or_else(problem)?;
        let address: IpAddr = address.parse().map_err(|_| problem())?;
        let length = prefix_length(address, length)?;
        let bits = match address {
            IpAddr::V4(address) => u128::from(u32::from(address)) << 96,
            IpAddr::V6(address) => u128::from(address),
        };
        if bits.checked_shl(length.into()).unwrap_or(0) != 0 {
            return Err(Problem::new("has bits beyond the prefix", expected));
        }
        Ok((address, length))
    }

    fn show(&self, held: &(IpAddr, u8)) -> Value {
        HostAddress.show(held)
    }

    fn domain(&self) -> Domain {
        Domain::Text("0.0.0.0/0")
    }
}

/// The length of a prefix of such an address.
fn prefix_length(address: IpAddr, length: &str) -> Result<u8, Problem> {
    let longest = if address.is_ipv4() { 32 } else { 128 };
    // The standard library takes a sign.
    let digits = !length.is_empty() && length.bytes().all(|byte| byte.is_ascii_digit());
    match length.parse::<u8>() {
        Ok(length) if digits && length <= longest => Ok(length),
        _ if digits => {
            Err(Problem::new("the prefix is longer than the address", format!("a length from 0 to {longest}")))
        }
        _ => Err(Problem::new("not a prefix length", format!("a length from 0 to {longest}"))),
    }
}

/// Returns `true` if an address can stand as the source of a packet on a device.
fn is_of_host(address: IpAddr) -> bool {
    let broadcast = address == IpAddr::V4(Ipv4Addr::BROADCAST);
    let mapped = matches!(address, IpAddr::V6(address) if address.to_ipv4_mapped().is_some());
    !(address.is_unspecified() || address.is_loopback() || address.is_multicast() || broadcast || mapped)
}

/// An IPv4 address of a router.
pub(crate) struct RouterAddress;

impl Kind for RouterAddress {
    type Held = Ipv4Addr;

    fn read(&self, node: &Node) -> Result<Ipv4Addr, Problem> {
        let address = node.str().and_then(|text| text.parse().ok()).filter(|&address| is_of_host(IpAddr::V4(address)));
        address.ok_or_else(|| Problem::new("not an IPv4 address of a router", "an address such as \"192.0.0.8\""))
    }

    fn show(&self, held: &Ipv4Addr) -> Value {
        Value::String(held.to_string())
    }

    fn domain(&self) -> Domain {
        Domain::Text("192.0.0.8")
    }
}

/// An IPv6 address of a router.
pub(crate) struct RouterAddress6;

impl Kind for RouterAddress6 {
    type Held = Ipv6Addr;

    fn read(&self, node: &Node) -> Result<Ipv6Addr, Problem> {
        let address = node.str().and_then(|text| text.parse().ok()).filter(|&address| is_of_host(IpAddr::V6(address)));
        address.ok_or_else(|| Problem::new("not an IPv6 address of a router", "an address such as \"fd00::8\""))
    }

    fn show(&self, held: &Ipv6Addr) -> Value {
        Value::String(held.to_string())
    }

    fn domain(&self) -> Domain {
        Domain::Text("fd00::8")
    }
}

/// The name of a network device, as Linux takes it (`dev_valid_name`); `%` would make it number
/// devices.
struct DeviceName;

impl Kind for DeviceName {
    type Held = String;

    fn read(&self, node: &Node) -> Result<String, Problem> {
        let name = Text.read(node)?;
        let taken = |byte: u8| byte.is_ascii_graphic() && !b"/:%".contains(&byte);
        if name.is_empty() || name.len() > MAX_DEVICE || name == "." || name == ".." || !name.bytes().all(taken) {
            let expected =
                format!("at most {MAX_DEVICE} letters, digits and signs without `/`, `:` and `%`, such as \"ack0\"");
            return Err(Problem::new("not a valid device name", expected));
        }
        Ok(name)
    }

    fn show(&self, held: &String) -> Value {
        Text.show(held)
    }

    fn domain(&self) -> Domain {
        Domain::Text("ack0")
    }
}

/// The name of a network namespace: a file name (ip-netns(8)).
struct Namespace;

impl Kind for Namespace {
    type Held = String;

    fn read(&self, node: &Node) -> Result<String, Problem> {
        let name = Text.read(node)?;
        let taken = |byte: u8| byte.is_ascii_graphic() && byte != b'/';
        if name.is_empty() || name.len() > 255 || name == "." || name == ".." || !name.bytes().all(taken) {
            let expected = "at most 255 letters, digits and signs without `/`, such as \"left\"";
            return Err(Problem::new("not a valid network namespace name", expected));
        }
        Ok(name)
    }

    fn show(&self, held: &String) -> Value {
        Text.show(held)
    }

    fn domain(&self) -> Domain {
        Domain::Text("left")
    }
}
