//! Delivery rates: how fast data was delivered while a segment was on its way, one sample per ACK.
//!
//! For every segment the counts at its last transmission are kept, in a ring parallel to the
//! scoreboard's. The segment sent last among those that an ACK delivers gives the sample: the data
//! delivered since then, over the longer of the time in which it was sent and the time in which it
//! was acknowledged, so that ACK compression does not inflate the rate.
//!
//! # Source
//! draft-ietf-ccwg-bbr section 4.1; Linux `net/ipv4/tcp_rate.c`. Names in brackets are the draft's.
//!
//! # Departures
//! - Nothing counts as in flight when nothing is outstanding, as in Linux: the draft looks at
//!   `C.inflight`, which is also zero when everything is declared lost, perhaps in error.
//! - While a timeout is repaired at which the receiver had reneged there are no samples, as in
//!   Linux: what had been reported before would count twice.
//! - Without SACK nothing counts as delivered until it is acknowledged cumulatively.
//! - A FIN counts as a byte.

use std::collections::VecDeque;

use ackclock_cc::{Lost, RateSample};
use ackclock_units::{Span, Time};

use super::{Sent, Stamp};

/// The counts at the time when a segment was sent last (the draft's `P`).
#[derive(Clone, Copy, Debug)]
struct RateSnapshot {
    delivered: u64,
    /// [`Time::NEVER`] once the segment has counted as delivered.
    delivered_at: Time,
    /// [`Time::NEVER`] if it was sent before anything was counted.
    first_sent_at: Time,
    /// With the segment itself (`P.tx_in_flight`).
    in_flight: u64,
    lost: u64,
    app_limited: bool,
}

impl RateSnapshot {
    const NONE: RateSnapshot = RateSnapshot {
        delivered: 0,
        delivered_at: Time::NEVER,
        first_sent_at: Time::NEVER,
        in_flight: 0,
        lost: 0,
        app_limited: false,
    };
}

/// The segment that gives the sample of the ACK in hand.
#[derive(Clone, Copy, Debug)]
struct Newest {
    /// When it was sent and where it ends: of segments that one ACK released the highest.
    key: (Stamp, u64),
    snapshot: RateSnapshot,
}

/// The delivery rate that a socket reports (`tcpi_delivery_rate`): the last one that the
/// application did not limit, or a higher one that it did.
#[derive(Clone, Copy, Debug, Default)]
pub(crate) struct DeliveryRate {
    delivered: u64,
    interval: Span,
    app_limited: bool,
}

impl DeliveryRate {
    /// Bytes a second; 0 before there was a sample.
    pub(crate) fn bytes_per_second(&self) -> u64 {
        let rate = u128::from(self.delivered) * 1_000_000_000 / u128::from(self.interval.as_nanos().max(1));
        u64::try_from(rate).unwrap_or(u64::MAX)
    }

    /// Returns `true` if the application limited the sample.
    pub(crate) fn is_app_limited(&self) -> bool {
        self.app_limited
    }

    fn note(&mut self, sample: &RateSample) {
        let Some(interval) = sample.interval else { return };
        let (delivered, nanos) = (u128::from(sample.delivered), u128::from(interval.as_nanos()));
        let no_less = delivered * u128::from(self.interval.as_nanos()) >= u128::from(self.delivered) * nanos;
        if !sample.app_limited || no_less {
            *self = DeliveryRate { delivered: sample.delivered, interval, app_limited: sample.app_limited };
        }
    }
}

/// Counts over a connection's life, from when a controller first asked for them.
#[derive(Debug)]
pub(super) struct Rates {
    /// One for each entry of the scoreboard, in its order.
    snapshots: VecDeque<RateSnapshot>,
    /// `C.delivered` and `C.delivered_time`.
    pub(super) delivered: u64,
    delivered_at: Time,
    /// `C.first_send_time`.
    first_sent_at: Time,
    /// `C.lost`.
    lost: u64,
    /// `C.app_limited`: samples say too little until more than this is delivered; 0 if they do not.
    pub(super) app_limited: u64,
    newest: Option<Newest>,
    /// The receiver has reneged, and that is not repaired yet.
    reneged: bool,
    /// Segments marked lost and not yet reported to the controller.
    pub(super) waiting: Vec<Lost>,
    pub(super) reported: DeliveryRate,
}

impl Rates {
    /// With `outstanding` segments that were sent before.
    pub(super) fn new(outstanding: usize) -> Rates {
        Rates {
            snapshots: std::iter::repeat_n(RateSnapshot::NONE, outstanding).collect(),
            delivered: 0,
            delivered_at: Time::ZERO,
            first_sent_at: Time::ZERO,
            lost: 0,
            app_limited: 0,
            newest: None,
            reneged: false,
            waiting: Vec::new(),
            reported: DeliveryRate::default(),
        }
    }

    fn snapshot(&self, in_flight: u64) -> RateSnapshot {
        RateSnapshot {
            delivered: self.delivered,
            delivered_at: self.delivered_at,
            first_sent_at: self.first_sent_at,
            in_flight,
            lost: self.lost,
            app_limited: self.app_limited > 0,
        }
    }

    /// A segment is sent for the first time, after which `in_flight` bytes are in the network
    /// (`OnPacketSent`).
    #[inline(never)]
    pub(super) fn sent(&mut self, sent_at: Time, in_flight: u64) {
        if self.snapshots.is_empty() {
            (self.first_sent_at, self.delivered_at) = (sent_at, sent_at);
        }
        let snapshot = self.snapshot(in_flight);
        self.snapshots.push_back(snapshot);
    }

    /// The segment at `index` is sent again.
    pub(super) fn resent(&mut self, index: usize, in_flight: u64) {
        let snapshot = self.snapshot(in_flight);
        self.snapshots[index] = snapshot;
    }

    /// The segment at `index` becomes two.
    pub(super) fn split(&mut self, index: usize) {
        let snapshot = self.snapshots[index];
        self.snapshots.insert(index, snapshot);
    }

    /// The first segment, or the `taken` part of it, is acknowledged cumulatively.
    pub(super) fn acknowledged(&mut self, now: Time, taken: &Sent, whole: bool) {
        if !taken.sacked {
            self.delivered(now, 0, taken);
        }
        if whole {
            self.snapshots.pop_front();
        }
    }

    /// `sent`, which is or was at `index`, has arrived, all of it or a part (`UpdateRateSample`).
    #[inline(never)]
    pub(super) fn delivered(&mut self, now: Time, index: usize, sent: &Sent) {
        let snapshot = &mut self.snapshots[index];
        let is_known = snapshot.first_sent_at != Time::NEVER;
        if is_known && snapshot.delivered_at == Time::NEVER {
            return;
        }
        self.delivered += u64::from(sent.len);
        self.delivered_at = now;
        if !is_known {
            return;
        }
        let key = (sent.stamp(), sent.end());
        if self.newest.is_none_or(|newest| newest.key < key) {
            self.newest = Some(Newest { key, snapshot: *snapshot });
            self.first_sent_at = sent.sent_at;
        }
        if sent.sacked {
            snapshot.delivered_at = Time::NEVER;
        }
    }

    /// `sent`, which is at `index`, or its retransmission is declared lost.
    pub(super) fn lose(&mut self, index: usize, sent: &Sent) {
        self.lost += u64::from(sent.len);
        let RateSnapshot { delivered, first_sent_at, in_flight, lost, app_limited, .. } = self.snapshots[index];
        if first_sent_at == Time::NEVER {
            return;
        }
        self.waiting.push(Lost {
            seq: sent.seq,
            bytes: sent.len,
            total_delivered: self.delivered,
            total_lost: self.lost,
            prior_delivered: delivered,
            prior_lost: lost,
            in_flight_when_sent: in_flight,
            app_limited,
            // The endpoint knows.
            selective_acks: false,
        });
    }

    /// The sample of the ACK in hand, once what it proves lost is marked (`GenerateRateSample`);
    /// `None` if it delivers nothing. `repairing` while a timeout is not repaired.
    pub(super) fn sample(&mut self, now: Time, min_rtt: Option<Span>, repairing: bool) -> Option<RateSample> {
        self.reneged &= repairing;
        if self.app_limited > 0 && self.delivered > self.app_limited {
            self.app_limited = 0;
        }
        let Newest { key: (Stamp { at: sent_at, .. }, _), snapshot } = self.newest.take().filter(|_| !self.reneged)?;
        let interval = sent_at.since(snapshot.first_sent_at).max(now.since(snapshot.delivered_at));
        let is_plausible = interval > Span::ZERO && min_rtt.is_none_or(|min| interval >= min);
        let sample = RateSample {
            total_delivered: self.delivered,
            prior_delivered: snapshot.delivered,
            delivered: self.delivered - snapshot.delivered,
            interval: is_plausible.then_some(interval),
            app_limited: snapshot.app_limited,
            in_flight_when_sent: snapshot.in_flight,
            lost: self.lost - snapshot.lost,
        };
        self.reported.note(&sample);
        Some(sample)
    }

    /// The receiver dropped what it had reported (RFC 2018 section 8).
    pub(super) fn reneged(&mut self) {
        self.reneged = true;
    }
}
