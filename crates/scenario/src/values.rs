//! The values of a scenario by their dotted paths, to compare two of them.

use std::collections::BTreeMap;

use crate::document::{Node, Value, parse_document};
use crate::report::Report;
use crate::write::inline;

/// Every value of a scenario's text, as TOML, under its dotted path: `links.wire.rate`. Tables in
/// lists stand under their `id` if they have one, `flows.reno.cc`, otherwise under their number.
/// `None` if the text is not TOML.
pub fn values(text: &str) -> Option<BTreeMap<String, String>> {
    let root = parse_document(text, 0, &Report::default())?;
    let mut found = BTreeMap::new();
    collect("", &root, &mut found);
    Some(found)
}

fn collect(name: &str, node: &Node, found: &mut BTreeMap<String, String>) {
    let within = |key: &str| if name.is_empty() { key.to_owned() } else { format!("{name}.{key}") };
    match &node.value {
        Value::Table(table) => table.0.iter().for_each(|entry| collect(&within(&entry.key), &entry.node, found)),
        Value::Array(items) if items.iter().any(|item| item.table().is_some()) => {
            for (index, item) in items.iter().enumerate() {
                let id = item.table().and_then(|table| table.get("id")?.node.str());
                collect(&within(&id.map_or_else(|| index.to_string(), str::to_owned)), item, found);
            }
        }
        _ => {
            found.insert(name.to_owned(), inline(node));
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn values_stand_under_dotted_paths() {
        let text = "schema = 1\nrun.duration = \"2s\"\n[[flows]]\nid = \"f\"\npath = [\"a\", \"b\"]\n\
                    [[expect]]\nmetric = \"x\"\nwhen = { y = 1.5 }\n";
        let found: Vec<(String, String)> = values(text).expect("TOML").into_iter().collect();
        let expected = [
            ("expect.0.metric", "\"x\""),
            ("expect.0.when.y", "1.5"),
            ("flows.f.id", "\"f\""),
            ("flows.f.path", "[\"a\", \"b\"]"),
            ("run.duration", "\"2s\""),
            ("schema", "1"),
        ];
        assert_eq!(found, expected.map(|(path, value)| (path.to_owned(), value.to_owned())));
        assert_eq!(values("= 1"), None);
    }
}
