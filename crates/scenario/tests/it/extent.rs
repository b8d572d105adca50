//! Limits of queues in other units: packets, bytes, time, bandwidth-delay products.

use ackclock_aqm::{Limit, QueueSpec};
use ackclock_scenario::Scenario;

/// A scenario with these keys of the link `wire`, another link and a flow over both.
fn text(keys: &str) -> String {
    format!(
        "schema = 1\n[run]\nduration = \"1s\"\n[links.wire]\n{keys}\n\
         [links.far]\nrate = \"1gbit\"\ndelay = \"35ms\"\nreverse = {{ delay = \"15ms\" }}\n\
         [[flows]]\nid = \"f\"\npath = [\"far\", \"wire\"]\n"
    )
}

fn parse(keys: &str) -> Scenario {
    Scenario::parse("test", text(keys).as_bytes(), &[]).unwrap_or_else(|error| panic!("{error}"))
}

fn queue(keys: &str) -> QueueSpec {
    parse(keys).spec(0).links[0].forward.queue.clone()
}

/// The limit of a drop-tail queue on a link of 10 Mbit/s and 20 ms each way.
fn limit(kind: &str, limit: &str) -> Limit {
    limit_on("rate = \"10mbit\"\ndelay = \"20ms\"", kind, limit)
}

fn limit_on(link: &str, kind: &str, limit: &str) -> Limit {
    match queue(&format!("{link}\nqueue = {{ kind = \"{kind}\", limit = {limit} }}")) {
        QueueSpec::Pfifo(config) | QueueSpec::Bfifo(config) => config.limit,
        other => panic!("{other:?}"),
    }
}

fn refused(keys: &str) -> String {
    let error = Scenario::parse("test", text(keys).as_bytes(), &[]).expect_err("nonsense").render(false);
    let line = |part: &str| error.lines().find(|line| line.contains(part)).unwrap_or("").trim().to_owned();
    format!("{} | {}", line("error: "), line("= note: "))
}

#[test]
fn a_time_is_that_at_the_rate_of_the_link() {
    // 10 Mbit/s * 50 ms / 8 = 62 500 bytes; 41.7 full packets.
    assert_eq!(limit("bfifo", "\"50ms\""), Limit::Bytes(62_500));
    assert_eq!(limit("pfifo", "\"50ms\""), Limit::Packets(42));
    // A size that is no whole byte is rounded: 3 bit/s for a second.
    assert_eq!(limit_on("rate = \"3bit\"", "bfifo", "\"1s\""), Limit::Bytes(1));
    // Framing counts: 62 500 / 1538 = 40.6.
    let framed = "rate = \"10mbit\"\noverhead = \"38B\"";
    assert_eq!(limit_on(framed, "pfifo", "\"50ms\""), Limit::Packets(41));
    // 1500 + 10 bytes are 32 cells of 53, 1696 bytes: 62 500 / 1696 = 36.9.
    let cells = "rate = \"10mbit\"\noverhead = \"10B\"\nlinklayer = \"atm\"";
    assert_eq!(limit_on(cells, "pfifo", "\"50ms\""), Limit::Packets(37));
}

#[test]
fn packets_and_bytes_stand_for_each_other() {
    assert_eq!(limit("bfifo", "\"10p\""), Limit::Bytes(15_000));
    assert_eq!(limit_on("rate = \"1mbit\"\noverhead = \"38B\"", "bfifo", "\"10p\""), Limit::Bytes(15_380));
    assert_eq!(limit("pfifo", "\"15001B\""), Limit::Packets(11));
    // An unlimited link has packets and bytes, too.
    assert_eq!(limit_on("rate = \"unlimited\"", "pfifo", "\"15kB\""), Limit::Packets(10));
}

#[test]
fn bandwidth_delay_products_are_those_of_a_path() {
    // 10 Mbit/s * 40 ms / 8 = 50 000 bytes, 33.3 packets.
    assert_eq!(limit("bfifo", "\"1bdp\""), Limit::Bytes(50_000));
    assert_eq!(limit("pfifo", "\"1bdp\""), Limit::Packets(34));
    assert_eq!(limit("bfifo", "\"0.25bdp\""), Limit::Bytes(12_500));
    assert_eq!(limit("bfifo", "{ bdp = 2 }"), Limit::Bytes(100_000));
    // Over both links the round trip is 40 + 35 + 15 ms, at the rate of this one.
    assert_eq!(limit("bfifo", "{ bdp = 1, path = \"f\" }"), Limit::Bytes(112_500));
    assert_eq!(limit("bfifo", "{ bdp = 1, path = [\"wire\", \"far\"] }"), Limit::Bytes(112_500));
    assert_eq!(limit("bfifo", "{ bdp = 1, path = [\"far\"] }"), Limit::Bytes(62_500));
    // A way back with a delay of its own.
    let asymmetric = "rate = \"10mbit\"\ndelay = \"20ms\"\nreverse = { delay = \"0ms\" }";
    assert_eq!(limit_on(asymmetric, "bfifo", "\"1bdp\""), Limit::Bytes(25_000));
}

#[test]
fn thresholds_and_other_disciplines_have_them_as_well() {
    let link = "rate = \"12mbit\"\ndelay = \"20ms\"";
    let QueueSpec::Red(red) =
        queue(&format!("{link}\nqueue = {{ kind = \"red\", limit = \"1bdp\", min = \"5ms\", max = \"10p\" }}"))
    else {
        panic!("RED");
    };
    // 12 Mbit/s are 1500 bytes per millisecond.
    assert_eq!((red.limit, red.min, red.max), (60_000, Some(7500), Some(15_000)));
    let QueueSpec::FqCodel(fq) =
        queue(&format!("{link}\nqueue = {{ kind = \"fq_codel\", limit = \"100ms\", memory_limit = \"2bdp\" }}"))
    else {
        panic!("fq_codel");
    };
    assert_eq!((fq.limit, fq.memory_limit), (100, 120_000));
    // A parameter that is a time by itself stays one.
    let codel = "queue = { kind = \"codel\", target = \"5ms\", ce_threshold = \"1ms\" }";
    let QueueSpec::Codel(codel) = queue(&format!("{link}\n{codel}")) else { panic!("CoDel") };
    assert_eq!(codel.target, ackclock_units::Span::from_millis(5));
}

#[test]
fn both_directions_have_the_time_at_their_own_rates() {
    let keys = |reverse: &str| {
        let keys =
            format!("rate = \"10mbit\"\ndelay = \"20ms\"\nqueue = {{ limit = \"50ms\" }}\nreverse = {{ {reverse} }}");
        parse(&keys).spec(0).links[0].reverse.queue.clone()
    };
    let pfifo = |packets| {
        let mut spec = QueueSpec::by_name("pfifo").unwrap();
        if let QueueSpec::Pfifo(config) = &mut spec {
            config.limit = Limit::Packets(packets);
        }
        spec
    };
    assert_eq!(keys("rate = \"1mbit\""), pfifo(5));
    // Without a rate, that of the other direction is kept.
    assert_eq!(keys("rate = \"unlimited\""), pfifo(42));
    assert_eq!(keys("rate = \"1mbit\", queue = { limit = \"7p\" }"), pfifo(7));
}

#[test]
fn a_schedule_has_them_at_the_rate_of_the_change() {
    let keys = "rate = \"10mbit\"\ndelay = \"20ms\"\nqueue = { kind = \"codel\", limit = \"50ms\" }\nschedule = [\n\
                { at = \"100ms\", rate = \"20mbit\", queue = { limit = \"50ms\" } },\n\
                { at = \"200ms\", queue = { limit = \"1bdp\" } },\n]";
    let changes = parse(keys).spec(0).links[0].forward.course.schedule.clone();
    let limits: Vec<u64> = (changes.iter().filter_map(|change| change.queue.as_ref()))
        .map(|queue| if let QueueSpec::Codel(config) = queue { config.limit } else { panic!("CoDel") })
        .collect();
    // 125 000 bytes are 83.3 packets; 20 Mbit/s * 40 ms / 8 = 100 000 bytes are 66.7.
    assert_eq!(limits, [84, 67]);
}

#[test]
fn what_a_size_comes_to_is_shown() {
    let scenario = parse("rate = \"10mbit\"\ndelay = \"20ms\"\nqueue = { limit = { bdp = 1, path = \"f\" } }");
    let shown = scenario.resolved();
    let note = "# links.wire.queue.limit = { bdp = 1, path = \"f\" } comes to \"75p\"\n";
    assert!(shown.starts_with(note), "{shown}");
    let again = Scenario::parse("shown", shown.as_bytes(), &[]).unwrap();
    assert_eq!((again.spec(0), again.resolved()), (scenario.spec(0), shown));
    // At the points of a sweep it differs.
    let sweep = text("rate = \"10mbit\"\ndelay = \"20ms\"\nqueue = { limit = \"50ms\" }")
        + "[sweep]\naxes.\"links.wire.rate\" = [\"10mbit\", \"12mbit\"]\n";
    let shown = Scenario::parse("sweep", sweep.as_bytes(), &[]).unwrap().resolved();
    assert!(shown.starts_with("# links.wire.queue.limit = \"50ms\" comes to \"42p\", \"50p\"\n"), "{shown}");
}

#[test]
fn what_cannot_be_converted_is_refused() {
    let wire = |limit: &str| format!("rate = \"10mbit\"\ndelay = \"20ms\"\nqueue = {{ limit = {limit} }}");
    insta::assert_snapshot!(refused("rate = \"unlimited\"\nqueue = { limit = \"50ms\" }"), @r#"error: links.wire.queue.limit: the rate of `wire` is unlimited | = note: expected packets or bytes, such as "180p" or "50kB", or a link with a rate"#);
    insta::assert_snapshot!(refused("rate = \"10mbit\"\nqueue = { limit = \"1bdp\" }"), @r#"error: links.wire.queue.limit: the round trip over `wire` is 0 | = note: expected a path with a `delay`, or a size in packets, bytes or time"#);
    insta::assert_snapshot!(refused(&wire("\"fast\"")), @r#"error: links.wire.queue.limit: not a number with a unit | = note: expected a number of packets, such as "180p"; or a time at the link's rate, such as "50ms", or bandwidth-delay products, such as "1bdp""#);
    insta::assert_snapshot!(refused(&wire("\"0ms\"")), @r#"error: links.wire.queue.limit: must not be zero: it comes to "0p" | = note: expected from 1p to 4294967295p"#);
    insta::assert_snapshot!(refused(&wire("\"0bdp\"")), @r#"error: links.wire.queue.limit: must not be zero: it comes to "0p" | = note: expected from 1p to 4294967295p"#);
    insta::assert_snapshot!(refused(&wire("\"-1bdp\"")), @r#"error: links.wire.queue.limit: must not be negative | = note: expected a number of packets, such as "180p"; or a time at the link's rate, such as "50ms", or bandwidth-delay products, such as "1bdp""#);
    insta::assert_snapshot!(refused(&wire("{ path = \"f\" }")), @r#"error: links.wire.queue.limit: the key `bdp` is missing | = note: expected a table such as { bdp = 1 }, { bdp = 0.5, path = "FLOW" } with a flow or a list of links, or { bdp = 1, aggregate = "FLOW" } with a flow over several paths"#);
    insta::assert_snapshot!(refused(&wire("{ bdp = -1 }")), @r#"error: links.wire.queue.limit: bdp: out of range | = note: expected a number above 0, up to 1000000"#);
    insta::assert_snapshot!(refused(&wire("{ bdp = 1, flow = \"f\" }")), @r#"error: links.wire.queue.limit: unknown key `flow` | = note: expected a table such as { bdp = 1 }, { bdp = 0.5, path = "FLOW" } with a flow or a list of links, or { bdp = 1, aggregate = "FLOW" } with a flow over several paths"#);
    insta::assert_snapshot!(refused(&wire("{ bdp = 1, path = \"g\" }")), @r#"error: links.wire.queue.limit: path: there is no flow `g` | = note: expected a table such as { bdp = 1 }, { bdp = 0.5, path = "FLOW" } with a flow or a list of links, or { bdp = 1, aggregate = "FLOW" } with a flow over several paths"#);
    insta::assert_snapshot!(refused(&wire("{ bdp = 1, path = [\"nowhere\"] }")), @r#"error: links.wire.queue.limit: the delay of the link `nowhere` is not known | = note: expected links with a `delay`"#);
    insta::assert_snapshot!(refused(&wire("{ bdp = 1, path = 3 }")), @r#"error: links.wire.queue.limit: path: neither a flow nor a list of links | = note: expected a table such as { bdp = 1 }, { bdp = 0.5, path = "FLOW" } with a flow or a list of links, or { bdp = 1, aggregate = "FLOW" } with a flow over several paths"#);
    insta::assert_snapshot!(refused("rate = \"1tbit\"\nqueue = { limit = \"10h\" }"), @r#"error: links.wire.queue.limit: too large: it comes to "3000000000000p" | = note: expected from 1p to 4294967295p"#);
    insta::assert_snapshot!(refused("rate = \"10 foo\"\nqueue = { limit = \"50ms\" }"), @r#"error: links.wire.rate: unknown unit `foo` | = note: expected a rate with its unit, such as "10mbit" (bit, kbit, mbit, gbit, tbit), or "unlimited""#);
}

/// 5 and 20 Mbit/s over 100 and 10 ms: 25 Mbit/s for 100 ms are 312 500 bytes, 208.3 full packets.
#[test]
fn an_aggregate_has_all_rates_and_the_longest_round_trip() {
    let text = |limit: &str, flow: &str| {
        let queue = format!("queue = {{ kind = \"pfifo\", limit = {limit} }}");
        format!(
            "schema = 1\n[run]\nduration = \"1s\"\n[links.a]\nrate = \"5mbit\"\ndelay = \"40ms\"\n{queue}\n\
             [links.b]\nrate = \"20mbit\"\ndelay = \"5ms\"\n{queue}\n\
             [links.far]\nrate = \"1gbit\"\ndelay = \"10ms\"\n[[flows]]\nid = \"f\"\n{flow}\n"
        )
    };
    let limits = |text: &str| -> Vec<Limit> {
        let scenario = Scenario::parse("test", text.as_bytes(), &[]).unwrap_or_else(|error| panic!("{error}"));
        let of = |link: usize| match &scenario.spec(0).links[link].forward.queue {
            QueueSpec::Pfifo(config) => config.limit,
            other => panic!("{other:?}"),
        };
        vec![of(0), of(1)]
    };
    let paths = "[[\"a\", \"far\"], [\"b\"]]";
    for flow in [format!("paths = {paths}"), format!("transport = \"mptcp\"\nsubflows = {paths}")] {
        let aggregate = text("{ bdp = 1, aggregate = \"f\" }", &flow);
        assert_eq!(limits(&aggregate), [Limit::Packets(209); 2]);
        // The product is that of each link itself: 5 Mbit/s for 80 ms, 20 Mbit/s for 10 ms.
        assert_eq!(limits(&text("\"1bdp\"", &flow)), [Limit::Packets(34), Limit::Packets(17)]);
    }
    for (limit, flow, message) in [
        ("{ bdp = 1, aggregate = \"g\" }", "path = [\"a\"]", "aggregate: there is no such flow"),
        ("{ bdp = 1, aggregate = \"f\" }", "path = [\"a\"]", "aggregate: the flow has a single path"),
        ("{ bdp = 1, path = \"f\", aggregate = \"f\" }", "path = [\"a\"]", "`path` and `aggregate` exclude each other"),
    ] {
        let error = Scenario::parse("test", text(limit, flow).as_bytes(), &[]).expect_err(limit).render(false);
        assert!(error.contains(message), "{error}");
    }
}
