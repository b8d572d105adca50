//! One direction of a link: queue, transmitter, delay line.
//!
//! An offered packet is enqueued; when the transmitter is free, the queue is asked for the next
//! packet; the end of its transmission plus the propagation delay is its time of arrival. Only
//! arrivals need a wakeup: transmissions that end before them are handled when the link is next
//! called, each at its own time.

use std::any::Any;

use ackclock_aqm::{
    ChangeError, Counters, Dequeue, Dropped, Drops, Entry, Fifo, FifoConfig, Headers, Overhead, QueueDisc,
};
use ackclock_packet::Packet;
use ackclock_units::outside::Failure;
use ackclock_units::{Random, Rate, Serializer, Span, Time};

pub use self::config::LinkConfig;
pub use self::device::{DeviceConfig, DeviceLimit};
pub use self::dql::BqlConfig;
pub use self::event::{LinkEvent, LinkEventKind, LinkSink};
use self::slots::Slot;
pub use self::slots::Slots;
use self::state::TransmitterState;
use self::transmitter::{TokenBucket, Transmitter};
pub use self::varying::Usage;
use self::varying::Varying;
use self::wire::Wire;
use crate::course::Course;
use crate::framed::Framed;
use crate::recording::{Decision, Recording};

mod aggregate;
mod change;
mod config;
mod device;
mod dql;
mod event;
mod otherwise;
mod replace;
mod slots;
mod state;
mod transmitter;
mod varying;
mod wire;

/// One direction of a link.
#[derive(Debug)]
pub struct Link {
    /// The activity of the transmitter until [`Link::until`].
    state: TransmitterState,
    /// Framing bytes of every packet, or, where they differ, of the one that left the queue last.
    overhead: u32,
    /// The end of the transmitter's activity; [`Time::NEVER`] if it is idle.
    until: Time,
    /// Packets in the queue.
    waiting: u64,
    queue: Box<dyn QueueDisc<Framed>>,
    /// Disciplines before it, if there were any.
    replaced: Option<Box<Replaced>>,
    drops: Drops<Framed>,
    /// Only while decisions are recorded, or framing differs between packets; other runs pay one
    /// branch per packet.
    recording: Option<Box<Recording>>,
    serializer: Option<Serializer>,
    /// The shortest there will ever be, if it changes.
    delay: Span,
    /// No packet arrives sooner after its transmission than this: jitter may take from the delay.
    least_delay: Span,
    wire: Wire,
    transmitter: Transmitter,
    /// Packets pass the queue and are on the wire at once ([`Link::pass`]).
    passes: bool,
    /// The books of a drop-tail queue whose packets wait on the wire's own ring, in place of
    /// `queue`, which is empty then: nothing is moved when a transmission begins.
    drop_tail: Option<Fifo<Framed>>,
    /// The queue is shown headers ([`QueueDisc::looks`]).
    looks: bool,
    /// The stream of impairments, for when a link that has none begins to change.
    random: Random,
}

/// The totals of disciplines that were replaced.
#[derive(Debug, Default)]
struct Replaced {
    /// The number of disciplines.
    number: u64,
    counters: Counters,
    /// The integral of their probabilities.
    probability_time: f64,
    failure: Option<Failure>,
}

impl Link {
    /// An empty link. `random` is used for impairments only.
    pub fn new(config: LinkConfig, queue: Box<dyn QueueDisc<Framed>>, random: Random) -> Link {
        let serializer = config.rate.map(Serializer::new);
        let bucket = serializer.clone().zip(config.burst).map(|(mut serializer, burst)| {
            let depth = serializer.transmit(Time::ZERO, burst.min(1 << 30)).since(Time::ZERO);
            Transmitter::Bucket(Box::new(TokenBucket { depth, done: Time::ZERO }))
        });
        let uniform = config.overhead.uniform();
        let passes = serializer.is_none() && queue.passes() && uniform.is_some();
        let looks = queue.looks();
        let wire = Wire::new(config.impairments.clone(), random.clone());
        let is_simple = serializer.is_some() && bucket.is_none() && uniform.is_some() && wire.is_plain();
        let is_fresh = queue.counters().offered.packets == 0;
        let drop_tail =
            if is_simple && is_fresh { queue.drop_tail().map(|limit| Fifo::new(FifoConfig { limit })) } else { None };
        Link {
            state: TransmitterState::Idle,
            overhead: uniform.unwrap_or(0),
            until: Time::NEVER,
            waiting: 0,
            queue,
            replaced: None,
            drops: Drops::new(),
            recording: uniform.is_none().then(|| Box::new(Recording::new(config.overhead))),
            serializer,
            delay: config.delay,
            least_delay: config.impairments.least_delay(config.delay),
            wire,
            random,
            transmitter: bucket.unwrap_or(Transmitter::Constant),
            passes,
            drop_tail,
            looks,
        }
    }

    /// An empty link that changes over time, or that transmits in slots.
    ///
    /// # Panics
    /// If there is a bucket and something changes, or slots and anything else.
    pub fn with_course(config: LinkConfig, queue: Box<dyn QueueDisc<Framed>>, random: Random, course: Course) -> Link {
        if course.is_constant() {
            return Link::new(config, queue, random);
        }
        assert!(config.burst.is_none(), "a token bucket does not change");
        if let Some(slots) = course.slots {
            assert!(course.schedule.is_empty() && course.trace.is_none(), "a link with slots does not change");
            let transmitter = Transmitter::Slots(Box::new(Slot::new(slots, &random)));
            return Link { transmitter, passes: false, drop_tail: None, ..Link::new(config, queue, random) };
        }
        let wire = Wire::changing(config.impairments.clone(), random.clone());
        let varying = Varying::new(&config, course);
        let delay = varying.least_delay();
        let jitter = config.impairments.jitter.max(varying.most_jitter());
        let least_delay = config.impairments.least_delay_with(delay, jitter);
        let transmitter = Transmitter::Varying(Box::new(varying));
        let link = Link::new(config, queue, random);
        Link { wire, delay, least_delay, transmitter, passes: false, drop_tail: None, ..link }.scheduled()
    }

    /// Records every decision of the queue from now on, for [`Link::decisions`].
    ///
    /// # Panics
    /// If packets were offered before.
    pub fn record(&mut self) {
        assert_eq!(self.queue().counters().offered.packets, 0, "recording starts with the first packet");
        self.drop_tail = None;
        let overhead = Overhead::bytes(self.overhead as i32);
        self.recording.get_or_insert_with(|| Box::new(Recording::new(overhead))).keep();
        self.passes = false;
    }

    /// The queue's decisions since the last call, in order; none unless the link records. Call it
    /// after each call that reports events, while the packets' contents still exist.
    pub fn decisions(&mut self) -> impl Iterator<Item = Decision> {
        self.recording.iter_mut().flat_map(|recording| recording.drain())
    }

    /// Returns `true` if the queue is shown the headers of packets ([`Link::look`]).
    #[inline]
    pub fn looks(&self) -> bool {
        self.looks
    }

    /// Shows the queue the headers of the packet that is offered next.
    pub fn look(&mut self, headers: Headers<'_>) {
        self.queue.look(headers);
    }

    /// A packet arrives at the queue. Everything due before `now` happens first; at equal times the
    /// transmitter acts first, so that a departing packet makes room for the arriving one.
    #[inline]
    pub fn offer(&mut self, now: Time, mut packet: Packet, events: &mut impl LinkSink) {
        if self.passes {
            return self.pass(now, packet, events);
        }
        self.advance(now, events);
        if self.drop_tail.is_some() {
            return self.append(now, packet, events);
        }
        match &mut self.recording {
            None => {
                packet.wire_len += self.overhead;
                self.queue.enqueue(now, Framed(packet), &mut self.drops);
                self.waiting += 1;
            }
            Some(recording) => {
                recording.offer(now, &mut packet);
                self.queue.enqueue(now, Framed(packet), &mut self.drops);
                recording.enqueued(now, packet, &*self.queue, &mut self.drops);
                self.waiting += 1;
            }
        }
        if !self.drops.is_empty() {
            self.report_drops(now, events);
        }
        self.report(now, LinkEventKind::Offered, events);
        if matches!(self.state, TransmitterState::Idle | TransmitterState::HeldBack) {
            self.restart(now, events);
        }
    }

    /// A packet arrives at a drop-tail queue, which has done what was due before.
    #[inline(always)]
    fn append(&mut self, now: Time, packet: Packet, events: &mut impl LinkSink) {
        let bytes = packet.wire_len + self.overhead;
        match (&mut self.drop_tail, &mut self.wire) {
            (Some(queue), Wire::Plain(line)) if queue.has_room(bytes) => {
                queue.count_in(bytes);
                line.hold(now, &packet);
                self.waiting += 1;
            }
            _ => self.refuse(now, packet, events),
        }
        self.report(now, LinkEventKind::Offered, events);
        if self.state == TransmitterState::Idle {
            self.restart(now, events);
        }
    }

    /// That queue is full.
    #[cold]
    fn refuse(&mut self, now: Time, packet: Packet, events: &mut impl LinkSink) {
        let packet = Packet { wire_len: packet.wire_len + self.overhead, ..packet };
        if let Some(queue) = &mut self.drop_tail {
            queue.enqueue(now, Framed(packet), &mut self.drops);
        }
        self.report_drops(now, events);
    }

    /// The transmissions of packets in that queue which begin until `now`.
    #[inline(always)]
    fn begin_some(&mut self, now: Time, events: &mut impl LinkSink) {
        let (Some(queue), Some(serializer), Wire::Plain(line)) =
            (&mut self.drop_tail, &mut self.serializer, &mut self.wire)
        else {
            return;
        };
        while self.until <= now && self.until < Time::NEVER {
            let start = self.until;
            let begun = line.begin(|since, wire_len| {
                let bytes = wire_len + self.overhead;
                let end = serializer.transmit(start, bytes);
                queue.count_out(bytes);
                self.waiting -= 1;
                (self.state, self.until) = (TransmitterState::Sends, end);
                let kind = LinkEventKind::Sent { sojourn: start.since(since), busy: end.since(start) };
                events.event(LinkEvent { at: start, backlog: self.waiting as u32, kind });
                end + self.delay
            });
            if !begun {
                (self.state, self.until) = (TransmitterState::Idle, Time::NEVER);
            }
        }
        if self.state == TransmitterState::Sends && self.until == Time::NEVER {
            self.send_for_ever();
        }
    }

    /// A transmission has begun that does not end: its packet is not on the wire.
    #[cold]
    fn send_for_ever(&mut self) {
        self.ask_queue();
        if let Wire::Plain(line) = &mut self.wire {
            line.pop_last();
        }
    }

    /// The packets of that queue wait in `queue` from now on, which is asked for each.
    #[cold]
    fn ask_queue(&mut self) {
        let (Some(mut queue), Wire::Plain(line)) = (self.drop_tail.take(), &mut self.wire) else { return };
        for (since, packet) in line.take_waiting() {
            queue.hold(since, Framed(Packet { wire_len: packet.wire_len + self.overhead, ..packet }));
        }
        self.queue = Box::new(queue);
    }

    /// A packet arrives at a link without a rate, where none ever waits. Disciplines that would only
    /// count it are not asked; once such a link gets a rate, they begin as new ones.
    #[inline]
    fn pass(&mut self, now: Time, mut packet: Packet, events: &mut impl LinkSink) {
        packet.wire_len += self.overhead;
        self.queue.pass(packet.wire_len);
        events.event(LinkEvent { at: now, backlog: 1, kind: LinkEventKind::Offered });
        let kind = LinkEventKind::Sent { sojourn: Span::ZERO, busy: Span::ZERO };
        events.event(LinkEvent { at: now, backlog: 0, kind });
        self.wire.begin(now, self.delay, &packet, self.overhead);
        self.end_transmission(now, events);
    }

    /// The earliest time at which a packet arrives next.
    #[inline(always)]
    pub fn next_due(&self) -> Time {
        (self.until + self.least_delay).min(self.wire.next_at())
    }

    /// The packet that arrives after the next two, if it is known: the link has no impairments, and
    /// the transmission of the packet has begun, or it waits in a drop-tail queue.
    #[inline(always)]
    pub fn third(&self) -> Option<&Packet> {
        self.wire.third()
    }

    /// Does what is due until `now` on the sending side, then returns the next packet that has
    /// arrived by `now`, with its time. Call it until it returns `None`. Events precede the packets
    /// to which they apply: the caller handles them first.
    #[inline(always)]
    pub fn deliver(&mut self, now: Time, events: &mut impl LinkSink) -> Option<(Time, Packet)> {
        self.advance(now, events);
        self.wire.arrival(now)
    }

    /// Does what is due until `now` on the sending side; arrivals wait for [`Link::deliver`].
    pub fn catch_up(&mut self, now: Time, events: &mut impl LinkSink) {
        self.advance(now, events);
        if let Transmitter::Varying(_) = self.transmitter {
            self.settle(now, events);
        }
    }

    /// Sets other parameters of the queue discipline ([`QueueDisc::change`]) at `now`, after what
    /// was due before. What the queue discards is reported like any other drop.
    ///
    /// # Errors
    /// As the discipline's; nothing has changed then.
    pub fn change_queue(&mut self, now: Time, config: &dyn Any, events: &mut impl LinkSink) -> Result<(), ChangeError> {
        self.catch_up(now, events);
        let result = self.set_queue(now, config, events);
        if self.state == TransmitterState::HeldBack {
            // Other parameters may let a packet go sooner, or none is left.
            self.restart(now, events);
        }
        result
    }

    /// The queue has other parameters from now on. Everything due before has been done.
    fn set_queue(&mut self, now: Time, config: &dyn Any, events: &mut impl LinkSink) -> Result<(), ChangeError> {
        self.ask_queue();
        let result = self.queue.change(now, config, &mut self.drops);
        self.passes = self.passes && self.queue.passes();
        self.looks = self.queue.looks();
        if let Some(recording) = &mut self.recording {
            recording.dequeued(now, &mut Dequeue::Empty, &*self.queue, &mut self.drops);
        }
        self.report_drops(now, events);
        result
    }

    /// The run is over ([`QueueDisc::audit`]): no packet may come any more.
    pub fn audit(&mut self, now: Time) {
        self.queue.audit(now);
    }

    /// The queue discipline.
    pub fn queue(&self) -> &dyn QueueDisc<Framed> {
        match &self.drop_tail {
            Some(queue) => queue,
            None => &*self.queue,
        }
    }

    /// The rate; `None` if unlimited.
    pub fn rate(&self) -> Option<Rate> {
        self.serializer.as_ref().map(Serializer::rate)
    }

    /// The size of the token bucket, as time at its rate; `None` without a bucket.
    pub fn bucket_depth(&self) -> Option<Span> {
        match &self.transmitter {
            Transmitter::Bucket(bucket) => Some(bucket.depth),
            _ => None,
        }
    }

    /// Completes every transmission that is due until `now`, each at its due time, and starts the
    /// next.
    #[inline(always)]
    fn advance(&mut self, now: Time, events: &mut impl LinkSink) {
        if self.until <= now {
            self.advance_by_some(now, events);
        }
    }

    /// The transmitter is free, or asks again for what the queue holds back: it goes on at `now`.
    #[inline(always)]
    fn restart(&mut self, now: Time, events: &mut impl LinkSink) {
        self.until = now;
        self.advance_by_some(now, events);
    }

    #[inline(never)]
    fn advance_by_some(&mut self, now: Time, events: &mut impl LinkSink) {
        if self.drop_tail.is_some() {
            self.begin_some(now, events);
            return;
        }
        if !self.transmitter.is_constant() {
            self.advance_otherwise(now, events);
            return;
        }
        // Nothing ends at `NEVER`, not even for a caller that asks what is due by then.
        while self.until <= now && self.until < Time::NEVER {
            let end = self.until;
            if self.state == TransmitterState::Sends {
                self.end_transmission(end, events);
            }
            self.start_next(end, events);
        }
    }

    /// The same for a token bucket, for slots, for a device, and for a link that changes.
    #[inline(never)]
    fn advance_otherwise(&mut self, now: Time, events: &mut impl LinkSink) {
        match self.transmitter.take() {
            Transmitter::Constant => {}
            Transmitter::Bucket(mut bucket) => {
                while self.until <= now && self.until < Time::NEVER {
                    self.spend_tokens(&mut bucket, self.until, events);
                }
                self.transmitter = Transmitter::Bucket(bucket);
            }
            Transmitter::Slots(mut slot) => {
                self.advance_slots(&mut slot, now, events);
                self.transmitter = Transmitter::Slots(slot);
            }
            Transmitter::Device(mut device) => {
                self.advance_device(&mut device, now, events);
                self.transmitter = Transmitter::Device(device);
            }
            Transmitter::Varying(mut varying) => {
                self.advance_varying(&mut varying, now, events);
                self.transmitter = Transmitter::Varying(varying);
            }
        }
    }

    /// The transmitter is free: asks the queue for the next packet, or tells it that the link is
    /// idle.
    #[inline(always)]
    fn start_next(&mut self, now: Time, events: &mut impl LinkSink) {
        if self.waiting > 0 {
            if let Some(end) = self.transmit_next(now, now, false, events) {
                (self.state, self.until) = (TransmitterState::Sends, end);
                return;
            }
            if self.waiting > 0 {
                return;
            }
        }
        (self.state, self.until) = (TransmitterState::Idle, Time::NEVER);
        self.queue.idle(now);
    }

    /// Packets leave at once while there are tokens. The queue is not told when none is left.
    fn spend_tokens(&mut self, bucket: &mut TokenBucket, now: Time, events: &mut impl LinkSink) {
        (self.state, self.until) = (TransmitterState::Idle, Time::NEVER);
        while self.state == TransmitterState::Idle
            && self.waiting > 0
            && let Some(done) = self.transmit_next(now, bucket.done.max(now), true, events)
        {
            bucket.done = done;
            let filled = Time::ZERO + done.since(Time::ZERO + bucket.depth);
            if filled > now {
                (self.state, self.until) = (TransmitterState::Refills, filled);
            }
            self.end_transmission(now, events);
        }
    }

    /// Takes a packet off the queue, whose transmission starts at `start`, and says when it ends.
    /// With a bucket the packet is out at once. `None` if there is none, or none yet.
    #[inline(always)]
    fn transmit_next(&mut self, now: Time, start: Time, at_once: bool, events: &mut impl LinkSink) -> Option<Time> {
        let mut dequeued = self.queue.dequeue(now, &mut self.drops);
        let Entry { packet: Framed(packet), enqueued_at } = self.taken(now, &mut dequeued, events)?;
        let end = match &mut self.serializer {
            Some(serializer) => serializer.transmit(start, packet.wire_len),
            None => now,
        };
        let (sojourn, busy) = (now.since(*enqueued_at), end.since(start));
        self.report(now, LinkEventKind::Sent { sojourn, busy }, events);
        let gone = if at_once { now } else { end };
        self.wire.begin(gone, self.delay, packet, self.overhead);
        Some(end)
    }

    /// Handles the answer of the queue: a packet, if one may leave; otherwise the link waits for
    /// it.
    ///
    /// # Panics
    /// If the queue holds its packets back until a time that has passed or will never come.
    #[inline(always)]
    fn taken<'a>(
        &mut self,
        now: Time,
        dequeued: &'a mut Dequeue<Framed>,
        events: &mut impl LinkSink,
    ) -> Option<&'a Entry<Framed>> {
        if let Some(recording) = &mut self.recording {
            let framing = recording.dequeued(now, dequeued, &*self.queue, &mut self.drops);
            self.overhead = framing.unwrap_or(self.overhead);
        }
        self.waiting -= u64::from(matches!(dequeued, Dequeue::Packet(_)));
        if !self.drops.is_empty() {
            self.report_drops(now, events);
        }
        match dequeued {
            Dequeue::Packet(entry) => Some(entry),
            Dequeue::NotBefore(at) => {
                self.hold_back(now, *at);
                None
            }
            Dequeue::Empty => {
                debug_assert_eq!(self.waiting, 0, "a queue that is not empty gives a packet or a time");
                (self.state, self.until) = (TransmitterState::Idle, Time::NEVER);
                None
            }
        }
    }

    /// The last bit of the packet was sent at `end`.
    #[inline(always)]
    fn end_transmission(&mut self, end: Time, events: &mut impl LinkSink) {
        let backlog = self.waiting as u32;
        self.wire.end(end, self.delay, |kind| events.event(LinkEvent { at: end, backlog, kind }));
    }

    /// The queue gives nothing before `at`.
    #[cold]
    fn hold_back(&mut self, now: Time, at: Time) {
        assert!(at > now, "packets are held back until {at:?} at {now:?}");
        (self.state, self.until) = (TransmitterState::HeldBack, at);
    }

    #[inline(always)]
    fn report(&self, at: Time, kind: LinkEventKind, events: &mut impl LinkSink) {
        debug_assert_eq!(self.waiting, self.queue().backlog().packets, "a packet came or went in silence");
        events.event(LinkEvent { at, backlog: self.waiting as u32, kind });
    }

    /// The queue has discarded packets, and possibly others than the one that came or left.
    #[cold]
    fn report_drops(&mut self, at: Time, events: &mut impl LinkSink) {
        self.waiting = self.queue().backlog().packets;
        let backlog = self.waiting as u32;
        let probability = self.queue().probe().probability;
        for Dropped { packet: Framed(mut packet), reason } in self.drops.drain(..) {
            if self.recording.is_none() {
                packet.wire_len -= self.overhead;
            }
            let kind = LinkEventKind::Dropped { packet, reason, probability };
            events.event(LinkEvent { at, backlog, kind });
        }
    }
}

#[cfg(test)]
mod tests;
