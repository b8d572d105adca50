//! The variables of a connection for records: of the sender after an ACK, and of both halves for a
//! log of every segment.

use ackclock_units::Span;

use crate::{CaState, Endpoint, LossCounts, Sender, State};

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
    /// Estimate of the data in the network, bytes.
    pub pipe: u64,
    /// Smoothed RTT, once there was a sample.
    pub srtt: Option<Span>,
    /// Retransmission timeout, back-off included.
    pub rto: Span,
    /// Bytes of the stream acknowledged.
    pub acked: u64,
}

impl Snapshot {
    /// The variables of `sender` now.
    pub fn of(sender: &Sender) -> Snapshot {
        Snapshot {
            counts: sender.loss_counts(),
            ca_state: sender.loss.state(),
            cwnd: sender.cwnd(),
            ssthresh: sender.cc.window().ssthresh,
            pipe: sender.pipe(),
            srtt: sender.rtt.srtt(),
            rto: sender.rto(),
            acked: sender.sequence.acked_bytes(),
        }
    }
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

impl ControlBlock {
    /// The variables of `endpoint` now. Costs too much for every segment of a run that does not log them.
    pub fn of(endpoint: &Endpoint) -> ControlBlock {
        let Endpoint { sender, receiver, .. } = endpoint;
        ControlBlock {
            state: endpoint.state,
            ca_state: sender.loss.state(),
            ssthresh: sender.cc.window().ssthresh,
            cwnd: sender.cwnd(),
            peer_window: sender.sequence.window(),
            window: receiver.window(),
            peer_shift: sender.negotiated.peer_shift(),
            shift: receiver.shift(),
            mss: sender.negotiated.mss(),
            srtt: sender.rtt.srtt(),
            rto: sender.rto(),
            scaling: sender.negotiated.scaling(),
            timestamps: sender.negotiated.timestamps(),
            sack: sender.negotiated.sack(),
            ecn: sender.ecn.is_usable(),
            nagle: endpoint.config.nagle,
            fin_sent: sender.sequence.is_fin_sent(),
            ack_now: receiver.acknowledges_now(),
            ack_delayed: receiver.delays_ack(),
            echoing: sender.ecn.is_echoing(),
            cwr: sender.ecn.owes_cwr(),
            send_buffer: sender.queue.buffer,
            queued: sender.sequence.unacknowledged(),
            receive_buffer: receiver.buffer(),
            unread: receiver.unread(),
            outstanding: sender.sequence.nxt() - sender.sequence.una(),
            out_of_order: receiver.segments_out_of_order(),
        }
    }
}
