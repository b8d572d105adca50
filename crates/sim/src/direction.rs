//! One direction of a link with what is measured on it.

use ackclock_aqm::DropReason;
use ackclock_emulator::{Link, LinkEvent, LinkEventKind};
use ackclock_trace::{Histogram, LinkSummary};
use ackclock_units::{Span, Time};

/// The reason under which a summary counts packets lost on the wire rather than dropped by the queue.
pub const LOST_ON_LINK: &str = "link";

/// A link direction and its measures.
#[derive(Debug)]
pub(crate) struct Direction {
    pub(crate) link: Link,
    pub(crate) id: String,
    queue: &'static str,
    sojourn: Histogram,
    /// Packets waiting, weighted by time.
    backlog: Histogram,
    level: u32,
    since: Time,
    /// Time in transmission, the last one perhaps beyond the end of the run.
    busy: Span,
    busy_until: Time,
    lost: u64,
}

impl Direction {
    pub(crate) fn new(id: String, queue: &'static str, link: Link) -> Direction {
        Direction {
            link,
            id,
            queue,
            sojourn: Histogram::new(),
            backlog: Histogram::new(),
            level: 0,
            since: Time::ZERO,
            busy: Span::ZERO,
            busy_until: Time::ZERO,
            lost: 0,
        }
    }

    /// Takes an event into the measures.
    pub(crate) fn measure(&mut self, event: &LinkEvent) {
        self.pass_time(event.at);
        self.level = event.backlog;
        match event.kind {
            LinkEventKind::Sent { sojourn, busy } => {
                self.sojourn.add(sojourn.as_nanos());
                self.busy += busy;
                self.busy_until = event.at + busy;
            }
            LinkEventKind::Lost { .. } => self.lost += 1,
            LinkEventKind::Offered | LinkEventKind::Dropped { .. } | LinkEventKind::Duplicated { .. } => {}
        }
    }

    fn pass_time(&mut self, now: Time) {
        self.backlog.add_weighted(u64::from(self.level), now.since(self.since).as_nanos());
        self.since = now;
    }

    /// The summary of a run that ended at `end`.
    ///
    /// # Panics
    /// If the books of the queue do not balance.
    pub(crate) fn summary(&mut self, end: Time) -> LinkSummary {
        self.pass_time(end);
        let counters = self.link.queue().counters();
        let backlog = self.link.queue().backlog();
        assert!(counters.balance(backlog), "the books of {} do not balance: {counters:?}, {backlog:?}", self.id);
        let mut dropped: std::collections::BTreeMap<&'static str, u64> = DropReason::ALL
            .iter()
            .map(|&reason| (reason.name(), counters.dropped[reason as usize]))
            .filter(|&(_, packets)| packets > 0)
            .collect();
        if self.lost > 0 {
            dropped.insert(LOST_ON_LINK, self.lost);
        }
        let busy = self.busy - self.busy_until.since(end);
        LinkSummary {
            id: self.id.clone(),
            queue: self.queue,
            offered: counters.offered.packets,
            enqueued: counters.enqueued.packets,
            dequeued: counters.dequeued.packets,
            marked: counters.marked.packets,
            dropped,
            utilization: if end > Time::ZERO { busy.as_secs_f64() / end.as_secs_f64() } else { 0.0 },
            sojourn_ms: self.sojourn.distribution(1e-6),
            backlog_packets: self.backlog.distribution(1.0),
        }
    }
}
