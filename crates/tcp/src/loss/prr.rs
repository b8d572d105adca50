//! The window during a reduction: proportional rate reduction and what came before it.
//!
//! The window comes down to the controller's threshold in step with what ACKs deliver, so that
//! retransmissions and new data stay clocked by them. While more than the threshold is in flight,
//! what is sent is the share of what is delivered that the threshold is of the window before; below
//! it, what is delivered, and a segment more where that is safe.
//!
//! # Source
//! RFC 9937 section 6 and RFC 6937 section 3, in bytes, for the engine of the RFCs. For Linux's,
//! in segments, `tcp_cwnd_reduction` in `net/ipv4/tcp_input.c` of 4.0, 6.1 and 6.18, and
//! `tcp_cwnd_down` of 2.4 and 2.6.32.

use ackclock_units::Time;

use crate::Prr;

/// The window while it comes down. Sums are in bytes or in segments, as the engine counts.
#[derive(Debug, Default)]
pub(super) struct WindowReduction {
    /// Bytes.
    cwnd: u64,
    /// The window to arrive at, bytes.
    ssthresh: u64,
    /// Delivered since the start. With rate halving: ACKs. FreeBSD 9, after a timeout: when an ACK
    /// comes too late to show that it was needless, ns.
    delivered: u64,
    /// Sent since the start. FreeBSD 9, after a timeout: where the episode before it was to end, and
    /// `at_start` then.
    sent_bytes: u64,
    sent_segments: u64,
    /// RecoverFS: what was in flight at the start. In Linux's engine the window then
    /// (`prior_cwnd`). FreeBSD 9: SND.NXT at the first duplicate ACK, then when recovery began.
    at_start: u64,
}

/// The bytes that an ACK delivered, and the data in flight after it.
#[derive(Clone, Copy, Debug)]
pub(super) struct AckDelivery {
    pub(super) delivered: u64,
    pub(super) in_flight: u64,
    /// Bytes of these that were sent again.
    pub(super) resent: u64,
    /// The ACK acknowledges something and shows no further loss (SafeACK).
    pub(super) safe: bool,
}

impl WindowReduction {
    #[inline]
    pub(super) fn cwnd(&self) -> u64 {
        self.cwnd
    }

    pub(super) fn ssthresh(&self) -> u64 {
        self.ssthresh
    }

    /// The window, now `cwnd`, is to come down to `ssthresh`; `at_start` was in flight or the
    /// window before, in the unit of the engine.
    pub(super) fn begin(&mut self, cwnd: u64, ssthresh: u64, at_start: u64) {
        let at_start = at_start.max(1);
        *self = WindowReduction { cwnd, ssthresh, at_start, ..WindowReduction::default() };
    }

    /// FreeBSD 9: the window grows by `bytes`, up to `most`.
    pub(super) fn inflate(&mut self, bytes: u64, most: u64) {
        self.cwnd = self.cwnd.saturating_add(bytes).min(most);
    }

    /// FreeBSD 9 and Linux 2.6.32: the window is `cwnd`.
    pub(super) fn set(&mut self, cwnd: u64) {
        self.cwnd = cwnd;
    }

    /// Linux 2.6.32: a partial ACK puts the window back, to what it was at the start if `whole`,
    /// else to the threshold, but to no more than `most`.
    pub(super) fn restore(&mut self, mss: u64, whole: bool, most: u64) {
        let before = if whole { self.at_start * mss } else { self.ssthresh };
        self.cwnd = self.cwnd.max(before).min(most).max(mss);
    }

    /// FreeBSD 9: SND.NXT at the first duplicate ACK, then when recovery began.
    pub(super) fn from(&self) -> u64 {
        self.at_start
    }

    /// FreeBSD 9: the first duplicate ACK has come.
    pub(super) fn set_from(&mut self, nxt: u64) {
        self.at_start = nxt;
    }

    /// FreeBSD 9: a timeout comes, with a window of `cwnd`, in an episode up to `point`.
    pub(super) fn interrupt(&mut self, cwnd: u64, ssthresh: u64, point: u64) {
        (self.cwnd, self.ssthresh) = (cwnd, ssthresh);
        (self.sent_bytes, self.sent_segments) = (point, self.at_start);
    }

    /// FreeBSD 9: the timeout was needless. Returns where the episode is to end
    /// (`snd_recover_prev`).
    pub(super) fn resume(&mut self) -> u64 {
        let point = self.sent_bytes;
        self.begin(self.cwnd, self.ssthresh, self.sent_segments);
        point
    }

    /// FreeBSD: what the first ACK after a timeout is held against (`t_badrxtwin`); zero is
    /// nothing.
    pub(super) fn may_be_needless(&mut self, at: Time) {
        self.delivered = at.as_nanos();
    }

    /// Takes the time given to [`WindowReduction::may_be_needless`].
    pub(super) fn take_needless(&mut self) -> Time {
        Time::from_nanos(std::mem::take(&mut self.delivered))
    }

    /// A segment with `bytes` of data was sent.
    #[inline]
    pub(super) fn sent(&mut self, bytes: u32) {
        self.sent_bytes += u64::from(bytes);
        self.sent_segments += 1;
    }

    /// One ACK's worth of PRR in bytes (RFC 9937 section 6, RFC 6937 section 3).
    pub(super) fn on_delivery(&mut self, rule: Prr, ack: AckDelivery, mss: u64) {
        let resent = if rule == Prr::Rfc6937 { ack.resent } else { 0 };
        let pipe = ack.in_flight.saturating_sub(resent);
        self.delivered += ack.delivered;
        let send = if pipe > self.ssthresh {
            let share = u128::from(self.delivered) * u128::from(self.ssthresh);
            let target = share.div_ceil(u128::from(self.at_start)) as u64;
            // Up to a whole segment, as the example of RFC 6937 section 3.1 counts.
            target.saturating_sub(self.sent_bytes).next_multiple_of(mss)
        } else {
            let owed = self.delivered.saturating_sub(self.sent_bytes);
            let bound = match rule {
                Prr::Rfc9937 if !ack.safe => owed.max(ack.delivered),
                Prr::Rfc9937 | Prr::Rfc6937 | Prr::Ssrb | Prr::RateHalving | Prr::Off => owed.max(ack.delivered) + mss,
            };
            bound.min(self.ssthresh - pipe)
        };
        // RFC 9937 section 6: a segment goes out at the start, whatever the sum says.
        let send = if send == 0 && self.sent_bytes == 0 { mss } else { send };
        // With nothing in flight no ACK would come to bring the rest of a segment.
        self.cwnd = (ack.in_flight + send).max(mss);
    }

    /// One ACK's worth of PRR in segments, after an ACK that delivered some (`tcp_cwnd_reduction`).
    /// `bonus` if one more than were delivered may go out while less than the threshold is in
    /// flight.
    pub(super) fn on_delivered_segments(&mut self, delivered: u64, in_flight: u64, mss: u64, bonus: bool) {
        self.delivered += delivered;
        let ssthresh = self.ssthresh / mss;
        let send = if in_flight > ssthresh {
            let share = u128::from(ssthresh) * u128::from(self.delivered);
            (share.div_ceil(u128::from(self.at_start)) as u64).saturating_sub(self.sent_segments)
        } else {
            let owed = self.delivered.saturating_sub(self.sent_segments);
            (owed.max(delivered) + u64::from(bonus)).min(ssthresh - in_flight)
        };
        // The first retransmission always goes out.
        let send = send.max(u64::from(self.sent_segments == 0));
        self.cwnd = ((in_flight + send) * mss).max(mss);
    }

    /// `tcp_cwnd_down` of Linux 2.4 and 2.6: one segment less for every second ACK, down to
    /// `least`.
    pub(super) fn halve_rate(&mut self, pipe: u64, mss: u64, least: u64) {
        self.delivered += 1;
        if self.delivered.is_multiple_of(2) && self.cwnd > least {
            self.cwnd -= mss;
        }
        self.cwnd = self.cwnd.min(pipe + mss).max(mss);
    }

    /// The ACKs that [`WindowReduction::halve_rate`] has counted since the last step.
    pub(super) fn half_steps(&self) -> u32 {
        (self.delivered % 2) as u32
    }

    /// Linux counts windows in segments, whose size has changed.
    pub(super) fn rescale(&mut self, scaled: impl Fn(u64) -> u64) {
        (self.cwnd, self.ssthresh) = (scaled(self.cwnd), scaled(self.ssthresh));
    }

    /// Segments are of `mss` bytes from now on.
    pub(super) fn hold_a_segment(&mut self, mss: u64) {
        self.cwnd = self.cwnd.max(mss);
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    const MSS: u64 = 1000;

    /// From a window of ten segments to one of five.
    fn halving(at_start: u64) -> WindowReduction {
        let mut reduction = WindowReduction::default();
        reduction.begin(10 * MSS, 5 * MSS, at_start);
        reduction
    }

    fn ack(in_flight: u64, safe: bool) -> AckDelivery {
        AckDelivery { delivered: MSS, in_flight, resent: 0, safe }
    }

    #[test]
    fn above_the_threshold_every_second_delivery_lets_a_segment_go() {
        // RFC 9937 section 6: sndcnt = ceil(prr_delivered * ssthresh / RecoverFS) - prr_out, here
        // delivered / 2 - sent, rounded up to a segment: 500, 1000 - 1000, 1500 - 1000,
        // 2000 - 2000.
        let mut reduction = halving(10 * MSS);
        for (in_flight, cwnd) in [(9000, 10_000), (9000, 9000), (8000, 9000), (8000, 8000)] {
            reduction.on_delivery(Prr::Rfc9937, ack(in_flight, true), MSS);
            assert_eq!(reduction.cwnd(), cwnd, "{in_flight} in flight");
            (in_flight..cwnd).step_by(1000).for_each(|_| reduction.sent(1000));
        }
    }

    #[test]
    fn below_the_threshold_a_safe_ack_adds_a_segment() {
        // RFC 9937 section 6: limit = max(prr_delivered - prr_out, DeliveredData), + SMSS if
        // SafeACK; of RFC 6937 section 3 SSRB, + MSS always. At most ssthresh - inflight.
        for (rule, in_flight, safe, cwnd) in [
            (Prr::Rfc9937, 2000, true, 4000),
            (Prr::Rfc9937, 2000, false, 3000),
            (Prr::Ssrb, 2000, false, 4000),
            (Prr::Rfc6937, 2000, false, 4000),
            (Prr::Rfc9937, 4500, true, 5000),
        ] {
            let mut reduction = halving(10 * MSS);
            reduction.on_delivery(rule, ack(in_flight, safe), MSS);
            assert_eq!(reduction.cwnd(), cwnd, "{rule:?} {in_flight} {safe}");
        }
    }

    #[test]
    fn rfc_6937_leaves_retransmissions_out_of_pipe() {
        // 6000 in flight, 3000 of it sent again: pipe is 3000, below the threshold of 5000.
        // Delivered 1000 and one segment more are owed, and fit.
        let mut reduction = halving(10 * MSS);
        reduction.on_delivery(Prr::Rfc6937, AckDelivery { resent: 3000, ..ack(6000, true) }, MSS);
        assert_eq!(reduction.cwnd(), 6000 + 2000);
    }

    #[test]
    fn linux_counts_in_segments() {
        // tcp_cwnd_reduction: ceil(ssthresh * prr_delivered / prior_cwnd) - prr_out, here 1, 1 - 1,
        // 2 - 1; below the threshold max(prr_delivered - prr_out, delivered), + 1 on a safe ACK.
        let mut reduction = halving(10);
        for (in_flight, send) in [(9, 1), (9, 0), (8, 1)] {
            reduction.on_delivered_segments(1, in_flight, MSS, true);
            assert_eq!(reduction.cwnd(), (in_flight + send) * MSS);
            (0..send).for_each(|_| reduction.sent(1000));
        }
        // Four delivered, two sent: two owed, one more if safe, and room for three.
        reduction.on_delivered_segments(1, 2, MSS, false);
        assert_eq!(reduction.cwnd(), 4 * MSS);
        let mut safe = halving(10);
        safe.on_delivered_segments(1, 2, MSS, true);
        assert_eq!(safe.cwnd(), 4 * MSS);
    }

    #[test]
    fn the_first_retransmission_always_goes_out() {
        // At the threshold there is no room, but nothing was sent yet.
        let mut reduction = halving(10);
        reduction.on_delivered_segments(1, 5, MSS, false);
        assert_eq!(reduction.cwnd(), 6 * MSS);
        let mut reduction = halving(10 * MSS);
        reduction.on_delivery(Prr::Rfc9937, ack(5000, false), MSS);
        assert_eq!(reduction.cwnd(), 6000);
    }

    #[test]
    fn rate_halving_takes_a_segment_for_every_second_ack() {
        // tcp_cwnd_down of 2.4: never more than what is in flight and a segment, and no further
        // down than half of the threshold.
        let mut reduction = halving(10);
        let windows: Vec<u64> = (0..4).map(|_| (reduction.halve_rate(9000, MSS, 2500), reduction.cwnd()).1).collect();
        assert_eq!(windows, [10_000, 9000, 9000, 8000]);
        assert_eq!(reduction.half_steps(), 0);
        reduction.halve_rate(3000, MSS, 2500);
        assert_eq!(reduction.cwnd(), 4000);
        assert_eq!(reduction.half_steps(), 1);
        (0..20).for_each(|_| reduction.halve_rate(9000, MSS, 2500));
        // 2500 is half of the threshold: 3000 is above it, 2000 is not.
        assert_eq!(reduction.cwnd(), 2000);
    }

    #[test]
    fn a_partial_ack_puts_the_window_back_to_a_bound() {
        // tcp_undo_cwr of 2.6.32 with and without prior_ssthresh, then tcp_moderate_cwnd: ten
        // segments or five, of which 8000 bytes are allowed.
        for (whole, cwnd) in [(true, 8000), (false, 5000)] {
            let mut reduction = halving(10);
            (0..20).for_each(|_| reduction.halve_rate(3000, MSS, 5000));
            assert_eq!(reduction.cwnd(), 4000);
            reduction.restore(MSS, whole, 8000);
            assert_eq!(reduction.cwnd(), cwnd, "{whole}");
        }
    }
}
