//! A queue discipline that drops from the front on overflow, so that the sender learns of congestion
//! earlier.
//!
//!     cargo run -p ackclock-aqm --example drop_front

use ackclock_aqm::{Books, Dequeue, DropReason, Drops, Entry, QueueDisc, Queued, Store};
use ackclock_units::{Ecn, Time};

/// Drop-tail turned round: a full queue drops its oldest packet.
#[derive(Debug)]
struct DropFront<P> {
    limit: u64,
    store: Store<P>,
}

impl<P: Queued + Send> QueueDisc<P> for DropFront<P> {
    fn enqueue(&mut self, now: Time, packet: P, drops: &mut Drops<P>) {
        self.store.admit(now, packet);
        while self.store.backlog().packets > self.limit
            && let Some(oldest) = self.store.take()
        {
            self.store.discard(oldest, DropReason::Limit, drops);
        }
    }

    fn dequeue(&mut self, _now: Time, _drops: &mut Drops<P>) -> Dequeue<P> {
        self.store.send()
    }

    fn peek(&self) -> Option<&Entry<P>> {
        self.store.front()
    }

    fn books(&self) -> &Books {
        self.store.books()
    }
}

/// A packet with a number.
#[derive(Debug)]
struct Packet(u32);

impl Queued for Packet {
    fn wire_len(&self) -> u32 {
        1500
    }
    fn ecn(&self) -> Ecn {
        Ecn::NotEct
    }
    fn set_ce(&mut self) {}
    fn flow_hash(&self) -> u64 {
        0
    }
}

fn main() {
    let mut queue = DropFront { limit: 2, store: Store::new() };
    let mut drops = Drops::new();
    for number in 0..3 {
        queue.enqueue(Time::ZERO, Packet(number), &mut drops);
    }
    assert_eq!(drops[0].packet.0, 0);
    let order: Vec<u32> =
        std::iter::from_fn(|| queue.dequeue(Time::ZERO, &mut drops).packet()).map(|entry| entry.packet.0).collect();
    assert_eq!(order, [1, 2]);
}
