//! What became of every transmission of a flow: which retransmissions were needed, and whose fault
//! that was, and how late a loss was noticed. Only who sees the whole path can tell.
//!
//! Transmissions with data are numbered in order of sending. Their fates come in any order and are
//! judged in order: when it is a transmission's turn, it is known of every earlier one whether it
//! arrived, so that the bytes that no earlier one has brought ([`Missing`]) are known exactly. A
//! retransmission of some of them was needed. That is the same whether the retransmission came
//! before or after the fate of the original; it costs nothing but the wait.

use std::collections::VecDeque;

use ackclock_tcp::{LossDeclaration, SentAs, Stamp};
use ackclock_trace::{Judged, LossVerdict};
use ackclock_units::{Span, Time};

use crate::index::{DirectionId, FlowId};
use crate::record::{TcpFact, TcpRecording};
use counts::Counts;
use losses::{Loss, Losses, News, transmission};
use missing::Missing;

mod counts;
mod losses;
mod missing;

/// What stands for a link where the receiver refused data.
pub(crate) const RECEIVER: &str = "receiver";
/// Why a receiver refuses data: it does not fit into its window, or is too old by its timestamp
/// (PAWS).
const REFUSED: &str = "refused";

/// Who lost a packet, and why.
#[derive(Clone, Copy, Debug, PartialEq)]
pub(crate) struct Culprit {
    /// The link direction; `None` is the receiver.
    pub(crate) direction: Option<DirectionId>,
    pub(crate) reason: &'static str,
    pub(crate) probability: Option<f64>,
}

impl Culprit {
    const RECEIVER: Culprit = Culprit { direction: None, reason: REFUSED, probability: None };

    fn verdict(self) -> LossVerdict<'static> {
        // The link's name is filled in where the record is written.
        LossVerdict::Lost { link: "", reason: self.reason, probability: self.probability }
    }
}

/// A transmission.
#[derive(Clone, Copy, Debug)]
struct Sent {
    /// Its range of the stream; a FIN is the byte after the last one.
    from: u64,
    to: u64,
    sent_at: Time,
    /// Its time as the sender orders it.
    stamp: Stamp,
    fate: Fate,
    /// When that was decided.
    fate_at: Time,
    sent_as: SentAs,
    /// Some of the range had been sent before.
    again: bool,
}

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Fate {
    OnItsWay,
    Lost,
    /// It was the n-th to arrive, from 1, and the receiver has all of it, or it was refused.
    Arrived {
        place: u64,
        kept: bool,
    },
}

/// A transmission that was declared lost before its fate was judged.
#[derive(Clone, Copy, Debug)]
struct Declared {
    number: u64,
    at: Time,
    by_timeout: bool,
}

/// The transmissions of one flow and the measures on them. In constant memory but for what is in
/// flight or lost.
#[derive(Debug)]
pub(crate) struct Truth {
    flow: FlowId,
    /// Transmissions that were not judged yet, in order of sending.
    sent: VecDeque<Sent>,
    /// Number of the first of them.
    first: u64,
    /// One past the highest byte sent.
    end: u64,
    arrivals: u64,
    /// Of those judged, how many did not arrive.
    losses_before: u64,
    /// When all of those judged were decided.
    judged_at: Time,
    /// What no transmission judged so far has brought.
    missing: Missing,
    losses: Losses,
    /// In order of their numbers.
    declared: VecDeque<Declared>,
    pub(crate) counts: Counts,
}

impl Truth {
    pub(crate) fn new(flow: FlowId) -> Truth {
        Truth {
            flow,
            sent: VecDeque::new(),
            first: 1,
            end: 0,
            arrivals: 0,
            losses_before: 0,
            judged_at: Time::ZERO,
            missing: Missing::new(),
            losses: Losses::new(),
            declared: VecDeque::new(),
            counts: Counts::new(),
        }
    }

    /// The sender sends `from..to`, at a time that it calls `stamp`; returns the number of the
    /// transmission.
    pub(crate) fn sent(&mut self, now: Time, stamp: Stamp, from: u64, to: u64, sent_as: SentAs) -> u64 {
        let again = from < self.end;
        self.end = self.end.max(to);
        let fate = Fate::OnItsWay;
        self.sent.push_back(Sent { from, to, sent_at: now, stamp, fate, fate_at: Time::ZERO, sent_as, again });
        self.first + self.sent.len() as u64 - 1
    }

    /// A transmission was lost on its way. Its last copy, if it was doubled.
    pub(crate) fn lost(&mut self, at: Time, number: u64, culprit: Culprit, log: Option<&mut TcpRecording>) {
        let Some((index, sent)) = self.on_its_way(number) else { return };
        (sent.fate, sent.fate_at) = (Fate::Lost, at);
        self.lose(number, index, culprit);
        if index == 0 {
            self.judge(log);
        }
    }

    /// A transmission reached the receiver; `holds` tells whether the receiver now has a range.
    pub(crate) fn arrived(
        &mut self,
        now: Time,
        number: u64,
        holds: impl FnOnce(u64, u64) -> bool,
        log: Option<&mut TcpRecording>,
    ) {
        let place = self.arrivals + 1;
        let Some((index, sent)) = self.on_its_way(number) else { return };
        let (from, to, again) = (sent.from, sent.to, sent.again);
        let kept = holds(from, to);
        if index == 0 && kept && !again && self.is_quiet() && place + self.losses_before == number {
            // The common case: everything before it has arrived in order, and nobody thinks
            // otherwise.
            self.sent.pop_front();
            self.first += 1;
            self.judged_at = self.judged_at.max(now);
            self.arrivals = place;
            self.counts.displaced(0);
            return;
        }
        let sent = &mut self.sent[index];
        (sent.fate, sent.fate_at) = (Fate::Arrived { place, kept }, now);
        self.arrivals = place;
        self.losses.arrived(number);
        if kept && again {
            self.losses.repair(number, from, to);
        }
        if !kept {
            self.lose(number, index, Culprit::RECEIVER);
        }
        if index == 0 {
            self.judge(log);
        }
    }

    /// A transmission whose fate is open, with its place. A second copy changes no fate.
    fn on_its_way(&mut self, number: u64) -> Option<(usize, &mut Sent)> {
        let index = number.checked_sub(self.first)? as usize;
        Some((index, self.sent.get_mut(index).filter(|sent| sent.fate == Fate::OnItsWay)?))
    }

    /// Nothing is lost, missing, or declared lost.
    fn is_quiet(&self) -> bool {
        !self.losses.are_open() && self.declared.is_empty() && self.missing.is_empty()
    }

    fn lose(&mut self, number: u64, index: usize, culprit: Culprit) {
        let Sent { from, to, stamp, .. } = self.sent[index];
        self.losses.add(number, (from, to), stamp, culprit);
    }

    /// The receiver sends a packet; returns its number.
    #[inline]
    pub(crate) fn receiver_sent(&mut self) -> u64 {
        self.losses.receiver_sent()
    }

    /// Whether there are losses that the sender is not through with.
    #[inline]
    pub(crate) fn has_losses(&self) -> bool {
        self.losses.are_open()
    }

    /// A packet of the receiver arrived at the sender, for which then `acked` bytes are
    /// acknowledged and the smoothed RTT is `srtt`.
    pub(crate) fn sender_received(
        &mut self,
        now: Time,
        serial: u64,
        acked: u64,
        srtt: Option<Span>,
        mut log: Option<&mut TcpRecording>,
    ) {
        self.losses.sender_received(now, serial, acked, srtt);
        while let Some(loss) = self.losses.close_next(self.first) {
            self.close(now, &loss, log.as_deref_mut());
        }
    }

    /// Nothing more will happen to a loss.
    fn close(&mut self, now: Time, loss: &Loss, log: Option<&mut TcpRecording>) {
        let late = match (loss.declared, loss.shown) {
            (Some((at, _)), News::Known(known)) => Some(at.as_nanos() as i64 - known.as_nanos() as i64),
            _ => None,
        };
        if let Some((at, by_timeout)) = loss.declared {
            self.counts.declared(late.and_then(|late| u64::try_from(late).ok()));
            if let Some(log) = log {
                let fact = self.fact(loss.from, loss.to, at, declared_by(by_timeout), loss.culprit.verdict(), late);
                log.add(now, self.flow, TcpFact::Declaration(fact, loss.culprit.direction));
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

    /// The sender declares a transmission lost.
    pub(crate) fn declared(&mut self, now: Time, declared: LossDeclaration, log: Option<&mut TcpRecording>) {
        let LossDeclaration { offset, len, stamp, by_timeout } = declared;
        if self.losses.declare(stamp, offset, now, by_timeout) {
            return;
        }
        match transmission(&self.sent, stamp, offset, |sent| (sent.stamp, sent.from, sent.to)) {
            Some(place) => {
                let number = self.first + place as u64;
                if let Err(place) = self.declared.binary_search_by_key(&number, |declared| declared.number) {
                    self.declared.insert(place, Declared { number, at: now, by_timeout });
                }
            }
            // It was judged before, and is not among the losses: it arrived.
            None => self.declared_wrongly(now, now, (offset, offset + u64::from(len)), by_timeout, log),
        }
    }

    fn declared_wrongly(
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
            let fact = self.fact(from, to, at, declared_by(by_timeout), verdict, None);
            log.add(now.max(at), self.flow, TcpFact::Declaration(fact, None));
        }
    }

    fn fact(
        &self,
        from: u64,
        to: u64,
        since: Time,
        cause: &'static str,
        verdict: LossVerdict<'static>,
        late: Option<i64>,
    ) -> Judged<'static> {
        Judged { seq: from, len: (to - from) as u32, since, cause, verdict, late }
    }

    /// Judges, in order of sending, every transmission up to the first whose fate is open.
    fn judge(&mut self, mut log: Option<&mut TcpRecording>) {
        while let Some(&sent) = self.sent.front().filter(|sent| sent.fate != Fate::OnItsWay) {
            self.sent.pop_front();
            let number = self.first;
            self.first += 1;
            self.judged_at = self.judged_at.max(sent.fate_at);
            self.place(number, &sent);
            self.judge_one(number, &sent, log.as_deref_mut());
        }
    }

    /// Measures the displacement: the place among those that arrived less the place among those
    /// sent that arrive.
    fn place(&mut self, number: u64, sent: &Sent) {
        match sent.fate {
            Fate::Arrived { place, .. } => {
                self.counts.displaced(place as i64 - (number - self.losses_before) as i64);
            }
            Fate::Lost | Fate::OnItsWay => self.losses_before += 1,
        }
    }

    fn judge_one(&mut self, number: u64, sent: &Sent, mut log: Option<&mut TcpRecording>) {
        let kept = matches!(sent.fate, Fate::OnItsWay | Fate::Arrived { kept: true, .. });
        if sent.again {
            self.judge_retransmission(sent, log.as_deref_mut());
        }
        if let Some(&Declared { at, by_timeout, .. }) =
            self.declared.front().filter(|declared| declared.number == number)
        {
            self.declared.pop_front();
            match self.losses.get(number) {
                Some(loss) => _ = loss.declared.get_or_insert((at, by_timeout)),
                None => self.declared_wrongly(self.judged_at, at, (sent.from, sent.to), by_timeout, log),
            }
        }
        if kept {
            if sent.again {
                self.missing.bring(sent.from, sent.to);
            }
            return;
        }
        let was_missing = !sent.again || self.missing.culprit(sent.from, sent.to).is_some();
        let Some(loss) = self.losses.get(number) else { return };
        loss.was_missing = was_missing;
        let culprit = loss.culprit;
        if sent.again {
            self.missing.blame(sent.from, sent.to, culprit);
        } else {
            self.missing.add(sent.from, sent.to, culprit);
        }
    }

    fn judge_retransmission(&mut self, sent: &Sent, log: Option<&mut TcpRecording>) {
        let culprit = self.missing.culprit(sent.from, sent.to);
        let verdict = match (culprit, sent.sent_as) {
            (Some(culprit), _) => culprit.verdict(),
            (None, SentAs::Timeout | SentAs::TailLossProbe | SentAs::WindowProbe) => LossVerdict::Delayed,
            (None, _) => LossVerdict::Reordered,
        };
        self.counts.retransmitted(&verdict, culprit);
        if let Some(log) = log {
            let fact = self.fact(sent.from, sent.to, sent.sent_at, sent.sent_as.name(), verdict, None);
            let direction = culprit.and_then(|culprit| culprit.direction);
            log.add(self.judged_at, self.flow, TcpFact::Retransmission(fact, direction));
        }
    }

    /// The run is over: what is on its way is not lost.
    pub(crate) fn finish(&mut self, end: Time, mut log: Option<&mut TcpRecording>) {
        self.judged_at = end;
        while let Some(sent) = self.sent.pop_front() {
            let number = self.first;
            self.first += 1;
            self.place(number, &sent);
            self.judge_one(number, &sent, log.as_deref_mut());
        }
        for loss in self.losses.take_open() {
            self.close(end, &loss, log.as_deref_mut());
        }
    }
}

fn declared_by(timeout: bool) -> &'static str {
    if timeout { "timeout" } else { "detector" }
}

#[cfg(test)]
mod tests;
