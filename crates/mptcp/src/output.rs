//! Output: the segments of subflows, and the options that the connection adds.

use ackclock_packet::{Capable, DataNumber, Dss, Flags, Mapping, MptcpOption, MptcpOptions, Segment, options_len};
use ackclock_units::{Ecn, Time};

use crate::connection::{Connection, Mode};
use crate::input::reason;
use crate::keys;
use crate::subflow::Stage;

/// Retransmitted SYNs that request MPTCP before one requests plain TCP (RFC 8684 section 3.7; Linux
/// `net.mptcp.syn_retrans_before_tcp_fallback`, since 6.15).
const SYN_RETRANSMISSIONS: u64 = 2;
/// The most bytes of options in a header.
const MAX_OPTIONS: u32 = 40;

impl Connection {
    /// Writes the next segment to `out`, for the path [`Connection::last_path`], and returns the
    /// ECN codepoint of its IP header; `None` if there is nothing to send now.
    pub fn transmit(&mut self, now: Time, out: &mut Segment) -> Option<Ecn> {
        if let Some((path, reply)) = self.replies.pop_front() {
            (*out, self.last) = (reply, (path, None));
            return Some(Ecn::NotEct);
        }
        for index in 0..self.subflows.len() {
            let subflow = &mut self.subflows[index];
            if let Some(ecn) = subflow.endpoint.transmit(now, out) {
                self.last = (subflow.path, Some(index));
                self.add_options(index, out);
                return Some(ecn);
            }
        }
        None
    }

    fn add_options(&mut self, index: usize, out: &mut Segment) {
        out.mptcp.clear();
        if self.mode == Mode::Plain {
            return;
        }
        let is_syn = out.flags.contains(Flags::SYN);
        if is_syn {
            self.add_to_syn(index, out);
        } else if out.flags.contains(Flags::RST) {
            self.add_to_reset(index, out);
        } else if self.subflows[index].stage == Stage::Joining {
            // It answers an unrelated segment.
        } else if let Stage::Proving { .. } | Stage::Unproven = self.subflows[index].stage {
            self.add_proof(index, out);
        } else {
            self.add_signal(index, out);
        }
        let room = MAX_OPTIONS.saturating_sub(options_len(&Segment { sack: Default::default(), ..*out }) + 4) / 8;
        out.sack.truncate(room as usize);
    }

    /// Both keys, ours first; `None` until the peer's is known.
    pub(crate) fn keys(&self) -> Option<[u64; 2]> {
        Some([self.key, self.peer_key?])
    }

    fn capable(&self) -> Capable {
        Capable { version: 1, hmac_sha256: true, ..Capable::default() }
    }

    fn add_to_syn(&mut self, index: usize, out: &mut Segment) {
        let answers = out.flags.contains(Flags::ACK);
        let subflow = &self.subflows[index];
        let option = match (subflow.stage, answers) {
            (Stage::Opening, false) => {
                if subflow.endpoint.sender().stats().timeouts > SYN_RETRANSMISSIONS {
                    self.fall_back();
                    return;
                }
                MptcpOption::Capable(self.capable())
            }
            (Stage::Opening, true) => {
                if !self.is_multipath() {
                    return;
                }
                MptcpOption::Capable(Capable { sender_key: Some(self.key), ..self.capable() })
            }
            (Stage::Joining, _) => {
                let Some(peer_key) = self.peer_key else { return };
                MptcpOption::JoinSyn {
                    backup: subflow.backup,
                    address_id: subflow.address_ids[0],
                    token: keys::token(peer_key),
                    nonce: subflow.nonces[0],
                }
            }
            (Stage::Unproven, _) => {
                let Some(keys) = self.keys() else { return };
                MptcpOption::JoinSynAck {
                    backup: subflow.backup,
                    address_id: subflow.address_ids[0],
                    hmac: keys::short_join_hmac(keys, subflow.nonces),
                    nonce: subflow.nonces[0],
                }
            }
            (Stage::Proving { .. } | Stage::Open | Stage::Closed, _) => return,
        };
        out.mptcp.push(&option);
    }

    fn add_to_reset(&mut self, index: usize, out: &mut Segment) {
        let option = match (self.aborted, self.peer_key, self.subflows[index].reset_reason) {
            (true, Some(key), _) => MptcpOption::FastClose { key },
            (_, _, Some(reason)) => {
                let transient = reason == reason::UNSPECIFIED && self.error.is_none();
                MptcpOption::Reset { transient, reason }
            }
            _ => return,
        };
        out.mptcp.push(&option);
    }

    /// Adds the option of the ACK that completes the handshake of a further subflow.
    fn add_proof(&mut self, index: usize, out: &mut Segment) {
        let subflow = &self.subflows[index];
        if let (Stage::Proving { .. }, Some(keys)) = (subflow.stage, self.keys()) {
            out.mptcp.push(&MptcpOption::JoinAck { hmac: keys::join_hmac(keys, subflow.nonces) });
        }
    }

    /// Adds the options of a segment of an open subflow.
    fn add_signal(&mut self, index: usize, out: &mut Segment) {
        let at = out.payload.offset;
        let has_data = out.payload.len > 0;
        let confirmed = matches!(self.mode, Mode::Multipath { confirmed: true });
        let subflow = &self.subflows[index];
        let data = if has_data { subflow.maps.data(at..at + u64::from(out.payload.len)) } else { None };
        if let Some(data) = &data {
            out.payload.offset = data.start;
        }
        let is_first = index == 0 && subflow.endpoint.sender().sequence().is_first(out.seq);
        let ends = self.sending.closed && self.sending.next == self.sending.written && !self.sending.fin_acked;
        // DATA_FIN goes first, unless the peer may still lack the keys: then the two alternate.
        let fin_first = ends && !has_data && self.sending.fin_sent && self.sending.expiries.is_multiple_of(2);
        if self.is_client && !confirmed && is_first && !fin_first {
            // The third packet, and the first one with data (RFC 8684 section 3.1).
            let mut capable = self.capable();
            (capable.sender_key, capable.receiver_key) = (Some(self.key), self.peer_key);
            capable.data_len = has_data.then_some(out.payload.len as u16);
            out.mptcp.push(&MptcpOption::Capable(capable));
            return;
        }
        let waits = !has_data && !subflow.waiting.is_empty();
        let fin_here = data.as_ref().is_some_and(|data| data.end == self.sending.written);
        let number = |offset: u64| DataNumber::Long(self.sending.initial.wrapping_add(1 + offset));
        let mapping = match data {
            Some(data) => Some(Mapping {
                sequence: number(data.start),
                subflow_sequence: (at + 1) as u32,
                len: out.payload.len as u16 + u16::from(ends && fin_here),
                checksum: None,
            }),
            // DATA_FIN without data.
            None if ends && !has_data && !waits => {
                Some(Mapping { sequence: number(self.sending.written), subflow_sequence: 0, len: 1, checksum: None })
            }
            None => None,
        };
        let fin = mapping.is_some() && ends && (fin_here || !has_data);
        let number =
            |number| if self.receiving.is_long { DataNumber::Long(number) } else { DataNumber::Short(number as u32) };
        let ack = self.peer_key.is_some().then(|| number(self.data_ack()));
        out.mptcp.push(&MptcpOption::Dss(Dss { ack, mapping, fin }));
        if waits {
            self.add_waiting(index, out);
        } else if !subflow.waiting.is_empty() {
            // Only pure ACKs carry waiting options: one follows.
            self.subflows[index].endpoint.acknowledge_now();
        }
        self.share_window(index, out);
    }

    /// The next expected data sequence number.
    pub(crate) fn data_ack(&self) -> u64 {
        let fin = u64::from(self.receiving.fin == Some(self.receiving.next));
        self.receiving.initial.wrapping_add(1 + self.receiving.next + fin)
    }

    /// Adds the next option that waited for a pure ACK.
    fn add_waiting(&mut self, index: usize, out: &mut Segment) {
        let subflow = &mut self.subflows[index];
        let Some(option) = subflow.waiting.pop_front() else { return };
        let others = Segment { sack: Default::default(), mptcp: MptcpOptions::default(), ..*out };
        let mut both = Segment { mptcp: out.mptcp, ..others };
        let fits = if let MptcpOption::AddAddress(_) = option {
            // Linux puts it before DSS; nothing depends on the order.
            both.mptcp.clear();
            both.mptcp.push(&option) && out.mptcp.iter().all(|dss| both.mptcp.push(&dss))
        } else {
            both.mptcp.push(&option)
        };
        // An option that does not fit beside DSS replaces it: another segment will carry DSS.
        if !fits || options_len(&both) == options_len(&others) {
            both.mptcp.clear();
            both.mptcp.push(&option);
        }
        out.mptcp = both.mptcp;
        if !subflow.waiting.is_empty() {
            subflow.endpoint.acknowledge_now();
        }
    }

    /// Sets the window of a subflow's segment to that of the connection: it counts from the data
    /// acknowledgment, and its right edge never moves left, whichever subflow advertises it (RFC
    /// 8684 section 3.3.4).
    fn share_window(&mut self, index: usize, out: &mut Segment) {
        let shift = self.subflows[index].endpoint.receiver().shift();
        let unread = self.unread();
        let own = (u64::from(out.window) << shift).saturating_sub(unread);
        let receiving = &mut self.receiving;
        let told = receiving.edge.saturating_sub(receiving.next);
        let window = own.max(told).div_ceil(1 << shift).min(u16::MAX.into());
        receiving.edge = receiving.edge.max(receiving.next + (window << shift));
        out.window = window as u16;
    }
}
