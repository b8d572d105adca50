//! `ackclock list`: what a scenario can name.

use std::fmt::Write;

use ackclock_scenario::{CATEGORIES, Described, Item, Own, item, items, nearest_category};
use anyhow::bail;

use crate::args::list::ListArgs;
use crate::console::{print, print_line};
use crate::table::Table;

/// Columns of the overview.
const WIDTH: usize = 100;

/// A column's title, and its cell for a key.
type Column = (&'static str, fn(&Described) -> &str);

/// Prints what was asked for; the status to end with.
pub(crate) fn run(args: &ListArgs, own: &Own) -> anyhow::Result<u8> {
    let Some(category) = &args.category else {
        let printed = if args.json {
            let all = CATEGORIES.iter().map(|&category| (category.to_owned(), serde_json::json!(items(category, own))));
            print_line(&all.collect::<serde_json::Map<_, _>>())
        } else {
            print(&overview(own))
        };
        return printed.map(|_| 0);
    };
    if !CATEGORIES.contains(&category.as_str()) {
        let near = nearest_category(category).map_or(String::new(), |near| format!("; did you mean `{near}`?"));
        bail!("there is no category `{category}`{near}\nexpected one of {}", CATEGORIES.join(", "));
    }
    let found = match &args.name {
        None => items(category, own),
        Some(name) => match item(category, name, own) {
            Ok(found) => found,
            Err(near) => {
                let near = near.map_or(String::new(), |near| format!("; did you mean `{near}`?"));
                bail!(
                    "{category}: there is no `{name}`{near}\nexpected one of {}",
                    names(&items(category, own)).join(", ")
                );
            }
        },
    };
    let printed =
        if args.json { print_line(&found) } else { print(&found.iter().map(text).collect::<Vec<_>>().join("\n")) };
    printed.map(|_| 0)
}

/// The names, each once.
fn names(items: &[Item]) -> Vec<&str> {
    let mut names: Vec<&str> = items.iter().map(|item| item.name.as_str()).collect();
    names.dedup();
    names
}

/// The names of every category.
fn overview(own: &Own) -> String {
    let mut out = String::new();
    for category in CATEGORIES {
        let items = items(category, own);
        let mut line = format!("{category:<14}");
        for (index, name) in names(&items).into_iter().enumerate() {
            if index > 0 {
                line.push(',');
                if line.chars().count() + name.len() + 2 > WIDTH {
                    out.push_str(&line);
                    out.push('\n');
                    line = " ".repeat(13);
                }
                line.push(' ');
            }
            line.push_str(name);
        }
        out.push_str(&line);
        out.push('\n');
    }
    out.push_str("\n`ackclock list CATEGORY [NAME]` describes them.\n");
    out
}

/// An item with its keys; columns in which nothing stands are left out.
fn text(item: &Item) -> String {
    let mut out = item.name.clone();
    if let Some(selected_by) = &item.selected_by {
        let _ = write!(out, " ({selected_by})");
    }
    out.push('\n');
    let columns: [Column; 6] = [
        ("name", |key| &key.name),
        ("unit", |key| &key.unit),
        ("default", |key| &key.default),
        ("range", |key| &key.range),
        ("source", |key| &key.source),
        ("meaning", |key| &key.meaning),
    ];
    let used = |(_, cell): &&Column| item.keys.iter().any(|key| !cell(key).is_empty());
    let columns: Vec<_> = columns.iter().filter(used).collect();
    if !item.keys.is_empty() {
        let mut table = Table::new(columns.len(), columns.iter().map(|(title, _)| *title));
        for key in &item.keys {
            // Backquotes are for documents.
            table.row(columns.iter().map(|(_, cell)| cell(key).replace('`', "")));
        }
        out.push_str(&table.render());
    }
    if let Some(other) = item.and_of {
        let _ = writeln!(out, "and the parameters of {other}");
    }
    out
}
