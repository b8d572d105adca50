//! The key `queue`: a queue discipline by its name, with the parameters that its configuration
//! lists.

use std::sync::Arc;

use ackclock_aqm::OwnQueueConfig;
use ackclock_sim::spec::{OwnQueue, QueueSpec};

use crate::extent::Extent;
use crate::fields::Fields;
use crate::keys::Domain;
use crate::quantity::OneOf;
use crate::{classes, parameters};

/// The queue of a link that does not name one.
const DEFAULT: &str = "pfifo";

/// Every discipline, also those from outside.
fn names(fields: &Fields<'_>) -> Vec<&'static str> {
    QueueSpec::NAMES.iter().copied().chain(fields.own().queues().iter().map(|own| own.name())).collect()
}

/// The key of a link.
pub(crate) const QUEUE: (&str, &str) = ("queue", "queue discipline before the transmitter");

/// Says what the key `queue` may hold where it need not be read.
pub(crate) fn declare(fields: &Fields<'_>, key: (&'static str, &'static str)) {
    fields.declare(key, || Domain::Kind(names(fields)));
}

/// A discipline out of the box.
fn by_name(kind: &str, own: &[Arc<OwnQueue>]) -> QueueSpec {
    match own.iter().find(|own| own.name() == kind) {
        Some(own) => QueueSpec::Own(OwnQueueConfig::new(Arc::clone(own))),
        None => QueueSpec::by_name(kind).unwrap_or_else(|| unreachable!("`{kind}` is in the table of names")),
    }
}

/// The queue of a link that does not name one.
pub(crate) fn default() -> QueueSpec {
    by_name(DEFAULT, &[])
}

/// Reads the key `queue`; sizes in other units refer to `extent`.
pub(crate) fn read(fields: &mut Fields<'_>, extent: &Extent) -> QueueSpec {
    choose(fields, extent, &default())
}

/// Reads the key `queue` of a change: what it does not say of the discipline that is there stays.
pub(crate) fn change(fields: &mut Fields<'_>, extent: &Extent, there: &QueueSpec) -> QueueSpec {
    fields.dormant(|fields| choose(fields, extent, there))
}

/// Reads the queue of a class, which is `base` where it does not say anything.
pub(crate) fn leaf(fields: &mut Fields<'_>, extent: &Extent, base: &QueueSpec) -> QueueSpec {
    let own = fields.own().queues();
    let mut names = names(fields);
    names.retain(|name| !QueueSpec::by_name(name).is_some_and(|queue| queue.is_tree()));
    let kinds = OneOf { what: "queue discipline", names: &names };
    fields.choose(("queue", "queue discipline of a leaf class"), base.name(), &kinds, |kind, fields| {
        let mut queue = if kind == base.name() { base.clone() } else { by_name(kind, own) };
        parameters::read_with(fields, Some(extent), kind, &mut queue);
        queue
    })
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
