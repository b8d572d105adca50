//! The transmitter of a link that changes over time ([`Course`]).
//!
//! It counts the work that is left of the packet in transmission, so that a change in the middle of
//! it is exact. While nothing is to be sent, changes that no queue sees wait until the link is
//! called next, and are made then, each with its own time.

use ackclock_aqm::ChangeError;
use ackclock_units::{Rate, Span, Time};

use self::pace::{OF_A_BYTE, Ramp, RatePace};
use super::{Framed, Link, LinkConfig, LinkEvent, LinkEventKind, LinkSink, Transmitter};
use crate::course::{Change, Course, Up};

mod pace;

/// The capacity and the use of a link that changes since its start, in billionths of a bit, so that
/// parts of bits are not lost: between any two times no more is sent than was possible. An
/// unlimited rate does not count, nor does the time of an outage that holds packets.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Usage {
    /// What could have been sent.
    pub possible: u128,
    /// What was sent, including part of a packet in transmission.
    pub sent: u128,
    /// Time for which it had a rate, including outages.
    pub limited: Span,
}

/// The state of what changes.
#[derive(Debug)]
pub(super) struct Varying {
    course: Course,
    /// Changes of the schedule that have been made.
    made: usize,
    /// The time of the trace's next rate.
    next_rate: Time,
    pace: RatePace,
    delay: Ramp,
    up: Up,
    /// A packet is in transmission, of which so much work is left; between two packets, what the
    /// last one left of a nanosecond.
    sending: bool,
    left: u128,
    /// The end of the last transmission.
    ended: Time,
    /// The time at which the transmitter is done with the packet, or has its next opportunity.
    due: Time,
    /// The time at which an idle link has to be called, for a change that its queue sees.
    idle_until: Time,
    /// The time until which work has been counted.
    counted: Time,
    possible: u128,
    sent: u128,
    limited: Span,
}

impl Varying {
    pub(super) fn new(config: &LinkConfig, course: Course) -> Varying {
        let pace = pace_of(config.rate);
        let mut varying = Varying {
            made: 0,
            next_rate: Time::NEVER,
            pace,
            delay: Ramp::constant(config.delay.as_nanos()),
            up: Up::Passes,
            sending: false,
            left: 0,
            ended: Time::NEVER,
            due: Time::NEVER,
            idle_until: Time::NEVER,
            counted: Time::ZERO,
            possible: 0,
            sent: 0,
            limited: Span::ZERO,
            course,
        };
        varying.follow_trace(Time::ZERO);
        if let (Some(work), Some(trace)) = (varying.opportunity(), &varying.course.trace) {
            varying.possible = u128::from(trace.opportunities_by(Time::ZERO)) * work;
        }
        varying
    }

    /// The state of a link with this rate and delay that has been constant until `now` and has sent
    /// `bytes` bytes of whole packets. `end` is the end of its last transmission, and `rest` the
    /// fraction of a nanosecond beyond it, in units of 1/rate; `sends` tells whether that
    /// transmission is still in progress.
    pub(super) fn taking_over(
        (rate, delay): (Option<Rate>, Span),
        now: Time,
        bytes: u64,
        (end, rest): (Time, u64),
        sends: bool,
    ) -> Varying {
        let pace = pace_of(rate);
        // At a rate of 1 bit/s a nanosecond does a unit of work.
        let left = pace.work(now, end.max(now)) + u128::from(rest);
        let sent = if rate.is_some() { u128::from(bytes) * OF_A_BYTE } else { 0 };
        Varying {
            course: Course::default(),
            made: 0,
            next_rate: Time::NEVER,
            pace,
            delay: Ramp::constant(delay.as_nanos()),
            up: Up::Passes,
            sending: sends,
            left,
            ended: if sends { Time::NEVER } else { end },
            due: if sends { end } else { Time::NEVER },
            idle_until: Time::NEVER,
            counted: now,
            possible: pace.work(Time::ZERO, now),
            sent: sent.saturating_sub(left),
            limited: if rate.is_some() { now.since(Time::ZERO) } else { Span::ZERO },
        }
    }

    /// Puts a change into the schedule, behind those of its time, and gives its time. Nothing of
    /// that time has been done.
    pub(super) fn insert(&mut self, mut change: Change) -> Time {
        assert!(change.rate.is_none() || self.course.trace.is_none(), "the rate is that of a trace");
        let schedule = &mut self.course.schedule;
        schedule.drain(..std::mem::take(&mut self.made));
        let mut place = schedule.partition_point(|other| other.at < change.at);
        while schedule.get(place).is_some_and(|other| other.at == change.at) {
            change.at += Span::from_nanos(1);
            place += 1;
        }
        let at = change.at;
        change.until = change.until.filter(|&until| until > at);
        schedule.insert(place, change);
        at
    }

    /// Says again when the link is to be called, after [`Varying::insert`]; later than that it need
    /// not be.
    pub(super) fn call_until(&mut self, state: Transmitter) -> Time {
        self.idle_until = self.next_of_queue();
        if state == Transmitter::Idle { self.idle_until } else { self.next_change() }
    }

    /// The shortest delay of all times.
    pub(super) fn least_delay(&self) -> Span {
        let changes = self.course.schedule.iter().filter_map(|change| change.delay);
        changes.chain([Span::from_nanos(self.delay.at(Time::ZERO))]).min().unwrap_or_default()
    }

    /// The longest jitter to which it changes.
    pub(super) fn most_jitter(&self) -> Span {
        self.course.schedule.iter().filter_map(|change| change.jitter).max().unwrap_or_default()
    }

    /// The rate is that of the trace at `now`, if it has one.
    fn follow_trace(&mut self, now: Time) {
        let Some(trace) = &self.course.trace else { return };
        // The transmitter of opportunities sends in no other way.
        self.pace = RatePace::Constant(trace.rate_at(now).unwrap_or(0));
        if trace.opportunity().is_none() {
            self.next_rate = trace.next_after(now);
        }
    }

    /// The work of an opportunity; `None` unless the rate is a trace of them.
    fn opportunity(&self) -> Option<u128> {
        let bytes = self.course.trace.as_ref()?.opportunity()?;
        Some(u128::from(bytes) * OF_A_BYTE)
    }

    pub(super) fn usage(&self) -> Usage {
        Usage { possible: self.possible, sent: self.sent, limited: self.limited }
    }

    fn next_scheduled(&self) -> Time {
        self.course.schedule.get(self.made).map_or(Time::NEVER, |change| change.at)
    }

    /// The next change of any kind.
    fn next_change(&self) -> Time {
        self.next_scheduled().min(self.next_rate).min(self.pace.ends_at())
    }

    /// The next change that a queue sees.
    fn next_of_queue(&self) -> Time {
        let mut left = self.course.schedule.iter().skip(self.made);
        left.find(|change| change.queue.is_some()).map_or(Time::NEVER, |change| change.at)
    }

    /// Counts what is done until `now`, before which nothing changes. What a constant link had done
    /// when it began to change is counted already.
    fn count(&mut self, now: Time) {
        if now <= self.counted {
            return;
        }
        if self.pace != RatePace::Unlimited {
            self.limited += now.since(self.counted);
        }
        let possible = match (self.up, self.opportunity(), &self.course.trace) {
            (Up::Holds, ..) => 0,
            (_, Some(work), Some(trace)) => {
                let opportunities = trace.opportunities_by(now) - trace.opportunities_by(self.counted);
                u128::from(opportunities) * work
            }
            _ => {
                let work = self.pace.work(self.counted, now);
                if self.sending {
                    let sent = work.min(self.left);
                    self.left -= sent;
                    self.sent += sent;
                }
                work
            }
        };
        self.possible += possible;
        self.counted = now;
    }

    /// Makes the next change of the pace or of the trace, or gives that of the schedule.
    fn change(&mut self, at: Time) -> Option<Change> {
        self.count(at);
        if self.pace.ends_at() <= at {
            self.pace = self.pace.at(at).map_or(RatePace::Unlimited, RatePace::Constant);
        }
        if self.next_rate <= at {
            self.follow_trace(at);
        }
        if self.next_scheduled() > at {
            return None;
        }
        let change = self.course.schedule[self.made].clone();
        self.made += 1;
        if let Some(rate) = change.rate {
            self.pace = match (self.pace.at(at), rate, change.until) {
                (Some(from), Some(to), Some(end)) => RatePace::Ramp(Ramp::new(from, to.as_bps(), at, end)),
                (_, rate, _) => pace_of(rate),
            };
        }
        if let Some(delay) = change.delay {
            let from = self.delay.at(at);
            self.delay = match change.until {
                Some(end) => Ramp::new(from, delay.as_nanos(), at, end),
                None => Ramp::constant(delay.as_nanos()),
            };
        }
        self.up = change.up.unwrap_or(self.up);
        Some(change)
    }

    /// The time at which the transmitter is done with the packet, or has its next opportunity.
    fn next_due(&self, now: Time, state: Transmitter) -> Time {
        match (self.up, self.opportunity(), &self.course.trace) {
            _ if state == Transmitter::Idle => Time::NEVER,
            (Up::Holds, ..) => Time::NEVER,
            (_, Some(_), Some(trace)) => trace.next_after(now),
            _ if self.sending => self.pace.finish(now, self.left),
            _ => Time::NEVER,
        }
    }
}

fn pace_of(rate: Option<Rate>) -> RatePace {
    rate.map_or(RatePace::Unlimited, |rate| RatePace::Constant(rate.as_bps()))
}

impl Link {
    /// The capacity and use of the link until the last [`Link::catch_up`]; `None` if the link does
    /// not change.
    pub fn usage(&self) -> Option<Usage> {
        self.varying.as_ref().map(|varying| varying.usage())
    }

    /// Schedules the call for the first change.
    pub(super) fn scheduled(mut self) -> Link {
        if let Some(varying) = &mut self.varying {
            varying.idle_until = varying.next_of_queue();
            self.until = varying.idle_until;
        }
        self
    }

    /// As `advance_by_some`, on a link that changes.
    #[cold]
    #[inline(never)]
    pub(super) fn advance_varying(&mut self, now: Time, events: &mut impl LinkSink) {
        let Some(mut varying) = self.varying.take() else { return };
        while self.until <= now && self.until < Time::NEVER {
            self.step(&mut varying, self.until, events);
        }
        self.varying = Some(varying);
    }

    /// Makes every change until `now` and counts what was possible until then. The transmitter has
    /// done what was due.
    #[cold]
    pub(super) fn settle(&mut self, now: Time, events: &mut impl LinkSink) {
        let Some(mut varying) = self.varying.take() else { return };
        self.make_changes(&mut varying, now, events);
        varying.count(now);
        self.varying = Some(varying);
    }

    /// Does what happens at `at`: what the transmitter is through with, then changes, then what
    /// starts.
    fn step(&mut self, varying: &mut Varying, at: Time, events: &mut impl LinkSink) {
        let only_a_change = self.state == Transmitter::Idle && at == varying.idle_until;
        if varying.due == at {
            self.make_changes_before(varying, at, events);
            varying.count(at);
            match varying.opportunity() {
                Some(work) => self.use_opportunities(varying, work, at, events),
                None => self.end_varying(varying, at, events),
            }
        }
        self.make_changes(varying, at, events);
        varying.count(at);
        if varying.opportunity().is_some() {
            self.await_opportunity(varying);
        } else if !varying.sending {
            self.start_varying(varying, at, events);
        }
        if self.state == Transmitter::Idle && !only_a_change {
            self.queue.idle(at);
        }
        varying.due = varying.next_due(at, self.state);
        varying.idle_until = varying.next_of_queue();
        let change = match self.state {
            Transmitter::Idle => varying.idle_until,
            _ => varying.next_change(),
        };
        let again = if self.state == Transmitter::HeldBack { self.until } else { Time::NEVER };
        self.until = again.min(varying.due).min(change);
    }

    /// Makes the changes that come before `at`.
    fn make_changes_before(&mut self, varying: &mut Varying, at: Time, events: &mut impl LinkSink) {
        if at > Time::ZERO {
            self.make_changes(varying, Time::from_nanos(at.as_nanos() - 1), events);
        }
    }

    /// Makes all changes until `now`, each at its time.
    fn make_changes(&mut self, varying: &mut Varying, now: Time, events: &mut impl LinkSink) {
        while varying.next_change() <= now && varying.next_change() < Time::NEVER {
            let at = varying.next_change();
            let Some(change) = varying.change(at) else { continue };
            if let Some(probability) = change.loss {
                self.wire.set_loss(probability);
            }
            if let Some(jitter) = change.jitter {
                self.wire.set_jitter(jitter);
            }
            match change.queue.map(|queue| (self.set_queue(at, queue.config(), events), queue)) {
                None | Some((Ok(()), _)) => {}
                Some((Err(ChangeError::OtherDiscipline), queue)) => self.replace_queue(at, &queue, events),
                Some((Err(error), _)) => panic!("a queue keeps its parameters: {error}"),
            }
        }
    }

    /// The transmitter is free: it takes a packet unless there is an outage.
    fn start_varying(&mut self, varying: &mut Varying, at: Time, events: &mut impl LinkSink) {
        if varying.up == Up::Holds {
            self.state = if self.waiting > 0 { Transmitter::Refills } else { Transmitter::Idle };
            return;
        }
        if self.waiting > 0 {
            if self.begin_varying(varying, at, events) {
                self.state = Transmitter::Sends;
                return;
            }
            if self.waiting > 0 {
                // Held back by its queue.
                return;
            }
        }
        self.state = Transmitter::Idle;
    }

    /// The transmission of the next packet begins, if the queue gives one.
    fn begin_varying(&mut self, varying: &mut Varying, at: Time, events: &mut impl LinkSink) -> bool {
        let mut dequeued = self.queue.dequeue(at, &mut self.drops);
        let Some(entry) = self.taken(at, &mut dequeued, events) else { return false };
        let Framed(packet) = &entry.packet;
        let sojourn = at.since(entry.enqueued_at);
        self.report(at, LinkEventKind::Sent { sojourn, busy: Span::ZERO }, events);
        self.wire.begin(at, self.delay, packet, self.overhead);
        // The last packet's rest of a nanosecond is done first, if this one follows immediately.
        let carried = if varying.ended == at { varying.left } else { 0 };
        varying.left = carried + u128::from(packet.wire_len) * OF_A_BYTE;
        varying.sending = true;
        true
    }

    /// The last bit of the packet was sent at `end`.
    fn end_varying(&mut self, varying: &mut Varying, end: Time, events: &mut impl LinkSink) {
        let backlog = self.waiting as u32;
        let report = |kind| events.event(LinkEvent { at: end, backlog, kind });
        (varying.sending, varying.ended) = (false, end);
        if varying.pace == RatePace::Unlimited {
            varying.left = 0;
        }
        match varying.up {
            Up::Loses => self.wire.lose(report),
            Up::Passes | Up::Holds => self.wire.end(end, Span::from_nanos(varying.delay.at(end)), report),
        }
    }

    /// Sends what the opportunities at `at` have room for.
    fn use_opportunities(&mut self, varying: &mut Varying, work: u128, at: Time, events: &mut impl LinkSink) {
        let opportunities = varying.course.trace.as_ref().map_or(0, |trace| trace.opportunities_at(at));
        let mut room = u128::from(opportunities) * work;
        while room > 0 {
            if !varying.sending {
                varying.left = 0;
                if self.waiting == 0 || !self.begin_varying(varying, at, events) {
                    break;
                }
            }
            let sent = varying.left.min(room);
            (varying.left, room, varying.sent) = (varying.left - sent, room - sent, varying.sent + sent);
            if varying.left == 0 {
                self.end_varying(varying, at, events);
            }
        }
    }

    /// Makes waiting packets wait for an opportunity.
    fn await_opportunity(&mut self, varying: &Varying) {
        let waits = varying.sending || self.waiting > 0;
        self.state = if waits { Transmitter::Refills } else { Transmitter::Idle };
    }
}
