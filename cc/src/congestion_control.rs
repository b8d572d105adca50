//! A congestion controller as its caller sees it: the trait, what a hook is told, and what it answers.

use std::any::Any;
use std::fmt::Debug;

use ackclock_units::outside::Failure;
use ackclock_units::parameter::{Setting, Value};
use ackclock_units::{Rate, Span, Time};

use crate::cdg::DelayState;
use crate::coupled::Coupled;

/// A congestion control algorithm of one connection. Windows are in bytes of payload.
///
/// Reactions are required, observations are optional. `on_established` comes once; then `on_ack`
/// for every ACK that newly acknowledges data outside fast recovery (after a timeout it is called
/// again: slow start rebuilds the window), and `on_signal` for everything else that changes the
/// window. An algorithm requests further observations in [`CongestionControl::needs`]: every
/// accepted ACK is followed by `on_arrival`, [`Signal::RecoveryEnd`] if it ended an episode,
/// `on_lost` for what it proves lost, and another signal or `on_ack` last. With the loss detectors
/// of Linux before RACK growth comes first, as in the kernel: an `on_signal` may follow the
/// `on_ack` of the same ACK.
pub trait CongestionControl: Any + Debug + Send {
    /// The algorithm's name in scenarios and summaries.
    fn name(&self) -> &'static str;
    /// The window now.
    fn window(&self) -> Window;
    /// The needs of the controller. Constant while the controller is in use, except that
    /// [`CongestionControl::on_ecn`] may change it.
    fn needs(&self) -> Needs {
        Needs::default()
    }
    /// The rate at which to pace, if the algorithm asks for it: from [`CongestionControl::on_ecn`]
    /// on at all times, or never. Asked before each segment with data, after `on_sent`.
    fn pacing_rate(&self, _f: &Flight) -> Option<Rate> {
        None
    }
    /// The handshake is complete (`conn_init`): sets the initial window.
    fn on_established(&mut self, f: &Flight);
    /// Sets the window from outside. Either the controller replaces another one on an open
    /// connection, after [`CongestionControl::on_established`]: the window stays as it was,
    /// everything else begins anew. Or the endpoint limits a window that was not used (RFC 2861,
    /// RFC 7661).
    fn take_over(&mut self, window: Window);
    /// Sets the window alone, by a rule of the endpoint for recovery (FreeBSD's `cc_cong_signal`). By
    /// default as [`CongestionControl::take_over`].
    fn impose(&mut self, window: Window) {
        self.take_over(window);
    }
    /// The handshake has settled how marks are reported; after
    /// [`CongestionControl::on_established`] and [`CongestionControl::take_over`]. Its needs may
    /// change here.
    fn on_ecn(&mut self, _feedback: EcnFeedback) {}
    /// Data was newly acknowledged outside fast recovery (`ack_received`), or in it with
    /// [`Needs::recovery_acks`].
    fn on_ack(&mut self, f: &Flight, ack: &Ack) -> Verdict;
    /// Congestion was detected (`cong_signal`), its repair is over, or the window changes for
    /// another reason than an ACK.
    fn on_signal(&mut self, f: &Flight, signal: Signal);
    /// An ACK was accepted, whatever it acknowledges, in every state; only with
    /// [`Needs::arrivals`].
    fn on_arrival(&mut self, _f: &Flight, _arrival: &Arrival) {}
    /// The RTT sample of an ACK before it is judged, in every state, and `cwnd`, the window in
    /// force then: where the host tells of samples so (`pkts_acked` of Linux), and an `on_ack` of the
    /// same ACK has [`Ack::sampled`].
    fn on_sample(&mut self, _f: &Flight, _rtt: Span, _cwnd: u64) {}
    /// A segment was marked lost; only with [`Needs::delivery_rate`].
    fn on_lost(&mut self, _f: &Flight, _lost: &Lost) {}
    /// A segment with data was sent; `f` is the state before it. With [`Needs::departures`] for
    /// every segment, otherwise only for those before which nothing was outstanding (Linux's
    /// `CA_EVENT_TX_START`).
    fn on_sent(&mut self, _f: &Flight, _sent: &Sent) {}
    /// The visible part of the state; asked for where it is recorded, and now and then.
    fn inspect(&self) -> Inspection<'_> {
        Inspection::default()
    }
    /// Itself, if it is coupled with the controllers of the other subflows of a connection of
    /// Multipath TCP.
    fn coupled(&mut self) -> Option<&mut dyn Coupled> {
        None
    }
}

/// The visible part of a controller's state.
#[derive(Clone, Copy, Debug, Default, PartialEq)]
pub struct Inspection<'a> {
    /// The measurements of an algorithm that measures enhanced round-trip times;
    /// [`EnhancedRtt::measurements`] counts them.
    pub enhanced_rtt: Option<EnhancedRtt>,
    /// The inferences of an algorithm that follows gradients of delay, as CDG.
    pub delay: Option<DelayState>,
    /// Why a controller from outside cannot go on; the run then fails. Also asked before another
    /// controller takes over: the hooks are called until then.
    pub failure: Option<&'a Failure>,
}

/// The requests of a controller to the endpoint beyond its reactions; only requested features cost
/// anything.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Needs {
    /// `on_arrival` is called.
    pub arrivals: bool,
    /// Delivery rates are sampled: [`Ack::rate`] is set, and `on_lost` is called.
    pub delivery_rate: bool,
    /// `on_sent` is called for every segment with data.
    pub departures: bool,
    /// The controller determines the window at all times: nothing else reduces it in recovery (no
    /// PRR), and `on_ack` is called in every state for every ACK that delivers something or proves
    /// a loss.
    pub whole_control: bool,
    /// The ECN-capable packets, on a connection that has agreed on ECN, and their codepoint.
    pub ecn: EcnUse,
    /// [`Coupled::couple`] is called on a connection with several subflows.
    pub siblings: bool,
    /// `on_ack` is also called in fast recovery, with [`Ack::in_recovery`], where the host tells of
    /// ACKs then (FreeBSD 9, which calls `ack_received`).
    pub recovery_acks: bool,
    /// Rate halving (Linux before 3.2) ends at half of the threshold as for Reno
    /// (`tcp_reno_min_cwnd`), not at the threshold, and [`Signal::CountedAcks`] follows it.
    pub reno_halving: bool,
}

/// The packets that are sent as ECN-capable.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub enum EcnUse {
    /// New data, with ECT(0) (RFC 3168 sections 6.1.4 and 6.1.5).
    #[default]
    Data,
    /// Every packet, with ECT(0): SYNs (RFC 8257 section 3.5), ACKs and retransmissions as well.
    All,
    /// Every packet, with ECT(1), which asks for the treatment of L4S (RFC 9331 section 4.1).
    /// Without accurate feedback as [`EcnUse::Data`].
    Scalable,
}

/// The receiver's reports of congestion marks, in order of increasing detail.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, PartialOrd, Ord)]
pub enum EcnFeedback {
    /// ECN was not agreed on.
    #[default]
    None,
    /// The fact of a mark, repeated until the sender confirms it (RFC 3168).
    Classic,
    /// The ACKs that cover marked data (RFC 8257 section 3.2).
    Dctcp,
    /// The number of marked packets (RFC 9768).
    Accurate,
}

impl Setting for EcnFeedback {
    fn value(&self) -> Value {
        match self {
            EcnFeedback::None => Value::Flag(false),
            EcnFeedback::Classic => Value::Flag(true),
            EcnFeedback::Dctcp => Value::Name("dctcp"),
            EcnFeedback::Accurate => Value::Name("accecn"),
        }
    }

    fn from_value(value: Value) -> Option<EcnFeedback> {
        use EcnFeedback::{Accurate, Classic, Dctcp, None};
        [None, Classic, Dctcp, Accurate].into_iter().find(|feedback| feedback.value() == value)
    }
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
    /// No window grows beyond this: far above the 2^30 bytes that TCP can announce, and low enough
    /// for exact arithmetic.
    pub const MAX: u64 = 1 << 48;

    /// Returns `true` if the window grows by slow start.
    pub fn in_slow_start(&self) -> bool {
        self.cwnd < self.ssthresh
    }

    /// The only way in which a window grows.
    pub(crate) fn grow(&mut self, bytes: u64) {
        self.cwnd = self.cwnd.saturating_add(bytes).min(Window::MAX);
    }
}

/// The sender's state at the moment of a hook, after the ACK in hand was processed.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Flight {
    /// Now.
    pub now: Time,
    /// Payload bytes of a full segment, options subtracted.
    pub mss: u32,
    /// Bytes outstanding in the network (`pipe` of RFC 6675); at a `Signal`, before anything is
    /// declared lost (FlightSize of RFC 5681).
    pub in_flight: u64,
    /// The window limited what was sent since the last ACK; without it the window must not grow
    /// (RFC 5681, RFC 7661).
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
    /// The endpoint paces, whoever asked for it.
    pub paced: bool,
    /// The application has left the pipe unfilled, so that what is sent now yields samples that are
    /// too low (`C.app_limited`); only with [`Needs::delivery_rate`].
    pub app_limited: bool,
}

impl Flight {
    /// Payload bytes of a full segment, never zero.
    pub fn segment(&self) -> u64 {
        u64::from(self.mss.max(1))
    }
}

/// An ACK that newly acknowledges data; with [`Needs::whole_control`], one that delivers something
/// or proves a loss.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Ack {
    /// Bytes newly acknowledged cumulatively.
    pub acked: u64,
    /// Bytes newly known to have arrived: of `acked`, what earlier ACKs had not reported by SACK or
    /// as duplicates, and what this one reports by SACK. Growth is based on these: the ACK that
    /// ends a recovery covers a window of data whose arrival has already been acted upon.
    pub delivered: u64,
    /// The RTT measured with this ACK; `None` if it covers only retransmitted data (Karn).
    pub rtt: Option<Span>,
    /// `rtt` was told before, by `on_sample`.
    pub sampled: bool,
    /// The ACK carries the ECN echo.
    pub ece: bool,
    /// Bytes newly reported to have arrived with CE, as far as the feedback in use tells it.
    pub ce: u64,
    /// Bytes newly marked lost.
    pub lost: u64,
    /// The ACK belongs to fast recovery, or ends it; only with [`Needs::recovery_acks`].
    pub in_recovery: bool,
    /// The delivery rate that it samples; only with [`Needs::delivery_rate`].
    pub rate: Option<RateSample>,
}

/// An ACK as it was accepted, before any reaction to it.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Arrival {
    /// The first byte of the stream that it does not acknowledge; not less than any before it.
    pub ack: u64,
    /// Bytes newly acknowledged cumulatively.
    pub acked: u64,
    /// Bytes newly known to have arrived, by acknowledgment or SACK.
    pub delivered: u64,
    /// The end of the highest SACK block in it that lies above what it acknowledges.
    pub sacked_to: Option<u64>,
    /// The ACK is a duplicate (RFC 5681 section 2; with SACK, one that reports something new).
    pub duplicate: bool,
    /// The sender is in fast recovery or rebuilds after a timeout.
    pub in_recovery: bool,
    /// Time since the segment was sent whose timestamp it echoes: the difference of two readings of
    /// a millisecond clock. `None` without the timestamps option.
    pub echoed: Option<Span>,
    /// The RTT measured with this ACK (`rttsample`), which is [`Flight::latest_rtt`]; `None` if it
    /// covers only retransmitted data (Karn).
    pub rtt: Option<Span>,
    /// A round trip has begun (`newround`): data sent after the previous round's start is
    /// acknowledged. Its number, counted from 1.
    pub round: Option<u64>,
    /// Bytes newly reported to have arrived with CE, as far as the feedback in use tells it.
    pub ce: u64,
    /// Nothing can be new but what the ACK acknowledges: no flag but ACK and PSH, no SACK block, the
    /// window of before. Linux's header prediction takes these (`tcp_rcv_established`).
    pub plain: bool,
}

/// A segment that was sent.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Sent {
    /// Its first byte in the stream.
    pub seq: u64,
    /// Bytes of payload.
    pub bytes: u32,
}

/// A delivery rate (draft-ietf-ccwg-bbr section 4.1.2): how much was delivered while the newest
/// segment that an ACK acknowledges was in transit.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct RateSample {
    /// `C.delivered`: bytes delivered in the connection's life, this ACK included.
    pub total_delivered: u64,
    /// `RS.prior_delivered`: `total_delivered` when that segment was sent.
    pub prior_delivered: u64,
    /// `RS.delivered`: bytes delivered since.
    pub delivered: u64,
    /// `RS.interval`: the longer of the time in which these were sent and in which they were
    /// acknowledged; `None` if the sample says nothing about the rate.
    pub interval: Option<Span>,
    /// `RS.is_app_limited`: the application had left the pipe unfilled when that segment was sent.
    pub app_limited: bool,
    /// `RS.tx_in_flight`: bytes in flight once that segment was sent.
    pub in_flight_when_sent: u64,
    /// `RS.lost`: bytes marked lost since that segment was sent.
    pub lost: u64,
}

/// A segment that was marked lost, with the state when it was last sent.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Lost {
    /// Its first byte in the stream.
    pub seq: u64,
    /// Its payload, bytes.
    pub bytes: u32,
    /// `C.delivered`: bytes delivered in the connection's life, the ACK in hand included.
    pub total_delivered: u64,
    /// `C.lost`: bytes marked lost in the connection's life, some perhaps in error; this segment
    /// included.
    pub total_lost: u64,
    /// Bytes delivered in the connection's life until it was sent.
    pub prior_delivered: u64,
    /// Bytes marked lost until it was sent.
    pub prior_lost: u64,
    /// Bytes in flight once it was sent.
    pub in_flight_when_sent: u64,
    /// The application had left the pipe unfilled.
    pub app_limited: bool,
    /// `C.has_selective_acks`: SACK is in use, so that more than one loss can be detected in a
    /// round trip.
    pub selective_acks: bool,
}

/// The reaction of a controller to an ACK.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
#[must_use]
pub enum Verdict {
    /// The window grew or stayed.
    Continue,
    /// The controller backed off by itself (delay-based); the endpoint enters congestion recovery.
    /// Where no PRR shapes the window, `on_ack` is still called during it: the controller decides
    /// whether the window may grow (FreeBSD).
    Reduced,
    /// The window was reduced, and that is all: no recovery begins, and another reduction may
    /// follow at once.
    Trimmed,
    /// In fast recovery the window in force grows by so many bytes; after the ACK that ends it, the
    /// window is the controller's own. Only with [`Needs::recovery_acks`].
    Inflated(u64),
}

/// Why the window has to change, other than by an ACK.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Signal {
    /// A loss was detected by duplicate ACKs or SACK: once per episode. During a reduction for
    /// marks it is delivered only to controllers for which marks are frequent and mean little (not
    /// [`EcnUse::Data`]).
    Loss,
    /// An ECN echo arrived: at most once per window of data. Controllers for which marks are
    /// frequent and mean little (not [`EcnUse::Data`]) also receive this for a loss that a tail
    /// loss probe has repaired: the reduction is that of Linux's CWR (`tcp_process_tlp_ack`).
    Ecn,
    /// The retransmission timer expired. `repeated` if the same data had already been retransmitted
    /// by timeout: the slow start threshold then stays (RFC 5681 section 3.1, after equation 4).
    Timeout {
        /// The same data had already been retransmitted by timeout.
        repeated: bool,
        /// Bytes that are not declared lost: they are still in flight, and the window has room for
        /// one more segment (RFC 8985 section 6.3). Zero where a timeout declares everything lost.
        kept: u64,
    },
    /// The last `Loss` or `Timeout` turned out to be spurious: the state before it is restored.
    Spurious,
    /// Missing data arrived late, after the sender had sent more or less than its window allows:
    /// the window is now at most `cwnd` bytes, and slow start brings it back to `ssthresh` at least
    /// (RFC 4653 section 3.2 steps T.1 and T.2).
    Resume {
        /// A limit that prevents a burst.
        cwnd: u64,
        /// The data outstanding before.
        ssthresh: u64,
    },
    /// Fast recovery is over, or a reduction of the window for ECN (`post_recovery`).
    RecoveryEnd,
    /// After the end of a reduction by rate halving: so many ACKs remain in the counter that it
    /// shares with congestion avoidance (`snd_cwnd_cnt`); only with [`Needs::reno_halving`].
    CountedAcks(u32),
    /// Sending resumes after an idle time of more than one RTO (`after_idle`);
    /// [`Flight::initial_window`] is the restart window (RFC 5681 section 4.1).
    IdleRestart,
}

/// The measurements so far; for traces.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct EnhancedRtt {
    /// The newest sample; zero before the first.
    pub rtt: Span,
    /// The shortest sample.
    pub min: Span,
    /// The longest sample.
    pub max: Span,
    /// The round trip of the last marked segment.
    pub marked: Span,
    /// Bytes that were sent while it was on its way, itself included.
    pub bytes_in_marked: u64,
    /// Number of marked segments that were measured.
    pub measurements: u64,
    /// The receiver seems to delay ACKs.
    pub delayed_acks: bool,
}
