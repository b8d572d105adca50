//! The data in the network, and the part of the window that it takes.

use ackclock_cc::{Flight, Window};
use ackclock_units::Time;

use super::detector::DUP_THRESH;
use crate::connection::negotiated::Negotiated;
use crate::loss::Loss;
use crate::send::Sender;
use crate::send::sequence::SendSequence;
use crate::stack::config::Episodes;
use crate::{CaState, MaxBurst};

impl Loss {
    /// Bytes believed to be in the network (RFC 6675 `pipe`).
    #[inline]
    pub(crate) fn pipe(&self, negotiated: &Negotiated) -> u64 {
        // RFC 6582 inflates the window by a segment per duplicate ACK; subtracting that from what
        // is in flight has the same effect.
        self.board.pipe().saturating_sub(self.recovery.emulated_sacks * u64::from(negotiated.mss()))
    }

    /// Data sent and not acknowledged (`packets_out`), counted as by [`Sender::window_used`].
    #[inline]
    pub(crate) fn window_outstanding(&self, negotiated: &Negotiated) -> u64 {
        match self.linux_episodes() {
            true => self.board.segments() * u64::from(negotiated.mss()),
            false => self.board.outstanding(),
        }
    }

    /// The room in the window that a segment of `len` needs; a bare FIN needs none
    /// (`tcp_cwnd_test`).
    #[inline]
    pub(crate) fn window_taken(&self, negotiated: &Negotiated, len: u32) -> u64 {
        u64::from(if self.linux_episodes() && len > 0 { negotiated.mss() } else { len })
    }

    /// Segments that left the network without being acknowledged: SACKed, or without SACK as many
    /// as duplicate ACKs stand for.
    #[inline]
    pub(crate) fn sacked_segments(&self, negotiated: &Negotiated) -> u64 {
        if negotiated.sack() { self.board.sacked_segments() } else { self.recovery.emulated_sacks }
    }

    /// `tcp_packets_in_flight`.
    pub(crate) fn segments_in_flight(&self, negotiated: &Negotiated) -> u64 {
        let left = self.sacked_segments(negotiated) + self.board.lost_segments();
        (self.board.segments() + self.board.resent_segments()).saturating_sub(left)
    }

    /// `tcp_any_retrans_done`.
    pub(crate) fn any_resent(&self) -> bool {
        self.board.resent_segments() > 0
            || !self.config.transfer.loss.resent_in_flight_only
                && self.board.front().is_some_and(|front| front.ever_resent())
    }

    /// `tcp_try_keep_open`: Disorder while anything is reported or resent, else Open.
    pub(crate) fn keep_open(&mut self, negotiated: &Negotiated, sequence: &SendSequence, now: Time) {
        let left = self.sacked_segments(negotiated) + self.board.lost_segments();
        let waits = self.config.transfer.loss.disorder_until_dsacked && self.recovery.undo.is_possible();
        let state = if left > 0 || self.any_resent() || waits { CaState::Disorder } else { CaState::Open };
        if self.recovery.state() != state {
            self.enter(now, state);
            self.recovery.point = sequence.nxt();
        }
    }

    /// `tcp_max_burst`.
    pub(crate) fn max_burst(&self) -> Option<u64> {
        match self.config.transfer.loss.max_burst {
            MaxBurst::Any => None,
            MaxBurst::Segments(segments) => Some(segments.into()),
            MaxBurst::Threshold => Some(self.detector.threshold().into()),
        }
    }
}

impl Sender {
    /// The congestion window in force, bytes.
    #[inline]
    pub fn cwnd(&self) -> u64 {
        if self.loss.recovery.shapes_window() { self.loss.recovery.reduction.cwnd() } else { self.cc.window().cwnd }
    }

    /// The part of the window in use. Linux counts segments, whatever their length; FreeBSD 9, Tahoe
    /// and Reno have rules of their own. With others, before recovery duplicate ACKs free room for two
    /// segments by limited transmit (RFC 3042 section 2), and for none without it.
    #[inline]
    pub(crate) fn window_used(&self) -> u64 {
        let pipe = match self.loss.linux_episodes() {
            true => self.loss.segments_in_flight(&self.negotiated) * u64::from(self.negotiated.mss()),
            false => self.loss.pipe(&self.negotiated),
        };
        if !self.loss.recovery.counts_apart() {
            return pipe;
        }
        self.window_used_apart(pipe)
    }

    #[inline(never)]
    fn window_used_apart(&self, pipe: u64) -> u64 {
        if self.loss.bsd_episodes() {
            return self.window_used_bsd();
        }
        let mss = u64::from(self.negotiated.mss());
        let beyond =
            match self.loss.detector.limited_transmit(self.loss.sacked_segments(&self.negotiated), self.cwnd() / mss) {
                _ if !self.config.limited_transmit => 0,
                Some(segments) => segments,
                None => return pipe,
            };
        pipe.max(self.loss.board.outstanding().saturating_sub(beyond * mss))
    }

    /// The bytes that count against the window in `tcp_output`, in every state but Open.
    fn window_used_bsd(&self) -> u64 {
        let (una, nxt) = (self.sequence.una(), self.sequence.nxt());
        let outstanding = self.loss.board.outstanding();
        match self.loss.recovery.state() {
            CaState::Recovery if self.negotiated.sack() => match self.loss.board.resent() {
                resent if self.loss.board.may_resend() => resent,
                0 => outstanding,
                resent => nxt.saturating_sub(self.loss.recovery.reduction.from()) + resent,
            },
            CaState::Recovery if self.loss.recovery.episodes == Episodes::FreeBsd => outstanding,
            CaState::Recovery | CaState::Loss => {
                let next = self.loss.board.resend_point().unwrap_or(nxt);
                let used = next.saturating_sub(una).min(outstanding);
                // tcp_output goes on from snd_nxt.
                if self.loss.recovery.episodes == Episodes::FreeBsd { self.limited(used, next) } else { used }
            }
            // RFC 3042: the first two duplicates let as many segments go as they are.
            CaState::Open | CaState::Disorder | CaState::Cwr => match self.loss.recovery.dup_acks {
                duplicates @ 1..DUP_THRESH
                    if self.config.limited_transmit && self.loss.recovery.episodes == Episodes::Berkeley =>
                {
                    outstanding.saturating_sub(u64::from(duplicates * self.negotiated.mss()))
                }
                _ => self.limited(outstanding, nxt),
            },
        }
    }

    /// FreeBSD 9, where `used` bytes count against the window, and `next` is sent next: the first
    /// two duplicates let as many segments go as they are, whatever is outstanding.
    fn limited(&self, used: u64, next: u64) -> u64 {
        let duplicates = self.loss.recovery.dup_acks;
        if !(1..DUP_THRESH).contains(&duplicates) || !self.config.limited_transmit {
            return used;
        }
        let limit = self.loss.recovery.reduction.from() + u64::from(duplicates * self.negotiated.mss());
        used.min(self.cwnd().saturating_sub(limit.saturating_sub(next)))
    }

    /// `tcp_moderate_cwnd`: no burst of more than so many segments.
    pub(in crate::loss) fn moderate_window(&mut self) {
        let Some(burst) = self.loss.max_burst() else { return };
        if self.loss.recovery.whole_control {
            return;
        }
        let most = (self.loss.segments_in_flight(&self.negotiated) + burst) * u64::from(self.negotiated.mss());
        let Window { cwnd, ssthresh } = self.cc.window();
        if cwnd > most {
            self.cc.take_over(Window { cwnd: most, ssthresh });
        }
    }

    /// The flight as the controller may see it.
    #[inline]
    pub(crate) fn flight(&self, now: Time) -> Flight {
        Flight {
            now,
            mss: self.negotiated.mss(),
            in_flight: self.loss.pipe(&self.negotiated),
            cwnd_limited: self.window_use.may_grow(|| self.cc.window()),
            snd_una: self.sequence.una(),
            snd_nxt: self.sequence.nxt(),
            srtt: self.rtt.srtt(),
            latest_rtt: self.rtt.latest(),
            min_rtt: self.rtt.min(),
            after_timeout: self.loss.recovery.state() == crate::CaState::Loss,
            initial_window: self.initial_window(),
            paced: self.pacer.is_on(),
            app_limited: self.loss.board.is_app_limited(),
        }
    }

    /// RFC 5681 section 3.1: one segment if the SYN or its answer was lost.
    #[inline]
    fn initial_window(&self) -> u64 {
        if self.syn_lost {
            u64::from(self.negotiated.mss())
        } else {
            self.config.initial_window.bytes(self.negotiated.mss())
        }
    }
}
