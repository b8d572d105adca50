//! What is read of files: lines, commands, and everything that is left over.

use std::fmt;
use std::sync::Arc;

use ackclock_units::{Rate, Span};

use crate::units::Expected;

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
    pub(crate) fn at(place: &Place, problem: impl Into<String>, expected: impl Into<String>) -> ImportError {
        ImportError::Line { place: place.clone(), problem: problem.into(), expected: expected.into() }
    }
}

/// The error of a value.
pub(crate) fn wrong(place: &Place, option: &str, text: &str, expected: Expected) -> ImportError {
    ImportError::at(place, format!("`{option} {text}`"), expected)
}

/// The object of a command.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Object {
    Qdisc,
    Class,
    Filter,
}

impl Object {
    /// The object of a name, which may be cut short.
    pub(crate) fn by_name(name: &str) -> Option<Object> {
        let known = [("qdisc", Object::Qdisc), ("class", Object::Class), ("filter", Object::Filter)];
        known.into_iter().find(|(known, _)| !name.is_empty() && known.starts_with(name)).map(|(_, object)| object)
    }
}

/// The effect of a command.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Action {
    Add,
    Replace,
    Change,
    Delete,
}

impl Action {
    /// The action of a name, which may be cut short; `None` for one that changes nothing.
    pub(crate) fn by_name(name: &str) -> Option<Action> {
        let known = [
            ("add", Action::Add),
            ("replace", Action::Replace),
            ("change", Action::Change),
            ("link", Action::Replace),
            ("delete", Action::Delete),
        ];
        known.into_iter().find(|(known, _)| !name.is_empty() && known.starts_with(name)).map(|(_, action)| action)
    }
}

/// A command of `tc`.
#[derive(Clone, Debug)]
pub(crate) struct Command {
    pub(crate) place: Place,
    pub(crate) object: Object,
    pub(crate) action: Action,
    /// The words behind the action.
    pub(crate) words: Vec<String>,
    /// The name of a class, from a format that has names.
    pub(crate) name: Option<String>,
}

/// The commands of files, and the list of what is left over.
#[derive(Debug, Default)]
pub(crate) struct Read {
    pub(crate) commands: Vec<Command>,
    pub(crate) left: Vec<Left>,
    /// Lines about the whole, for the head of the scenario.
    pub(crate) notes: Vec<String>,
}

impl Read {
    pub(crate) fn leave(&mut self, place: &Place, what: impl Into<String>, why: impl Into<String>) {
        self.left.push(Left { place: place.clone(), what: what.into(), why: why.into() });
    }
}
