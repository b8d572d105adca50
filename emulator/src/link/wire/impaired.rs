//! A wire on which packets are lost, doubled, corrupted, delayed and held back.

use std::cmp::Reverse;
use std::collections::{BinaryHeap, VecDeque};

use ackclock_packet::Packet;
use ackclock_units::{Span, Time};

use crate::LinkEventKind;
use crate::impairments::{HoldBack, WireFates};

/// Packets behind the transmitter, and the one in it.
#[derive(Debug)]
pub(in crate::link) struct Impaired {
    fate: WireFates,
    /// The packet that is being transmitted, if one is.
    sending: Option<Packet>,
    line: DelayLine,
    /// Packets held back until others have passed, in order of transmission.
    held: VecDeque<HeldBack>,
    /// Number of packets that were not held back, so far.
    passed: u64,
}

/// Packets on the wire in order of arrival: a queue, or a heap where jitter may change the order.
#[derive(Debug)]
enum DelayLine {
    Fifo(VecDeque<(Time, Packet)>),
    Heap { heap: BinaryHeap<Reverse<ImpairedPacket>>, number: u64 },
}

/// A packet that is held back.
#[derive(Debug)]
struct HeldBack {
    packet: Packet,
    /// It continues when this many have passed, ...
    until_passed: u64,
    /// ... and arrives then at the latest.
    arrives_by: Time,
}

/// Ordered by arrival, then by transmission.
#[derive(Debug)]
struct ImpairedPacket {
    at: Time,
    number: u64,
    packet: Packet,
}

impl PartialEq for ImpairedPacket {
    fn eq(&self, other: &ImpairedPacket) -> bool {
        self.cmp(other).is_eq()
    }
}

impl Eq for ImpairedPacket {}

impl PartialOrd for ImpairedPacket {
    fn partial_cmp(&self, other: &ImpairedPacket) -> Option<std::cmp::Ordering> {
        Some(self.cmp(other))
    }
}

impl Ord for ImpairedPacket {
    fn cmp(&self, other: &ImpairedPacket) -> std::cmp::Ordering {
        (self.at, self.number).cmp(&(other.at, other.number))
    }
}

impl DelayLine {
    /// An empty one; `reorders` is whether a packet may arrive before one that was sent before it.
    fn new(reorders: bool) -> DelayLine {
        if reorders { DelayLine::Heap { heap: BinaryHeap::new(), number: 0 } } else { DelayLine::Fifo(VecDeque::new()) }
    }

    fn push(&mut self, at: Time, packet: Packet) {
        match self {
            DelayLine::Fifo(line) => line.push_back((at, packet)),
            DelayLine::Heap { heap, number } => {
                *number += 1;
                heap.push(Reverse(ImpairedPacket { at, number: *number, packet }));
            }
        }
    }

    fn next_at(&self) -> Time {
        match self {
            DelayLine::Fifo(line) => line.front().map_or(Time::NEVER, |&(at, _)| at),
            DelayLine::Heap { heap, .. } => heap.peek().map_or(Time::NEVER, |Reverse(first)| first.at),
        }
    }

    fn pop(&mut self) -> Option<(Time, Packet)> {
        match self {
            DelayLine::Fifo(line) => line.pop_front(),
            DelayLine::Heap { heap, .. } => heap.pop().map(|Reverse(first)| (first.at, first.packet)),
        }
    }
}

impl Impaired {
    pub(super) fn new(fate: WireFates) -> Impaired {
        let line = DelayLine::new(fate.may_reorder());
        Impaired { fate, sending: None, line, held: VecDeque::new(), passed: 0 }
    }

    /// The wire of a link without impairments, which changes from now on: with the packet in
    /// transmission, and those behind it in order of arrival.
    pub(super) fn taking_over(
        mut fate: WireFates,
        sending: Option<Packet>,
        line: VecDeque<(Time, Packet)>,
    ) -> Impaired {
        let passed = line.len() as u64;
        fate.begin_to_change(line.back().map_or(Time::ZERO, |&(at, _)| at));
        Impaired { fate, sending, line: DelayLine::Fifo(line), held: VecDeque::new(), passed }
    }

    /// The link changes from now on.
    pub(super) fn begin_to_change(&mut self) {
        self.fate.begin_to_change(Time::ZERO);
        if let (true, DelayLine::Fifo(_)) = (self.fate.may_reorder(), &self.line) {
            let mut heap = DelayLine::new(true);
            while let Some((at, packet)) = self.line.pop() {
                heap.push(at, packet);
            }
            self.line = heap;
        }
    }

    /// The least delay of a packet, for the propagation delay `delay` and the larger of `jitter`
    /// and the present jitter.
    pub(super) fn least_delay(&self, delay: Span, jitter: Span) -> Span {
        let impairments = self.fate.impairments();
        impairments.least_delay_with(delay, jitter.max(impairments.jitter))
    }

    pub(super) fn set_jitter(&mut self, jitter: Span) {
        self.fate.set_jitter(jitter);
    }

    pub(super) fn set_loss(&mut self, probability: f64) {
        self.fate.set_loss(probability);
    }

    /// The packet in transmission is lost, whatever its fate would have been.
    pub(super) fn lose(&mut self, mut report: impl FnMut(LinkEventKind)) {
        let Some(packet) = self.sending.take() else { return };
        self.fate.copies();
        report(LinkEventKind::Lost { packet, probability: None });
    }

    /// The transmission of a packet begins.
    pub(super) fn begin(&mut self, packet: &Packet, framing: u32) {
        self.sending = Some(Packet { wire_len: packet.wire_len - framing, ..*packet });
    }

    /// The last bit was sent at `end`: the packet propagates, in one copy, two or none. `report` is
    /// told of other numbers than one.
    #[inline(never)]
    pub(super) fn end(&mut self, end: Time, delay: Span, mut report: impl FnMut(LinkEventKind)) {
        let Some(packet) = self.sending.take() else { return };
        let copies = self.fate.copies();
        if copies == 0 {
            report(LinkEventKind::Lost { packet, probability: self.fate.loss_probability() });
        }
        for copy in 0..copies {
            let mut packet = packet;
            if self.fate.corrupts() {
                packet.class = packet.class.corrupted();
                report(LinkEventKind::Corrupted { packet });
            }
            let at = self.fate.arrival(end, delay);
            match self.fate.hold_back() {
                Some(HoldBack { extent, timeout, .. }) => {
                    let until_passed = self.passed + u64::from(extent);
                    self.held.push_back(HeldBack { packet, until_passed, arrives_by: at + timeout });
                }
                None => self.pass(at, packet),
            }
            if copy > 0 {
                report(LinkEventKind::Duplicated { packet });
            }
        }
    }

    /// The time of the next arrival.
    pub(super) fn next_at(&self) -> Time {
        let held = self.held.front().map_or(Time::NEVER, |held| held.arrives_by);
        self.line.next_at().min(held)
    }

    /// The next packet that arrives until `now`, by when nothing more can pass those held back.
    pub(super) fn arrival(&mut self, now: Time) -> Option<(Time, Packet)> {
        self.release(now);
        if self.line.next_at() > now { None } else { self.line.pop() }
    }

    /// A packet that arrives at `at` passes those that are held back; some of them follow behind
    /// it.
    fn pass(&mut self, at: Time, packet: Packet) {
        if self.held.is_empty() {
            self.passed += 1;
            self.line.push(at, packet);
            return;
        }
        self.release(at);
        self.passed += 1;
        self.line.push(at, packet);
        while let Some(&HeldBack { until_passed, packet, .. }) = self.held.front()
            && until_passed <= self.passed
        {
            self.held.pop_front();
            self.line.push(at, packet);
        }
    }

    /// Packets that have been held back long enough by `now` continue.
    fn release(&mut self, now: Time) {
        while let Some(&HeldBack { arrives_by, packet, .. }) = self.held.front()
            && arrives_by <= now
        {
            self.held.pop_front();
            self.line.push(arrives_by, packet);
        }
    }
}
