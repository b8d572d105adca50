//! Errors in scripts, with their place.

use std::fmt;
use std::ops::Range;

use annotate_snippets::{AnnotationKind, Level, Renderer, Snippet};

/// Bytes of a line shown on each side of the place of an error.
const CONTEXT: usize = 100;

/// A script that cannot be read: the first place at which it is not one.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
pub struct ParseError {
    /// Where, from 1.
    pub line: u32,
    /// Where in the line, in characters, from 1.
    pub column: u32,
    /// Where, in bytes of the text.
    pub place: Range<usize>,
    /// The error, in one line.
    pub title: String,
    /// The text found there; empty where the title says it all.
    pub found: String,
    /// The alternatives; empty where there is nothing in particular.
    pub expected: String,
    /// A suggestion.
    pub help: Option<String>,
}

impl ParseError {
    /// An error at a place of `text`.
    pub(crate) fn at(text: &str, place: Range<usize>, title: impl Into<String>) -> ParseError {
        let start = floor(text, place.start);
        let before = &text[..start];
        let line_start = before.rfind('\n').map_or(0, |at| at + 1);
        let line = 1 + before.bytes().filter(|&byte| byte == b'\n').count();
        let column = 1 + before[line_start..].chars().count();
        ParseError {
            line: u32::try_from(line).unwrap_or(u32::MAX),
            column: u32::try_from(column).unwrap_or(u32::MAX),
            place: start..floor(text, place.end).max(start),
            title: title.into(),
            found: String::new(),
            expected: String::new(),
            help: None,
        }
    }

    pub(crate) fn found(mut self, found: impl Into<String>) -> ParseError {
        self.found = found.into();
        self
    }

    pub(crate) fn expected(mut self, expected: impl Into<String>) -> ParseError {
        self.expected = expected.into();
        self
    }

    pub(crate) fn help(mut self, help: impl Into<String>) -> ParseError {
        self.help = Some(help.into());
        self
    }

    /// The error with the line it is in and a caret: for a terminal if `styled`, else plain text.
    /// `name` is the file's, `text` what was parsed.
    pub fn render(&self, name: &str, text: &str, styled: bool) -> String {
        let start = floor(text, self.place.start);
        let line_start = text[..start].rfind('\n').map_or(0, |at| at + 1);
        let line_end = text[start..].find('\n').map_or(text.len(), |length| start + length);
        // A line may be the whole of a file that is no script.
        let shown_start = line_start.max(ceil(text, start.saturating_sub(CONTEXT)));
        let shown_end = line_end.min(floor(text, start.saturating_add(CONTEXT))).max(start);
        let shown = text[shown_start..shown_end].trim_end_matches('\r');
        let place_start = (start - shown_start).min(shown.len());
        let place_end =
            (floor(text, self.place.end).clamp(start, shown_end) - shown_start).clamp(place_start, shown.len());
        let label = match (self.found.is_empty(), self.expected.is_empty()) {
            (true, true) => String::new(),
            (true, false) => format!("expected {}", self.expected),
            (false, true) => format!("found {}", self.found),
            (false, false) => format!("expected {}, found {}", self.expected, self.found),
        };
        let snippet = Snippet::source(shown)
            .path(name)
            .line_start(self.line as usize)
            .annotation(AnnotationKind::Primary.span(place_start..place_end).label(label.as_str()));
        let mut group = Level::ERROR.primary_title(self.title.as_str()).element(snippet);
        if let Some(help) = &self.help {
            group = group.element(Level::HELP.message(help.as_str()));
        }
        let renderer = if styled { Renderer::styled() } else { Renderer::plain() };
        renderer.render(&[group]).to_string()
    }
}

impl fmt::Display for ParseError {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "line {}, column {}: {}", self.line, self.column, self.title)?;
        if !self.expected.is_empty() {
            write!(f, ": expected {}", self.expected)?;
        }
        if !self.found.is_empty() {
            write!(f, "{} found {}", if self.expected.is_empty() { ":" } else { "," }, self.found)?;
        }
        Ok(())
    }
}

/// The last boundary of characters not after `at`.
fn floor(text: &str, at: usize) -> usize {
    text.floor_char_boundary(at)
}

/// The first boundary of characters not before `at`.
fn ceil(text: &str, at: usize) -> usize {
    text.ceil_char_boundary(at)
}
