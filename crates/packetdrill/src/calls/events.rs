//! Calls that wait for events: poll and epoll.

use ackclock_units::{Span, Time};

use super::{Done, Op, Polled, Step, Waiting};
use crate::args::{Args, CallError, integer};
use crate::ast::Expr;
use crate::epoll::{ERR, HUP, NVAL};
use crate::errno::Errno;
use crate::shapes::{Expected, event_data, part, parts};
use crate::sockets::Kernel;

impl Kernel {
    pub(super) fn polled(&self, polled: &Polled) -> u32 {
        match self.by_fd(polled.fd) {
            Some(id) => self.poll_mask(id) & (polled.events | ERR | HUP),
            None if polled.fd < 0 => 0,
            None => NVAL,
        }
    }

    pub(super) fn call_poll(&mut self, now: Time, args: &Args<'_>) -> Result<Step, CallError> {
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

    pub(super) fn call_epoll_ctl(&mut self, args: &Args<'_>) -> Result<Done, CallError> {
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

    pub(super) fn call_epoll_wait(&mut self, now: Time, args: &Args<'_>) -> Result<Step, CallError> {
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
