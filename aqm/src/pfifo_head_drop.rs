//! Head drop: a packet that finds the queue full takes the place of the one that has waited
//! longest.
//!
//! The sender learns of the loss a queueing delay earlier than with drop-tail, and what is
//! delivered is the newest.
//!
//! # Source
//! Linux 6.12 `net/sched/sch_fifo.c` (`pfifo_tail_enqueue`): the queue that is full drops its head,
//! one packet for each arrival, and then takes the new one in.
//!
//! # Departures
//! - tc's default limit is the device's `txqueuelen`, here 1000 packets, as for `pfifo`.
//! - The kernel tells a sender on the same machine (`NET_XMIT_CN`), whose TCP reduces its window at
//!   once; senders here learn of the loss by their ACKs.

use std::any::Any;

use ackclock_units::parameter::Domain;
use ackclock_units::{Time, configuration};

use crate::change::parameters;
use crate::discipline::{Discipline, MAX};
use crate::{Books, ChangeError, Dequeue, DropReason, Drops, Entry, QueueDisc, Queued, Store};

configuration! {
/// Parameters of head drop.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct HeadDropConfig {
    /// The most packets that wait. Default: 1000.
    pub limit: u64 = 1000 => (Domain::Packets(1, MAX), "tc-pfifo(8)");
}
}

impl Discipline for HeadDropConfig {}

/// A queue that drops its head when it is full.
#[derive(Debug)]
pub struct HeadDrop<P> {
    config: HeadDropConfig,
    store: Store<P>,
}

impl<P: Queued> HeadDrop<P> {
    /// An empty queue.
    pub fn new(config: HeadDropConfig) -> HeadDrop<P> {
        HeadDrop { config, store: Store::new() }
    }
}

impl<P: Queued + Send> QueueDisc<P> for HeadDrop<P> {
    fn enqueue(&mut self, now: Time, packet: P, drops: &mut Drops<P>) {
        if self.store.backlog().packets >= self.config.limit
            && let Some(head) = self.store.take()
        {
            self.store.discard(head, DropReason::Limit, drops);
        }
        self.store.admit(now, packet);
    }

    fn dequeue(&mut self, _now: Time, _drops: &mut Drops<P>) -> Dequeue<P> {
        self.store.send()
    }

    fn passes(&self) -> bool {
        true
    }

    fn pass(&mut self, bytes: u32) {
        self.store.pass(bytes);
    }

    /// Another limit. What waits beyond it stays, as in Linux (`fifo_hd_init`), and each arrival
    /// replaces one packet until the queue has drained.
    fn change(&mut self, _now: Time, config: &dyn Any, _drops: &mut Drops<P>) -> Result<(), ChangeError> {
        let config = *parameters::<HeadDropConfig>(config)?;
        self.config = config;
        Ok(())
    }

    fn peek(&self) -> Option<&Entry<P>> {
        self.store.front()
    }

    fn books(&self) -> &Books {
        self.store.books()
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::stub::{Ask, Stub, stub};

    /// Offers packets with these numbers; returns the numbers of those discarded.
    fn discarded(queue: &mut HeadDrop<Stub>, ids: std::ops::Range<u32>) -> Vec<u32> {
        let mut drops = Drops::new();
        for id in ids {
            queue.enqueue(Time::ZERO, stub(id, 100), &mut drops);
        }
        assert!(drops.iter().all(|drop| drop.reason == DropReason::Limit));
        drops.into_iter().map(|drop| drop.packet.id).collect()
    }

    fn sent(queue: &mut HeadDrop<Stub>) -> Vec<u32> {
        let mut drops = Drops::new();
        std::iter::from_fn(|| queue.ask(Time::ZERO, &mut drops)).map(|entry| entry.packet.id).collect()
    }

    /// Packets 0 to 2 fill the queue; 3 and 4 each push out the oldest, 0 and 1.
    #[test]
    fn a_full_queue_drops_the_packet_that_has_waited_longest() {
        let mut queue = HeadDrop::new(HeadDropConfig { limit: 3 });
        assert_eq!(discarded(&mut queue, 0..5), [0, 1]);
        let books = queue.counters();
        assert_eq!((books.enqueued.packets, books.dropped_on_enqueue.packets), (5, 0));
        assert_eq!(books.dropped_on_dequeue.packets, 2);
        assert_eq!(sent(&mut queue), [2, 3, 4]);
    }

    /// `pfifo_tail_enqueue` removes one packet per arrival, however far the queue is over its limit,
    /// and takes a packet in even if none may wait.
    #[test]
    fn an_arrival_replaces_one_packet() {
        let mut queue = HeadDrop::new(HeadDropConfig { limit: 4 });
        assert_eq!(discarded(&mut queue, 0..4), []);
        queue.change(Time::ZERO, &HeadDropConfig { limit: 2 }, &mut Drops::new()).expect("it changes");
        assert_eq!(discarded(&mut queue, 4..6), [0, 1]);
        assert_eq!(sent(&mut queue), [2, 3, 4, 5]);
        queue.change(Time::ZERO, &HeadDropConfig { limit: 0 }, &mut Drops::new()).expect("it changes");
        assert_eq!(discarded(&mut queue, 6..8), [6]);
    }
}
