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
//! The code follows in this order: the hooks, the estimates, the states until the bandwidth is
//! known, the cycle after that, the shortest round trip and the restart from idle, the effects of
//! losses and of their undoing, and how the model becomes rate and window.
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

mod filter;

use ackclock_units::parameter::Domain;
use ackclock_units::{Random, Rate, Span, Time, configuration};

use crate::algorithm::{Algorithm, Stack};
use crate::domains::TIME;
use crate::reactions::{established, resume, timed_out};
use crate::{Ack, CongestionControl, Flight, Lost, Needs, Sent, Signal, Verdict, Window};
use filter::MaxFilter;

const DRAFT: &str = "draft-ietf-ccwg-bbr";
const RANGES: Domain = Domain::Whole(1, 1 << 20, "ranges");
const ROUND_TRIPS: Domain = Domain::Whole(1, 1 << 20, "round trips");

configuration! {
/// Parameters of BBR. Volumes are in segments; `C.SMSS` is the endpoint's MSS. A startup gain of 1
/// or less never fills the pipe, and a draining gain of 0 sends nothing; the other ranges keep
/// shares between 0 and 1.
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct BbrConfig {
    /// `StartupPacingGain`. Default 2.77, 4 ln 2 (draft, "Pacing State and Parameters").
    pub startup_pacing_gain: f64 = 2.77 => (Domain::Number(1.01, 100.0, ""), DRAFT);
    /// `DrainPacingGain`. Default 0.5 (draft; Linux has 0.35).
    pub drain_pacing_gain: f64 = 0.5 => (Domain::Number(0.01, 1.0, ""), DRAFT);
    /// The pacing gain of `ProbeBW_DOWN`. Default 0.9 (draft, "ProbeBW_DOWN"; Linux has 0.91).
    pub probe_down_pacing_gain: f64 = 0.9 => (Domain::Number(0.01, 1.0, ""), DRAFT);
    /// The pacing gain of `ProbeBW_UP`. Default 1.25 (draft, "ProbeBW_UP").
    pub probe_up_pacing_gain: f64 = 1.25 => (Domain::Number(1.0, 100.0, ""), DRAFT);
    /// `DefaultCwndGain`. Default 2 (draft, "cwnd State and Parameters").
    pub default_cwnd_gain: f64 = 2.0 => (Domain::Number(0.1, 100.0, ""), DRAFT);
    /// The window's gain in `ProbeBW_UP`. Default 2.25 (draft, "ProbeBW_UP").
    pub probe_up_cwnd_gain: f64 = 2.25 => (Domain::Number(0.1, 100.0, ""), DRAFT);
    /// `ProbeRTTCwndGain`. Default 0.5 (draft, "Parameters for Scheduling ProbeRTT").
    pub probe_rtt_cwnd_gain: f64 = 0.5 => (Domain::Number(0.0, 100.0, ""), DRAFT);
    /// `PacingMarginPercent`: the rate stays this much below the bandwidth, percent. Default 1
    /// (draft).
    pub pacing_margin_percent: f64 = 1.0 => (Domain::Number(0.0, 99.0, "percent"), DRAFT);
    /// `LossThresh`: the loss rate per round trip that a probe may cause. Default 0.02 (draft,
    /// "Core Algorithm Design Parameters").
    pub loss_thresh: f64 = 0.02 => (Domain::Number(0.0, 0.99, ""), DRAFT);
    /// `Beta`: what a round trip with loss leaves of the short-term bounds at least. Default 0.7
    /// (draft).
    pub beta: f64 = 0.7 => (Domain::Number(0.0, 1.0, ""), DRAFT);
    /// `Headroom`: the share of `inflight_longterm` that is left to others. Default 0.15 (draft).
    pub headroom: f64 = 0.15 => (Domain::Number(0.0, 1.0, ""), DRAFT);
    /// `MinPipeCwnd`, segments. Default 4 (draft).
    pub min_pipe_cwnd: u32 = 4 => (Domain::Whole(2, 1 << 20, "segments"), DRAFT);
    /// `StartupFullLossCnt`: discontiguous ranges lost in a round trip that end Startup. Default 6
    /// (draft, "Exiting Startup Based on Packet Loss").
    pub startup_full_loss_cnt: u32 = 6 => (RANGES, DRAFT);
    /// `ExtraAckedFilterLen`, round trips. Default 10 (draft, "Estimating BBR.extra_acked").
    pub extra_acked_filter_len: u32 = 10 => (ROUND_TRIPS, DRAFT);
    /// `MinRTTFilterLen`. Default 10 s (draft).
    pub min_rtt_filter_len: Span = Span::from_secs(10) => (TIME, DRAFT);
    /// `ProbeRTTInterval`. Default 5 s (draft; the same for all flows, so that they empty the queue
    /// together). With as much as `min_rtt_filter_len` the shortest round trip expires when
    /// ProbeRTT begins, and the window is computed by the newest sample.
    pub probe_rtt_interval: Span = Span::from_secs(5) => (TIME, DRAFT);
    /// `ProbeRTTDuration`. Default 200 ms (draft).
    pub probe_rtt_duration: Span = Span::from_millis(200) => (TIME, DRAFT);
    /// `T_reno_bound`: round trips between probes at most. Default 63 (draft, "A Dual-Time-Scale
    /// Approach for Coexistence"; one less at random).
    pub bw_probe_max_rounds: u32 = 63 => (ROUND_TRIPS, DRAFT);
    /// Between probes pass at least this, and at most `bw_probe_rand` more. Default 2 s (draft;
    /// `T_bbr`).
    pub bw_probe_base: Span = Span::from_secs(2) => (TIME, DRAFT);
    /// The random part of the time between probes. Default 1 s (draft; `T_bbr`).
    pub bw_probe_rand: Span = Span::from_secs(1) => (TIME, DRAFT);
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
    pacing: PacingControl,
    rounds: Rounds,
    model: Model,
    aggregation: Aggregation,
    full_bw: FullBw,
    cycle: Cycle,
    min_rtt: MinRtt,
    probe_rtt: ProbeRtt,
    signals: Signals,
    episode: Episode,
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
            pacing: PacingControl::new(),
            rounds: Rounds::default(),
            model: Model::new(),
            aggregation: Aggregation::new(Time::ZERO),
            full_bw: FullBw::default(),
            cycle: Cycle::new(),
            min_rtt: MinRtt::new(Time::ZERO, None),
            probe_rtt: ProbeRtt::default(),
            signals: Signals::default(),
            episode: Episode::default(),
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
        self.min_rtt = MinRtt::new(f.now, f.srtt);
        self.aggregation = Aggregation::new(f.now);
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

// The model of the path: round trips, bandwidth, aggregation, and what follows from them for the
// data in flight.

/// "Infinity" for volumes.
const UNBOUNDED: u64 = u64::MAX;

/// Packet-timed round trips.
#[derive(Clone, Debug, Default)]
struct Rounds {
    /// `round_count`.
    count: u64,
    /// `round_start`: the ACK in hand began a round.
    start: bool,
    /// `next_round_delivered`.
    next_delivered: u64,
}

/// Bandwidths in bytes per second, volumes in bytes.
#[derive(Clone, Debug)]
struct Model {
    /// `max_bw_filter`: the previous cycle and the current one.
    max_bw: [f64; 2],
    /// `bw`.
    bw: f64,
    /// `bw_shortterm`; infinite while there is none.
    bw_shortterm: f64,
    /// `inflight_shortterm`; [`UNBOUNDED`] while there is none.
    inflight_shortterm: u64,
    /// `inflight_longterm`; [`UNBOUNDED`] while there is none.
    inflight_longterm: u64,
}

impl Model {
    fn new() -> Model {
        Model {
            max_bw: [0.0; 2],
            bw: 0.0,
            bw_shortterm: f64::INFINITY,
            inflight_shortterm: UNBOUNDED,
            inflight_longterm: UNBOUNDED,
        }
    }

    /// `max_bw`.
    fn max_bw(&self) -> f64 {
        self.max_bw[0].max(self.max_bw[1])
    }

    /// `AdvanceMaxBwFilter`.
    fn advance_max_bw_filter(&mut self) {
        if self.max_bw[1] > 0.0 {
            self.max_bw = [self.max_bw[1], 0.0];
        }
    }

    /// `ResetShortTermModel`.
    fn reset_short_term(&mut self) {
        self.bw_shortterm = f64::INFINITY;
        self.inflight_shortterm = UNBOUNDED;
    }
}

/// The clustering of ACKs (draft, "BBR.extra_acked").
#[derive(Clone, Debug)]
struct Aggregation {
    /// `extra_acked_interval_start`.
    interval_start: Time,
    /// `extra_acked_delivered`.
    delivered: u64,
    /// `extra_acked_filter`.
    filter: MaxFilter,
}

impl Aggregation {
    fn new(now: Time) -> Aggregation {
        Aggregation { interval_start: now, delivered: 0, filter: MaxFilter::new() }
    }

    /// A new interval.
    fn restart(&mut self, now: Time) {
        self.interval_start = now;
        self.delivered = 0;
    }

    /// `extra_acked`, bytes.
    fn extra_acked(&self) -> u64 {
        self.filter.get()
    }
}

impl Bbr {
    /// `UpdateRound`.
    fn update_round(&mut self, rs: &Sample) {
        self.rounds.start = rs.prior_delivered.is_some_and(|prior| prior >= self.rounds.next_delivered);
        if self.rounds.start {
            self.start_round();
            self.rounds.count += 1;
            self.cycle.rounds_since_probe_up = self.cycle.rounds_since_probe_up.saturating_add(1);
        }
    }

    /// `StartRound`.
    fn start_round(&mut self) {
        self.rounds.next_delivered = self.delivered;
    }

    /// `UpdateMaxBw`. A sample limited by the application counts only if it is more than was known.
    fn update_max_bw(&mut self, rs: &Sample) {
        self.update_round(rs);
        if rs.delivery_rate > 0.0 && (rs.delivery_rate >= self.model.max_bw() || !rs.is_app_limited) {
            let current = &mut self.model.max_bw[1];
            *current = current.max(rs.delivery_rate);
        }
    }

    /// `BoundBWForModel`.
    fn bound_bw_for_model(&mut self) {
        self.model.bw = self.model.max_bw().min(self.model.bw_shortterm);
    }

    /// `UpdateACKAggregation`.
    fn update_ack_aggregation(&mut self, rs: &Sample) {
        let interval = rs.now.since(self.aggregation.interval_start).as_secs_f64();
        let mut expected = (self.model.bw * interval) as u64;
        if self.aggregation.delivered <= expected {
            self.aggregation.restart(rs.now);
            expected = 0;
        }
        let delivered = self.aggregation.delivered.saturating_add(rs.newly_acked);
        self.aggregation.delivered = delivered;
        let extra = (delivered - expected).min(self.window.cwnd);
        // In Startup the rate grows too fast for more than one round to say anything.
        let window = if self.full_bw.reached { self.config.extra_acked_filter_len.into() } else { 1 };
        self.aggregation.filter.update(window, self.rounds.count, extra);
    }

    /// `BDPMultiple`: bytes.
    fn bdp_multiple(&self, bw: f64, gain: f64) -> u64 {
        match self.min_rtt.get() {
            Some(min_rtt) => (gain * bw * min_rtt.as_secs_f64()).ceil() as u64,
            None => self.initial_cwnd,
        }
    }

    /// `QuantizationBudget`: bytes.
    fn quantization_budget(&self, inflight_cap: u64) -> u64 {
        let cap = inflight_cap.max(3 * self.pacing.send_quantum(self.mss)).max(self.min_pipe_cwnd());
        if self.state == State::ProbeBwUp { cap.saturating_add(2 * self.mss) } else { cap }
    }

    /// `Inflight`: bytes.
    fn inflight(&self, bw: f64, gain: f64) -> u64 {
        self.quantization_budget(self.bdp_multiple(bw, gain))
    }

    /// `UpdateMaxInflight`: bytes.
    fn max_inflight(&self) -> u64 {
        let cap = self.bdp_multiple(self.model.bw, self.cwnd_gain());
        self.quantization_budget(cap.saturating_add(self.aggregation.extra_acked()))
    }

    /// `TargetInflight`: bytes.
    fn target_inflight(&self) -> u64 {
        self.inflight(self.model.bw, 1.0).min(self.window.cwnd)
    }

    /// `InflightWithHeadroom`: bytes.
    fn inflight_with_headroom(&self) -> u64 {
        let longterm = self.model.inflight_longterm;
        if longterm == UNBOUNDED {
            return UNBOUNDED;
        }
        let headroom = ((self.config.headroom * longterm as f64) as u64).max(self.mss);
        longterm.saturating_sub(headroom).max(self.min_pipe_cwnd())
    }

    /// `MinPipeCwnd`: bytes.
    fn min_pipe_cwnd(&self) -> u64 {
        (u64::from(self.config.min_pipe_cwnd).max(2) * self.mss).min(Window::MAX)
    }
}

// Startup and Drain: until the bandwidth is known, and until the queue built by the search has
// drained.

/// The rate has to grow by this factor in a round for it not to count as a plateau (draft, "Exiting
/// Acceleration Based on Bandwidth Plateau").
const GROWTH: f64 = 1.25;
/// Rounds without that growth.
const ROUNDS: u32 = 3;
/// Rounds after which Drain ends whatever is in flight.
const DRAIN_ROUNDS: u64 = 3;

/// The search for a plateau of the delivery rate.
#[derive(Clone, Debug, Default)]
struct FullBw {
    /// `full_bw_reached`: ever.
    reached: bool,
    /// `full_bw_now`: since the search began.
    now: bool,
    /// `full_bw`: bytes per second.
    baseline: f64,
    /// `full_bw_count`.
    count: u32,
    /// `drain_start_round`.
    drain_start_round: u64,
}

impl FullBw {
    /// `ResetFullBW`, with the rate from which growth is counted.
    fn reset(&mut self, baseline: f64) {
        (self.now, self.baseline, self.count) = (false, baseline, 0);
    }
}

impl Bbr {
    /// `EnterStartup`.
    fn enter_startup(&mut self) {
        self.state = State::Startup;
        self.window.ssthresh = Window::INFINITE;
    }

    /// `CheckFullBWReached`. An ACK whose sample has no rate tells nothing of a plateau.
    fn check_full_bw_reached(&mut self, rs: &Sample) {
        let full_bw = &mut self.full_bw;
        if full_bw.now || !self.rounds.start || rs.is_app_limited || rs.delivery_rate <= 0.0 {
            return;
        }
        if rs.delivery_rate >= full_bw.baseline * GROWTH {
            full_bw.reset(rs.delivery_rate);
            return;
        }
        full_bw.count += 1;
        full_bw.now = full_bw.count >= ROUNDS;
        full_bw.reached |= full_bw.now;
    }

    /// `CheckStartupDone`.
    fn check_startup_done(&mut self, rs: &Sample) {
        self.check_startup_high_loss(rs);
        if self.state == State::Startup && self.full_bw.reached {
            self.enter_drain();
        }
    }

    /// `CheckStartupHighLoss`.
    fn check_startup_high_loss(&mut self, rs: &Sample) {
        if self.full_bw.reached || self.episode.recovery != Recovery::Fast {
            return;
        }
        let signals = &self.signals;
        // The round began with its first loss, so that its end is a round trip after that at least.
        let enough = if signals.has_selective_acks {
            signals.loss_round_start && signals.ranges_ended >= self.config.startup_full_loss_cnt
        } else {
            true
        };
        if enough && self.is_inflight_too_high(rs.lost, rs.tx_in_flight) {
            self.episode.undo_state(State::Startup);
            self.exit_startup_on_congestion();
        }
    }

    /// Startup has filled more than the path holds.
    fn exit_startup_on_congestion(&mut self) {
        self.full_bw.reached = true;
        let bdp = self.bdp_multiple(self.model.bw, 1.0);
        self.model.inflight_longterm = bdp.max(self.signals.inflight_latest);
    }

    /// `EnterDrain`.
    fn enter_drain(&mut self) {
        self.state = State::Drain;
        self.full_bw.drain_start_round = self.rounds.count;
        // For those who look: slow start is over. The window is above it ever after, so that one
        // that is half used does not pass for a limit, as it does in slow start.
        self.window.ssthresh = 2 * self.mss;
    }

    /// `CheckDrainDone`.
    fn check_drain_done(&mut self, rs: &Sample) {
        let late = self.rounds.count > self.full_bw.drain_start_round + DRAIN_ROUNDS;
        if self.state == State::Drain && (rs.in_flight <= self.inflight(self.model.bw, 1.0) || late) {
            // EnterProbeBW.
            self.start_probe_bw_down(rs.now);
        }
    }
}

// ProbeBW: the cycle of probing for bandwidth, draining the queue, cruising and refilling.

/// `ack_phase`: what ACKs tell about the last probe.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum AckPhase {
    /// Nothing.
    Init,
    /// The pipe is being filled.
    Refilling,
    /// Data in flight rises, ACKs are of before.
    ProbeStarting,
    /// ACKs are of the probe.
    ProbeFeedback,
    /// The probe is over, ACKs are still of it.
    ProbeStopping,
}

/// Where the cycle stands.
#[derive(Clone, Debug)]
struct Cycle {
    ack_phase: AckPhase,
    /// `is_bw_probe_sample`: losses are of data sent in a probe to which nothing has responded yet.
    is_bw_probe_sample: bool,
    /// `bw_probe_up_acked`: bytes acknowledged since `inflight_longterm` rose.
    up_acked: u64,
    /// `probe_up_acked_per_inc`: bytes to be acknowledged for it to rise by a segment.
    acked_per_inc: u64,
    /// `bw_probe_up_rounds`: rounds in which it has risen in this probe.
    up_rounds: u32,
    /// `rounds_since_probe_up`.
    rounds_since_probe_up: u32,
    /// `bw_probe_wait`.
    wait: Span,
    /// `cycle_stamp`.
    stamp: Time,
    /// `prev_probe_too_high`.
    prev_probe_too_high: bool,
    /// `prev_probe_precautionary`.
    prev_probe_precautionary: bool,
}

impl Cycle {
    fn new() -> Cycle {
        Cycle {
            ack_phase: AckPhase::Init,
            is_bw_probe_sample: false,
            up_acked: 0,
            acked_per_inc: UNBOUNDED,
            up_rounds: 0,
            rounds_since_probe_up: 0,
            wait: Span::ZERO,
            stamp: Time::ZERO,
            prev_probe_too_high: false,
            prev_probe_precautionary: false,
        }
    }
}

impl Bbr {
    /// `StartProbeBW_DOWN`.
    fn start_probe_bw_down(&mut self, now: Time) {
        self.signals.reset();
        self.cycle.acked_per_inc = UNBOUNDED;
        self.pick_probe_wait();
        self.cycle.stamp = now;
        self.cycle.ack_phase = AckPhase::ProbeStopping;
        self.start_round();
        self.state = State::ProbeBwDown;
    }

    /// `StartProbeBW_CRUISE`.
    fn start_probe_bw_cruise(&mut self) {
        self.state = State::ProbeBwCruise;
    }

    /// `StartProbeBW_REFILL`.
    fn start_probe_bw_refill(&mut self) {
        self.model.reset_short_term();
        self.cycle.up_rounds = 0;
        self.cycle.up_acked = 0;
        self.cycle.prev_probe_precautionary = false;
        self.cycle.ack_phase = AckPhase::Refilling;
        self.start_round();
        self.state = State::ProbeBwRefill;
    }

    /// `StartProbeBW_UP`.
    fn start_probe_bw_up(&mut self, rs: &Sample) {
        self.cycle.ack_phase = AckPhase::ProbeStarting;
        self.start_round();
        self.full_bw.reset(rs.delivery_rate);
        self.state = State::ProbeBwUp;
        self.raise_inflight_longterm_slope();
    }

    /// `PickProbeWait`.
    fn pick_probe_wait(&mut self) {
        self.cycle.rounds_since_probe_up = self.random.below(2) as u32;
        let extra = self.random.below(self.config.bw_probe_rand.as_nanos());
        self.cycle.wait = self.config.bw_probe_base + Span::from_nanos(extra);
    }

    /// `UpdateProbeBWCyclePhase`.
    fn update_probe_bw_cycle_phase(&mut self, rs: &Sample) {
        if !self.full_bw.reached || self.adapt_long_term_model(rs) {
            return;
        }
        match self.state {
            State::ProbeBwDown => {
                if !self.probes_now(rs.now) && self.is_time_to_cruise(rs) {
                    self.start_probe_bw_cruise();
                }
            }
            State::ProbeBwCruise => {
                self.probes_now(rs.now);
            }
            State::ProbeBwRefill => {
                if self.rounds.start {
                    self.cycle.is_bw_probe_sample = true;
                    self.start_probe_bw_up(rs);
                }
            }
            State::ProbeBwUp => {
                if self.is_time_to_go_down(rs) {
                    self.cycle.prev_probe_too_high = false;
                    self.start_probe_bw_down(rs.now);
                }
            }
            State::Startup | State::Drain | State::ProbeRtt => {}
        }
    }

    /// `IsTimeToProbeBW`: begins a probe if it is time, by the clock or by the rounds after which
    /// Reno would have lost a packet at this window.
    fn probes_now(&mut self, now: Time) -> bool {
        let elapsed = now > self.cycle.stamp + self.cycle.wait;
        let reno_rounds = (self.target_inflight() / self.mss).min(self.config.bw_probe_max_rounds.into());
        let due = elapsed || u64::from(self.cycle.rounds_since_probe_up) >= reno_rounds;
        if due {
            self.start_probe_bw_refill();
        }
        due
    }

    /// `IsTimeToCruise`.
    fn is_time_to_cruise(&self, rs: &Sample) -> bool {
        rs.in_flight <= self.inflight_with_headroom() && rs.in_flight <= self.inflight(self.model.max_bw(), 1.0)
    }

    /// `IsTimeToGoDown`.
    fn is_time_to_go_down(&mut self, rs: &Sample) -> bool {
        let longterm = self.model.inflight_longterm;
        if self.cycle.prev_probe_too_high && rs.in_flight >= longterm {
            self.cycle.prev_probe_precautionary = true;
            return true;
        }
        if rs.cwnd_limited && self.window.cwnd >= longterm {
            // The bound keeps the bandwidth from growing, not the path.
            self.full_bw.reset(rs.delivery_rate);
            return false;
        }
        self.full_bw.now
    }

    /// `RaiseInflightLongtermSlope`: 1, 2, 4, ... segments per round.
    fn raise_inflight_longterm_slope(&mut self) {
        let growth_this_round = 1 << self.cycle.up_rounds;
        self.cycle.up_rounds = (self.cycle.up_rounds + 1).min(30);
        self.cycle.acked_per_inc = (self.window.cwnd / growth_this_round).max(self.mss);
    }

    /// `ProbeInflightLongtermUpward`.
    fn probe_inflight_longterm_upward(&mut self, rs: &Sample) {
        if !rs.cwnd_limited || self.window.cwnd < self.model.inflight_longterm {
            return;
        }
        let cycle = &mut self.cycle;
        cycle.up_acked = cycle.up_acked.saturating_add(rs.newly_acked);
        let delta = cycle.up_acked / cycle.acked_per_inc;
        cycle.up_acked -= delta * cycle.acked_per_inc;
        let longterm = &mut self.model.inflight_longterm;
        *longterm = longterm.saturating_add(delta.saturating_mul(self.mss));
        if self.rounds.start {
            self.raise_inflight_longterm_slope();
        }
    }

    /// `AdaptLongTermModel`: whether it has changed the state.
    fn adapt_long_term_model(&mut self, rs: &Sample) -> bool {
        if self.cycle.ack_phase == AckPhase::ProbeStarting && self.rounds.start {
            self.cycle.ack_phase = AckPhase::ProbeFeedback;
        }
        if self.cycle.ack_phase == AckPhase::ProbeStopping && self.rounds.start {
            self.cycle.is_bw_probe_sample = false;
            self.cycle.ack_phase = AckPhase::Init;
            if self.state.is_probe_bw() && !rs.is_app_limited {
                self.model.advance_max_bw_filter();
            }
            // The careful probe has done no harm: probe again, this time in earnest.
            if self.state.is_probe_bw() && self.cycle.prev_probe_precautionary && !self.cycle.prev_probe_too_high {
                self.start_probe_bw_refill();
                return true;
            }
        }
        if self.model.inflight_longterm != UNBOUNDED && !self.is_inflight_too_high(rs.lost, rs.tx_in_flight) {
            self.model.inflight_longterm = self.model.inflight_longterm.max(rs.tx_in_flight);
            if self.state == State::ProbeBwUp {
                self.probe_inflight_longterm_upward(rs);
            }
        }
        false
    }
}

// The shortest round trip, ProbeRTT, and the restart from idle, which may replace it.

/// The shortest round trips of two windows.
#[derive(Clone, Debug)]
struct MinRtt {
    /// `min_rtt`: of the last 10 s; `None` is infinite.
    min_rtt: Option<Span>,
    /// `min_rtt_stamp`.
    stamp: Time,
    /// `probe_rtt_min_delay`: of the last 5 s.
    probe_delay: Option<Span>,
    /// `probe_rtt_min_stamp`.
    probe_stamp: Time,
    /// `probe_rtt_expired`.
    probe_expired: bool,
}

impl MinRtt {
    fn new(now: Time, srtt: Option<Span>) -> MinRtt {
        MinRtt { min_rtt: srtt, stamp: now, probe_delay: srtt, probe_stamp: now, probe_expired: false }
    }

    /// `min_rtt`.
    fn get(&self) -> Option<Span> {
        self.min_rtt
    }
}

/// The state of ProbeRTT and restarts.
#[derive(Clone, Debug, Default)]
struct ProbeRtt {
    /// `probe_rtt_done_stamp`, once what is in flight has come down.
    done_at: Option<Time>,
    /// `probe_rtt_round_done`.
    round_done: bool,
    /// `idle_restart`.
    idle_restart: bool,
    /// `MarkConnectionAppLimited`: what was sent while the count of delivered bytes was within
    /// these.
    marked: Option<(u64, u64)>,
}

impl ProbeRtt {
    /// Returns `true` if a packet that was sent when `delivered` bytes had been delivered is marked
    /// as limited by the application.
    fn marks(&self, delivered: u64) -> bool {
        self.marked.is_some_and(|(first, last)| (first..=last).contains(&delivered))
    }

    fn mark(&mut self, delivered: u64, in_flight: u64) {
        let first = match self.marked {
            Some((first, last)) if delivered <= last => first,
            _ => delivered,
        };
        self.marked = Some((first, delivered.saturating_add(in_flight)));
    }
}

impl Bbr {
    /// `UpdateMinRTT`.
    fn update_min_rtt(&mut self, rs: &Sample) {
        let shorter = |a: Option<Span>, b: Option<Span>| a.is_some_and(|a| b.is_none_or(|b| a < b));
        let m = &mut self.min_rtt;
        m.probe_expired = rs.now > m.probe_stamp + self.config.probe_rtt_interval;
        if rs.rtt.is_some() && (shorter(rs.rtt, m.probe_delay) || m.probe_expired) {
            m.probe_delay = rs.rtt;
            m.probe_stamp = rs.now;
        }
        let expired = rs.now > m.stamp + self.config.min_rtt_filter_len;
        if shorter(m.probe_delay, m.min_rtt) || expired {
            m.min_rtt = m.probe_delay;
            m.stamp = m.probe_stamp;
        }
    }

    /// `CheckProbeRTT`.
    fn check_probe_rtt(&mut self, rs: &Sample) {
        if self.state != State::ProbeRtt && self.min_rtt.probe_expired && !self.probe_rtt.idle_restart {
            self.state = State::ProbeRtt;
            // After the state has changed (draft, Linux): a larger window that was saved before
            // stays saved.
            self.save_cwnd();
            self.probe_rtt.done_at = None;
            self.cycle.ack_phase = AckPhase::ProbeStopping;
            self.start_round();
        }
        if self.state == State::ProbeRtt {
            self.handle_probe_rtt(rs);
        }
        if rs.delivered > 0 {
            self.probe_rtt.idle_restart = false;
        }
    }

    /// `HandleProbeRTT`.
    fn handle_probe_rtt(&mut self, rs: &Sample) {
        self.probe_rtt.mark(self.delivered, rs.in_flight);
        if self.probe_rtt.done_at.is_none() && rs.in_flight <= self.probe_rtt_cwnd() {
            self.probe_rtt.done_at = Some(rs.now + self.config.probe_rtt_duration);
            self.probe_rtt.round_done = false;
            self.start_round();
        } else if self.probe_rtt.done_at.is_some() {
            self.probe_rtt.round_done |= self.rounds.start;
            if self.probe_rtt.round_done {
                self.check_probe_rtt_done(rs.now);
            }
        }
    }

    /// `CheckProbeRTTDone`.
    fn check_probe_rtt_done(&mut self, now: Time) {
        if self.probe_rtt.done_at.is_some_and(|done| now > done) {
            self.min_rtt.probe_stamp = now;
            self.restore_cwnd();
            self.exit_probe_rtt(now);
        }
    }

    /// `ExitProbeRTT`. The queue is empty, so that there is nothing to bring down.
    fn exit_probe_rtt(&mut self, now: Time) {
        self.model.reset_short_term();
        if self.full_bw.reached {
            self.start_probe_bw_down(now);
            self.start_probe_bw_cruise();
        } else {
            self.enter_startup();
        }
    }

    /// `HandleRestartFromIdle`, nothing being in flight and the application having had nothing to
    /// send.
    fn handle_restart_from_idle(&mut self, now: Time) {
        self.probe_rtt.idle_restart = true;
        self.aggregation.restart(now);
        if self.state.is_probe_bw() {
            self.set_pacing_rate_with_gain(1.0);
        } else if self.state == State::ProbeRtt {
            self.check_probe_rtt_done(now);
        }
    }
}

// The effects of losses: the bounds derived from them, the episodes of their repair, and how these
// effects are undone.

/// The last round trip's deliveries and losses.
#[derive(Clone, Debug, Default)]
struct Signals {
    /// `bw_latest`: bytes per second.
    bw_latest: f64,
    /// `inflight_latest`: bytes.
    inflight_latest: u64,
    /// `loss_round_delivered`: the round trip ends with what is sent after this much was delivered.
    loss_round_delivered: u64,
    /// `loss_round_start`: the ACK in hand ended it.
    loss_round_start: bool,
    /// `is_loss_in_round`.
    loss_in_round: bool,
    /// `C.has_selective_acks`, as far as losses have told it.
    has_selective_acks: bool,
    /// Discontiguous ranges lost in the round trip, and in the one that the ACK in hand ended.
    ranges: u32,
    ranges_ended: u32,
    /// Where the last range ends.
    range_end: u64,
    /// When a lost segment was last told of.
    told_at: Option<Time>,
}

impl Signals {
    /// `ResetCongestionSignals`.
    fn reset(&mut self) {
        self.loss_in_round = false;
        self.bw_latest = 0.0;
        self.inflight_latest = 0;
    }
}

/// The repair of losses.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Default)]
enum Recovery {
    /// No.
    #[default]
    None,
    /// Fast recovery.
    Fast,
    /// After a timeout.
    Timeout,
}

/// An episode of repair and what it may have to give back.
#[derive(Clone, Debug, Default)]
struct Episode {
    recovery: Recovery,
    /// `prior_cwnd`: the last window that neither repair nor ProbeRTT had a part in.
    prior_cwnd: u64,
    undo: Option<LossUndo>,
}

/// The state before an episode.
#[derive(Clone, Debug)]
struct LossUndo {
    at: Time,
    cwnd: u64,
    /// `undo_state`: what the episode put an end to.
    state: Option<State>,
    bw_shortterm: f64,
    inflight_shortterm: u64,
    inflight_longterm: u64,
}

impl Episode {
    /// The episode has put an end to this state.
    fn undo_state(&mut self, state: State) {
        if let Some(undo) = &mut self.undo {
            undo.state = Some(state);
        }
    }
}

impl Bbr {
    /// `UpdateLatestDeliverySignals`.
    fn update_latest_delivery_signals(&mut self, rs: &Sample) {
        let signals = &mut self.signals;
        signals.bw_latest = signals.bw_latest.max(rs.delivery_rate);
        signals.inflight_latest = signals.inflight_latest.max(rs.delivered);
        signals.loss_round_start = rs.prior_delivered.is_some_and(|prior| prior >= signals.loss_round_delivered);
        if signals.loss_round_start {
            signals.loss_round_delivered = self.delivered;
            signals.ranges_ended = std::mem::take(&mut signals.ranges);
        }
    }

    /// `AdvanceLatestDeliverySignals`.
    fn advance_latest_delivery_signals(&mut self, rs: &Sample) {
        if self.signals.loss_round_start {
            self.signals.bw_latest = rs.delivery_rate;
            self.signals.inflight_latest = rs.delivered;
        }
    }

    /// `UpdateCongestionSignals`.
    fn update_congestion_signals(&mut self, rs: &Sample) {
        self.update_max_bw(rs);
        if self.signals.loss_round_start {
            let lost = std::mem::take(&mut self.signals.loss_in_round);
            if lost && !self.state.is_probing() {
                self.adapt_lower_bounds();
            }
        }
    }

    /// `AdaptLowerBoundsFromCongestion`: towards what the last round trip delivered.
    fn adapt_lower_bounds(&mut self) {
        let (model, signals, beta) = (&mut self.model, &self.signals, self.config.beta);
        if model.bw_shortterm == f64::INFINITY {
            model.bw_shortterm = model.max_bw();
        }
        if model.inflight_shortterm == UNBOUNDED {
            model.inflight_shortterm = self.window.cwnd;
        }
        model.bw_shortterm = signals.bw_latest.max(beta * model.bw_shortterm);
        let cut = (beta * model.inflight_shortterm as f64) as u64;
        model.inflight_shortterm = signals.inflight_latest.max(cut);
    }

    /// `IsInflightTooHigh`: `lost` of `tx_in_flight` bytes.
    fn is_inflight_too_high(&self, lost: u64, tx_in_flight: u64) -> bool {
        self.is_loss_rate_too_high(lost, tx_in_flight) || (lost > 0 && !self.signals.has_selective_acks)
    }

    fn is_loss_rate_too_high(&self, lost: u64, tx_in_flight: u64) -> bool {
        lost as f64 > tx_in_flight as f64 * self.config.loss_thresh
    }

    /// `HandleInflightTooHigh`, once for a probe.
    fn handle_inflight_too_high(&mut self, now: Time, tx_in_flight: u64, is_app_limited: bool) {
        self.cycle.prev_probe_too_high = true;
        self.cycle.is_bw_probe_sample = false;
        if !is_app_limited {
            let cut = (self.target_inflight() as f64 * self.config.beta) as u64;
            self.model.inflight_longterm = tx_in_flight.max(cut);
        }
        if self.state == State::ProbeBwUp {
            self.episode.undo_state(State::ProbeBwUp);
            self.start_probe_bw_down(now);
        }
    }

    /// `NoteLoss`.
    fn note_loss(&mut self) {
        if !self.signals.loss_in_round {
            self.signals.loss_round_delivered = self.delivered;
            self.signals.ranges = 0;
        }
        self.signals.loss_in_round = true;
    }

    /// `HandleLostPacket`.
    fn handle_lost_packet(&mut self, now: Time, lost: &Lost) {
        self.signals.has_selective_acks = lost.selective_acks;
        self.signals.told_at = Some(now);
        self.enter_fast_recovery(now);
        self.note_loss();
        if self.signals.ranges == 0 || lost.seq != self.signals.range_end {
            self.signals.ranges = self.signals.ranges.saturating_add(1);
        }
        self.signals.range_end = lost.seq.saturating_add(lost.bytes.into());
        if !self.cycle.is_bw_probe_sample {
            return;
        }
        let since_sent = lost.total_lost.saturating_sub(lost.prior_lost);
        if self.is_inflight_too_high(since_sent, lost.in_flight_when_sent) {
            let tx_in_flight = self.inflight_at_loss(lost, since_sent);
            let app_limited = lost.app_limited || self.probe_rtt.marks(lost.prior_delivered);
            self.handle_inflight_too_high(now, tx_in_flight, app_limited);
        }
    }

    /// Fast recovery begins. No segment was told lost if a tail loss probe has repaired it; it
    /// counts as one all the same (Linux, `bbr_run_loss_probe_recovery`).
    fn handle_loss_signal(&mut self, f: &Flight) {
        self.enter_fast_recovery(f.now);
        if self.signals.told_at == Some(f.now) {
            return;
        }
        self.note_loss();
        let tx_in_flight = self.signals.inflight_latest.saturating_add(self.mss);
        if self.cycle.is_bw_probe_sample && self.is_loss_rate_too_high(self.mss, tx_in_flight) {
            self.handle_inflight_too_high(f.now, tx_in_flight, f.app_limited);
        }
    }

    /// `InflightAtLoss`: how much of what was in flight with this packet would have kept below the
    /// threshold. The prefix of the packet is the x of
    /// `(lost_prev + x) / (inflight_prev + x) = LossThresh`.
    fn inflight_at_loss(&self, lost: &Lost, since_sent: u64) -> u64 {
        let size = u64::from(lost.bytes);
        let inflight_prev = lost.in_flight_when_sent.saturating_sub(size);
        let lost_prev = since_sent.saturating_sub(size) as f64;
        let thresh = self.config.loss_thresh;
        let prefix = (thresh * inflight_prev as f64 - lost_prev) / (1.0 - thresh);
        inflight_prev.saturating_add(prefix.max(0.0) as u64)
    }

    /// A congestion echo: the queue is too long for the one who marks, and a loss before it was no
    /// illusion.
    fn handle_ecn(&mut self, f: &Flight) {
        self.episode.undo = None;
        self.note_loss();
        if self.state == State::Startup {
            self.exit_startup_on_congestion();
        } else if self.cycle.is_bw_probe_sample {
            self.handle_inflight_too_high(f.now, f.in_flight, false);
        }
    }

    /// `SaveCwnd`.
    fn save_cwnd(&mut self) {
        let cwnd = self.window.cwnd;
        let modulated = self.episode.recovery != Recovery::None || self.state == State::ProbeRtt;
        self.episode.prior_cwnd = if modulated { self.episode.prior_cwnd.max(cwnd) } else { cwnd };
    }

    /// `RestoreCwnd`.
    fn restore_cwnd(&mut self) {
        self.window.cwnd = self.window.cwnd.max(self.episode.prior_cwnd).min(Window::MAX);
    }

    /// `SaveStateUponLoss`.
    fn save_state_upon_loss(&mut self, at: Time) {
        self.save_cwnd();
        self.episode.undo = Some(LossUndo {
            at,
            cwnd: self.window.cwnd,
            state: None,
            bw_shortterm: self.model.bw_shortterm,
            inflight_shortterm: self.model.inflight_shortterm,
            inflight_longterm: self.model.inflight_longterm,
        });
    }

    /// `OnEnterFastRecovery`. A loss may be told before the episode that it opens.
    fn enter_fast_recovery(&mut self, now: Time) {
        if self.episode.recovery == Recovery::None || self.episode.undo.is_none() {
            self.save_state_upon_loss(now);
        }
        if self.episode.recovery == Recovery::None {
            self.episode.recovery = Recovery::Fast;
        }
        self.save_cwnd_again();
    }

    fn save_cwnd_again(&mut self) {
        if let Some(undo) = &mut self.episode.undo {
            undo.cwnd = undo.cwnd.max(self.window.cwnd);
        }
    }

    /// Fast recovery is over. A reduction for ECN, of which this tells as well, has changed no
    /// window.
    fn exit_fast_recovery(&mut self) {
        if self.episode.recovery == Recovery::Fast {
            self.restore_cwnd();
            self.episode.recovery = Recovery::None;
        }
    }

    /// `OnEnterRTO`, without the window. Losses that the timeout declares may have been told
    /// before.
    fn enter_timeout_recovery(&mut self, now: Time, repeated: bool) {
        let saved = self.episode.undo.as_ref().map(|undo| undo.at);
        if saved.is_none_or(|at| !repeated && at != now) {
            self.save_state_upon_loss(now);
        }
        if !repeated {
            self.save_cwnd_again();
        }
        self.episode.recovery = Recovery::Timeout;
        self.full_bw.reset(0.0);
        if !self.state.is_probing() && self.model.inflight_shortterm == UNBOUNDED {
            self.model.inflight_shortterm = self.window.cwnd.max(self.episode.prior_cwnd);
        }
    }

    /// Ends recovery once the data outstanding at the timeout is acknowledged.
    fn exit_timeout_recovery(&mut self) {
        if self.episode.recovery == Recovery::Timeout {
            self.restore_cwnd();
            self.episode.recovery = Recovery::None;
        }
    }

    /// `HandleSpuriousLossDetection`.
    fn handle_spurious_loss_detection(&mut self) {
        let Some(undo) = self.episode.undo.take() else { return };
        self.restore_cwnd();
        self.window.cwnd = self.window.cwnd.max(undo.cwnd);
        self.episode.recovery = Recovery::None;
        self.signals.loss_in_round = false;
        self.full_bw.reset(0.0);
        let model = &mut self.model;
        model.bw_shortterm = model.bw_shortterm.max(undo.bw_shortterm);
        model.inflight_shortterm = model.inflight_shortterm.max(undo.inflight_shortterm);
        model.inflight_longterm = model.inflight_longterm.max(undo.inflight_longterm);
        match undo.state {
            Some(State::Startup) if self.state != State::Startup => {
                self.full_bw.reached = false;
                if self.state != State::ProbeRtt {
                    self.enter_startup();
                }
            }
            Some(State::ProbeBwUp) if !matches!(self.state, State::ProbeBwUp | State::ProbeRtt) => {
                self.start_probe_bw_refill();
            }
            _ => {}
        }
    }
}

// From the model to pacing rate and window.

/// The round trip before one is known (draft, "Pacing Rate").
const NOMINAL_RTT: Span = Span::from_millis(1);

/// `C.pacing_rate`.
#[derive(Clone, Debug)]
struct PacingControl {
    bytes_per_second: f64,
    /// The rate is based on a round trip that was measured.
    has_seen_rtt: bool,
}

impl PacingControl {
    fn new() -> PacingControl {
        PacingControl { bytes_per_second: 0.0, has_seen_rtt: false }
    }

    fn rate(&self) -> Rate {
        let bits = ((self.bytes_per_second * 8.0) as u64).clamp(1, Rate::MAX.as_bps());
        Rate::from_bps(bits).unwrap_or(Rate::MAX)
    }

    /// `C.send_quantum`, bytes.
    fn send_quantum(&self, mss: u64) -> u64 {
        ((self.bytes_per_second * 0.001) as u64).min(64 << 10).max(2 * mss)
    }
}

impl Bbr {
    /// `InitPacingRate`.
    fn init_pacing_rate(&mut self, srtt: Option<Span>) {
        let srtt = srtt.filter(|srtt| *srtt > Span::ZERO);
        self.pacing.has_seen_rtt = srtt.is_some();
        let nominal_bandwidth = self.initial_cwnd as f64 / srtt.unwrap_or(NOMINAL_RTT).as_secs_f64();
        self.pacing.bytes_per_second = self.config.startup_pacing_gain * nominal_bandwidth;
    }

    /// The first round trip is known.
    fn see_srtt(&mut self, srtt: Option<Span>) {
        if !self.pacing.has_seen_rtt && srtt.is_some_and(|srtt| srtt > Span::ZERO) {
            self.init_pacing_rate(srtt);
        }
    }

    /// `pacing_gain`.
    fn pacing_gain(&self) -> f64 {
        match self.state {
            State::Startup => self.config.startup_pacing_gain,
            State::Drain => self.config.drain_pacing_gain,
            State::ProbeBwDown => self.config.probe_down_pacing_gain,
            State::ProbeBwUp => self.config.probe_up_pacing_gain,
            State::ProbeBwCruise | State::ProbeBwRefill | State::ProbeRtt => 1.0,
        }
    }

    /// `cwnd_gain`.
    fn cwnd_gain(&self) -> f64 {
        match self.state {
            State::ProbeBwUp => self.config.probe_up_cwnd_gain,
            State::ProbeRtt => self.config.probe_rtt_cwnd_gain,
            _ => self.config.default_cwnd_gain,
        }
    }

    /// `SetPacingRate`.
    fn set_pacing_rate(&mut self) {
        self.set_pacing_rate_with_gain(self.pacing_gain());
    }

    /// `SetPacingRateWithGain`. Until the bandwidth is found the rate does not fall.
    fn set_pacing_rate_with_gain(&mut self, gain: f64) {
        let rate = gain * self.model.bw * (100.0 - self.config.pacing_margin_percent) / 100.0;
        if self.full_bw.reached || rate > self.pacing.bytes_per_second {
            self.pacing.bytes_per_second = rate;
        }
    }

    /// `SetCwnd`.
    fn set_cwnd(&mut self, rs: &Sample) {
        let max_inflight = self.max_inflight();
        let grown = self.window.cwnd.saturating_add(rs.newly_acked).min(Window::MAX);
        if self.full_bw.reached {
            self.window.cwnd = grown.min(max_inflight);
        } else if self.window.cwnd < max_inflight || self.delivered < self.initial_cwnd {
            self.window.cwnd = grown;
        }
        self.window.cwnd = self.window.cwnd.max(self.min_pipe_cwnd());
        if self.state == State::ProbeRtt {
            self.window.cwnd = self.window.cwnd.min(self.probe_rtt_cwnd());
        }
        self.bound_cwnd_for_model();
    }

    /// `ProbeRTTCwnd`: bytes.
    fn probe_rtt_cwnd(&self) -> u64 {
        self.bdp_multiple(self.model.bw, self.config.probe_rtt_cwnd_gain).max(self.min_pipe_cwnd())
    }

    /// `BoundCwndForModel`.
    fn bound_cwnd_for_model(&mut self) {
        let longterm = match self.state {
            State::ProbeBwDown | State::ProbeBwRefill | State::ProbeBwUp => self.model.inflight_longterm,
            State::ProbeBwCruise | State::ProbeRtt => self.inflight_with_headroom(),
            State::Startup | State::Drain => UNBOUNDED,
        };
        let cap = longterm.min(self.model.inflight_shortterm).max(self.min_pipe_cwnd());
        self.window.cwnd = self.window.cwnd.min(cap);
    }
}

#[cfg(test)]
mod tests;
