//! The gallery's scenarios, and the selection among them.

use std::collections::{BTreeMap, BTreeSet};
use std::fs;
use std::path::{Path, PathBuf};

use ackclock_scenario::{LoadError, Own, Scenario};
use anyhow::{Context, bail};

use crate::check;
use crate::console::{say, tell};

/// A scenario file in a folder.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) struct Place {
    pub(crate) folder: String,
    /// The file's name without its extension.
    pub(crate) file: String,
    pub(crate) path: PathBuf,
}

impl Place {
    pub(crate) fn name(&self) -> String {
        format!("{}/{}", self.folder, self.file)
    }
}

/// A scenario that stands for published results.
pub(crate) struct Chosen {
    pub(crate) place: Place,
    pub(crate) scenario: Scenario,
    /// The sources that are meant; `None` for all.
    sources: Option<BTreeSet<String>>,
}

impl Chosen {
    pub(crate) fn wants(&self, source: &str) -> bool {
        self.sources.as_ref().is_none_or(|sources| sources.contains(source))
    }
}

/// The scenarios that the names on the command line mean.
#[derive(Default)]
pub(crate) struct GallerySelection {
    pub(crate) chosen: Vec<Chosen>,
    /// Folders of which everything is meant.
    pub(crate) whole: BTreeSet<String>,
    /// Folders with a file that cannot be read; why has been said.
    pub(crate) broken: BTreeSet<String>,
}

/// A name: a folder, or one of its files, and a source, or a part of one.
struct Name<'a> {
    text: &'a str,
    folder: &'a str,
    file: Option<&'a str>,
    source: Option<&'a str>,
}

impl<'a> Name<'a> {
    fn read(text: &'a str, dir: &Path) -> Name<'a> {
        let (target, source) = match text.split_once(':') {
            Some((target, source)) => (target, Some(source.trim())),
            None => (text, None),
        };
        // A path is taken as well.
        let dir = dir.to_str().map(|dir| dir.trim_end_matches('/'));
        let inside = dir.and_then(|dir| target.strip_prefix(dir)).and_then(|rest| rest.strip_prefix('/'));
        let target = inside.unwrap_or(target).trim_end_matches('/');
        let (folder, file) = match target.split_once('/') {
            Some((folder, file)) => (folder, Some(file.strip_suffix(".toml").unwrap_or(file))),
            None => (target, None),
        };
        Name { text, folder, file, source }
    }

    fn covers(&self, place: &Place) -> bool {
        place.folder == self.folder && self.file.is_none_or(|file| place.file == file)
    }
}

/// All files `DIR/FOLDER/FILE.toml`, sorted.
fn places(dir: &Path) -> anyhow::Result<Vec<Place>> {
    let cannot = |path: &Path| format!("cannot read the directory {}", path.display());
    let entries = |path: &Path| -> anyhow::Result<Vec<PathBuf>> {
        let entries = fs::read_dir(path).with_context(|| cannot(path))?;
        let mut paths = entries.map(|entry| Ok(entry?.path())).collect::<std::io::Result<Vec<_>>>();
        paths.iter_mut().for_each(|paths| paths.sort());
        paths.with_context(|| cannot(path))
    };
    let hint = "--scenarios DIR names the directory with the folders of scenarios";
    let mut found = Vec::new();
    for folder in entries(dir).context(hint)?.into_iter().filter(|path| path.is_dir()) {
        for path in entries(&folder)? {
            let name = |path: &Path| path.file_stem().and_then(|name| name.to_str()).map(str::to_owned);
            let folder = folder.file_name().and_then(|name| name.to_str()).map(str::to_owned);
            if path.extension().is_some_and(|end| end == "toml")
                && let (Some(folder), Some(file)) = (folder, name(&path))
            {
                found.push(Place { folder, file, path });
            }
        }
    }
    if found.is_empty() {
        bail!("no scenario {}; {hint}", dir.join("FOLDER/FILE.toml").display());
    }
    Ok(found)
}

/// Reads what the names mean; without any, all.
pub(crate) fn select(dir: &Path, names: &[String], own: &Own) -> anyhow::Result<GallerySelection> {
    let places = places(dir)?;
    let names: Vec<Name<'_>> = names.iter().map(|name| Name::read(name, dir)).collect();
    for name in &names {
        if !places.iter().any(|place| name.covers(place)) {
            bail!("no folder or file `{}` in {}; {}", name.text, dir.display(), listed(&places, own));
        }
    }
    let mut selection = GallerySelection::default();
    let mut skipped = BTreeSet::new();
    for place in &places {
        if !names.is_empty() && !names.iter().any(|name| name.covers(place)) {
            continue;
        }
        match load(place, own) {
            Ok(scenario) if scenario.claims().next().is_none() => {}
            Ok(scenario) if scenario.is_live() => {
                say(&format!("skipped: {}: live scenarios are not repeatable", place.name()));
                skipped.insert(place.name());
            }
            Ok(scenario) => selection.chosen.push(Chosen { place: place.clone(), scenario, sources: None }),
            Err(error) => {
                tell(&error.into());
                selection.broken.insert(place.folder.clone());
            }
        }
    }
    let whole = |name: &&Name<'_>| name.file.is_none() && name.source.is_none();
    selection.whole = match names.is_empty() {
        true => places.iter().map(|place| place.folder.clone()).collect(),
        false => names.iter().filter(whole).map(|name| name.folder.to_owned()).collect(),
    };
    narrow(&mut selection, &names, &skipped, || listed(&places, own))?;
    Ok(selection)
}

fn load(place: &Place, own: &Own) -> Result<Scenario, LoadError> {
    check::load(&place.path, &[], own)
}

/// Keeps the sources that are meant, and refuses a name that means nothing.
fn narrow(
    selection: &mut GallerySelection,
    names: &[Name<'_>],
    skipped: &BTreeSet<String>,
    listed: impl Fn() -> String,
) -> anyhow::Result<()> {
    let mut wanted: BTreeMap<String, Option<BTreeSet<String>>> = BTreeMap::new();
    for name in names {
        let covered: Vec<&Chosen> = selection.chosen.iter().filter(|chosen| name.covers(&chosen.place)).collect();
        let excused = selection.broken.contains(name.folder)
            || skipped.iter().any(|skipped| skipped.split('/').next() == Some(name.folder));
        if covered.is_empty() && !excused {
            bail!("`{}` has no [[expect]] with a `source`; {}", name.text, listed());
        }
        let known: BTreeSet<&str> = covered
            .iter()
            .flat_map(|chosen| chosen.scenario.claims())
            .map(|(_, claim)| claim.source.as_str())
            .collect();
        let meant = name.source.map(|label| meant(&known, label));
        if meant.as_ref().is_some_and(BTreeSet::is_empty) && !excused {
            let known: Vec<&str> = known.into_iter().collect();
            bail!("no source of `{}`; {} has: {}", name.text, name.folder, known.join(", "));
        }
        for chosen in covered {
            let has = |source: &String| chosen.scenario.claims().any(|(_, claim)| claim.source == *source);
            let own: Option<BTreeSet<String>> =
                meant.as_ref().map(|sources| sources.iter().filter(|source| has(source)).cloned().collect());
            let entry = wanted.entry(chosen.place.name()).or_insert_with(|| Some(BTreeSet::new()));
            match (entry.as_mut(), own) {
                (Some(known), Some(own)) => known.extend(own),
                _ => *entry = None,
            }
        }
    }
    for chosen in &mut selection.chosen {
        chosen.sources = wanted.remove(&chosen.place.name()).flatten();
    }
    selection.chosen.retain(|chosen| chosen.sources.as_ref().is_none_or(|sources| !sources.is_empty()));
    Ok(())
}

/// The sources with this label, or else those that contain it.
fn meant(known: &BTreeSet<&str>, label: &str) -> BTreeSet<String> {
    let label = label.to_lowercase();
    let same: BTreeSet<String> =
        known.iter().filter(|source| source.to_lowercase() == label).map(|&source| source.to_owned()).collect();
    if !same.is_empty() {
        return same;
    }
    let holds = |source: &&&str| source.to_lowercase().contains(&label);
    known.iter().filter(holds).map(|&source| source.to_owned()).collect()
}

/// The folders and files with rows, in a sentence.
fn listed(places: &[Place], own: &Own) -> String {
    let mut folders: BTreeMap<&str, Vec<&str>> = BTreeMap::new();
    for place in places {
        if load(place, own).is_ok_and(|scenario| scenario.claims().next().is_some()) {
            folders.entry(&place.folder).or_default().push(&place.file);
        }
    }
    if folders.is_empty() {
        return "no [[expect]] there has a `source`".to_owned();
    }
    let lines = folders.iter().map(|(folder, files)| format!("\n  {folder}: {}", files.join(", ")));
    format!("there are:{}", lines.collect::<String>())
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_name_is_a_folder_a_file_or_a_path_with_a_source() {
        let dir = Path::new("scenarios");
        let read = |text| {
            let name = Name::read(text, dir);
            (name.folder, name.file, name.source)
        };
        assert_eq!(read("teacup"), ("teacup", None, None));
        assert_eq!(read("teacup/"), ("teacup", None, None));
        assert_eq!(read("teacup/matrix"), ("teacup", Some("matrix"), None));
        assert_eq!(read("scenarios/teacup/matrix.toml"), ("teacup", Some("matrix"), None));
        assert_eq!(read("teacup:Figure 2a"), ("teacup", None, Some("Figure 2a")));
        assert_eq!(read("teacup/matrix: Table 1"), ("teacup", Some("matrix"), Some("Table 1")));
    }

    #[test]
    fn a_label_that_is_complete_means_itself_alone() {
        let known = BTreeSet::from(["Figure 1", "Figure 10", "Table 1"]);
        let of = |label| meant(&known, label).into_iter().collect::<Vec<_>>();
        assert_eq!(of("figure 1"), ["Figure 1"]);
        assert_eq!(of("Figure"), ["Figure 1", "Figure 10"]);
        assert!(of("Figure 3").is_empty());
    }
}
