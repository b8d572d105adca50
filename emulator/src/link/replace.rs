//! Another discipline in the place of a link's queue.

use ackclock_aqm::{Counters, Dequeue, DropReason, QueueSpec};
use ackclock_units::outside::Failure;
use ackclock_units::{Random, Time};

use super::{Link, LinkSink};

impl Link {
    /// The books of all disciplines that the queue has had ([`ackclock_aqm::QueueDisc::counters`]).
    pub fn counters(&self) -> Counters {
        let mut counters = *self.queue().counters();
        if let Some(replaced) = &self.replaced {
            counters.absorb(&replaced.counters);
        }
        counters
    }

    /// The integral of the probabilities of all of them, if the present one has any
    /// ([`ackclock_aqm::QueueDisc::probability_time`]).
    pub fn probability_time(&self, now: Time) -> Option<f64> {
        let before = self.replaced.as_ref().map_or(0.0, |replaced| replaced.probability_time);
        self.queue.probability_time(now).map(|present| before + present)
    }

    /// Why one of them cannot go on ([`ackclock_aqm::QueueDisc::failure`]).
    pub fn failure(&self) -> Option<&Failure> {
        self.replaced.as_ref().and_then(|replaced| replaced.failure.as_ref()).or_else(|| self.queue.failure())
    }

    /// A new discipline takes the place of the queue, and what waits is discarded. Everything due
    /// before has been done.
    pub(super) fn replace_queue(&mut self, now: Time, spec: &QueueSpec, events: &mut impl LinkSink) {
        self.ask_queue();
        let replaced = self.replaced.get_or_insert_default();
        replaced.number += 1;
        // As its impairments, a new queue has a stream of its own.
        let random = Random::for_component(self.random.clone().bits(), replaced.number, "queue");
        let mut old = std::mem::replace(&mut self.queue, spec.build(random));
        self.looks = self.queue.looks();
        let (mut counters, backlog) = (*old.counters(), old.backlog());
        counters.purge(backlog);
        replaced.counters.absorb(&counters);
        replaced.probability_time += old.probability_time(now).unwrap_or(0.0);
        old.purge(now, &mut self.drops);
        debug_assert_eq!(self.drops.len() as u64, backlog.packets, "a queue gives up all that waits");
        self.drops.iter_mut().for_each(|dropped| dropped.reason = DropReason::Purge);
        replaced.failure = replaced.failure.take().or_else(|| old.failure().cloned());
        if let Some(recording) = &mut self.recording {
            recording.replaced();
            recording.dequeued(now, &mut Dequeue::Empty, &*self.queue, &mut self.drops);
        }
        self.report_drops(now, events);
    }
}
