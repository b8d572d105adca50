//! Vegas as Linux has it: the window is held at a size at which a few of its segments wait in the
//! queue.
//!
//! Once per round trip it compares the least RTT in it with the least since data was last sent into
//! an empty path: of `cwnd` segments `cwnd * (rtt - base) / base` are more than the path holds. In
//! slow start more than `gamma` end it, with the window that the path holds and one segment; later
//! the window grows by one below `alpha` and shrinks by one above `beta`. While anything is lost,
//! out of order or marked it is NewReno.
//!
//! # Source
//! Linux `net/ipv4/tcp_vegas.c` of 6.1, and the places from which `tcp_input.c` and `tcp_output.c`
//! call it. The RTT is that of the last segment that an ACK covers or SACKs (`ca_rtt_us` of
//! `tcp_ack_update_rtt`); an endpoint of `linux-6.1` gives that.
//!
//! # Departures
//! - Data missing at the receiver (`TCP_CA_Disorder`) is inferred from the SACK blocks of the ACK, so
//!   that without SACK duplicate ACKs do not reveal it.
//! - Products do not overflow where Linux's 32 bits do: from a window of 4295 segments with a second of
//!   queue on.

use ackclock_units::parameter::Domain;
use ackclock_units::{Span, configuration};

use crate::algorithm::{Algorithm, Stack};
use crate::domains::{MILLION, lowered};
use crate::reactions::slow_start_applies;
use crate::{
    Ack, Arrival, CongestionControl, Flight, Needs, NewReno, NewRenoConfig, Sent, Signal, SlowStartRules, Verdict,
    Window,
};

const MODULE: &str = "Linux `tcp_vegas.c`";

configuration! { self:
/// Parameters of Linux's Vegas, named and with defaults as the module's.
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct LinuxVegasConfig {
    /// Segments in the queue above which the window shrinks. Default 4.
    pub beta: u32 = 4 => (Domain::Whole(1, MILLION, "segments"), MODULE);
    /// Segments in the queue below which it grows. Default 2.
    pub alpha: u32 = 2 => (Domain::Whole(1, lowered(&mut self.alpha, self.beta), "segments"), MODULE);
    /// Segments in the queue above which slow start ends. Default 1.
    pub gamma: u32 = 1 => (Domain::Whole(0, MILLION, "segments"), MODULE);
    /// Settings of NewReno, which reacts to all else.
    pub reno: NewRenoConfig = NewRenoConfig::linux() => (..);
}
}

impl Algorithm for LinuxVegasConfig {
    fn on(host: &Stack) -> LinuxVegasConfig {
        LinuxVegasConfig { reno: host.newreno, ..LinuxVegasConfig::default() }
    }

    fn is_of(host: &Stack) -> bool {
        host.linux
    }

    fn slow_start_mut(&mut self) -> Option<&mut SlowStartRules> {
        Some(&mut self.reno.slow_start)
    }
}

/// The least samples of a round trip from which a decision is made: with fewer all may be of delayed
/// ACKs.
const MIN_SAMPLES: u32 = 3;

/// Vegas (Linux).
#[derive(Clone, Debug)]
pub struct LinuxVegas {
    config: LinuxVegasConfig,
    reno: NewReno,
    /// Nothing is lost, out of order or marked (`doing_vegas_now`).
    enabled: bool,
    /// The window comes down, or a loss is repaired.
    reducing: bool,
    /// The last ACK reported data beyond a gap.
    disorder: bool,
    /// The round trip ends when more than this is acknowledged (`beg_snd_nxt`).
    round_end: u64,
    /// The least RTT since data was last sent into an empty path, us (`baseRTT`).
    base: u64,
    /// The least RTT of this round trip, us, and the number of its samples.
    least: u64,
    samples: u32,
}

impl LinuxVegas {
    /// A controller of a connection that is not established yet.
    pub fn new(config: LinuxVegasConfig) -> LinuxVegas {
        LinuxVegas {
            config,
            reno: NewReno::new(config.reno),
            enabled: true,
            reducing: false,
            disorder: false,
            round_end: 0,
            base: u64::MAX,
            least: u64::MAX,
            samples: 0,
        }
    }

    /// `vegas_enable`: a round trip begins.
    fn enable(&mut self, f: &Flight) {
        self.enabled = true;
        self.round_end = f.snd_nxt;
        self.forget_round();
    }

    fn forget_round(&mut self) {
        self.least = u64::MAX;
        self.samples = 0;
    }

    /// `tcp_vegas_init`, when data is sent into an empty path.
    fn restart(&mut self, f: &Flight) {
        self.base = u64::MAX;
        self.enable(f);
    }

    /// `tcp_vegas_state`: it measures in `TCP_CA_Open` alone.
    fn follow_state(&mut self, f: &Flight) {
        let open = !self.reducing && !self.disorder && !f.after_timeout;
        if !open {
            self.enabled = false;
        } else if !self.enabled {
            self.enable(f);
        }
    }

    /// The once-per-round-trip part of `tcp_vegas_cong_avoid`, with enough samples.
    fn adjust(&mut self, f: &Flight, ack: &Ack) {
        let LinuxVegasConfig { alpha, beta, gamma, ref reno } = self.config;
        let mss = f.segment();
        let mut window = self.reno.window();
        let cwnd = window.cwnd / mss;
        let share = |part: u64, whole: u64| (u128::from(cwnd) * u128::from(part) / u128::from(whole)) as u64;
        let waiting = share(self.least - self.base, self.base);
        // Where slow start still acts at the threshold, tcp_vegas_ssthresh is a segment less.
        let threshold =
            |window: Window| window.ssthresh.min(window.cwnd.saturating_sub(if reno.past_ssthresh { mss } else { 0 }));
        let slow_start = slow_start_applies(&window, reno);
        if slow_start && waiting <= gamma.into() {
            self.reno.slow_start(&Flight { cwnd_limited: true, ..*f }, ack);
            window = self.reno.window();
        } else if slow_start {
            window.cwnd = window.cwnd.min((share(self.base, self.least) + 1) * mss);
            window.ssthresh = threshold(window);
        } else if waiting > beta.into() {
            window.cwnd = window.cwnd.saturating_sub(mss);
            window.ssthresh = threshold(window);
        } else if waiting < alpha.into() {
            window.grow(mss);
        }
        window.cwnd = window.cwnd.max(2 * mss);
        // tcp_current_ssthresh
        let cwnd = window.cwnd / mss;
        window.ssthresh = window.ssthresh.max((cwnd / 2 + cwnd / 4) * mss);
        self.reno.set_window(window);
    }
}

impl CongestionControl for LinuxVegas {
    fn name(&self) -> &'static str {
        "vegas"
    }

    fn window(&self) -> Window {
        self.reno.window()
    }

    fn needs(&self) -> Needs {
        Needs { arrivals: true, ..self.reno.needs() }
    }

    fn on_established(&mut self, f: &Flight) {
        *self = LinuxVegas::new(self.config);
        self.reno.on_established(f);
        self.enable(f);
    }

    fn take_over(&mut self, window: Window) {
        self.reno.take_over(window);
    }

    fn on_ack(&mut self, f: &Flight, ack: &Ack) -> Verdict {
        self.follow_state(f);
        let before = self.window().cwnd;
        if !self.enabled {
            return self.reno.on_ack(f, ack);
        }
        if f.snd_una > self.round_end {
            self.round_end = f.snd_nxt;
            if self.samples < MIN_SAMPLES {
                let _ = self.reno.on_ack(f, ack);
            } else {
                self.adjust(f, ack);
            }
            self.forget_round();
        } else if slow_start_applies(&self.window(), &self.config.reno) {
            self.reno.slow_start(&Flight { cwnd_limited: true, ..*f }, ack);
        }
        if self.window().cwnd < before { Verdict::Trimmed } else { Verdict::Continue }
    }

    fn on_signal(&mut self, f: &Flight, signal: Signal) {
        self.reno.on_signal(f, signal);
        match signal {
            Signal::Loss | Signal::Ecn => self.reducing = true,
            Signal::Timeout { .. } | Signal::RecoveryEnd | Signal::Spurious => self.reducing = false,
            Signal::IdleRestart => self.restart(f),
            Signal::Resume { .. } | Signal::CountedAcks(_) => {}
        }
        match signal {
            Signal::Timeout { .. } => self.enabled = false,
            Signal::IdleRestart => {}
            _ => self.follow_state(f),
        }
    }

    /// `tcp_vegas_pkts_acked`.
    fn on_arrival(&mut self, f: &Flight, arrival: &Arrival) {
        if let Some(rtt) = arrival.rtt {
            let rtt = micros(rtt) + 1;
            self.base = self.base.min(rtt);
            self.least = self.least.min(rtt);
            self.samples += 1;
        }
        self.disorder = arrival.sacked_to.is_some();
        if self.disorder {
            self.follow_state(f);
        }
    }

    /// `CA_EVENT_TX_START`.
    fn on_sent(&mut self, f: &Flight, sent: &Sent) {
        self.reno.on_sent(f, sent);
        self.restart(f);
    }
}

fn micros(span: Span) -> u64 {
    span.as_nanos() / 1000
}

#[cfg(test)]
mod tests;
