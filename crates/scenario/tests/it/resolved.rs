//! The resolved scenario is a scenario: it gives the same runs, and resolving it again changes
//! nothing.

use std::fs;
use std::path::Path;

use ackclock_scenario::Scenario;

fn parse(name: &str, text: &str) -> Scenario {
    Scenario::parse(name, text.as_bytes(), &[]).unwrap_or_else(|error| panic!("{error}\n{text}"))
}

fn holds(name: &str, text: &str) -> String {
    let first = parse(name, text);
    let resolved = first.resolved();
    let second = parse(name, &resolved);
    assert_eq!(first.runs(), second.runs(), "{resolved}");
    for run in 0..first.runs() {
        assert_eq!(first.spec(run), second.spec(run), "{resolved}");
        assert_eq!(first.params(run), second.params(run));
    }
    assert_eq!((first.checks(), first.title()), (second.checks(), second.title()));
    assert_eq!(second.resolved(), resolved);
    resolved
}

#[test]
fn every_scenario_of_the_project() {
    let folder = Path::new(env!("CARGO_MANIFEST_DIR")).join("../../scenarios");
    let mut files = 0;
    // Beside the folders there is an index of them.
    let folders = fs::read_dir(folder).unwrap().map(|entry| entry.unwrap().path()).filter(|path| path.is_dir());
    for folder in folders {
        for file in fs::read_dir(folder).unwrap() {
            let path = file.unwrap().path();
            if path.extension().is_some_and(|extension| extension == "toml") {
                holds(&path.display().to_string(), &fs::read_to_string(&path).unwrap());
                files += 1;
            }
        }
    }
    assert!(files >= 8, "{files}");
}

const BASE: &str = "schema = 1\n[run]\nduration = \"10s\"\n[links.a]\nrate = \"10mbit\"\n";

#[test]
fn a_sweep_over_hosts_leaves_their_knobs_open() {
    let text = format!(
        "{BASE}[[flows]]\nid = \"f\"\npath = [\"a\"]\nreceiver = \"windows-7\"\n[sweep]\n\
         axes.\"flows.f.host\" = [\"rfc\", \"freebsd-9.2\", \"linux-3.9\"]\n"
    );
    let resolved = holds("hosts", &text);
    assert!(resolved.contains("#   flows.0.dsack\n"), "{resolved}");
    assert!(resolved.contains("\nnagle = true\n"), "{resolved}");
}

#[test]
fn a_sweep_over_whole_tables_and_over_receivers() {
    let text = format!(
        "{BASE}[[flows]]\nid = \"f\"\npath = [\"a\"]\ncc = {{ newreno = {{ abc = false }} }}\n[sweep]\n\
         axes.\"links.a.queue\" = [\"pfifo\", {{ kind = \"pie\", ecn = true }}, {{ kind = \"pie\", target = \"1ms\" }}]\n\
         axes.\"flows.f.receiver.host\" = [\"linux-3.9\", \"smoltcp\"]\n\
         axes.\"flows.f.cc.kind\" = [\"newreno\", \"cubic\"]\n\
         axes.\"links.a.reverse.rate\" = [\"1mbit\", \"unlimited\"]\n"
    );
    holds("tables", &text);
}

#[test]
fn the_resolved_file_of_a_single_run() {
    let text =
        format!("title = \"odd \\\"title\\\"\"\n{BASE}[[flows]]\nid = \"f\"\npath = [\"a\"]\nhost = \"freebsd-9.2\"\n");
    insta::assert_snapshot!(holds("single", &text));
}

#[test]
fn every_queue_discipline_with_and_without_settings() {
    for queue in [
        "\"pfifo\"",
        "\"bfifo\"",
        "\"red\"",
        "\"blue\"",
        "\"sfb\"",
        "\"codel\"",
        "\"fq_codel\"",
        "\"cobalt\"",
        "\"pie\"",
        "\"fq_pie\"",
        "\"dualpi2\"",
        "{ kind = \"red\", limit = \"50kB\", min = \"8kB\", max = \"25kB\", burst = 50, adaptive = true, ecn = true }",
        "{ kind = \"red\", adaptive = { alpha = 0.02 }, floyd = { weight = 0.002, target_delay = \"5ms\", wait = false } }",
        "{ kind = \"red\", floyd = { weight = \"automatic\", gentle = false } }",
        "{ kind = \"blue\", limit = \"180p\", threshold = \"60p\", updates = \"separate\", ecn = true }",
        "{ kind = \"blue\", limit = \"50kB\", threshold = false }",
        "{ kind = \"sfb\", max = \"30p\", target = \"20p\", rehash = \"10s\" }",
        "{ kind = \"pie\", preset = \"teacup\", limit = \"180p\" }",
        "{ kind = \"pie\", dq_rate_estimator = \"rfc8033\" }",
        "{ kind = \"fq_codel\", control_law = \"rfc8289\", hash_seed = 7 }",
        "{ kind = \"red\", floyd = { mark_p = false }, adaptive = { bottom = \"automatic\" } }",
        "{ kind = \"cobalt\", ce_threshold = \"1ms\", p_inc = 0 }",
        "{ kind = \"curvy_red\", tshift = false, classic_weight = 0.1, s_c = -2 }",
        "{ kind = \"dualpi2\", step_thresh = \"5p\", drop_enqueue = true }",
    ] {
        let text = format!("{BASE}queue = {queue}\n[[flows]]\nid = \"f\"\npath = [\"a\"]\n");
        holds(queue, &text);
    }
}
