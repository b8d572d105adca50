//! noq, a relative of quinn with BBRv3 and several paths: the calls that differ between
//! implementations, and noq's controllers.
//!
//! One source of randomness in `noq_proto` 1.4 cannot be seeded, the times at which its BBRv3 probes
//! for bandwidth: the seed of its configuration is private.

#[path = "host.rs"]
mod host;
#[path = "plaintext.rs"]
mod plaintext;

use std::any::Any;
use std::net::{IpAddr, SocketAddr};
use std::num::NonZeroUsize;
use std::sync::Arc;
use std::time::{Duration, Instant};

use bytes::{Bytes, BytesMut};
use noq_proto as proto;
use noq_proto::congestion::{Bbr3Config, Controller, ControllerFactory, ControllerMetrics, CubicConfig, NewRenoConfig};
use noq_proto::crypto::{
    ClientConfig, CryptoError, HandshakeTokenKey, Keys, PacketKey, ServerConfig, Session, UnsupportedVersion,
};
use noq_proto::transport_parameters::TransportParameters;
use noq_proto::{
    ConnectError, Connection, ConnectionId, ConnectionIdGenerator, DatagramEvent, EcnCodepoint, Endpoint,
    EndpointConfig, FourTuple, PathId, RttEstimator, SendStream, Side, Transmit, TransportError, TransportErrorCode,
};

use crate::controller::{Adapted, Law};
use crate::recovery::SharedLog;
use crate::transfer::PathFigures;
use crate::wire::TAG;
pub(crate) use host::{Factory, Make, QuicHost};
pub use plaintext::PlaintextCrypto;
use plaintext::{Key, Level, Plaintext, Resumption, keys};

type Cid<'a> = ConnectionId;

/// The stack that cannot be seeded.
pub(crate) const BBR3: &str = "noq-bbr3";

/// noq's controllers, by the names of stacks.
pub(crate) const CONTROLLERS: [(&str, Make); 3] = [
    ("noq-newreno", || Arc::new(NewRenoConfig::default())),
    ("noq-cubic", || Arc::new(CubicConfig::default())),
    (BBR3, || Arc::new(Bbr3Config::default())),
];

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

/// The address of a client has changed. noq keeps the state of the path.
fn migrate(connection: &mut Connection, at: Instant, _resets: bool) {
    connection.handle_network_change(None, at);
}

/// The bytes of the chunk that the stream takes; `None` if it takes none.
fn write(stream: &mut SendStream<'_>, chunk: Bytes) -> Option<usize> {
    stream.write_chunks(&mut &mut [chunk][..]).ok()
}

/// The figures of the only path.
fn path_figures(connection: &mut Connection) -> Option<PathFigures> {
    let path = connection.path_stats(PathId::ZERO)?;
    let ControllerMetrics { ssthresh, pacing_rate, .. } = connection.congestion_state(PathId::ZERO)?.metrics();
    Some(PathFigures {
        sent_packets: path.sent_packets,
        lost_packets: path.lost_packets,
        congestion_events: path.congestion_events,
        cwnd_bytes: path.cwnd,
        mtu_bytes: path.current_mtu,
        rtt: path.rtt,
        min_rtt: None,
        ssthresh,
        // Bytes/s.
        pacing_rate: pacing_rate.map(|rate| 8 * rate),
    })
}

/// A factory of the same controllers, observed.
fn observed(inner: Factory, log: SharedLog) -> Factory {
    Arc::new(ObservedFactory { inner, log })
}

struct ObservedFactory {
    inner: Factory,
    log: SharedLog,
}

impl ControllerFactory for ObservedFactory {
    fn build(self: Arc<Self>, now: Instant, current_mtu: u16) -> Box<dyn Controller> {
        let inner = Arc::clone(&self.inner).build(now, current_mtu);
        Box::new(Observed { inner, log: self.log.clone() })
    }
}

/// A controller that notes what it is told.
#[derive(Debug)]
struct Observed {
    inner: Box<dyn Controller>,
    log: SharedLog,
}

impl Controller for Observed {
    fn on_sent(&mut self, now: Instant, bytes: u64, last_packet_number: u64) {
        self.inner.on_sent(now, bytes, last_packet_number);
    }

    fn on_packet_sent(&mut self, now: Instant, bytes: u16, number: u64) {
        self.inner.on_packet_sent(now, bytes, number);
    }

    fn on_cwnd_limited(&mut self) {
        self.inner.on_cwnd_limited();
    }

    fn on_ack(&mut self, now: Instant, sent: Instant, bytes: u64, number: u64, app_limited: bool, rtt: &RttEstimator) {
        self.log.get().acked(now, sent);
        self.inner.on_ack(now, sent, bytes, number, app_limited, rtt);
    }

    fn on_end_acks(&mut self, now: Instant, in_flight: u64, app_limited: bool, largest: Option<u64>) {
        self.log.get().acks_end(in_flight);
        self.inner.on_end_acks(now, in_flight, app_limited, largest);
    }

    fn on_congestion_event(
        &mut self,
        now: Instant,
        sent: Instant,
        is_persistent_congestion: bool,
        is_ecn: bool,
        lost_bytes: u64,
        largest_lost: u64,
    ) {
        self.log.get().congested(now, sent, is_persistent_congestion, lost_bytes);
        self.inner.on_congestion_event(now, sent, is_persistent_congestion, is_ecn, lost_bytes, largest_lost);
    }

    fn on_packet_lost(&mut self, lost_bytes: u16, number: u64, now: Instant) {
        self.log.get().lost(number);
        self.inner.on_packet_lost(lost_bytes, number, now);
    }

    fn on_spurious_congestion_event(&mut self) {
        self.inner.on_spurious_congestion_event();
    }

    fn on_ack_frequency_update(&mut self, ack_eliciting_threshold: u64, requested_max_ack_delay: Duration) {
        self.inner.on_ack_frequency_update(ack_eliciting_threshold, requested_max_ack_delay);
    }

    fn on_mtu_update(&mut self, new_mtu: u16) {
        self.inner.on_mtu_update(new_mtu);
    }

    fn window(&self) -> u64 {
        self.inner.window()
    }

    fn metrics(&self) -> ControllerMetrics {
        self.inner.metrics()
    }

    fn clone_box(&self) -> Box<dyn Controller> {
        Box::new(Observed { inner: self.inner.clone_box(), log: self.log.clone() })
    }

    fn initial_window(&self) -> u64 {
        self.inner.initial_window()
    }

    fn into_any(self: Box<Self>) -> Box<dyn Any> {
        self.inner.into_any()
    }
}

impl ControllerFactory for Law {
    fn build(self: Arc<Self>, now: Instant, current_mtu: u16) -> Box<dyn Controller> {
        Box::new(self.adapted(now, current_mtu))
    }
}

impl Controller for Adapted {
    fn on_sent(&mut self, now: Instant, bytes: u64, _last_packet_number: u64) {
        self.sent(now, bytes);
    }

    fn on_ack(&mut self, now: Instant, sent: Instant, bytes: u64, _number: u64, app_limited: bool, rtt: &RttEstimator) {
        self.acked(now, sent, bytes, app_limited, (rtt.get(), rtt.min()));
    }

    fn on_end_acks(&mut self, now: Instant, in_flight: u64, app_limited: bool, _largest: Option<u64>) {
        self.acks_end(now, in_flight, app_limited);
    }

    fn on_congestion_event(
        &mut self,
        now: Instant,
        sent: Instant,
        is_persistent_congestion: bool,
        _is_ecn: bool,
        lost_bytes: u64,
        _largest_lost: u64,
    ) {
        self.congested(now, sent, is_persistent_congestion, lost_bytes);
    }

    fn on_spurious_congestion_event(&mut self) {
        self.undo();
    }

    fn on_mtu_update(&mut self, new_mtu: u16) {
        self.resize(new_mtu);
    }

    fn window(&self) -> u64 {
        self.bytes()
    }

    fn metrics(&self) -> ControllerMetrics {
        let mut metrics = ControllerMetrics::default();
        (metrics.congestion_window, metrics.ssthresh) = (self.bytes(), self.ssthresh());
        // Bytes/s.
        metrics.pacing_rate = self.rate().map(|rate| rate.as_bps() / 8);
        metrics
    }

    fn clone_box(&self) -> Box<dyn Controller> {
        Box::new(self.anew())
    }

    fn initial_window(&self) -> u64 {
        self.initial()
    }

    fn into_any(self: Box<Self>) -> Box<dyn Any> {
        self
    }
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

impl ClientConfig for Resumption {
    fn start_session(
        &self,
        _version: u32,
        _server_name: &str,
        params: &TransportParameters,
    ) -> Result<Box<dyn Session>, ConnectError> {
        Ok(Box::new(Plaintext::resumed(params, self.0)))
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
