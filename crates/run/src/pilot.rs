//! The control of a run on the virtual clock: its pace, changes from outside, and planned changes.

use std::collections::VecDeque;
use std::ops::ControlFlow;

use ackclock_emulator::Change;
use ackclock_live::{Control, Order};
use ackclock_scenario::Scenario;
use ackclock_sim::{DirectionId, Helm, World};
use ackclock_trace::ChangeSummary;
use ackclock_units::{Span, Time};
use anyhow::bail;

use crate::attendant::Pace;

/// The run that is changed: a scenario of several has several.
const RUN: usize = 0;

/// Changes of a run that are known before it begins, read and in order of time.
#[derive(Clone, Debug, Default)]
pub struct PilotPlan(Vec<Planned>);

/// Changes that are made together.
#[derive(Clone, Debug)]
struct Planned {
    at: Time,
    changes: Vec<(DirectionId, Change)>,
    set: Vec<String>,
}

impl PilotPlan {
    /// Reads what an earlier run has recorded.
    ///
    /// # Errors
    /// A change is invalid, or they are not in order.
    pub fn read(scenario: &Scenario, changes: &[ChangeSummary]) -> anyhow::Result<PilotPlan> {
        let (mut plan, mut made) = (PilotPlan::default(), Vec::new());
        let end = Time::ZERO + if changes.is_empty() { Span::ZERO } else { scenario.spec(RUN).duration };
        for together in changes.chunk_by(|one, other| one.at_ns == other.at_ns) {
            let at = Time::from_nanos(together[0].at_ns);
            let seconds = at.as_secs_f64();
            if plan.0.last().is_some_and(|last| at <= last.at) {
                bail!("the change at {seconds} s is not after the one before it");
            }
            if at >= end {
                bail!("the change at {seconds} s is not before the end of the run");
            }
            let set: Vec<String> = together.iter().map(|change| change.set.clone()).collect();
            let texts: Vec<&str> = set.iter().map(String::as_str).collect();
            let changes = match scenario.change(RUN, &texts, at, &made) {
                Ok(changes) => changes,
                Err(error) => bail!("the change at {seconds} s: {}", error.on_a_line()),
            };
            made.extend(changes.iter().cloned());
            plan.0.push(Planned { at, changes, set });
        }
        Ok(plan)
    }

    /// Returns `true` if nothing is to be changed.
    pub fn is_empty(&self) -> bool {
        self.0.is_empty()
    }
}

/// Steers a run, and keeps account of what was changed.
pub struct Pilot<'a> {
    control: Option<Control>,
    pace: Option<Pace<'a>>,
    planned: VecDeque<Planned>,
    /// Orders received, each with its time.
    waiting: VecDeque<(Time, Order)>,
    /// The time of the last change.
    last: Option<Time>,
    end: Time,
    made: Vec<ChangeSummary>,
    /// Told of the time; says whether the run is to end.
    reach: &'a mut dyn FnMut(Time) -> ControlFlow<()>,
}

impl<'a> Pilot<'a> {
    /// Steers by what `control` hands in and what is planned, at a pace.
    pub fn new(
        control: Option<Control>,
        pace: Option<Pace<'a>>,
        plan: &PilotPlan,
        duration: Span,
        reach: &'a mut dyn FnMut(Time) -> ControlFlow<()>,
    ) -> Pilot<'a> {
        Pilot {
            control,
            pace,
            planned: plan.0.clone().into(),
            waiting: VecDeque::new(),
            last: None,
            end: Time::ZERO + duration,
            made: Vec::new(),
            reach,
        }
    }

    /// The run is over: what was made.
    pub fn finish(self) -> Vec<ChangeSummary> {
        if let Some(control) = self.control {
            control.close();
        }
        self.made
    }

    /// Takes what has come; each gets a time of its own, `now` or later.
    fn take_orders(&mut self, now: Time) {
        let Some(control) = &self.control else { return };
        control.reach(now);
        for order in control.take() {
            let next = |last: Time| last + Span::from_nanos(1);
            let mut at = self.last.map_or(now, |last| now.max(next(last)));
            while self.planned.iter().any(|planned| planned.at == at) {
                at = next(at);
            }
            // An order that cannot be carried out before the end is dropped.
            if at < self.end {
                self.last = Some(at);
                self.waiting.push_back((at, order));
            }
        }
    }

    fn make(&mut self, world: &mut World, at: Time, changes: &[(DirectionId, Change)], set: &[String]) {
        for (direction, change) in changes {
            world.change(*direction, Change { at, ..change.clone() });
        }
        self.made.extend(set.iter().map(|set| ChangeSummary { at_ns: at.as_nanos(), set: set.clone() }));
    }

    /// Makes what is due at `now`, and says when the next change is.
    fn make_due(&mut self, world: &mut World, now: Time) -> Time {
        while self.planned.front().is_some_and(|planned| planned.at <= now)
            && let Some(Planned { at, changes, set }) = self.planned.pop_front()
        {
            self.last = self.last.max(Some(at));
            self.make(world, at, &changes, &set);
        }
        while self.waiting.front().is_some_and(|(at, _)| *at <= now)
            && let Some((at, order)) = self.waiting.pop_front()
        {
            self.make(world, at, &order.changes, &order.set);
            order.made.tell(at);
        }
        let planned = self.planned.front().map_or(Time::NEVER, |planned| planned.at);
        planned.min(self.waiting.front().map_or(Time::NEVER, |(at, _)| *at))
    }
}

impl Helm for Pilot<'_> {
    fn take(&mut self, now: Time, world: &mut World) -> ControlFlow<(), Time> {
        loop {
            (self.reach)(now)?;
            self.take_orders(now);
            let next = self.make_due(world, now);
            if let Some(&(at, _)) = self.waiting.front() {
                // A nanosecond or two: also of a run that stands still.
                return ControlFlow::Continue(at.min(next));
            }
            let until = self.pace.as_mut().map_or(Some(Time::NEVER), |pace| pace(now));
            // The run stands still, or is ahead of the clock.
            let Some(until) = until else { continue };
            return ControlFlow::Continue(until.min(next));
        }
    }
}
