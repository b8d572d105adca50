//! The listener for signals, from the first live run to the end of the program.
//!
//! Listening to a signal once disables its default action permanently. There may be other runs
//! among live ones (a sweep over the clock), so that something has to listen between two live runs,
//! too: the event loop and signals of the last one are kept.

use std::fs;
use std::io;
use std::os::unix::net::UnixStream;
use std::sync::{Mutex, PoisonError};

use nix::sys::signal::{Signal, kill};
use nix::unistd::Pid;
use tokio::runtime::{Builder, Runtime};
use tokio::signal::unix::SignalKind;

use super::waiter::{ENDING, Signals};

/// What the last live run has left; `None` before the first one, and during one.
static KEPT: Mutex<Option<Listener>> = Mutex::new(None);

/// An event loop, and what it listens to.
#[derive(Debug)]
pub(super) struct Listener {
    pub(super) runtime: Runtime,
    pub(super) signals: Signals,
}

impl Listener {
    /// That of the last live run, or a new one.
    pub(super) fn take() -> io::Result<Listener> {
        if let Some(kept) = KEPT.lock().unwrap_or_else(PoisonError::into_inner).take() {
            return Ok(kept);
        }
        Listener::new(&ENDING)
    }

    fn new(kinds: &[SignalKind]) -> io::Result<Listener> {
        // Without descriptors for its signals, tokio panics instead of returning an error.
        let spare = (UnixStream::pair()?, UnixStream::pair()?, UnixStream::pair()?);
        drop(spare);
        let runtime = Builder::new_current_thread().enable_io().build()?;
        let signals = {
            let _inside = runtime.enter();
            Signals::new(kinds)?
        };
        Ok(Listener { runtime, signals })
    }

    /// Listens on after the run.
    pub(super) fn keep(self) {
        *KEPT.lock().unwrap_or_else(PoisonError::into_inner) = Some(self);
    }

    /// Whether what the terminal's keys send (SIGINT, SIGQUIT) ends nothing from now on.
    pub(super) fn leave_interrupts(&mut self, left: bool) -> io::Result<()> {
        let _inside = self.runtime.enter();
        self.signals.leave_interrupts(left)
    }

    /// Whether a signal has come that has ended nothing yet.
    pub(super) fn heard(&mut self) -> bool {
        self.runtime.block_on(self.signals.look());
        self.signals.seen() > 0
    }
}

/// Listens from now on, to those that are not ignored: `nohup` and shells ask for that.
pub(crate) fn listen() -> io::Result<()> {
    let ignored = ignored();
    let listens = |kind: &SignalKind| ignored & bit(*kind) == 0;
    Listener::new(&ENDING.into_iter().filter(listens).collect::<Vec<_>>()).map(Listener::keep)
}

/// If this process ignores SIGINT, as a shell has it for what it begins in the background: catches
/// it from now on, and goes on without listening to it. Programs inherit what is ignored (a shell
/// cannot even set a trap for it), but start with the default action of what is caught.
pub(crate) fn have_programs_heed_interrupts() -> io::Result<()> {
    let interrupt = SignalKind::interrupt();
    if ignored() & bit(interrupt) == 0 { Ok(()) } else { Listener::new(&[interrupt]).map(drop) }
}

/// The signals that this process ignores, as bits.
fn ignored() -> u64 {
    let status = fs::read_to_string("/proc/self/status").unwrap_or_default();
    let ignored = status.lines().find_map(|line| u64::from_str_radix(line.strip_prefix("SigIgn:")?.trim(), 16).ok());
    ignored.unwrap_or(0)
}

fn bit(kind: SignalKind) -> u64 {
    1 << (kind.as_raw_value() - 1)
}

/// Sends this process a signal that ends a run, also one whose terminal keys are left to a program.
pub(crate) fn interrupt() {
    let _ = kill(Pid::this(), Signal::SIGTERM);
}

/// Whether a signal has come since the last live run.
pub(crate) fn interrupted() -> bool {
    KEPT.lock().unwrap_or_else(PoisonError::into_inner).as_mut().is_some_and(Listener::heard)
}
