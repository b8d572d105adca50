//! Round-trip time and retransmission timeout (RFC 6298), with samples in nanoseconds.

use std::cell::Cell;

use ackclock_units::Span;

use crate::{Config, MinRto, RttRule};

/// SRTT, RTTVAR and the timeout that follows from them.
#[derive(Clone, Debug)]
pub struct RttEstimator {
    srtt: Option<Span>,
    rttvar: Span,
    latest: Option<Span>,
    min: Option<Span>,
    /// Timeouts since the last sample: each doubles the timeout (rule 5.5).
    backoff: u32,
    /// Timeouts since the last progress of the cumulative ACK.
    timeouts: u32,
    /// By Linux's rule: four times the mean deviation, its largest in this round trip, and where
    /// the round trip ends.
    deviation: Span,
    largest: Span,
    round_end: u64,
    /// The SYN was sent again, so that the handshake gave no sample.
    unmeasured: bool,
    /// The timeout that follows from all this; zero when it is to be computed anew.
    timeout: Cell<Span>,
}

/// The timeout to start from when the SYN's timer has expired (rule 5.7).
const FALLBACK: Span = Span::from_secs(3);

impl RttEstimator {
    pub(crate) fn new() -> RttEstimator {
        RttEstimator {
            srtt: None,
            rttvar: Span::ZERO,
            latest: None,
            min: None,
            backoff: 0,
            timeouts: 0,
            deviation: Span::ZERO,
            largest: Span::ZERO,
            round_end: 0,
            unmeasured: false,
            timeout: Cell::new(Span::ZERO),
        }
    }

    /// The smoothed round trip, once there was a sample.
    #[inline]
    pub fn srtt(&self) -> Option<Span> {
        self.srtt
    }

    /// The latest sample, once there was one.
    #[inline]
    pub fn latest(&self) -> Option<Span> {
        self.latest
    }

    /// The shortest sample, once there was one.
    #[inline]
    pub fn min(&self) -> Option<Span> {
        self.min
    }

    /// A round trip of the path alone.
    #[inline]
    pub(crate) fn note_min(&mut self, rtt: Span) {
        self.min = Some(self.min.map_or(rtt, |min| min.min(rtt)));
    }

    /// Expiries of the timer for the data that is first in line.
    #[inline]
    pub fn timeouts(&self) -> u32 {
        self.timeouts
    }

    /// Doublings of the timeout in force.
    pub(crate) fn backoff(&self) -> u32 {
        self.backoff
    }

    /// The variation of the samples: RTTVAR, or the mean deviation by Linux's rule (`tcpi_rttvar`).
    pub fn variation(&self) -> Span {
        if self.deviation > Span::ZERO { self.deviation / 4 } else { self.rttvar }
    }

    /// Takes a sample in (rules 2.2 and 2.3); `None` gains: alpha 1/8, beta 1/4.
    #[inline]
    pub(crate) fn sample(&mut self, rtt: Span) {
        self.timeout.set(Span::ZERO);
        self.latest = Some(rtt);
        self.min = Some(self.min.map_or(rtt, |min| min.min(rtt)));
        match self.srtt {
            None => {
                self.srtt = Some(rtt);
                self.rttvar = rtt / 2;
            }
            Some(srtt) => {
                let (srtt_ns, rtt_ns) = (srtt.as_nanos(), rtt.as_nanos());
                self.rttvar = Span::from_nanos((self.rttvar.as_nanos() * 3 + srtt_ns.abs_diff(rtt_ns)) / 4);
                self.srtt = Some(Span::from_nanos((srtt_ns * 7 + rtt_ns) / 8));
            }
        }
        self.backoff = 0;
    }

    /// Takes a sample in as Linux does (`tcp_rtt_estimator`): a fall of the RTT adds an eighth of
    /// what a rise would to the deviation. RTTVAR holds four times the variation, so that the
    /// timeout is SRTT + RTTVAR; it is the largest deviation of a round trip and at least `floor`,
    /// and falls by a quarter of the way at the end of one. Data up to `una` is acknowledged, up to
    /// `nxt` sent.
    #[inline(never)]
    pub(crate) fn sample_linux(&mut self, rtt: Span, floor: Span, una: u64, nxt: u64) {
        self.timeout.set(Span::ZERO);
        self.latest = Some(rtt);
        self.min = Some(self.min.map_or(rtt, |min| min.min(rtt)));
        self.backoff = 0;
        let Some(srtt) = self.srtt else {
            self.srtt = Some(rtt);
            self.deviation = rtt * 2;
            self.rttvar = self.deviation.max(floor);
            (self.largest, self.round_end) = (self.rttvar, nxt);
            return;
        };
        let (srtt_ns, rtt_ns, deviation) = (srtt.as_nanos(), rtt.as_nanos(), self.deviation.as_nanos());
        let (distance, quarter) = (srtt_ns.abs_diff(rtt_ns), deviation / 4);
        self.srtt = Some(Span::from_nanos((srtt_ns * 7 + rtt_ns) / 8));
        self.deviation = Span::from_nanos(if distance < quarter {
            deviation - (quarter - distance)
        } else if rtt_ns < srtt_ns {
            deviation + (distance - quarter) / 8
        } else {
            deviation + (distance - quarter)
        });
        if self.deviation > self.largest {
            self.largest = self.deviation;
            self.rttvar = self.rttvar.max(self.largest);
        }
        if una > self.round_end {
            if self.largest < self.rttvar {
                let excess = self.rttvar.as_nanos() - self.largest.as_nanos();
                self.rttvar = Span::from_nanos(self.rttvar.as_nanos() - excess / 4);
            }
            (self.largest, self.round_end) = (floor, nxt);
        }
    }

    /// Adopts the values that earlier connections have measured, where they are larger: the
    /// deviation is four times the mean one, as RTTVAR is if it is in `quarters`.
    pub(crate) fn recall(&mut self, rtt: Span, deviation: Span, floor: Span, quarters: bool) {
        self.timeout.set(Span::ZERO);
        self.srtt = self.srtt.map(|srtt| srtt.max(rtt));
        if !quarters {
            self.rttvar = self.rttvar.max(deviation / 4);
        } else if deviation > self.deviation {
            self.deviation = deviation;
            self.rttvar = deviation.max(floor);
            self.largest = self.rttvar;
        }
    }

    /// New data was acknowledged. The back-off stays until there is a sample (the note after rule
    /// 5.7): an ACK that answers a retransmission does not tell that the timeout is long enough.
    #[inline]
    pub(crate) fn progress(&mut self) {
        self.timeouts = 0;
    }

    /// The handshake is complete; `resent` if it took more than one SYN, and gave no sample then.
    pub(crate) fn established(&mut self, resent: bool) {
        (self.timeouts, self.backoff, self.unmeasured) = (0, 0, resent);
        self.timeout.set(Span::ZERO);
    }

    /// The timer expired (rule 5.5).
    pub(crate) fn back_off(&mut self) {
        self.timeout.set(Span::ZERO);
        self.backoff = self.backoff.saturating_add(1);
        self.timeouts = self.timeouts.saturating_add(1);
    }

    /// A sample that does not end the back-off.
    pub(crate) fn keep_backoff(&mut self, backoff: u32) {
        self.timeout.set(Span::ZERO);
        self.backoff = backoff;
    }

    /// A doubling is taken back (RFC 6069 section 4).
    pub(crate) fn revert_backoff(&mut self) {
        self.timeout.set(Span::ZERO);
        self.backoff = self.backoff.saturating_sub(1);
    }

    /// The timeout with back-off. The settings that it depends on are those of the connection's
    /// whole life.
    #[inline]
    pub(crate) fn rto(&self, config: &Config) -> Span {
        let known = self.timeout.get();
        if known > Span::ZERO {
            return known;
        }
        let timeout = self.computed_rto(config);
        self.timeout.set(timeout);
        timeout
    }

    /// The term that is added to SRTT.
    pub(crate) fn variance(&self, config: &Config) -> Span {
        let variance = match config.transfer.rtt {
            RttRule::Rfc6298 => self.rttvar * 4,
            RttRule::Linux => self.rttvar,
        };
        match config.min_rto {
            MinRto::OfTotal(_) => variance,
            MinRto::OfVariance(min) => variance.max(min),
        }
    }

    /// SRTT and what is added to it, neither bounded nor backed off.
    pub(crate) fn plain_rto(&self, config: &Config) -> Span {
        self.srtt.map_or(config.initial_rto, |srtt| srtt + self.variance(config))
    }

    fn computed_rto(&self, config: &Config) -> Span {
        let base = match self.srtt {
            None if self.unmeasured => config.initial_rto.max(FALLBACK),
            None => config.initial_rto,
            Some(srtt) => match config.min_rto {
                MinRto::OfTotal(min) => (srtt + self.variance(config)).max(min),
                MinRto::OfVariance(_) => srtt + self.variance(config),
            },
        };
        // The granularity of the clock (rule 2.3): a timer for this very instant would expire over
        // and over.
        let base = config.transfer.ticks.whole(base.max(Span::from_nanos(1)).min(config.max_rto));
        // Sixty-four doublings reach any bound. The slop is added to what they give
        // (TCPT_RANGESET).
        let doubled = Span::from_nanos(base.as_nanos().saturating_mul(1u64 << self.backoff.min(63)));
        (doubled + config.rto_slop).min(config.max_rto)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    const MS: fn(u64) -> Span = Span::from_millis;

    #[test]
    fn the_first_and_second_sample_by_hand() {
        let config = Config { min_rto: MinRto::OfTotal(MS(1)), ..Config::default() };
        let mut rtt = RttEstimator::new();
        assert_eq!(rtt.rto(&config), Span::from_secs(1));
        rtt.sample(MS(100));
        // SRTT = 100, RTTVAR = 50, RTO = 100 + 4 * 50.
        assert_eq!(rtt.rto(&config), MS(300));
        rtt.sample(MS(180));
        // RTTVAR = 3/4 * 50 + 1/4 * 80 = 57.5; SRTT = 7/8 * 100 + 1/8 * 180 = 110; RTO = 110 + 230.
        assert_eq!(rtt.srtt(), Some(MS(110)));
        assert_eq!(rtt.rto(&config), MS(340));
    }

    #[test]
    fn the_minimum_bounds_the_whole_or_the_variance() {
        let rto = |config: &Config| {
            let mut rtt = RttEstimator::new();
            for _ in 0..200 {
                rtt.sample(MS(100));
            }
            rtt.rto(config)
        };
        let of = |min_rto| Config { min_rto, ..Config::default() };
        assert_eq!(rto(&of(MinRto::OfTotal(MS(200)))), MS(200));
        assert_eq!(rto(&of(MinRto::OfVariance(MS(200)))), MS(300));
        assert_eq!(rto(&Config { rto_slop: MS(200), ..of(MinRto::OfTotal(MS(30))) }).as_millis(), 300);
    }

    #[test]
    fn the_slop_is_added_to_what_back_off_gives() {
        // tcp_timer_rexmt: TCP_REXMTVAL = max(30, 100), times 1, 2, 4, 8, plus 200, at most 1000.
        let config =
            Config { rto_slop: MS(200), max_rto: MS(1000), min_rto: MinRto::OfTotal(MS(30)), ..Config::default() };
        let mut rtt = RttEstimator::new();
        for _ in 0..200 {
            rtt.sample(MS(100));
        }
        for expected in [300, 400, 600, 1000, 1000] {
            assert_eq!(rtt.rto(&config).as_millis(), expected);
            rtt.back_off();
        }
    }

    #[test]
    fn back_off_doubles_up_to_the_maximum_and_ends_with_a_sample() {
        let config = Config::default();
        let mut rtt = RttEstimator::new();
        for expected in [1, 2, 4, 8, 16, 32, 60, 60] {
            assert_eq!(rtt.rto(&config), Span::from_secs(expected));
            rtt.back_off();
        }
        rtt.progress();
        assert_eq!((rtt.rto(&config), rtt.timeouts()), (Span::from_secs(60), 0));
        rtt.sample(MS(100));
        assert_eq!(rtt.rto(&config), Span::from_secs(1));
    }

    #[test]
    fn a_handshake_with_a_resent_syn_starts_from_three_seconds() {
        // RFC 6298 rule 5.7.
        let mut rtt = RttEstimator::new();
        rtt.back_off();
        rtt.established(true);
        assert_eq!(rtt.rto(&Config::default()), Span::from_secs(3));
        rtt.sample(MS(100));
        assert_eq!(rtt.rto(&Config::default()), Span::from_secs(1));
    }

    #[test]
    fn the_estimator_of_linux_by_hand() {
        let config = Config {
            min_rto: MinRto::OfVariance(MS(200)),
            transfer: crate::TransferRules { rtt: RttRule::Linux, ..Default::default() },
            ..Config::default()
        };
        let mut rtt = RttEstimator::new();
        rtt.sample_linux(MS(100), MS(200), 1, 1001);
        // srtt = 100, mdev = 2 * 100 (four times the deviation of 50), rttvar = max(200, 200).
        assert_eq!((rtt.rto(&config), rtt.variation()), (MS(300), MS(50)));
        rtt.sample_linux(MS(180), MS(200), 501, 1501);
        // mdev = 200 + 80 - 50 = 230, and so rttvar; srtt = 100 + 80 / 8 = 110.
        assert_eq!((rtt.rto(&config), rtt.variation()), (MS(340), Span::from_micros(57_500)));
        rtt.sample_linux(MS(30), MS(200), 701, 1701);
        // A fall by 80: mdev = 230 + (80 - 57.5) / 8 = 232.8125; srtt = 110 - 10 = 100.
        assert_eq!(rtt.rto(&config), MS(100) + Span::from_nanos(232_812_500));
        rtt.sample_linux(MS(100), MS(200), 1002, 2001);
        // mdev = 3/4 of that; the round trip ends with its largest as rttvar, and the next begins
        // at the floor.
        assert_eq!(rtt.rto(&config), MS(100) + Span::from_nanos(232_812_500));
        rtt.sample_linux(MS(100), MS(200), 2002, 3001);
        // rttvar = 232.8125 - (232.8125 - 200) / 4.
        assert_eq!(rtt.rto(&config), MS(100) + Span::from_nanos(224_609_375));
    }
}
