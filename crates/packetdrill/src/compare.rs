//! Compares packets sent with those that the script expects.
//!
//! # Source
//! packetdrill's `run_packet.c` (google/packetdrill): `verify_tcp`, `verify_packet_fragments`,
//! `aggregate_packets`, `verify_outbound_live_tcp_options`.
//!
//! # Departures
//! Ports are not compared, as in packetdrill. packetdrill does not compare TSecr; here it is
//! compared, unless `check_ts_ecr` is off, since TSval of inbound packets is the script's own. Of
//! an expectation that stands for several segments no segment may be longer than the first.

use ackclock_packet::Flags;
use ackclock_units::{Ecn, Span};

use crate::ast::{EcnSpec, OptionSpec, Options, SeqForm, TcpSpec};
use crate::mptcp::MPTCP;
use crate::numbers::Connection;

/// The strictness of a comparison.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Strictness {
    pub(crate) ignore_psh: bool,
    /// The unit of TSval in the script; zero if TSval is not compared.
    pub(crate) ts_tick: Span,
    /// TSecr is compared.
    pub(crate) ts_echo: bool,
    pub(crate) tolerance: Span,
}

/// Flags without those in `without`.
fn masked(flags: Flags, without: Flags) -> u16 {
    flags.bits() & !without.bits()
}

/// The error in a further segment of an expectation that stands for several: `None` if it continues
/// `before`.
pub(crate) fn continues(before: &TcpSpec, next: &TcpSpec) -> Option<String> {
    let loose = Flags::FIN | Flags::PSH | Flags::CWR;
    if masked(before.flags, loose) != masked(next.flags, loose) {
        return Some(format!("flags change from {:?} to {:?} within one expectation", before.flags, next.flags));
    }
    let seq = before.seq.wrapping_add(before.payload);
    if next.seq != seq {
        return Some(format!("seq of the next segment: expected {seq}, got {}", next.seq));
    }
    if next.ack != before.ack {
        return Some("ack changes within one expectation".to_owned());
    }
    if next.window != before.window {
        return Some("win changes within one expectation".to_owned());
    }
    if next.payload > before.payload {
        return Some(format!("length of the next segment: expected {} at most, got {}", before.payload, next.payload));
    }
    None
}

/// Several segments as one: the numbers and CWR of the first, everything else of the last.
pub(crate) fn joined(first: &TcpSpec, last: TcpSpec, payload: u32) -> TcpSpec {
    let cwr = first.flags.bits() & Flags::CWR.bits();
    let flags = Flags::from_bits(masked(last.flags, Flags::CWR) | cwr);
    TcpSpec { seq: first.seq, payload, flags, ..last }
}

/// The difference between the expectation and the sent packet: `None` if there is none.
pub(crate) fn difference(
    expected: &TcpSpec,
    actual: &TcpSpec,
    connection: &mut Connection,
    strictness: Strictness,
) -> Option<String> {
    let differs = |name: &str, expected: &dyn std::fmt::Display, actual: &dyn std::fmt::Display| {
        Some(format!("{name}: expected {expected}, got {actual}"))
    };
    if expected.payload != actual.payload {
        return differs("length", &expected.payload, &actual.payload);
    }
    let without = if strictness.ignore_psh { Flags::PSH } else { Flags::NONE };
    if masked(expected.flags, without) != masked(actual.flags, without) {
        return differs("flags", &format!("{:?}", expected.flags), &format!("{:?}", actual.flags));
    }
    match expected.seq_form {
        SeqForm::Any => {}
        SeqForm::Relative if expected.seq != actual.seq => return differs("seq", &expected.seq, &actual.seq),
        SeqForm::Relative => {}
        SeqForm::Absolute => {
            let seq = connection.wire_seq(actual.seq, actual.flags.contains(Flags::SYN));
            if expected.seq != seq {
                return differs("absolute seq", &expected.seq, &seq);
            }
        }
    }
    if actual.flags.contains(Flags::ACK) && expected.ack.unwrap_or(0) != actual.ack.unwrap_or(0) {
        return differs("ack", &expected.ack.unwrap_or(0), &actual.ack.unwrap_or(0));
    }
    if let (Some(window), Some(got)) = (expected.window, actual.window)
        && window != got
    {
        return differs("win", &window, &got);
    }
    if expected.urgent.unwrap_or(0) != 0 {
        return differs("urg", &expected.urgent.unwrap_or(0), &0);
    }
    ip_difference(expected, actual).or_else(|| options_difference(expected, actual, connection, strictness))
}

fn ip_difference(expected: &TcpSpec, actual: &TcpSpec) -> Option<String> {
    if let (Some(spec), Some(EcnSpec::Is(got))) = (expected.ip.ecn, actual.ip.ecn) {
        let fits = match spec {
            EcnSpec::Is(ecn) => ecn == got,
            EcnSpec::Ect01 => matches!(got, Ecn::Ect0 | Ecn::Ect1),
        };
        if !fits {
            return Some(format!("ECN codepoint: expected {}, got {}", ecn_name(spec), ecn_name(EcnSpec::Is(got))));
        }
    }
    if let (Some(tos), Some(got)) = (expected.ip.tos, actual.ip.tos)
        && tos != got
    {
        return Some(format!("tos: expected {tos:#04x}, got {got:#04x}"));
    }
    if let (Some(ttl), Some(got)) = (expected.ip.ttl, actual.ip.ttl)
        && ttl != got
    {
        return Some(format!("ttl: expected {ttl}, got {got}"));
    }
    None
}

fn ecn_name(spec: EcnSpec) -> &'static str {
    match spec {
        EcnSpec::Is(Ecn::NotEct) => "noecn",
        EcnSpec::Is(Ecn::Ect0) => "ect0",
        EcnSpec::Is(Ecn::Ect1) => "ect1",
        EcnSpec::Is(Ecn::Ce) => "ce",
        EcnSpec::Ect01 => "ect01",
    }
}

fn options_difference(
    expected: &TcpSpec,
    actual: &TcpSpec,
    connection: &mut Connection,
    strictness: Strictness,
) -> Option<String> {
    let (Options::List(expected), Options::List(actual)) = (&expected.options, &actual.options) else {
        return None;
    };
    // The timestamps are paired whatever else is wrong: later echoes refer to them.
    let script_ts = expected.iter().find_map(timestamps);
    let wire_ts = actual.iter().find_map(timestamps);
    let named = match (script_ts, wire_ts) {
        (Some((script, _)), Some((wire, _))) => Some(connection.pair_timestamps(script, wire)),
        _ => None,
    };
    if expected.len() != actual.len() || expected.iter().zip(actual).any(|(a, b)| kind(a) != kind(b)) {
        return Some(format!("options: expected {}, got {}", names(expected), names(actual)));
    }
    for (expected, actual) in expected.iter().zip(actual) {
        match (expected, actual) {
            (OptionSpec::Timestamps { value, echo }, OptionSpec::Timestamps { echo: got_echo, .. }) => {
                if strictness.ts_echo && echo != got_echo {
                    return Some(format!("TS ecr: expected {echo}, got {got_echo}"));
                }
                let got = named.unwrap_or(*value);
                let off = i64::from(got.wrapping_sub(*value) as i32).unsigned_abs();
                if strictness.ts_tick * off > strictness.tolerance {
                    return Some(format!("TS val: expected {value}, got {got}"));
                }
            }
            // The names of equal options may differ.
            (OptionSpec::Other { kind, data, .. }, OptionSpec::Other { kind: got_kind, data: got_data, .. })
                if kind == got_kind && data == got_data => {}
            (expected, actual) if expected != actual => {
                return Some(format!("option: expected {expected}, got {actual}"));
            }
            _ => {}
        }
    }
    None
}

fn timestamps(option: &OptionSpec) -> Option<(u32, u32)> {
    match option {
        OptionSpec::Timestamps { value, echo } => Some((*value, *echo)),
        _ => None,
    }
}

/// The number of the option.
fn kind(option: &OptionSpec) -> u8 {
    match option {
        OptionSpec::Eol => 0,
        OptionSpec::Nop => 1,
        OptionSpec::Mss(_) => 2,
        OptionSpec::WindowScale(_) => 3,
        OptionSpec::SackPermitted => 4,
        OptionSpec::Sack(_) => 5,
        OptionSpec::Timestamps { .. } => 8,
        OptionSpec::Mptcp(_) => MPTCP,
        OptionSpec::Other { kind, .. } => *kind,
    }
}

fn names(list: &[OptionSpec]) -> String {
    let names: Vec<_> = list.iter().map(ToString::to_string).collect();
    format!("<{}>", names.join(","))
}
