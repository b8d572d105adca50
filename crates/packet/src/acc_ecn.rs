//! The AccECN option: byte counters of a receiver, as they stand in a header.
//!
//! # Source
//! RFC 9768 section 3.2.3.

use std::fmt;

use ackclock_units::Ecn;

/// The order of the counters, given by the kind of the option.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum AccEcnOrder {
    /// Kind 172: EE0B, ECEB, EE1B.
    Zero,
    /// Kind 174: EE1B, ECEB, EE0B.
    One,
}

impl AccEcnOrder {
    /// Whose bytes each field counts.
    const fn codepoints(self) -> [Ecn; 3] {
        match self {
            AccEcnOrder::Zero => [Ecn::Ect0, Ecn::Ce, Ecn::Ect1],
            AccEcnOrder::One => [Ecn::Ect1, Ecn::Ce, Ecn::Ect0],
        }
    }
}

/// The AccECN option with its first fields, none to three of them: the low 24 bits of a receiver's
/// byte counters.
#[derive(Clone, Copy, PartialEq, Eq)]
pub struct AccEcn {
    order: AccEcnOrder,
    len: u8,
    /// Big-endian; those beyond `len` are zero.
    fields: [[u8; 3]; 3],
}

impl AccEcn {
    /// The most fields of one option.
    pub const MOST_FIELDS: usize = 3;

    /// An option with all three fields: `counter` gives the counter of a codepoint, of which the
    /// low 24 bits are written.
    pub fn new(order: AccEcnOrder, counter: impl Fn(Ecn) -> u32) -> AccEcn {
        let fields = order.codepoints().map(|codepoint| {
            let [_, high, middle, low] = counter(codepoint).to_be_bytes();
            [high, middle, low]
        });
        AccEcn { order, len: 3, fields }
    }

    /// The option read from `data`, the bytes behind its length byte; a partial field at the end
    /// and bytes beyond three fields are ignored.
    pub fn from_bytes(order: AccEcnOrder, data: &[u8]) -> AccEcn {
        let mut option = AccEcn { order, len: 0, fields: [[0; 3]; 3] };
        for (field, bytes) in option.fields.iter_mut().zip(data.as_chunks::<3>().0) {
            *field = *bytes;
            option.len += 1;
        }
        option
    }

    /// The order of the fields.
    pub fn order(&self) -> AccEcnOrder {
        self.order
    }

    /// The bytes behind the option's length byte.
    pub fn as_bytes(&self) -> &[u8] {
        self.fields[..usize::from(self.len)].as_flattened()
    }

    /// The fields in their order: whose bytes each counts, and its 24 bits.
    pub fn fields(&self) -> impl Iterator<Item = (Ecn, u32)> {
        let values = self.fields.map(|[high, middle, low]| u32::from_be_bytes([0, high, middle, low]));
        self.order.codepoints().into_iter().zip(values).take(usize::from(self.len))
    }

    /// The option with its first `fields` fields alone.
    #[must_use]
    pub fn shortened(&self, fields: usize) -> AccEcn {
        AccEcn::from_bytes(self.order, &self.as_bytes()[..(3 * fields).min(self.as_bytes().len())])
    }

    /// Bytes on the wire: 2, 5, 8 or 11.
    #[allow(clippy::len_without_is_empty, reason = "no option is empty")]
    pub fn len(&self) -> usize {
        2 + 3 * usize::from(self.len)
    }
}

impl fmt::Display for AccEcn {
    /// packetdrill's notation: `ECN e1b 1 ceb 0 e0b 1`.
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(match (self.order, self.len) {
            (AccEcnOrder::Zero, 0) => "AccECN0",
            (AccEcnOrder::One, 0) => "AccECN1",
            _ => "ECN",
        })?;
        self.fields().try_for_each(|(codepoint, value)| {
            let name = match codepoint {
                Ecn::Ect0 => "e0b",
                Ecn::Ect1 => "e1b",
                Ecn::Ce | Ecn::NotEct => "ceb",
            };
            write!(f, " {name} {value}")
        })
    }
}

impl fmt::Debug for AccEcn {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        fmt::Display::fmt(self, f)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn counter(codepoint: Ecn) -> u32 {
        match codepoint {
            Ecn::Ect1 => 0x0100_0001,
            Ecn::Ce => 0x02_0304,
            Ecn::Ect0 => 7,
            Ecn::NotEct => panic!("nobody counts it"),
        }
    }

    #[test]
    fn the_two_orders_of_table_5() {
        let fields = |order| AccEcn::new(order, counter).fields().collect::<Vec<_>>();
        // 24 bits: 0x01000001 is 1.
        assert_eq!(fields(AccEcnOrder::One), [(Ecn::Ect1, 1), (Ecn::Ce, 0x02_0304), (Ecn::Ect0, 7)]);
        assert_eq!(fields(AccEcnOrder::Zero), [(Ecn::Ect0, 7), (Ecn::Ce, 0x02_0304), (Ecn::Ect1, 1)]);
    }

    #[test]
    fn shorter_options_leave_out_the_last_fields() {
        let whole = AccEcn::new(AccEcnOrder::One, counter);
        assert_eq!(whole.as_bytes(), [0, 0, 1, 2, 3, 4, 0, 0, 7]);
        for (fields, len, text) in [
            (0, 2, "AccECN1"),
            (1, 5, "ECN e1b 1"),
            (2, 8, "ECN e1b 1 ceb 131844"),
            (3, 11, "ECN e1b 1 ceb 131844 e0b 7"),
        ] {
            let option = whole.shortened(fields);
            assert_eq!((option.len(), option.to_string().as_str()), (len, text));
            assert_eq!(AccEcn::from_bytes(AccEcnOrder::One, option.as_bytes()), option);
        }
        assert_eq!(whole.shortened(1).shortened(3), whole.shortened(1));
    }

    #[test]
    fn what_is_no_whole_field_is_ignored() {
        let read = |data: &[u8]| AccEcn::from_bytes(AccEcnOrder::Zero, data).to_string();
        assert_eq!(read(&[0, 0]), "AccECN0");
        assert_eq!(read(&[0, 0, 1, 9]), "ECN e0b 1");
        assert_eq!(read(&[0, 0, 1, 0, 0, 2, 0, 0, 3, 4, 5, 6]), "ECN e0b 1 ceb 2 e1b 3");
    }
}
