//! `ackclock reproduce`: the scenarios that stand for published results, and tables of both.
//!
//! `gallery` is which scenarios are meant, `rows` what becomes of their expectations, with metrics
//! and numbers as readers have them (`number`); `text`, `readme` and `pages` show it.

mod gallery;
mod number;
mod pages;
mod readme;
mod rows;
mod text;

use std::collections::BTreeSet;
use std::time::Instant;

use ackclock_run::execute;
use ackclock_run::judged::{self, Judged};
use ackclock_run::session::{Session, Wanted};
use ackclock_run::status::{BAD_INPUT, INTERRUPTED, MISSED};
use ackclock_scenario::Own;
use anyhow::bail;

use crate::args::reproduce::ReproduceArgs;
use crate::bar::Bar;
use crate::console::{print, print_line, say, tell};
use crate::shown::Sayer;
use gallery::{Chosen, GallerySelection};
use rows::Folder;

/// Reproduces what is asked for; the status to end with.
pub(crate) fn run(args: &ReproduceArgs, own: &Own) -> anyhow::Result<u8> {
    let begun = clock();
    let selection = gallery::select(&args.scenarios, &args.names, own)?;
    if args.readme || args.check {
        require_folders(args, &selection)?;
    }
    if selection.chosen.is_empty() && selection.broken.is_empty() {
        say(&format!("note: no [[expect]] in {} has a `source`", args.scenarios.display()));
    }
    let done = all(args, &selection);
    let totals = rows::totals(&done.folders);
    if args.json {
        for (folder, row) in done.folders.iter().flat_map(|folder| folder.rows.iter().map(move |row| (folder, row))) {
            if print_line(&row.json(&folder.name))?.is_break() {
                break;
            }
        }
    } else if !args.quiet {
        let tables = done.folders.iter().map(|folder| format!("{}\n", text::table(folder)));
        let threads = args.threads.map_or_else(execute::cores, |threads| threads.get().into());
        let threads = format!("{threads} thread{}", if threads == 1 { "" } else { "s" });
        let took = format!("{totals}; {:.1} s, {threads}\n", begun.elapsed().as_secs_f64());
        let _ = print(&tables.chain([took]).collect::<String>())?;
    }
    if let Some(out) = args.out.as_deref().filter(|_| !done.folders.is_empty()) {
        let path = pages::index(out, &done.folders, &done.pages, &totals)?;
        if !args.json && !args.quiet {
            let _ = print(&format!("{}\n", path.display()))?;
        }
    }
    let compared = tables(args, &selection, &done);
    Ok(match done.status {
        INTERRUPTED => INTERRUPTED,
        status => status.max(compared),
    })
}

/// A table is written or compared as a whole.
fn require_folders(args: &ReproduceArgs, selection: &GallerySelection) -> anyhow::Result<()> {
    let flag = if args.readme { "--readme" } else { "--check" };
    let part = selection.chosen.iter().find(|chosen| !selection.whole.contains(&chosen.place.folder));
    if let Some(part) = part {
        bail!("{flag} requires whole folders, such as `{}`", part.place.folder);
    }
    Ok(())
}

/// The results of the scenarios.
struct Done {
    folders: Vec<Folder>,
    /// Folders that lack the results of a scenario.
    incomplete: BTreeSet<String>,
    /// The pages with figures.
    pages: BTreeSet<String>,
    status: u8,
}

/// Runs the scenarios one after another. One that fails does not end the others.
fn all(args: &ReproduceArgs, selection: &GallerySelection) -> Done {
    let status = if selection.broken.is_empty() { 0 } else { BAD_INPUT };
    let mut done = Done { folders: Vec::new(), incomplete: selection.broken.clone(), pages: BTreeSet::new(), status };
    for (number, chosen) in selection.chosen.iter().enumerate() {
        let name = chosen.place.name();
        if !args.quiet {
            let runs = chosen.scenario.runs();
            let runs = if runs == 1 { "1 run".to_owned() } else { format!("{runs} runs") };
            say(&format!("{} of {}: {name}, {runs}", number + 1, selection.chosen.len()));
        }
        let judged = one(args, chosen).unwrap_or_else(|error| {
            tell(&error.context(name.clone()));
            Judged::nothing(&chosen.scenario, BAD_INPUT)
        });
        if judged.status != 0 {
            say(&format!("note: {name}: not all of its runs have results"));
            done.incomplete.insert(chosen.place.folder.clone());
            done.status = done.status.max(judged.status);
        }
        if judged.status == INTERRUPTED {
            let missing = selection.chosen[number..].iter().map(|chosen| chosen.place.folder.clone());
            done.incomplete.extend(missing);
            break;
        }
        if done.folders.last().is_none_or(|folder| folder.name != chosen.place.folder) {
            done.folders.push(Folder::new(&chosen.place.folder));
        }
        if let Some(folder) = done.folders.last_mut() {
            folder.add(chosen, &judged.evaluations);
        }
        if let (Some(out), 0) = (&args.out, judged.status) {
            match pages::figures(out, &chosen.place) {
                Ok(page) => _ = done.pages.insert(page),
                Err(error) => {
                    tell(&error.context(name));
                    done.status = done.status.max(BAD_INPUT);
                }
            }
        }
    }
    done.folders.iter_mut().for_each(Folder::finish);
    done
}

fn one(args: &ReproduceArgs, chosen: &Chosen) -> anyhow::Result<Judged> {
    let out = args.out.as_ref().map(|out| pages::folder(out, &chosen.place));
    let wanted = Wanted {
        resume: args.resume,
        // Without --resume, what an earlier one has left half done is done anew.
        overwrite: out.is_some() && !args.resume,
        out,
        threads: args.threads.map(|threads| threads.get().into()),
        ..Wanted::default()
    };
    let (threads, note) = wanted.threads(&chosen.scenario)?;
    note.iter().for_each(|note| say(note));
    let mut session = Session::open(&wanted, &chosen.scenario, Sayer::default())?;
    let bar = Bar::new(session.ledger.walk.left(), args.quiet);
    session.listener = Sayer::beside(&bar);
    judged::run(session, threads, &bar)
}

/// Writes or compares the tables in READMEs; the status to end with.
fn tables(args: &ReproduceArgs, selection: &GallerySelection, done: &Done) -> u8 {
    let mut worst = 0;
    if !args.readme && !args.check {
        return worst;
    }
    for folder in &done.folders {
        let path = args.scenarios.join(&folder.name).join("README.md");
        if done.incomplete.contains(&folder.name) {
            say(&format!("note: {}: not all of its scenarios have results", path.display()));
            continue;
        }
        let result = match args.check {
            true => readme::difference(&path, folder),
            false => readme::update(&path, folder).map(|()| None),
        };
        match result {
            Ok(None) => {}
            Ok(Some(difference)) => {
                say(&difference);
                worst = worst.max(MISSED);
            }
            Err(error) => {
                tell(&error);
                worst = worst.max(BAD_INPUT);
            }
        }
    }
    let known = |name: &str| done.folders.iter().any(|folder| folder.name == name) || done.incomplete.contains(name);
    for name in selection.whole.iter().filter(|name| args.check && !known(name)) {
        let path = args.scenarios.join(name).join("README.md");
        if readme::has_place(&path) {
            say(&format!("differs: {} has a table, and no [[expect]] there has a `source`", path.display()));
            worst = worst.max(MISSED);
        }
    }
    worst
}

#[expect(clippy::disallowed_methods, reason = "how long it takes a person to wait, which no file has")]
fn clock() -> Instant {
    Instant::now()
}
