//! Flows of datagrams: `transport = "udp"` with what sends.

use ackclock_sim::spec::{DATAGRAM_HEADERS, DatagramApplication, DatagramSpec, MOST_MESSAGE, VoipSpec};
use ackclock_traffic::Pattern;
use ackclock_traffic::voice::{CODECS, Codec};
use ackclock_units::{Ecn, Rate, Span};

use crate::application;
use crate::distribution::{self, Unit};
use crate::document::Table;
use crate::fields::Fields;
use crate::keys;
use crate::mptcp;
use crate::quantity::{Bytes, Number, OneOf, PlainRate, Problem, Time};

const TRANSPORTS: OneOf = OneOf { what: "transport", names: &["tcp", "udp", mptcp::NAME] };
const CODEC_NAMES: OneOf = OneOf { what: "codec", names: &names() };
const CODEPOINTS: OneOf = OneOf { what: "ECN codepoint", names: &["off", "ect0", "ect1"] };

/// The most bytes of a packet, unless the flow's hosts have MTUs of their own.
const MTU: u16 = 1500;

/// iperf3's default over UDP: 1 Mbit/s (`UDP_RATE`, there of 2^20 bit/s) in datagrams of 1460 bytes
/// (`DEFAULT_UDP_BLKSIZE`).
const RATE: u64 = 1_000_000;
const SIZE: u64 = 1460;

/// Time for which a call waits for delayed packets: the nominal fixed playout delay of Cisco IOS.
const PLAYOUT: Span = Span::from_millis(60);

/// ping's: 56 bytes a second.
const PING_INTERVAL: Span = Span::from_secs(1);
const PING_SIZE: u64 = 56;

const fn names() -> [&'static str; CODECS.len()] {
    let mut names = [""; CODECS.len()];
    let mut number = 0;
    while number < CODECS.len() {
        names[number] = CODECS[number].name;
        number += 1;
    }
    names
}

/// Reads `transport` and, if it is UDP, what sends and with which marks; `None` for TCP and MPTCP.
/// `mtu` is that of the hosts, `kernels` whether an end is a kernel.
pub(crate) fn read(fields: &mut Fields<'_>, table: &Table, mtu: Option<u16>, kernels: bool) -> Option<DatagramSpec> {
    if fields.or(("transport", "TCP, Multipath TCP, or datagrams over UDP"), "tcp", TRANSPORTS) != "udp" {
        return None;
    }
    if let (true, Some(entry)) = (kernels, table.get("transport")) {
        let problem =
            Problem::new("not where an end is a kernel", "`tcp`, two hosts without `tun`, or the virtual clock");
        fields.reject("transport", &entry.node, problem);
    }
    if let Some(entry) = table.get("results").filter(|entry| entry.node.str() == Some("sum")) {
        fields.reject("results", &entry.node, Problem::new("not with `transport = \"udp\"`", "`each`"));
    }
    let headers = u64::from(DATAGRAM_HEADERS);
    let largest = mtu.map_or(u64::from(u16::MAX), u64::from).max(headers + 1);
    let default = u64::from(mtu.unwrap_or(MTU)).clamp(headers + 1, largest);
    let mtu = fields.or(keys::MTU, default, Bytes(headers + 1, largest));
    let most = mtu - headers;
    let application = fields
        .choose(keys::APPLICATION, "cbr", &application::OVER_UDP, |kind, fields| self::application(kind, fields, most));
    let application = application.unwrap_or(DatagramApplication::Ping { interval: PING_INTERVAL, size: 0 });
    let ecn = match fields.or("ecn", "off", CODEPOINTS) {
        "ect0" => Ecn::Ect0,
        "ect1" => Ecn::Ect1,
        _ => Ecn::NotEct,
    };
    Some(DatagramSpec { application, mtu: mtu as u16, ecn })
}

/// The application called `kind`; a datagram has at most `most` bytes of payload. `None` was
/// reported.
fn application(kind: &'static str, fields: &mut Fields<'_>, most: u64) -> Option<DatagramApplication> {
    let pattern = match kind {
        "voip" => return Some(DatagramApplication::Voip(voip(fields, most))),
        "ping" => {
            return Some(DatagramApplication::Ping {
                interval: fields.or(keys::INTERVAL, PING_INTERVAL, Time::Positive),
                size: fields.or(keys::SIZE, PING_SIZE.min(most), Bytes(1, most)) as u32,
            });
        }
        "on_off" => application::on_off(fields),
        "poisson" => application::poisson(fields),
        "trace" => application::trace(fields),
        _ => {
            let rate = fields.or(keys::RATE, Rate::from_bps(RATE).unwrap_or(Rate::MAX), PlainRate);
            let size = distribution::read_or(fields, keys::SIZE, Unit::Bytes, SIZE.min(most) as f64);
            size.map(|size| Pattern::Paced { rate, size })
        }
    };
    let pattern = pattern?;
    let key = if kind == "trace" { "file" } else { "size" };
    if let Some(entry) = fields.get(key)
        && pattern.size() > f64::from(MOST_MESSAGE)
    {
        let expected = format!("at most {MOST_MESSAGE} bytes, as over UDP");
        fields.reject(key, &entry.node, Problem::new("too large", expected));
    }
    Some(DatagramApplication::Messages { kind, pattern })
}

/// A call whose datagrams have at most `most` bytes of payload.
fn voip(fields: &mut Fields<'_>, most: u64) -> VoipSpec {
    let name = fields.or(("codec", "codec of a call"), CODECS[0].name, CODEC_NAMES);
    let codec = Codec::by_name(name).unwrap_or(&CODECS[0]);
    // 20 ms of voice, or a frame if that is longer (RFC 3551 section 4.2).
    let default = codec.frame.max(Span::from_millis(20));
    let mut call = VoipSpec {
        codec,
        packetisation: fields.or(("packetisation", "speech in a packet"), default, Time::Positive),
        playout: fields.or(("playout", "delay of the playout buffer"), PLAYOUT, Time::Any),
        ie: fields.or(("ie", "equipment impairment factor of the codec (E-model)"), codec.ie, Number(0.0, 95.0)),
        bpl: fields.or(("bpl", "packet-loss robustness factor of the codec (E-model)"), codec.bpl, Number(0.1, 1000.0)),
    };
    let problem = match codec.bytes(call.packetisation) {
        None => Some(("not a whole number of frames", format!("a multiple of {}, a frame of `{name}`", codec.frame))),
        Some(_) if u64::from(call.size()) > most => {
            Some(("too large", format!("less voice: with RTP it has {} of {most} bytes at most", call.size())))
        }
        Some(_) => None,
    };
    if let Some((title, expected)) = problem {
        match fields.get("packetisation") {
            Some(entry) => fields.reject("packetisation", &entry.node, Problem::new(title, expected)),
            None => fields.missing("packetisation", &expected),
        }
        call.packetisation = default;
    }
    call
}
