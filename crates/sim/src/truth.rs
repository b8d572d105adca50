//! Ground truth of a flow's transmissions: their fates, the retransmissions that were needed, the
//! causes of losses, and the delay of their detection. It requires a view of the whole path.
//!
//! Transmissions with data or a FIN are numbered in order of sending. Their fates become known in
//! any order and are judged in order: when a transmission is judged, the fates of all earlier ones
//! are known, and so are the bytes that none of them has delivered ([`missing::Missing`]). A
//! retransmission of some of these bytes was needed. The judgment does not depend on whether the
//! retransmission preceded the fate of the original; it only waits for it.

use std::borrow::Cow;

use ackclock_tcp::{LossDeclaration, SentAs, Stamp};
use ackclock_trace::Displacement;
use ackclock_units::{Ring, Span, Time, prefetch};

use crate::index::FlowId;
use crate::record::{SenderId, TcpRecording};
pub use cause::LOST_ON_LINK;
pub(crate) use cause::{Culprit, RECEIVER, Reason};
use counts::TruthCounts;
use losses::transmission;
use transmission::{TransmissionFate, UnjudgedTransmission};
use trouble::{Decided, Declared, Trouble};

mod cause;
mod counts;
mod losses;
mod missing;
mod transmission;
mod trouble;

/// The transmissions of one flow and the measures on them. In constant memory but for what is in
/// flight or lost. What each packet needs is here, the rest in [`Trouble`], which most short flows
/// never have.
#[derive(Debug)]
pub(crate) struct Truth {
    /// Transmissions that were not judged yet, in order of sending.
    sent: Ring<UnjudgedTransmission>,
    /// Number of the first of them.
    first: u64,
    /// One past the highest byte sent.
    end: u64,
    arrivals: u64,
    /// Time at which the fates of all judged transmissions were decided.
    judged_at: Time,
    /// Packets that the receiver has sent.
    serial: u64,
    /// There is no trouble: every judged transmission has arrived in its place, the others have no
    /// known fate, and the sender has declared no loss.
    is_quiet: bool,
    /// Number of the subflow, from 1; 0 of a flow of one path.
    subflow: u16,
    flow: FlowId,
    trouble: Option<Box<Trouble>>,
}

impl Truth {
    pub(crate) fn new(SenderId { flow, subflow }: SenderId) -> Truth {
        Truth {
            sent: Ring::new(),
            first: 1,
            end: 0,
            arrivals: 0,
            judged_at: Time::ZERO,
            serial: 0,
            is_quiet: true,
            subflow,
            flow,
            trouble: None,
        }
    }

    fn trouble(&mut self) -> &mut Trouble {
        let source = self.source();
        self.trouble.get_or_insert_with(|| Box::new(Trouble::new(source)))
    }

    /// Whose transmissions these are.
    pub(crate) fn source(&self) -> SenderId {
        SenderId { flow: self.flow, subflow: self.subflow }
    }

    /// One past the highest byte sent.
    pub(crate) fn end(&self) -> u64 {
        self.end
    }

    /// Updates `is_quiet` after a change of the known losses.
    fn review(&mut self) {
        self.is_quiet = self.trouble.as_ref().is_none_or(|trouble| trouble.is_over());
    }

    /// Starts to fetch what lies behind it into the cache.
    #[inline]
    pub(crate) fn prefetch_behind(&self) {
        self.sent.front().map(prefetch);
        self.sent.back().map(prefetch);
        if let Some(trouble) = self.trouble.as_deref().filter(|_| !self.is_quiet) {
            prefetch(trouble);
        }
    }

    /// Then, what lies behind that.
    #[inline]
    pub(crate) fn prefetch_trouble(&self) {
        if let Some(trouble) = self.trouble.as_deref().filter(|_| !self.is_quiet) {
            trouble.prefetch_behind();
        }
    }

    /// The sender sends `from..to`, at a time that it calls `stamp`; `is_data` is false for a FIN
    /// alone. Returns the number of the transmission.
    #[inline]
    pub(crate) fn sent(&mut self, stamp: Stamp, (from, to): (u64, u64), sent_as: SentAs, is_data: bool) -> u64 {
        let again = from < self.end;
        self.end = self.end.max(to);
        let (Stamp { at, order }, len) = (stamp, (to - from) as u32);
        self.sent.push(UnjudgedTransmission {
            from,
            at,
            order,
            len,
            sent_as,
            again,
            is_data,
            fate: TransmissionFate::OnItsWay,
        });
        self.first + self.sent.len() as u64 - 1
    }

    /// The transmissions that were not judged yet, from this number on, with their first bytes and
    /// whether some of their range had been sent before.
    pub(crate) fn sent_from(&self, number: u64) -> impl Iterator<Item = (u64, u64, bool)> {
        let skipped = number.saturating_sub(self.first);
        let sent = (self.first + skipped..).zip(self.sent.iter().skip(skipped as usize));
        sent.map(|(number, sent)| (number, sent.from, sent.again))
    }

    /// A transmission was lost on its way. Its last copy, if it was doubled.
    pub(crate) fn lost(&mut self, at: Time, number: u64, culprit: Culprit, log: Option<&mut TcpRecording>) {
        let Some(index) = self.on_its_way(number) else { return };
        self.decide(index, TransmissionFate::Lost, Decided { at, place: 0 });
        self.lose(number, index, culprit);
        if index == 0 {
            self.judge(log);
        }
        self.review();
    }

    /// A transmission reached the receiver; `holds` returns true if the receiver now has a range.
    #[inline]
    pub(crate) fn arrived(
        &mut self,
        now: Time,
        number: u64,
        holds: impl FnOnce(u64, u64) -> bool,
        log: Option<&mut TcpRecording>,
    ) {
        if self.is_quiet
            && number == self.first
            && let Some(sent) = self.sent.front()
            && !sent.again
        {
            // The common case: everything before it has arrived in order, and nobody thinks
            // otherwise.
            if holds(sent.from, sent.to()) {
                self.sent.pop();
                self.first += 1;
                self.judged_at = self.judged_at.max(now);
                self.arrivals += 1;
            } else {
                self.arrived_otherwise(now, number, |_, _| false, log);
            }
        } else {
            self.arrived_otherwise(now, number, holds, log);
        }
    }

    /// The same when there is trouble. It need not concern this transmission: new data that follows
    /// a loss mostly arrives in order.
    #[inline(never)]
    fn arrived_otherwise(
        &mut self,
        now: Time,
        number: u64,
        holds: impl FnOnce(u64, u64) -> bool,
        log: Option<&mut TcpRecording>,
    ) {
        let Some(index) = self.on_its_way(number) else { return };
        let sent = self.sent[index];
        let (from, to) = (sent.from, sent.to());
        let kept = holds(from, to);
        self.arrivals += 1;
        let place = self.arrivals;
        if index == 0 && kept && !sent.again && !self.trouble().concerns(number, place) {
            self.sent.pop();
            self.trouble().decided.pop_front();
            self.first += 1;
            self.judged_at = self.judged_at.max(now);
            if self.sent.front().is_some_and(|next| next.fate != TransmissionFate::OnItsWay) {
                self.judge(log);
                self.review();
            }
            return;
        }
        let fate = if kept { TransmissionFate::Kept } else { TransmissionFate::Refused };
        self.decide(index, fate, Decided { at: now, place });
        self.trouble().losses.arrived(number);
        if kept && sent.again {
            self.trouble().losses.repair(number, from, to);
        }
        if !kept {
            self.lose(number, index, Culprit::RECEIVER);
        }
        if index == 0 {
            self.judge(log);
        }
        self.review();
    }

    /// The place of a transmission whose fate is open. A second copy changes no fate.
    fn on_its_way(&self, number: u64) -> Option<usize> {
        let index = number.checked_sub(self.first)? as usize;
        self.sent.get(index).filter(|sent| sent.fate == TransmissionFate::OnItsWay).map(|_| index)
    }

    fn decide(&mut self, index: usize, fate: TransmissionFate, decided: Decided) {
        self.sent[index].fate = fate;
        let known = &mut self.trouble().decided;
        if known.len() > index {
            known[index] = decided;
            return;
        }
        while known.len() < index {
            known.push_back(Decided::default());
        }
        known.push_back(decided);
    }

    fn lose(&mut self, number: u64, index: usize, culprit: Culprit) {
        let sent = self.sent[index];
        self.trouble().losses.add(number, (sent.from, sent.to()), sent.stamp(), culprit);
    }

    /// The receiver sends a packet; returns its number.
    #[inline]
    pub(crate) fn receiver_sent(&mut self) -> u64 {
        self.serial += 1;
        if !self.is_quiet
            && let Some(trouble) = &mut self.trouble
        {
            trouble.losses.receiver_sent(self.serial);
        }
        self.serial
    }

    /// Returns true if there are losses that the sender has not recovered from.
    #[inline]
    pub(crate) fn has_losses(&self) -> bool {
        !self.is_quiet && self.trouble.as_ref().is_some_and(|trouble| trouble.losses.are_open())
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
        let Some(trouble) = &mut self.trouble else { return };
        trouble.losses.sender_received(now, serial, acked, srtt);
        while let Some(loss) = trouble.losses.close_next(self.first) {
            trouble.close(now, &loss, log.as_deref_mut());
        }
        self.review();
    }

    /// The sender declares a transmission lost.
    pub(crate) fn declared(&mut self, now: Time, declared: LossDeclaration, mut log: Option<&mut TcpRecording>) {
        let LossDeclaration { offset, len, stamp, by_timeout } = declared;
        if let Some(log) = &mut log {
            log.declared(now, self.source(), (offset, len.into()), by_timeout);
        }
        if self.trouble().losses.declare(stamp, offset, now, by_timeout) {
            return;
        }
        let range = |place| {
            let sent: &UnjudgedTransmission = &self.sent[place];
            (sent.stamp(), sent.from, sent.to())
        };
        match transmission(self.sent.len(), stamp, offset, range) {
            Some(place) => {
                let number = self.first + place as u64;
                let known = &mut self.trouble().declared;
                if let Err(place) = known.binary_search_by_key(&number, |declared| declared.number) {
                    known.insert(place, Declared { number, at: now, by_timeout });
                    self.is_quiet = false;
                }
            }
            // It was judged before, and is not among the losses: it arrived.
            None => self.trouble().declared_wrongly(now, now, (offset, offset + u64::from(len)), by_timeout, log),
        }
    }

    /// Judges, in order of sending, every transmission up to the first whose fate is open.
    fn judge(&mut self, mut log: Option<&mut TcpRecording>) {
        let Some(trouble) = &mut self.trouble else { return };
        while let Some(&sent) = self.sent.front().filter(|sent| sent.fate != TransmissionFate::OnItsWay) {
            self.sent.pop();
            let decided = trouble.decided.pop_front().unwrap_or_default();
            let number = self.first;
            self.first += 1;
            self.judged_at = self.judged_at.max(decided.at);
            trouble.place(number, sent.fate, decided.place);
            trouble.judge(self.judged_at, number, &sent, log.as_deref_mut());
        }
    }

    /// The run is over: what is on its way is not lost.
    pub(crate) fn finish(&mut self, end: Time, mut log: Option<&mut TcpRecording>) {
        if self.trouble.is_none() && self.sent.iter().all(|sent| !sent.again) {
            // Nothing comes of them any more.
            return self.sent.clear();
        }
        let source = self.source();
        let trouble = self.trouble.get_or_insert_with(|| Box::new(Trouble::new(source)));
        self.judged_at = end;
        while let Some(sent) = self.sent.pop() {
            let decided = trouble.decided.pop_front().unwrap_or_default();
            let number = self.first;
            self.first += 1;
            trouble.place(number, sent.fate, decided.place);
            trouble.judge(self.judged_at, number, &sent, log.as_deref_mut());
        }
        for loss in trouble.losses.take_open() {
            trouble.close(end, &loss, log.as_deref_mut());
        }
    }

    /// Counts of losses and retransmissions.
    pub(crate) fn counts(&self) -> Cow<'_, TruthCounts> {
        match &self.trouble {
            Some(trouble) => Cow::Borrowed(&trouble.counts),
            None => Cow::Owned(TruthCounts::new()),
        }
    }

    /// Adds what was counted for another flow, to a flow that sends nothing of its own.
    pub(crate) fn absorb(&mut self, other: &Truth) {
        self.first += other.first - 1;
        if let Some(trouble) = &other.trouble {
            let own = self.trouble();
            own.losses_before += trouble.losses_before;
            own.counts.absorb(&trouble.counts);
        }
    }

    /// Displacement of packets on arrival.
    pub(crate) fn displacement(&self) -> Displacement {
        let lost = self.trouble.as_ref().map_or(0, |trouble| trouble.losses_before);
        self.counts().displacement(self.first - 1 - lost)
    }
}

#[cfg(test)]
mod tests;
