//! Packets that arrive several at a time: the key `slots` of a link, and `interrupts` of a host.

use ackclock_emulator::Slots;
use ackclock_units::Span;

use super::jitter;
use crate::document::Value;
use crate::fields::Fields;
use crate::keys::Domain;
use crate::quantity::{Bytes, OrOff, Problem, Time, Whole};

const EXPECTED: &str = "a table such as { delay = \"4ms\", packets = 16 }, or `false`";

/// The most packets, and bytes, of a slot: as netem has it, whose numbers have 31 bits.
const MOST: u64 = i32::MAX as u64;

/// A key with those of its table that mean something else at a link than at a host.
#[derive(Clone, Copy)]
pub(crate) struct Keys {
    pub(crate) key: (&'static str, &'static str),
    pub(crate) delay: (&'static str, &'static str),
    pub(crate) packets: (&'static str, &'static str),
    pub(crate) bytes: (&'static str, &'static str),
}

/// The keys of a link's slots.
pub(crate) const SLOTS: Keys = Keys {
    key: ("slots", "transmission in slots at intervals, several packets in each"),
    delay: ("delay", "time from one slot to the next"),
    packets: ("packets", "largest number of packets in a slot"),
    bytes: ("bytes", "largest number of bytes in a slot"),
};

/// Reads a key; `base` is what it is without one.
pub(crate) fn read(fields: &mut Fields<'_>, keys: Keys, base: Option<Slots>) -> Option<Slots> {
    let key = keys.key.0;
    fields.declare(keys.key, || Domain::Either(vec![Domain::Off, Domain::Table]));
    let Some(node) = fields.get(key).map(|entry| &entry.node) else {
        if let Some(slots) = &base {
            let mut section = fields.section(key, "");
            return Some(of(&mut section, keys, slots.clone()));
        }
        return base;
    };
    match &node.value {
        Value::Boolean(false) => None,
        Value::Table(_) => {
            let mut section = fields.section(key, "");
            let slots = of(&mut section, keys, base.unwrap_or_default());
            section.finish();
            if slots.delay == Span::ZERO && slots.jitter == Span::ZERO {
                fields.reject(key, node, Problem::new("neither `delay` nor `jitter`", "one of them, or both"));
            }
            Some(slots)
        }
        _ => {
            fields.reject(key, node, Problem::new("not the right type", EXPECTED));
            base
        }
    }
}

fn of(section: &mut Fields<'_>, keys: Keys, base: Slots) -> Slots {
    let delay = section.or(keys.delay, base.delay, Time::Any);
    let jitter = section.or(("jitter", "spread of that time, as of a link's `delay`"), base.jitter, Time::Any);
    let (jitter_distribution, jitter_table) =
        jitter::distribution(section, (base.jitter_distribution, base.jitter_table));
    let packets = section.or(keys.packets, base.packets, OrOff(Whole(1, MOST)));
    let bytes = section.or(keys.bytes, base.bytes, OrOff(Bytes(1, MOST)));
    Slots { delay, jitter, jitter_distribution, jitter_table, packets, bytes }
}
