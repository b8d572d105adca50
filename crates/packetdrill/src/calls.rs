//! The system calls of a script, executed on the host's sockets.
//!
//! # Source
//! Which arguments are used and how results are compared: packetdrill's `run_system_call.c`. What
//! the calls do: Linux `net/socket.c`, `net/ipv4/af_inet.c`, `net/ipv4/tcp.c`,
//! `net/ipv4/inet_connection_sock.c`, `fs/eventpoll.c`.

mod connection;
mod control;
mod data;
mod epoll;
mod events;
mod fast_open;

use ackclock_units::Time;

use crate::args::{Args, CallError, integer};
use crate::ast::{Call, Expr};
use crate::epoll::Epoll;
use crate::errno::Errno;
use crate::shapes::{Expected, ExpectedMessage};
use crate::sockets::{Kernel, SocketId};

pub(crate) use self::data::DONTWAIT;

/// A call that returned.
#[derive(Clone, Debug, PartialEq)]
pub(crate) struct Done {
    /// The value returned; -1 for an error.
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

/// The progress of a call.
#[derive(Clone, Debug, PartialEq)]
pub(crate) enum Step {
    Done(Done),
    /// The call waits.
    Blocked(Waiting),
}

/// A call that waits for something to happen on its socket.
#[derive(Clone, Debug, PartialEq)]
pub(crate) struct Waiting {
    pub(crate) op: Op,
    /// When it stops waiting.
    pub(crate) until: Time,
    /// The awaited event, in a few words.
    pub(crate) what: &'static str,
}

/// The calls that can wait.
#[derive(Clone, Debug, PartialEq)]
pub(crate) enum Op {
    Accept { listener: SocketId, fd: i64, nonblocking: bool },
    Connect { socket: SocketId },
    FastOpen { socket: SocketId, total: u64, sent: u64, flags: i64 },
    Send { socket: SocketId, total: u64, sent: u64, flags: i64, asleep: bool },
    Receive { socket: SocketId, most: u64, got: u64, flags: i64, message: Option<ExpectedMessage> },
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
            "shutdown" => self.call_shutdown(now, &args)?,
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
            Op::Accept { listener, fd, nonblocking } => match self.accept(now, listener, fd) {
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
            Op::FastOpen { socket, total, sent, flags } => self.attempt_fast_open(now, socket, total, sent, flags),
            Op::Send { socket, total, sent, flags, asleep } => {
                // A sleeping writer is woken when there is room worth the while
                // (`sk_stream_write_space`).
                let sleeps = asleep
                    && self.readiness(socket).is_some_and(|ready| !ready.writable && !ready.hung_up && !ready.error);
                if sleeps {
                    let done = if sent > 0 { Done::value(sent as i64) } else { Done::failed(Errno::EAGAIN) };
                    return Err((Op::Send { socket, total, sent, flags, asleep }, done));
                }
                self.attempt_send(now, socket, total, sent, flags)
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

    /// Tries `op`; if it cannot be done, it waits unless it must not.
    fn start(&mut self, now: Time, op: Op, nonblocking: bool, what: &'static str) -> Step {
        match self.attempt(now, op) {
            Ok(done) => Step::Done(done),
            Err((_, done)) if nonblocking => Step::Done(done),
            Err((op, _)) => Step::Blocked(Waiting { op, until: Time::NEVER, what }),
        }
    }
}
