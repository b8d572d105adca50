//! The table of keys: those that the parser requests from a document, and the values that each may
//! have.
//!
//! There is no list of keys apart from the parser: a key is declared by being read
//! ([`crate::fields::Fields`]), and its range is that of the kind that reads it. The table is
//! recorded while a document is read, since the set of keys depends on the document: a queue's on
//! its kind, a host's on its profile.

use std::collections::BTreeMap;
use std::collections::btree_map::Entry;

/// What a key may hold.
#[derive(Clone, Debug, PartialEq)]
pub enum Domain {
    /// `true` or `false`.
    Flag,
    /// A length of time, which may be zero unless it is `positive`.
    Time {
        /// More than zero.
        positive: bool,
    },
    /// A rate.
    Rate,
    /// Bytes, from the first number to the second.
    Bytes(u64, u64),
    /// Packets, likewise.
    Packets(u64, u64),
    /// A whole number, likewise.
    Whole(u64, u64),
    /// A power of two up to this.
    PowerOfTwo(u64),
    /// A number, from the first to the second.
    Number(f64, f64),
    /// One of these names.
    Name(Vec<&'static str>),
    /// `false`: none.
    Off,
    /// Text in a form of its own, such as this.
    Text(&'static str),
    /// A name, or a table with a `kind`, which is one of these.
    Kind(Vec<&'static str>),
    /// A table of keys.
    Table,
    /// Lists and references, which stand in the table by name alone.
    Structure,
    /// One of these.
    Either(Vec<Domain>),
}

/// A key that a document has, or may have.
#[derive(Clone, Debug, PartialEq)]
pub struct Key {
    /// Where it is, with numbers in lists: `flows.0.cc.beta`.
    pub path: String,
    /// What it may hold.
    pub domain: Domain,
    /// What it is if it is left out, as TOML; `None` if that is no value.
    pub default: Option<String>,
    /// Whether it has to be there.
    pub required: bool,
}

/// The table while it is recorded.
#[derive(Clone, Debug, Default)]
pub(crate) struct Keys {
    order: Vec<String>,
    found: BTreeMap<String, Key>,
}

impl Keys {
    fn at(&mut self, path: String) -> &mut Key {
        match self.found.entry(path) {
            Entry::Occupied(known) => known.into_mut(),
            Entry::Vacant(place) => {
                let path = place.key().clone();
                self.order.push(path.clone());
                place.insert(Key { path, domain: Domain::Structure, default: None, required: false })
            }
        }
    }

    /// A key was requested. The first domain given for it is kept.
    pub(crate) fn declare(&mut self, path: String, domain: Domain) {
        let key = self.at(path);
        if key.domain == Domain::Structure {
            key.domain = domain;
        }
    }

    /// This is what it is if it is left out.
    pub(crate) fn fill(&mut self, path: String, default: String) {
        self.at(path).default = Some(default);
    }

    /// It has to be there.
    pub(crate) fn require(&mut self, path: String) {
        self.at(path).required = true;
    }

    /// The keys in the order of reading.
    pub(crate) fn finish(mut self) -> Vec<Key> {
        self.order.iter().filter_map(|path| self.found.remove(path)).collect()
    }
}
