//! `ackclock pattern`: what is sent is what is checked, and what is wrong is said.

use std::io::{BufRead, BufReader, Write};
use std::process::{Command, Stdio};

use crate::common::{Said, ackclock};

fn pattern(args: &[&str], input: &[u8]) -> Said {
    let mut child = ackclock()
        .arg("pattern")
        .args(args)
        .stdin(Stdio::piped())
        .stdout(Stdio::piped())
        .stderr(Stdio::piped())
        .spawn()
        .expect("the binary runs");
    // One that refuses its flags reads nothing.
    let _ = child.stdin.take().expect("a pipe").write_all(input);
    child.wait_with_output().expect("it ends").into()
}

fn bytes(size: &str) -> Vec<u8> {
    let output = ackclock().args(["pattern", "--bytes", size]).output().expect("the binary runs");
    assert!(output.status.success() && output.stderr.is_empty());
    output.stdout
}

#[test]
fn a_stream_is_the_same_from_its_start_on() {
    let long = bytes("1MB");
    assert_eq!(long.len(), 1_000_000);
    assert_eq!(bytes("300001B"), long[..300_001]);
    assert!(bytes("0B").is_empty());
    // Byte i is the one that endpoints in a run send.
    assert!(long.iter().enumerate().step_by(9973).all(|(i, &byte)| byte == ackclock_packet::pattern::byte(i as u64)));
}

#[test]
fn what_was_sent_passes_the_check() {
    let data = bytes("1MiB");
    for args in [&["--check"][..], &["--check", "--bytes", "1MiB"]] {
        let said = pattern(args, &data);
        assert_eq!((said.status, said.err.as_str()), (0, ""));
        assert_eq!(said.out, "1048576 bytes, all of them the pattern's\n");
    }
}

#[test]
fn differences_and_wrong_lengths_are_told() {
    let mut data = bytes("100kB");
    let said = pattern(&["--check", "--bytes", "99999B"], &data);
    assert_eq!((said.status, said.out.as_str()), (1, ""));
    assert_eq!(said.err, "error: received 100000 bytes: expected 99999 bytes\n");
    data[70_001] ^= 1;
    data[90_000] ^= 1;
    let said = pattern(&["--check"], &data);
    assert_eq!((said.status, said.out.as_str()), (1, ""));
    assert_eq!(said.err, "error: received 100000 bytes: byte 70001 is the first that is not the pattern's\n");
    let said = pattern(&["--check", "--bytes", "1MB"], &data);
    assert_eq!(said.status, 1);
    assert!(said.err.ends_with("byte 70001 is the first that is not the pattern's; expected 1000000 bytes\n"));
}

#[test]
fn over_a_connection() {
    let listener = |args: &[&str]| {
        let mut child = ackclock()
            .args(["pattern", "--listen", "127.0.0.1:0"])
            .args(args)
            .stdout(Stdio::piped())
            .stderr(Stdio::piped())
            .spawn()
            .expect("the binary runs");
        let mut line = String::new();
        BufReader::new(child.stderr.take().expect("a pipe")).read_line(&mut line).expect("a line");
        let address = line.strip_prefix("listening at ").expect("where it listens").trim().to_owned();
        (child, address)
    };
    // Either end may be the one that listens.
    for (here, there) in
        [(&["--check", "--bytes", "5MB"][..], &["--bytes", "5MB"][..]), (&["--bytes", "5MB"], &["--check"])]
    {
        let (child, address) = listener(here);
        let said = pattern(&[&["--connect", &address], there].concat(), b"");
        let heard: Said = child.wait_with_output().expect("it ends").into();
        assert_eq!((said.status, said.err.as_str(), heard.status), (0, "", 0));
        assert_eq!(format!("{}{}", said.out, heard.out), "5000000 bytes, all of them the pattern's\n");
    }
    // One that wants less than it gets says so.
    let (child, address) = listener(&["--check", "--bytes", "1B"]);
    assert_eq!(pattern(&["--connect", &address, "--bytes", "1MB"], b"").status, 0);
    assert_eq!(child.wait_with_output().expect("it ends").status.code(), Some(1));
}

#[test]
fn a_reader_that_leaves_has_not_got_all() {
    let mut child = ackclock()
        .args(["pattern", "--bytes", "100MB"])
        .stdout(Stdio::piped())
        .stderr(Stdio::piped())
        .spawn()
        .expect("the binary runs");
    drop(child.stdout.take());
    let said: Said = child.wait_with_output().expect("it ends").into();
    assert_eq!(said.status, 1);
    assert!(said.err.starts_with("error: the reader of standard output has left after at least "), "{}", said.err);
}

#[test]
fn bad_input_is_status_2() {
    for (args, part) in [
        (&[][..], "--bytes <SIZE>"),
        (&["--bytes", "12"], "error: --bytes 12: "),
        (&["--bytes", "180p"], "expected bytes, such as \"100MB\""),
        (&["--bytes", "1B", "--connect", "somewhere"], "error: --connect somewhere: expected an address with a port"),
        (&["--bytes", "1B", "--listen", "127.0.0.1:99999"], "error: --listen 127.0.0.1:99999: "),
        (&["--bytes", "1B", "--listen", "1.1.1.1:1", "--connect", "1.1.1.1:1"], "cannot be used with"),
    ] {
        let said = pattern(args, b"");
        assert_eq!((said.status, said.out.as_str()), (2, ""), "{args:?}");
        assert!(said.err.contains(part), "{args:?}: {}", said.err);
    }
}

/// 100 MB are nothing that a transfer would have to wait for.
#[cfg(unix)]
#[test]
fn a_pipe_of_two() {
    let ackclock = env!("CARGO_BIN_EXE_ackclock");
    let line = format!("'{ackclock}' pattern --bytes 100MB | '{ackclock}' pattern --bytes 100MB --check");
    let said: Said = Command::new("sh").args(["-c", &line]).output().expect("a shell").into();
    assert_eq!((said.status, said.out.as_str()), (0, "100000000 bytes, all of them the pattern's\n"), "{}", said.err);
}
