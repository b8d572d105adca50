//! One direction of a link with what is measured on it.

use std::collections::BTreeMap;

use ackclock_aqm::{ClassState, Counters, DropReason, Headers, Tally};
use ackclock_emulator::{Change, Link, LinkEvent, LinkEventKind, LinkSink, Medium, Usage};
use ackclock_packet::Packet;
use ackclock_trace::{Histogram, LinkLoad, LinkPackets, LinkPoint, LinkSummary, LinkWindow, ProbabilitySummary};
use ackclock_units::{Rate, Span, Time};

use self::levels::Levels;
use crate::error::RunError;
use crate::index::HostId;
use crate::truth::LOST_ON_LINK;

mod levels;

/// A link direction and its measures.
#[derive(Debug)]
pub(crate) struct LinkDirection {
    link: Link,
    measures: DirectionMeasures,
    /// The hosts of the packets that were the third and the second before the last ones arrived.
    ahead: [Option<HostId>; 2],
    pub(crate) id: String,
    queue: &'static str,
}

/// The measurements on a link direction.
#[derive(Debug)]
struct DirectionMeasures {
    /// Time by number of waiting packets, ...
    backlog: Levels,
    /// ... the current number, ...
    level: u32,
    /// ... since then.
    since: Time,
    /// Packets that did not wait.
    unqueued: u64,
    /// Times in the queue above zero.
    sojourn: Histogram,
    /// Time in transmission at the rate, the last part of it perhaps beyond the end of the run.
    busy: Span,
    busy_until: Time,
    bucket: Option<BucketMeasures>,
    lost: u64,
    duplicated: u64,
    corrupted: u64,
}

/// Measures what a link reports, and passes on what has to be dealt with.
struct Measuring<'a> {
    measures: &'a mut DirectionMeasures,
    events: &'a mut Vec<LinkEvent>,
}

impl LinkSink for Measuring<'_> {
    #[inline(always)]
    fn event(&mut self, event: LinkEvent) {
        self.measures.pass_time(event.at);
        self.measures.level = event.backlog;
        match event.kind {
            LinkEventKind::Offered => {}
            LinkEventKind::Sent { sojourn, busy } => self.measures.sent(event.at, sojourn, busy),
            LinkEventKind::Dropped { .. } => self.events.push(event),
            LinkEventKind::Lost { .. } => {
                self.measures.lost += 1;
                self.events.push(event);
            }
            LinkEventKind::Corrupted { .. } => self.measures.corrupted += 1,
            LinkEventKind::Duplicated { .. } => {
                self.measures.duplicated += 1;
                self.events.push(event);
            }
        }
    }
}

impl DirectionMeasures {
    #[inline(always)]
    fn pass_time(&mut self, now: Time) {
        self.backlog.add(self.level, now.since(self.since));
        self.since = now;
    }

    #[inline(always)]
    fn sent(&mut self, now: Time, sojourn: Span, busy: Span) {
        match sojourn.as_nanos() {
            0 => self.unqueued += 1,
            nanos => self.sojourn.add(nanos),
        }
        self.busy += busy;
        // A bucket gives packets out before a transmitter of the rate would have come to them.
        self.busy_until = self.busy_until.max(now) + busy;
        if let Some(bucket) = &mut self.bucket {
            let filled = self.busy_until - bucket.depth;
            bucket.empty += filled.since(now);
            bucket.empty_until = bucket.empty_until.max(filled);
        }
    }

    /// The times in the queue of all packets.
    fn sojourns(&self) -> Histogram {
        let mut sojourns = self.sojourn.clone();
        sojourns.add_repeated(0, self.unqueued);
        sojourns
    }

    /// The time in transmission until `now`.
    fn busy_by(&self, now: Time) -> Span {
        self.busy - self.busy_until.since(now)
    }
}

/// The measures of a token bucket.
#[derive(Debug)]
struct BucketMeasures {
    depth: Span,
    /// Time without tokens, the last part of it perhaps beyond the end of the run.
    empty: Span,
    empty_until: Time,
}

impl BucketMeasures {
    fn empty_by(&self, now: Time) -> Span {
        self.empty - self.empty_until.since(now)
    }
}

impl LinkDirection {
    pub(crate) fn new(id: String, queue: &'static str, link: Link) -> LinkDirection {
        let bucket =
            link.bucket_depth().map(|depth| BucketMeasures { depth, empty: Span::ZERO, empty_until: Time::ZERO });
        let measures = DirectionMeasures {
            backlog: Levels::default(),
            level: 0,
            since: Time::ZERO,
            unqueued: 0,
            sojourn: Histogram::new(),
            busy: Span::ZERO,
            busy_until: Time::ZERO,
            bucket,
            lost: 0,
            duplicated: 0,
            corrupted: 0,
        };
        LinkDirection { link, measures, ahead: [None; 2], id, queue }
    }

    /// Checks that no queue discipline from outside has failed.
    ///
    /// # Errors
    ///
    /// Its failure.
    pub(crate) fn check(&self) -> Result<(), RunError> {
        match self.link.failure() {
            Some(failure) => Err(RunError::Own { of: format!("link {}", self.id), failure: failure.clone() }),
            None => Ok(()),
        }
    }

    /// The run is over: a queue discipline from outside accounts for what it has.
    pub(crate) fn audit(&mut self, now: Time) {
        self.link.audit(now);
    }

    /// [`Link::next_due`].
    #[inline(always)]
    pub(crate) fn next_due(&self) -> Time {
        self.link.next_due()
    }

    /// [`Link::third`].
    #[inline(always)]
    pub(crate) fn third(&self) -> Option<&Packet> {
        self.link.third()
    }

    /// The third packet goes to this host, if it is known; returns those of the first two.
    #[inline(always)]
    pub(crate) fn see_ahead(&mut self, third: Option<HostId>) -> [Option<HostId>; 2] {
        let [first, second] = self.ahead;
        self.ahead = [second, third];
        [first, second]
    }

    /// The link, to be recorded.
    pub(crate) fn recorded(&mut self) -> &mut Link {
        &mut self.link
    }

    /// [`Link::offer`]. What happens is measured; packets that will not arrive, or twice, are in
    /// `events`.
    #[inline]
    pub(crate) fn offer(&mut self, now: Time, packet: Packet, events: &mut Vec<LinkEvent>) {
        self.link.offer(now, packet, &mut Measuring { measures: &mut self.measures, events });
    }

    /// [`Link::looks`].
    #[inline]
    pub(crate) fn looks(&self) -> bool {
        self.link.looks()
    }

    /// [`Link::look`].
    pub(crate) fn look(&mut self, headers: Headers<'_>) {
        self.link.look(headers);
    }

    /// [`Link::deliver`], with `events` as above.
    #[inline(always)]
    pub(crate) fn deliver(&mut self, now: Time, events: &mut Vec<LinkEvent>) -> Option<(Time, Packet)> {
        self.link.deliver(now, &mut Measuring { measures: &mut self.measures, events })
    }

    /// [`Link::catch_up`], with `events` as above.
    pub(crate) fn catch_up(&mut self, now: Time, events: &mut Vec<LinkEvent>) {
        self.link.catch_up(now, &mut Measuring { measures: &mut self.measures, events });
    }

    /// [`Link::change`].
    pub(crate) fn change(&mut self, change: Change) -> Time {
        self.link.change(change)
    }

    /// The link, to be asked.
    pub(crate) fn link(&self) -> &Link {
        &self.link
    }

    /// [`Medium::step`] of this link, with `events` as above.
    pub(crate) fn take_step(&mut self, medium: &mut Medium, events: &mut Vec<LinkEvent>) {
        medium.step(&mut self.link, &mut Measuring { measures: &mut self.measures, events });
    }

    /// The summary of a run that ended at `end`.
    ///
    /// # Panics
    /// If the books of the queue do not balance.
    pub(crate) fn summary(&mut self, end: Time) -> LinkSummary {
        self.measures.pass_time(end);
        let counters = self.link.counters();
        let backlog = self.link.queue().backlog();
        assert!(counters.balance(backlog), "the books of {} do not balance: {counters:?}, {backlog:?}", self.id);
        let length = end.since(Time::ZERO);
        let (rate_bps, utilization) = self.rate_and_use(Usage::default(), self.measures.busy_by(end), length);
        LinkSummary {
            id: self.id.clone(),
            queue: self.queue,
            packets: LinkPackets {
                rate_bps,
                offered: counters.offered.packets,
                enqueued: counters.enqueued.packets,
                dequeued: counters.dequeued.packets,
                marked: counters.marked.packets,
                dropped: dropped(|reason| counters.dropped[reason as usize], self.measures.lost),
                duplicated: self.measures.duplicated,
            },
            corrupted: self.measures.corrupted,
            load: LinkLoad {
                utilization,
                bucket_empty: self.measures.bucket.as_ref().map(|bucket| share(bucket.empty_by(end), length)),
                probability: self.probability(0.0, length, end),
                sojourn_ms: self.measures.sojourns().distribution(1e-6),
                backlog_packets: self.measures.backlog.histogram().distribution(1.0),
            },
        }
    }

    /// The rate and the share of it that was used, in a time of this length since `then`, of which
    /// the transmitter was busy for so long. On a link that changes, the rate is the mean of what
    /// was possible while there was one.
    fn rate_and_use(&self, then: Usage, busy: Span, length: Span) -> (Option<u64>, f64) {
        let Some(now) = self.link.usage() else {
            return (self.link.rate().map(Rate::as_bps), share(busy, length));
        };
        let (possible, sent) = (now.possible - then.possible, now.sent - then.sent);
        let limited = now.limited - then.limited;
        // A billionth of a bit in a nanosecond is a bit in a second.
        let mean = possible / u128::from(limited.as_nanos()).max(1);
        let used = if possible > 0 { sent as f64 / possible as f64 } else { 0.0 };
        (u64::try_from(mean).ok().filter(|&mean| mean > 0), used)
    }

    /// The probability of the queue in a time of this length that ends `now`, since its integral
    /// was `then`.
    fn probability(&self, then: f64, length: Span, now: Time) -> Option<ProbabilitySummary> {
        let (area, last) = self.link.probability_time(now).zip(self.link.queue().probe().probability)?;
        let mean = if length > Span::ZERO { (area - then) / length.as_secs_f64() } else { last };
        Some(ProbabilitySummary { mean, last })
    }

    /// The counts at the start of a window. The link has caught up to `now`.
    pub(crate) fn mark(&self, now: Time) -> DirectionMark {
        let mut backlog = self.measures.backlog.clone();
        backlog.add_part(self.measures.level, now.since(self.measures.since));
        DirectionMark {
            counters: self.link.counters(),
            lost: self.measures.lost,
            duplicated: self.measures.duplicated,
            busy: self.measures.busy_by(now),
            usage: self.link.usage_by(now),
            bucket_empty: self.measures.bucket.as_ref().map(|bucket| bucket.empty_by(now)),
            probability_time: self.link.probability_time(now),
            sojourn: self.measures.sojourns(),
            backlog: backlog.histogram(),
        }
    }

    /// The counts until now, to which the link has caught up.
    pub(crate) fn count(&self, now: Time) -> DirectionCount {
        let counters = self.link.counters();
        DirectionCount {
            dequeued: counters.dequeued,
            dropped: counters.dropped.iter().sum(),
            marked: counters.marked.packets,
            lost: self.measures.lost,
            busy: self.measures.busy_by(now),
            usage: self.link.usage_by(now),
            sojourn_sum: self.measures.sojourn.sum(),
            sojourns: self.measures.sojourn.samples() + self.measures.unqueued,
        }
    }

    /// Bytes and packets that left the queue from `then` to `now`, a time of this length that has
    /// just ended, and the other values of a series.
    pub(crate) fn point(&self, now: &DirectionCount, then: &DirectionCount, length: Span) -> (u64, u64, LinkPoint) {
        let queue = self.link.queue();
        let (rate_bps, utilization) = self.rate_and_use(then.usage, now.busy - then.busy, length);
        let backlog = queue.backlog();
        let point = LinkPoint {
            dropped_packets: now.dropped - then.dropped,
            lost_packets: now.lost - then.lost,
            marked_packets: now.marked - then.marked,
            sojourn: mean(now.sojourn_sum - then.sojourn_sum, now.sojourns - then.sojourns),
            backlog_packets: backlog.packets,
            backlog_bytes: backlog.bytes,
            probability: queue.probe().probability,
            rate_bps,
            utilization,
        };
        (now.dequeued.bytes - then.dequeued.bytes, now.dequeued.packets - then.dequeued.packets, point)
    }

    /// The measurements since `mark`, in a window of this length that ends `now`, to which the link
    /// has caught up.
    pub(crate) fn since(&self, mark: &DirectionMark, length: Span, now: Time) -> LinkWindow {
        let mut backlog = self.measures.backlog.clone();
        backlog.add(self.measures.level, now.since(self.measures.since));
        let (counters, then) = (self.link.counters(), &mark.counters);
        let busy = self.measures.busy_by(now) - mark.busy;
        let (rate_bps, utilization) = self.rate_and_use(mark.usage, busy, length);
        let drops = |reason: DropReason| counters.dropped[reason as usize] - then.dropped[reason as usize];
        LinkWindow {
            id: self.id.clone(),
            packets: LinkPackets {
                rate_bps,
                offered: counters.offered.packets - then.offered.packets,
                enqueued: counters.enqueued.packets - then.enqueued.packets,
                dequeued: counters.dequeued.packets - then.dequeued.packets,
                marked: counters.marked.packets - then.marked.packets,
                dropped: dropped(drops, self.measures.lost - mark.lost),
                duplicated: self.measures.duplicated - mark.duplicated,
            },
            load: LinkLoad {
                utilization,
                bucket_empty: (self.measures.bucket.as_ref().zip(mark.bucket_empty))
                    .map(|(bucket, then)| share(bucket.empty_by(now) - then, length)),
                probability: mark.probability_time.and_then(|then| self.probability(then, length, now)),
                sojourn_ms: self.measures.sojourns().since(&mark.sojourn).distribution(1e-6),
                backlog_packets: backlog.histogram().since(&mark.backlog).distribution(1.0),
            },
        }
    }
}

/// The counts of a link direction at some time, for a series.
#[derive(Clone, Copy, Debug, Default)]
pub(crate) struct DirectionCount {
    dequeued: Tally,
    dropped: u64,
    marked: u64,
    lost: u64,
    busy: Span,
    usage: Usage,
    sojourn_sum: u128,
    sojourns: u64,
}

/// The counts of a class at some time, for a series.
#[derive(Clone, Copy, Debug, Default)]
pub(crate) struct ClassCount {
    dequeued: Tally,
    dropped: u64,
    marked: u64,
}

impl ClassCount {
    /// Bytes and packets that left the class since the last call, in a time of this length that has
    /// just ended, and the other values of a series.
    pub(crate) fn pass(&mut self, class: &ClassState<'_>, length: Span) -> (u64, u64, LinkPoint) {
        let counters = class.counters;
        let dropped = counters.dropped.iter().sum();
        let now = ClassCount { dequeued: counters.dequeued, dropped, marked: counters.marked.packets };
        let then = std::mem::replace(self, now);
        // The books of a class in another tree begin again.
        let since = |now: u64, then: u64| now.checked_sub(then).unwrap_or(now);
        let bytes = since(now.dequeued.bytes, then.dequeued.bytes);
        let possible = class.rate.map_or(0.0, |rate| rate.as_bps() as f64 * length.as_secs_f64());
        let point = LinkPoint {
            dropped_packets: since(now.dropped, then.dropped),
            lost_packets: 0,
            marked_packets: since(now.marked, then.marked),
            sojourn: None,
            backlog_packets: class.backlog.packets,
            backlog_bytes: class.backlog.bytes,
            probability: class.probability,
            rate_bps: class.rate.map(Rate::as_bps),
            utilization: if possible > 0.0 { bytes as f64 * 8.0 / possible } else { 0.0 },
        };
        (bytes, since(now.dequeued.packets, then.dequeued.packets), point)
    }
}

/// The measurements of a link direction at the start of a window.
#[derive(Debug)]
pub(crate) struct DirectionMark {
    counters: Counters,
    lost: u64,
    duplicated: u64,
    busy: Span,
    usage: Usage,
    bucket_empty: Option<Span>,
    probability_time: Option<f64>,
    sojourn: Histogram,
    backlog: Histogram,
}

/// The mean of `samples` times, rounded down.
pub(crate) fn mean(sum: u128, samples: u64) -> Option<Span> {
    sum.checked_div(samples.into()).map(|mean| Span::from_nanos(u64::try_from(mean).unwrap_or(u64::MAX)))
}

fn share(part: Span, whole: Span) -> f64 {
    if whole > Span::ZERO { part.as_secs_f64() / whole.as_secs_f64() } else { 0.0 }
}

/// Drops by reason, those that occurred, with what was lost on the wire.
fn dropped(drops: impl Fn(DropReason) -> u64, lost: u64) -> BTreeMap<&'static str, u64> {
    let by_queue = DropReason::ALL.iter().map(|&reason| (reason.name(), drops(reason)));
    by_queue.chain([(LOST_ON_LINK, lost)]).filter(|&(_, packets)| packets > 0).collect()
}

#[cfg(test)]
mod tests {
    use std::num::NonZeroU32;

    use ackclock_aqm::{Fifo, FifoConfig, Limit, Overhead};
    use ackclock_emulator::{BqlConfig, Course, DeviceConfig, DeviceLimit, Impairments, LinkConfig, Slots};
    use ackclock_packet::{Class, Packet};
    use ackclock_units::{Ecn, Random};
    use proptest::prelude::*;

    use super::*;

    /// 8 Mbit/s, so that a byte takes a microsecond; packets of 1000 bytes, all offered at time 0.
    fn offered(packets: u32, burst: Option<u32>, impairments: Impairments) -> LinkDirection {
        let queue = Box::new(Fifo::new(FifoConfig { limit: Limit::Packets(100) }));
        let config = LinkConfig {
            rate: Rate::from_bps(8_000_000),
            burst,
            delay: Span::ZERO,
            overhead: Overhead::default(),
            impairments,
        };
        let link = Link::new(config, queue, Random::for_component(1, 0, "link"));
        let mut direction = LinkDirection::new("wire.forward".to_owned(), "pfifo", link);
        let mut events = Vec::new();
        for slot in 1..=packets {
            let packet = Packet {
                flow_hash: 1,
                slot,
                wire_len: 1000,
                route: 0,
                hop: 0,
                ecn: Ecn::NotEct,
                class: Class::default(),
            };
            direction.offer(Time::ZERO, packet, &mut events);
        }
        direction
    }

    fn catch_up(direction: &mut LinkDirection, now: Time) {
        let mut events = Vec::new();
        direction.catch_up(now, &mut events);
    }

    #[test]
    fn a_bucket_is_busy_by_its_rate_and_never_more_than_all_of_the_time() {
        // A bucket of 3000 bytes. Three packets take what it holds, the fourth takes it 1000 below:
        // nothing leaves until 1 ms, when the fifth does, and it is empty until 2 ms. At 8 Mbit/s
        // the five take 5 ms.
        for (end_ms, busy, empty) in [(1, 1.0, 1.0), (2, 1.0, 1.0), (4, 1.0, 0.5), (10, 0.5, 0.2)] {
            let mut direction = offered(5, Some(3000), Impairments::default());
            let end = Time::from_millis(end_ms);
            catch_up(&mut direction, end);
            let summary = direction.summary(end);
            assert_eq!((summary.load.utilization, summary.load.bucket_empty), (busy, Some(empty)), "after {end_ms} ms");
        }
        // The same, from 1 to 4 ms: busy for all of it, empty for one of three.
        let mut direction = offered(5, Some(3000), Impairments::default());
        catch_up(&mut direction, Time::from_millis(1));
        let mark = direction.mark(Time::from_millis(1));
        catch_up(&mut direction, Time::from_millis(4));
        let window = direction.since(&mark, Span::from_millis(3), Time::from_millis(4));
        assert_eq!((window.load.utilization, window.load.bucket_empty), (1.0, Some(1.0 / 3.0)));
    }

    #[test]
    fn a_transmitter_has_no_bucket() {
        let mut direction = offered(5, None, Impairments::default());
        catch_up(&mut direction, Time::from_millis(10));
        let summary = direction.summary(Time::from_millis(10));
        assert_eq!((summary.load.utilization, summary.load.bucket_empty), (0.5, None));
    }

    proptest! {
        /// A transmitter is busy with one packet at a time, and for no part of one twice: in no
        /// interval longer than it lasts, with a bucket, slots or a device as well.
        #[test]
        fn no_interval_is_busy_for_longer_than_it_lasts(
            rate in 1_000u64..50_000_000,
            kind in 0..4,
            depth in 1u32..5000,
            packets in prop::collection::vec((0u64..2_000_000, 1u32..1600), 1..60),
            edges in prop::collection::btree_set(1u64..100_000_000, 1..100),
        ) {
            let queue = Box::new(Fifo::new(FifoConfig { limit: Limit::Packets(100) }));
            let burst = (kind == 1).then_some(depth);
            let impairments = Impairments::default();
            let config = LinkConfig { rate: Rate::from_bps(rate), burst, delay: Span::ZERO, overhead: Overhead::default(), impairments };
            let slots = Slots { delay: Span::from_nanos(depth.into()), packets: Some(3), ..Slots::default() };
            let course = Course { slots: (kind == 2).then_some(slots), ..Course::default() };
            let link = Link::with_course(config, queue, Random::for_component(1, 0, "link"), course);
            let limit = match depth % 3 {
                0 => DeviceLimit::Bql(BqlConfig::default()),
                1 => DeviceLimit::Bytes(NonZeroU32::new(depth).expect("above 0")),
                _ => DeviceLimit::Packets(NonZeroU32::new(depth % 7 + 1).expect("above 0")),
            };
            let device = DeviceConfig { limit, completion: Span::from_nanos(u64::from(depth % 5) * 100_000) };
            let link = if kind == 3 { link.with_device(device) } else { link };
            let mut direction = LinkDirection::new("wire.forward".to_owned(), "pfifo", link);
            let mut at = Time::ZERO;
            let packets = (1..).zip(packets).map(|(slot, (gap, wire_len))| {
                at += Span::from_nanos(gap);
                let class = Class::default();
                (at, Packet { flow_hash: 1, slot, wire_len, route: 0, hop: 0, ecn: Ecn::NotEct, class })
            });
            let (mut packets, mut events) = (packets.peekable(), Vec::new());
            let (mut from, mut then) = (Time::ZERO, DirectionCount::default());
            for to in edges.into_iter().map(Time::from_nanos) {
                while let Some((at, packet)) = packets.next_if(|(at, _)| *at < to) {
                    direction.offer(at, packet, &mut events);
                }
                direction.catch_up(to, &mut events);
                let now = direction.count(to);
                let (_, _, point) = direction.point(&now, &then, to.since(from));
                prop_assert!((0.0..=1.0).contains(&point.utilization), "{} from {from:?} to {to:?}", point.utilization);
                (from, then) = (to, now);
            }
        }
    }

    #[test]
    fn packets_that_are_on_the_wire_twice_are_counted() {
        let mut direction = offered(5, None, Impairments { duplicate: 1.0, ..Impairments::default() });
        catch_up(&mut direction, Time::from_millis(4));
        let mark = direction.mark(Time::from_millis(4));
        catch_up(&mut direction, Time::from_millis(10));
        assert_eq!(direction.since(&mark, Span::from_millis(6), Time::from_millis(10)).packets.duplicated, 1);
        assert_eq!(
            (
                direction.summary(Time::from_millis(10)).packets.duplicated,
                direction.link.queue().counters().offered.packets
            ),
            (5, 5)
        );
    }
}
