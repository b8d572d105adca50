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
mod sqm;
mod tree;
mod units;

use std::fmt;
use std::sync::Arc;

use ackclock_units::{Rate, Span};

pub use export::export;

use crate::tree::Command;

/// A file to import.
#[derive(Clone, Copy, Debug)]
pub struct Source<'a> {
    /// Its name, for errors.
    pub name: &'a str,
    /// Its contents.
    pub text: &'a str,
}

/// Settings that files do not have.
#[derive(Clone, Debug, Default)]
pub struct Options {
    /// Rate of devices that nothing shapes, of which percentages are shares. Without it, such a
    /// link has a placeholder.
    pub rate: Option<Rate>,
    /// One-way delay of links without netem. Without it, such a link has a placeholder.
    pub delay: Option<Span>,
    /// Variables of scripts.
    pub variables: Vec<(String, String)>,
}

/// An imported scenario.
#[derive(Clone, Debug)]
pub struct Imported {
    /// The scenario file, with comments.
    pub text: String,
    /// Everything that could not be carried over.
    pub left: Vec<Left>,
}

/// A line of a file.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Place {
    /// The file.
    pub file: Arc<str>,
    /// The line, from 1.
    pub line: u32,
}

impl fmt::Display for Place {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{}:{}", self.file, self.line)
    }
}

/// Something that could not be carried over.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Left {
    /// The line where it is set.
    pub place: Place,
    /// The option or command.
    pub what: String,
    /// The reason.
    pub why: String,
}

impl fmt::Display for Left {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{}: `{}`: {}", self.place, self.what, self.why)
    }
}

/// Why files cannot be imported.
#[derive(Clone, Debug, thiserror::Error)]
pub enum ImportError {
    /// A line is wrong.
    #[error("{place}: {problem}; expected {expected}")]
    Line {
        /// The line.
        place: Place,
        /// The mistake.
        problem: String,
        /// The values that may be there.
        expected: String,
    },
    /// The files have nothing that a scenario could be made of.
    #[error("{file}: found {found}; expected {expected}")]
    Nothing {
        /// The file.
        file: String,
        /// Its contents.
        found: String,
        /// The contents that it should have.
        expected: &'static str,
    },
    /// The commands are right one by one, but not together.
    #[error("{file}: the scenario of these commands is refused: {problem}")]
    Refused {
        /// The first file.
        file: String,
        /// Why.
        problem: String,
    },
}

impl ImportError {
    fn at(place: &Place, problem: impl Into<String>, expected: impl Into<String>) -> ImportError {
        ImportError::Line { place: place.clone(), problem: problem.into(), expected: expected.into() }
    }
}

/// The commands of files, and the list of what is left over.
#[derive(Debug, Default)]
struct Read {
    commands: Vec<Command>,
    left: Vec<Left>,
    /// Lines about the whole, for the head of the scenario.
    notes: Vec<String>,
}

impl Read {
    fn leave(&mut self, place: &Place, what: impl Into<String>, why: impl Into<String>) {
        self.left.push(Left { place: place.clone(), what: what.into(), why: why.into() });
    }
}

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
