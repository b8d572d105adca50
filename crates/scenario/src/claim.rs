//! The claim that a bound stands for: a result that a document reports. It changes no result and no
//! bound.

use serde_json::{Map, Value as Json};

use crate::document::{Node, Value};
use crate::fields::Fields;
use crate::keys::Domain;
use crate::quantity::{Kind, Problem};

/// A published result behind an expectation.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Claim {
    /// The figure, table or check of the document.
    pub source: String,
    /// The result that the document reports.
    pub published: Option<String>,
    /// The result measured on a real kernel.
    pub kernel: Option<String>,
    /// Why it is missed, or how words became bounds.
    pub note: Option<String>,
}

impl Claim {
    /// Adds the keys that were given.
    pub(crate) fn add_to(&self, json: &mut Map<String, Json>) {
        let given = [
            ("source", Some(&self.source)),
            ("published", self.published.as_ref()),
            ("kernel", self.kernel.as_ref()),
            ("note", self.note.as_ref()),
        ];
        let given = given.into_iter().filter_map(|(key, text)| Some((key.to_owned(), text?.as_str().into())));
        json.extend(given);
    }
}

/// Text with something in it.
struct Words;

impl Kind for Words {
    type Held = String;

    fn read(&self, node: &Node) -> Result<String, Problem> {
        let text = node.str().ok_or_else(|| Problem::of_type("a string"))?;
        if text.trim().is_empty() {
            return Err(Problem::new("no text", "some text, or to be left out"));
        }
        Ok(text.to_owned())
    }

    fn show(&self, held: &String) -> Value {
        Value::String(held.clone())
    }

    fn domain(&self) -> Domain {
        Domain::Text("any text")
    }
}

/// Reads the keys of an expectation; the others require `source`.
pub(crate) fn read(fields: &mut Fields<'_>) -> Option<Claim> {
    let source =
        fields.maybe(("source", "figure, table or check of a document, its row in `ackclock reproduce`"), Words);
    let [published, kernel, note] = [
        ("published", "the document's statement"),
        ("kernel", "a real kernel's measurement"),
        ("note", "reason of a miss, or derivation of the bounds from the source's words"),
    ]
    .map(|key| {
        let text = fields.maybe(key, Words);
        let (key, entry) = (key.0, fields.get(key)?);
        if fields.get("source").is_none() {
            let problem = Problem::new("it says something about a `source`, and there is none", "`source` beside it");
            fields.reject(key, &entry.node, problem);
        }
        text
    });
    Some(Claim { source: source?, published, kernel, note })
}
