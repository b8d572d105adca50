//! Where two files differ first.

use std::fs::File;
use std::io::{BufRead, BufReader, Read};
use std::path::Path;

use ackclock_trace::open_regular;
use anyhow::Context;
use serde_json::Value;

/// The longest line that is looked at, in bytes: a summary of 100,000 flows has some 200 MB.
const MAX_LINE: u64 = 1 << 30;

/// Number of characters of a value or a line that are shown.
const SHOWN: usize = 120;

/// The first difference of a file and its repetition, in a sentence: by its key in a summary, else
/// by its line.
pub(super) fn first(name: &str, here: &Path, again: &Path) -> anyhow::Result<String> {
    if name.ends_with(".json") {
        let (here, again) = (read(here)?, read(again)?);
        if let (Ok(here), Ok(again)) = (serde_json::from_slice(&here), serde_json::from_slice(&again))
            && let Some(found) = in_values(&here, &again, "")
        {
            return Ok(format!("{name}: {found}"));
        }
    }
    let (mut here_lines, mut again_lines) = (open(here)?, open(again)?);
    for number in 1.. {
        let (this, that) = (line(&mut here_lines, here)?, line(&mut again_lines, again)?);
        if this == that {
            if this.is_empty() {
                break;
            }
            continue;
        }
        let value = |line: &[u8]| name.ends_with(".jsonl").then(|| serde_json::from_slice(line).ok()).flatten();
        if let (Some(this), Some(that)) = (value(&this), value(&that))
            && let Some(found) = in_values(&this, &that, "")
        {
            return Ok(format!("{name}, line {number}: {found}"));
        }
        let text = |line: &[u8]| match String::from_utf8_lossy(line).trim_end_matches('\n') {
            "" if line.is_empty() => "the end".to_owned(),
            line => format!("`{}`", shown(line)),
        };
        return Ok(format!("{name}, line {number}: {}, and now {}", text(&this), text(&that)));
    }
    Ok(format!("{name}: it was changed in the meantime"))
}

/// The first key, in the order of the first value, at which two values differ.
fn in_values(here: &Value, again: &Value, at: &str) -> Option<String> {
    let below = |key: &str| if at.is_empty() { key.to_owned() } else { format!("{at}.{key}") };
    let missing = |key: &str, value: &Value, when| format!("{} is {} {when}", below(key), shown(&value.to_string()));
    match (here, again) {
        (Value::Object(here), Value::Object(again)) => here
            .iter()
            .find_map(|(key, value)| match again.get(key) {
                Some(other) => in_values(value, other, &below(key)),
                None => Some(missing(key, value, "and now absent")),
            })
            .or_else(|| {
                let (key, value) = again.iter().find(|(key, _)| !here.contains_key(*key))?;
                Some(missing(key, value, "now and was absent"))
            }),
        (Value::Array(here), Value::Array(again)) => {
            let both = here.iter().zip(again).enumerate();
            both.map(|(index, (a, b))| (index.to_string(), a, b))
                .find_map(|(index, a, b)| in_values(a, b, &below(&index)))
                .or_else(|| {
                    (here.len() != again.len())
                        .then(|| format!("{at} has {} items, and now {}", here.len(), again.len()))
                })
        }
        _ if here == again => None,
        _ => Some(format!("{at} is {}, and now {}", shown(&here.to_string()), shown(&again.to_string()))),
    }
}

fn shown(text: &str) -> String {
    match text.char_indices().nth(SHOWN) {
        Some((end, _)) => format!("{}...", &text[..end]),
        None => text.to_owned(),
    }
}

fn open(path: &Path) -> anyhow::Result<BufReader<File>> {
    Ok(BufReader::new(open_regular(path).with_context(|| format!("cannot read {}", path.display()))?))
}

fn read(path: &Path) -> anyhow::Result<Vec<u8>> {
    let mut bytes = Vec::new();
    let read = open(path)?.take(MAX_LINE).read_to_end(&mut bytes);
    read.with_context(|| format!("cannot read {}", path.display()))?;
    Ok(bytes)
}

/// The next line with its end; nothing at the end of the file.
fn line(lines: &mut BufReader<File>, path: &Path) -> anyhow::Result<Vec<u8>> {
    let mut line = Vec::new();
    let read = lines.take(MAX_LINE).read_until(b'\n', &mut line);
    read.with_context(|| format!("cannot read {}", path.display()))?;
    Ok(line)
}

#[cfg(test)]
mod tests {
    use serde_json::json;

    use super::*;

    #[test]
    fn the_first_key_that_differs() {
        let first = |a: Value, b: Value| in_values(&a, &b, "");
        assert_eq!(first(json!({"a": [1, {"b": 2}]}), json!({"a": [1, {"b": 2}]})), None);
        assert_eq!(
            first(json!({"a": [1, {"b": 2}], "c": 1}), json!({"a": [1, {"b": 3}], "c": 2})).as_deref(),
            Some("a.1.b is 2, and now 3")
        );
        assert_eq!(first(json!({"a": 1}), json!({})).as_deref(), Some("a is 1 and now absent"));
        assert_eq!(first(json!({}), json!({"a": 1})).as_deref(), Some("a is 1 now and was absent"));
        assert_eq!(first(json!({"a": [1]}), json!({"a": [1, 2]})).as_deref(), Some("a has 1 items, and now 2"));
        assert_eq!(first(json!(1.0), json!("x")).as_deref(), Some(" is 1.0, and now \"x\""));
        assert!(first(json!("x".repeat(500)), json!("y")).is_some_and(|text| text.len() < 200));
    }
}
