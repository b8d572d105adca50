//! `transport = "mptcp"`, from the file to the results.

use std::ops::ControlFlow;

use ackclock_scenario::Scenario;
use ackclock_trace::{FlowSummary, MultipathSummary};

/// A flow over two links, each with a rate in Mbit/s, a delay in milliseconds and a queue in
/// packets.
fn text([first, second]: [(u32, u32, u32); 2], more: &str) -> String {
    let link = |name: &str, (rate, delay, limit): (u32, u32, u32)| {
        let queue = format!("queue = {{ kind = \"pfifo\", limit = \"{limit}p\" }}");
        format!("[links.{name}]\nrate = \"{rate}mbit\"\ndelay = \"{delay}ms\"\n{queue}\n")
    };
    let links = link("hspa", first) + &link("wlan", second);
    let flow = "[[flows]]\nid = \"m\"\ntransport = \"mptcp\"\n";
    format!("schema = 1\n[run]\nduration = \"20s\"\n{links}{flow}{more}")
}

const PATHS: [(u32, u32, u32); 2] = [(5, 50, 84), (5, 5, 84)];
const TWO: &str = "subflows = [[\"hspa\"], [\"wlan\"]]\n";

fn parse(text: &str) -> Result<Scenario, String> {
    Scenario::parse("test", text.as_bytes(), &[]).map_err(|error| error.render(false))
}

fn run(more: &str) -> FlowSummary {
    run_text(&text(PATHS, more))
}

fn run_text(text: &str) -> FlowSummary {
    let scenario = parse(text).unwrap_or_else(|error| panic!("{error}"));
    let summary = ackclock_sim::run(&scenario.spec(0), &mut |_| ControlFlow::Continue(()));
    summary.expect("nobody interrupts").flows.remove(0)
}

fn multipath(flow: &FlowSummary) -> &MultipathSummary {
    flow.multipath.as_deref().expect("of several subflows")
}

/// 1424 of 1500 bytes of a packet are payload.
#[test]
fn two_subflows_fill_both_paths() {
    let flow = run(TWO);
    assert!(flow.goodput_bps > 0.95 * 10e6 * 1424.0 / 1500.0, "{flow:?}");
    let multipath = multipath(&flow);
    assert!(!multipath.plain);
    let [hspa, wlan] = &multipath.subflows[..] else { panic!("{multipath:?}") };
    assert!(hspa.rtt_ms.min > Some(100.0) && wlan.rtt_ms.min < Some(20.0), "{multipath:?}");
    let sent = hspa.sent.sent_packets + wlan.sent.sent_packets;
    assert_eq!(sent, flow.sent.sent_packets);
}

#[test]
fn the_same_seed_gives_the_same_results() {
    let more = format!("{TWO}scheduler = \"round_robin\"\n");
    assert_eq!(run(&more), run(&more));
}

#[test]
fn the_shared_window_blocks_and_is_unblocked() {
    // The slow path's queue takes the window, unless it is slowed down.
    let host = "host = \"rfc\"\nreceive_buffer = \"200kB\"\n";
    let umts_and_wifi = [(2, 75, 333), (8, 10, 53)];
    let helped = run_text(&text(umts_and_wifi, &format!("{TWO}{host}")));
    assert!(multipath(&helped).subflows[0].penalties > 0, "{helped:?}");
    assert!(multipath(&helped).subflows[1].reinjected_bytes > 0, "{helped:?}");
    let alone = "opportunistic_retransmission = false\npenalization = false\n";
    let left_alone = run_text(&text(umts_and_wifi, &format!("{TWO}{host}{alone}")));
    assert!(helped.goodput_bps > 1.2 * left_alone.goodput_bps, "{helped:?} {left_alone:?}");
}

#[test]
fn a_transfer_of_fixed_size_completes_and_closes() {
    let flow = run(&format!("{TWO}bytes = \"3MB\"\n"));
    assert_eq!((flow.progress.delivered_bytes, flow.progress.acked_bytes), (3_000_000, 3_000_000));
    assert!(flow.completed_s.is_some_and(|at| at < 5.0), "{flow:?}");
}

#[test]
fn what_is_wrong_is_said_where_it_is() {
    for (more, message) in [
        ("", "flows.m: the key `subflows` is missing"),
        ("subflows = [[\"hspa\"]]\n", "flows.m.subflows: a single subflow"),
        ("subflows = []\n", "flows.m.subflows: not several paths"),
        ("subflows = [[\"hspa\"], [\"lan\"]]\n", "flows.m.subflows: there is no link `lan`"),
        ("subflows = [[\"hspa\"], []]\n", "flows.m.subflows: must not be empty"),
        ("path = [\"hspa\"]\nsubflows = [[\"hspa\"], [\"wlan\"]]\n", "flows.m.path: not with `transport = \"mptcp\"`"),
        ("subflows = [[\"hspa\"], [\"wlan\"]]\nscheduler = \"best\"\n", "flows.m.scheduler: "),
        ("subflows = [[\"hspa\"], [\"wlan\"]]\nbackups = [3]\n", "flows.m.backups: "),
        (
            "subflows = [[\"hspa\"], [\"wlan\"]]\nhost = \"smoltcp\"\n",
            "flows.m.transport: MPTCP not with a smoltcp host",
        ),
        (
            "subflows = [[\"hspa\"], [\"wlan\"]]\nschedule = [{ at = \"1s\", cc = \"cubic\" }]\n",
            "flows.m.transport: MPTCP not with controllers that change",
        ),
        (
            "subflows = [[\"hspa\"], [\"wlan\"]]\napplication = { kind = \"request\", size = \"10kB\", response = \"10kB\", persistent = false }\n",
            "flows.m.transport: MPTCP not with an application that opens connections of its own",
        ),
        (
            "subflows = [[\"hspa\"], [\"wlan\"]]\npath_changes = [{ at = \"2s\", subflow = 1, up = false }, { at = \"1s\", subflow = 1, up = true }]\n",
            "path_changes: not in order",
        ),
        (
            "subflows = [[\"hspa\"], [\"wlan\"]]\npath_changes = [{ at = \"2s\", subflow = 9, up = false }]\n",
            "subflow: ",
        ),
    ] {
        let error = parse(&text(PATHS, more)).expect_err(more);
        assert!(error.contains(message), "{more}: {error}");
    }
    let tcp = text(PATHS, TWO).replace("transport = \"mptcp\"\n", "path = [\"hspa\"]\n");
    let error = parse(&tcp).expect_err("not of TCP");
    assert!(error.contains("unknown key `subflows`"), "{error}");
}

/// A flow between hosts: two of ours, and a kernel with two devices.
fn between_hosts(from: &str, to: &str, more: &str) -> String {
    let host = |name: &str, address: &str, rest: &str| format!("[hosts.{name}]\naddress = \"{address}/24\"\n{rest}");
    let device = |tun: &str, netns: &str| format!("tun = \"{tun}\"\nnetns = \"{netns}\"\n");
    let hosts = [
        host("us-a", "10.0.1.1", ""),
        host("us-b", "10.0.2.1", ""),
        host("them-a", "10.0.1.2", &device("t0", "them")),
        host("them-b", "10.0.2.2", &device("t1", "them")),
        host("other", "10.0.3.2", &device("t0", "other")),
    ];
    let path = |first: &str, second: &str, link: &str| {
        format!("[[paths]]\nbetween = [\"{first}\", \"{second}\"]\npath = [\"{link}\"]\n")
    };
    let paths = [
        path("us-a", "them-a", "hspa"),
        path("us-b", "them-b", "wlan"),
        path("us-b", "other", "wlan"),
        path("them-a", "us-b", "wlan"),
        path("them-a", "other", "wlan"),
    ];
    let flow = format!("from = {from}\nto = {to}\nport = 80\n{more}");
    text(PATHS, &flow) + &hosts.concat() + &paths.concat()
}

#[test]
fn hosts_are_named_in_pairs() {
    let both = ["[\"us-a\", \"us-b\"]", "[\"them-a\", \"them-b\"]"];
    for [from, to] in [both, [both[1], both[0]]] {
        let scenario = parse(&between_hosts(from, to, "")).expect("it is right");
        let run = scenario.spec(0);
        let mptcp = run.flows[0].mptcp.as_deref().expect("it is Multipath TCP");
        assert_eq!(mptcp.hosts.len(), 2);
        assert_eq!((&run.flows[0].path, &mptcp.others), (&vec![0], &vec![vec![1]]));
    }
    for (from, to, more, message) in [
        ("\"us-a\"", both[1], "", "flows.m.from: not the hosts of several subflows"),
        ("[\"us-a\"]", "[\"them-a\"]", "", "flows.m.from: a single subflow"),
        (both[0], "[\"them-a\", \"them-b\", \"other\"]", "", "flows.m.to: 3 hosts, and 2 in `from`"),
        (both[0], "[\"them-a\", \"nobody\"]", "", "flows.m.to: there is no host `nobody`"),
        (both[0], "[\"them-b\", \"them-a\"]", "", "flows.m.to: there is no path between `us-a` and `them-b`"),
        ("[\"us-a\", \"us-a\"]", "[\"them-a\", \"them-a\"]", "", "two subflows between `us-a` and `them-a`"),
        (both[0], "[\"them-a\", \"other\"]", "", "`them-a` and `other` are different machines"),
        ("[\"us-a\", \"them-a\"]", "[\"them-a\", \"other\"]", "", "`us-a` and `them-a` are different machines"),
        ("[\"us-a\", \"us-b\"]", "[\"them-a\", \"them-a\"]", "", "is listed the other way round"),
        ("[\"us-a\", \"us-a\"]", "[\"us-a\", \"them-a\"]", "", "a flow from `us-a` to itself"),
        (both[0], both[1], "subflows = [[\"hspa\"], [\"wlan\"]]\n", "`subflows` together with `from` and `to`"),
    ] {
        let error = parse(&between_hosts(from, to, more)).expect_err(message);
        assert!(error.contains(message), "{from} {to}: {error}");
    }
    let kernels = between_hosts("[\"them-a\", \"them-b\"]", "[\"other\", \"other\"]", "");
    let kernels = kernels + "[[paths]]\nbetween = [\"them-b\", \"other\"]\npath = [\"hspa\"]\n";
    let error = parse(&kernels).expect_err("nobody of ours");
    assert!(error.contains("MPTCP between two kernels"), "{error}");
}
