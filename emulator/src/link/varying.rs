//! The transmitter of a link that changes over time ([`Course`]).
//!
//! It counts the work that is left of the packet in transmission, so that a change in the middle of
//! it is exact. While nothing is to be sent, changes that no queue sees wait until the link is
//! called next, and are made then, each with its own time.

use ackclock_units::{Rate, Span, Time};

use self::pace::{OF_A_BYTE, Ramp, RatePace};
use super::config::LinkConfig;
use super::state::TransmitterState;
use crate::course::{Change, Course, Up};

pub(super) mod pace;

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
    pub(super) course: Course,
    /// Changes of the schedule that have been made.
    made: usize,
    /// The time of the trace's next rate, and of its next delay or loss.
    next_rate: Time,
    next_wire: Time,
    pub(super) pace: RatePace,
    pub(super) delay: Ramp,
    pub(super) up: Up,
    /// A packet is in transmission, of which so much work is left; between two packets, what the
    /// last one left of a nanosecond.
    pub(super) sending: bool,
    pub(super) left: u128,
    /// The end of the last transmission.
    pub(super) ended: Time,
    /// The time at which the transmitter is done with the packet, or has its next opportunity.
    pub(super) due: Time,
    /// The time at which an idle link has to be called, for a change that its queue sees.
    pub(super) idle_until: Time,
    /// The time until which work has been counted.
    counted: Time,
    possible: u128,
    pub(super) sent: u128,
    limited: Span,
}

impl Varying {
    pub(super) fn new(config: &LinkConfig, course: Course) -> Varying {
        let pace = pace_of(config.rate);
        let mut varying = Varying {
            made: 0,
            next_rate: Time::NEVER,
            next_wire: Time::NEVER,
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
        if varying.course.trace.as_ref().is_some_and(|trace| trace.has_delay() || trace.has_loss()) {
            varying.next_wire = Time::ZERO;
        }
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
            next_wire: Time::NEVER,
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
        let is_traced = self.course.trace.as_ref().is_some_and(|trace| trace.has_rate());
        assert!(change.rate.is_none() || !is_traced, "the rate is that of a trace");
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
    pub(super) fn call_until(&mut self, state: TransmitterState) -> Time {
        self.idle_until = self.next_of_queue();
        if state == TransmitterState::Idle { self.idle_until } else { self.next_change() }
    }

    /// The shortest delay of all times.
    pub(super) fn least_delay(&self) -> Span {
        let changes = self.course.schedule.iter().filter_map(|change| change.delay);
        let traced = self.course.trace.as_ref().and_then(|trace| trace.least_delay());
        changes.chain(traced).chain([Span::from_nanos(self.delay.at(Time::ZERO))]).min().unwrap_or_default()
    }

    /// The longest jitter to which it changes.
    pub(super) fn most_jitter(&self) -> Span {
        self.course.schedule.iter().filter_map(|change| change.jitter).max().unwrap_or_default()
    }

    /// The rate is that of the trace at `now`, if it has one.
    fn follow_trace(&mut self, now: Time) {
        let Some(trace) = self.course.trace.as_ref().filter(|trace| trace.has_rate()) else { return };
        // The transmitter of opportunities sends in no other way.
        self.pace = RatePace::Constant(trace.rate_at(now).unwrap_or(0));
        if trace.opportunity().is_none() {
            self.next_rate = trace.next_after(now);
        }
    }

    /// The work of an opportunity; `None` unless the rate is a trace of them.
    pub(super) fn opportunity(&self) -> Option<u128> {
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
    pub(super) fn next_change(&self) -> Time {
        self.next_scheduled().min(self.next_rate).min(self.next_wire).min(self.pace.ends_at())
    }

    /// The next change that a queue sees.
    pub(super) fn next_of_queue(&self) -> Time {
        let mut left = self.course.schedule.iter().skip(self.made);
        left.find(|change| change.queue.is_some()).map_or(Time::NEVER, |change| change.at)
    }

    /// Counts what is done until `now`, before which nothing changes. What a constant link had done
    /// when it began to change is counted already.
    pub(super) fn count(&mut self, now: Time) {
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

    /// Makes the next change of the pace or of the trace's rate, or gives that of the trace's delay
    /// and loss, or else of the schedule.
    pub(super) fn change(&mut self, at: Time) -> Option<Change> {
        self.count(at);
        if self.pace.ends_at() <= at {
            self.pace = self.pace.at(at).map_or(RatePace::Unlimited, RatePace::Constant);
        }
        if self.next_rate <= at {
            self.follow_trace(at);
        }
        let change = match &self.course.trace {
            Some(trace) if self.next_wire <= at => {
                let (delay, loss, next) = trace.wire_at(at);
                self.next_wire = next;
                Change { at, delay, loss, ..Change::default() }
            }
            _ if self.next_scheduled() > at => return None,
            _ => {
                self.made += 1;
                self.course.schedule[self.made - 1].clone()
            }
        };
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
    pub(super) fn next_due(&self, now: Time, state: TransmitterState) -> Time {
        match (self.up, self.opportunity(), &self.course.trace) {
            _ if state == TransmitterState::Idle => Time::NEVER,
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
