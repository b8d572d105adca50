use std::collections::{BTreeMap, BTreeSet};

use ackclock_units::Random;

use super::*;

fn topology(kind: TopologyKind) -> Arc<Topology> {
    Arc::new(Topology { kind, first: 3 })
}

/// The nodes that a direction leads from and to: those that the name of its link consists of, or
/// those that the rule puts there.
fn ends(topology: &Topology, direction: DirectionId) -> [String; 2] {
    let kind = topology.kind;
    let name = kind.link_name(direction.link() - topology.first);
    let ends = match (kind, name.split_once('-')) {
        (_, Some((lower, upper))) => [lower.to_owned(), upper.to_owned()],
        (TopologyKind::FatTree(k), None) => {
            let host: usize = name[1..].parse().expect("a number");
            [name.clone(), format!("e{}", host / (k / 2))]
        }
        (TopologyKind::Dumbbell(_), None) => match &name[..1] {
            "s" => [name, "left".to_owned()],
            "d" => ["right".to_owned(), name],
            _ => ["left", "right"].map(str::to_owned),
        },
        // Switch i stands before bottleneck i + 1.
        (TopologyKind::ParkingLot(hops), None) => {
            let number: usize = name[1..].parse().expect("a number");
            let switch = |number: usize| format!("switch {number}");
            match &name[..1] {
                "s" => [name.clone(), switch(number.saturating_sub(1))],
                "d" => [switch(if number == 0 { hops } else { number }), name.clone()],
                _ => [switch(number - 1), switch(number)],
            }
        }
    };
    let [first, second] = ends;
    if direction.side() == 0 { [first, second] } else { [second, first] }
}

/// All routes between two hosts, each with one choice after another.
fn all_routes(topology: &Topology, between: [u32; 2]) -> BTreeSet<Vec<DirectionId>> {
    (0..1 << 12)
        .map(|number: u64| {
            let mut rest = number;
            topology.route(between, |links| {
                let choice = rest % links;
                rest /= links;
                choice
            })
        })
        .collect()
}

#[test]
fn numbers_are_those_of_the_rules() {
    // Al-Fares et al., s2.2: k = 4 has 16 hosts in Figure 3, k = 48 has 27,648. Each host has a
    // link, and as many are between switches of edge and aggregation, and above these.
    for (k, hosts) in [(2, 2), (4, 16), (8, 128), (48, 27_648)] {
        let kind = TopologyKind::FatTree(k);
        assert_eq!((kind.hosts(), kind.links()), (hosts, 3 * hosts), "k = {k}");
    }
    assert_eq!((TopologyKind::Dumbbell(10).hosts(), TopologyKind::Dumbbell(10).links()), (20, 21));
    // The long session and one across each of three bottlenecks.
    assert_eq!((TopologyKind::ParkingLot(3).hosts(), TopologyKind::ParkingLot(3).links()), (8, 11));
}

#[test]
fn names_differ_and_are_found() {
    for kind in [TopologyKind::FatTree(6), TopologyKind::Dumbbell(12), TopologyKind::ParkingLot(11)] {
        let links: BTreeSet<String> = (0..kind.links()).map(|link| kind.link_name(link)).collect();
        assert_eq!(links.len(), kind.links());
        for host in 0..kind.hosts() {
            assert_eq!(kind.host(&kind.host_name(host)), Some(host as u32));
        }
        for wrong in ["", "h", "s", "x1", "h00", "s+1", "d-1", "h54", "s12", "d12", "é1", "h99999999999999999999"] {
            assert_eq!(kind.host(wrong), None, "{wrong}");
        }
    }
    // 16 links of hosts, 16 between edge and aggregation, in pods of two and two switches, and 16
    // above: core 1 is the second of those that each pod reaches over its first aggregation.
    let kind = TopologyKind::FatTree(4);
    let names: Vec<String> = [15, 16, 17, 18, 31, 32, 33, 34, 47].map(|link| kind.link_name(link)).to_vec();
    assert_eq!(names, ["h15", "e0-a0", "e0-a1", "e1-a0", "e7-a7", "a0-c0", "a0-c1", "a1-c2", "a7-c3"]);
}

#[test]
fn every_route_connects_its_ends() {
    for kind in [
        TopologyKind::FatTree(2),
        TopologyKind::FatTree(4),
        TopologyKind::FatTree(6),
        TopologyKind::Dumbbell(3),
        TopologyKind::ParkingLot(1),
        TopologyKind::ParkingLot(4),
    ] {
        let topology = topology(kind);
        let hosts = kind.hosts() as u32;
        for (from, to) in (0..hosts).flat_map(|from| (0..hosts).map(move |to| (from, to))).filter(|(a, b)| a != b) {
            for route in all_routes(&topology, [from, to]) {
                let steps: Vec<[String; 2]> = route.iter().map(|&direction| ends(&topology, direction)).collect();
                assert_eq!(steps[0][0], kind.host_name(from as usize));
                assert_eq!(steps.last().expect("it has links")[1], kind.host_name(to as usize));
                assert!(steps.windows(2).all(|pair| pair[0][1] == pair[1][0]), "{kind:?} {from} {to}: {steps:?}");
                let links: BTreeSet<usize> = route.iter().map(|direction| direction.link()).collect();
                assert_eq!(links.len(), route.len(), "a link twice: {steps:?}");
            }
        }
    }
}

#[test]
fn a_fat_tree_has_the_equal_cost_paths_of_its_paper() {
    // Hosts of one edge are two hops apart over one path, of one pod four over k/2, of two pods six
    // over (k/2)^2 (Al-Fares et al., s2.2).
    for k in [2, 4, 6, 8] {
        let (half, topology) = (k / 2, topology(TopologyKind::FatTree(k)));
        for to in 1..topology.kind.hosts() {
            let (paths, hops) = match to {
                to if to < half => (1, 2),
                to if to < half * half => (half, 4),
                _ => (half * half, 6),
            };
            let routes = all_routes(&topology, [0, to as u32]);
            assert_eq!(routes.len(), paths, "k = {k}, host {to}");
            assert!(routes.iter().all(|route| route.len() == hops));
        }
    }
}

#[test]
fn hashes_spread_flows_evenly_and_repeat() {
    let topology = topology(TopologyKind::FatTree(8));
    let via = ViaSpec { topology, hosts: [0, 127] };
    let routes = |seed, number: u32| {
        let hash = |way: &str| Random::for_component(seed, 0, &format!("flows.web.{number}.ecmp.{way}"));
        let [mut data, mut acks] = ["data", "acks"].map(hash);
        via.routes(|is_data, links| if is_data { data.below(links) } else { acks.below(links) })
    };
    let (mut data, mut acks, mut both) = (BTreeMap::new(), BTreeMap::new(), BTreeMap::new());
    let flows = 16_000;
    for number in 0..flows {
        let [there, back] = routes(1, number);
        assert_eq!([there.clone(), back.clone()], routes(1, number));
        // The core in the middle: 16 of them.
        let cores = [there[2].link(), back[2].link()];
        *data.entry(cores[0]).or_insert(0u32) += 1;
        *acks.entry(cores[1]).or_insert(0u32) += 1;
        *both.entry(cores).or_insert(0u32) += 1;
    }
    let chi_squared = |counts: &BTreeMap<usize, u32>, cells: f64| {
        let mean = f64::from(flows) / cells;
        let square = |excess: f64| excess * excess / mean;
        counts.values().map(|&count| square(f64::from(count) - mean)).sum::<f64>()
    };
    // 99.9 % of chi-squared with 15 degrees of freedom is 37.70, with 255 it is 330.5.
    assert_eq!((data.len(), acks.len(), both.len()), (16, 16, 256));
    assert!(chi_squared(&data, 16.0) < 37.70, "{data:?}");
    assert!(chi_squared(&acks, 16.0) < 37.70, "{acks:?}");
    let both: BTreeMap<usize, u32> = both.into_values().enumerate().collect();
    assert!(chi_squared(&both, 256.0) < 330.5, "data and ACKs choose together");
    assert!((0..100).any(|number| routes(1, number) != routes(2, number)), "the seed changes nothing");
}

#[test]
fn shares_are_those_of_all_routes() {
    let topology = topology(TopologyKind::FatTree(4));
    let (all, hosts) = (Pairs::all(&topology), topology.kind.hosts() as u32);
    let different = |[from, to]: &[u32; 2]| from != to;
    let pairs: Vec<[u32; 2]> =
        (0..hosts).flat_map(|from| (0..hosts).map(move |to| [from, to])).filter(different).collect();
    assert_eq!((0..all.len() as u64).map(|number| all.pair(number)).collect::<Vec<_>>(), pairs);
    let listed = Pairs::listed(&topology, pairs);
    for link in 0..topology.kind.links() {
        let (by_rule, counted) = (all.share(3 + link), listed.share(3 + link));
        assert!((by_rule - counted).abs() < 1e-12, "{link}: {by_rule} {counted}");
    }
    // A host sends one of 16 flows. Of its 15 others 12 are in other pods, over one of 16 links.
    assert_eq!(all.share(3), 1.0 / 16.0);
    assert!((all.share(3 + 32) - 12.0 / 15.0 / 16.0).abs() < 1e-12);
    assert_eq!((all.share(2), all.share(3 + 48)), (0.0, 0.0));
}

#[test]
fn sessions_cross_what_they_should() {
    let names = |kind: TopologyKind| {
        let topology = topology(kind);
        let name = |direction: DirectionId| {
            assert_eq!(direction.side(), 0, "data goes forward");
            kind.link_name(direction.link() - 3)
        };
        let route = |pair| topology.route(pair, |_| 0).into_iter().map(name).collect::<Vec<_>>().join(" ");
        kind.sessions().into_iter().map(route).collect::<Vec<_>>()
    };
    assert_eq!(names(TopologyKind::Dumbbell(2)), ["s0 bottleneck d0", "s1 bottleneck d1"]);
    assert_eq!(names(TopologyKind::ParkingLot(3)), ["s0 b1 b2 b3 d0", "s1 b1 d1", "s2 b2 d2", "s3 b3 d3"]);
}
