//! The data in flight, its losses, and their repair by the sender.
//!
//! The [`scoreboard`] keeps the segments in flight and what ACKs report of them; the [`detector`]
//! decides when a segment is lost; [`Loss`] owns them with the congestion state. Four engines of the
//! [`Sender`] react to losses, marks and timeouts: `rfc`, as the RFCs have it, `linux`, as Linux
//! does, `freebsd`, as FreeBSD 9 did, and `berkeley`, Tahoe and Reno, which are as BSD was before
//! and share what they can with `freebsd`. All are entered by [`Sender::on_ack`] and
//! [`Sender::on_timeout`]. They share `prr`, the window during a reduction; `undo` takes needless
//! reductions back, and `tail_probe` finds lost tails without a timeout.

mod ack;
mod berkeley;
pub(crate) mod detector;
mod doubt;
mod engines;
mod freebsd;
mod in_flight;
mod linux;
mod prr;
mod recovery;
mod rfc;
mod sack_reports;
pub(crate) mod scoreboard;
mod state;
mod tail_probe;
mod undo;

use std::sync::Arc;

use ackclock_units::Time;

use crate::Config;
use crate::loss::detector::Detector;
use crate::loss::recovery::Resend;
use crate::loss::scoreboard::{Progress, Scoreboard};
use crate::stack::config::Episodes;

pub(crate) use self::ack::{AckContext, DuplicateReport};
pub(crate) use self::recovery::Recovery;
pub(crate) use self::state::StateClock;
pub use self::state::{CaState, CaStateTime};
pub(crate) use self::tail_probe::Probe;

/// The segments in flight, the losses among them, and the congestion state. Fields that most
/// segments touch lie together.
#[derive(Debug)]
#[repr(C)]
pub struct Loss {
    pub(crate) recovery: Recovery,
    pub(crate) board: Scoreboard,
    pub(crate) detector: Detector,
    pub(crate) states: StateClock,
    /// The endpoint's.
    pub(crate) config: Arc<Config>,
}

impl Loss {
    /// Nothing is in flight yet. Delivery rates are sampled if `samples_rates`; `whole_control` if
    /// the controller rules the window in recovery too.
    pub(crate) fn new(config: Arc<Config>, samples_rates: bool, whole_control: bool) -> Loss {
        let mut board = Scoreboard::new(config.transfer.counts_segments);
        board.sample_rates(samples_rates);
        Loss {
            recovery: Recovery::new(whole_control, config.episodes()),
            board,
            detector: Detector::new(config.loss_detector),
            states: StateClock::default(),
            config,
        }
    }

    /// Where the sender stands.
    #[inline]
    pub fn state(&self) -> CaState {
        self.recovery.state()
    }

    /// The time that the sender spent in each congestion state until `now`.
    pub fn state_time(&self, now: Time) -> CaStateTime {
        self.states.read(now, self.recovery.state())
    }

    /// The segments in flight.
    #[inline]
    pub fn scoreboard(&self) -> &Scoreboard {
        &self.board
    }

    /// Returns `true` if Linux's engine is in use.
    #[inline]
    pub(crate) fn linux_episodes(&self) -> bool {
        self.recovery.episodes == Episodes::Linux
    }

    /// Processes an ACK that rides on data and says nothing.
    #[inline]
    pub(crate) fn on_data_alone(&mut self) {
        if self.linux_episodes() {
            self.recovery.resend = Resend::Hold;
        }
    }

    /// Returns `true` if the retransmission timer starts anew, or stops, once an ACK has been
    /// processed.
    #[inline]
    pub(crate) fn restarts_timer_after(&self, context: &AckContext) -> bool {
        // Linux's engine has set it already, unless nothing is left; else RFC 6298 rules 5.2 and
        // 5.3.
        if self.linux_episodes() { self.board.is_empty() } else { context.progress.acked > 0 }
    }

    /// Returns `true` if the engine of FreeBSD 9, or of Tahoe and Reno, is in use. A controller
    /// that sets the window in every state was unknown to them, and has the engine of the RFCs.
    #[inline]
    pub(crate) fn bsd_episodes(&self) -> bool {
        self.recovery.episodes.of_bsd() && !self.recovery.whole_control
    }

    /// Returns `true` if a retransmission leaves the timer, where it runs.
    #[inline]
    pub(crate) fn leaves_timer(&self) -> bool {
        self.bsd_episodes() && self.recovery.episodes == Episodes::FreeBsd
    }

    /// The tail loss probe.
    #[inline]
    pub(crate) fn probe_mut(&mut self) -> &mut Probe {
        &mut self.recovery.probe
    }

    /// The sender stands there from now on.
    #[inline]
    pub(crate) fn enter(&mut self, now: Time, state: CaState) {
        if self.recovery.state() != state {
            self.states.leave(now, self.recovery.state());
            self.recovery.stand(state, self.config.prr);
        }
    }

    /// Declares the data in flight up to `point` lost, and not to congestion
    /// (`tcp_non_congestion_loss_retransmit`).
    pub(crate) fn begin_loss_without_reduction(&mut self, now: Time, point: u64) {
        self.enter(now, CaState::Loss);
        self.recovery.point = point;
        self.recovery.undo.rule_out();
        self.recovery.frto = false;
    }

    /// Returns `true` if an ACK moves the timer: it acknowledges something or reports a segment
    /// sent before the latest (re)transmission of the first segment (`FLAG_SET_XMIT_TIMER`).
    pub(crate) fn restarts_timer(&self, progress: &Progress) -> bool {
        progress.acked > 0
            || match (progress.first_sacked_at, self.board.front()) {
                (Some(sacked), Some(front)) => sacked < front.sent_at && !self.config.transfer.timer.reports_leave_it,
                _ => false,
            }
    }

    /// Returns `true` if every new data segment sent at one time, not only the first, affects the
    /// retransmission timer.
    #[inline]
    pub(crate) fn each_moves_timer(&self) -> bool {
        self.detector.rules().probe_after_timeout
    }
}
