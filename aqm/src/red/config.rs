//! The parameters of RED.

use ackclock_units::parameter::{Domain, Setting, Value};
use ackclock_units::{Rate, Span, configuration, maths};

use super::linux::{Damping, weight_of};
use crate::discipline::{Discipline, MAX, PROBABILITY};

const MANUAL: &str = "tc-red(8)";

/// Problems with the average.
pub(crate) const NO_WEIGHT: &str = "no weight of the average lets this burst through: try a larger burst or avpkt";
pub(crate) const TOO_SLOW: &str = "bandwidth is too low for packets of avpkt bytes";

const SIZES: Domain = Domain::Bytes(1, MAX);
const BURST: Domain = Domain::Whole(1, MAX, "packets");

configuration! {
/// Parameters of a RED queue. What is `None` is derived as `tc` does.
#[derive(Clone, Debug, PartialEq)]
pub struct RedConfig {
    /// The most bytes that wait; further packets are refused. Default: 400,000, the example of
    /// tc-red(8) (tc requires it).
    pub limit: u64 = 400_000 => (SIZES, MANUAL);
    /// The average queue in bytes from which on packets are marked. Default: a third of `max`.
    pub min: Option<u64> = None => (SIZES, MANUAL, derived "a third of `max`");
    /// The average queue in bytes from which on every packet is marked. Default: three times `min`,
    /// or a quarter of `limit` if that is not given either.
    pub max: Option<u64> = None => (SIZES, MANUAL, derived "three times `min`, else a quarter of `limit`");
    /// Bytes of an average packet. Default: 1000, the example of tc-red(8) (tc requires it).
    pub avpkt: u32 = 1000 => (Domain::Bytes(1, 1 << 20), MANUAL);
    /// Packets that an empty queue takes at once before the average reaches `min`: the weight of
    /// the average follows from it. Default: (2 `min` + `max`) / (3 `avpkt`).
    pub burst: Option<u32> = None => (BURST, MANUAL, derived "(2 `min` + `max`) / (3 `avpkt`)");
    /// Probability to mark when the average has reached `max`. Default: 0.02.
    pub probability: f64 = 0.02 => (PROBABILITY, MANUAL);
    /// Rate of the link: how many packets would have passed while there was no queue. Default: 10
    /// Mbit/s.
    pub bandwidth: Rate = const { Rate::from_bps(10_000_000).unwrap() } => (Domain::Rate, MANUAL);
    /// Mark packets that can carry a mark instead of dropping them. Default: off.
    pub ecn: bool = false => (Domain::Flag, MANUAL);
    /// With `ecn`: drop every packet from `max` on, those that could carry a mark as well. Default:
    /// off.
    pub harddrop: bool = false => (Domain::Flag, MANUAL);
    /// With `ecn`: take packets in that cannot carry a mark instead of dropping them. Default: off.
    pub nodrop: bool = false => (Domain::Flag, MANUAL);
    /// Move the probability at `max` (Adaptive RED). Default: off.
    pub adaptive: Option<RedAdaptive> = None => (feature "Floyd, Gummadi, Shenker 2001");
    /// Follow the authors' law in place of Linux's. Default: off.
    pub floyd: Option<RedFloyd> = None => (feature "Floyd, Jacobson 1993; ns-2");
} problem
}

const PAPER: &str = "Floyd, Gummadi, Shenker 2001, figure 1";
const BOTTOM: Domain = Domain::OrName("automatic", &PROBABILITY);

configuration! {
/// Adaptive RED (Floyd, Gummadi, Shenker 2001, figure 1; the defaults are those of the paper and of
/// Linux's `adaptive`).
#[derive(Clone, Debug, PartialEq)]
pub struct RedAdaptive {
    /// Added to the probability if the average is above the target range, but no more than a
    /// quarter of it. Default: 0.01.
    pub alpha: f64 = 0.01 => (PROBABILITY, PAPER);
    /// Multiplies the probability if the average is below the target range. Default: 0.9.
    pub beta: f64 = 0.9 => (PROBABILITY, PAPER);
    /// Time between two updates. Default: 500 ms.
    pub interval: Span = Span::from_millis(500) => (Domain::Time { positive: true }, PAPER);
    /// Above this the probability is not raised. Default: 0.5.
    pub top: f64 = 0.5 => (PROBABILITY, PAPER);
    /// Below this the probability is not lowered. Default: 0.01.
    pub bottom: RedBottom = RedBottom::Fixed(0.01) =>
        (BOTTOM, "Floyd, Gummadi, Shenker 2001, figure 1; ns-2 `bottom_`");
}
}

/// The lowest probability of Adaptive RED.
#[derive(Clone, Copy, Debug, PartialEq)]
pub enum RedBottom {
    /// This number.
    Fixed(f64),
    /// 0.01, but no more than one mark in a window of packets of 1000 bytes that fills the link
    /// over 100 ms, that is 80,000 over its bits per second (ns-2's `bottom_` of 0).
    Automatic,
}

impl RedBottom {
    /// The number, on a link of `bandwidth`.
    pub(super) fn at(self, bandwidth: Rate) -> f64 {
        match self {
            RedBottom::Fixed(bottom) => bottom,
            RedBottom::Automatic => (80_000.0 / bandwidth.as_bps() as f64).min(0.01),
        }
    }
}

const BYTEMODE: &str = "Floyd, Jacobson 1993 s5; ns-2 `bytes_`";
const WEIGHT: Domain = Domain::NameOrFraction { what: "a weight", names: &["burst", "automatic"] };

configuration! {
/// The law as its authors wrote it, in papers and in ns-2.
#[derive(Clone, Debug, PartialEq)]
pub struct RedFloyd {
    /// From `max` to twice `max` the probability rises from `probability` to 1, and only there
    /// every packet is dropped (Floyd 2000, "Recommendation on using the gentle variant of RED").
    /// Default: on, as in ns-2.
    pub gentle: bool = true => (Domain::Flag, "Floyd 2000; ns-2 `gentle_`");
    /// At least 1/p packets pass between two marks, at most 2/p; else at most 1/p. Default: on, as
    /// in ns-2.
    pub wait: bool = true => (Domain::Flag, "ns-2 `wait_`");
    /// Scale the probability with the size of the packet over `avpkt`, and space marks by bytes
    /// (Floyd, Jacobson 1993 section 5). Default: on, as in ns-2 (RFC 7141 advises against it).
    pub bytemode: bool = true => (Domain::Flag, BYTEMODE);
    /// With `ecn`: mark packets that can carry a mark only while the probability is below this, and
    /// drop them as the others from there on; no average is then too high for chance. `None` marks
    /// at any average that is not. Default: 0.1, as in ns-2.
    pub mark_p: Option<f64> = Some(0.1) => (Domain::OrOff(&PROBABILITY), "ns-2 `mark_p_`");
    /// Weight of a packet in the average. Default: from `burst`.
    pub weight: RedWeight = RedWeight::Burst => (WEIGHT, "Floyd, Gummadi, Shenker 2001 s5.1; ns-2 `q_weight_`");
    /// Derive `min` and `max`, where they are not given, from the queueing delay to settle at:
    /// `min` is half of it, at least five packets, and `max` three times that (Floyd, Gummadi,
    /// Shenker 2001 section 5.2). Default: off.
    pub target_delay: Option<Span> = None =>
        (Domain::OrOff(&Domain::Time { positive: true }), "Floyd, Gummadi, Shenker 2001 s5.2; ns-2 `targetdelay_`");
}
}

/// Weight of a packet in the authors' average.
#[derive(Clone, Copy, Debug, PartialEq)]
pub enum RedWeight {
    /// A power of two that is derived from `burst`, as in `tc`.
    Burst,
    /// This number (Floyd, Jacobson 1993 section 6: 0.002).
    Fixed(f64),
    /// 1 - exp(-1/C) with C the packets that the link carries in a second (Floyd, Gummadi, Shenker
    /// 2001 section 5.1).
    Automatic,
}

/// The smallest log of the weight (tc's `ewma`) that lets `burst` packets into an empty queue
/// before the average reaches `min` packets.
pub(crate) fn ewma(min: f64, burst: f64) -> Option<u32> {
    // include/net/red.h: L + 1 - min/S <= (1 - (1 - W)^L) / W
    let room = burst + 1.0 - min;
    if room < 1.0 {
        return None;
    }
    (1..32).find(|&log| {
        let weight = weight_of(log);
        room <= (1.0 - maths::pow(1.0 - weight, burst)) / weight
    })
}

impl RedConfig {
    /// Adaptive RED with everything automatic (Floyd, Gummadi, Shenker 2001): set `bandwidth` and
    /// no more. The queueing delay settles at 5 ms and the probability starts at 0.1, as in ns-2.
    pub fn adaptive_2001() -> RedConfig {
        let floyd =
            RedFloyd { weight: RedWeight::Automatic, target_delay: Some(Span::from_millis(5)), ..RedFloyd::default() };
        RedConfig {
            probability: 0.1,
            adaptive: Some(RedAdaptive { bottom: RedBottom::Automatic, ..RedAdaptive::default() }),
            floyd: Some(floyd),
            ..RedConfig::default()
        }
    }

    /// `min` and `max` in bytes, as given or derived.
    pub fn thresholds(&self) -> (u64, u64) {
        if let Some(delay) = self.floyd.as_ref().and_then(|floyd| floyd.target_delay) {
            let half = delay.as_secs_f64() * self.bandwidth.as_bps() as f64 / 16.0;
            let min = self.min.unwrap_or((half as u64).max(5 * u64::from(self.avpkt)));
            return (min, self.max.unwrap_or(min.saturating_mul(3)));
        }
        let max = self.max.unwrap_or(self.min.map_or(self.limit / 4, |min| min.saturating_mul(3)));
        (self.min.unwrap_or(max / 3), max)
    }

    /// The binary logarithm of the average's weight, negated (tc's `ewma`): the smallest that lets
    /// `burst` packets into an empty queue before the average reaches `min`. `None` if no weight
    /// does.
    pub fn ewma(&self) -> Option<u32> {
        let (min, max) = self.thresholds();
        let avpkt = u64::from(self.avpkt);
        let derived = (u128::from(min) * 2 + u128::from(max)).checked_div(u128::from(avpkt) * 3)?;
        let burst = self.burst.map_or(derived as f64, f64::from);
        ewma(min as f64 / avpkt as f64, burst)
    }

    /// The problem with these parameters, if there is one.
    pub fn problem(&self) -> Option<&'static str> {
        self.average().err()
    }

    /// The computation of the average, or the problem with these parameters.
    pub(super) fn average(&self) -> Result<Average<'_>, &'static str> {
        let (min, max) = self.thresholds();
        let problem = if self.avpkt == 0 {
            "avpkt must not be zero"
        } else if self.limit > u64::from(u32::MAX) || max > u64::from(u32::MAX) {
            "limit and max must be below 4 GiB"
        } else if min >= max {
            "min must be below max"
        } else if !UNIT.contains(&self.probability) {
            "probability must be within 0 to 1"
        } else if self.nodrop && !self.ecn {
            "nodrop needs ecn"
        } else {
            let average = match &self.floyd {
                None => self.linux_average()?,
                Some(floyd) => Average::Floyd(floyd, self.floyd_weight(floyd)?),
            };
            return self.adaptive.as_ref().map_or(Ok(()), |adaptive| adaptive.check(self.bandwidth)).map(|()| average);
        };
        Err(problem)
    }

    fn burst_weight(&self) -> Result<u32, &'static str> {
        self.ewma().ok_or(NO_WEIGHT)
    }

    fn linux_average(&self) -> Result<Average<'_>, &'static str> {
        let wlog = self.burst_weight()?;
        let damping = Damping::new(wlog, self.avpkt, self.bandwidth);
        Ok(Average::Linux(wlog, damping.ok_or(TOO_SLOW)?))
    }

    fn floyd_weight(&self, floyd: &RedFloyd) -> Result<f64, &'static str> {
        let weight = match floyd.weight {
            RedWeight::Burst => weight_of(self.burst_weight()?),
            RedWeight::Fixed(weight) => weight,
            RedWeight::Automatic => 1.0 - maths::exp(-1.0 / self.packets_per_second()),
        };
        if !floyd.mark_p.is_none_or(|p| UNIT.contains(&p)) {
            Err("mark_p must be within 0 to 1")
        } else if matches!(floyd.weight, RedWeight::Fixed(weight) if !(weight > 0.0 && weight <= 1.0)) {
            Err("weight must be above 0 and at most 1")
        } else {
            Ok(weight)
        }
    }

    /// Packets of `avpkt` bytes that `bandwidth` carries in a second.
    pub(super) fn packets_per_second(&self) -> f64 {
        self.bandwidth.as_bps() as f64 / (8.0 * f64::from(self.avpkt))
    }
}

/// The computation of the average queue, with parameters that were checked.
pub(super) enum Average<'a> {
    /// Linux's average: Wlog, and the damping of idle times.
    Linux(u32, Damping),
    /// The average of RED's authors: the options, and the weight.
    Floyd(&'a RedFloyd, f64),
}

/// The range of a probability.
const UNIT: std::ops::RangeInclusive<f64> = 0.0..=1.0;

impl RedAdaptive {
    fn check(&self, bandwidth: Rate) -> Result<(), &'static str> {
        if self.interval == Span::ZERO {
            Err("interval must not be zero")
        } else if ![self.alpha, self.beta, self.top, self.bottom.at(bandwidth)].iter().all(|p| UNIT.contains(p)) {
            Err("alpha, beta, top and bottom must be within 0 to 1")
        } else {
            Ok(())
        }
    }
}

impl Discipline for RedConfig {
    fn marks(&self) -> bool {
        self.ecn
    }
}

impl Setting for RedBottom {
    fn value(&self) -> Value {
        match self {
            RedBottom::Fixed(bottom) => Value::Number(*bottom),
            RedBottom::Automatic => Value::Name("automatic"),
        }
    }

    fn from_value(value: Value) -> Option<RedBottom> {
        match value {
            Value::Number(bottom) => Some(RedBottom::Fixed(bottom)),
            Value::Name("automatic") => Some(RedBottom::Automatic),
            _ => None,
        }
    }
}

impl Setting for RedWeight {
    fn value(&self) -> Value {
        match self {
            RedWeight::Burst => Value::Name("burst"),
            RedWeight::Fixed(weight) => Value::Number(*weight),
            RedWeight::Automatic => Value::Name("automatic"),
        }
    }

    fn from_value(value: Value) -> Option<RedWeight> {
        match value {
            Value::Name("burst") => Some(RedWeight::Burst),
            Value::Number(weight) => Some(RedWeight::Fixed(weight)),
            Value::Name("automatic") => Some(RedWeight::Automatic),
            _ => None,
        }
    }
}
