//! Scripts written for the purpose, construct by construct.

use std::fmt::Write as _;

use ackclock_packet::{Flags, SackBlocks};
use ackclock_units::{Ecn, Span};
use proptest::prelude::*;

use super::*;
use crate::ast::{AddressNames, Call, EcnSpec, Expr, IcmpSpec, IpInfo, OptionSpec, Options, SeqForm, TcpSpec};

mod fuzz;

/// A script with a line of every construct, which the tests change as well.
const SCRIPT: &str = r#"// A passive open and one segment each way.
--ip_version=ipv4
--tolerance_usecs=4000
`sysctl -q net.ipv4.tcp_ecn=1
 sysctl -q net.ipv4.tcp_sack=1`
0 socket(..., SOCK_STREAM, IPPROTO_TCP) = 3
+0 setsockopt(3, SOL_SOCKET, SO_REUSEADDR, [1], 4) = 0
+0 fcntl(3, F_SETFL, O_RDWR|O_NONBLOCK) = 0
+.1 < [noecn] SEW 0:0(0) win 65535 <mss 1000,sackOK,TS val 100 ecr 0,nop,wscale 7>
+0~+.01 > [noecn] SE. 0:0(0) ack 1 win 65535 <mss 1460,sackOK,TS val 100 ecr 100,nop,wscale 8>
+.1 < . 1:1(0) ack 1 win 512 <nop,nop,TS val 200 ecr 100>
+0...0.5 accept(3, ..., ...) = 4
/* The answer
   may take its time. */
* > P. 1:1001(1000) ack 1 <...>
+.1 < . 1:1(0) ack 1 win 512 <nop,nop,sack 501:1001>
+0 %{ assert 90000 <= tcpi_rtt <= 110000, 'rtt=%d' % tcpi_rtt }%
+0 read(4, ..., 1000) = -1 EAGAIN (Resource temporarily unavailable)
+0 epoll_wait(5, {events=EPOLLIN|EPOLLOUT, ptr=4}, 1, 0) = 1
+0 < icmp unreachable frag_needed mtu 800 [1:1(0)]
+0 `ss -tn`
`sysctl -q net.ipv4.tcp_ecn=2`
"#;

fn events(text: &str) -> Vec<Event> {
    parse(text).unwrap_or_else(|error| panic!("{}", error.render("test", text, false))).events
}

fn event(text: &str) -> Event {
    let mut events = events(text);
    assert_eq!(events.len(), 1, "{text}");
    events.remove(0)
}

fn call(text: &str) -> Call {
    match event(text).action {
        Action::Call(call) => call,
        other => panic!("{other:?}"),
    }
}

fn packet(text: &str) -> PacketSpec {
    match event(text).action {
        Action::Packet(packet) => *packet,
        other => panic!("{other:?}"),
    }
}

fn tcp(text: &str) -> TcpSpec {
    match packet(text) {
        PacketSpec::Tcp(tcp) => tcp,
        other => panic!("{other:?}"),
    }
}

fn foreign(text: &str) -> (&'static str, String) {
    match packet(text) {
        PacketSpec::Unsupported { kind, text, .. } => (kind, text),
        other => panic!("{other:?}"),
    }
}

fn options(text: &str) -> Vec<OptionSpec> {
    match tcp(&format!("0 > . 0:0(0) <{text}>")).options {
        Options::List(list) => list,
        Options::Any => panic!("any"),
    }
}

fn error(text: &str) -> ParseError {
    parse(text).expect_err(text)
}

const MICRO: u64 = 1_000;
const SECOND: u64 = 1_000_000 * MICRO;

#[test]
fn a_whole_script() {
    let script = parse(SCRIPT).unwrap();
    let options: Vec<_> = script.options.iter().map(|o| (o.line, o.name.as_str(), o.value.as_str())).collect();
    assert_eq!(options, [(2, "ip_version", "ipv4"), (3, "tolerance_usecs", "4000")]);
    let lines: Vec<u32> = script.events.iter().map(|event| event.line).collect();
    assert_eq!(lines, [4, 6, 7, 8, 9, 10, 11, 12, 15, 16, 17, 18, 19, 20, 21, 22]);
}

#[test]
fn times() {
    let time = |text: &str| event(&format!("{text} > . 0:0(0)")).time;
    let span = Span::from_nanos;
    assert_eq!(time("1"), EventTime::Absolute(span(SECOND)));
    assert_eq!(time("0.0013"), EventTime::Absolute(span(1_300 * MICRO)));
    assert_eq!(time("+.25"), EventTime::Relative(span(250_000 * MICRO)));
    assert_eq!(time("+ 0.00"), EventTime::Relative(Span::ZERO));
    assert_eq!(time("*"), EventTime::Any);
    assert_eq!(time(".1~.2"), EventTime::AbsoluteRange(span(SECOND / 10), span(SECOND / 5)));
    assert_eq!(time("+.1~+.2"), EventTime::RelativeRange(span(SECOND / 10), span(SECOND / 5)));
    // A binary fraction would give 0.152999999.
    assert_eq!(time("0.153"), EventTime::Absolute(span(153_000_000)));
    assert_eq!(time("0.0000000019"), EventTime::Absolute(span(1)));
}

#[test]
fn calls_that_block() {
    assert_eq!(call("+0...0.5 accept(3, ..., ...) = 4").until, Some(Span::from_millis(500)));
    assert_eq!(call("+.1...0.200 connect(3, ..., ...) = 0").until, Some(Span::from_millis(200)));
    assert_eq!(call("1.0...6 connect(3, ..., ...) = 0").until, Some(Span::from_secs(6)));
    assert_eq!(call("+0 close(3) = 0").until, None);
}

#[test]
fn flags_in_every_order() {
    let flags = |text: &str| {
        let tcp = tcp(&format!("0 > {text} 0:0(0)"));
        (tcp.flags, tcp.ace)
    };
    let all = Flags::FIN | Flags::SYN | Flags::RST | Flags::PSH | Flags::ACK | Flags::URG | Flags::ECE | Flags::CWR;
    assert_eq!(flags("S"), (Flags::SYN, None));
    assert_eq!(flags("."), (Flags::ACK, None));
    assert_eq!(flags(".FP"), (Flags::ACK | Flags::FIN | Flags::PSH, None));
    assert_eq!(flags("WUE.SPFR"), (all, None));
    assert_eq!(flags("-"), (Flags::NONE, None));
    assert_eq!(flags(".5"), (Flags::ACK, Some(5)));
    assert_eq!(flags("P.0"), (Flags::ACK | Flags::PSH, Some(0)));
    // AE is the highest bit of the counter, CWR the next (RFC 9768 section 3.2.2): 4 + 2.
    assert_eq!(flags("SWA"), (Flags::SYN, Some(6)));
    assert_eq!(flags("SEWA"), (Flags::SYN, Some(7)));
}

#[test]
fn a_segment_with_everything() {
    let spec = tcp(
        "+0 < (ect0, ttl 5, flowlabel 0x12345) 8080 > 1024 U. 4294967295:9(10) ack 7 win 300 urg 3 <sack 1:2 5:6,nop,nop>",
    );
    let mut blocks = SackBlocks::default();
    blocks.push(1, 2);
    blocks.push(5, 6);
    assert_eq!(
        spec,
        TcpSpec {
            direction: Direction::Inbound,
            ip: IpInfo { ecn: Some(EcnSpec::Is(Ecn::Ect0)), tos: None, ttl: Some(5), flow_label: Some(0x12345) },
            ports: Some((8080, 1024)),
            addresses: AddressNames::default(),
            flags: Flags::URG | Flags::ACK,
            ace: None,
            // The numbers wrap: 2^32 - 1 + 10 = 9.
            seq: u32::MAX,
            seq_form: SeqForm::Relative,
            payload: 10,
            ack: Some(7),
            window: Some(300),
            urgent: Some(3),
            options: Options::List(vec![OptionSpec::Sack(blocks), OptionSpec::Nop, OptionSpec::Nop]),
        }
    );
}

#[test]
fn what_is_said_of_the_ip_header() {
    let ip = |text: &str| tcp(&format!("0 > {text} . 0:0(0)")).ip;
    let ecn = |ecn| IpInfo { ecn: Some(ecn), ..IpInfo::default() };
    assert_eq!(ip("[ect01]"), ecn(EcnSpec::Ect01));
    assert_eq!(ip("[ect1]"), ecn(EcnSpec::Is(Ecn::Ect1)));
    assert_eq!(ip("(ecn ce)"), ecn(EcnSpec::Is(Ecn::Ce)));
    assert_eq!(ip("[noecn]"), ecn(EcnSpec::Is(Ecn::NotEct)));
    assert_eq!(ip("(tos 0x28)"), IpInfo { tos: Some(0x28), ..IpInfo::default() });
    assert_eq!(ip("(class 0xe0)"), IpInfo { tos: Some(0xe0), ..IpInfo::default() });
    assert_eq!(ip("[ttl 64]"), IpInfo { ttl: Some(64), ..IpInfo::default() });
    assert_eq!(ip("(hlim 255)"), IpInfo { ttl: Some(255), ..IpInfo::default() });
}

#[test]
fn sequence_numbers_of_other_forms() {
    let spec = tcp("+0 > S. ...(0) ack 4 win 65535 <mss 1460>");
    assert_eq!((spec.seq_form, spec.payload, spec.ack), (SeqForm::Any, 0, Some(4)));
    let spec = tcp("+0 > R. 0:0(0)! ack 1");
    assert_eq!((spec.seq_form, spec.seq), (SeqForm::Absolute, 0));
}

#[test]
fn tcp_options() {
    let other = |name: &str, kind, data: &[u8]| OptionSpec::Other { name: name.to_owned(), kind, data: data.to_vec() };
    assert_eq!(
        options("mss 1460, sackOK, TS val 4294967295 ecr 0, nop, wscale 14"),
        [
            OptionSpec::Mss(1460),
            OptionSpec::SackPermitted,
            OptionSpec::Timestamps { value: u32::MAX, echo: 0 },
            OptionSpec::Nop,
            OptionSpec::WindowScale(14),
        ]
    );
    assert_eq!(options("sackOK,eol,eol"), [OptionSpec::SackPermitted, OptionSpec::Eol, OptionSpec::Eol]);
    // RFC 7413 section 4.1.1: kind 34; appendix A: kind 254 with 0xF989.
    assert_eq!(options("FO 0a1b,nop,nop,nop,nop")[0], other("FO 0a1b", 34, &[0x0a, 0x1b]));
    assert_eq!(options("FO,nop,nop")[0], other("FO", 34, &[]));
    assert_eq!(options("FOEXP 12345678")[0], other("FOEXP 12345678", 254, &[0xf9, 0x89, 0x12, 0x34, 0x56, 0x78]));
    assert_eq!(options("exp-FO")[0], other("exp-FO", 254, &[0xf9, 0x89]));
    // RFC 2385 section 3.0: kind 19, 16 bytes.
    assert_eq!(options("nop,nop,md5 valid")[2], other("md5 valid", 19, &[0; 16]));
    // RFC 9768 section 3.2.3: kind 172 counts e0b, ceb, e1b; kind 174 the other way round; 24 bits
    // each.
    assert_eq!(options("ECN e0b 1 ceb 258,nop,nop,nop,nop")[0], other("ECN e0b 1 ceb 258", 172, &[0, 0, 1, 0, 1, 2]));
    assert_eq!(options("AccECN1 ee1b 5,nop,nop,nop")[0], other("AccECN1 ee1b 5", 174, &[0, 0, 5]));
    assert_eq!(options("gen-77 ffee")[0], other("gen-77 ffee", 77, &[0xff, 0xee]));
    assert_eq!(options("exp-1234 5678,nop,nop")[0], other("exp-1234 5678", 254, &[0x12, 0x34, 0x56, 0x78]));
    assert_eq!(tcp("0 > . 0:0(0) <...>").options, Options::Any);
    assert_eq!(tcp("0 > . 0:0(0)").options, Options::List(Vec::new()));
}

#[test]
fn icmp_errors_that_arrive() {
    let icmp = |text: &str| match packet(&format!("+0 {text}\n")) {
        PacketSpec::Icmp(icmp) => icmp,
        other => panic!("{other:?}"),
    };
    let spec = |kind: &str, code: Option<&str>, mtu, quoted| IcmpSpec {
        kind: kind.to_owned(),
        code: code.map(str::to_owned),
        mtu,
        quoted,
    };
    assert_eq!(
        icmp("< icmp unreachable frag_needed mtu 1200 [1:1461(1460)]"),
        spec("unreachable", Some("frag_needed"), Some(1200), Some((1, 1460)))
    );
    assert_eq!(icmp("<icmp packet_too_big mtu 1280"), spec("packet_too_big", None, Some(1280), None));
    assert_eq!(icmp("< icmp type_3 code_1 [0:0(0)]"), spec("type_3", Some("code_1"), None, Some((0, 0))));
    for text in ["< icmp", "< icmp unreachable a b", "< icmp unreachable [1:2(3)]", "< icmp unreachable [1:2(1)"] {
        assert!(parse(&format!("+0 {text}\n")).is_err(), "{text}");
    }
}

#[test]
fn packets_of_other_protocols_are_kept() {
    let kinds = |text: &str| {
        let (kind, kept) = foreign(&format!("+0 {text}\n"));
        assert_eq!(kept, text);
        // The following text is not part of it.
        assert_eq!(events(&format!("+0 {text}\n.5 close(3) = 0\n")).len(), 2, "{text}");
        kind
    };
    assert_eq!(kinds("> icmp unreachable frag_needed mtu 800 [1:1461(1460)]"), "icmp");
    assert_eq!(kinds("< [ce] icmp time_exceeded ttl_exceeded_in_transit [0:0(0)/udp(1 > 2)]"), "icmp");
    assert_eq!(kinds("< icmp echo_request id 5"), "icmp");
    assert_eq!(kinds("> udp 53 > 54 (100)"), "udp");
    assert_eq!(kinds("< udp (100)"), "udp");
    assert_eq!(kinds("< gre flags 0x2000, sum 0, off 0, key = 2, seq 0: . 1:1(0) ack 1 win 10"), "gre");
    assert_eq!(kinds("> mpls (label 0, tc 0, [S], ttl 1): F. 1:1(0)"), "mpls");
    assert_eq!(kinds("> ipv4 1.1.1.1 > 2.2.2.2:\n  ipv6 fd::1 > fd::2: . 1:1(0)"), "ipv4");
    assert_eq!(kinds("< encap psp spi 0x10 P. 1:11(10) ack 1 win 10"), "psp");
    assert_eq!(kinds("< . 1:1(0) ack 1 win 10/udp(1 > 9811)"), "udp encapsulation");
    assert_eq!(kinds("> R. 1:1(0) ack 1 <nop,nop,nop,nop>/udp(1 > 9811)"), "udp encapsulation");
    assert_eq!(kinds("< . 1:1(0) win 10 <0101>"), "options in hexadecimal");
    assert_eq!(kinds("> R 1:1(0) [cause_code 1, pen 2]"), "payload of a reset");
    assert_eq!(kinds("> (dscp ef, ect0) . 1:1(0)"), "dscp");
}

#[test]
fn results_of_calls() {
    let read = call("+0 read(4, ..., 1000) = -1 EAGAIN (Resource temporarily unavailable)");
    assert_eq!((read.name.as_str(), &read.result), ("read", &Expr::Integer(-1)));
    assert_eq!(read.args, [Expr::Integer(4), Expr::Ellipsis, Expr::Integer(1000)]);
    assert_eq!(read.errno.as_deref(), Some("EAGAIN"));
    assert_eq!(read.note.as_deref(), Some("Resource temporarily unavailable"));
    let fcntl = call("+0 fcntl(3, F_GETFL) = 0x02 (flags O_RDWR)");
    assert_eq!((fcntl.result, fcntl.errno, fcntl.note.as_deref()), (Expr::Integer(2), None, Some("flags O_RDWR")));
    assert_eq!(call("+0 write(4, ..., 1) = -1 EPIPE(Broken pipe)").errno.as_deref(), Some("EPIPE"));
    assert_eq!(call("+0 close(4) = 0//done\n").note, None);
    assert_eq!(call("+0 mmap(...) = ...").result, Expr::Ellipsis);
}

#[test]
fn arguments_of_calls() {
    let arg = |text: &str| call(&format!("+0 f({text}) = 0")).args.remove(0);
    let symbol = |name: &str| Expr::Symbol(name.to_owned());
    let text = |text: &str| Expr::Text(text.to_owned());
    let part = |name: &str, value| (name.to_owned(), value);
    assert_eq!(
        arg("A | B|C"),
        Expr::Or(Box::new(Expr::Or(Box::new(symbol("A")), Box::new(symbol("B")))), Box::new(symbol("C")))
    );
    assert_eq!(arg("0xffffffffffffffff"), Expr::Integer(-1));
    assert_eq!(arg("-9223372036854775808"), Expr::Integer(i64::MIN));
    assert_eq!(arg(r#""a\x41\n\\" "b""#), text("aA\n\\b"));
    assert_eq!(arg(r#""start"..."#), Expr::Function("...".to_owned(), vec![text("start")]));
    assert_eq!(arg("[]"), Expr::Array(Vec::new()));
    assert_eq!(arg("[[1], 2]"), Expr::Array(vec![Expr::Array(vec![Expr::Integer(1)]), Expr::Integer(2)]));
    assert_eq!(
        arg(r#"{sa_family = AF_INET, sin_port = htons(8080), sin_addr = inet_addr("1.2.3.4")}"#),
        Expr::Struct(vec![
            part("sa_family", symbol("AF_INET")),
            part("sin_port", Expr::Function("htons".to_owned(), vec![Expr::Integer(8080)])),
            part("sin_addr", Expr::Function("inet_addr".to_owned(), vec![text("1.2.3.4")])),
        ])
    );
    assert_eq!(
        arg("{msg_name(...)=..., msg_iov(1)=[{..., 100}], msg_flags=MSG_A|MSG_B}"),
        Expr::Struct(vec![
            part("msg_namelen", Expr::Ellipsis),
            part("msg_name", Expr::Ellipsis),
            part("msg_iovlen", Expr::Integer(1)),
            part(
                "msg_iov",
                Expr::Array(vec![Expr::Struct(vec![part("", Expr::Ellipsis), part("", Expr::Integer(100))])])
            ),
            part("msg_flags", Expr::Or(Box::new(symbol("MSG_A")), Box::new(symbol("MSG_B")))),
        ])
    );
    assert_eq!(
        arg("{onoff=1, linger=0}"),
        Expr::Struct(vec![part("onoff", Expr::Integer(1)), part("linger", Expr::Integer(0))])
    );
    assert_eq!(
        arg("{{a=1}, 2}"),
        Expr::Struct(vec![part("", Expr::Struct(vec![part("a", Expr::Integer(1))])), part("", Expr::Integer(2))])
    );
    assert_eq!(arg("[NAME = 5]"), Expr::Array(vec![Expr::Struct(vec![part("NAME", Expr::Integer(5))])]));
    assert_eq!(
        arg("{(label 1, tc 2, ttl 3)}"),
        Expr::Function("mpls".to_owned(), vec![text("(label 1, tc 2, ttl 3)")])
    );
    assert_eq!(
        arg("{flags [none], sum 0, off 0, key 0, seq 0}"),
        Expr::Function("gre".to_owned(), vec![text("flags [none], sum 0, off 0, key 0, seq 0")])
    );
}

#[test]
fn option_lines() {
    let options = |text: &str| -> Vec<(String, String)> {
        parse(text).unwrap().options.into_iter().map(|option| (option.name, option.value)).collect()
    };
    let pair = |name: &str, value: &str| (name.to_owned(), value.to_owned());
    assert_eq!(
        options("--strict // as it says\n--remote_ip=fd::1\n--speed = 10 --x=/a/b//c\n--s=\"a b\""),
        [pair("strict", ""), pair("remote_ip", "fd::1"), pair("speed", "10"), pair("x", "/a/b"), pair("s", "a b")]
    );
    assert_eq!(options("--define=CMD=`a\nb`"), [pair("define", "CMD=`a\nb`")]);
}

#[test]
fn defined_words() {
    let text = "--define=LEN=7\n--define=NAME=SO_ERROR\n--define=S=\"hi\"\n+0 f(LEN, NAME, S, MASK) = 0\n+0 CMD\n";
    let defines: Defines =
        [("MASK", "0x10"), ("CMD", "`true`"), ("LEN", "8")].map(|(a, b)| (a.to_owned(), b.to_owned())).into();
    let script = parse_with(text, &defines).unwrap();
    let Action::Call(call) = &script.events[0].action else { panic!() };
    assert_eq!(
        call.args,
        [Expr::Integer(8), Expr::Symbol("SO_ERROR".to_owned()), Expr::Text("hi".to_owned()), Expr::Integer(16)]
    );
    assert_eq!(script.events[1].action, Action::Shell("true".to_owned()));
}

#[test]
fn conditional_lines() {
    let text = "+0 a() = 0\n#ifdef X\n+0 b() = 0\n#endif\n#ifdef Y\n+0 not a ( script\n#endif\n+0 c() = 0\n";
    let names = |defines: &Defines| -> Vec<(u32, String)> {
        let script = parse_with(text, defines).unwrap();
        let name = |event: Event| match event.action {
            Action::Call(call) => (event.line, call.name),
            other => panic!("{other:?}"),
        };
        script.events.into_iter().map(name).collect()
    };
    let pair = |line, name: &str| (line, name.to_owned());
    assert_eq!(names(&Defines::new()), [pair(1, "a"), pair(8, "c")]);
    assert_eq!(names(&[("X".to_owned(), "1".to_owned())].into()), [pair(1, "a"), pair(3, "b"), pair(8, "c")]);
    let left_out = parse(text).unwrap().left_out.into_iter().map(|left| (left.line, left.name)).collect::<Vec<_>>();
    assert_eq!(left_out, [pair(2, "X"), pair(5, "Y")]);
}

#[test]
fn freebsd_is_defined_where_the_host_is_one() {
    let text = "+0 a() = 0\n#ifdef FreeBSD\n+0 b() = 0\n#endif\n";
    let events = |text: &str, profile: Option<&str>| {
        let mut settings = Settings::new();
        if let Some(name) = profile {
            settings.set_profile(name).unwrap();
        }
        let script = parse_for(text, &Defines::new(), &settings).unwrap();
        assert_eq!(script.events.len() + script.left_out.len(), 2);
        script.events.len()
    };
    assert_eq!(events(text, None), 1);
    for (profile, expected) in [("freebsd-14", 2), ("freebsd-9.2", 2), ("linux-6.18", 1)] {
        assert_eq!(events(text, Some(profile)), expected, "{profile}");
        let own = format!("--profile={profile}\n{text}");
        assert_eq!(events(&own, None), expected, "{profile}");
        // The command line wins.
        assert_eq!(events(&own, Some("rfc")), 1, "{profile}");
    }
}

#[test]
fn shell_commands_without_a_time() {
    let text = "`first`\n+0 close(3) = 0\n`between`\n+1 `timed\n  twice`\n`last`";
    let shells: Vec<_> = events(text)
        .into_iter()
        .filter_map(|event| match event.action {
            Action::Shell(command) => Some((event.line, event.time, command)),
            _ => None,
        })
        .collect();
    let now = EventTime::Relative(Span::ZERO);
    let later = EventTime::Relative(Span::from_secs(1));
    assert_eq!(
        shells,
        [
            (1, now, "first".to_owned()),
            (3, now, "between".to_owned()),
            (4, later, "timed\n  twice".to_owned()),
            (6, now, "last".to_owned())
        ]
    );
}

#[test]
fn line_ends_and_byte_order_marks_of_other_systems() {
    assert_eq!(events("\u{feff}--a=b\r\n+0 close(3) = 0\r\n+0 > . 0:0(0)\r\n").len(), 2);
    assert_eq!(parse("--a=b\r\n").unwrap().options[0].value, "b");
}

#[test]
fn errors_know_their_place() {
    let at = |text: &str| {
        let error = error(text);
        (error.line, error.column)
    };
    assert_eq!(at("+0 close(3) = 0\n  +0 > Sx 0:0(0)"), (2, 9));
    assert_eq!(at("+0 > . 1:2(3)"), (1, 8));
    assert_eq!(at("// \u{e9}\n\n+0 f(\u{e9})"), (3, 6));
    // The error is within the code, two lines after its start.
    assert_eq!(at("+0 %{\nassert 1\nassert )\n}%"), (3, 8));
    assert_eq!(at("+0 `never"), (1, 4));
    assert_eq!(at("+0 f(1, 2"), (1, 10));
    // A token missing at the end of a line is missing there, not where the next one starts.
    assert_eq!(at("+0 < . 0:0(0) // no window\n\n+0 close(3) = 0"), (1, 14));
    assert_eq!(at("+0 close(3)\n+0 close(4) = 0"), (1, 12));
    assert_eq!(at("+0 close(3) = 0\nclose(4) = 0"), (2, 1));
}

#[test]
fn what_errors_say() {
    let scripts = [
        "+0 > . 1:1001(100) ack 1",
        "+0 > SX 0:0(0)",
        "+0 > SS 0:0(0)",
        "+0 > SE5 0:0(0)",
        "+0 > 0:0(0)",
        "+0 > ",
        "+0 > . 4294967296:0(0)",
        "+0 > . 0:65536(65536)",
        "+0 < . 0:0(0) ack 1",
        "+0 < . 0:0(0) win 65536",
        "+0 < . 0:0(0) win 1 <...>",
        "+0 < [ect01] . 0:0(0) win 1",
        "+0 < S. ...(0) win 1",
        "+0 > [ecn0] . 0:0(0)",
        "+0 > [ect0, tos 0x10] . 0:0(0)",
        "+0 > (tos 0x100) . 0:0(0)",
        "+0 > S 0:0(0) <mss 1460,wscale>",
        "+0 > S 0:0(0) <mss 1460,sackok>",
        "+0 > S 0:0(0) <mss 1460,sackOK>",
        "+0 > S 0:0(0) <mss SIZE>",
        "+0 > S 0:0(0) <mss 1460",
        "+0 > . 0:0(0) <sack 1:2 3:4 5:6 7:8 9:10,nop,nop>",
        "+0 > . 0:0(0) <FO 123>",
        "+0 > . 0:0(0) <TS ecr 1 val 2>",
        "+0 > . 0:0(0) <ECN ceb 1>",
        "+0 > . 0:0(0) <nop,nop,TS val 1 ecr 2,nop,nop,TS val 1 ecr 2,nop,nop,TS val 1 ecr 2,nop,nop,TS val 1 ecr 2>",
        "* close(3) = 0",
        "+0~+1 close(3) = 0",
        "+2~+1 > . 0:0(0)",
        "+1~2 > . 0:0(0)",
        "-1 > . 0:0(0)",
        "99999999999 > . 0:0(0)",
        "+1...0.5 close(3) = 0",
        "1...+2 close(3) = 0",
        "close(3) = 0",
        "+0 5",
        "+0 close 3",
        "+0 close(3)",
        "+0 close(3, = 0",
        "+0 close(99999999999999999999) = 0",
        "+0 close(3) = -1 EBADF (Bad\n",
        "+0 f(\"\\q\") = 0",
        "+0 f({a=1) = 0",
        "+0 \"never",
        "+0 `never",
        "+0 /* never",
        "+0 %{ assert 1",
        "+0 %{ assert tcpi_rtt = 5 }%",
        "+0 %{\nassert 1\nimport os\n}%",
        "+0 close(3) = 0\n--late=1",
        "--empty=",
        "#ifdef X\n+0 close(3) = 0",
        "#define X 1",
        "#endif",
        "+0 > icmp",
        "+0 \u{0} close(3) = 0",
        "+0 \u{1f980}",
    ];
    let mut all = String::new();
    for script in scripts {
        let error = error(script);
        writeln!(all, "{}\n", error.render("script.pkt", script, false)).unwrap();
    }
    insta::assert_snapshot!(all);
}

#[test]
fn an_error_in_a_line_without_end_is_shown_in_part() {
    let text = format!("+0 {}", "\u{e9}".repeat(1 << 20));
    let shown = error(&text).render("long.pkt", &text, false);
    assert!(shown.len() < 1000, "{}", shown.len());
}

#[test]
fn nesting_is_bounded() {
    for text in ["[", "{", "f(", "a=", "{a=", "{f("] {
        let text = format!("+0 f({}", text.repeat(100_000));
        assert!(error(&text).title.contains("nested too deep"), "{}", error(&text));
    }
    let text = format!("+0 f({}1) = 0", "1|".repeat(100_000));
    assert!(error(&text).title.contains("joined by"), "{}", error(&text));
    let text = format!("+0 > mpls {}", "(".repeat(100_000));
    assert!(error(&text).title.contains("not closed"), "{}", error(&text));
}
