//! The arrows between the modules of a crate: they run down its order of layers, except those
//! listed with a reason.
//!
//! They are read from the source text: paths and imports, and methods called on `self`, on
//! parameters and on their fields, for a type may have its `impl` blocks in many files. Calls
//! on anything else, such as the result of a call, are not seen, nor is what only tests use.
//!
//! `cargo test -p ackclock-testkit --test it modules -- --nocapture` prints how many arrows there
//! are, how many run backwards, and how many are part of a cycle, whatever the order.

use std::path::Path;

use arrows::{Allowed, Layers, arrows, backwards, in_cycles};
use source::{Module, Names};

mod arrows;
mod scenario;
mod sim;
mod source;
mod tcp;
mod tokens;

/// The modules of a crate of the workspace.
fn modules_of(layers: &Layers) -> Vec<Module> {
    let root = Path::new(env!("CARGO_MANIFEST_DIR")).join("../..").join(layers.folder).join("src/lib.rs");
    source::modules(&root).unwrap_or_else(|error| panic!("{error}"))
}

/// Holds a crate against its order, and prints the counts: of the modules that are listed, and of
/// all files.
#[expect(clippy::print_stdout, reason = "the counts are asked for with --nocapture")]
fn check(layers: &Layers) {
    let modules = modules_of(layers);
    let (found, _) = arrows(&modules, layers.order);
    let against = backwards(&found, layers);
    let shared = |arrow: &(String, String)| found[arrow].shares_self;
    println!(
        "{}: {} arrows, {} backwards, {} in cycles; by methods of one type in several modules {} arrows, {} backwards",
        layers.folder,
        found.len(),
        against.len(),
        in_cycles(&found),
        found.keys().filter(|arrow| shared(arrow)).count(),
        against.iter().filter(|arrow| shared(arrow)).count(),
    );
    let files: Vec<String> = modules.iter().map(|module| module.path.join("/")).collect();
    let files: Vec<&str> = files.iter().map(String::as_str).collect();
    let (between_files, _) = arrows(&modules, &files);
    println!("    {} files: {} arrows, {} in cycles", files.len(), between_files.len(), in_cycles(&between_files));
    for (from, to) in &against {
        let places: Vec<&str> = found[&(from.clone(), to.clone())].places.iter().take(3).map(String::as_str).collect();
        println!("    backwards: {from} -> {to}: {}", places.join(", "));
    }
    assert_eq!(layers.violations(&modules), Vec::<String>::new());
}

#[test]
fn scenario_keeps_to_its_order() {
    check(&scenario::LAYERS);
}

#[test]
fn sim_keeps_to_its_order() {
    check(&sim::LAYERS);
}

#[test]
fn tcp_keeps_to_its_order() {
    check(&tcp::LAYERS);
}

/// A crate of four files: `low`, `high` with `high/inner`, and `glue`, which has methods of `High`.
fn example() -> Vec<Module> {
    let names = |path: &str| path.split('/').filter(|name| !name.is_empty()).map(str::to_owned).collect::<Names>();
    [
        ("", "mod low; mod high; mod glue; pub use high::High; #[cfg(test)] mod tests;"),
        ("low", "// crate::high\npub struct Low { pub(in crate::high) at: u32 }\nimpl Low { pub fn step<T: Copy>(&mut self, _: T) {} }"),
        (
            "high",
            "mod inner; use crate::low::{self, Low}; pub(crate) use inner::Deep;
             pub struct High { lows: Vec<Low>, deep: Deep }
             impl High { fn go(&mut self) { self.lows[low::FIRST].step::<u8>(1); self.wind('\\''); } }
             #[cfg(test)] mod tests { use crate::glue::winder; }",
        ),
        ("high/inner", "pub struct Deep; impl Deep { fn sink(&self) -> &'static str { \"crate::glue::x\" } }"),
        (
            "glue",
            "use crate::High; pub fn winder() {} mod constants { use crate::nowhere; }
             impl High { fn wind(&mut self, _: char) { self.go(); self.deep.sink(); } }
             fn all(first: u8, highs: &mut [High]) { highs[0].go(); }",
        ),
    ]
    .into_iter()
    .map(|(path, text)| source::module(names(path), text))
    .collect()
}

const ORDER: &[&str] = &["low", "high/inner", "high", "glue"];

#[test]
fn arrows_are_read_from_paths_imports_and_methods() {
    let (found, strays) = arrows(&example(), ORDER);
    let all: Vec<(&str, &str, bool)> =
        found.iter().map(|((from, to), arrow)| (from.as_str(), to.as_str(), arrow.shares_self)).collect();
    assert_eq!(
        all,
        [
            // By the re-export in the root, by `self.go()` and `highs[0].go()`.
            ("glue", "high", true),
            // `self.deep.sink()`: by the type of the field.
            ("glue", "high/inner", false),
            // `self.wind()`, which `glue` has: backwards.
            ("high", "glue", true),
            // By the type of the field; the re-export alone would be none.
            ("high", "high/inner", false),
            ("high", "low", false),
        ]
    );
    assert_eq!(strays, Vec::<String>::new());
    assert_eq!(in_cycles(&found), 2);
}

#[test]
fn what_is_not_listed_belongs_to_its_folder() {
    let (found, strays) = arrows(&example(), &["low", "high"]);
    let all: Vec<(&str, &str)> = found.keys().map(|(from, to)| (from.as_str(), to.as_str())).collect();
    assert_eq!(all, [("high", "low")]);
    assert_eq!(strays, ["glue"]);
}

#[test]
fn an_arrow_that_runs_backwards_is_found() {
    let layers = |allowed| Layers { folder: "", order: ORDER, composes: &[], allowed };
    let found = layers(Allowed::Listed(&[])).violations(&example());
    assert_eq!(found, ["high -> glue runs backwards: high.rs:3 wind()"]);
    let found = layers(Allowed::Listed(&[("high", "glue", "of one type"), ("low", "high", "no more")]));
    assert_eq!(found.violations(&example()), ["low -> high is an exception that nothing needs"]);
    assert_eq!(layers(Allowed::Count(0)).violations(&example()), ["1 arrows run backwards, and 0 may"]);
    assert_eq!(layers(Allowed::Count(1)).violations(&example()), Vec::<String>::new());
    assert_eq!(layers(Allowed::Count(2)).violations(&example()), ["1 arrows run backwards, and 2 may"]);
}

#[test]
fn a_type_may_use_its_parts_but_not_its_own_methods_above() {
    let order = &["high", "low", "high/inner", "glue"];
    let layers = Layers { folder: "", order, composes: &["high"], allowed: Allowed::Listed(&[]) };
    assert_eq!(layers.violations(&example()), ["high -> glue runs backwards: high.rs:3 wind()"]);
}

#[test]
fn an_order_names_every_module_once() {
    let order = &["high", "low", "low", "old"];
    let layers = Layers { folder: "", order, composes: &[], allowed: Allowed::Count(1) };
    let wrong = ["glue has no place in the order", "there is no module old", "low is listed twice"];
    assert_eq!(layers.violations(&example()), wrong);
}
