//! `ackclock report`.

use std::fs;
use std::io::Write;
use std::path::Path;

use ackclock_report::{Options, Report};
use anyhow::{Context, bail};

use crate::args::report::ReportArgs;
use crate::partial::Partial;
use crate::{print, say};

/// Draws; the status to end with.
pub(crate) fn run(args: &ReportArgs) -> anyhow::Result<u8> {
    let report = Report::read(&args.dirs, &Options { runs: args.runs.clone() })?;
    for note in report.notes() {
        say(&format!("note: {note}"));
    }
    match &args.svg {
        Some(folder) => {
            fs::create_dir_all(folder).with_context(|| format!("cannot create the directory {}", folder.display()))?;
            let figures = report.figures()?;
            for figure in &figures {
                write(&folder.join(format!("{}.svg", figure.name)), figure.svg.as_bytes())?;
            }
            let _ = print(&format!("{}: {} figures\n", folder.display(), figures.len()))?;
        }
        None => {
            write(&args.output, report.page().as_bytes())?;
            let _ = print(&format!("{}\n", args.output.display()))?;
        }
    }
    Ok(0)
}

/// Writes a file that appears when it is complete.
pub(crate) fn write(path: &Path, contents: &[u8]) -> anyhow::Result<()> {
    let cannot = || format!("cannot write {}", path.display());
    if path.is_dir() {
        bail!("{}: it is a directory", cannot());
    }
    let folder = match path.parent() {
        Some(folder) if !folder.as_os_str().is_empty() => folder,
        _ => Path::new("."),
    };
    let name = path.file_name().and_then(|name| name.to_str()).with_context(cannot)?;
    let mut file = Partial::create(folder, name).with_context(cannot)?;
    file.write_all(contents).with_context(cannot)?;
    file.seal().with_context(cannot)?.publish(folder).with_context(cannot)
}
