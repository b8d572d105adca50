//! Segments of a connection with another implementation, as read from the wire.

use ackclock_packet::{DataNumber, Dss, Mapping, MptcpOption, Segment};
use ackclock_tcp::IcmpError;
use ackclock_units::Time;

use crate::connection::{Connection, Mode};
use crate::subflow::{Stage, Subflow};

impl Connection {
    /// The offset in the connection's stream of the payload of a segment that the peer sent over
    /// `path`, determined by the mapping that it carries or one that has arrived; `None` without
    /// either.
    pub fn stream_offset(&self, path: usize, segment: &Segment) -> Option<u64> {
        let subflow = self.subflows.iter().find(|subflow| subflow.is_addressed(path, segment))?;
        let at = subflow.endpoint.receiver().stream_offset(segment.seq)?;
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

    /// Handles an ICMP error about a segment that we sent over `path`.
    pub fn icmp(&mut self, now: Time, path: usize, error: &IcmpError) {
        let of_path = |subflow: &&mut Subflow| subflow.path == path && subflow.stage != Stage::Closed;
        if let Some(subflow) = self.subflows.iter_mut().find(of_path) {
            subflow.endpoint.icmp(now, error);
        }
    }
}

/// The subflow sequence number in a mapping of the byte at `at`; that of the first byte is 1.
fn segment_unit(at: u64) -> u32 {
    (at as u32).wrapping_add(1)
}

/// The stream offset of a segment's data acknowledgment, in a stream that begins after `initial`
/// and is acknowledged up to about `near`.
fn offset(segment: &Segment, initial: u64, near: u64) -> Option<u64> {
    let first = initial.wrapping_add(1);
    let ack: DataNumber = segment.mptcp.dss()?.ack?;
    // A number before the first byte acknowledges nothing.
    Some(ack.near(first.wrapping_add(near)).wrapping_sub(first)).filter(|&offset| offset < 1 << 60)
}
