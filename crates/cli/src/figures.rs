//! `ackclock report`.

use std::fs;
use std::io::Write;
use std::path::Path;

use ackclock_report::{Options, Report, Unknown};
use ackclock_run::partial::Partial;
use ackclock_scenario::nearest;
use anyhow::{Context, anyhow, bail};

use crate::args::report::ReportArgs;
use crate::console::{print, say};

/// Draws; the status to end with.
pub(crate) fn run(args: &ReportArgs) -> anyhow::Result<u8> {
    if args.figure.is_some() && args.svg.is_some() && !args.runs.is_empty() {
        bail!("--run does nothing for one --figure with --svg: records are drawn over time");
    }
    let mut report = Report::read(&args.dirs, &Options { runs: args.runs.clone() })?;
    if let Some(asked) = args.asked() {
        report.ask(&asked).map_err(explained)?;
    }
    for note in report.notes() {
        say(&format!("note: {note}"));
    }
    match &args.svg {
        Some(folder) => {
            fs::create_dir_all(folder).with_context(|| format!("cannot create the directory {}", folder.display()))?;
            let figures = report.figures()?;
            if figures.is_empty() && args.figure.is_some() {
                bail!("there is nothing to draw in these results");
            }
            for figure in &figures {
                write(&folder.join(format!("{}.svg", figure.name)), figure.svg.as_bytes())?;
            }
            let count = if figures.len() == 1 { "1 figure".to_owned() } else { format!("{} figures", figures.len()) };
            let _ = print(&format!("{}: {count}\n", folder.display()))?;
        }
        None => {
            write(&args.output, report.page().as_bytes())?;
            let _ = print(&format!("{}\n", args.output.display()))?;
        }
    }
    Ok(0)
}

/// An unknown name with what it may have been, and what there is.
fn explained(error: anyhow::Error) -> anyhow::Error {
    let Some(Unknown { name, known, .. }) = error.downcast_ref() else { return error };
    let near = nearest(name, known.iter().map(String::as_str));
    let near = near.map_or_else(String::new, |near| format!("; did you mean `{near}`?"));
    anyhow!("{error}{near}\nthere are: {}", known.join(", "))
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
