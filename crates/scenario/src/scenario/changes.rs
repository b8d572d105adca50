//! Changes of a run while it goes on.

use ackclock_emulator::Change;
use ackclock_sim::DirectionId;
use ackclock_units::Time;

use super::Scenario;
use crate::change;
use crate::fields::Context;
use crate::own::Own;
use crate::report::{Report, ScenarioError, Sources};

impl Scenario {
    /// Reads changes of the links of a run (`links.bottleneck.rate=5mbit`), as an item of their
    /// `schedule` is read: all of them or none. They are to be made together at `at`; `made` are
    /// those that were made before. There is one for each direction that changes.
    ///
    /// # Errors
    /// What is wrong with them.
    ///
    /// # Panics
    /// As [`Scenario::spec`].
    pub fn change(
        &self,
        run: usize,
        texts: &[&str],
        at: Time,
        made: &[(DirectionId, Change)],
    ) -> Result<Vec<(DirectionId, Change)>, ScenarioError> {
        let (report, mut sources) = (Report::default(), Sources::default());
        let point = run / self.repeat();
        let plan = self.points.plan(point, &self.sweep)?;
        // Sizes of queues may refer to other links, and to flows.
        let mut document = self.root.clone();
        self.sweep.set(point, &mut document, &Report::default());
        let cx = Context { document: document.table(), ..Context::new(&report, Own::NONE) };
        let changes = change::read(&plan.links, &cx, &mut sources, texts, at, made);
        drop(cx);
        report.finish(sources, changes)
    }

    /// The keys that [`Scenario::change`] takes, with their values at `at`, as a scenario has them.
    ///
    /// # Errors
    /// As [`Scenario::read_spec`].
    pub fn changeable(
        &self,
        run: usize,
        at: Time,
        made: &[(DirectionId, Change)],
    ) -> Result<Vec<(String, String)>, ScenarioError> {
        let plan = self.points.plan(run / self.repeat(), &self.sweep)?;
        Ok(change::values(&plan.links, made, at))
    }
}
