//! The new information of one ACK.

use ackclock_units::{Span, Time};

use super::Sent;
use crate::Stamp;

/// The new information of an ACK, or of a SACK block of it.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Progress {
    /// When the ACK arrived.
    pub(crate) now: Time,
    /// The order of the [`Stamp`] of what it releases.
    pub(crate) order: u32,
    /// [`Delivery`] and `original_end` are wanted.
    pub(crate) in_detail: bool,
    /// The shortest round trip before this ACK, for [`Delivery`].
    pub(crate) min_rtt: Span,
    /// The time of the transmission that the timestamp echo belongs to, in milliseconds, as far as
    /// there is one.
    pub(crate) echo: Option<u64>,
    /// [`reported`](super::Scoreboard::reported) before this ACK: what it acknowledges was
    /// overtaken if it is below that.
    pub(crate) reported: Option<(u64, u64)>,
    /// Units acknowledged cumulatively.
    pub(crate) acked: u64,
    /// Segments acknowledged cumulatively.
    pub(crate) acked_segments: u64,
    /// Units that left the network now: acknowledged or SACKed, and not known to be so before.
    pub(crate) delivered: u64,
    /// Latest sending time among segments newly delivered that were sent once.
    pub(crate) newest_sent_at: Option<Time>,
    /// The cumulative ACK covers a segment that was retransmitted, and may have waited for it.
    pub(crate) covers_resent: bool,
    /// The cumulative ACK covers a retransmitted segment, reported before or not
    /// (`FLAG_RETRANS_DATA_ACKED`).
    pub(crate) acked_resent: bool,
    /// When the first and the last segment were sent that were sent once, and are acknowledged
    /// cumulatively without having been SACKed.
    pub(crate) first_acked_at: Option<Time>,
    pub(crate) last_acked_at: Option<Time>,
    /// The farthest that a segment sent once was delivered after a later one, in segments; 0
    /// without reordering.
    pub(crate) reordering: u64,
    /// Segments that left the network now.
    pub(crate) delivered_segments: u64,
    /// Segments of these that SACK blocks reported.
    pub(crate) sacked_segments: u64,
    /// When the lowest of those that was sent once was sent.
    pub(crate) first_sacked_at: Option<Time>,
    /// When the highest of those that was sent once was sent.
    pub(crate) last_sacked_at: Option<Time>,
    /// First unit of the lowest segment sent once that a SACK block reported below one reported
    /// before; or of a segment that was reported before and arrived again. `u64::MAX` if there is
    /// none.
    pub(crate) low_sacked: u64,
    /// First unit and position of the lowest segment sent once that was acknowledged cumulatively
    /// and not SACKed before; `u64::MAX` if there is none.
    pub(crate) low_acked: (u64, u64),
    /// The lowest end of a segment sent once that was delivered; `u64::MAX` if there is none.
    pub(crate) original_end: u64,
    /// Segments delivered, as RACK sees them.
    pub(crate) delivery: Delivery,
}

/// The segments that an ACK newly delivered, in the order of their (last) transmission (RFC 8985
/// section 6.2 step 2).
#[derive(Clone, Copy, Debug, Default)]
pub(crate) struct Delivery {
    /// When the one sent last was sent, and its end.
    pub(crate) newest: Option<(Stamp, u64)>,
    /// The newest without segments of which the original may have arrived.
    pub(crate) certain: Option<(Stamp, u64)>,
    /// The round trip of the last one taken in.
    pub(crate) rtt: Option<Span>,
}

/// Segments that were sent once and are acknowledged as a whole, while nothing in flight was
/// reported or lost.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Whole {
    pub(crate) segments: u32,
    /// Units of them.
    pub(crate) units: u64,
    /// When the first of them was sent.
    pub(crate) first_at: Time,
    /// When the last of them was sent, and its end.
    pub(crate) last: Stamp,
    pub(crate) end: u64,
}

impl Progress {
    #[inline]
    pub(crate) fn new(now: Time) -> Progress {
        Progress {
            now,
            order: 0,
            in_detail: true,
            min_rtt: Span::ZERO,
            echo: None,
            reported: None,
            acked: 0,
            acked_segments: 0,
            delivered: 0,
            newest_sent_at: None,
            covers_resent: false,
            acked_resent: false,
            first_acked_at: None,
            last_acked_at: None,
            reordering: 0,
            delivered_segments: 0,
            sacked_segments: 0,
            first_sacked_at: None,
            last_sacked_at: None,
            low_sacked: u64::MAX,
            low_acked: (u64::MAX, u64::MAX),
            original_end: u64::MAX,
            delivery: Delivery::default(),
        }
    }

    /// The progress by an ACK of `whole` segments that arrived at `now`.
    pub(in crate::loss) fn of_whole(now: Time, order: u32, whole: &Whole) -> Progress {
        let (segments, newest) = (u64::from(whole.segments), (whole.last, whole.end));
        Progress {
            order,
            acked: whole.units,
            acked_segments: segments,
            delivered: whole.units,
            newest_sent_at: Some(whole.last.at),
            first_acked_at: Some(whole.first_at),
            last_acked_at: Some(whole.last.at),
            delivered_segments: segments,
            delivery: Delivery { newest: Some(newest), certain: Some(newest), rtt: Some(now.since(whole.last.at)) },
            ..Progress::new(now)
        }
    }

    /// A segment was newly delivered; `in_order` if it is acknowledged cumulatively.
    #[inline(always)]
    pub(super) fn deliver(&mut self, sent: &Sent, in_order: bool) {
        self.delivered += u64::from(sent.len);
        self.delivered_segments += 1;
        if !self.in_detail {
            if !sent.ever_resent() {
                raise(&mut self.newest_sent_at, sent.sent_at);
            }
            return;
        }
        let key = (sent.stamp(), sent.end());
        raise_key(&mut self.delivery.newest, key);
        if sent.ever_resent() {
            // RFC 8985 section 6.2 step 2: the echo is of an earlier transmission, or the answer
            // came too soon for this one. A SACK comes with the echo of the segment before the
            // hole, which says nothing (`tcp_sacktag_one`).
            let earlier = || self.echo.is_some_and(|echo| echo < sent.sent_at.as_nanos() / 1_000_000);
            if (in_order && earlier()) || self.now.since(sent.sent_at) < self.min_rtt {
                return;
            }
        } else {
            raise(&mut self.newest_sent_at, sent.sent_at);
            self.original_end = self.original_end.min(sent.end());
        }
        raise_key(&mut self.delivery.certain, key);
        self.delivery.rtt = Some(self.now.since(sent.sent_at));
    }
}

/// Makes `most` no less than `value`. `Option::max` moves both in wide pieces, which waits for the
/// narrow ones that have just been written.
#[inline(always)]
fn raise<T: PartialOrd>(most: &mut Option<T>, value: T) {
    if most.as_ref().is_none_or(|most| *most < value) {
        *most = Some(value);
    }
}

/// Raises `most` to a transmission and its end. The order of tuples is compared by a function of
/// its own, which costs a call for each segment.
#[inline(always)]
pub(in crate::loss) fn raise_key(most: &mut Option<(Stamp, u64)>, (stamp, end): (Stamp, u64)) {
    let later = match *most {
        None => true,
        Some((most, _)) if stamp.at != most.at => stamp.at > most.at,
        Some((most, _)) if stamp.order != most.order => stamp.order > most.order,
        Some((_, most)) => end > most,
    };
    if later {
        *most = Some((stamp, end));
    }
}
