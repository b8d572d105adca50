//! `docs/metrics.md` is made of the comments in `src/summary.rs` and below, and is up to date.
//!
//! `ACKCLOCK_WRITE_DOCS=1 cargo test -p ackclock-trace --test metrics_page` writes it.

use std::collections::{BTreeMap, VecDeque};
use std::fmt::Write;
use std::fs;
use std::path::{Path, PathBuf};

/// A struct of the summary.
#[derive(Debug, Default)]
struct Part {
    doc: String,
    fields: Vec<Field>,
}

#[derive(Debug)]
struct Field {
    name: String,
    doc: String,
    kind: String,
    /// Whether its keys stand in place of it.
    is_flat: bool,
}

const HEAD: &str = "\
# Metrics

What the JSON of a run has: an object for each run, in `summary.json`, or one in each line of `summary.jsonl` and of `--json`.
Keys are only ever added. The last part of a name tells the unit: `_s` seconds, `_ms` milliseconds, `_bps` bits per second,
`_bytes` bytes; other numbers count. Paths of numbers in it are the metrics of expectations, `compare`, `report` and
`sweep.repeat.until`: `flows.reno.0.rtt_ms.p50`, `links.bottleneck.forward.dropped.early`, `fairness_jain`. `ackclock list metrics`
prints them.

A run of a sweep that failed has `failed` and `error`, and the last run of a sweep `expectations`: what became of each
([expectations](expectations.md)).

This page is generated from the source.
";

/// A line of a comment, with links of Rust's documentation as plain code.
fn plain(line: &str) -> String {
    let text = line.trim_start().trim_start_matches("///").trim();
    let mut out = String::new();
    let mut rest = text;
    while let Some((before, after)) = rest.split_once("[`") {
        let Some((name, behind)) = after.split_once("`]") else { break };
        let name = name.rsplit("::").next().unwrap_or(name);
        let _ = write!(out, "{before}`{name}`");
        // The target of a link with one.
        rest = behind.strip_prefix('(').and_then(|target| target.split_once(')')).map_or(behind, |(_, rest)| rest);
    }
    out + rest
}

/// The structs of a source.
fn read(source: &str, parts: &mut BTreeMap<String, Part>) {
    let (mut doc, mut is_flat, mut open): (Vec<String>, bool, Option<String>) = (Vec::new(), false, None);
    for line in source.lines() {
        let code = line.trim();
        if code.starts_with("///") {
            doc.push(plain(code));
            continue;
        }
        if code.starts_with("#[") {
            is_flat |= code.contains("flatten");
            continue;
        }
        let text = std::mem::take(&mut doc).join(" ");
        if let Some(name) = code.strip_prefix("pub struct ").filter(|rest| rest.ends_with('{')) {
            let name = name.split([' ', '<']).next().unwrap_or_default().to_owned();
            parts.insert(name.clone(), Part { doc: text, fields: Vec::new() });
            open = Some(name);
        } else if code == "}" {
            open = None;
        } else if let (Some(part), Some((name, kind))) = (
            open.as_ref().and_then(|open| parts.get_mut(open)),
            code.strip_prefix("pub ").and_then(|f| f.split_once(": ")),
        ) {
            let kind = kind.trim_end_matches(',').to_owned();
            part.fields.push(Field { name: name.to_owned(), doc: text, kind, is_flat });
        }
        is_flat = false;
    }
}

/// What of a type is in the angle brackets of a name.
fn within<'t>(kind: &'t str, name: &str) -> Option<&'t str> {
    kind.strip_prefix(name)?.strip_prefix('<')?.strip_suffix('>')
}

/// The name of a section.
fn title(part: &str) -> &str {
    part.strip_suffix("Summary").filter(|rest| !rest.is_empty()).unwrap_or(if part == "Summary" { "Run" } else { part })
}

/// What a value is, and the struct that it has.
fn value(kind: &str, parts: &BTreeMap<String, Part>) -> (String, Option<String>) {
    if let Some(inner) = within(kind, "Option").or_else(|| within(kind, "Box")) {
        return value(inner, parts);
    }
    if let Some(inner) = within(kind, "Vec") {
        let (text, part) = value(inner, parts);
        return (format!("list of {text}"), part);
    }
    if let Some((_, inner)) = within(kind, "BTreeMap").and_then(|inner| inner.split_once(", ")) {
        let (text, part) = value(inner, parts);
        return (format!("{text} by name"), part);
    }
    if parts.contains_key(kind) {
        let name = title(kind);
        return (format!("[{name}](#{})", name.to_lowercase()), Some(kind.to_owned()));
    }
    let text = match kind {
        "bool" => "true or false",
        "f64" | "u64" | "u32" | "u16" | "u8" | "usize" | "i64" | "Span" => "number",
        "P" | "Value" | "Map<String, Value>" => "object",
        kind if kind.contains("str") || kind.contains("String") || kind == "Name" => "text",
        kind => kind,
    };
    (text.to_owned(), None)
}

/// The rows of a struct; those that it refers to are added to `due`.
fn rows(of: &str, parts: &BTreeMap<String, Part>, due: &mut VecDeque<String>, out: &mut String) {
    for field in &parts[of].fields {
        let (text, part) = value(&field.kind, parts);
        match part {
            Some(part) if field.is_flat => {
                rows(&part, parts, due, out);
                continue;
            }
            Some(part) => due.push_back(part),
            None => {}
        }
        assert!(!field.doc.is_empty(), "{of}.{} has no comment", field.name);
        let _ = writeln!(out, "| `{}` | {text} | {} |", field.name, field.doc.replace('|', "\\|"));
    }
}

fn page(sources: &[String]) -> String {
    let mut parts = BTreeMap::new();
    for source in sources {
        read(source, &mut parts);
    }
    let mut out = HEAD.to_owned();
    let (mut due, mut done) = (VecDeque::from(["Summary".to_owned()]), Vec::new());
    while let Some(part) = due.pop_front() {
        if done.contains(&part) {
            continue;
        }
        let _ = write!(out, "\n## {}\n\n{}\n\n| key | value | |\n|---|---|---|\n", title(&part), parts[&part].doc);
        rows(&part, &parts, &mut due, &mut out);
        done.push(part);
    }
    out
}

fn sources() -> Vec<String> {
    let root = Path::new(env!("CARGO_MANIFEST_DIR")).join("src");
    let mut files: Vec<PathBuf> =
        fs::read_dir(root.join("summary")).expect("a folder").map(|entry| entry.expect("an entry").path()).collect();
    files.push(root.join("summary.rs"));
    files.sort();
    files.iter().map(|file| fs::read_to_string(file).expect("a source")).collect()
}

#[test]
fn the_page_of_metrics_is_up_to_date() {
    let path = Path::new(env!("CARGO_MANIFEST_DIR")).join("../../docs/metrics.md");
    let page = page(&sources());
    if std::env::var_os("ACKCLOCK_WRITE_DOCS").is_some() {
        fs::write(&path, &page).expect("it can be written");
    }
    let found = fs::read_to_string(&path).unwrap_or_default();
    assert!(found == page, "docs/metrics.md is not what the source says: ACKCLOCK_WRITE_DOCS=1 writes it");
}

#[test]
fn a_struct_becomes_a_table() {
    let lines = [
        "/// All of [`Inner`].",
        "pub struct Summary<P> {",
        "    /// How many.",
        "    pub count: u64,",
        "    /// Its `a` and",
        "    /// its b.",
        "    #[serde(default)]",
        "    pub inner: Option<Inner>,",
        "    /// Not seen.",
        "    #[serde(flatten)]",
        "    pub flat: Flat,",
        "}",
        "/// One.",
        "pub struct Inner {",
        "    /// In ms.",
        "    pub delay_ms: f64,",
        "}",
        "pub struct Flat {",
        "    /// Flat out.",
        "    pub rate_bps: Option<f64>,",
        "}",
    ];
    let page = page(&[lines.join("\n")]);
    let expected = "\n## Run\n\nAll of `Inner`.\n\n| key | value | |\n|---|---|---|\n| `count` | number | How many. |\n\
                    | `inner` | [Inner](#inner) | Its `a` and its b. |\n| `rate_bps` | number | Flat out. |\n\
                    \n## Inner\n\nOne.\n\n| key | value | |\n|---|---|---|\n| `delay_ms` | number | In ms. |\n";
    assert_eq!(page.strip_prefix(HEAD), Some(expected));
}
