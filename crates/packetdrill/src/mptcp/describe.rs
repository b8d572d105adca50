//! Options of the wire in the words of a script, for reports.

use std::fmt::Write;

use ackclock_mptcp::keys;
use ackclock_packet::{AddAddress, Capable, DataNumber, Dss, MptcpOption};

use super::encode::decoded;
use super::{MPTCP, Names, Side, Subflow};
use crate::ast::{
    AddressHmac, AddressSpec, ChecksumSpec, Count, DssSpec, HmacSpec, KeySpec, MptcpSpec, NumberSpec, OptionSpec,
    Options, TcpSpec, TokenSpec,
};

/// An MPTCP option as it was sent: its bytes, by no name yet.
pub(crate) fn option_of(bytes: &[u8]) -> OptionSpec {
    let data = bytes.get(2..).unwrap_or_default().to_vec();
    OptionSpec::Other { name: raw(&data), kind: MPTCP, data }
}

/// `gen-30 ...`
fn raw(data: &[u8]) -> String {
    data.iter().fold(format!("gen-{MPTCP} "), |mut text, byte| {
        let _ = write!(text, "{byte:02x}");
        text
    })
}

impl Names {
    /// Gives the MPTCP options of a packet that the host sent the names that the script would.
    pub(crate) fn describe(&self, spec: &mut TcpSpec, subflow: &Subflow) {
        let Options::List(list) = &mut spec.options else { return };
        for option in list {
            if let OptionSpec::Other { name, kind: MPTCP, data } = option
                && let Some(option) = decoded(data)
            {
                *name = self.words_for(&option, data, subflow).to_string();
            }
        }
    }

    fn words_for(&self, option: &MptcpOption, data: &[u8], subflow: &Subflow) -> MptcpSpec {
        match option {
            MptcpOption::Capable(capable) => self.words_for_capable(capable, data),
            MptcpOption::JoinSyn { backup, address_id, token, .. } => {
                let of = self.keys.iter().find(|(_, key)| keys::token(**key) == *token);
                let token = of.map_or(TokenSpec::Number(*token), |(name, _)| TokenSpec::OfKey(name.clone()));
                MptcpSpec::JoinSyn { backup: *backup, address_id: Some(*address_id), token, nonce: None }
            }
            MptcpOption::JoinSynAck { backup, address_id, hmac, nonce } => {
                let right = self.right_hmac(subflow, *nonce).map(|proof| first(&proof));
                MptcpSpec::JoinSynAck {
                    backup: *backup,
                    address_id: Some(*address_id),
                    hmac: if right == Some(*hmac) { HmacSpec::Auto } else { HmacSpec::Number(*hmac) },
                    nonce: None,
                }
            }
            MptcpOption::JoinAck { hmac } => {
                let own = subflow.nonce(Side::Host);
                let right = own.and_then(|own| self.right_hmac(subflow, own));
                let is_right = right.as_ref() == Some(hmac);
                MptcpSpec::JoinAck { hmac: if is_right { HmacSpec::Auto } else { HmacSpec::Number(first(hmac)) } }
            }
            MptcpOption::Dss(dss) => MptcpSpec::Dss(self.words_for_dss(dss)),
            MptcpOption::AddAddress(add) => self.words_for_address(add),
            MptcpOption::RemoveAddress(ids) => MptcpSpec::RemoveAddress(ids.as_slice().to_vec()),
            MptcpOption::Priority { backup } => {
                MptcpSpec::Priority { backup: *backup, address_id: data.get(1).copied() }
            }
            MptcpOption::Fail { sequence } => MptcpSpec::Fail(self.relative(DataNumber::Long(*sequence), Side::Host)),
            MptcpOption::FastClose { key } => MptcpSpec::FastClose(Some(self.key_by_name(*key))),
            MptcpOption::Reset { transient, reason } => MptcpSpec::Reset { transient: *transient, reason: *reason },
        }
    }

    fn key_by_name(&self, key: u64) -> KeySpec {
        let name = self.keys.iter().find(|(_, known)| **known == key);
        name.map_or(KeySpec::Number(key), |(name, _)| KeySpec::Named(name.clone()))
    }

    fn words_for_capable(&self, capable: &Capable, data: &[u8]) -> MptcpSpec {
        let keys = capable.sender_key.into_iter().chain(capable.receiver_key);
        MptcpSpec::Capable {
            version: capable.version,
            flags: data.get(1).copied().unwrap_or(0),
            keys: keys.map(|key| self.key_by_name(key)).collect(),
            data_len: capable.data_len,
        }
    }

    fn right_hmac(&self, subflow: &Subflow, own: u32) -> Option<[u8; 20]> {
        let keys = [self.key_of(Side::Host).ok()?, self.key_of(Side::Script).ok()?];
        Some(keys::join_hmac(keys, [own, subflow.nonce(Side::Script)?]))
    }

    fn words_for_dss(&self, dss: &Dss) -> DssSpec {
        let number = |number: DataNumber, side| NumberSpec {
            long: matches!(number, DataNumber::Long(_)),
            count: self.relative(number, side),
        };
        DssSpec {
            ack: dss.ack.map(|ack| number(ack, Side::Script)),
            sequence: dss.mapping.map(|mapping| number(mapping.sequence, Side::Host)),
            subflow_sequence: dss.mapping.map(|mapping| mapping.subflow_sequence),
            len: dss.mapping.map(|mapping| mapping.len),
            checksum: match dss.mapping.and_then(|mapping| mapping.checksum) {
                Some(checksum) => ChecksumSpec::Number(checksum),
                None => ChecksumSpec::None,
            },
            fin: dss.fin,
        }
    }

    /// A number as it counts from the initial one of `side`, which may not be known.
    fn relative(&self, number: DataNumber, side: Side) -> Count {
        let initial = self.key_of(side).map_or(0, keys::initial_sequence);
        Count::Relative(match number {
            DataNumber::Long(number) => number.wrapping_sub(initial),
            DataNumber::Short(number) => number.wrapping_sub(initial as u32).into(),
        })
    }

    fn words_for_address(&self, add: &AddAddress) -> MptcpSpec {
        let address = match self.name_of(add.address) {
            Some(name) => AddressSpec { name: name.to_owned(), value: None },
            None => AddressSpec { name: "unnamed".to_owned(), value: Some(add.address) },
        };
        let keys = self.key_of(Side::Host).and_then(|own| Ok([own, self.key_of(Side::Script)?]));
        let right = keys.ok().map(|keys| keys::address_hmac(keys, add.id, add.address, add.port));
        let hmac = match add.hmac {
            None => AddressHmac::Echo,
            Some(hmac) if right == Some(hmac) => AddressHmac::Auto,
            Some(hmac) => AddressHmac::Number(hmac),
        };
        MptcpSpec::AddAddress { address_id: Some(add.id), address, port: add.port, hmac }
    }
}

/// The leftmost 64 bits.
fn first(hmac: &[u8; 20]) -> u64 {
    hmac[..8].iter().fold(0, |sum, byte| sum << 8 | u64::from(*byte))
}
