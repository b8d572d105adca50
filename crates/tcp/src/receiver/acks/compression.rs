//! ACKs of data beyond a gap, put together into fewer.
//!
//! # Source
//! Linux 6.1, `net/ipv4/tcp_input.c` (`__tcp_ack_snd_check`, `tcp_sack_new_ofo_skb`,
//! `tcp_sack_compress_send_ack`), `tcp_timer.c` (`tcp_compressed_ack_kick`,
//! `tcp_delack_timer_handler`), `tcp_output.c` (`tcp_event_ack_sent`).
//!
//! # Departures
//! - The round trip is the smoothed one of the data that this end has sent, the handshake's for a
//!   pure receiver; Linux takes the receiver's estimate (`rcv_rtt_est`) if that is shorter.
//! - The timer expires at the end of its slack, as where nothing else happens to interrupt the
//!   processor in between.

use ackclock_units::{Span, Time};

use crate::receiver::Receiver;
use crate::{AckRule, SackCompression};

/// ACKs with the same acknowledgment that go out first (`TCP_FASTRETRANS_THRESH`).
const FIRST: u32 = 3;
/// Blocks that are reported to a peer repeatedly; another one is not added before the present ones
/// have been reported (`TCP_SACK_BLOCKS_EXPECTED`).
const BLOCKS: usize = 2;

/// The ACKs that wait.
#[derive(Clone, Copy, Debug, Default)]
pub(in crate::receiver) struct Compression {
    rules: Option<SackCompression>,
    /// Segments that wait for the next ACK (`compressed_ack`).
    waiting: u32,
    /// ACKs that did not wait, with the acknowledgment `next` (`dup_ack_counter`,
    /// `compressed_ack_rcv_nxt`).
    first: u32,
    next: u64,
    /// An ACK has just left before the segment in hand is taken in: none is scheduled for it.
    reported: bool,
}

impl Compression {
    /// Returns `true` if an ACK waits.
    pub(in crate::receiver) fn holds(&self) -> bool {
        self.waiting > 0
    }

    /// An ACK has left.
    #[inline]
    pub(in crate::receiver) fn sent(&mut self) {
        self.waiting = 0;
    }

    /// A segment beyond the gap at `next` came, or one that moved `next` and left a gap: how long
    /// its ACK may wait, if it may.
    fn wait(&mut self, next: u64, rtt: Span) -> Option<Span> {
        let rules = self.rules.filter(|rules| self.waiting < rules.segments)?;
        if self.next != next {
            (self.next, self.first) = (next, 0);
        }
        if self.first < FIRST {
            self.first += 1;
            return None;
        }
        self.waiting += 1;
        Some(rules.delay.min(rtt / 20) + rules.slack)
    }
}

impl Receiver {
    /// Compresses ACKs from now on, as agreed in the handshake.
    pub(crate) fn compress(&mut self, rules: Option<SackCompression>) {
        self.compression.rules = rules;
    }

    /// Data beyond a gap came, and is about to be taken in: it is acknowledged now or, where ACKs
    /// are compressed, soon.
    pub(in crate::receiver) fn acknowledge_gap(&mut self, now: Time, payload: u32) {
        let by_rule = self.ack_rule == AckRule::Linux;
        self.out_of_order();
        if by_rule {
            self.linux_acks.owe();
            let grown = if self.tuned.is_some() { self.grow_beyond(payload) } else { self.grow_window(payload) };
            if grown {
                self.linux_acks.quick_once();
            }
        }
        if std::mem::take(&mut self.compression.reported) {
            // tcp_event_ack_sent has taken the mark away by which tcp_ack_snd_check knows that an
            // ACK is owed.
            self.linux_acks.settle();
            return;
        }
        if self.compression.rules.is_none() {
            self.ack_now = true;
            self.acknowledged_out_of_order();
            return;
        }
        let hurries = if by_rule {
            let much = self.linux_acks.is_much(self.next - self.last_ack_sent);
            much && self.linux_window() >= self.last_window || self.linux_acks.is_quick()
        } else {
            let much = self.next - self.last_ack_sent > u64::from(self.peer_segment);
            let quick = self.quick_left > 0;
            self.quick_left = self.quick_left.saturating_sub(1);
            much || quick || self.grows_by_policy()
        };
        if self.ack_now || hurries {
            self.ack_now = true;
            return;
        }
        let idle = !self.compression.holds();
        match self.compression.wait(self.next, self.context.srtt.unwrap_or(Span::ZERO)) {
            None => self.ack_now = true,
            Some(wait) if idle => self.ack_at = self.ack_at.min(now + wait),
            Some(_) => {}
        }
    }

    /// The left edge has moved, by a segment at most. If a gap remains, the ACK that says so is
    /// among the first with its acknowledgment.
    pub(in crate::receiver) fn count_progress(&mut self) {
        let (segment, quick) = if self.ack_rule == AckRule::Linux {
            (self.linux_acks.segment(), self.linux_acks.is_quick())
        } else {
            (self.peer_segment, self.quick_left > 0 || self.grown < self.buffer)
        };
        if self.has_gap() && !quick && self.next - self.last_ack_sent <= u64::from(segment) {
            self.compression.wait(self.next, Span::ZERO);
        }
    }

    /// The window grows, for data beyond a gap as for any, and all of it is acknowledged meanwhile.
    fn grows_by_policy(&mut self) -> bool {
        let grows = self.grown < self.buffer;
        if grows {
            self.grown += 2 * u64::from(self.peer_segment);
        }
        grows
    }

    /// The ACK that waited has left before the segment in hand is taken in.
    pub(crate) fn reported_before(&mut self) {
        self.compression.reported = true;
    }

    /// Data in `left..right`, beyond a gap, is about to be taken in, with the smoothed RTT `srtt`:
    /// whether the ACK that waits has to leave first, because it would have another block to
    /// report.
    pub(crate) fn reports_before(&mut self, left: u64, right: u64, srtt: Option<Span>) -> bool {
        self.context.srtt = srtt;
        if !self.compression.holds() {
            return false;
        }
        let touches = |block: (u64, u64)| left <= block.1 && block.0 <= right;
        let at = self.reassembly.recent().position(touches);
        at.unwrap_or_else(|| self.reassembly.recent().count()) >= BLOCKS
    }
}
