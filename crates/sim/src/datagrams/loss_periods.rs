//! Periods of loss among datagrams.

use ackclock_trace::{Histogram, LossBursts};

/// RFC 3357.
#[derive(Clone, Debug, Default)]
pub(crate) struct LossPeriods {
    /// Losses since the last arrival.
    run: u64,
    /// Datagrams since the last loss, this one included; `None` before the first loss.
    since: Option<u64>,
    passed: u64,
    lost: u64,
    lengths: Histogram,
    distances: Histogram,
    between: Histogram,
}

impl LossPeriods {
    /// The next datagram in the order of sending was lost or not.
    pub(crate) fn pass(&mut self, lost: bool) {
        self.passed += 1;
        let distance = self.since.map(|since| since + 1);
        self.since = distance;
        if !lost {
            self.end_run();
            return;
        }
        self.lost += 1;
        self.run += 1;
        self.since = Some(0);
        if let Some(distance) = distance {
            self.distances.add(distance);
            if distance > 1 {
                self.between.add(distance);
            }
        }
    }

    fn end_run(&mut self) {
        if self.run > 0 {
            self.lengths.add(std::mem::take(&mut self.run));
        }
    }

    pub(crate) fn summary(&self) -> LossBursts {
        let mut ended = self.clone();
        ended.end_run();
        let lengths = ended.lengths;
        LossBursts {
            count: lengths.samples(),
            mean_length: (lengths.samples() > 0).then(|| self.lost as f64 / lengths.samples() as f64),
            max_length: lengths.distribution(1.0).max.map_or(0, |longest| longest as u64),
            distance: self.distances.distribution(1.0),
            between: self.between.distribution(1.0),
        }
    }

    /// The share of losses; `None` before anything has passed.
    pub(crate) fn ratio(&self) -> Option<f64> {
        self.share(self.lost)
    }

    /// `part` as a share of all datagrams passed.
    pub(crate) fn share(&self, part: u64) -> Option<f64> {
        (self.passed > 0).then(|| part as f64 / self.passed as f64)
    }

    /// The mean length of loss periods over what independent losses of the same share would give,
    /// 1 / (1 - share) (ITU-T G.107 section 7.5); `None` without losses.
    pub(crate) fn burst_ratio(&self) -> Option<f64> {
        let mean = self.summary().mean_length?;
        let received = self.passed - self.lost;
        // All were lost: one period, as it would be then, too.
        if received == 0 { Some(1.0) } else { Some(mean * received as f64 / self.passed as f64) }
    }
}
