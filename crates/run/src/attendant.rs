//! The companion of the only run of a scenario.

use std::sync::Arc;

use ackclock_live::{Control, LiveWatch};
use ackclock_trace::WatchSink;
use ackclock_units::Time;

/// Before what time a run on the virtual clock goes on that has come to this one. `None` if it is
/// not to go on yet: some time has passed, or somebody wants something.
pub type Pace<'a> = Box<dyn FnMut(Time) -> Option<Time> + 'a>;

/// Shows a run while it goes on, or changes it.
pub trait Attendant: Sync {
    /// Where the records of its intervals go.
    fn feed(&self) -> Option<Box<dyn WatchSink>>;
    /// The observer of a live run.
    fn watch(&self) -> Option<Arc<dyn LiveWatch>>;
    /// The source of changes.
    fn control(&self) -> Option<Control>;
    /// The pace of a run on the virtual clock; as fast as it can without one.
    fn pace(&self) -> Option<Pace<'_>>;
    /// Calls `run`, which does the whole run, once.
    fn during(&self, run: &mut dyn FnMut());
}

/// Does a run, which may be accompanied.
pub(crate) fn during<T>(attendant: Option<&dyn Attendant>, run: impl FnOnce() -> T) -> T {
    let Some(attendant) = attendant else { return run() };
    let (mut run, mut result) = (Some(run), None);
    attendant.during(&mut || result = run.take().map(|run| run()));
    result.or_else(|| run.map(|run| run())).unwrap_or_else(|| unreachable!("a run that was done has a result"))
}
