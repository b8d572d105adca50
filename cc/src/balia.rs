//! BALIA, the Balanced Linked Adaptation of Multipath TCP: between LIA, which is friendly to TCP
//! only in part, and OLIA, which is slow to respond.
//!
//! It measures the rate `x_i = cwnd_i / rtt_i` of each subflow. In congestion avoidance an ACK for
//! `n` bytes adds `x / rtt / sum(x_i)^2 * (1 + a) / 2 * (4 + a) / 5 * n * mss` with `a = max(x_i) /
//! x`, and a loss takes `cwnd / 2 * min(a, 3/2)` away. Alone it is NewReno.
//!
//! # Source
//! Q. Peng, A. Walid, J. Hwang, S. H. Low: Multipath TCP: analysis, design, and implementation,
//! IEEE/ACM ToN 24(1), 2016; draft-walid-mptcp-congestion-control-04. `net/mptcp/mptcp_balia.c` of
//! the Linux kernel of multipath-tcp.org.
//!
//! # Departures
//! - `a` and the terms are computed in floating point for every ACK and signal. The kernel rounds
//!   `a` down to a whole number, and computes all of it when its window or its state has changed.
//! - Growth is in whole segments, once as many bytes were acknowledged as one costs at that time,
//!   as in the kernel.
//! - The threshold is two segments at least; the draft and the kernel have one when there are
//!   several paths.
//! - An ECN echo takes as much as a loss, or with `beta_ecn` that share times `min(a, 3/2)`.
//! - A timeout takes the same share of what the host's NewReno halves.
//! - A subflow of which no RTT is known does not count.

use crate::coupled_reno::{CoupledReno, Coupling, Siblings};
use crate::reactions::{used_at_loss, used_at_timeout, whole_segments};
use crate::{CongestionControl, Flight, NewReno, Signal, Subflow, Verdict, Window};

/// The most by which a reduction is multiplied.
const MAX_CUT: f64 = 1.5;

/// BALIA (Peng et al.).
pub type Balia = CoupledReno<BaliaCoupling>;

/// The coupling of BALIA.
#[derive(Clone, Copy, Debug, Default, PartialEq)]
pub struct BaliaCoupling {
    /// A segment is earned by this many bytes acknowledged; zero without siblings.
    per_segment: u64,
    /// A reduction takes this many times what NewReno's does; `None` without siblings.
    cut: Option<f64>,
}

impl Coupling for BaliaCoupling {
    const NAME: &'static str = "balia";

    /// `mptcp_balia_recalc_ai`.
    fn couple(&mut self, siblings: Option<Siblings<'_>>) {
        *self = BaliaCoupling::default();
        let Some(Siblings { this, rate, total, subflows, .. }) = siblings else { return };
        let largest = subflows.iter().filter_map(Subflow::rate).fold(0.0, f64::max);
        // The reciprocal of x / rtt / total^2 * (1 + a) / 2 * (4 + a) / 5, as in the kernel. It is
        // never less than the window, since the total is at least x + max, or x where that is the
        // largest.
        let per_segment = 10.0 * this.cwnd as f64 * (total / (rate + largest)) * (total / (4.0 * rate + largest));
        *self = BaliaCoupling { per_segment: per_segment as u64, cut: Some((largest / rate).min(MAX_CUT)) };
    }

    fn avoid(&mut self, reno: &mut NewReno, f: &Flight, acked: u64) -> Verdict {
        reno.avoid(self.per_segment, f, acked);
        Verdict::Continue
    }

    fn on_signal(&mut self, reno: &mut NewReno, before: Window, f: &Flight, signal: Signal) {
        let Some(cut) = self.cut else { return };
        let config = reno.config;
        // `share` is what NewReno takes of the bytes that are reduced.
        let reduced = |used: u64, share: f64| whole_segments((used as f64 * (1.0 - share * cut)) as u64, f);
        match signal {
            Signal::Loss | Signal::Ecn => {
                let kept = config.beta_ecn.filter(|_| signal == Signal::Ecn);
                // The share that ABE keeps is of the window (RFC 8511).
                let used = if kept.is_some() { before.cwnd } else { used_at_loss(&before, f, &config) };
                let ssthresh = reduced(used, 1.0 - kept.unwrap_or(0.5));
                reno.set_window(Window { cwnd: before.cwnd.min(ssthresh), ssthresh });
            }
            Signal::Timeout { repeated: false, .. } => {
                let ssthresh = reduced(used_at_timeout(&before, f, &config), 0.5);
                reno.set_window(Window { ssthresh, ..reno.window() });
            }
            _ => {}
        }
    }
}

#[cfg(test)]
mod tests;
