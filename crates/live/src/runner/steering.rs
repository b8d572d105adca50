//! Taking the changes that a person makes during a run.

use ackclock_trace::ChangeSummary;
use ackclock_units::{Span, Time};

use crate::control::{Control, Order};

/// The changes of a run.
#[derive(Debug, Default)]
pub(super) struct Steering {
    control: Option<Control>,
    made: Vec<ChangeSummary>,
    /// The time of the last change.
    last: Time,
    /// The longest delay that a change has set.
    longest: Span,
}

impl Steering {
    pub(super) fn new(control: Option<Control>) -> Steering {
        Steering { control, ..Steering::default() }
    }

    /// The orders submitted until `now`, each with a time of its own after that, up to `last`.
    pub(super) fn take(&mut self, now: Time, last: Time) -> Vec<(Time, Order)> {
        let Some(control) = &self.control else { return Vec::new() };
        control.reach(now);
        let mut orders = Vec::new();
        for order in control.take() {
            // Packets read at this very time come before it.
            let at = now.max(self.last) + Span::from_nanos(1);
            if at > last {
                break;
            }
            self.last = at;
            self.made.extend(order.set.iter().map(|set| ChangeSummary { at_ns: at.as_nanos(), set: set.clone() }));
            let delays = order.changes.iter().filter_map(|(_, change)| change.delay);
            self.longest = delays.fold(self.longest, Span::max);
            orders.push((at, order));
        }
        orders
    }

    /// Stops taking changes at the end of the run: returns those that were made, and the longest
    /// delay among them.
    pub(super) fn finish(&mut self) -> (Vec<ChangeSummary>, Span) {
        if let Some(control) = self.control.take() {
            control.close();
        }
        (std::mem::take(&mut self.made), self.longest)
    }
}
