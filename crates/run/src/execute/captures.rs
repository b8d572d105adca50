//! The captures of a run, one file for each place.

use std::io;
use std::ops::ControlFlow;
use std::path::PathBuf;

use ackclock_scenario::Scenario;
use ackclock_sim::{CapturePoint, CaptureRecorder};
use ackclock_trace::{CaptureRecord, CaptureSink, PcapNg};
use anyhow::Context;

use crate::output::{PCAPNG, Places};
use crate::partial::{Partial, Sealed};

/// The captures that a run writes while it goes on; none by default.
#[derive(Debug, Default)]
pub(super) struct Captures {
    points: Vec<CapturePoint>,
    snaplen: u32,
    files: CaptureFiles,
    paths: Vec<PathBuf>,
}

#[derive(Debug, Default)]
struct CaptureFiles(Vec<PcapNg<Partial>>);

impl CaptureSink for CaptureFiles {
    fn record(&mut self, record: &CaptureRecord<'_>) -> ControlFlow<()> {
        self.0[record.capture].add(record)
    }
}

impl Captures {
    /// Begins what the scenario asks for.
    pub(super) fn open(scenario: &Scenario, run: usize, places: &Places) -> anyhow::Result<Captures> {
        let (captures, snaplen) = scenario.captures(run)?;
        let mut opened = Captures { snaplen, ..Captures::default() };
        for capture in captures {
            let file = places.create(run, &format!("{}{PCAPNG}", capture.name))?;
            opened.paths.push(file.path().to_owned());
            opened.points.push(capture.point);
            let [before, behind, dropped] = ["in", "out", "dropped"].map(|place| format!("{} {place}", capture.name));
            let of_link = [
                (&*before, "packets that are offered to the queue"),
                (&*behind, "packets that leave the queue"),
                (&*dropped, "packets that the queue drops or the link loses, with the reason as comment"),
            ];
            let of_host = [(&*capture.name, "packets that the host sends and receives")];
            let interfaces = match capture.point {
                CapturePoint::Direction(_) => &of_link[..],
                CapturePoint::Host(_) => &of_host[..],
            };
            opened.files.0.push(PcapNg::new(file, interfaces, snaplen));
        }
        Ok(opened)
    }

    pub(super) fn recorder(&mut self) -> Option<CaptureRecorder<'_>> {
        let Captures { points, snaplen, files, .. } = self;
        (!points.is_empty()).then_some(CaptureRecorder { points, snaplen: *snaplen, sink: files })
    }

    /// Completes those files that could be written; and why one could not.
    pub(super) fn finish(self) -> (Vec<Sealed>, anyhow::Result<()>) {
        seal_all(self.files.0.into_iter().map(PcapNg::finish), self.paths)
    }
}

/// Completes files that have these paths, those that could be written; and why one could not.
pub(super) fn seal_all(
    files: impl Iterator<Item = io::Result<Partial>>,
    paths: Vec<PathBuf>,
) -> (Vec<Sealed>, anyhow::Result<()>) {
    let (mut sealed, mut failed) = (Vec::new(), Ok(()));
    for (file, path) in files.zip(paths) {
        match file.and_then(Partial::seal).with_context(|| format!("cannot write {}", path.display())) {
            Ok(file) => sealed.push(file),
            Err(error) => failed = failed.and(Err(error)),
        }
    }
    (sealed, failed)
}
