//! What arrives: options of the handshake and of data, and the data.

use ackclock_packet::{Capable, DataNumber, Dss, Flags, Mapping, MptcpOption, Payload, Segment};
use ackclock_tcp::{Acknowledgment, Error, State, reset_for};
use ackclock_units::{Ecn, Time};

use crate::connection::{Connection, Mode};
use crate::keys;
use crate::mapping::Map;
use crate::subflow::Stage;

/// Reasons of MP_TCPRST (IANA registry "MPTCP MP_TCPRST Reason Codes").
pub(crate) mod reason {
    pub(crate) const UNSPECIFIED: u8 = 0;
    pub(crate) const MIDDLEBOX: u8 = 6;
    pub(crate) const NOT_MPTCP: u8 = 1;
}

/// No stream is as long.
const LONGEST: u64 = 1 << 60;

impl Connection {
    /// Takes in a segment that arrived over `path` with codepoint `ecn`. Of its payload, the offset
    /// is that in the connection's stream.
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

    /// A segment of no subflow: the SYN of one, or nothing of ours.
    fn input_unknown(&mut self, now: Time, path: usize, segment: &Segment, ecn: Ecn) {
        match self.admit(path, segment) {
            Some(index) => {
                self.subflows[index].endpoint.input(now, segment, ecn);
            }
            None => self.replies.extend(reset_for(segment).map(|reset| (path, reset))),
        }
    }

    fn input_subflow(&mut self, now: Time, index: usize, segment: &Segment, ecn: Ecn) -> Acknowledgment {
        if !self.accept_options(now, index, segment) {
            return Acknowledgment::default();
        }
        let mut segment = *segment;
        self.place(index, &mut segment);
        self.couple(index);
        let endpoint = &mut self.subflows[index].endpoint;
        let acked = endpoint.acked_bytes();
        let was_open = is_synchronized(endpoint.state());
        let arrival = endpoint.input(now, &segment, ecn);
        if !was_open && is_synchronized(endpoint.state()) {
            self.opened_subflow(now, index);
        }
        let subflow = &mut self.subflows[index];
        let progress = subflow.endpoint.acked_bytes() > acked;
        if progress {
            subflow.failed = false;
        }
        if self.mode == Mode::Plain {
            self.follow_plain();
        } else {
            self.take_window(index, &segment);
            self.take_data(now, index);
            if progress {
                let una = self.sending.una;
                self.subflows[index].forget(una);
            }
        }
        self.note_end(now, index);
        arrival
    }

    /// What the options say, before the endpoint sees the segment; `false` if it is to be dropped.
    fn accept_options(&mut self, now: Time, index: usize, segment: &Segment) -> bool {
        if self.mode == Mode::Plain {
            return true;
        }
        if segment.flags.contains(Flags::RST) {
            if segment.mptcp.iter().any(|option| option == MptcpOption::FastClose { key: self.key }) {
                self.peer_aborted(index);
            }
            return true;
        }
        let is_syn = segment.flags.contains(Flags::SYN);
        match self.subflows[index].stage {
            Stage::Opening if is_syn => self.accept_capable(segment),
            Stage::Opening => self.accept_third(segment),
            Stage::Joining => self.accept_join(index, segment),
            Stage::Unproven if !is_syn => self.accept_proof(index, segment),
            Stage::Proving { .. } if !is_syn => {
                // Anything shows that the proof has arrived.
                self.subflows[index].stage = Stage::Open;
                self.accept_signals(now, index, segment)
            }
            Stage::Unproven | Stage::Proving { .. } | Stage::Closed => true,
            Stage::Open if is_syn => true,
            Stage::Open => self.accept_signals(now, index, segment),
        }
    }

    /// The SYN or SYN/ACK of the initial subflow.
    fn accept_capable(&mut self, segment: &Segment) -> bool {
        let offered = capable(segment).filter(|capable| capable.version == 1 && capable.hmac_sha256);
        match (offered, self.is_client) {
            (Some(Capable { sender_key: Some(key), receiver_key: None, checksum: false, .. }), true) => {
                self.know_peer(key);
                self.mode = Mode::Multipath { confirmed: false };
            }
            (Some(Capable { sender_key: None, checksum: false, .. }), false) => {
                self.mode = Mode::Multipath { confirmed: false };
            }
            _ => self.fall_back(),
        }
        true
    }

    pub(crate) fn know_peer(&mut self, key: u64) {
        self.peer_key = Some(key);
        self.receiving.initial = keys::initial_sequence(key);
    }

    /// At the server, the third packet or the first one with data: both have both keys.
    fn accept_third(&mut self, segment: &Segment) -> bool {
        if self.is_client || self.mode == Mode::Opening || self.subflows[0].endpoint.state() != State::SynReceived {
            return true;
        }
        match capable(segment) {
            Some(Capable { sender_key: Some(key), receiver_key: Some(own), .. }) if own == self.key => {
                self.know_peer(key);
                self.mode = Mode::Multipath { confirmed: true };
                self.take_capable_data(segment);
            }
            // The keys are still to come: it will be sent again.
            _ if segment.mptcp.dss().is_some() => return false,
            _ => self.fall_back(),
        }
        true
    }

    /// The mapping of the first data.
    fn take_capable_data(&mut self, segment: &Segment) {
        if let Some(len) = capable(segment).and_then(|capable| capable.data_len).filter(|&len| len > 0) {
            let _ = self.subflows[0].incoming.insert(Map { at: 0, data: 0, len: len.into() });
        }
    }

    /// The options of an open subflow.
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
                MptcpOption::Dss(dss) => self.take_dss(now, index, &dss),
                MptcpOption::Capable(_) => self.take_capable_data(segment),
                MptcpOption::AddAddress(add) => self.take_address(index, &add),
                MptcpOption::RemoveAddress(ids) => self.forget_addresses(now, &ids),
                MptcpOption::Priority { backup } => self.subflows[index].backup = backup,
                MptcpOption::FastClose { key } if key == self.key => self.peer_aborted(index),
                _ => {}
            }
        }
        true
    }

    /// A segment without any option: somebody on the way takes them out (RFC 8684 section 3.7).
    fn miss_options(&mut self, now: Time, index: usize, segment: &Segment) -> bool {
        let subflow = &self.subflows[index];
        let acks_data = segment.flags.contains(Flags::ACK)
            && self.sending.una < self.sending.next
            && subflow.endpoint.acknowledges_new(segment.ack);
        let awaits_end = self.sending.fin_sent && !self.sending.fin_acked;
        if segment.payload.len == 0 && !acks_data && !awaits_end {
            // What a stack sends from TIME-WAIT and the like.
            return true;
        }
        if self.opened == 1 {
            self.fall_back();
            return true;
        }
        self.reset_subflow(now, index, reason::MIDDLEBOX);
        false
    }

    /// Plain TCP from here on: there was never more than one subflow, so that its stream is that of
    /// the connection.
    pub(crate) fn fall_back(&mut self) {
        self.mode = Mode::Plain;
        self.sending.timer = Time::NEVER;
        self.announced.clear();
        let subflow = &mut self.subflows[0];
        subflow.stage = Stage::Open;
        subflow.waiting.clear();
        // What was taken from it so far was in order: it had the only mapping.
        self.receiving.next = subflow.taken.max(self.receiving.next);
        self.receiving.beyond.clear();
    }

    /// In plain TCP the stream of the subflow is all there is.
    pub(crate) fn follow_plain(&mut self) {
        let endpoint = &mut self.subflows[0].endpoint;
        endpoint.read(u64::MAX);
        self.receiving.next = endpoint.delivered_bytes();
        self.sending.una = endpoint.acked_bytes();
    }

    fn take_dss(&mut self, now: Time, index: usize, dss: &Dss) {
        if let Some(ack) = dss.ack {
            self.data_acknowledged(now, self.offset_acknowledged(ack));
        }
        let Some(Mapping { sequence, subflow_sequence, len, .. }) = dss.mapping else { return };
        let expected = self.receiving.initial.wrapping_add(1 + self.receiving.next);
        let ahead = number(sequence, expected).wrapping_sub(expected).cast_signed();
        let Some(data) = self.receiving.next.checked_add_signed(ahead).filter(|&data| data < LONGEST) else { return };
        let payload = u64::from(len).saturating_sub(u64::from(dss.fin));
        if dss.fin && self.receiving.fin.is_none() && data + payload >= self.receiving.next {
            self.receiving.fin = Some(data + payload);
            if payload == 0 {
                self.subflows[index].endpoint.acknowledge_now();
            }
        } else if dss.fin && payload == 0 {
            // Sent again: our acknowledgment was lost.
            self.subflows[index].endpoint.acknowledge_now();
        }
        let subflow = &mut self.subflows[index];
        let near = subflow.taken as u32;
        let ahead = subflow_sequence.wrapping_sub(1).wrapping_sub(near).cast_signed();
        let Some(at) = subflow.taken.checked_add_signed(ahead.into()) else { return };
        // What was taken already needs no mapping any more.
        let skip = subflow.taken.saturating_sub(at).min(payload);
        let map = Map { at: at + skip, data: data + skip, len: payload - skip };
        if map.len > 0 && subflow.incoming.insert(map).is_err() {
            self.reset_subflow(now, index, reason::UNSPECIFIED);
        }
    }

    /// Gives the payload its place in the subflow's stream, where it is checked by the endpoint;
    /// where it comes from in the connection's is checked here.
    fn place(&mut self, index: usize, segment: &mut Segment) {
        let subflow = &self.subflows[index];
        let Some(at) = subflow.endpoint.stream_offset(segment.seq) else { return };
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

    /// What has arrived in order on a subflow is the connection's.
    fn take_data(&mut self, now: Time, index: usize) {
        let subflow = &mut self.subflows[index];
        let mut at = subflow.taken;
        subflow.taken += subflow.endpoint.read(u64::MAX);
        let end = subflow.taken;
        while at < end {
            let Some(data) = subflow.incoming.data(at..end) else {
                // Nobody has said what it is.
                subflow.incoming.forget_while(|map| map.end() <= at);
                return self.miss_mapping(now, index);
            };
            let len = data.end - data.start;
            at += len;
            subflow.carried.received += len;
            let receiving = &mut self.receiving;
            if data.end <= receiving.next || receiving.beyond.contain(data.clone()) {
                receiving.duplicate += len;
            } else if data.start <= receiving.next {
                receiving.next = receiving.beyond.advance(data.end);
            } else {
                receiving.beyond.insert(data);
                receiving.most_beyond = receiving.most_beyond.max(receiving.beyond.len());
            }
        }
        subflow.incoming.forget_while(|map| map.end() <= end);
    }

    fn miss_mapping(&mut self, now: Time, index: usize) {
        if self.opened == 1 {
            self.fall_back();
            self.follow_plain();
        } else {
            self.reset_subflow(now, index, reason::MIDDLEBOX);
        }
    }

    /// The window of the connection ends no earlier than this segment says. It counts from the data
    /// acknowledgment of the same segment (RFC 8684 section 3.3.1): one that has come over a slow
    /// path says less than one that has overtaken it.
    fn take_window(&mut self, index: usize, segment: &Segment) {
        if segment.flags.contains(Flags::RST) || !is_synchronized(self.subflows[index].endpoint.state()) {
            return;
        }
        let from = match segment.mptcp.dss().and_then(|dss| dss.ack) {
            Some(ack) => self.offset_acknowledged(ack),
            // The handshake.
            None if self.sending.una == 0 => 0,
            None => return,
        };
        if from > self.sending.written + 1 {
            return;
        }
        let window = self.subflows[index].endpoint.peer_window();
        self.sending.max_window = self.sending.max_window.max(window);
        self.sending.window_end = self.sending.window_end.max(from + window);
    }

    /// The place in our stream up to which a number acknowledges it; far beyond it if the number
    /// makes no sense.
    fn offset_acknowledged(&self, ack: DataNumber) -> u64 {
        let first = self.sending.initial.wrapping_add(1);
        ack.near(first.wrapping_add(self.sending.una)).wrapping_sub(first)
    }

    /// MP_FASTCLOSE of the peer: all subflows are reset.
    fn peer_aborted(&mut self, index: usize) {
        self.error = Some(Error::Reset);
        for (other, subflow) in self.subflows.iter_mut().enumerate() {
            if other != index {
                subflow.endpoint.abort();
            }
        }
    }

    /// A subflow ends by a reset that says why; what it has not delivered goes out on others.
    pub(crate) fn reset_subflow(&mut self, now: Time, index: usize, reason: u8) {
        let subflow = &mut self.subflows[index];
        subflow.reset_reason = Some(reason);
        subflow.endpoint.abort();
        self.note_end(now, index);
    }
}

fn capable(segment: &Segment) -> Option<Capable> {
    segment.mptcp.iter().find_map(|option| if let MptcpOption::Capable(found) = option { Some(found) } else { None })
}

fn number(sequence: DataNumber, expected: u64) -> u64 {
    sequence.near(expected)
}

pub(crate) fn is_synchronized(state: State) -> bool {
    !matches!(state, State::Closed | State::Listen | State::SynSent | State::SynReceived)
}
