//! Reading a table key by key: reading a key declares it, and a key that is never read is unknown.
//!
//! Every default that is used is recorded with its path, for `--show-config` to fill in.

use std::cell::RefCell;
use std::sync::Arc;

use ackclock_sim::spec::Agent;

use crate::document::{Entry, Node, Table, Value};
use crate::inputs::Inputs;
use crate::keys::{self, Domain, Keys, Label};
use crate::own::Own;
use crate::quantity::{Kind, OneOf, Problem};
use crate::report::{Diagnostic, Place, did_you_mean, listed};
use crate::traces::Traces;
use crate::write;
pub(crate) use context::{Context, Converted, Filled, FilledKey};

mod context;

/// One table, or several read as one, while its keys are asked for.
#[derive(Debug)]
pub(crate) struct Fields<'a> {
    cx: &'a Context<'a>,
    /// Looked up in order, each with further keys that are known in it alone.
    layers: Vec<(&'a Table, Vec<&'static str>)>,
    /// The path in the document: `flows.0`.
    path: Arc<str>,
    /// The path as errors name it: `flows.reno`.
    shown: String,
    /// Where an error points that has no key to point at.
    place: Place,
    known: Vec<&'static str>,
    kind: Option<&'static str>,
    /// Keys that other kinds know, with the kind.
    elsewhere: Vec<(&'static str, &'static str)>,
    /// Reports nothing and notes no default: used to learn which keys exist.
    silent: bool,
    /// Notes no default and misses no key: settings of a kind that is not selected.
    dormant: bool,
}

impl<'a> Fields<'a> {
    pub(crate) fn new(cx: &'a Context<'a>, table: &'a Table, path: impl Into<String>, place: &Place) -> Fields<'a> {
        let path = path.into();
        Fields {
            cx,
            layers: vec![(table, Vec::new())],
            path: path.as_str().into(),
            shown: path,
            place: place.clone(),
            known: Vec::new(),
            kind: None,
            elsewhere: Vec::new(),
            silent: false,
            dormant: false,
        }
    }

    /// Names the table differently in errors.
    pub(crate) fn shown_as(mut self, shown: impl Into<String>) -> Fields<'a> {
        self.shown = shown.into();
        self
    }

    /// A table with no keys at this path.
    pub(crate) fn bare(&self, key: &str) -> Fields<'a> {
        let mut child = Fields {
            cx: self.cx,
            layers: Vec::new(),
            path: join(&self.path, key).into(),
            shown: join(&self.shown, key),
            place: self.place.clone(),
            known: Vec::new(),
            kind: None,
            elsewhere: Vec::new(),
            silent: self.silent,
            dormant: self.dormant,
        };
        if let Some(entry) = self.find(key) {
            child.place = entry.key_place.clone();
        }
        child
    }

    fn find(&self, key: &str) -> Option<&'a Entry> {
        self.layers.iter().find_map(|(table, _)| table.get(key))
    }

    /// Algorithms from outside.
    pub(crate) fn own(&self) -> &'a Own {
        self.cx.own
    }

    /// The agents that `cc = "external"` stands for, in an environment.
    pub(crate) fn agents(&self) -> &'a [(String, Arc<Agent>)] {
        self.cx.agents
    }

    /// The files that the scenario names.
    pub(crate) fn inputs(&self) -> &'a Inputs {
        self.cx.inputs
    }

    /// The traces that were read.
    pub(crate) fn traces(&self) -> Option<&'a Traces> {
        self.cx.traces
    }

    /// The whole document.
    pub(crate) fn document(&self) -> Option<&'a Table> {
        self.cx.document
    }

    /// Notes what a size came to.
    pub(crate) fn converted(&self, key: &str, from: &Node, to: &Node) {
        let (from, to) = (write::inline(from), write::inline(to));
        self.cx.converted.borrow_mut().push(Converted { path: join(&self.path, key), from, to });
    }

    /// Returns `true` if a value was converted below.
    pub(crate) fn has_converted(&self) -> bool {
        let below = |path: &str| path.strip_prefix(&*self.path).is_some_and(|rest| rest.starts_with('.'));
        self.cx.converted.borrow().iter().any(|converted| below(&converted.path))
    }

    /// The value of a key that is read elsewhere.
    pub(crate) fn peek(&self, key: &str) -> Option<&'a Node> {
        self.find(key).map(|entry| &entry.node)
    }

    /// These keys in place of those that are here, without a word about what is wrong with them.
    pub(crate) fn silent(&self, table: &'a Table) -> Fields<'a> {
        let mut other = Fields::new(self.cx, table, &*self.path, &self.place);
        other.silent = true;
        other
    }

    /// Number of errors so far.
    pub(crate) fn errors(&self) -> usize {
        self.cx.report.len()
    }

    /// Notes no default and misses no key: these settings change others, which have noted theirs.
    pub(crate) fn without_defaults(mut self) -> Fields<'a> {
        self.dormant = true;
        self
    }

    /// Reads settings of these so.
    pub(crate) fn dormant<T>(&mut self, read: impl FnOnce(&mut Fields<'a>) -> T) -> T {
        let before = std::mem::replace(&mut self.dormant, true);
        let value = read(self);
        self.dormant = before;
        value
    }

    /// Returns `true` if it reports nothing.
    pub(crate) fn is_silent(&self) -> bool {
        self.silent
    }

    pub(crate) fn shown(&self) -> &str {
        &self.shown
    }

    pub(crate) fn place(&self) -> &Place {
        &self.place
    }

    /// The entry of a key, which is known from now on.
    pub(crate) fn get(&mut self, key: impl Into<Label>) -> Option<&'a Entry> {
        let key = key.into();
        self.declare(key, || Domain::Structure);
        self.asked(key.name)
    }

    /// The entry of a key that has been declared, which is known from now on.
    fn asked(&mut self, key: &'static str) -> Option<&'a Entry> {
        if !self.known.contains(&key) {
            self.known.push(key);
        }
        self.find(key)
    }

    /// Says what a key may hold, where no kind reads it.
    pub(crate) fn declare(&self, key: impl Into<Label>, domain: impl FnOnce() -> Domain) {
        if let Some(keys) = self.keys() {
            let key = key.into();
            keys.borrow_mut().declare(join(&self.path, key.name), domain(), key.meaning);
        }
    }

    /// The table of keys, if it is recorded and these keys belong to it.
    fn keys(&self) -> Option<&RefCell<Keys>> {
        self.cx.keys.as_ref().filter(|_| !self.silent && !self.dormant)
    }

    pub(crate) fn push(&self, error: Diagnostic) {
        if !self.silent {
            self.cx.report.push(error);
        }
    }

    /// Reports a value that its key cannot hold.
    pub(crate) fn reject(&self, key: &str, node: &Node, problem: Problem) {
        let title = format!("{}: {}", join(&self.shown, key), problem.title);
        let error = Diagnostic::new(title, &node.place, format!("found {}", node.found())).help(problem.help);
        self.push(if problem.expected.is_empty() {
            error
        } else {
            error.note(format!("expected {}", problem.expected))
        });
    }

    /// Reports a key that must be there.
    pub(crate) fn missing(&self, key: &str, expected: &str) {
        if let Some(keys) = self.keys() {
            keys.borrow_mut().require(join(&self.path, key));
        }
        if !self.dormant {
            let at = if self.shown.is_empty() { String::new() } else { format!("{}: ", self.shown) };
            let title = format!("{at}the key `{key}` is missing");
            self.push(
                Diagnostic::new(title, &self.place, format!("has no `{key}`")).note(format!("expected {expected}")),
            );
        }
    }

    /// Notes a default that was used.
    pub(crate) fn fill(&self, key: &'static str, value: impl Into<Value>) {
        if !self.silent && !self.dormant {
            let value = value.into();
            if let Some(keys) = self.keys() {
                let nowhere = Place::new(0, 0..0);
                keys.borrow_mut().fill(join(&self.path, key), write::inline(&Node::new(value.clone(), nowhere)));
            }
            let key = FilledKey { key, value, kind: self.kind };
            let mut filled = self.cx.filled.borrow_mut();
            match filled.last_mut() {
                Some(last) if Arc::ptr_eq(&last.table, &self.path) => last.keys.push(key),
                _ => filled.push(Filled { table: Arc::clone(&self.path), keys: vec![key] }),
            }
        }
    }

    /// A key that may be left out. A wrong value is reported and reads as left out.
    pub(crate) fn maybe<K: Kind>(&mut self, key: impl Into<Label>, kind: K) -> Option<K::Held> {
        let key = key.into();
        self.declare(key, || kind.domain());
        let node = &self.asked(key.name)?.node;
        kind.read(node).map_err(|problem| self.reject(key.name, node, problem)).ok()
    }

    /// A key with a default.
    pub(crate) fn or<K: Kind>(&mut self, key: impl Into<Label>, default: K::Held, kind: K) -> K::Held {
        let key = key.into();
        self.declare(key, || kind.domain());
        let Some(entry) = self.asked(key.name) else {
            self.fill(key.name, kind.show(&default));
            return default;
        };
        kind.read(&entry.node).unwrap_or_else(|problem| {
            self.reject(key.name, &entry.node, problem);
            default
        })
    }

    /// A key that must be there; `expected` says what, with an example. `None` was reported.
    pub(crate) fn required<K: Kind>(&mut self, key: impl Into<Label>, kind: K, expected: &str) -> Option<K::Held> {
        let key = key.into();
        if self.get(key).is_none() {
            self.missing(key.name, expected);
        }
        self.maybe(key, kind)
    }

    /// A table under a key.
    pub(crate) fn table(&mut self, key: impl Into<Label>, expected: &str) -> Option<Fields<'a>> {
        let key = key.into();
        self.declare(key, || Domain::Table);
        let entry = self.asked(key.name)?;
        let Some(table) = entry.node.table() else {
            self.reject(key.name, &entry.node, Problem::new("not a table", expected));
            return None;
        };
        let mut child = self.bare(key.name);
        child.layers.push((table, Vec::new()));
        Some(child)
    }

    /// A table in an array under a key.
    pub(crate) fn item(&self, key: &str, index: usize, node: &'a Node, expected: &str) -> Option<Fields<'a>> {
        let key = format!("{key}.{index}");
        let Some(table) = node.table() else {
            self.reject(&key, node, Problem::new("not a table", expected));
            return None;
        };
        let mut child = self.bare(&key);
        child.place = node.place.clone();
        child.layers.push((table, Vec::new()));
        Some(child)
    }

    /// A table by a name of its own in the table under a key.
    pub(crate) fn named(&self, key: &str, entry: &'a Entry, expected: &str) -> Option<Fields<'a>> {
        let key = format!("{key}.{}", entry.key);
        let Some(table) = entry.node.table() else {
            self.reject(&key, &entry.node, Problem::new("not a table", expected));
            return None;
        };
        let mut child = self.bare(&key);
        child.place = entry.key_place.clone();
        child.layers.push((table, Vec::new()));
        Some(child)
    }

    /// A table under a key, which is empty where there is none: its defaults are noted.
    pub(crate) fn section(&mut self, key: impl Into<Label>, expected: &str) -> Fields<'a> {
        let key = key.into();
        self.table(key, expected).unwrap_or_else(|| {
            let mut child = self.bare(key.name);
            // After a wrong type there is nothing to fill in.
            child.dormant |= self.find(key.name).is_some();
            child
        })
    }

    /// A feature that is off (`false`), on with the parameters `on` (`true`), or on with some of
    /// them changed (a table).
    pub(crate) fn switch<T>(
        &mut self,
        key: impl Into<Label>,
        default: Option<T>,
        on: T,
        read: impl Fn(&mut Fields<'a>, T) -> T,
    ) -> Option<T> {
        let key = key.into();
        self.declare(key, || Domain::Either(vec![Domain::Flag, Domain::Table]));
        match (self.asked(key.name).map(|entry| &entry.node), default) {
            (None, None) => {
                self.fill(key.name, false);
                None
            }
            (None, Some(default)) => Some(read(&mut self.section(key, ""), default)),
            (Some(node), _) => match &node.value {
                Value::Boolean(is_on) => is_on.then_some(on),
                Value::Table(_) => {
                    let mut section = self.section(key, "");
                    let value = read(&mut section, on);
                    section.finish();
                    Some(value)
                }
                _ => {
                    let expected = "`true`, `false` or a table of parameters";
                    self.reject(key.name, node, Problem::new("not the right type", expected));
                    None
                }
            },
        }
    }

    /// A name, or a table with `kind`, its settings and, in tables by the name of a kind, the
    /// settings that apply to that kind alone. `read` reads the settings of a kind; those of the
    /// kinds not selected are read too, for their errors.
    pub(crate) fn choose<T>(
        &mut self,
        key: impl Into<Label>,
        default: &'static str,
        of: &OneOf<'_>,
        read: impl Fn(&'static str, &mut Fields<'a>) -> T,
    ) -> T {
        let key = key.into();
        self.declare(key, || of.kinds());
        let mut child = self.bare(key.name);
        child.declare(keys::KIND, || of.domain());
        let mut kind = default;
        match self.asked(key.name).map(|entry| &entry.node) {
            None => child.fill("kind", default),
            Some(Node { value: Value::Table(table), .. }) => {
                match table.get("kind").map(|entry| (of.read(&entry.node), &entry.node)) {
                    None => child.fill("kind", default),
                    Some((Ok(name), _)) => kind = name,
                    Some((Err(problem), node)) => {
                        child.reject("kind", node, problem);
                        // Further errors in it depend on the kind.
                        child.silent = true;
                    }
                }
                child.settings_by_kind(table, of, kind, &read);
            }
            Some(node) => match of.read(node) {
                Ok(name) => kind = name,
                Err(mut problem) => {
                    if node.str().is_none() {
                        problem.expected =
                            format!("a name ({}) or a table with `kind`", listed(of.names.iter().copied()));
                    }
                    self.reject(key.name, node, problem);
                    child.silent = true;
                }
            },
        }
        child.kind = Some(kind);
        self.cx.chosen.borrow_mut().push(Arc::clone(&child.path));
        let value = read(kind, &mut child);
        // Other kinds are asked for their keys only to explain one that is unknown here.
        let others = of.names.iter().filter(|&&name| name != kind && child.unknown().next().is_some());
        for &name in others.collect::<Vec<_>>() {
            let mut probe = child.bare("");
            (probe.silent, probe.kind) = (true, Some(name));
            read(name, &mut probe);
            child.elsewhere.extend(probe.known.iter().map(|&known| (known, name)));
        }
        child.finish();
        value
    }

    /// The settings beside `kind`, below those in a table by the name of the kind selected; those
    /// of other kinds are read for their errors.
    fn settings_by_kind<T>(
        &mut self,
        table: &'a Table,
        of: &OneOf<'_>,
        kind: &str,
        read: &impl Fn(&'static str, &mut Fields<'a>) -> T,
    ) {
        for &name in of.names {
            let Some(entry) = table.get(name) else { continue };
            let Some(settings) = entry.node.table() else {
                let expected = format!("the settings of `{name}`, a table");
                self.reject(name, &entry.node, Problem::new("not a table", expected));
                continue;
            };
            if name == kind {
                self.layers.push((settings, Vec::new()));
                continue;
            }
            let mut other = self.bare(name);
            (other.layers, other.place) = (vec![(settings, Vec::new())], entry.key_place.clone());
            (other.dormant, other.kind) = (true, Some(name));
            read(name, &mut other);
            other.finish();
        }
        let mut further = vec!["kind"];
        further.extend(of.names);
        self.layers.push((table, further));
    }

    /// The keys that nobody asked for, with the keys that are known in their table alone.
    fn unknown(&self) -> impl Iterator<Item = (&'a Entry, &[&'static str])> {
        self.layers.iter().flat_map(move |(table, further)| {
            let unknown = move |entry: &&Entry| {
                let key = entry.key.as_str();
                !self.known.contains(&key) && !further.contains(&key)
            };
            table.0.iter().filter(unknown).map(|entry| (entry, further.as_slice()))
        })
    }

    /// The same, of a table whose keys are those of a kind that it does not name.
    pub(crate) fn finish_of(mut self, kind: &'static str) {
        self.kind = Some(kind);
        self.finish();
    }

    /// Reports every key that nobody asked for.
    pub(crate) fn finish(self) {
        for (entry, further) in self.unknown() {
            if self.cx.report.is_closed() {
                // The comparison of further keys takes time, and nobody sees the result.
                return;
            }
            let key = entry.key.as_str();
            let candidates = || self.known.iter().chain(further).copied();
            let kinds: Vec<&str> =
                self.elsewhere.iter().filter(|(known, _)| *known == key).map(|&(_, kind)| kind).collect();
            let title = match self.kind {
                Some(kind) => format!("{}: `{kind}` has no key `{key}`", self.shown),
                None if self.shown.is_empty() => format!("unknown key `{key}`"),
                None => format!("{}: unknown key `{key}`", self.shown),
            };
            let help = match kinds.first() {
                Some(kind) => {
                    let kinds = listed(kinds.iter().copied());
                    Some(format!(
                        "`{key}` is a key of {kinds}; `{kind} = {{ {key} = ... }}` sets it for that kind alone"
                    ))
                }
                None => did_you_mean(key, candidates()),
            };
            let error = Diagnostic::new(title, &entry.key_place, "unknown key").help(help);
            self.push(error.note(format!("expected one of {}", listed(candidates()))));
        }
    }
}

fn join(path: &str, key: &str) -> String {
    if path.is_empty() { key.to_owned() } else { format!("{path}.{key}") }
}
