//! Links: rate, delay, queue and impairments of each direction.

use ackclock_emulator::{HoldBack, Impairments, Loss, Reorder};
use ackclock_sim::spec::{DirectionSpec, LinkSpec};
use ackclock_units::Span;

use crate::document::{Entry, Node, Value};
use crate::fields::{Context, Fields};
use crate::keys::Domain;
use crate::quantity::{Bytes, Number, OneOf, OrOff, Problem, RateOrUnlimited, Time, Whole};
use crate::queue;
use crate::report::Diagnostic;

/// The most links of a run.
pub(crate) const MAX_LINKS: usize = 10_000;

/// Framing of a packet is at most this: the length of a packet with it must stay far below 2^32.
const MAX_OVERHEAD: u64 = 65_535;

/// The most bytes of a token bucket: more would be no shaping.
const MAX_BURST: u64 = 1 << 30;

/// Reads `[links.NAME]`.
pub(crate) fn read<'a>(cx: &'a Context<'a>, entry: &'a Entry) -> Option<LinkSpec> {
    let path = format!("links.{}", entry.key);
    if !is_name(&entry.key) {
        let label = "found this name";
        let error = Diagnostic::new("not a valid link name", &entry.key_place, label);
        cx.report.push(error.note("expected a letter, then letters, digits, `-` and `_`"));
        return None;
    }
    let Some(table) = entry.node.table() else {
        let error =
            Diagnostic::new(format!("{path}: not a table"), &entry.node.place, format!("found {}", entry.node.found()));
        cx.report.push(error.note(format!("expected a section `[{path}]` with at least `rate`")));
        return None;
    };
    let mut fields = Fields::new(cx, table, &path, &entry.key_place);
    let forward = direction(&mut fields, None);
    let mut back = fields.table("reverse", "the keys that differ on the way back, such as { rate = \"1gbit\" }");
    fields.finish();
    let reverse = match &mut back {
        Some(back) => direction(back, Some(&forward)),
        None => forward.clone(),
    };
    if let Some(back) = back {
        back.finish();
    }
    Some(LinkSpec { name: entry.key.clone(), forward, reverse })
}

/// Whether a text can name a link or a flow: it becomes a part of dotted paths, where a number is
/// an index.
pub(crate) fn is_name(text: &str) -> bool {
    text.len() <= 64
        && text.starts_with(|c: char| c.is_ascii_alphabetic())
        && text.bytes().all(|byte| byte.is_ascii_alphanumeric() || b"_-".contains(&byte))
}

/// Reads the keys of a direction; what the way back does not say is as in `forward`.
fn direction(fields: &mut Fields<'_>, forward: Option<&DirectionSpec>) -> DirectionSpec {
    // The way back takes these from the other direction without reading them.
    if forward.is_some() {
        fields.declare("queue", || queue::KINDS.kinds());
        fields.declare("loss", || LOSSES.kinds());
    }
    let rate = match forward {
        Some(forward) => fields.maybe("rate", RateOrUnlimited).unwrap_or(forward.rate),
        None => fields.required("rate", RateOrUnlimited, "a rate such as \"10mbit\", or \"unlimited\"").flatten(),
    };
    let base = forward.cloned().unwrap_or_else(|| DirectionSpec {
        rate: None,
        burst: None,
        delay: Span::ZERO,
        overhead: 0,
        queue: queue::default(),
        impairments: Impairments::default(),
    });
    let way_back = forward.is_some();
    let queue = if way_back && fields.get("queue").is_none() { base.queue } else { queue::read(fields) };
    let wire = base.impairments;
    let loss = if way_back && fields.get("loss").is_none() { wire.loss } else { loss(fields) };
    DirectionSpec {
        rate,
        burst: fields.or("burst", base.burst.map(u64::from), OrOff(Bytes(1, MAX_BURST))).map(|burst| burst as u32),
        delay: fields.or("delay", base.delay, Time::Any),
        overhead: fields.or("overhead", u64::from(base.overhead), Bytes(0, MAX_OVERHEAD)) as u32,
        queue,
        impairments: Impairments {
            loss,
            duplicate: fields.or("duplicate", wire.duplicate, Number(0.0, 1.0)),
            jitter: fields.or("jitter", wire.jitter, Time::Any),
            reorder: reorder(fields, wire.reorder),
        },
    }
}

/// How far a packet may be held back, in packets: more than any sender has in flight.
const MAX_EXTENT: u64 = 1 << 20;

/// Whether jitter may change the order, or a table for packets that are held back.
fn reorder(fields: &mut Fields<'_>, base: Reorder) -> Reorder {
    fields.declare("reorder", || Domain::Either(vec![Domain::Flag, Domain::Table]));
    match fields.get("reorder").map(|entry| &entry.node) {
        None => {
            match base {
                Reorder::Never | Reorder::ByJitter => fields.fill("reorder", base == Reorder::ByJitter),
                Reorder::HoldBack(hold) => {
                    hold_back(&mut fields.section("reorder", ""), hold);
                }
            }
            base
        }
        Some(node) => match &node.value {
            Value::Boolean(false) => Reorder::Never,
            Value::Boolean(true) => Reorder::ByJitter,
            Value::Table(_) => {
                let mut section = fields.section("reorder", "");
                let base = match base {
                    Reorder::HoldBack(hold) => hold,
                    Reorder::Never | Reorder::ByJitter => HoldBack::default(),
                };
                let hold = hold_back(&mut section, base);
                section.finish();
                Reorder::HoldBack(hold)
            }
            _ => {
                let expected = "`true` if jitter may change the order, `false`, or a table such as \
                                { extent = 8, probability = 0.01 }";
                fields.reject("reorder", node, Problem::new("not the right type", expected));
                base
            }
        },
    }
}

fn hold_back(section: &mut Fields<'_>, base: HoldBack) -> HoldBack {
    HoldBack {
        probability: section.or("probability", base.probability, Number(0.0, 1.0)),
        extent: section.or("extent", base.extent.into(), Whole(0, MAX_EXTENT)) as u32,
        timeout: section.or("timeout", base.timeout, Time::Any),
    }
}

const LOSSES: OneOf = OneOf { what: "loss model", names: &["none", "iid", "list"] };

fn loss(fields: &mut Fields<'_>) -> Loss {
    fields.choose("loss", "none", &LOSSES, |kind, fields| match kind {
        "iid" => {
            let probability = fields.required("probability", Number(0.0, 1.0), "a probability from 0 to 1");
            Loss::Iid(probability.unwrap_or(0.0))
        }
        "list" => Loss::List(packets(fields).unwrap_or_default()),
        _ => Loss::None,
    })
}

/// The numbers of the packets that are lost, sorted.
fn packets(fields: &mut Fields<'_>) -> Option<Vec<u64>> {
    let expected = "an array of packet numbers from 1, such as [10, 11]";
    let Some(entry) = fields.get("packets") else {
        fields.missing("packets", expected);
        return None;
    };
    let Some(items) = entry.node.array() else {
        fields.reject("packets", &entry.node, Problem::new("not an array", expected));
        return None;
    };
    let number = |item: &Node| {
        let read = crate::quantity::Kind::read(&Whole(1, u64::MAX), item);
        read.map_err(|problem| fields.reject("packets", item, problem)).ok()
    };
    let mut numbers: Vec<u64> = items.iter().filter_map(number).collect();
    numbers.sort_unstable();
    numbers.dedup();
    Some(numbers)
}
