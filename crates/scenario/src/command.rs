//! `[[commands]]`: programs that run on hosts, in addition to the flows.

use std::collections::BTreeSet;

use ackclock_sim::spec::{CommandMeasure, CommandSpec, NodeSpec};
use ackclock_units::Span;

use crate::document::{Entry, Node, Value};
use crate::fields::Fields;
use crate::paths;
use crate::quantity::{Flag, OneOf, OrOff, Problem, Text, Time, is_name};
use crate::report::Diagnostic;

/// The most commands of a run: each is a process.
const MAX_COMMANDS: usize = 1000;

const MEASURES: OneOf = OneOf { what: "kind of output", names: &["json", "ping"] };

/// Reads `[[commands]]`. Wrong entries are reported and left out.
pub(crate) fn read_all(root: &mut Fields<'_>, nodes: &[NodeSpec], duration: Span) -> Vec<CommandSpec> {
    let expected = "sections `[[commands]]`, each with a `host` and what to `run`";
    let Some(entry) = root.get(("commands", "programs started on hosts behind devices")) else { return Vec::new() };
    let items = match entry.node.array() {
        Some(items) if items.len() <= MAX_COMMANDS => items,
        Some(_) => {
            root.reject("commands", &entry.node, Problem::new("too many", format!("at most {MAX_COMMANDS}")));
            return Vec::new();
        }
        None => {
            root.reject("commands", &entry.node, Problem::new("not a list of commands", expected));
            return Vec::new();
        }
    };
    let mut commands: Vec<CommandSpec> = Vec::new();
    let mut known = BTreeSet::new();
    for (index, (item, id)) in items.iter().zip(ids(items)).enumerate() {
        let Some(fields) = root.item("commands", index, item, expected) else { continue };
        let shown = id.as_ref().filter(|id| is_name(id)).map(|id| format!("commands.{id}"));
        let shown = shown.unwrap_or_else(|| format!("commands.{index}"));
        let Some(command) = read(fields.shown_as(shown), id, nodes, duration) else { continue };
        if !known.insert(command.id.clone()) {
            let place = item.table().and_then(|table| table.get("id")).map_or(&item.place, |entry| &entry.node.place);
            let title = format!("two commands are called `{}`", command.id);
            root.push(Diagnostic::new(title, place, "used a second time").note("expected an id of its own for each"));
        }
        if command.terminal
            && let Some(other) = commands.iter().find(|other| other.terminal)
        {
            let title = format!("commands.{}: the terminal belongs to `{}` already", command.id, other.id);
            let place =
                item.table().and_then(|table| table.get("terminal")).map_or(&item.place, |entry| &entry.node.place);
            root.push(Diagnostic::new(title, place, "asks for it too").note("expected one command with `terminal`"));
        }
        commands.push(command);
    }
    commands
}

/// The names of commands: `id`, or else the host with how many of its commands stand before. `None`
/// where neither can be told.
pub(crate) fn ids(items: &[Node]) -> impl Iterator<Item = Option<String>> + '_ {
    let key = |item: &Node, key| item.table().and_then(|table| table.get(key)?.node.str().map(str::to_owned));
    items.iter().enumerate().map(move |(index, item)| {
        key(item, "id").or_else(|| {
            let host = key(item, "host")?;
            let before = items[..index].iter().filter(|item| key(item, "host").as_ref() == Some(&host)).count();
            Some(format!("{host}-{before}"))
        })
    })
}

fn read(mut fields: Fields<'_>, id: Option<String>, nodes: &[NodeSpec], duration: Span) -> Option<CommandSpec> {
    match fields.get(("id", "name of the command")) {
        Some(entry) if !entry.node.str().is_some_and(is_name) => {
            let expected = "a letter, then letters, digits, `-` and `_`";
            fields.reject("id", &entry.node, Problem::new("not a valid command name", expected));
        }
        Some(_) => {}
        None => id.iter().for_each(|id| fields.fill("id", id.as_str())),
    }
    let node = match fields.get(("host", "host whose namespace it runs in")) {
        Some(entry) => paths::host(&fields, "host", &entry.node, nodes).filter(|&node| {
            if nodes[node].tun.is_none() {
                let expected = "a host with a `tun`: only a kernel runs programs";
                let title = format!("the host `{}` is in this process", nodes[node].name);
                fields.reject("host", &entry.node, Problem::new(title, expected));
            }
            nodes[node].tun.is_some()
        }),
        None => {
            fields.missing("host", "the host that the command runs on");
            None
        }
    };
    let run = fields.required(
        ("run", "command line for `/bin/sh -c`"),
        Text,
        "a command for /bin/sh, such as \"ping -c 10 10.0.0.2\"",
    );
    if let (Some(run), Some(entry)) = (&run, fields.get("run"))
        && (run.trim().is_empty() || run.contains('\0'))
    {
        let title = if run.contains('\0') { "a command cannot have a NUL in it" } else { "must not be empty" };
        fields.reject("run", &entry.node, Problem::new(title, "a command for /bin/sh"));
    }
    let env = environment(&mut fields);
    let at = fields.or(("at", "start time"), Span::ZERO, Time::Any);
    let until = fields.maybe(("until", "time of its SIGINT"), Time::Positive);
    let measure =
        fields.or(("measure", "format of the output that the summary reads"), None, OrOff(MEASURES)).map(|name| {
            match name {
                "json" => CommandMeasure::Json,
                _ => CommandMeasure::Ping,
            }
        });
    let terminal =
        fields.or(("terminal", "attach it to standard input and output and end the run with it"), false, Flag);
    if terminal && let Some(entry) = fields.get("measure").filter(|_| measure.is_some()) {
        let expected = "either `measure` or `terminal`: what it prints goes to the terminal";
        fields.reject("measure", &entry.node, Problem::new("nothing of its output is read", expected));
    }
    times(&mut fields, at, until, duration);
    fields.finish();
    Some(CommandSpec { id: id?, node: node?, run: run?, env, at, until, measure, terminal })
}

/// Variables of the command's environment: text and whole numbers, sorted by their names.
fn environment(fields: &mut Fields<'_>) -> Vec<(String, String)> {
    let Some(entry) = fields.get(("env", "environment variables, text or whole numbers by name")) else {
        return Vec::new();
    };
    let Some(table) = entry.node.table() else {
        let problem = Problem::new("not a table", "names with values, such as `{ RATE = \"10M\" }`");
        fields.reject("env", &entry.node, problem);
        return Vec::new();
    };
    let mut variables = Vec::new();
    for Entry { key, key_place, node } in &table.0 {
        let shown = format!("env.{key}");
        let begins = key.starts_with(|c: char| c.is_ascii_alphabetic() || c == '_');
        if !begins || !key.chars().all(|c| c.is_ascii_alphanumeric() || c == '_') || key.starts_with("ACKCLOCK") {
            let title = format!("{}.{shown}: not a name for a variable", fields.shown());
            let expected = "expected a letter or `_`, then letters, digits and `_`, but not `ACKCLOCK...`";
            fields.push(Diagnostic::new(title, key_place, "this name").note(expected));
            continue;
        }
        match &node.value {
            Value::String(text) if !text.contains('\0') => variables.push((key.clone(), text.clone())),
            Value::Integer(number) => variables.push((key.clone(), number.to_string())),
            _ => {
                let problem = Problem::new("not the right type", "text without a NUL, or a whole number");
                fields.reject(&shown, node, problem);
            }
        }
    }
    variables.sort();
    variables
}

/// Checks that the command has some time to run.
fn times(fields: &mut Fields<'_>, at: Span, until: Option<Span>, duration: Span) {
    if let Some(entry) = fields.get("at").filter(|_| duration > Span::ZERO && at >= duration) {
        let expected = format!("a time within `run.duration`, which is {duration}");
        fields.reject("at", &entry.node, Problem::new("after the end of the run", expected));
    }
    let (Some(until), Some(entry)) = (until, fields.get("until")) else { return };
    if until <= at {
        let title = format!("not after `at`, which is {at}");
        fields.reject("until", &entry.node, Problem::new(title, "a later time"));
    } else if duration > Span::ZERO && until > duration {
        let expected = format!("a time within `run.duration`, which is {duration}");
        fields.reject("until", &entry.node, Problem::new("after the end of the run", expected));
    }
}
