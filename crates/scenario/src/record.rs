//! `[record]`: what is recorded during a run, for `--out`.

use ackclock_sim::DirectionId;
use ackclock_sim::spec::LinkSpec;

use crate::document::{Node, Value};
use crate::fields::Fields;
use crate::quantity::{Flag, Problem};
use crate::report::{listed, nearest};

const EXPECTED: &str =
    "`true` for all link directions, `false` for none, or an array of some, such as [\"bottleneck.forward\"]";

/// How many ids an error lists.
const MAX_LISTED: usize = 10;

/// What is recorded.
#[derive(Clone, Debug, Default)]
pub(crate) struct Record {
    /// The link directions whose queues are, in order.
    pub(crate) queues: Vec<DirectionId>,
    /// Whether ACKs, retransmissions and losses of flows are.
    pub(crate) tcp: bool,
    /// Whether every segment of the hosts is.
    pub(crate) siftr: bool,
    /// Whether the measurements of enhanced round-trip times are.
    pub(crate) ertt: bool,
    /// Whether every flow of a workload is.
    pub(crate) flows: bool,
}

/// Reads `[record]`.
pub(crate) fn read(root: &mut Fields<'_>, links: &[LinkSpec]) -> Record {
    let mut fields = root.section("record", "a section `[record]` with `queue`, `tcp`, `siftr`, `ertt` or `flows`");
    let queues = queues(&mut fields, links);
    let tcp = fields.or("tcp", false, Flag);
    let siftr = fields.or("siftr", false, Flag);
    let ertt = fields.or("ertt", false, Flag);
    let flows = fields.or("flows", false, Flag);
    fields.finish();
    Record { queues, tcp, siftr, ertt, flows }
}

fn queues(fields: &mut Fields<'_>, links: &[LinkSpec]) -> Vec<DirectionId> {
    let Some(entry) = fields.get("queue") else {
        fields.fill("queue", false);
        return Vec::new();
    };
    let items = match &entry.node.value {
        Value::Boolean(all) => return if *all { DirectionId::all(links.len()).collect() } else { Vec::new() },
        Value::Array(items) => items,
        Value::String(id) => {
            let mut problem = Problem::new("not the right type", EXPECTED);
            problem.help = Some(format!("in an array: [\"{id}\"]")).filter(|_| direction(id, links).is_some());
            fields.reject("queue", &entry.node, problem);
            return Vec::new();
        }
        _ => {
            fields.reject("queue", &entry.node, Problem::new("not the right type", EXPECTED));
            return Vec::new();
        }
    };
    let found = items.iter().filter_map(|item| {
        item.str().and_then(|id| direction(id, links)).or_else(|| {
            fields.reject("queue", item, unknown(item, links));
            None
        })
    });
    let mut directions: Vec<DirectionId> = found.collect();
    directions.sort_unstable();
    directions.dedup();
    directions
}

/// The link direction of this name.
fn direction(id: &str, links: &[LinkSpec]) -> Option<DirectionId> {
    DirectionId::all(links.len()).zip(ids(links)).find_map(|(direction, known)| (known == id).then_some(direction))
}

/// The link directions in the order of their numbers.
fn ids(links: &[LinkSpec]) -> impl Iterator<Item = String> {
    links.iter().flat_map(|link| ["forward", "reverse"].map(|way| format!("{}.{way}", link.name)))
}

fn unknown(item: &Node, links: &[LinkSpec]) -> Problem {
    let ids: Vec<String> = ids(links).collect();
    let more = if ids.len() > MAX_LISTED { " and others" } else { "" };
    let expected = format!("link directions: {}{more}", listed(ids.iter().take(MAX_LISTED).map(String::as_str)));
    let Some(id) = item.str() else { return Problem::new("not a link direction", expected) };
    let mut problem = Problem::new("there is no such link direction", expected);
    let near = nearest(id, ids.iter().map(String::as_str))
        .or_else(|| ids.iter().map(String::as_str).find(|known| known.strip_suffix(".forward") == Some(id)));
    problem.help = near.map(|near| format!("did you mean `{near}`?"));
    problem
}
