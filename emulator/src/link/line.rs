//! The delay line of a link, and what a packet that is held back has to wait for.

use std::cmp::Reverse;
use std::collections::{BinaryHeap, VecDeque};

use ackclock_packet::Packet;
use ackclock_units::Time;

/// Packets on the wire in order of arrival: a queue, or a heap where jitter may change the order.
#[derive(Debug)]
pub(super) enum DelayLine {
    Fifo(VecDeque<(Time, Packet)>),
    Heap { heap: BinaryHeap<Reverse<OnWire>>, number: u64 },
}

/// A packet that is held back.
#[derive(Debug)]
pub(super) struct HeldBack {
    pub(super) packet: Packet,
    /// It continues when this many have passed, ...
    pub(super) until_passed: u64,
    /// ... and arrives then at the latest.
    pub(super) arrives_by: Time,
}

/// Ordered by arrival, then by transmission.
#[derive(Debug)]
pub(super) struct OnWire {
    at: Time,
    number: u64,
    packet: Packet,
}

impl PartialEq for OnWire {
    fn eq(&self, other: &OnWire) -> bool {
        self.cmp(other).is_eq()
    }
}

impl Eq for OnWire {}

impl PartialOrd for OnWire {
    fn partial_cmp(&self, other: &OnWire) -> Option<std::cmp::Ordering> {
        Some(self.cmp(other))
    }
}

impl Ord for OnWire {
    fn cmp(&self, other: &OnWire) -> std::cmp::Ordering {
        (self.at, self.number).cmp(&(other.at, other.number))
    }
}

impl DelayLine {
    /// An empty one; `reorders` is whether a packet may arrive before one that was sent before it.
    pub(super) fn new(reorders: bool) -> DelayLine {
        if reorders { DelayLine::Heap { heap: BinaryHeap::new(), number: 0 } } else { DelayLine::Fifo(VecDeque::new()) }
    }

    #[inline]
    pub(super) fn push(&mut self, at: Time, packet: Packet) {
        match self {
            DelayLine::Fifo(line) => line.push_back((at, packet)),
            DelayLine::Heap { heap, number } => {
                *number += 1;
                heap.push(Reverse(OnWire { at, number: *number, packet }));
            }
        }
    }

    #[inline]
    pub(super) fn next_at(&self) -> Time {
        match self {
            DelayLine::Fifo(line) => line.front().map_or(Time::NEVER, |&(at, _)| at),
            DelayLine::Heap { heap, .. } => heap.peek().map_or(Time::NEVER, |Reverse(first)| first.at),
        }
    }

    #[inline]
    pub(super) fn pop(&mut self) -> Option<(Time, Packet)> {
        match self {
            DelayLine::Fifo(line) => line.pop_front(),
            DelayLine::Heap { heap, .. } => heap.pop().map(|Reverse(first)| (first.at, first.packet)),
        }
    }
}
