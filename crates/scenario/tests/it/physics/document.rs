//! A scenario as tables of settings, so that a key is set and dropped by its path.

use std::fmt::Write;

/// A value as TOML, or a table that has keys of its own.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) enum Value {
    /// The text in the file.
    Text(String),
    /// `{}` unless keys below it are set.
    Table,
}

/// A section of the file.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) struct Section {
    /// The prefix of the paths of its keys: `flows.0`.
    pub path: String,
    /// `[[flows]]`.
    header: String,
    /// Keys below the path with their values.
    pub entries: Vec<(String, Value)>,
}

/// A scenario.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub(crate) struct Document {
    /// The root first.
    pub sections: Vec<Section>,
}

/// Returns `true` if a path is that of a key below another one.
fn is_below(path: &str, above: &str) -> bool {
    path.strip_prefix(above).is_some_and(|rest| rest.starts_with('.'))
}

impl Document {
    /// Adds a section for keys below `path`.
    pub(crate) fn add(&mut self, path: impl Into<String>, header: impl Into<String>) {
        self.sections.push(Section { path: path.into(), header: header.into(), entries: Vec::new() });
    }

    /// Adds the next item of a list, such as `flows`; gives its path.
    pub(crate) fn push(&mut self, list: &str) -> String {
        let taken = self.sections.iter().filter(|section| {
            section.path.strip_prefix(list).is_some_and(|rest| rest.starts_with('.') && !rest[1..].contains('.'))
        });
        let path = format!("{list}.{}", taken.count());
        let header = list.split('.').filter(|part| !part.starts_with(|c: char| c.is_ascii_digit())).collect::<Vec<_>>();
        self.add(&path, format!("[[{}]]", header.join(".")));
        path
    }

    fn split<'a>(&self, path: &'a str) -> Option<(usize, &'a str)> {
        let fits = |(_, section): &(usize, &Section)| section.path.is_empty() || is_below(path, &section.path);
        let (index, section) =
            self.sections.iter().enumerate().filter(fits).max_by_key(|(_, section)| section.path.len())?;
        let key = if section.path.is_empty() { path } else { &path[section.path.len() + 1..] };
        Some((index, key))
    }

    /// The value of a key.
    pub(crate) fn get(&self, path: &str) -> Option<&Value> {
        let (index, key) = self.split(path)?;
        self.sections[index].entries.iter().find(|(known, _)| known == key).map(|(_, value)| value)
    }

    /// The text of a key's value.
    pub(crate) fn text_of(&self, path: &str) -> Option<&str> {
        match self.get(path)? {
            Value::Text(text) => Some(text),
            Value::Table => None,
        }
    }

    /// Sets a key, unless a value stands where it wants a table.
    pub(crate) fn set(&mut self, path: &str, value: Value) {
        let Some((index, key)) = self.split(path) else { return };
        let entries = &mut self.sections[index].entries;
        if entries.iter().any(|(known, value)| *value != Value::Table && is_below(key, known)) {
            return;
        }
        entries.retain(|(known, _)| known != key && (value == Value::Table || !is_below(known, key)));
        entries.push((key.to_owned(), value));
    }

    /// Sets a key to a value in TOML.
    pub(crate) fn put(&mut self, path: &str, text: impl Into<String>) {
        self.set(path, Value::Text(text.into()));
    }

    /// The document without a key and those below it.
    pub(crate) fn without(&self, path: &str) -> Document {
        let mut less = self.clone();
        if let Some((index, key)) = less.split(path) {
            less.sections[index].entries.retain(|(known, _)| known != key && !is_below(known, key));
        }
        less
    }

    /// The document without a section, those below it, and gaps in lists.
    pub(crate) fn without_section(&self, path: &str) -> Document {
        let mut less = Document { sections: Vec::new() };
        let mut moved: Vec<(String, String)> = Vec::new();
        for section in &self.sections {
            if section.path == path || is_below(&section.path, path) {
                continue;
            }
            let above = moved.iter().rev().find(|(from, _)| is_below(&section.path, from));
            let renamed = above.map(|(from, to)| format!("{to}{}", &section.path[from.len()..]));
            let old = renamed.unwrap_or_else(|| section.path.clone());
            let new = match old.rsplit_once('.') {
                Some((list, number)) if number.parse::<usize>().is_ok() => less.push(list),
                _ => {
                    less.add(&old, &section.header);
                    old
                }
            };
            less.sections.last_mut().expect("just added").entries.clone_from(&section.entries);
            moved.push((section.path.clone(), new));
        }
        less
    }

    /// Puts the sections of another scenario behind, all but its root; lists go on.
    pub(crate) fn append(&mut self, other: &Document) {
        for section in other.sections.iter().filter(|section| !section.path.is_empty()) {
            match section.path.strip_prefix("flows.") {
                Some(_) => {
                    self.push("flows");
                }
                None => self.add(&section.path, &section.header),
            }
            self.sections.last_mut().expect("just added").entries.clone_from(&section.entries);
        }
    }

    /// The file.
    pub(crate) fn text(&self) -> String {
        let mut out = String::new();
        for section in &self.sections {
            if !section.header.is_empty() {
                let _ = writeln!(out, "\n{}", section.header);
            }
            for (key, value) in &section.entries {
                match value {
                    Value::Text(text) => {
                        let _ = writeln!(out, "{key} = {text}");
                    }
                    Value::Table if section.entries.iter().any(|(other, _)| is_below(other, key)) => {}
                    Value::Table => {
                        let _ = writeln!(out, "{key} = {{}}");
                    }
                }
            }
        }
        out
    }
}
