//! Fallback to plain TCP where options do not get through (RFC 8684 section 3.7).

use ackclock_packet::{Flags, Segment};
use ackclock_units::Time;

use crate::connection::{Connection, Mode};
use crate::input::reason;
use crate::subflow::Stage;

impl Connection {
    /// Handles a segment without options: a middlebox removes them (RFC 8684 section 3.7), or an
    /// earlier mapping covers its payload. `false` if the segment is to be dropped.
    pub(crate) fn miss_options(&mut self, now: Time, index: usize, segment: &Segment) -> bool {
        let subflow = &self.subflows[index];
        let len = u64::from(segment.payload.len);
        let place = subflow.endpoint.receiver().stream_offset(segment.seq).filter(|_| len > 0);
        let is_unmapped = place.is_some_and(|at| !subflow.covers(at..at + len));
        // This applies until a data acknowledgment has arrived: later, an ACK may lack one (section
        // 3.3.2).
        let acks_data = !subflow.data_acked
            && segment.flags.contains(Flags::ACK)
            && self.sending.una < self.sending.next
            && subflow.endpoint.sender().sequence().acknowledges_new(segment.ack);
        if !is_unmapped && !acks_data {
            // Stacks send such segments from TIME-WAIT, for example.
            return true;
        }
        if !self.has_proved() && self.is_whole(index, subflow.taken) {
            self.fall_back();
            return true;
        }
        self.reset_subflow(now, index, reason::MIDDLEBOX);
        false
    }

    /// Returns `true` if the stream of a subflow, whose first `known` bytes were mapped, equals
    /// that of the connection in both directions: no other subflow has ever been open, and nothing
    /// was retransmitted on it.
    fn is_whole(&self, index: usize, known: u64) -> bool {
        let whole = self.subflows[index].given == self.sending.next && known == self.receiving.next;
        index == 0 && !self.joined && whole && self.receiving.beyond.len() == 0
    }

    /// Returns `true` if options have arrived. Afterwards a subflow that loses them is reset, since
    /// its peer may have retransmitted other subflows' bytes on it (RFC 8684 section 3.3.1).
    fn has_proved(&self) -> bool {
        self.subflows[0].data_acked || self.receiving.is_mapped
    }

    /// Falls back to plain TCP: the stream of the initial subflow is that of the connection.
    pub(crate) fn fall_back(&mut self) {
        self.mode = Mode::Plain;
        self.sending.timer = Time::NEVER;
        self.announced.clear();
        self.subflows.iter_mut().skip(1).for_each(|subflow| subflow.endpoint.abort());
        let subflow = &mut self.subflows[0];
        subflow.stage = Stage::Open;
        subflow.waiting.clear();
        // Data read so far was in order, since the subflow had the only mapping.
        self.receiving.next = subflow.taken.max(self.receiving.next);
        self.receiving.beyond.clear();
    }

    /// Copies the state of the subflow's stream, which in plain TCP is the only one and is read as
    /// the application reads.
    pub(crate) fn follow_plain(&mut self) {
        let subflow = &mut self.subflows[0];
        self.receiving.next = subflow.endpoint.receiver().delivered();
        self.sending.una = subflow.endpoint.sender().sequence().acked_bytes();
        subflow.carried.received = self.receiving.next;
    }

    /// Handles data without a mapping at `at`; all data before was mapped.
    pub(crate) fn miss_mapping(&mut self, now: Time, index: usize, at: u64) {
        if self.has_proved() {
            self.reset_subflow(now, index, reason::MIDDLEBOX);
        } else {
            self.fall_back_at(now, index, at);
        }
    }

    /// Falls back where the peer does, from the byte at `at` on, by an infinite mapping.
    pub(crate) fn fall_back_at(&mut self, now: Time, index: usize, at: u64) {
        if self.is_whole(index, at) {
            self.fall_back();
            self.follow_plain();
        } else {
            self.reset_subflow(now, index, reason::MIDDLEBOX);
        }
    }
}
