//! Arguments of hooks, as immutable objects. Times are nanoseconds, sizes bytes, both whole
//! numbers.

use ackclock_cc::{self as cc, EcnFeedback};
use ackclock_units::{Span, Time};
use pyo3::prelude::*;

/// Since the start of the run.
pub(crate) fn nanos(time: Time) -> u64 {
    time.since(Time::ZERO).as_nanos()
}

fn span(span: Option<Span>) -> Option<u64> {
    span.map(Span::as_nanos)
}

/// A class around a copy of something of ackclock's, with a getter for each of its fields.
macro_rules! object {
    ($(#[$doc:meta])* $name:ident($inner:ty), |$of:ident| { $($field:ident: $type:ty = $value:expr;)* }) => {
        $(#[$doc])*
        #[pyclass(frozen, module = "ackclock")]
        #[derive(Clone, Copy, Debug)]
        pub(crate) struct $name(pub(crate) $inner);

        #[pymethods]
        impl $name {
            $(
                #[getter]
                #[inline]
                fn $field(&self) -> $type {
                    let $of = &self.0;
                    $value
                }
            )*

            fn __repr__(&self) -> String {
                let mut all = Vec::new();
                $(all.push(format!("{}={}", stringify!($field), shown(&self.$field())));)*
                format!("{}({})", stringify!($name), all.join(", "))
            }
        }
    };
}

/// A value as Python has it.
fn shown(value: &impl std::fmt::Debug) -> String {
    let text = format!("{value:?}");
    match &*text {
        "None" => "None".to_owned(),
        "true" => "True".to_owned(),
        "false" => "False".to_owned(),
        text => text.strip_prefix("Some(").and_then(|inner| inner.strip_suffix(')')).unwrap_or(text).to_owned(),
    }
}

object! {
    /// The state of the sender at the time of a hook.
    Flight(cc::Flight), |of| {
        now: u64 = nanos(of.now);
        mss: u32 = of.mss.max(1);
        in_flight: u64 = of.in_flight;
        cwnd_limited: bool = of.cwnd_limited;
        snd_una: u64 = of.snd_una;
        snd_nxt: u64 = of.snd_nxt;
        srtt: Option<u64> = span(of.srtt);
        latest_rtt: Option<u64> = span(of.latest_rtt);
        min_rtt: Option<u64> = span(of.min_rtt);
        after_timeout: bool = of.after_timeout;
        initial_window: u64 = of.initial_window;
        paced: bool = of.paced;
        app_limited: bool = of.app_limited;
    }
}

object! {
    /// An ACK that newly acknowledges data.
    Ack(cc::Ack), |of| {
        acked: u64 = of.acked;
        delivered: u64 = of.delivered;
        rtt: Option<u64> = span(of.rtt);
        ece: bool = of.ece;
        ce: u64 = of.ce;
        lost: u64 = of.lost;
        rate: Option<RateSample> = of.rate.map(RateSample);
    }
}

object! {
    /// A delivery rate that an ACK samples.
    RateSample(cc::RateSample), |of| {
        total_delivered: u64 = of.total_delivered;
        prior_delivered: u64 = of.prior_delivered;
        delivered: u64 = of.delivered;
        interval: Option<u64> = span(of.interval);
        app_limited: bool = of.app_limited;
        in_flight_when_sent: u64 = of.in_flight_when_sent;
        lost: u64 = of.lost;
    }
}

object! {
    /// An ACK as it was accepted, before any reaction to it.
    Arrival(cc::Arrival), |of| {
        ack: u64 = of.ack;
        acked: u64 = of.acked;
        delivered: u64 = of.delivered;
        sacked_to: Option<u64> = of.sacked_to;
        duplicate: bool = of.duplicate;
        in_recovery: bool = of.in_recovery;
        echoed: Option<u64> = span(of.echoed);
        rtt: Option<u64> = span(of.rtt);
        ce: u64 = of.ce;
        plain: bool = of.plain;
    }
}

object! {
    /// A segment that was sent.
    Sent(cc::Sent), |of| {
        seq: u64 = of.seq;
        bytes: u32 = of.bytes;
    }
}

object! {
    /// A segment that was marked lost.
    Lost(cc::Lost), |of| {
        seq: u64 = of.seq;
        bytes: u32 = of.bytes;
        total_delivered: u64 = of.total_delivered;
        total_lost: u64 = of.total_lost;
        prior_delivered: u64 = of.prior_delivered;
        prior_lost: u64 = of.prior_lost;
        in_flight_when_sent: u64 = of.in_flight_when_sent;
        app_limited: bool = of.app_limited;
        selective_acks: bool = of.selective_acks;
    }
}

object! {
    /// One subflow of a connection of Multipath TCP.
    Subflow(cc::Subflow), |of| {
        cwnd: u64 = of.cwnd;
        ssthresh: u64 = of.ssthresh;
        mss: u32 = of.mss;
        srtt: Option<u64> = span(of.srtt);
        min_rtt: Option<u64> = span(of.min_rtt);
    }
}

/// Why the window has to be reduced, or restored.
#[pyclass(name = "Signal", frozen, module = "ackclock")]
#[derive(Clone, Copy, Debug)]
pub(crate) struct PySignal(pub(crate) cc::Signal);

#[pymethods]
impl PySignal {
    /// `loss`, `ecn`, `timeout`, `spurious` or `resume`.
    #[getter]
    fn kind(&self) -> &'static str {
        match self.0 {
            cc::Signal::Loss => "loss",
            cc::Signal::Ecn => "ecn",
            cc::Signal::Timeout { .. } => "timeout",
            cc::Signal::Spurious => "spurious",
            cc::Signal::Resume { .. } => "resume",
            cc::Signal::RecoveryEnd => "recovery_end",
            cc::Signal::CountedAcks(_) => "counted_acks",
            cc::Signal::IdleRestart => "idle_restart",
        }
    }

    #[getter]
    fn repeated(&self) -> bool {
        matches!(self.0, cc::Signal::Timeout { repeated: true, .. })
    }

    #[getter]
    fn kept(&self) -> u64 {
        if let cc::Signal::Timeout { kept, .. } = self.0 { kept } else { 0 }
    }

    #[getter]
    fn cwnd(&self) -> Option<u64> {
        if let cc::Signal::Resume { cwnd, .. } = self.0 { Some(cwnd) } else { None }
    }

    #[getter]
    fn ssthresh(&self) -> Option<u64> {
        if let cc::Signal::Resume { ssthresh, .. } = self.0 { Some(ssthresh) } else { None }
    }

    fn __repr__(&self) -> String {
        format!("Signal(kind={:?})", self.kind())
    }
}

/// A controller's reaction to an ACK.
#[pyclass(frozen, eq, eq_int, hash, module = "ackclock", rename_all = "SCREAMING_SNAKE_CASE")]
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub(crate) enum Verdict {
    /// The window grew or stayed.
    Continue,
    /// It backed off by itself; congestion recovery begins.
    Reduced,
    /// The window was reduced, and that is all.
    Trimmed,
}

impl From<cc::Verdict> for Verdict {
    fn from(verdict: cc::Verdict) -> Verdict {
        match verdict {
            // It asks for no ACKs of fast recovery.
            cc::Verdict::Continue | cc::Verdict::Inflated(_) => Verdict::Continue,
            cc::Verdict::Reduced => Verdict::Reduced,
            cc::Verdict::Trimmed => Verdict::Trimmed,
        }
    }
}

impl From<Verdict> for cc::Verdict {
    fn from(verdict: Verdict) -> cc::Verdict {
        match verdict {
            Verdict::Continue => cc::Verdict::Continue,
            Verdict::Reduced => cc::Verdict::Reduced,
            Verdict::Trimmed => cc::Verdict::Trimmed,
        }
    }
}

const FEEDBACK: [(EcnFeedback, &str); 4] = [
    (EcnFeedback::None, "none"),
    (EcnFeedback::Classic, "classic"),
    (EcnFeedback::Dctcp, "dctcp"),
    (EcnFeedback::Accurate, "accurate"),
];

pub(crate) fn feedback(of: EcnFeedback) -> &'static str {
    FEEDBACK.iter().find(|(feedback, _)| *feedback == of).map_or("none", |(_, name)| name)
}

pub(crate) fn feedback_of(name: &str) -> Option<EcnFeedback> {
    FEEDBACK.iter().find(|(_, known)| *known == name).map(|(feedback, _)| *feedback)
}
