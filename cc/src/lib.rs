//! Congestion control: how much may be in flight.
//!
//! One trait with the hooks and moments of FreeBSD's `mod_cc`; one file per algorithm. An algorithm owns its window and
//! nothing else: the endpoint decides when a segment is lost, shapes the window during recovery (PRR) and tells the
//! algorithm what happened through a read-only [`Flight`].

use std::fmt::Debug;

use ackclock_units::{Rate, Span, Time};

/// A congestion control algorithm of one connection. Windows are in bytes of payload.
///
/// Reactions are required, observations are optional. Moments: `on_established` once; then `on_ack` for every ACK that
/// newly acknowledges data outside fast recovery (after a timeout it is called again: slow start rebuilds the window);
/// `on_signal` at the start of an episode; `on_recovery_end` when fast recovery or a congestion-window reduction for ECN
/// is over.
pub trait CongestionControl: Debug + Send {
    /// The algorithm's name in scenarios and summaries.
    fn name(&self) -> &'static str;
    /// The window now.
    fn window(&self) -> Window;
    /// The rate at which to pace, if the algorithm asks for it.
    fn pacing_rate(&self, _f: &Flight) -> Option<Rate> {
        None
    }
    /// The handshake is complete (`conn_init`): sets the initial window.
    fn on_established(&mut self, f: &Flight);
    /// It takes the place of another controller on an open connection, after [`CongestionControl::on_established`]: the window
    /// stays as it was, everything else begins anew.
    fn take_over(&mut self, window: Window);
    /// Data was newly acknowledged outside fast recovery (`ack_received`).
    fn on_ack(&mut self, f: &Flight, ack: &Ack) -> Verdict;
    /// Congestion was detected or taken back (`cong_signal`).
    fn on_signal(&mut self, f: &Flight, signal: Signal);
    /// Recovery is over (`post_recovery`).
    fn on_recovery_end(&mut self, f: &Flight);
    /// Sending resumes after an idle time of more than one RTO (`after_idle`).
    fn on_idle_restart(&mut self, f: &Flight);
    /// A round-trip time was measured, once per RTT (`rttsample` of h_ertt); `f.latest_rtt` is the sample.
    fn on_rtt_sample(&mut self, _f: &Flight) {}
    /// A round trip has begun: data sent after the previous round's start is acknowledged.
    fn on_round(&mut self, _f: &Flight, _round: u64) {}
    /// `bytes` of payload were sent.
    fn on_sent(&mut self, _f: &Flight, _bytes: u32) {}
}

/// A window, in bytes.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Window {
    /// The congestion window.
    pub cwnd: u64,
    /// The slow start threshold; [`Window::INFINITE`] before the first congestion.
    pub ssthresh: u64,
}

impl Window {
    /// A slow start threshold that is not reached: "arbitrarily high" (RFC 5681 section 3.1).
    pub const INFINITE: u64 = u64::MAX;
    /// No window grows beyond this: far above the 2^30 bytes that TCP can announce, and low enough for exact arithmetic.
    pub const MAX: u64 = 1 << 48;

    /// Whether the window grows by slow start.
    pub fn in_slow_start(&self) -> bool {
        self.cwnd < self.ssthresh
    }
}

/// What the sender knows at the moment of a hook, after the ACK in hand was processed.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Flight {
    /// Now.
    pub now: Time,
    /// Payload bytes of a full segment, options subtracted.
    pub mss: u32,
    /// Bytes outstanding in the network (`pipe` of RFC 6675); at a `Signal`, before anything is declared lost
    /// (FlightSize of RFC 5681).
    pub in_flight: u64,
    /// The window limited what was sent since the last ACK; without it the window must not grow (RFC 5681, RFC 7661).
    pub cwnd_limited: bool,
    /// Oldest unacknowledged byte of the stream.
    pub snd_una: u64,
    /// Next byte of the stream to be sent for the first time.
    pub snd_nxt: u64,
    /// Smoothed RTT (RFC 6298).
    pub srtt: Option<Span>,
    /// The newest RTT sample.
    pub latest_rtt: Option<Span>,
    /// The smallest RTT sample of the connection.
    pub min_rtt: Option<Span>,
    /// A timeout happened and what was outstanding then is not all acknowledged yet.
    pub after_timeout: bool,
    /// The host's initial window, bytes.
    pub initial_window: u64,
}

impl Flight {
    /// Payload bytes of a full segment, never zero.
    pub fn segment(&self) -> u64 {
        u64::from(self.mss.max(1))
    }
}

/// An ACK that newly acknowledges data.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Ack {
    /// Bytes newly acknowledged cumulatively.
    pub acked: u64,
    /// Bytes newly known to have arrived: of `acked`, what earlier ACKs had not reported by SACK or as duplicates, and what
    /// this one reports by SACK. Growth counts these: the ACK that ends a recovery covers a window of data whose arrival
    /// has been acted on already.
    pub delivered: u64,
    /// The RTT measured with this ACK; `None` if it covers only retransmitted data (Karn).
    pub rtt: Option<Span>,
    /// The ACK carries the ECN echo.
    pub ece: bool,
}

/// What a controller did with an ACK.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
#[must_use]
pub enum Verdict {
    /// The window grew or stayed.
    Continue,
    /// The controller backed off by itself (delay-based); the endpoint enters congestion recovery.
    Reduced,
}

/// Why the window is to be reduced, or put back.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Signal {
    /// A loss was detected by duplicate ACKs or SACK: once per episode.
    Loss,
    /// An ECN echo arrived: at most once per window of data.
    Ecn,
    /// The retransmission timer expired. `repeated` when the same data had already been resent by timeout: the slow
    /// start threshold then stays (RFC 5681 section 3.1, after equation 4).
    Timeout {
        /// Not the first expiry for this data.
        repeated: bool,
        /// Bytes that are not taken for lost: they are still in flight, and the window has room for a segment beside them
        /// (RFC 8985 section 6.3). Zero where a timeout declares everything lost.
        kept: u64,
    },
    /// The last `Loss` or `Timeout` turned out needless: the state from before it returns.
    Spurious,
    /// What had been missing arrived late, after the sender had sent beyond its window or less than it allows: the window
    /// is at most `cwnd` bytes now and slow start brings it back to `ssthresh` at least (RFC 4653 section 3.2 steps T.1 and T.2).
    Resume {
        /// So that no burst follows.
        cwnd: u64,
        /// What was outstanding before.
        ssthresh: u64,
    },
}

mod cubic;
#[cfg(test)]
mod fixture;
mod hystart;
mod newreno;

pub use cubic::{Cubic, CubicConfig, CubicRules};
pub use hystart::{HystartConfig, HystartRules};
pub use newreno::{NewReno, NewRenoConfig};
