//! The cost of a run: stock quinn-proto in a loop that has nothing but a link, or the same transfer as
//! a scenario. CUBIC sends 20 s over 100 Mbit/s, 20 ms each way, 100 packets of buffer.
//!
//! ```text
//! cargo build --release -p ackclock-quic --example bare_loop
//! valgrind --tool=callgrind target/release/examples/bare_loop bare         # or scenario
//! ```
//!
//! It prints the packets that the sender has sent.

use std::cmp::Reverse;
use std::collections::{BinaryHeap, VecDeque};
use std::net::SocketAddr;
use std::ops::ControlFlow;
use std::sync::Arc;
use std::time::{Duration, Instant};

use ackclock_live::run_virtual;
use ackclock_quic::PlaintextCrypto;
use ackclock_scenario::{Own, Scenario};
use ackclock_sim::Recorders;
use bytes::{Bytes, BytesMut};
use quinn_proto::{
    ClientConfig, Connection, ConnectionHandle, DatagramEvent, Dir, EcnCodepoint, Endpoint, EndpointConfig, Event,
    MtuDiscoveryConfig, ServerConfig, StreamEvent, StreamId, TransportConfig,
};

const DURATION: u64 = 20_000_000_000;
const DELAY: u64 = 20_000_000;
/// Nanoseconds of a byte.
const BYTE: u64 = 80;
const LIMIT: usize = 100;
/// Bytes of the headers of UDP and IP.
const HEADERS: u64 = 28;

/// A packet in flight: its arrival, its number, the end that it goes to, and ECN bits and contents.
type Flying = Reverse<(u64, u64, usize, u8, Vec<u8>)>;

/// An end of the connection, and the transmitter of its direction.
struct End {
    endpoint: Endpoint,
    connection: Option<(ConnectionHandle, Connection)>,
    free_at: u64,
    queued: VecDeque<u64>,
}

#[expect(clippy::print_stdout, reason = "it is a program")]
fn main() {
    let sent = match std::env::args().nth(1).as_deref() {
        Some("bare") => bare(),
        _ => scenario(),
    };
    println!("{sent}");
}

fn address(end: usize) -> SocketAddr {
    SocketAddr::from(([10, 0, 0, 1 + end as u8], 4433))
}

fn bare() -> u64 {
    #[expect(clippy::disallowed_methods, reason = "instants begin anywhere; the loop sees differences alone")]
    let epoch = Instant::now();
    let crypto = Arc::new(PlaintextCrypto);
    let mut transport = TransportConfig::default();
    let mut discovery = MtuDiscoveryConfig::default();
    discovery.upper_bound(1472);
    transport.mtu_discovery_config(Some(discovery)).max_idle_timeout(None).enable_segmentation_offload(false);
    let transport = Arc::new(transport);
    let mut server = ServerConfig::new(crypto.clone(), crypto.clone());
    server.transport_config(Arc::clone(&transport));
    let mut client = ClientConfig::new(crypto.clone());
    client.transport_config(transport);
    let mut ends = [None, Some(Arc::new(server))].map(|server| {
        let mut config = EndpointConfig::new(crypto.clone());
        config.rng_seed(Some([7; 32]));
        let endpoint = Endpoint::new(Arc::new(config), server, true, None);
        End { endpoint, connection: None, free_at: 0, queued: VecDeque::new() }
    });
    ends[0].connection = ends[0].endpoint.connect(epoch, client, address(1), "bare").ok();
    let mut wire: BinaryHeap<Flying> = BinaryHeap::new();
    let (mut now, mut number, mut sent, mut stream) = (0, 0, 0, None);
    let (zeros, mut buffer) = (Bytes::from(vec![0; 64 << 10]), Vec::new());
    while now < DURATION {
        let at = epoch + Duration::from_nanos(now);
        while wire.peek().is_some_and(|Reverse(packet)| packet.0 <= now)
            && let Some(Reverse((_, _, to, ecn, contents))) = wire.pop()
        {
            ends[to].receive(at, address(1 - to), EcnCodepoint::from_bits(ecn), &contents, &mut buffer);
        }
        let mut next = u64::MAX;
        for (from, end) in ends.iter_mut().enumerate() {
            let Some((handle, connection)) = &mut end.connection else { continue };
            if connection.poll_timeout().is_some_and(|timeout| timeout <= at) {
                connection.handle_timeout(at);
            }
            while pass_events(&mut end.endpoint, *handle, connection, (from == 0).then_some(&mut stream)) {
                if let (0, Some(id)) = (from, stream) {
                    while connection.send_stream(id).write_chunks(&mut [zeros.clone()]).is_ok() {}
                }
            }
            loop {
                buffer.clear();
                let Some(transmit) = connection.poll_transmit(at, 1, &mut buffer) else { break };
                while end.queued.front().is_some_and(|&gone| gone <= now) {
                    end.queued.pop_front();
                }
                if end.queued.len() >= LIMIT {
                    continue;
                }
                end.free_at = end.free_at.max(now) + (transmit.size as u64 + HEADERS) * BYTE;
                end.queued.push_back(end.free_at);
                (number, sent) = (number + 1, sent + u64::from(from == 0));
                let ecn = transmit.ecn.map_or(0, |ecn| ecn as u8);
                wire.push(Reverse((end.free_at + DELAY, number, 1 - from, ecn, buffer[..transmit.size].to_vec())));
            }
            if let Some(timeout) = connection.poll_timeout() {
                next = next.min(timeout.saturating_duration_since(epoch).as_nanos() as u64);
            }
        }
        next = wire.peek().map_or(next, |Reverse(packet)| next.min(packet.0));
        now = next.max(now + 1);
    }
    sent
}

impl End {
    fn receive(
        &mut self,
        at: Instant,
        from: SocketAddr,
        ecn: Option<EcnCodepoint>,
        contents: &[u8],
        buffer: &mut Vec<u8>,
    ) {
        buffer.clear();
        match self.endpoint.handle(at, from, None, ecn, BytesMut::from(contents), buffer) {
            Some(DatagramEvent::ConnectionEvent(_, event)) => {
                if let Some((_, connection)) = &mut self.connection {
                    connection.handle_event(event);
                }
            }
            Some(DatagramEvent::NewConnection(incoming)) => {
                self.connection = self.endpoint.accept(incoming, at, buffer, None).ok();
            }
            _ => {}
        }
    }
}

/// Passes events on; the sender opens its stream, the receiver reads. Returns `true` if there were any.
fn pass_events(
    endpoint: &mut Endpoint,
    handle: ConnectionHandle,
    connection: &mut Connection,
    mut opened: Option<&mut Option<StreamId>>,
) -> bool {
    let mut any = false;
    while let Some(event) = connection.poll_endpoint_events() {
        any = true;
        if let Some(event) = endpoint.handle_event(handle, event) {
            connection.handle_event(event);
        }
    }
    while let Some(event) = connection.poll() {
        any = true;
        match event {
            Event::Connected => {
                if let Some(stream) = &mut opened {
                    **stream = connection.streams().open(Dir::Uni);
                }
            }
            Event::Stream(StreamEvent::Opened { dir }) => {
                while let Some(id) = connection.streams().accept(dir) {
                    read(connection, id);
                }
            }
            Event::Stream(StreamEvent::Readable { id }) => read(connection, id),
            _ => {}
        }
    }
    any
}

fn read(connection: &mut Connection, id: StreamId) {
    let mut stream = connection.recv_stream(id);
    let Ok(mut chunks) = stream.read(true) else { return };
    while let Ok(Some(_)) = chunks.next(usize::MAX) {}
    // What is to be transmitted is asked for after each input.
    let _ = chunks.finalize();
}

fn scenario() -> u64 {
    let text = br#"
        schema = 1
        [run]
        duration = "20s"
        [links.wire]
        rate = "100mbit"
        delay = "20ms"
        queue = { kind = "pfifo", limit = "100p" }
        [hosts.client]
        address = "10.0.0.1/24"
        stack = "quinn-cubic"
        [hosts.server]
        address = "10.0.0.2/24"
        stack = "quinn-server"
        [[paths]]
        between = ["client", "server"]
        path = ["wire"]
    "#;
    let own = ackclock_quic::stacks().into_iter().fold(Own::new(), Own::stack);
    let scenario = Scenario::parse_with("bare_loop.toml", text, &[], &own).unwrap_or_else(|error| panic!("{error:?}"));
    let outcome = run_virtual(&scenario.spec(0), Recorders::default(), &mut |_| ControlFlow::Continue(()));
    outcome.summary.links[0].packets.offered
}
