//! A script's names for the parts of an MPTCP connection: variables for keys and addresses, and the
//! numbers of the data sequence space, which count from the initial numbers that follow from keys.
//!
//! A key that the script sets or that it leaves open in a packet that arrives is the script's; the
//! host's key gets its name where a packet of the host with it is expected. As in packetdrill, a
//! script has one MPTCP connection at a time; its subflows are told apart by addresses, or else the
//! newest one is meant.
//!
//! # Source
//! `mptcp.c`, `parser.y` and `run_packet.c` of multipath-tcp/packetdrill; RFC 8684.
//!
//! # Departures
//! `address_id` of an expected `mp_join_syn_ack` is compared, unless `check_address_id` is off;
//! packetdrill takes over whatever is there.

mod describe;
mod encode;
mod kernel;
mod socket;

use std::collections::BTreeMap;
use std::net::IpAddr;

use ackclock_packet::{Flags, MptcpOption, Segment};

pub(crate) use self::describe::option_of;
pub(crate) use self::socket::{MptcpHost, Multipath, MultipathListener};
use crate::ast::{ChecksumSpec, DssSpec, MptcpSpec, OptionSpec, Options, TcpSpec};

/// Kind of the options (IANA registry "TCP Option Kind Numbers").
pub(crate) const MPTCP: u8 = 30;

/// The sending side.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Side {
    Script,
    Host,
}

impl Side {
    fn peer(self) -> Side {
        match self {
            Side::Script => Side::Host,
            Side::Host => Side::Script,
        }
    }
}

/// A subflow, as the script sees it.
#[derive(Clone, Debug, Default)]
pub(crate) struct Subflow {
    /// The host's address and the other one, if it is a subflow of an MPTCP connection.
    pub(crate) ends: Option<[IpAddr; 2]>,
    /// The host has opened it, and the script has not expected that yet.
    pub(crate) is_unexpected: bool,
    /// The random numbers of MP_JOIN: of the script, and of the host.
    nonces: [Option<u32>; 2],
}

impl Subflow {
    /// A subflow between these addresses of the host and the script.
    pub(crate) fn between(ends: [IpAddr; 2]) -> Subflow {
        Subflow { ends: Some(ends), ..Subflow::default() }
    }

    fn nonce(&self, side: Side) -> Option<u32> {
        self.nonces[side as usize]
    }

    /// Takes over what a segment that the host sends says of it.
    pub(crate) fn note_sent(&mut self, segment: &Segment) {
        for option in segment.mptcp.iter() {
            if let MptcpOption::JoinSyn { nonce, .. } | MptcpOption::JoinSynAck { nonce, .. } = option {
                self.nonces[Side::Host as usize] = Some(nonce);
            }
        }
    }
}

/// Where data of one side ends, so far.
#[derive(Clone, Copy, Debug, Default)]
struct Progress {
    /// Numbers of the data sequence space that are used, after the initial one.
    used: u64,
}

/// The names that a script has given, and the connection that they belong to.
#[derive(Debug)]
pub(crate) struct Names {
    keys: BTreeMap<String, u64>,
    addresses: BTreeMap<String, IpAddr>,
    /// The keys of the connection: the script's and the host's.
    own_keys: [Option<u64>; 2],
    progress: [Progress; 2],
    /// The script's addresses, with their numbers.
    remotes: Vec<(u8, IpAddr)>,
    /// `address_id` of an expected `mp_join_syn_ack` is compared.
    check_address_id: bool,
}

impl Names {
    pub(crate) fn new(check_address_id: bool) -> Names {
        Names {
            keys: BTreeMap::new(),
            addresses: BTreeMap::new(),
            own_keys: [None; 2],
            progress: [Progress::default(); 2],
            remotes: Vec::new(),
            check_address_id,
        }
    }

    fn key_of(&self, side: Side) -> Result<u64, String> {
        let whose = match side {
            Side::Script => "the script",
            Side::Host => "the host",
        };
        self.own_keys[side as usize].ok_or_else(|| format!("the key of {whose} is not known yet"))
    }

    /// Another connection begins.
    fn forget_connection(&mut self) {
        self.own_keys = [None; 2];
        self.progress = [Progress::default(); 2];
    }

    /// The address that a name stands for.
    pub(crate) fn address(&self, name: &str) -> Option<IpAddr> {
        self.addresses.get(name).copied()
    }

    /// Gives a name to an address, unless it has one that differs.
    pub(crate) fn name_address(&mut self, name: &str, address: IpAddr) -> bool {
        *self.addresses.entry(name.to_owned()).or_insert(address) == address
    }

    /// The first name of an address.
    pub(crate) fn name_of(&self, address: IpAddr) -> Option<&str> {
        self.addresses.iter().find(|(_, known)| **known == address).map(|(name, _)| name.as_str())
    }

    /// Notes an address of the script.
    pub(crate) fn note_remote(&mut self, address: IpAddr) -> u8 {
        if let Some(&(id, _)) = self.remotes.iter().find(|(_, known)| *known == address) {
            return id;
        }
        let id = self.remotes.iter().map(|(id, _)| id.saturating_add(1)).max().unwrap_or(0);
        self.remotes.push((id, address));
        id
    }

    /// An address that the script has not used.
    pub(crate) fn next_remote(&self) -> Option<IpAddr> {
        let last = self.remotes.iter().map(|(_, address)| *address).max()?;
        Some(following(last, 1))
    }

    /// Takes over what a segment that the host sends says of the connection.
    pub(crate) fn note_sent(&mut self, segment: &Segment) {
        let (syn, ack) = (segment.flags.contains(Flags::SYN), segment.flags.contains(Flags::ACK));
        for option in segment.mptcp.iter() {
            match option {
                MptcpOption::Capable(capable) => {
                    if syn && !ack {
                        self.forget_connection();
                    }
                    if let Some(key) = capable.sender_key {
                        self.own_keys[Side::Host as usize].get_or_insert(key);
                    }
                    self.note_data(Side::Host, capable.data_len.unwrap_or(0).into());
                }
                MptcpOption::Dss(dss) => {
                    if let (Some(mapping), Ok(key)) = (dss.mapping, self.key_of(Side::Host)) {
                        let initial = ackclock_mptcp::keys::initial_sequence(key);
                        let near = initial.wrapping_add(self.progress[Side::Host as usize].used);
                        let first = mapping.sequence.near(near).wrapping_sub(initial);
                        self.note_data(Side::Host, first.wrapping_add(u64::from(mapping.len)).wrapping_sub(1));
                    }
                }
                _ => {}
            }
        }
    }

    /// A side has sent data, up to this number of its data sequence space.
    fn note_data(&mut self, side: Side, used: u64) {
        let progress = &mut self.progress[side as usize];
        // Numbers before the initial one are no data.
        if used < 1 << 62 {
            progress.used = progress.used.max(used);
        }
    }

    /// Notes a packet of the script, which may open a connection with MP_CAPABLE.
    pub(crate) fn note_inbound(&mut self, spec: &TcpSpec) {
        let (syn, ack) = (spec.flags.contains(Flags::SYN), spec.flags.contains(Flags::ACK));
        let is_capable = options_of(spec).any(|option| matches!(option, MptcpSpec::Capable { .. }));
        if syn && !ack && is_capable {
            self.forget_connection();
        }
    }
}

/// The MPTCP options of a packet.
pub(crate) fn options_of(spec: &TcpSpec) -> impl Iterator<Item = &MptcpSpec> {
    let list = match &spec.options {
        Options::List(list) => list.as_slice(),
        Options::Any => &[],
    };
    list.iter().filter_map(|option| match option {
        OptionSpec::Mptcp(option) => Some(&**option),
        _ => None,
    })
}

/// Returns `true` if a packet opens a further subflow.
pub(crate) fn is_join(spec: &TcpSpec) -> bool {
    let (syn, ack) = (spec.flags.contains(Flags::SYN), spec.flags.contains(Flags::ACK));
    syn && !ack && options_of(spec).any(|option| matches!(option, MptcpSpec::JoinSyn { .. }))
}

/// Returns `true` if a segment opens a further subflow.
pub(crate) fn joins(segment: &Segment) -> bool {
    segment.mptcp.iter().any(|option| matches!(option, MptcpOption::JoinSyn { .. }))
}

/// The feature in a packet's options that the endpoint lacks.
pub(crate) fn unsupported(spec: &TcpSpec) -> Option<&'static str> {
    options_of(spec).find_map(|option| match option {
        MptcpSpec::Dss(DssSpec { sequence: Some(_), checksum, .. }) if *checksum != ChecksumSpec::None => {
            Some("checksums of MPTCP data (a mapping without `nocs`)")
        }
        MptcpSpec::Fail(_) => Some("the MPTCP option MP_FAIL"),
        _ => None,
    })
}

/// The address that lies `more` behind.
pub(crate) fn following(address: IpAddr, more: u8) -> IpAddr {
    match address {
        IpAddr::V4(address) => IpAddr::V4((u32::from(address).wrapping_add(more.into())).into()),
        IpAddr::V6(address) => IpAddr::V6((u128::from(address).wrapping_add(more.into())).into()),
    }
}
