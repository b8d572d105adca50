use super::*;
use crate::stub::{Ask, Stub, stub};
use crate::{Backlog, Dropped, Fifo, FifoConfig, Limit};

/// The fault of the discipline [`Wrong`].
#[derive(Clone, Copy, Debug, PartialEq)]
enum Fault {
    None,
    /// Keeps no third packet.
    Loses,
    /// Says that nothing waits although something does.
    SaysEmpty,
    /// Gives the first packet out again and again.
    Repeats,
    /// Drops the first packet again and again.
    DropsTwice,
    /// Gives out a packet that has never come.
    Invents,
    /// Marks whatever it has.
    Marks,
    /// Holds back until now.
    HoldsBack,
    /// Says so itself.
    Fails,
}

#[derive(Debug)]
struct Wrong {
    fault: Fault,
    fifo: Fifo<Described>,
    first: Option<Described>,
    failure: Option<Failure>,
    /// The number of packets that it should have, which it reports.
    should_have: u64,
}

impl QueueDisc<Described> for Wrong {
    fn enqueue(&mut self, now: Time, packet: Described, drops: &mut Drops<Described>) {
        self.should_have += 1;
        self.first.get_or_insert(packet);
        match self.fault {
            Fault::Loses if packet.number == 2 => {}
            Fault::DropsTwice if packet.number > 0 => {
                self.fifo.enqueue(now, packet, drops);
                drops.push(Dropped { packet: self.first.unwrap(), reason: DropReason::Early });
            }
            Fault::Fails if packet.number == 2 => {
                self.fifo.enqueue(now, packet, drops);
                self.failure = Some(Failure::new(now, "out of order"));
            }
            _ => self.fifo.enqueue(now, packet, drops),
        }
        self.should_have -= drops.len() as u64;
    }

    fn dequeue(&mut self, now: Time, drops: &mut Drops<Described>) -> Dequeue<Described> {
        let packet = |packet: Described| Dequeue::Packet(Entry { packet, enqueued_at: now });
        let dequeued = match self.fault {
            Fault::SaysEmpty => Dequeue::Empty,
            Fault::Repeats => packet(self.first.unwrap()),
            Fault::Invents => packet(Described { number: 77, slot: 77, ..self.first.unwrap() }),
            Fault::HoldsBack => Dequeue::NotBefore(now),
            Fault::Marks => match self.fifo.dequeue(now, drops) {
                Dequeue::Packet(mut entry) => {
                    entry.packet.set_ce();
                    Dequeue::Packet(entry)
                }
                other => other,
            },
            _ => self.fifo.dequeue(now, drops),
        };
        self.should_have = self.should_have.saturating_sub(u64::from(dequeued.packet().is_some()));
        dequeued
    }

    fn peek(&self) -> Option<&Entry<Described>> {
        self.fifo.peek()
    }

    fn backlog(&self) -> Backlog {
        Backlog { packets: self.should_have, ..self.fifo.backlog() }
    }

    fn books(&self) -> &Books {
        self.fifo.books()
    }

    fn failure(&self) -> Option<&Failure> {
        self.failure.as_ref()
    }
}

fn queue(fault: Fault) -> Box<dyn QueueDisc<Stub>> {
    let build = move |_: &[f64], _| -> Box<dyn QueueDisc<Described>> {
        let fifo = Fifo::new(FifoConfig { limit: Limit::Packets(5) });
        Box::new(Wrong { fault, fifo, first: None, failure: None, should_have: 0 })
    };
    let own = Arc::new(OwnQueue::new("wrong", build));
    Box::new(OwnQueueConfig::new(own).build(Random::for_component(1, 0, "wrong")))
}

/// Offers six packets and asks for them; the ids in the order in which they leave, then those that
/// were dropped. The books balance all along.
fn passed(queue: &mut dyn QueueDisc<Stub>) -> (Vec<u32>, Vec<u32>) {
    let mut drops = Drops::new();
    let mut left = Vec::new();
    for id in 0..6 {
        queue.enqueue(Time::from_millis(u64::from(id)), stub(id, 100), &mut drops);
        assert!(queue.counters().balance(queue.backlog()), "{:?}", queue.counters());
    }
    for ms in 10..20 {
        left.extend(queue.ask(Time::from_millis(ms), &mut drops).map(|entry| entry.packet.id));
        assert!(queue.counters().balance(queue.backlog()), "{:?}", queue.counters());
    }
    (left, drops.into_iter().map(|drop| drop.packet.id).collect())
}

#[test]
fn one_that_keeps_the_rules_is_what_it_is_inside() {
    let mut queue = queue(Fault::None);
    assert_eq!(passed(&mut *queue), (vec![0, 1, 2, 3, 4], vec![5]));
    queue.audit(Time::from_millis(30));
    assert_eq!(queue.failure(), None);
    assert_eq!((queue.counters().dropped_on_enqueue.packets, queue.counters().dequeued.packets), (1, 5));
}

#[test]
fn one_that_is_replaced_gives_up_every_packet_and_accounts_for_it() {
    for (fault, what) in [(Fault::None, None), (Fault::Loses, Some("has lost 1 packets")), (Fault::HoldsBack, None)] {
        let (mut queue, mut drops) = (queue(fault), Drops::new());
        for id in 0..4 {
            queue.enqueue(Time::from_millis(1), stub(id, 100), &mut drops);
        }
        queue.purge(Time::from_millis(2), &mut drops);
        let given_up: Vec<_> = drops.iter().map(|drop| (drop.packet.id, drop.reason)).collect();
        assert_eq!(given_up, [0, 1, 2, 3].map(|id| (id, DropReason::Purge)), "{fault:?}");
        let failure = queue.failure().map(ToString::to_string);
        assert_eq!(failure.is_some(), what.is_some(), "{fault:?}: {failure:?}");
        assert!(what.is_none_or(|what| failure.unwrap().contains(what)), "{fault:?}");
    }
}

#[test]
fn each_broken_rule_is_named_and_every_packet_ends_once() {
    for (fault, at, what) in [
        (Fault::SaysEmpty, 10, "says that nothing waits, of 5 packets"),
        (Fault::Repeats, 11, "gives out packet 0, which it no longer has"),
        (Fault::DropsTwice, 2, "drops packet 0, which it no longer has"),
        (Fault::Invents, 10, "gives out packet 77, which it no longer has"),
        (Fault::Marks, 10, "marks packet 0, which cannot carry a mark"),
        (Fault::HoldsBack, 10, "holds packets back until a time that is not later than now"),
        (Fault::Fails, 2, "out of order"),
    ] {
        let mut queue = queue(fault);
        let (mut all, dropped) = passed(&mut *queue);
        let failure = queue.failure().unwrap_or_else(|| panic!("{fault:?} is noticed")).clone();
        assert_eq!(failure.at, Time::from_millis(at), "{fault:?}: {failure}");
        assert!(failure.what.contains(what), "{fault:?}: {failure}");
        all.extend(dropped);
        all.sort_unstable();
        assert_eq!(all, [0, 1, 2, 3, 4, 5], "{fault:?}");
    }
}

#[test]
fn what_is_lost_behind_others_is_found_when_the_run_is_over() {
    let mut queue = queue(Fault::Loses);
    let mut drops = Drops::new();
    // Something waits all the time, so that no call is wrong by itself.
    for id in 0..6 {
        queue.enqueue(Time::from_millis(u64::from(id)), stub(id, 100), &mut drops);
        if id > 3 {
            queue.ask(Time::from_millis(u64::from(id)), &mut drops);
        }
    }
    assert_eq!(queue.failure(), None);
    let (backlog, counters) = (queue.backlog(), *queue.counters());
    queue.audit(Time::from_millis(9));
    let failure = queue.failure().expect("it is noticed");
    assert!(failure.what.contains("has lost 1 packets, first packet 2"), "{failure}");
    assert_eq!((queue.backlog(), *queue.counters()), (backlog, counters), "an audit changes no books");
}

#[test]
fn parameters_change_where_there_is_a_hook() {
    let mut fixed = queue(Fault::None);
    let own = OwnQueue::new("wrong", |_, _| unreachable!("it is not made"));
    let config = OwnQueueConfig::new(Arc::new(own.clone()));
    let changed = fixed.change(Time::ZERO, &config, &mut Drops::new());
    assert_eq!(changed, Err(ChangeError::OwnIsFixed));
    let other = OwnQueueConfig::new(Arc::new(OwnQueue::new("other", |_, _| unreachable!("it is not made"))));
    assert_eq!(fixed.change(Time::ZERO, &other, &mut Drops::new()), Err(ChangeError::OtherDiscipline));
}
