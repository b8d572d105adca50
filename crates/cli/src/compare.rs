//! `ackclock compare`: the numbers of two results beside each other.
//!
//! Runs are matched by the sweep's parameters and their number; flows, groups of flows, workloads
//! with their size classes, links, hosts and programs by id. Every number of the summary is
//! compared, under the name by which an `[[expect]]` refers to it; the table shows the main ones.
//! Points with several repetitions on both sides are compared by their means and spreads. Captures
//! are compared packet by packet ([`captures`]). A scenario is run with the settings of either side
//! ([`runs`]).

mod align;
mod captures;
mod comparison;
mod pair;
mod parameters;
mod points;
mod runs;
mod select;
mod shown;
mod side;
mod sums;
mod table;

use ackclock_scenario::Own;
use anyhow::bail;

use crate::args::compare::CompareArgs;
use crate::console::print;
use comparison::ResultComparison;
use side::ResultSide;

/// Compares; the status to end with.
pub(crate) fn run(args: &CompareArgs, own: &Own) -> anyhow::Result<u8> {
    if args.b.is_none() && runs::is_scenario(&args.a) {
        return runs::compare(args, own);
    }
    if !args.set.is_empty() || args.out.is_some() {
        bail!("--set and --out apply to a scenario, with --a and --b: `ackclock compare FILE.toml --a ... --b ...`");
    }
    if let Some(b) = &args.b {
        match [&args.a, b].map(|path| captures::is_capture(path)) {
            [true, true] => {
                if args.is_about_results() {
                    bail!("{} and {b} are captures: --a, --b, --test, --correct and --all-rows do not apply", args.a);
                }
                let _ = print(&captures::compare(&args.a, b, args.within, args.json)?)?;
                return Ok(0);
            }
            [true, false] => bail!("{} is a capture and {b} is none: compare two captures or two results", args.a),
            [false, true] => bail!("{b} is a capture and {} is none: compare two captures or two results", args.a),
            [false, false] => {}
        }
    }
    if args.within.is_some() {
        bail!("--within applies to captures, and to a scenario");
    }
    let mut a = ResultSide::read(&args.a, "--a", &args.of_a)?;
    let mut b = ResultSide::read(args.b.as_ref().unwrap_or(&args.a), "--b", &args.of_b)?;
    let axes = align::align(&mut a, &mut b)?;
    let comparison = ResultComparison::new(&a, &b, axes, args);
    if comparison.pairs.is_empty() {
        bail!(
            "{} and {} have no run in common: they are sweeps over different parameters; --a and --b select points",
            a.name,
            b.name
        );
    }
    if comparison.points.is_empty() && (args.test.is_some() || args.correct.is_some()) {
        bail!("--test and --correct require a point that both sides have with several repetitions");
    }
    let text = if args.json { format!("{}\n", comparison.json()) } else { table::text(&comparison, args.all_rows) };
    let _ = print(&text)?;
    Ok(0)
}
