//! A TOML document in which every key and every value knows where it was written.
//!
//! The parser's own tree borrows from one text; sweeps and `--set` put values of several texts into
//! one tree, so it is copied into this one, whose places name the text too.

use std::fmt::Write;

use ackclock_units::{Rate, Span};
use toml::Spanned;
use toml::de::{DeTable, DeValue};

use crate::report::{Diagnostic, Place, Report};

/// A value and its place.
#[derive(Clone, Debug)]
pub(crate) struct Node {
    pub(crate) value: Value,
    pub(crate) place: Place,
}

/// A TOML value.
#[derive(Clone, Debug)]
pub(crate) enum Value {
    String(String),
    Integer(i128),
    Float(f64),
    Boolean(bool),
    /// No key takes a date; its text is kept to be shown.
    Datetime(String),
    Array(Vec<Node>),
    Table(Table),
}

/// A table in the order of its text.
#[derive(Clone, Debug, Default)]
pub(crate) struct Table(pub(crate) Vec<Entry>);

/// A key, its place and its value.
#[derive(Clone, Debug)]
pub(crate) struct Entry {
    pub(crate) key: String,
    pub(crate) key_place: Place,
    pub(crate) node: Node,
}

impl Table {
    pub(crate) fn get(&self, key: &str) -> Option<&Entry> {
        self.0.iter().find(|entry| entry.key == key)
    }

    pub(crate) fn get_mut(&mut self, key: &str) -> Option<&mut Entry> {
        self.0.iter_mut().find(|entry| entry.key == key)
    }

    pub(crate) fn keys(&self) -> impl Iterator<Item = &str> {
        self.0.iter().map(|entry| entry.key.as_str())
    }

    /// Replaces the value of a key or appends it.
    pub(crate) fn set(&mut self, key: &str, key_place: Place, node: Node) {
        match self.get_mut(key) {
            Some(entry) => (entry.key_place, entry.node) = (key_place, node),
            None => self.0.push(Entry { key: key.to_owned(), key_place, node }),
        }
    }
}

impl Node {
    pub(crate) fn new(value: impl Into<Value>, place: Place) -> Node {
        Node { value: value.into(), place }
    }

    pub(crate) fn table(&self) -> Option<&Table> {
        match &self.value {
            Value::Table(table) => Some(table),
            _ => None,
        }
    }

    pub(crate) fn array(&self) -> Option<&[Node]> {
        match &self.value {
            Value::Array(items) => Some(items),
            _ => None,
        }
    }

    pub(crate) fn str(&self) -> Option<&str> {
        match &self.value {
            Value::String(text) => Some(text),
            _ => None,
        }
    }

    /// The value as errors name it: "the integer 20".
    pub(crate) fn found(&self) -> String {
        match &self.value {
            Value::String(text) if text.chars().count() > 60 => "a long string".to_owned(),
            Value::String(text) => format!("the string {}", quoted(text)),
            Value::Integer(number) => format!("the integer {number}"),
            Value::Float(number) => format!("the number {number}"),
            Value::Boolean(value) => format!("`{value}`"),
            Value::Datetime(text) => format!("the date {text}"),
            Value::Array(_) => "an array".to_owned(),
            Value::Table(_) => "a table".to_owned(),
        }
    }

    /// Number of values, nested ones included.
    pub(crate) fn count(&self) -> u64 {
        1 + match &self.value {
            Value::Array(items) => items.iter().map(Node::count).sum(),
            Value::Table(table) => table.0.iter().map(|entry| entry.node.count()).sum(),
            _ => 0,
        }
    }

    /// Returns `true` if two values mean the same, wherever they were written; numbers are compared
    /// as numbers.
    pub(crate) fn same(&self, other: &Node) -> bool {
        self.value == other.value
    }
}

impl PartialEq for Value {
    fn eq(&self, other: &Value) -> bool {
        match (self, other) {
            (Value::String(a), Value::String(b)) | (Value::Datetime(a), Value::Datetime(b)) => a == b,
            (Value::Integer(a), Value::Integer(b)) => a == b,
            (Value::Float(a), Value::Float(b)) => a == b,
            (Value::Integer(a), Value::Float(b)) | (Value::Float(b), Value::Integer(a)) => *a as f64 == *b,
            (Value::Boolean(a), Value::Boolean(b)) => a == b,
            (Value::Array(a), Value::Array(b)) => a.len() == b.len() && a.iter().zip(b).all(|(a, b)| a.same(b)),
            (Value::Table(a), Value::Table(b)) => {
                a.0.len() == b.0.len() && a.0.iter().all(|x| b.get(&x.key).is_some_and(|y| x.node.same(&y.node)))
            }
            _ => false,
        }
    }
}

impl From<&str> for Value {
    fn from(text: &str) -> Value {
        Value::String(text.to_owned())
    }
}

impl From<bool> for Value {
    fn from(value: bool) -> Value {
        Value::Boolean(value)
    }
}

impl From<f64> for Value {
    fn from(value: f64) -> Value {
        Value::Float(value)
    }
}

macro_rules! value_from_integer {
    ($($integer:ty),*) => {$(
        impl From<$integer> for Value {
            fn from(value: $integer) -> Value {
                Value::Integer(i128::from(value))
            }
        }
    )*};
}
value_from_integer!(u16, u32, u64);

impl From<Span> for Value {
    fn from(span: Span) -> Value {
        Value::String(span.to_string())
    }
}

impl From<Rate> for Value {
    fn from(rate: Rate) -> Value {
        Value::String(rate.to_string())
    }
}

impl From<Table> for Value {
    fn from(table: Table) -> Value {
        Value::Table(table)
    }
}

/// Deepest nesting of tables by a dotted key. The parser limits brackets alone; the tree is walked
/// by recursion.
const MAX_DEPTH: usize = 100;

/// The parser frees what it built by recursion, so a key of very many parts would exhaust the stack
/// before anything here sees it: finds a run of more dots than any key needs. Dots in comments and
/// strings join nothing; these begin and end as in the parser (`toml_parser`'s lexer), also if they
/// do not end.
fn too_many_dots(text: &str) -> Option<usize> {
    let (bytes, mut at, mut dots) = (text.as_bytes(), 0, 0);
    while let Some(&byte) = bytes.get(at) {
        match byte {
            b'#' => at += bytes[at..].iter().position(|&byte| byte == b'\n').unwrap_or(bytes.len() - at) - 1,
            b'"' | b'\'' => at += string_length(&bytes[at..]) - 1,
            b'.' => dots += 1,
            b'=' | b',' | b'{' | b'}' | b'[' | b']' | b'\n' => dots = 0,
            _ => {}
        }
        if dots > 5 * MAX_DEPTH {
            return Some(at);
        }
        at += 1;
    }
    None
}

/// The length of the string that a text begins with, quotes included.
fn string_length(text: &[u8]) -> usize {
    let quote = text[0];
    let long = text.starts_with(&[quote; 3]);
    let mut at = if long { 3 } else { 1 };
    while let Some(&byte) = text.get(at) {
        let escapes = byte == b'\\' && quote == b'"';
        match byte {
            b'\n' if !long => return at,
            _ if byte == quote && !long => return at + 1,
            // Up to two quotes before the end are part of it.
            _ if long && text[at..].starts_with(&[quote; 3]) => {
                return at + text[at..].iter().take(5).take_while(|&&byte| byte == quote).count();
            }
            _ if escapes && matches!(text.get(at + 1), Some(b'\\' | b'"')) => at += 2,
            _ => at += 1,
        }
    }
    text.len()
}

fn refuse_deep(text: &str, source: usize, offset: usize, report: &Report) -> Option<()> {
    let Some(at) = too_many_dots(text) else { return Some(()) };
    let place = Place::new(source, at + offset..at + offset + 1);
    report.push(Diagnostic::new("nested too deep", &place, format!("more than {} dots", 5 * MAX_DEPTH)));
    None
}

/// Parses a document; `None` after syntax errors, which went to the report.
pub(crate) fn parse_document(text: &str, source: usize, report: &Report) -> Option<Node> {
    refuse_deep(text, source, 0, report)?;
    let (root, errors) = DeTable::parse_recoverable(text);
    syntax_errors(&errors, source, 0, text, report);
    let span = root.span();
    let before = report.len();
    let table = copy_table(root.into_inner(), source, 0, MAX_DEPTH, report);
    (errors.is_empty() && report.len() == before).then(|| Node::new(table, Place::new(source, span)))
}

/// Parses one value that starts at `offset` of its source.
pub(crate) fn parse_value(text: &str, source: usize, offset: usize, report: &Report) -> Option<Node> {
    refuse_deep(text, source, offset, report)?;
    let (value, errors) = DeValue::parse_recoverable(text);
    syntax_errors(&errors, source, offset, text, report);
    let before = report.len();
    let node = copy(value, source, offset, MAX_DEPTH, report);
    (errors.is_empty() && report.len() == before).then_some(node)
}

fn syntax_errors(errors: &[toml::de::Error], source: usize, offset: usize, text: &str, report: &Report) {
    // One mistake is often several errors to a parser that goes on.
    for error in errors.iter().take(5) {
        let span = error.span().unwrap_or(text.len()..text.len());
        let found = match text.get(span.clone()) {
            Some("") if span.start >= text.len() => "the end of the text".to_owned(),
            Some(part) if !part.is_empty() && part.len() <= 40 && !part.contains('\n') => format!("found `{part}`"),
            _ => "here".to_owned(),
        };
        let place = Place::new(source, span.start + offset..span.end + offset);
        report.push(Diagnostic::new(format!("not valid TOML: {}", error.message()), &place, found));
    }
}

fn copy(value: Spanned<DeValue<'_>>, source: usize, offset: usize, depth: usize, report: &Report) -> Node {
    let span = value.span();
    let place = Place::new(source, span.start + offset..span.end + offset);
    let value = match value.into_inner() {
        DeValue::String(text) => Value::String(text.into_owned()),
        DeValue::Integer(number) => match i128::from_str_radix(number.as_str(), number.radix()) {
            Ok(number) => Value::Integer(number),
            Err(_) => {
                report.push(Diagnostic::new("the integer is too large", &place, "more than any key accepts"));
                Value::Integer(0)
            }
        },
        DeValue::Float(number) => match number.as_str().parse() {
            Ok(number) => Value::Float(number),
            Err(_) => {
                report.push(Diagnostic::new("not a number", &place, "found here"));
                Value::Float(0.0)
            }
        },
        DeValue::Boolean(value) => Value::Boolean(value),
        DeValue::Datetime(date) => Value::Datetime(date.to_string()),
        DeValue::Array(items) if depth > 0 => {
            Value::Array(items.into_iter().map(|item| copy(item, source, offset, depth - 1, report)).collect())
        }
        DeValue::Table(table) if depth > 0 => Value::Table(copy_table(table, source, offset, depth - 1, report)),
        DeValue::Array(_) | DeValue::Table(_) => {
            report.push(Diagnostic::new("nested too deep", &place, format!("more than {MAX_DEPTH} levels")));
            Value::Boolean(false)
        }
    };
    Node { value, place }
}

fn copy_table(table: DeTable<'_>, source: usize, offset: usize, depth: usize, report: &Report) -> Table {
    let mut entries: Vec<Entry> = table
        .into_iter()
        .map(|(key, value)| {
            let span = key.span();
            let key_place = Place::new(source, span.start + offset..span.end + offset);
            let node = copy(value, source, offset, depth, report);
            Entry { key: key.into_inner().into_owned(), key_place, node }
        })
        .collect();
    // The parser sorts by name; the order of the file is the order of links and of a sweep's axes.
    entries.sort_by_key(|entry| entry.key_place.span.start);
    Table(entries)
}

/// A basic string with its quotes.
pub(crate) fn quoted(text: &str) -> String {
    let mut out = String::with_capacity(text.len() + 2);
    out.push('"');
    for c in text.chars() {
        match c {
            '"' => out.push_str("\\\""),
            '\\' => out.push_str("\\\\"),
            '\n' => out.push_str("\\n"),
            '\t' => out.push_str("\\t"),
            c if c.is_control() => {
                let _ = write!(out, "\\u{:04X}", c as u32);
            }
            c => out.push(c),
        }
    }
    out.push('"');
    out
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn dots_in_comments_and_strings_nest_nothing() {
        let dots = ".".repeat(600);
        for text in [
            format!("# it's {dots}\na = 1"),
            format!("a = \"{dots}\" # {dots}"),
            format!("a = '{dots}\\'\nb = '{dots}'"),
            format!("a = \"\"\"\n{dots}\"\" \\\"{dots}\"\"\"\"\"\nb = 2"),
            format!("a = \'\'\'{dots}\'\'\'\'\nb = 2"),
            format!("\"{dots}\" = 1"),
        ] {
            assert_eq!(too_many_dots(&text), None, "{text}");
            assert!(parse_document(&text, 0, &Report::default()).is_some(), "{text}");
        }
    }

    #[test]
    fn dots_behind_strings_that_do_not_end_do() {
        let key = vec!["a"; 600].join(".");
        for before in [
            "a = \"",
            "a = '",
            "a = \"\\",
            "a = \"\"\"\"\"\"\nx = 1",
            "a = \"\" #",
            "\"a\" . ",
            "a = \"\"\"x\\\"\"\"\"\n",
        ] {
            let text = format!("{before}\n{key} = 1");
            assert!(too_many_dots(&text).is_some(), "{text}");
            assert!(parse_document(&text, 0, &Report::default()).is_none(), "{text}");
        }
    }
}
