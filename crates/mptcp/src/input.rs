//! Input: options of the handshake and of data, and the data.

use ackclock_packet::{DataNumber, Dss, Flags, Mapping, MptcpOption, Payload, Segment};
use ackclock_tcp::{Acknowledgment, Error, State, reset_for};
use ackclock_units::{Ecn, Time};

use crate::connection::{Connection, LONGEST, Mode, is_synchronized};
use crate::mapping::DataMap;
use crate::subflow::{Stage, Subflow};

/// Reasons of MP_TCPRST (IANA registry "MPTCP MP_TCPRST Reason Codes").
pub(crate) mod reason {
    pub(crate) const UNSPECIFIED: u8 = 0;
    pub(crate) const MPTCP_SPECIFIC: u8 = 1;
    pub(crate) const MIDDLEBOX: u8 = 6;
}

impl Connection {
    /// Handles a segment that arrived over `path` with codepoint `ecn`. Its payload offset is that
    /// in the connection's stream.
    pub fn input(&mut self, now: Time, path: usize, segment: &Segment, ecn: Ecn) -> Acknowledgment {
        let una = self.sending.una;
        let arrival = match self.subflows.iter().position(|subflow| subflow.is_addressed(path, segment)) {
            Some(index) => self.input_subflow(now, index, segment, ecn),
            None => {
                self.input_unknown(now, path, segment, ecn);
                Acknowledgment::default()
            }
        };
        self.push(now);
        Acknowledgment { acked: self.sending.una - una, ..arrival }
    }

    /// Handles a segment of no subflow: the SYN of a new one, or an unrelated segment.
    fn input_unknown(&mut self, now: Time, path: usize, segment: &Segment, ecn: Ecn) {
        match self.admit(path, segment) {
            Some(index) => {
                self.subflows[index].endpoint.input(now, segment, ecn);
            }
            None => {
                let joins = segment.mptcp.iter().any(|option| matches!(option, MptcpOption::JoinSyn { .. }));
                // RFC 8684 section 3.2, for any refusal.
                self.refuse(path, segment, joins.then_some(reason::MPTCP_SPECIFIC));
            }
        }
    }

    /// Answers a segment by RST, with an MPTCP reason if given.
    pub(crate) fn refuse(&mut self, path: usize, segment: &Segment, reason: Option<u8>) {
        let Some(mut reset) = reset_for(segment) else { return };
        if let Some(reason) = reason {
            reset.mptcp.push(&MptcpOption::Reset { transient: false, reason });
        }
        self.replies.push_back((path, reset));
    }

    fn input_subflow(&mut self, now: Time, index: usize, segment: &Segment, ecn: Ecn) -> Acknowledgment {
        // Options count only on segments that TCP accepts (RFC 8684 section 3.4.1).
        let is_valid = self.subflows[index].endpoint.would_accept(now, segment);
        let resets = segment.flags.contains(Flags::RST);
        if is_valid && !resets && !self.accept_options(now, index, segment) {
            return Acknowledgment::default();
        }
        let mut segment = *segment;
        self.place(index, &mut segment);
        self.couple(index);
        let endpoint = &mut self.subflows[index].endpoint;
        let acked = endpoint.sender().sequence().acked_bytes();
        let was_open = is_synchronized(endpoint.state());
        let arrival = endpoint.input(now, &segment, ecn);
        let is_reset = resets && endpoint.state() == State::Closed;
        if !was_open && is_synchronized(endpoint.state()) {
            self.opened_subflow(now, index);
        }
        if is_reset {
            self.accept_reset(now, index, &segment);
        }
        let subflow = &mut self.subflows[index];
        let progress = subflow.endpoint.sender().sequence().acked_bytes() > acked;
        if progress {
            subflow.failed = false;
        }
        if self.mode == Mode::Plain {
            self.follow_plain();
        } else {
            if is_valid {
                self.take_window(index, &segment);
            }
            self.take_data(now, index);
            if progress {
                let una = self.sending.una;
                self.subflows[index].forget(una);
            }
        }
        self.note_end(now, index);
        arrival
    }

    /// Handles the options before the endpoint sees the segment; `false` if the segment is to be
    /// dropped.
    fn accept_options(&mut self, now: Time, index: usize, segment: &Segment) -> bool {
        if self.mode == Mode::Plain {
            return true;
        }
        let is_syn = segment.flags.contains(Flags::SYN);
        match self.subflows[index].stage {
            Stage::Opening if is_syn => self.accept_capable(segment),
            Stage::Opening => self.accept_third(segment),
            Stage::Joining => self.accept_join(index, segment),
            Stage::Unproven if !is_syn => self.accept_proof(index, segment),
            Stage::Proving { .. } if !is_syn => {
                // Any segment shows that the proof has arrived.
                self.subflows[index].stage = Stage::Open;
                self.accept_signals(now, index, segment)
            }
            Stage::Unproven | Stage::Proving { .. } | Stage::Closed => true,
            Stage::Open if is_syn => true,
            Stage::Open => self.accept_signals(now, index, segment),
        }
    }

    /// Handles the options of a reset that TCP has accepted.
    fn accept_reset(&mut self, now: Time, index: usize, segment: &Segment) {
        if self.mode == Mode::Plain {
            return;
        }
        for option in segment.mptcp.iter() {
            match option {
                MptcpOption::FastClose { key } if key == self.key => self.peer_aborted(now),
                // The path must not be tried again (section 3.6).
                MptcpOption::Reset { transient: false, .. } if index > 0 => {
                    self.removed.push(self.subflows[index].path);
                }
                _ => {}
            }
        }
    }

    /// Handles the options of an open subflow.
    fn accept_signals(&mut self, now: Time, index: usize, segment: &Segment) -> bool {
        if segment.mptcp.is_empty() {
            return self.miss_options(now, index, segment);
        }
        if self.is_client && self.mode == (Mode::Multipath { confirmed: false }) {
            self.mode = Mode::Multipath { confirmed: true };
            self.confirmed(now);
        }
        for option in segment.mptcp.iter() {
            match option {
                MptcpOption::Dss(dss) => self.take_dss(now, index, segment, &dss),
                MptcpOption::Capable(capable) if index == 0 => self.take_capable_data(&capable),
                // The fourth packet of the handshake was lost.
                MptcpOption::JoinAck { .. } => self.subflows[index].endpoint.acknowledge_now(),
                MptcpOption::AddAddress(add) => self.take_address(index, &add),
                MptcpOption::RemoveAddress(ids) => self.forget_addresses(now, &ids),
                MptcpOption::Priority { backup } => self.subflows[index].backup = backup,
                MptcpOption::FastClose { key } if key == self.key => {
                    self.peer_aborted(now);
                    return false;
                }
                _ => {}
            }
        }
        true
    }

    fn take_dss(&mut self, now: Time, index: usize, segment: &Segment, dss: &Dss) {
        if let Some(ack) = dss.ack {
            self.subflows[index].data_acked = true;
            self.data_acknowledged(now, self.offset_acknowledged(ack));
        }
        let Some(Mapping { sequence, subflow_sequence, len, checksum }) = dss.mapping else { return };
        if checksum.is_some() {
            // Checksums were not negotiated (RFC 8684 section 3.3).
            return self.reset_subflow(now, index, reason::MPTCP_SPECIFIC);
        }
        if len == 0 && segment.payload.len == 0 {
            // An empty mapping: an infinite one comes with data (section 3.7), and Linux sends and
            // ignores these.
            return;
        }
        if len == 0 {
            // An infinite mapping: the peer has fallen back (section 3.7).
            let taken = self.subflows[index].taken;
            return self.fall_back_at(now, index, taken);
        }
        let payload = u64::from(len).saturating_sub(u64::from(dss.fin));
        let is_long = matches!(sequence, DataNumber::Long(_));
        if payload > 0 && is_long != self.receiving.is_long {
            self.note_number_len(is_long);
        }
        // Data before the first byte counts as received.
        let data = self.offset_of(sequence);
        if dss.fin && data.is_none_or(|data| data < LONGEST) {
            self.take_fin(index, data.unwrap_or(0) + payload, payload == 0);
        }
        self.take_mapping(now, index, segment, (data.unwrap_or(LONGEST), subflow_sequence, payload));
    }

    /// The offset in the peer's stream of a data sequence number; `None` before the first byte.
    fn offset_of(&self, sequence: DataNumber) -> Option<u64> {
        let expected = self.receiving.initial.wrapping_add(1 + self.receiving.next);
        let ahead = sequence.near(expected).wrapping_sub(expected).cast_signed();
        self.receiving.next.checked_add_signed(ahead)
    }

    /// Adopts the length of the peer's data sequence numbers, 64 or 32 bits, for our
    /// acknowledgments (RFC 8684 section 3.3.2; Linux `use_64bit_ack`).
    pub(crate) fn note_number_len(&mut self, is_long: bool) {
        self.receiving.is_long = is_long;
        if !is_long || std::mem::replace(&mut self.receiving.was_long, true) {
            return;
        }
        for Subflow { endpoint, .. } in &mut self.subflows {
            endpoint.sender_mut().reserve_options(self.receiving.dss_len());
            if is_synchronized(endpoint.state()) {
                // The segment size follows from the MTU and the option length.
                endpoint.set_path_mtu(endpoint.sender().path_mtu());
            }
        }
    }

    /// Handles DATA_FIN, which ends the peer's stream at `end`; without data it is acknowledged
    /// immediately.
    fn take_fin(&mut self, index: usize, end: u64, is_alone: bool) {
        let receiving = &mut self.receiving;
        let arrived = receiving.next + receiving.beyond.len();
        if receiving.fin.is_none() && end >= receiving.next && end >= arrived {
            receiving.fin = Some(end);
        }
        if is_alone {
            self.subflows[index].endpoint.acknowledge_now();
        }
    }

    /// Handles a mapping of `len` bytes from the subflow sequence number `number` on. It must cover
    /// bytes of the segment that carries it (RFC 8684 section 3.3.1).
    fn take_mapping(&mut self, now: Time, index: usize, segment: &Segment, (data, number, len): (u64, u32, u64)) {
        let subflow = &mut self.subflows[index];
        let Some(place) = subflow.endpoint.receiver().stream_offset(segment.seq) else { return };
        let ahead = number.wrapping_sub(1).wrapping_sub(place as u32).cast_signed();
        let Some(at) = place.checked_add_signed(ahead.into()) else { return };
        let overlaps = at < place + u64::from(segment.payload.len) && place < at + len;
        // Data that was read needs no mapping.
        let skip = subflow.taken.saturating_sub(at).min(len);
        let map = DataMap { at: at + skip, data: data + skip, len: len - skip };
        self.receiving.is_mapped |= overlaps;
        if overlaps && map.len > 0 && subflow.incoming.insert(map).is_err() {
            self.reset_subflow(now, index, reason::MPTCP_SPECIFIC);
        }
    }

    /// Sets the payload offset to that in the subflow's stream, which the endpoint checks. The
    /// offset in the connection's stream is checked here.
    fn place(&mut self, index: usize, segment: &mut Segment) {
        let subflow = &self.subflows[index];
        let Some(at) = subflow.endpoint.receiver().stream_offset(segment.seq) else { return };
        let Payload { offset, len } = segment.payload;
        if len == 0 {
            return;
        }
        if self.mode != Mode::Plain
            && !self.config.foreign_peer
            && let Some(data) = subflow.incoming.data(at..at + u64::from(len))
            && data.start != offset
        {
            self.receiving.integrity_error.get_or_insert(data.start);
        }
        if self.mode != Mode::Plain {
            segment.payload.offset = at;
        }
    }

    /// Moves data that has arrived in order on a subflow to the connection.
    fn take_data(&mut self, now: Time, index: usize) {
        let subflow = &mut self.subflows[index];
        let mut at = subflow.taken;
        subflow.taken += subflow.endpoint.read(u64::MAX);
        let end = subflow.taken;
        while at < end {
            let Some(data) = subflow.incoming.data(at..end) else {
                // The data has no mapping.
                subflow.incoming.forget_while(|map| map.end() <= at);
                return self.miss_mapping(now, index, at);
            };
            let len = data.end - data.start;
            at += len;
            subflow.carried.received += len;
            self.receiving.take(data);
        }
        subflow.incoming.forget_while(|map| map.end() <= end);
    }

    /// Advances the right edge of the connection's window. The window counts from the data
    /// acknowledgment of the same segment (RFC 8684 section 3.3.1): a segment that was overtaken on
    /// a faster path does not reduce it.
    fn take_window(&mut self, index: usize, segment: &Segment) {
        if segment.flags.contains(Flags::RST) || !is_synchronized(self.subflows[index].endpoint.state()) {
            return;
        }
        let from = match segment.mptcp.dss().and_then(|dss| dss.ack) {
            Some(ack) => self.offset_acknowledged(ack),
            // A segment of the handshake.
            None if self.sending.una == 0 => 0,
            None => return,
        };
        if from > self.sending.written + 1 {
            return;
        }
        let window = self.subflows[index].endpoint.sender().sequence().window();
        self.sending.max_window = self.sending.max_window.max(window);
        self.sending.window_end = self.sending.window_end.max(from + window);
    }

    /// The offset in our stream up to which a number acknowledges it; far beyond its end if the
    /// number is invalid.
    fn offset_acknowledged(&self, ack: DataNumber) -> u64 {
        let first = self.sending.initial.wrapping_add(1);
        ack.near(first.wrapping_add(self.sending.una)).wrapping_sub(first)
    }

    /// Handles the peer's MP_FASTCLOSE: all subflows are reset.
    fn peer_aborted(&mut self, now: Time) {
        self.error = Some(Error::Reset);
        for index in 0..self.subflows.len() {
            self.reset_subflow(now, index, reason::UNSPECIFIED);
        }
    }

    /// Resets a subflow with a reason; its undelivered data is sent on others.
    pub(crate) fn reset_subflow(&mut self, now: Time, index: usize, reason: u8) {
        let subflow = &mut self.subflows[index];
        subflow.reset_reason = Some(reason);
        subflow.endpoint.abort();
        self.note_end(now, index);
    }
}
