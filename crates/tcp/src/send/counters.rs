//! What a sender counts: [`Stats`] for everybody, [`Counters`] for [`crate::TcpInfo`], and why a
//! data segment was sent.

use ackclock_packet::{Flags, Segment};
use ackclock_units::{Ecn, Span, Time};

use crate::loss::scoreboard::Progress;

/// Counts and times of one connection.
#[derive(Debug)]
pub(crate) struct Counters {
    pub(crate) segments_out: u32,
    pub(crate) segments_in: u32,
    /// Segments of these that took the short path of header prediction.
    pub(crate) predicted: u64,
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
    /// Segments whose delivery was reported along with an ECN echo, or that were counted as marked.
    pub(crate) delivered_ce: u32,
    /// Something was sent since there was last nothing to send.
    pub(crate) sending: bool,
    /// The last look for something to send ended at the peer's window.
    pub(crate) window_stopped: bool,
}

/// The time for which a condition has applied.
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

    /// Sets the condition from `now` on.
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

    /// The time in all.
    pub(crate) fn read(&self, now: Time) -> Span {
        if self.since == Time::NEVER { self.total } else { self.total + now.since(self.since) }
    }
}

impl Counters {
    pub(crate) fn new() -> Counters {
        Counters {
            segments_out: 0,
            segments_in: 0,
            predicted: 0,
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

    /// A segment leaves.
    #[inline]
    pub(crate) fn segment_sent(&mut self) {
        self.segments_out += 1;
        self.sending = true;
    }

    /// Counts the progress that an ACK reported, `marks` of it as marked.
    #[inline]
    pub(crate) fn progressed(&mut self, progress: &Progress, marks: u64) {
        self.delivered_ce = self.delivered_ce.wrapping_add(marks as u32);
        self.delivered_segments += progress.delivered_segments as u32;
    }
}

/// Declares the totals, each with what joins those of two endpoints.
macro_rules! totals {
    ($($(#[$about:meta])* $key:ident: $type:ty, $join:ident;)*) => {
        /// Totals of one endpoint.
        #[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
        pub struct Stats {
            $($(#[$about])* pub $key: $type,)*
        }

        impl std::ops::Add for Stats {
            type Output = Stats;

            /// The totals of two endpoints.
            fn add(self, other: Stats) -> Stats {
                Stats { $($key: self.$key.$join(other.$key),)* }
            }
        }
    };
}

totals! {
    /// Segments with data (or a FIN) sent, retransmissions included.
    sent_packets: u64, saturating_add;
    /// Packets of these that were sent again.
    retransmitted_packets: u64, saturating_add;
    /// FINs without data among those sent.
    bare_fins: u32, saturating_add;
    /// FINs without data among those sent again.
    retransmitted_fins: u32, saturating_add;
    /// SYNs sent again, on hosts that count them among their retransmissions
    /// ([`crate::StateRules::counts_syns`]).
    resent_syns: u32, saturating_add;
    /// Expiries of the retransmission timer.
    timeouts: u64, saturating_add;
    /// Entries into fast recovery.
    fast_recoveries: u64, saturating_add;
    /// Tail loss probes sent.
    loss_probes: u32, saturating_add;
    /// Window reductions taken back.
    undos: u64, saturating_add;
    /// ACKs that carried the ECN echo.
    ece_acks: u64, saturating_add;
    /// The farthest that a segment sent once was reported after a later one, in segments.
    reordering_max: u64, max;
    /// Blocks with which the receiver reported duplicates (RFC 2883).
    dsacks: u64, saturating_add;
}

impl Stats {
    /// Segments with data sent, retransmissions included.
    pub fn data_packets(&self) -> u64 {
        self.sent_packets - u64::from(self.bare_fins)
    }

    /// Segments with data sent again.
    pub fn retransmitted_data(&self) -> u64 {
        self.retransmitted_packets - u64::from(self.retransmitted_fins)
    }

    /// A segment with this payload is sent again.
    pub(crate) fn resent(&mut self, payload: u32) {
        self.retransmitted_packets += 1;
        self.retransmitted_fins += u32::from(payload == 0);
    }
}

/// Why a data segment was sent.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub enum SentAs {
    /// New data.
    #[default]
    New,
    /// New data on a duplicate ACK (RFC 3042).
    LimitedTransmit,
    /// A retransmission of what the loss detector declared lost.
    FastRetransmit,
    /// A retransmission of what is not known lost, because there is room (RFC 6675 `NextSeg` rules
    /// 3 and 4).
    Speculative,
    /// A retransmission of what the retransmission timer declared lost.
    Timeout,
    /// A tail loss probe (RFC 8985 section 7).
    TailLossProbe,
    /// A probe of a closed window.
    WindowProbe,
    /// An ACK that bears the FIN once more: no transmission of its own.
    Ack,
}

impl SentAs {
    /// Its name in records.
    pub fn name(self) -> &'static str {
        match self {
            SentAs::New => "new",
            SentAs::LimitedTransmit => "limited_transmit",
            SentAs::FastRetransmit => "fast_retransmit",
            SentAs::Speculative => "speculative",
            SentAs::Timeout => "timeout",
            SentAs::TailLossProbe => "tail_loss_probe",
            SentAs::WindowProbe => "window_probe",
            SentAs::Ack => "ack",
        }
    }
}
