//! The key `queue`: a queue discipline by its name, with the parameters that its configuration
//! lists.

use ackclock_sim::spec::QueueSpec;

use crate::extent::Extent;
use crate::fields::Fields;
use crate::parameters;
use crate::quantity::OneOf;

pub(crate) const KINDS: OneOf = OneOf { what: "queue discipline", names: QueueSpec::NAMES };

/// The queue of a link that does not name one.
const DEFAULT: &str = "pfifo";

/// A discipline out of the box.
fn by_name(kind: &str) -> QueueSpec {
    QueueSpec::by_name(kind).unwrap_or_else(|| unreachable!("`{kind}` is in the table of names"))
}

/// The queue of a link that does not name one.
pub(crate) fn default() -> QueueSpec {
    by_name(DEFAULT)
}

/// Reads the key `queue`; sizes in other units refer to `extent`.
pub(crate) fn read(fields: &mut Fields<'_>, extent: &Extent) -> QueueSpec {
    fields.choose("queue", DEFAULT, &KINDS, |kind, fields| {
        let mut queue = by_name(kind);
        parameters::read_with(fields, Some(extent), kind, &mut queue);
        queue
    })
}
