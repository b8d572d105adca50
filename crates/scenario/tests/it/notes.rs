//! The notes on a scenario that is valid, and may not be what was meant.

use ackclock_scenario::{Override, Scenario};

const MARKS: &str = r#"
schema = 1
[run]
duration = "1s"
[links.first]
rate = "100mbit"
[links.last]
rate = "10mbit"
queue = { kind = "codel", ecn = true }
[[flows]]
id = "f"
path = ["first", "last"]
cc = "dctcp"
[[workloads]]
id = "web"
path = ["last"]
cc = "cubic"
load = 0.1
size = "10kB"
"#;

fn notes_of(text: &str, set: &[&str]) -> Vec<String> {
    let set: Vec<Override> =
        set.iter().map(|text| Override { flag: "--set".to_owned(), text: (*text).to_owned() }).collect();
    Scenario::parse("test", text.as_bytes(), &set).unwrap_or_else(|error| panic!("{error}")).notes()
}

fn notes(set: &[&str]) -> Vec<String> {
    notes_of(MARKS, set)
}

#[test]
fn controllers_that_go_by_marks_want_a_queue_that_marks() {
    assert_eq!(notes(&[]), Vec::<String>::new());
    let note = |id: &str, cc: &str, queues: &str| {
        format!(
            "{id}: `{cc}` goes by ECN marks, and no queue on its way marks ({queues}): it reacts to losses alone; \
             `dualpi2` marks, and others do with `ecn = true`"
        )
    };
    let off = "links.last.queue.ecn=false";
    assert_eq!(notes(&[off]), [note("flows.f", "dctcp", "pfifo, codel")]);
    assert_eq!(notes(&[off, "flows.f.cc=prague"]), [note("flows.f", "prague", "pfifo, codel")]);
    assert_eq!(notes(&[off, "flows.f.cc=cubic"]), Vec::<String>::new());
    // A controller that takes over later, and the flows of a workload.
    let later = "flows.f.schedule=[{ at = \"500ms\", cc = \"dctcp\" }]";
    assert_eq!(
        notes(&[off, "flows.f.cc=cubic", "flows.f.ecn=dctcp", later]),
        [note("flows.f", "dctcp", "pfifo, codel")]
    );
    assert_eq!(
        notes(&["links.last.queue=pie", "flows.f.cc=cubic", "workloads.web.cc=dctcp"]),
        [note("workloads.web", "dctcp", "pie")]
    );
    // A threshold marks by itself, and a queue may begin to mark.
    assert_eq!(notes(&[off, "links.last.queue.ce_threshold=1ms"]), Vec::<String>::new());
    let begins = "links.last.schedule=[{ at = \"500ms\", queue = { ecn = true } }]";
    assert_eq!(notes(&[off, begins]), Vec::<String>::new());
    // Data against the direction of its path meets the other queue.
    assert_eq!(notes(&["flows.f.direction=reverse"]), Vec::<String>::new());
    let one_way = "links.last.reverse={ queue = \"pfifo\" }";
    assert_eq!(notes(&[one_way, "flows.f.direction=reverse"]), [note("flows.f", "dctcp", "pfifo, pfifo")]);
}

const SLOW: &str = r#"
schema = 1
[run]
duration = "1s"
[links.l]
rate = "1mbit"
delay = "20ms"
queue = { kind = "fq_codel" }
[[flows]]
id = "f"
path = ["l"]
host = "linux-6.1"
"#;

#[test]
fn queues_and_buffers_that_do_not_fit_are_told() {
    let notes = |set: &[&str]| notes_of(SLOW, set);
    let only = |set: &[&str], parts: &[&str]| {
        let found = notes(set);
        assert_eq!(found.len(), 1, "{set:?}: {found:?}");
        for part in parts {
            assert!(found[0].contains(part), "{set:?}: {found:?}");
        }
    };
    // 1514 bytes take 5.05 ms at 2.4 Mbit/s, and 4.84 ms at 2.5.
    only(&[], &["links.l", "12.1 ms at 1mbit", "`fq_codel`, 5.00 ms", "sparse", "18.2 ms"]);
    only(&["links.l.rate=2.4mbit"], &["5.05 ms"]);
    assert_eq!(notes(&["links.l.rate=2.5mbit"]), Vec::<String>::new());
    assert_eq!(notes(&["links.l.queue.target=18.2ms"]), Vec::<String>::new());
    only(&["links.l.queue=pie", "links.l.rate=500kbit"], &["24.2 ms", "`pie`, 15.0 ms"]);
    assert_eq!(notes(&["links.l.queue=pie"]), Vec::<String>::new());
    let red = |limit: &str| {
        format!("links.l.queue={{ kind = \"red\", min = \"20kB\", max = \"60kB\", limit = \"{limit}\" }}")
    };
    assert_eq!(notes(&[&red("80kB")]), Vec::<String>::new());
    only(&[&red("50kB")], &["full, with 50000 bytes", "`max`, 60000 bytes"]);
    only(&[&red("20kB")], &["nothing early", "20000 bytes"]);
    // 5000 bytes in 40 ms are 1 Mbit/s.
    let pfifo = "links.l.queue=pfifo";
    let buffer = |bytes: &str| format!("flows.f.receive_buffer={bytes}");
    assert_eq!(notes(&[pfifo, &buffer("5000B")]), Vec::<String>::new());
    only(&[pfifo, &buffer("4000B")], &["`receive_buffer`, 4000 bytes", "0.800 of 1.000 Mbit/s", "40.0 ms"]);
    assert_eq!(notes(&[pfifo, &buffer("4000B"), "flows.f.count=2"]), Vec::<String>::new());
    assert_eq!(notes(&[pfifo, &buffer("4000B"), "flows.f.bytes=10kB"]), Vec::<String>::new());
    only(&[pfifo, "flows.f.send_buffer=2000B"], &["`send_buffer`, 2000 bytes", "two segments of 1460"]);
    // The points of a sweep are told once.
    only(&["sweep.axes.\"links.l.delay\"=[\"1ms\", \"2ms\"]"], &["12.1 ms"]);
}
