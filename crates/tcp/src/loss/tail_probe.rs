//! Tail loss probes: when no ACK arrives for two round trips, the last segment or a new one is sent
//! to elicit one, so that the loss of a tail is found without a timeout.
//!
//! # Source
//! RFC 8985 section 7. Linux `tcp_schedule_loss_probe` and `tcp_send_loss_probe` in
//! `net/ipv4/tcp_output.c`, `tcp_process_tlp_ack` in `tcp_input.c`, of 4.0 and 6.18.

use ackclock_units::Span;

use crate::loss::ack::AckContext;

/// Room for a late ACK (`TCP_TIMEOUT_MIN_US`).
const SLACK: Span = Span::from_millis(2);

/// The longest that Linux 4.0 expects an ACK to be delayed (`TCP_DELACK_MAX`), and its shortest
/// probe timeout.
const LONGEST_DELAY: Span = Span::from_millis(200);

const LEAST: Span = Span::from_millis(10);

/// The tail loss probe: there is at most one in flight.
#[derive(Clone, Copy, Debug, Default)]
pub(crate) struct Probe {
    /// SND.NXT when it was sent (`tlp_high_seq`); 0 if there is none.
    high: u64,
    /// The probe repeats a segment.
    resent: bool,
    /// The probe is to be sent.
    due: bool,
    /// The probe is being sent: Nagle's rule and the congestion window do not count.
    unbounded: bool,
}

impl Probe {
    /// It is out, and SND.NXT is `high`; `resent` if it repeats a segment.
    pub(crate) fn sent(&mut self, high: u64, resent: bool) {
        (self.high, self.resent) = (high, resent);
    }

    /// Its timer expired: it is due unless one is in flight, or nothing is outstanding.
    pub(crate) fn expired(&mut self, outstanding: bool) {
        self.due = !self.is_in_flight() && outstanding;
    }

    /// An ACK up to `una` came. Returns `true` if the probe has repaired a loss, and stays known
    /// until the reaction to that is over.
    pub(crate) fn repairs(&mut self, una: u64, context: &AckContext) -> bool {
        if una < self.high {
            return false;
        }
        let advanced = una > context.una_before;
        if !self.resent || context.duplicates.probe {
            self.forget();
        } else if una > self.high {
            return true;
        } else if !advanced && !context.not_duplicate && context.progress.sacked_segments == 0 {
            // A duplicate ACK: original and probe have arrived.
            self.forget();
        }
        false
    }

    /// The wait before it (RFC 8985 section 7.2). The ACK of a segment that is `alone` may be
    /// delayed, for as long as `least`.
    pub(crate) fn wait(srtt: Span, alone: bool, least: Span) -> Span {
        srtt * 2 + if alone { least } else { SLACK }
    }

    /// The same in Linux 4.0.
    pub(crate) fn wait_in_open(srtt: Span, alone: bool) -> Span {
        let wait = if alone { (srtt * 2).max(srtt + srtt / 2 + LONGEST_DELAY) } else { srtt * 2 };
        wait.max(LEAST)
    }

    /// Returns `true` if the probe is in flight.
    #[inline]
    pub(crate) fn is_in_flight(&self) -> bool {
        self.high > 0
    }

    /// Returns `true` if the probe is in flight and repeats a segment.
    pub(super) fn is_retransmission(&self) -> bool {
        self.high > 0 && self.resent
    }

    /// Returns `true` if `left..right` is the segment that the probe repeats.
    pub(super) fn is_in(&self, left: u64, right: u64, mss: u64) -> bool {
        self.high == right && right - left <= mss
    }

    /// Its answer is not waited for any more.
    pub(super) fn forget(&mut self) {
        self.high = 0;
    }

    /// SND.NXT when it was sent; 0 if there is none.
    #[inline]
    pub(super) fn high(&self) -> u64 {
        self.high
    }

    /// Returns `true` if the probe is to be sent now.
    #[inline]
    pub(crate) fn is_due(&self) -> bool {
        self.due
    }

    /// Returns `true` if the probe is to be sent now, and clears the flag.
    #[inline]
    pub(crate) fn take_due(&mut self) -> bool {
        std::mem::take(&mut self.due)
    }

    /// Returns `true` if the probe is being sent: Nagle's rule and the congestion window do not
    /// count.
    #[inline]
    pub(crate) fn is_unbounded(&self) -> bool {
        self.unbounded
    }

    /// From now on new data is the probe, or no longer.
    pub(crate) fn set_unbounded(&mut self, unbounded: bool) {
        self.unbounded = unbounded;
    }
}
