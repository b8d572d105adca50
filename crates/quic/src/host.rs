//! A QUIC implementation as a host: one endpoint on a UDP socket, with a sender or a receiver of
//! everything.
//!
//! The endpoint's random numbers, connection IDs and tokens come from the run. The file is compiled
//! for each implementation, as a module of `quinn` and of `noq`, where the calls are that differ.

use std::cell::RefCell;
use std::collections::VecDeque;
use std::net::SocketAddr;
use std::sync::Arc;
use std::time::{Duration, SystemTime};

use ackclock_stack::{Datagram, RecoveryEvent, Transport};
use ackclock_units::outside::Failure;
use ackclock_units::{Ecn, Random, Time};
use bytes::{Bytes, BytesMut};

use super::PlaintextCrypto;
use super::plaintext::Resumption;
use super::proto::congestion::ControllerFactory;
use super::proto::{
    ClientConfig, Connection, ConnectionHandle, ConnectionId, ConnectionIdGenerator, DatagramEvent, Dir, EcnCodepoint,
    Endpoint, EndpointConfig, Event, MtuDiscoveryConfig, SendDatagramError, ServerConfig, StreamEvent, StreamId,
    TimeSource, Transmit, TransportConfig, ValidationTokenConfig, VarInt,
};
use super::{endpoint, generate_cids, handle, migrate, observed, path_figures, poll_transmit, write};
use crate::clock::instant;
use crate::messages::{MessageInbox, Messages};
use crate::recovery::Observer;
use crate::transfer::{BulkTransfer, CID, EndpointSettings};
use crate::wire::marks;

/// Bytes that the sending application hands over at a time.
const WRITE: usize = 64 << 10;

/// A QUIC endpoint.
pub(crate) struct QuicHost {
    endpoint: Endpoint,
    // To ask noq for figures takes a connection that can change.
    /// By their handles, which the endpoint uses again.
    connections: Vec<Option<RefCell<Connection>>>,
    transport: Arc<TransportConfig>,
    settings: EndpointSettings,
    controller: Option<Factory>,
    client: Option<BulkClient>,
    received: u64,
    inbox: MessageInbox,
    first_byte: Option<Time>,
    deadline: Time,
    /// Datagrams that wait for their turn.
    queued: VecDeque<(SocketAddr, Ecn, Bytes)>,
    buffer: Vec<u8>,
    /// Events have been passed on since the last input, timer or packet.
    is_driven: bool,
    failure: Option<Failure>,
    observer: Option<Observer>,
}

/// The sending application.
struct BulkClient {
    bulk: BulkTransfer,
    cids: Random,
    /// The connection of the transfer, once there is one.
    connection: Option<usize>,
    /// A connection for a ticket is to be made before.
    lacks_ticket: bool,
    ticket: Option<Arc<Resumption>>,
    /// The server has taken data that came before its handshake.
    early_data: bool,
    moved_to: Option<SocketAddr>,
    stream: Option<StreamId>,
    left: Option<u64>,
    /// The messages of an application with a rate, once it is connected.
    messages: Option<Messages>,
    /// Bytes of messages that the stream has not taken yet.
    owed: u64,
    established: Option<Time>,
    completed: Option<Time>,
    zeros: Bytes,
}

/// What makes controllers.
pub(crate) type Factory = Arc<dyn ControllerFactory + Send + Sync>;
pub(crate) type Make = fn() -> Factory;

/// Connection IDs from the run's random numbers.
struct Cids(Random);

impl ConnectionIdGenerator for Cids {
    fn generate_cid(&mut self) -> ConnectionId {
        ConnectionId::new(&self.0.bits().to_be_bytes()[..CID])
    }

    fn cid_len(&self) -> usize {
        CID
    }

    fn cid_lifetime(&self) -> Option<Duration> {
        None
    }
}

/// The time of day of tokens: none is valid from one run to the next.
struct NoTimeOfDay;

impl TimeSource for NoTimeOfDay {
    fn now(&self) -> SystemTime {
        SystemTime::UNIX_EPOCH
    }
}

impl QuicHost {
    pub(crate) fn new(
        settings: EndpointSettings,
        controller: Option<Factory>,
        bulk: Option<BulkTransfer>,
        mut random: Random,
    ) -> QuicHost {
        let crypto = Arc::new(PlaintextCrypto);
        let mut seed = [0; 32];
        seed.chunks_mut(8).for_each(|chunk| chunk.copy_from_slice(&random.bits().to_be_bytes()));
        let cids = Random::for_component(random.bits(), 0, "connection IDs");
        let initial = Random::for_component(random.bits(), 0, "initial connection IDs");
        let mut config = EndpointConfig::new(crypto.clone());
        config.rng_seed(Some(seed));
        generate_cids(&mut config, move || Box::new(Cids(cids.clone())));
        let transport = Arc::new(transport(&settings, controller.clone()));
        let server = bulk.is_none().then(|| {
            let mut tokens = ValidationTokenConfig::default();
            tokens.sent(0);
            let mut server = ServerConfig::new(crypto.clone(), crypto);
            server.transport_config(Arc::clone(&transport)).validation_token_config(tokens);
            server.time_source(Arc::new(NoTimeOfDay));
            Arc::new(server)
        });
        QuicHost {
            endpoint: endpoint(config, server),
            connections: Vec::new(),
            transport,
            settings,
            controller,
            deadline: bulk.as_ref().map_or(Time::NEVER, |bulk| if bulk.resumes { Time::ZERO } else { bulk.start }),
            client: bulk.map(|bulk| BulkClient {
                left: bulk.bytes,
                cids: initial,
                connection: None,
                lacks_ticket: bulk.resumes,
                ticket: None,
                early_data: false,
                moved_to: None,
                bulk,
                stream: None,
                messages: None,
                owed: 0,
                established: None,
                completed: None,
                zeros: Bytes::from(vec![0; WRITE]),
            }),
            received: 0,
            inbox: MessageInbox::default(),
            first_byte: None,
            queued: VecDeque::new(),
            buffer: Vec::new(),
            is_driven: false,
            failure: None,
            observer: None,
        }
    }

    /// Connects for the transfer, or for a ticket alone.
    fn connect(&mut self, now: Time, for_ticket: bool) {
        let Some(client) = &mut self.client else { return };
        let mut config = match &client.ticket {
            Some(ticket) => ClientConfig::new(Arc::clone(ticket) as Arc<_>),
            None => ClientConfig::new(Arc::new(PlaintextCrypto)),
        };
        let id = client.cids.bits();
        config.initial_dst_cid_provider(Arc::new(move || ConnectionId::new(&id.to_be_bytes())));
        config.transport_config(Arc::clone(&self.transport));
        match self.endpoint.connect(instant(now), config, client.bulk.to, "ackclock") {
            Ok((handle, mut connection)) => {
                if !for_ticket {
                    client.connection = Some(handle.0);
                    if connection.has_0rtt() {
                        client.begin(now, &mut connection);
                    }
                }
                keep(&mut self.connections, handle, connection);
            }
            Err(error) => self.failure = Some(Failure::new(now, format!("cannot connect: {error}"))),
        }
    }

    /// Queues what the endpoint itself sends.
    fn respond(&mut self, transmit: &Transmit, bytes: &[u8]) {
        let bytes = Bytes::copy_from_slice(&bytes[..transmit.size]);
        self.queued.push_back((transmit.destination, ecn_of(transmit.ecn), bytes));
    }

    /// Passes events on between connections, endpoint and application until there are none.
    fn drive(&mut self, now: Time) {
        let (at, mut drained) = (instant(now), Vec::new());
        for (handle, connection) in self.connections.iter_mut().enumerate() {
            let Some(connection) = connection else { continue };
            let connection = connection.get_mut();
            let mut is_first = true;
            loop {
                let mut goes_on = std::mem::take(&mut is_first);
                while let Some(event) = connection.poll_endpoint_events() {
                    goes_on = true;
                    if event.is_drained() {
                        drained.push(handle);
                    }
                    if let Some(event) = self.endpoint.handle_event(ConnectionHandle(handle), event) {
                        connection.handle_event(event);
                    }
                }
                // The connection has said all that it had to say, unless the endpoint has changed something.
                if !goes_on {
                    break;
                }
                while let Some(event) = connection.poll() {
                    match event {
                        Event::Connected => {
                            let Some(client) = &mut self.client else { continue };
                            if client.connection == Some(handle) {
                                client.established = Some(now);
                                client.early_data = connection.accepted_0rtt();
                                if !connection.has_0rtt() {
                                    client.begin(now, connection);
                                }
                            } else {
                                let known = connection.crypto_session().transport_parameters().ok().flatten();
                                client.ticket = known.map(|known| Arc::new(Resumption(known)));
                                connection.close(at, VarInt::from_u32(0), Bytes::new());
                            }
                        }
                        Event::Stream(StreamEvent::Opened { dir }) => {
                            while let Some(id) = connection.streams().accept(dir) {
                                read(connection, id, &mut self.received);
                            }
                        }
                        Event::Stream(StreamEvent::Readable { id }) => read(connection, id, &mut self.received),
                        Event::Stream(StreamEvent::Writable { .. } | StreamEvent::Available { .. }) => {
                            if let Some(client) = &mut self.client {
                                client.write(connection);
                            }
                        }
                        Event::Stream(StreamEvent::Finished { .. }) => {
                            if let Some(client) = &mut self.client {
                                client.completed = Some(now);
                                connection.close(at, VarInt::from_u32(0), Bytes::new());
                            }
                        }
                        Event::ConnectionLost { reason } => {
                            // The receiver of everything is closed by its peer.
                            let is_transfer = |client: &&BulkClient| client.connection == Some(handle);
                            let client = self.client.as_ref().filter(is_transfer);
                            if let Some(client) = client.filter(|client| client.completed.is_none()) {
                                let what = format!("the connection to {} was lost: {reason}", client.bulk.to);
                                self.failure.get_or_insert_with(|| Failure::new(now, what));
                            }
                        }
                        Event::DatagramReceived => {
                            while let Some(datagram) = connection.datagrams().recv() {
                                self.inbox.take(now, handle, &datagram);
                            }
                        }
                        // Other paths are not used.
                        _ => {}
                    }
                }
            }
        }
        self.is_driven = true;
        if self.received + self.inbox.bytes > 0 {
            self.first_byte.get_or_insert(now);
        }
        for handle in drained {
            self.connections[handle] = None;
            self.inbox.close(handle);
        }
    }

    /// The next datagram; without one, the deadline.
    fn next_datagram(&mut self, now: Time, payload: &mut Vec<u8>) -> Option<(SocketAddr, Ecn)> {
        let at = instant(now);
        let release = self.settings.link.as_ref().map_or(Time::ZERO, |link| link.release());
        let is_held = release > now;
        if self.queued.is_empty() && !is_held {
            for connection in self.connections.iter_mut().flatten().map(RefCell::get_mut) {
                // It may write, and send nothing.
                payload.clear();
                if let Some(transmit) = poll_transmit(connection, at, self.settings.burst, payload) {
                    self.is_driven = false;
                    let (to, mut ecn) = (transmit.destination, ecn_of(transmit.ecn));
                    if self.settings.scalable && ecn == Ecn::Ect0 {
                        ecn = Ecn::Ect1;
                    }
                    let Some(segment) = transmit.segment_size.filter(|&segment| segment < transmit.size) else {
                        payload.truncate(transmit.size);
                        return Some((to, ecn));
                    };
                    let all = Bytes::copy_from_slice(&payload[..transmit.size]);
                    let parts =
                        (0..all.len()).step_by(segment).map(|from| all.slice(from..all.len().min(from + segment)));
                    self.queued.extend(parts.map(|part| (to, ecn, part)));
                    break;
                }
            }
        }
        payload.clear();
        if let Some((to, ecn, bytes)) = self.queued.pop_front() {
            payload.extend_from_slice(&bytes);
            return Some((to, ecn));
        }
        if !self.is_driven {
            self.drive(now);
        }
        let timeouts =
            self.connections.iter_mut().flatten().filter_map(|connection| connection.get_mut().poll_timeout());
        let next = timeouts.min().map(|at| at.saturating_duration_since(instant(Time::ZERO)).as_nanos());
        let next = next.map_or(Time::NEVER, |next| u64::try_from(next).map_or(Time::NEVER, Time::from_nanos));
        let message = self.client.as_ref().map_or(Time::NEVER, BulkClient::next_message);
        let start = self.client.as_ref().map_or(Time::NEVER, BulkClient::next_step);
        self.deadline = start.min(next).min(message);
        if is_held {
            self.deadline = self.deadline.min(release);
        }
        None
    }

    /// Notes what an input or a timer has changed.
    fn look(&mut self, now: Time) {
        let of_transfer = self.client.as_ref().and_then(|client| client.connection);
        if let (Some(observer), Some(handle)) = (&mut self.observer, of_transfer)
            && let Some(connection) = self.connections.get_mut(handle).and_then(Option::as_mut)
            && let Some(figures) = path_figures(connection.get_mut())
        {
            observer.look(now, &figures);
        }
    }
}

impl BulkClient {
    /// The time of the next connection, or of the migration.
    fn next_step(&self) -> Time {
        match (self.connection, self.bulk.migration) {
            (None, _) if self.lacks_ticket => Time::ZERO,
            (None, _) => self.bulk.start,
            // RFC 9000 section 9: not before the handshake is confirmed.
            (Some(_), Some(migration)) if self.moved_to.is_none() && self.completed.is_none() => {
                self.established.map_or(Time::NEVER, |established| established.max(migration.at))
            }
            _ => Time::NEVER,
        }
    }

    /// The application begins.
    fn begin(&mut self, now: Time, connection: &mut Connection) {
        self.messages = self.bulk.cadence.map(|cadence| Messages::new(cadence, now));
        if self.bulk.cadence.is_none_or(|cadence| !cadence.datagrams) {
            self.stream = connection.streams().open(Dir::Uni);
            self.write(connection);
        }
    }

    /// The time of the next message.
    fn next_message(&self) -> Time {
        let goes_on = self.completed.is_none() && self.left != Some(0);
        self.messages.as_ref().filter(|_| goes_on).map_or(Time::NEVER, Messages::next)
    }

    /// Hands over the messages that are due.
    fn speak(&mut self, now: Time, connection: &mut Connection) -> Result<(), String> {
        if self.next_message() > now {
            return Ok(());
        }
        while self.next_message() <= now
            && let Some(messages) = &mut self.messages
        {
            let size = messages.cadence.size;
            if messages.cadence.datagrams {
                let bytes = self.left.map_or(size, |left| usize::try_from(left).map_or(size, |left| left.min(size)));
                send_datagram(messages, now, bytes, connection)?;
                self.left = self.left.map(|left| left - bytes as u64);
            } else {
                messages.pass();
                self.owed += size as u64;
                if self.owed >= self.left.unwrap_or(u64::MAX) {
                    // The last one.
                    self.messages = None;
                }
            }
        }
        self.write(connection);
        Ok(())
    }

    /// Writes until the stream takes no more.
    fn write(&mut self, connection: &mut Connection) {
        let Some(id) = self.stream else { return };
        loop {
            let mut stream = connection.send_stream(id);
            if self.left == Some(0) {
                // A second call changes nothing.
                let _ = stream.finish();
                return;
            }
            let due = if self.bulk.cadence.is_some() { self.owed } else { u64::MAX };
            let most = self.left.unwrap_or(u64::MAX).min(due).min(WRITE as u64);
            if most == 0 {
                return;
            }
            let Some(bytes) = write(&mut stream, self.zeros.slice(..most as usize)) else { return };
            self.left = self.left.map(|left| left - bytes as u64);
            self.owed = self.owed.saturating_sub(bytes as u64);
        }
    }
}

impl Transport for QuicHost {
    fn input(&mut self, now: Time, datagram: Datagram<'_>) {
        let at = instant(now);
        if let (Some(link), Some(marks)) = (&self.settings.link, marks(datagram.payload)) {
            link.note_marks(marks);
        }
        // Implementations send ECT(0) alone, and take a count of ECT(1) for an error.
        let ecn = if datagram.ecn == Ecn::Ect1 { Ecn::Ect0 } else { datagram.ecn };
        let codepoint = EcnCodepoint::from_bits(ecn.bits());
        let data = BytesMut::from(datagram.payload);
        let mut buffer = std::mem::take(&mut self.buffer);
        buffer.clear();
        let event = handle(&mut self.endpoint, at, (datagram.from, datagram.to.ip()), codepoint, data, &mut buffer);
        match event {
            Some(DatagramEvent::ConnectionEvent(handle, event)) => {
                if let Some(connection) = self.connections.get_mut(handle.0).and_then(Option::as_mut) {
                    connection.get_mut().handle_event(event);
                }
            }
            Some(DatagramEvent::NewConnection(incoming)) => {
                match self.endpoint.accept(incoming, at, &mut buffer, None) {
                    Ok((handle, connection)) => keep(&mut self.connections, handle, connection),
                    Err(error) => {
                        if let Some(transmit) = error.response {
                            self.respond(&transmit, &buffer);
                        }
                    }
                }
            }
            Some(DatagramEvent::Response(transmit)) => self.respond(&transmit, &buffer),
            None => {}
        }
        self.buffer = buffer;
        self.drive(now);
        self.look(now);
    }

    fn output(&mut self, now: Time, payload: &mut Vec<u8>) -> Option<(SocketAddr, Ecn)> {
        let sent = self.next_datagram(now, payload);
        // Not of a connection for a ticket.
        let is_transfer = self.client.as_ref().is_some_and(|client| client.connection.is_some());
        if let (Some(_), Some(observer), true) = (sent, &mut self.observer, is_transfer) {
            observer.sent(now, payload);
        }
        sent
    }

    fn moved_to(&self) -> Option<SocketAddr> {
        self.client.as_ref()?.moved_to
    }

    fn next_deadline(&self) -> Time {
        self.deadline
    }

    fn on_deadline(&mut self, now: Time) {
        let at = instant(now);
        if let Some(client) = self.client.as_mut().filter(|client| client.connection.is_none())
            && client.next_step() <= now
        {
            let for_ticket = std::mem::take(&mut client.lacks_ticket);
            self.connect(now, for_ticket);
        }
        if let Some(client) = &mut self.client
            && let Some(connection) = client.connection.and_then(|handle| self.connections.get_mut(handle)?.as_mut())
        {
            if let Some(migration) = client.bulk.migration.filter(|_| client.next_step() <= now) {
                client.moved_to = Some(migration.to);
                migrate(connection.get_mut(), at, migration.resets);
            }
            if let Err(what) = client.speak(now, connection.get_mut()) {
                self.failure.get_or_insert_with(|| Failure::new(now, what));
            }
        }
        for connection in self.connections.iter_mut().flatten().map(RefCell::get_mut) {
            if connection.poll_timeout().is_some_and(|timeout| timeout <= at) {
                connection.handle_timeout(at);
            }
        }
        self.drive(now);
        self.look(now);
    }

    fn observe(&mut self) {
        let observer = Observer::default();
        let controller = self.controller.take().map(|controller| observed(controller, observer.log()));
        self.transport = Arc::new(transport(&self.settings, controller));
        self.observer = Some(observer);
    }

    fn observed(&mut self, see: &mut dyn FnMut(Time, RecoveryEvent)) {
        if let Some(observer) = &mut self.observer {
            observer.drain(see);
        }
    }

    fn failure(&self) -> Option<&Failure> {
        self.failure.as_ref()
    }

    fn results(&self, now: Time, see: &mut dyn FnMut(&'static str, f64)) {
        let Some(client) = &self.client else {
            let from = self.first_byte.unwrap_or(now);
            let lasted = now.since(from).as_secs_f64();
            let received = (self.received + self.inbox.bytes) as f64;
            see("received_bytes", received);
            see("goodput_bps", if lasted > 0.0 { 8.0 * received / lasted } else { 0.0 });
            self.inbox.results(see);
            return;
        };
        if let Some(at) = client.established {
            see("handshake_ms", at.since(client.bulk.start).as_millis_f64());
        }
        if let Some(at) = client.completed {
            see("completed_s", at.since(client.bulk.start).as_secs_f64());
        }
        if let Some(messages) = client.messages.as_ref().filter(|messages| messages.cadence.datagrams) {
            see("sent_datagrams", messages.sent() as f64);
            see("refused_datagrams", messages.refused as f64);
        }
        let figures = |connection: &RefCell<Connection>| path_figures(&mut connection.borrow_mut());
        let connection = client.connection.and_then(|handle| self.connections.get(handle)?.as_ref());
        if client.bulk.resumes {
            see("early_data", f64::from(u8::from(client.early_data)));
        }
        let Some(path) = connection.and_then(figures) else { return };
        see("sent_packets", path.sent_packets as f64);
        see("lost_packets", path.lost_packets as f64);
        see("congestion_events", path.congestion_events as f64);
        see("cwnd_bytes", path.cwnd_bytes as f64);
        see("mtu_bytes", f64::from(path.mtu_bytes));
        see("srtt_ms", path.rtt.as_secs_f64() * 1e3);
        if let Some(least) = path.min_rtt {
            see("min_rtt_ms", least.as_secs_f64() * 1e3);
        }
    }
}

/// Sends the next message as a datagram of `bytes`.
///
/// # Errors
/// The reason why none can be sent.
fn send_datagram(messages: &mut Messages, now: Time, bytes: usize, connection: &mut Connection) -> Result<(), String> {
    let mut datagrams = connection.datagrams();
    match datagrams.send(messages.datagram(now, bytes), false) {
        Ok(()) => Ok(()),
        Err(SendDatagramError::Blocked(_)) => {
            messages.refused += 1;
            Ok(())
        }
        Err(SendDatagramError::TooLarge) => {
            let most = datagrams.max_size().unwrap_or(0);
            Err(format!(
                "a datagram of {bytes} bytes (`message_bytes`) does not fit a packet, which takes {most} now; packets \
                 have the host's MTU from the start with `mtu_discovery = 0`"
            ))
        }
        Err(error) => Err(format!("datagrams cannot be sent: {error}")),
    }
}

/// Adds a connection at its handle.
fn keep(connections: &mut Vec<Option<RefCell<Connection>>>, handle: ConnectionHandle, connection: Connection) {
    let len = connections.len().max(handle.0 + 1);
    connections.resize_with(len, || None);
    connections[handle.0] = Some(connection.into());
}

/// Reads everything that a stream has.
fn read(connection: &mut Connection, id: StreamId, received: &mut u64) {
    let mut stream = connection.recv_stream(id);
    let Ok(mut chunks) = stream.read(true) else { return };
    while let Ok(Some(chunk)) = chunks.next(usize::MAX) {
        *received += chunk.bytes.len() as u64;
    }
    // What is to be transmitted is asked for after each input.
    let _ = chunks.finalize();
}

fn transport(settings: &EndpointSettings, controller: Option<Factory>) -> TransportConfig {
    let window = VarInt::from_u64(settings.window).unwrap_or(VarInt::MAX);
    let mut transport = TransportConfig::default();
    transport.stream_receive_window(window).send_window(settings.window).max_idle_timeout(None);
    transport.enable_segmentation_offload(settings.burst > 1);
    if let Some(controller) = controller {
        transport.congestion_controller_factory(controller);
    }
    if settings.discovers_mtu {
        let mut discovery = MtuDiscoveryConfig::default();
        discovery.upper_bound(settings.payload);
        transport.mtu_discovery_config(Some(discovery));
    } else {
        transport.mtu_discovery_config(None).initial_mtu(settings.payload);
    }
    transport
}

fn ecn_of(codepoint: Option<EcnCodepoint>) -> Ecn {
    codepoint.map_or(Ecn::NotEct, |codepoint| Ecn::from_bits(codepoint as u8))
}
