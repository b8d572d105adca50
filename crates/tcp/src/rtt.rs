//! Round-trip time and retransmission timeout (RFC 6298), with samples in nanoseconds.

use ackclock_units::Span;

use crate::{Config, MinRto};

/// SRTT, RTTVAR and the timeout that follows from them.
#[derive(Clone, Debug)]
pub(crate) struct RttEstimator {
    srtt: Option<Span>,
    rttvar: Span,
    latest: Option<Span>,
    min: Option<Span>,
    /// Consecutive timeouts: each doubles the timeout (rule 5.5).
    backoff: u32,
}

impl RttEstimator {
    pub(crate) fn new() -> RttEstimator {
        RttEstimator { srtt: None, rttvar: Span::ZERO, latest: None, min: None, backoff: 0 }
    }

    pub(crate) fn srtt(&self) -> Option<Span> {
        self.srtt
    }

    pub(crate) fn latest(&self) -> Option<Span> {
        self.latest
    }

    pub(crate) fn min(&self) -> Option<Span> {
        self.min
    }

    pub(crate) fn backoff(&self) -> u32 {
        self.backoff
    }

    /// Takes a sample in (rules 2.2 and 2.3); `None` gains: alpha 1/8, beta 1/4.
    pub(crate) fn sample(&mut self, rtt: Span) {
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

    /// New data was acknowledged: the back-off ends even if Karn's rule forbids a sample.
    pub(crate) fn progress(&mut self) {
        self.backoff = 0;
    }

    /// The timer expired (rule 5.5).
    pub(crate) fn back_off(&mut self) {
        self.backoff = self.backoff.saturating_add(1);
    }

    /// The timeout with back-off.
    pub(crate) fn rto(&self, config: &Config) -> Span {
        let base = match self.srtt {
            None => config.initial_rto,
            Some(srtt) => {
                let variance = self.rttvar * 4;
                match config.min_rto {
                    MinRto::OfTotal(min) => (srtt + variance).max(min),
                    MinRto::OfVariance(min) => srtt + variance.max(min),
                }
            }
        };
        let base = (base + config.rto_slop).min(config.max_rto);
        // Sixty-four doublings reach any bound.
        Span::from_nanos(base.as_nanos().saturating_mul(1u64 << self.backoff.min(63))).min(config.max_rto)
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
        let mut rtt = RttEstimator::new();
        for _ in 0..200 {
            rtt.sample(MS(100));
        }
        let of = |min_rto| Config { min_rto, ..Config::default() };
        assert_eq!(rtt.rto(&of(MinRto::OfTotal(MS(200)))), MS(200));
        assert_eq!(rtt.rto(&of(MinRto::OfVariance(MS(200)))), MS(300));
        assert_eq!(rtt.rto(&Config { rto_slop: MS(200), ..of(MinRto::OfTotal(MS(30))) }).as_millis(), 300);
    }

    #[test]
    fn back_off_doubles_up_to_the_maximum_and_ends_with_progress() {
        let config = Config::default();
        let mut rtt = RttEstimator::new();
        for expected in [1, 2, 4, 8, 16, 32, 60, 60] {
            assert_eq!(rtt.rto(&config), Span::from_secs(expected));
            rtt.back_off();
        }
        rtt.progress();
        assert_eq!(rtt.rto(&config), Span::from_secs(1));
    }
}
