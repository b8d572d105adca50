//! Networks of many links: what a file says of them is what runs, and by the same packets as a file
//! that lists every link.

use std::collections::BTreeSet;
use std::ops::ControlFlow;

use ackclock_scenario::{Override, Scenario};
use ackclock_sim::Recorders;
use ackclock_sim::spec::RunSpec;
use ackclock_trace::FlowCsv;

fn parse(text: &str, settings: &[&str]) -> Result<Scenario, String> {
    let overrides: Vec<Override> =
        settings.iter().map(|text| Override { flag: "--set".to_owned(), text: (*text).to_owned() }).collect();
    Scenario::parse("test.toml", text.as_bytes(), &overrides).map_err(|error| error.render(false))
}

fn scenario(text: &str, settings: &[&str]) -> Scenario {
    parse(text, settings).unwrap_or_else(|error| panic!("{error}"))
}

/// The summary as JSON, and the rows of the flows of workloads.
fn results(spec: &RunSpec) -> (serde_json::Value, String) {
    let mut rows = FlowCsv::new(Vec::new());
    let recorders = Recorders { flows: Some(&mut rows), ..Recorders::default() };
    let summary = ackclock_sim::run_recorded(spec, recorders, &mut |_| ControlFlow::Continue(())).expect("no error");
    let rows = String::from_utf8(rows.finish().expect("memory takes it")).expect("it is text");
    (serde_json::to_value(&summary).expect("JSON"), rows)
}

const WIRES: &str = "[links.wire]\nrate = \"100mbit\"\ndelay = \"100us\"\n\
                     [links.thin]\nrate = \"10mbit\"\ndelay = \"2ms\"\nqueue = { kind = \"red\", limit = \"60p\" }\n";

fn with(topology: &str, traffic: &str) -> String {
    format!("schema = 1\n[run]\nduration = \"1s\"\nseed = 4\n{WIRES}[topology]\n{topology}\n{traffic}\n")
}

const TREE: &str = "kind = \"fat-tree\"\nk = 4\naccess = \"wire\"";
const DUMBBELL: &str = "kind = \"dumbbell\"\nsessions = 2\naccess = \"wire\"\nbottleneck = \"thin\"";
const ALL: &str = "[[workloads]]\nid = \"w\"\npairs = \"all\"\nsize = \"30kB\"\nload = 0.2\n";

/// A dumbbell of two sessions, link by link.
fn by_hand(traffic: &str) -> String {
    let link = |name: &str| format!("[links.{name}]\nrate = \"100mbit\"\ndelay = \"100us\"\n");
    let thin = "[links.bottleneck]\nrate = \"10mbit\"\ndelay = \"2ms\"\nqueue = { kind = \"red\", limit = \"60p\" }\n";
    let links = [link("s0"), link("s1"), thin.to_owned(), link("d0"), link("d1")].concat();
    format!("schema = 1\n[run]\nduration = \"1s\"\nseed = 4\n{links}{traffic}\n")
}

#[test]
fn a_dumbbell_is_the_file_that_lists_its_links() {
    let flow = |id: &str, ends: &str, cc: &str| format!("[[flows]]\nid = \"{id}\"\n{ends}\ncc = \"{cc}\"\n");
    let named = [
        flow("a", "from = \"s0\"\nto = \"d0\"", "cubic"),
        flow("b", "from = \"s1\"\nto = \"d1\"", "newreno"),
        flow("c", "from = \"s1\"\nto = \"d0\"", "newreno"),
        "[[workloads]]\nid = \"w\"\npairs = \"sessions\"\nsize = \"10kB\"\nload = 0.3\n".to_owned(),
    ];
    let sessions = [["s0", "d0"], ["s1", "d1"]].map(|[from, to]| format!("[\"{from}\", \"bottleneck\", \"{to}\"]"));
    let by_paths = [
        flow("a", &format!("path = {}", sessions[0]), "cubic"),
        flow("b", &format!("path = {}", sessions[1]), "newreno"),
        flow("c", "path = [\"s1\", \"bottleneck\", \"d0\"]", "newreno"),
        format!("[[workloads]]\nid = \"w\"\npaths = [{}]\nsize = \"10kB\"\nload = 0.3\n", sessions.join(", ")),
    ];
    let [topology, hand] = [with(DUMBBELL, &named.concat()), by_hand(&by_paths.concat())]
        .map(|text| results(&scenario(&text, &[]).spec(0)));
    assert_eq!(topology, hand);
    assert!(topology.1.contains(",s0>bottleneck>d0,"), "{}", topology.1);
    assert!(topology.1.lines().count() > 10);
}

#[test]
fn sessions_are_flows_of_hosts_of_their_own() {
    let flows = "[[flows]]\nid = \"f\"\npairs = \"sessions\"\ncount = 2\nbytes = \"20kB\"\n";
    let spec = scenario(&with(DUMBBELL, flows), &["topology.sessions=3"]).spec(0);
    let hosts: Vec<[u32; 2]> = spec.flows.iter().map(|flow| flow.via.as_ref().expect("hosts").hosts).collect();
    // Sinks are numbered behind the three sources; `count` is of each pair.
    assert_eq!(hosts, [[0, 3], [1, 4], [2, 5], [0, 3], [1, 4], [2, 5]]);
    assert_eq!(spec.links.len(), 7);
    let (summary, _) = results(&spec);
    let flows = summary["flows"].as_array().expect("a list");
    assert!(flows.iter().all(|flow| flow["completed_s"].is_number()), "{flows:?}");
}

#[test]
fn flows_take_many_paths_of_a_fat_tree() {
    let text = with(TREE, "[[flows]]\nid = \"f\"\nfrom = \"h0\"\nto = \"h15\"\ncount = 40\nbytes = \"20kB\"\n");
    let spec = scenario(&text, &[]).spec(0);
    // `thin` is a link of nothing.
    assert_eq!((spec.links.len(), spec.links[1].name.as_str()), (49, "h0"));
    let (summary, _) = results(&spec);
    let packets = |name: &str, way: &str| {
        let of = summary["links"].as_array().expect("a list").iter();
        let id = format!("{name}.{way}");
        let link = of.clone().find(|link| link["id"] == id.as_str());
        link.unwrap_or_else(|| panic!("no {id}"))["offered"].as_u64().expect("a count")
    };
    // 14 segments of data and the handshake for each of 40 flows leave by h0, over four cores and
    // arrive at h15; none passes another host, nor the links of other pods.
    let cores = ["a0-c0", "a0-c1", "a1-c2", "a1-c3"];
    let data: u64 = cores.iter().map(|name| packets(name, "forward")).sum();
    assert!(data > 40 * 14 && data == packets("h0", "forward"), "{data}");
    assert_eq!(packets("h15", "reverse"), data);
    assert!(cores.iter().all(|name| packets(name, "forward") > 0));
    assert_eq!(["h1", "a2-c0", "e1-a0"].map(|name| packets(name, "forward")), [0; 3]);
    // ACKs come from the other pod, hashed for themselves.
    assert_eq!(["a6-c0", "a6-c1", "a7-c2", "a7-c3"].map(|name| packets(name, "forward") > 0), [true; 4]);
    assert_eq!(results(&spec), results(&spec));
    assert_ne!(summary["links"], results(&scenario(&text, &["run.seed=5"]).spec(0)).0["links"]);
}

#[test]
fn a_permutation_has_each_host_send_and_receive_once() {
    let text = with(TREE, "[[flows]]\nid = \"f\"\npairs = \"permutation\"\nbytes = \"20kB\"\n");
    let scenario = scenario(&text, &[]);
    let hosts = |spec: RunSpec| -> Vec<[u32; 2]> {
        spec.flows.iter().map(|flow| flow.via.as_ref().expect("hosts").hosts).collect()
    };
    let pairs = hosts(scenario.spec(0));
    let received: BTreeSet<u32> = pairs.iter().map(|pair| pair[1]).collect();
    assert_eq!(pairs.iter().map(|pair| pair[0]).collect::<Vec<_>>(), (0..16).collect::<Vec<_>>());
    assert_eq!(received.len(), 16);
    assert!(pairs.iter().all(|[from, to]| from != to));
    assert_ne!(pairs, hosts(self::scenario(&text, &["run.seed=5"]).spec(0)));
}

#[test]
fn load_is_of_each_host() {
    let (summary, rows) = results(&scenario(&with(TREE, ALL), &[]).spec(0));
    // 16 hosts send 0.2 of 100 Mbit/s each: 1333 flows of 30 kB, with a standard error of 2.7 %.
    let offered = summary["workloads"][0]["offered_bps"].as_f64().expect("a rate");
    assert!((offered / 320e6 - 1.0).abs() < 3.0 * 0.027, "{offered}");
    // The ideal of a path of six links is longer than that of two by the delay of four, both ways.
    let ideal = |row: &str| {
        let columns: Vec<&str> = row.split(',').collect();
        let number = |name: &str| {
            let header = rows.lines().next().expect("a header").split(',').position(|column| column == name);
            columns[header.unwrap_or_else(|| panic!("no {name}"))].to_owned()
        };
        let fct: f64 = number("fct_ms").parse().ok()?;
        Some((number("path").matches('>').count() + 1, fct / number("slowdown").parse::<f64>().ok()?))
    };
    let ideals: Vec<(usize, f64)> = rows.lines().skip(1).filter_map(ideal).collect();
    // 21 segments of 1448 B in 1500 B, 31,092 B with the last one, take 2.487 ms at 100 Mbit/s.
    for (links, exact) in [(2, 0.4), (4, 0.8), (6, 1.2)].map(|(links, rtt)| (links, rtt + 2.487)) {
        let found: Vec<f64> = ideals.iter().filter(|(of, _)| *of == links).map(|(_, ideal)| *ideal).collect();
        assert!(found.len() > 20, "{links}: {}", found.len());
        assert!(found.iter().all(|ideal| (ideal - exact).abs() < 0.01), "{links}: {exact} {found:?}");
    }
}

#[test]
fn sums_and_clients_are_between_hosts_too() {
    let sums = "[[flows]]\nid = \"f\"\npairs = \"all\"\nresults = \"sum\"\nbytes = \"20kB\"\n";
    let (summary, _) = results(&scenario(&with(TREE, sums), &[]).spec(0));
    assert_eq!(summary["groups"][0]["completed"], 240, "{}", summary["groups"][0]);
    let web = "[[flows]]\nid = \"f\"\nfrom = \"h0\"\nto = \"h15\"\n\
               application = { kind = \"web\", page = \"20kB\", objects = 8, object = \"10kB\", think = \"10ms\" }\n";
    let (summary, _) = results(&scenario(&with(TREE, web), &[]).spec(0));
    // The connections of one browser are hashed each for itself.
    let used = summary["links"].as_array().expect("a list").iter();
    let cores = used.filter(|link| link["id"].as_str().is_some_and(|id| id.contains("-c") && id.ends_with("forward")));
    let used = cores.filter(|link| link["offered"] != 0).count();
    assert!(used > 4, "{used} links to cores");
}

#[test]
fn a_link_of_the_file_takes_the_place_of_one_by_name() {
    let text = with(TREE, ALL) + "[links.a0-c1]\nrate = \"1mbit\"\n[links.apart]\nrate = \"5mbit\"\n";
    let spec = scenario(&text, &[]).spec(0);
    let rate = |name: &str| spec.links.iter().find(|link| link.name == name).expect("there is one").forward.rate;
    assert_eq!(
        ["a0-c1", "apart", "a0-c0"].map(|name| rate(name).expect("a rate").as_bps()),
        [1_000_000, 5_000_000, 100_000_000]
    );
    // Beside these, those that others are copies of are no links of the run: `thin` is, of nothing.
    let names: Vec<&str> = spec.links.iter().take(3).map(|link| link.name.as_str()).collect();
    assert_eq!((names, spec.links.len()), (vec!["thin", "apart", "h0"], 50));
    // They are told, unless a flow takes them: a name may be misspelt.
    let idle = |name: &str| format!("links.{name}: no link of the topology has this name, and no flow takes it");
    assert_eq!(scenario(&text, &[]).notes(), ["thin", "apart"].map(idle));
    let taken = text.clone() + "[[flows]]\nid = \"f\"\npath = [\"apart\"]\nbytes = \"10kB\"\n";
    assert_eq!(scenario(&taken, &[]).notes(), [idle("thin")]);
    results(&spec);
}

#[test]
fn what_is_resolved_is_what_runs() {
    let flows = "[[flows]]\nid = \"f\"\npairs = \"permutation\"\nbytes = \"20kB\"\n";
    for text in [with(TREE, flows), with(DUMBBELL, "[[flows]]\nid = \"f\"\npairs = \"sessions\"\n"), with(TREE, ALL)] {
        let written = scenario(&text, &[]);
        let resolved = scenario(&written.resolved(), &[]);
        assert_eq!(written.spec(0), resolved.spec(0));
        assert_eq!(written.resolved(), resolved.resolved());
    }
    assert!(scenario(&with(TREE, flows), &[]).resolved().contains("core = \"wire\""));
}

#[test]
fn sweeps_and_arguments_set_the_rule() {
    let text = with(TREE, ALL);
    for (setting, links) in
        [("topology.k=6", 163), ("topology={kind=\"dumbbell\", sessions=4, access=\"wire\", bottleneck=\"thin\"}", 9)]
    {
        let text = if links == 9 { text.replace("\"all\"", "\"sessions\"") } else { text.clone() };
        assert_eq!(scenario(&text, &[setting]).spec(0).links.len(), links, "{setting}");
    }
    let sweep = text.clone() + "[sweep]\naxes.\"topology.k\" = [2, 4, 6]\n";
    let swept = scenario(&sweep, &[]);
    let links: Vec<usize> = (0..3).map(|run| swept.spec(run).links.len()).collect();
    assert_eq!((links, swept.links()), (vec![7, 49, 163], 163));
    let of_rules = "kind = \"dumbbell\"\naccess = \"wire\"\nfat-tree = { k = 4 }\n\
                    dumbbell = { sessions = 3, bottleneck = \"thin\" }\nparking-lot = { hops = 2, bottleneck = \"thin\" }";
    let flow = "[[flows]]\nid = \"f\"\npairs = \"sessions\"\n";
    let swept = with(of_rules, flow) + "[sweep]\naxes.\"topology.kind\" = [\"dumbbell\", \"parking-lot\"]\n";
    let swept = scenario(&swept, &[]);
    assert_eq!([0, 1].map(|run| swept.spec(run).links.len()), [7, 8]);
    // A setting of a rule that is not selected, and an axis that varies nothing.
    let error = parse(&with(of_rules, flow), &["topology.parking-lot.hops=3"]).unwrap_err();
    assert!(error.contains("`topology.parking-lot.hops=3` changes nothing"), "{error}");
    let axis = with(of_rules, flow) + "[sweep]\naxes.\"topology.fat-tree.k\" = [4, 6]\n";
    let error = parse(&axis, &[]).unwrap_err();
    assert!(error.contains("the axis `topology.fat-tree.k` changes nothing"), "{error}");
    // The places of links in records have to be the same at all points.
    let sweep = sweep + "[record]\nqueue = [\"e0-a0.forward\"]\n";
    let error = parse(&sweep, &[]).unwrap_err();
    assert!(error.contains("a sweep over the topology moves these links"), "{error}");
}

#[test]
fn errors_name_place_and_what_was_expected() {
    let tree = |keys: &str| with(&format!("kind = \"fat-tree\"\n{keys}"), ALL);
    let flow = |keys: &str| with(TREE, &format!("[[flows]]\nid = \"f\"\n{keys}\n"));
    let cases: [(String, &[&str]); 25] = [
        (tree("access = \"wire\""), &["topology: the key `k` is missing"]),
        (tree("k = 4"), &["topology: the key `access` is missing"]),
        (tree("k = 5\naccess = \"wire\""), &["topology.k: an odd number of ports", "an even number from 2 to 50"]),
        (tree("k = 0\naccess = \"wire\""), &["topology.k: must not be zero", "an even number from 2 to 50"]),
        (tree("k = 52\naccess = \"wire\""), &["topology.k: too large"]),
        (tree("k = 4\naccess = \"wier\""), &["topology.access: there is no link `wier`", "did you mean `wire`?"]),
        (tree("k = 4\naccess = \"wire\"\nsessions = 3"), &["`fat-tree` has no key `sessions`"]),
        (with("k = 4\naccess = \"wire\"", ALL), &["topology: the key `kind` is missing"]),
        (with("kind = \"torus\"", ALL), &["topology.kind: unknown topology `torus`", "fat-tree"]),
        (with(&DUMBBELL.replace("= 2", "= 50000"), ""), &["topology.sessions: too large", "49999"]),
        (with("kind = \"parking-lot\"\nhops = 0\naccess = \"wire\"\nbottleneck = \"thin\"", ""), &["must not be zero"]),
        (with(TREE, "[hosts.a]\naddress = \"10.0.0.1/24\"\n"), &["`hosts` together with `topology`"]),
        (flow("from = \"h0\"\nto = \"h16\""), &["flows.f.to: there is no host `h16`", "`h0` to `h15`"]),
        (flow("from = \"h3\"\nto = \"h3\""), &["flows.f.to: a flow from `h3` to itself", "two different hosts"]),
        (flow("from = \"h3\""), &["flows.f: the key `to` is missing"]),
        (flow("from = 3\nto = \"h1\""), &["flows.f.from", "the integer 3"]),
        (flow("pairs = \"sessions\""), &["flows.f.pairs: not in this topology", "\"all\" or \"permutation\""]),
        (flow("pairs = \"some\""), &["flows.f.pairs: unknown pairs `some`"]),
        (flow("pairs = \"all\"\nto = \"h3\""), &["flows.f.to: not together with `pairs`"]),
        (flow("pairs = \"all\"\nport = 5001"), &["`port` between hosts of a topology"]),
        (flow("pairs = \"all\"\npath = [\"h0\"]"), &["`path` between hosts of a topology"]),
        (flow("pairs = \"all\"\ntransport = \"mptcp\""), &["`transport` between hosts of a topology"]),
        (flow("pairs = \"all\"\nrestart_every = \"200ms\""), &["`restart_every` between hosts of a topology"]),
        (flow("pairs = \"all\"\ncount = 1000"), &["240000 flows are too many"]),
        (with(DUMBBELL, ALL), &["workloads.w.pairs: not in this topology", "\"sessions\""]),
    ];
    for (text, expected) in cases {
        let error = parse(&text, &[]).map(|_| text.clone()).unwrap_err();
        for part in expected {
            assert!(error.contains(part), "{part}:\n{error}");
        }
        assert!(error.contains("test.toml:"), "{error}");
    }
    let without = by_hand("[[flows]]\nid = \"f\"\npairs = \"all\"\n");
    assert!(parse(&without, &[]).unwrap_err().contains("flows.f.pairs: without hosts"));
    let error = parse(&with(TREE, ALL), &["workloads.w.link=\"h0\"", "topology.k=3"]).unwrap_err();
    assert!(error.contains("an odd number of ports"), "{error}");
}
