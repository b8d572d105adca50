//! Datagrams through one link, against queueing theory: what Poisson arrivals wait, and how many of
//! them a short queue loses.
//!
//! Runs are so long that the standard error of what is compared is less than half of the tolerance.
//! Of the mean waiting time in M/M/1 over n arrivals at a load of a it is
//! sqrt((2 + 5 a - 4 a² + a³) / (a (1 - a)² n)) relative to the mean (Daley, "The serial
//! correlation coefficients of waiting times in a stationary single server queue", J. Austral.
//! Math. Soc. 8, 1968); in M/D/1 less, by a factor of about sqrt 2 near saturation. Loads are those
//! of the transmitter, headers included.

use std::ops::ControlFlow;

use ackclock_aqm::{FifoConfig, Limit};
use ackclock_emulator::{Course, Impairments};
use ackclock_sim::spec::{
    Application, DATAGRAM_HEADERS, DatagramApplication, DatagramSpec, DirectionSpec, FlowGroup, FlowSpec, HostSpec,
    LinkSpec, Overhead, QueueSpec, RunSpec,
};
use ackclock_trace::DatagramSummary;
use ackclock_traffic::{Distribution, Pattern};
use ackclock_units::{Ecn, Rate, Span, Time, maths};

/// A byte takes a microsecond.
const RATE: u64 = 8_000_000;

/// Datagrams of this size on average, as exponential sizes have it: bytes beside 28 of headers.
const MEAN: f64 = 6000.0;

/// Poisson arrivals of `datagrams` on average at a load, at a link whose queue holds `limit`
/// packets.
fn run(load: f64, size: Distribution, datagrams: f64, limit: u64) -> (DatagramSummary, f64) {
    let service = (f64::from(DATAGRAM_HEADERS) + size.mean()) * 1e3;
    let gap = Distribution::exponential(service / load).expect("it is positive");
    let duration = Span::from_nanos((gap.mean() * datagrams) as u64);
    let pattern = Pattern::renewal(gap, size).expect("time goes on");
    let application = DatagramApplication::Messages { kind: "poisson", pattern };
    let spec = DatagramSpec { application, mtu: u16::MAX, ecn: Ecn::NotEct };
    let queue = QueueSpec::Pfifo(FifoConfig { limit: Limit::Packets(limit) });
    let direction = DirectionSpec {
        rate: Rate::from_bps(RATE),
        delay: Span::ZERO,
        burst: None,
        device: None,
        overhead: Overhead::default(),
        queue,
        impairments: Impairments::default(),
        course: Course::default(),
    };
    let group = FlowGroup {
        metrics: None,
        hosts: None,
        path: vec![0],
        split: None,
        mptcp: None,
        reverse: false,
        sender: HostSpec::Datagrams(spec.clone()),
        receiver: HostSpec::Datagrams(spec),
        bytes: None,
        write_size: FlowSpec::WRITE_SIZE,
        application: Application::Bulk,
        dscp: 0,
        abort: None,
        schedule: Vec::new(),
    };
    let run = RunSpec {
        title: String::new(),
        duration,
        seed: 1,
        run: 0,
        ties: ackclock_sim::spec::Ties::Fixed,
        links: vec![LinkSpec {
            name: "link".into(),
            forward: direction.clone(),
            reverse: direction,
            medium: None,
            is_interface: false,
        }],
        flows: vec![FlowSpec {
            id: "d.0".into(),
            group: group.into(),
            start: Time::ZERO,
            stop: None,
            ends: None,
            via: None,
        }],
        sums: Vec::new(),
        windows: Vec::new(),
        reordering: None,
        live: None,
    };
    let mut summary = ackclock_sim::run(&run, &mut |_| ControlFlow::Continue(())).expect("nobody interrupts");
    let flow = summary.flows.remove(0);
    let found = *flow.datagrams.expect("it is such a flow");
    let transmission = f64::from(DATAGRAM_HEADERS) + flow.progress.delivered_bytes as f64 / found.received as f64;
    (found, transmission / 1e3)
}

/// The mean time in the queue, ms: the delay without the transmission.
fn waiting(load: f64, size: Distribution, datagrams: f64) -> f64 {
    let (found, transmission) = run(load, size, datagrams, 1_000_000);
    assert_eq!(found.lost, 0);
    found.delay_ms.mean.expect("some arrived") - transmission
}

fn constant() -> Distribution {
    Distribution::constant(972.0).expect("it is a size")
}

fn exponential() -> Distribution {
    Distribution::exponential(MEAN).expect("it is positive")
}

fn power(base: f64, exponent: i32) -> f64 {
    (0..exponent).map(|_| base).product()
}

fn near(found: f64, expected: f64, tolerance: f64, what: &str) {
    assert!((found / expected - 1.0).abs() < tolerance, "{what}: {found}, theory has {expected}");
}

/// M/D/1: datagrams of 1000 bytes wait load / (2 (1 - load)) ms.
#[test]
fn constant_sizes_wait_as_m_d_1_has_it() {
    for (load, datagrams) in [(0.3, 1e6), (0.5, 1.2e6), (0.7, 1.5e6), (0.9, 9e6)] {
        near(waiting(load, constant(), datagrams), load / (2.0 * (1.0 - load)), 0.01, &format!("M/D/1 at {load}"));
    }
}

/// M/M/1: packets whose transmission takes 6.028 ms on average wait load / (1 - load) times that.
///
/// Sizes are exponential before they are rounded to whole bytes, at least one, and before headers
/// are added: the transmission takes 28 bytes plus an exponential variable X of mean m, whose
/// second moment is 28² + 2 · 28 m + 2 m² instead of 2 (28 + m)². By Pollaczek and Khinchine
/// waiting times are less than in M/M/1 by (28² + 56 m) / 2 (28 + m)², 0.5 % for m of 6000.
/// Rounding to the next byte adds 1/12 to that second moment, and two packets in 100,000 are larger
/// than 65507 bytes and sent as two: nothing.
#[test]
fn exponential_sizes_wait_as_m_m_1_has_it() {
    let headers = f64::from(DATAGRAM_HEADERS);
    let mean = headers + MEAN;
    let second = headers * headers + 2.0 * headers * MEAN + 2.0 * MEAN * MEAN;
    for (load, datagrams) in [(0.3, 1e6), (0.5, 1.2e6), (0.7, 2.5e6), (0.9, 18e6)] {
        let found = waiting(load, exponential(), datagrams);
        let m_g_1 = load * second / (2.0 * mean * (1.0 - load)) / 1e3;
        near(found, m_g_1, 0.01, &format!("M/G/1 at {load}"));
        near(m_g_1, load / (1.0 - load) * mean / 1e3, 0.005, "M/G/1 against M/M/1");
    }
}

/// M/M/1/K: with K packets in queue and transmission, (1 - a) a^K / (1 - a^(K+1)) of all are lost
/// at a load of a; more than they can carry included.
#[test]
fn a_short_queue_loses_as_m_m_1_k_has_it() {
    for (load, limit) in [(0.5, 1), (0.7, 3), (0.9, 4), (1.3, 5)] {
        let places = limit as i32 + 1;
        let (found, _) = run(load, exponential(), 2e6, limit);
        let blocked = (1.0 - load) * power(load, places) / (1.0 - power(load, places + 1));
        near(found.loss_ratio.expect("some were sent"), blocked, 0.01, &format!("M/M/1/{places} at {load}"));
    }
}

/// M/D/1/K: Brun and Garcia, "Analytical solution of finite capacity M/D/1 queues", J. Appl. Prob.
/// 37 (2000), theorem 1: 1 - b / (1 + a b) with b the sum over k from 0 to K - 1 of
/// (-1)^k / k! (K - 1 - k)^k e^((K - 1 - k) a) a^k.
#[test]
fn a_short_queue_loses_as_m_d_1_k_has_it() {
    for (load, limit) in [(0.5, 1), (0.7, 2), (0.9, 5), (1.3, 5)] {
        let last = limit as i32;
        let term = |k: i32| {
            let left = f64::from(last - k);
            let factorial: f64 = (1..=k).map(f64::from).product();
            power(-1.0, k) / factorial * power(left, k) * maths::exp(left * load) * power(load, k)
        };
        let b: f64 = (0..=last).map(term).sum();
        let blocked = 1.0 - b / (1.0 + load * b);
        let (found, _) = run(load, constant(), 2e6, limit);
        near(found.loss_ratio.expect("some were sent"), blocked, 0.01, &format!("M/D/1/{} at {load}", last + 1));
    }
}
