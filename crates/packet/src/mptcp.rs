//! The options of Multipath TCP: one kind with subtypes, as they stand in a header.
//!
//! A segment keeps them as bytes ([`MptcpOptions`]): a segment may have several, few segments have
//! any, and what passes by is forwarded as it came. [`MptcpOption`] is one of them, decoded.
//!
//! # Source
//! RFC 8684 section 3, of which the subtypes and flags of version 1; Linux
//! `mptcp_write_options` and `mptcp_parse_option` (`net/mptcp/options.c`) for the padding.

use std::fmt;

mod writer;

/// Kind of all of them (IANA registry "TCP Option Kind Numbers").
pub(crate) const KIND: u8 = 30;

/// Values of the field Subtype (IANA registry "MPTCP Option Subtypes").
mod subtype {
    pub(super) const CAPABLE: u8 = 0;
    pub(super) const JOIN: u8 = 1;
    pub(super) const DSS: u8 = 2;
    pub(super) const ADD_ADDRESS: u8 = 3;
    pub(super) const REMOVE_ADDRESS: u8 = 4;
    pub(super) const PRIORITY: u8 = 5;
    pub(super) const FAIL: u8 = 6;
    pub(super) const FAST_CLOSE: u8 = 7;
    pub(super) const RESET: u8 = 8;
}

/// Flags of DSS.
mod dss {
    pub(super) const ACK: u8 = 0x01;
    pub(super) const LONG_ACK: u8 = 0x02;
    pub(super) const MAPPING: u8 = 0x04;
    pub(super) const LONG_SEQUENCE: u8 = 0x08;
    pub(super) const FIN: u8 = 0x10;
}

/// Flags of MP_CAPABLE.
mod capable {
    pub(super) const CHECKSUM: u8 = 0x80;
    pub(super) const EXTENSIBLE: u8 = 0x40;
    pub(super) const NO_JOIN: u8 = 0x20;
    pub(super) const HMAC_SHA256: u8 = 0x01;
}

/// The flag B of MP_JOIN and MP_PRIO, E of ADD_ADDR, T of MP_TCPRST: the lowest of the byte that
/// begins with the subtype.
const LOWEST: u8 = 0x01;

/// The MPTCP options of one segment, one behind another, each with kind and length, without
/// padding.
#[derive(Clone, Copy)]
pub struct MptcpOptions {
    len: u8,
    bytes: [u8; MptcpOptions::MAX],
}

impl Default for MptcpOptions {
    fn default() -> MptcpOptions {
        MptcpOptions { len: 0, bytes: [0; MptcpOptions::MAX] }
    }
}

impl MptcpOptions {
    /// All that a header has room for.
    const MAX: usize = 40;

    /// Returns true if there are no MPTCP options.
    #[inline]
    pub fn is_empty(&self) -> bool {
        self.len == 0
    }

    /// Leaves out all of them.
    #[inline]
    pub fn clear(&mut self) {
        self.len = 0;
    }

    /// Adds an option; `false`, and nothing done, if a header has no room for it.
    pub fn push(&mut self, option: &MptcpOption) -> bool {
        let (bytes, len) = option.encode();
        self.push_bytes(&bytes[..len])
    }

    /// Adds an option that is encoded, its kind and length included; `false`, and nothing done, if
    /// a header has no room for it.
    pub fn push_bytes(&mut self, option: &[u8]) -> bool {
        let from = usize::from(self.len);
        let Some(room) = self.bytes.get_mut(from..from + option.len()) else { return false };
        room.copy_from_slice(option);
        self.len += option.len() as u8;
        true
    }

    /// The bytes of each, kind and length included.
    pub fn encoded(&self) -> impl Iterator<Item = &[u8]> {
        let mut rest = &self.bytes[..usize::from(self.len)];
        std::iter::from_fn(move || {
            let len = usize::from(*rest.get(1)?);
            let (option, behind) = rest.split_at_checked(len)?;
            rest = behind;
            Some(option)
        })
    }

    /// The options whose form RFC 8684 defines; others are skipped.
    pub fn iter(&self) -> impl Iterator<Item = MptcpOption> + '_ {
        self.encoded().filter_map(MptcpOption::decode)
    }

    /// The first DSS.
    pub fn dss(&self) -> Option<Dss> {
        self.iter().find_map(|option| if let MptcpOption::Dss(dss) = option { Some(dss) } else { None })
    }

    /// Bytes that they take in a header: each is padded to a multiple of four.
    #[inline]
    pub fn padded_len(&self) -> u32 {
        if self.is_empty() { 0 } else { self.padded_len_of_any() }
    }

    #[cold]
    fn padded_len_of_any(&self) -> u32 {
        self.encoded().map(|option| (option.len() as u32).next_multiple_of(4)).sum()
    }
}

impl PartialEq for MptcpOptions {
    fn eq(&self, other: &MptcpOptions) -> bool {
        self.bytes[..usize::from(self.len)] == other.bytes[..usize::from(other.len)]
    }
}

impl Eq for MptcpOptions {}

impl fmt::Debug for MptcpOptions {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_list().entries(self.iter()).finish()
    }
}

/// A Multipath TCP option (RFC 8684 section 3).
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum MptcpOption {
    /// MP_CAPABLE.
    Capable(Capable),
    /// MP_JOIN of a SYN.
    JoinSyn {
        /// Data is to be sent on this subflow only if there is no other.
        backup: bool,
        /// Identifier of the address that the SYN comes from.
        address_id: u8,
        /// The receiver's, which names the connection.
        token: u32,
        /// The sender's random number.
        nonce: u32,
    },
    /// MP_JOIN of a SYN/ACK.
    JoinSynAck {
        /// The backup flag, as in [`MptcpOption::JoinSyn`].
        backup: bool,
        /// Identifier of the address that the SYN/ACK comes from.
        address_id: u8,
        /// The leftmost 64 bits of the sender's HMAC.
        hmac: u64,
        /// The sender's random number.
        nonce: u32,
    },
    /// MP_JOIN of the ACK that ends the handshake.
    JoinAck {
        /// The leftmost 160 bits of the sender's HMAC.
        hmac: [u8; 20],
    },
    /// Data sequence signal.
    Dss(Dss),
    /// ADD_ADDR.
    AddAddress(AddAddress),
    /// REMOVE_ADDR.
    RemoveAddress(AddressIds),
    /// MP_PRIO: whether the subflow is a backup from now on.
    Priority {
        /// Data is to be sent on it only if there is no other.
        backup: bool,
    },
    /// MP_FAIL: no checksum or mapping is right from this data sequence number on.
    Fail {
        /// Data sequence number.
        sequence: u64,
    },
    /// MP_FASTCLOSE: the connection is aborted.
    FastClose {
        /// The key of who receives it.
        key: u64,
    },
    /// MP_TCPRST: why a subflow is reset.
    Reset {
        /// The reset is transient: the subflow may be tried again.
        transient: bool,
        /// Code from the registry "MPTCP MP_TCPRST Reason Codes".
        reason: u8,
    },
}

/// MP_CAPABLE (RFC 8684 section 3.1): without a key in a SYN, with the sender's in a SYN/ACK, with
/// both in the third packet and the first one with data.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Capable {
    /// Version of the protocol.
    pub version: u8,
    /// A: checksums are required.
    pub checksum: bool,
    /// B: the flags have another meaning, of which nothing is known.
    pub extensible: bool,
    /// C: no subflow is to be opened to the address and port that this comes from.
    pub no_join: bool,
    /// H: HMAC-SHA256.
    pub hmac_sha256: bool,
    /// The sender's key.
    pub sender_key: Option<u64>,
    /// The receiver's key, behind the sender's.
    pub receiver_key: Option<u64>,
    /// Bytes of data that it maps, from the first byte on; behind both keys.
    pub data_len: Option<u16>,
    /// The checksum over that data; behind its length.
    pub data_checksum: Option<u16>,
}

/// DSS (RFC 8684 section 3.3).
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Dss {
    /// Data acknowledgment.
    pub ack: Option<DataNumber>,
    /// The mapping from the subflow's bytes to the connection's data.
    pub mapping: Option<Mapping>,
    /// DATA_FIN: the mapping ends with it.
    pub fin: bool,
}

/// A number of the data sequence space: all of it, or its low 32 bits.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum DataNumber {
    /// Four bytes.
    Short(u32),
    /// Eight bytes.
    Long(u64),
}

/// Bytes of a subflow that are bytes of the connection.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Mapping {
    /// Data sequence number of the first byte.
    pub sequence: DataNumber,
    /// Offset in the subflow: the distance from the initial sequence number. With length 0, an
    /// infinite mapping.
    pub subflow_sequence: u32,
    /// Length in bytes; a DATA_FIN counts as one.
    pub len: u16,
    /// Checksum over the bytes and a pseudo-header, if checksums were agreed on.
    pub checksum: Option<u16>,
}

/// ADD_ADDR (RFC 8684 section 3.4.1).
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct AddAddress {
    /// Identifier of the address; repeated announcements have the same one.
    pub id: u8,
    /// The address.
    pub address: std::net::IpAddr,
    /// A port, if it is not that of the subflow on which this is sent.
    pub port: Option<u16>,
    /// The rightmost 64 bits of the sender's HMAC; `None` in an echo, which confirms the receipt.
    pub hmac: Option<u64>,
}

/// The numbers of one to eight addresses that are no longer in use.
#[derive(Clone, Copy, PartialEq, Eq)]
pub struct AddressIds {
    len: u8,
    ids: [u8; AddressIds::MAX],
}

impl AddressIds {
    const MAX: usize = 8;

    /// Up to eight of these.
    pub fn new(ids: &[u8]) -> AddressIds {
        let len = ids.len().min(AddressIds::MAX);
        let mut all = [0; AddressIds::MAX];
        all[..len].copy_from_slice(&ids[..len]);
        AddressIds { len: len as u8, ids: all }
    }

    /// The numbers.
    pub fn as_slice(&self) -> &[u8] {
        &self.ids[..usize::from(self.len)]
    }
}

impl fmt::Debug for AddressIds {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        self.as_slice().fmt(f)
    }
}

impl DataNumber {
    /// The number nearest to `near` of which this is all, or the low half.
    pub fn near(self, near: u64) -> u64 {
        match self {
            DataNumber::Long(number) => number,
            DataNumber::Short(low) => {
                let ahead = low.wrapping_sub(near as u32).cast_signed();
                near.wrapping_add_signed(ahead.into())
            }
        }
    }
}

impl MptcpOption {
    /// An option from its bytes, kind and length included; `None` if it has no form that is known.
    pub fn decode(bytes: &[u8]) -> Option<MptcpOption> {
        let (&[KIND, _, first], rest) = bytes.split_first_chunk::<3>()? else { return None };
        let flag = first & LOWEST != 0;
        Some(match (first >> 4, rest) {
            (subtype::CAPABLE, rest) => MptcpOption::Capable(Capable::decode(first & 0xf, rest)?),
            (subtype::JOIN, &[address_id, ref rest @ ..]) => match rest.len() {
                8 => MptcpOption::JoinSyn { backup: flag, address_id, token: word(rest)?, nonce: word(&rest[4..])? },
                12 => MptcpOption::JoinSynAck { backup: flag, address_id, hmac: long(rest)?, nonce: word(&rest[8..])? },
                _ => MptcpOption::JoinAck { hmac: rest.try_into().ok()? },
            },
            (subtype::DSS, &[flags, ref rest @ ..]) => MptcpOption::Dss(Dss::decode(flags, rest)?),
            (subtype::ADD_ADDRESS, &[id, ref rest @ ..]) => {
                MptcpOption::AddAddress(AddAddress::decode(flag, id, rest)?)
            }
            (subtype::REMOVE_ADDRESS, ids @ [_, ..]) => MptcpOption::RemoveAddress(AddressIds::new(ids)),
            // Version 0 names an address behind it.
            (subtype::PRIORITY, [] | [_]) => MptcpOption::Priority { backup: flag },
            (subtype::FAIL, [_, rest @ ..]) if rest.len() == 8 => MptcpOption::Fail { sequence: long(rest)? },
            (subtype::FAST_CLOSE, [_, rest @ ..]) if rest.len() == 8 => MptcpOption::FastClose { key: long(rest)? },
            (subtype::RESET, &[reason]) => MptcpOption::Reset { transient: flag, reason },
            _ => return None,
        })
    }
}

fn half(bytes: &[u8]) -> Option<u16> {
    bytes.first_chunk().map(|bytes| u16::from_be_bytes(*bytes))
}

fn word(bytes: &[u8]) -> Option<u32> {
    bytes.first_chunk().map(|bytes| u32::from_be_bytes(*bytes))
}

fn long(bytes: &[u8]) -> Option<u64> {
    bytes.first_chunk().map(|bytes| u64::from_be_bytes(*bytes))
}

impl Capable {
    fn decode(version: u8, bytes: &[u8]) -> Option<Capable> {
        let (&flags, rest) = bytes.split_first()?;
        if !matches!(rest.len(), 0 | 8 | 16 | 18 | 20) {
            return None;
        }
        Some(Capable {
            version,
            checksum: flags & capable::CHECKSUM != 0,
            extensible: flags & capable::EXTENSIBLE != 0,
            no_join: flags & capable::NO_JOIN != 0,
            hmac_sha256: flags & capable::HMAC_SHA256 != 0,
            sender_key: long(rest),
            receiver_key: rest.get(8..).and_then(long),
            data_len: rest.get(16..).and_then(half),
            data_checksum: rest.get(18..).and_then(half),
        })
    }
}

impl Dss {
    fn decode(flags: u8, bytes: &[u8]) -> Option<Dss> {
        let mut rest = bytes;
        let mut number = |is_long: bool| {
            let (number, len) =
                if is_long { (DataNumber::Long(long(rest)?), 8) } else { (DataNumber::Short(word(rest)?), 4) };
            rest = &rest[len..];
            Some(number)
        };
        let ack = match flags & dss::ACK {
            0 => None,
            _ => Some(number(flags & dss::LONG_ACK != 0)?),
        };
        let sequence = match flags & dss::MAPPING {
            0 => None,
            _ => Some(number(flags & dss::LONG_SEQUENCE != 0)?),
        };
        let mapping = match (sequence, rest.len()) {
            (Some(sequence), 6 | 8) => Some(Mapping {
                sequence,
                subflow_sequence: word(rest)?,
                len: half(&rest[4..])?,
                checksum: half(&rest[6..]),
            }),
            (None, 0) => None,
            _ => return None,
        };
        Some(Dss { ack, mapping, fin: flags & dss::FIN != 0 })
    }
}

impl AddAddress {
    fn decode(echo: bool, id: u8, bytes: &[u8]) -> Option<AddAddress> {
        let (address, rest) = match bytes.len() - if echo { 0 } else { bytes.len().min(8) } {
            4 | 6 => (std::net::IpAddr::from(*bytes.first_chunk::<4>()?), &bytes[4..]),
            16 | 18 => (std::net::IpAddr::from(*bytes.first_chunk::<16>()?), &bytes[16..]),
            _ => return None,
        };
        let (port, rest) = if rest.len() % 8 == 2 { (half(rest), &rest[2..]) } else { (None, rest) };
        Some(AddAddress { id, address, port, hmac: if echo { None } else { Some(long(rest)?) } })
    }
}

#[cfg(test)]
mod tests;
