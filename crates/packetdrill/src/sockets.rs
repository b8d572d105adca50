//! The host's kernel: sockets by number, where an arriving segment goes, timers, and what leaves.

use std::collections::VecDeque;
use std::fmt;
use std::net::IpAddr;

use ackclock_packet::{OptionLayout, Segment};
use ackclock_tcp::{
    Controller, Endpoint, FastOpenAttempt, IcmpError, Listener, Numbers, Ports, SocketOption, State, reset_for,
};
use ackclock_units::{Ecn, Random, Span, Time};

use crate::epoll::Epoll;
use crate::host::Host;
use crate::mptcp::{Multipath, MultipathListener};
use crate::socket::SocketOptions;
use crate::system::System;

/// Where sockets are bound and connect to, as packetdrill does: every script has one server port.
pub(crate) const SERVER_PORT: u16 = 8080;
/// The first port of clients.
const CLIENT_PORT: u16 = 40_000;
/// Time to live unless set.
pub(crate) const TTL: u8 = 64;
/// Segments that one look at a socket may give: more than the largest window in segments of one
/// byte is a defect.
const MOST_SEGMENTS: usize = 1 << 20;

/// A socket, in order of creation.
pub(crate) type SocketId = usize;

#[derive(Debug)]
pub(crate) struct ScriptSocket {
    /// Its number in the script, while it is open.
    pub(crate) fd: Option<i64>,
    pub(crate) kind: Kind,
    /// `IPPROTO_MPTCP`.
    pub(crate) mptcp: bool,
    pub(crate) bound: bool,
    pub(crate) nonblocking: bool,
    pub(crate) options: SocketOptions,
    /// A connection was tried and failed: its error was told.
    pub(crate) failed: bool,
    /// The route that its last packet took ([`Route::version`]).
    ///
    /// [`Route::version`]: crate::route::Route::version
    pub(crate) route: u64,
    /// connect() has returned, but the SYN waits for data (`TCP_FASTOPEN_CONNECT`).
    pub(crate) deferred: bool,
    /// The application has been told that the connection is open (`SS_CONNECTED`).
    pub(crate) told_open: bool,
    /// The backlog of listen().
    pub(crate) backlog: usize,
}

/// The kinds of sockets.
pub(crate) enum Kind {
    New,
    Listening(Box<Listener>),
    Open(Box<Endpoint>),
    MultipathListening(Box<MultipathListener>),
    Multipath(Box<Multipath>),
}

impl fmt::Debug for Kind {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(match self {
            Kind::New => "New",
            Kind::Listening(_) => "Listening",
            Kind::Open(_) => "Open",
            Kind::MultipathListening(_) => "MultipathListening",
            Kind::Multipath(_) => "Multipath",
        })
    }
}

/// A packet that left.
#[derive(Clone, Debug)]
pub(crate) struct Sent {
    pub(crate) segment: Segment,
    pub(crate) ecn: Ecn,
    pub(crate) tos: u8,
    pub(crate) ttl: u8,
    /// Its addresses, ours first, if it is of an MPTCP connection.
    pub(crate) ends: Option<[IpAddr; 2]>,
}

/// The host.
#[derive(Debug)]
pub(crate) struct Kernel {
    pub(crate) host: Host,
    pub(crate) sockets: Vec<ScriptSocket>,
    pub(crate) epolls: Vec<Epoll>,
    /// Packets sent since the last look.
    pub(crate) sent: VecDeque<Sent>,
    random: Random,
    next_client: u16,
    /// Number of MPTCP connections so far.
    pub(crate) multipaths: u64,
    /// A socket that never ends sending.
    pub(crate) runaway: bool,
}

impl Kernel {
    pub(crate) fn new(host: Host) -> Kernel {
        Kernel {
            host,
            sockets: Vec::new(),
            epolls: Vec::new(),
            sent: VecDeque::new(),
            random: Random::for_component(0, 0, "packetdrill"),
            next_client: CLIENT_PORT,
            multipaths: 0,
            runaway: false,
        }
    }

    /// A port of a client, another each time.
    pub(crate) fn client_port(&mut self) -> u16 {
        let port = self.next_client;
        self.next_client = self.next_client.checked_add(1).unwrap_or(CLIENT_PORT);
        port
    }

    fn numbers(&mut self) -> Numbers {
        let bits = self.random.bits();
        Numbers { isn: bits as u32, ts_offset: (bits >> 32) as u32 }
    }

    /// Updates the settings of the host that open connections read whenever they send.
    pub(crate) fn retune(&mut self) {
        let rules = self.host.config.transfer.acc_ecn;
        for socket in &mut self.sockets {
            match &mut socket.kind {
                Kind::New | Kind::Multipath(_) | Kind::MultipathListening(_) => {}
                Kind::Listening(listener) => listener.set_acc_ecn_option(rules.option, rules.beacon),
                Kind::Open(endpoint) => endpoint.set_option(SocketOption::AccEcnOption(rules.option, rules.beacon)),
            }
        }
    }

    pub(crate) fn layout(&self) -> OptionLayout {
        self.host.config.transfer.options
    }

    /// The socket that the script calls `fd`: the last one, as accept() may give a number again.
    pub(crate) fn by_fd(&self, fd: i64) -> Option<SocketId> {
        self.sockets.iter().rposition(|socket| socket.fd == Some(fd))
    }

    /// Returns `true` if `fd` is in use.
    pub(crate) fn is_open(&self, fd: i64) -> bool {
        self.by_fd(fd).is_some() || self.epolls.iter().any(|epoll| epoll.fd == Some(fd))
    }

    /// The lowest number that is free, above those of the standard streams.
    pub(crate) fn free_fd(&self) -> i64 {
        (3..).find(|&fd| !self.is_open(fd)).unwrap_or(i64::MAX)
    }

    pub(crate) fn add_socket(&mut self, fd: i64, nonblocking: bool, mptcp: bool) -> SocketId {
        self.sockets.push(ScriptSocket {
            fd: Some(fd),
            kind: Kind::New,
            mptcp,
            bound: false,
            nonblocking,
            options: SocketOptions::default(),
            failed: false,
            route: self.host.route.version,
            deferred: false,
            told_open: false,
            backlog: 0,
        });
        self.sockets.len() - 1
    }

    /// Returns `true` if another socket keeps `id` from the server port (Linux
    /// `inet_csk_get_port`).
    pub(crate) fn port_is_taken(&self, id: SocketId, to_listen: bool) -> bool {
        let reuse = self.sockets[id].options.reuse_address;
        self.sockets.iter().enumerate().any(|(other, socket)| {
            if other == id {
                return false;
            }
            match &socket.kind {
                Kind::New => socket.bound && socket.fd.is_some() && !(reuse && socket.options.reuse_address),
                Kind::Listening(_) | Kind::MultipathListening(_) => socket.fd.is_some(),
                Kind::Multipath(multipath) => {
                    !to_listen
                        && socket.bound
                        && multipath.state() != State::Closed
                        && !(reuse && socket.options.reuse_address)
                }
                Kind::Open(endpoint) => {
                    !to_listen
                        && endpoint.ports().local == SERVER_PORT
                        && endpoint.state() != State::Closed
                        && !(reuse && socket.options.reuse_address)
                }
            }
        })
    }

    /// listen().
    pub(crate) fn listen(&mut self, id: SocketId, backlog: usize) {
        if self.sockets[id].mptcp {
            return self.listen_multipath(id, backlog);
        }
        let config = self.sockets[id].options.config(&self.host);
        let kind = self.cc_of(id);
        let host = self.host.clone();
        let make_cc = Box::new(move || host.congestion_control(kind));
        // A stream of its own: the children's numbers do not depend on what else the host draws.
        let mut random = Random::for_component(0, id as u64, "packetdrill.listener");
        let numbers = Box::new(move || {
            let bits = random.bits();
            Numbers { isn: bits as u32, ts_offset: (bits >> 32) as u32 }
        });
        let listener = Listener::new(config, make_cc, SERVER_PORT, backlog, numbers);
        let socket = &mut self.sockets[id];
        socket.bound = true;
        socket.kind = Kind::Listening(Box::new(listener));
    }

    /// connect() on a socket that is new: the SYN waits to be sent, with Fast Open if that is
    /// attempted.
    pub(crate) fn connect(&mut self, id: SocketId, fast_open: Option<FastOpenAttempt>) -> Ports {
        let local = if self.sockets[id].bound { SERVER_PORT } else { self.client_port() };
        let ports = Ports { local, remote: SERVER_PORT };
        if self.sockets[id].mptcp {
            self.connect_multipath(id, ports);
            return ports;
        }
        let numbers = self.numbers();
        let options = &self.sockets[id].options;
        let config = options.config(&self.host);
        let cc = self.host.congestion_control(self.cc_of(id));
        let mut endpoint = Endpoint::new(config, cc, ports, numbers.isn, numbers.ts_offset);
        options.set_up(&self.host, &mut endpoint);
        match fast_open {
            Some(attempt) => endpoint.connect_fast_open(attempt),
            None => endpoint.connect(),
        }
        self.sockets[id].kind = Kind::Open(Box::new(endpoint));
        self.sockets[id].route = self.host.route.version;
        ports
    }

    /// accept(): the oldest connection of the listener gets a socket with number `fd`.
    pub(crate) fn accept(&mut self, now: Time, listener: SocketId, fd: i64) -> Option<SocketId> {
        let options = self.sockets[listener].options.clone();
        let kind = match &mut self.sockets[listener].kind {
            Kind::Listening(queue) => {
                let mut endpoint = queue.accept()?;
                options.set_up(&self.host, &mut endpoint);
                Kind::Open(Box::new(endpoint))
            }
            _ => self.accept_multipath(now, listener)?,
        };
        self.sockets.push(ScriptSocket {
            fd: Some(fd),
            kind,
            mptcp: self.sockets[listener].mptcp,
            bound: true,
            nonblocking: false,
            options,
            failed: false,
            route: self.host.route.version,
            deferred: false,
            told_open: true,
            backlog: 0,
        });
        Some(self.sockets.len() - 1)
    }

    pub(crate) fn cc_of(&self, id: SocketId) -> &'static Controller {
        self.sockets[id].options.cc.unwrap_or(self.host.cc)
    }

    /// The endpoint of a connection; of MPTCP that of the first subflow.
    pub(crate) fn endpoint(&self, id: SocketId) -> Option<&Endpoint> {
        match &self.sockets.get(id)?.kind {
            Kind::Open(endpoint) => Some(endpoint),
            Kind::Multipath(multipath) => multipath.connection.subflows().first().map(|first| first.endpoint()),
            _ => None,
        }
    }

    pub(crate) fn endpoint_mut(&mut self, id: SocketId) -> Option<&mut Endpoint> {
        match &mut self.sockets.get_mut(id)?.kind {
            Kind::Open(endpoint) => Some(endpoint),
            _ => None,
        }
    }

    /// Time to live of a reset to whom nobody answers: FreeBSD asks the socket that is bound there.
    fn reset_ttl(&self) -> u8 {
        let bound = self.sockets.iter().find(|socket| socket.bound && socket.fd.is_some());
        match self.host.system {
            System::FreeBsd => bound.and_then(|socket| socket.options.ttl).unwrap_or(TTL),
            System::Linux => TTL,
        }
    }

    /// The connection with these ports.
    fn open_at(&self, ports: Ports) -> Option<SocketId> {
        self.sockets.iter().rposition(|socket| match &socket.kind {
            Kind::Open(endpoint) => endpoint.ports() == ports && endpoint.state() != State::Closed,
            _ => false,
        })
    }

    fn drop_time_wait(&mut self, ports: Ports) {
        if let Some(id) = self.open_at(ports)
            && let Some(endpoint) = self.endpoint_mut(id)
        {
            endpoint.abort();
        }
    }

    /// A segment arrives between two addresses, ours first.
    pub(crate) fn input(&mut self, now: Time, ends: [IpAddr; 2], segment: &Segment, ecn: Ecn) {
        if self.input_multipath(now, ends, segment, ecn) {
            return;
        }
        let ports = Ports { local: segment.destination_port, remote: segment.source_port };
        let mut least = None;
        if let Some(id) = self.open_at(ports)
            && let Some(endpoint) = self.endpoint_mut(id)
        {
            least = endpoint.yields_to(segment);
            if least.is_none() {
                endpoint.input(now, segment, ecn);
                return;
            }
        }
        // After close() the listener still sends its resets, and takes nothing in.
        let listens = |socket: &ScriptSocket| matches!(socket.kind, Kind::Listening(_)) && socket.fd.is_some();
        let listening = self.sockets.iter().position(listens).filter(|_| ports.local == SERVER_PORT);
        let fast_open = listening.and_then(|id| self.fast_open_server(id));
        let listening = listening.and_then(|id| match &mut self.sockets[id].kind {
            Kind::Listening(listener) => {
                listener.set_fast_open(fast_open);
                Some(listener)
            }
            _ => None,
        });
        match (listening, least) {
            (Some(listener), None) => listener.input(now, segment, ecn),
            (Some(listener), Some(least)) => {
                // The new connection takes the place of the one in TIME-WAIT.
                listener.input_reopening(now, segment, ecn, least);
                self.drop_time_wait(ports);
            }
            (None, _) if least.is_some() => {
                if let Some(id) = self.open_at(ports)
                    && let Some(endpoint) = self.endpoint_mut(id)
                {
                    endpoint.input(now, segment, ecn);
                }
            }
            (None, _) => {
                if let Some(reset) = reset_for(segment) {
                    let ttl = self.reset_ttl();
                    self.sent.push_back(Sent { segment: reset, ecn: Ecn::NotEct, tos: 0, ttl, ends: None });
                }
            }
        }
    }

    /// An ICMP error arrives, about a segment that was sent between these addresses and ports.
    pub(crate) fn icmp(&mut self, now: Time, ends: [IpAddr; 2], ports: Ports, error: &IcmpError) {
        if self.icmp_multipath(now, ends, ports, error) {
            return;
        }
        let path = &self.host.config.path;
        let (may_reset, timeout) = (path.may_reset, path.timeout);
        if let Some(id) = self.open_at(ports)
            && let Some(endpoint) = self.endpoint_mut(id)
        {
            endpoint.set_option(SocketOption::IcmpMayReset(may_reset));
            let before = endpoint.sender().path_mtu();
            endpoint.icmp(now, error);
            let mtu = endpoint.sender().path_mtu();
            if mtu < before {
                // FreeBSD's host cache keeps it for an hour.
                let holds = timeout.unwrap_or(Span::from_secs(3600));
                self.host.route.learn(mtu, now + holds);
                self.note_route();
            }
            return;
        }
        for socket in &mut self.sockets {
            if let Kind::Listening(listener) = &mut socket.kind
                && ports.local == SERVER_PORT
            {
                listener.icmp(now, ports.remote, error);
            }
        }
    }

    /// The route may have changed: connections to come know it.
    pub(crate) fn note_route(&mut self) {
        if self.host.route.version == 0 {
            return;
        }
        for id in 0..self.sockets.len() {
            let config = self.sockets[id].options.config(&self.host);
            if let Kind::Listening(listener) = &mut self.sockets[id].kind {
                *listener.config_mut() = config;
            }
        }
    }

    /// The earliest deadline of all sockets.
    pub(crate) fn next_deadline(&self) -> Time {
        let deadlines = self.sockets.iter().map(|socket| match &socket.kind {
            Kind::New => Time::NEVER,
            Kind::Listening(listener) => listener.next_deadline(),
            Kind::Open(endpoint) => endpoint.next_deadline(),
            Kind::MultipathListening(listener) => listener.next_deadline(),
            Kind::Multipath(multipath) => multipath.connection.next_deadline(),
        });
        deadlines.min().unwrap_or(Time::NEVER).min(self.host.route.deadline())
    }

    /// Does what is due at `now`.
    pub(crate) fn on_deadline(&mut self, now: Time) {
        if self.host.route.expire(now) {
            self.note_route();
        }
        for socket in &mut self.sockets {
            match &mut socket.kind {
                Kind::New => {}
                Kind::Listening(listener) => {
                    if listener.next_deadline() <= now {
                        listener.on_deadline(now);
                    }
                }
                Kind::Open(endpoint) => {
                    if endpoint.next_deadline() <= now {
                        endpoint.on_deadline(now);
                    }
                }
                Kind::MultipathListening(listener) => {
                    if listener.next_deadline() <= now {
                        listener.on_deadline(now);
                    }
                }
                Kind::Multipath(multipath) => {
                    if multipath.connection.next_deadline() <= now {
                        multipath.connection.on_deadline(now);
                    }
                }
            }
        }
    }

    /// Asks every socket for what it has to send.
    pub(crate) fn flush(&mut self, now: Time) {
        self.learn_fast_open(now);
        let mut segment = Segment::default();
        let (route, mtu) = (self.host.route.version, self.host.route.mtu(self.host.mtu));
        let follows = self.host.system == System::Linux && route > 0;
        for socket in &mut self.sockets {
            if follows
                && socket.route == route
                && let Kind::Open(endpoint) = &mut socket.kind
                && endpoint.sender().sequence().unsent() > 0
                && endpoint.sender().path_mtu() != mtu
            {
                // tcp_current_mss; the new route was found when the last packet was sent
                // (__sk_dst_check).
                endpoint.set_path_mtu(mtu);
            }
            let (tos, ttl) = (socket.options.tos & !0b11, socket.options.ttl.unwrap_or(TTL));
            for round in 0.. {
                let sent = match &mut socket.kind {
                    Kind::New => None,
                    Kind::Listening(listener) => listener.transmit(now, &mut segment).map(|ecn| (ecn, None)),
                    Kind::Open(endpoint) => endpoint.transmit(now, &mut segment).map(|ecn| (ecn, None)),
                    Kind::MultipathListening(listener) => listener.transmit(now, &mut segment),
                    Kind::Multipath(multipath) => multipath.transmit(now, &mut segment),
                };
                let Some((ecn, ends)) = sent else { break };
                self.sent.push_back(Sent { segment, ecn, tos, ttl, ends });
                socket.route = route;
                if round > MOST_SEGMENTS {
                    self.runaway = true;
                    return;
                }
            }
        }
    }
}
