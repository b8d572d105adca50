//! Fallback to plain TCP where options do not get through (RFC 8684 section 3.7).

use ackclock_packet::{Flags, Segment};
use ackclock_units::Time;

use crate::connection::{Connection, Mode};
use crate::input::reason;
use crate::subflow::Stage;

impl Connection {
    /// A segment without any option: somebody on the way takes them out (RFC 8684 section 3.7), or
    /// an earlier mapping covers what it carries; `false` if it is to be dropped.
    pub(crate) fn miss_options(&mut self, now: Time, index: usize, segment: &Segment) -> bool {
        let subflow = &self.subflows[index];
        let len = u64::from(segment.payload.len);
        let place = subflow.endpoint.stream_offset(segment.seq).filter(|_| len > 0);
        let is_unmapped = place.is_some_and(|at| !subflow.covers(at..at + len));
        // Until a data acknowledgment has come by it: later, an ACK may go without (section 3.3.2).
        let acks_data = !subflow.data_acked
            && segment.flags.contains(Flags::ACK)
            && self.sending.una < self.sending.next
            && subflow.endpoint.acknowledges_new(segment.ack);
        if !is_unmapped && !acks_data {
            // What a stack sends from TIME-WAIT and the like.
            return true;
        }
        if !self.has_proved() && self.is_whole(index, subflow.taken) {
            self.fall_back();
            return true;
        }
        self.reset_subflow(now, index, reason::MIDDLEBOX);
        false
    }

    /// Whether the stream of a subflow, of which the first `known` bytes had their places, is that
    /// of the connection, both ways: no other has ever been open, and nothing was sent twice on it.
    fn is_whole(&self, index: usize, known: u64) -> bool {
        let whole = self.subflows[index].given == self.sending.next && known == self.receiving.next;
        index == 0 && !self.joined && whole && self.receiving.beyond.len() == 0
    }

    /// Whether options have got through, after which a subflow that loses them is reset: its peer
    /// may have sent bytes again on it (RFC 8684 section 3.3.1).
    fn has_proved(&self) -> bool {
        self.subflows[0].data_acked || self.receiving.is_mapped
    }

    /// Plain TCP from here on: the stream of the initial subflow is that of the connection.
    pub(crate) fn fall_back(&mut self) {
        self.mode = Mode::Plain;
        self.sending.timer = Time::NEVER;
        self.announced.clear();
        self.subflows.iter_mut().skip(1).for_each(|subflow| subflow.endpoint.abort());
        let subflow = &mut self.subflows[0];
        subflow.stage = Stage::Open;
        subflow.waiting.clear();
        // What was taken from it so far was in order: it had the only mapping.
        self.receiving.next = subflow.taken.max(self.receiving.next);
        self.receiving.beyond.clear();
    }

    /// In plain TCP the stream of the subflow is all there is, and it is read as the application
    /// reads.
    pub(crate) fn follow_plain(&mut self) {
        let subflow = &mut self.subflows[0];
        self.receiving.next = subflow.endpoint.delivered_bytes();
        self.sending.una = subflow.endpoint.acked_bytes();
        subflow.carried.received = self.receiving.next;
    }

    /// Bytes have arrived of which nobody has said where they belong; all before `at` had their
    /// places.
    pub(crate) fn miss_mapping(&mut self, now: Time, index: usize, at: u64) {
        if self.has_proved() {
            self.reset_subflow(now, index, reason::MIDDLEBOX);
        } else {
            self.fall_back_at(now, index, at);
        }
    }

    /// The peer sends plain TCP from the byte at `at` on, as an infinite mapping says.
    pub(crate) fn fall_back_at(&mut self, now: Time, index: usize, at: u64) {
        if self.is_whole(index, at) {
            self.fall_back();
            self.follow_plain();
        } else {
            self.reset_subflow(now, index, reason::MIDDLEBOX);
        }
    }
}
