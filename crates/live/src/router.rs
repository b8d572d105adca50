//! What a router does to a packet that it forwards: time to live, MTU, and the ICMP messages about
//! them; and a host's answers to packets that do not belong to a connection.
//!
//! Functions of the bytes of one packet. [`Header::read`] checks it once, at its entry; the others
//! rely on that.
//!
//! # Source
//! RFC 1812 sections 5.2 and 5.3, RFC 8200, RFC 4291; the messages are in `icmp`, fragments in
//! `fragment`.
//!
//! # Departures
//! - IPv4 options are carried, not acted on: routes and timestamps are not recorded, and as no
//!   packet is for the router itself, none is routed by its source (RFC 1812 section 5.2.4).
//!   Neither are IPv6 hop-by-hop options (RFC 8200 section 4 leaves that open).
//! - Packets from and to 240.0.0.0/4 are forwarded, and their senders notified of problems, as in
//!   Linux; RFC 1812 section 5.3.7 and RFC 1122 section 3.2.2 refuse it.
//! - IPv6 over links of less than 1280 bytes (RFC 8200 section 5 has none): the message says what
//!   the link takes, and the source need not believe it.

mod fragment;
mod header;
mod icmp;
#[cfg(test)]
mod tests;

use std::net::{IpAddr, Ipv6Addr};

use ackclock_sim::spec::RouterSpec;
use ackclock_units::Time;

pub(crate) use fragment::Fragments;
pub(crate) use header::{Header, mark_ce, protocol, set_checksum};
pub(crate) use icmp::{Problem, Reporter};

/// Why a packet goes no further.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub(crate) enum Discard {
    /// Neither IPv4 nor IPv6.
    Version,
    /// Fewer bytes than a header or than the length that it says, or lengths that contradict each
    /// other.
    Length,
    /// The checksum of the IPv4 header is wrong.
    Checksum,
    /// Addresses that no router forwards from or to: multicast, broadcast, loopback, link-local,
    /// unspecified.
    Scope,
    /// Its last hop was the one before.
    TimeExceeded,
    /// Longer than the next link takes, and not to be fragmented.
    TooBig,
}

/// What happens to a packet.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Forward {
    /// It goes on, as it is now.
    Whole,
    /// It goes on in pieces: [`Fragments`] of the packet as it is now.
    Fragments,
    /// It does not.
    Discarded(Discard),
}

/// A router between two hosts, in one direction: its messages go to one of them.
#[derive(Debug)]
pub(crate) struct Router {
    reporter: Reporter,
    mtu: u16,
}

impl Router {
    /// `mtu` is the most bytes that the host at the other end takes.
    pub(crate) fn new(spec: &RouterSpec, mtu: u16) -> Router {
        let mtu = spec.mtu.map_or(mtu, |own| own.min(mtu)).max(fragment::LEAST_MTU);
        Router { reporter: Reporter::new(Some(spec.address), Some(spec.address6)), mtu }
    }

    /// The most bytes of a packet that it forwards.
    pub(crate) fn mtu(&self) -> u16 {
        self.mtu
    }

    /// Forwards `packet`, whose header is `header`: counts the hop. `message` then holds the ICMP
    /// message that goes back to where the packet came from, and is empty if there is none.
    pub(crate) fn forward(&mut self, now: Time, header: &Header, packet: &mut [u8], message: &mut Vec<u8>) -> Forward {
        message.clear();
        let (reason, problem) = match self.judge(header) {
            Ok(forward) => {
                header::count_hop(packet);
                return forward;
            }
            Err(refused) => refused,
        };
        // The message has the packet as it came (RFC 1812 section 4.3.2.3).
        if let Some(problem) = problem {
            self.reporter.report(now, problem, header, packet, message);
        }
        Forward::Discarded(reason)
    }

    /// Whether a packet goes on as one, and nobody is told anything.
    pub(crate) fn passes(&self, header: &Header) -> bool {
        self.judge(header) == Ok(Forward::Whole)
    }

    /// No path leads to where `packet` goes: writes the ICMP message about it, if there is one, to
    /// `message` (RFC 1812 section 5.2.7.1, RFC 4443 section 3.1).
    pub(crate) fn no_route(&mut self, now: Time, header: &Header, packet: &[u8], message: &mut Vec<u8>) {
        message.clear();
        let problem = scope(header).map_or_else(|problem| problem, |()| Some(Problem::NoRoute));
        if let Some(problem) = problem {
            self.reporter.report(now, problem, header, packet, message);
        }
    }

    /// Whether a packet goes on; if not, why, and what its source is told. The order is that of
    /// Linux for IPv4; of IPv6 it looks at the hops before a link-local source.
    fn judge(&self, header: &Header) -> Result<Forward, (Discard, Option<Problem>)> {
        scope(header).map_err(|problem| (Discard::Scope, problem))?;
        if header.hops <= 1 {
            return Err((Discard::TimeExceeded, Some(Problem::TimeExceeded)));
        }
        match (header.len <= usize::from(self.mtu), header.divisible) {
            (true, _) => Ok(Forward::Whole),
            (false, true) => Ok(Forward::Fragments),
            (false, false) => Err((Discard::TooBig, Some(Problem::TooBig(self.mtu)))),
        }
    }
}

/// Whether addresses mean the same on both sides of a router.
fn scope(header: &Header) -> Result<(), Option<Problem>> {
    match (header.source, header.destination) {
        (IpAddr::V4(source), IpAddr::V4(destination)) => {
            // RFC 1812 section 5.3.7; RFC 3927 section 7.
            let local = source.is_link_local() || destination.is_link_local();
            let one = !destination.is_broadcast() && icmp::is_one_host(destination);
            if local || !one || !icmp::is_one_host(source) { Err(None) } else { Ok(()) }
        }
        (IpAddr::V6(source), IpAddr::V6(destination)) => {
            // RFC 4291 sections 2.5.2, 2.5.3, 2.5.6 and 2.7.
            let none = |address: Ipv6Addr| address.is_unspecified() || address.is_loopback() || address.is_multicast();
            if none(source) || none(destination) || destination.is_unicast_link_local() {
                Err(None)
            } else if source.is_unicast_link_local() {
                Err(Some(Problem::Scope))
            } else {
                Ok(())
            }
        }
        _ => Err(None),
    }
}
