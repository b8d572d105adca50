//! Signals that end a run, in a build without devices.

use std::io;
use std::mem::MaybeUninit;
use std::ptr;
use std::sync::atomic::{AtomicBool, Ordering};

use nix::libc::{self, c_int};
use nix::sys::signal::{SaFlags, SigAction, SigHandler, SigSet, Signal, raise, sigaction};

/// A signal has arrived since listening began.
static SEEN: AtomicBool = AtomicBool::new(false);

extern "C" fn see(_: c_int) {
    SEEN.store(true, Ordering::Relaxed);
}

/// Listens from now on to signals that are not ignored, as `nohup` and shells make them.
pub(crate) fn listen() -> io::Result<()> {
    let action = SigAction::new(SigHandler::Handler(see), SaFlags::SA_RESTART, SigSet::empty());
    for signal in [Signal::SIGINT, Signal::SIGTERM, Signal::SIGHUP] {
        if !is_ignored(signal) {
            #[expect(unsafe_code, reason = "what a handler does is not checked")]
            // SAFETY: a handler may store to an atomic variable without a lock (signal-safety(7)).
            unsafe {
                sigaction(signal, &action)?;
            }
        }
    }
    Ok(())
}

/// Returns `true` if a signal has arrived.
pub(crate) fn interrupted() -> bool {
    SEEN.load(Ordering::Relaxed)
}

/// Sends this process a signal that ends a run.
pub(crate) fn interrupt() {
    let _ = raise(Signal::SIGTERM);
}

/// Returns `true` if this process ignores a signal.
fn is_ignored(signal: Signal) -> bool {
    let mut found = MaybeUninit::<libc::sigaction>::uninit();
    #[expect(unsafe_code, reason = "nothing safe asks for a disposition without setting one")]
    // SAFETY: without a new action, sigaction(2) only writes the present one, and has done so if it
    // returns 0.
    unsafe {
        libc::sigaction(signal as c_int, ptr::null(), found.as_mut_ptr()) == 0
            && found.assume_init().sa_sigaction == libc::SIG_IGN
    }
}
