//! Import and export of all formats.

mod bad_input;
mod files;
mod round_trip;
mod tokens;

use ackclock_scenario::Scenario;
use ackclock_sim::spec::{LinkSpec, RunSpec};
use ackclock_tc::{Imported, Options, Source};

/// Imports a text, which has to be possible.
fn import(text: &str) -> Imported {
    let source = Source { name: "in", text };
    ackclock_tc::import(&[source], &Options::default()).unwrap_or_else(|error| panic!("{error}\n{text}"))
}

/// The run of an imported scenario.
fn spec(imported: &Imported) -> RunSpec {
    Scenario::parse("imported", imported.text.as_bytes(), &[]).expect("it was checked").spec(0)
}

/// The only link of an imported scenario.
fn link(imported: &Imported) -> LinkSpec {
    let spec = spec(imported);
    assert_eq!(spec.links.len(), 1, "{}", imported.text);
    spec.links[0].clone()
}

/// The lines of what is left over.
fn left(imported: &Imported) -> Vec<String> {
    imported.left.iter().map(ToString::to_string).collect()
}
