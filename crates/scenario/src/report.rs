//! Errors that point at their place: sources, diagnostics and their rendering.

use std::cell::RefCell;
use std::fmt;
use std::ops::Range;

use annotate_snippets::{AnnotationKind, Group, Level, Renderer, Snippet};

/// Most errors shown of one scenario; the rest is counted.
const MAX_SHOWN: usize = 20;

/// Most errors kept: each new one is compared with all of them.
const MAX_KEPT: usize = 1000;

/// Most names that are listed or searched for a near miss.
const MAX_NAMES: usize = 1000;

/// The longest text of an error, in bytes; what is longer is cut in its middle. A name may be as
/// long as the file.
const MAX_TEXT: usize = 400;

/// The longest note about expected values, which may be a list of names.
const MAX_NOTE: usize = 20_000;

/// The longest of these names.
const MAX_NAME: usize = 100;

/// Where something was written: a source (the file, or one `--set` argument) and the bytes in it.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) struct Place {
    pub(crate) source: usize,
    pub(crate) span: Range<usize>,
}

impl Place {
    pub(crate) fn new(source: usize, span: Range<usize>) -> Place {
        Place { source, span }
    }

    /// For sorting: `Range` has no order of its own.
    fn key(&self) -> (usize, usize, usize) {
        (self.source, self.span.start, self.span.end)
    }
}

/// One error.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) struct Diagnostic {
    /// The error, in one line.
    pub(crate) title: String,
    pub(crate) place: Place,
    /// The found value, next to the caret.
    pub(crate) label: String,
    /// The expected values, and other facts.
    pub(crate) notes: Vec<String>,
    /// A suggestion.
    pub(crate) help: Option<String>,
}

impl Diagnostic {
    pub(crate) fn new(title: impl Into<String>, place: &Place, label: impl Into<String>) -> Diagnostic {
        let (title, label) = (cut(title.into(), MAX_TEXT), cut(label.into(), MAX_TEXT));
        Diagnostic { title, place: place.clone(), label, notes: Vec::new(), help: None }
    }

    pub(crate) fn note(mut self, note: impl Into<String>) -> Diagnostic {
        self.notes.push(cut(note.into(), MAX_NOTE));
        self
    }

    pub(crate) fn help(mut self, help: Option<String>) -> Diagnostic {
        self.help = help.map(|help| cut(help, MAX_TEXT));
        self
    }
}

/// Where reading puts its errors: it goes on after most of them, so that several are shown at once.
#[derive(Debug, Default)]
pub(crate) struct Report {
    errors: RefCell<Vec<Diagnostic>>,
}

impl Report {
    /// Adds an error unless the same one is there already: every point of a sweep finds the same
    /// errors again.
    pub(crate) fn push(&self, error: Diagnostic) {
        let mut errors = self.errors.borrow_mut();
        if errors.len() < MAX_KEPT && !errors.contains(&error) {
            errors.push(error);
        }
    }

    pub(crate) fn into_errors(self) -> Vec<Diagnostic> {
        self.errors.into_inner()
    }

    pub(crate) fn len(&self) -> usize {
        self.errors.borrow().len()
    }

    pub(crate) fn is_full(&self) -> bool {
        self.len() > MAX_SHOWN
    }

    /// Returns `true` if no further error is kept.
    pub(crate) fn is_closed(&self) -> bool {
        self.len() >= MAX_KEPT
    }

    /// Returns the value, if nothing was reported on the way.
    pub(crate) fn finish<T>(self, sources: Sources, read: Option<T>) -> Result<T, ScenarioError> {
        let mut errors = self.errors.into_inner();
        match read {
            Some(read) if errors.is_empty() => Ok(read),
            _ => {
                errors.sort_by_key(|error| error.place.key());
                Err(ScenarioError { errors, sources })
            }
        }
    }
}

/// The texts that a scenario is made of.
#[derive(Clone, Debug, Default)]
pub(crate) struct Sources(Vec<(String, String)>);

impl Sources {
    /// Adds a text and returns its number.
    pub(crate) fn add(&mut self, name: impl Into<String>, text: impl Into<String>) -> usize {
        self.0.push((name.into(), text.into()));
        self.0.len() - 1
    }
}

/// One error of a scenario, for programs that show it in their own way.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct ReportedProblem<'a> {
    /// The error, in one line.
    pub title: &'a str,
    /// The file, or what stands for an argument.
    pub source: &'a str,
    /// The line in it, from 1.
    pub line: usize,
    /// The character in the line, from 1.
    pub column: usize,
    /// The found value.
    pub found: &'a str,
    /// The expected values, and other facts.
    pub notes: &'a [String],
    /// A suggestion.
    pub help: Option<&'a str>,
}

/// A scenario that cannot be run, with everything that is wrong with it.
#[derive(Clone, Debug, thiserror::Error)]
pub struct ScenarioError {
    errors: Vec<Diagnostic>,
    sources: Sources,
}

impl ScenarioError {
    /// The errors with their places in the file: for a terminal if `styled`, else plain text.
    pub fn render(&self, styled: bool) -> String {
        let renderer = if styled { Renderer::styled() } else { Renderer::plain() };
        let shown: Vec<String> = self.errors.iter().take(MAX_SHOWN).map(|error| self.one(&renderer, error)).collect();
        let mut text = shown.join("\n\n");
        if let Some(hidden) = self.errors.len().checked_sub(MAX_SHOWN).filter(|&n| n > 0) {
            let least = if self.errors.len() < MAX_KEPT { "" } else { "at least " };
            text.push_str(&format!("\n\nand {least}{hidden} more"));
        }
        text
    }

    /// The errors, in the order of their places.
    pub fn problems(&self) -> impl Iterator<Item = ReportedProblem<'_>> {
        self.errors.iter().map(|error| {
            let (name, text) = &self.sources.0[error.place.source];
            let before = &text[..visible(text, error.place.span.clone()).start];
            let line = before.rfind('\n').map_or(0, |at| at + 1);
            ReportedProblem {
                title: &error.title,
                source: name,
                line: before.matches('\n').count() + 1,
                column: before[line..].chars().count() + 1,
                found: &error.label,
                notes: &error.notes,
                help: error.help.as_deref(),
            }
        })
    }

    /// The errors on a line, without their places: for a text that is a line itself.
    pub fn on_a_line(&self) -> String {
        let one = |error: &Diagnostic| {
            // Where nothing says what was expected, what was found says more than where.
            let label = error.notes.is_empty().then_some(&error.label);
            let parts = [&error.title].into_iter().chain(label).chain(&error.notes).chain(&error.help);
            let parts = parts.map(String::as_str);
            parts.collect::<Vec<_>>().join("; ").replace(char::is_control, " ")
        };
        self.errors.iter().take(MAX_SHOWN).map(one).collect::<Vec<_>>().join(". ")
    }

    fn one(&self, renderer: &Renderer, error: &Diagnostic) -> String {
        let (name, text) = &self.sources.0[error.place.source];
        let span = visible(text, error.place.span.clone());
        let snippet = Snippet::source(text.as_str())
            .path(name.as_str())
            .annotation(AnnotationKind::Primary.span(span).label(error.label.as_str()));
        let mut group = Level::ERROR.primary_title(error.title.as_str()).element(snippet);
        for note in &error.notes {
            group = group.element(Level::NOTE.message(note.as_str()));
        }
        if let Some(help) = &error.help {
            group = group.element(Level::HELP.message(help.as_str()));
        }
        let groups: [Group<'_>; 1] = [group];
        renderer.render(&groups).to_string()
    }
}

impl fmt::Display for ScenarioError {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(&self.render(false))
    }
}

/// A text of at most so many bytes, with its beginning and its end.
fn cut(text: String, most: usize) -> String {
    if text.len() <= most {
        return text;
    }
    let (from, to) = (text.floor_char_boundary(most * 3 / 4), text.ceil_char_boundary(text.len() - most / 4 + 3));
    format!("{}...{}", &text[..from], &text[to..])
}

/// Cuts a span down to its first line and to character boundaries, so that the caret stands under
/// one place.
fn visible(text: &str, span: Range<usize>) -> Range<usize> {
    let floor = |mut at: usize| {
        at = at.min(text.len());
        while !text.is_char_boundary(at) {
            at -= 1;
        }
        at
    };
    let start = floor(span.start);
    let line_end = text[start..].find('\n').map_or(text.len(), |length| start + length);
    start..floor(span.end).clamp(start, line_end)
}

/// The candidate that `found` was probably meant to be.
pub fn nearest<'a>(found: &str, candidates: impl IntoIterator<Item = &'a str>) -> Option<&'a str> {
    let lower = found.to_lowercase();
    // Two typing errors in a long word, one in a short one.
    let most = (found.chars().count() / 3).clamp(1, 3);
    candidates
        .into_iter()
        .take(MAX_NAMES)
        .map(|candidate| (distance(&lower, &candidate.to_lowercase()), candidate))
        // A name that has nothing in common is no near miss, however short.
        .filter(|&(distance, candidate)| distance <= most && distance < candidate.chars().count())
        .min_by_key(|&(distance, _)| distance)
        .map(|(_, candidate)| candidate)
}

/// Names in other programs of items that have another name here, or their nearest relative.
const ELSEWHERE: [(&str, &str); 8] = [
    ("reno", "newreno"),
    ("new_reno", "newreno"),
    ("fifo", "pfifo"),
    ("bfifo", "pfifo"),
    ("droptail", "pfifo"),
    ("drop-tail", "pfifo"),
    ("taildrop", "pfifo"),
    ("udp", "cbr"),
];

/// A line such as "did you mean `delay`?".
pub(crate) fn did_you_mean<'a>(found: &str, candidates: impl IntoIterator<Item = &'a str> + Clone) -> Option<String> {
    let known = ELSEWHERE.iter().find(|(name, _)| *name == found).map(|(_, here)| *here);
    let known = known.filter(|here| candidates.clone().into_iter().any(|candidate| candidate == *here));
    known.or_else(|| nearest(found, candidates)).map(|name| format!("did you mean `{name}`?"))
}

/// Names as a readable list: `a`, `b`, `c`.
pub(crate) fn listed<'a>(names: impl IntoIterator<Item = &'a str>) -> String {
    let names = names.into_iter().take(MAX_NAMES).map(|name| format!("`{}`", cut(name.to_owned(), MAX_NAME)));
    names.collect::<Vec<_>>().join(", ")
}

/// Insertions, deletions, substitutions and swaps of neighbours that turn one text into the other.
fn distance(a: &str, b: &str) -> usize {
    let (a, b): (Vec<char>, Vec<char>) = (a.chars().collect(), b.chars().collect());
    if a.len().abs_diff(b.len()) > 3 {
        return usize::MAX;
    }
    let mut rows: Vec<Vec<usize>> = vec![(0..=b.len()).collect()];
    for i in 1..=a.len() {
        let mut row = vec![i];
        for j in 1..=b.len() {
            let substituted = rows[i - 1][j - 1] + usize::from(a[i - 1] != b[j - 1]);
            let mut best = substituted.min(rows[i - 1][j] + 1).min(row[j - 1] + 1);
            if i > 1 && j > 1 && a[i - 1] == b[j - 2] && a[i - 2] == b[j - 1] {
                best = best.min(rows[i - 2][j - 2] + 1);
            }
            row.push(best);
        }
        rows.push(row);
    }
    rows[a.len()][b.len()]
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn near_misses_are_found_and_far_ones_are_not() {
        let names = ["rate", "delay", "queue", "overhead"];
        assert_eq!(nearest("dealy", names), Some("delay"));
        assert_eq!(nearest("Delay", names), Some("delay"));
        assert_eq!(nearest("overhaed", names), Some("overhead"));
        assert_eq!(nearest("bandwidth", names), None);
        assert_eq!(nearest("", names), None);
        assert_eq!(nearest("x", ["s", "ms"]), None);
    }

    #[test]
    fn long_texts_are_cut_between_characters() {
        assert_eq!(cut("abcdefgh".to_owned(), 8), "abcdefgh");
        assert_eq!(cut("abcdefghijklmnopqrst".to_owned(), 12), "abcdefghi...");
        for most in 12..60 {
            let short = cut("µ".repeat(1000), most);
            assert!(short.len() <= most && short.len() + 3 >= most && short.contains("..."), "{short}");
        }
    }

    #[test]
    fn problems_have_lines_and_columns_in_characters() {
        let text = "schema = 1\nlinks = { a = { rate = \"µ\", dely = 1 } }\n";
        let error = crate::Scenario::parse("a.toml", text.as_bytes(), &[]).expect_err("it is no scenario");
        let problem = error.problems().find(|problem| problem.title.contains("dely")).expect("no such key");
        // 16 characters before `rate`, and 12 from there.
        assert_eq!((problem.source, problem.line, problem.column), ("a.toml", 2, 29));
        assert!(!problem.notes.is_empty() && error.to_string().contains("a.toml:2:29"), "{error}");
    }

    #[test]
    fn a_caret_never_leaves_its_line_or_splits_a_character() {
        assert_eq!(visible("ab\ncd", 1..5), 1..2);
        assert_eq!(visible("aµ", 2..9), 1..3);
        assert_eq!(visible("a", 7..9), 1..1);
    }
}
