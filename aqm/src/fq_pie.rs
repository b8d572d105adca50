//! fq_pie: flow queues, served in turn, each controlled by PIE.
//!
//! A packet's flow hash selects its queue; queues are served by deficit round robin (`drr`), new
//! flows first. Arrivals are dropped or marked by the PIE of their flow, from the flow's own
//! backlog and delay. At the limit arrivals are refused, whatever their flow.
//!
//! All flows are updated every `tupdate`, but none is visited for it: a flow applies the updates
//! that were due when it next enqueues or dequeues a packet. Between two packets of a flow its
//! backlog does not change, so the result is identical to the bit, and an idle flow costs nothing.
//!
//! # Source
//! Linux `sch_fq_pie`; parameters and defaults of `tc-fq_pie(8)`; RFC 8033 and RFC 8290.
//!
//! # Departures
//! - `memory_limit` refuses arrivals; Linux counts that it was exceeded, and accepts them. The
//!   memory of a packet is assumed to be its bytes plus 576, instead of what Linux allocated
//!   (`truesize`).
//! - All flows are updated at the same time; Linux updates 2048 of them per tick of its clock, and
//!   so with more flows than that each of them less often than every `tupdate`.
//! - `tc` filters that choose flows are left out.
//! - Those of `drr` and of PIE's control law.

use std::any::Any;

use ackclock_units::parameter::Domain;
use ackclock_units::{Random, Span, Time, configuration};

use crate::books::memory_of;
use crate::change::{fixed, parameters, valid};
use crate::discipline::{Discipline, HASH_SEED, MAX, MTU, OWN_SALT, POSITIVE};
use crate::drr::{self, Drr, DrrFlow, FlowQueue};
use crate::pie_law::{Admission, DqRateEstimator, PieLaw, PieState};
use crate::{Books, ChangeError, Dequeue, DropReason, Drops, Entry, Probe, QueueDisc, Queued, Variable};

configuration! {
/// Parameters of an fq_pie queue.
#[derive(Clone, Debug, PartialEq)]
pub struct FqPieConfig {
    /// The most packets that wait in all queues together; further ones are refused. Default:
    /// 10,240.
    pub limit: u64 = 10_240 => (Domain::Packets(1, MAX), "tc-fq_pie(8)");
    /// Number of queues, 1 to 65,536. Default: 1024.
    pub flows: u32 = 1024 => (Domain::Whole(1, 65_536, "queues"), "tc-fq_pie(8)");
    /// The queueing delay to settle at. Default: 15 ms (RFC 8033 section 4.2, `QDELAY_REF`).
    pub target: Span = Span::from_millis(15) => (POSITIVE, "RFC 8033 s4.2; tc-fq_pie(8)");
    /// Time between two updates of the probabilities. Default: 15 ms (RFC 8033 section 4.2,
    /// `T_UPDATE`).
    pub tupdate: Span = Span::from_millis(15) => (POSITIVE, "RFC 8033 s4.2; tc-fq_pie(8)");
    /// Weight of the delay's distance from `target`, in 1/16 Hz as in tc. Default: 2 (RFC 8033
    /// section 4.2).
    pub alpha: u32 = 2 => (Domain::Whole(0, 32, "1/16 Hz"), "RFC 8033 s4.2; tc-fq_pie(8)");
    /// Weight of the delay's change since the last update, in 1/16 Hz as in tc. Default: 20 (RFC
    /// 8033 section 4.2).
    pub beta: u32 = 20 => (Domain::Whole(0, 32, "1/16 Hz"), "RFC 8033 s4.2; tc-fq_pie(8)");
    /// Bytes that a flow may send in a turn, 1 or more. Default: 1514, an Ethernet frame.
    pub quantum: u32 = 1514 => (Domain::Bytes(256, 1 << 20), "tc-fq_pie(8)");
    /// The most memory that waiting packets take, in bytes. Default: 32 MiB.
    pub memory_limit: u64 = 32 << 20 => (Domain::Bytes(1, MAX), "tc-fq_pie(8)");
    /// The probability in percent up to which packets that can carry a mark are marked. Default: 10
    /// (RFC 8033 section 5.1).
    pub ecn_prob: u32 = 10 => (Domain::Whole(0, 100, "percent"), "RFC 8033 s5.1; tc-fq_pie(8)");
    /// Mark packets that can carry a mark instead of dropping them, up to `ecn_prob`. Default: off.
    pub ecn: bool = false => (Domain::Flag, "tc-fq_pie(8)");
    /// Scale the probability with the size of the packet over `mtu`. Default: off.
    pub bytemode: bool = false => (Domain::Flag, "tc-fq_pie(8)");
    /// Estimate a flow's delay as its backlog over its departure rate (RFC 8033 section 5.2)
    /// instead of its last packet's sojourn time, and how the rate is measured. Default: off.
    pub dq_rate_estimator: Option<DqRateEstimator> = None => (DqRateEstimator::DOMAIN, "RFC 8033 s5.2; tc-fq_pie(8)");
    /// Bytes of the largest packet: no early drops below a backlog of two of them in the flow (RFC
    /// 8033 section 4.1). Default: 1514, an Ethernet frame.
    pub mtu: u32 = 1514 => (MTU, "RFC 8033 s4.1; an Ethernet frame");
    /// The salt of the hash of flows; `None` draws it from each run's seed. Default: `None`.
    pub hash_seed: Option<u64> = None => (HASH_SEED, OWN_SALT);
}
}

impl Discipline for FqPieConfig {
    fn marks(&self) -> bool {
        self.ecn
    }

    fn target(&self) -> Option<Span> {
        Some(self.target)
    }
}

impl FqPieConfig {
    fn law(&self) -> PieLaw {
        let &FqPieConfig { target, tupdate, alpha, beta, ecn_prob, ecn, bytemode, dq_rate_estimator, mtu, .. } = self;
        let mark_up_to = ecn.then_some(f64::from(ecn_prob) / 100.0);
        // Linux shares the code of arrivals with `sch_pie`, which always spaces drops out.
        let derandomize = true;
        PieLaw { target, tupdate, alpha, beta, mark_up_to, bytemode, dq_rate_estimator, derandomize, mtu }
    }
}

/// An fq_pie queue.
#[derive(Debug)]
pub struct FqPie<P> {
    limit: u64,
    memory_limit: u64,
    law: PieLaw,
    hash_seed: Option<u64>,
    drr: Drr<P, FlowPie>,
    random: Random,
}

/// The law of one flow.
#[derive(Clone, Debug, PartialEq)]
struct FlowPie {
    state: PieState,
    /// The time of the next update.
    next_update: Time,
}

const _: () = assert!(size_of::<DrrFlow<FlowPie>>() <= 128, "a flow should fit two cache lines");

impl FlowPie {
    fn catch_up(&mut self, law: &PieLaw, now: Time, backlog: u64) {
        if now < self.next_update {
            return;
        }
        self.next_update = self.state.catch_up(law, self.next_update, now, backlog);
    }

    /// The head of the flow leaves.
    #[inline]
    fn depart<P: Queued>(&mut self, law: &PieLaw, now: Time, queue: &mut FlowQueue<'_, P>) -> Option<Entry<P>> {
        let waiting = queue.flow_bytes();
        let entry = queue.take()?;
        self.catch_up(law, now, waiting);
        self.state.departed(law, now, entry.enqueued_at, entry.packet.wire_len(), queue.flow_bytes());
        Some(entry)
    }
}

impl<P: Queued> FqPie<P> {
    /// Empty queues that draw from `random`.
    ///
    /// # Panics
    /// If `flows` is not within 1 to 65,536, or `quantum` or `tupdate` is zero.
    pub fn new(config: FqPieConfig, random: Random) -> FqPie<P> {
        let FqPieConfig { limit, flows, tupdate, quantum, memory_limit, hash_seed, .. } = config;
        assert!(tupdate > Span::ZERO, "tupdate must not be zero");
        let state = FlowPie { state: PieState::new(), next_update: Time::ZERO + tupdate };
        FqPie {
            limit,
            memory_limit,
            law: config.law(),
            hash_seed,
            drr: Drr::new(flows, quantum, drr::salt(hash_seed, &random), state),
            random,
        }
    }
}

impl<P: Queued + Send> QueueDisc<P> for FqPie<P> {
    fn enqueue(&mut self, now: Time, mut packet: P, drops: &mut Drops<P>) {
        let index = self.drr.classify(packet.flow_hash());
        let full = if self.drr.backlog().packets >= self.limit {
            Some(DropReason::Limit)
        } else if self.drr.memory() + memory_of(&packet) > self.memory_limit {
            Some(DropReason::Memory)
        } else {
            None
        };
        let (pie, queue) = self.drr.flow(index);
        let backlog = queue.flow_bytes();
        pie.catch_up(&self.law, now, backlog);
        if let Some(reason) = full {
            pie.state.overflowed();
            self.drr.refuse(packet, reason, drops);
            return;
        }
        match pie.state.arrived(&self.law, backlog, packet.wire_len(), &mut self.random) {
            Admission::Admit => {}
            Admission::Mark if self.drr.mark(&mut packet) => {}
            Admission::Mark | Admission::Drop => {
                self.drr.refuse(packet, DropReason::Early, drops);
                return;
            }
        }
        self.drr.admit(index, now, packet);
    }

    fn dequeue(&mut self, now: Time, _drops: &mut Drops<P>) -> Dequeue<P> {
        let law = &self.law;
        self.drr.serve(|pie, queue| pie.depart(law, now, queue)).into()
    }

    fn idle(&mut self, _now: Time) {
        self.drr.idle(|_| {});
    }

    /// Other parameters at run time. Flows keep their packets, places and states, and their next
    /// updates are due when they were. While more than `limit` packets wait, what would leave next
    /// is discarded, and the law sees it leave; memory is checked on arrival (Linux
    /// `fq_pie_change`).
    fn change(&mut self, now: Time, config: &dyn Any, drops: &mut Drops<P>) -> Result<(), ChangeError> {
        let config = parameters::<FqPieConfig>(config)?.clone();
        fixed("flows", config.flows != self.drr.flows())?;
        fixed("hash_seed", config.hash_seed != self.hash_seed)?;
        valid((config.quantum == 0).then_some("quantum must not be zero"))?;
        valid((config.tupdate == Span::ZERO).then_some("tupdate must not be zero"))?;
        // The old parameters apply to updates that were due by now.
        self.drr.for_each(|pie, bytes| {
            pie.catch_up(&self.law, now, bytes);
            pie.state.estimates_by(&self.law, config.dq_rate_estimator);
        });
        self.law = config.law();
        self.drr.set_quantum(config.quantum);
        FqPieConfig { limit: self.limit, memory_limit: self.memory_limit, .. } = config;
        while self.drr.backlog().packets > self.limit
            && let Some(entry) = self.drr.pull(|pie, queue| FlowPie::depart(pie, &self.law, now, queue))
        {
            self.drr.discard(entry, DropReason::Limit, drops);
        }
        Ok(())
    }

    fn peek(&self) -> Option<&Entry<P>> {
        self.drr.peek()
    }

    fn books(&self) -> &Books {
        self.drr.books()
    }

    /// Probability and delay of the flow that a packet came to or left last.
    fn probe(&self) -> Probe {
        let state = &self.drr.touched().state;
        Probe { probability: Some(state.probability), delay: Some(state.delay), ..Probe::default() }
    }

    /// The variables of the probed flow, and the number of flows in the lists.
    fn variables(&self, see: &mut dyn FnMut(&'static str, Variable)) {
        QueueDisc::<P>::probe(self).variables(see);
        self.drr.variables(see);
    }
}

#[cfg(test)]
mod tests;
