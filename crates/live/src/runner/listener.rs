//! The listener for signals, from the first live run to the end of the program.
//!
//! Listening to a signal once disables its default action permanently. Since a sweep over the clock
//! has other runs among live ones, something has to listen between two live runs as well: the event
//! loop and signals of the last one are kept.

use std::fs;
use std::io;
use std::os::unix::net::UnixStream;
use std::sync::{Mutex, PoisonError};

use nix::sys::signal::{Signal, kill};
use nix::unistd::Pid;
use tokio::runtime::{Builder, Runtime};
use tokio::signal::unix::SignalKind;

use super::waiter::{ENDING, EndSignals};

/// The listener of the last live run; `None` before the first one, and during one.
static KEPT: Mutex<Option<SignalListener>> = Mutex::new(None);

/// An event loop, and the signals that it listens to.
#[derive(Debug)]
pub(super) struct SignalListener {
    pub(super) runtime: Runtime,
    pub(super) signals: EndSignals,
}

impl SignalListener {
    /// The listener of the last live run, or a new one.
    pub(super) fn take() -> io::Result<SignalListener> {
        if let Some(kept) = KEPT.lock().unwrap_or_else(PoisonError::into_inner).take() {
            return Ok(kept);
        }
        SignalListener::new(&ENDING)
    }

    fn new(kinds: &[SignalKind]) -> io::Result<SignalListener> {
        // Without descriptors for its signals, tokio panics instead of returning an error.
        let spare = (UnixStream::pair()?, UnixStream::pair()?, UnixStream::pair()?);
        drop(spare);
        let runtime = Builder::new_current_thread().enable_io().build()?;
        let signals = {
            let _inside = runtime.enter();
            EndSignals::new(kinds)?
        };
        Ok(SignalListener { runtime, signals })
    }

    /// Keeps listening after the run.
    pub(super) fn keep(self) {
        *KEPT.lock().unwrap_or_else(PoisonError::into_inner) = Some(self);
    }

    /// Sets whether the signals of the terminal's keys (SIGINT, SIGQUIT) are ignored from now on.
    pub(super) fn leave_interrupts(&mut self, left: bool) -> io::Result<()> {
        let _inside = self.runtime.enter();
        self.signals.leave_interrupts(left)
    }

    /// Returns `true` if a signal has arrived that has not ended a run.
    pub(super) fn heard(&mut self) -> bool {
        self.runtime.block_on(self.signals.look());
        self.signals.seen() > 0
    }
}

/// Listens from now on to signals that are not ignored, as `nohup` and shells make them.
pub(crate) fn listen() -> io::Result<()> {
    let ignored = ignored();
    let listens = |kind: &SignalKind| ignored & bit(*kind) == 0;
    SignalListener::new(&ENDING.into_iter().filter(listens).collect::<Vec<_>>()).map(SignalListener::keep)
}

/// Stops ignoring SIGINT, as shells make background processes do: catches it from now on, without
/// any effect. Programs inherit ignored signals (a shell cannot even set a trap for them), but
/// start with the default action of caught ones.
pub(crate) fn have_programs_heed_interrupts() -> io::Result<()> {
    let interrupt = SignalKind::interrupt();
    if ignored() & bit(interrupt) == 0 { Ok(()) } else { SignalListener::new(&[interrupt]).map(drop) }
}

/// The signals that this process ignores, as a bit mask.
fn ignored() -> u64 {
    let status = fs::read_to_string("/proc/self/status").unwrap_or_default();
    let ignored = status.lines().find_map(|line| u64::from_str_radix(line.strip_prefix("SigIgn:")?.trim(), 16).ok());
    ignored.unwrap_or(0)
}

fn bit(kind: SignalKind) -> u64 {
    1 << (kind.as_raw_value() - 1)
}

/// Sends this process a signal that ends a run, also a run that leaves the terminal's signals to a
/// program.
pub(crate) fn interrupt() {
    let _ = kill(Pid::this(), Signal::SIGTERM);
}

/// Returns `true` if a signal has arrived since the last live run.
pub(crate) fn interrupted() -> bool {
    KEPT.lock().unwrap_or_else(PoisonError::into_inner).as_mut().is_some_and(SignalListener::heard)
}
