//! A snapshot of a connection with the meanings of Linux's `struct tcp_info`.
//!
//! # Source
//! `include/uapi/linux/tcp.h` and `tcp_get_info` in `net/ipv4/tcp.c` of Linux 6.1. Times of Linux
//! are whole microseconds or, of events, whole milliseconds; so are they here.
//!
//! # Departures
//! `rcv_rtt` is the smoothed RTT once data has arrived, in place of a measurement of the receiver's
//! own; `rcv_space` is the window that was announced first. `delivery_rate` is measured only where
//! the congestion controller asks for it, and else 0.

use ackclock_units::Span;

use crate::CaState;

/// `tcpi_options`: timestamps are in use.
pub const TCPI_OPT_TIMESTAMPS: u8 = 1;
/// `tcpi_options`: SACK is in use.
pub const TCPI_OPT_SACK: u8 = 2;
/// `tcpi_options`: window scaling is in use.
pub const TCPI_OPT_WSCALE: u8 = 4;
/// `tcpi_options`: ECN was negotiated.
pub const TCPI_OPT_ECN: u8 = 8;
/// `tcpi_options`: a packet with an ECN-capable codepoint has arrived.
pub const TCPI_OPT_ECN_SEEN: u8 = 16;
/// `tcpi_options`: data of a SYN was acknowledged, or taken in, by the SYN/ACK (TCP Fast Open).
pub const TCPI_OPT_SYN_DATA: u8 = 32;

/// A slow start threshold that has not been set (`TCP_INFINITE_SSTHRESH`).
pub const INFINITE_SSTHRESH: u32 = 0x7fff_ffff;

/// Where a connection stands. Names, units and meanings are those of Linux's `struct tcp_info`
/// without the prefix `tcpi_`: counts of segments in segments, times in microseconds unless said
/// otherwise.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
#[allow(missing_docs, reason = "the fields of struct tcp_info by their names")]
pub struct TcpInfo {
    /// `TCP_ESTABLISHED` 1, `TCP_SYN_SENT` 2, `TCP_SYN_RECV` 3, `TCP_FIN_WAIT1` 4, `TCP_FIN_WAIT2`
    /// 5, `TCP_TIME_WAIT` 6, `TCP_CLOSE` 7, `TCP_CLOSE_WAIT` 8, `TCP_LAST_ACK` 9, `TCP_LISTEN` 10,
    /// `TCP_CLOSING` 11.
    pub state: u8,
    /// `TCP_CA_Open` 0, `Disorder` 1, `CWR` 2, `Recovery` 3, `Loss` 4.
    pub ca_state: u8,
    /// Timeouts of the data (or SYN) that is first in line.
    pub retransmits: u8,
    /// Window probes and keep-alives without an answer.
    pub probes: u8,
    /// Doublings of the timeout, or of the probe timer.
    pub backoff: u8,
    /// `TCPI_OPT_*`.
    pub options: u8,
    pub snd_wscale: u8,
    pub rcv_wscale: u8,
    pub rto: u32,
    pub ato: u32,
    pub snd_mss: u32,
    pub rcv_mss: u32,
    /// Segments in flight or lost.
    pub unacked: u32,
    pub sacked: u32,
    pub lost: u32,
    /// Retransmissions in flight.
    pub retrans: u32,
    pub fackets: u32,
    /// Milliseconds since data was last sent.
    pub last_data_sent: u32,
    /// Always 0 in Linux.
    pub last_ack_sent: u32,
    /// Milliseconds since data last arrived.
    pub last_data_recv: u32,
    /// Milliseconds since an ACK last arrived.
    pub last_ack_recv: u32,
    pub pmtu: u32,
    pub rcv_ssthresh: u32,
    pub rtt: u32,
    pub rttvar: u32,
    /// Segments; [`INFINITE_SSTHRESH`] if it was never set.
    pub snd_ssthresh: u32,
    /// Segments.
    pub snd_cwnd: u32,
    pub advmss: u32,
    pub reordering: u32,
    pub rcv_rtt: u32,
    pub rcv_space: u32,
    pub total_retrans: u32,
    /// Bytes a second; `u64::MAX` without pacing.
    pub pacing_rate: u64,
    /// Bytes acknowledged, the SYN counted as one.
    pub bytes_acked: u64,
    /// Bytes that arrived in order.
    pub bytes_received: u64,
    pub segs_out: u32,
    pub segs_in: u32,
    pub notsent_bytes: u32,
    pub min_rtt: u32,
    pub data_segs_in: u32,
    pub data_segs_out: u32,
    /// Bytes a second.
    pub delivery_rate: u64,
    /// 1 if the application limited it.
    pub delivery_rate_app_limited: u8,
    pub busy_time: u64,
    pub rwnd_limited: u64,
    pub sndbuf_limited: u64,
    /// Segments delivered, the SYN counted as one.
    pub delivered: u32,
    pub delivered_ce: u32,
    /// Bytes of payload sent, retransmissions included.
    pub bytes_sent: u64,
    pub bytes_retrans: u64,
    pub dsack_dups: u32,
    pub reord_seen: u32,
    pub rcv_ooopack: u32,
    pub snd_wnd: u32,
    /// Packets that came with a mark, where Accurate ECN is in use; it counts no others.
    pub received_ce: u32,
    /// Payload of ours as the peer's AccECN options report it, by codepoint.
    pub delivered_e1_bytes: u32,
    pub delivered_e0_bytes: u32,
    pub delivered_ce_bytes: u32,
    /// Payload that arrived, by codepoint, as our AccECN options report it.
    pub received_e1_bytes: u32,
    pub received_e0_bytes: u32,
    pub received_ce_bytes: u32,
    /// `TCPI_ECN_MODE_DISABLED` 0, `RFC3168` 1, `ACCECN` 2, `PENDING` 3.
    pub ecn_mode: u8,
    /// AccECN options of the peer: 0 none, 1 without counters, 2 with them, 3 invalid.
    pub accecn_opt_seen: u8,
    /// `TCP_ACCECN_ACE_FAIL_SEND` 1 and `RECV` 2 (as one here), `TCP_ACCECN_OPT_FAIL_SEND` 4,
    /// `TCP_ACCECN_OPT_FAIL_RECV` 8.
    pub accecn_fail_mode: u8,
}

/// The number, or as many as fit.
pub(crate) fn count(number: u64) -> u32 {
    u32::try_from(number).unwrap_or(u32::MAX)
}

pub(crate) fn micros(span: Span) -> u32 {
    count(span.as_micros())
}

pub(crate) fn ca_number(state: CaState) -> u8 {
    match state {
        CaState::Open => 0,
        CaState::Disorder => 1,
        CaState::Cwr => 2,
        CaState::Recovery => 3,
        CaState::Loss => 4,
    }
}
