//! Sleeping until there is work.
//!
//! Tokio's own timers have a resolution of a millisecond; a timerfd in its event loop wakes within
//! tens of microseconds, or a tenth of a millisecond where an idle virtual processor has to be
//! woken by its host (docs/live-accuracy.md). Where more punctuality is needed, the loop waits
//! without sleeping ([`super::drive`]).

use std::future::poll_fn;
use std::io;
use std::os::fd::{AsFd, AsRawFd, RawFd};
use std::task::{Context, Poll};

use ackclock_units::Time;
use nix::sys::prctl;
use nix::sys::timer::{Expiration, TimerSetTimeFlags};
use nix::sys::timerfd::{ClockId, TimerFd, TimerFlags};
use tokio::io::Interest;
use tokio::io::unix::AsyncFd;
use tokio::signal::unix::{Signal, SignalKind, signal};

use super::clock::Clock;

/// What asks a run to end: Ctrl-C, `kill`, a terminal that is closed.
pub(super) const ENDING: [SignalKind; 3] = [SignalKind::interrupt(), SignalKind::terminate(), SignalKind::hangup()];

/// Signals that ask a run to end.
#[derive(Debug)]
pub(super) struct Signals {
    signals: Vec<(SignalKind, Signal)>,
    /// How many have come.
    seen: u32,
    /// Whether those of the terminal's keys are for somebody else.
    interrupts_left: bool,
}

/// What the loop sleeps on.
#[derive(Debug)]
pub(super) struct Waiter<'a, P: AsRawFd> {
    ports: Vec<AsyncFd<Borrowed<'a, P>>>,
    timer: AsyncFd<Timer>,
    /// When the timer goes off.
    armed: Time,
    signals: Signals,
}

/// Somebody else's descriptor, which stays open.
#[derive(Debug)]
struct Borrowed<'a, P>(&'a P);

#[derive(Debug)]
struct Timer(TimerFd);

impl<P: AsRawFd> AsRawFd for Borrowed<'_, P> {
    fn as_raw_fd(&self) -> RawFd {
        self.0.as_raw_fd()
    }
}

impl AsRawFd for Timer {
    fn as_raw_fd(&self) -> RawFd {
        self.0.as_fd().as_raw_fd()
    }
}

impl Signals {
    /// From now on they end no process.
    ///
    /// # Panics
    /// Outside of a runtime.
    pub(super) fn new(kinds: &[SignalKind]) -> io::Result<Signals> {
        let signals = kinds.iter().map(|&kind| Ok((kind, signal(kind)?))).collect::<io::Result<_>>()?;
        Ok(Signals { signals, seen: 0, interrupts_left: false })
    }

    /// Whether SIGINT and SIGQUIT, which the terminal sends to a program and to us, ask for
    /// nothing.
    ///
    /// # Panics
    /// Outside of a runtime.
    pub(super) fn leave_interrupts(&mut self, left: bool) -> io::Result<()> {
        self.interrupts_left = left;
        if left && !self.signals.iter().any(|(kind, _)| *kind == SignalKind::quit()) {
            self.signals.push((SignalKind::quit(), signal(SignalKind::quit())?));
        }
        Ok(())
    }

    /// How many have come.
    pub(super) fn seen(&self) -> u32 {
        self.seen
    }

    /// Those that came have had their effect.
    pub(super) fn forget(&mut self) {
        self.seen = 0;
    }

    /// Looks for some, without sleeping.
    pub(super) async fn look(&mut self) {
        // Gives the event loop its turn.
        tokio::task::yield_now().await;
        poll_fn(|context| {
            self.poll(context);
            Poll::Ready(())
        })
        .await;
    }

    fn poll(&mut self, context: &mut Context<'_>) -> bool {
        let before = self.seen;
        for (kind, signal) in &mut self.signals {
            let of_terminal = [SignalKind::interrupt(), SignalKind::quit()].contains(kind);
            while let Poll::Ready(Some(())) = signal.poll_recv(context) {
                self.seen += u32::from(!(self.interrupts_left && of_terminal));
            }
        }
        self.seen > before
    }
}

impl<'a, P: AsRawFd> Waiter<'a, P> {
    /// Waits for packets at `ports`.
    ///
    /// # Panics
    /// Outside of a runtime.
    pub(super) fn new(ports: impl Iterator<Item = &'a P>, signals: Signals) -> io::Result<Waiter<'a, P>> {
        // The kernel lets timers of a thread go off later by up to this, 50 us by default, to
        // gather wakeups. A machine that does not know it is less punctual, and says so in the end.
        let _ = prctl::set_timerslack(1);
        let flags = TimerFlags::TFD_NONBLOCK | TimerFlags::TFD_CLOEXEC;
        let timer = Timer(TimerFd::new(ClockId::CLOCK_MONOTONIC, flags)?);
        Ok(Waiter {
            ports: ports.map(|port| register(Borrowed(port))).collect::<io::Result<_>>()?,
            timer: register(timer)?,
            armed: Time::NEVER,
            signals,
        })
    }

    /// How many signals have come.
    pub(super) fn signals(&self) -> u32 {
        self.signals.seen()
    }

    /// Sleeps until a port may have a packet, a signal comes, or the clock shows `until`.
    pub(super) async fn sleep(&mut self, clock: &Clock, until: Time) -> io::Result<()> {
        if until != self.armed {
            self.armed = until;
            // One of the past goes off at once; reading it is not needed, to set it is enough.
            let at = Expiration::OneShot(clock.shows(until));
            self.timer.get_ref().0.set(at, TimerSetTimeFlags::TFD_TIMER_ABSTIME)?;
        }
        poll_fn(|context| self.poll(context)).await
    }

    fn poll(&mut self, context: &mut Context<'_>) -> Poll<io::Result<()>> {
        let mut awake = self.signals.poll(context);
        for port in &self.ports {
            // Whatever was there is about to be read to its end; an edge that comes meanwhile is
            // kept.
            if let Poll::Ready(guard) = port.poll_read_ready(context) {
                guard?.clear_ready();
                awake = true;
            }
        }
        if let Poll::Ready(guard) = self.timer.poll_read_ready(context) {
            guard?.clear_ready();
            self.armed = Time::NEVER;
            awake = true;
        }
        if awake { Poll::Ready(Ok(())) } else { Poll::Pending }
    }

    /// Looks for signals, without sleeping.
    pub(super) async fn look(&mut self) {
        self.signals.look().await;
    }

    /// The signals, for who listens to them next.
    pub(super) fn into_signals(self) -> Signals {
        self.signals
    }
}

#[expect(
    deprecated,
    reason = "its replacement is unsafe; the descriptors here are open for as long as they are waited on"
)]
fn register<T: AsRawFd>(descriptor: T) -> io::Result<AsyncFd<T>> {
    AsyncFd::with_interest(descriptor, Interest::READABLE)
}
