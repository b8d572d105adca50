//! The encoding of an option.

use super::{Capable, DataNumber, Dss, KIND, MptcpOption, MptcpOptions, capable, dss, subtype};

impl MptcpOption {
    /// Kind, length and content.
    pub(super) fn encode(&self) -> ([u8; MptcpOptions::MAX], usize) {
        let mut out = OptionWriter { bytes: [0; MptcpOptions::MAX], len: 2 };
        match *self {
            MptcpOption::Capable(capable) => out.capable(&capable),
            MptcpOption::JoinSyn { backup, address_id, token, nonce } => {
                out.head(subtype::JOIN, u8::from(backup)).put(&[address_id]).put(&token.to_be_bytes());
                out.put(&nonce.to_be_bytes());
            }
            MptcpOption::JoinSynAck { backup, address_id, hmac, nonce } => {
                out.head(subtype::JOIN, u8::from(backup)).put(&[address_id]).put(&hmac.to_be_bytes());
                out.put(&nonce.to_be_bytes());
            }
            MptcpOption::JoinAck { hmac } => {
                out.head(subtype::JOIN, 0).put(&[0]).put(&hmac);
            }
            MptcpOption::Dss(dss) => out.dss(&dss),
            MptcpOption::AddAddress(add) => {
                out.head(subtype::ADD_ADDRESS, u8::from(add.hmac.is_none())).put(&[add.id]);
                match add.address {
                    std::net::IpAddr::V4(address) => out.put(&address.octets()),
                    std::net::IpAddr::V6(address) => out.put(&address.octets()),
                };
                if let Some(port) = add.port {
                    out.put(&port.to_be_bytes());
                }
                if let Some(hmac) = add.hmac {
                    out.put(&hmac.to_be_bytes());
                }
            }
            MptcpOption::RemoveAddress(ids) => {
                out.head(subtype::REMOVE_ADDRESS, 0).put(ids.as_slice());
            }
            MptcpOption::Priority { backup } => {
                out.head(subtype::PRIORITY, u8::from(backup));
            }
            MptcpOption::Fail { sequence } => {
                out.head(subtype::FAIL, 0).put(&[0]).put(&sequence.to_be_bytes());
            }
            MptcpOption::FastClose { key } => {
                out.head(subtype::FAST_CLOSE, 0).put(&[0]).put(&key.to_be_bytes());
            }
            MptcpOption::Reset { transient, reason } => {
                out.head(subtype::RESET, u8::from(transient)).put(&[reason]);
            }
        }
        [out.bytes[0], out.bytes[1]] = [KIND, out.len as u8];
        (out.bytes, out.len)
    }
}

/// An option that is being written.
struct OptionWriter {
    bytes: [u8; MptcpOptions::MAX],
    len: usize,
}

impl OptionWriter {
    /// The byte with the subtype.
    fn head(&mut self, subtype: u8, low: u8) -> &mut OptionWriter {
        self.put(&[subtype << 4 | low])
    }

    /// No option is longer than 30 bytes.
    fn put(&mut self, bytes: &[u8]) -> &mut OptionWriter {
        self.bytes[self.len..self.len + bytes.len()].copy_from_slice(bytes);
        self.len += bytes.len();
        self
    }

    fn capable(&mut self, capable: &Capable) {
        let flags = [
            (capable.checksum, capable::CHECKSUM),
            (capable.extensible, capable::EXTENSIBLE),
            (capable.no_join, capable::NO_JOIN),
            (capable.hmac_sha256, capable::HMAC_SHA256),
        ];
        let flags = flags.iter().fold(0, |all, &(is_set, flag)| all | if is_set { flag } else { 0 });
        self.head(subtype::CAPABLE, capable.version & 0xf).put(&[flags]);
        // Each stands behind the one before, and not without it.
        let Some(key) = capable.sender_key else { return };
        self.put(&key.to_be_bytes());
        let Some(key) = capable.receiver_key else { return };
        self.put(&key.to_be_bytes());
        let Some(len) = capable.data_len else { return };
        self.put(&len.to_be_bytes());
        let Some(checksum) = capable.data_checksum else { return };
        self.put(&checksum.to_be_bytes());
    }

    fn number(&mut self, number: DataNumber) {
        match number {
            DataNumber::Short(number) => self.put(&number.to_be_bytes()),
            DataNumber::Long(number) => self.put(&number.to_be_bytes()),
        };
    }

    fn dss(&mut self, signal: &Dss) {
        let is_long = |number| matches!(number, DataNumber::Long(_));
        let mut flags = if signal.fin { dss::FIN } else { 0 };
        if let Some(ack) = signal.ack {
            flags |= dss::ACK | if is_long(ack) { dss::LONG_ACK } else { 0 };
        }
        if let Some(mapping) = signal.mapping {
            flags |= dss::MAPPING | if is_long(mapping.sequence) { dss::LONG_SEQUENCE } else { 0 };
        }
        self.head(subtype::DSS, 0).put(&[flags]);
        if let Some(ack) = signal.ack {
            self.number(ack);
        }
        if let Some(mapping) = signal.mapping {
            self.number(mapping.sequence);
            self.put(&mapping.subflow_sequence.to_be_bytes()).put(&mapping.len.to_be_bytes());
            if let Some(checksum) = mapping.checksum {
                self.put(&checksum.to_be_bytes());
            }
        }
    }
}
