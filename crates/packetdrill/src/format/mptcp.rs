//! MPTCP options as scripts write them.

use std::fmt;
use std::net::IpAddr;

use crate::ast::{
    AddressHmac, AddressNames, AddressSpec, ChecksumSpec, Count, DssSpec, HmacSpec, KeySpec, MptcpSpec, NumberSpec,
    TokenSpec,
};

/// Names of the flags of MP_CAPABLE, the highest bit first.
pub(crate) const CAPABLE_FLAGS: [&str; 8] =
    ["flag_a", "flag_b", "flag_c", "flag_d", "flag_e", "flag_f", "flag_g", "flag_h"];

impl fmt::Display for MptcpSpec {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            MptcpSpec::Capable { version, flags, keys, data_len } => {
                write!(f, "mpcapable v{version} ")?;
                write_flags(f, *flags)?;
                match keys.as_slice() {
                    [] => f.write_str(" nokey")?,
                    [one] => write!(f, " key[{one}]")?,
                    [first, second, ..] => write!(f, " key[{first}, {second}]")?,
                }
                data_len.map_or(Ok(()), |len| write!(f, " mpcdatalen {len}"))
            }
            MptcpSpec::JoinSyn { backup, address_id, token, nonce } => {
                f.write_str("mp_join_syn")?;
                write_join(f, *backup, *address_id)?;
                write!(f, " token={token}")?;
                nonce.map_or(Ok(()), |nonce| write!(f, " rand={nonce}"))
            }
            MptcpSpec::JoinSynAck { backup, address_id, hmac, nonce } => {
                f.write_str("mp_join_syn_ack")?;
                write_join(f, *backup, *address_id)?;
                write!(f, " sender_hmac=")?;
                write_hmac(f, hmac, "trunc_l64_hmac")?;
                nonce.map_or(Ok(()), |nonce| write!(f, " rand={nonce}"))
            }
            MptcpSpec::JoinAck { hmac } => {
                f.write_str("mp_join_ack sender_hmac=")?;
                write_hmac(f, hmac, "full_160_hmac")
            }
            MptcpSpec::Dss(dss) => dss.fmt(f),
            MptcpSpec::AddAddress { address_id, address, port, hmac } => {
                f.write_str("add_address")?;
                address_id.map_or(Ok(()), |id| write!(f, " address_id={id}"))?;
                write!(f, " addr[{address}]")?;
                port.map_or(Ok(()), |port| write!(f, " port={port}"))?;
                match hmac {
                    AddressHmac::Echo => f.write_str(" addr_echo"),
                    AddressHmac::Auto => f.write_str(" hmac=auto"),
                    AddressHmac::Number(number) => write!(f, " hmac={number:#x}"),
                }
            }
            MptcpSpec::RemoveAddress(ids) => {
                let ids: Vec<String> = ids.iter().map(u8::to_string).collect();
                write!(f, "remove_address address_id=[{}]", ids.join(", "))
            }
            MptcpSpec::Priority { backup, address_id } => {
                write!(f, "mp_prio backup={}", u8::from(*backup))?;
                address_id.map_or(Ok(()), |id| write!(f, " address_id={id}"))
            }
            MptcpSpec::Fail(count) => {
                f.write_str("mp_fail dsn8")?;
                write_count(f, count)
            }
            MptcpSpec::FastClose(None) => f.write_str("mp_fastclose"),
            MptcpSpec::FastClose(Some(key)) => write!(f, "mp_fastclose {key}"),
            MptcpSpec::Reset { transient, reason } => {
                write!(f, "mp_reset {reason}{}", if *transient { " flags[flag_t]" } else { "" })
            }
        }
    }
}

fn write_flags(f: &mut fmt::Formatter<'_>, flags: u8) -> fmt::Result {
    let set = CAPABLE_FLAGS.iter().enumerate().filter(|(bit, _)| flags & (0x80 >> bit) != 0);
    let names: Vec<&str> = set.map(|(_, name)| *name).collect();
    if names.is_empty() { f.write_str("flags[no_flags]") } else { write!(f, "flags[{}]", names.join(", ")) }
}

fn write_join(f: &mut fmt::Formatter<'_>, backup: bool, address_id: Option<u8>) -> fmt::Result {
    if backup {
        f.write_str(" backup=1")?;
    }
    address_id.map_or(Ok(()), |id| write!(f, " address_id={id}"))
}

fn write_hmac(f: &mut fmt::Formatter<'_>, hmac: &HmacSpec, function: &str) -> fmt::Result {
    match hmac {
        HmacSpec::Auto => f.write_str("auto"),
        HmacSpec::OfKeys(own, peer) => write!(f, "{function}({own} {peer})"),
        HmacSpec::Number(number) => write!(f, "trunc_l64_hmac({number:#x})"),
    }
}

fn write_count(f: &mut fmt::Formatter<'_>, count: &Count) -> fmt::Result {
    match count {
        Count::Auto => Ok(()),
        Count::Relative(number) => write!(f, "={number}"),
        Count::OfKey(name, 0) => write!(f, "=trunc_r64_hmac({name})"),
        Count::OfKey(name, number) => write!(f, "=trunc_r64_hmac({name}) + {number}"),
    }
}

impl fmt::Display for DssSpec {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str("dss")?;
        let mut number = |name: &str, number: &Option<NumberSpec>| {
            let Some(NumberSpec { long, count }) = number else { return Ok(()) };
            write!(f, " {name}{}", if *long { 8 } else { 4 })?;
            write_count(f, count)
        };
        number("dack", &self.ack)?;
        number("dsn", &self.sequence)?;
        self.subflow_sequence.map_or(Ok(()), |ssn| write!(f, " ssn={ssn}"))?;
        self.len.map_or(Ok(()), |len| write!(f, " dll={len}"))?;
        match self.checksum {
            ChecksumSpec::Auto => {}
            ChecksumSpec::None => f.write_str(" nocs")?,
            ChecksumSpec::Number(checksum) => write!(f, " cksum={checksum}")?,
        }
        f.write_str(if self.fin { " fin" } else { "" })
    }
}

impl fmt::Display for KeySpec {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            KeySpec::Named(name) => f.write_str(name),
            KeySpec::Assigned(name, value) => write!(f, "{name}={value}"),
            KeySpec::Number(value) => write!(f, "{value:#x}"),
        }
    }
}

impl fmt::Display for TokenSpec {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            TokenSpec::Auto => f.write_str("auto"),
            TokenSpec::OfKey(name) => write!(f, "sha256_32({name})"),
            TokenSpec::Number(number) => write!(f, "{number}"),
        }
    }
}

impl fmt::Display for AddressSpec {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(&self.name)?;
        match self.value {
            None => Ok(()),
            Some(IpAddr::V4(address)) => write!(f, "=inet_addr(\"{address}\")"),
            Some(IpAddr::V6(address)) => write!(f, "=inet6_addr(\"{address}\")"),
        }
    }
}

impl fmt::Display for AddressNames {
    /// `addr[a] > addr[b]`
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        if let Some(source) = &self.source {
            write!(f, "addr[{source}] ")?;
        }
        f.write_str(">")?;
        self.destination.as_ref().map_or(Ok(()), |destination| write!(f, " addr[{destination}]"))
    }
}
