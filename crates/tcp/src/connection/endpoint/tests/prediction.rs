//! Header prediction changes nothing: whatever two ends do over whatever network, what they send,
//! report and know is the same with and without it.

use ackclock_cc::EcnFeedback;
use ackclock_units::Random;
use proptest::prelude::*;

use super::arbitrary::{Any, any_config, any_controller};
use super::*;
use crate::send::burst::Burst;
use crate::stack::profile::Profile;
use crate::{LossDetector, TcpInfo, TransferRules};

/// The network's treatment of segments, of a thousand each; one way takes 10 ms.
#[derive(Clone, Copy, Debug, Default)]
struct Network {
    seed: u64,
    lost: u64,
    late: u64,
    doubled: u64,
    marked: u64,
}

/// The writes of both sides, and the length of the traffic.
#[derive(Clone, Copy, Debug)]
struct Traffic {
    writes: [u64; 2],
    /// Bytes that a reader takes at a time; it reads after every segment.
    reads: u64,
    segments: usize,
    closes: bool,
}

/// Two endpoints and the network between them.
struct Pair {
    ends: [Endpoint; 2],
    now: Time,
    /// When a segment arrives, which one came first, where, and what it is.
    wire: Vec<(Time, u64, usize, Segment, Ecn)>,
    sent: u64,
    network: Network,
    random: Random,
    log: Vec<String>,
}

impl Pair {
    fn new(configs: [&Config; 2], controllers: [&Any; 2], network: Network, predicts: bool) -> Pair {
        let end = |at: usize| {
            let config = Config { header_prediction: predicts, ..configs[at].clone() };
            let ports = Ports { local: at as u16 + 1, remote: 2 - at as u16 };
            Endpoint::new(config, controllers[at].build(), ports, u32::MAX - 5000, 77)
        };
        let mut ends = [end(0), end(1)];
        ends[1].listen();
        ends[0].connect();
        let random = Random::for_component(network.seed, 0, "network");
        Pair { ends, now: Time::ZERO, wire: Vec::new(), sent: 0, network, random, log: Vec::new() }
    }

    fn happens(&mut self, of_thousand: u64) -> bool {
        self.random.below(1000) < of_thousand
    }

    /// An end sends what it can.
    fn transmit(&mut self, from: usize) {
        let mut segment = Segment::default();
        while let Some(mut ecn) = self.ends[from].transmit(self.now, &mut segment) {
            self.log.push(format!("{:?} {from} {ecn:?} {segment:?}", self.now));
            let Network { lost, late, doubled, marked, .. } = self.network;
            if ecn.is_capable() && self.happens(marked) {
                ecn = Ecn::Ce;
            }
            let copies = if self.happens(lost) { 0 } else { 1 + usize::from(self.happens(doubled)) };
            for _ in 0..copies {
                let delay = Span::from_micros(if self.happens(late) { 13_000 } else { 10_000 });
                self.sent += 1;
                self.wire.push((self.now + delay, self.sent, 1 - from, segment, ecn));
            }
        }
    }

    /// The next segment arrives, or a timer expires. Nothing happens any more if it is `false`.
    fn step(&mut self, traffic: &Traffic) -> bool {
        let first = (0..self.wire.len()).min_by_key(|&at| (self.wire[at].0, self.wire[at].1));
        let arrival = first.map_or(Time::NEVER, |at| self.wire[at].0);
        let deadline = self.ends[0].next_deadline().min(self.ends[1].next_deadline());
        self.now = arrival.min(deadline);
        if self.now == Time::NEVER {
            return false;
        }
        if deadline < arrival {
            for end in 0..2 {
                if self.ends[end].next_deadline() <= deadline {
                    self.ends[end].on_deadline(deadline);
                    self.transmit(end);
                }
            }
            return true;
        }
        let Some(at) = first else { return false };
        let (_, _, to, segment, ecn) = self.wire.swap_remove(at);
        let acknowledgment = self.ends[to].input(self.now, &segment, ecn);
        let end = &mut self.ends[to];
        let read = end.read(traffic.reads);
        let wrote = if end.sender_mut().is_writable() { end.write(traffic.writes[to]) } else { 0 };
        let (cwnd, deadline, info) = (end.sender().cwnd(), end.next_deadline(), end.sender().loss_counts());
        self.log.push(format!(
            "{acknowledgment:?} {read} {wrote} {cwnd} {deadline:?} {info:?} {:?}",
            end.sender().loss().state()
        ));
        self.transmit(to);
        true
    }

    fn run(&mut self, traffic: &Traffic) {
        self.transmit(0);
        for _ in 0..traffic.segments {
            if !self.step(traffic) {
                break;
            }
        }
        if traffic.closes {
            for end in 0..2 {
                self.ends[end].shutdown(Shutdown::Write);
                self.transmit(end);
            }
            for _ in 0..traffic.segments {
                if !self.step(&Traffic { writes: [0, 0], ..*traffic }) {
                    break;
                }
            }
        }
    }
}

/// All that an endpoint knows, whether it predicts or not.
pub(super) fn everything(endpoint: &mut Endpoint) -> String {
    endpoint.sender.predicts = false;
    endpoint.sender.counters.predicted = 0;
    // The memory of the timeout is filled, and the burst, which the next look for something to send
    // ends, is emptied.
    endpoint.sender().rto();
    endpoint.sender.burst = Burst::default();
    endpoint.configure(|config| config.header_prediction = false);
    format!("{endpoint:?}")
}

/// Runs both ways and compares; returns the share of segments that were predicted, in percent, at
/// each end.
fn compare(configs: [&Config; 2], controllers: [&Any; 2], network: Network, traffic: &Traffic) -> [u64; 2] {
    let mut with = Pair::new(configs, controllers, network, true);
    let mut without = Pair::new(configs, controllers, network, false);
    with.run(traffic);
    without.run(traffic);
    for (at, (a, b)) in with.log.iter().zip(&without.log).enumerate() {
        assert_eq!(a, b, "line {at}");
    }
    assert_eq!(with.log.len(), without.log.len());
    let share =
        |end: &Endpoint| end.sender().predicted_segments() * 100 / u64::from(end.sender.counters.segments_in.max(1));
    let shares = [share(&with.ends[0]), share(&with.ends[1])];
    assert_eq!([0, 0], [without.ends[0].sender().predicted_segments(), without.ends[1].sender().predicted_segments()]);
    for at in 0..2 {
        let now = with.now;
        assert_eq!(TcpInfo::of(&with.ends[at], now), TcpInfo::of(&without.ends[at], now));
        assert_eq!(with.ends[at].sender().stats(), without.ends[at].sender().stats());
        let (a, b) = (everything(&mut with.ends[at]), everything(&mut without.ends[at]));
        assert_eq!(a, b, "end {at}");
    }
    shares
}

fn any_network() -> impl Strategy<Value = Network> {
    let share = || prop_oneof![3 => Just(0u64), 2 => 1u64..50, 1 => 50u64..300];
    (any::<u64>(), share(), share(), share(), share()).prop_map(|(seed, lost, late, doubled, marked)| Network {
        seed,
        lost,
        late,
        doubled,
        marked,
    })
}

fn any_traffic() -> impl Strategy<Value = Traffic> {
    let write = || prop_oneof![2 => Just(0u64), 1 => 1u64..3000, 2 => Just(u64::MAX)];
    let read = prop_oneof![3 => Just(u64::MAX), 1 => 0u64..3000];
    (write(), write(), read, 50usize..400, any::<bool>()).prop_map(|(first, second, reads, segments, closes)| Traffic {
        writes: [first, second],
        reads,
        segments,
        closes,
    })
}

proptest! {
    #![proptest_config(ProptestConfig::with_cases(150))]

    #[test]
    fn prediction_changes_nothing(
        configs in [any_config(), any_config()],
        controllers in [any_controller(), any_controller()],
        network in any_network(),
        traffic in any_traffic(),
    ) {
        compare([&configs[0], &configs[1]], [&controllers[0], &controllers[1]], network, &traffic);
    }
}

/// A host of a profile, as it is or with the transfer rules of a real socket, and with ECN.
fn host(name: &str, transfer: Option<TransferRules>, ecn: EcnFeedback) -> Config {
    let endpoint = Profile::by_name(name).expect("it is there").endpoint;
    Config { transfer: transfer.unwrap_or(endpoint.transfer), ecn, ..endpoint }
}

#[test]
fn most_segments_of_a_transfer_are_predicted() {
    let bulk = Traffic { writes: [u64::MAX, 0], reads: u64::MAX, segments: 4000, closes: false };
    let cubic = Any::named("cubic");
    for (name, transfer) in [
        ("freebsd-9.2", None),
        ("freebsd-14", None),
        ("freebsd-14", Some(TransferRules::freebsd(2 << 20))),
        ("linux-6.1", None),
        ("linux-6.1", Some(TransferRules::linux(6 << 20))),
        ("linux-6.18", Some(TransferRules::linux_6_18(6 << 20))),
    ] {
        for ecn in [EcnFeedback::None, EcnFeedback::Classic, EcnFeedback::Dctcp] {
            let config = host(name, transfer.clone(), ecn);
            let shares = compare([&config, &config], [&cubic, &cubic], Network::default(), &bulk);
            assert!(shares[0] >= 98 && shares[1] >= 98, "{name} {ecn:?}: {shares:?}");
            // A loss now and then costs few others: reports of a gap are recognized too.
            let lossy = Network { seed: 1, lost: 1, ..Network::default() };
            let shares = compare([&config, &config], [&cubic, &cubic], lossy, &bulk);
            assert!(shares[0] >= 95 && shares[1] >= 95, "{name} {ecn:?} with losses: {shares:?}");
        }
    }
}

#[test]
fn data_that_acknowledges_data_is_predicted() {
    let both = Traffic { writes: [u64::MAX, u64::MAX], reads: u64::MAX, segments: 4000, closes: true };
    let cubic = Any::named("cubic");
    let config = Config { loss_detector: LossDetector::Rack, ..Config::default() };
    let shares = compare([&config, &config], [&cubic, &cubic], Network::default(), &both);
    assert!(shares[0] >= 40 && shares[1] >= 40, "{shares:?}");
}
