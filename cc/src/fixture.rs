//! Shared by the unit tests: a sender whose window is full, in whole segments and milliseconds.

use ackclock_units::{Span, Time};

use crate::{Ack, CongestionControl, Flight, Sent};

/// Bytes of a segment.
pub(crate) const MSS: u64 = 1448;

/// A full window of `cwnd` segments at `millis`; round trips of 100 ms; an initial window of 10
/// segments.
pub(crate) fn flight(millis: u64, cwnd: u64) -> Flight {
    Flight {
        now: Time::from_millis(millis),
        mss: MSS as u32,
        in_flight: cwnd * MSS,
        cwnd_limited: true,
        snd_una: 0,
        snd_nxt: cwnd * MSS,
        srtt: Some(Span::from_millis(100)),
        latest_rtt: Some(Span::from_millis(100)),
        min_rtt: Some(Span::from_millis(100)),
        after_timeout: false,
        initial_window: 10 * MSS,
        paced: false,
        app_limited: false,
    }
}

/// An ACK of `segments` that measured a round trip of `rtt` milliseconds.
pub(crate) fn ack(segments: u64, rtt: u64) -> Ack {
    Ack { acked: segments * MSS, delivered: segments * MSS, rtt: Some(Span::from_millis(rtt)), ..Ack::default() }
}

/// A full segment that was sent.
pub(crate) fn sent() -> Sent {
    Sent { seq: 0, bytes: MSS as u32 }
}

/// The window in segments, rounded down.
pub(crate) fn cwnd(cc: &dyn CongestionControl) -> u64 {
    cc.window().cwnd / MSS
}

/// The threshold in segments, rounded down.
pub(crate) fn ssthresh(cc: &dyn CongestionControl) -> u64 {
    cc.window().ssthresh / MSS
}

/// `segments` are acknowledged at `millis`, `each` to an ACK.
pub(crate) fn acks(cc: &mut dyn CongestionControl, millis: u64, segments: u64, each: u64) {
    for _ in 0..segments / each {
        let _ = cc.on_ack(&flight(millis, cwnd(cc)), &ack(each, 100));
    }
}
