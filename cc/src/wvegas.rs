//! wVegas, weighted Vegas of Multipath TCP: the subflows of a connection together keep a few
//! segments queued, each in proportion to its rate, so that load moves until all paths queue for
//! the same time.
//!
//! It measures once per round trip the mean RTT and the least RTT ever seen. `cwnd * (rtt - base) /
//! rtt` is the number of segments that wait. With fewer than `alpha` the window grows by one
//! segment, with more it shrinks by one, and `alpha` is this subflow's part of `total_alpha`. In
//! slow start more than `gamma` end it. A queueing delay that has doubled since its least makes the
//! window come down by half and more, so that the queue drains and the least RTT is seen again.
//!
//! # Source
//! Y. Cao, M. Xu, X. Fu: Delay-based congestion control for multipath TCP, ICNP 2012;
//! draft-xu-mptcp-congestion-control-05. `net/mptcp/mptcp_wvegas.c` of the Linux kernel of
//! multipath-tcp.org, whose names are below.
//!
//! # Departures
//! - RTTs are exact; the kernel has microseconds and adds one to each. Rates and weights are in
//!   floating point, not scaled by 2^16.
//! - A queueing delay of zero is not twice one of zero: in the kernel a window would be halved
//!   whenever the mean RTT is the least one, which happens without noise only.
//! - The rate of a sibling counts once it has been set. The kernel leaves it out until the first
//!   ACK of a round trip, too.
//! - It begins anew after loss recovery and timeouts, as in the kernel, but not whenever ACKs
//!   report reordering (`TCP_CA_Disorder`).
//! - The window does not grow while something else limits the sender (RFC 7661), and one segment
//!   after a timeout does not come up to two. Thresholds are two segments at least.
//! - Kept as in the kernel: the part is set only when at least so many segments wait. One that is
//!   too large stays where the queueing delay doubles before.

use ackclock_units::parameter::Domain;
use ackclock_units::{Span, configuration};

use crate::domains::MILLION;
use crate::reactions::slow_start_applies;
use crate::{
    Ack, CongestionControl, Coupled, Flight, Needs, NewReno, NewRenoConfig, Shared, Signal, Subflow, Verdict, Window,
};

const SOURCE: &str = "multipath-tcp.org `mptcp_wvegas.c`";

configuration! {
/// Parameters of wVegas, by the names of the kernel's module.
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct WvegasConfig {
    /// Segments that a subflow keeps in the queue until its part is known. Default 2.
    pub initial_alpha: u32 = 2 => (Domain::Whole(1, MILLION, "segments"), SOURCE);
    /// Segments that all subflows together keep in queues, two each at least. Default 10.
    pub total_alpha: u32 = 10 => (Domain::Whole(1, MILLION, "segments"), SOURCE);
    /// More segments in the queue than this end slow start. Default 1.
    pub gamma: u32 = 1 => (Domain::Whole(0, MILLION, "segments"), SOURCE);
    /// Slow start, losses, timeouts and idle time are NewReno's, with these settings.
    pub reno: NewRenoConfig = NewRenoConfig::default() => (..);
}
}

/// The least that a subflow's part of `total_alpha` is, segments.
const MIN_ALPHA: u64 = 2;
/// With no more samples in a round trip, it is Reno's.
const FEW_SAMPLES: u64 = 2;

/// wVegas (Cao, Xu, Fu).
#[derive(Clone, Debug)]
pub struct Wvegas {
    config: WvegasConfig,
    reno: NewReno,
    /// The shortest RTT.
    base: Option<Span>,
    /// The state since the last loss; `None` until recovery is over (`doing_wvegas_now`).
    state: Option<State>,
    /// Segments per second when its part was last set; zero while that is not known
    /// (`instant_rate`).
    rate: f64,
    /// Rates of its siblings.
    others: f64,
}

#[derive(Clone, Copy, Debug, PartialEq)]
struct State {
    /// The round trip is over once this byte of the stream is acknowledged (`beg_snd_nxt`).
    ends_at: u64,
    /// Samples in it, and their sum in nanoseconds.
    samples: u64,
    sum: u128,
    /// Segments to keep in the queue.
    alpha: u64,
    /// The part of all rates that its own is.
    weight: f64,
    /// The least queueing delay since the last back-off; zero where there is none (`queue_delay`).
    queue_delay: Span,
}

impl Wvegas {
    /// A controller of a connection that is not established yet.
    pub fn new(config: WvegasConfig) -> Wvegas {
        Wvegas { config, reno: NewReno::new(config.reno), base: None, state: None, rate: 0.0, others: 0.0 }
    }

    /// `wvegas_enable`.
    fn begin(&mut self, f: &Flight) -> State {
        let alpha = u64::from(self.config.initial_alpha);
        self.rate = 0.0;
        State { ends_at: f.snd_nxt, samples: 0, sum: 0, alpha, weight: 1.0, queue_delay: Span::ZERO }
    }

    /// `mptcp_wvegas_cong_avoid`.
    fn act(&mut self, f: &Flight, ack: &Ack, mut state: State) -> State {
        let slow = slow_start_applies(&self.window(), &self.config.reno);
        if f.snd_una <= state.ends_at {
            if slow {
                self.reno.slow_start(f, ack);
            }
            return state;
        }
        let mean = state.sum / u128::from(state.samples.max(1));
        let (rtt, base) = (Span::from_nanos(u64::try_from(mean).unwrap_or(u64::MAX)), self.base.unwrap_or_default());
        if state.samples > FEW_SAMPLES {
            self.round_trip(f, ack, &mut state, slow, rtt.max(base), base);
        } else {
            let _ = self.reno.on_ack(f, ack);
        }
        State { ends_at: f.snd_nxt, samples: 0, sum: 0, ..state }
    }

    /// A round trip of `rtt` is over.
    fn round_trip(&mut self, f: &Flight, ack: &Ack, state: &mut State, slow: bool, rtt: Span, base: Span) {
        let segment = f.segment();
        let least = 2 * segment;
        let mut window = self.window();
        let before = window.cwnd;
        let waiting = part(before, rtt - base, rtt) / segment;
        if slow && waiting <= u64::from(self.config.gamma) {
            self.reno.slow_start(f, ack);
            window = self.window();
        } else if slow {
            let target = part(before, base, rtt) / segment * segment;
            window.cwnd = before.min(target + segment);
            window.ssthresh = window.ssthresh.min(window.cwnd.saturating_sub(segment));
        } else {
            self.avoid(f, state, &mut window, waiting, rtt);
            let queueing = rtt - base;
            if state.queue_delay == Span::ZERO || state.queue_delay > queueing {
                state.queue_delay = queueing;
            }
            if queueing > Span::ZERO && queueing >= state.queue_delay * 2 {
                window.cwnd = part(window.cwnd, base, rtt) / 2 / segment * segment;
                state.queue_delay = Span::ZERO;
            }
        }
        window.cwnd = window.cwnd.max(least.min(before));
        // `tcp_current_ssthresh`.
        window.ssthresh = window.ssthresh.max(window.cwnd / 2 + window.cwnd / 4).max(least);
        self.reno.set_window(window);
    }

    /// Vegas: `alpha` segments are to wait.
    fn avoid(&mut self, f: &Flight, state: &mut State, window: &mut Window, waiting: u64, rtt: Span) {
        let segment = f.segment();
        if waiting >= state.alpha {
            self.rate = (window.cwnd / segment) as f64 / rtt.as_secs_f64();
            // `mptcp_wvegas_weight`.
            let total = self.rate + self.others;
            if self.rate > 0.0 && total > 0.0 {
                state.weight = self.rate / total;
            }
            state.alpha = ((state.weight * f64::from(self.config.total_alpha)) as u64).max(MIN_ALPHA);
        }
        if waiting > state.alpha {
            window.cwnd = window.cwnd.saturating_sub(segment);
            window.ssthresh = window.ssthresh.min(window.cwnd.saturating_sub(segment));
        } else if waiting < state.alpha && f.cwnd_limited {
            window.grow(segment);
        }
    }
}

/// `bytes * part / whole`.
fn part(bytes: u64, part: Span, whole: Span) -> u64 {
    let bytes = u128::from(bytes) * u128::from(part.as_nanos()) / u128::from(whole.as_nanos().max(1));
    u64::try_from(bytes).unwrap_or(u64::MAX)
}

impl CongestionControl for Wvegas {
    fn name(&self) -> &'static str {
        "wvegas"
    }

    fn window(&self) -> Window {
        self.reno.window()
    }

    fn needs(&self) -> Needs {
        Needs { siblings: true, ..Needs::default() }
    }

    fn on_established(&mut self, f: &Flight) {
        *self = Wvegas::new(self.config);
        self.reno.on_established(f);
        self.state = Some(self.begin(f));
    }

    fn take_over(&mut self, window: Window) {
        self.reno.take_over(window);
    }

    fn on_ack(&mut self, f: &Flight, ack: &Ack) -> Verdict {
        // `mptcp_wvegas_pkts_acked`.
        let rtt = ack.rtt.filter(|&rtt| rtt > Span::ZERO);
        self.base = self.base.into_iter().chain(rtt).min();
        if f.after_timeout {
            return self.reno.on_ack(f, ack);
        }
        let before = self.window().cwnd;
        let mut state = match self.state.take() {
            Some(state) => state,
            None => self.begin(f),
        };
        if let Some(rtt) = rtt {
            state.samples += 1;
            state.sum += u128::from(rtt.as_nanos());
        }
        self.state = Some(self.act(f, ack, state));
        if self.window().cwnd < before { Verdict::Trimmed } else { Verdict::Continue }
    }

    fn on_signal(&mut self, f: &Flight, signal: Signal) {
        self.reno.on_signal(f, signal);
        match signal {
            Signal::RecoveryEnd => self.state = Some(self.begin(f)),
            Signal::IdleRestart => {
                // `CA_EVENT_CWND_RESTART`.
                self.base = None;
                self.state = Some(self.begin(f));
            }
            // `mptcp_wvegas_state`: it begins anew when all is well.
            Signal::Loss | Signal::Ecn | Signal::Spurious | Signal::Resume { .. } => self.state = None,
            Signal::Timeout { .. } => (self.state, self.rate) = (None, 0.0),
            Signal::CountedAcks(_) => {}
        }
    }

    fn coupled(&mut self) -> Option<&mut dyn Coupled> {
        Some(self)
    }
}

impl Coupled for Wvegas {
    fn shared(&self) -> Shared {
        Shared { rate: self.rate, ..Shared::default() }
    }

    fn couple(&mut self, own: usize, subflows: &[Subflow]) {
        let others = subflows.iter().enumerate().filter(|&(number, _)| number != own);
        self.others = others.map(|(_, flow)| flow.shared.rate).sum();
    }
}

#[cfg(test)]
mod tests;
