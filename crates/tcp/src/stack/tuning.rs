//! Automatic tuning of socket buffers: the numbers of Linux releases.

use ackclock_units::Span;

/// The release of Linux whose law the tuning follows.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum TuningRelease {
    /// 2.6.32: as 3.9, but three quarters of the buffer are for data.
    Linux26,
    /// 3.9: twice what the application copied in a round trip.
    Linux39,
    /// 3.13 to 4.18, as 4.0: with a cushion, and three or four times when the rate grows by a
    /// quarter or a half.
    Linux40,
    /// 4.20 to 6.5, as 6.1: with a cushion, and in proportion to the growth.
    Linux61,
    /// 6.18: without a cushion, in proportion to the growth, with what lies beyond a gap, and with
    /// the share of memory that data takes as measured (`scaling_ratio`).
    Linux618,
}

impl TuningRelease {
    /// The unit of its round-trip samples: a jiffy of `HZ` = 250, or the unit of timestamps.
    pub(crate) fn tick(self) -> Span {
        match self {
            TuningRelease::Linux26 | TuningRelease::Linux39 | TuningRelease::Linux40 => Span::from_millis(4),
            TuningRelease::Linux61 | TuningRelease::Linux618 => Span::from_millis(1),
        }
    }

    /// Segments that the first window holds at most (`tcp_default_init_rwnd`), before 4.20.
    pub(crate) fn first_window(self) -> Option<u64> {
        match self {
            TuningRelease::Linux26 => Some(4), // RFC 2414, for an MSS of an Ethernet
            TuningRelease::Linux39 => Some(10),
            TuningRelease::Linux40 => Some(20),
            TuningRelease::Linux61 | TuningRelease::Linux618 => None,
        }
    }
}

/// A buffer that a host tunes while a connection runs. Sizes are of memory, in which the overhead
/// of packets counts.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct BufferTuning {
    /// Whose law it is.
    pub release: TuningRelease,
    /// The buffer of a new socket, bytes: the second number of `net.ipv4.tcp_rmem` or `tcp_wmem`.
    pub default: u64,
    /// The largest buffer, bytes: the third number.
    pub most: u64,
}

/// How a host tunes its buffers.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Tuning {
    /// `net.ipv4.tcp_rmem`.
    pub receive: BufferTuning,
    /// `net.ipv4.tcp_wmem`.
    pub send: BufferTuning,
}

impl Tuning {
    /// The defaults of the profile called `name`, on a machine with much memory; `None` if its
    /// tuning is not modelled.
    pub fn of_profile(name: &str) -> Option<Tuning> {
        let (release, default, most) = match name {
            "linux-2.6.32" => (TuningRelease::Linux26, 87_380, 4 << 20),
            "linux-3.9" => (TuningRelease::Linux39, 87_380, 6 << 20),
            "linux-4.0" => (TuningRelease::Linux40, 87_380, 6 << 20),
            "linux-6.1" => (TuningRelease::Linux61, 131_072, 6 << 20),
            "linux-6.18" | "linux-7.3" => (TuningRelease::Linux618, 131_072, 32 << 20),
            _ => return None,
        };
        Some(Tuning {
            receive: BufferTuning { release, default, most },
            send: BufferTuning { release, default: 16_384, most: 4 << 20 },
        })
    }
}

// What a packet takes of memory (x86-64).

/// `MAX_TCP_HEADER`.
pub(crate) const HEADERS: u64 = 320;
/// `struct sk_buff` and `struct skb_shared_info`, aligned.
const BUFFER: u64 = 256;
const SHARED: u64 = 320;
/// `struct sk_buff` of 2.6.32, about; what follows the data was not counted.
const BUFFER_OF_2_6: u64 = 232;
/// Ethernet, IP and TCP headers and the room that drivers leave in front of them (`NET_SKB_PAD`).
const IN_FRONT: u64 = 14 + 40 + 64;

/// `SKB_TRUESIZE(bytes)`.
pub(crate) const fn true_size(bytes: u64) -> u64 {
    bytes + BUFFER + SHARED
}

/// The memory of a packet that was received, into a buffer for an MSS of `mss` bytes without
/// options: 2304 bytes on an Ethernet.
pub(crate) fn received_size(release: Option<TuningRelease>, mss: u64) -> u64 {
    match release {
        Some(TuningRelease::Linux26) => mss + IN_FRONT + BUFFER_OF_2_6,
        _ => (mss + IN_FRONT + SHARED).next_power_of_two() + BUFFER,
    }
}

/// The memory of a segment for which a window is to have room, before that part of it which is not
/// for data (`rcvmem` of `tcp_rcv_space_adjust`).
pub(crate) fn room_for(release: TuningRelease, segment: u64) -> u64 {
    match release {
        TuningRelease::Linux26 => segment + HEADERS + 16 + BUFFER_OF_2_6,
        _ => true_size(segment + HEADERS),
    }
}

/// The payload that 2.6.32 takes into a send buffer of `memory` bytes: segments of `mss` bytes are
/// begun while there is room, each in a socket buffer of its own.
pub(crate) fn payload_of_2_6(memory: u64, mss: u64) -> u64 {
    memory.div_ceil(mss + HEADERS + BUFFER_OF_2_6) * mss
}

/// The memory of a segment in the send buffer at worst, on which the tuning counts
/// (`tcp_sndbuf_expand`; 2.6.32 and 3.9: `tcp_fixup_sndbuf` and `tcp_new_space`).
pub(crate) fn sent_size(release: TuningRelease, mss: u64) -> u64 {
    match release {
        TuningRelease::Linux26 => room_for(release, mss),
        TuningRelease::Linux39 => true_size(mss + HEADERS),
        _ => (mss + HEADERS + SHARED).next_power_of_two() + BUFFER,
    }
}
