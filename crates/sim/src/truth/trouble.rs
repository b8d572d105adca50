//! Packets that were lost, delayed, or declared lost. A flow without any of these never allocates
//! this state.

use std::collections::VecDeque;

use ackclock_tcp::SentAs;
use ackclock_trace::{JudgedSegment, LossVerdict};
use ackclock_units::{Span, Time, prefetch};

use super::counts::TruthCounts;
use super::losses::{LossTracker, LostTransmission, News};
use super::missing::Missing;
use super::transmission::{TransmissionFate, UnjudgedTransmission};
use crate::record::{SenderId, TcpFact, TcpRecording};

/// The time at which a fate was decided, and for an arrival its number among arrivals, from 1.
#[derive(Clone, Copy, Debug, Default)]
pub(super) struct Decided {
    pub(super) at: Time,
    pub(super) place: u64,
}

/// A transmission that was declared lost before its fate was judged.
#[derive(Clone, Copy, Debug)]
pub(super) struct Declared {
    pub(super) number: u64,
    pub(super) at: Time,
    pub(super) by_timeout: bool,
}

/// The losses, delays and wrong declarations of a flow, with their measurements.
#[derive(Debug)]
pub(super) struct Trouble {
    source: SenderId,
    /// Fates of the first unjudged transmissions, up to the last of them whose fate is decided.
    pub(super) decided: VecDeque<Decided>,
    /// Judged transmissions that did not arrive.
    pub(super) losses_before: u64,
    /// The bytes that no transmission judged so far has delivered.
    missing: Missing,
    pub(super) losses: LossTracker,
    /// Declarations in order of their numbers.
    pub(super) declared: VecDeque<Declared>,
    pub(super) counts: TruthCounts,
}

impl Trouble {
    pub(super) fn new(source: SenderId) -> Trouble {
        Trouble {
            source,
            decided: VecDeque::new(),
            losses_before: 0,
            missing: Missing::new(),
            losses: LossTracker::new(),
            declared: VecDeque::new(),
            counts: TruthCounts::new(),
        }
    }

    /// Starts to fetch what lies behind it into the cache.
    pub(super) fn prefetch_behind(&self) {
        self.decided.front().map(prefetch);
        self.missing.prefetch_behind();
        self.losses.prefetch_behind();
        self.declared.front().map(prefetch);
    }

    /// Nothing is lost, missing, or declared lost, and no fate is known before its turn.
    pub(super) fn is_over(&self) -> bool {
        self.decided.is_empty() && self.declared.is_empty() && self.missing.is_empty() && self.losses.are_over()
    }

    /// Nothing more will happen to a loss.
    pub(super) fn close(&mut self, now: Time, loss: &LostTransmission, log: Option<&mut TcpRecording>) {
        let late = match (loss.declared, loss.shown) {
            (Some((at, _)), News::Known(known)) => Some(at.as_nanos() as i64 - known.as_nanos() as i64),
            _ => None,
        };
        if let Some((at, by_timeout)) = loss.declared {
            self.counts.declared(late.and_then(|late| u64::try_from(late).ok()));
            if let Some(log) = log {
                let fact = fact(loss.from, loss.to, at, declared_by(by_timeout), loss.culprit.verdict(), late);
                log.add(now, self.source, TcpFact::Declaration(fact, loss.culprit.cause.direction()));
            }
        }
        if let (News::Known(shown), News::Known(repaired), Some(rtt), true) =
            (loss.shown, loss.repaired, loss.rtt, loss.was_missing)
            && rtt > Span::ZERO
            && late.is_none_or(|late| late >= 0)
        {
            // What was declared before has often become known by its own repair.
            self.counts.repaired(repaired.since(shown).as_secs_f64() / rtt.as_secs_f64());
        }
    }

    /// Returns true if the arrival of new data, the next transmission to be judged and the
    /// `place`-th to arrive, matters here: it is out of place among those not lost, was declared
    /// lost, or is the first to arrive after a loss.
    pub(super) fn concerns(&self, number: u64, place: u64) -> bool {
        place + self.losses_before != number
            || self.declared.front().is_some_and(|declared| declared.number == number)
            || self.losses.are_shown_by(number)
    }

    pub(super) fn declared_wrongly(
        &mut self,
        now: Time,
        at: Time,
        (from, to): (u64, u64),
        by_timeout: bool,
        log: Option<&mut TcpRecording>,
    ) {
        self.counts.declared_wrongly();
        if let Some(log) = log {
            let verdict = if by_timeout { LossVerdict::Delayed } else { LossVerdict::Reordered };
            let fact = fact(from, to, at, declared_by(by_timeout), verdict, None);
            log.add(now.max(at), self.source, TcpFact::Declaration(fact, None));
        }
    }

    /// Measures the displacement: the place among those that arrived less the place among those
    /// sent that arrive.
    pub(super) fn place(&mut self, number: u64, fate: TransmissionFate, place: u64) {
        match fate {
            TransmissionFate::Kept | TransmissionFate::Refused => {
                self.counts.displaced(place as i64 - (number - self.losses_before) as i64);
            }
            TransmissionFate::Lost | TransmissionFate::OnItsWay => self.losses_before += 1,
        }
    }

    /// Judges a transmission: the fates of all earlier ones are known; `judged_at` is the latest
    /// time at which one of them or its own was decided.
    pub(super) fn judge(
        &mut self,
        judged_at: Time,
        number: u64,
        sent: &UnjudgedTransmission,
        mut log: Option<&mut TcpRecording>,
    ) {
        let (from, to) = (sent.from, sent.to());
        let kept = matches!(sent.fate, TransmissionFate::OnItsWay | TransmissionFate::Kept);
        if sent.again && sent.is_data {
            self.judge_retransmission(judged_at, sent, log.as_deref_mut());
        }
        if let Some(&Declared { at, by_timeout, .. }) =
            self.declared.front().filter(|declared| declared.number == number)
        {
            self.declared.pop_front();
            match self.losses.get(number) {
                Some(loss) => _ = loss.declared.get_or_insert((at, by_timeout)),
                None => self.declared_wrongly(judged_at, at, (from, to), by_timeout, log),
            }
        }
        if kept {
            if sent.again {
                self.missing.bring(from, to);
            }
            return;
        }
        let was_missing = !sent.again || self.missing.culprit(from, to).is_some();
        let Some(loss) = self.losses.get(number) else { return };
        loss.was_missing = was_missing;
        let culprit = loss.culprit;
        if sent.again {
            self.missing.blame(from, to, culprit);
        } else {
            self.missing.add(from, to, culprit);
        }
    }

    fn judge_retransmission(&mut self, judged_at: Time, sent: &UnjudgedTransmission, log: Option<&mut TcpRecording>) {
        let (from, to) = (sent.from, sent.to());
        let culprit = self.missing.culprit(from, to);
        let verdict = match (culprit, sent.sent_as) {
            (Some(culprit), _) => culprit.verdict(),
            (None, SentAs::Timeout | SentAs::TailLossProbe | SentAs::WindowProbe) => LossVerdict::Delayed,
            (None, _) => LossVerdict::Reordered,
        };
        self.counts.retransmitted(&verdict, culprit);
        if let Some(log) = log {
            let fact = fact(from, to, sent.at, sent.sent_as.name(), verdict, None);
            let direction = culprit.and_then(|culprit| culprit.cause.direction());
            log.add(judged_at, self.source, TcpFact::Retransmission(fact, direction));
        }
    }
}

fn fact(
    from: u64,
    to: u64,
    since: Time,
    cause: &'static str,
    verdict: LossVerdict<'static>,
    late: Option<i64>,
) -> JudgedSegment<'static> {
    JudgedSegment { seq: from, len: (to - from) as u32, since, cause, verdict, late }
}

fn declared_by(timeout: bool) -> &'static str {
    if timeout { "timeout" } else { "detector" }
}
