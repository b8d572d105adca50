//! The entry of a packet to its path: destination, router, and flow.

use ackclock_packet::{Class, Flags, FlowKey, codec, pattern};
use ackclock_sim::{Inbound, RunError};
use ackclock_units::Time;

use super::buffers::HeldBuffer;
use super::{DueOutput, Engine, HostState};
use crate::engine::path_entries::PathEntry;
use crate::router::{ForwardDecision, Fragments, Header, protocol};

/// Bytes of a TCP header without options.
const SHORTEST_TCP: usize = 20;

impl Engine {
    /// Sends a packet of `len` bytes from host `from` on the path to its destination. Returns the
    /// buffer unless a packet keeps it.
    pub(super) fn forward(&mut self, now: Time, from: usize, mut buffer: HeldBuffer, len: usize) -> Option<HeldBuffer> {
        let Ok(header) = Header::read(&self.buffers.bytes(&buffer)[..len]) else {
            self.nodes[from].counts.unroutable += 1;
            return Some(buffer);
        };
        let to = self.destination(from, header.destination);
        self.finish(from, to, &header, &buffer);
        let Some((to, entry)) = to.and_then(|to| self.entries.get([from, to]).map(|entry| (to, entry))) else {
            self.nodes[from].counts.unroutable += 1;
            self.report_no_route(now, from, &header, &buffer);
            return Some(buffer);
        };
        if let Some(router) = &mut entry.router {
            let mut message = self.used.pop().unwrap_or_default();
            let packet = &mut self.buffers.bytes_mut(&mut buffer)[..header.len];
            let verdict = router.forward(now, &header, packet, &mut message);
            let mtu = router.mtu();
            self.send_message(now, from, message);
            match verdict {
                ForwardDecision::Whole => {}
                ForwardDecision::Fragments => {
                    self.forward_pieces(now, [from, to], &header, &buffer, mtu);
                    return Some(buffer);
                }
                ForwardDecision::Discarded(_) => {
                    self.nodes[from].counts.discarded += 1;
                    return Some(buffer);
                }
            }
        }
        self.inject(now, [from, to], &header, buffer)
    }

    /// Completes a packet that the kernel left unfinished, unless only another kernel reads beyond
    /// its headers.
    #[inline]
    fn finish(&mut self, from: usize, to: Option<usize>, header: &Header, buffer: &HeldBuffer) {
        if self.buffers.left(buffer.number()).is_nothing() {
            return;
        }
        if self.keeps_whole || !self.goes_on(from, to, header) {
            self.buffers.make_whole(buffer.number(), header.len);
        }
    }

    /// Returns `true` if a packet reaches another kernel unchanged. Stacks need complete packets.
    fn goes_on(&mut self, from: usize, to: Option<usize>, header: &Header) -> bool {
        to.is_some_and(|to| {
            let entry = self.entries.get([from, to]);
            let passes = |entry: &mut PathEntry| entry.router.as_ref().is_none_or(|router| router.passes(header));
            let HostState { in_process, has_stack, .. } = &self.nodes[to];
            in_process.is_none() && !has_stack && entry.is_some_and(passes)
        })
    }

    /// Returns `true` if only the first `known` bytes are read of the packet of `len` bytes that
    /// host `from` sent and that is in the [`Engine::buffer`]: it reaches another kernel unchanged,
    /// or is dropped silently.
    pub fn passes_unread(&mut self, from: usize, len: usize, known: usize) -> bool {
        let bytes = &self.buffers.spare_mut()[..len];
        let Ok(header) = Header::read(bytes) else { return false };
        let headers = header.payload
            + match (header.later_fragment, header.protocol) {
                (true, _) => 0,
                (false, protocol::TCP) => {
                    let offset = bytes.get(header.payload + 12).map_or(0, |byte| 4 * usize::from(byte >> 4));
                    offset.max(SHORTEST_TCP)
                }
                (false, _) => 8,
            };
        let to = self.destination(from, header.destination);
        headers <= known && (header.destination.is_multicast() || self.goes_on(from, to, &header))
    }

    /// Reports a packet without a path, by the first router on the paths of its host.
    #[cold]
    fn report_no_route(&mut self, now: Time, from: usize, header: &Header, buffer: &HeldBuffer) {
        // RFC 1812 section 4.3.2.7.
        if self.broadcasts.iter().any(|broadcast| header.destination == *broadcast) {
            return;
        }
        let Some(router) = self.entries.first_router(from) else { return };
        let mut message = self.used.pop().unwrap_or_default();
        router.no_route(now, header, &self.buffers.bytes(buffer)[..header.len], &mut message);
        self.send_message(now, from, message);
    }

    /// Returns a router's message directly to the host that sent the packet, if it is behind a
    /// device or has a stack.
    fn send_message(&mut self, now: Time, node: usize, message: Vec<u8>) {
        if message.is_empty() || self.nodes[node].in_process.is_some() {
            self.used.push(message);
        } else {
            self.queue_of(node).push_back(DueOutput::Message { at: now, node, bytes: message });
        }
    }

    /// Fragments a packet that exceeds the next link's MTU.
    #[cold]
    fn forward_pieces(&mut self, now: Time, between: [usize; 2], header: &Header, buffer: &HeldBuffer, mtu: u16) {
        let mut whole = std::mem::take(&mut self.whole);
        whole.clear();
        whole.extend_from_slice(&self.buffers.bytes(buffer)[..header.len]);
        let mut pieces = Fragments::new(header, &whole, mtu);
        loop {
            let mut piece = self.claim();
            let out = self.buffers.bytes_mut(&mut piece);
            let read = pieces.next_into(out).and_then(|len| Header::read(&out[..len]).ok());
            let Some(read) = read else {
                self.buffers.give_back(piece);
                break;
            };
            if let Some(piece) = self.inject(now, between, &read, piece) {
                self.buffers.give_back(piece);
            }
        }
        self.whole = whole;
    }

    /// Injects a packet into its path. Returns the buffer unless the packet keeps it.
    fn inject(&mut self, now: Time, [from, to]: [usize; 2], header: &Header, buffer: HeldBuffer) -> Option<HeldBuffer> {
        let bytes = &self.buffers.bytes(&buffer)[..header.len];
        let Some(key) = FlowKey::from_ip_packet(bytes) else { return Some(buffer) };
        let mut inbound = Inbound {
            from,
            to,
            end: None,
            path: 0,
            segment: None,
            token: Some(buffer.number()),
            wire_len: header.len as u32,
            ecn: header.ecn,
            class: Class::default(),
            flow_hash: 0,
        };
        let (mut known, hash) = self.connections.find(&key);
        inbound.flow_hash = hash;
        let tcp = bytes.get(header.payload..).unwrap_or_default();
        inbound.class = header.class(bytes);
        if header.protocol == protocol::TCP && !header.fragment && tcp.len() >= SHORTEST_TCP {
            if known.is_none() {
                let flags = Flags::from_bits(u16::from_be_bytes([tcp[12], tcp[13]]));
                let read = || codec::parse(bytes).ok().map(|parsed| parsed.segment);
                known = self.connections.open([from, to], &key, flags, read);
            }
        } else {
            known = None;
        }
        inbound.end = known.map(|(end, _)| end);
        let Some((end, subflow)) = known else { return self.send_along(now, inbound, buffer) };
        let Some(ours) = self.connections.ours(end.flow()) else {
            // Between two kernels the receiver verifies the checksum.
            let segment = codec::peek(tcp).ok();
            inbound.end = segment.is_some().then_some(end);
            return self.send_along(now, Inbound { segment: segment.as_ref(), ..inbound }, buffer);
        };
        let check = ours.check;
        match codec::parse(bytes) {
            Ok(parsed) => {
                let mut segment = parsed.segment;
                let placed = self.connections.place(end.flow(), subflow, &mut segment).is_some();
                inbound.path = self.connections.path(end.flow(), subflow);
                if check
                    && placed
                    && self.error.is_none()
                    && let Some(from) = self.world.stream_offset(end.peer(), inbound.path, &segment)
                    && let Some(offset) = pattern::first_mismatch(from, parsed.payload)
                {
                    let flow = self.connections.id(end.flow()).to_owned();
                    self.error = Some(RunError::Integrity { flow, offset });
                }
                self.world.inject(now, Inbound { segment: Some(&segment), token: None, ..inbound });
            }
            Err(codec::ParseError::TcpChecksum) => self.nodes[from].counts.bad_checksums += 1,
            Err(_) => self.nodes[from].counts.discarded += 1,
        }
        Some(buffer)
    }

    /// Injects a packet with its buffer, which is returned if there is no path.
    fn send_along(&mut self, now: Time, inbound: Inbound<'_>, buffer: HeldBuffer) -> Option<HeldBuffer> {
        if !self.world.inject(now, inbound) {
            return Some(buffer);
        }
        buffer.send_along();
        None
    }
}
