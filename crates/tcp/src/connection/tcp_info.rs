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

use ackclock_cc::EcnFeedback;
use ackclock_units::{Span, Time};

use crate::{CaState, Endpoint, State};

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

impl TcpInfo {
    /// Where `endpoint` stands at `now`, in Linux's terms.
    pub fn of(endpoint: &Endpoint, now: Time) -> TcpInfo {
        let flag = |enabled: bool, bit| if enabled { bit } else { 0 };
        let established = !matches!(endpoint.state, State::Closed | State::Listen | State::SynSent);
        TcpInfo {
            state: TcpInfo::state_number(endpoint),
            ca_state: ca_number(endpoint.sender.loss.state()),
            retransmits: endpoint.sender.rtt.timeouts().min(255) as u8,
            probes: endpoint.sender.persist.unanswered().max(endpoint.liveness.probes()).min(255) as u8,
            backoff: endpoint.sender.rtt.backoff().max(endpoint.sender.persist.backoff()).min(255) as u8,
            options: flag(endpoint.sender.negotiated.timestamps(), TCPI_OPT_TIMESTAMPS)
                | flag(endpoint.sender.negotiated.sack(), TCPI_OPT_SACK)
                | flag(endpoint.sender.negotiated.scaling(), TCPI_OPT_WSCALE)
                | flag(endpoint.sender.ecn.is_usable(), TCPI_OPT_ECN)
                | flag(endpoint.sender.counters.ecn_seen, TCPI_OPT_ECN_SEEN)
                | flag(endpoint.opening.is_data_acknowledged(), TCPI_OPT_SYN_DATA),
            snd_wscale: endpoint.sender.negotiated.peer_shift(),
            rcv_wscale: endpoint.receiver.shift(),
            pmtu: endpoint.sender.path.mtu,
            advmss: u32::from(endpoint.config.mss).saturating_sub(if established {
                endpoint.sender.options_len()
            } else {
                0
            }),
            notsent_bytes: count(endpoint.sender.sequence.unsent()),
            snd_wnd: count(endpoint.sender.sequence.window()),
            ..TcpInfo::rate_info(endpoint, now)
        }
    }

    fn state_number(endpoint: &Endpoint) -> u8 {
        match endpoint.state {
            State::Established => 1,
            State::SynSent => 2,
            // Closed before the last ACK of the handshake.
            State::SynReceived if endpoint.sender.sequence.is_fin_sent() => 4,
            State::SynReceived => 3,
            State::FinWait1 => 4,
            State::FinWait2 => 5,
            State::TimeWait => 6,
            State::Closed => 7,
            State::CloseWait => 8,
            State::LastAck => 9,
            State::Listen => 10,
            State::Closing => 11,
        }
    }

    /// Round trips, window and rates, and what limited the sender.
    fn rate_info(endpoint: &Endpoint, now: Time) -> TcpInfo {
        let mss = u64::from(endpoint.sender.negotiated.mss());
        let threshold = endpoint.sender.loss.recovery.threshold().unwrap_or(endpoint.sender.cc.window().ssthresh);
        let segments = |bytes: u64| count(bytes / mss);
        let counters = &endpoint.sender.counters;
        let rate = endpoint.sender.loss.board.delivery_rate();
        TcpInfo {
            rto: micros(endpoint.sender.rto()),
            snd_mss: endpoint.sender.negotiated.mss(),
            rtt: endpoint.sender.rtt.srtt().map_or(0, micros),
            rttvar: micros(endpoint.sender.rtt.variation()),
            min_rtt: endpoint.sender.rtt.min().map_or(u32::MAX, micros),
            snd_ssthresh: if threshold >= u64::from(INFINITE_SSTHRESH) {
                INFINITE_SSTHRESH
            } else {
                segments(threshold)
            },
            snd_cwnd: segments(endpoint.sender.cwnd()),
            pacing_rate: endpoint.sender.told_pacing_rate(now),
            delivery_rate: rate.map_or(0, |rate| rate.bytes_per_second()),
            delivery_rate_app_limited: u8::from(rate.is_some_and(|rate| rate.is_app_limited())),
            busy_time: counters.busy.read(now).as_micros(),
            rwnd_limited: counters.window_limited.read(now).as_micros(),
            sndbuf_limited: counters.buffer_limited.read(now).as_micros(),
            ..TcpInfo::loss_info(endpoint, now)
        }
    }

    /// The segments in flight, and those of them that were lost.
    fn loss_info(endpoint: &Endpoint, now: Time) -> TcpInfo {
        let counts = endpoint.sender.loss_counts();
        let counters = &endpoint.sender.counters;
        TcpInfo {
            unacked: count(counts.packets_out),
            sacked: count(counts.sacked_out),
            lost: count(counts.lost_out),
            retrans: count(counts.retrans_out),
            fackets: if endpoint.sender.loss.detector.rules().shows_reach { count(counts.fackets_out) } else { 0 },
            reordering: counts.reordering,
            total_retrans: count(
                endpoint.sender.stats.retransmitted_packets + u64::from(endpoint.sender.stats.resent_syns),
            ),
            dsack_dups: count(endpoint.sender.stats.dsacks),
            reord_seen: count(counts.reord_seen),
            delivered: counters.delivered_segments,
            delivered_ce: counters.delivered_ce,
            ..TcpInfo::total_info(endpoint, now)
        }
    }

    /// Segments and bytes, and when they came and went.
    fn total_info(endpoint: &Endpoint, now: Time) -> TcpInfo {
        let counters = &endpoint.sender.counters;
        let millis_since = |at: Time| count(now.since(at).as_millis());
        TcpInfo {
            last_data_sent: millis_since(endpoint.sender.sequence.last_sent_at()),
            last_ack_sent: 0,
            last_data_recv: millis_since(counters.data_received_at),
            last_ack_recv: millis_since(counters.ack_received_at),
            bytes_acked: endpoint.sender.sequence.una().saturating_sub(u64::from(endpoint.socket.is_passive())),
            bytes_received: endpoint.receiver.delivered(),
            // Linux answers a SYN before there is a socket to count for.
            segs_out: counters.segments_out.saturating_sub(u32::from(endpoint.socket.is_passive())),
            segs_in: counters.segments_in,
            data_segs_in: counters.data_segments_in,
            data_segs_out: count(endpoint.sender.stats.data_packets()),
            bytes_sent: counters.bytes_sent,
            bytes_retrans: counters.bytes_resent,
            ..TcpInfo::receiver_info(endpoint)
        }
    }

    /// The receiving half.
    fn receiver_info(endpoint: &Endpoint) -> TcpInfo {
        TcpInfo {
            ato: micros(endpoint.receiver.ack_timeout()),
            rcv_mss: endpoint.receiver.segment_estimate(),
            rcv_ssthresh: count(endpoint.receiver.threshold()),
            rcv_rtt: if endpoint.receiver.delivered() > 0 { endpoint.sender.rtt.srtt().map_or(0, micros) } else { 0 },
            rcv_space: count(endpoint.receiver.first_window()),
            rcv_ooopack: endpoint.sender.counters.out_of_order,
            ..TcpInfo::ecn_info(endpoint)
        }
    }

    /// The fields of Accurate ECN.
    fn ecn_info(endpoint: &Endpoint) -> TcpInfo {
        let accurate = endpoint.sender.ecn.mode() == EcnFeedback::Accurate;
        let ([received_e1_bytes, received_e0_bytes, received_ce_bytes], delivered) = endpoint.sender.ecn.byte_totals();
        let [delivered_e1_bytes, delivered_e0_bytes, delivered_ce_bytes] = delivered;
        let (accecn_opt_seen, ignored, stopped) = endpoint.sender.ecn.option_seen();
        let failed = accurate && endpoint.state != State::SynReceived && !endpoint.sender.ecn.is_usable();
        let pending = endpoint.state == State::SynSent && endpoint.config.ecn == EcnFeedback::Accurate;
        TcpInfo {
            received_ce: if accurate { endpoint.sender.ecn.marks_received() } else { 0 },
            delivered_e1_bytes,
            delivered_e0_bytes,
            delivered_ce_bytes,
            received_e1_bytes,
            received_e0_bytes,
            received_ce_bytes,
            ecn_mode: match endpoint.sender.ecn.mode() {
                EcnFeedback::None if pending => 3,
                EcnFeedback::None => 0,
                EcnFeedback::Classic | EcnFeedback::Dctcp => 1,
                EcnFeedback::Accurate => 2,
            },
            accecn_opt_seen,
            accecn_fail_mode: 3 * u8::from(failed) + 4 * u8::from(stopped) + 8 * u8::from(ignored),
            ..TcpInfo::default()
        }
    }
}

/// The number, or as many as fit.
fn count(number: u64) -> u32 {
    u32::try_from(number).unwrap_or(u32::MAX)
}

fn micros(span: Span) -> u32 {
    count(span.as_micros())
}

fn ca_number(state: CaState) -> u8 {
    match state {
        CaState::Open => 0,
        CaState::Disorder => 1,
        CaState::Cwr => 2,
        CaState::Recovery => 3,
        CaState::Loss => 4,
    }
}
