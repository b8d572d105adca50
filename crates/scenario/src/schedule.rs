//! `schedule` of a flow: congestion controllers to which its sender changes later.

use ackclock_sim::spec::CcChange;
use ackclock_units::{Span, Time as Instant};

use crate::fields::Fields;
use crate::host::{self, Host};
use crate::keys;
use crate::quantity::{Problem, Time};

/// The most changes of a flow: each is made before the run begins.
const MAX_CHANGES: usize = 1000;

/// Reads the key `schedule` of a flow whose first connection starts at `start`.
pub(crate) fn read(fields: &mut Fields<'_>, sender: &Host, start: Span, duration: Span) -> Vec<CcChange> {
    let expected = "a list of changes in order of time, such as [{ at = \"30s\", cc = \"newreno\" }]";
    let Some(entry) = fields.get(("schedule", "changes of the congestion controller")) else { return Vec::new() };
    let (endpoint, profile) = match sender {
        Host::Endpoint(endpoint, profile) => (endpoint, profile),
        Host::Smoltcp(_) => {
            let problem = Problem::new("a smoltcp host cannot change its controller", "another `host`");
            fields.reject("schedule", &entry.node, problem);
            return Vec::new();
        }
    };
    let items = match entry.node.array() {
        Some(items) if items.len() <= MAX_CHANGES => items,
        Some(items) => {
            let found = format!("{} changes are too many", items.len());
            fields.reject("schedule", &entry.node, Problem::new(found, format!("at most {MAX_CHANGES}")));
            return Vec::new();
        }
        None => {
            fields.reject("schedule", &entry.node, Problem::new("not a list of changes", expected));
            return Vec::new();
        }
    };
    let mut changes = Vec::new();
    let mut last = None;
    for (index, node) in items.iter().enumerate() {
        let Some(mut item) = fields.item("schedule", index, node, expected) else { continue };
        let at =
            item.required(keys::AT, Time::Positive, "when it takes over, such as \"30s\" from the start of the run");
        if item.get(("cc", "the new controller")).is_none() {
            item.missing("cc", "the congestion control that takes over, written as `cc` of a flow");
            continue;
        }
        let cc = host::controller(&mut item, endpoint, profile);
        if let (Some(at), Some(entry)) = (at, item.get("at")) {
            let problem = if at <= last.unwrap_or(Span::ZERO) {
                Some(Problem::new("not after the change before it", "changes in order of time"))
            } else if at <= start {
                let found = format!("not after the start of the flow, which is {start}");
                Some(Problem::new(found, "a later time; `cc` is the controller at the start"))
            } else if duration > Span::ZERO && at >= duration {
                let expected = format!("a time within `run.duration`, which is {duration}");
                Some(Problem::new("after the end of the run", expected))
            } else {
                None
            };
            if let Some(problem) = problem {
                item.reject("at", &entry.node, problem);
            }
            last = Some(at);
            changes.push(CcChange { at: Instant::ZERO + at, cc });
        }
        item.finish();
    }
    changes
}
