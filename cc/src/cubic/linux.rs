//! Growth as Linux has it: one segment after `cnt` ACKs (2.6.32, 3.9) or segments acknowledged
//! (6.1), all in whole segments, by a clock of jiffies.
//!
//! Time on the curve is in 1024ths of a second (`BICTCP_HZ`), and `C` in 1024ths too (`bic_scale`).

use ackclock_units::{Span, Time};

use super::config::CubicConfig;
use super::law::Law;
use crate::reactions::avoid;
use crate::{Flight, Window};

#[derive(Clone, Debug)]
pub(super) struct LinuxGrowth {
    /// `bic_K`: when the curve is flat, from the begin of the epoch on.
    pub(super) k: u64,
    /// `bic_origin_point`, the window there.
    pub(super) origin: u64,
    /// `cnt`: ACKs or segments for one segment of growth.
    cnt: u64,
    /// `tcp_cwnd`, the window that Reno would have.
    w_est: u64,
    /// `ack_cnt`: ACKs or segments that have not yet become growth of `w_est`.
    acks: u64,
    law: Law,
    /// The window and the jiffy for which `cnt` was computed; `None` before the first time.
    computed: Option<(u64, u64)>,
}

/// When an ACK arrived, in an epoch and on the path.
#[derive(Clone, Copy, Debug)]
pub(super) struct AckTimes {
    /// Begin of the epoch.
    pub(super) start: Time,
    /// The shortest round trip.
    pub(super) shortest: Option<Span>,
    /// There was no loss yet.
    pub(super) first: bool,
}

/// A window in whole segments, at least one.
pub(super) fn segments(cwnd: u64, f: &Flight) -> u64 {
    (cwnd / f.segment()).max(1)
}

/// `bic_scale`, ten times.
fn scale(c: f64) -> u64 {
    ((c * 1024.0).round() as u64).max(1)
}

impl LinuxGrowth {
    /// An epoch that begins with a window of `cwnd`, the last reduction having been at `w_max`.
    pub(super) fn new(cwnd: u64, w_max: u64, config: &CubicConfig) -> LinuxGrowth {
        let (k, origin) = match w_max.checked_sub(cwnd) {
            None | Some(0) => (0, cwnd),
            Some(distance) => (cube_root(((1 << 40) / scale(config.c)).saturating_mul(distance)), w_max),
        };
        LinuxGrowth { k, origin, cnt: 1, w_est: cwnd, acks: 0, law: config.rules.law(), computed: None }
    }

    /// Brings `cnt` up to date (`bictcp_update`).
    pub(super) fn count(&mut self, f: &Flight, acked: u64, cwnd: u64, at: AckTimes, config: &CubicConfig) {
        let acks = if self.law.counts_acks { 1 } else { acked.div_ceil(f.segment()) };
        self.acks = self.acks.saturating_add(acks);
        let now = config.ticks(f.now);
        // With an unchanged window, `cnt` is kept for `HZ / 32`.
        let keep = 1_000_000_000 / config.tick.as_nanos().max(1) / 32;
        if self.computed.is_some_and(|(window, at)| window == cwnd && now.saturating_sub(at) <= keep) {
            return;
        }
        if !self.law.once_a_jiffy || self.computed.is_none_or(|(_, at)| now != at) {
            self.computed = Some((cwnd, now));
            let target = self.target(now, at, config);
            // At or above the curve the window all but stands still.
            self.cnt = if target > cwnd { cwnd / (target - cwnd) } else { 100 * cwnd };
            if at.first && self.law.hurries_at_first {
                // No saturation point is known: at least 5 % per round trip.
                self.cnt = self.cnt.min(20);
            }
        }
        if config.reno_friendly {
            self.follow_reno(cwnd, config.beta);
        }
        if self.law.bounds_growth {
            // At most half a window per round trip (RFC 9438 section 4.2 bounds `target` alike).
            self.cnt = self.cnt.max(2);
        }
    }

    /// The curve a round trip ahead, in whole segments.
    fn target(&self, now: u64, at: AckTimes, config: &CubicConfig) -> u64 {
        let tick = config.tick.as_nanos().max(1);
        let ahead = at.shortest.unwrap_or(Span::ZERO).as_nanos().div_ceil(tick);
        let ticks = now.saturating_sub(config.ticks(at.start)).saturating_add(ahead);
        let t = (u128::from(ticks) * u128::from(tick) * 1024 / 1_000_000_000) as u64;
        let offset = u128::from(t.abs_diff(self.k));
        let distance = offset.pow(2).saturating_mul(offset).saturating_mul(scale(config.c).into()) >> 40;
        let distance = u64::try_from(distance).unwrap_or(u64::MAX);
        if t < self.k { self.origin.saturating_sub(distance) } else { self.origin.saturating_add(distance) }
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
        let cnt = match self.law.counts_acks {
            true => (self.cnt.saturating_mul(16) / segments_per_ack).max(1),
            false => self.cnt,
        };
        avoid(window, credit, cnt.saturating_mul(f.segment()), f, acked, &config.reno);
    }
}

/// Cube roots of 0 to 63, in 64ths, less 10 (`v` of `cubic_root`).
const CUBE_ROOTS: [u8; 64] = [
    0, 54, 54, 54, 118, 118, 118, 118, 123, 129, 134, 138, 143, 147, 151, 156, 157, 161, 164, 168, 170, 173, 176, 179,
    181, 185, 187, 190, 192, 194, 197, 199, 200, 202, 204, 206, 209, 211, 213, 215, 217, 219, 221, 222, 224, 225, 227,
    229, 231, 232, 234, 236, 237, 239, 240, 242, 244, 245, 246, 248, 250, 251, 252, 254,
];

/// Linux's `cubic_root`: a table of the leading bits, and one step of Newton and Raphson; on
/// average 0.2 % off.
fn cube_root(a: u64) -> u64 {
    let bits = 64 - a.leading_zeros();
    if bits < 7 {
        return (u64::from(CUBE_ROOTS[a as usize]) + 35) >> 6;
    }
    let b = ((bits * 84) >> 8) - 1;
    let x = ((u64::from(CUBE_ROOTS[(a >> (b * 3)) as usize & 63]) + 10) << b) >> 6;
    // A third is 341 / 1024.
    ((2 * x + a / (x * (x - 1)).max(1)) * 341) >> 10
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn cube_roots_are_those_of_linux() {
        // Worked by hand: 10^6 has 20 bits, b = 5, 10^6 >> 15 = 30; x = (197 + 10) * 32 / 64 = 103;
        // (206 + 10^6 / (103 * 102)) * 341 / 1024 = 301 * 341 / 1024 = 100.2.
        assert_eq!(cube_root(1_000_000), 100);
        assert_eq!([0, 1, 8, 27, 63].map(cube_root), [0, 1, 2, 3, 4]);
        for a in [100_u64, 12_345, 1 << 30, 1 << 40, 75 << 30, u64::MAX / 3] {
            let exact = ackclock_units::maths::cbrt(a as f64);
            assert!((cube_root(a) as f64 - exact).abs() <= 1.0 + exact / 100.0, "{a}: {}", cube_root(a));
        }
    }
}
