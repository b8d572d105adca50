//! A snapshot of a connection with the meanings of Linux's `struct tcp_info`.
//!
//! # Source
//! `include/uapi/linux/tcp.h` and `tcp_get_info` in `net/ipv4/tcp.c` of Linux 6.1. Times of Linux are whole microseconds or,
//! of events, whole milliseconds; so are they here.
//!
//! # Departures
//! `rcv_rtt` is the smoothed RTT once data has arrived, in place of a measurement of the receiver's own; `rcv_space` is
//! the window that was announced first. `delivery_rate` is measured only where the congestion controller asks for it, and else 0.

use ackclock_cc::EcnFeedback;
use ackclock_packet::{Flags, Segment};
use ackclock_units::{Ecn, Span, Time};

use crate::loss::scoreboard::Progress;
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

/// Where a connection stands. Names, units and meanings are those of Linux's `struct tcp_info` without the prefix `tcpi_`:
/// counts of segments in segments, times in microseconds unless said otherwise.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
#[allow(missing_docs, reason = "the fields of struct tcp_info by their names")]
pub struct TcpInfo {
    /// `TCP_ESTABLISHED` 1, `TCP_SYN_SENT` 2, `TCP_SYN_RECV` 3, `TCP_FIN_WAIT1` 4, `TCP_FIN_WAIT2` 5, `TCP_TIME_WAIT` 6,
    /// `TCP_CLOSE` 7, `TCP_CLOSE_WAIT` 8, `TCP_LAST_ACK` 9, `TCP_LISTEN` 10, `TCP_CLOSING` 11.
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
    /// `TCP_ACCECN_ACE_FAIL_SEND` 1 and `RECV` 2 (as one here), `TCP_ACCECN_OPT_FAIL_SEND` 4, `TCP_ACCECN_OPT_FAIL_RECV` 8.
    pub accecn_fail_mode: u8,
}

/// What is counted for [`TcpInfo`] beside [`crate::Stats`].
#[derive(Debug)]
pub(crate) struct Counters {
    pub(crate) segments_out: u32,
    pub(crate) segments_in: u32,
    pub(crate) data_segments_in: u32,
    pub(crate) bytes_sent: u64,
    pub(crate) bytes_resent: u64,
    pub(crate) out_of_order: u32,
    pub(crate) delivered_segments: u32,
    pub(crate) ecn_seen: bool,
    pub(crate) data_received_at: Time,
    pub(crate) ack_received_at: Time,
    /// Data is unsent or unacknowledged.
    pub(crate) busy: Stopwatch,
    /// The peer's window keeps data from being sent.
    pub(crate) window_limited: Stopwatch,
    /// All is sent, and the send buffer too small for more.
    pub(crate) buffer_limited: Stopwatch,
    /// Segments whose delivery was told along with an ECN echo, or that were counted as marked.
    pub(crate) delivered_ce: u32,
    /// Something was sent since there was last nothing to send.
    pub(crate) sending: bool,
    /// The last look for something to send ended at the peer's window.
    pub(crate) window_stopped: bool,
}

/// How long something has been so.
#[derive(Debug)]
pub(crate) struct Stopwatch {
    /// [`Time::NEVER`] while it is not.
    since: Time,
    total: Span,
}

impl Stopwatch {
    const fn new() -> Stopwatch {
        Stopwatch { since: Time::NEVER, total: Span::ZERO }
    }

    /// Whether it is so from `now` on.
    #[inline]
    pub(crate) fn set(&mut self, now: Time, on: bool) {
        if on == (self.since != Time::NEVER) {
            return;
        }
        if on {
            self.since = now;
        } else {
            self.total = self.read(now);
            self.since = Time::NEVER;
        }
    }

    fn read(&self, now: Time) -> Span {
        if self.since == Time::NEVER { self.total } else { self.total + now.since(self.since) }
    }
}

impl Counters {
    pub(crate) fn new() -> Counters {
        Counters {
            segments_out: 0,
            segments_in: 0,
            data_segments_in: 0,
            bytes_sent: 0,
            bytes_resent: 0,
            out_of_order: 0,
            delivered_segments: 0,
            ecn_seen: false,
            data_received_at: Time::ZERO,
            ack_received_at: Time::ZERO,
            busy: Stopwatch::new(),
            window_limited: Stopwatch::new(),
            buffer_limited: Stopwatch::new(),
            delivered_ce: 0,
            sending: false,
            window_stopped: false,
        }
    }

    /// A segment has come in.
    #[inline]
    pub(crate) fn arrived(&mut self, now: Time, segment: &Segment, ecn: Ecn) {
        self.segments_in += 1;
        self.ecn_seen |= ecn != Ecn::NotEct;
        if segment.payload.len > 0 {
            self.data_segments_in += 1;
            self.data_received_at = now;
        }
        if segment.flags.contains(Flags::ACK) {
            self.ack_received_at = now;
        }
    }

    /// What an ACK told, `marks` of it as marked.
    #[inline]
    pub(crate) fn progressed(&mut self, progress: &Progress, marks: u64) {
        self.delivered_ce = self.delivered_ce.wrapping_add(marks as u32);
        self.delivered_segments += progress.delivered_segments as u32;
    }
}

impl Endpoint {
    /// Where the connection stands at `now`, in Linux's terms.
    pub fn info(&self, now: Time) -> TcpInfo {
        let mss = u64::from(self.negotiated.mss());
        let window = self.cc.window();
        let threshold = self.recovery.threshold(self.config.prr).unwrap_or(window.ssthresh);
        let segments = |bytes: u64| u32::try_from(bytes / mss).unwrap_or(u32::MAX);
        let counts = self.loss_counts();
        let count = |segments: u64| u32::try_from(segments).unwrap_or(u32::MAX);
        let counters = &self.counters;
        let flag = |enabled: bool, bit| if enabled { bit } else { 0 };
        let micros = |span: Span| u32::try_from(span.as_micros()).unwrap_or(u32::MAX);
        let millis_since = |at: Time| u32::try_from(now.since(at).as_millis()).unwrap_or(u32::MAX);
        let established = !matches!(self.state, State::Closed | State::Listen | State::SynSent);
        let rate = self.board.delivery_rate();
        TcpInfo {
            state: match self.state {
                State::Established => 1,
                State::SynSent => 2,
                // Closed before the last ACK of the handshake.
                State::SynReceived if self.send.fin_sent => 4,
                State::SynReceived => 3,
                State::FinWait1 => 4,
                State::FinWait2 => 5,
                State::TimeWait => 6,
                State::Closed => 7,
                State::CloseWait => 8,
                State::LastAck => 9,
                State::Listen => 10,
                State::Closing => 11,
            },
            ca_state: match self.ca_state() {
                CaState::Open => 0,
                CaState::Disorder => 1,
                CaState::Cwr => 2,
                CaState::Recovery => 3,
                CaState::Loss => 4,
            },
            retransmits: self.rtt.timeouts().min(255) as u8,
            probes: self.persist.unanswered().max(self.liveness.probes()).min(255) as u8,
            backoff: self.rtt.backoff().max(self.persist.backoff()).min(255) as u8,
            options: flag(self.negotiated.timestamps(), TCPI_OPT_TIMESTAMPS)
                | flag(self.negotiated.sack(), TCPI_OPT_SACK)
                | flag(self.negotiated.scaling(), TCPI_OPT_WSCALE)
                | flag(self.ecn.is_usable(), TCPI_OPT_ECN)
                | flag(counters.ecn_seen, TCPI_OPT_ECN_SEEN)
                | flag(self.syn_data_acknowledged(), TCPI_OPT_SYN_DATA),
            snd_wscale: self.negotiated.peer_shift(),
            rcv_wscale: self.receiver.shift(),
            rto: micros(self.rto()),
            ato: micros(self.receiver.ack_timeout()),
            snd_mss: self.negotiated.mss(),
            rcv_mss: self.receiver.segment_estimate(),
            unacked: count(counts.packets_out),
            sacked: count(counts.sacked_out),
            lost: count(counts.lost_out),
            retrans: count(counts.retrans_out),
            fackets: if self.detector.is_before_rack() { count(counts.fackets_out) } else { 0 },
            last_data_sent: millis_since(self.send.last_sent_at),
            last_ack_sent: 0,
            last_data_recv: millis_since(counters.data_received_at),
            last_ack_recv: millis_since(counters.ack_received_at),
            pmtu: self.path_mtu(),
            rcv_ssthresh: u32::try_from(self.receiver.threshold()).unwrap_or(u32::MAX),
            rtt: self.rtt.srtt().map_or(0, micros),
            rttvar: micros(self.rtt.variation()),
            snd_ssthresh: if threshold >= u64::from(INFINITE_SSTHRESH) {
                INFINITE_SSTHRESH
            } else {
                segments(threshold)
            },
            snd_cwnd: segments(self.cwnd()),
            advmss: u32::from(self.config.mss) - if established { self.negotiated.options_len() } else { 0 },
            reordering: counts.reordering,
            rcv_rtt: if self.delivered_bytes() > 0 { self.rtt.srtt().map_or(0, micros) } else { 0 },
            rcv_space: u32::try_from(self.receiver.first_window()).unwrap_or(u32::MAX),
            total_retrans: u32::try_from(self.stats.retransmitted_packets + self.stats.resent_syns).unwrap_or(u32::MAX),
            pacing_rate: self.told_pacing_rate(now),
            bytes_acked: self.send.una.saturating_sub(u64::from(self.socket.passive)),
            bytes_received: self.delivered_bytes(),
            // Linux answers a SYN before there is a socket to count for.
            segs_out: counters.segments_out.saturating_sub(u32::from(self.socket.passive)),
            segs_in: counters.segments_in,
            notsent_bytes: u32::try_from(self.unsent()).unwrap_or(u32::MAX),
            min_rtt: self.rtt.min().map_or(u32::MAX, micros),
            data_segs_in: counters.data_segments_in,
            data_segs_out: u32::try_from(self.stats.sent_packets).unwrap_or(u32::MAX),
            delivery_rate: rate.map_or(0, |rate| rate.bytes_per_second()),
            delivery_rate_app_limited: u8::from(rate.is_some_and(|rate| rate.is_app_limited())),
            busy_time: counters.busy.read(now).as_micros(),
            rwnd_limited: counters.window_limited.read(now).as_micros(),
            sndbuf_limited: counters.buffer_limited.read(now).as_micros(),
            delivered: counters.delivered_segments,
            delivered_ce: counters.delivered_ce,
            bytes_sent: counters.bytes_sent,
            bytes_retrans: counters.bytes_resent,
            dsack_dups: u32::try_from(self.stats.dsacks).unwrap_or(u32::MAX),
            reord_seen: count(counts.reord_seen),
            rcv_ooopack: counters.out_of_order,
            snd_wnd: u32::try_from(self.send.wnd).unwrap_or(u32::MAX),
            ..self.ecn_info()
        }
    }

    /// What Accurate ECN adds.
    fn ecn_info(&self) -> TcpInfo {
        let accurate = self.ecn.mode() == EcnFeedback::Accurate;
        let ([received_e1_bytes, received_e0_bytes, received_ce_bytes], delivered) = self.ecn.byte_totals();
        let [delivered_e1_bytes, delivered_e0_bytes, delivered_ce_bytes] = delivered;
        let (accecn_opt_seen, ignored, stopped) = self.ecn.option_seen();
        let failed = accurate && self.state != State::SynReceived && !self.ecn.is_usable();
        let pending = self.state == State::SynSent && self.config.ecn == EcnFeedback::Accurate;
        TcpInfo {
            received_ce: if accurate { self.ecn.marks_received() } else { 0 },
            delivered_e1_bytes,
            delivered_e0_bytes,
            delivered_ce_bytes,
            received_e1_bytes,
            received_e0_bytes,
            received_ce_bytes,
            ecn_mode: match self.ecn.mode() {
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
