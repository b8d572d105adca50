//! HyStart: leaves slow start before the queue overflows, when the ACKs of one round trip arrive
//! for longer than half of the shortest round trip, or when the round trips of one round have
//! become longer.
//!
//! It measures the time of ACKs within a round and the least delay of each round; it decides
//! whether slow start is over. Any controller may use it, through
//! [`SlowStart`](crate::slow_start::SlowStart).
//!
//! # Source
//! Ha, Rhee, "Taming the elephants: new TCP slow start", 2011; Linux `net/ipv4/tcp_cubic.c` of
//! 2.6.32, 3.9 and 6.1 (with the later stable fix that a round begins at any window size).
//!
//! # Departures
//! - Clocks are exact; Linux 3.9 counts milliseconds, 6.1 microseconds. With the rules of 2.6.32
//!   they tick every 4 ms.

use ackclock_units::parameter::Domain;
use ackclock_units::{Span, Time, configuration};

use crate::Flight;
use crate::domains::TIME;

/// The kernel whose HyStart is used: Linux changed its rules between 3.9 and 6.1.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum HystartRules {
    /// The rules of 3.9, with a clock of jiffies (of 4 ms, with `HZ` = 250): ACKs of a train are at
    /// most `ack_delta` apart, rounded up to a jiffy, and delay has increased by 2 to 16 jiffies.
    Linux26,
    /// Delay has increased above the minimum plus a sixteenth of it; the round's delay is the least
    /// of its first eight samples.
    Linux39,
    /// Delay has increased above the minimum plus an eighth of it; the round's delay is the least
    /// of all its samples; the ACK train is allowed up to 1 ms more.
    Linux61,
}

/// The named behaviours of the sets of rules (`tcp_cubic.c`).
#[derive(Clone, Copy, Debug)]
struct Law {
    /// The clock is of jiffies, of 4 ms (`HZ` = 250).
    jiffies: bool,
    /// The end of a round is looked for when the window grows, after the sample
    /// (`bictcp_cong_avoid`); else before it (`hystart_update`).
    late_rounds: bool,
    /// A train may be longer by what offload and pacing make of it (`hystart_ack_delay`).
    allows_for_pacing: bool,
    /// Only the first samples of a round count: the shortest delay may fall below the round's, and
    /// the round seem longer by it.
    first_samples: bool,
    /// The share of the shortest delay by which that of a round has grown when slow start is over
    /// (`HYSTART_DELAY_THRESH`), as a divisor.
    share: u64,
}

impl HystartRules {
    #[inline]
    fn law(self) -> Law {
        const LINUX_3_9: Law =
            Law { jiffies: false, late_rounds: true, allows_for_pacing: false, first_samples: true, share: 16 };
        match self {
            HystartRules::Linux26 => Law { jiffies: true, ..LINUX_3_9 },
            HystartRules::Linux39 => LINUX_3_9,
            HystartRules::Linux61 => {
                Law { jiffies: false, late_rounds: false, allows_for_pacing: true, first_samples: false, share: 8 }
            }
        }
    }
}

configuration! {
/// Parameters of HyStart (Ha, Rhee 2011), named and with defaults as in Linux.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct HystartConfig {
    /// Watch the length of ACK trains. Default true.
    pub ack_train: bool = true => (Domain::Flag, "Linux `hystart_detect`");
    /// Watch the increase of delay. Default true.
    pub delay: bool = true => (Domain::Flag, "Linux `hystart_detect`");
    /// Below this window, in segments, HyStart does not act. Default 16.
    pub low_window: u32 = 16 => (Domain::Whole(0, 1 << 20, "segments"), "Linux `hystart_low_window`");
    /// The most between two ACKs of one train. Default 2 ms.
    pub ack_delta: Span = Span::from_millis(2) => (TIME, "Linux `hystart_ack_delta_us`");
    /// The kernel whose rules apply. Default those of 6.1.
    pub rules: HystartRules = HystartRules::Linux61;
}
}

/// Samples of a round before its delay is judged (`HYSTART_MIN_SAMPLES`).
const MIN_SAMPLES: u32 = 8;
/// Bounds of the increase of delay that counts (`HYSTART_DELAY_MIN`, `HYSTART_DELAY_MAX`).
const DELAY_MIN: Span = Span::from_millis(4);
const DELAY_MAX: Span = Span::from_millis(16);
/// A jiffy with `HZ` = 250.
const JIFFY: Span = Span::from_millis(4);
/// Data that receive offload may hold back: four times the largest aggregate, at most 1 ms of it
/// (`hystart_ack_delay` of 6.1).
const OFFLOAD_BYTES: u64 = 4 * 65_536;
const OFFLOAD_MAX: Span = Span::from_millis(1);

/// The observer of one connection's slow start.
#[derive(Clone, Debug)]
pub(crate) struct Hystart {
    config: HystartConfig,
    round_start: Time,
    /// The round is over when more than this is acknowledged.
    round_end: u64,
    /// The last ACK of the train that began with the round.
    last_ack: Time,
    /// The least delay of the round.
    least: Span,
    samples: u32,
    found: bool,
}

impl Hystart {
    pub(crate) fn new(config: HystartConfig) -> Hystart {
        let never = Time::ZERO;
        Hystart {
            config,
            round_start: never,
            round_end: 0,
            last_ack: never,
            least: Span::MAX,
            samples: 0,
            found: false,
        }
    }

    /// Forgets that slow start was left, and begins a round: at the start of a connection and after
    /// a timeout.
    pub(crate) fn restart(&mut self, f: &Flight) {
        self.found = false;
        self.begin_round(f);
    }

    /// A delay was measured in slow start, before the window grows; `shortest` is the least that is
    /// known. Returns whether slow start is over.
    pub(crate) fn sample(&mut self, f: &Flight, cwnd: u64, delay: Span, shortest: Span) -> bool {
        if self.found {
            return false;
        }
        if !self.config.rules.law().late_rounds && f.snd_una > self.round_end {
            self.begin_round(f);
        }
        if cwnd / f.segment() < u64::from(self.config.low_window) {
            return false;
        }
        let long_train = self.train_is_long(f, cwnd, shortest);
        let longer_delay = self.delay_has_grown(delay, shortest);
        self.found = (self.config.ack_train && long_train) || (self.config.delay && longer_delay);
        self.found
    }

    /// An ACK is about to grow the window by slow start.
    pub(crate) fn growing(&mut self, f: &Flight) {
        if self.config.rules.law().late_rounds && f.snd_una > self.round_end {
            self.begin_round(f);
        }
    }

    fn begin_round(&mut self, f: &Flight) {
        self.round_start = f.now;
        self.last_ack = f.now;
        self.round_end = f.snd_nxt;
        self.least = Span::MAX;
        self.samples = 0;
    }

    /// A train is unbroken since the round began; half of the shortest round trip is about the
    /// delay of one way.
    fn train_is_long(&mut self, f: &Flight, cwnd: u64, shortest: Span) -> bool {
        let Law { jiffies, allows_for_pacing, .. } = self.config.rules.law();
        let allowed = if jiffies { jiffies_up(self.config.ack_delta) } else { self.config.ack_delta };
        if self.since(f.now, self.last_ack) > allowed {
            return false;
        }
        self.last_ack = f.now;
        if jiffies {
            // The train is long as soon as its length reaches the limit.
            let half = shortest.as_nanos().div_ceil(JIFFY.as_nanos()) / 2;
            return self.since(f.now, self.round_start) >= JIFFY * half;
        }
        let allowed = match allows_for_pacing {
            false => shortest / 2,
            // Pacing spreads what is sent in slow start over half a round trip by itself.
            true if f.paced => shortest + offload_allowance(f, cwnd),
            true => (shortest + offload_allowance(f, cwnd)) / 2,
        };
        f.now.since(self.round_start) > allowed
    }

    fn delay_has_grown(&mut self, delay: Span, shortest: Span) -> bool {
        let enough = self.samples >= MIN_SAMPLES;
        if !enough {
            self.samples += 1;
        }
        let Law { jiffies, first_samples, share, .. } = self.config.rules.law();
        if !(enough && first_samples) {
            self.least = self.least.min(delay);
        }
        if jiffies {
            let (least, shortest) = (jiffies_up(self.least), jiffies_up(shortest));
            return enough && least > shortest + (shortest / share).clamp(JIFFY * 2, JIFFY * 16);
        }
        enough && self.least > shortest + (shortest / share).clamp(DELAY_MIN, DELAY_MAX)
    }

    /// Time between two moments by the clock of the rules.
    fn since(&self, now: Time, then: Time) -> Span {
        if !self.config.rules.law().jiffies {
            return now.since(then);
        }
        let tick = JIFFY.as_nanos();
        JIFFY * (now.as_nanos() / tick).saturating_sub(then.as_nanos() / tick)
    }
}

/// `usecs_to_jiffies`: whole ones, rounded up.
fn jiffies_up(time: Span) -> Span {
    JIFFY * time.as_nanos().div_ceil(JIFFY.as_nanos())
}

/// The time of `OFFLOAD_BYTES` at twice the rate of the window, Linux's pacing rate in slow start.
fn offload_allowance(f: &Flight, cwnd: u64) -> Span {
    let Some(srtt) = f.srtt else { return Span::ZERO };
    let nanos = u128::from(srtt.as_nanos()) * u128::from(OFFLOAD_BYTES) / (2 * u128::from(cwnd.max(1)));
    Span::from_nanos(u64::try_from(nanos).unwrap_or(u64::MAX)).min(OFFLOAD_MAX)
}

#[cfg(test)]
mod tests;
