//! `--metrics`: what Prometheus reads while a run goes on, held against its text format and against
//! the summary.

use std::collections::{BTreeMap, BTreeSet};
use std::fs;
use std::io::{BufRead, BufReader, Read, Write};
use std::net::{SocketAddr, TcpListener, TcpStream};
use std::process::{Child, Stdio};
use std::thread;
use std::time::Duration;

use crate::common::{SMALL, ackclock, folder, run};
use serde_json::Value;

/// Two transfers through a short queue, which are over long before the run is.
const SCENARIO: &str = r#"
schema = 1
title = 'a \ "title"'

[run]
duration = "6s"

[record]
series = "100ms"

[links.wire]
rate = "10mbit"
delay = "5ms"
queue = { kind = "pfifo", limit = "20p" }

[[flows]]
id = "f"
count = 2
path = ["wire"]
bytes = "500kB"
cc = "cubic"
"#;

/// A run that goes on, and where its metrics are.
#[derive(Debug)]
struct Running {
    child: Child,
    address: SocketAddr,
}

fn start(folder: &std::path::Path, scenario: &str, args: &[&str]) -> Running {
    fs::write(folder.join("scenario.toml"), scenario).unwrap();
    let mut child = ackclock()
        .current_dir(folder)
        .args(["scenario.toml", "--metrics", "127.0.0.1:0"])
        .args(args)
        .stdout(Stdio::piped())
        .stderr(Stdio::piped())
        .spawn()
        .unwrap();
    let mut lines = BufReader::new(child.stderr.take().unwrap()).lines();
    let address = lines.find_map(|line| {
        let line = line.unwrap();
        line.strip_prefix("note: metrics are at http://").and_then(|rest| rest.strip_suffix("/metrics")?.parse().ok())
    });
    // Nobody else reads what it says.
    thread::spawn(move || lines.for_each(drop));
    Running { child, address: address.expect("it says where metrics are") }
}

/// The body of an answer; `None` once nobody is there.
fn get(address: SocketAddr, path: &str) -> Option<String> {
    let mut stream = TcpStream::connect(address).ok()?;
    stream.write_all(format!("GET {path} HTTP/1.1\r\nHost: {address}\r\n\r\n").as_bytes()).ok()?;
    let mut said = String::new();
    stream.read_to_string(&mut said).ok()?;
    let (head, body) = said.split_once("\r\n\r\n")?;
    assert!(head.starts_with("HTTP/1.1 200 OK"), "{head}");
    Some(body.to_owned())
}

/// A metric: its type and its samples by labels.
#[derive(Debug, Default)]
struct Metric {
    kind: String,
    samples: BTreeMap<BTreeMap<String, String>, f64>,
}

/// Reads Prometheus's text format, and takes nothing that is not exactly that.
fn parse(text: &str) -> BTreeMap<String, Metric> {
    assert!(text.ends_with('\n'), "the last line has no end");
    let mut metrics: BTreeMap<String, Metric> = BTreeMap::new();
    // The metric whose lines these are, and whether its help has come.
    let (mut current, mut helped) = (String::new(), BTreeSet::new());
    for line in text.lines() {
        if let Some(rest) = line.strip_prefix("# HELP ") {
            let (name, help) = rest.split_once(' ').unwrap_or_else(|| panic!("no help: {line}"));
            assert!(is_name(name, true) && !help.is_empty() && helped.insert(name.to_owned()), "{line}");
            name.clone_into(&mut current);
        } else if let Some(rest) = line.strip_prefix("# TYPE ") {
            let (name, kind) = rest.split_once(' ').unwrap_or_else(|| panic!("no type: {line}"));
            assert!(name == current && ["counter", "gauge"].contains(&kind), "{line}");
            assert_eq!(kind == "counter", name.ends_with("_total"), "{line}");
            let metric = Metric { kind: kind.to_owned(), ..Metric::default() };
            assert!(metrics.insert(name.to_owned(), metric).is_none(), "twice: {line}");
        } else {
            let end = line.find(['{', ' ']).unwrap_or_else(|| panic!("no sample: {line}"));
            let (labels, value) = labels(&line[end..]);
            assert_eq!(&line[..end], current, "not behind its type: {line}");
            let value: f64 = value.parse().unwrap_or_else(|_| panic!("no number: {line}"));
            assert!(value.is_finite() && value >= 0.0, "{line}");
            let metric = metrics.get_mut(&current).unwrap_or_else(|| panic!("no type: {line}"));
            assert!(metric.samples.insert(labels, value).is_none(), "twice: {line}");
        }
    }
    assert!(metrics.values().all(|metric| !metric.samples.is_empty()), "a metric without samples");
    metrics
}

fn is_name(name: &str, colons: bool) -> bool {
    let is_first = |char: char| char.is_ascii_alphabetic() || char == '_' || (colons && char == ':');
    name.starts_with(is_first) && name.chars().all(|char| is_first(char) || char.is_ascii_digit())
}

/// The labels at the beginning of this, and the value behind them.
fn labels(text: &str) -> (BTreeMap<String, String>, &str) {
    let mut labels = BTreeMap::new();
    let Some(mut rest) = text.strip_prefix('{') else {
        return (labels, text.strip_prefix(' ').expect("a space before the value"));
    };
    loop {
        let (name, behind) = rest.split_once("=\"").unwrap_or_else(|| panic!("no label: {text}"));
        assert!(is_name(name, false), "{text}");
        let (mut value, mut chars) = (String::new(), behind.char_indices());
        let end = loop {
            match chars.next().unwrap_or_else(|| panic!("an open label: {text}")) {
                (at, '"') => break at,
                (_, '\\') => value.push(match chars.next() {
                    Some((_, '\\')) => '\\',
                    Some((_, '"')) => '"',
                    Some((_, 'n')) => '\n',
                    other => panic!("not escaped so: {other:?} in {text}"),
                }),
                (_, char) => value.push(char),
            }
        };
        assert!(labels.insert(name.to_owned(), value).is_none(), "{text}");
        rest = &behind[end + 1..];
        match rest.strip_prefix(',') {
            Some(next) => rest = next,
            None => return (labels, rest.strip_prefix("} ").unwrap_or_else(|| panic!("no value: {text}"))),
        }
    }
}

fn value(metrics: &BTreeMap<String, Metric>, name: &str, labels: &[(&str, &str)]) -> Option<f64> {
    let labels = labels.iter().map(|&(name, value)| (name.to_owned(), value.to_owned())).collect();
    metrics.get(name)?.samples.get(&labels).copied()
}

/// All values of a run until it is over.
fn scrape(running: &mut Running) -> Vec<BTreeMap<String, Metric>> {
    let mut all = Vec::new();
    while running.child.try_wait().unwrap().is_none() {
        if let Some(text) = get(running.address, "/metrics") {
            all.push(parse(&text));
        }
        thread::sleep(Duration::from_millis(50));
    }
    all
}

#[test]
fn counts_only_grow_and_become_those_of_the_summary() {
    let folder = folder("metrics_counts");
    let mut running = start(&folder, SCENARIO, &["--speed", "3", "--json", "--out", "watched"]);
    let all = scrape(&mut running);
    let mut said = String::new();
    running.child.stdout.take().unwrap().read_to_string(&mut said).unwrap();
    assert!(all.len() > 10, "{} scrapes in two seconds", all.len());
    for pair in all.windows(2) {
        for (name, before) in pair[0].iter().filter(|(_, metric)| metric.kind == "counter") {
            for (labels, was) in &before.samples {
                let is = pair[1][name].samples.get(labels).unwrap_or_else(|| panic!("{name} {labels:?} is gone"));
                assert!(is >= was, "{name} {labels:?} went from {was} to {is}");
            }
        }
        assert!(pair[0]["ackclock_run_time_seconds"].samples <= pair[1]["ackclock_run_time_seconds"].samples);
    }
    let last = all.last().unwrap();
    // The transfers are over, and nothing happens any more.
    let time = value(last, "ackclock_run_time_seconds", &[]).unwrap();
    assert!(time > 4.0, "the last is of {time} s");
    assert_eq!(value(last, "ackclock_run_info", &[("title", "a \\ \"title\""), ("clock", "virtual")]), Some(1.0));
    let summary: Value = serde_json::from_str(&said).unwrap();
    for link in summary["links"].as_array().unwrap() {
        let (name, direction) = link["id"].as_str().unwrap().split_once('.').unwrap();
        let labels = [("link", name), ("direction", direction)];
        let of = |metric: &str| value(last, &format!("ackclock_link_{metric}"), &labels);
        let dropped: f64 = link["dropped"].as_object().unwrap().values().map(|count| count.as_f64().unwrap()).sum();
        assert_eq!(of("packets_total"), link["dequeued"].as_f64(), "{name}.{direction}");
        assert_eq!(of("dropped_packets_total"), Some(dropped), "{name}.{direction}");
        assert_eq!(of("marked_packets_total"), link["marked"].as_f64(), "{name}.{direction}");
        assert_eq!(of("capacity_bytes_per_second"), Some(1.25e6));
        assert_eq!(of("backlog_packets"), Some(0.0));
        assert!(dropped > 0.0 || direction == "reverse", "no drops to compare");
    }
    for flow in summary["flows"].as_array().unwrap() {
        let id = flow["id"].as_str().unwrap();
        let of = |metric: &str| value(last, &format!("ackclock_flow_{metric}"), &[("flow", id)]);
        assert_eq!(of("delivered_bytes_total"), Some(500_000.0), "{id}");
        assert_eq!(of("delivered_bytes_total"), flow["delivered_bytes"].as_f64(), "{id}");
        assert_eq!(of("sent_packets_total"), flow["sent_packets"].as_f64(), "{id}");
        assert_eq!(of("retransmitted_packets_total"), flow["retransmitted_packets"].as_f64(), "{id}");
        let info = [("flow", id), ("cc", "cubic"), ("kind", "flow")];
        assert_eq!(value(last, "ackclock_flow_info", &info), Some(1.0));
    }
    // The bytes are those of a run that nobody watches.
    let plain = run(&folder, SCENARIO, &["--json", "--out", "plain"]);
    assert_eq!(plain.out, said, "watching changed the summary");
    for file in ["summary.json", "series.csv"] {
        let [watched, plain] = ["watched", "plain"].map(|dir| fs::read(folder.join(dir).join(file)).unwrap());
        assert_eq!(watched, plain, "watching changed {file}");
    }
}

#[test]
fn what_cannot_be_served_is_refused() {
    let folder = folder("metrics_refused");
    let taken = TcpListener::bind("127.0.0.1:0").unwrap();
    let taken = taken.local_addr().unwrap().to_string();
    let sweep = format!("{SMALL}\n[sweep]\nrepeat = 3\n");
    for (scenario, args, part) in [
        (SMALL, ["--metrics", "0.0.0.0:9100"], "0.0.0.0 is not an address of the loopback interface"),
        (SMALL, ["--metrics", "9100"], "not an address and a port, such as 127.0.0.1:9100"),
        (SMALL, ["--metrics", &taken], "--metrics: cannot listen on 127.0.0.1:"),
        (&sweep, ["--metrics", "127.0.0.1:0"], "--metrics requires a single run, and the scenario has 3"),
        (&sweep, ["--watch", "-q"], "--watch requires a single run, and the scenario has 3"),
        (SMALL, ["--watch", "-q"], "--watch requires a terminal, and standard output is none"),
    ] {
        let said = run(&folder, scenario, &args);
        assert_eq!((said.status, said.out.as_str()), (2, ""), "{args:?}: {}", said.err);
        assert!(said.err.contains(part), "{args:?}: {}", said.err);
    }
}
