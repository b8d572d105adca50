//! Sizes and times of the datagrams of an application.

use ackclock_traffic::Messages;
use ackclock_units::{Random, Span, Time};

use crate::spec::{DATAGRAM_HEADERS, DatagramApplication, DatagramSpec, MOST_MESSAGE};

/// An application that sends datagrams.
#[derive(Debug)]
pub(crate) struct DatagramSource {
    spec: DatagramSpec,
    random: Random,
    state: State,
    /// Bytes of the last message that are left for further datagrams.
    rest: u64,
}

#[derive(Debug)]
enum State {
    /// The source is not sending: before its start, or after its end.
    Closed,
    Messages(Messages),
    /// Datagrams at equal distances, the next one then.
    Regular(Time),
}

impl DatagramSource {
    pub(crate) fn new(spec: &DatagramSpec, random: Random) -> DatagramSource {
        DatagramSource { spec: spec.clone(), random, state: State::Closed, rest: 0 }
    }

    pub(crate) fn open(&mut self, now: Time) {
        self.state = match &self.spec.application {
            DatagramApplication::Messages { pattern, .. } => {
                State::Messages(Messages::new(pattern, self.random.clone(), now))
            }
            DatagramApplication::Ping { .. } => State::Regular(now),
            // What is sent first has to be said first.
            DatagramApplication::Voip(call) => State::Regular(now + call.packetisation),
        };
    }

    pub(crate) fn close(&mut self) {
        self.state = State::Closed;
        self.rest = 0;
    }

    pub(crate) fn is_open(&self) -> bool {
        !matches!(self.state, State::Closed)
    }

    /// Time of the next datagram; [`Time::NEVER`] if there is none.
    pub(crate) fn next_at(&self) -> Time {
        match &self.state {
            State::Closed => Time::NEVER,
            State::Messages(messages) => messages.next_at(),
            State::Regular(next) => *next,
        }
    }

    /// The payload of the next datagram, if it is sent by now. A message that is larger than a
    /// datagram is sent as several, all at once.
    pub(crate) fn take(&mut self, now: Time) -> Option<u32> {
        if self.rest == 0 {
            self.rest = self.message(now)?.min(u64::from(MOST_MESSAGE));
        }
        let most = u32::from(self.spec.mtu).saturating_sub(DATAGRAM_HEADERS);
        let len = u32::try_from(self.rest).unwrap_or(most).min(most);
        self.rest -= u64::from(len);
        Some(len)
    }

    /// The bytes of the next message, if it is sent by now.
    fn message(&mut self, now: Time) -> Option<u64> {
        match (&mut self.state, &self.spec.application) {
            (State::Messages(messages), _) => messages.take(now).map(|message| message.bytes),
            (State::Regular(next), application) if *next <= now => {
                let (interval, size) = match application {
                    DatagramApplication::Ping { interval, size } => (*interval, *size),
                    DatagramApplication::Voip(call) => (call.packetisation, call.size()),
                    DatagramApplication::Messages { .. } => return None,
                };
                *next += interval.max(Span::from_nanos(1));
                Some(u64::from(size))
            }
            _ => None,
        }
    }
}

#[cfg(test)]
mod tests {
    use ackclock_traffic::{Distribution, Pattern};
    use ackclock_units::{Ecn, Rate};

    use super::*;

    fn source(application: DatagramApplication, mtu: u16) -> DatagramSource {
        let mut source = DatagramSource::new(
            &DatagramSpec { application, mtu, ecn: Ecn::NotEct },
            Random::for_component(1, 0, "source"),
        );
        assert_eq!((source.next_at(), source.take(Time::NEVER)), (Time::NEVER, None));
        source.open(Time::from_millis(5));
        source
    }

    #[test]
    fn a_constant_rate_is_exact() {
        // 1000 bytes at 3 Mbit/s take 2.666... ms: every third starts after whole 8 ms.
        let pattern = Pattern::cbr(Rate::from_bps(3_000_000).unwrap(), 1000);
        let mut source = source(DatagramApplication::Messages { kind: "cbr", pattern }, 1500);
        for number in 0..3000 {
            let at = Time::from_millis(5) + Span::from_nanos(number * 8_000_000 / 3);
            assert_eq!(source.next_at(), at, "{number}");
            assert_eq!((source.take(at), source.take(at)), (Some(1000), None));
        }
        source.close();
        assert_eq!((source.next_at(), source.is_open()), (Time::NEVER, false));
    }

    #[test]
    fn requests_are_sent_at_once_and_then_at_equal_distances() {
        let mut source = source(DatagramApplication::Ping { interval: Span::from_millis(100), size: 56 }, 1500);
        for number in 0..50 {
            let at = Time::from_millis(5 + 100 * number);
            assert_eq!((source.next_at(), source.take(at)), (at, Some(56)));
        }
    }

    #[test]
    fn large_messages_are_sent_as_several_datagrams() {
        let constant = |value| Distribution::constant(value).unwrap();
        let pattern = Pattern::renewal(constant(1e6), constant(2500.0)).unwrap();
        let mut source = source(DatagramApplication::Messages { kind: "random", pattern }, 1028);
        for number in 1..100 {
            let at = Time::from_millis(5 + number);
            assert_eq!(source.next_at(), at);
            let sizes: Vec<u32> = std::iter::from_fn(|| source.take(at)).collect();
            assert_eq!(sizes, [1000, 1000, 500]);
        }
        source.take(Time::from_millis(5 + 100));
        source.close();
        assert_eq!((source.next_at(), source.take(Time::NEVER)), (Time::NEVER, None));
    }
}
