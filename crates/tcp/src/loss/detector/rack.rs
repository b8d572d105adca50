//! RACK: a segment is lost when one that was sent later has been delivered, and a reordering window
//! has passed since.
//!
//! It counts time in place of duplicates, and so finds lost retransmissions as well. The window is
//! nothing until reordering is seen, then a quarter of the shortest round trip of the last five
//! minutes, and more for every round trip in which a DSACK shows that it was too short.
//!
//! # Source
//! RFC 8985 section 6.2. Linux `net/ipv4/tcp_recovery.c` of 6.1 and 6.18;
//! `tcp_check_sack_reordering` and `tcp_update_rtt_min` in `tcp_input.c`; `lib/win_minmax.c`.
//!
//! # Departures
//! - Linux determines whether a round trip has passed since the window last grew by counting
//!   delivered segments; here it is the time when the newest delivered segment was sent, which is
//!   equivalent.

use ackclock_units::{Span, Time};

use super::view::{Marked, ReorderingExtent, View, mark_newreno};
use crate::loss::scoreboard::{Progress, Scoreboard, raise_key};
use crate::{CaState, Stamp};

/// `sysctl_tcp_max_reordering`.
const MAX_REORDERING: u32 = 300;
/// Recoveries for which a widened window lasts (RFC 8985 section 6.2 step 4;
/// `TCP_RACK_RECOVERY_THRESH`).
const PERSIST: u32 = 16;
/// Quarters of the shortest round trip that the window has at most (`reo_wnd_steps` is a byte).
const MAX_STEPS: u32 = 255;
/// `tcp_min_rtt_wlen`.
const MIN_RTT_WINDOW: Span = Span::from_secs(300);
/// Added to the timer (`TCP_TIMEOUT_MIN_US`).
const SLACK: Span = Span::from_millis(2);

#[derive(Clone, Debug)]
pub(crate) struct Rack {
    pub(super) reordering: ReorderingExtent,
    /// RACK.xmit_ts and RACK.end_seq.
    newest: Option<(Stamp, u64)>,
    /// RACK.rtt.
    rtt: Span,
    /// Something was delivered since the last look.
    advanced: bool,
    /// Quarters of the shortest round trip (`reo_wnd_mult`).
    steps: u32,
    /// Recoveries until the window is a quarter again.
    persist: u32,
    /// A DSACK has shown that the window is too short.
    too_short: bool,
    widened_at: Option<Stamp>,
    shortest: MinFilter,
}

impl Rack {
    pub(super) fn new() -> Rack {
        Rack {
            reordering: ReorderingExtent::new(MAX_REORDERING),
            newest: None,
            rtt: Span::ZERO,
            advanced: false,
            steps: 1,
            persist: 0,
            too_short: false,
            widened_at: None,
            shortest: MinFilter::default(),
        }
    }

    pub(super) fn rtt(&self) -> Span {
        self.rtt
    }

    pub(super) fn min_rtt(&self) -> Option<Span> {
        self.shortest.get()
    }

    pub(super) fn measured(&mut self, now: Time, rtt: Span) {
        self.shortest.sample(now, rtt);
    }

    /// `tcp_dsack_seen`: a DSACK counts only where reordering may be the cause.
    pub(super) fn duplicated(&mut self) {
        self.too_short |= self.reordering.seen > 0;
    }

    pub(super) fn delivered(&mut self, progress: &Progress) {
        if let (Some(newest), Some(rtt)) = (progress.delivery.certain, progress.delivery.rtt) {
            self.advanced = true;
            self.rtt = rtt;
            raise_key(&mut self.newest, newest);
        }
        if let Some((sent_at, _)) = progress.delivery.newest {
            self.adapt(sent_at, Stamp { at: progress.now, order: progress.order });
        }
    }

    /// Notes the delivery of segments that were sent once and in order, with the ACK that arrived
    /// at `now`.
    #[inline]
    pub(super) fn delivered_whole(&mut self, newest: (Stamp, u64), now: Stamp) {
        self.advanced = true;
        self.rtt = now.at.since(newest.0.at);
        raise_key(&mut self.newest, newest);
        self.adapt(newest.0, now);
    }

    /// `tcp_rack_update_reo_wnd`: the segment sent last of those delivered was sent at `sent_at`.
    fn adapt(&mut self, sent_at: Stamp, now: Stamp) {
        if self.widened_at.is_some_and(|widened| sent_at < widened) {
            // Less than a round trip ago: the DSACK is of a retransmission made before.
            self.too_short = false;
        }
        if self.too_short {
            self.steps = (self.steps + 1).min(MAX_STEPS);
            self.too_short = false;
            self.widened_at = Some(now);
            self.persist = PERSIST;
        } else if self.persist == 0 {
            self.steps = 1;
        }
    }

    /// `tcp_rack_reo_wnd`.
    fn window(&self, view: &View) -> Span {
        let hurry = view.state >= CaState::Recovery || view.sacked >= u64::from(self.reordering.threshold);
        if self.reordering.seen == 0 && hurry {
            return Span::ZERO;
        }
        // Without a sample Linux has no bound from below.
        let quarter = self.min_rtt().map_or(Span::MAX, |min| min / 4);
        let window = quarter.as_nanos().saturating_mul(u64::from(self.steps));
        Span::from_nanos(window).min(view.srtt.unwrap_or(Span::ZERO))
    }

    /// `tcp_identify_packet_loss`.
    pub(super) fn mark(&mut self, board: &mut Scoreboard, view: &View) -> Marked {
        if !view.sack {
            mark_newreno(board, view, self.reordering.threshold);
            return Marked::default();
        }
        if !std::mem::take(&mut self.advanced) {
            return Marked::default();
        }
        self.judge(board, view)
    }

    /// `tcp_rack_detect_loss`.
    pub(super) fn judge(&mut self, board: &mut Scoreboard, view: &View) -> Marked {
        let Some(newest) = self.newest else { return Marked::default() };
        let resent = board.resent_segments();
        let wait = self.rtt + self.window(view);
        let again = board.lose_sent_before(newest, view.now, wait).map(|wait| wait + SLACK);
        Marked { retransmission: board.resent_segments() < resent, again }
    }

    pub(super) fn undone(&mut self, by_dsack: bool) {
        if by_dsack {
            self.persist = (self.persist + 1).min(PERSIST);
        }
        // Segments declared lost are judged again.
        self.advanced = true;
    }

    pub(super) fn finished(&mut self) {
        self.persist = self.persist.saturating_sub(1);
    }
}

/// The minimum over a window of time, from three samples (Kathleen Nichols' algorithm,
/// `lib/win_minmax.c`).
#[derive(Clone, Debug, Default)]
struct MinFilter {
    best: Option<[(Time, Span); 3]>,
}

impl MinFilter {
    fn get(&self) -> Option<Span> {
        self.best.map(|best| best[0].1)
    }

    fn sample(&mut self, now: Time, value: Span) {
        let new = (now, value);
        let Some(best) = &mut self.best else {
            self.best = Some([new; 3]);
            return;
        };
        if value <= best[0].1 || now.since(best[2].0) > MIN_RTT_WINDOW {
            *best = [new; 3];
            return;
        }
        if value <= best[1].1 {
            (best[1], best[2]) = (new, new);
        } else if value <= best[2].1 {
            best[2] = new;
        }
        let age = now.since(best[0].0);
        if age > MIN_RTT_WINDOW {
            *best = [best[1], best[2], new];
            if now.since(best[0].0) > MIN_RTT_WINDOW {
                *best = [best[1], best[2], new];
            }
        } else if best[1].0 == best[0].0 && age > MIN_RTT_WINDOW / 4 {
            (best[1], best[2]) = (new, new);
        } else if best[2].0 == best[1].0 && age > MIN_RTT_WINDOW / 2 {
            best[2] = new;
        }
    }
}
