use crate::{Outcome, ScriptResult, Settings, TraceKind, run_text};

/// A server with a connection as number 4: no SACK, no timestamps, MSS 1000, no window scale.
const SERVER: &str = "\
0 socket(..., SOCK_STREAM, IPPROTO_TCP) = 3
+0 setsockopt(3, SOL_SOCKET, SO_REUSEADDR, [1], 4) = 0
+0 bind(3, ..., ...) = 0
+0 listen(3, 1) = 0
+0 < S 0:0(0) win 32792 <mss 1000>
+0 > S. 0:0(0) ack 1 <mss 1460>
+.1 < . 1:1(0) ack 1 win 32792
+0 accept(3, ..., ...) = 4
";

fn run(text: &str) -> Outcome {
    run_text(text, &Settings::new())
}

fn server(text: &str) -> Outcome {
    run(&format!("{SERVER}{text}"))
}

#[track_caller]
fn passes(outcome: &Outcome) {
    assert_eq!(outcome.result, ScriptResult::Passed, "{outcome}");
}

/// Line and reason of a failure.
#[track_caller]
fn failure(outcome: &Outcome) -> (u32, String) {
    match &outcome.result {
        ScriptResult::Failed(failure) => (failure.line, failure.reason.clone()),
        other => panic!("{} where a failure is due", other.name()),
    }
}

#[track_caller]
fn fails(text: &str, line: u32, words: &str) {
    let (at, reason) = failure(&server(text));
    assert_eq!(at, line, "{reason}");
    assert!(reason.contains(words), "{reason}");
}

#[test]
fn data_goes_both_ways() {
    passes(&server(
        "+0 write(4, ..., 1000) = 1000
         +0 > P. 1:1001(1000) ack 1
         +.1 < P. 1:501(500) ack 1001 win 32792
         +0~+.2 > . 1001:1001(0) ack 501
         +0 read(4, ..., 1000) = 500
         +0 ioctl(4, SIOCOUTQ, [0]) = 0",
    ));
}

#[test]
fn each_field_of_an_expected_packet_is_compared() {
    let write = "+0 write(4, ..., 500) = 500\n";
    for (packet, words) in [
        ("> P. 2:502(500) ack 1", "seq: expected 2, got 1"),
        ("> P. 1:502(501) ack 1", "length: expected 501, got 500"),
        ("> P. 1:500(499) ack 1", "length: expected 499, got 500"),
        ("> P. 1:501(500) ack 2", "ack: expected 2, got 1"),
        ("> . 1:501(500) ack 1", "flags: expected ., got P."),
        ("> FP. 1:501(500) ack 1", "flags"),
        ("> P. 1:501(500) ack 1 win 1", "win: expected 1"),
        ("> P. 1:501(500) ack 1 urg 1", "urg"),
        ("> P. 1:501(500) ack 1 <nop,nop,sack 1:2>", "options: expected <nop,nop,sack 1:2>, got <>"),
        ("> [ect0] P. 1:501(500) ack 1", "ECN codepoint: expected ect0, got noecn"),
        ("> (ttl 63) P. 1:501(500) ack 1", "ttl: expected 63, got 64"),
    ] {
        fails(&format!("{write}+0 {packet}"), 10, words);
    }
}

#[test]
fn values_of_options_are_compared() {
    let text = SERVER.replace("ack 1 <mss 1460>", "ack 1 <mss 1459>");
    let (line, reason) = failure(&run(&text));
    assert_eq!((line, reason.as_str()), (6, "option: expected mss 1459, got mss 1460"));
}

#[test]
fn a_packet_outside_of_its_time_fails() {
    // The clock stands still: nothing makes the segment late, and an answer to it is at once.
    let write = "+0 write(4, ..., 500) = 500\n";
    fails(&format!("{write}+.005 > P. 1:501(500) ack 1"), 10, "time: expected at 0.105000, sent at 0.100000");
    passes(&server(&format!("{write}+.004 > P. 1:501(500) ack 1")));
    passes(&server(&format!("{write}+0~+.01 > P. 1:501(500) ack 1")));
    passes(&server(&format!("{write}* > P. 1:501(500) ack 1")));
    fails("+.2 > P. 1:501(500) ack 1", 9, "no packet was sent until 0.304");
    // RFC 6298: an RTT of 0.1 s gives a timeout of 0.1 + 4 * 0.05 = 0.3 s.
    passes(&server(&format!("{write}+0 > P. 1:501(500) ack 1\n+.3 > P. 1:501(500) ack 1")));
    fails(&format!("{write}+0 > P. 1:501(500) ack 1\n+.29 > P. 1:501(500) ack 1"), 11, "no packet was sent");
    fails(&format!("{write}+0 > P. 1:501(500) ack 1\n+.31 > P. 1:501(500) ack 1"), 11, "time");
}

#[test]
fn the_tolerance_is_a_setting() {
    let text = format!("{SERVER}+0 write(4, ..., 500) = 500\n+.01 > P. 1:501(500) ack 1");
    assert_eq!(run(&text).result.name(), "failed");
    passes(&run(&format!("--tolerance_usecs=10000\n{text}")));
    passes(&run(&format!("--set=tolerance=10ms\n{text}")));
    let mut settings = Settings::new();
    settings.set("tolerance", "9ms").unwrap();
    // A setting from outside wins.
    assert_eq!(run_text(&format!("--tolerance_usecs=10000\n{text}"), &settings).result.name(), "failed");
}

#[test]
fn one_expectation_may_be_several_segments() {
    let write = "+0 write(4, ..., 2500) = 2500\n";
    passes(&server(&format!("{write}+0 > P. 1:2501(2500) ack 1")));
    passes(&server(&format!("{write}+0 > . 1:1001(1000) ack 1\n+0 > P. 1001:2501(1500) ack 1")));
    fails(&format!("{write}+0 > P. 1:2401(2400) ack 1"), 10, "length: expected 2400, got 2500");
    fails(&format!("{write}+0 > P. 1:2601(2600) ack 1"), 10, "length: expected 2600, got 2500");
    let strict = format!("--strict_segments\n{SERVER}{write}+0 > P. 1:2501(2500) ack 1");
    assert_eq!(failure(&run(&strict)).1, "length: expected 2500, got 1000");
}

#[test]
fn push_may_be_ignored() {
    let text = format!("{SERVER}+0 write(4, ..., 500) = 500\n+0 > . 1:501(500) ack 1");
    assert_eq!(run(&text).result.name(), "failed");
    passes(&run(&format!("--set=ignore_psh=on\n{text}")));
}

#[test]
fn a_packet_that_nobody_expects_is_an_error() {
    let write = "+0 write(4, ..., 1500) = 1500\n+0 > . 1:1001(1000) ack 1\n";
    fails(&format!("{write}+.1 < . 1:1(0) ack 1501 win 32792"), 11, "was never expected");
    let next = format!("{write}+.1 < . 1:1(0) ack 1501 win 32792\n+0 write(4, ..., 1) = 1\n+0 > P. 1501:1502(1) ack 1");
    fails(&next, 13, "length: expected 1, got 500");
    // A packet that leaves at the time of the last event counts, too.
    fails(write, 10, "was never expected");
    let mut settings = Settings::new();
    settings.set("check_end", "off").unwrap();
    passes(&run_text(&format!("{SERVER}{write}+.1 < . 1:1(0) ack 1501 win 32792"), &settings));
}

#[test]
fn blocking_calls_return_when_they_can() {
    passes(&server(
        "+0...+.2 read(4, ..., 1000) = 500
         +.2 < P. 1:501(500) ack 1 win 32792
         +0 > . 1:1(0) ack 501",
    ));
    fails(
        "+0...+.1 read(4, ..., 1000) = 500
         +.2 < P. 1:501(500) ack 1 win 32792",
        9,
        "read was to return at 0.2",
    );
    fails("+0 read(4, ..., 1000) = 500", 9, "read blocks: it waits for data to read");
    fails("+0...+.1 read(4, ..., 1000) = 500", 9, "read still waits for data to read at the end of the script");
}

#[test]
fn connect_blocks_until_the_handshake_is_over() {
    passes(&run("\
0 socket(..., SOCK_STREAM, IPPROTO_TCP) = 3
+0...+.1 connect(3, ..., ...) = 0
+0 > S 0:0(0) <...>
+.1 < S. 5000:5000(0) ack 1 win 5792 <mss 1460>
+0 > . 1:1(0) ack 1
+0 write(3, ..., 10) = 10
+0 > P. 1:11(10) ack 1"));
}

#[test]
fn refused_connections_tell_why() {
    passes(&run("\
0 socket(..., SOCK_STREAM, IPPROTO_TCP) = 3
+0 fcntl(3, F_GETFL) = 0x2 (flags O_RDWR)
+0 fcntl(3, F_SETFL, O_RDWR|O_NONBLOCK) = 0
+0 connect(3, ..., ...) = -1 EINPROGRESS (Operation now in progress)
+0 > S 0:0(0) <...>
+0 connect(3, ..., ...) = -1 EALREADY (Operation already in progress)
+.1 < R. 0:0(0) ack 1 win 0
+0 getsockopt(3, SOL_SOCKET, SO_ERROR, [ECONNREFUSED], [4]) = 0
+0 getsockopt(3, SOL_SOCKET, SO_ERROR, [0], [4]) = 0"));
}

#[test]
fn results_and_errors_of_calls_are_compared() {
    fails("+0 write(4, ..., 500) = 499", 9, "write returned 500, expected 499");
    fails("+0 recv(4, ..., 500, MSG_DONTWAIT) = 1", 9, "recv returned -1 EAGAIN");
    fails("+0 recv(4, ..., 500, MSG_DONTWAIT) = -1 EPIPE (Broken pipe)", 9, "expected EPIPE");
    passes(&server("+0 recv(4, ..., 500, MSG_DONTWAIT) = -1 EAGAIN (Resource temporarily unavailable)"));
    passes(&server("+0 read(9, ..., 500) = -1 EBADF (Bad file descriptor)"));
    passes(&server("+0 write(4, ..., 500) = ...\n+0 > P. 1:501(500) ack 1"));
    fails("+0 getsockopt(4, SOL_SOCKET, SO_ERROR, [ECONNRESET], [4]) = 0", 9, "SO_ERROR: expected 104, got 0");
    fails("+0 write(4, ...) = 500", 9, "write takes 3 arguments, not 2");
    fails("+0 < P. 1:11(10) ack 1 win 32792\n+0 ioctl(4, SIOCINQ, [9]) = 0", 10, "SIOCINQ: expected 9, got 10");
}

#[test]
fn what_is_not_here_is_named() {
    for (text, line, words) in [
        ("+0 setsockopt(4, SOL_TCP, TCP_MD5SIG, [1], 4) = 0", 9, "TCP_MD5SIG"),
        ("+0 sendto(4, ..., 10, MSG_ZEROCOPY, ..., ...) = 10", 9, "MSG_ZEROCOPY"),
        ("+0 recvmsg(4, {msg_iov(1)=[{..., 10}], msg_flags=0}, MSG_ERRQUEUE) = 0", 9, "MSG_ERRQUEUE"),
        ("+0 splice(4, NULL, 5, NULL, 10, 0) = 0", 9, "splice"),
        ("+0 socket(..., SOCK_DGRAM, IPPROTO_UDP) = 5", 9, "SOCK_STREAM"),
        ("+0 `sysctl -q net.ipv4.tcp_ecn=6`", 9, "0 to 5"),
        ("+0 `tc qdisc replace dev tun0 root pfifo limit 0`", 9, "the command tc"),
    ] {
        match server(text).result {
            ScriptResult::Unsupported { line: at, what } => {
                assert_eq!(at, line, "{what}");
                assert!(what.contains(words), "{what}");
            }
            other => panic!("{text}: {}", other.name()),
        }
    }
}

#[test]
fn shell_lines_are_settings_or_are_reported() {
    let outcome = server("+0 `sysctl -q net.ipv4.tcp_reordering=3`\n+0 `ethtool -K tun0 tso off`");
    passes(&outcome);
    let unrun: Vec<_> = outcome.unrun_shell.iter().map(|shell| (shell.line, shell.text.as_str())).collect();
    assert_eq!(unrun, [(10, "ethtool -K tun0 tso off")]);
}

#[test]
fn a_linux_host_has_as_many_quick_acks_as_it_is_told() {
    let script = |value: u32, second: &str| {
        format!(
            "--profile=linux-6.1\n--set=quick_ack={value}\n\
             0 socket(..., SOCK_STREAM, IPPROTO_TCP) = 3\n+0 bind(3, ..., ...) = 0\n+0 listen(3, 1) = 0\n\
             +0 < S 0:0(0) win 65535 <mss 1460>\n+0 > S. 0:0(0) ack 1 <...>\n+.1 < . 1:1(0) ack 1 win 65535\n\
             +0 accept(3, ..., ...) = 4\n\
             +0 < . 1:1001(1000) ack 1 win 65535\n+0 > . 1:1(0) ack 1001\n\
             +.001 < . 1001:2001(1000) ack 1 win 65535\n{second} > . 1:1(0) ack 2001\n"
        )
    };
    // TCP_MAX_QUICKACKS is 16; with one, the second segment waits for tcp_delack_timer, 40 ms.
    passes(&run_text(&script(16, "+0"), &Settings::new()));
    passes(&run_text(&script(1, "+.04"), &Settings::new()));
}

#[test]
fn sysctls_set_up_the_host_unless_it_is_chosen() {
    let text = "\
`sysctl -q net.ipv4.tcp_timestamps=0 net.ipv4.tcp_sack=0 net.ipv4.tcp_window_scaling=0`
0 socket(..., SOCK_STREAM, IPPROTO_TCP) = 3
+0...+.1 connect(3, ..., ...) = 0
+0 > S 0:0(0) <mss 1460>
+.1 < S. 0:0(0) ack 1 win 5792 <mss 1460>
+0 > . 1:1(0) ack 1";
    passes(&run(text));
    let mut settings = Settings::new();
    settings.set("sack", "on").unwrap();
    let (line, reason) = failure(&run_text(text, &settings));
    assert_eq!((line, reason.as_str()), (4, "options: expected <mss 1460>, got <mss 1460,nop,nop,sackOK>"));
}

#[test]
fn code_sees_the_connection_under_test() {
    passes(&server("+0 %{ assert tcpi_state == 1, tcpi_state\nassert tcpi_snd_mss == 1000 }%"));
    let (line, reason) = failure(&server("+0 %{\nassert tcpi_snd_cwnd == 11, tcpi_snd_cwnd\n}%"));
    assert_eq!(line, 10, "{reason}");
    assert!(reason.contains("tcpi_snd_cwnd = 10"), "{reason}");
}

#[test]
fn timestamps_are_mapped_both_ways() {
    let text = "\
0 socket(..., SOCK_STREAM, IPPROTO_TCP) = 3
+0 bind(3, ..., ...) = 0
+0 listen(3, 1) = 0
+0 < S 0:0(0) win 32792 <mss 1000,sackOK,TS val 7 ecr 0>
+0 > S. 0:0(0) ack 1 <mss 1460,sackOK,TS val 100 ecr 7>
+.1 < . 1:1(0) ack 1 win 32792 <nop,nop,TS val 8 ecr 100>
+0 accept(3, ..., ...) = 4
+0 write(4, ..., 10) = 10
+0 > P. 1:11(10) ack 1 <nop,nop,TS val 200 ecr 8>
+0 %{ assert tcpi_rtt == 100000, tcpi_rtt }%";
    passes(&run(text));
    let (line, reason) = failure(&run(&text.replace("val 200 ecr 8", "val 200 ecr 7")));
    assert_eq!((line, reason.as_str()), (9, "TS ecr: expected 7, got 8"));
    let (line, reason) = failure(&run(&text.replace("ecr 100>", "ecr 101>")));
    assert_eq!(line, 6);
    assert!(reason.contains("TS ecr 101"), "{reason}");
    // The clock ticks in milliseconds: 100 + 100.
    passes(&run(&format!("--tcp_ts_tick_usecs=1000\n{text}")));
    let late = text.replace("val 200 ecr 8", "val 210 ecr 8");
    assert_eq!(failure(&run(&format!("--tcp_ts_tick_usecs=1000\n{late}"))).1, "TS val: expected 210, got 200");
}

#[test]
fn numbers_count_from_the_initial_ones_of_each_side() {
    passes(&run("\
0 socket(..., SOCK_STREAM, IPPROTO_TCP) = 3
+0 bind(3, ..., ...) = 0
+0 listen(3, 1) = 0
+0 < S 4000000000:4000000000(0) win 32792 <mss 1000,sackOK,nop,nop>
+0 > S. 1234:1234(0) ack 4000000001 <mss 1460,nop,nop,sackOK>
+.1 < . 1:1(0) ack 1 win 32792
+0 accept(3, ..., ...) = 4
+0 < . 1001:2001(1000) ack 1 win 32792
+0 > . 1:1(0) ack 1 <nop,nop,sack 1001:2001>
+0 write(4, ..., 4000) = 4000
+0 > P. 1:4001(4000) ack 1 <...>
+.1 < . 2001:2001(0) ack 1 win 32792 <nop,nop,sack 1001:2001>
+0 %{ assert tcpi_sacked == 1, tcpi_sacked }%"));
}

#[test]
fn a_new_socket_is_the_one_under_test() {
    passes(&server(
        "+0 write(4, ..., 10) = 10
         +0 > P. 1:11(10) ack 1
         +0 socket(..., SOCK_STREAM, IPPROTO_TCP) = 5
         +0 fcntl(5, F_SETFL, O_NONBLOCK) = 0
         +0 connect(5, ..., ...) = -1 EINPROGRESS (Operation now in progress)
         +0 > S 0:0(0) <...>
         // Meanwhile the other one resends, which nobody looks at.
         +.9 < S. 0:0(0) ack 1 win 5792 <mss 1460>
         +0 > . 1:1(0) ack 1",
    ));
}

#[test]
fn poll_and_epoll_tell_what_is_ready() {
    passes(&server(
        "+0 poll([{fd=4, events=POLLIN|POLLOUT, revents=POLLOUT}], 1, 0) = 1
         +0 epoll_create(1) = 5
         +0 epoll_ctl(5, EPOLL_CTL_ADD, 4, {events=EPOLLIN|EPOLLET, fd=4}) = 0
         +0 epoll_ctl(5, EPOLL_CTL_ADD, 4, {events=EPOLLIN|EPOLLET, fd=4}) = -1 EEXIST (File exists)
         +0 epoll_wait(5, {events=0, ptr=0}, 1, 0) = 0
         +0...+.1 epoll_wait(5, {events=EPOLLIN, fd=4}, 1, 1000) = 1
         +.1 < P. 1:11(10) ack 1 win 32792
         +0~+.1 > . 1:1(0) ack 11
         +0 epoll_wait(5, {events=0, ptr=0}, 1, 0) = 0
         +0 < P. 11:21(10) ack 1 win 32792
         +0 epoll_wait(5, {events=EPOLLIN, fd=4}, 1, 0) = 1
         +0~+.1 > . 1:1(0) ack 21",
    ));
    fails("+0 poll([{fd=4, events=POLLOUT, revents=0}], 1, 0) = 1", 9, "revents of fd 4: expected 0x0, got 0x4");
    // The time is over: nothing.
    passes(&server("+0...+.05 poll([{fd=4, events=POLLIN, revents=0}], 1, 50) = 0"));
}

#[test]
fn a_reset_answers_where_nobody_listens() {
    passes(&run("\
0 socket(..., SOCK_STREAM, IPPROTO_TCP) = 3
+0 bind(3, ..., ...) = 0
+0 < S 0:0(0) win 32792 <mss 1000>
+0 > R. 0:0(0) ack 1 win 0"));
}

#[test]
fn options_at_the_top_are_checked() {
    for (line, name) in [
        ("--tolerance_usecs=soon", "invalid"),
        ("--no_such_option=1", "invalid"),
        ("--set=speed=1", "invalid"),
        ("--profile=plan9", "invalid"),
        ("--udp_encapsulation=tcp", "unsupported"),
        ("--ip_version=ipv4", "passed"),
        ("--profile=rfc", "passed"),
    ] {
        let outcome = run(&format!("{line}\n0 socket(..., SOCK_STREAM, IPPROTO_TCP) = 3"));
        assert_eq!(outcome.result.name(), name, "{line}: {outcome}");
    }
    // Forty bytes of header more: 1500 - 60.
    let text = SERVER.replace("ack 1 <mss 1460>", "ack 1 <mss 1440>");
    passes(&run(&format!("--ip_version=ipv6\n{text}")));
}

#[test]
fn outcomes_are_the_same_every_time() {
    let text =
        format!("{SERVER}+0 write(4, ..., 20000) = 20000\n+0 > P. 1:10001(10000) ack 1\n+1 > . 1:1001(1000) ack 1");
    let first = run(&text);
    assert_eq!(run(&text), first);
    assert!(first.trace.iter().any(|line| line.kind == TraceKind::Outbound));
}

#[test]
fn impossible_scripts_end_with_an_error() {
    for text in [
        "+1000000000000000000 write(4, ..., 1) = 1",
        "+0 write(4, ..., 1152921504606846976) = 1",
        "+0 read(4, ..., -1) = 1",
        "+0 setsockopt(4, SOL_SOCKET, SO_SNDBUF, [9223372036854775807], 4) = 0\n+0 write(4, ..., 9223372036854775807) = 1",
        "+0 setsockopt(4, SOL_TCP, TCP_KEEPIDLE, [-1], 4) = 0",
        "+0 < . 4294967295:0(1) ack 4294967295 win 65535\n+1 > . 1:1(0) ack 1",
        "+0 > . 1:65536(65535) ack 1",
        "+0 accept(3, ..., ...) = 4",
        "+0...+90000000 accept(3, ..., ...) = 5\n+0 close(3) = 0",
        "* > . 1:1(0) ack 1",
    ] {
        let outcome = server(text);
        assert!(matches!(outcome.result.name(), "failed" | "invalid"), "{text}: {outcome}");
    }
}

#[test]
fn a_packet_without_a_socket_belongs_nowhere() {
    let (line, reason) = failure(&run("0 > . 1:1(0) ack 1"));
    assert_eq!(line, 1);
    assert!(reason.contains("no socket"), "{reason}");
}

#[test]
fn reports_show_what_came_before() {
    let text = server("+0 write(4, ..., 500) = 500\n+0 > P. 2:502(500) ack 1").to_string();
    for part in [
        "failed at line 10: seq: expected 2, got 1",
        "expected: P. 2:502(500) ack 1",
        "actual: P. 1:501(500) ack 1",
        "9      0.100000  write(4, ..., 500) = 500",
        "> P. 1:501(500) ack 1",
    ] {
        assert!(text.contains(part), "{part}\n{text}");
    }
}

#[test]
fn the_congestion_control_of_an_open_connection() {
    passes(&server(
        "+0 write(4, ..., 10000) = 10000
         +0 > P. 1:10001(10000) ack 1
         +.1 < . 1:1(0) ack 10001 win 32792
         +0 %{ assert tcpi_snd_cwnd == 20, tcpi_snd_cwnd }%
         +0 setsockopt(4, SOL_TCP, TCP_CONGESTION, \"reno\", 4) = 0
         +0 getsockopt(4, SOL_TCP, TCP_CONGESTION, \"reno\", [16]) = 0
         +0 %{ assert tcpi_snd_cwnd == 20, tcpi_snd_cwnd }%
         +0 setsockopt(4, SOL_TCP, TCP_CONGESTION, \"nosuch\", 6) = -1 ENOENT",
    ));
}

#[test]
fn a_part_of_a_blocking_write_leaves_at_once() {
    // 4608 doubled is 9216, in which buffers of half the window, 16,000, are begun one at a time:
    // the write goes on when the first of them is acknowledged, and what it adds is sent, although
    // the call still waits.
    passes(&server(
        "+0 setsockopt(4, SOL_SOCKET, SO_SNDBUF, [4608], 4) = 0
         +0...0.2 write(4, ..., 42000) = 42000
         +0 > P. 1:10001(10000) ack 1
         +.1 < . 1:1(0) ack 10001 win 32792
         +0 > P. 10001:26001(16000) ack 1
         +.1 < . 1:1(0) ack 26001 win 32792
         +0 > P. 26001:42001(16000) ack 1",
    ));
}

#[test]
fn an_option_that_is_not_implemented_is_skipped() {
    let outcome = server(
        "+0 < . 1:11(10) ack 1 win 32792 <FO 0011223344556677,nop,nop>
         +0 > . 1:1(0) ack 11
         +0 read(4, ..., 10) = 10",
    );
    passes(&outcome);
}

#[test]
fn no_options_at_all_on_freebsd() {
    passes(&run("\
--profile=freebsd-14
0 socket(..., SOCK_STREAM, IPPROTO_TCP) = 3
+0 setsockopt(3, IPPROTO_TCP, TCP_NOOPT, [1], 4) = 0
+0 fcntl(3, F_SETFL, O_RDWR|O_NONBLOCK) = 0
+0 connect(3, ..., ...) = -1 EINPROGRESS
+0 > S 0:0(0) win 65535
"));
}

#[test]
fn fast_open_is_taken_where_the_sysctl_says_so() {
    let syn = "+0 < S 0:10(10) win 32792 <mss 1000,FO 0011223344556677,nop,nop>\n";
    let listen = SERVER.split_inclusive('\n').take(4).collect::<String>();
    let with = |sysctl: &str, answer: &str| {
        run(&format!("`sysctl -q net.ipv4.tcp_fastopen={sysctl}`\n{listen}{syn}+0 > S. 0:0(0) ack {answer}"))
    };
    passes(&with("2", "1 <mss 1460>"));
    // TFO_SERVER_WO_SOCKOPT1: the cookie is wrong, and the right one is told.
    // TFO_SERVER_COOKIE_NOT_REQD: no cookie is.
    assert_eq!(with("0x403", "1 <mss 1460>").result.name(), "failed");
    passes(&with("0x403", "1 <...>"));
    passes(&with("0x602", "11 <mss 1460>"));
}
