//! What the segments of a connection with another implementation tell those who read them off the
//! wire.

use ackclock_packet::{DataNumber, Dss, Mapping, MptcpOption, Segment};
use ackclock_tcp::IcmpError;
use ackclock_units::Time;

use crate::connection::{Connection, Mode};
use crate::subflow::{Stage, Subflow};

impl Connection {
    /// Where the payload of a segment of the peer over `path` lies in the connection's stream: by
    /// the mapping that it carries, or by one that has arrived. `None` if neither tells.
    pub fn stream_offset(&self, path: usize, segment: &Segment) -> Option<u64> {
        let subflow = self.subflows.iter().find(|subflow| subflow.is_addressed(path, segment))?;
        let at = subflow.endpoint.stream_offset(segment.seq)?;
        if self.mode == Mode::Plain {
            return Some(at);
        }
        let is_first = |option| matches!(option, MptcpOption::Capable(capable) if capable.data_len.is_some());
        if segment.mptcp.iter().any(is_first) {
            return Some(at);
        }
        if let Some(Dss { mapping: Some(Mapping { sequence, subflow_sequence, .. }), .. }) = segment.mptcp.dss() {
            self.peer_key?;
            let first = self.receiving.initial.wrapping_add(1);
            let number = sequence.near(first.wrapping_add(self.receiving.next));
            let behind = segment_unit(at).wrapping_sub(subflow_sequence).cast_signed();
            return number.wrapping_sub(first).checked_add_signed(behind.into());
        }
        subflow.incoming.data(at..at + 1).map(|data| data.start)
    }

    /// Bytes of our stream that a segment of the peer acknowledges.
    pub fn acknowledged_by(&self, segment: &Segment) -> Option<u64> {
        let acked = offset(segment, self.sending.initial, self.sending.una)?;
        Some(acked.min(self.sending.written))
    }

    /// Bytes of the peer's stream that a segment of ours acknowledges.
    pub fn acknowledges(&self, segment: &Segment) -> Option<u64> {
        self.peer_key?;
        let acked = offset(segment, self.receiving.initial, self.receiving.next)?;
        Some(acked.min(self.receiving.fin.unwrap_or(u64::MAX)))
    }

    /// An ICMP error about a segment that we have sent over `path`.
    pub fn icmp(&mut self, now: Time, path: usize, error: &IcmpError) {
        let of_path = |subflow: &&mut Subflow| subflow.path == path && subflow.stage != Stage::Closed;
        if let Some(subflow) = self.subflows.iter_mut().find(of_path) {
            subflow.endpoint.icmp(now, error);
        }
    }
}

/// The number that a mapping gives to the byte at `at`: the first one is 1.
fn segment_unit(at: u64) -> u32 {
    (at as u32).wrapping_add(1)
}

/// The offset that the data acknowledgment of a segment stands for, in a stream that begins behind
/// `initial` and is acknowledged up to about `near`.
fn offset(segment: &Segment, initial: u64, near: u64) -> Option<u64> {
    let first = initial.wrapping_add(1);
    let ack: DataNumber = segment.mptcp.dss()?.ack?;
    // Before the first byte there is nothing to acknowledge.
    Some(ack.near(first.wrapping_add(near)).wrapping_sub(first)).filter(|&offset| offset < 1 << 60)
}
