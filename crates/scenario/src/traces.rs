//! Traces that were read, so that the points of a sweep share them.

use std::cell::RefCell;
use std::path::PathBuf;
use std::sync::Arc;

use ackclock_emulator::{Format, Trace};

/// A file, and how it is read.
type Key = (PathBuf, Format, bool);

/// Traces by file.
#[derive(Debug, Default)]
pub(crate) struct Traces(RefCell<Vec<(Key, Arc<Trace>)>>);

impl Traces {
    /// The trace that was read before, or else what `read` gives.
    pub(crate) fn get<E>(&self, key: Key, read: impl FnOnce() -> Result<Trace, E>) -> Result<Arc<Trace>, E> {
        if let Some((_, trace)) = self.0.borrow().iter().find(|(other, _)| *other == key) {
            return Ok(Arc::clone(trace));
        }
        let trace = Arc::new(read()?);
        self.0.borrow_mut().push((key, Arc::clone(&trace)));
        Ok(trace)
    }
}
