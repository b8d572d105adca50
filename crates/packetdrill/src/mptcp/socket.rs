//! MPTCP sockets: what `ip mptcp` sets of a host, and the calls of an application on a connection.
//!
//! # Source
//! Linux `net/mptcp/protocol.c` (`mptcp_poll`, `mptcp_sendmsg`, `mptcp_recvmsg`, `__mptcp_close`),
//! `net/mptcp/pm_netlink.c`; ip-mptcp(8).

use std::collections::VecDeque;
use std::net::IpAddr;

use ackclock_mptcp::{Connection, MptcpConfig, Path, SchedulerKind};
use ackclock_packet::{MptcpOption, Segment};
use ackclock_tcp::{Error, Readiness, Received, Sending, Shutdown, State};
use ackclock_units::{Ecn, Span, Time};

use super::following;

/// `net.mptcp.add_addr_timeout`.
const ADD_ADDR_TIMEOUT: Span = Span::from_secs(120);
/// Value to which `common/server.sh` and `common/client.sh` of the public scripts set both limits.
const SUITE_LIMIT: u8 = 8;

/// The settings of `ip mptcp`.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) struct MptcpHost {
    /// Addresses of endpoints that are announced (`signal`).
    pub(crate) signalled: Vec<IpAddr>,
    /// Number of the peer's addresses that are used for further subflows.
    pub(crate) accepted: u8,
    /// Number of subflows of a connection beyond the first.
    pub(crate) subflows: u8,
    /// `address_id` of an expected `mp_join_syn_ack` is compared.
    pub(crate) check_address_id: bool,
}

impl Default for MptcpHost {
    fn default() -> MptcpHost {
        MptcpHost { signalled: Vec::new(), accepted: 0, subflows: 2, check_address_id: true }
    }
}

impl MptcpHost {
    /// Carries out `ip mptcp ...`; `None` if there is something in it that is not done here.
    pub(crate) fn command(&mut self, words: &[&str]) -> Option<()> {
        match words {
            ["endpoint" | "endpoints", "flush"] => self.signalled.clear(),
            ["endpoint" | "endpoints", "add", address, rest @ ..] => {
                let id = match rest {
                    ["signal"] | ["dev", _, "signal"] | ["signal", "dev", _] => None,
                    ["id", id, "signal"] | ["signal", "id", id] => Some(id.parse::<usize>().ok()?),
                    _ => return None,
                };
                // The kernel counts them from 1, and so do paths.
                if id.is_some_and(|id| id != self.signalled.len() + 1) {
                    return None;
                }
                self.signalled.push(address.parse().ok()?);
            }
            ["limits", "set", rest @ ..] if rest.len() % 2 == 0 => {
                for pair in rest.chunks_exact(2) {
                    let limit = pair[1].parse().ok().filter(|&limit: &u8| limit <= 8)?;
                    match pair[0] {
                        "add_addr_accepted" => self.accepted = limit,
                        "subflow" | "subflows" => self.subflows = limit,
                        _ => return None,
                    }
                }
            }
            _ => return None,
        }
        Some(())
    }

    /// Applies the first commands of the scripts of the public suite: both sides accept addresses
    /// and subflows, and a server announces the address behind its own.
    pub(crate) fn set_up_suite(&mut self, server: bool, local: IpAddr) {
        self.signalled.clear();
        self.signalled.extend(server.then(|| following(local, 1)));
        (self.accepted, self.subflows) = (SUITE_LIMIT, SUITE_LIMIT);
    }

    /// The settings of a connection between these addresses, ours first.
    pub(super) fn config(&self, [local, remote]: [IpAddr; 2], send_buffer: u64) -> MptcpConfig {
        MptcpConfig {
            paths: vec![Path { local, remote, backup: false }],
            scheduler: SchedulerKind::Linux,
            opportunistic_retransmission: false,
            penalization: false,
            send_buffer,
            join_unannounced: false,
            announcement_timeout: ADD_ADDR_TIMEOUT,
            foreign_peer: true,
        }
    }
}

/// A connection, and what the application has done to it.
#[derive(Debug)]
pub(crate) struct Multipath {
    pub(crate) connection: Connection,
    /// Its error was told.
    told: bool,
    /// The application reads no more, or writes no more.
    read_shut: bool,
    write_shut: bool,
}

impl Multipath {
    pub(super) fn new(connection: Connection) -> Multipath {
        Multipath { connection, told: false, read_shut: false, write_shut: false }
    }

    /// The state of the connection as a socket has it: ESTABLISHED as long as a subflow is open.
    pub(crate) fn state(&self) -> State {
        if self.connection.is_over() {
            State::Closed
        } else if self.connection.is_open() {
            State::Established
        } else {
            self.connection.subflows().first().map_or(State::Closed, |first| first.endpoint().state())
        }
    }

    /// Returns `true` if the socket waits for the handshake.
    pub(crate) fn is_opening(&self) -> bool {
        matches!(self.state(), State::SynSent | State::SynReceived | State::Listen)
    }

    /// The error that ended it, once.
    pub(crate) fn take_error(&mut self) -> Option<Error> {
        let error = self.connection.error().filter(|_| !self.told);
        self.told |= error.is_some();
        error
    }

    /// send(2) without blocking.
    pub(crate) fn send(&mut self, now: Time, bytes: u64) -> Sending {
        if self.is_opening() {
            return Sending::WouldBlock;
        }
        if self.write_shut || self.state() == State::Closed {
            return Sending::Failed(self.take_error().unwrap_or(Error::BrokenPipe));
        }
        match self.connection.write(now, bytes) {
            0 if bytes > 0 => Sending::WouldBlock,
            taken => Sending::Taken(taken),
        }
    }

    /// recv(2) without blocking: what has arrived is read before an error is told.
    pub(crate) fn receive(&mut self, most: u64) -> Received {
        let taken = self.connection.read(most);
        if taken > 0 || most == 0 {
            return Received::Data(taken);
        }
        match self.take_error() {
            Some(error) => Received::Failed(error),
            None if self.is_read_closed() => Received::EndOfFile,
            None => Received::WouldBlock,
        }
    }

    fn is_read_closed(&self) -> bool {
        self.read_shut || self.connection.peer_finished() || self.state() == State::Closed
    }

    /// The events that `poll` reports.
    pub(crate) fn readiness(&self) -> Readiness {
        if self.is_opening() {
            return Readiness::default();
        }
        let closed = self.state() == State::Closed;
        let error = !self.told && self.connection.error().is_some();
        let (read_closed, write_closed) = (self.is_read_closed(), self.write_shut || closed);
        Readiness {
            readable: self.connection.unread() > 0 || read_closed || error,
            writable: write_closed || self.connection.send_space() > 0,
            read_closed,
            hung_up: read_closed && write_closed,
            error,
        }
    }

    /// shutdown(2).
    pub(crate) fn shutdown(&mut self, now: Time, how: Shutdown) {
        self.read_shut |= how != Shutdown::Write;
        if how != Shutdown::Read && !self.write_shut {
            self.write_shut = true;
            self.connection.shutdown(now);
        }
    }

    /// close(2): with data unread, or if that is to be hard, the connection is aborted
    /// (`mptcp_do_fastclose`).
    pub(crate) fn close(&mut self, now: Time, hard: bool) {
        if self.is_opening() || hard || self.connection.unread() > 0 {
            self.connection.abort();
        } else {
            self.shutdown(now, Shutdown::Both);
        }
    }

    /// A segment arrives over a path. Addresses that the peer announces are used if `accepted` says
    /// so.
    pub(crate) fn input(&mut self, now: Time, path: usize, segment: &Segment, ecn: Ecn, accepted: u8) {
        for option in segment.mptcp.iter() {
            let paths = self.connection.paths();
            if let (MptcpOption::AddAddress(add), Some(first)) = (option, paths.first())
                && add.hmac.is_some()
                && paths.len() <= usize::from(accepted)
            {
                let path = Path { local: first.local, remote: add.address, backup: false };
                self.connection.add_path(path);
            }
        }
        self.connection.input(now, path, segment, ecn);
    }

    /// The peer is told of these addresses of ours, as Linux does once the connection is accepted
    /// (`mptcp_stream_accept`).
    pub(super) fn announce(&mut self, now: Time, addresses: &[IpAddr]) {
        let Some(&first) = self.connection.paths().first() else { return };
        for &local in addresses.iter().filter(|&&local| local != first.local) {
            if let Some(path) = self.connection.add_path(Path { local, ..first }) {
                self.connection.restore_path(now, path);
            }
        }
    }

    /// The next segment to be sent, with its addresses.
    pub(crate) fn transmit(&mut self, now: Time, out: &mut Segment) -> Option<(Ecn, Option<[IpAddr; 2]>)> {
        let ecn = self.connection.transmit(now, out)?;
        let path = self.connection.paths().get(self.connection.last_path());
        Some((ecn, path.map(|path| [path.local, path.remote])))
    }
}

/// A listening socket: connections that wait to be accepted, or for the end of their handshake.
#[derive(Debug)]
pub(crate) struct MultipathListener {
    backlog: usize,
    children: VecDeque<Child>,
    closed: bool,
}

#[derive(Debug)]
struct Child {
    multipath: Multipath,
    /// Its handshake was completed.
    ready: bool,
}

impl MultipathListener {
    pub(super) fn new(backlog: usize) -> MultipathListener {
        MultipathListener { backlog, children: VecDeque::new(), closed: false }
    }

    pub(crate) fn set_backlog(&mut self, backlog: usize) {
        self.backlog = backlog;
    }

    fn ready(&self) -> usize {
        self.children.iter().filter(|child| child.ready).count()
    }

    pub(crate) fn is_readable(&self) -> bool {
        self.ready() > 0
    }

    /// Returns `true` if another connection may begin (`sk_acceptq_is_full`), of which `half_open`
    /// may.
    pub(super) fn has_room(&self, half_open: usize) -> bool {
        let ready = self.ready();
        !self.closed && ready <= self.backlog && self.children.len() - ready < half_open
    }

    pub(super) fn add(&mut self, multipath: Multipath) {
        self.children.push_back(Child { multipath, ready: false });
    }

    /// The oldest connection whose handshake is over.
    pub(super) fn accept(&mut self) -> Option<Multipath> {
        let at = self.children.iter().position(|child| child.ready)?;
        self.children.remove(at).map(|child| child.multipath)
    }

    /// Its connections that were not accepted.
    pub(super) fn children(&mut self) -> impl Iterator<Item = &mut Multipath> {
        self.children.iter_mut().map(|child| &mut child.multipath)
    }

    /// Takes over what has become of its connections.
    pub(super) fn review(&mut self) {
        for child in &mut self.children {
            child.ready |= child.multipath.connection.is_open();
        }
        let lives = |child: &Child| child.ready || child.multipath.state() == State::SynReceived;
        self.children.retain(lives);
    }

    pub(crate) fn next_deadline(&self) -> Time {
        let deadlines = self.children.iter().map(|child| child.multipath.connection.next_deadline());
        deadlines.min().unwrap_or(Time::NEVER)
    }

    pub(crate) fn on_deadline(&mut self, now: Time) {
        for multipath in self.children().filter(|multipath| multipath.connection.next_deadline() <= now) {
            multipath.connection.on_deadline(now);
        }
        self.review();
    }

    pub(crate) fn transmit(&mut self, now: Time, out: &mut Segment) -> Option<(Ecn, Option<[IpAddr; 2]>)> {
        self.children().find_map(|multipath| multipath.transmit(now, out))
    }

    /// close(2): who was not accepted is reset.
    pub(crate) fn close(&mut self) {
        self.closed = true;
        self.children.retain(|child| child.ready);
        self.children().for_each(|multipath| multipath.connection.abort());
    }
}
