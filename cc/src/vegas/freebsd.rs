//! Vegas as FreeBSD has it: the window is held at a size at which a few of its segments wait in the
//! queue.
//!
//! It measures enhanced round-trip times (`ertt.rs`), once per round trip the marked segment's, and
//! how many bytes were sent in it. At the shortest round trip the window would be sent at a rate of
//! `cwnd / min`; the actual rate is `bytes / rtt`. The difference times the shortest round trip is
//! the number of bytes that wait. With fewer than `alpha` segments the window grows by one, with
//! more than `beta` it shrinks by one. In slow start it grows as NewReno's in every other round
//! trip, so that measurements are taken of a window that does not change.
//!
//! # Source
//! FreeBSD `sys/netinet/cc/cc_vegas.c` of 9.1 and 15; `cc_newreno.c` for slow start, loss, ECN,
//! timeouts and idle time, of the release of the host's NewReno. Brakmo and Peterson, "TCP Vegas:
//! end to end congestion avoidance on a global Internet" (IEEE JSAC 13(8), 1995), without its rules
//! for duplicate ACKs, as there.
//!
//! # Departures
//! - The window does not grow while something else limits the sender (RFC 7661), nor during fast
//!   recovery.
//! - A measurement by a duplicate ACK takes effect with the next ACK that acknowledges data.
//! - A window of one segment after a timeout does not shrink to two.
//! - Kept as in the reference: rates are whole bytes per tick, so that their difference times the
//!   round trip is rounded to as many bytes as that has ticks. The marked segment's round trip is
//!   that of the last skipped one (`ertt.rs`).

use ackclock_units::parameter::Domain;
use ackclock_units::{Span, configuration};

use crate::domains::{MILLION, POSITIVE, lowered};
use crate::ertt::Ertt;
use crate::{
    Ack, Arrival, CongestionControl, Flight, Inspection, Needs, NewReno, NewRenoConfig, Sent, Signal, Verdict, Window,
};

const SYSCTL: &str = "FreeBSD `cc.vegas`";

configuration! { self:
/// Parameters of Vegas, by the names of the sysctls below `net.inet.tcp.cc.vegas`.
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct VegasConfig {
    /// Segments in the queue above which the window shrinks. Default 3.
    pub beta: u32 = 3 => (Domain::Whole(1, MILLION, "segments"), SYSCTL);
    /// Segments in the queue below which it grows. Default 1.
    pub alpha: u32 = 1 => (Domain::Whole(1, lowered(&mut self.alpha, self.beta), "segments"), SYSCTL);
    /// A tick. Default 1 ms (`hz` 1000).
    pub rtt_unit: Span = Span::from_millis(1) => (POSITIVE, "FreeBSD `hz`");
    /// NewReno's parameters.
    pub reno: NewRenoConfig = NewRenoConfig::default() => (..);
}
}

/// Vegas (FreeBSD).
#[derive(Clone, Debug)]
pub struct Vegas {
    config: VegasConfig,
    reno: NewReno,
    ertt: Ertt,
    /// `slow_start_toggle`: NewReno grows the window.
    growing: bool,
    /// The value of `growing` before the last loss or timeout.
    saved: bool,
    recovering: bool,
    step: Step,
}

/// The step that the last measurement calls for.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Step {
    Stay,
    Grow,
    Shrink,
}

impl Vegas {
    /// A controller of a connection that is not established yet.
    pub fn new(config: VegasConfig) -> Vegas {
        Vegas {
            config,
            reno: NewReno::new(config.reno),
            ertt: Ertt::new(config.rtt_unit),
            growing: true,
            saved: true,
            recovering: false,
            step: Step::Stay,
        }
    }

    /// The once-per-round-trip part of `vegas_ack_received`.
    fn measure(&mut self, f: &Flight) {
        if !self.ertt.take_measurement() || self.ertt.min == 0 || self.ertt.marked == 0 {
            return;
        }
        let Ertt { min, marked, bytes_in_marked, marked_cwnd, .. } = self.ertt;
        let rate = |bytes: i64, ticks: i64| bytes / ticks;
        let spare = rate(marked_cwnd.min(Window::MAX) as i64, min) - rate(bytes_in_marked, marked);
        let waiting = i128::from(spare) * i128::from(min) / i128::from(f.segment());
        let window = self.window();
        if waiting < i128::from(self.config.alpha) {
            if window.cwnd <= window.ssthresh {
                self.growing = !self.growing;
            } else {
                self.growing = false;
                self.step = Step::Grow;
            }
        } else if waiting > i128::from(self.config.beta) {
            self.growing = false;
            // CC_VEGAS_RATE
            self.step = if self.recovering { Step::Stay } else { Step::Shrink };
        }
    }
}

impl CongestionControl for Vegas {
    fn name(&self) -> &'static str {
        "vegas"
    }

    fn window(&self) -> Window {
        self.reno.window()
    }

    fn needs(&self) -> Needs {
        Needs { arrivals: true, departures: true, ..self.reno.needs() }
    }

    fn on_established(&mut self, f: &Flight) {
        *self = Vegas::new(self.config);
        self.reno.on_established(f);
    }

    fn take_over(&mut self, window: Window) {
        self.reno.take_over(window);
    }

    fn on_ack(&mut self, f: &Flight, ack: &Ack) -> Verdict {
        let segment = f.segment();
        let mut window = self.window();
        let before = window.cwnd;
        match std::mem::replace(&mut self.step, Step::Stay) {
            Step::Grow if f.cwnd_limited => {
                window.grow(segment);
                self.reno.set_window(window);
            }
            Step::Shrink => {
                window.cwnd = before.min(before.saturating_sub(segment).max(2 * segment));
                if window.cwnd < window.ssthresh {
                    window.ssthresh = window.cwnd.max(2 * segment);
                }
                self.reno.set_window(window);
                if window.cwnd < before {
                    return Verdict::Trimmed;
                }
            }
            Step::Stay | Step::Grow => {}
        }
        // Where Vegas holds the window NewReno's slow start still observes.
        let cwnd_limited = f.cwnd_limited && self.growing;
        self.reno.on_ack(&Flight { cwnd_limited, ..*f }, ack)
    }

    fn on_signal(&mut self, f: &Flight, signal: Signal) {
        let before = self.window().cwnd;
        if let Signal::Loss | Signal::Timeout { .. } = signal {
            self.saved = self.growing;
        }
        self.reno.on_signal(f, signal);
        match signal {
            Signal::Loss | Signal::Ecn => {
                self.recovering = true;
                self.growing = before < self.window().ssthresh;
            }
            Signal::Timeout { .. } => {
                self.recovering = false;
                self.ertt.on_timeout();
            }
            Signal::Spurious => {
                self.recovering = false;
                self.growing = self.saved;
            }
            Signal::Resume { .. } => {}
            Signal::RecoveryEnd => {
                self.recovering = false;
                return;
            }
            Signal::CountedAcks(_) | Signal::IdleRestart => return,
        }
        self.step = Step::Stay;
    }

    fn on_arrival(&mut self, f: &Flight, arrival: &Arrival) {
        self.ertt.on_arrival(f, arrival, self.window().cwnd);
        if arrival.acked > 0 || arrival.duplicate {
            self.measure(f);
        }
        if arrival.in_recovery && !f.after_timeout {
            self.step = Step::Stay;
        }
    }

    fn on_sent(&mut self, f: &Flight, sent: &Sent) {
        self.ertt.on_sent(f, sent);
        self.reno.on_sent(f, sent);
    }

    fn inspect(&self) -> Inspection<'_> {
        Inspection { enhanced_rtt: Some(self.ertt.enhanced_rtt()), ..Inspection::default() }
    }
}

#[cfg(test)]
mod tests;
