//! Network stacks of one's own on the virtual clock.

use std::net::SocketAddr;
use std::ops::ControlFlow;

use ackclock_live::{LiveError, Options, Outcome, run, run_virtual};
use ackclock_scenario::{Own, Scenario};
use ackclock_sim::Recorders;
use ackclock_sim::spec::OwnStack;
use ackclock_stack::{Datagram, Stack, StackHost, Transport, UdpHost};
use ackclock_units::outside::Failure;
use ackclock_units::{Ecn, Random, Span, Time};
use pcap_parser::pcapng::{Block, parse_block_le};

/// A client and a server with stacks, over a link of 1 Mbit/s and 10 ms.
const TEXT: &str = "schema = 1\n[run]\nduration = \"1s\"\n\
                    [links.wire]\nrate = \"1mbit\"\ndelay = \"10ms\"\nqueue = \"pfifo\"\n\
                    [hosts.client]\naddress = \"10.0.0.1/24\"\nstack = \"client\"\n\
                    [hosts.server]\naddress = \"10.0.0.2/24\"\nstack = \"echo\"\n\
                    [[paths]]\nbetween = [\"client\", \"server\"]\npath = [\"wire\"]\n";

/// Sends datagrams of 97 bytes, 125 with headers, at equal distances, and measures round trips.
struct Pinger {
    to: SocketAddr,
    next: Time,
    sent: Vec<Time>,
    round_trips: Vec<Span>,
    random: Random,
}

impl Transport for Pinger {
    fn input(&mut self, now: Time, datagram: Datagram<'_>) {
        let number = usize::from(datagram.payload[0]);
        self.round_trips.push(now.since(self.sent[number]));
    }

    fn output(&mut self, now: Time, payload: &mut Vec<u8>) -> Option<(SocketAddr, Ecn)> {
        if now < self.next {
            return None;
        }
        payload.resize(97, 0);
        payload[0] = self.sent.len() as u8;
        self.sent.push(now);
        self.next = now + Span::from_millis(100);
        Some((self.to, Ecn::Ect0))
    }

    fn next_deadline(&self) -> Time {
        self.next
    }

    fn on_deadline(&mut self, _: Time) {}

    fn results(&self, _: Time, see: &mut dyn FnMut(&'static str, f64)) {
        see("answers", self.round_trips.len() as f64);
        see("longest_ms", self.round_trips.iter().max().map_or(0.0, |span| span.as_millis_f64()));
        see("drawn", self.random.clone().bits() as f64);
    }
}

/// Sends every datagram back.
struct Echo(Vec<(SocketAddr, Vec<u8>)>);

impl Transport for Echo {
    fn input(&mut self, _: Time, datagram: Datagram<'_>) {
        self.0.push((datagram.from, datagram.payload.to_vec()));
    }

    fn output(&mut self, _: Time, payload: &mut Vec<u8>) -> Option<(SocketAddr, Ecn)> {
        let (to, bytes) = self.0.pop()?;
        payload.extend(bytes);
        Some((to, Ecn::NotEct))
    }

    fn next_deadline(&self) -> Time {
        Time::NEVER
    }

    fn on_deadline(&mut self, _: Time) {}
}

fn socket(host: &StackHost) -> SocketAddr {
    SocketAddr::new(host.addresses[0], 7)
}

/// The stack `echo`, and one called `client`.
fn with(client: impl Fn(&StackHost, Random) -> Box<dyn Stack> + Send + Sync + 'static) -> Own {
    let echo = OwnStack::new("echo", |host, _, _| Box::new(UdpHost::new(socket(host), Echo(Vec::new()))));
    Own::new().stack(echo).stack(OwnStack::new("client", move |host, _, random| client(host, random)))
}

fn pinger() -> Own {
    with(|host, random| {
        let to = SocketAddr::new(host.neighbours[0].addresses[0], 7);
        let (sent, round_trips) = (Vec::new(), Vec::new());
        Box::new(UdpHost::new(socket(host), Pinger { to, next: Time::ZERO, sent, round_trips, random }))
    })
}

fn outcome(text: &str, own: &Own) -> Outcome {
    let scenario = Scenario::parse_with("stacks.toml", text.as_bytes(), &[], own);
    let spec = scenario.unwrap_or_else(|error| panic!("{}", error.render(false))).spec(0);
    run(&spec, Recorders::default(), &Options::default()).expect("nothing is missing")
}

#[test]
fn a_round_trip_is_exact_and_results_are_reported() {
    let Outcome { summary, broken_off } = outcome(TEXT, &pinger());
    assert!(broken_off.is_none(), "{broken_off:?}");
    let live = summary.live.as_ref().expect("hosts");
    let results = live.hosts[0].results.as_ref().expect("results");
    // 125 bytes at 1 Mbit/s take 1 ms, twice, and 10 ms twice; ten datagrams are sent by 900 ms.
    assert_eq!((results["answers"].as_f64(), results["longest_ms"].as_f64()), (Some(10.0), Some(22.0)));
    let counts = [0, 1].map(|host| (live.hosts[host].received_packets, live.hosts[host].sent_packets));
    assert_eq!(counts, [(10, 10), (10, 10)]);
    assert_eq!((summary.clock, live.hosts[1].stack.as_deref()), ("virtual", Some("echo")));
}

#[test]
fn runs_repeat_and_draw_from_their_seed() {
    let json = |text: &str| serde_json::to_string(&outcome(text, &pinger()).summary).expect("JSON");
    assert_eq!(json(TEXT), json(TEXT));
    assert_ne!(json(TEXT), json(&TEXT.replace("duration", "seed = 2\nduration")));
}

#[test]
fn a_stack_shares_a_queue_with_flows_of_this_process() {
    let text = TEXT.replace("duration = \"1s\"", "duration = \"5s\"");
    let text = format!(
        "{text}[hosts.left]\naddress = \"10.0.1.1/24\"\n[hosts.right]\naddress = \"10.0.1.2/24\"\n\
         [[paths]]\nbetween = [\"left\", \"right\"]\npath = [\"wire\"]\n\
         [[flows]]\nid = \"tcp\"\nfrom = \"left\"\nto = \"right\"\nport = 80\ncc = \"cubic\"\n"
    );
    let summary = outcome(&text, &pinger()).summary;
    let longest = summary.live.expect("hosts").hosts[0].results.as_ref().expect("results")["longest_ms"].as_f64();
    // Full packets of 1,500 bytes that wait before a datagram take 12 ms each.
    assert!(longest.expect("a number") > 22.0 + 5.0 * 12.0, "{longest:?}");
    assert!(summary.flows[0].goodput_bps > 0.8e6, "{}", summary.flows[0].goodput_bps);
}

/// A stack that misbehaves in one of several ways at 50 ms.
struct Faulty(Output, Deadline, Option<Failure>);

type Deadline = fn() -> Time;
type Output = fn(Time, &mut [u8]) -> Option<usize>;

impl Stack for Faulty {
    fn input(&mut self, _: Time, _: &[u8]) {}

    fn output(&mut self, now: Time, buffer: &mut [u8]) -> Option<usize> {
        if now < Time::from_millis(50) { None } else { (self.0)(now, buffer) }
    }

    fn next_deadline(&self) -> Time {
        (self.1)()
    }

    fn on_deadline(&mut self, now: Time) {
        if now > Time::from_millis(60) {
            self.2 = Some(Failure::new(now, "has had enough"));
        }
    }

    fn failure(&self) -> Option<&Failure> {
        self.2.as_ref()
    }
}

#[test]
fn faults_of_a_stack_end_the_run_with_their_reason() {
    let later: Deadline = || Time::from_millis(50);
    let faults: [(Output, Deadline, &str); 4] = [
        (|_, _| panic!("boom"), later, "panicked: boom"),
        (|_, buffer| Some(buffer.len() + 1), later, "returned 1501 bytes of a packet, of 1500 at most"),
        (|_, _| None, || Time::ZERO, "the deadline that it gives has passed, again and again"),
        (|_, _| None, || Time::from_millis(61), "has had enough"),
    ];
    for (output, deadline, what) in faults {
        let own = with(move |_, _| Box::new(Faulty(output, deadline, None)));
        let Outcome { summary, broken_off } = outcome(TEXT, &own);
        let error = broken_off.expect("an error").to_string();
        assert!(error.starts_with("host client, stack client, at 0.0") && error.ends_with(what), "{error}");
        assert!(summary.partial && summary.duration_s < 0.1, "{}", summary.duration_s);
    }
}

#[test]
fn a_run_stops_when_it_is_told_to() {
    let scenario = Scenario::parse_with("stacks.toml", TEXT.as_bytes(), &[], &pinger()).expect("a scenario");
    let mut calls = 0;
    let Outcome { summary, broken_off } = run_virtual(&scenario.spec(0), Recorders::default(), &mut |_| {
        calls += 1;
        if calls == 3 { ControlFlow::Break(()) } else { ControlFlow::Continue(()) }
    });
    assert!(matches!(broken_off, Some(LiveError::Interrupted)), "{broken_off:?}");
    assert!(summary.partial && (0.3..0.5).contains(&summary.duration_s), "{}", summary.duration_s);
}

/// A datagram and its answer, seen at both hosts, in a file that is the same each time.
#[test]
fn packets_of_stacks_are_captured() {
    let folder = std::env::temp_dir().join(format!("ackt-stacks-{}", std::process::id()));
    std::fs::create_dir_all(&folder).expect("a directory");
    let [first, second] = ["first", "second"].map(|name| {
        let scenario = Scenario::parse_with("stacks.toml", TEXT.as_bytes(), &[], &pinger()).expect("a scenario");
        let path = folder.join(name);
        let options = Options { capture: Some(path.clone()), ..Options::default() };
        let outcome = run(&scenario.spec(0), Recorders::default(), &options).expect("nothing is missing");
        assert!(outcome.broken_off.is_none(), "{:?}", outcome.broken_off);
        std::fs::read(path).expect("a capture")
    });
    assert_eq!(first, second);
    let (mut rest, mut seen) = (&first[..], Vec::new());
    while let Ok((after, block)) = parse_block_le(rest) {
        rest = after;
        if let Block::EnhancedPacket(packet) = block {
            let ns = u64::from(packet.ts_high) << 32 | u64::from(packet.ts_low);
            seen.push((packet.if_id, ns, packet.origlen));
        }
    }
    // 1 ms for 125 bytes at 1 Mbit/s, and 10 ms.
    let ping = |at: u64| [(0, at), (1, at + 11_000_000), (1, at + 11_000_000), (0, at + 22_000_000)];
    let expected = (0..10).flat_map(|number| ping(number * 100_000_000)).map(|(host, at)| (host, at, 125));
    assert_eq!(seen, expected.collect::<Vec<_>>());
    assert!(rest.is_empty());
    // What cannot be written is an error before the run.
    let scenario = Scenario::parse_with("stacks.toml", TEXT.as_bytes(), &[], &pinger()).expect("a scenario");
    let options = Options { capture: Some(folder.join("no/where")), ..Options::default() };
    assert!(matches!(run(&scenario.spec(0), Recorders::default(), &options), Err(LiveError::File { .. })));
    std::fs::remove_dir_all(folder).expect("the directory is there");
}
