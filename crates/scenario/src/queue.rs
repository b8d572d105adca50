//! The key `queue`: a queue discipline by its name, with the parameters that its configuration
//! lists.

use ackclock_sim::spec::QueueSpec;

use crate::disciplines::{by_name, default, names};
use crate::extent::Extent;
use crate::fields::Fields;
use crate::keys::Domain;
use crate::quantity::OneOf;
use crate::{classes, parameters};

/// The key of a link.
pub(crate) const QUEUE: (&str, &str) = ("queue", "queue discipline before the transmitter");

/// Says what the key `queue` may hold where it need not be read.
pub(crate) fn declare(fields: &Fields<'_>, key: (&'static str, &'static str)) {
    fields.declare(key, || Domain::Kind(names(fields)));
}

/// Reads the key `queue`; sizes in other units refer to `extent`.
pub(crate) fn read(fields: &mut Fields<'_>, extent: &Extent) -> QueueSpec {
    choose(fields, extent, &default())
}

/// Reads the key `queue` of a change: what it does not say of the discipline that is there stays.
pub(crate) fn change(fields: &mut Fields<'_>, extent: &Extent, there: &QueueSpec) -> QueueSpec {
    fields.dormant(|fields| choose(fields, extent, there))
}

/// Reads the key `queue`, which is `base` where it does not say anything.
fn choose(fields: &mut Fields<'_>, extent: &Extent, base: &QueueSpec) -> QueueSpec {
    let own = fields.own().queues();
    let names = names(fields);
    let kinds = OneOf { what: "queue discipline", names: &names };
    fields.choose(QUEUE, base.name(), &kinds, |kind, fields| {
        let mut queue = if kind == base.name() { base.clone() } else { by_name(kind, own) };
        classes::read(fields, extent, &mut queue);
        parameters::read_with(fields, Some(extent), kind, &mut queue);
        queue
    })
}
