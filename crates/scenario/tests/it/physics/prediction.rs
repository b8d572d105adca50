//! Header prediction changes no result: every file of the gallery, and random scenarios, give the
//! same summary and the same records with and without it.

use std::fs;
use std::path::{Path, PathBuf};
use std::sync::Arc;

use ackclock_scenario::Scenario;
use ackclock_sim::spec::{HostSpec, RunSpec, Starts};
use ackclock_sim::{DirectionId, QueueRecorder, Recorders, RunError, SeriesConfig, SeriesRecorder, World};
use ackclock_trace::{ErttCsv, FlowCsv, QueueCsv, SeriesCsv, SiftrLog, TcpCsv};
use ackclock_units::{Span, Time};

use crate::physics::draw;

/// Files of the gallery are run for so long: through slow start and the first losses.
const SHORTENED: Span = Span::from_millis(2500);

/// Most steps of these runs, whose records are in memory.
const MOST: u64 = 100_000;

/// Runs of a sweep that are compared: the first, the last, and some between them.
const RUNS: usize = 3;

/// Random scenarios, and steps or segments of each.
const DRAWN: u64 = 60;
const STEPS: u64 = 10_000;

/// Packets of flows in which most segments are as expected once there are so many.
const MANY: u64 = 4000;

/// The output of a run, as it is written.
#[derive(PartialEq)]
struct Written {
    summary: String,
    queue: Vec<u8>,
    tcp: Vec<u8>,
    siftr: Vec<u8>,
    ertt: Vec<u8>,
    flows: Vec<u8>,
    series: Vec<u8>,
}

/// Runs for so many steps, with segments predicted or not; gives also how many of the segments that
/// arrived were.
fn run(spec: &RunSpec, predicts: bool, most: u64) -> (Written, [u64; 2]) {
    let mut spec = spec.clone();
    let listed = spec.flows.iter_mut().map(|flow| &mut flow.group);
    let summed = spec.sums.iter_mut().flat_map(|sum| {
        let arriving = match &mut sum.starts {
            Starts::Workload { spec, .. } => spec.groups.iter_mut(),
            Starts::Listed(_) | Starts::Poisson { .. } => [].iter_mut(),
        };
        arriving.chain([&mut sum.group])
    });
    for group in listed.chain(summed).map(Arc::make_mut) {
        for host in [&mut group.sender, &mut group.receiver] {
            if let HostSpec::Endpoint(endpoint) = host {
                endpoint.config.header_prediction = predicts;
            }
        }
    }
    let directions: Vec<DirectionId> = DirectionId::all(spec.links.len()).collect();
    let (mut queue, mut tcp) = (QueueCsv::new(Vec::new()), TcpCsv::new(Vec::new()));
    let (mut siftr, mut ertt) = (SiftrLog::new(Vec::new()), ErttCsv::new(Vec::new()));
    let (mut rows, mut series) = (FlowCsv::new(Vec::new()), SeriesCsv::new(Vec::new()));
    let config = SeriesConfig { every: Span::from_millis(50), window: Span::from_millis(100) };
    let mut recorders = Recorders {
        queues: Some(QueueRecorder { directions: &directions, sink: &mut queue }),
        tcp: Some(&mut tcp),
        qlog: None,
        siftr: Some(&mut siftr),
        ertt: Some(&mut ertt),
        flows: Some(&mut rows),
        captures: None,
        reordering: None,
        displacement: None,
        series: Some(SeriesRecorder { config, sink: &mut series }),
        watch: None,
    };
    let end = Time::ZERO + spec.duration;
    let mut world = World::new(&spec);
    world.start(&recorders);
    let mut steps = 0;
    while let Some(now) = world.step(end) {
        let kept: Result<(), RunError> = world.keep_up(now, &mut recorders);
        kept.expect("records in memory");
        steps += 1;
        // A step may deliver a thousand segments where links are unlimited.
        let arrived = || steps % 64 == 0 && world.predicted_segments()[1] > most;
        if steps > most || arrived() {
            // The rest, series included, may be a thousand times as long.
            world.end_at(now);
            break;
        }
    }
    world.complete(&mut recorders).expect("records in memory");
    let arrived = world.predicted_segments();
    let summary = serde_json::to_string(&world.summary()).expect("a summary");
    let written = Written {
        summary,
        queue: queue.finish().expect("memory"),
        tcp: tcp.finish().expect("memory"),
        siftr: siftr.finish(end).expect("memory"),
        ertt: ertt.finish().expect("memory"),
        flows: rows.finish().expect("memory"),
        series: series.finish().expect("memory"),
    };
    (written, arrived)
}

/// Compares both ways; gives how many segments were predicted, of how many.
fn compare(name: &str, spec: &RunSpec, most: u64) -> [u64; 2] {
    let (with, arrived) = run(spec, true, most);
    let (without, none) = run(spec, false, most);
    assert_eq!(none[0], 0, "{name}");
    assert_eq!(arrived[1], none[1], "{name}");
    assert_eq!(with.summary, without.summary, "{name}");
    for (record, a, b) in [
        ("queue.csv", &with.queue, &without.queue),
        ("tcp.csv", &with.tcp, &without.tcp),
        ("siftr.log", &with.siftr, &without.siftr),
        ("ertt.csv", &with.ertt, &without.ertt),
        ("flows.csv", &with.flows, &without.flows),
        ("series.csv", &with.series, &without.series),
    ] {
        let differs = a.iter().zip(b).position(|(a, b)| a != b);
        assert!(differs.is_none() && a.len() == b.len(), "{name}: {record} differs at byte {differs:?}");
    }
    arrived
}

pub(crate) fn gallery() -> Vec<PathBuf> {
    let folder = Path::new(env!("CARGO_MANIFEST_DIR")).join("../../scenarios");
    let entries = |folder: &Path| fs::read_dir(folder).expect("a folder").map(|entry| entry.expect("a file").path());
    let folders = entries(&folder).filter(|path| path.is_dir());
    let mut files: Vec<PathBuf> = folders.flat_map(|folder| entries(&folder).collect::<Vec<_>>()).collect();
    files.retain(|file| file.extension().is_some_and(|extension| extension == "toml"));
    files.sort();
    files
}

#[test]
fn the_gallery_is_the_same_without_prediction() {
    let mut compared = 0;
    let (mut predicted, mut arrived) = (0, 0);
    for file in gallery() {
        let scenario = Scenario::load(&file, &[]).unwrap_or_else(|error| panic!("{error}"));
        if scenario.is_live() {
            continue;
        }
        let runs = scenario.runs();
        let mut picked: Vec<usize> = (0..RUNS).map(|n| n * (runs - 1) / (RUNS - 1)).collect();
        picked.dedup();
        for run in picked {
            let mut spec = scenario.spec(run);
            spec.duration = spec.duration.min(SHORTENED);
            let [of_it, all] = compare(&format!("{} {run}", file.display()), &spec, MOST);
            compared += 1;
            predicted += of_it;
            arrived += all;
        }
    }
    assert!(compared >= 60, "{compared}");
    // Where losses are rare, most are; in the gallery there are many.
    assert!(predicted * 2 > arrived, "{predicted} of {arrived}");
}

#[test]
fn random_scenarios_are_the_same_without_prediction() {
    let (mut predicted, mut arrived) = (0, 0);
    for seed in 0..DRAWN {
        let text = draw::scenario(0x7072_6564 + seed).text();
        let spec = crate::physics::outcome::spec(&text);
        let [of_it, all] = compare(&text, &spec, STEPS);
        predicted += of_it;
        arrived += all;
    }
    assert!(arrived > MANY && predicted * 5 > arrived, "{predicted} of {arrived}");
}

/// A long transfer without losses, for every host that there is: nearly all segments are predicted,
/// if they carry no counters of Accurate ECN.
#[test]
fn a_transfer_without_losses_is_predicted() {
    for host in ackclock_tcp::profile::Profile::all() {
        let text = format!(
            "schema = 1\n[run]\nduration = \"4s\"\n[links.a]\nrate = \"20mbit\"\ndelay = \"10ms\"\n\
             queue = {{ kind = \"pfifo\", limit = \"10000p\" }}\n[[flows]]\nid = \"f\"\npath = [\"a\"]\n\
             host = \"{}\"\ncc = \"newreno\"\necn = false\n",
            host.name
        );
        let [predicted, arrived] = compare(host.name, &crate::physics::outcome::spec(&text), u64::MAX);
        assert!(arrived > MANY && predicted * 100 >= arrived * 95, "{}: {predicted} of {arrived}", host.name);
    }
}
