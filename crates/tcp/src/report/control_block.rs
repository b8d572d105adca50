//! The variables of a connection for records: of the sender after an ACK, and of both halves for a
//! log of every segment.

use ackclock_units::Span;

use crate::{CaState, Endpoint, LossCounts, LossDeclaration, SentAs, State};

/// The sender's variables after an ACK, by the names that Linux has for them.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Snapshot {
    /// Counts over what is in flight.
    pub counts: LossCounts,
    /// Where the sender stands.
    pub ca_state: CaState,
    /// Congestion window, bytes.
    pub cwnd: u64,
    /// Slow start threshold, bytes; `u64::MAX` before there is one.
    pub ssthresh: u64,
    /// What is believed to be in the network, bytes.
    pub pipe: u64,
    /// Smoothed RTT, once there was a sample.
    pub srtt: Option<Span>,
    /// Retransmission timeout, back-off included.
    pub rto: Span,
    /// Bytes of the stream acknowledged.
    pub acked: u64,
}

/// The variables of both halves of a connection, for a log of every segment.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct ControlBlock {
    /// Where the connection stands.
    pub state: State,
    /// Where the sender stands.
    pub ca_state: CaState,
    /// Slow start threshold, bytes; `u64::MAX` before there is one.
    pub ssthresh: u64,
    /// Congestion window, bytes.
    pub cwnd: u64,
    /// The peer's window, bytes.
    pub peer_window: u64,
    /// The window offered to the peer, bytes.
    pub window: u64,
    /// Window scale of the peer.
    pub peer_shift: u8,
    /// Our window scale.
    pub shift: u8,
    /// Payload of a full segment, bytes.
    pub mss: u32,
    /// Smoothed RTT, once there was a sample.
    pub srtt: Option<Span>,
    /// Retransmission timeout, back-off included.
    pub rto: Span,
    /// Window scaling was agreed on.
    pub scaling: bool,
    /// Timestamps were agreed on.
    pub timestamps: bool,
    /// SACK was agreed on.
    pub sack: bool,
    /// ECN was agreed on.
    pub ecn: bool,
    /// Small segments wait (Nagle).
    pub nagle: bool,
    /// The FIN was sent.
    pub fin_sent: bool,
    /// An ACK goes out as soon as possible.
    pub ack_now: bool,
    /// An ACK is delayed.
    pub ack_delayed: bool,
    /// The ECN echo is on.
    pub echoing: bool,
    /// The next new segment carries CWR.
    pub cwr: bool,
    /// Send buffer, bytes.
    pub send_buffer: u64,
    /// Bytes in it.
    pub queued: u64,
    /// Receive buffer, bytes.
    pub receive_buffer: u64,
    /// Bytes in order that the application has not read.
    pub unread: u64,
    /// Bytes from the first unacknowledged one to the last that was sent.
    pub outstanding: u64,
    /// Segments of the peer's size that wait behind a gap.
    pub out_of_order: u64,
}

impl Endpoint {
    /// The variables now. Costs too much for every segment of a run that does not log them.
    pub fn control_block(&self) -> ControlBlock {
        ControlBlock {
            state: self.state,
            ca_state: self.ca_state(),
            ssthresh: self.sender.cc.window().ssthresh,
            cwnd: self.sender.cwnd(),
            peer_window: self.sender.sequence.window(),
            window: self.receiver.window(),
            peer_shift: self.sender.negotiated.peer_shift(),
            shift: self.receiver.shift(),
            mss: self.sender.negotiated.mss(),
            srtt: self.srtt(),
            rto: self.sender.rto(),
            scaling: self.sender.negotiated.scaling(),
            timestamps: self.sender.negotiated.timestamps(),
            sack: self.sender.negotiated.sack(),
            ecn: self.sender.ecn.is_usable(),
            nagle: self.config.nagle,
            fin_sent: self.sender.sequence.is_fin_sent(),
            ack_now: self.receiver.acknowledges_now(),
            ack_delayed: self.receiver.delays_ack(),
            echoing: self.sender.ecn.is_echoing(),
            cwr: self.sender.ecn.owes_cwr(),
            send_buffer: self.sender.queue.buffer,
            queued: self.sender.sequence.written() - self.sender.acked_bytes(),
            receive_buffer: self.receiver.buffer(),
            unread: self.receiver.unread(),
            outstanding: self.sender.sequence.nxt() - self.sender.sequence.una(),
            out_of_order: self.receiver.segments_out_of_order(),
        }
    }

    /// Why the last data segment was sent that [`Endpoint::transmit`] wrote.
    #[inline]
    pub fn sent_as(&self) -> SentAs {
        self.sender.sent_as
    }

    /// Notes from now on what is declared lost, for [`Endpoint::loss_declarations`]. Whoever
    /// asks for it has to fetch it.
    pub fn observe_losses(&mut self) {
        self.sender.loss.board.observe_losses();
    }

    /// Whether anything was declared lost since the last time.
    #[inline]
    pub fn has_loss_declarations(&self) -> bool {
        self.sender.loss.board.has_loss_declarations()
    }

    /// What was declared lost since the last time; nothing unless it is observed.
    #[inline]
    pub fn loss_declarations(&mut self) -> impl Iterator<Item = LossDeclaration> {
        self.sender.loss.board.loss_declarations()
    }

    /// Whether the receiver has every byte of `offset..end` of the peer's stream, in order or
    /// beyond a gap; a FIN is the byte after the last one.
    #[inline]
    pub fn holds(&self, offset: u64, end: u64) -> bool {
        self.receiver.holds(offset + 1, end + 1)
    }

    /// The sender's variables now.
    pub fn snapshot(&self) -> Snapshot {
        Snapshot {
            counts: self.loss_counts(),
            ca_state: self.ca_state(),
            cwnd: self.sender.cwnd(),
            ssthresh: self.sender.cc.window().ssthresh,
            pipe: self.sender.loss.pipe(&self.sender.negotiated),
            srtt: self.srtt(),
            rto: self.sender.rto(),
            acked: self.sender.acked_bytes(),
        }
    }
}
