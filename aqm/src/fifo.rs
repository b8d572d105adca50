//! Drop-tail: `pfifo` (limit in packets) and `bfifo` (limit in bytes).
//!
//! # Source
//! Linux `sch_fifo`: a packet is taken in if the queue stays within its limit with it.
//!
//! # Departures
//! tc's default limit is the device's `txqueuelen` (times the MTU for `bfifo`); a link here has none, so it is taken as the
//! 1000 packets of a Linux Ethernet device.

use ackclock_units::Time;

use crate::{Backlog, Counters, DropReason, Drops, Entry, Probe, QueueDisc, Queued, Store};

/// A queue limit, in the unit that the discipline counts in.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Limit {
    /// At most this many packets (`pfifo`).
    Packets(u64),
    /// At most this many bytes (`bfifo`).
    Bytes(u64),
}

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
}

impl<P: Queued + Send> QueueDisc<P> for Fifo<P> {
    fn enqueue(&mut self, now: Time, packet: P, drops: &mut Drops<P>) {
        let backlog = self.store.backlog();
        let fits = match self.config.limit {
            Limit::Packets(limit) => backlog.packets < limit,
            Limit::Bytes(limit) => backlog.bytes + u64::from(packet.wire_len()) <= limit,
        };
        if fits {
            self.store.admit(now, packet);
        } else {
            self.store.refuse(packet, DropReason::Limit, drops);
        }
    }

    fn dequeue(&mut self, _now: Time, _drops: &mut Drops<P>) -> Option<Entry<P>> {
        let entry = self.store.take()?;
        Some(self.store.release(entry))
    }

    fn backlog(&self) -> Backlog {
        self.store.backlog()
    }

    fn counters(&self) -> &Counters {
        self.store.counters()
    }

    fn probe(&self) -> Probe {
        Probe::default()
    }
}
