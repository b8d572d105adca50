//! Overrides: `--set` arguments and the values of a sweep, put into the document before it is read.
//!
//! An override keeps the place where it was written, so that an error in it points at the argument
//! or at the axis. The section that it names must exist (`links.NAME`, `flows.ID`, `run`); below
//! it, tables are created as needed, and an unknown key is reported when the section is read.

use ackclock_sim::spec::QueueSpec;
use ackclock_tcp::Controller;

use crate::document::{Node, Table, Value, parse_value};
use crate::own::LEARNED;
use crate::quantity::OneOf;
use crate::report::{Diagnostic, Place, Report, Sources, did_you_mean, listed};
use crate::{application, command, host, link, medium, paths, topology, video};

/// Keys that take a name in place of a table with `kind`: an override of `queue.limit` turns
/// `queue = "pie"` into a table.
const NAMED: [&str; 12] = [
    "topology",
    "queue",
    "cc",
    "stack",
    "loss_detector",
    "loss",
    "medium",
    "application",
    "algorithm",
    "pacing",
    "accecn_option",
    "split",
];

/// Everything at the top of a document.
const SECTIONS: [&str; 13] = [
    "schema",
    "title",
    "run",
    "hosts",
    "links",
    "topology",
    "paths",
    "flows",
    "workloads",
    "commands",
    "record",
    "sweep",
    "expect",
];

/// The sections that a sweep may vary. All but `run` and `topology` hold several, by their names.
const VARIED: [&str; 8] = ["run", "topology", "hosts", "links", "paths", "flows", "workloads", "commands"];

/// A path into the document: keys, and indices of arrays as digits.
pub(crate) type Path = Vec<String>;

/// The wildcard for every id, or every name, of a section.
const EVERY: &str = "*";

/// A `key=value` of the command line.
pub(crate) struct Argument {
    /// The keys that it sets: several where `*` stands for ids.
    pub(crate) paths: Vec<Path>,
    pub(crate) node: Node,
    pub(crate) key_place: Place,
    pub(crate) text: String,
}

impl Argument {
    /// Reads `key=value`; what is wrong with it is reported. `name` is what errors call it.
    pub(crate) fn read(
        root: &Node,
        name: &str,
        text: &str,
        sources: &mut Sources,
        report: &Report,
    ) -> Option<Argument> {
        let source = sources.add(name, text);
        let (key, key_place, node) = pair(text, source, "links.bottleneck.delay=40ms", report)?;
        let paths = resolve(root, &split(&key), &key_place, true, report)?;
        Some(Argument { paths, node, key_place, text: text.to_owned() })
    }

    /// Puts it into the document.
    pub(crate) fn apply(&self, root: &mut Node, report: &Report) {
        for path in &self.paths {
            set(root, path, &self.key_place, self.node.clone(), report);
        }
    }
}

/// Cuts `key=value` into its key, the place of that, and the value; `example` is one. Errors are
/// reported.
pub(crate) fn pair(text: &str, source: usize, example: &str, report: &Report) -> Option<(String, Place, Node)> {
    let whole = Place::new(source, 0..text.len());
    let mut quoted = false;
    let equals = text.find(|c: char| {
        quoted ^= c == '"';
        c == '=' && !quoted
    });
    let Some(equals) = equals else {
        let error = Diagnostic::new("not an override", &whole, "found no `=`");
        report.push(error.note(format!("expected KEY=VALUE, such as {example}")));
        return None;
    };
    let node = value(&text[equals + 1..], source, equals + 1, report)?;
    Some((text[..equals].to_owned(), Place::new(source, 0..equals), node))
}

/// The value of an argument: as in TOML, or else a string, so that units need no quotes.
fn value(text: &str, source: usize, offset: usize, report: &Report) -> Option<Node> {
    let trimmed = text.trim();
    let start = offset + (text.len() - text.trim_start().len());
    let scratch = Report::default();
    if let Some(node) = parse_value(trimmed, source, start, &scratch) {
        return Some(node);
    }
    if trimmed.starts_with(['[', '{', '"', '\'']) {
        return parse_value(trimmed, source, start, report);
    }
    Some(Node::new(trimmed, Place::new(source, start..start + trimmed.len())))
}

/// Cuts a dotted path into its parts; a part in quotes may have dots.
pub(crate) fn split(text: &str) -> Path {
    let (mut parts, mut part) = (Vec::new(), String::new());
    let mut quoted = false;
    for c in text.trim().chars() {
        match c {
            '"' => quoted = !quoted,
            '.' if !quoted => parts.push(std::mem::take(&mut part)),
            c => part.push(c),
        }
    }
    parts.push(part);
    parts
}

/// The path with flow ids turned into indices, or all paths where it has `*` in place of an id;
/// `None` if what it names does not exist, which is reported at `place`. A sweep may not vary what
/// it is itself made of: `argument` is true for `--set`, which may.
pub(crate) fn resolve(
    root: &Node,
    path: &[String],
    place: &Place,
    argument: bool,
    report: &Report,
) -> Option<Vec<Path>> {
    let fail = |title: String, label: &str, note: String, help: Option<String>| {
        report.push(Diagnostic::new(title, place, label).note(note).help(help));
        None
    };
    let shown = path.join(".");
    let Value::Table(document) = &root.value else { return None };
    if path.iter().any(String::is_empty) {
        let note = "expected keys joined by dots, such as `links.bottleneck.delay`".to_owned();
        return fail(format!("`{shown}` is not a path"), "a key is empty", note, None);
    }
    let sections = if argument { &SECTIONS[..] } else { &VARIED[..] };
    if !sections.contains(&path[0].as_str()) {
        let note = format!("expected a path that starts with one of {}", listed(sections.iter().copied()));
        let help = did_you_mean(&path[0], sections.iter().copied());
        return fail(format!("`{shown}` names nothing that can be set"), "unknown section", note, help);
    }
    let section = path[0].as_str();
    let named = !["run", "topology"].contains(&section) && VARIED.contains(&section);
    if !argument && path.len() < if named { 3 } else { 2 } {
        let note = "expected the path of one key, such as `links.bottleneck.delay`".to_owned();
        return fail(format!("`{shown}` is not the path of a key"), "a whole section", note, None);
    }
    let Some(name) = path.get(1).filter(|_| named) else { return Some(vec![path.to_vec()]) };
    // The singular of a section, `flow` of `flows`.
    let one = &section[..section.len() - 1];
    let found = document.get(section).map(|entry| &entry.node);
    if name == EVERY {
        let all: Vec<Path> = every(found).into_iter().map(|name| with_name(path, name)).collect();
        let none = || fail(format!("`{shown}`: there are no {section}"), "names nothing", String::new(), None);
        return if all.is_empty() { none() } else { Some(all) };
    }
    if section == "hosts" || section == "links" {
        let tables = found.and_then(Node::table);
        if path.len() > 2 && tables.is_none_or(|tables| tables.get(name).is_none()) {
            let names: Vec<&str> = tables.iter().flat_map(|tables| tables.keys()).collect();
            let help = did_you_mean(name, names.iter().copied());
            let note = format!("the {section} are {}", listed(names));
            return fail(format!("`{shown}`: there is no {one} `{name}`"), &format!("names no {one}"), note, help);
        }
        return Some(vec![path.to_vec()]);
    }
    let items = found.and_then(Node::array).unwrap_or(&[]);
    let id = |item: &Node| item.table().and_then(|item| item.get("id")?.node.str().map(str::to_owned));
    let ids: Vec<Option<String>> = match section {
        "commands" => command::ids(items).collect(),
        _ => items.iter().map(id).collect(),
    };
    let index = match name.parse::<usize>() {
        Ok(index) => Some(index).filter(|&index| index < items.len()),
        Err(_) => ids.iter().position(|id| id.as_ref() == Some(name)),
    };
    let Some(index) = index else {
        let names = || ids.iter().flatten().map(String::as_str);
        let note = match section {
            "paths" => format!("the paths are addressed by their numbers; there are {}", items.len()),
            _ => format!("the {section} are {}", listed(names())),
        };
        let help = did_you_mean(name, names());
        return fail(format!("`{shown}`: there is no {one} `{name}`"), &format!("names no {one}"), note, help);
    };
    Some(vec![with_name(path, index.to_string())])
}

/// The names, or the numbers, of what a section has.
fn every(section: Option<&Node>) -> Vec<String> {
    match section.map(|section| &section.value) {
        Some(Value::Table(table)) => table.keys().map(str::to_owned).collect(),
        Some(Value::Array(items)) => (0..items.len()).map(|index| index.to_string()).collect(),
        _ => Vec::new(),
    }
}

fn with_name(path: &[String], name: String) -> Path {
    let mut path = path.to_vec();
    path[1] = name;
    path
}

/// Puts a value at a path; the tables between are made. Beside `kind` it also applies to a kind
/// with a table of its own, which gives the key up: what is set later wins.
pub(crate) fn set(root: &mut Node, path: &[String], key_place: &Place, node: Node, report: &Report) {
    let Some((last, parents)) = path.split_last() else { return };
    let mut at = root;
    let mut name = "";
    for part in parents {
        name_to_table(at, name);
        if let Value::Table(table) = &mut at.value
            && table.get(part).is_none()
        {
            table.set(part, key_place.clone(), Node::new(Table::default(), key_place.clone()));
        }
        at = match child(at, part) {
            Some(child) => child,
            None => return no_keys(path, part, key_place, report),
        };
        name = part;
    }
    name_to_table(at, name);
    match &mut at.value {
        Value::Table(table) => {
            let of_kinds = table.0.iter_mut().filter(|entry| has_kind(name, &entry.key));
            for entry in of_kinds {
                if let Value::Table(own) = &mut entry.node.value {
                    own.0.retain(|entry| entry.key != *last);
                }
            }
            table.set(last, key_place.clone(), node);
        }
        _ => match child(at, last) {
            Some(item) => *item = node,
            None => no_keys(path, last, key_place, report),
        },
    }
}

/// The value at a path.
pub(crate) fn at<'a>(root: &'a Node, path: &[String]) -> Option<&'a Node> {
    path.iter().try_fold(root, |at, part| match &at.value {
        Value::Table(table) => table.get(part).map(|entry| &entry.node),
        Value::Array(items) => items.get(part.parse::<usize>().ok()?),
        _ => None,
    })
}

/// Returns `true` if a table under this key may hold one of a kind's own with this name. Kinds from
/// outside are not known here.
fn has_kind(key: &str, name: &str) -> bool {
    let among: &[&OneOf<'_>] = match key {
        "queue" => return QueueSpec::by_name(name).is_some(),
        "cc" => return Controller::by_name(name).is_some() || LEARNED.contains(&name),
        "loss_detector" => &[&host::DETECTORS],
        "loss" => &[&link::LOSSES],
        "medium" => &[&medium::KINDS],
        "application" => &[&application::KINDS, &application::OVER_UDP],
        "algorithm" => &[&video::ALGORITHMS],
        "pacing" => &[&host::PACING],
        "accecn_option" => &[&host::ACC_ECN_OPTION],
        "split" => &[&paths::SPLITS],
        "topology" => &[&topology::KINDS],
        _ => &[],
    };
    among.iter().any(|kinds| kinds.names.contains(&name))
}

fn no_keys(path: &[String], part: &str, key_place: &Place, report: &Report) {
    let title = format!("`{}` cannot be set", path.join("."));
    report.push(Diagnostic::new(title, key_place, format!("there is no place for `{part}`")));
}

/// `queue = "pie"` is short for `queue = { kind = "pie" }`.
fn name_to_table(node: &mut Node, key: &str) {
    let kind = match key {
        "receiver" => "host",
        key if NAMED.contains(&key) => "kind",
        // A stack; the keys of a profile are those of its flow.
        "host" if node.str().is_some_and(|name| !host::Hosts::names().contains(&name)) => "kind",
        _ => return,
    };
    if let Value::String(_) = node.value {
        let name = std::mem::replace(&mut node.value, Value::Table(Table::default()));
        let mut table = Table::default();
        table.set(kind, node.place.clone(), Node::new(name, node.place.clone()));
        node.value = Value::Table(table);
    }
}

fn child<'a>(at: &'a mut Node, part: &str) -> Option<&'a mut Node> {
    match &mut at.value {
        Value::Table(table) => table.get_mut(part).map(|entry| &mut entry.node),
        Value::Array(items) => items.get_mut(part.parse::<usize>().ok()?),
        _ => None,
    }
}
