//! The transmit ring below a direction's queue.

use std::num::NonZeroU32;

use ackclock_emulator::{BqlConfig, DeviceConfig, DeviceLimit};
use ackclock_units::Span;

use crate::document::Value;
use crate::fields::Fields;
use crate::keys::Domain;
use crate::quantity::{Bytes, Kind, Problem, Time, Whole};

/// Longer rings than any device has.
const MAX_DESCRIPTORS: u64 = 1 << 16;

/// More bytes than those hold.
const MAX_BYTES: u64 = 1 << 30;

const LIMIT: &str = "device_limit";
const COMPLETION: &str = "device_completion";

/// Reads the keys of the ring; `base` holds unless the file says otherwise.
pub(super) fn read(fields: &mut Fields<'_>, base: Option<DeviceConfig>) -> Option<DeviceConfig> {
    let limit = limit(fields, base.map(|device| device.limit));
    let meaning = "time until the device's interrupt, which frees the places of all packets sent by then";
    // A direction without a ring has none of the other's interrupts either.
    let base = base.filter(|_| limit.is_some()).map_or(Span::ZERO, |device| device.completion);
    let completion = fields.or((COMPLETION, meaning), base, Time::Any);
    if let (None, true, Some(node)) = (limit, completion > Span::ZERO, fields.peek(COMPLETION)) {
        fields.reject(COMPLETION, node, Problem::new("has no effect", "`device_limit` beside it"));
    }
    limit.map(|limit| DeviceConfig { limit, completion })
}

fn limit(fields: &mut Fields<'_>, base: Option<DeviceLimit>) -> Option<DeviceLimit> {
    let meaning = "size of the device's transmit ring, in packets or bytes, or `bql` (byte queue limits; a table sets \
                   their bounds); the queue can no longer drop or mark these";
    let (packets, bytes) = (Whole(1, MAX_DESCRIPTORS), Bytes(1, MAX_BYTES));
    fields.declare((LIMIT, meaning), || {
        Domain::Either(vec![Domain::Off, packets.domain(), bytes.domain(), Domain::Name(vec!["bql"]), Domain::Table])
    });
    let nonzero = |number: u64| NonZeroU32::new(number as u32).unwrap_or(NonZeroU32::MIN);
    let Some(node) = fields.get(LIMIT).map(|entry| &entry.node) else {
        match base {
            None => fields.fill(LIMIT, false),
            Some(DeviceLimit::Packets(packets)) => fields.fill(LIMIT, u64::from(packets.get())),
            Some(DeviceLimit::Bytes(number)) => fields.fill(LIMIT, bytes.show(&number.get().into())),
            Some(DeviceLimit::Bql(base)) => {
                bql(fields, base);
            }
        }
        return base;
    };
    let read = match &node.value {
        Value::Boolean(false) => return None,
        Value::Table(_) => {
            let base = if let Some(DeviceLimit::Bql(base)) = base { base } else { BqlConfig::default() };
            return Some(DeviceLimit::Bql(bql(fields, base)));
        }
        Value::String(text) if text == "bql" => return Some(DeviceLimit::Bql(BqlConfig::default())),
        Value::Integer(_) => packets.read(node).map(|number| DeviceLimit::Packets(nonzero(number))),
        _ => bytes.read(node).map(|number| DeviceLimit::Bytes(nonzero(number))),
    };
    read.map_err(|problem| {
        let expected = "a number of packets, a size such as \"30kB\", \"bql\", a table such as { limit_max = \"30kB\" }, \
                        or `false`";
        fields.reject(LIMIT, node, Problem { expected: expected.to_owned(), ..problem });
    })
    .ok()
}

/// The bounds of byte queue limits, by their names in `/sys`.
fn bql(fields: &mut Fields<'_>, base: BqlConfig) -> BqlConfig {
    let mut section = fields.section(LIMIT, "");
    let most = BqlConfig::MAX.into();
    let config = BqlConfig {
        limit_min: section.or(("limit_min", "least byte queue limit"), base.limit_min.into(), Bytes(0, most)) as u32,
        limit_max: section.or(("limit_max", "largest byte queue limit"), base.limit_max.into(), Bytes(0, most)) as u32,
        hold_time: section.or(
            ("hold_time", "time over which unneeded bytes are looked for"),
            base.hold_time,
            Time::Any,
        ),
    };
    if let (true, Some(node)) = (config.limit_min > config.limit_max, section.peek("limit_min")) {
        section.reject("limit_min", node, Problem::new("above `limit_max`", "a size up to it"));
    }
    section.finish();
    config
}
