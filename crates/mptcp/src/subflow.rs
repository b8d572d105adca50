//! A subflow: a TCP endpoint, and its state within the connection.

use std::collections::VecDeque;
use std::ops::Range;

use ackclock_packet::{MptcpOption, Segment};
use ackclock_tcp::{Endpoint, Ports, State, Stats};
use ackclock_units::{Span, Time};

use crate::mapping::{DataMap, Mappings};
use crate::scheduler::Candidate;

/// The stage of a subflow's lifetime.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Stage {
    /// The handshake of the initial subflow.
    Opening,
    /// MP_JOIN, at the opening end: the SYN was sent.
    Joining,
    /// MP_JOIN, at the opening end: the SYN/ACK has arrived. The ACK that proves the keys is
    /// repeated at `again_at` until any segment shows that it has arrived (RFC 8684 section 3.2).
    Proving { again_at: Time, wait: Span, times: u32 },
    /// MP_JOIN, at the accepting end: the proof has not arrived.
    Unproven,
    /// Data may be sent.
    Open,
    /// The endpoint has closed.
    Closed,
}

/// The data that a subflow has carried.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Carried {
    /// Bytes of the connection that it was given.
    pub scheduled: u64,
    /// Bytes among `scheduled` that another subflow had been given before.
    pub reinjected: u64,
    /// Bytes of the connection that arrived over it, including duplicates.
    pub received: u64,
    /// Reductions of its congestion window because it blocked the shared window.
    pub penalties: u64,
}

/// A subflow of a connection.
#[derive(Debug)]
pub struct Subflow {
    pub(crate) endpoint: Endpoint,
    pub(crate) path: usize,
    pub(crate) stage: Stage,
    pub(crate) backup: bool,
    /// The identifiers of its addresses, ours first.
    pub(crate) address_ids: [u8; 2],
    /// Our nonce and the peer's.
    pub(crate) nonces: [u32; 2],
    /// Mappings of sent data, until both the subflow and the connection have been acknowledged.
    pub(crate) maps: Mappings,
    /// Bytes that it was given.
    pub(crate) given: u64,
    /// Mappings of the peer's data.
    pub(crate) incoming: Mappings,
    /// Bytes that were read from it, in order.
    pub(crate) taken: u64,
    /// A data acknowledgment has arrived on it: options pass.
    pub(crate) data_acked: bool,
    /// Both ends have given it up.
    pub(crate) closing: bool,
    /// Potentially failed: its timer has expired, and nothing was acknowledged since.
    pub(crate) failed: bool,
    /// Timeouts that the connection has handled.
    pub(crate) timeouts: u64,
    /// Options that wait for a pure ACK.
    pub(crate) waiting: VecDeque<MptcpOption>,
    /// The reason of its reset (MP_TCPRST).
    pub(crate) reset_reason: Option<u8>,
    /// The last time at which another subflow was penalized in its favour.
    pub(crate) penalized_at: Option<Time>,
    /// The first byte that it was not given, with the redundant scheduler.
    pub(crate) redundant_to: u64,
    pub(crate) carried: Carried,
    /// Totals of earlier subflows on the same path.
    pub(crate) past: Stats,
}

impl Subflow {
    pub(crate) fn new(endpoint: Endpoint, path: usize, stage: Stage) -> Subflow {
        Subflow {
            endpoint,
            path,
            stage,
            backup: false,
            address_ids: [0, 0],
            nonces: [0, 0],
            maps: Mappings::default(),
            given: 0,
            incoming: Mappings::default(),
            taken: 0,
            data_acked: false,
            closing: false,
            failed: false,
            timeouts: 0,
            waiting: VecDeque::new(),
            reset_reason: None,
            penalized_at: None,
            redundant_to: 0,
            carried: Carried::default(),
            past: Stats::default(),
        }
    }

    /// The TCP endpoint.
    pub fn endpoint(&self) -> &Endpoint {
        &self.endpoint
    }

    /// The number of the path.
    pub fn path(&self) -> usize {
        self.path
    }

    /// Returns `true` if data may be sent on it.
    pub fn is_open(&self) -> bool {
        self.stage == Stage::Open
    }

    /// The data that it has carried.
    pub fn carried(&self) -> Carried {
        self.carried
    }

    /// Totals of its endpoint, and of earlier subflows on the same path.
    pub fn totals(&self) -> Stats {
        self.past + *self.endpoint.sender().stats()
    }

    /// Returns `true` if a segment that arrived over `path` belongs to this subflow.
    pub(crate) fn is_addressed(&self, path: usize, segment: &Segment) -> bool {
        let Ports { local, remote } = self.endpoint.ports();
        self.path == path
            && self.stage != Stage::Closed
            && (segment.destination_port, segment.source_port) == (local, remote)
    }

    /// Returns `true` if it may be given data of the application.
    pub(crate) fn takes_data(&self) -> bool {
        self.is_open() && !self.closing && matches!(self.endpoint.state(), State::Established | State::CloseWait)
    }

    /// Its state as a scheduler sees it.
    pub(crate) fn candidate(&self, subflow: usize) -> Candidate {
        Candidate {
            subflow,
            srtt: self.endpoint.sender().rtt().srtt(),
            mss: self.endpoint.sender().full_payload().max(1).into(),
            cwnd: self.endpoint.sender().cwnd(),
            room: self.endpoint.sender().window_room().min(self.endpoint.sender().send_space()),
            queued: self.endpoint.sender().sequence().unacknowledged(),
            rate: self.endpoint.sender().rate_of_window(),
        }
    }

    /// Gives it up to `len` bytes of the connection from `data` on; returns the number that its
    /// buffer accepts.
    pub(crate) fn give(&mut self, data: u64, len: u64) -> u64 {
        let continues = self.maps.continues(self.given, data);
        if !continues {
            self.endpoint.sender_mut().end_record();
        }
        let taken = self.endpoint.write(len);
        if taken > 0 {
            self.maps.append(DataMap { at: self.given, data, len: taken });
            self.given += taken;
            self.carried.scheduled += taken;
        }
        taken
    }

    /// Returns `true` if all bytes of a range of the peer's stream are mapped or were read already.
    pub(crate) fn covers(&self, range: Range<u64>) -> bool {
        let mut at = range.start.max(self.taken);
        while at < range.end {
            let Some(map) = self.incoming.of(at) else { return false };
            at = map.end();
        }
        true
    }

    /// Returns `true` if it was given a byte of the connection that the peer has not acknowledged
    /// on it.
    pub(crate) fn has_in_flight(&self, data: u64) -> bool {
        let acked = self.endpoint.sender().sequence().acked_bytes();
        self.maps.iter().any(|map| map.end() > acked && (map.data..map.data_end()).contains(&data))
    }

    /// Forgets data that both the subflow and, below `una`, the connection have acknowledged.
    pub(crate) fn forget(&mut self, una: u64) {
        let acked = self.endpoint.sender().sequence().acked_bytes();
        self.maps.forget_while(|map| map.end() <= acked && map.data_end() <= una);
    }

    /// Sends an option with the next pure ACK, which is sent immediately.
    pub(crate) fn signal(&mut self, option: MptcpOption) {
        self.waiting.push_back(option);
        self.endpoint.acknowledge_now();
    }

    /// The time at which something is due.
    pub(crate) fn next_deadline(&self) -> Time {
        let own = if let Stage::Proving { again_at, .. } = self.stage { again_at } else { Time::NEVER };
        if self.stage == Stage::Closed { Time::NEVER } else { own.min(self.endpoint.next_deadline()) }
    }
}
