//! The usability of code blocks in pages: the flags of commands exist, the scenarios that they name
//! accept the settings, and the keys in parts of scenarios are keys.

use std::collections::BTreeSet;
use std::fs;
use std::path::{Path, PathBuf};

use crate::book::pages;
use crate::common::{Said, ackclock};

fn root() -> PathBuf {
    Path::new(env!("CARGO_MANIFEST_DIR")).join("../..")
}

/// The program's names in pages; with an example of it or in Python it is another program.
const CALLS: [&str; 3] = ["ackclock", "target/release/ackclock", "cargo run --release --"];

/// The arguments of the commands in the blocks of code of a page, one list for each.
fn commands(page: &str) -> Vec<Vec<String>> {
    let mut in_code = false;
    let mut found = Vec::new();
    let mut lines = page.lines();
    while let Some(line) = lines.next() {
        in_code ^= line.starts_with("```");
        let code = if in_code { Some(line) } else { line.strip_prefix("    ") };
        let Some(rest) = code.and_then(|code| CALLS.iter().find_map(|call| code.strip_prefix(call)?.strip_prefix(' ')))
        else {
            continue;
        };
        let mut command = rest.to_owned();
        while let Some(begun) = command.strip_suffix('\\') {
            command = format!("{begun}{}", lines.next().unwrap_or_default());
        }
        found.push(words(&command));
    }
    found
}

/// The words of a command as a shell takes them, up to its end or a redirection. A variable at the
/// beginning of a word is 1.
fn words(command: &str) -> Vec<String> {
    let mut words: Vec<String> = Vec::new();
    let (mut quote, mut word): (Option<char>, Option<String>) = (None, None);
    for c in command.chars().chain([' ']) {
        match (quote, c) {
            (Some(open), _) if open == c => quote = None,
            (None, '\'' | '"') => {
                quote = Some(c);
                word.get_or_insert_default();
            }
            (None, ' ') => words.extend(word.take()),
            (None, '#' | '>' | '<' | '|' | ';' | '&') if word.is_none() => break,
            _ => word.get_or_insert_default().push(c),
        }
    }
    let filled = |word: String| match word.strip_prefix('$') {
        Some(name) => format!("1{}", name.trim_start_matches(|c: char| c.is_ascii_alphanumeric() || c == '_')),
        None => word,
    };
    words.into_iter().map(filled).collect()
}

/// The settings in a command for a scenario.
fn set(command: &[String]) -> Vec<&String> {
    command.windows(2).filter(|pair| pair[0] == "--set").map(|pair| &pair[1]).collect()
}

fn said(arguments: &[&str]) -> Said {
    ackclock().current_dir(root()).args(arguments).output().expect("it runs").into()
}

#[test]
fn words_are_those_of_a_shell() {
    let page = "text\n\n    ackclock f.toml --set 'a={ b = \"c\" }' \\\n      --out \"$OUT/a\"  # why\n\n\
                ```\nackclock schema > file\n```\n\n      ackclock list  names\n";
    assert_eq!(
        commands(page),
        [vec!["f.toml", "--set", "a={ b = \"c\" }", "--out", "1/a"], vec!["schema"]]
            .map(|command| command.into_iter().map(str::to_owned).collect::<Vec<_>>())
    );
}

/// The pages with commands and parts of scenarios.
fn files() -> Vec<PathBuf> {
    let mut files = vec![root().join("README.md"), root().join("crates/cli/README.md")];
    files.extend(["docs", "scenarios"].iter().flat_map(|folder| pages(&root().join(folder))));
    files
}

#[test]
fn commands_in_pages_are_taken() {
    let (mut count, mut wrong) = (0, Vec::new());
    for file in files() {
        for command in commands(&fs::read_to_string(&file).expect("a page")) {
            count += 1;
            let mut fails = |said: Said| {
                let why = said.err.lines().take(2).collect::<Vec<_>>().join(" ");
                if said.status != 0 {
                    wrong.push(format!("{}: {}: {why}", file.display(), command.join(" ")));
                }
            };
            // Flags before it are read, and nothing is run. A request of `ctl` may begin with `--`.
            let own = command.iter().take_while(|word| *word != "--").map(String::as_str);
            let own = own.take(if command[0] == "ctl" { 1 } else { usize::MAX });
            fails(said(&own.chain(["--help"]).collect::<Vec<_>>()));
            let scenario = command.iter().find(|word| word.starts_with("scenarios/") && word.ends_with(".toml"));
            if let Some(scenario) = scenario {
                let mut check = vec!["check", scenario];
                check.extend(set(&command).into_iter().flat_map(|set| ["--set", set.as_str()]));
                fails(said(&check));
            }
        }
    }
    assert!(count > 80, "only {count} were found");
    assert!(wrong.is_empty(), "{wrong:#?}");
}

/// Keys of axes and ranges of a sweep, which the pages of keys leave to that of sweeps, and kinds
/// of queues as tables of their parameters.
const FURTHER: [&str; 5] = ["label", "value", "values", "scale", "pie"];

/// The parts of the keys in a block of TOML, without ids of links, hosts and classes, quoted keys,
/// values.
fn keys(block: &str) -> Vec<String> {
    let mut found = Vec::new();
    let mut add = |path: &str| {
        let mut before = "";
        for (at, part) in path.split('.').map(str::trim).enumerate() {
            let is_id = before == "classes" || at == 1 && ["links", "hosts"].contains(&before);
            if !is_id {
                found.push(part.to_owned());
            }
            before = part;
        }
    };
    // The keys of this table are ids.
    let mut is_classes = false;
    for line in block.lines() {
        // Strings are every second part.
        let code: Vec<&str> = line.split('"').step_by(2).collect();
        let code = code.join("\"");
        let code = code.split('#').next().unwrap_or_default().trim();
        if code.starts_with('[') && code.ends_with(']') && !code.contains(['=', ',', '"']) {
            let table = code.trim_matches(['[', ']']);
            is_classes = table.ends_with(".classes") || table.ends_with(".stages");
            add(table);
            continue;
        }
        let ends: Vec<&str> = code.split('=').collect();
        for before in ends[..ends.len() - 1].iter().skip(usize::from(is_classes)) {
            let key = before.rsplit(['{', ',', '[']).next().unwrap_or_default().trim();
            if !key.is_empty() && !key.contains(['"', ' ', '}', ']']) {
                add(key);
            }
        }
    }
    found
}

#[test]
fn keys_are_those_of_a_block() {
    let block = "[links.up.reverse]\nqueue = { kind = \"x = 1\", pie.target = \"5ms\" } # no = key\n\"a.b\" = [1, 2]\n";
    assert_eq!(keys(block), ["links", "reverse", "queue", "kind", "pie", "target"]);
    let classes = "[links.up.queue.classes]\nweb = { rate = \"1mbit\" }\n[links.up.queue.classes.mail]\nprio = 1\n";
    assert_eq!(keys(classes), ["links", "queue", "classes", "rate", "links", "queue", "classes", "prio"]);
}

#[test]
fn parts_of_scenarios_have_keys_that_exist() {
    let rows = ["keys", "parameters", "hosts", "kernel"].map(|page| {
        fs::read_to_string(root().join(format!("docs/{page}.md"))).unwrap_or_else(|error| panic!("{page}: {error}"))
    });
    let rows = rows.iter().flat_map(|page| page.lines());
    let rows = rows.filter_map(|line| line.strip_prefix("| `").or(line.strip_prefix("- `"))?.split_once('`'));
    let parts = rows.flat_map(|(path, _)| path.split('.')).map(|part| part.trim_end_matches("[]"));
    let known: BTreeSet<&str> = parts.chain(FURTHER).collect();
    let (mut count, mut wrong) = (0, Vec::new());
    for file in files() {
        let page = fs::read_to_string(&file).expect("a page");
        for block in page.split("```toml\n").skip(1).filter_map(|rest| rest.split_once("```")) {
            count += 1;
            let unknown = keys(block.0).into_iter().filter(|key| !known.contains(key.as_str()));
            wrong.extend(unknown.map(|key| format!("{}: {key}", file.display())));
        }
    }
    assert!(count > 20, "only {count} were found");
    assert!(wrong.is_empty(), "{wrong:#?}");
}
