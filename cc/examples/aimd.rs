//! A complete congestion controller: additive increase, multiplicative decrease with a configurable
//! factor.
//!
//!     cargo run -p ackclock-cc --example aimd

use ackclock_cc::{Ack, CongestionControl, Flight, Signal, Verdict, Window};
use ackclock_units::Time;

/// Adds one segment per window acknowledged; multiplies the window by `beta` on congestion.
#[derive(Debug)]
struct Aimd {
    window: Window,
    beta: f64,
    /// Bytes acknowledged that have not grown the window yet.
    credit: u64,
    /// The window before the last loss or timeout, in case that turns out to be spurious.
    saved: Option<Window>,
}

impl Aimd {
    fn back_off(&mut self, f: &Flight) {
        let reduced = (self.window.cwnd as f64 * self.beta) as u64;
        let reduced = reduced.max(2 * f.segment());
        self.window = Window { cwnd: reduced.min(self.window.cwnd), ssthresh: reduced };
    }
}

impl CongestionControl for Aimd {
    fn name(&self) -> &'static str {
        "aimd"
    }

    fn window(&self) -> Window {
        self.window
    }

    fn on_established(&mut self, f: &Flight) {
        let cwnd = f.initial_window.clamp(f.segment(), Window::MAX);
        *self = Aimd { window: Window { cwnd, ssthresh: Window::INFINITE }, credit: 0, saved: None, ..*self };
    }

    fn take_over(&mut self, window: Window) {
        *self = Aimd { window, credit: 0, saved: None, ..*self };
    }

    fn on_ack(&mut self, f: &Flight, ack: &Ack) -> Verdict {
        // A window that does not limit the sender must not grow (RFC 7661).
        if f.cwnd_limited {
            self.credit = self.credit.saturating_add(ack.delivered);
            // In slow start every byte counts at once, later a whole window of bytes makes a segment.
            let price = if self.window.in_slow_start() { f.segment() } else { self.window.cwnd };
            let segments = self.credit / price;
            self.credit %= price;
            let grown = self.window.cwnd.saturating_add(segments.saturating_mul(f.segment()));
            self.window.cwnd = grown.min(Window::MAX);
        }
        Verdict::Continue
    }

    fn on_signal(&mut self, f: &Flight, signal: Signal) {
        match signal {
            Signal::Loss | Signal::Ecn => {
                self.saved = (signal == Signal::Loss).then_some(self.window);
                self.back_off(f);
            }
            Signal::Timeout { repeated, kept } => {
                // The threshold stays when the same data times out again (RFC 5681 section 3.1).
                if !repeated {
                    self.saved = Some(self.window);
                    self.back_off(f);
                }
                self.window.cwnd = kept.saturating_add(f.segment()).min(Window::MAX);
            }
            Signal::Spurious => {
                if let Some(saved) = self.saved.take() {
                    self.window.cwnd = self.window.cwnd.max(saved.cwnd);
                    self.window.ssthresh = self.window.ssthresh.max(saved.ssthresh);
                }
            }
            Signal::Resume { cwnd, ssthresh } => {
                // No burst now, but slow start back to where the window was (RFC 4653 section 3.2).
                self.window.cwnd = self.window.cwnd.min(cwnd.max(2 * f.segment()));
                self.window.ssthresh = self.window.ssthresh.max(ssthresh);
            }
            Signal::IdleRestart => {
                self.window.cwnd = self.window.cwnd.min(f.initial_window.max(2 * f.segment()));
            }
            Signal::RecoveryEnd | Signal::CountedAcks(_) => {}
        }
    }
}

fn main() {
    let start = Window { cwnd: 0, ssthresh: Window::INFINITE };
    let mut cc = Aimd { window: start, beta: 0.7, credit: 0, saved: None };
    cc.take_over(Window { cwnd: 100_000, ssthresh: 100_000 });
    let f = Flight {
        now: Time::ZERO,
        mss: 1000,
        in_flight: 100_000,
        cwnd_limited: true,
        snd_una: 0,
        snd_nxt: 100_000,
        srtt: None,
        latest_rtt: None,
        min_rtt: None,
        after_timeout: false,
        initial_window: 10_000,
        paced: false,
        app_limited: false,
    };
    cc.on_signal(&f, Signal::Loss);
    assert_eq!(cc.window().cwnd, 70_000);
    let _ = cc.on_ack(&f, &Ack { acked: 70_000, delivered: 70_000, ..Ack::default() });
    assert_eq!(cc.window().cwnd, 71_000);
}
