//! Flows of datagrams.

use ackclock_traffic::Pattern;
use ackclock_traffic::voice::Codec;
use ackclock_units::{Ecn, Span};

/// Bytes of IPv4 and UDP headers, and of IPv4 and ICMP ones.
pub const DATAGRAM_HEADERS: u32 = 28;

/// The most bytes of a message over UDP: what the length of its header leaves beside the headers.
pub const MOST_MESSAGE: u32 = 65_507;

/// Bytes of an RTP header without extensions (RFC 3550 section 5.1).
pub const RTP_HEADER: u32 = 12;

/// A flow of datagrams, as both of its ends see it.
#[derive(Clone, Debug, PartialEq)]
pub struct DatagramSpec {
    /// The application.
    pub application: DatagramApplication,
    /// The most bytes of a packet: a larger message is sent as several, and has [`MOST_MESSAGE`] at
    /// most.
    pub mtu: u16,
    /// The ECN codepoint of its packets.
    pub ecn: Ecn,
}

impl DatagramSpec {
    /// The packets that a message of this many bytes takes.
    pub(crate) fn parts(&self, bytes: f64) -> f64 {
        (bytes / f64::from(self.mtu.max(64))).ceil().max(1.0)
    }
}

/// The application of a flow of datagrams.
#[derive(Clone, Debug, PartialEq)]
pub enum DatagramApplication {
    /// Messages, each a datagram, or several if it is too large for one.
    Messages {
        /// Name in scenarios and results.
        kind: &'static str,
        /// Times and sizes of the datagrams.
        pattern: Pattern,
    },
    /// Requests that the receiver answers by echoing them, the first at once.
    Ping {
        /// The time between two of them.
        interval: Span,
        /// Payload of each, bytes.
        size: u32,
    },
    /// One direction of a telephone call.
    Voip(VoipSpec),
}

/// A call.
#[derive(Clone, Debug, PartialEq)]
pub struct VoipSpec {
    /// The codec.
    pub codec: &'static Codec,
    /// Length of voice in a datagram: a whole number of the codec's frames.
    pub packetisation: Span,
    /// The playout buffer: the time from the arrival of the first datagram to its playing.
    pub playout: Span,
    /// Equipment impairment factor of the E-model.
    pub ie: f64,
    /// Packet-loss robustness factor.
    pub bpl: f64,
}

impl VoipSpec {
    /// Payload of a datagram, bytes: voice with its RTP header.
    pub fn size(&self) -> u32 {
        self.codec.bytes(self.packetisation).unwrap_or(0).saturating_add(RTP_HEADER)
    }
}

impl DatagramApplication {
    /// Name in scenarios and results.
    pub fn name(&self) -> &'static str {
        match self {
            DatagramApplication::Messages { kind, .. } => kind,
            DatagramApplication::Ping { .. } => "ping",
            DatagramApplication::Voip(_) => "voip",
        }
    }
}
