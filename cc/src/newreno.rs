//! NewReno: the window doubles per round trip in slow start, grows by one segment per round trip in
//! congestion avoidance and halves on loss or ECN.
//!
//! It measures only acknowledged bytes (or ACKs). Its reactions are free functions in
//! [`reactions`](crate::reactions), which other algorithms reuse by name. [`SlowStart`] is slow
//! start as a choice, with the rules for leaving it early.
//!
//! # Source
//! RFC 5681 sections 3.1 and 4.1; RFC 8511; RFC 6582 section 3.2; RFC 3465 (appropriate byte
//! counting); RFC 3168 section 6.1.2. Behaviour of stacks, chosen by the configuration: FreeBSD
//! `sys/netinet/cc/cc_newreno.c` of 9.3, Linux `net/ipv4/tcp_cong.c` of 3.9 and 6.1;
//! `newreno_cc_cong_signal` and `newreno_cc_after_idle` in FreeBSD `sys/netinet/cc/cc.c` of 14.
//!
//! # Departures
//! - The threshold is half of the window, not of the bytes in flight (RFC 5681 equation 4), unless
//!   `halve_flight` or `timeout_flight` says otherwise, as in the stacks. This is safe because an
//!   unused window does not grow.
//! - The data in flight at a timeout is everything outstanding. FreeBSD's `tcp_compute_pipe` knows
//!   no SACK blocks then, since `tcp_timer_rexmt` forgets them first; development versions after 14
//!   keep them at the first timeout. That the peer's window bounds it as well (`snd_wnd`) needs no
//!   rule: nothing beyond that window was sent.
//! - The threshold is rounded down to whole segments, as in both stacks.
//! - A timeout that repeats keeps the threshold (RFC 5681 section 3.1); FreeBSD 9.2 sets it to two
//!   segments then.
//! - Counting ACKs follows Linux 3.9, one segment once as many ACKs as the window has segments were
//!   counted; FreeBSD without ABC adds MSS * MSS / cwnd bytes per ACK (RFC 5681 equation 3), which
//!   gives the same result to within a segment.
//! - After an idle time Linux halves the window once per RTO that has passed, down to the initial
//!   window; here, as in RFC 5681 and FreeBSD, it falls to the initial window at once.

use crate::reactions::{
    NewRenoConfig, avoid, established, halved, halved_by_timeout, idled, put_back, recovered, reduce, resume,
    slow_start_applies, timed_out, whole_segments,
};
use crate::slow_start::SlowStart;
use crate::{Ack, Arrival, CongestionControl, Flight, Needs, Signal, Verdict, Window};

/// NewReno (RFC 5681, RFC 6582).
#[derive(Clone, Debug)]
pub struct NewReno {
    pub(crate) config: NewRenoConfig,
    state: State,
    /// The state before the last loss or timeout, until it is put back or an ECN echo confirms the
    /// congestion.
    saved: Option<State>,
    slow_start: SlowStart,
}

#[derive(Clone, Debug)]
struct State {
    window: Window,
    /// Bytes acknowledged in congestion avoidance that have not yet become growth.
    credit: u64,
    /// Between a `Loss` or `Ecn` and the end of its recovery.
    reducing: bool,
}

impl NewReno {
    /// A controller of a connection that is not established yet.
    pub fn new(config: NewRenoConfig) -> NewReno {
        let window = Window { cwnd: 0, ssthresh: Window::INFINITE };
        let state = State { window, credit: 0, reducing: false };
        NewReno { config, state, saved: None, slow_start: SlowStart::new(config.slow_start) }
    }

    /// An algorithm that leaves the rest to NewReno sets its window.
    pub fn set_window(&mut self, window: Window) {
        self.state.window = window;
    }

    /// For an algorithm with a congestion avoidance of its own: the part of
    /// [`CongestionControl::on_ack`] before it. Returns the bytes of the ACK that are left.
    pub(crate) fn slow_start(&mut self, f: &Flight, ack: &Ack) -> u64 {
        slow_started(&mut self.state.window, &mut self.slow_start, f, ack, &self.config)
    }

    /// Congestion avoidance in which a segment is earned by at least `least` bytes acknowledged,
    /// and by a window of them if that is more.
    pub(crate) fn avoid(&mut self, least: u64, f: &Flight, acked: u64) {
        self.avoid_by(self.state.window.cwnd.max(least), f, acked);
    }

    /// Congestion avoidance in which a segment is earned by `per_segment` bytes acknowledged.
    pub(crate) fn avoid_by(&mut self, per_segment: u64, f: &Flight, acked: u64) {
        let State { window, credit, .. } = &mut self.state;
        avoid(window, credit, per_segment, f, acked, &self.config);
    }
}

/// The two flags of FreeBSD, for algorithms that back off by themselves.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Recovery {
    None,
    /// The window came down without a loss; what was in flight then is not all acknowledged.
    Congestion,
    Fast,
}

impl Recovery {
    /// Returns `true` if an ACK belongs to the repair of a loss while the window was coming down
    /// already: no further decrease, and fast recovery from here on.
    pub(crate) fn turns_fast(self, window: &mut Window, f: &Flight, arrival: &Arrival) -> bool {
        let turns = arrival.in_recovery && !f.after_timeout && self == Recovery::Congestion;
        if turns {
            window.ssthresh = window.cwnd.max(2 * f.segment());
        }
        turns
    }
}

impl CongestionControl for NewReno {
    fn name(&self) -> &'static str {
        "newreno"
    }

    fn window(&self) -> Window {
        self.state.window
    }

    fn needs(&self) -> Needs {
        Needs { reno_halving: true, ..Needs::default() }
    }

    fn on_established(&mut self, f: &Flight) {
        *self = NewReno::new(self.config);
        self.state.window = established(f);
        self.slow_start.restart(f);
    }

    fn take_over(&mut self, window: Window) {
        self.state.window = window;
    }

    fn on_ack(&mut self, f: &Flight, ack: &Ack) -> Verdict {
        let State { window, credit, .. } = &mut self.state;
        acknowledged(window, credit, &mut self.slow_start, f, ack, &self.config);
        Verdict::Continue
    }

    fn on_signal(&mut self, f: &Flight, signal: Signal) {
        match signal {
            Signal::Loss | Signal::Ecn => {
                self.saved = (signal == Signal::Loss).then(|| self.state.clone());
                let ssthresh = match self.config.beta_ecn {
                    // RFC 8511 section 3.
                    Some(beta) if signal == Signal::Ecn => {
                        whole_segments((self.state.window.cwnd as f64 * beta) as u64, f)
                    }
                    _ => halved(&self.state.window, f, &self.config),
                };
                reduce(&mut self.state.window, ssthresh);
                self.state.credit = 0;
                self.state.reducing = true;
            }
            Signal::Timeout { repeated, kept } => {
                if !repeated || self.saved.is_none() {
                    self.saved = Some(State { reducing: false, ..self.state.clone() });
                }
                let ssthresh = halved_by_timeout(&self.state.window, f, &self.config);
                timed_out(&mut self.state.window, (!repeated).then_some(ssthresh), kept, f);
                self.state.credit = 0;
                self.state.reducing = false;
                self.slow_start.restart(f);
            }
            Signal::Spurious => {
                if let Some(saved) = self.saved.take() {
                    put_back(&mut self.state.window, &saved.window);
                    self.state.credit = saved.credit;
                    self.state.reducing = false;
                }
            }
            Signal::Resume { cwnd, ssthresh } => resume(&mut self.state.window, cwnd, ssthresh, f),
            Signal::RecoveryEnd => {
                if std::mem::take(&mut self.state.reducing) {
                    recovered(&mut self.state.window, f, &self.config);
                }
            }
            Signal::CountedAcks(acks) => {
                if !self.config.abc {
                    self.state.credit = u64::from(acks) * f.segment();
                }
            }
            Signal::IdleRestart => {
                idled(&mut self.state.window, f, &self.config);
                if !self.config.idle_keeps_credit {
                    self.state.credit = 0;
                }
            }
        }
    }
}

/// Data was acknowledged outside fast recovery: slow start, then congestion avoidance. `credit` as
/// in [`avoid`].
pub(crate) fn acknowledged(
    window: &mut Window,
    credit: &mut u64,
    slow_start: &mut SlowStart,
    f: &Flight,
    ack: &Ack,
    config: &NewRenoConfig,
) {
    let acked = slow_started(window, slow_start, f, ack, config);
    if acked > 0 {
        // One segment per window acknowledged: one per round trip.
        let per_segment = window.cwnd;
        avoid(window, credit, per_segment, f, acked, config);
    }
}

/// Slow start alone. Returns the bytes of the ACK that are left for congestion avoidance: none
/// while something else limits the sender.
#[inline]
fn slow_started(window: &mut Window, slow_start: &mut SlowStart, f: &Flight, ack: &Ack, config: &NewRenoConfig) -> u64 {
    slow_start.observe(window, f, ack.rtt, f.min_rtt, config);
    if !f.cwnd_limited {
        return 0;
    }
    if slow_start_applies(window, config) {
        return slow_start.grow(window, f, ack.delivered, config);
    }
    ack.delivered
}

#[cfg(test)]
mod tests;
