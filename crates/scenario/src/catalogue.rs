//! The catalogue: what a scenario can name, with parameters, units, defaults, ranges and sources.
//!
//! There is no list apart from the tables that scenarios are read by: algorithms describe their
//! parameters ([`Configurable`]), the keys of hosts and applications are those that the parser asks
//! for ([`Scenario::keys`]), and metrics are the numbers of a summary.

use ackclock_cc::{CcSpec, HystartConfig, HystartPlusPlusConfig};
use ackclock_sim::spec::QueueSpec;
use ackclock_tcp::profile::Profile;
use ackclock_trace::metrics::MetricUnit;
use ackclock_units::parameter::{Configurable, Domain, Parameter, Setting, Value, Visitor};
use serde::Serialize;

use crate::document::Node;
use crate::keys::{self, Key};
use crate::own::Own;
use crate::quantity::Kind;
use crate::report::{Place, nearest};
use crate::scenario::Scenario;
use crate::write::inline;
use crate::{application, host, metric};

pub use schema::schema;

/// The names of the catalogues.
pub const CATEGORIES: [&str; 8] =
    ["queues", "controllers", "slow-start", "detectors", "hosts", "applications", "metrics", "keys"];

/// Something that a scenario can name.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize)]
pub struct Item {
    /// Its name, without quotes.
    pub name: String,
    /// Another setting that selects the item, as TOML.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub selected_by: Option<String>,
    /// Its parameters, or what is measured of it.
    pub keys: Vec<Described>,
    /// Another item, whose parameters it has too.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub and_of: Option<&'static str>,
}

/// A parameter, or a metric. Fields that do not apply are empty.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize)]
pub struct Described {
    /// Its key.
    pub name: String,
    /// Its unit.
    pub unit: String,
    /// The default as TOML in backquotes, or the rule that determines it.
    pub default: String,
    /// The possible values, in backquotes.
    pub range: String,
    /// Where it is from.
    pub source: String,
    /// The meaning, in a line.
    #[serde(skip_serializing_if = "String::is_empty")]
    pub meaning: String,
}

/// All items of a category, with the hosts and keys of stacks from outside; none if there is no such
/// category.
pub fn items(category: &str, own: &Own) -> Vec<Item> {
    match category {
        "queues" => queues(),
        "controllers" => controllers(),
        "slow-start" => slow_starts(),
        "detectors" => kinds("loss_detector", host::DETECTORS.names),
        "hosts" => host::Hosts::names()
            .into_iter()
            .map(host_of)
            .chain(own.carriers().map(|name| stack_of(name, own)))
            .collect(),
        "applications" => applications(),
        "metrics" => metric::all().into_iter().map(metrics).collect(),
        "keys" => sections(own),
        _ => Vec::new(),
    }
}

/// The queue disciplines.
pub(crate) fn queues() -> Vec<Item> {
    let of = |mut spec: QueueSpec| Item { name: spec.name().to_owned(), keys: Rows::of(&mut spec), ..Item::default() };
    QueueSpec::all().into_iter().map(of).collect()
}

/// The congestion controllers, on the host `rfc`.
pub(crate) fn controllers() -> Vec<Item> {
    let host = Profile::rfc().stack();
    let shared = Rows::of(&mut host.newreno.clone());
    let of = |mut spec: CcSpec| {
        let mut keys = Rows::of(&mut spec);
        let has_newreno = keys.len() > shared.len() && keys.ends_with(&shared);
        keys.truncate(keys.len() - if has_newreno { shared.len() } else { 0 });
        Item {
            name: spec.name().to_owned(),
            selected_by: spec.variant().map(|stack| format!("variant = \"{stack}\"")),
            keys,
            and_of: has_newreno.then_some("newreno"),
        }
    };
    CcSpec::NAMES.iter().flat_map(|name| CcSpec::variants(name, &host)).map(of).collect()
}

/// The values of `rules` in the key `hystart`.
pub(crate) fn slow_starts() -> Vec<Item> {
    let item = |name: &str, keys| Item { name: name.to_owned(), keys, ..Item::default() };
    vec![
        item("linux-2.6.32", Rows::of(&mut HystartConfig::default())),
        item("linux-3.9", Rows::of(&mut HystartConfig::default())),
        item("linux-6.1", Rows::of(&mut HystartConfig::default())),
        item("rfc9406", Rows::of(&mut HystartPlusPlusConfig::default())),
    ]
}

/// A scenario of one flow with these keys.
fn flow_with(keys: &str) -> String {
    format!(
        "schema = 1\n[run]\nduration = \"1s\"\n[links.l]\nrate = \"1mbit\"\ndelay = \"1ms\"\n\
         [[flows]]\nid = \"f\"\npath = [\"l\"]\n{keys}"
    )
}

/// The keys of a scenario below a path.
fn keys_below(text: &str, path: &str, own: &Own) -> Vec<Described> {
    let below = |key: Key| {
        let name = key.path.strip_prefix(path)?.strip_prefix('.')?.to_owned();
        (name != "kind").then(|| described(name, &key))
    };
    Scenario::keys_with(text, own).into_iter().filter_map(below).collect()
}

/// All keys, by the section of the file.
fn sections(own: &Own) -> Vec<Item> {
    let mut items: Vec<Item> = Vec::new();
    for found in crawl::all(own).iter() {
        let section = found.path.split(['.', '[']).next().unwrap_or("");
        let at = items.iter().position(|item| item.name == section).unwrap_or_else(|| {
            items.push(Item { name: section.to_owned(), ..Item::default() });
            items.len() - 1
        });
        items[at].keys.push(found_as(found));
    }
    items
}

fn found_as(found: &crawl::Found) -> Described {
    let domain = found.domain();
    let default = match &found.defaults[..] {
        _ if found.required => "required".to_owned(),
        [] if found.demanded => "required by some kinds".to_owned(),
        [] => String::new(),
        _ if found.varies() => "depends on other keys".to_owned(),
        [default, ..] => format!("`{default}`"),
    };
    let (unit, range) = (unit_of(&domain), range_of(&domain));
    let meaning = found.meaning.to_owned();
    Described { name: found.path.clone(), unit, default, range, source: String::new(), meaning }
}

fn described(name: String, key: &Key) -> Described {
    let default = match (&key.default, key.required) {
        (Some(default), _) => format!("`{default}`"),
        (None, true) => "required".to_owned(),
        (None, false) => String::new(),
    };
    let (unit, range) = (unit_of(&key.domain), range_of(&key.domain));
    Described { name, unit, default, range, source: String::new(), meaning: key.meaning.to_owned() }
}

fn kinds(key: &str, names: &[&str]) -> Vec<Item> {
    let of = |name: &&str| Item {
        name: (*name).to_owned(),
        keys: keys_below(&flow_with(&format!("{key} = {{ kind = \"{name}\" }}")), &format!("flows.0.{key}"), Own::NONE),
        ..Item::default()
    };
    names.iter().map(of).collect()
}

/// A host with the settings that it has, each a key of a flow as well.
fn host_of(name: &'static str) -> Item {
    let keys = keys_below(&flow_with(&format!("receiver = {{ host = \"{name}\" }}")), "flows.0.receiver", Own::NONE);
    let keys = keys.into_iter().filter(|key| key.name != "host").collect();
    Item { name: name.to_owned(), keys, ..Item::default() }
}

/// A stack as the host of a flow, with the settings that it has in `host`.
fn stack_of(name: &'static str, own: &Own) -> Item {
    let keys = keys_below(&flow_with(&format!("host = {{ kind = \"{name}\" }}")), "flows.0.host", &own.for_results());
    Item { name: name.to_owned(), keys, ..Item::default() }
}

/// Applications over TCP, then those over UDP.
fn applications() -> Vec<Item> {
    let udp = |name: &&str| Item {
        name: (*name).to_owned(),
        selected_by: Some("transport = \"udp\"".to_owned()),
        keys: keys_below(
            &flow_with(&format!("transport = \"udp\"\napplication = {{ kind = \"{name}\" }}")),
            "flows.0.application",
            Own::NONE,
        ),
        and_of: None,
    };
    let mut items = kinds("application", application::KINDS.names);
    items.extend(application::OVER_UDP.names.iter().map(udp));
    items
}

fn metrics((name, metrics): (&'static str, Vec<String>)) -> Item {
    let described =
        |name: String| Described { unit: MetricUnit::of(&name).base().to_owned(), name, ..Described::default() };
    Item { name: name.to_owned(), keys: metrics.into_iter().map(described).collect(), ..Item::default() }
}

/// A key's domain as a parameter's, which has words for it.
fn as_parameter(domain: &keys::Domain) -> Option<Domain> {
    Some(match *domain {
        keys::Domain::Flag => Domain::Flag,
        keys::Domain::Time { positive } => Domain::Time { positive },
        keys::Domain::Rate => Domain::Rate,
        keys::Domain::Bytes(least, most) => Domain::Bytes(least, most),
        keys::Domain::Packets(least, most) => Domain::Packets(least, most),
        keys::Domain::Whole(least, most) => Domain::Whole(least, most, ""),
        keys::Domain::PowerOfTwo(most) => Domain::PowerOfTwo(most),
        keys::Domain::Number(least, most) => Domain::Number(least, most, ""),
        _ => return None,
    })
}

fn unit_of(domain: &keys::Domain) -> String {
    match domain {
        keys::Domain::Either(domains) => {
            let mut units: Vec<String> = domains.iter().map(unit_of).filter(|unit| !unit.is_empty()).collect();
            units.dedup();
            units.join(" or ")
        }
        keys::Domain::List(domain) => unit_of(domain),
        domain => as_parameter(domain).as_ref().map_or("", unit).to_owned(),
    }
}

fn range_of(domain: &keys::Domain) -> String {
    let all = |names: &[&str]| names.iter().map(|name| format!("`\"{name}\"`")).collect::<Vec<_>>().join(", ");
    match domain {
        keys::Domain::Name(names) => all(names),
        keys::Domain::Off => "`false`".to_owned(),
        keys::Domain::Text("any text") => "text".to_owned(),
        keys::Domain::Text(form) => format!("such as `\"{form}\"`"),
        keys::Domain::Kind(names) => format!("{}, or a table with `kind`", all(names)),
        keys::Domain::Table => "a table".to_owned(),
        keys::Domain::List(domain) => format!("a list, each {}", range_of(domain)),
        keys::Domain::Structure => String::new(),
        keys::Domain::Either(domains) => {
            // Where some hosts allow what others refuse.
            let flag = domains.iter().any(|domain| matches!(domain, keys::Domain::Flag));
            let told = domains.iter().filter(|domain| !(flag && matches!(domain, keys::Domain::Off)));
            let (mut out, mut lists_values) = (String::new(), true);
            for domain in told {
                let is_value = matches!(domain, keys::Domain::Flag | keys::Domain::Off | keys::Domain::Name(_));
                lists_values &= is_value;
                match out.is_empty() {
                    true => {}
                    false if lists_values => out.push_str(", "),
                    false => out.push_str(", or "),
                }
                out.push_str(&range_of(domain));
            }
            out
        }
        domain => as_parameter(domain).as_ref().map(range).unwrap_or_default(),
    }
}

/// A value as scenarios have it.
fn shown(domain: &Domain, value: &Value) -> String {
    format!("`{}`", inline(&Node::new(domain.show(value), Place::new(0, 0..0))))
}

fn unit(domain: &Domain) -> &'static str {
    match *domain {
        Domain::Flag | Domain::Name { .. } | Domain::FlagOrName { .. } | Domain::NameOrFraction { .. } => "",
        Domain::Time { .. } => "time",
        Domain::Rate => "rate",
        Domain::Bytes(..) => "bytes",
        Domain::Packets(..) => "packets",
        Domain::Size(..) => "packets or bytes",
        Domain::Whole(.., unit) | Domain::Number(.., unit) => unit,
        Domain::PowerOfTwo(_) => "",
        Domain::FlagOr(domain) | Domain::OrOff(domain) | Domain::OrName(_, domain) => unit(domain),
        Domain::TimeOrPackets(..) => "time or packets",
        Domain::PartOfLimit { .. } => "that of `limit`",
    }
}

fn range(domain: &Domain) -> String {
    let of = |least: Value, most: Value| format!("{} to {}", shown(domain, &least), shown(domain, &most));
    let all = |names: &[&'static str]| {
        names.iter().map(|name| shown(domain, &Value::Name(name))).collect::<Vec<_>>().join(", ")
    };
    match *domain {
        Domain::Flag => "`true`, `false`".to_owned(),
        Domain::FlagOr(domain) => format!("`true`, `false`, {}", range(domain)),
        Domain::Time { positive } => if positive { "above 0" } else { "0 or more" }.to_owned(),
        Domain::Rate => "above 0".to_owned(),
        Domain::Bytes(least, most) | Domain::Packets(least, most) | Domain::Whole(least, most, _) => {
            of(Value::Whole(least), Value::Whole(most))
        }
        Domain::Size(least, most) => {
            let [packets, bytes] = [Domain::Packets(least, most), Domain::Bytes(least, most)];
            format!("{}, or {}", range(&packets), range(&bytes))
        }
        Domain::PowerOfTwo(most) => format!("powers of two up to `{most}`"),
        Domain::Number(least, most, _) => of(Value::Number(least), Value::Number(most)),
        Domain::Name { names, .. } => all(names),
        Domain::OrOff(domain) => format!("`false`, or {}", range(domain)),
        Domain::OrName(name, domain) => format!("`\"{name}\"`, or {}", range(domain)),
        Domain::TimeOrPackets(least, most) => format!("0 or more, or {}", range(&Domain::Packets(least, most))),
        Domain::FlagOrName { names, .. } => format!("`false`, `true` (the first), {}", all(names)),
        Domain::NameOrFraction { names, .. } => format!("{}, or a number above 0 and up to 1", all(names)),
        Domain::PartOfLimit { .. } => "`false`, `\"half\"`, or a size up to that of any limit".to_owned(),
    }
}

/// The parameters of an algorithm, one row for each.
#[derive(Default)]
struct Rows {
    rows: Vec<Described>,
    /// The feature whose parameters are listed.
    feature: String,
}

impl Rows {
    fn of(of: &mut impl Configurable) -> Vec<Described> {
        let mut rows = Rows::default();
        of.parameters(&mut rows);
        rows.rows
    }

    fn push(&mut self, name: &str, unit: &str, default: &str, range: &str, source: &str) {
        let [unit, default, range, source] = [unit, default, range, source].map(str::to_owned);
        let name = format!("{}{name}", self.feature);
        self.rows.push(Described { name, unit, default, range, source, meaning: String::new() });
    }
}

impl Visitor for Rows {
    fn visit<T: Setting>(&mut self, of: Parameter, at: &mut T) {
        let default = of.derived.map_or_else(|| shown(&of.domain, &at.value()), str::to_owned);
        self.push(of.name, unit(&of.domain), &default, &range(&of.domain), of.source);
    }

    fn feature<T: Configurable + Default>(&mut self, name: &'static str, source: &'static str, at: &mut Option<T>) {
        self.push(name, "", if at.is_some() { "`true`" } else { "`false`" }, "`false`, `true`, or a table of:", source);
        let before = std::mem::replace(&mut self.feature, format!("{name}."));
        at.take().unwrap_or_default().parameters(self);
        self.feature = before;
    }
}

/// The item of a name, or the name that is nearest to it.
///
/// # Errors
/// There is none: the nearest name, if one is near.
pub fn item(category: &str, name: &str, own: &Own) -> Result<Vec<Item>, Option<String>> {
    let all = items(category, own);
    let near = nearest(name, all.iter().map(|item| item.name.as_str())).map(str::to_owned);
    let found: Vec<Item> = all.into_iter().filter(|item| item.name == name).collect();
    if found.is_empty() { Err(near) } else { Ok(found) }
}

/// The category that is nearest to a name, if one is near.
pub fn nearest_category(name: &str) -> Option<&'static str> {
    nearest(name, CATEGORIES)
}

mod crawl;
mod schema;
#[cfg(test)]
mod tests;
