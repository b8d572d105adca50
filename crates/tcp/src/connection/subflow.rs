//! The interface for a layer above several endpoints, each of which is a subflow of one connection
//! (RFC 8684), beyond the calls of a socket.

use ackclock_cc::{Shared, Subflow, Window};
use ackclock_packet::{Flags, Segment};
use ackclock_units::Time;

use crate::{Endpoint, State};

impl Endpoint {
    /// Every segment from now on carries `bytes` bytes of options of a layer above, which is to add
    /// them: full segments are smaller by as much.
    pub fn reserve_options(&mut self, bytes: u8) {
        self.sender.path.reserved = bytes;
    }

    /// No segment has bytes of both what was written and what will be. Not with
    /// [`crate::Config::header_prediction`].
    pub fn end_record(&mut self) {
        if self.sender.sequence.written() + 1 > self.sender.sequence.nxt() {
            self.sender.queue.end_record(self.sender.sequence.written() + 1);
        }
    }

    /// An ACK goes out at once, whatever it has to say.
    pub fn acknowledge_now(&mut self) {
        self.sender.burst.end();
        self.receiver.acknowledge_now();
    }

    /// Payload bytes of a full segment, options subtracted.
    pub fn full_segment(&self) -> u32 {
        self.sender.full_payload()
    }

    /// Bytes that the congestion window has room for beyond what is in the network, waits to be
    /// sent, or is to be sent again.
    pub fn window_room(&self) -> u64 {
        let waits =
            self.sender.unsent() + self.sender.loss.board.lost().saturating_sub(self.sender.loss.board.resent());
        self.sender.cwnd().saturating_sub(self.sender.window_used() + waits)
    }

    /// A share of the window in each round trip, bytes per second, as pacing has it; `None` before
    /// there is an RTT.
    pub fn window_rate(&self) -> Option<u64> {
        self.sender.rate_of_window()
    }

    /// Returns `true` if the controller asks for the state of its siblings
    /// ([`ackclock_cc::Needs::siblings`]).
    pub fn is_coupled(&self) -> bool {
        self.sender.observer.needs.siblings
    }

    /// The state of this subflow that the controllers of its siblings may read.
    pub fn as_sibling(&mut self) -> Subflow {
        let Window { cwnd, ssthresh } = self.sender.cc.window();
        let mss = self.sender.negotiated.mss();
        let shared = self.sender.cc.coupled().map_or_else(Shared::default, |cc| cc.shared());
        Subflow { cwnd, ssthresh, mss, srtt: self.srtt(), min_rtt: self.sender.rtt.min(), shared }
    }

    /// Tells its controller of all subflows of the connection, of which it is number `own`.
    pub fn couple(&mut self, own: usize, subflows: &[Subflow]) {
        if let Some(cc) = self.sender.cc.coupled() {
            cc.couple(own, subflows);
        }
    }

    /// The congestion window becomes this one, for a reason that is not of this path.
    pub fn reduce_window(&mut self, window: Window) {
        self.sender.burst.end();
        self.sender.cc.take_over(window);
    }

    /// Returns `true` if an acknowledgment number covers data that was sent and is not yet
    /// acknowledged.
    pub fn acknowledges_new(&self, ack: u32) -> bool {
        self.sender
            .sequence
            .lift(ack)
            .is_some_and(|ack| self.sender.sequence.una() < ack && ack <= self.sender.sequence.nxt())
    }

    /// Returns `true` if a segment passes the checks of TCP (RFC 9293 section 3.10.7, RFC 5961, RFC
    /// 7323), so that options of a layer above may be acted upon: it is no SYN of an open
    /// connection, lies in the window, and acknowledges what may be acknowledged. It is taken in by
    /// [`Endpoint::input`] as before.
    pub fn would_accept(&self, now: Time, segment: &Segment) -> bool {
        match self.state {
            State::Closed => false,
            State::Listen => true,
            State::SynSent => !segment.flags.contains(Flags::ACK) || self.acknowledges_new(segment.ack),
            _ => {
                let Some(left) = self.receiver.lift(segment.seq).filter(|&left| left > 0) else { return false };
                let right = left + u64::from(segment.sequence_len());
                let acks = |ack: u64| {
                    ack <= self.sender.sequence.nxt()
                        && ack + self.sender.sequence.max_window() >= self.sender.sequence.una()
                };
                segment.flags.contains(Flags::ACK)
                    && !segment.flags.contains(Flags::SYN)
                    && self.passes_paws(now, segment, left)
                    && self.is_in_window(segment, left, right)
                    && self.sender.sequence.lift(segment.ack).is_some_and(acks)
            }
        }
    }

    /// Returns `true` if a sequence number is that of the first byte of our stream.
    pub fn is_first_number(&self, seq: u32) -> bool {
        seq == self.sender.sequence.isn().wrapping_add(1)
    }

    /// The place in our stream of the byte with this sequence number; `None` for that of the SYN.
    pub fn sent_offset(&self, seq: u32) -> Option<u64> {
        self.sender.sequence.lift(seq)?.checked_sub(1)
    }

    /// The shift of the window field, as it was agreed on.
    pub fn window_shift(&self) -> u8 {
        self.receiver.shift()
    }

    /// The place in the peer's stream of the byte with this sequence number, nearest to what is
    /// expected; `None` before the peer's SYN and for numbers before its first byte.
    pub fn stream_offset(&self, seq: u32) -> Option<u64> {
        self.receiver.lift(seq)?.checked_sub(1)
    }
}
