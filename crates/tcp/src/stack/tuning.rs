//! Automatic tuning of socket buffers, as Linux has it.

use ackclock_units::Span;

/// A host's tuning of its buffers: the behaviours of Linux that changed between releases, whose
/// rows are in [`crate::profile`].
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct TuningRules {
    /// By how much the receive buffer grows (`tcp_rcv_space_adjust`).
    pub growth: BufferGrowth,
    /// Three quarters of the receive buffer are for data, not half (`tcp_adv_win_scale` = 2).
    pub three_quarters: bool,
    /// The share of memory that data takes is measured (`scaling_ratio`, `tcp_measure_rcv_mss`).
    pub measures_ratio: bool,
    /// The structure after the data of a packet (`struct skb_shared_info`) counts as memory, in
    /// allocations of powers of two.
    pub counts_shared_info: bool,
    /// The memory of a send buffer is that of an allocation for each segment (`tcp_sndbuf_expand`;
    /// not in `tcp_fixup_sndbuf`).
    pub counts_send_allocations: bool,
    /// The send buffer does not grow with the handshake, nor while what is unacknowledged fills the
    /// window, and holds twice the threshold at least (`tcp_new_space` of 2.6).
    pub counts_unacknowledged: bool,
    /// Segments that the first window holds at most, and the first buffer at least
    /// (`tcp_default_init_rwnd`, `tcp_fixup_rcvbuf`); 0 is no such bound.
    pub first_segments: u64,
    /// The first buffer is eight times that (`tcp_fixup_rcvbuf`, twice, and `<<= 2` where it is
    /// tuned).
    pub eightfold_first_buffer: bool,
    /// The first round trip is taken to copy ten segments at most (`rcvq_space.space` in
    /// `tcp_init_buffer_space`); else a window.
    pub ten_segments_at_first: bool,
    /// Round trips are counted in jiffies of 4 ms (`HZ` = 250); else exactly, with timestamps of 1
    /// ms.
    pub jiffies: bool,
    /// A shorter round trip counts at once, by timestamps too, and of segments with the same
    /// timestamp the first counts (`tcp_rcv_rtt_update`, `tcp_rcv_rtt_measure_ts`).
    pub shorter_at_once: bool,
    /// A longer round trip counts only if everything is read, and none of less than a tick does
    /// (`tcp_rcv_rtt_measure_ts` of 6.18).
    pub longer_if_drained: bool,
    /// Unread data does not count as copied (`tcp_rcv_space_adjust` of 6.18).
    pub unread_apart: bool,
    /// Twice of what was copied is remembered (`rcvq_space.space`).
    pub remembers_twice: bool,
    /// Data that fills a gap widens the window, and data beyond one does not (`tcp_data_queue_ofo`
    /// calls no `tcp_grow_window`).
    pub in_order_alone: bool,
    /// Data beyond a gap makes the buffer grow (`tcp_rcvbuf_grow` in `tcp_data_queue_ofo`).
    pub grows_beyond_gaps: bool,
    /// The window that follows a larger buffer is of what data it holds, and grows no further than
    /// what is free (`tcp_grow_window`); else of what was asked for, while anything is free.
    pub bound_by_free: bool,
}

/// The growth of a receive buffer that follows from the data copied in a round trip.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum BufferGrowth {
    /// Twice that data.
    Twice,
    /// Twice, with a cushion of 16 segments, and three or four times when the rate grows by a
    /// quarter or a half.
    Steps,
    /// Twice, with that cushion, and in proportion to the growth.
    Proportion,
    /// Twice, in proportion to the growth, with what lies beyond a gap.
    ProportionAndGaps,
}

impl TuningRules {
    /// The unit of its round-trip samples: a jiffy of `HZ` = 250, or the unit of timestamps.
    pub(crate) fn tick(&self) -> Span {
        Span::from_millis(self.tick_ms())
    }

    /// The tick in milliseconds.
    pub(crate) fn tick_ms(&self) -> u64 {
        if self.jiffies { 4 } else { 1 }
    }
}

/// A buffer that a host tunes while a connection runs. Sizes are of memory, in which the overhead
/// of packets counts.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct BufferTuning {
    /// The law of the growth.
    pub law: TuningRules,
    /// The buffer of a new socket, bytes: the second number of `net.ipv4.tcp_rmem` or `tcp_wmem`.
    pub default: u64,
    /// The largest buffer, bytes: the third number.
    pub most: u64,
}

/// A host's tuning of its buffers.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Tuning {
    /// `net.ipv4.tcp_rmem`.
    pub receive: BufferTuning,
    /// `net.ipv4.tcp_wmem`.
    pub send: BufferTuning,
}

// The memory of a packet (x86-64).

/// An empty buffer of a sender: `struct sk_buff` of 256 bytes and 1024 bytes of head.
pub(crate) const OVERHEAD: u64 = 1280;
/// `MAX_TCP_HEADER`.
pub(crate) const HEADERS: u64 = 320;
/// `struct sk_buff` and `struct skb_shared_info`, aligned.
const BUFFER: u64 = 256;
const SHARED: u64 = 320;
/// `struct sk_buff` of 2.6.32, about; what follows the data was not counted.
const BARE_BUFFER: u64 = 232;
/// Ethernet, IP and TCP headers and the room that drivers leave in front of them (`NET_SKB_PAD`).
const IN_FRONT: u64 = 14 + 40 + 64;

/// `SKB_TRUESIZE(bytes)`.
pub(crate) const fn true_size(bytes: u64) -> u64 {
    bytes + BUFFER + SHARED
}

/// The memory of a packet that was received, into a buffer for an MSS of `mss` bytes without
/// options: 2304 bytes on an Ethernet.
pub(crate) fn received_size(rules: Option<&TuningRules>, mss: u64) -> u64 {
    match rules {
        Some(TuningRules { counts_shared_info: false, .. }) => mss + IN_FRONT + BARE_BUFFER,
        _ => (mss + IN_FRONT + SHARED).next_power_of_two() + BUFFER,
    }
}

/// The memory of a segment for which a window is to have room, before that part of it which is not
/// for data (`rcvmem` of `tcp_rcv_space_adjust`).
pub(crate) fn room_for(rules: &TuningRules, segment: u64) -> u64 {
    match rules.counts_shared_info {
        true => true_size(segment + HEADERS),
        false => segment + HEADERS + 16 + BARE_BUFFER,
    }
}

/// The payload that goes into a send buffer of `memory` bytes where only bare buffers count:
/// segments of `mss` bytes are begun while there is room, each in a socket buffer of its own.
pub(crate) fn payload_of_bare_buffers(memory: u64, mss: u64) -> u64 {
    memory.div_ceil(mss + HEADERS + BARE_BUFFER) * mss
}

/// The memory of a segment in the send buffer at worst, on which the tuning counts
/// (`tcp_sndbuf_expand`; 2.6.32 and 3.9: `tcp_fixup_sndbuf` and `tcp_new_space`).
pub(crate) fn sent_size(rules: &TuningRules, mss: u64) -> u64 {
    match rules.counts_send_allocations {
        true => (mss + HEADERS + SHARED).next_power_of_two() + BUFFER,
        false => room_for(rules, mss),
    }
}
