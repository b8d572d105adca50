//! The output of `tc -j qdisc show`, `class show` and `filter show`, with `-s` and `-d` or without.
//!
//! # Source
//! iproute2 7.1: `tc/tc_qdisc.c` (`print_qdisc`), `tc/tc_class.c` (`print_class`),
//! `tc/tc_filter.c` (`print_filter`); rates are in bytes per second, times in microseconds but for
//! netem's.
//!
//! # Departures
//! - `tc` prints several keys `match` of one `u32` filter, of which the last is read.

use std::sync::Arc;

use serde_json::{Map, Value as Json};

use crate::source::{Action, Command, ImportError, Object, Place, Read, Source};
use crate::{disciplines, netem};

/// Keys that `tc` prints beside settings.
const STATISTICS: &[&str] = &[
    "direct_packets_stat",
    "ver",
    "level",
    "burst_cell",
    "cburst_cell",
    "mpu_ceil",
    "burst_raw",
    "mtu_raw",
    "multiqueue",
    "raw",
    "prob_mark",
    "prob_mark_head",
    "prob_drop",
    "forced_mark",
    "forced_mark_head",
    "forced_drop",
    "Scell_log",
    "Plog",
];

/// Reads an array of qdiscs, classes or filters, or several arrays in a row.
pub(crate) fn read(source: &Source<'_>, report: &mut Read) -> Result<(), ImportError> {
    let file: Arc<str> = source.name.into();
    let mut stream = serde_json::Deserializer::from_str(source.text).into_iter::<Json>();
    loop {
        let start = stream.byte_offset();
        let Some(next) = stream.next() else { return Ok(()) };
        let all = next.map_err(|error| {
            let place = Place { file: Arc::clone(&file), line: error.line() as u32 };
            let expected = "the output of `tc -j`, or LibreQoS's network.json";
            ImportError::at(&place, format!("no JSON: {error}"), expected)
        })?;
        let lines = lines(source.text, start);
        let place = |number: usize| Place { file: Arc::clone(&file), line: lines.get(number).copied().unwrap_or(1) };
        let Json::Array(items) = all else {
            return Err(ImportError::at(&place(0), "no array", "an array, as `tc -j qdisc show` prints it"));
        };
        for (number, item) in items.iter().enumerate() {
            let place = place(number);
            match item {
                Json::Object(item) if item.is_empty() => {}
                Json::Object(item) => one(item, &place, report)?,
                _ => return Err(ImportError::at(&place, "no object", "an object with `kind` or `class`")),
            }
        }
    }
}

/// The lines on which the items of an array begin.
fn lines(text: &str, start: usize) -> Vec<u32> {
    let mut line = 1 + text[..start].matches('\n').count() as u32;
    let (mut depth, mut is_text, mut is_escaped) = (0u32, false, false);
    let mut lines = Vec::new();
    for byte in text[start..].bytes() {
        match byte {
            b'\n' => line += 1,
            _ if is_escaped => is_escaped = false,
            b'\\' if is_text => is_escaped = true,
            b'"' => is_text = !is_text,
            _ if is_text => {}
            b'[' | b'{' => {
                if depth == 1 {
                    lines.push(line);
                }
                depth += 1;
            }
            b']' | b'}' => depth = depth.saturating_sub(1),
            _ => {}
        }
    }
    lines
}

fn one(item: &Map<String, Json>, place: &Place, report: &mut Read) -> Result<(), ImportError> {
    let text = |key: &str| item.get(key).and_then(Json::as_str);
    let is_filter = item.contains_key("protocol") || item.contains_key("pref");
    let object = if item.contains_key("class") {
        Object::Class
    } else if is_filter {
        Object::Filter
    } else {
        Object::Qdisc
    };
    let Some(kind) = text("class").or(text("kind")) else {
        return Err(ImportError::at(place, "an object without `kind` and `class`", "the output of `tc -j`"));
    };
    let empty = Map::new();
    let options = match object {
        // Classes have their options beside their names.
        Object::Class => item,
        _ => item.get("options").and_then(Json::as_object).unwrap_or(&empty),
    };
    // HFSC lists itself as a class.
    if object == Object::Class && text("handle").is_some_and(|handle| handle.ends_with(':')) {
        return Ok(());
    }
    // Statistics of a chain have no options, tables of hashes lead nowhere.
    if object == Object::Filter && (options.is_empty() || options.contains_key("ht_divisor")) {
        return Ok(());
    }
    let device = text("dev").unwrap_or("eth0");
    if text("dev").is_none() {
        report.leave(place, kind, "`tc ... show dev NAME` prints no device: eth0 stands for it");
    }
    let mut words = vec!["dev".to_owned(), device.to_owned()];
    if item.get("root") == Some(&Json::Bool(true)) {
        words.push("root".to_owned());
    } else if let Some(parent) = text("parent") {
        words.extend(["parent".to_owned(), parent.to_owned()]);
    }
    match (object, text("handle")) {
        (Object::Class, Some(handle)) => words.extend(["classid".to_owned(), handle.to_owned()]),
        (Object::Qdisc, Some(handle)) if handle != "0:" => words.extend(["handle".to_owned(), handle.to_owned()]),
        _ => {}
    }
    for key in ["protocol", "pref"] {
        match item.get(key) {
            Some(Json::String(value)) => words.extend([key.to_owned(), value.clone()]),
            Some(Json::Number(value)) => words.extend([key.to_owned(), value.to_string()]),
            _ => {}
        }
    }
    if let Some(stab) = item.get("stab").and_then(Json::as_object) {
        words.push("stab".to_owned());
        for key in ["overhead", "mpu", "mtu", "tsize"] {
            stab.get(key)
                .and_then(Json::as_i64)
                .iter()
                .for_each(|value| words.extend([key.to_owned(), value.to_string()]));
        }
        let layer = stab.get("linklayer").and_then(Json::as_str);
        layer.into_iter().for_each(|layer| words.extend(["linklayer".to_owned(), layer.to_owned()]));
    }
    if object == Object::Filter {
        // The mark is the handle of `fw`.
        let handle = options.get("handle").and_then(Json::as_str);
        if let ("fw", Some(handle)) = (kind, handle) {
            words.extend(["handle".to_owned(), handle.to_owned()]);
        }
    }
    words.push(kind.to_owned());
    let mut unknown: Vec<String> = Vec::new();
    let mut see = |key: &str| {
        if !STATISTICS.contains(&key) {
            unknown.push(key.to_owned());
        }
    };
    match (object, kind) {
        (Object::Filter, _) => words.extend(filter(kind, options)),
        (Object::Class, "htb") => {
            let own: Map<String, Json> = options.iter().filter(|(key, _)| !is_common(key)).map(copy).collect();
            words.extend(disciplines::from_json(disciplines::HTB_CLASS, &own, see));
        }
        (Object::Class, "qfq") => {
            let own: Map<String, Json> = options.iter().filter(|(key, _)| !is_common(key)).map(copy).collect();
            words.extend(disciplines::from_json(disciplines::QFQ_CLASS, &own, see));
        }
        (Object::Class, "hfsc") => {
            for (name, curve) in options.iter().filter(|(key, _)| ["rt", "ls", "sc", "ul"].contains(&key.as_str())) {
                words.push(name.clone());
                let number = |key: &str| curve.get(key).and_then(Json::as_u64).unwrap_or(0);
                words.extend(["m1".to_owned(), format!("{}Bps", number("m1"))]);
                words.extend(["d".to_owned(), format!("{}us", number("d"))]);
                words.extend(["m2".to_owned(), format!("{}Bps", number("m2"))]);
            }
        }
        // `tc` prints no quantum of DRR in JSON; classes of other qdiscs are bands and flows.
        (Object::Class, "drr") => {}
        (Object::Class, _) => return Ok(()),
        (Object::Qdisc, "netem") => words.extend(netem::from_json(options, see)),
        (Object::Qdisc, "prio" | "pfifo_fast" | "ets") if kind != "pfifo_fast" => {
            for (key, value) in options {
                match value {
                    Json::Array(values) => {
                        words.push(key.clone());
                        words.extend(values.iter().map(ToString::to_string));
                    }
                    Json::Number(number) => words.extend([key.clone(), number.to_string()]),
                    _ => see(key),
                }
            }
        }
        (Object::Qdisc, "pfifo_fast") => {}
        (Object::Qdisc, kind) if disciplines::is_known(kind) => {
            words.extend(disciplines::from_json(kind, options, see));
        }
        (Object::Qdisc, _) => {}
    }
    // `tc` requires what it does not print.
    if let (Object::Qdisc, "red" | "choke") = (object, kind) {
        let required = if kind == "red" { ["avpkt", "1000"] } else { ["bandwidth", "10mbit"] };
        words.extend(required.map(str::to_owned));
        let why = "`tc` prints neither of them: the defaults hold";
        report.leave(place, format!("{kind} avpkt, burst, bandwidth"), why);
    }
    for key in unknown {
        report.leave(place, format!("{kind} {key}"), "`tc` prints it, and nothing here stands for it");
    }
    report.commands.push(Command { place: place.clone(), object, action: Action::Add, words, name: None });
    Ok(())
}

fn copy((key, value): (&String, &Json)) -> (String, Json) {
    (key.clone(), value.clone())
}

/// Keys of a class that are no settings.
fn is_common(key: &str) -> bool {
    ["class", "handle", "dev", "root", "parent", "leaf", "stats"].contains(&key)
}

/// The words of a filter.
fn filter(kind: &str, options: &Map<String, Json>) -> Vec<String> {
    let mut words = Vec::new();
    match kind {
        "u32" => {
            if let Some(key) = options.get("match").and_then(Json::as_object) {
                let text = |name: &str| key.get(name).and_then(Json::as_str).unwrap_or("0");
                let hex = |name: &str| format!("0x{}", text(name).trim_start_matches("0x"));
                let offset = key.get("off").and_then(Json::as_i64).unwrap_or(0);
                let behind = if text("offmask").starts_with("nexthdr") { "nexthdr+" } else { "" };
                words.extend(["match".to_owned(), "u32".to_owned(), hex("value"), hex("mask")]);
                words.extend(["at".to_owned(), format!("{behind}{offset}")]);
            }
        }
        "flower" => {
            for (key, value) in options.get("keys").and_then(Json::as_object).into_iter().flatten() {
                let value = value.as_str().map_or_else(|| value.to_string(), str::to_owned);
                words.extend([key.clone(), value]);
            }
        }
        _ => {}
    }
    let target = options.get("flowid").or(options.get("classid")).and_then(Json::as_str);
    target.into_iter().for_each(|target| words.extend(["classid".to_owned(), target.to_owned()]));
    words
}
