//! DCTCP: the window is reduced in proportion to the fraction of data that was marked.
//!
//! It measures, once per window of data, which fraction of the bytes that were delivered had been
//! marked, and keeps a moving average of it (alpha). A window with marks reduces the congestion
//! window by half of alpha: hardly at all if few packets were marked, by half if all were. Growth,
//! and the reaction to loss, are Reno's.
//!
//! It requires feedback that reports how much was marked (RFC 8257 section 3.2, RFC 9768), and a
//! network that marks by a step at a shallow threshold. In competition with flows that halve their
//! window it takes nearly everything: it is meant for data centres.
//!
//! # Source
//! RFC 8257 sections 3.3, 3.4 and 4.2. Linux `net/ipv4/tcp_dctcp.c` of 6.1; FreeBSD
//! `sys/netinet/cc/cc_dctcp.c` (`slowstart`). Where they differ, [`DctcpRules`] selects one.
//!
//! # Departures
//! - Bytes that SACK reports count when they are reported, as in Linux; RFC 8257 section 3.3 step 1
//!   leaves SACK out, and then a window with a loss counts only what arrived with its last ACK.
//! - The reduction does not go below two segments, as in both stacks; RFC 8257 does not say.
//! - Nothing grows while the window is being reduced for marks: RFC 8257 section 3.4 leaves that to
//!   conventional TCP, and the endpoint calls no controller then, as Linux's does not
//!   (`tcp_in_cwnd_reduction`). FreeBSD's leaves congestion recovery for the call of
//!   `newreno_cc_ack_received` and continues to grow, so that in steady state each of its windows
//!   is up to a segment larger.
//! - FreeBSD leaves alpha alone during fast recovery and updates it when that ends and at a
//!   timeout; here it is updated once per window of data throughout.

use ackclock_units::parameter::Domain;
use ackclock_units::{configuration, named};

use crate::newreno::acknowledged;
use crate::reactions::{established, halved, halved_by_timeout, idled, put_back, recovered, reduce, resume, timed_out};
use crate::slow_start::SlowStart;
use crate::{
    Ack, Arrival, CongestionControl, EcnFeedback, EcnUse, Flight, Needs, NewRenoConfig, Signal, Verdict, Window,
};

/// `DCTCP_MAX_ALPHA`: alpha is in units of 1/1024.
const MAX_ALPHA: u64 = 1024;
const ALPHA_BITS: u32 = 10;

/// The stack whose rules apply where stacks differ.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub enum DctcpRules {
    /// An observation window ends with the first ACK beyond it (RFC 8257 section 3.3 step 3). Alpha
    /// stays over an idle time. A loss within the window of data in which marks have reduced it
    /// halves what the window was before them: section 3.4 asks for the reaction of conventional
    /// TCP.
    #[default]
    Rfc8257,
    /// The rules of `Rfc8257`, and an idle time begins a new observation, with alpha as at the
    /// start (`dctcp_after_idle`).
    FreeBsd,
    /// An observation window ends with the ACK of its last byte, of which what it delivers counts
    /// for the next one (`dctcp_update_alpha`, called before `tcp_clean_rtx_queue`). The window
    /// comes down by whole segments (`dctcp_ssthresh`). A loss halves what marks have left of it
    /// (`dctcp_react_to_loss`).
    Linux,
}

const RULES: Domain = Domain::named::<DctcpRules>("set of rules");

configuration! {
/// Parameters of DCTCP.
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct DctcpConfig {
    /// The gain of the average is 2^-this. Default 4: g = 1/16 (RFC 8257 section 4.2). At most 10.
    pub shift_g: u32 = 4 => (Domain::Whole(0, 10, ""), "RFC 8257 s4.2; Linux `dctcp_shift_g`");
    /// Alpha before the first observation, in units of 1/1024. Default 1024 (RFC 8257 section 3.3:
    /// the first reaction is Reno's).
    pub alpha_on_init: u32 = MAX_ALPHA as u32 => (Domain::Whole(0, 1024, "1/1024"), "RFC 8257 s3.3");
    /// The first mark halves the window and sets alpha to 1, whatever it was (FreeBSD `slowstart`).
    /// Default false.
    pub slowstart: bool = false => (Domain::Flag, "FreeBSD `cc.dctcp.slowstart`");
    /// The stack whose rules apply where stacks differ. Default RFC 8257's.
    pub rules: DctcpRules = DctcpRules::Rfc8257 => (RULES, "RFC 8257; FreeBSD; Linux `tcp_dctcp.c`");
    /// Growth, the reaction to loss, and the window after idle are Reno's, with these settings.
    pub reno: NewRenoConfig = NewRenoConfig::default() => (..);
}
}

named! { DctcpRules: Rfc8257 = "rfc8257", FreeBsd = "freebsd", Linux = "linux" }

/// DCTCP (RFC 8257).
#[derive(Clone, Debug)]
pub struct Dctcp {
    config: DctcpConfig,
    state: State,
    /// The state before the last loss or timeout, until it is put back or a mark confirms the
    /// congestion.
    saved: Option<State>,
    /// Congestion estimate, in units of 1/1024.
    alpha: u64,
    /// Bytes delivered, and of these marked, in the current observation window.
    delivered: u64,
    marked: u64,
    /// `DCTCP.WindowEnd`.
    window_end: u64,
    /// No congestion has been seen (`num_cong_events`).
    untouched: bool,
    /// Without ECN it is Reno (`dctcp_reno`).
    enabled: bool,
    slow_start: SlowStart,
}

#[derive(Clone, Debug)]
struct State {
    window: Window,
    /// Bytes acknowledged in congestion avoidance that have not yet become growth.
    credit: u64,
    /// Between a `Loss` or `Ecn` and the end of its recovery.
    reducing: bool,
    /// The window before marks reduced it, until that recovery is over.
    unmarked: Option<u64>,
}

impl Dctcp {
    /// A controller of a connection that is not established yet.
    pub fn new(config: DctcpConfig) -> Dctcp {
        let window = Window { cwnd: 0, ssthresh: Window::INFINITE };
        Dctcp {
            config,
            state: State { window, credit: 0, reducing: false, unmarked: None },
            saved: None,
            alpha: u64::from(config.alpha_on_init).min(MAX_ALPHA),
            delivered: 0,
            marked: 0,
            window_end: 0,
            untouched: true,
            enabled: true,
            slow_start: SlowStart::new(config.reno.slow_start),
        }
    }

    /// RFC 8257 section 3.3 steps 5 to 8, with Linux's rounding: what is less than the gain can
    /// express decays to zero.
    fn update_alpha(&mut self) {
        let shift = self.config.shift_g.min(ALPHA_BITS);
        let decay = match self.alpha >> shift {
            0 => self.alpha,
            decay => decay,
        };
        let scale = 1_u128 << (ALPHA_BITS - shift);
        let share = u128::from(self.marked) * scale / u128::from(self.delivered.max(1));
        let share = u64::try_from(share).unwrap_or(MAX_ALPHA);
        self.alpha = (self.alpha - decay).saturating_add(share).min(MAX_ALPHA);
        (self.delivered, self.marked) = (0, 0);
    }

    /// cwnd * (1 - alpha / 2).
    fn reduced(&mut self, f: &Flight) -> u64 {
        if self.config.slowstart && self.untouched {
            self.alpha = MAX_ALPHA;
            (self.delivered, self.marked, self.window_end) = (0, 0, f.snd_nxt);
        }
        let cwnd = self.state.window.cwnd;
        // Linux counts segments, and takes off whole ones.
        let unit = if self.config.rules == DctcpRules::Linux { f.segment() } else { 1 };
        let cut = (u128::from(cwnd / unit) * u128::from(self.alpha)) >> (ALPHA_BITS + 1);
        (cwnd - cut as u64 * unit).max(2 * f.segment())
    }
}

impl CongestionControl for Dctcp {
    fn name(&self) -> &'static str {
        "dctcp"
    }

    fn window(&self) -> Window {
        self.state.window
    }

    fn needs(&self) -> Needs {
        Needs { arrivals: true, ecn: EcnUse::All, ..Needs::default() }
    }

    fn on_established(&mut self, f: &Flight) {
        *self = Dctcp::new(self.config);
        self.state.window = established(f);
        self.slow_start.restart(f);
        // RFC 8257 section 3.3: WindowEnd begins as SND.UNA.
        self.window_end = f.snd_una;
    }

    fn take_over(&mut self, window: Window) {
        self.state.window = window;
    }

    fn on_ecn(&mut self, feedback: EcnFeedback) {
        self.enabled = feedback != EcnFeedback::None;
    }

    fn on_arrival(&mut self, f: &Flight, arrival: &Arrival) {
        let linux = self.config.rules == DctcpRules::Linux;
        if linux && arrival.ack >= self.window_end {
            self.update_alpha();
            self.window_end = f.snd_nxt;
        }
        self.delivered = self.delivered.saturating_add(arrival.delivered);
        self.marked = self.marked.saturating_add(arrival.ce.min(arrival.delivered));
        if !linux && arrival.ack > self.window_end && self.delivered > 0 {
            self.update_alpha();
            self.window_end = f.snd_nxt;
        }
    }

    fn on_ack(&mut self, f: &Flight, ack: &Ack) -> Verdict {
        let State { window, credit, .. } = &mut self.state;
        acknowledged(window, credit, &mut self.slow_start, f, ack, &self.config.reno);
        Verdict::Continue
    }

    fn on_signal(&mut self, f: &Flight, signal: Signal) {
        let window = self.state.window;
        let unmarked = self.state.unmarked.filter(|_| self.config.rules != DctcpRules::Linux);
        let whole = Window { cwnd: unmarked.unwrap_or(window.cwnd), ..window };
        match signal {
            Signal::Loss | Signal::Ecn => {
                // RFC 8257 section 3.4: a loss is a loss.
                self.saved = (signal == Signal::Loss).then(|| self.state.clone());
                let by_marks = signal == Signal::Ecn && self.enabled;
                let ssthresh = if by_marks { self.reduced(f) } else { halved(&whole, f, &self.config.reno) };
                self.state.unmarked = by_marks.then_some(window.cwnd);
                reduce(&mut self.state.window, ssthresh);
                self.state.credit = 0;
                self.state.reducing = true;
                self.untouched = false;
            }
            Signal::Timeout { repeated, kept } => {
                self.state.unmarked = None;
                if !repeated || self.saved.is_none() {
                    self.saved = Some(State { reducing: false, ..self.state.clone() });
                }
                let half = halved_by_timeout(&whole, f, &self.config.reno);
                timed_out(&mut self.state.window, (!repeated).then_some(half), kept, f);
                self.slow_start.restart(f);
                self.state.credit = 0;
                self.state.reducing = false;
                self.untouched = false;
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
                self.state.unmarked = None;
                if std::mem::take(&mut self.state.reducing) {
                    recovered(&mut self.state.window, f, &self.config.reno);
                }
            }
            Signal::IdleRestart => {
                idled(&mut self.state.window, f, &self.config.reno);
                if !self.config.reno.idle_keeps_credit {
                    self.state.credit = 0;
                }
                if self.config.rules == DctcpRules::FreeBsd && self.enabled {
                    self.alpha = u64::from(self.config.alpha_on_init).min(MAX_ALPHA);
                    (self.delivered, self.marked, self.window_end, self.untouched) = (0, 0, f.snd_nxt, true);
                }
            }
            Signal::CountedAcks(_) => {}
        }
    }
}

#[cfg(test)]
mod tests;
