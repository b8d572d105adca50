//! Segmentation offload: segments are cut into packets at their entry, and joined again as they
//! leave.
//!
//! Packets leave as one segment if they were cut from the same segment, are consecutive in it, are
//! due together and are alike. This depends on their due times and not on when they are handed
//! over, so that a late loop does not join packets that a wire would have carried apart.

use ackclock_sim::Outbound;
use ackclock_units::{Ecn, Span, Time};

use super::buffers::PayloadSlice;
use super::{DueOutput, Engine, Outgoing};
use crate::Offload;
use crate::offload::{LONGEST, Segmentation, join};
use crate::router::mark_ce;

/// The longest interval between packets that are due together: less than the transmission time of a
/// packet of 1500 bytes at 1.2 Gbit/s.
const TOGETHER: Span = Span::from_micros(10);

impl Engine {
    /// From now on completes every packet at its entry, as a wire would carry it, for a capture.
    pub fn keep_whole(&mut self) {
        self.keeps_whole = true;
    }

    /// Room for the next read from a device with offloads: the [`Engine::buffer`], and room for the
    /// rest of a segment.
    pub fn buffers(&mut self) -> [&mut [u8]; 2] {
        self.buffers.spare_and_segment(self.limit)
    }

    /// Accepts `len` bytes in the [buffers](Engine::buffers), which host `node` sent and `offload`
    /// describes. A segment is cut, and each packet of it enters as by [`Engine::arrive`]. Before,
    /// `each` is called with the packet's bytes, complete after [`Engine::keep_whole`].
    ///
    /// # Panics
    /// If `len` exceeds the buffers, or there is no such host.
    pub fn arrive_offloaded(
        &mut self,
        now: Time,
        node: usize,
        len: usize,
        offload: Offload,
        mut each: impl FnMut(&[u8]),
    ) {
        let limit = self.limit;
        if !offload.is_segment() {
            let len = len.min(limit);
            let checksum = offload.checksum.filter(|checksum| checksum.is_behind_header(&self.buffer()[..len]));
            if let Some(checksum) = checksum {
                self.buffers.leave_checksum(checksum);
            }
            return self.arrive_piece(now, node, len, &mut each);
        }
        let cut = self.buffers.segment(limit, len, |segment| Segmentation::new(segment, offload));
        let Some(cut) = cut.filter(|cut| cut.lengths().1 < limit) else {
            let counts = &mut self.nodes[node].counts;
            counts.received_packets += 1;
            counts.received_bytes += len as u64;
            counts.truncated += 1;
            return;
        };
        self.nodes[node].counts.received_segments += 1;
        let mut number = 0;
        while let Some(len) = self.buffers.piece(limit, &cut, number) {
            self.arrive_piece(now, node, len, &mut each);
            number += 1;
        }
        self.buffers.end_segment();
    }

    /// Accepts the packet in the spare buffer.
    fn arrive_piece(&mut self, now: Time, node: usize, len: usize, each: &mut impl FnMut(&[u8])) {
        if self.keeps_whole {
            self.buffers.make_spare_whole(len);
        }
        each(&self.buffer()[..len]);
        self.arrive(now, node, len);
    }

    /// The location of a packet's payload, if that is in a segment and remains there.
    pub(super) fn tail(&self, packet: &Outbound) -> Option<PayloadSlice> {
        let token = packet.token.filter(|_| !packet.packet.class.is_corrupted())?;
        self.buffers.left(token).tail
    }

    /// Collects the first packet, whose payload is at `tail`, and the packets that leave with it.
    pub(super) fn gather(&mut self, now: Time, first: Outbound, tail: PayloadSlice) {
        let (mut at, mut end, mut bytes) = (first.at, tail.from + tail.len, tail.head + tail.len);
        let (node, marked) = (first.node, first.packet.ecn);
        self.together.push(first);
        loop {
            // A packet that follows may be due by now.
            while self.outgoing.is_empty() && self.step(now) {}
            let Some(DueOutput::Packet(next)) = self.outgoing.front() else { return };
            let follows = |next: &Outbound| {
                let tail = self.tail(next).filter(|next| (next.segment, next.from) == (tail.segment, end))?;
                let alike = next.node == node && next.packet.ecn == marked && next.at.since(at) <= TOGETHER;
                (alike && (bytes + tail.len) as usize <= LONGEST).then_some(tail)
            };
            let Some(next_tail) = follows(next) else { return };
            (at, end, bytes) = (next.at, end + next_tail.len, bytes + next_tail.len);
            if let Some(DueOutput::Packet(next)) = self.outgoing.pop_front() {
                self.together.push(next);
            }
            // Only the last packet may be shorter.
            if next_tail.len != tail.len {
                return;
            }
        }
    }

    /// Describes the collected packets as one segment.
    pub(super) fn segment(&mut self, at: Time, node: usize, tail: PayloadSlice) -> Option<Outgoing<'_>> {
        let (first, last) = (self.together.first()?, self.together.last()?);
        let [first_token, last_token] = [first.token?, last.token?];
        let (marked, packets) = (first.packet.ecn == Ecn::Ce, self.together.len() as u32);
        let last_tail = self.buffers.left(last_token).tail?;
        let checksum = self.buffers.left(first_token).checksum?;
        let len = last_tail.from + last_tail.len - tail.from;
        let head = &mut self.scratch[..tail.head as usize];
        head.copy_from_slice(&self.buffers.of_packet(first_token)[..tail.head as usize]);
        if marked {
            mark_ce(head);
        }
        let mut offload = Offload::checksum(Some(checksum));
        if packets > 1 {
            let last = &self.buffers.of_packet(last_token)[..tail.head as usize];
            offload = join(head, last, checksum, len as usize, tail.len as u16);
        }
        let counts = &mut self.nodes[node].counts;
        counts.sent_segments += u64::from(packets > 1);
        counts.sent_packets += u64::from(packets);
        counts.sent_bytes += u64::from(tail.head * packets + len);
        let rest = self.buffers.tail(PayloadSlice { len, ..tail });
        Some(Outgoing { at, node, bytes: head, rest, offload, packets })
    }
}
