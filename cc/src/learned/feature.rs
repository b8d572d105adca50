//! The features of an interval that a learner may see, by name, and their scaling.

use ackclock_units::maths;

use super::monitor::MonitorInterval;

/// Most intervals that a moving statistic may look back.
pub const MAX_LOOK_BACK: usize = 100_000;

macro_rules! measures {
    ($($(#[doc = $doc:literal])+ $variant:ident = $name:literal;)*) => {
        /// A measure of an interval.
        #[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash)]
        pub enum Measure {
            $($(#[doc = $doc])+ $variant,)*
        }

        impl Measure {
            /// All of them, in the order in which they are listed.
            pub const ALL: &'static [Measure] = &[$(Measure::$variant),*];

            /// The number of measures.
            pub const COUNT: usize = Measure::ALL.len();

            /// Its name in specifications.
            pub const fn name(self) -> &'static str {
                match self { $(Measure::$variant => $name,)* }
            }

            /// The meaning, in a sentence.
            pub const fn meaning(self) -> &'static str {
                match self { $(Measure::$variant => concat!($($doc),+),)* }
            }
        }
    };
}

measures! {
    /// Length of the interval, s.
    Interval = "interval_s";
    /// Length of the interval over the shortest RTT of the connection.
    IntervalRatio = "interval_ratio";
    /// Bytes newly known to have arrived, over the interval, bit/s.
    Throughput = "throughput_bps";
    /// The highest throughput of any interval so far, bit/s.
    MaxThroughput = "max_throughput_bps";
    /// Throughput over the highest one so far.
    ThroughputRatio = "throughput_ratio";
    /// Throughput over that of the interval before; 1 if that was zero.
    ThroughputChange = "throughput_change";
    /// The highest throughput so far over that of before this interval; 1 if that was zero.
    MaxThroughputChange = "max_throughput_change";
    /// Bytes of payload sent, retransmissions included, over the interval, bit/s.
    SendRate = "send_rate_bps";
    /// Sending rate over throughput; 1 if nothing arrived, or above 1000.
    SendRatio = "send_ratio";
    /// Bytes declared lost, over the interval, bit/s.
    LostRate = "loss_bps";
    /// Bytes declared lost over bytes declared lost or delivered.
    LossRate = "loss_rate";
    /// Segments declared lost.
    LostPackets = "lost_packets";
    /// Bytes reported with a congestion mark over bytes delivered.
    MarkRate = "mark_rate";
    /// ACKs that arrived.
    Acks = "acks";
    /// ACKs with an RTT sample over the window in segments.
    SamplesRatio = "samples_ratio";
    /// Expiries of the retransmission timer.
    Timeouts = "timeouts";
    /// Mean RTT of the interval; without a sample, the newest one, s.
    Rtt = "rtt_s";
    /// Shortest RTT of the interval; without a sample, the newest one, s.
    RttMin = "rtt_min_s";
    /// Longest RTT of the interval; without a sample, the newest one, s.
    RttMax = "rtt_max_s";
    /// The newest RTT sample, s.
    RttLast = "rtt_last_s";
    /// Smoothed RTT, s.
    Srtt = "srtt_s";
    /// Mean deviation of the RTT (RFC 6298), s.
    RttDeviation = "rtt_deviation_s";
    /// Shortest RTT of the connection, s.
    MinRtt = "min_rtt_s";
    /// Mean RTT less the shortest of the connection, s.
    QueueingDelay = "queueing_delay_s";
    /// Mean RTT of the later half of the samples less that of the earlier half, over the interval.
    LatencyInflation = "latency_inflation";
    /// Mean RTT of the interval over the least such mean of the connection; 1 without samples.
    LatencyRatio = "latency_ratio";
    /// Shortest RTT of the connection over the smoothed one.
    RttRatio = "rtt_ratio";
    /// 1 while the smoothed RTT is at most 1.25 of the shortest; otherwise what it lacks of that.
    DelayMargin = "delay_margin";
    /// Congestion window, segments.
    Cwnd = "cwnd_packets";
    /// Bytes in flight, segments.
    InFlight = "in_flight_packets";
    /// Bytes in flight over the congestion window.
    WindowUse = "window_use";
    /// Pacing rate in force, or the window over the smoothed RTT, bit/s.
    PacingRate = "pacing_rate_bps";
    /// Pacing rate over the highest throughput so far.
    PacingRatio = "pacing_ratio";
    /// The newest sample of the delivery rate (draft-ietf-ccwg-bbr), bit/s.
    DeliveryRate = "delivery_rate_bps";
    /// Highest throughput so far times the shortest RTT, over the window.
    BdpRatio = "bdp_ratio";
    /// Throughput less five times the loss rate, over the highest throughput, times the delay
    /// margin: the reward of Orca.
    Orca = "orca_reward";
    /// Throughput less twice the loss rate, over the highest throughput, squared with its sign,
    /// times the RTT ratio up to 0.8, times 25: the reward of Sage.
    Sage = "sage_reward";
    /// 1 in fast recovery or after a timeout, otherwise 0.
    Recovery = "recovery";
    /// 1 if the application has left the pipe unfilled, otherwise 0.
    AppLimited = "app_limited";
    /// The action before this interval, as it was given; the first number of several.
    Action = "action";
    /// The second number of the action before this interval; 0 if there is one alone.
    SecondAction = "second_action";
    /// Time since the connection opened, s.
    Age = "age_s";
}

impl Measure {
    /// The one called so.
    pub fn by_name(name: &str) -> Option<Measure> {
        Measure::ALL.iter().copied().find(|measure| measure.name() == name)
    }
}

/// The statistic of a measure over several intervals.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Statistic {
    /// Its mean.
    Mean,
    /// The least.
    Min,
    /// The most.
    Max,
}

impl Statistic {
    /// The names in specifications.
    pub const NAMES: [(&'static str, Statistic); 3] =
        [("mean", Statistic::Mean), ("min", Statistic::Min), ("max", Statistic::Max)];
}

/// A measure as it is told: `x * scale`, then `ln(1 + x)` if `log`, then plus `offset`, then
/// limited to `limits`; zero if that is no number.
#[derive(Clone, Debug, PartialEq)]
pub struct Feature<M = Measure> {
    /// The measure.
    pub measure: M,
    /// Over how many intervals back, this one included, if not only this one.
    pub over: Option<(usize, Statistic)>,
    /// The factor.
    pub scale: f64,
    /// `true` if the logarithm is taken.
    pub log: bool,
    /// The summand.
    pub offset: f64,
    /// The least and the most.
    pub limits: [f64; 2],
}

impl<M> Feature<M> {
    /// The measure as it is.
    pub fn plain(measure: M) -> Feature<M> {
        Feature { measure, over: None, scale: 1.0, log: false, offset: 0.0, limits: [-1e9, 1e9] }
    }

    /// The measure times `scale`.
    pub fn scaled(measure: M, scale: f64) -> Feature<M> {
        Feature { scale, ..Feature::plain(measure) }
    }

    /// This feature of another measure.
    pub fn of<N>(self, measure: N) -> Feature<N> {
        let Feature { over, scale, log, offset, limits, .. } = self;
        Feature { measure, over, scale, log, offset, limits }
    }

    /// A value of the measure as it is told.
    pub fn tell(&self, value: f64) -> f64 {
        let scaled = value * self.scale;
        let shown = if self.log { maths::ln(1.0 + scaled.max(0.0)) } else { scaled } + self.offset;
        if shown.is_finite() {
            shown.clamp(self.limits[0], self.limits[1])
        } else {
            0.0f64.clamp(self.limits[0], self.limits[1])
        }
    }
}

/// The measures of one interval, by [`Measure`].
pub type Measures = [f64; Measure::COUNT];

/// Everything that can be told of an interval.
pub(super) fn measures(seen: &MonitorInterval) -> Measures {
    let mut all = [0.0; Measure::COUNT];
    for &measure in Measure::ALL {
        let value = measure.of(seen);
        all[measure as usize] = if value.is_finite() { value } else { 0.0 };
    }
    all
}

/// `of` over `over`, or `otherwise` if that is nothing.
fn share(of: f64, over: f64, otherwise: f64) -> f64 {
    if over > 0.0 { of / over } else { otherwise }
}

impl Measure {
    fn of(self, s: &MonitorInterval) -> f64 {
        match self {
            Measure::Interval => s.interval,
            Measure::IntervalRatio => share(s.interval, s.min_rtt, 0.0),
            Measure::Throughput => s.throughput,
            Measure::MaxThroughput => s.max_throughput,
            Measure::ThroughputRatio => share(s.throughput, s.max_throughput, 0.0),
            Measure::ThroughputChange => share(s.throughput, s.throughput_before, 1.0),
            Measure::MaxThroughputChange => share(s.max_throughput, s.max_throughput_before, 1.0),
            Measure::SendRate => s.send_rate,
            Measure::SendRatio => match share(s.send_rate, s.throughput, 1.0) {
                ratio if ratio < 1000.0 => ratio,
                _ => 1.0,
            },
            Measure::LostRate => s.lost_rate,
            Measure::LossRate => share(s.lost, s.lost + s.delivered, 0.0),
            Measure::LostPackets => s.lost / s.segment,
            Measure::MarkRate => share(s.marked, s.delivered, 0.0),
            Measure::Acks => s.acks,
            Measure::SamplesRatio => share(s.samples * s.segment, s.cwnd, 0.0),
            Measure::Timeouts => s.timeouts,
            Measure::Rtt => s.rtt,
            Measure::RttMin => s.rtt_min,
            Measure::RttMax => s.rtt_max,
            Measure::RttLast => s.rtt_last,
            Measure::Srtt => s.srtt,
            Measure::RttDeviation => s.rtt_deviation,
            Measure::MinRtt => s.min_rtt,
            Measure::QueueingDelay => (s.rtt - s.min_rtt).max(0.0),
            Measure::LatencyInflation => share(s.rtt_increase, s.interval, 0.0),
            Measure::LatencyRatio => {
                if s.samples > 0.0 {
                    share(s.rtt, s.least_mean_rtt, 1.0)
                } else {
                    1.0
                }
            }
            Measure::RttRatio => share(s.min_rtt, s.srtt, 1.0),
            Measure::DelayMargin => delay_margin(s),
            Measure::Cwnd => s.cwnd / s.segment,
            Measure::InFlight => s.in_flight / s.segment,
            Measure::WindowUse => share(s.in_flight, s.cwnd, 0.0),
            Measure::PacingRate => s.pacing_rate,
            Measure::PacingRatio => share(s.pacing_rate, s.max_throughput, 0.0),
            Measure::DeliveryRate => s.delivery_rate,
            Measure::BdpRatio => share(s.max_throughput * s.min_rtt / 8.0, s.cwnd, 0.0),
            Measure::Orca => share(s.throughput - 5.0 * s.lost_rate, s.max_throughput, 0.0) * delay_margin(s),
            Measure::Sage => {
                let net = share(s.throughput - 2.0 * s.lost_rate, s.max_throughput, 0.0);
                let ratio = share(s.min_rtt, s.srtt, 1.0);
                25.0 * net * net.abs() * if ratio >= 0.8 { 1.0 } else { ratio }
            }
            Measure::Recovery => s.recovery,
            Measure::AppLimited => s.app_limited,
            Measure::Action => s.action[0],
            Measure::SecondAction => s.action[1],
            Measure::Age => s.age,
        }
    }
}

/// Orca's delay margin, 1.25.
fn delay_margin(s: &MonitorInterval) -> f64 {
    share(1.25 * s.min_rtt, s.srtt, 1.0).min(1.0)
}
