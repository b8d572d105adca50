//! ICMP errors: which of them are believed, and what they do to a connection.
//!
//! # Source
//! RFC 1122 section 4.2.3.9, RFC 5461, RFC 5927, RFC 6069, RFC 6633. Linux 6.1 `tcp_v4_err`, `tcp_req_err`, `tcp_ld_RTO_revert`
//! (`net/ipv4/tcp_ipv4.c`), `icmp_err_convert` and `icmp_unreach` (`icmp.c`), `tcp_v6_err` (`net/ipv6/tcp_ipv6.c`),
//! `icmpv6_err_convert` (`icmp.c`). FreeBSD 14 `tcp_ctlinput_with_port`, `tcp_notify`, `tcp_drop_syn_sent` (`tcp_subr.c`),
//! `icmp_errmap` (`ip_icmp.c`), `icmp6_errmap` (`icmp6.c`), `syncache_unreach` (`tcp_syncache.c`).
//!
//! # Departures
//! - Redirects are the host's affair and change nothing here.
//! - What was remembered is forgotten once the peer is heard; FreeBSD waits for the next RTT sample, which is the same ACK
//!   unless it answers a retransmission.
//! - A socket of Linux is always free to take an error in; a call that runs there puts it off.

use ackclock_units::Time;

use crate::seq::lift;
use crate::{Endpoint, Error, IcmpRule, State};

/// An ICMP error about a segment that was sent, as it stands in the message.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct IcmpError {
    /// ICMPv6 (RFC 4443) instead of ICMP (RFC 792).
    pub v6: bool,
    /// Its type.
    pub kind: u8,
    /// Its code.
    pub code: u8,
    /// The MTU of the next hop, where the message has one; 0 if it tells none.
    pub mtu: u32,
    /// Sequence number of the segment that it quotes.
    pub sequence: u32,
    /// Total length of the packet that it quotes, bytes.
    pub length: u32,
}

/// Types of ICMP.
mod v4 {
    pub(super) const UNREACHABLE: u8 = 3;
    pub(super) const TIME_EXCEEDED: u8 = 11;
    pub(super) const PARAMETER_PROBLEM: u8 = 12;
    pub(super) const FRAGMENTATION_NEEDED: u8 = 4;
}

/// Types of ICMPv6.
mod v6 {
    pub(super) const UNREACHABLE: u8 = 1;
    pub(super) const PACKET_TOO_BIG: u8 = 2;
    pub(super) const TIME_EXCEEDED: u8 = 3;
    pub(super) const PARAMETER_PROBLEM: u8 = 4;
}

/// What a message means to a connection.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Meaning {
    /// Nothing.
    Nothing,
    /// The packet was too big.
    TooBig,
    /// An error, and whether it ends a connection that is being opened.
    Error(Error, bool),
}

impl IcmpError {
    /// No route leads to the peer, for now (RFC 6069 section 3): net or host unreachable, no route.
    fn is_unreachable(&self) -> bool {
        if self.v6 {
            self.kind == v6::UNREACHABLE && self.code == 0
        } else {
            self.kind == v4::UNREACHABLE && self.code <= 1
        }
    }

    fn meaning(&self, rule: IcmpRule, may_reset: bool) -> Meaning {
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
            // RFC 4443 sections 3.1 and 3.4: port unreachable and an unknown next header; RFC 5461 section 2.2 adds that
            // communication is prohibited.
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

impl Endpoint {
    /// Takes in an ICMP error that quotes a segment of this connection. Then [`Endpoint::transmit`] is to be asked.
    #[cold]
    pub fn icmp(&mut self, now: Time, error: &IcmpError) {
        if matches!(self.state, State::Closed | State::Listen | State::TimeWait) {
            return;
        }
        let rules = &self.config.path;
        let (rule, meaning) = (rules.icmp, error.meaning(rules.icmp, rules.may_reset));
        let Some(seq) = self.quoted(error, rule) else { return };
        match meaning {
            Meaning::Nothing => {}
            _ if self.state == State::SynReceived && self.socket.passive => self.icmp_half_open(rule, error, meaning),
            Meaning::TooBig => self.packet_too_big(now, error),
            Meaning::Error(reason, ends) => {
                if error.is_unreachable() && self.config.path.revert_backoff {
                    self.revert_backoff(now, seq);
                }
                self.icmp_error(now, rule, reason, ends);
            }
        }
    }

    /// RFC 5927 section 4.1: where the segment began that a message quotes, if it can be in the network. Linux lets SND.NXT
    /// count as well.
    fn quoted(&self, error: &IcmpError, rule: IcmpRule) -> Option<u64> {
        let (una, nxt) = (self.send.una, self.send.nxt);
        let seq = lift(error.sequence, self.send.isn, una)?;
        let end = if rule == IcmpRule::Linux && nxt > 0 { nxt + 1 } else { nxt };
        (una..end).contains(&seq).then_some(seq)
    }

    /// A connection that a listening socket has not opened yet: `tcp_req_err`, `syncache_unreach`.
    fn icmp_half_open(&mut self, rule: IcmpRule, error: &IcmpError, meaning: Meaning) {
        let forgets = match rule {
            IcmpRule::Rfc => matches!(meaning, Meaning::Error(_, true)),
            // The packet too big is none of these, and neither is a segment that is not the SYN.
            IcmpRule::Linux if error.sequence != self.send.isn => false,
            IcmpRule::Linux if error.v6 => {
                // The fatal ones of icmpv6_err_convert.
                error.kind == v6::PARAMETER_PROBLEM || error.kind == v6::UNREACHABLE && !matches!(error.code, 0 | 2 | 3)
            }
            IcmpRule::Linux => {
                matches!(error.kind, v4::PARAMETER_PROBLEM | v4::TIME_EXCEEDED) || error.is_unreachable()
            }
            // The second error, after three retransmissions.
            IcmpRule::FreeBsd => self.path.soft.is_some() && self.rtt.timeouts() >= 3,
        };
        if forgets {
            self.close_now(None);
        } else if rule == IcmpRule::FreeBsd {
            self.path.soft = Some((Error::HostUnreachable, Time::NEVER));
        }
    }

    fn icmp_error(&mut self, now: Time, rule: IcmpRule, reason: Error, ends: bool) {
        let opening = matches!(self.state, State::SynSent | State::SynReceived);
        let ends = match rule {
            IcmpRule::Rfc | IcmpRule::Linux => opening && ends,
            // tcp_drop_syn_sent does nothing in other states, tcp_notify gives up at the second error.
            IcmpRule::FreeBsd if ends && self.state != State::SynSent => return,
            IcmpRule::FreeBsd => ends || opening && self.rtt.timeouts() > 3 && self.path.soft.is_some(),
        };
        if ends {
            self.close_now(Some(reason));
        } else if self.path.report_errors && rule == IcmpRule::Linux {
            self.report(reason);
        } else if rule != IcmpRule::FreeBsd || self.state != State::Established || reason != Error::HostUnreachable {
            self.path.soft = Some((reason, now));
        }
    }

    /// RFC 6069 (`tcp_ld_RTO_revert`): the retransmission that `seq` begins was lost for want of a route, not to congestion, and
    /// the last doubling of the timeout is taken back.
    fn revert_backoff(&mut self, now: Time, seq: u64) {
        if seq != self.send.una || self.rtt.timeouts() == 0 || self.rtt.backoff() == 0 {
            return;
        }
        let Some(sent_at) = self.board.front().map(|front| front.sent_at) else { return };
        self.rtt.revert_backoff();
        let (passed, wait) = (now.since(sent_at), self.rto());
        if passed < wait {
            self.set_timer(now, crate::connection::timers::Pending::Rto, wait - passed);
        } else {
            self.retransmit_due(now);
        }
    }

    /// IP_RECVERR: errors of an open connection are told at once, and not only when it is given up.
    pub fn set_report_errors(&mut self, on: bool) {
        self.path.report_errors = on;
    }

    /// IP_MTU_DISCOVER: whether messages that a packet was too big are believed ([`crate::PathRules::discovery`]).
    pub fn set_path_discovery(&mut self, on: bool) {
        self.config.path.discovery = on;
    }

    /// [`crate::PathRules::may_reset`], which is a setting of the host and may change while a connection is there.
    pub fn set_icmp_may_reset(&mut self, on: bool) {
        self.config.path.may_reset = on;
    }
}
