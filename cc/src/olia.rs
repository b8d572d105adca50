//! OLIA, the Opportunistic Linked Increases Algorithm of Multipath TCP: it balances load better
//! than LIA, and moves windows to the paths that look best.
//!
//! It measures for each subflow the bytes between losses and the smoothed RTT. In congestion
//! avoidance an ACK for `n` bytes adds `(cwnd / rtt^2 / sum(cwnd_i / rtt_i)^2 + a / cwnd) * n *
//! mss`. The first term is the optimal balance, under which only paths with the fewest losses have
//! traffic. The second one keeps it responsive: `a` is above zero where the path looks best but has
//! not the largest window, below zero where the window is the largest meanwhile, and zero
//! elsewhere. Alone it is NewReno.
//!
//! # Source
//! R. Khalili, N. Gast, M. Popovic, J.-Y. Le Boudec: MPTCP is not Pareto-optimal: performance
//! issues and a possible solution, IEEE/ACM ToN 21(5), 2013;
//! draft-khalili-mptcp-congestion-control-05. `net/mptcp/mptcp_olia.c` of the Linux kernel of
//! multipath-tcp.org.
//!
//! # Departures
//! - Floating point in place of integers scaled by 1024, and what is left of a segment when the
//!   window has changed by one is kept; the kernel forgets it.
//! - Growth is per byte acknowledged, as in the draft; the kernel's is per ACK. Hosts that count
//!   ACKs (`abc = false`) do so here.
//! - A window that comes down to its threshold takes the threshold with it. In the kernel slow
//!   start would raise it again at once.
//! - Windows and thresholds are two segments at least. The kernel lets windows come down to one;
//!   the draft has the threshold at one when there are several paths.
//! - A loss that turns out to be spurious is no loss: the bytes before it count again.
//! - The best path has the most bytes between losses by the square of its RTT, as in the paper and
//!   the kernel; the draft squares the bytes, and not the RTT.

use crate::coupled_reno::{CoupledReno, Coupling, Siblings};
use crate::{CongestionControl, Flight, NewReno, Shared, Signal, Subflow, Verdict, Window};

/// OLIA (Khalili et al.).
pub type Olia = CoupledReno<OliaCoupling>;

/// The coupling of OLIA.
#[derive(Clone, Debug, Default)]
pub struct OliaCoupling {
    losses: Losses,
    /// The counts before the last loss, until it is put back or confirmed.
    saved: Option<Losses>,
    /// Segments for each byte acknowledged, perhaps below zero; `None` without siblings.
    growth: Option<f64>,
    /// Bytes by which the window is to change: less than a segment, either way.
    change: f64,
}

/// First bytes of the stream that were not acknowledged.
#[derive(Clone, Copy, Debug, Default)]
struct Losses {
    /// The byte at the loss before the last one (`mptcp_loss1`).
    before: u64,
    /// The byte at the last loss (`mptcp_loss2`).
    last: u64,
    /// The byte now (`mptcp_loss3`).
    now: u64,
}

impl Losses {
    fn between(&self) -> u64 {
        self.last.saturating_sub(self.before)
    }

    fn since(&self) -> u64 {
        self.now.saturating_sub(self.last)
    }
}

impl OliaCoupling {
    /// `mptcp_olia_set_state`: a loss counts if something was acknowledged since the last one.
    fn lost(&mut self, undoable: bool) {
        let before = self.losses;
        let counts = before.since() > 0;
        if counts {
            self.losses = Losses { before: before.last, last: before.now, now: before.now };
        }
        self.saved = (counts && undoable).then_some(before);
    }

    /// The window changes by whole segments.
    fn adjust(&mut self, reno: &mut NewReno, f: &Flight) -> Verdict {
        let segment = f.segment();
        let segments = (self.change / segment as f64).trunc();
        self.change -= segments * segment as f64;
        let mut window = reno.window();
        let before = window.cwnd;
        if segments >= 1.0 {
            window.grow((segments as u64).saturating_mul(segment));
        } else if segments <= -1.0 {
            let less = (-segments as u64).saturating_mul(segment);
            window.cwnd = before.min(before.saturating_sub(less).max(2 * segment));
            window.ssthresh = window.ssthresh.min((window.cwnd - segment).max(2 * segment));
        }
        reno.set_window(window);
        if window.cwnd < before { Verdict::Trimmed } else { Verdict::Continue }
    }
}

impl Coupling for OliaCoupling {
    const NAME: &'static str = "olia";

    fn couple(&mut self, siblings: Option<Siblings<'_>>) {
        self.growth = siblings.and_then(growth);
    }

    fn avoid(&mut self, reno: &mut NewReno, f: &Flight, acked: u64) -> Verdict {
        let Some(growth) = self.growth else {
            reno.avoid(0, f, acked);
            return Verdict::Continue;
        };
        let acked = if reno.config.abc { acked } else { f.segment() };
        self.change += growth * acked as f64 * f.segment() as f64;
        self.adjust(reno, f)
    }

    fn on_progress(&mut self, f: &Flight, established: bool) {
        self.losses.now = f.snd_una;
        if established {
            (self.losses.before, self.losses.last) = (f.snd_una, f.snd_una);
        }
    }

    fn on_signal(&mut self, _reno: &mut NewReno, _before: Window, _f: &Flight, signal: Signal) {
        match signal {
            Signal::Loss | Signal::Timeout { repeated: false, .. } => self.lost(true),
            Signal::Ecn => self.lost(false),
            Signal::Spurious => {
                if let Some(saved) = self.saved.take() {
                    self.losses = Losses { now: self.losses.now, ..saved };
                }
            }
            _ => {}
        }
    }

    fn shared(&self) -> Shared {
        Shared { between_losses: self.losses.between(), since_loss: self.losses.since(), ..Shared::default() }
    }
}

/// Segments for each byte acknowledged.
fn growth(Siblings { this, rtt, rate, total, subflows }: Siblings<'_>) -> Option<f64> {
    Some(rate / rtt / (total * total) + alpha(this, subflows)? / this.cwnd as f64)
}

/// `mptcp_get_epsilon`: what moves windows from the largest to the best.
fn alpha(this: &Subflow, subflows: &[Subflow]) -> Option<f64> {
    let best = subflows.iter().filter_map(quality).fold(0.0, f64::max);
    let largest = subflows.iter().filter(|flow| flow.rtt().is_some()).map(segments).max()?;
    let (mut all, mut large, mut collected) = (0u32, 0u32, 0u32);
    for flow in subflows {
        let Some(quality) = quality(flow) else { continue };
        let is_large = segments(flow) == largest;
        all += 1;
        large += u32::from(is_large);
        collected += u32::from(!is_large && quality == best);
    }
    Some(if collected == 0 {
        0.0
    } else if segments(this) == largest {
        -1.0 / f64::from(all * large)
    } else if quality(this)? == best {
        1.0 / f64::from(all * collected)
    } else {
        0.0
    })
}

/// The square of what a TCP with as many bytes between its losses gets, but for a constant.
fn quality(flow: &Subflow) -> Option<f64> {
    let bytes = flow.shared.between_losses.max(flow.shared.since_loss);
    flow.rtt().map(|rtt| bytes as f64 / (rtt * rtt))
}

/// The window in whole segments, as the kernel has it: windows that differ by less are the same.
fn segments(flow: &Subflow) -> u64 {
    flow.cwnd / u64::from(flow.mss.max(1))
}

#[cfg(test)]
mod tests;
