//! Differentiated services codepoints.

use crate::document::{Node, Value};
use crate::keys::Domain;
use crate::quantity::{Kind, OneOf, Problem, Whole};

/// The codepoints that have names, in the notation of `tc` and iproute2: RFC 2474 (CS), RFC 2597
/// (AF), RFC 3246 (EF), RFC 5865 (VA), RFC 8622 (LE); draft-ietf-tsvwg-nqb (NQB).
const NAMES: &[&str] = &[
    "cs0", "le", "cs1", "af11", "af12", "af13", "cs2", "af21", "af22", "af23", "cs3", "af31", "af32", "af33", "cs4",
    "af41", "af42", "af43", "cs5", "va", "nqb", "ef", "cs6", "cs7",
];
const VALUES: &[u8] = &[0, 1, 8, 10, 12, 14, 16, 18, 20, 22, 24, 26, 28, 30, 32, 34, 36, 38, 40, 44, 45, 46, 48, 56];

const NAMED: OneOf<'_> = OneOf { what: "codepoint", names: NAMES };
const NUMBER: Whole = Whole(0, 63);

/// A codepoint: its name, or a number from 0 to 63.
pub(crate) struct Codepoint;

impl Kind for Codepoint {
    type Held = u8;

    fn read(&self, node: &Node) -> Result<u8, Problem> {
        if node.str().is_none() {
            return NUMBER.read(node).map(|number| number as u8);
        }
        let name = NAMED.read(node)?;
        let place = NAMES.iter().position(|&known| known == name);
        Ok(place.and_then(|place| VALUES.get(place)).copied().unwrap_or_default())
    }

    fn show(&self, held: &u8) -> Value {
        let name = VALUES.iter().position(|value| value == held).and_then(|place| NAMES.get(place));
        name.map_or_else(|| NUMBER.show(&u64::from(*held)), |&name| name.into())
    }

    fn domain(&self) -> Domain {
        Domain::Either(vec![NAMED.domain(), NUMBER.domain()])
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn each_name_has_a_value() {
        assert_eq!(NAMES.len(), VALUES.len());
        assert!(VALUES.is_sorted());
        // RFC 2597: AFxy is 8x + 2y; RFC 2474: CSx is 8x.
        for (name, &value) in NAMES.iter().zip(VALUES) {
            let digits: Vec<u8> = name.bytes().filter(u8::is_ascii_digit).map(|digit| digit - b'0').collect();
            match digits[..] {
                [class] => assert_eq!(value, 8 * class, "{name}"),
                [class, drop] => assert_eq!(value, 8 * class + 2 * drop, "{name}"),
                _ => assert!(["le", "va", "nqb", "ef"].contains(name), "{name}"),
            }
        }
    }
}
