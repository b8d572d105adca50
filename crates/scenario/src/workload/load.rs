//! `arrivals` and `load` of a workload: how long after one flow the next one arrives.

use ackclock_sim::spec::LinkSpec;
use ackclock_traffic::{Arrivals, Distribution};

use crate::distribution::{self, Unit};
use crate::document::Node;
use crate::fields::Fields;
use crate::flow::{MAX_FLOWS, Setting};
use crate::keys::{self, Domain};
use crate::quantity::{Number, OneOf, Problem, Whole};
use crate::topology::Among;

const LOADS: Number = Number(1e-6, 1000.0);

const KINDS: OneOf = OneOf { what: "kind of arrivals", names: &["incast"] };

/// The flows whose arrivals are to be read.
pub(super) struct WorkloadTraffic<'a> {
    /// Their sizes; `None` was reported.
    pub(super) size: Option<&'a Distribution>,
    /// Their paths; `None` for one that was reported.
    pub(super) paths: &'a [Option<Vec<usize>>],
    /// The hosts of a network that they are between; then the path is that of one of them.
    pub(super) among: Option<&'a Among>,
    pub(super) reverse: bool,
    /// The workload ends by itself.
    pub(super) ends: bool,
}

/// When flows arrive, and what drawn times are multiplied by. `None` was reported.
pub(super) fn read(
    fields: &mut Fields<'_>,
    setting: Setting<'_>,
    traffic: &WorkloadTraffic<'_>,
) -> Option<(Arrivals, f64)> {
    let load = fields.maybe(("load", "offered payload as a share of the rate of `link`"), LOADS);
    let per_second = per_second(fields, setting, traffic, load);
    fields.declare(("arrivals", "interarrival times, or incast"), arrivals_domain);
    let Some(entry) = fields.get("arrivals") else {
        if fields.get("load").is_none() {
            fields.missing(
                "arrivals",
                "the times between flows, such as { distribution = \"exponential\", mean = \"1ms\" }, or `load`",
            );
        }
        // Poisson.
        let gap = Distribution::exponential(1e9 / per_second?).ok()?;
        return Some((Arrivals::Gaps(gap), 1.0));
    };
    let wanted = match fields.get("load") {
        Some(_) => Some(per_second?),
        None => None,
    };
    let (arrivals, flows) = if entry.node.table().is_some_and(|table| table.get("kind").is_some()) {
        incast(fields, wanted)?
    } else {
        (Arrivals::Gaps(distribution::read(fields, "arrivals", Unit::Time)?), 1.0)
    };
    let (Arrivals::Gaps(gap) | Arrivals::Incast { every: gap, .. }) = &arrivals;
    let stretch = wanted.map_or(1.0, |wanted| flows * 1e9 / wanted / gap.mean());
    Some((arrivals, stretch))
}

/// Answers to requests, and how many flows each is; `wanted` is how many there are to be in a
/// second, if that is given.
fn incast(fields: &mut Fields<'_>, wanted: Option<f64>) -> Option<(Arrivals, f64)> {
    let mut table = fields.table("arrivals", "a table with `kind`, `senders` and `every`")?;
    table.required(keys::KIND, KINDS, "`incast`");
    let senders = table.required(
        ("senders", "flows that answer each incast request"),
        Whole(1, MAX_FLOWS),
        "the number of flows that answer a request, such as 40",
    );
    let every = match (table.get("every"), wanted) {
        (None, Some(wanted)) => Distribution::constant(senders? as f64 * 1e9 / wanted).ok(),
        _ => distribution::read(&mut table, ("every", "time between incast requests"), Unit::Time),
    };
    table.finish();
    let (senders, every) = (senders?, every?);
    Some((Arrivals::Incast { senders, every }, senders as f64))
}

/// Number of flows in a second that carry the load; `None` if it was reported, or there is none.
fn per_second(
    fields: &mut Fields<'_>,
    setting: Setting<'_>,
    traffic: &WorkloadTraffic<'_>,
    load: Option<f64>,
) -> Option<f64> {
    let link = fields.get(("link", "link that `load` is a share of"));
    let Some(entry) = fields.get("load") else {
        if let Some(entry) = link {
            fields.reject("link", &entry.node, Problem::new("without `load`", "the link that `load` is a share of"));
        }
        return None;
    };
    let load = load?;
    if load >= 1.0 && !traffic.ends {
        let problem = Problem::new(
            "flows would come faster than they end, without an end in sight",
            "less than 1, or `stop` or `count`, after which the flows that there are come to their ends",
        );
        fields.reject("load", &entry.node, problem);
        return None;
    }
    let rate = |link: usize| {
        let link = setting.links.get(link)?;
        if traffic.reverse { link.reverse.rate } else { link.forward.rate }
    };
    let paths: Vec<&Vec<usize>> = traffic.paths.iter().flatten().collect();
    let link = match link {
        Some(entry) => link_named(fields, &entry.node, setting.links)?,
        None => {
            let slowest =
                paths.first()?.iter().copied().filter(|&link| rate(link).is_some()).min_by_key(|&link| rate(link));
            let Some(slowest) = slowest else {
                let title = "a share of what: none of the links has a rate";
                fields.reject(
                    "load",
                    &entry.node,
                    Problem::new(title, "a `rate` of a link on the path, or `arrivals`"),
                );
                return None;
            };
            fields.fill("link", setting.links[slowest].name.as_str());
            slowest
        }
    };
    let share = match traffic.among {
        Some(among) => among.share(link),
        None => {
            let passing = paths.iter().filter(|path| path.contains(&link)).count();
            passing as f64 / traffic.paths.len() as f64
        }
    };
    let node = fields.get("link").map_or(&entry.node, |entry| &entry.node);
    let Some(rate) = rate(link) else {
        fields.reject("link", node, Problem::new("its rate is unlimited", "a link with a `rate`"));
        return None;
    };
    if share == 0.0 {
        if paths.len() == traffic.paths.len() && !paths.is_empty() {
            fields.reject("link", node, Problem::new("no flow passes it", "a link on a path of the workload"));
        }
        return None;
    }
    Some(load * rate.as_bps() as f64 / 8.0 / traffic.size?.mean() / share)
}

/// Finds a link by its name.
pub(super) fn link_named(fields: &Fields<'_>, node: &Node, links: &[LinkSpec]) -> Option<usize> {
    let found = node.str().and_then(|name| links.iter().position(|link| link.name == name));
    if found.is_none() {
        let names = || links.iter().take(20).map(|link| link.name.as_str());
        let problem = Problem {
            help: node.str().and_then(|name| crate::report::did_you_mean(name, names())),
            ..Problem::new("there is no such link", format!("one of {}", crate::report::listed(names())))
        };
        fields.reject("link", node, problem);
    }
    found
}

pub(super) fn arrivals_domain() -> Domain {
    Domain::Either(vec![Domain::Time { positive: true }, Domain::Table])
}
