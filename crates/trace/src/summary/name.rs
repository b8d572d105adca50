//! Names in a summary: those of a running program are in its binary, those of a stored summary are
//! kept for as long as the program runs, each once.

use std::collections::{BTreeMap, BTreeSet};
use std::sync::{Mutex, PoisonError};

use serde::{Deserialize, Deserializer};

/// A name from a short list, such as that of a queue discipline.
pub(crate) type Name = &'static str;

/// The names that summaries have been read with.
static KNOWN: Mutex<BTreeSet<Name>> = Mutex::new(BTreeSet::new());

fn known(name: &str) -> Name {
    let mut names = KNOWN.lock().unwrap_or_else(PoisonError::into_inner);
    match names.get(name) {
        Some(name) => name,
        None => {
            let name: Name = Box::leak(name.into());
            names.insert(name);
            name
        }
    }
}

pub(super) fn one<'de, D: Deserializer<'de>>(from: D) -> Result<Name, D::Error> {
    Ok(known(&String::deserialize(from)?))
}

pub(super) fn counts<'de, D: Deserializer<'de>>(from: D) -> Result<BTreeMap<Name, u64>, D::Error> {
    Ok(interned(BTreeMap::deserialize(from)?))
}

pub(super) fn counts_by_place<'de, D: Deserializer<'de>>(
    from: D,
) -> Result<BTreeMap<String, BTreeMap<Name, u64>>, D::Error> {
    let places = BTreeMap::<String, _>::deserialize(from)?;
    Ok(places.into_iter().map(|(place, counts)| (place, interned(counts))).collect())
}

fn interned(counts: BTreeMap<String, u64>) -> BTreeMap<Name, u64> {
    counts.into_iter().map(|(name, count)| (known(&name), count)).collect()
}
