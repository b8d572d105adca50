//! The modules of a crate: what each defines, imports, names and calls.

use std::collections::{BTreeMap, BTreeSet};
use std::fs;
use std::path::{Path, PathBuf};

use crate::modules::tokens::{Token, behind, behind_generics, tokens, without_tests};

/// A module or an item by the names on the way to it.
pub(crate) type Names = Vec<String>;

/// What one file has.
#[derive(Debug, Default)]
pub(crate) struct Module {
    /// From the root of the crate.
    pub(crate) path: Names,
    pub(crate) children: Vec<String>,
    /// Names that the file imports, with what they stand for as written.
    pub(crate) imports: BTreeMap<String, Names>,
    /// Types and traits that it defines.
    pub(crate) types: BTreeSet<String>,
    /// Fields by type and name, with the types that the declaration names.
    pub(crate) fields: BTreeMap<(String, String), Vec<Names>>,
    /// Methods by the type as written.
    pub(crate) methods: Vec<(Names, String)>,
    /// Paths that it names, with the line.
    pub(crate) mentions: Vec<(Names, usize)>,
    pub(crate) calls: Vec<Call>,
}

/// A method called on something whose type is known.
#[derive(Debug)]
pub(crate) struct Call {
    /// The types, as written, that the first name may have.
    pub(crate) on: Vec<Names>,
    /// Fields on the way.
    pub(crate) fields: Names,
    pub(crate) method: String,
    pub(crate) line: usize,
}

/// The modules of the crate whose root is this file, the root first; without tests.
pub(crate) fn modules(root: &Path) -> Result<Vec<Module>, String> {
    let folder = root.parent().ok_or("a root without a folder")?;
    let mut found = Vec::new();
    let mut open = vec![(Names::new(), root.to_owned())];
    while let Some((path, file)) = open.pop() {
        let text = fs::read_to_string(&file).map_err(|error| format!("{}: {error}", file.display()))?;
        let module = module(path, &text);
        for child in module.children.iter().rev() {
            let path: Names = module.path.iter().chain([child]).cloned().collect();
            let base = path.iter().fold(folder.to_owned(), |base, name| base.join(name));
            let files: [PathBuf; 2] = [base.with_extension("rs"), base.join("mod.rs")];
            let file = files.into_iter().find(|file| file.exists());
            open.push((path, file.ok_or_else(|| format!("no file for {}", base.display()))?));
        }
        found.push(module);
    }
    Ok(found)
}

/// What the text of a file has.
pub(crate) fn module(path: Names, text: &str) -> Module {
    let all = without_tests(&tokens(text));
    let mut module = Module { path, ..Module::default() };
    let rest = module.read_imports(&all);
    module.read_items(&rest);
    module.read_mentions(&rest);
    for (_, function) in functions(&rest) {
        module.read_calls(&rest, &function);
    }
    module
}

/// The type that an `impl` at this place is for, and the place of its body.
fn implemented(tokens: &[Token<'_>], at: usize) -> Option<(Names, usize)> {
    let open = (at..tokens.len()).find(|&place| matches!(tokens[place].text, "{" | ";"))?;
    let after = behind_generics(tokens, at + 1);
    let target = (after..open).find(|&place| tokens[place].text == "for").map_or(after, |place| place + 1);
    Some((path_at(tokens, (target..open).find(|&place| tokens[place].is_word())?).0, open))
}

/// Whether an `impl` here begins a block and is no type.
fn begins_block(tokens: &[Token<'_>], at: usize) -> bool {
    tokens[at].text == "impl"
        && at.checked_sub(1).is_none_or(|before| matches!(tokens[before].text, "}" | ";" | "]" | "{" | "unsafe"))
}

/// A path that begins at a word, and the place behind it.
fn path_at(tokens: &[Token<'_>], mut at: usize) -> (Names, usize) {
    let mut path = vec![tokens[at].text.to_owned()];
    at += 1;
    while let [colon, other, word, ..] = &tokens[at..]
        && (colon.text, other.text) == (":", ":")
        && word.is_word()
    {
        path.push(word.text.to_owned());
        at += 3;
    }
    (path, at)
}

/// The paths that a type names: itself and its parameters.
fn types_in(tokens: &[Token<'_>]) -> Vec<Names> {
    let mut found = Vec::new();
    let mut at = 0;
    while at < tokens.len() {
        if tokens[at].is_word() {
            let (path, next) = path_at(tokens, at);
            found.push(path);
            at = next;
        } else {
            at += 1;
        }
    }
    found
}

/// The `name: type` of a list, from behind its opening bracket until its closing one.
fn declarations(tokens: &[Token<'_>], open: usize) -> Vec<(String, Vec<Names>)> {
    let end = behind(tokens, open) - 1;
    let mut found = Vec::new();
    let mut start = open + 1;
    while start < end {
        let mut stop = start;
        while stop < end && tokens[stop].text != "," {
            stop = match tokens[stop].text {
                "(" | "[" | "{" => behind(tokens, stop),
                "<" => behind_generics(tokens, stop),
                _ => stop + 1,
            };
        }
        let single = |at: &usize| {
            let colon = |at: usize| tokens.get(at).is_some_and(|token| token.text == ":");
            colon(*at) && !colon(*at + 1) && !colon(*at - 1)
        };
        if let Some(colon) = (start + 1..stop).find(single) {
            found.push((tokens[colon - 1].text.to_owned(), types_in(&tokens[colon + 1..stop])));
        }
        start = stop + 1;
    }
    found
}

/// A function with the type that its block is for, its parameters and the places of its body.
struct Function {
    of: Option<Names>,
    parameters: Vec<(String, Vec<Names>)>,
    body: std::ops::Range<usize>,
}

/// All functions that have bodies, by name; those inside another one come again by themselves.
fn functions<'a>(tokens: &[Token<'a>]) -> Vec<(&'a str, Function)> {
    let mut found = Vec::new();
    let mut blocks: Vec<(Names, usize)> = Vec::new();
    for at in 0..tokens.len() {
        blocks.retain(|&(_, end)| at < end);
        if begins_block(tokens, at)
            && let Some((of, open)) = implemented(tokens, at)
        {
            blocks.push((of, behind(tokens, open)));
        }
        if tokens[at].text != "fn" || !tokens.get(at + 1).is_some_and(Token::is_word) {
            continue;
        }
        let list = behind_generics(tokens, at + 2);
        let after = behind(tokens, list);
        let Some(open) = (after..tokens.len()).find(|&place| matches!(tokens[place].text, "{" | ";")) else { continue };
        if tokens[open].text == "{" {
            let of = blocks.last().map(|(of, _)| of.clone());
            let parameters = declarations(tokens, list);
            found.push((tokens[at + 1].text, Function { of, parameters, body: open..behind(tokens, open) }));
        }
    }
    found
}

/// Takes `pub` or `pub(...)` off the end, if it is there.
fn take_visibility(tokens: &mut Vec<Token<'_>>) -> bool {
    let closes = tokens.last().is_some_and(|last| last.text == ")");
    let open = if closes { tokens.iter().rposition(|token| token.text == "(") } else { Some(tokens.len()) };
    let Some(place) = open.and_then(|open| open.checked_sub(1)).filter(|&place| tokens[place].text == "pub") else {
        return false;
    };
    tokens.truncate(place);
    true
}

impl Module {
    /// Reads `use` and takes it out. What is imported for others alone is no mention.
    fn read_imports<'a>(&mut self, all: &[Token<'a>]) -> Vec<Token<'a>> {
        let (mut rest, mut leaves) = (Vec::new(), Vec::new());
        let mut at = 0;
        while at < all.len() {
            // A visibility names a module without using it.
            if all[at].text == "pub" && all[at + 1..].iter().map(|token| token.text).take(2).eq(["(", "in"]) {
                rest.push(all[at]);
                at = behind(all, at + 1);
                continue;
            }
            let is_import = all[at].text == "use" && all.get(at + 1).is_none_or(|next| next.text != "<");
            if !is_import {
                rest.push(all[at]);
                at += 1;
                continue;
            }
            let end = (at..all.len()).find(|&place| all[place].text == ";").unwrap_or(all.len());
            let public = take_visibility(&mut rest);
            read_tree(&all[at + 1..end], &Names::new(), &mut |path, name| {
                leaves.push((path, name, public, all[at].line));
            });
            at = end + 1;
        }
        for (path, name, public, line) in leaves {
            if !public || rest.iter().any(|token| token.text == name) {
                self.mentions.push((path.clone(), line));
            }
            self.imports.insert(name, path);
        }
        rest
    }

    fn read_items(&mut self, tokens: &[Token<'_>]) {
        for (at, token) in tokens.iter().enumerate() {
            let Some(name) = tokens.get(at + 1).filter(|name| name.is_word()) else { continue };
            match token.text {
                "mod" => self.children.push(name.text.to_owned()),
                "struct" | "enum" | "trait" | "type" | "union" => {
                    self.types.insert(name.text.to_owned());
                    let open = behind_generics(tokens, at + 2);
                    if token.text == "struct" && tokens.get(open).is_some_and(|token| token.text == "{") {
                        for (field, types) in declarations(tokens, open) {
                            self.fields.insert((name.text.to_owned(), field), types);
                        }
                    }
                }
                _ => {}
            }
        }
        for (name, function) in functions(tokens) {
            self.methods.extend(function.of.map(|of| (of, name.to_owned())));
        }
    }

    /// Every path of two names or more, and `name!`.
    fn read_mentions(&mut self, tokens: &[Token<'_>]) {
        let mut at = 0;
        while at < tokens.len() {
            if !tokens[at].is_word() {
                at += 1;
                continue;
            }
            let (path, next) = path_at(tokens, at);
            if path.len() > 1 && path[0] != "Self" {
                self.mentions.push((path, tokens[at].line));
            }
            at = next;
        }
    }

    /// Calls of methods on `self`, on parameters and on their fields, and of associated functions
    /// by `Self`.
    fn read_calls(&mut self, tokens: &[Token<'_>], function: &Function) {
        for at in function.body.clone() {
            let called = |at: usize| {
                let at = match &tokens[at + 1..] {
                    [a, b, c, ..] if (a.text, b.text, c.text) == (":", ":", "<") => behind_generics(tokens, at + 3),
                    _ => at + 1,
                };
                tokens.get(at).is_some_and(|token| token.text == "(")
            };
            if !tokens[at].is_word() || !called(at) {
                continue;
            }
            let by_self = at >= 3 && tokens[at - 1].text == ":" && tokens[at - 3].text == "Self";
            let (first, fields) = match tokens[at - 1].text {
                "." => match chain(tokens, at - 1) {
                    Some(chain) => chain,
                    None => continue,
                },
                _ if by_self => ("self", Names::new()),
                _ => continue,
            };
            let on: Vec<Names> = match first {
                "self" => function.of.iter().cloned().collect(),
                _ => function
                    .parameters
                    .iter()
                    .filter(|(name, _)| name == first)
                    .flat_map(|(_, on)| on.clone())
                    .collect(),
            };
            if !on.is_empty() {
                self.calls.push(Call { on, fields, method: tokens[at].text.to_owned(), line: tokens[at].line });
            }
        }
    }
}

/// The place before the bracket that the one at `close` closes.
fn before_bracket(tokens: &[Token<'_>], close: usize) -> Option<usize> {
    let mut depth = 0;
    for at in (0..=close).rev() {
        match tokens[at].text {
            ")" | "]" | "}" => depth += 1,
            "(" | "[" | "{" => depth -= 1,
            _ => {}
        }
        if depth == 0 {
            return at.checked_sub(1);
        }
    }
    None
}

/// What stands before the point at this place: a name with fields, indices left out. `None` for
/// anything else.
fn chain<'a>(tokens: &[Token<'a>], mut point: usize) -> Option<(&'a str, Names)> {
    let mut fields = Names::new();
    loop {
        let mut at = point.checked_sub(1)?;
        while tokens[at].text == "]" {
            at = before_bracket(tokens, at)?;
        }
        if !tokens[at].is_word() {
            return None;
        }
        match at.checked_sub(1).map(|before| tokens[before].text) {
            Some(".") => fields.insert(0, tokens[at].text.to_owned()),
            _ => return Some((tokens[at].text, fields)),
        }
        point = at - 1;
    }
}

/// The leaves of a tree of imports: each with its path and the name that it has here.
fn read_tree(tokens: &[Token<'_>], before: &Names, leaf: &mut impl FnMut(Names, String)) {
    let mut path = before.clone();
    let mut at = 0;
    let mut named = None;
    while at < tokens.len() {
        match tokens[at].text {
            "{" => {
                let end = behind(tokens, at) - 1;
                let mut start = at + 1;
                while start < end {
                    let mut stop = start;
                    while stop < end && tokens[stop].text != "," {
                        stop = if tokens[stop].text == "{" { behind(tokens, stop) } else { stop + 1 };
                    }
                    read_tree(&tokens[start..stop], &path, leaf);
                    start = stop + 1;
                }
                return;
            }
            "as" => {
                named = tokens.get(at + 1).map(|token| token.text.to_owned());
                break;
            }
            // A list that names its own module.
            "self" if !path.is_empty() => {}
            text if tokens[at].is_word() || text == "*" => path.push(text.to_owned()),
            _ => {}
        }
        at += 1;
    }
    if let Some(last) = path.last().cloned() {
        leaf(path, named.unwrap_or(last));
    }
}
