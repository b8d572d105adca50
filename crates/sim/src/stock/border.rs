//! A filter of the segments that reach a stock socket, for those that smoltcp 0.14 mishandles, and
//! one correction of its output.
//!
//! Each rule withholds a segment that a peer repeats or that has no new information, and that would
//! make the socket lose data, panic or wait forever. All other segments pass unchanged.

use ackclock_packet::{Flags, Segment};

/// The border of one connection.
#[derive(Debug)]
pub(super) struct Border {
    /// Bytes that the socket's receive buffer holds.
    receive_buffer: u64,
    /// Initial sequence number of the peer.
    peer_isn: Option<u32>,
    /// True if the peer's SYN scales windows.
    peer_scales: bool,
    /// The scale in our SYN.
    own_scale: u8,
    /// The sequence number one past the window that the socket advertised last.
    window_edge: Option<u32>,
    /// The highest sequence number sent: SND.NXT of RFC 9293.
    highest: Option<u32>,
    /// The highest acknowledgment number that passed, and the window that came with it last.
    last: Option<(u32, u16)>,
}

/// The socket's state that the border depends on.
#[derive(Clone, Copy, Debug)]
pub(super) struct SocketState {
    /// True if the socket still accepts a SYN.
    pub(super) opening: bool,
    /// True if the peer has not acknowledged all data.
    pub(super) unacknowledged: bool,
    /// Bytes received in order; the application has read them.
    pub(super) delivered: u64,
}

impl Border {
    pub(super) fn new(receive_buffer: u64) -> Border {
        Border {
            receive_buffer,
            peer_isn: None,
            peer_scales: false,
            own_scale: 0,
            window_edge: None,
            highest: None,
            last: None,
        }
    }

    /// Notes what the socket sends.
    pub(super) fn observe(&mut self, segment: &mut Segment) {
        let end = segment.seq.wrapping_add(segment.sequence_len());
        let highest = self.highest.filter(|highest| highest.wrapping_sub(end).cast_signed() > 0);
        if let Some(highest) = highest
            && segment.payload.len == 0
            && segment.flags == Flags::ACK
        {
            // After a timeout smoltcp goes back to the oldest unacknowledged byte and acknowledges
            // from there. A peer that has that byte must not take such an ACK, and when both ends
            // have gone back, neither ever hears the other.
            segment.seq = highest;
        }
        if !segment.flags.contains(Flags::RST) {
            self.highest = Some(highest.unwrap_or(end));
        }
        let is_syn = segment.flags.contains(Flags::SYN);
        if is_syn {
            self.own_scale = segment.window_scale.unwrap_or(0);
        }
        if segment.flags.contains(Flags::ACK) {
            let scale = if is_syn || !self.peer_scales { 0 } else { self.own_scale };
            self.window_edge = Some(segment.ack.wrapping_add(u32::from(segment.window) << scale));
        }
    }

    /// Returns true if `segment`, which may be shortened, is passed to the socket.
    pub(super) fn admit(&mut self, segment: &mut Segment, view: SocketState) -> bool {
        if segment.flags.contains(Flags::SYN) {
            if view.opening {
                self.peer_isn = Some(segment.seq);
                self.peer_scales = segment.window_scale.is_some();
            }
            return true;
        }
        self.keep_within_window(segment, view.delivered);
        self.admit_acknowledgment(segment, view.unacknowledged)
    }

    /// smoltcp cuts data past its window and takes the FIN behind it: the peer's last bytes would
    /// be lost. And before its first ACK it takes the unscaled window of its SYN for a scaled one,
    /// accepts more than its buffer holds and panics.
    fn keep_within_window(&self, segment: &mut Segment, delivered: u64) {
        let Some(isn) = self.peer_isn else { return };
        if segment.payload.len == 0 {
            return;
        }
        let next = isn.wrapping_add(1).wrapping_add(delivered as u32);
        // Farther than 2^31 away is not near the window, and smoltcp drops it.
        let after = |seq: u32| i64::from(seq.wrapping_sub(next).cast_signed());
        let end = after(segment.seq) + i64::from(segment.payload.len);
        let excess = end - self.receive_buffer as i64;
        if excess > 0 {
            segment.payload.len = segment.payload.len.saturating_sub(u32::try_from(excess).unwrap_or(u32::MAX));
        }
        if excess > 0 || self.window_edge.is_some_and(|edge| end > after(edge)) {
            segment.flags = Flags::from_bits(segment.flags.bits() & !Flags::FIN.bits());
        }
    }

    fn admit_acknowledgment(&mut self, segment: &mut Segment, unacknowledged: bool) -> bool {
        if !segment.flags.contains(Flags::ACK) {
            return true;
        }
        let in_flight = self.highest.is_some_and(|highest| highest.wrapping_sub(segment.ack).cast_signed() > 0);
        if segment.window == 0 && in_flight {
            // Told of a closed window while data is in flight, smoltcp gives up its retransmission
            // timer, at once for the probe timer or when it expires; when the window opens and that
            // data was lost, no timer is left. With a window of one, the retransmission timer
            // probes.
            segment.window = 1;
        }
        let this = (segment.ack, segment.window);
        let is_bare = segment.payload.len == 0 && segment.flags == Flags::ACK;
        if is_bare && self.last == Some(this) && !unacknowledged {
            // The third duplicate ACK stops the retransmission timer for a fast retransmit, which
            // needs data: with nothing but a FIN outstanding, that FIN would never be sent again.
            return false;
        }
        // smoltcp ignores what is older.
        if self.last.is_none_or(|(ack, _)| segment.ack.wrapping_sub(ack).cast_signed() >= 0) {
            self.last = Some(this);
        }
        true
    }
}
