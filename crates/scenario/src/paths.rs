//! Paths over links: those of flows, and `[[paths]]` between hosts.

use std::collections::BTreeMap;
use std::net::{Ipv4Addr, Ipv6Addr};

use ackclock_emulator::{MAX_PATHS, SplitRule, send_vector};
use ackclock_sim::spec::{LinkSpec, NodeSpec, PipeSpec, RouterSpec, SplitSpec, WayBack};
use ackclock_units::Span;

use crate::document::{Node, Value};
use crate::fields::Fields;
use crate::hosts::{MIN_MTU, RouterAddress, RouterAddress6};
use crate::keys::{self, Domain};
use crate::quantity::{Bytes, Kind, OneOf, Problem, Time, Whole};
use crate::report::{Diagnostic, Place, did_you_mean, listed};

/// The links by name.
pub(crate) type Links<'n> = BTreeMap<&'n str, usize>;

/// The links by name.
pub(crate) fn names(links: &[LinkSpec]) -> Links<'_> {
    links.iter().enumerate().map(|(index, link)| (link.name.as_str(), index)).collect()
}

/// The hosts of a run and what is between them.
#[derive(Clone, Debug, Default, PartialEq)]
pub(crate) struct Network {
    pub(crate) nodes: Vec<NodeSpec>,
    pub(crate) pipes: Vec<PipeSpec>,
}

impl Network {
    /// The pipe between two hosts, and whether its first host is the first of these.
    pub(crate) fn between(&self, first: usize, second: usize) -> Option<(&PipeSpec, bool)> {
        let pipe = self.pipes.iter().find(|pipe| pipe.joins(first, second))?;
        Some((pipe, pipe.between[0] == first))
    }
}

/// The host of this name, by number; an unknown one is reported.
pub(crate) fn host(fields: &Fields<'_>, key: &str, node: &Node, nodes: &[NodeSpec]) -> Option<usize> {
    let names = || nodes.iter().map(|node| node.name.as_str());
    let expected = match nodes {
        [] => "a host, defined in a section `[hosts.NAME]`; there are none".to_owned(),
        nodes => format!("a host; there are: {}", listed(nodes.iter().take(20).map(|node| node.name.as_str()))),
    };
    let problem = match node.str() {
        None => Problem::new("not the right type", expected),
        Some(name) => match names().position(|known| known == name) {
            Some(number) => return Some(number),
            None => Problem {
                help: did_you_mean(name, names()),
                ..Problem::new(format!("there is no host `{name}`"), expected)
            },
        },
    };
    fields.reject(key, node, problem);
    None
}

/// The most paths between hosts of a run.
const MAX_PIPES: usize = 1000;

/// Reads `[[paths]]`. Wrong entries are reported and left out.
pub(crate) fn read_all(root: &mut Fields<'_>, links: &Links<'_>, nodes: &[NodeSpec]) -> Vec<PipeSpec> {
    let expected = "sections `[[paths]]`, each with the two hosts that it is `between` and a `path`";
    let Some(entry) = root.get(("paths", "routes between hosts")) else {
        if !nodes.is_empty() {
            root.missing("paths", expected);
        }
        return Vec::new();
    };
    let items = match entry.node.array() {
        Some(items) if (1..=MAX_PIPES).contains(&items.len()) => items,
        Some(items) if !items.is_empty() => {
            root.reject("paths", &entry.node, Problem::new("too many", format!("at most {MAX_PIPES}")));
            return Vec::new();
        }
        _ => {
            root.reject("paths", &entry.node, Problem::new("not a list of paths", expected));
            return Vec::new();
        }
    };
    let mut pipes: Vec<PipeSpec> = Vec::new();
    for (index, item) in items.iter().enumerate() {
        let Some(mut fields) = root.item("paths", index, item, expected) else { continue };
        let between = between(&mut fields, nodes, &pipes);
        let path = ("path", "links from the first host to the second, in order");
        let (path, split) = of(&mut fields, path, links);
        let router = fields.switch(
            ("router", "a router at the entry of the path; `false` is a wire"),
            Some(ROUTER),
            ROUTER,
            router,
        );
        fields.finish();
        pipes.extend(between.map(|between| PipeSpec { between, path, split, router }));
    }
    pipes
}

/// A router that says nothing of itself. The addresses are those of nobody: the dummies of RFC 7600
/// and RFC 9780.
const ROUTER: RouterSpec =
    RouterSpec { address: Ipv4Addr::new(192, 0, 0, 8), address6: Ipv6Addr::new(0x100, 0, 0, 1, 0, 0, 0, 8), mtu: None };

fn router(fields: &mut Fields<'_>, default: RouterSpec) -> RouterSpec {
    RouterSpec {
        address: fields.or(("address", "IPv4 source address of its ICMP errors"), default.address, RouterAddress),
        address6: fields.or(("address6", "IPv6 source address of its ICMP errors"), default.address6, RouterAddress6),
        mtu: fields
            .maybe(("mtu", "MTU of the path, if below the devices'"), Bytes(MIN_MTU, u16::MAX.into()))
            .map(|mtu| mtu as u16)
            .or(default.mtu),
    }
}

/// The two hosts of a path.
fn between(fields: &mut Fields<'_>, nodes: &[NodeSpec], pipes: &[PipeSpec]) -> Option<[usize; 2]> {
    let expected = "two hosts, such as [\"left\", \"right\"]";
    let Some(entry) = fields.get(("between", "the two hosts")) else {
        fields.missing("between", expected);
        return None;
    };
    let Some([first, second]) = entry.node.array() else {
        fields.reject("between", &entry.node, Problem::new("not two hosts", expected));
        return None;
    };
    let [first, second] = [first, second].map(|node| host(fields, "between", node, nodes));
    let (first, second) = (first?, second?);
    let name = |number: usize| nodes[number].name.as_str();
    let problem = if first == second {
        Problem::new(format!("a path between `{}` and itself", name(first)), "two different hosts")
    } else if pipes.iter().any(|pipe| pipe.joins(first, second)) {
        let title = format!("a second path between `{}` and `{}`", name(first), name(second));
        Problem::new(title, "a single path; `paths` in it, instead of `path`, alternates over two")
    } else if let (Some(_), Some(_), true) =
        (&nodes[first].tun, &nodes[second].tun, nodes[first].netns == nodes[second].netns)
    {
        let title = format!("`{}` and `{}` are in one namespace", name(first), name(second));
        Problem::new(title, "a separate `netns` for one of them: a kernel sends nothing to itself through a device")
    } else {
        return Some([first, second]);
    };
    fields.reject("between", &entry.node, problem);
    None
}

/// One path, or several over which packets are spread.
pub(crate) fn of(
    fields: &mut Fields<'_>,
    path: (&'static str, &'static str),
    links: &Links<'_>,
) -> (Vec<usize>, Option<SplitSpec>) {
    let one = fields.get(path).map(|entry| &entry.node);
    let Some(entry) = fields.get(keys::PATHS) else {
        let path = match one {
            Some(node) => links_of(fields, "path", node, links),
            None => {
                fields.missing("path", &path_expected(links));
                Vec::new()
            }
        };
        return (path, None);
    };
    let expected = "two to 16 paths, such as [[\"hspa\"], [\"wlan\"]]";
    if one.is_some() {
        let title = format!("{}: `path` and `paths` exclude each other", fields.shown());
        fields.push(
            Diagnostic::new(title, &entry.key_place, "conflicts with `path`").note(format!("expected {expected}")),
        );
    }
    let Some(nodes) = entry.node.array().filter(|nodes| (2..=MAX_PATHS).contains(&nodes.len())) else {
        fields.reject("paths", &entry.node, Problem::new("not several paths", expected));
        return (Vec::new(), None);
    };
    let along = split(fields, nodes.len());
    let back = back(fields, &along);
    let after_handshake =
        fields.or(("diverge", "split paths from the first packet, or send SYNs over the first path"), "start", DIVERGE)
            == "handshake";
    let whole_units = fields.or(
        ("split_unit", "the unit that is split over paths: packets, or units of segmentation offload"),
        "packet",
        UNIT,
    ) == "unit";
    let mut paths = nodes.iter().map(|node| links_of(fields, "paths", node, links));
    let first = paths.next().unwrap_or_default();
    let others = paths.collect();
    (first, Some(SplitSpec { others, along, back, after_handshake, whole_units }))
}

pub(crate) const SPLITS: OneOf =
    OneOf { what: "split", names: &["round_robin", "weighted", "send_vector", "random", "flow_hash", "flip"] };
const DIVERGE: OneOf = OneOf { what: "time to diverge", names: &["start", "handshake"] };
const UNIT: OneOf = OneOf { what: "unit that takes a path", names: &["packet", "unit"] };

/// Weights of paths are no finer.
const MAX_WEIGHT: u64 = 1 << 20;

/// Reads the rule by which packets take one of several paths.
fn split(fields: &mut Fields<'_>, paths: usize) -> SplitRule {
    let equal = || vec![1; paths];
    fields.choose(("split", "assignment of packets to paths"), "round_robin", &SPLITS, |kind, fields| match kind {
        "weighted" => SplitRule::Weighted(weights(fields, paths, true).unwrap_or_else(equal)),
        "random" => SplitRule::Random(weights(fields, paths, false).unwrap_or_else(equal)),
        "flow_hash" => SplitRule::FlowHash(weights(fields, paths, false).unwrap_or_else(equal)),
        "send_vector" => match weights(fields, paths, true).as_deref() {
            Some(&[first, second]) => SplitRule::Vector(send_vector(first, second).unwrap_or_default()),
            Some(_) => {
                let title = format!("{}: a send vector is for two paths", fields.shown());
                let error = Diagnostic::new(title, fields.place(), format!("there are {paths}"));
                fields.push(error.note("expected two paths, or the split `weighted`"));
                SplitRule::round_robin(paths)
            }
            None => SplitRule::round_robin(paths),
        },
        "flip" => {
            let expected = "how long all packets take one path, such as \"10s\"";
            let period = fields.required(("period", "time that all packets take one path"), Time::Positive, expected);
            SplitRule::Flip { period: period.unwrap_or(Span::from_secs(1)), paths }
        }
        _ => SplitRule::round_robin(paths),
    })
}

/// The odds or shares of so many paths; if they may be left out, all are the same.
fn weights(fields: &mut Fields<'_>, paths: usize, are_required: bool) -> Option<Vec<u32>> {
    let expected = format!("the weights of the {paths} paths, whole numbers, such as [2, 1]");
    let Some(entry) = fields.get(("weights", "weights of the paths")) else {
        if are_required {
            fields.missing("weights", &expected);
        } else {
            fields.fill("weights", Value::Array(vec![Node::new(1u64, Place::new(0, 0..0)); paths]));
        }
        return None;
    };
    let Some(nodes) = entry.node.array().filter(|nodes| nodes.len() == paths) else {
        fields.reject("weights", &entry.node, Problem::new(format!("not {paths} weights"), expected));
        return None;
    };
    let weight = |node| {
        let read = Whole(0, MAX_WEIGHT).read(node);
        read.map_err(|problem| fields.reject("weights", node, problem)).ok()
    };
    let weights: Vec<u32> = nodes.iter().map(|node| weight(node).map(|weight| weight as u32)).collect::<Option<_>>()?;
    if weights.iter().all(|&weight| weight == 0) {
        fields.reject("weights", &entry.node, Problem::new("no path has a weight", expected));
        return None;
    }
    Some(weights)
}

/// The way back over paths along which packets take this split.
fn back(fields: &mut Fields<'_>, along: &SplitRule) -> WayBack {
    let way =
        fields.or(("return_path", "path of the reverse direction: a flow's ACKs"), Way::Over(0), WayOf(along.paths()));
    match way {
        Way::Over(path) => WayBack::Over(path),
        Way::Split => WayBack::Split(along.clone()),
    }
}

/// The way back as it is written.
#[derive(Clone, Copy, Debug)]
enum Way {
    Over(usize),
    Split,
}

/// A way back over so many paths.
struct WayOf(usize);

impl Kind for WayOf {
    type Held = Way;

    fn read(&self, node: &Node) -> Result<Way, Problem> {
        let expected =
            || format!("`\"first\"`, `\"second\"`, the number of a path from 1 to {}, or `\"split\"`", self.0);
        match &node.value {
            Value::String(name) => match name.as_str() {
                "first" => Ok(Way::Over(0)),
                "second" => Ok(Way::Over(1)),
                "split" => Ok(Way::Split),
                _ => Err(Problem::new("no way back", expected())),
            },
            _ => match Whole(1, self.0 as u64).read(node) {
                Ok(number) => Ok(Way::Over(number as usize - 1)),
                Err(_) => Err(Problem::new("no way back", expected())),
            },
        }
    }

    fn show(&self, held: &Way) -> Value {
        match held {
            Way::Over(0) => "first".into(),
            Way::Over(1) => "second".into(),
            Way::Over(path) => (*path as u64 + 1).into(),
            Way::Split => "split".into(),
        }
    }

    fn domain(&self) -> Domain {
        Domain::Either(vec![Domain::Name(vec!["first", "second", "split"]), Domain::Whole(1, self.0 as u64)])
    }
}

fn path_expected(links: &Links<'_>) -> String {
    let known = listed(links.keys().copied().take(20));
    format!("the links that the data passes, in order, such as [\"bottleneck\"]; there are: {known}")
}

/// The links that a node lists; empty after an error, which was reported.
pub(crate) fn links_of(fields: &mut Fields<'_>, key: &str, node: &Node, links: &Links<'_>) -> Vec<usize> {
    let names = || links.keys().copied();
    let expected = || path_expected(links);
    let items = match node.array() {
        Some(items) if !items.is_empty() => items,
        array => {
            let title = if array.is_some() { "must not be empty" } else { "not an array" };
            fields.reject(key, node, Problem::new(title, expected()));
            return Vec::new();
        }
    };
    let mut path = Vec::new();
    for item in items {
        let problem = match item.str() {
            None => Problem::new("not a name of a link", expected()),
            Some(name) => match links.get(name) {
                Some(index) if path.contains(index) => {
                    Problem::new(format!("the link `{name}` is listed twice"), "each link at most once")
                }
                Some(index) => {
                    path.push(*index);
                    continue;
                }
                None => Problem {
                    help: did_you_mean(name, names()),
                    ..Problem::new(format!("there is no link `{name}`"), expected())
                },
            },
        };
        fields.reject(key, item, problem);
    }
    path
}
