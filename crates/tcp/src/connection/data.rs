//! Processing of payload and FIN (RFC 9293 section 3.10.7.4, seventh and eighth check).

use ackclock_packet::{Flags, Segment};
use ackclock_units::{Ecn, Time};

use crate::receiver::{Arrived, Context};
use crate::{AckRule, Endpoint, WindowRule};

impl Endpoint {
    /// Payload and FIN.
    pub(crate) fn input_data(&mut self, now: Time, segment: &Segment, left: u64, right: u64, ecn: Ecn) {
        if self.sender.ecn.may_arrive_marked() {
            if self.sender.ecn.changes_echo(ecn) && self.receiver.owes_ack() {
                self.acknowledge_before(now);
            }
            self.sender.ecn.note_mark(segment, ecn, self.sender.counters.ecn_seen, &mut self.receiver);
        }
        self.receiver.check(left, segment.payload);
        let mut edge = self.receiver.edge();
        if let WindowRule::Linux { .. } = self.config.transfer.window {
            if left >= edge || self.receiver.acceptable() == 0 && right > edge {
                if !self.lets_fin_in(segment, left) {
                    self.receiver.beyond_window();
                    return;
                }
                // There is no memory for it: ICSK_ACK_NOMEM.
                self.receiver.acknowledge_now();
            }
            // All of a segment that begins within the window is taken, up to release 6.16.
            edge = u64::MAX;
        }
        if segment.flags.contains(Flags::FIN) {
            self.receiver.note_fin(right - 1);
        }
        // Nothing follows a FIN.
        let right = right.min(edge).min(self.receiver.end());
        if right <= left {
            self.receiver.acknowledge_now();
            return;
        }
        if right <= self.receiver.next() {
            self.sender.note_spurious(left);
        }
        self.describe_arrival(now, segment);
        if left > self.receiver.next() {
            self.note_gap(now, left, right);
        }
        let arrived = self.receiver.receive(now, left, right, segment.payload.len);
        if self.socket.discards() {
            self.read(u64::MAX);
        }
        if arrived == Arrived::InOrder && self.receiver().is_finished() {
            self.on_peer_fin(now);
        }
    }

    /// Returns `true` if `left` is the next number and the segment is a FIN alone, which is
    /// accepted although the window is closed.
    #[cold]
    fn lets_fin_in(&self, segment: &Segment, left: u64) -> bool {
        let bare_fin = segment.flags.contains(Flags::FIN) && segment.payload.len == 0;
        bare_fin && self.receiver.is_next(left) && self.config.states.zero_window_fin
    }

    /// Data beyond a gap is about to be taken in.
    #[inline(never)]
    pub(crate) fn note_gap(&mut self, now: Time, left: u64, right: u64) {
        // All of it counts, also what is known.
        self.sender.counters.out_of_order += 1;
        if self.receiver.reports_before(left, right, self.sender.rtt.srtt()) && !self.answers.has_before() {
            self.acknowledge_before(now);
            self.receiver.reported_before();
        }
    }

    /// An ACK goes out of what came before the data in hand.
    #[inline(never)]
    fn acknowledge_before(&mut self, now: Time) {
        let mut ack = Segment::default();
        self.write_ack(now, &mut ack);
        self.answers.send_before(ack);
    }

    /// Describes what, beside the data, decides about the ACK.
    #[inline]
    pub(crate) fn describe_arrival(&mut self, now: Time, segment: &Segment) {
        if !self.receiver.is_described() {
            return;
        }
        if self.receiver.is_tuned() {
            self.tune(now, segment);
        }
        if self.config.transfer.acks != AckRule::Linux && !self.config.delayed_ack.hurry.looks_closer() {
            return;
        }
        let context = Context {
            pushed: segment.flags.contains(Flags::PSH),
            last: segment.flags.contains(Flags::FIN),
            srtt: self.sender.rtt.srtt(),
            rto: self.sender.rto(),
            segment: self.sender.announced_segment(),
        };
        self.receiver.describe(context);
    }

    #[inline(never)]
    fn tune(&mut self, now: Time, segment: &Segment) {
        let age = self.sender.negotiated.echo_age(now, segment);
        let echo = segment.timestamps.map(|stamps| stamps.echo).zip(age);
        self.receiver.tune(now, segment.payload.len, echo, self.sender.announced_segment());
    }
}
