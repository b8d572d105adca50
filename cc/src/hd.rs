//! HD, the Hamilton Institute's delay-based congestion control: NewReno that also halves at random,
//! the more often the longer the queueing delay, up to a threshold; beyond it less often again, so
//! that it holds its own among flows that fill the queue.
//!
//! It measures enhanced round-trip times (`ertt.rs`): what exceeds the shortest is queueing delay.
//! Every ACK with a delay above `queue_min` may halve the window, with a probability that rises
//! linearly to `pmax` at `queue_threshold` and falls to zero at the largest delay that was seen.
//!
//! # Source
//! FreeBSD `sys/netinet/cc/cc_hd.c` of 9.1; `cc_newreno.c` for everything else, of the release of
//! the host's NewReno. Budzisz, Stanojevic, Shorten and Baker, "A strategy for fair coexistence of
//! loss and delay-based congestion control algorithms" (IEEE Communications Letters 13(7), 2009).
//!
//! # Departures
//! - NewReno is the one of `newreno.rs`, with its departures.
//! - Kept as in the reference: congestion recovery ends with the ACK that began it, because nothing
//!   moves its end; the next ACK may halve the window again.

use ackclock_units::parameter::Domain;
use ackclock_units::{Random, Span, configuration};

use crate::domains::{MILLION, PERCENT, POSITIVE, lowered};
use crate::ertt::Ertt;
use crate::reactions::{halved, reduce};
use crate::{
    Ack, Arrival, CongestionControl, Flight, Inspection, Needs, NewReno, NewRenoConfig, Sent, Signal, Verdict, Window,
};

const SYSCTL: &str = "FreeBSD `cc.hd`";

configuration! { self:
/// Parameters of HD, by the names of the sysctls below `net.inet.tcp.cc.hd`.
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct HdConfig {
    /// The queueing delay with the most back-offs, in ticks. Default 20.
    pub queue_threshold: u32 = 20 => (Domain::Whole(1, MILLION, "ticks"), SYSCTL);
    /// The queueing delay up to which there are none, in ticks. Default 5.
    pub queue_min: u32 = 5 => ({
        // The kernel keeps the threshold at or above the delay without back-offs.
        let most = lowered(&mut self.queue_min, self.queue_threshold);
        Domain::Whole(0, most, "ticks")
    }, SYSCTL);
    /// The probability at the threshold that an ACK halves the window, per cent. Default 5.
    pub pmax: u32 = 5 => (PERCENT, SYSCTL);
    /// A tick. Default 1 ms (`hz` 1000).
    pub rtt_unit: Span = Span::from_millis(1) => (POSITIVE, "FreeBSD `hz`");
    /// NewReno's parameters.
    pub reno: NewRenoConfig = NewRenoConfig::default() => (..);
}
}

/// HD (FreeBSD).
#[derive(Clone, Debug)]
pub struct Hd {
    config: HdConfig,
    random: Random,
    reno: NewReno,
    ertt: Ertt,
}

impl Hd {
    /// A controller of a connection that is not established yet; `random` decides on back-offs.
    pub fn new(config: HdConfig, random: Random) -> Hd {
        Hd { config, random, reno: NewReno::new(config.reno), ertt: Ertt::new(config.rtt_unit) }
    }

    fn backs_off(&mut self) -> bool {
        let HdConfig { queue_threshold, queue_min, pmax, .. } = self.config;
        let law = DelayLaw { threshold: queue_threshold, min: queue_min, pmax };
        let Ertt { rtt, min, max, .. } = self.ertt;
        let delay = rtt - min;
        if rtt == 0 || queue_threshold == 0 || delay <= i64::from(queue_min) {
            return false;
        }
        draw(&mut self.random) < law.probability(delay, max - min)
    }
}

impl CongestionControl for Hd {
    fn name(&self) -> &'static str {
        "hd"
    }

    fn window(&self) -> Window {
        self.reno.window()
    }

    fn needs(&self) -> Needs {
        Needs { arrivals: true, departures: true, ..Needs::default() }
    }

    fn on_established(&mut self, f: &Flight) {
        self.reno.on_established(f);
        self.ertt = Ertt::new(self.config.rtt_unit);
    }

    fn take_over(&mut self, window: Window) {
        self.reno.take_over(window);
    }

    fn on_ack(&mut self, f: &Flight, ack: &Ack) -> Verdict {
        if !self.backs_off() {
            return self.reno.on_ack(f, ack);
        }
        let mut window = self.window();
        let ssthresh = halved(&window, f, &self.config.reno);
        reduce(&mut window, ssthresh);
        self.reno.set_window(window);
        Verdict::Trimmed
    }

    fn on_signal(&mut self, f: &Flight, signal: Signal) {
        if let Signal::Timeout { .. } = signal {
            self.ertt.on_timeout();
        }
        self.reno.on_signal(f, signal);
    }

    fn on_arrival(&mut self, f: &Flight, arrival: &Arrival) {
        self.ertt.on_arrival(f, arrival, self.window().cwnd);
    }

    fn on_sent(&mut self, f: &Flight, sent: &Sent) {
        self.ertt.on_sent(f, sent);
        self.reno.on_sent(f, sent);
    }

    fn inspect(&self) -> Inspection<'_> {
        Inspection { enhanced_rtt: Some(self.ertt.enhanced_rtt()), ..Inspection::default() }
    }
}

/// The probability by which a queueing delay reduces the window; of HD and CHD.
#[derive(Clone, Copy, Debug)]
pub(crate) struct DelayLaw {
    pub(crate) threshold: u32,
    pub(crate) min: u32,
    /// Per cent.
    pub(crate) pmax: u32,
}

impl DelayLaw {
    /// `should_backoff`: the probability in units of 2^-31, with the rounding of the reference.
    /// `delay` lies above `min`.
    pub(crate) fn probability(&self, delay: i64, largest: i64) -> u64 {
        let (threshold, min) = (i64::from(self.threshold), i64::from(self.min));
        let most = u64::from(i32::MAX as u32 / 100) * u64::from(self.pmax);
        let share = |width: i64, part: i64| (most / width.max(1) as u64).saturating_mul(part.max(0) as u64);
        match delay.cmp(&threshold) {
            std::cmp::Ordering::Less => share(threshold - min, delay - min),
            std::cmp::Ordering::Equal => most,
            std::cmp::Ordering::Greater => share(largest - threshold, largest - delay),
        }
    }
}

/// 31 random bits, as `random()` gives them.
pub(crate) fn draw(random: &mut Random) -> u64 {
    random.bits() >> 33
}

#[cfg(test)]
mod tests;
