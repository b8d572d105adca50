//! fq_codel: flows in queues of their own, served in turn, each controlled by CoDel.
//!
//! A packet's flow hash selects its queue. Queues are served by deficit round robin, `quantum` bytes a turn; a flow that
//! starts goes before those that stand (the list of new flows before the list of old ones), so that sparse flows hardly
//! wait. At the limit the flow with the largest backlog loses packets at its head.
//!
//! # Source
//! RFC 8290, Linux `sch_fq_codel`; parameters and defaults of `tc-fq_codel(8)`.
//!
//! # Departures
//! - The memory of a packet is taken as its bytes and 576 more: Linux counts what it allocated (`truesize`), which here does
//!   not exist; 576 is its `sk_buff` with the data that every packet has, without the rounding of buffers.
//! - After a batch of drops Linux may still be above `memory_limit`; here batches follow until it is kept.
//! - The flow hash is multiplied by an odd constant before it is scaled to `flows`, so that any hash spreads. It is not salted:
//!   a run repeats. `tc` filters that choose flows are left out, as are `ce_threshold_selector` and `ce_threshold_mask`.

use ackclock_units::{Span, Time};

use crate::books::Books;
use crate::codel_law::{CodelLaw, CodelSource, CodelState};
use crate::slab::{Queue, Slab};
use crate::{Backlog, Counters, DropReason, Drops, Entry, Probe, QueueDisc, Queued};

/// Memory of a packet beyond its bytes.
const PACKET_OVERHEAD: u64 = 576;
/// The least `quantum`.
const MIN_QUANTUM: u32 = 256;
/// The most `flows`.
const MAX_FLOWS: u32 = 65_536;

/// Parameters of an fq_codel queue.
#[derive(Clone, Debug, PartialEq)]
pub struct FqCodelConfig {
    /// The most packets that wait in all queues together. Default: 10,240 (RFC 8290 section 5.2.3).
    pub limit: u64,
    /// Number of queues, 1 to 65,536. Default: 1024 (RFC 8290 section 5.2.5).
    pub flows: u32,
    /// Bytes that a flow may send in a turn; values below 256 count as 256. Default: 1514, an Ethernet frame (RFC 8290
    /// section 5.2.4).
    pub quantum: u32,
    /// CoDel's sojourn time that may persist. Default: 5 ms (RFC 8290 section 5.2.2).
    pub target: Span,
    /// How long CoDel lets the sojourn time stay above `target` before the first drop. Default: 100 ms (RFC 8290 section
    /// 5.2.1).
    pub interval: Span,
    /// Mark every packet that can carry a mark and waited longer than this, whatever `ecn` says (RFC 8290 section 5.2.7).
    /// Default: off.
    pub ce_threshold: Option<Span>,
    /// The most memory that waiting packets take, in bytes. Default: 32 MiB.
    pub memory_limit: u64,
    /// The most packets that the flow with the largest backlog loses at once when a limit is exceeded; it loses no more than
    /// half of its bytes, and at least one packet. Default: 64 (RFC 8290 section 4.1).
    pub drop_batch: u32,
    /// Mark packets that can carry a mark instead of dropping them. Default: on (RFC 8290 section 5.2.6).
    pub ecn: bool,
    /// Bytes of the largest packet: CoDel drops nothing while no more than this waits in all queues together. Default: 1514,
    /// an Ethernet frame.
    pub mtu: u32,
}

impl Default for FqCodelConfig {
    fn default() -> FqCodelConfig {
        FqCodelConfig {
            limit: 10_240,
            flows: 1024,
            quantum: 1514,
            target: Span::from_millis(5),
            interval: Span::from_millis(100),
            ce_threshold: None,
            memory_limit: 32 << 20,
            drop_batch: 64,
            ecn: true,
            mtu: 1514,
        }
    }
}

/// An fq_codel queue.
#[derive(Debug)]
pub struct FqCodel<P> {
    limit: u64,
    memory_limit: u64,
    quantum: i64,
    drop_batch: u32,
    law: CodelLaw,
    flows: Box<[Flow]>,
    /// Bytes that wait in each flow, apart from the rest: the search for the largest reads nothing else.
    flow_bytes: Box<[u64]>,
    new_flows: Rota,
    old_flows: Rota,
    /// The flow that sent last.
    served: u32,
    slab: Slab<P>,
    memory: u64,
    books: Books,
}

#[derive(Clone, Debug)]
struct Flow {
    queue: Queue,
    /// The next flow of the same rota.
    next: u32,
    /// Whether it is in a rota.
    listed: bool,
    /// Bytes that the flow may still send in this turn.
    deficit: i64,
    codel: CodelState,
}

const _: () = assert!(size_of::<Flow>() <= 64, "a flow should fit a cache line");

/// No flow.
const NIL: u32 = u32::MAX;

/// Flows in the order of their turns, chained by [`Flow::next`].
#[derive(Debug)]
struct Rota {
    first: u32,
    last: u32,
}

impl Rota {
    const EMPTY: Rota = Rota { first: NIL, last: NIL };

    fn first(&self) -> Option<u32> {
        (self.first != NIL).then_some(self.first)
    }

    fn push(&mut self, flows: &mut [Flow], index: u32) {
        flows[index as usize].next = NIL;
        flows[index as usize].listed = true;
        if self.first == NIL {
            self.first = index;
        } else {
            flows[self.last as usize].next = index;
        }
        self.last = index;
    }

    fn remove_first(&mut self, flows: &mut [Flow]) {
        let flow = &mut flows[self.first as usize];
        flow.listed = false;
        self.first = flow.next;
    }
}

impl<P: Queued> FqCodel<P> {
    /// Empty queues.
    ///
    /// # Panics
    /// If `flows` is not within 1 to 65,536.
    pub fn new(config: FqCodelConfig) -> FqCodel<P> {
        let FqCodelConfig { limit, flows, quantum, memory_limit, drop_batch, .. } = config;
        let FqCodelConfig { target, interval, ecn, ce_threshold, mtu, .. } = config;
        assert!((1..=MAX_FLOWS).contains(&flows), "flows must be within 1 to {MAX_FLOWS}");
        let flow = Flow { queue: Queue::EMPTY, next: NIL, listed: false, deficit: 0, codel: CodelState::new() };
        FqCodel {
            limit,
            memory_limit,
            quantum: i64::from(quantum.max(MIN_QUANTUM)),
            drop_batch,
            law: CodelLaw { target, interval, ecn, ce_threshold, mtu },
            flows: vec![flow; flows as usize].into_boxed_slice(),
            flow_bytes: vec![0; flows as usize].into_boxed_slice(),
            new_flows: Rota::EMPTY,
            old_flows: Rota::EMPTY,
            served: 0,
            slab: Slab::new(),
            memory: 0,
            books: Books::default(),
        }
    }

    /// The flow of a hash.
    fn classify(&self, hash: u64) -> u32 {
        // 2^64 over the golden ratio: the high bits of the product depend on all bits of the hash.
        let spread = hash.wrapping_mul(0x9e37_79b9_7f4a_7c15);
        ((u128::from(spread) * self.flows.len() as u128) >> 64) as u32
    }

    /// Discards packets at the head of the flow with the largest backlog (RFC 8290 section 4.1); how many.
    fn drop_from_fattest(&mut self, reason: DropReason, drops: &mut Drops<P>) -> u32 {
        let mut fattest = 0;
        for (index, &bytes) in self.flow_bytes.iter().enumerate() {
            if bytes > self.flow_bytes[fattest] {
                fattest = index;
            }
        }
        let enough = self.flow_bytes[fattest] / 2;
        let flow = &mut self.flows[fattest];
        let mut source = Source {
            slab: &mut self.slab,
            queue: &mut flow.queue,
            flow_bytes: &mut self.flow_bytes[fattest],
            memory: &mut self.memory,
            books: &mut self.books,
            reason,
            drops,
        };
        let (mut packets, mut bytes) = (0, 0);
        while let Some(entry) = source.take() {
            packets += 1;
            bytes += u64::from(entry.packet.wire_len());
            source.discard(entry);
            if packets >= self.drop_batch || bytes >= enough {
                break;
            }
        }
        flow.codel.count_drops(packets);
        packets
    }
}

fn memory_of<P: Queued>(packet: &P) -> u64 {
    u64::from(packet.wire_len()) + PACKET_OVERHEAD
}

/// One flow's queue as the law sees it during one dequeue.
struct Source<'a, P> {
    slab: &'a mut Slab<P>,
    queue: &'a mut Queue,
    flow_bytes: &'a mut u64,
    memory: &'a mut u64,
    books: &'a mut Books,
    reason: DropReason,
    drops: &'a mut Drops<P>,
}

impl<P: Queued> CodelSource<P> for Source<'_, P> {
    fn take(&mut self) -> Option<Entry<P>> {
        let entry = self.slab.pop(self.queue)?;
        let bytes = entry.packet.wire_len();
        *self.flow_bytes -= u64::from(bytes);
        *self.memory -= memory_of(&entry.packet);
        self.books.take(bytes);
        Some(entry)
    }

    fn backlog_bytes(&self) -> u64 {
        self.books.backlog().bytes
    }

    fn discard(&mut self, entry: Entry<P>) {
        self.books.discard(entry.packet, self.reason, self.drops);
    }

    fn mark(&mut self, packet: &mut P) -> bool {
        self.books.mark(packet)
    }
}

impl<P: Queued + Send> QueueDisc<P> for FqCodel<P> {
    fn enqueue(&mut self, now: Time, packet: P, drops: &mut Drops<P>) {
        let index = self.classify(packet.flow_hash());
        let flow = &mut self.flows[index as usize];
        self.books.admit(packet.wire_len());
        self.flow_bytes[index as usize] += u64::from(packet.wire_len());
        self.memory += memory_of(&packet);
        self.slab.push(&mut flow.queue, Entry { packet, enqueued_at: now });
        if !flow.listed {
            flow.deficit = self.quantum;
            self.new_flows.push(&mut self.flows, index);
        }
        while self.memory > self.memory_limit && self.drop_from_fattest(DropReason::Memory, drops) > 0 {}
        while self.books.backlog().packets > self.limit && self.drop_from_fattest(DropReason::Limit, drops) > 0 {}
    }

    // RFC 8290 s4.2
    fn dequeue(&mut self, now: Time, drops: &mut Drops<P>) -> Option<Entry<P>> {
        loop {
            let (index, is_new) = match self.new_flows.first() {
                Some(index) => (index, true),
                None => (self.old_flows.first()?, false),
            };
            let rota = if is_new { &mut self.new_flows } else { &mut self.old_flows };
            let flow = &mut self.flows[index as usize];
            if flow.deficit <= 0 {
                flow.deficit += self.quantum;
                rota.remove_first(&mut self.flows);
                self.old_flows.push(&mut self.flows, index);
                continue;
            }
            let mut source = Source {
                slab: &mut self.slab,
                queue: &mut flow.queue,
                flow_bytes: &mut self.flow_bytes[index as usize],
                memory: &mut self.memory,
                books: &mut self.books,
                reason: DropReason::Delay,
                drops,
            };
            if let Some(entry) = flow.codel.dequeue(&self.law, now, &mut source) {
                flow.deficit -= i64::from(entry.packet.wire_len());
                self.served = index;
                self.books.release(entry.packet.wire_len());
                return Some(entry);
            }
            rota.remove_first(&mut self.flows);
            // A new flow that ran empty passes the old ones once, or it could starve them by sending one packet at a time.
            if is_new && self.old_flows.first().is_some() {
                self.old_flows.push(&mut self.flows, index);
            }
        }
    }

    fn backlog(&self) -> Backlog {
        self.books.backlog()
    }

    fn counters(&self) -> &Counters {
        self.books.counters()
    }

    /// Sojourn time and state of the flow that sent last.
    fn probe(&self) -> Probe {
        let codel = &self.flows[self.served as usize].codel;
        Probe { delay: Some(codel.sojourn()), dropping: Some(codel.dropping()), ..Probe::default() }
    }
}

#[cfg(test)]
mod tests;
