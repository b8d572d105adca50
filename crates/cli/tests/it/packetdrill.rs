//! `ackclock packetdrill`: what it prints, what it writes and how it ends.

use std::fs;
use std::io::{BufRead, BufReader};
use std::path::Path;
use std::process::Stdio;

use crate::common::{Said, ackclock, folder};
use quick_xml::Reader;
use quick_xml::events::Event;
use serde_json::Value;

/// A connection is opened and 1000 bytes are acknowledged.
const GOOD: &str = "\
0 socket(..., SOCK_STREAM, IPPROTO_TCP) = 3
+0 bind(3, ..., ...) = 0
+0 listen(3, 1) = 0
+0 < S 0:0(0) win 65535 <mss 1460>
+0 > S. 0:0(0) ack 1 <mss 1460>
+.1 < . 1:1(0) ack 1 win 65535
+0 accept(3, ..., ...) = 4
+.1 < P. 1:1001(1000) ack 1 win 65535
+0 > . 1:1(0) ack 1001
";

/// The acknowledgment is expected one byte too far.
fn failing() -> String {
    GOOD.replace("ack 1001", "ack 1002")
}

fn drill(folder: &Path, args: &[&str]) -> Said {
    let output = ackclock().current_dir(folder).arg("packetdrill").args(args).output();
    output.expect("the binary runs").into()
}

/// A folder with scripts.
fn with(name: &str, scripts: &[(&str, &str)]) -> std::path::PathBuf {
    let folder = folder(name);
    for (name, text) in scripts {
        let path = folder.join(name);
        fs::create_dir_all(path.parent().expect("a folder")).expect("the target directory is writable");
        fs::write(path, text).expect("a script can be written");
    }
    folder
}

#[test]
fn a_script_that_passes_is_a_line() {
    let said = drill(&with("drill_passes", &[("good.pkt", GOOD)]), &["good.pkt"]);
    assert_eq!((said.status, said.err.as_str()), (0, ""), "{}", said.out);
    assert_eq!(said.out, "ok   good.pkt (0.200 s)\n1 script: 1 passed\n");
}

#[test]
fn a_failure_is_reported_with_what_was_expected_and_what_came() {
    let said = drill(&with("drill_fails", &[("bad.pkt", &failing())]), &["bad.pkt"]);
    assert_eq!((said.status, said.err.as_str()), (1, ""));
    // The endpoint's window is not the matter of this test.
    let is_ours = |line: &&str| line.contains("actual: ") || line.contains("  > ");
    let without_windows: Vec<String> = said
        .out
        .lines()
        .map(|line| match line.split_once(" win ").filter(|_| is_ours(&line)) {
            Some((before, after)) => format!("{before}{}", after.trim_start_matches(|c: char| c.is_ascii_digit())),
            None => line.to_owned(),
        })
        .collect();
    let without_windows = without_windows.join("\n");
    insta::assert_snapshot!(without_windows, @r"
    FAIL bad.pkt:9: ack: expected 1002, got 1001
        expected: . 1:1(0) ack 1002
          actual: . 1:1(0) ack 1001

            2      0.000000  bind(3, ..., ...) = 0
            3      0.000000  listen(3, 1) = 0
            4      0.000000  < S 0:0(0) win 65535 <mss 1460>
            5      0.000000  > S. 0:0(0) ack 1 <mss 1460>
            6      0.100000  < . 1:1(0) ack 1 win 65535
            7      0.100000  accept(3, ..., ...) = 4
            8      0.200000  < P. 1:1001(1000) ack 1 win 65535
            9      0.200000  > . 1:1(0) ack 1001

    1 script: 0 passed, 1 failed
    ");
}

#[test]
fn a_mistake_of_syntax_has_line_column_and_caret() {
    let text = GOOD.replace("listen(3, 1) = 0", "listen(3, 1 = 0");
    let said = drill(&with("drill_syntax", &[("broken.pkt", &text)]), &["broken.pkt"]);
    assert_eq!((said.status, said.err.as_str()), (2, ""));
    insta::assert_snapshot!(said.out, @r"
    ERROR broken.pkt:3:16: a list that does not end
         --> broken.pkt:3:16
          |
        3 | +0 listen(3, 1 = 0
          |                ^ expected `,` or `)`, found `=`

    1 script: 0 passed, 1 in error
    ");
}

#[test]
fn what_is_not_supported_has_not_passed() {
    let text = format!("{GOOD}+0 mmap(0, 1000, PROT_READ, MAP_SHARED, 4, 0) = 1\n");
    let said = drill(&with("drill_unsupported", &[("mmap.pkt", &text)]), &["mmap.pkt"]);
    assert_eq!(said.status, 1, "{}", said.out);
    assert!(said.out.starts_with("UNSUPPORTED mmap.pkt:10: "), "{}", said.out);
    assert!(said.out.ends_with("\n1 script: 0 passed, 1 unsupported\n"), "{}", said.out);
}

#[test]
fn shell_lines_that_are_not_run_are_counted() {
    let text = format!("`ip link set tun0 up`\n{GOOD}+0 `rm -rf /tmp/results`\n");
    let said = drill(&with("drill_shell", &[("shell.pkt", &text)]), &["shell.pkt"]);
    assert_eq!(said.status, 0, "{}", said.out);
    assert_eq!(
        said.out,
        "ok   shell.pkt (0.200 s; 2 shell lines not run: 1, 11)\n1 script: 1 passed; of 1 some shell lines were not run\n"
    );
}

#[test]
fn a_file_that_cannot_be_read_does_not_keep_others_from_running() {
    let folder = with("drill_missing", &[("good.pkt", GOOD)]);
    fs::write(folder.join("latin.pkt"), b"// na\xefve\n0 close(3) = 0\n").unwrap();
    fs::create_dir(folder.join("empty")).unwrap();
    let said = drill(&folder, &["none.pkt", "latin.pkt", "empty", "good.pkt"]);
    assert_eq!(said.status, 2);
    let lines: Vec<&str> = said.out.lines().collect();
    assert!(lines[0].starts_with("ERROR none.pkt: cannot be read: "), "{}", said.out);
    assert_eq!(lines[1], "ERROR latin.pkt:1:6: the file is not UTF-8");
    assert_eq!(lines[2], "ERROR empty: the directory has no *.pkt below it");
    assert_eq!(lines[3], "ok   good.pkt (0.200 s)");
    assert_eq!(lines[4], "4 scripts: 1 passed, 3 in error");
}

#[test]
fn a_directory_means_the_scripts_below_it_by_name() {
    let scripts =
        [("d/b/2.pkt", GOOD), ("d/b/10.pkt", GOOD), ("d/a.pkt", GOOD), ("d/c.txt", "no script"), ("e.pkt", GOOD)];
    let said = drill(&with("drill_directory", &scripts), &["e.pkt", "d"]);
    let names: Vec<&str> = said.out.lines().filter_map(|line| line.strip_prefix("ok   ")?.split(' ').next()).collect();
    assert_eq!(names, ["e.pkt", "d/a.pkt", "d/b/10.pkt", "d/b/2.pkt"]);
    assert_eq!(said.status, 0);
}

#[cfg(unix)]
#[test]
fn a_directory_that_links_to_itself_ends() {
    let folder = with("drill_loop", &[("d/a.pkt", GOOD)]);
    std::os::unix::fs::symlink("..", folder.join("d/up")).unwrap();
    let said = drill(&folder, &["d"]);
    assert_eq!(said.status, 2, "{}", said.out);
    assert!(said.out.contains("it is a link to a directory that it is in"), "{}", said.out);
    assert!(said.out.contains("ok   d/a.pkt "), "{}", said.out);
}

#[test]
fn quiet_and_verbose() {
    let folder = with("drill_quiet", &[("good.pkt", GOOD), ("bad.pkt", &failing())]);
    assert_eq!(drill(&folder, &["-q", "good.pkt"]).out, "");
    let quiet = drill(&folder, &["--quiet", "good.pkt", "bad.pkt"]);
    assert_eq!(quiet.status, 1);
    assert!(quiet.out.starts_with("FAIL bad.pkt:9: ") && !quiet.out.contains("1 passed"), "{}", quiet.out);
    let verbose = drill(&folder, &["-v", "good.pkt"]);
    assert_eq!(verbose.status, 0);
    // Everything that the script does: seven events and two packets that it expects.
    assert!(verbose.out.lines().count() >= 10, "{}", verbose.out);
    assert!(verbose.out.contains("accept(3, ..., ...) = 4"), "{}", verbose.out);
}

#[test]
fn wrong_flags() {
    let folder = with("drill_flags", &[("good.pkt", GOOD)]);
    for (args, part) in [
        (&["good.pkt", "--no-such-flag"][..], "--no-such-flag"),
        (&[], "FILE|DIR"),
        (&["good.pkt", "--threads", "0"], "--threads"),
        (&["good.pkt", "--tolerance_usecs=-1"], "--tolerance_usecs"),
        (&["good.pkt", "-q", "-v"], "--verbose"),
        (&["good.pkt", "--profile", "plan9"], "linux-6.1"),
        (&["good.pkt", "--set", "no_such_key=1"], "no_such_key"),
        (&["good.pkt", "--set", "cc=no_such_algorithm"], "no_such_algorithm"),
        (&["good.pkt", "--set", "cc"], "KEY=VALUE"),
        (&["good.pkt", "-D", "NAME"], "NAME=VALUE"),
        (&["good.pkt", "--junit", "no/such/folder/results.xml"], "--junit"),
        (&["good.pkt", "--junit", "."], "it is a directory"),
    ] {
        let said = drill(&folder, args);
        assert_eq!((said.status, said.out.as_str()), (2, ""), "{args:?}: {}", said.err);
        assert!(said.err.contains(part), "{args:?}: {}", said.err);
    }
    let said: Said = ackclock().args(["--scenario", "x", "packetdrill", "y"]).output().expect("the binary runs").into();
    assert_eq!(said.status, 2);
}

#[test]
fn both_spellings_of_packetdrills_flags() {
    // The acknowledgment leaves 5 ms before its time: too far for packetdrill's 4 ms.
    let early = GOOD.replace("+0 > . 1:1(0) ack 1001", "+.005 > . 1:1(0) ack 1001");
    let folder = with("drill_spellings", &[("early.pkt", &early)]);
    assert_eq!(drill(&folder, &["early.pkt"]).status, 1);
    for flag in ["--tolerance_usecs", "--tolerance-usecs"] {
        let said = drill(&folder, &["early.pkt", flag, "6000"]);
        assert_eq!(said.status, 0, "{}", said.out);
    }
    let push = GOOD.replace("> . 1:1(0) ack 1001", "> P. 1:1(0) ack 1001");
    let folder = with("drill_spellings", &[("push.pkt", &push)]);
    assert_eq!(drill(&folder, &["push.pkt"]).status, 1);
    for flag in ["--ignore-psh", "--ignore_psh"] {
        let said = drill(&folder, &["push.pkt", flag]);
        assert_eq!(said.status, 0, "{}", said.out);
    }
}

#[test]
fn words_can_be_defined() {
    let folder = with("drill_define", &[("word.pkt", &GOOD.replace("1:1001(1000)", "1:1001(SIZE)"))]);
    assert_eq!(drill(&folder, &["word.pkt"]).status, 2);
    let said = drill(&folder, &["word.pkt", "-D", "SIZE=1000"]);
    assert_eq!(said.status, 0, "{}", said.out);
}

#[test]
fn junit_is_well_formed_whatever_a_script_holds() {
    let control = GOOD.replace("0 socket", "0 <&>\u{1}\u{1b}]]>\"socket");
    let shell = format!("`echo '<&>\u{7}]]>'`\n{GOOD}");
    let scripts = [
        ("a&<b>.pkt", GOOD),
        ("bad.pkt", &failing()),
        ("control.pkt", &control),
        ("shell.pkt", &shell),
        ("x/y.pkt", GOOD),
    ];
    let folder = with("drill_junit", &scripts);
    fs::write(folder.join("results.xml"), "an earlier result").unwrap();
    let said = drill(&folder, &[".", "--junit", "results.xml"]);
    assert_eq!(said.status, 2, "{}", said.out);
    let xml = fs::read_to_string(folder.join("results.xml")).expect("a file in UTF-8");
    let plain = |c: char| c == '\n' || !c.is_control();
    assert!(xml.chars().all(plain) && said.out.chars().all(plain), "{xml}");
    let mut reader = Reader::from_str(&xml);
    let (mut cases, mut found) = (Vec::new(), Vec::new());
    loop {
        match reader.read_event().expect("well-formed XML") {
            Event::Eof => break,
            Event::Start(tag) | Event::Empty(tag) => {
                let attributes: Vec<(String, String)> = tag
                    .attributes()
                    .map(|attribute| {
                        let attribute = attribute.expect("an attribute");
                        let value = quick_xml::escape::unescape(&attribute.value).unwrap();
                        (attribute.key.as_ref().to_owned(), value.into_owned())
                    })
                    .collect();
                match tag.name().as_ref() {
                    "testcase" => cases.push(attributes[1].1.clone()),
                    "testsuite" => {
                        let counts: Vec<&str> = attributes[1..4].iter().map(|(_, value)| value.as_str()).collect();
                        assert_eq!(counts, ["5", "1", "1"], "tests, failures and errors in {xml}");
                    }
                    "failure" | "error" => found.push(attributes[0].1.clone()),
                    _ => {}
                }
            }
            _ => {}
        }
    }
    assert_eq!(cases, ["a&<b>.pkt", "bad.pkt", "control.pkt", "shell.pkt", "y.pkt"]);
    assert_eq!(found, ["mismatch", "script"]);
    // Nothing is left of what it was while it was being written.
    let mut names: Vec<String> =
        fs::read_dir(&folder).unwrap().map(|entry| entry.unwrap().file_name().into_string().unwrap()).collect();
    names.sort();
    assert_eq!(names, ["a&<b>.pkt", "bad.pkt", "control.pkt", "results.xml", "shell.pkt", "x"]);
}

#[test]
fn tap_has_a_plan_and_a_point_for_each_script() {
    let folder = with("drill_tap", &[("a #1.pkt", GOOD), ("bad.pkt", &failing()), ("broken.pkt", "0 ?")]);
    let said = drill(&folder, &["--tap", "."]);
    assert_eq!((said.status, said.err.as_str()), (2, ""));
    let (points, blocks): (Vec<&str>, Vec<&str>) = said.out.lines().partition(|line| !line.starts_with("  "));
    assert_eq!(
        points.iter().filter(|line| !line.is_empty()).collect::<Vec<_>>(),
        [&"TAP version 14", &"1..3", &"ok 1 - ./a \\#1.pkt", &"not ok 2 - ./bad.pkt", &"not ok 3 - ./broken.pkt"]
    );
    assert_eq!(blocks.iter().filter(|&&line| line == "  ---").count(), 2);
    assert_eq!(blocks.iter().filter(|&&line| line == "  ...").count(), 2);
    assert!(said.out.contains("  severity: fail\n  at:\n    file: \"./bad.pkt\"\n    line: 9\n"), "{}", said.out);
    let message = blocks.iter().find_map(|line| line.strip_prefix("  message: ")).expect("a message");
    assert!(serde_json::from_str::<Value>(message).is_ok_and(|value| value.is_string()), "{message}");
}

#[test]
fn the_number_of_threads_changes_nothing() {
    let failing = failing();
    let texts = [GOOD, &failing, "0 ?"];
    let scripts: Vec<(String, &str)> = (0..60).map(|n| (format!("{n:02}.pkt"), texts[n % 3])).collect();
    let scripts: Vec<(&str, &str)> = scripts.iter().map(|(name, text)| (name.as_str(), *text)).collect();
    let folder = with("drill_threads", &scripts);
    let [one, many] = ["1", "8"].map(|threads| {
        let said = drill(&folder, &[".", "-v", "--threads", threads, "--junit", "results.xml"]);
        assert_eq!(said.status, 2);
        (said.out, fs::read_to_string(folder.join("results.xml")).expect("results"))
    });
    assert!(one == many);
    assert!(one.0.ends_with("60 scripts: 20 passed, 20 failed, 20 in error\n"), "{}", one.0);
}

#[test]
fn a_reader_that_leaves_is_no_error() {
    let scripts: Vec<String> = (0..1000).map(|n| format!("{n}.pkt")).collect();
    let scripts: Vec<(&str, &str)> = scripts.iter().map(|name| (name.as_str(), GOOD)).collect();
    let folder = with("drill_broken_pipe", &scripts);
    let mut child = ackclock()
        .current_dir(&folder)
        .args(["packetdrill", "-v", "."])
        .stdout(Stdio::piped())
        .stderr(Stdio::piped())
        .spawn()
        .expect("the binary runs");
    let mut line = String::new();
    let mut stdout = BufReader::new(child.stdout.take().expect("a pipe"));
    stdout.read_line(&mut line).expect("one line");
    assert!(line.starts_with("ok   "));
    drop(stdout);
    let output = child.wait_with_output().expect("it ends");
    assert_eq!((output.status.code(), output.stderr.as_slice()), (Some(0), &b""[..]));
}

#[test]
fn help_names_the_flags() {
    for flag in ["--help", "-h"] {
        let said: Said = ackclock().args(["packetdrill", flag]).output().expect("the binary runs").into();
        assert_eq!(said.status, 0);
        for part in
            ["--profile", "--set", "--tolerance_usecs", "--ignore-psh", "--junit", "--tap", "--threads", "Exit status"]
        {
            assert!(said.out.contains(part), "{flag}: {part}");
        }
    }
}
