//! Storage of the bytes of packets.

use std::ops::Range;

use crate::offload::{LONGEST, PartialChecksum, Segmentation};

/// Buffers of one length. A buffer that is returned is reused, so that a run has as many as there
/// were packets on their way at once.
///
/// A buffer is free, or held as a [`HeldBuffer`], or assigned by number to a packet on its way. The
/// buffer of a packet that was cut from a segment contains only the headers; the payload stays
/// where the segment was read.
#[derive(Debug)]
pub(super) struct PacketBuffers {
    store: Vec<Box<[u8]>>,
    /// By buffer number: the parts of the packet that are unfinished or elsewhere.
    left: Vec<Unfinished>,
    free: Vec<u32>,
    segments: Segments,
    /// The buffer for the next packet that is read.
    spare: Option<HeldBuffer>,
    /// A packet that was read, while others enter before it.
    aside: Option<HeldBuffer>,
    len: usize,
}

/// The parts of a packet that are unfinished or not in its buffer.
#[derive(Clone, Copy, Debug, Default)]
pub(super) struct Unfinished {
    /// The checksum to be computed.
    pub(super) checksum: Option<PartialChecksum>,
    /// The location of the payload.
    pub(super) tail: Option<PayloadSlice>,
}

impl Unfinished {
    #[inline]
    pub(super) fn is_nothing(&self) -> bool {
        self.checksum.is_none() && self.tail.is_none()
    }
}

/// Payload in a segment.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) struct PayloadSlice {
    /// The number of the segment.
    pub(super) segment: u32,
    /// Offset and length within the segment, in bytes.
    pub(super) from: u32,
    pub(super) len: u32,
    /// Bytes of headers in the packet's buffer.
    pub(super) head: u32,
}

/// Segments as they were read, each kept as long as it contains a packet's payload.
#[derive(Debug, Default)]
struct Segments {
    store: Vec<Box<[u8]>>,
    /// The number of packets with payload in each segment.
    packets: Vec<u32>,
    free: Vec<u32>,
    /// The segment for the next read.
    spare: Option<u32>,
}

impl Segments {
    /// The segment for the next read, with room for `head` bytes that are in a buffer and the rest.
    fn spare(&mut self, head: usize) -> u32 {
        *self.spare.get_or_insert_with(|| {
            self.free.pop().unwrap_or_else(|| {
                self.store.push(vec![0; head + LONGEST].into_boxed_slice());
                self.packets.push(0);
                (self.store.len() - 1) as u32
            })
        })
    }

    /// Ends the use of a segment by a packet.
    fn release(&mut self, segment: u32) {
        let packets = &mut self.packets[segment as usize];
        *packets -= 1;
        if *packets == 0 && self.spare != Some(segment) {
            self.free.push(segment);
        }
    }
}

/// A buffer that is held. It is moved, never copied, until it is
/// [returned](PacketBuffers::give_back), kept as the [spare one](PacketBuffers::keep), or
/// [assigned](HeldBuffer::send_along) to a packet.
#[derive(Debug)]
#[must_use = "it is given back, kept, or sent along"]
pub(super) struct HeldBuffer(u32);

impl HeldBuffer {
    /// The number by which a packet refers to the buffer.
    pub(super) fn number(&self) -> u32 {
        self.0
    }

    /// Leaves the buffer to a packet on its way, at whose end the number is
    /// [freed](PacketBuffers::come_back).
    pub(super) fn send_along(self) {
        std::mem::forget(self);
    }
}

#[cfg(debug_assertions)]
impl Drop for HeldBuffer {
    fn drop(&mut self) {
        assert!(std::thread::panicking(), "buffer {} is forgotten", self.0);
    }
}

impl PacketBuffers {
    pub(super) fn new(len: usize) -> PacketBuffers {
        let (segments, left) = (Segments::default(), Vec::new());
        let mut buffers =
            PacketBuffers { store: Vec::new(), left, free: Vec::new(), segments, spare: None, aside: None, len };
        let spare = buffers.claim();
        buffers.keep(spare);
        buffers
    }

    /// A free buffer; its contents are unspecified.
    pub(super) fn claim(&mut self) -> HeldBuffer {
        HeldBuffer(self.free.pop().unwrap_or_else(|| {
            self.store.push(vec![0; self.len].into_boxed_slice());
            self.left.push(Unfinished::default());
            // Memory is exhausted before four billion buffers.
            (self.store.len() - 1) as u32
        }))
    }

    pub(super) fn give_back(&mut self, buffer: HeldBuffer) {
        self.come_back(buffer.number());
        buffer.send_along();
    }

    /// Frees the buffer of a packet that no longer exists.
    pub(super) fn come_back(&mut self, number: u32) {
        debug_assert!(!self.free.contains(&number), "given back twice");
        self.finished(number);
        self.free.push(number);
    }

    /// Records that a packet is complete in its buffer, or has no more use for it.
    #[inline]
    fn finished(&mut self, number: u32) {
        let left = &mut self.left[number as usize];
        left.checksum = None;
        if let Some(tail) = left.tail.take() {
            self.segments.release(tail.segment);
        }
    }

    /// Room for the next packet that is read.
    pub(super) fn spare_mut(&mut self) -> &mut [u8] {
        let spare = self.take_spare();
        let number = spare.number();
        self.spare = Some(spare);
        &mut self.store[number as usize]
    }

    /// Room for the next read: the first `limit` bytes in the spare buffer, the rest in a segment.
    pub(super) fn spare_and_segment(&mut self, limit: usize) -> [&mut [u8]; 2] {
        let spare = self.take_spare();
        let number = spare.number();
        self.spare = Some(spare);
        let segment = self.segments.spare(limit);
        [&mut self.store[number as usize][..limit], &mut self.segments.store[segment as usize][limit..]]
    }

    /// Records that the checksum of the packet in the spare buffer is to be computed.
    pub(super) fn leave_checksum(&mut self, checksum: PartialChecksum) {
        if let Some(spare) = &self.spare {
            self.left[spare.0 as usize].checksum = Some(checksum);
        }
    }

    /// Accepts a segment of `len` bytes, read into the room of
    /// [`PacketBuffers::spare_and_segment`]; `cut` determines its packets, which
    /// [`PacketBuffers::piece`] then makes.
    pub(super) fn segment(
        &mut self,
        limit: usize,
        len: usize,
        cut: impl FnOnce(&[u8]) -> Option<Segmentation>,
    ) -> Option<Segmentation> {
        let (number, spare) = (self.segments.spare(limit), self.spare.as_ref()?.0);
        let segment = &mut self.segments.store[number as usize];
        let head = len.min(limit);
        segment[..head].copy_from_slice(&self.store[spare as usize][..head]);
        cut(&segment[..len])
    }

    /// Makes packet `number` of the segment in the spare buffer and returns its length; `None` if
    /// there is no such packet.
    pub(super) fn piece(&mut self, limit: usize, cut: &Segmentation, number: usize) -> Option<usize> {
        let Range { start, end } = cut.payload(number)?;
        let (segment, spare) = (self.segments.spare(limit), self.spare.as_ref()?.0);
        let head = cut.lengths().0;
        let headers = &mut self.store[spare as usize][..head];
        headers.copy_from_slice(&self.segments.store[segment as usize][..head]);
        cut.head(number, headers);
        self.segments.packets[segment as usize] += 1;
        let [from, len, head] = [start, end - start, head].map(|bytes| bytes as u32);
        self.left[spare as usize] =
            Unfinished { checksum: Some(cut.checksum()), tail: Some(PayloadSlice { segment, from, len, head }) };
        Some((head + len) as usize)
    }

    /// Ends the making of packets from the segment.
    pub(super) fn end_segment(&mut self) {
        self.segments.spare = self.segments.spare.filter(|&spare| self.segments.packets[spare as usize] == 0);
    }

    /// The parts of a packet that are unfinished or elsewhere.
    #[inline]
    pub(super) fn left(&self, number: u32) -> Unfinished {
        self.left[number as usize]
    }

    /// The payload of a packet in a segment.
    #[inline]
    pub(super) fn tail(&self, tail: PayloadSlice) -> &[u8] {
        &self.segments.store[tail.segment as usize][tail.from as usize..][..tail.len as usize]
    }

    /// Writes a packet of `len` bytes to `out` as a wire would carry it.
    pub(super) fn write_whole(&self, number: u32, len: usize, out: &mut [u8]) {
        let Unfinished { checksum, tail } = self.left(number);
        let head = tail.map_or(len, |tail| tail.head as usize);
        out[..head].copy_from_slice(&self.store[number as usize][..head]);
        if let Some(tail) = tail {
            out[head..len].copy_from_slice(self.tail(tail));
        }
        if let Some(checksum) = checksum {
            checksum.complete(&mut out[..len]);
        }
    }

    /// Completes the packet of `len` bytes in the spare buffer.
    pub(super) fn make_spare_whole(&mut self, len: usize) {
        if let Some(number) = self.spare.as_ref().map(HeldBuffer::number) {
            self.make_whole(number, len);
        }
    }

    /// Completes a packet of `len` bytes in its buffer, as a wire would carry it.
    pub(super) fn make_whole(&mut self, number: u32, len: usize) {
        let Unfinished { checksum, tail } = self.left(number);
        let packet = &mut self.store[number as usize][..len];
        if let Some(PayloadSlice { segment, from, len, head }) = tail {
            let payload = &self.segments.store[segment as usize][from as usize..][..len as usize];
            packet[head as usize..].copy_from_slice(payload);
        }
        if let Some(checksum) = checksum {
            checksum.complete(packet);
        }
        self.finished(number);
    }

    /// The buffer of the packet that was read. A buffer must then be [kept](PacketBuffers::keep)
    /// for the next.
    pub(super) fn take_spare(&mut self) -> HeldBuffer {
        match self.spare.take() {
            Some(spare) => spare,
            None => self.claim(),
        }
    }

    /// Keeps a buffer for the next read.
    pub(super) fn keep(&mut self, buffer: HeldBuffer) {
        self.finished(buffer.number());
        if let Some(spare) = self.spare.replace(buffer) {
            self.give_back(spare);
        }
    }

    /// Sets the packet in the spare buffer aside, until [`PacketBuffers::take_up`].
    pub(super) fn set_aside(&mut self) {
        self.aside = self.spare.take();
    }

    pub(super) fn take_up(&mut self) {
        if let Some(aside) = self.aside.take() {
            self.keep(aside);
        }
    }

    pub(super) fn bytes(&self, buffer: &HeldBuffer) -> &[u8] {
        &self.store[buffer.0 as usize]
    }

    pub(super) fn bytes_mut(&mut self, buffer: &mut HeldBuffer) -> &mut [u8] {
        &mut self.store[buffer.0 as usize]
    }

    /// The buffer of a packet on its way.
    pub(super) fn of_packet(&self, number: u32) -> &[u8] {
        &self.store[number as usize]
    }

    /// The buffer of a packet on its way, and a buffer to write to.
    pub(super) fn pair(&mut self, number: u32, to: &mut HeldBuffer) -> (&[u8], &mut [u8]) {
        let [from, to] =
            self.store.get_disjoint_mut([number as usize, to.0 as usize]).expect("two buffers, each of them there");
        (from, to)
    }

    /// The number of buffers that are not free.
    #[cfg(test)]
    pub(super) fn in_use(&self) -> usize {
        self.store.len() - self.free.len()
    }
}

impl Drop for PacketBuffers {
    fn drop(&mut self) {
        // Otherwise the drop of `HeldBuffer` would find it forgotten.
        [self.spare.take(), self.aside.take()].into_iter().flatten().for_each(HeldBuffer::send_along);
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_buffer_that_comes_back_is_used_again() {
        let mut buffers = PacketBuffers::new(1);
        let (first, second) = (buffers.claim(), buffers.claim());
        let number = first.number();
        first.send_along();
        // Two buffers, and the spare one.
        assert_eq!(buffers.in_use(), 3);
        buffers.come_back(number);
        let mut again = buffers.claim();
        assert_eq!(again.number(), number);
        buffers.bytes_mut(&mut again)[0] = 7;
        assert_eq!((buffers.of_packet(number), buffers.bytes(&second)), (&[7][..], &[0][..]));
        buffers.keep(second);
        buffers.keep(again);
        assert_eq!((buffers.in_use(), buffers.spare_mut()[0]), (1, 7));
    }

    #[test]
    #[cfg(debug_assertions)]
    #[should_panic(expected = "buffer 1 is forgotten")]
    fn a_buffer_is_not_forgotten() {
        drop(PacketBuffers::new(1).claim());
    }

    #[test]
    #[cfg(debug_assertions)]
    #[should_panic(expected = "given back twice")]
    fn a_packet_gives_its_buffer_back_once() {
        let mut buffers = PacketBuffers::new(1);
        let buffer = buffers.claim();
        let number = buffer.number();
        buffer.send_along();
        buffers.come_back(number);
        buffers.come_back(number);
    }
}
