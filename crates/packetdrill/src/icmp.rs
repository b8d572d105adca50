//! ICMP messages of a script: their names, and their meaning for the host.
//!
//! # Source
//! `icmp_packet.c` of google/packetdrill, and the names that nplab/packetdrill adds.

use ackclock_tcp::IcmpError;

use crate::ast::IcmpSpec;

/// Bytes of a TCP header without options, which a message quotes.
const TCP_HEADER: u32 = 20;

/// A type: its name and number, and those of its codes.
type Kind = (&'static str, u8, &'static [(&'static str, u8)]);

/// RFC 792, RFC 1122, RFC 1812.
const V4: &[Kind] = &[
    (
        "unreachable",
        3,
        &[
            ("net_unreachable", 0),
            ("host_unreachable", 1),
            ("protocol_unreachable", 2),
            ("port_unreachable", 3),
            ("frag_needed", 4),
            ("source_route_failed", 5),
            ("net_unknown", 6),
            ("host_unknown", 7),
            ("source_host_isolated", 8),
            ("net_prohibited", 9),
            ("host_prohibited", 10),
            ("net_unreachable_for_tos", 11),
            ("host_unreachable_for_tos", 12),
            ("packet_filtered", 13),
            ("precedence_violation", 14),
            ("precedence_cutoff", 15),
        ],
    ),
    ("source_quench", 4, &[]),
    ("redirect", 5, &[]),
    ("time_exceeded", 11, &[("ttl_exceeded_in_transit", 0), ("frag_reass_exceeded", 1)]),
    ("parameter_problem", 12, &[]),
];

/// RFC 4443.
const V6: &[Kind] = &[
    (
        "unreachable",
        1,
        &[
            ("no_route", 0),
            ("net_unreachable", 0),
            ("admin_prohibited", 1),
            ("not_neighbour", 2),
            ("address_unreachable", 3),
            ("port_unreachable", 4),
        ],
    ),
    ("packet_too_big", 2, &[]),
    ("time_exceeded", 3, &[("exceeded_hop_limit", 0), ("exceeded_frag_time", 1)]),
    ("parameter_problem", 4, &[("header_field", 0), ("unknown_next_header", 1), ("unknown_option", 2)]),
];

/// Why a message of a script is none.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) enum IcmpMistake {
    /// The message is impossible.
    Invalid(String),
    /// The message exists, but does nothing to a connection.
    Unsupported(String),
}

/// The number in `prefix_N`.
fn numbered(name: &str, prefix: &str) -> Option<u8> {
    name.strip_prefix(prefix)?.parse().ok()
}

/// Type and code.
fn numbers(spec: &IcmpSpec, v6: bool) -> Result<(u8, u8), IcmpMistake> {
    let kinds = if v6 { V6 } else { V4 };
    let named = kinds.iter().find(|(name, ..)| *name == spec.kind);
    let (kind, codes) = match (numbered(&spec.kind, "type_"), named) {
        (Some(kind), _) => (kind, &[][..]),
        (None, Some(&(_, kind, codes))) => (kind, codes),
        (None, None) if spec.kind.ends_with("_request") || spec.kind.ends_with("_reply") => {
            return Err(IcmpMistake::Unsupported(format!("ICMP messages of type {}", spec.kind)));
        }
        (None, None) => return Err(IcmpMistake::Invalid(format!("there is no ICMP type `{}`", spec.kind))),
    };
    let Some(name) = &spec.code else { return Ok((kind, 0)) };
    let code = numbered(name, "code_").or_else(|| codes.iter().find(|(known, _)| known == name).map(|&(_, code)| code));
    code.map(|code| (kind, code))
        .ok_or_else(|| IcmpMistake::Invalid(format!("there is no code `{name}` of ICMP type `{}`", spec.kind)))
}

/// The error that `spec` reports about a connection whose first sequence number is `isn`. Without a
/// quotation it is about the SYN, as in packetdrill.
pub(crate) fn error_of(spec: &IcmpSpec, v6: bool, isn: u32) -> Result<IcmpError, IcmpMistake> {
    let (kind, code) = numbers(spec, v6)?;
    let has_mtu = if v6 { (kind, code) == (2, 0) } else { (kind, code) == (3, 4) };
    let most = if v6 { u32::MAX } else { u32::from(u16::MAX) };
    match spec.mtu {
        Some(_) if !has_mtu => {
            return Err(IcmpMistake::Invalid("`mtu` is for `unreachable frag_needed` and `packet_too_big`".to_owned()));
        }
        Some(mtu) if mtu > most => {
            return Err(IcmpMistake::Invalid(format!("an MTU of {mtu}, in a field of at most {most}")));
        }
        _ => {}
    }
    let (seq, payload) = spec.quoted.unwrap_or((0, 0));
    let header = if v6 { 40 } else { 20 };
    Ok(IcmpError {
        v6,
        kind,
        code,
        mtu: spec.mtu.unwrap_or(0),
        sequence: isn.wrapping_add(seq),
        length: header + TCP_HEADER + payload,
    })
}

#[cfg(test)]
mod tests {
    use super::*;

    fn spec(kind: &str, code: Option<&str>, mtu: Option<u32>) -> IcmpSpec {
        IcmpSpec { kind: kind.to_owned(), code: code.map(str::to_owned), mtu, quoted: Some((1, 1460)) }
    }

    #[test]
    fn names_and_numbers() {
        // RFC 792: type 3, code 4; RFC 4443: type 4, code 1. 20 + 20 + 1460 bytes, or 40 + 20 +
        // 1460, are quoted.
        let told = error_of(&spec("unreachable", Some("frag_needed"), Some(1200)), false, 99);
        let wanted = IcmpError { v6: false, kind: 3, code: 4, mtu: 1200, sequence: 100, length: 1500 };
        assert_eq!(told, Ok(wanted));
        let told = error_of(&spec("parameter_problem", Some("unknown_next_header"), None), true, u32::MAX);
        assert_eq!(told, Ok(IcmpError { v6: true, kind: 4, code: 1, mtu: 0, sequence: 0, length: 1520 }));
        let told = error_of(&spec("type_11", Some("code_1"), None), false, 0).map(|error| (error.kind, error.code));
        assert_eq!(told, Ok((11, 1)));
    }

    #[test]
    fn what_is_none() {
        for (kind, code, mtu, v6) in [
            ("unreachable", Some("frag_needed"), Some(1200), true),
            ("unreachable", Some("host_unreachable"), Some(1200), false),
            ("unreachable", Some("frag_needed"), Some(70_000), false),
            ("packet_too_big", None, Some(1280), false),
            ("type_300", None, None, false),
            ("unreachable", Some("code_300"), None, false),
        ] {
            let told = error_of(&spec(kind, code, mtu), v6, 0);
            assert!(matches!(told, Err(IcmpMistake::Invalid(_))), "{kind} {code:?} {mtu:?}: {told:?}");
        }
        let told = error_of(&spec("echo_request", None, None), false, 0);
        assert!(matches!(told, Err(IcmpMistake::Unsupported(_))), "{told:?}");
    }
}
