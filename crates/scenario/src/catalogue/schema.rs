//! A JSON Schema of scenario files, for editors: made of the keys that the parser knows.
//!
//! # Source
//! JSON Schema draft 7, which taplo and the TOML extensions of editors understand.
//!
//! # Departures
//! It is more lenient than the parser: what depends on other keys, ids and sums of values is not in
//! it, quantities are text with a number and any unit, and keys of all kinds may stand together.

use std::collections::BTreeMap;

use serde_json::{Map, Value, json};

use super::crawl::{self, Found};
use super::{range_of, unit_of};
use crate::keys::Domain;
use crate::own::Own;

/// A number with a unit.
const QUANTITY: &str = r"^[0-9]*\.?[0-9]+([eE][+-]?[0-9]+)? ?[A-Za-z]+$";

/// A key with what is below it.
#[derive(Default)]
struct Node {
    found: Option<Found>,
    keys: BTreeMap<String, Node>,
    /// Below any name.
    named: Option<Box<Node>>,
    /// In a list.
    entries: Option<Box<Node>>,
}

impl Node {
    /// The node at a path, which is made if it is not there.
    fn at(&mut self, path: &str) -> &mut Node {
        let mut node = self;
        for part in path.split('.') {
            let name = part.trim_end_matches("[]");
            node = if name == "NAME" {
                node.named.get_or_insert_default()
            } else {
                node.keys.entry(name.to_owned()).or_default()
            };
            for _ in 0..part.matches("[]").count() {
                node = node.entries.get_or_insert_default();
            }
        }
        node
    }

    /// The schema of a table; `kinds` are the names of tables with keys of one kind alone.
    fn table(&self, kinds: &[&str]) -> Value {
        let mut properties: Map<String, Value> =
            self.keys.iter().map(|(name, node)| (name.clone(), node.schema())).collect();
        let of_kind: Map<String, Value> = properties
            .iter()
            .filter(|(name, _)| *name != "kind")
            .map(|(name, key)| (name.clone(), key.clone()))
            .collect();
        for kind in kinds {
            let entry = properties.entry((*kind).to_owned());
            entry.or_insert_with(|| json!({ "type": "object", "properties": of_kind, "additionalProperties": false }));
        }
        let others = self.named.as_ref().map_or(Value::Bool(false), |named| named.schema());
        json!({ "type": "object", "properties": properties, "additionalProperties": others })
    }

    fn schema(&self) -> Value {
        let mut forms = Vec::new();
        let domain = self.found.as_ref().map(Found::domain);
        let mut kinds = Vec::new();
        if let Some(domain) = &domain {
            gather(domain, &mut forms, &mut kinds);
        }
        let is_extent = self.found.as_ref().is_some_and(|found| found.path.contains(".queue."));
        if is_extent && matches!(domain, Some(Domain::Bytes(..) | Domain::Packets(..) | Domain::Either(_))) {
            // Sizes in bandwidth-delay products of a path.
            forms.push(json!({ "type": "object" }));
        }
        if !self.keys.is_empty() || self.named.is_some() {
            forms.push(self.table(&kinds));
        }
        if let Some(entries) = &self.entries {
            forms.push(json!({ "type": "array", "items": entries.schema() }));
        }
        let is_free = domain == Some(Domain::Structure) && self.keys.is_empty() && self.entries.is_none();
        let mut schema = match forms.len() {
            _ if is_free && self.named.is_none() => json!({}),
            0 => json!({}),
            1 => forms.remove(0),
            _ => json!({ "anyOf": forms }),
        };
        if let (Some(found), Some(schema)) = (&self.found, schema.as_object_mut()) {
            describe(found, schema);
        }
        schema
    }
}

/// Gathers the forms of a domain; kinds are added to `kinds`.
fn gather(domain: &Domain, forms: &mut Vec<Value>, kinds: &mut Vec<&'static str>) {
    forms.push(match domain {
        Domain::Flag => json!({ "type": "boolean" }),
        Domain::Off => json!({ "const": false }),
        Domain::Time { .. } | Domain::Rate | Domain::Bytes(..) | Domain::Packets(..) => {
            json!({ "type": "string", "pattern": QUANTITY })
        }
        Domain::Whole(least, most) => json!({ "type": "integer", "minimum": least, "maximum": most }),
        Domain::PowerOfTwo(most) => json!({ "type": "integer", "minimum": 1, "maximum": most }),
        Domain::Number(least, most) => json!({ "type": "number", "minimum": least, "maximum": most }),
        Domain::Name(names) => json!({ "enum": names }),
        Domain::Text(_) => json!({ "type": "string" }),
        Domain::Kind(names) => {
            kinds.extend(names);
            json!({ "enum": names })
        }
        Domain::List(domain) => {
            let mut items = Vec::new();
            gather(domain, &mut items, &mut Vec::new());
            json!({ "type": "array", "items": items.pop() })
        }
        Domain::Either(domains) => return domains.iter().for_each(|domain| gather(domain, forms, kinds)),
        Domain::Table | Domain::Structure => return,
    });
}

/// Adds an editor's description of a key.
fn describe(found: &Found, schema: &mut Map<String, Value>) {
    let domain = found.domain();
    let (meaning, unit, range) = (found.meaning, unit_of(&domain), range_of(&domain));
    let default = match &found.defaults[..] {
        [default] if !found.varies() => format!("default {default}"),
        _ => String::new(),
    };
    let parts = [meaning, &unit, &range.replace('`', ""), &default];
    let parts: Vec<&str> = parts.into_iter().filter(|part| !part.is_empty()).collect();
    if !parts.is_empty() {
        schema.insert("description".to_owned(), parts.join("; ").into());
    }
}

/// Tables that stand in several places become definitions, which are referred to.
#[derive(Default)]
struct Definitions {
    /// Number of occurrences of each table, as text.
    seen: BTreeMap<String, usize>,
    made: Map<String, Value>,
    names: BTreeMap<String, String>,
}

impl Definitions {
    /// The text of a part, if it is worth a definition.
    fn text(part: &Value) -> Option<String> {
        part.get("properties").map(|_| part.to_string()).filter(|text| text.len() > 300)
    }

    fn parts(value: &mut Value) -> Box<dyn Iterator<Item = &mut Value> + '_> {
        match value {
            Value::Object(object) => Box::new(object.values_mut()),
            Value::Array(entries) => Box::new(entries.iter_mut()),
            _ => Box::new(std::iter::empty()),
        }
    }

    fn count(&mut self, value: &mut Value) {
        if let Some(text) = Definitions::text(value) {
            let seen = self.seen.entry(text).or_default();
            *seen += 1;
            // Its contents count once.
            if *seen > 1 {
                return;
            }
        }
        Definitions::parts(value).for_each(|part| self.count(part));
    }

    fn share(&mut self, value: &mut Value) {
        let text = Definitions::text(value).filter(|text| self.seen.get(text).is_some_and(|&seen| seen > 1));
        let Some(text) = text else {
            Definitions::parts(value).for_each(|part| self.share(part));
            return;
        };
        let name = match self.names.get(&text) {
            Some(name) => name.clone(),
            None => {
                let name = format!("table{}", self.names.len());
                self.names.insert(text, name.clone());
                let mut part = value.take();
                Definitions::parts(&mut part).for_each(|part| self.share(part));
                self.made.insert(name.clone(), part);
                name
            }
        };
        *value = json!({ "$ref": format!("#/definitions/{name}") });
    }
}

/// The schema of scenario files that may name algorithms and stacks from outside.
pub fn schema(own: &Own) -> Value {
    let mut root = Node::default();
    for found in crawl::all(own).iter() {
        root.at(&found.path).found = Some(found.clone());
    }
    // A stack may have any controller; a misspelt one of ours has to be seen.
    for found in crawl::all(Own::NONE).iter().filter(|found| !found.path.ends_with(".host")) {
        root.at(&found.path).found = Some(found.clone());
    }
    let mut schema = root.table(&[]);
    let mut definitions = Definitions::default();
    Definitions::parts(&mut schema).for_each(|part| definitions.count(part));
    Definitions::parts(&mut schema).for_each(|part| definitions.share(part));
    if let Some(schema) = schema.as_object_mut() {
        schema.insert("definitions".to_owned(), definitions.made.into());
        schema.insert("$schema".to_owned(), "http://json-schema.org/draft-07/schema#".into());
        schema.insert("title".to_owned(), "ackclock scenario".into());
        schema.insert("required".to_owned(), json!(["schema", "run", "links"]));
    }
    schema
}
