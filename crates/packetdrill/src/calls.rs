//! The system calls of a script, carried out on the host's sockets.
//!
//! # Source
//! Which arguments are looked at and how results are compared: packetdrill's `run_system_call.c`.
//! What the calls do: Linux `net/socket.c`, `net/ipv4/af_inet.c`, `net/ipv4/tcp.c`,
//! `net/ipv4/inet_connection_sock.c`, `fs/eventpoll.c`.

use ackclock_tcp::{Endpoint, Error, Received, Sending, Shutdown, State};
use ackclock_units::{Span, Time};

use crate::args::{Args, CallError, integer};
use crate::ast::{Call, Expr};
use crate::epoll::{ERR, Epoll, HUP, NVAL};
use crate::errno::Errno;
use crate::fast_open::MSG_FASTOPEN;
use crate::host::System;
use crate::shapes::{Expected, Message, control, event_data, message_vector, part, parts, vector};
use crate::socket;
use crate::sockets::{Kernel, Kind, SocketId};

const PEEK: i64 = 0x2;
const TRUNC: i64 = 0x20;
pub(crate) const DONTWAIT: i64 = 0x40;
const EOR: i64 = 0x80;
const WAITALL: i64 = 0x100;
const MORE: i64 = 0x8000;
const NOSIGNAL: i64 = 0x4000;

/// A call that returned.
#[derive(Clone, Debug, PartialEq)]
pub(crate) struct Done {
    /// What it returned; -1 for an error.
    pub(crate) value: i64,
    pub(crate) errno: Option<Errno>,
    /// Where what it wrote through its arguments is not what the script expects.
    pub(crate) complaint: Option<String>,
    /// The result is a file descriptor: any is as good as any other.
    pub(crate) is_fd: bool,
}

impl Done {
    pub(crate) fn value(value: i64) -> Done {
        Done { value, errno: None, complaint: None, is_fd: false }
    }

    pub(crate) fn failed(errno: Errno) -> Done {
        Done { value: -1, errno: Some(errno), complaint: None, is_fd: false }
    }

    fn fd(value: i64) -> Done {
        Done { is_fd: true, ..Done::value(value) }
    }
}

/// How far a call came.
#[derive(Clone, Debug, PartialEq)]
pub(crate) enum Step {
    Done(Done),
    /// It waits.
    Blocked(Waiting),
}

/// A call that waits for something to happen on its socket.
#[derive(Clone, Debug, PartialEq)]
pub(crate) struct Waiting {
    pub(crate) op: Op,
    /// When it stops waiting.
    pub(crate) until: Time,
    /// For what, in a few words.
    pub(crate) what: &'static str,
}

/// The calls that can wait.
#[derive(Clone, Debug, PartialEq)]
pub(crate) enum Op {
    Accept { listener: SocketId, fd: i64, nonblocking: bool },
    Connect { socket: SocketId },
    FastOpen { socket: SocketId, total: u64, sent: u64, flags: i64 },
    Send { socket: SocketId, total: u64, sent: u64, flags: i64, asleep: bool },
    Receive { socket: SocketId, most: u64, got: u64, flags: i64, message: Option<Message> },
    Poll { fds: Vec<Polled> },
    Epoll { epoll: usize, most: usize, expected: Expected },
    Linger,
}

/// One `struct pollfd`.
#[derive(Clone, Debug, PartialEq)]
pub(crate) struct Polled {
    fd: i64,
    events: u32,
    expected: Option<u32>,
}

impl Kernel {
    /// Carries `call` out as far as it goes.
    pub(crate) fn call(&mut self, now: Time, call: &Call) -> Result<Step, CallError> {
        let args = Args::new(call, self.host.system);
        let done = match call.name.as_str() {
            "socket" => self.call_socket(&args, call)?,
            "bind" => self.call_bind(&args)?,
            "listen" => self.call_listen(&args)?,
            "accept" | "accept4" => return self.call_accept(now, &args, call),
            "connect" => return self.call_connect(now, &args),
            "read" => return self.call_receive(now, &args, 3..=3, None),
            "recv" => return self.call_receive(now, &args, 4..=4, Some(3)),
            "recvfrom" => return self.call_receive(now, &args, 6..=6, Some(3)),
            "readv" => return self.call_readv(now, &args),
            "recvmsg" => return self.call_recvmsg(now, &args),
            "write" => return self.call_send(now, &args, 3..=3, None),
            "send" => return self.call_send(now, &args, 4..=4, Some(3)),
            "sendto" => return self.call_send(now, &args, 6..=6, Some(3)),
            "writev" => return self.call_writev(now, &args),
            "sendmsg" => return self.call_sendmsg(now, &args),
            "close" => return self.call_close(now, &args),
            "shutdown" => self.call_shutdown(&args)?,
            "setsockopt" => {
                args.count(5..=5)?;
                match self.socket_arg(&args, 0)? {
                    Ok(id) => self.set_option(now, id, &args)?,
                    Err(errno) => Done::failed(errno),
                }
            }
            "getsockopt" => {
                args.count(5..=5)?;
                match self.socket_arg(&args, 0)? {
                    Ok(id) => self.get_option(id, &args)?,
                    Err(errno) => Done::failed(errno),
                }
            }
            "fcntl" => self.call_fcntl(&args)?,
            "ioctl" => self.call_ioctl(&args)?,
            "poll" => return self.call_poll(now, &args),
            "epoll_create" | "epoll_create1" => {
                args.count(1..=1)?;
                let fd = self.new_fd(&args, call)?;
                self.epolls.push(Epoll::new(fd));
                Done::fd(fd)
            }
            "epoll_ctl" => self.call_epoll_ctl(&args)?,
            "epoll_wait" => return self.call_epoll_wait(now, &args),
            name => return Err(CallError::Unsupported(format!("the call {name}()"))),
        };
        Ok(Step::Done(done))
    }

    /// Goes on with a call that waits, if it can.
    pub(crate) fn resume(&mut self, now: Time, waiting: Waiting) -> Step {
        let Waiting { op, until, what } = waiting;
        match self.attempt(now, op) {
            Ok(done) => Step::Done(done),
            Err((op, timed_out)) if until <= now => Step::Done(match op {
                Op::Linger => Done::value(0),
                _ => timed_out,
            }),
            Err((op, _)) => Step::Blocked(Waiting { op, until, what }),
        }
    }

    /// Tries an operation once. `Err` gives it back, and what it would return if the time were
    /// over.
    fn attempt(&mut self, now: Time, op: Op) -> Result<Done, (Op, Done)> {
        match op {
            Op::Accept { listener, fd, nonblocking } => match self.accept(listener, fd) {
                Some(id) => {
                    self.sockets[id].nonblocking = nonblocking;
                    Ok(Done::fd(fd))
                }
                None => Err((op, Done::failed(Errno::EAGAIN))),
            },
            Op::Connect { socket } => match self.connected(socket) {
                Some(done) => Ok(done),
                None => Err((op, Done::failed(Errno::EINPROGRESS))),
            },
            Op::FastOpen { socket, total, sent, flags } => self.attempt_fast_open(socket, total, sent, flags),
            Op::Send { socket, total, sent, flags, asleep } => {
                // Who sleeps is woken when there is room worth the while (`sk_stream_write_space`).
                let sleeps = asleep
                    && self.endpoint(socket).is_some_and(|endpoint| {
                        let ready = endpoint.readiness();
                        !ready.writable && !ready.hung_up && !ready.error
                    });
                if sleeps {
                    let done = if sent > 0 { Done::value(sent as i64) } else { Done::failed(Errno::EAGAIN) };
                    return Err((Op::Send { socket, total, sent, flags, asleep }, done));
                }
                self.attempt_send(socket, total, sent, flags)
            }
            Op::Receive { socket, most, got, flags, message } => {
                self.attempt_receive(now, socket, most, got, flags, message)
            }
            Op::Poll { fds } => {
                let found: Vec<u32> = fds.iter().map(|polled| self.polled(polled)).collect();
                let count = found.iter().filter(|&&events| events != 0).count();
                let mut done = Done::value(count as i64);
                done.complaint = fds.iter().zip(&found).find_map(|(polled, &found)| {
                    let expected = polled.expected?;
                    (expected != found)
                        .then(|| format!("revents of fd {}: expected {expected:#x}, got {found:#x}", polled.fd))
                });
                if count > 0 { Ok(done) } else { Err((Op::Poll { fds }, done)) }
            }
            Op::Epoll { epoll, most, expected } => {
                let ready = self.epoll_collect(epoll, most);
                let mut done = Done::value(ready.len() as i64);
                match ready.first() {
                    Some(first) => {
                        done.complaint = expected.complaint(first);
                        Ok(done)
                    }
                    None => {
                        // The buffer stays as it was: zeros.
                        done.complaint = expected.complaint_of_nothing();
                        Err((Op::Epoll { epoll, most, expected }, done))
                    }
                }
            }
            Op::Linger => Err((op, Done::value(0))),
        }
    }

    fn polled(&self, polled: &Polled) -> u32 {
        match self.by_fd(polled.fd) {
            Some(id) => self.poll_mask(id) & (polled.events | ERR | HUP),
            None if polled.fd < 0 => 0,
            None => NVAL,
        }
    }

    /// The socket that an argument names. A number that is none is a mistake of the script, one
    /// that was closed an error.
    fn socket_arg(&self, args: &Args<'_>, index: usize) -> Result<Result<SocketId, Errno>, CallError> {
        let fd = args.integer(index)?;
        Ok(self.by_fd(fd).ok_or(if self.is_open(fd) { Errno::ENOTSOCK } else { Errno::EBADF }))
    }

    /// The number that the script gives to a new descriptor.
    fn new_fd(&self, args: &Args<'_>, call: &Call) -> Result<i64, CallError> {
        match &call.result {
            Expr::Ellipsis => Ok(self.free_fd()),
            result => match integer(result, args.system)? {
                ..0 => Ok(self.free_fd()),
                // Scripts reuse the number of a connection that they are done with.
                fd if self.is_open(fd) && !call.name.starts_with("accept") => {
                    Err(CallError::Script(format!("fd {fd} is in use")))
                }
                fd => Ok(fd),
            },
        }
    }

    fn call_socket(&mut self, args: &Args<'_>, call: &Call) -> Result<Done, CallError> {
        args.count(3..=3)?;
        let kind = args.integer(1)?;
        let (nonblock, cloexec) = (0x800, 0x80000);
        if kind & !(nonblock | cloexec) != 1 {
            return Err(CallError::Unsupported("sockets other than SOCK_STREAM".to_owned()));
        }
        match args.integer(2)? {
            0 | 6 => {}
            _ => return Err(CallError::Unsupported("protocols other than TCP".to_owned())),
        }
        let fd = self.new_fd(args, call)?;
        self.add_socket(fd, kind & nonblock != 0);
        Ok(Done::fd(fd))
    }

    fn call_bind(&mut self, args: &Args<'_>) -> Result<Done, CallError> {
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

    fn call_listen(&mut self, args: &Args<'_>) -> Result<Done, CallError> {
        args.count(2..=2)?;
        let backlog = args.integer(1)?;
        let id = match self.socket_arg(args, 0)? {
            Ok(id) => id,
            Err(errno) => return Ok(Done::failed(errno)),
        };
        // A negative backlog is a very large one: it is compared unsigned.
        let backlog = usize::try_from(backlog as u32).unwrap_or(usize::MAX).min(4096);
        match &mut self.sockets[id].kind {
            Kind::Open(_) => return Ok(Done::failed(Errno::EINVAL)),
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

    fn call_accept(&mut self, now: Time, args: &Args<'_>, call: &Call) -> Result<Step, CallError> {
        args.count(3..=4)?;
        let id = match self.socket_arg(args, 0)? {
            Ok(id) => id,
            Err(errno) => return Ok(Step::Done(Done::failed(errno))),
        };
        if !matches!(self.sockets[id].kind, Kind::Listening(_)) {
            return Ok(Step::Done(Done::failed(Errno::EINVAL)));
        }
        let nonblocking = call.name == "accept4" && args.integer(3)? & 0x800 != 0;
        let fd = self.new_fd(args, call)?;
        let op = Op::Accept { listener: id, fd, nonblocking };
        Ok(self.start(now, op, self.sockets[id].nonblocking, "a connection to accept"))
    }

    /// Tries `op`; if it cannot be done, it waits unless it must not.
    fn start(&mut self, now: Time, op: Op, nonblocking: bool, what: &'static str) -> Step {
        match self.attempt(now, op) {
            Ok(done) => Step::Done(done),
            Err((_, done)) if nonblocking => Step::Done(done),
            Err((op, _)) => Step::Blocked(Waiting { op, until: Time::NEVER, what }),
        }
    }

    fn call_connect(&mut self, now: Time, args: &Args<'_>) -> Result<Step, CallError> {
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
            Kind::Listening(_) => return Ok(Step::Done(Done::failed(Errno::EISCONN))),
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
        }
        Done::value(0)
    }

    /// What connect() returns, once it is known.
    pub(crate) fn connected(&mut self, id: SocketId) -> Option<Done> {
        let endpoint = self.endpoint_mut(id)?;
        match endpoint.state() {
            State::SynSent | State::SynReceived => None,
            State::Closed => {
                let error = endpoint.take_error().or(endpoint.error()).unwrap_or(Error::Refused);
                self.sockets[id].kind = Kind::New;
                Some(Done::failed(error.into()))
            }
            _ => {
                self.sockets[id].told_open = true;
                Some(Done::value(0))
            }
        }
    }

    fn call_send(
        &mut self,
        now: Time,
        args: &Args<'_>,
        count: std::ops::RangeInclusive<usize>,
        flags: Option<usize>,
    ) -> Result<Step, CallError> {
        args.count(count)?;
        let flags = flags.map_or(Ok(0), |index| args.integer(index))?;
        let length = args.integer(2)?;
        let null = args.is_null(1)?;
        self.send(now, args, length, flags, null)
    }

    fn send(&mut self, now: Time, args: &Args<'_>, length: i64, flags: i64, null: bool) -> Result<Step, CallError> {
        let linux = self.host.system == System::Linux;
        let other = flags & !(DONTWAIT | EOR | MORE | NOSIGNAL | if linux { MSG_FASTOPEN } else { 0 });
        if other != 0 {
            let name = match other {
                _ if other & 0x400_0000 != 0 => "MSG_ZEROCOPY".to_owned(),
                _ if other & 0x1 != 0 => "MSG_OOB".to_owned(),
                _ => format!("the flags {other:#x}"),
            };
            return Err(CallError::Unsupported(format!("sending with {name}")));
        }
        let id = match self.socket_arg(args, 0)? {
            Ok(id) => id,
            Err(errno) => return Ok(Step::Done(Done::failed(errno))),
        };
        let Ok(total) = u64::try_from(length) else { return Ok(Step::Done(Done::failed(Errno::EINVAL))) };
        let address = args.address();
        let unspecified = matches!(address, Some(Expr::Symbol(name)) if name == "AF_UNSPEC");
        if let Some(step) = self.send_fast_open(now, id, (total, null), flags, (address.is_some(), unspecified)) {
            return Ok(step);
        }
        if !matches!(self.sockets[id].kind, Kind::Open(_)) {
            return Ok(Step::Done(Done::failed(Errno::EPIPE)));
        }
        if null && total > 0 {
            return Ok(Step::Done(Done::failed(Errno::EFAULT)));
        }
        let nonblocking = self.sockets[id].nonblocking || flags & DONTWAIT != 0;
        let step = self.start(
            now,
            Op::Send { socket: id, total, sent: 0, flags, asleep: false },
            nonblocking,
            "room in the send buffer",
        );
        Ok(step)
    }

    pub(crate) fn attempt_send(&mut self, id: SocketId, total: u64, sent: u64, flags: i64) -> Result<Done, (Op, Done)> {
        let Some(endpoint) = self.endpoint_mut(id) else { return Ok(Done::failed(Errno::EPIPE)) };
        match socket::send(endpoint, total - sent, flags & MORE != 0, flags & EOR != 0) {
            Sending::Taken(taken) if sent + taken == total => Ok(Done::value(total as i64)),
            Sending::Taken(taken) => {
                let sent = sent + taken;
                Err((Op::Send { socket: id, total, sent, flags, asleep: true }, Done::value(sent as i64)))
            }
            Sending::WouldBlock => {
                let done = if sent > 0 { Done::value(sent as i64) } else { Done::failed(Errno::EAGAIN) };
                Err((Op::Send { socket: id, total, sent, flags, asleep: true }, done))
            }
            Sending::Failed(_) if sent > 0 => Ok(Done::value(sent as i64)),
            Sending::Failed(error) => Ok(Done::failed(error.into())),
        }
    }

    fn call_receive(
        &mut self,
        now: Time,
        args: &Args<'_>,
        count: std::ops::RangeInclusive<usize>,
        flags: Option<usize>,
    ) -> Result<Step, CallError> {
        args.count(count)?;
        let flags = flags.map_or(Ok(0), |index| args.integer(index))?;
        let length = args.integer(2)?;
        // With MSG_TRUNC the bytes are discarded and the buffer does not matter.
        let null = args.is_null(1)? && flags & TRUNC == 0;
        self.receive(now, args, length, flags, null, None)
    }

    fn receive(
        &mut self,
        now: Time,
        args: &Args<'_>,
        length: i64,
        flags: i64,
        null: bool,
        message: Option<Message>,
    ) -> Result<Step, CallError> {
        let other = flags & !(PEEK | TRUNC | DONTWAIT | WAITALL | NOSIGNAL);
        if other != 0 {
            let name = match other {
                0x2000 => "MSG_ERRQUEUE".to_owned(),
                0x1 => "MSG_OOB".to_owned(),
                _ => format!("the flags {other:#x}"),
            };
            return Err(CallError::Unsupported(format!("receiving with {name}")));
        }
        let id = match self.socket_arg(args, 0)? {
            Ok(id) => id,
            Err(errno) => return Ok(Step::Done(Done::failed(errno))),
        };
        let Ok(most) = u64::try_from(length) else { return Ok(Step::Done(Done::failed(Errno::EINVAL))) };
        match &self.sockets[id].kind {
            Kind::New if self.sockets[id].deferred => return Ok(Step::Done(Done::failed(Errno::EAGAIN))),
            Kind::New if self.sockets[id].failed => return Ok(Step::Done(Done::value(0))),
            Kind::New | Kind::Listening(_) => return Ok(Step::Done(Done::failed(Errno::ENOTCONN))),
            Kind::Open(endpoint) if null && endpoint.unread() > 0 && most > 0 => {
                return Ok(Step::Done(Done::failed(Errno::EFAULT)));
            }
            Kind::Open(_) => {}
        }
        let nonblocking = self.sockets[id].nonblocking || flags & DONTWAIT != 0;
        let op = Op::Receive { socket: id, most, got: 0, flags, message };
        Ok(self.start(now, op, nonblocking, "data to read"))
    }

    fn attempt_receive(
        &mut self,
        now: Time,
        id: SocketId,
        most: u64,
        got: u64,
        flags: i64,
        message: Option<Message>,
    ) -> Result<Done, (Op, Done)> {
        let low_water = self.sockets[id].options.receive_low_water.unwrap_or(1);
        let inq = self.sockets[id].options.inq;
        let Some(endpoint) = self.endpoint_mut(id) else { return Ok(Done::failed(Errno::ENOTCONN)) };
        let wanted = if flags & WAITALL != 0 { most } else { low_water.min(most) };
        let peek = flags & PEEK != 0;
        let unread = endpoint.unread();
        let (received, more) = if peek && unread > 0 {
            (Received::Data(unread.min(most)), false)
        } else {
            let received = socket::receive(endpoint, now, most - got);
            let total = got + if let Received::Data(bytes) = received { bytes } else { 0 };
            (received, total < wanted)
        };
        let finish = |endpoint: &Endpoint, value: u64| {
            let mut done = Done::value(value as i64);
            done.complaint = message.as_ref().and_then(|message| message.complaint(inq, endpoint));
            done
        };
        match received {
            Received::Data(bytes) if !more => Ok(finish(endpoint, got + bytes)),
            Received::Data(bytes) => {
                let got = got + bytes;
                let done = finish(endpoint, got);
                Err((Op::Receive { socket: id, most, got, flags, message }, done))
            }
            Received::WouldBlock => {
                let done = if got > 0 { finish(endpoint, got) } else { Done::failed(Errno::EAGAIN) };
                Err((Op::Receive { socket: id, most, got, flags, message }, done))
            }
            Received::EndOfFile => Ok(finish(endpoint, got)),
            Received::Failed(_) if got > 0 => Ok(finish(endpoint, got)),
            Received::Failed(error) => Ok(Done::failed(error.into())),
        }
    }

    fn call_readv(&mut self, now: Time, args: &Args<'_>) -> Result<Step, CallError> {
        args.count(3..=3)?;
        let (length, null) = vector(args.get(1)?, args.integer(2)?, args.system)?;
        self.receive(now, args, length, 0, null, None)
    }

    fn call_writev(&mut self, now: Time, args: &Args<'_>) -> Result<Step, CallError> {
        args.count(3..=3)?;
        let (length, null) = vector(args.get(1)?, args.integer(2)?, args.system)?;
        self.send(now, args, length, 0, null)
    }

    fn call_sendmsg(&mut self, now: Time, args: &Args<'_>) -> Result<Step, CallError> {
        args.count(3..=3)?;
        let message = parts(args.get(1)?)?;
        let (length, null) = message_vector(message, args.system)?;
        if control(message).is_some_and(|parts| !parts.is_empty()) {
            return Err(CallError::Unsupported("control messages to send".to_owned()));
        }
        self.send(now, args, length, args.integer(2)?, null)
    }

    fn call_recvmsg(&mut self, now: Time, args: &Args<'_>) -> Result<Step, CallError> {
        args.count(3..=3)?;
        let parts_of = parts(args.get(1)?)?;
        let (length, null) = message_vector(parts_of, args.system)?;
        let flags = match part(parts_of, "msg_flags") {
            Some(value) => integer(value, args.system)?,
            None => 0,
        };
        let mut message = Message { flags, inq: None, has_control: false };
        for item in control(parts_of).unwrap_or(&[]) {
            let item = parts(item)?;
            let kind = match part(item, "cmsg_type") {
                Some(Expr::Symbol(name)) => name.as_str(),
                _ => "",
            };
            if kind != "TCP_CM_INQ" {
                return Err(CallError::Unsupported(format!("the control message {kind}")));
            }
            message.has_control = true;
            message.inq = match part(item, "cmsg_data") {
                Some(value) => Some(integer(value, args.system)?),
                None => None,
            };
        }
        self.receive(now, args, length, args.integer(2)?, null, Some(message))
    }

    fn call_close(&mut self, now: Time, args: &Args<'_>) -> Result<Step, CallError> {
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
            Kind::Open(endpoint) => {
                endpoint.close(now);
                if let Some(linger) = linger
                    && !endpoint.is_close_complete()
                {
                    self.flush(now);
                    let what = "the end of the linger time, or of the connection";
                    return Ok(Step::Blocked(Waiting { op: Op::Linger, until: now + linger, what }));
                }
            }
        }
        Ok(Step::Done(Done::value(0)))
    }

    fn call_shutdown(&mut self, args: &Args<'_>) -> Result<Done, CallError> {
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
            Kind::Open(endpoint) if endpoint.state() == State::Closed => Ok(Done::failed(Errno::ENOTCONN)),
            Kind::Open(endpoint) => {
                endpoint.shutdown(how);
                Ok(Done::value(0))
            }
        }
    }

    fn call_fcntl(&mut self, args: &Args<'_>) -> Result<Done, CallError> {
        let count = args.count(2..=3)?;
        let nonblock = crate::args::symbol("O_NONBLOCK", args.system).unwrap_or(0);
        let fd = args.integer(0)?;
        let Some(id) = self.by_fd(fd) else {
            return Ok(if self.is_open(fd) { Done::value(2) } else { Done::failed(Errno::EBADF) });
        };
        let socket = &mut self.sockets[id];
        match args.integer(1)? {
            // F_GETFL: a socket is O_RDWR.
            3 => Ok(Done::value(if socket.nonblocking { 2 | nonblock } else { 2 })),
            4 if count == 3 => {
                socket.nonblocking = args.integer(2)? & nonblock != 0;
                Ok(Done::value(0))
            }
            1 | 2 => Ok(Done::value(0)),
            command => Err(CallError::Unsupported(format!("the fcntl command {command}"))),
        }
    }

    fn call_ioctl(&mut self, args: &Args<'_>) -> Result<Done, CallError> {
        args.count(2..=3)?;
        let id = match self.socket_arg(args, 0)? {
            Ok(id) => id,
            Err(errno) => return Ok(Done::failed(errno)),
        };
        let name = args.name(1)?;
        let listening = matches!(self.sockets[id].kind, Kind::Listening(_));
        let endpoint = self.endpoint(id);
        let value = match name.as_str() {
            _ if listening => return Ok(Done::failed(Errno::EINVAL)),
            "SIOCINQ" | "FIONREAD" => endpoint.map_or(0, |endpoint| endpoint.unread()),
            "SIOCOUTQ" | "TIOCOUTQ" | "FIONWRITE" => endpoint.map_or(0, socket::unacknowledged),
            "SIOCOUTQNSD" => endpoint.map_or(0, |endpoint| endpoint.unsent()),
            name => return Err(CallError::Unsupported(format!("the ioctl {name}"))),
        };
        let expected = args.bracketed(2)?;
        let mut done = Done::value(0);
        done.complaint = (expected != value as i64).then(|| format!("{name}: expected {expected}, got {value}"));
        Ok(done)
    }

    fn call_poll(&mut self, now: Time, args: &Args<'_>) -> Result<Step, CallError> {
        args.count(3..=3)?;
        let Expr::Array(list) = args.get(0)? else { return Err(CallError::script("poll takes a list of {fd=...}")) };
        let mut fds = Vec::new();
        for item in list {
            let item = parts(item)?;
            let field = |name: &str| part(item, name).ok_or_else(|| CallError::Script(format!("poll needs {name}=")));
            let mask = |value: &Expr| integer(value, args.system).map(|mask| mask as u32);
            let expected = match field("revents")? {
                Expr::Ellipsis => None,
                value => Some(mask(value)?),
            };
            fds.push(Polled { fd: integer(field("fd")?, args.system)?, events: mask(field("events")?)?, expected });
        }
        if args.integer(1)? != fds.len() as i64 {
            return Err(CallError::script("the number of fds is not that of the list"));
        }
        Ok(self.start_timed(now, Op::Poll { fds }, args.integer(2)?))
    }

    /// Starts a call with a timeout in milliseconds; negative means none.
    fn start_timed(&mut self, now: Time, op: Op, timeout: i64) -> Step {
        let until = u64::try_from(timeout).map_or(Time::NEVER, |millis| now + Span::from_millis(millis));
        let step = self.start(now, op, timeout == 0, "an event");
        match step {
            Step::Blocked(waiting) => Step::Blocked(Waiting { until, ..waiting }),
            done => done,
        }
    }

    fn epoll_arg(&self, args: &Args<'_>, index: usize) -> Result<Result<usize, Errno>, CallError> {
        let fd = args.integer(index)?;
        let found = self.epolls.iter().position(|epoll| epoll.fd == Some(fd));
        Ok(found.ok_or(if self.is_open(fd) { Errno::EINVAL } else { Errno::EBADF }))
    }

    fn call_epoll_ctl(&mut self, args: &Args<'_>) -> Result<Done, CallError> {
        args.count(4..=4)?;
        let (epoll, socket) = match (self.epoll_arg(args, 0)?, self.socket_arg(args, 2)?) {
            (Ok(epoll), Ok(socket)) => (epoll, socket),
            (Err(errno), _) | (_, Err(errno)) => return Ok(Done::failed(errno)),
        };
        let event = match args.get(3)? {
            Expr::Struct(event) => event.as_slice(),
            _ => &[],
        };
        let events = match part(event, "events") {
            Some(value) => integer(value, args.system)? as u32,
            None => 0,
        };
        let data = event_data(event, args.system)?.unwrap_or(0);
        let result = match args.integer(1)? {
            1 => self.epoll_add(epoll, socket, events, data).then_some(0).ok_or(Errno::EEXIST),
            2 => self.epoll_remove(epoll, socket).then_some(0).ok_or(Errno::ENOENT),
            3 => self.epoll_modify(epoll, socket, events, data).then_some(0).ok_or(Errno::ENOENT),
            _ => Err(Errno::EINVAL),
        };
        Ok(result.map_or_else(Done::failed, Done::value))
    }

    fn call_epoll_wait(&mut self, now: Time, args: &Args<'_>) -> Result<Step, CallError> {
        args.count(4..=4)?;
        let epoll = match self.epoll_arg(args, 0)? {
            Ok(epoll) => epoll,
            Err(errno) => return Ok(Step::Done(Done::failed(errno))),
        };
        let most = match usize::try_from(args.integer(2)?) {
            Ok(most) if most > 0 => most,
            _ => return Ok(Step::Done(Done::failed(Errno::EINVAL))),
        };
        let event = match args.get(1)? {
            Expr::Struct(event) => event.as_slice(),
            _ => &[],
        };
        let events = match part(event, "events") {
            Some(Expr::Ellipsis) | None => None,
            Some(value) => Some(integer(value, args.system)? as u32),
        };
        let expected = Expected { events, data: event_data(event, args.system)? };
        Ok(self.start_timed(now, Op::Epoll { epoll, most, expected }, args.integer(3)?))
    }
}
