//! Random scenarios over all keys, held against physics: whatever a file says, no packet is faster
//! than light, no rate is exceeded, the books balance, two accounts of the same thing agree, and
//! what changes nothing changes nothing.
//!
//! The keys are those that the parser asks for ([`Scenario::keys`]), so that a new one joins by
//! itself. A finding is shrunk to the smallest file that shows it, which is left in cargo's folder
//! for tests' files; the failing test names it. For hours instead of a minute:
//!
//! ```text
//! ACKCLOCK_FUZZ_CASES=100000 cargo test -p ackclock-scenario --release --test it physics -- --ignored --nocapture
//! ```
//!
//! `ACKCLOCK_FUZZ_SEED` says where to begin, `ACKCLOCK_FUZZ_STEPS` how long a run may be,
//! `ACKCLOCK_FUZZ_FILE` has one file checked in place of what is drawn.

mod checks;
mod document;
mod draw;
mod outcome;
mod prediction;
mod relations;
mod shrink;
mod steering;

use std::cell::{Cell, RefCell};
use std::collections::{BTreeMap, BTreeSet};
use std::panic::{AssertUnwindSafe, catch_unwind};
use std::path::{Path, PathBuf};
use std::sync::{Arc, Mutex};
use std::time::{Duration, Instant};
use std::{env, fs, process, thread};

use ackclock_scenario::{Domain, Scenario};
use proptest::test_runner::{Config, RngAlgorithm, TestCaseError, TestError, TestRng, TestRunner};

use checks::Violation;
use document::Document;
use outcome::Failure;
use shrink::{Case, Scenarios};

/// Cases of a run of the tests: half a minute or so of one core; `.ci/run --all` has 3000.
const CASES: u32 = 100;

/// Steps of a case's run.
const STEPS: u64 = 20_000;

/// No case takes as long, whatever the machine; one that does hangs.
const LONGEST: Duration = Duration::from_secs(120);

/// Counts of the cases.
#[derive(Debug, Default)]
struct Tally {
    cases: u64,
    shortened: u64,
    packets: u64,
}

/// Checks a scenario; gives what it violates.
fn violations(document: &Document, relation: u64, steps: u64, tally: &RefCell<Tally>) -> Vec<Violation> {
    let outcome = match outcome::within(&document.text(), steps) {
        Ok(outcome) => outcome,
        // The scenario has too much to do at its very beginning.
        Err(Failure::Heavy(_)) => return Vec::new(),
        Err(Failure::Stuck(at)) => {
            return vec![Violation { law: "time goes on", found: format!("it stands still at {} ns", at.as_nanos()) }];
        }
        Err(Failure::Broken(error)) => return vec![Violation { law: "runs have summaries", found: error }],
    };
    let mut found = checks::all(&outcome);
    found.extend(relations::check(relation as usize, document, &outcome, steps));
    let mut tally = tally.borrow_mut();
    tally.packets += outcome.summary.packets;
    tally.shortened += u64::from(outcome::spec(&document.text()).duration != outcome.spec.duration);
    found
}

/// The violations, a panic included.
fn survives(case: &Case, steps: u64, tally: &RefCell<Tally>) -> Vec<Violation> {
    let checked = catch_unwind(AssertUnwindSafe(|| violations(&case.document, case.seed, steps, tally)));
    checked.unwrap_or_else(|panic| {
        let text = panic.downcast_ref::<String>().cloned();
        let text = text.or_else(|| panic.downcast_ref::<&str>().map(|text| (*text).to_owned()));
        vec![Violation { law: "nothing panics", found: text.unwrap_or_default() }]
    })
}

/// Ends the process if a case takes forever: nothing else does. Its file is left.
#[derive(Clone)]
struct Watchdog(Arc<Mutex<Option<(Instant, String)>>>);

#[expect(clippy::disallowed_methods, reason = "whether a run comes to an end is for a clock to say")]
impl Watchdog {
    fn start() -> Watchdog {
        let watchdog = Watchdog(Arc::default());
        let watched = watchdog.clone();
        thread::spawn(move || {
            loop {
                thread::sleep(Duration::from_secs(1));
                let Ok(case) = watched.0.lock() else { return };
                if let Some((since, text)) = case.as_ref()
                    && since.elapsed() > LONGEST
                {
                    let path = leave("hangs", text);
                    fs::write(path.with_extension("txt"), "hangs").ok();
                    process::abort();
                }
            }
        });
        watchdog
    }

    fn watch(&self, text: Option<String>) {
        if let Ok(mut case) = self.0.lock() {
            *case = text.map(|text| (Instant::now(), text));
        }
    }
}

/// Leaves a file for the binary.
fn leave(name: &str, text: &str) -> PathBuf {
    let name: String = name.chars().map(|c| if c.is_ascii_alphanumeric() { c } else { '-' }).collect();
    let path = Path::new(env!("CARGO_TARGET_TMPDIR")).join(format!("finding-{name}.toml"));
    fs::write(&path, text).expect("a folder for the files of tests");
    path
}

/// Draws cases and gives a report of each law that is violated, with its smallest file.
fn search(seed: u64, cases: u32, steps: u64) -> (Tally, Vec<String>) {
    let tally = RefCell::new(Tally::default());
    let watchdog = Watchdog::start();
    let mut findings = Vec::new();
    let mut seen = BTreeSet::new();
    // After a finding it goes on with others.
    for round in 0u64.. {
        let left = cases.saturating_sub(tally.borrow().cases as u32);
        if left == 0 || findings.len() >= 20 {
            break;
        }
        let mut bytes = [0; 32];
        bytes[..8].copy_from_slice(&seed.to_le_bytes());
        bytes[8..16].copy_from_slice(&round.to_le_bytes());
        let config = Config { cases: left, max_shrink_iters: 3000, failure_persistence: None, ..Config::default() };
        let mut runner = TestRunner::new_with_rng(config, TestRng::from_seed(RngAlgorithm::ChaCha, &bytes));
        // While it shrinks it stays with one law.
        let law: Cell<Option<&'static str>> = Cell::new(None);
        let result = runner.run(&Scenarios, |case| {
            watchdog.watch(Some(case.document.text()));
            let found = survives(&case, steps, &tally);
            watchdog.watch(None);
            if law.get().is_none() {
                tally.borrow_mut().cases += 1;
            }
            let matters =
                |violation: &&Violation| law.get().map_or(!seen.contains(violation.law), |law| law == violation.law);
            match found.iter().find(matters) {
                None => Ok(()),
                Some(violation) => {
                    law.set(Some(violation.law));
                    Err(TestCaseError::fail(format!("{}: {}", violation.law, violation.found)))
                }
            }
        });
        match (result, law.get()) {
            (Err(TestError::Fail(why, case)), Some(law)) => {
                seen.insert(law);
                let text = format!(
                    "# {}\n# drawn with {:#x}\n{}",
                    why.to_string().replace('\n', "\n# "),
                    case.seed,
                    case.document.text()
                );
                findings.push(format!("{}\n{text}", leave(law, &text).display()));
            }
            (Ok(()), _) => break,
            (Err(error), _) => panic!("{error}"),
        }
    }
    (tally.into_inner(), findings)
}

fn number(name: &str, default: u64) -> u64 {
    env::var(name).map_or(default, |text| text.parse().unwrap_or_else(|_| panic!("{name} is no number")))
}

#[expect(clippy::print_stderr, reason = "a test by hand says what it has done")]
fn report((tally, findings): (Tally, Vec<String>)) {
    eprintln!("{tally:?}");
    assert!(findings.is_empty(), "{} findings\n\n{}", findings.len(), findings.join("\n\n"));
}

#[test]
fn arguments_of_random_scenarios_change_them_or_are_refused() {
    let cases = number("ACKCLOCK_FUZZ_CASES", CASES.into());
    let first = number("ACKCLOCK_FUZZ_SEED", 1);
    let of = |seed| relations::idle_arguments(&draw::scenario(seed)).into_iter().map(move |set| (seed, set));
    let idle: Vec<(u64, String)> = (first..first + cases).flat_map(of).collect();
    assert!(idle.is_empty(), "with these seeds: {idle:#?}");
}

#[test]
fn random_scenarios_keep_the_laws() {
    report(search(14, CASES, STEPS));
}

#[test]
#[ignore = "takes as long as it is told"]
fn random_scenarios_for_long() {
    if let Ok(file) = env::var("ACKCLOCK_FUZZ_FILE") {
        let text = fs::read_to_string(&file).expect("a file");
        let outcome = outcome::within(&text, number("ACKCLOCK_FUZZ_STEPS", STEPS)).expect("a run");
        let found = checks::all(&outcome);
        assert!(found.is_empty(), "{found:#?}");
        return;
    }
    let (cases, steps) = (number("ACKCLOCK_FUZZ_CASES", 10_000), number("ACKCLOCK_FUZZ_STEPS", STEPS));
    report(search(number("ACKCLOCK_FUZZ_SEED", 1), cases as u32, steps));
}

/// Every key that the parser asks for has values that are drawn and taken, or is the skeleton's.
#[test]
fn every_key_is_drawn_or_named() {
    let mut draw = draw::Draw::new(0);
    let (mut names, mut left) = (BTreeSet::new(), BTreeMap::new());
    // Some keys belong to what is drawn rarely.
    for seed in 0..4000 {
        if seed >= 120 && left.is_empty() {
            break;
        }
        let document = draw::scenario(seed);
        for key in Scenario::keys(&document.text()) {
            // The names of links, hosts, classes and flows do not count.
            let parts: Vec<&str> = key.path.split('.').collect();
            let is_id =
                |n: usize| n == 1 && ["links", "hosts"].contains(&parts[0]) || n > 0 && parts[n - 1] == "classes";
            // A queue has the same keys on either way of a link and in a class.
            let of_link = parts.iter().rposition(|&part| part == "queue" && parts[0] == "links");
            let from = of_link.unwrap_or(0);
            let parts = parts.iter().enumerate().skip(from);
            let parts = parts.filter(|&(n, part)| !is_id(n) && part.parse::<u32>().is_err());
            let name = parts.map(|(_, part)| *part).collect::<Vec<_>>().join(".");
            let skeleton = draw::BY_SKELETON.iter().any(|part| name == *part || name.ends_with(&format!(".{part}")));
            let is_kind = matches!(key.domain, Domain::Kind(_));
            if skeleton || is_kind || names.contains(&name) {
                continue;
            }
            let taken = (0..20).any(|_| {
                let Some(value) = draw.value(&key.domain, key.default.as_deref()) else { return false };
                let mut with = document.clone();
                with.set(&key.path, value.clone());
                with.get(&key.path) == Some(&value) && draw::is_good(&with.text())
            });
            if taken {
                left.remove(&name);
                names.insert(name);
            } else {
                left.insert(name, key);
            }
        }
    }
    assert!(names.len() > 250, "{}", names.len());
    assert!(left.is_empty(), "keys that no scenario has: {left:#?}");
}

/// Findings that are mended, one file each.
#[test]
fn what_was_found_stays_mended() {
    let watchdog = Watchdog::start();
    let folder = Path::new(env!("CARGO_MANIFEST_DIR")).join("tests/it/physics/found");
    let mut files: Vec<PathBuf> =
        fs::read_dir(folder).expect("a folder").map(|entry| entry.expect("a file").path()).collect();
    files.sort();
    assert!(files.len() >= 2, "{files:?}");
    for file in files {
        let text = fs::read_to_string(&file).expect("a text");
        watchdog.watch(Some(text.clone()));
        let outcome =
            outcome::within(&text, 100_000).unwrap_or_else(|failure| panic!("{}: {failure:?}", file.display()));
        let found = checks::all(&outcome);
        assert!(found.is_empty(), "{}: {found:#?}", file.display());
        watchdog.watch(None);
    }
}

#[test]
fn what_is_violated_is_found_and_shrunk() {
    // A law that no run with loss keeps: the smallest file that breaks it has one link, one flow
    // and little else.
    let strategy = Scenarios;
    let mut runner = TestRunner::new_with_rng(
        Config { cases: 300, max_shrink_iters: 3000, failure_persistence: None, ..Config::default() },
        TestRng::from_seed(RngAlgorithm::ChaCha, &[8; 32]),
    );
    let result = runner.run(&strategy, |case| {
        let Ok(outcome) = outcome::within(&case.document.text(), 2_000) else { return Ok(()) };
        let again = outcome.summary.flows.iter().any(|flow| flow.sent.retransmitted_packets > 0);
        if again { Err(TestCaseError::fail("sent again")) } else { Ok(()) }
    });
    let Err(TestError::Fail(_, case)) = result else { panic!("no retransmission in 300 scenarios") };
    let keys: usize = case.document.sections.iter().map(|section| section.entries.len()).sum();
    // Between hosts there are their addresses, and links cannot be taken out of a path.
    let between_hosts = case.document.text().contains("[[paths]]");
    assert!(keys <= if between_hosts { 13 } else { 9 }, "{}", case.document.text());
}
