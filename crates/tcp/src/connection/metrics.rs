//! The use of a host's remembered metrics of the destination by a connection, and their update.

use ackclock_cc::Window;
use ackclock_units::Span;

use crate::connection::remembered::Metrics;
use crate::loss::detector::DUP_THRESH;
use crate::{Endpoint, MinRto, RttRule};

/// The window of a connection without a round trip that can be believed (`tcp_v4_init_sock`),
/// segments.
const UNKNOWN: u64 = 2;

impl Endpoint {
    /// Once it is established, the connection starts with what is remembered of its destination. To
    /// be called before [`Endpoint::connect`].
    pub fn recall(&mut self, metrics: Metrics) {
        self.recalled = Some(Box::new(metrics));
    }

    /// The connection has come to its end: what it has found out. The segments of `metrics` are
    /// its own.
    pub fn remember(&self, metrics: &mut Metrics) {
        let Some(srtt) = self.sender.rtt.srtt().filter(|_| self.sender.rtt.backoff() == 0) else {
            metrics.rtt = Span::ZERO;
            return;
        };
        let mss = u64::from(self.sender.negotiated.mss()).max(1);
        let sizes = [self.sender.cwnd() / mss, self.sender.cc.window().ssthresh / mss];
        metrics.learn(srtt, self.sender.rtt.variation() * 4, self.sender.loss.recovery.state(), sizes);
        let threshold = self.sender.loss.detector.threshold();
        if threshold > metrics.reordering && threshold != DUP_THRESH {
            metrics.reordering = threshold;
        }
    }

    /// `tcp_init_metrics`, once the controller has its initial window.
    pub(super) fn use_recalled(&mut self) {
        let Some(metrics) = self.recalled.take() else { return };
        let mss = u64::from(self.sender.negotiated.mss());
        let mut window = self.sender.cc.window();
        if metrics.ssthresh > 0 {
            window.ssthresh = metrics.ssthresh * mss;
        }
        if metrics.reordering > 0 {
            self.sender.loss.detector.reordered_before(u64::from(metrics.reordering));
        }
        let most = if metrics.rtt > Span::ZERO && self.sender.rtt.srtt().is_some() {
            let (MinRto::OfTotal(floor) | MinRto::OfVariance(floor)) = self.config.min_rto;
            let quarters = self.config.transfer.rtt == RttRule::Linux;
            self.sender.rtt.recall(metrics.rtt, metrics.deviation, floor, quarters);
            window.ssthresh
        } else {
            UNKNOWN * mss
        };
        self.sender.cc.take_over(Window { cwnd: window.cwnd.min(most).max(mss), ..window });
    }
}
