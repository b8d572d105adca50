//! The output of programs, written to files or held in memory.

use std::fs::File;
use std::io::{self, Read};
use std::path::{Path, PathBuf};
use std::process::{Child, Command, Stdio};
use std::sync::mpsc::{Receiver, channel};
use std::thread;
use std::time::Duration;

use ackclock_sim::spec::CommandSpec;

/// The most bytes of standard output that are read: a week of `ping` prints some 50 MB.
const MOST_STDOUT: u64 = 64 << 20;

/// The most bytes of standard error that are read.
const MOST_STDERR: u64 = 64 << 10;

/// The time to wait for more output after the end of a program, whose descendants may keep its
/// pipes open.
const PATIENCE: Duration = Duration::from_millis(500);

/// The output of a program that is running or has ended.
#[derive(Debug)]
pub(super) struct ProgramOutput {
    stdout: OutputStream,
    stderr: OutputStream,
}

/// The complete output of a program.
#[derive(Debug)]
pub(super) struct Printed {
    pub(super) stdout: io::Result<Vec<u8>>,
    pub(super) stderr: Vec<u8>,
}

#[derive(Debug)]
enum OutputStream {
    Nowhere,
    File(PathBuf),
    /// A pipe that nobody reads yet.
    Pipe,
    /// A pipe that a thread reads and passes on in parts.
    Memory(Receiver<io::Result<Vec<u8>>>),
}

impl ProgramOutput {
    /// Directs the output of a program that is about to be started.
    pub(super) fn prepare(
        command: &mut Command,
        spec: &CommandSpec,
        directory: Option<&Path>,
    ) -> io::Result<ProgramOutput> {
        if spec.terminal {
            return Ok(ProgramOutput { stdout: OutputStream::Nowhere, stderr: OutputStream::Nowhere });
        }
        let Some(directory) = directory else {
            let stdout = if spec.measure.is_some() { OutputStream::Pipe } else { OutputStream::Nowhere };
            command.stdout(if spec.measure.is_some() { Stdio::piped() } else { Stdio::null() }).stderr(Stdio::piped());
            return Ok(ProgramOutput { stdout, stderr: OutputStream::Pipe });
        };
        let [stdout, stderr] = ["stdout", "stderr"].map(|stream| directory.join(format!("{}.{stream}", spec.id)));
        command.stdout(File::create(&stdout)?).stderr(File::create(&stderr)?);
        Ok(ProgramOutput { stdout: OutputStream::File(stdout), stderr: OutputStream::File(stderr) })
    }

    /// Starts a thread for each pipe.
    pub(super) fn begin(self, child: &mut Child) -> ProgramOutput {
        ProgramOutput {
            stdout: self.stdout.begin(child.stdout.take(), MOST_STDOUT),
            stderr: self.stderr.begin(child.stderr.take(), MOST_STDERR),
        }
    }

    /// The output of a program that has ended.
    pub(super) fn read(self) -> Printed {
        Printed { stdout: self.stdout.read(MOST_STDOUT), stderr: self.stderr.read(MOST_STDERR).unwrap_or_default() }
    }
}

impl OutputStream {
    fn begin(self, pipe: Option<impl Read + Send + 'static>, most: u64) -> OutputStream {
        let (OutputStream::Pipe, Some(mut pipe)) = (&self, pipe) else { return self };
        let (sender, parts) = channel();
        let reader = thread::Builder::new().name(String::from("output")).spawn(move || {
            let mut left = most;
            let mut buffer = vec![0; 64 << 10];
            loop {
                // Output beyond the limit is read and discarded, so that the program does not
                // block.
                let part = match pipe.read(&mut buffer) {
                    Ok(0) => return,
                    Ok(read) => Ok(buffer[..read.min(usize::try_from(left).unwrap_or(usize::MAX))].to_vec()),
                    Err(error) if error.kind() == io::ErrorKind::Interrupted => continue,
                    Err(error) => Err(error),
                };
                let failed = part.is_err();
                left -= part.as_ref().map_or(0, |part| part.len() as u64);
                if part.as_ref().map_or(true, |part| !part.is_empty()) && sender.send(part).is_err() || failed {
                    return;
                }
            }
        });
        // Without a thread the pipe is closed, and the program gets an error.
        reader.map_or(OutputStream::Nowhere, |_| OutputStream::Memory(parts))
    }

    fn read(self, most: u64) -> io::Result<Vec<u8>> {
        let mut all = Vec::new();
        match self {
            OutputStream::Nowhere | OutputStream::Pipe => {}
            OutputStream::File(path) => {
                File::open(path)?.take(most).read_to_end(&mut all)?;
            }
            OutputStream::Memory(parts) => {
                while let Ok(part) = parts.recv_timeout(PATIENCE) {
                    all.extend(part?);
                }
            }
        }
        Ok(all)
    }
}
