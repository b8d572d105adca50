//! An application of constant bit rate: messages of one size at equal intervals, over a stream or as
//! datagrams, and what a receiver makes of them.
//!
//! # Source
//! RFC 9221: datagrams are subject to congestion control, neither retransmitted nor put in order, and
//! each fits into a packet (section 5).
//!
//! # Departures
//! - Datagrams that find the send buffer full (1 MiB) are not sent, and counted; a real-time
//!   application would rather discard older ones, which implementations do not count.

use std::collections::BTreeMap;

use ackclock_units::{Span, Time};
use bytes::{Bytes, BytesMut};

/// Bytes of number and time at the beginning of a datagram.
pub(crate) const HEAD: usize = 16;

/// The messages of a sender.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Cadence {
    /// Bits/s.
    pub(crate) rate: f64,
    /// Bytes of a message.
    pub(crate) size: usize,
    /// Messages are datagrams.
    pub(crate) datagrams: bool,
}

/// Messages that have been written so far.
#[derive(Debug)]
pub(crate) struct Messages {
    pub(crate) cadence: Cadence,
    start: Time,
    written: u64,
    /// Datagrams that found no room.
    pub(crate) refused: u64,
}

impl Messages {
    /// Messages from `start` on.
    pub(crate) fn new(cadence: Cadence, start: Time) -> Messages {
        Messages { cadence, start, written: 0, refused: 0 }
    }

    /// The time of the next message.
    pub(crate) fn next(&self) -> Time {
        let bits = self.written as f64 * 8.0 * self.cadence.size as f64;
        self.start + Span::from_nanos((bits * 1e9 / self.cadence.rate) as u64)
    }

    /// The next message has been handed over.
    pub(crate) fn pass(&mut self) {
        self.written += 1;
    }

    /// Datagrams that were handed over and taken.
    pub(crate) fn sent(&self) -> u64 {
        self.written - self.refused
    }

    /// The next message as a datagram of `bytes`.
    pub(crate) fn datagram(&mut self, now: Time, bytes: usize) -> Bytes {
        let mut datagram = BytesMut::zeroed(bytes.max(HEAD));
        datagram[..8].copy_from_slice(&self.sent().to_be_bytes());
        datagram[8..HEAD].copy_from_slice(&now.as_nanos().to_be_bytes());
        self.written += 1;
        datagram.freeze()
    }
}

/// The datagrams that a receiver has got.
#[derive(Debug, Default)]
pub(crate) struct MessageInbox {
    pub(crate) received: u64,
    pub(crate) bytes: u64,
    /// One past the highest number, by connection, and in all connections that are over.
    ends: BTreeMap<usize, u64>,
    earlier: u64,
    delays: Span,
    longest: Span,
}

impl MessageInbox {
    /// A datagram has come.
    pub(crate) fn take(&mut self, now: Time, handle: usize, datagram: &Bytes) {
        let word = |at: usize| datagram.get(at..at + 8)?.try_into().ok().map(u64::from_be_bytes);
        let (Some(number), Some(sent)) = (word(0), word(8)) else { return };
        self.received += 1;
        self.bytes += datagram.len() as u64;
        let end = self.ends.entry(handle).or_default();
        *end = (*end).max(number.saturating_add(1));
        let delay = now.since(Time::from_nanos(sent));
        self.delays += delay;
        self.longest = self.longest.max(delay);
    }

    /// A connection is over; its number may be another's.
    pub(crate) fn close(&mut self, handle: usize) {
        self.earlier += self.ends.remove(&handle).unwrap_or(0);
    }

    /// Calls `see` for each result, if there was a datagram.
    pub(crate) fn results(&self, see: &mut dyn FnMut(&'static str, f64)) {
        if self.received == 0 {
            return;
        }
        let sent = self.earlier + self.ends.values().sum::<u64>();
        see("received_datagrams", self.received as f64);
        see("lost_datagrams", sent.saturating_sub(self.received) as f64);
        see("datagram_delay_ms", self.delays.as_millis_f64() / self.received as f64);
        see("datagram_delay_max_ms", self.longest.as_millis_f64());
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn messages_are_at_equal_intervals() {
        // 1000 bytes at 1 Mbit/s: 8 ms.
        let cadence = Cadence { rate: 1e6, size: 1000, datagrams: true };
        let mut messages = Messages::new(cadence, Time::from_millis(100));
        for number in 0..1000 {
            assert_eq!(messages.next(), Time::from_millis(100 + 8 * number));
            messages.pass();
        }
    }

    #[test]
    fn what_is_missing_below_the_highest_number_is_lost() {
        let mut inbox = MessageInbox::default();
        let datagram = |number: u64, ms: u64| {
            let words = [number, Time::from_millis(ms).as_nanos()];
            Bytes::from(words.map(u64::to_be_bytes).concat())
        };
        // 1 and 3 are missing, 2 is late; another connection misses its first; a stump is none.
        for (handle, number, sent) in [(0, 0, 10), (0, 4, 40), (0, 2, 20), (1, 1, 40)] {
            inbox.take(Time::from_millis(50), handle, &datagram(number, sent));
        }
        inbox.take(Time::from_millis(50), 0, &Bytes::from_static(b"stump"));
        inbox.close(0);
        let mut results = Vec::new();
        inbox.results(&mut |name, value| results.push((name, value)));
        // Delays of 40, 10, 30 and 10 ms.
        let expected = [
            ("received_datagrams", 4.0),
            ("lost_datagrams", 3.0),
            ("datagram_delay_ms", 22.5),
            ("datagram_delay_max_ms", 40.0),
        ];
        assert_eq!(results, expected);
    }
}
