//! Growth as RFC 9438 writes it: a fraction of a segment for every segment acknowledged.

use super::{CubicConfig, Curve};
use crate::{Flight, Window};

#[derive(Clone, Debug)]
pub(super) struct Rfc9438Growth {
    /// `W_est`, the window that Reno would have, in segments.
    w_est: f64,
    /// The part of a byte that the window does not hold.
    carry: f64,
}

impl Rfc9438Growth {
    pub(super) fn new(cwnd: f64) -> Rfc9438Growth {
        Rfc9438Growth { w_est: cwnd, carry: 0.0 }
    }

    /// `t` seconds into the epoch, `acked` bytes were acknowledged.
    #[expect(clippy::too_many_arguments, reason = "the variables of RFC 9438 section 4.1")]
    pub(super) fn grow(
        &mut self,
        window: &mut Window,
        f: &Flight,
        acked: u64,
        curve: &Curve,
        t: f64,
        cwnd_prior: f64,
        config: &CubicConfig,
    ) {
        let mss = f.segment() as f64;
        let cwnd = ((window.cwnd as f64 + self.carry) / mss).max(1.0);
        let windows_acked = acked as f64 / mss / cwnd;

        // Section 4.3: alpha makes an AIMD with this beta as fast as Reno; past the old window it
        // is Reno.
        let alpha = if self.w_est >= cwnd_prior { 1.0 } else { 3.0 * (1.0 - config.beta) / (1.0 + config.beta) };
        self.w_est += alpha * windows_acked;

        let next = if config.reno_friendly && curve.at(t) < self.w_est {
            self.w_est.max(cwnd)
        } else {
            // Sections 4.4 and 4.5. `max` and `min` in this order also turn a curve that is not a
            // number into `cwnd`.
            let rtt = f.srtt.map_or(0.0, |srtt| srtt.as_secs_f64());
            let target = curve.at(t + rtt).max(cwnd).min(1.5 * cwnd);
            cwnd + (target - cwnd) * windows_acked
        };
        let bytes = (next * mss).min(Window::MAX as f64);
        let whole = (bytes as u64).max(window.cwnd);
        self.carry = (bytes - whole as f64).max(0.0);
        window.cwnd = whole;
    }
}
