#![doc = include_str!("../README.md")]
#![expect(clippy::duplicate_mod, reason = "two implementations with one interface: one file for both")]

mod clock;
mod controller;
mod messages;
mod noq;
mod quinn;
mod rates;
mod recovery;
mod transfer;
mod wire;

use std::net::SocketAddr;
use std::sync::Arc;

use ackclock_stack::{OwnStack, Stack, StackHost, UdpHost};
use ackclock_units::{Random, Time};

pub use noq::PlaintextCrypto as NoqPlaintextCrypto;
pub use quinn::PlaintextCrypto;

use controller::Law;
use messages::{Cadence, HEAD};
use transfer::{BulkTransfer, EndpointSettings, Migration};

/// Port of servers, and the first port of clients.
const PORT: u16 = 4433;

/// Bytes of IP and UDP headers.
const HEADERS: [u16; 2] = [28, 48];

/// The stacks of this crate: `quinn-newreno`, `quinn-cubic`, `quinn-bbr`, `noq-newreno`, `noq-cubic`
/// and `noq-bbr3` send, `quinn-own-newreno`, `noq-own-newreno` and others send with ackclock's
/// controllers, `quinn-server` and `noq-server` receive.
pub fn stacks() -> Vec<OwnStack> {
    let quinns = quinn::CONTROLLERS.map(|(name, make)| quinn_client(name, move |_| (make(), None)));
    let noqs = noq::CONTROLLERS.map(|(name, make)| {
        let client = noq_client(name, move |_| (make(), None));
        if name == noq::BBR3 {
            client.unseeded("noq draws the times of BBRv3's probes from the machine")
        } else {
            client
        }
    });
    let ours = controller::NAMES.map(|name| {
        quinn_client(&format!("quinn-own-{name}"), move |random| {
            let law = Law::of(name, random);
            (Arc::new(law.clone()), Some(law))
        })
    });
    let ours_by_noq = controller::NAMES.map(|name| {
        noq_client(&format!("noq-own-{name}"), move |random| {
            let law = Law::of(name, random);
            (Arc::new(law.clone()), Some(law))
        })
    });
    let servers = [
        server("quinn-server", |host, settings, random| {
            Box::new(UdpHost::new(local(host), quinn::QuicHost::new(settings, None, None, random)))
        }),
        server("noq-server", |host, settings, random| {
            Box::new(UdpHost::new(local(host), noq::QuicHost::new(settings, None, None, random)))
        }),
    ];
    quinns.into_iter().chain(ours).chain(noqs).chain(ours_by_noq).chain(servers).collect()
}

/// A client of quinn with the controller that `make` makes, ackclock's or another.
fn quinn_client(
    name: &str,
    make: impl Fn(Random) -> (quinn::Factory, Option<Law>) + Send + Sync + 'static,
) -> OwnStack {
    client(name, move |host, settings, bulk, mut random| {
        let (controller, law) = make(Random::for_component(random.bits(), 0, "controller"));
        let settings = settings.with(law.as_ref());
        Box::new(UdpHost::new(local(host), quinn::QuicHost::new(settings, Some(controller), Some(bulk), random)))
    })
    .parameter("migrate_resets", 0.0, 0.0..=1.0)
    .only_above_zero(&["migrate_resets"], "migrate_s")
}

/// As [`quinn_client`], of noq.
fn noq_client(name: &str, make: impl Fn(Random) -> (noq::Factory, Option<Law>) + Send + Sync + 'static) -> OwnStack {
    client(name, move |host, settings, bulk, random| {
        let (controller, law) = make(Random::for_component(random.clone().bits(), 0, "controller"));
        let settings = settings.with(law.as_ref());
        Box::new(UdpHost::new(local(host), noq::QuicHost::new(settings, Some(controller), Some(bulk), random)))
    })
}

/// A client that sends to the first of its neighbours.
fn client(
    name: &str,
    build: impl Fn(&StackHost, EndpointSettings, BulkTransfer, Random) -> Box<dyn Stack> + Send + Sync + 'static,
) -> OwnStack {
    let build = move |host: &StackHost, values: &[f64], random: Random| {
        let [bytes, start, burst, rate, size, datagrams, resumes, migrates] =
            std::array::from_fn(|number| values[number]);
        // quinn's alone, and the last one.
        let resets = values.get(10).is_some_and(|&resets| resets > 0.0);
        let to = host.neighbours.first().and_then(|peer| peer.addresses.first()).copied();
        let bulk = BulkTransfer {
            to: SocketAddr::new(to.unwrap_or(host.addresses[0]), PORT),
            start: Time::from_nanos((start * 1e9) as u64),
            bytes: (bytes > 0.0).then_some(bytes as u64),
            cadence: (rate > 0.0).then_some(Cadence { rate, size: size as usize, datagrams: datagrams > 0.0 }),
            resumes: resumes > 0.0,
            migration: (migrates > 0.0).then(|| {
                let at = Time::from_nanos((migrates * 1e9) as u64);
                Migration { at, to: moved(host), resets }
            }),
        };
        build(host, EndpointSettings { burst: burst as usize, ..settings(host, &values[8..]) }, bulk, random)
    };
    let own = OwnStack::new(name, build).parameter("bytes", 0.0, 0.0..=1e15).parameter("start_s", 0.0, 0.0..=1e6);
    let own = own.parameter("burst_packets", 1.0, 1.0..=64.0);
    let own = own.parameter("rate_bps", 0.0, 0.0..=1e11);
    let own = own.parameter("message_bytes", 1000.0, HEAD as f64..=65_000.0).parameter("datagrams", 0.0, 0.0..=1.0);
    let own = own.only_above_zero(&["message_bytes", "datagrams"], "rate_bps");
    let own = own.parameter("zero_rtt", 0.0, 0.0..=1.0).only_above_zero(&["zero_rtt"], "start_s");
    let own = own.parameter("migrate_s", 0.0, 0.0..=1e6);
    common(own).only_at_zero(&["stream_window"], "datagrams").observable()
}

/// A server that reads everything.
fn server(
    name: &str,
    build: impl Fn(&StackHost, EndpointSettings, Random) -> Box<dyn Stack> + Send + Sync + 'static,
) -> OwnStack {
    common(OwnStack::new(name, move |host, values, random| build(host, settings(host, values), random)))
}

/// Parameters of both ends: the window of a stream in bytes, the default of 12.5 MB/s and 100 ms of
/// both implementations; and whether the path's MTU is discovered, as by default, or taken from the
/// host's.
fn common(own: OwnStack) -> OwnStack {
    own.parameter("stream_window", 1_250_000.0, 1200.0..=1e12).parameter("mtu_discovery", 1.0, 0.0..=1.0)
}

fn settings(host: &StackHost, values: &[f64]) -> EndpointSettings {
    let headers = HEADERS[usize::from(host.addresses[0].is_ipv6())];
    EndpointSettings {
        payload: host.mtu.saturating_sub(headers).max(1200),
        discovers_mtu: values[1] >= 0.5,
        window: values[0] as u64,
        burst: 1,
        link: None,
        scalable: false,
    }
}

fn local(host: &StackHost) -> SocketAddr {
    SocketAddr::new(host.addresses[0], PORT)
}

/// The place of a host that moves: its second address of the kind of the first, or its address with
/// another port, as after a NAT has lost its state.
fn moved(host: &StackHost) -> SocketAddr {
    let first = host.addresses[0];
    match host.addresses[1..].iter().find(|address| address.is_ipv4() == first.is_ipv4()) {
        Some(&second) => SocketAddr::new(second, PORT),
        None => SocketAddr::new(first, PORT + 1),
    }
}
