//! The key `jitter_distribution`: a name, or a table with a file of iproute2's format.

use ackclock_emulator::{JitterDistribution, JitterTable};

use crate::distribution::file;
use crate::fields::Fields;
use crate::keys::Domain;
use crate::quantity::{Kind, OneOf, Problem};

/// The names of all distributions of jitter.
const DISTRIBUTIONS: [&str; JitterDistribution::ALL.len()] = {
    let mut names = [""; JitterDistribution::ALL.len()];
    let mut n = 0;
    while n < names.len() {
        names[n] = JitterDistribution::ALL[n].name();
        n += 1;
    }
    names
};

/// The meaning of every distribution of jitter.
const JITTER: &str =
    "`uniform` adds 0 to `jitter`; the others deviate to both sides, in units of `jitter`, as in netem";

/// Reads the key; `base` is what it is without one.
pub(super) fn distribution(
    fields: &mut Fields<'_>,
    base: (JitterDistribution, Option<JitterTable>),
) -> (JitterDistribution, Option<JitterTable>) {
    let kind = OneOf { what: "distribution", names: &DISTRIBUTIONS };
    fields.declare(("jitter_distribution", JITTER), || Domain::Either(vec![kind.domain(), Domain::Table]));
    let found = fields.get("jitter_distribution").map(|entry| &entry.node);
    if found.is_some_and(|node| node.table().is_some()) {
        let table = from_file(fields);
        return (JitterDistribution::default(), table);
    }
    if found.is_none() && base.1.is_some() {
        return base;
    }
    let name = fields.or("jitter_distribution", base.0.name(), kind);
    (JitterDistribution::ALL.into_iter().find(|distribution| distribution.name() == name).unwrap_or(base.0), None)
}

/// Reads `{ file = "..." }`. `None` was reported.
fn from_file(fields: &mut Fields<'_>) -> Option<JitterTable> {
    let mut table = fields.table("jitter_distribution", "")?;
    let read = file(&mut table, "table of a distribution, in `tc`'s format").and_then(|(text, node)| {
        let parsed = JitterTable::parse(&text).map_err(|error| {
            let line = error.line.map(|line| format!("line {line}: ")).unwrap_or_default();
            table.reject("file", node, Problem::new(format!("{line}{}", error.problem), error.expected));
        });
        parsed.ok()
    });
    table.finish();
    read
}
