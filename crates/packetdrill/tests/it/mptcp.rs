//! MPTCP in scripts: what passes, what fails, and what cannot be said here.

use std::fs;
use std::path::{Path, PathBuf};

use ackclock_packetdrill::{Outcome, ScriptResult, Settings, run_text};

/// A server whose connection is open, as socket 4.
const OPEN: &str = "0 socket(..., SOCK_STREAM, IPPROTO_MPTCP) = 3\n\
    +0 bind(3, ..., ...) = 0\n\
    +0 listen(3, 1) = 0\n\
    +0 < S 0:0(0) win 65535 <mss 1460,nop,wscale 7,mpcapable v1 flags[flag_h] nokey>\n\
    +0 > S. 0:0(0) ack 1 <mss 1460,nop,wscale 7,mpcapable v1 flags[flag_h] key[skey]>\n\
    +0 < . 1:1(0) ack 1 win 256 <mpcapable v1 flags[flag_h] key[ckey, skey]>\n\
    +0 accept(3, ..., ...) = 4\n";

fn outcome(text: &str) -> Outcome {
    run_text(text, &Settings::new())
}

/// A script after which the connection is open.
fn after_open(text: &str) -> Outcome {
    outcome(&format!("{OPEN}{text}"))
}

fn failure(outcome: &Outcome) -> (u32, &str) {
    match &outcome.result {
        ScriptResult::Failed(failure) => (failure.line, &failure.reason),
        _ => panic!("{outcome}"),
    }
}

fn unsupported(outcome: &Outcome) -> (u32, &str) {
    match &outcome.result {
        ScriptResult::Unsupported { line, what } => (*line, what),
        _ => panic!("{outcome}"),
    }
}

fn scripts() -> Vec<PathBuf> {
    let folder = Path::new(env!("CARGO_MANIFEST_DIR")).join("tests/it/mptcp/scripts");
    let entries = fs::read_dir(folder).expect("a folder of scripts").map(|entry| entry.expect("an entry").path());
    let mut paths: Vec<PathBuf> = entries.collect();
    paths.sort();
    paths
}

#[test]
fn every_script_passes() {
    let paths = scripts();
    assert!(!paths.is_empty(), "there are scripts");
    for path in paths {
        let outcome = outcome(&fs::read_to_string(&path).expect("a text"));
        assert_eq!(outcome.result, ScriptResult::Passed, "{}: {outcome}", path.display());
        assert!(outcome.unrun_shell.is_empty(), "{}", path.display());
    }
}

#[test]
fn a_difference_is_told_in_the_words_of_the_script() {
    let outcome = after_open(
        "+0 write(4, ..., 10) = 10\n\
         +0 > P. 1:11(10) ack 1 <dss dack4=1 dsn8=2 ssn=1 dll=10 nocs,nop,nop>\n",
    );
    let said = "option: expected dss dack4=1 dsn8=2 ssn=1 dll=10 nocs, got dss dack4=1 dsn8=1 ssn=1 dll=10 nocs";
    assert_eq!(failure(&outcome), (9, said));
    // The difference of another option is reported as well, with keys by their names.
    let capable = "0 socket(..., SOCK_STREAM, IPPROTO_MPTCP) = 3\n\
        +0 bind(3, ..., ...) = 0\n\
        +0 listen(3, 1) = 0\n\
        +0 < S 0:0(0) win 65535 <mss 1460,nop,wscale 7,mpcapable v1 flags[flag_h] nokey>\n\
        +0 > S. 0:0(0) ack 1 <mss 1460,nop,wscale 7,mpcapable v1 flags[flag_h] key[skey=7]>\n";
    let outcome = self::outcome(capable);
    let (line, reason) = failure(&outcome);
    assert_eq!(line, 5, "{reason}");
    assert!(
        reason.starts_with("option: expected mpcapable v1 flags[flag_h] key[skey=7], got mpcapable v1"),
        "{reason}"
    );
}

#[test]
fn what_nobody_expected_fails_on_every_subflow() {
    let outcome = after_open(
        "+0 < addr[c1] > addr[s0] S 0:0(0) win 65535 <mss 1460,nop,wscale 7,mp_join_syn token=auto>\n\
         +0 > S. 0:0(0) ack 1 <mss 1460,nop,wscale 7,mp_join_syn_ack sender_hmac=auto>\n\
         +0 < . 1:1(0) ack 1 win 256 <mp_join_ack sender_hmac=auto>\n\
         +0 > . 1:1(0) ack 1 <dss dack4=1 nocs>\n\
         +0 < addr[c0] > addr[s0] P. 1:11(10) ack 1 win 256 <dss dack4=1 dsn8=1 ssn=1 dll=10 nocs,nop,nop>\n\
         +.2 read(4, ..., 10) = 10\n",
    );
    assert!(failure(&outcome).1.contains("was never expected"), "{outcome}");
}

#[test]
fn what_is_not_known_yet_fails() {
    for (packet, said) in [
        ("< . 1:1(0) ack 1 win 256 <mp_join_ack sender_hmac=auto>", "there was no mp_join_syn"),
        ("< . 1:1(0) ack 1 win 256 <mp_fastclose other>", "no packet has said which key `other` is"),
        ("< addr[a] > addr[b] . 1:1(0) ack 1 win 256\n+0 < addr[b] > addr[a] . 1:1(0) ack 1 win 256", "no connection"),
    ] {
        let outcome = after_open(&format!("+0 {packet}\n"));
        assert!(failure(&outcome).1.contains(said), "{packet}: {outcome}");
    }
}

#[test]
fn what_is_not_done_is_unsupported() {
    for (line, what) in [
        ("+0 < P. 1:11(10) ack 1 win 256 <dss dack8=1 dsn8=1 ssn=1 dll=10>", "checksums"),
        ("+0 > P. 1:11(10) ack 1 <dss dack8=1 dsn8=1 ssn=1 dll=10 cksum=7>", "checksums"),
        ("+0 < . 1:1(0) ack 1 win 256 <mp_fail dsn8=1>", "MP_FAIL"),
        ("+0 getsockopt(4, SOL_TCP, MPTCP_INFO, ..., ...) = 0", "MPTCP_INFO"),
        ("+0 setsockopt(4, SOL_TCP, TCP_NODELAY, [1], 4) = 0", "TCP_NODELAY"),
        ("+0 setsockopt(3, SOL_TCP, TCP_CORK, [1], 4) = 0", "TCP_CORK"),
        ("+0 setsockopt(3, SOL_TCP, TCP_FASTOPEN, [1], 4) = 0", "TCP_FASTOPEN"),
        ("+0 send(4, ..., 10, MSG_MORE) = 10", "MSG_MORE"),
        ("+0 sendto(4, ..., 10, MSG_FASTOPEN, ..., ...) = 10", "MSG_FASTOPEN"),
        ("+0 ioctl(4, SIOCOUTQ, [0]) = 0", "SIOCOUTQ"),
        ("+0 `ip mptcp endpoint add 192.168.0.3 subflow`", "ip mptcp endpoint add 192.168.0.3 subflow"),
        ("+0 `ip mptcp endpoint add nowhere signal`", "ip mptcp endpoint add nowhere signal"),
        ("+0 `ip mptcp monitor`", "ip mptcp monitor"),
    ] {
        let outcome = after_open(&format!("{line}\n"));
        let (at, said) = unsupported(&outcome);
        assert!(at == 8 && said.contains(what), "{line}: {outcome}");
    }
    let outcome = outcome("--profile=freebsd-14\n0 socket(..., SOCK_STREAM, IPPROTO_MPTCP) = 3\n");
    assert_eq!(unsupported(&outcome).0, 2);
}

#[test]
fn the_number_of_an_address_can_be_left_out_of_the_comparison() {
    let join = "+0 < addr[c1] > addr[s0] S 0:0(0) win 65535 <mss 1460,nop,wscale 7,mp_join_syn token=auto>\n\
         +0 > S. 0:0(0) ack 1 <mss 1460,nop,wscale 7,mp_join_syn_ack address_id=9 sender_hmac=auto>\n";
    assert_eq!(failure(&after_open(join)).0, 9);
    let mut settings = Settings::new();
    settings.set("check_address_id", "off").expect("a setting");
    assert_eq!(run_text(&format!("{OPEN}{join}"), &settings).result, ScriptResult::Passed);
}

#[test]
fn two_addresses_of_version_6() {
    let text = "--ip_version=ipv6\n".to_owned() + OPEN;
    let text = text.replace("mss 1460", "mss 1440")
        + "+0 < addr[c1] > addr[s0] S 0:0(0) win 65535 <mss 1440,nop,wscale 7,mp_join_syn token=auto>\n\
           +0 > S. 0:0(0) ack 1 <mss 1440,nop,wscale 7,mp_join_syn_ack sender_hmac=auto>\n";
    let outcome = outcome(&text);
    assert_eq!(outcome.result, ScriptResult::Passed, "{outcome}");
}
