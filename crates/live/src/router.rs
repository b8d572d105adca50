//! A router: hop limit, MTU, and ICMP messages about them; and a host's answers to packets that
//! belong to no connection.
//!
//! All functions work on the bytes of one packet. [`Header::read`] validates it once, at its entry;
//! the others rely on that.
//!
//! # Source
//! RFC 1812 sections 5.2 and 5.3, RFC 8200, RFC 4291; module `icmp` has the messages, `fragment`
//! the fragments.
//!
//! # Departures
//! - IPv4 options are forwarded, but not processed: routes and timestamps are not recorded, and as
//!   no packet is addressed to the router itself, none is source-routed (RFC 1812 section 5.2.4).
//!   Neither are IPv6 hop-by-hop options, which RFC 8200 section 4 permits.
//! - Packets from and to 240.0.0.0/4 are forwarded, and problems are reported to their senders, as
//!   in Linux; RFC 1812 section 5.3.7 and RFC 1122 section 3.2.2 forbid it.
//! - IPv6 over links of less than 1280 bytes, which RFC 8200 section 5 excludes: the message
//!   reports the link's MTU, and the source need not accept it.

mod fragment;
mod header;
mod icmp;
#[cfg(test)]
mod tests;

use std::net::{IpAddr, Ipv6Addr};

use ackclock_sim::spec::RouterSpec;
use ackclock_units::Time;

pub(crate) use fragment::Fragments;
pub(crate) use header::{Discard, Header, dscp, mark_ce, protocol, set_checksum, wash};
pub(crate) use icmp::{IcmpProblem, Reporter};

/// A router's decision about a packet.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum ForwardDecision {
    /// The packet is forwarded as it is now.
    Whole,
    /// [`Fragments`] of the packet, as it is now, are forwarded.
    Fragments,
    /// The packet is discarded.
    Discarded(Discard),
}

/// A router between two hosts, in one direction: it sends its messages to the first of them.
#[derive(Debug)]
pub(crate) struct Router {
    reporter: Reporter,
    mtu: u16,
}

impl Router {
    /// `mtu` is that of the host at the other end, in bytes.
    pub(crate) fn new(spec: &RouterSpec, mtu: u16) -> Router {
        let mtu = spec.mtu.map_or(mtu, |own| own.min(mtu)).max(fragment::LEAST_MTU);
        Router { reporter: Reporter::new(Some(spec.address), Some(spec.address6)), mtu }
    }

    /// The longest packet that it forwards without fragmentation, in bytes.
    pub(crate) fn mtu(&self) -> u16 {
        self.mtu
    }

    /// Forwards `packet`, whose header is `header`, and decrements the hop limit. `message` then
    /// contains the ICMP message to the packet's source, and is empty if there is none.
    pub(crate) fn forward(
        &mut self,
        now: Time,
        header: &Header,
        packet: &mut [u8],
        message: &mut Vec<u8>,
    ) -> ForwardDecision {
        message.clear();
        let (reason, problem) = match self.judge(header) {
            Ok(forward) => {
                header::count_hop(packet);
                return forward;
            }
            Err(refused) => refused,
        };
        // The message quotes the packet as it arrived (RFC 1812 section 4.3.2.3).
        if let Some(problem) = problem {
            self.reporter.report(now, problem, header, packet, message);
        }
        ForwardDecision::Discarded(reason)
    }

    /// Returns `true` if a packet is forwarded whole, without a message.
    pub(crate) fn passes(&self, header: &Header) -> bool {
        self.judge(header) == Ok(ForwardDecision::Whole)
    }

    /// Handles a packet to whose destination no path leads: writes the ICMP message about it, if
    /// there is one, to `message` (RFC 1812 section 5.2.7.1, RFC 4443 section 3.1).
    pub(crate) fn no_route(&mut self, now: Time, header: &Header, packet: &[u8], message: &mut Vec<u8>) {
        message.clear();
        let problem = scope(header).map_or_else(|problem| problem, |()| Some(IcmpProblem::NoRoute));
        if let Some(problem) = problem {
            self.reporter.report(now, problem, header, packet, message);
        }
    }

    /// Decides whether a packet is forwarded; if not, gives the reason and the problem to report.
    /// The order of checks is that of Linux for IPv4. For IPv6 Linux checks the hop limit before a
    /// link-local source.
    fn judge(&self, header: &Header) -> Result<ForwardDecision, (Discard, Option<IcmpProblem>)> {
        scope(header).map_err(|problem| (Discard::Scope, problem))?;
        if header.hops <= 1 {
            return Err((Discard::TimeExceeded, Some(IcmpProblem::TimeExceeded)));
        }
        match (header.len <= usize::from(self.mtu), header.divisible) {
            (true, _) => Ok(ForwardDecision::Whole),
            (false, true) => Ok(ForwardDecision::Fragments),
            (false, false) => Err((Discard::TooBig, Some(IcmpProblem::TooBig(self.mtu)))),
        }
    }
}

/// Checks that the addresses are valid on both sides of a router.
fn scope(header: &Header) -> Result<(), Option<IcmpProblem>> {
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
                Err(Some(IcmpProblem::Scope))
            } else {
                Ok(())
            }
        }
        _ => Err(None),
    }
}
