//! From the first sign of loss to the end of recovery: RFC 6675 with SACK, RFC 6582 without, the window in between by
//! proportional rate reduction (RFC 6937, RFC 9937) or at once, timeouts (RFC 6298 section 5, RFC 5681 section 3.1) and ECN
//! (RFC 3168 section 6.1.2).

use ackclock_cc::{Ack, Signal, Verdict};
use ackclock_units::Time;

use crate::scoreboard::Progress;
use crate::{Endpoint, LossDetector, Prr};

/// Duplicate ACKs that prove a loss (RFC 5681 section 3.2).
const DUP_THRESH: u32 = 3;

/// Where a sender stands between losses, by Linux's names.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Default)]
pub enum CaState {
    /// Nothing unusual.
    #[default]
    Open,
    /// Duplicate ACKs or SACKs, not enough to prove a loss.
    Disorder,
    /// The window comes down for a congestion signal without loss (ECN).
    Cwr,
    /// Fast recovery.
    Recovery,
    /// After a retransmission timeout.
    Loss,
}

/// The state of an episode.
#[derive(Debug, Default)]
pub(crate) struct Recovery {
    pub(crate) state: CaState,
    /// `recover` of RFC 6582, RecoveryPoint of RFC 6675: the episode ends when everything below it is acknowledged.
    pub(crate) point: u64,
    /// The window while PRR shapes it.
    cwnd: u64,
    /// The window to arrive at.
    ssthresh: u64,
    prr_delivered: u64,
    prr_out: u64,
    /// RecoverFS: what was in flight at the start.
    prr_flight: u64,
    /// Consecutive duplicate ACKs.
    dup_acks: u32,
    /// Without SACK: segments that duplicate ACKs say have left the network.
    reno_sacked: u64,
    /// The first retransmission of an episode is sent whatever the window (RFC 6675 section 5 step 4.3).
    pub(crate) force: bool,
    /// The rescue retransmission of this episode has been sent (RFC 6675 `NextSeg` rule 4).
    pub(crate) rescued: bool,
}

impl Recovery {
    /// The endpoint shapes the window itself.
    fn shapes_window(&self, prr: Prr) -> bool {
        prr != Prr::Off && matches!(self.state, CaState::Recovery | CaState::Cwr)
    }

    /// `bytes` were sent.
    pub(crate) fn sent(&mut self, bytes: u32) {
        self.prr_out += u64::from(bytes);
    }
}

impl Endpoint {
    /// The congestion window in force, bytes.
    pub fn cwnd(&self) -> u64 {
        if self.recovery.shapes_window(self.config.prr) { self.recovery.cwnd } else { self.cc.window().cwnd }
    }

    /// Bytes believed to be in the network (RFC 6675 `pipe`).
    pub fn pipe(&self) -> u64 {
        let pipe = self.board.pipe();
        // RFC 6582 inflates the window by a segment per duplicate ACK; taking it off what is in flight comes to the same.
        pipe.saturating_sub(self.recovery.reno_sacked * u64::from(self.mss))
    }

    /// What counts against the window: without limited transmit, duplicate ACKs alone free no room (RFC 3042).
    pub(crate) fn window_used(&self) -> u64 {
        if self.recovery.state == CaState::Disorder && !self.config.limited_transmit {
            self.board.outstanding()
        } else {
            self.pipe()
        }
    }

    /// Where the sender stands.
    pub fn ca_state(&self) -> CaState {
        self.recovery.state
    }

    /// The congestion side of an ACK: `progress` is what it told, `duplicate` whether it is a duplicate ACK.
    pub(crate) fn on_ack_progress(&mut self, now: Time, progress: &Progress, duplicate: bool, ece: bool) {
        let una = self.send.una;
        if progress.acked > 0 {
            self.recovery.dup_acks = 0;
            if !self.sack_enabled && self.recovery.reno_sacked > 0 {
                // One acknowledged segment was the hole, the others had caused duplicate ACKs.
                let others = progress.acked_segments.saturating_sub(1);
                self.recovery.reno_sacked = self.recovery.reno_sacked.saturating_sub(others);
            }
        }
        if duplicate {
            self.recovery.dup_acks += 1;
            if !self.sack_enabled {
                let most = self.board.segments().saturating_sub(1);
                self.recovery.reno_sacked = (self.recovery.reno_sacked + 1).min(most);
            }
        }

        let lost_before = self.board.lost();
        if self.sack_enabled && progress.delivered > progress.acked || self.recovery.state != CaState::Open {
            match self.config.loss_detector {
                LossDetector::Rfc6675 => self.board.mark_lost(DUP_THRESH, self.mss),
            };
        }

        match self.recovery.state {
            CaState::Open | CaState::Disorder => self.maybe_enter_recovery(now, ece, progress.delivered),
            CaState::Cwr => {
                if una >= self.recovery.point {
                    self.end_reduction(now);
                }
                self.maybe_enter_recovery(now, ece, progress.delivered);
            }
            CaState::Recovery => {
                if una >= self.recovery.point {
                    self.end_reduction(now);
                    self.maybe_enter_recovery(now, ece, progress.delivered);
                } else if progress.acked > 0 && !self.sack_enabled {
                    // A partial ACK: the next segment is lost as well (RFC 6582 section 3.2 step 3).
                    self.board.mark_front_lost();
                }
            }
            CaState::Loss => {
                if una >= self.recovery.point {
                    self.recovery.state = CaState::Open;
                    self.recovery.reno_sacked = 0;
                    self.maybe_enter_recovery(now, ece, progress.delivered);
                }
            }
        }

        match self.recovery.state {
            CaState::Recovery | CaState::Cwr => {
                let no_further_loss = self.board.lost() <= lost_before;
                self.reduce_window(progress, progress.acked > 0 && no_further_loss, duplicate);
            }
            CaState::Open | CaState::Disorder | CaState::Loss => {
                if progress.acked > 0 {
                    let flight = self.flight(now);
                    let ack = Ack { acked: progress.acked, rtt: self.latest_sample, ece };
                    if self.cc.on_ack(&flight, &ack) == Verdict::Reduced {
                        self.begin_reduction(CaState::Cwr, progress.delivered);
                    }
                }
            }
        }
    }

    fn maybe_enter_recovery(&mut self, now: Time, ece: bool, delivered: u64) {
        let in_cwr = self.recovery.state == CaState::Cwr;
        let enough = self.recovery.dup_acks >= DUP_THRESH;
        // RFC 6582 section 3.2 step 2: without SACK, duplicates of data sent before the last episode's end prove nothing.
        let fresh = self.sack_enabled || self.send.una > self.recovery.point || self.recovery.point == 0;
        if enough && fresh && self.board.lost() == 0 && !self.board.is_empty() {
            self.board.mark_front_lost();
        }
        if self.board.lost() > 0 {
            if in_cwr {
                // The window is coming down already: one reduction per window of data.
                self.recovery.state = CaState::Recovery;
                self.recovery.point = self.send.nxt;
            } else {
                let flight = self.flight(now);
                self.cc.on_signal(&flight, Signal::Loss);
                self.begin_reduction(CaState::Recovery, delivered);
            }
            self.recovery.force = true;
            self.recovery.rescued = false;
            self.stats.fast_recoveries += 1;
        } else if ece && self.ecn_enabled && !in_cwr {
            let flight = self.flight(now);
            self.cc.on_signal(&flight, Signal::Ecn);
            self.begin_reduction(CaState::Cwr, delivered);
            self.send.cwr_pending = true;
        } else if !in_cwr {
            let disorder = self.board.sacked_segments() > 0 || self.recovery.dup_acks > 0;
            self.recovery.state = if disorder { CaState::Disorder } else { CaState::Open };
            if !disorder {
                self.recovery.reno_sacked = 0;
            }
        }
    }

    /// The window is to come down to the slow start threshold that the controller has set; `delivered` bytes came with the
    /// ACK in hand.
    fn begin_reduction(&mut self, state: CaState, delivered: u64) {
        let recovery = &mut self.recovery;
        recovery.state = state;
        recovery.point = self.send.nxt;
        recovery.ssthresh = self.cc.window().ssthresh.min(self.cc.window().cwnd);
        recovery.prr_delivered = 0;
        recovery.prr_out = 0;
        // RFC 9937 section 6: RecoverFS leaves out what earlier ACKs had SACKed, and includes what this one delivers.
        recovery.prr_flight = (self.board.outstanding() - self.board.sacked() + delivered).max(1);
        recovery.cwnd = self.board.pipe();
    }

    fn end_reduction(&mut self, now: Time) {
        let flight = self.flight(now);
        self.cc.on_recovery_end(&flight);
        self.recovery.state = CaState::Open;
        self.recovery.reno_sacked = 0;
        self.recovery.force = false;
    }

    /// One ACK's worth of proportional rate reduction (RFC 9937 section 6, RFC 6937 section 3).
    fn reduce_window(&mut self, progress: &Progress, safe: bool, duplicate: bool) {
        if self.config.prr == Prr::Off {
            return;
        }
        let mss = u64::from(self.mss);
        // Without SACK a duplicate ACK stands for one delivered segment, and a partial ACK for the one it fills.
        let delivered = match (self.sack_enabled, duplicate) {
            (true, _) => progress.delivered,
            (false, true) => mss,
            (false, false) => progress.delivered.min(mss),
        };
        if delivered == 0 {
            return;
        }
        let pipe = self.pipe();
        let recovery = &mut self.recovery;
        recovery.prr_delivered += delivered;
        let send = if pipe > recovery.ssthresh {
            let share = u128::from(recovery.prr_delivered) * u128::from(recovery.ssthresh);
            let target = share.div_ceil(u128::from(recovery.prr_flight)) as u64;
            target.saturating_sub(recovery.prr_out)
        } else {
            let owed = recovery.prr_delivered.saturating_sub(recovery.prr_out);
            let bound = match self.config.prr {
                Prr::Rfc9937 if !safe => owed.max(delivered),
                Prr::Rfc9937 | Prr::Rfc6937 | Prr::Off => owed.max(delivered) + mss,
            };
            bound.min(recovery.ssthresh - pipe)
        };
        recovery.cwnd = pipe + send;
    }

    /// The retransmission timer expired.
    pub(crate) fn on_retransmission_timeout(&mut self, now: Time) {
        self.stats.timeouts += 1;
        let flight = self.flight(now);
        // RFC 5681 section 3.1: the threshold stays when the segment had been resent by timeout before.
        self.cc.on_signal(&flight, Signal::Timeout { repeated: self.rtt.backoff() > 0 });
        self.rtt.back_off();
        self.board.mark_all_lost();
        let recovery = &mut self.recovery;
        recovery.state = CaState::Loss;
        recovery.point = self.send.nxt;
        recovery.dup_acks = 0;
        recovery.reno_sacked = 0;
        // The first segment goes out whatever the window.
        recovery.force = true;
        self.timers.retransmit_at = now + self.rtt.rto(&self.config);
    }
}
