//! One direction of a link with what is measured on it.

use std::collections::BTreeMap;

use ackclock_aqm::{Counters, DropReason};
use ackclock_emulator::{Link, LinkEvent, LinkEventKind};
use ackclock_trace::{Histogram, LinkSummary, LinkWindow};
use ackclock_units::{Rate, Span, Time};

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
        let busy = self.busy_by(end);
        LinkSummary {
            id: self.id.clone(),
            queue: self.queue,
            rate_bps: self.link.rate().map(Rate::as_bps),
            offered: counters.offered.packets,
            enqueued: counters.enqueued.packets,
            dequeued: counters.dequeued.packets,
            marked: counters.marked.packets,
            dropped: dropped(|reason| counters.dropped[reason as usize], self.lost),
            utilization: if end > Time::ZERO { busy.as_secs_f64() / end.as_secs_f64() } else { 0.0 },
            sojourn_ms: self.sojourn.distribution(1e-6),
            backlog_packets: self.backlog.distribution(1.0),
        }
    }
    /// The time in transmission until `now`.
    fn busy_by(&self, now: Time) -> Span {
        self.busy - self.busy_until.since(now)
    }

    /// What stands at the start of a window. The link has caught up to `now`.
    pub(crate) fn mark(&self, now: Time) -> DirectionMark {
        let mut backlog = self.backlog.clone();
        backlog.add_weight(self.level.into(), now.since(self.since).as_nanos());
        DirectionMark {
            counters: *self.link.queue().counters(),
            lost: self.lost,
            busy: self.busy_by(now),
            sojourn: self.sojourn.clone(),
            backlog,
        }
    }

    /// What came since, in a window of this length that ends `now`, to which the link has caught up.
    pub(crate) fn since(&self, mark: &DirectionMark, length: Span, now: Time) -> LinkWindow {
        let mut backlog = self.backlog.clone();
        backlog.add_weighted(self.level.into(), now.since(self.since).as_nanos());
        let (counters, then) = (self.link.queue().counters(), &mark.counters);
        let busy = self.busy_by(now) - mark.busy;
        let drops = |reason: DropReason| counters.dropped[reason as usize] - then.dropped[reason as usize];
        LinkWindow {
            id: self.id.clone(),
            rate_bps: self.link.rate().map(Rate::as_bps),
            offered: counters.offered.packets - then.offered.packets,
            enqueued: counters.enqueued.packets - then.enqueued.packets,
            dequeued: counters.dequeued.packets - then.dequeued.packets,
            marked: counters.marked.packets - then.marked.packets,
            dropped: dropped(drops, self.lost - mark.lost),
            utilization: if length > Span::ZERO { busy.as_secs_f64() / length.as_secs_f64() } else { 0.0 },
            sojourn_ms: self.sojourn.since(&mark.sojourn).distribution(1e-6),
            backlog_packets: backlog.since(&mark.backlog).distribution(1.0),
        }
    }
}

/// What a link direction had measured at the start of a window.
#[derive(Debug)]
pub(crate) struct DirectionMark {
    counters: Counters,
    lost: u64,
    busy: Span,
    sojourn: Histogram,
    backlog: Histogram,
}

/// Drops by reason, those that occurred, with what was lost on the wire.
fn dropped(drops: impl Fn(DropReason) -> u64, lost: u64) -> BTreeMap<&'static str, u64> {
    let by_queue = DropReason::ALL.iter().map(|&reason| (reason.name(), drops(reason)));
    by_queue.chain([(LOST_ON_LINK, lost)]).filter(|&(_, packets)| packets > 0).collect()
}
