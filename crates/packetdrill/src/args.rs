//! Arguments of calls: names to numbers, and the shapes that calls expect.

use crate::ast::{Call, Expr};
use crate::errno::Errno;
use crate::system::System;

/// Why a call cannot be carried out.
#[derive(Clone, Debug, PartialEq)]
pub(crate) enum CallError {
    /// The script asks for something that makes no sense: a wrong number of arguments, an fd that
    /// is none.
    Script(String),
    /// The call exists, but not here.
    Unsupported(String),
}

impl CallError {
    pub(crate) fn script(message: impl Into<String>) -> CallError {
        CallError::Script(message.into())
    }
}

/// Names whose numbers are the same for Linux and FreeBSD, or are never compared.
const NAMES: &[(&str, i64)] = &[
    ("NULL", 0),
    ("AF_UNSPEC", 0),
    ("AF_INET", 2),
    ("AF_INET6", 10),
    ("PF_INET", 2),
    ("PF_INET6", 10),
    ("SOCK_STREAM", 1),
    ("SOCK_DGRAM", 2),
    ("SOCK_RAW", 3),
    ("SOCK_NONBLOCK", 0x800),
    ("SOCK_CLOEXEC", 0x80000),
    ("IPPROTO_IP", 0),
    ("IPPROTO_ICMP", 1),
    ("IPPROTO_TCP", 6),
    ("IPPROTO_UDP", 17),
    ("IPPROTO_IPV6", 41),
    ("IPPROTO_ICMPV6", 58),
    ("IPPROTO_SCTP", 132),
    ("IPPROTO_MPTCP", 262),
    ("IP_PMTUDISC_DONT", 0),
    ("IP_PMTUDISC_WANT", 1),
    ("IP_PMTUDISC_DO", 2),
    ("IP_PMTUDISC_PROBE", 3),
    ("IP_PMTUDISC_INTERFACE", 4),
    ("IP_PMTUDISC_OMIT", 5),
    ("SHUT_RD", 0),
    ("SHUT_WR", 1),
    ("SHUT_RDWR", 2),
    ("SOMAXCONN", 4096),
    ("O_RDONLY", 0),
    ("O_WRONLY", 1),
    ("O_RDWR", 2),
    ("F_DUPFD", 0),
    ("F_GETFD", 1),
    ("F_SETFD", 2),
    ("F_GETFL", 3),
    ("F_SETFL", 4),
    ("FD_CLOEXEC", 1),
    ("MSG_OOB", 0x1),
    ("MSG_PEEK", 0x2),
    ("MSG_DONTROUTE", 0x4),
    ("MSG_CTRUNC", 0x8),
    ("MSG_TRUNC", 0x20),
    ("MSG_DONTWAIT", 0x40),
    ("MSG_EOR", 0x80),
    ("MSG_WAITALL", 0x100),
    ("MSG_CONFIRM", 0x800),
    ("MSG_ERRQUEUE", 0x2000),
    ("MSG_NOSIGNAL", 0x4000),
    ("MSG_MORE", 0x8000),
    ("MSG_ZEROCOPY", 0x400_0000),
    ("MSG_FASTOPEN", 0x2000_0000),
    ("MSG_EOF", 0x2000_0000),
    ("POLLIN", 0x1),
    ("POLLPRI", 0x2),
    ("POLLOUT", 0x4),
    ("POLLERR", 0x8),
    ("POLLHUP", 0x10),
    ("POLLNVAL", 0x20),
    ("POLLRDNORM", 0x40),
    ("POLLRDBAND", 0x80),
    ("POLLWRNORM", 0x100),
    ("POLLWRBAND", 0x200),
    ("POLLRDHUP", 0x2000),
    ("EPOLLIN", 0x1),
    ("EPOLLPRI", 0x2),
    ("EPOLLOUT", 0x4),
    ("EPOLLERR", 0x8),
    ("EPOLLHUP", 0x10),
    ("EPOLLRDNORM", 0x40),
    ("EPOLLRDBAND", 0x80),
    ("EPOLLWRNORM", 0x100),
    ("EPOLLWRBAND", 0x200),
    ("EPOLLRDHUP", 0x2000),
    ("EPOLLONESHOT", 1 << 30),
    ("EPOLLET", 1 << 31),
    ("EPOLL_CTL_ADD", 1),
    ("EPOLL_CTL_DEL", 2),
    ("EPOLL_CTL_MOD", 3),
];

/// The number of a name, if it has one that may be compared.
pub(crate) fn symbol(name: &str, system: System) -> Option<i64> {
    let freebsd = system == System::FreeBsd;
    match name {
        "O_NONBLOCK" | "O_NDELAY" => Some(if freebsd { 0x4 } else { 0x800 }),
        _ => NAMES
            .iter()
            .find(|(known, _)| *known == name)
            .map(|&(_, number)| number)
            .or_else(|| Errno::by_name(name).map(Errno::number)),
    }
}

/// The number of an expression.
pub(crate) fn integer(expr: &Expr, system: System) -> Result<i64, CallError> {
    match expr {
        Expr::Integer(number) => Ok(*number),
        Expr::Symbol(name) => symbol(name, system).ok_or_else(|| CallError::Unsupported(format!("`{name}`"))),
        Expr::Or(left, right) => Ok(integer(left, system)? | integer(right, system)?),
        Expr::Ellipsis => Err(CallError::script("a number is needed in place of `...`")),
        Expr::Text(_) => Err(CallError::script("a number is needed in place of a string")),
        Expr::Array(_) => Err(CallError::script("a number is needed in place of a list")),
        Expr::Struct(_) => Err(CallError::script("a number is needed in place of a structure")),
        Expr::Function(name, parts) => match (name.as_str(), parts.as_slice()) {
            // Byte order is not modelled.
            ("htons" | "htonl" | "ntohs" | "ntohl", [part]) => integer(part, system),
            _ => Err(CallError::Unsupported(format!("`{name}(...)`"))),
        },
    }
}

/// The one element of `[x]`.
pub(crate) fn bracketed(expr: &Expr) -> Result<&Expr, CallError> {
    match expr {
        Expr::Array(parts) => match parts.as_slice() {
            [part] => Ok(part),
            _ => Err(CallError::Script(format!("expected one value in brackets, found {}", parts.len()))),
        },
        _ => Err(CallError::script("a value in brackets is needed")),
    }
}

/// The arguments of a call.
#[derive(Clone, Copy)]
pub(crate) struct Args<'a> {
    call: &'a Call,
    pub(crate) system: System,
}

impl<'a> Args<'a> {
    pub(crate) fn new(call: &'a Call, system: System) -> Args<'a> {
        Args { call, system }
    }

    /// Checks how many there are.
    pub(crate) fn count(&self, range: std::ops::RangeInclusive<usize>) -> Result<usize, CallError> {
        let count = self.call.args.len();
        if range.contains(&count) {
            return Ok(count);
        }
        let (least, most) = (range.start(), range.end());
        let expected = if least == most { least.to_string() } else { format!("{least} to {most}") };
        Err(CallError::Script(format!("{} takes {expected} arguments, not {count}", self.call.name)))
    }

    pub(crate) fn get(&self, index: usize) -> Result<&'a Expr, CallError> {
        self.call
            .args
            .get(index)
            .ok_or_else(|| CallError::Script(format!("{} lacks argument {}", self.call.name, index + 1)))
    }

    pub(crate) fn integer(&self, index: usize) -> Result<i64, CallError> {
        integer(self.get(index)?, self.system)
    }

    /// A name that options are known by, or a number.
    pub(crate) fn name(&self, index: usize) -> Result<String, CallError> {
        match self.get(index)? {
            Expr::Symbol(name) => Ok(name.clone()),
            Expr::Integer(number) => Ok(number.to_string()),
            _ => Err(CallError::Script(format!("argument {} must be a name", index + 1))),
        }
    }

    /// `[n]`
    pub(crate) fn bracketed(&self, index: usize) -> Result<i64, CallError> {
        integer(bracketed(self.get(index)?)?, self.system)
    }

    /// The address that a call sends to, if it names one: of sendto() the fifth argument, of
    /// sendmsg() a part of the message.
    pub(crate) fn address(&self) -> Option<&'a Expr> {
        match (self.call.name.as_str(), self.call.args.as_slice()) {
            ("sendto", [_, _, _, _, address, _]) => Some(address),
            ("sendmsg", [_, Expr::Struct(parts), ..]) => {
                parts.iter().find(|(name, _)| name == "msg_name").map(|(_, value)| value)
            }
            _ => None,
        }
    }

    pub(crate) fn is_ellipsis(&self, index: usize) -> bool {
        matches!(self.call.args.get(index), Some(Expr::Ellipsis))
    }

    /// Returns `true` if a buffer is `NULL` and not `...`.
    pub(crate) fn is_null(&self, index: usize) -> Result<bool, CallError> {
        match self.get(index)? {
            Expr::Ellipsis | Expr::Text(_) | Expr::Array(_) => Ok(false),
            other => match integer(other, self.system)? {
                0 => Ok(true),
                _ => Err(CallError::script("a buffer is `...` or NULL")),
            },
        }
    }
}
