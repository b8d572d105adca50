//! The clock: when an event is due, and what happens until then.

use ackclock_units::{Span, Time};

use super::{BlockingCall, END_OF_TIME, MOST_EXPIRIES, Run, Stop, TimeWindow};
use crate::ast::{Action, Direction, Event, EventTime, PacketSpec};
use crate::calls::Step;
use crate::report::Seconds;

impl<'a> Run<'a> {
    /// When `event` is to happen.
    pub(super) fn window(&self, event: &Event) -> Result<TimeWindow, Stop> {
        // Arrivals in a row count from each other's times, so that lateness does not add up.
        let is_inbound = matches!(&event.action, Action::Packet(packet)
            if matches!(&**packet, PacketSpec::Icmp(_))
                || matches!(&**packet, PacketSpec::Tcp(spec) if spec.direction == Direction::Inbound));
        let base = if is_inbound && self.last_is_inbound { self.last } else { self.now };
        let zero = Time::ZERO;
        let (from, to, any) = match event.time {
            EventTime::Absolute(at) => (zero + at, zero + at, false),
            EventTime::AbsoluteRange(from, to) => (zero + from, zero + to, false),
            EventTime::Relative(after) => (base + after, base + after, false),
            EventTime::RelativeRange(from, to) => (base + from, base + to, false),
            EventTime::Any => (self.now, END_OF_TIME, true),
        };
        if to > END_OF_TIME || from > to {
            return Err(Stop::Invalid(
                event.line,
                "a time beyond the next century, or a range that ends before it begins".to_owned(),
            ));
        }
        if matches!(event.time, EventTime::Absolute(_) | EventTime::AbsoluteRange(..))
            && to + Span::from_nanos(1) < self.last
            && self.started
        {
            let (to, last) = (Seconds(to), Seconds(self.last));
            return Err(Stop::Invalid(event.line, format!("time goes backwards from {last} to {to}")));
        }
        Ok(TimeWindow { from, to, any })
    }

    /// Tolerance of the time `at`.
    pub(super) fn tolerance(&self, at: Time, since: Time) -> Span {
        let host = &self.kernel.host;
        let share = u128::from(at.since(since).as_nanos()) * u128::from(host.tolerance_ppm) / 1_000_000;
        host.tolerance.max(Span::from_nanos(u64::try_from(share).unwrap_or(u64::MAX)))
    }

    /// Moves the clock to the time of an event that the script makes happen.
    pub(super) fn wait_for(&mut self, line: u32, window: TimeWindow, what: &str) -> Result<(), Stop> {
        if window.any {
            return Ok(());
        }
        self.advance(line, window.from)?;
        let tolerance = self.tolerance(window.to, self.last);
        if self.now > window.to + tolerance {
            let reason = format!(
                "it is too late for {what}: due at {}, and the time is {}",
                Seconds(window.to),
                Seconds(self.now)
            );
            return Err(self.failed(line, reason));
        }
        Ok(())
    }

    /// Lets time pass until `until`: timers before it expire.
    fn advance(&mut self, line: u32, until: Time) -> Result<(), Stop> {
        while self.now < until {
            let next = self.next_deadline();
            if next >= until {
                break;
            }
            self.expire(line, next)?;
        }
        self.now = self.now.max(until);
        Ok(())
    }

    pub(super) fn next_deadline(&self) -> Time {
        let patience = self.pending.as_ref().map_or(Time::NEVER, |pending| pending.waiting.until);
        self.kernel.next_deadline().min(patience)
    }

    /// Moves the clock to a deadline, or lets one expire that is overdue.
    pub(super) fn expire(&mut self, line: u32, deadline: Time) -> Result<(), Stop> {
        self.expiries += 1;
        if self.expiries > MOST_EXPIRIES {
            return Err(self.failed(line, format!("more than {MOST_EXPIRIES} timers have expired")));
        }
        self.now = self.now.max(deadline);
        self.kernel.on_deadline(self.now);
        self.settle(line)
    }

    /// Takes over what the host has sent, and goes on with the call that waits.
    pub(super) fn settle(&mut self, line: u32) -> Result<(), Stop> {
        self.collect(line)?;
        if let Some(pending) = self.pending.take() {
            let BlockingCall { call, line: call_line, waiting, started, end } = pending;
            match self.kernel.resume(self.now, waiting) {
                Step::Blocked(waiting) => {
                    self.pending = Some(BlockingCall { call, line: call_line, waiting, started, end });
                    // The call may have written a part.
                    self.collect(line)?;
                }
                Step::Done(done) => {
                    let tolerance = self.tolerance(end, started);
                    let (early, late) = (self.now + tolerance < end, self.now > end + tolerance);
                    self.returned(call_line, call, &done)?;
                    if early || late {
                        return Err(self.failed(call_line, self.return_time(&call.name, end)));
                    }
                    self.collect(line)?;
                }
            }
        }
        Ok(())
    }
}
