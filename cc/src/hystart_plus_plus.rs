//! HyStart++: once round trips have become longer, slow start continues at a quarter of its pace,
//! and ends after five such rounds or resumes if round trips have become shorter.
//!
//! It measures the least round-trip time of each round, of at least eight samples. A round in which
//! it lies above that of the previous round by an eighth (4 ms to 16 ms) leads to conservative slow
//! start (CSS), with that time as its baseline. A round of CSS that falls below the baseline shows
//! that the queue was not standing, and standard slow start resumes; with the fifth round the
//! threshold becomes the window. Any controller may use it, through
//! [`SlowStart`](crate::slow_start::SlowStart).
//!
//! # Source
//! RFC 9406 section 4.
//!
//! # Departures
//! - Growth counts bytes newly known to have arrived, as in standard slow start here, not bytes
//!   newly acknowledged.
//! - It grows by bytes even where the controller is configured to count ACKs: the RFC defines no
//!   other way.
//! - The initial slow start, the only one it is used for, returns with a congestion signal that is
//!   undone.

use ackclock_units::parameter::Domain;
use ackclock_units::{Span, configuration};

use crate::domains::TIME;
use crate::{Flight, Window};

const RFC: &str = "RFC 9406 s4.3";

configuration! {
/// Parameters of HyStart++, named and with defaults as in RFC 9406 section 4.3.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct HystartPlusPlusConfig {
    /// MIN_RTT_THRESH: round trips are longer if they are so by at least this. Default 4 ms.
    pub min_rtt_thresh: Span = Span::from_millis(4) => (TIME, RFC);
    /// MAX_RTT_THRESH: by so much they always are. Default 16 ms.
    pub max_rtt_thresh: Span = Span::from_millis(16) => (TIME, RFC);
    /// MIN_RTT_DIVISOR: between these bounds, by this part of the last round's least. Default 8.
    pub min_rtt_divisor: u32 = 8 => (Domain::Whole(1, 1000, ""), RFC);
    /// N_RTT_SAMPLE: samples before a round is judged. Default 8.
    pub n_rtt_sample: u32 = 8 => (Domain::Whole(1, 1 << 20, "samples"), RFC);
    /// CSS_GROWTH_DIVISOR: conservative slow start grows by this part of standard slow start.
    /// Default 4.
    pub css_growth_divisor: u32 = 4 => (Domain::Whole(1, 1000, ""), RFC);
    /// CSS_ROUNDS: rounds of conservative slow start before congestion avoidance. Default 5.
    pub css_rounds: u32 = 5 => (Domain::Whole(1, 1000, "round trips"), RFC);
    /// L: an ACK counts for at most this many segments, unless the sender paces; 0 is no limit.
    /// Default 8.
    pub l: u32 = 8 => (Domain::Whole(0, 1000, "segments"), RFC);
}
}

/// The observer of one connection's initial slow start.
#[derive(Clone, Debug)]
pub(crate) struct HystartPlusPlus {
    config: HystartPlusPlusConfig,
    /// `windowEnd`: the round is over once this is acknowledged.
    window_end: u64,
    /// `lastRoundMinRTT`; `None` is infinity.
    last_round: Option<Span>,
    /// `currentRoundMinRTT`.
    current_round: Option<Span>,
    /// `rttSampleCount`.
    samples: u32,
    css: Option<Css>,
}

/// Conservative slow start.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
struct Css {
    /// `cssBaselineMinRtt`.
    baseline: Span,
    /// Rounds that are over, the one in which it began included.
    rounds: u32,
}

impl HystartPlusPlus {
    pub(crate) fn new(config: HystartPlusPlusConfig) -> HystartPlusPlus {
        HystartPlusPlus { config, window_end: 0, last_round: None, current_round: None, samples: 0, css: None }
    }

    /// Forgets all rounds and begins one.
    pub(crate) fn restart(&mut self, f: &Flight) {
        *self = HystartPlusPlus { window_end: f.snd_nxt, ..HystartPlusPlus::new(self.config) };
    }

    /// An ACK of slow start. Returns whether slow start is over.
    pub(crate) fn observe(&mut self, window: &Window, f: &Flight, rtt: Option<Span>) -> bool {
        if window.ssthresh != Window::INFINITE {
            // Section 4.3: the threshold that was found ends every later slow start in time.
            return false;
        }
        if let Some(rtt) = rtt {
            let current = self.current_round.map_or(rtt, |least| least.min(rtt));
            self.current_round = Some(current);
            self.samples = self.samples.saturating_add(1);
            self.judge(current);
        }
        // The ACK that ends a round belongs to it: what it measured was sent before the next one
        // began.
        f.snd_una >= self.window_end && self.next_round(f)
    }

    /// Section 4.2: what the samples of the round tell once they are enough.
    fn judge(&mut self, current: Span) {
        if self.samples < self.config.n_rtt_sample {
            return;
        }
        match (self.css, self.last_round) {
            (Some(css), _) if current < css.baseline => self.css = None,
            (None, Some(last)) => {
                let share = last / u64::from(self.config.min_rtt_divisor.max(1));
                let threshold = share.min(self.config.max_rtt_thresh).max(self.config.min_rtt_thresh);
                if current >= last + threshold {
                    self.css = Some(Css { baseline: current, rounds: 0 });
                }
            }
            _ => {}
        }
    }

    /// A round is over. Returns whether slow start is, too.
    fn next_round(&mut self, f: &Flight) -> bool {
        self.window_end = f.snd_nxt;
        self.last_round = self.current_round.take();
        self.samples = 0;
        let Some(css) = &mut self.css else { return false };
        css.rounds += 1;
        let over = css.rounds >= self.config.css_rounds;
        if over {
            self.css = None;
        }
        over
    }

    /// Grows the window, unless this is not the initial slow start: returns whether it did.
    pub(crate) fn grow(&self, window: &mut Window, f: &Flight, acked: u64) -> bool {
        if window.ssthresh != Window::INFINITE {
            return false;
        }
        let most = match self.config.l {
            l if l > 0 && !f.paced => u64::from(l).saturating_mul(f.segment()),
            _ => u64::MAX,
        };
        let divisor = if self.css.is_some() { self.config.css_growth_divisor.max(1) } else { 1 };
        window.grow(acked.min(most) / u64::from(divisor));
        true
    }
}

#[cfg(test)]
mod tests;
