//! The handshake of the initial subflow: MP_CAPABLE (RFC 8684 section 3.1).

use ackclock_packet::{Capable, MptcpOption, Segment};
use ackclock_tcp::State;

use crate::connection::{Connection, Mode};
use crate::keys;
use crate::mapping::DataMap;

impl Connection {
    /// Handles the SYN or SYN/ACK of the initial subflow.
    pub(crate) fn accept_capable(&mut self, segment: &Segment) -> bool {
        // A server answers later versions with its own; unknown extensions are never accepted (RFC
        // 8684 section 3.1).
        let is_known = |capable: &Capable| match self.is_client {
            true => capable.version == 1,
            false => capable.version >= 1,
        };
        let offered = capable(segment).filter(|capable| is_known(capable) && is_understood(capable));
        if let Some(capable) = &offered {
            self.no_join = capable.no_join;
        }
        match (offered, self.is_client) {
            (Some(Capable { sender_key: Some(key), receiver_key: None, checksum: false, .. }), true) => {
                self.know_peer(key);
                self.mode = Mode::Multipath { confirmed: false };
            }
            (Some(Capable { sender_key: None, checksum: false, .. }), false) => {
                self.mode = Mode::Multipath { confirmed: false };
            }
            _ => self.fall_back(),
        }
        true
    }

    pub(crate) fn know_peer(&mut self, key: u64) {
        self.peer_key = Some(key);
        self.receiving.initial = keys::initial_sequence(key);
    }

    /// Handles the third packet of the handshake, or the first with data, at the server: both ends
    /// then have both keys.
    pub(crate) fn accept_third(&mut self, segment: &Segment) -> bool {
        if self.is_client || self.mode == Mode::Opening || self.subflows[0].endpoint.state() != State::SynReceived {
            return true;
        }
        // Both ends have agreed on the version.
        match capable(segment).filter(|capable| capable.version == 1 && is_understood(capable)) {
            Some(capable @ Capable { sender_key: Some(key), receiver_key: Some(own), checksum: false, .. })
                if own == self.key =>
            {
                self.know_peer(key);
                self.mode = Mode::Multipath { confirmed: true };
                self.take_capable_data(&capable);
            }
            // The packet with the keys is missing and will be retransmitted.
            _ if segment.mptcp.dss().is_some() => return false,
            _ => self.fall_back(),
        }
        true
    }

    /// Handles the mapping of the first data.
    pub(crate) fn take_capable_data(&mut self, capable: &Capable) {
        // As in Linux, the repeated keys are not compared: both ends have them already.
        let Some(len) = capable.data_len.filter(|&len| len > 0 && self.peer_key.is_some()) else { return };
        // Senders of this option use 64-bit numbers (Linux).
        self.note_number_len(true);
        self.receiving.is_mapped = true;
        let subflow = &mut self.subflows[0];
        if subflow.taken == 0 {
            // A shorter retransmission has a consistent mapping.
            let _ = subflow.incoming.insert(DataMap { at: 0, data: 0, len: len.into() });
        }
    }
}

/// Returns `true` if the option requests only supported features: HMAC-SHA256, and no extension.
fn is_understood(capable: &Capable) -> bool {
    capable.hmac_sha256 && !capable.extensible
}

fn capable(segment: &Segment) -> Option<Capable> {
    segment.mptcp.iter().find_map(|option| if let MptcpOption::Capable(found) = option { Some(found) } else { None })
}
