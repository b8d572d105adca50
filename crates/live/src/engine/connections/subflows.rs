//! The TCP connections of a local endpoint as its peer and the wire know them: one, or one for each
//! subflow.

use std::net::{IpAddr, Ipv4Addr};

use ackclock_packet::codec::Addresses;
use ackclock_packet::{Flags, FlowKey, MptcpOption, Segment};
use ackclock_sim::SENDER_PORT;

use crate::router::protocol;

/// The ephemeral ports of Linux (`ip_local_port_range`).
pub(super) const EPHEMERAL: std::ops::Range<u16> = 32_768..61_000;

/// The most connections of an endpoint that are known at a time: the most that it has, and as many
/// that have ended.
pub(super) const MOST_SUBFLOWS: usize = 64;

/// A TCP connection of a local endpoint.
#[derive(Debug)]
pub(in crate::engine) struct WireConnection {
    /// The path that it takes.
    pub(super) path: usize,
    /// The local host.
    pub(in crate::engine) node: usize,
    /// Addresses of outgoing segments.
    pub(in crate::engine) addresses: Addresses,
    /// The local port and the peer's.
    pub(in crate::engine) ports: (u16, u16),
    /// The two ports that the endpoint itself uses.
    pub(super) internal: (u16, u16),
    /// The peer's stream.
    stream: PeerStream,
}

/// The stream that the peer of a local endpoint sends.
#[derive(Clone, Copy, Debug, Default)]
struct PeerStream {
    /// The initial sequence number, once the SYN has been seen.
    isn: Option<u32>,
    /// One past the last byte that was seen.
    end: u64,
}

impl PeerStream {
    /// Sets the offset of the payload of `segment`; `None` if it precedes the first byte, as a
    /// keep-alive may, or there was no SYN.
    fn place(&mut self, segment: &mut Segment) -> Option<()> {
        let syn = segment.flags.contains(Flags::SYN);
        if syn && self.end == 0 {
            self.isn = Some(segment.seq);
        }
        // The SYN is unit 0, byte i unit i + 1.
        let (first, near) = (self.isn?.wrapping_add(u32::from(!syn)), self.end);
        let ahead = segment.seq.wrapping_sub(first).wrapping_sub(near as u32).cast_signed();
        segment.payload.offset = near.checked_add_signed(i64::from(ahead))?;
        if segment.payload.len > 0 {
            self.end = self.end.max(segment.payload.offset + u64::from(segment.payload.len));
        }
        Some(())
    }
}

impl WireConnection {
    /// A connection that we open between two hosts, the local one first.
    pub(super) fn new(
        path: usize,
        [node, peer]: [usize; 2],
        ports: (u16, u16),
        internal: (u16, u16),
        hosts: &[Ipv4Addr],
    ) -> WireConnection {
        let address = |node: usize| hosts.get(node).map(Ipv4Addr::octets).unwrap_or_default();
        let addresses = Addresses { source: address(node), destination: address(peer) };
        WireConnection { path, node, addresses, ports, internal, stream: PeerStream::default() }
    }

    /// A connection that the peer opens by a segment with this key; `None` if that is not IPv4.
    pub(super) fn accepted(
        path: usize,
        [node, _]: [usize; 2],
        key: &FlowKey,
        internal: (u16, u16),
    ) -> Option<WireConnection> {
        let (IpAddr::V4(own), IpAddr::V4(peer)) = (key.destination, key.source) else { return None };
        let addresses = Addresses { source: own.octets(), destination: peer.octets() };
        let ports = (key.destination_port, key.source_port);
        Some(WireConnection { path, node, addresses, ports, internal, stream: PeerStream::default() })
    }

    /// A further connection to the same port that the endpoint opens, over `path` between two
    /// hosts.
    pub(super) fn sibling(
        &self,
        path: usize,
        nodes: [usize; 2],
        internal: (u16, u16),
        port: u16,
        hosts: &[Ipv4Addr],
    ) -> Option<WireConnection> {
        // Only the end that opened the first connection opens further ones.
        (self.internal.0 == SENDER_PORT)
            .then(|| WireConnection::new(path, nodes, (port, self.ports.1), internal, hosts))
    }

    /// The port on the wire for an endpoint's port `internal`, at the same distance from the first
    /// port.
    pub(super) fn port_of(&self, internal: u16) -> u16 {
        let ahead = internal.wrapping_sub(self.internal.0);
        let all = EPHEMERAL.end - EPHEMERAL.start;
        if EPHEMERAL.contains(&self.ports.0) {
            EPHEMERAL.start + (self.ports.0 - EPHEMERAL.start + ahead % all) % all
        } else {
            EPHEMERAL.start + ahead % all
        }
    }

    /// The key of the peer's segments.
    pub(super) fn incoming(&self) -> FlowKey {
        FlowKey {
            source: IpAddr::V4(Ipv4Addr::from(self.addresses.destination)),
            destination: IpAddr::V4(Ipv4Addr::from(self.addresses.source)),
            protocol: protocol::TCP,
            source_port: self.ports.1,
            destination_port: self.ports.0,
        }
    }

    /// Gives a segment of the peer the ports that the endpoint knows, and its payload the offset in
    /// the stream; `None` if it has none.
    pub(super) fn place(&mut self, segment: &mut Segment) -> Option<()> {
        (segment.destination_port, segment.source_port) = self.internal;
        self.stream.place(segment)
    }
}

/// Returns `true` if a SYN asks for a further subflow.
pub(super) fn is_join(segment: &Segment) -> bool {
    segment.mptcp.iter().any(|option| matches!(option, MptcpOption::JoinSyn { .. }))
}
