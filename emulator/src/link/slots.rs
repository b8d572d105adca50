//! A transmitter that sends in slots: nothing between them, several packets in one.
//!
//! # Source
//! Linux `net/sched/sch_netem.c`, `get_slot_next` and `netem_dequeue`; `tc-netem(8)`, `slot`.
//!
//! # Departures
//! - Packets wait for slots in the queue discipline and propagate afterwards; in netem they
//!   propagate first and wait in netem's own list, which no discipline sees.
//! - A packet that comes to an idle link after a slot has begun waits for another one, as in netem.
//!   netem also draws a slot when that packet is enqueued, before its delay, and uses it if it
//!   begins later than the packet is due.
//! - Packets of a slot are sent one after another at the rate of the link; one that comes meanwhile
//!   may join them. The slot ends with the packet by which it is full, counted from its start.
//! - The bytes of a packet are those of IP and the link's framing.

use ackclock_units::{Random, Span, Time};

use crate::impairments::{Correlated, JitterDistribution, JitterTable};

/// The times and capacities of slots.
#[derive(Clone, Debug, Default, PartialEq)]
pub struct Slots {
    /// Time to the next slot from the packet that fills a slot, or that comes after it has begun.
    pub delay: Span,
    /// Random delay: uniform from 0 to this, or a deviation around the delay.
    pub jitter: Span,
    /// The distribution of jitter.
    pub jitter_distribution: JitterDistribution,
    /// A table in place of the distribution.
    pub jitter_table: Option<JitterTable>,
    /// The most packets of a slot.
    pub packets: Option<u64>,
    /// Bytes of a slot: the packet that reaches them is its last.
    pub bytes: Option<u64>,
}

/// The slot that has begun or that comes next.
#[derive(Debug)]
pub(super) struct Slot {
    slots: Slots,
    random: Correlated,
    pub(super) begins: Time,
    /// The rest of the slot's capacity.
    packets: u64,
    bytes: u64,
}

impl Slot {
    pub(super) fn new(slots: Slots, random: &Random) -> Slot {
        let random = Random::for_component(random.clone().bits(), 0, "slots");
        let random = Correlated::new(random, 0.0);
        let mut first = Slot { slots, random, begins: Time::ZERO, packets: 0, bytes: 0 };
        first.fill(Time::ZERO);
        first
    }

    fn fill(&mut self, begins: Time) {
        self.begins = begins;
        self.packets = self.slots.packets.unwrap_or(u64::MAX);
        self.bytes = self.slots.bytes.unwrap_or(u64::MAX);
    }

    /// The next slot, as of `now`.
    pub(super) fn draw(&mut self, now: Time) {
        let Slots { delay, jitter, jitter_distribution, ref jitter_table, .. } = self.slots;
        let table = jitter_table.as_ref().map_or(jitter_distribution.table(), |table| Some(table.entries()));
        let begins = self.random.delay(now, now + delay, jitter, table);
        self.fill(begins);
    }

    /// Takes a packet's share of the slot at `now`.
    pub(super) fn take(&mut self, now: Time, bytes: u32) {
        self.packets -= 1;
        self.bytes = self.bytes.saturating_sub(bytes.into());
        if self.packets == 0 || self.bytes == 0 {
            self.draw(now);
        }
    }
}
