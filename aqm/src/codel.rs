//! CoDel: one queue, controlled by the sojourn time of its packets.
//!
//! The law is in `codel_law`; this file has its parameters and the queue.
//!
//! # Source
//! RFC 8289, Linux `sch_codel`; parameters and defaults of `tc-codel(8)`.
//!
//! # Departures
//! None beyond those of the law. `ce_threshold_selector` and `ce_threshold_mask` of newer kernels
//! are left out.

use std::any::Any;

use ackclock_units::parameter::Domain;
use ackclock_units::{Span, Time, configuration};

use crate::change::{fixed, parameters};
use crate::codel_law::{CodelLaw, CodelSource, CodelState, ControlLaw};
use crate::discipline::{Discipline, MAX, MAYBE_TIME, MTU, POSITIVE};
use crate::{Books, ChangeError, Dequeue, DropReason, Drops, Entry, Probe, QueueDisc, Queued, Store, Variable};

configuration! {
/// Parameters of a CoDel queue.
#[derive(Clone, Debug, PartialEq)]
pub struct CodelConfig {
    /// The most packets that wait; further ones are refused. Default: 1000.
    pub limit: u64 = 1000 => (Domain::Packets(1, MAX), "tc-codel(8)");
    /// The sojourn time that may persist. Default: 5 ms (RFC 8289 section 4.4).
    pub target: Span = Span::from_millis(5) => (POSITIVE, "RFC 8289 s4.4; tc-codel(8)");
    /// The time for which the sojourn time may exceed `target` before the first drop; of the order
    /// of the largest RTT. Default: 100 ms (RFC 8289 section 4.3).
    pub interval: Span = Span::from_millis(100) => (POSITIVE, "RFC 8289 s4.3; tc-codel(8)");
    /// Mark packets that can carry a mark instead of dropping them. Default: off.
    pub ecn: bool = false => (Domain::Flag, "tc-codel(8)");
    /// Mark every packet that can carry a mark and waited longer than this, whatever `ecn` says
    /// (RFC 8290 section 5.2.7). Default: off.
    pub ce_threshold: Option<Span> = None => (MAYBE_TIME, "RFC 8290 s5.2.7; tc-codel(8)");
    /// Bytes of the largest packet: nothing is dropped while no more than this waits behind the
    /// head (RFC 8289 section 5.6, `maxpacket`). Default: 1514, an Ethernet frame.
    pub mtu: u32 = 1514 => (MTU, "RFC 8289 s5.6; an Ethernet frame");
    /// The arithmetic of the law. Default: Linux's.
    pub control_law: ControlLaw = ControlLaw::Linux => (ControlLaw::DOMAIN, "Linux `codel.h`; RFC 8289");
}
}

impl Discipline for CodelConfig {
    fn marks(&self) -> bool {
        // The threshold marks without it.
        self.ecn || self.ce_threshold.is_some()
    }

    fn target(&self) -> Option<Span> {
        Some(self.target)
    }
}

impl CodelConfig {
    fn law(&self) -> CodelLaw {
        let &CodelConfig { limit: _, target, interval, ecn, ce_threshold, mtu, control_law } = self;
        CodelLaw::new(control_law, [target, interval], ce_threshold, ecn, mtu)
    }
}

/// A CoDel queue.
#[derive(Debug)]
pub struct Codel<P> {
    limit: u64,
    law: CodelLaw,
    state: CodelState,
    store: Store<P>,
}

impl<P: Queued> Codel<P> {
    /// An empty queue.
    pub fn new(config: CodelConfig) -> Codel<P> {
        Codel { limit: config.limit, law: config.law(), state: CodelState::new(), store: Store::new() }
    }
}

/// The queue as the law sees it during one dequeue.
struct StoreSource<'a, P> {
    store: &'a mut Store<P>,
    drops: &'a mut Drops<P>,
}

impl<P: Queued> CodelSource<P> for StoreSource<'_, P> {
    fn take(&mut self) -> Option<Entry<P>> {
        self.store.take()
    }

    fn backlog_bytes(&self) -> u64 {
        self.store.backlog().bytes
    }

    fn discard(&mut self, entry: Entry<P>) {
        self.store.discard(entry, DropReason::Delay, self.drops);
    }

    fn mark(&mut self, packet: &mut P) -> bool {
        self.store.mark(packet)
    }
}

impl<P: Queued + Send> QueueDisc<P> for Codel<P> {
    fn enqueue(&mut self, now: Time, packet: P, drops: &mut Drops<P>) {
        if self.store.backlog().packets < self.limit {
            self.store.admit(now, packet);
        } else {
            self.store.refuse(packet, DropReason::Limit, drops);
        }
    }

    fn dequeue(&mut self, now: Time, drops: &mut Drops<P>) -> Dequeue<P> {
        if self.store.backlog().packets == 0 {
            return Dequeue::Empty;
        }
        let mut source = StoreSource { store: &mut self.store, drops };
        let entry = self.state.dequeue(&self.law, now, &mut source);
        entry.map(|entry| self.store.release(entry)).into()
    }

    fn idle(&mut self, _now: Time) {
        self.state.found_empty(&self.law);
    }

    fn passes(&self) -> bool {
        self.limit > 0
    }

    fn pass(&mut self, bytes: u32) {
        self.store.pass(bytes);
    }

    /// Other parameters at run time. The state stays; heads beyond the new limit are discarded
    /// without asking the law (Linux `codel_change`).
    fn change(&mut self, _now: Time, config: &dyn Any, drops: &mut Drops<P>) -> Result<(), ChangeError> {
        let config = parameters::<CodelConfig>(config)?.clone();
        fixed("control_law", config.control_law != self.law.control_law())?;
        self.limit = config.limit;
        self.law = config.law();
        self.store.trim(drops, |store| store.backlog().packets > config.limit);
        Ok(())
    }

    fn peek(&self) -> Option<&Entry<P>> {
        self.store.front()
    }

    fn books(&self) -> &Books {
        self.store.books()
    }

    fn probe(&self) -> Probe {
        Probe { delay: Some(self.state.sojourn()), dropping: Some(self.state.dropping()), ..Probe::default() }
    }

    fn variables(&self, see: &mut dyn FnMut(&'static str, Variable)) {
        QueueDisc::<P>::probe(self).variables(see);
        see("count", Variable::Count(self.state.count().into()));
    }
}

#[cfg(test)]
mod tests;
