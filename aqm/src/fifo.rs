//! Drop-tail: `pfifo` (limit in packets) and `bfifo` (limit in bytes).
//!
//! # Source
//! Linux `sch_fifo`: a packet is taken in if the queue stays within its limit with it.
//!
//! # Departures
//! tc's default limit is the device's `txqueuelen` (times the MTU for `bfifo`); a link here has
//! none, so it is taken as the 1000 packets of a Linux Ethernet device.

use std::any::Any;

use ackclock_units::Time;
use ackclock_units::parameter::{Configurable, Domain, Visitor};

use crate::change::parameters;
use crate::discipline::{Discipline, LARGEST_PACKET, MAX};
use crate::{Books, ChangeError, Dequeue, DropReason, Drops, Entry, Limit, QueueDisc, Queued, Store};

/// Parameters of a drop-tail queue.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct FifoConfig {
    /// The most that waits. Default: 1000 packets.
    pub limit: Limit,
}

impl Default for FifoConfig {
    fn default() -> FifoConfig {
        FifoConfig { limit: Limit::Packets(1000) }
    }
}

impl FifoConfig {
    /// `bfifo` out of the box: the limit of `pfifo` times an Ethernet frame.
    pub fn bfifo() -> FifoConfig {
        FifoConfig { limit: Limit::Bytes(1000 * 1514) }
    }
}

impl Configurable for FifoConfig {
    fn parameters(&mut self, v: &mut impl Visitor) {
        match &mut self.limit {
            Limit::Packets(limit) => v.parameter("limit", Domain::Packets(1, MAX), "tc-pfifo(8)", limit),
            Limit::Bytes(limit) => v.parameter("limit", Domain::Bytes(1, MAX), "tc-bfifo(8)", limit),
        }
    }
}

impl Discipline for FifoConfig {}

/// A drop-tail queue.
#[derive(Debug)]
pub struct Fifo<P> {
    config: FifoConfig,
    store: Store<P>,
}

impl<P: Queued> Fifo<P> {
    /// An empty queue.
    pub fn new(config: FifoConfig) -> Fifo<P> {
        Fifo { config, store: Store::new() }
    }

    /// Returns `true` if a packet of `bytes` bytes is taken in.
    #[inline]
    pub fn has_room(&self, bytes: u32) -> bool {
        let backlog = self.store.backlog();
        match self.config.limit {
            Limit::Packets(limit) => backlog.packets < limit,
            Limit::Bytes(limit) => backlog.bytes + u64::from(bytes) <= limit,
        }
    }

    // For an owner that keeps the waiting packets itself ([`QueueDisc::drop_tail`]).

    /// Counts a packet of `bytes` bytes that is taken in, and waits with the owner.
    #[inline]
    pub fn count_in(&mut self, bytes: u32) {
        self.store.count_in(bytes);
    }

    /// Counts that the first of those packets is sent.
    #[inline]
    pub fn count_out(&mut self, bytes: u32) {
        self.store.count_out(bytes);
    }

    /// Takes the next of those packets over, which was counted when it came.
    pub fn hold(&mut self, enqueued_at: Time, packet: P) {
        self.store.hold(enqueued_at, packet);
    }
}

impl<P: Queued + Send> QueueDisc<P> for Fifo<P> {
    fn enqueue(&mut self, now: Time, packet: P, drops: &mut Drops<P>) {
        if self.has_room(packet.wire_len()) {
            self.store.admit(now, packet);
        } else {
            self.store.refuse(packet, DropReason::Limit, drops);
        }
    }

    fn dequeue(&mut self, _now: Time, _drops: &mut Drops<P>) -> Dequeue<P> {
        self.store.send()
    }

    fn passes(&self) -> bool {
        match self.config.limit {
            Limit::Packets(limit) => limit > 0,
            Limit::Bytes(limit) => limit >= LARGEST_PACKET,
        }
    }

    fn pass(&mut self, bytes: u32) {
        self.store.pass(bytes);
    }

    fn drop_tail(&self) -> Option<Limit> {
        Some(self.config.limit)
    }

    /// Another limit. What waits beyond it stays, as in Linux (`sch_fifo` has `fifo_init` for
    /// this); nothing is taken in until there is room.
    fn change(&mut self, _now: Time, config: &dyn Any, _drops: &mut Drops<P>) -> Result<(), ChangeError> {
        let config = *parameters::<FifoConfig>(config)?;
        match (self.config.limit, config.limit) {
            (Limit::Packets(_), Limit::Packets(_)) | (Limit::Bytes(_), Limit::Bytes(_)) => self.config = config,
            _ => return Err(ChangeError::OtherDiscipline),
        }
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
    use crate::Entry;
    use crate::stub::{Ask, stub};

    /// Offers packets of the given sizes; the ids of those refused.
    fn refused(limit: Limit, sizes: &[u32]) -> Vec<u32> {
        let mut queue = Fifo::new(FifoConfig { limit });
        let mut drops = Drops::new();
        for (id, &bytes) in sizes.iter().enumerate() {
            queue.enqueue(Time::ZERO, stub(id as u32, bytes), &mut drops);
        }
        assert!(drops.iter().all(|drop| drop.reason == DropReason::Limit));
        drops.into_iter().map(|drop| drop.packet.id).collect()
    }

    #[test]
    fn pfifo_counts_packets() {
        assert_eq!(refused(Limit::Packets(2), &[1500, 40, 40, 1500]), [2, 3]);
        assert_eq!(refused(Limit::Packets(0), &[40]), [0]);
    }

    #[test]
    fn bfifo_counts_bytes_and_takes_what_still_fits() {
        assert_eq!(refused(Limit::Bytes(3000), &[1500, 1400, 101, 100, 1]), [2, 4]);
        assert_eq!(refused(Limit::Bytes(u64::MAX), &[u32::MAX, u32::MAX]), []);
    }

    #[test]
    fn packets_leave_in_order_with_the_time_of_their_arrival() {
        let mut queue = Fifo::new(FifoConfig::default());
        let mut drops = Drops::new();
        for id in 0..3 {
            queue.enqueue(Time::from_millis(u64::from(id)), stub(id, 100), &mut drops);
        }
        for id in 0..3 {
            let expected = Entry { packet: stub(id, 100), enqueued_at: Time::from_millis(u64::from(id)) };
            assert_eq!(queue.ask(Time::from_millis(9), &mut drops), Some(expected));
        }
        assert_eq!(queue.ask(Time::from_millis(9), &mut drops), None);
        assert_eq!(drops, []);
    }
}
