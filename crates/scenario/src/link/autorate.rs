//! `autorate`: a shaper whose rate follows the delay of probes.

use std::sync::Arc;

use ackclock_emulator::{AutorateConfig, AutorateSpec};
use ackclock_sim::spec::QueueSpec;

use crate::document::{Node, Value};
use crate::fields::Fields;
use crate::keys::Domain;
use crate::parameters;
use crate::quantity::{Problem, Text};

const KEY: &str = "autorate";

/// Reads the key; `base` holds unless the file says otherwise.
pub(super) fn read(fields: &mut Fields<'_>, base: Option<AutorateSpec>, queue: &QueueSpec) -> Option<AutorateSpec> {
    let meaning = "the rate of the queue, a shaper, follows the delay of probes, as by cake-autorate; it begins with \
                   the queue's own";
    fields.declare((KEY, meaning), || Domain::Either(vec![Domain::Off, Domain::Table]));
    let spec = match fields.get(KEY).map(|entry| &entry.node) {
        None => {
            if base.is_none() {
                fields.fill(KEY, false);
            }
            base?
        }
        Some(Node { value: Value::Boolean(false), .. }) => return None,
        Some(Node { value: Value::Table(_), .. }) => table(fields, base)?,
        Some(node) => {
            let expected = "a table such as { probes = \"ping\", min_rate = \"5mbit\" }, or false";
            fields.reject(KEY, node, Problem::new("not the right type", expected));
            return None;
        }
    };
    if queue.clone().shaped().is_none() {
        let title = format!("`{}` has no rate that autorate could set", queue.name());
        let expected = "a queue of cake with a bandwidth or of tbf, or no autorate";
        match fields.peek(KEY) {
            Some(node) => fields.reject(KEY, node, Problem::new(title, expected)),
            None => {
                let error = crate::report::Diagnostic::new(
                    format!("{}: {title}", fields.shown()),
                    fields.place(),
                    "has `autorate` from the other direction",
                );
                fields.push(error.note(format!("expected {expected}")));
            }
        }
        return None;
    }
    Some(spec)
}

fn table(fields: &mut Fields<'_>, base: Option<AutorateSpec>) -> Option<AutorateSpec> {
    let mut section = fields.section(KEY, "");
    const PROBES: (&str, &str) = ("probes", "flow of `ping`, or a group of them, each of which is a reflector");
    const EXPECTED: &str = "the id of a flow of pings that is not summed up";
    let probes: Option<Arc<str>> = match &base {
        Some(base) => section.maybe(PROBES, Text).map(Arc::from).or(Some(Arc::clone(&base.probes))),
        None => section.required(PROBES, Text, EXPECTED).map(Arc::from),
    };
    let mut config = base.map_or_else(AutorateConfig::default, |base| base.config);
    parameters::read(&mut section, KEY, &mut config);
    if let (Some(node), Some(probes)) = (section.peek("probes"), &probes)
        && !is_ping(&section, probes)
    {
        section.reject("probes", node, Problem::new("there is no such flow of probes", EXPECTED));
    }
    section.finish();
    Some(AutorateSpec { config, probes: probes? })
}

/// Returns `true` if the flow with this id sends pings.
fn is_ping(fields: &Fields<'_>, id: &str) -> bool {
    let flows = fields.document().and_then(|root| root.get("flows")?.node.array()).unwrap_or_default();
    flows.iter().filter_map(Node::table).any(|flow| {
        let text = |key: &str| flow.get(key)?.node.str();
        let application = flow.get("application").map(|entry| &entry.node);
        let kind = application.and_then(|node| match node.table() {
            Some(table) => table.get("kind")?.node.str(),
            None => node.str(),
        });
        // Of sums there are no flows to ask.
        text("id") == Some(id) && kind == Some("ping") && text("results") != Some("sum")
    })
}
