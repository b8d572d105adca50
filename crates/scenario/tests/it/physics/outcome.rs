//! Runs a scenario in this process, step by step, with its records.

use std::collections::BTreeMap;
use std::ops::ControlFlow;

use ackclock_scenario::Scenario;
use ackclock_sim::spec::RunSpec;
use ackclock_sim::{DirectionId, QueueRecorder, Recorders, RunError, World};
use ackclock_trace::{QueueCsv, QueueRecord, QueueSink, SeriesRecord, Summary, TcpCsv, WatchSink};
use ackclock_units::{Span, Time};
use serde_json::Value as Json;

/// No component has this much to do at one instant.
const MOST_AT_ONCE: u64 = 50_000;

/// The result of a run.
#[derive(Debug)]
pub(crate) struct Outcome {
    pub spec: RunSpec,
    pub summary: Summary<()>,
    pub json: Json,
    pub queue: Vec<Row>,
    pub tcp: Vec<Row>,
}

/// Why a run has no outcome.
#[derive(Debug)]
pub(crate) enum Failure {
    /// More steps, or decisions of queues, than there is time for here; how far it came.
    Heavy(Time),
    /// Time does not go on.
    Stuck(Time),
    /// The run reports a failure itself.
    Broken(String),
}

/// A line of a CSV file by its columns.
#[derive(Clone, Debug, PartialEq)]
pub(crate) struct Row(BTreeMap<&'static str, String>);

impl Row {
    pub(crate) fn str(&self, column: &str) -> &str {
        self.0.get(column).map_or("", String::as_str)
    }

    pub(crate) fn number(&self, column: &str) -> Option<u64> {
        self.str(column).parse().ok()
    }

    /// The value of a column in seconds or milliseconds, to the nanosecond.
    pub(crate) fn nanos(&self, column: &str) -> Option<u64> {
        let digits = if column.ends_with("_ms") { 6 } else { 9 };
        let text = self.str(column);
        let (whole, part) = text.split_once('.').unwrap_or((text, ""));
        format!("{whole}{part:0<digits$}").parse().ok()
    }
}

fn rows(columns: &'static str, csv: Vec<u8>) -> Vec<Row> {
    let text = String::from_utf8(csv).expect("CSV is text");
    let row = |line: &str| Row(columns.split(',').zip(line.split(',').map(str::to_owned)).collect());
    text.lines().skip(1).map(row).collect()
}

/// Takes so many rows, each for some work, and then breaks off.
#[derive(Debug)]
struct Metered<S> {
    sink: S,
    left: u64,
}

impl<S> Metered<S> {
    fn new(sink: S, most: u64) -> Metered<S> {
        Metered { sink, left: most }
    }

    fn go_on(&mut self) -> ControlFlow<()> {
        self.left = self.left.saturating_sub(1);
        if self.left == 0 { ControlFlow::Break(()) } else { ControlFlow::Continue(()) }
    }
}

impl<S: QueueSink> QueueSink for Metered<S> {
    fn record(&mut self, record: &QueueRecord<'_>) -> ControlFlow<()> {
        self.sink.record(record)?;
        self.go_on()
    }
}

/// A sink that counts and keeps nothing.
#[derive(Debug)]
struct Nothing;

impl QueueSink for Nothing {
    fn record(&mut self, _: &QueueRecord<'_>) -> ControlFlow<()> {
        ControlFlow::Continue(())
    }
}

/// Somebody who watches, in intervals of this length and of half of it.
#[derive(Debug)]
struct Watcher(Span);

impl WatchSink for Watcher {
    fn every(&self) -> Span {
        self.0
    }

    fn record(&mut self, record: &SeriesRecord<'_>) {
        assert!(record.from < record.to, "an interval without length");
    }

    fn passed(&mut self, to: Time) -> Span {
        if to.as_nanos().is_multiple_of(2) { self.0 } else { self.0 / 2 }
    }
}

/// The first run of a file.
pub(crate) fn spec(text: &str) -> RunSpec {
    let scenario = Scenario::parse("drawn", text.as_bytes(), &[]);
    scenario.unwrap_or_else(|error| panic!("a scenario that can be read\n{error}\n{text}")).spec(0)
}

/// Runs to the end in at most `most` steps.
pub(crate) fn run(spec: &RunSpec, most: u64) -> Result<Outcome, Failure> {
    let directions: Vec<DirectionId> = DirectionId::all(spec.links.len()).collect();
    let (mut queue, mut tcp) = (Metered::new(QueueCsv::new(Vec::new()), most), TcpCsv::new(Vec::new()));
    let mut watcher = Watcher(spec.duration / 37);
    let recorders = Recorders {
        queues: Some(QueueRecorder { directions: &directions, sink: &mut queue }),
        tcp: Some(&mut tcp),
        watch: Some(&mut watcher),
        ..Recorders::default()
    };
    let summary = drive(spec, recorders, most)?;
    let (queue, tcp) = (queue.sink.finish().expect("memory"), tcp.finish().expect("memory"));
    let json = serde_json::to_value(&summary).map_err(|error| Failure::Broken(format!("summary: {error}")))?;
    Ok(Outcome {
        spec: spec.clone(),
        summary,
        json,
        queue: rows(ackclock_trace::QUEUE_COLUMNS, queue),
        tcp: rows(ackclock_trace::TCP_COLUMNS, tcp),
    })
}

/// The summary of a run without records, which has come to its end with them.
pub(crate) fn plain(spec: &RunSpec) -> Result<Json, Failure> {
    let summary = drive(spec, Recorders::default(), u64::MAX)?;
    serde_json::to_value(&summary).map_err(|error| Failure::Broken(format!("summary: {error}")))
}

/// The summary alone.
pub(crate) fn summary(spec: &RunSpec, most: u64) -> Result<Json, Failure> {
    let directions: Vec<DirectionId> = DirectionId::all(spec.links.len()).collect();
    let mut meter = Metered::new(Nothing, most);
    let queues = Some(QueueRecorder { directions: &directions, sink: &mut meter });
    let summary = drive(spec, Recorders { queues, ..Recorders::default() }, most)?;
    serde_json::to_value(&summary).map_err(|error| Failure::Broken(format!("summary: {error}")))
}

fn drive(spec: &RunSpec, mut recorders: Recorders<'_>, most: u64) -> Result<Summary<()>, Failure> {
    let broken = |error: RunError| Failure::Broken(error.to_string());
    let end = Time::ZERO + spec.duration;
    let mut world = World::new(spec);
    world.start(&recorders);
    let (mut steps, mut last, mut at_once) = (0, Time::ZERO, 0);
    while let Some(now) = world.step(end) {
        match world.keep_up(now, &mut recorders) {
            // The first instant is done as a whole.
            Err(RunError::Interrupted) => return Err(Failure::Heavy(now)),
            other => other.map_err(broken)?,
        }
        steps += 1;
        at_once = if now == last { at_once + 1 } else { 0 };
        last = now;
        if at_once > MOST_AT_ONCE {
            return Err(Failure::Stuck(now));
        }
        if steps > most && at_once == 0 {
            return Err(Failure::Heavy(now));
        }
    }
    match world.complete(&mut recorders) {
        Err(RunError::Interrupted) => return Err(Failure::Heavy(last)),
        other => other.map_err(broken)?,
    }
    Ok(world.summary())
}

/// The run of a file, as long as fits in these steps: a shorter one where the whole is too long, if
/// there is one.
pub(crate) fn within(text: &str, most: u64) -> Result<Outcome, Failure> {
    let mut spec = spec(text);
    match run(&spec, most) {
        Err(Failure::Heavy(came_to)) if came_to > Time::ZERO => {
            // Flows that start later never start, as in any run that is broken off.
            spec.duration = Span::from_nanos(came_to.as_nanos());
            run(&spec, 4 * most)
        }
        other => other,
    }
}
