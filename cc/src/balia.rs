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

use ackclock_units::parameter::{Configurable, Visitor};

use crate::controllers::{Algorithm, Stack};
use crate::coupled::{has_siblings, total_rate};
use crate::reactions::{used_at_loss, used_at_timeout, whole_segments};
use crate::{
    Ack, CongestionControl, Coupled, Flight, Needs, NewReno, NewRenoConfig, Signal, SlowStartRules, Subflow, Verdict,
    Window,
};

/// Parameters of BALIA.
#[derive(Clone, Copy, Debug, Default, PartialEq)]
pub struct BaliaConfig {
    /// Slow start, what a reduction reduces, timeouts and idle time are NewReno's, with these
    /// settings.
    pub reno: NewRenoConfig,
}

impl Configurable for BaliaConfig {
    fn parameters(&mut self, v: &mut impl Visitor) {
        self.reno.parameters(v);
    }
}

impl Algorithm for BaliaConfig {
    fn on(host: &Stack) -> BaliaConfig {
        BaliaConfig { reno: host.newreno }
    }

    fn slow_start_mut(&mut self) -> Option<&mut SlowStartRules> {
        Some(&mut self.reno.slow_start)
    }
}

/// The most by which a reduction is multiplied.
const MAX_CUT: f64 = 1.5;

/// BALIA (Peng et al.).
#[derive(Clone, Debug)]
pub struct Balia {
    config: BaliaConfig,
    reno: NewReno,
    coupling: Option<Coupling>,
}

/// What the siblings come to.
#[derive(Clone, Copy, Debug, PartialEq)]
struct Coupling {
    /// A segment is earned by this many bytes acknowledged.
    per_segment: u64,
    /// A reduction takes this many times what NewReno's does.
    cut: f64,
}

impl Balia {
    /// A controller of a connection that is not established yet.
    pub fn new(config: BaliaConfig) -> Balia {
        Balia { config, reno: NewReno::new(config.reno), coupling: None }
    }

    /// The threshold after a congestion, from the bytes that are reduced; `share` is what NewReno
    /// takes of them.
    fn reduced(&self, used: u64, share: f64, cut: f64, f: &Flight) -> u64 {
        whole_segments((used as f64 * (1.0 - share * cut)) as u64, f)
    }
}

impl CongestionControl for Balia {
    fn name(&self) -> &'static str {
        "balia"
    }

    fn window(&self) -> Window {
        self.reno.window()
    }

    fn needs(&self) -> Needs {
        Needs { siblings: true, ..Needs::default() }
    }

    fn on_established(&mut self, f: &Flight) {
        *self = Balia::new(self.config);
        self.reno.on_established(f);
    }

    fn take_over(&mut self, window: Window) {
        self.reno.take_over(window);
    }

    fn on_ack(&mut self, f: &Flight, ack: &Ack) -> Verdict {
        let acked = self.reno.slow_start(f, ack);
        if acked > 0 {
            self.reno.avoid(self.coupling.map_or(0, |coupling| coupling.per_segment), f, acked);
        }
        Verdict::Continue
    }

    fn on_signal(&mut self, f: &Flight, signal: Signal) {
        let before = self.window();
        self.reno.on_signal(f, signal);
        let Some(Coupling { cut, .. }) = self.coupling else { return };
        let reno = &self.config.reno;
        match signal {
            Signal::Loss | Signal::Ecn => {
                let kept = reno.beta_ecn.filter(|_| signal == Signal::Ecn);
                // What ABE keeps is of the window (RFC 8511).
                let used = if kept.is_some() { before.cwnd } else { used_at_loss(&before, f, reno) };
                let ssthresh = self.reduced(used, 1.0 - kept.unwrap_or(0.5), cut, f);
                self.reno.set_window(Window { cwnd: before.cwnd.min(ssthresh), ssthresh });
            }
            Signal::Timeout { repeated: false, .. } => {
                let ssthresh = self.reduced(used_at_timeout(&before, f, reno), 0.5, cut, f);
                self.reno.set_window(Window { ssthresh, ..self.window() });
            }
            _ => {}
        }
    }

    fn coupled(&mut self) -> Option<&mut dyn Coupled> {
        Some(self)
    }
}

impl Coupled for Balia {
    fn couple(&mut self, own: usize, subflows: &[Subflow]) {
        self.coupling = coupling(own, subflows);
    }
}

/// `mptcp_balia_recalc_ai`.
fn coupling(own: usize, subflows: &[Subflow]) -> Option<Coupling> {
    let this = subflows.get(own).filter(|flow| flow.cwnd > 0 && has_siblings(own, subflows))?;
    let rate = this.rate()?;
    let largest = subflows.iter().filter_map(Subflow::rate).fold(0.0, f64::max);
    let total = total_rate(subflows);
    // The reciprocal of x / rtt / total^2 * (1 + a) / 2 * (4 + a) / 5, as in the kernel. It is
    // never less than the window, since the total is at least x + max, or x where that is the
    // largest.
    let per_segment = 10.0 * this.cwnd as f64 * (total / (rate + largest)) * (total / (4.0 * rate + largest));
    Some(Coupling { per_segment: per_segment as u64, cut: (largest / rate).min(MAX_CUT) })
}

#[cfg(test)]
mod tests;
