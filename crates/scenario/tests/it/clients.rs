//! Applications that ask and wait for answers, against arithmetic.

use std::ops::ControlFlow;

use ackclock_scenario::Scenario;
use ackclock_sim::Recorders;
use ackclock_trace::{FlowSummary, NetperfSummary, PagesSummary, RequestsSummary, Summary, VideoSummary};

/// A link of so much and 20 ms, and one flow without Nagle's algorithm with these keys. Headers
/// take 52 bytes with timestamps, those of a SYN 60.
fn scenario(rate: &str, duration: &str, flow: &str) -> String {
    format!(
        "schema = 1\nrun.duration = \"{duration}\"\nlinks.wire = {{ rate = \"{rate}\", delay = \"20ms\" }}\n\
         [[flows]]\nid = \"f\"\npath = [\"wire\"]\nnagle = false\n{flow}\n"
    )
}

fn run_all(text: &str) -> Summary<()> {
    let scenario = Scenario::parse("test.toml", text.as_bytes(), &[]).unwrap_or_else(|error| panic!("{error}"));
    ackclock_sim::run(&scenario.spec(0), &mut |_| ControlFlow::Continue(())).expect("the data is intact")
}

fn run(rate: &str, duration: &str, flow: &str) -> FlowSummary {
    run_all(&scenario(rate, duration, flow)).flows.remove(0)
}

fn video(flow: &FlowSummary) -> &VideoSummary {
    flow.application.as_ref().and_then(|application| application.video.as_ref()).expect("a player")
}

fn pages(flow: &FlowSummary) -> &PagesSummary {
    flow.application.as_ref().and_then(|application| application.pages.as_ref()).expect("a browser")
}

fn requests(flow: &FlowSummary) -> &RequestsSummary {
    flow.application.as_ref().and_then(|application| application.requests.as_ref()).expect("a client")
}

fn error(flow: &str) -> String {
    let text = scenario("10mbit", "5s", flow);
    Scenario::parse("test.toml", text.as_bytes(), &[]).expect_err("it is refused").to_string()
}

#[test]
fn a_video_starts_when_its_first_segment_has_come() {
    let keys = "application = { kind = \"video\", ladder = [\"20kbit\"], length = \"4s\" }";
    let flow = run("10mbit", "10s", keys);
    let seen = video(&flow);
    // SYN and its answer, 48 us each; the last ACK, 41.6 us; 352 bytes, 281.6 us; of 10,000 bytes 6
    // packets of 1500 bytes and one of 1364, 6 * 1.2 + 1.0912 ms; four times 20 ms.
    assert_eq!(seen.startup_s, Some(0.088_710_4));
    assert_eq!(seen.download_ms.distribution.max, Some(88.7104));
    // The segment is played to its end when the connection is long closed.
    assert_eq!((seen.segments, seen.played_s, seen.response_bytes), (1, 4.0, 10_000));
    assert_eq!((seen.bitrate_bps, seen.rebuffers, seen.switches), (20e3, 0, 0));
    assert!(flow.goodput_bps > 300.0 * 8.0 / 0.2, "the flow is over: {}", flow.goodput_bps);
}

#[test]
fn what_a_link_lacks_for_the_lowest_bitrate_is_rebuffering() {
    let keys = "application = { kind = \"video\", ladder = [\"1500kbit\", \"3mbit\"] }";
    let seen = video(&run("1mbit", "1000s", keys)).clone();
    // 750,000 bytes are 517 packets of 1500 bytes and one of 1436, 6.215488 s; the next request is
    // 352 bytes and twice 20 ms away. Without it a segment would play for 4 s.
    let period = 6.215_488 + 0.002_816 + 0.040;
    let ratio = 1.0 - 4.0 / period;
    assert!((seen.rebuffering_ratio / ratio - 1.0).abs() < 0.01, "{} for {ratio}", seen.rebuffering_ratio);
    // A pause before each segment but the first.
    assert!(seen.rebuffers.abs_diff(seen.segments - 1) <= 1, "{seen:?}");
    assert!(seen.segments.abs_diff((1000.0 / period) as u64) <= 1, "{seen:?}");
    assert_eq!((seen.switches, seen.bitrate_bps), (0, 1.5e6));
    let startup = seen.startup_s.expect("it has begun");
    assert!((seen.played_s + seen.rebuffering_s + startup - 1000.0).abs() < 1e-6, "{seen:?}");
}

#[test]
fn players_settle_on_what_a_link_carries() {
    for algorithm in ["\"bba\"", "{ kind = \"bba\", fast_start = true }", "\"bola\""] {
        let keys = format!(
            "application = {{ kind = \"video\", ladder = [\"1mbit\", \"2mbit\", \"4mbit\", \"8mbit\"], \
             algorithm = {algorithm} }}"
        );
        // 1448 of 1500 bytes, but not while requests are on their way: 40 ms for each segment,
        // which takes 4 s on average.
        let carried = 3e6 * 1448.0 / 1500.0 * (1.0 - 0.040 / 4.0);
        let seen = video(&run("3mbit", "3000s", &keys)).clone();
        // Less than 56 s of video are in the buffer at the end.
        assert!((seen.bitrate_bps / carried - 1.0).abs() < 0.02, "{algorithm}: {} of {carried}", seen.bitrate_bps);
        assert_eq!(seen.rebuffers, 0, "{algorithm}");
        assert!(seen.switches > 10, "{algorithm}: {seen:?}");
    }
}

#[test]
fn a_player_starts_fast_where_it_is_told() {
    let keys = |fast| {
        format!(
            "application = {{ kind = \"video\", ladder = [\"1mbit\", \"2mbit\", \"4mbit\", \"8mbit\"], \
             algorithm = {{ kind = \"bba\", fast_start = {fast} }} }}"
        )
    };
    // Over 100 Mbit/s a segment takes a few round trips: one rung with each from the second on. By
    // the map the first 22.5 s of video, six segments, are at 1 Mbit/s.
    let [slow, fast] = [false, true].map(|fast| video(&run("100mbit", "3s", &keys(fast))).clone());
    assert!(slow.bitrate_bps * 2.0 < fast.bitrate_bps, "{slow:?}\n{fast:?}");
}

#[test]
fn each_player_draws_from_its_own_stream() {
    let keys = "count = 2\napplication = { kind = \"video\", ladder = [\"1mbit\"], \
                variation = { distribution = \"lognormal\", mean = 1.0, sigma = 0.5 } }";
    let text = scenario("10mbit", "30s", keys);
    let flows = run_all(&text).flows;
    assert_ne!(video(&flows[0]).response_bytes, video(&flows[1]).response_bytes);
    assert_eq!(run_all(&text).flows, flows);
}

#[test]
fn a_video_plays_in_either_direction_and_over_two_paths() {
    // The request goes with the last ACK of the handshake, which has a path of its own otherwise.
    let keys = "host = \"rfc\"\napplication = { kind = \"video\", ladder = [\"100kbit\"], length = \"20s\" }";
    let alone = run("10mbit", "30s", keys);
    let other = run("10mbit", "30s", &format!("direction = \"reverse\"\n{keys}"));
    assert_eq!((video(&other), other.direction), (video(&alone), "reverse"));
    // Requests over two links in turn; what they take is the same, and so is what the video does.
    let text = scenario("10mbit", "30s", keys)
        .replace("path = [\"wire\"]", "paths = [[\"wire\"], [\"other\"]]\nsplit = \"round_robin\"")
        .replace("[[flows]]", "links.other = { rate = \"10mbit\", delay = \"20ms\" }\n[[flows]]");
    assert_eq!(video(&run_all(&text).flows[0]), video(&alone));
}

#[test]
fn a_player_that_cannot_be_is_refused_with_its_place() {
    let video = |keys: &str| format!("application = {{ kind = \"video\", {keys} }}");
    let ladder = "ladder = [\"1mbit\", \"2mbit\"]";
    for (keys, parts) in [
        ("application = \"video\"".to_owned(), ["the key `ladder` is missing", "bitrates in ascending order"]),
        (video("ladder = []"), ["application.ladder: 0 bitrates", "from 1 to 64"]),
        (video("ladder = [\"2mbit\", \"1mbit\"]"), ["application.ladder: 1mbit follows 2mbit", "ascending order"]),
        (video("ladder = [1]"), ["application.ladder", "the unit is missing"]),
        (video(&format!("{ladder}, buffer = \"7s\"")), ["application.buffer: holds 7s", "from 2 to 10000 segments"]),
        (
            video(&format!("{ladder}, segment = \"40s\", buffer = \"60s\"")),
            ["application.buffer: holds", "of 40s each"],
        ),
        (video(&format!("{ladder}, startup = \"58s\"")), ["application.startup: 58s would not", "at most the buffer"]),
        (
            video(&format!("{ladder}, algorithm = {{ kind = \"bba\", reservoir = \"50s\", cushion = \"20s\" }}")),
            ["application.algorithm: a reservoir of 50s", "at most 60s together"],
        ),
        (video(&format!("{ladder}, algorithm = \"mpc\"")), ["unknown algorithm `mpc`", "one of `bba`, `bola`"]),
        (video(&format!("{ladder}, variation = 0")), ["application.variation", "0.001"]),
        (
            format!("host = \"smoltcp\"\n{}", video(ladder)),
            ["`video` not with a kernel or a smoltcp host", "another application"],
        ),
        (format!("bytes = \"1MB\"\n{}", video(ladder)), ["flows.f.bytes: not with `video`", "`length`"]),
        (
            "application = { kind = \"web\", page = \"1kB\", object = \"1kB\" }".to_owned(),
            ["the key `objects` is missing", "a number, such as 10"],
        ),
        (
            "application = { kind = \"web\", page = \"1kB\", objects = -1, object = \"1kB\" }".to_owned(),
            ["application.objects", "from 0 to 10000"],
        ),
        (
            "application = { kind = \"web\", page = \"1kB\", objects = 1, object = \"1kB\", connections = 0 }"
                .to_owned(),
            ["application.connections: must not be zero", "from 1 to 1000"],
        ),
    ] {
        let error = error(&keys);
        for part in parts {
            assert!(error.contains(part), "{keys}: no {part:?} in\n{error}");
        }
    }
}

#[test]
fn a_connection_for_each_request_takes_a_handshake_each() {
    let keys = "application = { kind = \"request\", size = \"200B\", response = \"1000B\", think = \"100ms\", \
                persistent = false }";
    let flow = run("10mbit", "60s", keys);
    let found = requests(&flow);
    // SYN and its answer, 48 us each; the last ACK, 41.6 us; 252 bytes, 201.6 us; 1052 bytes, 841.6
    // us; four times 20 ms: each as the first.
    let spread = &found.completion_ms.distribution;
    assert_eq!((spread.min, spread.max), (Some(81.1808), Some(81.1808)));
    // Each cycle takes 181.1808 ms: 331.2 in 60 s.
    assert_eq!((found.answered, found.made, found.response_bytes), (331, 332, 331_000));
    // 331 cycles leave 29.16 ms: the last one's handshake is not over.
    assert_eq!(flow.progress.delivered_bytes, 331 * 200);
    assert!((found.per_second - 331.0 / 60.0).abs() < 1e-9);
    // Without time to think the next connection opens while the one before closes.
    let keys = keys.replace("100ms", "0s").replace("persistent", "requests = 100, persistent");
    let flow = run("10mbit", "60s", &keys);
    let spread = &requests(&flow).completion_ms.distribution;
    assert_eq!((spread.samples, spread.min), (100, Some(81.1808)));
    // The ACK of the response and the FIN of the one before are on the way of the next SYN: at most
    // 41.6 us each.
    assert!(spread.max.is_some_and(|max| max <= 81.1808 + 2.0 * 0.0416), "{spread:?}");
    assert!((requests(&flow).per_second * 0.0812 - 1.0).abs() < 0.01, "the flow is over with its last request");
}

#[test]
fn a_page_over_one_connection_is_its_document_and_its_object() {
    let keys = "application = { kind = \"web\", page = \"1000B\", objects = 1, object = \"2000B\", \
                connections = 1, pages = 2, think = \"1s\" }";
    let flow = run("10mbit", "10s", keys);
    let found = pages(&flow);
    // Handshake 2 * 20.048 ms, and 0.0416 of its last ACK; 352 bytes there and 1052 back, 40 + 0.2816 + 0.8416 ms; 352 bytes
    // there and 1500 and 604 back, 40 + 0.2816 + 1.6832 ms. The second page needs no handshake.
    let (document, object) = (41.1232, 41.9648);
    let spread = &found.load_ms.distribution;
    assert_eq!((spread.max, spread.min), (Some(123.2256), Some(document + object)));
    assert_eq!((found.begun, found.loaded, found.objects, found.response_bytes), (2, 2, 4, 6000));
    assert_eq!((flow.progress.delivered_bytes, flow.sent.retransmitted_packets), (4 * 300, 0));
}

#[test]
fn a_page_over_two_connections_opens_the_second_for_its_second_object() {
    let keys = "application = { kind = \"web\", page = \"1000B\", objects = 2, object = \"1000B\", \
                connections = 2, pages = 2, think = \"1s\" }";
    let found = pages(&run("10mbit", "10s", keys)).clone();
    // The document takes 40.096 + 0.0416 + 41.1232 ms. Then the first object comes over the open connection;
    // for the second one there is a handshake first. Its SYN waits for the other request, but the
    // answer to it waits still longer for the first object, which leaves 20.2816 + 0.8416 ms after
    // the document has come; 48 us and 20 ms later the last ACK leaves, and 41.6 us later the second
    // request: 20.2816 + 0.8416 + 0.048 + 20 + 0.0416 + 41.1232 ms.
    let exchange = 41.1232;
    let spread = &found.load_ms.distribution;
    assert_eq!(spread.max, Some(163.5968));
    // On the second page both are open: the second request is sent behind the first one, and with
    // 352 and 1052 bytes the answers are 841.6 us apart.
    assert_eq!(spread.min, Some(exchange + exchange + 0.8416));
    assert_eq!((found.loaded, found.objects), (2, 6));
}

#[test]
fn a_browser_keeps_to_its_connections() {
    // Each object takes a request and an answer, 40 ms and its transmissions: with six connections
    // the 60 objects are ten rounds, with one of them sixty.
    let keys = |connections| {
        format!(
            "application = {{ kind = \"web\", page = \"1000B\", objects = 60, object = \"500B\", \
             connections = {connections}, pages = 1 }}"
        )
    };
    let load =
        |connections| pages(&run("1gbit", "10s", &keys(connections))).load_ms.distribution.max.expect("it is loaded");
    // Handshake, document, and rounds; the handshake of the further connections is a round more.
    for (connections, rounds) in [(1, 2 + 60), (6, 2 + 1 + 10), (60, 2 + 2)] {
        let found = load(connections);
        let least = f64::from(rounds) * 40.0;
        // With six the first connection has one object more: it was open a round before.
        assert!(found > least - 40.0 * f64::from(connections == 6) && found < least + 2.0, "{connections}: {found}");
    }
}

#[test]
fn browsers_and_short_connections_survive_losses_and_repeat() {
    let text = |kind: &str| {
        scenario("10mbit", "100s", &format!("count = 3\napplication = {{ {kind} }}"))
            .replace("delay =", "loss = { kind = \"iid\", probability = 0.03 }, delay =")
    };
    let web = text(
        "kind = \"web\", page = { distribution = \"lognormal\", mean = \"30kB\", sigma = 1.0 }, \
         objects = { distribution = \"exponential\", mean = 10 }, pages = 20, object = \"10kB\", think = \"500ms\"",
    );
    let summary = run_all(&web);
    for flow in &summary.flows {
        let found = pages(flow);
        assert_eq!((found.begun, found.loaded), (20, 20), "{}", flow.id);
        assert!(found.objects > 100 && flow.sent.retransmitted_packets > 0, "{found:?}");
        // Whatever was sent again for a lost packet was needed.
        assert!(flow.retransmissions.needed > 0, "{:?}", flow.retransmissions);
    }
    assert_ne!(summary.flows[0].application, summary.flows[1].application);
    assert_eq!(run_all(&web).flows, summary.flows);
    for short in ["", "persistent = false, "] {
        let short = text(&format!("kind = \"request\", {short}size = \"3kB\", response = \"30kB\", requests = 100"));
        for flow in &run_all(&short).flows {
            let found = requests(flow);
            assert_eq!((found.answered, found.response_bytes), (100, 3_000_000), "{}", flow.id);
            assert_eq!(flow.progress.delivered_bytes, 300_000);
        }
    }
}

#[test]
fn a_stop_ends_a_browser() {
    let keys = "stop = \"130ms\"\napplication = { kind = \"web\", page = \"1000B\", objects = 5, object = \"1kB\" }";
    let flow = run("10mbit", "10s", keys);
    // The document is there after 81.2 ms, the object on its connection after 122.3 ms; the four
    // others wait for their handshakes until 122.5 ms, and their requests are out. Later data is
    // read and not used.
    let found = pages(&flow);
    assert_eq!((found.begun, found.objects, found.response_bytes), (1, 2, 6000));
    assert_eq!((found.loaded, flow.progress.delivered_bytes), (0, 6 * 300));
}

#[test]
fn connections_of_a_client_take_two_paths() {
    let web = "application = { kind = \"web\", page = \"20kB\", objects = 9, object = \"5kB\", pages = 1 }";
    let short =
        "application = { kind = \"request\", size = \"20kB\", response = \"1kB\", requests = 7, persistent = false }";
    for (keys, connections) in [(web, 6), (short, 7)] {
        let text = scenario("10mbit", "20s", keys)
            .replace("path = [\"wire\"]", "paths = [[\"wire\"], [\"other\"]]\nsplit = \"round_robin\"")
            .replace("[[flows]]", "links.other = { rate = \"10mbit\", delay = \"25ms\" }\n[[flows]]");
        let summary = run_all(&text);
        let application = summary.flows[0].application.as_ref().expect("a client");
        let bytes = application.pages.as_ref().map(|pages| (pages.loaded, pages.response_bytes));
        let bytes = bytes.or_else(|| application.requests.as_ref().map(|all| (all.answered, all.response_bytes)));
        assert_eq!(bytes, Some(if keys == web { (1, 65_000) } else { (7, 7000) }));
        // The client's packets alternate in each connection, beginning with the first path; the
        // answers take the first.
        let packets = |id: &str| summary.links.iter().find(|link| link.id == id).expect("it is listed").packets.offered;
        let [first, second] = ["wire.forward", "other.forward"].map(packets);
        assert!(second > 0 && (0..=connections).contains(&(first as i64 - second as i64)), "{first} {second}");
        assert_eq!(packets("other.reverse"), 0);
    }
}

#[test]
fn what_is_recorded_changes_nothing_for_a_browser() {
    let keys = "count = 2\napplication = { kind = \"web\", page = \"20kB\", objects = 9, object = \"5kB\", \
                think = \"100ms\", persistent = false }";
    let text = scenario("10mbit", "10s", keys);
    let scenario = Scenario::parse("test.toml", text.as_bytes(), &[]).expect("it is right");
    let spec = scenario.spec(0);
    let summary = |keeps: bool| {
        let mut world = ackclock_sim::World::new(&spec);
        if keeps {
            // The world works as where something is recorded: no place of a connection is used
            // again.
            world.keep_places();
        }
        world.run(Recorders::default(), &mut |_| ControlFlow::Continue(())).expect("the data is intact");
        world.summary()
    };
    let found = summary(false);
    assert!(pages(&found.flows[0]).loaded > 5, "{found:?}");
    assert_eq!(summary(true).flows, found.flows);
}

#[test]
fn the_resolved_scenario_names_what_a_client_does() {
    for (kind, filled) in [
        (
            "kind = \"video\", ladder = [\"1mbit\", \"2mbit\"]",
            ["buffer = \"60s\"", "reservoir = \"22500ms\"", "cushion ="],
        ),
        (
            "kind = \"video\", ladder = [\"1mbit\"], algorithm = \"bola\"",
            ["segment = \"4s\"", "startup = \"4s\"", "algorithm = { kind = \"bola\", gamma_p = 5"],
        ),
        (
            "kind = \"video\", ladder = [\"1mbit\"], algorithm = \"bba\"",
            ["segment = \"4s\"", "variation = 1", "algorithm = { kind = \"bba\", reservoir ="],
        ),
        (
            "kind = \"web\", page = \"1kB\", objects = { distribution = \"uniform\", min = 0, max = 9 }, object = \"1kB\"",
            ["connections = 6", "persistent = true", "request_size = \"300B\""],
        ),
        (
            "kind = \"request\", size = \"1kB\", response = \"1kB\"",
            ["persistent = true", "requests = false", "think = \"0s\""],
        ),
    ] {
        let parsed = |text: &str| Scenario::parse("test.toml", text.as_bytes(), &[]).expect("it is right");
        let resolved = |text: &str| parsed(text).resolved();
        let text = scenario("10mbit", "5s", &format!("application = {{ {kind} }}"));
        let once = resolved(&text);
        for key in filled {
            assert!(once.contains(key), "no {key} in\n{once}");
        }
        assert_eq!(resolved(&once), once);
        assert_eq!(parsed(&once).spec(0), parsed(&text).spec(0));
    }
}

fn netperf(flow: &FlowSummary) -> &NetperfSummary {
    flow.application.as_ref().and_then(|application| application.netperf.as_ref()).expect("netperf")
}

#[test]
fn netperf_opens_two_connections_for_each_try() {
    let keys = "send_buffer = \"64kB\"\napplication = { kind = \"netperf\", length = \"1s\" }";
    let flow = run("10mbit", "4s", keys);
    let seen = netperf(&flow);
    // Two handshakes and an exchange before the second of data, what is left in the buffer behind
    // it (up to 51.2 ms), and a round trip of 40 ms for each of its end and that of the control
    // connection: less than 1.3 s, and more than 1.2 s.
    assert_eq!((seen.tries, seen.completed, seen.failed), (4, 3, 0));
    // At most 1448 bytes of 1500 at the rate of the link, for all of the time but slow start.
    let mean = seen.goodput_bps.mean.expect("it completed");
    assert!((7e6..10e6 * 1448.0 / 1500.0).contains(&mean), "{mean}");
    assert_eq!(seen.goodput_bps.distribution.samples, 3);
    // Requests and data of all connections are the flow's.
    assert!(flow.progress.delivered_bytes as f64 > 3.0 * mean / 8.0, "{}", flow.progress.delivered_bytes);
}

#[test]
fn netperf_ends_with_its_last_try() {
    let keys = "send_buffer = \"64kB\"\napplication = { kind = \"netperf\", length = \"1s\", tries = 2 }";
    let flow = run("10mbit", "10s", keys);
    let seen = netperf(&flow);
    assert_eq!((seen.tries, seen.completed, seen.failed), (2, 2, 0));
}

#[test]
fn a_try_of_netperf_without_a_connection_is_followed_by_the_next() {
    let text = scenario("10mbit", "370s", "host = \"linux-2.4\"\napplication = \"netperf\"");
    let text = text.replace("delay = \"20ms\"", "delay = \"20ms\", loss = { kind = \"iid\", probability = 1.0 }");
    let flow = run_all(&text).flows.remove(0);
    let seen = netperf(&flow);
    // Six SYNs: given up after 3 + 6 + 12 + 24 + 48 + 96 s.
    assert_eq!((seen.tries, seen.completed, seen.failed), (2, 0, 1));
    assert_eq!(seen.goodput_bps.mean, None);
}

#[test]
fn netperf_waits_for_a_response_for_so_long() {
    // The request is the third packet, and is sent again a second later.
    let keys = "application = { kind = \"netperf\", length = \"1s\", patience = \"100ms\" }";
    let text = scenario("10mbit", "1s", keys);
    let loss = "delay = \"20ms\", loss = { kind = \"list\", packets = [2, 3, 4, 5] }, reverse = { loss = \"none\" }";
    let text = text.replace("delay = \"20ms\"", loss);
    let flow = run_all(&text).flows.remove(0);
    assert!(netperf(&flow).failed >= 1, "{:?}", netperf(&flow));
}

/// Packets that a short queue loses to connections that follow each other.
fn lost_to_tries(keys: &str) -> u64 {
    let application = "application = { kind = \"netperf\", length = \"2s\" }";
    let flow = format!("host = \"linux-2.4\"\ncc = \"newreno\"\n{application}\n{keys}");
    let text = scenario("10mbit", "60s", &flow);
    let text = text.replace("delay = \"20ms\"", "delay = \"20ms\", queue = { kind = \"pfifo\", limit = \"10p\" }");
    run_all(&text).links[0].packets.dropped.values().sum()
}

#[test]
fn a_host_remembers_where_slow_start_has_to_end() {
    let (without, with) = (lost_to_tries(""), lost_to_tries("metrics_cache = true"));
    assert_eq!(without, lost_to_tries("metrics_cache = false"));
    // The path and its queue hold 34 + 10 segments: slow start overshoots by a good part of that
    // each time, and once if its end is remembered; then a packet is lost in a second.
    assert!(with * 2 < without, "{with}, and {without} without");
}

#[test]
fn a_memory_belongs_to_an_endpoint_of_ours() {
    let found = error("host = \"smoltcp\"\nmetrics_cache = true");
    assert!(found.contains("flows.f.metrics_cache"), "{found}");
}
