//! [`crate::TcpInfo`], filled in.

use ackclock_cc::EcnFeedback;
use ackclock_units::Time;

use crate::report::tcp_info::{ca_number, count, micros};
use crate::{
    Endpoint, INFINITE_SSTHRESH, State, TCPI_OPT_ECN, TCPI_OPT_ECN_SEEN, TCPI_OPT_SACK, TCPI_OPT_SYN_DATA,
    TCPI_OPT_TIMESTAMPS, TCPI_OPT_WSCALE, TcpInfo,
};

impl Endpoint {
    /// Where the connection stands at `now`, in Linux's terms.
    pub fn info(&self, now: Time) -> TcpInfo {
        let flag = |enabled: bool, bit| if enabled { bit } else { 0 };
        let established = !matches!(self.state, State::Closed | State::Listen | State::SynSent);
        TcpInfo {
            state: self.state_number(),
            ca_state: ca_number(self.ca_state()),
            retransmits: self.sender.rtt.timeouts().min(255) as u8,
            probes: self.sender.persist.unanswered().max(self.liveness.probes()).min(255) as u8,
            backoff: self.sender.rtt.backoff().max(self.sender.persist.backoff()).min(255) as u8,
            options: flag(self.sender.negotiated.timestamps(), TCPI_OPT_TIMESTAMPS)
                | flag(self.sender.negotiated.sack(), TCPI_OPT_SACK)
                | flag(self.sender.negotiated.scaling(), TCPI_OPT_WSCALE)
                | flag(self.sender.ecn.is_usable(), TCPI_OPT_ECN)
                | flag(self.sender.counters.ecn_seen, TCPI_OPT_ECN_SEEN)
                | flag(self.syn_data_acknowledged(), TCPI_OPT_SYN_DATA),
            snd_wscale: self.sender.negotiated.peer_shift(),
            rcv_wscale: self.receiver.shift(),
            pmtu: self.path_mtu(),
            advmss: u32::from(self.config.mss).saturating_sub(if established { self.sender.options_len() } else { 0 }),
            notsent_bytes: count(self.sender.unsent()),
            snd_wnd: count(self.sender.sequence.window()),
            ..self.rate_info(now)
        }
    }

    fn state_number(&self) -> u8 {
        match self.state {
            State::Established => 1,
            State::SynSent => 2,
            // Closed before the last ACK of the handshake.
            State::SynReceived if self.sender.sequence.is_fin_sent() => 4,
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
    fn rate_info(&self, now: Time) -> TcpInfo {
        let mss = u64::from(self.sender.negotiated.mss());
        let threshold = self.sender.loss.recovery.threshold().unwrap_or(self.sender.cc.window().ssthresh);
        let segments = |bytes: u64| count(bytes / mss);
        let counters = &self.sender.counters;
        let rate = self.sender.loss.board.delivery_rate();
        TcpInfo {
            rto: micros(self.sender.rto()),
            snd_mss: self.sender.negotiated.mss(),
            rtt: self.sender.rtt.srtt().map_or(0, micros),
            rttvar: micros(self.sender.rtt.variation()),
            min_rtt: self.sender.rtt.min().map_or(u32::MAX, micros),
            snd_ssthresh: if threshold >= u64::from(INFINITE_SSTHRESH) {
                INFINITE_SSTHRESH
            } else {
                segments(threshold)
            },
            snd_cwnd: segments(self.sender.cwnd()),
            pacing_rate: self.sender.told_pacing_rate(now),
            delivery_rate: rate.map_or(0, |rate| rate.bytes_per_second()),
            delivery_rate_app_limited: u8::from(rate.is_some_and(|rate| rate.is_app_limited())),
            busy_time: counters.busy.read(now).as_micros(),
            rwnd_limited: counters.window_limited.read(now).as_micros(),
            sndbuf_limited: counters.buffer_limited.read(now).as_micros(),
            ..self.loss_info(now)
        }
    }

    /// The segments in flight, and those of them that were lost.
    fn loss_info(&self, now: Time) -> TcpInfo {
        let counts = self.loss_counts();
        let counters = &self.sender.counters;
        TcpInfo {
            unacked: count(counts.packets_out),
            sacked: count(counts.sacked_out),
            lost: count(counts.lost_out),
            retrans: count(counts.retrans_out),
            fackets: if self.sender.loss.detector.rules().shows_reach { count(counts.fackets_out) } else { 0 },
            reordering: counts.reordering,
            total_retrans: count(self.sender.stats.retransmitted_packets + u64::from(self.sender.stats.resent_syns)),
            dsack_dups: count(self.sender.stats.dsacks),
            reord_seen: count(counts.reord_seen),
            delivered: counters.delivered_segments,
            delivered_ce: counters.delivered_ce,
            ..self.total_info(now)
        }
    }

    /// Segments and bytes, and when they came and went.
    fn total_info(&self, now: Time) -> TcpInfo {
        let counters = &self.sender.counters;
        let millis_since = |at: Time| count(now.since(at).as_millis());
        TcpInfo {
            last_data_sent: millis_since(self.sender.sequence.last_sent_at()),
            last_ack_sent: 0,
            last_data_recv: millis_since(counters.data_received_at),
            last_ack_recv: millis_since(counters.ack_received_at),
            bytes_acked: self.sender.sequence.una().saturating_sub(u64::from(self.socket.is_passive())),
            bytes_received: self.delivered_bytes(),
            // Linux answers a SYN before there is a socket to count for.
            segs_out: counters.segments_out.saturating_sub(u32::from(self.socket.is_passive())),
            segs_in: counters.segments_in,
            data_segs_in: counters.data_segments_in,
            data_segs_out: count(self.sender.stats.data_packets()),
            bytes_sent: counters.bytes_sent,
            bytes_retrans: counters.bytes_resent,
            ..self.receiver_info()
        }
    }

    /// The receiving half.
    fn receiver_info(&self) -> TcpInfo {
        TcpInfo {
            ato: micros(self.receiver.ack_timeout()),
            rcv_mss: self.receiver.segment_estimate(),
            rcv_ssthresh: count(self.receiver.threshold()),
            rcv_rtt: if self.delivered_bytes() > 0 { self.sender.rtt.srtt().map_or(0, micros) } else { 0 },
            rcv_space: count(self.receiver.first_window()),
            rcv_ooopack: self.sender.counters.out_of_order,
            ..self.ecn_info()
        }
    }

    /// The fields of Accurate ECN.
    fn ecn_info(&self) -> TcpInfo {
        let accurate = self.sender.ecn.mode() == EcnFeedback::Accurate;
        let ([received_e1_bytes, received_e0_bytes, received_ce_bytes], delivered) = self.sender.ecn.byte_totals();
        let [delivered_e1_bytes, delivered_e0_bytes, delivered_ce_bytes] = delivered;
        let (accecn_opt_seen, ignored, stopped) = self.sender.ecn.option_seen();
        let failed = accurate && self.state != State::SynReceived && !self.sender.ecn.is_usable();
        let pending = self.state == State::SynSent && self.config.ecn == EcnFeedback::Accurate;
        TcpInfo {
            received_ce: if accurate { self.sender.ecn.marks_received() } else { 0 },
            delivered_e1_bytes,
            delivered_e0_bytes,
            delivered_ce_bytes,
            received_e1_bytes,
            received_e0_bytes,
            received_ce_bytes,
            ecn_mode: match self.sender.ecn.mode() {
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
