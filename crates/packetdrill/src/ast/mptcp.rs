//! MPTCP options as scripts write them (the language is that of multipath-tcp/packetdrill).

use std::net::IpAddr;

/// One MPTCP option. The runner chooses fields that are `None` or `Auto` in a packet that arrives,
/// and does not compare them in one that is expected.
#[derive(Clone, Debug, PartialEq)]
pub enum MptcpSpec {
    /// `mpcapable v1 flags[flag_h] key[a, b] mpcdatalen N`
    Capable {
        /// `v0` or `v1`.
        version: u8,
        /// The whole byte.
        flags: u8,
        /// None, the sender's, or the sender's and the receiver's.
        keys: Vec<KeySpec>,
        /// Bytes of data that it maps; with two keys.
        data_len: Option<u16>,
    },
    /// `mp_join_syn backup=1 address_id=1 token=sha256_32(a) rand=N`
    JoinSyn {
        /// B.
        backup: bool,
        /// The id of the address that it comes from.
        address_id: Option<u8>,
        /// The receiver's.
        token: TokenSpec,
        /// The sender's random number.
        nonce: Option<u32>,
    },
    /// `mp_join_syn_ack backup=1 address_id=1 sender_hmac=auto rand=N`
    JoinSynAck {
        /// B.
        backup: bool,
        /// The id of the address that it comes from.
        address_id: Option<u8>,
        /// The leftmost 64 bits of it.
        hmac: HmacSpec,
        /// The sender's random number.
        nonce: Option<u32>,
    },
    /// `mp_join_ack sender_hmac=auto`
    JoinAck {
        /// The leftmost 160 bits of it.
        hmac: HmacSpec,
    },
    /// `dss dack8=1 dsn8=1 ssn=1 dll=1000 nocs fin`
    Dss(DssSpec),
    /// `add_address address_id=1 addr[a] port=N hmac=auto`, `add_address addr[a] addr_echo`
    AddAddress {
        /// Its number.
        address_id: Option<u8>,
        /// The variable that stands for it.
        address: AddressSpec,
        /// A port, where written.
        port: Option<u16>,
        /// Its proof, or that it is an echo, which has none.
        hmac: AddressHmac,
    },
    /// `remove_address address_id=[1, 2]`
    RemoveAddress(Vec<u8>),
    /// `mp_prio backup=1`; with `address_id=N` that of version 0.
    Priority {
        /// B.
        backup: bool,
        /// Version 0 names an address.
        address_id: Option<u8>,
    },
    /// `mp_fail dsn8=N`
    Fail(Count),
    /// `mp_fastclose`, `mp_fastclose a`: without a key that of the receiver.
    FastClose(Option<KeySpec>),
    /// `mp_reset 1 flags[flag_t]`
    Reset {
        /// T.
        transient: bool,
        /// Its number.
        reason: u8,
    },
}

/// A key.
#[derive(Clone, Debug, PartialEq)]
pub enum KeySpec {
    /// `a`: what the variable stands for; in an expected packet, what it will stand for.
    Named(String),
    /// `a=2`
    Assigned(String, u64),
    /// `2`
    Number(u64),
}

/// The token of a connection.
#[derive(Clone, Debug, PartialEq)]
pub enum TokenSpec {
    /// `auto`: the receiver's.
    Auto,
    /// `sha256_32(a)`: that of the key `a`.
    OfKey(String),
    /// A number.
    Number(u32),
}

/// The proof of who knows both keys.
#[derive(Clone, Debug, PartialEq)]
pub enum HmacSpec {
    /// `auto`: the right one.
    Auto,
    /// `trunc_l64_hmac(a b)`, `full_160_hmac(a b)`: of these keys, the sender's first.
    OfKeys(String, String),
    /// `trunc_l64_hmac(1)`: this number; of 160 bits the first 64, with zeros behind them.
    Number(u64),
}

/// The proof of ADD_ADDR.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum AddressHmac {
    /// `addr_echo`: it has none.
    Echo,
    /// `hmac=auto`: the right one.
    Auto,
    /// `hmac=N`
    Number(u64),
}

/// An address.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct AddressSpec {
    /// The variable.
    pub name: String,
    /// The assigned value: `a=inet_addr("198.51.100.2")`.
    pub value: Option<IpAddr>,
}

/// The names of a packet's addresses, `addr[a] > addr[b]`, where written.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct AddressNames {
    /// Where it comes from.
    pub source: Option<String>,
    /// Where it goes.
    pub destination: Option<String>,
}

/// `dss ...`
#[derive(Clone, Debug, Default, PartialEq)]
pub struct DssSpec {
    /// `dack4` or `dack8`
    pub ack: Option<NumberSpec>,
    /// `dsn4` or `dsn8`. Without it there is no mapping, whatever else is written.
    pub sequence: Option<NumberSpec>,
    /// `ssn`
    pub subflow_sequence: Option<u32>,
    /// `dll`
    pub len: Option<u16>,
    /// `nocs` or `cksum=N`
    pub checksum: ChecksumSpec,
    /// `fin`
    pub fin: bool,
}

/// A number of the data sequence space.
#[derive(Clone, Debug, PartialEq)]
pub struct NumberSpec {
    /// Eight bytes instead of four.
    pub long: bool,
    /// Its value.
    pub count: Count,
}

/// The notation of a number of the data sequence space.
#[derive(Clone, Debug, PartialEq)]
pub enum Count {
    /// No number is written.
    Auto,
    /// From the initial number of its direction; the first byte is 1.
    Relative(u64),
    /// `trunc_r64_hmac(a) + N`: from the initial number that follows from the key `a`.
    OfKey(String, u64),
}

/// The checksum of a mapping.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub enum ChecksumSpec {
    /// Nothing is written: the mapping has one.
    #[default]
    Auto,
    /// `nocs`: none.
    None,
    /// `cksum=N`
    Number(u16),
}

impl MptcpSpec {
    /// Bytes that it takes, its kind and length included.
    pub fn encoded_len(&self) -> usize {
        match self {
            MptcpSpec::Capable { keys, data_len, .. } => 4 + 8 * keys.len() + if data_len.is_some() { 2 } else { 0 },
            MptcpSpec::JoinSyn { .. } | MptcpSpec::Fail(_) | MptcpSpec::FastClose(_) => 12,
            MptcpSpec::JoinSynAck { .. } => 16,
            MptcpSpec::JoinAck { .. } => 24,
            MptcpSpec::Dss(dss) => dss.encoded_len(),
            MptcpSpec::AddAddress { address, port, hmac, .. } => {
                // A variable stands for an address of four bytes, unless it says otherwise.
                let address = if matches!(address.value, Some(IpAddr::V6(_))) { 16 } else { 4 };
                4 + address + if port.is_some() { 2 } else { 0 } + if *hmac == AddressHmac::Echo { 0 } else { 8 }
            }
            MptcpSpec::RemoveAddress(ids) => 3 + ids.len(),
            MptcpSpec::Priority { address_id, .. } => {
                if address_id.is_some() {
                    4
                } else {
                    3
                }
            }
            MptcpSpec::Reset { .. } => 4,
        }
    }
}

impl DssSpec {
    fn encoded_len(&self) -> usize {
        let number = |number: &Option<NumberSpec>| match number {
            Some(number) if number.long => 8,
            Some(_) => 4,
            None => 0,
        };
        let mapping = match (&self.sequence, self.checksum) {
            (None, _) => 0,
            (Some(_), ChecksumSpec::None) => 6,
            (Some(_), ChecksumSpec::Auto | ChecksumSpec::Number(_)) => 8,
        };
        4 + number(&self.ack) + number(&self.sequence) + mapping
    }
}
