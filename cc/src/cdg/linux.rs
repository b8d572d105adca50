//! CDG as Linux has it: CAIA's delay gradient with hybrid slow start and proportional rate
//! reduction.
//!
//! It measures the least and the greatest RTT of every round trip, sums their changes over the last
//! few, and backs off with a probability that grows with the sum. Counters against back-offs that
//! do not shorten the queue and a shadow window, which grows as NewReno would, let it coexist with
//! senders that wait for losses.
//!
//! # Source
//! Linux `net/ipv4/tcp_cdg.c` of 6.1, with `tcp_enter_cwr` and `tcp_reno_cong_avoid`. D. Hayes, G.
//! Armitage: Revisiting TCP congestion control using delay gradients, IFIP Networking 2011. The RTT
//! is that of the last segment that an ACK covers or SACKs (`ca_rtt_us` of `tcp_ack_update_rtt`),
//! in recovery too; an endpoint of `linux-6.1` gives that.
//!
//! # Departures
//! - The threshold is never below two segments. Linux takes over a window of one, after a timeout,
//!   when slow start is left or a loss is tolerated then.
//! - A back-off that is decided while the sender rebuilds after a timeout has no effect but to make
//!   the next reduction one by `backoff_beta`, as in Linux; Linux also gives up the possibility of
//!   undoing the timeout's reduction then.
//! - Whether data is missing at the receiver (`sacked_out`) is inferred from the SACK blocks of the
//!   ACK, so that without SACK duplicate ACKs do not reveal it.
//! - Sums and products saturate where Linux's 32 bits overflow: beyond half an hour of delay.

use ackclock_units::parameter::Domain;
use ackclock_units::{Random, Span, configuration};

use crate::algorithm::{Algorithm, Stack};
use crate::domains::MILLION;
use crate::reactions::{
    avoid, established, idled, put_back, recovered, reduce, resume, slow_start, slow_start_applies, timed_out,
};
use crate::{Ack, Arrival, CongestionControl, Flight, Needs, NewRenoConfig, Signal, Verdict, Window};

const MODULE: &str = "Linux `tcp_cdg.c`";

configuration! {
/// Parameters of Linux's CDG, named and with defaults as the module's.
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct LinuxCdgConfig {
    /// Round trips over which gradients are summed, a power of two up to 256. Default 8.
    pub window: u32 = 8 => (Domain::PowerOfTwo(256), MODULE);
    /// The remainder of the window after a back-off, in 1024ths. Default 724, the square root of a
    /// half.
    pub backoff_beta: u32 = 724 => (Domain::Whole(0, 1024, "1/1024"), MODULE);
    /// The factor by which the sum of gradients becomes a probability to back off:
    /// `1 - exp(-backoff_factor * sum / 1 s)`, with the sum in microseconds times 10^6;
    /// `1000 / (G * window)` of the paper's G in milliseconds. Default 42.
    pub backoff_factor: u32 = 42 => (Domain::Whole(0, MILLION, ""), MODULE);
    /// Hybrid slow start: 1 watches ACK trains, 2 delay, 3 both, 0 none. Default 3.
    pub hystart_detect: u32 = 3 => (Domain::Whole(0, 3, ""), MODULE);
    /// Back-offs without effect after which further ones are ignored until the queue shrinks; 0
    /// ignores none. Default 5.
    pub use_ineff: u32 = 5 => (Domain::Whole(0, MILLION, "back-offs"), MODULE);
    /// A loss brings the window down from what NewReno would have reached. Default true.
    pub use_shadow: bool = true => (Domain::Flag, MODULE);
    /// A loss while the queue is not considered full does not reduce the window. Default false.
    pub use_tolerance: bool = false => (Domain::Flag, MODULE);
    /// Slow start, growth, and the window after recovery and idle are Reno's, with these settings.
    pub reno: NewRenoConfig = NewRenoConfig::linux() => (..);
}
}

impl Algorithm for LinuxCdgConfig {
    fn on(host: &Stack) -> LinuxCdgConfig {
        LinuxCdgConfig { reno: host.newreno, ..LinuxCdgConfig::default() }
    }

    fn is_of(host: &Stack) -> bool {
        host.linux
    }
}

/// `hystart_detect`: watch the length of ACK trains.
const ACK_TRAIN: u32 = 1;
/// `hystart_detect`: watch the delay.
const DELAY: u32 = 2;
/// ACKs further apart are of different trains.
const TRAIN_GAP: i64 = 3000;
/// The least delay that counts as a queue, in microseconds.
const LEAST_DELAY: i64 = 125;
/// Round trips after which an increase of delay is believed.
const MIN_SAMPLES: u32 = 8;
/// A fall of the sums by this much, in microseconds, shows that a back-off had an effect.
const EFFECTUAL: i64 = -32;
/// Number of ACKs of one segment in a row that are considered delayed.
const MAX_DELAYED: u32 = 5;

/// Least and greatest, of RTTs or their gradients, in microseconds.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
struct MinMax {
    min: i64,
    max: i64,
}

/// The queue by the gradients.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Queue {
    Unknown,
    NonFull,
    Full,
    /// The window comes down for a delay gradient.
    BackOff,
}

/// CDG (Linux).
#[derive(Clone, Debug)]
pub struct LinuxCdg {
    config: LinuxCdgConfig,
    random: Random,
    state: State,
    /// The window before the last loss or timeout.
    saved: Option<Window>,
    /// The last gradients of RTT, the oldest at `tail`.
    gradients: Vec<MinMax>,
    path: Path,
}

#[derive(Clone, Debug)]
struct State {
    window: Window,
    /// Segments acknowledged that have not become growth (`snd_cwnd_cnt`), in bytes.
    credit: u64,
    /// Between a reduction and the end of its recovery.
    reducing: bool,
}

/// The ACKs' information, and the values derived from it: all that an idle time makes void.
#[derive(Clone, Copy, Debug)]
struct Path {
    /// RTTs of this round trip and of the one before.
    rtt: Option<MinMax>,
    rtt_prev: Option<MinMax>,
    /// The sums of the gradients.
    sum: MinMax,
    /// The number of gradients seen has reached the length of the sums.
    filled: bool,
    tail: usize,
    queue: Queue,
    /// ACKs of one segment that are still to be considered delayed.
    delayed: u32,
    /// The round trip ends when more than this is acknowledged.
    rtt_seq: u64,
    /// The window as NewReno would have it, in bytes.
    shadow_wnd: u64,
    /// Back-offs since one had an effect.
    backoff_cnt: u32,
    /// RTTs of the round trip in slow start.
    sample_cnt: u32,
    /// The least RTT, as slow start has seen it.
    delay_min: Option<i64>,
    /// The last ACK of the train and its first, in microseconds.
    train: Option<(i64, i64)>,
}

impl Path {
    fn new(rtt_seq: u64, shadow_wnd: u64) -> Path {
        Path {
            rtt: None,
            rtt_prev: None,
            sum: MinMax::default(),
            filled: false,
            tail: 0,
            queue: Queue::Unknown,
            delayed: 0,
            rtt_seq,
            shadow_wnd,
            backoff_cnt: 0,
            sample_cnt: 0,
            delay_min: None,
            train: None,
        }
    }

    /// The round trip is over; returns what it measured.
    fn next_round(&mut self, f: &Flight) -> Option<MinMax> {
        self.rtt_seq = f.snd_nxt;
        self.rtt_prev = self.rtt.take();
        self.rtt_prev
    }
}

impl LinuxCdg {
    /// A controller of a connection that is not established yet. `window` is taken as the next
    /// power of two up to 256.
    pub fn new(mut config: LinuxCdgConfig, random: Random) -> LinuxCdg {
        config.window = config.window.clamp(1, 256).next_power_of_two();
        let state = State { window: Window { cwnd: 0, ssthresh: Window::INFINITE }, credit: 0, reducing: false };
        let gradients = vec![MinMax::default(); config.window as usize];
        LinuxCdg { config, random, state, saved: None, gradients, path: Path::new(0, 0) }
    }

    /// Forgets the path (`CA_EVENT_CWND_RESTART`).
    fn forget(&mut self, f: &Flight) {
        self.gradients.fill(MinMax::default());
        self.path = Path::new(f.snd_nxt, self.state.window.cwnd);
    }

    /// `tcp_cdg_hystart_update`: whether slow start is over.
    fn leaves_slow_start(&mut self, f: &Flight) -> bool {
        let path = &mut self.path;
        let least = path.rtt.map(|rtt| rtt.min);
        path.delay_min = path.delay_min.into_iter().chain(least).min();
        let Some(delay_min) = path.delay_min else { return false };
        if self.config.hystart_detect & ACK_TRAIN != 0 {
            let now = micros(f.now.as_nanos());
            match &mut path.train {
                Some((last, first)) if f.cwnd_limited => {
                    if now < last.saturating_add(TRAIN_GAP) {
                        *last = now;
                        if now > first.saturating_add((delay_min / 2).max(LEAST_DELAY)) {
                            return true;
                        }
                    }
                }
                train => *train = Some((now, now)),
            }
        }
        if self.config.hystart_detect & DELAY != 0 {
            if path.sample_cnt < MIN_SAMPLES {
                path.sample_cnt += 1;
            } else {
                let most = (delay_min + delay_min / 8).max(LEAST_DELAY);
                return least.is_some_and(|least| least > most);
            }
        }
        false
    }

    /// `tcp_cdg_grad`: the sum of the gradients after a round trip of `rtt`, in microseconds,
    /// extrapolated while the window of gradients is not full.
    fn gradient(&mut self, rtt: MinMax, before: MinMax) -> i64 {
        let LinuxCdgConfig { window, use_tolerance, .. } = self.config;
        let path = &mut self.path;
        let mut change = MinMax { min: rtt.min - before.min, max: rtt.max - before.max };
        if window > 1 {
            let oldest = std::mem::replace(&mut self.gradients[path.tail], change);
            path.sum.min += change.min - oldest.min;
            path.sum.max += change.max - oldest.max;
            path.tail = (path.tail + 1) % self.gradients.len();
            change = path.sum;
        }
        let mut gradient = if change.min > 0 { change.min } else { change.max };
        if !path.filled {
            if path.tail == 0 {
                path.filled = true;
            } else {
                gradient = gradient * i64::from(window) / path.tail as i64;
            }
        }
        if change.min <= EFFECTUAL || change.max <= EFFECTUAL {
            path.backoff_cnt = 0;
        }
        if use_tolerance {
            // Small variations are none.
            let (min, max) = (nearest(change.min, 64), nearest(change.max, 64));
            if min > 0 && max <= 0 {
                path.queue = Queue::Full;
            } else if (min > 0 && max > 0) || max < 0 {
                path.queue = Queue::NonFull;
            }
        }
        gradient
    }

    /// `tcp_cdg_backoff`: whether this gradient makes it back off.
    fn backs_off(&mut self, gradient: i64) -> bool {
        let LinuxCdgConfig { backoff_factor, use_ineff, .. } = self.config;
        let exponent = gradient.unsigned_abs().saturating_mul(backoff_factor.into());
        if self.draw() <= nexp(u32::try_from(exponent).unwrap_or(u32::MAX)) {
            return false;
        }
        let path = &mut self.path;
        if use_ineff > 0 {
            path.backoff_cnt = path.backoff_cnt.saturating_add(1);
            if path.backoff_cnt > use_ineff {
                return false;
            }
        }
        path.shadow_wnd = path.shadow_wnd.max(self.state.window.cwnd);
        path.queue = Queue::BackOff;
        true
    }

    /// 32 random bits.
    fn draw(&mut self) -> u32 {
        (self.random.bits() >> 32) as u32
    }

    /// `tcp_cdg_ssthresh`: the threshold of a reduction, in bytes.
    fn threshold(&mut self, f: &Flight) -> u64 {
        let mss = f.segment();
        let cwnd = self.state.window.cwnd / mss;
        let path = &mut self.path;
        let segments = if path.queue == Queue::BackOff {
            (cwnd * u64::from(self.config.backoff_beta.min(1024))) >> 10
        } else if path.queue == Queue::NonFull && self.config.use_tolerance {
            cwnd
        } else {
            let shadow = (path.shadow_wnd / mss / 2).min(cwnd);
            path.shadow_wnd = shadow * mss;
            if self.config.use_shadow { shadow.max(cwnd / 2) } else { cwnd / 2 }
        };
        segments.max(2).saturating_mul(mss)
    }

    /// The window comes down to its new threshold.
    fn begin_reduction(&mut self, f: &Flight) {
        let ssthresh = self.threshold(f);
        reduce(&mut self.state.window, ssthresh);
        self.state.credit = 0;
        self.state.reducing = true;
    }
}

impl CongestionControl for LinuxCdg {
    fn name(&self) -> &'static str {
        "cdg"
    }

    fn window(&self) -> Window {
        self.state.window
    }

    fn needs(&self) -> Needs {
        Needs { arrivals: true, ..Needs::default() }
    }

    fn on_established(&mut self, f: &Flight) {
        self.state = State { window: established(f), credit: 0, reducing: false };
        self.saved = None;
        self.forget(f);
    }

    fn take_over(&mut self, window: Window) {
        self.state.window = window;
        self.path.shadow_wnd = window.cwnd;
    }

    fn on_ack(&mut self, f: &Flight, ack: &Ack) -> Verdict {
        if self.state.reducing {
            // Linux asks for no growth while the window comes down (tcp_cong_control); an endpoint
            // without PRR does.
            return Verdict::Continue;
        }
        if self.state.window.in_slow_start() && self.config.hystart_detect != 0 && self.leaves_slow_start(f) {
            self.state.window.ssthresh = self.state.window.cwnd.max(2 * f.segment());
        }
        if f.snd_una > self.path.rtt_seq && self.path.rtt.is_some() {
            let before = self.path.rtt_prev;
            let gradient = match (self.path.next_round(f), before) {
                (Some(rtt), Some(before)) => self.gradient(rtt, before),
                _ => 0,
            };
            self.path.train = None;
            self.path.sample_cnt = 0;
            if gradient > 0 && self.backs_off(gradient) {
                if f.after_timeout {
                    // tcp_enter_cwr: not while the sender rebuilds.
                    return Verdict::Continue;
                }
                // tcp_enter_cwr: what was before is not put back.
                self.saved = None;
                self.begin_reduction(f);
                return Verdict::Reduced;
            }
        }
        let State { window, credit, .. } = &mut self.state;
        let cwnd = window.cwnd;
        if !f.cwnd_limited {
            self.path.shadow_wnd = self.path.shadow_wnd.min(cwnd);
            return Verdict::Continue;
        }
        let mut acked = ack.delivered;
        if slow_start_applies(window, &self.config.reno) {
            acked = slow_start(window, f, acked, &self.config.reno);
        }
        if acked > 0 {
            let per_segment = window.cwnd;
            avoid(window, credit, per_segment, f, acked, &self.config.reno);
        }
        self.path.shadow_wnd = self.path.shadow_wnd.saturating_add(window.cwnd - cwnd);
        Verdict::Continue
    }

    fn on_signal(&mut self, f: &Flight, signal: Signal) {
        match signal {
            Signal::Loss | Signal::Ecn => {
                self.saved = (signal == Signal::Loss).then_some(self.state.window);
                self.begin_reduction(f);
            }
            Signal::Timeout { repeated, kept } => {
                if !repeated || self.saved.is_none() {
                    self.saved = Some(self.state.window);
                }
                let ssthresh = (!repeated).then(|| self.threshold(f));
                timed_out(&mut self.state.window, ssthresh, kept, f);
                self.state.credit = 0;
                self.state.reducing = false;
            }
            Signal::Spurious => {
                if let Some(saved) = self.saved.take() {
                    put_back(&mut self.state.window, &saved);
                    self.state.reducing = false;
                }
            }
            Signal::Resume { cwnd, ssthresh } => resume(&mut self.state.window, cwnd, ssthresh, f),
            Signal::RecoveryEnd => {
                if std::mem::take(&mut self.state.reducing) {
                    recovered(&mut self.state.window, f, &self.config.reno);
                }
                // CA_EVENT_COMPLETE_CWR: gradients across a reduction say nothing.
                self.path.queue = Queue::Unknown;
                self.path.next_round(f);
            }
            Signal::IdleRestart => {
                self.forget(f);
                idled(&mut self.state.window, f, &self.config.reno);
                if !self.config.reno.idle_keeps_credit {
                    self.state.credit = 0;
                }
            }
            Signal::CountedAcks(_) => {}
        }
    }

    /// `tcp_cdg_acked`, with the filter for delayed ACKs.
    fn on_arrival(&mut self, f: &Flight, arrival: &Arrival) {
        let path = &mut self.path;
        let Some(sample) = arrival.rtt.map(span_micros).filter(|&sample| sample > 0) else { return };
        if arrival.sacked_to.is_none() {
            let segments = arrival.acked.div_ceil(f.segment());
            if segments == 1 && path.delayed > 0 {
                // The receiver may have waited: the RTT is only useful as a new minimum.
                if let Some(rtt) = &mut path.rtt {
                    rtt.min = rtt.min.min(sample);
                }
                path.delayed -= 1;
                return;
            }
            if segments > 1 && path.delayed < MAX_DELAYED {
                path.delayed += 1;
            }
        }
        let rtt = path.rtt.get_or_insert(MinMax { min: sample, max: sample });
        *rtt = MinMax { min: rtt.min.min(sample), max: rtt.max.max(sample) };
    }
}

/// Whole microseconds, as far as Linux's 32 bits with a sign go.
fn span_micros(span: Span) -> i64 {
    micros(span.as_nanos()).min(i32::MAX.into())
}

fn micros(nanos: u64) -> i64 {
    (nanos / 1000) as i64
}

/// `DIV_ROUND_CLOSEST`: halves go away from zero.
fn nearest(value: i64, by: i64) -> i64 {
    if value > 0 { (value + by / 2) / by } else { (value - by / 2) / by }
}

/// `nexp_u32`: exp(-x) of x in millionths, in 2^32nds.
fn nexp(x: u32) -> u32 {
    // exp(-y) in 65536ths, less one, for y = 0.000256 and its doubles.
    const DOUBLES: [u16; 16] =
        [65518, 65501, 65468, 65401, 65267, 65001, 64470, 63422, 61378, 57484, 50423, 38795, 22965, 8047, 987, 14];
    if x >> 24 != 0 {
        return 0;
    }
    // 1 - x is close enough to exp(-x) below 256 millionths.
    let low = u32::MAX - (x & 0xff) * (u32::MAX / 1_000_000);
    DOUBLES
        .iter()
        .enumerate()
        .filter(|(bit, _)| (x >> (8 + bit)) & 1 == 1)
        .fold(low, |product, (_, &factor)| ((u64::from(product) * (u64::from(factor) + 1)) >> 16) as u32)
}

#[cfg(test)]
mod tests;
