//! Enhanced round-trip times: the measurement on which delay-based controllers are based.
//!
//! It remembers every segment that was sent and finds the one that an ACK answers, so that neither
//! delayed ACKs nor retransmissions nor SACK distort the sample. In addition to the sample of each
//! ACK it measures one *marked* segment per round trip: when that one is answered a measurement is
//! complete, and the next segment to be sent is marked. "Once per RTT" of the algorithms means once
//! per measurement.
//!
//! Times are whole ticks of a clock of `rtt_unit`, and a sample is one tick more than the
//! difference of two readings, as in the reference, whose tick is 1 ms: a round trip of 40.0 ms
//! reads as 41 ticks. Thresholds and gradients of the algorithms are in these ticks, so that a
//! finer clock calls for parameters that are larger in proportion.
//!
//! An ACK is processed as follows:
//! - One that acknowledges nothing new counts by the end of its highest SACK block; one with
//!   neither is ignored.
//! - Segments wholly below what it acknowledges leave without a sample. So do those sent before the
//!   segment whose timestamp it echoes: it cannot answer them.
//! - More bytes than the segment had indicate that the receiver delays ACKs, exactly its bytes that
//!   it may not; five of either are remembered. While it seems to delay, an ACK of a single segment
//!   may have waited, and yields no sample unless SACK is involved.
//! - An ACK that echoes an older timestamp than the segment's answers an earlier one, unless the
//!   receiver delays ACKs and echoes the first of several.
//!
//! # Source
//! FreeBSD `sys/netinet/khelp/h_ertt.c` and `h_ertt.h` of 9.0 and 15. They differ in the clock,
//! which was that of the kernel's ticks (1 ms by default) and is that of timestamps since, and in
//! how a segment for offloading is divided.
//!
//! # Departures
//! - Nothing is offloaded to the interface, so the rules for TSO are not here.
//! - The reference stops trusting timestamps after ten that went backwards. RFC 7323 section 5.3
//!   has discarded those before.
//! - It keeps as many segments as it can allocate; here [`SEGMENTS`], beyond which they are not
//!   recorded either.
//! - Kept as in the reference: a marked segment that is skipped hands its mark to the next, but
//!   then the measurement is corrected back to the time and the bytes of the last that was skipped
//!   (`FORCED_MEASUREMENT` follows `CORRECT_ACK`).

use std::collections::VecDeque;

use ackclock_units::{Span, Time};

use crate::{Arrival, EnhancedRtt, Flight, Sent};

/// Segments that are remembered: a window of 190 MB of 1448 bytes.
const SEGMENTS: usize = 1 << 17;
/// `DLYACK_SMOOTH`: how many ACKs in agreement settle whether the receiver delays them.
const DELAYED_ACK_SMOOTH: u8 = 5;
/// Longer than every round trip, and short enough for exact arithmetic in 64 bits with seven
/// fractional bits.
const TICKS_MAX: i64 = 1 << 40;

/// The measurement. A controller that embeds it hands it every segment sent, every arrival and
/// every timeout, as `h_ertt` hooks into FreeBSD's TCP:
///
/// ```
/// use ackclock_cc::{
///     Ack, Arrival, CongestionControl, EnhancedRtt, Ertt, Flight, Needs, NewReno, NewRenoConfig, Sent, Signal,
///     Verdict, Window,
/// };
/// use ackclock_units::Span;
///
/// /// NewReno that leaves slow start once packets wait for longer than they travel.
/// #[derive(Debug)]
/// struct Early {
///     reno: NewReno,
///     ertt: Ertt,
/// }
///
/// impl CongestionControl for Early {
///     fn name(&self) -> &'static str {
///         "early"
///     }
///     fn window(&self) -> Window {
///         self.reno.window()
///     }
///     fn needs(&self) -> Needs {
///         Needs { arrivals: true, departures: true, ..Needs::default() }
///     }
///     fn on_sent(&mut self, f: &Flight, sent: &Sent) {
///         self.ertt.on_sent(f, sent);
///     }
///     fn on_arrival(&mut self, f: &Flight, arrival: &Arrival) {
///         self.ertt.on_arrival(f, arrival, self.reno.window().cwnd);
///     }
///     fn on_established(&mut self, f: &Flight) {
///         self.ertt = Ertt::new(Span::from_millis(1));
///         self.reno.on_established(f);
///     }
///     fn take_over(&mut self, window: Window) {
///         self.reno.take_over(window);
///     }
///     fn on_ack(&mut self, f: &Flight, ack: &Ack) -> Verdict {
///         if self.ertt.take_measurement() {
///             let EnhancedRtt { marked, min, .. } = self.ertt.enhanced_rtt();
///             let Window { cwnd, ssthresh } = self.reno.window();
///             if marked > min * 2 && cwnd < ssthresh {
///                 self.reno.set_window(Window { cwnd, ssthresh: cwnd });
///             }
///         }
///         self.reno.on_ack(f, ack)
///     }
///     fn on_signal(&mut self, f: &Flight, signal: Signal) {
///         if let Signal::Timeout { .. } = signal {
///             self.ertt.on_timeout();
///         }
///         self.reno.on_signal(f, signal);
///     }
/// }
///
/// let reno = NewReno::new(NewRenoConfig::default());
/// let early = Early { reno, ertt: Ertt::new(Span::from_millis(1)) };
/// assert_eq!(early.ertt.enhanced_rtt().measurements, 0);
/// ```
#[derive(Clone, Debug)]
pub struct Ertt {
    unit: Span,
    segments: VecDeque<SentSegment>,
    /// A marked segment is on its way.
    in_progress: bool,
    /// Bytes sent since it was marked.
    bytes_in_rtt: i64,
    /// `dlyack_rx`: above zero, the receiver seems to delay ACKs.
    delayed_acks: u8,
    /// The end of the highest SACK block; above what is acknowledged there are holes.
    sacked_to: u64,
    /// The newest sample in ticks; zero before the first, like those below.
    pub(crate) rtt: i64,
    pub(crate) min: i64,
    pub(crate) max: i64,
    /// `markedpkt_rtt`, `bytes_tx_in_marked_rtt` and `marked_snd_cwnd`: round trip, bytes sent in
    /// it, and window at its end.
    pub(crate) marked: i64,
    pub(crate) bytes_in_marked: i64,
    pub(crate) marked_cwnd: u64,
    measurements: u64,
    /// `ERTT_NEW_MEASUREMENT`
    new: bool,
}

#[derive(Clone, Copy, Debug)]
struct SentSegment {
    seq: u64,
    bytes: u32,
    sent_at: Time,
    /// `TXSI_RTT_MEASURE_START`
    marked: bool,
}

impl SentSegment {
    fn end(&self) -> u64 {
        self.seq.saturating_add(self.bytes.into())
    }
}

impl Ertt {
    /// A measurement of a connection that has sent nothing, in ticks of `unit`.
    pub fn new(unit: Span) -> Ertt {
        Ertt {
            unit,
            segments: VecDeque::new(),
            in_progress: false,
            bytes_in_rtt: 0,
            delayed_acks: 0,
            sacked_to: 0,
            rtt: 0,
            min: 0,
            max: 0,
            marked: 0,
            bytes_in_marked: 0,
            marked_cwnd: 0,
            measurements: 0,
            new: false,
        }
    }

    /// `ertt_add_tx_segment_info_hook`
    pub fn on_sent(&mut self, f: &Flight, sent: &Sent) {
        if sent.bytes == 0 || self.segments.len() >= SEGMENTS {
            return;
        }
        let marked = !std::mem::replace(&mut self.in_progress, true);
        let before = if marked { 0 } else { self.bytes_in_rtt };
        self.bytes_in_rtt = before.saturating_add(sent.bytes.into());
        self.segments.push_back(SentSegment { seq: sent.seq, bytes: sent.bytes, sent_at: f.now, marked });
    }

    /// `ertt_packet_measurement_hook`; `cwnd` is the window at this moment.
    pub fn on_arrival(&mut self, f: &Flight, arrival: &Arrival, cwnd: u64) {
        let una = arrival.ack.saturating_sub(arrival.acked);
        // In the reference the acknowledged part counts as a block while the scoreboard has holes.
        let sack = arrival.sacked_to.is_some() || (arrival.acked > 0 && self.sacked_to > una);
        self.sacked_to = self.sacked_to.max(arrival.sacked_to.unwrap_or(0));
        let edge = match (arrival.acked, arrival.sacked_to) {
            (0, None) => return,
            (0, Some(sacked_to)) => sacked_to,
            _ => arrival.ack,
        };
        let now = millis(f.now);
        // An echo from the future is none.
        let echo = arrival.echoed.and_then(|ago| now.checked_sub(ago.as_millis()));
        let mut multiple = false;
        let mut answered = None;
        // The last segment that left unmeasured on the way to the one that is, and the bytes of all
        // of them.
        let mut skipped: Option<SentSegment> = None;
        let mut skipped_bytes = 0i64;
        while let Some(&front) = self.segments.front() {
            let wanted = front.marked || skipped.is_some();
            let mut old = edge > front.end();
            if !old {
                if !sack {
                    multiple |= self.guess_delayed_acks(f, arrival.acked, front.bytes);
                }
                if let Some(echo) = echo {
                    let sent = millis(front.sent_at);
                    if echo < sent && self.delayed_acks == 0 {
                        break;
                    }
                    old = echo > sent;
                }
            }
            if old {
                if wanted {
                    skipped = Some(front);
                    skipped_bytes = skipped_bytes.saturating_add(front.bytes.into());
                }
                self.segments.pop_front();
                continue;
            }
            if edge <= front.seq {
                break;
            }
            if self.delayed_acks == 0 || multiple || sack {
                self.sample(self.ticks_since(front.sent_at, f.now));
            }
            if wanted {
                answered = Some(front.sent_at);
            }
            self.segments.pop_front();
            break;
        }
        let Some(marked_at) = skipped.map(|segment| segment.sent_at).or(answered) else { return };
        let own = skipped.map_or(0, |segment| i64::from(segment.bytes));
        self.marked = self.ticks_since(marked_at, f.now);
        self.bytes_in_marked = self.bytes_in_rtt.saturating_add(own).saturating_sub(skipped_bytes);
        self.marked_cwnd = cwnd;
        self.in_progress = false;
        self.new = true;
        self.measurements += 1;
    }

    /// The retransmission timer expired: the reference forgets what was SACKed.
    pub fn on_timeout(&mut self) {
        self.sacked_to = 0;
    }

    /// Returns `true` if a measurement was completed since the last call.
    pub fn take_measurement(&mut self) -> bool {
        std::mem::take(&mut self.new)
    }

    /// The measurements so far.
    pub fn enhanced_rtt(&self) -> EnhancedRtt {
        let span = |ticks: i64| self.unit * ticks.unsigned_abs();
        EnhancedRtt {
            rtt: span(self.rtt),
            min: span(self.min),
            max: span(self.max),
            marked: span(self.marked),
            bytes_in_marked: self.bytes_in_marked.unsigned_abs(),
            measurements: self.measurements,
            delayed_acks: self.delayed_acks > 0,
        }
    }

    /// Returns `true` if the ACK covers more than one segment, and learns from that whether the
    /// receiver delays ACKs.
    fn guess_delayed_acks(&mut self, f: &Flight, acked: u64, bytes: u32) -> bool {
        let (mss, bytes) = (f.segment(), u64::from(bytes));
        let multiple = acked > mss || acked > bytes;
        if multiple {
            self.delayed_acks = (self.delayed_acks + 1).min(DELAYED_ACK_SMOOTH);
        } else if acked == mss || acked == bytes {
            self.delayed_acks = self.delayed_acks.saturating_sub(1);
        }
        multiple
    }

    fn sample(&mut self, rtt: i64) {
        self.rtt = rtt;
        self.min = if self.min == 0 { rtt } else { self.min.min(rtt) };
        self.max = self.max.max(rtt);
    }

    fn ticks_since(&self, then: Time, now: Time) -> i64 {
        let unit = self.unit.as_nanos().max(1);
        let ticks = (now.as_nanos() / unit).saturating_sub(then.as_nanos() / unit);
        ticks.min(TICKS_MAX as u64 - 1) as i64 + 1
    }
}

/// The clock of timestamps.
fn millis(time: Time) -> u64 {
    time.as_nanos() / 1_000_000
}

#[cfg(test)]
mod tests;
