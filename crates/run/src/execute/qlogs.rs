//! The logs of loss recovery of a run, one file for each sender.

use std::ops::ControlFlow;
use std::path::PathBuf;

use ackclock_scenario::Scenario;
use ackclock_sim::{QlogPoint, QlogRecorder};
use ackclock_trace::{QlogRecord, QlogSeq, QlogSink};

use super::captures::seal_all;
use crate::output::{Places, SQLOG};
use crate::partial::{Partial, Sealed};

/// The logs that a run writes while it goes on; none by default.
#[derive(Debug, Default)]
pub(super) struct Qlogs {
    points: Vec<QlogPoint>,
    files: Files,
    paths: Vec<PathBuf>,
}

#[derive(Debug, Default)]
struct Files(Vec<QlogSeq<Partial>>);

impl QlogSink for Files {
    fn record(&mut self, record: &QlogRecord) -> ControlFlow<()> {
        self.0[record.log].add(record.at, record.subflow, &record.event)
    }
}

impl Qlogs {
    /// Begins what the scenario asks for.
    pub(super) fn open(scenario: &Scenario, run: usize, places: &Places) -> anyhow::Result<Qlogs> {
        let mut opened = Qlogs::default();
        for log in scenario.qlogs(run)? {
            let file = places.create(run, &format!("{}{SQLOG}", log.name))?;
            opened.paths.push(file.path().to_owned());
            opened.points.push(log.point);
            opened.files.0.push(QlogSeq::new(file, &log.name));
        }
        Ok(opened)
    }

    pub(super) fn recorder(&mut self) -> Option<QlogRecorder<'_>> {
        let Qlogs { points, files, .. } = self;
        (!points.is_empty()).then_some(QlogRecorder { points, sink: files })
    }

    /// Completes those files that could be written; and why one could not.
    pub(super) fn finish(self) -> (Vec<Sealed>, anyhow::Result<()>) {
        seal_all(self.files.0.into_iter().map(QlogSeq::finish), self.paths)
    }
}
