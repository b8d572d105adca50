//! Further subflows: MP_JOIN at both ends, and the beginning and end of a subflow (RFC 8684
//! sections 3.2 and 3.6).

use ackclock_packet::{Flags, MptcpOption, Segment};
use ackclock_tcp::{Ports, Shutdown, State};
use ackclock_units::{Span, Time};

use crate::config::MAX_SUBFLOWS;
use crate::connection::is_synchronized;
use crate::connection::{Connection, Mode};
use crate::input::reason;
use crate::keys;
use crate::subflow::Stage;

impl Connection {
    /// Opens a subflow on a path, as the client, unless there is one.
    pub(crate) fn join(&mut self, path: usize) {
        let is_there = self.subflows.iter().any(|subflow| subflow.path == path && subflow.stage != Stage::Closed);
        let unusable = self.removed.contains(&path) || self.is_denied(path);
        if is_there || unusable || self.aborted || self.sending.fin_acked || self.peer_key.is_none() {
            return;
        }
        let local = self.ports.local.wrapping_add(self.opened);
        let index = self.open(path, Ports { local, remote: self.ports.remote }, Stage::Joining);
        let nonce = self.random.bits() as u32;
        let subflow = &mut self.subflows[index];
        subflow.nonces[0] = nonce;
        subflow.endpoint.connect();
    }

    /// Returns `true` if there is no such path, or the peer refuses further subflows to its remote
    /// address.
    fn is_denied(&self, path: usize) -> bool {
        let Some(wanted) = self.config.paths.get(path) else { return true };
        self.no_join && wanted.remote == self.config.paths[0].remote
    }

    /// Accepts the SYN of a subflow for this connection; returns the subflow's index, with its
    /// endpoint in LISTEN.
    pub(crate) fn admit(&mut self, path: usize, segment: &Segment) -> Option<usize> {
        let is_syn = segment.flags.contains(Flags::SYN) && !segment.flags.contains(Flags::ACK);
        let confirmed = self.mode == Mode::Multipath { confirmed: true };
        let live = self.subflows.iter().filter(|subflow| subflow.stage != Stage::Closed).count();
        let is_path = path < self.config.paths.len() && !self.removed.contains(&path);
        if !is_syn || !confirmed || self.aborted || live >= MAX_SUBFLOWS || !is_path {
            return None;
        }
        let (backup, address_id, nonce) = segment.mptcp.iter().find_map(|option| match option {
            MptcpOption::JoinSyn { backup, address_id, token, nonce } if token == keys::token(self.key) => {
                Some((backup, address_id, nonce))
            }
            _ => None,
        })?;
        let ports = Ports { local: segment.destination_port, remote: segment.source_port };
        let index = self.open(path, ports, Stage::Unproven);
        let own = self.random.bits() as u32;
        let subflow = &mut self.subflows[index];
        subflow.nonces = [own, nonce];
        subflow.address_ids[1] = address_id;
        subflow.backup |= backup;
        subflow.endpoint.listen();
        Some(index)
    }

    /// Handles the SYN/ACK of a subflow that we open.
    pub(crate) fn accept_join(&mut self, index: usize, segment: &Segment) -> bool {
        if !segment.flags.contains(Flags::SYN | Flags::ACK) {
            return true;
        }
        let answer = segment.mptcp.iter().find_map(|option| match option {
            MptcpOption::JoinSynAck { backup, address_id, hmac, nonce } => Some((backup, address_id, hmac, nonce)),
            _ => None,
        });
        let subflow = &mut self.subflows[index];
        if let (Some((backup, address_id, hmac, nonce)), Some(peer_key)) = (answer, self.peer_key)
            && hmac == keys::short_join_hmac([peer_key, self.key], [nonce, subflow.nonces[0]])
        {
            subflow.nonces[1] = nonce;
            subflow.address_ids[1] = address_id;
            subflow.backup |= backup;
            return true;
        }
        // The sender does not know the keys, or options are removed (RFC 8684 section 3.7).
        subflow.endpoint.abort();
        subflow.stage = Stage::Closed;
        let path = subflow.path;
        self.refuse(path, segment, Some(reason::MPTCP_SPECIFIC));
        false
    }

    /// Handles the ACK that completes the handshake of a subflow that the peer opens.
    pub(crate) fn accept_proof(&mut self, index: usize, segment: &Segment) -> bool {
        let Some(keys) = self.keys() else { return false };
        let [own, peer] = self.subflows[index].nonces;
        let expected = keys::join_hmac([keys[1], keys[0]], [peer, own]);
        let is_proven = segment.mptcp.iter().any(|option| option == MptcpOption::JoinAck { hmac: expected });
        if !is_proven {
            // The sender does not know the keys, or options are removed: no data precedes the
            // answer to the proof (RFC 8684 sections 3.2 and 3.7).
            let subflow = &mut self.subflows[index];
            subflow.reset_reason = Some(reason::MPTCP_SPECIFIC);
            subflow.endpoint.abort();
            subflow.stage = Stage::Closed;
        }
        is_proven
    }

    /// Handles the opening of a subflow's endpoint.
    pub(crate) fn opened_subflow(&mut self, now: Time, index: usize) {
        let subflow = &mut self.subflows[index];
        match subflow.stage {
            Stage::Opening => {
                subflow.stage = Stage::Open;
                if self.mode == Mode::Opening {
                    self.fall_back();
                } else if self.mode == (Mode::Multipath { confirmed: true }) {
                    self.confirmed(now);
                }
            }
            Stage::Joining => {
                self.joined = true;
                let wait = subflow.endpoint.sender().rto();
                subflow.stage = Stage::Proving { again_at: now + wait, wait, times: 0 };
                subflow.endpoint.acknowledge_now();
            }
            Stage::Unproven => {
                self.joined = true;
                subflow.stage = Stage::Open;
                // The fourth packet of the handshake.
                subflow.endpoint.acknowledge_now();
            }
            Stage::Proving { .. } | Stage::Open | Stage::Closed => {}
        }
    }

    /// Retransmits the proof of a subflow, which may be lost. The subflow is given up after as many
    /// attempts as a SYN has.
    pub(crate) fn prove_again(&mut self, now: Time) {
        for index in 0..self.subflows.len() {
            let subflow = &mut self.subflows[index];
            let Stage::Proving { again_at, wait, times } = subflow.stage else { continue };
            if again_at > now {
                continue;
            }
            if times >= self.tcp.states.syn_retries {
                self.reset_subflow(now, index, reason::UNSPECIFIED);
                continue;
            }
            let wait = Span::from_nanos(wait.as_nanos().saturating_mul(2));
            subflow.stage = Stage::Proving { again_at: now + wait, wait, times: times + 1 };
            subflow.endpoint.acknowledge_now();
        }
    }

    /// Handles the closing of a subflow's endpoint, if it has closed.
    pub(crate) fn note_end(&mut self, now: Time, index: usize) {
        let subflow = &mut self.subflows[index];
        if subflow.stage == Stage::Closed {
            return;
        }
        if subflow.endpoint.state() == State::CloseWait && self.mode != Mode::Plain {
            let over = self.receiving.fin == Some(self.receiving.next);
            if !over && !subflow.closing {
                subflow.closing = true;
                // The peer has closed it: data that it has not acknowledged is sent on others.
                subflow.endpoint.shutdown(Shutdown::Write);
                self.give_up_on(now, index);
            }
            return;
        }
        let has_ended = subflow.endpoint.state() == State::Closed && subflow.endpoint.sender().sequence().nxt() > 0;
        if !has_ended {
            return;
        }
        if self.mode == Mode::Plain || self.mode == Mode::Opening {
            self.error = self.error.or(subflow.endpoint.error());
            subflow.stage = Stage::Closed;
            return;
        }
        let error = subflow.endpoint.error();
        subflow.stage = Stage::Closed;
        self.give_up_on(now, index);
        let is_last = self.subflows.iter().all(|other| other.stage == Stage::Closed);
        let is_done = self.sending.fin_acked && self.peer_finished();
        if is_last && !is_done && error.is_some() {
            self.error = self.error.or(error);
        }
    }

    /// Schedules a subflow's data that the peer's connection has not acknowledged for the others.
    pub(crate) fn give_up_on(&mut self, now: Time, index: usize) {
        let una = self.sending.una;
        for map in self.subflows[index].maps.iter() {
            self.sending.reinject.insert(map.data.max(una)..map.data_end().max(una));
        }
        self.start_timer(now);
    }

    /// Closes the subflows, once everything is acknowledged and the peer knows.
    pub(crate) fn close_subflows(&mut self) {
        for subflow in &mut self.subflows {
            if is_synchronized(subflow.endpoint.state()) {
                subflow.endpoint.shutdown(Shutdown::Write);
            }
        }
    }
}
