//! Packets as scripts write them, for reports. The text is read again as the same packet.

mod mptcp;

use std::fmt;

use ackclock_packet::Flags;
use ackclock_units::Ecn;

pub(crate) use self::mptcp::CAPABLE_FLAGS;
use crate::ast::{
    AddressNames, Direction, EcnSpec, IcmpSpec, IpInfo, OptionSpec, Options, PacketSpec, SeqForm, TcpSpec,
};

impl fmt::Display for Direction {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(match self {
            Direction::Inbound => "<",
            Direction::Outbound => ">",
        })
    }
}

impl fmt::Display for PacketSpec {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            PacketSpec::Tcp(tcp) => tcp.fmt(f),
            PacketSpec::Icmp(icmp) => write!(f, "< {icmp}"),
            PacketSpec::Unsupported { text, .. } => f.write_str(text),
        }
    }
}

impl fmt::Display for IcmpSpec {
    /// `icmp unreachable frag_needed mtu 1200 [1:1461(1460)]`
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "icmp {}", self.kind)?;
        if let Some(code) = &self.code {
            write!(f, " {code}")?;
        }
        if let Some(mtu) = self.mtu {
            write!(f, " mtu {mtu}")?;
        }
        if let Some((seq, payload)) = self.quoted {
            write!(f, " [{seq}:{}({payload})]", seq.wrapping_add(payload))?;
        }
        Ok(())
    }
}

impl fmt::Display for TcpSpec {
    /// `> S. 0:0(0) ack 1 win 65535 <mss 1460,nop,wscale 7>`
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{} ", self.direction)?;
        if self.ip != IpInfo::default() {
            write!(f, "{} ", self.ip)?;
        }
        if self.addresses != AddressNames::default() {
            write!(f, "{} ", self.addresses)?;
        }
        if let Some((source, destination)) = self.ports {
            write!(f, "{source} > {destination} ")?;
        }
        match self.ace {
            // A counter cannot stand alone; the bits it is made of can (RFC 9768 section 3.2.2).
            Some(ace) if self.flags == Flags::NONE => {
                let bits = [(4, "A"), (2, "W"), (1, "E")].iter().filter(|(bit, _)| ace & bit != 0);
                write!(f, "{} ", if ace == 0 { "-".to_owned() } else { bits.map(|(_, letter)| *letter).collect() })?;
            }
            Some(ace) => write!(f, "{:?}{ace} ", self.flags)?,
            None => write!(f, "{:?} ", self.flags)?,
        }
        match self.seq_form {
            SeqForm::Any => write!(f, "...({})", self.payload)?,
            SeqForm::Relative | SeqForm::Absolute => {
                write!(f, "{}:{}({})", self.seq, self.seq.wrapping_add(self.payload), self.payload)?;
            }
        }
        if self.seq_form == SeqForm::Absolute {
            f.write_str("!")?;
        }
        if let Some(ack) = self.ack {
            write!(f, " ack {ack}")?;
        }
        if let Some(window) = self.window {
            write!(f, " win {window}")?;
        }
        if let Some(urgent) = self.urgent {
            write!(f, " urg {urgent}")?;
        }
        match &self.options {
            Options::List(list) if list.is_empty() => Ok(()),
            options => write!(f, " {options}"),
        }
    }
}

impl fmt::Display for IpInfo {
    /// `[ect0]`, `(tos 0x10, ttl 64)`: in square brackets where only the codepoint is given.
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let mut parts: Vec<String> = Vec::new();
        parts.extend(self.ecn.map(|ecn| ecn.to_string()));
        parts.extend(self.tos.map(|tos| format!("tos {tos:#04x}")));
        parts.extend(self.ttl.map(|ttl| format!("ttl {ttl}")));
        parts.extend(self.flow_label.map(|label| format!("flowlabel {label:#x}")));
        match (self.ecn, parts.len()) {
            (_, 0) => Ok(()),
            (Some(_), 1) => write!(f, "[{}]", parts[0]),
            _ => write!(f, "({})", parts.join(", ")),
        }
    }
}

impl fmt::Display for EcnSpec {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(match self {
            EcnSpec::Is(Ecn::NotEct) => "noecn",
            EcnSpec::Is(Ecn::Ect0) => "ect0",
            EcnSpec::Is(Ecn::Ect1) => "ect1",
            EcnSpec::Is(Ecn::Ce) => "ce",
            EcnSpec::Ect01 => "ect01",
        })
    }
}

impl fmt::Display for Options {
    /// Writes options in angle brackets, also where there is none.
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let Options::List(list) = self else { return f.write_str("<...>") };
        f.write_str("<")?;
        for (index, option) in list.iter().enumerate() {
            write!(f, "{}{option}", if index == 0 { "" } else { "," })?;
        }
        f.write_str(">")
    }
}

impl fmt::Display for OptionSpec {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            OptionSpec::Nop => f.write_str("nop"),
            OptionSpec::Eol => f.write_str("eol"),
            OptionSpec::Mss(mss) => write!(f, "mss {mss}"),
            OptionSpec::WindowScale(shift) => write!(f, "wscale {shift}"),
            OptionSpec::SackPermitted => f.write_str("sackOK"),
            OptionSpec::Sack(blocks) => {
                f.write_str("sack")?;
                blocks.as_slice().iter().try_for_each(|(left, right)| write!(f, " {left}:{right}"))
            }
            OptionSpec::Timestamps { value, echo } => write!(f, "TS val {value} ecr {echo}"),
            OptionSpec::Mptcp(option) => option.fmt(f),
            OptionSpec::Other { name, .. } => f.write_str(name),
        }
    }
}

#[cfg(test)]
mod tests;
