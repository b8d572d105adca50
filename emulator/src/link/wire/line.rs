//! A delay line that keeps the order.

use ackclock_packet::Packet;
use ackclock_units::{Ring, Time};

/// Packets in order of arrival.
#[derive(Debug)]
pub(in crate::link) struct Line {
    ring: Ring<OnWire>,
    /// How many of them, at the end, wait for their transmission, behind one that is being sent.
    waiting: usize,
    /// The time of the first arrival; [`Time::NEVER`] if there is none.
    next_at: Time,
}

/// Half a cache line.
#[derive(Clone, Copy, Debug)]
#[repr(align(32))]
struct OnWire {
    /// The time of its arrival, or, while it waits, the time since when.
    at: Time,
    packet: Packet,
}

impl Line {
    pub(super) fn new() -> Line {
        Line { ring: Ring::new(), waiting: 0, next_at: Time::NEVER }
    }

    /// A packet arrives at `at`, after all others and without its framing.
    #[inline(always)]
    pub(super) fn push(&mut self, at: Time, packet: &Packet, framing: u32) {
        if self.ring.is_empty() {
            self.next_at = at;
        }
        self.ring.push(OnWire { at, packet: Packet { wire_len: packet.wire_len - framing, ..*packet } });
    }

    /// A packet waits since `now` for its transmission, behind all others.
    #[inline(always)]
    pub(in crate::link) fn hold(&mut self, now: Time, packet: &Packet) {
        self.ring.push(OnWire { at: now, packet: *packet });
        self.waiting += 1;
    }

    /// The transmission of the first packet that waits begins: `arrival` is told since when it has
    /// waited, and its length, and returns the time of its arrival. Returns `false` if none waits.
    #[inline(always)]
    pub(in crate::link) fn begin(&mut self, arrival: impl FnOnce(Time, u32) -> Time) -> bool {
        let before = self.ring.len() - self.waiting;
        let Some(entry) = self.ring.get_mut(before) else { return false };
        entry.at = arrival(entry.at, entry.packet.wire_len);
        if before == 0 {
            self.next_at = entry.at;
        }
        self.waiting -= 1;
        true
    }

    /// Takes the packets that wait, with the times since when.
    pub(in crate::link) fn take_waiting(&mut self) -> impl Iterator<Item = (Time, Packet)> + use<> {
        let waiting = std::mem::take(&mut self.waiting);
        let mut taken: Vec<_> = (0..waiting).filter_map(|_| self.ring.pop_last()).collect();
        taken.reverse();
        taken.into_iter().map(|OnWire { at, packet }| (at, packet))
    }

    #[inline(always)]
    pub(super) fn next_at(&self) -> Time {
        self.next_at
    }

    #[inline(always)]
    pub(super) fn pop(&mut self) -> Option<(Time, Packet)> {
        let OnWire { at, packet } = self.ring.pop()?;
        self.review();
        Some((at, packet))
    }

    /// Takes the last one back.
    pub(in crate::link) fn pop_last(&mut self) -> Option<(Time, Packet)> {
        let OnWire { at, packet } = self.ring.pop_last()?;
        self.review();
        Some((at, packet))
    }

    #[inline(always)]
    fn review(&mut self) {
        self.next_at = self.ring.front().map_or(Time::NEVER, |first| first.at);
    }

    /// The n-th packet behind the first.
    #[inline(always)]
    pub(super) fn get(&self, n: usize) -> Option<&Packet> {
        self.ring.get(n).map(|entry| &entry.packet)
    }
}

#[cfg(test)]
mod tests {
    use std::collections::VecDeque;

    use ackclock_packet::Class;
    use ackclock_units::Ecn;
    use proptest::prelude::*;

    use super::*;

    fn packet(slot: u32) -> Packet {
        Packet { flow_hash: 1, slot, wire_len: 40, route: 0, hop: 0, ecn: Ecn::NotEct, class: Class::default() }
    }

    proptest! {
        #[test]
        fn a_line_is_a_queue(steps in prop::collection::vec(any::<bool>(), 0..300)) {
            let (mut line, mut model) = (Line::new(), VecDeque::new());
            for (n, push) in (0u32..).zip(steps) {
                let at = Time::from_micros(n.into());
                if push {
                    line.push(at, &Packet { wire_len: 54, ..packet(n) }, 14);
                    model.push_back((at, packet(n)));
                } else {
                    prop_assert_eq!(line.pop(), model.pop_front());
                }
                for n in [0, 1, 2, 300] {
                    prop_assert_eq!(line.get(n), model.get(n).map(|(_, packet)| packet));
                }
                prop_assert_eq!(line.next_at(), model.front().map_or(Time::NEVER, |&(at, _)| at));
            }
        }
    }
}
