//! Every key of a scenario does something: for each there is a small scenario in which another
//! value of it changes the result.
//!
//! The keys are those that the parser knows, asked of its errors, and the values are made from
//! their defaults; so a key that is new is tried by itself, and fails here if nothing comes of it.
//! Keys that can have no effect are listed with the reason in `without.rs`, and a key that is
//! listed there and has an effect fails too.

mod stages;
mod without;

use std::cmp::Reverse;
use std::collections::{BTreeMap, BTreeSet};
use std::ops::ControlFlow;
use std::sync::Mutex;
use std::sync::atomic::{AtomicUsize, Ordering};

use ackclock_scenario::{Domain, Override, Scenario, ScenarioError};
use ackclock_sim::spec::RunSpec;
use toml::Spanned;
use toml::de::{DeTable, DeValue};

use stages::{STAGES, SUBJECTS, Subject};
use without::{UNTRIED, WITHOUT};

/// Values that parse for a key that has no default, or has `false`.
const ANY: &[&str] = &[
    "true",
    "\"20ms\"",
    "\"1500ms\"",
    "\"3000B\"",
    "\"300kB\"",
    "\"5p\"",
    "\"40p\"",
    "2",
    "3",
    "60",
    "0.5",
    "0.05",
    "0.8",
    "\"3mbit\"",
];

/// Values that cannot be made from a default.
const VALUES: &[(&str, &str, &str)] = &[
    ("flows.0", "schedule", "[{ at = \"1s\", cc = \"vegas\" }]"),
    ("links.wire", "schedule", "[{ at = \"500ms\", rate = \"3mbit\" }]"),
    ("links.wire.reverse", "schedule", "[{ at = \"500ms\", delay = \"300ms\" }]"),
    ("links.wire.autorate", "probes", "\"q\""),
    ("links.wire.reverse", "autorate", "{ probes = \"p\", min_rate = \"6mbit\" }"),
    ("links.wire", "slots", "{ delay = \"20ms\", packets = 4 }"),
    ("links.wire.reverse", "slots", "{ delay = \"20ms\", packets = 4 }"),
    ("flows.0", "time_wait", "\"100ms\""),
    ("flows.0", "interrupts", "{ delay = \"20ms\", packets = 4 }"),
    ("flows.0", "path", "[\"wire\", \"far\"]"),
    ("flows.0.application", "ladder", "[\"300kbit\", \"1mbit\"]"),
    ("flows.0.application", "file", "\"tests/it/effects/others.txt\""),
    ("flows.0.cc", "beta_loss", "90"),
    ("flows.0.cc", "file", "\"tests/it/effects/other-policy.json\""),
    ("links.wire.loss", "packets", "[40]"),
    ("links.wire.queue", "db", "\"20ms\""),
    ("links.wire.queue", "mpu", "\"256B\""),
    ("links.wire.queue", "default", "\"first\""),
    (
        "links.wire.queue",
        "classes",
        "{ top = { rate = \"3mbit\" }, first = { rate = \"2mbit\" }, bulk = { rate = \"1mbit\" } }",
    ),
    (
        "links.wire.queue",
        "classes",
        "{ top = { ls = { m2 = \"3mbit\" } }, first = { ls = { m2 = \"2mbit\" } }, bulk = { ls = { m2 = \"1mbit\" } } }",
    ),
    (
        "links.wire.queue",
        "stages",
        "{ first = { queue = { kind = \"tbf\", rate = \"1mbit\", burst = \"5kB\", limit = \"30kB\" } }, last = {} }",
    ),
    ("links.wire.queue", "classes", "{ first = { weight = 9 }, bulk = {} }"),
    ("links.wire.queue.classes.first", "parent", "\"other\""),
    ("links.wire.queue.classes.first", "flows", "\"g\""),
    ("links.wire.queue.classes.first", "max_length", "\"600B\""),
    ("links.wire.queue.classes.first", "mpu", "\"2kB\""),
    ("links.wire.queue", "rtt", "\"lan\""),
    ("links.wire.queue", "threshold", "\"3p\""),
    ("links.wire.queue.floyd", "weight", "0.01"),
    ("record", "reordering", "[\"receiver\"]"),
    ("record", "pcap", "[\"wire.forward\"]"),
];
/// A controller for which somebody has to act: nobody does here.
const LEARNER: &str = "external";

fn overrides(settings: &[String]) -> Vec<Override> {
    settings.iter().map(|text| Override { flag: "--set".to_owned(), text: text.clone() }).collect()
}

/// The stages are for the host `rfc` where they name none.
fn hosts(stage: &str, settings: &[String]) -> Vec<String> {
    let root = DeTable::parse(stage).expect("TOML");
    let flows = root.get_ref().get("flows").and_then(|flows| flows.get_ref().as_array());
    let names_none = |(number, flow): (usize, &Spanned<DeValue<'_>>)| {
        let is_set = |key: &str| settings.iter().any(|text| text.starts_with(&format!("flows.{number}.{key}=")));
        let flow = flow.get_ref().as_table();
        // Datagrams have no host of TCP.
        let has = |key: &str| is_set(key) || flow.is_some_and(|flow| flow.contains_key(key));
        (!has("host") && !has("transport")).then(|| format!("flows.{number}.host=\"rfc\""))
    };
    flows.into_iter().flat_map(|flows| flows.iter()).enumerate().filter_map(names_none).collect()
}

fn parse(stage: &str, settings: &[String]) -> Result<Scenario, ScenarioError> {
    let all = [hosts(stage, settings), settings.to_vec()].concat();
    Scenario::parse("stage", stage.as_bytes(), &overrides(&all))
}

/// The words in backticks of what an error expects.
fn expected(error: &str) -> Vec<String> {
    let note = error.lines().filter(|line| line.trim_start().starts_with("= note: expected"));
    note.flat_map(|line| line.split('`').skip(1).step_by(2)).map(str::to_owned).collect()
}

/// The result of a run without mere names.
fn result(spec: &RunSpec) -> String {
    let summary = ackclock_sim::run(spec, &mut |_| ControlFlow::Continue(())).expect("nobody interrupts");
    let mut json = serde_json::to_value(summary).expect("numbers and names");
    let object = json.as_object_mut().expect("a summary");
    for name in ["title", "seed", "run", "events"] {
        object.remove(name);
    }
    json.to_string()
}

/// A subject on a stage as it is.
struct Baseline {
    spec: RunSpec,
    result: String,
    resolved: DeTable<'static>,
}

/// By the name of the stage and settings; `None` if the subject does not stand there.
type Baselines = Mutex<BTreeMap<(&'static str, &'static [&'static str]), Option<&'static Baseline>>>;

fn baseline(known: &Baselines, name: &'static str, stage: &str, subject: &Subject) -> Option<&'static Baseline> {
    let at = (name, subject.settings);
    if let Some(baseline) = known.lock().expect("no test fails in it").get(&at) {
        return *baseline;
    }
    let settings: Vec<String> = subject.settings.iter().map(|&text| text.to_owned()).collect();
    let baseline = parse(stage, &settings).ok().map(|scenario| {
        let spec = scenario.spec(0);
        let resolved = DeTable::parse(scenario.resolved().leak()).expect("a resolved scenario is TOML").into_inner();
        &*Box::leak(Box::new(Baseline { result: result(&spec), spec, resolved }))
    });
    known.lock().expect("no test fails in it").insert(at, baseline);
    baseline
}

/// The keys that the table of a subject knows.
fn keys(subject: &Subject, settings: &[String]) -> Vec<String> {
    let mut wrong = settings.to_vec();
    wrong.push(format!("{}.zzz=1", subject.path));
    let error = parse(STAGES[0].1, &wrong).expect_err("nobody knows this key").to_string();
    let keys = expected(&error);
    assert!(error.contains("zzz") && !keys.is_empty(), "{}: {error}", subject.path);
    keys
}

/// The value at a path of a resolved scenario.
fn at<'a>(root: &'a DeTable<'a>, path: &str) -> Option<&'a DeValue<'a>> {
    let mut parts = path.split('.');
    let mut value = root.get(parts.next()?)?.get_ref();
    for part in parts {
        value = match value {
            DeValue::Table(table) => table.get(part)?.get_ref(),
            DeValue::Array(items) => items.get(part.parse::<usize>().ok()?)?.get_ref(),
            _ => return None,
        };
    }
    Some(value)
}

/// Other values than this one, as TOML.
pub(crate) fn others(value: &DeValue<'_>) -> Vec<String> {
    let number = |text: &str| {
        let digits = text.find(|c: char| !c.is_ascii_digit() && c != '.').unwrap_or(text.len());
        Some((text[..digits].parse::<f64>().ok()?, text[digits..].to_owned()))
    };
    match value {
        DeValue::Boolean(false) => ANY.iter().map(|&text| text.to_owned()).collect(),
        DeValue::Boolean(true) => vec!["false".to_owned()],
        DeValue::Integer(n) => {
            let n: i64 = n.as_str().parse().expect("a decimal number");
            [n * 4, n / 4, n + 1, n - 1, 0, 1, 3].map(|n| n.max(0).to_string()).to_vec()
        }
        DeValue::Float(x) => {
            let x: f64 = x.as_str().parse().expect("a decimal number");
            [x / 4.0, x * 4.0, x / 2.0, x * 1.2, 0.0, 0.5, 1.0].map(|x| format!("{x:?}")).to_vec()
        }
        DeValue::String(text) => match number(text) {
            Some((0.0, unit)) => [3, 50, 500, 20_000]
                .map(|n| format!("\"{n}{unit}\""))
                .into_iter()
                .chain(["\"20ms\"", "\"300ms\"", "\"2s\""].map(str::to_owned))
                .collect(),
            Some((n, unit)) => {
                let mut values: Vec<String> = [n * 4.0, n / 4.0, n / 20.0, n / 200.0, n * 100.0, n + 1.0]
                    .map(|n| format!("\"{}{unit}\"", n.ceil()))
                    .to_vec();
                if unit.ends_with('B') {
                    values.extend(["\"3000B\"", "\"20kB\""].map(str::to_owned));
                }
                values
            }
            None => Vec::new(),
        },
        _ => Vec::new(),
    }
}

/// Values to try for a key on a stage.
fn candidates(before: &Baseline, stage: &str, settings: &[String], path: &str) -> impl Iterator<Item = String> {
    let values = match at(&before.resolved, path) {
        Some(value) => others(value),
        None => ANY.iter().map(|&text| text.to_owned()).collect(),
    };
    let by_hand =
        VALUES.iter().filter(move |(table, key, _)| path.strip_prefix(table).is_some_and(|rest| rest[1..] == **key));
    let names = move || {
        let mut wrong = settings.to_vec();
        wrong.push(format!("{path}=\"zzz\""));
        parse(stage, &wrong).err().map(|error| expected(&error.to_string())).unwrap_or_default()
    };
    let names = std::iter::once_with(names).flatten().map(|name| format!("\"{name}\""));
    values.into_iter().chain(by_hand.map(|&(.., value)| value.to_owned())).chain(names)
}

/// How many keys of a subject have changed something on a stage: others are tried there first.
type Likely = Mutex<BTreeMap<(&'static str, &'static [&'static str]), BTreeMap<&'static str, usize>>>;

/// A stage and a value with which a key changes the result.
fn effect(known: &Baselines, likely: &Likely, subject: &Subject, key: &str) -> Option<String> {
    let path = format!("{}.{key}", subject.path);
    let mut tried = 0;
    let mut stages = STAGES.to_vec();
    if let Some(counts) = likely.lock().expect("no test fails in it").get(&(subject.path, subject.settings)) {
        stages.sort_by_key(|(name, _)| Reverse(counts.get(name)));
    }
    for (name, stage) in stages {
        let settings: Vec<String> = subject.settings.iter().map(|&text| text.to_owned()).collect();
        let Some(before) = baseline(known, name, stage, subject) else { continue };
        tried += 1;
        for value in candidates(before, stage, &settings, &path) {
            let mut changed = settings.clone();
            changed.push(format!("{path}={value}"));
            let spec = parse(stage, &changed).ok().map(|scenario| scenario.spec(0));
            if spec.is_some_and(|spec| spec != before.spec && result(&spec) != before.result) {
                let mut likely = likely.lock().expect("no test fails in it");
                *likely.entry((subject.path, subject.settings)).or_default().entry(name).or_default() += 1;
                return Some(format!("{name}, {value}"));
            }
        }
    }
    assert!(tried > 0, "{path} stands on no stage with {:?}", subject.settings);
    None
}

/// All kinds that a table has, as subjects.
fn of_kinds() -> Vec<Subject> {
    let mut all = Vec::new();
    for subject in SUBJECTS {
        if !subject.kinds {
            all.push(subject.clone());
            continue;
        }
        let error = parse(STAGES[0].1, &[format!("{}=\"zzz\"", subject.path)]).expect_err("no such kind").to_string();
        for kind in expected(&error).into_iter().filter(|kind| kind != LEARNER) {
            let setting: &'static str = format!("{}.kind=\"{kind}\"", subject.path).leak();
            let mut settings = vec![setting];
            settings.extend(
                subject.settings.iter().filter(|text| stages::is_for(text, &kind)).map(|text| stages::bare(text)),
            );
            all.push(Subject { settings: settings.leak(), kinds: false, ..subject.clone() });
        }
    }
    all
}

/// The keys to try, each with its table.
fn jobs(subjects: &[Subject]) -> Vec<(&Subject, String)> {
    let tables: BTreeSet<&str> = SUBJECTS.iter().map(|subject| subject.path).collect();
    let mut jobs = Vec::new();
    for subject in subjects {
        let settings: Vec<String> = subject.settings.iter().map(|&text| text.to_owned()).collect();
        let known = keys(subject, &settings);
        for key in &known {
            // Tables by the name of a kind hold the same keys once more.
            let path = format!("{}.{key}", subject.path);
            let is_kind = known.contains(&"kind".to_owned())
                && (*key == LEARNER
                    || subjects.iter().any(|other| {
                        other.path == subject.path
                            && other.settings.first() == Some(&format!("{}.kind=\"{key}\"", subject.path).as_str())
                    }));
            if !is_kind && !tables.contains(path.as_str()) {
                jobs.push((subject, key.clone()));
            }
        }
    }
    jobs
}

/// Whether a key may hold a table.
fn is_table(domain: &Domain) -> bool {
    match domain {
        Domain::Table | Domain::Kind(_) => true,
        Domain::Either(domains) => domains.iter().any(is_table),
        _ => false,
    }
}

/// The keys of a table are tried if it is a subject.
#[test]
fn every_table_is_a_subject() {
    let tables: BTreeSet<&str> = SUBJECTS.iter().map(|subject| subject.path).collect();
    let mut missing = BTreeSet::new();
    for subject in of_kinds() {
        let settings: Vec<String> = subject.settings.iter().map(|&text| text.to_owned()).collect();
        let Some(scenario) = STAGES.iter().find_map(|(_, stage)| parse(stage, &settings).ok()) else { continue };
        for key in Scenario::keys(&scenario.resolved()) {
            let is_of_subject =
                ["run.", "record.", "links.wire.", "flows.0."].iter().any(|table| key.path.starts_with(table));
            let is_known = tables.contains(key.path.as_str())
                || UNTRIED
                    .iter()
                    .any(|(path, _)| key.path == *path || path.ends_with('.') && key.path.starts_with(path));
            if is_of_subject && is_table(&key.domain) && !is_known {
                missing.insert(key.path);
            }
        }
    }
    assert!(missing.is_empty(), "tables of keys that `SUBJECTS` lacks: {missing:#?}");
}

#[test]
fn every_key_changes_something() {
    let subjects = of_kinds();
    let jobs = jobs(&subjects);
    let (next, found) = (AtomicUsize::new(0), Mutex::new(BTreeMap::new()));
    let (baselines, likely) = (Baselines::default(), Likely::default());
    let threads = std::thread::available_parallelism().map_or(1, usize::from);
    std::thread::scope(|scope| {
        for _ in 0..threads {
            scope.spawn(|| {
                while let Some((subject, key)) = jobs.get(next.fetch_add(1, Ordering::Relaxed)) {
                    let effect = effect(&baselines, &likely, subject, key);
                    let name = (subject.path, subject.settings.first().copied().unwrap_or(""), key.clone());
                    found.lock().expect("no test fails in it").insert(name, effect);
                }
            });
        }
    });
    let found = found.into_inner().expect("all are done");
    let mut wrong = Vec::new();
    for ((path, setting, key), effect) in &found {
        let reason = WITHOUT.iter().find(|(listed, known, _)| known == key && (listed == path || *listed == *setting));
        match (effect, reason) {
            (None, None) => wrong.push(format!("{path} [{setting}] {key}: no effect on any stage")),
            (Some(how), Some((.., reason))) => {
                wrong.push(format!("{path} [{setting}] {key}: is said to have none ({reason}), but: {how}"));
            }
            _ => {}
        }
    }
    assert!(found.len() > 200, "{}", found.len());
    assert!(wrong.is_empty(), "{} of {}:\n{}", wrong.len(), found.len(), wrong.join("\n"));
}
