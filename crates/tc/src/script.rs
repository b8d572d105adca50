//! Scripts of `tc` commands, and files for `tc -batch`.
//!
//! # Source
//! iproute2 7.1: `tc/tc.c` (options, objects), `tc/tc_qdisc.c`, `tc/tc_class.c`,
//! `tc/tc_filter.c` (actions).

use std::sync::Arc;

use crate::disciplines;
use crate::shell::{self, Joint, Simple, Variables, Word};
use crate::source::{Action, Command, Object, Options, Place, Read, Source};

/// Words that structure a script and do nothing by themselves.
const STRUCTURE: &[&str] =
    &["{", "}", "then", "else", "fi", "do", "done", "esac", ":", "true", "set", "exit", "return"];
/// Words whose condition decides what runs below.
const CONDITIONS: &[&str] = &["if", "elif", "while", "until", "for", "case"];
/// Words before assignments.
const DECLARATIONS: &[&str] = &["export", "local", "readonly", "declare", "typeset"];

/// The longest command that is shown whole.
const LONGEST: usize = 72;

pub(crate) fn read(source: &Source<'_>, options: &Options, read: &mut Read) {
    let file: Arc<str> = source.name.into();
    let mut variables = Variables::default();
    for name in ["TC", "IP"] {
        variables.set(name, Some(name.to_ascii_lowercase()));
    }
    for (name, value) in &options.variables {
        variables.set(name, Some(value.clone()));
    }
    let given = |name: &str| options.variables.iter().any(|(known, _)| known == name);
    // The result of the command before, where it is known.
    let mut succeeded = None;
    for command in shell::commands(source.text) {
        let place = Place { file: Arc::clone(&file), line: command.line };
        let is_skipped = match (command.joint, succeeded) {
            (Joint::And, Some(false)) | (Joint::Or, Some(true)) => true,
            (Joint::Pipe, _) => {
                read.leave(&place, shown(&variables.expand(&command)), "a pipe: not understood and not executed");
                continue;
            }
            (Joint::None, _) => {
                succeeded = None;
                false
            }
            _ => false,
        };
        if is_skipped || command.is_function {
            continue;
        }
        succeeded = run(&command, &place, &mut variables, &given, read);
    }
}

/// Takes a command in; its result, where it is known.
fn run(
    command: &Simple,
    place: &Place,
    variables: &mut Variables,
    given: &dyn Fn(&str) -> bool,
    read: &mut Read,
) -> Option<bool> {
    let mut words = variables.expand(command);
    let declares = words.first().is_some_and(|word| DECLARATIONS.contains(&word.text.as_str()));
    if declares {
        words.remove(0);
    }
    let assignments = words.iter().take_while(|word| assignment(word).is_some()).count();
    if assignments == words.len() || declares {
        for (name, value) in words.iter().filter_map(assignment) {
            // The command line takes precedence.
            if !given(name) {
                variables.set(name, value);
            }
        }
        return Some(true);
    }
    words.drain(..assignments);
    while words
        .first()
        .is_some_and(|word| ["sudo", "command", "exec", "then", "else", "do", "{"].contains(&&*word.text))
    {
        words.remove(0);
    }
    let first = words.first()?.text.as_str();
    let program = first.rsplit('/').next().unwrap_or(first);
    match program {
        "[" | "test" | "[[" => variables.test(&words[1..]),
        "tc" | "tc_wrapper" => {
            tc(&words[1..], place, read);
            None
        }
        "qdisc" | "class" | "filter" => {
            tc(&words, place, read);
            None
        }
        _ if STRUCTURE.contains(&program) => None,
        _ if CONDITIONS.contains(&program) => {
            let why = "the condition is not evaluated: the `tc` commands below it count once";
            read.leave(place, shown(&words), why);
            None
        }
        _ => {
            let why = match program {
                "iptables" | "ip6tables" | "nft" | "ipt" => "rules that mark packets are not read",
                _ => "not a `tc` command: not understood and not executed",
            };
            read.leave(place, shown(&words), why);
            None
        }
    }
}

/// Name and value of an assignment.
fn assignment(word: &Word) -> Option<(&str, Option<String>)> {
    let (name, value) = word.text.split_once('=')?;
    let is_name = name.starts_with(|c: char| c.is_ascii_alphabetic() || c == '_')
        && name.bytes().all(|byte| byte.is_ascii_alphanumeric() || byte == b'_');
    is_name.then(|| (name, word.unknown.is_none().then(|| value.to_owned())))
}

/// Takes the arguments of `tc` in.
fn tc(words: &[Word], place: &Place, read: &mut Read) {
    let (all, mut words) = (shown(words), words);
    while let Some(option) = words.first().filter(|word| word.text.starts_with('-')) {
        let option = option.text.as_str();
        let (is_namespace, is_batch) = (["-n", "-net", "-netns"].contains(&option), ["-b", "-batch"].contains(&option));
        let takes = is_namespace || is_batch || ["-cf", "-conf"].contains(&option);
        if is_batch {
            read.leave(place, all, "a batch in a file of its own: import that file as well");
            return;
        }
        if let (true, Some(name)) = (is_namespace, words.get(1)) {
            let what = format!("-n {}", name.text);
            // Once for each namespace.
            if read.left.iter().all(|left| left.what != what) {
                read.leave(place, what, "a namespace: devices are told apart by their names alone");
            }
        }
        words = words.get(1 + usize::from(takes)..).unwrap_or_default();
    }
    let (object, action) = match words {
        [] => return,
        [object] => (object, None),
        [object, action, ..] => (object, Some(action.text.as_str())),
    };
    let Some(object) = Object::by_name(&object.text) else {
        read.leave(place, all, "only qdiscs, classes and filters are read");
        return;
    };
    let Some(action) = action.and_then(Action::by_name) else {
        if action.is_some_and(|action| !["show", "list", "get", "help"].contains(&action)) {
            read.leave(place, all, "an action that is not read; expected add, replace, change or delete");
        }
        return;
    };
    let words = &known(words, place, read)[..];
    // A device of which nothing is known stands for itself.
    if let Some(unknown) = words[2..].iter().enumerate().find_map(|(at, word)| {
        let is_device = words[2..].get(at.wrapping_sub(1)).is_some_and(|before| before.text == "dev");
        word.unknown.as_ref().filter(|_| !is_device)
    }) {
        read.leave(place, all, format!("`{}` is not known before the script runs", unknown.replace('`', "")));
        return;
    }
    let words = words[2..].iter().map(|word| word.text.clone()).collect();
    read.commands.push(Command { place: place.clone(), object, action, words, name: None });
}

/// The words without those that may stand for options and are not known.
fn known(words: &[Word], place: &Place, read: &mut Read) -> Vec<Word> {
    let mut known: Vec<Word> = Vec::new();
    for word in words {
        // Behind a value or a name there is an option, behind an option its value.
        let is_option = known.last().is_some_and(|before| {
            let text = before.text.as_str();
            before.unknown.is_none()
                && (text == "root" || text.starts_with(|c: char| c.is_ascii_digit()) || disciplines::is_known(text))
        });
        match &word.unknown {
            Some(unknown) if is_option && word.text == *unknown => {
                read.leave(place, unknown.replace('`', ""), "its value is not known before the script runs: left out");
            }
            _ => known.push(word.clone()),
        }
    }
    known
}

/// A command, cut where it is long.
fn shown(words: &[Word]) -> String {
    let text = words.iter().map(|word| word.text.replace(['\n', '\r', '`'], " ")).collect::<Vec<_>>().join(" ");
    match text.char_indices().nth(LONGEST) {
        Some((end, _)) => format!("{} ...", &text[..end]),
        None => text,
    }
}
