//! The entries of the four engines of loss recovery: each ACK and each timeout goes to the one of
//! the host.

use ackclock_cc::{EcnUse, Signal};
use ackclock_units::Time;

use crate::loss::AckContext;
use crate::loss::scoreboard::Whole;
use crate::send::Sender;
use crate::stack::config::Episodes;

impl Sender {
    /// The scoreboard has taken the ACK in: the congestion state, the controller and the window
    /// react.
    #[inline]
    pub(crate) fn on_ack(&mut self, context: &AckContext) {
        match self.loss.recovery.episodes {
            Episodes::Linux => self.on_ack_linux(context),
            Episodes::Rfc => self.on_ack_rfc(context),
            Episodes::FreeBsd | Episodes::Berkeley => self.on_ack_bsd(context),
        }
    }

    /// Processes an ACK of `whole` segments, where nothing is lost or reported.
    #[inline]
    pub(crate) fn on_whole_ack(&mut self, now: Time, whole: &Whole) {
        match self.loss.recovery.episodes {
            Episodes::Linux => self.on_whole_ack_linux(now, whole),
            Episodes::Rfc | Episodes::Berkeley => self.on_whole_ack_rfc(now, whole),
            Episodes::FreeBsd => self.on_whole_ack_freebsd(now, whole),
        }
    }

    /// The retransmission timer expired.
    pub(crate) fn on_timeout(&mut self, now: Time) {
        self.stats.timeouts += 1;
        match self.loss.recovery.episodes {
            Episodes::Linux => self.on_timeout_linux(now),
            Episodes::FreeBsd if !self.loss.recovery.whole_control => self.on_timeout_freebsd(now),
            Episodes::Berkeley if !self.loss.recovery.whole_control => self.on_timeout_berkeley(now),
            Episodes::Rfc | Episodes::FreeBsd | Episodes::Berkeley => self.on_timeout_rfc(now),
        }
    }

    /// `tcp_process_tlp_ack` (RFC 8985 section 7.4): did the probe repair a loss?
    pub(super) fn on_ack_of_probe(&mut self, context: &AckContext) {
        let una = self.sequence.una();
        if self.loss.recovery.probe.repairs(una, context) {
            // There was a loss, and the probe has repaired it: the window comes down once. Linux
            // does so by the state CWR, in which DCTCP and Prague reduce by what was marked
            // (`dctcp_ssthresh`, `prague_enter_cwr`).
            let scalable = self.observer.needs.ecn != EcnUse::Data;
            self.start_reduction(context.now, if scalable { Signal::Ecn } else { Signal::Loss });
            self.finish_reduction(context.now);
            self.loss.keep_open(&self.negotiated, &self.sequence, self.now);
        }
    }
}
