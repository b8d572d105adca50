//! The metrics that a host remembers of a destination from one connection to the next.
//!
//! # Source
//! Linux 2.4.0, `net/ipv4/tcp_input.c`: `tcp_update_metrics`, called when a connection enters
//! TIME-WAIT, and `tcp_init_metrics`, called when one is established.
//!
//! # Departures
//! - The remembered window (`RTAX_CWND`) is left out: it is used only where it is locked by hand.
//! - An entry does not expire (Linux drops unused ones after some minutes).

use ackclock_units::Span;

use crate::CaState;

/// The remembered metrics, counted in segments. The default knows nothing.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Metrics {
    /// The slow start threshold; 0 is unknown.
    pub ssthresh: u64,
    /// The smoothed round-trip time; zero is unknown.
    pub rtt: Span,
    /// Four times its mean deviation.
    pub deviation: Span,
    /// The duplicate threshold; 0 is unknown.
    pub reordering: u32,
}

/// A window that has had no loss: slow start goes on.
const NO_THRESHOLD: u64 = 0xffff;

impl Metrics {
    /// `tcp_update_metrics`: a connection is over that was in this state.
    pub(crate) fn learn(&mut self, rtt: Span, deviation: Span, state: CaState, [cwnd, ssthresh]: [u64; 2]) {
        let known = self.rtt.as_nanos();
        let distance = known.abs_diff(rtt.as_nanos());
        self.rtt = if rtt >= self.rtt { rtt } else { Span::from_nanos(known - distance / 8) };
        // The deviation of Linux is counted in quarters, the round trip in eighths.
        let new = Span::from_nanos(distance * 4).max(deviation);
        let old = self.deviation;
        self.deviation = if new >= old { new } else { old - (old - new) / 4 };
        if ssthresh >= NO_THRESHOLD {
            if self.ssthresh > 0 {
                self.ssthresh = self.ssthresh.max(cwnd / 2);
            }
        } else if cwnd > ssthresh && state == CaState::Open {
            self.ssthresh = ssthresh.max(cwnd / 2);
        } else if self.ssthresh > 0 {
            self.ssthresh = self.ssthresh.max(ssthresh);
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    const MS: fn(u64) -> Span = Span::from_millis;

    #[test]
    fn a_threshold_is_remembered_from_congestion_avoidance_alone() {
        let mut metrics = Metrics::default();
        // Slow start without a loss: nothing to remember.
        metrics.learn(MS(10), MS(4), CaState::Open, [50, 1 << 40]);
        assert_eq!((metrics.ssthresh, metrics.rtt, metrics.deviation), (0, MS(10), MS(40)));
        // Below the threshold it is believed only if one is known.
        metrics.learn(MS(10), MS(4), CaState::Open, [3, 8]);
        assert_eq!(metrics.ssthresh, 0);
        metrics.learn(MS(10), MS(4), CaState::Open, [20, 8]);
        assert_eq!(metrics.ssthresh, 10);
        metrics.learn(MS(10), MS(4), CaState::Recovery, [20, 12]);
        assert_eq!(metrics.ssthresh, 12);
        // Congestion avoidance replaces it, downwards too.
        metrics.learn(MS(10), MS(4), CaState::Open, [7, 6]);
        assert_eq!(metrics.ssthresh, 6);
    }

    #[test]
    fn a_round_trip_rises_at_once_and_falls_by_an_eighth() {
        let mut metrics = Metrics { rtt: MS(80), deviation: MS(16), ..Metrics::default() };
        // A fall by 40 ms: an eighth of it; the deviation is the greater of 4 * 40 ms and its own.
        metrics.learn(MS(40), MS(4), CaState::Open, [1, 1]);
        assert_eq!((metrics.rtt, metrics.deviation), (MS(75), MS(160)));
        metrics.learn(MS(75), MS(20), CaState::Open, [1, 1]);
        // 160 - (160 - 20) / 4.
        assert_eq!((metrics.rtt, metrics.deviation), (MS(75), MS(125)));
    }
}
