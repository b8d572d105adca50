//! Arrows between the modules of a crate, and an order to hold them against.

use std::collections::{BTreeMap, BTreeSet};

use crate::modules::source::{Call, Module, Names};

/// A crate with the order of its modules.
#[derive(Debug)]
pub(crate) struct Layers {
    /// Its folder, from the root of the workspace.
    pub(crate) folder: &'static str,
    /// Modules, the lowest first: each may use those before it. A module inside another one is
    /// `outer/inner`; what is not listed belongs to the module that it is in. The root of the crate
    /// comes last without being listed.
    pub(crate) order: &'static [&'static str],
    /// Modules of types that are made of parts. They may name and use parts that come after them,
    /// but not call methods of the type itself that are written there.
    pub(crate) composes: &'static [&'static str],
    pub(crate) allowed: Allowed,
}

/// Arrows that may run backwards.
#[derive(Debug)]
pub(crate) enum Allowed {
    /// These: from, to, and why.
    Listed(&'static [(&'static str, &'static str, &'static str)]),
    /// As many as this, no matter which: a crate that is being put in order. Fewer need a smaller
    /// number.
    Count(usize),
}

/// Who uses whom.
pub(crate) type Arrows = BTreeMap<(String, String), Arrow>;

/// What one module uses of another one.
#[derive(Debug, Default)]
pub(crate) struct Arrow {
    /// Where.
    pub(crate) places: BTreeSet<String>,
    /// Methods of a type that both have `impl` blocks of are among it.
    pub(crate) shares_self: bool,
}

/// The root of a crate.
const ROOT: &str = "lib";

/// Bound on imports that lead to imports.
const DEPTH: usize = 16;

struct Crate<'a> {
    modules: &'a [Module],
    by_path: BTreeMap<&'a [String], &'a Module>,
    /// The modules that a method of a type is written in; a type is its module and its name.
    methods: BTreeMap<(Names, String, &'a str), BTreeSet<&'a [String]>>,
    /// The types that a module has `impl` blocks of.
    blocks: BTreeSet<(&'a [String], Names, String)>,
}

/// One use of a module.
struct Use<'a> {
    of: &'a [String],
    line: usize,
    words: String,
    shares_self: bool,
}

/// What a path leads to: a module, and what is behind it there.
struct Found<'a> {
    module: &'a Module,
    rest: Names,
}

impl<'a> Crate<'a> {
    fn new(modules: &'a [Module]) -> Crate<'a> {
        let by_path = modules.iter().map(|module| (module.path.as_slice(), module)).collect();
        let mut all = Crate { modules, by_path, methods: BTreeMap::new(), blocks: BTreeSet::new() };
        for module in modules {
            for (of, method) in &module.methods {
                if let Some((at, name)) = all.type_of(module, of) {
                    all.blocks.insert((&module.path, at.path.clone(), name.clone()));
                    all.methods.entry((at.path.clone(), name, method)).or_default().insert(&module.path);
                }
            }
        }
        all
    }

    /// What a path stands for that is written in `from`; `None` for what is from outside the crate.
    fn resolve(&self, from: &'a Module, path: &[String], depth: usize) -> Option<Found<'a>> {
        let (first, rest) = path.split_first()?;
        let base = match first.as_str() {
            "crate" => self.by_path.get(&[][..])?,
            "self" => from,
            "super" => self.by_path.get(from.path.split_last()?.1)?,
            _ => return self.descend(from, path, depth),
        };
        match rest.first().map(String::as_str) {
            Some("super") => self.resolve(base, rest, depth),
            _ => self.descend(base, rest, depth).or(Some(Found { module: base, rest: rest.to_vec() })),
        }
    }

    /// The same for the names behind a module. A name that nothing is known about is none of it.
    fn descend(&self, at: &'a Module, path: &[String], depth: usize) -> Option<Found<'a>> {
        let Some((first, rest)) = path.split_first() else { return Some(Found { module: at, rest: Names::new() }) };
        if at.children.contains(first) {
            let child: Names = at.path.iter().chain([first]).cloned().collect();
            let child = self.by_path.get(child.as_slice())?;
            return self.descend(child, rest, depth).or(Some(Found { module: child, rest: rest.to_vec() }));
        }
        if at.types.contains(first) {
            return Some(Found { module: at, rest: path.to_vec() });
        }
        let import = at.imports.get(first).filter(|import| depth < DEPTH && *import != path)?;
        let whole: Names = import.iter().chain(rest).cloned().collect();
        self.resolve(at, &whole, depth + 1)
    }

    /// The module and the name of a type that is written so in `from`.
    fn type_of(&self, from: &'a Module, path: &[String]) -> Option<(&'a Module, String)> {
        let Found { module, rest } = self.resolve(from, path, 0)?;
        rest.first().filter(|name| module.types.contains(*name)).map(|name| (module, name.clone()))
    }

    /// The types that something written as these in `from` may have.
    fn types(&self, from: &'a Module, written: &[Names]) -> Vec<(&'a Module, String)> {
        written.iter().filter_map(|path| self.type_of(from, path)).collect()
    }

    /// The modules that have the method of this name on any of the types that it may be called on.
    fn called(&self, from: &'a Module, call: &Call) -> Vec<Use<'a>> {
        let mut on = self.types(from, &call.on);
        for field in &call.fields {
            on = (on.into_iter())
                .flat_map(|(at, name)| {
                    at.fields.get(&(name, field.clone())).map_or(Vec::new(), |of| self.types(at, of))
                })
                .collect();
        }
        let mut found = Vec::new();
        for (at, name) in on {
            let shares_self = self.blocks.contains(&(from.path.as_slice(), at.path.clone(), name.clone()));
            let written = self.methods.get(&(at.path.clone(), name, call.method.as_str()));
            found.extend(written.into_iter().flatten().map(|&of| Use {
                of,
                line: call.line,
                words: format!("{}()", call.method),
                shares_self,
            }));
        }
        found
    }

    /// Everything that a module uses.
    fn uses(&self, from: &'a Module) -> Vec<Use<'a>> {
        let mut found = Vec::new();
        for (path, line) in &from.mentions {
            let Some(Found { module, rest }) = self.resolve(from, path, 0) else { continue };
            let of = |of: &'a [String]| Use { of, line: *line, words: path.join("::"), shares_self: false };
            found.push(of(&module.path));
            if let [name, method, ..] = rest.as_slice() {
                let written = self.methods.get(&(module.path.clone(), name.clone(), method.as_str()));
                found.extend(written.into_iter().flatten().map(|&module| of(module)));
            }
        }
        found.extend(from.calls.iter().flat_map(|call| self.called(from, call)));
        found
    }
}

/// The listed module that a module belongs to: the longest that it is or is in. `None` if there is
/// none.
fn unit(path: &[String], order: &[&str]) -> Option<String> {
    if path.is_empty() {
        return Some(ROOT.to_owned());
    }
    (1..=path.len()).rev().map(|len| path[..len].join("/")).find(|name| order.contains(&name.as_str()))
}

/// The arrows between the listed modules, and the modules that are not listed.
pub(crate) fn arrows(modules: &[Module], order: &[&str]) -> (Arrows, Vec<String>) {
    let all = Crate::new(modules);
    let mut found = Arrows::new();
    for module in all.modules {
        // The root names everything.
        let Some(from) = unit(&module.path, order).filter(|from| from != ROOT) else { continue };
        for Use { of, line, words, shares_self } in all.uses(module) {
            if let Some(to) = unit(of, order).filter(|to| *to != from) {
                let arrow = found.entry((from.clone(), to)).or_default();
                arrow.places.insert(format!("{}.rs:{line} {words}", module.path.join("/")));
                arrow.shares_self |= shares_self;
            }
        }
    }
    let strays = modules.iter().filter(|module| unit(&module.path, order).is_none());
    (found, strays.map(|module| module.path.join("/")).collect())
}

/// The arrows that run against the order, without those of a type to its parts.
pub(crate) fn backwards(arrows: &Arrows, layers: &Layers) -> Vec<(String, String)> {
    let place = |name: &str| layers.order.iter().position(|listed| *listed == name).unwrap_or(layers.order.len());
    let composes = |from: &str, arrow: &Arrow| layers.composes.contains(&from) && !arrow.shares_self;
    let against = arrows.iter().filter(|((from, to), arrow)| place(from) < place(to) && !composes(from, arrow));
    against.map(|(names, _)| names.clone()).collect()
}

/// How many arrows lie on a way that comes back to where it began: no order has all of them run
/// down.
pub(crate) fn in_cycles(arrows: &Arrows) -> usize {
    let leads_to = |from: &str, to: &str| {
        let (mut open, mut seen) = (vec![from], BTreeSet::new());
        while let Some(at) = open.pop() {
            let next = arrows.keys().filter(|(one, _)| one == at).map(|(_, other)| other.as_str());
            open.extend(next.filter(|next| seen.insert(*next)));
        }
        seen.contains(to)
    };
    arrows.keys().filter(|(from, to)| leads_to(to, from)).count()
}

impl Layers {
    /// What is wrong with a crate, in words.
    pub(crate) fn violations(&self, modules: &[Module]) -> Vec<String> {
        let (arrows, strays) = arrows(modules, self.order);
        let mut found: Vec<String> = strays.iter().map(|name| format!("{name} has no place in the order")).collect();
        let exists = |name: &str| modules.iter().any(|module| module.path.join("/") == name);
        found.extend(self.order.iter().filter(|name| !exists(name)).map(|name| format!("there is no module {name}")));
        let twice = self.order.iter().enumerate().filter(|(at, name)| self.order[..*at].contains(name));
        found.extend(twice.map(|(_, name)| format!("{name} is listed twice")));
        let backwards = backwards(&arrows, self);
        let words = |arrow: &(String, String)| {
            let places: Vec<&str> = arrows[arrow].places.iter().take(5).map(String::as_str).collect();
            format!("{} -> {} runs backwards: {}", arrow.0, arrow.1, places.join(", "))
        };
        match self.allowed {
            // Which they are is printed.
            Allowed::Count(count) if backwards.len() != count => {
                found.push(format!("{} arrows run backwards, and {count} may", backwards.len()));
            }
            Allowed::Count(_) => {}
            Allowed::Listed(list) => {
                let listed = |arrow: &&(String, String)| {
                    list.iter().any(|(from, to, _)| (*from, *to) == (arrow.0.as_str(), arrow.1.as_str()))
                };
                found.extend(backwards.iter().filter(|arrow| !listed(arrow)).map(words));
                let idle = list.iter().filter(|(from, to, _)| !backwards.contains(&((*from).into(), (*to).into())));
                found.extend(idle.map(|(from, to, _)| format!("{from} -> {to} is an exception that nothing needs")));
            }
        }
        found
    }
}
