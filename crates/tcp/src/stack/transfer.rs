//! The knobs of the data path: where stacks differ in what they send, offer and acknowledge,
//! although the RFCs leave them the same window.

use ackclock_cc::EcnFeedback;
use ackclock_packet::OptionLayout;
use ackclock_units::Span;

use crate::{AccEcnRules, BufferTuning, LossRules, OffloadRule, Ticks, TimerRules};

defaults! {
/// A host's rules to lay out options, estimate its timeout, offer its window, acknowledge, report
/// duplicates and cut its stream into segments. The default is what the RFCs say;
/// [`crate::profile`] has the settings of real stacks.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct TransferRules {
    /// The order of options and their padding. Default Linux's.
    pub options: OptionLayout = OptionLayout::Linux;
    /// The computation of the timeout from RTT samples. Default RFC 6298.
    pub rtt: RttRule = RttRule::Rfc6298;
    /// The window that is offered. Default: RFC 9293.
    pub window: WindowRule = WindowRule::Rfc;
    /// The peer's window that is believed. Default: RFC 9293.
    pub peer_window: PeerWindow = PeerWindow::Newest;
    /// When data is acknowledged. Default: as [`crate::DelayedAck`] says.
    pub acks: AckRule = AckRule::Delayed;
    /// The SACK option's reports of duplicates. Default: RFC 2883.
    pub reports: ReportRule = ReportRule::Rfc2883;
    /// Where a segment that fills a gap repeats several that are held, the parts that it repeats
    /// end where those end, as in later releases of Linux (`tcp_ofo_queue`); and a SYN that comes
    /// again with the ACK of ours is reported. Default false; it concerns [`ReportRule::Linux`]
    /// alone.
    pub exact_duplicates: bool = false;
    /// Segments are counted, not bytes, as in Linux: one is reported when SACK blocks cover all of it
    /// (`tcp_match_skb_to_sack`), instead of in parts; a short one that arrives counts whole for the
    /// growth of the window (`tcp_cong_control`), whose use is looked at when a segment can leave
    /// (`tcp_write_xmit`). Default false.
    pub counts_segments: bool = false;
    /// ACKs of data beyond a gap are put together into fewer (Linux `tcp_comp_sack_nr` and its
    /// companions). Default none: each such segment is acknowledged (RFC 5681 section 4.2).
    pub sack_compression: Option<SackCompression> = None;
    /// All segments but SYNs are ECN-capable on a connection with Accurate ECN, ACKs and
    /// retransmissions too, as in Linux from 7.0 on. Default false: data that is sent for the
    /// first time (RFC 3168 section 6.1.4), unless the controller asks for more.
    pub capable_control: bool = false;
    /// The division of the stream into segments, and the holding back of small ones. Default: RFC
    /// 9293.
    pub sending: SendRule = SendRule::Rfc;
    /// A small segment waits for an ACK only while another small one is in flight: Minshall's
    /// variant of Nagle's algorithm (draft-minshall-nagle-01), as Linux has it. Default false;
    /// [`SendRule::Linux`] includes it.
    pub minshall: bool = false;
    /// PSH is set where a write ends, whatever follows it, and where half of the peer's largest
    /// window has gone without it, for an application that writes [`TransferRules::write_size`]
    /// bytes at a time: Linux until 2.4.3 (`PSH_NEEDED` and `pushed_seq` of `tcp_sendmsg`). Default
    /// false.
    pub push_writes: bool = false;
    /// Bytes that the application writes at a time, which blocks until they are taken; 0 if that is
    /// not known. [`TransferRules::push_writes`] alone asks for it.
    pub write_size: u32 = 0;
    /// PSH is decided as the application writes: it is set where a write ends, unless more is
    /// added to that segment before it leaves, and in a write where half of the peer's largest
    /// window has been written without it, as in Linux from 2.4.4 on (`tcp_push`, `forced_push`).
    /// Default false: at the end of all that is written.
    pub push_when_written: bool = false;
    /// Segments next to each other that are not read share the overhead of one in the receive
    /// buffer, as in Linux from 3.5 on (`tcp_try_coalesce`). Default false.
    pub coalesces: bool = false;
    /// The filling of the send buffer. Default: by the bytes of the stream.
    pub send_space: SpaceRule = SpaceRule::Bytes;
    /// The receive buffer is tuned while the connection runs, by [`WindowRule::Linux`]. Default
    /// none: it stays as it is.
    pub receive_tuning: Option<BufferTuning> = None;
    /// The tuning of the send buffer, by [`SpaceRule::Tuned`]. Default none.
    pub send_tuning: Option<BufferTuning> = None;
    /// Tell the MSS in a SYN. Default true; TCP_NOOPT takes it off along with the other options.
    pub mss_option: bool = true;
    /// Take segments without timestamps on a connection that agreed on them, as Linux does. Default
    /// false (RFC 7323 section 3.2).
    pub lenient_timestamps: bool = false;
    /// A segment that is refused for its timestamp, but repeats something, is reported as a
    /// duplicate, as Linux does (`tcp_send_dupack`). Default false.
    pub report_refused: bool = false;
    /// The ACK that ends the handshake goes out by itself, since the application writes only when
    /// `connect` has returned: as in Linux, unless a write waits for the handshake
    /// (`sk_write_pending` of `tcp_rcv_synsent_state_process`). Default false: data rides on it.
    pub bare_handshake_ack: bool = false;
    /// The best feedback of ECN that is agreed to when the peer asks, without asking (`ecn` = 2 of
    /// both systems, `tcp_ecn` = 4 and 5 of Linux). Default none: as [`crate::Config::ecn`] says.
    pub accept_ecn: EcnFeedback = EcnFeedback::None;
    /// The use of Accurate ECN. Default: as RFC 9768 says, without its option.
    pub acc_ecn: AccEcnRules = AccEcnRules::default();
    /// Segments of a burst at least, if the windows allow so many (Linux
    /// `net.ipv4.tcp_min_tso_segs`): where PSH is set by [`SendRule::Linux`]. Default 2.
    pub least_burst: u32 = 2;
    /// A socket buffer holds one segment, where [`SendRule::Linux`] fills it by half of the peer's
    /// window: a device of which `gso_max_segs` is 1. Default false.
    pub single_segments: bool = false;
    /// The use of units of several segments, and their size. Default off.
    pub offload: OffloadRule = OffloadRule::default();
    /// When the retransmission timer and delayed ACKs expire.
    pub ticks: Ticks = Ticks::default();
    /// When ACKs restart the retransmission timer, and end its back-off. Default: RFC 6298.
    pub timer: TimerRules = TimerRules::default();
    /// The course of episodes in Linux's engine. Default: as since 4.0.
    pub loss: LossRules = LossRules::default();
    /// When the first timeout in a row is taken back by the engines of the RFCs. Default never.
    pub needless_timeout: NeedlessTimeout = NeedlessTimeout::Never;
}
}

/// The sign by which FreeBSD sees that the first timeout in a row was needless (`t_badrxtwin`): the
/// first ACK of something new. The window is then what it was, and what was not sent again is not
/// (`CC_RTO_ERR`).
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub enum NeedlessTimeout {
    /// Nothing.
    #[default]
    Never,
    /// The ACK comes within half of a smoothed round trip, so that it cannot be the answer.
    Soon,
    /// The ACK echoes a timestamp from before the retransmission; without timestamps, it comes so
    /// soon.
    Echo,
}

impl TransferRules {
    /// A socket of Linux 6.1 whose receive buffer may be made as large as `most`, bytes (the last
    /// number of `net.ipv4.tcp_rmem`): it sets the window scale.
    pub fn linux(most: u64) -> TransferRules {
        TransferRules {
            rtt: RttRule::Linux,
            window: WindowRule::Linux { most },
            peer_window: PeerWindow::Larger,
            acks: AckRule::Linux,
            reports: ReportRule::Linux,
            counts_segments: true,
            sack_compression: Some(SackCompression::default()),
            sending: SendRule::Linux,
            send_space: SpaceRule::Linux,
            lenient_timestamps: true,
            report_refused: true,
            bare_handshake_ack: true,
            accept_ecn: EcnFeedback::Classic,
            ticks: Ticks::WHEEL,
            ..TransferRules::default()
        }
    }

    /// Returns `true` if PSH is decided as the application writes, into a buffer that does not say
    /// where its parts end ([`SpaceRule::Linux`] does).
    #[inline]
    pub(crate) fn marks_writes(&self) -> bool {
        self.push_when_written && self.send_space != SpaceRule::Linux
    }

    /// A socket of Linux 6.18 whose receive buffer may be made as large as `most`, bytes.
    pub fn linux_6_18(most: u64) -> TransferRules {
        let peer_window = PeerWindow::LargerOrClosed;
        TransferRules { exact_duplicates: true, peer_window, ..TransferRules::linux(most) }
    }

    /// A socket of FreeBSD 14 whose buffers may be made as large as `most`, bytes
    /// (`kern.ipc.maxsockbuf`): it sets the window scale.
    pub fn freebsd(most: u64) -> TransferRules {
        TransferRules {
            options: OptionLayout::FreeBsd,
            window: WindowRule::FreeBsd { most },
            acks: AckRule::FreeBsd,
            reports: ReportRule::FreeBsd,
            sending: SendRule::FreeBsd,
            accept_ecn: EcnFeedback::Classic,
            needless_timeout: NeedlessTimeout::Echo,
            ..TransferRules::default()
        }
    }

    /// [`TuningRules::counts_unacknowledged`](crate::TuningRules::counts_unacknowledged) of the send
    /// buffer.
    pub(crate) fn counts_unacknowledged(&self) -> bool {
        self.send_tuning.is_some_and(|tuning| tuning.law.counts_unacknowledged)
    }
}

defaults! {
/// The compression of ACKs of data beyond a gap. After three with the same acknowledgment, which a
/// sender may need to find a loss, the next one waits.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct SackCompression {
    /// Longest delay of a compressed ACK, besides a twentieth of the round trip. Default 1 ms
    /// (`tcp_comp_sack_delay_ns`).
    pub delay: Span = Span::from_millis(1);
    /// Added to that, since the timer may be late by so much. Default 100 us
    /// (`tcp_comp_sack_slack_ns`).
    pub slack: Span = Span::from_micros(100);
    /// Segments that wait for one ACK at most. Default 44 (`tcp_comp_sack_nr`).
    pub segments: u32 = 44;
}
}

/// The computation of the timeout from RTT samples.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub enum RttRule {
    /// RTTVAR is an average with a gain of 1/4.
    #[default]
    Rfc6298,
    /// Linux's `tcp_rtt_estimator`: the deviation counts less when the RTT falls, the variance is
    /// the largest mean deviation of the last round trip, and falls by a quarter of the difference
    /// from one round trip to the next.
    Linux,
}

/// The window that is offered.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub enum WindowRule {
    /// The room of the buffer, in steps of a segment at least (RFC 9293 section 3.8.6.2.2).
    #[default]
    Rfc,
    /// Linux's `tcp_select_initial_window` and `__tcp_select_window`: half of the buffer is for
    /// data, whole segments at first, and none when little room is left.
    Linux {
        /// The largest buffer that the window scale has to express, bytes; the one that there is if
        /// that is larger.
        most: u64,
    },
    /// FreeBSD's `tcp_output`: the buffer, rounded up to segments, and an update once two segments
    /// and a quarter of it, or half of it, can be added.
    FreeBsd {
        /// The largest buffer that the window scale has to express, bytes.
        most: u64,
    },
}

impl WindowRule {
    /// The rule of a socket whose buffer was set by hand before the connection (SO_RCVBUF): Linux
    /// does not scale the window for more then (`SOCK_RCVBUF_LOCK` in `tcp_openreq_init_rwin` and
    /// `tcp_connect_init`).
    pub fn with_fixed_buffer(self) -> WindowRule {
        match self {
            WindowRule::Linux { .. } => WindowRule::Linux { most: 0 },
            WindowRule::Rfc | WindowRule::FreeBsd { .. } => self,
        }
    }

    /// The data that fits into a buffer of `memory` bytes that is not tuned: half in Linux
    /// (`tcp_win_from_space` with `tcp_adv_win_scale` = 1).
    pub(crate) fn space(self, memory: u64) -> u64 {
        match self {
            WindowRule::Linux { .. } => memory - memory / 2,
            WindowRule::Rfc | WindowRule::FreeBsd { .. } => memory,
        }
    }

    /// The memory of a buffer for `space` bytes of data.
    pub(crate) fn memory(self, space: u64) -> u64 {
        match self {
            WindowRule::Linux { .. } => space.saturating_mul(2),
            WindowRule::Rfc | WindowRule::FreeBsd { .. } => space,
        }
    }
}

/// The window of an ACK that differs in nothing else from the one before: the two may have changed
/// places on the way.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub enum PeerWindow {
    /// The window that came last (RFC 9293 section 3.10.7.4).
    #[default]
    Newest,
    /// A larger one (Linux `tcp_may_update_window`).
    Larger,
    /// A larger one, or a closed window (Linux from 6.6 on).
    LargerOrClosed,
}

/// When data is acknowledged.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub enum AckRule {
    /// The delay of [`crate::DelayedAck`].
    #[default]
    Delayed,
    /// Linux: at once at the start and after trouble (quick-ACK mode), otherwise after more than
    /// one segment's worth, by an estimate of what a segment is, or after a timeout that follows
    /// the gaps between arrivals, 40 ms to 200 ms. A connection that answers data with data leaves
    /// quick-ACK mode.
    Linux,
    /// FreeBSD: every second segment, whatever its size, or after [`crate::DelayedAck::timeout`].
    FreeBsd,
}

/// The SACK option's reports of duplicates, if [`crate::Config::dsack`] is set.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub enum ReportRule {
    /// The first duplicate part of the last segment, then the ranges by recency (RFC 2883 section
    /// 4).
    #[default]
    Rfc2883,
    /// Linux's `tcp_data_queue_ofo`: all parts of the last segment that were known, if they follow
    /// each other; and the list of blocks has four places.
    Linux,
    /// FreeBSD's `tcp_update_sack_list` and `tcp_update_dsack_list`.
    FreeBsd,
}

/// The division of the stream into segments, and the holding back of small ones.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub enum SendRule {
    /// PSH on the last byte written; Nagle and silly window avoidance of RFC 9293 sections 3.7.4
    /// and 3.8.6.2.1.
    #[default]
    Rfc,
    /// Linux's `tcp_write_xmit`: Minshall's variant of Nagle, segments of at most half the largest
    /// window, none that the window does not hold, PSH at the end of every burst that is given to
    /// segmentation offload.
    Linux,
    /// FreeBSD's `tcp_output`: as the RFCs, and a segment of half the largest window is never
    /// small.
    FreeBsd,
}

/// The filling of the send buffer.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub enum SpaceRule {
    /// By the bytes of the stream that are unsent or unacknowledged.
    #[default]
    Bytes,
    /// Linux's rule without segmentation offload, where each segment has a socket buffer to itself;
    /// the size of the send buffer is then that of the payload which fits into it. A writer that
    /// found it full is woken once a third is free (`sk_stream_write_space`), and segments that are
    /// SACKed next to each other share one overhead (`tcp_shift_skb_data`).
    Segments,
    /// Linux's rule: socket buffers of up to 64 kB are begun while the queued data, overhead
    /// included, is less than the send buffer.
    Linux,
    /// The rule of [`SpaceRule::Segments`], with a buffer that grows with the congestion window
    /// ([`TransferRules::send_tuning`]).
    Tuned,
}

impl SpaceRule {
    /// Its name in scenarios, which know the first two.
    pub fn name(self) -> &'static str {
        match self {
            SpaceRule::Bytes => "bytes",
            SpaceRule::Linux => "linux",
            SpaceRule::Segments | SpaceRule::Tuned => "segments",
        }
    }
}
