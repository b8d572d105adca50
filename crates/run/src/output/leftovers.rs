//! Files of a run that ended before it could complete its directory: by a kill, a crash, a power
//! failure.

use std::ffi::OsString;
use std::fs::{self, File};
use std::io::{self, BufRead, BufReader};
use std::path::{Path, PathBuf};

use ackclock_trace::open_regular;
use anyhow::{Context, bail};

use crate::partial;

use super::layout::{
    COMMANDS, MANIFEST, RUNS, SUMMARIES, depth_of, has_plan, is_ours, is_plan, manifest, names_in, read_manifest,
};

/// Folders for it: `unfinished-1` and so on.
const KEPT: &str = "unfinished-";

/// Returns `true` if a name is that of a folder with earlier results.
pub(super) fn is_kept(name: &OsString) -> bool {
    let number = name.to_str().and_then(|name| name.strip_prefix(KEPT));
    number.is_some_and(|number| !number.is_empty() && number.bytes().all(|byte| byte.is_ascii_digit()))
}

/// Refuses a directory with results that are partial: to replace them is for the user to decide.
pub(super) fn refuse_partial(dir: &Path) -> anyhow::Result<()> {
    let resumable = |runs: usize, of: &str| {
        let runs = if runs == 1 { "1 run".to_owned() } else { format!("{runs} runs") };
        format!(
            "{} holds {runs}{of} of a sweep that was broken off; --resume goes on with the others, --overwrite \
             begins again",
            dir.display()
        )
    };
    if let Some(manifest) = manifest(dir) {
        let lines = count_lines(&dir.join(SUMMARIES));
        return match (manifest["partial"] == true, lines) {
            (false, _) => Ok(()),
            (true, Some(runs)) => bail!(resumable(runs, &format!(" of {}", manifest["runs"]))),
            (true, None) => {
                bail!("{} holds the results of a run that was broken off; --overwrite replaces them", dir.display())
            }
        };
    }
    let hidden = partial::hidden(dir, SUMMARIES);
    let runs = [hidden, dir.join(SUMMARIES)].iter().filter_map(|path| count_lines(path)).max().unwrap_or(0);
    if has_plan(dir) && runs > 0 {
        bail!(resumable(runs, ""));
    }
    Ok(())
}

/// The whole lines of a file, if it is there.
pub(super) fn count_lines(path: &Path) -> Option<usize> {
    let mut reader = BufReader::new(open_regular(path).ok()?);
    let (mut lines, mut line) = (0, Vec::new());
    while reader.read_until(b'\n', &mut line).is_ok_and(|read| read > 0) && line.ends_with(b"\n") {
        lines += 1;
        line.clear();
    }
    Some(lines)
}

/// Moves what was left among these names in the directory, if there is anything in it, to a folder
/// of its own, under the names that it would have got. Tells what is there now.
///
/// `unfinished` is the manifest of a run that had given some of its files their names, but not all.
pub(super) fn put_aside(
    dir: &Path,
    names: &[OsString],
    unfinished: Option<&serde_json::Value>,
) -> anyhow::Result<Option<String>> {
    let hidden = names.iter().filter(|name| is_ours(name)).filter_map(|name| name.to_str());
    let mut left: Vec<(PathBuf, String)> = hidden.map(|name| (dir.join(name), plain(name))).collect();
    let published = unfinished.into_iter().flat_map(names_in).filter(|name| depth_of(name).is_some());
    for name in published {
        let from = dir.join(name);
        if left.iter().any(|(_, hidden)| hidden == name) {
            // The file is of an earlier output, which this one was about to replace.
            let _ = fs::remove_file(from);
        } else if from.is_file() {
            left.push((from, name.clone()));
        }
    }
    // The plan of the runs says nothing by itself.
    left.retain(|(from, name)| !is_plan(name) || fs::remove_file(from).is_err());
    // A manifest that was cut off says nothing.
    left.retain(|(from, name)| name != MANIFEST || read_manifest(from).is_some() || fs::remove_file(from).is_err());
    // Folders first: files may belong into them.
    left.sort_by_key(|(from, _)| !from.is_dir());
    if left.iter().all(|(from, _)| is_empty(from)) {
        for (from, _) in left {
            let _ = fs::remove_file(&from).or_else(|_| fs::remove_dir_all(&from));
        }
        return Ok(None);
    }
    let folder = (1u64..).map(|number| dir.join(format!("{KEPT}{number}"))).find(|folder| !folder.exists());
    let folder = folder.unwrap_or_else(|| unreachable!("there are fewer folders than numbers"));
    let finished = move_to(&folder, dir, &left)
        .with_context(|| format!("cannot move the results of a killed run to {}", folder.display()))?;
    let runs = match finished {
        0 => String::new(),
        1 => ", with 1 finished run".to_owned(),
        finished => format!(", with {finished} finished runs"),
    };
    Ok(Some(format!("the results that a killed run left in {} are kept in {}{runs}", dir.display(), folder.display())))
}

/// Tells how many runs there are.
fn move_to(folder: &Path, dir: &Path, left: &[(PathBuf, String)]) -> io::Result<usize> {
    let mut finished = 0;
    for (from, name) in left {
        let to = folder.join(name);
        fs::create_dir_all(to.parent().unwrap_or(folder))?;
        fs::rename(from, &to)?;
        if name == SUMMARIES {
            finished = whole_lines(&to)?;
        }
        // Folders of an output that it was in are empty now, or somebody else's.
        let above = from.ancestors().skip(1).take_while(|above| *above != dir);
        above.for_each(|above| _ = fs::remove_dir(above));
    }
    Ok(finished)
}

/// Cuts off what was written of a last line, and counts those before.
fn whole_lines(path: &Path) -> io::Result<usize> {
    let mut reader = BufReader::new(open_regular(path)?);
    let (mut lines, mut whole, mut line) = (0, 0, Vec::new());
    while reader.read_until(b'\n', &mut line)? > 0 && line.ends_with(b"\n") {
        (lines, whole) = (lines + 1, whole + line.len() as u64);
        line.clear();
    }
    File::options().write(true).open(path)?.set_len(whole)?;
    Ok(lines)
}

fn is_empty(path: &Path) -> bool {
    match fs::read_dir(path) {
        Ok(mut entries) => entries.next().is_none(),
        Err(_) => fs::metadata(path).is_ok_and(|found| found.len() == 0),
    }
}

/// The name that a hidden file would have got. Other names than these have no folders.
pub(super) fn plain(hidden: &str) -> String {
    let name = hidden.strip_prefix('.').and_then(|name| name.strip_suffix(".partial")).unwrap_or(hidden);
    let of_run = |name: &str| match name.strip_prefix(COMMANDS).and_then(|file| file.strip_prefix('-')) {
        Some(file) => format!("{COMMANDS}/{file}"),
        None => name.to_owned(),
    };
    let of_sweep = name.strip_prefix(RUNS).and_then(|rest| rest.strip_prefix('-')?.split_once('-'));
    match of_sweep {
        Some((run, file)) => format!("{RUNS}/{run}/{}", of_run(file)),
        None => of_run(name),
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::partial;

    #[test]
    fn hidden_names_are_those_that_files_would_have_got() {
        for name in [
            "summary.jsonl",
            "manifest.json",
            "queue.csv",
            "commands",
            "commands/left-0.stdout",
            "runs/0007/tcp.csv",
            "runs/0007/commands",
            "runs/0007/commands/left-0.stdout",
        ] {
            let hidden = partial::hidden(Path::new(""), name);
            assert_eq!(plain(hidden.to_str().expect("UTF-8")), name);
            assert!(is_ours(hidden.as_os_str()), "{name}");
        }
    }
}
