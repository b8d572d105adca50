//! setsockopt and getsockopt.
//!
//! # Source
//! Linux `net/core/sock.c` (`sk_setsockopt`), `net/ipv4/tcp.c` (`do_tcp_setsockopt`,
//! `do_tcp_getsockopt`), `net/ipv4/ip_sockglue.c`; FreeBSD `sys/netinet/tcp_usrreq.c` where it
//! differs.

mod get;
mod set;

use ackclock_tcp::SocketOption;
use ackclock_units::{Span, Time};

use crate::args::{Args, CallError, bracketed, integer};
use crate::ast::Expr;
use crate::calls::Done;
use crate::errno::Errno;
use crate::fast_open::{Keys, string_bytes};
use crate::host::controller;
use crate::sockets::{Kernel, SocketId};
use crate::system::System;

/// `TCP_TIMEOUT_INIT` and `TCP_RTO_MAX`, by which Linux counts `TCP_DEFER_ACCEPT`.
const SYN_ACK_TIMEOUT: Span = Span::from_secs(1);
const LONGEST_TIMEOUT: Span = Span::from_secs(120);

/// A value of an option: a number or a text.
#[derive(Clone, Debug, PartialEq)]
enum Value {
    Number(i64),
    Text(String),
    /// Any value will do: it is not modelled.
    Any,
}

impl Kernel {
    /// `setsockopt(fd, level, name, value, length)`
    pub(crate) fn set_option(&mut self, now: Time, id: SocketId, args: &Args<'_>) -> Result<Done, CallError> {
        let level = args.name(1)?;
        let name = args.name(2)?;
        let value = args.get(3)?;
        let result = match (level.as_str(), name.as_str()) {
            ("SOL_SOCKET", "SO_LINGER") => {
                let (on, seconds) = linger(value, args.system)?;
                let linger = on.then(|| Span::from_secs(seconds));
                self.sockets[id].options.linger = linger;
                if let Some(endpoint) = self.endpoint_mut(id) {
                    endpoint.set_option(SocketOption::Linger(linger));
                }
                Ok(())
            }
            ("SOL_TCP" | "IPPROTO_TCP", "TCP_FASTOPEN_KEY") => {
                let Some(bytes) = text(value)?.and_then(|text| string_bytes(&text)) else {
                    return Err(CallError::script("TCP_FASTOPEN_KEY takes a string of bytes"));
                };
                let length = usize::try_from(args.integer(4)?).unwrap_or(0);
                let keys = bytes.get(..length).and_then(Keys::from_bytes);
                keys.map(|keys| self.sockets[id].options.fast_open_keys = Some(keys)).ok_or(Errno::EINVAL)
            }
            ("SOL_TCP" | "IPPROTO_TCP", "TCP_CONGESTION") => match text(value)? {
                Some(name) => self.set_congestion(now, id, &name),
                None => return Err(CallError::script("TCP_CONGESTION takes a string")),
            },
            _ => {
                if !known(&name) {
                    return Err(unsupported(&level, &name));
                }
                if let Expr::Ellipsis | Expr::Integer(0) = value {
                    return Ok(Done::failed(Errno::EFAULT));
                }
                let number = integer(bracketed(value)?, args.system)?;
                self.set_number(now, id, &level, &name, number)?
            }
        };
        Ok(match result {
            Ok(()) => Done::value(0),
            Err(errno) => Done::failed(errno),
        })
    }

    fn set_congestion(&mut self, now: Time, id: SocketId, name: &str) -> Result<(), Errno> {
        let Some(kind) = controller(name.trim_end_matches('\0')) else { return Err(Errno::ENOENT) };
        if self.cc_of(id) != kind && self.multipath(id).is_some() {
            let make_controller = self.make_controller(kind);
            if let Some(multipath) = self.multipath_mut(id) {
                multipath.connection.set_congestion_control(now, make_controller);
            }
        } else if self.cc_of(id) != kind {
            let cc = self.host.congestion_control(kind);
            if let Some(endpoint) = self.endpoint_mut(id) {
                endpoint.set_congestion_control(now, cc);
            }
        }
        self.sockets[id].options.cc = Some(kind);
        Ok(())
    }

    /// `getsockopt(fd, level, name, value, [length])`, compared with what the script expects.
    pub(crate) fn get_option(&mut self, id: SocketId, args: &Args<'_>) -> Result<Done, CallError> {
        let level = args.name(1)?;
        let name = args.name(2)?;
        let actual = self.option_value(id, &level, &name)?;
        let actual = match actual {
            Ok(actual) => actual,
            Err(errno) => return Ok(Done::failed(errno)),
        };
        let expected = args.get(3)?;
        let complaint = match (&actual, expected) {
            (Value::Any, _) | (_, Expr::Ellipsis) => None,
            (Value::Number(actual), Expr::Array(_)) => {
                let part = bracketed(expected)?;
                if *part == Expr::Ellipsis {
                    None
                } else {
                    let expected = integer(part, args.system)?;
                    (expected != *actual)
                        .then(|| format!("{name}: expected {expected}, got {}", self.shown(&name, *actual)))
                }
            }
            (Value::Number(actual), Expr::Struct(_)) if name == "SO_LINGER" => {
                let (on, seconds) = linger(expected, args.system)?;
                let expected = if on { seconds as i64 } else { -1 };
                (expected != *actual).then(|| format!("SO_LINGER: expected {expected}, got {actual}"))
            }
            (Value::Text(actual), other) => {
                let expected = text(other)?.unwrap_or_default();
                // The kernel fills a field of 16 bytes with zeros (TCP_CA_NAME_MAX).
                let (expected, actual) = (expected.trim_end_matches('\0'), actual.as_str());
                (expected != actual).then(|| format!("{name}: expected \"{expected}\", got \"{actual}\""))
            }
            _ => return Err(CallError::Unsupported(format!("this kind of value for {name}"))),
        };
        let mut done = Done::value(0);
        done.complaint = complaint;
        Ok(done)
    }

    /// A value as reports show it.
    fn shown(&self, name: &str, value: i64) -> String {
        match (name, Errno::by_number(value)) {
            ("SO_ERROR", Some(errno)) => format!("{value}, {errno}"),
            _ => value.to_string(),
        }
    }
}

fn unsupported(level: &str, name: &str) -> CallError {
    CallError::Unsupported(format!("the socket option {level} {name}"))
}

/// Options that exist here.
fn known(name: &str) -> bool {
    matches!(
        name,
        "SO_REUSEADDR"
            | "SO_REUSEPORT"
            | "SO_KEEPALIVE"
            | "SO_SNDBUF"
            | "SO_SNDBUFFORCE"
            | "SO_RCVBUF"
            | "SO_RCVBUFFORCE"
            | "SO_RCVLOWAT"
            | "SO_LINGER"
            | "SO_MAX_PACING_RATE"
            | "TCP_KEEPIDLE"
            | "TCP_KEEPINTVL"
            | "TCP_KEEPCNT"
            | "TCP_KEEPINIT"
            | "TCP_NODELAY"
            | "TCP_CORK"
            | "TCP_NOPUSH"
            | "TCP_MAXSEG"
            | "TCP_USER_TIMEOUT"
            | "TCP_NOTSENT_LOWAT"
            | "TCP_INQ"
            | "TCP_QUICKACK"
            | "TCP_SYNCNT"
            | "TCP_FASTOPEN"
            | "TCP_FASTOPEN_CONNECT"
            | "TCP_FASTOPEN_NO_COOKIE"
            | "TCP_LINGER2"
            | "TCP_NOOPT"
            | "TCP_DEFER_ACCEPT"
            | "IP_RECVERR"
            | "IPV6_RECVERR"
            | "IP_MTU_DISCOVER"
            | "IPV6_MTU_DISCOVER"
            | "TCP_CONGESTION"
            | "IP_TOS"
            | "IP_TTL"
            | "IPV6_TCLASS"
            | "IPV6_UNICAST_HOPS"
    ) || accepted_without_meaning(name)
}

/// Options that change nothing that a script against one host can see.
fn accepted_without_meaning(name: &str) -> bool {
    matches!(
        name,
        "SO_PRIORITY"
            | "SO_MARK"
            | "SO_DEBUG"
            | "SO_BROADCAST"
            | "SO_DONTROUTE"
            | "SO_OOBINLINE"
            | "IP_FREEBIND"
            | "IPV6_V6ONLY"
    )
}

/// `{onoff=1, linger=5}`, also by position.
fn linger(value: &Expr, system: System) -> Result<(bool, u64), CallError> {
    let Expr::Struct(parts) = value else { return Err(CallError::script("SO_LINGER takes {onoff=..., linger=...}")) };
    let part = |index: usize, names: &[&str]| -> Result<i64, CallError> {
        let named = parts.iter().find(|(name, _)| names.contains(&name.as_str()));
        let found = named.or_else(|| parts.get(index).filter(|(name, _)| name.is_empty()));
        match found {
            Some((_, value)) => integer(value, system),
            None => Err(CallError::script("SO_LINGER takes {onoff=..., linger=...}")),
        }
    };
    let on = part(0, &["onoff", "l_onoff"])? != 0;
    let seconds = part(1, &["linger", "l_linger"])?.clamp(0, i64::from(i32::MAX)) as u64;
    Ok((on, seconds))
}

/// A string, also in brackets.
fn text(value: &Expr) -> Result<Option<String>, CallError> {
    match value {
        Expr::Text(text) => Ok(Some(text.clone())),
        Expr::Function(name, parts) if name == "..." => parts.first().map_or(Ok(None), text),
        Expr::Array(_) => text(bracketed(value)?),
        _ => Ok(None),
    }
}
