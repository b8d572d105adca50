//! Framing around packets.

use crate::fields::Fields;
use crate::quantity::Bytes;
use ackclock_sim::spec::{LinkLayer, Overhead};
use ackclock_units::parameter::Named as _;

use crate::quantity::OneOf;

/// Framing of a packet is at most this: the length of a packet with it must stay far below 2^32.
pub(crate) const MAX_OVERHEAD: u64 = 65_535;

/// The link layers.
pub(crate) const LINK_LAYERS: OneOf<'_> = OneOf { what: "link layer", names: LinkLayer::NAMES };

/// The framing of packets; `base` unless the file says otherwise.
pub(crate) fn overhead(fields: &mut Fields<'_>, base: Overhead) -> Overhead {
    let added = ("overhead", "framing bytes added to every packet");
    let least = ("mpu", "shortest packet on the link, framing included");
    let layer = ("linklayer", "`atm`: cells of 53 bytes for each 48; `ptm`: a byte more for each 64");
    Overhead {
        bytes: fields.or(added, base.bytes as u64, Bytes(0, MAX_OVERHEAD)) as i32,
        mpu: fields.or(least, base.mpu.into(), Bytes(0, MAX_OVERHEAD)) as u32,
        layer: LinkLayer::by_name(fields.or(layer, base.layer.name(), LINK_LAYERS)).unwrap_or_default(),
    }
}
