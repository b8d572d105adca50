//! `ackclock export`: records of a run for other programs.

mod csv;
mod estats;
mod flent;
mod mahimahi;
mod run;
mod sheet;
mod spp;

use std::io::{self, Write};
use std::ops::ControlFlow;
use std::path::Path;

use ackclock_run::partial::Partial;
use ackclock_scenario::{LoadError, Own};
use anyhow::{Context, bail};

use crate::args::export::{ExportArgs, ExportFormat};
use crate::check::load;
use crate::console::print_with;
use run::Run;

/// Exports; the status to end with.
pub(crate) fn run(args: &ExportArgs, own: &Own) -> anyhow::Result<u8> {
    if args.format != ExportFormat::Mahimahi && (args.link.is_some() || args.drops) {
        bail!("--link and --drops are for --format mahimahi");
    }
    if !matches!(args.format, ExportFormat::Spp | ExportFormat::Estats) && args.flow.is_some() {
        bail!("--flow is for --format spp and estats");
    }
    if args.format == ExportFormat::Csv {
        let write = |out: &mut dyn Write| csv::write(&args.dir, &args.table, args.run, out);
        return to_output(args, write);
    }
    if args.table != "flows" {
        bail!("--table is for --format csv");
    }
    if args.format == ExportFormat::Tc {
        let text = tc(&args.dir, args.run.unwrap_or(0), own)?;
        let write = |out: &mut dyn Write| Ok(out.write_all(text.as_bytes())?);
        return to_output(args, write);
    }
    let run = Run::open(&args.dir, args.run)?;
    let write = |out: &mut dyn Write| match args.format {
        ExportFormat::Mahimahi => mahimahi::write(&run, args.link.as_deref().unwrap_or_default(), args.drops, out),
        ExportFormat::Flent => flent::write(&run, out),
        ExportFormat::Spp => spp::write(&run, args.flow.as_deref().unwrap_or_default(), out),
        ExportFormat::Estats => estats::write(&run, args.flow.as_deref().unwrap_or_default(), out),
        ExportFormat::Csv | ExportFormat::Tc => Ok(()),
    };
    to_output(args, write)
}

/// Writes to standard output, or to the file that was asked for.
fn to_output(args: &ExportArgs, write: impl FnOnce(&mut dyn Write) -> anyhow::Result<()>) -> anyhow::Result<u8> {
    match &args.output {
        None => to_stdout(write)?,
        Some(path) => to_file(path, write)?,
    }
    Ok(0)
}

/// The links of a scenario's run, as a script for `tc`.
fn tc(path: &Path, number: u64, own: &Own) -> anyhow::Result<String> {
    if path.is_dir() {
        bail!("{}: it is a directory; expected a scenario file", path.display());
    }
    let scenario = load(path, &[], own)?;
    let runs = scenario.runs() as u64;
    if number >= runs {
        bail!("--run {number}: expected a run from 0 to {}", runs.max(1) - 1);
    }
    let spec = scenario.read_spec(number as usize).map_err(LoadError::from)?;
    Ok(ackclock_tc::export(&spec.links))
}

/// A reader that has left is no error.
fn to_stdout(write: impl FnOnce(&mut dyn Write) -> anyhow::Result<()>) -> anyhow::Result<()> {
    let mut failed = None;
    let ended = print_with(|out| {
        write(out).or_else(|error| match error.downcast::<io::Error>() {
            Ok(error) => Err(error),
            Err(error) => {
                failed = Some(error);
                Ok(())
            }
        })
    })?;
    match (failed, ended) {
        (Some(error), ControlFlow::Continue(())) => Err(error),
        _ => Ok(()),
    }
}

/// The file appears when it is complete.
pub(crate) fn to_file(path: &Path, write: impl FnOnce(&mut dyn Write) -> anyhow::Result<()>) -> anyhow::Result<()> {
    let cannot = || format!("--output: cannot write {}", path.display());
    if path.is_dir() {
        bail!("{}: it is a directory", cannot());
    }
    let folder = path.parent().filter(|folder| !folder.as_os_str().is_empty()).unwrap_or(Path::new("."));
    let name = path.file_name().and_then(|name| name.to_str()).with_context(cannot)?;
    let mut file = Partial::create(folder, name).with_context(cannot)?;
    write(&mut file).map_err(|error| if error.is::<io::Error>() { error.context(cannot()) } else { error })?;
    file.seal().with_context(cannot)?.publish(folder).with_context(cannot)
}
