//! Hosts, paths between them and commands in a run, on each clock.

use std::net::{IpAddr, Ipv4Addr};

use ackclock_scenario::{Override, Scenario};
use ackclock_sim::spec::{Clock, CommandMeasure, CommandSpec, EndsSpec, HostSpec, LiveSpec, RunSpec, Spin};
use ackclock_units::Span;

const BASE: &str = r#"schema = 1
[run]
duration = "10s"
[links.a]
rate = "10mbit"
delay = "10ms"
[links.b]
rate = "20mbit"
[hosts.left]
tun = "ack0"
address = "10.0.0.1/24"
netns = "left"
[hosts.right]
tun = "ack1"
address = ["10.0.0.2/24", "fd00::2/64"]
netns = "right"
mtu = "9000B"
[hosts.own]
address = "10.0.1.1/32"
[[paths]]
between = ["left", "right"]
path = ["a"]
[[paths]]
between = ["own", "left"]
paths = [["a"], ["b"]]
router = false
"#;

const FLOW: &str = "[[flows]]\nid = \"f\"\nfrom = \"left\"\nto = \"right\"\nport = 5201\n";

fn with(text: &str, set: &[&str]) -> Result<Scenario, String> {
    let set: Vec<Override> =
        set.iter().map(|text| Override { flag: "--set".to_owned(), text: (*text).to_owned() }).collect();
    Scenario::parse("test.toml", text.as_bytes(), &set).map_err(|error| error.to_string())
}

fn spec(keys: &str, set: &[&str]) -> RunSpec {
    with(&format!("{BASE}{keys}"), set).unwrap_or_else(|error| panic!("{error}")).spec(0)
}

fn live(keys: &str) -> LiveSpec {
    *spec(keys, &[]).live.unwrap()
}

#[test]
fn hosts_and_paths_become_a_live_run() {
    let live = live("");
    assert_eq!(live.clock, Clock::Real);
    assert_eq!((live.lateness_limit, live.drain), (Some(Span::from_millis(1)), false));
    let [left, right, own] = live.nodes.as_slice() else { panic!("three hosts") };
    assert_eq!((left.tun.as_deref(), left.netns.as_deref(), left.mtu), (Some("ack0"), Some("left"), 1500));
    assert_eq!(left.addresses, [(IpAddr::V4(Ipv4Addr::new(10, 0, 0, 1)), 24)]);
    assert_eq!((right.addresses.len(), right.addresses[1].1, right.mtu), (2, 64, 9000));
    assert_eq!((own.tun.as_deref(), own.netns.as_deref()), (None, None));
    let [first, second] = live.pipes.as_slice() else { panic!("two paths") };
    assert_eq!((first.between, first.path.as_slice(), first.split.is_some()), ([0, 1], &[0][..], false));
    let router = first.router.unwrap();
    assert_eq!((router.address, router.mtu), (Ipv4Addr::new(192, 0, 0, 8), None));
    assert_eq!((second.between, second.router), ([2, 0], None));
    assert_eq!(second.split.as_ref().unwrap().others, [[1]]);
}

#[test]
fn a_command_has_defaults() {
    let commands = "[[commands]]\nhost = \"left\"\nrun = \"ping 10.0.0.2\"\nmeasure = \"ping\"\n\
                    [[commands]]\nid = \"x\"\nhost = \"right\"\nrun = \"true\"\nat = \"1s\"\nuntil = \"2s\"\n\
                    env = { RATE = 10, _b = \"20 kB\" }\n\
                    [[commands]]\nhost = \"left\"\nrun = \"false\"\n";
    let live = live(commands);
    let ids: Vec<&str> = live.commands.iter().map(|command| command.id.as_str()).collect();
    assert_eq!(ids, ["left-0", "x", "left-1"]);
    assert_eq!((live.commands[0].at, live.commands[0].measure), (Span::ZERO, Some(CommandMeasure::Ping)));
    let x = CommandSpec {
        id: "x".to_owned(),
        node: 1,
        run: "true".to_owned(),
        env: [("RATE", "10"), ("_b", "20 kB")].map(|(name, value)| (name.to_owned(), value.to_owned())).into(),
        at: Span::from_secs(1),
        until: Some(Span::from_secs(2)),
        measure: None,
        terminal: false,
    };
    assert_eq!(live.commands[1], x);
}

#[test]
fn a_flow_between_kernels_is_outside_or_stood_in_for() {
    let run = spec(&format!("{FLOW}cc = \"newreno\"\n"), &[]);
    let flow = &run.flows[0];
    assert_eq!((&flow.sender, &flow.receiver), (&HostSpec::Outside, &HostSpec::Outside));
    let ends = EndsSpec { nodes: [0, 1], port: 5201, source_port: None, check: false };
    assert_eq!((flow.ends, flow.path.as_slice(), flow.reverse), (Some(ends), &[0][..], false));

    let run = spec(&format!("{FLOW}cc = \"newreno\"\n"), &["run.clock=virtual"]);
    assert_eq!(run.live, None);
    let flow = &run.flows[0];
    assert_eq!((flow.ends, flow.path.as_slice()), (None, &[0][..]));
    let (HostSpec::Endpoint(sender), HostSpec::Endpoint(receiver)) = (&flow.sender, &flow.receiver) else {
        panic!("two endpoints")
    };
    assert_eq!((sender.profile.as_str(), sender.cc.name()), ("linux-6.1", "newreno"));
    // MTUs of 1500 and 9000 bytes less 40 of headers; the receiver is as the sender.
    assert_eq!((sender.config.mss, receiver.config.mss), (1460, 1460));
}

#[test]
fn our_end_of_a_flow_stays_ours() {
    let keys = "[[flows]]\nid = \"out\"\nfrom = \"own\"\nto = \"left\"\nport = 80\nhost = \"freebsd-14\"\ncount = 2\nsource_port = 900\n\
                [[flows]]\nid = \"in\"\nfrom = \"left\"\nto = \"own\"\nport = 81\ndata = \"pattern\"\n";
    let flows = spec(keys, &[]).flows;
    let [first, second, back] = flows.as_slice() else { panic!("three flows") };
    let HostSpec::Endpoint(sender) = &first.sender else { panic!("ours") };
    assert_eq!((sender.profile.as_str(), &first.receiver), ("freebsd-14", &HostSpec::Outside));
    // The ports of a group follow each other.
    let ports = [first, second].map(|flow| flow.ends.unwrap().source_port);
    assert_eq!(ports, [Some(900), Some(901)]);
    assert_eq!((first.split.as_ref().map(|split| split.others.clone()), first.reverse), (Some(vec![vec![1]]), false));
    // Against the order of the path's hosts, data takes its first way alone.
    assert_eq!((back.split.is_none(), back.reverse), (true, true));
    assert_eq!(back.sender, HostSpec::Outside);
    let HostSpec::Endpoint(receiver) = &back.receiver else { panic!("ours") };
    assert_eq!((receiver.profile.as_str(), back.ends.unwrap().check), ("linux-6.1", true));

    // On the virtual clock a kernel is no second copy of our end.
    let flows = spec(keys, &["run.clock=virtual"]).flows;
    let HostSpec::Endpoint(receiver) = &flows[0].receiver else { panic!("stood in for") };
    assert_eq!(receiver.profile, "linux-6.1");
    assert_eq!(flows[0].ends, None);
}

#[test]
fn an_mss_is_what_the_mtu_leaves() {
    let mss = |host: &HostSpec| match host {
        HostSpec::Endpoint(endpoint) => endpoint.config.mss,
        _ => panic!("an endpoint"),
    };
    let mut text = format!("{BASE}[[flows]]\nid = \"f\"\nfrom = \"right\"\nto = \"left\"\nport = 80\n");
    let flow = with(&text, &["run.clock=virtual"]).unwrap().spec(0).flows.remove(0);
    // 9000 and 1500 bytes, less 20 of IPv4 and 20 of TCP.
    assert_eq!((mss(&flow.sender), mss(&flow.receiver)), (8960, 1460));
    text.push_str("receiver = { mss = \"1461B\" }\n");
    let error = with(&text, &[]).unwrap_err();
    assert!(error.contains("flows.f.receiver.mss: too large"), "{error}");
}

#[test]
fn the_clock_follows_from_the_devices() {
    let scenario = |set: &[&str]| with(&format!("{BASE}{FLOW}"), set).unwrap_or_else(|error| panic!("{error}"));
    assert!(scenario(&[]).is_live());
    assert!(!scenario(&["run.clock=virtual"]).is_live());
    let replayed = scenario(&["run.replay=a.pcapng"]);
    assert!(!replayed.is_live());
    assert_eq!(replayed.spec(0).live.unwrap().clock, Clock::Replay("a.pcapng".into()));
    let text =
        "schema = 1\n[run]\nduration = \"1s\"\n[links.a]\nrate = \"1mbit\"\n[[flows]]\nid = \"f\"\npath = [\"a\"]\n";
    assert_eq!(with(text, &[]).unwrap().spec(0).live, None);
}

#[test]
fn what_a_clock_leaves_out_is_said() {
    let keys = format!(
        "{FLOW}cc = \"bbr\"\n[[commands]]\nhost = \"left\"\nrun = \"true\"\n\
         [[expect]]\nmetric = \"live.lateness_ms.p99\"\nat_most = 1\n[[expect]]\nmetric = \"events\"\nat_least = 1\n"
    );
    let text = format!("{BASE}{keys}");
    let live = with(&text, &[]).unwrap();
    assert_eq!((live.notes(), live.checks()), (Vec::new(), 2));
    let scenario = with(&text, &["run.clock=virtual"]).unwrap();
    assert_eq!(
        scenario.notes(),
        [
            "the virtual clock makes no devices and no namespaces",
            "the virtual clock runs no commands: left-0",
            "the virtual clock has no routers: hops are not counted and no packet is too long",
            "flows.f: the kernel of `left` is stood in for by linux-6.1 with bbr",
            "flows.f: the kernel of `right` is stood in for by linux-6.1 with bbr",
            "expectations about `live` and `commands` apply on the live clock alone: 1 left out",
        ]
    );
    // An expectation that does not apply is neither met nor missed.
    assert_eq!(scenario.checks(), 1);
    assert_eq!(scenario.evaluations(&[Some(vec![None, Some(5.0)])]).len(), 1);
}

#[test]
fn both_clocks_in_one_sweep() {
    let text = format!(
        "{BASE}{FLOW}[sweep]\naxes.\"run.clock\" = [\"live\", \"virtual\"]\naxes.\"hosts.left.mtu\" = [\"1500B\", \"1400B\"]\n\
         [[expect]]\nmetric = \"live.behind_s\"\nat_most = 1\n"
    );
    let scenario = with(&text, &[]).unwrap_or_else(|error| panic!("{error}"));
    assert!(scenario.is_live());
    let clocks: Vec<bool> = (0..4).map(|run| scenario.spec(run).live.is_some()).collect();
    assert_eq!(clocks, [true, true, false, false]);
    assert_eq!(scenario.spec(1).live.unwrap().nodes[0].mtu, 1400);
    assert_eq!(scenario.checks(), 2);
}

#[test]
fn every_new_key_can_be_set() {
    let keys = format!(
        "{FLOW}[[commands]]\nid = \"c\"\nhost = \"left\"\nrun = \"true\"\n[[commands]]\nhost = \"left\"\nrun = \"true\"\n"
    );
    let set = [
        "hosts.left.mtu=1400B",
        "hosts.own.address=10.9.9.9/32",
        "paths.0.router={ mtu = \"1300B\" }",
        "commands.c.run=exit 1",
        "commands.left-1.at=2s",
        "flows.f.port=1",
        "run.drain=true",
        "run.spin=0s",
        "run.lateness_limit=false",
    ];
    let run = spec(&keys, &set);
    let live = run.live.unwrap();
    assert_eq!((live.nodes[0].mtu, live.nodes[2].addresses[0].0), (1400, IpAddr::V4(Ipv4Addr::new(10, 9, 9, 9))));
    assert_eq!(live.pipes[0].router.unwrap().mtu, Some(1300));
    assert_eq!((live.commands[0].run.as_str(), live.commands[1].at), ("exit 1", Span::from_secs(2)));
    assert_eq!(run.flows[0].ends.unwrap().port, 1);
    assert_eq!((live.drain, live.scheduling.spin, live.lateness_limit), (true, Spin::Fixed(Span::ZERO), None));
}

/// Each with the keys behind [`BASE`], what is set, and a part of what is said.
#[test]
fn what_cannot_be_is_refused() {
    let command = "[[commands]]\nhost = \"left\"\nrun = \"true\"\n";
    let own = "[[flows]]\nid = \"g\"\nfrom = \"own\"\nto = \"left\"\nport = 80\n";
    for (keys, set, says) in [
        ("", "hosts.left.address=10.0.0.1", "hosts.left.address: the prefix length is missing"),
        ("", "run.ties=fixed", "packets from outside come in their own order"),
        ("", "hosts.left.address=10.0.0.1/33", "hosts.left.address: the prefix is longer than the address"),
        ("", "hosts.left.address=fd00::1/129", "a length from 0 to 128"),
        ("", "hosts.left.address=10.0.0.1/+8", "not a prefix length"),
        ("", "hosts.left.address=10.0.0.256/8", "not an IP address"),
        ("", "hosts.left.address=127.0.0.1/8", "not a valid host address"),
        ("", "hosts.left.address=[]", "hosts.left.address: must not be empty"),
        ("", "hosts.left.address=10.0.0.2/24", "hosts.right.address: 10.0.0.2 is an address of `left` too"),
        ("", "hosts.left.tun=eth/0", "hosts.left.tun: not a valid device name"),
        ("", "hosts.left.tun=a234567890123456", "hosts.left.tun: not a valid device name"),
        ("", "hosts.left.netns=..", "hosts.left.netns: not a valid network namespace name"),
        ("", "hosts.left.netns=right", "`left` and `right` are in one namespace"),
        ("", "hosts.left.mtu=67B", "hosts.left.mtu: too small"),
        ("", "hosts.right.mtu=1279B", "hosts.right.mtu: too small"),
        ("", "hosts.own.mtu=127B", "hosts.own.mtu: too small"),
        ("", "hosts.left.mtu=65536B", "hosts.left.mtu: too large"),
        ("", "hosts.own.address=fd00::9/64", "not the address of a host in this process"),
        ("", "hosts.own.netns=x", "hosts.own: `netns` without `tun`"),
        ("", "hosts.left.nets=x", "did you mean `netns`?"),
        ("", "hosts.lefd.mtu=1B", "there is no host `lefd`"),
        ("", "paths.2.router=false", "there is no path `2`"),
        ("", "paths.0.between=[\"left\", \"rigth\"]", "did you mean `right`?"),
        ("", "paths.0.between=[\"left\", \"left\"]", "a path between `left` and itself"),
        ("", "paths.0.between=[\"left\", \"own\"]", "a second path between `own` and `left`"),
        ("", "paths.0.between=\"left\"", "paths.0.between: not two hosts"),
        ("", "paths.0.path=[\"c\"]", "there is no link `c`"),
        ("", "paths.0.router={ address = \"::1\" }", "not an IPv4 address of a router"),
        ("", "paths.0.router={ mtu = \"60B\" }", "paths.0.router.mtu: too small"),
        ("", "run.spin=50", "run.spin: the unit is missing"),
        ("", "run.clock=lives", "did you mean `live`?"),
        ("", "run.clock=replay", "run: the key `replay` is missing"),
        ("", "run.clock=virtual", "on the virtual clock nothing else sends"),
        (command, "commands.left-0.host=own", "the host `own` is in this process"),
        (command, "commands.left-0.host=lef", "did you mean `left`?"),
        (command, "commands.left-0.at=10s", "commands.left-0.at: after the end of the run"),
        (command, "commands.left-0.until=0s", "commands.left-0.until: must not be zero"),
        (command, "commands.left-0.until=11s", "commands.left-0.until: after the end of the run"),
        (command, "commands.left-0.run=\"\"", "commands.left-0.run: must not be empty"),
        (command, "commands.left-0.measure=pong", "did you mean `ping`?"),
        (command, "commands.left-0.env=1", "commands.left-0.env: not a table"),
        (command, "commands.left-0.env.4x=1", "commands.left-0.env.4x: not a name for a variable"),
        (command, "commands.left-0.env.ACKCLOCK=\"x\"", "commands.left-0.env.ACKCLOCK: not a name for a variable"),
        (command, "commands.left-0.env.X=[1]", "commands.left-0.env.X: not the right type"),
        (command, "commands.left-0.env.X=1.5", "commands.left-0.env.X: not the right type"),
        (command, "commands.left-0.id=a.b", "not a valid command name"),
        (FLOW, "flows.f.port=0", "flows.f.port: must not be zero"),
        (FLOW, "flows.f.port=65536", "flows.f.port: too large"),
        (FLOW, "flows.f.to=left", "a flow from `left` to itself"),
        (FLOW, "flows.f.to=lef", "did you mean `left`?"),
        (FLOW, "flows.f.from=own", "there is no path between `own` and `right`"),
        (FLOW, "flows.f.path=[\"a\"]", "flows.f: `path` together with `from` and `to`"),
        (FLOW, "flows.f.direction=reverse", "flows.f: `direction` together with `from` and `to`"),
        (FLOW, "flows.f.data=pattern", "flows.f.data: there is nothing to compare"),
        (own, "flows.g.host=smoltcp", "a smoltcp host has no connection to another program"),
    ] {
        let error = with(&format!("{BASE}{keys}"), &[set]).expect_err(set);
        assert!(error.contains(says) && error.contains("^"), "{set}: {error}");
    }
    let error = with(BASE, &["run.replay=a", "run.clock=live"]).unwrap_err();
    assert!(error.contains("run.replay: a capture with the live clock"), "{error}");
    let twice = format!("{FLOW}{}", FLOW.replace("\"f\"", "\"g\""));
    for (keys, says) in [
        (twice.as_str(), "flows.g: the same hosts and ports as flows.f"),
        (&format!("{own}source_port = 65535\ncount = 2\n"), "there are no 2 ports from `source_port` on"),
        (
            &own.replace("own", "x").replace("left", "own").replace("x", "left").replace("80", "80\ncount = 2"),
            "2 connections of a kernel to one port",
        ),
        (&format!("{command}{command}id = \"left-0\"\n"), "two commands are called `left-0`"),
        ("[[flows]]\nid = \"f\"\npath = [\"a\"]\nport = 1\n", "flows.f: `port` without `from` and `to`"),
        ("[[flows]]\nid = \"f\"\nfrom = \"left\"\nport = 1\n", "flows.f: the key `to` is missing"),
        ("[[flows]]\nid = \"f\"\nfrom = \"left\"\nto = \"right\"\n", "flows.f: the key `port` is missing"),
        ("[[commands]]\nrun = \"true\"\n", "commands.0: the key `host` is missing"),
        ("[[expect]]\nmetric = \"commands.x.exit\"\nat_most = 0\n", "unknown metric"),
    ] {
        let error = with(&format!("{BASE}{keys}"), &[]).unwrap_err();
        assert!(error.contains(says) && error.contains("^"), "{error}");
    }
    let twin = BASE.replace("ack1", "ack0").replace("netns = \"left\"\n", "").replace("netns = \"right\"\n", "");
    assert!(with(&twin, &[]).unwrap_err().contains("hosts.right.tun: `ack0` is the device of `left` too"));
    let no_paths = BASE.split("[[paths]]").next().unwrap();
    assert!(with(no_paths, &[]).unwrap_err().contains("the key `paths` is missing"));
    let no_device =
        "schema = 1\n[run]\nduration = \"1s\"\n[links.a]\nrate = \"1mbit\"\n[[flows]]\nid = \"f\"\npath = [\"a\"]\n";
    let error = with(no_device, &["run.clock=live"]).unwrap_err();
    assert!(error.contains("the live clock requires a host with a device"), "{error}");
}
