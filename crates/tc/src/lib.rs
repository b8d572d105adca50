#![doc = include_str!("../README.md")]
//!
//! ## Where to start
//!
//! [`import`] makes a scenario of files, [`export`] a script of the links of a run. Every format is
//! read to commands of `tc` (`script`, `json`, `sqm`, `libreqos`); `tree` keeps what they set up on
//! each device, `link` turns that into a direction of a link, and `disciplines` has a row for each
//! option of a qdisc, by which both ways go.

mod classify;
mod disciplines;
mod export;
mod json;
mod libreqos;
mod link;
mod netem;
mod scenario;
mod script;
mod shell;
mod source;
mod sqm;
mod tree;
mod units;

pub use export::export;
pub use source::{ImportError, Imported, Left, Options, Place, Source};

use crate::source::Read;

/// Makes a scenario of scripts of `tc` commands, output of `tc -j`, SQM's and LibreQoS's
/// configurations. LibreQoS has two files.
///
/// # Errors
/// A line is none that the format has, or a value is none that `tc` takes; there is nothing to
/// import.
pub fn import(sources: &[Source<'_>], options: &Options) -> Result<Imported, ImportError> {
    let mut read = Read::default();
    let mut libreqos = libreqos::Files::default();
    for source in sources {
        match Format::of(source.text) {
            Format::Json if libreqos.take_network(source)? => {}
            Format::Json => json::read(source, &mut read)?,
            Format::ShapedDevices => libreqos.take_devices(source)?,
            Format::Uci => sqm::read(source, &mut read)?,
            Format::Script => script::read(source, options, &mut read),
        }
    }
    libreqos.read(options, &mut read)?;
    let file = sources.first().map_or("", |source| source.name);
    let devices = tree::build(&mut read)?;
    scenario::write(file, devices, read, options)
}

/// The formats of files.
enum Format {
    Script,
    Json,
    ShapedDevices,
    Uci,
}

impl Format {
    fn of(text: &str) -> Format {
        let text = text.trim_start_matches(['\u{feff}', ' ', '\t', '\r', '\n']);
        let lines = || text.lines().map(str::trim_start);
        if text.starts_with(['[', '{']) && !lines().next().is_some_and(|line| line.starts_with("[ ")) {
            Format::Json
        } else if lines().next().is_some_and(|line| line.contains("Circuit ID")) {
            Format::ShapedDevices
        } else if lines().any(|line| line.starts_with("config ")) && lines().any(|line| line.starts_with("option ")) {
            Format::Uci
        } else {
            Format::Script
        }
    }
}
