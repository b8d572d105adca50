//! The bytes of packets.

/// Buffers by token, all of one length; one that is given back is used again, so that a run has as many as packets were on
/// their way at once.
#[derive(Debug)]
pub(super) struct Buffers {
    store: Vec<Box<[u8]>>,
    free: Vec<u32>,
    len: usize,
}

impl Buffers {
    pub(super) fn new(len: usize) -> Buffers {
        Buffers { store: Vec::new(), free: Vec::new(), len }
    }

    /// A buffer that nobody has; what is in it is unspecified.
    pub(super) fn claim(&mut self) -> u32 {
        self.free.pop().unwrap_or_else(|| {
            self.store.push(vec![0; self.len].into_boxed_slice());
            // Four billion buffers are more than there is memory.
            (self.store.len() - 1) as u32
        })
    }

    pub(super) fn give_back(&mut self, token: u32) {
        debug_assert!(!self.free.contains(&token), "given back twice");
        self.free.push(token);
    }

    pub(super) fn get(&self, token: u32) -> &[u8] {
        &self.store[token as usize]
    }

    pub(super) fn get_mut(&mut self, token: u32) -> &mut [u8] {
        &mut self.store[token as usize]
    }

    /// One buffer to read and another one to write.
    pub(super) fn pair(&mut self, from: u32, to: u32) -> (&[u8], &mut [u8]) {
        let [from, to] =
            self.store.get_disjoint_mut([from as usize, to as usize]).expect("two buffers, each of them there");
        (from, to)
    }

    /// Buffers that somebody has.
    #[cfg(test)]
    pub(super) fn in_use(&self) -> usize {
        self.store.len() - self.free.len()
    }
}
