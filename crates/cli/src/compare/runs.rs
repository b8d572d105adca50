//! A scenario that is run twice, with different settings: its numbers, and the first packet of each
//! flow in which the two part.

use std::fmt::Write;
use std::path::{Path, PathBuf};
use std::{env, fs, process};

use ackclock_run::judged;
use ackclock_run::session::{Session, Wanted};
use ackclock_scenario::{Override, Own, Scenario};
use ackclock_sim::spec::{HostSpec, RunSpec};
use anyhow::{Context, bail};
use serde_json::Value;

use super::comparison::ResultComparison;
use super::side::ResultSide;
use super::{align, captures, table};
use crate::args::compare::{Choice, CompareArgs};
use crate::bar::Bar;
use crate::check;
use crate::console::{print, say};
use crate::shown::Sayer;

/// The most flows whose packets are compared.
const MOST: usize = 20;

/// Returns `true` if this is the file of a scenario.
pub(super) fn is_scenario(path: &str) -> bool {
    let path = Path::new(path);
    path.extension().is_some_and(|extension| extension == "toml") && path.is_file()
}

/// Runs the scenario on either side, and compares the results; the status to end with.
pub(super) fn compare(args: &CompareArgs, own: &Own) -> anyhow::Result<u8> {
    let path = Path::new(&args.a);
    let sides = [("--a", &args.of_a), ("--b", &args.of_b)];
    let overrides = sides.map(|(flag, choices)| overrides(args, flag, choices));
    let scenarios = [load(path, &overrides[0], own)?, load(path, &overrides[1], own)?];
    for (scenario, (flag, _)) in scenarios.iter().zip(&sides) {
        if scenario.runs() != 1 || scenario.is_live() {
            bail!("{} with {flag} is not a single run on the virtual clock: run it with --out, and compare", args.a);
        }
    }
    let flows = captured([&scenarios[0].spec(0), &scenarios[1].spec(0)]);
    let directory = ResultDirectory::new(args.out.as_deref())?;
    let mut read = Vec::new();
    for (number, (name, (flag, choices))) in ["a", "b"].into_iter().zip(sides).enumerate() {
        let mut overrides = overrides[number].clone();
        if !flows.is_empty() {
            overrides.push(Override { flag: "record.pcap".to_owned(), text: format!("record.pcap={flows:?}") });
        }
        let scenario = load(path, &overrides, own)?;
        scenario.notes().iter().for_each(|note| say(&format!("note: {note}")));
        let out = directory.path.join(name);
        let status = run(&scenario, &out)?;
        if status != 0 {
            return Ok(status);
        }
        let mut side = ResultSide::read(&out.display().to_string(), flag, &[])?;
        let texts: Vec<String> = choices.iter().map(Choice::to_string).collect();
        // Keys that come with a host are no settings of these runs.
        side.given.clear();
        side.name = format!("{} with {}", args.a, texts.join(", "));
        read.push(side);
    }
    let [mut a, mut b] = <[ResultSide; 2]>::try_from(read).unwrap_or_else(|_| unreachable!("there are two sides"));
    let axes = align::align(&mut a, &mut b)?;
    let comparison = ResultComparison::new(&a, &b, axes, args);
    // A sweep of one run has its records below.
    let folder = if scenarios[0].is_sweep() { "runs/0000" } else { "" };
    let files = |flow: &str| {
        ["a", "b"].map(|side| directory.path.join(side).join(folder).join(format!("{flow}.sender.pcapng")))
    };
    if args.json {
        let mut json = comparison.json();
        let mut packets = serde_json::Map::new();
        for flow in &flows {
            let [a, b] = files(flow).map(|file| file.display().to_string());
            let compared = captures::compare(&a, &b, args.within, true)?;
            packets.insert(flow.clone(), serde_json::from_str(&compared)?);
        }
        json["packets"] = Value::Object(packets);
        let _ = print(&format!("{json}\n"))?;
        return Ok(0);
    }
    let mut text = table::text(&comparison, args.all_rows);
    for flow in &flows {
        let [a, b] = files(flow).map(|file| file.display().to_string());
        write!(text, "\n== packets of {flow} at its sender\n{}", captures::parted(&a, &b, args.within)?)?;
    }
    let _ = print(&text)?;
    Ok(0)
}

fn overrides(args: &CompareArgs, flag: &str, choices: &[Choice]) -> Vec<Override> {
    let of_both = args.set.iter().map(|text| Override { flag: "--set".to_owned(), text: text.clone() });
    let of_side = choices.iter().map(|choice| Override { flag: flag.to_owned(), text: choice.to_string() });
    of_both.chain(of_side).collect()
}

fn load(path: &Path, overrides: &[Override], own: &Own) -> anyhow::Result<Scenario> {
    Ok(check::load(path, overrides, own)?)
}

/// The flows over TCP that both sides have, with packets that can be captured.
fn captured(specs: [&RunSpec; 2]) -> Vec<String> {
    let flows = |spec: &RunSpec| -> Vec<String> {
        let nodes = spec.live.as_ref().map_or(&[][..], |live| &live.nodes);
        let listed = spec.flows.iter().filter(|flow| {
            // The host of a flow over a path is its own.
            let own = |node: usize| {
                let group = flow.id.rsplit_once('.').map_or(&*flow.id, |(group, _)| group);
                nodes.get(node).is_some_and(|node| node.name.strip_suffix("-sender") == Some(group))
            };
            !matches!(flow.sender, HostSpec::Datagrams(_)) && flow.ends.is_none_or(|ends| own(ends.nodes[0]))
        });
        listed.map(|flow| flow.id.to_string()).collect()
    };
    let [a, b] = specs.map(flows);
    a.into_iter().filter(|flow| b.contains(flow)).take(MOST).collect()
}

/// Does the run into a directory; the status of what kept it from its end.
fn run(scenario: &Scenario, out: &Path) -> anyhow::Result<u8> {
    let wanted = Wanted { out: Some(out.to_owned()), overwrite: true, ..Wanted::default() };
    let (threads, note) = wanted.threads(scenario)?;
    note.iter().for_each(|note| say(note));
    let mut session = Session::open(&wanted, scenario, Sayer::default())?;
    let bar = Bar::new(session.ledger.walk.left(), false);
    session.listener = Sayer::beside(&bar);
    Ok(judged::run(session, threads, &bar)?.status)
}

/// The directory of both results, which goes unless somebody asked for it.
struct ResultDirectory {
    path: PathBuf,
    is_kept: bool,
}

impl ResultDirectory {
    fn new(asked: Option<&Path>) -> anyhow::Result<ResultDirectory> {
        let path = match asked {
            Some(path) => path.to_owned(),
            None => env::temp_dir().join(format!("ackclock-compare-{}", process::id())),
        };
        let made = if asked.is_some() { fs::create_dir_all(&path) } else { fs::create_dir(&path) };
        made.with_context(|| format!("cannot create {}", path.display()))?;
        Ok(ResultDirectory { path, is_kept: asked.is_some() })
    }
}

impl Drop for ResultDirectory {
    fn drop(&mut self) {
        if !self.is_kept {
            let _ = fs::remove_dir_all(&self.path);
        }
    }
}
