//! `ackclock packetdrill`: scripts on all cores, results in the order given.

mod files;
mod judge;
mod junit;
mod record;
mod tap;

use std::fs::{self, File};
use std::io::{self, BufWriter, Write};
use std::ops::ControlFlow;
use std::path::{Path, PathBuf};

use ackclock_run::execute;
use ackclock_run::partial::Partial;
use ackclock_run::status::{BAD_INPUT, MISSED};
use anyhow::{Context, bail};

use crate::args::DrillArgs;
use crate::console::print;

use judge::ScriptJudge;
use record::{Ending, ScriptRecord, VerdictCounts};

/// Runs the scripts; the status to end with.
pub(crate) fn run(args: &DrillArgs) -> anyhow::Result<u8> {
    let judge = ScriptJudge::new(args)?;
    let report = args
        .junit
        .as_deref()
        .map(|path| ReportFile::prepare(path).with_context(|| format!("cannot use --junit {}", path.display())));
    let report = report.transpose()?;
    let scripts = files::collect(&args.scripts);
    let threads = args.threads.map_or_else(execute::cores, |threads| threads.get().into());
    let mut counts = VerdictCounts::default();
    let mut records: Vec<ScriptRecord> = Vec::new();
    let mut listening = !args.tap || print(&tap::head(scripts.len()))?.is_continue();
    let mut written = Ok(());
    if listening || report.is_some() {
        execute::in_order(
            scripts.len(),
            threads,
            |index, _| judge.script(&scripts[index]),
            |index, record| {
                counts.add(&record);
                if listening {
                    let text = match args.tap {
                        true => tap::point(index, &record),
                        false if args.quiet && record.ending == Ending::Passed => String::new(),
                        false => record.to_string(),
                    };
                    match if text.is_empty() { Ok(ControlFlow::Continue(())) } else { print(&text) } {
                        Ok(reader) => listening = reader.is_continue(),
                        Err(error) => {
                            written = Err(error);
                            return ControlFlow::Break(());
                        }
                    }
                }
                if report.is_some() {
                    records.push(record);
                } else if !listening {
                    // Nobody reads on and nothing is kept.
                    return ControlFlow::Break(());
                }
                ControlFlow::Continue(())
            },
        );
    }
    written?;
    if let (Some(report), Some(path)) = (report, &args.junit) {
        report.complete(&records).with_context(|| format!("cannot write {}", path.display()))?;
    }
    if listening && !args.tap && !args.quiet {
        let _ = print(&format!("{counts}\n"))?;
    }
    Ok(match counts {
        VerdictCounts { errors: 1.., .. } => BAD_INPUT,
        VerdictCounts { failed: 1.., .. } | VerdictCounts { unsupported: 1.., .. } => MISSED,
        _ => 0,
    })
}

/// The file of `--junit`: what was there stays until the results are complete.
#[derive(Debug)]
enum ReportFile {
    Regular {
        dir: PathBuf,
        file: Box<Partial>,
    },
    /// A terminal, a pipe: written as it is.
    Special(File),
}

impl ReportFile {
    /// Makes sure, before anything runs, that the file can be written.
    fn prepare(path: &Path) -> anyhow::Result<ReportFile> {
        // The file that a link points at is replaced, not the link.
        let path = fs::canonicalize(path).unwrap_or_else(|_| path.to_owned());
        if let Ok(there) = fs::metadata(&path) {
            if there.is_dir() {
                bail!("it is a directory");
            }
            let file = File::options().append(true).open(&path)?;
            if !there.is_file() {
                return Ok(ReportFile::Special(file));
            }
        }
        let Some(name) = path.file_name().and_then(|name| name.to_str()) else { bail!("its name is not UTF-8") };
        let dir = path.parent().filter(|dir| !dir.as_os_str().is_empty()).unwrap_or(Path::new(".")).to_owned();
        let file = Box::new(Partial::create(&dir, name)?);
        Ok(ReportFile::Regular { dir, file })
    }

    fn complete(self, records: &[ScriptRecord]) -> io::Result<()> {
        match self {
            ReportFile::Regular { dir, mut file } => {
                junit::write(&mut *file, records)?;
                file.seal()?.publish(&dir)?;
                Ok(())
            }
            ReportFile::Special(file) => {
                let mut file = BufWriter::new(file);
                junit::write(&mut file, records)?;
                file.flush()
            }
        }
    }
}
