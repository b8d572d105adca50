//! MPTCP among the host's sockets: which connection a segment is of, and how connections begin.

use std::net::IpAddr;

use ackclock_mptcp::{Connection, MakeController, Path};
use ackclock_packet::{Flags, MptcpOption, Segment};
use ackclock_tcp::{Config, Controller, IcmpError, Ports, State, reset_for};
use ackclock_units::{Ecn, Random, Time};

use super::socket::{Multipath, MultipathListener};
use crate::sockets::{Kernel, Kind, SERVER_PORT, Sent, SocketId, TTL};

/// The reason for which a subflow is refused (RFC 8684 section 3.2; IANA registry "MPTCP MP_TCPRST
/// Reason Codes").
const MPTCP_SPECIFIC: u8 = 1;

impl Kernel {
    pub(crate) fn multipath(&self, id: SocketId) -> Option<&Multipath> {
        match &self.sockets.get(id)?.kind {
            Kind::Multipath(multipath) => Some(multipath),
            _ => None,
        }
    }

    pub(crate) fn multipath_mut(&mut self, id: SocketId) -> Option<&mut Multipath> {
        match &mut self.sockets.get_mut(id)?.kind {
            Kind::Multipath(multipath) => Some(multipath),
            _ => None,
        }
    }

    /// All connections, the newest first, and those of listening sockets after them.
    fn multipaths(&mut self) -> impl Iterator<Item = &mut Multipath> {
        let (mut open, mut listening) = (Vec::new(), Vec::new());
        for socket in self.sockets.iter_mut().rev() {
            match &mut socket.kind {
                Kind::Multipath(multipath) => open.push(&mut **multipath),
                Kind::MultipathListening(listener) => listening.push(listener),
                Kind::New | Kind::Listening(_) | Kind::Open(_) => {}
            }
        }
        open.into_iter().chain(listening.into_iter().flat_map(|listener| listener.children()))
    }

    /// The factory of subflows' controllers.
    pub(crate) fn make_controller(&self, controller: &'static Controller) -> MakeController {
        let host = self.host.clone();
        Box::new(move |_| host.congestion_control(controller))
    }

    /// A connection between two addresses, ours first, with the options of a socket.
    fn new_multipath(&mut self, id: SocketId, ends: [IpAddr; 2], ports: Ports) -> Multipath {
        let tcp: Config = self.sockets[id].options.config(&self.host);
        let config = self.host.mptcp.config(ends, tcp.send_buffer);
        let make_controller = self.make_controller(self.cc_of(id));
        self.multipaths += 1;
        // A stream of its own, as each listener has one.
        let random = Random::for_component(0, self.multipaths, "packetdrill.mptcp");
        Multipath::new(Connection::new(config, tcp, make_controller, ports, random))
    }

    /// connect() on a socket that is new.
    pub(crate) fn connect_multipath(&mut self, id: SocketId, ports: Ports) {
        let mut multipath = self.new_multipath(id, self.host.ends(), ports);
        multipath.connection.connect();
        self.sockets[id].kind = Kind::Multipath(Box::new(multipath));
    }

    /// listen().
    pub(crate) fn listen_multipath(&mut self, id: SocketId, backlog: usize) {
        self.sockets[id].bound = true;
        self.sockets[id].kind = Kind::MultipathListening(Box::new(MultipathListener::new(backlog)));
    }

    /// accept(), if the socket is one of MPTCP.
    pub(crate) fn accept_multipath(&mut self, now: Time, listener: SocketId) -> Option<Kind> {
        match &mut self.sockets[listener].kind {
            Kind::MultipathListening(listener) => {
                let mut multipath = listener.accept()?;
                multipath.announce(now, &self.host.mptcp.signalled);
                Some(Kind::Multipath(Box::new(multipath)))
            }
            _ => None,
        }
    }

    /// A segment arrives between two addresses, ours first: `false` if no MPTCP socket takes it.
    pub(crate) fn input_multipath(&mut self, now: Time, ends: [IpAddr; 2], segment: &Segment, ecn: Ecn) -> bool {
        let accepted = self.host.mptcp.accepted.min(self.host.mptcp.subflows);
        let known = self.multipaths().find_map(|multipath| {
            let path = path_between(&multipath.connection, ends)?;
            multipath.connection.subflow_of(path, segment).map(|_| ())?;
            Some((multipath, path))
        });
        if let Some((multipath, path)) = known {
            multipath.input(now, path, segment, ecn, accepted);
        } else {
            let is_syn = segment.flags.contains(Flags::SYN)
                && !segment.flags.contains(Flags::ACK)
                && !segment.flags.contains(Flags::RST);
            let listens = |kind: &Kind| matches!(kind, Kind::MultipathListening(_));
            let listening = self.sockets.iter().position(|socket| listens(&socket.kind) && socket.fd.is_some());
            let listening = listening.filter(|_| segment.destination_port == SERVER_PORT);
            match (join_token(segment).filter(|_| is_syn), listening) {
                (Some(token), listening) => {
                    let is_ours = self.join(now, ends, segment, ecn, token);
                    if !is_ours && listening.is_none() {
                        return false;
                    }
                    if !is_ours {
                        self.refuse(ends, segment, Some(MPTCP_SPECIFIC));
                    }
                }
                (None, Some(id)) if is_syn => self.open_child(now, id, ends, segment, ecn),
                (None, Some(_)) => self.refuse(ends, segment, None),
                (None, None) => return false,
            }
        }
        for socket in &mut self.sockets {
            if let Kind::MultipathListening(listener) = &mut socket.kind {
                listener.review();
            }
        }
        true
    }

    /// An ICMP error about a segment of ours: `false` if that is of no MPTCP connection.
    pub(crate) fn icmp_multipath(&mut self, now: Time, ends: [IpAddr; 2], ports: Ports, error: &IcmpError) -> bool {
        let answer = Segment { source_port: ports.remote, destination_port: ports.local, ..Segment::default() };
        for multipath in self.multipaths() {
            let path = path_between(&multipath.connection, ends);
            if let Some(path) = path.filter(|&path| multipath.connection.subflow_of(path, &answer).is_some()) {
                multipath.connection.icmp(now, path, error);
                return true;
            }
        }
        false
    }

    /// The SYN of a further subflow; `false` if there is no connection with this token.
    fn join(&mut self, now: Time, ends: [IpAddr; 2], segment: &Segment, ecn: Ecn, token: u32) -> bool {
        let most = 1 + usize::from(self.host.mptcp.subflows);
        let Some(multipath) = self
            .multipaths()
            .find(|multipath| multipath.connection.is_multipath() && multipath.connection.token() == token)
        else {
            return false;
        };
        let connection = &mut multipath.connection;
        let live = connection.subflows().iter().filter(|subflow| subflow.endpoint().state() != State::Closed);
        let [local, remote] = ends;
        let may_join = live.count() < most;
        match connection.add_path(Path { local, remote, backup: false }).filter(|_| may_join) {
            Some(path) => {
                connection.input(now, path, segment, ecn);
            }
            None => self.refuse(ends, segment, Some(MPTCP_SPECIFIC)),
        }
        true
    }

    /// A SYN opens a connection.
    fn open_child(&mut self, now: Time, id: SocketId, ends: [IpAddr; 2], segment: &Segment, ecn: Ecn) {
        let half_open = self.host.config.states.syn_queue;
        if !matches!(&self.sockets[id].kind, Kind::MultipathListening(listener) if listener.has_room(half_open)) {
            return;
        }
        let ports = Ports { local: segment.destination_port, remote: segment.source_port };
        let mut child = self.new_multipath(id, ends, ports);
        child.connection.listen();
        child.connection.input(now, 0, segment, ecn);
        if let Kind::MultipathListening(listener) = &mut self.sockets[id].kind {
            listener.add(child);
        }
    }

    fn refuse(&mut self, ends: [IpAddr; 2], segment: &Segment, reason: Option<u8>) {
        let Some(mut reset) = reset_for(segment) else { return };
        if let Some(reason) = reason {
            reset.mptcp.push(&MptcpOption::Reset { transient: false, reason });
        }
        self.sent.push_back(Sent { segment: reset, ecn: Ecn::NotEct, tos: 0, ttl: TTL, ends: Some(ends) });
    }
}

fn path_between(connection: &Connection, [local, remote]: [IpAddr; 2]) -> Option<usize> {
    connection.paths().iter().position(|path| (path.local, path.remote) == (local, remote))
}

fn join_token(segment: &Segment) -> Option<u32> {
    segment.mptcp.iter().find_map(|option| match option {
        MptcpOption::JoinSyn { token, .. } => Some(token),
        _ => None,
    })
}
