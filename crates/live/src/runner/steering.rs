//! What comes to change a run while it goes on.

use ackclock_trace::ChangeSummary;
use ackclock_units::{Span, Time};

use crate::control::{Control, Order};

/// The changes of a run.
#[derive(Debug, Default)]
pub(super) struct Steering {
    control: Option<Control>,
    made: Vec<ChangeSummary>,
    /// The time of the last one.
    last: Time,
    /// The longest delay that any link has been given.
    longest: Span,
}

impl Steering {
    pub(super) fn new(control: Option<Control>) -> Steering {
        Steering { control, ..Steering::default() }
    }

    /// What has come until `now`, each with a time of its own behind that, up to `last`.
    pub(super) fn take(&mut self, now: Time, last: Time) -> Vec<(Time, Order)> {
        let Some(control) = &self.control else { return Vec::new() };
        control.reach(now);
        let mut orders = Vec::new();
        for order in control.take() {
            // What is read at this very time comes before it.
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

    /// The run is over: nothing more is taken. What was made, and the longest delay of that.
    pub(super) fn finish(&mut self) -> (Vec<ChangeSummary>, Span) {
        if let Some(control) = self.control.take() {
            control.close();
        }
        (std::mem::take(&mut self.made), self.longest)
    }
}
