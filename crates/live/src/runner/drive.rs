//! The loop: packets from devices to the engine, due packets to devices, and sleep in between.
//!
//! While there is work it does not go back to the event loop. Packets are read in batches, each
//! with the time at which it was read; a batch ends early when something has been due for too long.
//! Between two batches everything due is handed over. How late that happens affects nothing else:
//! the engine does everything at its due time, and the next packet enters the path after everything
//! that was due before it.

use std::io::{self, ErrorKind};
use std::os::fd::AsRawFd;
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};

use ackclock_sim::spec::Scheduling;
use ackclock_sim::{Recorders, RunError};
use ackclock_trace::ChangeSummary;
use ackclock_units::{Span, Time};
use nix::errno::Errno;

use super::clock::Clock;
use super::punctuality::Punctuality;
use super::scheduling::{Budget, REST};
use super::spin::Margin;
use super::steering::Steering;
use super::waiter::{Signals, Waiter, Woken};
use super::watched::Watched;
use crate::capture::{Way, Writer};
use crate::{Control, Engine, LiveWatch, Offload, Outgoing};

/// Packets that are read from a device before the next one has its turn. A batch costs less for
/// each packet (the kernel's code for reading and that for writing take turns in the cache), and
/// what was due meanwhile waits.
const BATCH: usize = 32;

/// How long something may have been due before a batch of reads is interrupted for it.
const PATIENCE: Span = Span::from_micros(20);

/// Packets that are handed over before devices are read again.
const TURN: usize = 64;

/// How often a loop that has no time to sleep looks for signals, and how often at most any loop
/// checks its devices.
const LOOK: Span = Span::from_millis(10);

/// The longest sleep, due or not. A loop that was stopped while it slept is found out by waking too
/// late, so that this is what such a stop escapes notice by at most. A device that is gone or down
/// wakes nobody: it is noticed when it is read or checked.
const HEARTBEAT: Span = Span::from_millis(5);

/// A sleep that takes longer to begin and to end.
const SHORTEST_SLEEP: Span = Span::from_micros(5);

/// Where packets of a host come from and go to, without blocking.
pub(super) trait Port: AsRawFd {
    /// Reads a packet, as much of it as there is room for; `WouldBlock` if there is none.
    fn read(&self, buffer: &mut [u8]) -> io::Result<usize>;

    /// Whether it has segments and packets that are not finished: they are read by
    /// [`Port::read_offloaded`] then.
    fn offloads(&self) -> bool;

    /// Reads a packet or a segment, what does not fit in the first buffer into the second, and what
    /// is left to do on it.
    fn read_offloaded(&self, buffers: [&mut [u8]; 2]) -> io::Result<(usize, Offload)>;

    /// Writes a packet, or a segment of several.
    fn write(&self, packet: &Outgoing<'_>) -> io::Result<()>;

    /// Whether it has worked since the last call. One that does not take packets any more may
    /// still be read.
    fn check(&self) -> io::Result<()>;
}

/// A host's port.
#[derive(Debug)]
pub(super) struct Attached<'a, P> {
    /// The host, by number.
    pub(super) node: usize,
    pub(super) port: &'a P,
    /// Packets that it did not take.
    pub(super) refused: u64,
}

/// How the loop has ended.
#[derive(Debug)]
pub(super) enum End {
    /// At its time.
    Over,
    /// By a signal.
    Interrupted,
    /// The program that has the terminal has ended.
    Program,
    /// A port, by its index, does not work any more.
    Gone(usize, io::Error),
    /// The capture cannot be written.
    Capture,
    /// Wrong data, or a recorder that does not go on.
    Run(RunError),
    /// The kernel refuses to let it sleep.
    Sleep(io::Error),
}

/// What was handed over.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Handed {
    Nothing,
    /// Not all that is due.
    Some,
    All,
}

/// The loop with what it holds.
#[derive(Debug)]
pub(super) struct Drive<'a, P: Port> {
    engine: Engine,
    ports: Vec<Attached<'a, P>>,
    /// The index of each host's port; `usize::MAX` for one without.
    port_of: Vec<usize>,
    capture: Option<Writer>,
    waiter: Waiter<'a>,
    clock: Clock,
    /// What the clock showed last.
    now: Time,
    /// The last moment of the run.
    last: Time,
    margin: Margin,
    budget: Budget,
    /// The ports had nothing a moment ago: there is no need to read.
    quiet: bool,
    /// Nothing that has not been read yet came before, unless the loop was stopped while it slept,
    /// for up to [`HEARTBEAT`].
    since: Time,
    punctuality: Punctuality,
    /// A port may have more than was read of it.
    more: bool,
    sleeps: u64,
    /// Whether the program that has the terminal has ended.
    over: Arc<AtomicBool>,
    watched: Option<Watched>,
    steering: Steering,
}

/// What remains of it.
#[derive(Debug)]
pub(super) struct Driven<'a, P> {
    pub(super) engine: Engine,
    pub(super) ports: Vec<Attached<'a, P>>,
    pub(super) capture: Option<Writer>,
    pub(super) punctuality: Punctuality,
    pub(super) sleeps: u64,
    /// How long before deadlines it stopped sleeping, on average.
    pub(super) spin: Span,
    pub(super) signals: Signals,
}

impl<'a, P: Port> Drive<'a, P> {
    /// A run of `duration` that begins now. `ports` are hosts' by number.
    pub(super) fn start(
        mut engine: Engine,
        ports: Vec<(usize, &'a P)>,
        signals: Signals,
        capture: Option<Writer>,
        duration: Span,
        scheduling: &Scheduling,
    ) -> io::Result<Drive<'a, P>> {
        // A device without offloads takes nothing that is not finished.
        if capture.is_some() || ports.iter().any(|(_, port)| !port.offloads()) {
            engine.keep_whole();
        }
        let waiter = Waiter::new(ports.iter().map(|&(_, port)| port), signals);
        let hosts = ports.iter().map(|&(node, _)| node + 1).max().unwrap_or(0);
        let mut port_of = vec![usize::MAX; hosts];
        ports.iter().enumerate().for_each(|(index, &(node, _))| port_of[node] = index);
        Ok(Drive {
            engine,
            ports: ports.into_iter().map(|(node, port)| Attached { node, port, refused: 0 }).collect(),
            port_of,
            capture,
            waiter,
            clock: Clock::start()?,
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

    /// Somebody watches it.
    pub(super) fn be_watched(&mut self, watch: Arc<dyn LiveWatch>) {
        self.punctuality.be_watched();
        self.watched = Some(Watched::new(watch));
    }

    /// It also ends when this becomes true.
    pub(super) fn ends_with(&mut self, over: Arc<AtomicBool>) {
        self.over = over;
    }

    /// It takes changes from there.
    pub(super) fn takes_changes(&mut self, control: Option<Control>) {
        self.steering = Steering::new(control);
    }

    /// It takes no more of them: those that were made, and the longest delay among them.
    pub(super) fn no_more_changes(&mut self) -> (Vec<ChangeSummary>, Span) {
        self.steering.finish()
    }

    /// Makes the changes that have come.
    fn steer(&mut self) {
        for (at, order) in self.steering.take(self.now, self.last) {
            self.engine.change(at, &order.changes);
            if let Some(capture) = &mut self.capture {
                capture.change(at, &order.set);
            }
            order.made.tell(at);
        }
    }

    /// What the clock showed last.
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

    /// Runs until its time is over, or something ends it. What was due until then has been handed
    /// over, unless its port is gone.
    pub(super) async fn run(&mut self, recorders: &mut Recorders<'_>) -> End {
        let (mut looked, mut checked) = (Time::ZERO, Time::ZERO);
        loop {
            let mut from = self.now;
            let round = self.round(recorders);
            self.budget.ran(self.now.since(from));
            if self.budget.is_spent()
                && let Err(error) = self.rest()
            {
                return End::Sleep(error);
            }
            match round {
                Ok(true) => {}
                Ok(false) if self.now > self.last => return self.hand_over(usize::MAX).err().unwrap_or(End::Over),
                Ok(false) => {
                    let until = self.idle_until();
                    if until > self.now + SHORTEST_SLEEP {
                        self.sleeps += 1;
                        if let Err(error) = self.sleep(until) {
                            return End::Sleep(error);
                        }
                        from = until;
                    } else {
                        self.margin.spun(self.now, self.now.since(from));
                    }
                }
                Err(end) => return end,
            }
            self.punctuality.stood_still(self.now.since(from));
            // A packet wakes it before it is to wake.
            self.since = from.min(self.now);
            if self.now.since(looked) >= LOOK {
                looked = self.now;
                self.waiter.look().await;
                self.steer();
            }
            if self.now.since(checked) >= LOOK {
                checked = self.now;
                if let Err(end) = self.check() {
                    return end;
                }
                if let Some(watched) = &mut self.watched {
                    let refused = self.ports.iter().map(|port| port.refused);
                    watched.look(self.now, &mut self.punctuality, self.engine.hosts().zip(refused));
                }
            }
            let end = match (self.waiter.signals() > 0, self.over.load(Ordering::Relaxed)) {
                (false, false) => continue,
                (true, _) => End::Interrupted,
                (false, true) => End::Program,
            };
            self.now = self.clock.now();
            return self.hand_over(usize::MAX).err().unwrap_or(end);
        }
    }

    /// Checks every port.
    fn check(&self) -> Result<(), End> {
        for (index, Attached { port, .. }) in self.ports.iter().enumerate() {
            port.check().map_err(|error| End::Gone(index, error))?;
        }
        Ok(())
    }

    /// When to look again if there is nothing to do; now or earlier, if something is due so soon
    /// that sleeping would miss it.
    fn idle_until(&self) -> Time {
        let due = self.engine.next_due().min(self.last);
        (due - self.margin.now()).min(self.now + HEARTBEAT)
    }

    /// Leaves the processor to others for a while, whatever there is to do.
    #[cold]
    fn rest(&mut self) -> io::Result<()> {
        let from = self.now;
        Waiter::rest(REST)?;
        self.now = self.clock.now();
        self.budget.slept(self.now.since(from));
        Ok(())
    }

    /// Sleeps until then, or until there is work.
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

    /// Reads from every port, and hands over what is due. `false` if there was nothing to do.
    fn round(&mut self, recorders: &mut Recorders<'_>) -> Result<bool, End> {
        let mut read = false;
        self.more = false;
        if !std::mem::take(&mut self.quiet) {
            for index in 0..self.ports.len() {
                read |= self.read(index)?;
            }
            self.now = self.clock.now();
        }
        let handed = self.hand_over(TURN)?;
        if !read && handed == Handed::Nothing {
            let now = self.now.min(self.last);
            self.engine.world().pass(now);
            self.engine.world().keep_up(now, recorders).map_err(End::Run)?;
            return Ok(false);
        }
        // Links are brought up to now for it: nothing may be due before.
        if handed != Handed::Some {
            self.engine.world().keep_up(self.now.min(self.last), recorders).map_err(End::Run)?;
        }
        if let Some(error) = self.engine.error() {
            return Err(End::Run(error.clone()));
        }
        if self.capture.as_ref().is_some_and(Writer::failed) {
            return Err(End::Capture);
        }
        Ok(self.now <= self.last)
    }

    /// Reads a batch of packets. `false` if there was none.
    fn read(&mut self, index: usize) -> Result<bool, End> {
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
                Err(error) => return Err(End::Gone(index, error)),
            };
            self.now = self.clock.now();
            if self.now > self.last {
                // It came when the run was over.
                return Ok(true);
            }
            self.punctuality.read(self.now.since(self.since));
            let (now, capture) = (self.now, &mut self.capture);
            self.engine.arrive_offloaded(now, node, len, offload, |packet| {
                if let Some(capture) = capture {
                    capture.packet(now, node, Way::FromHost, packet);
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

    /// Hands over what is due, and what comes due meanwhile, at most `most` packets.
    fn hand_over(&mut self, most: usize) -> Result<Handed, End> {
        let due = self.engine.next_due();
        if due > self.now.min(self.last) {
            self.caught_up();
            return Ok(Handed::Nothing);
        }
        self.punctuality.is_due(due);
        let mut packets = 0;
        while packets < most {
            let Some(out) = self.engine.advance(self.now.min(self.last)) else {
                self.caught_up();
                return Ok(Handed::All);
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
                        // Its due time, so that a replay can be compared with it.
                        capture.packet(out.at, out.node, Way::ToHost, out.bytes);
                    }
                }
                Err(error) if is_gone(&error) => return Err(End::Gone(self.port_of[out.node], error)),
                Err(_) => *refused += u64::from(out.packets),
            }
        }
        Ok(Handed::Some)
    }

    fn caught_up(&mut self) {
        if !self.more {
            self.punctuality.caught_up(self.now);
        }
    }

    /// Once the run is over: hands over what is still on its way, each packet at its time, until
    /// there is nothing more, `patience` is over, or a further signal comes. Nothing that hosts
    /// send meanwhile is taken.
    pub(super) async fn drain(&mut self, patience: Span) -> End {
        self.engine.world().drain();
        let signals = self.waiter.signals();
        self.last = self.now + patience;
        let mut discarded = [0; 1];
        loop {
            self.now = self.clock.now();
            match self.hand_over(TURN) {
                Ok(Handed::Some | Handed::All) => {}
                Ok(Handed::Nothing) => {
                    let due = self.engine.next_due();
                    if due > self.last {
                        return End::Over;
                    }
                    for Attached { port, .. } in &self.ports {
                        while port.read(&mut discarded).is_ok() {}
                    }
                    let until = (due - self.margin.now()).min(self.now + HEARTBEAT);
                    if until > self.now
                        && let Err(error) = self.sleep(until)
                    {
                        return End::Sleep(error);
                    }
                    self.waiter.look().await;
                }
                Err(end) => return end,
            }
            if self.waiter.signals() > signals {
                return End::Interrupted;
            }
        }
    }

    /// The loop is over.
    pub(super) fn finish(self) -> Driven<'a, P> {
        let Drive { engine, ports, capture, waiter, punctuality, sleeps, margin, .. } = self;
        Driven { engine, ports, capture, punctuality, sleeps, spin: margin.mean(), signals: waiter.into_signals() }
    }
}

/// Whether an error says that a device does not work any more: gone (`EBADFD`), or down (`EIO`).
/// Others are about one packet.
fn is_gone(error: &io::Error) -> bool {
    let errno = error.raw_os_error().map(Errno::from_raw);
    matches!(errno, Some(Errno::EBADFD | Errno::EBADF | Errno::EIO | Errno::ENODEV | Errno::ENXIO))
}
