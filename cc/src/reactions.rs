//! Reno's reactions to ACKs, losses, timeouts and idle times, as functions that other controllers
//! reuse by name, with the parameters that these have in common.
//!
//! Sources and departures are those of [`NewReno`](crate::NewReno), which is made of them.

use ackclock_units::configuration;
use ackclock_units::parameter::Domain;

use crate::hystart::HystartConfig;
use crate::hystart_plus_plus::HystartPlusPlusConfig;
use crate::{Flight, Window};

configuration! {
/// Parameters of NewReno, and of the parts that other algorithms share with it.
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct NewRenoConfig {
    /// Appropriate byte counting (RFC 3465): the window grows by bytes acknowledged. Without it, by
    /// ACKs (RFC 5681 equations 2 and 3 counted per ACK). Default true.
    pub abc: bool = true => (Domain::Flag, "RFC 3465; FreeBSD `rfc3465`");
    /// L of RFC 3465: in slow start an ACK adds at most this many segments, and one after a
    /// timeout; 0 is no limit at any time (Linux). Default 2 (RFC 3465 section 2.3).
    pub abc_l_var: u32 = 2 => (Domain::Whole(0, 1000, "segments"), "RFC 3465 s2.3");
    /// After recovery, the window is at most what is in flight plus one segment (RFC 6582 section
    /// 3.2 step 3, first option), instead of the slow start threshold. Default true.
    pub limit_burst: bool = true => (Domain::Flag, "RFC 6582 s3.2");
    /// Slow start still acts when the window equals the threshold and may carry it past (FreeBSD;
    /// Linux before 3.13). Otherwise it stops exactly there, and what is left of the ACK counts
    /// towards congestion avoidance. Default false.
    pub past_ssthresh: bool = false => (Domain::Flag, "FreeBSD; Linux before 3.13");
    /// The threshold after a congestion signal is half of the bytes in flight (RFC 5681 equation
    /// 4), instead of half of the window as FreeBSD and Linux have it. Default false.
    pub halve_flight: bool = false => (Domain::Flag, "RFC 5681 equation 4");
    /// The threshold after a timeout is half of the bytes in flight, also without `halve_flight`
    /// (FreeBSD 14, `min(snd_wnd, pipe)`). Default false.
    pub timeout_flight: bool = false => (Domain::Flag, "FreeBSD 14 `newreno_cc_cong_signal`");
    /// On a restart after idle, raise the threshold to three quarters of the old window (RFC 2861;
    /// Linux, FreeBSD 14), so that slow start leads back to it. Default false (RFC 5681 section 4.1
    /// leaves it; FreeBSD 9).
    pub remember_idle: bool = false => (Domain::Flag, "RFC 2861");
    /// What was counted towards the next segment of congestion avoidance outlasts an idle time
    /// (`tcp_cwnd_restart` leaves `snd_cwnd_cnt`). Default false.
    pub idle_keeps_credit: bool = false => (Domain::Flag, "Linux `tcp_cwnd_restart`");
    /// The factor by which the window is reduced for an ECN echo, where that is less than for a
    /// loss (ABE, RFC 8511: 0.8 for Reno, 0.85 for CUBIC). Default none: as for a loss.
    pub beta_ecn: Option<f64> = None => (Domain::OrOff(&Domain::Number(0.1, 0.99, "")), "RFC 8511");
    /// The end of slow start without congestion: only at the threshold, or also when round trips
    /// have become longer (HyStart, HyStart++). Default at the threshold.
    pub slow_start: SlowStartRules = SlowStartRules::Standard;
}
}

/// The end of slow start where no congestion ends it.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub enum SlowStartRules {
    /// Slow start ends at the threshold (RFC 5681 section 3.1).
    #[default]
    Standard,
    /// HyStart as in Linux.
    Hystart(HystartConfig),
    /// HyStart++ (RFC 9406).
    HystartPlusPlus(HystartPlusPlusConfig),
}

impl NewRenoConfig {
    /// Reno as other algorithms of Linux reuse it: `tcp_slow_start` without a limit, and
    /// `tcp_cwnd_restart`.
    pub fn linux() -> NewRenoConfig {
        NewRenoConfig { abc_l_var: 0, limit_burst: false, remember_idle: true, ..NewRenoConfig::default() }
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

/// Returns `true` if the next ACK grows the window by slow start. RFC 5681 section 3.1 leaves
/// equality open.
pub(crate) fn slow_start_applies(window: &Window, config: &NewRenoConfig) -> bool {
    if config.past_ssthresh { window.cwnd <= window.ssthresh } else { window.cwnd < window.ssthresh }
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
        window.grow(step);
        return 0;
    }
    window.grow(room);
    if config.abc { acked - room } else { 0 }
}

/// Congestion avoidance: one segment for every `per_segment` bytes acknowledged, or ACKs' worth of
/// segments. `credit` holds what has not become a whole segment yet.
#[inline]
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
            window.grow(mss);
        } else {
            *credit = credit.saturating_add(mss);
        }
        return;
    }
    // Credit from when a segment cost more becomes one segment, not a burst.
    if *credit >= per_segment {
        *credit = 0;
        window.grow(mss);
    }
    let due = credit.saturating_add(acked);
    *credit = due % per_segment;
    window.grow((due / per_segment).saturating_mul(mss));
}

/// Half of the window (or flight), in whole segments, at least two (RFC 5681 equation 4).
pub(crate) fn halved(window: &Window, f: &Flight, config: &NewRenoConfig) -> u64 {
    whole_segments(used_at_loss(window, f, config) / 2, f)
}

/// The value that a loss or mark reduces: the window, or the part of it that was in flight.
pub(crate) fn used_at_loss(window: &Window, f: &Flight, config: &NewRenoConfig) -> u64 {
    if config.halve_flight { f.in_flight.min(window.cwnd) } else { window.cwnd }
}

/// The halved value after a timeout.
pub(crate) fn halved_by_timeout(window: &Window, f: &Flight, config: &NewRenoConfig) -> u64 {
    whole_segments(used_at_timeout(window, f, config) / 2, f)
}

/// The value that a timeout reduces: the window, or the data in flight.
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
