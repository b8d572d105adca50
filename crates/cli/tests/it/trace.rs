//! `ackclock trace`: what it writes is what scenarios read, and the traces of the gallery are its.

use std::fs;

use crate::common::{Said, ackclock, folder, run};

fn trace(args: &[&str]) -> Said {
    ackclock().arg("trace").args(args).output().expect("the binary runs").into()
}

fn refused(args: &[&str]) -> String {
    let said = trace(args);
    assert_eq!((said.status, said.out.as_str()), (2, ""), "{}", said.err);
    said.err.trim_end().to_owned()
}

const LINK: &str = "schema = 1\n[run]\nduration = \"20s\"\n[links.wire]\nLINK\nreverse = { rate = \"1gbit\", schedule = [] }\n\
                    [[flows]]\nid = \"f\"\ncc = \"cubic\"\npath = [\"wire\"]\n";

/// The rate of the link of a scenario with these keys, beside a file.
fn rate(name: &str, file: &str, keys: &str) -> f64 {
    let folder = folder(name);
    fs::create_dir_all(&folder).unwrap();
    fs::write(folder.join("a.trace"), file).unwrap();
    let said = run(&folder, LINK.replace("LINK", keys), &["--json"]);
    assert_eq!(said.status, 0, "{}", said.err);
    let summary: serde_json::Value = serde_json::from_str(&said.out).unwrap();
    summary["links"][0]["rate_bps"].as_f64().unwrap()
}

#[test]
fn every_notation_is_read_by_scenarios() {
    let draw = |format: &str| {
        let said =
            trace(&["satellite", "--seed", "3", "--duration", "20s", "--rates", "2mbit,8mbit", "--format", format]);
        assert_eq!((said.status, said.err.as_str()), (0, ""));
        said.out
    };
    let of_rates = rate("notation_rates", &draw("rates"), "trace = { file = \"a.trace\", format = \"rates\" }");
    let of_path = rate("notation_path", &draw("path"), "trace = { file = \"a.trace\", format = \"path\" }");
    let of_schedule =
        rate("notation_schedule", "", &format!("rate = \"1mbit\"\ndelay = \"1ms\"\n{}", draw("schedule")));
    let of_opportunities = rate("notation_mahimahi", &draw("mahimahi"), "trace = { file = \"a.trace\" }");
    // The rates are those of the schedule. The part of an opportunity that is left at the end is
    // missing, 12 kbit of 20 s; the last one, at the very end of the run, may not count.
    assert_eq!(of_rates, of_schedule);
    assert_eq!(of_path, of_schedule);
    assert!((of_rates - of_opportunities).abs() <= 2.0 * 12_032.0 / 20.0, "{of_rates} {of_opportunities}");
}

#[test]
fn a_seed_gives_the_same_file_again() {
    let folder = folder("trace_seed");
    fs::create_dir_all(&folder).unwrap();
    let path = folder.join("lte.trace");
    let path = path.to_str().unwrap();
    let said = trace(&["lte", "--seed", "7", "--duration", "2s", "-o", path]);
    assert_eq!((said.status, said.out.as_str(), said.err.as_str()), (0, "", ""));
    let written = fs::read_to_string(path).unwrap();
    assert_eq!(written, trace(&["lte", "--seed", "7", "--duration", "2s"]).out);
    assert_ne!(written, trace(&["lte", "--seed", "8", "--duration", "2s"]).out);
    assert_eq!(written.lines().last(), Some("2000"));
}

#[test]
fn bad_flags_are_refused() {
    insta::assert_snapshot!(refused(&["lte", "--duration", "2h"]), @"error: --duration 2h: expected whole milliseconds, from 1ms to 3600s");
    insta::assert_snapshot!(refused(&["lte", "--duration", "1500us"]), @"error: --duration 1500us: expected whole milliseconds, from 1ms to 3600s");
    insta::assert_snapshot!(refused(&["lte", "--max", "0mbit"]), @"error: --max 0mbit: must not be zero");
    insta::assert_snapshot!(refused(&["lte", "--max", "1tbit"]), @"error: the trace would have about 4986702128 lines; expected at most 5000000, with a shorter --duration");
    insta::assert_snapshot!(refused(&["markov", "--hold", "0s"]), @"error: --hold 0s: must not be zero");
    insta::assert_snapshot!(refused(&["markov", "--hold", "1s,2s"]), @"error: --hold: found 2 times for 3 rates; expected one for all, or one for each");
    insta::assert_snapshot!(refused(&["markov", "--hold", "1ns", "--format", "rates"]), @"error: the trace would have about 60000000000 lines; expected at most 5000000, with a shorter --duration");
    insta::assert_snapshot!(refused(&["markov", "--hold", "1ms", "--format", "schedule"]), @"error: a schedule has at most 10000 changes; expected a shorter --duration or --format rates");
    insta::assert_snapshot!(refused(&["satellite", "--rates", "5mbit"]), @"error: --rates: expected the lowest and the highest rate, such as 50mbit,150mbit");
    insta::assert_snapshot!(refused(&["satellite", "--rates", "5mbit,2mbit"]), @"error: --rates: 5mbit is higher than 2mbit; expected the lowest rate first");
    insta::assert_snapshot!(refused(&["satellite", "--delays", "5ms,2ms"]), @"error: --delays: 5ms is longer than 2ms; expected the shortest delay first");
    insta::assert_snapshot!(refused(&["satellite", "--gap", "15s"]), @"error: --gap 15s: expected less than 15s, after which there is another handover");
    let missing = folder("trace_missing").join("missing").join("a.trace");
    let said = refused(&["lte", "-o", missing.to_str().unwrap()]);
    assert!(said.starts_with("error: --output: cannot write "), "{said}");
}

/// The gallery's folder of traces.
const CELLULAR: &str = concat!(env!("CARGO_MANIFEST_DIR"), "/../../scenarios/cellular");

#[test]
fn the_traces_of_the_gallery_are_those_that_its_readme_names() {
    let readme = fs::read_to_string(format!("{CELLULAR}/README.md")).unwrap();
    let mut files = 0;
    for row in readme.lines().filter(|line| line.starts_with("| `") && line.contains("`ackclock trace ")) {
        let cells: Vec<&str> = row.split('|').map(|cell| cell.trim().trim_matches('`')).collect();
        let args: Vec<&str> = cells[3].split_whitespace().skip(2).collect();
        let said = trace(&args);
        assert_eq!(said.status, 0, "{}: {}", cells[3], said.err);
        assert!(said.out == fs::read_to_string(format!("{CELLULAR}/{}", cells[1])).unwrap(), "{}", cells[1]);
        files += 1;
    }
    assert_eq!(files, 3);
}

#[test]
fn a_trace_can_take_the_place_of_another_on_the_command_line() {
    // In 30 s: the sum of all rates times their lengths; two satellites of 15 and 14.9 s,
    // (18581059 * 15 + 22434396 * 14.9) / 30.
    for (file, mean) in [("markov", 4485333.0), ("satellite", 20_432_946.2)] {
        let other = format!("links.cell.trace={{ file = \"{file}.trace\", format = \"rates\" }}");
        let scenario = format!("{CELLULAR}/lte.toml");
        let one = ["--set", "flows.f.cc=cubic", "--set", "links.cell.queue=pfifo", "--json"];
        let output = ackclock().args(["--scenario", &scenario, "--set", &other]).args(one).output();
        let said = Said::from(output.expect("the binary runs"));
        let summary: serde_json::Value = serde_json::from_str(&said.out).unwrap();
        let rate = summary["links"][0]["rate_bps"].as_f64().unwrap();
        assert!((rate - mean).abs() < 1.0, "{file}: {rate}");
    }
}
