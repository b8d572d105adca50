//! The SYN of a connection, its answer, and the ACK that opens it.

use ackclock_units::Time;

/// Segments sent and awaited until the connection is open.
#[derive(Debug, Default)]
pub(crate) struct Handshake {
    /// A SYN, or its answer, is to be sent.
    due: bool,
    /// When the SYN was first sent, until it has been sent again.
    sent_at: Option<Time>,
    /// TSval of the first SYN.
    stamp: u32,
    /// The last ACK of the handshake waits, and goes out without data.
    bare_ack: bool,
    /// Bytes that came with the SYN that crossed ours, until ours is acknowledged.
    early_payload: u32,
}

impl Handshake {
    /// A SYN, or its answer, is to be sent.
    pub(crate) fn begin(&mut self) {
        self.due = true;
    }

    /// There is nothing more to be sent.
    pub(crate) fn give_up(&mut self) {
        self.due = false;
    }

    #[inline]
    pub(crate) fn is_due(&self) -> bool {
        self.due
    }

    /// A SYN, or its answer, was sent, the first time with the timestamp `stamp`. A second one
    /// gives no RTT sample.
    pub(crate) fn sent(&mut self, now: Time, again: bool, stamp: u32) {
        self.due = false;
        if !again {
            self.stamp = stamp;
        }
        self.sent_at = (!again).then_some(now);
    }

    /// The last ACK of the handshake goes out without data, or with it.
    pub(super) fn acknowledge_alone(&mut self, alone: bool) {
        self.bare_ack = alone;
    }

    /// Returns `true` if the last ACK of the handshake is still to be sent.
    #[inline]
    pub(crate) fn owes_bare_ack(&self) -> bool {
        self.bare_ack
    }

    /// Returns `true` if the next ACK is the last one of the handshake, and clears the flag.
    #[inline]
    pub(crate) fn take_bare_ack(&mut self) -> bool {
        std::mem::take(&mut self.bare_ack)
    }

    /// TSval of the first SYN.
    pub(crate) fn stamp(&self) -> u32 {
        self.stamp
    }

    /// When the SYN was sent, if it was sent once.
    pub(crate) fn sent_at(&self) -> Option<Time> {
        self.sent_at
    }

    /// The SYN that crossed ours had `bytes` of data, which wait.
    pub(super) fn hold_payload(&mut self, bytes: u32) {
        self.early_payload = bytes;
    }

    /// Bytes that came with the SYN and may be taken in now.
    pub(super) fn take_payload(&mut self) -> u32 {
        std::mem::take(&mut self.early_payload)
    }
}
