//! Trees of classes.

use super::*;
use ackclock_aqm::{
    Class, Filter, Hfsc, HfscClass, HfscConfig, Htb, HtbClass, HtbConfig, Qfq, QfqClass, QfqConfig, Series,
    SeriesConfig, ServiceCurve, Stage, TbfConfig,
};
use ackclock_units::Rate;

/// A leaf for the flows with these hashes.
fn leaf<S>(name: &str, parent: &str, hashes: &[u64], queue: QueueSpec, settings: S) -> Class<S> {
    let flows = if hashes.is_empty() { Vec::new() } else { vec![Arc::from(name)] };
    let filter = Filter { flows, hashes: hashes.to_vec(), ..Filter::default() };
    Class { name: Arc::from(name), parent: Some(Arc::from(parent)), filter, queue, settings }
}

fn top<S>(settings: S) -> Class<S> {
    let queue = QueueSpec::by_name("pfifo").expect("a row");
    Class { name: Arc::from("top"), parent: None, filter: Filter::default(), queue, settings }
}

pub(super) fn pfifo(limit: u64) -> QueueSpec {
    QueueSpec::Pfifo(FifoConfig { limit: Limit::Packets(limit) })
}

fn codel() -> QueueSpec {
    let (target, interval) = (Span::from_micros(100), Span::from_millis(2));
    QueueSpec::Codel(CodelConfig { limit: 20, ecn: true, target, interval, mtu: 0, ..CodelConfig::default() })
}

fn rate(mbit: u64) -> Rate {
    Rate::from_bps(1_000_000 * mbit).expect("above zero")
}

/// Two classes that borrow, of two priorities.
pub(super) fn htb() -> HtbConfig {
    let of = |mbit, prio| HtbClass { ceil: Some(rate(50)), quantum: Some(1500), prio, ..HtbClass::new(rate(mbit)) };
    let classes = vec![
        top(of(50, 0)),
        leaf("first", "top", &[0, 1], codel(), of(10, 0)),
        leaf("second", "top", &[2], pfifo(20), of(20, 1)),
        leaf("rest", "top", &[], pfifo(20), of(5, 1)),
    ];
    HtbConfig { classes, direct_qlen: 20, default: Some(Arc::from("rest")), ..HtbConfig::default() }
}

/// A class with a deadline, one with an upper limit, and the rest.
pub(super) fn hfsc() -> HfscConfig {
    let linear = |mbit: u64| Some(ServiceCurve::linear(1_000_000 * mbit));
    let of = |rt, ls, ul| HfscClass { rt, ls, ul };
    let deadline = Some(ServiceCurve::of_delay(1500, Span::from_millis(1), 5_000_000));
    let classes = vec![
        top(of(None, linear(50), linear(50))),
        leaf("first", "top", &[0, 1], codel(), of(deadline, None, None)),
        leaf("second", "top", &[2], pfifo(20), of(None, linear(20), linear(3))),
        leaf("rest", "top", &[], pfifo(20), of(linear(1), linear(5), None)),
    ];
    HfscConfig { classes, direct_qlen: 20, default: Some(Arc::from("rest")) }
}

/// Classes of three weights.
pub(super) fn qfq() -> QfqConfig {
    let of = |name, hashes: &[u64], queue, weight, maxpkt| Class {
        parent: None,
        ..leaf(name, "", hashes, queue, QfqClass { weight, maxpkt })
    };
    let classes = vec![
        of("first", &[0, 1], codel(), 3, 1514),
        of("second", &[2], pfifo(20), 1, 512),
        of("rest", &[], pfifo(20), 1, 1514),
    ];
    QfqConfig { classes, direct_qlen: 20, default: Some(Arc::from("rest")) }
}

pub(super) fn stage(name: &str, queue: QueueSpec) -> Stage {
    Stage { name: Arc::from(name), queue }
}

/// A shaper before a drop-tail queue.
pub(super) fn series() -> SeriesConfig {
    let shaper = TbfConfig { rate: rate(8), burst: 70_000, limit: Some(60_000), ..TbfConfig::default() };
    SeriesConfig { stages: vec![stage("shaper", QueueSpec::Tbf(shaper)), stage("last", pfifo(20))] }
}

pub(super) fn cases() -> Vec<Case> {
    vec![
        Case {
            name: "htb",
            make: |random| Box::new(Htb::new(HtbConfig { direct_qlen: 20, ..HtbConfig::default() }, random)),
            limit: Limit::Packets(20),
            holds: Some(20),
            // Without classes.
            one_queue: true,
            marks: false,
            drops: &[DropReason::Limit],
        },
        Case {
            name: "htb, shaped",
            make: |random| Box::new(Htb::new(htb(), random)),
            limit: Limit::Packets(60),
            // Two packets of the first class, one of the second, and the rest's limit of 20.
            holds: Some(23),
            one_queue: false,
            marks: true,
            drops: &[DropReason::Limit, DropReason::Delay],
        },
        Case {
            name: "hfsc",
            make: |random| Box::new(Hfsc::new(HfscConfig { direct_qlen: 20, ..HfscConfig::default() }, random)),
            limit: Limit::Packets(20),
            holds: Some(20),
            // Without classes.
            one_queue: true,
            marks: false,
            drops: &[DropReason::Limit],
        },
        Case {
            name: "hfsc, shaped",
            make: |random| Box::new(Hfsc::new(hfsc(), random)),
            limit: Limit::Packets(60),
            // As above.
            holds: Some(23),
            one_queue: false,
            marks: true,
            drops: &[DropReason::Limit, DropReason::Delay],
        },
        Case {
            name: "qfq",
            make: |random| Box::new(Qfq::new(QfqConfig { direct_qlen: 20, ..QfqConfig::default() }, random)),
            limit: Limit::Packets(20),
            holds: Some(20),
            // Without classes.
            one_queue: true,
            marks: false,
            drops: &[DropReason::Limit],
        },
        Case {
            name: "qfq, classes",
            make: |random| Box::new(Qfq::new(qfq(), random)),
            limit: Limit::Packets(60),
            // As above.
            holds: Some(23),
            one_queue: false,
            marks: true,
            // What CoDel drops leaves enough of the link for the others.
            drops: &[DropReason::Delay],
        },
        Case {
            name: "series",
            make: |random| Box::new(Series::new(SeriesConfig { stages: vec![stage("queue", pfifo(20))] }, random)),
            limit: Limit::Packets(20),
            holds: Some(20),
            one_queue: true,
            marks: false,
            drops: &[DropReason::Limit],
        },
        Case {
            name: "series, shaped",
            make: |random| Box::new(Series::new(series(), random)),
            // 60,000 bytes of the shortest packets, and 20 of the last queue.
            limit: Limit::Packets(1000),
            // Those of the last queue, and one that has just come to the first.
            holds: Some(21),
            one_queue: false,
            marks: false,
            drops: &[DropReason::Limit],
        },
    ]
}
