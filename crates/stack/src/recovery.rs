//! Observations of a sender's loss recovery and congestion control, for records.
//!
//! # Source
//! draft-ietf-quic-qlog-quic-events-13, section 7 (recovery events), whose names and units the
//! fields have; RFC 9002, appendices A.3 and B.2, for the variables.

use ackclock_units::Span;

/// An observation of a sender.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum RecoveryEvent {
    /// Variables, changed or not.
    Metrics(RecoveryMetrics),
    /// The state of congestion control, changed or not, by the name that the stack has for it.
    State(&'static str),
    /// A packet left.
    Sent(SentPacket),
    /// A packet was declared lost.
    Lost(LostPacket),
    /// The variables of a TCP sender at a time of the stack's choosing.
    Sampled(TcpSample),
}

/// The variables of loss recovery and congestion control; `None` if the stack does not have one.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct RecoveryMetrics {
    /// Shortest round trip.
    pub min_rtt: Option<Span>,
    /// Smoothed round trip.
    pub smoothed_rtt: Option<Span>,
    /// Latest sample.
    pub latest_rtt: Option<Span>,
    /// Mean deviation of the samples.
    pub rtt_variance: Option<Span>,
    /// Expiries of the retransmission timer (QUIC: probe timeouts) in a row.
    pub pto_count: Option<u32>,
    /// Congestion window, bytes.
    pub congestion_window: Option<u64>,
    /// Estimate of the data in the network, bytes.
    pub bytes_in_flight: Option<u64>,
    /// Slow start threshold, bytes; `None` before there is one.
    pub ssthresh: Option<u64>,
    /// Rate at which packets leave, bits/s; `None` if they are not paced.
    pub pacing_rate: Option<u64>,
}

/// The variables of a TCP sender, by the names of Linux's `TCP_INFO`.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct TcpSample {
    /// The connection, of several that the host begins, from 0 on.
    pub connection: u32,
    /// Bytes acknowledged (`tcpi_bytes_acked`).
    pub acked: u64,
    /// Segments SACKed (`tcpi_sacked`).
    pub sacked: u32,
    /// Segments declared lost (`tcpi_lost`).
    pub lost: u32,
    /// Segments of which a retransmission is in flight (`tcpi_retrans`).
    pub retransmitted: u32,
    /// Duplicate threshold (`tcpi_reordering`).
    pub reordering: u32,
    /// Congestion state (`tcpi_ca_state`): `Open`, `Disorder`, `CWR`, `Recovery` or `Loss`.
    pub ca_state: &'static str,
    /// Congestion window, bytes (`tcpi_snd_cwnd`).
    pub cwnd: u64,
    /// Slow start threshold, bytes; `None` before there is one (`tcpi_snd_ssthresh`).
    pub ssthresh: Option<u64>,
    /// Estimate of the data in the network, bytes (`tcp_packets_in_flight`).
    pub in_flight: u64,
    /// Smoothed round trip; `None` before the first sample (`tcpi_rtt`).
    pub srtt: Option<Span>,
    /// Retransmission timeout (`tcpi_rto`).
    pub rto: Span,
}

/// A packet that left.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct SentPacket {
    /// Its type, by the draft's name: `initial`, `handshake`, `0RTT`, `1RTT`.
    pub kind: &'static str,
    /// Its number.
    pub number: u64,
    /// Its bytes, without the headers of UDP and IP.
    pub bytes: u64,
}

/// A packet that was declared lost.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct LostPacket {
    /// Its number among the packets with application data; `None` if the stack does not say, or has no
    /// packet numbers.
    pub number: Option<u64>,
    /// The first byte of its data in the stream, and the number of bytes (a FIN counts as one);
    /// `None` if the stack does not say which data it was.
    pub data: Option<(u64, u64)>,
    /// The retransmission timer declared it lost.
    pub by_timeout: bool,
}
