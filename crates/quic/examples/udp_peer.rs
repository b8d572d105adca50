//! Stock quinn-proto over a UDP socket of the machine: the other end of a live run with QUIC. Packets
//! are not encrypted, as those of ackclock's hosts.
//!
//! ```text
//! udp_peer server 10.0.0.2:4433               reads everything of one connection
//! udp_peer client 10.0.0.1:4433 5000000       sends that many bytes, and waits for their ACKs
//! ```
//!
//! It ends with the connection, or after ten seconds without one, and prints JSON: bytes sent
//! or received, goodput, RTT, losses. A socket of the standard library reads no ECN bits: marks are
//! not reported, and the other end stops using ECN (RFC 9000 section 13.4.2).

use std::io::{self, ErrorKind};
use std::net::{SocketAddr, UdpSocket};
use std::sync::Arc;
use std::thread;
use std::time::{Duration, Instant};

use ackclock_quic::PlaintextCrypto;
use bytes::{Bytes, BytesMut};
use quinn_proto::{
    ClientConfig, Connection, ConnectionHandle, DatagramEvent, Dir, Endpoint, EndpointConfig, Event, ServerConfig,
    StreamEvent, StreamId,
};

/// The interval of looks for a packet, shorter than those of pacing, and the longest wait for a
/// connection. A timeout of the socket would be rounded to the kernel's ticks.
const PAUSE: Duration = Duration::from_micros(200);
const PATIENCE: Duration = Duration::from_secs(10);

/// The application: the bytes that are left to be sent, or that have been received.
struct Transfer {
    sends: bool,
    left: u64,
    bytes: u64,
    stream: Option<StreamId>,
    /// Times of the first and the last byte.
    lasted: Option<(Instant, Instant)>,
    is_over: bool,
}

#[expect(clippy::print_stdout, reason = "it is a program")]
fn main() -> Result<(), Box<dyn std::error::Error>> {
    let arguments: Vec<String> = std::env::args().skip(1).collect();
    let (sends, at, left) = match arguments.iter().map(String::as_str).collect::<Vec<_>>()[..] {
        ["server", at] => (false, at, 0),
        ["client", at, bytes] => (true, at, bytes.parse()?),
        _ => return Err("expected `server ADDRESS:PORT` or `client ADDRESS:PORT BYTES`".into()),
    };
    let peer: SocketAddr = at.parse()?;
    let any = SocketAddr::new(if peer.is_ipv4() { [0; 4].into() } else { [0; 16].into() }, 0);
    let socket = UdpSocket::bind(if sends { any } else { peer })?;
    socket.set_nonblocking(true)?;
    let crypto = Arc::new(PlaintextCrypto);
    let server = (!sends).then(|| Arc::new(ServerConfig::new(crypto.clone(), crypto.clone())));
    let mut endpoint = Endpoint::new(Arc::new(EndpointConfig::new(crypto.clone())), server, true, None);
    let begun = now();
    let mut connection = match sends {
        true => Some(endpoint.connect(begun, ClientConfig::new(crypto), peer, "peer")?),
        false => None,
    };
    let mut transfer = Transfer { sends, left, bytes: 0, stream: None, lasted: None, is_over: false };
    let (mut datagram, mut out) = (vec![0; 1 << 16], Vec::new());
    while !transfer.is_over && (connection.is_some() || begun.elapsed() < PATIENCE) {
        // What has arrived comes before timers, which a late program would find expired.
        while let Some((len, from)) = ready(socket.recv_from(&mut datagram))? {
            out.clear();
            match endpoint.handle(now(), from, None, None, BytesMut::from(&datagram[..len]), &mut out) {
                Some(DatagramEvent::ConnectionEvent(_, event)) => {
                    if let Some((_, connection)) = &mut connection {
                        connection.handle_event(event);
                    }
                }
                Some(DatagramEvent::NewConnection(incoming)) if connection.is_none() => {
                    connection = endpoint.accept(incoming, now(), &mut out, None).ok();
                }
                _ => {}
            }
        }
        if let Some((handle, connection)) = &mut connection {
            if connection.poll_timeout().is_some_and(|timeout| timeout <= now()) {
                connection.handle_timeout(now());
            }
            transfer.pass_events(&mut endpoint, *handle, connection);
            out.clear();
            while let Some(transmit) = connection.poll_transmit(now(), 1, &mut out) {
                // The device may not have taken earlier packets yet.
                while ready(socket.send_to(&out[..transmit.size], transmit.destination))?.is_none() {
                    thread::sleep(PAUSE);
                }
                out.clear();
            }
        }
        thread::sleep(PAUSE);
    }
    let (first, last) = transfer.lasted.unwrap_or((begun, begun));
    let seconds = last.duration_since(first).as_secs_f64();
    let goodput = if seconds > 0.0 { transfer.bytes as f64 * 8.0 / seconds } else { 0.0 };
    let path = connection.map(|(_, connection)| connection.stats().path).unwrap_or_default();
    let (rtt, lost) = (path.rtt.as_secs_f64() * 1e3, path.lost_packets);
    let bytes = transfer.bytes;
    println!("{{\"bytes\": {bytes}, \"goodput_bps\": {goodput}, \"rtt_ms\": {rtt}, \"lost_packets\": {lost}}}");
    Ok(())
}

#[expect(clippy::disallowed_methods, reason = "a program beside the run")]
fn now() -> Instant {
    Instant::now()
}

/// What a call of the socket returned; `None` if it would have had to wait.
fn ready<T>(result: io::Result<T>) -> io::Result<Option<T>> {
    match result {
        Err(error) if error.kind() == ErrorKind::WouldBlock => Ok(None),
        result => result.map(Some),
    }
}

impl Transfer {
    /// Passes events on, and writes or reads what can be.
    fn pass_events(&mut self, endpoint: &mut Endpoint, handle: ConnectionHandle, connection: &mut Connection) {
        while let Some(event) = connection.poll_endpoint_events() {
            if let Some(event) = endpoint.handle_event(handle, event) {
                connection.handle_event(event);
            }
        }
        while let Some(event) = connection.poll() {
            match event {
                Event::Connected if self.sends => self.stream = connection.streams().open(Dir::Uni),
                Event::Stream(StreamEvent::Opened { dir }) => self.stream = connection.streams().accept(dir),
                Event::Stream(StreamEvent::Finished { .. }) => {
                    self.lasted = self.lasted.map(|(first, _)| (first, now()));
                    connection.close(now(), 0u32.into(), Bytes::new());
                    self.is_over = true;
                }
                Event::ConnectionLost { .. } => self.is_over = true,
                _ => {}
            }
        }
        let Some(id) = self.stream else { return };
        if self.sends {
            self.send(id, connection);
        } else if let Ok(mut chunks) = connection.recv_stream(id).read(true) {
            while let Ok(Some(chunk)) = chunks.next(usize::MAX) {
                self.bytes += chunk.bytes.len() as u64;
                self.lasted = Some((self.lasted.map_or_else(now, |(first, _)| first), now()));
            }
            // What is to be transmitted is asked for afterwards.
            let _ = chunks.finalize();
        }
    }

    fn send(&mut self, id: StreamId, connection: &mut Connection) {
        let mut stream = connection.send_stream(id);
        self.lasted.get_or_insert_with(|| (now(), now()));
        while self.left > 0
            && let Ok(len) = stream.write(&[0; 1 << 14][..self.left.min(1 << 14) as usize])
        {
            (self.left, self.bytes) = (self.left - len as u64, self.bytes + len as u64);
        }
        if self.left == 0 {
            // A second call changes nothing.
            let _ = stream.finish();
        }
    }
}
