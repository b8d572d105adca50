//! From the first sign of loss to the end of recovery: RFC 6675 with SACK, RFC 6582 without, the window in between by
//! proportional rate reduction (RFC 6937, RFC 9937) or at once, timeouts (RFC 6298 section 5, RFC 5681 section 3.1) and ECN
//! (RFC 3168 section 6.1.2).

use ackclock_cc::{Ack, EcnUse, Flight, Signal, Verdict};
use ackclock_units::Time;

use crate::loss::detector::DUP_THRESH;
use crate::loss::linux::Resend;
use crate::loss::scoreboard::{Progress, Scoreboard};
use crate::loss::tail_probe::Probe;
use crate::loss::undo::Undo;
use crate::{Endpoint, Prr};

/// Where a sender stands between losses, by Linux's names.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Default)]
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
    /// The controller rules the window in every state (Linux's `cong_control`).
    pub(crate) left_alone: bool,
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
    /// The window comes down because the controller said so ([`Verdict::Reduced`]).
    by_controller: bool,
    /// Consecutive duplicate ACKs.
    dup_acks: u32,
    /// Without SACK: segments that duplicate ACKs say have left the network.
    pub(crate) reno_sacked: u64,
    /// In segments, where episodes run as Linux has them: sent since the start, and the window at the start.
    prr_sent: u64,
    prior_cwnd: u64,
    /// What goes out after the last ACK, likewise.
    pub(crate) resend: Resend,
    /// Whether the last timeout was spurious is being found out (RFC 5682).
    pub(crate) frto: bool,
    pub(crate) undo: Undo,
    /// Segments that were reported twice.
    pub(crate) duplicates: u64,
    pub(crate) probe: Probe,
    /// The first retransmission of an episode is sent whatever the window (RFC 6675 section 5 step 4.3).
    pub(crate) force: bool,
    /// RescueRxt of RFC 6675: a rescue retransmission (`NextSeg` rule 4) is allowed once everything below this and the byte
    /// at it are acknowledged. First the end of the first retransmission, then the end of the episode.
    pub(crate) rescue_above: u64,
}

impl Recovery {
    pub(crate) fn new(left_alone: bool) -> Recovery {
        Recovery { left_alone, ..Recovery::default() }
    }

    /// The endpoint shapes the window itself.
    fn shapes_window(&self, prr: Prr) -> bool {
        prr != Prr::Off && !self.left_alone && matches!(self.state, CaState::Recovery | CaState::Cwr)
    }

    /// The threshold to which the window comes down, while the endpoint shapes it.
    pub(crate) fn threshold(&self, prr: Prr) -> Option<u64> {
        self.shapes_window(prr).then_some(self.ssthresh)
    }

    /// `bytes` were sent.
    pub(crate) fn sent(&mut self, bytes: u32) {
        self.prr_out += u64::from(bytes);
        self.prr_sent += 1;
    }

    /// PRR begins (`tcp_init_cwnd_reduction`): the window, in bytes and in segments, is to come down to `ssthresh`.
    pub(crate) fn start_prr(&mut self, cwnd: u64, ssthresh: u64, segments: u64) {
        (self.cwnd, self.ssthresh, self.prior_cwnd) = (cwnd, ssthresh, segments.max(1));
        (self.prr_delivered, self.prr_out, self.prr_sent) = (0, 0, 0);
    }

    /// How many segments may go out after an ACK that delivered some (`tcp_cwnd_reduction`); `bonus` if one more than were
    /// delivered may, while less than the threshold is in flight.
    pub(crate) fn prr_segments(&mut self, delivered: u64, in_flight: u64, mss: u64, bonus: bool) -> u64 {
        self.prr_delivered += delivered;
        let ssthresh = self.ssthresh / mss;
        let send = if in_flight > ssthresh {
            let share = u128::from(ssthresh) * u128::from(self.prr_delivered);
            (share.div_ceil(u128::from(self.prior_cwnd)) as u64).saturating_sub(self.prr_sent)
        } else {
            let owed = self.prr_delivered.saturating_sub(self.prr_sent);
            (owed.max(delivered) + u64::from(bonus)).min(ssthresh - in_flight)
        };
        // The first retransmission always goes out.
        send.max(u64::from(self.prr_sent == 0))
    }

    pub(crate) fn set_cwnd(&mut self, cwnd: u64) {
        self.cwnd = cwnd;
    }

    /// `tcp_cwnd_down` of Linux 2.4: one segment less for every second ACK, down to half of the threshold.
    pub(crate) fn halve_rate(&mut self, pipe: u64, mss: u64) {
        self.prr_delivered += 1;
        if self.prr_delivered.is_multiple_of(2) && self.cwnd > self.ssthresh / 2 {
            self.cwnd -= mss;
        }
        self.cwnd = self.cwnd.min(pipe + mss).max(mss);
    }

    /// Linux counts windows in segments, whose size has changed.
    pub(crate) fn rescale(&mut self, scaled: impl Fn(u64) -> u64) {
        (self.cwnd, self.ssthresh) = (scaled(self.cwnd), scaled(self.ssthresh));
    }

    /// Segments are of `mss` bytes from now on.
    pub(crate) fn hold_a_segment(&mut self, mss: u64) {
        self.cwnd = self.cwnd.max(mss);
    }

    /// What is in flight up to `point` is lost, and not to congestion (`tcp_non_congestion_loss_retransmit`).
    pub(crate) fn begin_loss_without_reduction(&mut self, point: u64) {
        (self.state, self.point) = (CaState::Loss, point);
        (self.undo.marker, self.undo.allowed) = (0, false);
        self.frto = false;
    }

    /// What is lost goes out as the window allows.
    pub(crate) fn resend_lost(&mut self) {
        self.resend = Resend::Lost;
    }

    /// The segment after the ACK is one that the receiver had reported.
    pub(crate) fn reneging(&self, board: &Scoreboard, advanced: bool) -> bool {
        advanced && board.front().is_some_and(|front| front.sacked)
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
        pipe.saturating_sub(self.recovery.reno_sacked * u64::from(self.negotiated.mss()))
    }

    /// What counts against the window: before recovery duplicate ACKs free room for two segments by limited transmit (RFC
    /// 3042 section 2), and for none without it.
    pub(crate) fn window_used(&self) -> u64 {
        let pipe = self.pipe();
        if self.recovery.state != CaState::Disorder {
            return pipe;
        }
        let beyond = match self
            .detector
            .limited_transmit(self.sacked_segments(), self.cwnd() / u64::from(self.negotiated.mss()))
        {
            _ if !self.config.limited_transmit => 0,
            Some(segments) => segments,
            None => return pipe,
        };
        pipe.max(self.board.outstanding().saturating_sub(beyond * u64::from(self.negotiated.mss())))
    }

    /// Where the sender stands.
    pub fn ca_state(&self) -> CaState {
        self.recovery.state
    }

    /// The congestion side of an ACK: `progress` is what it told, `duplicate` whether it is a duplicate ACK.
    #[inline(always)]
    pub(crate) fn on_ack_progress(&mut self, now: Time, progress: &Progress, duplicate: bool, ece: bool) {
        let una = self.send.una;
        let delivered = self.newly_delivered(progress);
        let units_lost_before = self.board.units_judged_lost();
        if progress.acked > 0 {
            self.recovery.dup_acks = 0;
            if !self.negotiated.sack() && self.recovery.reno_sacked > 0 {
                // One acknowledged segment was the hole, the others had caused duplicate ACKs.
                let others = progress.acked_segments.saturating_sub(1);
                self.recovery.reno_sacked = self.recovery.reno_sacked.saturating_sub(others);
            }
        }
        if duplicate {
            self.recovery.dup_acks += 1;
            // After a timeout they may answer what is sent again needlessly.
            if !self.negotiated.sack() && self.recovery.state != CaState::Loss {
                let most = self.board.segments().saturating_sub(1);
                self.recovery.reno_sacked = (self.recovery.reno_sacked + 1).min(most);
            }
        }

        let lost_before = self.board.lost();
        if self.negotiated.sack() && progress.delivered > progress.acked || self.recovery.state != CaState::Open {
            self.board.mark_lost(DUP_THRESH, self.negotiated.mss());
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
                } else if progress.acked > 0 && !self.negotiated.sack() {
                    // A partial ACK: the next segment is lost as well, and resent at once (RFC 6582 section 3.2 step 3).
                    self.board.mark_front_lost();
                    self.recovery.force = true;
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

        let lost = self.board.units_judged_lost() - units_lost_before;
        if self.recovery.left_alone {
            let told = if duplicate && !self.negotiated.sack() { u64::from(self.negotiated.mss()) } else { 0 };
            let delivered = delivered + told;
            self.rule_window(now, Ack { acked: progress.acked, delivered, ece, lost, ..Ack::default() });
            return;
        }
        // FreeBSD's congestion recovery is the controller's affair: the window is where it is to be.
        let own = self.recovery.by_controller && self.config.prr == Prr::Off;
        match self.recovery.state {
            CaState::Recovery | CaState::Cwr if !(own && self.recovery.state == CaState::Cwr) => {
                let no_further_loss = self.board.lost() <= lost_before;
                self.reduce_window(progress, progress.acked > 0 && no_further_loss, duplicate);
            }
            _ => {
                if progress.acked > 0 {
                    let mut ack = Ack { acked: progress.acked, delivered, ece, lost, ..Ack::default() };
                    self.add_samples(now, &mut ack);
                    let flight = self.flight(now);
                    let reduced = self.cc.on_ack(&flight, &ack) == Verdict::Reduced;
                    // After a timeout there is an episode already.
                    if reduced && self.recovery.state != CaState::Loss {
                        self.begin_reduction(CaState::Cwr, progress.delivered);
                        self.recovery.by_controller = true;
                    }
                }
            }
        }
    }

    /// Bytes newly known to have arrived. Without SACK, duplicate ACKs have told of segments before they are acknowledged.
    fn newly_delivered(&self, progress: &Progress) -> u64 {
        if self.negotiated.sack() {
            return progress.delivered;
        }
        let told = self.recovery.reno_sacked * u64::from(self.negotiated.mss());
        progress.acked.saturating_sub(told).max(progress.acked.min(u64::from(self.negotiated.mss())))
    }

    #[inline(never)]
    fn maybe_enter_recovery(&mut self, now: Time, ece: bool, delivered: u64) {
        let in_cwr = self.recovery.state == CaState::Cwr;
        let enough = self.recovery.dup_acks >= DUP_THRESH;
        // RFC 6582 section 3.2 step 2: without SACK, duplicates of data sent before the last episode's end prove nothing.
        // Likewise an ECN echo of which the receiver may not have learnt yet that it was answered: the CWR is in what was
        // sent after that end.
        let fresh = self.send.una > self.recovery.point || self.recovery.point == 0;
        if enough && (fresh || self.negotiated.sack()) && self.board.lost() == 0 && !self.board.is_empty() {
            self.board.mark_front_lost();
        }
        if self.board.lost() > 0 && self.path.probing.size > 0 && self.mtu_probe_failed(now) {
            self.recovery.dup_acks = 0;
        } else if self.board.lost() > 0 {
            self.tell_losses(now);
            if in_cwr && self.observer.needs.ecn == EcnUse::Data {
                // The window is coming down already: one reduction per window of data.
                self.recovery.state = CaState::Recovery;
                self.recovery.point = self.send.nxt;
            } else {
                let flight = self.flight_size(now);
                self.note_unvalidated(now);
                self.cc.on_signal(&flight, Signal::Loss);
                self.bound_by_use();
                self.begin_reduction(CaState::Recovery, delivered);
            }
            self.recovery.force = true;
            self.recovery.rescue_above = 0;
            self.stats.fast_recoveries += 1;
        } else if ece && fresh && !in_cwr {
            // RFC 3168 section 6.1.2: once per window of data.
            let flight = self.flight_size(now);
            self.note_unvalidated(now);
            self.cc.on_signal(&flight, Signal::Ecn);
            self.bound_by_use();
            self.begin_reduction(CaState::Cwr, delivered);
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
        recovery.by_controller = false;
        recovery.point = self.send.nxt;
        recovery.ssthresh = self.cc.window().ssthresh.min(self.cc.window().cwnd);
        recovery.prr_delivered = 0;
        recovery.prr_out = 0;
        // RFC 9937 section 6: RecoverFS leaves out what earlier ACKs had SACKed, and includes what this one delivers.
        recovery.prr_flight = (self.board.outstanding() - self.board.sacked() + delivered).max(1);
        recovery.cwnd = self.board.pipe().max(u64::from(self.negotiated.mss()));
        // RFC 3168 section 6.1.2: CWR tells of a reduction for any reason.
        self.send.cwr_pending = self.ecn_enabled;
    }

    /// [`Endpoint::flight`] with FlightSize of RFC 5681 section 2 in place of `pipe`: nothing is declared lost.
    pub(crate) fn flight_size(&self, now: Time) -> Flight {
        Flight { in_flight: self.board.outstanding(), ..self.flight(now) }
    }

    fn end_reduction(&mut self, now: Time) {
        let mut flight = self.flight(now);
        if self.recovery.state == CaState::Cwr {
            // The bound to a burst is of fast recovery (RFC 6582 section 3.2 step 3; FreeBSD `newreno_post_recovery`). For
            // ECN it would be a second reduction in the same window of data (RFC 3168 section 6.1.2).
            flight.in_flight = flight.in_flight.max(self.cc.window().ssthresh);
        }
        self.cc.on_recovery_end(&flight);
        self.end_validation(now);
        self.recovery.state = CaState::Open;
        self.recovery.reno_sacked = 0;
        self.recovery.force = false;
    }

    /// One ACK's worth of proportional rate reduction (RFC 9937 section 6, RFC 6937 section 3).
    fn reduce_window(&mut self, progress: &Progress, safe: bool, duplicate: bool) {
        if self.config.prr == Prr::Off {
            return;
        }
        let mss = u64::from(self.negotiated.mss());
        // Without SACK a duplicate ACK stands for one delivered segment, and a partial ACK for the one it fills.
        let delivered = match (self.negotiated.sack(), duplicate) {
            (true, _) => progress.delivered,
            (false, true) => mss,
            (false, false) => progress.delivered.min(mss),
        };
        if delivered == 0 {
            return;
        }
        let in_flight = self.pipe();
        let resent = if self.config.prr == Prr::Rfc6937 { self.board.resent() } else { 0 };
        let pipe = in_flight.saturating_sub(resent);
        let recovery = &mut self.recovery;
        recovery.prr_delivered += delivered;
        let send = if pipe > recovery.ssthresh {
            let share = u128::from(recovery.prr_delivered) * u128::from(recovery.ssthresh);
            let target = share.div_ceil(u128::from(recovery.prr_flight)) as u64;
            // Up to a whole segment, as the example of RFC 6937 section 3.1 counts.
            target.saturating_sub(recovery.prr_out).next_multiple_of(mss)
        } else {
            let owed = recovery.prr_delivered.saturating_sub(recovery.prr_out);
            let bound = match self.config.prr {
                Prr::Rfc9937 if !safe => owed.max(delivered),
                Prr::Rfc9937 | Prr::Rfc6937 | Prr::Ssrb | Prr::RateHalving | Prr::Off => owed.max(delivered) + mss,
            };
            bound.min(recovery.ssthresh - pipe)
        };
        // RFC 9937 section 6: a segment goes out at the start, whatever the sum says.
        let send = if send == 0 && recovery.prr_out == 0 { mss } else { send };
        // With nothing in flight no ACK would come to bring the rest of a segment.
        recovery.cwnd = (in_flight + send).max(mss);
    }

    /// The retransmission timer expired.
    pub(crate) fn on_retransmission_timeout(&mut self, now: Time) {
        self.stats.timeouts += 1;
        if self.linux_episodes() {
            self.on_timeout_linux(now);
            return;
        }
        let flight = self.flight_size(now);
        self.board.mark_all_lost();
        self.tell_losses(now);
        // RFC 5681 section 3.1: the threshold stays when the segment had been resent by timeout before.
        self.cc.on_signal(&flight, Signal::Timeout { repeated: self.rtt.timeouts() > 0, kept: 0 });
        self.forget_validation(now);
        self.rtt.back_off();
        let recovery = &mut self.recovery;
        recovery.state = CaState::Loss;
        recovery.point = self.send.nxt;
        recovery.dup_acks = 0;
        recovery.reno_sacked = 0;
        // The first segment goes out whatever the window.
        recovery.force = true;
        self.send.cwr_pending = self.ecn_enabled;
        self.timers.retransmit(now + self.rtt.rto(&self.config));
    }
}
