//! MPTCP options with one thing changed.
//!
//! Values that the runner chooses (`auto`, and those that are not written) cannot be wrong and are
//! not changed, nor values that are not compared: fields of a mapping without a data sequence
//! number.

use ackclock_packetdrill::ast::{
    AddressHmac, Count, DssSpec, HmacSpec, KeySpec, MptcpSpec, NumberSpec, OptionSpec, Options, TcpSpec, TokenSpec,
};

/// A key that no script uses.
const OTHER_KEY: KeySpec = KeySpec::Number(0x0bad_0bad);
/// A proof of nothing.
const WRONG: HmacSpec = HmacSpec::Number(0x0bad_0bad);

/// Returns `true` if a packet is of the handshake of a further subflow.
pub(crate) fn joins(tcp: &TcpSpec) -> bool {
    let Options::List(list) = &tcp.options else { return false };
    list.iter().any(|option| match option {
        OptionSpec::Mptcp(option) => matches!(**option, MptcpSpec::JoinSyn { .. } | MptcpSpec::JoinSynAck { .. }),
        _ => false,
    })
}

/// The option with one mistake, and what was done to it.
pub(crate) fn changed(option: &MptcpSpec) -> Vec<(&'static str, MptcpSpec)> {
    match option {
        MptcpSpec::Capable { version, flags, keys, data_len } => capable(*version, *flags, keys, *data_len),
        MptcpSpec::Dss(dss) => dsses(dss).into_iter().map(|(kind, dss)| (kind, MptcpSpec::Dss(dss))).collect(),
        MptcpSpec::JoinSyn { .. } | MptcpSpec::JoinSynAck { .. } | MptcpSpec::JoinAck { .. } => join(option),
        MptcpSpec::AddAddress { address_id, address, port, hmac } => {
            let with =
                |address_id, port, hmac| MptcpSpec::AddAddress { address_id, address: address.clone(), port, hmac };
            let proof = if *hmac == AddressHmac::Echo { AddressHmac::Auto } else { AddressHmac::Echo };
            let mut out = vec![
                ("ADD_ADDR: echo", with(*address_id, *port, proof)),
                ("ADD_ADDR: port", with(*address_id, Some(port.unwrap_or(80) ^ 1), *hmac)),
            ];
            if *hmac == AddressHmac::Auto {
                out.push(("ADD_ADDR: proof", with(*address_id, *port, AddressHmac::Number(1))));
            }
            if let Some(id) = address_id {
                out.push(("ADD_ADDR: number", with(Some(id ^ 1), *port, *hmac)));
            }
            out
        }
        MptcpSpec::Priority { backup, address_id } => {
            vec![("MP_PRIO", MptcpSpec::Priority { backup: !backup, address_id: *address_id })]
        }
        MptcpSpec::FastClose(_) => vec![("MP_FASTCLOSE", MptcpSpec::FastClose(Some(OTHER_KEY)))],
        MptcpSpec::Reset { transient, reason } => vec![
            ("MP_TCPRST", MptcpSpec::Reset { transient: !transient, reason: *reason }),
            ("MP_TCPRST", MptcpSpec::Reset { transient: *transient, reason: reason ^ 1 }),
        ],
        MptcpSpec::RemoveAddress(_) | MptcpSpec::Fail(_) => Vec::new(),
    }
}

fn capable(version: u8, flags: u8, keys: &[KeySpec], data_len: Option<u16>) -> Vec<(&'static str, MptcpSpec)> {
    let with = |version, flags, keys: &[KeySpec], data_len| MptcpSpec::Capable {
        version,
        flags,
        keys: keys.to_vec(),
        data_len,
    };
    let mut out = vec![
        ("MP_CAPABLE: version", with(version ^ 1, flags, keys, data_len)),
        ("MP_CAPABLE: flags", with(version, flags ^ 1, keys, data_len)),
        ("MP_CAPABLE: flags", with(version, flags ^ 0x40, keys, data_len)),
    ];
    if let Some((_, fewer)) = keys.split_last() {
        out.push(("MP_CAPABLE: keys", with(version, flags, fewer, None)));
        let mut others = keys.to_vec();
        others[0] = OTHER_KEY;
        out.push(("MP_CAPABLE: keys", with(version, flags, &others, data_len)));
    }
    if let Some(len) = data_len {
        out.push(("MP_CAPABLE: length", with(version, flags, keys, Some(len + 1))));
        out.push(("MP_CAPABLE: length", with(version, flags, keys, None)));
    }
    out
}

fn join(option: &MptcpSpec) -> Vec<(&'static str, MptcpSpec)> {
    let mut out = Vec::new();
    let mut give = |kind, change: &dyn Fn(&mut MptcpSpec)| {
        let mut other = option.clone();
        change(&mut other);
        if other != *option {
            out.push((kind, other));
        }
    };
    give("MP_JOIN: backup", &|option| {
        if let MptcpSpec::JoinSyn { backup, .. } | MptcpSpec::JoinSynAck { backup, .. } = option {
            *backup = !*backup;
        }
    });
    give("MP_JOIN: number", &|option| {
        if let MptcpSpec::JoinSyn { address_id: Some(id), .. } | MptcpSpec::JoinSynAck { address_id: Some(id), .. } =
            option
        {
            *id ^= 1;
        }
    });
    give("MP_JOIN: token or proof", &|option| match option {
        MptcpSpec::JoinSyn { token, .. } => *token = TokenSpec::Number(0x0bad_0bad),
        MptcpSpec::JoinSynAck { hmac, .. } | MptcpSpec::JoinAck { hmac } => *hmac = WRONG,
        _ => {}
    });
    out
}

fn dsses(dss: &DssSpec) -> Vec<(&'static str, DssSpec)> {
    let mut out = Vec::new();
    let mut give = |kind, change: &dyn Fn(&mut DssSpec)| {
        let mut other = dss.clone();
        change(&mut other);
        out.push((kind, other));
    };
    if dss.ack.is_some() {
        give("DSS: no data ACK", &|dss| dss.ack = None);
        give("DSS: bits", &|dss| dss.ack.iter_mut().for_each(|number| number.long = !number.long));
        give("DSS: data ACK", &|dss| dss.ack.iter_mut().for_each(increase));
    }
    if dss.sequence.is_some() {
        give("DSS: no mapping", &|dss| (dss.sequence, dss.fin) = (None, false));
        give("DSS: bits", &|dss| dss.sequence.iter_mut().for_each(|number| number.long = !number.long));
        give("DSS: sequence", &|dss| dss.sequence.iter_mut().for_each(increase));
        if dss.subflow_sequence.is_some() {
            give("DSS: place", &|dss| dss.subflow_sequence.iter_mut().for_each(|place| *place += 1));
        }
        if dss.len.is_some() {
            give("DSS: length", &|dss| dss.len.iter_mut().for_each(|len| *len += 1));
        }
    }
    give("DSS: DATA_FIN", &|dss| dss.fin = !dss.fin);
    out
}

fn increase(number: &mut NumberSpec) {
    if let Count::Relative(count) = &mut number.count {
        *count += 1;
    }
}
