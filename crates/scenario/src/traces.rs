//! Traces and policies that were read, so that the points of a sweep share them.

use std::cell::RefCell;
use std::path::{Path, PathBuf};
use std::sync::Arc;

use ackclock_emulator::{Format, Trace};
use ackclock_sim::spec::Policy;

/// The files of rate, delay and loss, and how they are read.
type Key = ([Option<PathBuf>; 3], Format, bool);

/// A policy, or why there is none.
type Found = Result<Arc<Policy>, String>;

/// Traces and policies by file.
#[derive(Debug, Default)]
pub(crate) struct Traces(RefCell<Vec<(Key, Arc<Trace>)>>, RefCell<Vec<(PathBuf, Found)>>);

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

    /// The policy that was read before, or else what `read` gives.
    pub(crate) fn policy(&self, path: &Path, read: impl FnOnce() -> Found) -> Found {
        if let Some((_, found)) = self.1.borrow().iter().find(|(other, _)| other == path) {
            return found.clone();
        }
        let found = read();
        self.1.borrow_mut().push((path.to_owned(), found.clone()));
        found
    }
}
