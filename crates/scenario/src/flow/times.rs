//! When the connections of a group start and end.

use ackclock_units::Span;

use crate::document::Table;
use crate::fields::Fields;
use crate::keys;
use crate::quantity::{Problem, Time};
use crate::report::Diagnostic;

/// When the connections of a group start and end.
pub(super) struct Times {
    pub(super) start: Span,
    pub(super) start_jitter: Span,
    pub(super) stop: Option<Span>,
    pub(super) abort: Option<Span>,
    pub(super) restart_every: Option<Span>,
}

impl Times {
    pub(super) fn read(fields: &mut Fields<'_>) -> Times {
        Times {
            start: fields.or(keys::START, Span::ZERO, Time::Any),
            start_jitter: fields.or(
                ("start_jitter", "upper bound of a random delay of each start"),
                Span::ZERO,
                Time::Any,
            ),
            stop: fields.maybe(keys::STOP, Time::Positive),
            abort: fields.maybe(("abort", "time of an abortive close, with an RST"), Time::Positive),
            restart_every: fields
                .maybe(("restart_every", "lifetime of a connection; another one follows it"), Time::Positive),
        }
    }

    /// The other keys that decide when connections start.
    pub(super) fn others(&self, stagger: Span) -> [(&'static str, Span); 3] {
        let every = self.restart_every.unwrap_or(Span::ZERO);
        [("stagger", stagger), ("start_jitter", self.start_jitter), ("restart_every", every)]
    }

    /// Checks them against each other. `staggered` is how much later the last flow starts than the
    /// first.
    pub(super) fn check(&self, fields: &mut Fields<'_>, table: &Table, staggered: Span, duration: Span) {
        let last_start = self.start + staggered + self.start_jitter;
        check_starts(fields, last_start, [("stop", self.stop), ("abort", self.abort)], duration);
        if let (Some(stop), Some(abort), Some(entry)) = (self.stop, self.abort, table.get("abort"))
            && abort <= stop
        {
            let title = format!("not after `stop`, which is {stop}; it would have no effect");
            fields.reject("abort", &entry.node, Problem::new(title, "a later time"));
        }
        if let (Some(every), Some(entry)) = (self.restart_every, table.get("start_jitter"))
            && self.start_jitter >= every
        {
            let expected = format!("less than `restart_every`, {every}");
            let problem = Problem::new("as long as the connections last", expected);
            fields.reject("start_jitter", &entry.node, problem);
        }
    }
}

/// Checks that every flow of the group has some time to send.
fn check_starts(fields: &mut Fields<'_>, last_start: Span, ends: [(&'static str, Option<Span>); 2], duration: Span) {
    let found = |fields: &mut Fields<'_>, keys: &[&'static str]| {
        let place = keys.iter().find_map(|&key| fields.get(key)).map(|entry| entry.node.place.clone());
        place.unwrap_or(fields.place().clone())
    };
    if duration > Span::ZERO && last_start >= duration {
        let place = found(fields, &["start", "stagger", "start_jitter"]);
        let label = format!("the last flow of the group starts at {last_start}");
        let error = Diagnostic::new(format!("{}: starts when the run is over", fields.shown()), &place, label);
        fields.push(error.note(format!("`run.duration` is {duration}")));
        return;
    }
    for (key, _) in ends.into_iter().filter(|(_, end)| end.is_some_and(|end| end <= last_start)) {
        let place = found(fields, &[key, "start"]);
        let label = format!("the last flow of the group starts at {last_start}");
        fields.push(Diagnostic::new(format!("{}: {key}s before it starts", fields.shown()), &place, label));
    }
}
