//! When is a segment lost? A choice independent of the congestion controller.
//!
//! The engine (`linux`) has the states, the window and undoing; a detector decides when a segment
//! is lost and learns from reordering. What a detector implements, each an arm of [`Detector`]:
//!
//! - [`Detector::reordered`] and [`Detector::more_duplicates`]: reordering was seen; by how much.
//! - [`Detector::resent_acknowledged`] and [`Detector::duplicated`]: the fate of a retransmission.
//! - [`Detector::delivered`]: what the ACK in hand delivered, before anything is judged.
//! - [`Detector::starts_recovery`]: whether recovery begins although nothing is marked, or after
//!   how long.
//! - [`Detector::mark`]: marks segments of the [`Scoreboard`] lost, for an ACK or for its timer,
//!   and asks for the timer.
//! - [`Detector::timed_out`]: the retransmission timer expired; marks what is lost by that.
//! - [`Detector::waits`] and [`Detector::outstanding_before`]: where more than the window is sent
//!   while nothing is proven.
//! - [`Detector::undone`], [`Detector::finished`]: how an episode ended.
//! - [`Detector::limited_transmit`], [`Detector::resends_holes`], [`Detector::grows_on_sack`]: what
//!   may be sent, and whether the window may grow, while nothing is proven.
//!
//! A detector allocates nothing after its construction and reads no clock. The rule of RFC 6675 is
//! the scoreboard's ([`Scoreboard::mark_lost`]) and needs no state.

mod adaptive;
mod ncr;
mod rack;
mod rr;
mod view;

pub(crate) use self::view::DUP_THRESH;
use self::view::mark_newreno;
pub(super) use self::view::{Marked, StartRecovery, View};
use ackclock_units::{Span, Time};

use crate::loss::scoreboard::{Progress, Scoreboard};
use crate::{DetectorRules, LossDetector, Stamp};
use adaptive::Adaptive;
use ncr::Ncr;
use rack::Rack;
use rr::RrTcp;

/// A loss detector and what it has learnt of its connection.
#[derive(Clone, Debug)]
pub(crate) enum Detector {
    Rfc6675,
    Linux(Box<Adaptive>),
    Ncr(Box<Ncr>),
    RrTcp(Box<RrTcp>),
    Rack(Box<Rack>),
}

impl Detector {
    pub(crate) fn new(kind: LossDetector) -> Detector {
        match kind {
            // The others' engines judge by themselves.
            LossDetector::Rfc6675 | LossDetector::FreeBsd9 | LossDetector::Tahoe(_) | LossDetector::Reno(_) => {
                Detector::Rfc6675
            }
            LossDetector::Linux(rules) => Detector::Linux(Box::new(Adaptive::new(rules))),
            LossDetector::Ncr(variant) => Detector::Ncr(Box::new(Ncr::new(variant))),
            LossDetector::RrTcp(rules) => Detector::RrTcp(Box::new(RrTcp::new(rules))),
            LossDetector::Rack => Detector::Rack(Box::new(Rack::new())),
        }
    }

    /// Reordering as far as `segments` was seen on earlier connections.
    pub(crate) fn reordered_before(&mut self, segments: u64) {
        if let Detector::Linux(adaptive) = self {
            adaptive.reordered(segments);
        }
    }

    /// The duplicate threshold in force (Linux's `reordering`).
    pub(crate) fn threshold(&self) -> u32 {
        match self {
            Detector::Rfc6675 | Detector::Ncr(_) => DUP_THRESH,
            Detector::Linux(adaptive) => adaptive.reordering.threshold,
            Detector::RrTcp(rr) => rr.threshold(),
            Detector::Rack(rack) => rack.reordering.threshold,
        }
    }

    /// Times that reordering was seen (Linux's `reord_seen`).
    pub(crate) fn reorderings(&self) -> u64 {
        match self {
            Detector::Rfc6675 | Detector::Ncr(_) => 0,
            Detector::Linux(adaptive) => adaptive.reordering.seen,
            Detector::RrTcp(rr) => rr.events(),
            Detector::Rack(rack) => rack.reordering.seen,
        }
    }

    /// A segment that begins at `low` arrived after one that ends at `high`, `segments` later (both
    /// counted), of which `reports` were reported before; 0 if that is not known.
    pub(super) fn reordered(&mut self, low: u64, high: u64, segments: u64, reports: u64, mss: u32) {
        match self {
            Detector::Rfc6675 | Detector::Ncr(_) => {}
            Detector::RrTcp(rr) => rr.reordered(reports),
            Detector::Linux(adaptive) => adaptive.reordered(segments),
            Detector::Rack(rack) => rack.reordering.note(low, high, mss),
        }
    }

    /// Without SACK: more duplicate ACKs than segments can have caused if none was reordered;
    /// `segments` were outstanding (`tcp_check_reno_reordering`).
    pub(super) fn more_duplicates(&mut self, segments: u64) {
        match self {
            Detector::Rfc6675 | Detector::Ncr(_) | Detector::RrTcp(_) => {}
            Detector::Linux(adaptive) => adaptive.reordered(segments),
            Detector::Rack(rack) => rack.reordering.set(segments),
        }
    }

    /// The ACK in hand.
    pub(super) fn delivered(&mut self, progress: &Progress) {
        if let Detector::Rack(rack) = self {
            rack.delivered(progress);
        }
    }

    /// The ACK in hand, which arrived at `now`, acknowledges segments that were sent once and in
    /// order; the last of them was sent at `newest.0` and ends at `newest.1`.
    #[inline]
    pub(super) fn delivered_whole(&mut self, newest: (Stamp, u64), now: Stamp) {
        if let Detector::Rack(rack) = self {
            rack.delivered_whole(newest, now);
        }
    }

    /// A round trip was measured, from the latest of the segments that an ACK delivered.
    pub(crate) fn measured(&mut self, now: Time, rtt: Span) {
        if let Detector::Rack(rack) = self {
            rack.measured(now, rtt);
        }
    }

    /// The shortest round trip of late, for [`Progress`].
    pub(crate) fn min_rtt(&self) -> Span {
        match self {
            Detector::Rack(rack) => rack.min_rtt().unwrap_or(Span::ZERO),
            _ => Span::ZERO,
        }
    }

    /// Returns `true` if `reports` of [`Detector::reordered`] is needed.
    pub(super) fn counts_reports(&self) -> bool {
        matches!(self, Detector::RrTcp(_))
    }

    /// `from..to` was acknowledged, some of which had been retransmitted, with `reports` reports
    /// before.
    pub(super) fn resent_acknowledged(&mut self, from: u64, to: u64, reports: u64) {
        if let Detector::RrTcp(rr) = self {
            rr.resent_acknowledged(from, to, reports);
        }
    }

    /// `left..right` was reported twice (DSACK) because of a needless retransmission; `probe` if
    /// that was a tail loss probe. Called before what the same ACK reports of reordering.
    pub(super) fn duplicated(&mut self, left: u64, right: u64, probe: bool) {
        match self {
            Detector::RrTcp(rr) => rr.duplicated(left, right),
            Detector::Rack(rack) if !probe => rack.duplicated(),
            _ => {}
        }
    }

    /// An ACK that proves nothing. If the late arrival of a segment ends a wait for which the
    /// window has to be brought back, the segments that were outstanding at its begin.
    pub(super) fn waits(&mut self, view: &View) -> Option<u64> {
        match self {
            Detector::Ncr(ncr) => ncr.waits(view),
            _ => None,
        }
    }

    /// The segments that were outstanding before more than the window was sent, where that is what
    /// a reduction is of.
    pub(super) fn outstanding_before(&self) -> Option<u64> {
        match self {
            Detector::Ncr(ncr) => ncr.before(),
            _ => None,
        }
    }

    pub(super) fn starts_recovery(&mut self, view: &View) -> StartRecovery {
        match self {
            Detector::Linux(adaptive) => adaptive.starts_recovery(view),
            Detector::Ncr(ncr) => ncr.starts_recovery(view),
            Detector::RrTcp(rr) => rr.starts_recovery(view),
            // These detectors mark lost segments, and the mark is the proof.
            Detector::Rfc6675 | Detector::Rack(_) => StartRecovery::No,
        }
    }

    pub(super) fn mark(&mut self, board: &mut Scoreboard, view: &View) -> Marked {
        match self {
            Detector::Rfc6675 => {
                if view.sack {
                    board.mark_lost(DUP_THRESH, view.mss);
                } else {
                    mark_newreno(board, view, DUP_THRESH);
                }
                Marked::default()
            }
            Detector::Linux(adaptive) if adaptive.order().marks_last => {
                if !view.sack {
                    mark_newreno(board, view, adaptive.reordering.threshold);
                }
                Marked::default()
            }
            Detector::Linux(adaptive) => adaptive.mark(board, view),
            Detector::Ncr(ncr) => ncr.mark(board, view),
            Detector::RrTcp(rr) => rr.mark(board, view),
            Detector::Rack(rack) => rack.mark(board, view),
        }
    }

    /// Its timer expired.
    pub(super) fn timer(&mut self, board: &mut Scoreboard, view: &View) -> Marked {
        match self {
            Detector::Rfc6675 => Marked::default(),
            Detector::Linux(adaptive) => adaptive.mark(board, view),
            Detector::Ncr(ncr) => ncr.mark(board, view),
            Detector::RrTcp(rr) => rr.mark(board, view),
            Detector::Rack(rack) => rack.judge(board, view),
        }
    }

    /// The retransmission timer expired.
    pub(super) fn timed_out(&mut self, board: &mut Scoreboard, view: &View) {
        match self {
            Detector::Rfc6675 => board.mark_all_lost(),
            Detector::Ncr(ncr) => {
                board.mark_all_lost();
                ncr.ended();
            }
            Detector::RrTcp(rr) => {
                board.mark_all_lost();
                rr.timed_out(view);
            }
            Detector::Linux(adaptive) => {
                board.mark_all_lost();
                adaptive.timed_out(view);
            }
            Detector::Rack(rack) => {
                board.mark_old_lost(view.now, rack.rtt());
                rack.reordering.timed_out(view);
            }
        }
    }

    /// A timeout was needed, whatever was reported before (`tcp_enter_frto_loss`).
    pub(super) fn forget_reordering(&mut self) {
        if let Detector::Linux(adaptive) = self {
            adaptive.reordering.forget();
        }
    }

    /// A reduction was taken back; `by_dsack` if because every retransmission was reported as a
    /// duplicate.
    pub(super) fn undone(&mut self, by_dsack: bool) {
        if let Detector::Rack(rack) = self {
            rack.undone(by_dsack);
        }
    }

    /// An episode ended, and nothing was taken back.
    pub(super) fn finished(&mut self) {
        if let Detector::Rack(rack) = self {
            rack.finished();
        }
    }

    /// Number of segments of new data that may be sent beyond the window of `cwnd` while `sacked`
    /// reports prove nothing; `None` if each segment reported makes room for one.
    pub(crate) fn limited_transmit(&self, sacked: u64, cwnd: u64) -> Option<u64> {
        match self {
            // RFC 3042 section 2.
            Detector::Rfc6675 => Some(u64::from(DUP_THRESH - 1)),
            Detector::Ncr(ncr) => ncr.limited_transmit(sacked),
            Detector::RrTcp(rr) => Some(rr.limited_transmit(sacked, cwnd)),
            Detector::Linux(_) | Detector::Rack(_) => None,
        }
    }

    /// Permission to resend holes that are not proven lost when nothing else may be sent, and also
    /// the last segment (RFC 6675 `NextSeg` rules 3 and 4).
    pub(crate) fn resends_holes(&self) -> (bool, bool) {
        match self {
            Detector::Rfc6675 | Detector::Ncr(_) | Detector::RrTcp(_) => (true, true),
            // tcp_can_forward_retransmit, until 4.11.
            Detector::Linux(adaptive) => (adaptive.forwards(), false),
            Detector::Rack(_) => (false, false),
        }
    }

    /// Returns `true` if the window grows for segments reported out of order
    /// (`tcp_may_raise_cwnd`).
    pub(super) fn grows_on_sack(&self) -> bool {
        match self {
            Detector::Rfc6675 | Detector::Ncr(_) | Detector::RrTcp(_) => false,
            Detector::Linux(adaptive) => adaptive.grows_on_sack(),
            Detector::Rack(_) => self.threshold() > DUP_THRESH,
        }
    }

    /// Returns `true` if an ACK with ECE lets the window grow at the threshold and above.
    pub(super) fn grows_on_mark(&self) -> bool {
        match self {
            Detector::Linux(adaptive) => adaptive.grows_on_mark(),
            _ => true,
        }
    }

    /// The order in which it has an ACK dealt with.
    #[inline]
    pub(crate) fn rules(&self) -> DetectorRules {
        match self {
            Detector::Linux(adaptive) => adaptive.order(),
            Detector::Ncr(_) | Detector::RrTcp(_) => DetectorRules::ADDED_TO_4_0,
            Detector::Rfc6675 | Detector::Rack(_) => DetectorRules::LINUX_4_4,
        }
    }

    /// The ACK in hand is done but for what it proves lost where marks are made last; `partial`
    /// after a partial ACK that has undone nothing.
    pub(super) fn mark_last(&self, board: &mut Scoreboard, view: &View, partial: bool) {
        if let Detector::Linux(adaptive) = self
            && adaptive.order().marks_last
        {
            adaptive.mark_last(board, view, partial);
        }
    }
}

/// The counts of a loss detector, in segments, under Linux's names (`tcp_sock`).
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct LossCounts {
    /// Segments in flight or lost.
    pub packets_out: u64,
    /// Reported out of order, by SACK or by as many duplicate ACKs.
    pub sacked_out: u64,
    /// From the first to the highest that SACK reports; 0 if none is, and without SACK.
    pub fackets_out: u64,
    /// Resent and not acknowledged since.
    pub retrans_out: u64,
    /// Judged lost and not reported since.
    pub lost_out: u64,
    /// The duplicate threshold.
    pub reordering: u32,
    /// Times that reordering was seen.
    pub reord_seen: u64,
}

#[cfg(test)]
mod tests;
