//! LIA, the Linked Increases Algorithm of Multipath TCP: the windows of a connection's subflows
//! grow together no faster than one TCP on the best of the paths would.
//!
//! It measures the smoothed RTT of each subflow, and couples nothing but the growth in congestion
//! avoidance: an ACK for `n` bytes adds `alpha * n * mss / total`, with `total` the sum of the
//! windows, but no more than `n * mss / cwnd`, as NewReno does. With `alpha = total * max(cwnd_i /
//! rtt_i^2) / sum(cwnd_i / rtt_i)^2` the subflows together get what one TCP would on the best path.
//! Alone it is NewReno.
//!
//! # Source
//! RFC 6356 sections 3 and 4. D. Wischik, C. Raiciu, A. Greenhalgh, M. Handley: Design,
//! implementation and evaluation of congestion control for multipath TCP, NSDI 2011. What counts as
//! a subflow: `net/mptcp/mptcp_coupled.c` of the Linux kernel of multipath-tcp.org.
//!
//! # Departures
//! - `alpha` is computed for every ACK, in floating point; section 4.1 allows once per window, and
//!   scaled integers.
//! - Growth is in whole segments, once as many bytes were acknowledged as one costs at that time;
//!   the RFC adds fractions of a segment with every ACK (section 4.2 has both).
//! - Slow start, the reductions and idle times are those of the host's NewReno.
//! - A subflow of which no RTT is known does not count, as in the kernel.

use crate::coupled_reno::{CoupledReno, Coupling, Siblings};
use crate::{Flight, NewReno, Subflow, Verdict};

/// LIA (RFC 6356).
pub type Lia = CoupledReno<LiaCoupling>;

/// The coupling of LIA.
#[derive(Clone, Debug, Default)]
pub struct LiaCoupling {
    /// A segment is earned by at least this many bytes acknowledged: `total / alpha`. Zero without
    /// siblings.
    least: u64,
}

impl Coupling for LiaCoupling {
    const NAME: &'static str = "lia";

    fn couple(&mut self, siblings: Option<Siblings<'_>>) {
        self.least = siblings.map_or(0, per_segment);
    }

    fn avoid(&mut self, reno: &mut NewReno, f: &Flight, acked: u64) -> Verdict {
        reno.avoid(self.least, f, acked);
        Verdict::Continue
    }
}

/// `total / alpha`, in which the total cancels out: RFC 6356 equation 2.
fn per_segment(Siblings { total, subflows, .. }: Siblings<'_>) -> u64 {
    let quality = |flow: &Subflow| Some(flow.rate()? / flow.rtt()?);
    let best = subflows.iter().filter_map(quality).fold(0.0, f64::max);
    (total * total / best) as u64
}

#[cfg(test)]
mod tests;
