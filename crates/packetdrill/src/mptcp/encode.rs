//! Options of a script as they stand on the wire.

use ackclock_mptcp::keys;
use ackclock_packet::{AddAddress, AddressIds, Capable, DataNumber, Dss, Mapping, MptcpOption, MptcpOptions, Segment};

use super::{MPTCP, Names, Side, Subflow, options_of};
use crate::ast::{
    AddressHmac, AddressSpec, ChecksumSpec, Count, DssSpec, HmacSpec, KeySpec, MptcpSpec, NumberSpec, OptionSpec,
    Options, TcpSpec, TokenSpec,
};

/// The random number in MP_JOIN of a script that writes none.
const NONCE: u32 = 42;
/// The first key that the runner chooses; each further one is the next.
const FIRST_KEY: u64 = 0x5c31_97a0_0000_0001;

/// The segment that an option is in.
#[derive(Clone, Copy)]
struct Place<'a> {
    side: Side,
    spec: &'a TcpSpec,
    /// The option that the host sent in its place: values that the script leaves open are taken
    /// from it.
    actual: Option<&'a MptcpOption>,
}

impl Names {
    /// Adds the MPTCP options of a packet that arrives to its segment.
    pub(crate) fn add_options(
        &mut self,
        spec: &TcpSpec,
        subflow: &mut Subflow,
        segment: &mut Segment,
    ) -> Result<(), String> {
        self.note_inbound(spec);
        for option in options_of(spec) {
            let place = Place { side: Side::Script, spec, actual: None };
            let bytes = self.encode(option, place, subflow)?;
            segment.mptcp.push_bytes(&bytes);
            self.note_written(option, place, subflow);
        }
        Ok(())
    }

    /// The expected packet with its MPTCP options as they should be on the wire, given what is
    /// there. Variables that it introduces have a value from here on.
    pub(crate) fn resolve(&mut self, expected: &TcpSpec, actual: &TcpSpec, subflow: &mut Subflow) -> TcpSpec {
        let mut resolved = expected.clone();
        let (Options::List(list), Options::List(sent)) = (&mut resolved.options, &actual.options) else {
            return resolved;
        };
        let mut sent = sent.iter().filter_map(|option| match option {
            OptionSpec::Other { kind: MPTCP, data, .. } => Some(decoded(data)),
            _ => None,
        });
        for option in list {
            let OptionSpec::Mptcp(spec) = option else { continue };
            let actual = sent.next().flatten();
            let place = Place { side: Side::Host, spec: expected, actual: actual.as_ref() };
            let data = match self.encode(spec, place, subflow) {
                Ok(bytes) => bytes.get(2..).unwrap_or_default().to_vec(),
                // The host sent another option, or the names in this one are unknown: no option has
                // no data.
                Err(_) => Vec::new(),
            };
            *option = OptionSpec::Other { name: spec.to_string(), kind: MPTCP, data };
        }
        resolved
    }

    fn encode(&mut self, option: &MptcpSpec, place: Place<'_>, subflow: &Subflow) -> Result<Vec<u8>, String> {
        Ok(encoded(&match option {
            MptcpSpec::Capable { version, flags, keys, data_len } => {
                return self.encode_capable((*version, *flags), keys, *data_len, place);
            }
            MptcpSpec::Priority { backup, address_id } => {
                let mut bytes = encoded(&MptcpOption::Priority { backup: *backup });
                if let Some(id) = address_id {
                    bytes.push(*id);
                    bytes[1] += 1;
                }
                return Ok(bytes);
            }
            MptcpSpec::JoinSyn { .. } | MptcpSpec::JoinSynAck { .. } | MptcpSpec::JoinAck { .. } => {
                self.encode_join(option, place, subflow)?
            }
            MptcpSpec::Dss(dss) => MptcpOption::Dss(self.encode_dss(dss, place)?),
            MptcpSpec::AddAddress { address_id, address, port, hmac } => {
                self.encode_address(*address_id, address, *port, *hmac, place)?
            }
            MptcpSpec::RemoveAddress(ids) => MptcpOption::RemoveAddress(AddressIds::new(ids)),
            MptcpSpec::Fail(count) => {
                let given = match place.actual {
                    Some(MptcpOption::Fail { sequence }) => Some(*sequence),
                    _ => None,
                };
                MptcpOption::Fail { sequence: self.count(count, place.side, given)? }
            }
            MptcpSpec::FastClose(None) => MptcpOption::FastClose { key: self.key_of(place.side.peer())? },
            MptcpSpec::FastClose(Some(key)) => MptcpOption::FastClose { key: self.known_key(key)? },
            MptcpSpec::Reset { transient, reason } => MptcpOption::Reset { transient: *transient, reason: *reason },
        }))
    }

    /// The value of a key that has one.
    fn known_key(&self, key: &KeySpec) -> Result<u64, String> {
        match key {
            KeySpec::Number(value) | KeySpec::Assigned(_, value) => Ok(*value),
            KeySpec::Named(name) => self.named_key(name),
        }
    }

    fn named_key(&self, name: &str) -> Result<u64, String> {
        self.keys.get(name).copied().ok_or_else(|| format!("no packet has said which key `{name}` is"))
    }

    /// The value of a key in MP_CAPABLE, which gives one to its name. Where the host sent one,
    /// that is what a new name stands for.
    fn key_in_capable(&mut self, key: &KeySpec, actual: Option<u64>) -> u64 {
        match key {
            KeySpec::Number(value) => *value,
            KeySpec::Assigned(name, value) => {
                self.keys.insert(name.clone(), *value);
                *value
            }
            KeySpec::Named(name) => {
                let drawn = FIRST_KEY.wrapping_add(self.keys.len() as u64);
                *self.keys.entry(name.clone()).or_insert(actual.unwrap_or(drawn))
            }
        }
    }

    fn encode_capable(
        &mut self,
        (version, flags): (u8, u8),
        keys: &[KeySpec],
        data_len: Option<u16>,
        place: Place<'_>,
    ) -> Result<Vec<u8>, String> {
        let sent = match place.actual {
            Some(MptcpOption::Capable(capable)) => [capable.sender_key, capable.receiver_key],
            Some(_) => return Err("it is another option".to_owned()),
            None => [None; 2],
        };
        let mut values = keys.iter().zip(sent).map(|(key, sent)| self.key_in_capable(key, sent));
        let capable =
            Capable { version, sender_key: values.next(), receiver_key: values.next(), data_len, ..Capable::default() };
        let mut bytes = encoded(&MptcpOption::Capable(capable));
        if let Some(byte) = bytes.get_mut(3) {
            *byte = flags;
        }
        Ok(bytes)
    }

    fn encode_join(&mut self, option: &MptcpSpec, place: Place<'_>, subflow: &Subflow) -> Result<MptcpOption, String> {
        let side = place.side;
        let (sent_id, sent_nonce) = match place.actual {
            Some(
                MptcpOption::JoinSyn { address_id, nonce, .. } | MptcpOption::JoinSynAck { address_id, nonce, .. },
            ) => (Some(*address_id), Some(*nonce)),
            _ => (None, None),
        };
        let own_id = subflow.ends.map_or(0, |[_, remote]| self.note_remote(remote));
        match option {
            MptcpSpec::JoinSyn { backup, address_id, token, nonce } => Ok(MptcpOption::JoinSyn {
                backup: *backup,
                address_id: address_id.or(sent_id).unwrap_or(own_id),
                token: match token {
                    TokenSpec::Auto => keys::token(self.key_of(side.peer())?),
                    TokenSpec::OfKey(name) => keys::token(self.named_key(name)?),
                    TokenSpec::Number(token) => *token,
                },
                nonce: nonce.or(sent_nonce).unwrap_or(NONCE),
            }),
            MptcpSpec::JoinSynAck { backup, address_id, hmac, nonce } => {
                let nonce = nonce.or(sent_nonce).unwrap_or(NONCE);
                let compared = address_id.filter(|_| self.check_address_id || side == Side::Script);
                let nonces = [nonce, peer_nonce(subflow, side)?];
                Ok(MptcpOption::JoinSynAck {
                    backup: *backup,
                    address_id: compared.or(sent_id).unwrap_or(own_id),
                    hmac: match hmac {
                        HmacSpec::Number(number) => *number,
                        _ => keys::short_join_hmac(self.keys_of(hmac, side)?, nonces),
                    },
                    nonce,
                })
            }
            MptcpSpec::JoinAck { hmac: HmacSpec::Number(number) } => {
                let mut hmac = [0; 20];
                hmac[..8].copy_from_slice(&number.to_be_bytes());
                Ok(MptcpOption::JoinAck { hmac })
            }
            MptcpSpec::JoinAck { hmac } => {
                let own = subflow.nonce(side).ok_or("there was no mp_join_syn")?;
                let nonces = [own, peer_nonce(subflow, side)?];
                Ok(MptcpOption::JoinAck { hmac: keys::join_hmac(self.keys_of(hmac, side)?, nonces) })
            }
            _ => Err("it is another option".to_owned()),
        }
    }

    /// The keys of a proof, the sender's first.
    fn keys_of(&self, hmac: &HmacSpec, side: Side) -> Result<[u64; 2], String> {
        match hmac {
            HmacSpec::OfKeys(own, peer) => Ok([self.named_key(own)?, self.named_key(peer)?]),
            HmacSpec::Auto | HmacSpec::Number(_) => Ok([self.key_of(side)?, self.key_of(side.peer())?]),
        }
    }

    fn encode_dss(&self, dss: &DssSpec, place: Place<'_>) -> Result<Dss, String> {
        let sent = match place.actual {
            Some(MptcpOption::Dss(sent)) => *sent,
            _ => Dss::default(),
        };
        let side = place.side;
        let ack = match &dss.ack {
            Some(number) => Some(self.number(number, side.peer(), sent.ack)?),
            None => None,
        };
        let Some(sequence) = &dss.sequence else { return Ok(Dss { ack, mapping: None, fin: dss.fin }) };
        let payload = place.spec.payload;
        let own_len = payload.saturating_add(u32::from(dss.fin)).min(0xffff) as u16;
        let own_place = if payload > 0 { place.spec.seq } else { 0 };
        let mapping = Mapping {
            sequence: self.number(sequence, side, sent.mapping.map(|mapping| mapping.sequence))?,
            subflow_sequence: dss
                .subflow_sequence
                .or(sent.mapping.map(|mapping| mapping.subflow_sequence))
                .unwrap_or(own_place),
            len: dss.len.or(sent.mapping.map(|mapping| mapping.len)).unwrap_or(own_len),
            checksum: match (dss.checksum, side) {
                (ChecksumSpec::None, _) => None,
                (ChecksumSpec::Number(checksum), _) => Some(checksum),
                (ChecksumSpec::Auto, Side::Host) => sent.mapping.and_then(|mapping| mapping.checksum),
                (ChecksumSpec::Auto, Side::Script) => {
                    return Err("checksums of data are not computed: write `nocs`, or `cksum=N`".to_owned());
                }
            },
        };
        Ok(Dss { ack, mapping: Some(mapping), fin: dss.fin })
    }

    /// A number of the data sequence space of `side`.
    fn number(&self, number: &NumberSpec, side: Side, sent: Option<DataNumber>) -> Result<DataNumber, String> {
        if let (Count::Auto, Some(sent)) = (&number.count, sent) {
            return Ok(sent);
        }
        let count = self.count(&number.count, side, None)?;
        Ok(if number.long { DataNumber::Long(count) } else { DataNumber::Short(count as u32) })
    }

    fn count(&self, count: &Count, side: Side, sent: Option<u64>) -> Result<u64, String> {
        let initial = || self.key_of(side).map(keys::initial_sequence);
        match (count, sent) {
            (Count::Auto, Some(sent)) => Ok(sent),
            // The number after all that were used.
            (Count::Auto, None) => Ok(initial()?.wrapping_add(1).wrapping_add(self.progress[side as usize].used)),
            (Count::Relative(number), _) => Ok(initial()?.wrapping_add(*number)),
            (Count::OfKey(name, more), _) => Ok(keys::initial_sequence(self.named_key(name)?).wrapping_add(*more)),
        }
    }

    fn encode_address(
        &mut self,
        address_id: Option<u8>,
        spec: &AddressSpec,
        port: Option<u16>,
        hmac: AddressHmac,
        place: Place<'_>,
    ) -> Result<MptcpOption, String> {
        let sent = match place.actual {
            Some(MptcpOption::AddAddress(sent)) => Some(*sent),
            _ => None,
        };
        let known = spec.value.or(self.address(&spec.name)).or(sent.map(|sent| sent.address));
        let address = known.or(self.next_remote()).ok_or("there is no connection whose address could be announced")?;
        self.name_address(&spec.name, address);
        if place.side == Side::Script && hmac != AddressHmac::Echo {
            self.note_remote(address);
        }
        let registered = self.remotes.iter().find(|(_, known)| *known == address).map(|(id, _)| *id);
        let id = address_id.or(sent.map(|sent| sent.id)).or(registered).unwrap_or(1);
        let hmac = match hmac {
            AddressHmac::Echo => None,
            AddressHmac::Number(number) => Some(number),
            AddressHmac::Auto => {
                let keys = [self.key_of(place.side)?, self.key_of(place.side.peer())?];
                Some(keys::address_hmac(keys, id, address, port))
            }
        };
        Ok(MptcpOption::AddAddress(AddAddress { id, address, port, hmac }))
    }

    /// Takes over what an option that the script has sent says.
    fn note_written(&mut self, option: &MptcpSpec, place: Place<'_>, subflow: &mut Subflow) {
        match option {
            MptcpSpec::Capable { keys, data_len, .. } => {
                if let Some(key) = keys.first().and_then(|key| self.known_key(key).ok()) {
                    self.own_keys[Side::Script as usize].get_or_insert(key);
                }
                self.note_data(Side::Script, data_len.unwrap_or(0).into());
            }
            MptcpSpec::JoinSyn { nonce, .. } | MptcpSpec::JoinSynAck { nonce, .. } => {
                subflow.nonces[Side::Script as usize] = Some(nonce.unwrap_or(NONCE));
            }
            MptcpSpec::Dss(DssSpec { sequence: Some(NumberSpec { count, .. }), len, fin, .. }) => {
                let used = self.progress[Side::Script as usize].used;
                let first = if let Count::Relative(number) = count { *number } else { used.wrapping_add(1) };
                let own_len = place.spec.payload.saturating_add(u32::from(*fin));
                let len = len.map_or(u64::from(own_len), u64::from);
                self.note_data(Side::Script, first.wrapping_add(len).wrapping_sub(1));
            }
            _ => {}
        }
    }
}

fn peer_nonce(subflow: &Subflow, side: Side) -> Result<u32, String> {
    subflow.nonce(side.peer()).ok_or_else(|| "there was no mp_join_syn of the other side".to_owned())
}

/// Kind, length and content.
fn encoded(option: &MptcpOption) -> Vec<u8> {
    let mut one = MptcpOptions::default();
    one.push(option);
    one.encoded().next().map(<[u8]>::to_vec).unwrap_or_default()
}

/// An option from what is behind its length.
pub(super) fn decoded(data: &[u8]) -> Option<MptcpOption> {
    let len = u8::try_from(data.len() + 2).ok()?;
    MptcpOption::decode(&[&[MPTCP, len], data].concat())
}
