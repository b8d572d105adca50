//! The storage of a single queue.

use ackclock_units::Time;

use crate::books::Books;
use crate::ring::Ring;
use crate::{Backlog, Dequeue, DropReason, Drops, Entry, Queued};

/// A first-in first-out store that keeps the books: every packet enters and leaves a single-queue
/// discipline through it.
#[derive(Debug)]
pub struct Store<P> {
    waiting: Ring<Entry<P>>,
    books: Books,
}

impl<P: Queued> Store<P> {
    /// An empty store.
    pub fn new() -> Store<P> {
        Store { waiting: Ring::new(), books: Books::default() }
    }

    /// Waiting packets and bytes.
    #[inline]
    pub fn backlog(&self) -> Backlog {
        self.books.backlog()
    }

    /// The books.
    #[inline]
    pub fn books(&self) -> &Books {
        &self.books
    }

    /// The head of the queue.
    #[inline]
    pub fn front(&self) -> Option<&Entry<P>> {
        self.waiting.front()
    }

    /// The tail of the queue.
    pub fn back(&self) -> Option<&Entry<P>> {
        self.waiting.back()
    }

    /// Enqueues a packet at the tail.
    #[inline]
    pub fn admit(&mut self, now: Time, packet: P) {
        self.books.admit(packet.wire_len());
        self.waiting.push(Entry { packet, enqueued_at: now });
    }

    /// Counts a packet of `bytes` bytes that waits elsewhere.
    #[inline]
    pub(crate) fn count_in(&mut self, bytes: u32) {
        self.books.admit(bytes);
    }

    /// Counts that such a packet is sent.
    #[inline]
    pub(crate) fn count_out(&mut self, bytes: u32) {
        self.books.take(bytes);
        self.books.release(bytes);
    }

    /// Such a packet waits here from now on, behind the others.
    pub(crate) fn hold(&mut self, enqueued_at: Time, packet: P) {
        self.waiting.push(Entry { packet, enqueued_at });
    }

    /// Counts a packet of `bytes` bytes that passes without waiting.
    #[inline]
    pub fn pass(&mut self, bytes: u32) {
        self.books.pass(bytes);
    }

    /// Discards heads while there are too many, without asking the law.
    pub(crate) fn trim(&mut self, drops: &mut Drops<P>, too_many: impl Fn(&Store<P>) -> bool) {
        while too_many(self)
            && let Some(entry) = self.take()
        {
            self.discard(entry, DropReason::Limit, drops);
        }
    }

    /// Refuses a packet.
    #[cold]
    #[inline(never)]
    pub fn refuse(&mut self, packet: P, reason: DropReason, drops: &mut Drops<P>) {
        self.books.refuse(packet, reason, drops);
    }

    /// Takes the head out of the queue; the caller then accounts for it by [`Store::release`] or
    /// [`Store::discard`].
    #[inline]
    pub fn take(&mut self) -> Option<Entry<P>> {
        let entry = self.waiting.pop()?;
        self.books.take(entry.packet.wire_len());
        Some(entry)
    }

    /// Books a packet taken out as dequeued, and hands it on.
    #[inline]
    pub fn release(&mut self, entry: Entry<P>) -> Entry<P> {
        self.books.release(entry.packet.wire_len());
        entry
    }

    /// Releases the head for transmission.
    #[inline]
    pub fn send(&mut self) -> Dequeue<P> {
        let Some(entry) = self.waiting.pop() else { return Dequeue::Empty };
        self.count_out(entry.packet.wire_len());
        Dequeue::Packet(entry)
    }

    /// Books a packet taken out as discarded.
    pub fn discard(&mut self, entry: Entry<P>, reason: DropReason, drops: &mut Drops<P>) {
        self.books.discard(entry.packet, reason, drops);
    }

    /// Marks a packet CE; `false` if it cannot carry a mark.
    pub fn mark(&mut self, packet: &mut P) -> bool {
        self.books.mark(packet)
    }
}

impl<P: Queued> Default for Store<P> {
    fn default() -> Store<P> {
        Store::new()
    }
}
