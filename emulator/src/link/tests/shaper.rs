//! Disciplines that hold packets back, on every kind of transmitter.

use std::any::Any;
use std::sync::Arc;
use std::sync::atomic::{AtomicU64, Ordering};

use ackclock_aqm::{Books, ChangeError, DropReason, Entry, Probe};

use super::*;
use crate::{Action, Decision};

/// Packets leave another discipline at least `gap` apart.
#[derive(Debug)]
pub(super) struct Paced {
    queue: Box<dyn QueueDisc<Framed>>,
    gap: Span,
    next: Time,
    /// The number of times it was asked for a packet.
    asked: Arc<AtomicU64>,
}

impl Paced {
    pub(super) fn new(queue: Box<dyn QueueDisc<Framed>>, gap: Span) -> Paced {
        Paced { queue, gap, next: Time::ZERO, asked: Arc::default() }
    }
}

impl QueueDisc<Framed> for Paced {
    fn enqueue(&mut self, now: Time, packet: Framed, drops: &mut Drops<Framed>) {
        self.queue.enqueue(now, packet, drops);
    }

    fn dequeue(&mut self, now: Time, drops: &mut Drops<Framed>) -> Dequeue<Framed> {
        self.asked.fetch_add(1, Ordering::Relaxed);
        if self.queue.backlog().packets > 0 && now < self.next {
            return Dequeue::NotBefore(self.next);
        }
        let dequeued = self.queue.dequeue(now, drops);
        if let Dequeue::Packet(_) = dequeued {
            self.next = now + self.gap;
        }
        dequeued
    }

    fn idle(&mut self, now: Time) {
        assert_eq!(self.queue.backlog().packets, 0, "idle while packets are held back");
        self.queue.idle(now);
    }

    /// Another `gap`, from the packet that left last.
    fn change(&mut self, _now: Time, config: &dyn Any, _drops: &mut Drops<Framed>) -> Result<(), ChangeError> {
        let &gap = config.downcast_ref().ok_or(ChangeError::OtherDiscipline)?;
        self.next = Time::ZERO + (self.next.since(Time::ZERO) - self.gap) + gap;
        self.gap = gap;
        Ok(())
    }

    fn peek(&self) -> Option<&Entry<Framed>> {
        self.queue.peek()
    }

    fn books(&self) -> &Books {
        self.queue.books()
    }

    fn probe(&self) -> Probe {
        self.queue.probe()
    }
}

/// Each packet leaves `route` microseconds after its arrival at the earliest (as with `etf`, by the
/// packet's own time), and never if `route` is [`NEVER`]. Those that may leave keep their order.
#[derive(Debug, Default)]
pub(super) struct Timed {
    waiting: Vec<Entry<Framed>>,
    books: Books,
}

const NEVER: u32 = u32::MAX;

fn due(entry: &Entry<Framed>) -> Time {
    match entry.packet.0.route {
        NEVER => Time::NEVER,
        route => entry.enqueued_at + Span::from_micros(u64::from(route)),
    }
}

impl QueueDisc<Framed> for Timed {
    fn enqueue(&mut self, now: Time, packet: Framed, _drops: &mut Drops<Framed>) {
        self.books.admit(packet.wire_len());
        self.waiting.push(Entry { packet, enqueued_at: now });
    }

    fn dequeue(&mut self, now: Time, _drops: &mut Drops<Framed>) -> Dequeue<Framed> {
        if let Some(index) = self.waiting.iter().position(|entry| due(entry) <= now) {
            let entry = self.waiting.remove(index);
            self.books.take(entry.packet.wire_len());
            self.books.release(entry.packet.wire_len());
            return Dequeue::Packet(entry);
        }
        self.waiting.iter().map(due).min().map_or(Dequeue::Empty, Dequeue::NotBefore)
    }

    fn peek(&self) -> Option<&Entry<Framed>> {
        self.waiting.iter().min_by_key(|entry| due(entry))
    }

    fn books(&self) -> &Books {
        &self.books
    }
}

/// The link, polled whenever something is due: what arrived, in nanoseconds.
fn arrivals(link: &mut Link, arrivals: &[(Time, Packet)]) -> Vec<(u64, u32)> {
    let (delivered, _) = polled_exactly(link, arrivals, &[]);
    delivered.into_iter().map(|(at, packet)| (at.as_nanos(), packet.slot)).collect()
}

fn at_once(packets: u32) -> Vec<(Time, Packet)> {
    (0..packets).map(|slot| (us(10), packet(slot, 1250))).collect()
}

/// 333,333 ns apart: a link that rounds, or that asks late, is off after a few. A transmitter that
/// is slower (1 ms for each packet) sets the pace itself.
#[test]
fn a_pacer_is_exact_to_the_nanosecond() {
    let gap = 333_333;
    let fast = Rate::from_bps(100 * MBIT);
    for (rate, burst, spacing, transmission) in [
        (None, None, gap, 0),
        (fast, None, gap, 100_000),
        (fast, Some(1), gap, 0),
        (config().rate, None, 1_000_000, 1_000_000),
    ] {
        let paced = Paced::new(pfifo(1000), Span::from_nanos(gap));
        let asked = Arc::clone(&paced.asked);
        let mut link = Link::new(LinkConfig { rate, burst, ..config() }, Box::new(paced), random("link"));
        let expected: Vec<_> =
            (0..500).map(|n| (10_000 + u64::from(n) * spacing + transmission + 1_000_000, n)).collect();
        assert_eq!(arrivals(&mut link, &at_once(500)), expected, "{rate:?}, {burst:?}");
        // Once for each packet that leaves or comes, and once each time that packets were held
        // back.
        assert!(asked.load(Ordering::Relaxed) <= 1500, "{asked:?}");
        assert_eq!(link.next_due(), Time::NEVER);
    }
}

/// A bucket of two packets lets the second pass where the pacer does; the pacer's time is not lost.
#[test]
fn a_pacer_before_a_bucket_waits_for_both() {
    let paced = Paced::new(pfifo(10), Span::from_micros(300));
    let config = LinkConfig { burst: Some(2500), delay: Span::ZERO, ..config() };
    let mut link = Link::new(config, Box::new(paced), random("link"));
    // At 10 Mbit/s the bucket earns 375 bytes in 300 us. It has 2500, 1625 and 750 bytes when the
    // pacer lets a packet go, and is then 500 bytes below nothing: 400 us. From then on each packet
    // takes 1 ms.
    assert_eq!(
        arrivals(&mut link, &at_once(6)),
        [(10_000, 0), (310_000, 1), (610_000, 2), (1_010_000, 3), (2_010_000, 4), (3_010_000, 5)]
    );
}

/// HeldBack back until 5 ms; what comes at 1 ms may leave at 2 ms, and what comes at 1.5 ms at
/// once.
#[test]
fn a_packet_may_make_an_earlier_time_possible() {
    for rate in [None, Rate::from_bps(1_000_000_000_000)] {
        let mut link = Link::new(LinkConfig { rate, ..config() }, Box::<Timed>::default(), random("link"));
        let mut events = Vec::new();
        let offer = |link: &mut Link, at, slot, route| {
            link.offer(us(at), Packet { route, ..packet(slot, 1) }, &mut Vec::new());
            link.next_due().as_nanos() / 1000
        };
        assert_eq!(offer(&mut link, 0, 1, 5000), 6000);
        assert_eq!(offer(&mut link, 1000, 2, 1000), 3000);
        assert_eq!(offer(&mut link, 1500, 3, 0), 2500);
        assert_eq!(offer(&mut link, 1700, 4, NEVER), 2500);
        assert_eq!(drain(&mut link, &mut events), [(2500, 3), (3000, 2), (6000, 1)]);
        // One is left that never leaves, and nobody is woken for it; another passes it.
        assert_eq!((link.next_due(), link.queue().backlog().packets), (Time::NEVER, 1));
        assert_eq!(offer(&mut link, 9000, 5, 7), 10_007);
        assert_eq!(drain(&mut link, &mut events), [(10_007, 5)]);
    }
}

/// The link is told the time a second late: packets leave when they were due all the same, and none
/// is held back for longer because of it.
#[test]
fn a_late_call_finds_everything_at_its_time() {
    let build = || {
        let paced = Paced::new(pfifo(100), Span::from_micros(700));
        Link::new(config(), Box::new(paced), random("link"))
    };
    let packets: Vec<_> =
        at_once(20).into_iter().map(|(at, packet)| (at, Packet { wire_len: 100, ..packet })).collect();
    assert_eq!(polled_exactly(&mut build(), &packets, &[]), polled_late(&mut build(), &packets));
}

#[test]
fn decisions_of_a_shaper_are_recorded_at_their_time() {
    let paced = Paced::new(pfifo(2), Span::from_micros(1500));
    let mut link = Link::new(config(), Box::new(paced), random("link"));
    link.record();
    let mut events = Vec::new();
    for slot in 0..4 {
        link.offer(us(0), packet(slot, 1250), &mut events);
    }
    drain(&mut link, &mut events);
    let short = |decision: Decision| {
        let Decision { at, packet, action, sojourn, .. } = decision;
        (at.as_nanos() / 1000, packet.slot, action, sojourn.map(|sojourn| sojourn.as_nanos() / 1000))
    };
    assert_eq!(
        link.decisions().map(short).collect::<Vec<_>>(),
        [
            (0, 0, Action::Enqueue, None),
            (0, 0, Action::Dequeue, Some(0)),
            (0, 1, Action::Enqueue, None),
            (0, 2, Action::Enqueue, None),
            (0, 3, Action::Drop(DropReason::Limit), None),
            (1500, 1, Action::Dequeue, Some(1500)),
            (3000, 2, Action::Dequeue, Some(3000)),
        ]
    );
    assert!(link.queue().counters().balance(link.queue().backlog()));
}

/// A discipline that never lets time pass would keep the link busy for ever.
#[test]
#[should_panic(expected = "held back until")]
fn a_queue_does_not_hold_packets_back_until_now() {
    #[derive(Debug)]
    struct Now(Paced);

    impl QueueDisc<Framed> for Now {
        fn enqueue(&mut self, now: Time, packet: Framed, drops: &mut Drops<Framed>) {
            self.0.enqueue(now, packet, drops);
        }

        fn dequeue(&mut self, now: Time, _drops: &mut Drops<Framed>) -> Dequeue<Framed> {
            Dequeue::NotBefore(now)
        }

        fn peek(&self) -> Option<&Entry<Framed>> {
            self.0.peek()
        }

        fn books(&self) -> &Books {
            self.0.books()
        }

        fn probe(&self) -> Probe {
            self.0.probe()
        }
    }

    let now = Now(Paced::new(pfifo(1), Span::ZERO));
    Link::new(config(), Box::new(now), random("link")).offer(us(0), packet(0, 1250), &mut Vec::new());
}

/// 10 ms apart, and from 12 ms on 3 ms: the one that was to leave at 20 ms leaves at 13 ms, the
/// next at 16 ms. A change that the discipline does not take is one more look at the clock.
#[test]
fn other_parameters_may_let_a_packet_go_sooner() {
    let paced = Paced::new(pfifo(10), Span::from_millis(10));
    let mut link = Link::new(LinkConfig { rate: None, ..config() }, Box::new(paced), random("link"));
    let mut events = Vec::new();
    for slot in 0..4 {
        link.offer(us(0), packet(slot, 1250), &mut events);
    }
    assert_eq!(link.change_queue(us(11_000), &"3 ms", &mut events), Err(ChangeError::OtherDiscipline));
    assert_eq!(link.next_due(), us(1000), "the first is on its way");
    assert_eq!(link.change_queue(us(12_000), &Span::from_millis(3), &mut events), Ok(()));
    assert_eq!(drain(&mut link, &mut events), [(1000, 0), (11_000, 1), (14_000, 2), (17_000, 3)]);
    let sent: Vec<_> = events.iter().filter(|event| matches!(event.kind, LinkEventKind::Sent { .. })).collect();
    assert_eq!(
        sent.iter().map(|event| (event.at, event.backlog)).collect::<Vec<_>>(),
        [(us(0), 0), (us(10_000), 2), (us(13_000), 1), (us(16_000), 0)]
    );
}

/// Ten packets of 1 ms each at once: at 2.5 ms two have left, and one is in transmission. Of the
/// seven that wait five go.
#[test]
fn packets_beyond_a_new_limit_are_reported_and_recorded() {
    let codel = Codel::new(CodelConfig::default());
    let mut link = Link::new(config(), Box::new(codel), random("link"));
    link.record();
    let mut events = Vec::new();
    for slot in 0..10 {
        link.offer(us(0), packet(slot, 1250), &mut events);
    }
    events.clear();
    let smaller = CodelConfig { limit: 2, ..CodelConfig::default() };
    assert_eq!(link.change_queue(us(2500), &smaller, &mut events), Ok(()));
    let dropped: Vec<_> = events
        .iter()
        .filter_map(|event| match event.kind {
            LinkEventKind::Dropped { packet, reason, .. } => Some((event.at, event.backlog, packet.slot, reason)),
            _ => None,
        })
        .collect();
    assert_eq!(dropped, (3..8).map(|slot| (us(2500), 2, slot, DropReason::Limit)).collect::<Vec<_>>());
    let recorded: Vec<_> = link
        .decisions()
        .filter(|decision| decision.action == Action::Drop(DropReason::Limit))
        .map(|decision| (decision.packet.slot, decision.sojourn, decision.backlog.packets))
        .collect();
    assert_eq!(recorded, (3..8).map(|n| (n, Some(Span::from_micros(2500)), 9 - u64::from(n))).collect::<Vec<_>>());
    assert_eq!(slots(&drain(&mut link, &mut events)), [0, 1, 2, 8, 9]);
}
