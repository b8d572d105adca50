//! SYNs to a local endpoint that has had a connection.
//!
//! A flow is one connection. A connection without data (a port scan, a client that gave up, a
//! reset) does not count: the endpoint keeps listening. This is decided where the SYN arrives,
//! since the packet that ends the previous connection may be just ahead of it; until then the SYN
//! is a packet of no flow.

use ackclock_packet::{Flags, FlowKey, codec};
use ackclock_sim::{Inbound, Outbound};

use super::Engine;
use crate::router::{Header, protocol};

impl Engine {
    /// Offers a packet of no connection to the endpoints of the local host that it has reached;
    /// `true` if it opens a connection.
    pub(super) fn listens_on(&mut self, packet: &Outbound) -> bool {
        let Some(token) = packet.token.filter(|_| !packet.packet.class.is_corrupted()) else { return false };
        let bytes = &self.buffers.of_packet(token)[..packet.packet.wire_len as usize];
        let Ok(header) = Header::read(bytes) else { return false };
        if header.protocol != protocol::TCP || header.fragment {
            return false;
        }
        let (Some(key), Ok(parsed)) = (FlowKey::from_ip_packet(bytes), codec::parse(bytes)) else { return false };
        let mut segment = parsed.segment;
        let is_opening = segment.flags.contains(Flags::SYN)
            && [Flags::ACK, Flags::RST, Flags::FIN].iter().all(|&flag| !segment.flags.contains(flag));
        let Some(from) = self.node_of(header.source).filter(|_| is_opening) else { return false };
        let between = [from, packet.node];
        let world = &self.world;
        let Some((end, subflow)) = self.connections.reopen(between, &key, |flow| world.listens_on(flow)) else {
            return false;
        };
        self.connections.place(end.flow(), subflow, &mut segment);
        let inbound = Inbound {
            from,
            to: packet.node,
            end: Some(end),
            path: 0,
            segment: Some(&segment),
            token: None,
            wire_len: packet.packet.wire_len,
            ecn: packet.packet.ecn,
            class: packet.packet.class,
            flow_hash: packet.packet.flow_hash,
        };
        self.world.accept_anew(packet.at, inbound)
    }
}
