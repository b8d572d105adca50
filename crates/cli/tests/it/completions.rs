//! The files for editors, shells and `man`: `ackclock schema`, `completions` and `man`. Python's tests hold the schema
//! against scenarios (`python/tests/test_schema.py`).

use std::fs;
use std::process::Command;

use crate::common::{Said, ackclock, folder};
use serde_json::Value;

fn said(args: &[&str]) -> String {
    let said: Said = ackclock().args(args).output().expect("it runs").into();
    assert_eq!((said.status, said.err.as_str()), (0, ""), "{args:?}");
    said.out
}

fn schema() -> Value {
    serde_json::from_str(&said(&["schema"])).expect("JSON")
}

/// The forms that a part of a schema has, with definitions in place of references.
fn forms<'a>(root: &'a Value, part: &'a Value) -> Vec<&'a Value> {
    let resolved = |part: &'a Value| match part["$ref"].as_str() {
        Some(name) => &root["definitions"][name.trim_start_matches("#/definitions/")],
        None => part,
    };
    let part = resolved(part);
    part["anyOf"].as_array().map_or_else(|| vec![part], |forms| forms.iter().map(resolved).collect())
}

/// Returns `true` if a part of a schema has a key below a path.
fn has(root: &Value, part: &Value, path: &[&str]) -> bool {
    let Some((first, rest)) = path.split_first() else { return true };
    forms(root, part).into_iter().any(|form| {
        let (name, lists) = (first.trim_end_matches("[]"), first.matches("[]").count());
        let mut next = if name == "NAME" { &form["additionalProperties"] } else { &form["properties"][name] };
        for _ in 0..lists {
            let mut items = forms_of_list(next).into_iter().map(|form| &form["items"]);
            next = items.find(|items| !items.is_null()).unwrap_or(&Value::Null);
        }
        !next.is_null() && has(root, next, rest)
    })
}

/// A list by itself, or among other forms.
fn forms_of_list(part: &Value) -> Vec<&Value> {
    part["anyOf"].as_array().map_or_else(|| vec![part], |forms| forms.iter().collect())
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

#[cfg(all(feature = "kernel", target_os = "linux"))]
#[test]
fn a_kernel_is_a_host_in_it() {
    let host = schema()["properties"]["flows"]["items"]["properties"]["host"].to_string();
    assert!(host.contains("\"kernel\""), "{host}");
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
