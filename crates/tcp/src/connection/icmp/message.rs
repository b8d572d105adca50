//! ICMP errors as messages, and what each means to a connection by the rules of a stack.

use crate::{Error, IcmpRule};

/// An ICMP error about a segment that was sent, as it stands in the message.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct IcmpError {
    /// ICMPv6 (RFC 4443) instead of ICMP (RFC 792).
    pub v6: bool,
    /// Its type.
    pub kind: u8,
    /// Its code.
    pub code: u8,
    /// The MTU of the next hop, where the message has one; 0 if it has none.
    pub mtu: u32,
    /// Sequence number of the segment that it quotes.
    pub sequence: u32,
    /// Total length of the packet that it quotes, bytes.
    pub length: u32,
}

/// Types of ICMP.
pub(super) mod v4 {
    pub(in crate::connection::icmp) const UNREACHABLE: u8 = 3;
    pub(in crate::connection::icmp) const TIME_EXCEEDED: u8 = 11;
    pub(in crate::connection::icmp) const PARAMETER_PROBLEM: u8 = 12;
    pub(in crate::connection::icmp) const FRAGMENTATION_NEEDED: u8 = 4;
}

/// Types of ICMPv6.
pub(super) mod v6 {
    pub(in crate::connection::icmp) const UNREACHABLE: u8 = 1;
    pub(in crate::connection::icmp) const PACKET_TOO_BIG: u8 = 2;
    pub(in crate::connection::icmp) const TIME_EXCEEDED: u8 = 3;
    pub(in crate::connection::icmp) const PARAMETER_PROBLEM: u8 = 4;
}

/// The meaning of a message for a connection.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Meaning {
    /// Nothing.
    Nothing,
    /// The packet was too big.
    TooBig,
    /// An error, and whether it ends a connection that is being opened.
    Error(Error, bool),
}

impl IcmpError {
    /// No route leads to the peer, for now (RFC 6069 section 3): net or host unreachable, no route.
    pub(super) fn is_unreachable(&self) -> bool {
        if self.v6 {
            self.kind == v6::UNREACHABLE && self.code == 0
        } else {
            self.kind == v4::UNREACHABLE && self.code <= 1
        }
    }

    pub(super) fn meaning(&self, rule: IcmpRule, may_reset: bool) -> Meaning {
        let too_big = if self.v6 {
            self.kind == v6::PACKET_TOO_BIG
        } else {
            self.kind == v4::UNREACHABLE && self.code == v4::FRAGMENTATION_NEEDED
        };
        if too_big {
            return Meaning::TooBig;
        }
        match (rule, self.v6) {
            (IcmpRule::Rfc, _) => self.by_rfc(),
            (IcmpRule::Linux, false) => self.by_linux(),
            (IcmpRule::Linux, true) => self.by_linux_v6(),
            (IcmpRule::FreeBsd, v6) => self.by_freebsd(v6, may_reset),
        }
    }

    fn by_rfc(&self) -> Meaning {
        if self.v6 {
            // RFC 4443 sections 3.1 and 3.4: port unreachable and an unknown next header; RFC 5461
            // section 2.2 adds that communication is prohibited.
            return match (self.kind, self.code) {
                (v6::UNREACHABLE, 1) => Meaning::Error(Error::Forbidden, true),
                (v6::UNREACHABLE, 4) => Meaning::Error(Error::Refused, true),
                (v6::UNREACHABLE | v6::TIME_EXCEEDED, _) => Meaning::Error(Error::HostUnreachable, false),
                (v6::PARAMETER_PROBLEM, 1) => Meaning::Error(Error::NoProtocol, true),
                (v6::PARAMETER_PROBLEM, _) => Meaning::Error(Error::Protocol, false),
                _ => Meaning::Nothing,
            };
        }
        match (self.kind, self.code) {
            (v4::UNREACHABLE, 2) => Meaning::Error(Error::NoProtocol, true),
            (v4::UNREACHABLE, 3) => Meaning::Error(Error::Refused, true),
            (v4::UNREACHABLE, 0..=15) => Meaning::Error(unreachable_by(self.code), false),
            (v4::TIME_EXCEEDED, _) => Meaning::Error(Error::HostUnreachable, false),
            (v4::PARAMETER_PROBLEM, _) => Meaning::Error(Error::Protocol, false),
            // Source quench among them (RFC 6633 section 4).
            _ => Meaning::Nothing,
        }
    }

    fn by_linux(&self) -> Meaning {
        match (self.kind, self.code) {
            (v4::UNREACHABLE, 0..=15) => Meaning::Error(unreachable_by(self.code), true),
            (v4::TIME_EXCEEDED, code) if code != 1 => Meaning::Error(Error::HostUnreachable, true),
            (v4::PARAMETER_PROBLEM, _) => Meaning::Error(Error::Protocol, true),
            _ => Meaning::Nothing,
        }
    }

    fn by_linux_v6(&self) -> Meaning {
        let error = match (self.kind, self.code) {
            (v6::UNREACHABLE, 0) => Error::NetUnreachable,
            (v6::UNREACHABLE, 1 | 5 | 6) => Error::Forbidden,
            (v6::UNREACHABLE, 2 | 3) | (v6::TIME_EXCEEDED, _) => Error::HostUnreachable,
            (v6::UNREACHABLE, 4) => Error::Refused,
            (v6::UNREACHABLE | v6::PARAMETER_PROBLEM, _) => Error::Protocol,
            _ => return Meaning::Nothing,
        };
        Meaning::Error(error, true)
    }

    fn by_freebsd(&self, v6: bool, may_reset: bool) -> Meaning {
        let (error, ends) = match (v6, self.kind, self.code) {
            (false, v4::UNREACHABLE, 2 | 3 | 9 | 10 | 13) => (Error::Refused, true),
            (false, v4::UNREACHABLE, 0..=15) => (Error::HostUnreachable, false),
            (false, v4::TIME_EXCEEDED, 0) => (Error::HostUnreachable, true),
            (false, v4::PARAMETER_PROBLEM, 0 | 1) => (Error::NoProtocol, false),
            (true, v6::UNREACHABLE, 1 | 4) | (true, v6::PARAMETER_PROBLEM, 1) => (Error::Refused, true),
            (true, v6::UNREACHABLE, 0 | 3) => (Error::HostUnreachable, false),
            (true, v6::TIME_EXCEEDED, 0) => (Error::HostUnreachable, true),
            (true, v6::UNREACHABLE, 2) | (true, v6::PARAMETER_PROBLEM, 0 | 2) => (Error::NoProtocol, false),
            _ => return Meaning::Nothing,
        };
        Meaning::Error(error, ends && may_reset)
    }
}

/// `icmp_err_convert`.
fn unreachable_by(code: u8) -> Error {
    match code {
        0 | 6 | 9 | 11 => Error::NetUnreachable,
        2 => Error::NoProtocol,
        3 => Error::Refused,
        4 => Error::MessageTooLong,
        5 => Error::NotSupported,
        7 => Error::HostDown,
        8 => Error::NoNetwork,
        _ => Error::HostUnreachable,
    }
}
