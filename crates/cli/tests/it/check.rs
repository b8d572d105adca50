//! `ackclock check`, and scenarios by position and from standard input.

use std::fs;
use std::io::Write;
use std::path::Path;
use std::process::Stdio;

use crate::common::{SMALL, Said, ackclock, folder, run, sweep};

fn said(folder: &Path, args: &[&str]) -> Said {
    ackclock().current_dir(folder).args(args).output().expect("the binary runs").into()
}

fn fed(folder: &Path, args: &[&str], input: &[u8]) -> Said {
    let mut command = ackclock();
    command.current_dir(folder).args(args);
    let mut child =
        command.stdin(Stdio::piped()).stdout(Stdio::piped()).stderr(Stdio::piped()).spawn().expect("the binary runs");
    child.stdin.take().expect("it is piped").write_all(input).expect("it reads all of it");
    child.wait_with_output().expect("it ends").into()
}

#[test]
fn what_is_valid_prints_nothing_and_what_is_not_is_said_file_by_file() {
    let folder = folder("check_files");
    fs::write(folder.join("good.toml"), SMALL).unwrap();
    fs::write(folder.join("bad.toml"), SMALL.replace("\"5ms\"", "5")).unwrap();
    fs::write(folder.join("worse.toml"), SMALL.replace("delay", "dealy")).unwrap();
    let good = said(&folder, &["check", "good.toml", "good.toml"]);
    assert_eq!((good.status, good.out.as_str(), good.err.as_str()), (0, "", ""));
    let bad = said(&folder, &["check", "-v", "bad.toml", "good.toml", "none.toml", "worse.toml"]);
    assert_eq!(bad.status, 2);
    assert!(bad.out.starts_with("good.toml: ") && bad.out.lines().count() == 1, "{}", bad.out);
    for error in [
        "error: links.wire.delay: the unit is missing\n --> bad.toml:9:9",
        "error: cannot read none.toml: ",
        "error: links.wire: unknown key `dealy`\n --> worse.toml:9:1",
    ] {
        assert!(bad.err.contains(error), "{error}: {}", bad.err);
    }
    // Overrides as for a run, and no file is made.
    let set = said(&folder, &["check", "good.toml", "--set", "links.wire.delay=5"]);
    assert_eq!(set.status, 2);
    assert!(set.err.contains("links.wire.delay"), "{}", set.err);
    assert_eq!(fs::read_dir(&folder).unwrap().count(), 3);
    assert_eq!(said(&folder, &["check"]).status, 2);
}

#[test]
fn the_line_of_a_scenario_has_its_size() {
    let folder = folder("check_line");
    fs::write(folder.join("small.toml"), SMALL).unwrap();
    fs::write(folder.join("sweep.toml"), sweep().replace("repeat = 2", "repeat = 2\naxes.\"flows.f.count\" = [1, 4]"))
        .unwrap();
    let said = said(&folder, &["check", "--verbose", "small.toml", "sweep.toml"]);
    assert_eq!((said.status, said.err.as_str()), (0, ""));
    let lines: Vec<Vec<&str>> =
        said.out.lines().map(|line| line.split_once(": ").unwrap().1.split(", ").collect()).collect();
    assert_eq!(lines[0][..4], ["1 point", "1 run", "1 flow", "1 link"]);
    // Three delays by two counts, each twice; the larger count is four.
    assert_eq!(lines[1][..4], ["6 points", "12 runs", "4 flows", "1 link"]);
    // 100 kB in full packets of 1500 bytes; half of the points have one flow and half have four.
    assert_eq!(lines[0][4], "67 packets");
    assert_eq!(lines[1][4], "2000 packets");
    assert!(lines.iter().all(|line| line[5].starts_with("up to ") && line[5].ends_with(" MiB a run")), "{}", said.out);
}

#[test]
fn notes_name_the_file() {
    let scenario = concat!(env!("CARGO_MANIFEST_DIR"), "/../../scenarios/live/iperf3-pie.toml");
    let folder = folder("check_notes");
    let said = said(&folder, &["check", scenario, "--set", "run.clock=virtual"]);
    assert_eq!((said.status, said.out.as_str()), (0, ""));
    assert!(said.err.starts_with(&format!("note: {scenario}: ")), "{}", said.err);
}

#[test]
fn standard_input_is_a_scenario() {
    let folder = folder("check_stdin");
    let bad = fed(&folder, &["check", "-"], SMALL.replace("\"5ms\"", "5").as_bytes());
    assert_eq!(bad.status, 2);
    assert!(bad.err.contains("--> <stdin>:9:9"), "{}", bad.err);
    assert_eq!(fed(&folder, &["check", "-"], SMALL.as_bytes()).status, 0);
    assert_eq!(fed(&folder, &["check", "-"], b"\xff").status, 2);
    let twice = fed(&folder, &["check", "-", "-"], b"");
    assert!(twice.status == 2 && twice.err.contains("given twice"), "{}", twice.err);
    // The results from a file, by position, and from a stream are the same; files are found from
    // here.
    let traced = SMALL.replace("rate = \"10mbit\"", "trace = { file = \"below/link.trace\", format = \"mahimahi\" }");
    fs::create_dir(folder.join("below")).unwrap();
    fs::write(folder.join("below/link.trace"), "1\n2\n3\n").unwrap();
    let by_option = run(&folder, &traced, &["--json"]);
    assert_eq!(by_option.status, 0, "{}", by_option.err);
    let by_position = said(&folder, &["scenario.toml", "--json"]);
    let by_stream = fed(&folder, &["--json", "-"], traced.as_bytes());
    assert_eq!((by_position.out, by_position.status), (by_option.out.clone(), 0));
    assert_eq!((by_stream.out, by_stream.status), (by_option.out.clone(), 0));
    assert_eq!(fed(&folder, &["--json", "--scenario", "-"], traced.as_bytes()).out, by_option.out);
}

#[test]
fn one_scenario_is_needed_and_a_misspelt_command_is_said() {
    let folder = folder("check_one");
    fs::write(folder.join("small.toml"), SMALL).unwrap();
    for args in [&["small.toml", "--scenario", "small.toml"][..], &["--json"], &[], &["small.toml", "small.toml"]] {
        let said = said(&folder, args);
        assert_eq!((said.status, said.out.as_str()), (2, ""), "{args:?}");
        assert!(said.err.starts_with("error: "), "{args:?}: {}", said.err);
    }
    for args in [&["chekc"][..], &["chekc", "small.toml"]] {
        let said = said(&folder, args);
        assert_eq!((said.status, said.err.as_str()), (2, "error: no command `chekc`; did you mean `check`?\n"));
    }
}
