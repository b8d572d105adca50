//! Growth as Linux has it: one segment after `cnt` ACKs (2.6.32, 3.9) or segments acknowledged
//! (6.1), all in whole segments.

use ackclock_units::{Span, Time};

use super::{CubicConfig, CubicRules, Curve};
use crate::reactions::avoid;
use crate::{Flight, Window};

#[derive(Clone, Debug)]
pub(super) struct Growth {
    /// `cnt`: ACKs or segments for one segment of growth.
    cnt: u64,
    /// `tcp_cwnd`, the window that Reno would have.
    w_est: u64,
    /// `ack_cnt`: ACKs or segments that have not yet become growth of `w_est`.
    acks: u64,
    /// The window and the time for which `cnt` was computed; `None` before the first time.
    computed: Option<(u64, Time)>,
}

/// With an unchanged window, `cnt` is kept for this long (`HZ / 32`).
const KEEP: Span = Span::from_micros(31_250);

/// A window in whole segments, at least one.
pub(super) fn segments(cwnd: u64, f: &Flight) -> u64 {
    (cwnd / f.segment()).max(1)
}

impl Growth {
    pub(super) fn new(cwnd: u64) -> Growth {
        Growth { cnt: 1, w_est: cwnd, acks: 0, computed: None }
    }

    /// Brings `cnt` up to date (`bictcp_update`). `t` is the time of the curve in seconds, a round
    /// trip ahead; `first` says that there was no loss yet.
    #[expect(clippy::too_many_arguments, reason = "the inputs of bictcp_update")]
    pub(super) fn count(
        &mut self,
        f: &Flight,
        acked: u64,
        cwnd: u64,
        curve: &Curve,
        t: f64,
        first: bool,
        config: &CubicConfig,
    ) {
        let acks = match config.rules {
            CubicRules::Linux26 | CubicRules::Linux39 => 1,
            CubicRules::Rfc9438 | CubicRules::Linux61 => acked.div_ceil(f.segment()),
        };
        self.acks = self.acks.saturating_add(acks);
        if self.computed.is_some_and(|(window, at)| window == cwnd && f.now.since(at) <= KEEP) {
            return;
        }
        self.computed = Some((cwnd, f.now));

        let target = target(curve, t);
        // At or above the curve the window all but stands still.
        self.cnt = if target > cwnd { cwnd / (target - cwnd) } else { 100 * cwnd };
        if first && config.rules != CubicRules::Linux26 {
            // No saturation point is known: at least 5 % per round trip.
            self.cnt = self.cnt.min(20);
        }
        if config.reno_friendly {
            self.follow_reno(cwnd, config.beta);
        }
        if !matches!(config.rules, CubicRules::Linux26 | CubicRules::Linux39) {
            // At most half a window per round trip (RFC 9438 section 4.2 bounds `target` alike).
            self.cnt = self.cnt.max(2);
        }
    }

    fn follow_reno(&mut self, cwnd: u64, beta: f64) {
        // `beta_scale`: ACKs for one segment of Reno's growth, in eighths of a window.
        let scale = (8.0 * (1.0 + beta) / 3.0 / (1.0 - beta)) as u64;
        let needed = (cwnd.saturating_mul(scale) >> 3).max(1);
        let grown = self.acks.saturating_sub(1) / needed;
        self.acks -= grown * needed;
        self.w_est = self.w_est.saturating_add(grown);
        if self.w_est > cwnd {
            self.cnt = self.cnt.min(cwnd / (self.w_est - cwnd));
        }
    }

    /// One ACK's growth.
    pub(super) fn grow(
        &mut self,
        window: &mut Window,
        credit: &mut u64,
        f: &Flight,
        acked: u64,
        segments_per_ack: u64,
        config: &CubicConfig,
    ) {
        let cnt = match config.rules {
            // ACKs are counted, and each stands for several segments.
            CubicRules::Linux26 | CubicRules::Linux39 => (self.cnt.saturating_mul(16) / segments_per_ack).max(1),
            CubicRules::Rfc9438 | CubicRules::Linux61 => self.cnt,
        };
        avoid(window, credit, cnt.saturating_mul(f.segment()), f, acked, &config.reno);
    }
}

/// The curve in whole segments, its distance from the maximum rounded down.
fn target(curve: &Curve, t: f64) -> u64 {
    let distance = curve.above(t).abs() as u64;
    let w_max = curve.w_max as u64;
    if t < curve.k { w_max.saturating_sub(distance) } else { w_max.saturating_add(distance) }
}
