//! Calls that open, accept and close connections.

use ackclock_tcp::{Error, Shutdown, State};
use ackclock_units::{Span, Time};

use super::{Done, Op, Step, Waiting};
use crate::args::{Args, CallError};
use crate::ast::Call;
use crate::errno::Errno;
use crate::sockets::{Kernel, Kind, SocketId};
use crate::system::System;

/// `IPPROTO_MPTCP`.
const MPTCP: i64 = 262;

impl Kernel {
    pub(super) fn call_socket(&mut self, args: &Args<'_>, call: &Call) -> Result<Done, CallError> {
        args.count(3..=3)?;
        let kind = args.integer(1)?;
        let (nonblock, cloexec) = (0x800, 0x80000);
        if kind & !(nonblock | cloexec) != 1 {
            return Err(CallError::Unsupported("sockets other than SOCK_STREAM".to_owned()));
        }
        let mptcp = match args.integer(2)? {
            0 | 6 => false,
            MPTCP if self.host.system == System::Linux => true,
            MPTCP => return Err(CallError::Unsupported("MPTCP on a host that is not Linux".to_owned())),
            _ => return Err(CallError::Unsupported("protocols other than TCP and MPTCP".to_owned())),
        };
        let fd = self.new_fd(args, call)?;
        self.add_socket(fd, kind & nonblock != 0, mptcp);
        Ok(Done::fd(fd))
    }

    pub(super) fn call_bind(&mut self, args: &Args<'_>) -> Result<Done, CallError> {
        args.count(3..=3)?;
        let id = match self.socket_arg(args, 0)? {
            Ok(id) => id,
            Err(errno) => return Ok(Done::failed(errno)),
        };
        if self.sockets[id].bound || !matches!(self.sockets[id].kind, Kind::New) {
            return Ok(Done::failed(Errno::EINVAL));
        }
        if self.port_is_taken(id, false) {
            return Ok(Done::failed(Errno::EADDRINUSE));
        }
        self.sockets[id].bound = true;
        Ok(Done::value(0))
    }

    pub(super) fn call_listen(&mut self, args: &Args<'_>) -> Result<Done, CallError> {
        args.count(2..=2)?;
        let backlog = args.integer(1)?;
        let id = match self.socket_arg(args, 0)? {
            Ok(id) => id,
            Err(errno) => return Ok(Done::failed(errno)),
        };
        // A negative backlog is a very large one: it is compared unsigned.
        let backlog = usize::try_from(backlog as u32).unwrap_or(usize::MAX).min(4096);
        match &mut self.sockets[id].kind {
            Kind::Open(_) | Kind::Multipath(_) => return Ok(Done::failed(Errno::EINVAL)),
            Kind::MultipathListening(listener) => {
                listener.set_backlog(backlog);
                return Ok(Done::value(0));
            }
            Kind::Listening(listener) => {
                listener.set_backlog(backlog);
                self.listens(id, backlog);
                return Ok(Done::value(0));
            }
            Kind::New => {}
        }
        if self.port_is_taken(id, true) {
            return Ok(Done::failed(Errno::EADDRINUSE));
        }
        self.listens(id, backlog);
        self.listen(id, backlog);
        Ok(Done::value(0))
    }

    pub(super) fn call_accept(&mut self, now: Time, args: &Args<'_>, call: &Call) -> Result<Step, CallError> {
        args.count(3..=4)?;
        let id = match self.socket_arg(args, 0)? {
            Ok(id) => id,
            Err(errno) => return Ok(Step::Done(Done::failed(errno))),
        };
        if !matches!(self.sockets[id].kind, Kind::Listening(_) | Kind::MultipathListening(_)) {
            return Ok(Step::Done(Done::failed(Errno::EINVAL)));
        }
        let nonblocking = call.name == "accept4" && args.integer(3)? & 0x800 != 0;
        let fd = self.new_fd(args, call)?;
        let op = Op::Accept { listener: id, fd, nonblocking };
        Ok(self.start(now, op, self.sockets[id].nonblocking, "a connection to accept"))
    }

    pub(super) fn call_connect(&mut self, now: Time, args: &Args<'_>) -> Result<Step, CallError> {
        args.count(3..=3)?;
        let id = match self.socket_arg(args, 0)? {
            Ok(id) => id,
            Err(errno) => return Ok(Step::Done(Done::failed(errno))),
        };
        if !args.is_ellipsis(1) && args.integer(1)? == 0 {
            // AF_UNSPEC: back to an unconnected socket (`tcp_disconnect`).
            return Ok(Step::Done(self.disconnect(now, id)));
        }
        let nonblocking = self.sockets[id].nonblocking;
        let wait = Op::Connect { socket: id };
        if self.sockets[id].deferred {
            return Ok(Step::Done(Done::failed(Errno::EISCONN)));
        }
        match &mut self.sockets[id].kind {
            Kind::New => {}
            Kind::Listening(_) | Kind::MultipathListening(_) => {
                return Ok(Step::Done(Done::failed(Errno::EISCONN)));
            }
            Kind::Multipath(multipath) => match multipath.state() {
                State::SynSent if nonblocking => return Ok(Step::Done(Done::failed(Errno::EALREADY))),
                State::SynSent => return Ok(self.start(now, wait, false, "the handshake")),
                State::Closed => {
                    let error = multipath.take_error();
                    self.sockets[id].kind = Kind::New;
                    if let Some(error) = error {
                        return Ok(Step::Done(Done::failed(error.into())));
                    }
                }
                _ => return Ok(Step::Done(Done::failed(Errno::EISCONN))),
            },
            Kind::Open(endpoint) => match endpoint.state() {
                State::SynSent | State::SynReceived if nonblocking => {
                    return Ok(Step::Done(Done::failed(Errno::EALREADY)));
                }
                State::SynSent | State::SynReceived => return Ok(self.start(now, wait, false, "the handshake")),
                State::Closed => {
                    if let Some(error) = endpoint.take_error() {
                        self.sockets[id].kind = Kind::New;
                        return Ok(Step::Done(Done::failed(error.into())));
                    }
                }
                _ => return Ok(Step::Done(Done::failed(Errno::EISCONN))),
            },
        }
        if self.connect_or_defer(now, id) {
            return Ok(Step::Done(Done::value(0)));
        }
        self.flush(now);
        Ok(self.start(now, wait, nonblocking, "the handshake"))
    }

    fn disconnect(&mut self, now: Time, id: SocketId) -> Done {
        match &mut self.sockets[id].kind {
            Kind::New => {}
            Kind::Listening(listener) => {
                listener.close(now);
                self.flush(now);
                self.sockets[id].kind = Kind::New;
            }
            Kind::Open(endpoint) => {
                endpoint.abort();
                self.flush(now);
                self.sockets[id].kind = Kind::New;
            }
            Kind::MultipathListening(listener) => {
                listener.close();
                self.flush(now);
                self.sockets[id].kind = Kind::New;
            }
            Kind::Multipath(multipath) => {
                multipath.close(now, true);
                self.flush(now);
                self.sockets[id].kind = Kind::New;
            }
        }
        Done::value(0)
    }

    /// The result of connect(), once it is known.
    pub(crate) fn connected(&mut self, id: SocketId) -> Option<Done> {
        let (state, error) = match &mut self.sockets.get_mut(id)?.kind {
            Kind::Open(endpoint) if endpoint.state() == State::Closed => {
                (State::Closed, endpoint.take_error().or(endpoint.error()))
            }
            Kind::Open(endpoint) => (endpoint.state(), None),
            Kind::Multipath(multipath) => (multipath.state(), multipath.connection.error()),
            _ => return None,
        };
        match state {
            State::SynSent | State::SynReceived => None,
            State::Closed => {
                let error = error.unwrap_or(Error::Refused);
                self.sockets[id].kind = Kind::New;
                Some(Done::failed(error.into()))
            }
            _ => {
                self.sockets[id].told_open = true;
                Some(Done::value(0))
            }
        }
    }

    pub(super) fn call_close(&mut self, now: Time, args: &Args<'_>) -> Result<Step, CallError> {
        args.count(1..=1)?;
        let fd = args.integer(0)?;
        if let Some(epoll) = self.epolls.iter_mut().find(|epoll| epoll.fd == Some(fd)) {
            epoll.fd = None;
            return Ok(Step::Done(Done::value(0)));
        }
        let id = match self.socket_arg(args, 0)? {
            Ok(id) => id,
            Err(errno) => return Ok(Step::Done(Done::failed(errno))),
        };
        self.epoll_forget(id);
        let socket = &mut self.sockets[id];
        socket.fd = None;
        let linger = socket.options.linger.filter(|span| *span > Span::ZERO && !socket.nonblocking);
        match &mut socket.kind {
            Kind::New => {}
            Kind::Listening(listener) => listener.close(now),
            Kind::MultipathListening(listener) => listener.close(),
            Kind::Multipath(_) if linger.is_some() => {
                return Err(CallError::Unsupported("a close of MPTCP that lingers".to_owned()));
            }
            Kind::Multipath(multipath) => multipath.close(now, socket.options.linger == Some(Span::ZERO)),
            Kind::Open(endpoint) => {
                endpoint.close(now);
                if let Some(linger) = linger
                    && !endpoint.state().is_close_complete()
                {
                    self.flush(now);
                    let what = "the end of the linger time, or of the connection";
                    return Ok(Step::Blocked(Waiting { op: Op::Linger, until: now + linger, what }));
                }
            }
        }
        Ok(Step::Done(Done::value(0)))
    }

    pub(super) fn call_shutdown(&mut self, now: Time, args: &Args<'_>) -> Result<Done, CallError> {
        args.count(2..=2)?;
        let id = match self.socket_arg(args, 0)? {
            Ok(id) => id,
            Err(errno) => return Ok(Done::failed(errno)),
        };
        let how = match args.integer(1)? {
            0 => Shutdown::Read,
            1 => Shutdown::Write,
            2 => Shutdown::Both,
            _ => return Ok(Done::failed(Errno::EINVAL)),
        };
        match &mut self.sockets[id].kind {
            Kind::New => Ok(Done::failed(Errno::ENOTCONN)),
            Kind::Listening(listener) => {
                if how != Shutdown::Write {
                    listener.close(Time::ZERO);
                    // Bound still, but not listening (`inet_csk_listen_stop`).
                    self.sockets[id].kind = Kind::New;
                }
                Ok(Done::value(0))
            }
            Kind::MultipathListening(listener) => {
                if how != Shutdown::Write {
                    listener.close();
                    self.flush(now);
                    self.sockets[id].kind = Kind::New;
                }
                Ok(Done::value(0))
            }
            Kind::Multipath(multipath) if multipath.state() == State::Closed => Ok(Done::failed(Errno::ENOTCONN)),
            Kind::Multipath(multipath) if multipath.is_opening() => {
                // Back to an unconnected socket (`inet_shutdown`).
                multipath.close(now, true);
                self.sockets[id].kind = Kind::New;
                Ok(Done::value(0))
            }
            Kind::Multipath(multipath) => {
                multipath.shutdown(now, how);
                Ok(Done::value(0))
            }
            Kind::Open(endpoint) if endpoint.state() == State::Closed => Ok(Done::failed(Errno::ENOTCONN)),
            Kind::Open(endpoint) => {
                endpoint.shutdown(how);
                Ok(Done::value(0))
            }
        }
    }
}
