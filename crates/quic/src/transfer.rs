//! What the implementations have in common: settings, a transfer, and the figures of a path.

use std::net::SocketAddr;
use std::sync::Arc;
use std::time::Duration;

use ackclock_units::Time;

use crate::controller::{Law, Link};
use crate::messages::Cadence;

/// Bytes of connection IDs, the default of both implementations.
pub(crate) const CID: usize = 8;

/// What a sender sends.
#[derive(Clone)]
pub(crate) struct BulkTransfer {
    pub(crate) to: SocketAddr,
    /// Time at which it connects.
    pub(crate) start: Time,
    /// Bytes to send; `None` sends until the end.
    pub(crate) bytes: Option<u64>,
    /// Messages at a rate; `None` as fast as they leave.
    pub(crate) cadence: Option<Cadence>,
    /// A first connection at time 0 lets this one send data at once (0-RTT).
    pub(crate) resumes: bool,
    pub(crate) migration: Option<Migration>,
}

/// The address of a client changes.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Migration {
    pub(crate) at: Time,
    pub(crate) to: SocketAddr,
    /// The client takes the path for another one: its window and round trips begin anew.
    pub(crate) resets: bool,
}

/// Settings of an endpoint.
pub(crate) struct EndpointSettings {
    /// The most bytes of a UDP payload; discovered from 1,200 on if `discovers_mtu`.
    pub(crate) payload: u16,
    pub(crate) discovers_mtu: bool,
    /// Bytes of the window of a stream, and of the send window.
    pub(crate) window: u64,
    /// The most datagrams that are sent at one time (GSO).
    pub(crate) burst: usize,
    /// The other end of a controller of ackclock.
    pub(crate) link: Option<Arc<Link>>,
    /// Packets leave with ECT(1).
    pub(crate) scalable: bool,
}

impl EndpointSettings {
    /// With a controller of ackclock.
    pub(crate) fn with(self, law: Option<&Law>) -> EndpointSettings {
        EndpointSettings { link: law.map(Law::link), scalable: law.is_some_and(Law::is_scalable), ..self }
    }
}

/// What an implementation tells of its path.
pub(crate) struct PathFigures {
    pub(crate) sent_packets: u64,
    pub(crate) lost_packets: u64,
    pub(crate) congestion_events: u64,
    pub(crate) cwnd_bytes: u64,
    pub(crate) mtu_bytes: u16,
    pub(crate) rtt: Duration,
    pub(crate) min_rtt: Option<Duration>,
    /// Slow start threshold of the controller, bytes, and its rate, bits/s, if it says.
    pub(crate) ssthresh: Option<u64>,
    pub(crate) pacing_rate: Option<u64>,
}
