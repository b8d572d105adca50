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

use ackclock_units::Span;

use crate::SackCompression;

/// ACKs with the same acknowledgment that go out first (`TCP_FASTRETRANS_THRESH`).
const FIRST: u32 = 3;
/// Blocks that are reported to a peer repeatedly; another one is not added before the present ones
/// have been reported (`TCP_SACK_BLOCKS_EXPECTED`).
pub(in crate::receiver) const BLOCKS: usize = 2;

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
    /// Sets the rules as agreed in the handshake.
    pub(in crate::receiver) fn set_rules(&mut self, rules: Option<SackCompression>) {
        self.rules = rules;
    }

    /// Returns `true` if ACKs are compressed.
    pub(in crate::receiver) fn is_on(&self) -> bool {
        self.rules.is_some()
    }

    /// An ACK has left before the segment in hand is taken in.
    pub(in crate::receiver) fn report(&mut self) {
        self.reported = true;
    }

    /// Returns `true` if an ACK has left before the segment in hand, which is asked once.
    pub(in crate::receiver) fn take_reported(&mut self) -> bool {
        std::mem::take(&mut self.reported)
    }

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
    pub(in crate::receiver) fn wait(&mut self, next: u64, rtt: Span) -> Option<Span> {
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
