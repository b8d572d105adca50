//! Autorate: the rate of a shaper that follows the delay of probes.
//!
//! Each response of a reflector gives a delay, and its excess over a baseline that falls fast and
//! rises slowly. Several long delays among the last ones are bufferbloat: the rate falls, by more
//! the longer they are. Without it the rate rises while the shaper is busy, by less the longer
//! delays are, and returns to its base while it is not.
//!
//! # Source
//! cake-autorate (lynxthecat), `cake-autorate.sh` and `defaults.sh` of master, 94238be (after
//! 3.2.1): one direction, with `pinger_method=fping`, which halves the round trip. Its numbers are
//! whole microseconds, kbit/s and parts of 1000 or a million, and are rounded where it rounds them.
//!
//! # Departures
//! - The bytes that have passed the shaper are read at the first response after
//!   `monitor_interval`, and divided by the time that has passed; the script reads them by a
//!   process of its own, and divides by the interval.
//! - Probes do not stop while nothing is sent (`enable_sleep_function`), reflectors are not
//!   replaced, and a path without responses leaves the rate as it is
//!   (`min_shaper_rates_enforcement=0`, the default). The averages that serve these are left out.

use ackclock_units::parameter::Domain;
use ackclock_units::{Rate, Span, Time, configuration};

const SOURCE: &str = "cake-autorate, `defaults.sh`";
const TIME: Domain = Domain::Time { positive: false };
const SHARE: Domain = Domain::Number(0.0, 1.0, "");
const FACTOR: Domain = Domain::Number(0.001, 10.0, "");

configuration! {
/// Parameters of autorate; names and defaults are those of the script without `_shaper_rate`,
/// `_kbps`, `_ms`, and the direction.
#[derive(Clone, Debug, PartialEq)]
pub struct AutorateConfig {
    /// The least rate. Default: 5 Mbit/s.
    pub min_rate: Rate = const { Rate::from_bps(5_000_000).unwrap() }
        => ("least rate": Domain::Rate, SOURCE);
    /// The largest rate. Default: 80 Mbit/s.
    pub max_rate: Rate = const { Rate::from_bps(80_000_000).unwrap() }
        => ("largest rate": Domain::Rate, SOURCE);
    /// The excess delay from which on a response counts as delayed. Default: 30 ms.
    pub delay_thr: Span = Span::from_millis(30)
        => ("one-way delay beyond the baseline from which on a response is late": TIME, SOURCE);
    /// The average excess up to which the rate rises fastest. Default: 10 ms.
    pub max_adjust_up_thr: Span = Span::from_millis(10)
        => ("average excess delay up to which the rate rises fastest": TIME, SOURCE);
    /// The average excess from which on the rate falls fastest. Default: 60 ms.
    pub max_adjust_down_thr: Span = Span::from_millis(60)
        => ("average excess delay from which on the rate falls fastest": TIME, SOURCE);
    /// The time between two measurements of the load. Default: 200 ms.
    pub monitor_interval: Span = Span::from_millis(200)
        => ("time between two measurements of the load": Domain::Time { positive: true }, SOURCE);
    /// The responses that are looked at. Default: 6.
    pub detection_window: u32 = 6
        => ("responses that are looked at": Domain::Whole(1, 1000, ""), SOURCE);
    /// The delayed ones among them that are bufferbloat. Default: 3.
    pub detection_thr: u32 = 3
        => ("late ones among them that are bufferbloat": Domain::Whole(1, 1000, ""), SOURCE);
    /// The weight of a delay above the baseline. Default: 0.001.
    pub alpha_baseline_increase: f64 = 0.001
        => ("weight of a delay above the baseline": SHARE, SOURCE);
    /// The weight of a delay below the baseline. Default: 0.9.
    pub alpha_baseline_decrease: f64 = 0.9
        => ("weight of a delay below the baseline": SHARE, SOURCE);
    /// The factor of the rate at bufferbloat, for an average excess of `delay_thr`. Default: 0.99.
    pub min_adjust_down: f64 = 0.99
        => ("factor of the rate at bufferbloat, for an excess of `delay_thr`": FACTOR, SOURCE);
    /// The factor from `max_adjust_down_thr` on. Default: 0.75.
    pub max_adjust_down: f64 = 0.75
        => ("the same from `max_adjust_down_thr` on": FACTOR, SOURCE);
    /// The factor under high load, for an average excess of `delay_thr`. Default: 1.
    pub min_adjust_up: f64 = 1.0
        => ("factor of the rate under high load, for an excess of `delay_thr`": FACTOR, SOURCE);
    /// The factor up to `max_adjust_up_thr`. Default: 1.04.
    pub max_adjust_up: f64 = 1.04
        => ("the same up to `max_adjust_up_thr`": FACTOR, SOURCE);
    /// The factor under low load above the base rate. Default: 0.99.
    pub adjust_down_load_low: f64 = 0.99
        => ("factor under low load, above the base rate": FACTOR, SOURCE);
    /// The factor under low load below the base rate. Default: 1.01.
    pub adjust_up_load_low: f64 = 1.01
        => ("factor under low load, below the base rate": FACTOR, SOURCE);
    /// The share of the rate above which the load is high. Default: 0.75.
    pub high_load_thr: f64 = 0.75
        => ("share of the rate above which the load is high": SHARE, SOURCE);
    /// The time after bufferbloat in which the rate neither falls again nor rises. Default: 300 ms.
    pub bufferbloat_refractory_period: Span = Span::from_millis(300)
        => ("time after bufferbloat without another step": TIME, SOURCE);
    /// The time between two steps towards the base rate. Default: 1 s.
    pub decay_refractory_period: Span = Span::from_millis(1000)
        => ("time between two steps towards the base rate": TIME, SOURCE);
} problem
}

impl AutorateConfig {
    /// A fault in the combination of parameters.
    pub fn problem(&self) -> Option<&'static str> {
        if self.min_rate > self.max_rate {
            Some("`min_rate` is above `max_rate`")
        } else if self.detection_thr > self.detection_window {
            Some("`detection_thr` is above `detection_window`")
        } else {
            None
        }
    }
}

/// The parts of a number, of which one has so many.
fn parts(number: f64, of_one: f64) -> i64 {
    (number * of_one).round() as i64
}

fn micros(span: Span) -> i64 {
    (span.as_nanos() / 1000) as i64
}

fn kbps(rate: Rate) -> i64 {
    (rate.as_bps() / 1000).max(1) as i64
}

/// The controller of one shaper.
#[derive(Debug)]
pub struct Autorate {
    config: AutorateConfig,
    /// Bits of the largest packet on the wire.
    max_wire_packet_size: i64,
    base: i64,
    rate: i64,
    /// The baseline of each reflector, in microseconds.
    baselines: Vec<i64>,
    /// The last excess delays, in microseconds, and which of them count as delayed.
    deltas: Vec<(i64, bool)>,
    next: usize,
    load_is_high: bool,
    achieved_rate_updated: bool,
    /// The bytes at the last measurement of the load, and its time.
    measured: (u64, Time),
    last_bufferbloat: Time,
    last_decay: Time,
}

impl Autorate {
    /// The initial baseline of the script, 100 ms.
    const BASELINE: i64 = 100_000;

    /// A controller of a shaper that has the rate `base`, with so many reflectors. The largest
    /// packet has `mtu` bytes, as the shaper counts them.
    pub fn new(config: AutorateConfig, base: Rate, reflectors: usize, mtu: u32) -> Autorate {
        let deltas = vec![(0, false); config.detection_window as usize];
        Autorate {
            max_wire_packet_size: 8 * i64::from(mtu),
            base: kbps(base),
            rate: kbps(base),
            baselines: vec![Autorate::BASELINE; reflectors],
            deltas,
            next: 0,
            load_is_high: false,
            achieved_rate_updated: false,
            measured: (0, Time::ZERO),
            last_bufferbloat: Time::ZERO,
            last_decay: Time::ZERO,
            config,
        }
    }

    /// A reflector has responded after `rtt`; `bytes` have passed the shaper since the start.
    /// Returns the new rate, if it is another one.
    pub fn response(&mut self, now: Time, reflector: usize, rtt: Span, bytes: u64) -> Option<Rate> {
        self.measure_load(now, bytes);
        self.measure_delay(reflector, rtt);
        let before = self.rate;
        self.adjust(now);
        self.rate = self.rate.max(kbps(self.config.min_rate)).min(kbps(self.config.max_rate));
        if self.rate == before { None } else { Rate::from_bps(1000 * self.rate as u64) }
    }

    /// The time that the largest packet takes at the present rate, in microseconds.
    fn compensation(&self) -> i64 {
        1000 * self.max_wire_packet_size / self.rate
    }

    fn measure_load(&mut self, now: Time, bytes: u64) {
        let (before, since) = self.measured;
        let passed = now.since(since);
        let interval = self.config.monitor_interval.max(Span::from_nanos(10_000 * self.compensation() as u64));
        if passed < interval {
            return;
        }
        let achieved = 8000 * (bytes - before) as i64 / micros(passed).max(1);
        let percent = 100 * achieved / self.rate;
        self.load_is_high = percent > parts(self.config.high_load_thr, 100.0);
        (self.achieved_rate_updated, self.measured) = (true, (bytes, now));
    }

    fn measure_delay(&mut self, reflector: usize, rtt: Span) {
        let delay = micros(rtt) / 2;
        let Some(baseline) = self.baselines.get_mut(reflector) else { return };
        let alpha =
            if delay >= *baseline { self.config.alpha_baseline_increase } else { self.config.alpha_baseline_decrease };
        let alpha = parts(alpha, 1e6);
        *baseline = (alpha * delay + (1_000_000 - alpha) * *baseline) / 1_000_000;
        let delta = delay - *baseline;
        let is_delayed = delta > micros(self.config.delay_thr) + self.compensation();
        self.deltas[self.next] = (delta, is_delayed);
        self.next = (self.next + 1) % self.deltas.len();
    }

    fn adjust(&mut self, now: Time) {
        let AutorateConfig { bufferbloat_refractory_period, decay_refractory_period, .. } = self.config;
        let delayed = self.deltas.iter().filter(|(_, is_delayed)| *is_delayed).count();
        let is_over = now > self.last_bufferbloat + bufferbloat_refractory_period;
        if delayed >= self.config.detection_thr as usize {
            if is_over {
                self.rate = self.rate * self.down() / 1_000_000;
                (self.last_bufferbloat, self.last_decay) = (now, now);
            }
        } else if self.load_is_high {
            if self.achieved_rate_updated && is_over {
                self.rate = self.rate * self.up() / 1_000_000;
                (self.achieved_rate_updated, self.last_decay) = (false, now);
            }
        } else if now > self.last_decay + decay_refractory_period {
            if self.rate > self.base {
                self.rate = (self.rate * parts(self.config.adjust_down_load_low, 1000.0) / 1000).max(self.base);
            } else if self.rate < self.base {
                self.rate = (self.rate * parts(self.config.adjust_up_load_low, 1000.0) / 1000).min(self.base);
            }
            self.last_decay = now;
        }
    }

    fn average_delta(&self) -> i64 {
        self.deltas.iter().map(|(delta, _)| delta).sum::<i64>() / self.deltas.len() as i64
    }

    /// The factor at bufferbloat, in millionths.
    fn down(&self) -> i64 {
        let compensation = self.compensation();
        let low = micros(self.config.delay_thr) + compensation;
        let high = micros(self.config.max_adjust_down_thr) + compensation;
        let excess = self.average_delta() - low;
        let share = match excess {
            _ if high <= low => 1000,
            excess if excess > 0 => (1000 * excess / (high - low)).min(1000),
            _ => 0,
        };
        let [least, most] = [self.config.min_adjust_down, self.config.max_adjust_down].map(|it| parts(it, 1000.0));
        1000 * least - share * (least - most)
    }

    /// The factor under high load, in millionths.
    fn up(&self) -> i64 {
        let compensation = self.compensation();
        let low = micros(self.config.max_adjust_up_thr) + compensation;
        let high = micros(self.config.delay_thr) + compensation;
        let rest = high - self.average_delta();
        let share = match rest {
            _ if high <= low => 1000,
            rest if rest > 0 => (1000 * rest / (high - low)).min(1000),
            _ => 0,
        };
        let [least, most] = [self.config.min_adjust_up, self.config.max_adjust_up].map(|it| parts(it, 1000.0));
        1000 * least - share * (least - most)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    const MBIT: u64 = 1_000_000;

    fn mbit(mbit: u64) -> Rate {
        Rate::from_bps(mbit * MBIT).unwrap()
    }

    /// Base 20 Mbit/s, one reflector, 1500 bytes: 12000 bits take 600 us.
    fn autorate() -> Autorate {
        Autorate::new(AutorateConfig::default(), mbit(20), 1, 1500)
    }

    /// A response of this delay (half of its round trip) in milliseconds.
    fn respond(law: &mut Autorate, ms: u64, delay: u64, bytes: u64) -> Option<u64> {
        let rate = law.response(Time::from_millis(ms), 0, Span::from_millis(2 * delay), bytes);
        rate.map(|rate| rate.as_bps() / 1000)
    }

    /// The baseline starts at 100 ms; 20 ms give (0.9 * 20 + 0.1 * 100) = 28 ms, 20.8 and 20.08 ms.
    /// Then 120.08 ms raise it by a thousandth of 100 ms: 20.08 + 0.1 = 20.18 ms.
    #[test]
    fn the_baseline_falls_fast_and_rises_slowly() {
        let mut law = autorate();
        let mut baselines = Vec::new();
        for micros in [20_000, 20_000, 20_000, 120_080] {
            law.measure_delay(0, Span::from_micros(2 * micros));
            baselines.push(law.baselines[0]);
        }
        assert_eq!(baselines, [28_000, 20_800, 20_080, 20_180]);
    }

    /// Six responses of 20 ms, then of 120 ms. The baseline is 20 ms and the excess about 100 ms,
    /// above the threshold of 30.6 ms: the third one is bufferbloat. Excesses so far, in
    /// microseconds, with the baseline after each: 99900, 99800, 99700 and three of 0: 49900 on
    /// average. The share is 1000 * (49900 - 30600) / (60600 - 30600) = 643, the factor
    /// 990000 - 643 * 240 = 835680 millionths: 20000 * 0.835680 = 16713 kbit/s.
    #[test]
    fn three_delayed_responses_are_bufferbloat() {
        let mut law = autorate();
        law.baselines[0] = 20_000;
        let responses =
            [(50, 20), (100, 20), (150, 20), (350, 120), (400, 120)].map(|(at, delay)| respond(&mut law, at, delay, 0));
        assert_eq!(responses, [None; 5]);
        assert_eq!((respond(&mut law, 450, 120, 0), law.average_delta()), (Some(16_713), 49_900));
        // The refractory period of 300 ms has to be over.
        assert_eq!([500, 600, 700, 750].map(|at| respond(&mut law, at, 120, 0)), [None; 4]);
        // Six of 120 ms: the average is above 60.6 ms, and the factor is 0.75.
        assert_eq!(respond(&mut law, 751, 120, 0), Some(16_713 * 75 / 100));
    }

    /// 18 Mbit/s are 90 % of the rate, a high load. Without excess the rate rises by 4 % with each
    /// measurement of the load, each 200 ms and not within the first 300 ms: 20800, 21632, 22497
    /// kbit/s. An excess of 20 ms on average: the compensated thresholds are 10 and 30 ms and 533
    /// us (12000 bits at 22497 kbit/s), the share 1000 * (30533 - 20000) / 20000 = 526, the factor
    /// 1000000 + 526 * 40 = 1021040 millionths.
    #[test]
    fn a_high_load_raises_the_rate() {
        let mut law = autorate();
        law.baselines[0] = 20_000;
        let bytes = |ms: u64| 18 * MBIT / 8 * ms / 1000;
        let rates = [100, 200, 301, 400, 500, 600].map(|at| respond(&mut law, at, 20, bytes(at)));
        assert_eq!(rates, [None, None, Some(20_800), Some(21_632), None, Some(22_497)]);
        law.deltas = vec![(20_000, false); 6];
        assert_eq!(law.up(), 1_021_040);
    }

    /// Within a second after the last step nothing changes, then a per cent a second: 20000 * 1.2 =
    /// 24000, 23760, 23522 kbit/s (23760 * 0.99 = 23522.4); 20050 falls to the base, not below.
    #[test]
    fn a_low_load_returns_to_the_base() {
        let mut law = autorate();
        (law.baselines[0], law.rate) = (20_000, 24_000);
        let rates = [900, 1001, 1500, 2002].map(|at| respond(&mut law, at, 20, 0));
        assert_eq!(rates, [None, Some(23_760), None, Some(23_522)]);
        law.rate = 20_050;
        assert_eq!(respond(&mut law, 3003, 20, 0), Some(20_000));
        law.rate = 19_900;
        assert_eq!(respond(&mut law, 4004, 20, 0), Some(20_000));
        assert_eq!(respond(&mut law, 5005, 20, 0), None);
    }

    #[test]
    fn the_rate_stays_within_its_bounds() {
        let config = AutorateConfig { min_rate: mbit(18), max_rate: mbit(20), ..AutorateConfig::default() };
        let mut law = Autorate::new(config, mbit(20), 1, 1500);
        law.baselines[0] = 20_000;
        let rates: Vec<_> = (1..20).filter_map(|n| respond(&mut law, 301 * n, 200, 0)).collect();
        assert_eq!(rates, [18_000]);
        let mut law = Autorate::new(law.config, mbit(20), 1, 1500);
        law.baselines[0] = 20_000;
        assert_eq!((respond(&mut law, 301, 20, 10_000_000), law.load_is_high), (None, true));
    }
}
