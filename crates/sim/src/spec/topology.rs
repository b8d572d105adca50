//! Networks of many links by a rule: their links, hosts, and the routes between hosts.
//!
//! # Source
//!
//! Fat-tree: Al-Fares, Loukissas, Vahdat, "A Scalable, Commodity Data Center Network Architecture",
//! SIGCOMM 2008, s2.2: of switches with k ports, k pods of k/2 edge and k/2 aggregation switches,
//! (k/2)^2 cores, k^3/4 hosts; a core has one port to each pod. Equal-cost multipath: RFC 2992 s2
//! (hash-threshold with equal regions).
//!
//! # Departures
//!
//! - Routes are by flow hash, as in switches today, and not by the two-level tables of the paper.
//! - Each switch hashes a flow with a seed of its own, so that choices one after another are
//!   independent. Switches with a common seed would use a part of their links only.

use std::sync::Arc;

use crate::index::DirectionId;

/// A network of many links.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Topology {
    /// The rule.
    pub kind: TopologyKind,
    /// The place of its first link among the links of the run; the others follow.
    pub first: usize,
}

/// The rule of a network.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum TopologyKind {
    /// Of switches with this many ports, an even number.
    FatTree(usize),
    /// Sources and as many sinks, each with a link of its own to its side of one bottleneck.
    Dumbbell(usize),
    /// So many bottlenecks in a row: source and sink 0 at its ends, and others across each.
    ParkingLot(usize),
}

/// The part of a network that a link belongs to, with its number there.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum TopologyPart {
    /// The link of a host; of a source or a sink, where they differ.
    Host(usize),
    Source(usize),
    Sink(usize),
    /// Between the switch of an edge and one of aggregation.
    Edge([usize; 2]),
    /// Between a switch of aggregation and a core.
    Core([usize; 2]),
    Bottleneck(usize),
}

impl TopologyKind {
    /// Half the ports of a switch of a fat-tree: its links up, or down.
    fn half(k: usize) -> usize {
        k / 2
    }

    /// The sources of a network that has sinks, too.
    fn sources(self) -> usize {
        match self {
            TopologyKind::FatTree(_) => 0,
            TopologyKind::Dumbbell(sources) => sources,
            TopologyKind::ParkingLot(hops) => hops.saturating_add(1),
        }
    }

    /// Number of hosts.
    pub fn hosts(self) -> usize {
        match self {
            TopologyKind::FatTree(k) => k.saturating_pow(3) / 4,
            _ => self.sources().saturating_mul(2),
        }
    }

    /// Number of links.
    pub fn links(self) -> usize {
        let hosts = self.hosts();
        match self {
            // As many between switches of edge and aggregation, and between those and cores.
            TopologyKind::FatTree(_) => hosts.saturating_mul(3),
            TopologyKind::Dumbbell(_) => hosts.saturating_add(1),
            TopologyKind::ParkingLot(hops) => hosts.saturating_add(hops),
        }
    }

    /// The pairs of hosts, source and sink, that the rule names; none of a fat-tree.
    pub fn sessions(self) -> Vec<[u32; 2]> {
        let sources = self.sources() as u32;
        (0..sources).map(|source| [source, sources + source]).collect()
    }

    /// The name of a host: sources come before sinks.
    pub fn host_name(self, host: usize) -> String {
        match (self, host.checked_sub(self.sources())) {
            (TopologyKind::FatTree(_), _) => format!("h{host}"),
            (_, None) => format!("s{host}"),
            (_, Some(sink)) => format!("d{sink}"),
        }
    }

    /// The host of this name.
    pub fn host(self, name: &str) -> Option<u32> {
        let number: usize = name.get(1..)?.parse().ok()?;
        let host = if name.starts_with('d') { number.checked_add(self.sources())? } else { number };
        (host < self.hosts() && self.host_name(host) == name).then_some(host as u32)
    }

    /// The part that the link at this place belongs to: those of hosts first, but for sinks.
    fn part(self, link: usize) -> TopologyPart {
        let hosts = self.hosts();
        match self {
            TopologyKind::FatTree(_) if link < hosts => TopologyPart::Host(link),
            TopologyKind::FatTree(k) => {
                let half = TopologyKind::half(k);
                let (of_cores, number) = ((link - hosts) / hosts, (link - hosts) % hosts);
                let (lower, up) = (number / half, number % half);
                match of_cores {
                    0 => TopologyPart::Edge([lower, lower / half * half + up]),
                    _ => TopologyPart::Core([lower, lower % half * half + up]),
                }
            }
            _ => {
                let sources = self.sources();
                let between = self.links() - hosts;
                match link.checked_sub(sources) {
                    None => TopologyPart::Source(link),
                    Some(number) if number < between => TopologyPart::Bottleneck(number),
                    Some(number) => TopologyPart::Sink(number - between),
                }
            }
        }
    }

    /// The name of a link, whose direction forward goes from its first end to its second.
    pub fn link_name(self, link: usize) -> String {
        match (self, self.part(link)) {
            (_, TopologyPart::Host(host)) => format!("h{host}"),
            (_, TopologyPart::Source(source)) => format!("s{source}"),
            (_, TopologyPart::Sink(sink)) => format!("d{sink}"),
            (_, TopologyPart::Edge([edge, aggregation])) => format!("e{edge}-a{aggregation}"),
            (_, TopologyPart::Core([aggregation, core])) => format!("a{aggregation}-c{core}"),
            (TopologyKind::ParkingLot(_), TopologyPart::Bottleneck(number)) => format!("b{}", number + 1),
            (_, TopologyPart::Bottleneck(_)) => "bottleneck".to_owned(),
        }
    }

    /// Returns true if a link is that of a host.
    pub fn is_access(self, link: usize) -> bool {
        matches!(self.part(link), TopologyPart::Host(_) | TopologyPart::Source(_) | TopologyPart::Sink(_))
    }
}

impl Topology {
    /// The route between two hosts, which are not the same; each switch with several links that
    /// lead on gives their number to `choose`.
    pub fn route(&self, between: [u32; 2], mut choose: impl FnMut(u64) -> u64) -> Vec<DirectionId> {
        let up = |link: usize| DirectionId::forward(self.first + link);
        let down = |link: usize| DirectionId::reverse(self.first + link);
        let [from, to] = between.map(|host| host as usize);
        let TopologyKind::FatTree(k) = self.kind else { return self.in_a_row([from, to]) };
        let (half, hosts) = (TopologyKind::half(k), self.kind.hosts());
        let [leaves, enters] = [from / half, to / half];
        let mut route = vec![up(from)];
        if leaves != enters {
            let through = choose(half as u64) as usize;
            route.push(up(hosts + leaves * half + through));
            let [pod, other] = [leaves / half, enters / half];
            if pod != other {
                let core = choose(half as u64) as usize;
                route.push(up(2 * hosts + (pod * half + through) * half + core));
                route.push(down(2 * hosts + (other * half + through) * half + core));
            }
            route.push(down(hosts + enters * half + through));
        }
        route.push(down(to));
        route
    }

    /// The route where switches stand in a row, sources before the bottlenecks and sinks behind.
    fn in_a_row(&self, [from, to]: [usize; 2]) -> Vec<DirectionId> {
        let sources = self.kind.sources();
        let bottlenecks = self.kind.links() - self.kind.hosts();
        // Source and sink 0 of a parking lot are at its ends, others on the sides of one bottleneck.
        let switch = |host: usize| match self.kind {
            TopologyKind::Dumbbell(_) => usize::from(host >= sources),
            _ if host == sources => bottlenecks,
            _ if host > sources => host - sources,
            _ => host.saturating_sub(1),
        };
        let access = |host: usize, leaves: bool| {
            let link = if host < sources { host } else { bottlenecks + host };
            let is_forward = leaves == (host < sources);
            self.direction(link, is_forward)
        };
        let [start, end] = [switch(from), switch(to)];
        let mut route = vec![access(from, true)];
        if start <= end {
            route.extend((start..end).map(|number| self.direction(sources + number, true)));
        } else {
            route.extend((end..start).rev().map(|number| self.direction(sources + number, false)));
        }
        route.push(access(to, false));
        route
    }

    fn direction(&self, link: usize, is_forward: bool) -> DirectionId {
        let link = self.first + link;
        if is_forward { DirectionId::forward(link) } else { DirectionId::reverse(link) }
    }

    /// The mean share of data between any two hosts of a fat-tree that passes the forward
    /// direction, which leads up, of one of its links: of the N (N - 1) ordered pairs those that a
    /// host, an edge or a pod sends beyond itself, spread over its links up.
    fn share(&self, link: usize) -> f64 {
        let TopologyKind::FatTree(k) = self.kind else { return 0.0 };
        let (half, hosts) = (TopologyKind::half(k) as f64, self.kind.hosts() as f64);
        let (below, links) = match self.kind.part(link) {
            TopologyPart::Edge(_) => (half, half),
            TopologyPart::Core(_) => (half * half, half * half),
            _ => (1.0, 1.0),
        };
        below * (hosts - below) / (hosts * (hosts - 1.0)) / links
    }

    /// The probability that a flow between two hosts passes the forward direction of a link.
    fn passes(&self, between: [u32; 2], link: usize) -> f64 {
        let wanted = self.direction(link, true);
        let (mut choices, mut found) = (Vec::new(), 0u64);
        self.route(between, |links| {
            choices.push(links);
            0
        });
        let all: u64 = choices.iter().product();
        for number in 0..all {
            let mut rest = number;
            let choose = |links| {
                let choice = rest % links;
                rest /= links;
                choice
            };
            found += u64::from(self.route(between, choose).contains(&wanted));
        }
        found as f64 / all as f64
    }
}

/// Pairs of hosts of a network, of which each flow has one.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Pairs {
    topology: Arc<Topology>,
    /// `None` is all ordered pairs of different hosts.
    listed: Option<Arc<[[u32; 2]]>>,
}

impl Pairs {
    /// These pairs.
    pub fn listed(topology: &Arc<Topology>, pairs: impl Into<Arc<[[u32; 2]]>>) -> Pairs {
        Pairs { topology: Arc::clone(topology), listed: Some(pairs.into()) }
    }

    /// All ordered pairs of different hosts of a fat-tree.
    pub fn all(topology: &Arc<Topology>) -> Pairs {
        Pairs { topology: Arc::clone(topology), listed: None }
    }

    /// Number of pairs.
    pub fn len(&self) -> usize {
        let hosts = self.topology.kind.hosts();
        self.listed.as_ref().map_or_else(|| hosts * (hosts - 1), |pairs| pairs.len())
    }

    /// Returns true if there is no pair.
    pub fn is_empty(&self) -> bool {
        self.len() == 0
    }

    /// The pair with this number, counted on from the first after the last.
    pub fn pair(&self, number: u64) -> [u32; 2] {
        let number = (number % self.len() as u64) as usize;
        if let Some(pairs) = &self.listed {
            return pairs[number];
        }
        let others = self.topology.kind.hosts() - 1;
        let (from, other) = (number / others, number % others);
        [from, other + usize::from(other >= from)].map(|host| host as u32)
    }

    /// The ends of the flow that has this pair.
    pub fn via(&self, number: u64) -> ViaSpec {
        ViaSpec { topology: Arc::clone(&self.topology), hosts: self.pair(number) }
    }

    /// The mean share of the pairs' data that passes the forward direction of a link of the run.
    pub fn share(&self, link: usize) -> f64 {
        let links = self.topology.kind.links();
        let Some(link) = link.checked_sub(self.topology.first).filter(|&link| link < links) else { return 0.0 };
        let Some(pairs) = &self.listed else { return self.topology.share(link) };
        pairs.iter().map(|&pair| self.topology.passes(pair, link)).sum::<f64>() / pairs.len() as f64
    }
}

/// The hosts of a network that a flow is between.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct ViaSpec {
    /// The network.
    pub topology: Arc<Topology>,
    /// Those that send and receive data.
    pub hosts: [u32; 2],
}

impl ViaSpec {
    /// The routes of data and of what comes back, each by a hash of its own: `choose` says which of
    /// so many links a switch takes, for data (`true`) or back.
    pub fn routes(&self, mut choose: impl FnMut(bool, u64) -> u64) -> [Vec<DirectionId>; 2] {
        let [from, to] = self.hosts;
        [
            self.topology.route([from, to], |links| choose(true, links)),
            self.topology.route([to, from], |links| choose(false, links)),
        ]
    }
}

#[cfg(test)]
mod tests;
