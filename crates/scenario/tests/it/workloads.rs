//! Workloads: what arrives is what was asked for, and completes when arithmetic says so.

use std::ops::ControlFlow;

use ackclock_scenario::Scenario;
use ackclock_sim::{Recorders, RunError, World, run_kept};
use ackclock_trace::{FlowCsv, Summary, WorkloadSummary};

fn scenario(text: &str) -> Scenario {
    Scenario::parse("test.toml", text.as_bytes(), &[]).unwrap_or_else(|error| panic!("{error}"))
}

fn run(text: &str) -> Summary<()> {
    ackclock_sim::run(&scenario(text).spec(0), &mut |_| ControlFlow::Continue(())).expect("the data is intact")
}

/// A run with a row for each flow: the columns of each.
fn run_with_rows(text: &str) -> (Summary<()>, Vec<Vec<String>>) {
    let mut rows = FlowCsv::new(Vec::new());
    let recorders = Recorders { flows: Some(&mut rows), ..Recorders::default() };
    let summary = ackclock_sim::run_recorded(&scenario(text).spec(0), recorders, &mut |_| ControlFlow::Continue(()))
        .expect("the data is intact");
    let text = String::from_utf8(rows.finish().expect("memory takes it")).expect("it is text");
    (summary, text.lines().skip(1).map(|line| line.split(',').map(str::to_owned).collect()).collect())
}

/// A link of 1 Gbit/s and 10 ms, which sends a byte in 8 ns, with a workload over it.
fn over_a_link(duration: &str, keys: &str) -> String {
    format!(
        "schema = 1\n[run]\nduration = \"{duration}\"\n[links.a]\nrate = \"1gbit\"\ndelay = \"10ms\"\n\
         [[workloads]]\nid = \"w\"\npath = [\"a\"]\nhost = \"linux-6.1\"\n{keys}\n"
    )
}

fn row<'s>(summary: &'s Summary<()>, id: &str) -> &'s WorkloadSummary {
    summary.workloads.iter().find(|row| row.id == id).expect("there is such a row")
}

/// Times in ms.
fn sent(bytes: u64) -> f64 {
    bytes as f64 * 8e-6
}

fn equal(found: Option<f64>, exact: f64) -> bool {
    // Written in millionths, which are nanoseconds.
    found.is_some_and(|found| (found - exact).abs() < 5e-7)
}

/// Asserts equality within 1 %, relative.
fn near(found: f64, exact: f64) -> bool {
    (found / exact - 1.0).abs() < 0.01
}

#[test]
fn a_lone_flow_takes_handshake_rounds_and_serialization() {
    // SYN and SYN-ACK have 60 bytes, an ACK 52, the one before the data too, and a segment carries
    // 1448 in 1500. Each segment of
    // the first window of 10 is acknowledged at once, and each ACK releases two more: the last ones
    // leave when those before have.
    let delay = 10.0;
    let first_ack = 4.0 * delay + sent(60 + 60 + 52 + 1500 + 52);
    let cases = [
        (1, 4.0 * delay + sent(60 + 60 + 52 + 1500 + 52)),
        (2, 4.0 * delay + sent(60 + 60 + 52 + 2 * 1500 + 52)),
        (10, 4.0 * delay + sent(60 + 60 + 52 + 10 * 1500 + 52)),
        (11, first_ack + 2.0 * delay + sent(1500 + 52)),
        (12, first_ack + 2.0 * delay + sent(2 * 1500 + 52)),
        (30, first_ack + 2.0 * delay + sent(20 * 1500 + 52)),
    ];
    for (segments, fct) in cases {
        let size = segments * 1448;
        let keys = format!("size = \"{size}B\"\narrivals = \"500ms\"\ncount = 3");
        let (summary, rows) = run_with_rows(&over_a_link("2s", &keys));
        let all = row(&summary, "w");
        let ms = &all.fct_ms.distribution;
        assert!(equal(ms.min, fct) && equal(ms.max, fct), "{segments}: {ms:?} and not {fct}");
        assert_eq!((all.started, all.completed, all.unfinished, all.timeouts), (3, 3, 0, 0));
        assert_eq!(
            rows.iter().map(|row| row[4].as_str()).collect::<Vec<_>>(),
            ["0.500000000", "1.000000000", "1.500000000"]
        );
        assert!(rows.iter().all(|row| row[7] == format!("{fct:.6}")), "{rows:?}");
        // Two propagation delays, and all packets at the rate.
        let slowdown = fct / (2.0 * delay + sent(segments * 1500));
        let found = all.slowdown.distribution.max.expect("there are some");
        assert!((found - slowdown).abs() < 2e-6, "{segments}: {found} and not {slowdown}");
    }
}

#[test]
fn the_ideal_is_that_of_the_slowest_link_and_all_delays() {
    // 60 segments of 1448 bytes with 38 of framing on the slow link, whose way back differs.
    let text = "schema = 1\n[run]\nduration = \"5s\"\n\
        [links.fast]\nrate = \"1gbit\"\ndelay = \"3ms\"\n\
        [links.slow]\nrate = \"20mbit\"\ndelay = \"5ms\"\noverhead = \"38B\"\nreverse = { delay = \"7ms\" }\n\
        [[workloads]]\nid = \"w\"\npath = [\"fast\", \"slow\"]\nhost = \"linux-6.1\"\nsize = \"86880B\"\narrivals = \"1s\"\n";
    let summary = run(text);
    let all = row(&summary, "w");
    let ideal = 3.0 + 5.0 + 3.0 + 7.0 + (60.0 * 1538.0) * 8.0 / 20e3;
    let (fct, slowdown) = (all.fct_ms.distribution.max.expect("some"), all.slowdown.distribution.max.expect("some"));
    assert!((fct / slowdown - ideal).abs() < 1e-3, "{fct} / {slowdown} and not {ideal}");
}

#[test]
fn an_incast_is_complete_with_its_last_answer() {
    // The SYNs of all leave one after another, and so do the SYN-ACKs. The first ACK finds the link
    // idle, and its data and those of the others follow it without a gap.
    for senders in [1_u64, 2, 40] {
        let keys = format!(
            "size = \"1000B\"\ncount = 4\narrivals = {{ kind = \"incast\", senders = {senders}, every = \"100ms\" }}"
        );
        let summary = run(&over_a_link("1s", &keys));
        let all = row(&summary, "w");
        let requests = all.requests.as_ref().expect("it is an incast");
        let exact = 40.0 + sent(60 + 60 + senders * (52 + 1052) + 52);
        let found = &requests.completion_ms.distribution;
        assert!(equal(found.min, exact) && equal(found.max, exact), "{senders}: {found:?} and not {exact}");
        assert_eq!((requests.made, requests.completed, all.completed), (4, 4, 4 * senders));
    }
}

#[test]
fn an_incast_may_be_of_several_hosts() {
    // Each answer comes over a link of its own, all of them over the last one.
    let text = "schema = 1\n[run]\nduration = \"1s\"\n[links.a]\nrate = \"1gbit\"\ndelay = \"1ms\"\n\
        [links.b]\nrate = \"1gbit\"\ndelay = \"1ms\"\n[links.last]\nrate = \"1gbit\"\ndelay = \"1ms\"\n\
        [[workloads]]\nid = \"w\"\npaths = [[\"a\", \"last\"], [\"b\", \"last\"]]\nchoice = \"round_robin\"\n\
        host = \"linux-6.1\"\nsize = \"1000B\"\ncount = 1\narrivals = { kind = \"incast\", senders = 2, every = \"1s\" }\n";
    let (summary, rows) = run_with_rows(text);
    assert_eq!(rows.iter().map(|row| row[3].as_str()).collect::<Vec<_>>(), ["a>last", "b>last"]);
    let requests = row(&summary, "w").requests.as_ref().expect("it is an incast");
    // Both SYNs reach the last link at once, and are a SYN apart from there on; on the way back the
    // second SYN-ACK is not held up. Data waits for the ACK before it on its first link, and the
    // second data packet for the first on the last.
    let exact = 8.0 + sent(2 * 60 + 2 * 60 + 52 + 2 * 1052 + 1052 + 2 * 52);
    assert!(equal(requests.completion_ms.distribution.max, exact), "{requests:?} and not {exact}");
}

#[test]
fn the_load_is_that_asked_for() {
    let sizes = "size = { distribution = \"uniform\", min = \"1kB\", max = \"3kB\" }";
    let text = |keys: &str| {
        format!(
            "schema = 1\n[run]\nduration = \"70s\"\n[links.a]\nrate = \"50mbit\"\ndelay = \"1ms\"\n\
             [links.b]\nrate = \"50mbit\"\ndelay = \"1ms\"\n[links.c]\nrate = \"200mbit\"\n\
             reverse = {{ rate = \"50mbit\" }}\n\
             [[workloads]]\nid = \"w\"\nhost = \"linux-6.1\"\n{sizes}\n{keys}\n"
        )
    };
    // Payload over the rate of a link: that of the link that is named, and the slowest one.
    for (keys, offered) in [
        ("path = [\"a\"]\nload = 0.5", 25e6),
        ("path = [\"c\", \"a\"]\nload = 0.5", 25e6),
        ("path = [\"c\", \"a\"]\nload = 0.15\nlink = \"c\"", 30e6),
        ("path = [\"c\"]\ndirection = \"reverse\"\nload = 0.6", 30e6),
        ("paths = [[\"a\", \"c\"], [\"b\", \"c\"]]\nload = 0.4\nlink = \"a\"", 40e6),
        ("path = [\"a\"]\nload = 0.5\narrivals = { kind = \"incast\", senders = 5 }", 25e6),
        ("path = [\"a\"]\nload = 0.5\narrivals = { distribution = \"uniform\", min = \"0s\", max = \"1s\" }", 25e6),
    ] {
        let summary = run(&text(keys));
        let all = row(&summary, "w");
        assert!(near(all.offered_bps, offered), "{keys}: {} and not {offered}", all.offered_bps);
        assert!(near(all.size_bytes.mean.expect("some"), 2000.0), "{keys}");
        let expected = offered / 8.0 / 2000.0 * 70.0;
        assert!(near(all.started as f64, expected), "{keys}: {} and not {expected}", all.started);
        // No more than what waits at the end is missing from what was delivered.
        assert!(near(summary.groups[0].progress.delivered_bytes as f64 * 8.0 / 70.0, offered), "{keys}");
        assert!(all.unfinished < 200 && all.started == all.completed + all.unfinished, "{keys}");
    }
}

/// Two workloads and a flow on a link that loses, doubles and reorders packets.
fn rough(choice: &str) -> String {
    format!(
        "schema = 1\n[run]\nduration = \"20s\"\n[links.a]\nrate = \"20mbit\"\ndelay = \"8ms\"\n\
         loss = {{ kind = \"iid\", probability = 0.01 }}\nduplicate = 0.02\njitter = \"3ms\"\nreorder = true\n\
         [links.b]\nrate = \"30mbit\"\ndelay = \"2ms\"\nqueue = \"fq_codel\"\n\
         [[flows]]\nid = \"bulk\"\npath = [\"a\"]\n\
         [[workloads]]\nid = \"web\"\npaths = [[\"a\"], [\"a\", \"b\"]]\n{choice}\nhost = \"freebsd-14\"\nload = 0.4\nlink = \"a\"\n\
         size = {{ distribution = \"pareto\", mean = \"30kB\", shape = 1.3, max = \"1MB\" }}\nclasses = [\"12kB\", \"20kB\", \"100kB\"]\n\
         [[workloads]]\nid = \"back\"\npath = [\"b\"]\ndirection = \"reverse\"\nhost = \"windows-7\"\nsize = \"4kB\"\n\
         start = \"1s\"\nstop = \"15s\"\narrivals = {{ kind = \"incast\", senders = 7, every = {{ distribution = \"exponential\", mean = \"80ms\" }} }}\n"
    )
}

#[test]
fn rows_and_places_change_nothing_and_rows_are_what_sums_are_of() {
    for choice in ["choice = \"random\"", "choice = \"round_robin\""] {
        let text = rough(choice);
        let plain = run(&text);
        let (recorded, rows) = run_with_rows(&text);
        assert_eq!(plain, recorded, "{choice}");
        let mut kept = World::new(&scenario(&text).spec(0));
        kept.keep_places();
        kept.run(Recorders::default(), &mut |_| ControlFlow::Continue(())).expect("the data is intact");
        assert_eq!(format!("{:?}", kept.summary()), format!("{plain:?}"), "{choice}");
        for (id, over, up_to) in [
            ("web", 0, u64::MAX),
            ("web.up_to_12kB", 0, 12_000),
            ("web.up_to_20kB", 12_000, 20_000),
            ("web.up_to_100kB", 20_000, 100_000),
            ("web.above_100kB", 100_000, u64::MAX),
            ("back", 0, u64::MAX),
        ] {
            let name = id.split('.').next().expect("it has a name");
            let size = |row: &&Vec<String>| row[6].parse::<u64>().expect("a number");
            let of: Vec<_> =
                rows.iter().filter(|row| row[0] == name && (over + 1..=up_to).contains(&size(row))).collect();
            let numbers = |column: usize| of.iter().filter_map(move |row| row[column].parse::<f64>().ok());
            let found = row(&plain, id);
            assert!(of.len() > 10, "{id}");
            assert_eq!(of.len() as u64, found.started, "{id}");
            assert_eq!(numbers(7).count() as u64, found.completed, "{id}");
            assert_eq!(numbers(9).sum::<f64>(), found.retransmitted_packets as f64, "{id}");
            assert_eq!(numbers(10).sum::<f64>(), found.timeouts as f64, "{id}");
            for (column, spread) in [(7, &found.fct_ms), (8, &found.slowdown)] {
                let mut values: Vec<f64> = numbers(column).collect();
                values.sort_by(f64::total_cmp);
                let mean = values.iter().sum::<f64>() / values.len() as f64;
                assert!((spread.mean.expect("some") / mean - 1.0).abs() < 1e-6, "{id}");
                assert!((spread.distribution.max.expect("some") - values[values.len() - 1]).abs() < 2e-6, "{id}");
                let p99 = values[(values.len() * 99).div_ceil(100) - 1];
                assert!((spread.p99.expect("some") / p99 - 1.0).abs() < 0.001, "{id}: {:?} and not {p99}", spread.p99);
            }
        }
        let requests = row(&plain, "back").requests.as_ref().expect("it is an incast");
        let longest = |request: &str| {
            let of = rows.iter().filter(|row| row[0] == "back" && row[2] == request);
            of.map(|row| row[7].parse::<f64>().ok())
                .try_fold((0, 0.0_f64), |(n, most), fct| Some((n + 1, most.max(fct?))))
        };
        let whole = (0..requests.made).filter_map(|request| longest(&request.to_string())).filter(|&(n, _)| n == 7);
        let (count, most) = whole.fold((0, 0.0_f64), |(count, most), (_, fct)| (count + 1, most.max(fct)));
        assert_eq!(count, requests.completed);
        assert!((requests.completion_ms.distribution.max.expect("some") - most).abs() < 2e-6);
        assert!(
            rows.iter()
                .filter(|row| row[0] == "back")
                .all(|row| (1.0..15.0).contains(&row[4].parse().expect("a time")))
        );
    }
}

#[test]
fn each_part_has_a_stream_of_its_own() {
    let starts = |text: &str| {
        run_with_rows(text).1.into_iter().map(|row| row[4].clone()).collect::<std::collections::BTreeSet<_>>()
    };
    let gaps = "arrivals = { distribution = \"exponential\", mean = \"20ms\" }";
    let one = starts(&over_a_link("5s", &format!("size = \"1kB\"\n{gaps}")));
    let other = starts(&over_a_link("5s", &format!("size = {{ distribution = \"web-search\" }}\n{gaps}")));
    assert!(one == other && one.len() > 150);
    let seeded =
        starts(&over_a_link("5s", &format!("size = \"1kB\"\n{gaps}")).replace("duration", "seed = 2\nduration"));
    assert!(one.is_disjoint(&seeded));
}

#[test]
fn a_workload_that_grows_without_bound_stops_with_what_there_is() {
    let text = "schema = 1\n[run]\nduration = \"2000s\"\n[links.a]\nrate = \"10mbit\"\ndelay = \"1ms\"\n\
        [[workloads]]\nid = \"w\"\npath = [\"a\"]\nsize = \"100kB\"\nload = 2\nstop = \"1900s\"\nmax_alive = 60\n";
    let mut rows = FlowCsv::new(Vec::new());
    let recorders = Recorders { flows: Some(&mut rows), ..Recorders::default() };
    let (summary, error) =
        run_kept(&scenario(text).spec(0), recorders, &mut |_| ControlFlow::Continue(())).expect("there are results");
    let Some(RunError::TooMany { group, alive: 61, at }) = error else { panic!("{error:?}") };
    assert_eq!(group, "w");
    // 25 flows arrive in a second, and 12.5 complete.
    assert!((2.0..12.0).contains(&at.as_secs_f64()), "{at}");
    let all = row(&summary, "w");
    // The run ends there and then, and every flow is accounted for.
    assert!(summary.partial && summary.duration_s == at.as_secs_f64(), "{}", summary.duration_s);
    assert!(all.unfinished <= 61 && summary.groups[0].alive == 61, "{all:?}");
    assert!(all.completed > 10 && all.started == all.completed + all.unfinished, "{all:?}");
    let text = String::from_utf8(rows.finish().expect("memory takes it")).expect("it is text");
    assert_eq!(text.lines().count() as u64, 1 + all.started);
}

#[test]
fn metrics_are_of_workloads_and_classes() {
    let expect = |metric: &str| format!("[[expect]]\nmetric = \"{metric}\"\nat_most = 100\n");
    let text = |metric: &str| {
        over_a_link(
            "1s",
            &format!(
                "size = \"1kB\"\narrivals = {{ kind = \"incast\", senders = 2, every = \"100ms\" }}\n{}",
                expect(metric)
            ),
        )
    };
    for metric in [
        "workloads.w.fct_ms.p99",
        "workloads.w.up_to_100kB.slowdown.p99",
        "workloads.w.requests.completed",
        "groups.w.started",
    ] {
        let of = scenario(&text(metric));
        let measured = of.measure_summary(&run(&text(metric)));
        let evaluations = of.evaluations(&[Some(measured)]);
        assert!(of.misses(&evaluations).is_empty(), "{metric}: {evaluations:?}");
    }
    let error =
        Scenario::parse("t.toml", text("workloads.w.up_to_1MB.fct_ms.p99").as_bytes(), &[]).unwrap_err().to_string();
    assert!(error.contains("w.up_to_10MB"), "{error}");
}

#[test]
fn what_cannot_be_is_refused() {
    let of = |keys: &str| {
        let text = format!(
            "schema = 1\n[run]\nduration = \"10s\"\n[links.a]\nrate = \"10mbit\"\n[links.b]\nrate = \"unlimited\"\ndelay = \"1ms\"\n\
             [links.nothing]\nrate = \"unlimited\"\ndelay = \"0s\"\n[[workloads]]\nid = \"w\"\n{keys}\n"
        );
        Scenario::parse("test.toml", text.as_bytes(), &[]).map(|_| ()).map_err(|error| error.to_string())
    };
    let path = "path = [\"a\"]\n";
    for (keys, title) in [
        ("size = \"1kB\"\nload = 0.5".to_owned(), "workloads.w: the key `path` is missing"),
        (format!("{path}load = 0.5"), "workloads.w: the key `size` is missing"),
        (format!("{path}size = \"1kB\""), "workloads.w: the key `arrivals` is missing"),
        (
            format!("{path}size = \"1kB\"\nload = 1.0"),
            "workloads.w.load: flows would come faster than they end, without an end in sight",
        ),
        (format!("{path}size = \"1kB\"\nload = 0"), "workloads.w.load: out of range"),
        (format!("{path}size = \"1kB\"\nload = 0.5\nlink = \"c\""), "workloads.w.link: there is no such link"),
        (format!("{path}size = \"1kB\"\nload = 0.5\nlink = \"b\""), "workloads.w.link: its rate is unlimited"),
        ("path = [\"b\"]\nsize = \"1kB\"\nload = 0.5\nlink = \"a\"".to_owned(), "workloads.w.link: no flow passes it"),
        ("path = [\"b\"]\nsize = \"1kB\"\nload = 0.5".to_owned(), "workloads.w.load: a share of what"),
        (
            "path = [\"nothing\"]\nsize = \"1kB\"\narrivals = \"1s\"".to_owned(),
            "workloads.w: a round trip takes no time",
        ),
        ("path = [\"z\"]\nsize = \"1kB\"\narrivals = \"1s\"".to_owned(), "workloads.w.path: there is no link `z`"),
        (
            format!("{path}paths = [[\"a\"]]\nsize = \"1kB\"\narrivals = \"1s\""),
            "workloads.w.paths: not together with `path`",
        ),
        ("paths = []\nsize = \"1kB\"\narrivals = \"1s\"".to_owned(), "workloads.w.paths: not a list of paths"),
        (format!("{path}size = \"1kB\"\narrivals = \"1s\"\nlink = \"a\""), "workloads.w.link: without `load`"),
        (
            format!("{path}size = {{ distribution = \"pareto\", min = \"1kB\", shape = 0.9 }}\nload = 0.5"),
            "workloads.w.size: no distribution: has no finite mean",
        ),
        (
            format!("{path}size = \"1kB\"\narrivals = {{ kind = \"incast\", senders = 0, every = \"1s\" }}"),
            "workloads.w.arrivals.senders: must not be zero",
        ),
        (
            format!("{path}size = \"1kB\"\narrivals = {{ kind = \"incast\", senders = 3 }}"),
            "workloads.w.arrivals: the key `every` is missing",
        ),
        (
            format!("{path}size = \"1kB\"\narrivals = {{ kind = \"burst\" }}"),
            "workloads.w.arrivals.kind: unknown kind of arrivals `burst`",
        ),
        (
            format!("{path}size = \"1kB\"\narrivals = \"1s\"\nclasses = [\"2kB\", \"1kB\"]"),
            "workloads.w.classes: not a list of limits",
        ),
        (format!("{path}size = \"1kB\"\narrivals = \"1s\"\nclasses = [3]"), "workloads.w.classes: "),
        (
            format!("{path}size = \"1kB\"\narrivals = \"1s\"\nstart = \"10s\""),
            "workloads.w: starts when the run is over",
        ),
        (
            format!("{path}size = \"1kB\"\narrivals = \"1s\"\nstart = \"2s\"\nstop = \"2s\""),
            "workloads.w.stop: not after `start`",
        ),
        (format!("{path}size = \"1kB\"\narrivals = \"1ns\""), "workloads.w: 1.000e10 flows are too many"),
        (format!("{path}size = \"1kB\"\narrivals = \"1s\"\nbytes = \"1kB\""), "workloads.w: unknown key `bytes`"),
        (
            format!(
                "{path}size = \"1kB\"\narrivals = \"1s\"\n[[workloads]]\nid = \"w\"\n{path}size = \"1kB\"\narrivals = \"1s\""
            ),
            "two flows or workloads are called `w`",
        ),
        (
            format!("{path}size = \"1kB\"\narrivals = \"1s\"\n[[flows]]\nid = \"w\"\n{path}"),
            "two flows or workloads are called `w`",
        ),
    ] {
        let error = of(&keys).expect_err(&keys);
        assert!(error.contains(title), "{keys}: {error}");
    }
    assert_eq!(of(&format!("{path}size = \"1kB\"\nload = 1.5\ncount = 100")), Ok(()));
    assert_eq!(of(&format!("{path}size = \"1kB\"\nload = 1.5\nstop = \"5s\"")), Ok(()));
}
