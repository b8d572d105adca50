//! The tail loss probe in flight.

/// The tail loss probe: there is at most one in flight.
#[derive(Clone, Copy, Debug, Default)]
pub(crate) struct Probe {
    /// SND.NXT when it was sent (`tlp_high_seq`); 0 if there is none.
    pub(super) high: u64,
    /// The probe repeats a segment.
    pub(super) resent: bool,
    /// The probe is to be sent.
    pub(super) due: bool,
    /// The probe is being sent: Nagle's rule and the congestion window do not count.
    pub(super) unbounded: bool,
}

impl Probe {
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

    /// Returns `true` if the probe is to be sent now.
    #[cfg(test)]
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
