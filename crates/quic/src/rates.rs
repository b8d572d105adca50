//! Delivery rates of a QUIC sender: how fast data was delivered while a packet was on its way, one
//! sample per ACK.
//!
//! Implementations tell their controllers when an acknowledged packet was sent, not which one it
//! was. Packets that leave at one time are therefore one entry.
//!
//! # Source
//! draft-ietf-ccwg-bbr section 4.1. Names in brackets are the draft's.
//!
//! # Departures
//! - The application limits samples if it does so when an ACK comes, which is when implementations
//!   tell.
//! - Losses are told after the ACK that proves them: they are part of the next sample.

use std::collections::VecDeque;

use ackclock_cc::{Lost, RateSample};
use ackclock_units::{Span, Time};

/// Packets that left at one time, and the counts at that time (the draft's `P`).
#[derive(Clone, Copy, Debug)]
struct Burst {
    sent_at: Time,
    /// The first byte, in the stream of packets.
    seq: u64,
    /// Bytes neither acknowledged nor lost.
    left: u64,
    delivered: u64,
    delivered_at: Time,
    first_sent_at: Time,
    /// With these packets (`P.tx_in_flight`).
    in_flight: u64,
    lost: u64,
    app_limited: bool,
}

/// Counts over a connection's life.
#[derive(Debug, Default)]
pub(crate) struct Rates {
    bursts: VecDeque<Burst>,
    /// `C.delivered` and `C.delivered_time`.
    delivered: u64,
    delivered_at: Time,
    /// `C.first_send_time`.
    first_sent_at: Time,
    /// `C.lost`.
    lost: u64,
    /// `C.app_limited`: samples say too little until more than this is delivered; 0 if they do not.
    app_limited: u64,
    /// The latest burst of which the ACK in hand acknowledges something.
    newest: Option<Burst>,
    /// Sending time of the latest packet that was acknowledged.
    latest: Time,
}

impl Rates {
    /// `C.app_limited > 0`.
    pub(crate) fn is_app_limited(&self) -> bool {
        self.app_limited > 0
    }

    /// `bytes` leave, from `seq` on, where `before` are in flight (`OnPacketSent`).
    pub(crate) fn sent(&mut self, now: Time, seq: u64, bytes: u64, before: u64) {
        if before == 0 {
            (self.first_sent_at, self.delivered_at) = (now, now);
        }
        if let Some(last) = self.bursts.back_mut().filter(|last| last.sent_at == now) {
            (last.left, last.in_flight) = (last.left + bytes, before + bytes);
            return;
        }
        self.bursts.push_back(Burst {
            sent_at: now,
            seq,
            left: bytes,
            delivered: self.delivered,
            delivered_at: self.delivered_at,
            first_sent_at: self.first_sent_at,
            in_flight: before + bytes,
            lost: self.lost,
            app_limited: self.app_limited > 0,
        });
    }

    /// A packet is acknowledged (`UpdateRateSample`).
    pub(crate) fn delivered(&mut self, now: Time, sent_at: Time, bytes: u64) {
        self.delivered += bytes;
        self.delivered_at = now;
        self.latest = self.latest.max(sent_at);
        // A probe of the MTU is sent without a word.
        let Ok(index) = self.bursts.binary_search_by_key(&sent_at, |burst| burst.sent_at) else { return };
        let burst = &mut self.bursts[index];
        burst.left = burst.left.saturating_sub(bytes);
        if self.newest.is_none_or(|newest| newest.sent_at < sent_at) {
            self.newest = Some(*burst);
            self.first_sent_at = sent_at;
        }
    }

    /// The sample of the ACK in hand (`GenerateRateSample`); `None` if it delivers nothing.
    pub(crate) fn sample(
        &mut self,
        now: Time,
        (srtt, min_rtt): (Option<Span>, Option<Span>),
        app_limits: Option<u64>,
    ) -> Option<RateSample> {
        if self.app_limited > 0 && self.delivered > self.app_limited {
            self.app_limited = 0;
        }
        if let Some(in_flight) = app_limits {
            self.app_limited = (self.delivered + in_flight).max(1);
        }
        // Packets that only acknowledge are never acknowledged, nor those of a number space that was
        // discarded. What is left of others is lost after 9/8 round trips (RFC 9002 section 6.1.2).
        let is_long_ago = |at: Time| srtt.is_some_and(|srtt| now.since(at) > srtt * 4);
        while let Some(first) = self.bursts.front()
            && (first.left == 0 || (is_long_ago(first.sent_at) && first.sent_at < self.latest))
        {
            self.bursts.pop_front();
        }
        let newest = self.newest.take()?;
        let interval = newest.sent_at.since(newest.first_sent_at).max(now.since(newest.delivered_at));
        let is_plausible = interval > Span::ZERO && min_rtt.is_none_or(|min| interval >= min);
        Some(RateSample {
            total_delivered: self.delivered,
            prior_delivered: newest.delivered,
            delivered: self.delivered - newest.delivered,
            interval: is_plausible.then_some(interval),
            app_limited: newest.app_limited,
            in_flight_when_sent: newest.in_flight,
            lost: self.lost - newest.lost,
        })
    }

    /// `bytes` are lost, the last of them sent at `sent_at`. Everything outstanding that was sent
    /// before is lost as well: packet numbers rise, and both thresholds of RFC 9002 section 6.1 hold
    /// for smaller ones if they hold for one.
    pub(crate) fn lost(&mut self, sent_at: Time, bytes: u64, mut see: impl FnMut(Lost)) {
        let mut rest = bytes;
        for burst in self.bursts.iter_mut().take_while(|burst| burst.sent_at <= sent_at) {
            let bytes = burst.left.min(rest);
            (burst.left, rest) = (burst.left - bytes, rest - bytes);
            if bytes > 0 {
                self.lost += bytes;
                see(Lost {
                    seq: burst.seq,
                    bytes: u32::try_from(bytes).unwrap_or(u32::MAX),
                    total_delivered: self.delivered,
                    total_lost: self.lost,
                    prior_delivered: burst.delivered,
                    prior_lost: burst.lost,
                    in_flight_when_sent: burst.in_flight,
                    app_limited: burst.app_limited,
                    selective_acks: true,
                });
            }
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    const MS: Span = Span::from_millis(1);

    /// Packets of 1000 bytes each 10 ms, acknowledged 40 ms later: 100 kB/s.
    #[test]
    fn a_sample_is_what_was_delivered_in_a_round_trip() {
        let mut rates = Rates::default();
        let at = |number: u64| Time::ZERO + MS * (10 * number);
        let mut last = None;
        for number in 0..20 {
            if number >= 4 {
                rates.delivered(at(number), at(number - 4), 1000);
                last = rates.sample(at(number), (Some(MS * 40), Some(MS * 40)), None);
            }
            rates.sent(at(number), number * 1000, 1000, 1000 * number.min(3));
        }
        // The ACK of packet 15 at 190 ms. Packet 15 left when packets 0 to 11 were delivered, the last
        // at 150 ms: four packets in 40 ms.
        let last = last.expect("a sample");
        assert_eq!((last.delivered, last.interval), (4000, Some(MS * 40)));
        assert_eq!((last.total_delivered, last.prior_delivered), (16_000, 12_000));
        assert_eq!((last.in_flight_when_sent, last.lost, last.app_limited), (4000, 0, false));
        assert_eq!(rates.bursts.len(), 4);
    }

    #[test]
    fn losses_are_the_oldest_packets() {
        let mut rates = Rates::default();
        let at = |number: u64| Time::ZERO + MS * number;
        for number in 0..5 {
            rates.sent(at(number), number * 1000, 1000, 1000 * number);
        }
        rates.delivered(at(40), at(1), 1000);
        rates.delivered(at(40), at(4), 1000);
        assert_eq!(rates.sample(at(40), (None, None), None).map(|sample| sample.lost), Some(0));
        // 0 and 2 are lost, 3 may still come.
        let mut lost = Vec::new();
        rates.lost(at(2), 2000, |of| lost.push((of.seq, of.bytes, of.total_lost, of.in_flight_when_sent)));
        assert_eq!(lost, [(0, 1000, 1000, 1000), (2000, 1000, 2000, 3000)]);
        rates.delivered(at(41), at(3), 1000);
        // Both were lost since packet 3 was sent.
        assert_eq!(rates.sample(at(41), (None, None), None).map(|sample| sample.lost), Some(2000));
    }

    #[test]
    fn an_idle_application_limits_what_is_sent_until_it_is_delivered() {
        let mut rates = Rates::default();
        let at = |number: u64| Time::ZERO + MS * number;
        rates.sent(at(0), 0, 1000, 0);
        rates.sent(at(1), 1000, 1000, 1000);
        rates.delivered(at(40), at(0), 1000);
        rates.sample(at(40), (None, None), Some(1000));
        rates.sent(at(40), 2000, 1000, 1000);
        rates.delivered(at(80), at(40), 1000);
        assert_eq!(rates.sample(at(80), (None, None), None).map(|sample| sample.app_limited), Some(true));
    }
}
