use ackclock_units::{Ecn, Rate, Span};

use super::*;
use crate::stub::{Stub, stub};
use crate::{CodelConfig, FifoConfig, Limit, QueueSpec, Series, SeriesConfig, TbfConfig};

fn of(queues: Vec<QueueSpec>) -> SeriesConfig {
    let stage = |(number, queue): (usize, QueueSpec)| Stage { name: format!("q{number}").into(), queue };
    SeriesConfig { stages: queues.into_iter().enumerate().map(stage).collect() }
}

fn series(queues: Vec<QueueSpec>) -> Series<Stub> {
    Series::new(of(queues), Random::for_component(1, 0, "series"))
}

/// A shaper of a byte in a microsecond that sends 1000 bytes at once.
fn shaper(mbit: u64) -> QueueSpec {
    let rate = Rate::from_bps(1_000_000 * mbit).unwrap();
    QueueSpec::Tbf(TbfConfig { rate, burst: 1000, limit: Some(100_000), ..TbfConfig::default() })
}

fn pfifo(limit: u64) -> QueueSpec {
    QueueSpec::Pfifo(FifoConfig { limit: Limit::Packets(limit) })
}

fn us(micros: u64) -> Time {
    Time::from_micros(micros)
}

/// Packets of 1000 bytes through 8 Mbit/s and then 4: the first passes both at once, and one comes
/// to the second queue each millisecond, of which every second one leaves it then.
#[test]
fn packets_pass_from_queue_to_queue_at_their_times() {
    let mut queue = series(vec![shaper(8), shaper(4), pfifo(10)]);
    let (mut drops, mut now, mut left) = (Drops::new(), Time::ZERO, Vec::new());
    (0..4).for_each(|id| queue.enqueue(now, stub(id, 1000), &mut drops));
    loop {
        match queue.dequeue(now, &mut drops) {
            Dequeue::Packet(entry) => left.push((entry.packet.id, now, entry.enqueued_at)),
            Dequeue::NotBefore(later) => now = later,
            Dequeue::Empty => break,
        }
    }
    let expected = [(0, 0), (1, 2000), (2, 4000), (3, 6000)].map(|(id, at)| (id, us(at), Time::ZERO));
    assert_eq!((left, drops.len()), (expected.to_vec(), 0));
}

/// A link that asks late finds what came to the last queue in the meantime: at 2.5 ms the packets of
/// 0, 1 and 2 ms, of which two have room.
#[test]
fn a_late_call_changes_nothing() {
    let mut queue = series(vec![shaper(8), pfifo(2)]);
    let mut drops = Drops::new();
    (0..4).for_each(|id| queue.enqueue(Time::ZERO, stub(id, 1000), &mut drops));
    let mut backlogs = Vec::new();
    let first = queue.dequeue(us(2500), &mut drops).packet().unwrap();
    QueueDisc::<Stub>::classes(&queue, &mut |class| backlogs.push((class.name.to_owned(), class.backlog.packets)));
    assert_eq!((first.packet.id, backlogs), (0, vec![("q0".to_owned(), 1), ("q1".to_owned(), 1)]));
    assert_eq!(drops.iter().map(|drop| (drop.packet.id, drop.reason)).collect::<Vec<_>>(), [(2, DropReason::Limit)]);
    let counters = queue.counters();
    assert_eq!((counters.dropped_on_enqueue.packets, counters.dropped_on_dequeue.packets), (0, 1));
    assert!(counters.balance(queue.backlog()));
}

/// A mark of a queue is on the packet that leaves: CoDel behind the shaper, with a target of 0 and an
/// interval of 1 ms, marks once packets have waited for that.
#[test]
fn marks_are_on_the_packets() {
    let codel =
        CodelConfig { ecn: true, target: Span::ZERO, interval: Span::from_millis(1), mtu: 0, ..CodelConfig::default() };
    let mut queue = series(vec![shaper(80), QueueSpec::Codel(codel)]);
    let mut drops = Drops::new();
    for id in 0..40 {
        queue.enqueue(Time::ZERO, Stub { ecn: Ecn::Ect0, ..stub(id, 1000) }, &mut drops);
    }
    let marked = (1..=40).filter_map(|n| queue.dequeue(us(1000 * n), &mut drops).packet());
    let marked = marked.filter(|entry| entry.packet.ecn == Ecn::Ce).count() as u64;
    assert!(marked > 0 && queue.counters().marked.packets == marked, "{marked}");
}

#[test]
fn a_series_that_makes_no_sense_is_refused() {
    assert_eq!(of(vec![shaper(1), pfifo(1)]).problem(), None);
    let problem = |queues| of(queues).problem().unwrap_or_default();
    assert!(problem(vec![pfifo(1), pfifo(1)]).starts_with("nothing waits behind a queue that has no rate of its own"));
    assert!(problem(Vec::new()).starts_with("a series has at least one queue"));
    assert!(
        problem(vec![shaper(1), QueueSpec::by_name("series").unwrap()]).starts_with("a queue of a series is no series")
    );
    let mut twice = of(vec![shaper(1), pfifo(1)]);
    twice.stages[1].name = Arc::clone(&twice.stages[0].name);
    assert_eq!(twice.problem(), Some("two queues of a series have the same name"));
}

/// The parameters change, with those before them as they were if one is refused; the kinds do not.
#[test]
fn parameters_of_queues_change() {
    let mut queue = series(vec![shaper(8), pfifo(2)]);
    let mut drops = Drops::new();
    assert_eq!(queue.change(Time::ZERO, &of(vec![shaper(8), pfifo(1)]), &mut drops), Ok(()));
    (0..3).for_each(|id| queue.enqueue(Time::ZERO, stub(id, 1000), &mut drops));
    queue.dequeue(us(5000), &mut drops).packet().unwrap();
    assert_eq!(drops.len(), 2);
    let other = of(vec![shaper(8), QueueSpec::by_name("codel").unwrap()]);
    assert_eq!(queue.change(us(6000), &other, &mut drops), Err(ChangeError::Fixed("the queues of a series")));
}
