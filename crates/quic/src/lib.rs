#![doc = include_str!("../README.md")]

mod controller;
mod messages;
mod plaintext;
mod quinn;
mod recovery;

use std::net::SocketAddr;
use std::sync::Arc;

use ackclock_stack::{OwnStack, StackHost, UdpHost};
use ackclock_units::{Random, Time};
use quinn_proto::congestion::{BbrConfig, ControllerFactory, CubicConfig, NewRenoConfig};

pub use plaintext::PlaintextCrypto;

use controller::Law;
use messages::{Cadence, HEAD};
use quinn::{BulkTransfer, EndpointSettings, Quinn};

/// Port of servers, and the first port of clients.
const PORT: u16 = 4433;
/// Bytes of IP and UDP headers.
const HEADERS: [u16; 2] = [28, 48];

/// The stacks of this crate: `quinn-newreno`, `quinn-cubic` and `quinn-bbr` send,
/// `quinn-own-newreno` and others send with ackclock's controllers, `quinn-server` receives.
pub fn stacks() -> Vec<OwnStack> {
    let newreno = |_| Arc::new(NewRenoConfig::default()) as Arc<dyn ControllerFactory + Send + Sync>;
    let cubic = |_| Arc::new(CubicConfig::default()) as Arc<dyn ControllerFactory + Send + Sync>;
    let bbr = |_| Arc::new(BbrConfig::default()) as Arc<dyn ControllerFactory + Send + Sync>;
    let quinns = [client("quinn-newreno", newreno), client("quinn-cubic", cubic), client("quinn-bbr", bbr)];
    let ours = controller::NAMES.map(|name| {
        client(&format!("quinn-own-{name}"), move |random| match Law::by_name(name, random) {
            Some(law) => Arc::new(law),
            None => unreachable!("`{name}` is a controller"),
        })
    });
    quinns.into_iter().chain(ours).chain([server()]).collect()
}

/// A client that sends to the first of its neighbours, with this controller.
fn client(
    name: &str,
    controller: impl Fn(Random) -> Arc<dyn ControllerFactory + Send + Sync> + Send + Sync + 'static,
) -> OwnStack {
    let build = move |host: &StackHost, values: &[f64], mut random: Random| -> Box<dyn ackclock_stack::Stack> {
        let [bytes, start, burst, rate, size, datagrams] = [0, 1, 2, 3, 4, 5].map(|index| values[index]);
        let to = host.neighbours.first().and_then(|peer| peer.addresses.first()).copied();
        let bulk = BulkTransfer {
            to: SocketAddr::new(to.unwrap_or(host.addresses[0]), PORT),
            start: Time::from_nanos((start * 1e9) as u64),
            bytes: (bytes > 0.0).then_some(bytes as u64),
            cadence: (rate > 0.0).then_some(Cadence { rate, size: size as usize, datagrams: datagrams > 0.0 }),
        };
        let settings = EndpointSettings {
            controller: Some(controller(Random::for_component(random.bits(), 0, "controller"))),
            burst: burst as usize,
            ..settings(host, &values[6..])
        };
        Box::new(UdpHost::new(local(host), Quinn::new(settings, Some(bulk), random)))
    };
    let own = OwnStack::new(name, build).parameter("bytes", 0.0, 0.0..=1e15).parameter("start_s", 0.0, 0.0..=1e6);
    let own = own.parameter("burst_packets", 1.0, 1.0..=64.0).parameter("rate_bps", 0.0, 0.0..=1e11);
    let own = own.parameter("message_bytes", 1000.0, HEAD as f64..=65_000.0).parameter("datagrams", 0.0, 0.0..=1.0);
    let own = own.only_above_zero(&["message_bytes", "datagrams"], "rate_bps");
    common(own).only_at_zero(&["stream_window"], "datagrams").observable()
}

/// A server that reads everything.
fn server() -> OwnStack {
    common(OwnStack::new("quinn-server", |host, values, random| {
        Box::new(UdpHost::new(local(host), Quinn::new(settings(host, values), None, random)))
    }))
}

/// Parameters of both ends: the window of a stream in bytes, quinn's default of 12.5 MB/s and 100
/// ms; and whether the path's MTU is discovered, as by default, or taken from the host's.
fn common(own: OwnStack) -> OwnStack {
    own.parameter("stream_window", 1_250_000.0, 1200.0..=1e12).parameter("mtu_discovery", 1.0, 0.0..=1.0)
}

fn settings(host: &StackHost, values: &[f64]) -> EndpointSettings {
    let headers = HEADERS[usize::from(host.addresses[0].is_ipv6())];
    EndpointSettings {
        controller: None,
        payload: host.mtu.saturating_sub(headers).max(1200),
        discovers_mtu: values[1] >= 0.5,
        window: values[0] as u64,
        burst: 1,
    }
}

fn local(host: &StackHost) -> SocketAddr {
    SocketAddr::new(host.addresses[0], PORT)
}
