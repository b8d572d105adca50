//! The records of a run, one file per kind.

use std::io;
use std::path::PathBuf;

use ackclock_scenario::Scenario;
use ackclock_sim::{DirectionId, QueueRecorder, Recorders, ReorderingRecorder, SeriesConfig, SeriesRecorder};
use ackclock_trace::{
    DisplacementCsv, DisplacementSink, ErttCsv, ErttSink, FlowCsv, FlowSink, QueueCsv, ReorderingCsv, SeriesCsv,
    SiftrLog, SiftrSink, TcpCsv, TcpSink, WatchSink,
};
use ackclock_units::{Span, Time};
use anyhow::Context;

use super::captures::Captures;
use super::qlogs::Qlogs;
use crate::output::{DISPLACEMENT, ERTT, FLOWS, Places, QUEUE, REORDERING, SERIES, SIFTR, TCP};
use crate::partial::{Partial, Sealed};

/// The files that a run writes while it goes on; none by default.
#[derive(Debug, Default)]
pub(crate) struct Sheets<'a> {
    directions: &'a [DirectionId],
    queue: Option<QueueCsv<Partial>>,
    tcp: Option<TcpCsv<Partial>>,
    siftr: Option<SiftrLog<Partial>>,
    ertt: Option<ErttCsv<Partial>>,
    flows: Option<FlowCsv<Partial>>,
    series: Option<(SeriesConfig, SeriesCsv<Partial>)>,
    reordering: Option<(Span, ReorderingCsv<Partial>)>,
    displacement: Option<DisplacementCsv<Partial>>,
    captures: Captures,
    qlogs: Qlogs,
    /// Where they are, for what cannot be written.
    paths: [Option<PathBuf>; 8],
}

impl<'a> Sheets<'a> {
    /// Begins what the scenario asks for.
    pub(crate) fn open(scenario: &'a Scenario, run: usize, places: Option<&Places>) -> anyhow::Result<Sheets<'a>> {
        let Some(places) = places else { return Ok(Sheets::default()) };
        let directions = scenario.recorded_queues();
        let file = |wanted: bool, name| wanted.then(|| places.create(run, name)).transpose();
        let queue = file(!directions.is_empty(), QUEUE)?;
        let tcp = file(scenario.records_tcp(), TCP)?;
        let siftr = file(scenario.records_siftr(), SIFTR)?;
        let ertt = file(scenario.records_ertt(), ERTT)?;
        let flows = file(scenario.records_flows(), FLOWS)?;
        let intervals = scenario.series();
        let series = file(intervals.is_some(), SERIES)?;
        let every = scenario.reordering_every();
        let reordering = file(every.is_some(), REORDERING)?;
        let displacement = file(scenario.records_displacement(), DISPLACEMENT)?;
        let paths = [&queue, &tcp, &siftr, &ertt, &flows, &series, &reordering, &displacement]
            .map(|file| file.as_ref().map(|file| file.path().to_owned()));
        Ok(Sheets {
            directions,
            queue: queue.map(QueueCsv::new),
            tcp: tcp.map(TcpCsv::new),
            siftr: siftr.map(SiftrLog::new),
            ertt: ertt.map(ErttCsv::new),
            flows: flows.map(FlowCsv::new),
            series: intervals.zip(series.map(SeriesCsv::new)),
            reordering: every.zip(reordering.map(ReorderingCsv::new)),
            displacement: displacement.map(DisplacementCsv::new),
            captures: Captures::open(scenario, run, places)?,
            qlogs: Qlogs::open(scenario, run, places)?,
            paths,
        })
    }

    /// The recorders that write them, and hand on the watched records.
    pub(crate) fn recorders<'r>(&'r mut self, feed: Option<&'r mut dyn WatchSink>) -> Recorders<'r> {
        let directions = self.directions;
        Recorders {
            captures: self.captures.recorder(),
            qlog: self.qlogs.recorder(),
            queues: self.queue.as_mut().map(|sink| QueueRecorder { directions, sink }),
            tcp: self.tcp.as_mut().map(|sink| sink as &mut dyn TcpSink),
            siftr: self.siftr.as_mut().map(|sink| sink as &mut dyn SiftrSink),
            ertt: self.ertt.as_mut().map(|sink| sink as &mut dyn ErttSink),
            flows: self.flows.as_mut().map(|sink| sink as &mut dyn FlowSink),
            reordering: self.reordering.as_mut().map(|(every, sink)| ReorderingRecorder { every: *every, sink }),
            displacement: self.displacement.as_mut().map(|sink| sink as &mut dyn DisplacementSink),
            series: self.series.as_mut().map(|(config, sink)| SeriesRecorder { config: *config, sink }),
            watch: feed,
        }
    }

    /// Completes the files of a run that came to `end`, those that could be written; and why one
    /// could not. Such a file has broken the run off.
    pub(crate) fn finish(self, end: Time) -> (Vec<Sealed>, anyhow::Result<()>) {
        let written = [
            self.queue.map(QueueCsv::finish),
            self.tcp.map(TcpCsv::finish),
            self.siftr.map(|log| log.finish(end)),
            self.ertt.map(ErttCsv::finish),
            self.flows.map(FlowCsv::finish),
            self.series.map(|(_, csv)| csv.finish()),
            self.reordering.map(|(_, csv)| csv.finish()),
            self.displacement.map(DisplacementCsv::finish),
        ];
        let (mut records, mut failed) = (Vec::new(), Ok(()));
        for (written, path) in written.into_iter().zip(self.paths) {
            let sealed: io::Result<Option<Sealed>> =
                written.transpose().and_then(|file| file.map(Partial::seal).transpose());
            match sealed.with_context(|| format!("cannot write {}", path.unwrap_or_default().display())) {
                Ok(sealed) => records.extend(sealed),
                Err(error) => failed = failed.and(Err(error)),
            }
        }
        for (files, written) in [self.captures.finish(), self.qlogs.finish()] {
            records.extend(files);
            failed = failed.and(written);
        }
        (records, failed)
    }
}
