//! BBR, version 3: a model of the path, consisting of its bandwidth and its round-trip time,
//! determines how fast to send and how much may be in flight.
//!
//! It measures the delivery rate and the round-trip time with every ACK, and how much of the data
//! in flight was lost. The model holds the highest bandwidth of the last two probing cycles, the
//! shortest round trip of the last 10 s, the degree of ACK aggregation, and bounds learnt from
//! loss: a long-term one to the data in flight, found while probing, and short-term ones to
//! bandwidth and data in flight, that hold until the next probe. A state machine sends above, at
//! and below the bandwidth in turn, to find more of it, to use it, and to drain the queue that
//! probing has built; every 5 s without a shorter round trip it halves what is in flight to see the
//! path without its own queue.
//!
//! `model.rs` has the estimates, `startup.rs` the states until the bandwidth is known,
//! `probe_bw.rs` the cycle after that, `probe_rtt.rs` the shortest round trip and the restart from
//! idle, `loss.rs` what losses and their undoing change, `control.rs` how the model becomes rate
//! and window.
//!
//! # Source
//! draft-ietf-ccwg-bbr, working copy of 2026-08-03 (4ce5e87, after -06); names are the draft's.
//! Where the draft leaves a choice: Google's `net/ipv4/tcp_bbr.c`, branch v3. In this revision
//! `ProbeRTTInterval` is 5 s and ProbeRTT's window follows from the model at that time. The authors
//! consider 10 s, as in version 1, with ProbeRTT's window saved before the shortest round trip
//! expires (github.com/ietf-wg-ccwg/draft-ietf-ccwg-bbr, issue 109); `probe_rtt_interval` can be
//! set to that.
//!
//! # Departures
//! - The draft has no packet conservation at the start of fast recovery, as earlier versions had;
//!   nor has this.
//! - In the draft, `NoteLoss` saves the state for an undo at the first loss of every round trip, so
//!   that an episode of several round trips would be undone to a state that it has reduced already.
//!   Here it is saved once per episode, as the draft's prose says and Linux does; a timeout saves
//!   again.
//! - A loss that a tail loss probe has repaired counts, as in Linux; the draft does not mention it.
//! - The draft compares `rounds_since_probe_up` with bytes; section "A Dual-Time-Scale Approach"
//!   and Linux mean segments. `TargetInflight` includes the budget for offload, as in Linux: a path
//!   that holds less than a segment would otherwise be probed without pause.
//! - On a restart from idle the aggregation sample is reset completely, as in Linux. The draft
//!   resets only its start, and data delivered before would then count as an excess.
//! - A timeout resets the search for a plateau, and the short-term bound to the data in flight
//!   starts from the window of before (both Linux, `bbr_set_state`): a window of one segment says
//!   nothing about the path.
//! - `MarkConnectionAppLimited` in `ProbeRTT`: which packets it marks follows from the delivery
//!   counts in the rate samples, so that the sampler needs no notification.
//! - `max_bw_filter` keeps the last cycle's value if the new one has no sample (Linux,
//!   `bbr_advance_max_bw_filter`).
//! - The prefix of a lost packet at which the loss rate crossed the threshold is not negative
//!   (Linux).
//! - `Drain` has no bound by `inflight_longterm`, as in the draft's pseudocode and Linux; the
//!   draft's table lists one.
//! - ECN: the draft asks for a response and specifies none. An echo counts as a round trip with a
//!   loss rate above the threshold: it ends Startup and a bandwidth probe, and at other times the
//!   round trip adapts the short-term bounds. The DCTCP-like response that Linux has for data
//!   centres (`ecn_alpha`) is left out: Linux has it off unless a route asks for it.
//! - Offload exists only as its budget in the window (`3 * C.send_quantum`): the endpoint paces
//!   single segments.

mod control;
mod filter;
mod loss;
mod model;
mod probe_bw;
mod probe_rtt;
mod startup;

use ackclock_units::parameter::{Configurable, Domain, Visitor};
use ackclock_units::{Random, Rate, Span, Time};

use crate::algorithm::{Algorithm, Stack};
use crate::domains::TIME;
use crate::reactions::{established, resume, timed_out};
use crate::{Ack, CongestionControl, Flight, Lost, Needs, Sent, Signal, Verdict, Window};

/// Parameters of BBR. Volumes are in segments; `C.SMSS` is the endpoint's MSS.
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct BbrConfig {
    /// `StartupPacingGain`. Default 2.77, 4 ln 2 (draft, "Pacing State and Parameters").
    pub startup_pacing_gain: f64,
    /// `DrainPacingGain`. Default 0.5 (draft; Linux has 0.35).
    pub drain_pacing_gain: f64,
    /// The pacing gain of `ProbeBW_DOWN`. Default 0.9 (draft, "ProbeBW_DOWN"; Linux has 0.91).
    pub probe_down_pacing_gain: f64,
    /// The pacing gain of `ProbeBW_UP`. Default 1.25 (draft, "ProbeBW_UP").
    pub probe_up_pacing_gain: f64,
    /// `DefaultCwndGain`. Default 2 (draft, "cwnd State and Parameters").
    pub default_cwnd_gain: f64,
    /// The window's gain in `ProbeBW_UP`. Default 2.25 (draft, "ProbeBW_UP").
    pub probe_up_cwnd_gain: f64,
    /// `ProbeRTTCwndGain`. Default 0.5 (draft, "Parameters for Scheduling ProbeRTT").
    pub probe_rtt_cwnd_gain: f64,
    /// `PacingMarginPercent`: the rate stays this much below the bandwidth, percent. Default 1
    /// (draft).
    pub pacing_margin_percent: f64,
    /// `LossThresh`: the loss rate per round trip that a probe may cause. Default 0.02 (draft,
    /// "Core Algorithm Design Parameters").
    pub loss_thresh: f64,
    /// `Beta`: what a round trip with loss leaves of the short-term bounds at least. Default 0.7
    /// (draft).
    pub beta: f64,
    /// `Headroom`: the share of `inflight_longterm` that is left to others. Default 0.15 (draft).
    pub headroom: f64,
    /// `MinPipeCwnd`, segments. Default 4 (draft).
    pub min_pipe_cwnd: u32,
    /// `StartupFullLossCnt`: discontiguous ranges lost in a round trip that end Startup. Default 6
    /// (draft, "Exiting Startup Based on Packet Loss").
    pub startup_full_loss_cnt: u32,
    /// `ExtraAckedFilterLen`, round trips. Default 10 (draft, "Estimating BBR.extra_acked").
    pub extra_acked_filter_len: u32,
    /// `MinRTTFilterLen`. Default 10 s (draft).
    pub min_rtt_filter_len: Span,
    /// `ProbeRTTInterval`. Default 5 s (draft; the same for all flows, so that they empty the queue
    /// together). With as much as `min_rtt_filter_len` the shortest round trip expires when
    /// ProbeRTT begins, and the window is computed by the newest sample.
    pub probe_rtt_interval: Span,
    /// `ProbeRTTDuration`. Default 200 ms (draft).
    pub probe_rtt_duration: Span,
    /// `T_reno_bound`: round trips between probes at most. Default 63 (draft, "A Dual-Time-Scale
    /// Approach for Coexistence"; one less at random).
    pub bw_probe_max_rounds: u32,
    /// Between probes pass at least this, and at most `bw_probe_rand` more. Default 2 s (draft;
    /// `T_bbr`).
    pub bw_probe_base: Span,
    /// The random part of the time between probes. Default 1 s (draft; `T_bbr`).
    pub bw_probe_rand: Span,
}

impl Default for BbrConfig {
    fn default() -> BbrConfig {
        BbrConfig {
            startup_pacing_gain: 2.77,
            drain_pacing_gain: 0.5,
            probe_down_pacing_gain: 0.9,
            probe_up_pacing_gain: 1.25,
            default_cwnd_gain: 2.0,
            probe_up_cwnd_gain: 2.25,
            probe_rtt_cwnd_gain: 0.5,
            pacing_margin_percent: 1.0,
            loss_thresh: 0.02,
            beta: 0.7,
            headroom: 0.15,
            min_pipe_cwnd: 4,
            startup_full_loss_cnt: 6,
            extra_acked_filter_len: 10,
            min_rtt_filter_len: Span::from_secs(10),
            probe_rtt_interval: Span::from_secs(5),
            probe_rtt_duration: Span::from_millis(200),
            bw_probe_max_rounds: 63,
            bw_probe_base: Span::from_secs(2),
            bw_probe_rand: Span::from_secs(1),
        }
    }
}

impl Configurable for BbrConfig {
    fn parameters(&mut self, v: &mut impl Visitor) {
        let draft = "draft-ietf-ccwg-bbr";
        // A gain of 1 and less never fills the pipe, 0 sends nothing; the rest keeps shares between
        // 0 and 1.
        v.parameter("startup_pacing_gain", Domain::Number(1.01, 100.0, ""), draft, &mut self.startup_pacing_gain);
        v.parameter("drain_pacing_gain", Domain::Number(0.01, 1.0, ""), draft, &mut self.drain_pacing_gain);
        v.parameter("probe_down_pacing_gain", Domain::Number(0.01, 1.0, ""), draft, &mut self.probe_down_pacing_gain);
        v.parameter("probe_up_pacing_gain", Domain::Number(1.0, 100.0, ""), draft, &mut self.probe_up_pacing_gain);
        v.parameter("default_cwnd_gain", Domain::Number(0.1, 100.0, ""), draft, &mut self.default_cwnd_gain);
        v.parameter("probe_up_cwnd_gain", Domain::Number(0.1, 100.0, ""), draft, &mut self.probe_up_cwnd_gain);
        v.parameter("probe_rtt_cwnd_gain", Domain::Number(0.0, 100.0, ""), draft, &mut self.probe_rtt_cwnd_gain);
        v.parameter(
            "pacing_margin_percent",
            Domain::Number(0.0, 99.0, "percent"),
            draft,
            &mut self.pacing_margin_percent,
        );
        v.parameter("loss_thresh", Domain::Number(0.0, 0.99, ""), draft, &mut self.loss_thresh);
        v.parameter("beta", Domain::Number(0.0, 1.0, ""), draft, &mut self.beta);
        v.parameter("headroom", Domain::Number(0.0, 1.0, ""), draft, &mut self.headroom);
        v.parameter("min_pipe_cwnd", Domain::Whole(2, 1 << 20, "segments"), draft, &mut self.min_pipe_cwnd);
        let ranges = Domain::Whole(1, 1 << 20, "ranges");
        v.parameter("startup_full_loss_cnt", ranges, draft, &mut self.startup_full_loss_cnt);
        let rounds = Domain::Whole(1, 1 << 20, "round trips");
        v.parameter("extra_acked_filter_len", rounds, draft, &mut self.extra_acked_filter_len);
        v.parameter("min_rtt_filter_len", TIME, draft, &mut self.min_rtt_filter_len);
        v.parameter("probe_rtt_interval", TIME, draft, &mut self.probe_rtt_interval);
        v.parameter("probe_rtt_duration", TIME, draft, &mut self.probe_rtt_duration);
        v.parameter("bw_probe_max_rounds", rounds, draft, &mut self.bw_probe_max_rounds);
        v.parameter("bw_probe_base", TIME, draft, &mut self.bw_probe_base);
        v.parameter("bw_probe_rand", TIME, draft, &mut self.bw_probe_rand);
    }
}

impl Algorithm for BbrConfig {
    fn on(_: &Stack) -> BbrConfig {
        BbrConfig::default()
    }
}

/// `BBR.state`.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum State {
    /// Doubles the rate per round trip until the bandwidth is found.
    Startup,
    /// Empties the queue of that.
    Drain,
    /// Sends a little below the bandwidth until the queue of the probe is gone.
    ProbeBwDown,
    /// Sends at the bandwidth.
    ProbeBwCruise,
    /// Fills the pipe before a probe.
    ProbeBwRefill,
    /// Sends above the bandwidth to find more.
    ProbeBwUp,
    /// Halves what is in flight to find the shortest round trip.
    ProbeRtt,
}

impl State {
    /// `IsInAProbeBWState`.
    fn is_probe_bw(self) -> bool {
        matches!(self, State::ProbeBwDown | State::ProbeBwCruise | State::ProbeBwRefill | State::ProbeBwUp)
    }

    /// `IsProbingBW`.
    fn is_probing(self) -> bool {
        matches!(self, State::Startup | State::ProbeBwRefill | State::ProbeBwUp)
    }
}

/// BBR (draft-ietf-ccwg-bbr).
#[derive(Clone, Debug)]
pub struct Bbr {
    config: BbrConfig,
    /// Randomness for the time between probes.
    random: Random,
    state: State,
    window: Window,
    /// `C.SMSS`, bytes.
    mss: u64,
    /// `C.InitialCwnd`, bytes.
    initial_cwnd: u64,
    /// `C.delivered`, bytes.
    delivered: u64,
    pacing: control::PacingControl,
    rounds: model::Rounds,
    model: model::Model,
    aggregation: model::Aggregation,
    full_bw: startup::FullBw,
    cycle: probe_bw::Cycle,
    min_rtt: probe_rtt::MinRtt,
    probe_rtt: probe_rtt::ProbeRtt,
    signals: loss::Signals,
    episode: loss::Episode,
}

/// `RS`: what an ACK tells.
#[derive(Clone, Copy, Debug)]
struct Sample {
    now: Time,
    /// `C.inflight`, bytes.
    in_flight: u64,
    /// `C.is_cwnd_limited`.
    cwnd_limited: bool,
    newly_acked: u64,
    rtt: Option<Span>,
    /// Bytes per second; 0 if there is none.
    delivery_rate: f64,
    delivered: u64,
    /// `None` if the ACK delivered nothing.
    prior_delivered: Option<u64>,
    tx_in_flight: u64,
    lost: u64,
    is_app_limited: bool,
}

impl Bbr {
    /// A controller of a connection that is not established yet; `random` is for the time between
    /// probes.
    pub fn new(config: BbrConfig, random: Random) -> Bbr {
        Bbr {
            config,
            random,
            state: State::Startup,
            window: Window { cwnd: 0, ssthresh: Window::INFINITE },
            mss: 1,
            initial_cwnd: 0,
            delivered: 0,
            pacing: control::PacingControl::new(),
            rounds: model::Rounds::default(),
            model: model::Model::new(),
            aggregation: model::Aggregation::new(Time::ZERO),
            full_bw: startup::FullBw::default(),
            cycle: probe_bw::Cycle::new(),
            min_rtt: probe_rtt::MinRtt::new(Time::ZERO, None),
            probe_rtt: probe_rtt::ProbeRtt::default(),
            signals: loss::Signals::default(),
            episode: loss::Episode::default(),
        }
    }

    fn sample(&self, f: &Flight, ack: &Ack) -> Sample {
        let rate = ack.rate.as_ref();
        let per_second = |delivered: u64, interval: Span| match interval.as_secs_f64() {
            secs if secs > 0.0 => delivered as f64 / secs,
            _ => 0.0,
        };
        Sample {
            now: f.now,
            in_flight: f.in_flight,
            cwnd_limited: f.cwnd_limited,
            newly_acked: ack.delivered,
            rtt: ack.rtt,
            delivery_rate: rate.and_then(|rs| Some(per_second(rs.delivered, rs.interval?))).unwrap_or(0.0),
            delivered: rate.map_or(0, |rs| rs.delivered),
            prior_delivered: rate.map(|rs| rs.prior_delivered),
            tx_in_flight: rate.map_or(0, |rs| rs.in_flight_when_sent),
            lost: rate.map_or(0, |rs| rs.lost),
            is_app_limited: rate.is_some_and(|rs| rs.app_limited || self.probe_rtt.marks(rs.prior_delivered)),
        }
    }

    /// `UpdateModelAndState`.
    fn update_model_and_state(&mut self, rs: &Sample) {
        self.update_latest_delivery_signals(rs);
        self.update_congestion_signals(rs);
        self.update_ack_aggregation(rs);
        self.check_full_bw_reached(rs);
        self.check_startup_done(rs);
        self.check_drain_done(rs);
        self.update_probe_bw_cycle_phase(rs);
        self.update_min_rtt(rs);
        self.check_probe_rtt(rs);
        self.advance_latest_delivery_signals(rs);
        self.bound_bw_for_model();
    }

    /// `UpdateControlParameters`.
    fn update_control_parameters(&mut self, rs: &Sample) {
        self.set_pacing_rate();
        self.set_cwnd(rs);
    }
}

impl CongestionControl for Bbr {
    fn name(&self) -> &'static str {
        "bbr"
    }

    fn window(&self) -> Window {
        self.window
    }

    fn needs(&self) -> Needs {
        Needs { delivery_rate: true, departures: true, whole_control: true, ..Needs::default() }
    }

    fn pacing_rate(&self, _f: &Flight) -> Option<Rate> {
        Some(self.pacing.rate())
    }

    fn on_established(&mut self, f: &Flight) {
        *self = Bbr::new(self.config, self.random.clone());
        self.window = established(f);
        self.mss = f.segment();
        self.initial_cwnd = self.window.cwnd;
        self.min_rtt = probe_rtt::MinRtt::new(f.now, f.srtt);
        self.aggregation = model::Aggregation::new(f.now);
        self.init_pacing_rate(f.srtt);
    }

    fn take_over(&mut self, window: Window) {
        self.window.cwnd = window.cwnd;
        // Linux takes the window for the initial one; the draft knows of no such change.
        self.initial_cwnd = window.cwnd;
        self.init_pacing_rate(self.min_rtt.get());
    }

    fn on_ack(&mut self, f: &Flight, ack: &Ack) -> Verdict {
        self.mss = f.segment();
        if let Some(rs) = &ack.rate {
            self.delivered = rs.total_delivered;
        }
        self.see_srtt(f.srtt);
        if !f.after_timeout {
            self.exit_timeout_recovery();
        }
        let rs = self.sample(f, ack);
        self.update_model_and_state(&rs);
        self.update_control_parameters(&rs);
        Verdict::Continue
    }

    fn on_signal(&mut self, f: &Flight, signal: Signal) {
        self.mss = f.segment();
        match signal {
            Signal::Loss => self.handle_loss_signal(f),
            Signal::Ecn => self.handle_ecn(f),
            Signal::Timeout { repeated, kept } => {
                self.enter_timeout_recovery(f.now, repeated);
                timed_out(&mut self.window, None, kept, f);
                self.window.ssthresh = self.window.ssthresh.max(2 * self.mss);
            }
            Signal::Spurious => self.handle_spurious_loss_detection(),
            Signal::Resume { cwnd, ssthresh } => resume(&mut self.window, cwnd, ssthresh, f),
            Signal::RecoveryEnd => self.exit_fast_recovery(),
            // The window stays: packets are paced (draft, "Actions when Restarting from Idle").
            Signal::CountedAcks(_) | Signal::IdleRestart => {}
        }
    }

    fn on_lost(&mut self, f: &Flight, lost: &Lost) {
        self.mss = f.segment();
        self.delivered = self.delivered.max(lost.total_delivered);
        self.handle_lost_packet(f.now, lost);
    }

    fn on_sent(&mut self, f: &Flight, _sent: &Sent) {
        if f.in_flight == 0 && (f.app_limited || self.probe_rtt.marks(self.delivered)) {
            self.handle_restart_from_idle(f.now);
        }
    }
}

#[cfg(test)]
mod tests;
