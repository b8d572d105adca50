//! A sender and the metrics of its destination ([`Metrics`], with their source).

use ackclock_cc::Window;
use ackclock_units::Span;

use crate::RttRule;
use crate::connection::remembered::Metrics;
use crate::loss::detector::DUP_THRESH;
use crate::send::Sender;

/// The window of a connection without a round trip that can be believed (`tcp_v4_init_sock`),
/// segments.
const UNKNOWN: u64 = 2;

impl Sender {
    /// The connection has come to its end: what it has found out. Its segments are those
    /// of the metrics.
    pub fn remember(&self, metrics: &mut Metrics) {
        let Some(srtt) = self.rtt.srtt().filter(|_| self.rtt.backoff() == 0) else {
            metrics.rtt = Span::ZERO;
            return;
        };
        let mss = u64::from(self.negotiated.mss()).max(1);
        let sizes = [self.cwnd() / mss, self.cc.window().ssthresh / mss];
        metrics.learn(srtt, self.rtt.variation() * 4, self.loss.recovery.state(), sizes);
        let threshold = self.loss.detector.threshold();
        if threshold > metrics.reordering && threshold != DUP_THRESH {
            metrics.reordering = threshold;
        }
    }

    /// `tcp_init_metrics`, once the controller has its initial window.
    pub(super) fn apply(&mut self, metrics: &Metrics) {
        let mss = u64::from(self.negotiated.mss());
        let mut window = self.cc.window();
        if metrics.ssthresh > 0 {
            window.ssthresh = metrics.ssthresh * mss;
        }
        if metrics.reordering > 0 {
            self.loss.detector.reordered_before(u64::from(metrics.reordering));
        }
        let most = if metrics.rtt > Span::ZERO && self.rtt.srtt().is_some() {
            let floor = self.config.min_rto.least();
            let quarters = self.config.transfer.rtt == RttRule::Linux;
            self.rtt.recall(metrics.rtt, metrics.deviation, floor, quarters);
            window.ssthresh
        } else {
            UNKNOWN * mss
        };
        self.cc.take_over(Window { cwnd: window.cwnd.min(most).max(mss), ..window });
    }
}
