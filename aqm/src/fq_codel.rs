//! fq_codel: flow queues, served in turn, each controlled by CoDel.
//!
//! A packet's flow hash selects its queue. Queues are served by deficit round robin (`drr`),
//! `quantum` bytes per turn; new flows are served before old ones, so that sparse flows hardly
//! wait. At the limit the flow with the largest backlog loses packets at its head.
//!
//! # Source
//! RFC 8290, Linux `sch_fq_codel`; parameters and defaults of `tc-fq_codel(8)`.
//!
//! # Departures
//! - The memory of a packet is assumed to be its bytes plus 576, instead of what Linux allocated
//!   (`truesize`).
//! - `tc` filters that choose flows are left out.
//! - `ce_threshold_selector` and `ce_threshold_mask` are two keys; tc writes `VALUE/MASK`.
//! - Those of `drr` and of CoDel's control law.

use std::any::Any;

use ackclock_units::parameter::Domain;
use ackclock_units::{Random, Span, Time, configuration};

use crate::change::{fixed, parameters, valid};
use crate::codel_law::{CodelLaw, CodelSource, CodelState, ControlLaw};
use crate::discipline::{Discipline, HASH_SEED, LARGEST_PACKET, MAX, MAYBE_TIME, MTU, OWN_SALT, POSITIVE};
use crate::drr::{self, Drr, DrrFlow, FlowQueue};
use crate::{Books, ChangeError, Dequeue, DropReason, Drops, Entry, Probe, QueueDisc, Queued, Variable};

/// The least `quantum`.
const MIN_QUANTUM: u32 = 256;

const TOS: Domain = Domain::Whole(0, 255, "");

configuration! {
/// Parameters of an fq_codel queue.
#[derive(Clone, Debug, PartialEq)]
pub struct FqCodelConfig {
    /// The most packets that wait in all queues together. Default: 10,240 (RFC 8290 section 5.2.3).
    pub limit: u64 = 10_240 => (Domain::Packets(1, MAX), "RFC 8290 s5.2.3; tc-fq_codel(8)");
    /// Number of queues, 1 to 65,536. Default: 1024 (RFC 8290 section 5.2.5).
    pub flows: u32 = 1024 => (Domain::Whole(1, 65_536, "queues"), "RFC 8290 s5.2.5; tc-fq_codel(8)");
    /// Bytes that a flow may send in a turn; values below 256 count as 256. Default: 1514, an
    /// Ethernet frame (RFC 8290 section 5.2.4).
    pub quantum: u32 = 1514 => (Domain::Bytes(256, 1 << 20), "RFC 8290 s5.2.4; tc-fq_codel(8)");
    /// CoDel's sojourn time that may persist. Default: 5 ms (RFC 8290 section 5.2.2).
    pub target: Span = Span::from_millis(5) => (POSITIVE, "RFC 8290 s5.2.2; tc-fq_codel(8)");
    /// The time for which CoDel lets the sojourn time exceed `target` before the first drop.
    /// Default: 100 ms (RFC 8290 section 5.2.1).
    pub interval: Span = Span::from_millis(100) => (POSITIVE, "RFC 8290 s5.2.1; tc-fq_codel(8)");
    /// Mark every packet that can carry a mark and waited longer than this, whatever `ecn` says
    /// (RFC 8290 section 5.2.7). Default: off.
    pub ce_threshold: Option<Span> = None => (MAYBE_TIME, "RFC 8290 s5.2.7; tc-fq_codel(8)");
    /// With `ce_threshold`: the bits of the TOS byte, within `ce_threshold_mask`, of the packets
    /// that it is for. Default: 0.
    pub ce_threshold_selector: u8 = 0 => (TOS, "tc-fq_codel(8)");
    /// With `ce_threshold`: the bits of the TOS byte that are compared; 0 is for all packets.
    /// ECT(1), that is L4S, is selector 1 and mask 3. Default: 0.
    pub ce_threshold_mask: u8 = 0 => (TOS, "tc-fq_codel(8)");
    /// The memory that waiting packets may take, in bytes; an arrival beyond it costs one batch of
    /// drops, which may leave more than that. Default: 32 MiB.
    pub memory_limit: u64 = 32 << 20 => (Domain::Bytes(1, MAX), "tc-fq_codel(8)");
    /// The most packets that the flow with the largest backlog loses at once when a limit is
    /// exceeded; it loses no more than half of its bytes, and at least one packet. Default: 64 (RFC
    /// 8290 section 4.1).
    pub drop_batch: u32 = 64 => (Domain::Whole(1, 65_536, "packets"), "RFC 8290 s4.1");
    /// Mark packets that can carry a mark instead of dropping them. Default: on (RFC 8290 section
    /// 5.2.6).
    pub ecn: bool = true => (Domain::Flag, "RFC 8290 s5.2.6; tc-fq_codel(8)");
    /// Bytes of the largest packet: CoDel drops nothing while no more than this waits in all queues
    /// together. Default: 1514, an Ethernet frame.
    pub mtu: u32 = 1514 => (MTU, "RFC 8289 s5.6; an Ethernet frame");
    /// The arithmetic of CoDel's law. Default: Linux's.
    pub control_law: ControlLaw = ControlLaw::Linux => (ControlLaw::DOMAIN, "Linux `codel.h`; RFC 8289");
    /// The salt of the hash of flows; `None` draws it from each run's seed. Default: `None`.
    pub hash_seed: Option<u64> = None => (HASH_SEED, OWN_SALT);
} problem
}

impl Discipline for FqCodelConfig {
    fn marks(&self) -> bool {
        // The threshold marks without it.
        self.ecn || self.ce_threshold.is_some()
    }

    fn target(&self) -> Option<Span> {
        Some(self.target)
    }
}

impl FqCodelConfig {
    /// The problem with these parameters, if there is one.
    pub fn problem(&self) -> Option<&'static str> {
        let (selector, mask) = (self.ce_threshold_selector, self.ce_threshold_mask);
        if mask != 0 && self.ce_threshold.is_none() {
            Some("ce_threshold_mask needs ce_threshold")
        } else if selector & !mask != 0 {
            Some("ce_threshold_selector has bits that ce_threshold_mask lacks")
        } else {
            None
        }
    }

    fn law(&self) -> CodelLaw {
        let &FqCodelConfig { target, interval, ecn, ce_threshold, mtu, control_law, .. } = self;
        CodelLaw::new(control_law, [target, interval], ce_threshold, ecn, mtu)
            .with_ce_selector(self.ce_threshold_selector, self.ce_threshold_mask)
    }
}

/// An fq_codel queue.
#[derive(Debug)]
pub struct FqCodel<P> {
    limit: u64,
    memory_limit: u64,
    drop_batch: u32,
    law: CodelLaw,
    hash_seed: Option<u64>,
    drr: Drr<P, CodelState>,
}

const _: () = assert!(size_of::<DrrFlow<CodelState>>() <= 64, "a flow should fit a cache line");

impl<P: Queued> FqCodel<P> {
    /// Empty queues that draw their salt from `random`.
    ///
    /// # Panics
    /// If `flows` is not within 1 to 65,536.
    pub fn new(config: FqCodelConfig, random: Random) -> FqCodel<P> {
        let FqCodelConfig { limit, flows, quantum, memory_limit, drop_batch, hash_seed, .. } = config;
        FqCodel {
            limit,
            memory_limit,
            drop_batch,
            law: config.law(),
            hash_seed,
            drr: Drr::new(flows, quantum.max(MIN_QUANTUM), drr::salt(hash_seed, &random), CodelState::new()),
        }
    }

    /// Discards packets at the head of the flow with the largest backlog (RFC 8290 section 4.1).
    fn drop_from_fattest(&mut self, reason: DropReason, drops: &mut Drops<P>) {
        let fattest = self.drr.fattest();
        let (codel, mut queue) = self.drr.flow(fattest);
        let enough = queue.flow_bytes() / 2;
        let (mut packets, mut bytes) = (0, 0);
        while let Some(entry) = queue.take() {
            packets += 1;
            bytes += u64::from(entry.packet.wire_len());
            queue.discard(entry, reason, drops);
            if packets >= self.drop_batch || bytes >= enough {
                break;
            }
        }
        codel.count_drops(packets);
    }
}

/// One flow's queue as the law sees it during one dequeue.
struct FlowSource<'a, 'b, P> {
    queue: &'a mut FlowQueue<'b, P>,
    drops: &'a mut Drops<P>,
}

impl<P: Queued> CodelSource<P> for FlowSource<'_, '_, P> {
    #[inline(always)]
    fn take(&mut self) -> Option<Entry<P>> {
        self.queue.take()
    }

    fn backlog_bytes(&self) -> u64 {
        self.queue.backlog_bytes()
    }

    fn discard(&mut self, entry: Entry<P>) {
        self.queue.discard(entry, DropReason::Delay, self.drops);
    }

    fn mark(&mut self, packet: &mut P) -> bool {
        self.queue.mark(packet)
    }
}

/// A [`FlowSource`] during the removal of excess packets.
struct Excess<'a, 'b, P>(FlowSource<'a, 'b, P>);

impl<P: Queued> CodelSource<P> for Excess<'_, '_, P> {
    #[inline(always)]
    fn take(&mut self) -> Option<Entry<P>> {
        self.0.take()
    }

    fn backlog_bytes(&self) -> u64 {
        self.0.backlog_bytes()
    }

    fn discard(&mut self, entry: Entry<P>) {
        self.0.discard(entry);
    }

    fn mark(&mut self, packet: &mut P) -> bool {
        packet.ecn().is_capable()
    }
}

impl<P: Queued + Send> QueueDisc<P> for FqCodel<P> {
    fn enqueue(&mut self, now: Time, packet: P, drops: &mut Drops<P>) {
        let index = self.drr.classify(packet.flow_hash());
        self.drr.admit(index, now, packet);
        // One batch, whatever it leaves: a later arrival sees to the rest.
        if self.drr.memory() > self.memory_limit {
            self.drop_from_fattest(DropReason::Memory, drops);
        } else if self.drr.backlog().packets > self.limit {
            self.drop_from_fattest(DropReason::Limit, drops);
        }
    }

    fn dequeue(&mut self, now: Time, drops: &mut Drops<P>) -> Dequeue<P> {
        let law = &self.law;
        match self.drr.serve(|codel, queue| codel.dequeue(law, now, &mut FlowSource { queue, drops })) {
            Some(entry) => Dequeue::Packet(entry),
            None => Dequeue::Empty,
        }
    }

    fn idle(&mut self, _now: Time) {
        self.drr.idle(|codel| codel.found_empty(&self.law));
    }

    fn passes(&self) -> bool {
        self.limit > 0 && self.memory_limit >= LARGEST_PACKET
    }

    fn pass(&mut self, bytes: u32) {
        self.drr.pass(bytes);
    }

    /// Other parameters at run time. Flows keep their packets, places and states. While a limit is
    /// exceeded, what would leave next is discarded, by turns and with what the law discards on the
    /// way (Linux `fq_codel_change`; a packet that the law would mark is not counted as marked).
    fn change(&mut self, now: Time, config: &dyn Any, drops: &mut Drops<P>) -> Result<(), ChangeError> {
        let config = parameters::<FqCodelConfig>(config)?.clone();
        fixed("flows", config.flows != self.drr.flows())?;
        fixed("hash_seed", config.hash_seed != self.hash_seed)?;
        fixed("control_law", config.control_law != self.law.control_law())?;
        valid(config.problem())?;
        self.law = config.law();
        self.drr.set_quantum(config.quantum.max(MIN_QUANTUM));
        FqCodelConfig { limit: self.limit, memory_limit: self.memory_limit, drop_batch: self.drop_batch, .. } = config;
        let law = &self.law;
        loop {
            let reason = if self.drr.backlog().packets > self.limit {
                DropReason::Limit
            } else if self.drr.memory() > self.memory_limit {
                DropReason::Memory
            } else {
                return Ok(());
            };
            let next = self.drr.pull(|codel, queue| codel.dequeue(law, now, &mut Excess(FlowSource { queue, drops })));
            let Some(next) = next else { return Ok(()) };
            self.drr.discard(next, reason, drops);
        }
    }

    fn peek(&self) -> Option<&Entry<P>> {
        self.drr.peek()
    }

    fn books(&self) -> &Books {
        self.drr.books()
    }

    /// Sojourn time and state of the flow that a packet came to or left last, or that lost packets
    /// at a limit.
    fn probe(&self) -> Probe {
        let codel = self.drr.touched();
        Probe { delay: Some(codel.sojourn()), dropping: Some(codel.dropping()), ..Probe::default() }
    }

    /// The variables of the probed flow, and the number of flows in the lists.
    fn variables(&self, see: &mut dyn FnMut(&'static str, Variable)) {
        QueueDisc::<P>::probe(self).variables(see);
        see("count", Variable::Count(self.drr.touched().count().into()));
        self.drr.variables(see);
    }
}

#[cfg(test)]
mod tests;
