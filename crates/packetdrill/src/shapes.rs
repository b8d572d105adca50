//! Structures among the arguments of calls: buffers, messages and events, and what a call is
//! expected to write into them.

use crate::args::{CallError, integer};
use crate::ast::Expr;
use crate::epoll::Ready;
use crate::system::System;

/// The event that epoll_wait is expected to give first.
#[derive(Clone, Debug, PartialEq)]
pub(crate) struct Expected {
    pub(crate) events: Option<u32>,
    pub(crate) data: Option<i64>,
}

/// The fields that recvmsg is expected to fill in.
#[derive(Clone, Debug, PartialEq)]
pub(crate) struct ExpectedMessage {
    pub(crate) flags: i64,
    /// The bytes left that `TCP_CM_INQ` tells.
    pub(crate) inq: Option<i64>,
    pub(crate) has_control: bool,
}

impl Expected {
    pub(crate) fn complaint(&self, first: &Ready) -> Option<String> {
        match (self.events, self.data) {
            (Some(events), _) if events != first.events => {
                Some(format!("epoll events: expected {events:#x}, got {:#x}", first.events))
            }
            (_, Some(data)) if data != first.data => Some(format!("epoll data: expected {data}, got {}", first.data)),
            _ => None,
        }
    }

    pub(crate) fn complaint_of_nothing(&self) -> Option<String> {
        let events = self.events.filter(|&events| events != 0)?;
        Some(format!("epoll events: expected {events:#x}, got none"))
    }
}

impl ExpectedMessage {
    /// Where what recvmsg filled in differs, with bytes that wait after it and whether the peer has
    /// finished.
    pub(crate) fn complaint(&self, inq: bool, (unread, finished): (u64, bool)) -> Option<String> {
        // The runner fills in no flags: there is no urgent data and no control message that did not
        // fit.
        if self.flags != 0 {
            return Some(format!("msg_flags: expected {:#x}, got 0", self.flags));
        }
        match (self.has_control, inq) {
            (true, false) => Some("control message: expected TCP_CM_INQ, got none".to_owned()),
            (true, true) => {
                // `tcp_inq_hint`: the end of the stream counts as one byte, so that the caller
                // reads again.
                let at_end = unread == 0 && finished;
                let unread = unread + u64::from(at_end);
                let expected = self.inq.filter(|&bytes| bytes != unread as i64)?;
                Some(format!("TCP_CM_INQ: expected {expected}, got {unread}"))
            }
            _ => None,
        }
    }
}

/// The parts of a structure.
pub(crate) fn parts(expr: &Expr) -> Result<&[(String, Expr)], CallError> {
    match expr {
        Expr::Struct(parts) => Ok(parts),
        _ => Err(CallError::script("a structure in braces is needed")),
    }
}

pub(crate) fn part<'a>(parts: &'a [(String, Expr)], name: &str) -> Option<&'a Expr> {
    parts.iter().find(|(part, _)| part == name).map(|(_, value)| value)
}

/// The bytes of `[{..., 1000}, {..., 500}]`, `count` elements, and whether a buffer among them is
/// NULL.
pub(crate) fn vector(list: &Expr, count: i64, system: System) -> Result<(i64, bool), CallError> {
    let Expr::Array(list) = list else { return Err(CallError::script("a list of {..., length} is needed")) };
    if count != list.len() as i64 {
        return Err(CallError::Script(format!("{count} buffers are announced, {} listed", list.len())));
    }
    let mut total = 0i64;
    let mut null = false;
    for buffer in list {
        match parts(buffer)? {
            [(_, base), (_, length)] => {
                null |= matches!(base, Expr::Integer(0)) || *base == Expr::Symbol("NULL".to_owned());
                total = total.saturating_add(integer(length, system)?);
            }
            _ => return Err(CallError::script("a buffer is {..., length}")),
        }
    }
    Ok((total, null))
}

pub(crate) fn message_vector(message: &[(String, Expr)], system: System) -> Result<(i64, bool), CallError> {
    let list = part(message, "msg_iov").ok_or_else(|| CallError::script("the message has no msg_iov"))?;
    let count = match part(message, "msg_iovlen") {
        Some(count) => integer(count, system)?,
        None => match list {
            Expr::Array(list) => list.len() as i64,
            _ => 0,
        },
    };
    vector(list, count, system)
}

pub(crate) fn control(message: &[(String, Expr)]) -> Option<&[Expr]> {
    match part(message, "msg_control") {
        Some(Expr::Array(list)) => Some(list),
        _ => None,
    }
}

/// `fd=`, `ptr=`, `u32=` or `u64=`.
pub(crate) fn event_data(event: &[(String, Expr)], system: System) -> Result<Option<i64>, CallError> {
    for name in ["fd", "ptr", "u32", "u64"] {
        match part(event, name) {
            Some(Expr::Ellipsis) | None => {}
            Some(value) => return integer(value, system).map(Some),
        }
    }
    Ok(None)
}
