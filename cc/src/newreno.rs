//! NewReno: the window doubles per round trip in slow start, grows by one segment per round trip in
//! congestion avoidance and halves on loss or ECN.
//!
//! It measures only acknowledged bytes (or ACKs). Its reactions are free functions, which other
//! algorithms reuse by name: [`slow_start`], [`avoid`], [`halved`], [`timed_out`], [`recovered`],
//! [`idled`]. [`SlowStart`] is slow start as a choice, with the rules for leaving it early.
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
//! - What is in flight at a timeout is all that is outstanding. FreeBSD's `tcp_compute_pipe` knows
//!   of no SACK block then, since `tcp_timer_rexmt` forgets them first; development versions after
//!   14 keep them at the first timeout. That the peer's window bounds it as well (`snd_wnd`) needs
//!   no rule: nothing beyond that window was sent.
//! - The threshold is rounded down to whole segments, as in both stacks.
//! - A timeout that repeats keeps the threshold (RFC 5681 section 3.1); FreeBSD 9.2 sets it to two
//!   segments then.
//! - Counting ACKs follows Linux 3.9, one segment once as many ACKs as the window has segments were
//!   counted; FreeBSD without ABC adds MSS * MSS / cwnd bytes per ACK (RFC 5681 equation 3), which
//!   comes to the same within a segment.
//! - After an idle time Linux halves the window once per RTO that has passed, down to the initial
//!   window; here, as in RFC 5681 and FreeBSD, it falls to the initial window at once.

use crate::controllers::{Algorithm, Stack};
use crate::slow_start::SlowStart;
use crate::{Ack, Arrival, CongestionControl, Flight, Signal, SlowStartRules, Verdict, Window};
use ackclock_units::parameter::{Configurable, Domain, Visitor};

/// Parameters of NewReno, and of the parts that other algorithms share with it.
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct NewRenoConfig {
    /// Appropriate byte counting (RFC 3465): the window grows by bytes acknowledged. Without it, by
    /// ACKs (RFC 5681 equations 2 and 3 counted per ACK). Default true.
    pub abc: bool,
    /// L of RFC 3465: in slow start an ACK adds at most this many segments, and one after a
    /// timeout; 0 is no limit at any time (Linux). Default 2 (RFC 3465 section 2.3).
    pub abc_l_var: u32,
    /// After recovery, the window is at most what is in flight plus one segment (RFC 6582 section
    /// 3.2 step 3, first option), instead of the slow start threshold. Default true.
    pub limit_burst: bool,
    /// Slow start still acts when the window equals the threshold and may carry it past (FreeBSD;
    /// Linux before 3.13). Otherwise it stops exactly there, and what is left of the ACK counts
    /// towards congestion avoidance. Default false.
    pub past_ssthresh: bool,
    /// The threshold after a congestion signal is half of the bytes in flight (RFC 5681 equation
    /// 4), instead of half of the window as FreeBSD and Linux have it. Default false.
    pub halve_flight: bool,
    /// The threshold after a timeout is half of the bytes in flight, also without `halve_flight`
    /// (FreeBSD 14, `min(snd_wnd, pipe)`). Default false.
    pub timeout_flight: bool,
    /// On a restart after idle, raise the threshold to three quarters of the old window (RFC 2861;
    /// Linux, FreeBSD 14), so that slow start leads back to it. Default false (RFC 5681 section 4.1
    /// leaves it; FreeBSD 9).
    pub remember_idle: bool,
    /// The factor by which the window is reduced for an ECN echo, where that is less than for a
    /// loss (ABE, RFC 8511: 0.8 for Reno, 0.85 for CUBIC). Default none: as for a loss.
    pub beta_ecn: Option<f64>,
    /// How slow start ends without congestion: only at the threshold, or also when round trips have
    /// become longer (HyStart, HyStart++). Default at the threshold.
    pub slow_start: SlowStartRules,
}

impl Default for NewRenoConfig {
    fn default() -> NewRenoConfig {
        NewRenoConfig {
            abc: true,
            abc_l_var: 2,
            limit_burst: true,
            past_ssthresh: false,
            halve_flight: false,
            timeout_flight: false,
            remember_idle: false,
            beta_ecn: None,
            slow_start: SlowStartRules::Standard,
        }
    }
}

impl Configurable for NewRenoConfig {
    fn parameters(&mut self, v: &mut impl Visitor) {
        v.parameter("abc", Domain::Flag, "RFC 3465; FreeBSD `rfc3465`", &mut self.abc);
        v.parameter("abc_l_var", Domain::Whole(0, 1000, "segments"), "RFC 3465 s2.3", &mut self.abc_l_var);
        v.parameter("limit_burst", Domain::Flag, "RFC 6582 s3.2", &mut self.limit_burst);
        v.parameter("past_ssthresh", Domain::Flag, "FreeBSD; Linux before 3.13", &mut self.past_ssthresh);
        v.parameter("halve_flight", Domain::Flag, "RFC 5681 equation 4", &mut self.halve_flight);
        v.parameter("timeout_flight", Domain::Flag, "FreeBSD 14 `newreno_cc_cong_signal`", &mut self.timeout_flight);
        v.parameter("remember_idle", Domain::Flag, "RFC 2861", &mut self.remember_idle);
        let factor = Domain::OrOff(&Domain::Number(0.1, 0.99, ""));
        v.parameter("beta_ecn", factor, "RFC 8511", &mut self.beta_ecn);
    }
}

impl Algorithm for NewRenoConfig {
    fn on(host: &Stack) -> NewRenoConfig {
        host.newreno
    }

    fn slow_start_mut(&mut self) -> Option<&mut SlowStartRules> {
        Some(&mut self.slow_start)
    }
}

/// NewReno (RFC 5681, RFC 6582).
#[derive(Clone, Debug)]
pub struct NewReno {
    config: NewRenoConfig,
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
    /// Whether an ACK belongs to the repair of a loss while the window was coming down already: no
    /// further decrease, and fast recovery from here on.
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
        }
    }

    fn on_recovery_end(&mut self, f: &Flight) {
        if std::mem::take(&mut self.state.reducing) {
            recovered(&mut self.state.window, f, &self.config);
        }
    }

    fn on_idle_restart(&mut self, f: &Flight) {
        idled(&mut self.state.window, f, &self.config);
        self.state.credit = 0;
    }
}

/// Reno as other algorithms of FreeBSD reuse it.
pub(crate) fn freebsd() -> NewRenoConfig {
    NewRenoConfig { past_ssthresh: true, ..NewRenoConfig::default() }
}

/// The window of a new connection.
pub(crate) fn established(f: &Flight) -> Window {
    Window { cwnd: f.initial_window.clamp(f.segment(), Window::MAX), ssthresh: Window::INFINITE }
}

/// Whether the next ACK grows the window by slow start. RFC 5681 section 3.1 leaves equality open.
pub(crate) fn slow_start_applies(window: &Window, config: &NewRenoConfig) -> bool {
    if config.past_ssthresh { window.cwnd <= window.ssthresh } else { window.cwnd < window.ssthresh }
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
    slow_start.observe(window, f, ack, f.min_rtt, config);
    if !f.cwnd_limited {
        return;
    }
    let mut acked = ack.delivered;
    if slow_start_applies(window, config) {
        acked = slow_start.grow(window, f, acked, config);
    }
    if acked > 0 {
        // One segment per window acknowledged: one per round trip.
        let per_segment = window.cwnd;
        avoid(window, credit, per_segment, f, acked, config);
    }
}

/// Standard slow start: the window grows by what was acknowledged. Returns the bytes of the ACK
/// that lie beyond the threshold, for congestion avoidance.
pub(crate) fn slow_start(window: &mut Window, f: &Flight, acked: u64, config: &NewRenoConfig) -> u64 {
    let mss = f.segment();
    let step = match (config.abc, config.abc_l_var) {
        (false, _) => mss,
        (true, 0) => acked,
        // RFC 3465 section 2.3: after a timeout an ACK may cover data that left the network long
        // before.
        (true, _) if f.after_timeout => acked.min(mss),
        (true, l) => acked.min(u64::from(l) * mss),
    };
    let room = window.ssthresh.saturating_sub(window.cwnd);
    if config.past_ssthresh || step <= room {
        grow(window, step);
        return 0;
    }
    grow(window, room);
    if config.abc { acked - room } else { 0 }
}

/// Congestion avoidance: one segment for every `per_segment` bytes acknowledged, or ACKs' worth of
/// segments. `credit` holds what has not become a whole segment yet.
pub(crate) fn avoid(
    window: &mut Window,
    credit: &mut u64,
    per_segment: u64,
    f: &Flight,
    acked: u64,
    config: &NewRenoConfig,
) {
    let mss = f.segment();
    let per_segment = per_segment.max(1);
    if !config.abc {
        // Linux 3.9 compares before it counts, so that growth takes one ACK more than `per_segment`
        // has segments.
        if *credit >= per_segment {
            *credit = 0;
            grow(window, mss);
        } else {
            *credit = credit.saturating_add(mss);
        }
        return;
    }
    // Credit from when a segment cost more becomes one segment, not a burst.
    if *credit >= per_segment {
        *credit = 0;
        grow(window, mss);
    }
    let due = credit.saturating_add(acked);
    *credit = due % per_segment;
    grow(window, (due / per_segment).saturating_mul(mss));
}

/// Half of the window (or flight), in whole segments, at least two (RFC 5681 equation 4).
pub(crate) fn halved(window: &Window, f: &Flight, config: &NewRenoConfig) -> u64 {
    let used = if config.halve_flight { f.in_flight.min(window.cwnd) } else { window.cwnd };
    whole_segments(used / 2, f)
}

/// The same after a timeout.
pub(crate) fn halved_by_timeout(window: &Window, f: &Flight, config: &NewRenoConfig) -> u64 {
    whole_segments(used_at_timeout(window, f, config) / 2, f)
}

/// What a timeout reduces: the window, or what was in flight.
pub(crate) fn used_at_timeout(window: &Window, f: &Flight, config: &NewRenoConfig) -> u64 {
    match (config.timeout_flight, config.halve_flight) {
        (true, _) => f.in_flight.min(Window::MAX),
        (false, true) => f.in_flight.min(window.cwnd),
        (false, false) => window.cwnd,
    }
}

/// `bytes` rounded down to whole segments, at least two.
pub(crate) fn whole_segments(bytes: u64, f: &Flight) -> u64 {
    (bytes / f.segment()).max(2) * f.segment()
}

/// The window comes down to a new threshold; from the one segment after a timeout it does not come
/// up to it.
pub(crate) fn reduce(window: &mut Window, ssthresh: u64) {
    window.ssthresh = ssthresh;
    window.cwnd = window.cwnd.min(ssthresh);
}

/// A timeout: the loss window is one segment, in addition to `kept` bytes in flight; the threshold
/// changes with the first timeout only (RFC 5681 section 3.1).
pub(crate) fn timed_out(window: &mut Window, ssthresh: Option<u64>, kept: u64, f: &Flight) {
    window.ssthresh = ssthresh.unwrap_or(window.ssthresh);
    window.cwnd = kept.saturating_add(f.segment()).min(Window::MAX);
}

/// [`Signal::Resume`].
pub(crate) fn resume(window: &mut Window, cwnd: u64, ssthresh: u64, f: &Flight) {
    let cwnd = cwnd.max(2 * f.segment());
    *window = Window { cwnd: window.cwnd.min(cwnd), ssthresh: window.ssthresh.max(ssthresh) };
}

/// A spurious reduction is undone: the window is at least what it was.
pub(crate) fn put_back(window: &mut Window, saved: &Window) {
    window.cwnd = window.cwnd.max(saved.cwnd);
    window.ssthresh = window.ssthresh.max(saved.ssthresh);
}

/// Fast recovery is over: the window is the threshold, or less if too little is in flight for that
/// not to be a burst.
pub(crate) fn recovered(window: &mut Window, f: &Flight, config: &NewRenoConfig) {
    let mss = f.segment();
    let burst_free = f.in_flight.max(mss).saturating_add(mss);
    window.cwnd = if config.limit_burst { window.ssthresh.min(burst_free) } else { window.ssthresh }.min(Window::MAX);
}

/// Sending resumes after idle time: the restart window is the initial window (RFC 5681 section
/// 4.1).
pub(crate) fn idled(window: &mut Window, f: &Flight, config: &NewRenoConfig) {
    if config.remember_idle {
        window.ssthresh = window.ssthresh.max(window.cwnd - window.cwnd / 4);
    }
    window.cwnd = window.cwnd.min(established(f).cwnd);
}

/// The only way in which a window grows.
pub(crate) fn grow(window: &mut Window, bytes: u64) {
    window.cwnd = window.cwnd.saturating_add(bytes).min(Window::MAX);
}

#[cfg(test)]
mod tests;
