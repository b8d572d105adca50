//! Carries a script out, event by event.
//!
//! Each event has a time; the clock is moved there, and timers that are due before expire on the
//! way. A packet that arrives and a call happen at their time, before timers of the same time. An
//! expected packet is waited for, until the end of its window. Times after the event before count
//! from when that one was over, as in packetdrill.
//!
//! # Source
//! packetdrill's `run.c`, `run_packet.c` and `run_system_call.c` (google/packetdrill).
//!
//! # Departures
//! - packetdrill runs code after the last event, with what was recorded before; here it runs at its
//!   time.
//! - A packet of the connection under test that was sent up to the time of the last event, or until
//!   another socket is made, and that nobody expected, is an error, unless `check_end` is off.
//! - Packets and calls happen at their very time, so that the tolerance is for what the host does.

use std::collections::VecDeque;

use ackclock_tcp::Ports;
use ackclock_units::{Span, Time};

use crate::args::{CallError, integer};
use crate::ast::{Action, Call, Direction, Event, EventTime, Expr, PacketSpec, Script};
use crate::calls::{Done, Step, Waiting};
use crate::errno::Errno;
use crate::expr::{Env, Program};
use crate::host::Host;
use crate::numbers::{Connection, Phase};
use crate::report::{Failure, Outcome, Seconds, ShellLine, TraceKind, TraceLine, Verdict, expr_text};
use crate::sockets::{Kernel, SERVER_PORT, Sent};
use crate::sysctl;
use crate::{Settings, code, option_line};

mod packets;

/// Timers that may expire in one script.
const MOST_EXPIRIES: u64 = 2_000_000;
/// Packets that may be sent in one script.
const MOST_PACKETS: u64 = 2_000_000;
/// The end of the clock: a century.
const END_OF_TIME: Time = Time::from_secs(100 * 365 * 86_400);
/// How long a call waits for a blocking one that still runs (`await_idle_thread`).
const PATIENCE: Span = Span::from_secs(1);

/// Reads and runs a script.
pub fn run_text(text: &str, settings: &Settings) -> Outcome {
    match crate::parse_for(text, &crate::Defines::new(), settings) {
        Ok(script) => run(&script, settings),
        Err(error) => Outcome {
            verdict: Verdict::Invalid { line: error.line, message: error.to_string() },
            trace: Vec::new(),
            unrun_shell: Vec::new(),
        },
    }
}

/// Runs `script` against a host with `settings`. What the script says of its host counts where
/// `settings` says nothing.
pub fn run(script: &Script, settings: &Settings) -> Outcome {
    let mut run = match option_line::host(&script.options, settings) {
        Ok(host) => Run::new(host, settings),
        Err(verdict) => return Outcome { verdict, trace: Vec::new(), unrun_shell: Vec::new() },
    };
    let verdict = match run.script(script) {
        Ok(()) => Verdict::Passed,
        Err(Stop::Failed(failure)) => Verdict::Failed(*failure),
        Err(Stop::Unsupported(line, what)) => Verdict::Unsupported { line, what },
        Err(Stop::Invalid(line, message)) => Verdict::Invalid { line, message },
    };
    Outcome { verdict, trace: run.trace, unrun_shell: run.unrun_shell }
}

/// Why a script ends early.
#[derive(Debug)]
enum Stop {
    Failed(Box<Failure>),
    Unsupported(u32, String),
    Invalid(u32, String),
}

/// A packet that was sent and that nobody has expected yet.
#[derive(Debug)]
struct Outgoing {
    time: Time,
    connection: usize,
    packet: Sent,
    /// Its line in the trace.
    trace: usize,
}

/// A blocking call that runs.
#[derive(Debug)]
struct Pending<'a> {
    call: &'a Call,
    line: u32,
    waiting: Waiting,
    started: Time,
    end: Time,
}

/// The time of an event on the clock.
#[derive(Clone, Copy, Debug)]
struct Window {
    from: Time,
    to: Time,
    any: bool,
}

struct Run<'a> {
    kernel: Kernel,
    settings: &'a Settings,
    now: Time,
    connections: Vec<Connection>,
    under_test: Option<usize>,
    outgoing: VecDeque<Outgoing>,
    pending: Option<Pending<'a>>,
    /// The time of the event before, and whether it was a packet that arrived.
    last: Time,
    last_is_inbound: bool,
    started: bool,
    env: Env,
    trace: Vec<TraceLine>,
    unrun_shell: Vec<ShellLine>,
    expiries: u64,
    packets: u64,
}

impl<'a> Run<'a> {
    fn new(host: Host, settings: &'a Settings) -> Run<'a> {
        Run {
            kernel: Kernel::new(host),
            settings,
            now: Time::ZERO,
            connections: Vec::new(),
            under_test: None,
            outgoing: VecDeque::new(),
            pending: None,
            last: Time::ZERO,
            last_is_inbound: false,
            started: false,
            env: Env::new(),
            trace: Vec::new(),
            unrun_shell: Vec::new(),
            expiries: 0,
            packets: 0,
        }
    }

    fn script(&mut self, script: &'a Script) -> Result<(), Stop> {
        for event in &script.events {
            self.event(event)?;
        }
        let last_line = script.events.last().map_or(1, |event| event.line);
        self.finish_pending(last_line)?;
        self.check_end(last_line)
    }

    fn event(&mut self, event: &'a Event) -> Result<(), Stop> {
        let line = event.line;
        if let Action::Shell(text) = &event.action {
            let window = self.window(event)?;
            self.wait_for(line, window, "the command")?;
            return self.shell(line, text);
        }
        if !self.started {
            self.started = true;
            let at_zero = matches!(
                event.time,
                EventTime::Absolute(Span::ZERO) | EventTime::Relative(Span::ZERO) | EventTime::Any
            );
            if !at_zero && self.now == Time::ZERO {
                return Err(Stop::Invalid(line, "the first event is to be at time 0".to_owned()));
            }
        }
        let window = self.window(event)?;
        let mut is_inbound = false;
        match &event.action {
            Action::Packet(packet) => match &**packet {
                PacketSpec::Tcp(spec) if spec.direction == Direction::Inbound => {
                    is_inbound = true;
                    self.wait_for(line, window, "the packet")?;
                    self.arrive(line, spec)?;
                }
                PacketSpec::Tcp(spec) => {
                    let result = self.expect(line, window, spec);
                    match result {
                        Err(Stop::Failed(failure)) if self.kernel.host.non_fatal_packet => {
                            let reason = format!("not fatal: {}", failure.reason);
                            self.push_trace(Some(line), TraceKind::Note, reason);
                        }
                        result => result?,
                    }
                }
                PacketSpec::Icmp(spec) => {
                    is_inbound = true;
                    self.wait_for(line, window, "the message")?;
                    self.arrive_icmp(line, spec)?;
                }
                PacketSpec::Unsupported { kind, .. } => {
                    return Err(Stop::Unsupported(line, format!("packets of kind {kind}")));
                }
            },
            Action::Call(call) => self.call_event(event, call, window)?,
            Action::Shell(_) => {}
            Action::Code(text) => {
                self.wait_for(line, window, "the code")?;
                self.code(line, text)?;
            }
        }
        self.last = if window.any { self.now } else { window.from };
        self.last_is_inbound = is_inbound;
        Ok(())
    }

    // Time.

    /// When `event` is to happen.
    fn window(&self, event: &Event) -> Result<Window, Stop> {
        // Arrivals in a row count from each other's times, so that lateness does not add up.
        let is_inbound = matches!(&event.action, Action::Packet(packet)
            if matches!(&**packet, PacketSpec::Icmp(_))
                || matches!(&**packet, PacketSpec::Tcp(spec) if spec.direction == Direction::Inbound));
        let base = if is_inbound && self.last_is_inbound { self.last } else { self.now };
        let zero = Time::ZERO;
        let (from, to, any) = match event.time {
            EventTime::Absolute(at) => (zero + at, zero + at, false),
            EventTime::AbsoluteRange(from, to) => (zero + from, zero + to, false),
            EventTime::Relative(after) => (base + after, base + after, false),
            EventTime::RelativeRange(from, to) => (base + from, base + to, false),
            EventTime::Any => (self.now, END_OF_TIME, true),
        };
        if to > END_OF_TIME || from > to {
            return Err(Stop::Invalid(
                event.line,
                "a time beyond the next century, or a range that ends before it begins".to_owned(),
            ));
        }
        if matches!(event.time, EventTime::Absolute(_) | EventTime::AbsoluteRange(..))
            && to + Span::from_nanos(1) < self.last
            && self.started
        {
            let (to, last) = (Seconds(to), Seconds(self.last));
            return Err(Stop::Invalid(event.line, format!("time goes back from {last} to {to}")));
        }
        Ok(Window { from, to, any })
    }

    /// How far from `at` something may happen.
    fn tolerance(&self, at: Time, since: Time) -> Span {
        let host = &self.kernel.host;
        let share = u128::from(at.since(since).as_nanos()) * u128::from(host.tolerance_ppm) / 1_000_000;
        host.tolerance.max(Span::from_nanos(u64::try_from(share).unwrap_or(u64::MAX)))
    }

    /// Moves the clock to the time of an event that the script makes happen.
    fn wait_for(&mut self, line: u32, window: Window, what: &str) -> Result<(), Stop> {
        if window.any {
            return Ok(());
        }
        self.advance(line, window.from)?;
        let tolerance = self.tolerance(window.to, self.last);
        if self.now > window.to + tolerance {
            let reason = format!(
                "it is too late for {what}: it was to be at {}, and it is {}",
                Seconds(window.to),
                Seconds(self.now)
            );
            return Err(self.failed(line, reason));
        }
        Ok(())
    }

    /// Lets time pass until `until`: timers before it expire.
    fn advance(&mut self, line: u32, until: Time) -> Result<(), Stop> {
        while self.now < until {
            let next = self.next_deadline();
            if next >= until {
                break;
            }
            self.expire(line, next)?;
        }
        self.now = self.now.max(until);
        Ok(())
    }

    fn next_deadline(&self) -> Time {
        let patience = self.pending.as_ref().map_or(Time::NEVER, |pending| pending.waiting.until);
        self.kernel.next_deadline().min(patience)
    }

    /// Moves the clock to a deadline, or lets one expire that is overdue.
    fn expire(&mut self, line: u32, deadline: Time) -> Result<(), Stop> {
        self.expiries += 1;
        if self.expiries > MOST_EXPIRIES {
            return Err(self.failed(line, format!("more than {MOST_EXPIRIES} timers have expired")));
        }
        self.now = self.now.max(deadline);
        self.kernel.on_deadline(self.now);
        self.settle(line)
    }

    /// Takes over what the host has sent, and goes on with the call that waits.
    fn settle(&mut self, line: u32) -> Result<(), Stop> {
        self.collect(line)?;
        if let Some(pending) = self.pending.take() {
            let Pending { call, line: call_line, waiting, started, end } = pending;
            match self.kernel.resume(self.now, waiting) {
                Step::Blocked(waiting) => {
                    self.pending = Some(Pending { call, line: call_line, waiting, started, end });
                    // It may have written a part.
                    self.collect(line)?;
                }
                Step::Done(done) => {
                    let tolerance = self.tolerance(end, started);
                    let (early, late) = (self.now + tolerance < end, self.now > end + tolerance);
                    self.returned(call_line, call, &done)?;
                    if early || late {
                        return Err(self.failed(call_line, self.return_time(&call.name, end)));
                    }
                    self.collect(line)?;
                }
            }
        }
        Ok(())
    }

    fn return_time(&self, name: &str, end: Time) -> String {
        format!("{name} was to return at {}, and did at {}", Seconds(end), Seconds(self.now))
    }

    // Calls and code.

    fn call_event(&mut self, event: &Event, call: &'a Call, window: Window) -> Result<(), Stop> {
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
                self.pending = Some(Pending { call, line, waiting, started, end });
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

    fn still_waits(&self, line: u32, pending: &Pending<'_>, when: &str) -> Stop {
        let (name, what) = (&pending.call.name, pending.waiting.what);
        self.failed(pending.line, format!("{name} still waits for {what} {when} (line {line})"))
    }

    /// The script is over, and every call with it.
    fn finish_pending(&mut self, line: u32) -> Result<(), Stop> {
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
            }
            Some(_) => {}
            None if anew => self.connections[index].phase = Phase::New,
            None => {}
        }
    }

    /// A call has returned: what it means to connections, and whether it returned what the script
    /// says.
    fn returned(&mut self, line: u32, call: &Call, done: &Done) -> Result<(), Stop> {
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
                self.under_test = Some(self.connections.len() - 1);
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

    fn code(&mut self, line: u32, text: &str) -> Result<(), Stop> {
        let program = Program::parse(text, line).map_err(|error| Stop::Invalid(error.line, error.to_string()))?;
        let socket = self.under_test.and_then(|index| self.connections[index].socket);
        let Some(info) = socket.and_then(|id| code::info(&self.kernel, id, self.now)) else {
            return Err(self.failed(line, "there is no open socket whose state the code could see".to_owned()));
        };
        let first = text.trim().lines().next().unwrap_or("").to_owned();
        self.push_trace(Some(line), TraceKind::Code, format!("{{ {first} }}%"));
        match program.run(&mut self.env, &|name| code::lookup(&info, name)) {
            Ok(printed) => {
                for text in printed {
                    self.push_trace(Some(line), TraceKind::Note, text);
                }
                Ok(())
            }
            Err(error) => Err(self.failed(error.line, error.to_string())),
        }
    }

    fn shell(&mut self, line: u32, text: &str) -> Result<(), Stop> {
        let shell = sysctl::apply(&mut self.kernel.host, self.settings, text);
        self.kernel.note_route();
        self.kernel.retune();
        if let Some(what) = shell.unsupported {
            return Err(Stop::Unsupported(line, what));
        }
        let mut made = shell.changed;
        if !shell.not_run.is_empty() {
            made.push(format!("not run: {}", shell.not_run.join("; ")));
        } else if made.is_empty() {
            made.push("nothing to do".to_owned());
        }
        self.unrun_shell.extend(shell.not_run.into_iter().map(|text| ShellLine { line, text }));
        let made = made.join(", ");
        let first = text.trim().lines().next().unwrap_or("");
        self.push_trace(Some(line), TraceKind::Shell, format!("{first}`: {made}"));
        Ok(())
    }

    fn push_trace(&mut self, line: Option<u32>, kind: TraceKind, text: String) {
        self.trace.push(TraceLine { time: self.now, line, kind, text });
    }

    fn failed(&self, line: u32, reason: String) -> Stop {
        Stop::Failed(Box::new(Failure { line, time: self.now, reason, expected: None, actual: None }))
    }
}

fn expected_result(call: &Call, expected: i64) -> String {
    match &call.errno {
        Some(errno) => format!("{expected} {errno}"),
        None => expected.to_string(),
    }
}

#[cfg(test)]
mod tests;
