//! What is said of a scenario that is valid, and may not be what was meant.

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

fn notes(set: &[&str]) -> Vec<String> {
    let set: Vec<Override> =
        set.iter().map(|text| Override { flag: "--set".to_owned(), text: (*text).to_owned() }).collect();
    Scenario::parse("test", MARKS.as_bytes(), &set).unwrap_or_else(|error| panic!("{error}")).notes()
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
