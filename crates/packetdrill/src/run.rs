//! Executes a script, event by event.
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

use ackclock_units::{Span, Time};

use crate::ast::{Action, Call, Direction, Event, EventTime, PacketSpec, Script};
use crate::calls::Waiting;
use crate::expr::{Program, Variables};
use crate::host::Host;
use crate::mptcp::Names;
use crate::numbers::Connection;
use crate::report::{Failure, Outcome, ScriptResult, ShellLine, TraceKind, TraceLine};
use crate::sockets::{Kernel, Sent};
use crate::{Settings, code, option_line, sysctl};

mod calls;
mod clock;
mod packets;
mod subflows;

/// Timers that may expire in one script.
const MOST_EXPIRIES: u64 = 2_000_000;
/// Packets that may be sent in one script.
const MOST_PACKETS: u64 = 2_000_000;
/// The end of the clock: a century.
const END_OF_TIME: Time = Time::from_secs(100 * 365 * 86_400);
/// Time for which a call waits for a blocking one that still runs (`await_idle_thread`).
const PATIENCE: Span = Span::from_secs(1);

/// Reads and runs a script.
pub fn run_text(text: &str, settings: &Settings) -> Outcome {
    match crate::parse_for(text, &crate::Defines::new(), settings) {
        Ok(script) => run(&script, settings),
        Err(error) => Outcome {
            result: ScriptResult::Invalid { line: error.line, message: error.to_string() },
            trace: Vec::new(),
            unrun_shell: Vec::new(),
        },
    }
}

/// Runs `script` against a host with `settings`. The script's settings of its host count where
/// `settings` says nothing.
pub fn run(script: &Script, settings: &Settings) -> Outcome {
    let mut run = match option_line::host(&script.options, settings) {
        Ok(host) => Run::new(host, settings),
        Err(result) => return Outcome { result, trace: Vec::new(), unrun_shell: Vec::new() },
    };
    let result = match run.script(script) {
        Ok(()) => ScriptResult::Passed,
        Err(Stop::Failed(failure)) => ScriptResult::Failed(*failure),
        Err(Stop::Unsupported(line, what)) => ScriptResult::Unsupported { line, what },
        Err(Stop::Invalid(line, message)) => ScriptResult::Invalid { line, message },
    };
    Outcome { result, trace: run.trace, unrun_shell: run.unrun_shell }
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
struct Unexpected {
    time: Time,
    connection: usize,
    packet: Sent,
    /// Its line in the trace.
    trace: usize,
}

/// A blocking call that runs.
#[derive(Debug)]
struct BlockingCall<'a> {
    call: &'a Call,
    line: u32,
    waiting: Waiting,
    started: Time,
    end: Time,
}

/// The time of an event on the clock.
#[derive(Clone, Copy, Debug)]
struct TimeWindow {
    from: Time,
    to: Time,
    any: bool,
}

struct Run<'a> {
    kernel: Kernel,
    settings: &'a Settings,
    now: Time,
    connections: Vec<Connection>,
    /// The connection that the last socket() has made; further ones are of the same socket.
    first_of_socket: usize,
    /// Names of MPTCP.
    names: Names,
    under_test: Option<usize>,
    outgoing: VecDeque<Unexpected>,
    pending: Option<BlockingCall<'a>>,
    /// The time of the event before, and whether it was a packet that arrived.
    last: Time,
    last_is_inbound: bool,
    started: bool,
    env: Variables,
    trace: Vec<TraceLine>,
    unrun_shell: Vec<ShellLine>,
    expiries: u64,
    packets: u64,
}

impl<'a> Run<'a> {
    fn new(host: Host, settings: &'a Settings) -> Run<'a> {
        Run {
            names: Names::new(host.mptcp.check_address_id),
            kernel: Kernel::new(host),
            settings,
            now: Time::ZERO,
            connections: Vec::new(),
            first_of_socket: 0,
            under_test: None,
            outgoing: VecDeque::new(),
            pending: None,
            last: Time::ZERO,
            last_is_inbound: false,
            started: false,
            env: Variables::new(),
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
                return Err(Stop::Invalid(line, "the first event must be at time 0".to_owned()));
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

#[cfg(test)]
mod tests;
