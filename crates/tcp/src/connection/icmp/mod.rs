//! ICMP errors: which of them are believed, and what they do to a connection.
//!
//! # Source
//! RFC 1122 section 4.2.3.9, RFC 5461, RFC 5927, RFC 6069, RFC 6633. Linux 6.1 `tcp_v4_err`,
//! `tcp_req_err`, `tcp_ld_RTO_revert` (`net/ipv4/tcp_ipv4.c`), `icmp_err_convert` and
//! `icmp_unreach` (`icmp.c`), `tcp_v6_err` (`net/ipv6/tcp_ipv6.c`), `icmpv6_err_convert`
//! (`icmp.c`). FreeBSD 14 `tcp_ctlinput_with_port`, `tcp_notify`, `tcp_drop_syn_sent`
//! (`tcp_subr.c`), `icmp_errmap` (`ip_icmp.c`), `icmp6_errmap` (`icmp6.c`), `syncache_unreach`
//! (`tcp_syncache.c`).
//!
//! # Departures
//! - Redirects are the host's affair and change nothing here.
//! - What was remembered is forgotten once the peer is heard; FreeBSD waits for the next RTT
//!   sample, which is the same ACK unless it answers a retransmission.
//! - A socket of Linux is always free to take an error in; a call that runs there puts it off.

use ackclock_units::Time;

use crate::{Endpoint, Error, IcmpRule, State};

mod message;
pub(super) mod soft;

pub use message::IcmpError;

use message::{Meaning, v4, v6};

impl Endpoint {
    /// The route to the peer has another MTU from now on. Nothing that was sent is declared lost.
    pub fn set_path_mtu(&mut self, mtu: u32) {
        self.sender.burst.end();
        self.sender.path.reroute(mtu);
        self.review_deadlines();
        if !self.state.is_unopened() {
            self.sender.sync_mss();
        }
    }

    /// Takes in an ICMP error that quotes a segment of this connection. Call
    /// [`Endpoint::transmit`] afterwards.
    #[cold]
    pub fn icmp(&mut self, now: Time, error: &IcmpError) {
        self.sender.burst.end();
        self.heed_icmp(now, error);
        self.review_deadlines();
    }

    fn heed_icmp(&mut self, now: Time, error: &IcmpError) {
        if matches!(self.state, State::Closed | State::Listen | State::TimeWait) {
            return;
        }
        let rules = &self.config.path;
        let (rule, meaning) = (rules.icmp, error.meaning(rules.icmp, rules.may_reset));
        let Some(seq) = self.quoted(error, rule) else { return };
        match meaning {
            Meaning::Nothing => {}
            // A child that its SYN has opened is a socket already in Linux.
            _ if self.state == State::SynReceived
                && self.socket.is_passive()
                && !(rule == IcmpRule::Linux && self.opening.is_early()) =>
            {
                self.icmp_half_open(rule, error, meaning);
            }
            Meaning::TooBig => {
                if self.sender.packet_too_big(now, self.state, error) {
                    self.handshake.begin();
                }
            }
            Meaning::Error(reason, ends) => {
                let reverts = error.is_unreachable() && self.config.path.revert_backoff;
                if reverts && self.sender.revert_backoff(now, seq) {
                    self.retransmit_due(now);
                }
                self.icmp_error(now, rule, reason, ends);
            }
        }
    }

    /// RFC 5927 section 4.1: where the segment began that a message quotes, if it can be in the
    /// network. Linux lets SND.NXT count as well, and the answer to a SYN with data until the
    /// handshake is over.
    fn quoted(&self, error: &IcmpError, rule: IcmpRule) -> Option<u64> {
        let (una, nxt) = (self.sender.sequence.una(), self.sender.sequence.nxt());
        let una = if rule == IcmpRule::Linux && self.opening.is_early() { 0 } else { una };
        let seq = self.sender.sequence.lift(error.sequence)?;
        let end = if rule == IcmpRule::Linux && nxt > 0 { nxt + 1 } else { nxt };
        (una..end).contains(&seq).then_some(seq)
    }

    /// A connection that a listening socket has not opened yet: `tcp_req_err`, `syncache_unreach`.
    fn icmp_half_open(&mut self, rule: IcmpRule, error: &IcmpError, meaning: Meaning) {
        let forgets = match rule {
            IcmpRule::Rfc => matches!(meaning, Meaning::Error(_, true)),
            // The packet too big is none of these, and neither is a segment that is not the SYN.
            IcmpRule::Linux if error.sequence != self.sender.sequence.isn() => false,
            IcmpRule::Linux if error.v6 => {
                // The fatal ones of icmpv6_err_convert.
                error.kind == v6::PARAMETER_PROBLEM || error.kind == v6::UNREACHABLE && !matches!(error.code, 0 | 2 | 3)
            }
            IcmpRule::Linux => {
                matches!(error.kind, v4::PARAMETER_PROBLEM | v4::TIME_EXCEEDED) || error.is_unreachable()
            }
            // The second error, after three retransmissions.
            IcmpRule::FreeBsd => self.soft_errors.has_any() && self.sender.rtt.timeouts() >= 3,
        };
        if forgets {
            self.close_now(None);
        } else if rule == IcmpRule::FreeBsd {
            self.soft_errors.note(Error::HostUnreachable, Time::NEVER);
        }
    }

    fn icmp_error(&mut self, now: Time, rule: IcmpRule, reason: Error, ends: bool) {
        let opening = self.state.is_opening() && !self.opening.is_accepted();
        let ends = match rule {
            IcmpRule::Rfc | IcmpRule::Linux => opening && ends,
            // tcp_drop_syn_sent does nothing in other states, tcp_notify gives up at the second
            // error.
            IcmpRule::FreeBsd if ends && self.state != State::SynSent => return,
            IcmpRule::FreeBsd => ends || opening && self.sender.rtt.timeouts() > 3 && self.soft_errors.has_any(),
        };
        if ends {
            self.close_now(Some(reason));
        } else if self.soft_errors.are_reported_at_once() && rule == IcmpRule::Linux {
            self.socket.report(reason);
        } else if rule != IcmpRule::FreeBsd || self.state != State::Established || reason != Error::HostUnreachable {
            self.soft_errors.note(reason, now);
        }
    }

    /// The result of Linux's SO_ERROR while the connection has not failed: the last error that did
    /// not end it, once.
    pub fn take_soft_error(&mut self) -> Option<Error> {
        self.soft_errors.take(self.liveness.heard_at())
    }
}
