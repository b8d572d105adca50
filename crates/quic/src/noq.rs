//! noq, a relative of quinn with BBRv3 and several paths: the calls that differ between
//! implementations, and noq's controllers.
//!
//! One source of randomness in `noq_proto` 1.4 cannot be seeded, the times at which its BBRv3 probes
//! for bandwidth: the seed of its configuration is private.

#[path = "host.rs"]
mod host;
#[path = "plaintext.rs"]
mod plaintext;

use std::net::{IpAddr, SocketAddr};
use std::num::NonZeroUsize;
use std::sync::Arc;
use std::time::Instant;

use ackclock_stack::RecoveryEvent;
use ackclock_units::Time;
use bytes::{Bytes, BytesMut};
use noq_proto as proto;
use noq_proto::congestion::{Bbr3Config, CubicConfig, NewRenoConfig};
use noq_proto::crypto::{
    ClientConfig, CryptoError, HandshakeTokenKey, Keys, PacketKey, ServerConfig, Session, UnsupportedVersion,
};
use noq_proto::transport_parameters::TransportParameters;
use noq_proto::{
    ConnectError, Connection, ConnectionId, ConnectionIdGenerator, DatagramEvent, EcnCodepoint, Endpoint,
    EndpointConfig, FourTuple, PathId, SendStream, Side, Transmit, TransportError, TransportErrorCode,
};

use crate::transfer::PathFigures;
use host::Factory;
pub(crate) use host::{Make, QuicHost};
pub use plaintext::PlaintextCrypto;
use plaintext::{Key, Level, Plaintext, TAG, keys};

type Cid<'a> = ConnectionId;

/// The stack that cannot be seeded.
pub(crate) const BBR3: &str = "noq-bbr3";

/// noq's controllers, by the names of stacks.
pub(crate) const CONTROLLERS: [(&str, Make); 3] = [
    ("noq-newreno", || Arc::new(NewRenoConfig::default())),
    ("noq-cubic", || Arc::new(CubicConfig::default())),
    (BBR3, || Arc::new(Bbr3Config::default())),
];

/// noq's loss recovery is not observed: the only way there is its own log.
#[derive(Debug, Default)]
struct Observer(());

impl Observer {
    fn observed(&self, controller: Factory) -> Factory {
        controller
    }

    fn sent(&mut self, _now: Time, _datagram: &[u8]) {}

    fn look(&mut self, _now: Time, _connection: &Connection) {}

    fn drain(&mut self, _see: &mut dyn FnMut(Time, RecoveryEvent)) {}
}

fn endpoint(config: EndpointConfig, server: Option<Arc<proto::ServerConfig>>) -> Endpoint {
    Endpoint::new(Arc::new(config), server, true)
}

fn generate_cids(
    config: &mut EndpointConfig,
    make: impl Fn() -> Box<dyn ConnectionIdGenerator> + Send + Sync + 'static,
) {
    config.cid_generator(Arc::new(make));
}

fn handle(
    endpoint: &mut Endpoint,
    at: Instant,
    (from, to): (SocketAddr, IpAddr),
    ecn: Option<EcnCodepoint>,
    data: BytesMut,
    buffer: &mut Vec<u8>,
) -> Option<DatagramEvent> {
    endpoint.handle(at, FourTuple::new(from, Some(to)), ecn, data, buffer)
}

fn poll_transmit(connection: &mut Connection, at: Instant, most: usize, buffer: &mut Vec<u8>) -> Option<Transmit> {
    connection.poll_transmit(at, NonZeroUsize::new(most).unwrap_or(NonZeroUsize::MIN), buffer)
}

/// The bytes of the chunk that the stream takes; `None` if it takes none.
fn write(stream: &mut SendStream<'_>, chunk: Bytes) -> Option<usize> {
    stream.write_chunks(&mut &mut [chunk][..]).ok()
}

/// The figures of the only path.
fn path_figures(connection: &mut Connection) -> Option<PathFigures> {
    let path = connection.path_stats(PathId::ZERO)?;
    Some(PathFigures {
        sent_packets: path.sent_packets,
        lost_packets: path.lost_packets,
        congestion_events: path.congestion_events,
        cwnd_bytes: path.cwnd,
        mtu_bytes: path.current_mtu,
        rtt: path.rtt,
        min_rtt: None,
    })
}

fn error(code: TransportErrorCode, reason: &str) -> TransportError {
    TransportError::new(code, reason.to_owned())
}

impl PacketKey for Key {
    // Packet numbers are those of the only path.
    fn encrypt(&self, _path_id: PathId, packet: u64, buf: &mut [u8], _header_len: usize) {
        self.append(packet, buf);
    }

    fn decrypt(
        &self,
        _path_id: PathId,
        packet: u64,
        _header: &[u8],
        payload: &mut BytesMut,
    ) -> Result<(), CryptoError> {
        self.remove(packet, payload)
    }

    fn tag_len(&self) -> usize {
        TAG
    }

    fn confidentiality_limit(&self) -> u64 {
        Key::CONFIDENTIALITY_LIMIT
    }

    fn integrity_limit(&self) -> u64 {
        Key::INTEGRITY_LIMIT
    }
}

impl ClientConfig for PlaintextCrypto {
    fn start_session(
        &self,
        _version: u32,
        _server_name: &str,
        params: &TransportParameters,
    ) -> Result<Box<dyn Session>, ConnectError> {
        Ok(Box::new(Plaintext::new(Side::Client, params)))
    }
}

impl ServerConfig for PlaintextCrypto {
    fn initial_keys(&self, _version: u32, _dst_cid: ConnectionId) -> Result<Keys, UnsupportedVersion> {
        Ok(keys(Side::Server, Level::Initial))
    }

    fn retry_tag(&self, _version: u32, _orig_dst_cid: ConnectionId, _packet: &[u8]) -> [u8; 16] {
        [0; 16]
    }

    fn start_session(&self, _version: u32, params: &TransportParameters) -> Box<dyn Session> {
        Box::new(Plaintext::new(Side::Server, params))
    }
}

/// The key of address validation tokens, which are not sealed.
impl HandshakeTokenKey for PlaintextCrypto {
    fn seal(&self, _token_nonce: u128, data: &mut Vec<u8>) -> Result<(), CryptoError> {
        data.extend([0; TAG]);
        Ok(())
    }

    fn open<'a>(&self, _token_nonce: u128, data: &'a mut [u8]) -> Result<&'a [u8], CryptoError> {
        let at = data.len().checked_sub(TAG).ok_or(CryptoError)?;
        Ok(&data[..at])
    }
}
