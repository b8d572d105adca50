//! Calls that send and receive.

use ackclock_tcp::{Received, Sending};
use ackclock_units::Time;

use super::{Done, Op, Step};
use crate::args::{Args, CallError, integer};
use crate::ast::Expr;
use crate::errno::Errno;
use crate::shapes::{ExpectedMessage, control, message_vector, part, parts, vector};
use crate::socket;
use crate::sockets::{Kernel, Kind, SocketId};
use crate::system::System;

/// `MSG_FASTOPEN`; another flag, which nobody uses, in FreeBSD.
pub(crate) const MSG_FASTOPEN: i64 = 0x2000_0000;

const PEEK: i64 = 0x2;
const TRUNC: i64 = 0x20;
pub(crate) const DONTWAIT: i64 = 0x40;
const EOR: i64 = 0x80;
const WAITALL: i64 = 0x100;
const MORE: i64 = 0x8000;
const NOSIGNAL: i64 = 0x4000;

impl Kernel {
    pub(super) fn call_send(
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
        if self.sockets[id].mptcp && flags & (MSG_FASTOPEN | MORE | EOR) != 0 {
            return Err(CallError::Unsupported("MSG_FASTOPEN, MSG_MORE and MSG_EOR of MPTCP".to_owned()));
        }
        let Ok(total) = u64::try_from(length) else { return Ok(Step::Done(Done::failed(Errno::EINVAL))) };
        let address = args.address();
        let unspecified = matches!(address, Some(Expr::Symbol(name)) if name == "AF_UNSPEC");
        if let Some(step) = self.send_fast_open(now, id, (total, null), flags, (address.is_some(), unspecified)) {
            return Ok(step);
        }
        if !matches!(self.sockets[id].kind, Kind::Open(_) | Kind::Multipath(_)) {
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

    pub(crate) fn attempt_send(
        &mut self,
        now: Time,
        id: SocketId,
        total: u64,
        sent: u64,
        flags: i64,
    ) -> Result<Done, (Op, Done)> {
        let sending = match &mut self.sockets[id].kind {
            Kind::Open(endpoint) => socket::send(endpoint, total - sent, flags & MORE != 0, flags & EOR != 0),
            Kind::Multipath(multipath) => multipath.send(now, total - sent),
            _ => return Ok(Done::failed(Errno::EPIPE)),
        };
        match sending {
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

    pub(super) fn call_receive(
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
        message: Option<ExpectedMessage>,
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
            Kind::New | Kind::Listening(_) | Kind::MultipathListening(_) => {
                return Ok(Step::Done(Done::failed(Errno::ENOTCONN)));
            }
            Kind::Open(_) | Kind::Multipath(_) if null && self.unread(id) > 0 && most > 0 => {
                return Ok(Step::Done(Done::failed(Errno::EFAULT)));
            }
            Kind::Open(_) | Kind::Multipath(_) => {}
        }
        let nonblocking = self.sockets[id].nonblocking || flags & DONTWAIT != 0;
        let op = Op::Receive { socket: id, most, got: 0, flags, message };
        Ok(self.start(now, op, nonblocking, "data to read"))
    }

    pub(super) fn attempt_receive(
        &mut self,
        now: Time,
        id: SocketId,
        most: u64,
        got: u64,
        flags: i64,
        message: Option<ExpectedMessage>,
    ) -> Result<Done, (Op, Done)> {
        let low_water = self.sockets[id].options.receive_low_water.unwrap_or(1);
        let inq = self.sockets[id].options.inq;
        let wanted = if flags & WAITALL != 0 { most } else { low_water.min(most) };
        let unread = self.unread(id);
        let (received, more) = if flags & PEEK != 0 && unread > 0 {
            (Received::Data(unread.min(most)), false)
        } else {
            let received = match &mut self.sockets[id].kind {
                Kind::Open(endpoint) => socket::receive(endpoint, now, most - got),
                Kind::Multipath(multipath) => multipath.receive(most - got),
                _ => return Ok(Done::failed(Errno::ENOTCONN)),
            };
            let total = got + if let Received::Data(bytes) = received { bytes } else { 0 };
            (received, total < wanted)
        };
        let left = (self.unread(id), self.peer_finished(id));
        let finish = |value: u64| {
            let mut done = Done::value(value as i64);
            done.complaint = message.as_ref().and_then(|message| message.complaint(inq, left));
            done
        };
        match received {
            Received::Data(bytes) if !more => Ok(finish(got + bytes)),
            Received::Data(bytes) => {
                let got = got + bytes;
                let done = finish(got);
                Err((Op::Receive { socket: id, most, got, flags, message }, done))
            }
            Received::WouldBlock => {
                let done = if got > 0 { finish(got) } else { Done::failed(Errno::EAGAIN) };
                Err((Op::Receive { socket: id, most, got, flags, message }, done))
            }
            Received::EndOfFile => Ok(finish(got)),
            Received::Failed(_) if got > 0 => Ok(finish(got)),
            Received::Failed(error) => Ok(Done::failed(error.into())),
        }
    }

    pub(super) fn call_readv(&mut self, now: Time, args: &Args<'_>) -> Result<Step, CallError> {
        args.count(3..=3)?;
        let (length, null) = vector(args.get(1)?, args.integer(2)?, args.system)?;
        self.receive(now, args, length, 0, null, None)
    }

    pub(super) fn call_writev(&mut self, now: Time, args: &Args<'_>) -> Result<Step, CallError> {
        args.count(3..=3)?;
        let (length, null) = vector(args.get(1)?, args.integer(2)?, args.system)?;
        self.send(now, args, length, 0, null)
    }

    pub(super) fn call_sendmsg(&mut self, now: Time, args: &Args<'_>) -> Result<Step, CallError> {
        args.count(3..=3)?;
        let message = parts(args.get(1)?)?;
        let (length, null) = message_vector(message, args.system)?;
        if control(message).is_some_and(|parts| !parts.is_empty()) {
            return Err(CallError::Unsupported("control messages to send".to_owned()));
        }
        self.send(now, args, length, args.integer(2)?, null)
    }

    pub(super) fn call_recvmsg(&mut self, now: Time, args: &Args<'_>) -> Result<Step, CallError> {
        args.count(3..=3)?;
        let parts_of = parts(args.get(1)?)?;
        let (length, null) = message_vector(parts_of, args.system)?;
        let flags = match part(parts_of, "msg_flags") {
            Some(value) => integer(value, args.system)?,
            None => 0,
        };
        let mut message = ExpectedMessage { flags, inq: None, has_control: false };
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
}
