//! Impairments of a link as a scenario gives them.

use std::fs;
use std::ops::ControlFlow;
use std::path::Path;

use ackclock_emulator::{GilbertElliott, Impairments, JitterDistribution, JitterTable, Loss, Markov};
use ackclock_scenario::Scenario;

/// A scenario with these keys for its link.
fn text(keys: &str) -> String {
    format!(
        "schema = 1\nrun.duration = \"5s\"\n[links.wire]\nrate = \"10mbit\"\n{keys}\n\
         [[flows]]\nid = \"f\"\npath = [\"wire\"]\n"
    )
}

/// The impairments of both directions.
fn read(keys: &str) -> [Impairments; 2] {
    let scenario = Scenario::parse("scenario.toml", text(keys).as_bytes(), &[]).expect("a scenario");
    // The shown file is the same scenario.
    let shown = Scenario::parse("shown.toml", scenario.resolved().as_bytes(), &[]).expect("what is shown is one");
    assert_eq!(scenario.spec(0).links, shown.spec(0).links);
    let link = scenario.spec(0).links.remove(0);
    [link.forward.impairments, link.reverse.impairments]
}

fn refused(keys: &str) -> String {
    Scenario::parse("scenario.toml", text(keys).as_bytes(), &[]).expect_err("no scenario").to_string()
}

#[test]
fn chains_of_losses_have_the_parameters_and_defaults_of_tc() {
    let loss = |keys: &str| read(&format!("loss = {{ {keys} }}"))[0].loss.clone();
    let chain = |p, r, bad, good| Loss::GilbertElliott(GilbertElliott { p, r, bad, good });
    assert_eq!(loss("kind = \"gilbert-elliott\", p = 0.25"), chain(0.25, 0.75, 1.0, 0.0));
    assert_eq!(
        loss("kind = \"gilbert-elliott\", p = 0.01, r = 0.3, 1-h = 0.7, 1-k = 0.002"),
        chain(0.01, 0.3, 0.7, 0.002)
    );
    let chain = |p13, p31, p32, p23, p14| Loss::Markov(Markov { p13, p31, p32, p23, p14 });
    assert_eq!(loss("kind = \"markov\", p13 = 0.25"), chain(0.25, 0.75, 0.0, 1.0, 0.0));
    assert_eq!(
        loss("kind = \"markov\", p13 = 0.1, p31 = 0.2, p32 = 0.3, p23 = 0.4, p14 = 0.5"),
        chain(0.1, 0.2, 0.3, 0.4, 0.5)
    );
    // Two ways that make 1, in decimal fractions that do not quite.
    assert_eq!(loss("kind = \"markov\", p13 = 0.1, p31 = 0.7, p32 = 0.3, p14 = 0.9"), chain(0.1, 0.7, 0.3, 1.0, 0.9));
    // The way back has its own.
    let [forward, reverse] =
        read("loss = { kind = \"markov\", p13 = 0.25 }\nreverse.loss = { kind = \"iid\", probability = 0.5 }");
    assert_eq!((forward.loss, reverse.loss), (chain(0.25, 0.75, 0.0, 1.0, 0.0), Loss::Iid(0.5)));
}

#[test]
fn a_state_is_left_with_a_probability_of_at_most_one() {
    let error = refused("loss = { kind = \"markov\", p13 = 0.1, p32 = 0.3 }");
    assert!(error.contains("links.wire.loss.p32: `p31` and `p32` are more than 1 together"), "{error}");
    assert!(error.contains("`p31` is 0.9"), "{error}");
    let error = refused("loss = { kind = \"markov\", p13 = 0.6, p14 = 0.5 }");
    assert!(error.contains("links.wire.loss.p14: `p13` and `p14` are more than 1 together"), "{error}");
    let error = refused("loss = { kind = \"gilbert-elliott\", r = 0.5 }");
    assert!(error.contains("links.wire.loss: the key `p` is missing"), "{error}");
    let error = refused("loss = { kind = \"gilbert-elliott\", p = 1.5 }");
    assert!(error.contains("links.wire.loss.p: out of range"), "{error}");
    let error = refused("loss = { kind = \"gilbert-elliott\", p = 0.5, p13 = 0.1 }");
    assert!(error.contains("`p13` is a key of `markov`"), "{error}");
}

#[test]
fn what_a_link_corrupts_crosses_the_rest_of_the_path_and_is_found_by_the_receiver() {
    let text = |corrupt: f64| {
        format!(
            "schema = 1\nrun.duration = \"60s\"\n\
             links.wire = {{ rate = \"10mbit\", delay = \"5ms\", corrupt = {corrupt:?} }}\n\
             links.far = {{ rate = \"10mbit\", delay = \"5ms\" }}\n\
             [[flows]]\nid = \"f\"\npath = [\"wire\", \"far\"]\nbytes = \"5MB\"\n"
        )
    };
    let run = |corrupt| {
        let scenario = Scenario::parse("scenario.toml", text(corrupt).as_bytes(), &[]).expect("a scenario");
        ackclock_sim::run(&scenario.spec(0), &mut |_| ControlFlow::Continue(())).expect("nobody interrupts")
    };
    let summary = run(0.02);
    let flow = &summary.flows[0];
    // The data came through, and was verified.
    assert_eq!((flow.progress.delivered_bytes, flow.completed_s.is_some()), (5_000_000, true));
    // Directions: wire forward and back, far forward and back. All that was corrupted was found.
    let corrupted: Vec<u64> = summary.links.iter().map(|link| link.corrupted).collect();
    assert_eq!((corrupted[2], corrupted[3]), (0, 0));
    assert_eq!(flow.checksum_errors, corrupted[0] + corrupted[1]);
    // Four standard deviations of a binomial number.
    let n = summary.links[0].packets.dequeued as f64;
    assert!((corrupted[0] as f64 - 0.02 * n).abs() < 4.0 * (n * 0.02 * 0.98).sqrt(), "{corrupted:?} of {n}");
    // The traffic continued over the second link, which lost nothing.
    assert_eq!(summary.links[0].packets.dequeued, summary.links[2].packets.offered);
    assert_eq!(summary.links[2].packets.dropped.get("link"), None);
    // The causes of the retransmissions.
    let reasons = &flow.retransmissions.by_queue["receiver"];
    assert!(flow.retransmissions.needed > 0);
    assert_eq!(reasons.get("checksum"), Some(&flow.retransmissions.needed), "{reasons:?}");

    // The counts are there where there is something to count.
    let keys = |corrupt| serde_json::to_string(&run(corrupt)).expect("numbers and names");
    for key in ["\"checksum_errors\"", "\"corrupted\""] {
        assert_eq!((keys(0.02).contains(key), keys(0.0).contains(key)), (true, false), "{key}");
    }
}

#[test]
fn nothing_arrives_of_which_everything_is_corrupted() {
    let text = text("delay = \"5ms\"\ncorrupt = 1\nreverse.corrupt = 0");
    let scenario = Scenario::parse("scenario.toml", text.as_bytes(), &[]).expect("a scenario");
    let summary = ackclock_sim::run(&scenario.spec(0), &mut |_| ControlFlow::Continue(())).expect("nobody interrupts");
    assert_eq!(summary.flows[0].progress.delivered_bytes, 0);
    // The SYN and its retransmissions; there is nobody to answer.
    assert!(summary.flows[0].checksum_errors >= 2);
    assert_eq!(summary.links[1].packets.offered, 0);
    assert!(refused("corrupt = 2").contains("links.wire.corrupt: out of range"));
}

#[test]
fn jitter_has_a_distribution_and_a_correlation() {
    let jitter =
        |keys: &str| read(keys).map(|impairments| (impairments.jitter_distribution, impairments.jitter_correlation));
    assert_eq!(jitter("jitter = \"5ms\""), [(JitterDistribution::Uniform, 0.0); 2]);
    for distribution in JitterDistribution::ALL {
        let keys = format!("jitter_distribution = \"{}\"\nreverse.jitter_correlation = 0.25", distribution.name());
        assert_eq!(jitter(&keys), [(distribution, 0.0), (distribution, 0.25)]);
    }
    let error = refused("jitter_distribution = \"pareto-normal\"");
    assert!(error.contains("links.wire.jitter_distribution: unknown distribution `pareto-normal`"), "{error}");
    assert!(error.contains("one of `uniform`, `normal`, `pareto`, `paretonormal`"), "{error}");
    assert!(refused("jitter_correlation = 1.5").contains("links.wire.jitter_correlation: out of range"));
}

#[test]
fn jitter_has_a_table_from_a_file() {
    let folder = Path::new(env!("CARGO_TARGET_TMPDIR")).join("jitter-table");
    fs::create_dir_all(&folder).unwrap();
    let load = |dist: &[u8], keys: &str| {
        fs::write(folder.join("a.dist"), dist).unwrap();
        let path = folder.join("scenario.toml");
        let text = text(&format!("delay = \"5ms\"\njitter = \"2ms\"\n{keys}")) + "host = \"rfc\"\n";
        fs::write(&path, text).unwrap();
        Scenario::load(&path, &[]).map_err(|error| match error {
            ackclock_scenario::LoadError::Scenario(error) => error.render(false),
            error => error.to_string(),
        })
    };
    let file = "jitter_distribution = { file = \"a.dist\" }";
    let scenario = load(b"-8192 -8192\n8192", file).unwrap();
    let table = Some(JitterTable::parse("-8192 -8192 8192").unwrap());
    let of = |scenario: &Scenario| {
        let link = scenario.spec(0).links[0].clone();
        [link.forward, link.reverse].map(|direction| direction.impairments.jitter_table)
    };
    // The way back has it as well, unless it says something else.
    assert_eq!(of(&scenario), [table.clone(), table.clone()]);
    let named = load(b"-8192 -8192\n8192", &format!("{file}\nreverse.jitter_distribution = \"normal\"")).unwrap();
    assert_eq!(of(&named), [table, None]);
    // Both ways 5 ms less 2 ms at the least, 1500 bytes in 1.2 ms and 52 in 41.6 us.
    let summary = ackclock_sim::run(&scenario.spec(0), &mut |_| ControlFlow::Continue(())).expect("nobody interrupts");
    let least = summary.flows[0].rtt_ms.min.expect("round trips");
    assert!((least - 7.2416).abs() < 1e-9, "{least}");
    for (dist, keys, found) in [
        (&b"1 2\n3 x"[..], file, "links.wire.jitter_distribution.file: line 2: `x` is no entry"),
        (b"", file, "links.wire.jitter_distribution.file: the table is empty"),
        (b"\xff", file, "it is not UTF-8"),
        (b"1", "jitter_distribution = { file = \"b.dist\" }", "links.wire.jitter_distribution.file: cannot read"),
        (b"1", "jitter_distribution = { }", "the key `file` is missing"),
        (b"1", "jitter_distribution = { file = \"a.dist\", mean = 1 }", "unknown key `mean`"),
    ] {
        let error = load(dist, keys).expect_err("nonsense");
        assert!(error.contains(found), "{keys}: {error}");
    }
}

#[test]
fn slots_limit_a_rate() {
    // 2500 packets a second from 0 s on, of which every 10 ms ten get through, ten of them at once
    // at the beginning.
    let text = text("delay = \"5ms\"\nslots = { delay = \"10ms\", packets = 10 }")
        .replace("rate = \"10mbit\"", "rate = \"unlimited\"")
        + "transport = \"udp\"\napplication = { kind = \"cbr\", rate = \"20mbit\", size = \"1000B\" }\n";
    let scenario = Scenario::parse("test.toml", text.as_bytes(), &[]).unwrap_or_else(|error| panic!("{error}"));
    let spec = scenario.spec(0);
    let summary = ackclock_sim::run(&spec, &mut |_| ControlFlow::Continue(())).expect("nobody interrupts");
    let sent = summary.links[0].packets.dequeued;
    assert!((4990..=5010).contains(&sent), "{sent}");
    let slots =
        |link: &ackclock_sim::spec::LinkSpec| [&link.forward, &link.reverse].map(|way| way.course.slots.clone());
    let [forward, reverse] = slots(&spec.links[0]);
    assert!(forward.is_some() && forward == reverse);
    let off = text.replace("slots =", "reverse.slots = false\nslots =");
    let scenario = Scenario::parse("test.toml", off.as_bytes(), &[]).unwrap_or_else(|error| panic!("{error}"));
    assert!(matches!(slots(&scenario.spec(0).links[0]), [Some(_), None]));
}

#[test]
fn slots_that_are_none() {
    for (keys, problem) in [
        ("slots = { packets = 10 }", "links.wire.slots: neither `delay` nor `jitter`"),
        ("slots = { delay = \"1ms\", packets = 0 }", "links.wire.slots.packets: "),
        ("slots = { delay = \"1ms\", bytes = \"0B\" }", "links.wire.slots.bytes: "),
        ("slots = { delay = \"-1ms\" }", "links.wire.slots.delay: "),
        ("slots = { delay = \"1ms\", size = 1 }", "links.wire.slots: unknown key `size`"),
        ("slots = true", "links.wire.slots: not the right type"),
        ("slots = { delay = \"1ms\" }\nburst = \"10kB\"", "links.wire: a token bucket (`burst`) has no slots"),
        (
            "slots = { delay = \"1ms\" }\nschedule = [{ at = \"1s\", delay = \"1ms\" }]",
            "links.wire: a link with `slots` does not change",
        ),
        ("slots = { delay = \"1ms\" }\nmedium = \"wifi\"", "a link with a shared medium has no slots"),
        (
            "slots = { delay = \"1ms\", jitter = \"1ms\", jitter_distribution = { file = \"none.dist\" } }",
            "links.wire.slots.jitter_distribution.file: cannot read",
        ),
    ] {
        let error = refused(keys);
        assert!(error.contains(problem), "{keys}: {error}");
    }
}

/// The buckets of both directions.
fn buckets(keys: &str) -> [Option<u32>; 2] {
    let scenario =
        Scenario::parse("scenario.toml", text(keys).as_bytes(), &[]).unwrap_or_else(|error| panic!("{error}"));
    let shown = Scenario::parse("shown.toml", scenario.resolved().as_bytes(), &[]).expect("what is shown is one");
    assert_eq!(scenario.spec(0).links, shown.spec(0).links);
    let link = scenario.spec(0).links.remove(0);
    [link.forward.burst, link.reverse.burst]
}

#[test]
fn the_bucket_of_an_htb_class_is_the_one_that_tc_gives_it() {
    assert_eq!(buckets("burst = \"htb\""), buckets("burst = \"1600B\""));
    assert_eq!(buckets("burst = \"htb\""), [Some(1600); 2]);
    // Each direction has that of its own rate: 1680 bytes at 10 Gbit/s (`link::burst`).
    assert_eq!(buckets("burst = \"htb\"\nreverse.rate = \"10gbit\""), [Some(1600), Some(1680)]);
    assert_eq!(buckets("burst = \"htb\"\nreverse = { rate = \"10gbit\", burst = \"9kB\" }"), [Some(1600), Some(9000)]);
    assert_eq!(buckets("burst = \"htb\"\nreverse.burst = false"), [Some(1600), None]);
    assert_eq!(buckets("burst = \"9kB\"\nreverse = { rate = \"10gbit\", burst = \"htb\" }"), [Some(9000), Some(1680)]);
    assert_eq!(buckets("burst = \"9kB\"\nreverse.rate = \"10gbit\""), [Some(9000); 2]);
}

#[test]
fn buckets_that_are_none() {
    let expected = "\"htb\", or `false`";
    for (keys, problem) in [
        ("burst = \"htp\"", "links.wire.burst: not a number with a unit"),
        ("burst = \"htp\"", "did you mean `htb`?"),
        ("burst = \"htp\"", expected),
        ("burst = 1600", expected),
        ("burst = \"1600\"", "links.wire.burst: the unit is missing"),
        ("burst = \"0B\"", "links.wire.burst: must not be zero"),
        ("burst = true", "links.wire.burst: not the right type"),
        ("reverse = { rate = \"unlimited\", burst = \"htb\" }", "an unlimited rate has no default burst"),
        ("burst = \"htb\"\nschedule = [{ at = \"1s\", delay = \"1ms\" }]", "a token bucket (`burst`) does not change"),
    ] {
        let error = refused(keys);
        assert!(error.contains(problem), "{keys}: {error}");
    }
}
