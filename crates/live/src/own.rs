//! Hosts in this process: what they do with packets that are no segments of a connection of one of our endpoints.
//!
//! An ICMP echo request is answered, a segment for no connection is reset (RFC 9293 section 3.10.7.1), a datagram is answered by
//! port unreachable, other protocols by protocol unreachable (RFC 1122 section 3.2.2.1). They speak IPv4 alone. Fragments are
//! not put together, and ICMP errors change nothing: our endpoints know the MTU of their path and do not discover it. Both are
//! counted.

use ackclock_packet::codec;
use ackclock_sim::spec::NodeSpec;
use ackclock_tcp::reset_for;
use ackclock_units::{Ecn, Time};

use crate::router::{Header, Reporter, protocol};

/// A host in this process.
#[derive(Debug)]
pub(crate) struct OwnHost {
    reporter: Reporter,
    /// The answer in hand.
    message: Vec<u8>,
}

/// What a host does with a packet.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Answer {
    /// It sends a packet of this many bytes back.
    Reply(usize),
    /// The packet asks for nothing.
    Nothing,
    /// It cannot make anything of it.
    Discarded,
}

impl OwnHost {
    pub(crate) fn new(spec: &NodeSpec) -> OwnHost {
        OwnHost { reporter: Reporter::new(spec.ipv4(), None), message: Vec::new() }
    }

    /// Takes in a packet, and writes what it answers to `out`.
    pub(crate) fn answer(&mut self, now: Time, packet: &[u8], out: &mut [u8]) -> Answer {
        let Ok(header) = Header::read(packet) else { return Answer::Discarded };
        if header.protocol == protocol::TCP && !header.fragment {
            let Ok(parsed) = codec::parse(packet) else { return Answer::Discarded };
            let Some(reset) = reset_for(&parsed.segment) else { return Answer::Nothing };
            return match codec::emit(&reset, parsed.addresses.reversed(), Ecn::NotEct, out) {
                Ok(len) => Answer::Reply(len),
                Err(_) => Answer::Nothing,
            };
        }
        if !self.reporter.answer(now, &header, packet, &mut self.message) {
            return Answer::Discarded;
        }
        match out.get_mut(..self.message.len()) {
            Some(out) => {
                out.copy_from_slice(&self.message);
                Answer::Reply(self.message.len())
            }
            None => Answer::Discarded,
        }
    }
}
