//! A host that is a stock smoltcp TCP socket in virtual time: an independent implementation as the
//! peer.
//!
//! The socket sits in its own [`Interface`] over a device of one packet in each direction. At the
//! border its bytes become [`Segment`]s and back, so that it travels through the same links as our
//! endpoint. It works with real payload bytes: what it sends is compared with the pattern when it
//! leaves, what it delivers when the application reads, which it does at once.
//!
//! What smoltcp 0.14 does not do stays undone: no ECN, no PAWS, no use of the SACK blocks that it
//! receives, one SACK block at a time in what it sends, RTO of at least 1 s, 10 s of TIME-WAIT. Its
//! clock counts microseconds: `now` is rounded down, and a deadline, a whole microsecond, is met
//! exactly.
//!
//! smoltcp stands still, panics or loses data in a few rare cases that loss, reordering and tiny
//! windows lead to; [`border`] keeps it from them, rule by rule. And an acknowledgment that the
//! socket repeats in the same instant, or a poll that sends nothing although one was due, is
//! followed by a pause of 1 s, so that time always advances.

use std::collections::VecDeque;
use std::fmt;

use ackclock_packet::codec::{self, Addresses};
use ackclock_packet::{Flags, Payload, Segment, pattern};
use ackclock_trace::SentPackets;
use ackclock_units::{Ecn, Span, Time};
use smoltcp::iface::{Config, Interface, SocketHandle, SocketSet};
use smoltcp::socket::tcp::{CongestionControl, Socket, SocketBuffer, State};
use smoltcp::time::{Duration, Instant};
use smoltcp::wire::{HardwareAddress, IpCidr};

use crate::spec::{SmoltcpCc, SmoltcpSpec};
use border::{Border, SocketState};
use convert::{ip, lift, micros, timestamp};
use device::SingleSlotDevice;
pub(crate) use side::ConnectionEnd;

mod border;
mod convert;
mod device;
mod side;
#[cfg(test)]
mod tests;

/// Ranges out of order that a stock socket of this build can hold, and of every build with the same
/// results. smoltcp takes it from the environment in which it is built
/// (`SMOLTCP_ASSEMBLER_MAX_SEGMENT_COUNT`), which `.cargo/config.toml` sets in this repository.
pub const STOCK_RANGES: usize = smoltcp::config::ASSEMBLER_MAX_SEGMENT_COUNT;
/// See [`STOCK_RANGES`].
pub const EXPECTED_STOCK_RANGES: usize = 512;

/// The pause after a poll that led nowhere: smoltcp's shortest retransmission timeout.
const PAUSE: Span = Span::from_secs(1);

/// A fault in the data of a stock socket.
#[derive(Clone, Copy, Debug, PartialEq, Eq, thiserror::Error)]
pub enum IntegrityError {
    /// A byte that it sent is not the stream's.
    #[error("byte {0} was sent wrong")]
    Sent(u64),
    /// A byte that it delivered is not the stream's.
    #[error("byte {0} was delivered wrong")]
    Delivered(u64),
    /// A packet that it sent is not a TCP segment.
    #[error("sent a packet that cannot be read: {0}")]
    Unreadable(codec::ParseError),
}

/// Counts of a stock socket's transmissions.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub(crate) struct StockStats {
    /// Packets of any kind.
    pub(crate) packets: u64,
    /// Packets with data, and those of which the first byte had been sent before, zero-window probes
    /// included.
    pub(crate) sent: SentPackets,
}

/// An end of a connection that is a stock smoltcp socket.
///
/// The caller reports events (`connect`, `write`, `input`, `on_deadline` ...), then calls
/// [`Stock::transmit`] until it returns nothing, then [`Stock::next_deadline`].
///
/// The caller reports what happens (`connect`, `write`, `input`, `on_deadline` ...), then calls
/// [`Stock::transmit`] until it gives nothing more, then asks for [`Stock::next_deadline`].
pub(crate) struct Stock {
    interface: Interface,
    sockets: SocketSet<'static>,
    handle: SocketHandle,
    device: SingleSlotDevice,
    addresses: Addresses,
    local_port: u16,
    remote_port: u16,

    /// Bytes accepted from the application.
    written: u64,
    /// Bytes of these passed on to smoltcp's socket.
    queued: u64,
    send_buffer: u64,
    closing: bool,
    aborted: bool,
    opened: bool,

    /// Our initial sequence number, from the SYN that went out.
    isn: Option<u32>,
    /// One past the highest byte sent.
    sent_end: u64,

    border: Border,
    delivered: u64,
    unread: u64,
    peer_finished: bool,

    /// Answers to input that have not left yet.
    replies: VecDeque<Segment>,
    /// Time of the socket's next poll.
    poll_at: Option<Instant>,
    /// No poll before this: the last one led nowhere.
    paused_until: Time,
    /// The acknowledgment sent last, with its time, if nothing happened since.
    last_ack: Option<(Time, Segment)>,

    stats: StockStats,
    integrity_error: Option<IntegrityError>,
}

impl Stock {
    /// The smallest MTU: what every IPv4 link carries (RFC 791 section 3.1); below 53 smoltcp has
    /// no room for data beside timestamps, below 40 it panics.
    pub(crate) const MIN_MTU: u16 = 68;
    /// The largest send or receive buffer: one byte more and smoltcp announces a window scale of
    /// 15, which RFC 7323 forbids.
    pub(crate) const MAX_BUFFER: u64 = (1 << 30) - 1;

    /// A closed socket. The random stream of the interface (its initial sequence number) comes from
    /// `random_seed`.
    ///
    /// # Panics
    /// If a port is 0, the MTU is below [`Stock::MIN_MTU`] or a buffer is not in 1 to
    /// [`Stock::MAX_BUFFER`].
    pub(crate) fn new(
        spec: &SmoltcpSpec,
        side: ConnectionEnd,
        local_port: u16,
        remote_port: u16,
        random_seed: u64,
    ) -> Stock {
        assert!(local_port != 0 && remote_port != 0, "port 0");
        assert!(spec.mtu >= Stock::MIN_MTU, "an MTU of {} bytes", spec.mtu);
        let buffer = |bytes: u64| {
            assert!((1..=Stock::MAX_BUFFER).contains(&bytes), "a buffer of {bytes} bytes");
            SocketBuffer::new(vec![0; bytes as usize])
        };
        let mut socket = Socket::new(buffer(spec.receive_buffer), buffer(spec.send_buffer));
        socket.set_congestion_control(match spec.cc {
            SmoltcpCc::None => CongestionControl::None,
            SmoltcpCc::Reno => CongestionControl::Reno,
            SmoltcpCc::Cubic => CongestionControl::Cubic,
        });
        socket.set_ack_delay(spec.ack_delay.map(|delay| Duration::from_micros(delay.as_nanos().div_ceil(1000))));
        socket.set_nagle_enabled(spec.nagle);
        // smoltcp asks a plain function, which cannot know the time: the value is written at the
        // border.
        socket.set_tsval_generator(spec.timestamps.then_some(|| 0));

        let addresses = side.addresses();
        let mut device = SingleSlotDevice::new(usize::from(spec.mtu));
        let mut config = Config::new(HardwareAddress::Ip);
        config.random_seed = random_seed;
        let mut interface = Interface::new(config, &mut device, Instant::ZERO);
        interface.update_ip_addrs(|list| {
            let own = IpCidr::new(ip(addresses.source), 24);
            list.push(own).expect("an empty list has room for one address");
        });
        let mut sockets = SocketSet::new(Vec::with_capacity(1));
        let handle = sockets.add(socket);
        Stock {
            interface,
            sockets,
            handle,
            device,
            addresses,
            local_port,
            remote_port,
            written: 0,
            queued: 0,
            send_buffer: spec.send_buffer,
            closing: false,
            aborted: false,
            opened: false,
            isn: None,
            sent_end: 0,
            border: Border::new(spec.receive_buffer),
            delivered: 0,
            unread: 0,
            peer_finished: false,
            replies: VecDeque::new(),
            poll_at: None,
            paused_until: Time::ZERO,
            last_ack: None,
            stats: StockStats::default(),
            integrity_error: None,
        }
    }

    /// Opens the connection.
    ///
    /// # Panics
    /// If it is open already.
    pub(crate) fn connect(&mut self, now: Time) {
        let local = (ip(self.addresses.source), self.local_port);
        let remote = (ip(self.addresses.destination), self.remote_port);
        let socket = self.sockets.get_mut::<Socket<'_>>(self.handle);
        socket.connect(self.interface.context(), remote, local).expect("connect() on a closed socket");
        self.opened = true;
        self.changed(now);
    }

    /// Waits for the peer to open the connection.
    ///
    /// # Panics
    /// If it is open already.
    pub(crate) fn listen(&mut self) {
        let local = (ip(self.addresses.source), self.local_port);
        self.socket_mut().listen(local).expect("listen() on a closed socket");
        self.opened = true;
    }

    /// `bytes` more bytes of the stream exist; returns how many of them the send buffer takes, also
    /// before the connection is established. None after [`Stock::close`] and [`Stock::abort`].
    pub(crate) fn write(&mut self, now: Time, bytes: u64) -> u64 {
        if self.closing || self.aborted {
            return 0;
        }
        let taken = bytes.min(self.send_buffer - (self.written - self.acked_bytes()));
        self.written += taken;
        if taken > 0 {
            self.changed(now);
        }
        taken
    }

    /// Sends FIN after everything written, when the connection is established.
    pub(crate) fn close(&mut self, now: Time) {
        self.closing = true;
        self.changed(now);
    }

    /// Sends RST, if there is a peer, and forgets the connection.
    pub(crate) fn abort(&mut self, now: Time) {
        self.aborted = true;
        self.socket_mut().abort();
        self.changed(now);
    }

    /// A packet arrives. One longer than IPv4 allows is ignored.
    pub(crate) fn input(&mut self, now: Time, segment: &Segment, ecn: Ecn) {
        if segment.payload.len > u32::from(u16::MAX) {
            return;
        }
        let mut segment = *segment;
        let view = SocketState {
            opening: matches!(self.socket().state(), State::Listen | State::SynSent),
            unacknowledged: self.socket().send_queue() > 0,
            delivered: self.delivered,
        };
        if !self.border.admit(&mut segment, view) {
            return;
        }
        let bytes = self.device.arrival(segment.wire_len() as usize);
        if codec::emit(&segment, self.addresses.reversed(), ecn, bytes).is_err() {
            return;
        }
        self.device.arrives();
        let (interface, device) = (&mut self.interface, &mut self.device);
        let _ = interface.poll_ingress_single(micros(now), device, &mut self.sockets);
        if let Some(reply) = self.take_sent() {
            self.replies.push_back(reply);
        }
        self.read_socket();
        self.changed(now);
    }

    /// The next packet that leaves; `None` if there is none for now. A stock socket never sends
    /// ECN-capable packets.
    pub(crate) fn transmit(&mut self, now: Time, out: &mut Segment) -> Option<Ecn> {
        let mut segment = match self.replies.pop_front() {
            Some(reply) => reply,
            None if now < self.paused_until => return None,
            None => self.poll(now)?,
        };
        if let Some(timestamps) = &mut segment.timestamps {
            timestamps.value = timestamp(now);
        }
        self.count(&segment);
        *out = segment;
        Some(Ecn::NotEct)
    }

    /// Time of the socket's next deadline, at the earliest now; [`Time::NEVER`] if it waits for
    /// input only.
    ///
    /// It is later than `now` once [`Stock::transmit`] has returned nothing at `now`.
    ///
    /// It is later than `now` once [`Stock::transmit`] had nothing more at `now`.
    pub(crate) fn next_deadline(&self, now: Time) -> Time {
        if !self.replies.is_empty() {
            return now;
        }
        let Some(at) = self.poll_at else { return Time::NEVER };
        Time::from_micros(u64::try_from(at.total_micros()).unwrap_or(0)).max(self.paused_until).max(now)
    }

    /// The deadline is reached. The socket acts in the next call of [`Stock::transmit`].
    pub(crate) fn on_deadline(&mut self, _now: Time) {}

    /// Bytes that have been delivered in order since the last call; the application has read and
    /// checked them.
    pub(crate) fn read(&mut self, _now: Time) -> u64 {
        std::mem::take(&mut self.unread)
    }

    /// Returns true if a connection or an attempt at one is over: TIME-WAIT has passed, or RST was
    /// sent or received.
    pub(crate) fn is_closed(&self) -> bool {
        let socket = self.socket();
        self.opened && socket.state() == State::Closed && socket.remote_endpoint().is_none() && self.replies.is_empty()
    }

    /// Returns true in TIME-WAIT.
    pub(crate) fn is_time_wait(&self) -> bool {
        self.socket().state() == State::TimeWait
    }

    /// Returns true if the handshake is over and at least one direction of the connection is still
    /// open.
    pub(crate) fn is_established(&self) -> bool {
        match self.socket().state() {
            State::Closed | State::Listen | State::SynSent | State::SynReceived | State::TimeWait => false,
            State::Established
            | State::FinWait1
            | State::FinWait2
            | State::CloseWait
            | State::Closing
            | State::LastAck => true,
        }
    }

    /// Returns true if the peer's FIN has arrived and everything before it was read.
    pub(crate) fn peer_finished(&self) -> bool {
        self.peer_finished
    }

    /// Bytes written that the peer has acknowledged.
    pub(crate) fn acked_bytes(&self) -> u64 {
        self.queued - self.socket().send_queue() as u64
    }

    /// Bytes received in order.
    pub(crate) fn delivered_bytes(&self) -> u64 {
        self.delivered
    }

    /// The first wrong byte, if there was one.
    pub(crate) fn integrity_error(&self) -> Option<IntegrityError> {
        self.integrity_error
    }

    /// Counts of the socket's transmissions.
    pub(crate) fn stats(&self) -> StockStats {
        self.stats
    }

    fn socket(&self) -> &Socket<'static> {
        self.sockets.get(self.handle)
    }

    fn socket_mut(&mut self) -> &mut Socket<'static> {
        self.sockets.get_mut(self.handle)
    }

    /// Something happened: hands the socket what it can take now, and asks when it wants to be
    /// polled.
    fn changed(&mut self, now: Time) {
        self.write_socket();
        self.paused_until = Time::ZERO;
        self.last_ack = None;
        self.poll_at = self.interface.poll_at(micros(now), &self.sockets);
    }

    /// Polls the socket once for a packet to send.
    fn poll(&mut self, now: Time) -> Option<Segment> {
        let (interface, device) = (&mut self.interface, &mut self.device);
        let _ = interface.poll_egress(micros(now), device, &mut self.sockets);
        self.poll_at = self.interface.poll_at(micros(now), &self.sockets);
        let Some(segment) = self.take_sent() else {
            if self.poll_at.is_some_and(|at| at <= micros(now)) {
                self.paused_until = now + PAUSE;
            }
            return None;
        };
        // In FIN-WAIT-2 behind a closed window smoltcp does not rearm its probe timer and
        // acknowledges without end.
        let is_bare_ack = segment.sequence_len() == 0 && !segment.flags.contains(Flags::RST);
        let sent = is_bare_ack.then_some((now, segment));
        if sent.is_some() && sent == self.last_ack {
            self.paused_until = now + PAUSE;
            return None;
        }
        self.last_ack = sent;
        Some(segment)
    }

    /// Fills the socket's send buffer with the stream, and closes it behind the last byte.
    fn write_socket(&mut self) {
        let socket = self.sockets.get_mut::<Socket<'_>>(self.handle);
        // Before ESTABLISHED smoltcp takes no data, and a close there would end the attempt.
        if !socket.may_send() {
            return;
        }
        while self.queued < self.written {
            let (from, left) = (self.queued, self.written - self.queued);
            let sent = socket.send(|room| {
                let len = left.min(room.len() as u64) as usize;
                pattern::fill(from, &mut room[..len]);
                (len, len as u64)
            });
            match sent {
                Ok(len) if len > 0 => self.queued += len,
                _ => return,
            }
        }
        if self.closing {
            socket.close();
        }
    }

    /// Reads and checks everything that is in order.
    fn read_socket(&mut self) {
        let socket = self.sockets.get_mut::<Socket<'_>>(self.handle);
        let (delivered, error) = (&mut self.delivered, &mut self.integrity_error);
        let before = *delivered;
        let end = loop {
            let read = socket.recv(|data| {
                if let Some(wrong) = pattern::first_mismatch(*delivered, data) {
                    error.get_or_insert(IntegrityError::Delivered(wrong));
                }
                (data.len(), data.len())
            });
            match read {
                Ok(len) if len > 0 => *delivered += len as u64,
                end => break end,
            }
        };
        self.unread += *delivered - before;
        self.peer_finished |= end == Err(smoltcp::socket::tcp::RecvError::Finished);
    }

    /// The packet that the socket left in the device, its data checked.
    fn take_sent(&mut self) -> Option<Segment> {
        let bytes = self.device.take_departure()?;
        let parsed = match codec::parse(bytes) {
            Ok(parsed) => parsed,
            Err(error) => {
                self.integrity_error.get_or_insert(IntegrityError::Unreadable(error));
                return None;
            }
        };
        let mut segment = parsed.segment;
        if segment.flags.contains(Flags::SYN) {
            self.isn = Some(segment.seq);
        }
        if segment.payload.len > 0 {
            let first = self.isn.unwrap_or_default().wrapping_add(1);
            let offset = lift(segment.seq.wrapping_sub(first), self.sent_end);
            segment.payload = Payload { offset, len: segment.payload.len };
            if let Some(wrong) = pattern::first_mismatch(offset, parsed.payload) {
                self.integrity_error.get_or_insert(IntegrityError::Sent(wrong));
            }
        }
        self.border.observe(&mut segment);
        Some(segment)
    }

    /// Books for what leaves.
    fn count(&mut self, segment: &Segment) {
        self.stats.packets += 1;
        let Payload { offset, len } = segment.payload;
        if len > 0 {
            self.stats.sent.sent_packets += 1;
            self.stats.sent.retransmitted_packets += u64::from(offset < self.sent_end);
            self.sent_end = self.sent_end.max(offset + u64::from(len));
        }
    }
}

impl fmt::Debug for Stock {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("Stock")
            .field("state", &self.socket().state())
            .field("written", &self.written)
            .field("queued", &self.queued)
            .field("acked", &self.acked_bytes())
            .field("delivered", &self.delivered)
            .field("poll_at", &self.poll_at)
            .field("paused_until", &self.paused_until)
            .field("stats", &self.stats)
            .field("integrity_error", &self.integrity_error)
            .finish_non_exhaustive()
    }
}
