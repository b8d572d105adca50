//! Observation of a connection while it runs: counts, limits, windows and snapshots.

use ackclock_units::Time;

use crate::{
    CaState, CaStateTime, ControlBlock, Endpoint, Limit, LimitedTime, LossCounts, LossDeclaration, SentAs, Snapshot,
    Stamp,
};

impl Endpoint {
    /// The congestion window in force, bytes.
    #[inline]
    pub fn cwnd(&self) -> u64 {
        self.sender.cwnd()
    }

    /// Bytes believed to be in the network (RFC 6675 `pipe`).
    #[inline]
    pub fn pipe(&self) -> u64 {
        self.sender.loss.pipe(&self.sender.negotiated)
    }

    /// The counts after the last call.
    pub fn loss_counts(&self) -> LossCounts {
        LossCounts {
            packets_out: self.sender.loss.board.segments(),
            sacked_out: self.sender.loss.sacked_segments(&self.sender.negotiated),
            fackets_out: self.sender.loss.board.segments_to_highest(),
            retrans_out: self.sender.loss.board.resent_segments(),
            lost_out: self.sender.loss.board.lost_segments(),
            reordering: self.sender.loss.detector.threshold(),
            reord_seen: self.sender.loss.detector.reorderings(),
        }
    }

    /// Where the sender stands.
    pub fn ca_state(&self) -> CaState {
        self.sender.loss.recovery.state()
    }

    /// The time that the sender spent in each congestion state until `now`.
    pub fn ca_state_time(&self, now: Time) -> CaStateTime {
        self.sender.loss.states.read(now, self.sender.loss.recovery.state())
    }

    /// The time by which a segment that is sent now is ordered among others: what different ACKs
    /// release never has the same, even if they arrive at one time; what one ACK releases has
    /// (`tcp_mstamp_refresh`).
    #[inline]
    pub fn stamp(&self, now: Time) -> Stamp {
        self.sender.stamp(now)
    }

    /// The limit that holds the sender back, if it has stopped.
    pub fn limited_by(&self) -> Option<Limit> {
        self.sender.held.reason()
    }

    /// The time for which each limit held the sender back until `now`.
    pub fn limited_time(&self, now: Time) -> LimitedTime {
        self.sender.held.read(now)
    }

    /// Returns `true` if the segment that was sent last is of the same unit as the one before it.
    pub fn continues_unit(&self) -> bool {
        self.sender.units.as_ref().is_some_and(|units| units.continues(self.sender.stats.sent_packets))
    }

    /// SO_MAX_PACING_RATE: no more than so many bytes a second from now on; `None` for no bound.
    /// Setting one turns pacing on.
    pub fn set_max_pacing_rate(&mut self, bytes_per_second: Option<u64>) {
        self.sender.bound_pacing_rate(bytes_per_second);
    }

    /// The largest packet that the path is believed to take, bytes.
    pub fn path_mtu(&self) -> u32 {
        self.sender.path.mtu
    }

    /// Bytes that the send buffer has room for.
    pub fn send_space(&self) -> u64 {
        self.sender.send_space()
    }

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

    /// Notes from now on what is declared lost, for [`Endpoint::loss_declarations`]. The caller has
    /// to fetch these.
    pub fn observe_losses(&mut self) {
        self.sender.loss.board.observe_losses();
    }

    /// Returns `true` if anything was declared lost since the last time.
    #[inline]
    pub fn has_loss_declarations(&self) -> bool {
        self.sender.loss.board.has_loss_declarations()
    }

    /// The segments declared lost since the last call; none unless declarations are observed.
    #[inline]
    pub fn loss_declarations(&mut self) -> impl Iterator<Item = LossDeclaration> {
        self.sender.loss.board.loss_declarations()
    }

    /// Returns `true` if the receiver has every byte of `offset..end` of the peer's stream, in
    /// order or beyond a gap; a FIN is the byte after the last one.
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
