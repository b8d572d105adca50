//! Westwood+: NewReno that reduces its window to the measured bandwidth instead of to a half.
//!
//! It counts what ACKs report, SACKed or not, per round trip, filters the rate twice, and after a
//! reduction sets threshold and window to this rate times the shortest RTT: what the path carries
//! with an empty queue. A random loss then costs nothing.
//!
//! # Source
//! Linux `net/ipv4/tcp_westwood.c` of 6.1, and the places from which `tcp_ack` calls it. L. A. Grieco, S. Mascolo: Performance evaluation and
//! comparison of Westwood+, New Reno, and Vegas TCP congestion control, ACM CCR 34(2), 2004. A.
//! Dell'Aera, L. A. Grieco, S. Mascolo: Linux 2.4 implementation of Westwood+ TCP with
//! rate-halving, ICC 2004.
//!
//! # Departures
//! - An ACK that arrives while nothing is outstanding counts nothing; in Linux it counts a segment,
//!   since it repeats the last one.

use ackclock_units::parameter::Domain;
use ackclock_units::{Span, Time, configuration};

use crate::algorithm::{Algorithm, Stack};
use crate::domains::TIME;
use crate::{
    Ack, Arrival, CongestionControl, Flight, Needs, NewReno, NewRenoConfig, Signal, SlowStartRules, Verdict, Window,
};

configuration! {
/// Parameters of Westwood+.
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct WestwoodConfig {
    /// The rate is sampled over a round trip, but over this much at least (`TCP_WESTWOOD_RTT_MIN`).
    /// Default 50 ms.
    pub rtt_min: Span = Span::from_millis(50) => (TIME, "Linux `TCP_WESTWOOD_RTT_MIN`");
    /// Tick of the clock, 1 / `HZ` on Linux, which counts bytes per jiffy and loses fractions of one.
    /// Default 0: the clock is exact.
    pub tick: Span = Span::ZERO => (TIME, "Linux `HZ`");
    /// The place of [`Stack::late_ack_events`]: the RTT of an ACK counts with it. Default false.
    pub late_events: bool = false => (Domain::Flag, "Linux `tcp_in_ack_event`");
    /// Settings of NewReno, by which the window grows, and comes down until the end of a recovery.
    pub reno: NewRenoConfig = NewRenoConfig::linux() => (..);
}
}

impl WestwoodConfig {
    /// `now` as the clock shows it.
    fn at(&self, now: Time) -> Time {
        let tick = self.tick.as_nanos().max(1);
        Time::from_nanos(now.as_nanos() / tick * tick)
    }

    /// A time in whole ticks, rounded up (`usecs_to_jiffies`).
    fn whole(&self, span: Span) -> Span {
        Span::from_nanos(span.as_nanos().next_multiple_of(self.tick.as_nanos().max(1)))
    }

    /// The unit of time of the rates: a tick, or a second.
    fn unit(&self) -> u128 {
        u128::from(if self.tick == Span::ZERO { Span::from_secs(1) } else { self.tick }.as_nanos())
    }
}

impl Algorithm for WestwoodConfig {
    fn on(host: &Stack) -> WestwoodConfig {
        let (tick, late_events) = (host.cubic.tick, host.late_ack_events);
        WestwoodConfig { reno: host.newreno, tick, late_events, ..WestwoodConfig::default() }
    }

    fn slow_start_mut(&mut self) -> Option<&mut SlowStartRules> {
        Some(&mut self.reno.slow_start)
    }
}

/// The RTT until one is measured (`TCP_WESTWOOD_INIT_RTT`): no sample of the rate ends before.
const INIT_RTT: Span = Span::from_secs(20);

/// Westwood+ (Linux).
#[derive(Clone, Debug)]
pub struct Westwood {
    config: WestwoodConfig,
    reno: NewReno,
    estimate: Estimate,
}

/// The capacity of the path.
#[derive(Clone, Copy, Debug)]
struct Estimate {
    /// Bytes per unit of time, filtered once (`bw_ns_est`) and twice.
    bw_once: u64,
    bw_est: u64,
    /// When the sample began, and what arrived since.
    since: Time,
    bk: u64,
    /// The first byte that was not acknowledged; `None` before the first ACK.
    snd_una: Option<u64>,
    /// Bytes that duplicate ACKs have told of (`accounted`).
    told: u64,
    /// The last RTT.
    rtt: Span,
    rtt_min: Span,
    /// The shortest RTT starts anew with the next ACK.
    reset_rtt_min: bool,
}

impl Estimate {
    fn new(now: Time) -> Estimate {
        Estimate {
            bw_once: 0,
            bw_est: 0,
            since: now,
            bk: 0,
            snd_una: None,
            told: 0,
            rtt: INIT_RTT,
            rtt_min: INIT_RTT,
            reset_rtt_min: true,
        }
    }

    /// `westwood_update_window`: the sample is over after a round trip.
    fn next_sample(&mut self, now: Time, config: &WestwoodConfig) {
        let now = config.at(now);
        let elapsed = now.since(self.since);
        if self.rtt == Span::ZERO || elapsed <= self.rtt.max(config.rtt_min) {
            return;
        }
        let rate = u128::from(self.bk) * config.unit() / u128::from(elapsed.as_nanos());
        let rate = u64::try_from(rate).unwrap_or(u64::MAX);
        if self.bw_once == 0 && self.bw_est == 0 {
            (self.bw_once, self.bw_est) = (rate, rate);
        } else {
            self.bw_once = filtered(self.bw_once, rate);
            self.bw_est = filtered(self.bw_est, self.bw_once);
        }
        self.bk = 0;
        self.since = now;
    }

    /// `westwood_acked_count`: the bytes that an ACK tells of. A duplicate one tells of a segment,
    /// which the ACK that fills the hole acknowledges once more; a `fast` one tells what it
    /// acknowledges (`westwood_fast_bw`).
    fn count(&mut self, ack: u64, mss: u64, fast: bool) -> u64 {
        let una = *self.snd_una.get_or_insert(ack);
        self.snd_una = Some(ack);
        let acked = ack.saturating_sub(una);
        if fast {
            return acked;
        }
        if acked == 0 {
            self.told = self.told.saturating_add(mss);
            return mss;
        }
        if acked <= mss {
            return acked;
        }
        if self.told >= acked {
            self.told -= acked;
            return mss;
        }
        acked - std::mem::take(&mut self.told)
    }

    /// `tcp_westwood_bw_rttmin`: the bandwidth-delay product in whole segments, at least two, in
    /// bytes.
    fn product(&self, f: &Flight, config: &WestwoodConfig) -> u64 {
        let bytes = u128::from(self.bw_est) * u128::from(self.rtt_min.as_nanos()) / config.unit();
        let bytes = u64::try_from(bytes).unwrap_or(u64::MAX).min(Window::MAX);
        (bytes / f.segment()).max(2).saturating_mul(f.segment())
    }
}

/// `westwood_do_filter`: seven parts of what was, one of what is.
fn filtered(before: u64, now: u64) -> u64 {
    ((7 * u128::from(before) + u128::from(now)) / 8) as u64
}

impl Westwood {
    /// A controller of a connection that is not established yet.
    pub fn new(config: WestwoodConfig) -> Westwood {
        Westwood { config, reno: NewReno::new(config.reno), estimate: Estimate::new(Time::ZERO) }
    }
}

impl CongestionControl for Westwood {
    fn name(&self) -> &'static str {
        "westwood"
    }

    fn window(&self) -> Window {
        self.reno.window()
    }

    fn needs(&self) -> Needs {
        Needs { arrivals: true, ..Needs::default() }
    }

    fn on_established(&mut self, f: &Flight) {
        self.reno.on_established(f);
        self.estimate = Estimate::new(self.config.at(f.now));
    }

    fn take_over(&mut self, window: Window) {
        self.reno.take_over(window);
    }

    fn on_ack(&mut self, f: &Flight, ack: &Ack) -> Verdict {
        self.reno.on_ack(f, ack)
    }

    fn on_signal(&mut self, f: &Flight, signal: Signal) {
        self.reno.on_signal(f, signal);
        let product = self.estimate.product(f, &self.config);
        match signal {
            // CA_EVENT_LOSS.
            Signal::Timeout { repeated: false, .. } => {
                self.reno.set_window(Window { ssthresh: product, ..self.reno.window() });
                self.estimate.reset_rtt_min = true;
            }
            // CA_EVENT_COMPLETE_CWR.
            Signal::RecoveryEnd => self.reno.set_window(Window { cwnd: product, ssthresh: product }),
            _ => {}
        }
    }

    /// `tcp_westwood_pkts_acked` and `tcp_westwood_ack`, in the order of the host.
    fn on_arrival(&mut self, f: &Flight, arrival: &Arrival) {
        let estimate = &mut self.estimate;
        let rtt = arrival.rtt.filter(|&rtt| rtt > Span::ZERO).map(|rtt| self.config.whole(rtt));
        let rtt = rtt.unwrap_or(estimate.rtt);
        if self.config.late_events {
            estimate.rtt = rtt;
        }
        estimate.next_sample(f.now, &self.config);
        // A duplicate has CA_ACK_SLOWPATH from its header where events are late, else from tcp_ack.
        let fast = arrival.plain && (arrival.acked > 0 || self.config.late_events);
        estimate.bk = estimate.bk.saturating_add(estimate.count(arrival.ack, f.segment(), fast));
        let least = if std::mem::take(&mut estimate.reset_rtt_min) { Span::MAX } else { estimate.rtt_min };
        estimate.rtt_min = estimate.rtt.min(least);
        estimate.rtt = rtt;
    }
}

#[cfg(test)]
mod tests;
