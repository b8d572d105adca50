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

use ackclock_units::parameter::{Configurable, Visitor};

use crate::controllers::{Algorithm, Stack};
use crate::coupled::{has_siblings, total_rate};
use crate::{
    Ack, CongestionControl, Coupled, Flight, Needs, NewReno, NewRenoConfig, Signal, SlowStartRules, Subflow, Verdict,
    Window,
};

/// Parameters of LIA.
#[derive(Clone, Copy, Debug, Default, PartialEq)]
pub struct LiaConfig {
    /// Everything but the growth in congestion avoidance is NewReno's, with these settings.
    pub reno: NewRenoConfig,
}

impl Configurable for LiaConfig {
    fn parameters(&mut self, v: &mut impl Visitor) {
        self.reno.parameters(v);
    }
}

impl Algorithm for LiaConfig {
    fn on(host: &Stack) -> LiaConfig {
        LiaConfig { reno: host.newreno }
    }

    fn slow_start_mut(&mut self) -> Option<&mut SlowStartRules> {
        Some(&mut self.reno.slow_start)
    }
}

/// LIA (RFC 6356).
#[derive(Clone, Debug)]
pub struct Lia {
    config: LiaConfig,
    reno: NewReno,
    /// A segment is earned by at least this many bytes acknowledged: `total / alpha`. Zero without
    /// siblings.
    least: u64,
}

impl Lia {
    /// A controller of a connection that is not established yet.
    pub fn new(config: LiaConfig) -> Lia {
        Lia { config, reno: NewReno::new(config.reno), least: 0 }
    }
}

impl CongestionControl for Lia {
    fn name(&self) -> &'static str {
        "lia"
    }

    fn window(&self) -> Window {
        self.reno.window()
    }

    fn needs(&self) -> Needs {
        Needs { siblings: true, ..Needs::default() }
    }

    fn on_established(&mut self, f: &Flight) {
        *self = Lia::new(self.config);
        self.reno.on_established(f);
    }

    fn take_over(&mut self, window: Window) {
        self.reno.take_over(window);
    }

    fn on_ack(&mut self, f: &Flight, ack: &Ack) -> Verdict {
        let acked = self.reno.slow_start(f, ack);
        if acked > 0 {
            self.reno.avoid(self.least, f, acked);
        }
        Verdict::Continue
    }

    fn on_signal(&mut self, f: &Flight, signal: Signal) {
        self.reno.on_signal(f, signal);
    }

    fn coupled(&mut self) -> Option<&mut dyn Coupled> {
        Some(self)
    }
}

impl Coupled for Lia {
    fn couple(&mut self, own: usize, subflows: &[Subflow]) {
        self.least = if has_siblings(own, subflows) { per_segment(subflows) } else { 0 };
    }
}

/// `total / alpha`, in which the total cancels out: RFC 6356 equation 2.
fn per_segment(subflows: &[Subflow]) -> u64 {
    let best = subflows.iter().filter_map(|flow| Some(flow.rate()? / flow.rtt()?)).fold(0.0, f64::max);
    let total = total_rate(subflows);
    (total * total / best) as u64
}

#[cfg(test)]
mod tests;
