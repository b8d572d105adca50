//! What a run is given, and how it ends.

use std::io;
use std::path::PathBuf;
use std::sync::Arc;

use ackclock_sim::RunError;
use ackclock_trace::Summary;

use crate::control::{ChangeReader, Control};
use crate::watch::LiveWatch;

/// The outputs and controls of a run.
#[derive(Clone, Debug, Default)]
pub struct Options {
    /// The directory for the output of commands, `ID.stdout` and `ID.stderr`. Without it, only
    /// output that is measured is kept, in memory.
    pub commands: Option<PathBuf>,
    /// The capture (pcapng) of all packets that pass the devices, or that stacks send and receive.
    pub capture: Option<PathBuf>,
    /// The most bytes of each packet in the capture; `None` captures all.
    pub snap: Option<u32>,
    /// Receives the punctuality of a run in real time while it goes on.
    pub watch: Option<Arc<dyn LiveWatch>>,
    /// The source of changes during a run.
    pub control: Option<Control>,
    /// Reads the changes in a capture; without it, a capture with changes is refused.
    pub changes: Option<ChangeReader>,
}

/// The result of a run.
#[derive(Debug)]
pub struct Outcome {
    /// The summary up to the end of the run.
    pub summary: Summary<()>,
    /// The error that ended the run early; the summary is then marked partial.
    pub broken_off: Option<LiveError>,
}

/// The reason why a run did not begin, or ended early.
#[derive(Debug, thiserror::Error)]
pub enum LiveError {
    /// A requirement of a live run is missing.
    #[error("{0}")]
    Missing(String),
    /// A namespace, a device or an address could not be created.
    #[error("host {host}: {what}")]
    SetUp {
        /// The host.
        host: String,
        /// The object that could not be created.
        what: String,
        /// The kernel's error.
        source: io::Error,
    },
    /// A device no longer exists or works.
    #[error("host {host}: the device {tun} is gone or down")]
    Device {
        /// The host.
        host: String,
        /// The device.
        tun: String,
        /// The kernel's error.
        source: io::Error,
    },
    /// A file could not be read or written.
    #[error("{}", path.display())]
    File {
        /// The file.
        path: PathBuf,
        /// The error.
        source: io::Error,
    },
    /// A capture is invalid, or does not fit the scenario.
    #[error("{}: {problem}", path.display())]
    Capture {
        /// The file.
        path: PathBuf,
        /// The problem and its position.
        problem: String,
    },
    /// A signal ended the run.
    #[error("interrupted")]
    Interrupted,
    /// The run itself failed.
    #[error(transparent)]
    Run(#[from] RunError),
}
