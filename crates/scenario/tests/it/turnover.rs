//! Flows that come and go: what is given again changes nothing, and sums are sums.

use std::ops::ControlFlow;

use ackclock_scenario::Scenario;
use ackclock_sim::{Recorders, World};
use ackclock_trace::{GroupSummary, Summary};

fn scenario(text: &str) -> Scenario {
    Scenario::parse("test.toml", text.as_bytes(), &[]).unwrap_or_else(|error| panic!("{error}"))
}

fn run(text: &str) -> Summary<()> {
    ackclock_sim::run(&scenario(text).spec(0), &mut |_| ControlFlow::Continue(())).expect("the data is intact")
}

/// A run with a place for each flow.
fn run_keeping(text: &str) -> Summary<()> {
    let mut world = World::new(&scenario(text).spec(0));
    world.keep_places();
    world.run(Recorders::default(), &mut |_| ControlFlow::Continue(())).expect("the data is intact");
    world.summary()
}

/// A link that does everything to packets that links do.
const ROUGH: &str = "schema = 1\n[run]\nduration = \"20s\"\n\
    [links.a]\nrate = \"20mbit\"\ndelay = \"8ms\"\nloss = { kind = \"iid\", probability = 0.02 }\nduplicate = 0.02\n\
    jitter = \"3ms\"\nreorder = true\n";

const KINDS: [&str; 4] = ["fq_codel", "pie", "sfb", "fq_pie"];

#[test]
fn places_that_are_given_again_change_nothing() {
    for kind in KINDS {
        for seed in 1..4 {
            let text = format!(
                "{ROUGH}queue = {{ kind = \"{kind}\" }}\n\
                 [[flows]]\nid = \"bulk\"\npath = [\"a\"]\nhost = \"freebsd-14\"\n\
                 [[flows]]\nid = \"short\"\npath = [\"a\"]\nbytes = \"20kB\"\ncount = 1000\narrival_rate = 40\nresults = \"sum\"\n\
                 [[flows]]\nid = \"back\"\npath = [\"a\"]\ndirection = \"reverse\"\nbytes = \"3kB\"\nhost = \"windows-7\"\n\
                 count = 1000\narrival_rate = 60\nstop = \"15s\"\nresults = \"sum\"\n\
                 [[flows]]\nid = \"cut\"\npath = [\"a\"]\nhost = \"linux-3.9\"\ncount = 3\nrestart_every = \"500ms\"\n\
                 abort = \"12s\"\nresults = \"sum\"\n\
                 [[flows]]\nid = \"stock\"\npath = [\"a\"]\nhost = \"smoltcp\"\nbytes = \"5kB\"\ncount = 40\narrival_rate = 5\n\
                 results = \"sum\"\n\
                 [[flows]]\nid = \"both\"\npaths = [[\"a\"], [\"b\"]]\nsplit = \"round_robin\"\nbytes = \"9kB\"\n\
                 count = 1000\narrival_rate = 30\nresults = \"sum\"\n"
            )
            .replacen("[[flows]]", "[links.b]\nrate = \"10mbit\"\ndelay = \"1ms\"\n[[flows]]", 1)
            .replace("duration = \"20s\"", &format!("duration = \"20s\"\nseed = {seed}"));
            let summary = run(&text);
            assert_eq!(format!("{:?}", run_keeping(&text)), format!("{summary:?}"), "{kind} {seed}");
            let [short, back, cut, stock, both] = &summary.groups[..] else { panic!("five groups") };
            assert!(short.started > 600 && short.completed + short.alive >= short.started, "{short:?}");
            assert!(back.most_alive < back.started / 2, "places were given again: {back:?}");
            assert!(cut.aborted > 0 && cut.completed == 0, "{cut:?}");
            assert!(stock.completed > 20, "{stock:?}");
            assert!(both.completed > 400, "{both:?}");
            assert_eq!(summary.flows.len(), 1);
        }
    }
}

#[test]
fn sums_are_those_of_the_flows() {
    for kind in KINDS {
        for (keys, count) in [("arrival_rate = 30", 400), ("restart_every = \"700ms\"\nstagger = \"13ms\"", 5)] {
            let text = |results: &str| {
                format!(
                    "{ROUGH}queue = {{ kind = \"{kind}\" }}\n[[flows]]\nid = \"bulk\"\npath = [\"a\"]\n\
                     [[flows]]\nid = \"short\"\npath = [\"a\"]\nbytes = \"30kB\"\ncount = {count}\n{keys}\n{results}\n"
                )
            };
            let (each, summed) = (run(&text("")), run(&text("results = \"sum\"")));
            // All that happens on the way is the same.
            assert_eq!((&each.links, each.packets), (&summed.links, summed.packets), "{kind}");
            assert_eq!(each.flows[..1], summed.flows[..], "{kind}");
            let [group] = &summed.groups[..] else { panic!("one group") };
            let flows: Vec<_> = each.flows[1..].iter().filter(|flow| flow.start_s.is_some()).collect();
            let sum = |of: fn(&ackclock_trace::FlowSummary) -> u64| flows.iter().map(|flow| of(flow)).sum::<u64>();
            let found = |GroupSummary { started, completed, progress, sent, recoveries, .. }: &GroupSummary| {
                [*started, *completed, progress.delivered_bytes, sent.retransmitted_packets, recoveries.timeouts]
            };
            let expected = [
                flows.len() as u64,
                flows.iter().filter(|flow| flow.fct_s.is_some()).count() as u64,
                sum(|flow| flow.progress.delivered_bytes),
                sum(|flow| flow.sent.retransmitted_packets),
                sum(|flow| flow.recoveries.timeouts),
            ];
            assert_eq!(found(group), expected, "{kind} {keys}");
            assert!(group.sent.retransmitted_packets > 0 && group.completed > 50);
            assert_eq!(group.rtt_ms.distribution.samples, sum(|flow| flow.rtt_ms.samples));
            let longest = flows.iter().filter_map(|flow| flow.fct_s).fold(0.0, f64::max);
            assert!((group.fct_ms.distribution.max.expect("some are") - 1e3 * longest).abs() < 1e-5);
        }
    }
}

/// A group has its place in the order of all flows, from which their hashes come and the order of
/// what happens at once, whether the results list its flows or their sum.
#[test]
fn the_results_of_one_group_change_no_other() {
    for (kind, split) in KINDS.into_iter().zip(["random", "flow_hash", "round_robin", "random"]) {
        let text = |results: &str| {
            let short = |id: &str, results: &str| {
                format!(
                    "[[flows]]\nid = \"{id}\"\npaths = [[\"a\"], [\"b\"]]\nsplit = \"{split}\"\nbytes = \"30kB\"\n\
                     count = 60\narrival_rate = 10\n{results}\n"
                )
            };
            format!(
                "{ROUGH}queue = {{ kind = \"{kind}\" }}\n[links.b]\nrate = \"10mbit\"\ndelay = \"8ms\"\n{}\
                 [[flows]]\nid = \"bulk\"\npath = [\"a\"]\n{}{}[[flows]]\nid = \"last\"\npath = [\"b\"]\n",
                short("first", results),
                short("listed", ""),
                short("second", results)
            )
        };
        let (each, summed) = (run(&text("")), run(&text("results = \"sum\"")));
        assert_eq!((&each.links, each.packets), (&summed.links, summed.packets), "{kind} {split}");
        assert_eq!((each.flows.len(), summed.flows.len()), (182, 62));
        assert_eq!((&each.flows[60..121], &each.flows[181..]), (&summed.flows[..61], &summed.flows[61..]), "{kind}");
    }
}

#[test]
fn a_lone_transfer_takes_its_round_trips() {
    let summary = run("schema = 1\n[run]\nduration = \"60s\"\n[links.a]\nrate = \"10mbit\"\ndelay = \"10ms\"\n\
         [[flows]]\nid = \"f\"\npath = [\"a\"]\nbytes = \"1kB\"\ncount = 50\narrival_rate = 1\nresults = \"sum\"\n\
         host = \"linux-6.1\"\n");
    let [group] = &summary.groups[..] else { panic!("one group") };
    // SYN and SYN-ACK of 60 bytes, their ACK of 52 bytes, 1000 bytes with 52 of headers, an ACK: at
    // 10 Mbit/s 0.8 us a byte; and four times the delay.
    let fct = 4.0 * 10.0 + (60.0 + 60.0 + 52.0 + 1052.0 + 52.0) * 0.0008;
    assert_eq!(group.fct_ms.distribution.min, Some(fct));
    assert!((group.started, group.completed) == (50, 50) || group.started < 50, "{group:?}");
    assert_eq!((group.recoveries.timeouts, group.alive), (0, group.started - group.completed));
}

#[test]
fn start_times_do_not_depend_on_the_results() {
    let text = |results: &str| {
        format!(
            "schema = 1\n[run]\nduration = \"10s\"\n[links.a]\nrate = \"10mbit\"\n\
             [[flows]]\nid = \"f\"\npath = [\"a\"]\nstart = \"2s\"\nbytes = \"1B\"\ncount = 90\narrival_rate = 10\n{results}\n"
        )
    };
    let flows = scenario(&text("")).spec(0).flows;
    let seconds: Vec<f64> = flows.iter().map(|flow| flow.start.as_secs_f64()).filter(|&start| start < 10.0).collect();
    assert_eq!(flows.len(), 90);
    assert!(seconds.is_sorted() && seconds[0] > 2.0);
    // 80 on average, with a standard deviation of 9.
    assert!(seconds.len() > 50, "{}", seconds.len());
    let summed = run(&text("results = \"sum\""));
    assert_eq!(summed.groups[0].started, seconds.len() as u64);
    assert!(flows.iter().skip(seconds.len()).all(|flow| flow.start == ackclock_units::Time::NEVER));
}

#[test]
fn flows_that_come_and_go_take_two_paths() {
    let of = |results: &str| {
        run(&format!(
            "schema = 1\n[run]\nduration = \"20s\"\n[links.a]\nrate = \"10mbit\"\n[links.b]\nrate = \"10mbit\"\ndelay = \"2ms\"\n\
             [[flows]]\nid = \"f\"\npaths = [[\"a\"], [\"b\"]]\nsplit = \"round_robin\"\nbytes = \"30kB\"\ncount = 20\n\
             stagger = \"500ms\"\nresults = \"{results}\"\n"
        ))
    };
    let (each, sum) = (of("each"), of("sum"));
    let packets = |summary: &Summary<()>, id: &str| {
        summary.links.iter().find(|link| link.id == id).expect("it is listed").packets.offered
    };
    // Every other packet of each flow, of which the first takes the first path.
    let [first, second] = ["a.forward", "b.forward"].map(|id| packets(&sum, id));
    assert!((0..=20).contains(&(first as i64 - second as i64)), "{first} {second}");
    assert_eq!([first, second], ["a.forward", "b.forward"].map(|id| packets(&each, id)));
    assert_eq!(packets(&sum, "b.reverse"), 0);
    let group = &sum.groups[0];
    assert_eq!((group.completed, group.progress.delivered_bytes), (20, 600_000));
}

#[test]
fn keys_that_do_not_go_together_are_refused() {
    let of = |keys: &str| {
        let text = format!(
            "schema = 1\n[run]\nduration = \"10s\"\n[links.a]\nrate = \"10mbit\"\n[links.b]\nrate = \"10mbit\"\n\
             [[flows]]\nid = \"f\"\n{keys}\n"
        );
        Scenario::parse("test.toml", text.as_bytes(), &[]).map(|_| ()).map_err(|error| error.to_string())
    };
    for (keys, title) in [
        ("path = [\"a\"]\narrival_rate = 1\nstagger = \"1s\"", "flows.f.stagger: not together with `arrival_rate`"),
        ("path = [\"a\"]\narrival_rate = 1\nrestart_every = \"1s\"", "flows.f.restart_every: not together with"),
        ("path = [\"a\"]\narrival_rate = 0", "flows.f.arrival_rate: "),
        ("path = [\"a\"]\nresults = \"all\"", "flows.f.results: unknown kind of results `all`"),
        ("path = [\"a\"]\ncount = 100_001\narrival_rate = 1", "flows.f.count: too large"),
        ("path = [\"a\"]\ncount = 100_001\nresults = \"sum\"", "flows.f.count: too large"),
    ] {
        let error = of(keys).expect_err(keys);
        assert!(error.contains(title), "{keys}: {error}");
    }
    assert_eq!(of("path = [\"a\"]\ncount = 1_000_000\narrival_rate = 1\nresults = \"sum\""), Ok(()));
}
