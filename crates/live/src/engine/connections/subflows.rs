//! The TCP connections of a local endpoint as its peer and the wire know them: one, or one for each
//! subflow.

use std::net::{IpAddr, Ipv4Addr};

use ackclock_packet::codec::Addresses;
use ackclock_packet::{Flags, FlowKey, MptcpOption, Segment};
use ackclock_sim::SENDER_PORT;

use super::EPHEMERAL;
use crate::router::protocol;

/// The most connections of an endpoint that are known at a time: those that it has at most, and
/// as many again that have ended.
pub(super) const MOST_SUBFLOWS: usize = 64;

/// A TCP connection of a local endpoint.
#[derive(Debug)]
pub(in crate::engine) struct Subflow {
    /// Over which path it goes.
    pub(super) path: usize,
    /// The host that it is on.
    pub(in crate::engine) node: usize,
    /// Of what it sends.
    pub(in crate::engine) addresses: Addresses,
    /// Its own and the peer's.
    pub(in crate::engine) ports: (u16, u16),
    /// The same as the endpoint knows them.
    pub(super) internal: (u16, u16),
    /// What the peer sends.
    stream: Stream,
}

/// What the peer of a local endpoint sends.
#[derive(Clone, Copy, Debug, Default)]
struct Stream {
    /// Its initial sequence number, once its SYN has been seen.
    isn: Option<u32>,
    /// One past the last byte that was seen.
    end: u64,
}

impl Stream {
    /// Says where the payload of `segment` lies. `None` if that is before the first byte, as it may
    /// be with a keep-alive, or there was no SYN.
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

impl Subflow {
    /// One between two hosts, ours first, that we open.
    pub(super) fn new(
        path: usize,
        [node, peer]: [usize; 2],
        ports: (u16, u16),
        internal: (u16, u16),
        hosts: &[Ipv4Addr],
    ) -> Subflow {
        let address = |node: usize| hosts.get(node).map(Ipv4Addr::octets).unwrap_or_default();
        let addresses = Addresses { source: address(node), destination: address(peer) };
        Subflow { path, node, addresses, ports, internal, stream: Stream::default() }
    }

    /// One that the peer opens by a segment with this key. `None` if that is not IPv4.
    pub(super) fn accepted(path: usize, [node, _]: [usize; 2], key: &FlowKey, internal: (u16, u16)) -> Option<Subflow> {
        let (IpAddr::V4(own), IpAddr::V4(peer)) = (key.destination, key.source) else { return None };
        let addresses = Addresses { source: own.octets(), destination: peer.octets() };
        let ports = (key.destination_port, key.source_port);
        Some(Subflow { path, node, addresses, ports, internal, stream: Stream::default() })
    }

    /// A further one that the endpoint opens, over `path` between two hosts, to the same port.
    pub(super) fn sibling(
        &self,
        path: usize,
        nodes: [usize; 2],
        internal: (u16, u16),
        port: u16,
        hosts: &[Ipv4Addr],
    ) -> Option<Subflow> {
        // Only who has opened the first one opens further ones.
        (self.internal.0 == SENDER_PORT).then(|| Subflow::new(path, nodes, (port, self.ports.1), internal, hosts))
    }

    /// The port on the wire for one that the endpoint has drawn: as far from that of this one.
    pub(super) fn port_of(&self, internal: u16) -> u16 {
        let ahead = internal.wrapping_sub(self.internal.0);
        let all = EPHEMERAL.end - EPHEMERAL.start;
        if EPHEMERAL.contains(&self.ports.0) {
            EPHEMERAL.start + (self.ports.0 - EPHEMERAL.start + ahead % all) % all
        } else {
            EPHEMERAL.start + ahead % all
        }
    }

    /// The key of what the peer sends.
    pub(super) fn incoming(&self) -> FlowKey {
        FlowKey {
            source: IpAddr::V4(Ipv4Addr::from(self.addresses.destination)),
            destination: IpAddr::V4(Ipv4Addr::from(self.addresses.source)),
            protocol: protocol::TCP,
            source_port: self.ports.1,
            destination_port: self.ports.0,
        }
    }

    /// Gives a segment of the peer the ports that the endpoint knows, and its payload the place in
    /// the stream of the connection; `None` if it has none.
    pub(super) fn place(&mut self, segment: &mut Segment) -> Option<()> {
        (segment.destination_port, segment.source_port) = self.internal;
        self.stream.place(segment)
    }
}

/// Whether a SYN asks for a further subflow.
pub(super) fn is_join(segment: &Segment) -> bool {
    segment.mptcp.iter().any(|option| matches!(option, MptcpOption::JoinSyn { .. }))
}
