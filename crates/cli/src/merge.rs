//! `ackclock merge`: the parts of a sweep become one result, as if one process had done all runs.

use std::path::Path;

use ackclock_run::merge::Parts;
use ackclock_run::selection::Selection;
use ackclock_run::session::{Session, Wanted};
use ackclock_scenario::Own;

use crate::args::merge::MergeArgs;
use crate::session;
use crate::shown::{Shown, Wish};

/// Merges; the status to end with.
pub(crate) fn run(args: &MergeArgs, own: &Own) -> anyhow::Result<u8> {
    let parts = Parts::open(&args.dirs, &args.out)?;
    let scenario = parts.scenario(args.files.as_deref().unwrap_or(Path::new("")), own)?;
    let wanted = Wanted { out: Some(args.out.clone()), overwrite: args.overwrite, ..Wanted::default() };
    let wish = Wish {
        json: false,
        tables: !args.quiet,
        columns: &args.columns,
        all_rows: args.all_rows,
        expectations: false,
        out: Some(&args.out),
    };
    let runs = Selection::of(&scenario, None, None)?;
    let mut session = Session::open(&wanted, &scenario, Shown::new(wish, &scenario, &runs)?)?;
    parts.give(&mut session)?;
    session::finish(session)
}
