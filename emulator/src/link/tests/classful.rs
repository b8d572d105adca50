//! Disciplines over others, which have to know what would leave next and what a packet is.

use ackclock_aqm::{Backlog, Books, Entry, Probe};

use super::*;

/// A token bucket over another discipline, as `tbf`: packets leave it at `rate`, up to `burst`
/// bytes of them at once. It looks at the packet that would leave next, and pays for the one that
/// leaves.
#[derive(Debug)]
struct Tbf {
    queue: Box<dyn QueueDisc<Framed>>,
    /// Nanoseconds per byte.
    pace: u64,
    burst: u64,
    /// Tokens in nanoseconds at `since`; below nothing after a packet larger than the one that was
    /// looked at.
    tokens: i64,
    since: Time,
}

impl Tbf {
    fn new(queue: Box<dyn QueueDisc<Framed>>, pace: u64, burst: u64) -> Tbf {
        Tbf { queue, pace, burst, tokens: (burst * pace) as i64, since: Time::ZERO }
    }
}

impl QueueDisc<Framed> for Tbf {
    fn enqueue(&mut self, now: Time, packet: Framed, drops: &mut Drops<Framed>) {
        self.queue.enqueue(now, packet, drops);
    }

    fn dequeue(&mut self, now: Time, drops: &mut Drops<Framed>) -> Dequeue<Framed> {
        let Some(next) = self.queue.peek() else { return Dequeue::Empty };
        let price = (u64::from(next.packet.wire_len()).min(self.burst) * self.pace) as i64;
        let earned = self.tokens.saturating_add(now.since(self.since).as_nanos() as i64);
        self.tokens = earned.min((self.burst * self.pace) as i64);
        self.since = now;
        if self.tokens < price {
            return Dequeue::NotBefore(now + Span::from_nanos((price - self.tokens) as u64));
        }
        let dequeued = self.queue.dequeue(now, drops);
        if let Dequeue::Packet(entry) = &dequeued {
            self.tokens -= (u64::from(entry.packet.wire_len()) * self.pace) as i64;
        }
        dequeued
    }

    fn idle(&mut self, now: Time) {
        self.queue.idle(now);
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

/// Strict priority of three classes, as `prio`: pure ACKs, then expedited forwarding, then all
/// others.
#[derive(Debug)]
struct Prio {
    classes: [Box<dyn QueueDisc<Framed>>; 3],
    books: Books,
}

impl QueueDisc<Framed> for Prio {
    fn enqueue(&mut self, now: Time, packet: Framed, drops: &mut Drops<Framed>) {
        let class = match (packet.is_pure_ack(), packet.dscp()) {
            (true, _) => 0,
            (false, 46) => 1,
            _ => 2,
        };
        self.books.admit(packet.wire_len());
        self.classes[class].enqueue(now, packet, drops);
    }

    fn dequeue(&mut self, now: Time, drops: &mut Drops<Framed>) -> Dequeue<Framed> {
        let mut earliest = None;
        for class in &mut self.classes {
            match class.dequeue(now, drops) {
                Dequeue::Packet(entry) => {
                    self.books.release(entry.packet.wire_len());
                    return Dequeue::Packet(entry);
                }
                Dequeue::NotBefore(at) => earliest = earliest.into_iter().chain([at]).min(),
                // As `prio_dequeue`, which asks a class that is empty.
                Dequeue::Empty => class.idle(now),
            }
        }
        earliest.map_or(Dequeue::Empty, Dequeue::NotBefore)
    }

    fn peek(&self) -> Option<&Entry<Framed>> {
        self.classes.iter().find_map(|class| class.peek())
    }

    fn books(&self) -> &Books {
        &self.books
    }

    fn backlog(&self) -> Backlog {
        self.classes
            .iter()
            .map(|class| class.backlog())
            .fold(Backlog::default(), |a, b| Backlog { packets: a.packets + b.packets, bytes: a.bytes + b.bytes })
    }
}

fn offered(link: &mut Link, packets: impl IntoIterator<Item = Packet>) -> Vec<(u64, u32)> {
    let arrivals: Vec<_> = packets.into_iter().map(|packet| (us(0), packet)).collect();
    let (delivered, _) = polled_exactly(link, &arrivals, &[]);
    delivered.into_iter().map(|(at, packet)| (at.as_nanos() / 1000, packet.slot)).collect()
}

/// 1 us per byte and a bucket of 3000: of packets of 1000 and 2000 bytes in turn the first two take
/// all tokens, the third leaves 1000 bytes later, the fourth 2000 bytes after that, and so on.
#[test]
fn a_token_bucket_asks_for_the_size_of_the_next_packet() {
    for rate in [None, Rate::from_bps(1_000_000_000_000)] {
        let config = LinkConfig { rate, delay: Span::ZERO, ..config() };
        let mut link = Link::new(config, Box::new(Tbf::new(pfifo(10), 1000, 3000)), random("link"));
        let packets = (0..6).map(|slot| packet(slot, 1000 + 1000 * (slot % 2)));
        assert_eq!(offered(&mut link, packets), [(0, 0), (0, 1), (1000, 2), (3000, 3), (4000, 4), (6000, 5)]);
        assert!(link.queue().counters().balance(link.queue().backlog()));
    }
}

/// CoDel discards the packet that was looked at, so that another one leaves: none is lost or sent
/// twice, and the rate holds.
#[test]
fn a_law_below_a_token_bucket_may_decide_otherwise() {
    let codel = CodelConfig { target: Span::from_millis(1), interval: Span::from_millis(10), ..CodelConfig::default() };
    let tbf = Tbf::new(Box::new(Codel::new(codel)), 8000, 1500);
    let config = LinkConfig { rate: None, delay: Span::ZERO, ..config() };
    let mut link = Link::new(config, Box::new(tbf), random("link"));
    link.record();
    let arrivals: Vec<_> =
        (0..400).map(|slot| (us(5000 * u64::from(slot)), packet(slot, 300 + 40 * (slot % 30)))).collect();
    let (delivered, _) = polled_exactly(&mut link, &arrivals, &[]);
    let counters = *link.queue().counters();
    assert!(counters.balance(Backlog::default()) && counters.dropped_on_dequeue.packets > 10, "{counters:?}");
    assert_eq!(delivered.len() as u64 + counters.dropped_on_dequeue.packets, 400);
    // 8 us per byte: what is above that is the bucket, and a packet that was larger than the one
    // looked at.
    let (mut from, mut ahead) = (delivered[0].0, 0i64);
    for &(at, packet) in &delivered {
        ahead = (ahead - at.since(from).as_nanos() as i64).max(0) + 8000 * i64::from(packet.wire_len);
        from = at;
        assert!(ahead <= 8000 * (1500 + 1500), "{at:?}: {ahead}");
    }
}

/// Five wait behind a packet in transmission; ACKs pass them all, one of them a packet behind a
/// shaper that is not due yet.
#[test]
fn classes_are_told_apart_by_what_a_packet_is() {
    let paced = shaper::Paced::new(pfifo(10), Span::from_micros(2500));
    let prio = Prio { classes: [Box::new(paced), pfifo(10), pfifo(10)], books: Books::default() };
    let mut link = Link::new(LinkConfig { delay: Span::ZERO, ..config() }, Box::new(prio), random("link"));
    let classes = [(0, false), (0, false), (46, true), (0, true), (46, false), (10, false)];
    let packets = (0..)
        .zip(classes)
        .map(|(slot, (dscp, pure_ack))| Packet { class: Class::new(dscp, pure_ack), ..packet(slot, 1250) });
    // 1 ms each. The second ACK may leave 2.5 ms after the first one, which left at 1 ms, and does
    // when the link is free.
    assert_eq!(offered(&mut link, packets), [(1000, 0), (2000, 2), (3000, 4), (4000, 1), (5000, 3), (6000, 5)]);
}
