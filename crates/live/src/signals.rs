//! Signals that end a run, in a build without devices.

use std::io;
use std::mem::MaybeUninit;
use std::ptr;
use std::sync::Arc;
use std::sync::OnceLock;
use std::sync::atomic::{AtomicBool, Ordering};

use nix::libc;
use signal_hook::consts::{SIGHUP, SIGINT, SIGTERM};

/// Whether one has come, from the first time that somebody listens.
static SEEN: OnceLock<Arc<AtomicBool>> = OnceLock::new();

/// Listens from now on, to those that are not ignored: `nohup` and shells ask for that.
pub(crate) fn listen() -> io::Result<()> {
    if SEEN.get().is_some() {
        return Ok(());
    }
    let seen = Arc::new(AtomicBool::new(false));
    for signal in [SIGINT, SIGTERM, SIGHUP] {
        if !is_ignored(signal) {
            signal_hook::flag::register(signal, Arc::clone(&seen))?;
        }
    }
    let _ = SEEN.set(seen);
    Ok(())
}

/// Whether a signal has come.
pub(crate) fn interrupted() -> bool {
    SEEN.get().is_some_and(|seen| seen.load(Ordering::Relaxed))
}

/// Sends this process a signal that ends a run.
pub(crate) fn interrupt() {
    let _ = signal_hook::low_level::raise(SIGTERM);
}

/// Whether this process ignores a signal.
fn is_ignored(signal: libc::c_int) -> bool {
    let mut found = MaybeUninit::<libc::sigaction>::uninit();
    #[expect(unsafe_code, reason = "nothing safe asks for a disposition without setting one")]
    // SAFETY: without a new action, sigaction(2) only writes the present one, and has done so if it
    // returns 0.
    unsafe {
        libc::sigaction(signal, ptr::null(), found.as_mut_ptr()) == 0
            && found.assume_init().sa_sigaction == libc::SIG_IGN
    }
}
