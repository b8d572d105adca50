//! SIGINT for runs that were begun in another thread than the main one, where Python does not
//! raise KeyboardInterrupt.
//!
//! While such runs go on, signals are counted, and then handed to Python's own handler. Nothing is
//! left behind: the last one that goes puts back what was there.

use std::mem::MaybeUninit;
use std::ptr;
use std::sync::atomic::{AtomicU64, AtomicUsize, Ordering};
use std::sync::{Mutex, PoisonError};

use pyo3::prelude::*;

/// The number of SIGINTs while anything watched.
static SEEN: AtomicU64 = AtomicU64::new(0);
/// The handler before ours.
static BEFORE: AtomicUsize = AtomicUsize::new(libc::SIG_DFL);
/// The number of watchers, and the action before the first one.
static WATCHING: Mutex<(usize, Option<libc::sigaction>)> = Mutex::new((0, None));

/// Counts the signal and passes it on. It may run at any time: it touches atomics only.
extern "C" fn count(signal: libc::c_int) {
    SEEN.fetch_add(1, Ordering::Relaxed);
    let before = BEFORE.load(Ordering::Relaxed);
    if before != libc::SIG_DFL && before != libc::SIG_IGN {
        // SAFETY: the address was a handler without SA_SIGINFO, as `set` makes sure.
        let before: extern "C" fn(libc::c_int) = unsafe { std::mem::transmute(before) };
        before(signal);
    }
}

/// Puts the counter in front of a plain handler. `None` if there is no such handler: nobody waits
/// for KeyboardInterrupt then.
fn set() -> Option<libc::sigaction> {
    let mut found = MaybeUninit::<libc::sigaction>::uninit();
    // SAFETY: the pointers are valid, and `found` is written where the call succeeds.
    unsafe {
        if libc::sigaction(libc::SIGINT, ptr::null(), found.as_mut_ptr()) != 0 {
            return None;
        }
        let found = found.assume_init();
        let plain = found.sa_flags & libc::SA_SIGINFO == 0;
        if !plain || found.sa_sigaction == libc::SIG_DFL || found.sa_sigaction == libc::SIG_IGN {
            return None;
        }
        BEFORE.store(found.sa_sigaction, Ordering::Relaxed);
        let mut ours = found;
        ours.sa_sigaction = count as *const () as usize;
        (libc::sigaction(libc::SIGINT, &ours, ptr::null_mut()) == 0).then_some(found)
    }
}

/// Puts back what was there, unless somebody else has set a handler since.
fn put_back(before: &libc::sigaction) {
    let mut found = MaybeUninit::<libc::sigaction>::uninit();
    // SAFETY: as above.
    unsafe {
        if libc::sigaction(libc::SIGINT, ptr::null(), found.as_mut_ptr()) == 0
            && found.assume_init().sa_sigaction == count as *const () as usize
        {
            libc::sigaction(libc::SIGINT, before, ptr::null_mut());
        }
    }
}

/// Tells whether SIGINT has arrived since it was created.
#[pyclass(frozen, module = "ackclock._core")]
#[derive(Debug)]
pub(crate) struct Interrupts(u64);

#[pymethods]
impl Interrupts {
    #[new]
    fn new() -> Interrupts {
        let mut watching = WATCHING.lock().unwrap_or_else(PoisonError::into_inner);
        if watching.0 == 0 {
            watching.1 = set();
        }
        watching.0 += 1;
        Interrupts(SEEN.load(Ordering::Relaxed))
    }

    /// Returns `true` if SIGINT has arrived.
    fn seen(&self) -> bool {
        SEEN.load(Ordering::Relaxed) != self.0
    }
}

impl Drop for Interrupts {
    fn drop(&mut self) {
        let mut watching = WATCHING.lock().unwrap_or_else(PoisonError::into_inner);
        watching.0 -= 1;
        if watching.0 == 0
            && let Some(before) = watching.1.take()
        {
            put_back(&before);
        }
    }
}
