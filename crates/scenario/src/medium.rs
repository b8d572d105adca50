//! The key `medium` of a link: what its two directions share.

use ackclock_emulator::MediumConfig;
use ackclock_sim::spec::DirectionSpec;
use ackclock_traffic::Distribution;
use ackclock_units::Span;

use crate::distribution::{self, Unit};
use crate::document::{Entry, Node, Table, Value};
use crate::fields::Fields;
use crate::keys::Domain;
use crate::quantity::{Kind, OneOf, Problem, Time, Whole};
use crate::report::Place;

pub(crate) const KINDS: OneOf = OneOf { what: "medium", names: &["wifi"] };

/// The most packets of an aggregate: the window of block acknowledgments of 802.11be. The longest
/// airtime is 4 ms unless it is given, the limit of Linux's ath9k.
const MOST_PACKETS: u64 = 1024;

/// Contention unless it is given, in microseconds: uniform between these. IEEE 802.11-2020 for best
/// effort on OFDM at 5 GHz: SIFS and three slots (16 + 27), a backoff of 0 to 15 slots of 9, a
/// preamble of 40, and SIFS and a block acknowledgment (16 + 32).
const WINDOW: [u64; 2] = [131, 266];

/// Reads the key, if it is there. Both directions have been read.
pub(crate) fn read(fields: &mut Fields<'_>, directions: [&DirectionSpec; 2]) -> Option<MediumConfig> {
    let entry = fields.get("medium");
    fields.declare(("medium", "a medium that both directions share"), || KINDS.kinds());
    let entry = entry?;
    let found = directions.iter().find_map(|spec| problem(spec));
    if let Some(found) = found {
        let expected =
            "a medium between directions with a constant `rate`, without `burst`, `slots`, `schedule` and `trace`";
        fields.reject("medium", &entry.node, Problem::new(found, expected));
    }
    fields.choose("medium", "wifi", &KINDS, |_, fields| {
        let aggregate_packets =
            fields.or(("aggregate_packets", "largest number of packets in a transmission"), 64, Whole(1, MOST_PACKETS))
                as u32;
        let aggregate_time =
            fields.or(("aggregate_time", "longest transmission"), Span::from_millis(4), Time::Positive);
        let contention = contention(fields)?;
        Some(MediumConfig { aggregate_packets, aggregate_time, contention })
    })
}

fn problem(spec: &DirectionSpec) -> Option<&'static str> {
    if spec.course.trace.is_some() {
        Some("the rate of a shared medium cannot follow a trace")
    } else if spec.course.slots.is_some() {
        Some("a link with a shared medium has no slots")
    } else if !spec.course.is_constant() {
        Some("a link with a shared medium cannot change by a schedule")
    } else if spec.rate.is_none() {
        Some("a shared medium has no unlimited rate")
    } else if spec.burst.is_some() {
        Some("a shared medium has no token bucket")
    } else if spec.device.is_some() {
        Some("a shared medium has no device (`device_limit`)")
    } else {
        None
    }
}

const CONTENTION: (&str, &str) = ("contention", "time before each transmission, or its distribution");

fn contention(fields: &mut Fields<'_>) -> Option<Distribution> {
    if fields.get("contention").is_some() {
        return distribution::read(fields, CONTENTION, Unit::TimeOrNone);
    }
    fields.declare(CONTENTION, || Domain::Either(vec![Unit::TimeOrNone.domain(), Domain::Table]));
    let [min, max] = WINDOW.map(Span::from_micros);
    let entry = |key: &str, value: Value| {
        let nowhere = Place::new(0, 0..0);
        Entry { key: key.to_owned(), key_place: nowhere.clone(), node: Node::new(value, nowhere) }
    };
    let table = vec![entry("distribution", "uniform".into()), entry("min", min.into()), entry("max", max.into())];
    fields.fill("contention", Value::Table(Table(table)));
    Distribution::uniform(min.as_nanos() as f64, max.as_nanos() as f64).ok()
}
