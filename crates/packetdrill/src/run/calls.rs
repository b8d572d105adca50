//! Calls of a script: those that return at once, and one that waits.

use ackclock_tcp::Ports;
use ackclock_units::Time;

use super::{BlockingCall, PATIENCE, Run, Stop, TimeWindow};
use crate::args::{CallError, integer};
use crate::ast::{Call, Event, EventTime, Expr};
use crate::calls::{Done, Step};
use crate::errno::Errno;
use crate::mptcp::Subflow;
use crate::numbers::{Connection, Phase};
use crate::report::{Seconds, TraceKind, expr_text};
use crate::sockets::SERVER_PORT;

impl<'a> Run<'a> {
    pub(super) fn return_time(&self, name: &str, end: Time) -> String {
        format!("{name} was to return at {}, and did at {}", Seconds(end), Seconds(self.now))
    }

    pub(super) fn call_event(&mut self, event: &Event, call: &'a Call, window: TimeWindow) -> Result<(), Stop> {
        let line = event.line;
        let base = self.now;
        // A call waits for one that blocks, but not for ever: two may run at a time if only one of
        // them blocks.
        let limit = if window.any { self.now } else { window.from };
        self.let_return(line, limit.max(self.now + PATIENCE))?;
        if let Some(pending) = self.pending.as_ref().filter(|_| call.until.is_some()) {
            return Err(self.still_waits(line, pending, "when the next blocking call starts"));
        }
        self.wait_for(line, window, "the call")?;
        let end = call.until.map(|until| match event.time {
            EventTime::Absolute(_) | EventTime::AbsoluteRange(..) => Time::ZERO + until,
            _ => base + until,
        });
        if call.name == "socket" {
            // Another connection will be under test.
            self.check_end(line)?;
        }
        let started = self.now;
        let step = match self.kernel.call(self.now, call) {
            Ok(step) => step,
            Err(CallError::Script(reason)) => return Err(self.failed(line, format!("{}: {reason}", call.name))),
            Err(CallError::Unsupported(what)) => return Err(Stop::Unsupported(line, what)),
        };
        self.note_connect(call);
        match (step, end) {
            (Step::Done(done), None) => self.returned(line, call, &done)?,
            (Step::Done(done), Some(end)) => {
                self.returned(line, call, &done)?;
                if self.now + self.tolerance(end, started) < end {
                    return Err(self.failed(line, self.return_time(&call.name, end)));
                }
            }
            (Step::Blocked(waiting), None) => {
                let what = waiting.what;
                return Err(self.failed(line, format!("{} blocks: it waits for {what}", call.name)));
            }
            (Step::Blocked(waiting), Some(end)) => {
                self.pending = Some(BlockingCall { call, line, waiting, started, end });
            }
        }
        self.settle(line)
    }

    /// Gives a call that blocks time to return, until `limit`.
    fn let_return(&mut self, line: u32, limit: Time) -> Result<(), Stop> {
        while self.pending.is_some() {
            let next = self.next_deadline();
            if next > limit {
                break;
            }
            self.expire(line, next)?;
        }
        Ok(())
    }

    fn still_waits(&self, line: u32, pending: &BlockingCall<'_>, when: &str) -> Stop {
        let (name, what) = (&pending.call.name, pending.waiting.what);
        self.failed(pending.line, format!("{name} still waits for {what} {when} (line {line})"))
    }

    /// The script is over, and every call with it.
    pub(super) fn finish_pending(&mut self, line: u32) -> Result<(), Stop> {
        self.let_return(line, self.now + PATIENCE)?;
        match &self.pending {
            Some(pending) => Err(self.still_waits(line, pending, "at the end of the script")),
            None => Ok(()),
        }
    }

    /// connect() gives a connection its ports.
    fn note_connect(&mut self, call: &Call) {
        // Others may open a connection too, but only connect() opens one anew.
        let anew = call.name == "connect";
        if !anew && !matches!(call.name.as_str(), "sendto" | "sendmsg" | "send" | "write" | "writev") {
            return;
        }
        let system = self.kernel.host.system;
        let fd = call.args.first().and_then(|fd| integer(fd, system).ok());
        let Some(id) = fd.and_then(|fd| self.kernel.by_fd(fd)) else { return };
        let Some(index) = self.connections.iter().rposition(|connection| connection.socket == Some(id)) else { return };
        match self.kernel.endpoint(id).map(|endpoint| endpoint.ports()) {
            Some(ports)
                if self.connections[index].phase == Phase::New || anew && self.connections[index].ports != ports =>
            {
                self.connections[index] = Connection::new(Phase::Connecting, ports, Some(id));
                let ends = self.kernel.host.ends();
                self.connections[index].subflow = Subflow::between(ends);
                self.names.note_remote(ends[1]);
            }
            Some(_) => {}
            None if anew => self.connections[index].phase = Phase::New,
            None => {}
        }
    }

    /// A call has returned: what it means to connections, and whether it returned what the script
    /// says.
    pub(super) fn returned(&mut self, line: u32, call: &Call, done: &Done) -> Result<(), Stop> {
        let system = self.kernel.host.system;
        let result = match done.errno {
            Some(errno) => format!("{} {errno}", done.value),
            None => done.value.to_string(),
        };
        let args: Vec<String> = call.args.iter().map(expr_text).collect();
        self.push_trace(Some(line), TraceKind::Call, format!("{}({}) = {result}", call.name, args.join(", ")));
        if done.value >= 0 {
            self.note_return(call, done.value);
        }
        let mut reason = None;
        if call.result != Expr::Ellipsis {
            let expected = integer(&call.result, system).map_err(|error| match error {
                CallError::Script(reason) => self.failed(line, reason),
                CallError::Unsupported(what) => Stop::Unsupported(line, what),
            })?;
            let fits = if done.is_fd && expected >= 0 { done.value >= 0 } else { done.value == expected };
            if !fits {
                reason = Some(format!("{} returned {result}, expected {}", call.name, expected_result(call, expected)));
            }
        }
        if let (None, Some(name)) = (&reason, &call.errno) {
            let Some(expected) = Errno::by_name(name) else {
                return Err(Stop::Unsupported(line, format!("the error {name}")));
            };
            if done.errno != Some(expected) {
                reason = Some(format!("{} returned {result}, expected {expected}", call.name));
            }
        }
        if reason.is_none() {
            reason = done.complaint.as_ref().map(|complaint| format!("{}: {complaint}", call.name));
        }
        match reason {
            None => Ok(()),
            Some(reason) if self.kernel.host.non_fatal_call => {
                self.push_trace(Some(line), TraceKind::Note, format!("not fatal: {reason}"));
                Ok(())
            }
            Some(reason) => Err(self.failed(line, reason)),
        }
    }

    fn note_return(&mut self, call: &Call, value: i64) {
        let system = self.kernel.host.system;
        let fd = match call.name.as_str() {
            "socket" | "accept" | "accept4" => Some(value),
            "listen" => call.args.first().and_then(|fd| integer(fd, system).ok()),
            _ => None,
        };
        let Some(id) = fd.and_then(|fd| self.kernel.by_fd(fd)) else { return };
        match call.name.as_str() {
            "socket" => {
                let ports = Ports { local: SERVER_PORT, remote: self.kernel.client_port() };
                self.connections.push(Connection::new(Phase::New, ports, Some(id)));
                self.first_of_socket = self.connections.len() - 1;
                self.under_test = Some(self.first_of_socket);
            }
            "listen" => {
                if let Some(connection) =
                    self.connections.iter_mut().rev().find(|connection| connection.socket == Some(id))
                {
                    connection.phase = Phase::Listening;
                }
            }
            _ => {
                let ports = self.kernel.endpoint(id).map(|endpoint| endpoint.ports());
                if let Some(connection) =
                    self.connections.iter_mut().rev().find(|connection| Some(connection.ports) == ports)
                {
                    connection.socket = Some(id);
                }
            }
        }
    }
}

fn expected_result(call: &Call, expected: i64) -> String {
    match &call.errno {
        Some(errno) => format!("{expected} {errno}"),
        None => expected.to_string(),
    }
}
