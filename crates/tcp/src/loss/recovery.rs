//! The state of loss recovery, and the window that follows from it.
//!
//! Both engines keep their state here; the fields are visible to the modules of `loss` and to
//! nobody else.

use ackclock_units::Time;

use super::doubt::Undo;
use super::prr::WindowReduction;
use super::tail_probe::Probe;
use crate::CaState;
use crate::Prr;
use crate::stack::config::Episodes;

/// The data that may be sent after an ACK (Linux's `REXMIT_*`).
#[derive(Clone, Copy, Debug, PartialEq, Eq, Default)]
pub(super) enum Resend {
    /// Lost segments, then new data.
    #[default]
    Lost,
    /// Lost segments alone: a timer found them, after which nothing new is sent until an ACK comes or
    /// the application writes.
    Again,
    /// As [`Resend::Lost`], since those of a timer have left.
    Spent,
    /// New data alone: what is marked lost may not be.
    Hold,
    /// New data, to find out whether the timeout was spurious; without any, what is lost (RFC 5682
    /// section 2.1 step 2b).
    New,
}

/// The congestion state and what belongs to the current recovery episode.
#[derive(Debug, Default)]
#[repr(C)]
pub(crate) struct Recovery {
    state: CaState,
    /// [`crate::Config::episodes`].
    pub(super) episodes: Episodes,
    /// The endpoint shapes the window in this state.
    shapes: bool,
    /// Something else than `pipe` counts against the window in this state.
    counts_apart: bool,
    /// The controller sets the window in every state (Linux's `cong_control`).
    pub(super) whole_control: bool,
    pub(super) resend: Resend,
    /// The window comes down because the controller said so ([`ackclock_cc::Verdict::Reduced`]).
    pub(super) by_controller: bool,
    /// F-RTO is testing whether the last timeout was spurious (RFC 5682).
    pub(super) frto: bool,
    /// The first retransmission of an episode is sent whatever the window (RFC 6675 section 5 step
    /// 4.3).
    pub(super) force: bool,
    /// FreeBSD 9: the state before the first timeout in a row (`TF_WASFRECOVERY`, `TF_WASCRECOVERY`).
    pub(super) before_timeout: CaState,
    /// Consecutive duplicate ACKs.
    pub(super) dup_acks: u32,
    /// Without SACK: segments that have left the network, judging by duplicate ACKs.
    pub(super) emulated_sacks: u64,
    pub(super) probe: Probe,

    // Episodes.
    /// `recover` of RFC 6582, RecoveryPoint of RFC 6675: the episode ends when everything below it
    /// is acknowledged.
    pub(super) point: u64,
    /// RescueRxt of RFC 6675: a rescue retransmission (`NextSeg` rule 4) is allowed once everything
    /// below this and the byte at it are acknowledged. First the end of the first retransmission,
    /// then the end of the episode. Tahoe and Reno have no such thing, and keep the end of what had
    /// been sent at the last fast retransmit or timeout.
    pub(super) rescue_above: u64,
    pub(super) reduction: WindowReduction,
    pub(super) undo: Undo,
}

impl Recovery {
    /// `whole_control` if the controller sets the window in every state.
    pub(crate) fn new(whole_control: bool, episodes: Episodes) -> Recovery {
        Recovery { whole_control, episodes, ..Recovery::default() }
    }

    /// Where the sender stands.
    #[inline]
    pub(crate) fn state(&self) -> CaState {
        self.state
    }

    /// Returns `true` if nothing is lost, reported out of order or tested, as far as is known.
    #[inline]
    pub(crate) fn is_quiet(&self) -> bool {
        (self.state as u64 | self.emulated_sacks | self.probe.high()) == 0
    }

    /// Returns `true` if the controller sets the window in every state.
    #[inline]
    pub(crate) fn whole_control(&self) -> bool {
        self.whole_control
    }

    /// Another controller takes over, at a host with these rules.
    pub(crate) fn set_whole_control(&mut self, whole_control: bool, prr: Prr) {
        self.whole_control = whole_control;
        self.review(prr);
    }

    /// The sender stands in `state` from now on.
    #[inline]
    pub(super) fn stand(&mut self, state: CaState, prr: Prr) {
        self.state = state;
        self.review(prr);
    }

    /// Updates the values derived from the state.
    fn review(&mut self, prr: Prr) {
        let bsd = self.episodes.of_bsd() && !self.whole_control;
        self.shapes = if bsd {
            self.state == CaState::Recovery
        } else {
            prr != Prr::Off && !self.whole_control && self.in_reduction()
        };
        self.counts_apart = self.state == CaState::Disorder || bsd && self.state != CaState::Open;
    }

    /// Returns `true` if the window comes down, for a loss or a mark.
    #[inline]
    pub(crate) fn in_reduction(&self) -> bool {
        matches!(self.state, CaState::Cwr | CaState::Recovery)
    }

    /// Returns `true` if the endpoint shapes the window itself.
    #[inline]
    pub(crate) fn shapes_window(&self) -> bool {
        self.shapes
    }

    /// Returns `true` if something other than `pipe` counts against the window.
    #[inline]
    pub(super) fn counts_apart(&self) -> bool {
        self.counts_apart
    }

    /// The threshold to which the window comes down, while the endpoint shapes it.
    pub(crate) fn threshold(&self) -> Option<u64> {
        self.shapes.then_some(self.reduction.ssthresh())
    }

    /// A segment with `bytes` of data was sent.
    #[inline]
    pub(crate) fn sent(&mut self, bytes: u32) {
        if self.in_reduction() {
            self.reduction.sent(bytes);
        }
    }

    /// A segment that ends at `end` was sent again, other than as a probe.
    pub(crate) fn resent(&mut self, now: Time, end: u64) {
        if self.force {
            self.force = false;
            self.rescue_above = self.rescue_above.max(end);
        }
        self.undo.resent(now);
    }

    /// Linux counts windows in segments, whose size has changed.
    pub(crate) fn rescale(&mut self, scaled: impl Fn(u64) -> u64) {
        self.reduction.rescale(scaled);
    }

    /// Segments are of `mss` bytes from now on.
    pub(crate) fn hold_a_segment(&mut self, mss: u64) {
        self.reduction.hold_a_segment(mss);
    }

    /// Without SACK: segments that have left the network, judging by duplicate ACKs.
    #[inline]
    pub(crate) fn emulated_sacks(&self) -> u64 {
        self.emulated_sacks
    }

    /// Duplicate ACKs stand for no more than `most` segments.
    pub(crate) fn limit_emulated_sacks(&mut self, most: u64) {
        self.emulated_sacks = self.emulated_sacks.min(most);
    }

    /// Lets lost segments leave as the window allows.
    pub(crate) fn resend_lost(&mut self) {
        self.resend = Resend::Lost;
    }

    /// Linux: whether what is lost may go out now.
    #[inline]
    pub(crate) fn resends_lost(&self) -> bool {
        matches!(self.resend, Resend::Lost | Resend::Again | Resend::Spent) || self.force
    }

    /// Returns `true` if nothing new follows the lost segments; asked when no more of those can leave.
    #[inline]
    pub(crate) fn ends_with_lost(&mut self) -> bool {
        let ends = self.resend == Resend::Again;
        if ends {
            self.resend = Resend::Spent;
        }
        ends
    }

    /// Returns `true` if no ACK has come since a timer's segments have left.
    #[inline]
    pub(crate) fn has_ended_with_lost(&self) -> bool {
        self.resend == Resend::Spent
    }

    /// Returns `true` if new data alone is sent, to test whether the last timeout was spurious.
    #[inline]
    pub(crate) fn tests_timeout(&self) -> bool {
        self.resend == Resend::New
    }

    /// There is no new data to send, up to `nxt`: that test ends if none was sent for it.
    pub(crate) fn no_data_for_test(&mut self, nxt: u64) {
        if nxt <= self.point {
            (self.resend, self.frto) = (Resend::Lost, false);
        }
    }

    /// Nothing is reported missing, tested or probed.
    #[inline]
    pub(crate) fn is_plain(&self) -> bool {
        self.state == CaState::Open && self.resend != Resend::New && !self.probe.is_due()
    }

    /// Returns `true` if the next retransmission leaves whatever the window.
    #[inline]
    pub(crate) fn forces_retransmission(&self) -> bool {
        self.force
    }

    /// Returns `true` if the next retransmission is the first after a timeout.
    pub(crate) fn is_first_after_timeout(&self) -> bool {
        self.force && self.state == CaState::Loss
    }

    /// Returns `true` if a rescue retransmission is allowed, with everything below `una`
    /// acknowledged.
    pub(crate) fn may_rescue(&self, una: u64) -> bool {
        una > self.rescue_above
    }

    /// The rescue retransmission is sent: there is one in each episode.
    pub(crate) fn rescued(&mut self) {
        self.rescue_above = self.point;
    }

    /// The tail loss probe.
    #[inline]
    pub(crate) fn probe(&self) -> &Probe {
        &self.probe
    }

    /// The tail loss probe, to be sent.
    #[inline]
    pub(crate) fn probe_mut(&mut self) -> &mut Probe {
        &mut self.probe
    }
}
