//! What an application writes and when, if the network has no say in it: a source of messages in
//! time. TCP flows write them as bytes, UDP flows as datagrams.
//!
//! # Source
//! - On-off sources: ns-2's `TrafficGenerator` `EXPOO_Traffic` and `POO_Traffic`, ns-3's
//!   `OnOffApplication`.
//!
//! # Departures
//! - ns-2 rounds each burst to whole packets, at least one, which changes the mean rate. Here, as
//!   in ns-3, what a burst leaves over of the time between two messages is carried to the next one.
//!   The mean rate is therefore exactly `rate` times the share of the time that is on.
//! - ns-3 sends the first packet one interval after the start. Here it is sent at the start, as
//!   iperf3 and voice codecs do.

use std::sync::Arc;

use ackclock_units::{Random, Rate, Span, Time};

use crate::distribution::Distribution;
pub use trace::{Message, MessageTraceError, Trace, seconds};

mod trace;

/// A law by which messages are written.
#[derive(Clone, Debug, PartialEq)]
pub enum Pattern {
    /// A constant rate: each message follows the one before it after the time that this one takes
    /// at `rate`.
    Paced {
        /// Bit/s of what is written, without any headers.
        rate: Rate,
        /// Bytes.
        size: Distribution,
    },
    /// As `Paced` during on times, nothing in between.
    OnOff(OnOff),
    /// Times between messages are independent, the first one also: exponential ones make a Poisson
    /// process.
    Renewal {
        /// Nanoseconds.
        gap: Distribution,
        /// Bytes.
        size: Distribution,
    },
    /// A recorded trace.
    Trace(Arc<Trace>),
}

/// A source that is on and off in turn, on at first.
#[derive(Clone, Debug, PartialEq)]
pub struct OnOff {
    rate: Rate,
    size: u64,
    on: Distribution,
    off: Distribution,
}

/// The reason why parameters are no source.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
pub enum PatternError {
    /// Times that are on are, on average, less than a thousandth of the time between messages.
    #[error("a message would take over {} times that are on; the mean of `on` has to be longer", OnOff::MOST_PERIODS)]
    HardlyOn,
    /// No time passes between messages.
    #[error("the mean of the times between messages has to be at least 1 ns")]
    Endless,
}

impl OnOff {
    /// The most times that are on for one message, on average.
    pub const MOST_PERIODS: u64 = 1000;

    /// Messages of `size` bytes at `rate` bit/s during times drawn from `on`, with pauses drawn
    /// from `off`, both in nanoseconds.
    ///
    /// # Errors
    /// Times on that are too short to be worth the name.
    pub fn new(rate: Rate, size: u64, on: Distribution, off: Distribution) -> Result<OnOff, PatternError> {
        let gap = size as f64 * 8e9 / rate.as_bps() as f64;
        if on.mean() < 1.0 || on.mean() * (OnOff::MOST_PERIODS as f64) < gap {
            return Err(PatternError::HardlyOn);
        }
        Ok(OnOff { rate, size: size.max(1), on, off })
    }
}

impl Pattern {
    /// A constant bit rate.
    pub fn cbr(rate: Rate, size: u64) -> Pattern {
        let size = Distribution::constant(size.max(1) as f64).expect("a size is a number");
        Pattern::Paced { rate, size }
    }

    /// Independent times between messages, in nanoseconds.
    ///
    /// # Errors
    /// A mean of them below 1 ns, so that time would stand still.
    pub fn renewal(gap: Distribution, size: Distribution) -> Result<Pattern, PatternError> {
        if gap.mean() < 1.0 { Err(PatternError::Endless) } else { Ok(Pattern::Renewal { gap, size }) }
    }

    /// The bytes that are written in all; `None` without end.
    pub fn bytes(&self) -> Option<u64> {
        match self {
            Pattern::Trace(trace) if !trace.is_repeated() => Some(trace.bytes()),
            _ => None,
        }
    }

    /// The size of a message in bytes: the mean of drawn sizes, the largest of a trace.
    pub fn size(&self) -> f64 {
        match self {
            Pattern::Paced { size, .. } | Pattern::Renewal { size, .. } => size.mean(),
            Pattern::OnOff(source) => source.size as f64,
            Pattern::Trace(trace) => trace.largest() as f64,
        }
    }

    /// The long-term mean rate, bit/s; `None` for a trace that ends.
    pub fn mean_rate(&self) -> Option<f64> {
        match self {
            Pattern::Paced { rate, .. } => Some(rate.as_bps() as f64),
            Pattern::OnOff(OnOff { rate, on, off, .. }) => {
                Some(rate.as_bps() as f64 * on.mean() / (on.mean() + off.mean()))
            }
            Pattern::Renewal { gap, size } => Some(size.mean() * 8e9 / gap.mean()),
            Pattern::Trace(trace) => trace.mean_rate(),
        }
    }
}

/// A source: the messages of one application in order of time.
#[derive(Clone, Debug)]
pub struct Messages {
    law: MessageProcess,
    random: Random,
    /// The next one; at [`Time::NEVER`] there is none.
    next: Message,
}

#[derive(Clone, Debug)]
enum MessageProcess {
    Paced { pace: MessageClock, size: Distribution },
    OnOff { pace: MessageClock, source: OnOff, period: Period },
    Renewal { gap: Distribution, size: Distribution, last: Time },
    Trace { trace: Arc<Trace>, start: Time, round: u64, entry: usize },
}

/// Due times of messages at a rate, without losing fractions of a nanosecond.
#[derive(Clone, Debug)]
struct MessageClock {
    rate: Rate,
    at: Time,
    /// The fraction that `at` lacks, in units of 1/rate nanoseconds.
    remainder: u64,
}

/// A time that is on.
#[derive(Clone, Copy, Debug)]
struct Period {
    /// The current on time's end, in real time.
    end: Time,
    /// The source had been off for so long before it, in all.
    off: Span,
}

impl MessageClock {
    /// Counts written bytes: the next message is due after the time that they take.
    fn advance(&mut self, bytes: u64) {
        let rate = u128::from(self.rate.as_bps());
        let scaled = u128::from(bytes) * 8_000_000_000 + u128::from(self.remainder);
        self.remainder = (scaled % rate) as u64;
        self.at += Span::from_nanos(u64::try_from(scaled / rate).unwrap_or(u64::MAX));
    }
}

impl Messages {
    /// The messages of an application that starts at `start`.
    pub fn new(pattern: &Pattern, random: Random, start: Time) -> Messages {
        let pace = |rate| MessageClock { rate, at: start, remainder: 0 };
        let law = match pattern.clone() {
            Pattern::Paced { rate, size } => MessageProcess::Paced { pace: pace(rate), size },
            Pattern::OnOff(source) => MessageProcess::OnOff {
                pace: pace(source.rate),
                source,
                period: Period { end: start, off: Span::ZERO },
            },
            Pattern::Renewal { gap, size } => MessageProcess::Renewal { gap, size, last: start },
            Pattern::Trace(trace) => MessageProcess::Trace { trace, start, round: 0, entry: 0 },
        };
        let mut messages = Messages { law, random, next: Message { at: Time::NEVER, bytes: 0 } };
        messages.begin();
        messages.next = messages.law.draw(&mut messages.random);
        messages
    }

    fn begin(&mut self) {
        if let MessageProcess::OnOff { source, period, .. } = &mut self.law {
            period.end += source.on.draw_span(&mut self.random);
        }
    }

    /// Time of the next message; [`Time::NEVER`] after the last one.
    #[inline]
    pub fn next_at(&self) -> Time {
        self.next.at
    }

    /// The next message, if it is written by `now`.
    pub fn take(&mut self, now: Time) -> Option<Message> {
        if self.next.at > now || self.next.at == Time::NEVER {
            return None;
        }
        let next = self.law.draw(&mut self.random);
        Some(std::mem::replace(&mut self.next, next))
    }
}

impl MessageProcess {
    fn draw(&mut self, random: &mut Random) -> Message {
        match self {
            MessageProcess::Paced { pace, size } => {
                let message = Message { at: pace.at, bytes: size.draw_bytes(random) };
                pace.advance(message.bytes);
                message
            }
            MessageProcess::OnOff { pace, source, period } => {
                // `pace` counts the time that is on; a message due at the very end of one is the
                // next one's first.
                while pace.at + period.off >= period.end {
                    let off = source.off.draw_span(random);
                    period.off += off;
                    period.end += off + source.on.draw_span(random);
                    if period.end == Time::NEVER {
                        return Message { at: Time::NEVER, bytes: 0 };
                    }
                }
                let message = Message { at: pace.at + period.off, bytes: source.size };
                pace.advance(source.size);
                message
            }
            MessageProcess::Renewal { gap, size, last } => {
                *last += gap.draw_span(random);
                Message { at: *last, bytes: size.draw_bytes(random) }
            }
            MessageProcess::Trace { trace, start, round, entry } => trace.next(*start, round, entry),
        }
    }
}

#[cfg(test)]
mod tests;
