//! Sizes of source files: how long a file, a function and a line of comment may be. A plain scan of
//! the text, as `cargo fmt` leaves it.
//!
//! Code has files of at most 500 lines and functions of at most 70, from `fn` to the closing brace.
//! Tests (`tests.rs`, and whatever is in a directory `tests`) may have files of 800 lines and
//! functions of 100: they are lists of cases, and are read one case at a time. What is over its
//! limit is in [`LONG_FILES`] or [`LONG_FUNCTIONS`] with the reason, and leaves the list when it is
//! split.
//!
//! Lines that are comments have at most 100 columns, but for code blocks, tables, definitions of
//! links and single words (addresses), which cannot be wrapped.

use std::collections::BTreeSet;
use std::fs;
use std::path::{Path, PathBuf};

/// Directories with sources, from the root of the workspace.
const SOURCES: [&str; 7] = ["aqm", "benches", "cc", "crates", "emulator", "fuzz", "python"];

/// How many lines there may be in a file and in a function.
struct Limits {
    file: usize,
    function: usize,
}

const CODE: Limits = Limits { file: 500, function: 70 };
const TESTS: Limits = Limits { file: 800, function: 100 };

/// Columns of a line of comment.
const COMMENT: usize = 100;

/// Files that are longer, with the reason.
const LONG_FILES: &[(&str, &str)] = &[
    ("cc/src/cdg/freebsd.rs", "a port kept in the order of its source, to be read beside it"),
    ("cc/src/cdg/linux.rs", "a port kept in the order of its source, to be read beside it"),
];

/// Functions that are longer: file, name, reason.
const LONG_FUNCTIONS: &[(&str, &str, &str)] = &[
    ("aqm/tests/it/conformance.rs", "cases", "a table: one entry for each configuration"),
    ("aqm/tests/it/conformance/change.rs", "changes", "a table: one entry for each discipline"),
    ("aqm/tests/it/conformance/pie_cobalt.rs", "cases", "a table: one entry for each configuration"),
    ("aqm/tests/it/conformance/red_blue.rs", "cases", "a table: one entry for each configuration"),
    ("cc/tests/it/conformance.rs", "all", "a table: one entry for each configuration"),
];

/// Directories whose comments are held to their width.
const WRAPPED: &[&str] = &["aqm", "benches", "cc", "crates", "emulator", "python"];

/// What is over a limit, and where.
#[derive(Clone, Debug, PartialEq, Eq)]
enum Finding {
    File { path: String, lines: usize },
    Function { path: String, name: String, line: usize, lines: usize },
    Comment { path: String, line: usize, columns: usize },
}

impl std::fmt::Display for Finding {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        match self {
            Finding::File { path, lines } => write!(f, "{path}: {lines} lines"),
            Finding::Function { path, name, line, lines } => write!(f, "{path}:{line}: fn {name}: {lines} lines"),
            Finding::Comment { path, line, columns } => write!(f, "{path}:{line}: a comment of {columns} columns"),
        }
    }
}

fn limits(path: &str) -> Limits {
    let tests = path.split('/').any(|part| part == "tests" || part == "tests.rs");
    if tests { TESTS } else { CODE }
}

/// The name of the function that begins on a line, if one does.
fn function_name(line: &str) -> Option<&str> {
    let mut rest = line.trim_start();
    loop {
        if let Some(after) = rest.strip_prefix("fn ") {
            let end = after.find(|c: char| !c.is_alphanumeric() && c != '_').unwrap_or(after.len());
            return (end > 0).then(|| &after[..end]);
        }
        let (word, after) = rest.split_once(' ')?;
        let restricted = word.starts_with("pub(") && word.ends_with(')');
        if !restricted && !matches!(word, "pub" | "const" | "async" | "unsafe" | "extern" | "\"C\"") {
            return None;
        }
        rest = after;
    }
}

/// How many lines the function has that begins on the first of these: up to the closing brace at
/// the depth of its `fn`. 1 for a declaration.
fn function_lines(lines: &[&str]) -> usize {
    let opened = lines.iter().position(|line| line.ends_with(['{', '}', ';'])).unwrap_or(0);
    if !lines[opened].ends_with('{') {
        return opened + 1;
    }
    let depth = lines[0].len() - lines[0].trim_start().len();
    let closes = |line: &&str| line.len() > depth && line[..depth].trim().is_empty() && line[depth..].starts_with('}');
    opened + 1 + lines[opened + 1..].iter().position(closes).map_or(0, |end| end + 1)
}

fn functions(path: &str, lines: &[&str], found: &mut Vec<Finding>) {
    for (index, line) in lines.iter().enumerate() {
        let Some(name) = function_name(line) else { continue };
        let count = function_lines(&lines[index..]);
        if count > limits(path).function {
            found.push(Finding::Function {
                path: path.to_owned(),
                name: name.to_owned(),
                line: index + 1,
                lines: count,
            });
        }
    }
}

fn comments(path: &str, lines: &[&str], found: &mut Vec<Finding>) {
    let mut fenced = false;
    for (index, line) in lines.iter().enumerate() {
        let Some(text) = line.trim_start().strip_prefix("//") else {
            fenced = false;
            continue;
        };
        let text = text.trim_start_matches(['/', '!']);
        let indented = text.starts_with("     ");
        let text = text.trim();
        if text.starts_with("```") {
            fenced = !fenced;
        }
        let columns = line.chars().count();
        let link = text.starts_with('[') && text.split_once("]: ").is_some_and(|(_, to)| !to.contains(' '));
        let code = fenced || indented;
        if columns > COMMENT && !code && !link && !text.starts_with('|') && text.contains(' ') {
            found.push(Finding::Comment { path: path.to_owned(), line: index + 1, columns });
        }
    }
}

/// What is over its limit in a file.
fn scan(path: &str, text: &str) -> Vec<Finding> {
    let lines: Vec<&str> = text.lines().collect();
    let mut found = Vec::new();
    if lines.len() > limits(path).file {
        found.push(Finding::File { path: path.to_owned(), lines: lines.len() });
    }
    functions(path, &lines, &mut found);
    if WRAPPED.iter().any(|wrapped| Path::new(path).starts_with(wrapped)) {
        comments(path, &lines, &mut found);
    }
    found
}

/// Findings that no exception covers, and exceptions that nothing needs.
fn judge(found: &[Finding], files: &[(&str, &str)], functions: &[(&str, &str, &str)]) -> Vec<String> {
    let mut wrong = Vec::new();
    let mut used_files = BTreeSet::new();
    let mut used_functions = BTreeSet::new();
    for finding in found {
        let excepted = match finding {
            Finding::File { path, .. } => {
                used_files.insert(path.as_str());
                files.iter().any(|(file, _)| file == path)
            }
            Finding::Function { path, name, .. } => {
                used_functions.insert((path.as_str(), name.as_str()));
                functions.iter().any(|(file, function, _)| file == path && function == name)
            }
            Finding::Comment { .. } => false,
        };
        if !excepted {
            wrong.push(finding.to_string());
        }
    }
    let files = files.iter().filter(|(file, _)| !used_files.contains(file));
    wrong.extend(files.map(|(file, _)| format!("{file}: the exception is no longer needed")));
    let functions = functions.iter().filter(|(file, name, _)| !used_functions.contains(&(*file, *name)));
    wrong.extend(functions.map(|(file, name, _)| format!("{file}: fn {name}: the exception is no longer needed")));
    wrong
}

/// Every `.rs` file below a directory that is not a product of a build.
fn sources(directory: &Path, into: &mut Vec<PathBuf>) {
    let entries = fs::read_dir(directory).unwrap_or_else(|error| panic!("{}: {error}", directory.display()));
    for entry in entries {
        let path = entry.expect("a directory is listed").path();
        let name = path.file_name().unwrap_or_default().to_string_lossy().into_owned();
        if path.is_dir() {
            if name != "target" && !name.starts_with('.') {
                sources(&path, into);
            }
        } else if name.ends_with(".rs") {
            into.push(path);
        }
    }
}

#[test]
fn files_functions_and_comments_keep_to_their_sizes() {
    let root = Path::new(env!("CARGO_MANIFEST_DIR")).ancestors().nth(2).expect("the crate is two levels down");
    let mut paths = Vec::new();
    for directory in SOURCES {
        sources(&root.join(directory), &mut paths);
    }
    paths.sort();
    assert!(paths.len() > 300, "only {} files were found", paths.len());
    let mut found = Vec::new();
    for path in paths {
        let text = fs::read_to_string(&path).unwrap_or_else(|error| panic!("{}: {error}", path.display()));
        let path = path.strip_prefix(root).expect("it was found there").to_string_lossy().into_owned();
        found.extend(scan(&path, &text));
    }
    for wrapped in WRAPPED {
        assert!(root.join(wrapped).is_dir(), "{wrapped} is no directory");
    }
    let wrong = judge(&found, LONG_FILES, LONG_FUNCTIONS);
    assert!(wrong.is_empty(), "{}", wrong.join("\n"));
}

#[test]
fn every_exception_has_a_reason() {
    let reasons = LONG_FILES.iter().map(|(_, reason)| reason).chain(LONG_FUNCTIONS.iter().map(|(_, _, reason)| reason));
    for reason in reasons {
        assert!(reason.split(' ').count() > 3, "{reason:?} is no reason");
    }
}

#[test]
fn long_files_and_functions_are_found() {
    assert_eq!(scan("cc/src/a.rs", &"\n".repeat(500)), []);
    let long = "\n".repeat(501);
    assert_eq!(scan("cc/src/a.rs", &long), [Finding::File { path: "cc/src/a.rs".to_owned(), lines: 501 }]);
    assert_eq!(scan("cc/src/a/tests.rs", &long), []);
    assert_eq!(scan("cc/tests/a.rs", &long), []);

    // A signature over three lines, and a body: 3 + 67 + 1 lines.
    let body = "        1;\n".repeat(67);
    let text = format!("impl A {{\n    pub(crate) const fn a(\n        b: C,\n    ) {{\n{body}    }}\n}}\n");
    let function = Finding::Function { path: "cc/src/a.rs".to_owned(), name: "a".to_owned(), line: 2, lines: 71 };
    assert_eq!(scan("cc/src/a.rs", &text), [function]);
    assert_eq!(scan("cc/src/tests.rs", &text), []);
    assert_eq!(scan("cc/src/a.rs", &text.replacen("        1;\n", "", 1)), []);
    // Declarations end where they are.
    let text =
        format!("trait A {{\n    fn a(\n        b: C,\n    ) -> D;\n    fn b() {{}}\n{}}}\n", "    // c\n".repeat(90));
    assert_eq!(scan("cc/src/a.rs", &text), []);
}

#[test]
fn long_comments_are_found_where_they_can_be_wrapped() {
    let path = "crates/testkit/tests/a.rs";
    let long = "word ".repeat(20);
    let finding = Finding::Comment { path: path.to_owned(), line: 1, columns: 103 };
    assert_eq!(scan(path, &format!("/// {}", &long[..99])), [finding]);
    assert_eq!(scan(path, &format!("/// {}", &long[..96])), []);
    assert_eq!(scan(path, &format!("let a = 1; // {long}")), []);
    assert_eq!(scan(path, &format!("/// https://{}", "a".repeat(100))), []);
    assert_eq!(scan(path, &format!("/// | {long} |")), []);
    assert_eq!(scan(path, &format!("///     {long}")), []);
    assert_eq!(scan(path, &format!("/// ```\n/// {long}\n/// ```\n")), []);
    assert_eq!(scan("fuzz/a.rs", &format!("/// {long}")), []);
}

#[test]
fn exceptions_cover_what_needs_them_and_nothing_else() {
    let found = scan("cc/src/a.rs", &"\n".repeat(501));
    assert_eq!(judge(&found, &[], &[]), ["cc/src/a.rs: 501 lines"]);
    assert_eq!(judge(&found, &[("cc/src/a.rs", "")], &[]), Vec::<String>::new());
    let unneeded = judge(&[], &[("cc/src/a.rs", "")], &[("cc/src/a.rs", "a", "")]);
    assert_eq!(
        unneeded,
        ["cc/src/a.rs: the exception is no longer needed", "cc/src/a.rs: fn a: the exception is no longer needed"]
    );
}
