//! The files that a scenario names: on the disk, or sent along with it.

use std::collections::BTreeMap;
use std::io::{self, Read};
use std::path::{Path, PathBuf};
use std::sync::Arc;

use ackclock_trace::open_regular;

use crate::document::{Node, Value};

/// The key whose value is the name of a file.
const KEY: &str = "file";

/// Contents of files by the names that a scenario gives them.
pub type Files = BTreeMap<String, Vec<u8>>;

/// Where the files of a scenario are.
#[derive(Clone, Debug, Default)]
pub(crate) struct Inputs {
    /// The folder that their names are relative to.
    folder: PathBuf,
    /// All of them, if the disk is not that of the scenario.
    sent: Option<Arc<Files>>,
}

/// None, where a text is read for its keys alone.
pub(crate) static NO_INPUTS: Inputs = Inputs { folder: PathBuf::new(), sent: None };

impl Inputs {
    pub(crate) fn on_disk(folder: &Path) -> Inputs {
        Inputs { folder: folder.to_owned(), sent: None }
    }

    /// The names remain relative to `folder`, in errors.
    pub(crate) fn sent(folder: &Path, files: Files) -> Inputs {
        Inputs { folder: folder.to_owned(), sent: Some(Arc::new(files)) }
    }

    pub(crate) fn path(&self, name: &str) -> PathBuf {
        self.folder.join(name)
    }

    /// A file, or `most` bytes of it and one more.
    pub(crate) fn read(&self, name: &str, most: u64) -> io::Result<Vec<u8>> {
        let mut bytes = Vec::new();
        match &self.sent {
            None => {
                open_regular(&self.path(name))?.take(most + 1).read_to_end(&mut bytes)?;
            }
            Some(files) => {
                // The error is worded as by the system.
                let contents = files.get(name).ok_or_else(|| io::Error::from_raw_os_error(NOT_FOUND))?;
                contents.take(most + 1).read_to_end(&mut bytes)?;
            }
        }
        Ok(bytes)
    }

    /// Makes the names of all files in a document absolute.
    pub(crate) fn make_absolute(&self, root: &mut Node) {
        self.make_absolute_below(root, false);
    }

    fn make_absolute_below(&self, node: &mut Node, is_file: bool) {
        match &mut node.value {
            Value::String(text) if is_file => {
                let path = std::path::absolute(self.path(text));
                if let Some(path) = path.ok().as_deref().and_then(Path::to_str) {
                    path.clone_into(text);
                }
            }
            Value::Array(items) => items.iter_mut().for_each(|item| self.make_absolute_below(item, is_file)),
            Value::Table(table) => {
                table.0.iter_mut().for_each(|entry| {
                    let names_one = names_file(&entry.key);
                    self.make_absolute_below(&mut entry.node, is_file || names_one);
                });
            }
            _ => {}
        }
    }

    /// The files that a document names, its sweep included, as far as they can be read. A name of a
    /// file that cannot be read has its error where it is used.
    pub(crate) fn collect(&self, root: &Node, most: u64) -> Files {
        let mut names = Vec::new();
        named(root, false, &mut names);
        let mut files = Files::new();
        for name in names {
            if !files.contains_key(name)
                && let Ok(contents) = self.read(name, most)
            {
                files.insert(name.to_owned(), contents);
            }
        }
        files
    }
}

/// ENOENT.
const NOT_FOUND: i32 = 2;

/// Returns `true` if a key, or a path of a sweep, holds the name of a file.
fn names_file(key: &str) -> bool {
    key.rsplit('.').next() == Some(KEY)
}

/// Texts under a key `file`, or under a path of the sweep that ends in one.
fn named<'a>(node: &'a Node, is_file: bool, names: &mut Vec<&'a str>) {
    match &node.value {
        Value::String(text) if is_file => names.push(text),
        Value::Array(items) => items.iter().for_each(|item| named(item, is_file, names)),
        Value::Table(table) => {
            for entry in &table.0 {
                named(&entry.node, is_file || names_file(&entry.key), names);
            }
        }
        _ => {}
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::Scenario;
    use crate::own::Own;

    const TEXT: &str = "schema = 1\n[run]\nduration = \"1s\"\n[links.a]\ndelay = \"1ms\"\n\
                        trace = { file = \"a.trace\" }\n[[flows]]\nid = \"f\"\npath = [\"a\"]\n[sweep]\n\
                        axes.\"links.a.trace.file\" = [\"a.trace\", \"sub/b.trace\"]\n\
                        axes.\"links.a.delay\" = [\"1ms\", \"2ms\"]\n";

    #[test]
    fn files_that_are_sent_along_are_those_of_the_disk() {
        let folder = std::env::temp_dir().join(format!("ackclock-inputs-{}", std::process::id()));
        std::fs::create_dir_all(folder.join("sub")).expect("a folder");
        std::fs::write(folder.join("a.trace"), "1\n2\n").expect("a file");
        std::fs::write(folder.join("sub/b.trace"), "5\n").expect("a file");
        let here = Scenario::parse_in(&folder, "x.toml", TEXT.as_bytes(), &[], Own::NONE).expect("a scenario");
        let written = here.written();
        let elsewhere = Scenario::parse("/other.toml", written.as_bytes(), &[]).expect("the same scenario");
        assert_eq!(format!("{:?}", elsewhere.spec(3)), format!("{:?}", here.spec(3)), "{written}");
        let files = here.files();
        std::fs::remove_dir_all(&folder).expect("it is ours");
        let expected = [("a.trace", "1\n2\n"), ("sub/b.trace", "5\n")];
        assert_eq!(files, expected.map(|(name, text)| (name.to_owned(), text.as_bytes().to_vec())).into());
        let there = Scenario::parse_sent(&folder, "x.toml", TEXT.as_bytes(), &[], Own::NONE, files);
        let there = there.expect("the same scenario");
        for run in 0..4 {
            assert_eq!(format!("{:?}", there.spec(run)), format!("{:?}", here.spec(run)));
        }
        // Without them it is as if they were not there.
        let error = Scenario::parse_sent(&folder, "x.toml", TEXT.as_bytes(), &[], Own::NONE, Files::new());
        let gone = Scenario::parse_in(&folder, "x.toml", TEXT.as_bytes(), &[], Own::NONE);
        let (error, gone) = (error.expect_err("no files").to_string(), gone.expect_err("no files").to_string());
        assert_eq!(error, gone);
        assert!(error.contains("cannot read a.trace: No such file"), "{error}");
    }
}
