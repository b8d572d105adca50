//! The files for editors, shells and `man`: `ackclock schema`, `completions` and `man`.

use std::fs;
use std::path::{Path, PathBuf};
use std::process::Command;

use crate::common::{Said, ackclock, folder};
use jsonschema::Validator;
use serde_json::Value;

fn said(args: &[&str]) -> String {
    let said: Said = ackclock().args(args).output().expect("it runs").into();
    assert_eq!((said.status, said.err.as_str()), (0, ""), "{args:?}");
    said.out
}

fn schema() -> Value {
    serde_json::from_str(&said(&["schema"])).expect("JSON")
}

fn validator() -> Validator {
    jsonschema::draft7::new(&schema()).expect("a schema")
}

/// The errors of a scenario.
fn errors(validator: &Validator, toml: &str) -> Vec<String> {
    let document: Value = toml::from_str(toml).unwrap_or_else(|error| panic!("{error}: {toml}"));
    validator.iter_errors(&document).map(|error| format!("{} at {}", error, error.instance_path)).collect()
}

#[test]
fn every_scenario_is_valid() {
    let root = Path::new(env!("CARGO_MANIFEST_DIR")).join("../../scenarios");
    let validator = validator();
    let mut checked = 0;
    for folder in fs::read_dir(root).expect("a folder").flatten().map(|entry| entry.path()).filter(|path| path.is_dir())
    {
        let files = fs::read_dir(&folder).expect("a folder").flatten().map(|entry| entry.path());
        for file in files.filter(|file: &PathBuf| file.extension().is_some_and(|extension| extension == "toml")) {
            let text = fs::read_to_string(&file).expect("text");
            assert_eq!(errors(&validator, &text), Vec::<String>::new(), "{}", file.display());
            checked += 1;
        }
    }
    assert!(checked > 50, "{checked}");
    // The files from `new` and from `--show-config` are valid.
    assert_eq!(errors(&validator, &said(&["new"])), Vec::<String>::new());
    let folder = crate::common::folder("schema_shown");
    let shown = crate::common::run(&folder, crate::common::SMALL, &["--show-config"]).out;
    assert_eq!(errors(&validator, &shown), Vec::<String>::new(), "{shown}");
}

#[test]
fn mistakes_are_marked() {
    let validator = validator();
    let base = "schema = 1\n[run]\nduration = \"1s\"\n[links.wire]\nrate = \"1mbit\"\n";
    let flow = "[[flows]]\nid = \"f\"\npath = [\"wire\"]\n";
    assert_eq!(errors(&validator, &format!("{base}{flow}")), Vec::<String>::new());
    for (wrong, part) in [
        (format!("{base}dalay = \"1ms\"\n{flow}"), "dalay"),
        (format!("{base}delay = 20\n{flow}"), "/links/wire/delay"),
        (format!("{base}delay = \"soon\"\n{flow}"), "/links/wire/delay"),
        (format!("{base}queue = \"pye\"\n{flow}"), "/links/wire/queue"),
        (format!("{base}queue = {{ kind = \"pie\", taget = \"20ms\" }}\n{flow}"), "/links/wire/queue"),
        (format!("{base}loss = {{ kind = \"iid\", probability = 1.5 }}\n{flow}"), "/links/wire/loss"),
        (format!("{base}{flow}cc = \"cubik\"\n"), "/flows/0/cc"),
        (format!("{base}{flow}count = 0\n"), "/flows/0/count"),
        (format!("{base}{flow}sack = \"yes\"\n"), "/flows/0/sack"),
        (format!("{base}{flow}[sweep]\nrepeat = \"3\"\n"), "/sweep/repeat"),
        (format!("{base}{flow}[record]\nserie = \"1s\"\n"), "serie"),
        (format!("{base}{flow}[recrod]\ntcp = true\n"), "recrod"),
        ("schema = 1\n[run]\nduration = \"1s\"\n".to_owned(), "links"),
    ] {
        let errors = errors(&validator, &wrong);
        assert!(errors.iter().any(|error| error.contains(part)), "{part}: {errors:?}");
    }
}

/// The forms that a part of a schema has, with definitions in place of references.
fn forms(root: &Value, part: &Value) -> Vec<Value> {
    let resolved = |part: &Value| match part["$ref"].as_str() {
        Some(name) => root["definitions"][name.trim_start_matches("#/definitions/")].clone(),
        None => part.clone(),
    };
    let part = resolved(part);
    part["anyOf"].as_array().map_or_else(|| vec![part.clone()], |forms| forms.iter().map(resolved).collect())
}

/// Returns `true` if a part of a schema has a key below a path.
fn has(root: &Value, part: &Value, path: &[&str]) -> bool {
    let Some((first, rest)) = path.split_first() else { return true };
    forms(root, part).iter().any(|form| {
        let (name, lists) = (first.trim_end_matches("[]"), first.matches("[]").count());
        let mut next =
            if name == "NAME" { form["additionalProperties"].clone() } else { form["properties"][name].clone() };
        for _ in 0..lists {
            let forms = next["anyOf"].as_array().cloned().unwrap_or_else(|| vec![next.clone()]);
            next =
                forms.into_iter().map(|form| form["items"].clone()).find(|items| !items.is_null()).unwrap_or_default();
        }
        !next.is_null() && has(root, &next, rest)
    })
}

#[test]
fn every_key_is_in_it() {
    let schema = schema();
    let listed: Value = serde_json::from_str(&said(&["list", "keys", "--json"])).expect("JSON");
    let items =
        listed.as_array().expect("items").iter().flat_map(|item| item["keys"].as_array().expect("keys").clone());
    let keys: Vec<String> = items.map(|key| key["name"].as_str().expect("a name").to_owned()).collect();
    assert!(keys.len() > 900);
    for key in keys {
        assert!(has(&schema, &schema, &key.split('.').collect::<Vec<_>>()), "{key}");
    }
    let described = &schema["properties"]["run"]["properties"]["duration"]["description"];
    assert!(
        described.as_str().is_some_and(|text| text.starts_with("measured time: simulated, or real")),
        "{described}"
    );
}

#[test]
fn bash_completes_commands_and_options() {
    let script = said(&["completions", "bash"]);
    let file = folder("completions").join("ackclock.bash");
    fs::write(&file, &script).expect("it can be written");
    let complete = |words: &str, last: &str| {
        let count = words.split(' ').count();
        let shell = format!(
            "source {}; COMP_WORDS=({words} '{last}'); COMP_CWORD={count}; _ackclock ackclock '{last}' x; echo \"${{COMPREPLY[@]}}\"",
            file.display()
        );
        let output = Command::new("bash").args(["--norc", "-c", &shell]).output().expect("bash");
        assert!(output.stderr.is_empty(), "{}", String::from_utf8_lossy(&output.stderr));
        String::from_utf8(output.stdout).expect("text").trim().to_owned()
    };
    assert_eq!(complete("ackclock", "repo"), "report");
    assert_eq!(complete("ackclock", "--res"), "--resume");
    assert_eq!(complete("ackclock report", "--sv"), "--svg");
    for shell in ["zsh", "fish", "elvish", "powershell"] {
        assert!(said(&["completions", shell]).contains("packetdrill"), "{shell}");
    }
}

#[test]
#[allow(clippy::print_stderr, reason = "a test that is skipped says so")]
fn every_command_has_a_manual_page() {
    let page = said(&["man"]);
    assert!(page.contains(".TH") && page.contains("packetdrill") && page.contains("\\-\\-resume"), "{page}");
    let folder = folder("man");
    let dir = folder.join("man1");
    said(&["man", dir.to_str().expect("text")]);
    let mut pages: Vec<String> = fs::read_dir(&dir)
        .expect("a folder")
        .map(|entry| entry.expect("an entry").file_name().into_string().expect("text"))
        .collect();
    pages.sort();
    for name in ["ackclock.1", "ackclock-report.1", "ackclock-verify.1"] {
        assert!(pages.iter().any(|page| page == name), "{pages:?}");
    }
    if Command::new("groff").arg("--version").output().is_err() {
        eprintln!("skipped: no groff in PATH");
        return;
    }
    for page in pages {
        let output = Command::new("groff").args(["-man", "-Tutf8", "-ww", "-z"]).arg(dir.join(&page)).output();
        let said = String::from_utf8_lossy(&output.expect("groff").stderr).into_owned();
        assert!(said.is_empty(), "{page}: {said}");
    }
}
