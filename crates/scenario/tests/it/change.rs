//! Changes of a run while it goes on, and the present values of what can be changed.

use std::fs;
use std::path::Path;
use std::sync::LazyLock;

use ackclock_aqm::CodelConfig;
use ackclock_emulator::{Change, Up};
use ackclock_scenario::{Own, Scenario};
use ackclock_sim::DirectionId;
use ackclock_sim::spec::QueueSpec;
use ackclock_units::{Rate, Span, Time};

const LINKS: &str = r#"
schema = 1
run.duration = "10s"

[links.bottleneck]
rate = "10mbit"
delay = "20ms"
queue = { kind = "fq_codel", target = "10ms" }
reverse = { rate = "1mbit", queue = "pfifo" }
schedule = [{ at = "2s", delay = "40ms", until = "4s" }]

[links.bucket]
rate = "10mbit"
burst = "10kB"
reverse = { burst = false }

[links.slotted]
rate = "10mbit"
slots = { delay = "1ms", packets = 4 }
reverse = { slots = false }

[links.shared]
rate = "10mbit"
medium = "wifi"

[links.lte]
trace = { file = "lte.trace", format = "rates" }

[[flows]]
id = "a"
path = ["bottleneck"]
"#;

fn scenario() -> &'static Scenario {
    static READ: LazyLock<Scenario> = LazyLock::new(|| {
        let folder = Path::new(env!("CARGO_TARGET_TMPDIR")).join("change");
        fs::create_dir_all(&folder).unwrap();
        fs::write(folder.join("lte.trace"), "0ms 10mbit\n5ms 5mbit\n10ms 5mbit\n").unwrap();
        let scenario = Scenario::parse_in(&folder, "links.toml", LINKS.as_bytes(), &[], Own::NONE);
        scenario.unwrap_or_else(|error| panic!("{}", error.render(false)))
    });
    &READ
}

fn change(texts: &[&str]) -> Result<Vec<(DirectionId, Change)>, String> {
    scenario().change(0, texts, Time::from_secs(3), &[]).map_err(|error| error.on_a_line())
}

fn at(seconds: u64) -> Change {
    Change { at: Time::from_secs(seconds), ..Change::default() }
}

const BOTH: [DirectionId; 2] = [DirectionId::forward(0), DirectionId::reverse(0)];

#[test]
fn a_key_of_a_link_is_that_of_both_directions() {
    let slower = Change { rate: Some(Rate::from_bps(5_000_000)), ..at(3) };
    assert_eq!(change(&["links.bottleneck.rate=5mbit"]).unwrap(), BOTH.map(|of| (of, slower.clone())));
    assert_eq!(change(&["links.bottleneck.reverse.rate=5mbit"]).unwrap(), [(BOTH[1], slower)]);
    let unlimited = Change { rate: Some(None), ..at(3) };
    assert_eq!(change(&["links.bottleneck.forward.rate=unlimited"]).unwrap(), [(BOTH[0], unlimited)]);
}

#[test]
fn several_keys_are_one_change() {
    let texts = [
        "links.bottleneck.forward.up=false",
        "links.bottleneck.forward.drop=true",
        "links.bottleneck.delay = \"5ms\"",
        "links.bottleneck.reverse.loss=0.25",
    ];
    let delay = Some(Span::from_millis(5));
    let expected = [
        (BOTH[0], Change { up: Some(Up::Loses), delay, ..at(3) }),
        (BOTH[1], Change { loss: Some(0.25), delay, ..at(3) }),
    ];
    assert_eq!(change(&texts).unwrap(), expected);
    let ramp = ["links.bottleneck.forward.rate=20mbit", "links.bottleneck.forward.until=5s"];
    let expected = Change { rate: Some(Rate::from_bps(20_000_000)), until: Some(Time::from_secs(5)), ..at(3) };
    assert_eq!(change(&ramp).unwrap(), [(BOTH[0], expected)]);
}

#[test]
fn a_parameter_of_a_queue_leaves_the_others() {
    let changes = change(&["links.bottleneck.forward.queue.limit=77p"]).unwrap();
    let [(_, Change { queue: Some(queue), .. })] = &changes[..] else { panic!("{changes:?}") };
    let shown = format!("{queue:?}");
    assert!(shown.contains("77") && shown.contains("target: 10ms"), "{shown}");
    // 50 ms at the rate of that moment: 25 Mbit/s once it is that.
    let made = [(BOTH[1], Change { rate: Some(Rate::from_bps(24_000_000)), ..at(1) })];
    let read = |made| scenario().change(0, &["links.bottleneck.reverse.queue.limit=50ms"], Time::from_secs(3), made);
    let [before, after] = [read(&[]), read(&made)].map(|changes| format!("{:?}", changes.unwrap()[0].1.queue));
    // 1 Mbit/s: 6250 bytes, 5 packets of 1500; 24 Mbit/s: 100.
    assert!(before.contains("Packets(5)") && after.contains("Packets(100)"), "{before} {after}");
}

#[test]
fn a_queue_may_become_another_one() {
    let queue = |changes: Vec<(DirectionId, Change)>| changes[0].1.queue.clone().expect("a queue");
    let [forward, back] = &change(&["links.bottleneck.queue=pie"]).unwrap()[..] else { panic!("both") };
    assert_eq!((forward.1.queue.clone(), back.1.queue.clone()), (QueueSpec::by_name("pie"), QueueSpec::by_name("pie")));
    // With parameters beside it; the others are those of the new one.
    let with = ["links.bottleneck.forward.queue=codel", "links.bottleneck.forward.queue.target=7ms"];
    let QueueSpec::Codel(codel) = queue(change(&with).unwrap()) else { panic!("CoDel") };
    assert_eq!(codel, CodelConfig { target: Span::from_millis(7), ..CodelConfig::default() });
    // A change of the same discipline keeps the parameters that are not given.
    let same = ["links.bottleneck.forward.queue.kind=fq_codel", "links.bottleneck.forward.queue.limit=77p"];
    let QueueSpec::FqCodel(fair) = queue(change(&same).unwrap()) else { panic!("fq_codel") };
    assert_eq!((fair.target, fair.limit), (Span::from_millis(10), 77));
    // A later change is of the new discipline, also in the parameters that it leaves alone.
    let made = change(&with).unwrap().into_iter().map(|(of, change)| (of, Change { at: Time::from_secs(1), ..change }));
    let made: Vec<_> = made.collect();
    let later = |text: &str| scenario().change(0, &[text], Time::from_secs(3), &made);
    let QueueSpec::Codel(codel) = queue(later("links.bottleneck.forward.queue.interval=50ms").unwrap()) else {
        panic!()
    };
    assert_eq!((codel.target, codel.interval), (Span::from_millis(7), Span::from_millis(50)));
    let error = later("links.bottleneck.forward.queue.flows=5").unwrap_err().on_a_line();
    assert!(error.contains("`codel` has no key `flows`"), "{error}");
}

#[test]
fn what_is_wrong_is_said_on_a_line() {
    let cases: &[(&[&str], &[&str])] = &[
        (&["links.bottleneck.rate"], &["not an override", "KEY=VALUE, such as links.bottleneck.rate=5mbit"]),
        (&["flows.a.cc=cubic"], &["`flows.a.cc` cannot be changed while the run goes on", "links.NAME.KEY"]),
        (&["links.botleneck.rate=5mbit"], &["no link `botleneck`", "the links are `bottleneck`", "did you mean"]),
        (&["links.bottleneck.rat=5mbit"], &["links.bottleneck: unknown key `rat`", "`until`, `rate`, `delay`"]),
        (&["links.bottleneck.at=5s"], &["nothing changes", "`rate`, `delay`"]),
        (&["links..rate=5mbit"], &["there is no link ``"]),
        (&["links.bottleneck=1"], &["cannot be changed"]),
        (&["links.bottleneck.rate=5"], &["links.bottleneck.rate", "a rate with its unit, such as \"10mbit\""]),
        (&["links.bottleneck.loss=2"], &["links.bottleneck.loss", "0", "1"]),
        (&["links.bottleneck.until=5s"], &["only rate and delay change little by little"]),
        (&["links.bottleneck.delay=1ms", "links.bottleneck.until=3s"], &["not after 3s"]),
        (&["links.bottleneck.drop=true"], &["`up = false` beside it"]),
        (&["links.bottleneck.queue=pi"], &["unknown queue discipline", "`pie`"]),
        (&["links.bottleneck.queue=3"], &["links.bottleneck.queue", "a name (`pfifo`"]),
        (
            &["links.bottleneck.queue=pie", "links.bottleneck.queue.quantum=5B"],
            &["`pie` has no key `quantum`", "`fq_codel`"],
        ),
        (
            &["links.bottleneck.forward.queue=pie", "links.bottleneck.forward.queue.target=0s"],
            &["queue.target", "must not be zero"],
        ),
        (&["links.bottleneck.jitter=5"], &["links.bottleneck.jitter", "a time"]),
        (
            &["links.bottleneck.jitter=5ms", "links.bottleneck.until=5s"],
            &["only rate and delay change little by little"],
        ),
        (&["links.bottleneck.forward.queue.limmit=5p"], &["`fq_codel` has no key `limmit`", "did you mean `limit`"]),
        (&["links.bottleneck.forward.queue.flows=5"], &["`fq_codel` changes while it is in use"]),
        (&["links.bucket.rate=5mbit"], &["links.bucket: a token bucket (`burst`) does not change", "burst = false"]),
        (&["links.slotted.forward.up=false"], &["links.slotted.forward: a link with `slots` does not change"]),
        (&["links.shared.rate=5mbit"], &["a link with a shared medium cannot change by a schedule"]),
        (&["links.lte.rate=5mbit"], &["links.lte.rate: the rate is that of the trace"]),
        (&["links.lte.delay=5ms", "links.bottleneck.rate=x"], &["links.bottleneck.rate"]),
    ];
    for (texts, parts) in cases {
        let error = change(texts).expect_err(&format!("{texts:?}"));
        for part in *parts {
            assert!(error.contains(part), "{texts:?}: no `{part}` in: {error}");
        }
        assert!(!error.contains('\n'), "{error}");
    }
    // The directions of which nothing is said may be as they are.
    assert!(change(&["links.bucket.reverse.rate=5mbit", "links.lte.delay=5ms"]).is_ok());
}

#[test]
fn values_are_those_of_the_moment() {
    let scenario = scenario();
    let value = |seconds: u64, made: &[(DirectionId, Change)], key: &str| {
        let all = scenario.changeable(0, Time::from_secs(seconds), made).unwrap();
        all.into_iter().find(|(known, _)| known == key).map(|(_, value)| value)
    };
    let get = |seconds: u64, made: &[(DirectionId, Change)], key: &str| {
        value(seconds, made, key).unwrap_or_else(|| panic!("no {key}"))
    };
    // A ramp of the delay from 20 ms at 2 s to 40 ms at 4 s.
    for (seconds, delay) in [(1, "20ms"), (2, "20ms"), (3, "30ms"), (4, "40ms"), (9, "40ms")] {
        assert_eq!(get(seconds, &[], "links.bottleneck.forward.delay"), delay);
    }
    let made = [(
        BOTH[0],
        Change {
            rate: Some(None),
            delay: Some(Span::ZERO),
            jitter: Some(Span::from_millis(3)),
            loss: Some(0.5),
            up: Some(Up::Holds),
            ..at(3)
        },
    )];
    for (key, before, after) in [
        ("rate", "10mbit", "unlimited"),
        ("delay", "20ms", "0s"),
        ("jitter", "0s", "3ms"),
        ("loss", "0.0", "0.5"),
        ("up", "true", "false"),
        ("queue.kind", "fq_codel", "fq_codel"),
        ("queue.target", "10ms", "10ms"),
    ] {
        let key = format!("links.bottleneck.forward.{key}");
        assert_eq!([get(2, &made, &key), get(5, &made, &key)], [before, after], "{key}");
    }
    assert_eq!(get(5, &made, "links.bottleneck.reverse.rate"), "1mbit");
    // Keys that cannot be changed are not listed.
    assert_eq!(value(1, &[], "links.lte.forward.rate"), None);
    assert_eq!(value(1, &[], "links.bucket.forward.rate"), None);
    assert_eq!(value(1, &[], "links.shared.forward.rate"), None);
    assert_eq!(get(1, &[], "links.bucket.reverse.rate"), "10mbit");
}

/// Listed keys can be set to the value that they have, but for models of loss.
#[test]
fn what_is_listed_can_be_set() {
    let scenario = scenario();
    let now = Time::from_secs(3);
    let mut set = 0;
    for (key, value) in scenario.changeable(0, now, &[]).unwrap() {
        let text = format!("{key}={value}");
        match scenario.change(0, &[&text], now, &[]) {
            Ok(changes) => {
                assert_eq!(
                    scenario.changeable(0, now, &changes).unwrap(),
                    scenario.changeable(0, now, &[]).unwrap(),
                    "{text}"
                );
                set += 1;
            }
            Err(error) => panic!("{text}: {}", error.on_a_line()),
        }
    }
    assert!(set > 30, "{set}");
}
