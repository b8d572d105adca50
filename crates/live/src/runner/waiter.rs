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

/// The signals that end a run: Ctrl-C, `kill`, a terminal that is closed.
pub(super) const ENDING: [SignalKind; 3] = [SignalKind::interrupt(), SignalKind::terminate(), SignalKind::hangup()];

/// The reciprocal of the fraction by which the kernel may prolong a call, and does where nothing
/// else wakes the processor (`select_estimate_accuracy`).
const SLACK: u64 = 1000;

/// Signals that end a run.
#[derive(Debug)]
pub(super) struct EndSignals {
    signals: Vec<(SignalKind, Signal)>,
    /// The number of signals that have arrived.
    seen: u32,
    /// The signals of the terminal's keys are meant for a program.
    interrupts_left: bool,
}

/// The ports and signals that wake the loop.
#[derive(Debug)]
pub(super) struct Waiter<'a> {
    ports: Vec<PollFd<'a>>,
    signals: EndSignals,
}

/// The reason why a sleep ended.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Woken {
    /// The time is over. No port has a packet.
    ByTime,
    /// A port may have a packet, or a signal has arrived.
    ByWork,
}

impl EndSignals {
    /// Catches these signals, which from now on do not end the process.
    ///
    /// # Panics
    /// Outside of a runtime.
    pub(super) fn new(kinds: &[SignalKind]) -> io::Result<EndSignals> {
        let signals = kinds.iter().map(|&kind| Ok((kind, signal(kind)?))).collect::<io::Result<_>>()?;
        Ok(EndSignals { signals, seen: 0, interrupts_left: false })
    }

    /// Sets whether SIGINT and SIGQUIT, which the terminal sends to both a program and this
    /// process, are ignored.
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

    /// The number of signals that have arrived.
    pub(super) fn seen(&self) -> u32 {
        self.seen
    }

    /// Forgets the signals that have had their effect.
    pub(super) fn forget(&mut self) {
        self.seen = 0;
    }

    /// Polls for signals, without sleeping.
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
    pub(super) fn new<P: AsRawFd + 'a>(ports: impl Iterator<Item = &'a P>, signals: EndSignals) -> Waiter<'a> {
        // The kernel delays a thread's timers by at least this, 50 us by default, to combine
        // wakeups. A machine without this setting is less punctual, as the summary shows.
        let _ = prctl::set_timerslack(1);
        Waiter { ports: ports.map(|port| PollFd::new(borrow(port), PollFlags::POLLIN)).collect(), signals }
    }

    /// The number of signals that have arrived.
    pub(super) fn signals(&self) -> u32 {
        self.signals.seen()
    }

    /// Sleeps for `time`, or until a port may have a packet or a signal arrives.
    pub(super) fn sleep(&mut self, time: Span) -> io::Result<Woken> {
        wait(&mut self.ports, time)
    }

    /// Sleeps for `time`, or until a signal arrives.
    pub(super) fn rest(time: Span) -> io::Result<()> {
        wait(&mut [], time).map(drop)
    }

    /// Polls for signals, without sleeping.
    pub(super) async fn look(&mut self) {
        self.signals.look().await;
    }

    /// The signals, for the next listener.
    pub(super) fn into_signals(self) -> EndSignals {
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

/// The descriptor of a port, which stays open as long as the port exists.
fn borrow<P: AsRawFd>(port: &P) -> BorrowedFd<'_> {
    #[expect(unsafe_code, reason = "ports are devices of another crate, which lend no descriptor in its safe form")]
    // SAFETY: the port owns the descriptor, and is borrowed as well.
    unsafe {
        BorrowedFd::borrow_raw(port.as_raw_fd())
    }
}
