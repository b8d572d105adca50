//! Kernels over simulated networks. Those tests that boot one need an image.
#![cfg(target_os = "linux")]

use std::ops::ControlFlow;

use ackclock_live::{Outcome, run_virtual};
use ackclock_scenario::{Own, Scenario};
use ackclock_sim::{CaptureRecorder, Recorders};
use ackclock_testkit::skipped;
use ackclock_trace::{CaptureRecord, CaptureSink, Summary, TcpRecord, TcpSink};
use ackclock_uml::IMAGE;

/// A sender and a receiver on a link of 10 Mbit/s, 20 ms there and back.
fn text(sender: &str, more: &str) -> String {
    format!(
        "schema = 1\n[run]\nduration = \"10s\"\n\
         [links.wire]\nrate = \"10mbit\"\ndelay = \"10ms\"\nqueue = {{ kind = \"pfifo\", limit = \"40p\" }}\n\
         [hosts.client]\naddress = \"10.0.0.1/24\"\nstack = {{ kind = \"kernel\", {sender} }}\n\
         [hosts.server]\naddress = \"10.0.0.2/24\"\nstack = \"kernel\"\n\
         [[paths]]\nbetween = [\"client\", \"server\"]\npath = [\"wire\"]\n{more}"
    )
}

fn parse(text: &str) -> Result<Scenario, String> {
    let own = ackclock_uml::stacks().into_iter().fold(Own::new(), Own::stack);
    Scenario::parse_with("kernel.toml", text.as_bytes(), &[], &own).map_err(|error| error.render(false))
}

fn run(text: &str) -> Outcome {
    let spec = parse(text).unwrap_or_else(|error| panic!("{error}")).spec(0);
    run_virtual(&spec, Recorders::default(), &mut |_| ControlFlow::Continue(()))
}

/// A flow on a link of 10 Mbit/s, 20 ms there and back, with further keys.
fn flow(more: &str) -> String {
    format!(
        "schema = 1\n[run]\nduration = \"6s\"\n\
         [links.wire]\nrate = \"10mbit\"\ndelay = \"10ms\"\nqueue = {{ kind = \"pfifo\", limit = \"40p\" }}\n\
         [[flows]]\nid = \"f\"\npath = [\"wire\"]\n{more}"
    )
}

/// The rows of `tcp.csv` and the packets of a capture, as text.
#[derive(Debug, Default)]
struct Rows(Vec<String>);

impl TcpSink for Rows {
    fn record(&mut self, record: &TcpRecord<'_>) -> ControlFlow<()> {
        self.0.push(format!("{record:?}"));
        ControlFlow::Continue(())
    }
}

impl CaptureSink for Rows {
    fn record(&mut self, record: &CaptureRecord<'_>) -> ControlFlow<()> {
        self.0.push(format!("{record:?}"));
        ControlFlow::Continue(())
    }
}

fn result(summary: &Summary<()>, host: usize, name: &str) -> Option<f64> {
    summary.live.as_ref()?.hosts[host].results.as_ref()?.get(name)?.as_f64()
}

/// Returns true if there is no image, which it says.
fn skips(name: &str) -> bool {
    let skips = std::env::var_os(IMAGE).is_none();
    if skips {
        skipped(name, &format!("no kernel; `crates/uml/build-image DIR` builds one, {IMAGE}=DIR names it"));
    }
    skips
}

#[test]
fn a_kernel_fills_a_link_and_repeats_to_the_byte() {
    if skips("a_kernel_fills_a_link_and_repeats_to_the_byte") {
        return;
    }
    // CDG draws random numbers, and so does the choice of a port.
    let [first, second] = [(); 2].map(|()| run(&text("app = \"send\", cc = \"cdg\", source_port = 0", "")));
    for outcome in [&first, &second] {
        assert!(outcome.broken_off.is_none(), "{:?}", outcome.broken_off);
    }
    // 1448 of 1500 bytes are payload (IP 20, TCP 20 and 12 of timestamps).
    let goodput = result(&first.summary, 1, "goodput_bps").expect("a goodput");
    assert!((0.9..1.0).contains(&(goodput / (10e6 * 1448.0 / 1500.0))), "{goodput}");
    // A round trip of 20 ms, and one packet's 1.2 ms at the least.
    let rtt = result(&first.summary, 0, "min_rtt_ms").expect("a round trip");
    assert!((20.0..22.0).contains(&rtt), "{rtt}");
    let json = |outcome: &Outcome| serde_json::to_string(&outcome.summary).expect("numbers");
    assert_eq!(json(&first), json(&second));
}

#[test]
fn a_kernel_sends_what_it_is_told_and_shares_with_our_own() {
    if skips("a_kernel_sends_what_it_is_told_and_shares_with_our_own") {
        return;
    }
    let own = "[hosts.left]\naddress = \"10.0.1.1/24\"\n[hosts.right]\naddress = \"10.0.1.2/24\"\n\
               [[paths]]\nbetween = [\"left\", \"right\"]\npath = [\"wire\"]\n\
               [[flows]]\nid = \"tcp\"\nfrom = \"left\"\nto = \"right\"\nport = 80\ncc = \"cubic\"\n";
    let outcome = run(&text("app = \"send\", bytes = 1000000, start_s = 1", own));
    assert!(outcome.broken_off.is_none(), "{:?}", outcome.broken_off);
    assert_eq!(result(&outcome.summary, 1, "received_bytes"), Some(1e6));
    let completed = result(&outcome.summary, 0, "completed_s").expect("an end");
    assert!((0.8..9.0).contains(&completed), "{completed}");
    assert!(outcome.summary.flows[0].goodput_bps > 1e6);
}

#[test]
fn the_size_of_its_units_changes_what_a_kernel_sends() {
    if skips("the_size_of_its_units_changes_what_a_kernel_sends") {
        return;
    }
    let [alone, units] = ["gso_max_segs = 1, ", ""].map(|offload| {
        let outcome = run(&text(&format!("{offload}app = \"send\", cc = \"reno\""), ""));
        assert!(outcome.broken_off.is_none(), "{:?}", outcome.broken_off);
        ["retransmitted_segments", "acked_bytes"].map(|name| result(&outcome.summary, 0, name).expect("a count"))
    });
    assert!(alone[0] > 0.0 && alone != units, "{alone:?}, {units:?}");
}

#[test]
fn a_kernel_is_the_host_of_a_flow_and_its_records_repeat() {
    if skips("a_kernel_is_the_host_of_a_flow_and_its_records_repeat") {
        return;
    }
    let host = "host = { kind = \"kernel\", sample_ms = 10 }\ncc = \"newreno\"\n\
                [[flows]]\nid = \"own\"\npath = [\"wire\"]\nhost = \"linux-6.1\"\n\
                [record]\ntcp = true\npcap = [\"f\"]\n";
    let scenario = parse(&flow(host)).unwrap_or_else(|error| panic!("{error}"));
    let [first, second] = [(); 2].map(|()| {
        let (mut tcp, mut packets) = (Rows::default(), Rows::default());
        let (captures, snaplen) = scenario.captures(0).expect("captures");
        let points: Vec<_> = captures.iter().map(|capture| capture.point).collect();
        let recorders = Recorders {
            tcp: Some(&mut tcp),
            captures: Some(CaptureRecorder { points: &points, snaplen, sink: &mut packets }),
            ..Recorders::default()
        };
        let outcome = run_virtual(&scenario.spec(0), recorders, &mut |_| ControlFlow::Continue(()));
        assert!(outcome.broken_off.is_none(), "{:?}", outcome.broken_off);
        (outcome.summary, tcp.0, packets.0)
    });
    let (summary, tcp, packets) = &first;
    assert_eq!((&*summary.flows[0].cc, &*summary.flows[0].host), ("newreno", "kernel"));
    assert_eq!((&*summary.flows[1].cc, &*summary.flows[1].host), ("cubic", "linux-6.1"));
    // The two share the link, of which 1448 of 1500 bytes are payload.
    let goodputs: f64 = summary.flows.iter().map(|flow| flow.goodput_bps).sum();
    assert!((0.9..1.0).contains(&(goodputs / (10e6 * 1448.0 / 1500.0))), "{goodputs}");
    // A row each 10 ms: the kernel's sender, in the time of the run.
    let rows: Vec<&String> = tcp.iter().filter(|row| row.contains("flow: \"f.0\"")).collect();
    assert!((590..=602).contains(&rows.len()), "{}", rows.len());
    assert!(rows.iter().any(|row| row.contains("ca_state: \"Recovery\"")), "{:?}", rows.last());
    // Sender and receiver, data and ACKs.
    for (capture, way) in [(0, false), (0, true), (1, false), (1, true)] {
        let part = format!("capture: {capture}, interface: 0");
        let way = format!("inbound: Some({way})");
        assert!(packets.iter().filter(|packet| packet.contains(&part) && packet.contains(&way)).count() > 500);
    }
    let json = |summary: &Summary<()>| serde_json::to_string(summary).expect("numbers");
    assert_eq!(json(&first.0), json(&second.0));
    assert!(first.1 == second.1 && first.2 == second.2);
}

#[test]
fn kernels_and_endpoints_face_each_other() {
    if skips("kernels_and_endpoints_face_each_other") {
        return;
    }
    for ends in [
        "host = \"kernel\"\nreceiver = \"linux-6.1\"\n",
        "host = \"linux-6.1\"\nreceiver = { host = { kind = \"kernel\", memory_mb = 48 } }\n",
        "host = { kind = \"kernel\", qdisc = \"fq\" }\ndirection = \"reverse\"\necn = true\n",
    ] {
        let outcome = run(&flow(&format!("{ends}bytes = \"1MB\"\nstart = \"1s\"\n")));
        assert!(outcome.broken_off.is_none(), "{ends}: {:?}", outcome.broken_off);
        let flow = &outcome.summary.flows[0];
        assert_eq!(flow.progress.delivered_bytes, 1_000_000, "{ends}");
        // 691 segments of 1500 bytes take 0.83 s, and slow start a few round trips.
        let completed = flow.completed_s.expect("an end");
        assert!((1.8..2.5).contains(&completed), "{ends}: {completed}");
    }
}

#[test]
fn a_kernel_sends_over_several_connections() {
    if skips("a_kernel_sends_over_several_connections") {
        return;
    }
    let record = "[record]\ntcp = true\n";
    for receiver in ["", "receiver = \"linux-6.1\"\n"] {
        let scenario = parse(&flow(&format!("host = \"kernel\"\ncount = 3\nbytes = \"1MB\"\n{receiver}{record}")));
        let scenario = scenario.unwrap_or_else(|error| panic!("{error}"));
        let mut tcp = Rows::default();
        let recorders = Recorders { tcp: Some(&mut tcp), ..Recorders::default() };
        let outcome = run_virtual(&scenario.spec(0), recorders, &mut |_| ControlFlow::Continue(()));
        assert!(outcome.broken_off.is_none(), "{receiver}: {:?}", outcome.broken_off);
        assert_eq!(outcome.summary.flows.len(), 3);
        for (number, flow) in outcome.summary.flows.iter().enumerate() {
            assert_eq!(flow.progress.delivered_bytes, 1_000_000, "{receiver}{number}");
            // 3 x 691 segments of 1500 bytes take 2.5 s; rows come each 50 ms.
            let id = format!("flow: \"f.{number}\"");
            let rows = tcp.0.iter().filter(|row| row.contains(&id)).count();
            assert!((40..=120).contains(&rows), "{receiver}{number}: {rows}");
        }
        // `tcpi_bytes_acked` counts SYN and FIN.
        assert_eq!(result(&outcome.summary, 0, "acked_bytes"), Some(3.0 * 1_000_002.0));
    }
}

#[test]
fn connections_that_a_stack_does_not_have_are_refused() {
    let request = "application = { kind = \"request\", size = \"1kB\", response = \"1kB\" }\n";
    for (keys, said) in [
        ("host = \"kernel\"\ncount = 257\n".to_owned(), "flows.f.count: too many connections of a stack"),
        (format!("host = \"kernel\"\ncount = 2\n{request}"), "flows.f.count: not with `request`"),
        (
            "host = \"linux-6.1\"\nreceiver = \"kernel\"\ncount = 2\n".to_owned(),
            "flows.f.count: a sender that faces a stack has one connection",
        ),
    ] {
        let error = parse(&flow(&keys)).expect_err(&keys);
        assert!(error.contains(said), "{keys}: {error}");
    }
}

#[test]
fn a_kernel_answers_requests() {
    if skips("a_kernel_answers_requests") {
        return;
    }
    let application =
        "application = { kind = \"request\", size = \"100B\", response = \"10kB\", think = \"100ms\", requests = 9 }";
    let outcome = run(&flow(&format!("host = \"kernel\"\n{application}\n")));
    assert!(outcome.broken_off.is_none(), "{:?}", outcome.broken_off);
    assert_eq!(result(&outcome.summary, 0, "responses"), Some(9.0));
    // 10 kB are 7 segments, within the initial window: a round trip of 20 ms, and 0.13 and 8.4 ms for
    // 152 and for 10364 bytes (52 of headers each).
    let median = result(&outcome.summary, 0, "response_p50_ms").expect("a time");
    assert!((28.4..30.0).contains(&median), "{median}");
    // 9 requests of 100 bytes.
    assert_eq!(outcome.summary.flows[0].progress.delivered_bytes, 900);
}

#[test]
fn a_kernel_ends_its_flow_when_told() {
    if skips("a_kernel_ends_its_flow_when_told") {
        return;
    }
    // By 2 s 2.4 MB pass at most; an abort leaves the rest of the socket unsent, a stop does not.
    let delivered = |end: &str| {
        let outcome = run(&flow(&format!("host = \"kernel\"\n{end} = \"2s\"\n")));
        assert!(outcome.broken_off.is_none(), "{:?}", outcome.broken_off);
        outcome.summary.flows[0].progress.delivered_bytes
    };
    let [stopped, aborted] = ["stop", "abort"].map(delivered);
    assert!((1_800_000..2_450_000).contains(&aborted), "{aborted}");
    assert!((aborted + 1..4_000_000).contains(&stopped), "{stopped} {aborted}");
}

#[test]
fn a_guest_that_cannot_do_its_job_says_so() {
    if skips("a_guest_that_cannot_do_its_job_says_so") {
        return;
    }
    for (sender, said) in [
        (
            "app = \"send\", cc = \"none\"",
            "the guest cannot do its job: congestion control none: No such file or directory; this kernel has reno",
        ),
        ("app = \"send\", sysctl = \"net.ipv4.nothing=1\"", "the guest cannot do its job: sysctl net.ipv4.nothing"),
        ("app = \"send\", sysctl = \"net.ipv4.tcp_ecm=1\"", "; did you mean net.ipv4.tcp_ecn?"),
        ("app = \"send\", qdisc = \"nothing\"", "the guest cannot do its job: queue discipline nothing"),
        ("app = \"send\", qdisc = \"fq_codle\"", "; did you mean fq_codel?"),
        ("app = \"command\", command = \"exit 3\", root = \"/nowhere\"", "the guest cannot do its job: "),
        ("append = \"init=/nothing rdinit=/nothing\"", "its console says last:"),
    ] {
        let outcome = run(&text(sender, ""));
        let error = outcome.broken_off.expect("an error").to_string();
        assert!(error.contains(said), "{sender}: {error}");
    }
}

#[test]
fn a_guest_that_computes_without_end_is_stopped_with_what_its_console_says() {
    if skips("a_guest_that_computes_without_end_is_stopped_with_what_its_console_says") {
        return;
    }
    // A loop that reads no clock, in the machine's file system.
    let loops = "app = \"command\", command = \"echo begins > /dev/console; while :; do :; done\", root = \"/\", patience_s = 1";
    let outcome = run(&text(loops, ""));
    let error = outcome.broken_off.expect("an error").to_string();
    assert!(error.contains("the guest hangs: it has computed for 1 s without a message"), "{error}");
    assert!(error.contains("its console says last:") && error.contains("begins"), "{error}");
    assert!(outcome.summary.partial);
}

#[test]
fn an_image_that_is_missing_is_an_error_where_it_is_named() {
    let named = parse(&text("app = \"send\", image = \"/nowhere\"", "")).expect_err("no image");
    for said in
        ["hosts.client.stack.image: there is no /nowhere/linux", "kernel.toml:10:", "crates/uml/build-image DIR"]
    {
        assert!(named.contains(said), "{said}: {named}");
    }
    let flow = parse(&flow("host = { kind = \"kernel\", image = \"/nowhere\" }\n")).expect_err("no image");
    assert!(
        flow.contains("flows.f.host.image: there is no /nowhere/linux") && flow.contains("kernel.toml:11:"),
        "{flow}"
    );
    // Results of another machine are read without one.
    let own = ackclock_uml::stacks().into_iter().fold(Own::new(), Own::stack).for_results();
    let text = text("app = \"send\", image = \"/nowhere\"", "");
    assert!(Scenario::parse_with("kernel.toml", text.as_bytes(), &[], &own).is_ok());
}

#[test]
fn a_misspelt_kernel_is_suggested() {
    for host in ["\"kernal\"", "{ kind = \"kernal\" }"] {
        for key in ["host", "receiver"] {
            let error = parse(&flow(&format!("{key} = {host}\n"))).expect_err("an error");
            // A receiver that is a table has keys of its own.
            let expected = if key == "receiver" && host.starts_with('{') { "`host`" } else { "did you mean `kernel`?" };
            assert!(error.contains(expected), "{key} = {host}: {error}");
        }
    }
}

/// The fingerprint of a capture is one of this text: it is the same in each process.
#[test]
fn a_specification_shows_no_address() {
    let own = ackclock_uml::stacks().into_iter().fold(Own::new(), Own::stack).for_results();
    let scenario = Scenario::parse_with("kernel.toml", text("", "").as_bytes(), &[], &own);
    let scenario = scenario.unwrap_or_else(|error| panic!("{}", error.render(false)));
    let shown = format!("{:?}", scenario.spec(0));
    assert!(shown.contains("OwnText") && !shown.contains("0x"), "{shown}");
}

#[test]
fn settings_of_the_wrong_form_are_refused() {
    for (sender, said) in [
        ("app = \"receive\"", "\"sink\", which receives"),
        ("cc = \"cubic reno\"", "a congestion controller of the kernel"),
        ("sysctl = \"net.ipv4.tcp_ecn\"", "settings separated by `;`"),
        ("sysctl = \"../../etc=1\"", "settings separated by `;`"),
        ("sysctl = \"net.core.default_qdisc=fq\"", "`qdisc = "),
        ("qdisc = \"f q\"", "a queue discipline of the kernel"),
        ("root = \"relative\"", "the absolute path of a directory"),
        ("memory_mb = 1", "memory_mb"),
        ("bytes = 5", "`app = \"send\"`, without which it has no effect"),
        (
            "app = \"command\", cc = \"reno\"",
            "`app = \"send\"` or `\"sink\"` or `\"request\"` or `\"serve\"`, without which it has no effect",
        ),
        ("app = \"send\", root = \"/\"", "`app = \"command\"`, without which it has no effect"),
        ("ccc = \"reno\"", "ccc"),
    ] {
        let error = parse(&text(sender, "")).err().unwrap_or_else(|| panic!("{sender} is accepted"));
        assert!(error.contains(said), "{sender}: {error}");
    }
}
