//! The send sequence space: RFC 9293's SND variables (section 3.3.1), as distances from the initial
//! sequence number, and how far the application has written.

use ackclock_packet::Segment;
use ackclock_units::Time;

use crate::seq::{lift, lower};

/// `TCP_MSS_DEFAULT`.
const DEFAULT_SEGMENT: u64 = 536;

/// The sequence numbers sent, acknowledged and allowed by the peer.
#[derive(Debug)]
pub struct SendSequence {
    isn: u32,
    una: u64,
    nxt: u64,
    /// The peer's window in bytes, from `una` on.
    window: u64,
    /// SND.WL1 and SND.WL2: the segment that last set the window.
    wl1: u64,
    wl2: u64,
    max_window: u64,
    /// Bytes that the application has written.
    written: u64,
    /// The application has closed: a FIN follows the last byte.
    closed: bool,
    fin_sent: bool,
    /// When a data segment was last sent.
    last_sent_at: Time,
}

impl SendSequence {
    /// Nothing is sent yet.
    pub(crate) fn new(isn: u32) -> SendSequence {
        SendSequence {
            isn,
            una: 0,
            nxt: 0,
            window: 0,
            wl1: 0,
            wl2: 0,
            max_window: 0,
            written: 0,
            closed: false,
            fin_sent: false,
            last_sent_at: Time::ZERO,
        }
    }

    // Numbers.

    /// The initial sequence number.
    #[inline]
    pub(crate) fn isn(&self) -> u32 {
        self.isn
    }

    /// SND.UNA: the oldest unit that is not acknowledged.
    #[inline]
    pub fn una(&self) -> u64 {
        self.una
    }

    /// SND.NXT: the unit that is sent next.
    #[inline]
    pub fn nxt(&self) -> u64 {
        self.nxt
    }

    /// The distance that a number of the peer means, near SND.UNA; `None` if it lies before our
    /// SYN.
    #[inline]
    pub(crate) fn lift(&self, wire: u32) -> Option<u64> {
        lift(wire, self.isn, self.una)
    }

    /// The number on the wire.
    #[inline]
    pub(crate) fn lower(&self, distance: u64) -> u32 {
        lower(distance, self.isn)
    }

    /// Returns `true` if a sequence number is that of the first byte of our stream.
    pub fn is_first(&self, seq: u32) -> bool {
        seq == self.isn.wrapping_add(1)
    }

    /// The place in our stream of the byte with this sequence number; `None` for that of the SYN.
    pub fn stream_offset(&self, seq: u32) -> Option<u64> {
        self.lift(seq)?.checked_sub(1)
    }

    /// Returns `true` if an acknowledgment number covers data that was sent and is not yet
    /// acknowledged.
    pub fn acknowledges_new(&self, ack: u32) -> bool {
        self.lift(ack).is_some_and(|ack| self.una < ack && ack <= self.nxt)
    }

    /// Returns `true` if an ACK is acceptable: for nothing that was not sent, and not older than the
    /// largest window (RFC 5961 section 5).
    #[inline]
    pub(crate) fn accepts(&self, ack: u64) -> bool {
        ack <= self.nxt && ack + self.max_window >= self.una
    }

    /// The end of the highest SACK block above what is acknowledged.
    pub(crate) fn sacked_to(&self, segment: &Segment) -> Option<u64> {
        let lifted = |wire| self.lift(wire);
        let blocks = segment.sack.as_slice().iter().filter_map(|&(left, right)| Some((lifted(left)?, lifted(right)?)));
        let valid = blocks.filter(|&(left, right)| self.una < left && left < right && right <= self.nxt);
        valid.map(|(_, right)| right).max()
    }

    /// Everything below `ack` is acknowledged.
    #[inline]
    pub(crate) fn acknowledge(&mut self, ack: u64) {
        self.una = ack;
    }

    /// `units` more are sent; the last of them is the FIN if `fin`.
    #[inline]
    pub(crate) fn advance(&mut self, units: u32, fin: bool) {
        self.nxt += u64::from(units);
        self.fin_sent = fin;
    }

    /// Moves the end of the last transmission to `end`.
    pub(crate) fn end_at(&mut self, end: u64) {
        self.nxt = end;
    }

    // The peer's window.

    /// SND.WND: the peer's window in bytes.
    #[inline]
    pub fn window(&self) -> u64 {
        self.window
    }

    /// The right edge of the peer's window.
    #[inline]
    pub(crate) fn window_end(&self) -> u64 {
        self.una + self.window
    }

    /// The largest window that the peer has offered.
    #[inline]
    pub(crate) fn max_window(&self) -> u64 {
        self.max_window
    }

    /// The window of the peer's SYN.
    pub(crate) fn begin_window(&mut self, window: u64) {
        (self.window, self.max_window) = (window, window);
    }

    /// Forgets the windows offered so far, which do not count among the largest.
    pub(crate) fn forget_max_window(&mut self) {
        self.max_window = self.window;
    }

    /// Returns `true` if a segment that begins at `left` is newer than the one that last set the
    /// window.
    #[inline]
    pub(crate) fn is_newer(&self, left: u64) -> bool {
        self.wl1 < left
    }

    /// Returns `true` if a segment that begins at `left` begins where the one did that last set the
    /// window.
    #[inline]
    pub(crate) fn is_level(&self, left: u64) -> bool {
        self.wl1 == left
    }

    /// SND.WL2: the acknowledgment with which the window was last set.
    #[inline]
    pub(crate) fn window_ack(&self) -> u64 {
        self.wl2
    }

    /// A segment that begins at `left` and acknowledges up to `ack` sets the window.
    #[inline]
    pub(crate) fn set_window(&mut self, window: u64, left: u64, ack: u64) {
        self.window = window;
        self.max_window = self.max_window.max(window);
        (self.wl1, self.wl2) = (self.wl1.max(left), ack);
    }

    // The application.

    /// Bytes that it has written.
    #[inline]
    pub fn written(&self) -> u64 {
        self.written
    }

    /// Notes that the application has written `bytes` more.
    #[inline]
    pub(crate) fn write(&mut self, bytes: u64) {
        self.written += bytes;
    }

    /// Notes that the application has closed: a FIN follows the last byte.
    pub(crate) fn close(&mut self) {
        self.closed = true;
    }

    /// Returns `true` if the application has closed.
    #[inline]
    pub(crate) fn is_closed(&self) -> bool {
        self.closed
    }

    #[inline]
    pub(crate) fn is_fin_sent(&self) -> bool {
        self.fin_sent
    }

    // Time.

    /// When a data segment was last sent.
    #[inline]
    pub(crate) fn last_sent_at(&self) -> Time {
        self.last_sent_at
    }

    /// A data segment is sent at `now`.
    #[inline]
    pub(crate) fn sent_at(&mut self, now: Time) {
        self.last_sent_at = now;
    }

    /// SIOCOUTQNSD: bytes written and not sent.
    #[inline]
    pub fn unsent(&self) -> u64 {
        (self.written + 1).saturating_sub(self.nxt.max(1))
    }

    /// Bytes of our stream that the peer has acknowledged.
    #[inline]
    pub fn acked_bytes(&self) -> u64 {
        self.una.saturating_sub(1).min(self.written)
    }

    /// SIOCOUTQ: bytes written and not acknowledged.
    #[inline]
    pub fn unacknowledged(&self) -> u64 {
        self.written - self.acked_bytes()
    }

    /// `tcp_bound_to_half_wnd`.
    pub(crate) fn bound_to_half_window(&self, mss: u32) -> u32 {
        mss.min(self.half_window(u64::from(mss)).max(68 - 20) as u32)
    }

    /// Half of the largest window that the peer has offered, where that is less than `size`.
    pub(crate) fn half_window(&self, size: u64) -> u64 {
        let most = self.max_window;
        let cut = if most > DEFAULT_SEGMENT { most / 2 } else { most };
        if cut > 0 { size.min(cut) } else { size }
    }

    /// Returns `true` if data waits for which the peer's window has room.
    pub(crate) fn has_sendable_data(&self) -> bool {
        !self.fin_sent && self.written + 1 > self.nxt && self.window_end() > self.nxt
    }
}
