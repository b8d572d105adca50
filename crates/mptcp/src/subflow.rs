//! One subflow: a TCP endpoint, and what the connection knows of it.

use std::collections::VecDeque;
use std::ops::Range;

use ackclock_packet::{MptcpOption, Segment};
use ackclock_tcp::{Endpoint, Ports, State, Stats};
use ackclock_units::{Span, Time};

use crate::mapping::{Map, Mappings};
use crate::scheduler::Candidate;

/// How far a subflow has come.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Stage {
    /// The handshake of the initial subflow.
    Opening,
    /// MP_JOIN, as who opens: the SYN is sent.
    Joining,
    /// The SYN/ACK has come. The ACK that proves the keys is repeated at this time, until something
    /// shows that it has arrived (RFC 8684 section 3.2).
    Proving { again_at: Time, wait: Span, times: u32 },
    /// MP_JOIN, as who is asked: the proof has not come.
    Unproven,
    /// Data may be sent.
    Open,
    /// The endpoint has come to its end.
    Closed,
}

/// What a subflow has carried.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Carried {
    /// Bytes of the connection that it was given.
    pub scheduled: u64,
    /// Of these, bytes that another subflow had been given before.
    pub reinjected: u64,
    /// Bytes of the connection that arrived by it, known ones included.
    pub received: u64,
    /// How often its congestion window was halved because it blocked the shared window.
    pub penalties: u64,
}

/// One subflow.
#[derive(Debug)]
pub struct Subflow {
    pub(crate) endpoint: Endpoint,
    pub(crate) path: usize,
    pub(crate) stage: Stage,
    pub(crate) backup: bool,
    /// The numbers of the addresses at its ends, ours first.
    pub(crate) address_ids: [u8; 2],
    /// Ours and the peer's.
    pub(crate) nonces: [u32; 2],
    /// Of what it was given to send, until both the subflow and the connection have acknowledged
    /// it.
    pub(crate) maps: Mappings,
    /// Bytes that it was given.
    pub(crate) given: u64,
    /// Of what the peer sends.
    pub(crate) incoming: Mappings,
    /// Bytes that were taken from it, in order.
    pub(crate) taken: u64,
    /// A data acknowledgment has come by it: options get through.
    pub(crate) data_acked: bool,
    /// The peer has given it up, and so have we.
    pub(crate) closing: bool,
    /// Its timer has expired, and nothing was acknowledged since: potentially failed.
    pub(crate) failed: bool,
    /// Timeouts that were noticed.
    pub(crate) timeouts: u64,
    /// Options that wait for a pure ACK.
    pub(crate) waiting: VecDeque<MptcpOption>,
    /// Why it is reset (MP_TCPRST).
    pub(crate) reset_reason: Option<u8>,
    /// When another one was last slowed down for it.
    pub(crate) penalized_at: Option<Time>,
    /// Under the redundant scheduler, the first byte that it was not given.
    pub(crate) redundant_to: u64,
    pub(crate) carried: Carried,
    /// Of those before it on the same path.
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

    /// Its endpoint.
    pub fn endpoint(&self) -> &Endpoint {
        &self.endpoint
    }

    /// The number of its path.
    pub fn path(&self) -> usize {
        self.path
    }

    /// Whether data may be sent on it.
    pub fn is_open(&self) -> bool {
        self.stage == Stage::Open
    }

    /// What it has carried.
    pub fn carried(&self) -> Carried {
        self.carried
    }

    /// Totals of its endpoint, and of those before it on the same path.
    pub fn totals(&self) -> Stats {
        self.past + *self.endpoint.stats()
    }

    /// Whether a segment that came over `path` is of this subflow.
    pub(crate) fn is_addressed(&self, path: usize, segment: &Segment) -> bool {
        let Ports { local, remote } = self.endpoint.ports();
        self.path == path
            && self.stage != Stage::Closed
            && (segment.destination_port, segment.source_port) == (local, remote)
    }

    /// Whether the application's data may be given to it.
    pub(crate) fn takes_data(&self) -> bool {
        self.is_open() && !self.closing && matches!(self.endpoint.state(), State::Established | State::CloseWait)
    }

    /// What a scheduler knows of it.
    pub(crate) fn candidate(&self, subflow: usize) -> Candidate {
        Candidate {
            subflow,
            srtt: self.endpoint.srtt(),
            mss: self.endpoint.full_segment().max(1).into(),
            cwnd: self.endpoint.cwnd(),
            room: self.endpoint.window_room().min(self.endpoint.send_space()),
            queued: self.endpoint.unacknowledged(),
            rate: self.endpoint.window_rate(),
        }
    }

    /// Gives it bytes of the connection from `data` on, as many of `len` as its buffer takes.
    pub(crate) fn give(&mut self, data: u64, len: u64) -> u64 {
        let continues = self.maps.continues(self.given, data);
        if !continues {
            self.endpoint.end_record();
        }
        let taken = self.endpoint.write(len);
        if taken > 0 {
            self.maps.append(Map { at: self.given, data, len: taken });
            self.given += taken;
            self.carried.scheduled += taken;
        }
        taken
    }

    /// Whether it is known where the bytes of a range of the peer's stream belong, or they were
    /// taken already.
    pub(crate) fn covers(&self, range: Range<u64>) -> bool {
        let mut at = range.start.max(self.taken);
        while at < range.end {
            let Some(map) = self.incoming.of(at) else { return false };
            at = map.end();
        }
        true
    }

    /// Whether it was given a byte of the connection and the peer's end of it has not acknowledged
    /// that.
    pub(crate) fn has_in_flight(&self, data: u64) -> bool {
        let acked = self.endpoint.acked_bytes();
        self.maps.iter().any(|map| map.end() > acked && (map.data..map.data_end()).contains(&data))
    }

    /// The peer's connection has acknowledged everything below `una`.
    pub(crate) fn forget(&mut self, una: u64) {
        let acked = self.endpoint.acked_bytes();
        self.maps.forget_while(|map| map.end() <= acked && map.data_end() <= una);
    }

    /// An option goes out with the next pure ACK, which goes out at once.
    pub(crate) fn signal(&mut self, option: MptcpOption) {
        self.waiting.push_back(option);
        self.endpoint.acknowledge_now();
    }

    /// When something is due.
    pub(crate) fn next_deadline(&self) -> Time {
        let own = if let Stage::Proving { again_at, .. } = self.stage { again_at } else { Time::NEVER };
        if self.stage == Stage::Closed { Time::NEVER } else { own.min(self.endpoint.next_deadline()) }
    }
}
