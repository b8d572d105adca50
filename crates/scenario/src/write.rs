//! Writes a document back as TOML.

use std::fmt::Write;

use crate::document::{Entry, Node, Table, Value, quoted};

/// The document as TOML: scalars first, then a section for each table of the top levels; what is
/// nested deeper stays on one line.
pub(crate) fn document(root: &Table) -> String {
    document_with(root, |_, _, _| None)
}

/// The document with other items in place of those of arrays, which are identified by the key of
/// the array and their numbers.
pub(crate) fn document_with(root: &Table, other: impl Fn(&str, usize, &Node) -> Option<Node>) -> String {
    let mut out = String::new();
    let (tables, scalars): (Vec<&Entry>, Vec<&Entry>) = root.0.iter().partition(|entry| is_section(&entry.node));
    for entry in scalars {
        line(&mut out, entry);
    }
    for entry in tables {
        match &entry.node.value {
            Value::Array(items) => {
                for (index, item) in items.iter().enumerate() {
                    let other = other(&entry.key, index, item);
                    let table = other.as_ref().unwrap_or(item).table();
                    section(&mut out, &format!("[[{}]]", key(&entry.key)), table.unwrap_or(&Table(Vec::new())));
                }
            }
            Value::Table(table) if entry.key == "links" || entry.key == "hosts" => {
                for named in &table.0 {
                    let header = format!("[{}.{}]", entry.key, key(&named.key));
                    section(&mut out, &header, named.node.table().unwrap_or(&Table(Vec::new())));
                }
            }
            Value::Table(table) => section(&mut out, &format!("[{}]", key(&entry.key)), table),
            _ => {}
        }
    }
    out
}

fn is_section(node: &Node) -> bool {
    match &node.value {
        Value::Table(_) => true,
        Value::Array(items) => !items.is_empty() && items.iter().all(|item| item.table().is_some()),
        _ => false,
    }
}

fn section(out: &mut String, header: &str, table: &Table) {
    let _ = write!(out, "\n{header}\n");
    for entry in &table.0 {
        // One line for each axis: a grid on a single line cannot be read.
        match &entry.node.value {
            Value::Table(axes) if header == "[sweep]" && ["axes", "ranges"].contains(&entry.key.as_str()) => {
                for axis in &axes.0 {
                    let _ = writeln!(out, "{}.{} = {}", entry.key, key(&axis.key), inline(&axis.node));
                }
            }
            _ => line(out, entry),
        }
    }
}

fn line(out: &mut String, entry: &Entry) {
    let _ = writeln!(out, "{} = {}", key(&entry.key), inline(&entry.node));
}

/// A value on one line.
pub(crate) fn inline(node: &Node) -> String {
    match &node.value {
        Value::String(text) => quoted(text),
        Value::Integer(number) => number.to_string(),
        // The shortest text that reads back as the same number; it always has a point or an
        // exponent.
        Value::Float(number) => format!("{number:?}"),
        Value::Boolean(value) => value.to_string(),
        Value::Datetime(text) => text.clone(),
        Value::Array(items) => format!("[{}]", items.iter().map(inline).collect::<Vec<_>>().join(", ")),
        Value::Table(table) if table.0.is_empty() => "{}".to_owned(),
        Value::Table(table) => {
            let entries: Vec<String> =
                table.0.iter().map(|entry| format!("{} = {}", key(&entry.key), inline(&entry.node))).collect();
            format!("{{ {} }}", entries.join(", "))
        }
    }
}

fn key(name: &str) -> String {
    let bare = !name.is_empty() && name.bytes().all(|byte| byte.is_ascii_alphanumeric() || b"_-".contains(&byte));
    if bare { name.to_owned() } else { quoted(name) }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::document::parse_document;
    use crate::report::Report;

    #[test]
    fn what_is_written_is_read_back() {
        let text = "schema = 1\nodd = [1, 1e-7, 1e300, true, \"a\\u0001\\\"\\\\\\n\", [], {}]\n\
                    [run]\n\"dotted.key\" = { a = { b = 1 } }\n[links.one]\nx = 1\n[[flows]]\nid = \"a\"\n[[flows]]\nid = \"b\"\n";
        let first = parse_document(text, 0, &Report::default()).unwrap();
        let written = document(first.table().unwrap());
        let second = parse_document(&written, 0, &Report::default()).unwrap();
        assert!(first.same(&second), "{written}");
        assert_eq!(document(second.table().unwrap()), written);
    }
}
