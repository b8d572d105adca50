//! The parameters of DualPI2.

use ackclock_units::parameter::{Domain, Setting, Value};
use ackclock_units::{Size, Span, configuration};

use crate::discipline::{Discipline, MAX, MTU, POSITIVE};

/// The position of the step of the L4S queue.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum StepThreshold {
    /// Packets that waited longer than this are marked.
    Time(Span),
    /// Packets that leave more than this many behind in the L4S queue are marked.
    Packets(u64),
}

const LINUX: &str = "Linux `sch_dualpi2`";

configuration! {
/// Parameters of a DualPI2 queue.
#[derive(Clone, Debug, PartialEq)]
pub struct DualPi2Config {
    /// The most packets that wait in both queues together; further ones are refused. Default:
    /// 10,000.
    pub limit: u64 = 10_000 => (Domain::Packets(1, MAX), LINUX);
    /// The most memory that waiting packets take, in bytes. Default: 30,280,000, twice `limit`
    /// Ethernet frames.
    pub memlimit: u64 = 2 * 10_000 * 1514 => (Domain::Bytes(1, MAX), LINUX);
    /// The queueing delay of the classic queue to settle at. Default: 15 ms.
    pub target: Span = Span::from_millis(15) => (POSITIVE, "RFC 9332 appendix A.1; Linux `sch_dualpi2`");
    /// Time between two updates of the probability. Default: 16 ms.
    pub tupdate: Span = Span::from_millis(16) => (POSITIVE, "RFC 9332 appendix A.1; Linux `sch_dualpi2`");
    /// Weight of the delay's distance from `target`, in Hz. Default: 41/256, about 0.16.
    pub alpha: f64 = 41.0 / 256.0 => (Domain::Number(0.0, 256.0, "Hz"), LINUX);
    /// Weight of the delay's change since the last update, in Hz. Default: 819/256, about 3.2.
    pub beta: f64 = 819.0 / 256.0 => (Domain::Number(0.0, 256.0, "Hz"), LINUX);
    /// The ratio of the L4S marking probability to the base probability, 1 or more (RFC 9332
    /// section 2.1, `k`). Default: 2.
    pub coupling_factor: u32 = 2 => (Domain::Whole(1, 255, ""), "RFC 9332 s2.1; Linux `sch_dualpi2`");
    /// The step above which L4S packets are marked. Default: 1 ms.
    pub step_thresh: StepThreshold = StepThreshold::Time(Span::from_millis(1)) =>
        (Domain::TimeOrPackets(0, MAX), LINUX);
    /// The step applies to packets that found at least this many in the L4S queue. Default: 0.
    pub min_qlen_step: u64 = 0 => (Domain::Packets(0, MAX), LINUX);
    /// When L4S packets would have to be marked with more than certainty, drop packets of both
    /// queues alike (`drop_on_overload`), or rather let the queue grow up to its limit
    /// (`overflow`). Default: drop.
    pub drop_on_overload: bool = true => (Domain::Flag, LINUX);
    /// Decide on arrival (`drop_enqueue`), or on departure (`drop_dequeue`). Default: on departure.
    pub drop_enqueue: bool = false => (Domain::Flag, LINUX);
    /// The share of the link that is kept for the classic queue, in percent, 0 to 100. Default: 10.
    pub classic_protection: u32 = 10 => (Domain::Whole(0, 100, "percent"), LINUX);
    /// ECT(0) packets go to the L4S queue too (`any_ect`), not only ECT(1) and CE (`l4s_ect`, RFC
    /// 9331 section 5.1). Default: off.
    pub any_ect: bool = false => (Domain::Flag, "RFC 9331 s5.1; Linux `sch_dualpi2`");
    /// Bytes of the largest packet. Default: 1514, an Ethernet frame.
    pub mtu: u32 = 1514 => (MTU, "an Ethernet frame");
}
}

impl Discipline for DualPi2Config {
    fn marks(&self) -> bool {
        true
    }

    fn target(&self) -> Option<Span> {
        Some(self.target)
    }
}

impl Setting for StepThreshold {
    fn value(&self) -> Value {
        match self {
            StepThreshold::Time(span) => Value::Time(*span),
            StepThreshold::Packets(packets) => Value::Size(Size::Packets(*packets)),
        }
    }

    fn from_value(value: Value) -> Option<StepThreshold> {
        match value {
            Value::Time(span) => Some(StepThreshold::Time(span)),
            Value::Size(Size::Packets(packets)) => Some(StepThreshold::Packets(packets)),
            _ => None,
        }
    }
}

impl DualPi2Config {
    /// The defaults for round trips of `typical_rtt`, stable up to `max_rtt`, as tc's options of
    /// these names and RFC 9332 appendix A.1 derive them: the target is the typical one, updates
    /// come as often or three times per `max_rtt`, alpha is 0.1 `tupdate` / `max_rtt`^2 and beta
    /// 0.3 / `max_rtt`.
    ///
    /// # Panics
    /// If `typical_rtt` is zero or above `max_rtt`.
    pub fn for_rtt(typical_rtt: Span, max_rtt: Span) -> DualPi2Config {
        assert!(Span::ZERO < typical_rtt && typical_rtt <= max_rtt, "0 < typical_rtt <= max_rtt");
        let tupdate = typical_rtt.min(max_rtt / 3).max(Span::from_nanos(1));
        let max = max_rtt.as_secs_f64();
        let alpha = 0.1 * tupdate.as_secs_f64() / (max * max);
        DualPi2Config { target: typical_rtt, tupdate, alpha, beta: 0.3 / max, ..DualPi2Config::default() }
    }

    /// The problem with these parameters, if there is one.
    pub(crate) fn problem(&self) -> Option<&'static str> {
        let usable = |gain: f64| gain.is_finite() && gain >= 0.0;
        if self.tupdate == Span::ZERO {
            Some("tupdate must not be zero")
        } else if self.coupling_factor == 0 {
            Some("coupling_factor must not be zero")
        } else if self.classic_protection > 100 {
            Some("classic_protection is a percentage")
        } else if !(usable(self.alpha) && usable(self.beta)) {
            Some("alpha and beta must be finite and not negative")
        } else {
            None
        }
    }
}
