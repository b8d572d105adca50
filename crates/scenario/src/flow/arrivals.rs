//! Groups of flows that arrive at random, and those of which only sums are kept.

use ackclock_units::Span;

use super::group::{GroupArrivals, MAX_FLOWS};
use crate::document::Table;
use crate::fields::Fields;
use crate::quantity::{Number, OneOf, Problem};

/// The most flows of which only sums are kept in one run.
pub(crate) const MAX_ARRIVALS: u64 = 100_000_000;

const RESULTS: OneOf = OneOf { what: "kind of results", names: &["each", "sum"] };

/// Flows in a second.
const RATES: Number = Number(1e-3, 1e9);

/// The most flows that a group may have; they are many if they come and go.
pub(crate) fn most(table: &Table) -> u64 {
    let sums = table.get("results").and_then(|entry| entry.node.str()) == Some("sum");
    if sums && table.get("arrival_rate").is_some() { MAX_ARRIVALS } else { MAX_FLOWS }
}

/// Reads `arrival_rate` and `results`; `outside` is whether packets come from outside, `others` are
/// the keys that have connections start at other times, with 0 where they do not.
pub(crate) fn read(
    fields: &mut Fields<'_>,
    table: &Table,
    outside: bool,
    others: [(&'static str, Span); 3],
) -> GroupArrivals {
    let rate = fields.maybe(("arrival_rate", "Poisson arrivals, flows per second"), RATES);
    let sums = fields.maybe(("results", "report each flow, or their sum"), RESULTS) == Some("sum");
    if rate.is_some() {
        for (key, _) in others.into_iter().filter(|&(_, value)| value > Span::ZERO) {
            if let Some(entry) = table.get(key) {
                let problem = Problem::new("not together with `arrival_rate`", "one of the two");
                fields.reject(key, &entry.node, problem);
            }
        }
    }
    if let (true, true, Some(entry)) = (sums, outside, table.get("results")) {
        let problem = Problem::new("not where packets come from outside", "`each`, or the virtual clock");
        fields.reject("results", &entry.node, problem);
    }
    GroupArrivals { rate, sums }
}
