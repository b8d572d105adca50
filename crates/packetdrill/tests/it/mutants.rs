//! The runner as a judge: a script that passes stops passing once anything in it is changed.
//!
//! Scripts are those of the TCP endpoint and of MPTCP. For a measurement on others,
//! `ACKCLOCK_MUTANTS` names a file or directory, and `ACKCLOCK_MUTANTS_SET` settings
//! (`profile=freebsd-14 cc=reno`); scripts that do not pass are left out:
//!
//!     ACKCLOCK_MUTANTS=DIR cargo test -p ackclock-packetdrill --release --test it mutants -- --nocapture

mod kinds;
mod mptcp;

use std::collections::BTreeMap;
use std::fmt::Write;
use std::fs;
use std::num::NonZeroUsize;
use std::path::{Path, PathBuf};
use std::sync::atomic::{AtomicUsize, Ordering};
use std::{env, thread};

use ackclock_packetdrill::ast::Script;
use ackclock_packetdrill::{Outcome, ScriptResult, Settings, TraceKind, parse, run};
use ackclock_units::{Span, parse_span};

use kinds::{Mutant, REMOVED, Terms};

/// The share of a kind that has to be rejected, per cent.
const LEAST_PERCENT: f64 = 98.0;

/// Most survivors of a kind that are named.
const NAMED: usize = 5;

/// The fates of the mutants of a kind.
#[derive(Debug, Default)]
struct Tally {
    rejected: usize,
    survived: Vec<String>,
    /// There was nothing to reject: arrivals changed without any effect on what the host sent and
    /// what its calls returned, and expectations without which the script is over before the packet
    /// is sent.
    equivalent: usize,
    /// No longer a script that this runner takes; not judged either.
    void: usize,
}

impl Tally {
    fn percent(&self) -> f64 {
        100.0 * self.rejected as f64 / (self.rejected + self.survived.len()).max(1) as f64
    }
}

type Tallies = BTreeMap<&'static str, Tally>;

fn scripts_below(path: &Path) -> Vec<PathBuf> {
    if path.is_file() {
        return vec![path.to_owned()];
    }
    let entries = fs::read_dir(path).into_iter().flatten().filter_map(|entry| Some(entry.ok()?.path()));
    let mut found: Vec<PathBuf> = entries
        .flat_map(|path| if path.is_dir() { scripts_below(&path) } else { vec![path] })
        .filter(|path| path.extension().is_some_and(|extension| extension == "pkt"))
        .collect();
    found.sort();
    found
}

/// The host's actions that can be seen from outside.
fn effects(outcome: &Outcome) -> Vec<(u64, &str)> {
    let seen = outcome.trace.iter().filter(|line| matches!(line.kind, TraceKind::Outbound | TraceKind::Call));
    seen.map(|line| (line.time.as_nanos(), line.text.as_str())).collect()
}

/// Number of packets that the host sent.
fn sent(outcome: &Outcome) -> usize {
    outcome.trace.iter().filter(|line| line.kind == TraceKind::Outbound).count()
}

/// The script's terms of the comparison, and otherwise packetdrill's tolerance of 4 ms.
fn terms(script: &Script) -> Terms {
    let mut terms = Terms { tolerance: Span::from_millis(4), ignore_psh: false };
    for option in &script.options {
        let name = option.name.replace('-', "_");
        let (key, value) = match option.value.split_once('=') {
            Some((key, value)) if name == "set" => (key, value),
            _ => (name.as_str(), option.value.as_str()),
        };
        match key {
            "tolerance_usecs" => terms.tolerance = value.parse().map_or(terms.tolerance, Span::from_micros),
            "tolerance" => terms.tolerance = parse_span(value).unwrap_or(terms.tolerance),
            "ignore_psh" => terms.ignore_psh = !matches!(value, "off" | "no" | "false" | "0"),
            _ => {}
        }
    }
    terms
}

/// Judges every mutant of the script in a file; `None` if it does not pass itself.
fn judge(path: &Path, settings: &Settings) -> Option<Tallies> {
    let script = parse(&fs::read_to_string(path).ok()?).ok()?;
    let original = run(&script, settings);
    if original.result != ScriptResult::Passed {
        return None;
    }
    let effects_of_original = effects(&original);
    let mut tallies = Tallies::new();
    kinds::each(&script, terms(&script), &mut |Mutant { kind, line, stimulus, script }| {
        let outcome = run(&script, settings);
        let tally = tallies.entry(kind).or_default();
        match outcome.result {
            ScriptResult::Failed(_) => tally.rejected += 1,
            ScriptResult::Passed if stimulus && effects(&outcome) == effects_of_original => tally.equivalent += 1,
            ScriptResult::Passed if kind == REMOVED && sent(&outcome) < sent(&original) => tally.equivalent += 1,
            ScriptResult::Passed => tally.survived.push(format!("{}:{line}", path.display())),
            ScriptResult::Unsupported { .. } | ScriptResult::Invalid { .. } => tally.void += 1,
        }
    });
    Some(tallies)
}

/// All tallies of these scripts, and of how many scripts.
fn judge_all(paths: &[PathBuf], settings: &Settings) -> (usize, Tallies) {
    let next = AtomicUsize::new(0);
    let threads = thread::available_parallelism().map_or(1, NonZeroUsize::get);
    let mut results: Vec<(usize, Tallies)> = thread::scope(|scope| {
        let work = || {
            let mut done = Vec::new();
            loop {
                let index = next.fetch_add(1, Ordering::Relaxed);
                let Some(path) = paths.get(index) else { return done };
                done.extend(judge(path, settings).map(|tallies| (index, tallies)));
            }
        };
        let threads: Vec<_> = (0..threads).map(|_| scope.spawn(work)).collect();
        threads.into_iter().flat_map(|thread| thread.join().expect("no script makes the runner panic")).collect()
    });
    results.sort_by_key(|&(index, _)| index);
    let scripts = results.len();
    let mut sums = Tallies::new();
    for (kind, tally) in results.into_iter().flat_map(|(_, tallies)| tallies) {
        let sum = sums.entry(kind).or_default();
        sum.rejected += tally.rejected;
        sum.survived.extend(tally.survived);
        sum.equivalent += tally.equivalent;
        sum.void += tally.void;
    }
    (scripts, sums)
}

fn table(tallies: &Tallies) -> String {
    let mut out =
        format!("{:24} {:>8} {:>8} {:>7} {:>11} {:>6}\n", "kind", "mutants", "rejected", "%", "equivalent", "void");
    for (kind, tally) in tallies {
        let mutants = tally.rejected + tally.survived.len();
        let (rejected, percent) = (tally.rejected, tally.percent());
        let _ = writeln!(
            out,
            "{kind:24} {mutants:>8} {rejected:>8} {percent:>7.2} {:>11} {:>6}",
            tally.equivalent, tally.void
        );
    }
    for (kind, tally) in tallies.iter().filter(|(_, tally)| !tally.survived.is_empty()) {
        let named = tally.survived[..tally.survived.len().min(NAMED)].join(", ");
        let _ = writeln!(out, "{kind}: {} survived: {named}", tally.survived.len());
    }
    out
}

#[expect(clippy::print_stdout, reason = "the table is what a measurement is for")]
#[test]
fn scripts_of_the_endpoint_stop_passing_when_anything_changes() {
    let chosen = env::var_os("ACKCLOCK_MUTANTS");
    let own =
        ["../tcp/tests/scripts", "tests/it/mptcp/scripts"].map(|path| Path::new(env!("CARGO_MANIFEST_DIR")).join(path));
    let paths = match &chosen {
        Some(chosen) => scripts_below(Path::new(chosen)),
        None => own.iter().flat_map(|path| scripts_below(path)).collect(),
    };
    assert!(!paths.is_empty(), "there are scripts");
    let mut settings = Settings::new();
    let chosen_settings = env::var("ACKCLOCK_MUTANTS_SET").unwrap_or_default();
    for pair in chosen_settings.split_whitespace() {
        let (key, value) = pair.split_once('=').expect("KEY=VALUE");
        settings.set(key, value).expect("a setting");
    }
    let (scripts, tallies) = judge_all(&paths, &settings);
    let table = table(&tallies);
    println!("{scripts} of {} scripts pass\n{table}", paths.len());
    assert!(scripts > 0, "none of {} scripts passes", paths.len());
    let weak = |tally: &&Tally| tally.percent() < LEAST_PERCENT && !tally.survived.is_empty();
    assert_eq!(tallies.values().find(weak).map(Tally::percent), None, "\n{table}");
}

#[test]
fn mutants_are_what_they_are_meant_to_be() {
    let script = "0 socket(..., SOCK_STREAM, IPPROTO_TCP) = 3\n\
                  +0 bind(3, ..., ...) = 0\n\
                  +0 listen(3, 1) = 0\n\
                  +0 < S 0:0(0) win 65535 <mss 1460,sackOK,nop,nop>\n\
                  +0 > S. 0:0(0) ack 1 <mss 1460,nop,nop,sackOK>\n\
                  +.1 < . 1:1(0) ack 1 win 65535\n\
                  +0 accept(3, ..., ...) = 4\n\
                  +0 < P. 1001:2001(1000) ack 1 win 65535\n\
                  +0 > . 1:1(0) ack 1 <nop,nop,sack 1001:2001>\n";
    let script = parse(script).expect("a script");
    let outcome = run(&script, &Settings::new());
    assert_eq!(outcome.result, ScriptResult::Passed, "{outcome}");
    let mut kinds = Vec::new();
    kinds::each(&script, terms(&script), &mut |mutant| kinds.push(mutant.kind));
    // The last line gives: every block moved four ways, and one more block.
    assert_eq!(kinds.iter().filter(|&&kind| kind == "SACK block shifted").count(), 4);
    assert_eq!(kinds.iter().filter(|&&kind| kind == "SACK block added").count(), 1);
    // Two packets are expected, both without a window.
    assert_eq!(kinds.iter().filter(|&&kind| kind == "packet removed").count(), 2);
    assert_eq!(kinds.iter().filter(|&&kind| kind == "packet twice").count(), 2);
    assert_eq!(kinds.iter().filter(|&&kind| kind == "window").count(), 0);
}
