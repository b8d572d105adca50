//! The table of keys: those that the parser requests from a document, and the values that each may
//! have.
//!
//! There is no list of keys apart from the parser: a key is declared by being read
//! ([`crate::fields::Fields`]), and its range is that of the kind that reads it. The table is
//! recorded while a document is read, since the set of keys depends on the document: a queue's on
//! its kind, a host's on its profile.

use std::collections::BTreeMap;
use std::collections::btree_map::Entry;

/// The possible contents of a key.
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
    /// A list of these.
    List(Box<Domain>),
    /// Lists and references, which stand in the table by name alone.
    Structure,
    /// One of these.
    Either(Vec<Domain>),
}

/// A key by its name, with its meaning in a line: that of the key's first reading that has one. A
/// parameter of an algorithm has a source instead.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Label {
    pub(crate) name: &'static str,
    pub(crate) meaning: &'static str,
}

impl From<&'static str> for Label {
    fn from(name: &'static str) -> Label {
        Label { name, meaning: "" }
    }
}

impl From<(&'static str, &'static str)> for Label {
    fn from((name, meaning): (&'static str, &'static str)) -> Label {
        Label { name, meaning }
    }
}

// Keys that are read in several places.
pub(crate) const APPLICATION: (&str, &str) = ("application", "the sender's application");
pub(crate) const AT: (&str, &str) = ("at", "time of the change");
pub(crate) const CC: (&str, &str) = ("cc", "congestion control of the sender");
pub(crate) const COUNT: (&str, &str) = ("count", "number of flows");
pub(crate) const DIRECTION: (&str, &str) = ("direction", "direction of the data along the path");
pub(crate) const DSCP: (&str, &str) = ("dscp", "differentiated services codepoint");
pub(crate) const ID: (&str, &str) = ("id", "name; its flows are `NAME.0`, `NAME.1` and so on");
pub(crate) const INTERVAL: (&str, &str) = ("interval", "time between packets, or probes");
pub(crate) const KIND: (&str, &str) = ("kind", "kind");
pub(crate) const LENGTH: (&str, &str) = ("length", "duration of the video, or of the data of netperf");
pub(crate) const MTU: (&str, &str) = ("mtu", "largest packet of datagrams");
pub(crate) const PATH: (&str, &str) = ("path", "links from sender to receiver, in order");
pub(crate) const PATHS: (&str, &str) = ("paths", "several paths in place of one");
pub(crate) const PERSISTENT: (&str, &str) = ("persistent", "one connection for all, instead of one each");
pub(crate) const RATE: (&str, &str) = ("rate", "rate of application data");
pub(crate) const RECEIVE_BUFFER: (&str, &str) = ("receive_buffer", "receive buffer");
pub(crate) const REQUEST_SIZE: (&str, &str) = ("request_size", "size of a request");
pub(crate) const RESPONSE: (&str, &str) = ("response", "size of a response");
pub(crate) const SEND_BUFFER: (&str, &str) = ("send_buffer", "send buffer");
pub(crate) const SIZE: (&str, &str) = ("size", "size of a message or request");
pub(crate) const FROM: (&str, &str) = ("from", "sending host, in place of a path");
pub(crate) const TO: (&str, &str) = ("to", "receiving host");
pub(crate) const START: (&str, &str) = ("start", "start time");
pub(crate) const STOP: (&str, &str) = ("stop", "time at which the application stops writing and closes");
pub(crate) const THINK: (&str, &str) = ("think", "time from a response, or page, to the next request");
pub(crate) const WRITE_SIZE: (&str, &str) = ("write_size", "bytes per write of the application");

/// A key that a document has, or may have.
#[derive(Clone, Debug, PartialEq)]
pub struct Key {
    /// Where it is, with numbers in lists: `flows.0.cc.beta`.
    pub path: String,
    /// The possible contents.
    pub domain: Domain,
    /// The default as TOML; `None` if that is no value.
    pub default: Option<String>,
    /// `true` if the key is required.
    pub required: bool,
    /// The meaning, in a line; empty for a parameter of an algorithm.
    pub meaning: &'static str,
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
                place.insert(Key { path, domain: Domain::Structure, default: None, required: false, meaning: "" })
            }
        }
    }

    /// A key was requested. The first domain and the first meaning given for it are kept.
    pub(crate) fn declare(&mut self, path: String, domain: Domain, meaning: &'static str) {
        let key = self.at(path);
        if key.meaning.is_empty() {
            key.meaning = meaning;
        }
        if key.domain == Domain::Structure {
            key.domain = domain;
        }
    }

    /// Records the default of a key.
    pub(crate) fn fill(&mut self, path: String, default: String) {
        self.at(path).default = Some(default);
    }

    /// Records that a key is required.
    pub(crate) fn require(&mut self, path: String) {
        self.at(path).required = true;
    }

    /// The keys in the order of reading.
    pub(crate) fn finish(mut self) -> Vec<Key> {
        self.order.iter().filter_map(|path| self.found.remove(path)).collect()
    }
}
