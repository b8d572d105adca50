//! `[topology]`: a network of many links, which are copies of links of the file, and the hosts in
//! it that flows are between.

use std::collections::BTreeMap;
use std::sync::Arc;

use ackclock_sim::spec::{LinkSpec, Pairs, Topology, TopologyKind};
use ackclock_units::Random;

use crate::document::{Node, Value};
use crate::fields::Fields;
use crate::keys::{self, Domain};
use crate::quantity::{Kind, OneOf, Problem, Whole};
use crate::report::{Diagnostic, did_you_mean, listed};

pub(crate) const KINDS: OneOf = OneOf { what: "topology", names: &["fat-tree", "dumbbell", "parking-lot"] };

const PAIRS: OneOf = OneOf { what: "pairs", names: &["all", "permutation", "sessions"] };

/// The most links of a network.
const MAX_LINKS: usize = 100_000;

/// The most ports of a switch of a fat-tree, which has 3 k^3 / 4 links: 93,750 with 50.
const MAX_PORTS: u64 = 50;

/// The most sessions of a dumbbell, which has two links for each and one more.
const MAX_SESSIONS: u64 = (MAX_LINKS as u64 - 1) / 2;

/// The most bottlenecks of a parking lot.
const MAX_HOPS: u64 = 1000;

/// Reads `[topology]`: the links of the run, and the network if there is one. The links that it is
/// copies of are not among them. `None` was reported.
pub(crate) fn read(root: &mut Fields<'_>, links: Vec<LinkSpec>) -> Option<(Vec<LinkSpec>, Option<Arc<Topology>>)> {
    let expected = "a section `[topology]` with `kind`";
    let Some(entry) = root.get(("topology", "network of many links, between whose hosts flows are")) else {
        return Some((links, None));
    };
    let errors = root.errors();
    for key in ["hosts", "paths"] {
        if let Some(other) = root.get(key) {
            let title = format!("`{key}` together with `topology`");
            let error = Diagnostic::new(title, &other.key_place, "conflicts with `[topology]`");
            root.push(error.note("expected one of them: the hosts of a topology are named by its rule"));
        }
    }
    match &entry.node.value {
        Value::Table(table) if table.get("kind").is_none() => {
            root.table("topology", expected)?.missing("kind", "a topology, such as \"fat-tree\"");
            return None;
        }
        Value::Table(_) => {}
        _ => {
            root.reject("topology", &entry.node, Problem::new("not a table", expected));
            return None;
        }
    }
    let meaning = ("topology", "network of many links, between whose hosts flows are");
    let rule = root.choose(meaning, KINDS.names[0], &KINDS, |kind, fields| rule(kind, fields, &links));
    let (kind, [access, core]) = rule.filter(|_| root.errors() == errors)?;
    let mut named: BTreeMap<&str, &LinkSpec> = links.iter().map(|link| (link.name.as_str(), link)).collect();
    let [of_hosts, between] = [access, core].map(|link| &links[link]);
    let built: Vec<LinkSpec> = (0..kind.links())
        .map(|number| {
            let name = kind.link_name(number);
            let template = if kind.is_access(number) { of_hosts } else { between };
            let link = named.remove(name.as_str()).unwrap_or(template);
            LinkSpec { name, ..link.clone() }
        })
        .collect();
    let is_apart = |link: &LinkSpec| {
        let is_template = [of_hosts, between].iter().any(|template| template.name == link.name);
        !is_template && named.contains_key(link.name.as_str())
    };
    let mut all: Vec<LinkSpec> = links.iter().filter(|link| is_apart(link)).cloned().collect();
    let topology = Topology { kind, first: all.len() };
    all.extend(built);
    Some((all, Some(Arc::new(topology))))
}

const ACCESS: (&str, &str) = ("access", "link of which those of the hosts are copies");
const BOTTLENECK: (&str, &str) = ("bottleneck", "link of which those between switches are copies");

/// The keys of one rule: it, and the links that those of hosts, and others, are copies of.
fn rule(kind: &str, fields: &mut Fields<'_>, links: &[LinkSpec]) -> Option<(TopologyKind, [usize; 2])> {
    let expected = "the name of a link, such as \"wire\"";
    let access = |fields: &mut Fields<'_>| fields.required(ACCESS, LinkName(links), expected);
    let bottleneck = |fields: &mut Fields<'_>| fields.required(BOTTLENECK, LinkName(links), expected);
    match kind {
        "fat-tree" => {
            let ports = ("k", "ports of each switch of a fat-tree; an even number");
            let k = fields.required(ports, PairPorts, "the ports of a switch, such as 8");
            let access = access(fields);
            let core = ("core", "link of which those between switches are copies; by default as `access`");
            let core = match access {
                Some(access) => Some(fields.or(core, access, LinkName(links))),
                None => fields.maybe(core, LinkName(links)),
            };
            Some((TopologyKind::FatTree(k? as usize), [access?, core?]))
        }
        "dumbbell" => {
            let key = ("sessions", "sources, and sinks, of a dumbbell");
            let sessions = fields.required(key, Whole(1, MAX_SESSIONS), "the number of sources, such as 100");
            let links = [access(fields), bottleneck(fields)];
            Some((TopologyKind::Dumbbell(sessions? as usize), [links[0]?, links[1]?]))
        }
        _ => {
            let key = ("hops", "bottlenecks in a row of a parking lot");
            let hops = fields.required(key, Whole(1, MAX_HOPS), "the number of bottlenecks, such as 3");
            let links = [access(fields), bottleneck(fields)];
            Some((TopologyKind::ParkingLot(hops? as usize), [links[0]?, links[1]?]))
        }
    }
}

/// The ports of a switch of a fat-tree: half of them lead up.
struct PairPorts;

impl Kind for PairPorts {
    type Held = u64;

    fn read(&self, node: &Node) -> Result<u64, Problem> {
        let expected = || format!("an even number from 2 to {MAX_PORTS}");
        let k = Whole(2, MAX_PORTS).read(node).map_err(|problem| Problem { expected: expected(), ..problem })?;
        if k % 2 == 1 { Err(Problem::new("an odd number of ports", expected())) } else { Ok(k) }
    }

    fn show(&self, held: &u64) -> Value {
        (*held).into()
    }

    fn domain(&self) -> Domain {
        Domain::Whole(2, MAX_PORTS)
    }
}

/// The name of one of these links.
struct LinkName<'n>(&'n [LinkSpec]);

impl Kind for LinkName<'_> {
    type Held = usize;

    fn read(&self, node: &Node) -> Result<usize, Problem> {
        let names = || self.0.iter().take(20).map(|link| link.name.as_str());
        let expected = format!("one of the links {}", listed(names()));
        let Some(name) = node.str() else { return Err(Problem::of_type(expected)) };
        let found = self.0.iter().position(|link| link.name == name);
        found.ok_or_else(|| Problem {
            help: did_you_mean(name, names()),
            ..Problem::new(format!("there is no link `{name}`"), expected)
        })
    }

    fn show(&self, held: &usize) -> Value {
        self.0[*held].name.as_str().into()
    }

    fn domain(&self) -> Domain {
        Domain::Text("wire")
    }
}

/// The hosts of a network that flows are between.
#[derive(Clone, Debug, PartialEq)]
pub(crate) struct Among {
    topology: Arc<Topology>,
    which: WhichPairs,
}

#[derive(Clone, Copy, Debug, PartialEq)]
enum WhichPairs {
    /// Two hosts, `from` and `to`.
    One([u32; 2]),
    All,
    /// Each host sends to one other, and receives from one.
    Permutation,
    /// The pairs of the network's rule.
    Sessions,
}

impl Among {
    /// Number of pairs.
    pub(crate) fn len(&self) -> usize {
        match self.which {
            WhichPairs::Permutation => self.topology.kind.hosts(),
            _ => self.expected().len(),
        }
    }

    /// The links of a flow's data where switches take their first ones.
    pub(crate) fn example(&self) -> Vec<usize> {
        let route = self.topology.route(self.expected().pair(0), |_| 0);
        route.into_iter().map(|direction| direction.link()).collect()
    }

    /// The mean share of the flows that pass a link forward.
    pub(crate) fn share(&self, link: usize) -> f64 {
        self.expected().share(link)
    }

    /// The pairs; where they are drawn, all that may be.
    fn expected(&self) -> Pairs {
        match self.which {
            WhichPairs::One(pair) => Pairs::listed(&self.topology, [pair]),
            WhichPairs::Sessions => Pairs::listed(&self.topology, self.topology.kind.sessions()),
            WhichPairs::All | WhichPairs::Permutation => Pairs::all(&self.topology),
        }
    }

    /// The pairs of repetition `run`, for the flows of this name.
    pub(crate) fn pairs(&self, seed: u64, run: u64, name: &str) -> Pairs {
        if self.which != WhichPairs::Permutation {
            return self.expected();
        }
        let mut random = Random::for_component(seed, run, &format!("{name}.pairs"));
        // One cycle through all hosts (Sattolo's algorithm): no host sends to itself.
        let mut to: Vec<u32> = (0..self.topology.kind.hosts() as u32).collect();
        for last in (1..to.len()).rev() {
            to.swap(last, random.below(last as u64) as usize);
        }
        Pairs::listed(&self.topology, (0..).zip(to).map(<[u32; 2]>::from).collect::<Vec<_>>())
    }
}

const KEY: (&str, &str) =
    ("pairs", "hosts of the topology that flows are between; `permutation`: each sends to one other");

/// Returns `true` if flows or a workload name hosts of a network, which is reported where there is
/// none.
pub(crate) fn is_named(fields: &mut Fields<'_>, topology: Option<&Arc<Topology>>) -> bool {
    if topology.is_some() {
        return ["from", "to", "pairs"].iter().any(|key| fields.peek(key).is_some());
    }
    if let Some(node) = fields.peek("pairs") {
        fields.get(KEY);
        fields.reject("pairs", node, Problem::new("without hosts", "a section `[topology]`, which has hosts"));
    }
    false
}

/// Reads the hosts of a network that flows or a workload are between. `None` was reported.
pub(crate) fn among(fields: &mut Fields<'_>, topology: &Arc<Topology>) -> Option<Among> {
    for key in ["path", "paths", "direction", "subflows", "port", "source_port", "data"] {
        if fields.peek(key).is_some()
            && let Some(entry) = fields.get(key)
        {
            let title = format!("{}: `{key}` between hosts of a topology", fields.shown());
            let error = Diagnostic::new(title, &entry.key_place, "means nothing there");
            fields.push(error.note("expected `from` and `to`, or `pairs`, alone: switches determine the path"));
        }
    }
    let kind = topology.kind;
    let which = match fields.maybe(KEY, PAIRS) {
        None if fields.peek("pairs").is_some() => return None,
        None => {
            let ends = [(keys::FROM, "the host that sends"), (keys::TO, "the host that receives")];
            let [from, to] = ends.map(|(key, expected)| match fields.get(key) {
                Some(entry) => host(fields, key.0, &entry.node, kind),
                None => {
                    fields.missing(key.0, expected);
                    None
                }
            });
            let pair = [from?, to?];
            if let (true, Some(entry)) = (pair[0] == pair[1], fields.get("to")) {
                let title = format!("a flow from `{}` to itself", kind.host_name(pair[0] as usize));
                fields.reject("to", &entry.node, Problem::new(title, "two different hosts"));
                return None;
            }
            WhichPairs::One(pair)
        }
        Some(name) => {
            for key in [keys::FROM, keys::TO] {
                if let Some(entry) = fields.get(key) {
                    fields.reject(key.0, &entry.node, Problem::new("not together with `pairs`", "one of the two"));
                }
            }
            let is_tree = matches!(kind, TopologyKind::FatTree(_));
            match name {
                "all" if is_tree => WhichPairs::All,
                "permutation" if is_tree => WhichPairs::Permutation,
                "sessions" if !is_tree => WhichPairs::Sessions,
                _ => {
                    let expected = if is_tree { "\"all\" or \"permutation\"" } else { "\"sessions\"" };
                    let entry = fields.get("pairs")?;
                    fields.reject("pairs", &entry.node, Problem::new("not in this topology", expected));
                    return None;
                }
            }
        }
    };
    Some(Among { topology: Arc::clone(topology), which })
}

fn host(fields: &Fields<'_>, key: &str, node: &Node, kind: TopologyKind) -> Option<u32> {
    let hosts = kind.hosts();
    let ends = match kind {
        TopologyKind::FatTree(_) => vec![0, hosts - 1],
        _ => vec![0, hosts / 2 - 1, hosts / 2, hosts - 1],
    };
    let ends: Vec<String> = ends.into_iter().map(|host| kind.host_name(host)).collect();
    let ranges: Vec<String> = ends.chunks(2).map(|ends| format!("`{}` to `{}`", ends[0], ends[1])).collect();
    let expected = format!("a host of the topology: {}", ranges.join(", "));
    let problem = match node.str() {
        None => Problem::of_type(expected),
        Some(name) => match kind.host(name) {
            Some(host) => return Some(host),
            None => Problem::new(format!("there is no host `{name}`"), expected),
        },
    };
    fields.reject(key, node, problem);
    None
}
