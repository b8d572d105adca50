//! The loop: packets from devices to the engine, due packets to devices, and sleep in between.
//!
//! While there is work the loop does not return to the event loop. It reads packets in batches,
//! each packet with the time at which it was read; a batch ends early when something has been due
//! for too long. Between two batches everything due is handed over. Lateness affects nothing else:
//! the engine does everything at its due time, and the next packet enters the path after everything
//! that was due before it.
//!
//! Stacks in this process follow in the time of the run ([`crate::stacks`]): before a packet enters,
//! and before due packets are handed over, they do what was due until then.

use std::io::{self, ErrorKind};
use std::os::fd::AsRawFd;
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};

use ackclock_sim::spec::Scheduling;
use ackclock_sim::{Recorders, RunError};
use ackclock_trace::ChangeSummary;
use ackclock_units::{Span, Time};
use nix::errno::Errno;

use super::clock::RunClock;
use super::punctuality::Punctuality;
use super::scheduling::{Budget, REST};
use super::spin::Margin;
use super::steering::Steering;
use super::waiter::{EndSignals, Waiter, Woken};
use super::watched::PunctualityReports;
use super::with_ports;
use crate::capture::{CaptureDirection, CaptureWriter};
use crate::stacks::Stacks;
use crate::{Control, Engine, LiveWatch, Offload, Outgoing};

/// Packets per read of a device. In a batch each packet costs less, since the kernel's code for
/// reading and that for writing compete for the cache, but due packets wait meanwhile.
const BATCH: usize = 32;

/// The lateness at which a batch of reads is interrupted.
const PATIENCE: Span = Span::from_micros(20);

/// Packets that are handed over before devices are read again.
const TURN: usize = 64;

/// The interval of polls for signals in a loop without time to sleep, and the shortest interval of
/// device checks.
const LOOK: Span = Span::from_millis(10);

/// The longest sleep. A loop that is stopped while it sleeps notices by waking too late, so that
/// such a stall goes unnoticed by at most this. A device that is gone or down wakes nobody: it is
/// noticed when it is read or checked.
const HEARTBEAT: Span = Span::from_millis(5);

/// The shortest sleep; a shorter one takes longer to begin and end.
const SHORTEST_SLEEP: Span = Span::from_micros(5);

/// A host's device, without blocking.
pub(super) trait Port: AsRawFd {
    /// Reads a packet, truncated to the buffer; `WouldBlock` if there is none.
    fn read(&self, buffer: &mut [u8]) -> io::Result<usize>;

    /// Returns `true` if it has offloads (segments and unfinished checksums): then
    /// [`Port::read_offloaded`] reads them.
    fn offloads(&self) -> bool;

    /// Reads a packet or segment, continued in the second buffer, and its offload.
    fn read_offloaded(&self, buffers: [&mut [u8]; 2]) -> io::Result<(usize, Offload)>;

    /// Writes a packet, or a segment of several.
    fn write(&self, packet: &Outgoing<'_>) -> io::Result<()>;

    /// Checks that it has worked since the last call. A port that takes no packets may still be
    /// readable.
    fn check(&self) -> io::Result<()>;
}

/// A host's port.
#[derive(Debug)]
pub(super) struct Attached<'a, P> {
    /// The number of the host.
    pub(super) node: usize,
    pub(super) port: &'a P,
    /// Packets that it refused.
    pub(super) refused: u64,
}

/// The reason why the loop ended.
#[derive(Debug)]
pub(super) enum LoopEnd {
    /// The duration of the run is over.
    Over,
    /// A signal.
    Interrupted,
    /// The program that has the terminal has ended.
    Program,
    /// A port, by its index, no longer works.
    Gone(usize, io::Error),
    /// The capture cannot be written.
    Capture,
    /// Wrong data, or a recorder that interrupts the run.
    Run(RunError),
    /// The kernel refuses to let the loop sleep.
    Sleep(io::Error),
}

/// The extent to which due packets were handed over.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum HandOver {
    Nothing,
    /// Due packets remain.
    Some,
    All,
}

/// The loop and its state.
#[derive(Debug)]
pub(super) struct Drive<'a, P: Port> {
    engine: Engine,
    stacks: Stacks,
    /// The time until which stacks have been called.
    settled: Time,
    ports: Vec<Attached<'a, P>>,
    /// The index of each host's port; `usize::MAX` for a host without one.
    port_of: Vec<usize>,
    capture: Option<CaptureWriter>,
    waiter: Waiter<'a>,
    clock: RunClock,
    /// The last reading of the clock.
    now: Time,
    /// The last nanosecond of the run.
    last: Time,
    margin: Margin,
    budget: Budget,
    /// The ports were empty a moment ago and need not be read.
    quiet: bool,
    /// No unread packet arrived before this time, unless the loop was stopped while it slept, for
    /// up to [`HEARTBEAT`].
    since: Time,
    punctuality: Punctuality,
    /// A port may have unread packets.
    more: bool,
    sleeps: u64,
    /// The program that has the terminal has ended.
    over: Arc<AtomicBool>,
    watched: Option<PunctualityReports>,
    steering: Steering,
}

/// The state of the loop after its end.
#[derive(Debug)]
pub(super) struct Driven<'a, P> {
    pub(super) engine: Engine,
    pub(super) stacks: Stacks,
    pub(super) ports: Vec<Attached<'a, P>>,
    pub(super) capture: Option<CaptureWriter>,
    pub(super) punctuality: Punctuality,
    pub(super) sleeps: u64,
    /// The mean time before deadlines at which it stopped sleeping.
    pub(super) spin: Span,
    pub(super) signals: EndSignals,
}

impl<'a, P: Port> Drive<'a, P> {
    /// A run of `duration` that begins now. `ports` has the number of each port's host.
    pub(super) fn start(
        (mut engine, stacks): (Engine, Stacks),
        ports: Vec<(usize, &'a P)>,
        signals: EndSignals,
        capture: Option<CaptureWriter>,
        duration: Span,
        scheduling: &Scheduling,
    ) -> io::Result<Drive<'a, P>> {
        // A device without offloads accepts only complete packets.
        if capture.is_some() || ports.iter().any(|(_, port)| !port.offloads()) {
            engine.keep_whole();
        }
        let waiter = Waiter::new(ports.iter().map(|&(_, port)| port), signals);
        let hosts = ports.iter().map(|&(node, _)| node + 1).max().unwrap_or(0);
        let mut port_of = vec![usize::MAX; hosts];
        ports.iter().enumerate().for_each(|(index, &(node, _))| port_of[node] = index);
        Ok(Drive {
            engine,
            stacks,
            settled: Time::ZERO,
            ports: ports.into_iter().map(|(node, port)| Attached { node, port, refused: 0 }).collect(),
            port_of,
            capture,
            waiter,
            clock: RunClock::start()?,
            now: Time::ZERO,
            last: Time::ZERO + (duration - Span::from_nanos(1)),
            margin: Margin::new(scheduling.spin),
            budget: Budget::new(scheduling.priority),
            quiet: false,
            since: Time::ZERO,
            punctuality: Punctuality::default(),
            more: false,
            sleeps: 0,
            over: Arc::default(),
            watched: None,
            steering: Steering::default(),
        })
    }

    /// Reports punctuality to `watch` from now on.
    pub(super) fn be_watched(&mut self, watch: Arc<dyn LiveWatch>) {
        self.punctuality.be_watched();
        self.watched = Some(PunctualityReports::new(watch));
    }

    /// Makes the loop end when `over` becomes true.
    pub(super) fn ends_with(&mut self, over: Arc<AtomicBool>) {
        self.over = over;
    }

    /// Accepts changes from `control` from now on.
    pub(super) fn takes_changes(&mut self, control: Option<Control>) {
        self.steering = Steering::new(control);
    }

    /// Stops accepting changes: returns those that were made, and the longest delay among them.
    pub(super) fn no_more_changes(&mut self) -> (Vec<ChangeSummary>, Span) {
        self.steering.finish()
    }

    /// Makes the changes that have been submitted.
    fn steer(&mut self) {
        for (at, order) in self.steering.take(self.now, self.last) {
            self.engine.change(at, &order.changes);
            if let Some(capture) = &mut self.capture {
                capture.change(at, &order.set);
            }
            order.made.tell(at);
        }
    }

    /// The last reading of the clock.
    pub(super) fn now(&self) -> Time {
        self.now
    }

    /// The hosts with ports, in order.
    pub(super) fn nodes(&self) -> impl Iterator<Item = usize> {
        self.ports.iter().map(|attached| attached.node)
    }

    pub(super) fn engine(&mut self) -> &mut Engine {
        &mut self.engine
    }

    /// The time until which packets are handed over, by the last reading of the clock.
    #[inline]
    fn until(&self) -> Time {
        if self.stacks.is_empty() { self.now.min(self.last) } else { self.settled }
    }

    /// Calls stacks for what is due by the last reading of the clock; `false` if there was nothing.
    fn settle(&mut self, recorders: &mut Recorders<'_>) -> Result<bool, LoopEnd> {
        if self.stacks.is_empty() {
            return Ok(false);
        }
        let until = self.now.min(self.last);
        let due = self.stacks.next_deadline().min(self.engine.next_inside());
        if due <= until {
            self.punctuality.is_due(due);
        }
        let capture = &mut self.capture;
        let any = self.stacks.settle(&mut self.engine, until, recorders, &mut |at, node, way, bytes| {
            if let Some(capture) = capture {
                capture.packet(at, node, way, bytes);
            }
        });
        self.settled = self.settled.max(until);
        any.map_err(LoopEnd::Run)
    }

    /// Does everything that is due by `ended`, without handing it over.
    pub(super) fn pass(&mut self, ended: Time, recorders: &mut Recorders<'_>) -> Result<(), RunError> {
        self.now = ended;
        let settled = self.settle(recorders);
        while self.engine.advance(ended).is_some() {}
        match settled {
            Err(LoopEnd::Run(error)) => Err(error),
            _ => Ok(()),
        }
    }

    /// Hands over everything that is due, after which the loop ends.
    fn end(&mut self, recorders: &mut Recorders<'_>, end: LoopEnd) -> LoopEnd {
        let settled = self.settle(recorders);
        settled.and_then(|_| self.hand_over(usize::MAX)).err().unwrap_or(end)
    }

    /// Runs until the duration is over or something ends the run. Everything due until then has
    /// been handed over, unless its port is gone.
    pub(super) async fn run(&mut self, recorders: &mut Recorders<'_>) -> LoopEnd {
        let (mut looked, mut checked) = (Time::ZERO, Time::ZERO);
        loop {
            let mut from = self.now;
            let round = self.round(recorders);
            self.budget.ran(self.now.since(from));
            if self.budget.is_spent()
                && let Err(error) = self.rest()
            {
                return LoopEnd::Sleep(error);
            }
            match round {
                Ok(true) => {}
                Ok(false) if self.now > self.last => return self.end(recorders, LoopEnd::Over),
                Ok(false) => {
                    let until = self.idle_until();
                    if until > self.now + SHORTEST_SLEEP {
                        self.sleeps += 1;
                        if let Err(error) = self.sleep(until) {
                            return LoopEnd::Sleep(error);
                        }
                        from = until;
                    } else {
                        self.margin.spun(self.now, self.now.since(from));
                    }
                }
                Err(end) => return end,
            }
            self.punctuality.stood_still(self.now.since(from));
            // An arriving packet wakes the loop before `from`.
            self.since = from.min(self.now);
            if self.now.since(looked) >= LOOK {
                looked = self.now;
                self.waiter.look().await;
                if let Err(end) = self.settle(recorders) {
                    return end;
                }
                self.steer();
            }
            if self.now.since(checked) >= LOOK {
                checked = self.now;
                if let Err(end) = self.check() {
                    return end;
                }
                if let Some(watched) = &mut self.watched {
                    let refused = self.ports.iter().map(|port| port.refused);
                    watched.look(self.now, &mut self.punctuality, with_ports(self.engine.hosts(), refused));
                }
            }
            let end = match (self.waiter.signals() > 0, self.over.load(Ordering::Relaxed)) {
                (false, false) => continue,
                (true, _) => LoopEnd::Interrupted,
                (false, true) => LoopEnd::Program,
            };
            self.now = self.clock.now();
            return self.end(recorders, end);
        }
    }

    /// Checks every port.
    fn check(&self) -> Result<(), LoopEnd> {
        for (index, Attached { port, .. }) in self.ports.iter().enumerate() {
            port.check().map_err(|error| LoopEnd::Gone(index, error))?;
        }
        Ok(())
    }

    /// The time until which an idle loop may sleep; not later than now if something is due so soon
    /// that sleeping would miss it.
    fn idle_until(&self) -> Time {
        let due = self.engine.next_due().min(self.stacks.next_deadline()).min(self.last);
        (due - self.margin.now()).min(self.now + HEARTBEAT)
    }

    /// Leaves the processor to other threads for a while, whatever is due.
    #[cold]
    fn rest(&mut self) -> io::Result<()> {
        let from = self.now;
        Waiter::rest(REST)?;
        self.now = self.clock.now();
        self.budget.slept(self.now.since(from));
        Ok(())
    }

    /// Sleeps until `until`, or until there is work.
    fn sleep(&mut self, until: Time) -> io::Result<()> {
        let from = self.now;
        let woken = self.waiter.sleep(until.since(from))?;
        self.now = self.clock.now();
        self.budget.slept(self.now.since(from));
        self.quiet = woken == Woken::ByTime;
        if self.quiet {
            self.margin.overslept(self.now, self.now.since(until));
        }
        Ok(())
    }

    /// Reads every port, calls stacks, and hands over what is due; `false` if there was nothing to do.
    fn round(&mut self, recorders: &mut Recorders<'_>) -> Result<bool, LoopEnd> {
        let mut worked = false;
        self.more = false;
        if !std::mem::take(&mut self.quiet) {
            for index in 0..self.ports.len() {
                worked |= self.read(index, recorders)?;
            }
            self.now = self.clock.now();
        }
        worked |= self.settle(recorders)?;
        let handed = self.hand_over(TURN)?;
        if !worked && handed == HandOver::Nothing {
            let now = self.until();
            self.engine.world().pass(now);
            self.engine.world().keep_up(now, recorders).map_err(LoopEnd::Run)?;
            return Ok(false);
        }
        // This advances links to the present: nothing due may remain.
        if handed != HandOver::Some {
            let now = self.until();
            self.engine.world().keep_up(now, recorders).map_err(LoopEnd::Run)?;
        }
        if let Some(error) = self.engine.error() {
            return Err(LoopEnd::Run(error.clone()));
        }
        if self.capture.as_ref().is_some_and(CaptureWriter::failed) {
            return Err(LoopEnd::Capture);
        }
        Ok(self.now <= self.last)
    }

    /// Reads a batch of packets; `false` if there was none.
    fn read(&mut self, index: usize, recorders: &mut Recorders<'_>) -> Result<bool, LoopEnd> {
        let begin = self.now;
        for count in 0..BATCH {
            let Attached { node, port, .. } = self.ports[index];
            let read = if port.offloads() {
                port.read_offloaded(self.engine.buffers())
            } else {
                port.read(self.engine.buffer()).map(|len| (len, Offload::default()))
            };
            let (len, offload) = match read {
                Ok(read) => read,
                Err(error) if error.kind() == ErrorKind::WouldBlock => return Ok(count > 0),
                Err(error) if error.kind() == ErrorKind::Interrupted => continue,
                Err(error) => return Err(LoopEnd::Gone(index, error)),
            };
            self.now = self.clock.now();
            if self.now > self.last {
                // It arrived after the end of the run.
                return Ok(true);
            }
            self.punctuality.read(self.now.since(self.since));
            if !self.stacks.is_empty() {
                self.engine.set_aside();
                let settled = self.settle(recorders);
                self.engine.take_up();
                settled?;
            }
            let (now, capture) = (self.now, &mut self.capture);
            self.engine.arrive_offloaded(now, node, len, offload, |packet| {
                if let Some(capture) = capture {
                    capture.packet(now, node, CaptureDirection::FromHost, packet);
                }
            });
            let due = self.engine.next_due();
            if due <= self.now {
                self.punctuality.is_due(due);
                if self.now.since(due) >= PATIENCE {
                    break;
                }
            }
        }
        self.more = true;
        self.punctuality.is_due(begin);
        Ok(true)
    }

    /// Hands over at most `most` packets that are due or become due meanwhile.
    fn hand_over(&mut self, most: usize) -> Result<HandOver, LoopEnd> {
        let due = self.engine.next_due();
        if due > self.until() {
            self.caught_up();
            return Ok(HandOver::Nothing);
        }
        self.punctuality.is_due(due);
        let mut packets = 0;
        while packets < most {
            let Some(out) = self.engine.advance(self.until()) else {
                self.caught_up();
                return Ok(HandOver::All);
            };
            packets += out.packets as usize;
            let Some(Attached { port, refused, .. }) =
                self.port_of.get(out.node).and_then(|&index| self.ports.get_mut(index))
            else {
                continue;
            };
            let written = port.write(&out);
            self.now = self.clock.now();
            match written {
                Ok(()) => {
                    self.punctuality.handed_over(out.at, self.now, out.packets);
                    if let Some(capture) = &mut self.capture {
                        // The due time lets a replay compare.
                        capture.packet(out.at, out.node, CaptureDirection::ToHost, out.bytes);
                    }
                }
                Err(error) if is_gone(&error) => return Err(LoopEnd::Gone(self.port_of[out.node], error)),
                Err(_) => *refused += u64::from(out.packets),
            }
        }
        Ok(HandOver::Some)
    }

    fn caught_up(&mut self) {
        if !self.more {
            self.punctuality.caught_up(self.now);
        }
    }

    /// Drains the run after its end: hands over the packets that are on their way, each at its
    /// time, until there are none, `patience` is over, or another signal arrives. Packets from
    /// hosts, and to stacks, are discarded.
    pub(super) async fn drain(&mut self, patience: Span) -> LoopEnd {
        self.engine.world().drain();
        let signals = self.waiter.signals();
        self.last = self.now + patience;
        let mut discarded = [0; 1];
        loop {
            self.now = self.clock.now();
            if !self.stacks.is_empty() {
                // They have ended.
                self.settled = self.now;
                while self.engine.advance_stacks(self.settled).is_some() {}
            }
            match self.hand_over(TURN) {
                Ok(HandOver::Some | HandOver::All) => {}
                Ok(HandOver::Nothing) => {
                    let due = self.engine.next_due();
                    if due > self.last {
                        return LoopEnd::Over;
                    }
                    for Attached { port, .. } in &self.ports {
                        while port.read(&mut discarded).is_ok() {}
                    }
                    let until = (due - self.margin.now()).min(self.now + HEARTBEAT);
                    if until > self.now
                        && let Err(error) = self.sleep(until)
                    {
                        return LoopEnd::Sleep(error);
                    }
                    self.waiter.look().await;
                }
                Err(end) => return end,
            }
            if self.waiter.signals() > signals {
                return LoopEnd::Interrupted;
            }
        }
    }

    /// Ends the loop.
    pub(super) fn finish(self) -> Driven<'a, P> {
        let Drive { engine, stacks, ports, capture, waiter, punctuality, sleeps, margin, .. } = self;
        let (spin, signals) = (margin.mean(), waiter.into_signals());
        Driven { engine, stacks, ports, capture, punctuality, sleeps, spin, signals }
    }
}

/// Returns `true` if an error means that a device no longer works: gone (`EBADFD`) or down (`EIO`).
/// Other errors concern one packet.
fn is_gone(error: &io::Error) -> bool {
    let errno = error.raw_os_error().map(Errno::from_raw);
    matches!(errno, Some(Errno::EBADFD | Errno::EBADF | Errno::EIO | Errno::ENODEV | Errno::ENXIO))
}
