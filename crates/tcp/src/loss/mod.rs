//! The data in flight, its losses, and their repair by the sender.
//!
//! The [`scoreboard`] keeps the segments in flight and what ACKs report of them; the [`detector`]
//! decides when a segment is lost; [`Loss`] owns them with the congestion state. Four engines of the
//! [`Sender`] react to losses, marks and timeouts: `rfc`, as the RFCs have it, `linux`, as Linux
//! does, `freebsd`, as FreeBSD 9 did, and `berkeley`, Tahoe and Reno, which are as BSD was before
//! and share what they can with `freebsd`. All are entered by [`Sender::on_ack`] and
//! [`Sender::on_timeout`]. They share `prr`, the window during a reduction; `undo` takes needless
//! reductions back, and `tail_probe` finds lost tails without a timeout.

mod berkeley;
pub(crate) mod detector;
mod freebsd;
mod in_flight;
mod linux;
mod prr;
mod recovery;
mod rfc;
mod sack_reports;
pub(crate) mod scoreboard;
mod tail_probe;
mod undo;

use std::sync::Arc;

use ackclock_units::Time;

use crate::Config;
use crate::loss::detector::Detector;
use crate::loss::recovery::Resend;
use crate::loss::scoreboard::{Progress, Scoreboard, Whole};
use crate::send::Sender;
use crate::stack::config::Episodes;

pub use self::recovery::{CaState, CaStateTime};
pub(crate) use self::recovery::{Recovery, StateClock};

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

/// The contents of a DSACK (RFC 2883).
#[derive(Clone, Copy, Debug, Default)]
pub(crate) struct DuplicateReport {
    /// Segments that arrived twice, of those that our retransmissions explain.
    pub(crate) segments: u64,
    /// The duplicates are the tail loss probe.
    pub(crate) probe: bool,
}

/// One acceptable ACK, passed from step to step.
#[derive(Clone, Copy, Debug)]
pub(crate) struct AckContext {
    pub(crate) now: Time,
    /// SND.UNA and SND.WND before it.
    pub(crate) una_before: u64,
    pub(crate) window_before: u64,
    /// Something was in flight before it.
    pub(crate) outstanding_before: bool,
    /// [`losses`](scoreboard::Scoreboard::losses) and
    /// [`units_declared_lost`](scoreboard::Scoreboard::units_declared_lost) before it.
    pub(crate) losses_before: u64,
    pub(crate) units_lost_before: u64,
    /// The ACK acknowledges less than an earlier one.
    pub(crate) is_old: bool,
    /// The segment carries data, or a SYN or FIN.
    pub(crate) has_data: bool,
    /// The ACK has data, acknowledges something or moves the window: no duplicate ACK
    /// (`FLAG_NOT_DUP`).
    pub(crate) not_duplicate: bool,
    /// The ACK echoes a mark that calls for a reaction.
    pub(crate) ece: bool,
    pub(crate) duplicates: DuplicateReport,
    /// The ACK's new information about the segments in flight.
    pub(crate) progress: Progress,
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
}

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
}
