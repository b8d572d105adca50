//! Sleeping until there is work.
//!
//! One system call, `ppoll(2)`, waits for packets and for a time. Tokio's own timers have a
//! resolution of a millisecond, and a timerfd in its event loop takes three calls for each sleep. A
//! thread that slept wakes within some tens of microseconds, or a tenth of a millisecond where an
//! idle virtual processor has to be woken by its host (docs/live-accuracy.md). Where more
//! punctuality is needed, the loop waits without sleeping ([`super::spin`]).

use std::future::poll_fn;
use std::io;
use std::os::fd::{AsRawFd, BorrowedFd};
use std::task::{Context, Poll};

use ackclock_units::Span;
use nix::errno::Errno;
use nix::poll::{PollFd, PollFlags, ppoll};
use nix::sys::prctl;
use nix::sys::time::TimeSpec;
use tokio::signal::unix::{Signal, SignalKind, signal};

/// What asks a run to end: Ctrl-C, `kill`, a terminal that is closed.
pub(super) const ENDING: [SignalKind; 3] = [SignalKind::interrupt(), SignalKind::terminate(), SignalKind::hangup()];

/// The kernel lets a call return later by up to this part of its time, and does so where nothing
/// else wakes the processor (`select_estimate_accuracy`).
const SLACK: u64 = 1000;

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
pub(super) struct Waiter<'a> {
    ports: Vec<PollFd<'a>>,
    signals: Signals,
}

/// What has ended a sleep.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Woken {
    /// Its time. No port has a packet.
    ByTime,
    /// A port that may have one, or a signal.
    ByWork,
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

    fn poll(&mut self, context: &mut Context<'_>) {
        for (kind, signal) in &mut self.signals {
            let of_terminal = [SignalKind::interrupt(), SignalKind::quit()].contains(kind);
            while let Poll::Ready(Some(())) = signal.poll_recv(context) {
                self.seen += u32::from(!(self.interrupts_left && of_terminal));
            }
        }
    }
}

impl<'a> Waiter<'a> {
    /// Waits for packets at `ports`.
    pub(super) fn new<P: AsRawFd + 'a>(ports: impl Iterator<Item = &'a P>, signals: Signals) -> Waiter<'a> {
        // The kernel lets timers of a thread go off later by at least this, 50 us by default, to
        // gather wakeups. A machine that does not know it is less punctual, and says so in the end.
        let _ = prctl::set_timerslack(1);
        Waiter { ports: ports.map(|port| PollFd::new(borrow(port), PollFlags::POLLIN)).collect(), signals }
    }

    /// How many signals have come.
    pub(super) fn signals(&self) -> u32 {
        self.signals.seen()
    }

    /// Sleeps until a port may have a packet, a signal comes to this thread, or for so long.
    pub(super) fn sleep(&mut self, time: Span) -> io::Result<Woken> {
        wait(&mut self.ports, time)
    }

    /// Sleeps for so long, or until a signal comes to this thread.
    pub(super) fn rest(time: Span) -> io::Result<()> {
        wait(&mut [], time).map(drop)
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

fn wait(ports: &mut [PollFd<'_>], time: Span) -> io::Result<Woken> {
    let nanos = time.as_nanos() - time.as_nanos() / SLACK;
    let timeout = TimeSpec::new((nanos / 1_000_000_000).cast_signed(), (nanos % 1_000_000_000).cast_signed());
    match ppoll(ports, Some(timeout), None) {
        Ok(0) => Ok(Woken::ByTime),
        Ok(_) | Err(Errno::EINTR) => Ok(Woken::ByWork),
        Err(error) => Err(error.into()),
    }
}

/// The descriptor of a port, which stays open for as long as the port is there.
fn borrow<P: AsRawFd>(port: &P) -> BorrowedFd<'_> {
    #[expect(unsafe_code, reason = "ports are devices of another crate, which lend no descriptor in its safe form")]
    // SAFETY: the port owns the descriptor, and is borrowed as well.
    unsafe {
        BorrowedFd::borrow_raw(port.as_raw_fd())
    }
}
