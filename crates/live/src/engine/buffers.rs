//! The bytes of packets.

/// Buffers, all of one length; one that is given back is used again, so that a run has as many as
/// packets were on their way at once.
///
/// Each is in one of three places: free, with whoever holds its [`Buffer`], or with a packet that
/// is on its way, which knows its number.
#[derive(Debug)]
pub(super) struct Buffers {
    store: Vec<Box<[u8]>>,
    free: Vec<u32>,
    /// The one for the next packet that is read.
    spare: Option<Buffer>,
    len: usize,
}

/// A buffer in hand. It is moved, never copied, until it is [given back](Buffers::give_back), kept
/// as the [spare one](Buffers::keep), or [sent along](Buffer::send_along) with a packet.
#[derive(Debug)]
#[must_use = "it is given back, kept, or sent along"]
pub(super) struct Buffer(u32);

impl Buffer {
    /// The number by which a packet knows it.
    pub(super) fn number(&self) -> u32 {
        self.0
    }

    /// A packet that is on its way has it now. Its number comes back once the packet is no more.
    pub(super) fn send_along(self) {
        std::mem::forget(self);
    }
}

#[cfg(debug_assertions)]
impl Drop for Buffer {
    fn drop(&mut self) {
        assert!(std::thread::panicking(), "buffer {} is forgotten", self.0);
    }
}

impl Buffers {
    pub(super) fn new(len: usize) -> Buffers {
        let mut buffers = Buffers { store: Vec::new(), free: Vec::new(), spare: None, len };
        let spare = buffers.claim();
        buffers.keep(spare);
        buffers
    }

    /// A buffer that nobody has; what is in it is unspecified.
    pub(super) fn claim(&mut self) -> Buffer {
        Buffer(self.free.pop().unwrap_or_else(|| {
            self.store.push(vec![0; self.len].into_boxed_slice());
            // Four billion buffers are more than there is memory.
            (self.store.len() - 1) as u32
        }))
    }

    pub(super) fn give_back(&mut self, buffer: Buffer) {
        self.come_back(buffer.number());
        buffer.send_along();
    }

    /// The packet that this buffer was sent along with is no more.
    pub(super) fn come_back(&mut self, number: u32) {
        debug_assert!(!self.free.contains(&number), "given back twice");
        self.free.push(number);
    }

    /// Room for the next packet that is read.
    pub(super) fn spare_mut(&mut self) -> &mut [u8] {
        let spare = self.take_spare();
        let number = spare.number();
        self.spare = Some(spare);
        &mut self.store[number as usize]
    }

    /// The buffer of the packet that was read. Another one is to be [kept](Buffers::keep) for the
    /// next.
    pub(super) fn take_spare(&mut self) -> Buffer {
        match self.spare.take() {
            Some(spare) => spare,
            None => self.claim(),
        }
    }

    /// Keeps a buffer for the next packet that is read.
    pub(super) fn keep(&mut self, buffer: Buffer) {
        if let Some(spare) = self.spare.replace(buffer) {
            self.give_back(spare);
        }
    }

    pub(super) fn bytes(&self, buffer: &Buffer) -> &[u8] {
        &self.store[buffer.0 as usize]
    }

    pub(super) fn bytes_mut(&mut self, buffer: &mut Buffer) -> &mut [u8] {
        &mut self.store[buffer.0 as usize]
    }

    /// The bytes of a packet that is on its way.
    pub(super) fn of_packet(&self, number: u32) -> &[u8] {
        &self.store[number as usize]
    }

    /// Those, and another buffer to write to.
    pub(super) fn pair(&mut self, number: u32, to: &mut Buffer) -> (&[u8], &mut [u8]) {
        let [from, to] =
            self.store.get_disjoint_mut([number as usize, to.0 as usize]).expect("two buffers, each of them there");
        (from, to)
    }

    /// Buffers that somebody has.
    #[cfg(test)]
    pub(super) fn in_use(&self) -> usize {
        self.store.len() - self.free.len()
    }
}

impl Drop for Buffers {
    fn drop(&mut self) {
        // Its bytes are in the store.
        if let Some(spare) = self.spare.take() {
            spare.send_along();
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_buffer_that_comes_back_is_used_again() {
        let mut buffers = Buffers::new(1);
        let (first, second) = (buffers.claim(), buffers.claim());
        let number = first.number();
        first.send_along();
        // And the spare one.
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
        drop(Buffers::new(1).claim());
    }

    #[test]
    #[cfg(debug_assertions)]
    #[should_panic(expected = "given back twice")]
    fn a_packet_gives_its_buffer_back_once() {
        let mut buffers = Buffers::new(1);
        let buffer = buffers.claim();
        let number = buffer.number();
        buffer.send_along();
        buffers.come_back(number);
        buffers.come_back(number);
    }
}
