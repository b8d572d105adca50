//! A delay line that keeps the order.

use ackclock_packet::Packet;
use ackclock_units::Time;

/// Packets in order of arrival, in a ring that grows to the most that ever were on their way.
#[derive(Debug)]
pub(in crate::link) struct Line {
    /// A power of two of them, or none.
    ring: Box<[OnWire]>,
    first: usize,
    length: usize,
    /// The time of the first arrival; [`Time::NEVER`] if there is none.
    next_at: Time,
}

/// Half a cache line.
#[derive(Clone, Copy, Debug)]
#[repr(align(32))]
struct OnWire {
    at: Time,
    packet: Packet,
}

impl Line {
    pub(super) fn new() -> Line {
        Line { ring: Box::default(), first: 0, length: 0, next_at: Time::NEVER }
    }

    /// A packet arrives at `at`, after all others and without its framing.
    #[inline(always)]
    pub(super) fn push(&mut self, at: Time, packet: &Packet, framing: u32) {
        if self.length == self.ring.len() {
            self.grow(packet);
        }
        let last = self.place(self.length);
        let entry = &mut self.ring[last];
        (entry.at, entry.packet) = (at, *packet);
        entry.packet.wire_len -= framing;
        if self.length == 0 {
            self.next_at = at;
        }
        self.length += 1;
    }

    #[inline(always)]
    pub(super) fn next_at(&self) -> Time {
        self.next_at
    }

    #[inline(always)]
    pub(super) fn pop(&mut self) -> Option<(Time, Packet)> {
        if self.length == 0 {
            return None;
        }
        let OnWire { at, packet } = self.ring[self.first];
        self.first = self.place(1);
        self.length -= 1;
        self.next_at = if self.length == 0 { Time::NEVER } else { self.ring[self.first].at };
        Some((at, packet))
    }

    /// Takes the last one back.
    pub(super) fn pop_last(&mut self) -> Option<(Time, Packet)> {
        self.length = self.length.checked_sub(1)?;
        if self.length == 0 {
            self.next_at = Time::NEVER;
        }
        let OnWire { at, packet } = self.ring[self.place(self.length)];
        Some((at, packet))
    }

    /// The n-th packet behind the first.
    #[inline(always)]
    pub(super) fn get(&self, n: usize) -> Option<&Packet> {
        (n < self.length).then(|| &self.ring[self.place(n)].packet)
    }

    /// The place of the n-th entry behind the first.
    #[inline(always)]
    fn place(&self, n: usize) -> usize {
        self.first.wrapping_add(n) & self.ring.len().wrapping_sub(1)
    }

    /// Twice the places; free ones hold anything.
    #[cold]
    #[inline(never)]
    fn grow(&mut self, anything: &Packet) {
        let anything = OnWire { at: Time::NEVER, packet: *anything };
        let mut ring = Vec::with_capacity((2 * self.ring.len()).max(4));
        ring.extend((0..self.length).map(|n| self.ring[self.place(n)]));
        ring.resize(ring.capacity().next_power_of_two(), anything);
        (self.ring, self.first) = (ring.into_boxed_slice(), 0);
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
